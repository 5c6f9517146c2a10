/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_value.c - the text of a value to what a field holds, by the type of its key
 *
 * TOML's numbers come here as text too, so that both notations are read by the same rules.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/size.h"
#include "base/timefmt.h"
#include "schema/conf/conf_priv.h"

/* One value on its way into a field. */
struct reading {
    struct conf *conf;
    const struct conf_key *key;
    ProtobufCMessage *message;
    const ProtobufCFieldDescriptor *field;
    const char *wrong; /* a sentence, when a reader knows better than conf_key_expects() */
};

typedef bool read_fn(struct reading *r, const char *text);

static bool put_num(struct reading *r, int64_t num)
{
    conf_field_put_num(&r->conf->arena, r->message, r->field, num);
    return true;
}

static bool put_text(struct reading *r, const char *text)
{
    conf_field_put_text(&r->conf->arena, r->message, r->field, text);
    return true;
}

static bool is_unlimited(const char *text)
{
    return str_ieq(text, "UNLIMITED") || str_ieq(text, "INFINITE");
}

static bool read_text(struct reading *r, const char *text)
{
    for (const char *p = text; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return false;
    }
    if (strlen(text) > LIMIT_COMMENT_BYTES) {
        r->wrong = "is too long";
        return false;
    }
    return put_text(r, text);
}

static bool read_name(struct reading *r, const char *text)
{
    if (!*text || strlen(text) > LIMIT_NAME_BYTES)
        return false;
    for (const char *p = text; *p; p++) {
        if (!isalnum((unsigned char)*p) && !strchr("._-+:/@", *p))
            return false;
    }
    return put_text(r, text);
}

static bool read_path(struct reading *r, const char *text)
{
    if (*text != '/' || strlen(text) >= LIMIT_PATH_BYTES)
        return false;
    return read_text(r, text);
}

static bool read_bool(struct reading *r, const char *text)
{
    static const struct {
        const char *word;
        bool truth;
    } words[] = { { "true", true },   { "yes", true }, { "1", true },  { "up", true },
                  { "false", false }, { "no", false }, { "0", false }, { "down", false } };

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_ieq(text, words[i].word))
            return put_num(r, words[i].truth);
    }
    return false;
}

static int64_t max_of(const struct reading *r)
{
    if (r->key->max)
        return r->key->max;
    return r->field->type == PROTOBUF_C_TYPE_UINT32 ? UINT32_MAX : INT64_MAX;
}

static bool read_count(struct reading *r, const char *text)
{
    int64_t num;

    if (r->key->flags & CONF_PARENT && str_ieq(text, "parent"))
        return put_num(r, max_of(r));
    return str_to_i64(text, r->key->min, max_of(r), &num) && put_num(r, num);
}

/* "1:30:00" to units of `unit_s` seconds, rounded up; a number alone is that many units. */
static bool read_units(struct reading *r, const char *text, int64_t unit_s)
{
    int64_t num;

    if (str_to_i64(text, r->key->min, max_of(r), &num))
        return put_num(r, num);
    if (!strpbrk(text, ":-") || *text == '-' || timefmt_read_duration(text, &num, NULL) < 0 ||
        num < 0)
        return false;
    num = (num + unit_s - 1) / unit_s;
    return num >= r->key->min && num <= max_of(r) && put_num(r, num);
}

static bool read_seconds(struct reading *r, const char *text)
{
    return read_units(r, text, 1);
}

static bool read_minutes(struct reading *r, const char *text)
{
    return read_units(r, text, 60);
}

static bool read_time(struct reading *r, const char *text)
{
    int64_t seconds;

    if (timefmt_read_duration(text, &seconds, NULL) < 0 || seconds < 0)
        return false;
    return put_num(r, seconds);
}

static bool read_days(struct reading *r, const char *text)
{
    int64_t days;

    if (str_to_i64(text, r->key->min, max_of(r), &days))
        return put_num(r, days * 86400);
    return strpbrk(text, ":-") && read_time(r, text);
}

static bool read_mb(struct reading *r, const char *text)
{
    uint64_t bytes;

    if (size_read_memory(text, SIZE_M, &bytes, NULL) < 0)
        return false;
    if (!bytes && r->key->flags & CONF_UNLIMITED)
        return true; /* Slurm's way to say that there is none */
    return put_num(r, (int64_t)size_megabytes(bytes));
}

