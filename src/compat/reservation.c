// SPDX-License-Identifier: Apache-2.0
/*
 * reservation.c - reservations as reserve_info_t; loading, freeing, making and changing them
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compat/compat.h"
#include "schema/update.h"
#include "sys/clock.h"

static const struct {
    uint64_t flag;
    const char *word;
} flag_words[] = {
    { RESERVE_FLAG_MAINT, "MAINT" },
    { RESERVE_FLAG_NO_MAINT, "NO_MAINT" },
    { RESERVE_FLAG_FLEX, "FLEX" },
    { RESERVE_FLAG_NO_FLEX, "NO_FLEX" },
    { RESERVE_FLAG_OVERLAP, "OVERLAP" },
    { RESERVE_FLAG_IGN_JOBS, "IGNORE_JOBS" },
    { RESERVE_FLAG_NO_IGN_JOB, "NO_IGNORE_JOBS" },
    { RESERVE_FLAG_HOURLY, "HOURLY" },
    { RESERVE_FLAG_DAILY, "DAILY" },
    { RESERVE_FLAG_NO_DAILY, "NO_DAILY" },
    { RESERVE_FLAG_WEEKDAY, "WEEKDAY" },
    { RESERVE_FLAG_WEEKEND, "WEEKEND" },
    { RESERVE_FLAG_WEEKLY, "WEEKLY" },
    { RESERVE_FLAG_NO_WEEKLY, "NO_WEEKLY" },
    { RESERVE_FLAG_SPEC_NODES, "SPEC_NODES" },
    { RESERVE_FLAG_ALL_NODES, "ALL_NODES" },
    { RESERVE_FLAG_ANY_NODES, "ANY_NODES" },
    { RESERVE_FLAG_STATIC, "STATIC" },
    { RESERVE_FLAG_PART_NODES, "PART_NODES" },
    { RESERVE_FLAG_NO_PART_NODES, "NO_PART_NODES" },
    { RESERVE_FLAG_TIME_FLOAT, "TIME_FLOAT" },
    { RESERVE_FLAG_REPLACE, "REPLACE" },
    { RESERVE_FLAG_REPLACE_DOWN, "REPLACE_DOWN" },
    { RESERVE_FLAG_PURGE_COMP, "PURGE_COMP" },
    { RESERVE_FLAG_NO_HOLD_JOBS, "NO_HOLD_JOBS_AFTER_END" },
    { RESERVE_FLAG_MAGNETIC, "MAGNETIC" },
    { RESERVE_FLAG_NO_MAGNETIC, "NO_MAGNETIC" },
    { RESERVE_FLAG_SKIP, "SKIP" },
};

static uint64_t flags_of(const ReservationSpec *spec)
{
    uint64_t flags = 0;

    for (size_t i = 0; i < spec->n_flags; i++) {
        for (size_t k = 0; k < ARRAY_LEN(flag_words); k++) {
            if (str_ieq(spec->flags[i], flag_words[k].word))
                flags |= flag_words[k].flag;
        }
    }
    return flags;
}

static void add_flags(struct str *out, uint64_t flags)
{
    size_t begin = out->len;

    for (size_t k = 0; k < ARRAY_LEN(flag_words); k++) {
        if (flags & flag_words[k].flag)
            str_addf(out, "%s%s", out->len > begin ? "," : "", flag_words[k].word);
    }
}

char *slurm_reservation_flags_string(reserve_info_t *resv_ptr)
{
    GUARD(NULL);
    struct str out = { 0 };

    if (resv_ptr)
        add_flags(&out, resv_ptr->flags);
    char *text = compat_text_kept(str_text(&out));
    str_done(&out);
    return text;
}

static void fill(reserve_info_t *out, const Reservation *one)
{
    static const ReservationSpec none = RESERVATION_SPEC__INIT;
    const ReservationSpec *spec = one->spec ? one->spec : &none;

#define FILL(member, ...) \
    IF_MEMBER(reserve_info_t_##member, out->member = (__typeof__(out->member))(__VA_ARGS__);)
#define SKIP(member, why)
#include "compat/reservation_rows.h"
#undef FILL
#undef SKIP
}

static int load(struct session *session, void *args, struct err *err)
{
    ListReservationsRequest request = LIST_RESERVATIONS_REQUEST__INIT;
    ListReservationsReply *reply;

    if (compat_call(session, "ListReservations", &request.base,
                    &list_reservations_reply__descriptor, (ProtobufCMessage **)&reply, err) < 0 ||
        compat_know_nodes(session, err) < 0)
        return -1;
    reserve_info_msg_t *msg = compat_alloc(sizeof(*msg));
    msg->last_update = compat_seconds(clock_wall_us());
    msg->record_count = (uint32_t)reply->n_reservations;
    msg->reservation_array =
        reply->n_reservations ? compat_alloc(reply->n_reservations * sizeof(reserve_info_t)) : NULL;
    for (size_t i = 0; i < reply->n_reservations; i++)
        fill(&msg->reservation_array[i], reply->reservations[i]);
    *(reserve_info_msg_t **)args = msg;
    return 0;
}

int slurm_load_reservations(time_t update_time, reserve_info_msg_t **resp)
{
    NEED(resp, SLURM_ERROR);
    return compat_run(load, resp);
}

void slurm_free_reservation_info_msg(reserve_info_msg_t *resv_info_ptr)
{
    if (!resv_info_ptr)
        return;
    compat_free_reserve_info_msg_t(resv_info_ptr);
    slurm_xfree((void **)&resv_info_ptr);
}

void slurm_free_reserve_info_members(reserve_info_t *resv)
{
    if (resv)
        compat_free_reserve_info_t(resv);
}

/* ---- changes ---- */

