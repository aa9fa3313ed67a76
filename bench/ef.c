/* cc -O2 -I. bench/ef.c -o ef.out -lm && ./ef.out --csv ef.csv        (or: make bench)

   The time of a step with error feedback (cg_ef_compress and cg_ef_commit of its packet) as a multiple of the time of
   the loop e += g, which every implementation needs. That loop runs beside every step, on buffers of the same kind, so
   that a busy machine slows both; and the plain C that a user would write instead runs on the same gradients. One
   thread. */

#define _POSIX_C_SOURCE 200809L
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include "machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GOAL_N = 1 << 24, QUICK_N = 1 << 20, BUFFERS = 4, SHIFTS = 64, SHIFT = 1024, WARM = 32, MAX_REPS = 101 };

static FILE *csv;
static int missed;

static void die(const char *what, const char *why) {
    fprintf(stderr, "ef: %s: %s\n", what, why);
    exit(1);
}

static void *pages(size_t bytes) /* aligned, and touched so that no page fault is timed */
{
    void *p;
    if (posix_memalign(&p, 4096, bytes + 64)) die("memory", "not enough; try --n with a smaller number");
    memset(p, 0, bytes + 64);
    return p;
}

static double seconds(void) /* of this thread: others may use the machine, too */
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- gradients: another one in every step, or what is left of them would not be distributed as in training ---- */

static float *buffer[BUFFERS];

static void make_gradients(size_t n) /* Laplace */
{
    uint64_t state = 1;
    size_t i;
    int b;
    for (b = 0; b < BUFFERS; b++) {
        buffer[b] = (float *)pages((n + SHIFTS * SHIFT) * sizeof(float));
        for (i = 0; i < n + SHIFTS * SHIFT; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            buffer[b][i] = (float)log(((double)(state >> 33) + 0.5) * 0x1p-31) * (state >> 32 & 1 ? 1.0f : -1.0f);
        }
    }
}

static const float *gradient(uint64_t step) { return buffer[step % BUFFERS] + SHIFT * (step / BUFFERS % SHIFTS); }

/* ---- the limit, and what a user would write: no packet, no checksum, no check of anything ---- */

/* n: a multiple of 16. In groups, so that -O2 vectorises it */
static void add(float *restrict e, const float *restrict g, size_t n) {
    size_t i, j;
    for (i = 0; i < n; i += 16)
        for (j = 0; j < 16; j++) e[i + j] += g[i + j];
}

typedef struct plain {
    float *e, *u, *value, *sample, *scale;
    uint32_t *index;
    uint8_t *codes;
    size_t n, k;
} plain;

static float kth_largest(float *v, size_t n, size_t k) /* quickselect */
{
    size_t lo = 0, hi = n - 1;
    while (lo < hi) {
        const float pivot = v[lo + (hi - lo) / 2];
        size_t i = lo, j = hi;
        for (;;) {
            float t;
            while (v[i] > pivot) i++;
            while (v[j] < pivot) j--;
            if (i >= j) break;
            t = v[i], v[i++] = v[j], v[j--] = t;
        }
        if (k <= j) hi = j;
        else lo = j + 1;
    }
    return v[k];
}

/* About the 1 % largest, by the threshold of a sample; what is sent leaves the residual. u: is masked, too. */
static void plain_select(plain *p, float *u) {
    const size_t every = p->n / 64, room = p->n / 50;
    size_t i, k = 0;
    float bound;
    for (i = 0; i < every; i++) p->sample[i] = fabsf(p->e[64 * i]);
    bound = kth_largest(p->sample, every, every / 100);
    for (i = 0; i < p->n; i++)
        if (fabsf(p->e[i]) >= bound && k < room) {
            p->index[k] = (uint32_t)i;
            p->value[k++] = p->e[i];
            p->e[i] = 0.0f;
            if (u) u[i] = 0.0f;
        }
    p->k = k;
}

static void plain_topk(plain *p, const float *restrict g) {
    add(p->e, g, p->n);
    plain_select(p, NULL);
}

static void plain_momentum(plain *p, const float *restrict g) {
    float *restrict u = p->u, *restrict v = p->e;
    size_t i;
    for (i = 0; i < p->n; i++) {
        u[i] = 0.9f * u[i] + g[i];
        v[i] += u[i];
    }
    plain_select(p, u);
}

