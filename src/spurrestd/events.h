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
enum events_of { EVENTS_JOBS, EVENTS_NODES, EVENTS_PARTITIONS, EVENTS_RESERVATIONS, EVENTS_KINDS };
/*
 * Whether some of these may have changed since that second. The first who asks begins the stream of changes, and
 * until it has run that long the answer is yes.
 */
bool events_changed(struct events *events, enum events_of what, int64_t since_s);
unsigned events_listening(const struct events *events);

#endif
