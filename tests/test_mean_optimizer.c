/* What cg_mean chooses where its line says which optimizer the mean is for, that it says so, and that it is what
   METHODS asks for: models for Adam, filtered momentum for SGD that keeps its own, samples of each rank's own. */
#include "mean_net.h"
#include "greatest.h"
#include "compgrad_ef.h"
#include <math.h>

enum { RANKS = 4, N = 4000, MEM = 1 << 21 };
static char said[2000];
static cg_transport alone(void) {
    cg_transport t = CG_ZERO;
    t.size = 1;
    return t;
}
/* The first line of the description; NULL: refused, and said has why. */
static const char *chosen(const char *config) {
    static char mem[MEM];
    const size_t n = N;
    const cg_transport t = alone();
    cg_mean *m;
    if (cg_mean_open(&m, config, &n, 1, &t, mem, sizeof mem) != CG_OK) {
        snprintf(said, sizeof said, "%s", cg_mean_why(m));
        return NULL;
    }
    if (cg_mean_describe(m, said, sizeof said) != CG_OK) return NULL;
    *strchr(said, '\n') = 0;
    return said;
}
TEST chooses(const char *config, const char *want) {
    const char *have = chosen(config);
    char again[400];
    ASSERTm(said, have);
    ASSERT_STR_EQ(want, have);
    snprintf(again, sizeof again, "%s", want); /* what was chosen opens the same */
    ASSERT(chosen(again));
    ASSERT_STR_EQ(want, said);
    PASS();
}
TEST refuses(const char *config, const char *why) {
    ASSERT_EQ(NULL, (const void *)chosen(config));
    ASSERTm(said, strstr(said, why) != NULL);
    PASS();
}
/* The comments say what was chosen, and what is left to the user. */
TEST says(const char *config, const char *what) {
    static char mem[MEM];
    const size_t n = N;
    const cg_transport t = alone();
    cg_mean *m;
    ASSERT_EQ(CG_OK, cg_mean_open(&m, config, &n, 1, &t, mem, sizeof mem));
    ASSERT_EQ(CG_OK, cg_mean_describe(m, said, sizeof said));
    ASSERTm(said, strstr(said, what) != NULL);
    PASS();
}

/* ---- four ranks: optimizers of their own, beside plain loops ---- */

