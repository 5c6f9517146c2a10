/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.c - the leader tells spurdbd what became of jobs: one stream, entries of the journal out
 *
 * (1) Nothing waits for spurdbd. What it has not acknowledged stays in the journal, within its bound.
 * (2) spurdbd says up to where it has everything, and gets what follows; so an entry arrives once, whoever was
 *     killed meanwhile.
 * (3) What is acknowledged becomes a command, so that every controller lets it go; not for each piece, and not
 *     when nothing but such commands was added since.
 * (4) Only the leader dials. Its successor goes on where spurdbd is.
 * (5) Changes of accounts come back on the stream. The newest that was not applied is kept until it is; while the
 *     file has the accounts none is taken but one that adopts them.
 * (6) When the configuration is another, the stream begins anew: its hello says who administrates.
 */
#include "spurctld/feed.h"

#include "schema/trigger.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/journal.h"
#include "proto/dbd.pb-c.h"
#include "rpc/address.h"
#include "rpc/tls.h"
#include "sys/clock.h"
#include "sys/log.h"

enum { PIECE_BYTES = 128 * 1024, TURN_US = 2500, LATER_MS = 1000, ACK_ENTRIES = 20000 };

#define ACK_US   INT64_C(5000000)
#define RETRY_US INT64_C(1000000)

struct feed {
    struct server *server;
    struct tls_ctx *tls;
    struct rpc_client *client;
    struct rpc_request *stream;
    struct journal_cursor cursor;
    bool welcomed, registered, said_away;
    uint64_t meant;    /* the last entry that was sent: those between meant nothing */
    uint64_t stored;   /* spurdbd has everything up to here */
    uint64_t proposed; /* what was last proposed as acknowledged */
    int64_t proposed_us, open_us;
    uv_timer_t *timer;      /* runs while something is due later */
    struct str bytes;       /* entries of the piece that is put together */
    VEC(struct span) piece; /* where in `bytes`: ptr counts from its beginning */
    char *config_hash;      /* as of the hello: (6) */
    int64_t revoked_s;      /* likewise, the last time that tokens were revoked */
    FeedChange *change;     /* (5) */
    bool changing;          /* it was proposed */
};

/* ---- where it is ---- */

static bool is_on(const struct server *server)
{
    return conf_local(server->conf)->accounting_enabled;
}

/* As configured; else on the first of the controllers, or here. */
static char *address_of(const struct server *server)
{
    const ConfLocal *local = conf_local(server->conf);
    struct address beside;

    if (server->options->accounting)
        return mem_strdup(server->options->accounting);
    if (!str_is_empty(local->accounting_addr))
        return mem_strdup(local->accounting_addr);
    if (server->membership.list.len) {
        const struct controller *first = &server->membership.list.items[0];
        if (strcmp(first->name, server->options->name) != 0)
            return mem_printf("http://%s:%u", first->host, ADDRESS_PORT_ACCOUNTING);
    }
    /* spurdbd's own directory is there once it was started, which may be long after we were. */
    if (address_local_socket(ADDRESS_PORT_ACCOUNTING, &beside))
        return str_starts(beside.path, "/run/spur/")
                   ? mem_printf("unix:/run/spurdb/%u.sock,unix:%s", ADDRESS_PORT_ACCOUNTING,
                                beside.path)
                   : mem_printf("unix:%s", beside.path);
    return mem_printf("http://localhost:%u", ADDRESS_PORT_ACCOUNTING);
}

const char *server_accounting_address(struct server *server)
{
    if (!is_on(server))
        return NULL;
    if (!server->accounting)
        server->accounting = address_of(server);
    return server->accounting;
}

bool server_accounting_registered(const struct server *server)
{
    return server->feed && server->feed->registered;
}

struct rpc_client *server_feed_client(const struct server *server)
{
    return server->feed ? server->feed->client : NULL;
}

/* ---- acknowledging: (3) ---- */

