/* What a call says in its report: which buffer is too small and by how much, which value is not finite, which n an
   operator takes, what is missing; and the sentence that cg_report_print makes of it. */
#include "examples/transport_threads.h"
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
    op = parsed("side:0.1|mean");
    op.select.id = CG_SELECT_TOPK;
    REFUSED(CG_E_ARG, "mean needs side");
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
    static const char *const of_one_call[] = { "cg_bound", "cg_scratch", "cg_compress", "cg_ef", "gradient", "packet",
        "bits", "bucket" };
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

/* ---- exchanges of three ranks; rank 1 is the one that fails ---- */

enum { RANKS = 3, GUILTY = 1, LAYERS = 4 };
static const size_t LENGTHS[LAYERS] = { 30, 2000, 50, 600 };
typedef struct job {
    const char *op, *back;
    uint32_t route, fold, flags, flags_of_1; /* flags_of_1: of rank 1, beside flags */
    size_t n, bytes, at; /* bytes: of rank 1's mem; SIZE_MAX: what is asked for. at: of its NaN; n or more: none */
    int layers, layer;   /* layers: many at once; layer: that of the NaN */
    size_t asked[RANKS];
    float x[RANKS][N], parts[RANKS][LAYERS][N];
    cg_layer layer_of[RANKS][LAYERS];
    cg_status status[RANKS];
    cg_report report[RANKS];
} job;
static job J;

static int run_layers(job *j, const cg_transport *t) {
    cg_layer *l = j->layer_of[t->rank];
    void *mem;
    memset(l, 0x55, sizeof j->layer_of[t->rank]); /* nothing old must be left */
    for (int i = 0; i < LAYERS; i++) {
        memset(&l[i].desc, 0, sizeof l[i].desc);
        l[i].desc.op = parsed(i == 3 ? j->op : "absmax:8:64");
        l[i].desc.route = j->route;
        l[i].desc.flags = j->flags;
        l[i].desc.tag.tensor = (uint32_t)i;
        l[i].n = LENGTHS[i];
        l[i].x = j->parts[t->rank][i];
        ref_fill(REF_GAUSSIAN, (unsigned)(9 + i), l[i].x, l[i].n);
    }
    if (t->rank == GUILTY && j->at < LENGTHS[j->layer]) l[j->layer].x[j->at] = ref_float(0x7fc00000u);
    j->asked[t->rank] = cg_exchange_layers_memory(l, LAYERS, 100, t);
    mem = malloc(j->asked[t->rank] + 1);
    j->status[t->rank] = cg_exchange_layers(l, LAYERS, 100, t, mem,
        t->rank == GUILTY && j->bytes < j->asked[t->rank] ? j->bytes : j->asked[t->rank], &j->report[t->rank]);
    free(mem);
    return 0;
}
static int worker(cg_threads_world *world, int rank, void *user) {
    job *j = (job *)user;
    const cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    cg_exchange_desc d = CG_ZERO;
    cg_op back;
    void *mem;
    cg_threads_timeout(world, 3000);
    if (j->layers) return run_layers(j, &t);
    d.op = parsed(j->op);
    d.route = j->route;
    d.fold = j->fold;
    d.flags = j->flags | (rank == 1 ? j->flags_of_1 : 0);
    if (j->back) {
        back = parsed(j->back);
        d.back = &back;
    }
    ref_fill(REF_GAUSSIAN, 5, j->x[rank], j->n);
    if (rank == GUILTY && j->at < j->n) j->x[rank][j->at] = ref_float(0xff800000u);
    j->asked[rank] = cg_exchange_memory(&d, &t, j->n);
    mem = malloc(j->asked[rank] + 1);
    j->status[rank] = cg_exchange(&d, &t, j->x[rank], j->n, mem,
        rank == GUILTY && j->bytes < j->asked[rank] ? j->bytes : j->asked[rank], &j->report[rank]);
    free(mem);
    return 0;
}
static void run(const char *op, uint32_t route, size_t n, size_t bytes, size_t at) {
    const char *back = J.back;
    const uint32_t fold = J.fold, flags = J.flags, flags_of_1 = J.flags_of_1;
    const int layers = J.layers, layer = J.layer;
    memset(&J, 0x55, sizeof J);
    J.back = back;
    J.fold = fold;
    J.flags = flags;
    J.flags_of_1 = flags_of_1;
    J.layers = layers;
    J.layer = layer;
    J.op = op;
    J.route = route;
    J.n = n;
    J.bytes = bytes;
    J.at = at;
    if (cg_threads_run(RANKS, worker, &J)) exit(1);
}
static void plain(void) { memset(&J, 0, sizeof J); }
/* Rank 1 has this status, the others have heard of it. */
static int only_guilty(cg_status s) {
    int fine = 1;
    for (int r = 0; r < RANKS; r++) {
        const cg_status want = r == GUILTY ? s : CG_E_PEER;
        fine &= J.status[r] == want && J.report[r].status == (uint32_t)want && J.report[r].rank == GUILTY;
    }
    return fine;
}

static const struct {
    const char *op;
    uint32_t route;
} WAYS[] = { { "topk:0.05", CG_ROUTE_ALLGATHER }, { "dense", CG_ROUTE_LINEAR }, { "absmax:8:64", CG_ROUTE_SCATTER },
    { "absmax:8:64", CG_ROUTE_RING }, { "dense", CG_ROUTE_RING }, { "topk:0.05", CG_ROUTE_SHARED },
    { "topk:0.05", CG_ROUTE_REGION }, { "topk:0.05", CG_ROUTE_MERGE }, { "efsign", CG_ROUTE_ALLGATHER },
    { "lowrank:2:60:50", CG_ROUTE_LINEAR }, { "absmax:8:64", CG_ROUTE_SERVER }, { "terngrad", CG_ROUTE_TREE } };
enum { WAY_COUNT = sizeof WAYS / sizeof *WAYS };

