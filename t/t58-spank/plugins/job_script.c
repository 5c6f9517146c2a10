/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_script.c - every item in every callback of the context S_CTX_JOB_SCRIPT
 */
#include "record.h"

SPANK_PLUGIN(job_script, 1)

RECORDED(init, S_CTX_JOB_SCRIPT)
RECORDED(job_prolog, S_CTX_JOB_SCRIPT)
RECORDED(job_epilog, S_CTX_JOB_SCRIPT)
RECORDED(exit, S_CTX_JOB_SCRIPT)
