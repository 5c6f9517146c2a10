/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gates.c - counters of limits, and the lines that wait until they fall
 *
 * (1) A line hangs at the gate of every holder that was in the way of one of its jobs when it was
 *     last looked at, with what must be so before that job could pass.
 * (2) A gate knows the least that any of its lines needs. While that is not there a fall of its
 *     counter costs a comparison: no line and no job is looked at.
 * (3) Otherwise its lines are taken in the order of their first jobs. Once one has let a job out,
 *     a few more are looked at whose first jobs are before that one: they may be stuck elsewhere, or go
 *     before it. Then the gate waits until these were tried, and goes on with whose turn it is: the
 *     others have what is left. Jobs that would not be tried are let out only when no line has one that would.
 * (4) When the rules are others (limits, holders), all gates are: what was needed to pass the old ones
 *     is of no use. A line that is looked at forgets them; then they are freed. Of an old one nothing
 *     is read but its heaps: its holder may be no more.
 */
#include "sched/gates.h"

#include <stdlib.h>

/* Lines of which only a look can tell, that are passed over, and that may go before one, in one look at a gate. */
enum { LOOKS_MOST = 8, SHOWS_MOST = 2, MORE_MOST = 2 };

static uint64_t in_use(const struct sched *sched, const struct gate *gate, unsigned why)
{
    static const struct planned none;
    uint32_t number = gate->holder->number;
    const struct planned *planned =
        number < sched->planned.count ? &sched->planned.items[number] : &none;

    return why == FOR_JOBS ? gate->holder->jobs + (uint64_t)planned->jobs
                           : gate->holder->used[why] + planned->tres[why];
}

static bool is_shut(const struct sched *sched, const struct hang *hang)
{
    return hang->why < FOR_ANY && (int64_t)in_use(sched, hang->gate, hang->why) + hang->needs > 0;
}

/* (2) */
static bool gate_may_open(const struct sched *sched, const struct gate *gate)
{
    for (unsigned why = 0; why < FOR_ANY; why++) {
        if (gate->has >> why & 1 && (int64_t)in_use(sched, gate, why) + gate->tight[why] <= 0)
            return true;
    }
    return false;
}

static void gate_tighten(struct gate *gate, const struct hang *hang)
{
    unsigned why = hang->why;

    if (why >= FOR_ANY)
        return;
    if (!(gate->has >> why & 1) || hang->needs < gate->tight[why])
        gate->tight[why] = hang->needs;
    gate->has |= 1U << why;
}

static struct gate *gate_of(struct sched *sched, const struct holder *holder)
{
    while (sched->gates.len <= holder->number)
        vec_push(&sched->gates, NULL);
    struct gate **gate = &sched->gates.items[holder->number];
    if (!*gate) {
        *gate = NEW(struct gate);
        (*gate)->holder = holder;
    }
    return *gate;
}

static struct heap *heap_of(struct gate *gate, const struct hang *hang)
{
    return hang->why < FOR_ANY ? &gate->known : &gate->any;
}

void gate_hang(struct sched *sched, struct waiting *line, const struct holder *holder, unsigned why,
               int64_t needs)
{
    struct gate *gate = gate_of(sched, holder);
    struct hang **at = &line->hangs;

    while (*at && ((*at)->gate != gate || (*at)->why != why))
        at = &(*at)->next;
    if (!*at) {
        *at = NEW(struct hang);
        **at = (struct hang){ .line = line, .gate = gate, .why = why };
    }
    struct hang *hang = *at;
    hang->needs = hang->here ? MIN(hang->needs, needs) : needs;
    hang->here = true;
    heap_set(heap_of(gate, hang), &hang->at, NULL, line_first(sched, line));
    gate_tighten(gate, hang);
}

bool gate_bars(struct sched *sched, struct waiting *line)
{
    for (struct hang *hang = line->hangs; hang; hang = hang->next) {
        if (hang->why == FOR_JOBS && is_shut(sched, hang)) {
            gate_hang(sched, line, hang->gate->holder, FOR_JOBS, hang->needs);
            return true;
        }
    }
    return false;
}

