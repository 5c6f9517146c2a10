// SPDX-License-Identifier: Apache-2.0
/*
 * session.c - a connection for each thread, and errors as Slurm's clients see them
 *
 * (1) A thread's session ends with the thread. A child after fork() gets a session of its own: the connection
 *     belongs to its parent, and nothing is written to it any more.
 * (2) Memory that cannot be had jumps to the innermost guard; the session is given up then, because a call may
 *     have been cut in two.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena_thread.h"
#include "client/client.h"
#include "compat/compat.h"

enum { BRIEF_MS = 300 };

struct thread_session {
    struct session session;
    pid_t pid;
    bool brief;
};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local struct compat_guard *guards;

/* ---- guards ---- */

static void out_of_memory(void)
{
    if (guards)
        longjmp(guards->at, 1);
}

void compat_guard_enter(struct compat_guard *guard)
{
    mem_on_failure(out_of_memory);
    guard->outer = guards;
    guards = guard;
}

void compat_guard_leave(struct compat_guard *guard)
{
    guards = guard->outer;
}

/* ---- sessions ---- */

/* (1): what closing the connection says goes nowhere. */
static void leave_to_parent(struct client *client)
{
    int fd = client_fd(client), nowhere = fd >= 0 ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;

    if (nowhere >= 0) {
        dup2(nowhere, fd);
        close(nowhere);
    }
}

static void session_free(void *argument)
{
    struct thread_session *mine = argument;

    if (mine->session.client && mine->pid != getpid())
        leave_to_parent(mine->session.client);
    client_free(mine->session.client);
    arena_done(&mine->session.arena);
    arena_thread_done();
    free(mine);
}

static void make_key(void)
{
    pthread_key_create(&key, session_free);
}

static __attribute__((noinline)) struct thread_session *session_of_thread(void)
{
    pthread_once(&once, make_key);
    struct thread_session *mine = pthread_getspecific(key);

    if (mine && mine->pid != getpid()) {
        pthread_setspecific(key, NULL);
        session_free(mine);
        mine = NULL;
    }
    if (!mine) {
        mine = calloc(1, sizeof(*mine));
        if (!mine)
            return NULL;
        mine->pid = getpid();
        arena_init(&mine->session.arena);
        pthread_setspecific(key, mine);
    }
    return mine;
}

/* The main thread's session is not ended by its end: exit() runs no destructors of keys. */
__attribute__((destructor)) static void unload(void)
{
    compat_forget_session();
    pthread_once(&once, make_key);
    pthread_key_delete(key);
}

void compat_forget_session(void)
{
    pthread_once(&once, make_key);
    struct thread_session *mine = pthread_getspecific(key);

    if (!mine)
        return;
    pthread_setspecific(key, NULL);
    session_free(mine);
}

void compat_brief(struct session *session)
{
    CONTAINER_OF(session, struct thread_session, session)->brief = true;
}

int compat_call(struct session *session, const char *method, const ProtobufCMessage *request,
                const ProtobufCMessageDescriptor *reply_type, ProtobufCMessage **reply,
                struct err *err)
{
    struct thread_session *mine = CONTAINER_OF(session, struct thread_session, session);
    char path[96];

    if (!session->client) {
        session->client =
            client_new(&(struct client_options){ .retry_ms = mine->brief ? BRIEF_MS : 0 }, err);
        if (!session->client)
            return -(int)err->code;
    }
    snprintf(path, sizeof(path), "/spur.Controller/%s", method);
    return client_call(session->client, path, request, reply_type, &session->arena, reply, err);
}

int compat_run(compat_work *work, void *args)
{
    struct thread_session *volatile mine = session_of_thread();
    struct compat_guard guard;
    struct err err = { 0 };

    if (!mine) {
        errno = ENOMEM;
        return SLURM_ERROR;
    }
    compat_guard_enter(&guard);
    if (setjmp(guard.at)) { /* (2) */
        compat_guard_leave(&guard);
        compat_forget_session();
        errno = ENOMEM;
        return SLURM_ERROR;
    }
    int rc = work(&mine->session, args, &err);
    compat_guard_leave(&guard);
    if (mine->brief) { /* its client tries too short a time for others */
        mine->brief = false;
        client_free(TAKE(mine->session.client));
    }
    arena_reset(&mine->session.arena);
    if (rc >= 0)
        return SLURM_SUCCESS;
    errno = compat_errno(&err);
    return SLURM_ERROR;
}

int compat_errno(const struct err *err)
{
    int number = err_slurm(err->code);

    if (err->code == ERR_UNREACHABLE)
        return SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR;
    if (err->code == ERR_CONNECTION_LOST)
        return SLURMCTLD_COMMUNICATIONS_RECEIVE_ERROR;
    if (err->code == ERR_UNSUPPORTED)
        return ESLURM_NOT_SUPPORTED;
    if (number)
        return number;
    switch (err->code) {
    case ERR_NO_MEMORY:
        return ENOMEM;
    case ERR_NOT_FOUND:
        return ENOENT;
    case ERR_EXISTS:
        return EEXIST;
    default:
        return EINVAL;
    }
}

int compat_not_supported(void)
{
    errno = ESLURM_NOT_SUPPORTED;
    return SLURM_ERROR;
}
