/* clang -g -O1 -I. -Itests -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_decode.c -o fuzz && ./fuzz CORPUS
   cc -g -O1 -I. -Itests -DFUZZ_MAIN tests/fuzz/fuzz_decode.c -o fuzz && ./fuzz 100000

   Any bytes at all as a packet: the checksum is made right first, since it is not what makes decoding
   safe. Then everything that reads a packet must refuse it, leaving y as it was, or give finite values;
   the flags, the ISAs and cg_inspect must agree. So must cg_reduce and cg_vote of two such packets, and a
   packet as the support of others. The packets are those of golden.h and of other rows of stages, with fields of
   their headers, words and lengths of their sections changed; the second form does so the same way every time. */

#define FUZZ_OWN_MAIN
#define FUZZ_SEEDS 512
#define COMPGRAD_IMPLEMENTATION
#include "fuzz.h"

#ifdef FUZZ_MAIN
enum { MAX_N = 1 << 17, GUARD = 16 }; /* two blocks of 65536; longer vectors are only refused */
#else
enum { MAX_N = 1 << 12, GUARD = 16 }; /* two chunks of 2048: libFuzzer lives on speed */
#endif
enum { MOST = 1 << 24 }; /* bytes given for a sum of packets; more is not tried */
static const float canary = -12345.625f;
static const cg_tag tag = { 0x0123456789abcdefu, 1000000007u, 42, 3 };
static float y[MAX_N + 1 + 2 * GUARD], first[MAX_N + 1], before[MAX_N + 1];
static unsigned char support[1 << 17]; /* what cg_given of golden.h means, for n == support_n */
static size_t support_len, support_n;

/* A codec of the user's, so that its packets are fuzzed too: one byte per value. */
static size_t byte_bound(const cg_codec *self, const cg_stage *stage, size_t n) {
    (void)self, (void)stage;
    return n + 1;
}
static cg_status byte_decode(const cg_codec *self, const cg_stage *stage, const void *in, size_t len, size_t n,
    size_t from, size_t count, float *out) {
    (void)self, (void)stage;
    if (len != n) return CG_E_CORRUPT;
    for (size_t i = 0; i < count; i++) out[i] = (float)((const unsigned char *)in)[from + i];
    return CG_OK;
}
static const cg_codec byte_codec = { 128, byte_bound, NULL, byte_decode, NULL };
static const cg_codec *const codecs[] = { &byte_codec };

static void prepare(size_t n) {
    if (before[0] < 1)
        for (size_t i = 0; i <= MAX_N; i++) before[i] = (float)(i % 7) + 1;
    for (size_t i = 0; i < GUARD; i++) y[i] = y[GUARD + n + i] = canary;
    memcpy(y + GUARD, before, n * sizeof *y);
}

static void guarded(size_t n) {
    for (size_t i = 0; i < GUARD; i++)
        MUST(fuzz_bits(y[i]) == fuzz_bits(canary) && fuzz_bits(y[GUARD + n + i]) == fuzz_bits(canary));
}

/* Golden packets that say where their values are by another packet need that one. */
static void prepare_support(size_t n) {
    static float x[MAX_N + 1];
    cg_op given = cg_given();
    cg_extra side;
    if ((n != GOLDEN_N && n != GOLDEN_MILD) || n == support_n) return;
    golden_fill(x, n);
    MUST(golden_side(&given, &tag, x, n, &side) == 0 && side.support_len <= sizeof support);
    memcpy(support, side.support, side.support_len);
    support_len = side.support_len, support_n = n;
    golden_side_done(&side);
}

static cg_extra side_for(size_t n, uint32_t flags) {
    cg_extra side = CG_ZERO;
    prepare_support(n);
    side.codecs = codecs, side.codec_count = 1, side.flags = flags;
    if (n == support_n && support_len) side.support = support, side.support_len = support_len;
    return side;
}

