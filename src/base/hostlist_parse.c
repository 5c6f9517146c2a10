/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostlist_parse.c - reading Slurm's notation
 *
 * A text is words; a word is literals and brackets in turn: "a[1-2]b[03-04]-ib". word_read() takes
 * one apart and checks it; then it is either counted or pushed.
 *
 * (1) Nothing is pushed before the word it belongs to was read whole and found to fit.
 * (2) hostlist_parse() puts the list back as it was when a later word is wrong.
 */
#include "base/hostlist_priv.h"

#include <string.h>

/* literal[0] bracket[0] literal[1] … literal[brackets]; literals may be empty. */
struct word {
    size_t at; /* where it begins in the text */
    unsigned brackets;
    struct span literal[LIMIT_HOSTLIST_BRACKETS + 1];
    size_t first[LIMIT_HOSTLIST_BRACKETS + 1]; /* slices of numbers, the last is the end */
    VEC(struct host_range) numbers;            /* without prefix; joined where they count up */
};

struct reader {
    const char *text;
    size_t at;
    struct err *err;
    struct word word;
};

static bool is_separator(char c)
{
    return c == ',' || c == ' ' || (c >= '\t' && c <= '\r');
}

/* "hostlist 'n[3-1]': …, at character 3": the place, and the text around it made printable. */
static int wrong(struct reader *reader, enum err_code code, size_t at, const char *what)
{
    enum { AROUND = 30 };
    size_t len = strlen(reader->text);
    size_t from = at > AROUND ? at - AROUND : 0, to = MIN(len, at + AROUND);
    struct str shown = { 0 };

    str_add_visible(&shown, reader->text + from, to - from);
    int result = err_set(reader->err, code, "hostlist '%s%s%s': %s, at character %zu",
                         from ? "…" : "", str_text(&shown), to < len ? "…" : "", what, at + 1);
    str_done(&shown);
    return result;
}

static int number_read(struct reader *reader, uint64_t *value, unsigned *digits)
{
    size_t start = reader->at;

    *value = 0;
    while (host_is_digit(reader->text[reader->at])) {
        if (reader->at - start == HOST_DIGITS)
            return wrong(reader, ERR_RANGE, start, "number of more than 18 digits");
        *value = *value * 10 + (uint64_t)(reader->text[reader->at++] - '0');
    }
    *digits = (unsigned)(reader->at - start);
    if (*digits == 0)
        return wrong(reader, ERR_SYNTAX, start, "a number is expected in brackets");
    return 0;
}

static int range_read(struct reader *reader)
{
    struct word *word = &reader->word;
    struct host_range range = { .prefix = "" };
    size_t start = reader->at;
    unsigned digits;

    if (number_read(reader, &range.lo, &digits) < 0)
        return -1;
    range.width = (uint16_t)digits;
    range.hi = range.lo;
    if (reader->text[reader->at] == '-') {
        reader->at++;
        if (number_read(reader, &range.hi, &digits) < 0)
            return -1;
        if (range.hi < range.lo)
            return wrong(reader, ERR_RANGE, start, "range runs backwards");
    }
    if (word->numbers.len > word->first[word->brackets]) {
        struct host_range *last = &word->numbers.items[word->numbers.len - 1];
        if (host_joins(last, &range)) {
            last->hi = range.hi;
            return 0;
        }
    }
    vec_push(&word->numbers, range);
    return 0;
}

/* After '['. Ends behind ']'. */
static int bracket_read(struct reader *reader)
{
    struct word *word = &reader->word;
    size_t open = reader->at - 1;

    if (word->brackets == LIMIT_HOSTLIST_BRACKETS)
        return wrong(reader, ERR_TOO_MANY, open, "more than 8 brackets in one name");
    if (reader->text[reader->at] == ']')
        return wrong(reader, ERR_SYNTAX, open, "brackets are empty");
    for (;;) {
        if (reader->text[reader->at] == '[')
            return wrong(reader, ERR_SYNTAX, reader->at, "brackets inside brackets");
        if (reader->text[reader->at] == '\0')
            return wrong(reader, ERR_SYNTAX, open, "'[' is never closed");
        if (range_read(reader) < 0)
            return -1;
        char c = reader->text[reader->at];
        if (c == ']')
            break;
        if (c == '\0')
            return wrong(reader, ERR_SYNTAX, open, "'[' is never closed");
        if (c == '[')
            return wrong(reader, ERR_SYNTAX, reader->at, "brackets inside brackets");
        if (c != ',')
            return wrong(reader, ERR_SYNTAX, reader->at, "only digits, '-' and ',' go in brackets");
        reader->at++;
    }
    reader->at++;
    word->first[++word->brackets] = word->numbers.len;
    return 0;
}

