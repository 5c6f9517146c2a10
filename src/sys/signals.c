/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.c - signals by name, and how our processes treat them
 */
#include "sys/signals.h"

#include <signal.h>
#include <stdlib.h>

#include "base/str.h"

static const struct {
    int sig;
    const char *name;
} names[] = {
    { SIGHUP, "HUP" },   { SIGINT, "INT" },       { SIGQUIT, "QUIT" }, { SIGILL, "ILL" },
    { SIGTRAP, "TRAP" }, { SIGABRT, "ABRT" },     { SIGBUS, "BUS" },   { SIGFPE, "FPE" },
    { SIGKILL, "KILL" }, { SIGUSR1, "USR1" },     { SIGSEGV, "SEGV" }, { SIGUSR2, "USR2" },
    { SIGPIPE, "PIPE" }, { SIGALRM, "ALRM" },     { SIGTERM, "TERM" }, { SIGSTKFLT, "STKFLT" },
    { SIGCHLD, "CHLD" }, { SIGCONT, "CONT" },     { SIGSTOP, "STOP" }, { SIGTSTP, "TSTP" },
    { SIGTTIN, "TTIN" }, { SIGTTOU, "TTOU" },     { SIGURG, "URG" },   { SIGXCPU, "XCPU" },
    { SIGXFSZ, "XFSZ" }, { SIGVTALRM, "VTALRM" }, { SIGPROF, "PROF" }, { SIGWINCH, "WINCH" },
    { SIGIO, "IO" },     { SIGPWR, "PWR" },       { SIGSYS, "SYS" },   { SIGABRT, "IOT" },
    { SIGIO, "POLL" },   { SIGCHLD, "CLD" },
};

/* 34 … 64: what glibc leaves of the real-time signals. */
static const char *const realtime[] = {
    "RTMIN",    "RTMIN+1",  "RTMIN+2",  "RTMIN+3",  "RTMIN+4",  "RTMIN+5",  "RTMIN+6",  "RTMIN+7",
    "RTMIN+8",  "RTMIN+9",  "RTMIN+10", "RTMIN+11", "RTMIN+12", "RTMIN+13", "RTMIN+14", "RTMIN+15",
    "RTMAX-14", "RTMAX-13", "RTMAX-12", "RTMAX-11", "RTMAX-10", "RTMAX-9",  "RTMAX-8",  "RTMAX-7",
    "RTMAX-6",  "RTMAX-5",  "RTMAX-4",  "RTMAX-3",  "RTMAX-2",  "RTMAX-1",  "RTMAX",
};

enum { FIRST_REALTIME = 34, LAST_REALTIME = 64 };

int signals_parse(const char *text)
{
    uint64_t number;

    if (str_is_empty(text))
        return 0;
    if (str_to_u64(text, LAST_REALTIME, &number))
        return (int)number;
    if (str_istarts(text, "SIG"))
        text += 3;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_ieq(text, names[i].name))
            return names[i].sig;
    }
    if (str_istarts(text, "RTMIN+") &&
        str_to_u64(text + 6, LAST_REALTIME - FIRST_REALTIME, &number))
        return FIRST_REALTIME + (int)number;
    if (str_istarts(text, "RTMAX-") &&
        str_to_u64(text + 6, LAST_REALTIME - FIRST_REALTIME, &number))
        return LAST_REALTIME - (int)number;
    for (size_t i = 0; i < ARRAY_LEN(realtime); i++) {
        if (str_ieq(text, realtime[i]))
            return FIRST_REALTIME + (int)i;
    }
    return 0;
}

const char *signals_name(int sig)
{
    if (sig >= FIRST_REALTIME && sig <= LAST_REALTIME)
        return realtime[sig - FIRST_REALTIME];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (names[i].sig == sig)
            return names[i].name;
    }
    return "?";
}

void signals_ignore_pipe(void)
{
    signal(SIGPIPE, SIG_IGN);
}

void signals_reset(void)
{
    sigset_t none;

    for (int sig = 1; sig <= LAST_REALTIME; sig++)
        signal(sig, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}
