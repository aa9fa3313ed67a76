/* clang -g -I. -Itests -pthread -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_sync.c -o fuzz && ./fuzz CORPUS
   cc -g -O1 -I. -Itests -DFUZZ_MAIN -pthread tests/fuzz/fuzz_sync.c -o fuzz && ./fuzz 10000

   Gossip whose messages are changed on the way, notes with a right checksum among them, nodes that are away, and states
   that are saved, changed and loaded: no node waits for ever, no model becomes anything but finite, a state that is
   refused has not changed. The same for pairs that are fed, and for graphs and states of local SGD made of any
   bytes. */

#define COMPGRAD_IMPLEMENTATION
#include "fuzz.h"
#include "gossip_sim.h"
#include "seal.h"

enum { N = 40 };
static fuzz_input *input;
static uint8_t saved[1 << 14], again[1 << 14], bytes[1 << 14];

static void damage(uint8_t *p, size_t len, size_t seal, size_t sealed) {
    const uint32_t how = fuzz_byte(input), at = fuzz_word(input, 2);
    if (!len) return;
    if (how % 4 == 0) p[at % len] ^= (uint8_t)fuzz_byte(input);
    if (how % 4 == 1)
        for (size_t i = 0; i < 8 && at % len + i < len; i++) p[at % len + i] = (uint8_t)fuzz_byte(input);
    if (how % 4 == 2) memset(p + at % len, how & 4 ? 0xff : 0, len - at % len);
    if (how & 8 && sealed <= len && seal + 16 <= sealed) seal_at(p, sealed - sealed % 4, seal);
}
static void hurt(void *user, int from, int to, void *in, size_t len) {
    (void)user, (void)from, (void)to;
    if (fuzz_byte(input) % 4 == 1) damage(in, len, 80, 96); /* zeros, when the input has ended, change nothing */
}
static cg_op any_op(void) {
    switch (fuzz_byte(input) % 6) {
    case 0: return cg_dense();
    case 1: return cg_absmax(4, 16);
    case 2: return cg_topk(0.2f);
    case 3: return cg_efsign();
    case 4: return cg_unscaled(cg_randk(0.5f));
    default: return cg_qsparse(0.3f, 4);
    }
}
static void fuzz_gossip(void) {
    static gossip_sim sim;
    static char room[1 << 16];
    cg_graph graph;
    cg_graph_desc gd = CG_ZERO;
    cg_gossip_desc d = CG_ZERO;
    size_t len;
    gd.kind = fuzz_byte(input) % 7, gd.nodes = 1 + (int)(fuzz_byte(input) % 9), gd.rows = 1;
    if (cg_graph_init(&graph, &gd, room, sizeof room, NULL, 0) != CG_OK) return;
    d.kind = fuzz_byte(input) % 7, d.flags = fuzz_byte(input) % 4, d.op = any_op(), d.n = N, d.graph = &graph;
    d.eta = d.kind == CG_GOSSIP_CHOCO || d.kind == CG_GOSSIP_DEEPSQUEEZE ? 0.05f : 0;
    if (gossip_sim_open(&sim, &d, NULL) != CG_OK) {
        gossip_sim_close(&sim);
        return;
    }
    sim.hurt = hurt;
    for (uint64_t t = 0; t < 6; t++) {
        for (int i = 0; i < sim.nodes; i++) {
            sim.node[i].away = fuzz_byte(input) % 8 == 7;
            for (size_t k = 0; k < N; k++) sim.node[i].grad[k] = sim.node[i].x[k] - (float)((i * 7 + (int)k) % 5);
        }
        MUST(gossip_sim_step(&sim, 0.05f, t));
        for (int i = 0; i < sim.nodes; i++) {
            gossip_node *k = &sim.node[i];
            for (size_t j = 0; j < N; j++) MUST(fuzz_is_finite(k->x[j]));
            if (fuzz_byte(input) % 8 != 3) continue;
            MUST(cg_gossip_save(&k->g, saved, sizeof saved, &len) == CG_OK);
            memcpy(bytes, saved, len);
            damage(bytes, len, 48, len);
            if (cg_gossip_load(&k->g, bytes, len) != CG_OK) {
                MUST(cg_gossip_save(&k->g, again, sizeof again, &len) == CG_OK);
                MUST(!memcmp(saved, again, len));
            }
        }
    }
    gossip_sim_close(&sim);
}
static void fuzz_pairs(void) {
    static char room[2][1 << 13];
    cg_pair pair[2];
    cg_pair_desc d = CG_ZERO;
    float x0[N];
    size_t len;
    d.op = any_op(), d.n = N, d.nodes = 2, d.patience = 3;
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < N; k++) x0[k] = (float)((k * 3 + i) % 7);
        d.rank = i;
        MUST(cg_pair_memory(&d) <= sizeof room[i]);
        MUST(cg_pair_init(&pair[i], &d, x0, room[i], sizeof room[i]) == CG_OK);
    }
    for (uint64_t now = 0; now < 30; now++) {
        const int i = (int)(fuzz_byte(input) % 2);
        cg_envelope e;
        (void)!cg_pair_ask(&pair[i], now, 1 - i);
        for (int from = 0; from < 2; from++)
            while (cg_pair_next(&pair[from], now, &e)) {
                MUST(e.len <= sizeof bytes);
                memcpy(bytes, e.bytes, e.len);
                len = e.len;
                if (fuzz_byte(input) % 3 == 1) damage(bytes, len, 48, 64);
                if (fuzz_byte(input) % 8 == 1) len = fuzz_word(input, 2) % (len + 1);
                (void)!cg_pair_feed(&pair[e.to], now, from, bytes, len);
            }
        for (int k = 0; k < N; k++) MUST(fuzz_is_finite(cg_pair_model(&pair[i])[k]));
    }
    MUST(cg_pair_save(&pair[0], saved, sizeof saved, &len) == CG_OK);
    damage(saved, len, 48, len);
    (void)!cg_pair_load(&pair[0], saved, len);
}
static void fuzz_local(void) {
    static char room[1 << 15], mem[1 << 16];
    cg_local_desc d = CG_ZERO;
    cg_exchange_desc e = CG_ZERO;
    cg_transport alone = CG_ZERO;
    cg_local local;
    float x[N] = { 0 };
    size_t len, len_again;
    alone.size = 1;
    d.ef.op = any_op(), d.ef.n = N, d.period = 1 + fuzz_byte(input) % 6, d.fragments = fuzz_byte(input) % 5;
    d.delay = fuzz_byte(input) % 6, d.outer_momentum = fuzz_byte(input) % 2 ? 0.5f : 0;
    if (cg_local_init(&local, &d, x, room, sizeof room) != CG_OK) return;
    for (uint64_t t = 0; t < 12; t++) {
        for (int k = 0; k < N; k++) x[k] -= 0.1f * (x[k] - (float)(k % 3));
        (void)!cg_local_step(&local, &e, &alone, x, t, mem, sizeof mem, NULL);
        for (int k = 0; k < N; k++) MUST(fuzz_is_finite(x[k]));
        if (fuzz_byte(input) % 4 != 1) continue;
        MUST(cg_local_save(&local, saved, sizeof saved, &len) == CG_OK);
        memcpy(bytes, saved, len);
        damage(bytes, len, 48, len);
        if (cg_local_load(&local, bytes, len) != CG_OK) {
            MUST(cg_local_save(&local, again, sizeof again, &len_again) == CG_OK);
            MUST(len == len_again && !memcmp(saved, again, len));
        }
    }
}
static void fuzz_graph(void) { /* edges and weights of any bytes */
    static char room[1 << 18];
    int edges[24][2];
    float weights[36];
    cg_graph graph;
    cg_graph_desc d = CG_ZERO;
    char why[40];
    d.kind = fuzz_byte(input) % 9, d.nodes = (int)(fuzz_byte(input) % 8) - 1, d.rows = (int)(fuzz_byte(input) % 4);
    d.edge_count = fuzz_byte(input) % 25, d.directed = fuzz_byte(input) % 4 == 1;
    for (int k = 0; k < 48; k++) edges[k / 2][k % 2] = (int)(fuzz_byte(input) % 9) - 1;
    if (d.edge_count) d.edges = (const int(*)[2])edges;
    if (fuzz_byte(input) % 2 && d.nodes <= 6) {
        for (int k = 0; k < 36; k++) weights[k] = (float)(fuzz_byte(input) % 8) / 4;
        d.weights = weights;
    }
    MUST(cg_graph_memory(&d) <= sizeof room);
    if (cg_graph_init(&graph, &d, room, sizeof room, why, sizeof why) != CG_OK) {
        MUST(strlen(why) > 0);
        return;
    }
    MUST(cg_graph_gap(&graph) <= 1 && cg_graph_gap(&graph) >= -1);
    for (int i = 0; i < d.nodes; i++) {
        double sum = 0;
        for (int j = 0; j < d.nodes; j++) sum += (double)cg_graph_weight(&graph, i, j, fuzz_byte(input));
        if (!d.directed && d.kind != CG_GRAPH_ONE_PEER) MUST(sum > 0.9999 && sum < 1.0001);
    }
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = { data, size };
    input = &in;
    switch (fuzz_byte(input) % 8) {
    case 0: fuzz_pairs(); break;
    case 1: fuzz_local(); break;
    case 2: fuzz_graph(); break;
    default: fuzz_gossip();
    }
    return 0;
}
FUZZ_FN size_t fuzz_fresh(uint32_t which, uint64_t *dice, uint8_t *out, size_t cap) {
    const size_t len = fuzz_bytes(dice, out, cap < 600 ? cap : 600);
    out[0] = (uint8_t)which;
    return len;
}
