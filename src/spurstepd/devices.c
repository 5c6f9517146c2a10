/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices.c - device files that the processes of a cgroup may not open
 *
 * Version 2 of cgroups has no file for it: a small program in the kernel is asked at each open. It
 * compares the device with each one on the list and says no when they are equal; everything else
 * is left to the file's permissions, as without it.
 */
#include "spurstepd/devices.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/util.h"

/* One instruction; the kernel's header has no names for whole ones. */
static struct bpf_insn insn(uint8_t code, uint8_t to, uint8_t from, int16_t off, int32_t value)
{
    return (struct bpf_insn){
        .code = code, .dst_reg = to & 15, .src_reg = from & 15, .off = off, .imm = value
    };
}

enum {
    HEAD = 4,    /* loads type, major, minor; keeps only the type */
    PER_ONE = 5, /* three comparisons, then "no" */
    TAIL = 2,    /* "yes" */
};

/* r2 = type, r3 = major, r4 = minor; r0 is the answer. */
static size_t write_program(struct bpf_insn *out, StepDevice *const *list, size_t count)
{
    size_t n = 0;

    out[n++] =
        insn(BPF_LDX | BPF_MEM | BPF_W, 2, 1, offsetof(struct bpf_cgroup_dev_ctx, access_type), 0);
    out[n++] = insn(BPF_ALU | BPF_AND | BPF_K, 2, 0, 0, 0xffff); /* the high half is the access */
    out[n++] = insn(BPF_LDX | BPF_MEM | BPF_W, 3, 1, offsetof(struct bpf_cgroup_dev_ctx, major), 0);
    out[n++] = insn(BPF_LDX | BPF_MEM | BPF_W, 4, 1, offsetof(struct bpf_cgroup_dev_ctx, minor), 0);
    for (size_t i = 0; i < count; i++) {
        const StepDevice *device = list[i];
        int kind = device->block ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR;
        out[n++] = insn(BPF_JMP | BPF_JNE | BPF_K, 2, 0, 4, kind);
        out[n++] = insn(BPF_JMP | BPF_JNE | BPF_K, 3, 0, 3, (int32_t)device->major);
        out[n++] = insn(BPF_JMP | BPF_JNE | BPF_K, 4, 0, 2, (int32_t)device->minor);
        out[n++] = insn(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0);
        out[n++] = insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    }
    out[n++] = insn(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1);
    out[n++] = insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    return n;
}

static int load(const struct bpf_insn *program, size_t len)
{
    union bpf_attr attr;

    memset(&attr, 0, sizeof(attr));
    attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attr.insns = (uint64_t)(uintptr_t)program;
    attr.insn_cnt = (uint32_t)len;
    attr.license = (uint64_t)(uintptr_t) "Apache-2.0";
    return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

/* Others' programs on the same cgroup are asked too: all must say yes. */
static int attach(int cgroup_fd, int program_fd)
{
    union bpf_attr attr;

    memset(&attr, 0, sizeof(attr));
    attr.target_fd = (uint32_t)cgroup_fd;
    attr.attach_bpf_fd = (uint32_t)program_fd;
    attr.attach_type = BPF_CGROUP_DEVICE;
    attr.attach_flags = BPF_F_ALLOW_MULTI;
    return (int)syscall(SYS_bpf, BPF_PROG_ATTACH, &attr, sizeof(attr));
}

int devices_deny(int cgroup_fd, StepDevice *const *list, size_t count, struct err *err)
{
    if (count == 0)
        return 0;
    if (count > LIMIT_GRES_PER_NODE)
        return err_set(err, ERR_TOO_MANY, "%zu devices to deny; at most %d", count,
                       LIMIT_GRES_PER_NODE);
    struct bpf_insn *program = mem_new((HEAD + PER_ONE * count + TAIL) * sizeof(*program));
    int fd = load(program, write_program(program, list, count));
    int code = 0;
    if (fd < 0)
        code = err_errno(err, errno, "devices are not held back, loading");
    else if (attach(cgroup_fd, fd) < 0)
        code = err_errno(err, errno, "devices are not held back, attaching");
    if (fd >= 0)
        close(fd);
    free(program);
    return code;
}