static bool read_hosts(struct reading *r, const char *text)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };
    struct err err = { 0 };

    if (hostlist_parse(&list, text, &err) < 0) {
        const char *why = str_starts(err.text, "hostlist '") ? strstr(err.text, "': ") : NULL;

        r->wrong = arena_strdup(&r->conf->arena, why ? why + 3 : err.text);
    } else if (!hostlist_count(&list)) {
        return false;
    } else if (hostlist_count(&list) > LIMIT_NODES) {
        r->wrong = arena_printf(&r->conf->arena, "%llu hosts are more than %d",
                                (unsigned long long)hostlist_count(&list), LIMIT_NODES);
    } else {
        return put_text(r, text);
    }
    r->conf->no_expansion = true;
    return false;
}

static bool read_word(struct reading *r, const char *text)
{
    struct conf_guess guess = { .wanted = text };
    struct str says = { 0 };

    for (size_t i = 0; r->key->words[i]; i++) {
        if (str_ieq(text, r->key->words[i]))
            return put_text(r, r->key->words[i]);
        conf_guess(&guess, r->key->words[i]);
    }
    conf_key_expects(r->key, &says);
    r->wrong = arena_printf(&r->conf->arena, "expected %s%s", str_text(&says),
                            conf_guess_text(&guess, &r->conf->arena));
    str_done(&says);
    return false;
}

/* An element of a list must be able to stand in Slurm's comma lists too. */
static bool read_element(struct reading *r, const char *text)
{
    if (!*text || strchr(text, ','))
        return false;
    return read_text(r, text);
}

static bool is_tres_number(const char *text)
{
    size_t len = strspn(text, "0123456789.");

    return len && (!text[len] || (strchr("KMGTPkmgtp", text[len]) && !text[len + 1]));
}

static bool read_tres(struct reading *r, const char *text)
{
    const char *cursor = text;
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        const char *eq = memchr(word.ptr, '=', word.len);
        char number[32];

        if (!eq || eq == word.ptr)
            return false;
        snprintf(number, sizeof(number), "%.*s", (int)(word.ptr + word.len - eq - 1), eq + 1);
        if (!is_tres_number(number))
            return false;
    }
    return read_text(r, text);
}

static bool read_gres(struct reading *r, const char *text)
{
    GresInventory *gres = ARENA_NEW(&r->conf->arena, GresInventory);
    struct err err = { 0 };

    gres_inventory__init(gres);
    if (conf_gres_parse(text, &r->conf->arena, gres, &err) < 0) {
        r->wrong = arena_strdup(&r->conf->arena, err.text);
        return false;
    }
    conf_field_put_message(&r->conf->arena, r->message, r->field, &gres->base);
    return true;
}

static bool read_addr(struct reading *r, const char *text)
{
    if (!*text || strpbrk(text, " \t\""))
        return false;
    return read_text(r, text);
}

static bool read_listen(struct reading *r, const char *text)
{
    const char *colon = strrchr(text, ':');
    int64_t port;

    if (!colon || !str_to_i64(colon + 1, 0, 65535, &port))
        return false;
    if (*text == '[' ? colon[-1] != ']' : memchr(text, ':', (size_t)(colon - text)) != NULL) {
        r->wrong = "an IPv6 address stands in brackets: \"[::]:6817\"";
        return false;
    }
    return read_addr(r, text);
}

static read_fn *const readers[] = {
    [CONF_TEXT] = read_text,       [CONF_NAME] = read_name,    [CONF_PATH] = read_path,
    [CONF_BOOL] = read_bool,       [CONF_COUNT] = read_count,  [CONF_SECONDS] = read_seconds,
    [CONF_MINUTES] = read_minutes, [CONF_TIME] = read_time,    [CONF_DAYS] = read_days,
    [CONF_MB] = read_mb,           [CONF_HOSTS] = read_hosts,  [CONF_WORD] = read_word,
    [CONF_WORDS] = read_word,      [CONF_LIST] = read_element, [CONF_COUNTS] = read_count,
    [CONF_TRES] = read_tres,       [CONF_GRES] = read_gres,    [CONF_ADDR] = read_addr,
    [CONF_ADDRS] = read_listen,
};

bool conf_type_is_list(enum conf_type type)
{
    return type == CONF_WORDS || type == CONF_LIST || type == CONF_COUNTS || type == CONF_GRES ||
           type == CONF_ADDRS;
}

/* UNLIMITED is -1 in times, the largest number of minutes, and no limit at all elsewhere. */
static void put_unlimited(struct reading *r)
{
    if (r->field->type == PROTOBUF_C_TYPE_INT64)
        put_num(r, -1);
    else if (r->key->type == CONF_MINUTES)
        put_num(r, UINT32_MAX);
}

