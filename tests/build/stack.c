/* How much stack compress, decode, reduce, exchanges, memory and sketches really use: on a painted stack of our
   own, for every golden case, for what fits together of a choice for each slot, and every ISA. -fstack-usage sees
   single functions only; this sees the sum along the calls. */
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include "golden.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include "compgrad_sketch.h"
#include "sim.h"
#include "tier.h"

enum { STACK = 1 << 18, LIMIT = 40 << 10, PAINT = 0xa5 };
static unsigned char stack[STACK];
static long clean; /* bytes from the start that are still painted */
static float x[GOLDEN_MAX], y[GOLDEN_MAX];
static ucontext_t back, there;
static const cg_tag tag = { 1, 2, 3, 3 };
static cg_op op;
static cg_extra side;
static void *packet, *sum, *scratch;
static size_t n, cap, len, sum_cap, scratch_bytes;
static const char *call;

static void nothing(void) {
    memset(y, 0, sizeof y);
    memcpy(x, y, sizeof x);
}

/* Each alone, so that it is known which. */
static void compress(void) {
    if (cg_compress_with(&op, &tag, &side, x, n, packet, cap, &len, scratch, scratch_bytes) != CG_OK)
        call = "compress failed";
}
static void decode(void) {
    cg_extra direct = side;
    direct.flags = CG_DECODE_DIRECT;
    if (cg_decode(&side, packet, len, 1, 0, y, n) != CG_OK || cg_decode(&side, packet, len, 0.5f, 2, y, n) != CG_OK ||
        cg_decode(&direct, packet, len, 1, 0, y, n) != CG_OK)
        call = "decode failed";
}
static void others(void) {
    cg_info info;
    char text[128];
    cg_status s = cg_clear(packet, len, y, n);
    if (s != CG_OK && op.select.id != CG_SELECT_GIVEN) call = "clear failed";
    if (cg_inspect(packet, len, &info) != CG_OK || cg_op_print(&op, text, sizeof text) != CG_OK ||
        cg_op_parse(&info.op, text) != CG_OK)
        call = "inspect failed";
}
static void plan(void) {
    const void *packets[3];
    size_t lens[3];
    for (int i = 0; i < 3; i++) packets[i] = packet, lens[i] = len;
    if (cg_reduce_plan(packets, lens, 3, &sum_cap, &scratch_bytes) != CG_OK) sum_cap = 0;
}
static void reduce(void) {
    const void *packets[3];
    size_t lens[3], made;
    for (int i = 0; i < 3; i++) packets[i] = packet, lens[i] = len;
    if (cg_reduce(packets, lens, 3, sum, sum_cap, &made, scratch, scratch_bytes) != CG_OK) call = "reduce failed";
    else if (cg_decode(&side, sum, made, 1, 0, y, n) != CG_OK) call = "decode of a sum failed";
    if (cg_vote(packets, lens, 3, sum, sum_cap, &made) == CG_OK && cg_decode(&side, sum, made, 1, 0, y, n) != CG_OK)
        call = "decode of a vote failed";
}

static sim ranks;
static void exchange(void) {
    sim_run(&ranks);
    for (int r = 0; r < ranks.size; r++)
        if (ranks.rank[r].status != CG_OK && ranks.rank[r].status != CG_E_UNSUPPORTED) call = "exchange failed";
}

static long depth(void (*f)(void)) {
    long i = 0;
    memset(stack + clean, PAINT, (size_t)(STACK - clean));
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = STACK;
    there.uc_link = &back;
    makecontext(&there, f, 0);
    swapcontext(&back, &there);
    /* the start is never reached: that would be a crash */
    while (i < STACK && !memcmp(stack + i, stack, 512)) i += 512;
    while (i < STACK && stack[i] == PAINT) i++;
    clean = i;
    return STACK - i;
}

static long own, most;
static char most_text[192];

static void measure(void (*f)(void), const char *name, const char *text) {
    long d = depth(f) - own;
    if (call) {
        printf("%s, n = %lu: %s\n", text, (unsigned long)n, call);
        exit(1);
    }
    if (d > most)
        most = d,
        snprintf(most_text, sizeof most_text, "%s of %s, n = %lu, %s", name, text, (unsigned long)n,
            cg_isa_name(cg_isa_used()));
}

static const cg_segments *segments; /* of x, or NULL */
static void whole(const char *text) {
    golden_fill(x, n);
    if (golden_side(&op, &tag, x, n, &side)) exit(1);
    side.segments = segments;
    cap = cg_bound_with(&op, &side, n), scratch_bytes = cg_scratch_with(&op, &side, n);
    packet = malloc(cap + 1), scratch = malloc(scratch_bytes + 1);
    measure(compress, "compress", text);
    measure(decode, "decode", text);
    measure(others, "clear, inspect or print", text);
    measure(plan, "plan", text);
    free(scratch);
    if (sum_cap) {
        sum = malloc(sum_cap), scratch = malloc(scratch_bytes + 1);
        measure(reduce, "reduce", text);
        free(sum);
        free(scratch);
    }
    free(packet);
    golden_side_done(&side);
}

