/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coding.h - the small encodings that gRPC and JWT put text into
 *
 * Decoders accept exactly what the standards allow and refuse the rest; none of them reads past
 * `len` or needs a NUL.
 */
#ifndef RPC_CODING_H
#define RPC_CODING_H

#include "base/str.h"

/* Standard alphabet without padding, as gRPC wants it for "-bin" metadata. */
void base64_add(struct str *out, const void *bytes, size_t len);
/* URL alphabet without padding, as JWT wants it. */
void base64url_add(struct str *out, const void *bytes, size_t len);
/* Adds the bytes to out; padding is optional. False when the text is not base64. */
bool base64_decode(struct str *out, const char *text, size_t len);
bool base64url_decode(struct str *out, const char *text, size_t len); /* padding is refused */

/* grpc-message: bytes outside 0x20..0x7e and '%' become %XX. */
void percent_add(struct str *out, const char *text, size_t len);
/* Never fails: what is not a valid %XX stays as it is. */
void percent_decode(struct str *out, const char *text, size_t len);

/* grpc-timeout: at most 8 digits and a unit of H M S m u n. Rounds up to whole milliseconds. */
bool timeout_decode(const char *text, size_t len, int64_t *out_ms);
enum { TIMEOUT_TEXT_BYTES = 16 };
size_t timeout_encode(int64_t ms, char out[TIMEOUT_TEXT_BYTES]);

#endif
