/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sprio_fields.c - columns of sprio, and the order of its lines
 *
 * A capital letter is the weighted part of the priority, a small one the factor from 0 to 1 before it.
 */
#include "cli/sprio.h"

#include <stdlib.h>
#include <string.h>

#include "schema/job_view.h"

static const PriorityParts *parts_of(const struct field_call *call)
{
    return ((const struct sprio_row *)call->object)->parts;
}

static bool is_weights(const struct field_call *call)
{
    return !((const struct sprio_row *)call->object)->job;
}

static const Config *config_of(const struct field_call *call)
{
    return ((const struct sprio_row *)call->object)->config;
}

static bool add_factor(struct str *out, uint64_t factor)
{
    str_addf(out, "%.7f", (double)factor / 4294967296.0);
    return true;
}

#define FACTOR(NAME, FIELD, WEIGHT)                                                 \
    static bool w_##NAME(const struct field_call *call, struct str *out)            \
    {                                                                               \
        if (is_weights(call))                                                       \
            str_addf(out, "%u", config_of(call)->WEIGHT);                           \
        else                                                                        \
            str_addf(out, "%lld", (long long)parts_of(call)->FIELD);                \
        return true;                                                                \
    }                                                                               \
    static bool n_##NAME(const struct field_call *call, struct str *out)            \
    {                                                                               \
        return is_weights(call) || add_factor(out, parts_of(call)->FIELD##_factor); \
    }

FACTOR(age, age, weight_age)
FACTOR(assoc, assoc, weight_assoc)
FACTOR(fairshare, fairshare, weight_fairshare)
FACTOR(size, size, weight_job_size)
FACTOR(partition, partition, weight_partition)
FACTOR(qos, qos, weight_qos)

static bool w_site(const struct field_call *call, struct str *out)
{
    str_addf(out, "%lld", is_weights(call) ? 1LL : (long long)parts_of(call)->site);
    return true;
}

static bool w_nice(const struct field_call *call, struct str *out)
{
    if (!is_weights(call))
        str_addf(out, "%lld", (long long)parts_of(call)->nice);
    return true;
}

static bool w_tres(const struct field_call *call, struct str *out)
{
    if (is_weights(call)) {
        str_add(out, config_of(call)->weight_tres ? config_of(call)->weight_tres : "");
        return true;
    }
    const PriorityParts *parts = parts_of(call);
    for (size_t i = 0; i < parts->n_tres; i++)
        str_addf(out, "%s%s=%lld", i ? "," : "", parts->tres[i]->tres,
                 (long long)parts->tres[i]->part);
    return true;
}

static bool n_tres(const struct field_call *call, struct str *out)
{
    for (size_t i = 0; !is_weights(call) && i < parts_of(call)->n_tres; i++) {
        const PriorityTres *one = parts_of(call)->tres[i];
        str_addf(out, "%s%s=%.2f", i ? "," : "", one->tres, (double)one->factor / 4294967296.0);
    }
    return true;
}

static bool w_id(const struct field_call *call, struct str *out)
{
    if (is_weights(call))
        str_add(out, "Weights");
    else
        job_add_id(out, ((const struct sprio_row *)call->object)->job);
    return true;
}

static bool w_priority(const struct field_call *call, struct str *out)
{
    if (!is_weights(call))
        str_addf(out, "%u", parts_of(call)->total);
    return true;
}

static bool n_priority(const struct field_call *call, struct str *out)
{
    if (!is_weights(call))
        str_addf(out, "%.8f", (double)parts_of(call)->total / 4294967295.0);
    return true;
}

static const char *text_of(const struct sprio_row *row, char letter)
{
    const char *text = NULL;

    if (row->job && letter == 'r')
        text =
            row->parts->partition_name ? row->parts->partition_name : row->job->status->partition;
    else if (row->job && letter == 'u')
        text = row->job->owner ? row->job->owner->user : NULL;
    else if (row->job && letter == 'o')
        text = row->job->status->account;
    else if (row->job && letter == 'n')
        text = row->job->status->qos;
    else if (letter == 'c')
        text = row->config->cluster_name;
    if (!text && row->job && (letter == 'o' || letter == 'n'))
        text = "(null)"; /* programs count columns */
    return text ? text : "";
}

static bool w_text(const struct field_call *call, struct str *out)
{
    str_add(out, text_of(call->object, call->field->column.letter));
    return true;
}

#define LETTER(key, head, writer, text)                                      \
    {                                                                        \
        .write = (writer), .column = { (key), NULL, (head) }, .help = (text) \
    }
static const struct field letters[] = {
    LETTER('a', "AGE", n_age, "Factor of the time it waits."),
    LETTER('A', "AGE", w_age, "Its weighted part."),
    LETTER('b', "ASSOC", n_assoc, "Factor of its association's priority."),
    LETTER('B', "ASSOC", w_assoc, "Its weighted part."),
    LETTER('c', "CLUSTER", w_text, "Name of the cluster."),
    LETTER('f', "FAIRSHARE", n_fairshare, "Fair share of its association."),
    LETTER('F', "FAIRSHARE", w_fairshare, "Its weighted part."),
    LETTER('i', "JOBID", w_id, "Number of the job."),
    LETTER('j', "JOBSIZE", n_size, "Factor of its size."),
    LETTER('J', "JOBSIZE", w_size, "Its weighted part."),
    LETTER('n', "QOSNAME", w_text, "Its QOS."),
    LETTER('N', "NICE", w_nice, "What --nice takes away."),
    LETTER('o', "ACCOUNT", w_text, "Its account."),
    LETTER('p', "PARTITION", n_partition, "Factor of its partition."),
    LETTER('P', "PARTITION", w_partition, "Its weighted part."),
    LETTER('q', "QOS", n_qos, "Factor of its QOS."),
    LETTER('Q', "QOS", w_qos, "Its weighted part."),
    LETTER('r', "PARTITION", w_text, "Name of the partition."),
    LETTER('S', "SITE", w_site, "Part that the site sets."),
    LETTER('t', "TRES", n_tres, "Factors of the resources it asks for."),
    LETTER('T', "TRES", w_tres, "Their weighted parts."),
    LETTER('u', "USER", w_text, "Its user."),
    LETTER('y', "PRIORITY", n_priority, "Priority, of the highest there can be."),
    LETTER('Y', "PRIORITY", w_priority, "Priority."),
};
const struct field_table sprio_fields = { "priority", letters, ARRAY_LEN(letters) };

/* ---- sorting ---- */

static const char *sort_by; /* of this call; qsort carries nothing along */

static int64_t number_of(const struct sprio_row *row, char letter)
{
    const PriorityParts *parts = row->parts;
    int64_t tres = 0;

    switch (letter) {
    case 'a':
    case 'A':
        return parts->age;
    case 'b':
    case 'B':
        return parts->assoc;
    case 'f':
    case 'F':
        return parts->fairshare;
    case 'j':
    case 'J':
        return parts->size;
    case 'N':
        return parts->nice;
    case 'p':
    case 'P':
        return parts->partition;
    case 'q':
    case 'Q':
        return parts->qos;
    case 'S':
        return parts->site;
    case 't':
    case 'T':
        for (size_t i = 0; i < parts->n_tres; i++)
            tres += parts->tres[i]->part;
        return tres;
    case 'y':
    case 'Y':
        return parts->total;
    default:
        return row->job->id;
    }
}

static int compare(const void *a, const void *b)
{
    const struct sprio_row *x = a, *y = b;

    for (const char *at = sort_by; *at; at++) {
        int sign = *at == '-' ? -1 : 1, order;
        if (*at == '-' || *at == '+')
            at++;
        if (!*at)
            break;
        if (*at == ',')
            continue;
        if (strchr("ruonc", *at)) {
            order = strcmp(text_of(x, *at), text_of(y, *at));
        } else {
            int64_t left = number_of(x, *at), right = number_of(y, *at);
            order = left < right ? -1 : left > right;
        }
        if (order)
            return order * sign;
    }
    if (x->job->id != y->job->id)
        return x->job->id < y->job->id ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

void sprio_sort(struct sprio_row *rows, size_t count, const char *by)
{
    sort_by = by;
    if (count)
        qsort(rows, count, sizeof(*rows), compare);
}