/* Three ranks in turn, on every route, with and without memory of the second leg, with and without agreed scales. */
static void routes(const char *text) {
    static float v[3][2000], carry[3][2000];
    float *all[3] = { v[0], v[1], v[2] };
    cg_exchange_desc desc = CG_ZERO;
    if (cg_op_parse(&desc.op, text) != CG_OK) exit(1);
    if (desc.op.quantize.id == CG_QUANTIZE_SIGN) desc.fold = CG_FOLD_VOTE;
    for (desc.route = 1; desc.route <= CG_ROUTE_LINEAR; desc.route++)
        for (int how = 0; how < 4; how++) {
            char name[64];
            for (int r = 0; r < 3; r++) golden_fill(v[r], 2000), memset(carry[r], 0, sizeof carry[r]);
            desc.flags = how & 1 ? (uint32_t)CG_AGREE_SCALES : 0u;
            sim_open(&ranks, 3, how & 2 ? SIM_ALL : SIM_SENDRECV, 1, &desc, all, 2000);
            for (int r = 0; r < 3 && how & 2; r++) ranks.rank[r].desc.carry = carry[r];
            snprintf(name, sizeof name, "exchange by route %u", (unsigned)desc.route);
            measure(exchange, name, text);
            sim_close(&ranks);
        }
}

/* Every kind of memory: a step in pieces, saved and loaded, and a step of an exchange, of one rank. */
static cg_ef ef;
static cg_ef_desc kept;
static void remember(void) {
    if (cg_ef_compress_with(&ef, &tag, &side, x, packet, cap, &len) != CG_OK ||
        cg_ef_commit(&ef, packet, len, y) != CG_OK)
        call = "a step failed";
    else if (cg_ef_compress_with(&ef, &tag, &side, x, packet, cap, &len) != CG_OK ||
        cg_ef_rollback(&ef, packet, len) != CG_OK)
        call = "a rollback failed";
}
static void save(void) {
    if (cg_ef_save(&ef, scratch, scratch_bytes, &len) != CG_OK || cg_ef_load(&ef, scratch, len) != CG_OK)
        call = "save or load failed";
}
static void exchange_remembered(void) {
    cg_exchange_desc desc = CG_ZERO;
    cg_transport t = CG_ZERO;
    cg_report report = CG_ZERO;
    t.size = 1;
    desc.route = CG_ROUTE_ALLGATHER;
    desc.tag = tag;
    desc.side = &side;
    if (cg_ef_exchange(&ef, &desc, &t, x, scratch, scratch_bytes, &report) != CG_OK) call = report.why;
}
static void memory(uint32_t kind, const char *text, int bytes) {
    char name[96];
    cg_transport t = CG_ZERO;
    cg_exchange_desc desc = CG_ZERO;
    void *mem;
    memset(&kept, 0, sizeof kept);
    if (cg_op_parse(&kept.op, text) != CG_OK) exit(1);
    n = kept.n = GOLDEN_MAX;
    kept.kind = kind;
    kept.bytes = bytes;
    kept.clip = 1;
    if (kind == CG_EF_MOMENTUM || kind == CG_EF_SIGNUM || kind == CG_EF_EF21 || kind == CG_EF_ONEBIT_ADAM)
        kept.momentum = 0.9f;
    if (kind == CG_EF_LAQ) kept.laq_step = 0.1f;
    mem = malloc(cg_ef_memory(&kept));
    if (!cg_ef_memory(&kept) || cg_ef_init(&ef, &kept, mem, cg_ef_memory(&kept)) != CG_OK) exit(1);
    memset(&side, 0, sizeof side);
    golden_fill(x, n);
    memset(y, 0, sizeof y);
    if (kind == CG_EF_VARIANCE) side.aux = y;
    t.size = 1;
    desc.route = CG_ROUTE_ALLGATHER;
    desc.side = &side;
    cap = cg_ef_bound(&kept), scratch_bytes = cg_ef_exchange_memory(&ef, &desc, &t) + cg_ef_save_bytes(&ef);
    packet = malloc(cap + 1), scratch = malloc(scratch_bytes);
    snprintf(name, sizeof name, "%s, kind %u%s", text, (unsigned)kind, bytes ? ", bytes" : "");
    measure(remember, "memory", name);
    measure(save, "saving", name);
    measure(exchange_remembered, "exchange with memory", name);
    free(packet), free(scratch), free(mem);
}
static void memories(void) {
    static const char *const ops[] = { "topk:0.01", "efsign", "absmax:4:512", "topk:0.1|f16|golomb",
        "rotate:2|topk:0.1|absmax:4:64|huffman", "demo:0.1", "chunked:64:0.1|absmax:2:64" };
    for (uint32_t kind = 0; kind <= CG_EF_ONEBIT_ADAM; kind++) {
        if (kind == CG_EF_LAQ) memory(kind, "minmax:4:1000000:nearest", 0);
        else if (kind == CG_EF_VARIANCE) memory(kind, "variance:1", 0);
        else
            for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
                memory(kind, ops[i], 0);
                if (kind <= CG_EF_ECQ) memory(kind, ops[i], 1);
            }
    }
}