static void plain_sign(plain *p, const float *restrict g) {
    float *restrict e = p->e, scale;
    double sum = 0.0;
    size_t i, j;
    for (i = 0; i < p->n; i++) {
        e[i] += g[i];
        sum += fabsf(e[i]);
    }
    scale = p->scale[0] = (float)(sum / (double)p->n);
    for (i = 0; i < p->n; i += 8) {
        unsigned byte = 0;
        for (j = 0; j < 8; j++) {
            const int minus = e[i + j] < 0.0f;
            byte |= (unsigned)minus << j;
            e[i + j] -= minus ? -scale : scale;
        }
        p->codes[i / 8] = (uint8_t)byte;
    }
}

static void plain_4bit(plain *p, const float *restrict g) {
    float *restrict e = p->e;
    size_t b, i;
    for (b = 0; b < p->n; b += 512) {
        float top = 0.0f, up, down;
        for (i = b; i < b + 512; i++) {
            e[i] += g[i];
            top = fabsf(e[i]) > top ? fabsf(e[i]) : top;
        }
        p->scale[b / 512] = top;
        up = top > 0.0f ? 7.0f / top : 0.0f;
        down = top / 7.0f;
        for (i = b; i < b + 512; i += 2) {
            const int x = (int)lrintf(e[i] * up), y = (int)lrintf(e[i + 1] * up);
            p->codes[i / 2] = (uint8_t)((x + 8) | (y + 8) << 4);
            e[i] -= (float)x * down;
            e[i + 1] -= (float)y * down;
        }
    }
}

/* ---- one step ---- */

typedef struct row {
    const char *name, *op;
    uint32_t kind;
    float momentum;
    int bytes;
    /* times e += g, with a gradient that is known to be finite, and without; 0: none */
    double goal[2];
    void (*plain)(plain *, const float *);
} row;
static const row rows[] = { { "classic", "topk:0.01", CG_EF_CLASSIC, 0, 0, { 1.5, 2.0 }, plain_topk },
    { "classic", "efsign", CG_EF_CLASSIC, 0, 0, { 1.7, 2.2 }, plain_sign },
    { "classic", "absmax:4:512:nearest", CG_EF_CLASSIC, 0, 0, { 2.3, 2.8 }, plain_4bit },
    { "classic", "absmax:4:512", CG_EF_CLASSIC, 0, 0, { 0, 0 }, NULL },
    { "momentum", "topk:0.01", CG_EF_MOMENTUM, 0.9f, 0, { 2.5, 3.0 }, plain_momentum },
    { "LoCo, bytes", "absmax:4:512:nearest", CG_EF_LOCO, 0, 1, { 0, 0 }, NULL },
    { "EF21", "topk:0.01", CG_EF_EF21, 0, 0, { 0, 0 }, NULL } };
enum { ROWS = sizeof rows / sizeof rows[0] };

typedef struct took {
    double all, compress, commit;
} took;

typedef struct worker { /* one residual, and where its packets go */
    cg_ef ef;
    void *mem, *packet;
    /* what a kind that remembers what it received is given: there is but one rank */
    float *mean;
    size_t cap, n;
    uint64_t step;
} worker;

static void open_worker(worker *w, const row *r, int finite, size_t n) {
    cg_ef_desc d = CG_ZERO;
    size_t bytes;
    cg_status s;
    if (cg_op_parse(&d.op, r->op) != CG_OK) die(r->op, "does not parse");
    d.n = w->n = n;
    d.kind = r->kind;
    d.momentum = r->momentum;
    d.bytes = r->bytes;
    d.finite = finite;
    bytes = cg_ef_memory(&d);
    w->cap = cg_ef_bound(&d);
    w->mem = pages(bytes);
    w->packet = pages(w->cap);
    w->mean = r->kind == CG_EF_EF21 ? (float *)pages(n * sizeof(float)) : NULL;
    w->step = 0;
    s = cg_ef_init(&w->ef, &d, w->mem, bytes);
    if (s != CG_OK) die(r->op, cg_status_str(s));
}

static void close_worker(worker *w) { free(w->mem), free(w->packet), free(w->mean); }

