/* What a call on a state leaves behind when it was refused, and states that were loaded from odd bytes: whatever the
   fuzz target of error feedback has found. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include "ref.h"
#include "greatest.h"

enum { N = 200, ROOM = 1 << 16 };
static cg_ef ef;
static float grad[N], out[N];
static unsigned char state[ROOM], packet[ROOM], work[16 * ROOM], blobs[2][ROOM];

static cg_status open_state(const char *op, uint32_t kind, float rate, size_t carry) {
    cg_ef_desc d = CG_ZERO;
    if (cg_op_parse(&d.op, op) != CG_OK) return CG_E_ARG;
    d.n = N;
    d.kind = kind;
    d.rate = rate;
    d.carry = carry;
    ref_fill(REF_GAUSSIAN, 5, grad, N);
    return cg_ef_init(&ef, &d, state, sizeof state);
}
static cg_status step(size_t *len) { return cg_ef_compress(&ef, NULL, grad, packet, sizeof packet, len); }
static int fails(void *user, const void *mine, void *all, size_t bytes) {
    (void)user, (void)mine, (void)all, (void)bytes;
    return 5;
}
static cg_transport transport(int size) {
    cg_transport t = CG_ZERO;
    t.size = size;
    t.rank = size - 1;
    t.allgather = fails;
    return t;
}
/* The checksum of a saved state. */
static void seal(unsigned char *p, size_t len) {
    uint64_t a = 0, b = 0;
    memset(p + 240, 0, 16);
    for (size_t i = 0; i < len; i += 4) {
        a += (uint32_t)p[i] | (uint32_t)p[i + 1] << 8 | (uint32_t)p[i + 2] << 16 | (uint32_t)p[i + 3] << 24;
        b += a;
    }
    for (int i = 0; i < 8; i++) {
        p[240 + i] = (unsigned char)(a >> 8 * i);
        p[248 + i] = (unsigned char)(b >> 8 * i);
    }
}

/* The last step is the one that was refused: its gradient is not in the state, and that of the step before is no
   longer the last. */
TEST a_refused_step_is_the_last(int without) {
    cg_transport t = transport(1);
    cg_ef *efs = &ef;
    cg_layer layer;
    cg_status s = CG_OK;
    size_t len;
    memset(&layer, 0, sizeof layer);
    layer.x = grad;
    ASSERT_EQ(CG_OK, open_state("topk:0.1", CG_EF_CLASSIC, 0, 0));
    ASSERT_EQ(CG_OK, step(&len));
    ASSERT_EQ(CG_OK, cg_ef_rollback(&ef, packet, len));
    ASSERT(cg_ef_stats_of(&ef).kept);
    if (without == 0) s = cg_ef_compress(&ef, NULL, grad, NULL, sizeof packet, &len);
    if (without == 1) s = cg_ef_compress(&ef, NULL, grad, packet, sizeof packet, NULL);
    if (without == 2) s = cg_ef_exchange_layers(&efs, &layer, 1, 0, &t, work, 64, NULL);
    ASSERT_EQ(without == 2 ? CG_E_MEMORY : CG_E_ARG, s);
    ASSERT_EQ(0, cg_ef_stats_of(&ef).kept);
    ASSERT_EQ(CG_E_STATE, cg_ef_withdraw(&ef, grad));
    PASS();
}
TEST an_agreement_reports(void) {
    const cg_exchange_desc desc = CG_ZERO;
    const cg_transport t = transport(1);
    cg_report r;
    memset(&r, 0x55, sizeof r);
    ASSERT_EQ(CG_OK, open_state("topk:0.1", CG_EF_CLASSIC, 0, 0));
    ASSERT_EQ(CG_E_ARG, cg_ef_agree(&ef, NULL, &t, NULL, 0, &r));
    ASSERT(r.status == CG_E_ARG && r.at == CG_NO_INDEX && r.rank == -1 && strstr(r.why, "NULL"));
    ASSERT_EQ(CG_OK, cg_ef_agree(&ef, &desc, &t, NULL, 0, &r)); /* there is nothing to agree on */
    ASSERT(r.status == CG_OK && r.at == CG_NO_INDEX && r.rank == -1 && !strcmp(r.why, "ok"));
    PASS();
}
/* A small layer travels as f32, and the route that its operator could not take does not matter. It is a step of its
   state all the same: it was exchanged beside the state, without rate and residual. */