static void acknowledge(struct feed *feed)
{
    struct server *server = feed->server;
    int64_t now_us = clock_mono_us();

    if (feed->stored <= feed->proposed || feed->meant <= feed->proposed)
        return;
    if (feed->stored - feed->proposed < ACK_ENTRIES && now_us - feed->proposed_us < ACK_US)
        return;
    feed->proposed = feed->stored;
    feed->proposed_us = now_us;
    ctl_journal_stored(server->ctl, feed->stored);
}

/* ---- sending ---- */

static void push_entry(struct feed *feed, const void *bytes, size_t len)
{
    vec_push(&feed->piece, (struct span){ NULL, len });
    str_add_len(&feed->bytes, bytes, len);
}

static void take_entry(void *ctx, const struct journal_entry *entry)
{
    struct feed *feed = ctx;

    feed->meant = MAX(feed->meant, entry->index);
    if (!entry->lost_from) {
        push_entry(feed, entry->bytes.ptr, entry->bytes.len);
        return;
    }
    JournalEntry lost = JOURNAL_ENTRY__INIT;
    uint8_t packed[64];
    lost.has_index = lost.has_lost_from = true;
    lost.index = entry->index;
    lost.lost_from = entry->lost_from;
    push_entry(feed, packed, journal_entry__pack(&lost, packed));
}

static bool send_piece(struct feed *feed)
{
    FeedFromLeader message = FEED_FROM_LEADER__INIT;
    FeedEntries entries = FEED_ENTRIES__INIT;
    CLEANUP(freep) ProtobufCBinaryData *list = NEW_ARRAY(ProtobufCBinaryData, feed->piece.len);
    size_t at = 0;

    for (size_t i = 0; i < feed->piece.len; i++) {
        list[i].data = (uint8_t *)feed->bytes.data + at;
        list[i].len = feed->piece.items[i].len;
        at += list[i].len;
    }
    entries.entries = list;
    entries.n_entries = feed->piece.len;
    entries.has_last = true;
    entries.last = feed->cursor.next - 1;
    message.entries = &entries;
    bool sent = rpc_request_send(feed->stream, &message.base);
    vec_clear(&feed->piece);
    str_clear(&feed->bytes);
    return sent;
}

/* As much as the stream takes and the turn allows; true: the stream has all there is. */
static bool send_on(struct feed *feed)
{
    struct server *server = feed->server;
    struct err err = { 0 };
    int rc = 1;

    while (feed->stream && rc > 0 && rpc_request_writable(feed->stream) &&
           server_busy_us(server) < TURN_US) {
        rc = journal_read(server->journal, &feed->cursor, PIECE_BYTES, take_entry, feed, &err);
        if (rc == 0)
            feed->cursor.next = MAX(feed->cursor.next, journal_last(server->journal) + 1);
        if (rc >= 0 && feed->piece.len && !send_piece(feed))
            rc = 0;
    }
    if (rc < 0) {
        log_warn("feed.journal", "text=%s", err.text);
        rpc_request_cancel(TAKE(feed->stream));
        feed->welcomed = false;
    }
    if (rc > 0 && feed->stream && rpc_request_writable(feed->stream))
        wake_send(&server->wake); /* the rest in the next turn */
    return rc == 0;
}

static void add_one_revoked(void *ctx, uint32_t uid, int64_t issued_s)
{
    FeedHello *hello = ctx;
    RevokedTokens *revoked = NEW(RevokedTokens);

    revoked_tokens__init(revoked);
    revoked->has_uid = revoked->has_issued_s = true;
    revoked->uid = uid;
    revoked->issued_s = issued_s;
    hello->revoked[hello->n_revoked++] = revoked;
}

static void add_revoked(FeedHello *hello, const struct state *state)
{
    hello->revoked = NEW_ARRAY(RevokedTokens *, state_revoked_count(state) + 1);
    state_each_revoked(state, add_one_revoked, hello);
}

static void drop_revoked(FeedHello *hello)
{
    for (size_t i = 0; i < hello->n_revoked; i++)
        free(hello->revoked[i]);
    free(hello->revoked);
}