TEST exchange_says(int w) {
    static const size_t places[] = { 0, 1, 999, 1000, 1500, N - 1 };
    plain();
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        run(WAYS[w].op, WAYS[w].route, N, SIZE_MAX, places[i]);
        ASSERTm(WAYS[w].op, only_guilty(CG_E_NONFINITE));
        ASSERT_EQ_FMT((unsigned long)places[i], (unsigned long)J.report[GUILTY].at, "%lu");
        ASSERT_EQ(CG_NO_INDEX, J.report[0].at);
        ASSERTm(sentence(&J.report[GUILTY]), !strncmp(sentence(&J.report[GUILTY]), "rank 1: ", 8));
        ASSERT_EQ(WAYS[w].route, J.report[GUILTY].route);
    }
    for (size_t less = 1; less <= 2; less++) {
        run(WAYS[w].op, WAYS[w].route, N, less == 1 ? 100 : J.asked[GUILTY] / 2, N);
        ASSERTm(WAYS[w].op, only_guilty(CG_E_MEMORY));
        ASSERT_EQ_FMT((unsigned long)J.asked[GUILTY], (unsigned long)J.report[GUILTY].need, "%lu");
        ASSERTm(J.report[GUILTY].why,
            strstr(J.report[GUILTY].why, "mem ") && strstr(J.report[GUILTY].why, "cg_exchange_memory"));
    }
    run(WAYS[w].op, WAYS[w].route, N, J.asked[GUILTY], N);
    ASSERT_EQ(CG_OK, J.status[GUILTY]);
    ASSERT(J.report[GUILTY].status == CG_OK && !J.report[GUILTY].need && J.report[GUILTY].at == CG_NO_INDEX);
    PASS();
}
TEST exchange_another_n(const char *op, const char *back, size_t n) {
    plain();
    J.back = back;
    run(op, back ? CG_ROUTE_SERVER : CG_ROUTE_AUTO, N, SIZE_MAX, N);
    for (int r = 0; r < RANKS; r++) {
        ASSERT_EQm(op, CG_E_ARG, J.status[r]);
        ASSERT_EQ(r, J.report[r].rank);
        ASSERT_EQ_FMT((unsigned long)n, (unsigned long)J.report[r].need, "%lu");
        ASSERTm(J.report[r].why, strstr(J.report[r].why, "rows * cols"));
    }
    PASS();
}
TEST exchange_null(void) {
    const cg_exchange_desc d = CG_ZERO;
    cg_transport t = CG_ZERO;
    cg_report r;
    ASSERT_EQ(CG_E_ARG, cg_exchange(NULL, &t, x, N, NULL, 0, &r));
    ASSERTm(r.why, strstr(r.why, "NULL") && r.status == CG_E_ARG);
    ASSERT_EQ(CG_E_ARG, cg_exchange(&d, &t, x, N, NULL, 0, &r)); /* a transport of no ranks */
    ASSERTm(r.why, strstr(r.why, "rank must be") && r.status == CG_E_ARG);
    ASSERT_EQ(CG_E_ARG, cg_exchange_layers(NULL, 1, 0, &t, NULL, 0, &r));
    ASSERTm(r.why, strstr(r.why, "NULL") && r.status == CG_E_ARG);
    ASSERT_EQ(CG_E_ARG, cg_exchange_layers(NULL, 0, 0, &t, NULL, 0, &r));
    ASSERTm(r.why, strstr(r.why, "rank must be") && r.status == CG_E_ARG);
    PASS();
}

/* A biased operator without error feedback is exchanged, and the report says what that means. */
static const struct {
    const char *op, *why;
    uint32_t fold, flags;
} WARNINGS[] = { { "topk:0.05", "ok; topk is biased: without compgrad_ef.h training stalls", 0, 0 },
    { "topk:0.05", "ok", 0, CG_FEEDS_BACK },
    { "topk:0.05", "ok; topk is biased: without compgrad_ef.h training stalls", CG_FOLD_SUM, 0 },
    { "dgc:0.05|absmax:4:64", "ok; dgc is biased: without compgrad_ef.h training stalls", 0, 0 },
    { "efsign", "ok; efsign is biased: without compgrad_ef.h training stalls", 0, 0 },
    { "sign", "ok; sign is biased: without compgrad_ef.h training stalls", 0, 0 }, { "sign", "ok", CG_FOLD_VOTE, 0 },
    { "lowrank:2:60:50", "ok; lowrank is biased: without compgrad_ef.h training stalls", 0, 0 },
    { "randk:0.1:unscaled", "ok; randk:unscaled is biased: without compgrad_ef.h training stalls", 0, 0 },
    { "stc:0.05", "ok; topk is biased: without compgrad_ef.h training stalls", 0, 0 }, { "randk:0.1", "ok", 0, 0 },
    { "dense", "ok", 0, 0 }, { "f16", "ok", 0, 0 }, { "absmax:4:64", "ok", 0, 0 }, { "wangni:0.05", "ok", 0, 0 },
    { "eden:1", "ok", 0, 0 }, { "terngrad", "ok", 0, 0 }, { "atomo:2:60:50", "ok", 0, 0 } };

TEST exchange_warns(size_t i) {
    plain();
    J.fold = WARNINGS[i].fold;
    J.flags = WARNINGS[i].flags;
    run(WARNINGS[i].op, CG_ROUTE_AUTO, N, SIZE_MAX, N);
    for (int r = 0; r < RANKS; r++) {
        ASSERT_EQm(WARNINGS[i].op, CG_OK, J.status[r]);
        ASSERT_STR_EQ(WARNINGS[i].why, J.report[r].why);
        /* behind it why CG_ROUTE_AUTO took this route */
        ASSERT(J.report[r].choice && !strncmp(J.report[r].choice, "auto: ", 6));
        ASSERT_EQ(sentence(&J.report[r]), strstr(sentence(&J.report[r]), WARNINGS[i].why));
        ASSERT(
            strstr(sentence(&J.report[r]), J.report[r].choice) == sentence(&J.report[r]) + strlen(WARNINGS[i].why) + 2);
        ASSERT(J.report[r].status == CG_OK && J.report[r].rank == -1 && J.report[r].route != CG_ROUTE_AUTO);
    }
    PASS();
}

TEST ranks_need_not_all_feed_back(void) {
    plain();
    J.flags_of_1 = CG_FEEDS_BACK;
    run("topk:0.05", CG_ROUTE_AUTO, N, SIZE_MAX, N);
    J.flags_of_1 = 0;
    for (int r = 0; r < RANKS; r++) {
        ASSERT_ENUM_EQ(CG_OK, J.status[r], ops_status);
        ASSERT_STR_EQ(WARNINGS[r == 1].why, J.report[r].why);
    }
    PASS();
}

