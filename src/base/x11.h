/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x11.h - what is said at the door of an X server: displays, files of cookies, the first message
 *
 * Nodes that forward X11 and commands that have it forwarded use the same few forms. Pure.
 */
#ifndef BASE_X11_H
#define BASE_X11_H

#include "base/str.h"

#define X11_AUTH_NAME "MIT-MAGIC-COOKIE-1"

enum {
    X11_PORT = 6000,       /* of display 0 */
    X11_COOKIE_BYTES = 16, /* of those that we make */
    X11_HEAD_BYTES = 12,   /* what a client's first message begins with */
    X11_FAMILY_LOCAL = 256,
    X11_FAMILY_WILD = 65535,
};

/* ---- displays ---- */

struct x11_display {
    char host[256];  /* "": this host, by its socket */
    uint32_t number; /* of the display; the screen is the client's business */
};

/* "host:10.0", ":0", "unix:0", "localhost:10"; false: it is none. */
bool x11_read_display(const char *text, struct x11_display *out);

/* ---- ~/.Xauthority ---- */

struct x11_auth {
    uint8_t data[64];
    size_t len;
};

void x11_add_entry(struct str *out, unsigned family, const char *address, uint32_t number,
                   const uint8_t cookie[X11_COOKIE_BYTES]);
/*
 * The MIT-MAGIC-COOKIE-1 for a display, as clients on `hostname` look for it; false: there is none.
 * Entries that are cut off end the file.
 */
bool x11_find_auth(const void *bytes, size_t len, const struct x11_display *display,
                   const char *hostname, struct x11_auth *out);
/* Everything but what x11_add_entry() wrote for this display number of this host. */
void x11_copy_others(struct str *out, const void *bytes, size_t len, uint32_t number,
                     const char *hostname);

/* ---- a client's first message ---- */

/* How long it is; 0: more is needed to know; -1: this is no X client. */
int x11_setup_bytes(const uint8_t *bytes, size_t len);
/* Does a whole one show this cookie? Takes the same time whatever differs. */
bool x11_setup_shows(const uint8_t *bytes, const uint8_t cookie[X11_COOKIE_BYTES]);
/* The same client's message with another cookie. */
void x11_add_setup(struct str *out, const uint8_t head[X11_HEAD_BYTES],
                   const struct x11_auth *auth);
/* The answer to a client that is not let in. */
void x11_add_refusal(struct str *out, const uint8_t head[X11_HEAD_BYTES], const char *why);

#endif
