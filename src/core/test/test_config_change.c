/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_config_change.c - a configuration in several commands is the one that it is as a whole
 */
#include <stdlib.h>
#include <string.h>

#include "core/config_change.h"
#include "core/test/fixture.h"
#include "core/view/view.h"

enum { NODES = 12, USERS = 16 };

static uint64_t random_state;

static unsigned dice(unsigned below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)((random_state >> 16) % below);
}

static void swap(void **a, void **b)
{
    void *was = *a;

    *a = *b;
    *b = was;
}

/* Some of the nodes, here and there in another order, some with other CPUs. */
static void some_nodes(Config *config)
{
    for (size_t i = config->n_nodes; i-- > 1;) {
        config->nodes[i]->cpus += dice(4) == 0;
        if (dice(8) == 0)
            swap((void **)&config->nodes[i], (void **)&config->nodes[dice(NODES)]);
    }
    for (size_t i = config->n_nodes; i-- > 1;) {
        if (dice(3))
            continue;
        node_spec__free_unpacked(config->nodes[i], NULL);
        memmove(&config->nodes[i], &config->nodes[i + 1],
                (--config->n_nodes - i) * sizeof(config->nodes[0]));
    }
    for (size_t i = 0; i < config->n_partitions; i++) { /* of the nodes that there are */
        struct str names = { 0 };
        for (size_t k = 0; k < (i ? 1 : config->n_nodes); k++) /* the one mostly names the same */
            str_addf(&names, "%s%s", k ? "," : "", config->nodes[k]->name);
        free(config->partitions[i]->nodes);
        config->partitions[i]->nodes = str_take(&names);
    }
}

static void some_users(Config *config)
{
    config->accounts = NEW_ARRAY(ConfAccount *, 4);
    config->users = NEW_ARRAY(ConfUser *, USERS);
    for (unsigned i = 0; i < 3; i++) {
        ConfAccount *account = mem_new(sizeof(*account));
        conf_account__init(account);
        account->name = mem_strdup((const char *[]){ "a", "b", "c" }[i]);
        config->accounts[config->n_accounts++] = account;
    }
    for (unsigned i = 0, at = dice(USERS); i < USERS; i++, at = (at + 1) % USERS) {
        ConfUser *user = mem_new(sizeof(*user));
        char name[16];
        if (dice(4) == 0) {
            free(user);
            continue;
        }
        conf_user__init(user);
        snprintf(name, sizeof(name), "u%u", at);
        user->name = mem_strdup(name);
        user->account = mem_strdup((const char *[]){ "a", "b", "c" }[at % 3]);
        SET(user, max_jobs, 1 + dice(3));
        config->users[config->n_users++] = user;
    }
    if (dice(3) == 0)
        config->licenses = mem_strdup("fluent:7");
    config->hash = mem_strdup(dice(2) ? "one" : "two");
}

static Config *some_config(void)
{
    Config *config = fix_config(NODES);

    free(config->licenses);
    free(config->hash);
    config->licenses = config->hash = NULL;
    some_nodes(config);
    some_users(config);
    return config;
}

