/* Local SGD with ranks that are threads: against plain exchanges bit for bit, against DiLoCo and its streaming form
   written out here in double, and the identity anchor_0 - anchor_T + mean e = sum of mean deltas through failures and
   saved states. */
#include "examples/transport_threads.h"
#include "greatest.h"
#include "ran.h"
#include "seal.h"
#include "tier.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_sync.h"
#include <math.h>
#include <stdio.h>

enum { RANKS = 4, N = 301, MEM = 1 << 18 };

static uint64_t mix(uint64_t z) {
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 32) * 0xD6E8FEB86659FD93u;
    z = (z ^ z >> 32) * 0xD6E8FEB86659FD93u;
    return z ^ z >> 32;
}
static float uniform(uint64_t a, uint64_t b, uint64_t c) { /* -1 to 1 */
    return (float)(mix(a * 1000003 + b * 7919 + c) >> 40) / 8388608.0f - 1.0f;
}
static float start(size_t i) { return uniform(0, 99, i); }
/* what rank r does to its model in a local step: a pull to a point of its own, and noise */
static float pull(float x, int r, uint64_t step, size_t i) {
    return 0.05f * (x - uniform(1, (uint64_t)r, i)) + 0.02f * uniform(step + 2, (uint64_t)r, i);
}

typedef struct rank_state {
    cg_local local;
    void *state, *saved;
    float x[N], mem[MEM / 4];
    double moved[N]; /* what identities need of this rank: sums, or its last delta */
    int ios, fail_io;
    cg_transport real;
} rank_state;
static rank_state ranks[RANKS];
static struct {
    cg_local_desc desc;
    uint32_t route;
    uint64_t steps, fail_step;
    int fail_rank; /* -1: all */
} job;

/* After the callback of that number has moved its message, it says that it failed. */
static int counted(rank_state *r, int code) { return r->fail_io == r->ios++ ? 77 : code; }
static int failing_sendrecv(
    void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    rank_state *r = user;
    return counted(r, r->real.sendrecv(r->real.user, out, out_bytes, to, in, in_bytes, from));
}
static int failing_allgather(void *user, const void *mine, void *all, size_t bytes_each) {
    rank_state *r = user;
    return counted(r, r->real.allgather(r->real.user, mine, all, bytes_each));
}
static cg_transport net_of(cg_threads_world *world, int rank) {
    rank_state *r = &ranks[rank];
    cg_transport t = CG_ZERO;
    r->real = cg_threads_transport(world, rank, CG_THREADS_ALL);
    r->ios = 0, r->fail_io = -1;
    t.user = r, t.rank = rank, t.size = RANKS;
    t.sendrecv = failing_sendrecv, t.allgather = failing_allgather;
    return t;
}
static int open_rank(int rank) {
    rank_state *r = &ranks[rank];
    const size_t bytes = cg_local_memory(&job.desc);
    for (size_t i = 0; i < N; i++) r->x[i] = start(i), r->moved[i] = 0;
    free(r->state), free(r->saved);
    r->state = malloc(bytes + 3);
    if (cg_local_init(&r->local, &job.desc, r->x, (char *)r->state + 3, bytes) != CG_OK) return 0;
    r->saved = malloc(cg_local_save_bytes(&r->local));
    return 1;
}
static cg_exchange_desc exchange_of(void) {
    cg_exchange_desc d = CG_ZERO;
    d.route = job.route;
    d.tag.seed = 5, d.tag.tensor = 3;
    return d;
}
static cg_local_desc local_of(const char *op) {
    cg_local_desc d = CG_ZERO;
    if (cg_op_parse(&d.ef.op, op) != CG_OK) abort();
    d.ef.n = N;
    d.period = 5;
    job.route = CG_ROUTE_ALLGATHER;
    return d;
}

/* ---- tau = 1 and dense is a plain exchange ---- */

