// SPDX-License-Identifier: Apache-2.0
/*
 * layout_check.c - does not compile unless every struct and constant of our headers is as the tables say
 */
#include "layout.c"