static took step(worker *w, int timed) {
    cg_tag tag = { 42, 0, 0, 0 };
    took t = { 0, 0, 0 };
    size_t len;
    cg_status s;
    tag.step = w->step;
    if (timed) t.compress = -seconds();
    s = cg_ef_compress(&w->ef, &tag, gradient(w->step++), w->packet, w->cap, &len);
    if (timed) t.compress += seconds();
    if (s == CG_OK && w->mean) s = cg_decompress(w->packet, len, w->mean, w->n); /* others' work: not timed */
    if (timed) t.commit = -seconds();
    if (s == CG_OK) s = cg_ef_commit(&w->ef, w->packet, len, w->mean);
    if (timed) t.commit += seconds();
    if (s != CG_OK) die("a step", cg_status_str(s));
    t.all = t.compress + t.commit;
    return t;
}

/* ---- tables ---- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int count) {
    qsort(v, (size_t)count, sizeof *v, ascending);
    return count % 2 ? v[count / 2] : 0.5 * (v[count / 2 - 1] + v[count / 2]);
}

/* Medians, as some steps of top-k have more to do than others; times: against the additions just before and after. */
typedef struct figures {
    double all, compress, commit, limit, times, plain_times;
} figures;

static double timed_add(float *e, const float *g, size_t n) {
    const double since = seconds();
    add(e, g, n);
    return seconds() - since;
}

static figures measure(const row *r, int finite, size_t n, int reps, float *e, plain *p) {
    static double all[MAX_REPS], compress[MAX_REPS], commit[MAX_REPS], limit[MAX_REPS], times[MAX_REPS],
        other[MAX_REPS];
    figures f = CG_ZERO;
    worker w;
    double last;
    int i;
    open_worker(&w, r, finite, n);
    memset(p->e, 0, n * sizeof(float));
    memset(p->u, 0, n * sizeof(float));
    for (i = 0; i < WARM; i++) {
        step(&w, 0);
        if (r->plain) r->plain(p, gradient((uint64_t)i));
    }
    last = timed_add(e, gradient(w.step + 1), n);
    for (i = 0; i < reps; i++) {
        const took t = step(&w, 1);
        const double next = timed_add(e, gradient(w.step), n);
        all[i] = t.all, compress[i] = t.compress, commit[i] = t.commit;
        limit[i] = 0.5 * (last + next);
        times[i] = t.all / limit[i];
        if (r->plain) {
            const double since = seconds();
            r->plain(p, gradient(w.step + 1));
            other[i] = (seconds() - since) / limit[i];
        }
        last = next;
    }
    f.all = median(all, reps);
    f.compress = median(compress, reps);
    f.commit = median(commit, reps);
    f.limit = median(limit, reps);
    f.times = median(times, reps);
    f.plain_times = r->plain ? median(other, reps) : 0.0;
    close_worker(&w);
    return f;
}

static void table(size_t n, int reps) {
    float *e = (float *)pages(n * sizeof(float));
    plain p;
    size_t i;
    int finite;
    p.n = n;
    p.e = (float *)pages(n * 4), p.u = (float *)pages(n * 4), p.value = (float *)pages(n / 10),
    p.index = (uint32_t *)pages(n / 10);
    p.sample = (float *)pages(n / 16), p.scale = (float *)pages(n / 64), p.codes = (uint8_t *)pages(n / 2);
    find_limits();
    print_machine(seconds, e, n);
    printf("A step, n = %lu: ms, GB of gradient per second, and times e += g; goal; the same in plain C. e += g reads "
           "and writes "
           "12 bytes per value\n",
        (unsigned long)n);
    printf("%-12s %-21s %-8s %9s %7s %7s %6s %8s %6s %7s %5s %8s\n", "kind", "operator", "gradient", "compress",
        "commit", "step", "GB/s", "e += g", "GB/s", "x", "goal", "plain x");
    for (i = 0; i < ROWS; i++)
        for (finite = 1; finite >= 0; finite--) {
            const row *r = &rows[i];
            const double goal = n >= GOAL_N ? r->goal[!finite] : 0;
            const figures f = measure(r, finite, n, reps, e, &p);
            const int miss = goal > 0 && f.times > goal;
            missed += miss;
            printf("%-12s %-21s %-8s %9.2f %7.2f %7.2f %6.1f %8.2f %6.1f %7.2f%s", r->name, r->op,
                finite ? "finite" : "checked", 1e3 * f.compress, 1e3 * f.commit, 1e3 * f.all, 4e-9 * (double)n / f.all,
                1e3 * f.limit, 12e-9 * (double)n / f.limit, f.times, miss ? "!" : " ");
            if (goal > 0) printf("%5.1f", goal);
            else printf("%5s", "");
            if (r->plain) printf(" %8.2f", f.plain_times);
            printf("\n");
            fflush(stdout);
            fprintf(csv, "\"%s\",%s,%d,%lu,%.9f,%.9f,%.9f,%.9f,%.3f,%g,%.3f\n", r->name, r->op, finite,
                (unsigned long)n, f.all, f.compress, f.commit, f.limit, f.times, goal, f.plain_times);
        }
    free(e), free(p.e), free(p.u), free(p.value), free(p.sample), free(p.scale), free(p.index), free(p.codes);
}

