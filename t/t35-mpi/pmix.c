/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmix.c - a task for tests that speaks PMIx itself: pmix WHAT [NUMBER], one row of `acts` each
 */
#include <pmix.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pmix_proc_t me, all;
static uint32_t size;
static int number;

static void must(const char *what, pmix_status_t status)
{
    if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED)
        return;
    printf("rank %u: %s: %s\n", me.rank, what, PMIx_Error_string(status));
    fflush(stdout);
    _exit(3);
}

static uint32_t get_u32(const pmix_proc_t *who, const char *key)
{
    pmix_value_t *value;

    must(key, PMIx_Get(who, key, NULL, 0, &value));
    return value->data.uint32;
}

static pmix_status_t fence(bool collect)
{
    pmix_info_t info;

    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    return PMIx_Fence(&all, 1, &info, 1);
}

/* Everybody puts something of `bytes`, and reads what everybody put. */
static void exchange(bool collect, size_t bytes)
{
    char key[] = "a.key", *text = calloc(1, bytes + 16);
    pmix_value_t value, *got;
    unsigned good = 0;

    memset(text, 'x', bytes);
    sprintf(text + bytes, "%u", me.rank);
    PMIX_VALUE_LOAD(&value, text, PMIX_STRING);
    must("put", PMIx_Put(PMIX_GLOBAL, key, &value));
    must("commit", PMIx_Commit());
    must("fence", fence(collect));
    for (uint32_t i = 0; i < size; i++) {
        pmix_proc_t who;
        PMIX_LOAD_PROCID(&who, me.nspace, i);
        must("get", PMIx_Get(&who, key, NULL, 0, &got));
        good += strlen(got->data.string) > bytes && (uint32_t)atoi(got->data.string + bytes) == i;
    }
    must("last fence", fence(false));
    printf("rank %u of %u good %u\n", me.rank, size, good);
}

static void talk(void)
{
    exchange(true, (size_t)number);
}
static void lazy(void)
{
    exchange(false, (size_t)number);
}

/* All put, fence and read, again and again, until the first finds a file "stop". */
static void rounds(void)
{
    bool good = true, last = false;

    for (int n = 0; !last; n++) {
        char key[32];
        int mine = me.rank == 0 && access("stop", F_OK) == 0 ? -1 : (int)me.rank + n;
        pmix_value_t value, *got;
        sprintf(key, "round.%d", n);
        PMIX_VALUE_LOAD(&value, &mine, PMIX_INT);
        must("put", PMIx_Put(PMIX_GLOBAL, key, &value));
        must("commit", PMIx_Commit());
        must("fence", fence(n % 2 == 0));
        for (uint32_t i = 0; i < size; i++) {
            pmix_proc_t who;
            PMIX_LOAD_PROCID(&who, me.nspace, i);
            must("get", PMIx_Get(&who, key, NULL, 0, &got));
            last |= i == 0 && got->data.integer == -1;
            good &= got->data.integer == (int)i + n || (i == 0 && last);
        }
        if (me.rank == 0)
            printf("round %d\n", n);
        fflush(stdout);
        usleep(20000);
    }
    must("last fence", fence(false));
    printf("rank %u all good %d\n", me.rank, good);
}

static void where(void)
{
    pmix_value_t *peers, *host, *map;
    pmix_proc_t last;

    PMIX_LOAD_PROCID(&last, me.nspace, size - 1);
    must("peers", PMIx_Get(&all, PMIX_LOCAL_PEERS, NULL, 0, &peers));
    must("host", PMIx_Get(&me, PMIX_HOSTNAME, NULL, 0, &host));
    must("far", PMIx_Get(&last, PMIX_HOSTNAME, NULL, 0, &map));
    printf("rank %u local %u/%u peers %s node %u of %u host %s last %s\n", me.rank,
           get_u32(&me, PMIX_LOCAL_RANK) & 0xffff, get_u32(&all, PMIX_LOCAL_SIZE),
           peers->data.string, get_u32(&me, PMIX_NODEID), get_u32(&all, PMIX_NUM_NODES),
           host->data.string, map->data.string);
}

/* Even ranks and odd ranks, each among themselves, more than once; then all. */
static void halves(void)
{
    pmix_proc_t *half = calloc(size, sizeof(*half));
    size_t count = 0;

    for (uint32_t i = me.rank % 2; i < size; i += 2, count++)
        PMIX_LOAD_PROCID(&half[count], me.nspace, i);
    for (int i = 0; i < 20 + (int)(me.rank % 2) * 20; i++)
        must("half", PMIx_Fence(half, count, NULL, 0));
    must("connect", PMIx_Connect(half, count, NULL, 0));
    must("disconnect", PMIx_Disconnect(half, count, NULL, 0));
    must("whole", fence(false));
    printf("rank %u halves\n", me.rank);
}

