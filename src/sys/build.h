/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.h - which build of Spur this program is
 */
#ifndef SYS_BUILD_H
#define SYS_BUILD_H

/* "0.1.0-1a2b3c4d": the version, and the first bytes of the build id that the linker wrote, if any. */
const char *build_name(void);

#endif
