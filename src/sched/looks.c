/* SPDX-License-Identifier: Apache-2.0 */
/*
 * looks.c - who of a line that waits for limits goes back to its queue
 *
 * (1) When a counter falls, the first of a line that limits allow and that will be tried goes back
 *     to its class. It is out: the next one follows when it was tried, so a place that is free is
 *     not run for by the whole line.
 * (2) Those whose family is cold cannot use it. Only when none will be tried some are shown, that
 *     is go back too: SHOW_MOST at once, and as many with the next job that ends, or all when none
 *     is left to end.
 * (3) Bins that were passed because their family was cold are open. When it becomes hot and has
 *     nobody to try, or nobody who is short enough, their lines are looked at, in the order of the
 *     first jobs of these bins, until one lets a job out. So are those whose first job goes before
 *     the one that is about to be tried. Nobody is shown then, unless all go strictly in order.
 * (4) A job that would be given more than it asks for, and more than there is room for, is over: it
 *     is not let out again until a counter falls, or hosts can be used that could not.
 * (5) When all lines are to be looked at, that is done some in each slice, and others are planned
 *     meanwhile: who has to wait for it waited before.
 */
#include "sched/gates.h"

#include <stdlib.h>

/* Jobs of one look: shown, of one bin, without a counter to wait for; counters; lines. */
enum { SHOW_MOST = 1, BIN_MOST = 16, LOST_MOST = 16, WALLS_MOST = 8, PASS_MOST = 4 };
enum { BINS_PER_JOB = 8 }; /* that are passed while one job is looked at */

/* ---- who goes ---- */

void waits_review(struct sched *sched, uint32_t number, bool fell)
{
    struct waiting *line = sched->waits.items[number - 1];

    if (!line) /* nobody is left in it */
        return;
    line->fell = line->fell || fell;
    line->woken = false;
    if (!line->review)
        vec_push(&sched->line_reviews, number);
    line->review = true;
}

void waits_out(struct sched *sched, uint32_t number, int by)
{
    struct waiting *line = sched->waits.items[number - 1];

    line->outs += (uint32_t)by;
    if (by < 0 && !line->outs) /* it was tried: the next one */
        waits_review(sched, number, false);
}

/* A counter that is in the way: of a TRES there is so much left. */
struct wall {
    const struct holder *holder;
    size_t tres;
    uint64_t room, most;
    uint64_t least; /* that a bin asks for, of those that it is in the way of */
};

/* What a look finds. */
struct look {
    struct wall walls[WALLS_MOST];
    size_t wall_count;
    uint64_t turn;
    bool fell;
    bool shut; /* no job of the line may go */
    uint32_t lost[LOST_MOST];
    size_t losts;
    unsigned looked, passed; /* jobs, and bins */
};

/* A hit that is in the way of all bins that ask for as much is remembered: they are passed. */
static void meet(struct sched *sched, struct waiting *line, const struct family *family,
                 const struct limit_hit *hit, struct look *look)
{
    size_t count;

    if (hit->is != LIMIT_TRES || line->partition_count > 1 || look->wall_count == WALLS_MOST) {
        line_hang(sched, line, family, hit);
        look->shut = line->partition_count == 1 && hit->is == LIMIT_JOBS;
        return;
    }
    size_t tres = (size_t)(hit->tres - state_tres(sched->state, &count));
    look->walls[look->wall_count++] = (struct wall){ .holder = hit->holder,
                                                     .tres = tres,
                                                     .most = hit->most,
                                                     .room = hit->most - MIN(hit->used, hit->most),
                                                     .least = family->charge[tres] };
}

static bool meets_wall(const struct family *family, struct look *look)
{
    for (size_t i = 0; i < look->wall_count; i++) {
        struct wall *wall = &look->walls[i];
        uint64_t asks = family->charge[wall->tres];
        if (asks <= wall->room)
            continue;
        wall->least = MIN(wall->least, asks);
        return true;
    }
    return false;
}

