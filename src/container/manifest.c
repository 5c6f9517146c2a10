/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.c - which pieces make up an image: OCI layouts and what `docker save` writes
 */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "container/image.h"

enum { MAX_INDEXES = 4 };

void manifest_done(struct manifest *manifest)
{
    for (size_t i = 0; i < manifest->count; i++) {
        free(manifest->layers[i]);
        free(manifest->digests[i]);
    }
    free(manifest->config);
    free(manifest->config_digest);
}

static json_t *read_json(struct blobs *blobs, const char *name, struct err *err)
{
    CLEANUP(str_done) struct str text = { 0 };
    json_error_t why;

    if (blobs_read(blobs, name, LIMIT_IMAGE_JSON, &text, err) < 0)
        return NULL;
    json_t *json = json_loadb(str_text(&text), text.len, JSON_REJECT_DUPLICATES, &why);
    if (!json)
        err_set(err, ERR_INVALID, "image %s: '%s' line %d: %s", blobs->source, name, why.line,
                why.text);
    return json;
}

static const char *text_of(const json_t *json, const char *key)
{
    return json_string_value(json_object_get(json, key));
}

/* "sha256:HEX" to "blobs/sha256/HEX"; anything else could be a path. */
static char *blob_name(const char *digest)
{
    uint8_t bytes[DIGEST_BYTES];

    if (!digest || !str_starts(digest, "sha256:") || !digest_parse(digest + 7, bytes))
        return NULL;
    return mem_printf("blobs/sha256/%s", digest + 7);
}

static int bad(const struct blobs *blobs, const char *what, struct err *err)
{
    return err_set(err, ERR_INVALID, "image %s: %s", blobs->source, what);
}

static int take_manifest(struct blobs *blobs, const json_t *json, struct manifest *out,
                         struct err *err)
{
    const json_t *layers = json_object_get(json, "layers");
    const char *digest = text_of(json_object_get(json, "config"), "digest");

    out->config = blob_name(digest);
    if (!out->config || !json_is_array(layers) || json_array_size(layers) > LIMIT_IMAGE_LAYERS)
        return bad(blobs, "its manifest has no configuration, no layers or too many", err);
    out->config_digest = mem_strdup(digest);
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const char *layer = text_of(json_array_get(layers, i), "digest");
        out->layers[i] = blob_name(layer);
        out->digests[i] = mem_strdup(layer);
        out->count++;
        if (!out->layers[i])
            return bad(blobs, "a layer without a sha256 digest", err);
    }
    return 0;
}

static const char *our_arch(void)
{
    static struct utsname host;

    uname(&host);
    return str_eq(host.machine, "x86_64")    ? "amd64"
           : str_eq(host.machine, "aarch64") ? "arm64"
                                             : host.machine;
}

/* The one for this machine and tag; the only one when there is one. */
static const json_t *choose(const json_t *list, const char *tag)
{
    const json_t *found = NULL;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const json_t *platform = json_object_get(item, "platform");
        const char *arch = text_of(platform, "architecture");
        const char *name =
            text_of(json_object_get(item, "annotations"), "org.opencontainers.image.ref.name");
        if (tag && !str_eq(name, tag))
            continue;
        if (arch && !str_eq(arch, our_arch()))
            continue;
        if (!found)
            found = item;
    }
    return found;
}

static int read_oci(struct blobs *blobs, const char *tag, struct manifest *out, struct err *err)
{
    CLEANUP(freep) char *name = mem_strdup("index.json");

    for (int depth = 0; depth < MAX_INDEXES; depth++) {
        json_t *json = read_json(blobs, name, err);
        const json_t *list = json_object_get(json, "manifests");
        int code = json ? 1 : -(int)err->code;
        if (json && !list) {
            code = take_manifest(blobs, json, out, err);
        } else if (json) {
            const json_t *item = choose(list, depth == 0 ? tag : NULL);
            free(name);
            name = blob_name(text_of(item, "digest"));
            if (!name)
                code = err_set(err, ERR_NOT_FOUND, "image %s has no %s%s for %s", blobs->source,
                               tag ? "image named " : "image", tag ? tag : "", our_arch());
        }
        json_decref(json);
        if (code <= 0)
            return code;
    }
    return bad(blobs, "its indexes name each other", err);
}

/* A name from inside manifest.json: of a piece of this archive, never a path elsewhere. */
static char *piece_name(const json_t *json)
{
    const char *name = json_string_value(json);

    return !name || name[0] == '/' || strstr(name, "..") ? NULL : mem_strdup(name);
}

static int read_docker(struct blobs *blobs, struct manifest *out, struct err *err)
{
    json_t *json = read_json(blobs, "manifest.json", err);
    const json_t *first = json_array_get(json, 0);
    const json_t *layers = json_object_get(first, "Layers");
    int code = 0;

    if (!json)
        return -(int)err->code;
    out->config = piece_name(json_object_get(first, "Config"));
    if (!out->config || !json_is_array(layers) || json_array_size(layers) > LIMIT_IMAGE_LAYERS)
        code = bad(blobs, "manifest.json has no Config, no Layers or too many", err);
    for (size_t i = 0; code == 0 && i < json_array_size(layers); i++) {
        out->layers[i] = piece_name(json_array_get(layers, i));
        out->count++;
        if (!out->layers[i])
            code = bad(blobs, "manifest.json names a layer outside the archive", err);
    }
    /* "HEX.json" is its own digest. */
    uint8_t bytes[DIGEST_BYTES];
    if (code == 0 && strlen(out->config) == 64 + 5 && str_ends(out->config, ".json")) {
        CLEANUP(freep) char *hex = mem_strndup(out->config, 64);
        if (digest_parse(hex, bytes))
            out->config_digest = mem_printf("sha256:%s", hex);
    }
    json_decref(json);
    return code;
}

int manifest_read(struct blobs *blobs, const char *tag, struct manifest *out, struct err *err)
{
    *out = (struct manifest){ 0 };
    if (blobs_has(blobs, "index.json"))
        return read_oci(blobs, tag, out, err);
    if (blobs_has(blobs, "manifest.json"))
        return read_docker(blobs, out, err);
    return bad(blobs, "neither an OCI layout (index.json) nor of docker save (manifest.json)", err);
}
