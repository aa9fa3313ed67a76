/* What golden.c, the fuzzer and the programs in build/ share: the operators, their input and a hash. Integers
   only, so that no compiler option and no floating-point environment can change the input. */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "compgrad.h" /* declarations, unless the includer has asked for more */

typedef struct golden_case {
    const char *op;
    size_t n;
} golden_case;

/* The first has values of every size (17 x 59); so has the second, whose scales come from outside. The third has
   moderate ones (39 x 77), for which one scale does; the last crosses a block of 65536. */
enum { GOLDEN_N = 1003, GOLDEN_AGREED = 1001, GOLDEN_MILD = 3003, GOLDEN_MAX = 70001 };

static const golden_case golden_cases[] = { { "dense", GOLDEN_N }, { "f16", GOLDEN_N }, { "bf16", GOLDEN_N },
    { "sign", GOLDEN_N }, { "efsign", GOLDEN_N }, { "terngrad", GOLDEN_N }, { "terngrad:nearest", GOLDEN_N },
    { "absmax:1:64", GOLDEN_N }, { "absmax:2:64", GOLDEN_N }, { "absmax:3:100", GOLDEN_N },
    { "absmax:4:512:nearest", GOLDEN_N }, { "absmax:5:7", GOLDEN_N }, { "absmax:8:64", GOLDEN_N },
    { "minmax:1:64", GOLDEN_N }, { "minmax:4:64", GOLDEN_N }, { "minmax:6:1000000:nearest", GOLDEN_N },
    { "minmax:7:33", GOLDEN_N }, { "minmax:8:128:nearest", GOLDEN_N }, { "topk:0.01", GOLDEN_N },
    { "topk:0.1", GOLDEN_N }, { "topk:0.5", GOLDEN_N }, { "topk:1", GOLDEN_N }, { "topk:0.5|eliasfano", GOLDEN_N },
    { "topk:0.01|bitmap", GOLDEN_N }, { "topk:0.05|f16", GOLDEN_N }, { "topk:k=17|efsign", GOLDEN_N },
    { "topk:0.3|absmax:4:64|bitmap", GOLDEN_N }, { "threshold:0.25", GOLDEN_N }, { "threshold:0.01|sign", GOLDEN_N },
    { "threshold:3.4e38", GOLDEN_N }, { "randk:0.1", GOLDEN_N }, { "randk:0.1:unscaled", GOLDEN_N },
    { "randk:k=77|minmax:3:32:nearest", GOLDEN_N }, { "randk:0.5|topk:0.1|absmax:4:64", GOLDEN_N },
    { "randk:0.7:unscaled|threshold:0.05|terngrad", GOLDEN_N }, { "dense", 0 }, { "topk:0.01|absmax:4:512", 0 },
    { "topk:0.01|f16", 1 }, { "minmax:2:16", 1 }, { "absmax:1:512", GOLDEN_MAX }, { "efsign", GOLDEN_MAX },
    { "terngrad", GOLDEN_MAX }, { "topk:0.01", GOLDEN_MAX }, { "randk:0.05|absmax:4:512", GOLDEN_MAX },
    /* transforms */
    { "rotate:1", GOLDEN_N }, { "rotate:2", GOLDEN_N }, { "rotate:1|minmax:4:1024", GOLDEN_N },
    { "rotate:2|lloyd:1", GOLDEN_N }, { "rotate:2|lloyd:1.5", GOLDEN_N }, { "rotate:2|lloyd:2", GOLDEN_N },
    { "rotate:1|lloyd:3", GOLDEN_N }, { "rotate:2|lloyd:4", GOLDEN_N }, { "rotate:1|topk:0.1|absmax:4:64", GOLDEN_N },
    { "dct", GOLDEN_N }, { "dct|absmax:4:64", GOLDEN_N }, { "dct|chunked:64:0.1", GOLDEN_N },
    { "lowrank:1:1:1003", GOLDEN_N }, { "lowrank:2:17:59", GOLDEN_N }, { "lowrank:64:59:17", GOLDEN_N },
    { "atomo:1:59:17", GOLDEN_N }, { "atomo:3:17:59", GOLDEN_N },
    /* quantizers */
    { "levels:1", GOLDEN_N }, { "levels:4", GOLDEN_N }, { "levels:7:64", GOLDEN_N }, { "levels:127:nearest", GOLDEN_N },
    { "levels:15:128:max", GOLDEN_N }, { "levels:2:100:nearest:max", GOLDEN_N }, { "flexpoint:2:64", GOLDEN_N },
    { "flexpoint:5:7", GOLDEN_N }, { "flexpoint:8:100", GOLDEN_N }, { "flex16:64", GOLDEN_N }, { "trits:1", GOLDEN_N },
    { "trits:1.75", GOLDEN_N }, { "strom:0.01", GOLDEN_N }, { "onebit", GOLDEN_N }, { "onebit:59", GOLDEN_N },
    { "natural", GOLDEN_N }, { "natural:nearest", GOLDEN_N }, { "dither:2", GOLDEN_N }, { "dither:3:64", GOLDEN_N },
    { "dither:4:nearest", GOLDEN_N }, { "dither:8:100:max", GOLDEN_N }, { "dither:5:128:nearest:max", GOLDEN_N },
    { "dynamic8", GOLDEN_N }, { "dynamic8:256", GOLDEN_N }, { "e4m3", GOLDEN_N }, { "e4m3:64", GOLDEN_N },
    { "e5m2", GOLDEN_N }, { "e5m2:100", GOLDEN_N }, { "mxfp4", GOLDEN_N }, { "mxe4m3", GOLDEN_N },
    { "mxe5m2", GOLDEN_N }, { "nf4", GOLDEN_N }, { "nf4:100", GOLDEN_N }, { "minmax:4:64:norm", GOLDEN_N },
    { "minmax:3:100:nearest:norm", GOLDEN_N }, { "terngrad:clip", GOLDEN_N }, { "terngrad:nearest:clip", GOLDEN_N },
    /* samples and selections */
    { "permk:4", GOLDEN_N }, { "permk:4:unscaled", GOLDEN_N }, { "permk:7|topk:0.1", GOLDEN_N },
    { "dgc:0.01", GOLDEN_N }, { "mstopk:0.05", GOLDEN_N }, { "mstopk:k=300", GOLDEN_N }, { "sidco:0.01", GOLDEN_N },
    { "wangni:0.1", GOLDEN_N }, { "wangnivar:0.5", GOLDEN_N }, { "sides:0.05", GOLDEN_N }, { "side:0.05", GOLDEN_N },
    { "chunked:100:0.05", GOLDEN_N }, { "chunked:1:0.5", GOLDEN_N }, { "blocks:4", GOLDEN_N },
    { "blocks:7|absmax:8:64", GOLDEN_N }, { "bins:50", GOLDEN_N }, { "variance:0.5", GOLDEN_N }, { "given", GOLDEN_N },
    { "given|absmax:4:64", GOLDEN_N },
    /* codes */
    { "levels:127:64|gamma", GOLDEN_N }, { "levels:127:64|delta", GOLDEN_N }, { "levels:127:64|omega", GOLDEN_N },
    { "levels:127:64|huffman", GOLDEN_N }, { "levels:4|gamma", GOLDEN_N }, { "levels:4|delta", GOLDEN_N },
    { "levels:4|omega", GOLDEN_N }, { "levels:4|huffman", GOLDEN_N }, { "huffman", GOLDEN_N },
    { "bf16|huffman", GOLDEN_N }, { "nf4|huffman", GOLDEN_N }, { "dynamic8:256|huffman", GOLDEN_N },
    { "dither:4:64|omega", GOLDEN_N }, { "trits:1.5|quartic", GOLDEN_N }, { "terngrad|quartic", GOLDEN_N },
    { "strom:0.01|quartic", GOLDEN_N }, { "strom:100|quartic", GOLDEN_N }, { "topk:0.1|golomb", GOLDEN_N },
    { "topk:1|golomb", GOLDEN_N }, { "threshold:0.25|golomb", GOLDEN_N }, { "topk:0.3|golomb|huffman", GOLDEN_N },
    { "topk:0.1|bf16|bitmap|huffman", GOLDEN_N },
    /* what has a name */
    { "adacomp:50", GOLDEN_N }, { "adaq:0.05", GOLDEN_N }, { "sbc:0.05", GOLDEN_N }, { "stc:0.05", GOLDEN_N },
    { "qsparse:0.1:4", GOLDEN_N }, { "cocktail:0.5:0.1:4", GOLDEN_N }, { "klevel:4:64", GOLDEN_N },
    /* all slots at once */
    { "randk:0.3|rotate:2|topk:0.2|absmax:4:64|golomb|huffman", GOLDEN_N },
    { "randk:0.3|dct|chunked:64:0.2|e4m3", GOLDEN_N }, { "permk:4|rotate:1|absmax:4:64|gamma", GOLDEN_N },
    { "permk:4|dct|sidco:0.1|levels:7|golomb|delta", GOLDEN_N },
    { "randk:0.7|blocks:3|flexpoint:4:32|omega", GOLDEN_N },
    /* agreed scales */
    { "absmax:4:64", GOLDEN_AGREED }, { "absmax:8:64:nearest", GOLDEN_AGREED }, { "minmax:4:64", GOLDEN_AGREED },
    { "terngrad", GOLDEN_AGREED }, { "levels:7:64|omega", GOLDEN_AGREED }, { "flexpoint:4:64", GOLDEN_AGREED },
    { "flex16:64", GOLDEN_AGREED }, { "trits:1.5|quartic", GOLDEN_AGREED }, { "efsign", GOLDEN_AGREED },
    { "onebit:59", GOLDEN_AGREED }, { "dither:4:64", GOLDEN_AGREED }, { "dynamic8:64", GOLDEN_AGREED },
    { "e4m3:64", GOLDEN_AGREED }, { "e5m2:64", GOLDEN_AGREED }, { "mxfp4", GOLDEN_AGREED }, { "mxe4m3", GOLDEN_AGREED },
    { "nf4", GOLDEN_AGREED }, { "side:0.3|mean", GOLDEN_AGREED }, { "topk:0.3|absmax:4:64", GOLDEN_AGREED },
    /* moderate values */
    { "rotate:1", GOLDEN_MILD }, { "rotate:2|lloyd:1", GOLDEN_MILD }, { "rotate:2|lloyd:1.5", GOLDEN_MILD },
    { "rotate:2|lloyd:2", GOLDEN_MILD }, { "rotate:2|lloyd:4", GOLDEN_MILD }, { "dct|topk:0.05|f16", GOLDEN_MILD },
    { "lowrank:4:39:77", GOLDEN_MILD }, { "atomo:3:39:77", GOLDEN_MILD }, { "levels:4", GOLDEN_MILD },
    { "levels:127|gamma", GOLDEN_MILD }, { "levels:127|delta", GOLDEN_MILD }, { "levels:64|omega", GOLDEN_MILD },
    { "levels:64|huffman", GOLDEN_MILD }, { "trits:1.5|quartic", GOLDEN_MILD }, { "onebit", GOLDEN_MILD },
    { "terngrad:clip", GOLDEN_MILD }, { "dither:4", GOLDEN_MILD }, { "dynamic8", GOLDEN_MILD },
    { "strom:0.1|huffman", GOLDEN_MILD }, { "wangni:0.05", GOLDEN_MILD }, { "wangnivar:2", GOLDEN_MILD },
    { "dgc:0.02", GOLDEN_MILD }, { "mstopk:0.02", GOLDEN_MILD }, { "sidco:0.02", GOLDEN_MILD },
    { "huffman", GOLDEN_MILD }, { "given|levels:7|omega", GOLDEN_MILD }, { "variance:1", GOLDEN_MILD },
    { "adacomp:50", GOLDEN_MILD },
    /* more than a block, nothing, and one */
    { "rotate:2|lloyd:1", GOLDEN_MAX }, { "levels:1|omega", GOLDEN_MAX }, { "trits:1.9|quartic", GOLDEN_MAX },
    { "dct|chunked:64:0.02|e5m2", GOLDEN_MAX }, { "dgc:0.01", GOLDEN_MAX }, { "mstopk:0.01", GOLDEN_MAX },
    { "sidco:0.01", GOLDEN_MAX }, { "wangni:0.01", GOLDEN_MAX }, { "adaq:0.01", GOLDEN_MAX },
    { "sbc:0.01", GOLDEN_MAX }, { "topk:0.1|bf16|golomb|huffman", GOLDEN_MAX },
    { "permk:16|levels:4|gamma", GOLDEN_MAX }, { "chunked:512:0.01", GOLDEN_MAX },
    { "randk:0.1|rotate:2|topk:0.1|absmax:4:512|golomb", GOLDEN_MAX }, { "lowrank:4:250:280", 70000 },
    { "rotate:2|lloyd:2", 0 }, { "huffman", 0 }, { "permk:4", 0 }, { "topk:0.01|levels:4|golomb|omega", 0 },
    { "wangni:0.1", 0 }, { "mxfp4", 0 }, { "given", 0 }, { "rotate:2|lloyd:2", 1 }, { "huffman", 1 }, { "permk:4", 1 },
    { "topk:0.01|levels:4|golomb|omega", 1 }, { "wangni:0.1", 1 }, { "mxfp4", 1 }, { "dct|nf4", 1 }, { "natural", 1 },
    { "lowrank:1:1:1", 1 }, { "atomo:1:1:1", 1 }, { "sbc:0.05", 1 },
    /* three rounds */
    { "rotate:3", GOLDEN_N }, { "rotate:3|lloyd:1", GOLDEN_N }, { "rotate:3|lloyd:1.5", GOLDEN_N },
    { "rotate:3|lloyd:4", GOLDEN_N }, { "randk:0.5|rotate:3|lloyd:1", GOLDEN_N }, { "rotate:3|lloyd:1", GOLDEN_MILD },
    { "rotate:3|lloyd:2", GOLDEN_MILD }, { "rotate:3|lloyd:4", GOLDEN_MILD }, { "rotate:3|lloyd:1", GOLDEN_MAX },
    { "rotate:3|lloyd:2", 0 }, { "rotate:3|lloyd:2", 1 },
    /* samples and rotations of each rank's own */
    { "randk:0.1:private", GOLDEN_N }, { "randk:0.1:unscaled:private", GOLDEN_N }, { "rotate:3:private", GOLDEN_N },
    { "rotate:1:private|absmax:4:64|gamma", GOLDEN_N }, { "randk:0.5:private|rotate:3:private|lloyd:1", GOLDEN_N },
    { "randk:0.3:private|topk:0.2|absmax:4:64|golomb", GOLDEN_N }, { "randk:0.05:private|absmax:4:512", GOLDEN_MAX },
    { "randk:0.5|rotate:3:private|lloyd:2", GOLDEN_MAX }, { "randk:0.1:private", 0 }, { "rotate:3:private", 1 },
    /* scales of their own */
    { "nvfp4", GOLDEN_N }, { "nvfp4:stochastic", GOLDEN_N }, { "nvfp4|huffman", GOLDEN_MILD }, { "nvfp4", GOLDEN_MAX },
    { "nvfp4", 0 }, { "nvfp4", 1 }, { "topk:0.1|geometric:3", GOLDEN_N }, { "geometric:1:64", GOLDEN_MILD },
    { "geometric:2", GOLDEN_MAX }, { "topk:0.2|geometric:4:100|golomb|huffman", GOLDEN_MILD }, { "geometric:4", 0 },
    /* clips */
    { "clip:1", GOLDEN_MILD }, { "clip:2.5|terngrad", GOLDEN_MILD },
    { "topk:0.2|clip:0.5|absmax:4:64|golomb", GOLDEN_N },
    { "randk:0.5|rotate:3|clip:1.5|absmax:2:64|gamma", GOLDEN_MILD }, { "clip:0.7|absmax:8:64", GOLDEN_MAX },
    { "clip:0.001|dense|huffman", GOLDEN_N }, { "clip:2", 0 },
    /* small floats at random */
    { "cyclic:4", GOLDEN_N }, { "cyclic:7:unscaled", GOLDEN_N }, { "cyclic:3|topk:0.2|absmax:4:64|golomb", GOLDEN_N },
    { "cyclic:5|rotate:3|absmax:4:64", GOLDEN_MILD }, { "cyclic:2|absmax:8:64", GOLDEN_MAX }, { "cyclic:4", 0 },
    { "cyclic:4", 1 }, { "f16:stochastic", GOLDEN_N }, { "bf16:stochastic", GOLDEN_N },
    { "e4m3:100:stochastic", GOLDEN_N }, { "e5m2:stochastic", GOLDEN_N }, { "mxfp4:stochastic", GOLDEN_N },
    { "mxe4m3:stochastic", GOLDEN_N }, { "mxe5m2:stochastic", GOLDEN_N }, { "nf4:stochastic", GOLDEN_N },
    { "bf16:stochastic|huffman", GOLDEN_MILD }, { "f16:stochastic", GOLDEN_MILD },
    { "mxfp4:stochastic|huffman", GOLDEN_MILD }, { "nf4:100:stochastic", GOLDEN_MILD },
    { "e4m3:64:stochastic", GOLDEN_AGREED }, { "nf4:stochastic", GOLDEN_AGREED }, { "bf16:stochastic", GOLDEN_MAX },
    /* one step for all values, entropy coded */
    { "rate:0.1", GOLDEN_N }, { "rate:0.5", GOLDEN_N }, { "rate:2", GOLDEN_N }, { "rate:8", GOLDEN_N },
    { "rate:1:unbiased", GOLDEN_N }, { "step:0.5", GOLDEN_N }, { "step:0.01:unbiased", GOLDEN_N },
    { "rate:0.1", GOLDEN_MILD }, { "rate:1", GOLDEN_MILD }, { "rate:4:unbiased", GOLDEN_MILD },
    { "rate:0.02", GOLDEN_MAX }, { "rate:0.1", GOLDEN_MAX }, { "rate:0.5:unbiased", GOLDEN_MAX },
    { "rate:3", GOLDEN_MAX }, { "step:1", GOLDEN_MAX }, { "step:0.002", GOLDEN_MAX },
    { "topk:0.1|rate:4", GOLDEN_MILD }, { "rotate:3|rate:2", GOLDEN_MILD }, { "topk:0.05|rate:3|golomb", GOLDEN_MAX },
    { "randk:0.3|rate:1:unbiased", GOLDEN_MAX }, { "dct|chunked:64:0.1|rate:4", GOLDEN_MILD }, { "rate:1", 0 },
    { "step:1", 0 }, { "rate:1", 1 }, { "step:1:unbiased", 1 } };
