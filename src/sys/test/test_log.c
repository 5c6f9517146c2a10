/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_log.c - one line per event, whatever the values hold
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sys/clock.h"
#include "sys/files.h"
#include "sys/log.h"
#include "test/unit.h"

static struct str seen;
static unsigned lines;

static void keep(void *ctx, enum log_level level, const char *event, const char *text)
{
    (void)ctx;
    lines++;
    str_addf(&seen, "%s %s %s\n", log_level_name(level), event, text);
}

static int start(void **state)
{
    (void)state;
    str_clear(&seen);
    lines = 0;
    log_use(keep, NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    log_use(NULL, NULL);
    log_shutdown();
    str_done(&seen);
    return 0;
}

#define SAYS(want, ...)                                  \
    do {                                                 \
        str_clear(&seen);                                \
        log_info("e", __VA_ARGS__);                      \
        assert_string_equal(str_text(&seen), want "\n"); \
    } while (0)

static void values_are_quoted_when_needed(void **state)
{
    (void)state;
    SAYS("info e job=42 attempt=1 name=plain", "job=%u attempt=%d name=%s", 42u, 1, "plain");
    SAYS("info e name=\"a b\"", "name=%s", "a b");
    SAYS("info e name=\"\" next=1", "name=%s next=%d", "", 1);
    SAYS("info e name=\"say \\\"hi\\\" \\\\\"", "name=%s", "say \"hi\" \\");
    SAYS("info e name=\"x\\njob.ended\\x1b[31m\"", "name=%s", "x\njob.ended\x1b[31m");
    SAYS("info e name=\"a=b\"", "name=%s", "a=b");
    SAYS("info e ignored: time out\\n", "ignored: %s", "time out\n");
    const char *volatile nothing = NULL;
    SAYS("info e name=(null)", "name=%s", nothing);
}

static void formats_are_those_of_printf(void **state)
{
    (void)state;
    SAYS("info e -1 ffffffffffffffff 255 100%", "%d %lx %hhu 100%%", -1, ~0UL, (unsigned char)255);
    SAYS("info e 00042|42   |0x2a", "%05d|%-5u|%#x", 42, 42u, 42u);
    SAYS("info e ab 3.14 9223372036854775807", "%.*s %.2f %jd", 2, "abc", 3.14159, INTMAX_MAX);
    SAYS("info e z=18446744073709551615 c=x", "z=%zu c=%c", SIZE_MAX, 'x');
    SAYS("info e k=\"a b\"", "k=%.3s", "a bcd");
}

static void a_line_is_bounded(void **state)
{
    char *big = NEW_ARRAY(char, 100001);

    (void)state;
    memset(big, 'x', 100000);
    log_info("e", "a=%s b=%s", big, big);
    assert_true(seen.len < LOG_LINE_BYTES + 32);
    free(big);
}

static int64_t now_us;
static int64_t fixed(void *ctx)
{
    (void)ctx;
    return now_us;
}

static void a_flood_is_counted_not_written(void **state)
{
    static const struct clock_ops ops = { fixed, fixed, fixed, NULL };

    (void)state;
    now_us = 5000000;
    clock_use(&ops, NULL);
    for (int i = 0; i < LOG_EVENTS_PER_SECOND + 500; i++)
        log_warn("flood", "i=%d", i);
    assert_int_equal(lines, LOG_EVENTS_PER_SECOND);
    log_info("calm", "%s", "");
    assert_int_equal(lines, LOG_EVENTS_PER_SECOND + 1);
    now_us += 1000000;
    log_info("other", "%s", "");
    assert_non_null(strstr(str_text(&seen), "warn log.left_out event=flood lines=500\n"));
    log_warn("flood", "%s", "again");
    assert_int_equal(lines, LOG_EVENTS_PER_SECOND + 4);
    clock_use(NULL, NULL);
}

static void levels_by_name_and_by_slurms_number(void **state)
{
    enum log_level level;

    (void)state;
    assert_true(log_level_parse("debug2", &level));
    assert_int_equal(level, LOG_LEVEL_DEBUG2);
    assert_true(log_level_parse("INFO", &level));
    assert_int_equal(level, LOG_LEVEL_INFO);
    assert_true(log_level_parse("3", &level));
    assert_int_equal(level, LOG_LEVEL_INFO);
    assert_true(log_level_parse("9", &level));
    assert_int_equal(level, LOG_LEVEL_DEBUG5);
    assert_false(log_level_parse("10", &level));
    assert_false(log_level_parse("loud", &level));
}

static void a_file_is_reopened_by_name(void **state)
{
    char dir[] = "/tmp/test-log.XXXXXX", path[64], moved[64];
    CLEANUP(str_done) struct str old = { 0 };
    CLEANUP(str_done) struct str new = { 0 };

    (void)state;
    log_use(NULL, NULL);
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/log", dir);
    snprintf(moved, sizeof(moved), "%s/log.1", dir);
    struct log_outputs config = { .name = "t", .file = path, .file_level = LOG_LEVEL_VERBOSE };
    assert_int_equal(log_setup(&config, NULL), 0);
    assert_false(log_wants(LOG_LEVEL_DEBUG));
    log_verbose("first", "n=%d", 1);
    log_debug("never", "n=%d", 1);
    assert_int_equal(rename(path, moved), 0);
    log_info("second", "n=%d", 2);
    assert_int_equal(log_reopen(NULL), 0);
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug("third", "n=%d", 3);
    assert_int_equal(file_read(moved, 1000, &old, NULL), 0);
    assert_int_equal(file_read(path, 1000, &new, NULL), 0);
    assert_non_null(strstr(old.data, " verbose first n=1\n"));
    assert_non_null(strstr(old.data, " info second n=2\n"));
    assert_null(strstr(old.data, "never"));
    assert_non_null(strstr(new.data, " debug third n=3\n"));
    assert_int_equal(file_remove_tree(dir, NULL), 0);
}

static void journald_gets_fields(void **state)
{
    char dir[] = "/tmp/test-log.XXXXXX", gram[1024];
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    CLEANUP(file_close) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    (void)state;
    log_use(NULL, NULL);
    assert_non_null(mkdtemp(dir));
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/socket", dir);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    setenv("SPUR_JOURNAL_SOCKET", addr.sun_path, 1);
    struct log_outputs config = { .name = "spurtest",
                                  .to_journald = true,
                                  .journald_level = LOG_LEVEL_INFO };
    assert_int_equal(log_setup(&config, NULL), 0);
    log_error("disk.full", "path=%s", "/a\nPRIORITY=0");
    ssize_t got = recv(fd, gram, sizeof(gram) - 1, MSG_DONTWAIT);
    assert_true(got > 0);
    gram[got] = '\0';
    assert_string_equal(gram, "MESSAGE=disk.full path=\"/a\\nPRIORITY=0\"\nPRIORITY=3\n"
                              "SYSLOG_IDENTIFIER=spurtest\nSPUR_EVENT=disk.full\n");
    unsetenv("SPUR_JOURNAL_SOCKET");
    assert_int_equal(file_remove_tree(dir, NULL), 0);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, start, stop)
UNIT_MAIN(T(values_are_quoted_when_needed), T(formats_are_those_of_printf), T(a_line_is_bounded),
          T(a_flood_is_counted_not_written), T(levels_by_name_and_by_slurms_number),
          T(a_file_is_reopened_by_name), T(journald_gets_fields))
