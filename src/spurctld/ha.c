/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ha.c - several controllers: the etcd member of this one, and the log on it
 *
 * controller.hosts names all of them, "name" or "name(address)". Each runs one etcd member, on the
 * two ports ETCD_CLIENT and ETCD_PEER above its own (6817 has 6821 and 6822); members speak TLS with
 * certificates of an authority that signs controllers alone (secrets.h). controller.etcd names an existing etcd instead.
 *
 * The member outlives us: a controller that starts again finds it.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/feature_level.h"
#include "log/etcd.h"
#include "log/etcd_near.h"
#include "log/etcd_rpc.h"
#include "log/member.h"
#include "rpc/tls.h"
#include "spurctld/links.h"
#include "spurctld/peers.h"
#include "spurctld/serve.h"
#include "spurctld/suspect.h"
#include "sys/files.h"
#include "sys/log.h"

struct ha {
    struct member *member;
    struct etcd_rpc *rpc;
    struct tls_ctx *tls;      /* to other controllers */
    struct tls_ctx *etcd_tls; /* to etcd */
    struct etcd_near *near;   /* NULL: the etcd is the site's */
    bool own_alone;           /* the member trusts etcd's own authority and no other */
};

struct members {
    struct str cluster, clients; /* "c1=https://…,c2=…" and "https://…,…" with our own first */
    char *client_url, *peer_url; /* ours */
};

static int list_members(struct server *server, struct members *out, struct err *err)
{
    struct str others = { 0 };
    int code = 0;

    vec_each (struct controller, peer, &server->membership.list) {
        CLEANUP(freep) char *client = controller_url(peer, ETCD_CLIENT_OFFSET);
        CLEANUP(freep) char *url = controller_url(peer, ETCD_PEER_OFFSET);
        str_addf(&out->cluster, "%s%s=%s", out->cluster.len ? "," : "", peer->name, url);
        if (strcmp(peer->name, server->options->name) == 0) {
            out->client_url = TAKE(client);
            out->peer_url = TAKE(url);
        } else {
            str_addf(&others, ",%s", client);
        }
    }
    if (code == 0 && !out->client_url)
        code = err_set(err, ERR_CONFIG,
                       "this controller is '%s' (--name), which is not in the list of controllers",
                       server->options->name);
    if (code == 0 && server->membership.entering) {
        /* A member that only learns answers nothing of use. */
        str_addf(&out->clients, "%s,%s", str_text(&others) + (others.len > 0), out->client_url);
    } else if (code == 0) {
        str_add(&out->clients, out->client_url);
        str_add(&out->clients, str_text(&others));
    }
    str_done(&others);
    return code;
}

static void members_done(struct members *members)
{
    str_done(&members->cluster);
    str_done(&members->clients);
    free(members->client_url);
    free(members->peer_url);
}

static void on_member(void *ctx, enum member_state state, const char *why)
{
    static const char *const words[] = { "started", "adopted", "ended" };

    (void)ctx;
    log_info("etcd.member", "state=%s why=%s", words[state], why ? why : "");
}

/* ---- whom etcd trusts ---- */

/*
 * A member that was begun before etcd had an authority of its own shows and trusts certificates of the cluster's. So
 * an upgraded controller first trusts both and shows the old certificate. When the cluster has LEVEL_SEALS, all members
 * trust both: it shows the new one, and from its next start on it trusts the new authority alone. keys/etcd.own says
 * that it has come so far; a new cluster begins there.
 */
static char *own_path(const struct server *server)
{
    return mem_printf("%s/keys/etcd.own", server->state_dir);
}

static bool trusts_own(const struct server *server)
{
    CLEANUP(freep) char *path = own_path(server);

    return access(path, F_OK) == 0;
}

static char *etcd_trust(const struct server *server)
{
    return mem_printf("%s/keys/etcd/%s", server->state_dir,
                      server->ha->own_alone ? "ca.crt" : "trust.crt");
}

