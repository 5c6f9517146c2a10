/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_suspect.c - when a leader is deposed, and when it must not be
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/util.h"
#include "spurctld/ctl/suspect.h"

enum { LEADER = 0, SELF = 1, OTHER = 2, TERM = 7 };

static struct suspect s;
static int64_t now;

/* Time passes; those in `heard` (bits) answer meanwhile. Returns the last act that is not nothing. */
static enum suspect_act pass(int64_t ms, unsigned heard)
{
    enum suspect_act last = SUSPECT_NOTHING;

    for (int64_t end = now + ms; now < end;) {
        now += SUSPECT_LOOK_MS;
        for (size_t i = 0; i < s.count; i++) {
            if (heard & 1u << i)
                suspect_heard(&s, i, 100 + i, now);
        }
        enum suspect_act act = suspect_look(&s, LEADER, TERM, now);
        last = act ? act : last;
        if (act == SUSPECT_DEPOSE)
            break;
    }
    return last;
}

static int begin(void **state)
{
    (void)state;
    now = 1000;
    suspect_init(&s, 3, SELF, now);
    assert_int_equal(pass(2000, 1 << LEADER | 1 << OTHER), SUSPECT_NOTHING);
    return 0;
}

static enum suspect_act look(void)
{
    return suspect_look(&s, LEADER, TERM, now);
}

static void a_killed_leader_goes_at_once(void **state)
{
    (void)state;
    suspect_gone(&s, LEADER, now);
    assert_int_equal(look(), SUSPECT_ASK);
    assert_true(s.peers[OTHER].asked);
    assert_false(s.peers[LEADER].asked);
    assert_int_equal(look(), SUSPECT_NOTHING); /* until it answers */
    suspect_answer(&s, OTHER, TERM, false);
    assert_int_equal(look(), SUSPECT_DEPOSE);
    assert_int_equal(look(), SUSPECT_NOTHING); /* once */
}

static void a_peer_that_hears_it_protects_it(void **state)
{
    (void)state;
    suspect_gone(&s, LEADER, now);
    assert_int_equal(look(), SUSPECT_ASK);
    suspect_answer(&s, OTHER, TERM, true);
    assert_int_equal(look(), SUSPECT_NOTHING);
    assert_int_equal(pass(3000, 1 << OTHER), SUSPECT_ASK); /* again and again, and never more */
}

static void an_answer_about_another_term_is_none(void **state)
{
    (void)state;
    suspect_gone(&s, LEADER, now);
    assert_int_equal(look(), SUSPECT_ASK);
    suspect_answer(&s, OTHER, TERM - 1, false);
    assert_int_equal(look(), SUSPECT_NOTHING);
}

static void a_silent_leader_goes_after_a_second(void **state)
{
    (void)state;
    assert_int_equal(pass(SUSPECT_SILENT_MS - SUSPECT_LOOK_MS, 1 << OTHER), SUSPECT_NOTHING);
    assert_int_equal(pass(SUSPECT_LOOK_MS, 1 << OTHER), SUSPECT_ASK);
    suspect_answer(&s, OTHER, TERM, false);
    assert_int_equal(look(), SUSPECT_DEPOSE);
}

static void who_is_cut_off_deposes_nobody(void **state)
{
    (void)state;
    assert_int_equal(pass(20000, 0), SUSPECT_NOTHING);
}

static void the_last_one_deposes_a_killed_leader(void **state)
{
    (void)state;
    assert_int_equal(pass(2000, 1 << LEADER), SUSPECT_NOTHING); /* the other is silent */
    suspect_gone(&s, LEADER, now);
    assert_int_equal(look(), SUSPECT_DEPOSE);
}

static void our_own_standstill_is_nobodys_silence(void **state)
{
    (void)state;
    now += 60000;
    assert_int_equal(look(), SUSPECT_NOTHING);
    assert_int_equal(pass(SUSPECT_SILENT_MS / 2, 1 << OTHER), SUSPECT_NOTHING);
    assert_int_equal(pass(5000, 1 << OTHER | 1 << LEADER), SUSPECT_NOTHING);
}

static void a_new_leader_is_given_time(void **state)
{
    (void)state;
    suspect_gone(&s, LEADER, now);
    now += SUSPECT_LOOK_MS; /* it started, and leads already; we have not met it */
    assert_int_equal(suspect_look(&s, LEADER, TERM + 1, now), SUSPECT_NOTHING);
    now += SUSPECT_LOOK_MS;
    suspect_gone(&s, LEADER, now); /* and is killed again */
    assert_int_equal(suspect_look(&s, LEADER, TERM + 1, now), SUSPECT_ASK);
}

static void nobody_suspects_itself_or_a_stranger(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        now += SUSPECT_LOOK_MS;
        assert_int_equal(suspect_look(&s, SELF, TERM, now), SUSPECT_NOTHING);
        now += SUSPECT_LOOK_MS;
        assert_int_equal(suspect_look(&s, SIZE_MAX, TERM, now), SUSPECT_NOTHING);
    }
}

/* Deposes the leader once more; returns how long that took. */
static int64_t depose_again(void)
{
    int64_t start = now;

    while (now - start < 60000) {
        if (pass(SUSPECT_LOOK_MS, 1 << OTHER) == SUSPECT_ASK)
            suspect_answer(&s, OTHER, TERM, false);
        if (look() == SUSPECT_DEPOSE)
            break;
    }
    return now - start;
}

static void deposing_the_living_is_done_less_and_less(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        int64_t took = depose_again();
        if (i)
            assert_true(took >= SUSPECT_WAIT_MIN_MS << (i - 1));
        assert_true(took < 60000);
        suspect_heard(&s, LEADER, 100 + LEADER, now); /* the same process as before */
    }
    /* A process that was dead indeed costs nothing. */
    pass(5 * SUSPECT_WAIT_MAX_MS, 1 << OTHER | 1 << LEADER);
    for (int i = 0; i < 3; i++) {
        assert_true(depose_again() <= SUSPECT_SILENT_MS + SUSPECT_LOOK_MS);
        suspect_heard(&s, LEADER, 200 + (uint64_t)i, now);
    }
}

#define T(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_killed_leader_goes_at_once),          T(a_peer_that_hears_it_protects_it),
        T(an_answer_about_another_term_is_none),  T(a_silent_leader_goes_after_a_second),
        T(who_is_cut_off_deposes_nobody),         T(the_last_one_deposes_a_killed_leader),
        T(our_own_standstill_is_nobodys_silence), T(a_new_leader_is_given_time),
        T(nobody_suspects_itself_or_a_stranger),  T(deposing_the_living_is_done_less_and_less),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
