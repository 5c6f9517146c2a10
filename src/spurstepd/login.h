/* SPDX-License-Identifier: Apache-2.0 */
/*
 * login.h - the environment a user's login would give (--get-user-env, --export=NONE)
 */
#ifndef SPURSTEPD_LOGIN_H
#define SPURSTEPD_LOGIN_H

#include "base/err.h"
#include "proto/step.pb-c.h"
#include "spurstepd/contain.h"

/*
 * Runs the task's login shell as its user, inside `contain`, and takes what `env` says there: NAME=value texts, ended
 * by NULL, to be freed with login_free(). Waits for it, at most the task's login_wait_s. What the
 * profile prints is dropped. ERR_DEADLINE, ERR_TOO_LARGE, or what starting it failed with.
 */
int login_env(const StepTask *task, const struct contain *contain, char ***out, struct err *err);
void login_free(char **env);

#endif
