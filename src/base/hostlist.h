/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostlist.h - lists of host names as Slurm writes them: "login,n[001-128,140],a[1-2]b[03-04]"
 *
 * A list keeps ranges, not names: "n[1-999999999]" is one range. It is ordered and may hold a name
 * twice, as Slurm's lists may. Counting, nth, find, sorting and set operations work on ranges;
 * only hostlist_expand() makes names, and it refuses more than LIMIT_HOSTLIST_HOSTS of them.
 *
 *     CLEANUP(hostlist_done) struct hostlist list = { 0 };
 *     if (hostlist_parse(&list, "n[1-3],m", err) < 0)
 *         return -1;
 *     hostlist_each(host, &list)
 *         use(host.name, host.len);
 *
 * Notation: names apart by commas or blanks; brackets hold numbers and ranges ("[1-8,010-020]"),
 * where the first number's width is the zero padding; several brackets multiply, the last one
 * running fastest and the others first to last (Slurm's order: a[1-2]b[1-2]c1 is a1b1c1, a2b1c1,
 * a1b2c1, a2b2c1). Text may follow the last bracket, which Slurm refuses. Empty words are skipped,
 * so "" and "," are empty lists. What Slurm misreads ("n[1-", "n[1, 2]", "n[1-]") is an error here.
 */
#ifndef BASE_HOSTLIST_H
#define BASE_HOSTLIST_H

#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/vec.h"

/* One range: prefix, then lo … hi written with at least `width` digits. width 0: only a name. */
struct host_range {
    const char *prefix; /* not ended by NUL */
    uint64_t lo, hi;
    uint16_t prefix_len;
    uint16_t width;
};

/* Zero-initialised is empty and valid. */
struct hostlist {
    VEC(struct host_range) ranges;
    struct arena text; /* the prefixes */
    uint64_t count;    /* of hosts, repeated ones too */
};

void hostlist_done(struct hostlist *list);
void hostlist_clear(struct hostlist *list);

/*
 * Appends what `text` says. On failure the list is as it was and the error names the character
 * (the first is 1): ERR_SYNTAX, ERR_RANGE for a reversed range or a number of over 18 digits,
 * ERR_TOO_MANY or ERR_TOO_LARGE for more than limits.h allows.
 */
int hostlist_parse(struct hostlist *list, const char *text, struct err *err);

/* Appends one name, in which brackets and separators are errors. */
int hostlist_push(struct hostlist *list, const char *name, struct err *err);

/* How many hosts `text` names, without holding them: "a[1-99999]b[1-99999]" has an answer. */
int hostlist_count_text(const char *text, uint64_t *count, struct err *err);

static inline uint64_t hostlist_count(const struct hostlist *list)
{
    return list->count;
}

/* Appends the name at `index` (from 0) to `out`; false beyond the end. */
bool hostlist_nth(const struct hostlist *list, uint64_t index, struct str *out);

/* The index of the first host called `name`, or -1. Looks at every range: O(ranges). */
int64_t hostlist_find(const struct hostlist *list, const char *name);

/* All names in order, in `arena`, the array ended by NULL. ERR_TOO_MANY above LIMIT_HOSTLIST_HOSTS. */
int hostlist_expand(const struct hostlist *list, struct arena *arena, char ***names, size_t *count,
                    struct err *err);

/* Walks without taking memory. The list must not change meanwhile. */
struct hostlist_iter {
    const struct hostlist *list;
    size_t range;
    uint64_t offset; /* in the range */
    size_t len;
    char name[LIMIT_HOST_NAME + 1];
};
bool hostlist_next(struct hostlist_iter *iter);

#define hostlist_each(host, hosts) \
    for (struct hostlist_iter host = { .list = (hosts) }; hostlist_next(&host);)

/*
 * Appends the list as `scontrol show hostlist` prints it: in order, neighbours that count up
 * joined, names whose number is not at the end spelled out.
 */
void hostlist_format(const struct hostlist *list, struct str *out);

/* The same, but "n1-ib,n2-ib" becomes "n[1-2]-ib". Ours and hostlist readers' notation, not Slurm's. */
void hostlist_format_suffixes(const struct hostlist *list, struct str *out);

/*
 * Sorts as `scontrol show hostlistsorted`: by prefix with numbers in it compared as numbers, then
 * width and value; repeated names stay. ERR_TOO_MANY when overlapping ranges hold more than
 * LIMIT_HOSTLIST_HOSTS names; the list then has the same hosts, not wholly in order.
 */
int hostlist_sort(struct hostlist *list, struct err *err);

/*
 * Sets. A name counts by its text, however it was written: n1[2-3] holds n12. uniq sorts and drops
 * repeated names; the others keep the order of the first list. They fail only with ERR_TOO_MANY or
 * ERR_TOO_LARGE, and then leave `list` as it was.
 */
int hostlist_uniq(struct hostlist *list, struct err *err);
int hostlist_union(struct hostlist *list, const struct hostlist *with, struct err *err);
int hostlist_minus(struct hostlist *list, const struct hostlist *without, struct err *err);
int hostlist_intersect(struct hostlist *list, const struct hostlist *with, struct err *err);
bool hostlist_within(const struct hostlist *inner, const struct hostlist *outer);

/* Compares text as Slurm sorts prefixes: digit runs as numbers, those with a leading zero first. */
int hostlist_natural_cmp(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