TEST a_small_layer_is_a_step(uint32_t kind) {
    cg_transport t = transport(1);
    cg_ef *efs = &ef;
    cg_layer layer;
    size_t bytes;
    memset(&layer, 0, sizeof layer);
    ASSERT_EQ(CG_OK, open_state("absmax:4:64", kind, 0.5f, 0));
    memcpy(out, grad, sizeof out);
    layer.x = out;
    layer.desc.route = CG_ROUTE_SHARED;
    ASSERT_EQ((size_t)0, cg_ef_exchange_memory(&ef, &layer.desc, &t)); /* alone it is refused */
    bytes = cg_ef_layers_memory(&efs, &layer, 1, N + 1, &t);
    ASSERT(bytes && bytes <= sizeof work);
    ASSERT_EQ(CG_OK, cg_ef_exchange_layers(&efs, &layer, 1, N + 1, &t, work, bytes, NULL));
    ASSERT(cg_ef_stats_of(&ef).kept && ef.steps == 1);
    for (size_t i = 0; i < N; i++) ASSERT_EQ_FMT((double)(0.5f * grad[i]), (double)out[i], "%.9g");
    PASS();
}
/* A refused layer leaves the state as it was, also where its carry begins. */
TEST a_refused_layer_leaves_the_carry(void) {
    cg_transport t = transport(2);
    cg_ef *efs = &ef;
    cg_layer layer;
    size_t len[2];
    memset(&layer, 0, sizeof layer);
    ASSERT_EQ(CG_OK, open_state("topk:0.1", CG_EF_CLASSIC, 0, N));
    layer.x = grad;
    layer.desc.route = CG_ROUTE_SCATTER; /* without sendrecv */
    ASSERT_EQ(CG_OK, cg_ef_save(&ef, blobs[0], ROOM, &len[0]));
    ASSERT(cg_ef_layers_memory(&efs, &layer, 1, 0, &t) <= sizeof work);
    ASSERT(cg_ef_exchange_layers(&efs, &layer, 1, 0, &t, work, sizeof work, NULL) != CG_OK);
    ASSERT_EQ(CG_OK, cg_ef_save(&ef, blobs[1], ROOM, &len[1]));
    ASSERT(len[0] == len[1] && !memcmp(blobs[0], blobs[1], len[0]));
    PASS();
}
/* A rank that refuses a gradient and cannot tell: what is returned is what the report says. */
TEST a_report_fits_its_status(void) {
    cg_transport t = transport(2);
    cg_ef *efs = &ef;
    cg_layer layer;
    cg_report r;
    cg_status s;
    memset(&layer, 0, sizeof layer);
    ASSERT_EQ(CG_OK, open_state("topk:0.1", CG_EF_CLASSIC, 0, 0));
    grad[7] = ref_float(0x7fc00000u);
    layer.x = grad;
    ASSERT(cg_ef_layers_memory(&efs, &layer, 1, 0, &t) <= sizeof work);
    s = cg_ef_exchange_layers(&efs, &layer, 1, 0, &t, work, sizeof work, &r);
    ASSERT_EQ(CG_E_TRANSPORT, s);
    ASSERT_EQ_FMT((unsigned)s, (unsigned)r.status, "%u");
    ASSERT_EQ(s, layer.status);
    ASSERT(r.code == 5 && layer.report.status == CG_E_NONFINITE && layer.report.at == 7);
    PASS();
}
/* A scale that no operator has is a factor as large as a float can be, and no Inf. */
TEST a_loaded_scale_is_survived(uint32_t kind) {
    size_t len;
    ASSERT_EQ(CG_OK, open_state("topk:0.1", kind, 0, 0));
    ASSERT_EQ(CG_OK, cg_ef_save(&ef, blobs[0], ROOM, &len));
    memset(blobs[0] + 192, 0, 4);
    blobs[0][192] = 1; /* the smallest float above 0 */
    seal(blobs[0], len);
    ASSERT_EQ(CG_OK, cg_ef_load(&ef, blobs[0], len));
    ASSERT_EQ(CG_OK, step(&len));
    ASSERT_EQ(CG_OK, cg_ef_rollback(&ef, packet, len));
    ASSERT_EQ(CG_OK, cg_ef_read(&ef, CG_EF_ERROR, out, N));
    for (size_t i = 0; i < N; i++) ASSERT(ref_finite(out[i]));
    PASS();
}
/* The carry of the last rank may reach beyond the vector, if all ranks have given the longest stripe; where it begins
   must be in the vector. */
