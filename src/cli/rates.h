/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rates.h - what use costs, by the setting accounting.rates
 */
#ifndef CLI_RATES_H
#define CLI_RATES_H

#include "base/util.h"

/* Amounts of one bill: TRES by name, in TRES-seconds (of memory MB-seconds). */
struct rates_line {
    const char *tres;
    int64_t amount;
};

/*
 * What the lines cost at rates like "cpu=0.01,mem=0.002,gres/gpu=1.2,gres/gpu:h100=2.4", each for an hour of the TRES
 * (of memory an hour of a GB). What has a rate by its type does not count by its name as well.
 */
double rates_cost(const char *rates, const struct rates_line *lines, size_t count);

#endif
