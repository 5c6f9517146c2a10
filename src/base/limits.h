/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.h - the bound of everything that comes from outside
 *
 * Checked before memory is taken. Where Slurm has a bound of its own that users meet, ours is the
 * same or larger; the comment says which.
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

enum {
    /* messages and connections */
    LIMIT_MESSAGE_BYTES = 16 * 1024 * 1024,
    LIMIT_METADATA_BYTES = 32 * 1024,
    LIMIT_STREAMS_PER_CONNECTION = 1024,
    LIMIT_CONNECTIONS = 16384,
    LIMIT_CONNECTIONS_PER_UID = 4096,

    /* HTTP requests to spurrestd */
    LIMIT_HTTP_HEAD = 32 * 1024,           /* request line and header fields: 431 */
    LIMIT_HTTP_TARGET = 8 * 1024,          /* 414 */
    LIMIT_HTTP_FIELDS = 100,               /* 431 */
    LIMIT_HTTP_BODY = 16 * 1024 * 1024,    /* 413 */
    LIMIT_HTTP_BODIES = 128 * 1024 * 1024, /* of all requests that are under way: 503 */
    LIMIT_HTTP_CONNECTIONS = 12000,
    LIMIT_HTTP_HEAD_MS = 10 * 1000,  /* from the first byte to the whole head: 408 */
    LIMIT_HTTP_BODY_MS = 60 * 1000,  /* the whole body: 408 */
    LIMIT_HTTP_IDLE_MS = 60 * 1000,  /* between two requests, and before the first */
    LIMIT_HTTP_WRITE_MS = 60 * 1000, /* an answer of which nothing is read */
    LIMIT_HTTP_WAIT_MS = 10 * 1000,  /* for a controller that restarts, or a new leader: 503 */
    LIMIT_HTTP_STREAMS = 100,        /* of one HTTP/2 connection at once */
    LIMIT_JSON_DEPTH = 64,

    /* text a person writes */
    LIMIT_NAME_BYTES = 1024, /* job, account, partition, feature names */
    LIMIT_PATH_BYTES = 4096,
    LIMIT_COPY_BLOCK = 4 * 1024 * 1024, /* of a file on its way to nodes */
    LIMIT_COMMENT_BYTES = 64 * 1024,
    LIMIT_HOSTLIST_TEXT = 1024 * 1024,
    LIMIT_HOSTLIST_HOSTS = 1024 * 1024, /* expanded at most; counting has no bound */
    LIMIT_HOSTLIST_BRACKETS = 8,
    LIMIT_HOSTLIST_RANGES = 256 * 1024,           /* held at once, after leading brackets */
    LIMIT_HOSTLIST_NAME_BYTES = 16 * 1024 * 1024, /* of the prefixes of those ranges */
    LIMIT_HOSTLIST_EXPANDED_BYTES = 48 * 1024 * 1024,
    LIMIT_HOST_NAME = 255,
    LIMIT_DEPENDENCIES = 10000,

