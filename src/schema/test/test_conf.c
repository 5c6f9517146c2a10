/* SPDX-License-Identifier: Apache-2.0 */
/* test_conf.c - spur.conf is read whole, mistakes are explained, and what is written reads the same */
#include "base/str.h"
#include "proto/config.pb-c.h"
#include "schema/conf.h"
#include "test/unit.h"

static struct conf *read_text(const char *text)
{
    return conf_read("spur.conf", text, strlen(text), NULL);
}

/* All notes, a line each. */
static char *notes_of(const struct conf *conf)
{
    struct str out = { 0 };

    for (size_t i = 0; conf_note(conf, i); i++) {
        if (str_ends(conf_note(conf, i)->text, "nothing in this version acts on it"))
            continue; /* tools/check-settings knows which those are */
        conf_note_format(conf_note(conf, i), &out);
        str_add_char(&out, '\n');
    }
    return str_take(&out);
}

static void assert_clean(const struct conf *conf)
{
    char *notes = notes_of(conf);

    assert_string_equal(notes, "");
    free(notes);
}

#define NODES "[[nodes]]\nnames = \"n[1-8]\"\ncpus = 4\nmemory_mb = 1000\n"
#define TOP   "cluster_name = \"c\"\n"

static const char seed[] = "cluster_name = \"production\"\n"
                           "[controller]\n"
                           "listen_addr = \"[::]:6817\"\n"
                           "state_dir = \"/var/spool/spur\"\n"
                           "hosts = [\"ctrl1\", \"ctrl2\"]\n"
                           "[scheduler]\n"
                           "plugin = \"backfill\"\n"
                           "interval_secs = 1\n"
                           "fairshare_halflife_days = 14\n"
                           "[accounting]\n"
                           "database_url = \"postgresql://spur:spur@db1/spur\"\n"
                           "[[partitions]]\n"
                           "name = \"gpu\"\n"
                           "default = true\n"
                           "nodes = \"gpu[001-064]\"\n"
                           "max_time = \"72:00:00\"\n"
                           "[[partitions]]\n"
                           "name = \"cpu\"\n"
                           "nodes = \"cpu[001-256]\"\n"
                           "max_time = \"168:00:00\"\n"
                           "[[nodes]]\n"
                           "names = \"gpu[001-064]\"\n"
                           "cpus = 128\n"
                           "memory_mb = 512000\n"
                           "gres = [\"gpu:mi300x:8\"]\n"
                           "[[nodes]]\n"
                           "names = \"cpu[001-256]\"\n"
                           "cpus = 256\n"
                           "memory_mb = 1024000\n"
                           "[update]\n"
                           "check_on_startup = true\n"
                           "auto_update = false\n"
                           "channel = \"stable\"\n"
                           "cache_dir = \"/var/cache/spur\"\n";

static void the_seeds_example_is_read(void **state)
{
    struct conf *conf = read_text(seed);
    const Config *config = conf_config(conf);
    const ConfLocal *local = conf_local(conf);

    assert_int_equal(conf_verdict(conf, NULL), 0);
    assert_int_equal(conf_note_count(conf, CONF_NOTE_WARNING), 1); /* two controllers */
    assert_string_equal(config->cluster_name, "production");
    assert_string_equal(local->listen_addr[0], "[::]:6817");
    assert_int_equal(local->n_hosts, 2);
    assert_string_equal(local->accounting_url, "postgresql://spur:spur@db1/spur");
    assert_true(local->update_check && !local->auto_update);
    assert_int_equal(config->priority_decay_half_life_s, 14 * 86400);
    assert_int_equal(config->n_partitions, 2);
    assert_int_equal(config->partitions[0]->max_time_s, 72 * 3600);
    assert_true(config->partitions[0]->is_default);
    assert_int_equal(config->partitions[1]->state, PARTITION_UP);
    assert_int_equal(config->n_nodes, 2);
    assert_int_equal(config->nodes[0]->sockets, 128);
    assert_string_equal(config->nodes[0]->gres[0]->type, "mi300x");
    assert_int_equal(config->nodes[0]->gres[0]->count, 8);
    assert_int_equal(config->kill_wait_s, 30);
    assert_int_equal(strlen(config->hash), 32);
    conf_free(conf);
}

