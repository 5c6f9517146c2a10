// SPDX-License-Identifier: Apache-2.0
/*
 * test_names.c - states, flags, reasons and signals have Slurm's words
 */
#include "proto/job.pb-c.h"
#include "proto/node.pb-c.h"
#include "schema/names.h"
#include "schema/reasons.h"
#include "test/unit.h"

/* How each flag shows with idle, allocated, mixed and down: text/code. */
static const struct {
    uint32_t flag;
    const char *idle, *allocated, *mixed, *down;
} node_rows[] = {
    { 0, "IDLE/IDLE", "ALLOCATED/ALLOC", "MIXED/MIX", "DOWN/DOWN" },
    { NODE_FLAG_RESERVED, "RESERVED/RESV", "ALLOCATED/ALLOC", "MIXED/MIX", "DOWN/DOWN" },
    { NODE_FLAG_CLOUD, "IDLE/IDLE", "ALLOCATED/ALLOC", "MIXED/MIX", "DOWN/DOWN" },
    { NODE_FLAG_DRAIN, "DRAINED/DRAIN", "DRAINING/DRNG", "DRAINING/DRNG", "DRAINED/DRAIN" },
    { NODE_FLAG_COMPLETING, "COMPLETING/COMP", "ALLOCATED+/ALLOC+", "COMPLETING/COMP",
      "DOWN/DOWN" },
    { NODE_FLAG_NO_RESPOND, "IDLE*/IDLE*", "ALLOCATED*/ALLOC*", "MIXED*/MIX*", "DOWN*/DOWN*" },
    { NODE_FLAG_POWERED_DOWN, "IDLE~/IDLE~", "ALLOCATED~/ALLOC~", "MIXED~/MIX~", "DOWN~/DOWN~" },
    { NODE_FLAG_FAIL, "FAIL/FAIL", "FAILING/FAILG", "FAILING/FAILG", "FAIL/FAIL" },
    { NODE_FLAG_POWERING_UP, "IDLE#/IDLE#", "ALLOCATED#/ALLOC#", "MIXED#/MIX#", "DOWN#/DOWN#" },
    { NODE_FLAG_MAINT, "MAINT/MAINT", "ALLOCATED$/ALLOC$", "MIXED$/MIX$", "DOWN$/DOWN$" },
    { NODE_FLAG_REBOOT_REQUESTED, "REBOOT/BOOT", "ALLOCATED@/ALLOC@", "MIXED@/MIX@",
      "REBOOT/BOOT" },
    { NODE_FLAG_REBOOT_ISSUED, "REBOOT^/BOOT^", "ALLOCATED^/ALLOC^", "MIXED^/MIX^",
      "REBOOT^/BOOT^" },
    { NODE_FLAG_PLANNED, "PLANNED/PLND", "ALLOCATED/ALLOC", "MIXED-/MIX-", "DOWN/DOWN" },
    { NODE_FLAG_INVALID_REG, "INVAL/INVAL", "INVAL/INVAL", "INVAL/INVAL", "INVAL/INVAL" },
    { NODE_FLAG_DYNAMIC, "IDLE/IDLE", "ALLOCATED/ALLOC", "MIXED/MIX", "DOWN/DOWN" },
    { NODE_FLAG_DRAIN | NODE_FLAG_NO_RESPOND, "DRAINED*/DRAIN*", "DRAINING*/DRNG*",
      "DRAINING*/DRNG*", "DRAINED*/DRAIN*" },
    { NODE_FLAG_DRAIN | NODE_FLAG_PLANNED, "DRAINED/DRAIN", "DRAINING/DRNG", "DRAINING/DRNG",
      "DRAINED/DRAIN" },
};

static void check_node(uint32_t state, uint32_t flags, const char *want)
{
    struct str got = { 0 };

    node_state_add_text(&got, state, flags);
    str_add_char(&got, '/');
    node_state_add_code(&got, state, flags);
    assert_string_equal(str_text(&got), want);
    str_done(&got);
}

static void test_flags_change_node_words(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(node_rows); i++) {
        check_node(NODE_IDLE, node_rows[i].flag, node_rows[i].idle);
        check_node(NODE_ALLOCATED, node_rows[i].flag, node_rows[i].allocated);
        check_node(NODE_MIXED, node_rows[i].flag, node_rows[i].mixed);
        check_node(NODE_DOWN, node_rows[i].flag, node_rows[i].down);
    }
    check_node(99, 0, "?/?");
}

