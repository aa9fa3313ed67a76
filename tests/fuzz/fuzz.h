/* fuzz.h - what the fuzz targets share: reading an input as choices, values and operators of every kind, packets with a
   right checksum, and the two ways to run a target.

   A target defines LLVMFuzzerTestOneInput, and fuzz_fresh, which makes the which-th input from scratch. With libFuzzer
   the fresh inputs are written into the corpus, which is the first folder on the command line. With FUZZ_MAIN there is
   no libFuzzer: main runs as many fresh inputs as it is told, the same every time. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "golden.h"

#define MUST(c)                                                                           \
  do {                                                                                    \
    if (!(c)) {                                                                           \
      fprintf(stderr, "%s, line %d: %s\n", strrchr("/" __FILE__, '/') + 1, __LINE__, #c); \
      abort();                                                                            \
    }                                                                                     \
  } while (0)

#ifdef __GNUC__
#  define FUZZ_FN static __attribute__((unused))
#else
#  define FUZZ_FN static
#endif

/* ---- an input, byte by byte; zeros when it has come to its end ---- */

typedef struct fuzz_input {
    const uint8_t *at;
    size_t left;
} fuzz_input;

FUZZ_FN uint32_t fuzz_byte(fuzz_input *in) {
    if (!in->left) return 0;
    in->left--;
    return *in->at++;
}
FUZZ_FN uint32_t fuzz_word(fuzz_input *in, int bytes) {
    uint32_t v = 0;
    while (bytes--) v = v << 8 | fuzz_byte(in);
    return v;
}
FUZZ_FN uint32_t fuzz_below(fuzz_input *in, uint32_t n) { return (n > 256 ? fuzz_word(in, 2) : fuzz_byte(in)) % n; }

/* Random numbers that do not come from the input. */
FUZZ_FN uint32_t fuzz_dice(uint64_t *dice) {
    *dice = *dice * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*dice >> 32);
}
FUZZ_FN uint32_t fuzz_roll(uint64_t *dice, uint32_t n) { return n ? fuzz_dice(dice) % n : 0; }
FUZZ_FN size_t fuzz_bytes(uint64_t *dice, uint8_t *out, size_t len) {
    for (size_t i = 0; i < len; i++) out[i] = (uint8_t)(fuzz_dice(dice) >> 24);
    return len;
}

/* ---- floats ---- */

FUZZ_FN uint32_t fuzz_bits(float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    return bits;
}
FUZZ_FN float fuzz_from_bits(uint32_t bits) {
    float v;
    memcpy(&v, &bits, 4);
    return v;
}
FUZZ_FN int fuzz_is_finite(float v) { return (fuzz_bits(v) & 0x7f800000u) != 0x7f800000u; }

enum {
    FUZZ_MODERATE, /* most are small, a few larger; below 8 */
    FUZZ_GRID,     /* multiples of 1/16 below 8: sums of many are exact */
    FUZZ_SPARSE,   /* the same, and most are zero */
    FUZZ_TIES,     /* a few magnitudes */
    FUZZ_SPIKES,   /* a few large ones, and a small rest */
    FUZZ_TINY,     /* denormals and zeros of both signs */
    FUZZ_HUGE,     /* up to the largest float */
    FUZZ_ANY,      /* any finite float */
    FUZZ_STYLES
};
FUZZ_FN float fuzz_value(uint32_t style, uint32_t r) {
    const float unit = (float)(r >> 8) / (float)(1 << 24) - 0.5f;
    switch (style) {
    case FUZZ_MODERATE: return 64.0f * unit * unit * unit;
    case FUZZ_GRID: return (float)(int)(r >> 24) / 16.0f - 8.0f;
    case FUZZ_SPARSE: return r % 11 ? 0.0f : (float)(int)(r >> 24) / 16.0f - 8.0f;
    case FUZZ_TIES: return (r & 64 ? -1.0f : 1.0f) * (float)(1 + (r >> 8) % 3);
    case FUZZ_SPIKES: return r % 37 ? 1e-4f * unit : (r & 64 ? -3.0f : 3.0f);
    case FUZZ_TINY: return fuzz_from_bits((r & 0x80000000u) | (r % 3 ? r >> 9 : 0));
    case FUZZ_HUGE: return fuzz_from_bits((r & 0x80000000u) | (r % 5 ? 0x7f000000u : 0x7d000000u) | (r >> 9));
    default: return fuzz_from_bits((r & 0x7f800000u) == 0x7f800000u ? r ^ 0x40000000u : r);
    }
}
FUZZ_FN void fuzz_fill(float *x, size_t n, uint32_t style, uint64_t dice) {
    for (size_t i = 0; i < n; i++) {
        const float v = fuzz_value(style, fuzz_dice(&dice));
        memcpy((char *)x + 4 * i, &v, 4); /* x may have any alignment */
    }
}
FUZZ_FN float fuzz_wrong(uint32_t r) { return fuzz_from_bits(r % 3 ? 0x7f800000u | (r << 31) : 0x7fc00000u); }