/* The longest name that the word makes. */
static size_t word_longest(const struct word *word)
{
    size_t len = word->literal[word->brackets].len;

    for (unsigned i = 0; i < word->brackets; i++) {
        unsigned widest = 0;
        for (size_t r = word->first[i]; r < word->first[i + 1]; r++) {
            const struct host_range *range = &word->numbers.items[r];
            widest = MAX(widest, host_written(range, range->hi));
        }
        len += word->literal[i].len + widest;
    }
    return len;
}

/* 1 when there is a word, 0 at the end. */
static int word_read(struct reader *reader)
{
    struct word *word = &reader->word;
    const char *text = reader->text;

    while (is_separator(text[reader->at]))
        reader->at++;
    if (!text[reader->at])
        return 0;
    word->at = reader->at;
    word->brackets = 0;
    vec_clear(&word->numbers);
    for (;;) {
        size_t start = reader->at;
        char c;
        while ((c = text[reader->at]) && !is_separator(c) && c != '[' && c != ']') {
            if ((unsigned char)c < ' ' || c == 0x7f)
                return wrong(reader, ERR_SYNTAX, reader->at, "control character in a name");
            reader->at++;
        }
        word->literal[word->brackets] = (struct span){ text + start, reader->at - start };
        if (c == ']')
            return wrong(reader, ERR_SYNTAX, reader->at, "']' without '['");
        if (c != '[')
            break;
        reader->at++;
        if (bracket_read(reader) < 0)
            return -1;
    }
    if (word_longest(word) > LIMIT_HOST_NAME)
        return wrong(reader, ERR_TOO_LARGE, word->at, "name of more than 255 bytes");
    return 1;
}

static uint64_t bracket_count(const struct word *word, unsigned bracket)
{
    uint64_t count = 0;

    for (size_t r = word->first[bracket]; r < word->first[bracket + 1]; r++) {
        const struct host_range *range = &word->numbers.items[r];
        if (__builtin_add_overflow(count, host_range_count(range), &count))
            return UINT64_MAX;
    }
    return count;
}

/* How many names brackets 0 … brackets-1 make together, UINT64_MAX when it has no room. */
static uint64_t combinations(const struct word *word, unsigned brackets)
{
    uint64_t count = 1;

    for (unsigned i = 0; i < brackets; i++) {
        if (__builtin_mul_overflow(count, bracket_count(word, i), &count))
            return UINT64_MAX;
    }
    return count;
}

/* The brackets turn like the wheels of a counter; each knows its range and its place in it. */
struct wheel {
    size_t range;
    uint64_t value;
};

static void wheel_reset(const struct word *word, struct wheel *wheels, unsigned i)
{
    wheels[i].range = word->first[i];
    wheels[i].value = word->numbers.items[word->first[i]].lo;
}

/* False when it came round to its beginning. */
static bool wheel_turn(const struct word *word, struct wheel *wheels, unsigned i)
{
    struct wheel *wheel = &wheels[i];

    if (wheel->value++ < word->numbers.items[wheel->range].hi)
        return true;
    if (++wheel->range < word->first[i + 1]) {
        wheel->value = word->numbers.items[wheel->range].lo;
        return true;
    }
    wheel_reset(word, wheels, i);
    return false;
}

/* Writes literals and numbers of the first `brackets` brackets, and the literal behind them. */
static size_t put_words(const struct word *word, const struct wheel *wheels, unsigned brackets,
                        char *name)
{
    size_t len = 0;

    for (unsigned i = 0;; i++) {
        memcpy(name + len, word->literal[i].ptr, word->literal[i].len);
        len += word->literal[i].len;
        if (i == brackets)
            return len;
        len += host_put_number(name + len, wheels[i].value,
                               word->numbers.items[wheels[i].range].width);
    }
}

