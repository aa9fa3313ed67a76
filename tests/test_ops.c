/* Operators as data: presets, composition, text, and what is refused. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"

static int same(const cg_op *a, const cg_op *b) {
    const cg_stage *s[12];
    int i;
    s[0] = &a->sample;
    s[1] = &a->transform;
    s[2] = &a->select;
    s[3] = &a->quantize;
    s[4] = &a->code;
    s[5] = &a->clip;
    s[6] = &b->sample;
    s[7] = &b->transform;
    s[8] = &b->select;
    s[9] = &b->quantize;
    s[10] = &b->code;
    s[11] = &b->clip;
    for (i = 0; i < 6; i++)
        if (s[i]->id != s[i + 6]->id || s[i]->flags != s[i + 6]->flags || s[i]->arg != s[i + 6]->arg ||
            s[i]->size != s[i + 6]->size || ref_bits(s[i]->value) != ref_bits(s[i + 6]->value))
            return 0;
    return a->k == b->k && a->reserved == b->reserved;
}

TEST presets_fill_their_slot(void) {
    cg_op zero = CG_ZERO, op = cg_dense();
    ASSERT(same(&zero, &op));
    op = cg_topk(0.25f);
    ASSERT_EQ_FMT((unsigned)CG_SELECT_TOPK, (unsigned)op.select.id, "%u");
    ASSERT(op.select.value == 0.25f && op.quantize.id == 0 && op.sample.id == 0);
    op = cg_minmax(3, 77);
    ASSERT(op.quantize.id == CG_QUANTIZE_MINMAX && op.quantize.arg == 3 && op.quantize.size == 77);
    op = cg_nearest(cg_absmax(3, 77));
    ASSERT(op.quantize.id == CG_QUANTIZE_ABSMAX && op.quantize.flags == CG_FLAG_NEAREST);
    op = cg_unscaled(cg_randk(0.5f));
    ASSERT(op.sample.id == CG_SAMPLE_RANDK && op.sample.flags == CG_FLAG_UNSCALED && op.sample.value == 0.5f);
    op = cg_coded(cg_topk(0.25f), CG_CODE_BITMAP);
    ASSERT_EQ_FMT((unsigned)CG_CODE_BITMAP, (unsigned)op.code.id, "%u");
    op = cg_user(200, 3, 5, 0.5f);
    ASSERT(op.quantize.id == 200 && op.quantize.arg == 3 && op.quantize.size == 5 && op.quantize.value == 0.5f);
    PASS();
}

/* One name for one thing: what text calls x, C calls cg_x, and the constants have its name, too. */
typedef struct pair {
    const char *text;
    cg_op op;
} pair;
TEST text_and_c_share_names(void) {
    pair pairs[40];
    size_t n = 0;
#define PAIR(t, o) (pairs[n].text = (t), pairs[n].op = (o), n++)
    PAIR("levels:7:64", cg_levels(7, 64));
    PAIR("levels:7|omega", cg_qsgd(7));
    PAIR("trits:1.5", cg_trits(1.5f));
    PAIR("trits:1.5|quartic", cg_threelc(1.5f));
    PAIR("flex16:64", cg_flex16(64));
    PAIR("flex16:64", cg_flexpoint(16, 64));
    PAIR("e4m3:64", cg_e4m3(64));
    PAIR("e5m2:64", cg_e5m2(64));
    PAIR("fp8", cg_e4m3(512));
    PAIR("fp8", cg_fp8());
    PAIR("fp8_e5m2", cg_e5m2(512));
    PAIR("fp8_e5m2", cg_fp8_e5m2());
    PAIR("mxe4m3", cg_mxe4m3());
    PAIR("mxe5m2", cg_mxe5m2());
    PAIR("bins:50", cg_bins(50));
    PAIR("bins:50|efsign", cg_adacomp(50));
    PAIR("sides:0.05", cg_sides(0.05f));
    PAIR("sides:0.05|onebit", cg_adaq(0.05f));
    PAIR("wangnivar:0.5", cg_wangnivar(0.5f));
    PAIR("rotate:2|lloyd:1.5", cg_then(cg_rotate(2), cg_lloyd(1.5f)));
    PAIR("rotate:3|lloyd:4", cg_eden(4.0f));
    PAIR("rotate:3|lloyd:1", cg_drive());
    PAIR("randk:0.5|rotate:3|lloyd:1", cg_eden(0.5f));
    PAIR("dct|chunked:64:0.1", cg_demo_dct(0.1f));
    PAIR("demo_dct:0.1", cg_demo_dct(0.1f));
    /* as 0.1 called them */
    PAIR("demo:0.1", cg_demo(0.1f));
    PAIR("mxfp8", cg_mxfp8());
    PAIR("mxfp8", cg_mxe4m3());
    PAIR("mxfp8_e5m2", cg_mxfp8_e5m2());
    PAIR("mxfp8_e5m2", cg_mxe5m2());
    PAIR("wangni_variance:0.5", cg_wangni_variance(0.5f));
    PAIR("wangni_variance:0.5", cg_wangnivar(0.5f));
#undef PAIR
    for (size_t i = 0; i < n; i++) {
        cg_op op;
        ASSERT_EQm(pairs[i].text, CG_OK, cg_op_parse(&op, pairs[i].text));
        ASSERTm(pairs[i].text, same(&op, &pairs[i].op));
        ASSERTm(pairs[i].text, cg_bound(&op, 1000) > CG_HEADER_BYTES);
    }
    ASSERT(CG_SELECT_WANGNI_VARIANCE == (int)CG_SELECT_WANGNIVAR && CG_SELECT_ADACOMP == (int)CG_SELECT_BINS);
    ASSERT(CG_QUANTIZE_TERNARY == (int)CG_QUANTIZE_TERNGRAD && CG_QUANTIZE_QSGD == (int)CG_QUANTIZE_LEVELS);
    ASSERT(CG_QUANTIZE_STEPS == (int)CG_QUANTIZE_FLEXPOINT && CG_QUANTIZE_STEPS16 == (int)CG_QUANTIZE_FLEX16);
    ASSERT(CG_QUANTIZE_THREELC == (int)CG_QUANTIZE_TRITS && sizeof(cg_side) == sizeof(cg_extra));
    PASS();
}

