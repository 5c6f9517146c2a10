// SPDX-License-Identifier: Apache-2.0
/*
 * field_write.c - writers that every field table may use
 */
#include <string.h>

#include "base/size.h"
#include "base/timefmt.h"
#include "schema/field.h"
#include "wire/message.h"

static bool text_or(const struct field_call *call, struct str *out, const char *absent)
{
    const char *text = field_string(call);

    str_add(out, text ? text : absent);
    return true;
}

bool field_text(const struct field_call *call, struct str *out)
{
    return text_or(call, out, "(null)");
}

bool field_text_na(const struct field_call *call, struct str *out)
{
    return text_or(call, out, "N/A");
}

bool field_text_empty(const struct field_call *call, struct str *out)
{
    return text_or(call, out, "");
}

bool field_text_or_skip(const struct field_call *call, struct str *out)
{
    return !str_is_empty(field_string(call)) && text_or(call, out, "");
}

static bool number_or(const struct field_call *call, struct str *out, const char *absent)
{
    if (field_present(call))
        str_add_i64(out, field_value(call));
    else
        str_add(out, absent);
    return true;
}

bool field_number(const struct field_call *call, struct str *out)
{
    return number_or(call, out, "0");
}

bool field_number_or_skip(const struct field_call *call, struct str *out)
{
    return field_value(call) != 0 && number_or(call, out, "");
}

bool field_number_na(const struct field_call *call, struct str *out)
{
    return number_or(call, out, "N/A");
}

bool field_number_star(const struct field_call *call, struct str *out)
{
    return number_or(call, out, "*");
}

bool field_bool_digit(const struct field_call *call, struct str *out)
{
    str_add_char(out, field_value(call) ? '1' : '0');
    return true;
}

bool field_yes_no(const struct field_call *call, struct str *out)
{
    str_add(out, field_value(call) ? "YES" : "NO");
    return true;
}

void field_add_moment(struct str *out, const struct field_ctx *ctx, int64_t us)
{
    timefmt_write_point(out, us / 1000000, ctx->now_us / 1000000, ctx->time_format);
}

static bool time_or(const struct field_call *call, struct str *out, const char *absent)
{
    int64_t us = field_value(call);

    if (us > 0)
        field_add_moment(out, call->ctx, us);
    else
        str_add(out, absent);
    return true;
}

bool field_time(const struct field_call *call, struct str *out)
{
    return time_or(call, out, "N/A");
}

bool field_time_unknown(const struct field_call *call, struct str *out)
{
    return time_or(call, out, "Unknown");
}

bool field_time_none(const struct field_call *call, struct str *out)
{
    return time_or(call, out, "None");
}

bool field_limit(const struct field_call *call, struct str *out)
{
    if (field_present(call))
        timefmt_write_duration(out, field_value(call), TIMEFMT_SHORT);
    else
        str_add(out, "NOT_SET");
    return true;
}

static bool list_or(const struct field_call *call, struct str *out, const char *empty)
{
    const void *message = field_message(call);
    const ProtobufCFieldDescriptor *field =
        msg_field_at(call->field->of.type, call->field->of.offset);
    size_t count =
        message ? *(const size_t *)((const char *)message + field->quantifier_offset) : 0;
    char **items = message ? *(char **const *)((const char *)message + field->offset) : NULL;

    for (size_t i = 0; i < count; i++)
        str_addf(out, "%s%s", i ? "," : "", items[i]);
    if (!count)
        str_add(out, empty);
    return true;
}

bool field_list(const struct field_call *call, struct str *out)
{
    return list_or(call, out, "(null)");
}

bool field_list_all(const struct field_call *call, struct str *out)
{
    return list_or(call, out, "ALL");
}

void field_add_megabytes(struct str *out, uint64_t mb, bool noconvert)
{
    size_write(out, mb, SIZE_M, noconvert ? SIZE_NOCONVERT : SIZE_EXACT);
}
