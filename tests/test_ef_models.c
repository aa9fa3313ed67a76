/* Kinds without a residual (NONE, FILTERED, DIFFERENCE): random schedules of steps, some of which fail at any message,
   ranks that abstain, states that are saved, loaded and carried to other numbers of ranks, and ranks that join. After
   every step what came out is compared, bit by bit, with plain loops over decoded packets. */
#include "examples/transport_threads.h"
#include "greatest.h"
#include "compgrad_ef.h"
#include "tier.h"
#include <float.h>
#include <math.h>
#include <stdio.h>

enum { MOST = 8, N = 150, MEM = 1 << 18, STATE = 1 << 15 };
static char note[400];
static char name[200];
#define EXPECT(what, at)                                                                       \
  do {                                                                                         \
    if (!(what)) {                                                                             \
      snprintf(note, sizeof note, "line %d: %s: %s, at %d", __LINE__, #what, name, (int)(at)); \
      return 0;                                                                                \
    }                                                                                          \
  } while (0)
#define RUN_CASE(call)        \
  do {                        \
    if (!(call)) FAILm(note); \
  } while (0)

typedef struct plan {
    const char *op;
    uint32_t kind;
    float momentum, lambda;
    uint32_t route;
    int weighted;
} plan;
typedef struct worker {
    cg_ef ef;
    cg_exchange_desc desc;
    float state[STATE / 4], mem[MEM / 4], x[N], given[N];
    float optimizer[N]; /* its buffer, or its model */
    cg_transport real;
    int rank, ios, agrees;
    cg_status status;
    cg_report report;
} worker;
static struct {
    const plan *p;
    worker w[MOST];
    int size, fail_rank, fail_io; /* fail_io < 0: nothing fails */
    uint64_t step;
    float received[N]; /* the reference's U or base */
    float u[MOST][N];  /* and of FILTERED every rank's u */
    int begun;
} job;
static uint64_t state;
static uint32_t random_below(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) * n >> 31);
}
static float random_normal(void) {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += random_below(1 << 20) / (double)(1 << 20);
    return (float)sum;
}

static float product(float a, float b) {
    volatile float v = a * b;
    return v;
}
static float sum_of(float a, float b) {
    volatile float v = a + b;
    return v;
}
static int moved(worker *w, int code) {
    const int now = job.fail_rank == w->rank && job.fail_io == w->ios;
    w->ios++;
    return code ? code : now ? 77 : 0;
}
static int by_sum(void *user, float *v, size_t n) {
    worker *w = (worker *)user;
    return moved(w, w->real.allreduce(w->real.user, v, n));
}
static int by_gather(void *user, const void *mine, void *all, size_t bytes) {
    worker *w = (worker *)user;
    return moved(w, w->real.allgather(w->real.user, mine, all, bytes));
}
static int by_cast(void *user, void *buf, size_t bytes, int root) {
    worker *w = (worker *)user;
    return moved(w, w->real.broadcast(w->real.user, buf, bytes, root));
}
static int by_hop(void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    worker *w = (worker *)user;
    return moved(w, w->real.sendrecv(w->real.user, out, out_bytes, to, in, in_bytes, from));
}
static int run(cg_threads_world *threads, int rank, void *user) {
    worker *w = &job.w[rank];
    cg_transport t = cg_threads_transport(threads, rank, CG_THREADS_ALL);
    (void)user;
    w->real = t;
    t.user = w;
    t.allreduce = by_sum;
    t.allgather = by_gather;
    t.broadcast = by_cast;
    t.sendrecv = by_hop;
    cg_threads_timeout(threads, 2000);
    w->ios = 0;
    if (w->agrees) {
        const size_t bytes = cg_ef_agree_memory(&w->ef, &w->desc, &t);
        if (bytes > MEM) exit(2);
        w->status = cg_ef_agree(&w->ef, &w->desc, &t, w->mem, bytes, &w->report);
    } else {
        const size_t bytes = cg_ef_exchange_memory(&w->ef, &w->desc, &t);
        if (bytes > MEM) exit(2);
        memcpy(w->x, w->given, sizeof w->x);
        w->status = cg_ef_exchange(&w->ef, &w->desc, &t, w->x, w->mem, bytes, &w->report);
    }
    return 0;
}
/* u := momentum u + g of ranks that have their gradient in the state. */
static void absorb(void) {
    for (int r = 0; r < job.size; r++)
        for (int i = 0; i < N && job.p->kind == CG_EF_FILTERED && cg_ef_stats_of(&job.w[r].ef).kept; i++)
            job.u[r][i] = sum_of(job.w[r].given[i], product(job.p->momentum, job.u[r][i]));
}
static int all_call(int agrees) {
    for (int r = 0; r < job.size; r++) {
        job.w[r].agrees = agrees;
        job.w[r].rank = r;
        job.w[r].desc.tag.step = job.step;
        job.w[r].desc.weight = job.p->weighted ? 1.0f + 0.5f * (float)r : 0.0f;
    }
    job.step++;
    if (cg_threads_run(job.size, run, NULL)) return 0;
    if (!agrees) absorb();
    return 1;
}

