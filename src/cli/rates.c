/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rates.c - what use costs
 */
#include "cli/rates.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* The rate of a TRES; -1: it has none. */
static double rate_of(const char *rates, const char *tres)
{
    size_t len = strlen(tres);
    struct span word;

    while (rates && str_next(&rates, ",", &word)) {
        if (word.len > len && word.ptr[len] == '=' && strncmp(word.ptr, tres, len) == 0)
            return strtod(word.ptr + len + 1, NULL);
    }
    return -1;
}

double rates_cost(const char *rates, const struct rates_line *lines, size_t count)
{
    double cost = 0;

    for (size_t i = 0; i < count; i++) {
        double rate = rate_of(rates, lines[i].tres);
        double hours = (double)lines[i].amount / 3600;
        if (rate < 0)
            continue;
        size_t len = strlen(lines[i].tres);
        for (size_t k = 0; k < count; k++) { /* by type */
            if (strncmp(lines[k].tres, lines[i].tres, len) == 0 && lines[k].tres[len] == ':' &&
                rate_of(rates, lines[k].tres) >= 0)
                hours -= (double)lines[k].amount / 3600;
        }
        cost += rate * hours / (strcmp(lines[i].tres, "mem") == 0 ? 1024 : 1);
    }
    return cost;
}
