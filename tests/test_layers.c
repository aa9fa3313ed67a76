/* cg_exchange_layers, over threads: every long layer comes out as if exchanged alone, the short ones as their
   plain mean, all of them opened at once; a layer that cannot be exchanged is heard of by all, and what fails half
   way leaves the rest alone. */
#include "examples/transport_threads.h"
#include "greatest.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_exchange.h"

enum { LAYERS = 7, SMALL = 400, MOST = 8 };
static const char *const ops[LAYERS] = { "topk:0.05", "efsign", "dense", "absmax:4:512", "topk:0.1", "randk:0.5",
    "lowrank:2:50:40" };
static const size_t lengths[LAYERS] = { 5000, 100, 0, 30000, 7, 300, 2000 };

typedef struct job {
    int size, how; /* how: 0 together, 1 one by one, 2 with `bad` */
    float x[MOST][LAYERS][30000];
    double used[MOST][LAYERS][30000];
    cg_layer layer[MOST][LAYERS];
    cg_status status[MOST];
    cg_report report[MOST];
    void (*bad)(struct job *, int rank, cg_layer *, size_t *count, cg_transport *);
    int fail_after, calls[MOST], less; /* less: rank 1 has too little memory */
    cg_transport real[MOST];
} job;
static job *j, *alone;

/* On a dyadic grid, so that sums of a few are exact. */
static float value(int rank, int layer, size_t i) {
    uint32_t h = (uint32_t)i * 2654435761u + (uint32_t)(rank * 31 + layer + 1) * 40503u;
    h = (h ^ h >> 15) * 2246822519u;
    return (float)((int32_t)(h >> 12 & 0xfff) - 2048) / 256.0f;
}
static void describe(cg_layer *l, int i, float *x) {
    memset(l, 0, sizeof *l);
    if (cg_op_parse(&l->desc.op, ops[i]) != CG_OK) abort();
    l->desc.tag.seed = 5;
    l->desc.tag.tensor = (uint32_t)i;
    l->x = x;
    l->n = lengths[i];
}
static int worker(cg_threads_world *world, int rank, void *user) {
    job *k = (job *)user;
    cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    cg_layer *l = k->layer[rank];
    size_t count = LAYERS, bytes;
    void *mem;
    cg_threads_timeout(world, 3000);
    for (int i = 0; i < LAYERS; i++) {
        describe(&l[i], i, k->x[rank][i]);
        for (size_t e = 0; e < lengths[i]; e++) k->x[rank][i][e] = value(rank, i, e);
    }
    if (k->how == 1) {
        for (int i = 0; i < LAYERS; i++) {
            bytes = cg_exchange_memory(&l[i].desc, &t, l[i].n);
            mem = malloc(bytes);
            l[i].status = cg_exchange(&l[i].desc, &t, l[i].x, l[i].n, mem, bytes, &l[i].report);
            free(mem);
        }
        return 0;
    }
    if (k->bad) k->bad(k, rank, l, &count, &t);
    bytes = cg_exchange_layers_memory(l, count, SMALL, &t);
    mem = malloc(bytes + 64);
    memset((char *)mem + bytes, 0x5a, 64);
    k->status[rank] = cg_exchange_layers(
        l, count, SMALL, &t, mem, rank == 1 && k->less ? bytes / 2 : bytes, &k->report[rank]);
    for (int i = 0; i < 64; i++)
        if (((char *)mem)[bytes + (size_t)i] != 0x5a) abort();
    for (int i = 0; i < LAYERS && k->status[rank] == CG_OK; i++) {
        float *u = (float *)malloc(4 * lengths[i] + 4);
        if (cg_used_decode(NULL, l[i].report.used, l[i].report.used_len, 1, 0, u, lengths[i]) != CG_OK)
            k->status[rank] = CG_E_STATE;
        for (size_t e = 0; e < lengths[i]; e++) k->used[rank][i][e] = (double)u[e];
        free(u);
    }
    free(mem);
    return 0;
}
static void run(job *k, int size, int how, void (*bad)(job *, int, cg_layer *, size_t *, cg_transport *)) {
    k->size = size;
    k->how = how;
    k->bad = bad;
    memset(k->calls, 0, sizeof k->calls);
    k->less = 0;
    cg_threads_run(size, worker, k);
}
static int untouched(const job *k, int rank, int i) {
    for (size_t e = 0; e < lengths[i]; e++) {
        const float v = value(rank, i, e);
        if (memcmp(&k->x[rank][i][e], &v, 4) != 0) return 0;
    }
    return 1;
}

