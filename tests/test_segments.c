/* Several tensors in one packet. What each of them becomes is compared, byte for byte, with the packet that a call of
   its own makes, for every operator of golden.h; what the whole decodes to, with the decoded packets of such calls.
   Then tables of segments: how long they are, and that no bytes at all make a decoder do anything but refuse or decode.
   Selections from all segments are compared with those from the vector without segments. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"
#include "greatest.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "tier.h"

enum { MOST = 24, GUARD = 64 };
static const cg_tag TAG = { UINT64_C(0x0123456789ABCDEF), 77, 5, 3 };
static char note[300];

#define EXPECT(cond)                                                             \
  do {                                                                           \
    if (!(cond)) {                                                               \
      snprintf(note, sizeof note, "%s, line %d: %s", text_now, __LINE__, #cond); \
      FAILm(note);                                                               \
    }                                                                            \
  } while (0)
static const char *text_now = "";
static cg_extra side_now;

static uint64_t dice = 1;
static uint32_t below(uint32_t n) {
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return n ? (uint32_t)(dice >> 33) % n : 0;
}
static void *take(size_t bytes) {
    void *p = malloc(bytes + 1);
    if (!p) exit(2);
    return p;
}

typedef struct blob {
    unsigned char *p;
    size_t len, cap;
    cg_status s;
} blob;
/* Compresses into just as many bytes as the bound says, with a guard behind them and behind the scratch. */
static blob pack(const cg_op *op, const cg_tag *tag, const cg_extra *side, const float *x, size_t n) {
    blob b;
    const size_t scratch_bytes = cg_scratch_with(op, side, n);
    unsigned char *scratch = (unsigned char *)take(scratch_bytes + GUARD);
    b.cap = cg_bound_with(op, side, n);
    b.p = (unsigned char *)take(b.cap + GUARD);
    memset(b.p, 0xa5, b.cap + GUARD);
    memset(scratch, 0x5a, scratch_bytes + GUARD);
    b.s = cg_compress_with(op, tag, side, x, n, b.p, b.cap, &b.len, scratch_bytes ? scratch : NULL, scratch_bytes);
    for (int i = 0; i < GUARD; i++)
        if (b.p[b.cap + (size_t)i] != 0xa5 || scratch[scratch_bytes + (size_t)i] != 0x5a) b.s = CG_E_STATE;
    free(scratch);
    return b;
}
static float *filled(size_t n, uint32_t seed) {
    float *x = (float *)take(4 * n);
    dice = seed;
    for (size_t i = 0; i < n; i++)
        x[i] = ((float)below(2001) - 1000.0f) * (i % 37 == 5 ? 0.01f : 0.0004f) * (i % 91 == 3 ? 0.0f : 1.0f);
    return x;
}

