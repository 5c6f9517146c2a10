/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_soon.c - reads what poll() said is there, although somebody else may have taken it
 *
 * Standard input is often shared: with the shell, with the program of the next line, with us in the
 * background a second time. It cannot be set to O_NONBLOCK, which the others would see too. So a timer
 * interrupts a read that found nothing. It goes off again and again: the first time may be
 * just before the read.
 */
#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "sys/files.h"

enum { MOST_NS = 10000000 };

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static void on_timer(int sig)
{
    (void)sig;
}

ssize_t file_read_soon(int fd, void *bytes, size_t len)
{
    struct sigaction action = { .sa_handler = on_timer }, before;
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMAX };
    struct itimerspec often = { .it_value.tv_nsec = MOST_NS, .it_interval.tv_nsec = MOST_NS };
    timer_t timer;

    event.sigev_notify_thread_id = gettid();
    sigaction(event.sigev_signo, &action, &before);
    bool timed = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
    if (timed)
        timer_settime(timer, 0, &often, NULL);
    ssize_t got = read(fd, bytes, len);
    int error = errno;
    if (timed)
        timer_delete(timer);
    sigaction(event.sigev_signo, &before, NULL);
    errno = got < 0 && error == EINTR ? EAGAIN : error;
    return got;
}
