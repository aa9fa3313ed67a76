/* What a call says in its report: which buffer is too small and by how much, which value is not finite, which n an
   operator takes, what is missing; and the sentence that cg_report_print makes of it. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include "compgrad_sketch.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"

enum { N = 3000 };
static float x[N], y[N];
static unsigned char packet[40000], scratch[1 << 20];

static cg_op parsed(const char *text) {
    cg_op op;
    if (cg_op_parse(&op, text) != CG_OK) {
        fprintf(stderr, "does not parse: %s\n", text);
        exit(1);
    }
    return op;
}
static const char *sentence(const cg_report *r) {
    static char text[400];
    if (cg_report_print(r, text, sizeof text) != CG_OK) return "does not fit";
    return text;
}
static void fill(void) { ref_fill(REF_GAUSSIAN, 5, x, N); }

/* ---- the sentence ---- */

TEST print(void) {
    cg_report r = CG_ZERO;
    char text[100];
    size_t cap;
    r.rank = -1;
    r.why = "ok";
    ASSERT_STR_EQ("ok", sentence(&r));
    r.why = NULL; /* as of a report that nobody has filled in */
    ASSERT_STR_EQ("ok", sentence(&r));
    r.rank = 2;
    r.why = "why";
    r.status = CG_E_MEMORY;
    r.need = UINT64_MAX;
    ASSERT_STR_EQ("rank 2: why; 18446744073709551615 bytes suffice", sentence(&r));
    r.status = CG_E_CAPACITY;
    r.need = 7;
    ASSERT_STR_EQ("rank 2: why; 7 bytes suffice", sentence(&r));
    r.status = CG_E_ARG;
    ASSERT_STR_EQ("rank 2: why; n must be 7", sentence(&r));
    r.status = CG_E_NONFINITE;
    ASSERT_STR_EQ("rank 2: why; value 0 is the first", sentence(&r));
    r.at = CG_NO_INDEX;
    ASSERT_STR_EQ("rank 2: why", sentence(&r));
    r.status = CG_E_TRANSPORT;
    r.code = -104;
    ASSERT_STR_EQ("rank 2: why; code -104", sentence(&r));
    r.code = INT32_MIN;
    ASSERT_STR_EQ("rank 2: why; code -2147483648", sentence(&r));
    /* as far as it fits, with a 0, and nothing behind it */
    for (cap = 0; cap < 60; cap++) {
        const size_t whole = strlen("rank 2: why; code -2147483648");
        memset(text, '#', sizeof text);
        ASSERT_EQ(cap > whole ? CG_OK : CG_E_CAPACITY, cg_report_print(&r, text, cap));
        if (cap) ASSERT(!strncmp(text, sentence(&r), cap - 1) && strlen(text) == (cap > whole ? whole : cap - 1));
        ASSERT_EQ('#', text[cap]);
    }
    ASSERT_EQ(CG_E_ARG, cg_report_print(NULL, text, sizeof text));
    ASSERT_STR_EQ("", text);
    ASSERT_EQ(CG_E_ARG, cg_report_print(&r, NULL, 0));
    PASS();
}

/* ---- compress ---- */