/* ---- operators ---- */

/* In the texts below: r a ratio, b bits, s a size, w workers, l levels, v a value; what follows % is replaced. */
static const char *const fuzz_stages[5][32] = { { "randk:%r", "randk:%r:unscaled", "randk:k=%s", "permk:%w",
                                                    "permk:%w:unscaled", "", "", "", "", "" },
    { "rotate:1", "rotate:2", "dct", "", "", "" },
    { "topk:%r", "topk:k=%s", "threshold:%v", "dgc:%r", "mstopk:%r", "mstopk:k=%s", "sidco:%r", "wangni:%r",
        "wangnivar:%v", "bins:%s", "sides:%r", "side:%r", "chunked:%s:%r", "blocks:%s", "given", "variance:%v", "", "",
        "", "", "" },
    { "f16", "bf16", "sign", "efsign", "absmax:%b:%s", "absmax:%b:%s:nearest", "minmax:%b:%s", "minmax:%b:%s:norm",
        "terngrad", "terngrad:nearest:clip", "levels:%l", "levels:%l:%s:max", "flexpoint:%b:%s", "flex16:%s",
        "trits:1.%s", "strom:%v", "onebit:%s", "mean", "natural", "dither:%b:%s", "dynamic8:%s", "e4m3:%s", "e5m2:%s",
        "mxfp4", "nf4:%s", "lloyd:%b", "rate:%v", "rate:%v:unbiased", "step:%v", "step:%v:unbiased", "", "" },
    { "eliasfano", "bitmap", "golomb", "gamma", "delta", "omega", "huffman", "quartic", "golomb|huffman",
        "golomb|omega", "bitmap|huffman", "", "", "", "", "", "" } };

FUZZ_FN size_t fuzz_stage_text(fuzz_input *in, const char *form, char *text, size_t cap) {
    static const unsigned sizes[] = { 1, 2, 3, 7, 16, 32, 64, 100, 512, 2048, 70000 };
    size_t len = 0;
    text[0] = 0;
    for (; *form && len + 24 < cap; form++) {
        if (*form != '%') {
            text[len++] = *form;
            text[len] = 0;
            continue;
        }
        switch (*++form) {
        case 'r': len += (size_t)snprintf(text + len, cap - len, "%.4f", (1.0 + fuzz_byte(in)) / 256.0); break;
        case 'b': len += (size_t)snprintf(text + len, cap - len, "%u", 1 + fuzz_below(in, 8)); break;
        case 's': len += (size_t)snprintf(text + len, cap - len, "%u", sizes[fuzz_below(in, 11)]); break;
        case 'w': len += (size_t)snprintf(text + len, cap - len, "%u", 1 + fuzz_below(in, 5)); break;
        case 'l': len += (size_t)snprintf(text + len, cap - len, "%u", 1 + fuzz_below(in, 127)); break;
        default: len += (size_t)snprintf(text + len, cap - len, "%.4g", (double)(1 + fuzz_byte(in)) * 0.02);
        }
    }
    return len;
}
/* A legal operator for n values: a matrix, or a row of stages that go together. */
FUZZ_FN cg_op fuzz_op(fuzz_input *in, size_t n) {
    char whole[256] = "", longer[512], stage[96];
    cg_op op = cg_dense(), tried;
    if (n && fuzz_byte(in) % 16 == 0) {
        uint32_t rows = 1 + fuzz_below(in, 64);
        const int r = 1 + (int)fuzz_below(in, 9), atomo = (int)fuzz_below(in, 2);
        while (n % rows) rows--;
        op = atomo ? cg_atomo(rows, (uint32_t)(n / rows), r) : cg_lowrank(rows, (uint32_t)(n / rows), r);
        return op;
    }
    for (int slot = 0; slot < 5; slot++) {
        uint32_t many = 0;
        while (many < 32 && fuzz_stages[slot][many]) many++;
        fuzz_stage_text(in, fuzz_stages[slot][fuzz_below(in, many)], stage, sizeof stage);
        if (!stage[0]) continue;
        snprintf(longer, sizeof longer, "%s%s%s", whole, whole[0] ? "|" : "", stage);
        if (strlen(longer) >= sizeof whole || cg_op_parse(&tried, longer) != CG_OK) continue;
        strcpy(whole, longer);
        op = tried;
    }
    return op;
}
FUZZ_FN int fuzz_same_op(const cg_op *a, const cg_op *b) { /* no padding in a cg_op */
    return !memcmp(a, b, sizeof *a);
}

