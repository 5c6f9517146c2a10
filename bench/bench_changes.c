/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_changes.c - what an administrator changes: rows of bench_shocks.c
 */
#include "bench_changes.h"

#include <string.h>

#include "bench_rows.h"
#include "schema/conf.h"

/* ---- partitions, configurations, reservations, nodes ---- */

void changes_partition(struct load *load)
{
    rig_partition(load->rig, "main", INT64_C(86400) * 365);
}

static void change_partition_spec(struct load *load, PartitionSpec *spec)
{
    Command cmd = COMMAND__INIT;
    CmdPartition msg = CMD_PARTITION__INIT;

    spec->name = (char *)"main";
    msg.change = spec;
    cmd.what_case = COMMAND__WHAT_PARTITION;
    cmd.partition = &msg;
    if (rig_apply(load->rig, &cmd) != ERR_OK)
        die("the partition is not changed");
}

void changes_partition_qos(struct load *load)
{
    PartitionSpec spec = PARTITION_SPEC__INIT;

    spec.qos = (char *)"normal";
    change_partition_spec(load, &spec);
}

void changes_partition_billing(struct load *load)
{
    PartitionSpec spec = PARTITION_SPEC__INIT;

    spec.tres_billing_weights = (char *)"cpu=1.5,gres/gpu=3";
    change_partition_spec(load, &spec);
}

static void configure(struct load *load, const char *toml)
{
    enum { MOST = 200 /* as CTL_CONFIG_SECTIONS */, SETTLES = 100 };
    CLEANUP(conf_freep) struct conf *conf = conf_read("shock", toml, strlen(toml), NULL);
    Config *config = NULL;

    if (!conf_config(conf) || conf_expand(conf, &config, NULL) < 0)
        die("no configuration");
    if (rig_configure(load->rig, config, true, MOST) != ERR_OK)
        die("the configuration is not taken");
    config__free_unpacked(config, NULL);
    conf_free(TAKE(conf));
    for (unsigned i = 0; i < SETTLES; i++) /* that is no part of it: a worker does it */
        mem_settle();
}

void changes_nothing(struct load *load)
{
    configure(load, str_text(&load->toml));
}

/* With these lines more at the end. */
static void configure_more(struct load *load, const char *more)
{
    str_add(&load->toml, more);
    changes_nothing(load);
}

void changes_add_nodes(struct load *load)
{
    configure_more(load, "[[nodes]]\nnames = \"new[1-100]\"\ncpus = 64\nmemory_mb = 256000\n");
}

/* Everywhere the one text for the other. */
static void configure_with(struct load *load, const char *text, const char *instead)
{
    struct str toml = { 0 };
    const char *at = str_text(&load->toml), *next;

    for (; (next = strstr(at, text)); at = next + strlen(text)) {
        str_add_len(&toml, at, (size_t)(next - at));
        str_add(&toml, instead);
    }
    str_add(&toml, at);
    str_done(&load->toml);
    load->toml = toml;
    changes_nothing(load);
}

/* All behind them have other numbers. */
void changes_nodes_between(struct load *load)
{
    configure_with(load, "c[1-6000]", "c[1-6050]");
}

/* Six thousand have something else. */
void changes_nodes(struct load *load)
{
    configure_with(load, "memory_mb = 256000", "memory_mb = 255000");
}

void changes_add_qos(struct load *load)
{
    configure_more(load, "[[qos]]\nname = \"extra\"\nmax_tres_per_user = \"cpu=99\"\n");
}

/* Every user may run twice as much. */
void changes_raise_limits(struct load *load)
{
    char *at = strstr(load->toml.data, "cpu=40000");

    if (at)
        memcpy(at, "cpu=80000", 9);
    for (at = load->toml.data; (at = strstr(at, "max_jobs = ")); at++)
        at[11] = '9';
    changes_nothing(load);
}

/* What administrators do on any day. */
void changes_add_user(struct load *load)
{
    configure_more(load, "[[users]]\nname = \"new\"\naccount = \"a1\"\nmax_jobs = 9\n");
}

