/* Several tensors in one packet, between ranks that are threads: means, what was used, and what error feedback
   remembers are those of an exchange for each tensor, bit for bit; ranks whose segments differ are told so; routes that
   would cut such packets refuse them with a sentence. */
#include "examples/transport_threads.h"
#include "golden.h"
#include "greatest.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include "tier.h"

enum { RANKS = 3, TENSORS = 7, TOTAL = 4500, STEPS = 4 };
static const size_t lengths[TENSORS] = { 300, 1, 2049, 64, 0, 1500, 586 };
static const uint32_t exact_third[TENSORS] = { 0, 1, 0, 1, 0, 0, 2 };

typedef struct job {
    cg_op op, other;
    uint32_t route, kind, flags;
    int together, mixed, ef, differs, global, layers;
    float weight;
    float x[RANKS][TOTAL], used[RANKS][TOTAL], error[RANKS][TOTAL];
    cg_status status[RANKS];
    cg_report report[RANKS];
    uint64_t bytes_out[RANKS];
} job;
static job *one_by_one, *at_once;
static char note[300];

static float value(int rank, size_t i, int step) {
    uint32_t h = (uint32_t)i * 2654435761u + (uint32_t)(rank * 131 + step * 7 + 1) * 40503u;
    h = (h ^ h >> 15) * 2246822519u;
    return (float)((int32_t)(h >> 12 & 0xfff) - 2048) / (i % 29 ? 4096.0f : 64.0f);
}
static cg_exchange_desc desc_of(const job *k, int rank, uint32_t tensor, int step) {
    cg_exchange_desc d = CG_ZERO;
    d.op = k->op;
    d.route = k->route;
    d.flags = k->flags;
    d.weight = k->weight != 0.0f ? k->weight + (float)rank : 0.0f;
    d.tag.seed = 77;
    d.tag.step = (uint64_t)step;
    d.tag.tensor = 40 + tensor;
    return d;
}
static cg_segments segments_of(const job *k, int rank, const size_t *n) {
    cg_segments s = CG_ZERO;
    s.n = n;
    s.count = TENSORS;
    if (k->mixed) {
        s.op = exact_third;
        s.ops = &k->other;
        s.op_count = 1;
    }
    if (k->global) s.flags = CG_SEGMENTS_GLOBAL;
    (void)rank;
    return s;
}
static void *take(size_t bytes) {
    void *p = malloc(bytes + 1);
    if (!p) abort();
    return p;
}
/* One exchange of n values from x on, and what was used of them. */
static cg_status plain(job *k, int rank, const cg_transport *t, const cg_exchange_desc *d, size_t at, size_t n) {
    const size_t bytes = cg_exchange_memory(d, t, n);
    void *mem = take(bytes);
    const cg_status s = cg_exchange(d, t, k->x[rank] + at, n, mem, bytes, &k->report[rank]);
    k->bytes_out[rank] += k->report[rank].bytes_out;
    if (s == CG_OK &&
        cg_used_decode(d->side, k->report[rank].used, k->report[rank].used_len, 1, 0, k->used[rank] + at, n) != CG_OK)
        abort();
    free(mem);
    return s;
}
static int worker(cg_threads_world *world, int rank, void *user) {
    job *k = (job *)user;
    cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    size_t n[TENSORS], at = 0;
    cg_segments segments;
    cg_extra side = CG_ZERO;
    memcpy(n, lengths, sizeof n);
    if (k->differs && rank == 1) n[0]--, n[1]++;
    segments = segments_of(k, rank, n);
    side.segments = &segments;
    for (size_t i = 0; i < TOTAL; i++) k->x[rank][i] = value(rank, i, 0);
    if (!k->ef && k->layers) {
        cg_layer list[TENSORS];
        size_t bytes;
        void *mem;
        memset(list, 0, sizeof list);
        for (uint32_t l = 0; l < TENSORS; at += lengths[l++]) {
            list[l].desc = desc_of(k, rank, l, 3);
            if (k->mixed && exact_third[l]) list[l].desc.op = exact_third[l] == 1 ? cg_dense() : k->other;
            list[l].desc.flags |= CG_ONE_PACKET | CG_CONFIRM;
            list[l].x = k->x[rank] + at;
            list[l].n = lengths[l];
        }
        bytes = cg_exchange_layers_memory(list, TENSORS, 2000, &t); /* one is alone */
        mem = take(bytes);
        k->status[rank] = cg_exchange_layers(list, TENSORS, 2000, &t, mem, bytes, &k->report[rank]);
        k->bytes_out[rank] = k->report[rank].bytes_out;
        at = 0;
        for (int l = 0; l < TENSORS && k->status[rank] == CG_OK; at += lengths[l++])
            if (cg_used_decode(
                    NULL, list[l].report.used, list[l].report.used_len, 1, 0, k->used[rank] + at, lengths[l]) != CG_OK)
                abort();
        free(mem);
    } else if (!k->ef && k->together) {
        cg_exchange_desc d = desc_of(k, rank, 0, 3);
        d.side = &side;
        k->status[rank] = plain(k, rank, &t, &d, 0, TOTAL);
    } else if (!k->ef) {
        for (uint32_t l = 0; l < TENSORS; at += lengths[l++]) {
            cg_exchange_desc d = desc_of(k, rank, l, 3);
            if (k->mixed && exact_third[l]) d.op = exact_third[l] == 1 ? cg_dense() : k->other;
            k->status[rank] = plain(k, rank, &t, &d, at, lengths[l]);
            if (k->status[rank] != CG_OK) break;
        }
    } else {
        cg_ef ef[TENSORS];
        void *mem[TENSORS];
        const int count = k->together ? 1 : TENSORS;
        for (int l = 0; l < count; l++) {
            cg_ef_desc d = CG_ZERO;
            mem[l] = NULL;
            d.op = k->op;
            d.kind = k->kind;
            d.momentum = k->kind == CG_EF_MOMENTUM || k->kind == CG_EF_FILTERED ? 0.5f : 0.0f;
            d.dense_steps = 1;
            if (k->kind == CG_EF_DIANA) d.alpha = 0.5f; /* else that of the largest variance of any segment */
            d.n = k->together ? TOTAL : lengths[l];
            if (k->together) d.segments = &segments;
            else if (k->mixed && exact_third[l]) d.op = exact_third[l] == 1 ? cg_dense() : k->other;
            if (!d.n) continue;
            mem[l] = take(cg_ef_memory(&d));
            k->status[rank] = cg_ef_init(&ef[l], &d, mem[l], cg_ef_memory(&d));
            if (k->status[rank] != CG_OK) return 1;
        }
        for (int step = 0; step < STEPS && k->status[rank] == CG_OK; step++) {
            for (size_t i = 0; i < TOTAL; i++) k->x[rank][i] = value(rank, i, step);
            at = 0;
            if (k->layers) {
                cg_layer list[TENSORS];
                cg_ef *efs[TENSORS];
                size_t bytes, many = 0;
                void *room;
                memset(list, 0, sizeof list);
                for (int l = 0; l < TENSORS; at += lengths[l++]) {
                    if (!mem[l]) continue;
                    list[many].desc = desc_of(k, rank, (uint32_t)l, step);
                    list[many].desc.flags |= CG_ONE_PACKET;
                    list[many].x = k->x[rank] + at;
                    list[many].n = lengths[l];
                    efs[many++] = &ef[l];
                }
                bytes = cg_ef_layers_memory(efs, list, many, 100000, &t);
                room = take(bytes);
                k->status[rank] = cg_ef_exchange_layers(efs, list, many, 100000, &t, room, bytes, &k->report[rank]);
                k->bytes_out[rank] += k->report[rank].bytes_out;
                free(room);
                continue;
            }
            for (int l = 0; l < count && k->status[rank] == CG_OK; at += lengths[l++]) {
                const cg_exchange_desc d = desc_of(k, rank, (uint32_t)l, step);
                size_t bytes;
                void *room;
                if (!mem[l]) continue;
                bytes = cg_ef_exchange_memory(&ef[l], &d, &t);
                room = take(bytes);
                k->status[rank] = cg_ef_exchange(&ef[l], &d, &t, k->x[rank] + at, room, bytes, &k->report[rank]);
                k->bytes_out[rank] += k->report[rank].bytes_out;
                free(room);
            }
        }
        at = 0;
        for (int l = 0; l < count; at += lengths[l++]) {
            if (!mem[l]) continue;
            if (ef[l].vector[0] && cg_ef_read(&ef[l], CG_EF_ERROR, k->error[rank] + at, ef[l].desc.n) != CG_OK) abort();
            free(mem[l]);
        }
    }
    return 0;
}
static void run(job *k, const char *op, uint32_t route, int together) {
    memset(k->x, 0, sizeof k->x);
    memset(k->used, 0, sizeof k->used);
    memset(k->error, 0, sizeof k->error);
    memset(k->bytes_out, 0, sizeof k->bytes_out);
    if (cg_op_parse(&k->op, op) != CG_OK || cg_op_parse(&k->other, "topk:0.1|absmax:8:64|golomb") != CG_OK) abort();
    k->route = route;
    k->together = together;
    cg_threads_run(RANKS, worker, k);
}
static enum greatest_test_res compare(const char *what) {
    for (int r = 0; r < RANKS; r++) {
        if (at_once->status[r] != CG_OK || one_by_one->status[r] != CG_OK) {
            snprintf(
                note, sizeof note, "%s: rank %d: %s / %s", what, r, one_by_one->report[r].why, at_once->report[r].why);
            FAILm(note);
        }
        snprintf(note, sizeof note, "%s: rank %d", what, r);
        ASSERT_MEM_EQm(note, one_by_one->x[r], at_once->x[r], sizeof at_once->x[r]);
        ASSERT_MEM_EQm(note, one_by_one->used[r], at_once->used[r], sizeof at_once->used[r]);
        ASSERT_MEM_EQm(note, one_by_one->error[r], at_once->error[r], sizeof at_once->error[r]);
    }
    PASS();
}
static void both(int mixed, int ef, uint32_t kind, float weight) {
    memset(one_by_one, 0, sizeof *one_by_one);
    one_by_one->mixed = mixed;
    one_by_one->ef = ef;
    one_by_one->kind = kind;
    one_by_one->weight = weight;
    *at_once = *one_by_one;
}

