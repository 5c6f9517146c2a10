/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena_thread.h - for a library inside threads that are not ours: what arenas keep for a thread
 */
#ifndef BASE_ARENA_THREAD_H
#define BASE_ARENA_THREAD_H

/* Frees the blocks that this thread keeps for its next arenas. Call it when the thread ends. */
void arena_thread_done(void);

#endif