static int plain_rank(cg_threads_world *world, int rank, void *user) {
    rank_state *r = &ranks[rank];
    const cg_transport net = net_of(world, rank);
    cg_exchange_desc d = exchange_of();
    static float model[RANKS][N], work[RANKS][N];
    (void)user;
    NEED(open_rank(rank));
    memcpy(model[rank], r->x, sizeof r->x);
    for (uint64_t t = 0; t < 12; t++) {
        d.tag.step = t;
        for (size_t i = 0; i < N; i++) {
            /* multiples of 2^-12 below 8: all sums are exact, and the step of SGD is the same either way */
            const float g = (float)(int)(mix(t * 777 + (uint64_t)rank * 31 + i) % 64) / 4096.0f;
            const float before = work[rank][i] = t ? r->x[i] : (r->x[i] = (float)(i % 4096) / 4096.0f);
            if (!t) model[rank][i] = before;
            r->x[i] = before - g;
            work[rank][i] = g;
        }
        if (!t) { /* the anchor is the model at the beginning */
            cg_local_desc again = job.desc;
            NEED(cg_local_init(&r->local, &again, model[rank], (char *)r->state + 3, cg_local_memory(&again)) == CG_OK);
        }
        NEED(cg_local_step(&r->local, &d, &net, r->x, t, r->mem, MEM, NULL) == CG_OK);
        /* bulk synchronous: gradients are exchanged, and the model takes the mean */
        d.model = model[rank], d.rate = 1;
        NEED(cg_exchange(&d, &net, work[rank], N, r->mem, MEM, NULL) == CG_OK);
        d.model = NULL;
        NEED(!memcmp(model[rank], r->x, sizeof r->x));
    }
    return 0;
}
/* The same with any values, against the exchange of models, or of deltas. */
static int any_rank(cg_threads_world *world, int rank, void *user) {
    rank_state *r = &ranks[rank];
    const cg_transport net = net_of(world, rank);
    cg_exchange_desc d = exchange_of();
    static float work[RANKS][N], anchor[RANKS][N];
    (void)user;
    NEED(open_rank(rank));
    memcpy(anchor[rank], r->x, sizeof r->x);
    for (uint64_t t = 0; t < 12; t++) {
        d.tag.step = t;
        for (size_t i = 0; i < N; i++) {
            r->x[i] -= pull(r->x[i], rank, t, i);
            work[rank][i] = job.desc.flags ? r->x[i] : anchor[rank][i] - r->x[i];
        }
        NEED(cg_local_step(&r->local, &d, &net, r->x, t, r->mem, MEM, NULL) == CG_OK);
        NEED(cg_exchange(&d, &net, work[rank], N, r->mem, MEM, NULL) == CG_OK);
        for (size_t i = 0; i < N; i++)
            anchor[rank][i] = job.desc.flags ? work[rank][i] : anchor[rank][i] - work[rank][i];
        NEED(!memcmp(anchor[rank], r->x, sizeof r->x));
    }
    return 0;
}
TEST one_step_and_dense_is_a_plain_exchange(void) {
    const uint32_t routes[] = { CG_ROUTE_ALLGATHER, CG_ROUTE_RING, CG_ROUTE_SCATTER };
    for (size_t k = 0; k < 3; k++) {
        job.desc = local_of("dense");
        job.desc.period = 1;
        job.route = routes[k];
        ASSERT_RAN(RANKS, plain_rank, NULL);
        ASSERT_RAN(RANKS, any_rank, NULL);
        job.desc.flags = CG_LOCAL_MODELS;
        ASSERT_RAN(RANKS, any_rank, NULL);
    }
    PASS();
}

/* ---- nothing is lost ---- */

/* moved: the sum over syncs of decay^age * delta, as far as it has not reached the anchor. Failures come at random
   messages; all ranks see the failure, or the whole average, as CG_CONFIRM promises. */