TEST one_exchange_of_segments_is_one_of_each(void) {
    int turn = 0;
    for (int c = 0; c < GOLDEN_CASES; c++) {
        const char *text = golden_cases[c].op;
        cg_op op;
        int seen = 0, server;
        for (int e = 0; e < c; e++) seen |= !strcmp(golden_cases[e].op, text);
        if (seen || cg_op_parse(&op, text) != CG_OK || strstr(text, "given") || strstr(text, "bins") ||
            strstr(text, "adacomp") || strstr(text, "variance") || strstr(text, "lowrank") || strstr(text, "atomo"))
            continue;
        if (!long_test() && c % 3 != 1) continue;
        turn++;
        /* a server adds f32 values of a tensor as packets, and divides the sum: not so those of segments */
        server = turn % 4 == 3 && op.quantize.id;
        both(turn % 2 && !server, 0, 0, turn % 5 == 0 ? 1.5f : 0.0f);
        run(one_by_one, text, server ? CG_ROUTE_SERVER : CG_ROUTE_ALLGATHER, 0);
        if (one_by_one->status[0] == CG_E_UNSUPPORTED) continue; /* a biased operator, and the like */
        run(at_once, text, server ? CG_ROUTE_SERVER : turn % 4 == 1 ? CG_ROUTE_AUTO : CG_ROUTE_ALLGATHER, 1);
        CHECK_CALL(compare(text));
    }
    ASSERT(turn > 20);
    PASS();
}

