/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote.h - the small process that every supervisor is forked from
 *
 * Executing a supervisor costs several times what forking one does. The zygote is started by spurd,
 * listens on a unix socket (SOCK_SEQPACKET), outlives spurd, and ends by itself when nobody was
 * connected for a while: spurd then starts another.
 */
#ifndef SPURSTEPD_ZYGOTE_H
#define SPURSTEPD_ZYGOTE_H

#include "base/err.h"

/*
 * Serves until it is told to quit or idle_s have passed without a client; returns 0. In a forked
 * supervisor it does not return. `title` is where the process title may be written.
 */
int zygote_run(const char *socket_path, int idle_s, char *title, size_t title_bytes,
               struct err *err);

#endif