/* Layers 0 and 2 travel as one vector, 1 and 3 by themselves. */
TEST layers_say(void) {
    plain();
    J.layers = 1;
    run("topk:0.05", CG_ROUTE_ALLGATHER, 0, SIZE_MAX, SIZE_MAX);
    for (int r = 0; r < RANKS; r++) {
        ASSERT_ENUM_EQ(CG_OK, J.status[r], ops_status);
        ASSERT_STR_EQ("ok; topk is biased: without compgrad_ef.h training stalls", J.report[r].why);
        ASSERT_EQ_FMT((unsigned)CG_ROUTE_AUTO, J.report[r].route, "%u"); /* the small ones: linear */
        for (int i = 0; i < LAYERS; i++) {
            const cg_report *q = &J.layer_of[r][i].report;
            ASSERT_STR_EQ(i == 3 ? "ok; topk is biased: without compgrad_ef.h training stalls" : "ok", q->why);
            ASSERT_EQ_FMT((unsigned)(i % 2 ? CG_ROUTE_ALLGATHER : CG_ROUTE_LINEAR), q->route, "%u");
            ASSERT(q->status == CG_OK && q->at == CG_NO_INDEX);
        }
    }
    run("dense", CG_ROUTE_AUTO, 0, SIZE_MAX, SIZE_MAX);
    ASSERT_STR_EQ("ok", J.report[0].why);
    run("dense", CG_ROUTE_LINEAR, 0, SIZE_MAX, SIZE_MAX); /* absmax cannot take it */
    ASSERT_EQ(CG_E_UNSUPPORTED, J.status[0]);
    ASSERTm(J.report[0].why, strstr(J.report[0].why, "linear"));
    ASSERT_EQ_FMT((unsigned)CG_ROUTE_LINEAR, J.report[0].route, "%u");
    PASS();
}
TEST layers_not_finite(int layer, size_t at) {
    plain();
    J.layers = 1;
    J.layer = layer;
    run("topk:0.05", CG_ROUTE_ALLGATHER, 0, SIZE_MAX, at);
    ASSERT(only_guilty(CG_E_NONFINITE));
    ASSERT_EQ_FMT((unsigned long)at, (unsigned long)J.report[GUILTY].at, "%lu");
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < LAYERS; i++) {
            const cg_layer *l = &J.layer_of[r][i];
            ASSERT_EQ_FMT(i == layer && r == GUILTY ? (unsigned long)at : (unsigned long)CG_NO_INDEX,
                (unsigned long)l->report.at, "%lu");
            ASSERT_EQ(J.status[r], l->status);
            ASSERT(l->report.status == (uint32_t)l->status && l->report.rank == GUILTY && !l->report.used);
            ASSERT(l->report.why && l->report.route == (i % 2 ? CG_ROUTE_ALLGATHER : CG_ROUTE_LINEAR));
        }
    PASS();
}
TEST layers_another_n(void) {
    plain();
    J.layers = 1;
    run("lowrank:4:7:11", CG_ROUTE_AUTO, 0, SIZE_MAX, SIZE_MAX); /* layer 3 has 600 values */
    for (int r = 0; r < RANKS; r++) {
        ASSERT_ENUM_EQ(CG_E_ARG, J.status[r], ops_status);
        ASSERTm(J.report[r].why, strstr(J.report[r].why, "rows * cols"));
        ASSERT_EQ_FMT(77ul, (unsigned long)J.report[r].need, "%lu");
        for (int i = 0; i < LAYERS; i++)
            ASSERT_EQ_FMT(i == 3 ? 77ul : 0ul, (unsigned long)J.layer_of[r][i].report.need, "%lu");
    }
    PASS();
}
TEST layers_memory(void) {
    plain();
    J.layers = 1;
    for (int i = 0; i < 2; i++) {
        run("topk:0.05", CG_ROUTE_ALLGATHER, 0, i ? J.asked[GUILTY] / 2 : 100, SIZE_MAX);
        ASSERT(only_guilty(CG_E_MEMORY));
        ASSERT_EQ_FMT((unsigned long)J.asked[GUILTY], (unsigned long)J.report[GUILTY].need, "%lu");
        ASSERTm(J.report[GUILTY].why, strstr(J.report[GUILTY].why, "cg_exchange_layers_memory"));
        for (int r = 0; r < RANKS; r++)
            for (int k = 0; k < LAYERS; k++) {
                ASSERT_EQ(J.status[r], J.layer_of[r][k].status);
                ASSERT_EQ(J.status[r], (cg_status)J.layer_of[r][k].report.status);
                ASSERT_EQ_FMT(
                    r == GUILTY ? (unsigned long)J.asked[r] : 0ul, (unsigned long)J.layer_of[r][k].report.need, "%lu");
            }
    }
    PASS();
}

SUITE(exchange) {
    for (int i = 0; i < WAY_COUNT; i++) RUN_TEST1(exchange_says, i);
    RUN_TESTp(exchange_another_n, "lowrank:4:20:30", NULL, 600);
    RUN_TESTp(exchange_another_n, "topk:0.1", "lowrank:4:7:11", 77);
    RUN_TEST(exchange_null);
    for (size_t i = 0; i < sizeof WARNINGS / sizeof *WARNINGS; i++) RUN_TEST1(exchange_warns, i);
    RUN_TEST(ranks_need_not_all_feed_back);
    RUN_TEST(layers_say);
    RUN_TESTp(layers_not_finite, 0, 29);
    RUN_TESTp(layers_not_finite, 1, 1999);
    RUN_TESTp(layers_not_finite, 2, 0);
    RUN_TESTp(layers_not_finite, 2, 49);
    RUN_TESTp(layers_not_finite, 3, 17);
    RUN_TEST(layers_another_n);
    RUN_TEST(layers_memory);
}

/* ---- error feedback ---- */