TEST memory_of_segments_is_that_of_each(void) {
    static const struct {
        const char *op;
        uint32_t kind;
    } c[] = { { "topk:0.05", CG_EF_CLASSIC }, { "topk:0.1|absmax:4:64:nearest", CG_EF_MOMENTUM },
        { "efsign", CG_EF_CLASSIC }, { "topk:0.1|golomb", CG_EF_EF21 }, { "absmax:4:64", CG_EF_DIANA },
        { "sign", CG_EF_SIGNUM }, { "absmax:4:512", CG_EF_NONE }, { "randk:0.1:unscaled", CG_EF_CLASSIC },
        { "topk:0.05|f16", CG_EF_LOCO }, { "absmax:8:64", CG_EF_FILTERED } };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        for (int mixed = 0; mixed < 2; mixed++) {
            if (mixed &&
                (c[i].kind == CG_EF_NONE || c[i].kind == CG_EF_FILTERED || c[i].kind == CG_EF_DIANA ||
                    c[i].kind == CG_EF_SIGNUM))
                continue; /* the others have biased segments */
            both(mixed, 1, c[i].kind, 0.0f);
            run(one_by_one, c[i].op, CG_ROUTE_ALLGATHER, 0);
            run(at_once, c[i].op, CG_ROUTE_ALLGATHER, 1);
            CHECK_CALL(compare(c[i].op));
            ASSERT(at_once->bytes_out[0] < one_by_one->bytes_out[0]);
        }
    }
    PASS();
}

TEST layers_in_one_packet_are_as_one_by_one(void) {
    static const char *const texts[] = { "topk:0.05", "absmax:4:64", "topk:0.1|levels:7|golomb|huffman", "efsign",
        "randk:0.2", "eden:2", "natural", "permk:3", "dense" };
    for (int c = 0; c < 9; c++) {
        for (int mixed = 0; mixed < 2; mixed++) {
            both(mixed, 0, 0, c == 3 ? 1.5f : 0.0f);
            at_once->layers = 1;
            run(one_by_one, texts[c], CG_ROUTE_ALLGATHER, 0);
            run(at_once, texts[c], CG_ROUTE_ALLGATHER, 0);
            CHECK_CALL(compare(texts[c]));
            ASSERT(at_once->bytes_out[0] < one_by_one->bytes_out[0]);
        }
    }
    PASS();
}

