/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.c - every item in every callback of the context S_CTX_REMOTE
 */
#include "record.h"

SPANK_PLUGIN(remote, 1)

RECORDED(init, S_CTX_REMOTE)
RECORDED(init_post_opt, S_CTX_REMOTE)
RECORDED(user_init, S_CTX_REMOTE)
RECORDED(task_init_privileged, S_CTX_REMOTE)
RECORDED(task_init, S_CTX_REMOTE)
RECORDED(task_post_fork, S_CTX_REMOTE)
RECORDED(task_exit, S_CTX_REMOTE)
RECORDED(exit, S_CTX_REMOTE)