/* EDEN has three rounds, and texts that were saved with one or two still mean these. */
TEST rounds_of_rotation(void) {
    static const struct {
        const char *text, *printed;
        int rounds;
    } cases[] = { { "eden:4", "rotate:3|lloyd:4", 3 }, { "eden:1.5", "rotate:3|lloyd:1.5", 3 },
        { "drive", "rotate:3|lloyd:1", 3 }, { "eden:0.25", "randk:0.25|rotate:3|lloyd:1", 3 },
        { "rotate:3|lloyd:2", "rotate:3|lloyd:2", 3 }, { "rotate:2|lloyd:4", "rotate:2|lloyd:4", 2 },
        { "rotate:1|lloyd:3", "rotate:1|lloyd:3", 1 }, { "rotate:3", "rotate:3", 3 },
        { "srq:4", "rotate:1|minmax:4:1024", 1 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cg_op op, again;
        char text[160];
        ASSERT_EQm(cases[i].text, CG_OK, cg_op_parse(&op, cases[i].text));
        ASSERT_EQm(cases[i].text, cases[i].rounds, (int)op.transform.arg);
        ASSERT_EQm(cases[i].text, CG_OK, cg_op_print(&op, text, sizeof text));
        ASSERT_STR_EQm(cases[i].text, cases[i].printed, text);
        ASSERTm(text, cg_op_parse(&again, text) == CG_OK && same(&op, &again));
    }
    {
        const cg_op none = cg_rotate(0), four = cg_rotate(4);
        ASSERT(cg_bound(&none, 1000) == 0 && cg_bound(&four, 1000) == 0);
    }
    PASS();
}

/* The mean of values of both signs is about nothing: refused, by every function that takes an operator. */
TEST mean_of_both_signs_is_refused(void) {
    static const char *const wrong[] = { "mean", "wangni:0.01|mean", "topk:0.1|mean", "sides:0.1|mean",
        "threshold:0.5|mean|golomb", "randk:0.5|mean", "chunked:64:0.1|mean", "given|mean" };
    static const char *const right[] = { "side:0.1|mean", "side:0.1|mean|golomb", "sbc:0.1", "randk:0.5|side:0.1|mean",
        "rotate:1|side:0.1|mean" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cg_op op;
        ASSERT_EQm(wrong[i], CG_E_ARG, cg_op_parse(&op, wrong[i]));
    }
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        static float x[1000], y[1000];
        static unsigned char packet[1 << 14], scratch[1 << 16];
        char text[160];
        size_t len;
        cg_op op;
        for (int j = 0; j < 1000; j++) x[j] = (float)(j * 37 % 101 - 50);
        ASSERT_EQm(right[i], CG_OK, cg_op_parse(&op, right[i]));
        ASSERT_EQm(
            right[i], CG_OK, cg_compress(&op, NULL, x, 1000, packet, sizeof packet, &len, scratch, sizeof scratch));
        ASSERT_EQm(right[i], CG_OK, cg_decompress(packet, len, y, 1000));
        op.select = cg_topk(0.1f).select; /* the same in C */
        len = 1;
        ASSERT_EQm(
            right[i], CG_E_ARG, cg_compress(&op, NULL, x, 1000, packet, sizeof packet, &len, scratch, sizeof scratch));
        ASSERT(len == 0 && cg_bound(&op, 1000) == 0 && cg_scratch(&op, 1000) == 0);
        ASSERT_EQm(right[i], CG_E_ARG, cg_op_print(&op, text, sizeof text));
    }
    PASS();
}

