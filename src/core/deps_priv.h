/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deps_priv.h - a dependency: a list of items, of which all or one must come true
 */
#ifndef CORE_DEPS_PRIV_H
#define CORE_DEPS_PRIV_H

#include "core/state_priv.h"

enum dep_type {
    DEP_AFTER,
    DEP_AFTER_ANY,
    DEP_AFTER_BURST_BUFFER,
    DEP_AFTER_CORR,
    DEP_AFTER_NOT_OK,
    DEP_AFTER_OK,
    DEP_SINGLETON,
};

struct dep {
    uint8_t type;
    bool failed;
    bool array;      /* all tasks of one; written "12_*" */
    uint32_t job_id; /* 0 for singleton */
    uint32_t task;   /* NO_TASK: the whole job */
    uint32_t minutes;
};

struct deps {
    bool any; /* '?' */
    size_t count;
    struct dep items[];
};

/* Reads what a person wrote, or what deps_format() did; NULL when it is no dependency. */
struct deps *deps_read(const char *text);

#endif
