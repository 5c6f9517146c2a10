// SPDX-License-Identifier: Apache-2.0
/*
 * control_resv.c - scontrol show, create, update and delete of reservations
 */
#include <stdio.h>
#include <string.h>

#include "base/timefmt.h"
#include "cli/control.h"
#include "schema/jsonw.h"
#include "schema/objects_json.h"
#include "schema/update.h"
#include "sys/users.h"

static struct field_ctx ctx_of(const struct control *control)
{
    struct field_ctx ctx = cli_field_ctx(0);

    ctx.detail = control->detail;
    return ctx;
}

/* ---- show ---- */

static void add_list(struct str *out, const char *key, char *const *list, size_t count)
{
    str_addf(out, "%s=", key);
    for (size_t i = 0; i < count; i++)
        str_addf(out, "%s%s", i ? "," : "", list[i]);
    if (!count)
        str_add(out, "(null)");
}

/* PURGE_COMP with its time. */
static void add_flags(const ReservationSpec *spec, struct str *out)
{
    for (size_t i = 0; i < spec->n_flags; i++) {
        str_addf(out, "%s%s", i ? "," : "", spec->flags[i]);
        if (str_eq(spec->flags[i], "PURGE_COMP")) {
            str_add(out, "=");
            timefmt_write_duration(out, spec->purge_comp_s, TIMEFMT_LONG);
        }
    }
}

static void add_reservation(struct control *control, const Reservation *one, struct str *out)
{
    const char *line = control->one_line ? " " : "\n   ";
    struct field_ctx ctx = ctx_of(control);
    const ReservationSpec *spec = one->spec;

    str_addf(out, "ReservationName=%s StartTime=", spec->name);
    field_add_moment(out, &ctx, spec->start_us);
    str_add(out, " EndTime=");
    field_add_moment(out, &ctx, spec->end_us);
    str_add(out, " Duration=");
    timefmt_write_duration(out, (spec->end_us - spec->start_us) / 1000000, TIMEFMT_LONG);
    str_addf(out, "%sNodes=%s NodeCnt=%u CoreCnt=%u Features=%s PartitionName=%s Flags=", line,
             one->node_names ? one->node_names : "", one->node_count, one->core_count,
             spec->features ? spec->features : "(null)",
             spec->partition ? spec->partition : "(null)");
    add_flags(spec, out);
    str_addf(out, "%sTRES=%s%s", line, one->tres ? one->tres : "(null)", line);
    add_list(out, "AllowedPartitions", spec->allowed_partitions, spec->n_allowed_partitions);
    add_list(out, " QOS", spec->qos, spec->n_qos);
    str_add(out, line);
    add_list(out, "Users", spec->users, spec->n_users);
    add_list(out, " Groups", spec->groups, spec->n_groups);
    add_list(out, " Accounts", spec->accounts, spec->n_accounts);
    str_addf(out, " Licenses=%s State=%s BurstBuffer=%s%sMaxStartDelay=",
             spec->licenses ? spec->licenses : "(null)", one->state ? one->state : "",
             spec->burst_buffer ? spec->burst_buffer : "(null)", line);
    if (spec->has_max_start_delay_s)
        timefmt_write_duration(out, spec->max_start_delay_s, TIMEFMT_LONG);
    else
        str_add(out, "(null)");
    if (spec->comment)
        str_addf(out, "%sComment=%s", line, spec->comment);
    str_add(out, control->one_line ? "\n" : "\n\n");
}

static void show_json(struct control *control, const ListReservationsReply *reply,
                      char *const *names, size_t count)
{
    struct field_ctx ctx = ctx_of(control);
    struct str out = { 0 };
    struct jsonw json;

    cli_json_begin(&json, &out, control->yaml, control->argv, "openapi_reservation_resp");
    jsonw_list(&json, "reservations");
    for (size_t i = 0; i < reply->n_reservations; i++) {
        if (reply->reservations[i]->spec &&
            control_is_named(reply->reservations[i]->spec->name, names, count))
            reservation_add_json(reply->reservations[i], &json);
    }
    jsonw_list_end(&json);
    jsonw_set(&json, "last_update", true, false, ctx.now_us / 1000000);
    cli_json_end(&json, control->argc, control->argv, NULL);
    cli_flush(&out);
    str_done(&out);
}

int control_show_reservation(struct control *control, int argc, char **argv)
{
    ListReservationsRequest request = LIST_RESERVATIONS_REQUEST__INIT;
    ListReservationsReply *reply;
    struct err err = { 0 };
    struct str out = { 0 };
    size_t count = 0, wanted;
    char **names = control_names(control, argc, argv, &wanted);

    if (cli_call(&control->cli, "ListReservations", &request.base,
                 &list_reservations_reply__descriptor, (ProtobufCMessage **)&reply, &err) < 0)
        return cli_load_error(&control->cli, "slurm_load_reservations error:", &err);
    if (control->json) {
        show_json(control, reply, names, wanted);
        return 0;
    }
    for (size_t i = 0; i < reply->n_reservations; i++) {
        const Reservation *one = reply->reservations[i];

        if (!one->spec || !control_is_named(one->spec->name, names, wanted))
            continue;
        add_reservation(control, one, &out);
        count++;
    }
    cli_flush(&out);
    str_done(&out);
    if (!count)
        printf(argc ? "Reservation %s not found\n" : "No reservations in the system\n",
               argc ? argv[0] : "");
    return count < wanted || (argc && !count);
}