void changes_share(struct load *load)
{
    static const char *const user = "name = \"u77\"\n";
    struct str toml = { 0 };
    char *at = strstr(load->toml.data, user);

    if (!at)
        die("there is no such user");
    str_add_len(&toml, load->toml.data, (size_t)(at - load->toml.data));
    str_add(&toml, "fairshare = 7\n");
    str_add(&toml, at);
    str_done(&load->toml);
    load->toml = toml;
    changes_nothing(load);
}

/* Without the sections that have one of these lines. */
static void configure_less(struct load *load, const char *line, const char *other)
{
    struct str toml = { 0 };

    for (char *at = load->toml.data, *end; *at; at = end) {
        end = strstr(at + 1, "\n[");
        end = end ? end + 1 : at + strlen(at);
        char kept = *end;
        *end = '\0';
        if (!strstr(at, line) && !strstr(at, other))
            str_add(&toml, at);
        *end = kept;
    }
    str_done(&load->toml);
    load->toml = toml;
    changes_nothing(load);
}

void changes_remove_nodes(struct load *load)
{
    configure_less(load, "names = \"new[1-100]\"\n", "names = \"new[1-100]\"\n");
}

void changes_remove_user(struct load *load)
{
    configure_less(load, "name = \"new\"\n", "name = \"new\"\n");
}

void changes_remove_account(struct load *load)
{
    configure_less(load, "name = \"a7\"\n", "account = \"a7\"\n");
}

void changes_remove_qos(struct load *load)
{
    configure_less(load, "name = \"extra\"\n", "name = \"extra\"\n");
}

void changes_licences(struct load *load)
{
    configure_more(load, "[licenses]\nmatlab = 10\n");
}

void changes_make_reservation(struct load *load)
{
    rig_reserve(load->rig, "maint", "c[1-6000],g[1-4000]", 3600, false);
}

void changes_reservation(struct load *load)
{
    rig_reserve(load->rig, "maint", "c[1-3000]", 3600, true);
}

void changes_reservation_begins(struct load *load)
{
    rig_wait(load->rig, 3601);
}

void changes_reservation_ends(struct load *load)
{
    rig_wait(load->rig, 3601);
}

static void each_node(struct rig *rig, const char *state)
{
    for (unsigned i = 1; i <= 2000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "c%u", i);
        rig_node(rig, name, state);
    }
}

void changes_drain_nodes(struct load *load)
{
    each_node(load->rig, "DRAIN");
}

void changes_resume_nodes(struct load *load)
{
    each_node(load->rig, "RESUME");
}

void changes_node_down(struct load *load)
{
    Command cmd = COMMAND__INIT;
    CmdNodeDown msg = CMD_NODE_DOWN__INIT;

    msg.node = (char *)"c1";
    SET(&msg, jobs_lost, true);
    cmd.what_case = COMMAND__WHAT_NODE_DOWN;
    cmd.node_down = &msg;
    rig_apply(load->rig, &cmd);
}

/* Nobody led for a minute: that time passed for no job and no request. */
void changes_lead(struct load *load)
{
    enum { REQUESTS = 1000000 };
    static const int64_t minute_us = 60000000;
    Command cmd = COMMAND__INIT;
    CmdLead lead = CMD_LEAD__INIT;
    CmdTime time = CMD_TIME__INIT;
    struct rig *rig = load->rig;
    uint8_t id[16] = { 0 };

    rig->watch = false;
    cmd.what_case = COMMAND__WHAT_TIME;
    cmd.time = &time;
    SET(&cmd, request_id, ((ProtobufCBinaryData){ sizeof(id), id }));
    for (uint32_t i = 0; i < REQUESTS; i++) { /* each job came with one */
        memcpy(id, &i, sizeof(i));
        rig_apply(rig, &cmd);
    }
    rig->core_ms = rig->feed_ms = 0;
    rig->watch = true;
    rig->now_us += minute_us;
    cmd = (Command)COMMAND__INIT;
    cmd.what_case = COMMAND__WHAT_LEAD;
    cmd.lead = &lead;
    rig_apply(rig, &cmd);
}

/* ---- priorities ---- */

void changes_turn(struct load *load)
{
    rig_wait(load->rig, 86400);
}
