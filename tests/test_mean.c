/* cg_mean: what its line of text says, that it steps as cg_ef_exchange does, that whatever opens can step, and that a
   step that fails at any message has changed nothing. */
#define TIER_SPARED
#include "mean_net.h"
#include "greatest.h"
#include "tier.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"

enum { RANKS = 3, MOST = 1200 };
static float value(int rank, size_t tensor, size_t i, uint64_t step) {
    uint32_t h = (uint32_t)i * 2654435761u + (uint32_t)rank * 40503u + (uint32_t)tensor * 9176u + (uint32_t)step * 977u;
    h = (h ^ h >> 15) * 2246822519u;
    h ^= h >> 13;
    return (float)((int32_t)(h >> 8 & 0xffff) - 32768) / 32768.0f * (i % 17 == 0 ? 8.0f : 1.0f);
}
/* A refusal must have a sentence; a message of net_run is the line. */
#define NEED(cond)                                  \
  do {                                              \
    if (!(cond)) {                                  \
      printf("rank %d, line %d\n", rank, __LINE__); \
      exit(1);                                      \
    }                                               \
  } while (0)

/* ---- every operator by every kind, route and fold ---- */

static const char *const ops[] = { "dense", "f16", "absmax:4:512", "absmax:4:512:nearest", "absmax:8:64|gamma",
    "qsgd:4", "sign", "efsign", "onebit:64", "topk:0.05", "topk:k=9", "topk:0.1|absmax:4:64", "dgc:0.05", "mstopk:0.05",
    "sidco:0.05", "wangni:0.1", "randk:0.1", "permk:3", "permk:2", "eden:2", "terngrad", "stc:0.05", "adacomp:50",
    "adaq:0.05", "chunked:64:0.1", "threshold:0.9", "lowrank:2:30:40", "atomo:2:30:40", "variance:1.5", "given",
    "natural", "strom:1", "randk:0.3|rotate:2|absmax:4:64", "user:200:0:0:0", "huffman", "lowrank:2", "bf16|huffman" };
static const char *const kinds[] = { "classic", "classic:8bit", "loco", "scalecom", "ecq", "momentum:0.9",
    "momentum:0.5:nesterov", "signum:0.9", "variance", "ef21", "ef21:0.9", "diana", "laq:0.1", "onebit_adam:0.9",
    "none", "none:biased", "filtered:0.9", "difference", "difference:sqrt" };
enum { OPS = sizeof ops / sizeof *ops, KINDS = sizeof kinds / sizeof *kinds, TENSORS = 3 };
static const cg_tensor shapes[TENSORS] = { { "w", 1200, 30 }, { "b", 33, 0 }, { NULL, 2, 0 } };

