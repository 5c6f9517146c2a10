/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x11.c - what is said at the door of an X server
 *
 * A client begins with twelve bytes: the order of its bytes ('l' or 'B'), the protocol's numbers, and the
 * lengths of a name and of data that follow, each filled up to four. A file of cookies is a list of
 * family, address, display number, name and data, each with its length before it, big end first.
 */
#include "base/x11.h"

#include <stdio.h>
#include <string.h>

enum { MOST_DISPLAY = 59535, PADDED = 4 };

bool x11_read_display(const char *text, struct x11_display *out)
{
    const char *colon = text ? strrchr(text, ':') : NULL;
    uint64_t number;

    if (!colon || (colon > text && colon[-1] == ':') || /* DECnet */
        (size_t)(colon - text) >= sizeof(out->host))
        return false;
    CLEANUP(freep) char *digits = mem_strndup(colon + 1, strcspn(colon + 1, "."));
    if (!str_to_u64(digits, MOST_DISPLAY, &number))
        return false;
    memcpy(out->host, text, (size_t)(colon - text));
    out->host[colon - text] = '\0';
    if (str_eq(out->host, "unix"))
        out->host[0] = '\0';
    out->number = (uint32_t)number;
    return true;
}

/* ---- ~/.Xauthority ---- */

static void add_u16(struct str *out, unsigned value)
{
    str_add_char(out, (char)(value >> 8));
    str_add_char(out, (char)value);
}

static void add_field(struct str *out, const void *bytes, size_t len)
{
    add_u16(out, (unsigned)len);
    str_add_len(out, bytes, len);
}

void x11_add_entry(struct str *out, unsigned family, const char *address, uint32_t number,
                   const uint8_t cookie[X11_COOKIE_BYTES])
{
    char digits[16];

    snprintf(digits, sizeof(digits), "%u", number);
    add_u16(out, family);
    add_field(out, address, strlen(address));
    add_field(out, digits, strlen(digits));
    add_field(out, X11_AUTH_NAME, strlen(X11_AUTH_NAME));
    add_field(out, cookie, X11_COOKIE_BYTES);
}

struct entry {
    unsigned family;
    struct span address, number, name, data;
    const uint8_t *begin, *end;
};

static bool take_u16(const uint8_t **at, const uint8_t *end, unsigned *out)
{
    if (end - *at < 2)
        return false;
    *out = (unsigned)(*at)[0] << 8 | (*at)[1];
    *at += 2;
    return true;
}

static bool take_field(const uint8_t **at, const uint8_t *end, struct span *out)
{
    unsigned len;

    if (!take_u16(at, end, &len) || (size_t)(end - *at) < len)
        return false;
    *out = (struct span){ (const char *)*at, len };
    *at += len;
    return true;
}

static bool take_entry(const uint8_t **at, const uint8_t *end, struct entry *out)
{
    out->begin = *at;
    if (!take_u16(at, end, &out->family) || !take_field(at, end, &out->address) ||
        !take_field(at, end, &out->number) || !take_field(at, end, &out->name) ||
        !take_field(at, end, &out->data))
        return false;
    out->end = *at;
    return true;
}

/* How well an entry fits: 0 not at all. */
static unsigned fits(const struct entry *entry, const struct x11_display *display,
                     const char *hostname)
{
    bool here = !display->host[0] || str_eq(display->host, "localhost") ||
                str_starts(display->host, "127.") || str_eq(display->host, hostname);
    char digits[16];

    snprintf(digits, sizeof(digits), "%u", display->number);
    if (!span_eq(entry->name, X11_AUTH_NAME) || entry->data.len == 0 ||
        (entry->number.len && !span_eq(entry->number, digits)))
        return 0;
    if (entry->family == X11_FAMILY_LOCAL && here)
        return span_eq(entry->address, hostname) ? 5 : 2;
    if (entry->family == X11_FAMILY_WILD)
        return 4;
    /* An address of the network; names are not looked up, so the number has to do. */
    return here ? 1 : entry->family != X11_FAMILY_LOCAL ? 3 : 0;
}