static float anchors[RANKS][64][N], deltas[RANKS][64][N], residuals[RANKS][64][N];
static int outcome[RANKS][64], syncs;
static int lossless_rank(cg_threads_world *world, int rank, void *user) {
    rank_state *r = &ranks[rank];
    const cg_transport net = net_of(world, rank);
    const cg_exchange_desc d = exchange_of();
    int sync = 0;
    (void)user;
    NEED(open_rank(rank));
    for (uint64_t t = 0; t < job.steps; t++) {
        cg_status s;
        for (size_t i = 0; i < N; i++) r->x[i] -= pull(r->x[i], rank, t, i);
        if (cg_local_due(&r->local, t)) {
            for (size_t i = 0; i < N; i++) deltas[rank][sync][i] = cg_local_anchor(&r->local)[i] - r->x[i];
            if (sync % 3 == 1 && rank == sync % RANKS) r->x[sync] = NAN; /* refused by this rank, and so by all */
        }
        s = cg_local_step(&r->local, &d, &net, r->x, t, r->mem, MEM, NULL);
        if (cg_local_due(&r->local, t)) {
            if (sync % 3 == 1) {
                NEED(s == (rank == sync % RANKS ? CG_E_NONFINITE : CG_E_PEER));
                if (rank == sync % RANKS) r->x[sync] = cg_local_anchor(&r->local)[sync] - deltas[rank][sync][sync];
            } else NEED(s == CG_OK);
            outcome[rank][sync] = s == CG_OK;
            memcpy(anchors[rank][sync], cg_local_anchor(&r->local), sizeof r->x);
            NEED(cg_ef_read(&r->local.fragment[0].ef, CG_EF_ERROR, residuals[rank][sync], N) == CG_OK);
            for (size_t i = 0; i < N; i++) residuals[rank][sync][i] /= cg_ef_scale(&r->local.fragment[0].ef);
            sync++;
            if (sync % 4 == 2) { /* another process goes on from what was saved */
                size_t len;
                const cg_local_desc desc = r->local.desc;
                NEED(cg_local_save(&r->local, r->saved, cg_local_save_bytes(&r->local), &len) == CG_OK);
                NEED(cg_local_init(&r->local, &desc, r->x, (char *)r->state + 3, cg_local_memory(&desc)) == CG_OK);
                NEED(cg_local_load(&r->local, r->saved, len) == CG_OK);
            }
        } else NEED(s == CG_OK);
    }
    if (!rank) syncs = sync;
    return 0;
}
TEST anchors_residuals_and_deltas_add_up(void) {
    const struct {
        const char *op;
        uint32_t kind, route;
        float decay;
    } all[] = { { "dense", CG_EF_CLASSIC, CG_ROUTE_RING, 0 }, { "topk:0.05", CG_EF_CLASSIC, CG_ROUTE_ALLGATHER, 0 },
        { "topk:0.1|qsgd:4", CG_EF_CLASSIC, CG_ROUTE_ALLGATHER, 0 }, { "efsign", CG_EF_CLASSIC, CG_ROUTE_ALLGATHER, 0 },
        { "absmax:2:64", CG_EF_CLASSIC, CG_ROUTE_SERVER, 0 }, { "randk:0.2", CG_EF_CLASSIC, CG_ROUTE_ALLGATHER, 0 },
        { "chunked:64:0.1|absmax:4:64:nearest", CG_EF_CLASSIC, CG_ROUTE_ALLGATHER, 0.9f },
        { "topk:0.05", CG_EF_CLASSIC, CG_ROUTE_MERGE, 0.95f } };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        const double decay = all[k].decay != 0 ? (double)all[k].decay : 1;
        double worst = 0;
        job.desc = local_of(all[k].op);
        job.desc.ef.kind = all[k].kind;
        job.desc.ef.decay = all[k].decay;
        job.desc.period = 3;
        job.route = all[k].route;
        job.steps = 60;
        ASSERT_RAN(RANKS, lossless_rank, NULL);
        ASSERT_EQ(20, syncs);
        for (int s = 0; s < syncs; s++)
            for (size_t i = 0; i < N; i++) {
                double e = 0, before = 0, delta = 0, moved;
                for (int q = 0; q < RANKS; q++) {
                    ASSERT_EQ(anchors[0][s][i], anchors[q][s][i]);
                    ASSERT_EQ(outcome[0][s], outcome[q][s]);
                    e += (double)residuals[q][s][i] / RANKS;
                    before += s ? (double)residuals[q][s - 1][i] / RANKS : 0;
                    delta += (double)deltas[q][s][i] / RANKS;
                }
                moved = (s ? (double)anchors[0][s - 1][i] : (double)start(i)) - (double)anchors[0][s][i];
                if (!outcome[0][s]) { /* the anchor stays, and error feedback too, to rounding */
                    ASSERT_EQ(0.0, moved);
                    worst = fmax(worst, fabs(e - before));
                } else worst = fmax(worst, fabs(moved + e - decay * before - delta));
            }
        if (worst > 3e-6) fprintf(stderr, "%s: %g\n", all[k].op, worst);
        ASSERT(worst <= 3e-6);
    }
    PASS();
}