/* One packet of segments, and one packet of each. */
typedef struct trial {
    const cg_op *op;
    cg_segments seg;
    size_t n, lengths[MOST];
    uint32_t op_of[MOST], tensor[MOST];
    cg_op ops[4];
    float *x, *aux;
    blob whole, one[MOST];
    blob support, supports[MOST];
} trial;
static const cg_op dense_op = CG_ZERO;
static const cg_op *op_at(const trial *t, size_t i) {
    const uint32_t number = t->seg.op ? t->seg.op[i] : 0;
    return number == CG_SEGMENT_OP ? t->op : number == CG_SEGMENT_EXACT ? &dense_op : &t->ops[number - CG_SEGMENT_OPS];
}
static uint32_t tensor_at(const trial *t, size_t i) {
    return t->seg.tensor ? t->seg.tensor[i] : TAG.tensor + (uint32_t)i;
}
static int needs_aux(const cg_op *op) { return op->select.id == CG_SELECT_BINS || op->select.id == CG_SELECT_VARIANCE; }
static void trial_open(trial *t, const cg_op *op, const size_t *lengths, size_t count) {
    memset(t, 0, sizeof *t);
    t->op = op;
    for (size_t i = 0; i < count; i++) t->n += t->lengths[i] = lengths[i];
    t->seg.n = t->lengths;
    t->seg.count = count;
    t->x = filled(t->n, 11);
    t->aux = filled(t->n, 12);
    for (size_t i = 0; i < t->n; i++)
        if (t->aux[i] < 0) t->aux[i] = -t->aux[i];
}
static void trial_close(trial *t) {
    free(t->x);
    free(t->aux);
    free(t->whole.p);
    free(t->support.p);
    for (size_t i = 0; i < t->seg.count; i++) {
        free(t->one[i].p);
        free(t->supports[i].p);
    }
}
static cg_extra side_of(const trial *t) {
    cg_extra side = CG_ZERO;
    side.segments = &t->seg;
    if (needs_aux(t->op)) side.aux = t->aux;
    if (t->support.p) {
        side.support = t->support.p;
        side.support_len = t->support.len;
    }
    return side;
}
/* Makes all packets. 0: some call failed. */
static int trial_pack(trial *t) {
    size_t at = 0;
    cg_extra side;
    int good = 1, given = 0;
    for (size_t i = 0; i < t->seg.count; i++) given |= op_at(t, i)->select.id == CG_SELECT_GIVEN;
    if (given) { /* its support: the largest of each segment */
        cg_op topk = cg_topk(0.1f);
        cg_segments plain = t->seg;
        side = side_of(t);
        side.aux = NULL;
        plain.op = NULL;
        side.segments = &plain;
        t->support = pack(&topk, &TAG, &side, t->x, t->n);
        good &= t->support.s == CG_OK;
    }
    side = side_of(t);
    t->whole = pack(t->op, &TAG, &side, t->x, t->n);
    good &= t->whole.s == CG_OK;
    for (size_t i = 0; i < t->seg.count; at += t->lengths[i++]) {
        cg_extra own = CG_ZERO;
        cg_tag tag = TAG;
        tag.tensor = tensor_at(t, i);
        if (needs_aux(op_at(t, i))) own.aux = t->aux + at;
        if (op_at(t, i)->select.id == CG_SELECT_GIVEN) {
            cg_op topk = cg_topk(0.1f);
            t->supports[i] = pack(&topk, &tag, NULL, t->x + at, t->lengths[i]);
            own.support = t->supports[i].p;
            own.support_len = t->supports[i].len;
        }
        t->one[i] = pack(op_at(t, i), &tag, &own, t->x + at, t->lengths[i]);
        good &= t->one[i].s == CG_OK;
    }
    return good;
}
/* The packet of segments says what the packets of its segments say. */
static enum greatest_test_res trial_check(const trial *t) {
    const cg_extra side = side_of(t);
    float *y = (float *)take(4 * t->n), *want = (float *)take(4 * t->n);
    unsigned char *copy;
    size_t at = 0, bodies = 0, len;
    uint64_t first, k = 0;
    cg_info info, one;
    EXPECT(t->whole.s == CG_OK && t->whole.len <= t->whole.cap);
    EXPECT(cg_inspect(t->whole.p, CG_HEADER_BYTES, &info) == CG_OK); /* the header is enough */
    EXPECT(info.packet_bytes == t->whole.len && info.segments == t->seg.count && info.n == t->n);
    EXPECT(info.tag.tensor == TAG.tensor && info.tag.rank == TAG.rank && t->whole.p[4] == 2);
    for (size_t i = 0; i < t->seg.count; at += t->lengths[i++]) {
        const blob *b = &t->one[i];
        cg_extra own = CG_ZERO;
        EXPECT(b->s == CG_OK && b->p[4] == 1);
        EXPECT(cg_segment_inspect(t->whole.p, t->whole.len, i, &info, &first) == CG_OK && first == at);
        EXPECT(cg_inspect(b->p, b->len, &one) == CG_OK && !memcmp(&one, &info, sizeof one));
        copy = (unsigned char *)take(b->len);
        EXPECT(cg_segment_copy(&side, t->whole.p, t->whole.len, i, copy, b->len, &len) == CG_OK);
        EXPECT(len == b->len && !memcmp(copy, b->p, len));
        if (b->len > CG_HEADER_BYTES)
            EXPECT(
                cg_segment_copy(&side, t->whole.p, t->whole.len, i, copy, b->len - 1, &len) == CG_E_CAPACITY && !len);
        free(copy);
        own.support = t->supports[i].p;
        own.support_len = own.support ? t->supports[i].len : 0;
        EXPECT(cg_decode(&own, b->p, b->len, 1, 0, want + at, t->lengths[i]) == CG_OK);
        bodies += b->len - CG_HEADER_BYTES;
        k += one.k;
    }
    EXPECT(cg_inspect(t->whole.p, t->whole.len, &info) == CG_OK);
    EXPECT(info.value_bytes == bodies && info.k == k);
    EXPECT(cg_segment_inspect(t->whole.p, t->whole.len, t->seg.count, &info, NULL) == CG_E_ARG);
    memset(y, 0xff, 4 * t->n);
    EXPECT(cg_decode(&side, t->whole.p, t->whole.len, 1, 0, y, t->n) == CG_OK);
    EXPECT(!memcmp(y, want, 4 * t->n));
    for (int turn = 0; turn < 2; turn++) {
        const float alpha = turn ? 0.25f : -3.7f, beta = turn ? 1.0f : 0.3f;
        at = 0;
        for (size_t i = 0; i < t->n; i++) y[i] = want[i] = (float)(i % 101) - 50.0f;
        for (size_t i = 0; i < t->seg.count; at += t->lengths[i++]) {
            cg_extra own = CG_ZERO;
            own.support = t->supports[i].p;
            own.support_len = own.support ? t->supports[i].len : 0;
            EXPECT(cg_decode(&own, t->one[i].p, t->one[i].len, alpha, beta, want + at, t->lengths[i]) == CG_OK);
        }
        EXPECT(cg_decode(&side, t->whole.p, t->whole.len, alpha, beta, y, t->n) == CG_OK);
        EXPECT(!memcmp(y, want, 4 * t->n));
    }
    if (!t->support.p) {
        cg_extra direct = CG_ZERO;
        direct.flags = CG_DECODE_DIRECT;
        EXPECT(cg_decode(&direct, t->whole.p, t->whole.len, 1, 0, y, t->n) == CG_OK);
        at = 0;
        for (size_t i = 0; i < t->n; i++) y[i] = want[i] = 7.0f;
        for (size_t i = 0; i < t->seg.count; at += t->lengths[i++])
            EXPECT(cg_clear(t->one[i].p, t->one[i].len, want + at, t->lengths[i]) == CG_OK);
        EXPECT(cg_clear(t->whole.p, t->whole.len, y, t->n) == CG_OK && !memcmp(y, want, 4 * t->n));
    } else {
        EXPECT(cg_decode(NULL, t->whole.p, t->whole.len, 1, 0, y, t->n) == CG_E_ARG);
        EXPECT(cg_clear(t->whole.p, t->whole.len, y, t->n) == CG_E_UNSUPPORTED);
    }
    EXPECT(cg_decode(&side, t->whole.p, t->whole.len, 1, 0, y, t->n + 1) == CG_E_MISMATCH);
    EXPECT(cg_decode(&side, t->whole.p, t->whole.len - 4, 1, 0, y, t->n) != CG_OK);
    free(y);
    free(want);
    PASS();
}

static const size_t LENGTHS[] = { 300, 0, 1, 64, 2049, 17, 0, 1003 };
enum { LENGTH_COUNT = sizeof LENGTHS / sizeof *LENGTHS };