static cg_status compress(
    const cg_op *op, cg_extra extra, size_t n, size_t cap, size_t scratch_bytes, cg_report *report) {
    size_t len = 1;
    memset(report, 0x55, sizeof *report);
    extra.report = report;
    return cg_compress_with(op, NULL, &extra, x, n, packet, cap, &len, scratch, scratch_bytes);
}
TEST compress_says(const char *text) {
    const cg_op op = parsed(text);
    const cg_extra none = CG_ZERO;
    const size_t cap = cg_bound(&op, N), room = cg_scratch(&op, N);
    cg_report r;
    fill();
    ASSERT(cap <= sizeof packet && room <= sizeof scratch);
    ASSERT_EQm(text, CG_OK, compress(&op, none, N, cap, room, &r));
    ASSERT(r.status == CG_OK && r.rank == -1 && !strcmp(r.why, "ok") && r.need == 0 && r.at == CG_NO_INDEX);
    /* what it asks for is enough */
    ASSERT_EQm(text, CG_E_CAPACITY, compress(&op, none, N, CG_HEADER_BYTES, room, &r));
    ASSERT_EQ(CG_E_CAPACITY, r.status);
    ASSERTm(r.why, strstr(r.why, "packet") && strstr(r.why, "cg_bound"));
    ASSERT_EQ_FMT((unsigned long)cap, (unsigned long)r.need, "%lu");
    ASSERTm(sentence(&r), strstr(sentence(&r), "bytes suffice"));
    if (room) {
        ASSERT_EQm(text, CG_E_CAPACITY, compress(&op, none, N, cap, room - 1, &r));
        ASSERTm(r.why, strstr(r.why, "scratch"));
        ASSERT_EQ_FMT((unsigned long)room, (unsigned long)r.need, "%lu");
    }
    for (size_t at = 0; at < N; at += 1 + at / 2) {
        x[at] = ref_float(at % 2 ? 0x7fc00000u : 0xff800000u);
        x[N - 1] = x[at]; /* the first of two */
        ASSERT_EQm(text, CG_E_NONFINITE, compress(&op, none, N, cap, room, &r));
        ASSERT_EQ_FMT((unsigned long)at, (unsigned long)r.at, "%lu");
        ASSERT_EQ(CG_E_NONFINITE, r.status);
        fill();
    }
    PASS();
}
/* An operator that cannot do this n says which n it can. */
TEST another_n(const char *text, size_t n) {
    const cg_op op = parsed(text);
    const cg_extra none = CG_ZERO;
    cg_report r;
    char want[60];
    fill();
    ASSERT_EQm(text, CG_E_ARG, compress(&op, none, N, sizeof packet, sizeof scratch, &r));
    ASSERT_EQ_FMT((unsigned long)n, (unsigned long)r.need, "%lu");
    ASSERTm(r.why, strstr(r.why, "rows * cols"));
    snprintf(want, sizeof want, "n must be %lu", (unsigned long)n);
    ASSERTm(sentence(&r), strstr(sentence(&r), want));
    ASSERT_EQm("what it asks for works", CG_OK, compress(&op, none, n, sizeof packet, sizeof scratch, &r));
    PASS();
}
/* Every way of being refused has words of its own. */
TEST refused_arguments(void) {
    const cg_extra none = CG_ZERO;
    cg_extra extra = CG_ZERO;
    cg_op op = cg_topk(0.1f);
    cg_tag tag = CG_ZERO;
    cg_report r;
    size_t len;
    fill();
#define REFUSED(wanted, words)                                                                      \
  do {                                                                                              \
    ASSERT_ENUM_EQ(wanted, compress(&op, extra, N, sizeof packet, sizeof scratch, &r), ops_status); \
    ASSERT_ENUM_EQ(wanted, (cg_status)r.status, ops_status);                                        \
    ASSERTm(r.why, strstr(r.why, words));                                                           \
    extra = none;                                                                                   \
  } while (0)
    op = cg_topk(2.0f);
    REFUSED(CG_E_ARG, "selection");
    op = cg_absmax(9, 64);
    REFUSED(CG_E_ARG, "quantizer");
    op = cg_rotate(9);
    REFUSED(CG_E_ARG, "transform");
    op = cg_randk(0.0f);
    REFUSED(CG_E_ARG, "sample");
    op = cg_then(cg_f16(), cg_bf16());
    REFUSED(CG_E_ARG, "twice");
    op = cg_clipped(cg_f16());
    REFUSED(CG_E_ARG, "modifier");
    op = cg_lloyd(2.0f);
    REFUSED(CG_E_ARG, "lloyd needs rotate");
    op = cg_f16();
    op.reserved = 1;
    REFUSED(CG_E_ARG, "reserved");
    op = cg_user(130, 0, 0, 0.0f);
    REFUSED(CG_E_ARG, "cg_extra.codecs");
    op = cg_adacomp(50);
    REFUSED(CG_E_ARG, "aux");
    op = cg_given();
    REFUSED(CG_E_ARG, "support");
    extra.support = packet;
    extra.support_len = 100;
    REFUSED(CG_E_CORRUPT, "support");
    op = cg_f16();
    extra.aux = y;
    REFUSED(CG_E_UNSUPPORTED, "aux");
    extra.flags = 1u << 30;
    REFUSED(CG_E_ARG, "flag");
    op = cg_absmax(4, 512);
    y[0] = -1.0f;
    extra.scale = y;
    REFUSED(CG_E_ARG, "scale");
    op = cg_variance(1.0f);
    ref_fill(REF_GAUSSIAN, 6, y, N);
    y[77] = ref_float(0x7f800000u);
    extra.aux = y;
    REFUSED(CG_E_NONFINITE, "aux");
    ASSERT_EQ_FMT(77ul, (unsigned long)r.at, "%lu");
    extra.report = &r;
    op = cg_permk(4);
    tag.rank = 4;
    ASSERT_EQ(CG_E_ARG, cg_compress_with(&op, &tag, &extra, x, N, packet, sizeof packet, &len, NULL, 0));
    ASSERTm(r.why, strstr(r.why, "permk"));
    ASSERT_EQ(CG_E_ARG, cg_compress_with(NULL, NULL, &extra, x, N, packet, sizeof packet, &len, NULL, 0));
    ASSERTm(r.why, strstr(r.why, "op is NULL"));
    op = cg_f16();
    ASSERT_EQ(CG_E_ARG, cg_compress_with(&op, NULL, &extra, NULL, N, packet, sizeof packet, &len, NULL, 0));
    ASSERTm(r.why, strstr(r.why, "x is NULL"));
    ASSERT_EQ(CG_E_ARG, cg_compress_with(&op, NULL, &extra, x, N, NULL, sizeof packet, &len, NULL, 0));
    ASSERTm(r.why, strstr(r.why, "packet is NULL"));
    ASSERT_EQ(CG_E_ARG, cg_compress_with(&op, NULL, &extra, x, N, packet, sizeof packet, NULL, NULL, 0));
    ASSERTm(r.why, strstr(r.why, "len is NULL"));
    ASSERT_EQ(CG_E_ARG, cg_compress_with(&op, NULL, &extra, x, N, packet, sizeof packet, &len, NULL, 8));
    ASSERTm(r.why, strstr(r.why, "scratch is NULL"));
    ASSERT_EQ(CG_E_ARG, cg_compress_with(&op, NULL, &extra, x, SIZE_MAX / 2, packet, sizeof packet, &len, NULL, 0));
    ASSERTm(r.why, strstr(r.why, "n is too large"));
    PASS();
}

