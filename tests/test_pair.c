/* AD-PSGD as a machine that is fed: messages are delayed, reordered, lost and sent twice; the sum of all models changes
   by gradients alone, questions are answered in the end, models come together, and any bytes are refused by name. */
#include "greatest.h"
#include "tier.h"
#include "seal.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_sync.h"
#include <math.h>
#include <stdio.h>

enum { NODES = 6, N = 200, FLYING = 64, ROOM = 1 << 13 };
static cg_pair pair[NODES];
static void *mem[NODES];
static struct {
    int from, to;
    size_t len;
    uint64_t arrives;
    uint8_t bytes[ROOM];
} flying[FLYING];
static uint64_t draws;
static uint64_t draw(void) {
    uint64_t z = ++draws * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 32) * 0xD6E8FEB86659FD93u;
    z = (z ^ z >> 32) * 0xD6E8FEB86659FD93u;
    return z ^ z >> 32;
}
static float uniform(void) { return (float)(draw() >> 40) / 8388608.0f - 1.0f; }

static int open_all(const char *op, uint64_t patience) {
    cg_pair_desc d = CG_ZERO;
    float x0[N];
    if (cg_op_parse(&d.op, op) != CG_OK) return 0;
    d.n = N, d.nodes = NODES, d.seed = 9, d.patience = patience;
    memset(flying, 0, sizeof flying);
    for (int i = 0; i < NODES; i++) {
        d.rank = i;
        for (int k = 0; k < N; k++) x0[k] = uniform();
        free(mem[i]);
        mem[i] = malloc(cg_pair_memory(&d) + 1);
        if (cg_pair_init(&pair[i], &d, x0, (char *)mem[i] + 1, cg_pair_memory(&d)) != CG_OK) return 0;
    }
    return 1;
}
static double sum_of(int k) {
    double s = 0;
    for (int i = 0; i < NODES; i++) s += (double)cg_pair_model(&pair[i])[k];
    return s;
}
static double spread(void) {
    double most = 0;
    for (int k = 0; k < N; k++)
        for (int i = 0; i < NODES; i++) most = fmax(most, fabs((double)cg_pair_model(&pair[i])[k] - sum_of(k) / NODES));
    return most;
}
/* One tick of the clock: what is to be sent flies, some of it is lost or doubled, and what arrives is fed. */
static void tick(uint64_t now, int trouble) {
    for (int i = 0; i < NODES; i++) {
        cg_envelope e;
        while (cg_pair_next(&pair[i], now, &e))
            for (int copy = 0; copy < (trouble && draw() % 5 == 0 ? 2 : 1); copy++)
                for (int f = 0; f < FLYING; f++)
                    if (!flying[f].len && !(trouble && draw() % 4 == 0)) {
                        flying[f].from = i, flying[f].to = e.to, flying[f].len = e.len;
                        flying[f].arrives = now + 1 + (trouble ? draw() % 9 : 0);
                        memcpy(flying[f].bytes, e.bytes, e.len);
                        break;
                    } else if (!flying[f].len) break; /* lost */
    }
    for (int f = 0; f < FLYING; f++)
        if (flying[f].len && flying[f].arrives <= now) {
            const cg_status s = cg_pair_feed(&pair[flying[f].to], now, flying[f].from, flying[f].bytes, flying[f].len);
            if (s != CG_OK && s != CG_E_STATE) fprintf(stderr, "refused: %s\n", cg_status_str(s)), abort();
            flying[f].len = 0;
        }
}
/* Ticks until nothing flies and nobody waits. */
static int settle(uint64_t *now) {
    for (int t = 0; t < 200; t++) {
        int busy = 0;
        tick(++*now, 0);
        for (int i = 0; i < NODES; i++) busy += pair[i].asking >= 0;
        for (int f = 0; f < FLYING; f++) busy += flying[f].len != 0;
        if (!busy) return 1;
    }
    return 0;
}
TEST the_sum_changes_by_gradients_alone(void) {
    static const char *const ops[] = { "dense", "absmax:8:64", "absmax:2:64", "topk:0.1", "efsign",
        "randk:0.3:unscaled" };
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (int schedule = 0; schedule < (long_test() ? 200 : 8); schedule++) {
            double sum[N];
            uint64_t now = 0;
            ASSERT(open_all(ops[k], 12));
            for (int j = 0; j < N; j++) sum[j] = sum_of(j);
            for (int t = 0; t < 150; t++) {
                for (int i = 0; i < NODES; i++) {
                    float grad[N];
                    if (draw() % 3 == 0 && pair[i].asking < 0) {
                        const int to = (i + 1 + (int)(draw() % (NODES - 1))) % NODES;
                        ASSERT_EQ(CG_OK, cg_pair_ask(&pair[i], now, to));
                        ASSERT_EQ(CG_E_STATE, cg_pair_ask(&pair[i], now, to));
                    }
                    if (draw() % 4) continue;
                    for (int j = 0; j < N; j++) grad[j] = uniform();
                    ASSERT_EQ(CG_OK, cg_pair_gradient(&pair[i], grad, 0.01f));
                    for (int j = 0; j < N; j++) sum[j] -= 0.01 * (double)grad[j];
                    grad[7] = NAN;
                    ASSERT_EQ(CG_E_NONFINITE, cg_pair_gradient(&pair[i], grad, 0.01f));
                }
                tick(++now, schedule % 4);
            }
            ASSERT(settle(&now)); /* no deadlock, and what was lost was asked for again */
            for (int j = 0; j < N; j++) ASSERT_IN_RANGE(sum[j], sum_of(j), 2e-5);
        }
    PASS();
}
TEST models_come_together(void) {
    static const char *const ops[] = { "dense", "absmax:8:64", "topk:0.3" };
    for (size_t k = 0; k < 3; k++) {
        uint64_t now = 0;
        double before;
        ASSERT(open_all(ops[k], 0));
        before = spread();
        for (int t = 0; t < 200; t++) {
            ASSERT_EQ(CG_OK, cg_pair_ask(&pair[t % NODES], now, (t + 1 + t / NODES % (NODES - 1)) % NODES));
            ASSERT(settle(&now));
        }
        ASSERT(spread() < 1e-3 * before);
    }
    PASS();
}
/* two averages: both have the mean */
TEST a_pair_takes_the_average(void) {
    uint64_t now = 0;
    float a[N], b[N];
    ASSERT(open_all("dense", 0));
    memcpy(a, cg_pair_model(&pair[0]), sizeof a), memcpy(b, cg_pair_model(&pair[1]), sizeof b);
    ASSERT_EQ(CG_OK, cg_pair_ask(&pair[0], now, 1));
    ASSERT(settle(&now));
    for (int k = 0; k < N; k++) {
        ASSERT_IN_RANGE((a[k] + b[k]) / 2, cg_pair_model(&pair[0])[k], 2e-7f);
        ASSERT_IN_RANGE((a[k] + b[k]) / 2, cg_pair_model(&pair[1])[k], 2e-7f);
    }
    ASSERT_EQ(1u, pair[0].met);
    PASS();
}
TEST any_bytes_are_refused_and_change_nothing(void) {
    cg_envelope question, answer;
    static uint8_t q[ROOM], a[ROOM], bad[ROOM];
    float before[N];
    size_t q_len, a_len;
    ASSERT(open_all("absmax:4:64", 0));
    ASSERT_EQ(CG_OK, cg_pair_ask(&pair[2], 0, 4));
    ASSERT_EQ(1, cg_pair_next(&pair[2], 0, &question));
    memcpy(q, question.bytes, q_len = question.len);
    memcpy(before, cg_pair_model(&pair[4]), sizeof before);
    for (size_t k = 0; k < q_len; k++) {
        memcpy(bad, q, q_len);
        bad[k] ^= (uint8_t)(1 << k % 8);
        ASSERT(cg_pair_feed(&pair[4], 0, 2, bad, q_len) != CG_OK);
        ASSERT(cg_pair_feed(&pair[4], 0, 2, q, k) != CG_OK);
        if (k < 48) { /* with a right checksum */
            seal_at(bad, 64, 48);
            if (k < 24 || k >= 32) ASSERT(cg_pair_feed(&pair[4], 0, 2, bad, q_len) != CG_OK);
        }
    }
    ASSERT_EQ(CG_E_MISMATCH, cg_pair_feed(&pair[4], 0, 1, q, q_len)); /* it is not from 1 */
    ASSERT_EQ(CG_E_MISMATCH, cg_pair_feed(&pair[3], 0, 2, q, q_len)); /* it is not for 3 */
    ASSERT(!memcmp(before, cg_pair_model(&pair[4]), sizeof before));
    ASSERT_EQ(CG_OK, cg_pair_feed(&pair[4], 0, 2, q, q_len));
    ASSERT_EQ(1, cg_pair_next(&pair[4], 0, &answer));
    memcpy(a, answer.bytes, a_len = answer.len);
    memcpy(before, cg_pair_model(&pair[4]), sizeof before);
    ASSERT_EQ(CG_E_STATE, cg_pair_feed(&pair[4], 0, 2, q, q_len)); /* twice: answered twice the same, moved once */
    ASSERT_EQ(1, cg_pair_next(&pair[4], 0, &answer));
    ASSERT(answer.len == a_len && !memcmp(answer.bytes, a, a_len));
    ASSERT(!memcmp(before, cg_pair_model(&pair[4]), sizeof before));
    memcpy(before, cg_pair_model(&pair[2]), sizeof before);
    for (size_t k = 0; k < a_len; k++) {
        memcpy(bad, a, a_len);
        bad[k] ^= (uint8_t)(1 << k % 8);
        ASSERT(cg_pair_feed(&pair[2], 0, 4, bad, a_len) != CG_OK);
    }
    ASSERT(!memcmp(before, cg_pair_model(&pair[2]), sizeof before));
    ASSERT_EQ(CG_OK, cg_pair_feed(&pair[2], 0, 4, a, a_len));
    ASSERT_EQ(CG_E_STATE, cg_pair_feed(&pair[2], 0, 4, a, a_len));
    PASS();
}
TEST saved_states(void) {
    static uint8_t good[ROOM], bad[ROOM];
    size_t len;
    uint64_t now = 0;
    ASSERT(open_all("absmax:4:64", 0));
    ASSERT_EQ(CG_OK, cg_pair_ask(&pair[1], now, 2));
    ASSERT(settle(&now));
    ASSERT_EQ(CG_OK, cg_pair_save(&pair[1], good, sizeof good, &len));
    ASSERT_EQ(CG_OK, cg_pair_ask(&pair[1], now, 2));
    ASSERT(settle(&now));
    for (size_t k = 0; k < len; k++) {
        memcpy(bad, good, len);
        bad[k] ^= (uint8_t)(1 << k % 8);
        ASSERT(cg_pair_load(&pair[1], bad, len) != CG_OK);
        ASSERT(cg_pair_load(&pair[1], good, k) != CG_OK);
        if (k < 16 || (k >= 40 && k < 48)) {
            seal_at(bad, len, 48);
            ASSERT(cg_pair_load(&pair[1], bad, len) != CG_OK);
        }
    }
    ASSERT_EQ(CG_E_MISMATCH, cg_pair_load(&pair[2], good, len));
    ASSERT_EQ(CG_OK, cg_pair_load(&pair[1], good, len));
    ASSERT_EQ(CG_OK, cg_pair_ask(&pair[1], now, 2)); /* its serial was not used before, so that it is answered */
    ASSERT(settle(&now));
    ASSERT_EQ(3u, pair[1].met);
    { /* what every answer would refuse */
        cg_pair_desc d = pair[1].desc;
        float x0[N] = { 0 };
        cg_pair p;
        d.op = cg_given();
        mem[2] = realloc(mem[2], cg_pair_memory(&d));
        ASSERT(cg_pair_init(&p, &d, x0, mem[2], cg_pair_memory(&d)) != CG_OK);
        ASSERT_EQ(CG_E_STATE, cg_pair_ask(&p, 0, 2));
    }
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_TEST(the_sum_changes_by_gradients_alone);
    RUN_TEST(models_come_together);
    RUN_TEST(a_pair_takes_the_average);
    RUN_TEST(any_bytes_are_refused_and_change_nothing);
    RUN_TEST(saved_states);
    for (int i = 0; i < NODES; i++) free(mem[i]);
    GREATEST_MAIN_END();
}
