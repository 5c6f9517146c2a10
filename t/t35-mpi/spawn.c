/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.c - starts two more processes (MPI_Comm_spawn), or says that it could not
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_Comm parent, children;
    int rank, sum = 0, codes[2], len = 0;
    char text[MPI_MAX_ERROR_STRING] = "";

    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (parent != MPI_COMM_NULL) {
        int own = rank + 1;
        MPI_Reduce(&own, NULL, 1, MPI_INT, MPI_SUM, 0, parent);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int rc = MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children,
                            codes);
    if (rc != MPI_SUCCESS) {
        MPI_Error_string(rc, text, &len);
        printf("rank %d cannot: %s\n", rank, strtok(text, "\n"));
    } else {
        MPI_Reduce(NULL, &sum, 1, MPI_INT, MPI_SUM, MPI_ROOT, children);
        printf("rank %d: children say %d\n", rank, sum);
        MPI_Comm_disconnect(&children);
    }
    fflush(stdout);
    MPI_Finalize();
    return rc != MPI_SUCCESS ? 7 : 0;
}
