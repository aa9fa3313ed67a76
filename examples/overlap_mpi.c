/* mpicc -O2 -I. examples/overlap_mpi.c -o overlap_mpi && mpirun --allow-run-as-root --oversubscribe -n 2 overlap_mpi

   The two options are Open MPI's, for root in a container and for fewer cores than ranks; MPICH has neither, and needs
   none.

   A backward pass computes the gradients of twelve layers, the last layer first. Either all of them are exchanged when
   it is over, or each as soon as it is computed, during the computation of the next: between slices of the computation
   the program tests whether a message has arrived and posts the next one (cg_exchange_next, cg_mpi_io_start,
   cg_mpi_io_test). Compression and the copying inside MPI need the same core as the computation and cannot be hidden;
   waiting for the network can. On one machine messages hardly wait, so in the second half they are delayed as by a link
   of 12.5 MB/s and 0.1 ms (for another speed: overlap_mpi MB/s). It measures for ten to twenty seconds, and shows every
   step. */

#define COMPGRAD_IMPLEMENTATION
#include "transport_mpi.h"

#include <stdio.h>
#include <stdlib.h>

enum { LAYERS = 12, N = 1 << 18, SLICE = 1 << 14, WORK = 60, REPEATS = 6 };
typedef enum plan { COMPUTE_ONLY, AFTERWARDS, OVERLAPPED, PLANS } plan;

typedef struct wire { /* the layers that wait for their exchange, in order, one at a time */
    cg_mpi *mpi;
    float (*grad)[N];
    double speed;          /* bytes per second of the link to imitate, or 0 */
    int ready, next, busy; /* layers computed, layer to exchange, whether it is under way */
    cg_exchange_desc desc;
    cg_exchange_state state;
    cg_io io;
    cg_mpi_pending pending;
    double due; /* when the imitated link would be done with this message */
    void *mem;
    size_t bytes;
} wire;

static int stop(const cg_mpi *mpi, cg_status s) {
    fprintf(stderr, "rank %d: %s\n", mpi->transport.rank, cg_status_str(s));
    return MPI_Abort(MPI_COMM_WORLD, 1);
}

/* What the link of this rank carries for one cg_io: the larger of out and in. */
static double traffic(const cg_io *io, int size) {
    const double in = (double)io->in_bytes, out = (double)io->out_bytes;
    switch (io->kind) {
    case CG_IO_ALLREDUCE: return 2 * in * (size - 1) / size;
    case CG_IO_ALLGATHER: return out * (size - 1);
    case CG_IO_BROADCAST: return in;
    default: return out > in ? out : in;
    }
}

/* A step of the exchange was computed with status s: post the message that it asks for, or go on to the next layer. */
static void follow(wire *w, cg_status s) {
    w->busy = s == CG_AGAIN;
    if (s == CG_OK) w->next++;
    else if (s != CG_AGAIN) stop(w->mpi, s);
    else {
        w->due = w->speed > 0 ? MPI_Wtime() + 1e-4 + traffic(&w->io, w->mpi->transport.size) / w->speed : 0;
        cg_mpi_io_start(w->mpi, &w->io, &w->pending); /* a failure shows again in the test */
    }
}

/* Does what can be done without waiting; returns whether anything is left. */
static int progress(wire *w) {
    int done = 0, code;
    if (!w->busy && w->next < w->ready) {
        cg_status s;
        w->desc.tag.tensor = (uint32_t)w->next;
        s = cg_exchange_start(&w->state, &w->desc, &w->mpi->transport, w->grad[w->next], N, w->mem, w->bytes);
        follow(w, s == CG_OK ? cg_exchange_next(&w->state, 0, &w->io) : s);
    } else if (w->busy) {
        code = cg_mpi_io_test(&w->pending, &done);
        if (done && (w->speed <= 0 || MPI_Wtime() >= w->due)) follow(w, cg_exchange_next(&w->state, code, &w->io));
    }
    return w->busy || w->next < w->ready;
}

/* Stands for the backward pass of one layer: WORK multiply-adds for each value of its gradient. */
static void compute(float *g, int layer, int rank, size_t begin, size_t end) {
    size_t i;
    int k;
    for (i = begin; i < end; i++) {
        float v = (float)(((uint32_t)i * 2654435761u ^ (uint32_t)(rank * 7 + layer) * 40503u) >> 8) / 8388608.0f - 1.0f;
        for (k = 0; k < WORK; k++) v = v * 0.999f + 0.0001f;
        g[i] = v;
    }
}