    /* a job */
    LIMIT_SCRIPT_BYTES = 4 * 1024 * 1024, /* Slurm's max_script_size default */
    LIMIT_ENV_BYTES = 4 * 1024 * 1024,
    LIMIT_ENV_COUNT = 32768,
    LIMIT_SPANK_ENV_BYTES = 64 * 1024, /* job-control environment of SPANK plugins */
    LIMIT_SPANK_ENV_COUNT = 1024,
    LIMIT_PRIVATE_DIRS = 16, /* directories that a job has for itself */
    LIMIT_ARGS_COUNT = 4096,
    LIMIT_ARRAY_TASKS = 4000001, /* Slurm's largest MaxArraySize */
    LIMIT_ARRAY_RUNS = 10000,    /* ranges in one --array */
    LIMIT_GROUPS = 65536,
    LIMIT_RELAY_BYTES = 16 * 1024 * 1024,   /* of one message between the nodes of a step */
    LIMIT_PMIX_BYTES = 17 * 1024 * 1024,    /* the same, and the words around it */
    LIMIT_RELAY_KEPT = 256 * 1024 * 1024,   /* of those that srun keeps until they are taken */
    LIMIT_PMI_KVS_BYTES = 64 * 1024 * 1024, /* what the tasks of a step put for each other */
    LIMIT_X11_WINDOW = 128 * 1024, /* of a forwarded X11 connection, each way, on its way */
    LIMIT_X11_CONNECTIONS = 256,   /* of one display */
    LIMIT_X11_DISPLAYS = 1024,     /* on one node */
    LIMIT_X11_FRAME = 16 * 1024,
    LIMIT_COPY_DEPTH = 128, /* of directories in a directory that is fetched */
    LIMIT_XAUTHORITY_BYTES = 1024 * 1024,
    LIMIT_GRES_KINDS = 64,
    LIMIT_CPUS_PER_NODE = 65535,
    LIMIT_CPU_NUMBER = 8192, /* of the kernel: CONFIG_NR_CPUS at most */
    LIMIT_NUMA_NODES = 1024, /* of the kernel: MAX_NUMNODES at most */
    LIMIT_GRES_PER_NODE = 4096,
    LIMIT_NODES = 100000,
    LIMIT_HET_COMPONENTS = 128,
    LIMIT_STEP_TASKS = 512 * 1024, /* of one srun */
    LIMIT_JOB_PARTITIONS = 256,    /* in one job's list */
    LIMIT_BOOKINGS = 1024,         /* promised starts of one partition */
    LIMIT_FEATURE_GROUPS = 8,      /* counts or alternatives in one --constraint */

    /* configuration */
    LIMIT_CONFIG_BYTES = 16 * 1024 * 1024,
    LIMIT_TOML_DEPTH = 64,
    LIMIT_TOML_VALUES = 2 * 1000 * 1000,
    LIMIT_INCLUDE_DEPTH = 16,
    LIMIT_INCLUDE_FILES = 1000,

    LIMIT_ASSOCS = 1000000,
    LIMIT_QOS = 4096,
    LIMIT_ACCOUNT_DEPTH = 24, /* levels below root */

    /* traces of jobs (spur sim) */
    LIMIT_TRACE_LINE = 64 * 1024,
    LIMIT_TRACE_JOBS = 5 * 1000 * 1000,
    LIMIT_TIMELINE_BARS = 200 * 1000,

    /* images of containers */
    LIMIT_TAR_HEADER = 1024 * 1024, /* one pax header */
    LIMIT_TAR_ENTRIES = 10 * 1000 * 1000,
    LIMIT_IMAGE_LAYERS = 512,
    LIMIT_IMAGE_JSON = 4 * 1024 * 1024,

    /* state */
    LIMIT_BATCH_BYTES = 4 * 1024 * 1024, /* one row of the log */
    LIMIT_BATCH_COMMANDS = 64, /* a batch is applied in one turn of the controller's loop */
    LIMIT_JOBS_DEFAULT = 2000000,
    LIMIT_RESERVATIONS = 10000,
    LIMIT_CRONTAB_BYTES = 64 * 1024,
    LIMIT_CRON_JOBS = 100, /* of one user */
    LIMIT_TRIGGERS = 1000, /* each is looked at after every command */
    LIMIT_SNAPSHOT_RECORD = 64 * 1024 * 1024,
    LIMIT_CONTROLLERS = 16,
    LIMIT_REQUEST_IDS = 20000,        /* jobs that one request may name */
    LIMIT_REQUESTS = 4 * 1024 * 1024, /* request ids remembered */
};

/* A snapshot brought from another controller. */
#define LIMIT_SNAPSHOT_BYTES (UINT64_C(64) << 30)
#define LIMIT_IMAGE_BYTES    (UINT64_C(256) << 30) /* unpacked */
#define LIMIT_JOB_ID         UINT32_C(0xfffffff0)
/* Ten thousand years would overflow nothing; a hundred is more than anybody waits. */
#define LIMIT_SECONDS INT64_C(3153600000)

#endif