/* Whatever cg_clear can follow can be a support: then y gets x there. */
static void as_support(const unsigned char *packet, size_t len, size_t n, cg_status cleared) {
    cg_op op = cg_given();
    cg_extra side = CG_ZERO;
    size_t cap = cg_bound(&op, n), bytes = cg_scratch(&op, n), made;
    void *out = malloc(cap + 1), *scratch = malloc(bytes + 1);
    side.support = packet, side.support_len = len;
    MUST(cap && out && scratch);
    cg_status s = cg_compress_with(&op, &tag, &side, before, n, out, cap, &made, scratch, bytes);
    if (cleared == CG_OK) MUST(s == CG_OK);
    else MUST(s != CG_OK);
    if (s == CG_OK) {
        MUST(cg_decode(&side, out, made, 1, 0, first, n) == CG_OK);
        prepare(n);
        MUST(cg_clear(packet, len, y + GUARD, n) == CG_OK);
        for (size_t i = 0; i < n; i++)
            MUST(fuzz_bits(first[i]) == (fuzz_bits(y[GUARD + i]) ? 0 : fuzz_bits(before[i])));
    }
    free(out);
    free(scratch);
}

static cg_status decode_into(const unsigned char *packet, size_t len, float *to, size_t n) {
    cg_extra side = side_for(n, 0);
    return cg_decode(&side, packet, len, 1, 0, to, n);
}

/* Some packets together: the same from every ISA, within what was planned, and what it says decodes to the sum of
   what they say. */
static void together(const unsigned char *const *packets, const size_t *lens, size_t count, size_t n, int all_good) {
    static float sum[MAX_N + 1];
    const void *parts[4];
    unsigned char *made[2] = { NULL, NULL };
    size_t bound, bytes, len[2] = { 0, 0 };
    cg_status plan, s[2];
    int runs = 0;
    cg_info info;
    for (size_t i = 0; i < count; i++) parts[i] = packets[i];
    plan = cg_reduce_plan(parts, lens, count, &bound, &bytes);
    if (plan == CG_OK && (bound > MOST || bytes > MOST)) return;
    if (plan != CG_OK) bound = 4096, bytes = 4096;
    for (int vote = 0; vote < 2; vote++, runs = 0) {
        for (int isa = CG_ISA_SCALAR; isa <= CG_ISA_WASM; isa++) {
            if (cg_isa_force((cg_isa)isa) != CG_OK) continue;
            int at = runs++ ? 1 : 0;
            void *scratch = malloc(bytes + 1);
            made[at] = (unsigned char *)malloc(bound); /* exactly */
            MUST(scratch && made[at]);
            s[at] = vote ? cg_vote(parts, lens, count, made[at], bound, &len[at])
                         : cg_reduce(parts, lens, count, made[at], bound, &len[at], scratch, bytes);
            MUST(s[at] == CG_OK ? len[at] >= CG_HEADER_BYTES && len[at] <= bound : len[at] == 0);
            MUST(s[at] == s[0] && len[at] == len[0] && !memcmp(made[at], made[0], len[0]));
            if (at) free(made[at]);
            free(scratch);
        }
        MUST(cg_isa_force(CG_ISA_AUTO) == CG_OK);
        if (plan != CG_OK) MUST(s[0] != CG_OK);
        else if (!vote && all_good) MUST(s[0] == CG_OK);
        if (s[0] == CG_OK) {
            MUST(cg_inspect(made[0], len[0], &info) == CG_OK && info.packet_bytes == len[0]);
            if (info.n == n && n <= MAX_N) {
                MUST(decode_into(made[0], len[0], sum, n) == CG_OK || info.op.select.id == CG_SELECT_GIVEN);
                for (size_t i = 0; all_good && i < n; i++) MUST((fuzz_bits(sum[i]) & 0x7f800000u) != 0x7f800000u);
                /* exactly, but for zeros' signs */
                if (!vote && all_good && !info.op.sample.id && !info.op.transform.id && !info.op.quantize.id &&
                    !info.segments) { /* segments may add as levels */
                    memset(first, 0, n * sizeof *first);
                    for (size_t p = 0; p < count; p++) {
                        MUST(decode_into(packets[p], lens[p], y + GUARD, n) == CG_OK);
                        for (size_t i = 0; i < n; i++) {
                            volatile float v = first[i] + y[GUARD + i];
                            first[i] = v > 3.402823466e+38f ? 3.402823466e+38f
                                : v < -3.402823466e+38f     ? -3.402823466e+38f
                                                            : v;
                        }
                    }
                    for (size_t i = 0; i < n; i++) MUST(!(first[i] < sum[i]) && !(first[i] > sum[i]));
                }
            }
        }
        free(made[0]);
    }
}

