/* SPDX-License-Identifier: Apache-2.0 */
/* test_slurmconf.c - slurm.conf and the files beside it are read as they are */
#include "base/str.h"
#include "schema/conf.h"
#include "schema/conf/slurmconf.h"
#include "test/unit.h"

/* Files by name, instead of a disk. */
struct file {
    const char *name, *text;
};

static int read_one(void *ctx, const char *path, char **text, size_t *len, struct err *err)
{
    for (const struct file *file = ctx; file->name; file++) {
        if (strcmp(file->name, path) == 0) {
            *text = mem_strdup(file->text);
            *len = strlen(file->text);
            return 0;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "no such file");
}

static struct conf *read_files(const struct file *files)
{
    struct conf_files io = { .read = read_one, .ctx = (void *)(uintptr_t)files };

    return conf_read(files[0].name, files[0].text, strlen(files[0].text), &io);
}

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

static void assert_notes(const struct conf *conf, const char *want)
{
    char *notes = notes_of(conf);

    assert_string_equal(notes, want);
    free(notes);
}

static void notations_are_told_apart(void **state)
{
    static const struct {
        const char *text;
        bool is_slurm;
    } cases[] = {
        { "ClusterName=x\n", true },
        { "# comment\n\n  clustername = x\n", true },
        { "Include other.conf\n", true },
        { "NodeName=n1 CPUs=2\n", true },
        { "Nonsense=3\nSlurmctldHost=a\n", true },
        { "cluster_name = \"x\"\n", false },
        { "[controller]\n", false },
        { "[[nodes]]\n", false },
        { "jobs.kill_wait = 3\n", false },
        { "", false },
        { "\0\0\0", false },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(slurmconf_recognise(cases[i].text, strlen(cases[i].text)),
                         cases[i].is_slurm);
}

static void lines_are_cut_as_slurm_cuts_them(void **state)
{
    static const struct file files[] = {
        { "/etc/slurm/slurm.conf", "clustername = c # a comment\r\n"
                                   "SLURMCTLDHOST=a(10.0.0.1)\n"
                                   "SlurmctldHost=b SlurmctldHost=d\n"
                                   "NodeName=n[1-4] CPUs=8 \\\n"
                                   "   RealMemory=1000 Feature=x,y \\\n"
                                   "   State=UNKNOWN\n"
                                   "NodeName=m1 RealMemory=10 State=DOWN Reason=\"fan \\# 3\"\n"
                                   "PartitionName=p Nodes=ALL Default = YES MaxTime=1-0\n"
                                   "KillWait=10 MinJobAge=20" },
        { 0 },
    };
    struct conf *conf = read_files(files);
    const Config *config = conf_config(conf);

    assert_notes(conf, "");
    assert_int_equal(conf_local(conf)->n_hosts, 3);
    assert_string_equal(config->cluster_name, "c");
    assert_int_equal(config->nodes[0]->memory_mb, 1000);
    assert_int_equal(config->nodes[0]->n_features, 2);
    assert_string_equal(config->nodes[1]->reason, "fan # 3");
    assert_true(config->partitions[0]->is_default);
    assert_int_equal(config->kill_wait_s, 10);
    assert_int_equal(config->min_job_age_s, 20);
    conf_free(conf);
}

static void everything_finds_its_place(void **state)
{
    static const struct file files[] = {
        { "/etc/slurm/slurm.conf",
          "ClusterName=c\n"
          "SlurmctldHost=a(10.0.0.1)\nSlurmctldHost=b\nSlurmctldHost=d\n"
          "SlurmctldPort=7817\n"
          "AuthType=auth/munge\n"
          "AuthAltParameters=jwt_key=/k\n"
          "StateSaveLocation=/state\n"
          "SchedulerType=sched/backfill\n"
          "SelectTypeParameters=CR_CORE_MEMORY,CR_LLN\n"
          "SchedulerParameters=bf_interval=30,max_script_size=1000,enable_user_top\n"
          "SlurmdParameters=config_overrides\n"
          "PriorityDecayHalfLife=1-12\nPriorityMaxAge=14-0\n"
          "PriorityWeightTRES=cpu=1000,gres/gpu=3000\n"
          "PrivateData=none\nSlurmctldDebug=5\n"
          "TaskPlugin=task/affinity,task/cgroup\n"
          "TopologyPlugin=topology/tree\n"
          "MpiParams=ports=100-200\nLicenses=a:1,b:2\n"
          "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=db\n"
          "GresTypes=gpu,shard\n"
          "JobSubmitPlugins=lua\n"
          "KillWait=1\nKillWait=10\n"
          "Include nodes.conf\n"
          "PartitionName=DEFAULT State=UP MaxTime=60\n"
          "PartitionName=p Nodes=fast,n4 Default=YES AllowAccounts=ALL OverSubscribe=yes:2\n"
          "PartitionName=q Nodes=ALL MaxTime=UNLIMITED DefaultTime=NONE AllocNodes=l[1-2]\n" },
        { "/etc/slurm/nodes.conf",
          "NodeName=DEFAULT Boards=1 SocketsPerBoard=2 CoresPerSocket=4 ThreadsPerCore=2\n"
          "NodeName=n[1-4] RealMemory=1000 Gres=gpu:a:2 Feature=x,y\n"
          "NodeName=m[1-3] NodeHostname=h Port=9001-9003 RealMemory=10 CPUs=16\n"
          "NodeSet=fast Nodes=n[1-2]\n"
          "DownNodes=n3 State=DRAIN Reason=\"a b\"\n" },
        { "/etc/slurm/gres.conf",
          "AutoDetect=off\nNodeName=n[1-4] Name=gpu Type=a File=/dev/nvidia[0-1] Cores=0-3\n" },
        { "/etc/slurm/topology.conf", "SwitchName=s1 Nodes=n[1-4]\nSwitchName=s2 Nodes=m[1-3] "
                                      "LinkSpeed=100\nSwitchName=t Switches=s[1-2]\n" },
        { "/etc/slurm/cgroup.conf", "ConstrainCores=yes\nCgroupPlugin=autodetect\n" },
        { 0 },
    };
    struct conf *conf = read_files(files);
    const Config *config = conf_config(conf);
    const ConfLocal *local = conf_local(conf);

    assert_notes(
        conf,
        "/etc/slurm/slurm.conf:6: AuthType=auth/munge changes nothing here: users are known by "
        "the kernel, MUNGE or a token, whichever there is\n"
        "/etc/slurm/slurm.conf:11: SchedulerParameters: bf_interval=30 changes nothing here: "
        "nothing is scheduled in passes: what can start, starts at once\n"
        "/etc/slurm/slurm.conf:25: JobSubmitPlugins=lua is not supported: submissions pass "
        "through no site filter\n"
        "/etc/slurm/slurm.conf:27: KillWait is given a second time; the last one is used\n"
        "/etc/slurm/topology.conf:2: LinkSpeed=100 changes nothing here: switches are compared "
        "by distance, as in Slurm\n"
        "/etc/slurm/cgroup.conf:2: CgroupPlugin=autodetect changes nothing here: cgroup v2 is "
        "used wherever there is one\n");
    assert_int_equal(conf_verdict(conf, NULL), 0);
    assert_int_equal(local->n_hosts, 3);
    assert_string_equal(local->hosts[0], "a(10.0.0.1)");
    assert_string_equal(local->listen_addr[0], "[::]:7817");
    assert_string_equal(local->jwt_key, "/k");
    assert_string_equal(local->log_level, "debug");
    assert_string_equal(local->accounting_addr, "http://db:6819");
    assert_string_equal(config->select_parameters, "CR_Core_Memory,CR_LLN");
    assert_int_equal(config->max_script_bytes, 1000);
    assert_true(config->enable_user_top && config->config_overrides && config->constrain_cores);
    assert_false(config->constrain_ram);
    assert_int_equal(config->priority_decay_half_life_s, 129600);
    assert_int_equal(config->priority_max_age_s, 14 * 86400);
    assert_null(config->private_data);
    assert_string_equal(config->task_plugin, "affinity,cgroup");
    assert_string_equal(config->tcp_ports, "100-200");
    assert_string_equal(config->licenses, "a:1,b:2");
    assert_int_equal(config->kill_wait_s, 10);
    assert_int_equal(config->n_nodes, 4);
    assert_int_equal(config->nodes[0]->sockets, 2);
    assert_int_equal(config->nodes[0]->cpus, 16);
    assert_string_equal(config->nodes[3]->name, "m3");
    assert_int_equal(config->nodes[3]->port, 9003);
    assert_int_equal(config->partitions[0]->max_time_s, 3600);
    assert_int_equal(config->partitions[0]->n_allow_accounts, 0);
    assert_string_equal(config->partitions[0]->oversubscribe, "YES:2");
    assert_int_equal(config->partitions[1]->max_time_s, -1);
    assert_false(config->partitions[1]->has_default_time_s);
    assert_int_equal(config->n_switches, 3);
    assert_int_equal(config->n_gres, 2);
    conf_free(conf);
}

static void mistakes_are_explained(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "ClusterName=c\nKilWait=3\n", "s:2: unknown key 'KilWait'; did you mean 'KillWait'?" },
        { "ClusterName=c\nNodeName=n1 RealMemroy=3\n",
          "s:2: unknown key 'RealMemroy' on a line of NodeName; did you mean 'RealMemory'?" },
        { "ClusterName=c\nKillWait=many\n", NULL },
        { "ClusterName=c\nKillWait\n", "s:2: expected '=' after the key at 'KillWait'" },
        { "ClusterName=c\nInclude x\n", "s:2: Include x: no such file" },
        { "ClusterName=c\nInclude s\n",
          "s:2: Include s: files include each other more than 16 deep" },
        { "ClusterName=c\nInclude s\nInclude s\n", /* doubles with every level */
          "s:2: Include s: files include each other more than 16 deep" },
        { "ClusterName=c\nNodeName=n[1-2] Port=[1-3]\n",
          "s:2: Port=[1-3] has 3 entries for 2 names" },
        { "ClusterName=c\nNodeName=DEFAULT Cpu=3\nNodeName=a RealMemory=1\nNodeName=b\n",
          "s:2: unknown key 'Cpu' on a line of NodeName; did you mean 'CPUs'?" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct file files[] = { { "s", cases[i].text }, { 0 } };
        struct conf *conf = read_files(files);
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

static enum slurmconf_scope scope_of(const char *file, const char *scope)
{
    static const struct {
        const char *word;
        enum slurmconf_scope scope;
    } words[] = {
        { "node line", SLURMCONF_NODE },         { "partition line", SLURMCONF_PARTITION },
        { "nodeset line", SLURMCONF_NODESET },   { "down line", SLURMCONF_DOWN },
        { "frontend line", SLURMCONF_FRONTEND }, { "poweraction line", SLURMCONF_POWER },
        { "gres.conf", SLURMCONF_GRES },         { "topology.conf", SLURMCONF_TOPOLOGY },
        { "cgroup.conf", SLURMCONF_CGROUP },
    };

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(words[i].word, file) == 0 || strcmp(words[i].word, scope) == 0)
            return words[i].scope;
    }
    return SLURMCONF_GLOBAL;
}

/* The keys of 22.05 and 26.11, one per line: file, scope, key. */
static void every_key_of_slurm_is_known(void **state)
{
    FILE *in = fopen(SLURM_KEYS, "r");
    char file[64], scope[64], key[64];
    unsigned count = 0, unknown = 0;

    assert_non_null(in);
    while (fscanf(in, "%63[^\t]\t%63[^\t]\t%63[^\n]\n", file, scope, key) == 3) {
        struct slurmconf_match match;

        count++;
        if (!slurmconf_find(scope_of(file, scope), key, &match)) {
            printf("%s %s: %s\n", file, scope, key);
            unknown++;
        } else if (match.row && !match.row->set) {
            assert_non_null(match.row->why);
        }
    }
    fclose(in);
    printf("%u keys of Slurm's, %u unknown\n", count, unknown);
    assert_true(count > 350);
    assert_int_equal(unknown, 0);
}

/* A key is a setting by another name or has a row, not both; targets of words exist. */
static void rows_are_sound(void **state)
{
    for (size_t i = 0; i < slurmconf_key_count; i++) {
        const struct slurmconf_key *row = &slurmconf_keys[i];

        assert_true((row->set != NULL) != (row->why != NULL));
        for (size_t k = 0; k < i; k++)
            assert_false(slurmconf_keys[k].scope == row->scope &&
                         str_ieq(slurmconf_keys[k].name, row->name));
    }
    for (size_t i = 0; i < slurmconf_word_count; i++) {
        const struct slurmconf_word *word = &slurmconf_words[i];
        char section[32];

        assert_true((word->to != NULL) != (word->why != NULL));
        if (!word->to)
            continue;
        snprintf(section, sizeof(section), "%.*s", (int)strcspn(word->to, "."), word->to);
        assert_non_null(conf_section_find(section));
        assert_non_null(conf_key_find(conf_section_find(section), strchr(word->to, '.') + 1));
    }
}

UNIT_MAIN(UNIT(notations_are_told_apart), UNIT(lines_are_cut_as_slurm_cuts_them),
          UNIT(everything_finds_its_place), UNIT(mistakes_are_explained),
          UNIT(every_key_of_slurm_is_known), UNIT(rows_are_sound))
