/* Prints hashes of packets and decoded floats of a vector large enough to be split over threads. */
#include <stdio.h>
#include <stdlib.h>
#include "golden.h"
#define TIER_SPARED
#include "tier.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include "compgrad_sketch.h"

enum { N = 1500007 };
static float x[N], y[N];

/* Three steps of every kind of memory: its packets, all that it remembers, and what it counts. */
static int remember(uint32_t kind, const char *text, int bytes) {
    cg_ef_desc d = CG_ZERO;
    cg_ef ef;
    cg_ef_stats stats;
    size_t len = 0, room;
    cg_status s = cg_op_parse(&d.op, text);
    void *memory, *packet, *blob;
    golden_fill(x, N);
    d.kind = kind;
    d.n = N;
    d.bytes = bytes;
    d.clip = 900;
    d.momentum =
        kind == CG_EF_MOMENTUM || kind == CG_EF_SIGNUM || kind == CG_EF_EF21 || kind == CG_EF_ONEBIT_ADAM ? 0.9f : 0;
    d.laq_step = kind == CG_EF_LAQ ? 0.1f : 0;
    memory = malloc(cg_ef_memory(&d) + 1), packet = malloc(cg_ef_bound(&d) + 1);
    if (s != CG_OK || !memory || !packet || cg_ef_init(&ef, &d, memory, cg_ef_memory(&d)) != CG_OK) return 1;
    printf("%u %s", (unsigned)kind, text);
    for (uint64_t step = 0; step < 3; step++) {
        cg_tag tag = { 5, 0, 7, 3 };
        cg_extra side = CG_ZERO;
        tag.step = step;
        if (kind == CG_EF_VARIANCE) {
            for (size_t i = 0; i < N; i++) y[i] = x[i] * x[i];
            side.aux = y;
        }
        if (cg_ef_compress_with(&ef, &tag, &side, x, packet, cg_ef_bound(&d), &len) != CG_OK) return 1;
        printf(" %08lx", (unsigned long)(golden_hash(packet, len) >> 32));
        if (len == 0) memset(y, 0, sizeof y);
        else if (cg_decompress(packet, len, y, N) != CG_OK) return 1;
        if (cg_ef_commit(&ef, packet, len, y) != CG_OK) return 1;
        stats = cg_ef_stats_of(&ef);
        printf(" %a %a", stats.put, stats.sent);
        for (size_t i = 0; i < N; i++) x[i] *= 0.75f;
    }
    room = cg_ef_save_bytes(&ef);
    blob = malloc(room);
    if (!blob || cg_ef_save(&ef, blob, room, &len) != CG_OK) return 1;
    printf(" %08lx\n", (unsigned long)(golden_hash(blob, len) >> 32));
    free(blob), free(packet), free(memory);
    return 0;
}
static int remember_all(void) {
    for (uint32_t kind = 0; kind <= CG_EF_ONEBIT_ADAM; kind++) {
        if (kind == CG_EF_LAQ ? remember(kind, "minmax:4:1000000:nearest", 0)
                : kind == CG_EF_VARIANCE
                ? remember(kind, "variance:1", 0)
                : remember(kind, "topk:0.01", 0) || remember(kind, "efsign", 0) || remember(kind, "absmax:4:512", 0))
            return 1;
        if (kind <= CG_EF_ECQ && (remember(kind, "topk:0.01", 1) || remember(kind, "absmax:4:512", 1))) return 1;
    }
    return 0;
}

/* Sketches: cells, all estimates, and heavy hitters by looking at all coordinates and at groups. */
static int sketches(int rows, size_t groups) {
    enum { K = 5000 };
    static uint64_t index[K];
    static float value[K];
    cg_sketch_desc d = CG_ZERO;
    cg_sketch s;
    void *memory, *scratch;
    size_t room;
    d.rows = rows;
    d.cols = N / 50;
    d.n = N;
    d.groups = groups;
    memory = malloc(cg_sketch_memory(&d));
    if (!memory || cg_sketch_init(&s, &d, memory, cg_sketch_memory(&d)) != CG_OK) return 1;
    golden_fill(x, N);
    if (cg_sketch_add(&s, x, N, 0.7f) != CG_OK || cg_sketch_add(&s, x, N, -0.3f) != CG_OK ||
        cg_sketch_estimate_all(&s, y, N) != CG_OK)
        return 1;
    room = cg_sketch_heavy_scratch(&s, K);
    scratch = malloc(room + 1);
    if (!scratch || cg_sketch_heavy(&s, K, index, value, scratch, room) != CG_OK) return 1;
    printf("sketch of %d rows, %lu groups %08lx %08lx %08lx %08lx %a\n", rows, (unsigned long)groups,
        (unsigned long)(golden_hash_floats(s.cells, s.count) >> 32), (unsigned long)(golden_hash_floats(y, N) >> 32),
        (unsigned long)(golden_hash_floats(value, K) >> 32), (unsigned long)(golden_hash(index, sizeof index) >> 32),
        cg_sketch_norm(&s));
    free(scratch), free(memory);
    return 0;
}

int main(void) {
    static unsigned turn;
    golden_fill(x, N);
    for (int i = 0; i < GOLDEN_CASES; i++) {
        cg_op op;
        cg_tag tag = { 5, 6, 7, 3 };
        cg_extra side;
        size_t len, n = N;
        if (golden_cases[i].n != GOLDEN_N || spared(&turn, 5)) continue;
        if (cg_op_parse(&op, golden_cases[i].op) != CG_OK) return 1;
        if (op.transform.id == CG_TRANSFORM_LOWRANK) n = 1500000, op.transform.size = 1500, op.transform.value = 1000;
        /* its cost grows with the cube of the smaller one */
        if (op.transform.id == CG_TRANSFORM_ATOMO) n = 1500000, op.transform.size = 20000, op.transform.value = 75;
        if (golden_side(&op, &tag, x, n, &side)) return 1;
        size_t cap = cg_bound(&op, n), scratch_bytes = cg_scratch(&op, n);
        void *packet = malloc(cap + 1), *scratch = malloc(scratch_bytes + 1);
        if (!packet || !scratch) return 1;
        if (cg_compress_with(&op, &tag, &side, x, n, packet, cap, &len, scratch, scratch_bytes) != CG_OK) return 1;
        printf("%s %lu %08lx", golden_cases[i].op, (unsigned long)len, (unsigned long)(golden_hash(packet, len) >> 32));
        if (cg_decode(&side, packet, len, 1, 0, y, n) != CG_OK) return 1;
        printf(" %08lx", (unsigned long)(golden_hash_floats(y, n) >> 32));
        if (cg_decode(&side, packet, len, 0.3f, 0.7f, y, n) != CG_OK) return 1;
        printf(" %08lx\n", (unsigned long)(golden_hash_floats(y, n) >> 32));
        free(packet);
        free(scratch);
        golden_side_done(&side);
    }
    return remember_all() || sketches(1, 0) || sketches(4, 0) || sketches(5, 2048);
}
