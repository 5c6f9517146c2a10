/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_agent.c - what a node costs per job: spurd, its zygote and supervisors under a fake controller
 *
 *     bench-agent [JOBS [IN_FLIGHT]]
 *
 * The floor is vfork and exec of the same script with as many at a time. CPU of everything that is
 * Spur's on the node (not the scripts', which have cgroups of their own) is read from a cgroup.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "base/str.h"
#include "bench/bench.h"
#include "proto/agent.pb-c.h"
#include "rpc/rpc.h"
#include "sys/files.h"

static const char script[] = "#!/bin/bash\ntrue\n";

struct bench {
    uv_loop_t uv;
    struct rpc_call *stream;
    char dir[64];
    char cgroup[256];
    uint32_t jobs, in_flight, started, ended;
};

static void send_message(struct bench *bench, CtlMessage *message)
{
    message->has_epoch = true;
    message->epoch = 1;
    rpc_send(bench->stream, &message->base);
}

static void send_welcome(struct bench *bench)
{
    CtlMessage message = CTL_MESSAGE__INIT;
    CtlWelcome welcome = CTL_WELCOME__INIT;
    NodeConfig config = NODE_CONFIG__INIT;
    Config common = CONFIG__INIT;
    char cluster[32], hash[] = "1";

    snprintf(cluster, sizeof(cluster), "bench%d", (int)getpid());
    common.has_disable_root_jobs = true;
    config.cluster_name = cluster;
    config.hash = hash;
    config.common = &common;
    welcome.config = &config;
    message.what_case = CTL_MESSAGE__WHAT_WELCOME;
    message.welcome = &welcome;
    send_message(bench, &message);
}

/* 60 variables of 50 bytes: the environment of a user. */
static ProtobufCBinaryData make_payload(void)
{
    JobPayload payload = JOB_PAYLOAD__INIT;
    static ProtobufCBinaryData env[60];
    static char text[60][64];

    for (int i = 0; i < 60; i++) {
        int len = snprintf(text[i], sizeof(text[i]), "VARIABLE_%02d=%039d", i, i);
        env[i] = (ProtobufCBinaryData){ .data = (uint8_t *)text[i], .len = (size_t)len };
    }
    payload.has_script = true;
    payload.script = (ProtobufCBinaryData){ .data = (uint8_t *)script, .len = strlen(script) };
    payload.n_env = 60;
    payload.env = env;
    ProtobufCBinaryData out = { .len = job_payload__get_packed_size(&payload) };
    out.data = malloc(out.len);
    job_payload__pack(&payload, out.data);
    return out;
}

static void send_grant(struct bench *bench, uint32_t job)
{
    static ProtobufCBinaryData payload;
    CtlMessage message = CTL_MESSAGE__INIT;
    Grant grant = GRANT__INIT;
    Launch launch = LAUNCH__INIT;
    JobSpec spec = JOB_SPEC__INIT;
    JobOwner owner = JOB_OWNER__INIT;
    JobStatus status = JOB_STATUS__INIT;
    NodeAlloc alloc = NODE_ALLOC__INIT, *list[] = { &alloc };
    Allocation allocation = ALLOCATION__INIT;
    char node[] = "n1", null[] = "/dev/null", name[] = "true", user[] = "bench";

    if (!payload.data)
        payload = make_payload();
    owner.has_uid = owner.has_gid = true;
    owner.uid = getuid();
    owner.gid = getgid();
    owner.user = user;
    spec.name = name;
    spec.work_dir = bench->dir;
    spec.std_out = null;
    alloc.node = node;
    allocation.n_nodes = 1;
    allocation.nodes = list;
    launch.spec = &spec;
    launch.status = &status;
    launch.has_payload = true;
    launch.payload = payload;
    grant.has_job_id = grant.has_attempt = true;
    grant.job_id = job;
    grant.attempt = 1;
    grant.owner = &owner;
    grant.alloc = &alloc;
    grant.allocation = &allocation;
    grant.launch = &launch;
    message.what_case = CTL_MESSAGE__WHAT_GRANT;
    message.grant = &grant;
    send_message(bench, &message);
}

