/* make kernels BEFORE=commit        (or: KERNELS="--isa avx2 --only pack" make kernels BEFORE=commit)

   How fast every kernel is beside the same kernel of an earlier commit, in one process: chunk by chunk as operators
   call them, on one chunk that stays in the cache, and along vectors of 64 MB. Times are of this thread alone, and the
   smallest of many in which both take turns, so that a busy machine changes a ratio little.

   This file is compiled three times: with SIDE=kernels_before and SIDE=kernels_after, against the headers of each, and
   without for main. */

#define _POSIX_C_SOURCE 200809L
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHUNK = 2048, CHUNKS = 8192, PARTS = 64, ROWS = 5, SLOTS = 64, VOTERS = 32, SMALL = 2048, LARGE = 1 << 22 };

/* What both sides read and write. x, y and bytes are long vectors, symbols[b] a chunk of symbols of b bits. */
typedef struct kernel_data {
    float *x, *y, *cells;
    uint8_t *bytes, *small, *large;
    uint8_t symbols[9][CHUNK], out[4 * CHUNK + 64];
    double lanes[16], matrix[16 * 512], product[16 * 512];
    uint32_t list_index[CHUNK + 64], sink;
    float list_value[CHUNK + 64], factors[4096];
} kernel_data;
extern kernel_data data;

/* Where a kernel is measured: on one chunk again and again, along the vectors, or by one call for all of them. */
enum { CACHE = 1, MEMORY = 2, BOTH = 3, WHOLE = 4 };
typedef struct kernel_run {
    const char *name;
    void (*run)(size_t at); /* one call, for values [at, at + CHUNK) */
    int where;
} kernel_run;
typedef struct kernel_side {
    const kernel_run *runs;
    const char *(*use)(const char *isa); /* the ISA that is used now; NULL: has no such. isa NULL: the best */
} kernel_side;
extern const kernel_side kernels_before, kernels_after;

/* An Elias-Fano section of `count` indices, low parts of 6 bits, below 100 * count. */
#define SECTION_LOW(count) ((size_t)(count) / 4 * 3)
#define SECTION_HIGH(count) (((size_t)(count) + 100 * (size_t)(count) / 64 + 64) / 64 * 8)

#ifdef SIDE
#  define COMPGRAD_STATIC
#  define COMPGRAD_IMPLEMENTATION
#  include "compgrad_sketch.h"

static const cg_kernels_ *k;
static uint32_t flips[96];
static float limits[16], values[16];
static cg_key_ key; /* of either build, whose keys may have more fields */
static cg_levels_ grid;
static cg_line_target_ targets[ROWS];

static const char *use(const char *name) {
    int isa;
    for (isa = 0; name && strcmp(cg_isa_name((cg_isa)isa), name) != 0; isa++)
        if (isa > 16) return NULL;
    if (cg_isa_force((cg_isa)(name ? isa : 0)) != CG_OK) return NULL;
    k = cg_kernels_now_();
    memset(&grid, 0, sizeof grid);
    grid.prescale = 1.0f, grid.inv_step = 100.0f, grid.max_symbol = 255, grid.zero_symbol = 127, grid.step = 0.01f;
    grid.postscale = 1.0f;
    for (unsigned i = 0; i < 96; i++) flips[i] = cg_hash32_(key, i);
    for (int i = 0; i < 16; i++) limits[i] = 0.1f * (float)(i - 7), values[i] = (float)i - 8.0f;
    for (int i = 0; i < 4096; i++) data.factors[i] = 0.01f * (float)(i % 7);
    for (int i = 0; i < 16 * 512; i++) data.matrix[i] = data.factors[i % 4096], data.product[i] = 0.0;
    return cg_isa_name(cg_isa_used());
}

