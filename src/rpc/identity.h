/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity.h - who a caller is, and what follows from it
 *
 * An identity is what was proven: by the kernel, a signature, a certificate or munged. Nothing in it
 * comes from a request's message. What it may do is the application's answer: a set of roles.
 */
#ifndef RPC_IDENTITY_H
#define RPC_IDENTITY_H

#include "base/util.h"

/* A caller has a set of these; an administrator is usually USER, OPERATOR and ADMIN. */
enum rpc_role {
    RPC_ANON = 1, /* everybody has it, known or not */
    RPC_USER = 2,
    RPC_OPERATOR = 4,
    RPC_ADMIN = 8,
    RPC_NODE = 16,
    RPC_CONTROLLER = 32,
    RPC_REST = 64, /* spurrestd, by its certificate */
};

enum rpc_how {
    RPC_HOW_NONE,  /* anonymous */
    RPC_HOW_UNIX,  /* peer credentials of a unix socket */
    RPC_HOW_JWT,   /* token signed by the cluster or a site's issuer */
    RPC_HOW_MUNGE, /* credential that munged decoded */
    RPC_HOW_CERT,  /* client certificate of the cluster's CA */
};

enum { RPC_NAME_BYTES = 256, RPC_USER_BYTES = 64 };

struct rpc_identity {
    enum rpc_how how;
    bool has_uid; /* a token may name a user only; the application then looks the uid up */
    uint32_t uid, gid;
    int32_t pid;                     /* unix sockets only, else 0 */
    char user[RPC_USER_BYTES];       /* token's user name; may be empty */
    char node[RPC_NAME_BYTES];       /* a node (certificate, node token) */
    char controller[RPC_NAME_BYTES]; /* a controller (certificate) */
    char rest[RPC_NAME_BYTES];       /* a spurrestd (certificate) */
    bool no_staff; /* the token was made for somebody by spurrestd: never with the roles of staff */
    uint32_t job;  /* not 0: good for this job's streams on job_node alone */
    char job_node[RPC_NAME_BYTES];
    /*
     * Of a token of the cluster, who vouched for its user: "login:HOST", "node:HOST", "controller"; or how
     * the one who asked for it was known: "unix", "munge", "cert", "jwt". Empty: nobody says.
     */
    char by[RPC_NAME_BYTES];
    int64_t expires_s; /* 0: as long as the connection */
    int64_t issued_s;  /* of a token; 0: it does not say */
    bool local;        /* the peer is on this host */
};

const char *rpc_how_name(enum rpc_how how); /* "unix", "jwt", … for logs */

#endif
