/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sqlite_disk.c - a full disk is waited out, a broken one ends the log
 *
 * The broken disk is a VFS between SQLite and the real one; the full one is a small tmpfs.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "log/store.h"
#include "log/test/recorder.h"

/* What the next sync or write of the write-ahead log gives; SQLITE_OK: as the real one. */
static struct {
    int sync, write, error;
    unsigned sync_calls_after_failure;
    bool failed;
} fault;

struct shim_file {
    sqlite3_file base;
    bool wal;
};

static sqlite3_file *real_of(sqlite3_file *file)
{
    return (sqlite3_file *)((char *)file + sizeof(struct shim_file));
}

static int shim_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int shim_read(sqlite3_file *file, void *out, int len, sqlite3_int64 at)
{
    return real_of(file)->pMethods->xRead(real_of(file), out, len, at);
}

static int shim_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
    if (((struct shim_file *)file)->wal && fault.write != SQLITE_OK)
        return fault.write;
    return real_of(file)->pMethods->xWrite(real_of(file), bytes, len, at);
}

static int shim_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int shim_sync(sqlite3_file *file, int flags)
{
    if (fault.failed)
        fault.sync_calls_after_failure++;
    if (((struct shim_file *)file)->wal && fault.sync != SQLITE_OK) {
        fault.failed = true;
        return fault.sync;
    }
    return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int shim_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int shim_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int shim_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int shim_reserved(sqlite3_file *file, int *out)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), out);
}

static int shim_control(sqlite3_file *file, int op, void *arg)
{
    if (op == SQLITE_FCNTL_LAST_ERRNO) {
        *(int *)arg = fault.error;
        return SQLITE_OK;
    }
    return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int shim_sector(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int shim_traits(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int shim_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, out);
}

static int shim_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, n, flags);
}

static void shim_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int shim_shm_unmap(sqlite3_file *file, int remove)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static const sqlite3_io_methods shim_methods = {
    .iVersion = 2,
    .xClose = shim_close,
    .xRead = shim_read,
    .xWrite = shim_write,
    .xTruncate = shim_truncate,
    .xSync = shim_sync,
    .xFileSize = shim_size,
    .xLock = shim_lock,
    .xUnlock = shim_unlock,
    .xCheckReservedLock = shim_reserved,
    .xFileControl = shim_control,
    .xSectorSize = shim_sector,
    .xDeviceCharacteristics = shim_traits,
    .xShmMap = shim_shm_map,
    .xShmLock = shim_shm_lock,
    .xShmBarrier = shim_shm_barrier,
    .xShmUnmap = shim_shm_unmap,
};

static sqlite3_vfs *real_vfs, shim_vfs;

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    int code = real_vfs->xOpen(real_vfs, name, real_of(file), flags, out);

    (void)vfs;
    file->pMethods = code == SQLITE_OK ? &shim_methods : NULL;
    ((struct shim_file *)file)->wal = (flags & SQLITE_OPEN_WAL) != 0;
    return code;
}

static int shim_last_error(sqlite3_vfs *vfs, int len, char *out)
{
    (void)vfs, (void)len, (void)out;
    return fault.error;
}

static int with_shim(void **state)
{
    real_vfs = sqlite3_vfs_find(NULL);
    shim_vfs = *real_vfs;
    shim_vfs.zName = "shim";
    shim_vfs.pNext = NULL;
    shim_vfs.szOsFile = (int)sizeof(struct shim_file) + real_vfs->szOsFile;
    shim_vfs.xOpen = shim_open;
    shim_vfs.xGetLastError = shim_last_error;
    memset(&fault, 0, sizeof(fault));
    sqlite3_vfs_register(&shim_vfs, 0);
    store_use_vfs("shim");
    return make_dir(state);
}

static int without_shim(void **state)
{
    store_use_vfs(NULL);
    sqlite3_vfs_unregister(&shim_vfs);
    return remove_dir(state);
}

static struct log *start_new(struct recorder *rec)
{
    struct err err;

    recorder_init(rec);
    struct log *log = open_log(test_dir, rec, 0);
    if (log_start(log, &err) < 0)
        fail_msg("%s", err.text);
    return log;
}

static void append_and_settle(struct log *log, struct recorder *rec, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i <= to; i++) {
        if (append_number(log, i, 1000, NULL) < 0)
            fail_msg("%s", rec->why.text);
        settle(log, rec, rec->seen.len + rec->refused + 1);
    }
}

