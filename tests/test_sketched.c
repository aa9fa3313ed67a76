/* cg_sketched_exchange and cg_fetched_exchange: every step against a plain one, bit for bit, over threads and
   between processes; what is left after failures; and training with them. The references trust cg_sketch_add,
   heavy and heavymix, which have tests of their own, and where sums are not exact the dense cg_exchange. */
#include "examples/transport_threads.h"
#include "examples/transport_tcp.h"
#include <math.h>
#include <stdio.h>
#include <sys/wait.h>
#include "greatest.h"
#include "tier.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_sketch.h"
#include "compgrad_ef.h"

enum { RANKS = 32, STEPS = 30 };
static int quick; /* not CG_TEST=long */
static char said[200];
#define SAY(...) (snprintf(said, sizeof said, __VA_ARGS__), said)

static uint64_t mixed(uint64_t z) {
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}
static void *room(size_t bytes) { /* zeros; all tests end with the first one that is refused */
    void *p = calloc(bytes + 1, 1);
    if (!p) abort();
    return p;
}
static float *floats(size_t n) { return (float *)room(4 * n); }
/* One rounding each, wherever the compiler would like to have none. */
static float plus(float a, float b) {
    volatile float s = a + b;
    return s;
}
static float times(float a, float b) {
    volatile float s = a * b;
    return s;
}
/* momentum times memory */
static float faded(float a, float b) {
    const float s = times(a, b);
    return fabsf(s) < 0x1p-100f ? 0.0f : s;
}

/* ---- one step, plainly ---- */

typedef struct plan {
    size_t n;
    int rows;
    size_t cols, groups, k;
    int candidates, mix;
    float momentum, rate;
    uint32_t route;
    uint64_t seed;
    int leader, ahead;  /* ahead: of the step that it is */
    int which, fetched; /* callbacks of the exchange; FetchSGD */
    int faint, until;   /* gradients around 2^-100; from this step on 0 (0: never) */
} plan;

/* Integers times 15: as long as sums stay below 2^24 they are exact in any order, and so are halves, thirds,
   fifths and eighths of them, also when 1/N is rounded first (off by 2^-25 at most, so a product is off by less
   than half of its last bit). Many are zero or equal, which makes for ties. */
static float value(const plan *p, int rank, size_t i, int step) {
    const uint64_t h = mixed(mixed((uint64_t)i * 64 + (uint64_t)rank) + (uint64_t)step * 977 + (uint64_t)p->k);
    if (h & 3 || (p->until && step >= p->until)) return 0.0f;
    return (p->faint ? 0x1p-106f : 1.0f) * 15.0f * (float)((int)(h >> 8 & 31) - 16) * ((h >> 16 & 63) ? 1.0f : 8.0f);
}
static cg_sketch_desc sketch_of(const plan *p) {
    cg_sketch_desc d = CG_ZERO;
    d.rows = p->rows;
    d.cols = p->cols;
    d.n = p->n;
    d.groups = p->groups;
    d.seed = p->seed;
    return d;
}
static cg_exchange_desc road_of(const plan *p, int step) {
    cg_exchange_desc x = CG_ZERO;
    x.route = p->route;
    x.tag.seed = 5;
    x.tag.step = (uint64_t)(step + p->ahead);
    x.leader = p->leader;
    return x;
}
/* Everybody's bytes, by the one of two callbacks that is there. */
static int gathered(const cg_transport *t, const void *mine, void *all, size_t bytes) {
    int code = 0;
    if (t->allgather) return t->allgather(t->user, mine, all, bytes);
    memcpy((char *)all + bytes * (size_t)t->rank, mine, bytes);
    for (int r = 1; r < t->size && !code; r++) {
        const int to = (t->rank + r) % t->size, from = (t->rank + t->size - r) % t->size;
        code = t->sendrecv(t->user, mine, bytes, to, (char *)all + bytes * (size_t)from, bytes, from);
    }
    return code;
}
/* Of everybody's x: in rank order and in double. It is exact if sums are. */
static int plain_mean(const cg_transport *t, float *x, size_t n) {
    float *all = floats(n * (size_t)t->size);
    const int code = gathered(t, x, all, 4 * n);
    for (size_t i = 0; i < n; i++) {
        double s = 0;
        for (int r = 0; r < t->size; r++) s += (double)all[(size_t)r * n + i];
        x[i] = (float)(s / t->size);
    }
    free(all);
    return code;
}
static int dense_mean(const cg_transport *t, const cg_exchange_desc *road, float *x, size_t n) {
    const size_t bytes = cg_exchange_memory(road, t, n);
    void *mem = room(bytes);
    const cg_status s = cg_exchange(road, t, x, n, mem, bytes, NULL);
    free(mem);
    return s != CG_OK;
}
static int mean_of(const cg_transport *t, const plan *p, int step, float *x, size_t n) {
    const cg_exchange_desc road = road_of(p, step);
    return p->momentum != 0.0f && !p->fetched ? dense_mean(t, &road, x, n) : plain_mean(t, x, n);
}
static size_t best_left(const float *v, const char *gone, size_t count) {
    size_t best = count;
    for (size_t j = 0; j < count; j++)
        if (!gone[j] && (best == count || fabsf(v[j]) > fabsf(v[best]))) best = j;
    return best;
}
/* The coordinates that all look at, by this sketch. */
static size_t candidates(const plan *p, const cg_sketch *s, int step, uint64_t *index, float *v) {
    const size_t many = p->k * (size_t)(p->candidates ? p->candidates : 4), count = many < p->n ? many : p->n;
    const size_t bytes = cg_sketch_heavy_scratch(s, count);
    const cg_exchange_desc road = road_of(p, step);
    void *scratch = room(bytes);
    const cg_status st = p->mix ? cg_sketch_heavymix(s, count, &road.tag, index, v, scratch, bytes)
                                : cg_sketch_heavy(s, count, index, v, scratch, bytes);
    if (st != CG_OK) abort();
    free(scratch);
    return count;
}
/* grad becomes the result; a and u (NULL: none) go on. `hash`: the description of the sketch. */
static int plain_sketched(
    const cg_transport *t, const plan *p, const cg_sketch_desc *hash, int step, float *grad, float *a, float *u) {
    const size_t bytes = cg_sketch_memory(hash);
    void *mem = room(bytes);
    uint64_t *index = (uint64_t *)room(8 * p->n);
    float *v = floats(p->n);
    char *gone = (char *)room(p->n);
    cg_sketch s;
    size_t count;
    int code;
    for (size_t i = 0; i < p->n; i++) {
        if (u) u[i] = plus(faded(p->momentum, u[i]), grad[i]);
        a[i] = plus(a[i], u ? u[i] : grad[i]);
    }
    if (cg_sketch_init(&s, hash, mem, bytes) != CG_OK || cg_sketch_add(&s, a, p->n, 1.0f) != CG_OK) abort();
    code = mean_of(t, p, step, s.cells, s.count);
    count = candidates(p, &s, step, index, v);
    for (size_t j = 0; j < count; j++) v[j] = a[index[j]];
    if (!code) code = mean_of(t, p, step, v, count);
    memset(grad, 0, 4 * p->n);
    for (size_t taken = 0; taken < p->k && taken < count; taken++) {
        const size_t j = best_left(v, gone, count), i = (size_t)index[j];
        gone[j] = 1;
        grad[i] = v[j];
        a[i] = 0.0f;
        if (u) u[i] = 0.0f;
    }
    free(mem);
    free(index);
    free(v);
    free(gone);
    return code;
}
/* The same for FetchSGD: su and se have as many cells as a sketch. */
static int plain_fetched(
    const cg_transport *t, const plan *p, const cg_sketch_desc *hash, int step, float *grad, float *se, float *su) {
    const size_t bytes = cg_sketch_memory(hash), k = p->k < p->n ? p->k : p->n;
    void *mem = room(bytes), *scratch;
    uint64_t *index = (uint64_t *)room(8 * p->n);
    float *v = floats(p->n);
    const float one = 1.0f;
    cg_sketch s;
    size_t need;
    int code;
    if (cg_sketch_init(&s, hash, mem, bytes) != CG_OK || cg_sketch_add(&s, grad, p->n, 1.0f) != CG_OK) abort();
    code = mean_of(t, p, step, s.cells, s.count);
    for (size_t c = 0; c < s.count; c++) {
        su[c] = plus(faded(p->momentum, su[c]), s.cells[c]);
        se[c] = plus(se[c], times(p->rate != 0.0f ? p->rate : 1.0f, su[c]));
    }
    memcpy(s.cells, se, 4 * s.count);
    need = cg_sketch_heavy_scratch(&s, k);
    scratch = room(need);
    if (cg_sketch_heavy(&s, k, index, v, scratch, need) != CG_OK) abort();
    memset(grad, 0, 4 * p->n);
    for (size_t j = 0; j < k; j++) {
        grad[index[j]] = v[j];
        cg_sketch_clear(&s); /* where a 1 goes is what the coordinate touches */
        if (cg_sketch_add_list(&s, &index[j], &one, 1, 1.0f) != CG_OK) abort();
        for (size_t c = 0; c < s.count; c++)
            if (s.cells[c] != 0.0f) se[c] = su[c] = 0.0f;
    }
    free(mem);
    free(scratch);
    free(index);
    free(v);
    return code;
}