static void every_mistake_is_explained(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { TOP "[jobs]\nkill_wiat = 3\n",
          "spur.conf:3: unknown key \"kill_wiat\" in [jobs]; did you mean 'kill_wait'?" },
        { TOP "[job]\n", "spur.conf:2: unknown key \"job\"; did you mean 'jobs'?" },
        { TOP "kill_wait = 3\n", "spur.conf:2: unknown key \"kill_wait\"; it belongs in [jobs]" },
        { TOP "[agent]\nKillWait = 3\n",
          "spur.conf:3: unknown key \"KillWait\" in [agent]; Slurm's KillWait is 'jobs.kill_wait' "
          "here" },
        { TOP "[jobs]\nkill_wait = \"soon\"\n",
          "spur.conf:3: jobs.kill_wait = \"soon\": expected seconds from 0 to 65533, or "
          "\"hours:minutes:seconds\"" },
        { TOP "[agent]\nport = 70000\n",
          "spur.conf:3: agent.port = 70000: expected a whole number from 1 to 65535" },
        { TOP "[agent]\nport = \"6818\"\n",
          "spur.conf:3: agent.port: expected a whole number from 1 to 65535, found the text "
          "\"6818\"" },
        { TOP "[scheduler]\nplugin = \"backfil\"\n",
          "spur.conf:3: scheduler.plugin = \"backfil\": expected one of backfill, builtin; did you "
          "mean 'backfill'?" },
        { TOP "[controller]\nstate_dir = \"spool\"\n",
          "spur.conf:3: controller.state_dir = \"spool\": expected an absolute path" },
        { TOP "[controller]\nlisten_addr = \"::1:6817\"\n",
          "spur.conf:3: controller.listen_addr = \"::1:6817\": an IPv6 address stands in brackets: "
          "\"[::]:6817\"" },
        { TOP "[[nodes]]\nnames = \"n[1-\"\ncpus = 1\nmemory_mb = 1\n", NULL },
        { TOP NODES "gres = [\"gpu:a:b:c\"]\n", NULL },
        { TOP "[nodes]\nnames = \"n1\"\n",
          "spur.conf:2: 'nodes' is a table here; write [[nodes]] with two brackets" },
        { TOP NODES "[[nodes]]\nnames = \"n[8-9]\"\nmemory_mb = 1\n",
          "spur.conf:7: node 'n8' was defined already at line 3" },
        { TOP NODES "[[partitions]]\nname = \"p\"\ndefault = true\nnodes = \"n[1-10]\"\n",
          "spur.conf:9: [[partitions]] 'p' nodes = \"n[1-10]\": no node or node set is called "
          "n[9-10]" },
        { TOP NODES "[[partitions]]\nname = \"p\"\ndefault = true\nnodes = \"ALL\"\n"
                    "[[partitions]]\nname = \"q\"\ndefault = true\nnodes = \"ALL\"\n",
          "spur.conf:12: [[partitions]] 'p' and 'q' are both the default" },
        { TOP NODES "[[partitions]]\nname = \"p\"\nnodes = \"ALL\"\n"
                    "[[partitions]]\nname = \"p\"\nnodes = \"ALL\"\n",
          "spur.conf:10: [[partitions]] 'p' was defined already at line 7" },
        { TOP "[[nodes]]\nnames = \"n1\"\ncpus = 10\nsockets = 2\ncores_per_socket = 4\n"
              "memory_mb = 1\n",
          "spur.conf:4: [[nodes]] n1: 10 CPUs are neither sockets (2), cores (8) nor threads (8)" },
        { "[[nodes]]\nnames = \"n1\"\nmemory_mb = 1\n", "spur.conf:1: 'cluster_name' is missing" },
        { TOP "[[nodes]]\ncpus = 1\n", "spur.conf:2: [[nodes]] has no 'names'" },
        { TOP "[[nodes]]\n[[down]]\n[[switches]]\nnodes = \"n1\"\n[[nodesets]]\n[[blocks]]\n"
              "[[gres]]\n[[partitions]]\nnodes = \"ALL\"\n",
          "spur.conf:2: [[nodes]] has no 'names'" },
        { TOP "a = [1, 2\n", "spur.conf:2: column 5: this array has no closing ]" },
        { TOP NODES "addr = \"10.0.0.[1-7]\"\n",
          "spur.conf:6: [[nodes]] addr = \"10.0.0.[1-7]\" has 7 entries for 8 names" },
        { TOP "[slurm]\nKillWait = \"3\"\n",
          "spur.conf:3: slurm.KillWait: this is 'jobs.kill_wait' here" },
        { TOP NODES "[[partitions]]\nname = \"p\"\nnodes = \"ALL\"\noversubscribe = \"often\"\n",
          "spur.conf:9: [[partitions]] oversubscribe = \"OFTEN\": expected \"NO\", \"EXCLUSIVE\", "
          "\"YES\", \"YES:4\", \"FORCE\" or \"FORCE:4\"" },
        { TOP NODES "[[switches]]\nname = \"s1\"\nswitches = \"s2\"\n"
                    "[[switches]]\nname = \"s2\"\nswitches = \"s1\"\n",
          "spur.conf:6: [[switches]] 's1' is under itself" },
        { TOP "[controller]\ntls_cert = \"/c.pem\"\n",
          "spur.conf:3: controller.tls_cert and controller.tls_key need each other" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct conf *conf = read_text(cases[i].text);
        struct err err = { 0 };
        char *more;

        assert_int_equal(conf_verdict(conf, &err), -ERR_CONFIG);
        if ((more = strstr(err.text, " (and ")))
            *more = '\0';
        if (cases[i].says)
            assert_string_equal(err.text, cases[i].says);
        conf_free(conf);
    }
}

