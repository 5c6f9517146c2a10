/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - spur-faultsim: runs seeds and says what it saw
 *
 *   spur-faultsim --seeds 1..1000            a line per kind of fault, then the summary
 *   spur-faultsim --seed 4711 --trace        one run, everything that happened
 *   spur-faultsim --mutate early-release     shows that the checks notice a broken model
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "base/util.h"
#include "sim/sim.h"

enum { TWICE_EVERY = 50, TAIL_LINES = 80 };

static const struct {
    const char *name;
    unsigned fault;
} fault_names[] = {
    { "crash", FAULT_CRASH },   { "disk", FAULT_DISK },           { "agent", FAULT_AGENT },
    { "reboot", FAULT_REBOOT }, { "partition", FAULT_PARTITION }, { "reports", FAULT_REPORTS },
    { "clock", FAULT_CLOCK },   { "client", FAULT_CLIENT },       { "node", FAULT_NODE },
    { "stop", FAULT_STOP },     { "flip", FAULT_FLIP },           { "all", FAULT_ALL },
};

/* One line each: what was done to the cluster, and what must be 0 for it. */
static const struct {
    const char *row, *text;
    enum sim_count counts[5];
    const char *zero;
} figures[] = {
    { "F1",
      "controller crashes %llu, of them in mid-write %llu; acknowledged %llu, asked again %llu",
      { COUNT_CRASHES, COUNT_INFLIGHT, COUNT_ACKED, COUNT_RETRIES },
      "lost, reused" },
    { "F6",
      "crashes between two outputs %llu; attempts %llu, scripts started %llu, snapshots %llu",
      { COUNT_MIDWAY, COUNT_ATTEMPTS, COUNT_RUNS, COUNT_SNAPSHOTS },
      "wrong counts" },
    { "F7",
      "agents killed %llu; reports %llu, sent again %llu",
      { COUNT_AGENTS, COUNT_REPORTS, COUNT_REPORTS_2 },
      "exit codes lost" },
    { "F8",
      "partitions %llu; attempts given up after agent_timeout %llu",
      { COUNT_PARTITIONS, COUNT_LOST_NODES },
      "two attempts at once" },
    { "F9",
      "connections broken %llu; messages repeated %llu, of them late %llu",
      { COUNT_BREAKS, COUNT_REPEATED, COUNT_LATE },
      "stuck, double" },
    { "F10", "reboots %llu", { COUNT_REBOOTS }, "stuck" },
    { "F12",
      "full disks %llu, batches refused %llu, write errors %llu",
      { COUNT_DISK_FULL, COUNT_REFUSED, COUNT_DISK_BROKEN },
      "lost" },
    { "F3-5",
      "changes of leader %llu, deposed %llu; controllers stopped %llu, cut off %llu; messages of old epochs %llu",
      { COUNT_LEADERS, COUNT_DEPOSED, COUNT_STOPS, COUNT_CUTS, COUNT_STALE },
      "violations" },
    { "marks",
      "bits flipped in a controller's memory %llu, states read again %llu",
      { COUNT_FLIPS, COUNT_RELOADS },
      "wrong states left" },
    { "F16", "clock jumps %llu", { COUNT_JUMPS }, "wrongly ended" },
    { "work",
      "requeues %llu, suspensions %llu, lists %llu, checks of the whole state %llu",
      { COUNT_REQUEUES, COUNT_SUSPENDS, COUNT_LISTS, COUNT_CHECKS },
      "wrong" },
};

static void print_figures(const uint64_t *count, unsigned violations)
{
    for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
        const enum sim_count *c = figures[i].counts;
        printf("%-4s ", figures[i].row);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        printf(figures[i].text, (unsigned long long)count[c[0]], (unsigned long long)count[c[1]],
               (unsigned long long)count[c[2]], (unsigned long long)count[c[3]],
               (unsigned long long)count[c[4]]);
#pragma GCC diagnostic pop
        printf("; %s %u\n", figures[i].zero, violations);
    }
}