/* ---- a rank ---- */

/* Both protocols look the same from here: two vectors of state (the second may be missing). */
typedef struct rank_state {
    const plan *p;
    cg_sketched sgd;
    cg_fetched fetch;
    char *memory, *mem, *odd; /* all of them are used from the second byte on */
    size_t bytes, length;     /* of mem; of a vector of the state */
    float *first, *second;    /* the error, the momentum */
} rank_state;

static void rank_open(rank_state *s, const plan *p, const cg_transport *t) {
    const cg_exchange_desc road = road_of(p, 0);
    cg_sketched_desc d = CG_ZERO;
    cg_fetched_desc f = CG_ZERO;
    cg_status st;
    memset(s, 0, sizeof *s);
    s->p = p;
    d.sketch = f.sketch = sketch_of(p);
    d.k = f.k = p->k;
    d.candidates = p->candidates;
    d.mix = p->mix;
    d.momentum = f.momentum = p->momentum;
    f.rate = p->rate;
    s->memory = (char *)room(p->fetched ? cg_fetched_memory(&f) : cg_sketched_memory(&d));
    if (p->fetched) st = cg_fetched_init(&s->fetch, &f, s->memory + 1, cg_fetched_memory(&f));
    else st = cg_sketched_init(&s->sgd, &d, s->memory + 1, cg_sketched_memory(&d));
    if (st != CG_OK) abort();
    s->first = p->fetched ? s->fetch.error.cells : s->sgd.error;
    s->second = p->fetched ? s->fetch.momentum.cells : s->sgd.velocity;
    s->length = p->fetched ? s->fetch.error.count : p->n;
    s->bytes = p->fetched ? cg_fetched_exchange_memory(&s->fetch, &road, t)
                          : cg_sketched_exchange_memory(&s->sgd, &road, t);
    s->mem = (char *)room(s->bytes);
    s->odd = (char *)room(4 * p->n);
    if (!s->bytes) abort();
}
static cg_status rank_step(
    rank_state *s, const cg_transport *t, int step, float *grad, size_t bytes, cg_report *report) {
    const cg_exchange_desc road = road_of(s->p, step);
    float *g = t->rank & 1 ? (float *)(void *)(s->odd + 1) : grad;
    cg_status st;
    memset(s->mem, 0xff, s->bytes + 1); /* nothing in it is remembered */
    if (g != grad) memcpy(s->odd + 1, grad, 4 * s->p->n);
    st = s->p->fetched ? cg_fetched_exchange(&s->fetch, &road, t, g, s->mem + 1, bytes, report)
                       : cg_sketched_exchange(&s->sgd, &road, t, g, s->mem + 1, bytes, report);
    if (g != grad) memcpy(grad, s->odd + 1, 4 * s->p->n);
    return st;
}
static int plain_step(const rank_state *s, const cg_transport *t, int step, float *grad, float *first, float *second) {
    return s->p->fetched ? plain_fetched(t, s->p, &s->fetch.fresh.desc, step, grad, first, second)
                         : plain_sketched(t, s->p, &s->sgd.sketch.desc, step, grad, first, s->second ? second : NULL);
}
static void rank_close(rank_state *s) {
    free(s->memory);
    free(s->mem);
    free(s->odd);
}

static uint64_t hashed(uint64_t h, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, x + i, 4);
        h = mixed(h ^ u);
    }
    return h;
}
static int agreed(const cg_transport *t, uint64_t h) {
    uint64_t all[RANKS];
    int same = !gathered(t, &h, all, sizeof h);
    for (int r = 0; r < t->size && same; r++) same = all[r] == h;
    return same;
}
/* Momentum makes sums inexact, and the dense exchange is then part of the reference: so its values are looked at
   here. N - 1 additions, a product and 1/N itself are rounded: (N + 1) 2^-24 of the mean magnitude, and a little
   for the products of roundings. */
static int close_to_mean(const cg_transport *t, const float *result, float *a, size_t n) {
    float *size = floats(n);
    int good;
    for (size_t i = 0; i < n; i++) size[i] = fabsf(a[i]);
    good = !plain_mean(t, a, n) && !plain_mean(t, size, n);
    for (size_t i = 0; i < n; i++)
        if (result[i] != 0.0f && fabs((double)result[i] - (double)a[i]) > (t->size + 2) * 0x1p-24 * (double)size[i])
            good = 0;
    free(size);
    return good;
}
/* error + what was taken = all gradients, as means over ranks: exactly, without momentum. */
static int nothing_lost(const cg_transport *t, const rank_state *s, const float *given, const double *taken) {
    const size_t n = s->p->n;
    float *left = floats(n), *all = floats(n);
    int good;
    memcpy(left, s->first, 4 * n);
    memcpy(all, given, 4 * n);
    good = !plain_mean(t, left, n) && !plain_mean(t, all, n);
    for (size_t i = 0; i < n; i++)
        if ((double)left[i] + taken[i] != (double)all[i]) good = 0;
    free(left);
    free(all);
    return good;
}

/* All steps of one rank: NULL, or the first thing that was wrong. A difference does not keep it from going on with
   the others. */
