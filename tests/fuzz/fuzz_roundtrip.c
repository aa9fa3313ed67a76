/* clang -g -O1 -I. -Itests -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_roundtrip.c -o fuzz && ./fuzz CORPUS
   cc -g -O1 -I. -Itests -DFUZZ_MAIN tests/fuzz/fuzz_roundtrip.c -o fuzz && ./fuzz 10000

   An operator from any text, from rows of stages or with any bytes in its fields; n, alignment and values of all kinds.
   What prints is read back as the same operator. What has a bound is compressed within it, to the same bytes on every
   ISA; NaN is refused. The packet decodes to the same finite bits on every ISA, is what cg_inspect says, holds what was
   kept of x as it was, is cleared where it has values, and adds up with another one. */

#define COMPGRAD_IMPLEMENTATION
#include "fuzz.h"

enum { MOST = 1 << 22 }; /* bytes of a buffer; operators that ask for more are not run */
typedef struct block {   /* a buffer of exactly that many bytes, at any alignment */
    unsigned char *whole;
    void *at;
    size_t bytes;
} block;
typedef struct trial {
    cg_op op;
    cg_tag tag;
    cg_extra side;
    size_t n, bound, scratch;
    uint32_t style, off;
    int wrong, tame; /* x has a value that is not finite; sums of its values stay far from the limits */
    block x, packet[2];
    size_t len[2];
} trial;

static block take(size_t bytes, size_t off) {
    block b;
    b.whole = (unsigned char *)malloc(bytes + off + !(bytes + off));
    MUST(b.whole);
    b.at = b.whole + off;
    b.bytes = bytes;
    return b;
}
static float get(const void *v, size_t i) {
    float f;
    memcpy(&f, (const char *)v + 4 * i, 4);
    return f;
}
static void set(void *v, size_t i, float f) { memcpy((char *)v + 4 * i, &f, 4); }

