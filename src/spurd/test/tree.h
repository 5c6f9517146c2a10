/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h - recorded machines: "== /path" lines followed by the file's text
 */
#ifndef SPURD_TEST_TREE_H
#define SPURD_TEST_TREE_H

/* Writes the files of trees/NAME below `dir`, which it makes (a mkdtemp template). */
void tree_unpack(const char *name, char *dir);
void tree_remove(const char *dir);

#endif