static const char *follow(const cg_transport *t, const plan *p) {
    const size_t n = p->n;
    float *grad = floats(n), *want = floats(n), *given = floats(n), *before = floats(n), *first, *second;
    double *taken = (double *)room(sizeof(double) * n);
    const char *wrong = NULL;
    uint64_t bits = 0;
    rank_state s;
    rank_open(&s, p, t);
    first = floats(s.length);
    second = floats(s.length);
    for (int step = 0; step < STEPS; step++) {
        cg_report report;
        for (size_t i = 0; i < n; i++) {
            want[i] = grad[i] = value(p, t->rank, i, step);
            given[i] += grad[i];
        }
        if (rank_step(&s, t, step, grad, s.bytes, &report) != CG_OK) {
            wrong = "a step fails";
            break;
        }
        for (size_t i = 0; i < n && s.second && !p->fetched; i++)
            before[i] = plus(first[i], plus(faded(p->momentum, second[i]), want[i]));
        if (plain_step(&s, t, step, want, first, second)) {
            wrong = "the reference fails";
            break;
        }
        for (size_t i = 0; i < n; i++) taken[i] += (double)grad[i];
        if (!wrong && memcmp(grad, want, 4 * n)) wrong = "the result is another";
        if (!wrong && memcmp(first, s.first, 4 * s.length)) wrong = "the error is another";
        if (!wrong && s.second && memcmp(second, s.second, 4 * s.length)) wrong = "the momentum is another";
        bits = hashed(bits, grad, n);
        if (p->fetched) bits = hashed(hashed(bits, s.first, s.length), s.second, s.length);
        if (s.second && !p->fetched && step % 8 == 5 && !close_to_mean(t, grad, before, n) && !wrong)
            wrong = "the result is not the mean of a";
        if (t->size > 1 && (!report.bytes_out || !report.bytes_in || !report.rounds) && !wrong)
            wrong = "an empty report";
    }
    if (!agreed(t, bits) && !wrong) wrong = "ranks differ";
    if (!p->fetched && !s.second && !nothing_lost(t, &s, given, taken) && !wrong) wrong = "something was lost";
    free(grad);
    free(want);
    free(given);
    free(before);
    free(taken);
    free(first);
    free(second);
    rank_close(&s);
    return wrong;
}

static const char *outcome[RANKS];
static int follower(cg_threads_world *world, int rank, void *user) {
    const plan *p = (const plan *)user;
    const cg_transport t = cg_threads_transport(world, rank, p->which);
    cg_threads_timeout(world, 20000);
    outcome[rank] = follow(&t, p);
    return outcome[rank] != NULL;
}
TEST step_by_step(const plan *p) {
    static const int sizes[] = { 1, 2, 3, 5, 8 };
    static int turn;
    turn++;
    for (int j = 0; j < 5; j++) {
        if ((3 * j + turn) % 5 >= (quick ? 1 : 3)) continue; /* every plan has some of them */
        cg_threads_run(sizes[j], follower, (void *)(uintptr_t)p);
        for (int r = 0; r < sizes[j]; r++)
            ASSERTm(SAY("n %d, %d x %d, k %d, candidates %d, mix %d, momentum %g, route %d, %d ranks, rank %d: %s",
                        (int)p->n, p->rows, (int)p->cols, (int)p->k, p->candidates, p->mix, (double)p->momentum,
                        (int)p->route, sizes[j], r, outcome[r]),
                !outcome[r]);
    }
    PASS();
}

/* The same between processes. */
static int child(const char *addresses, int rank, int listener, const plan *p) {
    cg_tcp_desc desc = CG_ZERO;
    cg_tcp net;
    const char *wrong;
    alarm(60); /* whatever happens, it does not stay */
    desc.rank = rank;
    desc.addresses = addresses;
    desc.timeout_ms = 20000;
    desc.listener = listener;
    if (cg_tcp_open(&net, &desc)) return 2;
    wrong = follow(&net.transport, p);
    if (wrong) printf("process %d: %s\n", rank, wrong), fflush(stdout);
    cg_tcp_close(&net);
    return wrong != NULL;
}
TEST between_processes(const plan *p, int ranks) {
    char addresses[8 * 32] = "";
    int listener[8], port, good = 0, status;
    fflush(stdout);
    for (int r = 0; r < ranks; r++) {
        if (cg_tcp_listen("127.0.0.1:0", &listener[r], &port)) SKIPm("no loopback");
        snprintf(addresses + strlen(addresses), 32, "%s127.0.0.1:%d", r ? "," : "", port);
    }
    for (int r = 0; r < ranks; r++) {
        const pid_t pid = fork();
        ASSERT(pid >= 0);
        if (pid) continue;
        for (int other = 0; other < ranks; other++)
            if (other != r) close(listener[other]);
        _exit(child(addresses, r, listener[r], p));
    }
    for (int r = 0; r < ranks; r++) close(listener[r]);
    for (int r = 0; r < ranks; r++)
        if (wait(&status) > 0) good += WIFEXITED(status) && !WEXITSTATUS(status);
    ASSERT_EQ(ranks, good);
    PASS();
}
/* Gradients stop: momentum ends at exactly 0, as denormals never would. k is 1, so that most places are never taken. */
static int stopping(cg_threads_world *world, int rank, void *user) {
    const plan *p = (const plan *)user;
    const cg_transport t = cg_threads_transport(world, rank, p->which);
    float *grad = floats(p->n);
    size_t moving = 0, still = 0;
    rank_state s;
    rank_open(&s, p, &t);
    outcome[rank] = NULL;
    for (int step = 0; step < 950; step++) {
        cg_report report;
        for (size_t i = 0; i < p->n; i++) grad[i] = value(p, rank, i, step);
        if (rank_step(&s, &t, step, grad, s.bytes, &report) != CG_OK) outcome[rank] = "a step fails";
        for (size_t i = 0; i < s.length; i++) moving += step == 500 && s.second[i] != 0.0f;
    }
    for (size_t i = 0; i < s.length; i++) still += s.second[i] == 0.0f;
    if (!moving && !outcome[rank]) outcome[rank] = "nothing moves";
    if (still < s.length && !outcome[rank]) outcome[rank] = "something still moves";
    free(grad);
    rank_close(&s);
    return outcome[rank] != NULL;
}
TEST momentum_ends(const plan *p) {
    cg_threads_run(1, stopping, (void *)(uintptr_t)p);
    ASSERTm(outcome[0], !outcome[0]);
    PASS();
}

/* ---- failures: four steps, something is wrong with rank 1 in the last ---- */

enum { TEAM = 3, LAST = 3, ROOM = 2048, FINE = 0, BAD_VALUE, SHORT_OF_MEMORY, NO_MEMORY, FAILING, OTHER };
typedef struct trial {
    plan p, other; /* other: rank 1's, from the beginning */
    int fault, at; /* FAILING: that callback of rank 1 fails */
    float bad;
    int calls, again; /* again: a fifth step follows */
    uint64_t out, in; /* bytes of rank 1, by sendrecv */
    cg_transport real;
    cg_status status[TEAM], status_again[TEAM];
    cg_report report[TEAM];
    size_t length;
    float grad[TEAM][ROOM], given[TEAM][ROOM], later[TEAM][ROOM];
    float first[TEAM][ROOM], second[TEAM][ROOM], before[TEAM][ROOM], second_before[TEAM][ROOM];
} trial;
static trial *trouble, *sane;