TEST every_operator_makes_of_a_segment_what_it_makes_of_a_vector(void) {
    for (int c = 0; c < GOLDEN_CASES; c++) {
        size_t lengths[MOST];
        trial t;
        cg_op op;
        int seen = 0;
        text_now = golden_cases[c].op;
        for (int j = 0; j < c; j++) seen |= !strcmp(golden_cases[j].op, text_now);
        if (seen) continue;
        EXPECT(cg_op_parse(&op, text_now) == CG_OK);
        memcpy(lengths, LENGTHS, sizeof LENGTHS);
        if (op.transform.id == CG_TRANSFORM_LOWRANK || op.transform.id == CG_TRANSFORM_ATOMO)
            for (int i = 0; i < LENGTH_COUNT; i++) lengths[i] = (size_t)op.transform.size * (size_t)op.transform.value;
        trial_open(&t, &op, lengths,
            op.transform.id == CG_TRANSFORM_LOWRANK || op.transform.id == CG_TRANSFORM_ATOMO ? 3 : LENGTH_COUNT);
        EXPECT(trial_pack(&t));
        CHECK_CALL(trial_check(&t));
        trial_close(&t);
    }
    PASS();
}

TEST segments_may_have_operators_and_tensors_of_their_own(void) {
    static const char *const texts[] = { "topk:0.05|absmax:4:64", "minmax:4:64", "randk:0.3:unscaled|levels:7:32",
        "given|f16", "bins:50" };
    for (int c = 0; c < 5; c++) {
        trial t;
        cg_op op;
        text_now = texts[c];
        EXPECT(cg_op_parse(&op, text_now) == CG_OK);
        trial_open(&t, &op, LENGTHS, LENGTH_COUNT);
        EXPECT(cg_op_parse(&t.ops[0], "rotate:1|levels:7:512|huffman") == CG_OK);
        EXPECT(cg_op_parse(&t.ops[1], "lowrank:2:3:100") == CG_OK);
        EXPECT(cg_op_parse(&t.ops[2], "topk:k=5|golomb") == CG_OK);
        t.seg.ops = t.ops;
        t.seg.op_count = 3;
        for (int i = 0; i < LENGTH_COUNT; i++) t.op_of[i] = (uint32_t)i % 3 == 1 ? CG_SEGMENT_EXACT : CG_SEGMENT_OP;
        t.op_of[0] = CG_SEGMENT_OPS + 1; /* 300 values */
        t.op_of[4] = CG_SEGMENT_OPS;
        t.op_of[7] = CG_SEGMENT_OPS + 2;
        t.seg.op = t.op_of;
        if (c % 2) {
            for (int i = 0; i < LENGTH_COUNT; i++) t.tensor[i] = i == 3 ? 1u : TAG.tensor + 3u * (uint32_t)i;
            t.tensor[5] = 0xffffffffu;
            t.seg.tensor = t.tensor;
        }
        EXPECT(trial_pack(&t));
        CHECK_CALL(trial_check(&t));
        trial_close(&t);
    }
    PASS();
}

TEST scales_are_taken_in_order(void) {
    static const char *const texts[] = { "absmax:4:64", "minmax:4:64", "efsign", "topk:0.5|absmax:4:16" };
    for (int c = 0; c < 4; c++) {
        float scale[600];
        trial t;
        cg_op op;
        size_t at = 0, used = 0;
        cg_extra side;
        text_now = texts[c];
        EXPECT(cg_op_parse(&op, text_now) == CG_OK);
        trial_open(&t, &op, LENGTHS, LENGTH_COUNT);
        for (int i = 0; i < 600; i++) scale[i] = i % 2 ? 0.1f + (float)i : -0.1f - (float)i;
        if (c != 1)
            for (int i = 0; i < 600; i += 2) scale[i] = -scale[i];
        t.op_of[3] = CG_SEGMENT_EXACT;
        t.seg.op = t.op_of;
        side = side_of(&t);
        side.scale = scale;
        t.whole = pack(&op, &TAG, &side, t.x, t.n);
        EXPECT(t.whole.s == CG_OK);
        for (size_t i = 0; i < t.seg.count; at += t.lengths[i++]) {
            const size_t k = c == 3 ? (size_t)((double)t.lengths[i] * 0.5 + 0.5) : t.lengths[i],
                         bucket = c == 2 ? k
                : c == 3                 ? 16
                                         : 64;
            cg_extra own = CG_ZERO;
            cg_tag tag = TAG;
            tag.tensor += (uint32_t)i;
            if (i != 3) own.scale = scale + used;
            t.one[i] = pack(op_at(&t, i), &tag, &own, t.x + at, t.lengths[i]);
            if (i != 3 && k) used += (k + bucket - 1) / bucket * (c == 1 ? 2 : 1);
        }
        CHECK_CALL(trial_check(&t));
        trial_close(&t);
    }
    PASS();
}

