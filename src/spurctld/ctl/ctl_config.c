/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_config.c - a configuration is put to the log, as changes of the one that the cluster has
 *
 * (1) What a process read before it led is proposed when it leads, unless the cluster was given one
 *     meanwhile: that was read later.
 * (2) The commands of a change come one after the other; when one is refused, so are those behind it.
 */
#include <stdlib.h>

#include "spurctld/ctl/ctl_priv.h"

struct ctl_bulk {
    ctl_agreed_fn *done;
    void *arg;
    size_t left;
    struct err err; /* of the first that was refused */
};

static void on_one(struct ctl *ctl, void *arg, const struct events *events, const struct err *err)
{
    const struct event *answer = events ? ctl_answer(events) : NULL;
    struct ctl_bulk *many = arg;

    (void)ctl;
    if (many->err.code == ERR_OK && err)
        many->err = *err;
    else if (many->err.code == ERR_OK && answer && answer->code)
        err_set(&many->err, answer->code, "%s",
                answer->text ? answer->text : err_text(answer->code));
    if (--many->left)
        return;
    if (many->done && many->err.code != ERR_SHUTTING_DOWN) /* else nobody is there to hear it */
        many->done(many->arg, many->err.code ? &many->err : NULL);
    free(many);
}

void ctl_change_config(struct ctl *ctl, const struct config_changes *changes, ctl_agreed_fn *done,
                       void *arg)
{
    struct ctl_bulk *many = NEW(struct ctl_bulk);

    *many = (struct ctl_bulk){ .done = done, .arg = arg, .left = changes->list.len };
    for (size_t i = 0; i < changes->list.len; i++) {
        Command command = CTL_COMMAND(CONFIG_CHANGE, .config_change = changes->list.items[i]);
        ctl_propose_own(ctl, &command, on_one, many);
    }
}

static Config *config_copy(const Config *config)
{
    size_t len = config__get_packed_size(config);
    uint8_t *bytes = mem_new(len + 1);

    config__pack(config, bytes);
    Config *copy = config__unpack(NULL, len, bytes);
    free(bytes);
    return copy;
}

static void propose(struct ctl *ctl, const Config *config, bool reconfigure, ctl_agreed_fn *done,
                    void *arg)
{
    struct config_base base;
    struct config_changes changes;
    Config *kept = ctl_accounts_kept(ctl);
    Config *fitted = kept ? config_with_accounts(config, kept) : config_copy(config);

    ctl_fit_config(ctl, fitted);
    if (kept)
        config__free_unpacked(kept, NULL);
    config_base_take(ctl->state, &base);
    config_changes_make(&changes, &base, fitted, reconfigure, CTL_CONFIG_SECTIONS);
    ctl_change_config(ctl, &changes, done, arg);
    config_changes_done(&changes);
    config_base_done(&base);
    config__free_unpacked(fitted, NULL);
}

void ctl_set_config(struct ctl *ctl, const Config *config, bool reconfigure, ctl_agreed_fn *done,
                    void *arg)
{
    struct err err = { 0 };

    if (!ctl->leading) {
        ctl_forget_config(ctl);
        ctl->config = config_copy(config);
        ctl->config_reconfigure = reconfigure;
        err_code(&err, ERR_NOT_LEADER);
    } else if (reconfigure || !str_eq(state_config(ctl->state)->hash, config->hash)) {
        propose(ctl, config, reconfigure, done, arg);
        return;
    }
    if (done)
        done(arg, err.code ? &err : NULL);
}

void ctl_config_leading(struct ctl *ctl)
{
    Config *config = TAKE(ctl->config);

    if (!config)
        return;
    ctl_set_config(ctl, config, ctl->config_reconfigure, NULL, NULL);
    config__free_unpacked(config, NULL);
}

/* (1) */
void ctl_forget_config(struct ctl *ctl)
{
    if (ctl->config)
        config__free_unpacked(ctl->config, NULL);
    ctl->config = NULL;
}
