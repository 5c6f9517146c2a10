// SPDX-License-Identifier: Apache-2.0
/*
 * list.c - Slurm's lists, as clients walk the answers of the accounting functions with them
 *
 * A list locks itself for each call. An iterator stays valid while its list is changed through it or appended to.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "compat/compat.h"

struct node {
    struct node *next;
    void *data;
};

struct xlist {
    pthread_mutex_t lock;
    struct node *first, **last; /* where the next one goes */
    ListDelF del;
    int count;
    struct listIterator *iterators;
};

struct listIterator {
    struct xlist *list;
    struct node **at;   /* points to the next one to give */
    struct node *given; /* what list_remove() takes out */
    struct listIterator *next;
};

compat_list slurm_list_create(ListDelF f)
{
    struct xlist *list = calloc(1, sizeof(*list));

    if (!list) {
        errno = ENOMEM;
        return NULL;
    }
    pthread_mutex_init(&list->lock, NULL);
    list->last = &list->first;
    list->del = f;
    return list;
}

void slurm_list_destroy(compat_list l)
{
    if (!l)
        return;
    for (struct node *node = l->first, *next; node; node = next) {
        next = node->next;
        if (l->del && node->data)
            l->del(node->data);
        free(node);
    }
    for (struct listIterator *i = l->iterators, *next; i; i = next) {
        next = i->next;
        free(i);
    }
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static bool put(struct xlist *list, struct node **where, void *data)
{
    struct node *node = calloc(1, sizeof(*node));

    if (!node) {
        errno = ENOMEM;
        return false;
    }
    node->data = data;
    node->next = *where;
    if (list->last == where)
        list->last = &node->next;
    *where = node;
    list->count++;
    return true;
}

static bool append(struct xlist *list, void *data)
{
    pthread_mutex_lock(&list->lock);
    bool done = put(list, list->last, data);
    pthread_mutex_unlock(&list->lock);
    return done;
}

/* Takes out the node at `where`; iterators that stood there move on. */
static void *take(struct xlist *list, struct node **where)
{
    struct node *node = *where;

    if (!node)
        return NULL;
    void *data = node->data;
    for (struct listIterator *i = list->iterators; i; i = i->next) {
        if (i->at == &node->next)
            i->at = where;
        if (i->given == node)
            i->given = NULL;
    }
    if (list->last == &node->next)
        list->last = where;
    *where = node->next;
    list->count--;
    free(node);
    return data;
}

#if COMPAT_API == 38
void *slurm_list_append(compat_list l, void *x)
{
    return l && append(l, x) ? x : NULL;
}
#else
void slurm_list_append(compat_list l, void *x)
{
    if (l)
        append(l, x);
}
#endif

#if COMPAT_API == 38
void *slurm_list_push(compat_list l, void *x)
#else
void slurm_list_push(compat_list l, void *x)
#endif
{
    if (l) {
        pthread_mutex_lock(&l->lock);
        put(l, &l->first, x);
        pthread_mutex_unlock(&l->lock);
    }
#if COMPAT_API == 38
    return x;
#endif
}

void *slurm_list_pop(compat_list l)
{
    if (!l)
        return NULL;
    pthread_mutex_lock(&l->lock);
    void *data = take(l, &l->first);
    pthread_mutex_unlock(&l->lock);
    return data;
}

void *slurm_list_peek(compat_list l)
{
    return l && l->first ? l->first->data : NULL;
}

int slurm_list_count(compat_list l)
{
    return l ? l->count : 0;
}

int slurm_list_is_empty(compat_list l)
{
    return !l || l->count == 0;
}

compat_iterator slurm_list_iterator_create(compat_list l)
{
    struct listIterator *iterator = l ? calloc(1, sizeof(*iterator)) : NULL;

    if (!iterator) {
        errno = l ? ENOMEM : EINVAL;
        return NULL;
    }
    pthread_mutex_lock(&l->lock);
    *iterator = (struct listIterator){ .list = l, .at = &l->first, .next = l->iterators };
    l->iterators = iterator;
    pthread_mutex_unlock(&l->lock);
    return iterator;
}

void slurm_list_iterator_destroy(compat_iterator i)
{
    if (!i)
        return;
    pthread_mutex_lock(&i->list->lock);
    struct listIterator **at = &i->list->iterators;
    while (*at && *at != i)
        at = &(*at)->next;
    if (*at)
        *at = i->next;
    pthread_mutex_unlock(&i->list->lock);
    free(i);
}

void slurm_list_iterator_reset(compat_iterator i)
{
    if (!i)
        return;
    pthread_mutex_lock(&i->list->lock);
    i->at = &i->list->first;
    i->given = NULL;
    pthread_mutex_unlock(&i->list->lock);
}

void *slurm_list_next(compat_iterator i)
{
    if (!i)
        return NULL;
    pthread_mutex_lock(&i->list->lock);
    struct node *node = *i->at;
    i->given = node;
    if (node)
        i->at = &node->next;
    pthread_mutex_unlock(&i->list->lock);
    return node ? node->data : NULL;
}

void *slurm_list_remove(compat_iterator i)
{
    void *data = NULL;

    if (!i)
        return NULL;
    pthread_mutex_lock(&i->list->lock);
    for (struct node **at = &i->list->first; i->given && *at; at = &(*at)->next) {
        if (*at == i->given) {
            data = take(i->list, at);
            break;
        }
    }
    pthread_mutex_unlock(&i->list->lock);
    return data;
}

void *slurm_list_find(compat_iterator i, ListFindF f, void *key)
{
    void *data;

    while ((data = slurm_list_next(i))) {
        if (f(data, key))
            return data;
    }
    return NULL;
}

/* Calls `f` for each; the number of calls, negative when one of them returned a negative number. */
int slurm_list_for_each(compat_list l, ListForF f, void *arg)
{
    int calls = 0;

    if (!l)
        return 0;
    pthread_mutex_lock(&l->lock);
    for (struct node *node = l->first; node; node = node->next) {
        calls++;
        if (f(node->data, arg) < 0) {
            calls = -calls;
            break;
        }
    }
    pthread_mutex_unlock(&l->lock);
    return calls;
}

/* Stable; the function gets the addresses of two pointers, as qsort() gives them. */
void slurm_list_sort(compat_list l, ListCmpF f)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    struct node *sorted = NULL;
    for (struct node *node = l->first, *next; node; node = next) {
        struct node **at = &sorted;
        next = node->next;
        while (*at && f(&(*at)->data, &node->data) <= 0)
            at = &(*at)->next;
        node->next = *at;
        *at = node;
    }
    l->first = sorted;
    l->last = &l->first;
    while (*l->last)
        l->last = &(*l->last)->next;
    for (struct listIterator *i = l->iterators; i; i = i->next) {
        i->at = &l->first;
        i->given = NULL;
    }
    pthread_mutex_unlock(&l->lock);
}