typedef struct training {
    const char *config;
    int models; /* cg_mean_step takes models, and Adam steps before it; otherwise gradients, and the optimizer behind */
    float x[RANKS][N];
    double loss, distance; /* mean square of x - target at the end; between ranks */
    char why[RANKS][600];
} training;
static float target(int i) { return (float)((i * 7919) % 1000) / 500.0f - 1.0f; }
static int train(net *w, int rank, void *user) {
    training *job = (training *)user;
    static float g[RANKS][N], m[RANKS][N], v[RANKS][N];
    static char mem[RANKS][MEM];
    net_end end;
    const cg_transport t = net_transport(&end, w, rank);
    const size_t n = N;
    float *x = job->x[rank];
    uint64_t state = (uint64_t)rank + 1;
    cg_mean *mean;
    if (cg_mean_open(&mean, job->config, &n, 1, &t, mem[rank], MEM) != CG_OK) {
        fprintf(stderr, "%s\n", cg_mean_why(mean));
        return 1;
    }
    memset(m[rank], 0, sizeof m[rank]);
    memset(v[rank], 0, sizeof v[rank]);
    memset(x, 0, sizeof job->x[rank]);
    for (int step = 0; step < 300; step++) {
        float *list[1];
        for (int i = 0; i < N; i++) { /* a quadratic with noise, as scattered in scale as networks */
            const float scale = i % 10 ? 0.02f : 1.0f;
            state = state * 6364136223846793005u + 1442695040888963407u;
            g[rank][i] = scale * (x[i] - target(i) + (float)(state >> 40) / (float)(1 << 23) - 1.0f);
        }
        list[0] = job->models ? x : g[rank];
        if (!job->models && cg_mean_step(mean, list) != CG_OK) return 2;
        for (int i = 0; i < N; i++) {
            m[rank][i] = 0.9f * m[rank][i] + 0.1f * g[rank][i];
            v[rank][i] = 0.99f * v[rank][i] + 0.01f * g[rank][i] * g[rank][i];
            x[i] -= 0.02f * (m[rank][i] / (1 - powf(0.9f, (float)step + 1))) /
                (sqrtf(v[rank][i] / (1 - powf(0.99f, (float)step + 1))) + 1e-8f);
        }
        if (job->models && cg_mean_step(mean, list) != CG_OK) return 3;
    }
    snprintf(job->why[rank], sizeof job->why[rank], "%s", cg_mean_why(mean));
    return 0;
}
static int run(training *job, const char *config, int models) {
    static net w;
    int code;
    job->config = config;
    job->models = models;
    job->loss = job->distance = 0;
    code = net_run(&w, RANKS, train, job);
    for (int i = 0; i < N; i++) {
        job->loss += pow((double)job->x[0][i] - (double)target(i), 2) / N;
        for (int r = 1; r < RANKS; r++) job->distance += fabs((double)job->x[r][i] - (double)job->x[0][i]);
    }
    return code;
}
/* Adam with models loses little, top-k before it much, and cg_mean_why says so of the one and not of the other. */
TEST adam_wants_models(void) {
    static training dense, models, topk;
    ASSERT_EQ(0, run(&dense, "dense memory=classic optimizer=adam", 0));
    ASSERT_EQ(0, run(&models, "randk:0.2|eden:1 optimizer=adam", 1));
    ASSERT_EQ(0, run(&topk, "topk:0.005 memory=classic optimizer=adam", 0));
    snprintf(said, sizeof said, "loss %g dense, %g models, %g topk", dense.loss, models.loss, topk.loss);
    ASSERTm(said, dense.distance == 0 && models.distance == 0 && topk.distance == 0);
    ASSERTm(said, models.loss < 2 * dense.loss + 0.005);
    ASSERTm(said, topk.loss > 2 * models.loss);
    ASSERT_STR_EQ("ok", dense.why[0]);
    ASSERT_STR_EQ("ok", models.why[0]);
    ASSERTm(
        topk.why[0], strstr(topk.why[0], "gradients waiting in its residual") && strstr(topk.why[0], "optimizer=adam"));
    PASS();
}

/* A rank whose mean is new has no base: nobody goes on before all have called cg_mean_agree, and then it has the
   others' base and their number of steps. */