static void send_hello(struct feed *feed)
{
    struct server *server = feed->server;
    const Config *config = state_config(ctl_state(server->ctl));
    struct state_head head = state_head(ctl_state(server->ctl));
    bool file_owns = ctl_file_owns_accounts(server->ctl);
    Config *accounts = file_owns || head.accounts ? ctl_accounts_copy(server->ctl) : NULL;
    FeedFromLeader message = FEED_FROM_LEADER__INIT;
    FeedHello hello = FEED_HELLO__INIT;

    hello.has_cluster_id = hello.has_epoch = hello.has_first = hello.has_last = true;
    hello.has_acked = hello.has_public_key = hello.has_admin_uid = true;
    hello.cluster_id =
        (ProtobufCBinaryData){ sizeof(server->secrets.cluster_id), server->secrets.cluster_id };
    hello.cluster = (char *)server->secrets.cluster;
    hello.controller = (char *)(uintptr_t)server->options->name;
    hello.epoch = head.epoch;
    hello.first = journal_first(server->journal);
    hello.last = head.index;
    hello.acked = head.journal_acked;
    hello.public_key =
        (ProtobufCBinaryData){ sizeof(server->secrets.public_key), server->secrets.public_key };
    hello.admins = config->admins;
    hello.n_admins = config->n_admins;
    hello.operators = config->operators;
    hello.n_operators = config->n_operators;
    hello.private_data = config->private_data;
    hello.admin_uid = (uint32_t)geteuid();
    hello.has_changes = hello.has_file_owns = true;
    hello.changes = head.accounts;
    hello.file_owns = file_owns;
    hello.accounts = accounts;
    hello.control_host = (char *)(uintptr_t)head.leader_address;
    add_revoked(&hello, ctl_state(server->ctl));
    message.hello = &hello;
    rpc_request_send(feed->stream, &message.base);
    drop_revoked(&hello);
    feed->revoked_s = server->secrets.revoked_s;
    if (accounts)
        config__free_unpacked(accounts, NULL);
    free(feed->config_hash);
    feed->config_hash = mem_strdup(config->hash ? config->hash : "");
}

/* Where the log ends, and what runs: for whoever asks spurdbd right after a command. */
static void answer(struct feed *feed, const FeedAsk *ask)
{
    struct server *server = feed->server;
    FeedFromLeader message = FEED_FROM_LEADER__INIT;
    FeedAnswer reply = FEED_ANSWER__INIT;
    bool all = send_on(feed);

    reply.has_id = reply.has_index = true;
    reply.id = ask->id;
    reply.index = all ? feed->meant : journal_last(server->journal);
    reply.n_steps = ctl_running_steps(server->ctl, ask->job_ids, ask->n_job_ids, &reply.steps);
    message.answer = &reply;
    if (feed->stream)
        rpc_request_send(feed->stream, &message.base);
    free(reply.steps);
}

/* ---- the stream ---- */

static void take_welcome(struct feed *feed, const FeedWelcome *welcome)
{
    struct state_head head = state_head(ctl_state(feed->server->ctl));

    feed->welcomed = feed->registered = true;
    if (feed->said_away)
        ctl_happened(feed->server->ctl, TRIGGER_DBD_OPERATES);
    feed->said_away = false;
    feed->cursor = (struct journal_cursor){ .next = welcome->index + 1 };
    feed->stored = feed->meant = welcome->index;
    feed->proposed = head.journal_acked;
    log_info("feed.begins", "address=%s from=%llu acknowledged=%llu%s",
             rpc_client_peer(feed->client), (unsigned long long)welcome->index + 1,
             (unsigned long long)head.journal_acked,
             welcome->index < head.journal_acked ? " database=behind" : "");
}

/* ---- accounts: (5) ---- */

static void drop_change(struct feed *feed)
{
    if (feed->change)
        feed_change__free_unpacked(TAKE(feed->change), NULL);
}

