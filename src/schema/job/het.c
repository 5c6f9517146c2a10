/* SPDX-License-Identifier: Apache-2.0 */
/*
 * het.c - the components of a heterogeneous job: which variables describe each, which ones a list names
 */
#include "schema/het.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/str.h"

const char *const het_names[] = {
    "SLURM_CPUS_PER_GPU",
    "SLURM_CPUS_PER_TASK",
    "SLURM_DISTRIBUTION",
    "SLURM_DIST_PLANESIZE",
    "SLURM_GPUS",
    "SLURM_HINT",
    "SLURM_JOB_ACCOUNT",
    "SLURM_JOB_CPUS_PER_NODE",
    "SLURM_JOB_ID",
    "SLURM_JOB_NAME",
    "SLURM_JOB_NODELIST",
    "SLURM_JOB_NUM_NODES",
    "SLURM_JOB_PARTITION",
    "SLURM_JOB_QOS",
    "SLURM_JOB_RESERVATION",
    "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_GPU",
    "SLURM_MEM_PER_NODE",
    "SLURM_NPROCS",
    "SLURM_NTASKS",
    "SLURM_NTASKS_PER_CORE",
    "SLURM_NTASKS_PER_GPU",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_NTASKS_PER_SOCKET",
    "SLURM_OVERCOMMIT",
    "SLURM_TASKS_PER_NODE",
    "SLURM_THREADS_PER_CORE",
    "SLURM_TRES_PER_TASK",
};
const size_t het_name_count = ARRAY_LEN(het_names);

bool het_has_name(const char *name, size_t len)
{
    for (size_t i = 0; i < het_name_count; i++) {
        if (strlen(het_names[i]) == len && memcmp(het_names[i], name, len) == 0)
            return true;
    }
    return false;
}

/* "3" or "3-5" */
static bool read_range(const char *text, struct bitset *out)
{
    CLEANUP(freep) char *low = mem_strdup(text);
    char *dash = strchr(low, '-'), *high = low;
    uint64_t first, last;

    if (dash) {
        *dash = '\0';
        high = dash + 1;
    }
    if (!str_to_u64(low, LIMIT_HET_COMPONENTS - 1, &first) ||
        !str_to_u64(high, LIMIT_HET_COMPONENTS - 1, &last) || last < first)
        return false;
    bitset_add_range(out, first, last);
    return true;
}

int het_read_list(const char *text, struct bitset *out, struct err *err)
{
    const char *cursor = text;
    struct span word;

    bitset_init(out, LIMIT_HET_COMPONENTS);
    while (str_next(&cursor, ",", &word)) {
        CLEANUP(freep) char *one = mem_strndup(word.ptr, word.len);
        if (!read_range(str_trim(one), out))
            return err_set(err, ERR_INVALID, "Invalid --het-group specification: %s", text);
    }
    if (bitset_is_empty(out))
        return err_set(err, ERR_INVALID, "Invalid --het-group specification: %s", text);
    return 0;
}