static void all_mistakes_are_found_at_once(void **state)
{
    struct conf *conf =
        read_text("cluster_name = 3\n[jobs]\nx = 1\nkill_wait = -1\n[agent]\nport=0\n");
    struct err err = { 0 };

    assert_int_equal(conf_note_count(conf, CONF_NOTE_ERROR), 4);
    conf_verdict(conf, &err);
    assert_non_null(strstr(err.text, "(and 3 more)"));
    conf_free(conf);
}

/* Values of every type, written and read again: the messages are equal. */
static void what_is_written_reads_the_same(void **state)
{
    static const char *const texts[] = {
        seed,
        TOP NODES "gres = [\"gpu:2\", \"shard:a:1K\", \"nic\"]\nfeatures = [\"x\", \"y\"]\n"
                  "addr = \"10.0.0.[1-8]\"\nmem_spec_mb = 10\n"
                  "[jobs]\nkill_wait = \"1:00:00\"\nover_time_limit = \"UNLIMITED\"\n"
                  "def_mem_per_cpu = \"4G\"\npropagate_limits = [\"NOFILE\", \"STACK\"]\n"
                  "interactive_step_options = \"--pty \\\"$SHELL\\\" -l\"\n"
                  "[priority]\nweight_tres = \"cpu=1000,gres/gpu=3000\"\nmax_age = \"1-12\"\n"
                  "[scheduler]\nfairshare_halflife_days = \"0-12:00:00\"\n"
                  "[topology]\nplugin = \"tree\"\nblock_sizes = [4, 16]\n"
                  "[[switches]]\nname = \"s1\"\nnodes = \"n[1-4]\"\n"
                  "[[switches]]\nname = \"s2\"\nnodes = \"n[5-8]\"\n"
                  "[[switches]]\nname = \"top\"\nswitches = \"s[1-2]\"\n"
                  "[[nodesets]]\nname = \"odd\"\nnodes = \"n[1,3]\"\nfeature = \"x\"\n"
                  "[[down]]\nnodes = \"n7\"\nreason = \"disk \\\"sda\\\"\"\n"
                  "[[gres]]\nnodes = \"n[1-2]\"\nname = \"gpu\"\nfiles = \"/dev/gpu[0-1]\"\n"
                  "[[partitions]]\nname = \"p\"\ndefault = true\nnodes = \"odd,n8\"\n"
                  "max_time = \"UNLIMITED\"\nallow_groups = [\"a\", \"b\"]\n"
                  "[slurm]\nSchedulerParameters = \"defer\"\n",
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct conf *first = read_text(texts[i]), *again;
        struct str written = { 0 };

        assert_int_equal(conf_verdict(first, NULL), 0);
        conf_write_toml(first, &written);
        again = conf_read("again", str_text(&written), written.len, NULL);
        assert_int_equal(conf_verdict(again, NULL), 0);
        assert_string_equal(conf_config(first)->hash, conf_config(again)->hash);
        str_done(&written);
        conf_free(first);
        conf_free(again);
    }
}

