/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.c - the tables of the database, by version
 *
 * (1) A version that was released is never edited: what changes is a new row of `versions`.
 * (2) Each version is applied in a transaction together with its number, so a crash leaves the one before
 *     or the one after.
 * (3) Words that differ between the databases are written as store.h says.
 *
 * Times are microseconds, 0 means "not yet" or "never". `job_bytes` and `step_bytes` hold the packed messages
 * Job and AcctStep; the columns beside them are what queries select by, and what reports add up.
 */
#include "spurdbd/schema.h"

#include <string.h>

#include "sys/log.h"

static const char version_1[] =
    "CREATE TABLE cluster("
    " id @id, uuid @bytes NOT NULL UNIQUE, name TEXT NOT NULL,"
    " epoch @big NOT NULL, idx @big NOT NULL, heard_us @big NOT NULL, hello @bytes NOT NULL);"

    "CREATE TABLE gap("
    " cluster @big NOT NULL, idx_from @big NOT NULL, idx_upto @big NOT NULL,"
    " noticed_us @big NOT NULL, why TEXT NOT NULL,"
    " PRIMARY KEY(cluster, idx_from, idx_upto));"

    "CREATE TABLE job("
    " db_id @id, cluster @big NOT NULL, job_id @big NOT NULL, run @big NOT NULL,"
    " array_job @big NOT NULL, array_task @big, het_job @big NOT NULL, het_offset @big,"
    " uid @big NOT NULL, gid @big NOT NULL, user_name TEXT NOT NULL, account TEXT NOT NULL,"
    " assoc_id @big NOT NULL, partition_name TEXT NOT NULL, qos TEXT NOT NULL,"
    " wckey TEXT NOT NULL, name TEXT NOT NULL, reservation TEXT NOT NULL,"
    " state @big NOT NULL, requeued @big NOT NULL, cancelled_by @big NOT NULL,"
    " t_submit @big NOT NULL, t_eligible @big NOT NULL, t_start @big NOT NULL,"
    " t_end @big NOT NULL, suspended_us @big NOT NULL, limit_s @big NOT NULL,"
    " cpus @big NOT NULL, nodes @big NOT NULL, mem_mb @big NOT NULL, gpus @big NOT NULL,"
    " billing @big NOT NULL, exit_status @big NOT NULL, nodelist TEXT NOT NULL,"
    " tres_alloc TEXT NOT NULL, job_bytes @bytes NOT NULL,"
    " UNIQUE(cluster, job_id, run));"
    "CREATE INDEX job_end ON job(t_end);"
    "CREATE INDEX job_user ON job(uid, t_end);"
    "CREATE INDEX job_account ON job(account, t_end);"
    "CREATE INDEX job_array ON job(array_job) WHERE array_job > 0;"
    "CREATE INDEX job_het ON job(het_job) WHERE het_job > 0;"
    "CREATE INDEX job_id ON job(job_id);"

    "CREATE TABLE step("
    " cluster @big NOT NULL, job_id @big NOT NULL, run @big NOT NULL, step @big NOT NULL,"
    " state @big NOT NULL, t_start @big NOT NULL, t_end @big NOT NULL, step_bytes @bytes NOT NULL,"
    " PRIMARY KEY(cluster, job_id, run, step));"

    "CREATE TABLE suspend("
    " cluster @big NOT NULL, job_id @big NOT NULL, run @big NOT NULL,"
    " t_from @big NOT NULL, t_to @big NOT NULL, PRIMARY KEY(cluster, job_id, run, t_from));"

    /* Tasks of an array that were cancelled before they had a record of their own. */
    "CREATE TABLE array_cancelled("
    " cluster @big NOT NULL, job_id @big NOT NULL, t_us @big NOT NULL, tasks TEXT NOT NULL,"
    " PRIMARY KEY(cluster, job_id, t_us));"

    /* The longest time from eligible to end of what ended in a month: bounds a look into the past. */
    "CREATE TABLE span(month @big PRIMARY KEY, longest_us @big NOT NULL);"

    "CREATE TABLE payload("
    " cluster @big NOT NULL, job_id @big NOT NULL, payload @bytes NOT NULL,"
    " PRIMARY KEY(cluster, job_id));"

    "CREATE VIEW v_job AS SELECT j.db_id, c.name AS cluster, j.job_id, j.run, j.array_job,"
    " j.array_task, j.user_name, j.uid, j.account, j.partition_name, j.qos, j.name, j.state,"
    " j.requeued, j.t_submit / 1000000 AS submit_s, j.t_eligible / 1000000 AS eligible_s,"
    " j.t_start / 1000000 AS start_s, j.t_end / 1000000 AS end_s,"
    " j.suspended_us / 1000000 AS suspended_s, j.limit_s, j.cpus, j.nodes, j.mem_mb, j.gpus,"
    " j.exit_status, j.nodelist, j.tres_alloc FROM job j JOIN cluster c ON c.id = j.cluster;";