static void send_ack(struct bench *bench, const StepId *id)
{
    CtlMessage message = CTL_MESSAGE__INIT;
    AckReport ack = ACK_REPORT__INIT;

    ack.has_job_id = ack.has_attempt = true;
    ack.job_id = id->job_id;
    ack.attempt = id->attempt;
    message.what_case = CTL_MESSAGE__WHAT_ACK;
    message.ack = &ack;
    send_message(bench, &message);
}

static void go_on(struct bench *bench)
{
    while (bench->started < bench->jobs && bench->started - bench->ended < bench->in_flight)
        send_grant(bench, ++bench->started);
    if (bench->ended == bench->jobs)
        uv_stop(&bench->uv);
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *base)
{
    struct bench *bench = rpc_call_ctx(call);
    const NodeMessage *message = (const NodeMessage *)(const void *)base;

    if (message->what_case == NODE_MESSAGE__WHAT_HELLO) {
        bench->stream = call;
        send_welcome(bench);
        uv_stop(&bench->uv);
    } else if (message->what_case == NODE_MESSAGE__WHAT_ENDED) {
        if (message->ended->exit_status != 0) {
            fprintf(stderr, "job failed: %s\n", message->ended->text ? message->ended->text : "?");
            exit(1);
        }
        bench->ended++;
        send_ack(bench, message->ended->id);
        go_on(bench);
    } else if (message->what_case == NODE_MESSAGE__WHAT_GRANT_ACK && message->grant_ack->refused) {
        fprintf(stderr, "grant refused: %s\n", message->grant_ack->text);
        exit(1);
    }
}

static void on_gone(struct rpc_call *call)
{
    rpc_end(call);
}

static const struct rpc_watch watch = { .on_message = on_message, .on_cancel = on_gone };

static void on_session(struct rpc_call *call, const ProtobufCMessage *message)
{
    (void)message;
    rpc_watch(call, &watch);
}

static const struct rpc_method methods[] = {
    { "/spur.Agents/Session", RPC_ANON, false, RPC_BIDI, &node_message__descriptor,
      &ctl_message__descriptor, on_session, 0 },
};

static unsigned roles(void *ctx, const struct rpc_identity *identity, struct rpc_auth *auth)
{
    (void)ctx, (void)identity, (void)auth;
    return RPC_NODE;
}

/* ---- the floor ---- */

static void start_floor(const char *path)
{
    pid_t pid = vfork();

    if (pid == 0) {
        execl(path, path, (char *)NULL);
        _exit(127);
    }
    if (pid < 0)
        abort();
}