static int make_certificates(struct server *server, bool own, struct err *err)
{
    const struct controller *self = membership_find(&server->membership, server->options->name);

    return secrets_etcd(&server->secrets, server->options->name, self ? self->host : NULL, own,
                        err);
}

static int mark_own(struct server *server, struct err *err)
{
    CLEANUP(freep) char *path = own_path(server);

    return file_write(path, "yes\n", 4, 0600, err);
}

static int choose_authority(struct server *server, struct err *err)
{
    CLEANUP(freep) char *data = mem_printf("%s/etcd/data/member", server->state_dir);
    bool fresh = access(data, F_OK) != 0 && !server->membership.entering;

    if (fresh && !trusts_own(server) && mark_own(server, err) < 0)
        return -(int)err->code;
    server->ha->own_alone = trusts_own(server);
    return make_certificates(server, server->ha->own_alone, err);
}

void server_ha_level(struct server *server, unsigned level)
{
    struct err err = { 0 };

    if (level < LEVEL_SEALS || !server->ha || !server->ha->member || trusts_own(server))
        return;
    if (make_certificates(server, true, &err) < 0 || mark_own(server, &err) < 0)
        log_error("etcd.authority", "text=%s", err.text);
    else
        log_warn("etcd.authority", "etcd still accepts certificates of the cluster's authority: "
                                   "start this controller once more");
}

static int start_member(struct server *server, const struct members *members, struct err *err)
{
    CLEANUP(freep) char *dir = mem_printf("%s/etcd", server->state_dir);
    CLEANUP(freep) char *cert = mem_printf("%s/keys/etcd/member.crt", server->state_dir);
    CLEANUP(freep) char *key = mem_printf("%s/keys/controller.key", server->state_dir);
    CLEANUP(freep) char *ca = etcd_trust(server);
    struct member_options options = {
        .uv = server->uv,
        .dir = dir,
        .name = server->options->name,
        .client_url = members->client_url,
        .peer_url = members->peer_url,
        .cluster = str_text(&members->cluster),
        .token = server->membership.token,
        .existing = server->membership.from_file && !server->membership.bootstrap,
        .cert_path = cert,
        .key_path = key,
        .ca_path = ca,
        .state = on_member,
        .ctx = server,
    };

    return member_start(&options, &server->ha->member, err);
}

static int connect_etcd(struct server *server, const char *addresses, struct err *err)
{
    CLEANUP(freep) char *cert = mem_printf("%s/keys/controller.crt", server->state_dir);
    CLEANUP(freep) char *key = mem_printf("%s/keys/controller.key", server->state_dir);
    CLEANUP(freep) char *ca = mem_printf("%s/keys/ca.crt", server->state_dir);
    struct tls_options tls = { .cert_path = cert, .key_path = key, .ca_path = ca };

    server->ha->tls = tls_ctx_new(&tls, err);
    if (!server->ha->tls)
        return -(int)err->code;
    CLEANUP(freep) char *etcd_cert = mem_printf("%s/keys/etcd/member.crt", server->state_dir);
    CLEANUP(freep) char *etcd_ca = etcd_trust(server);
    if (server->ha->member) {
        tls.cert_path = etcd_cert;
        tls.ca_path = etcd_ca;
    }
    server->ha->etcd_tls = tls_ctx_new(&tls, err);
    if (!server->ha->etcd_tls)
        return -(int)err->code;
    struct etcd_rpc_options options = {
        .uv = server->uv,
        .loop = server->rpc_loop,
        .addresses = addresses,
        .tls = server->ha->etcd_tls,
        .allow_plaintext = conf_local(server->conf)->allow_plaintext,
        .home = server->ha->member != NULL,
    };
    server->ha->rpc = etcd_rpc_new(&options, err);
    return server->ha->rpc ? 0 : -(int)err->code;
}

bool server_is_several(const struct server *server)
{
    return server->membership.etcd || conf_local(server->conf)->n_etcd > 0;
}

