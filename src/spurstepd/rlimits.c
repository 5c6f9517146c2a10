/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rlimits.c - resource limits by the names they travel under
 */
#include "spurstepd/rlimits.h"

#include <string.h>
#include <sys/resource.h>

#include "base/util.h"

static const struct {
    const char *name;
    int number;
} rlimits[] = {
    { "AS", RLIMIT_AS },         { "CORE", RLIMIT_CORE },
    { "CPU", RLIMIT_CPU },       { "DATA", RLIMIT_DATA },
    { "FSIZE", RLIMIT_FSIZE },   { "MEMLOCK", RLIMIT_MEMLOCK },
    { "NOFILE", RLIMIT_NOFILE }, { "NPROC", RLIMIT_NPROC },
    { "RSS", RLIMIT_RSS },       { "STACK", RLIMIT_STACK },
    { "LOCKS", RLIMIT_LOCKS },   { "MSGQUEUE", RLIMIT_MSGQUEUE },
    { "NICE", RLIMIT_NICE },     { "RTPRIO", RLIMIT_RTPRIO },
    { "RTTIME", RLIMIT_RTTIME }, { "SIGPENDING", RLIMIT_SIGPENDING },
};

const char *rlimits_name(size_t index)
{
    return index < MIN(ARRAY_LEN(rlimits), (size_t)RLIMITS_MAX) ? rlimits[index].name : NULL;
}

int rlimits_number(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_LEN(rlimits); i++) {
        if (strcmp(rlimits[i].name, name) == 0)
            return rlimits[i].number;
    }
    return -1;
}
