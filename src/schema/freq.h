/* SPDX-License-Identifier: Apache-2.0 */
/*
 * freq.h - the text of --cpu-freq, read: P1, P1-P2[:GOVERNOR] or GOVERNOR
 */
#ifndef SCHEMA_FREQ_H
#define SCHEMA_FREQ_H

#include "base/err.h"
#include "base/str.h"

struct freq {
    uint32_t min, max;    /* kilohertz or StepFreqWord; 0: not said. Only max: this one alone */
    const char *governor; /* "OnDemand"; NULL: not said */
};

/* NULL and "" are nothing. */
int freq_read(const char *text, struct freq *out, struct err *err);

/* Is its governor among those of CpuFreqGovernors? */
int freq_allowed(const struct freq *freq, const char *governors, struct err *err);

/* As it is asked for; and one frequency: "2400000", "Low". */
void freq_add(const struct freq *freq, struct str *out);
void freq_add_one(uint32_t value, struct str *out);

/* --gpu-freq: [memory=]VALUE,...[,verbose]; megahertz or StepFreqWord, 0: not said. */
struct freq_gpu {
    uint32_t gpu, memory;
    bool verbose;
};
int freq_read_gpu(const char *text, struct freq_gpu *out, struct err *err);

#endif
