// SPDX-License-Identifier: Apache-2.0
/*
 * control_lists.c - scontrol update partition Key+=words and Key-=words
 *
 * What the partition has now is asked for, and the word becomes Key= with all that it has then.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/hostlist.h"
#include "cli/control.h"

static const struct list_key {
    const char *key, *field;
} list_keys[] = {
    { "AllowAccounts", "allow_accounts" },
    { "AllowGroups", "allow_groups" },
    { "AllowQOS", "allow_qos" },
    { "AllocNodes", "allow_alloc_nodes" },
    { "DenyAccounts", "deny_accounts" },
    { "DenyQOS", "deny_qos" },
    { "Nodes", NULL },
};

static const Partition *find(struct control *control, int argc, char **argv, struct err *err)
{
    ListPartitionsRequest request = LIST_PARTITIONS_REQUEST__INIT;
    ListPartitionsReply *reply;
    char *name = NULL;

    for (int i = 0; i < argc; i++) {
        if (str_istarts(argv[i], "PartitionName=") || str_istarts(argv[i], "Partition="))
            name = strchr(argv[i], '=') + 1;
    }
    request.n_names = 1;
    request.names = &name;
    request.has_hidden_too = request.hidden_too = true;
    if (!name || cli_call(&control->cli, "ListPartitions", &request.base,
                          &list_partitions_reply__descriptor, (ProtobufCMessage **)&reply, err) < 0)
        return NULL;
    if (!reply->n_partitions)
        err_code(err, ERR_INVALID_PARTITION);
    return reply->n_partitions ? reply->partitions[0] : NULL;
}

static bool in_words(const char *words, const char *item)
{
    const char *cursor = words;
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        if (word.len == strlen(item) && strncasecmp(word.ptr, item, word.len) == 0)
            return true;
    }
    return false;
}

static void change_words(const PartitionSpec *spec, const char *field, char sign, const char *words,
                         struct str *out)
{
    const ProtobufCFieldDescriptor *at =
        protobuf_c_message_descriptor_get_field_by_name(&partition_spec__descriptor, field);
    const char *base = (const char *)spec;
    char **items = *(char ***)(uintptr_t)(base + at->offset);
    size_t count = *(const size_t *)(const void *)(base + at->quantifier_offset);

    for (size_t i = 0; i < count; i++) {
        if (!in_words(words, items[i]))
            str_addf(out, "%s%s", out->len ? "," : "", items[i]);
    }
    if (sign == '+')
        str_addf(out, "%s%s", out->len ? "," : "", words);
}

static int change_hosts(const Partition *partition, char sign, const char *words, struct str *out,
                        struct err *err)
{
    CLEANUP(hostlist_done) struct hostlist named = { 0 };
    CLEANUP(hostlist_done) struct hostlist then = { 0 };

    if (hostlist_parse(&named, words, err) < 0)
        return -1;
    for (size_t i = 0; i < partition->n_node_names; i++) {
        if (hostlist_find(&named, partition->node_names[i]) < 0)
            hostlist_push(&then, partition->node_names[i], NULL);
    }
    if (sign == '+') {
        hostlist_each (host, &named)
            hostlist_push(&then, host.name, NULL);
    }
    hostlist_format(&then, out);
    return 0;
}

int control_whole_list(struct control *control, int argc, char **argv, char **word, struct err *err)
{
    char *equals = strchr(*word, '=');
    size_t len = equals ? (size_t)(equals - *word) : 0;
    const struct list_key *row = NULL;
    struct str out = { 0 };
    int result = 0;

    if (len < 2 || (equals[-1] != '+' && equals[-1] != '-'))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(list_keys); i++) {
        if (strlen(list_keys[i].key) == len - 1 &&
            strncasecmp(*word, list_keys[i].key, len - 1) == 0)
            row = &list_keys[i];
    }
    if (!row)
        return 0; /* whoever reads it says so */
    const Partition *partition = find(control, argc, argv, err);
    if (!partition)
        return err->code ? -1 : err_code(err, ERR_INVALID_PARTITION);
    if (row->field)
        change_words(partition->spec, row->field, equals[-1], equals + 1, &out);
    else
        result = change_hosts(partition, equals[-1], equals + 1, &out, err);
    if (result == 0)
        *word = arena_printf(&control->cli.arena, "%s=%s", row->key, str_text(&out));
    str_done(&out);
    return result;
}