/*
 * The first job of the bin that may go; NULL: none. `hot`: and would be tried; then the bin stays to
 * be looked at for others.
 */
static const struct job *look_in(struct sched *sched, struct waiting *line, struct bin_at *at,
                                 struct look *look, bool hot)
{
    struct line_cursor cursor = { .item = 1 }; /* behind the head */
    struct order order = line->heads.items[at - line->bins.items];
    bool cold = false;

    at->hot_turn = look->turn;
    pend_fetch(sched,
               order.id); /* mostly it is the first that goes: its memory, and that of its queue */
    __builtin_prefetch(&at->bin->jobs, 1);
    for (unsigned i = 0; i < BIN_MOST && !order_is_last(order);
         i++, order = line_next(&at->bin->jobs, &cursor)) {
        struct limit_hit hit;
        const struct pend *pend = pend_find(sched, order.id);
        look->looked++;
        if (pend->over && !look->fell) /* (4) */
            continue;
        line_fetch(&at->bin->jobs, 0);
        if (hot && !class_would_try(sched, pend, order.id)) {
            cold = true;
            continue;
        }
        const struct job *job = state_job(sched->state, order.id);
        line_fetch(&at->bin->jobs, 1);
        if (limits_allow_any(sched->state, job, &sched->planned, &hit)) {
            line_fetch(&at->bin->jobs, 2);
            return job;
        }
        if (!hit.holder) {
            if (look->losts < LOST_MOST)
                look->lost[look->losts++] = order.id;
            continue;
        }
        meet(sched, line, at->family, &hit, look);
        if (hit.is != LIMIT_OTHER && line->partition_count == 1) { /* waits.c (2) */
            cold = false;
            break;
        }
    }
    if (!cold)
        at->turn = look->turn;
    return NULL;
}

/* The bin that has the first job of those that were not looked at; `hot`: and would be tried. */
static struct bin_at *next_bin(struct sched *sched, const struct waiting *line, struct look *look,
                               bool hot)
{
    struct order first = ORDER_LAST;
    struct bin_at *found = NULL;

    look->passed += (unsigned)line->bins.len;
    for (size_t i = 0; i < line->bins.len; i++) {
        if (!order_before(line->heads.items[i], first))
            continue;
        struct bin_at *at = &line->bins.items[i];
        if (at->turn == look->turn)
            continue;
        if (hot && (at->hot_turn == look->turn || !family_would_try(sched, at->family, INT64_MIN) ||
                    !family_would_try(sched, at->family, at->shortest_us)))
            continue;
        if (meets_wall(at->family, look)) {
            at->turn = look->turn;
            continue;
        }
        first = line->heads.items[i];
        found = at;
    }
    return found;
}

/* Lets out the first that will be tried. */
static bool look_hot(struct sched *sched, struct waiting *line, struct look *look)
{
    struct bin_at *at;

    while (!look->shut && (at = next_bin(sched, line, look, true))) {
        const struct job *job = look_in(sched, line, at, look, true);
        if (job)
            line->let = class_order(sched, job);
        if (job && class_let_out(sched, job, true))
            return true;
        if (job) /* it is in its queue and not hot after all */
            waits_review(sched, line->number + 1, false);
    }
    return false;
}

/* Lets out some that will not be tried; false when there was none. */
static bool look_cold(struct sched *sched, struct waiting *line, struct look *look)
{
    unsigned shown = 0;
    struct bin_at *at;

    while (!look->shut && shown < SHOW_MOST && (at = next_bin(sched, line, look, false))) {
        const struct job *job = look_in(sched, line, at, look, false);
        if (!job)
            continue;
        class_let_out(sched, job, false); /* the bin may be gone then; else it stays open */
        shown++;
    }
    return shown > 0;
}

static bool is_busy(const struct sched *sched, const struct holder *holder)
{
    return holder->jobs ||
           (holder->number < sched->planned.count && sched->planned.items[holder->number].jobs);
}

