/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_read.c - reads that are not stale
 *
 * A leader that was deposed, stopped or cut off does not know it yet. So it answers a read after the
 * log has confirmed that it led at a moment after the read came: what was acknowledged before, by
 * whomever, is in its state then. One confirmation serves all that wait for it; a lone controller
 * knows at once.
 *
 * Who asks for a stale answer gets one from anybody, at once, and it says so.
 */
#include <stdlib.h>

#include "spurctld/ctl/ctl_priv.h"

struct reading {
    struct ctl *ctl;
    struct ctl_ask *ask; /* NULL: gone */
    ctl_handler *handler;
    const ProtobufCMessage *request;
};

static void reading_drop(struct ctl *ctl, const struct reading *reading)
{
    for (size_t i = 0; i < ctl->asks.readings.len; i++) {
        if (ctl->asks.readings.items[i] == reading) {
            vec_remove(&ctl->asks.readings, i);
            return;
        }
    }
}

static void on_confirmed(void *arg, int rc)
{
    struct reading *reading = arg;
    struct reading copy = *reading;

    ctl_settle(copy.ctl);
    reading_drop(copy.ctl, reading);
    free(reading);
    if (!copy.ask)
        return;
    if (rc < 0 || !copy.ctl->leading)
        ctl_fail(copy.ask, ERR_NOT_LEADER);
    else
        copy.handler(copy.ctl, copy.ask, copy.request);
}

void ctl_read(struct ctl *ctl, struct ctl_ask *ask, ctl_handler *handler,
              const ProtobufCMessage *request, bool stale)
{
    if (stale) {
        handler(ctl, ask, request);
        return;
    }
    if (!ctl->leading) {
        ctl_fail(ask, ERR_NOT_LEADER);
        return;
    }
    struct reading *reading = NEW(struct reading);
    *reading = (struct reading){ .ctl = ctl, .ask = ask, .handler = handler, .request = request };
    vec_push(&ctl->asks.readings, reading);
    log_confirm(ctl->log, on_confirmed, reading);
}

void ctl_read_gone(struct ctl *ctl, const struct ctl_ask *ask)
{
    vec_each (struct reading *, reading, &ctl->asks.readings) {
        if ((*reading)->ask == ask)
            (*reading)->ask = NULL;
    }
}
