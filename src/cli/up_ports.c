/* SPDX-License-Identifier: Apache-2.0 */
/*
 * up_ports.c - the ports of a private cluster: looked for once, kept in D/run/ports
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/up.h"
#include "sys/files.h"
#include "sys/rng.h"

bool up_port_is_free(unsigned port)
{
    struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    bool is_free = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0;
    close(fd);
    return is_free;
}

/* The first port of the cluster that somebody has; 0: all are free. */
static unsigned taken_port(unsigned base, unsigned controllers, size_t nodes)
{
    static const unsigned own[] = { 0, 4, 5 };

    for (unsigned i = 0; i < controllers; i++) {
        for (size_t k = 0; k < ARRAY_LEN(own); k++) {
            if (!up_port_is_free(base + 10 * i + own[k]))
                return base + 10 * i + own[k];
        }
    }
    if (!up_port_is_free(base + UP_DBD_PORT))
        return base + UP_DBD_PORT;
    for (unsigned i = 0; i < nodes; i++) {
        if (!up_port_is_free(base + UP_NODE_PORTS + i))
            return base + UP_NODE_PORTS + i;
    }
    return 0;
}

/* Below the range that the kernel gives to outgoing connections (32768 and up). */
int up_choose_ports(struct up_options *o, size_t nodes, struct err *err)
{
    if (o->base_port) {
        unsigned taken = taken_port(o->base_port, o->controllers, nodes);
        if (!taken)
            return 0;
        return err_set(err, ERR_EXISTS, "--base-port %u: port %u is in use", o->base_port, taken);
    }
    for (int i = 0; i < 200; i++) {
        unsigned base = 7000 + (unsigned)rng_below(32000 - 7000 - UP_PORT_SPAN);
        if (!taken_port(base, o->controllers, nodes)) {
            o->base_port = base;
            return 0;
        }
    }
    return err_set(err, ERR_INTERNAL, "found no free range of ports; give --base-port");
}

int up_read_ports(struct up_options *o, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/run/ports", o->dir);
    struct str text = { 0 };
    int code = file_read(path, 256, &text, err);

    unsigned rest = 0;

    if (code == 0 && sscanf(str_text(&text), "%u %u %u", &o->base_port, &o->controllers, &rest) < 2)
        code = err_set(err, ERR_CORRUPT, "'%s' does not say which ports the cluster has", path);
    if (!o->rest_port)
        o->rest_port = rest;
    str_done(&text);
    return code;
}

int up_write_ports(const struct up_options *o, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/run/ports", o->dir);
    CLEANUP(freep)
    char *text = mem_printf("%u %u %u\n", o->base_port, o->controllers, o->rest_port);

    return file_write(path, text, strlen(text), 0644, err);
}

/* A new cluster, or the one that the directory holds. */
