/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.c - images of a user, unpacked once and kept: import, list, remove, find
 */
#include "container/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "container/unpack.h"
#include "sys/files.h"

void image_done(struct image *image)
{
    free(image->dir);
    json_decref(image->config);
}

/* ---- the store ---- */

static bool is_ours(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
           (info.st_mode & 022) == 0;
}

char *image_store(struct err *err)
{
    const char *set = getenv("SPUR_IMAGE_DIR"), *home = getenv("HOME");
    CLEANUP(freep) char *path = NULL;
    CLEANUP(freep) char *names = NULL;

    if (!str_is_empty(set)) {
        path = mem_strdup(set);
    } else if (!str_is_empty(home) && home[0] == '/' && access(home, W_OK) == 0) {
        path = mem_printf("%s/.local/share/spur/images", home);
    } else {
        path = mem_printf("/var/tmp/spur-images-%u", (unsigned)geteuid());
    }
    if (file_make_dirs(path, 0700, err) < 0)
        return NULL;
    if (!is_ours(path)) {
        err_set(err, ERR_INVALID, "%s is not a directory of yours alone; see SPUR_IMAGE_DIR", path);
        return NULL;
    }
    names = mem_printf("%s/names", path);
    if (file_make_dirs(names, 0700, err) < 0)
        return NULL;
    return TAKE(path);
}

/* Slashes of a name cannot be in a file's name. */
static char *name_path(const char *store, const char *name)
{
    char *path = mem_printf("%s/names/%s", store, name);

    for (char *at = path + strlen(store) + 7; *at; at++) {
        if (*at == '/')
            *at = '+';
    }
    return path;
}

static bool name_is_good(const char *name)
{
    return !str_is_empty(name) && strlen(name) < 200 && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/@+-") ==
               strlen(name);
}

static int set_name(const char *store, const char *name, const char *key, struct err *err)
{
    CLEANUP(freep) char *path = name_path(store, name);
    CLEANUP(freep) char *fresh = mem_printf("%s/names/.new-%d", store, (int)getpid());
    CLEANUP(freep) char *to = mem_printf("../%s", key);

    unlink(fresh);
    if (symlink(to, fresh) < 0 || rename(fresh, path) < 0)
        return err_errno(err, errno, "naming the image '%s'", name);
    return 0;
}

static int load(const char *store, const char *key, struct image *out, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/%s/config.json", store, key);
    json_error_t why;

    json_t *json = json_load_file(path, 0, &why);
    if (!json)
        return err_set(err, ERR_NOT_FOUND, "image %s: %s", key, why.text);
    *out = (struct image){ .dir = mem_printf("%s/%s", store, key), .config = json };
    return 0;
}

/* ---- unpacking ---- */

static int read_config(struct blobs *blobs, const struct manifest *manifest, struct str *text,
                       char key[80], json_t **out, struct err *err)
{
    uint8_t bytes[DIGEST_BYTES];
    char hex[DIGEST_HEX_BYTES];
    json_error_t why;

    if (blobs_read(blobs, manifest->config, LIMIT_IMAGE_JSON, text, err) < 0)
        return -(int)err->code;
    digest_sha256(str_text(text), text->len, bytes);
    digest_hex(bytes, hex);
    if (manifest->config_digest && !str_eq(manifest->config_digest + 7, hex))
        return err_set(err, ERR_INVALID, "image %s: the configuration is sha256:%s, not %s",
                       blobs->source, hex, manifest->config_digest);
    snprintf(key, 80, "sha256-%s", hex);
    *out = json_loadb(str_text(text), text->len, 0, &why);
    if (!*out)
        return err_set(err, ERR_INVALID, "image %s: configuration, line %d: %s", blobs->source,
                       why.line, why.text);
    return 0;
}

