/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_forked.c - questions that take long are answered by a copy of the process
 *
 * When would a job start that needs a thousand of ten thousand nodes? That is looked for in what is
 * free at every moment to come, a tenth of a second and more. Meanwhile the loop would hear nobody.
 *
 * (1) A forked child sees the state as it was when its turn came. It runs the handler as it is, with an
 *     asker that keeps what is said, and hands that to the parent, which says it to the real one.
 * (2) When the child fails, or there is nobody who could fork one (simulation), it is done here.
 */
#include <stdlib.h>
#include <string.h>

#include "spurctld/ctl/ctl_priv.h"

enum { MOST_WAITING = 1000 };

struct ctl_forked {
    struct ctl *ctl;
    struct ctl_ask *ask; /* NULL: gone */
    ctl_handler *handler;
    const ProtobufCMessage *request;
};

/* ---- in the child ---- */

static void keep_packed(struct ctl_ask *ask, struct str *packed)
{
    struct str *out = ask->ctx;

    str_add_char(out, 'a');
    str_add_len(out, str_text(packed), packed->len);
    str_done(packed);
}

static void keep_reply(struct ctl_ask *ask, const ProtobufCMessage *reply)
{
    struct str packed = { 0 };
    size_t len = protobuf_c_message_get_packed_size(reply);

    str_reserve(&packed, len);
    protobuf_c_message_pack(reply, (uint8_t *)packed.data);
    packed.len = len;
    keep_packed(ask, &packed);
}

static void keep_error(struct ctl_ask *ask, const struct err *err)
{
    struct str *out = ask->ctx;

    str_add_char(out, 'e');
    str_add_len(out, err, sizeof(*err));
}

void ctl_forked_work(struct ctl_forked *aside, struct str *out)
{
    static const struct ctl_ask_ops ops = { .reply = keep_reply,
                                            .reply_packed = keep_packed,
                                            .fail = keep_error };
    struct ctl *ctl = aside->ctl;
    struct ctl_ask ask = {
        .who = aside->ask->who, .arena = aside->ask->arena, .ops = &ops, .ctx = out
    };

    ctl->asks.is_forked = true;
    sched_take_time(ctl->sched);
    aside->handler(ctl, &ask, aside->request);
}

/* ---- in the parent ---- */

void ctl_forked_drop(struct ctl_forked *aside)
{
    struct ctl *ctl = aside->ctl;

    for (size_t i = 0; i < ctl->asks.forked.len; i++) {
        if (ctl->asks.forked.items[i] == aside) {
            vec_remove(&ctl->asks.forked, i);
            break;
        }
    }
    free(aside);
}

void ctl_forked_done(struct ctl_forked *aside, struct span said)
{
    struct ctl *ctl = aside->ctl;
    struct ctl_forked copy = *aside;
    struct err err;

    ctl_forked_drop(aside);
    if (!copy.ask)
        return;
    if (said.len && *said.ptr == 'a') {
        struct str packed = { 0 };
        str_add_len(&packed, said.ptr + 1, said.len - 1);
        copy.ask->ops->reply_packed(copy.ask, &packed);
    } else if (said.len == 1 + sizeof(err) && *said.ptr == 'e') {
        memcpy(&err, said.ptr + 1, sizeof(err));
        copy.ask->ops->fail(copy.ask, &err);
    } else { /* (2) */
        ctl->asks.is_forked = true;
        copy.handler(ctl, copy.ask, copy.request);
        ctl->asks.is_forked = false;
    }
}

bool ctl_forked_is_wanted(const struct ctl_forked *aside)
{
    return aside->ask;
}

bool ctl_forked(struct ctl *ctl, struct ctl_ask *ask, ctl_handler *handler,
                const ProtobufCMessage *request, size_t components)
{
    if (ctl->asks.is_forked || !ctl->io.aside || !sched_is_long_to_ask(ctl->sched, components))
        return false;
    if (ctl->asks.forked.len >= MOST_WAITING) {
        ctl_fail(ask, ERR_TOO_MANY);
        return true;
    }
    struct ctl_forked *aside = NEW(struct ctl_forked);
    *aside = (struct ctl_forked){ .ctl = ctl, .ask = ask, .handler = handler, .request = request };
    vec_push(&ctl->asks.forked, aside);
    ctl->io.aside(ctl->io.ctx, aside);
    return true;
}

void ctl_forked_gone(struct ctl *ctl, const struct ctl_ask *ask)
{
    vec_each (struct ctl_forked *, aside, &ctl->asks.forked) {
        if ((*aside)->ask == ask)
            (*aside)->ask = NULL;
    }
}