static void change_agreed(void *arg, const struct err *err)
{
    struct server *server = arg;
    struct feed *feed = server->feed;

    if (!feed)
        return;
    feed->changing = false;
    if (err && err->code != ERR_TRANSITION && err->code != ERR_NOT_LEADER) {
        log_error("accounts.refused", "change=%llu text=%s",
                  feed->change ? (unsigned long long)feed->change->number : 0, err->text);
        drop_change(feed);
    }
    wake_send(&server->wake);
}

/* Proposes what waits, unless it is done. */
static void go_on_changing(struct feed *feed)
{
    struct server *server = feed->server;

    if (feed->change && state_head(ctl_state(server->ctl)).accounts >= feed->change->number) {
        log_info("accounts.changed", "change=%llu", (unsigned long long)feed->change->number);
        drop_change(feed);
    }
    if (!feed->change || feed->changing || !ctl_can_take_accounts(server->ctl))
        return;
    feed->changing = true;
    ctl_take_accounts(server->ctl, feed->change->number, feed->change->accounts, change_agreed,
                      server);
    ctl_flush(server->ctl);
}

static void take_change(struct feed *feed, const FeedChange *change)
{
    bool newer = !feed->change || change->number > feed->change->number;

    if (!change->accounts || !newer)
        return;
    if (ctl_file_owns_accounts(feed->server->ctl) && !change->adopt) {
        log_warn("accounts.ignored",
                 "change=%llu: the configuration file has the accounts; 'spur accounting adopt' "
                 "gives them to spurdbd",
                 (unsigned long long)change->number);
        return;
    }
    size_t len = feed_change__get_packed_size(change);
    CLEANUP(freep) uint8_t *packed = mem_new(len + 1);
    feed_change__pack(change, packed);
    drop_change(feed);
    feed->change = feed_change__unpack(NULL, len, packed);
}

static void on_message(struct rpc_request *request, const ProtobufCMessage *packed)
{
    struct feed *feed = rpc_request_data(request);
    const FeedToLeader *message = (const void *)packed;

    if (message->welcome && !feed->welcomed)
        take_welcome(feed, message->welcome);
    if (message->ack && feed->welcomed) {
        feed->stored = MAX(feed->stored, message->ack->index);
        acknowledge(feed);
    }
    if (message->ask && feed->welcomed)
        answer(feed, message->ask);
    if (message->change && feed->welcomed)
        take_change(feed, message->change);
    wake_send(&feed->server->wake);
}

static void on_writable(struct rpc_request *request)
{
    struct feed *feed = rpc_request_data(request);

    wake_send(&feed->server->wake);
}

static void on_done(struct rpc_request *request, const ProtobufCMessage *reply,
                    const struct err *err)
{
    struct feed *feed = rpc_request_data(request);

    (void)reply;
    if (!feed->said_away)
        log_warn("feed.away", "address=%s text=%s: entries of the journal wait",
                 rpc_client_peer(feed->client), err ? err->text : "spurdbd ended the stream");
    if (!feed->said_away && feed->welcomed && feed->server->ctl)
        ctl_happened(feed->server->ctl, TRIGGER_DBD_FAIL);
    feed->said_away = true;
    feed->stream = NULL;
    feed->welcomed = false;
}

static void open_stream(struct feed *feed)
{
    struct rpc_request_options options = {
        .path = "/spur.Accounting/Feed",
        .reply = &feed_to_leader__descriptor,
        .open = true,
        .data = feed,
        .on_message = on_message,
        .on_writable = on_writable,
        .on_done = on_done,
    };

    feed->open_us = clock_mono_us();
    feed->stream = rpc_request_start(feed->client, &options);
    send_hello(feed);
}

static void on_state(void *ctx, enum rpc_state state, const struct err *why)
{
    struct feed *feed = ctx;

    if (state == RPC_WAITING && why && !feed->said_away) {
        log_info("feed.away", "address=%s text=%s: entries of the journal wait",
                 server_accounting_address(feed->server), why->text);
        feed->said_away = true;
    }
    wake_send(&feed->server->wake);
}

