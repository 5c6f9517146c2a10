/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feature_level.h - the feature levels that this build knows
 *
 * Controllers and nodes tell each other LEVEL_NEWEST. core/level.h says what a level is for and how one is added.
 */
#ifndef BASE_FEATURE_LEVEL_H
#define BASE_FEATURE_LEVEL_H

#include <stdint.h>

enum feature_level {
    LEVEL_FIRST = 1,     /* all that was written before there were levels */
    LEVEL_LEVELS = 2,    /* from here on unknown fields stop a replica */
    LEVEL_SEALS = 3,     /* entries in etcd carry the seal of a controller (log/etcd_seal.c) */
    LEVEL_ACCOUNTS = 4,  /* spurdbd may own accounts */
    LEVEL_NODE_KEYS = 5, /* keys of nodes that an administrator had forgotten */
    LEVEL_REVOKE = 6,    /* tokens of a user that are refused */
    LEVEL_JOURNAL = 7,   /* the journal tells of nodes, capacity, reservations, steps that begin */
    LEVEL_TRIGGERS = 8,  /* strigger */
    LEVEL_CRON = 9,      /* scrontab */
    LEVEL_SPANK = 10,    /* jobs carry what SPANK plugins say to prolog and epilog */

    LEVEL_NEWEST = LEVEL_SPANK, /* that this build knows */
    LEVEL_UNUSED = INT32_MAX,   /* of a field that this build reads and does not write yet */
};

#endif
