/* Ranks that have received different vectors: kinds that keep what they received (H, M) must find out in the next
   exchange, on all ranks, and agree again by cg_ef_agree or by a common state. A step is made to fail on some ranks
   only in several ways; what is kept is compared with plain sums in double. */
#include "examples/transport_threads.h"
#include "greatest.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include <math.h>
#include <stdio.h>

enum { RANKS = 3, N = 200, MEM = 1 << 18, STATE = 1 << 16 };
static char note[400];
#define EXPECT(what, rank)                                                                             \
  do {                                                                                                 \
    if (!(what)) {                                                                                     \
      snprintf(note, sizeof note, "line %d: %s: %s, rank %d", __LINE__, #what, job.name, (int)(rank)); \
      return 0;                                                                                        \
    }                                                                                                  \
  } while (0)

typedef struct plan {
    const char *op;
    uint32_t kind;
    float momentum, alpha;
    uint32_t route, fold;
    int carry, weighted;
} plan;
static const plan plans[] = { { "topk:0.1", CG_EF_EF21, 0, 0, CG_ROUTE_ALLGATHER, 0, 0, 0 },
    { "topk:0.1", CG_EF_EF21, 0, 0, CG_ROUTE_ALLGATHER, CG_FOLD_SUM, 0, 0 },
    { "topk:0.1", CG_EF_EF21, 0, 0, CG_ROUTE_ALLGATHER, 0, 0, 1 },
    { "topk:0.1", CG_EF_EF21, 0.9f, 0, CG_ROUTE_RING, 0, 0, 0 },
    { "topk:0.1", CG_EF_EF21, 0.9f, 0, CG_ROUTE_SERVER, 0, 0, 0 },
    { "topk:0.1", CG_EF_EF21, 0, 0, CG_ROUTE_MERGE, 0, 0, 0 },
    { "topk:0.1", CG_EF_EF21, 0, 0, CG_ROUTE_REGION, 0, 0, 0 },
    { "topk:0.1", CG_EF_EF21, 0, 0, CG_ROUTE_SHARED, 0, 0, 0 },
    { "efsign", CG_EF_EF21, 0, 0, CG_ROUTE_SCATTER, 0, 1, 0 },
    { "lowrank:2:10:20", CG_EF_EF21, 0, 0, CG_ROUTE_LINEAR, 0, 0, 0 },
    { "absmax:4:64", CG_EF_DIANA, 0, 0.25f, CG_ROUTE_ALLGATHER, 0, 0, 0 },
    { "qsgd:4", CG_EF_DIANA, 0, 0, CG_ROUTE_TREE, 0, 0, 0 },
    { "randk:0.25", CG_EF_DIANA, 0, 0, CG_ROUTE_LINEAR, 0, 0, 0 },
    { "minmax:3:200:nearest", CG_EF_LAQ, 0, 0, CG_ROUTE_ALLGATHER, 0, 0, 0 },
    { "efsign", CG_EF_ONEBIT_ADAM, 0.9f, 0, CG_ROUTE_SCATTER, 0, 1, 0 },
    { "efsign", CG_EF_ONEBIT_ADAM, 0.9f, 0, CG_ROUTE_ALLGATHER, CG_FOLD_SUM, 0, 0 },
    { "topk:0.1", CG_EF_ONEBIT_ADAM, 0.5f, 0, CG_ROUTE_ALLGATHER, 0, 0, 1 } };
enum { PLANS = sizeof plans / sizeof *plans };
static int is_difference(const plan *p) { return p->kind != CG_EF_ONEBIT_ADAM; }

/* ---- ranks ---- */

enum { EXCHANGE, AGREE, LAYERS };
/* what fails: the callback says so after message `io` of this rank has moved, or one bit of it is turned */
enum { NOTHING, LATE, HURT };
typedef struct worker {
    cg_ef ef;
    cg_exchange_desc desc;
    float state[STATE / 4], mem[MEM / 4], grad[N], given[N];
    cg_transport real;
    int rank, ios, call;
    size_t bytes; /* of mem; 0: what the call asks for */
    cg_status status;
    cg_report report;
} worker;
static struct {
    const plan *p;
    char name[200];
    worker w[RANKS];
    uint64_t step;
    int fail, fail_rank, fail_io; /* NOTHING, LATE, HURT */
} job;

static void hurt(void *bytes, size_t len) {
    if (len) ((unsigned char *)bytes)[len / 2] ^= 4;
}
/* Of a message that has moved: what this rank's callback returns. in: what arrived, from others. */
static int moved(worker *w, int code, void *in, size_t len) {
    const int now = job.fail_rank == w->rank && job.fail_io == w->ios;
    w->ios++;
    if (!code && now && job.fail == HURT) hurt(in, len);
    return code ? code : now && job.fail == LATE ? 77 : 0;
}
static int by_sum(void *user, float *v, size_t n) {
    worker *w = (worker *)user;
    return moved(w, w->real.allreduce(w->real.user, v, n), v, 4 * n);
}
static int by_gather(void *user, const void *mine, void *all, size_t bytes) {
    worker *w = (worker *)user;
    const int code = w->real.allgather(w->real.user, mine, all, bytes);
    return moved(w, code, (char *)all + (w->rank ? 0 : bytes), bytes);
}
static int by_cast(void *user, void *buf, size_t bytes, int root) {
    worker *w = (worker *)user;
    return moved(w, w->real.broadcast(w->real.user, buf, bytes, root), buf, root == w->rank ? 0 : bytes);
}
static int by_hop(void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    worker *w = (worker *)user;
    return moved(
        w, w->real.sendrecv(w->real.user, out, out_bytes, to, in, in_bytes, from), in, from < 0 ? 0 : in_bytes);
}
static cg_transport net_of(cg_threads_world *threads, worker *w) {
    cg_transport t;
    w->real = t = cg_threads_transport(threads, w->rank, CG_THREADS_ALL);
    t.user = w;
    t.allreduce = by_sum;
    t.allgather = by_gather;
    t.broadcast = by_cast;
    t.sendrecv = by_hop;
    return t;
}
static int run(cg_threads_world *threads, int rank, void *user) {
    worker *w = &job.w[rank];
    const cg_transport t = net_of(threads, w);
    size_t bytes;
    (void)user;
    cg_threads_timeout(threads, 2000);
    w->ios = 0;
    if (w->call == AGREE) {
        bytes = w->bytes ? w->bytes : cg_ef_agree_memory(&w->ef, &w->desc, &t);
        if (bytes > MEM) exit(2);
        w->status = cg_ef_agree(&w->ef, &w->desc, &t, w->mem, bytes, &w->report);
    } else {
        bytes = w->bytes ? w->bytes : cg_ef_exchange_memory(&w->ef, &w->desc, &t);
        if (bytes > MEM) exit(2);
        memcpy(w->grad, w->given, sizeof w->grad);
        w->status = cg_ef_exchange(&w->ef, &w->desc, &t, w->grad, w->mem, bytes, &w->report);
    }
    return 0;
}
static float gradient(int rank, uint64_t step, int i) {
    uint32_t h = (uint32_t)i * 2654435761u ^ (uint32_t)(step + 1) * 2246822519u ^ (uint32_t)(rank + 1) * 3266489917u;
    h = (h ^ h >> 15) * 2246822519u;
    h = (h ^ h >> 13) * 3266489917u;
    return (float)((int32_t)(h >> 8 & 0xffff) - 32768) / 4096.0f + (float)(i % 5 - rank);
}
static int all_call(int call) {
    job.step++;
    for (int r = 0; r < RANKS; r++) {
        worker *w = &job.w[r];
        w->call = call;
        w->desc.tag.step = job.step;
        for (int i = 0; i < N; i++) w->given[i] = gradient(r, job.step, i);
    }
    return cg_threads_run(RANKS, run, NULL) == 0;
}
static int step(void) { return all_call(EXCHANGE); }
static int statuses(cg_status want) {
    for (int r = 0; r < RANKS; r++) EXPECT(job.w[r].status == want, r);
    return 1;
}
static int open_all(const plan *p) {
    job.p = p;
    job.step = 0;
    job.fail = NOTHING;
    for (int r = 0; r < RANKS; r++) {
        static const cg_exchange_desc none = CG_ZERO;
        worker *w = &job.w[r];
        cg_ef_desc d = CG_ZERO;
        cg_transport t = CG_ZERO;
        snprintf(job.name, sizeof job.name, "%s, kind %d, route %d, fold %d", p->op, (int)p->kind, (int)p->route,
            (int)p->fold);
        w->rank = t.rank = r;
        t.size = RANKS;
        t.sendrecv = by_hop;
        w->bytes = 0;
        w->desc = none;
        w->desc.route = p->route;
        w->desc.fold = p->fold;
        w->desc.weight = p->weighted ? 1.0f + (float)r : 0.0f;
        w->desc.tag.seed = 7;
        if (cg_op_parse(&d.op, p->op) != CG_OK) exit(2);
        w->desc.op = d.op;
        d.n = N;
        d.kind = p->kind;
        d.momentum = p->momentum;
        d.alpha = p->alpha;
        d.laq_step = p->kind == CG_EF_LAQ ? 0.1f : 0.0f;
        if (p->carry) d.carry = cg_exchange_carry(&w->desc, &t, N);
        EXPECT(cg_ef_memory(&d) <= STATE, r);
        EXPECT(cg_ef_init(&w->ef, &d, w->state, STATE) == CG_OK, r);
    }
    return 1;
}

/* ---- what must hold ---- */

static int equal_results(void) {
    for (int r = 1; r < RANKS; r++)
        if (memcmp(job.w[r].grad, job.w[0].grad, sizeof job.w[0].grad)) return 0;
    return 1;
}
/* The states in which ranks have received the same. */
static int equal_received(void) {
    for (int r = 1; r < RANKS; r++)
        if (memcmp(job.w[r].ef.vector[2], job.w[0].ef.vector[2], sizeof(float) * N)) return 0;
    return 1;
}
static double weight_of(int rank) { return job.p->weighted ? 1.0 + rank : 1.0; }
/* The fold over ranks of a vector of the state, and a bound of what floats round. */
static void fold_of(int which, double *sum, double *off) {
    const int sums = is_difference(job.p) && job.p->fold == CG_FOLD_SUM;
    double all = 0.0;
    for (int r = 0; r < RANKS; r++) all += weight_of(r);
    for (int i = 0; i < N; i++) {
        sum[i] = off[i] = 0.0;
        for (int r = 0; r < RANKS; r++) {
            const double v = weight_of(r) * (double)job.w[r].ef.vector[which][i] / (sums ? 1.0 : all);
            sum[i] += v;
            off[i] += (RANKS + 4) * 0x1p-24 * fabs(v);
        }
    }
}
/* H is the mean of all h, but for carries; steps: how often each was rounded since they were the same. */
static int sums_hold(int steps) {
    double want[N], off[N];
    if (!is_difference(job.p)) return 1;
    fold_of(0, want, off);
    for (int r = 0; r < RANKS; r++)
        for (size_t i = 0; i < job.w[r].ef.desc.carry; i++)
            want[job.w[r].ef.carry_first + i] -= (double)job.w[r].ef.carry[i];
    for (int i = 0; i < N; i++)
        EXPECT(fabs((double)job.w[0].ef.vector[2][i] - want[i]) <= steps * (off[i] + RANKS * 0x1p-18), i);
    return 1;
}
/* Ranks go on in peace. */
static int goes_on(int steps) {
    for (int t = 0; t < steps; t++) {
        EXPECT(step(), 0);
        if (!statuses(CG_OK)) return 0;
        EXPECT(equal_results() && equal_received(), 0);
        for (int r = 1; r < RANKS; r++) EXPECT(cg_ef_mark(&job.w[r].ef) == cg_ef_mark(&job.w[0].ef), r);
        EXPECT(cg_ef_mark(&job.w[0].ef) != 0, 0);
    }
    return 1;
}
typedef struct copy {
    float v[3][N], carry[N];
    uint64_t mark;
} copy;
static void copy_of(const worker *w, copy *c) {
    memset(c, 0, sizeof *c);
    for (int v = 0; v < 3; v++)
        if (w->ef.vector[v]) memcpy(c->v[v], w->ef.vector[v], sizeof c->v[v]);
    if (w->ef.carry) memcpy(c->carry, w->ef.carry, sizeof(float) * w->ef.desc.carry);
    c->mark = w->ef.mark;
}
/* They differ: every exchange says so on every rank, and is a rollback. */
static int stands_still(void) {
    for (int t = 0; t < 2; t++) {
        copy was, now;
        copy_of(&job.w[1], &was);
        EXPECT(step(), 0);
        if (!statuses(CG_E_MISMATCH)) return 0;
        for (int r = 0; r < RANKS; r++) {
            EXPECT(!memcmp(job.w[r].grad, job.w[r].given, sizeof job.w[r].grad), r);
            EXPECT(job.w[r].report.why && strstr(job.w[r].report.why, "common"), r);
            EXPECT(job.w[r].report.rank >= 0 && job.w[r].report.rank != r, r);
        }
        copy_of(&job.w[1], &now);
        EXPECT(!memcmp(was.v[2], now.v[2], sizeof was.v[2]) && was.mark == now.mark, 1);
        if (is_difference(job.p)) EXPECT(!memcmp(was.v[0], now.v[0], sizeof was.v[0]), 1);
    }
    return 1;
}
/* cg_ef_agree: H and M are the plain mean, all else is as it was. */
static int agrees(void) {
    static copy was[RANKS];
    static double want[N], off[N];
    copy now;
    for (int r = 0; r < RANKS; r++) copy_of(&job.w[r], &was[r]);
    fold_of(is_difference(job.p) ? 0 : 2, want, off);
    EXPECT(all_call(AGREE), 0);
    if (!statuses(CG_OK)) return 0;
    EXPECT(equal_received(), 0);
    for (int r = 0; r < RANKS; r++) {
        const cg_ef *ef = &job.w[r].ef;
        for (int i = 0; i < N; i++) EXPECT(fabs((double)ef->vector[2][i] - want[i]) <= off[i], i);
        copy_of(&job.w[r], &now);
        EXPECT(!memcmp(now.v[0], was[r].v[0], sizeof now.v[0]) && !memcmp(now.v[1], was[r].v[1], sizeof now.v[1]), r);
        for (size_t i = 0; i < ef->desc.carry; i++)
            EXPECT(ef->carry[i] == (is_difference(job.p) ? 0.0f : was[r].carry[i]), r);
        EXPECT(cg_ef_mark(ef) == cg_ef_mark(&job.w[0].ef) && cg_ef_mark(ef) != 0, r);
    }
    return 1;
}

/* ---- ways to disagree ---- */

enum { LATE_FIRST, LATE_LAST, HURT_LAST, HURT_MIDDLE, BY_HAND, OLD_STATE, WAYS };
static const char *const ways[] = { "rank 0 misses the end", "the last rank misses the end",
    "a bit of the last message", "a bit in the middle", "committed by hand", "an old state" };
static unsigned char saved[RANKS][STATE + 4096];
static size_t saved_len[RANKS];
static int save_all(void) {
    for (int r = 0; r < RANKS; r++)
        EXPECT(cg_ef_save(&job.w[r].ef, saved[r], sizeof saved[r], &saved_len[r]) == CG_OK, r);
    return 1;
}
/* Packets that the caller moves: committed on all ranks but one. */
static int by_hand(int but) {
    static unsigned char packet[RANKS][MEM];
    float d[N], mean[RANKS][N];
    size_t len[RANKS];
    memset(mean, 0, sizeof mean);
    job.step++;
    for (int r = 0; r < RANKS; r++) {
        cg_tag tag = CG_ZERO;
        tag.rank = (uint32_t)r;
        tag.step = job.step;
        for (int i = 0; i < N; i++) job.w[r].given[i] = gradient(r, job.step, i);
        EXPECT(cg_ef_compress(&job.w[r].ef, &tag, job.w[r].given, packet[r], MEM, &len[r]) == CG_OK, r);
        EXPECT(cg_decompress(packet[r], len[r], d, N) == CG_OK, r);
        for (int i = 0; i < N; i++) mean[0][i] += d[i] / RANKS;
    }
    for (int r = 1; r < RANKS; r++) memcpy(mean[r], mean[0], sizeof mean[0]);
    for (int r = 0; r < RANKS; r++)
        if (r != but) EXPECT(cg_ef_commit(&job.w[r].ef, packet[r], len[r], mean[r]) == CG_OK, r);
        else EXPECT(cg_ef_rollback(&job.w[r].ef, packet[r], len[r]) == CG_OK, r);
    return 1;
}
/* One step in which something goes wrong. certain: ranks must have received different vectors after it. */
static int goes_wrong(int way, int *certain) {
    *certain = way != HURT_LAST && way != HURT_MIDDLE;
    if (way == BY_HAND) return by_hand(1);
    if (way == OLD_STATE) {
        EXPECT(cg_ef_load(&job.w[1].ef, saved[1], saved_len[1]) == CG_OK, 1);
        return 1;
    }
    EXPECT(step(), 0); /* one that counts messages */
    if (!statuses(CG_OK)) return 0;
    job.fail_rank = way == LATE_FIRST ? 0 : RANKS - 1;
    job.fail = way == LATE_FIRST || way == LATE_LAST ? LATE : HURT;
    job.fail_io = way == HURT_MIDDLE ? job.w[job.fail_rank].ios / 2 : job.w[job.fail_rank].ios - 1;
    EXPECT(step(), 0);
    job.fail = NOTHING;
    return 1;
}
static int disagreed;
static int disagrees(const plan *p, int way, int back) {
    int certain, apart;
    if (!open_all(p) || !goes_on(3) || !sums_hold(3) || !save_all() || !goes_on(2) || !goes_wrong(way, &certain))
        return 0;
    apart = !equal_received();
    disagreed += apart;
    if (certain) EXPECT(apart, 0);
    if (!apart) { /* nobody has stepped, or all have: on they go */
        for (int r = 1; r < RANKS; r++) EXPECT(job.w[r].status == CG_OK || job.w[0].status != CG_OK, r);
        return goes_on(2);
    }
    if (!stands_still()) return 0;
    if (back) {
        for (int r = 0; r < RANKS; r++) EXPECT(cg_ef_load(&job.w[r].ef, saved[r], saved_len[r]) == CG_OK, r);
        return goes_on(3) && sums_hold(6);
    }
    return agrees() && sums_hold(1) && goes_on(3) && sums_hold(4);
}
TEST disagreement(const plan *p, int way) {
    int ok = disagrees(p, way, 0) && disagrees(p, way, 1);
    if (!ok) printf("%s: %s\n", ways[way], note);
    ASSERTm(note, ok);
    PASS();
}
TEST enough_of_it(void) { /* damage, too, made ranks disagree */
    ASSERT(disagreed > PLANS * 8);
    PASS();
}

/* Opposite gradients: the mean is 0, H is the same whether or not it was received, and h is not. */
static int opposite(void) {
    static unsigned char packet[2][MEM];
    static const plan p = { "dense", CG_EF_EF21, 0, 0, CG_ROUTE_ALLGATHER, 0, 0, 0 };
    if (!open_all(&p)) return 0;
    for (int r = 0; r < 2; r++) {
        float mean[N] = { 0 };
        size_t len;
        for (int i = 0; i < N; i++) job.w[r].given[i] = r ? -1.0f : 1.0f;
        EXPECT(cg_ef_compress(&job.w[r].ef, NULL, job.w[r].given, packet[r], MEM, &len) == CG_OK, r);
        EXPECT(
            (r ? cg_ef_rollback(&job.w[r].ef, NULL, 0) : cg_ef_commit(&job.w[r].ef, packet[r], len, mean)) == CG_OK, r);
    }
    EXPECT(equal_received(), 0);
    return stands_still() && agrees() && goes_on(2) && sums_hold(3);
}
TEST a_mean_of_zero_counts(void) {
    ASSERTm(note, opposite());
    PASS();
}

/* ---- cg_ef_agree by itself ---- */

static int agree_fails(void) {
    const cg_status wrong[] = { CG_E_STATE, CG_E_MEMORY };
    unsigned char packet[4096];
    size_t len;
    copy was, now;
    int certain;
    if (!open_all(&plans[0]) || !goes_on(3) || !save_all() || !goes_wrong(LATE_LAST, &certain)) return 0;
    /* the last message is lost, on rank 1: the others agree, and do so again with it */
    EXPECT(all_call(AGREE), 0);
    if (!statuses(CG_OK) || !goes_on(1) || !goes_wrong(LATE_LAST, &certain)) return 0;
    copy_of(&job.w[1], &was);
    job.fail = LATE;
    job.fail_rank = 1;
    job.fail_io = 2; /* in the closing round */
    EXPECT(all_call(AGREE), 0);
    job.fail = NOTHING;
    EXPECT(job.w[1].status == CG_E_TRANSPORT && job.w[0].status == CG_OK && job.w[2].status == CG_OK, 1);
    copy_of(&job.w[1], &now);
    EXPECT(!memcmp(&was, &now, sizeof was), 1);
    if (!stands_still() || !agrees() || !goes_on(1)) return 0;
    /* one rank refuses, and tells the others */
    for (int i = 0; i < 2; i++) {
        if (!i) EXPECT(cg_ef_compress(&job.w[2].ef, NULL, job.w[2].given, packet, sizeof packet, &len) == CG_OK, 2);
        else job.w[2].bytes = 64;
        EXPECT(all_call(AGREE), 0);
        for (int r = 0; r < RANKS; r++) {
            EXPECT(job.w[r].status == (r == 2 ? wrong[i] : CG_E_PEER) && job.w[r].report.rank == 2, r);
            EXPECT(!job.w[r].report.used && job.w[r].report.why, r);
        }
        if (!i) EXPECT(cg_ef_rollback(&job.w[2].ef, NULL, 0) == CG_OK, 2);
        job.w[2].bytes = 0;
    }
    if (!goes_on(1)) return 0;
    /* one rank agrees while the others exchange what has the same form, with no mark yet */
    job.step++;
    for (int r = 0; r < RANKS; r++) {
        cg_ef_reset(&job.w[r].ef);
        job.w[r].ef.desc.dense_steps = 1000;
        job.w[r].call = r == 1 ? AGREE : EXCHANGE;
        job.w[r].desc.route = CG_ROUTE_AUTO;
        job.w[r].desc.tag.step = job.step;
    }
    EXPECT(cg_threads_run(RANKS, run, NULL) == 0, 0);
    return statuses(CG_E_MISMATCH);
}
TEST agreeing_may_fail(void) {
    ASSERTm(note, agree_fails());
    PASS();
}
static int none_by_sum(void *user, float *v, size_t n) {
    (void)user, (void)v, (void)n;
    return 5;
}
TEST nothing_to_agree_on(void) {
    static const plan p = { "topk:0.1", CG_EF_CLASSIC, 0, 0, CG_ROUTE_ALLGATHER, 0, 0, 0 };
    static const cg_ef none = CG_ZERO;
    cg_transport t = CG_ZERO;
    cg_ef ef = none;
    t.size = 2;
    t.allreduce = none_by_sum;
    ASSERTm(note, open_all(&p));
    ASSERT_EQ((size_t)0, cg_ef_agree_memory(&job.w[0].ef, &job.w[0].desc, &t));
    ASSERT_EQ(CG_OK, cg_ef_agree(&job.w[0].ef, &job.w[0].desc, &t, NULL, 0, NULL));
    ASSERT_EQ((uint64_t)0, cg_ef_mark(&job.w[0].ef));
    ASSERT_EQ(CG_E_ARG, cg_ef_agree(NULL, &job.w[0].desc, &t, NULL, 0, NULL));
    ASSERT_EQ(CG_E_ARG, cg_ef_agree(&job.w[0].ef, NULL, &t, NULL, 0, NULL));
    ASSERT_EQ(CG_E_ARG, cg_ef_agree(&job.w[0].ef, &job.w[0].desc, NULL, NULL, 0, NULL));
    t.size = 1; /* forgotten cg_ef_init */
    ASSERT_EQ(CG_E_STATE, cg_ef_agree(&ef, &job.w[0].desc, &t, NULL, 0, NULL));
    PASS();
}

/* ---- the mark ---- */

static uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}
/* One more commit after which v was received, in plain words: chunks of 2048 values, two sums over the bits of each. */
static uint64_t plain_mark(uint64_t mark, const float *v, size_t n) {
    uint64_t all = 0;
    for (size_t first = 0; first < n; first += 2048) {
        uint64_t a = 0, b = 0;
        for (size_t i = first; i < n && i < first + 2048; i++) {
            uint32_t bits;
            memcpy(&bits, v + i, 4);
            a += bits;
            b += a;
        }
        all += mix(mix(a + first) ^ b) >> 32;
    }
    return mix(mark + all + UINT64_C(0x9E3779B97F4A7C15));
}
/* On any machine, at any length, for any rate of H. */
TEST plain_marks(uint32_t kind, float alpha, size_t n) {
    cg_ef_desc d = CG_ZERO;
    cg_ef ef;
    float *grad = (float *)calloc(n, sizeof(float)), *mean = (float *)calloc(n, sizeof(float));
    unsigned char *packet, *mem;
    uint64_t want = 0;
    size_t len;
    d.kind = kind;
    d.n = n;
    d.alpha = alpha;
    mem = (unsigned char *)malloc(cg_ef_memory(&d));
    packet = (unsigned char *)malloc(cg_ef_bound(&d));
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &d, mem, cg_ef_memory(&d)));
    for (int t = 0; t < 3; t++) {
        ASSERT_EQ(want, cg_ef_mark(&ef));
        for (size_t i = 0; i < n; i++) {
            grad[i] = gradient(1, (uint64_t)t, (int)i);
            mean[i] = gradient(2, (uint64_t)t, (int)i);
        }
        ASSERT_EQ(CG_OK, cg_ef_compress(&ef, NULL, grad, packet, cg_ef_bound(&d), &len));
        if (t == 1) {
            ASSERT_EQ(CG_OK, cg_ef_rollback(&ef, NULL, 0)); /* changes nothing of it */
            continue;
        }
        ASSERT_EQ(CG_OK, cg_ef_commit(&ef, packet, len, mean));
        want = plain_mark(want, ef.vector[2], n);
    }
    ASSERT_EQ(want, cg_ef_mark(&ef));
    cg_ef_reset(&ef);
    ASSERT_EQ((uint64_t)0, cg_ef_mark(&ef));
    free(grad), free(mean), free(mem), free(packet);
    PASS();
}
static void put(unsigned char *p, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++) p[i] = (unsigned char)(v >> 8 * i);
}
static uint64_t get(const unsigned char *p, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++) v |= (uint64_t)p[i] << 8 * i;
    return v;
}
/* As 0.1 would have written it: version 1, no mark, the checksum of that. */
static void as_version_1(unsigned char *blob, size_t len) {
    uint64_t a = 0, b = 0;
    put(blob + 4, 1, 4);
    memset(blob + 208, 0, 8);
    memset(blob + 240, 0, 16);
    for (size_t i = 0; i < len; i += 4) {
        a += get(blob + i, 4);
        b += a;
    }
    put(blob + 240, a, 8);
    put(blob + 248, b, 8);
}
/* Saved and loaded, from either version, and as the mean of all. */
static int loads(const plan *p) {
    const void *blobs[RANKS] = { saved[0], saved[1], saved[2] };
    uint64_t mark;
    if (!open_all(p) || !goes_on(3) || !save_all()) return 0;
    mark = cg_ef_mark(&job.w[0].ef);
    for (int r = 0; r < RANKS; r++) {
        EXPECT(get(saved[r] + 4, 4) == 2 && get(saved[r] + 208, 8) == mark, r);
        EXPECT(cg_ef_load(&job.w[r].ef, saved[r], saved_len[r]) == CG_OK && cg_ef_mark(&job.w[r].ef) == mark, r);
    }
    if (!goes_on(1)) return 0;
    for (int r = 0; r < RANKS; r++) EXPECT(cg_ef_load_mean(&job.w[r].ef, blobs, saved_len, RANKS) == CG_OK, r);
    /* every h became H: right for a mean, and for a sum only after that was made anew */
    if (p->fold == CG_FOLD_SUM && !agrees()) return 0;
    if (!goes_on(2) || !sums_hold(3)) return 0;
    for (int r = 0; r < RANKS; r++) {
        as_version_1(saved[r], saved_len[r]);
        EXPECT(cg_ef_load(&job.w[r].ef, saved[r], saved_len[r]) == CG_OK, r);
        EXPECT(cg_ef_mark(&job.w[r].ef) == plain_mark(0, job.w[r].ef.vector[2], N), r);
    }
    if (!goes_on(2)) return 0;
    /* of ranks that disagreed when they were saved */
    for (int r = 0; r < RANKS; r++) EXPECT(cg_ef_load(&job.w[r].ef, saved[r], saved_len[r]) == CG_OK, r);
    if (!by_hand(2) || !save_all()) return 0;
    for (int r = 0; r < RANKS; r++) {
        as_version_1(saved[r], saved_len[r]);
        EXPECT(cg_ef_load(&job.w[r].ef, saved[r], saved_len[r]) == CG_OK, r);
    }
    if (!stands_still()) return 0;
    for (int r = 0; r < RANKS; r++) EXPECT(cg_ef_load_mean(&job.w[r].ef, blobs, saved_len, RANKS) == CG_OK, r);
    return goes_on(2);
}
TEST saved_marks(const plan *p) {
    ASSERTm(note, loads(p));
    PASS();
}