/* ---- DiLoCo, its streaming form, schedules: written out in double ---- */

static int follow_rank(cg_threads_world *world, int rank, void *user) {
    rank_state *r = &ranks[rank];
    const cg_transport net = net_of(world, rank);
    const cg_exchange_desc d = exchange_of();
    (void)user;
    NEED(open_rank(rank));
    for (uint64_t t = 0; t < job.steps; t++) {
        for (size_t i = 0; i < N; i++) r->x[i] -= pull(r->x[i], rank, t, i);
        NEED(cg_local_step(&r->local, &d, &net, r->x, t, r->mem, MEM, NULL) == CG_OK);
        if (t % 7 == 3) { /* also with means under way */
            size_t len;
            const cg_local_desc desc = r->local.desc;
            NEED(cg_local_save(&r->local, r->saved, cg_local_save_bytes(&r->local), &len) == CG_OK);
            NEED(cg_local_init(&r->local, &desc, r->x, (char *)r->state + 3, cg_local_memory(&desc)) == CG_OK);
            NEED(cg_local_load(&r->local, r->saved, len) == CG_OK);
        }
    }
    return 0;
}
/* plain: one rank after the other, dense means in double. starts(f, t): whether fragment f starts after step t. */
static double plain_x[RANKS][N], plain_anchor[N], plain_u[N], plain_mean[N];
static int plain_starts(uint64_t f, uint64_t t) {
    const cg_local_desc *d = &job.desc;
    const uint64_t count = d->fragments ? d->fragments : 1;
    uint64_t from = d->switch_step, period = d->period;
    if (t < d->switch_step) return 1;
    for (size_t k = 0; k < d->table_count; k++)
        if (d->table[k].from <= t)
            period = d->table[k].period, from = d->table[k].from > from ? d->table[k].from : from;
    return (t - from + 1) % period == (period * (f + 1) / count) % period;
}
static void plain_run(void) {
    const cg_local_desc *d = &job.desc;
    const uint64_t count = d->fragments ? d->fragments : 1;
    uint64_t lands[16];
    int under_way[16] = { 0 };
    const double rate = d->outer_rate != 0 ? (double)d->outer_rate : 1, mu = (double)d->outer_momentum;
    for (size_t i = 0; i < N; i++) {
        plain_anchor[i] = (double)start(i), plain_u[i] = 0;
        for (int r = 0; r < RANKS; r++) plain_x[r][i] = (double)start(i);
    }
    for (uint64_t t = 0; t < job.steps; t++) {
        for (int r = 0; r < RANKS; r++)
            for (size_t i = 0; i < N; i++) plain_x[r][i] -= (double)pull((float)plain_x[r][i], r, t, i);
        for (int round = 0; round < 3; round++) /* what lands, what starts, what lands at once */
            for (uint64_t f = 0; f < count; f++) {
                const size_t extra = N % count, each = N / count;
                const size_t first = each * f + (f < extra ? f : extra);
                const size_t end = first + each + (f < extra);
                if (round == 1 && plain_starts(f, t)) {
                    for (size_t i = first; i < end; i++) {
                        plain_mean[i] = 0;
                        for (int r = 0; r < RANKS; r++) plain_mean[i] += (plain_anchor[i] - plain_x[r][i]) / RANKS;
                    }
                    under_way[f] = 1, lands[f] = t + d->delay;
                }
                if (round != 1 && under_way[f] && lands[f] <= t) {
                    for (size_t i = first; i < end; i++) {
                        plain_u[i] = mu * plain_u[i] + plain_mean[i];
                        plain_anchor[i] -= rate * (d->nesterov ? plain_mean[i] + mu * plain_u[i] : plain_u[i]);
                        for (int r = 0; r < RANKS; r++)
                            plain_x[r][i] = (double)d->mix * plain_x[r][i] + (1 - (double)d->mix) * plain_anchor[i];
                    }
                    under_way[f] = 0;
                }
            }
    }
}
static double off(void) {
    double worst = 0;
    for (int r = 0; r < RANKS; r++)
        for (size_t i = 0; i < N; i++)
            worst = fmax(worst,
                fmax(fabs((double)ranks[r].x[i] - plain_x[r][i]),
                    fabs((double)cg_local_anchor(&ranks[r].local)[i] - plain_anchor[i])));
    return worst;
}
#define FOLLOWS()                                            \
  do {                                                       \
    ASSERT_RAN(RANKS, follow_rank, NULL);                    \
    plain_run();                                             \
    if (off() > 1e-5) fprintf(stderr, "off by %g\n", off()); \
    ASSERT(off() <= 1e-5);                                   \
  } while (0)