#  define X (data.x + at)
#  define Y (data.y + at)
#  define BYTES(width) (data.bytes + (width)*at)
#  define RUN(name) static void run_##name(size_t at)
#  define UNUSED ((void)at)
RUN(absmax_bits) { data.sink += k->absmax_bits(X, CHUNK); }
RUN(absmax_bits_long) { UNUSED, data.sink += k->absmax_bits(data.x, (size_t)CHUNK * CHUNKS); }
RUN(range) {
    float lo = 1.0f, hi = -1.0f;
    data.sink += k->range(X, CHUNK, &lo, &hi);
}
RUN(copy) { data.sink += k->copy(X, CHUNK, BYTES(4)); }
RUN(f16_encode) { data.sink += k->f16_encode(X, CHUNK, BYTES(2)); }
RUN(bf16_encode) { data.sink += k->bf16_encode(X, CHUNK, BYTES(2)); }
RUN(sign_encode) { data.sink += k->sign_encode(X, CHUNK, data.out, NULL); }
RUN(sign_encode_sum) { data.sink += k->sign_encode(X, CHUNK, data.out, data.lanes); }
static void levels_encode(size_t at, int stochastic, float offset, float prescale) {
    cg_levels_ q = grid;
    q.stochastic = stochastic, q.encode_offset = offset, q.prescale = prescale;
    k->levels_encode(&q, key, 0, X, CHUNK, data.out);
}
RUN(levels_encode) { levels_encode(at, 0, 0.0f, 1.0f); }
RUN(levels_encode_noise) { levels_encode(at, 1, 0.0f, 1.0f); }
RUN(levels_encode_offset) { levels_encode(at, 0, -1.0f, 1.0f); }
RUN(levels_encode_scaled) { levels_encode(at, 1, -1.0f, 2.0f); }
#  define PACK(bits)                                                                \
    RUN(pack##bits) { UNUSED, k->pack(data.symbols[bits], CHUNK, bits, data.out); } \
    RUN(unpack##bits) { UNUSED, k->unpack(data.symbols[8], CHUNK, bits, data.out + CHUNK); }
PACK(1) PACK(2) PACK(3) PACK(4) PACK(5) PACK(6) PACK(7) static void filter(size_t at, uint32_t threshold_bits) {
    data.sink += (uint32_t)k->filter(X, CHUNK, threshold_bits, 0, data.list_index, data.list_value);
}
RUN(filter) { filter(at, 0x3e851eb8u); } /* one in a hundred */
RUN(filter_many) { filter(at, 0x3dcccccdu); }
RUN(bernoulli) {
    cg_bernoulli_ c;
    c.key = key, c.threshold = 3.0f, c.prescale = 1.0f, c.inv_threshold = 1.0f / 3.0f;
    data.sink += (uint32_t)k->bernoulli(&c, X, CHUNK, (uint32_t)(at & 65535), data.list_index, data.list_value);
}
RUN(count_above) {
    size_t above = 0;
    data.sink += k->count_above(X, CHUNK, 0x3e851eb8u, &above);
}
static void levels_decode(size_t at, int zero_symbol, float offset, float postscale, int non_temporal) {
    cg_levels_ q = grid;
    q.zero_symbol = zero_symbol, q.decode_offset = offset, q.postscale = postscale;
    k->levels_decode(&q, data.symbols[8], CHUNK, Y, non_temporal);
}
RUN(levels_decode) { levels_decode(at, 127, 0.0f, 1.0f, 0); }
RUN(levels_decode_stream) { levels_decode(at, 127, 0.0f, 1.0f, 1); }
RUN(levels_decode_offset) { levels_decode(at, 0, -1.0f, 1.0f, 0); }
RUN(levels_decode_scaled) { levels_decode(at, 127, 0.0f, 2.0f, 0); }
RUN(sign_decode) { k->sign_decode(data.symbols[8], CHUNK, 0.5f, Y, 0); }
RUN(sign_decode_stream) { k->sign_decode(data.symbols[8], CHUNK, 0.5f, Y, 1); }
RUN(f16_decode) { k->f16_decode(BYTES(2), CHUNK, Y, 0); }
RUN(f16_decode_stream) { k->f16_decode(BYTES(2), CHUNK, Y, 1); }
RUN(bf16_decode) { k->bf16_decode(BYTES(2), CHUNK, Y, 0); }
RUN(absmax16_bits) { data.sink += k->absmax16_bits(BYTES(2), CHUNK); }
RUN(axpby_0) { k->axpby(X, CHUNK, 0.5f, 0.0f, Y, 0); }
RUN(axpby_1) { k->axpby(X, CHUNK, 0.5f, 1.0f, Y, 0); }
RUN(axpby) { k->axpby(X, CHUNK, 0.5f, 0.9f, Y, 0); }
RUN(axpby_stream) { k->axpby(X, CHUNK, 0.5f, 0.0f, Y, 1); }
RUN(move_zero) { k->move_zero(Y, CHUNK, (float *)(void *)BYTES(4), 0); }
RUN(move_zero_stream) { k->move_zero(Y, CHUNK, (float *)(void *)BYTES(4), 1); }
RUN(checksum) {
    cg_checksum_ sum = { 0, 0, 0 };
    k->checksum(&sum, BYTES(4), CHUNK);
    data.sink += (uint32_t)sum.b;
}
RUN(rotate_1) {
    k->rotate_from(X, data.y, flips, 1, 0);
    k->rotate_from(X + 1024, data.y, flips, 1, 0);
}
RUN(rotate_2_inverse) {
    k->rotate_from(X, data.y, flips, 2, 1);
    k->rotate_from(X + 1024, data.y, flips, 2, 1);
}
static void dct(size_t at, int inverse) {
    for (size_t i = 0; i < CHUNK; i += 64) {
        memcpy(data.y, X + i, 256);
        k->dct(data.y, inverse);
    }
}
RUN(dct) { dct(at, 0); }
RUN(dct_inverse) { dct(at, 1); }
RUN(lane_sum_abs) { k->lane_sum(X, CHUNK, CG_SUM_ABS_, data.lanes); }
RUN(lane_sum_squares) { k->lane_sum(X, CHUNK, CG_SUM_SQUARES_, data.lanes); }
RUN(lane_sum_negative) { k->lane_sum(X, CHUNK, CG_SUM_NEGATIVE_, data.lanes); }
RUN(axpby_fading_0) { k->axpby_fading(X, CHUNK, 0.5f, 0.9f, Y, 0, data.lanes); }
RUN(axpby_fading_1) { k->axpby_fading(X, CHUNK, 0.5f, 0.9f, Y, 1, data.lanes); }
RUN(axpby_fading_2) { k->axpby_fading(X, CHUNK, 0.5f, 1.0f, Y, 2, data.lanes); }
RUN(axpby_fading_3) { k->axpby_fading(X, CHUNK, 0.5f, 1.0f, Y, 3, data.lanes); }
static void bucketize(size_t at, int limit_count, double *sums) {
    cg_bucketizer_ g;
    memset(&g, 0, sizeof g);
    g.inv_scale = 3.0f, g.sign_bit = 8, g.limit_count = limit_count;
    for (int i = 0; i < 7; i++) g.limit[i] = 0.1f * (float)(i + 1);
    k->bucketize(&g, X, CHUNK, data.out, values, sums);
}
RUN(bucketize_1) { bucketize(at, 1, NULL); }
RUN(bucketize_3) { bucketize(at, 3, NULL); }
RUN(bucketize_7) { bucketize(at, 7, NULL); }
RUN(bucketize_1_sum) { bucketize(at, 1, data.lanes); }
RUN(bucketize_3_sum) { bucketize(at, 3, data.lanes); }
RUN(bucketize_7_sum) { bucketize(at, 7, data.lanes); }
RUN(nf4_search) { k->nf4_search(limits, 3.0f, X, CHUNK, data.out); }
RUN(table_decode) { k->table_decode(values, data.symbols[4], CHUNK, Y, 0); }
RUN(e4m3_encode) { k->fp8_encode(X, CHUNK, 100.0f, 0, data.out); }
RUN(e5m2_encode) { k->fp8_encode(X, CHUNK, 100.0f, 1, data.out); }
RUN(e4m3_decode) { k->fp8_decode(data.symbols[8], CHUNK, 0.01f, 0, Y, 0); }
RUN(e5m2_decode) { k->fp8_decode(data.symbols[8], CHUNK, 0.01f, 1, Y, 0); }
RUN(natural_encode) { data.sink += k->natural_encode(X, CHUNK, key, 0, 0, data.out); }
RUN(natural_encode_noise) { data.sink += k->natural_encode(X, CHUNK, key, 0, 1, data.out); }
RUN(natural_decode) { k->natural_decode(data.symbols[7], CHUNK - CHUNK / 8, Y, 0); }
static void dither_encode(size_t at, int stochastic) {
    cg_dither_ q;
    q.inv_scale = 2.0f, q.bits = 4, q.stochastic = stochastic;
    k->dither_encode(&q, key, 0, X, CHUNK, data.out);
}
RUN(dither_encode) { dither_encode(at, 0); }
RUN(dither_encode_noise) { dither_encode(at, 1); }
RUN(dither_decode) { k->dither_decode(4, 0.5f, data.symbols[4], CHUNK, Y, 0); }
RUN(dynamic8_encode) { k->dynamic8_encode(X, CHUNK, 3.0f, data.out); }
RUN(dynamic8_decode) { k->dynamic8_decode(data.symbols[8], CHUNK, 0.5f, Y, 0); }
RUN(strom_encode) { k->strom_encode(X, CHUNK, 0.1f, data.out); }
static void vote(size_t at, size_t count) {
    const uint8_t *in[VOTERS];
    for (size_t i = 0; i < VOTERS; i++) in[i] = data.bytes + (i * CHUNKS * CHUNK + at) / 8;
    k->vote(in, count, CHUNK / 8, data.out);
}
RUN(vote_3) { vote(at, 3); }
RUN(vote_8) { vote(at, 8); }
RUN(vote_32) { vote(at, 32); }
RUN(project_1) { k->project(X, 512, 4, 512, data.matrix, 512, 1, data.product, 512, NULL); }
RUN(project_4) { k->project(X, 512, 4, 512, data.matrix, 512, 4, data.product, 512, NULL); }
RUN(project_t_1) { k->project_t(X, 512, 4, 512, data.factors, 1, 1, data.product, 512, NULL); }
RUN(project_t_4) { k->project_t(X, 512, 4, 512, data.factors, 4, 4, data.product, 512, NULL); }
RUN(lowrank_tile_2) { k->lowrank_tile(data.factors, data.factors, 512, 2, 4, 512, Y, 512, 0); }
RUN(lowrank_tile_8) { k->lowrank_tile(data.factors, data.factors, 512, 8, 4, 512, Y, 512, 0); }

/* Kernels that version 0.1 had beside its table */
#  ifdef CG_KERNEL_LIST_
#    define IN_TABLE(name) k->name
typedef cg_index_bits_ reader;
#    define LINE_END
#    define INDEX_CHECK(r, count, universe, next) k->index_check(r, count, universe, next)
#  else
#    define IN_TABLE(name) old_##name
#    define old_exponents(...) cg_exponents_(k, __VA_ARGS__)
#    define old_sign_mantissas(...) cg_sign_mantissas_(k, __VA_ARGS__)
#    define old_floats_join(...) cg_floats_join_(k, __VA_ARGS__)
#    define old_index_get cg_index_get_
#    define old_line_add cg_line_add_
#    define old_line_project cg_line_project_
#    define old_line_estimate cg_line_estimate_
#    define LINE_END , cg_sketch_use_avx2_()
typedef cg_index_reader_ reader;
static int INDEX_CHECK(reader *r, uint64_t count, uint64_t universe, uint64_t *next) {
    r->universe = universe;
#    if CG_AVX2_
    if (k->isa == CG_ISA_AVX2) return cg_index_validate_avx2_(r, count, next);
#    endif
    return cg_index_validate_(r, count, next);
}
#  endif
#  define FLOATS(width)                                                                             \
    RUN(exponents_##width) { IN_TABLE(exponents)(width, BYTES(width), CHUNK, data.out); }           \
    RUN(sign_mantissas_##width) { IN_TABLE(sign_mantissas)(width, BYTES(width), CHUNK, data.out); } \
    RUN(floats_join_##width) { IN_TABLE(floats_join)(width, data.symbols[8], data.out, CHUNK, BYTES(width)); }
FLOATS(2) FLOATS(4) static reader section(const uint8_t *bytes, size_t count) {
    reader r;
    memset(&r, 0, sizeof r);
#  ifndef CG_KERNEL_LIST_
    r.values_per_index = 1;
#    if CG_AVX2_
    r.avx2 = k->isa == CG_ISA_AVX2;
#    endif
#  endif
    r.low_part = bytes;
    r.next_high = bytes + SECTION_LOW(count);
    r.end = r.next_high + SECTION_HIGH(count);
    r.bit_base = (uint64_t)0 - 64;
    r.low_bits = 6;
    return r;
}
RUN(index_get) {
    static uint64_t index[SMALL];
    reader r = section(data.small, SMALL);
    UNUSED, data.sink += (uint32_t)IN_TABLE(index_get)(&r, index, SMALL);
}
RUN(index_get_long) {
    static uint64_t index[512];
    reader r = section(data.large, LARGE);
    size_t many;
    for (UNUSED; (many = IN_TABLE(index_get)(&r, index, 512)) != 0;) data.sink += (uint32_t)many;
}
RUN(index_check) {
    uint64_t next = 0;
    reader r = section(data.small, SMALL);
    UNUSED, data.sink += (uint32_t)INDEX_CHECK(&r, SMALL, 100 * SMALL, &next);
}
RUN(index_check_long) {
    uint64_t next = 0;
    reader r = section(data.large, LARGE);
    UNUSED, data.sink += (uint32_t)INDEX_CHECK(&r, LARGE, (uint64_t)100 * LARGE, &next);
}
static void aim(size_t at) {
    for (int r = 0; r < ROWS; r++) {
        const uint32_t h = cg_hash32_(key, (uint32_t)(at / 256 * ROWS + (size_t)r));
        targets[r].cells = data.cells + 256 * ((size_t)r * SLOTS + h % SLOTS);
        targets[r].prefetch = targets[r].cells;
        targets[r].xor_mask = h >> 8 & 255u;
        targets[r].sign_key = key;
    }
}
static void line_add(size_t at, int rows) {
    for (size_t i = 0; i < CHUNK; i += 256) {
        aim(at + i);
        IN_TABLE(line_add)(targets, rows, X + i, 256, 0.5f LINE_END);
    }
}
RUN(line_add_1) { line_add(at, 1); }
RUN(line_add_5) { line_add(at, 5); }
RUN(line_project) {
    aim(at);
    for (size_t i = 0; i < CHUNK; i += 256)
        data.sink += IN_TABLE(line_project)(targets, X + i, 256, 0.5f LINE_END) > 0.0f;
}
static void line_estimate(size_t at, int rows) {
    for (size_t i = 0; i < CHUNK; i += 256) {
        aim(at + i);
        IN_TABLE(line_estimate)(targets, rows, 256, Y + i LINE_END);
    }
}
RUN(line_estimate_3) { line_estimate(at, 3); }
RUN(line_estimate_4) { line_estimate(at, 4); }
RUN(line_estimate_5) { line_estimate(at, 5); }

static const kernel_run runs[] = {
#  define ROW(name, where) \
    { #name, run_##name, where }
    ROW(absmax_bits, BOTH), ROW(absmax_bits_long, WHOLE), ROW(range, BOTH), ROW(copy, BOTH), ROW(f16_encode, BOTH),
    ROW(bf16_encode, BOTH), ROW(sign_encode, BOTH), ROW(sign_encode_sum, BOTH), ROW(levels_encode, BOTH),
    ROW(levels_encode_noise, BOTH), ROW(levels_encode_offset, BOTH), ROW(levels_encode_scaled, BOTH), ROW(pack1, CACHE),
    ROW(pack2, CACHE), ROW(pack3, CACHE), ROW(pack4, CACHE), ROW(pack5, CACHE), ROW(pack6, CACHE), ROW(pack7, CACHE),
    ROW(unpack1, CACHE), ROW(unpack2, CACHE), ROW(unpack3, CACHE), ROW(unpack4, CACHE), ROW(unpack5, CACHE),
    ROW(unpack6, CACHE), ROW(unpack7, CACHE), ROW(filter, BOTH), ROW(filter_many, BOTH), ROW(bernoulli, BOTH),
    ROW(count_above, BOTH), ROW(levels_decode, BOTH), ROW(levels_decode_stream, MEMORY),
    ROW(levels_decode_offset, BOTH), ROW(levels_decode_scaled, BOTH), ROW(sign_decode, BOTH),
    ROW(sign_decode_stream, MEMORY), ROW(f16_decode, BOTH), ROW(f16_decode_stream, MEMORY), ROW(bf16_decode, BOTH),
    ROW(absmax16_bits, BOTH), ROW(axpby_0, BOTH), ROW(axpby_1, BOTH), ROW(axpby, BOTH), ROW(axpby_stream, MEMORY),
    ROW(move_zero, BOTH), ROW(move_zero_stream, MEMORY), ROW(checksum, BOTH), ROW(rotate_1, BOTH),
    ROW(rotate_2_inverse, BOTH), ROW(dct, BOTH), ROW(dct_inverse, BOTH), ROW(lane_sum_abs, BOTH),
    ROW(lane_sum_squares, BOTH), ROW(lane_sum_negative, BOTH), ROW(axpby_fading_0, BOTH), ROW(axpby_fading_1, BOTH),
    ROW(axpby_fading_2, BOTH), ROW(axpby_fading_3, BOTH), ROW(bucketize_1, BOTH), ROW(bucketize_3, BOTH),
    ROW(bucketize_7, BOTH), ROW(bucketize_1_sum, BOTH), ROW(bucketize_3_sum, BOTH), ROW(bucketize_7_sum, BOTH),
    ROW(nf4_search, BOTH), ROW(table_decode, BOTH), ROW(e4m3_encode, BOTH), ROW(e5m2_encode, BOTH),
    ROW(e4m3_decode, BOTH), ROW(e5m2_decode, BOTH), ROW(natural_encode, BOTH), ROW(natural_encode_noise, BOTH),
    ROW(natural_decode, BOTH), ROW(dither_encode, BOTH), ROW(dither_encode_noise, BOTH), ROW(dither_decode, BOTH),
    ROW(dynamic8_encode, BOTH), ROW(dynamic8_decode, BOTH), ROW(strom_encode, BOTH), ROW(vote_3, BOTH),
    ROW(vote_8, BOTH), ROW(vote_32, BOTH), ROW(project_1, BOTH), ROW(project_4, BOTH), ROW(project_t_1, BOTH),
    ROW(project_t_4, BOTH), ROW(lowrank_tile_2, BOTH), ROW(lowrank_tile_8, BOTH), ROW(exponents_2, BOTH),
    ROW(exponents_4, BOTH), ROW(sign_mantissas_2, BOTH), ROW(sign_mantissas_4, BOTH), ROW(floats_join_2, BOTH),
    ROW(floats_join_4, BOTH), ROW(index_get, CACHE), ROW(index_get_long, WHOLE), ROW(index_check, CACHE),
    ROW(index_check_long, WHOLE), ROW(line_add_1, BOTH), ROW(line_add_5, BOTH), ROW(line_project, BOTH),
    ROW(line_estimate_3, BOTH), ROW(line_estimate_4, BOTH), ROW(line_estimate_5, BOTH), { NULL, NULL, 0 }
};
const kernel_side SIDE = { runs, use };
#else

kernel_data data;

static uint32_t random32(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}
static void *allocate(size_t bytes) {
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes) != 0) {
        fprintf(stderr, "kernels: no memory for %lu bytes\n", (unsigned long)bytes);
        exit(1);
    }
    memset(p, 0, bytes);
    return p;
}
static uint8_t *section_of(size_t count) {
    uint8_t *s = (uint8_t *)allocate(SECTION_LOW(count) + SECTION_HIGH(count) + 64), *high = s + SECTION_LOW(count);
    size_t i, index = 0, b;
    for (i = 0; i < count; i++) {
        index += 1 + random32() % 99;
        for (b = 0; b < 6; b++) s[(6 * i + b) / 8] |= (uint8_t)((index >> b & 1) << (6 * i + b) % 8);
        high[(index / 64 + i) / 8] |= (uint8_t)(1u << (index / 64 + i) % 8);
    }
    return s;
}
static void fill(void) {
    const size_t n = (size_t)CHUNK * CHUNKS;
    size_t i;
    int b;
    data.x = (float *)allocate(4 * n + 65536);
    data.y = (float *)allocate(4 * n + 65536);
    data.bytes = (uint8_t *)allocate(4 * n + 65536);
    data.cells = (float *)allocate((size_t)4 * ROWS * SLOTS * 256);
    data.small = section_of(SMALL);
    data.large = section_of(LARGE);
    for (i = 0; i < n; i++) { /* nearly normal, standard deviation 0.1 */
        const uint32_t u = random32(), v = random32();
        data.x[i] = ((float)((u & 65535) + (u >> 16) + (v & 65535) + (v >> 16)) * 0x1p-16f - 2.0f) * 0.173f;
        data.bytes[4 * i] = (uint8_t)u, data.bytes[4 * i + 1] = (uint8_t)(v & 0x3f);
        data.bytes[4 * i + 2] = (uint8_t)v, data.bytes[4 * i + 3] = (uint8_t)(u & 0x3f);
    }
    for (b = 1; b <= 8; b++)
        for (i = 0; i < CHUNK; i++) data.symbols[b][i] = (uint8_t)(random32() & ((1u << b) - 1u));
}
/* Seconds that this thread has computed for */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static double seconds(const kernel_run *r, size_t first, size_t step, int times) {
    const double begin = now();
    for (; times; times--, first += step) r->run(first);
    return now() - begin;
}
/* The smallest times of both, in nanoseconds per value; rounds go on until neither has become smaller for a while.
   Along vectors the times are of parts, which the two take by turns: what else the machine does hits both alike. */
static void measure(const kernel_run *a, const kernel_run *b, int where, double patience, double *best) {
    const int parts = where == MEMORY ? PARTS : 1, limit = (int)((where == CACHE ? 40 : 24) * patience);
    const double values = where == CACHE ? (double)CHUNK : (double)CHUNK * CHUNKS;
    double least[2][PARTS];
    int times = where == MEMORY ? CHUNKS / PARTS : 1, idle = 0, round, p, s;
    for (p = 0; p < PARTS; p++) least[0][p] = least[1][p] = 1e9;
    while (where == CACHE && seconds(a, 0, 0, times) < 100e-6) times *= 2;
    for (round = 0; idle < limit && round < 20 * limit; round++, idle++)
        for (p = 0; p < parts; p++) {
            double t;
            s = (round + p) & 1;
            t = seconds(s ? b : a, (size_t)p * (size_t)times * CHUNK, where == MEMORY ? CHUNK : 0, times);
            if (t < 0.99 * least[s][p] && parts == 1) idle = 0;
            if (t < least[s][p]) least[s][p] = t;
        }
    for (s = 0; s < 2; s++) {
        for (best[s] = 0.0, p = 0; p < parts; p++) best[s] += least[s][p];
        best[s] *= 1e9 / values / (where == CACHE ? times : 1);
    }
}
static void show(const double *ns, double least, int *slow) {
    const double ratio = ns[0] / ns[1];
    printf(" | %8.4f %8.4f %5.2f%c", ns[0], ns[1], ratio, ratio < least ? '*' : ' ');
    *slow += ratio < least;
}

int main(int argc, char **argv) {
    const char *isa = NULL, *only = "", *name[2];
    double patience = 1.0;
    int i, slow = 0;
    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--isa") && i + 1 < argc) isa = argv[++i];
        else if (!strcmp(argv[i], "--only") && i + 1 < argc) only = argv[++i];
        else if (!strcmp(argv[i], "--patience") && i + 1 < argc) patience = atof(argv[++i]);
        else {
            fprintf(stderr,
                "kernels [--isa scalar|avx2|avx512|neon] [--only part of a name] [--patience times as many rounds]\n");
            return 1;
        }
    }
    fill();
    name[1] = kernels_after.use(isa);
    if (!name[1]) {
        fprintf(stderr, "kernels: this build or machine has no %s\n", isa);
        return 1;
    }
    name[0] = kernels_before.use(name[1]);
    if (!name[0]) name[0] = kernels_before.use(NULL); /* the best that it has */
    printf("nanoseconds per value, before (%s) and after (%s), and how many times as fast;\n", name[0], name[1]);
    printf("*: below 0.9 on a chunk in the cache, below 0.97 along vectors in memory\n");
    printf("%-22s | %8s %8s %6s | %8s %8s\n", "kernel", "cache", "after", "ratio", "memory", "after  ratio");
    for (i = 0; kernels_before.runs[i].name; i++) {
        const kernel_run *a = &kernels_before.runs[i], *b = &kernels_after.runs[i];
        double ns[2];
        if (!strstr(a->name, only)) continue;
        printf("%-22s", a->name);
        if (a->where & CACHE) {
            measure(a, b, CACHE, patience, ns);
            show(ns, 0.9, &slow);
        } else printf(" | %8s %8s %5s ", "", "", "");
        if (a->where & (MEMORY | WHOLE)) {
            measure(a, b, a->where & WHOLE ? WHOLE : MEMORY, patience, ns);
            show(ns, 0.97, &slow);
        }
        printf("\n");
        fflush(stdout);
    }
    printf("%d slower than that\n", slow);
    return data.sink == 42 ? 2 : 0;
}
#endif
