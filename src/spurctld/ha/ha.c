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
#include "rpc/address.h"
#include "rpc/tls.h"
#include "spurctld/ctl/suspect.h"
#include "spurctld/ha/links.h"
#include "spurctld/ha/peers.h"
#include "spurctld/serve.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/host.h"
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

static int list_members(const struct server *server, const struct membership *membership,
                        struct members *out, struct err *err)
{
    struct str others = { 0 };
    int code = 0;

    vec_each (struct controller, peer, &membership->list) {
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
    if (code == 0 && membership->entering) {
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

/*
 * etcd listens on addresses only. A name is listened on where it leads to on this machine; where it does
 * not (a name for loopback, as Debian's installer writes it, or behind another address), everywhere.
 */
static char *listen_url(const struct controller *self, unsigned offset)
{
    struct address address = { 0 };
    struct sockaddr_storage unused[2];
    char own[HOST_ADDRESS_BYTES];

    if (address_parse(self->host, 0, &address, NULL) == 0 && address_numeric(&address, unused))
        return controller_url(self, offset);
    if (!host_own_address(self->host, own))
        return mem_printf("https://0.0.0.0:%u", self->port + offset);
    return mem_printf(strchr(own, ':') ? "https://[%s]:%u" : "https://%s:%u", own,
                      self->port + offset);
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

static char *etcd_trust(const struct server *server, const struct ha *ha)
{
    return mem_printf("%s/keys/etcd/%s", server->state_dir, ha->own_alone ? "ca.crt" : "trust.crt");
}

static int make_certificates(struct server *server, const struct membership *membership, bool own,
                             struct err *err)
{
    const struct controller *self = membership_find(membership, server->options->name);

    return secrets_etcd(&server->secrets, server->options->name, self ? self->host : NULL, own,
                        err);
}

static int mark_own(struct server *server, struct err *err)
{
    CLEANUP(freep) char *path = own_path(server);

    return file_write(path, "yes\n", 4, 0600, err);
}

static int choose_authority(struct server *server, struct ha *ha,
                            const struct membership *membership, struct err *err)
{
    CLEANUP(freep) char *data = mem_printf("%s/etcd/data/member", server->state_dir);
    bool fresh = access(data, F_OK) != 0 && !membership->entering;

    if (fresh && !trusts_own(server) && mark_own(server, err) < 0)
        return -(int)err->code;
    ha->own_alone = trusts_own(server);
    return make_certificates(server, membership, ha->own_alone, err);
}

void server_ha_level(struct server *server, unsigned level)
{
    struct err err = { 0 };

    if (level < LEVEL_SEALS || !server->ha || !server->ha->member || trusts_own(server))
        return;
    if (make_certificates(server, &server->membership, true, &err) < 0 ||
        mark_own(server, &err) < 0)
        log_error("etcd.authority", "text=%s", err.text);
    else
        log_warn("etcd.authority", "etcd still accepts certificates of the cluster's authority: "
                                   "start this controller once more");
}

static int start_member(struct server *server, struct ha *ha, const struct membership *membership,
                        const struct members *members, struct err *err)
{
    CLEANUP(freep) char *dir = mem_printf("%s/etcd", server->state_dir);
    CLEANUP(freep) char *cert = mem_printf("%s/keys/etcd/member.crt", server->state_dir);
    CLEANUP(freep) char *key = mem_printf("%s/keys/controller.key", server->state_dir);
    CLEANUP(freep) char *ca = etcd_trust(server, ha);
    const struct controller *self = membership_find(membership, server->options->name);
    CLEANUP(freep) char *listen_client = listen_url(self, ETCD_CLIENT_OFFSET);
    CLEANUP(freep) char *listen_peer = listen_url(self, ETCD_PEER_OFFSET);
    struct member_options options = {
        .uv = server->uv,
        .dir = dir,
        .name = server->options->name,
        .client_url = members->client_url,
        .peer_url = members->peer_url,
        .listen_client_url = listen_client,
        .listen_peer_url = listen_peer,
        .cluster = str_text(&members->cluster),
        .token = membership->token,
        .existing = membership->from_file && !membership->bootstrap,
        .cert_path = cert,
        .key_path = key,
        .ca_path = ca,
    };

    return member_start(&options, &ha->member, err);
}

static int connect_etcd(struct server *server, struct ha *ha, const char *addresses,
                        struct err *err)
{
    CLEANUP(freep) char *cert = mem_printf("%s/keys/controller.crt", server->state_dir);
    CLEANUP(freep) char *key = mem_printf("%s/keys/controller.key", server->state_dir);
    CLEANUP(freep) char *ca = mem_printf("%s/keys/ca.crt", server->state_dir);
    struct tls_options tls = { .cert_path = cert, .key_path = key, .ca_path = ca };

    ha->tls = tls_ctx_new(&tls, err);
    if (!ha->tls)
        return -(int)err->code;
    CLEANUP(freep) char *etcd_cert = mem_printf("%s/keys/etcd/member.crt", server->state_dir);
    CLEANUP(freep) char *etcd_ca = etcd_trust(server, ha);
    if (ha->member) {
        tls.cert_path = etcd_cert;
        tls.ca_path = etcd_ca;
    }
    ha->etcd_tls = tls_ctx_new(&tls, err);
    if (!ha->etcd_tls)
        return -(int)err->code;
    struct etcd_rpc_options options = {
        .uv = server->uv,
        .loop = server->rpc_loop,
        .addresses = addresses,
        .tls = ha->etcd_tls,
        .allow_plaintext = conf_local(server->conf)->allow_plaintext,
        .home = ha->member != NULL,
    };
    ha->rpc = etcd_rpc_new(&options, err);
    return ha->rpc ? 0 : -(int)err->code;
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
        code = list_members(server, &server->membership, &members, err);
        if (code == 0)
            code = choose_authority(server, server->ha, &server->membership, err);
        if (code == 0)
            code = start_member(server, server->ha, &server->membership, &members, err);
    }
    if (code == 0)
        code = connect_etcd(server, server->ha, str_text(&members.clients), err);
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

    if (!server->ha || all->list.len < 2) {
        ctl_set_controllers(server->ctl, 1);
        return 0;
    }
    if (server->ha->member && !server->ha->near)
        server->ha->near = etcd_near_new(&etcd_rpc_io, server->ha->rpc, ctl_log(server->ctl));
    if (all->list.len > SUSPECT_PEERS)
        return err_set(err, ERR_CONFIG, "more than %d controllers", SUSPECT_PEERS);
    vec_each (struct controller, peer, &all->list)
        hosts[count++] =
            (struct links_host){ .name = peer->name, .address = controller_url(peer, 0) };
    ctl_set_controllers(server->ctl, count);
    server->links = links_new(server, server->ha->tls, hosts, count, err);
    ctl_marks_asked(server->ctl); /* who was asked before is not waited for */
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

    if (list_members(server, &server->membership, &members, &err) < 0 ||
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

/* What etcd last said, for our log. */
void server_ha_last_line(const struct server *server, struct str *out)
{
    if (server->ha && server->ha->member)
        member_last_line(server->ha->member, out);
}

/* ---- an etcd that is proved before the log moves to it ---- */

enum { PROOF_MS = 8000, PROOF_CALL_MS = 1000, PROOF_LOOK_MS = 200, PROOF_TTL_S = 5 };

struct proof {
    struct server *server;
    struct ha ha;
    uv_timer_t timer;
    int64_t until_ms;
    struct err err; /* of the last try */
    void (*done)(struct server *server, void *arg, const struct err *err);
    void *arg;
};

static void proof_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* The member runs on when it is good: the next life of the server takes it over. */
static void proof_end(struct proof *proof, const struct err *failed)
{
    struct server *server = proof->server;
    struct err copy = failed ? *failed : (struct err){ 0 };
    const struct err *why = failed ? &copy : NULL;
    CLEANUP(freep) char *dir = mem_printf("%s/etcd", server->state_dir);
    CLEANUP(str_done) struct str last = { 0 };
    struct err err = { 0 }, ignored = { 0 };

    server->proof = NULL;
    uv_timer_stop(&proof->timer);
    if (proof->ha.rpc)
        etcd_rpc_free(proof->ha.rpc);
    if (why && proof->ha.member)
        member_last_line(proof->ha.member, &last);
    if (proof->ha.member && why)
        member_kill(proof->ha.member);
    else if (proof->ha.member)
        member_release(proof->ha.member);
    if (proof->ha.tls)
        tls_ctx_free(proof->ha.tls);
    if (proof->ha.etcd_tls)
        tls_ctx_free(proof->ha.etcd_tls);
    if (why) {
        file_remove_tree(dir, &ignored);
        err_set(&err, ERR_IO, "etcd does not work here, so the log stays in SQLite: %s%s%s",
                why->text, last.len ? "; etcd says: " : "", str_text(&last));
        log_error("ctl.move", "text=%s", err.text);
    }
    proof->done(server, proof->arg, why ? &err : NULL);
    uv_close((uv_handle_t *)&proof->timer, proof_closed);
}

static void prove(uv_timer_t *timer);

static void on_known(uv_timer_t *timer)
{
    struct proof *proof = timer->data;

    proof_end(proof, proof->err.code ? &proof->err : NULL);
}

static void on_proved(void *arg, const ProtobufCMessage *reply, const struct err *err)
{
    struct proof *proof = arg;

    (void)reply;
    proof->err = err ? *err : (struct err){ 0 };
    if (!err || clock_mono_us() / 1000 > proof->until_ms)
        uv_timer_start(&proof->timer, on_known, 0, 0); /* not inside a call of what it frees */
    else
        uv_timer_start(&proof->timer, prove, PROOF_LOOK_MS, 0);
}

/* A lease is written to etcd's own log, and goes by itself. */
static void prove(uv_timer_t *timer)
{
    struct proof *proof = timer->data;
    EtcdLeaseGrantRequest request = ETCD_LEASE_GRANT_REQUEST__INIT;

    request.has_ttl = true;
    request.ttl = PROOF_TTL_S;
    etcd_rpc_io.call(proof->ha.rpc, ETCD_CALL_LEASE_GRANT, &request.base, PROOF_CALL_MS, on_proved,
                     proof);
}

void server_ha_prove(struct server *server, const struct membership *to,
                     void (*done)(struct server *server, void *arg, const struct err *err),
                     void *arg)
{
    struct proof *proof = NEW(struct proof);
    struct members members = { 0 };
    struct err err = { 0 };

    *proof = (struct proof){ .server = server, .done = done, .arg = arg };
    proof->until_ms = clock_mono_us() / 1000 + PROOF_MS;
    uv_timer_init(server->uv, &proof->timer);
    proof->timer.data = proof;
    server->proof = proof;
    if (list_members(server, to, &members, &err) < 0 ||
        choose_authority(server, &proof->ha, to, &err) < 0 ||
        start_member(server, &proof->ha, to, &members, &err) < 0 ||
        connect_etcd(server, &proof->ha, str_text(&members.clients), &err) < 0)
        proof_end(proof, &err);
    else
        prove(&proof->timer);
    members_done(&members);
}

/* The server ends before it is known. */
void server_ha_prove_no_more(struct server *server)
{
    struct err err = { 0 };

    if (server->proof) {
        err_code(&err, ERR_SHUTTING_DOWN);
        proof_end(server->proof, &err);
    }
}