enum { GOLDEN_CASES = (int)(sizeof golden_cases / sizeof golden_cases[0]) };

/* Packets with segments. What stands before '~' says which: 1: one operator; 2: every third segment exact; 3: a table
   of operators, and tensors; 4: one selection of all; 5: 4 and 2. */
static const golden_case golden_segmented[] = { { "1~dense", GOLDEN_N }, { "1~absmax:4:64", GOLDEN_MILD },
    { "1~topk:0.1", GOLDEN_N }, { "1~topk:0.05|absmax:4:64|golomb|huffman", GOLDEN_N },
    { "1~randk:0.3|levels:7:32|omega", GOLDEN_MILD }, { "1~rotate:3|lloyd:1.5", GOLDEN_MILD },
    { "1~permk:4|f16", GOLDEN_N }, { "1~mxfp4", GOLDEN_N }, { "1~natural", GOLDEN_N }, { "1~blocks:4", GOLDEN_N },
    { "1~threelc:1.5", GOLDEN_MILD }, { "1~absmax:8:512", GOLDEN_MAX }, { "2~minmax:4:64", GOLDEN_N },
    { "2~efsign", GOLDEN_N }, { "2~topk:0.1|f16", GOLDEN_N }, { "2~randk:0.4|topk:0.3|bf16|huffman", GOLDEN_MILD },
    { "3~absmax:4:64", GOLDEN_N }, { "3~dct|chunked:64:0.1", GOLDEN_MILD }, { "4~topk:0.05|absmax:4:64", GOLDEN_N },
    { "4~mstopk:0.02", GOLDEN_MILD }, { "4~threshold:0.25|golomb", GOLDEN_N }, { "4~sbc:0.05", GOLDEN_MILD },
    { "4~topk:0.01", GOLDEN_MAX }, { "5~topk:0.05|f16|bitmap", GOLDEN_N } };
