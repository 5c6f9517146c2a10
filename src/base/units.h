/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units.h - how many of the one are in the other
 */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include <stdint.h>

#define US_PER_MS INT64_C(1000)
#define US_PER_S  INT64_C(1000000)
#define S_PER_DAY INT64_C(86400)
#define MS_PER_S  1000

#endif