/* ---- layers ---- */

enum { LAYERS_N = 4 };
static const struct layer_plan {
    const char *op;
    uint32_t kind;
    size_t n;
} layer_plans[LAYERS_N] = { { "topk:0.1", CG_EF_EF21, 150 }, { "topk:0.1", CG_EF_CLASSIC, 200 },
    { "absmax:4:64", CG_EF_DIANA, 20 }, { "efsign", CG_EF_ONEBIT_ADAM, 30 } };
static struct layered {
    cg_ef ef[LAYERS_N];
    float state[LAYERS_N][4096], grad[LAYERS_N][N], mem[MEM / 4];
    cg_layer layer[LAYERS_N];
    cg_status status, agree[LAYERS_N];
    cg_report report;
} layered[RANKS];
static int layers_run(cg_threads_world *threads, int rank, void *user) {
    struct layered *k = &layered[rank];
    cg_ef *efs[LAYERS_N];
    const cg_transport t = net_of(threads, &job.w[rank]);
    const size_t small = *(const size_t *)user;
    cg_threads_timeout(threads, 2000);
    job.w[rank].ios = 0;
    for (int i = 0; i < LAYERS_N; i++) efs[i] = &k->ef[i];
    if (job.w[rank].call == AGREE)
        for (int i = 0; i < LAYERS_N; i++) k->agree[i] = cg_ef_agree(efs[i], &k->layer[i].desc, &t, k->mem, MEM, NULL);
    else {
        if (cg_ef_layers_memory(efs, k->layer, LAYERS_N, small, &t) > MEM) exit(2);
        for (int i = 0; i < LAYERS_N; i++)
            if (k->layer[i].desc.common != 5) exit(3); /* the caller's, which stays */
        k->status = cg_ef_exchange_layers(efs, k->layer, LAYERS_N, small, &t, k->mem, MEM, &k->report);
    }
    return 0;
}
static int layers_step(int call, size_t small) {
    job.step++;
    for (int r = 0; r < RANKS; r++) {
        job.w[r].call = call;
        for (int i = 0; i < LAYERS_N; i++) {
            layered[r].layer[i].desc.tag.step = job.step;
            for (int j = 0; j < N; j++) layered[r].grad[i][j] = gradient(r, job.step, i + j);
        }
    }
    return cg_threads_run(RANKS, layers_run, &small) == 0;
}
static int layers_agree(int steps, size_t small) {
    for (int t = 0; t < steps; t++) {
        EXPECT(layers_step(LAYERS, small), 0);
        for (int r = 0; r < RANKS; r++) {
            EXPECT(layered[r].status == CG_OK, r);
            for (int i = 0; i < LAYERS_N; i++) {
                EXPECT(!memcmp(layered[r].grad[i], layered[0].grad[i], 4 * layer_plans[i].n), i);
                EXPECT(layered[r].layer[i].desc.common == 5, i);
            }
        }
    }
    return 1;
}
static int layers_disagree(int which, size_t small) {
    snprintf(job.name, sizeof job.name, "layer %d, small %d", which, (int)small);
    job.step = 0;
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < LAYERS_N; i++) {
            cg_layer none = CG_ZERO;
            cg_ef_desc d = CG_ZERO;
            if (cg_op_parse(&d.op, layer_plans[i].op) != CG_OK) exit(2);
            d.n = layer_plans[i].n;
            d.kind = layer_plans[i].kind;
            EXPECT(cg_ef_init(&layered[r].ef[i], &d, layered[r].state[i], sizeof layered[r].state[i]) == CG_OK, r);
            none.x = layered[r].grad[i];
            none.desc.tag.tensor = (uint32_t)i;
            none.desc.common = 5;
            layered[r].layer[i] = none;
            job.w[r].rank = r;
        }
    if (!layers_agree(3, small)) return 0;
    { /* rank 1 forgets a step of one layer */
        cg_ef *ef = &layered[1].ef[which];
        unsigned char blob[8192];
        size_t len;
        EXPECT(cg_ef_save(ef, blob, sizeof blob, &len) == CG_OK, 1);
        if (!layers_agree(1, small)) return 0;
        EXPECT(cg_ef_load(ef, blob, len) == CG_OK, 1);
    }
    for (int t = 0; t < 2; t++) {
        EXPECT(layers_step(LAYERS, small), 0);
        for (int r = 0; r < RANKS; r++) {
            if (layer_plans[which].kind == CG_EF_CLASSIC) {
                EXPECT(layered[r].status == CG_OK, r);
                continue;
            }
            EXPECT(layered[r].status == CG_E_MISMATCH && strstr(layered[r].report.why, "common"), r);
            for (int i = 0; i < LAYERS_N; i++) {
                EXPECT(layered[r].layer[i].status == CG_E_MISMATCH, i);
                EXPECT(cg_ef_stats_of(&layered[r].ef[i]).kept == 1, i);
                for (int j = 0; j < N; j++) EXPECT(layered[r].grad[i][j] == gradient(r, job.step, i + j), i);
            }
        }
    }
    EXPECT(layers_step(AGREE, small), 0);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < LAYERS_N; i++) EXPECT(layered[r].agree[i] == CG_OK, i);
    return layers_agree(3, small);
}
TEST layers(int which, size_t small) {
    ASSERTm(note, layers_disagree(which, small));
    PASS();
}