/* Which k of x are the largest, the first of equals. */
static void mark_largest(const float *x, size_t n, size_t k, unsigned char *kept) {
    memset(kept, 0, n);
    for (size_t j = 0; j < k; j++) {
        size_t best = n;
        for (size_t i = 0; i < n; i++)
            if (!kept[i] && (best == n || (x[i] < 0 ? -x[i] : x[i]) > (x[best] < 0 ? -x[best] : x[best]))) best = i;
        kept[best] = 1;
    }
}
TEST one_selection_of_all_segments(void) {
    static const char *const texts[] = { "topk:0.05", "topk:0.05|absmax:4:64", "threshold:0.2|f16", "dgc:0.05",
        "mstopk:0.02|levels:7|huffman", "sidco:0.05", "wangni:0.1|golomb", "sides:0.05|onebit", "sbc:0.05",
        "topk:0.3|bitmap", "topk:k=40|efsign", "chunked:100:0.05", "wangnivar:2", "adaq:0.05", "stc:0.05" };
    for (int c = 0; c < 15; c++) {
        for (int exempt = 0; exempt < 2; exempt++) {
            trial t;
            cg_op op;
            float *flat, *y, *want;
            size_t at = 0, flat_n = 0, len;
            cg_extra side;
            cg_info info, all;
            unsigned char *kept;
            blob b;
            text_now = texts[c];
            EXPECT(cg_op_parse(&op, text_now) == CG_OK);
            trial_open(&t, &op, LENGTHS, LENGTH_COUNT);
            t.seg.flags = CG_SEGMENTS_GLOBAL;
            t.op_of[3] = t.op_of[5] = CG_SEGMENT_EXACT;
            if (exempt) t.seg.op = t.op_of;
            side = side_of(&t);
            t.whole = pack(&op, &TAG, &side, t.x, t.n);
            EXPECT(t.whole.s == CG_OK);
            EXPECT(cg_inspect(t.whole.p, t.whole.len, &all) == CG_OK && all.segment_flags & CG_SEGMENTS_GLOBAL);
            flat = (float *)take(4 * t.n);
            y = (float *)take(4 * t.n);
            want = (float *)take(4 * t.n);
            kept = (unsigned char *)take(t.n);
            for (size_t i = 0; i < t.seg.count; at += t.lengths[i++]) {
                if (exempt && t.op_of[i]) continue;
                memcpy(flat + flat_n, t.x + at, 4 * t.lengths[i]);
                flat_n += t.lengths[i];
            }
            b = pack(&op, &TAG, NULL, flat, flat_n);
            EXPECT(b.s == CG_OK && cg_inspect(b.p, b.len, &info) == CG_OK);
            EXPECT(all.threshold == info.threshold && all.k == info.k + (exempt ? 64 + 17 : 0));
            EXPECT(cg_decode(NULL, t.whole.p, t.whole.len, 1, 0, y, t.n) == CG_OK);
            /* what is kept is what the vector without segments keeps; f32 and f16 keep the same values */
            for (size_t i = 0; i < flat_n; i++) want[i] = 1.0f;
            EXPECT(cg_clear(b.p, b.len, want, flat_n) == CG_OK);
            if (c < 2) {
                mark_largest(flat, flat_n, (size_t)((double)0.05f * (double)flat_n + 0.5), kept);
                for (size_t i = 0; i < flat_n; i++) EXPECT(kept[i] == (want[i] == 0.0f));
            }
            at = flat_n = 0;
            for (size_t i = 0; i < t.seg.count; at += t.lengths[i++]) {
                unsigned char *copy;
                float *one = (float *)take(4 * t.lengths[i]);
                if (exempt && t.op_of[i]) {
                    EXPECT(!memcmp(y + at, t.x + at, 4 * t.lengths[i]));
                    free(one);
                    continue;
                }
                EXPECT(cg_segment_inspect(t.whole.p, t.whole.len, i, &info, NULL) == CG_OK);
                copy = (unsigned char *)take(info.packet_bytes);
                EXPECT(cg_segment_copy(NULL, t.whole.p, t.whole.len, i, copy, info.packet_bytes, &len) == CG_OK);
                EXPECT(cg_decode(NULL, copy, len, 1, 0, one, t.lengths[i]) == CG_OK);
                EXPECT(!memcmp(one, y + at, 4 * t.lengths[i]));
                for (size_t j = 0; j < t.lengths[i]; j++) one[j] = 1.0f;
                EXPECT(cg_clear(copy, len, one, t.lengths[i]) == CG_OK);
                EXPECT(!memcmp(one, want + flat_n, 4 * t.lengths[i]));
                /* scales are those of the segment: the kept values of it alone, quantized by themselves */
                if (c == 1 && info.k) {
                    float *values = (float *)take(4 * (size_t)info.k), *back = (float *)take(4 * (size_t)info.k);
                    cg_op quantize = cg_absmax(4, 64);
                    cg_tag tag = TAG;
                    size_t k = 0, j = 0;
                    blob q;
                    tag.tensor += (uint32_t)i;
                    for (j = 0; j < t.lengths[i]; j++)
                        if (one[j] == 0.0f) values[k++] = t.x[at + j];
                    EXPECT(k == info.k);
                    q = pack(&quantize, &tag, NULL, values, k);
                    EXPECT(q.s == CG_OK && cg_decompress(q.p, q.len, back, k) == CG_OK);
                    for (j = k = 0; j < t.lengths[i]; j++)
                        if (one[j] == 0.0f) EXPECT(back[k++] == y[at + j]);
                    free(values);
                    free(back);
                    free(q.p);
                }
                flat_n += t.lengths[i];
                free(copy);
                free(one);
            }
            if (c == 0 && !exempt) {
                EXPECT(cg_decode(NULL, b.p, b.len, 1, 0, want, t.n) == CG_OK && !memcmp(y, want, 4 * t.n));
            }
            free(b.p);
            free(flat);
            free(y);
            free(want);
            free(kept);
            trial_close(&t);
        }
    }
    PASS();
}

TEST a_table_takes_at_most_12_bytes_a_segment(void) {
    static const char *const texts[] = { "dense", "absmax:4:64", "topk:0.01", "topk:0.5|absmax:4:64",
        "topk:0.01|golomb", "randk:0.1", "eden:2", "levels:7|huffman", "dgc:0.1|f16", "efsign",
        "topk:0.3|levels:7|golomb|huffman" };
    for (int c = 0; c < 11; c++) {
        size_t lengths[200], total = 0;
        cg_segments seg = CG_ZERO;
        cg_extra side = CG_ZERO;
        uint32_t number[200];
        float *x = filled(60000, 3);
        for (int turn = 0; turn < 3; turn++) { /* one operator; every third exact; tensors of their own */
            uint32_t tensor[200];
            blob b;
            cg_op op;
            size_t bare = 0;
            text_now = texts[c];
            EXPECT(cg_op_parse(&op, text_now) == CG_OK);
            for (uint32_t i = 0; i < 200; i++) {
                lengths[i] = 300;
                number[i] = i % 3 == 0;
                tensor[i] = 2 * i + 1;
            }
            seg.n = lengths;
            seg.count = 200;
            seg.op = turn == 1 ? number : NULL;
            seg.tensor = turn == 2 ? tensor : NULL;
            side.segments = &seg;
            b = pack(&op, &TAG, &side, x, 60000);
            EXPECT(b.s == CG_OK);
            for (size_t i = 0; i < 200; i++) {
                blob one;
                cg_tag tag = TAG;
                tag.tensor = seg.tensor ? tensor[i] : TAG.tensor + (uint32_t)i;
                one = pack(turn == 1 && number[i] ? &dense_op : &op, &tag, NULL, x + 300 * i, 300);
                EXPECT(one.s == CG_OK);
                bare += one.len - CG_HEADER_BYTES;
                free(one.p);
            }
            EXPECT(b.len - bare <= 12 * 200);
            total += b.len - bare;
            free(b.p);
        }
        if (long_test()) printf("%s: %.2f bytes a segment\n", text_now, (double)total / 600);
        free(x);
    }
    PASS();
}