TEST as_if_alone(int size) {
    run(j, size, 0, NULL);
    run(alone, size, 1, NULL);
    for (int r = 0; r < size; r++) {
        uint32_t rounds = 0;
        ASSERT_EQ(CG_OK, j->status[r]);
        for (int i = 0; i < LAYERS; i++) {
            ASSERT_EQ(CG_OK, j->layer[r][i].status);
            ASSERT_EQ(0, memcmp(j->x[r][i], j->x[0][i], 4 * lengths[i]));
            if (lengths[i] >= SMALL) ASSERT_EQm(ops[i], 0, memcmp(j->x[r][i], alone->x[r][i], 4 * lengths[i]));
            rounds += alone->layer[r][i].report.rounds;
        }
        /* one opening of two rounds for all of them */
        if (size > 1) ASSERT(j->report[r].rounds + LAYERS - 2 <= rounds);
    }
    PASS();
}
TEST small_ones_are_the_mean(int size) {
    run(j, size, 0, NULL);
    for (int i = 0; i < LAYERS; i++)
        for (size_t e = 0; e < lengths[i] && lengths[i] < SMALL; e++) {
            double mean = 0;
            for (int r = 0; r < size; r++) mean += (double)value(r, i, e) / size;
            ASSERT_IN_RANGE(mean, (double)j->x[0][i][e], 8.0 * size * 6e-8);
        }
    PASS();
}
TEST nothing_is_lost(int size) {
    run(j, size, 0, NULL);
    for (int i = 0; i < LAYERS; i++)
        for (size_t e = 0; e < lengths[i]; e++) {
            double sum = 0;
            for (int r = 0; r < size; r++) sum += j->used[r][i][e];
            ASSERT_IN_RANGEm(ops[i], sum / size, (double)j->x[0][i][e], 40.0 * size * 6e-8);
        }
    PASS();
}

static void nan_in_one(job *k, int rank, cg_layer *l, size_t *count, cg_transport *t) {
    (void)k;
    (void)count;
    (void)t;
    if (rank == 1) {
        const uint32_t nan = 0x7fc00000u;
        memcpy(&l[3].x[77], &nan, 4);
    }
}
static void one_layer_less(job *k, int rank, cg_layer *l, size_t *count, cg_transport *t) {
    (void)k;
    (void)l;
    (void)t;
    if (rank == 1) --*count;
}
static void another_operator(job *k, int rank, cg_layer *l, size_t *count, cg_transport *t) {
    (void)k;
    (void)count;
    (void)t;
    if (rank == 1) l[0].desc.op = cg_topk(0.06f);
}
static void refused(job *k, int rank, cg_layer *l, size_t *count, cg_transport *t) {
    (void)k;
    (void)count;
    (void)t;
    if (rank == 1) l[3].desc.route = CG_ROUTE_LINEAR;
}
static void no_x(job *k, int rank, cg_layer *l, size_t *count, cg_transport *t) {
    (void)k;
    (void)count;
    (void)t;
    if (rank == 1) l[1].x = NULL;
}
static void too_little(job *k, int rank, cg_layer *l, size_t *count, cg_transport *t) {
    (void)l;
    (void)count;
    (void)t;
    if (rank == 1) k->less = 1;
}
TEST all_hear_of_it(void (*bad)(job *, int, cg_layer *, size_t *, cg_transport *), cg_status guilty, cg_status others) {
    run(j, 3, 0, bad);
    for (int r = 0; r < 3; r++) {
        ASSERT_EQ_FMT((int)(r == 1 ? guilty : others), (int)j->status[r], "%d");
        if (r != 1) ASSERT_EQ(1, j->report[r].rank);
        ASSERT(j->report[r].why && *j->report[r].why);
        for (int i = 0; i < LAYERS; i++) ASSERT(bad == nan_in_one && r == 1 && i == 3 ? 1 : untouched(j, r, i));
    }
    PASS();
}

