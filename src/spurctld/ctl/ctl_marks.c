/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_marks.c - whether other controllers have the same state, and records that were damaged
 *
 * agree.h compares; here is what follows from it.
 *
 * (1) Who may lead has applied everything that is committed. It asks the others before it does: it leads only
 *     when everybody whom it reaches has the same state, or a majority has.
 * (2) Who is outvoted, or finds a damaged record, reads its state again: a snapshot that the others had too, and
 *     the log. Where two differ and nobody can say who is right, both do.
 * (3) Who has read it again and differs still does not lead any more. One that is outvoted tries again after a while,
 *     longer each time. If there is no majority, nobody writes until an administrator says who is right (ctl_trust()).
 * (4) A snapshot is announced, and entries go because of it, when a majority has confirmed the state that it holds.
 * (5) All records are compared with their hashes within REHASH_S, some of them every second, in slices.
 */
#include <string.h>

#include "spurctld/ctl/ctl_priv.h"
#include "sys/log.h"

#define MS INT64_C(1000)

enum {
    REHASH_S = 500, /* and what is put off: within ten minutes */
    REHASH_LEAST = 64,
    REHASH_CHUNK = 32,
    REHASH_SLICE_US = 500,
    REHASH_BUSY_US = 2000,
    REHASH_SOON_US = 5000,
    RELOADS_COUNTED = 10, /* for damage: a defect of ours must not make us begin again and again */
    ALONE_MS = 10000,     /* after reading again: the others may be doing the same */
};

static int64_t now_ms(const struct ctl *ctl)
{
    return ctl_mono(ctl) / MS;
}

static bool is_alone(const struct ctl *ctl)
{
    return ctl->marks.agree.controllers < 2;
}

bool ctl_is_confirmed(const struct ctl *ctl, uint64_t index)
{
    return is_alone(ctl) || index <= ctl->marks.agree.agreed;
}

bool ctl_is_in_doubt(const struct ctl *ctl)
{
    return ctl->marks.in_doubt || ctl->marks.reloading;
}

/* (4) */
static void tell_log(struct ctl *ctl)
{
    log_confirmed(ctl->log, is_alone(ctl) ? UINT64_MAX : ctl->marks.agree.agreed);
}

void ctl_marks_init(struct ctl *ctl, const struct ctl_options *options)
{
    ctl->marks.begin_us = ctl_mono(ctl);
    ctl->marks.reloaded = options->reloaded;
    ctl->marks.reloads = options->reloads;
    agree_init(&ctl->marks.agree, MAX(options->controllers, 1u));
    tell_log(ctl);
}

/* ---- what follows ---- */

static void set_doubt(struct ctl *ctl, bool doubt)
{
    if (ctl->marks.in_doubt == doubt)
        return;
    ctl->marks.in_doubt = doubt;
    log_doubt(ctl->log, doubt);
    if (doubt)
        log_resign(ctl->log);
}

/* (2) */
static void reload(struct ctl *ctl, const char *why)
{
    uint64_t agreed = is_alone(ctl) ? UINT64_MAX : ctl->marks.agree.agreed;

    log_error("state.reload", "index=%llu agreed=%llu text=%s",
              (unsigned long long)state_head(ctl->state).index, (unsigned long long)agreed, why);
    ctl->marks.reloading = true;
    if (!is_alone(ctl))
        set_doubt(ctl, true);
    ctl->io.reload(ctl->io.ctx, agreed, why);
}

/* Since the last time we have been where we were, and the others agreed. */
static bool may_reload(const struct ctl *ctl)
{
    return ctl->io.reload &&
           (!ctl->marks.reloaded || ctl->marks.agree.agreed >= ctl->marks.reloaded);
}

/* After a second, two, four, … of this life, which is at most a quarter of an hour. */
static bool may_reload_again(const struct ctl *ctl)
{
    int64_t wait_us = INT64_C(1000000) << MIN(ctl->marks.reloads, (unsigned)RELOADS_COUNTED);

    return ctl->io.reload &&
           (!ctl->marks.reloads || ctl_mono(ctl) - ctl->marks.begin_us >= wait_us);
}

static void differs(struct ctl *ctl, const char *why)
{
    CLEANUP(str_done) struct str names = { 0 };
    CLEANUP(freep) char *text = NULL;

    agree_names(&ctl->marks.agree, now_ms(ctl), &names);
    text = mem_printf("%s: %s", why, str_text(&names));
    if (may_reload(ctl) || (ctl->marks.wrong && may_reload_again(ctl))) {
        reload(ctl, text);
        return;
    }
    if (!ctl->marks.in_doubt) /* (3) */
        log_error(
            "state.differs",
            "index=%llu the state was read again and differs still; this controller does not "
            "lead until it is the same, or 'spur controller trust NAME' says who is right: %s",
            (unsigned long long)state_head(ctl->state).index, text);
    set_doubt(ctl, true);
}

static void same_again(struct ctl *ctl)
{
    if (ctl->marks.in_doubt || ctl->marks.split_us)
        log_info("state.agrees", "index=%llu agreed=%llu",
                 (unsigned long long)state_head(ctl->state).index,
                 (unsigned long long)ctl->marks.agree.agreed);
    ctl->marks.split_us = 0;
    ctl->marks.wrong = false;
    set_doubt(ctl, false);
}