/* Sketches: everything that is done to one, and training with them, of one rank. */
static cg_sketch sketch;
static cg_sketched sketched;
static cg_fetched fetched;
static uint64_t index_of[200];
static float value_of[200];
static void sketch_add(void) {
    if (cg_sketch_add(&sketch, x, n, 2) != CG_OK || cg_sketch_estimate_all(&sketch, y, n) != CG_OK ||
        cg_sketch_add_list(&sketch, index_of, value_of, 200, 1) != CG_OK)
        call = "sketching failed";
    if (cg_sketch_norm(&sketch) <= 0) call = "no norm";
}
static void sketch_heavy(void) {
    size_t count;
    if (cg_sketch_heavy(&sketch, 200, index_of, value_of, scratch, scratch_bytes) != CG_OK ||
        cg_sketch_heavymix(&sketch, 200, &tag, index_of, value_of, scratch, scratch_bytes) != CG_OK ||
        cg_sketch_heavy_above(&sketch, 0.1, 200, index_of, value_of, &count, scratch, scratch_bytes) != CG_OK)
        call = "recovery failed";
}
static void sketch_packet(void) {
    if (cg_sketch_pack(&sketch, &op, &tag, packet, cap, &len, scratch, scratch_bytes) != CG_OK ||
        cg_sketch_unpack(&sketch, packet, len, 1, 1) != CG_OK)
        call = "packing failed";
}
static void sketch_train(void) {
    cg_exchange_desc desc = CG_ZERO;
    cg_transport t = CG_ZERO;
    cg_report report = CG_ZERO;
    t.size = 1;
    if (cg_sketched_exchange(&sketched, &desc, &t, x, scratch, scratch_bytes, &report) != CG_OK)
        call = "Sketched-SGD failed";
    if (cg_fetched_exchange(&fetched, &desc, &t, x, scratch, scratch_bytes, &report) != CG_OK) call = "FetchSGD failed";
}
static void sketches(int rows, size_t groups) {
    cg_sketched_desc s = CG_ZERO;
    cg_fetched_desc f = CG_ZERO;
    unsigned char *mem[3];
    char name[32];
    n = GOLDEN_MAX;
    s.sketch.rows = rows, s.sketch.cols = 1000, s.sketch.n = n, s.sketch.groups = groups;
    s.k = f.k = 50;
    s.momentum = f.momentum = 0.9f;
    f.sketch = s.sketch;
    f.sketch.groups = 0;
    mem[0] = malloc(cg_sketch_memory(&s.sketch)), mem[1] = malloc(cg_sketched_memory(&s)),
    mem[2] = malloc(cg_fetched_memory(&f));
    if (cg_sketch_init(&sketch, &s.sketch, mem[0], cg_sketch_memory(&s.sketch)) != CG_OK ||
        cg_sketched_init(&sketched, &s, mem[1], cg_sketched_memory(&s)) != CG_OK ||
        cg_fetched_init(&fetched, &f, mem[2], cg_fetched_memory(&f)) != CG_OK)
        exit(1);
    if (cg_op_parse(&op, "rotate:2|absmax:4:64") != CG_OK) exit(1);
    golden_fill(x, n);
    cap = cg_sketch_bound(&sketch, &op), scratch_bytes = 1 << 22;
    packet = malloc(cap), scratch = malloc(scratch_bytes);
    snprintf(name, sizeof name, "%d rows, %lu groups", rows, (unsigned long)groups);
    measure(sketch_add, "a sketch", name);
    measure(sketch_heavy, "heavy hitters", name);
    measure(sketch_packet, "a sketch's packet", name);
    measure(sketch_train, "training by sketches", name);
    free(packet), free(scratch), free(mem[0]), free(mem[1]), free(mem[2]);
}