void gate_unhang(struct waiting *line, unsigned why, unsigned last)
{
    for (struct hang *hang = line->hangs; hang; hang = hang->next) {
        if (hang->why < why || hang->why > last)
            continue;
        hang->here = false;
        heap_del(heap_of(hang->gate, hang), &hang->at);
    }
}

void hangs_free(struct waiting *line)
{
    gate_unhang(line, 0, FOR_OVER);
    for (struct hang *hang = line->hangs, *next; hang; hang = next) {
        next = hang->next;
        free(hang);
    }
    line->hangs = NULL;
}

/* (4) */
void gates_renew(struct sched *sched)
{
    vec_each (struct gate *, gate, &sched->gates) {
        if (*gate)
            vec_push(&sched->old_gates, *gate);
    }
    vec_clear(&sched->gates);
    vec_clear(&sched->gate_reviews);
    sched->rules++;
    sched->old_lines = 0;
    vec_each (struct waiting *, line, &sched->waits)
        sched->old_lines += *line != NULL;
}

/* Those that are over wait for any counter of theirs. */
static void hang_over(struct sched *sched, struct waiting *line)
{
    const struct holder *holders[HOLDERS_MOST];
    const struct job *job = state_job(sched->state, line->head.id);
    const struct partition *partition = state_partition(sched->state, job->shape->partitions[0]);
    size_t count = limits_holders(sched->state, job, partition, holders);

    for (size_t i = 0; i < count; i++)
        gate_hang(sched, line, holders[i], FOR_OVER, 0);
}

void line_renew(struct sched *sched, struct waiting *line)
{
    bool over = false;

    if (line->rules == sched->rules)
        return;
    for (const struct hang *hang = line->hangs; hang; hang = hang->next)
        over = over || (hang->here && hang->why == FOR_OVER);
    line->rules = sched->rules;
    line->via = NULL;
    hangs_free(line);
    vec_each (struct bin_at, at, &line->bins)
        family_charge(sched, at->family, state_job(sched->state, line_head(&at->bin->jobs).id));
    if (over && line->bins.len)
        hang_over(sched, line);
    sched->old_lines--;
}

static void gate_free(struct gate *gate)
{
    if (!gate)
        return;
    vec_done(&gate->known.items);
    vec_done(&gate->any.items);
    free(gate);
}

void gates_tidy(struct sched *sched, unsigned *budget)
{
    for (unsigned left = *budget / 4; !sched->old_lines && sched->old_gates.len && left; left--) {
        gate_free(sched->old_gates.items[--sched->old_gates.len]);
        budget_take(budget, 1);
    }
}

void gate_review(struct sched *sched, struct gate *gate)
{
    if (gate->review || (!heap_top(&gate->known) && !heap_top(&gate->any)))
        return;
    gate->review = true;
    vec_push(&sched->gate_reviews, gate->holder->number);
}

void gate_fell(struct sched *sched, const struct holder *holder)
{
    struct gate *gate =
        holder->number < sched->gates.len ? sched->gates.items[holder->number] : NULL;

    if (!gate)
        return;
    gate->fell = ++sched->falls;
    gate->turn = 0;
    gate_review(sched, gate);
}

/* Nothing of it could go: what its lines need is worked out anew. */
static void gate_measure(struct gate *gate)
{
    gate->has = 0;
    for (size_t i = 0; i < gate->known.items.len; i++)
        gate_tighten(gate, CONTAINER_OF(gate->known.items.items[i].at, struct hang, at));
}

/* The hang whose line is next: of those that are not shut for all. */
static struct hang *gate_next(const struct sched *sched, const struct gate *gate)
{
    const struct heap_item *any = heap_top(&gate->any);
    const struct heap_item *known = gate_may_open(sched, gate) ? heap_top(&gate->known) : NULL;
    const struct heap_item *top = any;

