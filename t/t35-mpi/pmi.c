/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmi.c - a task that speaks PMI-1 or PMI-2 itself, for tests: "pmi 1|2 COMMAND"
 *
 *   talk      puts a value, fences, and reads those of all others; prints what was agreed
 *   big N     puts N values of a kilobyte each, fences twice, and reads all of all tasks
 *   names     rank 0 publishes a name, the others look it up
 *   attr      PMI-2: attributes of the node, of which one is waited for
 *   spawn     asks for more tasks, and prints the refusal
 *   abort N   the last rank aborts, the others are in a fence
 *   leave     the last rank ends without a word, the others are in a fence
 *   nonsense  sends what is no message
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fd, rank, size, second;
static char in[65536];

static void die(const char *what)
{
    fprintf(stderr, "rank %d: %s\n", rank, what);
    exit(9);
}

static void read_all(char *to, size_t len)
{
    while (len) {
        ssize_t got = read(fd, to, len);
        if (got <= 0)
            die("the socket was closed");
        to += got;
        len -= (size_t)got;
    }
}

static char *hear(void)
{
    size_t len = 0;

    if (second) {
        char head[7] = "";
        read_all(head, 6);
        len = (size_t)atoi(head);
        read_all(in, len);
    } else {
        do
            read_all(in + len, 1);
        while (in[len++] != '\n');
        len--;
    }
    in[len] = '\0';
    return in;
}

static void say(const char *fmt, ...)
{
    char text[8192], out[8300];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    int len = second ? snprintf(out, sizeof(out), "%6zu%s", strlen(text), text)
                     : snprintf(out, sizeof(out), "%s\n", text);
    if (write(fd, out, (size_t)len) != len)
        die("cannot write");
}

static char *value_of(const char *name)
{
    static char value[2048];
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "%s=", name);
    char *at = strstr(in, wanted);
    if (!at)
        return "";
    at += strlen(wanted);
    snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, second ? ";" : " "), at);
    return value;
}

static void begin(void)
{
    int asked = second;

    second = 0;
    say("cmd=init pmi_version=%d pmi_subversion=%d", asked, asked == 2 ? 0 : 1);
    hear();
    second = asked == 2;
    if (!second) {
        say("cmd=get_maxes");
        if (!strstr(hear(), "cmd=maxes kvsname_max="))
            die(in);
        return;
    }
    say("cmd=fullinit;pmijobid=%s;pmirank=%d;threaded=FALSE;", getenv("PMI_JOBID"), rank);
    hear();
    if (atoi(value_of("rank")) != rank || atoi(value_of("size")) != size)
        die(in);
}

static void put(const char *key, const char *value)
{
    say(second ? "cmd=kvs-put;key=%s;value=%s;" : "cmd=put kvsname=x key=%s value=%s", key, value);
    if (!strstr(hear(), "rc=0"))
        die(in);
}

static const char *get(const char *key)
{
    say(second ? "cmd=kvs-get;jobid=;srcid=-1;key=%s;" : "cmd=get kvsname=x key=%s", key);
    hear();
    return value_of("value");
}

static void fence(void)
{
    say(second ? "cmd=kvs-fence;" : "cmd=barrier_in");
    if (!strstr(hear(), second ? "kvs-fence-response" : "barrier_out"))
        die(in);
}

static void talk(void)
{
    char key[64], value[64];
    int good = 0;

    snprintf(key, sizeof(key), "key-%d", rank);
    snprintf(value, sizeof(value), "value=%d", rank * rank);
    put(key, value);
    fence();
    for (int i = 0; i < size; i++) {
        snprintf(key, sizeof(key), "key-%d", i);
        snprintf(value, sizeof(value), "value=%d", i * i);
        good += strcmp(get(key), value) == 0;
    }
    get("absent");
    int absent = strstr(in, second ? "found=FALSE" : "rc=-1") != NULL;
    say(second ? "cmd=info-getjobattr;key=PMI_process_mapping;"
               : "cmd=get kvsname=x key=PMI_process_mapping");
    hear();
    printf("rank %d of %d good %d absent %d map %s\n", rank, size, good, absent, value_of("value"));
}

