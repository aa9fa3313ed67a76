/* cc -O2 -I. bench/sketch.c -o sketch.out -lm && ./sketch.out --csv sketch.csv        (or: make bench)

   The speed of a count sketch of 5 rows, each 50 times shorter than the vector: as a fraction of the speed at which
   the vector can be read, and as a multiple of the textbook's loop, which hashes every coordinate separately. A
   reading loop runs beside every measurement, so that a busy machine slows both. One thread; compiled with -fopenmp
   -DCOMPGRAD_OPENMP the program compares two threads with one instead. */

#define _POSIX_C_SOURCE 200809L
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_sketch.h"
#include "machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef COMPGRAD_OPENMP
#  ifndef _OPENMP
#    error "this compiler has no OpenMP"
#  endif
#  include <omp.h>
enum { THREADED = 1 };
static void use_threads(int count) { omp_set_num_threads(count); }
static double spin(int threads) /* seconds of work that shares nothing, on each of so many threads */
{
    const double since = omp_get_wtime();
    int i;
#  pragma omp parallel for schedule(static, 1) num_threads(threads)
    for (i = 0; i < threads; i++) {
        volatile long left = 5000000;
        while (left) left = left - 1;
    }
    return omp_get_wtime() - since;
}
static double processors(void) /* how many two threads get at best: others may use the machine */
{
    double one = HUGE_VAL, two = HUGE_VAL;
    int i;
    for (i = 0; i < 9; i++) one = fmin(one, spin(1)), two = fmin(two, spin(2));
    return 2.0 * one / two;
}
#else
enum { THREADED = 0 };
static void use_threads(int count) { (void)count; }
static double processors(void) { return 1.0; }
#endif

enum { GOAL_N = 1 << 24, QUICK_N = 1 << 20, ROWS = 5, NARROWER = 50, MAX_REPS = 101, TEXTBOOK_REPS = 3 };

static FILE *csv;
static int missed;

static void die(const char *what, const char *why) {
    fprintf(stderr, "sketch: %s: %s\n", what, why);
    exit(1);
}

static void *pages(size_t bytes) /* aligned, and touched so that no page fault is timed */
{
    void *p;
    if (posix_memalign(&p, 4096, bytes + 64)) die("memory", "not enough; try --n with a smaller number");
    memset(p, 0, bytes + 64);
    return p;
}

