/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_agree.c - who is right when controllers have different states
 */
#include "spurctld/ctl/agree.h"

#include <string.h>

#include "base/util.h"
#include "core/record/record.h"
#include "core/test/fixture.h"

enum { NOW = 100000, FAR = 20 * MARK_EVERY };

/* A state at index FAR, and what one that is the same at `same` and another after it says. */
static struct fix *at_far(void)
{
    struct fix *fix = fix_new(1);

    fix->check = false;
    while (fix->index < FAR)
        fix_cancel(fix, 4000000, NULL);
    return fix;
}

static struct agree_said says(const struct state *state, uint64_t same, uint64_t salt)
{
    struct agree_said said;

    agree_say(state, false, &said);
    for (size_t i = 0; i < said.count; i++) {
        if (said.marks[i].index > same)
            said.marks[i].digest += salt;
    }
    return said;
}

/* What c2 … say: the same up to an index, then as others with that salt; 0: nothing is heard of it. */
static const struct {
    const char *name;
    size_t controllers;
    uint64_t same[4], salt[4];
    enum agree_verdict verdict;
    uint64_t agreed;
    bool leads;
} cases[] = {
    { "alone", 1, { 0 }, { 0 }, AGREE_CONFIRMED, FAR, true },
    { "two, the other is silent", 2, { 0 }, { 0 }, AGREE_UNKNOWN, 0, true },
    { "two that are the same", 2, { FAR }, { 0 }, AGREE_CONFIRMED, FAR, true },
    { "two that differ", 2, { 640 }, { 1 }, AGREE_SPLIT, 0, false },
    { "three that are the same", 3, { FAR, FAR }, { 0 }, AGREE_CONFIRMED, FAR, true },
    { "one of three differs from us", 3, { FAR, 640 }, { 0, 1 }, AGREE_CONFIRMED, FAR, true },
    { "two of three differ from us", 3, { 640, 640 }, { 1, 1 }, AGREE_OUTVOTED, 0, false },
    { "three differ", 3, { 640, 640 }, { 1, 2 }, AGREE_SPLIT, 0, false },
    { "one of three is silent, one differs", 3, { 640 }, { 1 }, AGREE_SPLIT, 0, false },
    { "five, two differ", 5, { FAR, FAR, 640, 640 }, { 0, 0, 1, 1 }, AGREE_CONFIRMED, FAR, true },
    { "five, three differ", 5, { FAR, 640, 640, 640 }, { 0, 1, 1, 1 }, AGREE_OUTVOTED, 0, false },
    { "five, three differ in two ways",
      5,
      { FAR, 640, 640, 640 },
      { 0, 1, 1, 2 },
      AGREE_SPLIT,
      0,
      false },
};

static void verdicts(void **unused)
{
    struct fix *fix = at_far();

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct agree agree = { 0 };
        agree_init(&agree, cases[i].controllers);
        for (size_t k = 0; k < ARRAY_LEN(cases[i].same) && cases[i].same[k]; k++) {
            struct agree_said said = says(fix->state, cases[i].same[k], cases[i].salt[k]);
            char name[8];
            snprintf(name, sizeof(name), "c%zu", k + 2);
            agree_heard(&agree, fix->state, name, &said, NOW);
        }
        enum agree_verdict verdict = agree_look(&agree, fix->state, NOW);
        bool leads = agree_may_lead(&agree, fix->state, NOW);
        if (verdict != cases[i].verdict || agree.agreed != cases[i].agreed ||
            leads != cases[i].leads)
            fail_msg("%s: verdict %d agreed %llu leads %d", cases[i].name, (int)verdict,
                     (unsigned long long)agree.agreed, leads);
        agree_done(&agree);
    }
    fix_free(fix);
    (void)unused;
}

/* It is compared at the newest index that both have. */
static void one_that_lags(void **unused)
{
    struct fix *fix = at_far();
    struct agree agree = { 0 };
    struct state *earlier = fix_copy(fix);
    struct agree_said said;

    while (fix->index < 3 * FAR + 7)
        fix_cancel(fix, 4000000, NULL);
    agree_init(&agree, 2);
    agree_say(earlier, false, &said);
    said.marks[0] = core_mark(fix->state, 41 - 19); /* a copy of level 1 has no marks */
    said.count = 1;
    assert_int_equal(agree_look(&agree, fix->state, NOW), AGREE_UNKNOWN);
    agree_heard(&agree, fix->state, "c2", &said, NOW);
    assert_int_equal(agree_look(&agree, fix->state, NOW), AGREE_CONFIRMED);
    assert_int_equal(agree.agreed, said.marks[0].index);
    assert_true(agree.agreed < 3 * FAR);
    state_free(earlier);
    agree_done(&agree);
    fix_free(fix);
    (void)unused;
}

static void what_counts(void **unused)
{
    struct fix *fix = at_far();
    struct agree agree = { 0 };
    struct agree_said other = says(fix->state, 640, 1), same = says(fix->state, FAR, 0);
    struct agree_said old_build = { 0 };
    CLEANUP(str_done) struct str names = { 0 };

    agree_init(&agree, 2);
    agree_heard(&agree, fix->state, "c2", &other, NOW);
    assert_int_equal(agree_look(&agree, fix->state, NOW), AGREE_SPLIT);
    agree_names(&agree, NOW, &names);
    assert_string_equal(str_text(&names), "c2");
    /* (1) */
    assert_int_equal(agree_look(&agree, fix->state, NOW + AGREE_FRESH_MS), AGREE_UNKNOWN);
    /* (2) */
    other.wrong = true;
    agree_heard(&agree, fix->state, "c2", &other, NOW);
    assert_int_equal(agree_look(&agree, fix->state, NOW), AGREE_UNKNOWN);
    other.wrong = false;
    /* (5) */
    agree_heard(&agree, fix->state, "c2", &other, NOW);
    agree_trust(&agree);
    assert_true(agree_may_lead(&agree, fix->state, NOW));
    assert_int_equal(agree_look(&agree, fix->state, NOW), AGREE_CONFIRMED);
    agree_heard(&agree, fix->state, "c2", &same, NOW);
    assert_int_equal(agree_look(&agree, fix->state, NOW), AGREE_CONFIRMED);
    assert_false(agree.trusted);
    other.trusted = true; /* and of who differs from it */
    agree_heard(&agree, fix->state, "c2", &other, NOW);
    assert_int_equal(agree_look(&agree, fix->state, NOW), AGREE_OUTVOTED);
    assert_false(agree_may_lead(&agree, fix->state, NOW));
    other.trusted = false;
    /* (4) */
    agree_heard(&agree, fix->state, "c2", &other, NOW);
    assert_int_equal(agree_look(&agree, fix->state, NOW), AGREE_SPLIT);
    other.count = 0;
    agree_heard(&agree, fix->state, "c2", &other, NOW);
    assert_int_equal(agree_look(&agree, fix->state, NOW), AGREE_UNKNOWN);
    /* (3) */
    agree_heard(&agree, fix->state, "c2", &old_build, NOW);
    assert_int_equal(agree_look(&agree, fix->state, NOW), AGREE_CONFIRMED);
    agree_done(&agree);
    fix_free(fix);
    (void)unused;
}

UNIT_MAIN(UNIT(verdicts), UNIT(one_that_lags), UNIT(what_counts))
