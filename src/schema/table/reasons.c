// SPDX-License-Identifier: Apache-2.0
/*
 * reasons.c - numbers and words of job reasons
 */
#include "schema/reasons.h"

#include <string.h>

static const struct reason_row {
    uint32_t number;
    const char *word, *help;
} rows[] = {
#define REASON(symbol, number, word, help) { number, word, help },
#include "schema/reasons_list.h"
#undef REASON
};

static const struct reason_row *row_of(uint32_t reason)
{
    /* Rows are in the order of their numbers, with a few numbers left out. */
    size_t i = MIN(reason, ARRAY_LEN(rows) - 1);

    while (i > 0 && rows[i].number > reason)
        i--;
    return rows[i].number == reason ? &rows[i] : NULL;
}

const char *reason_word(uint32_t reason)
{
    const struct reason_row *row = row_of(reason);

    return row ? row->word : "InvalidReason";
}

const char *reason_help(uint32_t reason)
{
    const struct reason_row *row = row_of(reason);

    return row ? row->help : NULL;
}

bool reason_find(const char *word, uint32_t *reason)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (str_ieq(rows[i].word, word)) {
            *reason = rows[i].number;
            return true;
        }
    }
    return false;
}

void reason_add(struct str *out, uint32_t reason, const char *text, uint32_t exit_status)
{
    int sig = (int)(exit_status & 0x7f);

    if (!str_is_empty(text))
        str_add(out, text);
    else if (reason == REASON_FAIL_SIGNAL && sig)
        str_addf(out, "%s:%d(%s)", reason_word(reason), sig, strsignal(sig));
    else
        str_add(out, reason_word(reason));
}