TEST diloco(void) {
    job.desc = local_of("dense");
    job.steps = 100;
    FOLLOWS(); /* outer SGD with rate 1: the mean of models */
    job.desc.outer_rate = 0.7f, job.desc.outer_momentum = 0.9f;
    FOLLOWS();
    job.desc.nesterov = 1;
    FOLLOWS();
    PASS();
}
TEST streaming_diloco(void) {
    job.desc = local_of("dense");
    job.steps = 100;
    job.desc.period = 8;
    job.desc.fragments = 3;
    FOLLOWS();
    job.desc.delay = 3, job.desc.mix = 0.25f;
    FOLLOWS();
    job.desc.outer_rate = 0.7f, job.desc.outer_momentum = 0.9f, job.desc.nesterov = 1;
    FOLLOWS();
    job.desc.fragments = 11, job.desc.delay = 8; /* several start after one step, and land when they start again */
    FOLLOWS();
    PASS();
}
TEST schedules(void) {
    const cg_local_period grow[] = { { 10, 4 }, { 30, 6 }, { 60, 13 } };
    int many = 0;
    job.desc = local_of("dense");
    job.steps = 100;
    job.desc.switch_step = 17;
    FOLLOWS();
    job.desc.table = grow, job.desc.table_count = 3, job.desc.switch_step = 0, job.desc.period = 2;
    FOLLOWS();
    for (uint64_t t = 0; t < 100; t++) many += cg_local_due(&ranks[0].local, t);
    ASSERT_EQ(5 + 5 + 5 + 3, many); /* every 2 to step 9, every 4 to 29, every 6 to 59, every 13 */
    job.desc.switch_step = 35;
    FOLLOWS();
    PASS();
}
static int momentum_rank(cg_threads_world *world, int rank, void *user) {
    rank_state *r = &ranks[rank];
    const cg_transport net = net_of(world, rank);
    cg_exchange_desc d = exchange_of();
    float v[N];
    (void)user;
    NEED(open_rank(rank));
    for (uint64_t t = 0; t < 20; t++) {
        for (size_t i = 0; i < N; i++) v[i] = (float)(rank * 8 + (int)(t + i) % 5);
        NEED(cg_local_step(&r->local, &d, &net, r->x, t, r->mem, MEM, NULL) == CG_OK);
        NEED(cg_local_average(&r->local, &d, &net, v, t, r->mem, MEM, NULL) == CG_OK);
        for (size_t i = 0; i < N; i++)
            NEED(v[i] == (float)((cg_local_due(&r->local, t) ? 12 : rank * 8) + (int)(t + i) % 5));
    }
    return 0;
}
TEST momentum_is_averaged_with_the_model(void) {
    job.desc = local_of("topk:0.1");
    ASSERT_RAN(RANKS, momentum_rank, NULL);
    PASS();
}