static int collect(void *ctx, const NodeSpec *node)
{
    struct str *out = ctx;

    str_addf(out, "%s %s %s %s", node->name, node->addr ? node->addr : "-", node->state,
             node->reason ? node->reason : "-");
    for (size_t i = 0; i < node->n_gres; i++) {
        str_addf(out, " %s=%d", node->gres[i]->name, (int)node->gres[i]->count);
        for (size_t k = 0; k < node->gres[i]->n_files; k++)
            str_addf(out, " %s(%s)", node->gres[i]->files[k],
                     node->gres[i]->n_cpus ? node->gres[i]->cpus[k] : "");
    }
    str_add_char(out, '\n');
    return 0;
}

static void groups_become_single_nodes(void **state)
{
    struct conf *conf =
        read_text(TOP "[[nodes]]\nnames = \"n[1-3]\"\naddr = \"10.0.0.[5-7]\"\n"
                      "memory_mb = 1\ngres = [\"gpu:a:2\"]\n"
                      "[[gres]]\nname = \"gpu\"\ntype = \"a\"\nnodes = \"n[1-2]\"\n"
                      "files = \"/dev/gpu0\"\ncores = \"0-3\"\n"
                      "[[gres]]\nname = \"gpu\"\nnodes = \"n[1-2]\"\n"
                      "files = \"/dev/gpu1\"\ncores = \"4-7\"\n"
                      "[[down]]\nnodes = \"n2\"\nstate = \"drain\"\nreason = \"r\"\n");
    struct str out = { 0 };

    assert_int_equal(conf_verdict(conf, NULL), 0);
    assert_int_equal(conf_each_node(conf_config(conf), collect, &out, NULL), 0);
    assert_string_equal(str_text(&out),
                        "n1 10.0.0.5 UNKNOWN - gpu=2 /dev/gpu0(0-3) /dev/gpu1(4-7)\n"
                        "n2 10.0.0.6 DRAIN r gpu=2 /dev/gpu0(0-3) /dev/gpu1(4-7)\n"
                        "n3 10.0.0.7 UNKNOWN - gpu=2\n");
    conf_free(conf);
    str_clear(&out);
    /* Cores of two threads: CPUs are what devices are near to. */
    conf = read_text(TOP "[[nodes]]\nnames = \"n1\"\nsockets = 1\ncores_per_socket = 8\n"
                         "threads_per_core = 2\nmemory_mb = 1\ngres = [\"gpu:2\"]\n"
                         "[[gres]]\nname = \"gpu\"\nfiles = \"/dev/gpu0\"\ncores = \"0-3\"\n"
                         "[[gres]]\nname = \"gpu\"\nfiles = \"/dev/gpu1\"\ncores = \"4,6-7\"\n");
    assert_int_equal(conf_each_node(conf_config(conf), collect, &out, NULL), 0);
    assert_string_equal(str_text(&out),
                        "n1 - UNKNOWN - gpu=2 /dev/gpu0(0-7) /dev/gpu1(8-9,12-15)\n");
    str_done(&out);
    conf_free(conf);
}

