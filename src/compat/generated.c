// SPDX-License-Identifier: Apache-2.0
/*
 * generated.c - what generate.py wrote for this API number: freeing, what is not supported
 */
#include "compat/compat.h"

/* clang-format off */
#include "free.c"
#include "unsupported.c"
