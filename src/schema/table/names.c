// SPDX-License-Identifier: Apache-2.0
/*
 * names.c - the rows of every enumeration that people see, and how to find one
 */
#include "schema/names.h"

#include <ctype.h>
#include <signal.h>
#include <string.h>

#include "proto/config.pb-c.h"
#include "proto/job.pb-c.h"
#include "proto/node.pb-c.h"

#define TABLE(variable, words, table)                     \
    const struct name_table variable = { .what = (words), \
                                         .rows = (table), \
                                         .count = ARRAY_LEN(table) }

static const struct name_row job_states[] = {
    { "PENDING", "PD", JOB_PENDING, "waits in the queue" },
    { "RUNNING", "R", JOB_RUNNING, "has its allocation" },
    { "SUSPENDED", "S", JOB_SUSPENDED, "keeps its allocation, processes are stopped" },
    { "COMPLETED", "CD", JOB_COMPLETED, "ended with exit code 0" },
    { "CANCELLED", "CA", JOB_CANCELLED, "ended by its user or an administrator" },
    { "FAILED", "F", JOB_FAILED, "ended with another exit code or by a failure" },
    { "TIMEOUT", "TO", JOB_TIMEOUT, "ended at its time limit" },
    { "NODE_FAIL", "NF", JOB_NODE_FAIL, "ended because a node failed" },
    { "PREEMPTED", "PR", JOB_PREEMPTED, "ended to make room for another job" },
    { "BOOT_FAIL", "BF", JOB_BOOT_FAIL, "ended because nodes did not boot" },
    { "DEADLINE", "DL", JOB_DEADLINE, "ended at its deadline" },
    { "OUT_OF_MEMORY", "OOM", JOB_OUT_OF_MEMORY, "ended because memory ran out" },
};
TABLE(job_state_names, "job state", job_states);

/* A job shows the first of these flags that it has. Those without a JobFlag are Slurm's own. */
static const struct name_row job_flags[] = {
    { "COMPLETING", "CG", JOB_FLAG_COMPLETING, "is ending, its nodes are being cleaned" },
    { "STAGE_OUT", "SO", 0x800000, "burst buffer is staged out" },
    { "CONFIGURING", "CF", JOB_FLAG_CONFIGURING, "has its nodes, which are being prepared" },
    { "EXPEDITING", "PD", 0x1000000, "is requeued ahead of others" },
    { "RESIZING", "RS", JOB_FLAG_RESIZING, "is changing its size" },
    { "REQUEUED", "RQ", JOB_FLAG_REQUEUE, "is being put back into the queue" },
    { "REQUEUE_FED", "RF", 0x100000, "is requeued by a federation" },
    { "REQUEUE_HOLD", "RH", JOB_FLAG_REQUEUE_HOLD, "is requeued and held" },
    { "SPECIAL_EXIT", "SE", JOB_FLAG_SPECIAL_EXIT, "is requeued in the special exit state, held" },
    { "STOPPED", "ST", JOB_FLAG_STOPPED, "was stopped by a signal, keeps its CPUs" },
    { "REVOKED", "RV", JOB_FLAG_REVOKED, "was started by another cluster" },
    { "RESV_DEL_HOLD", "RD", JOB_FLAG_RESV_DEL_HOLD,
      "is held because its reservation was deleted" },
    { "SIGNALING", "SI", JOB_FLAG_SIGNALING, "is being signalled" },
};
TABLE(job_flag_names, "job state", job_flags);

static const struct name_row node_states[] = {
    { "UNKNOWN", "UNK", NODE_UNKNOWN, "not seen yet" },
    { "DOWN", "DOWN", NODE_DOWN, "not usable" },
    { "IDLE", "IDLE", NODE_IDLE, "free" },
    { "ALLOCATED", "ALLOC", NODE_ALLOCATED, "all CPUs are given to jobs" },
    { "ERROR", "ERR", NODE_ERROR, "in an error state" },
    { "MIXED", "MIX", NODE_MIXED, "some CPUs are given to jobs" },
    { "FUTURE", "FUTR", NODE_FUTURE, "configured for later" },
};
TABLE(node_state_names, "node state", node_states);