/* of this thread, as others may use the machine, too; of threads together only a clock can tell */
static double seconds(void) {
    struct timespec t;
    clock_gettime(THREADED ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double timed_read(const float *x, size_t n) {
    const double since = seconds();
    read_limit(x, n);
    return seconds() - since;
}

/* ---- the textbook: per row and coordinate a cell and a sign, by (a i + b) mod p; no tables, no checks ---- */

static const uint64_t prime = 0x7fffffff;
typedef struct textbook {
    uint64_t a, b, c, d;
} textbook;
static textbook book[ROWS];

static void open_book(void) {
    uint64_t state = 7;
    int r;
    for (r = 0; r < ROWS; r++) {
        state = state * 6364136223846793005u + 1442695040888963407u, book[r].a = (state >> 33) | 1;
        state = state * 6364136223846793005u + 1442695040888963407u, book[r].b = state >> 33;
        state = state * 6364136223846793005u + 1442695040888963407u, book[r].c = (state >> 33) | 1;
        state = state * 6364136223846793005u + 1442695040888963407u, book[r].d = state >> 33;
    }
}

static size_t book_cell(int r, uint64_t i, size_t cols) {
    return (size_t)r * cols + (size_t)((book[r].a * i + book[r].b) % prime % cols);
}
static float book_sign(int r, uint64_t i) { return (book[r].c * i + book[r].d) % prime & 1 ? 1.0f : -1.0f; }

static void book_add(float *restrict cells, size_t cols, const float *restrict x, size_t n) {
    size_t i;
    int r;
    for (i = 0; i < n; i++)
        for (r = 0; r < ROWS; r++) cells[book_cell(r, i, cols)] += book_sign(r, i) * x[i];
}

static void book_estimate(const float *restrict cells, size_t cols, float *restrict y, size_t n) {
    size_t i;
    int r, j;
    for (i = 0; i < n; i++) {
        float v[ROWS];
        /* by insertion: the median is in the middle then */
        for (r = 0; r < ROWS; r++) {
            const float e = book_sign(r, i) * cells[book_cell(r, i, cols)];
            for (j = r; j > 0 && v[j - 1] > e; j--) v[j] = v[j - 1];
            v[j] = e;
        }
        y[i] = v[ROWS / 2];
    }
}

/* ---- what is measured ---- */

typedef struct work {
    cg_sketch sketch, other;
    void *mem, *other_mem, *scratch;
    float *y, *value, *cells; /* cells: the textbook's */
    uint64_t *index;
    size_t n, k, scratch_bytes;
} work;

static float *x;

static void make_vector(size_t n) /* heavy-tailed: the cube of a Laplace variable */
{
    uint64_t state = 1;
    size_t i;
    x = (float *)pages(n * sizeof(float));
    for (i = 0; i < n; i++) {
        double e;
        state = state * 6364136223846793005u + 1442695040888963407u;
        e = log(((double)(state >> 33) + 0.5) * 0x1p-31);
        x[i] = (float)(e * e * e) * (state >> 32 & 1 ? 1.0f : -1.0f);
    }
}

static void must(const char *what, cg_status s) {
    if (s != CG_OK) die(what, cg_status_str(s));
}

static void open_work(work *w, size_t n, int groups) {
    cg_sketch_desc d = CG_ZERO;
    size_t bytes;
    d.rows = ROWS;
    d.cols = n / NARROWER;
    d.n = n;
    d.seed = 42;
    d.groups = groups ? n / NARROWER : 0;
    bytes = cg_sketch_memory(&d);
    if (!bytes) die("a sketch", "refused");
    w->n = n;
    w->k = n / 200;
    w->mem = pages(bytes), w->other_mem = pages(bytes);
    must("a sketch", cg_sketch_init(&w->sketch, &d, w->mem, bytes));
    must("a sketch", cg_sketch_init(&w->other, &d, w->other_mem, bytes));
    w->scratch_bytes = cg_sketch_heavy_scratch(&w->sketch, w->k);
    w->scratch = pages(w->scratch_bytes);
    w->y = (float *)pages(n * sizeof(float));
    w->value = (float *)pages(w->k * sizeof(float));
    w->index = (uint64_t *)pages(w->k * sizeof(uint64_t));
    w->cells = (float *)pages(ROWS * w->sketch.desc.cols * sizeof(float));
    must("add", cg_sketch_add(&w->sketch, x, n, 1.0f));
}

static void close_work(work *w) {
    free(w->mem), free(w->other_mem), free(w->scratch), free(w->y), free(w->value), free(w->index), free(w->cells);
}

/* w->sketch stays what it is; what is added goes to the other one. */
typedef cg_status (*call)(work *);
static cg_status do_add(work *w) { return cg_sketch_add(&w->other, x, w->n, 1.0f); }
static cg_status do_list(work *w) { return cg_sketch_add_list(&w->other, w->index, w->value, w->k, 1.0f); }
static cg_status do_estimate(work *w) { return cg_sketch_estimate_all(&w->sketch, w->y, w->n); }
static cg_status do_heavy(work *w) {
    return cg_sketch_heavy(&w->sketch, w->k, w->index, w->value, w->scratch, w->scratch_bytes);
}
static cg_status do_merge(work *w) { return cg_sketch_merge(&w->other, &w->sketch); }
static cg_status do_norm(work *w) {
    sink = (float)cg_sketch_norm(&w->sketch);
    return CG_OK;
}
static cg_status book_add_all(work *w) {
    book_add(w->cells, w->sketch.desc.cols, x, w->n);
    return CG_OK;
}
static cg_status book_estimate_all(work *w) {
    book_estimate(w->cells, w->sketch.desc.cols, w->y, w->n);
    return CG_OK;
}

typedef struct row {
    const char *name;
    call run, textbook;
    int groups;
    double of_read, of_textbook, of_estimate; /* goals: at least, at least, at most; 0: none */
} row;
static const row rows[] = { { "estimate all", do_estimate, book_estimate_all, 0, 0.10, 0,
                                0 }, /* first, as others are compared with it */
    { "add", do_add, book_add_all, 0, 0.12, 25, 0 }, { "heavy, k = 0.5 %", do_heavy, NULL, 0, 0, 0, 1.5 },
    { "add, with groups", do_add, NULL, 1, 0, 0, 0 }, { "heavy, with groups", do_heavy, NULL, 1, 0, 0, 0 },
    { "add a list of 0.5 %", do_list, NULL, 0, 0, 0, 0 }, { "merge", do_merge, NULL, 0, 0, 0, 0 },
    { "norm", do_norm, NULL, 0, 0, 0, 0 } };
enum { ROWS_OF_TABLE = sizeof rows / sizeof rows[0], JUDGED = 3 }; /* those with goals come first */

static int ascending(const void *a, const void *b) {
    const double u = *(const double *)a, v = *(const double *)b;
    return (u > v) - (u < v);
}

static double median(double *v, int count) {
    qsort(v, (size_t)count, sizeof *v, ascending);
    return count % 2 ? v[count / 2] : 0.5 * (v[count / 2 - 1] + v[count / 2]);
}

static double timed(const char *what, call run, work *w) {
    const double since = seconds();
    const cg_status s = run(w);
    const double took = seconds() - since;
    must(what, s);
    return took;
}

typedef struct figures {
    double took, of_read, of_textbook, of_estimate;
} figures; /* 0: not measured */

/* Medians; every figure against what ran just before and after it. */
static figures measure(const row *r, size_t n, int reps) {
    static double took[MAX_REPS], ratio[MAX_REPS], times[MAX_REPS];
    figures f = CG_ZERO;
    work w = CG_ZERO;
    double last;
    int i;
    open_work(&w, n, r->groups);
    if (r->run == do_list) must("heavy", do_heavy(&w)); /* what list */
    timed(r->name, r->run, &w);
    last = timed_read(x, n);
    for (i = 0; i < reps; i++) {
        double next;
        took[i] = timed(r->name, r->run, &w);
        next = timed_read(x, n);
        ratio[i] = 0.5 * (last + next) / took[i];
        if (r->run == do_heavy) times[i] = took[i] / timed("estimate all", do_estimate, &w);
        last = next;
    }
    f.took = median(took, reps);
    f.of_read = median(ratio, reps);
    f.of_estimate = r->run == do_heavy ? median(times, reps) : 0.0;
    for (i = 0; r->textbook && i < TEXTBOOK_REPS; i++)
        took[i] = timed(r->name, r->textbook, &w) / timed(r->name, r->run, &w);
    f.of_textbook = r->textbook ? median(took, TEXTBOOK_REPS) : 0.0;
    close_work(&w);
    return f;
}

static void cell(double value, double goal, int miss) {
    char text[16] = "";
    if (goal > 0) snprintf(text, sizeof text, "%g", goal);
    if (value > 0) printf(" %8.3f%s %-5s", value, miss ? "!" : " ", text);
    else printf(" %8s  %-5s", "", "");
    missed += miss;
}

static void table(size_t n, int reps) {
    const double judged = n >= GOAL_N;
    int i;
    printf("\nn = %lu, %d rows, cols = n/%d: ms; fraction of the read limit; times the textbook loop; time of an "
           "estimate pass\n",
        (unsigned long)n, ROWS, NARROWER);
    printf(
        "%-20s %8s %9s %-5s %9s %-5s %9s %-5s\n", "", "ms", "of read", "goal", "textbook", "goal", "estimates", "goal");
    for (i = 0; i < ROWS_OF_TABLE; i++) {
        const row *r = &rows[i];
        const double a = judged * r->of_read, b = judged * r->of_textbook, c = judged * r->of_estimate;
        const figures f = measure(r, n, reps);
        printf("%-20s %8.2f", r->name, 1e3 * f.took);
        cell(f.of_read, a, f.of_read < a);
        cell(f.of_textbook, b, f.of_textbook < b);
        cell(f.of_estimate, c, c > 0 && f.of_estimate > c);
        printf("\n");
        fflush(stdout);
        fprintf(csv, "\"%s\",%lu,1,%.9f,%.4f,%g,%.2f,%g,%.3f,%g,,\n", r->name, (unsigned long)n, f.took, f.of_read, a,
            f.of_textbook, b, f.of_estimate, c);
    }
}

/* Calls so short that set-up shows. Whole batches are timed, or the clock would. */
static void table_of_small(int reps) {
    static const size_t sizes[2] = { 1 << 12, 1 << 16 };
    int i, s;
    printf("\nSmall vectors: ns of a call\n%-20s %10s %10s\n", "", "n = 2^12", "n = 2^16");
    for (i = 0; i < JUDGED; i++) {
        printf("%-20s", rows[i].name);
        for (s = 0; s < 2; s++) {
            static double all[MAX_REPS];
            const int batch = (1 << 20) / (int)sizes[s];
            work w = CG_ZERO;
            int rep, j;
            open_work(&w, sizes[s], 0);
            for (rep = 0; rep < reps; rep++) {
                const double since = seconds();
                for (j = 0; j < batch; j++) must(rows[i].name, rows[i].run(&w));
                all[rep] = (seconds() - since) / batch;
            }
            all[0] = median(all, reps);
            printf(" %10.0f", 1e9 * all[0]);
            fprintf(csv, "\"%s\",%lu,1,%.9f,,,,,,,,\n", rows[i].name, (unsigned long)sizes[s], all[0]);
            close_work(&w);
        }
        printf("\n");
    }
}

/* ---- two threads ---- */

static uint64_t hash(uint64_t h, const void *p, size_t bytes) {
    const unsigned char *c = (const unsigned char *)p;
    size_t i;
    for (i = 0; i < bytes; i++) h = (h ^ c[i]) * 1099511628211u;
    return h;
}

/* All that a call leaves, after one call from a clean start. */
static uint64_t outcome(const row *r, work *w, int threads) {
    uint64_t h = 14695981039346656037u;
    cg_sketch_clear(&w->other);
    memset(w->y, 0, w->n * sizeof(float));
    memset(w->value, 0, w->k * sizeof(float));
    use_threads(threads);
    must(r->name, r->run(w));
    h = hash(h, w->other.cells, w->other.count * sizeof(float));
    h = hash(h, w->y, w->n * sizeof(float));
    h = hash(h, w->value, w->k * sizeof(float));
    return hash(h, w->index, w->k * sizeof(uint64_t));
}

/* The best of both: whoever else uses the machine takes a whole processor from two threads. */
static void table_of_threads(size_t n, int reps) {
    const double there = processors(), goal = n >= GOAL_N && there > 1.8 ? 1.6 : 0;
    int i, rep;
    printf("\nTwo threads, n = %lu: ms by the clock, best of %d. They get %.1f processors%s\n%-20s %8s %8s %9s %-5s\n",
        (unsigned long)n, reps, there, there > 1.8 ? "" : ": GOALS ARE NOT JUDGED, try when nothing else runs", "",
        "one", "two", "faster", "goal");
    for (i = 0; i < JUDGED; i++) {
        const row *r = &rows[i];
        double one = HUGE_VAL, two = HUGE_VAL;
        work w = CG_ZERO;
        int same;
        open_work(&w, n, 0);
        same = outcome(r, &w, 1) == outcome(r, &w, 2);
        for (rep = 0; rep < reps; rep++) {
            use_threads(1);
            one = fmin(one, timed(r->name, r->run, &w));
            use_threads(2);
            two = fmin(two, timed(r->name, r->run, &w));
        }
        printf("%-20s %8.2f %8.2f", r->name, 1e3 * one, 1e3 * two);
        cell(one / two, goal, one / two < goal);
        printf(" %s\n", same ? "same bits" : "BITS DIFFER!");
        missed += !same;
        fprintf(csv, "\"%s\",%lu,2,%.9f,,,,,,,%.3f,%g\n", r->name, (unsigned long)n, two, one / two, goal);
        close_work(&w);
    }
}

int main(int argc, char **argv) {
    static const char usage[] =
        "sketch [--quick] [--n N] [--reps R] [--csv PATH]\n"
        "  --quick     n = 2^20 and few repetitions: only shows that it runs\n"
        "  --n N       values in the vector, at least 65536 (default 2^24; goals are judged only from that on)\n"
        "  --reps R    calls; their median time is reported, for threads the best (default 15)\n"
        "  --csv PATH  file for the figures (default bench/out/sketch.csv); compiled for threads it appends to it\n";
    const char *path = "bench/out/sketch.csv";
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
    if (n < 65536 || n > INT32_MAX || reps < TEXTBOOK_REPS || reps > MAX_REPS || !*path) return fputs(usage, stderr), 2;
    csv = fopen(path, THREADED ? "a" : "w");
    if (!csv) die(path, "cannot be written");
    if (!THREADED)
        fputs("call,n,threads,seconds,of_read,goal,times_textbook,goal,estimates,goal,faster_than_one_thread,goal\n",
            csv);
    printf("compgrad %s, %s. ! marks a missed goal%s.\n", cg_version(), cg_isa_name(cg_isa_used()),
        n >= GOAL_N ? "" : "; goals are for n = 2^24 and not judged here");
    find_limits();
    open_book();
    make_vector(n);
    if (THREADED) table_of_threads(n, reps);
    else table(n, reps), table_of_small(reps);
    free(x);
    printf("\n%d goal%s missed; all figures are in %s\n", missed, missed == 1 ? "" : "s", path);
    if (fclose(csv)) die(path, "cannot be written");
    return 0;
}