static cg_ef_desc ef_desc(const char *op, uint32_t kind) {
    cg_ef_desc d = CG_ZERO;
    d.op = parsed(op);
    d.n = N;
    d.kind = kind;
    if (kind == CG_EF_LAQ) d.laq_step = 0.1f;
    return d;
}
/* What the state says of its last call. */
static cg_report last(const cg_ef *ef) {
    cg_report r;
    memset(&r, 0x55, sizeof r);
    cg_ef_report(ef, &r);
    return r;
}
#define EF_SAYS(want, words)                                \
  do {                                                      \
    const cg_report r_ = last(&ef);                         \
    ASSERT_ENUM_EQ(want, (cg_status)r_.status, ops_status); \
    ASSERTm(r_.why, strstr(r_.why, words));                 \
  } while (0)

TEST ef_init_says(void) {
    cg_ef_desc d = ef_desc("lowrank:2:20:30", CG_EF_CLASSIC);
    cg_ef_rule rule = CG_ZERO;
    cg_ef ef;
    void *mem;
    size_t bytes, len = 5;
    cg_report r;
    memset(&ef, 0x55, sizeof ef);
    ASSERT_EQ(CG_E_ARG, cg_ef_init(&ef, &d, scratch, sizeof scratch));
    EF_SAYS(CG_E_ARG, "rows * cols");
    ASSERT_EQ_FMT(600ul, (unsigned long)last(&ef).need, "%lu");
    /* and it cannot be used by accident */
    ASSERT_EQ(CG_E_STATE, cg_ef_compress(&ef, NULL, x, packet, sizeof packet, &len));
    EF_SAYS(CG_E_STATE, "cg_ef_init");
    ASSERT_EQ(5u, len);
    ASSERT_EQ(CG_E_STATE, cg_ef_commit(&ef, packet, 5, NULL));
    EF_SAYS(CG_E_STATE, "cg_ef_init");
    d.op = cg_topk(0.1f);
    rule.last = 5;
    rule.op = cg_atomo(7, 11, 2);
    d.rules = &rule;
    d.rule_count = 1;
    ASSERT_EQ(CG_E_ARG, cg_ef_init(&ef, &d, scratch, sizeof scratch));
    ASSERT_EQ_FMT(77ul, (unsigned long)last(&ef).need, "%lu");
    d.rule_count = 0;
    d.op = cg_topk(2.0f);
    ASSERT_EQ(CG_E_ARG, cg_ef_init(&ef, &d, scratch, sizeof scratch));
    EF_SAYS(CG_E_ARG, "selection");
    d.op = cg_topk(0.1f);
    d.clip = -1.0f;
    ASSERT_EQ(CG_E_ARG, cg_ef_init(&ef, &d, scratch, sizeof scratch));
    EF_SAYS(CG_E_ARG, "desc");
    d.clip = 0.0f;
    d.momentum = 0.5f;
    ASSERT_EQ(CG_E_UNSUPPORTED, cg_ef_init(&ef, &d, scratch, sizeof scratch));
    EF_SAYS(CG_E_UNSUPPORTED, "kind");
    d.momentum = 0.0f;
    d.n = 0;
    ASSERT_EQ(CG_E_ARG, cg_ef_init(&ef, &d, scratch, sizeof scratch));
    EF_SAYS(CG_E_ARG, "desc.n");
    ASSERT_EQ(CG_E_ARG, cg_ef_init(&ef, NULL, scratch, sizeof scratch));
    EF_SAYS(CG_E_ARG, "desc is NULL");
    d.n = N;
    bytes = cg_ef_memory(&d);
    ASSERT_EQ(CG_E_MEMORY, cg_ef_init(&ef, &d, scratch, bytes / 2));
    EF_SAYS(CG_E_MEMORY, "cg_ef_memory");
    r = last(&ef);
    ASSERT_EQ_FMT((unsigned long)bytes, (unsigned long)r.need, "%lu");
    mem = malloc((size_t)r.need);
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &d, mem, (size_t)r.need));
    EF_SAYS(CG_OK, "ok");
    ASSERT_EQ(CG_E_STATE, cg_ef_commit(&ef, packet, 5, NULL));
    EF_SAYS(CG_E_STATE, "cg_ef_compress");
    ASSERT_EQ(CG_E_STATE, cg_ef_rollback(&ef, NULL, 0));
    EF_SAYS(CG_E_STATE, "cg_ef_compress");
    free(mem);
    PASS();
}
/* A list of candidates has room for 2 k + 65536 values at most: only for more values does it depend on the ratio. */
TEST ef_set_ratio_says(void) {
    cg_ef_desc d = ef_desc("topk:0.1", CG_EF_CLASSIC);
    cg_ef ef;
    void *mem;
    size_t need;
    d.n = 100000;
    mem = malloc(cg_ef_memory(&d));
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &d, mem, cg_ef_memory(&d)));
    ASSERT_EQ(CG_E_MEMORY, cg_ef_set_ratio(&ef, 1.0f));
    EF_SAYS(CG_E_MEMORY, "mem of cg_ef_init");
    need = (size_t)last(&ef).need;
    d.op = cg_topk(1.0f);
    ASSERT_EQ_FMT((unsigned long)cg_ef_memory(&d), (unsigned long)need, "%lu");
    ASSERT_EQ(CG_E_ARG, cg_ef_set_ratio(&ef, 2.0f));
    EF_SAYS(CG_E_ARG, "ratio");
    ASSERT_EQ(CG_OK, cg_ef_set_ratio(&ef, 0.05f));
    EF_SAYS(CG_OK, "ok");
    ASSERT_EQ(5000u, (unsigned)(ef.desc.op.select.value * 100000.0f + 0.5f));
    free(mem);
    PASS();
}
/* The second of two compresses names the call that is missing, and leaves *len alone. */
TEST ef_second_compress(void) {
    const cg_ef_desc d = ef_desc("topk:0.1", CG_EF_CLASSIC);
    const size_t bytes = cg_ef_memory(&d), bound = cg_ef_bound(&d);
    void *mem = malloc(bytes);
    cg_extra extra = CG_ZERO;
    cg_ef ef;
    cg_report r;
    size_t len = 0, before;
    fill();
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &d, mem, bytes));
    ASSERT_EQ(CG_E_CAPACITY, cg_ef_compress(&ef, NULL, x, packet, bound - 1, &len));
    EF_SAYS(CG_E_CAPACITY, "cg_ef_bound");
    ASSERT_EQ_FMT((unsigned long)bound, (unsigned long)last(&ef).need, "%lu");
    ASSERT_EQ(CG_OK, cg_ef_compress(&ef, NULL, x, packet, bound, &len));
    EF_SAYS(CG_OK, "ok");
    ASSERT(len > CG_HEADER_BYTES);
    before = len;
    ASSERT_EQ(CG_E_STATE, cg_ef_compress(&ef, NULL, x, packet, bound, &len));
    ASSERT_EQ(before, len);
    EF_SAYS(CG_E_STATE, "cg_ef_commit or cg_ef_rollback");
    extra.report = &r;
    memset(&r, 0x55, sizeof r);
    ASSERT_EQ(CG_E_STATE, cg_ef_compress_with(&ef, NULL, &extra, x, packet, bound, &len));
    ASSERT(before == len && r.status == CG_E_STATE && strstr(r.why, "cg_ef_commit or cg_ef_rollback"));
    ASSERT_EQ(CG_E_MISMATCH, cg_ef_commit(&ef, packet, 0, NULL));
    EF_SAYS(CG_E_MISMATCH, "used");
    ASSERT_EQ(CG_E_CORRUPT, cg_ef_commit(&ef, packet, len - 4, NULL));
    EF_SAYS(CG_E_CORRUPT, "used");
    ASSERT_EQ(CG_E_ARG, cg_ef_commit(&ef, NULL, len, NULL));
    EF_SAYS(CG_E_ARG, "used is NULL");
    ASSERT_EQ(CG_OK, cg_ef_commit(&ef, packet, len, NULL));
    EF_SAYS(CG_OK, "ok");
    free(mem);
    PASS();
}
TEST ef_not_finite(uint32_t kind) {
    const cg_ef_desc d = ef_desc(kind == CG_EF_VARIANCE ? "variance:1"
            : kind == CG_EF_DIANA || kind == CG_EF_LAQ  ? "absmax:8:64"
                                                        : "topk:0.1",
        kind);
    const size_t bytes = cg_ef_memory(&d);
    void *mem = malloc(bytes);
    cg_extra extra = CG_ZERO;
    cg_ef ef;
    cg_report r;
    size_t len;
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &d, mem, bytes));
    extra.report = &r;
    for (size_t i = 0; i < N; i++) y[i] = 1.0f;
    if (kind == CG_EF_VARIANCE) {
        ASSERT_EQ(CG_E_ARG, cg_ef_compress(&ef, NULL, x, packet, sizeof packet, &len));
        EF_SAYS(CG_E_ARG, "aux");
        extra.aux = y;
    }
    for (size_t at = 0; at < N; at += 1 + at) {
        fill();
        x[at] = ref_float(0x7fc00000u);
        ASSERT_EQ(CG_E_NONFINITE, cg_ef_compress_with(&ef, NULL, &extra, x, packet, sizeof packet, &len));
        ASSERT_EQ_FMT((unsigned long)at, (unsigned long)r.at, "%lu");
        ASSERT_EQ_FMT((unsigned long)at, (unsigned long)last(&ef).at, "%lu");
    }
    fill();
    if (kind == CG_EF_VARIANCE) {
        y[5] = ref_float(0x7f800000u);
        ASSERT_EQ(CG_E_NONFINITE, cg_ef_compress_with(&ef, NULL, &extra, x, packet, sizeof packet, &len));
        ASSERT(strstr(r.why, "aux") && r.at == 5);
        y[5] = 1.0f;
    }
    ASSERT_EQ(CG_OK, cg_ef_compress_with(&ef, NULL, &extra, x, packet, sizeof packet, &len));
    ASSERT(r.status == CG_OK && !strcmp(r.why, "ok"));
    if (kind >= CG_EF_EF21) {
        ASSERT_EQ(CG_E_ARG, cg_ef_commit(&ef, packet, len, NULL));
        EF_SAYS(CG_E_ARG, "mean is NULL");
        y[9] = ref_float(0x7f800000u);
        ASSERT_EQ(CG_E_NONFINITE, cg_ef_commit(&ef, packet, len, y));
        EF_SAYS(CG_E_NONFINITE, "mean");
        ASSERT_EQ(9u, last(&ef).at);
    }
    free(mem);
    PASS();
}

