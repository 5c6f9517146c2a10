/* SPDX-License-Identifier: Apache-2.0 */
/*
 * set.h - sets an optional number of a message, and that it is there
 */
#ifndef WIRE_SET_H
#define WIRE_SET_H

#define SET(message, field, value)     \
    do {                               \
        (message)->has_##field = true; \
        (message)->field = (value);    \
    } while (0)

#endif
