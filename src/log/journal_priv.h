/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_priv.h - what the files of the journal share
 */
#ifndef LOG_JOURNAL_PRIV_H
#define LOG_JOURNAL_PRIV_H

#include "base/vec.h"
#include "log/journal.h"

enum { JOURNAL_MAGIC_BYTES = 8 };
extern const char journal_magic[JOURNAL_MAGIC_BYTES];

/* Before the bytes of each entry. As in memory: a segment does not leave machines of one byte order. */
struct journal_frame {
    uint32_t len;
    uint32_t crc; /* of the fields after this one, and of the bytes */
    uint64_t index;
    int64_t time_us;
};

struct segment {
    uint64_t first, last; /* covered; of the open one: frames that were written */
    uint64_t bytes;       /* of whole frames, with the magic */
    int64_t last_us;
    bool sealed; /* durable, and its name says where it ends */
};

struct journal {
    char *dir;
    struct journal_limits limits;
    VEC(struct segment) segments; /* in order; the last one is written to when fd >= 0 */
    int fd, lock;
    struct str waiting; /* frames that are not in the file yet */
    uint64_t begin;     /* of the segment that they begin, when there is none */
    uint64_t seen;      /* the last index that was offered */
    uint64_t framed;    /* the last index that has a frame, waiting ones too */
    int64_t time_us;    /* of the last one offered */
    uint64_t dropped;
    bool full;
};

char *segment_path(const struct journal *journal, const struct segment *segment);
void segment_insert(struct journal *journal, const struct segment *segment);

/* Appends a frame. */
void journal_put_frame(struct str *out, const struct journal_entry *entry);
/*
 * The frame at `at` of `bytes`. 1: whole, and *used is its length; 0: more bytes are needed for it;
 * negative: it is damaged.
 */
int journal_get_frame(struct span bytes, size_t at, struct journal_entry *out, size_t *used);

/* Ends the segment that is written to: nothing more goes into it. */
void journal_end_segment(struct journal *journal);

#endif
