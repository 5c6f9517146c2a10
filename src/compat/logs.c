// SPDX-License-Identifier: Apache-2.0
/*
 * logs.c - the log functions that clients and plugins call
 *
 * Lines go to standard error as Slurm's commands write them. SLURM_DEBUG (a number or a word) says from which level
 * on; by default errors and information.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "compat/compat.h"

enum level {
    LEVEL_QUIET,
    LEVEL_FATAL,
    LEVEL_ERROR,
    LEVEL_INFO,
    LEVEL_VERBOSE,
    LEVEL_DEBUG,
    LEVEL_DEBUG2,
    LEVEL_DEBUG3
};

static const struct {
    const char *word;
    enum level level;
    const char *before;
} levels[] = {
    { "quiet", LEVEL_QUIET, "" },           { "fatal", LEVEL_FATAL, "fatal: " },
    { "error", LEVEL_ERROR, "error: " },    { "info", LEVEL_INFO, "" },
    { "verbose", LEVEL_VERBOSE, "" },       { "debug", LEVEL_DEBUG, "debug:  " },
    { "debug2", LEVEL_DEBUG2, "debug2: " }, { "debug3", LEVEL_DEBUG3, "debug3: " },
};

int slurm_get_log_level(void)
{
    const char *said = getenv("SLURM_DEBUG");

    for (size_t i = 0; said && i < ARRAY_LEN(levels); i++) {
        if (strcasecmp(levels[i].word, said) == 0)
            return (int)levels[i].level;
    }
    /* 1 is verbose, as a number of -v */
    return said && *said >= '0' && *said <= '9' ? LEVEL_INFO + atoi(said) : LEVEL_INFO;
}

PRINTF(2, 0) static void write_line(enum level level, const char *format, va_list args)
{
    char line[4096];
    int saved = errno;

    if ((int)level > slurm_get_log_level())
        return;
    vsnprintf(line, sizeof(line), format, args);
    fprintf(stderr, "%s: %s%s\n", program_invocation_short_name, levels[level].before, line);
    errno = saved;
}

#define LOG_FUNCTION(name, level)        \
    void name(const char *format, ...)   \
    {                                    \
        va_list args;                    \
                                         \
        va_start(args, format);          \
        write_line(level, format, args); \
        va_end(args);                    \
    }

LOG_FUNCTION(slurm_error, LEVEL_ERROR)
LOG_FUNCTION(slurm_info, LEVEL_INFO)
LOG_FUNCTION(slurm_verbose, LEVEL_VERBOSE)
LOG_FUNCTION(slurm_debug, LEVEL_DEBUG)
LOG_FUNCTION(slurm_debug2, LEVEL_DEBUG2)
LOG_FUNCTION(slurm_debug3, LEVEL_DEBUG3)
LOG_FUNCTION(slurm_spank_log, LEVEL_INFO)

void slurm_log_var(const log_level_t level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    write_line(MIN((enum level)level, LEVEL_DEBUG3), format, args);
    va_end(args);
}
