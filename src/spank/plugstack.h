/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugstack.h - which SPANK plugins a host loads: plugstack.conf
 *
 *     required  PATH [ARGUMENT...]     a failure of the plugin is a failure of the job
 *     optional  PATH [ARGUMENT...]     a failure is logged
 *     include   PATTERN                further files, in order of their names
 *
 * `#` begins a comment. Files PLUGSTACK.d/ *.conf are read after PLUGSTACK itself. A path that is not absolute is looked for
 * in the plugin directories.
 *
 * Plugins run as root on nodes. A file, a plugin or a directory above one of them that somebody other than root
 * (or, where we are not root, than ourselves) owns or may write to is refused.
 */
#ifndef SPANK_PLUGSTACK_H
#define SPANK_PLUGSTACK_H

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"

enum { PLUGSTACK_MAX = 256, PLUGSTACK_DEPTH_MAX = 8, PLUGSTACK_FILE_BYTES = 64 * 1024 };

struct plugstack_entry {
    bool required;
    const char *path; /* absolute; NULL: it was not found, see `name` */
    const char *name; /* as it is written in the file */
    int argc;
    char **argv; /* ended by NULL */
};

struct plugstack {
    struct arena arena;
    VEC(struct plugstack_entry) list;
};

/* Where a host's plugstack.conf and its plugins are. Texts are the caller's to free. */
struct plugstack_place {
    char *file;
    char *dirs; /* with colons between them */
};

/*
 * $SPUR_PLUGSTACK; or what `plugstack` (slurm.conf: PlugStackConfig) of the configuration file says; or
 * plugstack.conf beside that file. Reads no more of the configuration than these lines.
 */
void plugstack_find(const char *conf_path, struct plugstack_place *out);
void plugstack_place_done(struct plugstack_place *place);

/* Is there a line in it? True too when it cannot be read: who loads it then says why. */
bool plugstack_is_used(const struct plugstack_place *place);

/* A file that is not there is empty. On failure `out` is empty, and nothing has to be freed. */
int plugstack_read(const struct plugstack_place *place, struct plugstack *out, struct err *err);
void plugstack_done(struct plugstack *stack);

/* Are the file and all directories above it, also those that links lead through, root's alone? */
int plugstack_check_owner(const char *path, struct err *err);

#endif
