/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmi_wire.h - the two dialects that tasks speak on PMI_FD (pure)
 *
 * PMI-1 is lines of "name=value" with blanks between. PMI-2 begins with such a line; after it each side
 * sends packets: six digits, the length, then "name=value;" where ";;" is a semicolon of the value.
 */
#ifndef SPURSTEPD_PMI_WIRE_H
#define SPURSTEPD_PMI_WIRE_H

#include "base/str.h"
#include "base/util.h"

enum {
    PMI_WORDS_MAX = 64,
    PMI_HEADER_BYTES = 6,
    PMI_MESSAGE_BYTES = 64 * 1024, /* one line or packet of a task */
    PMI_NAME_BYTES = 256,
    PMI_KEY_BYTES = 64,
    PMI_VALUE_BYTES = 1024,
};

struct pmi_words {
    struct pmi_word {
        char *name, *value;
    } list[PMI_WORDS_MAX];
    size_t count;
};

/* Cut `text` in place; false: not a message. The words point into it. */
bool pmi_read_line(char *text, struct pmi_words *out);
bool pmi_read_packet(char *text, struct pmi_words *out);
/* NULL: it is not there. */
const char *pmi_word(const struct pmi_words *words, const char *name);

/* The length of the first whole message in a buffer, with its header; 0: not all is here; -1: nonsense. */
int64_t pmi_line_len(const char *text, size_t len);
int64_t pmi_packet_len(const char *text, size_t len);

/* Appends "name=value;" to a packet's body. */
void pmi_add(struct str *out, const char *name, const char *value);
void pmi_add_num(struct str *out, const char *name, int64_t value);

/*
 * Which rank is on which node, as MPI libraries read it from the key PMI_process_mapping:
 * "(vector,(first node,nodes,ranks on each),...)".
 */
void pmi_mapping(const uint32_t *node_of, size_t ranks, struct str *out);

#endif