static const struct name_row node_flags[] = {
    { "BLOCKED", NULL, 0x8000000, "blocked by an exclusive topology block" },
    { "CLOUD", NULL, NODE_FLAG_CLOUD, "a cloud node" },
    { "COMPLETING", "COMP", NODE_FLAG_COMPLETING, "a job is ending on it" },
    { "DRAIN", NULL, NODE_FLAG_DRAIN, "takes no new jobs" },
    { "DYNAMIC_FUTURE", NULL, 0x80000, "mapped to a future node" },
    { "DYNAMIC_NORM", NULL, NODE_FLAG_DYNAMIC, "joined without being configured" },
    { "EXTERNAL", NULL, 0x10, "managed elsewhere" },
    { "INVALID_REG", "INVAL", NODE_FLAG_INVALID_REG, "has less than is configured" },
    { "FAIL", NULL, NODE_FLAG_FAIL, "expected to fail" },
    { "MAINTENANCE", "MAINT", NODE_FLAG_MAINT, "in a maintenance reservation" },
    { "POWER_DOWN", NULL, 0x800000, "asked to power down" },
    { "POWER_UP", NULL, 0x1000000, "asked to power up" },
    { "POWERED_DOWN", NULL, NODE_FLAG_POWERED_DOWN, "powered down" },
    { "REBOOT_REQUESTED", NULL, NODE_FLAG_REBOOT_REQUESTED, "a reboot was asked for" },
    { "REBOOT_ISSUED", NULL, NODE_FLAG_REBOOT_ISSUED, "is rebooting" },
    { "RESERVED", "RESV", NODE_FLAG_RESERVED, "in a reservation" },
    { "NOT_RESPONDING", NULL, NODE_FLAG_NO_RESPOND, "does not answer" },
    { "PLANNED", "PLND", NODE_FLAG_PLANNED, "kept for a planned job" },
    { "POWERING_UP", NULL, NODE_FLAG_POWERING_UP, "is powering up" },
    { "POWERING_DOWN", NULL, 0x40000, "is powering down" },
};
TABLE(node_flag_names, "node state", node_flags);

static const struct name_row partition_states[] = {
    { "UP", NULL, PARTITION_UP, "takes and starts jobs" },
    { "DOWN", NULL, PARTITION_DOWN, "takes jobs, starts none" },
    { "DRAIN", NULL, PARTITION_DRAIN, "takes no jobs, starts those it has" },
    { "INACTIVE", NULL, PARTITION_INACTIVE, "takes no jobs, starts none" },
};
TABLE(partition_state_names, "partition state", partition_states);

static const struct name_row mail_types[] = {
    { "BEGIN", NULL, MAIL_BEGIN, "the job starts" },
    { "END", NULL, MAIL_END, "the job ends" },
    { "FAIL", NULL, MAIL_FAIL, "the job fails" },
    { "REQUEUE", NULL, MAIL_REQUEUE, "the job is requeued" },
    { "TIME_LIMIT", NULL, MAIL_TIME100, "the time limit is reached" },
    { "TIME_LIMIT_90", NULL, MAIL_TIME90, "90 % of the time is used" },
    { "TIME_LIMIT_80", NULL, MAIL_TIME80, "80 % of the time is used" },
    { "TIME_LIMIT_50", NULL, MAIL_TIME50, "half of the time is used" },
    { "STAGE_OUT", NULL, MAIL_STAGE_OUT, "stage-out is done" },
    { "ARRAY_TASKS", NULL, MAIL_ARRAY_TASKS, "for each task of an array" },
    { "INVALID_DEPEND", NULL, MAIL_INVALID_DEPEND, "a dependency can never be fulfilled" },
};
TABLE(mail_type_names, "mail type", mail_types);

static const struct name_row dependencies[] = {
    { "after", NULL, 1, "after the others started or were cancelled, with +minutes later" },
    { "afterany", NULL, 2, "after the others ended" },
    { "afterburstbuffer", NULL, 3, "after their stage-out ended" },
    { "aftercorr", NULL, 4, "each task after the same task of the other array ended well" },
    { "afternotok", NULL, 5, "after the others failed" },
    { "afterok", NULL, 6, "after the others ended with exit code 0" },
    { "singleton", NULL, 7, "after all earlier jobs of this name and user ended" },
};
TABLE(dependency_names, "dependency", dependencies);

static const struct name_row exclusives[] = {
    { "NO", NULL, EXCLUSIVE_NO, "nodes may be shared" },
    { "NODE", NULL, EXCLUSIVE_NODE, "nodes are for this job alone" },
    { "USER", NULL, EXCLUSIVE_USER, "nodes are for jobs of this user" },
    { "MCS", NULL, EXCLUSIVE_MCS, "nodes are for jobs of this MCS label" },
    { "TOPO", NULL, EXCLUSIVE_TOPO, "topology block is for this job alone" },
};
TABLE(exclusive_names, "sharing", exclusives);