/* A transport that fails at one call of one rank: layers are whole, or as they were. */
static int failing_allgather(void *user, const void *mine, void *all, size_t bytes) {
    job *k = (job *)user;
    return k->calls[1]++ == k->fail_after ? 77 : k->real[1].allgather(k->real[1].user, mine, all, bytes);
}
static void failing(job *k, int rank, cg_layer *l, size_t *count, cg_transport *t) {
    (void)l;
    (void)count;
    k->real[rank] = *t;
    t->sendrecv = NULL;
    t->broadcast = NULL;
    t->allreduce = NULL;
    if (rank != 1) return;
    t->user = k;
    t->allgather = failing_allgather;
}
TEST whole_or_as_they_were(void) {
    int failures = 0;
    for (int at = 0; at < 40; at++) {
        j->fail_after = at;
        run(j, 2, 0, failing);
        if (j->status[1] == CG_OK) break;
        failures++;
        ASSERT_EQ(CG_E_TRANSPORT, j->status[1]);
        ASSERT_EQ(77, j->report[1].code);
        for (int r = 0; r < 2; r++)
            for (int i = 0; i < LAYERS; i++)
                if (j->layer[r][i].status != CG_OK) ASSERT(untouched(j, r, i));
    }
    ASSERT(failures > 4);
    ASSERT_EQ(CG_OK, j->status[0]);
    PASS();
}
TEST little_things(void) {
    cg_transport t = CG_ZERO;
    cg_layer l;
    char mem[8];
    ASSERT_EQ((size_t)0, cg_exchange_layers_memory(NULL, 1, 0, &t));
    ASSERT_EQ(CG_E_ARG, cg_exchange_layers(NULL, 1, 0, &t, mem, sizeof mem, NULL));
    t.size = 1;
    describe(&l, 0, j->x[0][0]);
    ASSERT_EQ(CG_E_MEMORY, cg_exchange_layers(&l, 1, 0, &t, mem, sizeof mem, NULL));
    ASSERT(cg_exchange_layers_memory(&l, 0, 0, &t) > 0);
    PASS();
}

/* ---- matrices, which share their sums ---- */

