/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - one line per event: a stable dotted name, then key=value
 *
 * (1) A line reaches each output by one write(2) or one datagram, so threads do not mix lines.
 * (2) An output that fails loses the line and nothing else: logging never stops the program.
 * (3) The file keeps its descriptor number when it is opened again (dup3), so a line written at
 *     that moment goes to the old or the new file, never nowhere.
 */
#include "sys/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "sys/clock.h"
#include "sys/files.h"

static const struct {
    const char *name;
    int syslog; /* journald's PRIORITY */
} levels[LOG_LEVEL_COUNT] = {
    [LOG_LEVEL_QUIET] = { "quiet", 0 },   [LOG_LEVEL_FATAL] = { "fatal", 2 },
    [LOG_LEVEL_ERROR] = { "error", 3 },   [LOG_LEVEL_WARN] = { "warn", 4 },
    [LOG_LEVEL_INFO] = { "info", 6 },     [LOG_LEVEL_VERBOSE] = { "verbose", 6 },
    [LOG_LEVEL_DEBUG] = { "debug", 7 },   [LOG_LEVEL_DEBUG2] = { "debug2", 7 },
    [LOG_LEVEL_DEBUG3] = { "debug3", 7 }, [LOG_LEVEL_DEBUG4] = { "debug4", 7 },
    [LOG_LEVEL_DEBUG5] = { "debug5", 7 },
};

enum output { TO_STDERR, TO_FILE, TO_JOURNALD, OUTPUTS };

static struct {
    int fd;
    enum log_level level; /* QUIET: closed */
} outputs[OUTPUTS] = {
    [TO_STDERR] = { STDERR_FILENO, LOG_LEVEL_INFO },
    [TO_FILE] = { -1, LOG_LEVEL_QUIET },
    [TO_JOURNALD] = { -1, LOG_LEVEL_QUIET },
};
static enum log_level most = LOG_LEVEL_INFO;
static char *file_path, *program_name;
static log_sink_fn sink;
static void *sink_ctx;

static pthread_mutex_t rate_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rate {
    char event[48]; /* the first that came; two that share a slot share its allowance */
    int64_t second;
    unsigned count, dropped;
} rates[256];

static void find_most(void)
{
    most = LOG_LEVEL_QUIET;
    for (int i = 0; i < OUTPUTS; i++)
        most = MAX(most, outputs[i].level);
}

bool log_wants(enum log_level level)
{
    return level <= most || sink;
}

enum log_level log_get_level(void)
{
    return most;
}

void log_set_level(enum log_level level)
{
    for (int i = 0; i < OUTPUTS; i++) {
        if (outputs[i].level != LOG_LEVEL_QUIET)
            outputs[i].level = level;
    }
    find_most();
}

const char *log_level_name(enum log_level level)
{
    return (unsigned)level < LOG_LEVEL_COUNT ? levels[level].name : "?";
}

bool log_level_parse(const char *text, enum log_level *out)
{
    /* Slurm's numbers leave no place for warn: 3 is info, 4 verbose, 5 debug and so on. */
    static const enum log_level by_number[] = {
        LOG_LEVEL_QUIET, LOG_LEVEL_FATAL,  LOG_LEVEL_ERROR,  LOG_LEVEL_INFO,   LOG_LEVEL_VERBOSE,
        LOG_LEVEL_DEBUG, LOG_LEVEL_DEBUG2, LOG_LEVEL_DEBUG3, LOG_LEVEL_DEBUG4, LOG_LEVEL_DEBUG5,
    };
    uint64_t number;

    if (str_to_u64(text, ARRAY_LEN(by_number) - 1, &number)) {
        *out = by_number[number];
        return true;
    }
    for (int i = 0; i < LOG_LEVEL_COUNT; i++) {
        if (str_ieq(text, levels[i].name)) {
            *out = (enum log_level)i;
            return true;
        }
    }
    return false;
}

void log_use(log_sink_fn fn, void *ctx)
{
    sink = fn;
    sink_ctx = ctx;
}

static int open_file(const char *path, struct err *err)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);

    return fd < 0 ? err_errno(err, errno, "log file %s", path) : fd;
}

int log_reopen(struct err *err)
{
    if (!file_path || outputs[TO_FILE].fd < 0)
        return 0;
    CLEANUP(file_close) int fd = open_file(file_path, err);
    if (fd < 0)
        return fd;
    if (dup3(fd, outputs[TO_FILE].fd, O_CLOEXEC) < 0) /* (3) */
        return err_errno(err, errno, "log file %s", file_path);
    return 0;
}

static int open_journald(struct err *err)
{
    static const struct sockaddr_un where = { AF_UNIX, "/run/systemd/journal/socket" };
    const char *other = getenv("SPUR_JOURNAL_SOCKET"); /* tests listen elsewhere */
    struct sockaddr_un addr = where;
    CLEANUP(file_close) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (other)
        snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", other);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
        return err_errno(err, errno, "journald at %s", addr.sun_path);
    int kept = fd;
    fd = -1;
    return kept;
}

