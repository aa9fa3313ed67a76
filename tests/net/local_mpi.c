/* DiLoCo over MPI: four ranks train the pinned problem by minibatches and average every fifth step, in 4 bits with
   error feedback; rank 0 prints the distance of the anchor from the optimum. With an argument "lose", 11 of the
   first 60 averages are lost: some rank has a NaN in its model, which all ranks hear of, and training goes on from
   where it was.

   local_mpi SEED [lose] */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include "compgrad_sync.h"
#include "examples/transport_mpi.h"
#include "tests/pinned.h"
#include <stdio.h>
#include <string.h>

enum { N = PIN_D, STEPS = 600, PERIOD = 5, BATCH = 16, RANKS = 4 };

int main(int argc, char **argv) {
    static float x[N], grad[N];
    static char state[1 << 16], mem[1 << 18];
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const int lose = argc > 2;
    int bad = 0, lost = 0;
    cg_mpi mpi;
    cg_local_desc d = CG_ZERO;
    cg_exchange_desc e = CG_ZERO;
    cg_local local;
    MPI_Init(&argc, &argv);
    if (cg_mpi_open(&mpi, MPI_COMM_WORLD) || mpi.transport.size != RANKS) MPI_Abort(MPI_COMM_WORLD, 2);
    pin_make(1);
    d.ef.op = cg_absmax(4, 256), d.ef.n = N, d.period = PERIOD;
    d.outer_rate = 0.7f, d.outer_momentum = 0.9f, d.nesterov = 1;
    e.tag.seed = seed;
    if (cg_local_init(&local, &d, x, state, sizeof state) != CG_OK) MPI_Abort(MPI_COMM_WORLD, 3);
    for (uint64_t step = 0; step < STEPS; step++) {
        const int r = mpi.transport.rank, samples = PIN_NODES / RANKS * PIN_SAMPLES;
        const int first = r * samples +
            (int)(pin_mix(seed * 7919 + step * 64 + (uint64_t)r) % (uint64_t)(samples - BATCH));
        const uint64_t average = step / PERIOD;
        const int loses = lose && cg_local_due(&local, step) && average < 60 && average * 11 % 60 < 11;
        cg_status s;
        float kept;
        pin_gradient(first, BATCH, x, grad);
        for (int i = 0; i < N; i++) x[i] -= 0.5f * pin_rate((int)step) * grad[i];
        kept = x[5];
        if (loses && r == (int)(average % RANKS)) x[5] = NAN;
        s = cg_local_step(&local, &e, &mpi.transport, x, step, mem, sizeof mem, NULL);
        if (loses) lost += s == CG_E_PEER || s == CG_E_NONFINITE, x[5] = kept;
        bad |= loses ? s == CG_OK : s != CG_OK;
    }
    if (!mpi.transport.rank) {
        const float *models[PIN_NODES];
        double own;
        for (int k = 0; k < PIN_NODES; k++) models[k] = cg_local_anchor(&local);
        printf("%.9g %d\n", pin_score(models, &own), lost);
    }
    cg_mpi_close(&mpi);
    MPI_Finalize();
    return bad;
}