enum { GOLDEN_SEGMENTED = (int)(sizeof golden_segmented / sizeof golden_segmented[0]), GOLDEN_SEGMENTS = 8 };
typedef struct golden_cut {
    cg_segments segments;
    size_t n[GOLDEN_SEGMENTS];
    uint32_t op[GOLDEN_SEGMENTS], tensor[GOLDEN_SEGMENTS];
    cg_op ops[3];
} golden_cut;
/* The operator's text of a case; if it is one with segments, those too, and side->segments. */
static inline const char *golden_text(const char *text, size_t n, golden_cut *cut, cg_extra *side) {
    static const size_t lengths[GOLDEN_SEGMENTS - 1] = { 300, 0, 1, 64, 402, 17, 0 };
    static const char *const ops[3] = { "lowrank:2:3:100", "topk:0.2|levels:7|golomb|huffman",
        "rotate:1|absmax:4:512" };
    const int kind = text[0] - '0';
    if (text[0] == 0 || text[1] != '~') return text;
    memset(cut, 0, sizeof *cut);
    cut->segments.n = cut->n;
    cut->segments.count = GOLDEN_SEGMENTS;
    for (uint32_t i = 0; i < GOLDEN_SEGMENTS; i++) {
        cut->n[i] = i + 1 < GOLDEN_SEGMENTS ? lengths[i] : n;
        n -= cut->n[i];
        cut->op[i] = kind == 3 ? (i == 0 ? 2u : i == 4 ? 3u : i == 7 ? 4u : i % 2) : i % 3 == 1;
        cut->tensor[i] = 1000 - 7 * i;
    }
    for (int j = 0; j < 3; j++)
        if (cg_op_parse(&cut->ops[j], ops[j]) != CG_OK) return "a text of golden.h is not valid";
    if (kind == 2 || kind == 3 || kind == 5) cut->segments.op = cut->op;
    if (kind == 3) cut->segments.ops = cut->ops, cut->segments.op_count = 3, cut->segments.tensor = cut->tensor;
    if (kind >= 4) cut->segments.flags = CG_SEGMENTS_GLOBAL;
    side->segments = &cut->segments;
    return text + 2;
}

