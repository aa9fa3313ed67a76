/* cc -O2 -I. examples/custom_codec.c -o custom_codec && ./custom_codec

   A quantizer of your own, in the same packets as the built-in ones: every value becomes the power of two
   nearest to it, one byte each. Alone, and behind a selection that knows nothing of it. */

#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the codec: byte = sign in bit 7, below it 0 for zero or else exponent + 64 - offset ---- */

enum { POWER_OF_TWO = 128 }; /* an id of ours; arg is the offset, how far the exponents are moved down */

static size_t p2_bound(const cg_codec *self, const cg_stage *stage, size_t n) {
    (void)self;
    return stage->arg > 60 ? 0 : n; /* 0 says: bad parameters */
}

static cg_status p2_compress(const cg_codec *self, const cg_stage *stage, const cg_tag *tag, const float *x, size_t n,
    void *out, size_t cap, size_t *len) {
    unsigned char *byte = (unsigned char *)out;
    size_t i;
    (void)self;
    (void)tag; /* the place to draw random bits from, for unbiased rounding */
    if (cap < n) return CG_E_CAPACITY;
    for (i = 0; i < n; i++) {
        uint32_t u;
        int e;
        memcpy(&u, &x[i], 4);
        e = (int)(((u & 0x7fffffffu) + 0x400000u) >> 23) - 127 + 64 + stage->arg; /* half a mantissa rounds up */
        e = e < 0 ? 0 : e > 127 ? 127 : e;
        byte[i] = (unsigned char)((u >> 31 << 7) | (unsigned)e);
    }
    *len = n;
    return CG_OK;
}

/* Packets come from strangers: whatever the bytes are, stay inside them and produce finite values. */
static cg_status p2_decode(const cg_codec *self, const cg_stage *stage, const void *in, size_t len, size_t n,
    size_t first, size_t count, float *out) {
    const unsigned char *byte = (const unsigned char *)in;
    size_t i;
    (void)self;
    if (stage->arg > 60 || len < n || first > n || count > n - first) return CG_E_CORRUPT;
    for (i = 0; i < count; i++) {
        uint32_t code = byte[first + i], e = code & 127u;
        uint32_t u = e ? (code >> 7 << 31) | (e + 63u - stage->arg) << 23 : 0;
        memcpy(&out[i], &u, 4);
    }
    return CG_OK;
}

static const cg_codec power_of_two = { POWER_OF_TWO, p2_bound, p2_compress, p2_decode, NULL };
static const cg_codec *const codecs[] = { &power_of_two };

/* ---- its use ---- */

#define N 100000
static float x[N], y[N];

static int show(const char *name, cg_op op, double worst) {
    cg_extra side = CG_ZERO;
    cg_tag tag = { 42, 0, 0, 0 };
    size_t cap, room = cg_scratch(&op, N), len = 0, i;
    void *packet, *scratch;
    double error = 0, kept = 0;
    cg_status s;

    side.codecs = codecs;
    side.codec_count = 1;
    cap = cg_bound_with(&op, &side, N);
    packet = malloc(cap ? cap : 1);
    scratch = malloc(room ? room : 1);
    if (!cap || !packet || !scratch) return 1;

    s = cg_compress_with(&op, &tag, &side, x, N, packet, cap, &len, scratch, room);
    if (s == CG_OK) s = cg_decode(&side, packet, len, 1.0f, 0.0f, y, N);
    if (s != CG_OK) {
        fprintf(stderr, "%s: %s\n", name, cg_status_str(s));
        return 1;
    }
    for (i = 0; i < N; i++) {
        if (y[i] != 0)
            error += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]), kept += (double)x[i] * (double)x[i];
    }
    printf("%-24s %7lu bytes, %6.3f bits per element, error on the values sent %.2f %%\n", name, (unsigned long)len,
        8.0 * (double)len / N, 100 * error / kept);

    /* Somebody without the codec is told so, and nothing else happens. */
    s = cg_decompress(packet, len, y, N);
    free(packet);
    free(scratch);
    return s == CG_E_VERSION && error < worst * kept ? 0 : 1;
}

int main(void) {
    const cg_op mine = cg_user(POWER_OF_TWO, 10, 0, 0.0f);
    uint32_t r = 1;
    int i, failed;
    for (i = 0; i < N; i++) {
        float u, v;
        r = r * 1664525u + 1013904223u, u = (float)(r >> 8) / 16777216.0f - 0.5f;
        r = r * 1664525u + 1013904223u, v = (float)(r >> 8) / 16777216.0f;
        x[i] = u * v * v * v; /* many small, few large */
    }
    printf("A quantizer of this program's own, a byte for each of %d values, in packets of compgrad.\n", N);
    failed = show("alone", mine, 0.1);
    failed |= show("after top-k", cg_then(cg_topk(0.01f), mine), 0.1);
    failed |= show("after random-k, top-k", cg_then(cg_then(cg_unscaled(cg_randk(0.1f)), cg_topk(0.1f)), mine), 0.1);
    return failed;
}
