/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_data.c - what users do not see of others
 */
#include "schema/private_data.h"

#include "base/str.h"

bool private_data_hides(const char *words, const char *what, bool staff)
{
    struct span word;

    while (!staff && words && str_next(&words, ",", &word)) {
        if (span_eq(word, what))
            return true;
    }
    return false;
}