/* Magnitudes 2^-10 to 2^-2; vectors of the first two lengths also have huge ones, denormals, zeros and ties. */
static inline void golden_fill(float *x, size_t n) {
    uint64_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t r = (uint32_t)(state >> 32), sign = r & 0x80000000u, exponent = 117 + (r >> 23 & 7),
                 mantissa = r & 0x7fffff;
        if (n == GOLDEN_N || n == GOLDEN_AGREED) {
            /* to the last finite one */
            if (i < 32 || (n == GOLDEN_AGREED && i % 31 == 7)) exponent += 130;
            else if (i >= 128 && i < 256) exponent = 0;                             /* denormals */
            else if (i >= 256 && i < 300) exponent = 0, mantissa = 0;               /* zeros of both signs */
            else if (i >= 400 && i < 600) exponent = 128, mantissa = (r & 1) << 22; /* 2 and 3: ties for top-k */
        }
        uint32_t bits = sign | exponent << 23 | mantissa;
        memcpy(x + i, &bits, 4);
    }
}

static inline uint64_t golden_hash(const void *data, size_t bytes) { /* FNV-1a */
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++) h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return h;
}

static inline uint64_t golden_hash_floats(const float *y, size_t n) { /* the same in either byte order */
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, y + i, 4);
        h = (h ^ bits) * 1099511628211u;
    }
    return h;
}

