/* SPDX-License-Identifier: Apache-2.0 */
/*
 * methods.c - who may call what of spurdbd
 *
 * One row per method: the roles that may call it, and who answers. A call without a row is refused
 * by rpc/. Where the object matters, the handler looks at it; the last column says so.
 */
#include "spurdbd/serve.h"

enum { PEOPLE = RPC_USER };

static const struct row {
    const char *path;
    unsigned roles;
    enum rpc_kind kind;
    const ProtobufCMessageDescriptor *request, *reply;
    void (*handle)(struct rpc_call *call, const ProtobufCMessage *request);
    const char *object; /* what the handler checks beyond the role; NULL: nothing */
} rows[] = {
#define A "/spur.Accounting/"
    { A "Feed", RPC_CONTROLLER, RPC_BIDI, &feed_from_leader__descriptor,
      &feed_to_leader__descriptor, dbd_on_feed, NULL },
    { A "ListHistory", PEOPLE, RPC_SERVER_STREAM, &list_history_request__descriptor,
      &list_history_reply__descriptor, dbd_on_list,
      "others' jobs: as private_data of the cluster says; script and environment: owner or "
      "administrator" },
    { A "Status", PEOPLE, RPC_UNARY, &acct_status_request__descriptor,
      &acct_status_reply__descriptor, dbd_on_status, NULL },
    { A "ListRecords", PEOPLE, RPC_UNARY, &list_records_request__descriptor,
      &list_records_reply__descriptor, dbd_on_records, "as private_data of the clusters says" },
    { A "FixRunaway", PEOPLE, RPC_UNARY, &fix_runaway_request__descriptor,
      &fix_runaway_reply__descriptor, dbd_on_runaway, "operators" },
    { A "Repair", PEOPLE, RPC_UNARY, &repair_request__descriptor, &repair_reply__descriptor,
      dbd_on_repair, "administrators" },
#undef A
#define A "/spur.Accounts/"
    { A "List", PEOPLE, RPC_UNARY, &list_tables_request__descriptor, &list_tables_reply__descriptor,
      dbd_on_tables, "what private_data keeps from others" },
    { A "Change", PEOPLE, RPC_UNARY, &change_tables_request__descriptor,
      &change_tables_reply__descriptor, dbd_on_change,
      "each edit: the rules in tables_check.c (operator, administrator, coordinator)" },
    { A "Adopt", PEOPLE, RPC_UNARY, &adopt_request__descriptor, &adopt_reply__descriptor,
      dbd_on_adopt, "administrators" },
#undef A
#define A "/spur.Reports/"
    { A "Sum", PEOPLE, RPC_UNARY, &usage_request__descriptor, &usage_reply__descriptor,
      dbd_on_usage, "use of others and of clusters: as private_data of the cluster says" },
    { A "Sizes", PEOPLE, RPC_UNARY, &sizes_request__descriptor, &sizes_reply__descriptor,
      dbd_on_sizes, "jobs of others: as private_data of the cluster says" },
    { A "Reservations", PEOPLE, RPC_UNARY, &reservations_request__descriptor,
      &reservations_reply__descriptor, dbd_on_reservations,
      "reservations: as private_data of the cluster says" },
    { A "Recompute", PEOPLE, RPC_UNARY, &recompute_request__descriptor,
      &recompute_reply__descriptor, dbd_on_recompute, "administrators of the cluster" },
#undef A
};

static struct rpc_method methods[ARRAY_LEN(rows)];

int dbd_methods(struct dbd *dbd, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        methods[i] = (struct rpc_method){
            .path = rows[i].path,
            .roles = rows[i].roles,
            .kind = rows[i].kind,
            .request = rows[i].request,
            .reply = rows[i].reply,
            .handle = rows[i].handle,
        };
    }
    return rpc_server_add(dbd->rpc, methods, ARRAY_LEN(rows), err);
}