static cg_ef_desc desc_of(const plan *p, int size) {
    cg_ef_desc d = CG_ZERO;
    if (cg_op_parse(&d.op, p->op) != CG_OK) exit(2);
    d.n = N;
    d.kind = p->kind;
    d.momentum = p->momentum;
    d.lambda = p->lambda;
    d.workers = size;
    return d;
}
static int open_one(int r) {
    const cg_ef_desc d = desc_of(job.p, job.size);
    static const cg_exchange_desc none = CG_ZERO;
    worker *w = &job.w[r];
    w->desc = none;
    w->desc.route = job.p->route;
    w->desc.flags = CG_CONFIRM;
    w->desc.tag.seed = 11;
    w->desc.op = d.op;
    EXPECT(cg_ef_memory(&d) && cg_ef_memory(&d) <= STATE, r);
    EXPECT(cg_ef_init(&w->ef, &d, w->state, STATE) == CG_OK, r);
    return 1;
}
static int is_models(void) { return job.p->kind == CG_EF_DIFFERENCE; }
static double weight_of(int r) { return job.p->weighted ? 1.0 + 0.5 * r : 1.0; }
static float lambda_of(void) {
    return job.p->lambda == CG_LAMBDA_SQRT ? (float)sqrt(job.size) : job.p->lambda != 0 ? job.p->lambda : 1.0f;
}
/* Every rank draws for itself, whether or not the operator's text says so. */
static cg_op by_rank(cg_op op) {
    const cg_op own = cg_private(op);
    return cg_bound(&own, N) ? own : op;
}
/* From the vectors that ranks were given: what comes out, and what is received then. Packets by cg_compress. */
static void reference(float *result, float *received) {
    const cg_ef_desc d = desc_of(job.p, job.size);
    const cg_op dense = cg_dense(), own = by_rank(d.op);
    const cg_op *op = is_models() && !job.begun ? &dense : &own;
    float mean[N] = { 0 }, p[N], decoded[N];
    double weights = 0;
    for (int r = 0; r < job.size; r++) weights += weight_of(r);
    for (int r = 0; r < job.size; r++) {
        static unsigned char packet[1 << 14], scratch[1 << 16];
        const cg_tag tag = { 11, job.step - 1, 0, (uint32_t)r };
        const int absent = (job.w[r].desc.flags & CG_ABSTAIN) && (!is_models() || job.begun);
        const float share = (float)((job.p->weighted ? weight_of(r) : 1.0) / weights);
        size_t len;
        for (int i = 0; i < N; i++)
            p[i] = job.p->kind == CG_EF_FILTERED ? job.u[r][i]
                : is_models() && job.begun       ? sum_of(job.w[r].given[i], -job.received[i])
                                                 : job.w[r].given[i];
        if (absent) continue;
        if (cg_compress(op, &tag, p, N, packet, sizeof packet, &len, scratch, sizeof scratch) != CG_OK ||
            cg_decompress(packet, len, decoded, N) != CG_OK)
            exit(2);
        for (int i = 0; i < N; i++) mean[i] = sum_of(mean[i], product(share, decoded[i]));
    }
    for (int i = 0; i < N; i++) {
        const float u = job.received[i];
        if (job.p->kind == CG_EF_NONE) result[i] = mean[i], received[i] = 0;
        else if (job.p->kind == CG_EF_FILTERED) {
            result[i] = sum_of(mean[i], product(-job.p->momentum, u));
            received[i] = mean[i];
        } else result[i] = received[i] = job.begun ? sum_of(product(lambda_of(), mean[i]), u) : mean[i];
    }
}
/* All ranks have these bits; on routes that compress a mean again the reference does not know them. */
static int received_is(const float *want) {
    float have[N];
    for (int r = 0; r < job.size; r++) {
        if (job.p->kind == CG_EF_NONE) {
            EXPECT(cg_ef_read(&job.w[r].ef, CG_EF_RECEIVED, have, N) == CG_E_UNSUPPORTED, r);
            continue;
        }
        EXPECT(cg_ef_read(&job.w[r].ef, CG_EF_RECEIVED, have, N) == CG_OK, r);
        EXPECT(!memcmp(have, want, sizeof have), r);
        EXPECT(cg_ef_mark(&job.w[r].ef) == cg_ef_mark(&job.w[0].ef), r);
    }
    return 1;
}
/* What the users' optimizers do with a result: the sum of SGD with momentum, or the common model. */
static void apply(int r, const float *result) {
    worker *w = &job.w[r];
    for (int i = 0; i < N; i++)
        w->optimizer[i] = is_models() ? result[i] : sum_of(product(job.p->momentum, w->optimizer[i]), result[i]);
}
static int one_step(int may_fail, int may_abstain) {
    float result[N], received[N];
    int succeeded = 0;
    job.fail_io = may_fail && random_below(3) == 0 ? (int)random_below(4) : -1;
    job.fail_rank = (int)random_below((uint32_t)job.size);
    for (int r = 0; r < job.size; r++) {
        worker *w = &job.w[r];
        w->desc.flags = CG_CONFIRM | CG_MAY_ABSTAIN;
        if (may_abstain && random_below(4) == 0) w->desc.flags |= CG_ABSTAIN;
        for (int i = 0; i < N; i++)
            w->given[i] = is_models() ? sum_of(w->optimizer[i], 0.01f * random_normal()) : random_normal();
    }
    if (job.p->route != CG_ROUTE_ALLGATHER)
        for (int r = 0; r < job.size; r++) job.w[r].desc.flags = CG_CONFIRM;
    EXPECT(all_call(0), 0);
    reference(result, received);
    for (int r = 0; r < job.size; r++) succeeded += job.w[r].status == CG_OK;
    for (int r = 0; r < job.size; r++)
        if (job.w[r].status != CG_OK) {
            EXPECT(job.fail_io >= 0, r);
            EXPECT(!memcmp(job.w[r].x, job.w[r].given, sizeof job.w[r].x), r); /* all or nothing */
            if (job.p->kind != CG_EF_FILTERED) EXPECT(cg_ef_stats_of(&job.w[r].ef).kept == 0, r);
        }
    if (succeeded && succeeded < job.size) { /* a message of the closing round was lost: marks tell, agreement helps */
        job.fail_io = -1;
        if (job.p->kind == CG_EF_NONE) return 1;
        EXPECT(all_call(0), 0);
        for (int r = 0; r < job.size; r++) EXPECT(job.w[r].status == CG_E_MISMATCH, r);
        EXPECT(all_call(1), 0);
        for (int r = 0; r < job.size; r++) EXPECT(job.w[r].status == CG_OK, r);
        EXPECT(cg_ef_read(&job.w[0].ef, CG_EF_RECEIVED, received, N) == CG_OK, 0);
        job.begun = 1;
        memcpy(job.received, received, sizeof received);
        for (int r = 0; r < job.size; r++) memcpy(job.w[r].optimizer, received, sizeof received);
        return received_is(received);
    }
    if (!succeeded) return received_is(job.received);
    for (int r = 1; r < job.size; r++) EXPECT(!memcmp(job.w[r].x, job.w[0].x, sizeof job.w[r].x), r);
    if (job.p->route != CG_ROUTE_ALLGATHER) { /* the second leg's error is not the reference's */
        memcpy(result, job.w[0].x, sizeof result);
        if (job.p->kind != CG_EF_NONE) EXPECT(cg_ef_read(&job.w[0].ef, CG_EF_RECEIVED, received, N) == CG_OK, 0);
        if (is_models()) EXPECT(!memcmp(received, result, sizeof result), 0);
    }
    for (int i = 0; i < N; i++) EXPECT(job.w[0].x[i] == result[i], i);
    if (!received_is(received)) return 0;
    for (int r = 0; r < job.size; r++) apply(r, result);
    if (job.p->kind == CG_EF_FILTERED) /* the invariant: every optimizer's buffer is U, but for rounding */
        for (int i = 0; i < N; i++)
            EXPECT(fabs((double)job.w[0].optimizer[i] - (double)received[i]) <=
                    8 * 0x1p-24 * (fabs((double)received[i]) + 8) / (1 - (double)job.p->momentum),
                i);
    if (job.p->kind != CG_EF_NONE) memcpy(job.received, received, sizeof received);
    job.begun = 1;
    return 1;
}
/* Everything to bytes, into new states of so many ranks, and back. */
static int to_ranks(int size, int exact) {
    static unsigned char saved[MOST][STATE];
    const void *bufs[MOST];
    size_t lens[MOST];
    const int old = job.size, filtered = job.p->kind == CG_EF_FILTERED;
    float u[N], mean[N];
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int r = 0; r < old; r++) sum += (double)job.u[r][i];
        mean[i] = (float)(sum / old);
    }
    for (int r = 0; r < old; r++) {
        bufs[r] = saved[r];
        EXPECT(cg_ef_save(&job.w[r].ef, saved[r], STATE, &lens[r]) == CG_OK, r);
        EXPECT(lens[r] == cg_ef_save_bytes(&job.w[r].ef), r);
    }
    job.size = size;
    for (int r = 0; r < size; r++) {
        if (!open_one(r)) return 0;
        EXPECT((exact ? cg_ef_load(&job.w[r].ef, saved[r], lens[r])
                      : cg_ef_load_mean(&job.w[r].ef, bufs, lens, (size_t)old)) == CG_OK,
            r);
        EXPECT(cg_ef_read(&job.w[r].ef, CG_EF_ERROR, u, N) == (filtered ? CG_OK : CG_E_UNSUPPORTED), r);
        if (filtered) EXPECT(!memcmp(exact ? job.u[r] : mean, u, sizeof u), r);
        if (r >= old) memcpy(job.w[r].optimizer, job.w[0].optimizer, sizeof job.w[r].optimizer);
    }
    for (int r = 0; r < size && !exact; r++) memcpy(job.u[r], mean, sizeof mean);
    return received_is(job.received);
}
static int schedule(const plan *p, int size, int steps) {
    job.p = p;
    job.size = size;
    job.step = 5;
    job.begun = 0;
    memset(job.received, 0, sizeof job.received);
    memset(job.u, 0, sizeof job.u);
    state = (uint64_t)(size * 1000) + p->kind * 100 + p->route;
    snprintf(name, sizeof name, "%s, kind %d, route %d, %d ranks", p->op, (int)p->kind, (int)p->route, size);
    for (int r = 0; r < size; r++) {
        memset(job.w[r].optimizer, 0, sizeof job.w[r].optimizer);
        if (!open_one(r)) return 0;
    }
    for (int t = 0; t < steps; t++) {
        if (!one_step(t > 0, 1)) return 0;
        if (random_below(6) == 0 && !to_ranks(job.size, 1)) return 0;
        if (random_below(9) == 0 && !to_ranks(1 + (int)random_below(MOST), 0)) return 0;
    }
    return 1;
}
static const plan plans[] = { { "absmax:4:32", CG_EF_NONE, 0, 0, CG_ROUTE_ALLGATHER, 0 },
    { "randk:0.2:private", CG_EF_NONE, 0, 0, CG_ROUTE_ALLGATHER, 1 },
    { "qsgd:2", CG_EF_NONE, 0, 0, CG_ROUTE_ALLGATHER, 0 }, { "randk:0.2", CG_EF_NONE, 0, 0, CG_ROUTE_ALLGATHER, 0 },
    { "randk:0.5|eden:1", CG_EF_FILTERED, 0.5f, 0, CG_ROUTE_ALLGATHER, 0 },
    { "absmax:4:32", CG_EF_NONE, 0, 0, CG_ROUTE_SCATTER, 0 },
    { "absmax:4:32", CG_EF_FILTERED, 0.9f, 0, CG_ROUTE_ALLGATHER, 0 },
    { "randk:0.3:private|rotate:3:private|lloyd:2", CG_EF_FILTERED, 0.5f, 0, CG_ROUTE_ALLGATHER, 0 },
    { "terngrad", CG_EF_FILTERED, 0.9f, 0, CG_ROUTE_TREE, 0 },
    { "absmax:4:32", CG_EF_FILTERED, 0.9f, 0, CG_ROUTE_SCATTER, 1 },
    { "absmax:4:32", CG_EF_DIFFERENCE, 0, 0, CG_ROUTE_ALLGATHER, 0 },
    { "wangni:0.1|efsign|golomb", CG_EF_DIFFERENCE, 0, CG_LAMBDA_SQRT, CG_ROUTE_ALLGATHER, 0 },
    { "randk:0.3:private|eden:1", CG_EF_DIFFERENCE, 0, 1.5f, CG_ROUTE_ALLGATHER, 1 },
    { "absmax:4:32", CG_EF_DIFFERENCE, 0, 0.5f, CG_ROUTE_SERVER, 0 },
    { "levels:4:32|omega", CG_EF_DIFFERENCE, 0, 0, CG_ROUTE_SCATTER, 1 } };