static int unpack_all(struct blobs *blobs, const struct manifest *manifest, const json_t *config,
                      const char *dir, struct err *err)
{
    const json_t *plain = json_object_get(json_object_get(config, "rootfs"), "diff_ids");
    CLEANUP(freep) char *root = mem_printf("%s/rootfs", dir);
    CLEANUP(freep) char *stage = mem_printf("%s/stage", dir);
    int code = 0;

    if (json_array_size(plain) != manifest->count)
        return err_set(err, ERR_INVALID, "image %s: %zu layers, but its configuration names %zu",
                       blobs->source, manifest->count, json_array_size(plain));
    if (mkdir(root, 0755) < 0 || mkdir(stage, 0700) < 0)
        return err_errno(err, errno, "%s", root);
    CLEANUP(file_close) int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct unpack unpack = { .root_fd = fd };
    for (size_t i = 0; code == 0 && i < manifest->count; i++) {
        struct layer layer;
        const char *wanted = json_string_value(json_array_get(plain, i));
        code = layer_open(&layer, blobs, manifest->layers[i], err);
        if (code == 0)
            code = unpack_layer(&unpack, layer_read, layer_again, &layer, err);
        if (code == 0)
            code = layer_check(&layer, manifest->digests[i], wanted ? wanted : "(none)", err);
        layer_close(&layer);
        if (code < 0)
            err_wrap(err, "image %s, layer %zu", blobs->source, i + 1);
    }
    return code;
}

static int build(const char *store, struct blobs *blobs, const char *tag, struct image *out,
                 char key[80], struct err *err)
{
    CLEANUP(manifest_done) struct manifest manifest;
    CLEANUP(str_done) struct str text = { 0 };
    json_t *config = NULL;

    if (manifest_read(blobs, tag, &manifest, err) < 0 ||
        read_config(blobs, &manifest, &text, key, &config, err) < 0)
        return -(int)err->code;
    if (load(store, key, out, NULL) == 0) {
        json_decref(config);
        return 0;
    }
    CLEANUP(freep) char *fresh = mem_printf("%s/.new-XXXXXX", store);
    CLEANUP(freep) char *final = mem_printf("%s/%s", store, key);
    if (!mkdtemp(fresh)) {
        json_decref(config);
        return err_errno(err, errno, "%s", fresh);
    }
    CLEANUP(freep) char *config_path = mem_printf("%s/config.json", fresh);
    int code = unpack_all(blobs, &manifest, config, fresh, err);
    json_decref(config);
    if (code == 0)
        code = file_write_quick(config_path, text.data, text.len, 0600, err);
    if (code == 0 && rename(fresh, final) < 0 && errno != EEXIST && errno != ENOTEMPTY)
        code = err_errno(err, errno, "%s", final);
    if (code < 0 || access(fresh, F_OK) == 0)
        file_remove_tree(fresh, NULL);
    return code < 0 ? code : load(store, key, out, err);
}

static int import_path(const char *store, const char *path, const char *tag, const char *name,
                       struct image *out, struct err *err)
{
    CLEANUP(blobs_close) struct blobs blobs;
    CLEANUP(freep) char *lock_path = mem_printf("%s/.lock", store);
    char key[80];

    if (blobs_open(&blobs, path, err) < 0)
        return -(int)err->code;
    CLEANUP(file_close) int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0 || flock(lock, LOCK_EX) < 0)
        return err_errno(err, errno, "%s", lock_path);
    if (build(store, &blobs, tag, out, key, err) < 0)
        return -(int)err->code;
    return name ? set_name(store, name, key, err) : 0;
}

static int import_remote(const char *store, const char *source, const char *name, struct image *out,
                         struct err *err)
{
    CLEANUP(freep) char *dir = mem_printf("%s/.fetch-XXXXXX", store);

    if (!mkdtemp(dir))
        return err_errno(err, errno, "%s", dir);
    int code = registry_fetch(source, dir, err);
    if (code == 0)
        code = import_path(store, dir, NULL, name, out, err);
    file_remove_tree(dir, NULL);
    return code;
}

/* ---- what a user says ---- */