TEST bounds_hold_for_all_cuts(void) {
    static const char *const texts[] = { "topk:0.3|absmax:4:16", "topk:0.1", "threshold:0.05|levels:7|golomb|huffman",
        "sides:0.3|onebit:8", "topk:1|mxfp4", "mstopk:0.5|minmax:3:5|bitmap", "rotate:2|lloyd:1.5", "topk:0.4|rate:2" };
    float *x = filled(256 * MOST, 9);
    for (int turn = 0; turn < (long_test() ? 3000 : 300); turn++) {
        size_t lengths[MOST], n = 0, count = 1 + below(MOST);
        cg_segments seg = CG_ZERO;
        cg_extra side = CG_ZERO;
        uint32_t number[MOST];
        cg_op op;
        blob b;
        text_now = texts[turn % 8];
        EXPECT(cg_op_parse(&op, text_now) == CG_OK);
        for (size_t i = 0; i < count; i++) {
            n += lengths[i] = below(4) ? below(1u << below(9)) : 0;
            number[i] = below(5) == 0;
        }
        for (size_t i = 0; i < n; i++) x[i] = ((float)below(2001) - 1000.0f) * (below(3) ? 1e-4f : 1.0f);
        seg.n = lengths;
        seg.count = count;
        seg.op = below(2) ? number : NULL;
        seg.flags = turn % 8 == 6 ? 0u : below(2);
        side.segments = &seg;
        b = pack(&op, &TAG, &side, x, n);
        EXPECT(b.s == CG_OK && b.len <= b.cap);
        free(b.p);
    }
    free(x);
    PASS();
}

TEST what_is_wrong_is_said(void) {
    const size_t lengths[] = { 10, 20 }, huge[] = { SIZE_MAX, 31 };
    const uint32_t number[] = { 0, 2 };
    const cg_op ops[] = { cg_absmax(9, 64) };
    float x[40], y[40];
    unsigned char packet[4096], scratch[8192];
    cg_report report;
    cg_op op = cg_topk(0.5f), matrix = cg_lowrank(2, 5, 1);
    static const char *const says[] = { "add up", "add up", "segments.count", "segments.n", "unknown flag", "not valid",
        "names an operator", "begin with a selection", "rows * cols", "segments.ops is NULL" };
    text_now = "wrong segments";
    for (int i = 0; i < 40; i++) x[i] = (float)i;
    for (int c = 0; c < 10; c++) {
        cg_segments seg = CG_ZERO;
        cg_extra side = CG_ZERO;
        size_t len = 7;
        const cg_op with = c == 7 ? cg_absmax(4, 64) : c == 8 ? matrix : op;
        seg.n = c == 1 ? huge : c == 3 ? NULL : lengths;
        seg.count = c == 2 ? 0 : 2;
        seg.flags = c == 4 ? 8 : c == 7;
        seg.op = c == 5 || c == 6 ? number : NULL;
        seg.ops = c == 5 ? ops : NULL;
        seg.op_count = c == 5 || c == 9;
        side.segments = &seg;
        side.report = &report;
        EXPECT(cg_bound_with(&with, &side, c == 0 ? 31 : 30) == 0);
        EXPECT(cg_compress_with(&with, &TAG, &side, x, c == 0 ? 31 : 30, packet, sizeof packet, &len, scratch,
                   sizeof scratch) == CG_E_ARG);
        EXPECT(len == 0);
        if (!strstr(report.why, says[c])) printf("%d: %s\n", c, report.why);
        EXPECT(strstr(report.why, says[c]));
    }
    { /* NaN: which value; too little room and scratch: how much is needed */
        cg_segments seg = CG_ZERO;
        cg_extra side = CG_ZERO;
        size_t len;
        const uint32_t nan = 0x7fc00000u;
        seg.n = lengths;
        seg.count = 2;
        side.segments = &seg;
        side.report = &report;
        EXPECT(cg_compress_with(&op, &TAG, &side, x, 30, packet, 200, &len, scratch, sizeof scratch) == CG_E_CAPACITY);
        EXPECT(report.need == cg_bound_with(&op, &side, 30));
        EXPECT(cg_compress_with(&op, &TAG, &side, x, 30, packet, sizeof packet, &len, scratch, 8) == CG_E_CAPACITY);
        EXPECT(report.need == cg_scratch_with(&op, &side, 30));
        memcpy(x + 17, &nan, 4);
        EXPECT(cg_compress_with(&op, &TAG, &side, x, 30, packet, sizeof packet, &len, scratch, sizeof scratch) ==
            CG_E_NONFINITE);
        EXPECT(report.at == 17 && len == 0);
    }
    (void)y;
    PASS();
}

