/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.h - those who listen to what changes
 */
#ifndef SPURRESTD_EVENTS_H
#define SPURRESTD_EVENTS_H

struct events;
struct rest;

struct events *events_new(struct rest *rest);
void events_stop(
    struct events *events); /* ends every stream; before the connections to the controllers go */
void events_free(struct events *events);
unsigned events_listening(const struct events *events);

#endif