static void same(const struct state *a, const struct state *b)
{
    assert_int_equal(a->config_hash, b->config_hash);
    assert_int_equal(a->nodes.len, b->nodes.len);
    for (size_t i = 0; i < a->nodes.len; i++) {
        assert_string_equal(a->nodes.items[i]->spec->name, b->nodes.items[i]->spec->name);
        assert_int_equal(a->nodes.items[i]->hash, b->nodes.items[i]->hash);
        assert_int_equal(a->nodes.items[i]->conf_hash, b->nodes.items[i]->conf_hash);
        assert_int_equal(a->nodes.items[i]->removed, b->nodes.items[i]->removed);
    }
    assert_int_equal(a->partitions.len, b->partitions.len);
    for (size_t i = 0; i < a->partitions.len; i++) {
        const struct partition *x = a->partitions.items[i], *y = b->partitions.items[i];
        assert_int_equal(x->hash, y->hash);
        assert_int_equal(x->total_nodes, y->total_nodes);
        assert_int_equal(x->total_cpus, y->total_cpus);
        assert_int_equal(x->nodes.bits, y->nodes.bits);
        bitset_each (number, &x->nodes)
            assert_true(bitset_has(&y->nodes, number));
    }
    assert_int_equal(a->accounts->assocs.len, b->accounts->assocs.len);
    for (size_t i = 0; i < a->accounts->assocs.len; i++) {
        const struct assoc *x = state_assoc_at(a, i), *y = state_assoc_at(b, i);
        assert_string_equal(x->account, y->account);
        assert_true(str_eq(x->user, y->user));
        assert_int_equal(x->tres_limits.count[MAX_JOBS], y->tres_limits.count[MAX_JOBS]);
    }
}

static void parts_give_what_the_whole_gives(void **unused)
{
    unsigned several = 0;

    (void)unused;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
        struct fix *whole = fix_new(NODES), *parts = fix_new(NODES);
        for (unsigned i = 0; i < 8; i++) {
            Config *config = some_config();
            uint64_t index = parts->index;
            assert_int_equal(fix_reconfigure(whole, config, true), ERR_OK);
            assert_int_equal(fix_change(parts, config, true, 1 + dice(9)), ERR_OK);
            several += parts->index - index > 1;
            same(whole->state, parts->state);
            struct state *copy = fix_copy(parts);
            assert_int_equal(core_digest(copy), core_digest(parts->state));
            same(copy, parts->state); /* where all was looked up by name */
            if (dice(2)) {            /* what was restored goes on in the same way */
                state_free(parts->state);
                parts->state = copy;
            } else {
                state_free(copy);
            }
            config__free_unpacked(config, NULL);
        }
        fix_free(whole);
        fix_free(parts);
    }
    assert_true(several > 100);
}

static void a_command_changes_few_sections(void **unused)
{
    struct fix *fix = fix_new(NODES);
    Config *config = fix_config(NODES);
    struct config_base base;
    struct config_changes changes;

    (void)unused;
    for (size_t i = 0; i < NODES; i++)
        config->nodes[i]->cpus++;
    config_base_take(fix->state, &base);
    config_changes_make(&changes, &base, config, true, 5);
    assert_int_equal(changes.list.len, 4); /* 5, 5, 2; the settings */
    for (size_t i = 0; i < changes.list.len; i++) {
        assert_true(changes.list.items[i]->config->n_nodes <= 5);
        assert_int_equal(changes.list.items[i]->keeps_rest, i < 3);
        assert_int_equal(changes.list.items[i]->config->n_partitions, i < 3 ? 0 : 2);
    }
    config_changes_done(&changes);
    for (size_t i = 0; i < NODES; i++)
        config->nodes[i]->cpus--;
    config->nodes[7]->cpus = 3;
    config_changes_make(&changes, &base, config, true, 5);
    assert_int_equal(changes.list.len, 1);
    assert_int_equal(changes.list.items[0]->config->n_nodes, 1);
    config_changes_done(&changes);
    config_base_done(&base);
    config__free_unpacked(config, NULL);
    fix_free(fix);
}

/* Two who read their files at once: the second finds that it went on from what is no more. */
static void a_change_of_another_configuration_is_refused(void **unused)
{
    struct fix *fix = fix_new(3);
    Config *config = fix_config(3);
    struct config_base base;
    struct config_changes changes;
    Command cmd = COMMAND__INIT;

    (void)unused;
    config->nodes[1]->cpus = 2;
    config_base_take(fix->state, &base);
    config_changes_make(&changes, &base, config, true, 100);
    config->nodes[1]->cpus = 3;
    assert_int_equal(fix_change(fix, config, true, 100), ERR_OK);
    uint64_t hash = fix->state->config_hash;
    cmd.what_case = COMMAND__WHAT_CONFIG_CHANGE;
    cmd.config_change = changes.list.items[0];
    assert_int_equal(fix_apply(fix, &cmd), ERR_TRANSITION);
    assert_int_equal(fix->state->config_hash, hash);
    assert_int_equal(state_node(fix->state, "n2")->cpus, 3);
    config_changes_done(&changes);
    config_base_done(&base);
    config__free_unpacked(config, NULL);
    fix_free(fix);
}

