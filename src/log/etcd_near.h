/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_near.h - etcd's own leader beside ours
 *
 * etcd elects a leader of its own among its members. When that is on the machine of the controller
 * that leads, an append needs one hop less, and the loss of another machine does not stop it. Whoever
 * follows and speaks to the member that leads etcd hands etcd's leadership to the member with the
 * name of the controller that leads, once that has led for a while.
 */
#ifndef LOG_ETCD_NEAR_H
#define LOG_ETCD_NEAR_H

#include "log/etcd_io.h"
#include "log/log.h"

struct etcd_near;

/* Only with members that controllers run, each named as its controller. */
struct etcd_near *etcd_near_new(const struct etcd_io *io, void *io_ctx, struct log *log);
void etcd_near_free(struct etcd_near *near); /* before the log and the io */

#endif