static int fails(trial *w) { return w->calls++ == w->at && w->fault == FAILING; }
static int bad_allreduce(void *user, float *x, size_t n) {
    trial *w = (trial *)user;
    return fails(w) ? 77 : w->real.allreduce(w->real.user, x, n);
}
static int bad_allgather(void *user, const void *mine, void *all, size_t bytes) {
    trial *w = (trial *)user;
    return fails(w) ? 77 : w->real.allgather(w->real.user, mine, all, bytes);
}
static int bad_broadcast(void *user, void *buf, size_t bytes, int root) {
    trial *w = (trial *)user;
    return fails(w) ? 77 : w->real.broadcast(w->real.user, buf, bytes, root);
}
static int bad_sendrecv(void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    trial *w = (trial *)user;
    w->out += to >= 0 ? out_bytes : 0;
    w->in += from >= 0 ? in_bytes : 0;
    return fails(w) ? 77 : w->real.sendrecv(w->real.user, out, out_bytes, to, in, in_bytes, from);
}
static cg_transport tapped(trial *w, const cg_transport *t) {
    cg_transport own = *t;
    w->real = *t;
    w->calls = 0;
    w->out = w->in = 0;
    own.user = w;
    if (t->allreduce) own.allreduce = bad_allreduce;
    if (t->allgather) own.allgather = bad_allgather;
    if (t->broadcast) own.broadcast = bad_broadcast;
    if (t->sendrecv) own.sendrecv = bad_sendrecv;
    return own;
}
static void keep(const rank_state *s, float *first, float *second) {
    memcpy(first, s->first, 4 * s->length);
    if (s->second) memcpy(second, s->second, 4 * s->length);
}
static int patient(cg_threads_world *world, int rank, void *user) {
    trial *w = (trial *)user;
    const plan *p = rank == 1 && w->fault == OTHER ? &w->other : &w->p;
    cg_transport t = cg_threads_transport(world, rank, p->which);
    rank_state s;
    cg_threads_timeout(world, 5000);
    rank_open(&s, p, &t);
    if (rank == 0) w->length = s.length;
    for (int step = w->fault == OTHER ? LAST : 0; step <= LAST; step++) {
        const int now = step == LAST && rank == 1;
        size_t bytes = s.bytes;
        for (size_t i = 0; i < p->n; i++) w->grad[rank][i] = value(p, rank, i, step);
        if (now && w->fault == BAD_VALUE) w->grad[1][p->n - 1] = w->bad;
        if (now && w->fault == SHORT_OF_MEMORY) bytes -= 65; /* 64 are for its alignment */
        if (now && w->fault == NO_MEMORY) bytes = 0;
        if (now) t = tapped(w, &t);
        memcpy(w->given[rank], w->grad[rank], 4 * p->n);
        keep(&s, w->before[rank], w->second_before[rank]);
        w->status[rank] = rank_step(&s, &t, step, w->grad[rank], bytes, &w->report[rank]);
        if (w->status[rank] != CG_OK && step != LAST) abort();
    }
    keep(&s, w->first[rank], w->second[rank]);
    if (w->again) {
        for (size_t i = 0; i < p->n; i++) w->later[rank][i] = value(p, rank, i, LAST + 1);
        w->status_again[rank] = rank_step(&s, &t, LAST + 1, w->later[rank], s.bytes, NULL);
    }
    rank_close(&s);
    return 0;
}
static int refused(cg_threads_world *world, int rank, void *user) {
    trial *w = (trial *)user;
    const cg_transport t = cg_threads_transport(world, rank, w->p.which);
    plan good = w->p;
    rank_state s;
    good.route = CG_ROUTE_AUTO;
    rank_open(&s, &good, &t);
    for (size_t i = 0; i < good.n; i++) w->grad[rank][i] = value(&good, rank, i, 0);
    if (rank_step(&s, &t, 0, w->grad[rank], s.bytes, NULL) != CG_OK) abort();
    s.p = &w->p; /* and now by another road */
    for (size_t i = 0; i < good.n; i++) w->given[rank][i] = w->grad[rank][i] = value(&good, rank, i, 1);
    keep(&s, w->before[rank], w->second_before[rank]);
    w->status[rank] = rank_step(&s, &t, 1, w->grad[rank], s.bytes, NULL);
    keep(&s, w->first[rank], w->second[rank]);
    if (rank == 0) w->length = s.length;
    rank_close(&s);
    return 0;
}
static void run(trial *w, const plan *p, int fault, int at) {
    w->p = *p;
    w->fault = fault;
    w->at = at;
    w->again = fault != FAILING && fault != OTHER;
    cg_threads_run(TEAM, patient, w);
}

/* After an error of rank r its gradient is as it was; its memory too, unless (Sketched-SGD) the exchange had
   begun: then it is in there. */
static const char *loss(const trial *w, int r, int begun) {
    const plan *p = &w->p;
    if (memcmp(w->given[r], w->grad[r], 4 * p->n)) return "the gradient has changed";
    for (size_t i = 0; i < w->length; i++) {
        float u = w->second_before[r][i], a = w->before[r][i];
        if (begun && !p->fetched) {
            if (p->momentum != 0.0f) u = plus(faded(p->momentum, u), w->given[r][i]);
            a = plus(a, p->momentum != 0.0f ? u : w->given[r][i]);
        }
        if (w->first[r][i] != a) return "the error is another";
        if ((p->fetched || p->momentum != 0.0f) && w->second[r][i] != u) return "the momentum is another";
    }
    return NULL;
}
/* A step that succeeded is the step that it would have been. */
static const char *change(const trial *w, const trial *other, int r) {
    if (memcmp(w->grad[r], other->grad[r], 4 * w->p.n)) return "the result is another";
    if (memcmp(w->first[r], other->first[r], 4 * w->length)) return "the error is another, after a good step";
    if (!w->p.fetched && w->p.momentum == 0.0f) return NULL;
    return memcmp(w->second[r], other->second[r], 4 * w->length) ? "the momentum is another, after a good step" : NULL;
}
/* Whatever one rank finds out before anything is sent, the others hear of; the next step is a good one. */
TEST a_local_error(const plan *p, int fault, float bad, cg_status expected) {
    trouble->bad = bad;
    run(trouble, p, fault, -1);
    for (int r = 0; r < TEAM; r++) {
        const char *lost = loss(trouble, r, r != 1);
        ASSERT_EQm(SAY("rank %d: %d", r, (int)trouble->status[r]), r == 1 ? expected : CG_E_PEER, trouble->status[r]);
        ASSERT_EQ(1, trouble->report[r].rank);
        ASSERT(trouble->report[r].why);
        ASSERTm(lost, !lost);
        ASSERT_EQ(CG_OK, trouble->status_again[r]);
        ASSERT_MEM_EQ(trouble->later[0], trouble->later[r], 4 * p->n);
    }
    PASS();
}
/* Wherever a callback fails, nobody hangs, and who was told of an error has lost nothing. */
TEST a_callback_that_fails(const plan *p) {
    int failed = 1, at;
    run(sane, p, FINE, -1);
    for (int r = 0; r < TEAM; r++) ASSERT_EQ(CG_OK, sane->status[r]);
    for (at = 0; failed; at++) {
        ASSERT(at < 200);
        run(trouble, p, FAILING, at);
        failed = trouble->calls > at;
        ASSERT_EQ(failed ? CG_E_TRANSPORT : CG_OK, trouble->status[1]);
        if (failed) ASSERT_EQ(77, trouble->report[1].code);
        for (int r = 0; r < TEAM; r++) {
            const char *wrong = trouble->status[r] == CG_OK ? change(trouble, sane, r) : loss(trouble, r, 1);
            ASSERTm(SAY("call %d, rank %d: %s", at, r, wrong), !wrong);
        }
    }
    ASSERT(at > 2);
    ASSERT_EQ((int)trouble->report[1].rounds, trouble->calls);
    if (p->which == CG_THREADS_SENDRECV)
        ASSERT(trouble->report[1].bytes_out == trouble->out && trouble->report[1].bytes_in == trouble->in);
    PASS();
}
/* A route for selections is refused on all ranks, and memory is as it was. */
TEST a_route_that_is_refused(const plan *good) {
    plan p = *good;
    p.route = CG_ROUTE_MERGE;
    trouble->p = p;
    cg_threads_run(TEAM, refused, trouble);
    for (int r = 0; r < TEAM; r++) {
        const char *lost = loss(trouble, r, 0);
        ASSERT_EQ(CG_E_UNSUPPORTED, trouble->status[r]);
        ASSERTm(lost, !lost);
    }
    PASS();
}
/* The server is who was named: rank 1 sends the answer to the others. */
TEST the_leader_leads(const plan *good) {
    plan p = *good;
    run(trouble, &p, FINE, -1);
    p.leader = 2;
    run(sane, &p, FINE, -1);
    for (int r = 0; r < TEAM; r++) ASSERT(sane->status[r] == CG_OK && trouble->status[r] == CG_OK);
    ASSERT(sane->out > trouble->out + 4 * p.cols);
    PASS();
}
TEST a_rank_that_differs(const plan *p, const plan *other) {
    trouble->other = *other;
    run(trouble, p, OTHER, -1);
    for (int r = 0; r < TEAM; r++) {
        const char *lost = r == 1 ? NULL : loss(trouble, r, 1);
        ASSERT_EQm(SAY("rank %d: %d", r, (int)trouble->status[r]), CG_E_MISMATCH, trouble->status[r]);
        ASSERTm(lost, !lost);
    }
    ASSERT_MEM_EQ(trouble->given[1], trouble->grad[1], 4 * other->n);
    PASS();
}

