/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_paused.c - has this process been stopped?
 *
 * A machine that is suspended, or a process that is stopped, goes on as if nothing had happened. Others
 * went on meanwhile.
 *
 * (1) Something happens here at least every BEAT_US, if it is only our own timer.
 * (2) What waited in our sockets while we stood still may have been asked again elsewhere, done, and
 *     forgotten: request ids are remembered for ten minutes. So nothing that changes anything is taken for
 *     LATE_US after a long stop, which is when all that waited is read. Who still waits asks again.
 */
#include "spurctld/ctl/ctl_priv.h"
#include "sys/log.h"

static const int64_t BEAT_US = 15000000;
static const int64_t STOPPED_US =
    45000000; /* clients ask again for a minute, most of them for three seconds */
static const int64_t LATE_US = 2000000; /* less than that */

void ctl_arm_paused(struct ctl *ctl)
{
    ctl->io.timer(ctl->io.ctx, CTL_TIMER_AWAKE, ctl_now(ctl) + BEAT_US);
}

void ctl_stopped_for(struct ctl *ctl, int64_t us)
{
    if (us < STOPPED_US)
        return;
    log_warn("ctl.stopped", "ms=%lld", (long long)(us / 1000));
    ctl->nodes.late_until_us = ctl_mono(ctl) + LATE_US;
}

void ctl_paused(struct ctl *ctl)
{
    int64_t now = ctl_mono(ctl), before = ctl->nodes.awake_us;

    ctl->nodes.awake_us = now;
    ctl_stopped_for(ctl, now - before);
    ctl_nodes_stalled(ctl, now, before);
}

int ctl_check_late(const struct ctl *ctl, const Command *command, struct err *err)
{
    if (!command->has_request_id || ctl_mono(ctl) >= ctl->nodes.late_until_us) /* (2) */
        return 0;
    return err_set(err, ERR_NOT_LEADER, "this controller was stopped for a while; ask again");
}