/* Sums and votes of three ranks' packets: segment by segment what those of packets without segments are. */
TEST packets_are_added_and_voted_on_segment_by_segment(void) {
    static const char *const texts[] = { "dense", "absmax:4:64", "absmax:8:1", "topk:0.1",
        "topk:0.2|absmax:4:64|huffman", "levels:7", "flexpoint:5:7", "terngrad", "randk:0.3", "randk:0.3|topk:0.3|f16",
        "rotate:2|lloyd:2", "sign", "given|f16", "rotate:1|sign", "randk:0.5|sign", "blocks:4|efsign",
        "topk:0.3|golomb", "flex16:64", "minmax:4:64" };
    enum { RANKS = 3 };
    for (int c = 0; c < 19; c++) {
        for (int mixed = 0; mixed < 3; mixed++) { /* 1: exact ones; 2: also tensors, and a selection from all */
            trial t[RANKS];
            cg_op op;
            float scale[LENGTH_COUNT * 4096], *y, *want;
            const void *packets[RANKS];
            size_t lens[RANKS], bound, bytes, len = 1, at = 0;
            unsigned char *out, *scratch;
            const int votes = strstr(texts[c], "sign") && !strstr(texts[c], "efsign") && mixed == 0;
            int vote;
            text_now = texts[c];
            EXPECT(cg_op_parse(&op, text_now) == CG_OK);
            for (int r = 0; r < RANKS; r++) {
                cg_extra side;
                cg_tag tag = TAG;
                tag.rank = (uint32_t)r;
                trial_open(&t[r], &op, LENGTHS, LENGTH_COUNT);
                if (c == 12 && mixed) t[r].op = &op;
                for (size_t i = 0; i < t[r].n; i++) t[r].x[i] *= (float)(1 + r) * (i % 5 == (size_t)r ? -1.0f : 1.0f);
                t[r].op_of[0] = t[r].op_of[6] = CG_SEGMENT_EXACT;
                if (mixed) t[r].seg.op = t[r].op_of;
                for (uint32_t i = 0; i < LENGTH_COUNT; i++) t[r].tensor[i] = 7 * i;
                if (mixed == 2) t[r].seg.tensor = t[r].tensor;
                if (mixed == 2 && c == 3) t[r].seg.flags = CG_SEGMENTS_GLOBAL;
                if (c == 12) { /* the support is that of rank 0 */
                    cg_op topk = cg_topk(0.1f);
                    cg_segments plain = t[r].seg;
                    plain.op = NULL;
                    side = side_of(&t[r]);
                    side.segments = &plain;
                    t[r].support = pack(&topk, &TAG, &side, t[0].x, t[0].n);
                }
                side = side_of(&t[r]);
                for (int i = 0; i < LENGTH_COUNT * 4096; i++) scale[i] = 4.0f;
                if (c == 1 || c == 2 || c == 5 || c == 6 || c == 7 || c == 17) side.scale = scale; /* of one grid */
                t[r].whole = pack(&op, &tag, &side, t[r].x, t[r].n);
                EXPECT(t[r].whole.s == CG_OK);
                packets[r] = t[r].whole.p;
                lens[r] = t[r].whole.len;
            }
            for (vote = 0; vote <= votes; vote++, at = 0) {
                EXPECT(cg_reduce_plan(packets, lens, RANKS, &bound, &bytes) == CG_OK);
                out = (unsigned char *)take(bound);
                scratch = (unsigned char *)take(bytes + 3);
                EXPECT((vote ? cg_vote(packets, lens, RANKS, out, bound, &len)
                             : cg_reduce(packets, lens, RANKS, out, bound, &len, scratch + 1, bytes)) == CG_OK);
                y = (float *)take(4 * t[0].n);
                want = (float *)take(4 * t[0].n);
                for (size_t i = 0; i < t[0].n; i++) y[i] = want[i] = 0.5f;
                {
                    const cg_extra side = side_of(&t[0]);
                    EXPECT(cg_decode(&side, out, len, 2, 1, y, t[0].n) == CG_OK);
                }
                for (size_t i = 0; i < LENGTH_COUNT; at += LENGTHS[i++]) {
                    const void *parts[RANKS];
                    size_t part_lens[RANKS], sum_len, sum_bound, sum_bytes;
                    unsigned char *sum, *sum_scratch, *copies[RANKS], *support = NULL;
                    cg_extra own = CG_ZERO;
                    for (int r = 0; r < RANKS; r++) {
                        const cg_extra side = side_of(&t[r]);
                        copies[r] = (unsigned char *)take(t[r].whole.len);
                        EXPECT(cg_segment_copy(&side, t[r].whole.p, t[r].whole.len, i, copies[r], t[r].whole.len,
                                   &part_lens[r]) == CG_OK);
                        parts[r] = copies[r];
                    }
                    if (t[0].support.p) {
                        support = (unsigned char *)take(t[0].support.len);
                        EXPECT(cg_segment_copy(NULL, t[0].support.p, t[0].support.len, i, support, t[0].support.len,
                                   &own.support_len) == CG_OK);
                        own.support = support;
                    }
                    EXPECT(cg_reduce_plan(parts, part_lens, RANKS, &sum_bound, &sum_bytes) == CG_OK);
                    sum = (unsigned char *)take(sum_bound);
                    sum_scratch = (unsigned char *)take(sum_bytes);
                    EXPECT((vote ? cg_vote(parts, part_lens, RANKS, sum, sum_bound, &sum_len)
                                 : cg_reduce(parts, part_lens, RANKS, sum, sum_bound, &sum_len, sum_scratch,
                                       sum_bytes)) == CG_OK);
                    EXPECT(cg_decode(&own, sum, sum_len, 2, 1, want + at, LENGTHS[i]) == CG_OK);
                    free(sum);
                    free(sum_scratch);
                    free(support);
                    for (int r = 0; r < RANKS; r++) free(copies[r]);
                }
                EXPECT(!memcmp(y, want, 4 * t[0].n));
                /* what is too small is refused, and so are packets of which some have no segments */
                EXPECT(vote || cg_reduce(packets, lens, RANKS, out, bound, &len, scratch, bytes - 1) == CG_E_CAPACITY);
                {
                    const blob flat = pack(&dense_op, &TAG, NULL, t[0].x, t[0].n);
                    const void *const keep = packets[1];
                    const size_t keep_len = lens[1];
                    packets[1] = flat.p;
                    lens[1] = flat.len;
                    EXPECT(cg_reduce_plan(packets, lens, RANKS, &len, &len) == CG_E_MISMATCH);
                    packets[1] = packets[0], lens[1] = lens[0];
                    packets[0] = flat.p, lens[0] = flat.len;
                    EXPECT(cg_reduce_plan(packets, lens, RANKS, &len, &len) == CG_E_MISMATCH);
                    packets[0] = packets[1], lens[0] = lens[1];
                    packets[1] = keep, lens[1] = keep_len;
                    free(flat.p);
                }
                free(out);
                free(scratch);
                free(y);
                free(want);
            }
            for (int r = 0; r < RANKS; r++) trial_close(&t[r]);
        }
    }
    PASS();
}