typedef struct all_job {
    cg_status opened[RANKS];
    int refused, stepped, compared;
    size_t longest;
} all_job;
/* The same by hand: a state for every tensor. */
typedef struct by_hand {
    cg_ef ef[TENSORS];
    void *state[TENSORS];
    cg_exchange_desc desc;
} by_hand;
static void by_hand_open(by_hand *h, const cg_mean *m, const cg_transport *t, uint32_t route, uint32_t fold) {
    memset(h, 0, sizeof *h);
    h->desc.route = route;
    h->desc.fold = fold;
    h->desc.tag.seed = 5;
    for (size_t i = 0; i < TENSORS; i++) {
        cg_ef_desc d = cg_mean_state(m, i)->desc; /* operator, kind and its parameters */
        cg_exchange_desc x = h->desc;
        cg_op op;
        d.carry = 0;
        op = d.op;
        if (op.sample.id && d.kind != CG_EF_DIANA && d.kind != CG_EF_SIGNUM && d.kind < CG_EF_NONE)
            op = cg_unscaled(op);
        x.op = op;
        x.tag.tensor = (uint32_t)i;
        d.carry = d.kind < CG_EF_NONE ? cg_exchange_carry(&x, t, d.n) : 0;
        h->state[i] = malloc(cg_ef_memory(&d));
        if (cg_ef_init(&h->ef[i], &d, h->state[i], cg_ef_memory(&d)) != CG_OK) abort();
    }
}
static int by_hand_step(
    by_hand *h, const cg_transport *t, float *const *x, const float *const *variances, uint64_t step) {
    for (size_t i = 0; i < TENSORS; i++) {
        cg_exchange_desc d = h->desc;
        cg_extra side = CG_ZERO;
        size_t bytes;
        void *mem;
        cg_status s;
        d.tag.step = step;
        d.tag.tensor = (uint32_t)i;
        if (h->ef[i].desc.kind == CG_EF_VARIANCE) {
            side.aux = variances[i];
            d.side = &side;
        }
        bytes = cg_ef_exchange_memory(&h->ef[i], &d, t);
        mem = malloc(bytes + 1);
        s = cg_ef_exchange(&h->ef[i], &d, t, x[i], mem, bytes, NULL);
        free(mem);
        if (s != CG_OK) return (int)s;
    }
    return 0;
}
static int all_worker(net *w, int rank, void *user) {
    static float grad[RANKS][TENSORS][MOST], hand[RANKS][TENSORS][MOST], error[RANKS][2][MOST], vary[RANKS][MOST];
    all_job *job = (all_job *)user;
    net_end end;
    cg_transport t = net_transport(&end, w, rank);
    unsigned turn = 0;
    for (size_t i = 0; i < MOST; i++) vary[rank][i] = 0.01f;
    for (size_t o = 0; o < OPS; o++)
        for (size_t k = 0; k < KINDS; k++)
            for (uint32_t route = 0; cg_route_name(route); route++)
                for (uint32_t fold = 0; cg_fold_name(fold); fold++) {
                    char config[200], why[600];
                    const float *variances[TENSORS] = { vary[rank], vary[rank], vary[rank] };
                    float *x[TENSORS], *y[TENSORS];
                    size_t bytes;
                    void *mem;
                    cg_mean *m;
                    cg_status s;
                    by_hand h;
                    if (spared(&turn, 11)) continue;
                    sprintf(config, "%s memory=%s route=%s fold=%s seed=5", ops[o], kinds[k], cg_route_name(route),
                        cg_fold_name(fold));
                    bytes = cg_mean_memory_of(config, shapes, TENSORS, &t, why, sizeof why);
                    mem = malloc(bytes + 4096);
                    s = cg_mean_open_of(&m, config, shapes, TENSORS, &t, mem, bytes + 4096);
                    NEED(bytes ? s == CG_OK : s != CG_OK && m && strlen(why) > 20 && !strcmp(why, cg_mean_why(m)));
                    job->opened[rank] = s;
                    net_meet(w);
                    NEED(job->opened[0] == s && job->opened[1] == s && job->opened[2] == s);
                    net_meet(w);
                    if (rank == 0 && s != CG_OK) job->refused++;
                    if (s == CG_OK) by_hand_open(&h, m, &t, route, fold);
                    for (uint64_t step = 0; step < 3 && s == CG_OK; step++) {
                        for (size_t i = 0; i < TENSORS; i++) {
                            x[i] = grad[rank][i];
                            y[i] = hand[rank][i];
                            for (size_t j = 0; j < shapes[i].n; j++) x[i][j] = y[i][j] = value(rank, i, j, step);
                        }
                        s = cg_mean_step_with(m, x, variances);
                        if (s != CG_OK) printf("%s: %s\n", config, cg_mean_why(m));
                        NEED(s == CG_OK);
                        NEED(by_hand_step(&h, &t, y, variances, step) == 0);
                        for (size_t i = 0; i < TENSORS; i++) {
                            if (memcmp(x[i], y[i], 4 * shapes[i].n)) printf("%s: tensor %d differs\n", config, (int)i);
                            NEED(!memcmp(x[i], y[i], 4 * shapes[i].n));
                            for (int e = 0; e < 3; e++) {
                                const cg_status read = cg_ef_read(cg_mean_state(m, i), e, error[rank][0], shapes[i].n);
                                NEED(read == cg_ef_read(&h.ef[i], e, error[rank][1], shapes[i].n));
                                if (read == CG_OK) NEED(!memcmp(error[rank][0], error[rank][1], 4 * shapes[i].n));
                            }
                        }
                        if (rank == 0) job->stepped++;
                    }
                    if (s == CG_OK)
                        for (size_t i = 0; i < TENSORS; i++) free(h.state[i]);
                    free(mem);
                }
    return 0;
}
TEST whatever_opens_steps_as_by_hand(void) {
    static net w;
    static all_job job;
    ASSERT_EQ(0, net_run(&w, RANKS, all_worker, &job));
    ASSERT_EQ(0, w.sizes_differ);
    printf("%d steps, %d refused\n", job.stepped, job.refused);
    ASSERT(job.stepped > 300 && job.refused > 300);
    PASS();
}

SUITE(all) { RUN_TEST(whatever_opens_steps_as_by_hand); }
GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(all);
    GREATEST_MAIN_END();
}
