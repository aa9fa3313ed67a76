/* clang -g -O1 -I. -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_decode.c -o fuzz && ./fuzz CORPUS
   cc -g -O1 -I. -DFUZZ_MAIN tests/fuzz/fuzz_decode.c -o fuzz && ./fuzz 100000 tests/golden/x.cgp ...

   Any bytes at all as a packet: the checksum is made right first, since it is not what makes decoding
   safe. Then everything that reads a packet must refuse it, leaving y as it was, or give finite values;
   the flags, the ISAs and cg_inspect must agree. The second form replays the files, then mutates them. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"

#ifdef FUZZ_MAIN
enum { MAX_N = 1 << 17, GUARD = 16 };        /* two blocks of 65536; longer vectors are only refused */
#else
enum { MAX_N = 1 << 12, GUARD = 16 };        /* two chunks of 2048: libFuzzer lives on speed */
#endif
#define MUST(c) do { if (!(c)) { fprintf(stderr, "line %d: %s\n", __LINE__, #c); abort(); } } while (0)

static const float canary = -12345.625f;
static float y[MAX_N + 1 + 2 * GUARD], first[MAX_N + 1], before[MAX_N + 1];

/* A codec of the user's, so that its packets are fuzzed too: one byte per value. */
static size_t byte_bound(const cg_codec *self, const cg_stage *stage, size_t n) { (void)self, (void)stage; return n + 1; }
static cg_status byte_decode(const cg_codec *self, const cg_stage *stage, const void *in, size_t len, size_t n,
                             size_t from, size_t count, float *out) {
    (void)self, (void)stage;
    if (len != n) return CG_E_CORRUPT;
    for (size_t i = 0; i < count; i++) out[i] = (float)((const unsigned char *)in)[from + i];
    return CG_OK;
}
static const cg_codec byte_codec = { 128, byte_bound, NULL, byte_decode, NULL };
static const cg_codec *const codecs[] = { &byte_codec };

static uint64_t load(const unsigned char *p, int bytes) {
    uint64_t v = 0;
    while (bytes--) v = v << 8 | p[bytes];
    return v;
}

static void fix_checksum(unsigned char *p, size_t len) {
    uint64_t sums[2] = { 0, 0 };
    if (len < CG_HEADER_BYTES) return;
    memset(p + 152, 0, 16);
    for (size_t i = 0; i + 4 <= len; i += 4) sums[0] += load(p + i, 4), sums[1] += sums[0];   /* sum of prefix sums = B */
    for (int i = 0; i < 16; i++) p[152 + i] = (unsigned char)(sums[i / 8] >> i % 8 * 8);
}

static uint32_t bits_of(float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    return bits;
}

static void prepare(size_t n) {
    if (before[0] < 1)
        for (size_t i = 0; i <= MAX_N; i++) before[i] = (float)(i % 7) + 1;
    for (size_t i = 0; i < GUARD; i++) y[i] = y[GUARD + n + i] = canary;
    memcpy(y + GUARD, before, n * sizeof *y);
}

static void guarded(size_t n) {
    for (size_t i = 0; i < GUARD; i++) MUST(bits_of(y[i]) == bits_of(canary) && bits_of(y[GUARD + n + i]) == bits_of(canary));
}

