/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.c - an MPI program for tests: "ring" passes a token around and adds up; "abort CODE" has the last
 * rank abort while the others wait for it, "kill RANK" has that one killed
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank, size, sum = 0, token = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2 && strcmp(argv[1], "abort") == 0) {
        if (rank == size - 1)
            MPI_Abort(MPI_COMM_WORLD, atoi(argv[2]));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (argc > 2 && strcmp(argv[1], "kill") == 0) {
        if (rank == atoi(argv[2]))
            raise(SIGKILL);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank > 0)
        MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    token++;
    if (rank < size - 1)
        MPI_Send(&token, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d token %d sum %d on %s\n", rank, size, token, sum,
           getenv("SLURMD_NODENAME") ? getenv("SLURMD_NODENAME") : "?");
    MPI_Finalize();
    return 0;
}
