// SPDX-License-Identifier: Apache-2.0
/*
 * option_read.c - readers that every option table may use
 */
#include <string.h>

#include "base/limits.h"
#include "base/timefmt.h"
#include "schema/option.h"
#include "wire/message.h"

static void *place(const struct option_call *call)
{
    return (char *)call->target + call->row->into.offset;
}

static const ProtobufCFieldDescriptor *message_field(const struct option_call *call)
{
    return msg_field_at(call->row->into.type, call->row->into.offset);
}

void option_set_number(const struct option_call *call, int64_t value)
{
    switch (call->row->into.kind) {
    case INTO_MESSAGE:
        msg_set_number(*(void **)call->target, message_field(call), value);
        break;
    case INTO_BOOL:
        *(bool *)place(call) = value != 0;
        break;
    case INTO_U32:
        *(uint32_t *)place(call) = (uint32_t)value;
        break;
    case INTO_I64:
        *(int64_t *)place(call) = value;
        break;
    case INTO_TEXT:
    case INTO_NOTHING:
        break;
    }
}

void option_set_text(const struct option_call *call, const char *text)
{
    if (call->row->into.kind == INTO_MESSAGE)
        msg_set_text(*(void **)call->target, message_field(call), text);
    else if (call->row->into.kind == INTO_TEXT)
        *(const char **)place(call) = text;
}

int option_flag(const struct option_call *call, const char *value, struct err *err)
{
    /* Words come only from scontrol update: Contiguous=no. */
    if (value && (str_ieq(value, "no") || str_ieq(value, "n") || strcmp(value, "0") == 0))
        return option_off(call, NULL, err);
    if (value && !str_ieq(value, "yes") && !str_ieq(value, "y") && strcmp(value, "1") != 0)
        return option_invalid(call, err);
    option_set_number(call, call->row->value ? call->row->value : 1);
    return 0;
}

int option_off(const struct option_call *call, const char *value, struct err *err)
{
    option_set_number(call, 0);
    return 0;
}

int option_text(const struct option_call *call, const char *value, struct err *err)
{
    if (value && strlen(value) > LIMIT_COMMENT_BYTES)
        return err_set(err, ERR_TOO_LARGE, "--%s is longer than %d bytes", call->row->name,
                       LIMIT_COMMENT_BYTES);
    option_set_text(call, value ? value : "");
    return 0;
}

int option_increase(const struct option_call *call, const char *value, struct err *err)
{
    /* -v is one more; SBATCH_DEBUG=3 is three. */
    uint64_t count = 1;

    if (value && !str_to_u64(value, 100, &count))
        return err_set(err, ERR_RANGE, "Invalid numeric value \"%s\" for --%s.", value,
                       call->row->name);
    if (call->row->into.kind == INTO_U32)
        *(uint32_t *)place(call) += (uint32_t)count;
    return 0;
}

static int read_count(const struct option_call *call, const char *value, int64_t least,
                      struct err *err)
{
    int64_t number;

    if (!str_to_i64(value, least, INT32_MAX, &number))
        return err_set(err, ERR_RANGE, "Invalid numeric value \"%s\" for --%s.", value,
                       call->row->name);
    option_set_number(call, number);
    return 0;
}

int option_number(const struct option_call *call, const char *value, struct err *err)
{
    return read_count(call, value, 0, err);
}

int option_positive(const struct option_call *call, const char *value, struct err *err)
{
    return read_count(call, value, 1, err);
}

int option_invalid(const struct option_call *call, struct err *err)
{
    return err_set(err, ERR_INVALID, "Invalid --%s specification", call->row->name);
}

int option_duration(const struct option_call *call, const char *value, struct err *err)
{
    int64_t seconds;

    if (timefmt_read_duration(value, &seconds, NULL) < 0)
        return option_invalid(call, err);
    /* Slurm keeps minutes: seconds round up. */
    option_set_number(call, seconds < 0 ? seconds : timefmt_minutes(seconds) * 60);
    return 0;
}

int option_ignored(const struct option_call *call, const char *value, struct err *err)
{
    return 0;
}
