/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.c - struct err as gRPC trailers, and back
 */
#include "rpc/status.h"

#include <stdio.h>
#include <string.h>

#include "proto/controller.pb-c.h"
#include "rpc/coding.h"

static void add_error_bin(struct str *out, const struct err *err)
{
    ErrorDetail msg = ERROR_DETAIL__INIT;
    uint8_t packed[ERR_TEXT_BYTES + ERR_OPTION_BYTES + 128];

    msg.code = (char *)(uintptr_t)err_name(err->code);
    msg.text = (char *)(uintptr_t)err->text;
    if (err->option[0])
        msg.option = (char *)(uintptr_t)err->option;
    msg.has_slurm = err_slurm(err->code) != 0;
    msg.slurm = (uint32_t)err_slurm(err->code);
    base64_add(out, packed, error_detail__pack(&msg, packed));
}

size_t status_trailers(const struct err *err, const char *leader, struct str *scratch,
                       struct h2_header out[STATUS_TRAILERS])
{
    str_addf(scratch, "%d", (int)err_grpc(err->code));
    size_t message_at = scratch->len;
    percent_add(scratch, err->text, strlen(err->text));
    size_t bin_at = scratch->len;
    add_error_bin(scratch, err);
    const char *text = scratch->data;
    size_t n = 0;
    out[n++] = (struct h2_header){ "grpc-status", 11, text, message_at, false };
    out[n++] =
        (struct h2_header){ "grpc-message", 12, text + message_at, bin_at - message_at, true };
    out[n++] =
        (struct h2_header){ "spur-error-bin", 14, text + bin_at, scratch->len - bin_at, true };
    if (leader && *leader)
        out[n++] = (struct h2_header){ "spur-leader", 11, leader, strlen(leader), false };
    return n;
}

void status_done(struct status *status)
{
    str_done(&status->message);
    str_done(&status->error_bin);
}

static bool is(const struct h2_header *header, const char *name)
{
    return header->name_len == strlen(name) && memcmp(header->name, name, header->name_len) == 0;
}

static bool small_number(const struct h2_header *header, unsigned *out)
{
    unsigned value = 0;

    if (header->value_len == 0 || header->value_len > 3)
        return false;
    for (size_t i = 0; i < header->value_len; i++) {
        if (header->value[i] < '0' || header->value[i] > '9')
            return false;
        value = value * 10 + (unsigned)(header->value[i] - '0');
    }
    *out = value;
    return true;
}

void status_header(struct status *status, const struct h2_header *header)
{
    if (is(header, ":status")) {
        status->has_http = small_number(header, &status->http);
    } else if (is(header, "grpc-status")) {
        status->has_grpc = small_number(header, &status->grpc);
    } else if (is(header, "grpc-message")) {
        str_clear(&status->message);
        percent_decode(&status->message, header->value, header->value_len);
    } else if (is(header, "spur-error-bin")) {
        str_clear(&status->error_bin);
        str_add_len(&status->error_bin, header->value, header->value_len);
    } else if (is(header, "spur-leader") && header->value_len < sizeof(status->leader)) {
        memcpy(status->leader, header->value, header->value_len);
        status->leader[header->value_len] = '\0';
    }
}

static enum err_code code_by_name(const char *name)
{
    for (int code = 1; code < ERR_COUNT; code++) {
        if (strcmp(err_name((enum err_code)code), name) == 0)
            return (enum err_code)code;
    }
    return ERR_OK;
}

/* The exact error of one of our servers; false when there is none or it makes no sense. */
static bool exact(const struct status *status, struct err *err)
{
    CLEANUP(str_done) struct str packed = { 0 };

    if (!status->error_bin.len ||
        !base64_decode(&packed, status->error_bin.data, status->error_bin.len))
        return false;
    ErrorDetail *msg = error_detail__unpack(NULL, packed.len, (const uint8_t *)packed.data);
    if (!msg)
        return false;
    enum err_code code = msg->code ? code_by_name(msg->code) : ERR_OK;
    if (code == ERR_OK && msg->has_slurm)
        code = err_from_slurm(
            (int)MIN(msg->slurm, 99999u)); /* a newer server's code: the nearest that we know */
    if (code == ERR_OK)
        code = err_from_grpc(status->grpc);
    err_set(err, code, "%s", msg->text ? msg->text : err_text(code));
    err_option(err, msg->option);
    error_detail__free_unpacked(msg, NULL);
    return true;
}

int status_result(const struct status *status, struct err *err)
{
    struct err local;

    if (!err)
        err = &local;
    if (!status->has_grpc) {
        if (status->has_http && status->http != 200)
            return err_set(err, ERR_CONNECTION_LOST,
                           "the server answered HTTP status %u, not a gRPC status", status->http);
        return err_set(err, ERR_CONNECTION_LOST, "the answer ended without a status");
    }
    if (status->grpc == GRPC_OK)
        return 0;
    if (!exact(status, err)) {
        enum err_code code = err_from_grpc((enum grpc_status)status->grpc);
        err_set(err, code, "%s", status->message.len ? status->message.data : err_text(code));
    }
    return -(int)err->code;
}
