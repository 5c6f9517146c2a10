/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmi_wire.c - the two dialects that tasks speak on PMI_FD (pure)
 */
#include "spurstepd/pmi_wire.h"

#include <stdio.h>
#include <string.h>

static bool add_word(struct pmi_words *out, char *name, char *value)
{
    if (out->count == PMI_WORDS_MAX)
        return false;
    out->list[out->count++] = (struct pmi_word){ name, value };
    return true;
}

bool pmi_read_line(char *text, struct pmi_words *out)
{
    char *save = NULL;

    out->count = 0;
    for (char *word = strtok_r(text, " \t\r\n", &save); word;
         word = strtok_r(NULL, " \t\r\n", &save)) {
        char *value = strchr(word, '=');
        if (value)
            *value++ = '\0';
        if (!add_word(out, word, value ? value : word + strlen(word)))
            return false;
    }
    return out->count > 0;
}

/* Up to the semicolon that ends a value; two of them are one of the value's. */
static char *cut_value(char *text)
{
    char *to = text;

    for (; *text; text++) {
        if (*text == ';' && text[1] != ';')
            break;
        text += *text == ';';
        *to++ = *text;
    }
    char *next = *text ? text + 1 : text;
    *to = '\0';
    return next;
}

bool pmi_read_packet(char *text, struct pmi_words *out)
{
    out->count = 0;
    while (*text) {
        char *value = strchr(text, '='), *name = text;
        if (!value)
            return false;
        *value++ = '\0';
        text = cut_value(value);
        if (!add_word(out, name, value))
            return false;
    }
    return out->count > 0;
}

const char *pmi_word(const struct pmi_words *words, const char *name)
{
    for (size_t i = 0; i < words->count; i++) {
        if (strcmp(words->list[i].name, name) == 0)
            return words->list[i].value;
    }
    return NULL;
}

int64_t pmi_line_len(const char *text, size_t len)
{
    const char *end = memchr(text, '\n', len);

    if (!end)
        return len > PMI_MESSAGE_BYTES ? -1 : 0;
    return end - text + 1;
}

int64_t pmi_packet_len(const char *text, size_t len)
{
    int64_t body = 0;

    if (len < PMI_HEADER_BYTES)
        return 0;
    for (int i = 0; i < PMI_HEADER_BYTES; i++) {
        if (text[i] >= '0' && text[i] <= '9')
            body = body * 10 + (text[i] - '0');
        else if (text[i] != ' ')
            return -1;
    }
    if (body <= 0 || body > PMI_MESSAGE_BYTES)
        return -1;
    return len < (size_t)(body + PMI_HEADER_BYTES) ? 0 : body + PMI_HEADER_BYTES;
}

void pmi_add(struct str *out, const char *name, const char *value)
{
    str_addf(out, "%s=", name);
    for (; *value; value++) {
        if (*value == ';')
            str_add_char(out, ';');
        str_add_char(out, *value);
    }
    str_add_char(out, ';');
}

void pmi_add_num(struct str *out, const char *name, int64_t value)
{
    str_addf(out, "%s=%lld;", name, (long long)value);
}

void pmi_mapping(const uint32_t *node_of, size_t ranks, struct str *out)
{
    str_add(out, "(vector");
    for (size_t at = 0; at < ranks;) {
        size_t each = 1, nodes = 1;
        while (at + each < ranks && node_of[at + each] == node_of[at])
            each++;
        for (size_t next = at + each; next + each <= ranks; next += each, nodes++) {
            size_t same = 0; /* ranks of the next node; all of a run, and no more */
            while (next + same < ranks && node_of[next + same] == node_of[at] + nodes)
                same++;
            if (same != each)
                break;
        }
        str_addf(out, ",(%u,%zu,%zu)", node_of[at], nodes, each);
        at += nodes * each;
    }
    str_add_char(out, ')');
}