/* Accounts, users, associations, QOS: see tables.c. */
static const char version_accounts[] =
    "CREATE TABLE acct_cluster("
    " id @id, name TEXT NOT NULL UNIQUE, deleted @big NOT NULL, changes @big NOT NULL,"
    " classification TEXT NOT NULL);"
    "CREATE TABLE acct_account(name TEXT PRIMARY KEY, deleted @big NOT NULL, bytes @bytes NOT NULL);"
    "CREATE TABLE acct_user(name TEXT PRIMARY KEY, deleted @big NOT NULL, bytes @bytes NOT NULL);"
    "CREATE TABLE acct_assoc("
    " id @id, cluster TEXT NOT NULL, account TEXT NOT NULL, user_name TEXT NOT NULL,"
    " partition_name TEXT NOT NULL, deleted @big NOT NULL, bytes @bytes NOT NULL,"
    " UNIQUE(cluster, account, user_name, partition_name));"
    "CREATE INDEX acct_assoc_user ON acct_assoc(user_name);"
    "CREATE TABLE acct_qos("
    " id @id, name TEXT NOT NULL UNIQUE, deleted @big NOT NULL, bytes @bytes NOT NULL);"
    "CREATE TABLE acct_tres(id @big PRIMARY KEY, type TEXT NOT NULL, name TEXT NOT NULL);"
    "CREATE TABLE acct_wckey("
    " id @id, cluster TEXT NOT NULL, user_name TEXT NOT NULL, name TEXT NOT NULL,"
    " deleted @big NOT NULL, bytes @bytes NOT NULL, UNIQUE(cluster, user_name, name));"
    "CREATE TABLE acct_coord("
    " account TEXT NOT NULL, user_name TEXT NOT NULL, PRIMARY KEY(account, user_name));"
    "CREATE TABLE acct_transaction("
    " id @id, t_us @big NOT NULL, action TEXT NOT NULL, actor TEXT NOT NULL, what TEXT NOT NULL,"
    " info TEXT NOT NULL, cluster TEXT NOT NULL);"
    "CREATE TABLE acct_revision(revision @big NOT NULL);";

/* Use by hour, day and month: see rollup.c. Times in seconds; amounts in TRES-seconds. */
static const char version_usage[] =
    "ALTER TABLE job ADD COLUMN tres_req TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE job ADD COLUMN t_wait @big NOT NULL DEFAULT 0;" /* when this run began to wait */
    /* What a run had up to the moment of a resize. */
    "CREATE TABLE resize("
    " cluster @big NOT NULL, job_id @big NOT NULL, run @big NOT NULL, t_us @big NOT NULL,"
    " tres_alloc TEXT NOT NULL, PRIMARY KEY(cluster, job_id, run, t_us));"
    "CREATE INDEX resize_time ON resize(cluster, t_us);"
    "CREATE INDEX suspend_to ON suspend(cluster, t_to);"
    "CREATE TABLE usage_state(cluster @big PRIMARY KEY, done_s @big NOT NULL);"
    "CREATE TABLE usage_who("
    " id @id, cluster @big NOT NULL, account TEXT NOT NULL, user_name TEXT NOT NULL,"
    " partition_name TEXT NOT NULL, qos TEXT NOT NULL, wckey TEXT NOT NULL, uid @big NOT NULL,"
    " UNIQUE(cluster, account, user_name, partition_name, qos, wckey));"
    "CREATE TABLE usage_sum("
    " cluster @big NOT NULL, period @big NOT NULL, t_s @big NOT NULL, who @big NOT NULL,"
    " tres @big NOT NULL, amount @big NOT NULL, PRIMARY KEY(cluster, period, t_s, who, tres));"
    "CREATE TABLE usage_cluster("
    " cluster @big NOT NULL, period @big NOT NULL, t_s @big NOT NULL, tres @big NOT NULL,"
    " total @big NOT NULL, alloc @big NOT NULL, down @big NOT NULL, planned_down @big NOT NULL,"
    " reserved @big NOT NULL, planned @big NOT NULL, overcommit @big NOT NULL,"
    " PRIMARY KEY(cluster, period, t_s, tres));"
    "CREATE VIEW v_usage_day AS SELECT c.name AS cluster, s.t_s AS day_s, w.account,"
    " w.user_name, w.partition_name, w.qos, w.wckey,"
    " CASE WHEN t.name = '' THEN t.type ELSE t.type || '/' || t.name END AS tres,"
    " s.amount AS tres_seconds FROM usage_sum s JOIN usage_who w ON w.id = s.who"
    " JOIN acct_tres t ON t.id = s.tres JOIN cluster c ON c.id = s.cluster WHERE s.period = 1;";