void slurm_init_resv_desc_msg(resv_desc_msg_t *update_resv_msg)
{
    resv_desc_msg_t *msg = update_resv_msg;

    if (!msg)
        return;
    memset(msg, 0, sizeof(*msg));
    msg->duration = msg->max_start_delay = msg->purge_comp_time = NO_VAL;
    msg->flags = NO_VAL64;
    msg->start_time = msg->end_time = NO_VAL;
    IF_MEMBER(resv_desc_msg_t_resv_watts, msg->resv_watts = NO_VAL;)
#if COMPAT_API > 38
    msg->core_cnt = msg->node_cnt = NO_VAL;
#endif
}

void slurm_free_resv_desc_msg(resv_desc_msg_t *msg)
{
    if (!msg)
        return;
    compat_free_resv_desc_msg_t(msg);
    slurm_xfree((void **)&msg);
}

PRINTF(3, 4)
static int say(struct reservation_update *update, struct err *err, const char *fmt, ...)
{
    struct option_ctx ctx = { .now_us = clock_wall_us() };
    struct str word = { 0 };
    va_list args;

    va_start(args, fmt);
    str_vaddf(&word, fmt, args);
    va_end(args);
    int rc = update_read(&reservation_updates, &ctx, update, str_text(&word), err);
    str_done(&word);
    return rc;
}

static int say_text(struct reservation_update *update, struct err *err, const char *key,
                    const char *value)
{
    return value ? say(update, err, "%s=%s", key, value) : 0;
}

static uint32_t count_of(const resv_desc_msg_t *msg, bool cores)
{
#if COMPAT_API == 38
    const uint32_t *list = cores ? msg->core_cnt : msg->node_cnt; /* ends in 0 */

    return list && list[0] ? list[0] : NO_VAL;
#else
    return cores ? msg->core_cnt : msg->node_cnt;
#endif
}

static int read_change(struct reservation_update *update, const resv_desc_msg_t *msg,
                       struct err *err)
{
    struct str flags = { 0 };
    int rc = say_text(update, err, "Accounts", msg->accounts);