TEST schedules_keep_the_invariants(int i) {
    static const int sizes[] = { 1, 2, 3, 5, 8 };
    for (int k = 0; k < 5; k++) RUN_CASE(schedule(&plans[i], sizes[k], long_test() ? 100 : 12));
    PASS();
}

/* Dense and lambda 1: the mean of the models, also where a rank abstains in the first step: it has not moved, so that
   its model is the one that it began with. */
TEST a_rank_that_has_not_moved_counts(void) {
    static const plan p = { "dense", CG_EF_DIFFERENCE, 0, 0, CG_ROUTE_ALLGATHER, 0 };
    job.p = &p;
    job.size = 3;
    job.fail_io = -1;
    job.step = 0;
    for (int r = 0; r < 3; r++) {
        RUN_CASE(open_one(r));
        for (int i = 0; i < N; i++) job.w[r].given[i] = r == 1 ? 1.0f : 4.0f; /* began at 1; two have moved by 3 */
        job.w[r].desc.flags |= CG_MAY_ABSTAIN | (r == 1 ? (uint32_t)CG_ABSTAIN : 0u);
    }
    for (int t = 0; t < 2; t++) {
        ASSERT(all_call(0));
        for (int r = 0; r < 3; r++) {
            ASSERT_EQ(CG_OK, job.w[r].status);
            for (int i = 0; i < N; i++) ASSERT_IN_RANGE(t ? 3.0 + 2 * 3.0 / 3 : 3.0, (double)job.w[r].x[i], 1e-5);
            for (int i = 0; i < N; i++) job.w[r].given[i] = r == 1 ? 1e30f : 6.0f; /* in base 3: two move by 3 */
        }
    }
    PASS();
}