/* ---- training ---- */

/* f = mean over ranks of sum d_i (x_i - c_ri)^2 / 2, least at the mean of all c. Every twentieth step rank 1 misses the
   end; ranks agree again when they are told to, and go on. */
static double train(const plan *p, float rate, int steps, int faults) {
    static float x[RANKS][N];
    double worst = 0.0;
    memset(x, 0, sizeof x);
    if (!open_all(p)) return 1e9;
    for (int t = 0; t < steps; t++) {
        job.step++;
        for (int r = 0; r < RANKS; r++) {
            job.w[r].call = EXCHANGE;
            job.w[r].desc.tag.step = job.step;
            for (int i = 0; i < N; i++)
                job.w[r].given[i] = (0.5f + (float)(i % 8) / 16.0f) * (x[r][i] - gradient(r, 0, i));
        }
        job.fail = NOTHING;
        if (faults && t % 20 == 7 && t < steps / 2) {
            job.fail = LATE;
            job.fail_rank = 1;
            job.fail_io = 1; /* the opening, then the packets */
        }
        if (cg_threads_run(RANKS, run, NULL)) return 1e9;
        job.fail = NOTHING;
        for (int r = 0; r < RANKS; r++) {
            if (job.w[r].status == CG_E_MISMATCH) continue;
            for (int i = 0; i < N && job.w[r].status == CG_OK; i++) x[r][i] -= rate * job.w[r].grad[i];
        }
        if (job.w[0].status == CG_E_MISMATCH) {
            if (!statuses(CG_E_MISMATCH) || !all_call(AGREE) || !statuses(CG_OK)) return 1e9;
            /* models are not the library's: rank 1 takes one that has stepped */
            memcpy(x[1], x[0], sizeof x[1]);
        }
    }
    for (int i = 0; i < N; i++) {
        double best = 0.0;
        for (int r = 0; r < RANKS; r++) best += (double)gradient(r, 0, i) / RANKS;
        for (int r = 0; r < RANKS; r++) worst = fmax(worst, fabs((double)x[r][i] - best));
    }
    return worst;
}
TEST trains_on(const char *op, uint32_t kind, float momentum, float rate, double within) {
    const plan p = { op, kind, momentum, 0, CG_ROUTE_ALLGATHER, 0, 0, 0 };
    const double calm = train(&p, rate, 600, 0), rough = train(&p, rate, 600, 1);
    printf("    %s, kind %d: %.2g from the optimum, with faults %.2g\n", op, (int)kind, calm, rough);
    ASSERTm(note, calm < within && rough < within);
    PASS();
}

