/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.c - the texts of --cpu-bind, --gpu-bind and --distribution, read
 */
#include "schema/bind.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

static const struct {
    const char *word; /* with ':' when a list follows */
    enum bind_kind kind;
} cpu_words[] = {
    { "none", BIND_NONE },          { "no", BIND_NONE },
    { "threads", BIND_THREADS },    { "thread", BIND_THREADS },
    { "cores", BIND_CORES },        { "core", BIND_CORES },
    { "sockets", BIND_SOCKETS },    { "socket", BIND_SOCKETS },
    { "ldoms", BIND_LDOMS },        { "ldom", BIND_LDOMS },
    { "rank", BIND_RANK },          { "rank_ldom", BIND_RANK_LDOM },
    { "map_cpu:", BIND_MAP },       { "mapcpu:", BIND_MAP },
    { "mask_cpu:", BIND_MASK },     { "maskcpu:", BIND_MASK },
    { "map_ldom:", BIND_MAP_LDOM }, { "mask_ldom:", BIND_MASK_LDOM },
};

static const struct {
    const char *word;
    enum bind_gpu_kind kind;
} gpu_words[] = {
    { "none", BIND_GPU_NONE },          { "closest", BIND_GPU_CLOSEST },
    { "single:", BIND_GPU_SINGLE },     { "single", BIND_GPU_SINGLE },
    { "per_task:", BIND_GPU_PER_TASK }, { "map_gpu:", BIND_GPU_MAP },
    { "map:", BIND_GPU_MAP },           { "mask_gpu:", BIND_GPU_MASK },
    { "mask:", BIND_GPU_MASK },
};

static bool matches(const char *text, size_t len, const char *word)
{
    size_t word_len = strlen(word);

    return word[word_len - 1] == ':' ? len > word_len && strncasecmp(text, word, word_len) == 0
                                     : len == word_len && strncasecmp(text, word, len) == 0;
}

/* One digit of a mask is four bits; the last digit is the lowest. */
static bool read_mask(const char *text, size_t len, struct bitset *out)
{
    if (len > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        text += 2;
        len -= 2;
    }
    if (len == 0)
        return false;
    for (size_t i = 0; i < len; i++) {
        int c = tolower((unsigned char)text[len - 1 - i]);
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return false;
        for (size_t bit = 0; bit < 4; bit++) {
            if (!(digit >> bit & 1))
                continue;
            if (i * 4 + bit >= out->bits)
                return false;
            bitset_add(out, i * 4 + bit);
        }
    }
    return true;
}

static bool read_number(const char *text, size_t len, struct bitset *out)
{
    char copy[24], *end;

    if (len == 0 || len >= sizeof(copy) || !isdigit((unsigned char)text[0]))
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    unsigned long value = strtoul(copy, &end, strncasecmp(copy, "0x", 2) == 0 ? 16 : 10);
    if (*end || value >= out->bits)
        return false;
    bitset_add(out, value);
    return true;
}

/* One value, "VALUE*TIMES"; returns how often it counts, 0 when it is none. */
static size_t read_value(struct span word, bool mask, struct bitset *out)
{
    const char *star = memchr(word.ptr, '*', word.len);
    size_t len = star ? (size_t)(star - word.ptr) : word.len, times = 1;

    if (star) {
        times = strtoul(star + 1, NULL, 10);
        if (times == 0 || times > LIMIT_CPU_NUMBER)
            return 0;
    }
    bool good = mask ? read_mask(word.ptr, len, out) : read_number(word.ptr, len, out);
    return good ? times : 0;
}

bool bind_list_nth(const char *list, size_t index, bool mask, struct bitset *out)
{
    size_t total = 0;

    for (int pass = 0; pass < 2; pass++) {
        const char *cursor = list;
        struct span word;
        size_t at = 0;
        while (str_next(&cursor, ",", &word)) {
            bitset_clear(out);
            size_t times = read_value(word, mask, out);
            if (times == 0)
                return false;
            if (pass == 1 && index % total < at + times)
                return true;
            at += times;
        }
        total = at;
        if (total == 0)
            return false;
    }
    return false;
}