/* The last lines of the run that led there. */
static void print_tail(const struct sim_options *options)
{
    struct sim_options again = *options;
    struct sim_result result;
    char *text = NULL;
    size_t len = 0;

    again.trace = open_memstream(&text, &len);
    if (!again.trace)
        return;
    sim_run(&again, &result);
    fclose(again.trace);
    size_t at = len;
    for (unsigned lines = 0; at > 0 && lines <= TAIL_LINES; at--)
        lines += text[at - 1] == '\n';
    fputs(text + at + (at > 0), stderr);
    free(text);
}

static void report(const struct sim_options *options, const struct sim_result *result)
{
    if (!options->trace)
        print_tail(options);
    fprintf(stderr,
            "spur-faultsim: seed=%llu step=%llu time=%.6f controllers=%u nodes=%u faults=0x%x: %s\n"
            "spur-faultsim: see it all with: spur-faultsim --seed %llu --trace\n",
            (unsigned long long)options->seed, (unsigned long long)result->step,
            (double)result->time_us / 1e6, result->controllers, result->nodes, result->faults,
            result->what, (unsigned long long)options->seed);
}

/* The same seed must be the same run: otherwise a failure could not be looked at again. */
static bool is_repeatable(const struct sim_options *options, const struct sim_result *first)
{
    struct sim_result second;

    sim_run(options, &second);
    if (second.digest == first->digest &&
        memcmp(second.count, first->count, sizeof(first->count)) == 0)
        return true;
    fprintf(stderr, "spur-faultsim: seed=%llu gives two different runs (steps %llu and %llu)\n",
            (unsigned long long)options->seed, (unsigned long long)first->step,
            (unsigned long long)second.step);
    return false;
}

struct arguments {
    struct sim_options options;
    uint64_t first, last;
    unsigned stop_after;
    bool quiet;
};