TEST memory_of_layers_in_one_packet_is_that_of_each(void) {
    static const struct {
        const char *op;
        uint32_t kind;
    } c[] = { { "topk:0.05", CG_EF_CLASSIC }, { "topk:0.1|absmax:4:64:nearest", CG_EF_MOMENTUM },
        { "efsign", CG_EF_LOCO }, { "topk:0.1|golomb", CG_EF_EF21 }, { "absmax:4:64", CG_EF_DIANA },
        { "absmax:4:512", CG_EF_NONE } };
    for (size_t i = 0; i < 6; i++) {
        for (int mixed = 0; mixed < (i < 4 ? 2 : 1); mixed++) {
            both(mixed, 1, c[i].kind, 0.0f);
            at_once->layers = 1;
            run(one_by_one, c[i].op, CG_ROUTE_ALLGATHER, 0);
            run(at_once, c[i].op, CG_ROUTE_ALLGATHER, 0);
            CHECK_CALL(compare(c[i].op));
            ASSERT(at_once->bytes_out[0] < one_by_one->bytes_out[0]);
        }
    }
    PASS();
}

TEST one_selection_of_all_tensors_between_ranks(void) {
    both(0, 0, 0, 0.0f);
    one_by_one->global = at_once->global = 1;
    run(at_once, "topk:0.05", CG_ROUTE_ALLGATHER, 1);
    for (int r = 0; r < RANKS; r++) ASSERT_EQ(CG_OK, at_once->status[r]);
    ASSERT_MEM_EQ(at_once->x[0], at_once->x[1], sizeof at_once->x[0]);
    for (size_t i = 0, kept = 0; i < TOTAL; i++) {
        kept += at_once->used[0][i] != 0.0f;
        if (i + 1 == TOTAL) ASSERT_EQ(TOTAL / 20, (int)kept);
    }
    PASS();
}

TEST what_cannot_be_is_said_on_all_ranks(void) {
    static const struct {
        uint32_t route, flags;
        int differs;
        cg_status status;
        const char *says;
    } c[] = { { CG_ROUTE_SCATTER, 0, 0, CG_E_UNSUPPORTED, "allgather or server" },
        { CG_ROUTE_RING, 0, 0, CG_E_UNSUPPORTED, "allgather or server" },
        { CG_ROUTE_TREE, 0, 0, CG_E_UNSUPPORTED, "allgather or server" },
        { CG_ROUTE_LINEAR, 0, 0, CG_E_UNSUPPORTED, "allgather or server" },
        { CG_ROUTE_SHARED, 0, 0, CG_E_UNSUPPORTED, "allgather or server" },
        { CG_ROUTE_ALLGATHER, CG_AGREE_SCALES, 0, CG_E_UNSUPPORTED, "scales of their own" },
        { CG_ROUTE_ALLGATHER, 0, 1, CG_E_MISMATCH, "" }, { CG_ROUTE_SERVER, 0, 1, CG_E_MISMATCH, "" } };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        both(0, 0, 0, 0.0f);
        at_once->flags = c[i].flags;
        at_once->differs = c[i].differs;
        run(at_once, "absmax:4:64", c[i].route, 1);
        for (int r = 0; r < RANKS; r++) {
            ASSERT_EQ(c[i].status, at_once->status[r]);
            ASSERT(strstr(at_once->report[r].why, c[i].says));
            for (size_t e = 0; e < TOTAL; e++) ASSERT(at_once->x[r][e] == value(r, e, 0));
        }
    }
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    one_by_one = (job *)calloc(1, sizeof *one_by_one);
    at_once = (job *)calloc(1, sizeof *at_once);
    if (!one_by_one || !at_once) return 2;
    RUN_TEST(one_exchange_of_segments_is_one_of_each);
    RUN_TEST(memory_of_segments_is_that_of_each);
    RUN_TEST(layers_in_one_packet_are_as_one_by_one);
    RUN_TEST(memory_of_layers_in_one_packet_is_that_of_each);
    RUN_TEST(one_selection_of_all_tensors_between_ranks);
    RUN_TEST(what_cannot_be_is_said_on_all_ranks);
    free(one_by_one);
    free(at_once);
    GREATEST_MAIN_END();
}