/* ---- when the last message of an average is lost on one rank ---- */

static int lost_rank(cg_threads_world *world, int rank, void *user) {
    rank_state *r = &ranks[rank];
    const cg_transport net = net_of(world, rank);
    const cg_exchange_desc d = exchange_of();
    static int last[RANKS];
    (void)user;
    NEED(open_rank(rank));
    for (uint64_t t = 0; t < 60; t++) {
        cg_status s;
        for (size_t i = 0; i < N; i++) r->x[i] -= pull(r->x[i], rank, t, i);
        r->ios = 0;
        if (t == 29 && rank == 2) r->fail_io = last[rank] - 1;
        s = cg_local_step(&r->local, &d, &net, r->x, t, r->mem, MEM, NULL);
        r->fail_io = -1;
        if (cg_local_due(&r->local, t)) last[rank] = r->ios;
        if (t == 29) NEED(s == (rank == 2 ? CG_E_TRANSPORT : CG_OK));
        else if (t == 34 || t == 39) NEED(s == CG_E_MISMATCH); /* all of them, or none */
        else NEED(s == CG_OK);
        if (t == 41) {
            cg_exchange_desc agree = d;
            agree.tag.step = 1000;
            NEED(cg_local_agree_memory(&r->local, &d, &net) <= MEM);
            NEED(cg_local_agree(&r->local, &agree, &net, r->x, r->mem, MEM, NULL) == CG_OK);
        }
    }
    return 0;
}
TEST ranks_that_differ_are_all_told_and_agree_again(void) {
    const char *const ops[] = { "dense", "topk:0.1", "absmax:4:64" };
    for (size_t k = 0; k < 6; k++) {
        job.desc = local_of(ops[k % 3]);
        if (k > 2) job.desc.outer_momentum = 0.5f, job.desc.ef.kind = CG_EF_CLASSIC;
        ASSERT_RAN(RANKS, lost_rank, NULL);
        for (int q = 1; q < RANKS; q++)
            ASSERT(!memcmp(cg_local_anchor(&ranks[0].local), cg_local_anchor(&ranks[q].local), sizeof ranks[0].x));
    }
    PASS();
}

/* ---- what is refused ---- */

