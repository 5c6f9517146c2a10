/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmi.c - srun --mpi=pmi2: the store, fences, and the sockets of tasks
 *
 * (1) A node's part of fence N is sent once, when its last task has come to it; it holds everything the
 *     tasks put before. The fence is over here when all other nodes' parts N have come: a node may be one
 *     ahead, never more.
 * (2) A task asks one thing at a time, so its answer always has room in the socket; one that does not
 *     read its answers loses the socket.
 * (3) A task that ends without saying so could be waited for for ever. Other nodes hear of the first on a
 *     node, and who is or comes into a fence that it will never be in aborts the step.
 */
#include "spurstepd/pmi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "spurstepd/relay.h"
#include "spurstepd/tasks_priv.h"
#include "sys/files.h"

enum { READ_BYTES = 4096, SPACE_COST_BYTES = 128, SERVICES_MAX = 1024 };
enum { SAYS_FENCE = 'F', SAYS_SERVICE = 'S', SAYS_LEFT = 'L' };

/* ---- the store ---- */

static bool fits_wire(const char *text, size_t limit)
{
    return *text && strlen(text) <= limit && !strpbrk(text, " \t\r\n");
}

static bool keep(struct pmi *pmi, struct map *map, const char *key, const char *value)
{
    size_t more = strlen(key) + strlen(value) + SPACE_COST_BYTES;

    if (pmi->kept_bytes + more > LIMIT_PMI_KVS_BYTES)
        return false;
    pmi->kept_bytes += more;
    free(map_put(map, key, mem_strdup(value)));
    return true;
}

bool pmi_put(struct pmi *pmi, const char *key, const char *value)
{
    if (!fits_wire(key, PMI_KEY_BYTES) || strlen(value) > PMI_VALUE_BYTES ||
        !keep(pmi, &pmi->values, key, value))
        return false;
    str_add_len(&pmi->puts, key, strlen(key) + 1);
    str_add_len(&pmi->puts, value, strlen(value) + 1);
    return true;
}

static void set_service(struct pmi *pmi, const char *service, const char *port)
{
    if (*port && map_len(&pmi->services) < SERVICES_MAX)
        keep(pmi, &pmi->services, service, port);
    else
        free(map_del(&pmi->services, service));
}

void pmi_publish(struct pmi *pmi, const char *service, const char *port)
{
    CLEANUP(str_done) struct str words = { 0 };

    set_service(pmi, service, port ? port : "");
    str_add_char(&words, SAYS_SERVICE);
    str_add_len(&words, service, strlen(service) + 1);
    str_add_len(&words, port ? port : "", port ? strlen(port) + 1 : 1);
    relay_send(pmi->tasks, RELAY_ALL, str_text(&words), words.len);
}

/* ---- fences ---- */

/* (3) */
static void abort_for(struct pmi *pmi, uint32_t number)
{
    char text[96];

    snprintf(text, sizeof(text), "task %u ended while others wait for it", number);
    tasks_abort(pmi->tasks, number, 1, text);
}

static void finish_fence(struct pmi *pmi)
{
    if (!pmi->waiting)
        return;
    for (uint32_t i = 0; i < pmi->tasks->relay->layout->n_nodes; i++) {
        if (i == pmi->tasks->relay->here || pmi->theirs[i] >= pmi->fences)
            continue;
        if (pmi->left[i])
            abort_for(pmi, (uint32_t)(pmi->left[i] - 1));
        return;
    }
    pmi->waiting = false;
    for (size_t i = 0; i < pmi->count; i++) {
        struct pmi_peer *peer = &pmi->peers[i];
        if (!peer->in_fence)
            continue;
        peer->in_fence = false;
        if (peer->second)
            pmi_2_fenced(peer);
        else
            pmi_1_fenced(peer);
    }
}

static void check_fence(struct pmi *pmi)
{
    bool any = false;

    if (pmi->waiting)
        return;
    for (size_t i = 0; i < pmi->count; i++)
        any |= pmi->peers[i].in_fence;
    for (size_t i = 0; i < pmi->count && any; i++) {
        const struct pmi_peer *peer = &pmi->peers[i];
        if (peer->in_fence)
            continue;
        if (peer->fd < 0)
            abort_for(pmi, peer->number);
        return;
    }
    if (!any)
        return;
    CLEANUP(str_done) struct str words = { 0 }; /* (1) */
    str_add_char(&words, SAYS_FENCE);
    str_add_len(&words, str_text(&pmi->puts), pmi->puts.len);
    str_done(&pmi->puts);
    pmi->fences++;
    pmi->waiting = true;
    relay_send(pmi->tasks, RELAY_ALL, str_text(&words), words.len);
    finish_fence(pmi);
}