/* A rank that joins has no base: nobody goes on before it has that of the others, the same bits. */
TEST a_rank_joins(uint32_t kind) {
    const plan p = { "absmax:4:32", kind, kind == CG_EF_FILTERED ? 0.9f : 0.0f, 0, CG_ROUTE_ALLGATHER, 0 };
    float base[N];
    RUN_CASE(schedule(&p, 3, 4));
    job.p = &p;
    RUN_CASE(to_ranks(3, 0));
    memcpy(base, job.received, sizeof base);
    for (int joins = 0; joins < 4; joins += 3) { /* as rank 0 too: where it stands does not matter */
        job.size = 4;
        if (joins == 0) {
            job.w[3] = job.w[0];
            memset(job.w[3].state, 0, sizeof job.w[3].state);
            RUN_CASE(open_one(3));
            ASSERT_EQ(CG_OK, cg_ef_set_received(&job.w[3].ef, base, N));
            for (int r = 1; r < 3; r++) ASSERT_EQ(CG_OK, cg_ef_set_received(&job.w[r].ef, base, N));
        }
        RUN_CASE(open_one(joins));
        job.fail_io = -1;
        for (int r = 0; r < 4; r++)
            for (int i = 0; i < N; i++) job.w[r].given[i] = base[i] + (float)r;
        ASSERT(all_call(0));
        for (int r = 0; r < 4; r++) ASSERT_EQ(CG_E_MISMATCH, job.w[r].status);
        ASSERT(all_call(1));
        for (int r = 0; r < 4; r++) ASSERT_EQ(CG_OK, job.w[r].status);
        memcpy(job.received, base, sizeof base);
        RUN_CASE(received_is(base));
        ASSERT(all_call(0));
        for (int r = 0; r < 4; r++) ASSERT_EQ(CG_OK, job.w[r].status);
        ASSERT_EQ(CG_OK, cg_ef_read(&job.w[0].ef, CG_EF_RECEIVED, base, N));
    }
    PASS();
}
/* Nobody has anything: an agreement on that is none, and the first step is as ever. */
TEST an_agreement_on_nothing(void) {
    static const plan p = { "absmax:4:32", CG_EF_DIFFERENCE, 0, 0, CG_ROUTE_ALLGATHER, 0 };
    job.p = &p;
    job.size = 2;
    job.fail_io = -1;
    for (int r = 0; r < 2; r++) {
        RUN_CASE(open_one(r));
        for (int i = 0; i < N; i++) job.w[r].given[i] = (float)(i + r);
    }
    ASSERT(all_call(1));
    ASSERT(all_call(0));
    for (int r = 0; r < 2; r++) {
        ASSERT_EQ(CG_OK, job.w[r].status);
        for (int i = 0; i < N; i++) ASSERT_EQ((float)i + 0.5f, job.w[r].x[i]);
    }
    PASS();
}
/* States of ranks with other bases are not to be averaged. */
TEST other_bases_do_not_load_together(void) {
    static const plan p = { "absmax:4:32", CG_EF_DIFFERENCE, 0, 0, CG_ROUTE_ALLGATHER, 0 };
    static unsigned char saved[2][STATE];
    const void *bufs[2] = { saved[0], saved[1] };
    float base[N] = { 0 };
    size_t lens[2];
    job.p = &p;
    job.size = 2;
    for (int r = 0; r < 2; r++) {
        RUN_CASE(open_one(r));
        base[7] = (float)r;
        ASSERT_EQ(CG_OK, cg_ef_set_received(&job.w[r].ef, base, N));
        ASSERT_EQ(CG_OK, cg_ef_save(&job.w[r].ef, saved[r], STATE, &lens[r]));
    }
    ASSERT_EQ(CG_E_MISMATCH, cg_ef_load_mean(&job.w[0].ef, bufs, lens, 2));
    lens[1] = lens[0];
    bufs[1] = saved[0];
    ASSERT_EQ(CG_OK, cg_ef_load_mean(&job.w[0].ef, bufs, lens, 2));
    PASS();
}