SUITE(agreeing) {
    static const size_t sizes[] = { 1, 3, 2047, 2048, 2049, 65537, 200000 };
    for (int p = 0; p < PLANS; p++)
        for (int way = 0; way < WAYS; way++) RUN_TESTp(disagreement, &plans[p], way);
    RUN_TEST(enough_of_it);
    RUN_TEST(a_mean_of_zero_counts);
    RUN_TEST(agreeing_may_fail);
    RUN_TEST(nothing_to_agree_on);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        RUN_TESTp(plain_marks, CG_EF_EF21, 0.0f, sizes[i]);
        RUN_TESTp(plain_marks, CG_EF_DIANA, 0.25f, sizes[i]);
        RUN_TESTp(plain_marks, CG_EF_ONEBIT_ADAM, 0.0f, sizes[i]);
    }
    for (int p = 0; p < PLANS; p++) RUN_TESTp(saved_marks, &plans[p]);
    for (int i = 0; i < LAYERS_N; i++) {
        RUN_TESTp(layers, i, (size_t)0);
        RUN_TESTp(layers, i, (size_t)100);
    }
    RUN_TESTp(trains_on, "topk:0.1", CG_EF_EF21, 0.0f, 0.1f, 1e-4);
    RUN_TESTp(trains_on, "topk:0.1", CG_EF_EF21, 0.5f, 0.1f, 1e-4);
    RUN_TESTp(trains_on, "absmax:4:64", CG_EF_DIANA, 0.0f, 0.1f, 1e-4);
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(agreeing);
    GREATEST_MAIN_END();
}