/* One rank alone: what is refused before any message. */
static cg_op bad_policy(void *user, const cg_tag *tag, size_t n, cg_op planned) {
    (void)tag;
    (void)n;
    return *(int *)user ? cg_then(cg_rotate(2), planned) : planned; /* which needs more scratch */
}
TEST ef_exchange_says(void) {
    cg_ef_desc d = ef_desc("topk:0.1", CG_EF_CLASSIC);
    cg_exchange_desc e = CG_ZERO;
    cg_transport t = CG_ZERO;
    cg_ef ef;
    cg_report r;
    cg_op absmax_nearest = parsed("absmax:4:64:nearest");
    int choose = 0;
    void *mem = malloc(1u << 20), *work = malloc(1u << 20);
    size_t bytes, len, want;
    t.size = 1;
    d.policy = bad_policy;
    d.policy_user = &choose;
    fill();
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &d, mem, 1u << 20));
    bytes = cg_ef_exchange_memory(&ef, &e, &t);
    ASSERT(bytes && bytes < 1u << 20);
    ASSERT_EQ(CG_OK, cg_ef_exchange(&ef, &e, &t, x, work, bytes, &r));
    ASSERT_STR_EQ("ok", r.why); /* no warning: this is error feedback */
    ASSERT(last(&ef).route == r.route && r.route && !last(&ef).used);
    ASSERT_EQ(CG_E_MEMORY, cg_ef_exchange(&ef, &e, &t, x, work, bytes / 2, &r));
    ASSERTm(r.why, strstr(r.why, "cg_ef_exchange_memory") && r.status == CG_E_MEMORY && r.rank == 0);
    ASSERT_EQ_FMT((unsigned long)bytes, (unsigned long)r.need, "%lu");
    EF_SAYS(CG_E_MEMORY, "cg_ef_exchange_memory");
    x[1234] = ref_float(0x7f800000u);
    ASSERT_EQ(CG_E_NONFINITE, cg_ef_exchange(&ef, &e, &t, x, work, bytes, &r));
    ASSERT(r.at == 1234 && r.status == CG_E_NONFINITE && last(&ef).at == 1234);
    fill();
    ASSERT_EQ(CG_E_ARG, cg_ef_exchange(&ef, &e, &t, NULL, work, bytes, &r));
    ASSERTm(r.why, strstr(r.why, "grad is NULL"));
    choose = 1;
    ASSERT_EQ(CG_E_MEMORY, cg_ef_exchange(&ef, &e, &t, x, work, 1u << 20, &r));
    ASSERTm(r.why, strstr(r.why, "policy") && strstr(r.why, "mem of cg_ef_init"));
    d.op = cg_then(cg_rotate(2), d.op);
    ASSERT_EQ_FMT((unsigned long)cg_ef_memory(&d), (unsigned long)r.need, "%lu");
    choose = 0;
    ASSERT_EQ(CG_OK, cg_ef_compress(&ef, NULL, x, packet, sizeof packet, &len));
    ASSERT_EQ(CG_E_STATE, cg_ef_exchange(&ef, &e, &t, x, work, bytes, &r));
    ASSERTm(r.why, strstr(r.why, "cg_ef_commit or cg_ef_rollback"));
    ASSERT_EQ(CG_E_ARG, cg_ef_exchange(NULL, &e, &t, x, work, bytes, &r));
    ASSERTm(r.why, strstr(r.why, "ef, desc or transport is NULL") && r.status == CG_E_ARG);
    /* a carry that is too short says how long it has to be */
    d = ef_desc("topk:0.1", CG_EF_CLASSIC);
    e.back = &absmax_nearest;
    e.route = CG_ROUTE_SERVER;
    e.carry = y;
    want = cg_exchange_carry(&e, &t, N);
    ASSERT_EQ(N, want);
    d.carry = 10;
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &d, mem, 1u << 20));
    ASSERT_EQ(CG_E_MEMORY, cg_ef_exchange(&ef, &e, &t, x, work, 1u << 20, &r));
    ASSERTm(r.why, strstr(r.why, "carry"));
    ASSERT_EQ_FMT(4ul * (unsigned long)want, (unsigned long)r.need, "%lu");
    free(mem);
    free(work);
    PASS();
}
TEST ef_layers_say(void) {
    const cg_ef_desc d = ef_desc("topk:0.1", CG_EF_CLASSIC);
    static cg_ef ef[2];
    cg_ef *efs[2] = { &ef[0], &ef[1] };
    static float grads[2][N];
    cg_layer l[2];
    cg_transport t = CG_ZERO;
    cg_report r;
    void *mem[2], *work;
    size_t bytes;
    t.size = 1;
    memset(l, 0, sizeof l);
    for (int i = 0; i < 2; i++) {
        mem[i] = malloc(cg_ef_memory(&d));
        ASSERT_EQ(CG_OK, cg_ef_init(&ef[i], &d, mem[i], cg_ef_memory(&d)));
        ref_fill(REF_GAUSSIAN, (unsigned)i, grads[i], N);
        l[i].x = grads[i];
        l[i].desc.tag.tensor = (uint32_t)i;
    }
    bytes = cg_ef_layers_memory(efs, l, 2, 0, &t);
    work = malloc(bytes);
    ASSERT_EQ(CG_OK, cg_ef_exchange_layers(efs, l, 2, 0, &t, work, bytes, &r));
    ASSERT(!strcmp(r.why, "ok") && r.route && r.route == l[1].report.route && !strcmp(l[1].report.why, "ok"));
    ASSERT_EQ(CG_E_MEMORY, cg_ef_exchange_layers(efs, l, 2, 0, &t, work, bytes / 2, &r));
    ASSERTm(r.why, strstr(r.why, "cg_ef_layers_memory") && strstr(l[1].report.why, "cg_ef_layers_memory"));
    ASSERT_EQ_FMT((unsigned long)bytes, (unsigned long)r.need, "%lu");
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ(CG_E_MEMORY, (cg_status)last(&ef[i]).status);
        ASSERT_EQ_FMT((unsigned long)bytes, (unsigned long)l[i].report.need, "%lu");
        ASSERT_EQ_FMT((unsigned long)bytes, (unsigned long)last(&ef[i]).need, "%lu");
    }
    grads[1][77] = ref_float(0x7f800000u);
    ASSERT_EQ(CG_E_NONFINITE, cg_ef_exchange_layers(efs, l, 2, 0, &t, work, bytes, &r));
    ASSERT(r.status == CG_E_NONFINITE && r.at == 77);
    ASSERT(l[1].report.at == 77 && l[0].report.at == CG_NO_INDEX && l[0].status == CG_E_NONFINITE);
    ASSERT(l[0].report.status == CG_E_NONFINITE && last(&ef[1]).at == 77 && last(&ef[0]).at == CG_NO_INDEX);
    grads[1][77] = 0.0f;
    efs[1] = efs[0];
    ASSERT_EQ(CG_E_ARG, cg_ef_exchange_layers(efs, l, 2, 0, &t, work, bytes, &r));
    ASSERTm(r.why, strstr(r.why, "twice"));
    for (int i = 0; i < 2; i++) free(mem[i]);
    free(work);
    PASS();
}

