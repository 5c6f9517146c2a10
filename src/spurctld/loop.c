/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - a turn of the controller's loop: when what is due comes, what is done at its end, and how long it took
 *
 * The slices of one turn together are to stay below 5 ms. Each is about a millisecond, and who comes when
 * the turn has taken long already leaves its work to the next one (rpc_loop_busy_us()).
 */
#include <sys/resource.h>
#include <time.h>

#include "spurctld/feed.h"
#include "spurctld/serve.h"
#include "sys/clock.h"

enum { SOON_UNTIL_US = 2500, SHARED_US = 1500 };

/* A child has our memory: each page that is written is copied, and what we do takes longer than we think. */
static bool is_shared(const struct server *server)
{
    return server->snapshot || server->asides.children.len;
}

int64_t server_busy_us(void *ctx)
{
    struct server *server = ctx;

    return rpc_loop_busy_us(server->rpc_loop) + (is_shared(server) ? SHARED_US : 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct server *server = timer->data;

    ctl_timer(server->ctl, (enum ctl_timer)(timer - server->timers));
}

/*
 * What is due at once comes in the next turn of the loop, once: libuv would call a timer that is
 * started again for now until it is not, and nobody be heard meanwhile. One at least; the others when
 * the turn was short until then, or first in the next one.
 */
static void on_soon(uv_idle_t *idle)
{
    struct server *server = idle->data;

    if (server->stopping)
        server->due_soon &= 1U << CTL_TIMER_LISTS;
    unsigned due = server->due_soon, first = server->soon_at;
    for (unsigned i = 0; i < CTL_TIMERS; i++) {
        unsigned which = (first + i) % CTL_TIMERS, bit = 1U << which;
        if (!(due & server->due_soon & bit))
            continue;
        server->due_soon &= ~bit;
        ctl_timer(server->ctl, (enum ctl_timer)which);
        server->soon_at = which + 1;
        if (server_busy_us(server) > SOON_UNTIL_US)
            break;
    }
    if (!server->due_soon)
        uv_idle_stop(idle);
}

void server_timer(void *ctx, enum ctl_timer which, int64_t at_us)
{
    struct server *server = ctx;
    uv_timer_t *timer = &server->timers[which];

    server->due_soon &= ~(1U << which);
    if (!at_us || (server->stopping && which != CTL_TIMER_LISTS)) { /* lists are finished */
        uv_timer_stop(timer);
        return;
    }
    int64_t left_us = at_us - clock_wall_us();
    if (left_us <= 0) {
        uv_timer_stop(timer);
        server->due_soon |= 1U << which;
        uv_idle_start(&server->soon, on_soon);
        return;
    }
    uv_update_time(server->uv);
    uv_timer_start(timer, on_timer, (uint64_t)(left_us + 999) / 1000, 0);
}

/* Callers are sent to the leader when it is another; the last one may have been this one itself. */
static void tell_leader(struct server *server)
{
    struct state_head head = state_head(ctl_state(server->ctl));
    bool other = strcmp(head.leader, server->options->name) != 0;

    rpc_server_set_leader(server->rpc, ctl_is_leading(server->ctl),
                          other ? head.leader_address : "");
}

static uint64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Memory that the kernel had to find for it, or to copy because a child shares it. */
static uint64_t faults(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
}

/* All that was done in this turn; the next one begins after it, with what is written to the links. */
static void count_turn(struct server *server)
{
    uint64_t cpu = cpu_ns(), faulted = faults();

    if (server->turn_cpu_ns)
        ctl_count_turn(server->ctl, (uint64_t)rpc_loop_busy_us(server->rpc_loop),
                       (cpu - server->turn_cpu_ns) / 1000, faulted - server->turn_faults);
    server->turn_cpu_ns = cpu;
    server->turn_faults = faulted;
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct server *server = prepare->data;

    tell_leader(server);
    server_controllers_turn(server);
    if (server->reload_state)
        server_stop(server, "the state is read again");
    server_journal_turn(server);
    server_feed_turn(server);
    mem_settle();
    server_huge_pages_turn(server);
    server_forked_queries_turn(server);
    server_snapshot_maybe(server);
    ctl_flush(server->ctl);
    count_turn(server);
}

void server_loop_init(struct server *server)
{
    for (int i = 0; i < CTL_TIMERS; i++) {
        uv_timer_init(server->uv, &server->timers[i]);
        server->timers[i].data = server;
    }
    uv_idle_init(server->uv, &server->soon);
    server->soon.data = server;
    uv_prepare_init(server->uv, &server->prepare);
    server->prepare.data = server;
}

/* After that of the links was started: libuv begins with the last one. */
void server_loop_start(struct server *server)
{
    uv_prepare_start(&server->prepare, on_prepare);
}