/* A modifier that the operator does not have gives an operator that is refused, not another one. */
TEST modifiers_are_refused_elsewhere(void) {
    const cg_op wrong[] = {
        cg_clipped(cg_minmax(4, 512)),
        cg_clipped(cg_qsgd(4)),
        cg_clipped(cg_dither(4, 0)),
        cg_clipped(cg_absmax(4, 512)),
        cg_clipped(cg_dense()),
        cg_clipped(cg_topk(0.1f)),
        cg_maxnorm(cg_terngrad(), 0),
        cg_maxnorm(cg_minmax(4, 512), 512),
        cg_maxnorm(cg_absmax(4, 512), 512),
        cg_maxnorm(cg_efsign(), 64),
        cg_nearest(cg_dense()),
        cg_nearest(cg_f16()),
        cg_nearest(cg_topk(0.1f)),
        cg_nearest(cg_efsign()),
        cg_nearest(cg_user(200, 0, 0, 0.0f)),
        cg_unscaled(cg_topk(0.1f)),
        cg_unscaled(cg_dense()),
        cg_then(cg_topk(0.1f), cg_clipped(cg_minmax(4, 64))),
    };
    const pair right[] = {
        { "terngrad:clip", cg_clipped(cg_terngrad()) },
        { "levels:4:512:max|omega", cg_maxnorm(cg_qsgd(4), 512) },
        { "dither:4:64:max", cg_maxnorm(cg_dither(4, 0), 64) },
        { "absmax:4:64:nearest", cg_nearest(cg_absmax(4, 64)) },
        { "terngrad:nearest:clip", cg_clipped(cg_nearest(cg_terngrad())) },
        { "randk:0.1:unscaled|f16", cg_unscaled(cg_then(cg_randk(0.1f), cg_f16())) },
        { "permk:4:unscaled", cg_unscaled(cg_permk(4)) },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[160];
        ASSERT_EQ_FMTm("an operator without this modifier", (size_t)0, cg_bound(&wrong[i], 1000), "%zu");
        ASSERT_EQ(CG_E_ARG, cg_op_print(&wrong[i], text, sizeof text));
    }
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        cg_op op;
        ASSERT_EQm(right[i].text, CG_OK, cg_op_parse(&op, right[i].text));
        ASSERTm(right[i].text, same(&op, &right[i].op));
    }
    PASS();
}
/* Stages stand in the order in which they work: text in another order would be taken for this one. */
TEST stages_out_of_order_are_refused(void) {
    static const char *const wrong[] = { "topk:0.01|randk:0.1", "f16|topk:0.1", "absmax:4:64|rotate:2",
        "topk:0.1|rotate:1", "golomb|topk:0.1", "topk:0.1|golomb|f16", "qsgd:4|topk:0.1", "huffman|absmax:4:64",
        "eden:2|randk:0.5", "f16|randk:0.1", "stc:0.1|randk:0.5", "rotate:2|permk:4" };
    static const char *const right[] = { "randk:0.1|topk:0.01", "topk:0.1|f16", "rotate:2|absmax:4:64",
        "rotate:1|topk:0.1", "topk:0.1|golomb", "topk:0.1|absmax:4:64|golomb|huffman",
        "topk:0.1|absmax:4:64|huffman|golomb", "topk:0.1|qsgd:4", "randk:0.5|eden:2", "dense|huffman",
        "randk:0.5|stc:0.1", "topk:0.1|dense|golomb" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cg_op op;
        ASSERT_EQm(wrong[i], CG_E_ARG, cg_op_parse(&op, wrong[i]));
    }
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        cg_op op;
        ASSERT_EQm(right[i], CG_OK, cg_op_parse(&op, right[i]));
    }
    PASS();
}