/* (2): some are left that could be let out too. When something of a holder of theirs ends. */
static void show_more_later(struct sched *sched, struct waiting *line)
{
    const struct holder *holders[HOLDERS_MOST];
    const struct job *job = state_job(sched->state, line->head.id);
    const struct partition *partition = state_partition(sched->state, job->shape->partitions[0]);
    size_t count = limits_holders(sched->state, job, partition, holders);

    for (size_t i = 0; i < count; i++) {
        if (is_busy(sched, holders[i])) {
            gate_hang(sched, line, holders[i], FOR_ANY, 0);
            return;
        }
    }
    waits_review(sched, line->number + 1, false);
}

/* Those that a limit is in the way of are shut, those that were passed are open. (3) */
static void shut_bins(const struct sched *sched, struct waiting *line, struct look *look)
{
    look->passed += (unsigned)line->bins.len;
    if (look->shut && !line->open)
        return;
    line->open = false;
    vec_each (struct bin_at, at, &line->bins) {
        bool was = at->shut;
        bool cold = at->family->end_by_us == INT64_MIN;
        if (!(look->shut ? at->shut : cold && !at->shut)) /* else as it was, or not looked at */
            at->shut = look->shut || at->turn == look->turn;
        line->open = line->open || !at->shut;
        if (!at->shut)
            look->looked += bin_open(sched, at->bin);
        else if (!was)
            bin_shut(at->bin);
    }
}

enum line_seen line_look(struct sched *sched, struct waiting *line, bool fell, bool show,
                         unsigned *looked)
{
    struct look look = { .fell = fell, .turn = ++sched->line_turns };
    struct limit_hit never = { 0 };
    bool shown = false;

    gate_unhang(line, 0, FOR_ANY);
    look.shut = line->bins.len && gate_bars(sched, line);
    line->outs++; /* so that it stays */
    bool out = look_hot(sched, line, &look);
    if (!out && show)
        shown = look_cold(sched, line, &look);
    for (size_t i = 0; i < look.losts; i++)
        class_limit_job(sched, state_job(sched->state, look.lost[i]), &never, false);
    line->outs--;
    if (out) {
        gate_unhang(line, 0, FOR_ANY);
        *looked += look.looked + look.passed / BINS_PER_JOB;
        return LINE_OUT;
    }
    if (look.losts && line->bins.len) /* there may be more */
        waits_review(sched, line->number + 1, fell);
    line->colds = line->bins.len && !look.shut && (shown || next_bin(sched, line, &look, false));
    for (size_t i = 0; i < look.wall_count && line->bins.len; i++) {
        const struct wall *wall = &look.walls[i];
        int64_t most = (int64_t)MIN(wall->most, (uint64_t)INT64_MAX / 2);
        gate_hang(sched, line, wall->holder, (unsigned)wall->tres, (int64_t)wall->least - most);
    }
    shut_bins(sched, line, &look);
    if (line->colds)
        show_more_later(sched, line);
    *looked += look.looked + look.passed / BINS_PER_JOB;
    line_tidy(sched, line);
    return LINE_STAYS;
}

/* ---- reviews ---- */

static void review_line(struct sched *sched, uint32_t number, unsigned *budget)
{
    struct waiting *line = sched->waits.items[number - 1];

    line_renew(sched, line);
    struct gate *via = line->via;
    bool fell = line->fell, show = !via && !line->woken;
    unsigned looked = 0;

    line->review = false;
    if (line->outs)
        return; /* when that was tried */
    line->via = NULL;
    if (via && line->bins.len && gate_has_before(sched, via, line_first(sched, line))) {
        gate_again(sched, via, line);
        return;
    }
    line->fell = false;
    line->outs++;
    bool out = line_look(sched, line, fell, show, &looked) == LINE_OUT;
    line->outs--;
    if (out)
        line->via = via;
    else if (via)
        gate_review(sched, via);
    budget_take(budget, COST_LINE + looked / JOBS_PER_COST);
    line_tidy(sched, line);
}

