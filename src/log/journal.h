/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - what became of jobs and steps, kept for whoever accounts for it
 *
 * Beside the log, derived from it: whoever applies an entry says what it meant, and the journal keeps
 * that under the index of the entry. A reader asks for what follows an index, and says by a command
 * up to where it has everything; so it goes on after any crash without a gap and nothing twice.
 *
 * DIR holds segments, FIRST.open (written to, or not yet known to be durable) and FIRST-LAST (durable).
 * A segment is frames with length, index, time and checksum; one frame is all that one entry meant.
 *
 * (1) A segment covers its indexes without a hole: what it has no frame for meant nothing.
 * (2) Nothing is synced when it is added: what a power cut takes is derived again. So the journal must
 *     be durable up to where a snapshot is, before the snapshot gets its name (journal_sync_files()).
 * (3) What is not here is said: a reader that asks for it is told from where to where.
 * (4) A full disk keeps frames in memory, up to a bound; they are then given up as in (3). Any other
 *     error of a write is the caller's end.
 */
#ifndef LOG_JOURNAL_H
#define LOG_JOURNAL_H

#include "base/err.h"
#include "base/str.h"

enum {
    JOURNAL_ENTRY_MOST = 64 * 1024 * 1024,   /* bytes of one entry */
    JOURNAL_WAITING_MOST = 64 * 1024 * 1024, /* bytes in memory while the disk is full */
};

struct journal_limits {
    uint64_t segment_bytes; /* 0: 16 MB */
    uint64_t keep_bytes;    /* 0: 10 GB */
    int64_t keep_us;        /* 0: 30 days */
};

struct journal_entry {
    uint64_t index;
    int64_t time_us;
    struct span bytes;
    uint64_t lost_from; /* not 0: no entry; from there to `index` nothing is known here */
};

struct journal;
/* Makes DIR when it is not there, and cuts off what a crash left torn. */
int journal_open(const char *dir, const struct journal_limits *limits, struct journal **out,
                 struct err *err);
/* Says up to where it is whole; what waits in memory is written, if the disk takes it. */
void journal_close(struct journal *journal);

uint64_t journal_first(const struct journal *journal); /* 0: nothing yet */
/* Everything from its first index up to here is in it, or was given up. */
uint64_t journal_last(const struct journal *journal);
/* What was given up before anybody acknowledged it, in indexes of the log, since it was opened. */
uint64_t journal_dropped(const struct journal *journal);

/*
 * What the next entry meant; no bytes: nothing. Indexes up to journal_last() are ignored, so that
 * entries may be applied again. The first one ever decides where the journal begins.
 */
int journal_add(struct journal *journal, const struct journal_entry *entry, struct err *err);
/* Writes what was added since; a full disk is no error. */
int journal_flush(struct journal *journal, struct err *err);
/*
 * The state jumped to `index`, by a snapshot from somewhere else: what lies between journal_last()
 * and there is not here, unless journal_fill_*() brings it.
 */
int journal_jump(struct journal *journal, uint64_t index, struct err *err);
/* Forgets what is after `index`: the log was cut there. */
int journal_cut(struct journal *journal, uint64_t index, struct err *err);

/*
 * Makes a snapshot safe, see (2). journal_mark() writes up to where the journal is whole;
 * journal_sync_files(), which changes nothing in memory and so suits a forked child, syncs; and
 * journal_synced() is told that it went well, with journal_last() as it was at the mark.
 */
int journal_mark(struct journal *journal, struct err *err);
int journal_sync_files(const struct journal *journal, struct err *err);
void journal_synced(struct journal *journal, uint64_t index);

/*
 * Removes a segment that is acknowledged, or one of too many or too old: then *lost grows by the indexes that
 * nobody had acknowledged. True: there may be more to remove, later; a large file takes a while.
 */
bool journal_trim(struct journal *journal, uint64_t acked, int64_t now_us, uint64_t *lost);

/* ---- reading ---- */

/* Where a reader is. It may go on after anything that happened to the journal meanwhile. */
struct journal_cursor {
    uint64_t next; /* the first index wanted; 0: from where the journal begins */
    uint64_t segment, offset;
};
typedef void journal_each_fn(void *ctx, const struct journal_entry *entry);
/*
 * Gives entries in their order, about `bytes` of them and at least one. 1: there is more, 0: that
 * was the end for now.
 */
int journal_read(struct journal *journal, struct journal_cursor *cursor, size_t bytes,
                 journal_each_fn *each, void *ctx, struct err *err);

/* ---- what was missed ---- */

/* The oldest stretch that is missing after `acked`: *from to *upto. False: none. */
bool journal_missing(const struct journal *journal, uint64_t acked, uint64_t *from, uint64_t *upto);

struct journal_fill;
/* Entries from `from` on, from somebody else, in their order. One at a time. */
struct journal_fill *journal_fill_begin(struct journal *journal, uint64_t from, struct err *err);
int journal_fill_add(struct journal_fill *fill, const struct journal_entry *entry, struct err *err);
/* That is all up to `upto`. Frees `fill`, also when it fails; then nothing of it is kept. */
int journal_fill_end(struct journal_fill *fill, uint64_t upto, struct err *err);
void journal_fill_abandon(struct journal_fill *fill);

#endif
