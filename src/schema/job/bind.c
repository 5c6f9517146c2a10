/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.c - the texts of --cpu-bind, --mem-bind, --gpu-bind and --distribution, read
 *
 * Words are parted by commas and come in any order. A comma before a number belongs to a list.
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
    enum bind_mem_kind kind;
} mem_words[] = {
    { "none", BIND_MEM_NONE },      { "no", BIND_MEM_NONE },       { "local", BIND_MEM_LOCAL },
    { "rank", BIND_MEM_RANK },      { "map_mem:", BIND_MEM_MAP },  { "mapmem:", BIND_MEM_MAP },
    { "mask_mem:", BIND_MEM_MASK }, { "maskmem:", BIND_MEM_MASK },
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

bool bind_list_nth(struct span list, size_t index, bool mask, struct bitset *out)
{
    size_t total = 0;

    for (int pass = 0; pass < 2; pass++) {
        struct span rest = list, word;
        size_t at = 0;
        while (rest.len > 0) {
            const char *comma = memchr(rest.ptr, ',', rest.len);
            word = (struct span){ rest.ptr, comma ? (size_t)(comma - rest.ptr) : rest.len };
            rest.ptr += word.len + (comma != NULL);
            rest.len -= word.len + (comma != NULL);
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

static bool list_is_good(struct span list, bool mask)
{
    struct bitset set;

    bitset_init(&set, LIMIT_CPU_NUMBER);
    bool good = bind_list_nth(list, 0, mask, &set);
    bitset_done(&set);
    return good;
}

/* Does what follows a comma go on with a list? */
static bool goes_on(const char *text, bool mask)
{
    size_t len = strcspn(text, ",;");

    return isdigit((unsigned char)*text) ||
           (mask && len > 0 && strspn(text, "0123456789abcdefABCDEF*") >= len);
}

/* The next word, with its list; false: there is none. */
static bool next_word(const char **cursor, struct span *out)
{
    const char *text = *cursor;
    size_t len = 0;

    text += strspn(text, ",;");
    bool mask = strncasecmp(text, "mask", 4) == 0;
    while (text[len] && !(strchr(",;", text[len]) && !goes_on(text + len + 1, mask)))
        len++;
    *out = (struct span){ text, len };
    *cursor = text + len;
    return len > 0;
}

static bool is_how(struct span word, bool *verbose, bool *quiet)
{
    bool v = matches(word.ptr, word.len, "verbose") || matches(word.ptr, word.len, "v");
    bool q = matches(word.ptr, word.len, "quiet") || matches(word.ptr, word.len, "q");

    if (v || q) {
        *verbose = v;
        *quiet = q;
    }
    return v || q;
}

/* The list behind a word: what follows its colon, up to the word's end. */
static bool take_list(struct span word, const char *name, bool mask, struct span *out)
{
    size_t len = strlen(name);

    *out = (struct span){ word.ptr + len, word.len - len };
    return list_is_good(*out, mask);
}

static bool take_cpu_word(struct span word, struct bind_cpu *out)
{
    for (size_t i = 0; i < ARRAY_LEN(cpu_words); i++) {
        const char *name = cpu_words[i].word;
        if (!matches(word.ptr, word.len, name))
            continue;
        out->kind = cpu_words[i].kind;
        return !str_ends(name, ":") ||
               take_list(word, name, out->kind == BIND_MASK || out->kind == BIND_MASK_LDOM,
                         &out->list);
    }
    return false;
}

int bind_read_cpu(const char *text, struct bind_cpu *out, struct err *err)
{
    struct span word;

    *out = (struct bind_cpu){ 0 };
    for (const char *cursor = text ? text : ""; next_word(&cursor, &word);) {
        if (!is_how(word, &out->verbose, &out->quiet) && !take_cpu_word(word, out))
            return err_set(err, ERR_INVALID, "unrecognized --cpu-bind argument \"%.*s\"",
                           (int)word.len, word.ptr);
    }
    return 0;
}

static bool take_mem_word(struct span word, struct bind_mem *out)
{
    if (matches(word.ptr, word.len, "prefer") || matches(word.ptr, word.len, "p"))
        return out->prefer = true;
    if (matches(word.ptr, word.len, "sort"))
        return out->sort = true;
    if (matches(word.ptr, word.len, "nosort"))
        return out->nosort = true;
    for (size_t i = 0; i < ARRAY_LEN(mem_words); i++) {
        const char *name = mem_words[i].word;
        if (!matches(word.ptr, word.len, name))
            continue;
        out->kind = mem_words[i].kind;
        return !str_ends(name, ":") ||
               take_list(word, name, out->kind == BIND_MEM_MASK, &out->list);
    }
    return false;
}

int bind_read_mem(const char *text, struct bind_mem *out, struct err *err)
{
    struct span word;

    *out = (struct bind_mem){ 0 };
    for (const char *cursor = text ? text : ""; next_word(&cursor, &word);) {
        if (is_how(word, &out->verbose, &out->quiet) || take_mem_word(word, out))
            continue;
        if (word.ptr[word.len - 1] == ':')
            return err_set(err, ERR_INVALID, "missing list for \"--mem-bind=%.*s<list>\"",
                           (int)word.len, word.ptr);
        return err_set(err, ERR_INVALID, "unrecognized --mem-bind argument \"%.*s\"", (int)word.len,
                       word.ptr);
    }
    return 0;
}

static const char *mem_type(enum bind_mem_kind kind)
{
    static const char *const types[] = {
        [BIND_MEM_DEFAULT] = "",  [BIND_MEM_NONE] = "none",    [BIND_MEM_LOCAL] = "local",
        [BIND_MEM_RANK] = "rank", [BIND_MEM_MAP] = "map_mem:", [BIND_MEM_MASK] = "mask_mem:",
    };

    return types[kind];
}

static void add_list(const struct bind_mem *bind, struct str *out)
{
    if (bind->list.len)
        str_add_len(out, bind->list.ptr, bind->list.len);
}

static void add_whole(const struct bind_mem *bind, struct str *out)
{
    str_add(out, bind->verbose ? "verbose" : "quiet");
    str_add(out, bind->prefer ? ",prefer" : "");
    str_add(out, bind->sort ? ",sort" : bind->nosort ? ",nosort" : "");
    if (bind->kind != BIND_MEM_DEFAULT)
        str_addf(out, ",%s", mem_type(bind->kind));
    add_list(bind, out);
}

bool bind_mem_variable(const char *text, const char *which, struct str *out)
{
    struct bind_mem bind;

    if (str_is_empty(text) || bind_read_mem(text, &bind, NULL) < 0)
        return false;
    if (str_eq(which, "VERBOSE"))
        str_add(out, bind.verbose ? "verbose" : "quiet");
    else if (str_eq(which, "TYPE"))
        str_add(out, mem_type(bind.kind));
    else if (str_eq(which, "LIST"))
        add_list(&bind, out);
    else if (str_eq(which, "PREFER"))
        str_add(out, bind.prefer ? "prefer" : "");
    else if (str_eq(which, "SORT"))
        str_add(out, "sort");
    else
        add_whole(&bind, out);
    return bind.sort || !str_eq(which, "SORT");
}

static bool take_gpu_word(struct span word, struct bind_gpu *out)
{
    for (size_t i = 0; i < ARRAY_LEN(gpu_words); i++) {
        const char *name = gpu_words[i].word;
        char digits[16];
        uint64_t count;
        if (!matches(word.ptr, word.len, name))
            continue;
        out->kind = gpu_words[i].kind;
        if (!str_ends(name, ":"))
            return true;
        if (out->kind == BIND_GPU_MAP || out->kind == BIND_GPU_MASK)
            return take_list(word, name, out->kind == BIND_GPU_MASK, &out->list);
        size_t len = word.len - strlen(name);
        if (len >= sizeof(digits))
            return false;
        memcpy(digits, word.ptr + strlen(name), len);
        digits[len] = '\0';
        bool good = str_to_u64(digits, LIMIT_GRES_PER_NODE, &count) && count > 0;
        out->count = good ? (uint32_t)count : 1;
        return good;
    }
    return false;
}

/* As --tres-bind has it: "gres/gpu:closest", "gpu:single:2". */
static const char *skip_kind(const char *text)
{
    if (text && str_istarts(text, "gres/"))
        text += 5;
    return text && (str_istarts(text, "gpu:") || str_istarts(text, "gpu,")) ? text + 4 : text;
}

int bind_read_tres(const char *text, struct bind_gpu *out, struct err *err)
{
    const char *at = skip_kind(text);

    *out = (struct bind_gpu){ .count = 1 };
    if (at == text || strchr(text, '+') || bind_read_gpu(at, out, NULL) < 0)
        return err_set(err, ERR_INVALID, "Invalid --tres-bind argument: %s", text);
    return 0;
}

int bind_read_gpu(const char *text, struct bind_gpu *out, struct err *err)
{
    struct span word;
    bool quiet = false;

    *out = (struct bind_gpu){ .count = 1 };
    text = skip_kind(text);
    for (const char *cursor = text ? text : ""; next_word(&cursor, &word);) {
        if (!is_how(word, &out->verbose, &quiet) && !take_gpu_word(word, out))
            return err_set(err, ERR_INVALID, "Invalid --gpu-bind argument: %s", text);
    }
    return 0;
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