static bool list_is_good(const char *list, bool mask)
{
    struct bitset set;

    bitset_init(&set, LIMIT_CPU_NUMBER);
    bool good = bind_list_nth(list, 0, mask, &set);
    bitset_done(&set);
    return good;
}

static const char *skip_how(const char *text, bool *verbose, bool *quiet)
{
    for (;;) {
        size_t len = strcspn(text, ",;");
        bool v = matches(text, len, "verbose") || matches(text, len, "v");
        bool q = matches(text, len, "quiet") || matches(text, len, "q");
        if (!v && !q)
            return text;
        *verbose = v;
        *quiet = q;
        text += len + (text[len] != '\0');
    }
}

int bind_read_cpu(const char *text, struct bind_cpu *out, struct err *err)
{
    *out = (struct bind_cpu){ 0 };
    if (str_is_empty(text))
        return 0;
    const char *at = skip_how(text, &out->verbose, &out->quiet);
    if (*at == '\0')
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(cpu_words); i++) {
        const char *word = cpu_words[i].word;
        if (!matches(at, strlen(at), word))
            continue;
        out->kind = cpu_words[i].kind;
        if (!str_ends(word, ":"))
            return 0;
        out->list = at + strlen(word);
        if (list_is_good(out->list, out->kind == BIND_MASK || out->kind == BIND_MASK_LDOM))
            return 0;
    }
    return err_set(err, ERR_INVALID, "unrecognized --cpu-bind argument \"%s\"", at);
}

int bind_read_gpu(const char *text, struct bind_gpu *out, struct err *err)
{
    bool quiet = false;

    *out = (struct bind_gpu){ .count = 1 };
    if (str_is_empty(text))
        return 0;
    if (str_istarts(text, "gpu:"))
        text += 4; /* as --tres-bind has it */
    const char *at = skip_how(text, &out->verbose, &quiet);
    if (*at == '\0')
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(gpu_words); i++) {
        const char *word = gpu_words[i].word;
        uint64_t count;
        if (!matches(at, strlen(at), word))
            continue;
        out->kind = gpu_words[i].kind;
        if (!str_ends(word, ":"))
            return 0;
        out->list = at + strlen(word);
        bool list = out->kind == BIND_GPU_MAP || out->kind == BIND_GPU_MASK;
        if (list && list_is_good(out->list, out->kind == BIND_GPU_MASK))
            return 0;
        if (!list && str_to_u64(out->list, LIMIT_GRES_PER_NODE, &count) && count > 0) {
            out->count = (uint32_t)count;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "Invalid --gpu-bind argument: %s", text);
}

static enum bind_order order_of(struct span word, enum bind_order otherwise)
{
    return span_ieq(word, "block")     ? BIND_BLOCK
           : span_ieq(word, "cyclic")  ? BIND_CYCLIC
           : span_ieq(word, "fcyclic") ? BIND_FCYCLIC
                                       : otherwise;
}

void bind_read_order(const char *distribution, enum bind_order *sockets, enum bind_order *cores)
{
    CLEANUP(freep) char *copy = mem_strdup(distribution ? distribution : "");
    const char *cursor = copy;
    struct span word;

    *sockets = *cores = BIND_CYCLIC;
    copy[strcspn(copy, ",")] = '\0';
    for (int level = 0; str_next(&cursor, ":", &word); level++) {
        if (level == 1)
            *sockets = *cores = order_of(word, BIND_CYCLIC);
        else if (level == 2)
            *cores = order_of(word, *sockets);
    }
}

void bind_add_mask(struct str *out, const struct bitset *set, size_t bits)
{
    size_t digits = MAX((bits + 3) / 4, 1);
    bool begun = false;

    for (size_t cpu = digits * 4; cpu < set->bits; cpu++) {
        if (bitset_has(set, cpu))
            digits = cpu / 4 + 1;
    }
    str_add(out, "0x");
    for (size_t i = digits; i-- > 0;) {
        unsigned digit = 0;
        for (size_t bit = 0; bit < 4; bit++)
            digit |= (unsigned)bitset_has(set, i * 4 + bit) << bit;
        begun |= digit != 0 || i == 0 || bits > 0;
        if (begun)
            str_addf(out, "%x", digit);
    }
}