/* A packet with segments says where values of a vector without segments are. */
TEST a_support_may_have_segments(void) {
    static const char *const texts[] = { "topk:0.1", "randk:0.2", "blocks:8", "rotate:1|topk:0.1", "absmax:4:64",
        "permk:2", "randk:0.3|topk:0.3" };
    for (int c = 0; c < 7; c++) {
        trial t;
        cg_op op, given = cg_then(cg_given(), cg_f16());
        cg_extra side = CG_ZERO;
        blob b;
        float *y;
        text_now = texts[c];
        EXPECT(cg_op_parse(&op, text_now) == CG_OK);
        trial_open(&t, &op, LENGTHS, LENGTH_COUNT);
        t.op_of[4] = c % 2 ? CG_SEGMENT_EXACT : CG_SEGMENT_OP;
        t.seg.op = t.op_of;
        {
            cg_tag tag = TAG;
            tag.rank = 1;
            side = side_of(&t);
            t.whole = pack(&op, &tag, &side, t.x, t.n);
        }
        EXPECT(t.whole.s == CG_OK);
        memset(&side, 0, sizeof side);
        side.support = t.whole.p;
        side.support_len = t.whole.len;
        b = pack(&given, &TAG, &side, t.aux, t.n);
        EXPECT(b.s == CG_OK);
        y = (float *)take(4 * t.n);
        for (size_t i = 0; i < t.n; i++) t.x[i] = 1.0f;
        EXPECT(cg_clear(t.whole.p, t.whole.len, t.x, t.n) == CG_OK);
        EXPECT(cg_decode(&side, b.p, b.len, 1, 0, y, t.n) == CG_OK);
        for (size_t i = 0; i < t.n; i++) {
            uint16_t half;
            float back;
            cg_f16_from_f32(t.aux + i, 1, &half);
            cg_f16_to_f32(&half, 1, &back);
            EXPECT(y[i] == (t.x[i] == 0.0f ? back : 0.0f));
        }
        /* another cut of the same vector has other values */
        t.lengths[0]--;
        t.lengths[1]++;
        free(t.whole.p);
        {
            cg_extra other = side_of(&t);
            cg_tag tag = TAG;
            tag.rank = 1;
            t.whole = pack(&op, &tag, &other, t.aux, t.n);
        }
        EXPECT(t.whole.s == CG_OK);
        side.support = t.whole.p;
        side.support_len = t.whole.len;
        EXPECT(cg_decode(&side, b.p, b.len, 1, 0, y, t.n) == CG_E_MISMATCH);
        free(b.p);
        free(y);
        trial_close(&t);
    }
    PASS();
}