/* Sums beyond a float: memory stays finite, and small gradients go through again. */
static int bursting(cg_threads_world *world, int rank, void *user) {
    trial *w = (trial *)user;
    const cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    int finite = 1;
    rank_state s;
    rank_open(&s, &w->p, &t);
    for (int step = 0; step < 60; step++) {
        for (size_t i = 0; i < w->p.n; i++) w->grad[rank][i] = step < 3 && i % 7 == 0 ? 3e38f : (float)(i % 5);
        w->status_again[rank] = rank_step(&s, &t, step, w->grad[rank], s.bytes, NULL);
        for (size_t i = 0; i < s.length; i++)
            if (!isfinite(s.first[i]) || (s.second && !isfinite(s.second[i]))) finite = 0;
    }
    if (!finite) w->status_again[rank] = CG_E_STATE;
    rank_close(&s);
    return 0;
}
TEST a_sum_that_overflows(const plan *p) {
    trouble->p = *p;
    cg_threads_run(TEAM, bursting, trouble);
    for (int r = 0; r < TEAM; r++)
        ASSERT_EQm(SAY("rank %d: %d", r, (int)trouble->status_again[r]), CG_OK, trouble->status_again[r]);
    PASS();
}
TEST descriptions_that_are_refused(void) {
    static char mem[1 << 16];
    const plan p = { 100, 3, 256, 0, 5, 0, 0, 0.5f, 0.0f, 0, 1, 0, 0, 0, 0, 0, 0 };
    cg_sketched_desc good = CG_ZERO, d;
    cg_fetched_desc fine = CG_ZERO, f;
    cg_sketched sgd;
    cg_fetched fetch;
    good.sketch = fine.sketch = sketch_of(&p);
    good.k = fine.k = 5;
    ASSERT(cg_sketched_memory(&good) && cg_sketched_memory(&good) < sizeof mem && cg_fetched_memory(&fine) &&
        cg_fetched_memory(&fine) < sizeof mem);
    ASSERT_EQ(CG_E_MEMORY, cg_sketched_init(&sgd, &good, mem, 100));
    ASSERT_EQ(CG_E_MEMORY, cg_sketched_init(&sgd, &good, NULL, sizeof mem));
    ASSERT_EQ(CG_E_MEMORY, cg_fetched_init(&fetch, &fine, mem, cg_fetched_memory(&fine) - 1));
    ASSERT_EQ(CG_OK, cg_sketched_init(&sgd, &good, mem, sizeof mem));
    ASSERT_EQ(CG_OK, cg_fetched_init(&fetch, &fine, mem, sizeof mem));
#define REFUSED(CHANGE)                                                \
  do {                                                                 \
    d = good;                                                          \
    f = fine;                                                          \
    CHANGE;                                                            \
    ASSERT_EQ(0, cg_sketched_memory(&d));                              \
    ASSERT_EQ(CG_E_ARG, cg_sketched_init(&sgd, &d, mem, sizeof mem));  \
    ASSERT_EQ(0, cg_fetched_memory(&f));                               \
    ASSERT_EQ(CG_E_ARG, cg_fetched_init(&fetch, &f, mem, sizeof mem)); \
  } while (0)
    REFUSED(d.k = f.k = 0);
    REFUSED(d.momentum = f.momentum = 1.0f);
    REFUSED(d.momentum = f.momentum = -0.1f);
    REFUSED(d.momentum = f.momentum = (float)NAN);
    REFUSED(d.sketch.rows = f.sketch.rows = 16);
    REFUSED(d.candidates = -1; f.rate = (float)INFINITY);
    f = fine;
    f.sketch.groups = 256;
    ASSERT_EQ(0, cg_fetched_memory(&f));
    ASSERT_EQ(CG_E_UNSUPPORTED, cg_fetched_init(&fetch, &f, mem, sizeof mem));
    PASS();
}

/* ---- training ---- */

/* Sparse inputs with popular and rare features, as of words: every sample has DRAWN of them, with values
   +-1/sqrt(DRAWN); feature i is drawn with probability about (i + 10)^-1.5. Labels come from a model `truth`, with
   noise, and every step has new samples, so the floor is known: the loss of `truth` itself. Least squares: the
   inputs' second moments are the probabilities, and the loss above the floor is half the sum of p_i (w_i -
   truth_i)^2. Softmax: the mean divergence between the classes as they are and as predicted, over inputs that are
   never trained on. All ranks together take BATCH samples a step, however many they are. */
enum { DIM = 40960, CLASSES = 10, DRAWN = 32, BATCH = 128, WALK = 200, HELD = 500, LEAST_SQUARES = 0, SOFTMAX };
static float truth[DIM];
static double popular[DIM]; /* probabilities, for least squares */

static double uniform(uint64_t *s) {
    *s = mixed(*s);
    return ((double)(*s >> 11) + 0.5) * 0x1p-53;
}
static double normal(uint64_t *s) { /* nearly */
    double t = -6;
    for (int i = 0; i < 12; i++) t += uniform(s);
    return t;
}
/* popular ones are not neighbours */
static size_t place(size_t i, size_t features) { return i * 7919 % features; }
typedef struct sample {
    size_t feature[DRAWN];
    double sign[DRAWN];
} sample;
static void draw(sample *x, size_t features, uint64_t *s) {
    const double least = sqrt(10.0 / (10.0 + (double)features));
    for (int q = 0; q < DRAWN; q++) {
        const double v = least + (1.0 - least) * uniform(s);
        const size_t i = (size_t)(10.0 / (v * v) - 10.0);
        x->feature[q] = place(i < features ? i : features - 1, features);
        x->sign[q] = (*s & 1 ? 1.0 : -1.0) / sqrt((double)DRAWN);
    }
}
static void make_truth(void) {
    const double least = sqrt(10.0 / (10.0 + DIM));
    uint64_t s = 5;
    for (size_t i = 0; i < DIM; i++) {
        truth[i] = (float)normal(&s);
        popular[place(i, DIM)] = (sqrt(10.0 / (10.0 + (double)i)) - sqrt(10.0 / (11.0 + (double)i))) / (1.0 - least);
    }
}
static void classes(const sample *x, const float *w, double p[CLASSES]) {
    double sum = 0;
    for (int c = 0; c < CLASSES; c++) {
        p[c] = 0;
        for (int q = 0; q < DRAWN; q++) p[c] += 4.0 * x->sign[q] * (double)w[x->feature[q] * CLASSES + (size_t)c];
        p[c] = exp(p[c] < 300.0 ? p[c] : 300.0);
        sum += p[c];
    }
    for (int c = 0; c < CLASSES; c++) p[c] /= sum;
}
/* g += rate times the gradient of one sample */
static void learn(int problem, uint64_t s, const float *w, double rate, float *g) {
    double p[CLASSES], r = 0;
    sample x;
    draw(&x, problem == SOFTMAX ? DIM / CLASSES : DIM, &s);
    if (problem == LEAST_SQUARES) {
        for (int q = 0; q < DRAWN; q++) r += x.sign[q] * ((double)w[x.feature[q]] - (double)truth[x.feature[q]]);
        r -= 0.5 * normal(&s);
        for (int q = 0; q < DRAWN; q++) g[x.feature[q]] += (float)(rate * r * x.sign[q]);
    } else {
        double u = uniform(&s);
        int label = 0;
        classes(&x, truth, p);
        while (label < CLASSES - 1 && u > p[label]) u -= p[label++];
        classes(&x, w, p);
        p[label] -= 1.0;
        for (int q = 0; q < DRAWN; q++)
            for (int c = 0; c < CLASSES; c++)
                g[x.feature[q] * CLASSES + (size_t)c] += (float)(rate * 4.0 * p[c] * x.sign[q]);
    }
}
static double above_floor(int problem, const float *w) {
    double t = 0, p[CLASSES], is[CLASSES];
    for (size_t i = 0; i < DIM && problem == LEAST_SQUARES; i++) {
        const double off = (double)w[i] - (double)truth[i];
        t += 0.5 * popular[i] * off * off;
    }
    for (int j = 0; j < HELD && problem == SOFTMAX; j++) {
        uint64_t s = mixed(UINT64_C(1) << 60 | (uint64_t)j);
        sample x;
        draw(&x, DIM / CLASSES, &s);
        classes(&x, truth, is);
        classes(&x, w, p);
        for (int c = 0; c < CLASSES; c++) t += is[c] * log(is[c] / p[c]) / HELD;
    }
    return t;
}