void pmi_fence(struct pmi *pmi, struct pmi_peer *peer)
{
    peer->in_fence = true;
    check_fence(pmi);
}

/* The text before the next zero byte; NULL: there is none. */
static const char *next_text(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *zero = *at < end ? memchr(*at, 0, (size_t)(end - *at)) : NULL;
    const char *text = (const char *)*at;

    if (!zero)
        return NULL;
    *at = zero + 1;
    return text;
}

void pmi_relay(struct tasks *tasks, uint32_t from, const uint8_t *bytes, size_t len)
{
    struct pmi *pmi = tasks->pmi;
    const uint8_t *at = bytes + 1, *end = bytes + len;
    const char *key, *value;

    if (!pmi || len == 0)
        return;
    if (bytes[0] == SAYS_LEFT) {
        uint64_t number = 0;
        if ((key = next_text(&at, end)) && str_to_u64(key, UINT32_MAX, &number))
            pmi->left[from] = number + 1;
        finish_fence(pmi);
        return;
    }
    while ((key = next_text(&at, end)) && (value = next_text(&at, end))) {
        if (bytes[0] == SAYS_SERVICE)
            set_service(pmi, key, value);
        else if (!keep(pmi, &pmi->values, key, value))
            tasks_abort(tasks, pmi->peers[0].number, 1, "the tasks put too much into PMI");
    }
    if (bytes[0] == SAYS_FENCE) {
        pmi->theirs[from]++;
        finish_fence(pmi);
    }
}

/* ---- sockets ---- */

/* (3) */
static void say_left(struct pmi *pmi, const struct pmi_peer *peer)
{
    uint64_t *left = &pmi->left[pmi->tasks->relay->here];
    char words[16];

    if (*left)
        return;
    *left = (uint64_t)peer->number + 1;
    int len = snprintf(words, sizeof(words), "%c%u", SAYS_LEFT, peer->number);
    relay_send(pmi->tasks, RELAY_ALL, words, (size_t)len + 1);
}

static void peer_close(struct pmi *pmi, struct pmi_peer *peer)
{
    if (peer->fd < 0)
        return;
    tasks_unwatch(pmi->tasks, peer->fd);
    file_close(&peer->fd);
    peer->in_fence = false;
    if (pmi->tasks->phase != TASKS_RUNNING || peer->finalized)
        return;
    say_left(pmi, peer);
    check_fence(pmi);
}

void pmi_reply(struct pmi_peer *peer, const struct str *text)
{
    if (peer->fd >= 0 && send(peer->fd, str_text(text), text->len, MSG_NOSIGNAL | MSG_DONTWAIT) !=
                             (ssize_t)text->len)
        shutdown(peer->fd, SHUT_RDWR); /* (2): the loop notices */
}

void pmi_abort(struct pmi *pmi, const struct pmi_peer *peer, const char *code, const char *text)
{
    int64_t number = 1;

    if (!code || !str_to_i64(code, INT32_MIN, INT32_MAX, &number) || (number & 0xff) == 0)
        number = 1;
    tasks_abort(pmi->tasks, peer->number, (uint32_t)number & 0xff, text);
}

/* Takes the whole messages that have come. False: the socket is of no more use. */
static bool take_messages(struct pmi *pmi, struct pmi_peer *peer)
{
    for (;;) {
        bool second = peer->second;
        const char *text = str_text(&peer->in);
        int64_t len =
            second ? pmi_packet_len(text, peer->in.len) : pmi_line_len(text, peer->in.len);
        if (len <= 0)
            return len == 0;
        size_t head = second ? PMI_HEADER_BYTES : 0;
        CLEANUP(freep) char *message = mem_strndup(text + head, (size_t)len - head);
        memmove(peer->in.data, peer->in.data + len, peer->in.len - (size_t)len);
        str_truncate(&peer->in, peer->in.len - (size_t)len);
        if (second ? !pmi_2_take(pmi, peer, message) : !pmi_1_take(pmi, peer, message))
            return false;
    }
}