    if (rc >= 0)
        rc = say_text(update, err, "Users", msg->users);
    if (rc >= 0)
        rc = say_text(update, err, "Groups", msg->groups);
    if (rc >= 0)
        rc = say_text(update, err, "Features", msg->features);
    if (rc >= 0)
        rc = say_text(update, err, "Licenses", msg->licenses);
    if (rc >= 0)
        rc = say_text(update, err, "Nodes", msg->node_list);
    if (rc >= 0)
        rc = say_text(update, err, "PartitionName", msg->partition);
    if (rc >= 0)
        rc = say_text(update, err, "TRES", msg->tres_str);
    if (rc >= 0)
        rc = say_text(update, err, "BurstBuffer", msg->burst_buffer);
    if (rc >= 0 && count_of(msg, false) != NO_VAL)
        rc = say(update, err, "NodeCnt=%u", count_of(msg, false));
    if (rc >= 0 && count_of(msg, true) != NO_VAL)
        rc = say(update, err, "CoreCnt=%u", count_of(msg, true));
    if (rc >= 0 && msg->duration != NO_VAL)
        rc = msg->duration == INFINITE ? say(update, err, "Duration=UNLIMITED")
                                       : say(update, err, "Duration=%u", msg->duration);
    if (rc >= 0 && (uint32_t)msg->start_time != NO_VAL && msg->start_time)
        rc = say(update, err, "StartTime=uts%lld", (long long)msg->start_time);
    if (rc >= 0 && (uint32_t)msg->end_time != NO_VAL && msg->end_time)
        rc = say(update, err, "EndTime=uts%lld", (long long)msg->end_time);
    if (msg->flags != NO_VAL64)
        add_flags(&flags, msg->flags);
    if (rc >= 0 && flags.len)
        rc = say(update, err, "Flags=%s", str_text(&flags));
    str_done(&flags);
    IF_MEMBER(resv_desc_msg_t_comment,
              if (rc >= 0) rc = say_text(update, err, "Comment", msg->comment);)
    return rc;
}

struct change {
    const resv_desc_msg_t *msg;
    bool create;
    char *name;
};

static int change(struct session *session, void *args, struct err *err)
{
    struct change *asked = args;
    UpdateReservationRequest request = UPDATE_RESERVATION_REQUEST__INIT;
    struct reservation_update update = { .spec = NEW(ReservationSpec) };
    DoneReply *reply = NULL;

    reservation_spec__init(update.spec);
    int rc = read_change(&update, asked->msg, err);
    if (rc >= 0) {
        update.spec->name = mem_strdup(asked->msg->name);
        request.change = update.spec;
        request.clear = (char **)update.clear.items;
        request.n_clear = update.clear.len;
        request.has_create = request.create = asked->create;
        rc = compat_call(session, "UpdateReservation", &request.base, &done_reply__descriptor,
                         (ProtobufCMessage **)&reply, err);
    }
    reservation_update_done(&update);
    if (rc >= 0 && asked->create) /* Slurm's clients free it with free() */
        asked->name = strdup(reply->name ? reply->name : asked->msg->name ? asked->msg->name : "");
    return rc;
}

int slurm_update_reservation(resv_desc_msg_t *resv_msg)
{
    NEED(resv_msg, SLURM_ERROR);
    return compat_run(change, &(struct change){ .msg = resv_msg });
}

char *slurm_create_reservation(resv_desc_msg_t *resv_msg)
{
    NEED(resv_msg, NULL);
    struct change asked = { .msg = resv_msg, .create = true };

    return compat_run(change, &asked) == SLURM_SUCCESS ? asked.name : NULL;
}

static int delete (struct session *session, void *args, struct err *err)
{
    UpdateReservationRequest request = UPDATE_RESERVATION_REQUEST__INIT;
    ReservationSpec spec = RESERVATION_SPEC__INIT;
    DoneReply *reply;

    spec.name = ((reservation_name_msg_t *)args)->name;
    request.change = &spec;
    request.has_remove = request.remove = true;
    return compat_call(session, "UpdateReservation", &request.base, &done_reply__descriptor,
                       (ProtobufCMessage **)&reply, err);
}

int slurm_delete_reservation(reservation_name_msg_t *resv_msg)
{
    NEED(resv_msg && resv_msg->name, SLURM_ERROR);
    return compat_run(delete, resv_msg);
}