static const struct name_row signals[] = {
    { "HUP", NULL, SIGHUP, NULL },    { "INT", NULL, SIGINT, NULL },
    { "QUIT", NULL, SIGQUIT, NULL },  { "ILL", NULL, SIGILL, NULL },
    { "TRAP", NULL, SIGTRAP, NULL },  { "ABRT", NULL, SIGABRT, NULL },
    { "BUS", NULL, SIGBUS, NULL },    { "FPE", NULL, SIGFPE, NULL },
    { "KILL", NULL, SIGKILL, NULL },  { "USR1", NULL, SIGUSR1, NULL },
    { "SEGV", NULL, SIGSEGV, NULL },  { "USR2", NULL, SIGUSR2, NULL },
    { "PIPE", NULL, SIGPIPE, NULL },  { "ALRM", NULL, SIGALRM, NULL },
    { "TERM", NULL, SIGTERM, NULL },  { "STKFLT", NULL, SIGSTKFLT, NULL },
    { "CHLD", "CLD", SIGCHLD, NULL }, { "CONT", NULL, SIGCONT, NULL },
    { "STOP", NULL, SIGSTOP, NULL },  { "TSTP", NULL, SIGTSTP, NULL },
    { "TTIN", NULL, SIGTTIN, NULL },  { "TTOU", NULL, SIGTTOU, NULL },
    { "URG", NULL, SIGURG, NULL },    { "XCPU", NULL, SIGXCPU, NULL },
    { "XFSZ", NULL, SIGXFSZ, NULL },  { "VTALRM", NULL, SIGVTALRM, NULL },
    { "PROF", NULL, SIGPROF, NULL },  { "WINCH", NULL, SIGWINCH, NULL },
    { "IO", "POLL", SIGIO, NULL },    { "PWR", NULL, SIGPWR, NULL },
    { "SYS", NULL, SIGSYS, NULL },
};
TABLE(signal_names, "signal", signals);

const struct name_row *name_find(const struct name_table *table, const char *text, size_t len)
{
    struct span word = { text, len };

    for (size_t i = 0; i < table->count; i++) {
        const struct name_row *row = &table->rows[i];

        if (span_ieq(word, row->name) || (row->code && span_ieq(word, row->code)))
            return row;
    }
    return NULL;
}

const struct name_row *name_row_of(const struct name_table *table, uint32_t value)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->rows[i].value == value)
            return &table->rows[i];
    }
    return NULL;
}

const char *name_of(const struct name_table *table, uint32_t value)
{
    const struct name_row *row = name_row_of(table, value);

    return row ? row->name : "?";
}

size_t name_add_mask(const struct name_table *table, uint32_t mask, const char *joiner,
                     struct str *out)
{
    size_t added = 0;

    for (size_t i = 0; i < table->count; i++) {
        if (!(table->rows[i].value & mask))
            continue;
        if (added++)
            str_add(out, joiner);
        str_add(out, table->rows[i].name);
    }
    return added;
}

static const struct name_row *job_row(uint32_t state, uint32_t flags)
{
    for (size_t i = 0; i < ARRAY_LEN(job_flags); i++) {
        if (flags & job_flags[i].value)
            return &job_flags[i];
    }
    return name_row_of(&job_state_names, state);
}

const char *job_state_text(uint32_t state, uint32_t flags)
{
    const struct name_row *row = job_row(state, flags);

    return row ? row->name : "?";
}

const char *job_state_code(uint32_t state, uint32_t flags)
{
    const struct name_row *row = job_row(state, flags);

    return row ? row->code : "?";
}

bool job_state_ended(uint32_t state)
{
    return state >= JOB_COMPLETED;
}

bool job_state_find(const char *text, size_t len, uint32_t *value, bool *is_flag)
{
    const struct name_row *row = name_find(&job_state_names, text, len);

    *is_flag = !row;
    if (!row)
        row = name_find(&job_flag_names, text, len);
    if (row)
        *value = row->value;
    return row != NULL;
}

/* The last character that a flag adds; the first that applies wins. */
static const struct {
    uint32_t flag;
    char suffix;
} node_suffixes[] = {
    { NODE_FLAG_MAINT, '$' },
    { NODE_FLAG_REBOOT_ISSUED, '^' },
    { NODE_FLAG_REBOOT_REQUESTED, '@' },
    { NODE_FLAG_POWERING_UP, '#' },
    { 0x40000, '%' }, /* powering down */
    { NODE_FLAG_POWERED_DOWN, '~' },
    { 0x800000, '!' }, /* power down asked for */
    { NODE_FLAG_NO_RESPOND, '*' },
};

