/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plugstack.c - plugstack.conf: what its lines mean, and whose files are believed
 *
 * The files lie in a directory that only root can write to, which /tmp is not.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "spank/plugstack.h"
#include "sys/files.h"
#include "test/unit.h"

static char dir[256];

static void put(const char *name, const char *text)
{
    CLEANUP(freep) char *path = mem_printf("%s/%s", dir, name);

    assert_int_equal(file_write_quick(path, text, strlen(text), 0644, NULL), 0);
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/run/spur-test.XXXXXX");
    return mkdtemp(dir) ? 0 : 0; /* without it the tests say that they are skipped */
}

static int teardown(void **state)
{
    (void)state;
    return file_remove_tree(dir, NULL);
}

static bool usable(void)
{
    struct err err = { 0 };

    return plugstack_check_owner(dir, &err) == 0;
}

static int read_it(struct plugstack *out, struct err *err)
{
    CLEANUP(freep) char *file = mem_printf("%s/plugstack.conf", dir);
    struct plugstack_place place = { .file = file, .dirs = dir };

    return plugstack_read(&place, out, err);
}

static void lines(void **state)
{
    struct plugstack stack;
    struct err err = { 0 };
    CLEANUP(freep) char *found = mem_printf("%s/near.so", dir);

    (void)state;
    if (!usable())
        skip();
    assert_int_equal(read_it(&stack, &err), 0);
    assert_int_equal(stack.list.len, 0);
    plugstack_done(&stack);
    put("near.so", "");
    put("plugstack.conf", "# nothing\n\n required  near.so a=1 b # rest\noptional /lib/x.so\n"
                          "include more/*.conf\ninclude none/*.conf\noptional far.so\n");
    CLEANUP(freep) char *more = mem_printf("%s/more", dir);
    CLEANUP(freep) char *later = mem_printf("%s/plugstack.conf.d", dir);
    assert_int_equal(mkdir(more, 0755) | mkdir(later, 0755), 0);
    put("more/2.conf", "optional /lib/2.so\n");
    put("more/1.conf", "optional /lib/1.so\n");
    put("plugstack.conf.d/z.conf", "required /lib/z.so\n");
    put("plugstack.conf.d/z.conf.off", "what is this\n");
    if (read_it(&stack, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(stack.list.len, 6);
    assert_true(stack.list.items[0].required);
    assert_string_equal(stack.list.items[0].path, found);
    assert_int_equal(stack.list.items[0].argc, 2);
    assert_string_equal(stack.list.items[0].argv[1], "b");
    assert_null(stack.list.items[0].argv[2]);
    assert_string_equal(stack.list.items[1].path, "/lib/x.so");
    assert_false(stack.list.items[1].required);
    assert_string_equal(stack.list.items[2].path, "/lib/1.so");
    assert_string_equal(stack.list.items[3].path, "/lib/2.so");
    assert_null(stack.list.items[4].path);
    assert_string_equal(stack.list.items[4].name, "far.so");
    assert_string_equal(stack.list.items[5].path, "/lib/z.so");
    plugstack_done(&stack);
}

static void mistakes(void **state)
{
    static const struct {
        const char *text, *said;
    } bad[] = {
        { "require x.so\n", "is not 'required PLUGIN" },
        { "required\n", "is not 'required PLUGIN" },
        { "\ninclude missing.conf\n", "plugstack.conf:2" },
        { "include plugstack.conf\n", "more than 8 deep" },
    };
    struct plugstack stack;

    (void)state;
    if (!usable())
        skip();
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = { 0 };
        put("plugstack.conf", bad[i].text);
        assert_true(read_it(&stack, &err) < 0);
        if (!strstr(err.text, bad[i].said))
            fail_msg("'%s' does not say '%s'", err.text, bad[i].said);
    }
}

static void owners(void **state)
{
    struct err err = { 0 };
    CLEANUP(freep) char *file = mem_printf("%s/f", dir);
    CLEANUP(freep) char *link = mem_printf("%s/l", dir);
    CLEANUP(freep) char *sub = mem_printf("%s/sub", dir);
    CLEANUP(freep) char *inner = mem_printf("%s/sub/f", dir);

    (void)state;
    if (!usable())
        skip();
    put("f", "");
    assert_int_equal(plugstack_check_owner(file, &err), 0);
    assert_int_equal(chmod(file, 0664), 0);
    assert_true(plugstack_check_owner(file, &err) < 0);
    assert_int_equal(chmod(file, 0644), 0);
    /* a link in a good place that leads through a bad one */
    assert_int_equal(mkdir(sub, 0755), 0);
    assert_int_equal(symlink("../f", inner), 0);
    assert_int_equal(symlink("sub/f", link), 0);
    assert_int_equal(plugstack_check_owner(link, &err), 0);
    assert_int_equal(chmod(sub, 0777), 0);
    assert_true(plugstack_check_owner(link, &err) < 0);
    assert_non_null(strstr(err.text, "/sub'"));
    assert_true(plugstack_check_owner("/tmp/../f", &err) < 0); /* /tmp is for all */
    assert_true(plugstack_check_owner("f", &err) < 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(file, 4711, 0), 0);
        assert_true(plugstack_check_owner(file, &err) < 0);
        assert_non_null(strstr(err.text, "uid 4711"));
    }
}

static void places(void **state)
{
    struct plugstack_place place;
    CLEANUP(freep) char *conf = mem_printf("%s/some.conf", dir);
    CLEANUP(freep) char *beside = mem_printf("%s/plugstack.conf", dir);

    (void)state;
    if (!usable())
        skip();
    unsetenv("SPUR_PLUGSTACK");
    plugstack_find(conf, &place);
    assert_string_equal(place.file, beside);
    plugstack_place_done(&place);
    put("some.conf", "[hooks]\nplugstack = \"/a/b\" # here\nplugin_dir = \"/x:/y\"\n");
    plugstack_find(conf, &place);
    assert_string_equal(place.file, "/a/b");
    assert_string_equal(place.dirs, "/x:/y");
    plugstack_place_done(&place);
    put("some.conf", "ClusterName=c\n#PlugStackConfig=/no\nplugstackconfig=/c/d # x\n");
    plugstack_find(conf, &place);
    assert_string_equal(place.file, "/c/d");
    plugstack_place_done(&place);
    setenv("SPUR_PLUGSTACK", "/e", 1);
    plugstack_find(conf, &place);
    assert_string_equal(place.file, "/e");
    plugstack_place_done(&place);
    unsetenv("SPUR_PLUGSTACK");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines, setup, teardown),
        cmocka_unit_test_setup_teardown(mistakes, setup, teardown),
        cmocka_unit_test_setup_teardown(owners, setup, teardown),
        cmocka_unit_test_setup_teardown(places, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