enum { DENSE, LOCAL_TOPK, SKETCHED, FETCHED };
typedef struct method {
    const char *name;
    int kind, rows;
    size_t cols, k;
    int candidates;
} method;
typedef struct training {
    int problem, size;
    const method *m;
    double gap, bytes;
    int failed;
} training;

typedef struct student {
    float *w, *g;
    cg_sketched sgd;
    cg_fetched fetch;
    cg_ef ef;
    cg_exchange_desc road;
    void *memory, *mem;
    size_t bytes;
} student;
static void enrol(student *s, const method *m, const cg_transport *t) {
    cg_sketched_desc d = CG_ZERO;
    cg_fetched_desc f = CG_ZERO;
    cg_ef_desc e = CG_ZERO;
    cg_status st = CG_OK;
    memset(s, 0, sizeof *s);
    s->w = floats(DIM);
    s->g = floats(DIM);
    s->road.tag.seed = 3;
    d.sketch.rows = m->rows;
    d.sketch.cols = m->cols;
    d.sketch.n = e.n = DIM;
    d.sketch.seed = 8;
    d.k = f.k = m->k;
    f.sketch = d.sketch;
    d.candidates = m->candidates;
    e.op = cg_topk((float)m->k / DIM);
    s->memory = room(m->kind == SKETCHED ? cg_sketched_memory(&d)
            : m->kind == FETCHED         ? cg_fetched_memory(&f)
                                         : cg_ef_memory(&e));
    if (m->kind == SKETCHED) st = cg_sketched_init(&s->sgd, &d, s->memory, cg_sketched_memory(&d));
    if (m->kind == FETCHED) st = cg_fetched_init(&s->fetch, &f, s->memory, cg_fetched_memory(&f));
    if (m->kind == LOCAL_TOPK) st = cg_ef_init(&s->ef, &e, s->memory, cg_ef_memory(&e));
    if (st != CG_OK) abort();
    s->bytes = m->kind == SKETCHED ? cg_sketched_exchange_memory(&s->sgd, &s->road, t)
        : m->kind == FETCHED       ? cg_fetched_exchange_memory(&s->fetch, &s->road, t)
        : m->kind == LOCAL_TOPK    ? cg_ef_exchange_memory(&s->ef, &s->road, t)
                                   : cg_exchange_memory(&s->road, t, DIM);
    s->mem = room(s->bytes);
}
static cg_status exchanged(student *s, const method *m, const cg_transport *t, cg_report *report) {
    if (m->kind == SKETCHED) return cg_sketched_exchange(&s->sgd, &s->road, t, s->g, s->mem, s->bytes, report);
    if (m->kind == FETCHED) return cg_fetched_exchange(&s->fetch, &s->road, t, s->g, s->mem, s->bytes, report);
    if (m->kind == LOCAL_TOPK) return cg_ef_exchange(&s->ef, &s->road, t, s->g, s->mem, s->bytes, report);
    return cg_exchange(&s->road, t, s->g, DIM, s->mem, s->bytes, report);
}
static int trainee(cg_threads_world *world, int rank, void *user) {
    training *j = (training *)user;
    const cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    const int share = BATCH / j->size;
    student s;
    cg_status st = CG_OK;
    enrol(&s, j->m, &t);
    for (int step = 0; step < WALK && st == CG_OK; step++) {
        /* constant, then down to 0 in a straight line */
        const double rate = (j->problem == SOFTMAX ? 2.0 : 4.0) * (step < WALK / 3 ? 1.0 : (WALK - step) * 1.5 / WALK);
        cg_report report;
        memset(s.g, 0, 4 * DIM);
        for (int b = 0; b < share; b++)
            learn(j->problem, mixed((uint64_t)(step * BATCH + rank * share + b)), s.w, rate / share, s.g);
        s.road.tag.step = (uint64_t)step;
        st = exchanged(&s, j->m, &t, &report);
        for (size_t i = 0; i < DIM; i++) s.w[i] -= s.g[i];
        if (rank == 0) j->bytes += (double)report.bytes_out / WALK;
    }
    if (rank == 0) j->gap = above_floor(j->problem, s.w);
    free(s.w);
    free(s.g);
    free(s.memory);
    free(s.mem);
    return st != CG_OK;
}
static training train(int problem, int size, const method *m) {
    training j = { problem, size, m, 0, 0, 0 };
    j.failed = cg_threads_run(size, trainee, &j);
    return j;
}
/* Values that a rank sends: of 40960, 2048 (20x) or 1024 (40x). Local top-k: as many bytes as the sketches at 20x
   in an allgather, nearly. All but local top-k know only means over ranks, so the figures are nearly those of any
   other number of ranks. */
TEST training_goes_as_well(int problem, int size) {
    const method list[] = { { "dense", DENSE, 0, 0, DIM, 0 }, { "Sketched-SGD 20x", SKETCHED, 3, 512, 64, 8 },
        { "local top-k", LOCAL_TOPK, 0, 0, 2048 * 4 / 3 / (size_t)size, 0 },
        { "Sketched-SGD 40x", SKETCHED, 3, 256, 32, 8 }, { "FetchSGD 20x", FETCHED, 4, 512, 64, 0 } };
    const size_t count = quick ? 2 : size == 8 ? 5 : 4;
    float *zeros = floats(DIM);
    double dense = 0, bytes = 0;
    const double at_first = above_floor(problem, zeros);
    free(zeros);
    printf("\n    %s, %d ranks: loss above the floor, %.4f at first\n",
        problem == SOFTMAX ? "softmax" : "least squares", size, at_first);
    for (size_t m = 0; m < count; m++) {
        const training j = train(problem, size, &list[m]);
        ASSERT(!j.failed);
        if (!m) dense = j.gap, bytes = j.bytes;
        printf("      %-16s %.5f, %.4f times dense; %.0f bytes a step, %.1fx\n", list[m].name, j.gap, j.gap / dense,
            j.bytes, bytes / j.bytes);
        if (m == 1) ASSERTm(SAY("%g of the dense loss", j.gap / dense), j.gap <= 1.02 * dense);
        ASSERT(j.gap < 0.7 * at_first);
    }
    PASS();
}
/* FetchSGD as the paper has it subtracts S(result), and as it is here zeroes what that touches. In a sketch of
   this size estimates of the k heaviest are too large (they are the heaviest because of what collided with them);
   what is subtracted too much is the next step's heaviest. */
