/* SPDX-License-Identifier: Apache-2.0 */
/*
 * up_change.c - `spur up --controllers K` on a cluster that is there: more of them, or fewer
 *
 * The same as `spur controller add` and `remove`, with the new controllers started here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/controller.h"
#include "cli/up.h"
#include "sys/files.h"

enum { CHANGE_WAIT_S = 120, END_LOOK_MS = 50, END_MOST_MS = 15000 };

struct newcomer {
    const struct up_options *o;
    const char *conf;
    unsigned i;
};

/* The new controller is started as soon as it is invited. */
static int on_invited(void *ctx, const char *line, struct err *err)
{
    const struct newcomer *new = ctx;
    CLEANUP(freep) char *path = mem_printf("%s/run/ctl%u.invitation", new->o->dir, new->i + 1);

    if (file_write(path, line, strlen(line), 0600, err) < 0)
        return -(int)err->code;
    return up_start_controller(new->o, new->conf, new->i, path, err);
}

static void on_phase(void *ctx, const char *phase, uint32_t paused_ms)
{
    const struct newcomer *new = ctx;

    (void)phase;
    if (paused_ms && !new->o->quiet)
        printf("The log has moved: no writes for %u ms\n", paused_ms);
}

static int change_one(struct up_options *o, const char *conf, unsigned i, bool add, struct err *err)
{
    CLEANUP(freep) char *name = mem_printf("ctl%u", i + 1);
    CLEANUP(freep) char *address = mem_printf("127.0.0.1:%u", up_port(o, i));
    CLEANUP(freep) char *invitation = mem_printf("%s/run/%s.invitation", o->dir, name);
    CLEANUP(freep) char *list = up_socket_list(o);
    struct newcomer new = { o, conf, i };
    struct controller_watch watch = { &new, on_invited, on_phase };
    struct client *client = client_new(&(struct client_options){ .addresses = list }, err);

    if (!client)
        return -(int)err->code;
    int code = controller_change(client, add ? "AddController" : "RemoveController", name,
                                 add ? address : NULL, &watch, CHANGE_WAIT_S, err);
    client_free(client);
    unlink(invitation);
    return code < 0 ? err_wrap(err, "%s", name) : 0;
}

/* It ends by itself when it reads that it is removed. */
static void wait_end(const struct up_options *o, unsigned i)
{
    CLEANUP(freep) char *name = mem_printf("ctl%u", i + 1);
    struct timespec t = { 0, END_LOOK_MS * 1000000L };

    for (unsigned ms = 0; ms < END_MOST_MS && up_alive(o->dir, name, NULL); ms += END_LOOK_MS)
        nanosleep(&t, NULL);
}

int up_change(struct up_options *o, const char *conf, unsigned wanted, struct err *err)
{
    for (unsigned i = 0; i < wanted; i++) {
        bool there = i < o->controllers && !up_is_removed(o, i);
        if (!there && change_one(o, conf, i, true, err) < 0)
            return -(int)err->code;
        o->controllers = MAX(o->controllers, i + 1);
    }
    while (o->controllers > wanted) {
        unsigned last = o->controllers - 1;
        if (!up_is_removed(o, last) && change_one(o, conf, last, false, err) < 0)
            return -(int)err->code;
        wait_end(o, last);
        o->controllers--;
    }
    return 0;
}
