/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease.c - until when a step may run without a word from a controller
 */
#include "spurstepd/lease.h"

#include "base/str.h"
#include "proto/step.pb-c.h"
#include "sys/files.h"

enum { LEASE_FILE_BYTES = 256 };

int64_t lease_over_us(const char *file, int64_t now_us)
{
    CLEANUP(str_done) struct str text = { 0 };
    int64_t over_us = now_us;

    if (file_read(file, LEASE_FILE_BYTES, &text, NULL) < 0)
        return now_us;
    StepLease *lease = step_lease__unpack(NULL, text.len, (const uint8_t *)str_text(&text));
    if (lease && lease->lease_ms == 0)
        over_us = -1;
    else if (lease)
        over_us = lease->heard_us + lease->lease_ms * INT64_C(1000);
    if (lease)
        step_lease__free_unpacked(lease, NULL);
    return over_us;
}