static void a_failed_sync_is_the_end(void **state)
{
    static const struct {
        int sync, write, error;
    } faults[] = {
        { SQLITE_IOERR_FSYNC, SQLITE_OK, EIO },
        { SQLITE_IOERR_FSYNC, SQLITE_OK,
          ENOSPC }, /* a sync that found no room is lost all the same */
        { SQLITE_OK, SQLITE_IOERR_WRITE, EIO },
    };
    struct recorder rec;
    struct err err;
    uint64_t acknowledged = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        struct log *log = start_new(&rec);
        assert_true(rec.seen.len >= acknowledged);
        size_t had = rec.seen.len;
        append_and_settle(log, &rec, had + 1, had + 10);
        fault.sync = faults[i].sync;
        fault.write = faults[i].write;
        fault.error = faults[i].error;
        assert_int_equal(append_number(log, had + 11, 1000, NULL), 0);
        settle(log, &rec, had + 11);
        assert_true(rec.failed);
        assert_int_equal(rec.why.code, ERR_IO);
        assert_counts_from_one(&rec, had + 10);
        assert_int_equal(rec.refused, 0); /* nobody knows: not answered */
        /* The disk "works" again, and is not believed. */
        memset(&fault, 0, sizeof(int) * 3);
        assert_int_equal(append_number(log, had + 11, 1000, &err), -(int)ERR_IO);
        log_flush(log);
        log_poll(log);
        log_free(log);
        assert_int_equal(fault.sync_calls_after_failure, 0);
        memset(&fault, 0, sizeof(fault));
        acknowledged = had + 10;
        recorder_done(&rec);
    }
    struct log *log = start_new(&rec);
    assert_true(rec.seen.len >= acknowledged);
    assert_counts_from_one(&rec, rec.seen.len);
    log_free(log);
    recorder_done(&rec);
}

static void no_room_is_waited_out(void **state)
{
    static const struct {
        int code, error;
    } faults[] = {
        { SQLITE_FULL, ENOSPC },
        { SQLITE_IOERR_WRITE, EDQUOT },
        { SQLITE_IOERR_SHMSIZE, ENOSPC },
    };
    struct recorder rec;
    struct log_status status;
    struct log *log = start_new(&rec);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        append_and_settle(log, &rec, rec.seen.len + 1, rec.seen.len + 5);
        fault.write = faults[i].code;
        fault.error = faults[i].error;
        append_and_settle(log, &rec, 1000, 1002);
        assert_int_equal(rec.refused, 3);
        assert_int_equal(rec.refused_for, ERR_DISK_FULL);
        assert_false(rec.failed);
        log_status(log, &status);
        assert_true(status.disk_full);
        assert_int_equal(check_payload(log, 3, 1000, NULL), 0); /* reads go on */
        memset(&fault, 0, sizeof(fault));
        rec.refused = 0;
    }
    append_and_settle(log, &rec, rec.seen.len + 1, rec.seen.len + 5);
    log_status(log, &status);
    assert_false(status.disk_full);
    log_free(log);
    recorder_done(&rec);
    log = start_new(&rec);
    assert_counts_from_one(&rec, 20);
    log_free(log);
    recorder_done(&rec);
}

static void fill_up(const char *path)
{
    static const char zeros[65536];
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    for (size_t size = sizeof(zeros); size; size /= 2) {
        while (write(fd, zeros, size) > 0)
            ;
    }
    close(fd);
}

/* In a mount namespace of its own, so that nothing stays mounted whatever happens. */
static void on_a_small_disk(void)
{
    char ballast[128];
    struct recorder rec;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("small", test_dir, "tmpfs", 0, "size=8m") < 0)
        _exit(77);
    snprintf(ballast, sizeof(ballast), "%s/ballast", test_dir);
    struct log *log = start_new(&rec);
    append_and_settle(log, &rec, 1, 20);
    uint64_t next = 21;
    for (int round = 0; round < 3; round++) {
        fill_up(ballast);
        /* Whatever WAL space is left is used up first; then it is refused, reads go on. */
        uint32_t refused = rec.refused;
        while (rec.refused < refused + 20) {
            append_and_settle(log, &rec, next, next);
            next = rec.seen.len + 1;
        }
        assert_false(rec.failed);
        assert_int_equal(rec.refused_for, ERR_DISK_FULL);
        assert_int_equal(check_payload(log, 7, 1000, NULL), 0);
        assert_int_equal(unlink(ballast), 0);
        append_and_settle(log, &rec, next, next + 19);
        next += 20;
        assert_counts_from_one(&rec, next - 1);
    }
    log_free(log);
    recorder_done(&rec);
    log = start_new(&rec);
    assert_counts_from_one(&rec, next - 1);
    log_free(log);
    recorder_done(&rec);
    _exit(0);
}

static void a_full_disk_recovers_without_restart(void **state)
{
    int status;

    (void)state;
    if (geteuid() != 0) {
        print_message("not root: no tmpfs can be mounted; not tried\n");
        skip();
    }
    pid_t pid = fork();
    if (pid == 0)
        on_a_small_disk();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("mounting is not allowed here; not tried\n");
        skip();
    }
    assert_int_equal(status, 0);
}

UNIT_MAIN(cmocka_unit_test_setup_teardown(a_failed_sync_is_the_end, with_shim, without_shim),
          cmocka_unit_test_setup_teardown(no_room_is_waited_out, with_shim, without_shim),
          cmocka_unit_test_setup_teardown(a_full_disk_recovers_without_restart, make_dir,
                                          remove_dir))