/* ---- refusals ---- */

static int refused(cg_ef_desc d, const char *why) {
    static float mem[STATE / 4];
    cg_ef ef;
    cg_report report;
    EXPECT(cg_ef_memory(&d) == 0, 0);
    EXPECT(cg_ef_init(&ef, &d, mem, sizeof mem) != CG_OK, 0);
    cg_ef_report(&ef, &report);
    snprintf(name, sizeof name, "'%s'", report.why);
    EXPECT(strstr(report.why, why), 0);
    return 1;
}
TEST biased_operators_are_refused(uint32_t kind) {
    static const char *const biased[] = { "topk:0.01", "efsign", "sign", "absmax:4:32:nearest", "randk:0.1:unscaled",
        "topk:0.1|efsign", "rotate:1|lloyd:2", "trits:1", "threshold:0.1", "f16" },
                             *const unbiased[] = { "wangni:0.01|efsign|golomb", "randk:0.1:private|eden:1",
                                 "absmax:4:32", "dense", "eden:2", "wangni:0.1|absmax:4:32", "qsgd:4", "natural",
                                 "permk:4" };
    const plan p = { "dense", kind, kind == CG_EF_FILTERED ? 0.9f : 0.0f, 0, 0, 0 };
    cg_ef_desc d = desc_of(&p, 2);
    cg_ef_rule rule = CG_ZERO;
    for (size_t i = 0; i < sizeof biased / sizeof *biased; i++) {
        ASSERT_EQ(CG_OK, cg_op_parse(&d.op, biased[i]));
        RUN_CASE(refused(d, "randk:0.03:private|eden:1"));
    }
    for (size_t i = 0; i < sizeof unbiased / sizeof *unbiased; i++) {
        ASSERT_EQ(CG_OK, cg_op_parse(&d.op, unbiased[i]));
        ASSERT(cg_ef_memory(&d));
    }
    rule.op = cg_topk(0.1f);
    d.rules = &rule;
    d.rule_count = 1;
    RUN_CASE(refused(d, "wangni:0.01|efsign|golomb"));
    d.rule_count = 0;
    d.bytes = 1;
    ASSERT(!cg_ef_memory(&d));
    PASS();
}
TEST descriptions_are_refused(void) {
    const plan filtered = { "dense", CG_EF_FILTERED, 0, 0, 0, 0 }, models = { "dense", CG_EF_DIFFERENCE, 0, 0, 0, 0 },
               none = { "dense", CG_EF_NONE, 0, 0, 0, 0 };
    cg_ef_desc d = desc_of(&filtered, 2);
    RUN_CASE(refused(d, "desc.momentum"));
    d.momentum = 0.9f;
    d.nesterov = 1;
    RUN_CASE(refused(d, "Nesterov"));
    d = desc_of(&models, 2);
    d.clip = 1;
    RUN_CASE(refused(d, "models"));
    d.clip = 0;
    d.rate = 0.5f;
    RUN_CASE(refused(d, "models"));
    d = desc_of(&models, 2);
    d.biased = 1;
    RUN_CASE(refused(d, "CG_EF_NONE"));
    d = desc_of(&none, 2);
    d.lambda = 1;
    RUN_CASE(refused(d, "CG_EF_DIFFERENCE"));
    d = desc_of(&none, 2);
    d.carry = 5;
    RUN_CASE(refused(d, "carry"));
    d = desc_of(&models, 2);
    d.lambda = -2;
    ASSERT(!cg_ef_memory(&d));
    PASS();
}
/* A biased operator is taken where it is asked for, and the report says what it does. */
TEST biased_is_said(void) {
    static float state_mem[STATE / 4], mem[MEM / 4];
    const plan p = { "topk:0.1", CG_EF_NONE, 0, 0, 0, 0 };
    cg_ef_desc d = desc_of(&p, 1);
    cg_exchange_desc x = CG_ZERO;
    cg_transport alone = CG_ZERO;
    cg_report report;
    float v[N];
    cg_ef ef;
    alone.size = 1;
    for (int i = 0; i < N; i++) v[i] = (float)i;
    d.biased = 1;
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &d, state_mem, sizeof state_mem));
    ASSERT_EQ(CG_OK, cg_ef_exchange(&ef, &x, &alone, v, mem, sizeof mem, &report));
    ASSERT(strstr(report.why, "topk is biased"));
    for (int i = 0; i < N; i++) ASSERT_EQ(i < N - 15 ? 0.0f : (float)i, v[i]);
    PASS();
}
/* Random-k and EDEN are taken as they are: times n/k, and not divided by 1 + w; |D|^2 says so. */
TEST operators_are_not_divided(uint32_t kind, const char *op) {
    static float state_mem[STATE / 4];
    const plan p = { op, kind, kind == CG_EF_FILTERED ? 0.9f : 0.0f, 0, 0, 0 };
    const cg_ef_desc d = desc_of(&p, 1);
    const cg_op own = by_rank(d.op);
    const cg_tag tag = { 1, 2, 3, 4 };
    unsigned char packet[4096], same[4096], scratch[8192];
    float v[N], zero[N] = { 0 };
    size_t len, len2;
    cg_ef ef;
    state = 3;
    for (int i = 0; i < N; i++) v[i] = random_normal();
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &d, state_mem, sizeof state_mem));
    if (kind != CG_EF_NONE) ASSERT_EQ(CG_OK, cg_ef_set_received(&ef, zero, N));
    ASSERT_EQ(CG_OK, cg_ef_compress(&ef, &tag, v, packet, sizeof packet, &len));
    ASSERT_EQ(CG_OK, cg_compress(&own, &tag, v, N, same, sizeof same, &len2, scratch, sizeof scratch));
    ASSERT(len == len2 && !memcmp(packet, same, len));
    ASSERT_EQ(1.0f, cg_ef_scale(&ef));
    PASS();
}
TEST exchanges_are_refused(void) {
    static float state_mem[STATE / 4], mem[MEM / 4];
    const plan p = { "absmax:4:32", CG_EF_DIFFERENCE, 0, 0, 0, 0 };
    const cg_ef_desc d = desc_of(&p, 1);
    const cg_op topk = cg_topk(0.1f);
    cg_transport alone = CG_ZERO;
    cg_report report;
    float v[N] = { 0 }, model[N];
    cg_ef ef;
    alone.size = 1;
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &d, state_mem, sizeof state_mem));
    for (int i = 0; i < 3; i++) {
        static const char *const why[] = { "CG_FOLD_MEAN", "no other model", "second leg" };
        cg_exchange_desc x = CG_ZERO;
        if (i == 0) x.fold = CG_FOLD_SUM;
        if (i == 1) x.model = model;
        if (i == 2) x.back = &topk;
        ASSERT_EQ(CG_E_UNSUPPORTED, cg_ef_exchange(&ef, &x, &alone, v, mem, sizeof mem, &report));
        ASSERT(strstr(report.why, why[i]));
    }
    ASSERT_EQ(CG_E_UNSUPPORTED, cg_ef_rescale(&ef, 0.5f));
    v[3] = (float)NAN;
    ASSERT_EQ(CG_E_NONFINITE, cg_ef_set_received(&ef, v, N));
    ASSERT_EQ(CG_E_MISMATCH, cg_ef_set_received(&ef, model, N - 1));
    PASS();
}