/* Adds the words of "a,b" that are not in it yet; how many were added. */
int slurm_addto_char_list_with_case(compat_list char_list, char *names,
                                    bool lower_case_normalization)
{
    GUARD(SLURM_ERROR);
    const char *cursor = names ? names : "";
    struct span word;
    int added = 0;

    while (char_list && str_next(&cursor, ", \"'", &word)) {
        bool there = false;
        char *text = compat_alloc(word.len + 1);
        for (size_t i = 0; i < word.len; i++)
            text[i] = lower_case_normalization && word.ptr[i] >= 'A' && word.ptr[i] <= 'Z'
                          ? (char)(word.ptr[i] + 32)
                          : word.ptr[i];
        for (struct node *node = char_list->first; node; node = node->next)
            there |= str_eq(node->data, text);
        if (there || !append(char_list, text))
            slurm_xfree((void **)&text);
        else
            added++;
    }
    return added;
}

void slurm_destroy_selected_step(void *object)
{
    slurm_selected_step_t *step = object;

    if (!step)
        return;
    compat_free_slurm_selected_step_t(step);
    slurm_xfree((void **)&step);
}

static uint32_t number_of(const char **at)
{
    char *end;
    unsigned long value = strtoul(*at, &end, 10);

    *at = end;
    return (uint32_t)value;
}

static uint32_t step_number(const char **at)
{
    static const struct {
        const char *word;
        uint32_t number;
    } words[] = { { "batch", SLURM_BATCH_SCRIPT }, { "extern", SLURM_EXTERN_CONT } };

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_starts(*at, words[i].word)) {
            *at += strlen(words[i].word);
            return words[i].number;
        }
    }
    return number_of(at);
}

/* "12,13_4,14+1.0": a record for each; how many were added. */
int slurm_addto_step_list(compat_list step_list, char *names)
{
    GUARD(SLURM_ERROR);
    const char *at = names ? names : "";
    int added = 0;

    while (step_list && *at) {
        if (*at < '0' || *at > '9') {
            at++;
            continue;
        }
        slurm_selected_step_t *step = compat_alloc(sizeof(*step));
        step->array_task_id = step->het_job_offset = NO_VAL;
        step->step_id.step_id = step->step_id.step_het_comp = NO_VAL;
        step->step_id.job_id = number_of(&at);
        if (*at == '_' && at++)
            step->array_task_id = number_of(&at);
        else if (*at == '+' && at++)
            step->het_job_offset = number_of(&at);
        if (*at == '.' && at++)
            step->step_id.step_id = step_number(&at);
        if (append(step_list, step))
            added++;
        else
            slurm_destroy_selected_step(step);
    }
    return added;
}