/* The checksum of any bytes, as the manual defines it. */
static void reseal(unsigned char *p, size_t len) {
    uint64_t a = 0, b = 0;
    memset(p + CG_HEADER_BYTES - 16, 0, 16);
    for (size_t i = 0; i < len / 4; i++) {
        const uint32_t w = (uint32_t)p[4 * i] | (uint32_t)p[4 * i + 1] << 8 | (uint32_t)p[4 * i + 2] << 16 |
            (uint32_t)p[4 * i + 3] << 24;
        a += w;
        b += (uint64_t)(len / 4 - i) * w;
    }
    for (int i = 0; i < 8; i++) {
        p[CG_HEADER_BYTES - 16 + i] = (unsigned char)(a >> 8 * i);
        p[CG_HEADER_BYTES - 8 + i] = (unsigned char)(b >> 8 * i);
    }
}
/* Damaged bytes: refused with y as it was, or decoded to something finite. Every reader agrees. */
static enum greatest_test_res survives(const unsigned char *p, size_t len, size_t n, int *decoded) {
    unsigned char *exact = (unsigned char *)take(len); /* so that a sanitizer sees a byte too far */
    float *y = (float *)take(4 * n);
    cg_info info, one;
    cg_status s, c;
    memcpy(exact, p, len);
    for (size_t i = 0; i < n; i++) y[i] = 3.0f;
    s = cg_decompress(exact, len, y, n);
    for (size_t i = 0; i < n; i++) EXPECT(s == CG_OK ? y[i] - y[i] == 0.0f : y[i] == 3.0f);
    c = cg_clear(exact, len, y, n);
    EXPECT((s == CG_OK) == (c == CG_OK) || c == CG_E_UNSUPPORTED);
    if (s == CG_OK) EXPECT(cg_inspect(exact, len, &info) == CG_OK && info.packet_bytes == len);
    for (size_t i = 0; s == CG_OK && i < info.segments; i++)
        EXPECT(cg_segment_inspect(exact, len, i, &one, NULL) == CG_OK);
    *decoded += s == CG_OK;
    free(exact);
    free(y);
    PASS();
}
TEST a_table_of_any_bytes_is_refused_or_decoded(void) {
    static const char *const texts[] = { "absmax:4:64", "topk:0.1|levels:7|huffman", "randk:0.2|topk:0.3|golomb",
        "permk:4|f16", "rotate:1|lloyd:2", "mstopk:0.1|efsign", "blocks:4" };
    int decoded = 0;
    for (int c = 0; c < 7; c++) {
        trial t;
        cg_op op;
        cg_info info;
        text_now = texts[c];
        EXPECT(cg_op_parse(&op, text_now) == CG_OK);
        trial_open(&t, &op, LENGTHS, LENGTH_COUNT);
        EXPECT(cg_op_parse(&t.ops[0], "topk:0.1|absmax:8:64|golomb|omega") == CG_OK);
        t.seg.ops = t.ops;
        t.seg.op_count = 1;
        for (int i = 0; i < LENGTH_COUNT; i++) t.op_of[i] = (uint32_t)(i + c) % 3;
        t.seg.op = c % 2 ? t.op_of : NULL;
        t.seg.tensor = c % 3 ? t.tensor : NULL;
        t.seg.flags = c == 1 || c == 5;
        t.whole = pack(&op, &TAG, (side_now = side_of(&t), &side_now), t.x, t.n);
        EXPECT(t.whole.s == CG_OK && cg_inspect(t.whole.p, t.whole.len, &info) == CG_OK);
        { /* whatever is one byte too short is refused */
            for (size_t len = 0; len < t.whole.len; len += len < 400 ? 1 : 37) {
                int before = decoded;
                CHECK_CALL(survives(t.whole.p, len, t.n, &decoded));
                EXPECT(decoded == before);
            }
        }
        for (int turn = 0; turn < (long_test() ? 40000 : 1200); turn++) {
            unsigned char *p = (unsigned char *)take(t.whole.len);
            const size_t table = CG_HEADER_BYTES + info.value_bytes;
            const uint32_t changes = 1 + below(3);
            memcpy(p, t.whole.p, t.whole.len);
            for (uint32_t k = 0; k < changes; k++) {
                const size_t at = below(3) ? table + below((uint32_t)info.index_bytes)
                    : below(2)             ? below(CG_HEADER_BYTES)
                                           : below((uint32_t)t.whole.len);
                const uint32_t way = below(4);
                p[at] = (unsigned char)(way == 0 ? below(256)
                        : way == 1               ? p[at] ^ (1u << below(8))
                        : way == 2               ? 0xff
                                                 : p[at] + 1u);
                if (way == 2 && at + 9 < t.whole.len) memset(p + at, 0xff, 1 + below(9)); /* long numbers */
                if (way == 3 && at > table) p[at - 1] = (unsigned char)(p[at - 1] - 1u);  /* sums stay the same */
            }
            reseal(p, t.whole.len);
            CHECK_CALL(survives(p, t.whole.len, t.n, &decoded));
            free(p);
        }
        trial_close(&t);
    }
    text_now = "damaged tables";
    EXPECT(decoded > 20); /* some must get through, or this has tested little */
    PASS();
}

TEST a_table_that_is_wrong_in_one_way_is_refused(void) {
    const size_t lengths[] = { 100, 200, 50 };
    trial t;
    cg_op op = cg_absmax(4, 64);
    cg_info info;
    unsigned char *p, *table;
    float y[350];
    text_now = "one wrong field";
    trial_open(&t, &op, lengths, 3);
    EXPECT(trial_pack(&t) && cg_inspect(t.whole.p, t.whole.len, &info) == CG_OK);
    p = t.whole.p;
    table = p + CG_HEADER_BYTES + info.value_bytes;
    EXPECT(
        info.index_bytes == 4 && table[0] == 100 && table[1] == (200 & 127) + 128 && table[2] == 1 && table[3] == 50);
    for (int c = 0; c < 12; c++) {
        static const struct {
            size_t at; /* in the header, or from 1000 on in the table */
            unsigned char byte;
        } wrong[] = { { 1000, 101 } /* the sum of lengths */, { 1003, 49 }, { 1000, 0 }, { 1002, 129 } /* no end */,
            { 80, 95 } /* n */, { 88, 93 } /* drawn */, { 96, 93 } /* k */, { 128, 4 } /* bodies */,
            { 136, 8 } /* table */, { 148, 2 } /* segments */, { 148, 4 }, { 5, 8 } /* a flag that nobody knows */ };
        const size_t at = wrong[c].at < 1000 ? wrong[c].at : (size_t)(table - p) + wrong[c].at - 1000;
        const unsigned char was = p[at];
        cg_status s;
        EXPECT(was != wrong[c].byte);
        p[at] = wrong[c].byte;
        reseal(p, t.whole.len);
        y[0] = 5.0f;
        s = cg_decompress(p, t.whole.len, y, 350);
        EXPECT(s == (c == 11 ? CG_E_VERSION : c == 4 ? CG_E_MISMATCH : CG_E_CORRUPT) && y[0] == 5.0f);
        p[at] = was;
    }
    { /* the order of lengths: same sums, other buckets */
        table[0] = 101;
        table[3] = 49;
        reseal(p, t.whole.len);
        EXPECT(cg_decompress(p, t.whole.len, y, 350) == CG_E_CORRUPT);
    }
    trial_close(&t);
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_TEST(every_operator_makes_of_a_segment_what_it_makes_of_a_vector);
    RUN_TEST(segments_may_have_operators_and_tensors_of_their_own);
    RUN_TEST(scales_are_taken_in_order);
    RUN_TEST(one_selection_of_all_segments);
    RUN_TEST(a_table_takes_at_most_12_bytes_a_segment);
    RUN_TEST(bounds_hold_for_all_cuts);
    RUN_TEST(packets_are_added_and_voted_on_segment_by_segment);
    RUN_TEST(a_support_may_have_segments);
    RUN_TEST(what_is_wrong_is_said);
    RUN_TEST(a_table_that_is_wrong_in_one_way_is_refused);
    RUN_TEST(a_table_of_any_bytes_is_refused_or_decoded);
    GREATEST_MAIN_END();
}
