/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.h - struct err as gRPC trailers, and back
 *
 * Any gRPC client understands grpc-status and grpc-message. Ours also reads spur-error-bin, which
 * carries the exact code, Slurm's number and the option at fault, and spur-leader, the address of
 * the controller to ask instead.
 */
#ifndef RPC_STATUS_H
#define RPC_STATUS_H

#include "rpc/h2.h"

enum { STATUS_TRAILERS = 4, STATUS_LEADER_BYTES = 512 };

/* Fills out[] with pointers into scratch; returns how many. leader may be NULL. */
size_t status_trailers(const struct err *err, const char *leader, struct str *scratch,
                       struct h2_header out[STATUS_TRAILERS]);

/* What a client has seen of an answer's headers and trailers. */
struct status {
    bool has_http, has_grpc;
    unsigned http, grpc;
    struct str message, error_bin;
    char leader[STATUS_LEADER_BYTES];
};

void status_done(struct status *status);
void status_header(struct status *status, const struct h2_header *header);
/* 0 when the call succeeded; otherwise the error as the server meant it. */
int status_result(const struct status *status, struct err *err);

#endif