/* ---- cg_diff: the same over a wire of one's own ---- */

TEST a_wire_of_ones_own(void) {
    enum { WORKERS = 4 };
    static float mem[WORKERS + 1][STATE / 4], model[WORKERS + 1][N], base[N], mean[N], decoded[N];
    static unsigned char packet[1 << 12], saved[STATE];
    const cg_op op = cg_private(cg_then(cg_randk(0.4f), cg_eden(2)));
    cg_diff diff[WORKERS + 1];
    size_t len;
    int workers = WORKERS;
    state = 9;
    for (int i = 0; i < N; i++) base[i] = random_normal();
    ASSERT(cg_diff_memory(&op, N) && cg_diff_memory(&op, N) <= sizeof mem[0]);
    for (int r = 0; r < WORKERS; r++) {
        ASSERT_EQ(CG_OK, cg_diff_init(&diff[r], &op, N, 1.25f, WORKERS, base, mem[r], sizeof mem[r]));
        memcpy(model[r], base, sizeof base);
    }
    for (uint64_t t = 0; t < 30; t++) {
        memset(mean, 0, sizeof mean);
        for (int r = 0; r < workers; r++) {
            const cg_tag tag = { 4, t, 0, (uint32_t)r };
            if (t % 5 == 2 && r == 1) continue; /* abstains */
            for (int i = 0; i < N; i++) model[r][i] += 0.1f * random_normal();
            ASSERT_EQ(CG_OK, cg_diff_compress(&diff[r], &tag, model[r], packet, sizeof packet, &len));
            ASSERT_EQ(CG_OK, cg_decompress(packet, len, decoded, N));
            for (int i = 0; i < N; i++) mean[i] += decoded[i] / (float)workers;
        }
        if (t % 7 == 3) { /* nothing came: bases stay, and what models have moved is sent again */
            for (int r = 0; r < workers; r++) {
                cg_diff_cancel(&diff[r]);
                ASSERT_MEM_EQ(base, cg_diff_base(&diff[r]), sizeof base);
            }
            continue;
        }
        for (int i = 0; i < N; i++) base[i] = sum_of(product(1.25f, mean[i]), base[i]);
        for (int r = 0; r < workers; r++) {
            memcpy(model[r], mean, sizeof mean);
            ASSERT_EQ(CG_OK, cg_diff_apply(&diff[r], model[r], N));
            ASSERT_MEM_EQ(base, model[r], sizeof base);
            ASSERT_MEM_EQ(base, cg_diff_base(&diff[r]), sizeof base);
            ASSERT(cg_diff_mark(&diff[r]) == cg_diff_mark(&diff[0]));
        }
        if (t == 20) { /* a rank joins */
            static const float zeros[N] = { 0 };
            ASSERT_EQ(CG_OK, cg_diff_init(&diff[4], &op, N, 1.25f, WORKERS, zeros, mem[4], sizeof mem[4]));
            ASSERT(cg_diff_mark(&diff[4]) != cg_diff_mark(&diff[0]));
            ASSERT_EQ(CG_OK, cg_diff_save(&diff[2], saved, sizeof saved, &len));
            ASSERT_EQ(cg_diff_save_bytes(&diff[2]), len);
            ASSERT_EQ(CG_OK, cg_diff_load(&diff[4], saved, len));
            memcpy(model[4], cg_diff_base(&diff[4]), sizeof model[4]);
            workers++;
        }
    }
    { /* refusals */
        const cg_op topk = cg_topk(0.1f);
        cg_report report;
        cg_diff d;
        ASSERT_EQ(0u, cg_diff_memory(&topk, N));
        ASSERT_EQ(CG_E_UNSUPPORTED, cg_diff_init(&d, &topk, N, 0, 0, base, mem[0], sizeof mem[0]));
        cg_ef_report(&d.ef, &report);
        ASSERT(strstr(report.why, "unbiased"));
        ASSERT_EQ(CG_E_ARG, cg_diff_init(&d, &op, N, 0, 0, NULL, mem[0], sizeof mem[0]));
        ASSERT_EQ(CG_E_STATE, cg_diff_apply(&d, mean, N));
        ASSERT_EQ(CG_OK, cg_diff_init(&d, &op, N, 0, 0, base, mem[0], sizeof mem[0]));
        mean[5] = (float)INFINITY;
        ASSERT_EQ(CG_E_NONFINITE, cg_diff_apply(&d, mean, N));
        ASSERT_MEM_EQ(base, cg_diff_base(&d), sizeof base);
        ASSERT_EQ(CG_E_MISMATCH, cg_diff_apply(&d, mean, N - 1));
    }
    PASS();
}