/* Nodes out of use, what the cluster has, reservations: see ingest_cluster.h. */
static const char version_events[] =
    "CREATE TABLE event("
    " cluster @big NOT NULL, node_name TEXT NOT NULL, t_start @big NOT NULL, t_end @big NOT NULL,"
    " state @big NOT NULL, flags @big NOT NULL, reason TEXT NOT NULL, reason_uid @big NOT NULL,"
    " reason_user TEXT NOT NULL, tres TEXT NOT NULL, nodes TEXT NOT NULL,"
    " PRIMARY KEY(cluster, node_name, t_start));"
    "CREATE INDEX event_end ON event(cluster, t_end);"
    "CREATE TABLE resv("
    " cluster @big NOT NULL, id @big NOT NULL, name TEXT NOT NULL, t_start @big NOT NULL,"
    " t_end @big NOT NULL, ended @big NOT NULL, nodes TEXT NOT NULL, node_count @big NOT NULL,"
    " tres TEXT NOT NULL, users TEXT NOT NULL, accounts TEXT NOT NULL, flags TEXT NOT NULL,"
    " comment TEXT NOT NULL, PRIMARY KEY(cluster, id, t_start));"
    "CREATE INDEX resv_end ON resv(cluster, t_end);";

/* Why accounts of a cluster may not be changed: see tables_calls.c (4). */
static const char version_repair[] =
    "ALTER TABLE acct_cluster ADD COLUMN repair TEXT NOT NULL DEFAULT '';"
    "CREATE INDEX job_reservation ON job(reservation) WHERE reservation <> '';";

static const struct version {
    const char *sql;
} versions[] = {
    { version_1 }, { version_accounts }, { version_usage }, { version_events }, { version_repair },
};

unsigned schema_version(void)
{
    return ARRAY_LEN(versions);
}

static int current(struct store *store, int64_t *out, struct err *err)
{
    return store_number(store, "SELECT max(version) FROM spur_schema", STORE_NO_VALUES, 0, out,
                        err);
}

int schema_found(struct store *store, unsigned *out, struct err *err)
{
    int64_t version = 0;

    if (store_script(store, "CREATE TABLE IF NOT EXISTS spur_schema(version INTEGER NOT NULL)",
                     err) < 0 ||
        current(store, &version, err) < 0)
        return -(int)err->code;
    *out = (unsigned)version;
    return 0;
}

/* Up to `version`, in one transaction. Another spurdbd may have done it while we waited for our turn. */
static int apply(struct store *store, unsigned version, struct err *err)
{
    int64_t found = 0;

    if (store_begin(store, err) < 0)
        return -(int)err->code;
    int code = current(store, &found, err);
    for (unsigned next = (unsigned)found + 1; code == 0 && next <= version; next++) {
        code = store_script(store, versions[next - 1].sql, err);
        if (code == 0)
            code = store_run(store, "INSERT INTO spur_schema(version) VALUES(?1)",
                             STORE_VALUES(STORE_INT(next)), err);
    }
    if (code == 0)
        code = store_commit(store, err);
    if (code < 0) {
        store_rollback(store);
        return err_wrap(err, "version %u of the tables", version);
    }
    log_info("schema.version", "now=%u", version);
    return 0;
}

int schema_settle(struct store *store, bool migrate, struct err *err)
{
    unsigned found;

    if (schema_found(store, &found, err) < 0)
        return -(int)err->code;
    if (found > schema_version())
        return err_set(err, ERR_INVALID,
                       "the database has version %u of the tables and this spurdbd knows %u: "
                       "it was written by a newer build",
                       found, schema_version());
    if (found > 0 && found < schema_version() && !migrate)
        return err_set(err, ERR_INVALID,
                       "the database has version %u of the tables and this spurdbd needs %u: "
                       "back it up, then start with --migrate",
                       found, schema_version());
    /* (2) A new database begins with the last. */
    for (unsigned version = found ? found + 1 : schema_version(); version <= schema_version();
         version++) {
        if (apply(store, version, err) < 0)
            return -(int)err->code;
    }
    return 0;
}