/* ---- life: (4) ---- */

static void on_timer(uv_timer_t *timer)
{
    struct feed *feed = timer->data;

    acknowledge(feed);
    wake_send(&feed->server->wake);
}

static void close_timer(uv_handle_t *handle)
{
    free(handle);
}

void feed_free(struct feed *feed)
{
    if (!feed)
        return;
    if (feed->stream)
        rpc_request_cancel(feed->stream);
    if (feed->client)
        rpc_client_free(feed->client);
    if (feed->tls)
        tls_ctx_free(feed->tls);
    if (feed->timer)
        uv_close((uv_handle_t *)feed->timer, close_timer);
    vec_done(&feed->piece);
    str_done(&feed->bytes);
    drop_change(feed);
    free(feed->config_hash);
    free(feed);
}

static struct feed *feed_new(struct server *server, struct err *err)
{
    CLEANUP(freep) char *cert = mem_printf("%s/keys/controller.crt", server->state_dir);
    CLEANUP(freep) char *key = mem_printf("%s/keys/controller.key", server->state_dir);
    CLEANUP(freep) char *ca = mem_printf("%s/keys/ca.crt", server->state_dir);
    struct tls_options tls = { .cert_path = cert, .key_path = key, .ca_path = ca };
    struct feed *feed = NEW(struct feed);

    feed->server = server;
    feed->timer = NEW(uv_timer_t);
    uv_timer_init(server->uv, feed->timer);
    feed->timer->data = feed;
    feed->tls = tls_ctx_new(&tls, err);
    if (!feed->tls) {
        feed_free(feed);
        return NULL;
    }
    struct rpc_client_options options = {
        .addresses = server_accounting_address(server),
        .default_port = ADDRESS_PORT_ACCOUNTING,
        .ctx = feed,
        .tls = feed->tls,
        .allow_plaintext = conf_local(server->conf)->allow_plaintext,
        .state = on_state,
    };
    feed->client = rpc_client_new(server->rpc_loop, &options, err);
    if (!feed->client) {
        feed_free(feed);
        return NULL;
    }
    return feed;
}

/* What is due later: another try, an acknowledgement. */
static void arm_timer(struct feed *feed)
{
    bool due = (rpc_client_state(feed->client) == RPC_READY && !feed->stream) ||
               (feed->meant > feed->proposed && feed->stored > feed->proposed);

    if (due && !uv_is_active((uv_handle_t *)feed->timer))
        uv_timer_start(feed->timer, on_timer, LATER_MS, 0);
}

void server_feed_turn(struct server *server)
{
    bool wanted = server_accounting_address(server) && ctl_is_leading(server->ctl) &&
                  !server->stopping && !server->accounting_broken;
    struct err err = { 0 };

    if (!wanted) {
        feed_free(TAKE(server->feed));
        return;
    }
    if (!server->feed) {
        server->feed = feed_new(server, &err);
        if (!server->feed) {
            log_error("feed.broken", "address=%s text=%s", server_accounting_address(server),
                      err.text);
            server->accounting_broken = true;
            return;
        }
    }
    struct feed *feed = server->feed;
    const char *hash = state_config(ctl_state(server->ctl))->hash;
    if (feed->stream && feed->welcomed &&
        (!str_eq(feed->config_hash, hash ? hash : "") ||
         feed->revoked_s != server->secrets.revoked_s)) {
        rpc_request_cancel(TAKE(feed->stream)); /* (6) */
        feed->welcomed = false;
        feed->open_us = 0;
    }
    go_on_changing(feed);
    if (!feed->stream && rpc_client_state(feed->client) == RPC_READY &&
        clock_mono_us() - feed->open_us >= RETRY_US)
        open_stream(feed);
    if (feed->welcomed && feed->cursor.next <= journal_last(server->journal))
        send_on(feed);
    arm_timer(feed);
}