    if (known && (!any || order_before(known->key, any->key)))
        top = known;
    return top ? CONTAINER_OF(top->at, struct hang, at) : NULL;
}

bool gate_has_before(const struct sched *sched, const struct gate *gate, struct order order)
{
    const struct hang *hang = gate_next(sched, gate);

    return hang && order_before(line_first(sched, hang->line), order);
}

void gate_again(struct sched *sched, struct gate *gate, struct waiting *line)
{
    line->again = true;
    line->turn = 0;
    gate_hang(sched, line, gate->holder, FOR_ANY, 0);
    gate_review(sched, gate);
}

/* One look at a gate. */
struct gate_look {
    VEC(struct hang *) aside;
    struct waiting *cold[SHOWS_MOST];
    size_t colds;
    unsigned looks;
    uint64_t turn;
    bool out;
    struct order first; /* of those that were let out */
    unsigned more;      /* lines that were looked at after one had let a job out */
};

static void look_line(struct sched *sched, struct gate *gate, struct waiting *line,
                      struct gate_look *look, bool show, unsigned *budget)
{
    bool fell = gate->fell > line->over_at;
    unsigned looked = 0;

    line->turn = look->turn;
    line->again = false;
    line->outs++; /* so that it stays */
    bool out = line_look(sched, line, fell, show, &looked) == LINE_OUT;
    line->outs--;
    if (out) {
        line->via = gate;
        if (!look->out || order_before(line->let, look->first))
            look->first = line->let;
        look->out = true;
    } else if (!show && line->colds && look->colds < SHOWS_MOST) {
        look->cold[look->colds++] = line;
    }
    line_tidy(sched, line);
    budget_take(budget, COST_LINE + looked / JOBS_PER_COST);
}

/* Nobody was let out, or one who may be behind the first of that line. */
static bool may_go_on(const struct sched *sched, const struct gate_look *look,
                      const struct hang *hang)
{
    return !look->out ||
           (look->more < MORE_MOST && order_before(line_first(sched, hang->line), look->first));
}

/* (3) */
void gate_look(struct sched *sched, struct gate *gate, unsigned *budget)
{
    struct gate_look look = { .turn = gate->turn ? gate->turn : ++sched->gate_turns };
    struct hang *hang;

    gate->review = false;
    gate->turn = 0;
    while (*budget && (hang = gate_next(sched, gate)) && may_go_on(sched, &look, hang)) {
        struct waiting *line = hang->line;
        bool was = line->turn == look.turn || hang->turn == look.turn;
        if (was || line->outs || is_shut(sched, hang)) {
            heap_del(heap_of(gate, hang), &hang->at);
            vec_push(&look.aside, hang);
            hang->turn = look.turn;
            budget_take(budget, !was && look.aside.len % ITEMS_PER_COST == 0);
            continue;
        }
        if (hang->why >= FOR_ANY && !line->again && ++look.looks > LOOKS_MOST)
            break;
        look.more += look.out;
        look_line(sched, gate, line, &look, false, budget);
    }
    bool all = !heap_top(&gate->known);
    vec_each (struct hang *, at, &look.aside) {
        if ((*at)->here && !(*at)->at)
            heap_set(heap_of(gate, *at), &(*at)->at, NULL, line_first(sched, (*at)->line));
    }
    vec_done(&look.aside);
    if (all)
        gate_measure(gate);
    if (!*budget && !look.out && gate_next(sched, gate)) {
        gate_review(sched, gate);
        gate->turn = look.turn;
        return;
    }
    for (size_t i = 0; i < look.colds && !look.out; i++)
        look_line(sched, gate, look.cold[i], &look, true, budget);
}

void gates_done(struct sched *sched)
{
    vec_each (struct gate *, gate, &sched->gates)
        gate_free(*gate);
    vec_each (struct gate *, gate, &sched->old_gates)
        gate_free(*gate);
    vec_done(&sched->gates);
    vec_done(&sched->old_gates);
    vec_done(&sched->gate_reviews);
}