static int run_seeds(const struct arguments *arguments)
{
    uint64_t total[COUNT_COUNT] = { 0 }, seeds = 0;
    unsigned violations = 0;
    struct sim_options options = arguments->options;
    struct timespec begin, end;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (uint64_t seed = arguments->first; seed <= arguments->last; seed++) {
        struct sim_result result;
        options.seed = seed;
        sim_run(&options, &result);
        seeds++;
        for (int i = 0; i < COUNT_COUNT; i++)
            total[i] += result.count[i];
        if (result.violated) {
            violations++;
            if (!arguments->quiet)
                report(&options, &result);
        } else if (seed % TWICE_EVERY == 0 && !is_repeatable(&options, &result)) {
            violations++;
        }
        if (arguments->stop_after && violations >= arguments->stop_after)
            break;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    print_figures(total, violations);
    printf(
        "sim: seeds=%llu jobs=%llu commands=%llu steps=%llu crashes=%llu seconds=%.1f violations=%u\n",
        (unsigned long long)seeds, (unsigned long long)total[COUNT_JOBS],
        (unsigned long long)total[COUNT_COMMANDS], (unsigned long long)total[COUNT_STEPS],
        (unsigned long long)total[COUNT_CRASHES],
        (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9,
        violations);
    return violations ? 1 : 0;
}

/* ---- arguments ---- */

static bool parse_seeds(const char *text, struct arguments *out)
{
    const char *dots = strstr(text, "..");
    CLEANUP(freep) char *first = dots ? mem_strndup(text, (size_t)(dots - text)) : mem_strdup(text);

    if (!str_to_u64(first, UINT64_MAX, &out->first))
        return false;
    out->last = out->first;
    return !dots || (str_to_u64(dots + 2, UINT64_MAX, &out->last) && out->last >= out->first);
}

static bool parse_faults(const char *text, unsigned *out)
{
    struct span word;

    for (const char *cursor = text; str_next(&cursor, ",", &word);) {
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(fault_names); i++) {
            if (span_eq(word, fault_names[i].name)) {
                *out |= fault_names[i].fault;
                known = true;
            }
        }
        if (!known)
            return false;
    }
    return true;
}

static bool parse_mutation(const char *text, enum sim_mutation *out)
{
    for (int i = 0; i < MUTATE_COUNT; i++) {
        if (str_eq(text, sim_mutation_name((enum sim_mutation)i))) {
            *out = (enum sim_mutation)i;
            return true;
        }
    }
    return false;
}

static int usage(FILE *to, int code)
{
    fputs(
        "usage: spur-faultsim [--seeds A..B | --seed N] [--trace] [--from STEP] [--only FAULT,…]\n"
        "                [--mutate NAME] [--check-every N] [--stop-after N] [--quiet]\n"
        "Runs the real controller over simulated time, disk, network and nodes.\n"
        "  --seeds A..B     these seeds, each a run of its own (default 1..100)\n"
        "  --trace          print everything that happens\n"
        "  --from STEP      print it from this step on\n"
        "  --controllers K  1 or 3, instead of what the seed chooses\n"
        "  --only FAULTS    instead of what the seed chooses:",
        to);
    for (size_t i = 0; i < ARRAY_LEN(fault_names); i++)
        fprintf(to, " %s", fault_names[i].name);
    fputs("\n  --check-every N  check the whole state after so many commands\n"
          "  --stop-after N   end after so many violations\n"
          "  --quiet          only figures and the summary\n"
          "  --mutate NAME    break the model, to see that it is noticed:",
          to);
    for (int i = 1; i < MUTATE_COUNT; i++)
        fprintf(to, " %s", sim_mutation_name((enum sim_mutation)i));
    fputc('\n', to);
    return code;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        { "seeds", required_argument, NULL, 's' },
        { "seed", required_argument, NULL, 's' },
        { "trace", no_argument, NULL, 't' },
        { "from", required_argument, NULL, 'f' },
        { "only", required_argument, NULL, 'o' },
        { "controllers", required_argument, NULL, 'k' },
        { "mutate", required_argument, NULL, 'm' },
        { "quiet", no_argument, NULL, 'q' },
        { "check-every", required_argument, NULL, 'c' },
        { "help", no_argument, NULL, 'h' },
        { "stop-after", required_argument, NULL, 'x' },
        { 0 },
    };
    struct arguments arguments = { .first = 1, .last = 100 };
    uint64_t number;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        bool good = true;
        switch (option) {
        case 's':
            good = parse_seeds(optarg, &arguments);
            break;
        case 't':
            arguments.options.trace = stdout;
            break;
        case 'f':
            good = str_to_u64(optarg, UINT64_MAX, &arguments.options.trace_from);
            break;
        case 'o':
            good = parse_faults(optarg, &arguments.options.only);
            break;
        case 'm':
            good = parse_mutation(optarg, &arguments.options.mutation);
            break;
        case 'c':
            good = str_to_u64(optarg, UINT32_MAX, &number);
            arguments.options.check_every = good ? (unsigned)number : 0;
            break;
        case 'k':
            good = str_to_u64(optarg, 3, &number) && (number == 1 || number == 3);
            arguments.options.controllers = good ? (unsigned)number : 0;
            break;
        case 'x':
            good = str_to_u64(optarg, UINT32_MAX, &number);
            arguments.stop_after = good ? (unsigned)number : 0;
            break;
        case 'q':
            arguments.quiet = true;
            break;
        case 'h':
            return usage(stdout, 0);
        default:
            return usage(stderr, 2);
        }
        if (!good) {
            fprintf(stderr, "spur-faultsim: '%s' is not what this option takes\n", optarg);
            return usage(stderr, 2);
        }
    }
    return optind < argc ? usage(stderr, 2) : run_seeds(&arguments);
}
