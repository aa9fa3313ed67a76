/* 16-bit floats: every half there and back, every rounding case, against double arithmetic. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"

typedef struct format {
    void (*from)(const float *, size_t, uint16_t *);
    void (*to)(const uint16_t *, size_t, float *);
    uint16_t (*ref_to)(float);
    float (*ref_from)(uint16_t);
    unsigned inf, max; /* the bits of Inf, and of the largest finite value */
} format;

static const format FORMATS[] = { { cg_f16_from_f32, cg_f16_to_f32, ref_to_f16, ref_from_f16, 0x7c00, 0x7bff },
    { cg_bf16_from_f32, cg_bf16_to_f32, ref_to_bf16, ref_from_bf16, 0x7f80, 0x7f7f } };

TEST all_halves(const format *f) {
    static uint16_t h[65536], back[65536];
    static float x[65536];
    unsigned i;
    for (i = 0; i < 65536; i++) h[i] = (uint16_t)i;
    f->to(h, 65536, x);
    f->from(x, 65536, back);
    for (i = 0; i < 65536; i++) {
        unsigned mag = i & 0x7fff;
        if (mag > f->inf) { /* NaN stays NaN, with its sign */
            ASSERT(ref_mag(x[i]) > 0x7f800000u);
            ASSERT((back[i] & 0x7fffu) > f->inf && back[i] >> 15 == (int)(i >> 15));
        } else {
            uint32_t want = mag == f->inf ? 0x7f800000u | (i >> 15) << 31 : ref_bits(f->ref_from(h[i]));
            ASSERT_EQ_FMT(want, ref_bits(x[i]), "%08x");
            ASSERT_EQ_FMT(i, (unsigned)back[i], "%04x");
        }
    }
    PASS();
}

static uint16_t one(const format *f, float x) {
    uint16_t h;
    f->from(&x, 1, &h);
    return h;
}

/* Around every half: itself, the tie above it, and the floats next to that tie. */
TEST ties_and_neighbours(const format *f) {
    unsigned i;
    for (i = 0; i < f->max; i++) {
        float a = f->ref_from((uint16_t)i), b = f->ref_from((uint16_t)(i + 1));
        uint32_t mid = ref_bits((float)(((double)a + (double)b) / 2)), u;
        for (u = mid - (mid > 0); u <= mid + 1; u++) {
            float x = ref_float(u);
            ASSERT_EQ_FMT((unsigned)f->ref_to(x), (unsigned)one(f, x), "%04x");
            ASSERT_EQ_FMT((unsigned)f->ref_to(-x), (unsigned)one(f, -x), "%04x");
        }
        /* ... and the reference itself against the definition: a tie goes to the even one */
        if ((double)ref_float(mid) == ((double)a + (double)b) / 2)
            ASSERT_EQ_FMT(i + (i & 1), (unsigned)one(f, ref_float(mid)), "%04x");
    }
    PASS();
}

TEST saturation(const format *f) {
    float top = f->ref_from((uint16_t)f->max);
    uint32_t u;
    for (u = ref_bits(top); u < 0x7f800000u; u += 0x7fff < 0x7f800000u - u ? 0x7fff : 1) {
        ASSERT_EQ_FMT(f->max, (unsigned)one(f, ref_float(u)), "%04x");
        ASSERT_EQ_FMT(f->max | 0x8000u, (unsigned)one(f, -ref_float(u)), "%04x");
    }
    ASSERT_EQ_FMT(f->inf, (unsigned)one(f, ref_float(0x7f800000u)), "%04x");
    ASSERT_EQ_FMT(f->inf | 0x8000u, (unsigned)one(f, ref_float(0xff800000u)), "%04x");
    ASSERT((one(f, ref_float(0x7fc00000u)) & 0x7fffu) > f->inf);
    ASSERT((one(f, ref_float(0x7f800001u)) & 0x7fffu) > f->inf); /* its payload is all in the lost bits */
    ASSERT((one(f, ref_float(0xffbfffffu)) & 0x7fffu) > f->inf);
    PASS();
}

TEST random_floats(const format *f) {
    enum { N = 1000 };
    uint64_t state = 9;
    float x[N];
    uint16_t h[N];
    int round, i;
    for (round = 0; round < 2000; round++) {
        for (i = 0; i < N; i++) {
            uint32_t u = ref_rand(&state);
            x[i] = ref_float((u & 0x7f800000u) == 0x7f800000u ? u & 0x807fffffu : u);
        }
        f->from(x, N, h);
        for (i = 0; i < N; i++) ASSERT_EQ_FMT((unsigned)f->ref_to(x[i]), (unsigned)h[i], "%04x");
    }
    PASS();
}

/* Every length and alignment, nothing beyond n written, both directions, on every ISA. */
TEST lengths(const format *f, cg_isa isa) {
    static unsigned char in[4 * 300], out[4 * 300];
    size_t n, a, i;
    ASSERT_ENUM_EQ(CG_OK, cg_isa_force(isa), ops_status);
    for (n = 0; n <= 70; n++)
        for (a = 0; a < 16; a++) {
            uint64_t state = n * 16 + a;
            for (i = 0; i < n; i++) {
                float x = ref_sample(i % 3 ? REF_GAUSSIAN : REF_DENORMALS, i, n, &state);
                memcpy(in + a + 4 * i, &x, 4);
            }
            memset(out, 0xEE, sizeof out);
            f->from((const float *)(const void *)(in + a), n, (uint16_t *)(void *)(out + (a * 7) % 16));
            for (i = 0; i < n; i++) {
                float x;
                uint16_t h;
                memcpy(&x, in + a + 4 * i, 4);
                memcpy(&h, out + (a * 7) % 16 + 2 * i, 2);
                ASSERT_EQ_FMT((unsigned)f->ref_to(x), (unsigned)h, "%04x");
            }
            ASSERT_EQ_FMT(0xEEu, (unsigned)out[(a * 7) % 16 + 2 * n], "%02x");
            memcpy(in, out, sizeof in);
            memset(out, 0xEE, sizeof out);
            f->to((const uint16_t *)(const void *)(in + (a * 7) % 16), n, (float *)(void *)(out + a));
            for (i = 0; i < n; i++) {
                float x;
                uint16_t h;
                memcpy(&h, in + (a * 7) % 16 + 2 * i, 2);
                memcpy(&x, out + a + 4 * i, 4);
                ASSERT_EQ_FMT(ref_bits(f->ref_from(h)), ref_bits(x), "%08x");
            }
            ASSERT_EQ_FMT(0xEEu, (unsigned)out[a + 4 * n], "%02x");
        }
    PASS();
}

SUITE(half) {
    int i, isa;
    for (i = 0; i < 2; i++) {
        for (isa = CG_ISA_AUTO; isa <= CG_ISA_WASM; isa++) {
            if (isa != CG_ISA_AUTO && !cg_isa_found((cg_isa)isa)) continue;
            if (cg_isa_force((cg_isa)isa) != CG_OK) continue;
            RUN_TEST1(all_halves, &FORMATS[i]);
            RUN_TEST1(random_floats, &FORMATS[i]);
            RUN_TEST1(ties_and_neighbours, &FORMATS[i]);
            RUN_TEST1(saturation, &FORMATS[i]);
            RUN_TESTp(lengths, &FORMATS[i], (cg_isa)isa);
        }
        if (cg_isa_force(CG_ISA_AUTO) != CG_OK) abort();
    }
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(half);
    GREATEST_MAIN_END();
}