/* cg_status_str fits every call that returns the status: it names no call of another. */
TEST status_texts(void) {
    static const cg_status all[] = { CG_OK, CG_E_ARG, CG_E_CAPACITY, CG_E_CORRUPT, CG_E_VERSION, CG_E_MISMATCH,
        CG_E_NONFINITE, CG_E_TRANSPORT, CG_E_PEER, CG_E_MEMORY, CG_E_STATE, CG_E_UNSUPPORTED };
    static const char *const of_one_call[] = { "cg_bound", "cg_scratch", "cg_compress", "gradient", "packet", "bits",
        "bucket" };
    char text[3];
    const cg_op op = cg_topk(0.1f);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        cg_report r = CG_ZERO;
        for (size_t j = 0; j < sizeof of_one_call / sizeof *of_one_call; j++)
            ASSERTm(cg_status_str(all[i]), !strstr(cg_status_str(all[i]), of_one_call[j]));
        r.rank = INT32_MAX; /* the longest sentence fits */
        r.status = (uint32_t)all[i];
        r.code = INT32_MIN;
        r.need = UINT64_MAX;
        r.at = UINT64_MAX - 1;
        ASSERTm(cg_status_str(all[i]), strcmp(sentence(&r), "does not fit"));
    }
    ASSERT_EQ(CG_E_CAPACITY, cg_op_print(&op, text, sizeof text));
    PASS();
}

SUITE(core) {
    static const char *const ops[] = { "dense", "f16", "sign", "absmax:4:64", "minmax:8:512", "terngrad", "levels:7:64",
        "onebit:64", "natural", "e4m3:64", "topk:0.05", "threshold:0.1", "dgc:0.05", "mstopk:0.05", "sidco:0.05",
        "wangni:0.05", "sides:0.05", "chunked:64:0.1", "rotate:2|absmax:4:64", "dct|topk:0.1", "eden:2", "blocks:64",
        "topk:0.05|absmax:4:64|golomb", "absmax:4:64|huffman", "lowrank:2:60:50", "atomo:2:60:50" };
    RUN_TEST(print);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) RUN_TEST1(compress_says, ops[i]);
    RUN_TESTp(another_n, "lowrank:4:20:30", 600);
    RUN_TESTp(another_n, "atomo:4:7:11", 77);
    RUN_TEST(refused_arguments);
    RUN_TEST(status_texts);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(core);
    GREATEST_MAIN_END();
}