int image_get(const char *source, const char *name, struct image *out, struct err *err)
{
    CLEANUP(freep) char *store = image_store(err);
    const char *path = source;
    CLEANUP(freep) char *dir = NULL;

    if (!store)
        return -(int)err->code;
    if (name && !name_is_good(name))
        return err_set(err, ERR_INVALID, "'%s' cannot be the name of an image", name);
    if (str_starts(source, "http://"))
        return import_remote(store, source, name, out, err);
    if (str_starts(source, "docker://") || str_starts(source, "https://"))
        return err_set(err, ERR_UNSUPPORTED,
                       "image %s: registries are read over http:// only; fetch it to a directory "
                       "(skopeo copy %s oci:DIR) and use oci:DIR",
                       source, source);
    if (str_starts(source, "oci:")) {
        dir = mem_strdup(source + 4);
        char *tag = strrchr(dir, ':');
        if (tag && !strchr(tag, '/'))
            *tag++ = '\0';
        else
            tag = NULL;
        return import_path(store, dir, tag, name, out, err);
    }
    if (str_starts(source, "docker-archive:"))
        path = source + 15;
    if (path != source || path[0] == '/' || path[0] == '.')
        return import_path(store, path, NULL, name, out, err);
    if (!name_is_good(source))
        return err_set(err, ERR_INVALID, "'%s' is neither a file nor the name of an image", source);
    CLEANUP(freep) char *link = name_path(store, source);
    char key[128];
    ssize_t len = readlink(link, key, sizeof(key) - 1);
    if (len < 4)
        return err_set(err, ERR_NOT_FOUND,
                       "no image '%s'; bring it in with: spur image import SOURCE --name %s",
                       source, source);
    key[len] = '\0';
    int code = load(store, key + 3, out, err);
    return code < 0 || !name ? code : set_name(store, name, key + 3, err);
}

int image_list(struct str *out, struct err *err)
{
    CLEANUP(freep) char *store = image_store(err);

    if (!store)
        return -(int)err->code;
    CLEANUP(freep) char *names = mem_printf("%s/names", store);
    struct dirent **items;
    int count = scandir(names, &items, NULL, alphasort);
    if (count < 0)
        return err_errno(err, errno, "%s", names);
    str_addf(out, "%-40s %-19s %s\n", "NAME", "IMPORTED", "DIGEST");
    for (int i = 0; i < count; i++) {
        CLEANUP(freep) char *path = mem_printf("%s/%s", names, items[i]->d_name);
        char key[128] = "", when[32];
        struct stat info;
        if (items[i]->d_name[0] != '.' && lstat(path, &info) == 0 &&
            readlink(path, key, sizeof(key) - 1) > 10) {
            for (char *at = items[i]->d_name; *at; at++)
                *at = *at == '+' ? '/' : *at;
            strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", localtime(&info.st_mtime));
            str_addf(out, "%-40s %-19s %.12s\n", items[i]->d_name, when, key + 10);
        }
        free(items[i]);
    }
    free(items);
    return 0;
}

/* Is there another name for it? */
static bool still_named(const char *store, const char *key)
{
    CLEANUP(freep) char *names = mem_printf("%s/names", store);
    DIR *dir = opendir(names);
    struct dirent *item;
    bool found = false;

    while (dir && !found && (item = readdir(dir))) {
        char other[128] = "";
        if (readlinkat(dirfd(dir), item->d_name, other, sizeof(other) - 1) > 0)
            found = str_eq(other, key);
    }
    if (dir)
        closedir(dir);
    return found;
}

int image_remove(const char *name, struct err *err)
{
    CLEANUP(freep) char *store = image_store(err);

    if (!store)
        return -(int)err->code;
    CLEANUP(freep) char *link = name_is_good(name) ? name_path(store, name) : mem_strdup("");
    char key[128] = "";
    if (readlink(link, key, sizeof(key) - 1) < 4 || unlink(link) < 0)
        return err_set(err, ERR_NOT_FOUND, "no image '%s'", name);
    if (still_named(store, key))
        return 0;
    CLEANUP(freep) char *dir = mem_printf("%s/%s", store, key + 3);
    return file_remove_tree(dir, err);
}