TEST then_fills_empty_slots(void) {
    cg_op a = cg_then(cg_topk(0.1f), cg_then(cg_randk(0.5f), cg_f16()));
    cg_op b = cg_then(cg_then(cg_randk(0.5f), cg_topk(0.1f)), cg_f16());
    cg_op c = cg_then(cg_dense(), b);
    ASSERT(same(&a, &b));
    ASSERT(same(&b, &c));
    ASSERT(cg_bound(&a, 100) > CG_HEADER_BYTES);
    c = cg_topk(0.5f);
    c.k = 7;
    c = cg_then(cg_f16(), c);
    ASSERT_EQ_FMT(7u, (unsigned)c.k, "%u");
    PASS();
}

/* Each refused: a bound of 0, and CG_E_ARG with length 0. */
TEST refuses(const cg_op *op) {
    float x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    unsigned char packet[1024], scratch[1024];
    char text[128];
    size_t len = 9;
    ASSERT_EQ_FMTm("cg_bound", 0u, (unsigned)cg_bound(op, 8), "%u");
    ASSERT_EQ_FMTm("cg_bound, n = 0", 0u, (unsigned)cg_bound(op, 0), "%u");
    ASSERT_EQ_FMTm("cg_scratch", 0u, (unsigned)cg_scratch(op, 8), "%u");
    ASSERT_ENUM_EQ(
        CG_E_ARG, cg_compress(op, NULL, x, 8, packet, sizeof packet, &len, scratch, sizeof scratch), ops_status);
    ASSERT_EQ_FMT(0u, (unsigned)len, "%u");
    /* if it prints, the text must not parse to something good */
    if (cg_op_print(op, text, sizeof text) == CG_OK) {
        cg_op again;
        if (cg_op_parse(&again, text) == CG_OK) ASSERT_EQm(text, 0u, cg_bound(&again, 8));
    }
    PASS();
}

static cg_op with_k(cg_op op, uint64_t k) {
    op.k = k;
    return op;
}

/* Fields that no preset sets. */
static cg_op damaged(int field) {
    cg_op op = cg_dense();
    switch (field) {
    case 0: op.sample.id = 9; break;
    case 1: op.transform.id = 1; break;
    case 2: op.select.id = 77; break;
    case 3: op.quantize.id = 99; break;
    case 4: op.code.id = 3; break;
    case 5: op.clip.id = 255; break;
    default: op.reserved = 1; break;
    }
    return op;
}

SUITE(bad_operators) {
    float nan_ = ref_float(0x7fc00000u), inf = ref_float(0x7f800000u);
    cg_op ops[42] = { /* a count too large would show: a zero op is good */
        cg_topk(0.0f), cg_topk(-0.1f), cg_topk(1.0001f), cg_topk(nan_), cg_topk(inf), cg_randk(0.0f), cg_randk(-1.0f),
        cg_randk(2.0f), cg_randk(nan_), cg_randk(-inf), cg_threshold(-1.0f), cg_threshold(nan_), cg_threshold(inf),
        cg_absmax(0, 64), cg_absmax(9, 64), cg_absmax(-1, 64), cg_absmax(65537, 64), cg_absmax(4, 0), cg_minmax(0, 64),
        cg_minmax(9, 64), cg_minmax(-1, 64), cg_minmax(65544, 64), cg_minmax(4, 0),
        cg_then(cg_topk(0.1f), cg_topk(0.1f)), cg_then(cg_topk(0.1f), cg_threshold(0.1f)), cg_then(cg_f16(), cg_bf16()),
        cg_then(cg_randk(0.1f), cg_randk(0.1f)),
        cg_then(cg_then(cg_f16(), cg_f16()), cg_topk(0.1f)), /* and stays bad */
        cg_then(with_k(cg_topk(0.5f), 3), with_k(cg_randk(0.5f), 3)), with_k(cg_dense(), 4),
        with_k(cg_threshold(0.5f), 4), /* a count, but nothing that counts */
        cg_user(127, 0, 0, 0.0f), cg_user(256, 0, 0, 0.0f), cg_user(-1, 0, 0, 0.0f),
        cg_coded(cg_topk(0.1f), (cg_coding)9), damaged(0), damaged(1), damaged(2), damaged(3), damaged(4), damaged(5),
        damaged(6)
    };
    size_t i;
    for (i = 0; i < sizeof ops / sizeof *ops; i++) RUN_TEST1(refuses, &ops[i]);
}