/* On linear, which sums packets in their domain, ranks draw in common, unless the operator asks for more. */
TEST linear_draws_in_common(const char *text, uint32_t kind, cg_status want) {
    const plan p = { text, kind, kind == CG_EF_FILTERED ? 0.9f : 0.0f, 0, CG_ROUTE_LINEAR, 0 };
    float sum[N] = { 0 }, decoded[N];
    static unsigned char packet[1 << 12];
    size_t len;
    job.p = &p;
    job.size = 3;
    job.fail_io = -1;
    job.step = 4;
    state = 8;
    for (int r = 0; r < 3; r++) {
        const cg_op op = desc_of(&p, 3).op;
        const cg_tag tag = { 11, 4, 0, (uint32_t)r };
        RUN_CASE(open_one(r));
        if (kind == CG_EF_DIFFERENCE) ASSERT_EQ(CG_OK, cg_ef_set_received(&job.w[r].ef, sum, N));
        for (int i = 0; i < N; i++) job.w[r].given[i] = random_normal();
        if (want != CG_OK) continue;
        ASSERT_EQ(CG_OK, cg_compress(&op, &tag, job.w[r].given, N, packet, sizeof packet, &len, NULL, 0));
        ASSERT_EQ(CG_OK, cg_decompress(packet, len, decoded, N));
        for (int i = 0; i < N; i++) decoded[i] /= 3;
        if (r == 0) memcpy(job.received, decoded, sizeof decoded);
        else
            for (int i = 0; i < N; i++) job.received[i] += decoded[i];
    }
    ASSERT(all_call(0));
    for (int r = 0; r < 3; r++) {
        ASSERT_EQ(want, job.w[r].status);
        for (int i = 0; i < N && want == CG_OK; i++)
            ASSERT_IN_RANGE((double)job.received[i], (double)job.w[r].x[i], 1e-4);
    }
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    static const uint32_t kinds[] = { CG_EF_NONE, CG_EF_FILTERED, CG_EF_DIFFERENCE };
    GREATEST_MAIN_BEGIN();
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) RUN_TEST1(schedules_keep_the_invariants, (int)i);
    RUN_TEST(a_rank_that_has_not_moved_counts);
    RUN_TEST1(a_rank_joins, CG_EF_FILTERED);
    RUN_TEST1(a_rank_joins, CG_EF_DIFFERENCE);
    RUN_TEST(an_agreement_on_nothing);
    RUN_TEST(other_bases_do_not_load_together);
    for (int k = 0; k < 3; k++) {
        RUN_TEST1(biased_operators_are_refused, kinds[k]);
        RUN_TESTp(operators_are_not_divided, kinds[k], "randk:0.2");
        RUN_TESTp(operators_are_not_divided, kinds[k], "eden:1");
        RUN_TESTp(operators_are_not_divided, kinds[k], "qsgd:1");
    }
    RUN_TESTp(linear_draws_in_common, "randk:0.2", CG_EF_NONE, CG_OK);
    RUN_TESTp(linear_draws_in_common, "randk:0.2", CG_EF_FILTERED, CG_OK);
    RUN_TESTp(linear_draws_in_common, "randk:0.2", CG_EF_DIFFERENCE, CG_OK);
    RUN_TESTp(linear_draws_in_common, "randk:0.2:private", CG_EF_NONE, CG_E_UNSUPPORTED);
    RUN_TEST(descriptions_are_refused);
    RUN_TEST(biased_is_said);
    RUN_TEST(exchanges_are_refused);
    RUN_TEST(a_wire_of_ones_own);
    GREATEST_MAIN_END();
}