/* False: there is nothing more now, or ever. */
static bool read_peer(struct pmi *pmi, struct pmi_peer *peer)
{
    char bytes[READ_BYTES];

    ssize_t len = peer->fd >= 0 ? recv(peer->fd, bytes, sizeof(bytes), MSG_DONTWAIT) : 0;
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (len > 0)
        str_add_len(&peer->in, bytes, (size_t)len);
    if (len > 0 && take_messages(pmi, peer))
        return true;
    peer_close(pmi, peer);
    return false;
}

static void on_task(struct tasks *tasks, void *data, short events)
{
    (void)events;
    read_peer(tasks->pmi, data);
}

/* ---- rows of step_plugins.c ---- */

/* (3) The last task of a node ends the supervisor: what it said, or did not, is heard before. */
void pmi_exited(struct tasks *tasks, size_t index)
{
    while (tasks->pmi && read_peer(tasks->pmi, &tasks->pmi->peers[index]))
        ;
}

bool pmi_wanted(const StepTask *task)
{
    return str_eq(task->tasks->mpi, "pmi2");
}

static void set_mapping(struct pmi *pmi)
{
    const StepLayout *layout = pmi->tasks->relay->layout;
    CLEANUP(freep) uint32_t *node_of = NEW_ARRAY(uint32_t, layout->ntasks + 1);

    for (uint32_t i = 0; i < layout->n_nodes; i++) {
        for (size_t k = 0; k < layout->nodes[i]->n_tasks; k++) {
            if (layout->nodes[i]->tasks[k] < layout->ntasks)
                node_of[layout->nodes[i]->tasks[k]] = i;
        }
    }
    pmi_mapping(node_of, layout->ntasks, &pmi->mapping);
}

int pmi_begin(struct tasks *tasks, struct err *err)
{
    const StepId *id = tasks->task->id;
    struct pmi *pmi = tasks->pmi = NEW(struct pmi);

    (void)err;
    pmi->tasks = tasks;
    pmi->count = tasks->count;
    pmi->peers = NEW_ARRAY(struct pmi_peer, pmi->count);
    for (size_t i = 0; i < pmi->count; i++) {
        pmi->peers[i].fd = -1;
        pmi->peers[i].number = tasks->task->tasks->list[i]->number;
    }
    pmi->theirs = NEW_ARRAY(uint32_t, tasks->relay->layout->n_nodes);
    pmi->left = NEW_ARRAY(uint64_t, tasks->relay->layout->n_nodes);
    pmi->name = mem_printf("%u.%u", id->job_id, id->step);
    map_init(&pmi->values);
    map_init(&pmi->attributes);
    map_init(&pmi->services);
    set_mapping(pmi);
    return 0;
}

int pmi_task(struct tasks *tasks, struct step_plugin_task *one, struct arena *arena,
             struct err *err)
{
    struct pmi *pmi = tasks->pmi;
    struct pmi_peer *peer = &pmi->peers[one->index];
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_errno(err, errno, "socket");
    peer->fd = ends[0];
    tasks_watch(tasks, peer->fd, peer, on_task);
    vec_push(&one->keep, ends[1]);
    vec_push(&one->env, arena_printf(arena, "PMI_FD=%d", ends[1]));
    vec_push(&one->env, arena_printf(arena, "PMI_JOBID=%s", pmi->name));
    vec_push(&one->env, arena_printf(arena, "PMI_RANK=%u", one->number));
    vec_push(&one->env, arena_printf(arena, "PMI_SIZE=%u", tasks->relay->layout->ntasks));
    return 0;
}

static void done_map(struct map *map)
{
    map_each (entry, map)
        free(entry->value);
    map_done(map);
}

void pmi_end(struct tasks *tasks)
{
    struct pmi *pmi = tasks->pmi;

    if (!pmi)
        return;
    for (size_t i = 0; i < pmi->count; i++) {
        struct pmi_peer *peer = &pmi->peers[i];
        peer_close(pmi, peer);
        str_done(&peer->in);
        free(peer->wants);
        free(peer->thread);
    }
    done_map(&pmi->values);
    done_map(&pmi->attributes);
    done_map(&pmi->services);
    str_done(&pmi->puts);
    str_done(&pmi->mapping);
    free(pmi->peers);
    free(pmi->theirs);
    free(pmi->left);
    free(pmi->name);
    free(pmi);
    tasks->pmi = NULL;
}