static void big(int count)
{
    char key[64], value[1001];
    int good = 0;

    for (int i = 0; i < count; i++) {
        snprintf(key, sizeof(key), "big-%d-%d", rank, i);
        memset(value, 'a' + (rank + i) % 26, sizeof(value) - 1);
        value[sizeof(value) - 1] = '\0';
        put(key, value);
    }
    fence();
    fence();
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < count; i++) {
            snprintf(key, sizeof(key), "big-%d-%d", r, i);
            const char *found = get(key);
            good += strlen(found) == 1000 && found[999] == 'a' + (r + i) % 26;
        }
    }
    printf("rank %d good %d\n", rank, good);
}

/* All put, fence and read, again and again, until the first finds a file "stop". */
static void rounds(void)
{
    char key[64], value[64];
    int good = 1, last = 0, n = 0;

    while (!last) {
        snprintf(key, sizeof(key), "round-%d-%d", n, rank);
        snprintf(value, sizeof(value), "%d",
                 rank == 0 && access("stop", F_OK) == 0 ? -1 : rank + n);
        put(key, value);
        fence();
        for (int i = 0; i < size; i++) {
            snprintf(key, sizeof(key), "round-%d-%d", n, i);
            int got = atoi(get(key));
            last |= i == 0 && got == -1;
            good &= got == i + n || (i == 0 && got == -1);
        }
        if (rank == 0)
            printf("round %d\n", n);
        fflush(stdout);
        usleep(20000);
        n++;
    }
    printf("rank %d all good %d\n", rank, good);
}

static void names(void)
{
    if (rank == 0) {
        say(second ? "cmd=name-publish;name=ocean;port=tag;;4;"
                   : "cmd=publish_name service=ocean port=tag4");
        if (!strstr(hear(), "rc=0"))
            die(in);
    }
    fence();
    say(second ? "cmd=name-lookup;name=ocean;" : "cmd=lookup_name service=ocean");
    hear();
    printf("rank %d port %s\n", rank, strstr(in, "tag") ? strstr(in, "tag") : "none");
}

static void attr(void)
{
    int local = atoi(getenv("SLURM_LOCALID"));

    if (local == 0) {
        sleep(1); /* so that the others wait */
        say("cmd=info-putnodeattr;key=shm;value=%s;", getenv("SLURMD_NODENAME"));
        hear();
    }
    say("cmd=info-getnodeattr;key=shm;wait=TRUE;");
    hear();
    printf("rank %d attr %s node %s\n", rank, value_of("value"), getenv("SLURMD_NODENAME"));
}

int main(int argc, char **argv)
{
    if (argc < 3 || !getenv("PMI_FD"))
        return 8;
    fd = atoi(getenv("PMI_FD"));
    rank = atoi(getenv("PMI_RANK"));
    size = atoi(getenv("PMI_SIZE"));
    second = atoi(argv[1]);
    const char *what = argv[2];
    begin();
    if (strcmp(what, "talk") == 0)
        talk();
    else if (strcmp(what, "big") == 0)
        big(atoi(argv[3]));
    else if (strcmp(what, "rounds") == 0)
        rounds();
    else if (strcmp(what, "names") == 0)
        names();
    else if (strcmp(what, "attr") == 0)
        attr();
    else if (strcmp(what, "spawn") == 0) {
        say(second ? "cmd=spawn;ncmds=1;preputcount=0;subcmd=true;maxprocs=1;argc=0;"
                   : "mcmd=spawn\nnprocs=1\nexecname=true\ntotspawns=1\nspawnssofar=1\nendcmd");
        printf("rank %d: %s\n", rank, hear());
    } else if (strcmp(what, "abort") == 0 && rank == size - 1) {
        say(second ? "cmd=abort;isworld=TRUE;msg=no more;exitcode=%d;" : "cmd=abort exitcode=%d",
            atoi(argv[3]));
        pause();
    } else if (strcmp(what, "leave") == 0 && rank == size - 1) {
        return 0;
    } else if (strcmp(what, "nonsense") == 0) {
        if (write(fd, second ? "xxxxxxcmd=put;" : "hello\n", second ? 14 : 6) < 0)
            return 7;
        printf("rank %d closed %d\n", rank, read(fd, in, 1) == 0);
        return 0;
    } else {
        fence();
    }
    say(second ? "cmd=finalize;" : "cmd=finalize");
    hear();
    return 0;
}