static void test_full_node_state_lists_flags(void **state)
{
    struct str got = { 0 };

    node_state_add_full(&got, NODE_MIXED, NODE_FLAG_PLANNED);
    str_add_char(&got, ' ');
    node_state_add_full(&got, NODE_DOWN, NODE_FLAG_NO_RESPOND | NODE_FLAG_DRAIN);
    assert_string_equal(str_text(&got), "MIXED+PLANNED DOWN+DRAIN+NOT_RESPONDING");
    str_done(&got);
}

static void test_job_flags_hide_the_state(void **state)
{
    assert_string_equal(job_state_text(JOB_RUNNING, 0), "RUNNING");
    assert_string_equal(job_state_code(JOB_OUT_OF_MEMORY, 0), "OOM");
    assert_string_equal(job_state_text(JOB_FAILED, JOB_FLAG_COMPLETING), "COMPLETING");
    assert_string_equal(job_state_code(JOB_RUNNING, JOB_FLAG_CONFIGURING), "CF");
    assert_string_equal(job_state_code(JOB_PENDING, JOB_FLAG_REQUEUE_HOLD), "RH");
    assert_string_equal(job_state_text(JOB_FAILED, JOB_FLAG_LAUNCH_FAILED), "FAILED");
    assert_string_equal(job_state_text(77, 0), "?");
}

static void test_states_are_found_by_name_and_code(void **state)
{
    uint32_t value;
    bool is_flag;

    assert_true(job_state_find("pd", 2, &value, &is_flag));
    assert_true(value == JOB_PENDING && !is_flag);
    assert_true(job_state_find("Node_Fail", 9, &value, &is_flag));
    assert_true(value == JOB_NODE_FAIL && !is_flag);
    assert_true(job_state_find("CG", 2, &value, &is_flag));
    assert_true(value == JOB_FLAG_COMPLETING && is_flag);
    assert_false(job_state_find("", 0, &value, &is_flag));
    assert_false(job_state_find("RUN", 3, &value, &is_flag));
}

static void test_reasons_have_slurms_numbers(void **state)
{
    struct str got = { 0 };
    uint32_t reason;

    assert_string_equal(reason_word(REASON_NONE), "None");
    assert_string_equal(reason_word(3), "Resources");
    assert_string_equal(reason_word(REASON_MPI_PORTS_BUSY), "MpiPortsBusy");
    assert_int_equal(REASON_MPI_PORTS_BUSY, 220);
    assert_string_equal(reason_word(34), "InvalidReason");
    assert_string_equal(reason_word(UINT32_MAX), "InvalidReason");
    assert_null(reason_help(77));
    assert_true(reason_find("jobhelduser", &reason));
    assert_int_equal(reason, REASON_HELD_USER);
    for (uint32_t i = 0; i < REASON_COUNT; i++) {
        if (reason_help(i)) { /* a few words stand for two numbers */
            assert_true(reason_find(reason_word(i), &reason));
            assert_string_equal(reason_word(reason), reason_word(i));
        }
    }
    reason_add(&got, REASON_FAIL_SIGNAL, NULL, 9);
    str_add_char(&got, '|');
    reason_add(&got, REASON_NODE_NOT_AVAIL, "ReqNodeNotAvail, node down", 0);
    assert_string_equal(str_text(&got), "RaisedSignal:9(Killed)|ReqNodeNotAvail, node down");
    str_done(&got);
}

static void test_signals_by_name_and_number(void **state)
{
    uint32_t number;

    assert_true(signal_find("USR2", &number) && number == 12);
    assert_true(signal_find("sigterm", &number) && number == 15);
    assert_true(signal_find("9", &number) && number == 9);
    assert_false(signal_find("0", &number));
    assert_false(signal_find("65", &number));
    assert_false(signal_find("9x", &number));
    assert_false(signal_find("SIG", &number));
    assert_false(signal_find("", &number));
    assert_string_equal(signal_name(15), "TERM");
    assert_null(signal_name(0));
}

UNIT_MAIN(UNIT(test_flags_change_node_words), UNIT(test_full_node_state_lists_flags),
          UNIT(test_job_flags_hide_the_state), UNIT(test_states_are_found_by_name_and_code),
          UNIT(test_reasons_have_slurms_numbers), UNIT(test_signals_by_name_and_number))