/* ---- packets ---- */

FUZZ_FN uint64_t fuzz_load(const unsigned char *p, int bytes) {
    uint64_t v = 0;
    while (bytes--) v = v << 8 | p[bytes];
    return v;
}
FUZZ_FN void fuzz_store(unsigned char *p, int bytes, uint64_t v) {
    for (int i = 0; i < bytes; i++) p[i] = (unsigned char)(v >> 8 * i);
}
/* The checksum that the first len bytes should have: the sum of all words, and the sum of its prefix sums. */
FUZZ_FN void fuzz_seal_at(unsigned char *p, size_t len, size_t at) {
    uint64_t sums[2] = { 0, 0 };
    if (len < at + 16) return;
    memset(p + at, 0, 16);
    for (size_t i = 0; i + 4 <= len; i += 4) sums[0] += fuzz_load(p + i, 4), sums[1] += sums[0];
    fuzz_store(p + at, 8, sums[0]);
    fuzz_store(p + at + 8, 8, sums[1]);
}
FUZZ_FN void fuzz_seal(unsigned char *packet, size_t len) { fuzz_seal_at(packet, len, CG_HEADER_BYTES - 16); }

/* The fields of a header, by their place and length. */
static const struct fuzz_field {
    unsigned char at, bytes;
} fuzz_fields[] = { { 5, 1 }, { 80, 8 }, { 88, 8 }, { 96, 8 }, { 104, 8 }, { 112, 8 }, { 120, 4 }, { 124, 4 },
    { 128, 8 }, { 136, 8 }, { 144, 4 }, { 8, 1 }, { 9, 1 }, { 10, 2 }, { 12, 4 }, { 16, 4 }, { 20, 1 }, { 21, 1 },
    { 22, 2 }, { 24, 4 }, { 28, 4 }, { 32, 1 }, { 33, 1 }, { 34, 2 }, { 36, 4 }, { 40, 4 }, { 44, 1 }, { 45, 1 },
    { 46, 2 }, { 48, 4 }, { 52, 4 }, { 56, 1 }, { 57, 1 }, { 58, 2 }, { 60, 4 }, { 64, 4 }, { 68, 1 }, { 72, 4 },
    { 6, 2 }, { 148, 4 } };
enum { FUZZ_FIELDS = (int)(sizeof fuzz_fields / sizeof fuzz_fields[0]) };

FUZZ_FN uint64_t fuzz_interesting(uint64_t old, uint64_t *dice) {
    static const uint64_t some[] = { 0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 1023, 1024, 2047,
        2048, 4095, 4096, 65535, 65536, 0x7fffffff, 0x80000000, 0xffffffff, 0x3f800000, 0x7f7fffff, 0x7f800000,
        0x7fc00000, 0x00000001, 0x00800000, 0xff800000, 0x3f000000, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000,
        0xffffffffffffffff };
    switch (fuzz_roll(dice, 8)) {
    case 0: return old + 1;
    case 1: return old - 1;
    case 2: return old * 2;
    case 3: return old / 2;
    case 4: return old ^ (uint64_t)1 << fuzz_roll(dice, 64);
    case 5: return fuzz_dice(dice);
    default: return some[fuzz_roll(dice, sizeof some / sizeof some[0])];
    }
}
/* Changes one field of a packet, one word of its sections, or the length of a section together with the bytes that are
   in it. Returns the new length, at most cap. What the checksum says is no longer true. */