static int start_etcd(struct server *server, struct err *err)
{
    const ConfLocal *local = conf_local(server->conf);
    struct members members = { 0 };
    int code = 0;

    if (local->n_etcd > 0) {
        for (size_t i = 0; i < local->n_etcd; i++)
            str_addf(&members.clients, "%s%s", i ? "," : "", local->etcd[i]);
    } else {
        code = list_members(server, &members, err);
        if (code == 0)
            code = choose_authority(server, err);
        if (code == 0)
            code = start_member(server, &members, err);
    }
    if (code == 0)
        code = connect_etcd(server, str_text(&members.clients), err);
    members_done(&members);
    return code;
}

struct log *server_open_etcd(struct server *server, const struct log_config *config,
                             struct err *err)
{
    const char *cluster = conf_config(server->conf)->cluster_name;
    CLEANUP(freep) char *prefix = mem_printf("/spur/%s", cluster ? cluster : "spur");
    size_t hosts = server->membership.list.len;

    server->ha = NEW(struct ha);
    if (start_etcd(server, err) < 0)
        return NULL;
    server->peers = peers_new(server, server->ha->tls);
    uint8_t seal_key[ETCD_SEAL_KEY_BYTES];
    secrets_seal_key(&server->secrets, seal_key);
    struct etcd_options options = {
        .seal_key = seal_key,
        .cluster_id = server->secrets.cluster_id,
        .io = &etcd_rpc_io,
        .io_ctx = server->ha->rpc,
        .prefix = prefix,
        .controllers = hosts ? (unsigned)hosts : 1,
        .bootstrap = server->membership.bootstrap,
    };
    return log_etcd_new(config, &options, err);
}

/* With an etcd of the site and no hosts nobody knows the others: the lease alone decides. */
int server_start_links(struct server *server, struct err *err)
{
    const struct membership *all = &server->membership;
    struct links_host hosts[SUSPECT_PEERS] = { 0 };
    size_t count = 0;

    if (!server->ha || all->list.len < 2)
        return 0;
    if (server->ha->member && !server->ha->near)
        server->ha->near = etcd_near_new(&etcd_rpc_io, server->ha->rpc, ctl_log(server->ctl));
    if (all->list.len > SUSPECT_PEERS)
        return err_set(err, ERR_CONFIG, "more than %d controllers", SUSPECT_PEERS);
    vec_each (struct controller, peer, &all->list)
        hosts[count++] =
            (struct links_host){ .name = peer->name, .address = controller_url(peer, 0) };
    server->links = links_new(server, server->ha->tls, hosts, count, err);
    while (count-- > 0)
        free((char *)hosts[count].address);
    return server->links ? 0 : -(int)err->code;
}

/* After the log is freed. The member runs on. */
void server_ha_done(struct server *server)
{
    struct ha *ha = server->ha;

    if (!ha)
        return;
    etcd_near_free(ha->near);
    if (ha->rpc)
        etcd_rpc_free(ha->rpc);
    if (ha->member)
        member_release(ha->member);
    if (ha->tls)
        tls_ctx_free(ha->tls);
    if (ha->etcd_tls)
        tls_ctx_free(ha->etcd_tls);
    free(ha);
    server->ha = NULL;
}

/* ---- changes at run time ---- */

void server_ha_call(struct server *server, enum etcd_method method, const ProtobufCMessage *request,
                    unsigned timeout_ms, etcd_done_fn done, void *arg)
{
    etcd_rpc_io.call(server->ha->rpc, method, request, timeout_ms, done, arg);
}

/* The list is new: whom to ask, and how many are a majority. */
void server_ha_follow(struct server *server)
{
    struct members members = { 0 };
    struct err err = { 0 };

    if (list_members(server, &members, &err) < 0 ||
        etcd_rpc_set_addresses(server->ha->rpc, str_text(&members.clients), &err) < 0)
        log_error("etcd.addresses", "text=%s", err.text);
    members_done(&members);
    log_etcd_set_controllers(ctl_log(server->ctl), (unsigned)server->membership.list.len);
}

/* For a controller that needs its member no more. */
void server_ha_end_member(struct server *server)
{
    if (server->ha && server->ha->member)
        member_kill(TAKE(server->ha->member));
}
