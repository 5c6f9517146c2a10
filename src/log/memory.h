/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - a log without a disk, for simulations and tests
 *
 * The "disk" is an object that outlives the log: a crash frees the log and keeps the disk, and
 * whether the batch in flight reached it is the simulation's choice. With memory_auto() every batch
 * is committed at the next log_poll(), which is all a unit test of an owner wants.
 */
#ifndef LOG_MEMORY_H
#define LOG_MEMORY_H

#include "log/log.h"

struct memory_disk;
struct memory_disk *memory_disk_new(void);
void memory_disk_free(struct memory_disk *disk);
/* What a snapshot child would have written, made with snapshot_create_memory(); copied. */
void memory_disk_snapshot(struct memory_disk *disk, struct log_point point, struct span bytes);

/* A disk that lied: its last `count` rows were never written. Shows that a check notices. */
void memory_disk_forget(struct memory_disk *disk, size_t count);

struct log *log_memory_new(const struct log_config *config, struct memory_disk *disk);
void memory_auto(struct log *log, bool on);

enum memory_outcome { MEMORY_COMMIT, MEMORY_FULL, MEMORY_BROKEN };
/* A batch is being "written"; it stays so until memory_settle() decides. */
bool memory_in_flight(const struct log *log);
/* Its bytes, to be looked at; it has no index yet. */
struct log_batch memory_flying(const struct log *log);
/* Decides it and calls wake(); the owner hears of it in log_poll(). */
void memory_settle(struct log *log, enum memory_outcome outcome);
/* kill -9: no callback; the batch in flight was written, or not. Frees the log, not the disk. */
void memory_crash(struct log *log, bool written);

#endif