TEST damaged_states_are_refused(void) {
    cg_local *l = &ranks[0].local;
    size_t len, bytes;
    uint8_t *good, *bad, *after;
    job.desc = local_of("topk:0.1");
    job.desc.fragments = 3, job.desc.delay = 4, job.desc.period = 9, job.desc.outer_momentum = 0.5f;
    job.steps = 31; /* fragment 0 has started after step 29, and lands after 33 */
    ASSERT_RAN(RANKS, follow_rank, NULL);
    ASSERT_EQ(1, l->fragment[0].under_way);
    bytes = cg_local_save_bytes(l);
    good = malloc(bytes), bad = malloc(bytes), after = malloc(bytes);
    ASSERT_EQ(CG_E_CAPACITY, cg_local_save(l, good, bytes - 1, &len));
    ASSERT_EQ(CG_OK, cg_local_save(l, good, bytes, &len));
    ASSERT_EQ(bytes, len);
    for (size_t k = 0; k<len; k += len> 3000 && !long_test() ? 13 : 1) {
        memcpy(bad, good, len);
        bad[k] ^= (uint8_t)(1 << k % 8);
        ASSERT(cg_local_load(l, bad, len) != CG_OK);
    }
    for (size_t k = 0; k < len; k += 97) ASSERT(cg_local_load(l, good, k) != CG_OK);
    /* with a right checksum: fills that are not zeros, landings that are far ahead or past, floats that are none */
    for (int k = 0; k < 12; k++) {
        static const struct {
            size_t at;
            uint8_t becomes;
        } what[] = { { 40, 1 }, { 47, 1 }, { 64 + 4, 1 }, { 64 + 0, 2 }, { 64 + 8 + 7, 1 }, { 64 + 8, 38 },
            { 64 + 8, 3 }, { 64 + 24 + 8, 9 }, { 64 + 16, 1 }, { 64 + 72 + 3, 0x7f },
            { 64 + 72 + 4 * N + 4 * 250 + 3, 0x3f }, { 32, 0 } };
        memcpy(bad, good, len);
        bad[what[k].at] = what[k].becomes;
        if (k == 9) bad[what[k].at - 1] = 0x80;
        seal_at(bad, len, 48);
        if (cg_local_load(l, bad, len) != CG_E_CORRUPT) fprintf(stderr, "case %d\n", k);
        ASSERT_EQ(CG_E_CORRUPT, cg_local_load(l, bad, len));
    }
    memcpy(bad, good, len);
    bad[4] = 9;
    seal_at(bad, len, 48);
    ASSERT_EQ(CG_E_VERSION, cg_local_load(l, bad, len));
    ASSERT_EQ(CG_OK, cg_local_save(l, after, bytes, &len)); /* nothing has changed */
    ASSERT(!memcmp(after, good, len));
    seal_at(good, len, 48);
    ASSERT_EQ(CG_OK, cg_local_load(l, good, len)); /* what reseals is right */
    free(good), free(bad), free(after);
    PASS();
}
TEST descriptions_are_refused_by_a_sentence(void) {
    static const cg_local_period down[] = { { 5, 2 }, { 4, 3 } };
    const char *said[9];
    cg_report report;
    for (int k = 0; k < 9; k++) {
        float x0[N] = { 0 };
        cg_local_desc d = local_of("topk:0.1");
        cg_local l;
        if (k == 0) d.ef.n = 0;
        if (k == 1) d.fragments = N + 1;
        if (k == 2) d.outer_momentum = 1;
        if (k == 3) d.mix = NAN;
        if (k == 4) d.flags = CG_LOCAL_MODELS, d.outer_rate = 0.7f;
        if (k == 5) d.nesterov = 1;
        if (k == 6) d.table = down, d.table_count = 2;
        if (k == 7) d.ef.momentum = 2;
        if (k == 8) x0[7] = NAN;
        ASSERT(cg_local_init(&l, &d, x0, ranks[0].mem, MEM) != CG_OK);
        cg_local_report(&l, &report);
        said[k] = report.why;
        for (int j = 0; j < k; j++) ASSERT(strcmp(said[j], said[k]));
        if (k == 8) ASSERT_EQ(7u, report.at);
        else ASSERT_EQ(0u, cg_local_memory(&d));
        ASSERT_EQ(CG_E_STATE, cg_local_save(&l, x0, sizeof x0, &(size_t){ 0 }));
    }
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_TEST(one_step_and_dense_is_a_plain_exchange);
    RUN_TEST(anchors_residuals_and_deltas_add_up);
    RUN_TEST(diloco);
    RUN_TEST(streaming_diloco);
    RUN_TEST(schedules);
    RUN_TEST(momentum_is_averaged_with_the_model);
    RUN_TEST(ranks_that_differ_are_all_told_and_agree_again);
    RUN_TEST(damaged_states_are_refused);
    RUN_TEST(descriptions_are_refused_by_a_sentence);
    GREATEST_MAIN_END();
}