TEST null_op(void) {
    char text[8];
    cg_op op;
    ASSERT_EQ_FMT(0u, (unsigned)cg_bound(NULL, 8), "%u");
    ASSERT_EQ_FMT(0u, (unsigned)cg_scratch(NULL, 8), "%u");
    ASSERT_ENUM_EQ(CG_E_ARG, cg_op_parse(NULL, "f16"), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_op_parse(&op, NULL), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_op_print(NULL, text, sizeof text), ops_status);
    op = cg_f16();
    ASSERT(cg_op_print(&op, NULL, 8) != CG_OK);
    PASS();
}

TEST bound_overflow_is_refused(void) {
    cg_op dense = cg_dense(), mm = cg_minmax(8, 1), topk = cg_topk(1.0f), sign = cg_sign();
    size_t most = (size_t)-1;
    ASSERT_EQ(0u, cg_bound(&dense, most));
    ASSERT_EQ(0u, cg_bound(&dense, most / 4));
    ASSERT_EQ(0u, cg_bound(&dense, most / 4 - 1));
    ASSERT_EQ(0u, cg_bound(&mm, most / 8));
    ASSERT_EQ(0u, cg_bound(&topk, most / 4));
    ASSERT(cg_bound(&sign, most / 64) > 0);
    PASS();
}

/* text, and what it prints back as (NULL: itself) */
static const struct {
    const char *text, *prints;
} good[] = { { "dense", NULL }, { "f16", NULL }, { "bf16", NULL }, { "sign", NULL }, { "efsign", NULL },
    { "terngrad", NULL }, { "terngrad:nearest", NULL }, { "absmax:4:512", NULL }, { "absmax:1:1:nearest", NULL },
    { "minmax:8:4294967295", NULL }, { "minmax:2:64:nearest", NULL }, { "topk:0.01", NULL }, { "topk:1", NULL },
    { "topk:k=1", NULL }, { "topk:k=18446744073709551615", NULL }, { "randk:0.1", NULL },
    { "randk:0.1:unscaled", NULL }, { "randk:k=3", NULL }, { "randk:k=3:unscaled", NULL }, { "threshold:0.5", NULL },
    { "threshold:0", NULL }, { "topk:0.1|eliasfano", NULL }, { "topk:0.1|bitmap", NULL }, { "user:130:2:64:0.5", NULL },
    { "randk:0.1|topk:0.01|absmax:4:512", NULL }, { "randk:0.1|topk:k=9|minmax:3:64:nearest|bitmap", NULL },
    { "randk:0.123456789:unscaled|threshold:1.17549435e-38|absmax:8:4294967295:nearest|eliasfano", "" },
    { "topk:0.010", "topk:0.01" }, { "topk:1e-2", "topk:0.01" }, { "topk:1.0", "topk:1" },
    { "dense|topk:0.5", "topk:0.5" } };

TEST text_round_trip(const char *text, const char *prints) {
    cg_op op, again;
    char out[128], small[128];
    size_t cap, need;
    ASSERT_EQm(text, CG_OK, cg_op_parse(&op, text));
    ASSERT_EQm(text, CG_OK, cg_op_print(&op, out, sizeof out));
    if (!prints) ASSERT_STR_EQ(text, out);
    else if (*prints) ASSERT_STR_EQ(prints, out);
    ASSERT_EQm(out, CG_OK, cg_op_parse(&again, out));
    ASSERTm(text, same(&op, &again));
    need = strlen(out) + 1;
    for (cap = 0; cap <= need; cap++) {
        memset(small, 0x5A, sizeof small);
        ASSERT_EQm(text, cap < need ? CG_E_CAPACITY : CG_OK, cg_op_print(&op, small, cap));
        ASSERTm("wrote beyond cap", small[cap] == 0x5A);
    }
    PASS();
}

