/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.h - the memory of a large process that must not stop for long, in huge pages
 *
 * With a million jobs the controller's heap has a gigabyte. In pages of 4 KiB a fork copies a quarter
 * of a million entries of page tables, 10 to 20 ms; in huge pages it is less than one, and every
 * look at a job costs less too. It takes two things, done by a worker so that the loop goes on:
 *
 *   fill  the heap grows before it is needed, and the pages are there when they are first used:
 *         clearing a huge page takes a third of a millisecond, in a virtual machine up to five
 *   mend  what was written while a forked child shared the memory is in small pages afterwards; they
 *         are put together again
 *
 * A heap of less than 64 MiB is left alone. Where the kernel gives no huge pages everything works as
 * without (transparent_hugepage/enabled is "never", or Linux before 5.14; before 6.1 only the kernel's
 * own khugepaged mends, slowly).
 */
#ifndef SYS_HEAP_H
#define SYS_HEAP_H

#include "base/util.h"

struct heap_range {
    char *from, *to;
};

/* First in main(): what comes from here on is the heap. */
void heap_begin(void);
/* In each turn of the loop, on its thread; a few instructions. True: a worker should fill this. */
bool heap_ahead(struct heap_range *out);

/*
 * On any thread. They stop early when *stop, and rest so that others have their turn; NULL: the process
 * does not serve yet, nobody is to be spared; but where huge pages are hard to find, a start does not wait for
 * them longer than half a second. heap_mend(): false when it stopped early.
 */
void heap_fill(struct heap_range range, const bool *stop);
bool heap_mend(const bool *stop); /* when the child has ended, and at the end of a start */

#endif
