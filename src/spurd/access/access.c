/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.c - who may ask this node about a job, and what is written when somebody may not
 *
 * (1) The owner of the job or root, by a token or by the node's socket. A token that the controller gave
 *     for one job is good for that job on the node that it names, and nowhere else.
 * (2) Who comes without a name shows the managing node's proof, made with this node's key of the grant.
 * (3) Every refusal is in the log with who, what and why.
 */
#include "spurd/access/access.h"
#include "sys/digest.h"

#include "sys/log.h"

int step_check_owner(const struct rpc_call *call, const struct attempt *held, struct err *err)
{
    const struct rpc_identity *who = rpc_call_identity(call);
    const struct agent *agent = rpc_call_ctx(call);

    if (who->job && who->job != held->job) /* (1) */
        return err_set(err, ERR_PERMISSION, "this token is for job %u, not for job %u", who->job,
                       held->job);
    if (who->job && !str_eq(who->job_node, agent->name))
        return err_set(err, ERR_PERMISSION, "this token is for node %s, not for node %s",
                       who->job_node, agent->name);
    if (!held->grant || !held->grant->owner || !who->has_uid ||
        (who->uid != held->grant->owner->uid && who->uid != 0))
        return err_code(err, ERR_PERMISSION);
    return 0;
}

bool step_is_owner(const struct rpc_call *call, const struct attempt *held)
{
    return step_check_owner(call, held, NULL) == 0;
}

/* Nested, so that nobody can append to what was proved. */
void step_prove(const ProtobufCBinaryData *key, const void *bytes, size_t len,
                uint8_t out[STEP_PROOF_BYTES])
{
    uint8_t inner[DIGEST_BYTES];
    struct digest *digest = digest_begin();

    digest_add(digest, key->data, key->len);
    digest_add(digest, bytes, len);
    digest_end(digest, inner);
    digest = digest_begin();
    digest_add(digest, key->data, key->len);
    digest_add(digest, inner, sizeof(inner));
    digest_end(digest, out);
}

bool step_is_proved(const Grant *grant, const ProtobufCBinaryData *layout,
                    const ProtobufCBinaryData *proof)
{
    uint8_t expected[STEP_PROOF_BYTES], differs = 0;

    if (!grant->has_step_key || grant->step_key.len == 0 || proof->len != sizeof(expected))
        return false;
    step_prove(&grant->step_key, layout->data, layout->len, expected);
    for (size_t i = 0; i < sizeof(expected); i++)
        differs |= expected[i] ^ proof->data[i];
    return differs == 0;
}

/* (3) */
void step_refused(const struct rpc_call *call, const char *what, uint32_t job,
                  const struct err *err)
{
    const struct rpc_identity *who = rpc_call_identity(call);

    if (who->has_uid)
        log_warn("access.refused", "what=%s job=%u uid=%u by=%s why=%s", what, job, who->uid,
                 rpc_how_name(who->how), err->text);
    else
        log_warn("access.refused", "what=%s job=%u by=%s why=%s", what, job, rpc_how_name(who->how),
                 err->text);
}