/* Every float must come back with the same bits, however awkward. */
TEST every_float_survives_print(void) {
    uint64_t state = 1;
    int i;
    for (i = 0; i < 20000; i++) {
        uint32_t r = ref_rand(&state),
                 bits = i < 64 ? (uint32_t)i
            : i < 128          ? 0x7f7fffffu - (uint32_t)i
                               : r & 0x7fffffffu;
        float v = ref_float(bits);
        cg_op op = ref_finite(v) ? cg_threshold(v) : cg_threshold(0.0f), again;
        char text[128];
        ASSERT_EQ(CG_OK, cg_op_print(&op, text, sizeof text));
        ASSERT_EQm(text, CG_OK, cg_op_parse(&again, text));
        ASSERTm(text, same(&op, &again));
        ASSERTm(text, strlen(text) <= strlen("threshold:") + 15);
        op = cg_topk((float)((double)(r | 1u) * 0x1p-32));
        ASSERT_EQ(CG_OK, cg_op_print(&op, text, sizeof text));
        ASSERT_EQm(text, CG_OK, cg_op_parse(&again, text));
        ASSERTm(text, same(&op, &again));
    }
    PASS();
}

/* Decimal text rounds as the C library rounds it: exactly up to nine digits, which name every float, and
   within one unit in the last place beyond. */
static const struct {
    const char *text;
    unsigned ulps;
} decimal[] = { { "0.1", 0 }, { "0.3", 0 }, { "0.7", 0 }, { "1e-45", 0 }, { "1.4e-45", 0 }, { "1.17549421e-38", 0 },
    { "3.4028235e38", 0 }, { "16777217", 0 }, { "16777219", 0 }, { "123456789", 0 }, { "0.000000001", 0 },
    { "1e-400", 0 }, { "1e+2", 0 }, { "1E2", 0 }, { "00.5", 0 }, { "8.5899346e9", 0 }, { "1.00000006", 0 },
    { "0.70064923216240854e-45", 1 }, { "1.1754943508222875e-38", 1 },
    { "3.40282346638528859811704183484516925440e38", 1 }, { "0.50000002980232238769531", 1 },
    { "0.500000029802322387695312500000000000000000001", 1 }, { "123456789012345678901234567890", 1 },
    { "0.000000000000000000000000000000000000000000001", 1 }, { "9007199254740993e-16", 1 } };

TEST parse_rounds_like_strtof(const char *number, unsigned ulps) {
    char text[128];
    cg_op op;
    uint32_t want = ref_bits(strtof(number, NULL)), got;
    snprintf(text, sizeof text, "threshold:%s", number);
    if (cg_op_parse(&op, text) != CG_OK) PASSm("refused"); /* some spellings need not be known */
    got = ref_bits(op.select.value);
    ASSERTm(number, (got > want ? got - want : want - got) <= ulps);
    PASS();
}

static const char *const bad[] = { "", " ", "|", "f16|", "|f16", "f16||sign", "f17", "f16:3", "dense:1", "sign:nearest",
    "absmax", "absmax:4", "absmax:4:", "absmax:0:64", "absmax:9:64", "absmax:4:0", "absmax:4:64:", "absmax:4:64:near",
    "absmax:4:64:nearest:nearest", "absmax:4:4294967296", "absmax:-4:64", "absmax:4.5:64", "absmax:4:64:unscaled",
    "minmax:12:64", "minmax:8:1e3", "minmax::64", "topk", "topk:", "topk:0", "topk:1.5", "topk:-0.1", "topk:nan",
    "topk:inf", "topk:0.1:unscaled", "topk:0.1x", "topk:k=", "topk:k=0", "topk:k=-1", "topk:k=1.5",
    "topk:k=18446744073709551616", "topk:0.1.2", "topk:.", "topk:1e", "topk:e5", "randk", "randk:0", "randk:2",
    "randk:0.1:nearest", "randk:0.1:unscaled:unscaled", "threshold", "threshold:-1", "threshold:inf", "threshold:1e39",
    "eliasfano:1", "bitmap:2", "eliasfano|bitmap", "topk:0.1|topk:0.2", "topk:0.1|threshold:1", "f16|bf16",
    "topk:k=2|randk:k=3", "user", "user:130", "user:127:0:0:0", "user:256:0:0:0", "user:130:65536:0:0",
    "user:130:0:0:nan", "absmax:4:512,topk:0.1", "golomb", "absmax:18446744073709551620:64" };

