/* SPDX-License-Identifier: Apache-2.0 */
/*
 * release.h - the release of Slurm whose forms the commands follow
 *
 * Programs read it from --version, `show config`, `show node` and JSON, and choose by it what they
 * ask for. `spur version` says our own.
 */
#ifndef BASE_RELEASE_H
#define BASE_RELEASE_H

#define SLURM_RELEASE_MAJOR "26"
#define SLURM_RELEASE_MINOR "11"
#define SLURM_RELEASE_MICRO "0"
#define SLURM_RELEASE       SLURM_RELEASE_MAJOR "." SLURM_RELEASE_MINOR "." SLURM_RELEASE_MICRO

#endif