TEST ef_withdraw_says(void) {
    const cg_ef_desc d = ef_desc("variance:1", CG_EF_VARIANCE);
    void *mem = malloc(cg_ef_memory(&d));
    cg_extra extra = CG_ZERO;
    cg_ef ef;
    size_t len;
    memset(&ef, 0, sizeof ef);
    fill();
    for (size_t i = 0; i < N; i++) y[i] = 1.0f;
    ASSERT_EQ(CG_E_STATE, cg_ef_withdraw(&ef, x));
    EF_SAYS(CG_E_STATE, "cg_ef_init");
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &d, mem, cg_ef_memory(&d)));
    ASSERT_EQ(CG_E_STATE, cg_ef_withdraw(&ef, x));
    EF_SAYS(CG_E_STATE, "nothing to withdraw");
    extra.aux = y;
    ASSERT_EQ(CG_OK, cg_ef_compress_with(&ef, NULL, &extra, x, packet, sizeof packet, &len));
    ASSERT_EQ(CG_E_STATE, cg_ef_withdraw(&ef, x));
    EF_SAYS(CG_E_STATE, "cg_ef_commit or cg_ef_rollback");
    ASSERT_EQ(CG_OK, cg_ef_rollback(&ef, packet, len));
    ASSERT_EQ(CG_E_ARG, cg_ef_withdraw(&ef, x));
    EF_SAYS(CG_E_ARG, "cg_ef_withdraw_with");
    ASSERT_EQ(CG_E_ARG, cg_ef_withdraw_with(&ef, &extra, NULL));
    EF_SAYS(CG_E_ARG, "grad is NULL");
    x[2999] = x[20] = ref_float(0x7fc00000u);
    ASSERT_EQ(CG_E_NONFINITE, cg_ef_withdraw_with(&ef, &extra, x));
    EF_SAYS(CG_E_NONFINITE, "grad is not what");
    ASSERT_EQ_FMT(20ul, (unsigned long)last(&ef).at, "%lu");
    fill();
    y[2100] = ref_float(0x7f800000u);
    ASSERT_EQ(CG_E_NONFINITE, cg_ef_withdraw_with(&ef, &extra, x));
    EF_SAYS(CG_E_NONFINITE, "aux is not what");
    ASSERT_EQ_FMT(2100ul, (unsigned long)last(&ef).at, "%lu");
    y[2100] = 1.0f;
    ASSERT_EQ(CG_OK, cg_ef_withdraw_with(&ef, &extra, x));
    EF_SAYS(CG_OK, "ok");
    ASSERT_EQ(CG_E_STATE, cg_ef_withdraw_with(&ef, &extra, x));
    EF_SAYS(CG_E_STATE, "nothing to withdraw");
    free(mem);
    PASS();
}
TEST ef_agree_says(void) {
    const cg_ef_desc d = ef_desc("topk:0.1", CG_EF_EF21), classic = ef_desc("topk:0.1", CG_EF_CLASSIC);
    void *mem = malloc(1u << 20), *work = malloc(1u << 20);
    cg_exchange_desc e = CG_ZERO;
    cg_transport t = CG_ZERO;
    cg_report r;
    cg_ef ef;
    size_t bytes, len;
    t.size = 1;
    fill();
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &d, mem, 1u << 20));
    bytes = cg_ef_agree_memory(&ef, &e, &t);
    memset(&r, 0x55, sizeof r);
    ASSERT_EQ(CG_E_ARG, cg_ef_agree(&ef, NULL, &t, work, bytes, &r));
    ASSERTm(r.why, r.status == CG_E_ARG && strstr(r.why, "NULL") && r.rank == -1 && r.at == CG_NO_INDEX);
    for (int half = 0; half < 2; half++) {
        ASSERT_EQ(CG_E_MEMORY, cg_ef_agree(&ef, &e, &t, work, half ? bytes / 2 : 100, &r));
        ASSERTm(r.why, r.status == CG_E_MEMORY && strstr(r.why, "cg_ef_agree_memory"));
        ASSERT_EQ_FMT((unsigned long)bytes, (unsigned long)r.need, "%lu");
        EF_SAYS(CG_E_MEMORY, "cg_ef_agree_memory");
    }
    ASSERT_EQ(CG_OK, cg_ef_agree(&ef, &e, &t, work, bytes, &r));
    ASSERT(r.status == CG_OK && !strcmp(r.why, "ok") && r.at == CG_NO_INDEX && !r.need);
    ASSERT_EQ(CG_OK, cg_ef_compress(&ef, NULL, x, packet, sizeof packet, &len));
    ASSERT_EQ(CG_E_STATE, cg_ef_agree(&ef, &e, &t, work, bytes, &r));
    ASSERTm(r.why, r.status == CG_E_STATE && strstr(r.why, "cg_ef_commit or cg_ef_rollback"));
    EF_SAYS(CG_E_STATE, "cg_ef_commit or cg_ef_rollback");
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &classic, mem, 1u << 20)); /* nothing to agree on */
    ASSERT_EQ(CG_OK, cg_ef_agree(&ef, &e, &t, NULL, 0, &r));
    ASSERT(r.status == CG_OK && !strcmp(r.why, "ok") && r.at == CG_NO_INDEX);
    free(mem);
    free(work);
    PASS();
}

