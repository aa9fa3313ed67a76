/* mpicc -O2 -I. examples/exchange_mpi.c -o exchange_mpi && mpirun --allow-run-as-root --oversubscribe -n 4 exchange_mpi

   Every rank has a gradient of its own; after every one of ten exchanges over MPI all have the same mean of the largest
   1 % of each, in 4 bits. The two options are Open MPI's, for root in a container and for fewer cores than ranks; MPICH
   has neither, and needs none. */

#define COMPGRAD_IMPLEMENTATION
#include "transport_mpi.h"

#include <stdio.h>
#include <stdlib.h>

enum { N = 1000000, STEPS = 10 };

/* A few large values that the ranks share, under small noise that they do not. */
static void make_gradient(float *g, unsigned rank, unsigned step) {
    uint32_t signal = 1 + step, noise = 100 + 1000 * step + rank;
    int i;
    for (i = 0; i < N; i++) {
        signal = signal * 1664525u + 1013904223u;
        noise = noise * 1664525u + 1013904223u;
        g[i] = (float)(noise >> 8) / 16777216.0f - 0.5f;
        if (signal >> 24 == 0) g[i] += (float)(signal & 0xffffu) / 1024.0f - 32.0f;
    }
}

/* How many ranks have other bits than rank 0, by a hash of them; or -1. */
static int disagreeing(const cg_transport *t, const float *x) {
    uint64_t hash = 14695981039346656037u, *all = (uint64_t *)malloc((size_t)t->size * sizeof *all);
    int i, code, differ = 0;
    for (i = 0; i < N; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], 4);
        hash = (hash ^ bits) * 1099511628211u;
    }
    code = all ? t->allgather(t->user, &hash, all, sizeof hash) : 1;
    for (i = 0; !code && i < t->size; i++) differ += all[i] != all[0];
    free(all);
    return code ? -1 : differ;
}

static int run(cg_mpi *mpi) {
    const cg_transport *t = &mpi->transport;
    float *grad = (float *)malloc(N * sizeof *grad);
    cg_exchange_desc desc = CG_ZERO;
    cg_report report = CG_ZERO;
    uint64_t received = 0;
    size_t bytes;
    double seconds = 0;
    void *mem;
    int differ = 0;

    desc.op = cg_then(cg_topk(0.01f), cg_absmax(4, 512));
    desc.tag.seed = 42;
    bytes = cg_exchange_memory(&desc, t, N);
    mem = malloc(bytes);
    if (!grad || !mem) return 1;
    if (t->rank == 0) {
        printf("%d ranks exchange the 1 %% largest of %d values each, in 4 bits, %d times.\n", t->size, (int)N,
            (int)STEPS);
        fflush(stdout);
    }
    for (desc.tag.step = 0; desc.tag.step < STEPS; desc.tag.step++) {
        cg_status s;
        make_gradient(grad, (unsigned)t->rank, (unsigned)desc.tag.step);
        seconds -= MPI_Wtime();
        s = cg_exchange(&desc, t, grad, N, mem, bytes, &report);
        seconds += MPI_Wtime();
        if (s != CG_OK) {
            char text[200] = "";
            if (s == CG_E_TRANSPORT) cg_mpi_error(report.code, text, sizeof text);
            fprintf(stderr, "rank %d: %s (%s) %s\n", t->rank, cg_status_str(s), report.why ? report.why : "", text);
            return 1;
        }
        received += report.bytes_in;
        differ |= disagreeing(t, grad);
    }
    if (t->rank == 0)
        printf("A rank received %.1f KB per step instead of %.1f KB, %.2f ms each; ranks with other bits: %d\n",
            (double)received / STEPS / 1e3, 2.0 * (t->size - 1) / t->size * N * 4 / 1e3 /* a ring of dense floats */,
            1e3 * seconds / STEPS, differ);
    free(mem);
    free(grad);
    return differ != 0;
}

int main(int argc, char **argv) {
    cg_mpi mpi;
    int failed;
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS || cg_mpi_open(&mpi, MPI_COMM_WORLD) != MPI_SUCCESS) return 1;
    failed = run(&mpi);
    if (failed) MPI_Abort(MPI_COMM_WORLD, 1); /* or the others might wait for this rank */
    cg_mpi_close(&mpi);
    MPI_Finalize();
    return 0;
}