/* A controller that was started anew looks at what is another, not at all nodes. */
static void what_was_restored_knows_its_sections(void **unused)
{
    struct fix *fix = fix_new(NODES);
    Config *config = fix_config(NODES);

    (void)unused;
    state_free(fix->mirror);
    fix->mirror = NULL;
    struct state *copy = fix_copy(fix);
    state_free(fix->state);
    fix->state = copy;
    copy->looked_nodes = 0;
    assert_int_equal(fix_change(fix, config, true, 5), ERR_OK);
    assert_int_equal(copy->looked_nodes, 0);
    config->nodes[3]->cpus++;
    assert_int_equal(fix_change(fix, config, true, 5), ERR_OK);
    assert_int_equal(copy->looked_nodes, 1);
    assert_int_equal(state_node(copy, "n4")->cpus, config->nodes[3]->cpus);
    assert_int_equal(state_partition(copy, "main")->total_cpus, 4 * NODES + 1);
    config__free_unpacked(config, NULL);
    fix_free(fix);
}

static void damaged_changes_are_refused(void **unused)
{
    static const struct {
        uint32_t kind, from, count, fresh;
        enum err_code code;
    } rows[] = {
        { SECTION_NODES, 0, 3, 0, ERR_OK },
        { SECTION_NODES, 0, 4, 0, ERR_BAD_MESSAGE },
        { SECTION_NODES, 1, UINT32_MAX, 0, ERR_BAD_MESSAGE },
        { SECTION_NODES, UINT32_MAX, 1, 0, ERR_BAD_MESSAGE },
        { SECTION_NODES, 0, 3, 1, ERR_BAD_MESSAGE },
        { SECTION_USERS, 0, 1, 0, ERR_BAD_MESSAGE },
        { SECTION_USERS, 0, 0, UINT32_MAX, ERR_BAD_MESSAGE },
        { 77, 5, 5, 5, ERR_OK }, /* nothing that we know */
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fix *fix = fix_new(3);
        Command cmd = COMMAND__INIT;
        CmdConfigChange change = CMD_CONFIG_CHANGE__INIT;
        ConfigRun run = CONFIG_RUN__INIT, *runs[] = { &run, &run };
        SET(&run, kind, rows[i].kind);
        SET(&run, from, rows[i].from);
        SET(&run, count, rows[i].count);
        SET(&run, fresh, rows[i].fresh);
        SET(&change, base_hash, config_base_hash(fix->state));
        SET(&change, keeps_rest, true);
        change.runs = runs;
        change.n_runs = 1;
        cmd.what_case = COMMAND__WHAT_CONFIG_CHANGE;
        cmd.config_change = &change;
        assert_int_equal(fix_apply(fix, &cmd), rows[i].code);
        assert_int_equal(state_node_count(fix->state), 3);
        if (i == 0) { /* each once */
            change.n_runs = 2;
            change.base_hash = config_base_hash(fix->state);
            assert_int_equal(fix_apply(fix, &cmd), ERR_BAD_MESSAGE);
        }
        fix_free(fix);
    }
}

UNIT_MAIN(UNIT(parts_give_what_the_whole_gives), UNIT(a_command_changes_few_sections),
          UNIT(a_change_of_another_configuration_is_refused),
          UNIT(what_was_restored_knows_its_sections), UNIT(damaged_changes_are_refused))
