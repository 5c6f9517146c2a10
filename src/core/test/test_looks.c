/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to all of a cluster looks at none of the jobs that wait, however many there are. */
#include "core/test/fixture.h"
#include "core/view/view.h"

#include <stdlib.h>

enum { NODES = 4, WAITING = 3000, FEW = 4 };

static struct fix *with_jobs(void)
{
    struct fix *fix = fix_new(NODES);
    JobSpec spec = fix_spec();

    fix->check = false; /* that looks at all of them */
    for (unsigned i = 0; i < WAITING; i++)
        assert_int_not_equal(fix_submit(fix, &spec), 0);
    return fix;
}

static uint64_t looks(const struct fix *fix)
{
    return fix->state->looked + fix->state->walked;
}

static void configure(struct fix *fix, void (*edit)(Config *config))
{
    Config *config = fix_config_accounts(NODES, "limits,qos");

    edit(config);
    fix_reconfigure(fix, config, true);
    config__free_unpacked(config, NULL);
}

static void nothing(Config *config)
{
    (void)config;
}

static void other_limits(Config *config)
{
    config->qos[0]->max_jobs = 77;
}

static void other_times(Config *config)
{
    config->has_min_job_age_s = config->has_kill_wait_s = true;
    config->min_job_age_s = 77;
    config->kill_wait_s = 5;
}

static void other_licences(Config *config)
{
    free(config->licenses);
    config->licenses = mem_strdup("matlab:7");
}

static void fewer_users(Config *config)
{
    conf_user__free_unpacked(config->users[--config->n_users], NULL);
}

static void a_new_configuration_looks_at_no_job_that_waits(void **unused)
{
    static void (*const edits[])(Config *) = { nothing, other_limits, other_times, other_licences,
                                               fewer_users };
    struct fix *fix = with_jobs();

    (void)unused;
    configure(fix, nothing);
    for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
        uint64_t before = looks(fix);
        configure(fix, edits[i]);
        assert_in_range(looks(fix) - before, 0, FEW);
    }
    fix_free(fix);
}

static void partition(struct fix *fix, PartitionSpec *spec)
{
    Command cmd = COMMAND__INIT;
    CmdPartition msg = CMD_PARTITION__INIT;
    uint64_t before = looks(fix);

    spec->name = (char *)"main";
    msg.change = spec;
    cmd.what_case = COMMAND__WHAT_PARTITION;
    cmd.partition = &msg;
    fix_apply(fix, &cmd);
    assert_in_range(looks(fix) - before, 0, FEW);
}

static void more_tres(Config *config)
{
    config->n_accounting_tres = 1;
    config->accounting_tres = NEW_ARRAY(char *, 1);
    config->accounting_tres[0] = mem_strdup("license/matlab");
}

/* What is counted from now on is known of jobs that run, also of those that nobody counted. */
static void what_is_counted_anew_looks_at_no_job_that_runs(void **unused)
{
    struct fix *fix = fix_new(NODES);
    JobSpec spec = fix_spec();
    PartitionSpec qos = PARTITION_SPEC__INIT;
    struct err err = { 0 };
    size_t count, found = 0;

    (void)unused;
    fix->check = false;
    spec.licenses = (char *)"matlab:1";
    spec.account = (char *)"phys";
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(fix_start(fix, fix_submit(fix, &spec), i ? "n2" : "n1", 2), ERR_OK);
    configure(fix, nothing);
    uint64_t before = fix->state->looked;
    configure(fix, more_tres);
    const struct tres *tres = state_tres(fix->state, &count);
    while (found < count && !str_eq(tres[found].name, "license/matlab"))
        found++;
    assert_in_range(found, 1, count - 1);
    const struct assoc *alice = state_assoc(fix->state, "phys", "alice", NULL);
    assert_int_equal(alice->holder.used[found], 2);
    assert_int_equal(alice->holder.rate[found], 2000);

    qos.name = (char *)"main";
    qos.qos = (char *)"tiny";
    partition(fix, &qos);
    assert_int_equal(state_qos(fix->state, "tiny")->holder.jobs, 2);
    assert_int_equal(state_qos(fix->state, "tiny")->holder.used[TRES_CPU], 4);
    assert_int_equal(fix->state->looked, before);
    assert_int_equal(core_check(fix->state, &err), 0);
    fix_free(fix);
}

static void a_partition_that_changes_looks_at_no_job_that_waits(void **unused)
{
    struct fix *fix = with_jobs();
    PartitionSpec time = PARTITION_SPEC__INIT, qos = PARTITION_SPEC__INIT,
                  weights = PARTITION_SPEC__INIT, over = PARTITION_SPEC__INIT;

    (void)unused;
    configure(fix, nothing);
    SET(&time, max_time_s, 86400);
    qos.qos = (char *)"part";
    weights.tres_billing_weights = (char *)"cpu=2";
    SET(&over, over_time_limit_min, 3);
    partition(fix, &time);
    partition(fix, &qos);
    partition(fix, &weights);
    partition(fix, &over);
    fix_free(fix);
}

static void a_reservation_that_goes_looks_at_who_asked_for_one(void **unused)
{
    struct fix *fix = with_jobs();
    Command cmd = COMMAND__INIT;
    CmdReservation msg = CMD_RESERVATION__INIT;
    ReservationSpec spec = RESERVATION_SPEC__INIT;

    (void)unused;
    spec.name = (char *)"r";
    spec.nodes = (char *)"n1";
    SET(&spec, start_us, fix->now + INT64_C(3600000000));
    SET(&spec, duration_s, 60);
    SET(&msg, create, true);
    msg.change = &spec;
    cmd.what_case = COMMAND__WHAT_RESERVATION;
    cmd.reservation = &msg;
    fix_apply(fix, &cmd);
    uint64_t before = looks(fix);
    msg.create = false;
    SET(&msg, remove, true);
    fix_apply(fix, &cmd);
    assert_in_range(looks(fix) - before, 0, FEW);
    fix_free(fix);
}

UNIT_MAIN(UNIT(a_new_configuration_looks_at_no_job_that_waits),
          UNIT(what_is_counted_anew_looks_at_no_job_that_runs),
          UNIT(a_partition_that_changes_looks_at_no_job_that_waits),
          UNIT(a_reservation_that_goes_looks_at_who_asked_for_one))