TEST text_refused(const char *text) {
    cg_op op = cg_minmax(3, 3), zero = CG_ZERO;
    ASSERT_EQm(text, CG_E_ARG, cg_op_parse(&op, text));
    ASSERTm("op is not zero after a bad text", same(&op, &zero));
    PASS();
}

/* Noise must be refused or parse to something that prints and parses to itself. */
TEST random_text_is_safe(void) {
    static const char *const word[] = { "topk", "randk", "absmax", "f16", "user", "dense", ":", "|", "k=", "0.1", "4",
        "64", "nearest", "unscaled", "1e-3", ".", "-", "bitmap", "200", "threshold" };
    uint64_t state = 3;
    int i, j;
    for (i = 0; i < 200000; i++) {
        char text[128] = "", out[128];
        cg_op op, again;
        for (j = (int)(ref_rand(&state) % 9); j >= 0; j--) strcat(text, word[ref_rand(&state) % 20]);
        if (cg_op_parse(&op, text) != CG_OK) continue;
        ASSERT_EQm(text, CG_OK, cg_op_print(&op, out, sizeof out));
        ASSERT_EQm(out, CG_OK, cg_op_parse(&again, out));
        ASSERTm(out, same(&op, &again));
    }
    PASS();
}

/* Every composition prints to text that parses to itself, in 128 bytes. */
TEST all_compositions_round_trip(void) {
    int s, t, c, q;
    for (s = 0; s < OPS_SAMPLES; s++)
        for (t = 0; t < OPS_SELECTS; t++)
            for (c = 0; c < (t ? OPS_CODES : 1); c++)
                for (q = 0; q < OPS_QUANTIZERS; q++) {
                    cg_op op = ops_compose(s, t, c, q, 512), again;
                    char text[128];
                    ASSERT_EQ(CG_OK, cg_op_print(&op, text, sizeof text));
                    ASSERT_EQm(text, CG_OK, cg_op_parse(&again, text));
                    ASSERTm(text, same(&op, &again));
                    ASSERTm(text, cg_bound(&op, 1000) >= CG_HEADER_BYTES);
                }
    PASS();
}

TEST statuses_and_version(void) {
    static const cg_status all[] = { CG_OK, CG_E_ARG, CG_E_CAPACITY, CG_E_CORRUPT, CG_E_VERSION, CG_E_MISMATCH,
        CG_E_NONFINITE, CG_E_TRANSPORT, CG_E_PEER, CG_E_MEMORY, CG_E_STATE, CG_E_UNSUPPORTED };
    size_t i, j;
    for (i = 0; i < sizeof all / sizeof *all; i++)
        for (j = 0; j < i; j++) ASSERT(strcmp(cg_status_str(all[i]), cg_status_str(all[j])) != 0);
    ASSERT(cg_status_str((cg_status)999) != NULL);
    ASSERT_STR_EQ(CG_VERSION_STRING, cg_version());
    PASS();
}

SUITE(operators) {
    size_t i;
    RUN_TEST(presets_fill_their_slot);
    RUN_TEST(text_and_c_share_names);
    RUN_TEST(rounds_of_rotation);
    RUN_TEST(mean_of_both_signs_is_refused);
    RUN_TEST(modifiers_are_refused_elsewhere);
    RUN_TEST(stages_out_of_order_are_refused);
    RUN_TEST(then_fills_empty_slots);
    RUN_TEST(null_op);
    RUN_TEST(bound_overflow_is_refused);
    RUN_TEST(statuses_and_version);
    for (i = 0; i < sizeof good / sizeof *good; i++) RUN_TESTp(text_round_trip, good[i].text, good[i].prints);
    for (i = 0; i < sizeof bad / sizeof *bad; i++) RUN_TEST1(text_refused, bad[i]);
    RUN_TEST(every_float_survives_print);
    for (i = 0; i < sizeof decimal / sizeof *decimal; i++)
        RUN_TESTp(parse_rounds_like_strtof, decimal[i].text, decimal[i].ulps);
    RUN_TEST(random_text_is_safe);
    RUN_TEST(all_compositions_round_trip);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(operators);
    RUN_SUITE(bad_operators);
    GREATEST_MAIN_END();
}
