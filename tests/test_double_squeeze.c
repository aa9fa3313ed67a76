/* DoubleSqueeze is CG_ROUTE_SERVER (or SCATTER) with desc.back and a carry: the identity of its authors' slides,
   x_t = x_0 - gamma * sum of mean g + gamma * delta_t, with delta_t the mean of the workers' residuals and the
   server's, on the pinned problem with 8 workers, and that it trains. */
#include "examples/transport_threads.h"
#include "greatest.h"
#include "ran.h"
#include "tier.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include "pinned.h"
#include <stdio.h>

enum { RANKS = PIN_NODES, N = PIN_D, MEM = 1 << 17 };
static struct {
    const char *op;
    uint32_t route;
    int steps;
    double worst;
} job;
static float x[RANKS][N], grad[RANKS][N], work[RANKS][N], residual[RANKS][N], mem[RANKS][MEM / 4];
static cg_ef efs[RANKS];
static double gradients[N];

/* What has not reached the models: the mean of the residuals and the carries, which together cover the vector once. */
static void compare(void) {
    for (size_t i = 0; i < N; i++) {
        double delta = 0;
        for (int r = 0; r < RANKS; r++) {
            delta += (double)residual[r][i] / (double)cg_ef_scale(&efs[r]) / RANKS;
            if (efs[r].carry && i >= efs[r].carry_first && i - efs[r].carry_first < efs[r].desc.carry)
                delta += (double)efs[r].carry[i - efs[r].carry_first];
        }
        job.worst = fmax(
            job.worst, fabs((double)x[0][i] - (0 - (double)pin_rate(0) * gradients[i] + (double)pin_rate(0) * delta)));
    }
}
static int rank_of(cg_threads_world *world, int rank, void *user) {
    const cg_transport net = cg_threads_transport(world, rank, CG_THREADS_ALL);
    cg_exchange_desc d = CG_ZERO;
    cg_ef_desc e = CG_ZERO;
    cg_op op;
    void *state;
    float wait = 0;
    (void)user;
    NEED(cg_op_parse(&op, job.op) == CG_OK);
    e.n = N, e.op = d.op = op;
    d.back = &op, d.route = job.route;
    e.carry = cg_exchange_carry(&d, &net, N);
    state = malloc(cg_ef_memory(&e));
    NEED(cg_ef_init(&efs[rank], &e, state, cg_ef_memory(&e)) == CG_OK);
    memset(x[rank], 0, sizeof x[rank]);
    for (int t = 0; t < job.steps; t++) {
        d.tag.step = (uint64_t)t;
        pin_gradient(rank * PIN_SAMPLES, PIN_SAMPLES, x[rank], grad[rank]);
        memcpy(work[rank], grad[rank], sizeof grad[rank]);
        NEED(cg_ef_exchange(&efs[rank], &d, &net, work[rank], mem[rank], MEM, NULL) == CG_OK);
        for (size_t i = 0; i < N; i++) x[rank][i] -= pin_rate(0) * work[rank][i];
        NEED(cg_ef_read(&efs[rank], CG_EF_ERROR, residual[rank], N) == CG_OK);
        NEED(net.allreduce(net.user, &wait, 1) == 0); /* all have their residuals */
        if (!rank) {
            for (size_t i = 0; i < N; i++)
                for (int r = 0; r < RANKS; r++) gradients[i] += (double)grad[r][i] / RANKS;
            compare();
        }
        NEED(net.allreduce(net.user, &wait, 1) == 0);
        NEED(!memcmp(x[0], x[rank], sizeof x[0]));
    }
    NEED(net.allreduce(net.user, &wait, 1) == 0);
    free(state);
    return 0;
}
static double run(const char *op, uint32_t route, int steps) {
    const float *models[RANKS];
    double own;
    job.op = op, job.route = route, job.steps = steps, job.worst = 0;
    memset(gradients, 0, sizeof gradients);
    const int code = cg_threads_run(RANKS, rank_of, NULL);
    if (code) return fprintf(stderr, "%s: line %d\n", op, code - 10000), -1;
    for (int r = 0; r < RANKS; r++) models[r] = x[r];
    return pin_score(models, &own);
}
TEST the_identity_of_double_squeeze(void) {
    static const char *const ops[] = { "onebit", "topk:0.01", "absmax:2:256:nearest" };
    const int steps = long_test() ? 1500 : 200;
    double dense, score;
    char note[200];
    pin_make(1);
    dense = run("dense", CG_ROUTE_SERVER, steps);
    for (size_t k = 0; k < 3; k++)
        for (int scatter = 0; scatter < 2; scatter++) {
            score = run(ops[k], scatter ? CG_ROUTE_SCATTER : CG_ROUTE_SERVER, steps);
            snprintf(note, sizeof note, "%s: off by %g; (f - f*) is %.3g of its first, %.3g dense", ops[k], job.worst,
                score, dense);
            if (!(score >= 0 && job.worst < 2e-5)) FAILm(note);
            if (!(score < 2 * dense + 0.02)) FAILm(note);
        }
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_TEST(the_identity_of_double_squeeze);
    GREATEST_MAIN_END();
}