FUZZ_FN size_t fuzz_packet_mutate(unsigned char *p, size_t len, size_t cap, uint64_t *dice) {
    const struct fuzz_field *f = &fuzz_fields[fuzz_roll(dice, FUZZ_FIELDS)];
    const size_t body = len > CG_HEADER_BYTES ? len - CG_HEADER_BYTES : 0;
    size_t at = body >= 4 ? CG_HEADER_BYTES + 4 * (size_t)fuzz_roll(dice, (uint32_t)(body / 4)) : 0;
    const uint32_t how = fuzz_roll(dice, 16);
    if (len < CG_HEADER_BYTES || at + 4 > len) return len;
    if (how < 7 || !at) {
        fuzz_store(p + f->at, f->bytes, fuzz_interesting(fuzz_load(p + f->at, f->bytes), dice));
    } else if (how < 9) {
        fuzz_store(p + at, 4, fuzz_interesting(fuzz_load(p + at, 4), dice));
    } else if (how < 11) {
        p[at + fuzz_roll(dice, 4)] ^= (unsigned char)(1u << fuzz_roll(dice, 8));
    } else if (how < 12) {
        memset(p + at, fuzz_roll(dice, 2) ? 0 : 255, len - at < 32 ? len - at : 32);
    } else if (how < 13) {
        memmove(p + at, p + CG_HEADER_BYTES, len - at < 16 ? len - at : 16);
    } else { /* a word more or less in one of the sections */
        const unsigned field = fuzz_roll(dice, 2) ? 128 : 136;
        const uint64_t bytes = fuzz_load(p + field, 8);
        if (fuzz_roll(dice, 2) && len < cap && cap - len >= 4) {
            memmove(p + at + 4, p + at, len - at);
            fuzz_store(p + field, 8, bytes + 4);
            return len + 4;
        }
        if (bytes < 4) return len;
        memmove(p + at, p + at + 4, len - at - 4);
        fuzz_store(p + field, 8, bytes - 4);
        return len - 4;
    }
    return len;
}

/* ---- running ---- */

#ifndef FUZZ_SEEDS
#  define FUZZ_SEEDS 256
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
FUZZ_FN size_t fuzz_fresh(uint32_t which, uint64_t *dice, uint8_t *out, size_t cap);

#ifdef FUZZ_MAIN
#  ifndef FUZZ_OWN_MAIN
int main(int argc, char **argv) {
    static uint8_t data[1 << 14];
    const long rounds = argc > 1 ? atol(argv[1]) : 0;
    uint64_t dice = 1;
    if (argc < 2) {
        fprintf(stderr, "usage: fuzz ROUNDS\n");
        return 2;
    }
    for (long i = 0; i < rounds; i++) LLVMFuzzerTestOneInput(data, fuzz_fresh((uint32_t)i, &dice, data, sizeof data));
    printf("%ld inputs\n", rounds);
    return 0;
}
#  endif
#else
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    static uint8_t data[1 << 14];
    uint64_t dice = 1;
    for (int a = 1; a < *argc; a++) {
        if ((*argv)[a][0] == '-') continue;
        for (uint32_t i = 0; i < FUZZ_SEEDS; i++) { /* if it is a folder */
            char path[512];
            const size_t len = fuzz_fresh(i, &dice, data, sizeof data);
            snprintf(path, sizeof path, "%s/fresh-%03u", (*argv)[a], i);
            FILE *f = len ? fopen(path, "wb") : NULL;
            if (!f) continue;
            fwrite(data, 1, len, f);
            fclose(f);
        }
        break; /* the first is where libFuzzer writes, too */
    }
    return 0;
}
#endif

#endif
