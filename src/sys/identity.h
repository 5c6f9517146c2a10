/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity.h - a thread of root that opens files as somebody else
 *
 * The whole effective identity of the calling thread changes: uid, gid, supplementary groups, and
 * with the uid the effective capabilities. Changing only the file system uid is not enough:
 * /proc/sys asks for the effective uid, and /proc/PID/root for capabilities. The real and the saved
 * uid stay 0, so the user can neither signal nor trace the thread, and there is a way back.
 *
 * System calls are raw, because the C library's would change every thread. Nothing here allocates
 * or takes a lock: a child that shares its parent's memory may call all of it.
 */
#ifndef SYS_IDENTITY_H
#define SYS_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Takes the identity and reads it back with the capabilities. Returns 0, or an errno value when a
 * call failed or something differs from what was asked (EPERM); the identity is then mixed: the
 * caller ends the process or calls identity_return(). For threads whose effective uid is 0.
 */
int identity_take(uid_t uid, gid_t gid, const gid_t *groups, size_t count);

/*
 * Goes back to root with this gid and these groups, in the opposite order. Aborts the process when
 * that fails: nothing may go on with an identity that is not what the code around it believes.
 * errno stays as it is.
 */
void identity_return(gid_t gid, const gid_t *groups, size_t count);

/*
 * openat() that follows no magic link of /proc (PID/root, PID/cwd, PID/fd/N), where the kernel can
 * be told so (openat2, Linux 5.6); elsewhere as openat(). Returns the descriptor or -1 with errno;
 * a magic link is ELOOP.
 */
int identity_open(int dir_fd, const char *path, int flags, mode_t mode);

#endif