/* All of them are to be looked at: those that were go back to the others. */
static void open_again(struct family *family)
{
    if (family_passed(family)->items.len > family_open(family)->items.len)
        family->open_side = !family->open_side;
    struct heap *passed = family_passed(family);
    while (passed->items.len) {
        struct heap_item item = passed->items.items[passed->items.len - 1];
        heap_del(passed, item.at);
        CONTAINER_OF(item.at, struct bin, open_at)->side = family->open_side;
        heap_set(family_open(family), item.at, family, item.key);
    }
}

void waits_wake(struct sched *sched, struct family *family)
{
    if (!family->waking)
        vec_push(&sched->woken, family);
    family->waking = true;
    open_again(family);
}

/* The line of the bin is to be looked at. */
static void wake_line(struct sched *sched, const struct bin *bin)
{
    struct waiting *line = bin->line;
    bool show = sched->in_order || (line->review && !line->woken);

    waits_review(sched, line->number + 1, false);
    line->woken = !show;
}

static struct bin *pass_first(struct family *family)
{
    struct heap_item item = *heap_top(family_open(family));
    struct bin *bin = CONTAINER_OF(item.at, struct bin, open_at);

    heap_del(family_open(family), item.at);
    bin->side = !family->open_side;
    heap_set(family_passed(family), item.at, family, item.key);
    return bin;
}

bool waits_ahead(struct sched *sched, struct family *family, struct order order)
{
    if (!family_is_open(family))
        return false;
    if (family->passed_at != sched->changes) { /* something happened since they were looked at */
        family->passed_at = sched->changes;
        open_again(family);
    }
    const struct heap_item *top = heap_top(family_open(family));
    if (!top || !order_before(top->key, order))
        return false;
    wake_line(sched, pass_first(family));
    return true;
}

/* (3) */
static void wake(struct sched *sched, unsigned *budget)
{
    struct family *family = sched->woken.items[sched->woken.len - 1];
    const struct heap_item *top = NULL;
    bool woken = false;

    for (unsigned i = 0; i < PASS_MOST && !woken; i++) {
        top =
            family->end_by_us == INT64_MIN || family->hot_at ? NULL : heap_top(family_open(family));
        if (!top)
            break;
        const struct bin *bin = pass_first(family);
        woken = sched->in_order || family_is_hot(sched, family, bin->shortest_us);
        if (woken)
            wake_line(sched, bin);
    }
    if (!top) {
        family->waking = false;
        sched->woken.len--;
    }
    budget_take(budget, 1);
}

void limits_review(struct sched *sched, unsigned *budget)
{
    while (*budget && limits_to_review(sched)) {
        if (sched->woken.len && !sched->line_reviews.len && !sched->gate_reviews.len)
            wake(sched, budget);
        else if (sched->line_reviews.len)
            review_line(sched, sched->line_reviews.items[--sched->line_reviews.len], budget);
        else
            gate_look(sched,
                      sched->gates.items[sched->gate_reviews.items[--sched->gate_reviews.len]],
                      budget);
    }
}

bool limits_to_review(const struct sched *sched)
{
    return sched->line_reviews.len || sched->gate_reviews.len || sched->woken.len;
}

void waits_review_all(struct sched *sched)
{
    sched->falls++;
    sched->line_sweep = (uint32_t)sched->waits.len;
}

/* (5) */
void waits_sweep(struct sched *sched, unsigned *budget)
{
    for (; sched->line_sweep && *budget; sched->line_sweep--) {
        const struct waiting *line = sched->waits.items[sched->line_sweep - 1];
        bool soon = line && line->review;
        if (!line)
            continue;
        waits_review(sched, sched->line_sweep, true);
        if (!soon)
            review_line(sched, sched->line_reviews.items[--sched->line_reviews.len], budget);
    }
}
