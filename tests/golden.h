/* What golden.c and the programs in build/ share: the operators, their input and a hash. Integers
   only, so that no compiler option and no floating-point environment can change the input. */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct golden_case { const char *op; size_t n; } golden_case;

enum { GOLDEN_N = 1003, GOLDEN_MAX = 70001 };   /* the second crosses a block of 65536 */

static const golden_case golden_cases[] = {
    { "dense", GOLDEN_N }, { "f16", GOLDEN_N }, { "bf16", GOLDEN_N }, { "sign", GOLDEN_N }, { "efsign", GOLDEN_N },
    { "terngrad", GOLDEN_N }, { "terngrad:nearest", GOLDEN_N },
    { "absmax:1:64", GOLDEN_N }, { "absmax:2:64", GOLDEN_N }, { "absmax:3:100", GOLDEN_N },
    { "absmax:4:512:nearest", GOLDEN_N }, { "absmax:5:7", GOLDEN_N }, { "absmax:8:64", GOLDEN_N },
    { "minmax:1:64", GOLDEN_N }, { "minmax:4:64", GOLDEN_N }, { "minmax:6:1000000:nearest", GOLDEN_N },
    { "minmax:7:33", GOLDEN_N }, { "minmax:8:128:nearest", GOLDEN_N },
    { "topk:0.01", GOLDEN_N }, { "topk:0.1", GOLDEN_N }, { "topk:0.5", GOLDEN_N }, { "topk:1", GOLDEN_N },
    { "topk:0.5|eliasfano", GOLDEN_N }, { "topk:0.01|bitmap", GOLDEN_N }, { "topk:0.05|f16", GOLDEN_N },
    { "topk:k=17|efsign", GOLDEN_N }, { "topk:0.3|absmax:4:64|bitmap", GOLDEN_N },
    { "threshold:0.25", GOLDEN_N }, { "threshold:0.01|sign", GOLDEN_N }, { "threshold:3.4e38", GOLDEN_N },
    { "randk:0.1", GOLDEN_N }, { "randk:0.1:unscaled", GOLDEN_N }, { "randk:k=77|minmax:3:32:nearest", GOLDEN_N },
    { "randk:0.5|topk:0.1|absmax:4:64", GOLDEN_N }, { "randk:0.7:unscaled|threshold:0.05|terngrad", GOLDEN_N },
    { "dense", 0 }, { "topk:0.01|absmax:4:512", 0 }, { "topk:0.01|f16", 1 }, { "minmax:2:16", 1 },
    { "absmax:1:512", GOLDEN_MAX }, { "efsign", GOLDEN_MAX }, { "terngrad", GOLDEN_MAX }, { "topk:0.01", GOLDEN_MAX },
    { "randk:0.05|absmax:4:512", GOLDEN_MAX }
};
enum { GOLDEN_CASES = (int)(sizeof golden_cases / sizeof golden_cases[0]) };

/* Magnitudes 2^-10 to 2^-2; a vector of GOLDEN_N also has huge ones, denormals, zeros and ties. */
static inline void golden_fill(float *x, size_t n) {
    uint64_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t r = (uint32_t)(state >> 32), sign = r & 0x80000000u, exponent = 117 + (r >> 23 & 7), mantissa = r & 0x7fffff;
        if (n == GOLDEN_N) {
            if (i < 32) exponent += 130;                                          /* to the last finite one */
            else if (i >= 128 && i < 256) exponent = 0;                           /* denormals */
            else if (i >= 256 && i < 300) exponent = 0, mantissa = 0;             /* zeros of both signs */
            else if (i >= 400 && i < 600) exponent = 128, mantissa = (r & 1) << 22;   /* 2 and 3: ties for top-k */
        }
        uint32_t bits = sign | exponent << 23 | mantissa;
        memcpy(x + i, &bits, 4);
    }
}

static inline uint64_t golden_hash(const void *data, size_t bytes) {             /* FNV-1a */
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++) h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return h;
}

static inline uint64_t golden_hash_floats(const float *y, size_t n) {            /* the same in either byte order */
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, y + i, 4);
        h = (h ^ bits) * 1099511628211u;
    }
    return h;
}

#endif