/* Equal, but that a zero has no sign, and that a count makes the ratio of its stage irrelevant. */
static int means_the_same(cg_op a, cg_op b) {
    if (a.k && a.k == b.k) {
        cg_stage *const sa = a.select.id == CG_SELECT_TOPK || a.select.id == CG_SELECT_MSTOPK ? &a.select : &a.sample;
        cg_stage *const sb = sa == &a.select ? &b.select : &b.sample;
        sa->value = sb->value = 1.0f;
    }
    a.select.value += 0.0f, b.select.value += 0.0f; /* -0 becomes 0 */
    a.quantize.value += 0.0f, b.quantize.value += 0.0f;
    return fuzz_same_op(&a, &b);
}
static void check_text(const cg_op *op) {
    char text[160], few[160];
    cg_op back;
    const cg_status s = cg_op_print(op, text, sizeof text);
    MUST(s == CG_OK || s == CG_E_ARG); /* 160 bytes always suffice */
    if (s != CG_OK) {
        MUST(text[0] == 0 && cg_bound(op, 100) == 0);
        return;
    }
    MUST(cg_op_parse(&back, text) == CG_OK && means_the_same(*op, back));
    const size_t len = strlen(text), cap = (size_t)(op->k + op->select.size) % (len + 2);
    memset(few, '#', sizeof few);
    MUST(cg_op_print(op, few, cap) == (cap > len ? CG_OK : CG_E_CAPACITY));
    MUST(cap == 0 || !strcmp(few, cap > len ? text : ""));
    MUST(cap >= sizeof few || few[cap] == '#');
}
static size_t choose_n(fuzz_input *in) {
    static const size_t edges[] = { 0, 1, 63, 64, 65, 255, 256, 1023, 1024, 1025, GOLDEN_AGREED, 2047, 2048, 2049 };
    const uint32_t how = fuzz_byte(in);
    if (how < 128) return fuzz_below(in, 256);
    if (how < 200) return edges[fuzz_below(in, sizeof edges / sizeof edges[0])];
    return how < 252 ? fuzz_below(in, 5000) : 65000 + fuzz_below(in, 5000);
}
static void choose_op(fuzz_input *in, trial *t) {
    const uint32_t how = fuzz_byte(in) % 4;
    if (how == 0) { /* text */
        const cg_op dense = cg_dense();
        char text[161];
        size_t len = fuzz_below(in, 161);
        for (size_t i = 0; i < len; i++) text[i] = (char)fuzz_byte(in);
        text[len] = 0;
        if (cg_op_parse(&t->op, text) != CG_OK) MUST(fuzz_same_op(&t->op, &dense));
        return;
    }
    t->op = fuzz_op(in, t->n);
    if (how == 1) { /* any bytes in some field */
        uint64_t dice = fuzz_word(in, 4);
        for (uint32_t times = 1 + fuzz_roll(&dice, 3); times; times--) {
            cg_stage *const slots[] = { &t->op.sample, &t->op.transform, &t->op.select, &t->op.quantize, &t->op.code,
                &t->op.clip };
            cg_stage *s = slots[fuzz_roll(&dice, 6)];
            switch (fuzz_roll(&dice, 7)) {
            case 0: s->id = (uint8_t)fuzz_roll(&dice, 26); break;
            case 1: s->flags = (uint8_t)fuzz_roll(&dice, 5); break;
            case 2: s->arg = (uint16_t)fuzz_interesting(s->arg, &dice); break;
            case 3: s->size = (uint32_t)fuzz_interesting(s->size, &dice); break;
            case 4: t->op.k = fuzz_interesting(t->op.k, &dice); break;
            default: s->value = fuzz_from_bits((uint32_t)fuzz_interesting(fuzz_bits(s->value), &dice));
            }
        }
    }
}
/* With scratch and packet of exactly these sizes; the packet is t->packet[which]. */
static cg_status compress(trial *t, int which, size_t cap) {
    block scratch = take(t->scratch, t->off >> 2 & 3);
    cg_status s;
    t->packet[which] = take(cap, t->off >> 4 & 3);
    memset(scratch.whole, 0xa5, t->scratch + (t->off >> 2 & 3));
    memset(t->packet[which].whole, 0xa5, cap + (t->off >> 4 & 3));
    t->len[which] = 12345;
    s = cg_compress_with(&t->op, &t->tag, &t->side, (const float *)t->x.at, t->n, t->packet[which].at, cap,
        &t->len[which], scratch.at, t->scratch);
    MUST(s == CG_OK ? t->len[which] <= cap && t->len[which] >= CG_HEADER_BYTES : t->len[which] == 0);
    free(scratch.whole);
    return s;
}
static cg_status decode(const trial *t, const block *packet, size_t len, float alpha, float beta, block *y) {
    return cg_decode(&t->side, packet->at, len, alpha, beta, (float *)y->at, t->n);
}
/* What the status of cg_compress may be, where the operator has a bound. */
static void check_status(const trial *t, cg_status s) {
    const uint8_t select = t->op.select.id;
    const int lacks = (select == CG_SELECT_BINS || select == CG_SELECT_VARIANCE) && t->n && !t->side.aux;
    if (t->side.scale && s == CG_E_UNSUPPORTED) return;
    if (lacks || (select == CG_SELECT_GIVEN && !t->side.support)) { /* scales took their place */
        MUST(s == CG_E_ARG);
        return;
    }
    if (t->op.sample.id == CG_SAMPLE_PERMK && t->tag.rank >= t->op.sample.size) MUST(s == CG_E_ARG);
    else if (!t->wrong) MUST(s == CG_OK);
    else if (t->op.sample.id || t->op.select.id == CG_SELECT_GIVEN) MUST(s == CG_OK || s == CG_E_NONFINITE);
    else MUST(s == CG_E_NONFINITE);
}
static void check_info(const trial *t) {
    cg_info info, head;
    MUST(cg_inspect(t->packet[0].at, t->len[0], &info) == CG_OK && info.packet_bytes == t->len[0]);
    MUST(cg_inspect(t->packet[0].at, CG_HEADER_BYTES, &head) == CG_OK && !memcmp(&info, &head, sizeof info));
    MUST(info.n == t->n && info.drawn <= t->n && !memcmp(&info.tag, &t->tag, sizeof info.tag));
    MUST(info.packet_bytes == CG_HEADER_BYTES + info.value_bytes + info.index_bytes);
    info.op.select.size = t->op.select.size; /* which support was given */
    info.op.k = t->op.k;
    MUST(means_the_same(info.op, t->op));
}
/* y, which every ISA decodes alike, and everything that must be true of it. */
static void check_values(const trial *t, block *y) {
    const cg_op *op = &t->op;
    const uint8_t random = op->select.id == CG_SELECT_WANGNI || op->select.id == CG_SELECT_WANGNIVAR ||
        op->select.id == CG_SELECT_BINS;
    const int as_it_was = !op->sample.id && !op->transform.id && !op->quantize.id && !op->clip.id && !random;
    block z = take(4 * t->n, t->off >> 6 & 3);
    float alpha = 0.25f, beta = 0.5f;
    for (size_t i = 0; i < t->n; i++) {
        const float v = get(y->at, i), x = get(t->x.at, i);
        MUST(fuzz_is_finite(v));
        if (as_it_was) MUST(fuzz_bits(v) == fuzz_bits(x) || (op->select.id && v == 0.0f));
        set(z.at, i, 3.0f);
    }
    if (op->select.id != CG_SELECT_GIVEN) {
        MUST(cg_clear(t->packet[0].at, t->len[0], (float *)z.at, t->n) == CG_OK);
        for (size_t i = 0; i < t->n; i++) {
            MUST(get(z.at, i) == 0.0f || get(z.at, i) == 3.0f);
            MUST(get(y->at, i) == 0.0f || get(z.at, i) == 0.0f || op->transform.id);
            if (!op->sample.id && !op->select.id) MUST(get(z.at, i) == 0.0f);
        }
    }
    for (size_t i = 0; i < t->n; i++) set(z.at, i, (float)(i % 5));
    MUST(decode(t, &t->packet[0], t->len[0], alpha, beta, &z) == CG_OK);
    for (size_t i = 0; i < t->n && !op->transform.id; i++) {
        const double want = 0.25 * (double)get(y->at, i) + 0.5 * (double)(i % 5), got = (double)get(z.at, i);
        MUST(got - want <= 1e-6 * (want < 0 ? -want : want) + 1e-6 &&
            want - got <= 1e-6 * (want < 0 ? -want : want) + 1e-6);
    }
    free(z.whole);
}
/* The sum of the packets of two ranks, in which both have the same x. */
static void check_sum(const trial *t, const block *a, const block *b) {
    const void *parts[2];
    size_t lens[2], bound, bytes, len[2] = { 0, 0 };
    block sum[2] = { { NULL, NULL, 0 }, { NULL, NULL, 0 } }, y = take(4 * t->n, t->off & 3);
    int runs = 0;
    double largest = 0.0;
    cg_status plan;
    parts[0] = t->packet[0].at, parts[1] = t->packet[1].at;
    lens[0] = t->len[0], lens[1] = t->len[1];
    plan = cg_reduce_plan(parts, lens, 2, &bound, &bytes);
    if (t->op.sample.id == CG_SAMPLE_PERMK || t->op.transform.id > CG_TRANSFORM_DCT) MUST(plan == CG_E_UNSUPPORTED);
    else MUST(plan == CG_OK);
    for (int isa = CG_ISA_SCALAR; plan == CG_OK && isa <= CG_ISA_NEON; isa++) {
        if (cg_isa_force((cg_isa)isa) != CG_OK) continue;
        block scratch = take(bytes, t->off >> 2 & 3);
        sum[runs] = take(bound, t->off >> 4 & 3);
        MUST(cg_reduce(parts, lens, 2, sum[runs].at, bound, &len[runs], scratch.at, bytes) == CG_OK);
        MUST(len[runs] == len[0] && len[0] <= bound && !memcmp(sum[runs].at, sum[0].at, len[0]));
        free(scratch.whole);
        if (runs++) free(sum[1].whole);
    }
    if (plan == CG_OK && t->op.select.id != CG_SELECT_GIVEN) {
        MUST(decode(t, &sum[0], len[0], 1, 0, &y) == CG_OK);
        for (size_t i = 0; i < t->n; i++) {
            const double one = (double)get(a->at, i), other = (double)get(b->at, i);
            const double size = (one < 0 ? -one : one) + (other < 0 ? -other : other);
            largest = size > largest ? size : largest;
        }
        for (size_t i = 0; i < t->n; i++) {
            const double off = (double)get(a->at, i) + (double)get(b->at, i) - (double)get(y.at, i);
            MUST(fuzz_is_finite(get(y.at, i)));
            if (t->tame) MUST(off <= 1e-5 * largest && off >= -1e-5 * largest);
        }
    }
    free(sum[0].whole);
    free(y.whole);
}
static void run(trial *t) {
    block y[2] = { { NULL, NULL, 0 }, { NULL, NULL, 0 } };
    const int runs_two = cg_isa_found(CG_ISA_AVX2) || cg_isa_found(CG_ISA_NEON);
    cg_status s, again;
    MUST(cg_isa_force(CG_ISA_SCALAR) == CG_OK);
    s = compress(t, 0, t->bound);
    check_status(t, s);
    MUST(cg_isa_force(CG_ISA_AUTO) == CG_OK);
    again = compress(t, 1, t->bound);
    MUST(s == again && t->len[0] == t->len[1]);
    if (s == CG_OK) MUST(!memcmp(t->packet[0].at, t->packet[1].at, t->len[0]));
    free(t->packet[1].whole);
    if (s == CG_OK) {
        check_info(t);
        for (int i = 0; i < 1 + runs_two; i++) {
            y[i] = take(4 * t->n, t->off & 3);
            memset(y[i].whole, 0xff, 4 * t->n + (t->off & 3)); /* NaN: beta 0 must not read it */
            MUST(cg_isa_force(i ? CG_ISA_AUTO : CG_ISA_SCALAR) == CG_OK);
            MUST(decode(t, &t->packet[0], t->len[0], 1, 0, &y[i]) == CG_OK);
            MUST(!memcmp(y[i].at, y[0].at, 4 * t->n));
        }
        MUST(cg_isa_force(CG_ISA_AUTO) == CG_OK);
        check_values(t, &y[0]);
        t->tag.rank ^= 1; /* the other rank rounds otherwise */
        if (t->op.sample.id == CG_SAMPLE_PERMK) t->tag.rank ^= 1;
        MUST(compress(t, 1, t->bound) == CG_OK);
        y[1].at = runs_two ? (free(y[1].whole), (void *)0) : (void *)0;
        y[1] = take(4 * t->n, t->off & 3);
        MUST(decode(t, &t->packet[1], t->len[1], 1, 0, &y[1]) == CG_OK);
        check_sum(t, &y[0], &y[1]);
        free(t->packet[1].whole);
        /* one byte less than it took: the bound was not needed, but that much is */
        again = compress(t, 1, t->len[1] - 1);
        MUST(again == CG_E_CAPACITY);
        free(t->packet[1].whole);
        free(y[0].whole);
        free(y[1].whole);
    }
    free(t->packet[0].whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = { data, size };
    trial t;
    memset(&t, 0, sizeof t);
    t.n = choose_n(&in);
    choose_op(&in, &t);
    t.style = fuzz_below(&in, FUZZ_STYLES);
    t.tame = t.style <= FUZZ_SPIKES;
    t.off = fuzz_byte(&in);
    t.tag.seed = fuzz_word(&in, 4);
    t.tag.step = fuzz_byte(&in);
    t.tag.rank = fuzz_byte(&in) % 4;
    check_text(&t.op);
    t.x = take(4 * t.n, t.off & 3);
    fuzz_fill((float *)t.x.at, t.n, t.style, t.tag.seed);
    float *clean = (float *)malloc(4 * t.n + 4);
    MUST(clean);
    memcpy(clean, t.x.at, 4 * t.n);
    MUST(golden_side(&t.op, &t.tag, clean, t.n, &t.side) == 0);
    free(clean);
    const uint32_t wrong = fuzz_byte(&in);
    if (wrong < 16 && t.n) {
        set(t.x.at, fuzz_word(&in, 2) % t.n, fuzz_wrong(wrong));
        t.wrong = 1;
    }
    t.bound = cg_bound_with(&t.op, &t.side, t.n);
    t.scratch = cg_scratch(&t.op, t.n);
    if (t.bound == 0) {
        if (t.scratch > MOST) t.scratch = MOST; /* of a matrix that does not fit n */
        MUST(compress(&t, 0, 4096) != CG_OK);
        free(t.packet[0].whole);
    } else if (t.bound <= MOST && t.scratch <= MOST && t.op.quantize.id < CG_QUANTIZE_USER) run(&t);
    golden_side_done(&t.side);
    free(t.x.whole);
    return 0;
}

/* Every fourth one is the text of an operator, as it is or with a letter changed. */
FUZZ_FN size_t fuzz_fresh(uint32_t which, uint64_t *dice, uint8_t *out, size_t cap) {
    const char *text = golden_cases[which / 4 % GOLDEN_CASES].op;
    const size_t len = strlen(text), size = 160;
    MUST(size <= cap && len < 120);
    fuzz_bytes(dice, out, size);
    out[2] &= 0xfc;
    if (which % 4) {
        out[2] = (uint8_t)(out[2] | which % 4);
        return size;
    }
    out[0] %= 200;
    out[3] = (uint8_t)len;
    memcpy(out + 4, text, len);
    if (which % 8) out[4 + fuzz_roll(dice, (uint32_t)len)] = (uint8_t)(33 + fuzz_roll(dice, 94));
    return size;
}