static void group(void)
{
    pmix_info_t ask, *got = NULL;
    size_t count = 0, id = 0;
    bool yes = true;

    PMIX_INFO_LOAD(&ask, PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
    must("construct", PMIx_Group_construct("friends", &all, 1, &ask, 1, &got, &count));
    for (size_t i = 0; i < count; i++) {
        if (PMIX_CHECK_KEY(&got[i], PMIX_GROUP_CONTEXT_ID))
            id = got[i].value.data.size;
    }
    must("destruct", PMIx_Group_destruct("friends", NULL, 0));
    printf("rank %u group %zu\n", me.rank, id);
}

static pmix_status_t look(const char *key, bool wait, char *out)
{
    pmix_pdata_t data;
    pmix_info_t info;
    int zero = 0;

    PMIX_PDATA_CONSTRUCT(&data);
    PMIX_LOAD_KEY(data.key, key);
    PMIX_INFO_LOAD(&info, PMIX_WAIT, &zero, PMIX_INT);
    pmix_status_t status = PMIx_Lookup(&data, 1, wait ? &info : NULL, wait);
    if (status == PMIX_SUCCESS)
        sprintf(out, "%s by %u", data.value.data.string, data.proc.rank);
    return status;
}

static void names(void)
{
    char text[64] = "", key[] = "port", value[] = "here", *keys[] = { key, NULL };
    pmix_info_t info;
    pmix_status_t again = PMIX_SUCCESS;

    PMIX_INFO_LOAD(&info, key, value, PMIX_STRING);
    if (me.rank == size - 1) {
        usleep(200000); /* so that the others wait */
        must("publish", PMIx_Publish(&info, 1));
        again = PMIx_Publish(&info, 1);
    }
    must("lookup", look(key, true, text));
    must("fence", fence(false));
    if (me.rank == size - 1)
        must("unpublish", PMIx_Unpublish(keys, NULL, 0));
    must("fence", fence(false));
    pmix_status_t gone = look(key, false, text);
    must("fence", fence(false));
    printf("rank %u found %s then %s%s%s\n", me.rank, text, PMIx_Error_string(gone),
           again ? " again " : "", again ? PMIx_Error_string(again) : "");
}

static void spawn(void)
{
    pmix_app_t *app;
    pmix_nspace_t name;

    PMIX_APP_CREATE(app, 1);
    app->cmd = strdup("/bin/true");
    app->maxprocs = 1;
    printf("spawn: %s\n", PMIx_Error_string(PMIx_Spawn(NULL, 0, app, 1, name)));
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;
static int heard = -1;

static void on_event(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                     size_t ninfo, pmix_info_t results[], size_t nresults,
                     pmix_event_notification_cbfunc_fn_t done, void *data)
{
    pthread_mutex_lock(&lock);
    heard = (int)source->rank;
    pthread_cond_signal(&bell);
    pthread_mutex_unlock(&lock);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

static void event(void)
{
    pmix_status_t code = PMIX_EXTERNAL_ERR_BASE - 7;

    PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, NULL, NULL);
    must("fence", fence(false));
    if (me.rank == size - 1)
        must("notify", PMIx_Notify_event(code, &me, PMIX_RANGE_GLOBAL, NULL, 0, NULL, NULL));
    pthread_mutex_lock(&lock);
    while (heard < 0 && me.rank != size - 1)
        pthread_cond_wait(&bell, &lock);
    pthread_mutex_unlock(&lock);
    must("fence", fence(false));
    printf("rank %u heard %d\n", me.rank, me.rank == size - 1 ? (int)me.rank : heard);
}

static void stop(void)
{
    if (me.rank == size - 1)
        PMIx_Abort(number, "enough", NULL, 0);
    fence(false);
}

static void control(void)
{
    pmix_info_t info;
    bool yes = true;

    PMIX_INFO_LOAD(&info, PMIX_JOB_CTRL_KILL, &yes, PMIX_BOOL);
    if (me.rank == 0)
        must("control", PMIx_Job_control(NULL, 0, &info, 1, NULL, NULL));
    fence(false);
}

/* The last says nothing and goes. */
static void leave(void)
{
    if (me.rank == size - 1)
        _exit(number);
    fence(false);
}

static void die(void)
{
    fence(false);
    if (me.rank == size - 1)
        raise(SIGKILL);
    fence(false);
}

/* The last takes its leave and goes; whoever waits for it is told. */
static void early(void)
{
    if (me.rank != size - 1)
        printf("rank %u: %s\n", me.rank, fence(false) == PMIX_SUCCESS ? "fenced" : "refused");
}

static const struct {
    const char *name;
    void (*run)(void);
} acts[] = {
    { "talk", talk },   { "lazy", lazy },     { "where", where }, { "halves", halves },
    { "group", group }, { "names", names },   { "spawn", spawn }, { "event", event },
    { "abort", stop },  { "leave", leave },   { "early", early }, { "control", control },
    { "die", die },     { "rounds", rounds },
};

int main(int argc, char **argv)
{
    must("init", PMIx_Init(&me, NULL, 0));
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    size = get_u32(&all, PMIX_JOB_SIZE);
    number = argc > 2 ? atoi(argv[2]) : 0;
    for (size_t i = 0; argc > 1 && i < sizeof(acts) / sizeof(acts[0]); i++) {
        if (strcmp(acts[i].name, argv[1]) == 0)
            acts[i].run();
    }
    fflush(stdout);
    must("finalize", PMIx_Finalize(NULL, 0));
    return 0;
}
