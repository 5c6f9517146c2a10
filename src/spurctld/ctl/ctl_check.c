/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_check.c - what a request about a job may say, checked by the leader before it is proposed
 *
 * What is in the log already is not judged again: jobs of earlier versions stay as they are.
 */
#include <ctype.h>
#include <string.h>

#include "base/limits.h"
#include "core/level.h"
#include "spurctld/ctl/ctl_priv.h"

static int refuse(struct err *err, enum err_code code, const char *option, const char *why)
{
    int ret = err_set(err, code, "--%s: %s", option, why);

    err_option(err, option);
    return ret;
}

int ctl_check_asked(const struct ctl_who *who, const JobSpec *spec, struct err *err)
{
    if (who->is_operator || who->is_admin)
        return 0;
    if (spec->has_priority && spec->priority != 0)
        return refuse(err, ERR_PERMISSION, "priority",
                      "only operators and administrators may set a priority; 0 holds the job");
    if (spec->has_nice && spec->nice < 0)
        return refuse(err, ERR_PERMISSION, "nice",
                      "only operators and administrators may set a negative nice value");
    return 0;
}

static const char *find_control(const char *text)
{
    for (; text && *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return text;
    }
    return NULL;
}

int ctl_check_text(const char *name, const char *text, struct err *err)
{
    const char *at = find_control(text);

    if (!at)
        return 0;
    return err_set(err, ERR_INVALID, "%s: control character 0x%02x at character %zu is not allowed",
                   name, (unsigned char)*at, (size_t)(at - text) + 1);
}

/* It becomes an argument of the mail program. */
static int check_mail_user(const char *address, struct err *err)
{
    if (!address)
        return 0;
    if (*address == '-')
        return refuse(err, ERR_INVALID, "mail-user", "an address cannot begin with '-'");
    if (ctl_check_text("--mail-user", address, err) < 0)
        return -(int)err->code;
    return strchr(address, ' ')
               ? refuse(err, ERR_INVALID, "mail-user", "an address cannot have blanks")
               : 0;
}

/* Paths and command lines may have line breaks; they are shown on lines of their own. */
static bool is_free_text(const char *field)
{
    static const char *const free_texts[] = {
        "work_dir",    "std_out",          "std_err",   "std_in",           "command",
        "submit_line", "container_mounts", "container", "container_workdir"
    };

    for (size_t i = 0; i < ARRAY_LEN(free_texts); i++) {
        if (str_eq(field, free_texts[i]))
            return true;
    }
    return false;
}

int ctl_check_texts(const JobSpec *spec, struct err *err)
{
    const ProtobufCMessageDescriptor *type = spec->base.descriptor;

    if (check_mail_user(spec->mail_user, err) < 0)
        return -(int)err->code;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (field->type != PROTOBUF_C_TYPE_STRING || field->label == PROTOBUF_C_LABEL_REPEATED ||
            is_free_text(field->name))
            continue;
        const char *const *text = (const void *)((const char *)spec + field->offset);
        if (ctl_check_text(field->name, *text, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

/* NAME=value; prolog and epilog get it as SPANK_NAME. */
static bool is_variable(const char *text)
{
    const char *at = text;

    while (isalnum((unsigned char)*at) || *at == '_')
        at++;
    return at > text && *at == '=';
}

int ctl_check_spank(const struct state *state, const JobSpec *spec, struct err *err)
{
    size_t bytes = 0;

    if (spec->n_spank_env && state_level(state) < LEVEL_SPANK)
        return err_set(err, ERR_UNSUPPORTED,
                       "SPANK plugins gave the job an environment, which not all controllers know "
                       "yet: upgrade them (spur controller level)");
    if (spec->n_spank_env > LIMIT_SPANK_ENV_COUNT)
        return err_set(err, ERR_TOO_MANY, "SPANK plugins gave the job more than %d variables",
                       LIMIT_SPANK_ENV_COUNT);
    for (size_t i = 0; i < spec->n_spank_env; i++) {
        bytes += strlen(spec->spank_env[i]) + 1;
        if (!is_variable(spec->spank_env[i]))
            return err_set(err, ERR_INVALID, "SPANK plugins: '%.64s' is not NAME=value",
                           spec->spank_env[i]);
    }
    return bytes > LIMIT_SPANK_ENV_BYTES
               ? err_set(err, ERR_TOO_LARGE,
                         "SPANK plugins gave the job more than %d bytes of variables",
                         LIMIT_SPANK_ENV_BYTES)
               : 0;
}