bool x11_find_auth(const void *bytes, size_t len, const struct x11_display *display,
                   const char *hostname, struct x11_auth *out)
{
    const uint8_t *at = bytes, *end = at + len;
    struct entry entry;
    unsigned best = 0;

    while (take_entry(&at, end, &entry)) {
        unsigned how = fits(&entry, display, hostname);
        if (how <= best || entry.data.len > sizeof(out->data))
            continue;
        best = how;
        memcpy(out->data, entry.data.ptr, entry.data.len);
        out->len = entry.data.len;
    }
    return best > 0;
}

void x11_copy_others(struct str *out, const void *bytes, size_t len, uint32_t number,
                     const char *hostname)
{
    const uint8_t *at = bytes, *end = at + len;
    struct entry entry;
    char digits[16];

    snprintf(digits, sizeof(digits), "%u", number);
    while (take_entry(&at, end, &entry)) {
        bool ours = span_eq(entry.number, digits) && span_eq(entry.name, X11_AUTH_NAME) &&
                    ((entry.family == X11_FAMILY_LOCAL && span_eq(entry.address, hostname)) ||
                     (entry.family == X11_FAMILY_WILD && entry.address.len == 0));
        if (!ours)
            str_add_len(out, entry.begin, (size_t)(entry.end - entry.begin));
    }
}

/* ---- a client's first message ---- */

static size_t padded(size_t len)
{
    return (len + PADDED - 1) / PADDED * PADDED;
}

static bool big_first(const uint8_t *head)
{
    return head[0] == 'B';
}

static unsigned head_u16(const uint8_t *head, size_t at)
{
    return big_first(head) ? (unsigned)head[at] << 8 | head[at + 1]
                           : (unsigned)head[at + 1] << 8 | head[at];
}

static void put_u16(uint8_t *at, bool big, unsigned value)
{
    at[big ? 0 : 1] = (uint8_t)(value >> 8);
    at[big ? 1 : 0] = (uint8_t)value;
}

int x11_setup_bytes(const uint8_t *bytes, size_t len)
{
    enum { MOST_FIELD = 256 };

    if (len > 0 && bytes[0] != 'l' && bytes[0] != 'B')
        return -1;
    if (len < X11_HEAD_BYTES)
        return 0;
    size_t name = head_u16(bytes, 6), data = head_u16(bytes, 8);
    if (name > MOST_FIELD || data > MOST_FIELD)
        return -1;
    size_t whole = X11_HEAD_BYTES + padded(name) + padded(data);
    return len < whole ? 0 : (int)whole;
}

bool x11_setup_shows(const uint8_t *bytes, const uint8_t cookie[X11_COOKIE_BYTES])
{
    size_t name = head_u16(bytes, 6), data = head_u16(bytes, 8);
    uint8_t differs = 0;

    if (name != strlen(X11_AUTH_NAME) || data != X11_COOKIE_BYTES ||
        memcmp(bytes + X11_HEAD_BYTES, X11_AUTH_NAME, name) != 0)
        return false;
    for (size_t i = 0; i < X11_COOKIE_BYTES; i++)
        differs |= bytes[X11_HEAD_BYTES + padded(name) + i] ^ cookie[i];
    return differs == 0;
}

static void add_padded(struct str *out, const void *bytes, size_t len)
{
    str_add_len(out, bytes, len);
    str_add_fill(out, '\0', padded(len) - len);
}

void x11_add_setup(struct str *out, const uint8_t head[X11_HEAD_BYTES], const struct x11_auth *auth)
{
    uint8_t own[X11_HEAD_BYTES];

    memcpy(own, head, sizeof(own));
    put_u16(own + 6, big_first(head), (unsigned)strlen(X11_AUTH_NAME));
    put_u16(own + 8, big_first(head), (unsigned)auth->len);
    str_add_len(out, own, sizeof(own));
    add_padded(out, X11_AUTH_NAME, strlen(X11_AUTH_NAME));
    add_padded(out, auth->data, auth->len);
}

void x11_add_refusal(struct str *out, const uint8_t head[X11_HEAD_BYTES], const char *why)
{
    bool big = big_first(head);
    uint8_t answer[8] = { 0 /* failed */, (uint8_t)strlen(why) };

    put_u16(answer + 2, big, 11);
    put_u16(answer + 4, big, 0);
    put_u16(answer + 6, big, (unsigned)(padded(strlen(why)) / PADDED));
    str_add_len(out, answer, sizeof(answer));
    add_padded(out, why, strlen(why));
}