struct node_word {
    const char *text, *code;
    uint32_t said; /* flags that the word itself says, so that no character repeats them */
};

static struct node_word node_word(uint32_t state, uint32_t flags)
{
    bool busy = state == NODE_ALLOCATED || state == NODE_MIXED;
    const struct name_row *row = name_row_of(&node_state_names, state);

    if (flags & NODE_FLAG_INVALID_REG)
        return (struct node_word){ "INVAL", "INVAL", UINT32_MAX };
    if (flags & NODE_FLAG_DRAIN)
        return busy || flags & NODE_FLAG_COMPLETING ? (struct node_word){ "DRAINING", "DRNG", 0 }
                                                    : (struct node_word){ "DRAINED", "DRAIN", 0 };
    if (flags & NODE_FLAG_FAIL)
        return busy || flags & NODE_FLAG_COMPLETING ? (struct node_word){ "FAILING", "FAILG", 0 }
                                                    : (struct node_word){ "FAIL", "FAIL", 0 };
    if (flags & NODE_FLAG_MAINT && state == NODE_IDLE)
        return (struct node_word){ "MAINT", "MAINT", NODE_FLAG_MAINT };
    if (flags & (NODE_FLAG_REBOOT_REQUESTED | NODE_FLAG_REBOOT_ISSUED) && !busy)
        return (struct node_word){ "REBOOT", "BOOT", NODE_FLAG_REBOOT_REQUESTED };
    if (flags & NODE_FLAG_COMPLETING && (state == NODE_IDLE || state == NODE_MIXED))
        return (struct node_word){ "COMPLETING", "COMP", NODE_FLAG_COMPLETING };
    if (flags & 0x8000000 && state == NODE_IDLE)
        return (struct node_word){ "BLOCKED", "BLOCK", 0 };
    if (flags & NODE_FLAG_RESERVED && state == NODE_IDLE)
        return (struct node_word){ "RESERVED", "RESV", 0 };
    if (flags & NODE_FLAG_PLANNED && state == NODE_IDLE)
        return (struct node_word){ "PLANNED", "PLND", NODE_FLAG_PLANNED };
    return (struct node_word){ row ? row->name : "?", row ? row->code : "?", 0 };
}

static char node_suffix(uint32_t state, uint32_t flags, uint32_t said)
{
    if (said == UINT32_MAX)
        return '\0';
    for (size_t i = 0; i < ARRAY_LEN(node_suffixes); i++) {
        if (flags & ~said & node_suffixes[i].flag)
            return node_suffixes[i].suffix;
    }
    if (flags & (NODE_FLAG_DRAIN | NODE_FLAG_FAIL))
        return '\0';
    if (state == NODE_ALLOCATED && flags & NODE_FLAG_COMPLETING)
        return '+';
    if (state == NODE_MIXED && flags & ~said & NODE_FLAG_PLANNED && !(said & NODE_FLAG_COMPLETING))
        return '-';
    return '\0';
}

static void add_node_state(struct str *out, uint32_t state, uint32_t flags, bool code)
{
    struct node_word word = node_word(state, flags);
    char suffix = node_suffix(state, flags, word.said);

    str_add(out, code ? word.code : word.text);
    if (suffix)
        str_add_char(out, suffix);
}

void node_state_add_text(struct str *out, uint32_t state, uint32_t flags)
{
    add_node_state(out, state, flags, false);
}

void node_state_add_code(struct str *out, uint32_t state, uint32_t flags)
{
    add_node_state(out, state, flags, true);
}

void node_state_add_full(struct str *out, uint32_t state, uint32_t flags)
{
    str_add(out, name_of(&node_state_names, state));
    for (size_t i = 0; i < ARRAY_LEN(node_flags); i++) {
        if (flags & node_flags[i].value)
            str_addf(out, "+%s", node_flags[i].name);
    }
}

bool signal_find(const char *text, uint32_t *number)
{
    const struct name_row *row;
    uint64_t value;

    if (isdigit((unsigned char)text[0])) {
        if (!str_to_u64(text, 64, &value) || value == 0)
            return false;
        *number = (uint32_t)value;
        return true;
    }
    if (str_istarts(text, "SIG"))
        text += 3;
    row = name_find(&signal_names, text, strlen(text));
    if (row)
        *number = row->value;
    return row != NULL;
}

const char *signal_name(uint32_t number)
{
    const struct name_row *row = name_row_of(&signal_names, number);

    return row ? row->name : NULL;
}