TEST a_long_carry_comes_back(void) {
    const void *both[2] = { blobs[0], blobs[0] };
    size_t lens[2];
    ASSERT_EQ(CG_OK, open_state("topk:0.1", CG_EF_CLASSIC, 0, 67)); /* 67 + 67 + 66 */
    ASSERT_EQ(CG_OK, cg_ef_save(&ef, blobs[0], ROOM, &lens[0]));
    lens[1] = lens[0];
    blobs[0][48] = 134;
    seal(blobs[0], lens[0]);
    ASSERT_EQ(CG_OK, cg_ef_load(&ef, blobs[0], lens[0]));
    ASSERT_EQ(CG_OK, cg_ef_load_mean(&ef, both, lens, 2));
    blobs[0][48] = N + 1;
    seal(blobs[0], lens[0]);
    ASSERT_EQ(CG_E_MISMATCH, cg_ef_load(&ef, blobs[0], lens[0]));
    ASSERT_EQ(CG_E_MISMATCH, cg_ef_load_mean(&ef, both, lens, 2));
    PASS();
}
/* A contribution that was made with another support is refused before anything is subtracted. */
TEST another_support_is_refused(void) {
    static unsigned char supports[2][ROOM], scratch[1 << 20];
    const cg_op op = cg_topk(0.1f);
    cg_extra side[2] = { CG_ZERO, CG_ZERO };
    size_t len;
    ASSERT_EQ(CG_OK, open_state("given", CG_EF_CLASSIC, 0, 0));
    for (int i = 0; i < 2; i++) {
        ref_fill(REF_GAUSSIAN, 8 + (unsigned)i, out, N);
        ASSERT_EQ(
            CG_OK, cg_compress(&op, NULL, out, N, supports[i], ROOM, &side[i].support_len, scratch, sizeof scratch));
        side[i].support = supports[i];
    }
    ASSERT_EQ(CG_OK, cg_ef_compress_with(&ef, NULL, &side[0], grad, packet, ROOM, &len));
    ASSERT_EQ(CG_E_MISMATCH, cg_ef_commit_with(&ef, &side[1], packet, len, NULL));
    ASSERT_EQ(CG_OK, cg_ef_commit_with(&ef, &side[0], packet, len, NULL)); /* still pending */
    PASS();
}

SUITE(refused) {
    for (int without = 0; without < 3; without++) RUN_TEST1(a_refused_step_is_the_last, without);
    RUN_TEST(an_agreement_reports);
    RUN_TEST1(a_small_layer_is_a_step, (uint32_t)CG_EF_CLASSIC);
    RUN_TEST1(a_small_layer_is_a_step, (uint32_t)CG_EF_LOCO);
    RUN_TEST(a_refused_layer_leaves_the_carry);
    RUN_TEST(a_report_fits_its_status);
    RUN_TEST1(a_loaded_scale_is_survived, (uint32_t)CG_EF_CLASSIC);
    RUN_TEST1(a_loaded_scale_is_survived, (uint32_t)CG_EF_MOMENTUM);
    RUN_TEST1(a_loaded_scale_is_survived, (uint32_t)CG_EF_ONEBIT_ADAM);
    RUN_TEST(a_long_carry_comes_back);
    RUN_TEST(another_support_is_refused);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(refused);
    GREATEST_MAIN_END();
}