static void pair(const unsigned char *a, size_t a_len, const unsigned char *b, size_t b_len) {
    const unsigned char *packets[4];
    size_t lens[4], n = a_len >= CG_HEADER_BYTES ? (size_t)fuzz_load(a + 80, 8) : 5;
    int good[2];
    packets[0] = packets[2] = a, packets[1] = packets[3] = b;
    lens[0] = lens[2] = a_len, lens[1] = lens[3] = b_len;
    good[0] = n <= MAX_N && decode_into(a, a_len, y + GUARD, n) == CG_OK;
    good[1] = n <= MAX_N && decode_into(b, b_len, y + GUARD, n) == CG_OK;
    together(packets, lens, 1, n, good[0]);
    together(packets, lens, 2, n, good[0] && good[1]);
    together(packets, lens, 4, n, good[0] && good[1]);
}

static void attempt(const unsigned char *packet, size_t len, size_t n) {
    static const float alphas[] = { 1, 0.25f, -3 }, betas[] = { 0, 1, 0.5f };
    int form = len ? packet[len - 1] % 3 : 0, have = 0;
    cg_info info;
    cg_status seen = cg_inspect(packet, len, &info), truth = CG_OK, s;
    for (int isa = CG_ISA_SCALAR; isa <= CG_ISA_WASM; isa++) {
        if (cg_isa_force((cg_isa)isa) != CG_OK) continue;
        for (uint32_t flags = 0; flags <= CG_DECODE_DIRECT; flags++) {
            cg_extra side = side_for(n, flags);
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
        MUST(seen == CG_OK && info.n == n && info.packet_bytes == len &&
            (info.k <= info.drawn || info.op.transform.id || info.segments) && info.drawn <= info.n);
        prepare(n);
        s = cg_decompress(packet, len, y + GUARD, n); /* knows no codec and no support */
        MUST(s == CG_OK || (s == CG_E_VERSION && (info.op.quantize.id >= CG_QUANTIZE_USER || info.segments)) ||
            (s == CG_E_ARG && (info.op.select.id == CG_SELECT_GIVEN || info.segments)));
        for (size_t i = 0; s == CG_OK && i < n; i++) MUST((fuzz_bits(y[GUARD + i]) & 0x7f800000u) != 0x7f800000u);
    }
    prepare(n);
    s = cg_clear(packet, len, y + GUARD, n);
    guarded(n);
    uint64_t cleared = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = fuzz_bits(y[GUARD + i]);
        if (bits != fuzz_bits(before[i])) cleared++;
        MUST(bits == fuzz_bits(before[i]) || (bits == 0 && s == CG_OK));
    }
    for (size_t i = 0; truth == CG_OK && i < info.segments && i < 16; i++) { /* each says what it is by itself */
        unsigned char *one;
        size_t one_len;
        cg_info part;
        MUST(cg_segment_inspect(packet, len, i, &part, NULL) == CG_OK && part.packet_bytes <= len + CG_HEADER_BYTES);
        one = (unsigned char *)malloc(part.packet_bytes);
        if (!one) abort();
        cg_extra side = side_for(n, 0);
        if (cg_segment_copy(&side, packet, len, i, one, part.packet_bytes, &one_len) == CG_OK)
            MUST(one_len == part.packet_bytes && cg_inspect(one, one_len, &part) == CG_OK);
        else MUST(part.op.select.id == CG_SELECT_GIVEN || info.segments > 1);
        free(one);
    }
    if (truth == CG_OK && s == CG_OK && !info.segments) MUST(cleared == (info.op.transform.id ? info.drawn : info.k));
    if (truth == CG_OK && info.op.quantize.id < CG_QUANTIZE_USER && !info.segments)
        MUST(s == CG_OK || (s == CG_E_UNSUPPORTED && info.op.select.id == CG_SELECT_GIVEN));
    if (n <= MAX_N) as_support(packet, len, n, s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    unsigned char *packet = (unsigned char *)malloc(size + !size); /* exactly that long, for the sanitizer */
    uint64_t n = size >= CG_HEADER_BYTES ? fuzz_load(data + 80, 8) : 5;
    if (!packet) return 0;
    if (size) memcpy(packet, data, size);
    fuzz_seal(packet, size);
    attempt(packet, size, n <= MAX_N ? (size_t)n : 1000);
    size_t other = n < MAX_N ? (size_t)n + 1 : 7; /* and never into a vector of another length */
    prepare(other);
    MUST(cg_decompress(packet, size, y + GUARD, other) != CG_OK && !memcmp(y + GUARD, before, other * sizeof *y));
    MUST(cg_clear(packet, size, y + GUARD, other) != CG_OK && !memcmp(y + GUARD, before, other * sizeof *y));
    /* with one like it: another rank's, other bits in it */
    if (size >= CG_HEADER_BYTES) {
        unsigned char *like = (unsigned char *)malloc(size);
        uint64_t h = golden_hash(data, size);
        if (!like) abort();
        memcpy(like, data, size);
        like[124] ^= 1;
        for (int i = 0; size > CG_HEADER_BYTES && i < (int)(h & 3); i++)
            like[CG_HEADER_BYTES + (h >> 8 * i) % (size - CG_HEADER_BYTES)] ^=
                (unsigned char)(1 << (h >> (40 + 3 * i)) % 8);
        fuzz_seal(like, size);
        pair(packet, size, like, size);
        free(like);
    }
    free(packet);
    return 0;
}

/* x as a packet, at most cap bytes; 0: larger, or refused. */
static size_t pack(
    const cg_op *op, const cg_tag *by, const cg_extra *side, const float *x, size_t n, unsigned char *out, size_t cap) {
    size_t bound = cg_bound_with(op, side, n), bytes = cg_scratch_with(op, side, n), len = 0;
    unsigned char *packet = (unsigned char *)malloc(bound + 1);
    void *scratch = malloc(bytes + 1);
    cg_status s;
    MUST(bound && packet && scratch);
    s = cg_compress_with(op, by, side, x, n, packet, bound, &len, scratch, bytes);
    MUST(s == CG_OK || s == CG_E_ARG); /* of PermK, where this rank is none of the workers */
    if (len <= cap) memcpy(out, packet, len);
    else len = 0;
    free(packet);
    free(scratch);
    return len;
}
enum { ALL_GOLDEN = GOLDEN_CASES + GOLDEN_SEGMENTED };
/* A packet of golden.h. Scales that were agreed on are not known here: the others have all kinds of them. */
static size_t golden_packet(uint32_t which, uint32_t rank, unsigned char *out, size_t cap) {
    static float x[GOLDEN_MAX];
    const golden_case *c = which < GOLDEN_CASES ? &golden_cases[which] : &golden_segmented[which - GOLDEN_CASES];
    cg_tag by = tag;
    cg_extra side, cut_side = CG_ZERO;
    golden_cut cut;
    cg_op op;
    size_t len;
    if (c->n > MAX_N || c->n > GOLDEN_MAX) return 0;
    by.rank = rank;
    MUST(cg_op_parse(&op, golden_text(c->op, c->n, &cut, &cut_side)) == CG_OK);
    golden_fill(x, c->n);
    MUST(golden_side(&op, &tag, x, c->n, &side) == 0);
    side.segments = cut_side.segments;
    len = pack(&op, &by, &side, x, c->n, out, cap);
    golden_side_done(&side);
    return len;
}
/* A packet of some operator and values; which operator, the choices say. */
static size_t any_packet(const uint8_t *choices, size_t many, uint32_t rank, unsigned char *out, size_t cap) {
    static float x[600];
    fuzz_input in = { choices, many };
    const size_t n = fuzz_below(&in, 600);
    const uint32_t style = fuzz_below(&in, FUZZ_STYLES);
    const cg_op op = fuzz_op(&in, n);
    cg_tag by = tag;
    cg_extra side;
    size_t len;
    by.rank = rank;
    fuzz_fill(x, n, style, rank);
    MUST(golden_side(&op, &tag, x, n, &side) == 0);
    len = pack(&op, &by, &side, x, n, out, cap);
    golden_side_done(&side);
    return len;
}
static size_t fuzz_fresh(uint32_t which, uint64_t *dice, uint8_t *out, size_t cap) {
    uint8_t choices[32];
    if (which < ALL_GOLDEN) return golden_packet(which, 3, out, cap);
    fuzz_bytes(dice, choices, sizeof choices);
    return any_packet(choices, sizeof choices, 3, out, cap);
}

static size_t mutate(unsigned char *p, size_t len, size_t cap, uint64_t *dice) {
    const int segmented = len > CG_HEADER_BYTES && p[4] == 2;
    for (uint32_t times = 1 + fuzz_roll(dice, 3); times; times--) {
        const uint64_t table = len > CG_HEADER_BYTES ? fuzz_load(p + 136, 8) : 0;
        if (!segmented || !table || table > len - CG_HEADER_BYTES || fuzz_roll(dice, 3) == 0)
            len = fuzz_packet_mutate(p, len, cap, dice);
        else { /* a byte of the table of segments; or one more here and one less there, so that sums stay */
            unsigned char *at = p + len - table + fuzz_roll(dice, (uint32_t)table);
            const uint32_t way = fuzz_roll(dice, 4);
            *at = (unsigned char)(way == 0 ? fuzz_roll(dice, 256)
                    : way == 1             ? *at ^ (1u << fuzz_roll(dice, 8))
                                           : *at + 1u);
            at = p + len - table + fuzz_roll(dice, (uint32_t)table);
            if (way == 3) *at = (unsigned char)(*at - 1u);
        }
    }
    return len;
}

#ifndef FUZZ_MAIN
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
    uint64_t dice = seed;
    return size < CG_HEADER_BYTES || fuzz_roll(&dice, 4) == 0 ? LLVMFuzzerMutate(data, size, max)
                                                              : mutate(data, size, max, &dice);
}
#else
/* Half of the packets are golden ones; each is taken with one of another rank, with and without mutations. */
int main(int argc, char **argv) {
    static unsigned char packet[1 << 18], sibling[1 << 18];
    const long rounds = argc > 1 ? atol(argv[1]) : 0;
    uint64_t dice = 1;
    if (argc < 2) {
        fprintf(stderr, "usage: fuzz ROUNDS\n");
        return 2;
    }
    for (long r = 0; r < rounds; r++) {
        const uint32_t which = (uint32_t)(r / 2 % ALL_GOLDEN);
        uint8_t choices[32];
        size_t len, sibling_len;
        fuzz_bytes(&dice, choices, sizeof choices);
        if (r % 2) {
            len = golden_packet(which, 3, packet, sizeof packet);
            sibling_len = golden_packet(which, 2, sibling, sizeof sibling);
        } else {
            len = any_packet(choices, sizeof choices, 3, packet, sizeof packet);
            sibling_len = any_packet(choices, sizeof choices, 2, sibling, sizeof sibling);
        }
        if (r >= 2 * ALL_GOLDEN || r % 2 == 0) len = mutate(packet, len, sizeof packet, &dice);
        LLVMFuzzerTestOneInput(packet, len);
        if (r % 4 < 2) sibling_len = mutate(sibling, sibling_len, sizeof sibling, &dice);
        fuzz_seal(packet, len);
        fuzz_seal(sibling, sibling_len);
        pair(packet, len, sibling, sibling_len);
    }
    printf("%ld packets\n", rounds);
    return 0;
}
#endif