enum { MATRICES = 50, FLOATS = 60 * 40 };
typedef struct matrices {
    int together, which, confirm, fail_at, calls[MOST];
    uint32_t sum;
    float x[MOST][MATRICES][FLOATS], warm[MOST][MATRICES][4 * 40], used[MOST][MATRICES][FLOATS];
    cg_layer layer[MOST][MATRICES];
    cg_status status[MOST];
    cg_report report[MOST];
    cg_transport real[MOST];
} matrices;
static matrices *m, *apart;
static size_t rows_of(int i) { return 10 + (size_t)i; }
static size_t cols_of(int i) { return 40 - (size_t)(i % 7); }
static cg_op matrix(int i) { return cg_lowrank((uint32_t)rows_of(i), (uint32_t)cols_of(i), 1 + i % 4); }
typedef struct failing_user {
    matrices *k;
    int rank;
} failing_user;
static int counted(failing_user *u) { return u->k->calls[u->rank]++ == u->k->fail_at && u->rank == 0 ? 77 : 0; }
static int counted_allreduce(void *user, float *v, size_t n) {
    failing_user *u = (failing_user *)user;
    const cg_transport *t = &u->k->real[u->rank];
    const int code = counted(u);
    return code ? code : t->allreduce(t->user, v, n);
}
static int counted_allgather(void *user, const void *mine, void *all, size_t bytes) {
    failing_user *u = (failing_user *)user;
    const cg_transport *t = &u->k->real[u->rank];
    const int code = counted(u);
    return code ? code : t->allgather(t->user, mine, all, bytes);
}
static int matrix_worker(cg_threads_world *world, int rank, void *user) {
    matrices *k = (matrices *)user;
    failing_user u;
    cg_transport t = cg_threads_transport(world, rank, k->which);
    cg_layer *l = k->layer[rank];
    cg_threads_timeout(world, 3000);
    for (int i = 0; i < MATRICES; i++) {
        memset(&l[i], 0, sizeof l[i]);
        l[i].desc.op = matrix(i);
        l[i].desc.tag.seed = 9;
        l[i].desc.tag.tensor = (uint32_t)i;
        l[i].desc.sum = k->sum;
        l[i].desc.warm = i % 3 ? k->warm[rank][i] : NULL;
        if (k->confirm) l[i].desc.flags = CG_CONFIRM;
        if (i == 7) l[i].desc.fold = CG_FOLD_SUM;
        l[i].x = k->x[rank][i];
        l[i].n = rows_of(i) * cols_of(i);
        for (size_t e = 0; e < l[i].n; e++) k->x[rank][i][e] = value(rank, i, e) * 1.1f;
    }
    if (k->together) {
        size_t bytes;
        unsigned char *mem;
        k->real[rank] = t;
        u.k = k;
        u.rank = rank;
        k->calls[rank] = 0;
        if (k->fail_at >= 0) {
            t.user = &u;
            t.sendrecv = NULL;
            t.broadcast = NULL;
            t.allreduce = counted_allreduce;
            t.allgather = counted_allgather;
        }
        bytes = cg_exchange_layers_memory(l, MATRICES, 0, &t);
        mem = (unsigned char *)malloc(bytes + 64);
        memset(mem + bytes, 0x5a, 64);
        k->status[rank] = cg_exchange_layers(l, MATRICES, 0, &t, mem, bytes, &k->report[rank]);
        for (int i = 0; i < 64; i++)
            if (mem[bytes + (size_t)i] != 0x5a) abort();
        for (int i = 0; i < MATRICES && k->status[rank] == CG_OK; i++)
            if (cg_used_decode(NULL, l[i].report.used, l[i].report.used_len, 1, 0, k->used[rank][i], l[i].n) != CG_OK)
                abort();
        free(mem);
        return 0;
    }
    for (int i = 0; i < MATRICES; i++) {
        const size_t bytes = cg_exchange_memory(&l[i].desc, &t, l[i].n);
        void *mem = malloc(bytes);
        l[i].status = cg_exchange(&l[i].desc, &t, l[i].x, l[i].n, mem, bytes, &l[i].report);
        if (l[i].status != CG_OK) abort();
        if (cg_used_decode(NULL, l[i].report.used, l[i].report.used_len, 1, 0, k->used[rank][i], l[i].n) != CG_OK)
            abort();
        free(mem);
    }
    return 0;
}
/* Two steps, the second warm: the same bits as one by one, in 5 rounds where allreduce and allgather are callbacks. */
TEST matrices_share_their_sums(int size, int which, uint32_t sum) {
    memset(m, 0, sizeof *m);
    memset(apart, 0, sizeof *apart);
    m->together = 1;
    m->which = apart->which = which;
    m->sum = apart->sum = sum;
    m->fail_at = -1;
    for (int step = 0; step < 2; step++) {
        m->confirm = step;
        ASSERT_EQ(0, cg_threads_run(size, matrix_worker, m));
        ASSERT_EQ(0, cg_threads_run(size, matrix_worker, apart));
        for (int r = 0; r < size; r++) {
            ASSERT_EQ(CG_OK, m->status[r]);
            for (int i = 0; i < MATRICES; i++) {
                ASSERT_EQ(CG_OK, m->layer[r][i].status);
                ASSERT(!memcmp(m->x[r][i], apart->x[r][i], sizeof m->x[r][i]));
                ASSERT(!memcmp(m->x[r][i], m->x[0][i], sizeof m->x[r][i]));
            }
            ASSERT(!memcmp(m->warm[r], apart->warm[r], sizeof m->warm[r]));
            ASSERT(!memcmp(m->used[r], apart->used[r], sizeof m->used[r]));
            if (which == CG_THREADS_ALL && !sum && size > 1)
                ASSERT_EQ_FMT(4u + (uint32_t)m->confirm, m->report[r].rounds, "%u");
        }
    }
    ASSERT(m->warm[0][1][0] != 0.0f);
    PASS();
}
/* A callback that fails leaves all as it was. */
TEST matrices_as_they_were(void) {
    int at = 0;
    memset(m, 0, sizeof *m);
    m->together = 1;
    m->which = CG_THREADS_ALL;
    for (;; at++) {
        m->fail_at = at;
        cg_threads_run(2, matrix_worker, m);
        if (m->status[0] == CG_OK) break;
        ASSERT_EQ(CG_E_TRANSPORT, m->status[0]);
        ASSERT_EQ(77, m->report[0].code);
        for (int i = 0; i < MATRICES; i++) {
            ASSERT_EQ(CG_E_TRANSPORT, m->layer[0][i].status);
            for (size_t e = 0; e < m->layer[0][i].n; e++) ASSERT(m->x[0][i][e] == value(0, i, e) * 1.1f);
        }
        for (int i = 0; i < MATRICES; i++) ASSERT(m->warm[0][i][0] == 0.0f);
    }
    ASSERT_EQ_FMT(4, at, "%d");
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    static const int sizes[] = { 1, 2, 3, 5, 8 };
    GREATEST_MAIN_BEGIN();
    j = (job *)calloc(1, sizeof *j);
    alone = (job *)calloc(1, sizeof *alone);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        RUN_TESTp(as_if_alone, sizes[i]);
        RUN_TESTp(small_ones_are_the_mean, sizes[i]);
        RUN_TESTp(nothing_is_lost, sizes[i]);
    }
    RUN_TESTp(all_hear_of_it, nan_in_one, CG_E_NONFINITE, CG_E_PEER);
    RUN_TESTp(all_hear_of_it, one_layer_less, CG_E_MISMATCH, CG_E_MISMATCH);
    RUN_TESTp(all_hear_of_it, another_operator, CG_E_MISMATCH, CG_E_MISMATCH);
    RUN_TESTp(all_hear_of_it, refused, CG_E_UNSUPPORTED, CG_E_PEER);
    RUN_TESTp(all_hear_of_it, no_x, CG_E_ARG, CG_E_PEER);
    RUN_TESTp(all_hear_of_it, too_little, CG_E_MEMORY, CG_E_PEER);
    RUN_TEST(whole_or_as_they_were);
    RUN_TEST(little_things);
    m = (matrices *)calloc(1, sizeof *m);
    apart = (matrices *)calloc(1, sizeof *apart);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        RUN_TESTp(matrices_share_their_sums, sizes[i], CG_THREADS_ALL, (uint32_t)CG_SUM_AUTO);
        RUN_TESTp(matrices_share_their_sums, sizes[i], CG_THREADS_SENDRECV, (uint32_t)CG_SUM_AUTO);
        if (i % 2) RUN_TESTp(matrices_share_their_sums, sizes[i], CG_THREADS_ALLGATHER, (uint32_t)CG_SUM_AUTO);
        if (i % 2) RUN_TESTp(matrices_share_their_sums, sizes[i], CG_THREADS_ALL, (uint32_t)CG_SUM_RING);
    }
    RUN_TEST(matrices_as_they_were);
    free(m);
    free(apart);
    free(j);
    free(alone);
    GREATEST_MAIN_END();
}