static void split(struct ctl *ctl)
{
    CLEANUP(str_done) struct str names = { 0 };

    if (!ctl->marks.split_us) {
        ctl->marks.split_us = ctl_mono(ctl);
        agree_names(&ctl->marks.agree, now_ms(ctl), &names);
        log_warn("state.split", "index=%llu differs=%s",
                 (unsigned long long)state_head(ctl->state).index, str_text(&names));
    } else if (ctl_mono(ctl) - ctl->marks.split_us > AGREE_SPLIT_MS * MS) {
        differs(ctl, "another controller has another state, and no majority says which is right");
    }
}

static void look(struct ctl *ctl)
{
    uint64_t before = ctl->marks.agree.agreed;

    if (ctl->marks.reloading || ctl->marks.damaged)
        return;
    switch (agree_look(&ctl->marks.agree, ctl->state, now_ms(ctl))) {
    case AGREE_CONFIRMED:
        same_again(ctl);
        break;
    case AGREE_UNKNOWN:
        ctl->marks.split_us = 0;
        break;
    case AGREE_SPLIT:
        ctl->marks.wrong = false;
        split(ctl);
        break;
    case AGREE_OUTVOTED:
        ctl->marks.wrong = true;
        differs(ctl, "a majority of the controllers has another state");
        break;
    }
    if (ctl->marks.agree.agreed != before)
        tell_log(ctl);
}

void ctl_set_controllers(struct ctl *ctl, size_t count)
{
    agree_init(&ctl->marks.agree, MAX(count, (size_t)1));
    look(ctl);
    tell_log(ctl);
}

void ctl_marks_say(const struct ctl *ctl, struct agree_said *out)
{
    agree_say(ctl->state, ctl->marks.wrong, out);
    out->trusted = ctl->marks.agree.trusted;
}

void ctl_marks_heard(struct ctl *ctl, const char *peer, const struct agree_said *said)
{
    agree_heard(&ctl->marks.agree, ctl->state, peer, said, now_ms(ctl));
    look(ctl);
}

void ctl_trust(struct ctl *ctl)
{
    if (is_alone(ctl))
        return;
    log_warn("state.trusted", "index=%llu an administrator says that this state is right",
             (unsigned long long)state_head(ctl->state).index);
    agree_trust(&ctl->marks.agree);
    look(ctl);
}

/* ---- (1) ---- */

void ctl_lead(struct ctl *ctl)
{
    if (is_alone(ctl) || !ctl->io.ask_marks) {
        ctl_propose_lead(ctl);
        return;
    }
    ctl->marks.asked = true;
    ctl->io.ask_marks(ctl->io.ctx);
}

/* Both read again, and the other one is not back yet: whether it still differs is not known. */
static bool should_wait(struct ctl *ctl)
{
    return ctl->marks.reloaded && ctl->marks.agree.agreed < ctl->marks.reloaded &&
           ctl_mono(ctl) - ctl->marks.begin_us < ALONE_MS * MS &&
           agree_look(&ctl->marks.agree, ctl->state, now_ms(ctl)) == AGREE_UNKNOWN;
}

void ctl_marks_asked(struct ctl *ctl)
{
    CLEANUP(str_done) struct str names = { 0 };

    if (!ctl->marks.asked)
        return;
    ctl->marks.asked = false;
    if (!ctl->must_lead || ctl->lead_proposed)
        return;
    if (!ctl->marks.reloading && agree_may_lead(&ctl->marks.agree, ctl->state, now_ms(ctl)) &&
        !should_wait(ctl)) {
        ctl_propose_lead(ctl);
        ctl_flush(ctl);
        return;
    }
    agree_names(&ctl->marks.agree, now_ms(ctl), &names);
    log_warn("ctl.resigns",
             "index=%llu another controller has another state, or has yet to say: %s",
             (unsigned long long)state_head(ctl->state).index, str_text(&names));
    log_resign(ctl->log);
    look(ctl);
}

/* ---- (5) ---- */

void ctl_is_damaged(struct ctl *ctl, const struct err *what)
{
    if (ctl->marks.reloading)
        return;
    ctl->marks.wrong = true;
    if (may_reload_again(ctl)) {
        reload(ctl, what->text);
        return;
    }
    if (!ctl->marks.damaged)
        log_error("state.damaged", "index=%llu text=%s",
                  (unsigned long long)state_head(ctl->state).index, what->text);
    ctl->marks.damaged = true;
    if (!is_alone(ctl))
        set_doubt(ctl, true);
}

void ctl_rehash_arm(struct ctl *ctl)
{
    ctl->io.timer(ctl->io.ctx, CTL_TIMER_REHASH,
                  ctl_now(ctl) + (ctl->marks.rehash_left ? REHASH_SOON_US : INT64_C(1000000)));
}

void ctl_rehash_timer(struct ctl *ctl)
{
    int64_t begin = ctl_mono(ctl);
    struct err err = { 0 };
    int code = 0;

    if (!ctl->marks.rehash_left)
        ctl->marks.rehash_left = core_rehash_records(ctl->state) / REHASH_S + REHASH_LEAST;
    while (ctl->marks.rehash_left && code == 0 && ctl_busy_us(ctl) < REHASH_BUSY_US) {
        size_t some = MIN(ctl->marks.rehash_left, (size_t)REHASH_CHUNK);
        code = core_rehash(ctl->state, &ctl->marks.rehash, some, &err);
        ctl->marks.rehash_left -= some;
        if (ctl_mono(ctl) - begin > REHASH_SLICE_US)
            break;
    }
    if (code < 0)
        ctl_is_damaged(ctl, &err);
    ctl_rehash_arm(ctl);
}
