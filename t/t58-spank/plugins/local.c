/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local.c - every item in every callback of the context S_CTX_LOCAL
 */
#include "record.h"

SPANK_PLUGIN(local, 1)

RECORDED(init, S_CTX_LOCAL)
RECORDED(init_post_opt, S_CTX_LOCAL)
RECORDED(local_user_init, S_CTX_LOCAL)
RECORDED(exit, S_CTX_LOCAL)