static double children_cpu_ms(void)
{
    struct rusage usage;

    getrusage(RUSAGE_CHILDREN, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

static double run_floor(const struct bench *bench, double *cpu_ms)
{
    char *path = mem_printf("%s/floor.sh", bench->dir);
    double begin = bench_ms(), cpu = children_cpu_ms();

    file_write_quick(path, script, strlen(script), 0755, NULL);
    for (uint32_t i = 0, running = 0; i < bench->jobs || running > 0;) {
        if (i < bench->jobs && running < bench->in_flight) {
            start_floor(path);
            i++;
            running++;
        } else {
            wait(NULL);
            running--;
        }
    }
    free(path);
    *cpu_ms += children_cpu_ms() - cpu;
    return bench_ms() - begin;
}

/* ---- the agent ---- */

static bool find_cgroup(struct bench *bench)
{
    FILE *mounts = fopen("/proc/mounts", "r");
    char line[512], path[200], type[64];
    bool found = false;

    while (mounts && !found && fgets(line, sizeof(line), mounts)) {
        if (sscanf(line, "%*s %199s %63s", path, type) != 2 || strcmp(type, "cgroup2") != 0)
            continue;
        snprintf(bench->cgroup, sizeof(bench->cgroup), "%s/spur-bench-%d", path, (int)getpid());
        found = mkdir(bench->cgroup, 0755) == 0;
    }
    if (mounts)
        fclose(mounts);
    return found;
}

static double cgroup_cpu_ms(const struct bench *bench)
{
    char *path = mem_printf("%s/cpu.stat", bench->cgroup);
    FILE *file = fopen(path, "r");
    unsigned long long usec = 0;

    if (file) {
        if (fscanf(file, "usage_usec %llu", &usec) != 1)
            usec = 0;
        fclose(file);
    }
    free(path);
    return (double)usec / 1000;
}

static pid_t start_spurd(struct bench *bench, uint16_t port, bool measured)
{
    char *spool = mem_printf("%s/spool", bench->dir), *conf = mem_printf("%s/conf", bench->dir);
    char *controller = mem_printf("http://127.0.0.1:%u", port), self[4096];
    char *procs = mem_printf("%s/cgroup.procs", bench->cgroup), *program;
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[len > 0 ? len : 0] = '\0';
    *strrchr(self, '/') = '\0';
    program = mem_printf("%s/../src/spurd/spurd", self);
    file_write_quick(conf, "cluster_name = \"bench\"\n", 23, 0644, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = measured ? open(procs, O_WRONLY) : -1;
        if (fd >= 0 && write(fd, "0", 1) != 1)
            _exit(126);
        execl(program, "spurd", "-D", "-N", "n1", "--controller", controller, "--spool-dir", spool,
              "--listen", "none", "-f", conf, (char *)NULL);
        _exit(127);
    }
    free(spool);
    free(conf);
    free(controller);
    free(procs);
    free(program);
    return pid;
}

static double run_agent(struct bench *bench, double *cpu_ms)
{
    struct err err = { 0 };
    struct rpc_loop *loop = rpc_loop_new(&bench->uv);
    const struct rpc_server_options options = { .ctx = bench, .roles = roles };
    struct rpc_server *server = rpc_server_new(loop, &options, &err);
    bool measured = find_cgroup(bench);

    if (!server || rpc_server_add(server, methods, 1, &err) < 0 ||
        rpc_server_listen(server, "127.0.0.1:0", &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    pid_t pid = start_spurd(bench, rpc_server_port(server, 0), measured);
    uv_run(&bench->uv, UV_RUN_DEFAULT); /* until the hello */
    for (int i = 0; i < 50; i++) {      /* the zygote is there, caches are warm */
        uv_run(&bench->uv, UV_RUN_NOWAIT);
        usleep(2000);
    }
    double cpu = cgroup_cpu_ms(bench), begin = bench_ms();
    go_on(bench);
    uv_run(&bench->uv, UV_RUN_DEFAULT);
    double took = bench_ms() - begin;
    uv_run(&bench->uv, UV_RUN_NOWAIT); /* the last acknowledgement */
    usleep(50000);
    *cpu_ms = measured ? cgroup_cpu_ms(bench) - cpu : 0;
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
    return took;
}

int main(int argc, char **argv)
{
    struct bench bench = { .jobs = argc > 1 ? (uint32_t)atoi(argv[1]) : 1000,
                           .in_flight = argc > 2 ? (uint32_t)atoi(argv[2]) : 4 };
    double cpu_ms = 0, floor_cpu_ms = 0;

    strcpy(bench.dir, "/tmp/spur-bench-XXXXXX");
    if (!mkdtemp(bench.dir))
        return 1;
    uv_loop_init(&bench.uv);
    double floor = run_floor(&bench, &floor_cpu_ms);
    double took = run_agent(&bench, &cpu_ms);
    floor = (floor + run_floor(&bench, &floor_cpu_ms)) / 2;
    printf("agent.batch_true                 %10.0f per_s (%.2f of floor %.0f: vfork and exec)\n",
           bench.jobs / took * 1e3, floor / took, bench.jobs / floor * 1e3);
    if (cpu_ms > 0)
        printf("agent.cpu_per_job                %10.3f ms   (%.2f of the script's own %.3f)\n",
               cpu_ms / bench.jobs, cpu_ms * 2 / floor_cpu_ms, floor_cpu_ms / 2 / bench.jobs);
    usleep(100000);
    rmdir(bench.cgroup);
    file_remove_tree(bench.dir, NULL);
    return 0;
}