/* Names that end in brackets keep the last one as ranges. */
static int push_ending_in_bracket(struct hostlist *list, const struct word *word, struct err *err)
{
    struct wheel wheels[LIMIT_HOSTLIST_BRACKETS];
    char prefix[LIMIT_HOST_NAME];
    unsigned last = word->brackets - 1;

    for (unsigned i = 0; i < last; i++)
        wheel_reset(word, wheels, i);
    for (;;) {
        size_t len = put_words(word, wheels, last, prefix);
        for (size_t r = word->first[last]; r < word->first[last + 1]; r++) {
            struct host_range range = word->numbers.items[r];
            range.prefix = prefix;
            range.prefix_len = (uint16_t)len;
            if (hostlist_add_range(list, &range, err) < 0)
                return -1;
        }
        unsigned i = 0; /* Slurm's order: the first bracket runs fastest of these */
        while (i < last && !wheel_turn(word, wheels, i))
            i++;
        if (i == last)
            return 0;
    }
}

static int push_ending_in_text(struct hostlist *list, const struct word *word, struct err *err)
{
    struct wheel wheels[LIMIT_HOSTLIST_BRACKETS];
    char name[LIMIT_HOST_NAME];
    unsigned brackets = word->brackets;

    for (unsigned i = 0; i < brackets; i++)
        wheel_reset(word, wheels, i);
    for (;;) {
        struct host_range range = host_split(name, put_words(word, wheels, brackets, name));
        if (hostlist_add_range(list, &range, err) < 0)
            return -1;
        if (brackets && wheel_turn(word, wheels, brackets - 1))
            continue;
        unsigned i = 0;
        while (i + 1 < brackets && !wheel_turn(word, wheels, i))
            i++;
        if (i + 1 >= brackets)
            return 0;
    }
}

static int word_push(struct reader *reader, struct hostlist *list)
{
    const struct word *word = &reader->word;
    bool to_end = word->brackets && word->literal[word->brackets].len == 0;
    uint64_t ranges = combinations(word, word->brackets - to_end);

    if (to_end && __builtin_mul_overflow(
                      ranges, word->numbers.len - word->first[word->brackets - 1], &ranges))
        ranges = UINT64_MAX;
    if (ranges > LIMIT_HOSTLIST_RANGES) /* (1) */
        return wrong(reader, ERR_TOO_MANY, word->at,
                     "the brackets of this name make more ranges than are allowed");
    int result = to_end ? push_ending_in_bracket(list, word, reader->err)
                        : push_ending_in_text(list, word, reader->err);
    return result < 0 ? err_wrap(reader->err, "at character %zu", word->at + 1) : 0;
}

static int text_check(const char *text, struct err *err)
{
    if (strnlen(text, LIMIT_HOSTLIST_TEXT + 1) > LIMIT_HOSTLIST_TEXT)
        return err_set(err, ERR_TOO_LARGE, "host list of more than %d bytes", LIMIT_HOSTLIST_TEXT);
    return 0;
}

int hostlist_parse(struct hostlist *list, const char *text, struct err *err)
{
    struct err local = { 0 };
    struct reader reader = { .text = text, .err = err ? err : &local };
    size_t had = list->ranges.len;
    uint64_t count = list->count;
    struct host_range last = { 0 };
    int result;

    if (text_check(text, err) < 0)
        return -ERR_TOO_LARGE;
    if (had)
        last = list->ranges.items[had - 1];
    while ((result = word_read(&reader)) > 0 && (result = word_push(&reader, list)) == 0)
        ;
    vec_done(&reader.word.numbers);
    if (result < 0) { /* (2) */
        list->ranges.len = had;
        list->count = count;
        if (had)
            list->ranges.items[had - 1] = last;
        return -(int)reader.err->code;
    }
    return 0;
}

int hostlist_count_text(const char *text, uint64_t *count, struct err *err)
{
    struct err local = { 0 };
    struct reader reader = { .text = text, .err = err ? err : &local };
    uint64_t total = 0;
    int result;

    if (text_check(text, err) < 0)
        return -ERR_TOO_LARGE;
    while ((result = word_read(&reader)) > 0) {
        uint64_t more = combinations(&reader.word, reader.word.brackets);
        if (__builtin_add_overflow(total, more, &total) || total > INT64_MAX) {
            result = wrong(&reader, ERR_TOO_MANY, reader.word.at, "more than 2^63 hosts");
            break;
        }
    }
    vec_done(&reader.word.numbers);
    if (result < 0)
        return -(int)reader.err->code;
    *count = total;
    return 0;
}