static void note_wrong(struct reading *r, struct conf_source source, const char *text)
{
    const char *shown = conf_shown(r->conf, text);
    struct str says = { 0 };

    if (r->wrong) {
        conf_note_add(r->conf, CONF_NOTE_ERROR, source.at, "%s = %s: %s", source.as, shown,
                      r->wrong);
        return;
    }
    conf_key_expects(r->key, &says);
    conf_note_add(r->conf, CONF_NOTE_ERROR, source.at, "%s = %s: expected %s", source.as, shown,
                  str_text(&says));
    str_done(&says);
}

/* Rule: what is accepted acts, or says that it does not. */
static void note_later(struct conf *conf, const struct conf_key *key, struct conf_source source)
{
    vec_each (const struct conf_key *, said, &conf->later) {
        if (*said == key)
            return;
    }
    vec_push(&conf->later, key);
    if (key->instead)
        conf_note_add(conf, CONF_NOTE_KEPT, source.at, "%s changes nothing: %s", source.as,
                      key->instead);
    else
        conf_note_add(conf, CONF_NOTE_KEPT, source.at,
                      "%s is understood, but nothing in this version acts on it", source.as);
}

/* The same for single words of a key. */
static void note_later_word(struct conf *conf, const struct conf_key *key,
                            struct conf_source source, const char *text)
{
    for (size_t i = 0; key->later && key->later[i]; i++) {
        if (str_ieq(text, key->later[i]))
            conf_note_add(conf, CONF_NOTE_KEPT, source.at,
                          "%s of %s is understood, but nothing in this version acts on it",
                          key->later[i], source.as);
    }
}

int conf_set(struct conf *conf, struct conf_item *item, const struct conf_key *key,
             struct conf_source source, const char *const *texts, size_t count)
{
    struct reading r = { .conf = conf,
                         .key = key,
                         .message = conf_item_message(conf, item, key),
                         .field = conf_key_field(item->section, key) };

    conf_field_clear(r.message, r.field);
    *conf_key_origin(item, key) = source.at;
    for (size_t i = 0; i < count; i++) {
        if (key->flags & CONF_UNLIMITED && is_unlimited(texts[i])) {
            put_unlimited(&r);
        } else if (!readers[key->type](&r, texts[i])) {
            note_wrong(&r, source, texts[i]);
            return -1;
        }
        if (source.at.line)
            note_later_word(conf, key, source, texts[i]);
    }
    if (key->flags & CONF_LATER && source.at.line)
        note_later(conf, key, source);
    return 0;
}

int conf_set_list(struct conf *conf, struct conf_item *item, const struct conf_key *key,
                  struct conf_source source, const char *text)
{
    const char *cursor = text;
    struct span word;
    VEC(const char *) words = { 0 };
    int result;

    if (!conf_type_is_list(key->type))
        return conf_set(conf, item, key, source, &text, 1);
    while (str_next(&cursor, ",", &word))
        vec_push(&words, arena_strndup(&conf->arena, word.ptr, word.len));
    result = conf_set(conf, item, key, source, words.items, words.len);
    vec_done(&words);
    return result;
}

/* name[:type][:no_consume][:count], the count with K, M, G. */
int conf_gres_parse(const char *text, struct arena *arena, GresInventory *out, struct err *err)
{
    static const char units[] = "KMGTP";
    struct span words[8];
    const char *cursor = text;
    size_t count = 0;
    int64_t number = 1;

    while (count < ARRAY_LEN(words) && str_next(&cursor, ":", &words[count]))
        count++;
    if (!count || *cursor || strpbrk(text, " \t,\"="))
        return err_set(err, ERR_GRES,
                       "a resource is written name:type:count, such as gpu:mi300x:8");
    if (count > 1 && isdigit((unsigned char)*words[count - 1].ptr)) {
        char digits[24];
        struct span last = words[--count];
        const char *unit = strchr(units, toupper((unsigned char)last.ptr[last.len - 1]));

        snprintf(digits, sizeof(digits), "%.*s", (int)(unit ? last.len - 1 : last.len), last.ptr);
        if (last.len >= sizeof(digits) || !str_to_i64(digits, 0, INT64_C(1) << 32, &number))
            return err_set(err, ERR_GRES, "'%.*s' is no number of resources",
                           (int)MIN(last.len, 40), last.ptr);
        for (; unit && unit >= units; unit--)
            number *= 1024;
    }
    if (count > 1 && span_ieq(words[count - 1], "no_consume"))
        count--;
    if (count > 2)
        return err_set(err, ERR_GRES,
                       "a resource is written name:type:count, such as gpu:mi300x:8");
    out->name = arena_strndup(arena, words[0].ptr, words[0].len);
    out->type = count > 1 ? arena_strndup(arena, words[1].ptr, words[1].len) : NULL;
    out->has_count = 1;
    out->count = (uint64_t)number;
    return 0;
}
