/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.h - files to and from this node for jobs: sbcast, sgather, srun --bcast
 *
 * copy.c       who may: plans of the managing node and their proofs; the methods
 * copy_in.c    a file that comes: written here and passed on to other nodes
 * copy_out.c   a file that is fetched
 * copy_tree.c  a directory that is fetched
 * copy_file.c  the file itself, in workers, with the identity of the job's user
 */
#ifndef SPURD_COPY_H
#define SPURD_COPY_H

#include <sys/stat.h>

#include "base/str.h"
#include "base/vec.h"
#include "proto/copy.pb-c.h"
#include "spurd/access/as_user.h"
#include "spurd/root.h"

enum {
    COPY_MAX = 256, /* at a time on this node */
    COPY_FANOUT = 8,
    COPY_FANOUT_MAX = 64,
    COPY_TIMEOUT_S = 100,
    COPY_TIMEOUT_MAX_S = 86400,
};

extern const struct rpc_method copy_methods[];
extern const size_t copy_method_count;

struct copy_file;

/* ---- copy.c ---- */

/* The order, when its job is here and its manager wants it done; the caller frees it. */
CopyOrder *copy_check(struct agent *agent, const ProtobufCBinaryData *bytes,
                      const ProtobufCBinaryData *proof, struct attempt **held, struct err *err);
/* A file in a private directory of the job is elsewhere for us. */
void copy_file_find(struct agent *agent, const struct attempt *held, struct copy_file *file);
/* "REQUEST_FILE_BCAST(n1): text", as Slurm's commands say it. */
void copy_blame(struct err *err, const char *node);

/* ---- copy_file.c: everything here blocks and is for workers ---- */

struct copy_file {
    struct as_user user;
    char *shown; /* of this node: %N is replaced */
    char *path;  /* the same, where it is for us */
    int root_fd; /* what `path` is relative to: the private directory that it is in, or AT_FDCWD */
    bool force, make_dir, preserve, recursive;
    mode_t mode;
    int64_t atime_ns, mtime_ns;

    int dir_fd, fd;
    char temp[64]; /* "" when there is none (any more) */
};

void copy_file_init(struct copy_file *file, const CopyOrder *order, const JobOwner *owner,
                    const char *node);
/* Takes both: where the file is for us, and what must stay open for that. */
void copy_file_place(struct copy_file *file, char *path, int root_fd);
/* Closes; what is half written must have been dropped before. */
void copy_file_done(struct copy_file *file);

/* A new file under another name beside the one that is wanted. */
int copy_file_create(struct copy_file *file, struct err *err);
int copy_file_write(struct copy_file *file, const void *bytes, size_t len, struct err *err);
/* It gets its name, mode and times. */
int copy_file_commit(struct copy_file *file, struct err *err);
/* Removes what copy_file_create() made, unless it was committed. */
void copy_file_drop(struct copy_file *file);
/* The file that is there, to read. */
int copy_file_open(struct copy_file *file, struct err *err);
/* As read(2), of what copy_file_open() opened. */
ssize_t copy_file_read(struct copy_file *file, void *bytes, size_t len, struct err *err);
int copy_file_remove(struct copy_file *file, struct err *err);
/* The directory that is there, when it is one and `recursive`; -1: it is none. */
int copy_file_open_dir(struct copy_file *file, struct err *err);

/* ---- copy_tree.c: for workers too ---- */

struct copy_level {
    void *dir;       /* DIR */
    size_t name_len; /* of its own name */
};

/* A walk through a directory; links are not followed. */
struct copy_tree {
    VEC(struct copy_level) levels;
    struct str name; /* of the entry, below the directory */
    int fd;          /* of a file that is being read; -1: none */
};

struct copy_entry {
    bool begins; /* an entry, with `entry`, `name` and `info` */
    bool ended;  /* nothing is left */
    CopyEntry entry;
    const char *name;
    struct stat info;
    ssize_t got; /* bytes of a file, or of a link */
};

/* Takes the descriptor. */
int copy_tree_open(struct copy_tree *tree, int fd, struct err *err);
/* The next part of it. As the user: between as_user_begin() and as_user_end(). */
int copy_tree_next(struct copy_tree *tree, uint8_t *bytes, size_t most, struct copy_entry *out,
                   struct err *err);
void copy_tree_done(struct copy_tree *tree);

/* ---- copy_in.c, copy_out.c ---- */

void copy_on_write(struct rpc_call *call, const ProtobufCMessage *message);
void copy_on_read(struct rpc_call *call, const ProtobufCMessage *message);
/* Everything under way ends; half-written files are removed. */
void copies_close(struct agent *agent);

#endif