static double fetch_alone(int subtract, int steps) {
    enum { K = 64 };
    const plan p = { DIM, 3, 512, 0, K, 0, 0, 0.0f, 0.0f, 0, 8, 0, 0, 0, 1, 0, 0 };
    const cg_sketch_desc d = sketch_of(&p);
    const size_t bytes = cg_sketch_memory(&d);
    void *mem = room(bytes), *scratch;
    float *w = floats(DIM), *g = floats(DIM), v[K];
    uint64_t index[K];
    cg_sketch e;
    cg_status s = cg_sketch_init(&e, &d, mem, bytes);
    double gap;
    scratch = room(cg_sketch_heavy_scratch(&e, K));
    for (int step = 0; step < steps && s == CG_OK; step++) {
        memset(g, 0, 4 * DIM);
        for (int b = 0; b < BATCH; b++) learn(LEAST_SQUARES, mixed((uint64_t)(step * BATCH + b)), w, 1.0 / BATCH, g);
        s = cg_sketch_add(&e, g, DIM, 1.0f);
        if (s == CG_OK) s = cg_sketch_heavy(&e, K, index, v, scratch, cg_sketch_heavy_scratch(&e, K));
        for (int j = 0; j < K && s == CG_OK; j++) w[index[j]] -= v[j];
        if (s == CG_OK) s = subtract ? cg_sketch_add_list(&e, index, v, K, -1.0f) : cg_sketch_zero(&e, index, K);
    }
    gap = s == CG_OK ? above_floor(LEAST_SQUARES, w) : HUGE_VAL;
    free(mem);
    free(scratch);
    free(w);
    free(g);
    return gap;
}
TEST to_subtract_is_not_enough(void) {
    const double zeroed = fetch_alone(0, 50), subtracted = fetch_alone(1, 50);
    printf("\n    FetchSGD, 50 steps: %.4f above the floor, and %.3g with S(result) subtracted\n", zeroed, subtracted);
    ASSERT(zeroed < 0.3);
    ASSERT(subtracted > 1000);
    PASS();
}

/* ---- the rest ---- */

static plan base(void) {
    plan p;
    memset(&p, 0, sizeof p);
    p.n = 2001;
    p.rows = 3;
    p.cols = 512;
    p.k = 20;
    p.seed = 99;
    p.which = CG_THREADS_ALL;
    return p;
}
SUITE(sketched) {
    static const uint32_t routes[] = { CG_ROUTE_AUTO, CG_ROUTE_LINEAR, CG_ROUTE_SERVER };
    for (int route = 0; route < 3; route++)
        for (int j = 0; j < 8; j++) {
            plan p = base();
            p.route = routes[route];
            p.candidates = j & 1 ? 1 : 4;
            p.momentum = j & 2 ? 0.9f : 0.0f;
            p.mix = j >> 2;
            if (j & 1) p.which = CG_THREADS_SENDRECV;
            RUN_TESTp(step_by_step, &p);
        }
    for (int j = 0; j < 8; j++) { /* shapes */
        static const struct {
            size_t n;
            int rows;
            size_t cols, k;
            int candidates;
            size_t groups;
        } shape[] = { { 1, 1, 256, 1, 0, 0 }, { 5, 2, 256, 10, 1, 0 }, { 256, 4, 300, 256, 3, 0 },
            { 257, 1, 1000, 3, 50, 0 }, { 3000, 15, 256, 50, 0, 0 }, { 3000, 1, 256, 300, 5, 0 },
            { 0, 3, 256, 1, 0, 0 }, { 9000, 3, 1024, 10, 1, 256 } };
        plan p = base();
        p.n = shape[j].n;
        p.rows = shape[j].rows;
        p.cols = shape[j].cols;
        p.k = shape[j].k;
        p.candidates = shape[j].candidates;
        p.groups = shape[j].groups;
        p.which = CG_THREADS_ALLGATHER;
        RUN_TESTp(step_by_step, &p);
        if (p.groups) continue; /* FetchSGD has none */
        p.fetched = 1;
        p.momentum = 0.5f;
        RUN_TESTp(step_by_step, &p);
    }
    for (int j = 0; j < 2; j++) {
        plan p = base();
        p.fetched = j;
        p.momentum = 0.5f;
        p.faint = 1;
        RUN_TESTp(step_by_step, &p);
        p.faint = 0;
        p.momentum = 0.9f;
        p.until = 5;
        p.k = 1;
        p.cols = 4096;
        RUN_TESTp(momentum_ends, &p);
    }
}
SUITE(fetched) {
    static const uint32_t routes[] = { CG_ROUTE_AUTO, CG_ROUTE_LINEAR, CG_ROUTE_SERVER };
    for (int route = 0; route < 3; route++)
        for (int j = 0; j < 4; j++) {
            plan p = base();
            p.fetched = 1;
            p.rows = 3 + (j & 1);
            p.route = routes[route];
            p.momentum = j & 1 ? 0.9f : 0.0f;
            p.rate = j & 2 ? 0.1f : 0.0f;
            RUN_TESTp(step_by_step, &p);
        }
}
/* ---- a sketch alone: cg_sketch_exchange ---- */

enum { ALONE = 3, ALONE_N = 3000 };
static struct {
    const char *op;
    uint32_t fold;
    int odd;
    cg_status status[ALONE];
    float cells[ALONE][5 * 512], mine[ALONE][5 * 512];
} lone;
static int lone_worker(cg_threads_world *world, int rank, void *user) {
    cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    cg_sketch_desc d = CG_ZERO;
    cg_exchange_desc x = CG_ZERO;
    static float memory[ALONE][5 * 512 + 16], grad[ALONE][ALONE_N];
    cg_sketch sketch;
    size_t bytes;
    void *mem;
    (void)user;
    cg_threads_timeout(world, 3000);
    d.rows = 5;
    d.cols = 512;
    d.n = ALONE_N;
    d.seed = (uint64_t)(lone.odd && rank == 1 ? 8 : 7);
    /* small integers: sums are exact */
    for (int i = 0; i < ALONE_N; i++) grad[rank][i] = (float)((i * (rank + 3)) % 17 - 8);
    if (cg_sketch_init(&sketch, &d, memory[rank], sizeof memory[rank]) != CG_OK ||
        cg_sketch_add(&sketch, grad[rank], ALONE_N, 1.0f) != CG_OK)
        return 1;
    memcpy(lone.mine[rank], sketch.cells, sizeof lone.mine[rank]);
    if (cg_op_parse(&x.op, lone.op) != CG_OK) return 1;
    x.fold = lone.fold;
    x.route = CG_ROUTE_ALLGATHER;
    bytes = cg_sketch_exchange_memory(&sketch, &x, &t);
    mem = malloc(bytes);
    lone.status[rank] = cg_sketch_exchange(&sketch, &x, &t, mem, bytes, NULL);
    memcpy(lone.cells[rank], sketch.cells, sizeof lone.cells[rank]);
    free(mem);
    return 0;
}
/* most: by which a cell may be off, of the largest */
TEST sketches_are_exchanged(const char *op, int fold, double most) {
    const double by = fold == CG_FOLD_SUM ? 1.0 : 1.0 / ALONE;
    lone.op = op;
    lone.fold = (uint32_t)fold;
    lone.odd = 0;
    ASSERT_EQ(0, cg_threads_run(ALONE, lone_worker, NULL));
    for (int r = 0; r < ALONE; r++) {
        ASSERT_EQ(CG_OK, lone.status[r]);
        ASSERT_MEM_EQ(lone.cells[0], lone.cells[r], sizeof lone.cells[r]);
        for (size_t i = 0; i < 5 * 512; i++) {
            double sum = 0, size = 0, large = 0;
            for (int q = 0; q < ALONE; q++) sum += (double)lone.mine[q][i], size += fabs((double)lone.mine[q][i]);
            for (int q = 0; q < ALONE; q++)
                for (size_t j = i / 512 * 512; j < i / 512 * 512 + 512; j++)
                    large = fmax(large, fabs((double)lone.mine[q][j]));
            /* 1/3, three products and two sums round */
            ASSERT_IN_RANGE(sum * by, (double)lone.cells[r][i], most * large * ALONE * by + size * by * 8 / 16777216);
        }
    }
    PASS();
}
TEST other_sketches_are_refused(void) {
    lone.op = "dense";
    lone.fold = CG_FOLD_MEAN;
    lone.odd = 1;
    ASSERT_EQ(0, cg_threads_run(ALONE, lone_worker, NULL));
    for (int r = 0; r < ALONE; r++) {
        ASSERT_EQ(CG_E_MISMATCH, lone.status[r]);
        ASSERT_MEM_EQ(lone.mine[r], lone.cells[r], sizeof lone.mine[r]);
    }
    PASS();
}
SUITE(alone) {
    RUN_TESTp(sketches_are_exchanged, "dense", CG_FOLD_MEAN, 0.0);
    RUN_TESTp(sketches_are_exchanged, "dense", CG_FOLD_SUM, 0.0);
    RUN_TESTp(sketches_are_exchanged, "f16", CG_FOLD_MEAN, 1.0 / 2048); /* half a unit in the 11th bit */
    /* a whole level, rounded at random */
    RUN_TESTp(sketches_are_exchanged, "absmax:8:512", CG_FOLD_SUM, 1.0 / 127);
    RUN_TEST(other_sketches_are_refused);
}

