/* SPDX-License-Identifier: Apache-2.0 */
/* test_conf_file.c - both notations from disk, with the files beside them */
#include <unistd.h>

#include "base/str.h"
#include "client/conf_file.h"
#include "sys/files.h"
#include "test/unit.h"

static char dir[] = "/tmp/spur-conf-file.XXXXXX";

static char *put(const char *name, const char *text)
{
    char *path = mem_printf("%s/%s", dir, name);

    assert_int_equal(file_write_quick(path, text, strlen(text), 0644, NULL), 0);
    return path;
}

static int make_dir(void **state)
{
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    return file_remove_tree(dir, NULL);
}

static void toml_is_loaded(void **state)
{
    CLEANUP(freep) char *path = put("spur.conf", "cluster_name = \"one\"\n");
    struct conf *conf = conf_file_load(path, NULL);

    assert_non_null(conf);
    assert_string_equal(conf_config(conf)->cluster_name, "one");
    conf_free(conf);
}

static void slurm_conf_is_loaded_with_what_is_beside_it(void **state)
{
    CLEANUP(freep) char *gres = put("gres.conf", "NodeName=n1 Name=gpu File=/dev/gpu[0-1]\n");
    CLEANUP(freep) char *more = put("more.conf", "KillWait=7\n");
    CLEANUP(freep)
    char *path =
        put("slurm.conf", "ClusterName=two\nInclude more.conf\nGresTypes=gpu\n"
                          "NodeName=n1 RealMemory=1 Gres=gpu:2\nPartitionName=p Nodes=n1\n");
    struct conf *conf = conf_file_load(path, NULL);

    assert_true(gres && more && conf);
    assert_true(conf_is_slurm(conf));
    assert_int_equal(conf_config(conf)->kill_wait_s, 7);
    assert_int_equal(conf_config(conf)->n_gres, 1);
    conf_free(conf);
}

static void mistakes_and_absence_are_errors(void **state)
{
    CLEANUP(freep) char *path = put("bad.conf", "cluster_name = \"x\"\nnope = 1\n");
    CLEANUP(freep) char *want = mem_printf("%s:2: unknown key \"nope\"", path);
    struct err err = { 0 };

    assert_null(conf_file_load(path, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_true(str_starts(err.text, want));
    assert_null(conf_file_load("/nonexistent/spur.conf", &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void environment_names_the_file(void **state)
{
    setenv("SPUR_CONF", "/x/y", 1);
    assert_string_equal(conf_file_path(NULL), "/x/y");
    assert_string_equal(conf_file_path("/z"), "/z");
    unsetenv("SPUR_CONF");
    assert_string_equal(conf_file_path(NULL), "/etc/spur/spur.conf");
}

int main(void)
{
    const struct CMUnitTest tests[] = { UNIT(toml_is_loaded),
                                        UNIT(slurm_conf_is_loaded_with_what_is_beside_it),
                                        UNIT(mistakes_and_absence_are_errors),
                                        UNIT(environment_names_the_file) };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
