/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - one line per event: a stable dotted name, then key=value
 *
 *     log_info("job.ended", "job=%u attempt=%u name=%s", id, attempt, name);
 *     2026-01-15T10:00:00.123456 info job.ended job=42 attempt=1 name="a b"
 *
 * A %s right after '=' is a value: it is quoted when it is empty or holds a blank, a quote or '='.
 * Control bytes are shown as \n, \x1b wherever they come from, so a line is always one line. Each
 * event name may come LOG_EVENTS_PER_SECOND times a second at error…info; what is left out is
 * counted and said. (The durable log of the cluster's state is src/log, another thing.)
 *
 * Callable from any thread, not from a signal handler. Formats understood: %d %i %u %x %X %o %c %s
 * %p %f %g %e with flags, width, precision (* too), hh h l ll z j t; and %%.
 */
#ifndef SYS_LOG_H
#define SYS_LOG_H

#include <stdarg.h>

#include "base/err.h"
#include "base/str.h"

/* Slurm's levels by its words, with warn between error and info. */
enum log_level {
    LOG_LEVEL_QUIET,
    LOG_LEVEL_FATAL,
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARN,
    LOG_LEVEL_INFO,
    LOG_LEVEL_VERBOSE,
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_DEBUG2,
    LOG_LEVEL_DEBUG3,
    LOG_LEVEL_DEBUG4,
    LOG_LEVEL_DEBUG5,
    LOG_LEVEL_COUNT
};

enum { LOG_EVENTS_PER_SECOND = 1000, LOG_LINE_BYTES = 8192 };

struct log_outputs {
    const char *name; /* the program, for journald */
    const char *file; /* NULL: no file */
    bool to_stderr;
    bool to_journald;
    enum log_level stderr_level; /* at most this much detail goes to each */
    enum log_level file_level;
    enum log_level journald_level;
};

/* Before it is called, stderr gets info and above. May be called again. */
int log_setup(const struct log_outputs *config, struct err *err);
void log_shutdown(void);

/* Opens the file again by its name: after logrotate, on SIGHUP. Lines go on meanwhile. */
int log_reopen(struct err *err);

/* Changes the detail of all open outputs at run time (scontrol setdebug). */
void log_set_level(enum log_level level);
enum log_level log_get_level(void); /* the most detail that any output takes */

/* "debug2", "info", "6"; false when it is no level. */
bool log_level_parse(const char *text, enum log_level *out);
const char *log_level_name(enum log_level level);

/* Every line goes here instead: tests and simulations. NULL ends it. */
typedef void (*log_sink_fn)(void *ctx, enum log_level level, const char *event, const char *text);
void log_use(log_sink_fn sink, void *ctx);

/* True when a line of this level would go anywhere; guards costly arguments. */
bool log_wants(enum log_level level);

void log_write(enum log_level level, const char *event, const char *fmt, ...) PRINTF(3, 4);

/* The text after the event name; log_write uses it. Bounded by LOG_LINE_BYTES. */
void log_format(struct str *out, const char *fmt, va_list args);
/* One value as log_format writes it after '='. */
void log_add_value(struct str *out, const char *value, size_t len);

#define log_at(level, event, ...)                     \
    do {                                              \
        if (log_wants(level))                         \
            log_write((level), (event), __VA_ARGS__); \
    } while (0)

#define log_fatal(event, ...)   log_at(LOG_LEVEL_FATAL, (event), __VA_ARGS__)
#define log_error(event, ...)   log_at(LOG_LEVEL_ERROR, (event), __VA_ARGS__)
#define log_warn(event, ...)    log_at(LOG_LEVEL_WARN, (event), __VA_ARGS__)
#define log_info(event, ...)    log_at(LOG_LEVEL_INFO, (event), __VA_ARGS__)
#define log_verbose(event, ...) log_at(LOG_LEVEL_VERBOSE, (event), __VA_ARGS__)
#define log_debug(event, ...)   log_at(LOG_LEVEL_DEBUG, (event), __VA_ARGS__)
#define log_debug2(event, ...)  log_at(LOG_LEVEL_DEBUG2, (event), __VA_ARGS__)
#define log_debug3(event, ...)  log_at(LOG_LEVEL_DEBUG3, (event), __VA_ARGS__)

#endif