/* ---- create, update, delete ---- */

/* "Users+=a,b" and "Flags-=x" as words that say what is to be done with each: +a,+b and ~x. */
static char *spell_out(struct control *control, char *word)
{
    struct str out = { 0 };
    char *equals = strchr(word, '=');
    const char *cursor;
    struct span item;

    if (!equals || equals == word || (equals[-1] != '+' && equals[-1] != '-'))
        return word;
    str_addf(&out, "%.*s=", (int)(equals - word - 1), word);
    cursor = equals + 1;
    for (bool first = true; str_next(&cursor, ",", &item); first = false)
        str_addf(&out, "%s%c%.*s", first ? "" : ",", equals[-1] == '+' ? '+' : '~', (int)item.len,
                 item.ptr);
    char *copy = arena_strdup(&control->cli.arena, str_text(&out));
    str_done(&out);
    return copy;
}

/* In a new one "Users-=a,b" shuts a and b out. */
static char *spell_minus(struct control *control, char *word)
{
    char *equals = strchr(word, '=');
    const char *cursor = equals ? equals + 1 : NULL;
    struct str out = { 0 };
    struct span item;

    if (!equals || equals == word || equals[-1] != '-')
        return word;
    str_addf(&out, "%.*s=", (int)(equals - word - 1), word);
    for (bool first = true; str_next(&cursor, ",", &item); first = false)
        str_addf(&out, "%s-%.*s", first ? "" : ",", (int)item.len, item.ptr);
    char *copy = arena_strdup(&control->cli.arena, str_text(&out));
    str_done(&out);
    return copy;
}

/* "Duration+=30" and "Nodes-=n3": true when it was one of them. *code: it is wrong. */
static bool read_more(struct control *control, const char *word, ReservationSpec *spec, int *code)
{
    static const char *const lists[] = {
        "Users", "User", "Accounts", "Account",           "Groups",          "Group",
        "Flags", "Flag", "QOS",      "AllowedPartitions", "AllowedPartition"
    };
    const char *equals = strchr(word, '=');
    bool more = equals && equals > word && equals[-1] == '+';
    int64_t seconds;

    if (!equals || equals == word || (!more && equals[-1] != '-'))
        return false;
    struct span key = { word, (size_t)(equals - word - 1) };
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        if (strlen(lists[i]) == key.len && strncasecmp(lists[i], key.ptr, key.len) == 0)
            return false; /* words of lists say it one by one */
    }
    if ((key.len == 8 && strncasecmp(key.ptr, "Duration", key.len) == 0) ||
        (key.len == 7 && strncasecmp(key.ptr, "EndTime", key.len) == 0)) {
        *code = timefmt_read_duration(equals + 1, &seconds, NULL) < 0 || seconds < 0;
        if (*code)
            fprintf(stderr, "Invalid duration: %s\n", equals + 1);
        else
            spec->has_longer_s = true, spec->longer_s = more ? seconds : -seconds;
    } else if ((key.len == 5 && strncasecmp(key.ptr, "Nodes", key.len) == 0) ||
               (key.len == 8 && strncasecmp(key.ptr, "NodeList", key.len) == 0)) {
        char **into = more ? &spec->nodes_more : &spec->nodes_less;
        free(*into);
        *into = mem_strdup(equals + 1);
    } else {
        cli_error(&control->cli,
                  "The +=/-= notation is not supported when updating %.*s.  No reservation update.",
                  (int)key.len, key.ptr);
        *code = 1;
    }
    return true;
}

/* Numbers of the groups, so that every member counts and not only those whose first group it is. */
static int find_groups(ReservationSpec *spec, struct err *err)
{
    spec->group_ids = NEW_ARRAY(char *, spec->n_groups + 1);
    for (size_t i = 0; i < spec->n_groups; i++) {
        const char *name = spec->groups[i] + strspn(spec->groups[i], "+-~");
        struct str pair = { 0 };
        uint64_t number;
        gid_t gid;
        if (str_to_u64(name, UINT32_MAX, &number))
            continue;
        if (users_group_by_name(name, &gid, err) < 0)
            return err_set(err, ERR_INVALID, "Invalid group: %.100s", name);
        str_addf(&pair, "%s=%u", name, (unsigned)gid);
        spec->group_ids[spec->n_group_ids++] = str_take(&pair);
    }
    return 0;
}

