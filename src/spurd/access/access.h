/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.h - who may ask this node about a job
 */
#ifndef SPURD_ACCESS_ACCESS_H
#define SPURD_ACCESS_ACCESS_H

#include "spurd/root.h"

enum { STEP_PROOF_BYTES = 32 };

/* The owner of the job, or root? A token for one job: for this one, on this node? */
int step_check_owner(const struct rpc_call *call, const struct attempt *held, struct err *err);
bool step_is_owner(const struct rpc_call *call, const struct attempt *held);
/* Does a proof of the job's manager go with this layout? */
bool step_is_proved(const Grant *grant, const ProtobufCBinaryData *layout,
                    const ProtobufCBinaryData *proof);
/* Writes who was refused what, and why. */
void step_refused(const struct rpc_call *call, const char *what, uint32_t job,
                  const struct err *err);

/* The proof of the managing node that goes with these bytes. */
void step_prove(const ProtobufCBinaryData *key, const void *bytes, size_t len,
                uint8_t out[STEP_PROOF_BYTES]);

#endif