SUITE(feedback) {
    RUN_TEST(ef_init_says);
    RUN_TEST(ef_set_ratio_says);
    RUN_TEST(ef_second_compress);
    for (uint32_t kind = CG_EF_CLASSIC; kind <= CG_EF_ONEBIT_ADAM; kind++) RUN_TEST1(ef_not_finite, kind);
    RUN_TEST(ef_exchange_says);
    RUN_TEST(ef_layers_say);
    RUN_TEST(ef_withdraw_says);
    RUN_TEST(ef_agree_says);
}

/* ---- sketches: every call with a report ---- */

enum { SKETCH, SKETCHED, FETCHED, PROTOCOLS };
static const char *const MEMORY_OF[PROTOCOLS] = { "cg_sketch_exchange_memory", "cg_sketched_exchange_memory",
    "cg_fetched_exchange_memory" };
typedef struct sketches {
    int protocol, damaged; /* damaged: rank 1 has a NaN in value 1500, or mem of so many bytes */
    size_t bytes;
    size_t asked[RANKS];
    cg_status status[RANKS];
    cg_report report[RANKS];
} sketches;
static int sketch_worker(cg_threads_world *world, int rank, void *user) {
    sketches *j = (sketches *)user;
    const cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    cg_exchange_desc e = CG_ZERO;
    cg_sketch_desc d = CG_ZERO;
    cg_sketched_desc sd = CG_ZERO;
    cg_fetched_desc fd = CG_ZERO;
    cg_sketch s;
    cg_sketched sgd;
    cg_fetched fetched;
    float *grad = (float *)malloc(sizeof(float) * N);
    void *state = malloc(1u << 20), *work;
    cg_report *r = &j->report[rank];
    size_t bytes;
    cg_threads_timeout(world, 3000);
    memset(r, 0x55, sizeof *r);
    ref_fill(REF_GAUSSIAN, (unsigned)rank, grad, N);
    if (rank == GUILTY && j->damaged) grad[1500] = grad[2000] = ref_float(0x7fc00000u);
    d.rows = 5;
    d.cols = 512;
    d.n = N;
    sd.sketch = fd.sketch = d;
    sd.k = fd.k = 20;
    if (cg_sketch_init(&s, &d, state, 1u << 20) != CG_OK || cg_sketch_add(&s, x, N, 1.0f) != CG_OK) exit(1);
    if (rank == GUILTY && j->damaged) s.cells[1500] = ref_float(0x7fc00000u);
    if (j->protocol == SKETCHED && cg_sketched_init(&sgd, &sd, state, 1u << 20) != CG_OK) exit(1);
    if (j->protocol == FETCHED && cg_fetched_init(&fetched, &fd, state, 1u << 20) != CG_OK) exit(1);
    j->asked[rank] = j->protocol == SKETCH ? cg_sketch_exchange_memory(&s, &e, &t)
        : j->protocol == SKETCHED          ? cg_sketched_exchange_memory(&sgd, &e, &t)
                                           : cg_fetched_exchange_memory(&fetched, &e, &t);
    work = malloc(j->asked[rank]);
    bytes = rank == GUILTY && j->bytes < j->asked[rank] ? j->bytes : j->asked[rank];
    j->status[rank] = j->protocol == SKETCH ? cg_sketch_exchange(&s, &e, &t, work, bytes, r)
        : j->protocol == SKETCHED           ? cg_sketched_exchange(&sgd, &e, &t, grad, work, bytes, r)
                                            : cg_fetched_exchange(&fetched, &e, &t, grad, work, bytes, r);
    free(grad);
    free(state);
    free(work);
    return 0;
}
TEST sketches_say(int protocol) {
    static sketches j;
    fill();
    for (int trial = 0; trial < 4; trial++) { /* well, a NaN, hardly any memory, half of it */
        const cg_status s = trial == 0 ? CG_OK : trial == 1 ? CG_E_NONFINITE : CG_E_MEMORY;
        const size_t asked = j.asked[GUILTY];
        memset(&j, 0, sizeof j);
        j.protocol = protocol;
        j.damaged = trial == 1;
        j.bytes = trial < 2 ? SIZE_MAX : trial == 2 ? 100 : asked / 2;
        if (cg_threads_run(RANKS, sketch_worker, &j)) exit(1);
        for (int r = 0; r < RANKS; r++) {
            const cg_report *q = &j.report[r];
            const cg_status want = s == CG_OK || r == GUILTY ? s : CG_E_PEER;
            ASSERT_ENUM_EQ(want, j.status[r], ops_status);
            ASSERT_ENUM_EQ(want, (cg_status)q->status, ops_status);
            ASSERT_EQ_FMT(s == CG_OK ? -1 : GUILTY, q->rank, "%d");
            ASSERTm(q->why, q->why && (s == CG_OK) == !strcmp(q->why, "ok"));
            ASSERT_EQ_FMT(want == CG_E_NONFINITE ? 1500ul : (unsigned long)CG_NO_INDEX, (unsigned long)q->at, "%lu");
            ASSERT_EQ_FMT(want == CG_E_MEMORY ? (unsigned long)j.asked[r] : 0ul, (unsigned long)q->need, "%lu");
            if (want == CG_E_MEMORY) ASSERTm(q->why, strstr(q->why, "mem ") && strstr(q->why, MEMORY_OF[protocol]));
        }
    }
    PASS();
}
TEST sketches_null(void) {
    cg_exchange_desc e = CG_ZERO;
    cg_transport t = CG_ZERO;
    cg_report r[PROTOCOLS];
    memset(r, 0x55, sizeof r);
    t.size = 1;
    ASSERT_EQ(CG_E_ARG, cg_sketch_exchange(NULL, &e, &t, NULL, 0, &r[0]));
    ASSERT_EQ(CG_E_ARG, cg_sketched_exchange(NULL, &e, &t, x, NULL, 0, &r[1]));
    ASSERT_EQ(CG_E_ARG, cg_fetched_exchange(NULL, &e, &t, x, NULL, 0, &r[2]));
    for (int i = 0; i < PROTOCOLS; i++)
        ASSERTm(r[i].why, r[i].status == CG_E_ARG && strstr(r[i].why, "NULL") && r[i].rank == -1);
    PASS();
}
/* What goes wrong after the last message is in the report, too. */
TEST fetched_sums_too_large(void) {
    cg_fetched_desc d = CG_ZERO;
    cg_exchange_desc e = CG_ZERO;
    cg_transport t = CG_ZERO;
    cg_fetched sgd;
    cg_report r;
    void *mem = malloc(1u << 20), *work = malloc(1u << 20);
    t.size = 1;
    d.sketch.rows = 5;
    d.sketch.cols = 512;
    d.sketch.n = 200; /* of one line, which do not collide */
    d.k = 1;
    d.momentum = 0.9f;
    ASSERT_EQ(CG_OK, cg_fetched_init(&sgd, &d, mem, 1u << 20));
    for (int step = 0; step < 2; step++) {
        for (size_t i = 0; i < 200; i++) x[i] = 3e38f;
        memset(&r, 0x55, sizeof r);
        e.tag.step = (uint64_t)step;
        ASSERT_ENUM_EQ(
            step ? CG_E_NONFINITE : CG_OK, cg_fetched_exchange(&sgd, &e, &t, x, work, 1u << 20, &r), ops_status);
        ASSERT_ENUM_EQ(step ? CG_E_NONFINITE : CG_OK, (cg_status)r.status, ops_status);
    }
    ASSERTm(r.why, strstr(r.why, "too large"));
    free(mem);
    free(work);
    PASS();
}

SUITE(sketching) {
    for (int i = 0; i < PROTOCOLS; i++) RUN_TEST1(sketches_say, i);
    RUN_TEST(sketches_null);
    RUN_TEST(fetched_sums_too_large);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(core);
    RUN_SUITE(exchange);
    RUN_SUITE(feedback);
    RUN_SUITE(sketching);
    GREATEST_MAIN_END();
}
