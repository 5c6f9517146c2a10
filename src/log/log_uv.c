/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_uv.c - a log on a libuv loop
 */
#include "log/log_uv.h"

#include <stdlib.h>

struct log_uv {
    uv_async_t async;
    uv_check_t check;
    struct log *log;
    int open;
};

static void on_async(uv_async_t *async)
{
    struct log_uv *binding = async->data;

    if (binding->log)
        log_poll(binding->log);
}

static void on_check(uv_check_t *check)
{
    struct log_uv *binding = check->data;

    if (binding->log)
        log_flush(binding->log);
}

struct log_uv *log_uv_new(uv_loop_t *loop)
{
    struct log_uv *binding = NEW(struct log_uv);

    if (uv_async_init(loop, &binding->async, on_async) < 0)
        abort(); /* no descriptor for an eventfd at the start of a process */
    uv_check_init(loop, &binding->check);
    uv_check_start(&binding->check, on_check);
    /* The log alone does not keep a loop running; what serves does. */
    uv_unref((uv_handle_t *)&binding->async);
    uv_unref((uv_handle_t *)&binding->check);
    binding->async.data = binding->check.data = binding;
    binding->open = 2;
    return binding;
}

void log_uv_bind(struct log_uv *binding, struct log *log)
{
    binding->log = log;
}

void log_uv_wake(struct log_uv *binding)
{
    uv_async_send(&binding->async);
}

static void on_close(uv_handle_t *handle)
{
    struct log_uv *binding = handle->data;

    if (--binding->open == 0)
        free(binding);
}

void log_uv_close(struct log_uv *binding)
{
    if (!binding)
        return;
    binding->log = NULL;
    uv_close((uv_handle_t *)&binding->async, on_close);
    uv_close((uv_handle_t *)&binding->check, on_close);
}
