/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurmd.c - every item in every callback of the context S_CTX_SLURMD
 */
#include "record.h"

SPANK_PLUGIN(slurmd, 1)

int slurm_spank_slurmd_init(spank_t spank, int ac, char *av[]);

RECORDED(init, S_CTX_SLURMD)
RECORDED(slurmd_init, S_CTX_SLURMD)
RECORDED(slurmd_exit, S_CTX_SLURMD)
