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
static int by_hand_step(const cg_mean *m, by_hand *h, const cg_transport *t, float *const *x,
    const float *const *variances, uint64_t step) {
    for (size_t i = 0; i < TENSORS; i++) {
        cg_exchange_desc d = h->desc;
        cg_extra side = CG_ZERO;
        size_t bytes;
        void *mem;
        cg_status s;
        d.tag.step = step;
        d.tag.tensor = (uint32_t)i;
        /* a mean of models takes its own choice; other routes round otherwise */
        if (!d.route && h->ef[i].desc.kind == CG_EF_DIFFERENCE) d.route = cg_mean_state(m, i)->report.route;
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
                        NEED(by_hand_step(m, &h, &t, y, variances, step) == 0);
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

/* ---- a step that fails at any message ---- */

static const char *const faulty[] = { "topk:0.05 memory=momentum:0.9", "efsign route=scatter seed=3 dense=1", "dense",
    "absmax:4:512 memory=ef21 route=ring", "topk:0.05 route=merge small=100", "randk:0.1 memory=diana", "lowrank:2",
    "eden:2 memory=difference route=server", "topk:0.05 memory=laq:0.1", "topk:0.05|f16 memory=classic:8bit route=tree",
    "topk:0.05 route=shared warmup=power:2:1", "sign memory=signum:0.9 fold=vote route=scatter",
    "topk:0.05 memory=momentum:0.9 pack=each", "topk:0.05|f16 memory=momentum:0.9 route=scatter overlap=yes",
    "qsgd:4 memory=ef21 overlap=yes", "topk:0.05 pack=each overlap=yes" };
static const int is_raw[] = { 0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0 }; /* in step 2 */
enum { FAULTY = sizeof faulty / sizeof *faulty, STEPS = 4, FAILS_AT = 2 };
typedef struct fault_job {
    int hurt; /* bytes are changed, not a callback failed */
    size_t config;
    cg_status status[RANKS];
    float result[RANKS][STEPS][TENSORS][MOST];
    unsigned char state[RANKS][200000];
    size_t state_bytes[RANKS];
    int calls[RANKS];
    int failed, mixed, passed;
} fault_job;
/* All vectors of the state, one after the other. */
static size_t state_of(const cg_mean *m, unsigned char *to) {
    size_t at = 0;
    for (size_t i = 0; i < TENSORS; i++)
        for (int which = 0; which < 3; which++) {
            float v[MOST];
            if (cg_ef_read(cg_mean_state(m, i), which, v, shapes[i].n) != CG_OK) continue;
            memcpy(to + at, v, 4 * shapes[i].n);
            at += 4 * shapes[i].n;
        }
    return at;
}
static void fill(int rank, float *const *x, uint64_t step) {
    for (size_t i = 0; i < TENSORS; i++)
        for (size_t j = 0; j < shapes[i].n; j++) x[i][j] = value(rank, i, j, step);
}
static int is_as_filled(int rank, float *const *x, uint64_t step) {
    for (size_t i = 0; i < TENSORS; i++)
        for (size_t j = 0; j < shapes[i].n; j++)
            if (x[i][j] != value(rank, i, j, step)) return 0;
    return 1;
}
/* A step as the line says: message by message where it has overlap=yes. */
static cg_status step_of(cg_mean *m, const char *config, float *const *x, const cg_transport *t) {
    cg_io io;
    int code = 0;
    cg_status s;
    if (!strstr(config, "overlap")) return cg_mean_step(m, x);
    s = cg_mean_start(m, x);
    if (s != CG_OK) return s;
    if (cg_mean_step(m, x) != CG_E_STATE) abort(); /* one is under way */
    while ((s = cg_mean_next(m, code, &io)) == CG_AGAIN) code = cg_io_run(t, &io);
    return s;
}
/* One run; fail_call < 0: without a fault, and its results are kept. */
static int fault_run(net *w, int rank, fault_job *job, int fail_rank, int fail_call) {
    static unsigned char before[RANKS][200000], after[RANKS][200000];
    static float grad[RANKS][TENSORS][MOST];
    float *x[TENSORS] = { grad[rank][0], grad[rank][1], grad[rank][2] };
    net_end end;
    cg_transport t = net_transport(&end, w, rank);
    const size_t bytes = cg_mean_memory_of(faulty[job->config], shapes, TENSORS, &t, NULL, 0);
    void *mem = malloc(bytes);
    cg_mean *m;
    size_t len;
    int failures = 0;
    NEED(cg_mean_open_of(&m, faulty[job->config], shapes, TENSORS, &t, mem, bytes) == CG_OK);
    for (uint64_t step = 0; step < STEPS; step++) {
        fill(rank, x, step);
        len = state_of(m, before[rank]);
        net_meet(w);
        if (rank == 0 && step == FAILS_AT && fail_call >= 0) {
            w->fail_rank = w->hurt_rank = fail_rank;
            w->fail_call = job->hurt ? -1 : fail_call;
            w->hurt_call = job->hurt ? fail_call : -1;
        }
        net_meet(w);
        job->status[rank] = step_of(m, faulty[job->config], x, &t);
        if (fail_call < 0) job->calls[rank] = w->calls[rank];
        net_meet(w);
        if (rank == 0) w->fail_call = w->hurt_call = -1;
        for (int r = 0; r < RANKS; r++) failures += job->status[r] != CG_OK;
        if (job->status[rank] != CG_OK && (fail_call < 0 || step != FAILS_AT))
            printf("%s: %d of %d, step %d: %s\n", faulty[job->config], fail_call, fail_rank, (int)step, cg_mean_why(m));
        if (fail_call < 0 || step != FAILS_AT) NEED(job->status[rank] == CG_OK);
        if (job->status[rank] != CG_OK) { /* as before the call */
            cg_report report;
            cg_mean_report(m, &report);
            NEED(is_as_filled(rank, x, step));
            NEED(cg_mean_steps(m) == step);
            NEED(len == state_of(m, after[rank]) && !memcmp(before[rank], after[rank], len));
            NEED(report.status == (uint32_t)job->status[rank] && strlen(cg_mean_why(m)) > 10);
        }
        net_meet(w);
        if (rank == 0 && failures && step == FAILS_AT) {
            if (failures < RANKS) job->mixed++;
            else job->failed++;
        }
        if (failures && failures < RANKS) { /* the others have taken it, so all are told, until they agree */
            fill(rank, x, step);
            NEED(step_of(m, faulty[job->config], x, &t) == CG_E_MISMATCH);
            NEED(is_as_filled(rank, x, step) && strstr(cg_mean_why(m), "cg_mean_agree"));
            net_meet(w);
            NEED(cg_mean_agree(m) == CG_OK);
            NEED(cg_mean_steps(m) == step + 1);
            fill(rank, x, step + 1);
            net_meet(w);
            NEED(step_of(m, faulty[job->config], x, &t) == CG_OK);
            break;
        }
        if (failures) NEED(step_of(m, faulty[job->config], x, &t) == CG_OK); /* the same again */
        failures = 0;
        for (size_t i = 0; i < TENSORS; i++) {
            if (fail_call < 0) memcpy(job->result[rank][step][i], x[i], 4 * shapes[i].n);
            NEED(!memcmp(job->result[rank][step][i], x[i], 4 * shapes[i].n));
        }
        if (step < STEPS - 1) continue;
        if (fail_call < 0) job->state_bytes[rank] = state_of(m, job->state[rank]);
        NEED(state_of(m, after[rank]) == job->state_bytes[rank]);
        NEED(!memcmp(after[rank], job->state[rank], job->state_bytes[rank]));
        if (rank == 0) job->passed++;
    }
    net_meet(w);
    free(mem);
    return 0;
}
static int fault_worker(net *w, int rank, void *user) {
    fault_job *job = (fault_job *)user;
    unsigned turn = 0;
    for (size_t config = 0; config < FAULTY; config++) {
        net_meet(w);
        if (rank == 0) job->config = config;
        net_meet(w);
        /* floats that an allreduce adds up on the way have no checksum */
        if (job->hurt && is_raw[config]) continue;
        fault_run(w, rank, job, 0, -1);
        net_meet(w);
        for (int r = 0; r < RANKS; r++)
            for (int call = 0; call < job->calls[r]; call++)
                if (!spared(&turn, 5)) fault_run(w, rank, job, r, call);
    }
    return 0;
}
TEST a_step_that_fails_has_changed_nothing(int hurt) {
    static net w;
    static fault_job job;
    memset(&job, 0, sizeof job);
    job.hurt = hurt;
    ASSERT_EQ(0, net_run(&w, RANKS, fault_worker, &job));
    printf("%d failed, %d mixed, %d ended as without a fault\n", job.failed, job.mixed, job.passed);
    ASSERT_EQ(0, w.sizes_differ);
    ASSERT_EQ(0, w.stuck);
    ASSERT(job.failed > 20);
    PASS();
}

/* ---- saved states ---- */

static const char *const saved_configs[] = { "topk:0.05 memory=momentum:0.9", "efsign route=scatter",
    "efsign memory=classic:8bit route=server", "absmax:4:512 memory=ef21", "eden:2 memory=difference", "qsgd:2",
    "topk:0.05 memory=laq:0.1" };
enum { SAVED = sizeof saved_configs / sizeof *saved_configs, SAVE_CAP = 200000 };
typedef struct save_job {
    size_t config;
    unsigned char blob[RANKS][SAVE_CAP];
    size_t len[RANKS];
    float next[RANKS][TENSORS][MOST];
} save_job;
/* The residual of value i of all tensors, with its carry's share, at scale 1. */
static double unsent(const cg_mean *m, const cg_tensor *list, size_t tensors, int ranks, size_t i) {
    float v[MOST];
    for (size_t t = 0; t < tensors; i -= list[t].n, t++) {
        const cg_ef *ef = cg_mean_state(m, t);
        if (i >= list[t].n) continue;
        if (cg_ef_read(ef, CG_EF_ERROR, v, list[t].n) != CG_OK) return 0.0;
        return (double)v[i] / (double)cg_ef_scale(ef) +
            (ef->carry && i >= ef->carry_first && i - ef->carry_first < ef->desc.carry
                    ? ranks * (double)ef->carry[i - ef->carry_first]
                    : 0.0);
    }
    return 0.0;
}
static pthread_mutex_t one_by_one = PTHREAD_MUTEX_INITIALIZER;
static int save_worker(net *w, int rank, void *user) {
    static const cg_tensor moved[2] = { { "x", 700, 0 }, { "y", 535, 0 } };
    static float grad[RANKS][TENSORS][MOST];
    static double mean_unsent[1235];
    save_job *job = (save_job *)user;
    float *x[TENSORS] = { grad[rank][0], grad[rank][1], grad[rank][2] };
    for (size_t c = 0; c < SAVED; c++) {
        const char *config = saved_configs[c];
        net_end end;
        cg_transport t = net_transport(&end, w, rank), two;
        size_t bytes = cg_mean_memory_of(config, shapes, TENSORS, &t, NULL, 0);
        void *mem = malloc(bytes), *mem2;
        const void *bufs[RANKS];
        cg_mean *m, *other;
        NEED(cg_mean_open_of(&m, config, shapes, TENSORS, &t, mem, bytes) == CG_OK);
        for (uint64_t step = 0; step < 3; step++) {
            fill(rank, x, step);
            NEED(cg_mean_step(m, x) == CG_OK);
        }
        NEED(cg_mean_save_bytes(m) <= SAVE_CAP);
        NEED(cg_mean_save(m, job->blob[rank], cg_mean_save_bytes(m) - 1, &job->len[rank]) == CG_E_CAPACITY);
        NEED(cg_mean_save(m, job->blob[rank], SAVE_CAP, &job->len[rank]) == CG_OK);
        NEED(job->len[rank] == cg_mean_save_bytes(m));
        net_meet(w);
        pthread_mutex_lock(&one_by_one);
        for (size_t i = 0; i < 1235; i++) { mean_unsent[i] += unsent(m, shapes, TENSORS, RANKS, i) / RANKS; }
        pthread_mutex_unlock(&one_by_one);
        fill(rank, x, 3);
        NEED(cg_mean_step(m, x) == CG_OK);
        for (size_t i = 0; i < TENSORS; i++) memcpy(job->next[rank][i], x[i], 4 * shapes[i].n);
        /* as it was: the next step gives the same */
        mem2 = malloc(bytes);
        NEED(cg_mean_open_of(&other, config, shapes, TENSORS, &t, mem2, bytes) == CG_OK);
        NEED(cg_mean_load(other, job->blob[rank], job->len[rank]) == CG_OK);
        NEED(cg_mean_steps(other) == 3);
        fill(rank, x, 3);
        NEED(cg_mean_step(other, x) == CG_OK);
        for (size_t i = 0; i < TENSORS; i++) NEED(!memcmp(job->next[rank][i], x[i], 4 * shapes[i].n));
        free(mem2);
        for (int r = 0; r < RANKS; r++) bufs[r] = job->blob[r];
        net_meet(w);
        /* for two ranks, and for other tensors on three */
        if (rank < 2) {
            two = t;
            two.size = 2;
            bytes = cg_mean_memory_of(config, shapes, TENSORS, &two, NULL, 0);
            mem2 = malloc(bytes);
            NEED(cg_mean_open_of(&other, config, shapes, TENSORS, &two, mem2, bytes) == CG_OK);
            NEED(cg_mean_load(other, job->blob[rank], job->len[rank]) == CG_E_MISMATCH);
            NEED(strstr(cg_mean_why(other), "cg_mean_load_mean"));
            NEED(cg_mean_load_mean(other, bufs, job->len, 2) == CG_E_ARG);
            NEED(cg_mean_load_mean(other, bufs, job->len, RANKS) == CG_OK);
            NEED(cg_mean_steps(other) == 3);
            for (size_t i = 0; i < 1235 && !strstr(config, "ef21") && !strstr(config, "laq"); i++) {
                const double was = mean_unsent[i], is = unsent(other, shapes, TENSORS, 2, i);
                const double off = was - is, most = strstr(config, "8bit") ? 0.05 : 1e-5;
                NEED(off < most && -off < most);
            }
            free(mem2);
        }
        bytes = cg_mean_memory_of(config, moved, 2, &t, NULL, 0);
        mem2 = malloc(bytes);
        NEED(cg_mean_open_of(&other, config, moved, 2, &t, mem2, bytes) == CG_OK);
        NEED(cg_mean_load(other, job->blob[rank], job->len[rank]) == CG_E_MISMATCH);
        NEED(strstr(cg_mean_why(other), "3 tensors"));
        NEED(cg_mean_load_moved(other, bufs + rank, job->len + rank, 1) == CG_OK);
        NEED(cg_mean_load(m, job->blob[rank], job->len[rank]) == CG_OK);
        for (size_t i = 0; i < 1235; i++) {
            const double was = unsent(m, shapes, TENSORS, RANKS, i), is = unsent(other, moved, 2, RANKS, i);
            if (strstr(config, "8bit")) NEED(was - is < 0.1 && is - was < 0.1);
            else if (cg_mean_state(m, 0)->carry || cg_mean_state(m, 0)->scale != 1.0f)
                NEED(was - is < 1e-6 && is - was < 1e-6);
            else NEED(was == is);
        }
        for (size_t i = 0; i < 2; i++) /* they can step, and agree on what they received */
            for (size_t j = 0; j < moved[i].n; j++) x[i][j] = value(rank, i, j, 3);
        NEED(cg_mean_step(other, x) == CG_OK);
        NEED(cg_mean_steps(other) == 4);
        free(mem2);
        free(mem);
        net_meet(w);
        if (rank == 0) memset(mean_unsent, 0, sizeof mean_unsent);
        net_meet(w);
    }
    return 0;
}
TEST states_are_saved_and_loaded(void) {
    static net w;
    static save_job job;
    ASSERT_EQ(0, net_run(&w, RANKS, save_worker, &job));
    PASS();
}

/* ---- all tensors in one packet ---- */

static const char *const packed_configs[] = { "topk:0.05 seed=3", "absmax:4:512 dense=1", "efsign small=100",
    "topk:0.1|absmax:4:64 memory=momentum:0.9 warmup=power:2:1", "eden:2 memory=ef21", "randk:0.1 memory=difference",
    "topk:0.05 memory=momentum:0.9 overlap=yes", "onebit:64 memory=loco", "wangni:0.2 memory=filtered:0.9", "huffman" };
static int packed_worker(net *w, int rank, void *user) {
    static float grad[RANKS][2][TENSORS][MOST];
    static unsigned char blob[RANKS][200000];
    uint64_t *bytes_out = (uint64_t *)user;
    for (size_t c = 0; c < sizeof packed_configs / sizeof *packed_configs; c++) {
        net_end end;
        cg_transport t = net_transport(&end, w, rank);
        float *x[2][TENSORS];
        void *mem[2];
        cg_mean *m[2], *again;
        char config[200], why[400];
        cg_report report;
        size_t bytes = 0, len;
        for (int packed = 0; packed < 2; packed++) {
            sprintf(config, "%s route=allgather%s", packed_configs[c], packed ? " pack=each" : "");
            bytes = cg_mean_memory_of(config, shapes, TENSORS, &t, why, sizeof why);
            if (!bytes) printf("%s: %s\n", config, why);
            NEED(bytes);
            mem[packed] = malloc(bytes);
            NEED(cg_mean_open_of(&m[packed], config, shapes, TENSORS, &t, mem[packed], bytes) == CG_OK);
            for (size_t i = 0; i < TENSORS; i++) x[packed][i] = grad[rank][packed][i];
        }
        for (uint64_t step = 0; step < 4; step++) {
            for (int packed = 0; packed < 2; packed++) {
                fill(rank, x[packed], step);
                NEED(step_of(m[packed], packed && step % 2 ? config : "", x[packed], &t) == CG_OK);
                cg_mean_report(m[packed], &report);
                if (rank == 0 && c == 0) bytes_out[packed] = report.bytes_out;
            }
            for (size_t i = 0; i < TENSORS; i++) {
                const int is_exact = shapes[i].n < 100 && strstr(config, "small=100");
                for (size_t j = 0; j < shapes[i].n; j++) {
                    /* exact ones are summed by another route, in another order */
                    const float off = x[0][i][j] - x[1][i][j];
                    NEED(is_exact ? off < 1e-5f && off > -1e-5f : !memcmp(&x[0][i][j], &x[1][i][j], 4));
                }
            }
        }
        NEED(cg_mean_save(m[1], blob[rank], sizeof blob[rank], &len) == CG_OK);
        NEED(cg_mean_load(m[0], blob[rank], len) == CG_E_MISMATCH && strstr(cg_mean_why(m[0]), "pack="));
        free(mem[0]);
        mem[0] = malloc(bytes);
        NEED(cg_mean_open_of(&again, config, shapes, TENSORS, &t, mem[0], bytes) == CG_OK);
        NEED(cg_mean_load(again, blob[rank], len) == CG_OK);
        fill(rank, x[0], 4);
        fill(rank, x[1], 4);
        NEED(cg_mean_step(again, x[0]) == CG_OK);
        net_meet(w);
        NEED(cg_mean_step(m[1], x[1]) == CG_OK);
        for (size_t i = 0; i < TENSORS; i++) NEED(!memcmp(x[0][i], x[1][i], 4 * shapes[i].n));
        fill(rank, x[1], 5);
        if (rank == 1) {
            uint32_t nan = 0x7fc00000u;
            memcpy(&x[1][1][7], &nan, 4);
        }
        NEED(cg_mean_step(m[1], x[1]) == (rank == 1 ? CG_E_NONFINITE : CG_E_PEER));
        if (rank == 1) NEED(strstr(cg_mean_why(m[1]), "tensor 1 (b): ") && strstr(cg_mean_why(m[1]), "value 7 "));
        free(mem[0]);
        free(mem[1]);
        net_meet(w);
    }
    return 0;
}
TEST one_packet_has_the_same_floats(void) {
    static net w;
    uint64_t bytes_out[2] = { 0, 0 };
    ASSERT_EQ(0, net_run(&w, RANKS, packed_worker, bytes_out));
    printf("%d bytes in a step, packed %d\n", (int)bytes_out[0], (int)bytes_out[1]);
    ASSERT(bytes_out[1] < bytes_out[0]);
    PASS();
}

static int differing_worker(net *w, int rank, void *user) {
    static float grad[RANKS][TENSORS][MOST];
    const char *config = rank == 1 ? "topk:0.1 seed=5" : "topk:0.05 seed=5";
    float *x[TENSORS] = { grad[rank][0], grad[rank][1], grad[rank][2] };
    net_end end;
    cg_transport t = net_transport(&end, w, rank);
    const size_t bytes = cg_mean_memory_of(config, shapes, TENSORS, &t, NULL, 0);
    void *mem = malloc(bytes);
    cg_report report;
    cg_mean *m;
    (void)user;
    NEED(cg_mean_open_of(&m, config, shapes, TENSORS, &t, mem, bytes) == CG_OK);
    fill(rank, x, 0);
    NEED(cg_mean_step(m, x) == CG_E_MISMATCH);
    cg_mean_report(m, &report);
    NEED(rank == 1 ? report.rank != 1 : report.rank == 1);
    NEED(strstr(cg_mean_why(m), "another configuration") &&
        strstr(cg_mean_why(m), rank == 1 ? "'topk:0.1 " : "'topk:0.05 "));
    NEED(is_as_filled(rank, x, 0));
    net_meet(w);
    free(mem);
    return 0;
}
TEST another_configuration_is_named(void) {
    static net w;
    ASSERT_EQ(0, net_run(&w, RANKS, differing_worker, NULL));
    PASS();
}

SUITE(all) {
    RUN_TEST(whatever_opens_steps_as_by_hand);
    RUN_TEST(states_are_saved_and_loaded);
    RUN_TEST(another_configuration_is_named);
    RUN_TEST(one_packet_has_the_same_floats);
    RUN_TESTp(a_step_that_fails_has_changed_nothing, 0);
    RUN_TESTp(a_step_that_fails_has_changed_nothing, 1);
}
GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(all);
    GREATEST_MAIN_END();
}