/* One step of training; returns its time. */
static double step(wire *w, plan how) {
    double began;
    int layer;
    size_t i;
    MPI_Barrier(MPI_COMM_WORLD);
    began = MPI_Wtime();
    w->ready = w->next = w->busy = 0;
    for (layer = 0; layer < LAYERS; layer++) {
        for (i = 0; i < N; i += SLICE) {
            compute(w->grad[layer], layer, w->mpi->transport.rank, i, i + SLICE);
            if (how == OVERLAPPED) progress(w);
        }
        if (how == OVERLAPPED) w->ready = layer + 1;
    }
    if (how != COMPUTE_ONLY) w->ready = LAYERS;
    while (progress(w)) {}
    return MPI_Wtime() - began;
}

/* What an exchange adds to the computation, afterwards and overlapped. */
static void show(const char *name, const double *t) {
    printf("%s: compute %.1f ms, exchange afterwards %+.1f ms, overlapped %+.1f ms", name, 1e3 * t[COMPUTE_ONLY],
        1e3 * (t[AFTERWARDS] - t[COMPUTE_ONLY]), 1e3 * (t[OVERLAPPED] - t[COMPUTE_ONLY]));
}

/* The best of several steps, and whether all plans give the same means. */
static int compare(wire *w) {
    const int shows = w->mpi->transport.rank == 0;
    double best[PLANS] = { 1e9, 1e9, 1e9 }, took[PLANS], exposed, hidden;
    float(*first)[N] = (float(*)[N])malloc(sizeof *first * LAYERS);
    int i, how, wrong = 0;
    if (!first) stop(w->mpi, CG_E_MEMORY);
    for (i = 0; i < REPEATS; i++) {
        char name[32];
        for (how = 0; how < PLANS; how++) {
            took[how] = step(w, (plan)how);
            if (took[how] < best[how]) best[how] = took[how];
            if (how == AFTERWARDS) memcpy(first, w->grad, sizeof *first * LAYERS);
            if (how == OVERLAPPED) wrong |= memcmp(first, w->grad, sizeof *first * LAYERS) != 0;
        }
        snprintf(name, sizeof name, "step %d of %d", i + 1, (int)REPEATS);
        if (shows) show(name, took), puts(""), fflush(stdout);
    }
    free(first);
    exposed = best[AFTERWARDS] - best[COMPUTE_ONLY];
    hidden = best[AFTERWARDS] - best[OVERLAPPED];
    if (shows) {
        show("best", best);
        if (exposed < 0.05 * best[COMPUTE_ONLY]) printf(": too short an exchange to tell");
        else if (hidden < 0) printf(": none of the exchange hidden; is every core free for this?");
        else if (hidden > exposed) printf(": all of the exchange hidden, as far as the times here are exact");
        else printf(": %.0f %% of the exchange hidden", 100 * hidden / exposed);
        puts(wrong ? "; THE MEANS DIFFER" : "");
    }
    return wrong;
}

int main(int argc, char **argv) {
    static float grad[LAYERS][N];
    static wire w;
    cg_mpi mpi;
    double speed;
    int wrong;
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS || cg_mpi_open(&mpi, MPI_COMM_WORLD) != MPI_SUCCESS) return 1;
    speed = argc > 1 ? atof(argv[1]) * 1e6 : 12.5e6;
    w.mpi = &mpi;
    w.grad = grad;
    w.desc.op = cg_absmax(4, 512);
    w.desc.tag.seed = 42;
    w.bytes = cg_exchange_memory(&w.desc, &mpi.transport, N);
    w.mem = malloc(w.bytes);
    if (!w.mem) stop(&mpi, CG_E_MEMORY);
    if (mpi.transport.rank == 0) {
        printf(
            "Each of %d ranks computes the gradients of %d layers with %d values; they are exchanged in 4 bits each,\n"
            "after the computation or during it. First as fast as this machine moves messages.\n",
            mpi.transport.size, (int)LAYERS, (int)N);
        fflush(stdout);
    }
    wrong = compare(&w);
    w.speed = speed;
    if (speed > 0) {
        if (mpi.transport.rank == 0) printf("\nThen as if over %.1f MB/s.\n", speed / 1e6), fflush(stdout);
        wrong |= compare(&w);
    }
    free(w.mem);
    cg_mpi_close(&mpi);
    MPI_Finalize();
    return wrong;
}