static void node_sets_and_all_are_resolved(void **state)
{
    struct conf *conf =
        read_text(TOP NODES "features = [\"fast\"]\n"
                            "[[nodes]]\nnames = \"m[1-2]\"\nmemory_mb = 1\n"
                            "[[nodesets]]\nname = \"quick\"\nfeature = \"fast\"\n"
                            "[[nodesets]]\nname = \"some1\"\nnodes = \"m1,n[2,4]\"\n");
    static const struct {
        const char *text, *hosts;
    } cases[] = {
        { "ALL", "n[1-8],m[1-2]" },     { "quick", "n[1-8]" },        { "some1", "m1,n[2,4]" },
        { "some1,m2", "m1,n[2,4],m2" }, { "n[1,3],m1", "n[1,3],m1" }, { "", "" },
    };

    assert_int_equal(conf_verdict(conf, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
        struct str text = { 0 };

        assert_int_equal(conf_hosts(conf_config(conf), cases[i].text, &hosts, NULL), 0);
        hostlist_format(&hosts, &text);
        assert_string_equal(str_text(&text), cases[i].hosts);
        str_done(&text);
    }
    conf_free(conf);
}

/* Rows: the field exists, has a fitting type, and the default is a value. */
static void every_row_is_sound(void **state)
{
    struct conf *conf;

    for (size_t i = 0; i < conf_section_count; i++) {
        for (const struct conf_key *key = conf_sections[i].keys; key->name; key++) {
            assert_non_null(key->field);
            assert_non_null(key->help);
            assert_non_null(conf_key_field(&conf_sections[i], key));
            assert_true((key->type == CONF_WORD || key->type == CONF_WORDS) ==
                        (key->words != NULL));
            assert_ptr_equal(conf_key_find(&conf_sections[i], key->name), key);
        }
    }
    conf = conf_defaults();
    assert_clean(conf);
    conf_free(conf);
}

static bool has_row(const ProtobufCMessageDescriptor *message, const char *field)
{
    for (size_t i = 0; i < conf_skip_count; i++) {
        if (strcmp(conf_skips[i].message, message->short_name) == 0 &&
            strcmp(conf_skips[i].field, field) == 0)
            return true;
    }
    for (size_t i = 0; i < conf_section_count; i++) {
        for (const struct conf_key *key = conf_sections[i].keys; key->name; key++) {
            const ProtobufCMessageDescriptor *of =
                conf_sections[i].message  ? conf_sections[i].message
                : key->flags & CONF_LOCAL ? &conf_local__descriptor
                                          : &config__descriptor;

            if (of == message && strcmp(key->field, field) == 0)
                return true;
        }
    }
    return false;
}

static void every_field_has_a_row_or_a_reason(void **state)
{
    static const ProtobufCMessageDescriptor *const messages[] = {
        &config__descriptor,        &conf_local__descriptor, &partition_spec__descriptor,
        &node_spec__descriptor,     &conf_gres__descriptor,  &conf_switch__descriptor,
        &conf_node_set__descriptor, &conf_down__descriptor,  &conf_block__descriptor,
    };
    unsigned missing = 0;

    for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
        for (unsigned k = 0; k < messages[i]->n_fields; k++) {
            if (!has_row(messages[i], messages[i]->fields[k].name)) {
                printf("%s.%s has no key\n", messages[i]->short_name, messages[i]->fields[k].name);
                missing++;
            }
        }
    }
    assert_int_equal(missing, 0);
}

/* Each limit that sacctmgr can set, and each flag of a QOS, is a setting. */
static void every_limit_of_sacctmgr_is_a_setting(void **state)
{
    FILE *in = fopen(SACCTMGR_LIMITS, "r");
    char of[16], key[64], setting[64], line[256];
    unsigned count = 0, missing = 0;

    assert_non_null(in);
    while (fgets(line, sizeof(line), in)) {
        if (*line == '#')
            continue;
        assert_int_equal(sscanf(line, "%15s %63s %63s", of, key, setting), 3);
        bool flag = strcmp(of, "flag") == 0, known = !flag;
        const struct conf_section *section = conf_section_find(flag ? "qos" : of);
        assert_non_null(section);
        const struct conf_key *row = conf_key_find(section, setting);
        for (size_t i = 0; flag && row && row->words[i]; i++)
            known = known || strcmp(row->words[i], key) == 0;
        if (!row || !known) {
            printf("%s: %s is no setting\n", of, key);
            missing++;
        }
        if (row && strcmp(of, "accounts") == 0)
            assert_non_null(conf_key_find(conf_section_find("users"), setting));
        count++;
    }
    fclose(in);
    assert_int_equal(count, 88);
    assert_int_equal(missing, 0);
}

UNIT_MAIN(UNIT(the_seeds_example_is_read), UNIT(every_mistake_is_explained),
          UNIT(all_mistakes_are_found_at_once), UNIT(what_is_written_reads_the_same),
          UNIT(groups_become_single_nodes), UNIT(node_sets_and_all_are_resolved),
          UNIT(every_row_is_sound), UNIT(every_limit_of_sacctmgr_is_a_setting),
          UNIT(every_field_has_a_row_or_a_reason))
