/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web.h - the web page: files that are built into the program
 *
 * The page is plain HTML, CSS and JavaScript modules in web/. It knows nothing that /api/v1 does not
 * tell it, so it needs no permission of its own. tools/embed-web writes the table.
 */
#ifndef SPURRESTD_WEB_H
#define SPURRESTD_WEB_H

#include <stdbool.h>
#include <stddef.h>

struct exchange;

struct web_file {
    const char *path; /* "/app.js" */
    const char *type, *etag;
    const unsigned char *plain;
    size_t plain_len;
    const unsigned char *gzip;
    size_t gzip_len;
};
extern const struct web_file web_files[];
extern const size_t web_file_count;

/* Answers when the path is a file of the page; false: it is not. */
bool web_serve(struct exchange *x);

#endif
