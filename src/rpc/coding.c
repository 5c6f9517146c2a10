/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coding.c - base64, percent coding and gRPC's time-outs
 */
#include "rpc/coding.h"

#include <stdio.h>
#include <string.h>

static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void encode(struct str *out, const uint8_t *bytes, size_t len, const char *alphabet)
{
    str_reserve(out, len / 3 * 4 + 4);
    for (size_t i = 0; i < len; i += 3) {
        size_t have = MIN(len - i, (size_t)3);
        uint32_t bits = (uint32_t)bytes[i] << 16;

        if (have > 1)
            bits |= (uint32_t)bytes[i + 1] << 8;
        if (have > 2)
            bits |= bytes[i + 2];
        char text[4] = { alphabet[bits >> 18], alphabet[bits >> 12 & 63], alphabet[bits >> 6 & 63],
                         alphabet[bits & 63] };
        str_add_len(out, text, have + 1);
    }
}

static int value_of(char c, const char *alphabet)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == alphabet[62] ? 62 : c == alphabet[63] ? 63 : -1;
}

static bool decode(struct str *out, const char *text, size_t len, const char *alphabet)
{
    uint32_t bits = 0;
    unsigned count = 0;

    if (len % 4 == 1)
        return false;
    str_reserve(out, len / 4 * 3 + 3);
    for (size_t i = 0; i < len; i++) {
        int value = value_of(text[i], alphabet);

        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        count += 6;
        if (count >= 8) {
            count -= 8;
            str_add_char(out, (char)(bits >> count & 0xff));
        }
    }
    /* Left-over bits must be zero, so that each value has one spelling. */
    return (bits & ((1u << count) - 1)) == 0;
}

void base64_add(struct str *out, const void *bytes, size_t len)
{
    encode(out, bytes, len, standard);
}

void base64url_add(struct str *out, const void *bytes, size_t len)
{
    encode(out, bytes, len, url);
}

bool base64_decode(struct str *out, const char *text, size_t len)
{
    if (len && len % 4 == 0 && text[len - 1] == '=')
        len -= len > 1 && text[len - 2] == '=' ? 2 : 1;
    return decode(out, text, len, standard);
}

bool base64url_decode(struct str *out, const char *text, size_t len)
{
    return decode(out, text, len, url);
}

void percent_add(struct str *out, const char *text, size_t len)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c >= 0x20 && c <= 0x7e && c != '%') {
            str_add_char(out, (char)c);
        } else {
            char escaped[3] = { '%', hex[c >> 4], hex[c & 15] };
            str_add_len(out, escaped, 3);
        }
    }
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

void percent_decode(struct str *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        int high = text[i] == '%' && len - i > 2 ? hex_value(text[i + 1]) : -1;
        int low = high >= 0 ? hex_value(text[i + 2]) : -1;

        if (low >= 0) {
            str_add_char(out, (char)(high << 4 | low));
            i += 2;
        } else {
            str_add_char(out, text[i]);
        }
    }
}

static const struct unit {
    char letter;
    int64_t per_ms, ms; /* how many make a millisecond, or how many milliseconds one is */
} units[] = {
    { 'n', 1000000, 0 }, { 'u', 1000, 0 },  { 'm', 1, 0 },
    { 'S', 0, 1000 },    { 'M', 0, 60000 }, { 'H', 0, 3600000 },
};

bool timeout_decode(const char *text, size_t len, int64_t *out_ms)
{
    int64_t amount = 0;

    if (len < 2 || len > 9)
        return false;
    for (size_t i = 0; i + 1 < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        amount = amount * 10 + (text[i] - '0');
    }
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (units[i].letter != text[len - 1])
            continue;
        *out_ms =
            units[i].ms ? amount * units[i].ms : (amount + units[i].per_ms - 1) / units[i].per_ms;
        return true;
    }
    return false;
}

size_t timeout_encode(int64_t ms, char out[TIMEOUT_TEXT_BYTES])
{
    const int64_t most = 99999999;

    ms = MAX(ms, (int64_t)0);
    int len = ms <= most ? snprintf(out, TIMEOUT_TEXT_BYTES, "%dm", (int)ms)
                         : snprintf(out, TIMEOUT_TEXT_BYTES, "%dS", (int)MIN(ms / 1000, most));
    return (size_t)len;
}
