/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocator.c - every item in every callback of the context S_CTX_ALLOCATOR
 */
#include "record.h"

SPANK_PLUGIN(allocator, 1)

RECORDED(init, S_CTX_ALLOCATOR)
RECORDED(init_post_opt, S_CTX_ALLOCATOR)
RECORDED(local_user_init, S_CTX_ALLOCATOR)
RECORDED(exit, S_CTX_ALLOCATOR)