/* What an operator wants to know beside x: aux is x shifted by one, without signs; the support is what top-k
   keeps; scales suit some values and not others. 0, or it failed. */
static inline int golden_side(const cg_op *op, const cg_tag *tag, const float *x, size_t n, cg_extra *side) {
    memset(side, 0, sizeof *side);
    if (n == GOLDEN_AGREED) {
        static const uint32_t sizes[] = { 0x3e000000, 0, 0x3f800000, 0x7e000000, 0x00000010, 0x40000000, 0x20000000 };
        const int two = op->quantize.id == CG_QUANTIZE_MINMAX || op->quantize.id == CG_QUANTIZE_ONEBIT;
        const size_t many = 2 * (n + 1023); /* buckets of one value, after a rotation that fills up its last block */
        float *scale = (float *)malloc(4 * many);
        for (size_t i = 0; scale && i < many; i++) { /* of two, the lower one is negative */
            uint32_t bits = sizes[(two ? i / 2 : i) % 7] | (two && i % 2 == 0 ? 0x80000000u : 0u);
            memcpy(scale + i, &bits, 4);
        }
        side->scale = scale;
        return !scale;
    }
    if (op->select.id == CG_SELECT_BINS || op->select.id == CG_SELECT_VARIANCE) {
        float *aux = (float *)malloc(4 * n + 4);
        for (size_t i = 0; aux && i < n; i++) {
            uint32_t bits;
            memcpy(&bits, x + (i + 1) % n, 4);
            bits &= 0x7fffffffu;
            memcpy(aux + i, &bits, 4);
        }
        side->aux = aux;
        return !aux;
    }
    if (op->select.id == CG_SELECT_GIVEN) {
        cg_op topk = cg_topk(0.1f);
        size_t cap = cg_bound(&topk, n), bytes = cg_scratch(&topk, n);
        void *packet = malloc(cap + 1), *scratch = malloc(bytes + 1);
        int bad = !packet || !scratch ||
            cg_compress(&topk, tag, x, n, packet, cap, &side->support_len, scratch, bytes) != CG_OK;
        free(scratch);
        side->support = packet;
        return bad;
    }
    return 0;
}
static inline void golden_side_done(cg_extra *side) {
    free((void *)(uintptr_t)side->aux);
    free((void *)(uintptr_t)side->scale);
    free((void *)(uintptr_t)side->support);
    memset(side, 0, sizeof *side);
}

#endif
