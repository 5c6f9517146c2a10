/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml_suite.h - the conformance cases of data/toml/cases.pack, walked
 */
#ifndef BASE_TEST_TOML_SUITE_H
#define BASE_TEST_TOML_SUITE_H

struct toml_suite_counts {
    unsigned valid, valid_wrong;
    unsigned invalid, invalid_wrong;
};

/* Runs every case of the pack and prints each one that goes wrong. */
struct toml_suite_counts toml_suite_run(const char *path);

#endif