typedef struct joining {
    float x[RANKS][N];
    int code[RANKS];
} joining;
static int join(net *w, int rank, void *user) {
    joining *job = (joining *)user;
    static char mem[RANKS][MEM];
    const char *config = "randk:0.3|eden:2 optimizer=adam seed=3";
    net_end end;
    const cg_transport t = net_transport(&end, w, rank);
    const size_t n = N;
    float *x = job->x[rank];
    cg_mean *mean;
    for (int i = 0; i < N; i++) x[i] = target(i);
    if (cg_mean_open(&mean, config, &n, 1, &t, mem[rank], MEM) != CG_OK) return 1;
    for (int step = 0; step < 6; step++) {
        for (int i = 0; i < N; i++) x[i] += 0.01f * (float)((i + rank * step) % 7 - 3);
        if (step == 3 && rank == 0 && cg_mean_open(&mean, config, &n, 1, &t, mem[rank], MEM) != CG_OK) return 2;
        if (step == 3) {
            float *list[1] = { x };
            if (cg_mean_step(mean, list) != CG_E_MISMATCH || !strstr(cg_mean_why(mean), "cg_mean_agree")) return 3;
            if (cg_mean_agree(mean) != CG_OK || cg_mean_steps(mean) != 3) return 4;
            if (rank == 0 && cg_ef_read(cg_mean_state(mean, 0), CG_EF_RECEIVED, x, n) != CG_OK) return 5;
        }
        if (cg_mean_step_flat(mean, x) != CG_OK) return 6;
        job->code[rank] = step;
    }
    return 0;
}
TEST a_rank_joins(void) {
    static joining job;
    static net w;
    ASSERT_EQ(0, net_run(&w, RANKS, join, &job));
    for (int r = 0; r < RANKS; r++) {
        ASSERT_EQ(5, job.code[r]);
        ASSERT_MEM_EQ(job.x[0], job.x[r], sizeof job.x[0]);
        for (int i = 0; i < N; i++) ASSERT(fabs((double)job.x[r][i] - (double)target(i)) < 2); /* not near 0 again */
    }
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    (void)net_meet; /* nobody fails here */
    RUN_TESTp(chooses, "absmax:4:512 optimizer=adam", "absmax:4:512 memory=difference optimizer=adam");
    RUN_TESTp(chooses, "randk:0.1|eden:1 optimizer=adam",
        "randk:0.1:private|rotate:3:private|lloyd:1 memory=difference optimizer=adam");
    RUN_TESTp(chooses, "wangni:0.01|efsign|golomb memory=difference:sqrt",
        "wangni:0.01|efsign|golomb memory=difference:sqrt");
    RUN_TESTp(chooses, "randk:0.1|eden:1 memory=none", "randk:0.1:private|rotate:3:private|lloyd:1 memory=none");
    RUN_TESTp(chooses, "randk:0.1 memory=none route=linear", "randk:0.1 memory=none route=linear");
    RUN_TESTp(chooses, "randk:0.1 memory=classic", "randk:0.1 memory=classic");
    RUN_TESTp(chooses, "optimizer=adam", "rate:0.4:unbiased memory=difference small=1024 optimizer=adam");
    RUN_TESTp(chooses, "eden:4 optimizer=momentum:0.9",
        "rotate:3:private|lloyd:4 memory=filtered:0.9 optimizer=momentum:0.9");
    RUN_TESTp(
        chooses, "optimizer=momentum:0.9", "rate:0.4:unbiased memory=filtered:0.9 small=1024 optimizer=momentum:0.9");
    RUN_TESTp(chooses, "topk:0.01 optimizer=momentum:0.9", "topk:0.01 memory=momentum:0.9 optimizer=momentum:0.9");
    RUN_TESTp(chooses, "topk:0.01 optimizer=sgd", "topk:0.01 memory=classic optimizer=sgd");
    RUN_TESTp(chooses, "topk:0.01 memory=classic optimizer=adam", "topk:0.01 memory=classic optimizer=adam");
    RUN_TESTp(chooses, "memory=none", "rate:0.4:unbiased memory=none small=1024");
    RUN_TESTp(chooses, "memory=filtered:0.5", "rate:0.4:unbiased memory=filtered:0.5 small=1024");
    RUN_TESTp(refuses, "topk:0.01 optimizer=adam", "wangni:0.01|efsign|golomb");
    RUN_TESTp(refuses, "topk:0.01 memory=filtered:0.9", "randk:0.03:private|eden:1");
    RUN_TESTp(refuses, "eden:1 memory=filtered", "momentum");
    RUN_TESTp(refuses, "eden:1 memory=difference fold=sum", "CG_FOLD_MEAN");
    RUN_TESTp(refuses, "eden:1 memory=difference clip=1", "before the optimizer");
    RUN_TESTp(says, "optimizer=adam", "takes the models");
    RUN_TESTp(says, "optimizer=momentum:0.9", "filtered");
    RUN_TESTp(says, "topk:0.01 optimizer=sgd", "classic memory");
    RUN_TEST(adam_wants_models);
    RUN_TEST(a_rank_joins);
    GREATEST_MAIN_END();
}
