/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.h - the whole state in one file, as it was at one index
 *
 * snapshot-INDEX is a head, the bytes, and a tail with length and checksum. It gets its name only
 * when it is whole and synced, and it is read whole and checked before anybody uses a byte of it.
 *
 * The writer takes no lock and no memory but its buffer: it is meant for a forked child, which
 * walks the state as it was at the fork while the parent goes on.
 */
#ifndef LOG_SNAPSHOT_H
#define LOG_SNAPSHOT_H

#include <sys/types.h>

#include "log/log.h"

struct snapshot_writer;
int snapshot_create(const char *dir, struct log_point point, struct snapshot_writer **out,
                    struct err *err);
/* The same into `into`, for simulations; snapshot_finish() completes it. */
struct snapshot_writer *snapshot_create_memory(struct log_point point, struct str *into);
int snapshot_write(struct snapshot_writer *writer, const void *bytes, size_t len, struct err *err);
/* Makes it durable and gives it its name. Frees the writer, also when it fails. */
int snapshot_finish(struct snapshot_writer *writer, struct err *err);
void snapshot_abandon(struct snapshot_writer *writer);

struct snapshot_reader;
/* Reads it all once to check it: ERR_CORRUPT, ERR_NOT_FOUND. */
int snapshot_open(const char *dir, uint64_t index, struct snapshot_reader **out, struct err *err);
/* From bytes that snapshot_create_memory made; they must outlive the reader. */
int snapshot_open_memory(struct span bytes, struct snapshot_reader **out, struct err *err);
struct log_point snapshot_point(const struct snapshot_reader *reader);
uint64_t snapshot_bytes(const struct snapshot_reader *reader); /* of state, without head and tail */
/* As read(2): 0 at the end, fewer than `len` only there. Negative on error. */
ssize_t snapshot_read(struct snapshot_reader *reader, void *out, size_t len, struct err *err);
int snapshot_fd(const struct snapshot_reader *reader); /* the whole file, to send to a peer */
void snapshot_close(struct snapshot_reader *reader);

/* Indexes of finished snapshots, newest first; at most `max`. */
enum { SNAPSHOT_MOST = 16 };
int snapshot_list(const char *dir, uint64_t *out, size_t max, size_t *count, struct err *err);
char *snapshot_path(const char *dir, uint64_t index); /* the caller frees it */
void snapshot_remove(const char *dir, uint64_t index);
/*
 * Removes what a crash left half written. Only for a log that starts: later, the unfinished file is
 * the snapshot that is being written right now.
 */
void snapshot_remove_unfinished(const char *dir);
void snapshot_prune(const char *dir, uint64_t oldest); /* removes those before `oldest` */

#endif