static void attempt(const unsigned char *packet, size_t len, size_t n) {
    static const float alphas[] = { 1, 0.25f, -3 }, betas[] = { 0, 1, 0.5f };
    int form = len ? packet[len - 1] % 3 : 0, have = 0;
    cg_info info;
    cg_status seen = cg_inspect(packet, len, &info), truth = CG_OK, s;
    for (int isa = CG_ISA_SCALAR; isa <= CG_ISA_NEON; isa++) {
        if (cg_isa_force((cg_isa)isa) != CG_OK) continue;
        for (uint32_t flags = 0; flags <= CG_DECODE_DIRECT; flags++) {
            cg_side side = CG_ZERO;
            side.codecs = codecs, side.codec_count = 1, side.flags = flags;
            prepare(n);
            s = cg_decode(&side, packet, len, alphas[form], betas[form], y + GUARD, n);
            guarded(n);
            if (!have) truth = s, memcpy(first, y + GUARD, n * sizeof *y);
            have = 1;
            MUST(s == truth);
            if (s == CG_OK) MUST(!memcmp(y + GUARD, first, n * sizeof *y));
            else if (!flags) MUST(!memcmp(y + GUARD, before, n * sizeof *y));
        }
    }
    MUST(cg_isa_force(CG_ISA_AUTO) == CG_OK);
    if (truth == CG_OK) {
        MUST(seen == CG_OK && info.n == n && info.packet_bytes == len && info.k <= info.drawn && info.drawn <= info.n);
        prepare(n);
        s = cg_decompress(packet, len, y + GUARD, n);         /* knows no codec, so may say CG_E_VERSION */
        MUST(s == CG_OK || (s == CG_E_VERSION && info.op.quantize.id >= CG_QUANTIZE_USER));
        for (size_t i = 0; s == CG_OK && i < n; i++) MUST((bits_of(y[GUARD + i]) & 0x7f800000u) != 0x7f800000u);
    }
    prepare(n);
    s = cg_clear(packet, len, y + GUARD, n);
    guarded(n);
    uint64_t cleared = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bits_of(y[GUARD + i]);
        if (bits != bits_of(before[i])) cleared++;
        MUST(bits == bits_of(before[i]) || (bits == 0 && s == CG_OK));
    }
    if (truth == CG_OK && s == CG_OK) MUST(cleared == info.k);
    if (truth == CG_OK && info.op.quantize.id < CG_QUANTIZE_USER) MUST(s == CG_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    unsigned char *packet = (unsigned char *)malloc(size + !size);      /* exactly that long, for the sanitizer */
    uint64_t n = size >= CG_HEADER_BYTES ? load(data + 80, 8) : 5;
    if (!packet) return 0;
    if (size) memcpy(packet, data, size);
    fix_checksum(packet, size);
    attempt(packet, size, n <= MAX_N ? (size_t)n : 1000);
    size_t other = n < MAX_N ? (size_t)n + 1 : 7;                       /* and never into a vector of another length */
    prepare(other);
    MUST(cg_decompress(packet, size, y + GUARD, other) != CG_OK && !memcmp(y + GUARD, before, other * sizeof *y));
    MUST(cg_clear(packet, size, y + GUARD, other) != CG_OK && !memcmp(y + GUARD, before, other * sizeof *y));
    free(packet);
    return 0;
}

#ifdef FUZZ_MAIN
static uint64_t state = 1;
static uint32_t below(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return n ? (uint32_t)(state >> 33) % n : 0;
}

static size_t mutate(unsigned char *p, size_t len, size_t cap) {
    static const unsigned char interesting[] = { 0, 1, 2, 4, 7, 8, 9, 16, 31, 32, 64, 127, 128, 129, 254, 255 };
    for (uint32_t times = 1 + below(4); times; times--) {
        uint32_t at = below(2) ? below((uint32_t)len) : below(len < 152 ? (uint32_t)len : 152);   /* half in the header */
        if (len == 0) return len;
        switch (below(8)) {
        case 0: case 1: p[at] ^= (unsigned char)(1u << below(8)); break;
        case 2: p[at] = interesting[below(sizeof interesting)]; break;
        case 3: p[at] = (unsigned char)(p[at] + below(2) * 2 - 1); break;
        case 4: p[at] = (unsigned char)below(256); break;
        case 5: memset(p + at, below(2) ? 0 : 255, len - at < 8 ? len - at : 8); break;
        case 6: p[at] = p[below((uint32_t)len)]; break;
        default:
            if (below(4)) break;
            if (below(2) && len + 4 <= cap) memset(p + len, 0, 4), len += 4;
            else len -= below((uint32_t)(len < 64 ? len : 64));
        }
    }
    return len;
}

int main(int argc, char **argv) {
    static unsigned char file[1 << 18], work[1 << 18];
    long rounds = argc > 1 ? atol(argv[1]) : 0;
    if (argc < 3) { fprintf(stderr, "usage: fuzz ROUNDS PACKET...\n"); return 2; }
    for (int a = 2; a < argc; a++) {
        FILE *f = fopen(argv[a], "rb");
        if (!f) { perror(argv[a]); return 1; }
        size_t len = fread(file, 1, sizeof file, f);
        fclose(f);
        LLVMFuzzerTestOneInput(file, len);
        for (long r = 0; r < rounds / (argc - 2); r++) {
            memcpy(work, file, len);
            LLVMFuzzerTestOneInput(work, mutate(work, len, sizeof work));
        }
    }
    printf("%ld mutations of %d packets\n", rounds, argc - 2);
    return 0;
}
#endif
