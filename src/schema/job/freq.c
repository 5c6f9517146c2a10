/* SPDX-License-Identifier: Apache-2.0 */
/*
 * freq.c - the text of --cpu-freq, read: P1, P1-P2[:GOVERNOR] or GOVERNOR
 */
#include "schema/freq.h"

#include <string.h>

#include "proto/step.pb-c.h"

enum { KHZ_MAX = 0x7fffffff };

static const struct {
    const char *word, *shown;
    uint32_t value;
} words[] = {
    { "low", "Low", STEP_FREQ_LOW },
    { "medium", "Medium", STEP_FREQ_MEDIUM },
    { "highm1", "Highm1", STEP_FREQ_HIGHM1 },
    { "high", "High", STEP_FREQ_HIGH },
};

static const char *const governors[] = { "Conservative", "OnDemand",  "Performance",
                                         "PowerSave",    "SchedUtil", "UserSpace" };

static const char *governor_of(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(governors); i++) {
        if (str_ieq(text, governors[i]))
            return governors[i];
    }
    return NULL;
}

static uint32_t value_of(const char *text)
{
    uint64_t khz;

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_ieq(text, words[i].word))
            return words[i].value;
    }
    if (!str_to_u64(text, KHZ_MAX, &khz) || khz == 0)
        return 0;
    return khz > STEP_FREQ_HIGH ? (uint32_t)khz : STEP_FREQ_LOW;
}

/* Numbers are below words, as Slurm compares them. */
static uint32_t rank_of(uint32_t value)
{
    return value <= STEP_FREQ_HIGH ? KHZ_MAX + value : value;
}

/* P1[-P2][:P3], in place. */
static int read_parts(char *p1, struct freq *out, struct err *err)
{
    char *p3 = strchr(p1, ':');
    if (p3)
        *p3++ = '\0';
    char *p2 = strchr(p1, '-');
    if (p2)
        *p2++ = '\0';
    const char *governor = governor_of(p1);

    if (governor && p3)
        return err_set(err, ERR_INVALID,
                       "governor cannot be specified twice %s{-}:%s in --cpu-freq", p1, p3);
    if (governor && !p2) {
        out->governor = governor;
        return 0;
    }
    uint32_t first = value_of(p1), second = p2 ? value_of(p2) : 0;
    if ((!first && !governor) || (p2 && !second))
        return err_set(err, ERR_INVALID, "unrecognized --cpu-freq argument \"%s\"",
                       first || governor ? p2 : p1);
    if (p2 && (governor || rank_of(first) > rank_of(second)))
        return err_set(err, ERR_INVALID, "min cpu-frec (%s) must be < max cpu-freq (%s)", p1, p2);
    if (p3 && !p2)
        return err_set(err, ERR_INVALID, "gov on cpu-frec (%s) illegal without max", p3);
    if (p3 && !(out->governor = governor_of(p3)))
        return err_set(err, ERR_INVALID, "illegal governor: %s on --cpu-freq", p3);
    out->min = p2 ? first : 0;
    out->max = p2 ? second : first;
    if (!p2)
        out->governor = governor_of("UserSpace");
    return 0;
}

int freq_read(const char *text, struct freq *out, struct err *err)
{
    *out = (struct freq){ 0 };
    if (str_is_empty(text))
        return 0;
    CLEANUP(freep) char *copy = mem_strdup(text);
    return read_parts(copy, out, err);
}

int freq_allowed(const struct freq *freq, const char *list, struct err *err)
{
    CLEANUP(freep) char *shown = NULL;
    struct span word;

    /* One frequency alone needs UserSpace, which nobody asked for by name. */
    if (!freq->governor || (freq->max && !freq->min))
        return 0;
    while (list && str_next(&list, ",", &word)) {
        if (span_ieq(word, freq->governor))
            return 0;
    }
    shown = mem_strdup(freq->governor);
    for (char *at = shown; *at; at++)
        *at = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
    return err_set(err, ERR_INVALID, "governor of %s is not allowed in slurm.conf", shown);
}

void freq_add_one(uint32_t value, struct str *out)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (value == words[i].value) {
            str_add(out, words[i].shown);
            return;
        }
    }
    str_add_u64(out, value);
}

void freq_add(const struct freq *freq, struct str *out)
{
    if (freq->min) {
        freq_add_one(freq->min, out);
        str_add(out, "-");
    }
    if (freq->max)
        freq_add_one(freq->max, out);
    if (freq->governor && (freq->min || !freq->max))
        str_addf(out, "%s%s", freq->max ? ":" : "", freq->governor);
}

int freq_read_gpu(const char *text, struct freq_gpu *out, struct err *err)
{
    struct span word;

    *out = (struct freq_gpu){ 0 };
    for (const char *cursor = text ? text : ""; str_next(&cursor, ",", &word);) {
        CLEANUP(freep) char *own = mem_strndup(word.ptr, word.len);
        bool memory = str_istarts(own, "memory=");
        if (str_ieq(own, "verbose")) {
            out->verbose = true;
            continue;
        }
        uint32_t value = value_of(memory ? own + 7 : str_istarts(own, "gpu=") ? own + 4 : own);
        if (!value)
            return err_set(err, ERR_INVALID, "Invalid --gpu-freq argument: %s", text);
        *(memory ? &out->memory : &out->gpu) = value;
    }
    return 0;
}