/* Steps so short that calls and set-up show. Whole batches are timed, or the clock would: EF21's with decoding
   what it is given. */
static void table_of_small(int reps) {
    static const size_t sizes[2] = { 1 << 12, 1 << 16 };
    size_t i, s;
    printf(
        "\nSmall vectors: ns of a step, checked\n%-12s %-21s %10s %10s\n", "kind", "operator", "n = 2^12", "n = 2^16");
    for (i = 0; i < ROWS; i++) {
        printf("%-12s %-21s", rows[i].name, rows[i].op);
        for (s = 0; s < 2; s++) {
            static double all[MAX_REPS];
            const int batch = (1 << 20) / (int)sizes[s];
            worker w;
            int rep, j;
            open_worker(&w, &rows[i], 0, sizes[s]);
            for (j = 0; j < WARM; j++) step(&w, 0);
            for (rep = 0; rep < reps; rep++) {
                const double since = seconds();
                for (j = 0; j < batch; j++) step(&w, 0);
                all[rep] = (seconds() - since) / batch;
            }
            all[0] = median(all, reps);
            printf(" %10.0f", 1e9 * all[0]);
            fprintf(csv, "\"%s\",%s,0,%lu,%.9f,,,,,,\n", rows[i].name, rows[i].op, (unsigned long)sizes[s], all[0]);
            close_worker(&w);
        }
        printf("\n");
    }
}

int main(int argc, char **argv) {
    static const char usage[] =
        "ef [--quick] [--n N] [--reps R] [--csv PATH]\n"
        "  --quick     n = 2^20 and few repetitions: only shows that it runs\n"
        "  --n N       values in the vector, a multiple of 65536 (default 2^24; goals are judged only from that on)\n"
        "  --reps R    steps; the median of their times is reported (default 15)\n"
        "  --csv PATH  file for the figures (default bench/out/ef.csv)\n";
    const char *path = "bench/out/ef.csv";
    size_t n = GOAL_N;
    int reps = 15, a;

    for (a = 1; a < argc; a++) {
        const char *value = a + 1 < argc ? argv[a + 1] : "";
        if (!strcmp(argv[a], "--help")) return fputs(usage, stdout), 0;
        if (!strcmp(argv[a], "--quick")) {
            n = QUICK_N;
            reps = 3;
            continue;
        }
        if (!strcmp(argv[a], "--n")) n = (size_t)strtoul(value, NULL, 0);
        else if (!strcmp(argv[a], "--reps")) reps = atoi(value);
        else if (!strcmp(argv[a], "--csv")) path = value;
        else return fputs(usage, stderr), 2;
        a++;
    }
    if (!n || n % 65536 || n > UINT32_MAX || reps < 1 || reps > MAX_REPS || !*path) return fputs(usage, stderr), 2;
    csv = fopen(path, "w");
    if (!csv) die(path, "cannot be written");
    fputs("kind,op,finite,n,seconds,compress,commit,add,times,goal,plain_times\n", csv);
    printf("compgrad %s, %s. ! marks a missed goal%s.\n", cg_version(), cg_isa_name(cg_isa_used()),
        n >= GOAL_N ? "" : "; goals are for n = 2^24 and not judged here");
    make_gradients(n);
    table(n, reps);
    table_of_small(reps);
    for (a = 0; a < BUFFERS; a++) free(buffer[a]);
    printf("\n%d goal%s missed; all figures are in %s\n", missed, missed == 1 ? "" : "s", path);
    if (fclose(csv)) die(path, "cannot be written");
    return 0;
}
