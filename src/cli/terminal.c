// SPDX-License-Identifier: Apache-2.0
/*
 * terminal.c - the terminal while a task has it
 *
 * (1) Handlers use only what may be called in one: tcsetattr(), sigaction(), raise().
 * (2) A signal that would have ended us ends us, after the terminal is as it was; whoever waits for us sees
 *     that signal.
 */
#include "cli/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "base/util.h"

static struct termios before, raw;
static volatile sig_atomic_t is_raw;

static void set(const struct termios *how)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN }, old;

    sigaction(SIGTTOU, &ignore, &old); /* in the background it would stop us */
    tcsetattr(STDIN_FILENO, TCSADRAIN, how);
    sigaction(SIGTTOU, &old, NULL);
}

static void by_default(int sig)
{
    struct sigaction action = { .sa_handler = SIG_DFL }, old;
    sigset_t one, mask;

    sigemptyset(&one);
    sigaddset(&one, sig);
    sigaction(sig, &action, &old);
    raise(sig);
    sigprocmask(SIG_UNBLOCK, &one, &mask); /* here it happens */
    sigprocmask(SIG_SETMASK, &mask, NULL);
    sigaction(sig, &old, NULL);
}

static void on_end(int sig)
{
    if (is_raw)
        set(&before);
    by_default(sig); /* (2) */
}

/* A shell sets its terminal as it likes while we are stopped. */
static void on_go_on(int sig)
{
    int saved = errno;

    (void)sig;
    if (is_raw && tcgetpgrp(STDIN_FILENO) == getpgrp())
        set(&raw);
    errno = saved;
}

static void on_stop(int sig)
{
    int saved = errno;

    if (is_raw)
        set(&before);
    by_default(sig);
    on_go_on(sig); /* nobody stops us where no shell could let us go on */
    errno = saved;
}

static void hear(int sig, void (*handler)(int sig))
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART }, old;

    if (sigaction(sig, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        sigaction(sig, &action, NULL);
}

bool terminal_raw(void)
{
    static const int ends[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGABRT, SIGSEGV,  SIGBUS,
                                SIGFPE,  SIGILL,  SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2,  SIGXCPU,
                                SIGXFSZ, SIGPOLL, SIGPROF, SIGSYS,  SIGTRAP, SIGVTALRM };
    static bool prepared;

    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return false;
    if (!prepared) {
        prepared = true;
        for (size_t i = 0; i < ARRAY_LEN(ends); i++)
            hear(ends[i], on_end);
        hear(SIGTSTP, on_stop);
        hear(SIGCONT, on_go_on);
        atexit(terminal_restore);
    }
    raw = before;
    cfmakeraw(&raw);
    is_raw = 1; /* first: a signal between the two restores what it already was */
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
        is_raw = 0;
    return is_raw;
}

void terminal_restore(void)
{
    if (is_raw)
        set(&before);
    is_raw = 0;
}
