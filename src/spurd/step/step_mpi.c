/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_mpi.c - which process manager the tasks of a step get
 *
 * The managing node decides, and writes it into the layout: all nodes of a step do the same.
 */
#include "spur_pmix.h"
#include "spurd/step/step.h"

static const struct {
    const char *name, *is; /* NULL: none */
} kinds[] = {
    { "none", NULL },
    { "pmi2", "pmi2" },
    { "pmix", "pmix" },
};

/* "pmix_v4" is the same: there is one version of PMIx, the one that spurstepd-pmix was built with. */
static bool is_kind(const char *name, const char *asked)
{
    return str_ieq(name, asked) || (str_eq(name, "pmix") && str_ieq(asked, SPUR_PMIX_NAME));
}

int step_mpi(const struct agent *agent, const StepRequest *request, const char **out,
             struct err *err)
{
    const Config *config = agent_common(agent);
    const char *asked = request->mpi;

    *out = NULL;
    if (str_is_empty(asked)) /* a shell of salloc starts MPI programs, it is none */
        asked = request->interactive ? NULL : config ? config->mpi_default : NULL;
    if (str_is_empty(asked))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (!is_kind(kinds[i].name, asked))
            continue;
        if (str_eq(kinds[i].is, "pmix") && !agent->pmix)
            return err_set(
                err, ERR_UNSUPPORTED,
                "--mpi=%s: node %s has no spurstepd-pmix (Spur was built without libpmix)", asked,
                agent->name);
        *out = kinds[i].is;
        return 0;
    }
    return err_set(err, ERR_INVALID, "Invalid MPI type '%s', --mpi=list for acceptable types",
                   asked);
}
