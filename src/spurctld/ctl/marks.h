/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.h - whether other controllers have the same state, and records that were damaged: ctl_marks.c
 */
#ifndef SPURCTLD_CTL_MARKS_H
#define SPURCTLD_CTL_MARKS_H

#include "spurctld/ctl/agree.h"
#include "spurctld/ctl/ctl.h"

struct ctl_marks {
    struct agree agree;
    bool asked;        /* we may lead, and others have yet to say what they have */
    bool in_doubt;     /* we do not lead */
    bool wrong;        /* and know why: outvoted, or damaged */
    bool damaged;      /* it is to be read again in a while */
    bool reloading;    /* this process is about to read its state again */
    uint64_t reloaded; /* see ctl_options */
    unsigned reloads;
    int64_t begin_us; /* monotonic */
    int64_t split_us; /* since when somebody differs and no majority agrees; 0: not */
    struct rehash rehash;
    size_t rehash_left; /* of this second */
};

void ctl_marks_init(struct ctl *ctl, const struct ctl_options *options); /* before the log starts */
/* We may: asks the others what they have, and leads when they have the same. */
void ctl_lead(struct ctl *ctl);
void ctl_rehash_arm(struct ctl *ctl);
void ctl_rehash_timer(struct ctl *ctl);

#endif
