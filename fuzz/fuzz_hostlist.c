/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_hostlist.c - what is read as a host list can be written, read again and used as a set
 *
 * A line feed separates two lists; the second one takes part in the set operations.
 */
#include "base/hostlist.h"

#include "fuzz/fuzz.h"

#define LIST CLEANUP(hostlist_done) struct hostlist

enum { FEW = 300 }; /* lists of more hosts are not walked name by name */

static void same_text(const struct hostlist *list, const char *expected)
{
    FUZZ_TEXT text = { 0 };

    hostlist_format(list, &text);
    CHECK(strcmp(str_text(&text), expected) == 0);
}

/* Through its text, so false when that is longer than may be read. */
static bool copy(struct hostlist *to, const struct hostlist *from)
{
    FUZZ_TEXT text = { 0 };

    hostlist_format(from, &text);
    if (text.len > LIMIT_HOSTLIST_TEXT)
        return false;
    CHECK(hostlist_parse(to, str_text(&text), NULL) == 0);
    return true;
}

/*
 * Writing and reading settle at once for what was read from our own text. Before that "n1[2],n3"
 * becomes "n12,n3" and then "n[12,3]", as it does with Slurm.
 */
static void settles(const struct hostlist *list)
{
    LIST again = { 0 };
    FUZZ_TEXT text = { 0 };

    if (!copy(&again, list))
        return;
    hostlist_format(list, &text);
    same_text(&again, str_text(&text));
}

/* Same count, and the same names in the same order. */
static void round_trip(const struct hostlist *list,
                       void (*format)(const struct hostlist *, struct str *))
{
    LIST again = { 0 };
    FUZZ_TEXT text = { 0 };
    uint64_t count;

    format(list, &text);
    if (text.len > LIMIT_HOSTLIST_TEXT)
        return;
    CHECK(hostlist_parse(&again, str_text(&text), NULL) == 0);
    CHECK(hostlist_count(&again) == hostlist_count(list));
    CHECK(hostlist_count_text(str_text(&text), &count, NULL) == 0);
    CHECK(count == hostlist_count(list));
    settles(&again);
    if (hostlist_count(list) > FEW)
        return;
    struct hostlist_iter one = { .list = list }, other = { .list = &again };
    while (hostlist_next(&one)) {
        CHECK(hostlist_next(&other));
        CHECK(one.len == other.len && memcmp(one.name, other.name, one.len) == 0);
    }
    CHECK(!hostlist_next(&other));
}

static void places(const struct hostlist *list)
{
    struct arena arena = { 0 };
    char **names;
    size_t count;

    if (hostlist_count(list) > FEW)
        return;
    CHECK(hostlist_expand(list, &arena, &names, &count, NULL) == 0);
    CHECK(count == hostlist_count(list));
    for (size_t i = 0; i < count; i++) {
        FUZZ_TEXT name = { 0 };
        CHECK(hostlist_nth(list, i, &name));
        CHECK(strcmp(names[i], str_text(&name)) == 0);
        int64_t first = hostlist_find(list, names[i]);
        CHECK(first >= 0 && (size_t)first <= i && strcmp(names[first], names[i]) == 0);
    }
    arena_done(&arena);
}

static void orders(const struct hostlist *list)
{
    LIST sorted = { 0 }, unique = { 0 };

    if (!copy(&sorted, list) || !copy(&unique, list))
        return;
    if (hostlist_sort(&sorted, NULL) == 0)
        CHECK(hostlist_within(&sorted, list));
    CHECK(hostlist_count(&sorted) == hostlist_count(list));
    if (hostlist_uniq(&unique, NULL) < 0)
        return;
    CHECK(hostlist_count(&unique) <= hostlist_count(list));
    CHECK(hostlist_within(&unique, list) && hostlist_within(list, &unique));
    FUZZ_TEXT once = { 0 };
    hostlist_format(&unique, &once);
    CHECK(hostlist_uniq(&unique, NULL) == 0);
    same_text(&unique, str_text(&once));
}

static void sets(const struct hostlist *a, const struct hostlist *b)
{
    LIST minus = { 0 }, common = { 0 }, both = { 0 };

    if (!copy(&minus, a) || !copy(&common, a) || !copy(&both, a))
        return;
    if (hostlist_minus(&minus, b, NULL) < 0 || hostlist_intersect(&common, b, NULL) < 0 ||
        hostlist_union(&both, b, NULL) < 0)
        return;
    CHECK(hostlist_count(&minus) + hostlist_count(&common) == hostlist_count(a));
    CHECK(hostlist_within(&common, b) && hostlist_within(&common, a));
    CHECK(hostlist_within(a, &both) && hostlist_within(b, &both));
    CHECK(hostlist_intersect(&minus, b, NULL) == 0 && hostlist_count(&minus) == 0);
    if (hostlist_count(a) > FEW)
        return;
    hostlist_each (host, a)
        CHECK((hostlist_find(b, host.name) >= 0) == (hostlist_find(&common, host.name) >= 0));
}

/* Brackets that multiply up to LIMIT_HOSTLIST_RANGES are right but slow: one in 64 is let through. */
static bool slow(const char *text, size_t size)
{
    uint64_t count;

    if (hostlist_count_text(text, &count, NULL) < 0 || count < 5000)
        return false;
    for (const char *at = strchr(text, ']'); at; at = strchr(at + 1, ']')) {
        if (at[1] && !strchr(", \t\r\v\f", at[1]))
            return size % 64 != 0;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(freep) char *text = fuzz_text(data, size);
    char *second = strchr(text, '\n');
    LIST list = { 0 }, other = { 0 };
    struct err err = { 0 };
    uint64_t count;

    if (second)
        *second++ = '\0';
    if (slow(text, size) || (second && slow(second, size)))
        return 0;
    int result = hostlist_parse(&list, text, &err);
    if (result < 0) {
        CHECK(result == -(int)err.code && err.text[0]);
        CHECK(hostlist_count(&list) == 0 && list.ranges.len == 0);
        int counted = hostlist_count_text(text, &count, NULL);
        CHECK(counted == result || err.code == ERR_TOO_MANY || err.code == ERR_TOO_LARGE);
        return 0;
    }
    CHECK(hostlist_count_text(text, &count, NULL) == 0 && count == hostlist_count(&list));
    if (list.ranges.len > 1000)
        return 0;
    round_trip(&list, hostlist_format);
    round_trip(&list, hostlist_format_suffixes);
    places(&list);
    orders(&list);
    if (second && hostlist_parse(&other, second, NULL) == 0 && other.ranges.len < 1000)
        sets(&list, &other);
    return 0;
}
