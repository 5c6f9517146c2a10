/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs.c - what plugins say
 *
 * By default lines go to standard error as Slurm's commands write them; SLURM_DEBUG (a number of -v) says from which
 * level on. The supervisor of a step has them go to the user instead (spank_host_log()).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "spank/host_priv.h"

static spank_log_fn *sink;
static void *sink_ctx;

static const char *prefix(enum spank_log_level level)
{
    switch (level) {
    case SPANK_LOG_ERROR:
        return "error: ";
    case SPANK_LOG_DEBUG:
        return "debug:  ";
    case SPANK_LOG_DEBUG2:
        return "debug2: ";
    case SPANK_LOG_DEBUG3:
        return "debug3: ";
    default:
        return "";
    }
}

static void to_stderr(void *ctx, enum spank_log_level level, const char *text)
{
    const char *verbose = getenv("SLURM_DEBUG");

    (void)ctx;
    if (level == SPANK_LOG_PLAIN)
        fprintf(stderr, "%s\n", text);
    else if ((int)level <= SPANK_LOG_INFO + (verbose ? atoi(verbose) : 0))
        fprintf(stderr, "%s: %s%s\n", program_invocation_short_name, prefix(level), text);
}

void spank_host_log(spank_log_fn *fn, void *ctx)
{
    sink = fn;
    sink_ctx = ctx;
}

PRINTF(2, 0) static void write_line(enum spank_log_level level, const char *format, va_list args)
{
    char text[4096];
    int saved = errno;

    errno = saved; /* for %m */
    vsnprintf(text, sizeof(text), format, args);
    (sink ? sink : to_stderr)(sink_ctx, level, text);
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

LOG_FUNCTION(slurm_error, SPANK_LOG_ERROR)
LOG_FUNCTION(slurm_info, SPANK_LOG_INFO)
LOG_FUNCTION(slurm_verbose, SPANK_LOG_VERBOSE)
LOG_FUNCTION(slurm_debug, SPANK_LOG_DEBUG)
LOG_FUNCTION(slurm_debug2, SPANK_LOG_DEBUG2)
LOG_FUNCTION(slurm_debug3, SPANK_LOG_DEBUG3)
LOG_FUNCTION(slurm_spank_log, SPANK_LOG_PLAIN)

void spank_log(enum spank_log_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    write_line(level, format, args);
    va_end(args);
}
