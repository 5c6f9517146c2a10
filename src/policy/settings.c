/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.c - what a configuration says of priorities and ageing outside sections
 */
#include <string.h>

#include "policy/accounts.h"

void priority_read(struct accounts *accounts, const Config *config)
{
    static const struct {
        const char *word;
        unsigned flags;
    } rows[] = {
        { "ACCRUE_ALWAYS", PRIO_ACCRUE_ALWAYS },
        { "CALCULATE_RUNNING", PRIO_RUNNING },
        { "DEPTH_OBLIVIOUS", PRIO_DEPTH_OBLIVIOUS },
        { "INCR_ONLY", PRIO_INCR_ONLY },
        { "NO_FAIR_TREE", PRIO_NO_FAIR_TREE },
        { "MAX_TRES", PRIO_MAX_TRES },
        { "MAX_TRES_GRES", PRIO_MAX_TRES_GRES },
        { "NO_NORMAL_ALL", PRIO_RAW_ASSOC | PRIO_RAW_PART | PRIO_RAW_QOS | PRIO_RAW_TRES },
        { "NO_NORMAL_ASSOC", PRIO_RAW_ASSOC },
        { "NO_NORMAL_PART", PRIO_RAW_PART },
        { "NO_NORMAL_QOS", PRIO_RAW_QOS },
        { "NO_NORMAL_TRES", PRIO_RAW_TRES },
        { "SMALL_RELATIVE_TO_TIME", PRIO_SIZE_BY_TIME },
    };
    const char *text = config->priority_flags;
    struct span word;
    uint32_t has;

    accounts->flags = 0;
    while (text && str_next(&text, ", ", &word)) {
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            if (strlen(rows[i].word) == word.len &&
                strncasecmp(rows[i].word, word.ptr, word.len) == 0)
                accounts->flags |= rows[i].flags;
        }
    }
    tres_weights(accounts, config->weight_tres, accounts->weight_tres, &has);
    accounts->has_weight_tres = has != 0;
    accounts->basic =
        (config->priority_type && str_ieq(config->priority_type, "basic")) ||
        (!config->weight_age && !config->weight_fairshare && !config->weight_job_size &&
         !config->weight_partition && !config->weight_qos && !config->weight_assoc && !has);
}

void accrue_read(struct accounts *accounts)
{
    accounts->accrue_limited = accounts->accrue_bounds && accounts->enforce & ENFORCE_LIMITS &&
                               !(accounts->flags & PRIO_ACCRUE_ALWAYS);
}
