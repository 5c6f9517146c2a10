/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_case.h - what the test programs of the supervisor share
 */
#ifndef SPURSTEPD_TEST_STEP_CASE_H
#define SPURSTEPD_TEST_STEP_CASE_H

#include "test/unit.h"

#include <dirent.h>
#include <unistd.h>

#include "spurstepd/test/steps.h"
#include "sys/files.h"

enum { WAIT_MS = 15000, OTHER_UID = 20001, OTHER_GID = 20002 };

static struct steps steps;

static inline int open_steps(void **state)
{
    (void)state;
    steps_open(&steps);
    return 0;
}

static inline int close_steps(void **state)
{
    (void)state;
    steps_close(&steps);
    return 0;
}

static inline bool as_root(void)
{
    return geteuid() == 0;
}

static inline void assert_has(const char *text, const char *part)
{
    if (!text || !strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text ? text : "(nothing)");
}

/* Runs it and gives the report; the output too when asked for. */
static inline StepEnded run(StepTask *task, char **output, char text[256])
{
    StepNews *news = steps_finish(&steps, task, WAIT_MS);
    assert_non_null(news);
    assert_non_null(news->ended);
    StepEnded ended = *news->ended;
    snprintf(text, 256, "%s", ended.text ? ended.text : "");
    step_news__free_unpacked(news, NULL);
    if (output)
        *output = steps_output(&steps, task);
    return ended;
}

static inline int count_marked(const char *mark)
{
    DIR *dir = opendir("/proc");
    struct dirent *item;
    int count = 0;

    while ((item = readdir(dir))) {
        char path[300], *text;
        snprintf(path, sizeof(path), "/proc/%s/cmdline", item->d_name);
        if (item->d_name[0] < '1' || item->d_name[0] > '9')
            continue;
        struct str read = { 0 };
        if (file_read(path, 65536, &read, NULL) == 0) {
            for (size_t i = 0; i < read.len; i++)
                read.data[i] = read.data[i] ? read.data[i] : ' ';
            text = strstr(str_text(&read), mark);
            count += text != NULL;
        }
        str_done(&read);
    }
    closedir(dir);
    return count;
}

static inline void wait_started(int chan)
{
    StepNews *news = steps_news(chan, WAIT_MS);

    assert_non_null(news);
    assert_non_null(news->started);
    step_news__free_unpacked(news, NULL);
}

static inline void wait_for_file(const char *path)
{
    for (int i = 0; i < 500 && access(path, F_OK) < 0; i++)
        usleep(10000);
    assert_int_equal(access(path, F_OK), 0);
}

#endif
