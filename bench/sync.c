/* cc -O2 -I. bench/sync.c -o sync.out -lm && ./sync.out --csv sync.csv        (or: make bench)

   The time of a step of gossip (cg_gossip_start and cg_gossip_next of a node in a ring, its messages in memory) as a
   multiple of the plain loops that a user would write for the same kind around the same calls of cg_compress and
   cg_decode. Both run in turn on the same vectors, so that a busy machine slows both; the best of several. One
   thread. */

#define _POSIX_C_SOURCE 200809L
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_sync.h"
#include "machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NODES = 3, GOAL_N = 1 << 22, QUICK_N = 1 << 18, REPEATS = 15, QUICK_REPEATS = 5 };
#define GOAL 2.0 /* times the plain loops */

static void die(const char *what, const char *why) {
    fprintf(stderr, "sync: %s: %s\n", what, why);
    exit(1);
}
static float *floats(size_t n, uint64_t seed) {
    float *v;
    void *room;
    if (posix_memalign(&room, 64, n * sizeof *v + 64)) die("memory", "not enough; try --n with a smaller number");
    v = (float *)room;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        v[i] = (float)(int64_t)seed / 9.3e18f;
    }
    return v;
}
static double seconds(void) { /* of this thread: others may use the machine, too */
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct node {
    cg_gossip g;
    cg_io io;
    float *x, *grad;
    cg_status status;
} node;
static node nodes[NODES];

/* One step of all nodes; returns what node 0 took. */
static double step(uint64_t t) {
    double took = 0, begin;
    for (int i = 0; i < NODES; i++) {
        begin = seconds();
        if (cg_gossip_start(&nodes[i].g, nodes[i].x, nodes[i].grad, 0.01f, t) != CG_OK) die("step", "not begun");
        nodes[i].status = cg_gossip_next(&nodes[i].g, 0, &nodes[i].io);
        if (!i) took += seconds() - begin;
    }
    for (int left = 1; left;) {
        left = 0;
        for (int i = 0; i < NODES; i++)
            for (int j = 0; j < NODES; j++) { /* two that wait for each other, or one for the other */
                node *a = &nodes[i], *b = &nodes[j];
                if (a->status != CG_AGAIN || b->status != CG_AGAIN || a->io.to != j || b->io.from != i) continue;
                if (b->io.to >= 0 && (b->io.to != i || a->io.from != j)) continue;
                if (a->io.in_bytes != b->io.out_bytes || b->io.in_bytes != a->io.out_bytes) die("step", "sizes differ");
                memcpy(b->io.in, a->io.out, a->io.out_bytes);
                if (a->io.in_bytes) memcpy(a->io.in, b->io.out, b->io.out_bytes);
                begin = seconds();
                a->status = cg_gossip_next(&a->g, 0, &a->io);
                if (!i) took += seconds() - begin;
                begin = seconds();
                b->status = cg_gossip_next(&b->g, 0, &b->io);
                if (!j) took += seconds() - begin;
                left = 1;
            }
    }
    for (int i = 0; i < NODES; i++)
        if (nodes[i].status != CG_OK) die("step", cg_status_str(nodes[i].status));
    return took;
}

/* ---- what a user would write; packet is the node's, both neighbours' are as long and decode alike ---- */

typedef struct plain {
    const cg_op *op;
    size_t n, cap, scratch_bytes;
    float *x, *grad, *y, *z, *h, *s, *d;
    void *packet, *scratch;
} plain;
static size_t send_plain(const plain *p, const float *v, uint64_t t) {
    cg_tag tag = { 1, 0, 0, 0 };
    size_t len;
    tag.step = t;
    if (cg_compress(p->op, &tag, v, p->n, p->packet, p->cap, &len, p->scratch, p->scratch_bytes) != CG_OK)
        die("plain", "not compressed");
    return len;
}
static void take_plain(const plain *p, size_t len, float weight, float *y) {
    if (cg_decompress_add(p->packet, len, weight, y, p->n) != CG_OK) die("plain", "not decoded");
}
static void plain_dsgd(const plain *p, uint64_t t) {
    size_t len;
    for (size_t i = 0; i < p->n; i++) p->y[i] = p->x[i] - 0.01f * p->grad[i];
    len = send_plain(p, p->y, t);
    for (size_t i = 0; i < p->n; i++) p->x[i] = p->y[i] / 3;
    for (int k = 0; k < 2; k++) take_plain(p, len, 1.0f / 3, p->x);
}
static void plain_combine_first(const plain *p, uint64_t t) {
    const size_t len = send_plain(p, p->x, t);
    for (size_t i = 0; i < p->n; i++) p->x[i] = p->x[i] / 3 - 0.01f * p->grad[i];
    for (int k = 0; k < 2; k++) take_plain(p, len, 1.0f / 3, p->x);
}
static void plain_naive(const plain *p, uint64_t t) {
    const size_t len = send_plain(p, p->x, t);
    for (size_t i = 0; i < p->n; i++) p->x[i] = -0.01f * p->grad[i];
    for (int k = 0; k < 3; k++) take_plain(p, len, 1.0f / 3, p->x);
}
static void plain_dcd(const plain *p, uint64_t t) {
    size_t len;
    for (size_t i = 0; i < p->n; i++) p->z[i] = p->s[i] - 2 * p->x[i] / 3 - 0.01f * p->grad[i];
    len = send_plain(p, p->z, t);
    take_plain(p, len, 1, p->x);
    for (int k = 0; k < 2; k++) take_plain(p, len, 1.0f / 3, p->s);
}
static void plain_deepsqueeze(const plain *p, uint64_t t) {
    size_t len;
    for (size_t i = 0; i < p->n; i++) {
        p->y[i] = p->x[i] - 0.01f * p->grad[i];
        p->d[i] += p->y[i];
    }
    len = send_plain(p, p->d, t);
    take_plain(p, len, -1, p->d);
    take_plain(p, len, -0.1f * 2 / 3, p->y);
    for (int k = 0; k < 2; k++) take_plain(p, len, 0.1f / 3, p->y);
    for (size_t i = 0; i < p->n; i++) p->x[i] = p->y[i];
}
static void plain_choco(const plain *p, uint64_t t) {
    size_t len;
    for (size_t i = 0; i < p->n; i++) {
        p->y[i] = p->x[i] - 0.01f * p->grad[i];
        p->z[i] = p->y[i] - p->h[i];
    }
    len = send_plain(p, p->z, t);
    take_plain(p, len, 1, p->h);
    for (int k = 0; k < 2; k++) take_plain(p, len, 1.0f / 3, p->s);
    for (size_t i = 0; i < p->n; i++) p->x[i] = p->y[i] + 0.1f * (p->s[i] - 2 * p->h[i] / 3);
}
static void plain_push_sum(const plain *p, uint64_t t) { /* y is the numerator */
    size_t len;
    for (size_t i = 0; i < p->n; i++) p->z[i] = (p->y[i] - 0.01f * p->grad[i]) / 3;
    len = send_plain(p, p->z, t);
    for (size_t i = 0; i < p->n; i++) p->y[i] -= 0.01f * p->grad[i];
    take_plain(p, len, -2, p->y);
    for (int k = 0; k < 2; k++) take_plain(p, len, 1, p->y);
    for (size_t i = 0; i < p->n; i++) p->x[i] = p->y[i] / 1.0f;
}

static FILE *csv;
static int missed;
static void measure(const char *name, uint32_t kind, const char *text, float eta, void (*user)(const plain *, uint64_t),
    size_t n, int repeats) {
    static char room[1 << 13], why[200];
    double best = 1e9, best_plain = 1e9, ratio;
    void *mem[NODES];
    cg_graph graph;
    cg_graph_desc gd = CG_ZERO;
    cg_gossip_desc d = CG_ZERO;
    plain p;
    gd.nodes = NODES;
    if (cg_graph_init(&graph, &gd, room, sizeof room, why, sizeof why) != CG_OK) die("graph", why);
    if (cg_op_parse(&d.op, text) != CG_OK) die("operator", text);
    d.n = n, d.kind = kind, d.eta = eta, d.graph = &graph;
    for (int i = 0; i < NODES; i++) {
        nodes[i].x = floats(n, (uint64_t)i + 1), nodes[i].grad = floats(n, (uint64_t)i + 11);
        d.rank = i;
        mem[i] = malloc(cg_gossip_memory(&d) + 1);
        if (!mem[i] || cg_gossip_init(&nodes[i].g, &d, nodes[i].x, mem[i], cg_gossip_memory(&d)) != CG_OK)
            die("init", cg_gossip_why(&nodes[i].g));
    }
    p.op = &d.op, p.n = n, p.cap = cg_bound(&d.op, n), p.scratch_bytes = cg_scratch(&d.op, n);
    p.packet = malloc(p.cap), p.scratch = malloc(p.scratch_bytes + 1);
    p.x = floats(n, 1), p.grad = floats(n, 11), p.y = floats(n, 2), p.z = floats(n, 3);
    p.h = floats(n, 4), p.s = floats(n, 5), p.d = floats(n, 6);
    for (int r = 0; r < repeats + 2; r++) { /* the first two begin: dense packets, pages */
        const double took = step((uint64_t)r), begin = seconds();
        double plain_took;
        user(&p, (uint64_t)r);
        plain_took = seconds() - begin;
        if (r < 2) continue;
        if (took < best) best = took;
        if (plain_took < best_plain) best_plain = plain_took;
    }
    ratio = best / best_plain;
    missed += ratio > GOAL;
    printf("%-22s %-20s %9.3f %9.3f %8.2f%s\n", name, text, 1e3 * best, 1e3 * best_plain, ratio,
        ratio > GOAL ? "  above" : "");
    if (csv) fprintf(csv, "%s,%s,%zu,%.6g,%.6g,%.3f\n", name, text, n, best, best_plain, ratio);
    for (int i = 0; i < NODES; i++) free(nodes[i].x), free(nodes[i].grad), free(mem[i]);
    free(p.packet), free(p.scratch), free(p.x), free(p.grad), free(p.y), free(p.z), free(p.h), free(p.s), free(p.d);
}

int main(int argc, char **argv) {
    size_t n = GOAL_N;
    int repeats = REPEATS;
    float *limits;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--quick")) n = QUICK_N, repeats = QUICK_REPEATS;
        else if (!strcmp(argv[i], "--n") && i + 1 < argc) n = (size_t)strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--csv") && i + 1 < argc) csv = fopen(argv[++i], "w");
        else die(argv[i], "unknown option: --quick, --n NUMBER, --csv FILE");
    }
    if (csv) fprintf(csv, "kind,operator,n,seconds,plain_seconds,ratio\n");
    limits = floats(n, 1);
    find_limits();
    print_machine(seconds, limits, n);
    free(limits);
    printf("A step of gossip on a ring beside plain loops around the same compression; goal: at most %.0f times.\n\n",
        GOAL);
    printf("kind                   operator                    ms  plain ms    ratio\n");
    measure("D-SGD", CG_GOSSIP_DSGD, "dense", 0, plain_dsgd, n, repeats);
    measure("D-SGD, combine first", CG_GOSSIP_DSGD_COMBINE_FIRST, "dense", 0, plain_combine_first, n, repeats);
    measure("naive", CG_GOSSIP_NAIVE, "absmax:4:512", 0, plain_naive, n, repeats);
    measure("DCD", CG_GOSSIP_DCD, "absmax:4:512", 0, plain_dcd, n, repeats);
    measure("DeepSqueeze", CG_GOSSIP_DEEPSQUEEZE, "absmax:4:512", 0.1f, plain_deepsqueeze, n, repeats);
    measure("CHOCO", CG_GOSSIP_CHOCO, "absmax:2:512:nearest", 0.1f, plain_choco, n, repeats);
    measure("CHOCO", CG_GOSSIP_CHOCO, "topk:0.01", 0.05f, plain_choco, n, repeats);
    measure("push-sum", CG_GOSSIP_PUSH_SUM, "absmax:8:512", 0, plain_push_sum, n, repeats);
    if (csv) fclose(csv);
    return 0;
}