static const char *mean_line;
static void mean_step(void) {
    static size_t sizes[300];
    static float *grads[300];
    const size_t tensors = 300;
    cg_transport t = CG_ZERO;
    cg_mean *m;
    size_t bytes, saved;
    t.size = 1;
    for (size_t i = 0; i < tensors; i++) sizes[i] = i % 40, grads[i] = x + 7 * i;
    bytes = cg_mean_memory(mean_line, sizes, tensors, &t, NULL, 0);
    if (!bytes || bytes > scratch_bytes || cg_mean_open(&m, mean_line, sizes, tensors, &t, scratch, bytes) != CG_OK ||
        cg_mean_step(m, grads) != CG_OK || cg_mean_save(m, packet, cap, &saved) != CG_OK ||
        cg_mean_load(m, packet, saved) != CG_OK || cg_mean_agree(m) != CG_OK)
        call = "a mean failed";
}
static void means(void) {
    static const char *const lines[] = { "", "topk:0.1 pack=each memory=ef21", "efsign memory=classic:8bit",
        "absmax:4:64 pack=each", "topk:0.1|golomb memory=momentum:0.9 warmup=power:3:2 dense=1" };
    n = GOLDEN_MAX;
    golden_fill(x, n);
    cap = scratch_bytes = (size_t)1 << 24;
    packet = malloc(cap), scratch = malloc(scratch_bytes);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        mean_line = lines[i];
        measure(mean_step, "a mean", lines[i]);
    }
    free(packet), free(scratch);
}

int main(void) {
    static const char *const ways[] = { "dense", "topk:0.1", "topk:0.1|golomb", "dgc:0.1", "sidco:0.1",
        "chunked:64:0.1", "absmax:4:64", "absmax:8:512", "efsign", "sign", "terngrad", "qsgd:4", "eden:2",
        "rotate:2|topk:0.1|absmax:4:64|huffman", "randk:0.5|topk:0.1", "lowrank:4:40:50", "atomo:4:40:50", "demo:0.1",
        "dense|huffman", "natural", "wangni:0.1" };
    static const char *const slots[5][29] = { { "", "randk:0.3|", "permk:4|" },
        { "", "rotate:1|", "rotate:2|", "dct|" },
        { "", "topk:0.1|", "threshold:0.05|", "dgc:0.1|", "mstopk:0.1|", "sidco:0.1|", "wangni:0.1|", "wangnivar:2|",
            "bins:50|", "sides:0.1|", "side:0.1|", "chunked:64:0.1|", "blocks:7|", "given|", "variance:0.5|" },
        { "dense", "f16", "bf16", "sign", "efsign", "absmax:4:64", "minmax:8:512", "terngrad", "levels:7",
            "levels:127:64", "flexpoint:8:64", "flex16:64", "trits:1.5", "strom:0.01", "onebit", "mean", "natural",
            "dither:4:64", "dynamic8", "e4m3", "e5m2", "mxfp4", "mxe4m3", "nf4", "lloyd:1.5", "lloyd:4", "rate:0.1",
            "rate:2", "step:0.5" },
        { "", "|golomb", "|huffman", "|omega", "|quartic", "|golomb|huffman" } };
    int tried = 0;
    own = depth(nothing); /* the C library's share */
    for (int isa = CG_ISA_SCALAR; isa <= CG_ISA_WASM; isa++) {
        if (cg_isa_force((cg_isa)isa) != CG_OK) continue;
        for (int i = 0; i < GOLDEN_CASES; i++)
            for (int large = 0; large < 2; large++, tried++) {
                if (cg_op_parse(&op, golden_cases[i].op) != CG_OK) return 1;
                if (large && (op.transform.id == CG_TRANSFORM_LOWRANK || op.transform.id == CG_TRANSFORM_ATOMO))
                    continue;
                n = large ? (size_t)GOLDEN_MAX : golden_cases[i].n;
                whole(golden_cases[i].op);
            }
        for (int i = 0; i < GOLDEN_SEGMENTED; i++, tried++) {
            golden_cut cut;
            cg_extra cut_side = CG_ZERO;
            n = golden_segmented[i].n;
            if (cg_op_parse(&op, golden_text(golden_segmented[i].op, n, &cut, &cut_side)) != CG_OK) return 1;
            segments = cut_side.segments;
            whole(golden_segmented[i].op);
            segments = NULL;
        }
        for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) routes(ways[i]);
        memories();
        means();
        sketches(5, 0), sketches(4, 300), sketches(15, 300);
        for (long i = 0; i < 3L * 4 * 15 * 29 * 6; i += long_test() ? 1 : 7) {
            char text[192];
            long at = i;
            const long sizes[5] = { 3, 4, 15, 29, 6 };
            text[0] = 0;
            for (int slot = 0; slot < 5; at /= sizes[slot++]) strcat(text, slots[slot][at % sizes[slot]]);
            if (cg_op_parse(&op, text) != CG_OK) continue; /* does not go together */
            n = 2503;                                      /* a chunk of 2048, and a rest */
            whole(text);
            tried++;
        }
    }
    printf("%ld bytes of stack, by %s; %d operators\n", most, most_text, tried);
    return most > LIMIT;
}