SUITE(processes) {
    plan p = base();
    RUN_TESTp(between_processes, &p, 3);
    RUN_TESTp(between_processes, &p, 8);
    p.momentum = 0.9f;
    p.mix = 1;
    p.route = CG_ROUTE_SERVER;
    RUN_TESTp(between_processes, &p, 5);
    p.fetched = 1;
    RUN_TESTp(between_processes, &p, 2);
    RUN_TESTp(between_processes, &p, 1);
}
SUITE(failures) {
    RUN_TEST(descriptions_that_are_refused);
    for (int j = 0; j < 12; j++) {
        plan p = base(), other;
        p.n = 700;
        p.cols = 256;
        p.seed = (uint64_t)j;
        p.route = j & 4 ? CG_ROUTE_SERVER : CG_ROUTE_AUTO;
        p.which = j & 1 ? CG_THREADS_SENDRECV : CG_THREADS_ALL;
        p.fetched = j >= 8;
        p.momentum = j & 2 || p.fetched ? 0.5f : 0.0f;
        RUN_TESTp(a_local_error, &p, BAD_VALUE, (float)NAN, CG_E_NONFINITE);
        RUN_TESTp(a_local_error, &p, BAD_VALUE, -(float)INFINITY, CG_E_NONFINITE);
        RUN_TESTp(a_local_error, &p, SHORT_OF_MEMORY, 0.0f, CG_E_MEMORY);
        RUN_TESTp(a_local_error, &p, NO_MEMORY, 0.0f, CG_E_MEMORY);
        RUN_TESTp(a_callback_that_fails, &p);
        RUN_TESTp(a_route_that_is_refused, &p);
        RUN_TESTp(a_sum_that_overflows, &p);
        if (p.route == CG_ROUTE_SERVER && p.which == CG_THREADS_SENDRECV) RUN_TESTp(the_leader_leads, &p);
        other = p;
        other.ahead = 1;
        RUN_TESTp(a_rank_that_differs, &p, &other);
        other = p;
        other.k *= 2;
        other.candidates = 2;
        RUN_TESTp(a_rank_that_differs, &p, &other);
        other = p;
        other.k++;
        RUN_TESTp(a_rank_that_differs, &p, &other);
        other = p;
        other.seed++;
        RUN_TESTp(a_rank_that_differs, &p, &other);
        other = p;
        other.rows--;
        RUN_TESTp(a_rank_that_differs, &p, &other);
        other = p;
        other.cols *= 2;
        RUN_TESTp(a_rank_that_differs, &p, &other);
        other = p;
        other.n++;
        RUN_TESTp(a_rank_that_differs, &p, &other);
        other = p;
        other.rate = 0.5f;
        other.candidates = 3;
        RUN_TESTp(a_rank_that_differs, &p, &other);
        other = p;
        other.momentum = 0.25f;
        other.mix = 1;
        RUN_TESTp(a_rank_that_differs, &p, &other);
    }
}

/* What a later version may put into a reserve is not ignored in silence. */
TEST reserves_are_zero(void) {
    cg_transport t = CG_ZERO;
    cg_exchange_desc d = CG_ZERO;
    cg_ef_desc e = CG_ZERO;
    cg_sketch_desc k = CG_ZERO;
    cg_sketched_desc s = CG_ZERO;
    cg_fetched_desc f = CG_ZERO;
    cg_ef ef;
    cg_report report;
    float x[4] = { 1, 2, 3, 4 };
    static unsigned char mem[1 << 16];
    t.size = 1;
    e.n = 4;
    k.rows = 3, k.cols = 256, k.n = 1000;
    s.k = f.k = 1, s.sketch = f.sketch = k;
    ASSERT(cg_ef_memory(&e) && cg_sketch_memory(&k) && cg_sketched_memory(&s) && cg_fetched_memory(&f));
    ASSERT_EQ(CG_OK, cg_exchange(&d, &t, x, 4, mem, sizeof mem, &report));
#define EACH(reserve, refused)                                       \
  for (size_t i = 0; i < sizeof(reserve) / sizeof *(reserve); i++) { \
    (reserve)[i] = UINT64_C(1) << (i * 9 % 64);                      \
    ASSERT(refused);                                                 \
    (reserve)[i] = 0;                                                \
  }
    EACH(t.reserved,
        cg_exchange(&d, &t, x, 4, mem, sizeof mem, &report) == CG_E_ARG && strstr(report.why, "reserved") &&
            !cg_exchange_memory(&d, &t, 4))
    EACH(d.reserved,
        cg_exchange(&d, &t, x, 4, mem, sizeof mem, &report) == CG_E_ARG && strstr(report.why, "reserved") &&
            !cg_exchange_memory(&d, &t, 4))
    EACH(e.reserved,
        !cg_ef_memory(&e) && cg_ef_init(&ef, &e, mem, sizeof mem) == CG_E_ARG && strstr(ef.report.why, "reserved"))
    EACH(k.reserved, !cg_sketch_memory(&k))
    EACH(s.reserved, !cg_sketched_memory(&s))
    EACH(f.reserved, !cg_fetched_memory(&f))
    ASSERT(x[0] == 1 && x[3] == 4);
    PASS();
}

SUITE(trained) {
    static const int sizes[] = { 2, 4, 8, 32 };
    make_truth();
    RUN_TEST(reserves_are_zero);
    RUN_TEST(to_subtract_is_not_enough);
    for (int j = 0; j < (quick ? 1 : 4); j++) {
        RUN_TESTp(training_goes_as_well, LEAST_SQUARES, sizes[j]);
        RUN_TESTp(training_goes_as_well, SOFTMAX, sizes[j]);
    }
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    quick = !long_test();
    trouble = (trial *)room(sizeof *trouble);
    sane = (trial *)room(sizeof *sane);
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(sketched);
    RUN_SUITE(fetched);
    RUN_SUITE(alone);
    RUN_SUITE(processes);
    RUN_SUITE(failures);
    RUN_SUITE(trained);
    free(trouble);
    free(sane);
    GREATEST_MAIN_END();
}