int log_setup(const struct log_outputs *config, struct err *err)
{
    CLEANUP(file_close) int file = -1;
    CLEANUP(file_close) int journal = -1;

    if (config->file && (file = open_file(config->file, err)) < 0)
        return file;
    if (config->to_journald && (journal = open_journald(err)) < 0)
        return journal;
    log_shutdown();
    file_path = mem_strdup(config->file);
    program_name = mem_strdup(config->name ? config->name : "spur");
    outputs[TO_STDERR].level = config->to_stderr ? config->stderr_level : LOG_LEVEL_QUIET;
    outputs[TO_FILE].level = config->file ? config->file_level : LOG_LEVEL_QUIET;
    outputs[TO_FILE].fd = file;
    outputs[TO_JOURNALD].level = config->to_journald ? config->journald_level : LOG_LEVEL_QUIET;
    outputs[TO_JOURNALD].fd = journal;
    file = journal = -1;
    find_most();
    return 0;
}

void log_shutdown(void)
{
    file_close(&outputs[TO_FILE].fd);
    file_close(&outputs[TO_JOURNALD].fd);
    outputs[TO_FILE].level = outputs[TO_JOURNALD].level = LOG_LEVEL_QUIET;
    outputs[TO_STDERR].level = LOG_LEVEL_INFO;
    free(TAKE(file_path));
    free(TAKE(program_name));
    find_most();
}

static void to_journald(int fd, enum log_level level, const char *event, const char *text)
{
    CLEANUP(str_done) struct str gram = { 0 };

    str_addf(&gram, "MESSAGE=%s %s\nPRIORITY=%d\nSYSLOG_IDENTIFIER=%s\nSPUR_EVENT=%s\n", event,
             text, levels[level].syslog, program_name, event);
    /* (2) */
    if (send(fd, gram.data, gram.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return;
}

static void add_time(struct str *line, int64_t now_us)
{
    time_t seconds = (time_t)(now_us / 1000000);
    char text[32];
    struct tm tm;

    localtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    str_addf(line, "%s.%06d ", text, (int)(now_us % 1000000));
}

static void emit(enum log_level level, const char *event, const char *text)
{
    CLEANUP(str_done) struct str line = { 0 };

    if (sink) {
        sink(sink_ctx, level, event, text);
        return;
    }
    if (outputs[TO_JOURNALD].level >= level)
        to_journald(outputs[TO_JOURNALD].fd, level, event, text);
    if (outputs[TO_FILE].level < level && outputs[TO_STDERR].level < level)
        return;
    add_time(&line, clock_wall_us());
    str_addf(&line, "%s %s%s%s\n", levels[level].name, event, *text ? " " : "", text);
    for (enum output i = TO_STDERR; i <= TO_FILE; i++) {
        if (outputs[i].level >= level && write(outputs[i].fd, line.data, line.len) < 0)
            continue; /* (2) */
    }
}

static void say_left_out(const struct rate *rate)
{
    CLEANUP(str_done) struct str text = { 0 };

    str_addf(&text, "event=%s lines=%u", rate->event, rate->dropped);
    emit(LOG_LEVEL_WARN, "log.left_out", text.data);
}

/* Once a second: what each event could not say in the seconds before. */
static void sweep(int64_t second)
{
    for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
        if (rates[i].dropped && rates[i].second != second) {
            say_left_out(&rates[i]);
            rates[i].dropped = 0;
        }
    }
}

static bool allowed(const char *event)
{
    static int64_t swept;
    struct rate *rate = &rates[hash_bytes(event, strlen(event), 0) % ARRAY_LEN(rates)];
    int64_t second = clock_mono_us() / 1000000;
    bool yes;

    pthread_mutex_lock(&rate_lock);
    if (swept != second) {
        swept = second;
        sweep(second);
    }
    if (rate->second != second) {
        *rate = (struct rate){ .second = second };
        snprintf(rate->event, sizeof(rate->event), "%s", event);
    }
    yes = rate->count < LOG_EVENTS_PER_SECOND;
    rate->count += yes;
    rate->dropped += !yes;
    pthread_mutex_unlock(&rate_lock);
    return yes;
}

void log_write(enum log_level level, const char *event, const char *fmt, ...)
{
    CLEANUP(str_done) struct str text = { 0 };
    va_list args;

    /* Detail is a flood that somebody asked for. */
    if (level >= LOG_LEVEL_ERROR && level <= LOG_LEVEL_INFO && !allowed(event))
        return;
    va_start(args, fmt);
    log_format(&text, fmt, args);
    va_end(args);
    emit(level, event, str_text(&text));
}
