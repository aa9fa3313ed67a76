/* mpicc -O2 -I. examples/mean_mpi.c -o mean_mpi && mpirun --allow-run-as-root --oversubscribe -n 2 mean_mpi

   A training loop in the manner of llm.c, whose parameters and gradients are one vector each with a list of tensors.
   The eight lines that end in a comment with a number make it a training over MPI. The options of mpirun are Open
   MPI's, for root in a container and for fewer cores than ranks. */

#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"   /* 1 */
#include "transport_mpi.h" /* 2 */

#include <stdio.h>
#include <stdlib.h>

enum { TENSORS = 3, STEPS = 200 };
typedef struct model {
    size_t param_sizes[TENSORS], num_parameters;
    float *params_memory, *grads_memory;
} model;
static float loss_of(const float *params, size_t n) { /* it is lowest where value i is i mod 7 */
    float loss = 0.0f;
    for (size_t i = 0; i < n; i++) {
        const float off = params[i] - (float)(i % 7);
        loss += off * off / (float)n;
    }
    return loss;
}
static void backward(model *m, uint32_t seed) { /* each rank has noise of its own in its gradient */
    for (size_t i = 0; i < m->num_parameters; i++) {
        seed = seed * 1664525u + 1013904223u;
        m->grads_memory[i] = 2.0f * (m->params_memory[i] - (float)(i % 7)) + (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
}
static void fail(const char *why) {
    fprintf(stderr, "%s\n", why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

int main(int argc, char **argv) {
    model m = { { 40000, 200, 1000 }, 41200, NULL, NULL };
    cg_mpi mpi;    /* 3 */
    cg_mean *mean; /* 4 */
    size_t bytes;
    m.params_memory = (float *)calloc(m.num_parameters, sizeof(float));
    m.grads_memory = (float *)calloc(m.num_parameters, sizeof(float));
    if (!m.params_memory || !m.grads_memory || MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
    if (cg_mpi_open(&mpi, MPI_COMM_WORLD) != MPI_SUCCESS) fail("MPI");                                  /* 5 */
    bytes = cg_mean_memory("", m.param_sizes, TENSORS, &mpi.transport, NULL, 0);                        /* 6 */
    if (cg_mean_open(&mean, "", m.param_sizes, TENSORS, &mpi.transport, malloc(bytes), bytes) != CG_OK) /* 7 */
        fail(cg_mean_why(mean));
    if (mpi.transport.rank == 0)
        printf("%d ranks train by the mean of their gradients, compressed.\n", mpi.transport.size);
    for (int step = 0; step < STEPS; step++) {
        backward(&m, (uint32_t)(step * 1000 + mpi.transport.rank));
        if (cg_mean_step_flat(mean, m.grads_memory) != CG_OK) fail(cg_mean_why(mean)); /* 8 */
        for (size_t i = 0; i < m.num_parameters; i++) m.params_memory[i] -= 0.02f * m.grads_memory[i];
    }
    if (mpi.transport.rank == 0) {
        char text[1000];
        cg_report report;
        cg_mean_report(mean, &report);
        if (cg_mean_describe(mean, text, sizeof text) != CG_OK) fail("text is too small");
        printf("%s%d ranks end with a loss of %.4f; rank 0 sent %lu bytes in a step.\n", text, mpi.transport.size,
            (double)loss_of(m.params_memory, m.num_parameters), (unsigned long)report.bytes_out);
    }
    free(mean);
    free(m.params_memory);
    free(m.grads_memory);
    cg_mpi_close(&mpi);
    MPI_Finalize();
    return 0;
}