/* A name that nobody has would be a reservation that nobody may use. */
static int check_users(const ReservationSpec *spec, struct err *err)
{
    for (size_t i = 0; i < spec->n_users; i++) {
        const char *name = spec->users[i] + strspn(spec->users[i], "+");
        struct user *user = NULL;
        uint64_t number;
        if (strchr("-~", name[0]) || str_to_u64(name, UINT32_MAX, &number))
            continue; /* whoever is shut out or goes may be nobody any more */
        if (users_by_name(name, &user, err) < 0)
            return err_set(err, ERR_INVALID, "Invalid user: %.100s", name);
        user_free(user);
    }
    return 0;
}

static bool has_flag(const ReservationSpec *spec, const char *word)
{
    for (size_t i = 0; i < spec->n_flags; i++) {
        if (str_ieq(spec->flags[i] + strspn(spec->flags[i], "+"), word))
            return true;
    }
    return false;
}

/* Nodes under maintenance are those that were chosen. */
static int check_flags(const ReservationSpec *spec, struct err *err)
{
    if (has_flag(spec, "MAINT") && (has_flag(spec, "REPLACE") || has_flag(spec, "REPLACE_DOWN")))
        return err_set(err, ERR_INVALID,
                       "Invalid flags: MAINT keeps its nodes, REPLACE exchanges them");
    return 0;
}

/* "a,-b": either partitions that may use it, or those that may not. */
static int check_mixed(const ReservationSpec *spec, bool create, struct err *err)
{
    size_t minus = 0;

    for (size_t i = 0; i < spec->n_allowed_partitions; i++)
        minus += spec->allowed_partitions[i][0] == '-';
    if (!create || !minus || minus == spec->n_allowed_partitions)
        return 0;
    return err_set(err, ERR_INVALID,
                   "AllowedPartitions names partitions that may use it or that may not, not both");
}

int control_send_reservation(struct control *control, int argc, char **argv, bool create)
{
    UpdateReservationRequest request = UPDATE_RESERVATION_REQUEST__INIT;
    struct reservation_update update = { .spec = NEW(ReservationSpec) };
    struct option_ctx ctx = cli_option_ctx();
    struct err err = { 0 };
    DoneReply *reply;
    int code = 0;

    reservation_spec__init(update.spec);
    for (int i = 0; i < argc && !code; i++) {
        if (!create && read_more(control, argv[i], update.spec, &code))
            continue;
        char *word = create ? spell_minus(control, argv[i]) : spell_out(control, argv[i]);
        if (!create && str_ieq(word, "skip")) {
            update.spec->has_skip = update.spec->skip = true;
            continue;
        }
        if (update_read(&reservation_updates, &ctx, &update, word, &err) < 0)
            code = control_aborted(&err);
    }
    if (!code && create && !update.spec->n_users && !update.spec->n_accounts &&
        !update.spec->n_groups && !update.spec->n_qos && !update.spec->n_allowed_partitions) {
        cli_error(&control->cli, "Either Users/Groups, AllowedPartitions, QOS and/or Accounts must "
                                 "be specified.  No reservation created.");
        code = 1;
    }
    if (!code && create && !update.spec->has_start_us) {
        cli_error(&control->cli, "A start time must be given.  No reservation created.");
        code = 1;
    } else if (!code && create && !update.spec->has_end_us && !update.spec->has_duration_s) {
        cli_error(&control->cli, "An end time or duration must be given.  No reservation created.");
        code = 1;
    }
    if (!code && (check_flags(update.spec, &err) < 0 || check_mixed(update.spec, create, &err) < 0))
        code = control_aborted(&err);
    if (!code && (check_users(update.spec, &err) < 0 || find_groups(update.spec, &err) < 0))
        code = control_aborted(&err);
    request.change = update.spec;
    request.has_create = request.create = create;
    request.clear = (char **)update.clear.items;
    request.n_clear = create ? 0 : update.clear.len;
    if (!code && cli_call(&control->cli, "UpdateReservation", &request.base,
                          &done_reply__descriptor, (ProtobufCMessage **)&reply, &err) < 0) {
        fprintf(stderr,
                create ? "Error creating the reservation: %s\n" : "slurm_update error: %s\n",
                control_words(&err));
        code = 1;
    } else if (!code && create) {
        printf("Reservation created: %s\n", reply->name         ? reply->name
                                            : update.spec->name ? update.spec->name
                                                                : "");
    } else if (!code) {
        puts("Reservation updated.");
    }
    reservation_update_done(&update);
    return code;
}

int control_delete_reservation(struct control *control, const char *word, const char *name)
{
    UpdateReservationRequest request = UPDATE_RESERVATION_REQUEST__INIT;
    ReservationSpec spec = RESERVATION_SPEC__INIT;
    struct err err = { 0 };
    DoneReply *reply;

    spec.name = (char *)name;
    request.change = &spec;
    request.has_remove = request.remove = true;
    if (cli_call(&control->cli, "UpdateReservation", &request.base, &done_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) == 0)
        return 0;
    fprintf(stderr, "delete_reservation %s: %s\n", word, err.text);
    return 1;
}
