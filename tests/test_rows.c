/* Tables of stages, codes of indices, routes, folds and kinds: every row stands at the place of its id, and traits say
   what the code asked of single stages, routes and kinds before there were traits. Those questions are written here in
   plain C, and compared over all stages with all their flags, and over all routes, folds and kinds. */
#undef COMPGRAD_LINKED /* private names: a copy of its own */
#define COMPGRAD_STATIC
#define COMPGRAD_NO_SIMD /* nothing here depends on it, and it is quicker to build */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include "greatest.h"
#include <stdio.h>

static char note[400];
#define SAME(what, was, is)                                                                                   \
  do {                                                                                                        \
    const double was_ = (double)(was), is_ = (double)(is);                                                    \
    if (was_ != is_) {                                                                                        \
      char text_[160] = "?";                                                                                  \
      if (cg_op_print(op, text_, sizeof text_) != CG_OK) text_[0] = '?';                                      \
      snprintf(note, sizeof note, "%s of %s (%d %d %d %d): it was %g, and is %g", what, text_, op->sample.id, \
          op->transform.id, op->select.id, op->quantize.id, was_, is_);                                       \
      FAILm(note);                                                                                            \
    }                                                                                                         \
  } while (0)

/* ---- what was asked of stages ---- */

static int was_matrix(const cg_op *op) {
    return op->transform.id == CG_TRANSFORM_LOWRANK || op->transform.id == CG_TRANSFORM_ATOMO;
}
static int was_fixed_k(const cg_op *op) { return op->select.id == CG_SELECT_TOPK || op->select.id == CG_SELECT_MSTOPK; }
static int was_with_aux(const cg_op *op) {
    return op->select.id == CG_SELECT_BINS || op->select.id == CG_SELECT_VARIANCE;
}
static uint64_t was_k(double ratio, uint64_t fixed, uint64_t n) {
    const double exact = ratio * (double)n + 0.5;
    uint64_t k = fixed ? fixed : exact >= (double)n ? n : (uint64_t)exact;
    if (!n) return 0;
    return k < 1 ? 1 : k > n ? n : k;
}
static uint64_t was_sampled(const cg_op *op, uint64_t n) { /* of the rank that has most */
    if (op->sample.id == CG_SAMPLE_PERMK || op->sample.id == CG_SAMPLE_CYCLIC)
        return n / op->sample.size + (n % op->sample.size != 0);
    if (op->sample.id == CG_SAMPLE_RANDK) return was_k((double)op->sample.value, was_fixed_k(op) ? 0 : op->k, n);
    return n;
}
static uint64_t was_transformed(const cg_op *op, uint64_t n) {
    const uint64_t rows = op->transform.size, cols = (uint64_t)op->transform.value;
    uint64_t r = op->transform.arg;
    switch (op->transform.id) {
    case CG_TRANSFORM_ROTATE: return (n + 1023) / 1024 * 1024;
    case CG_TRANSFORM_DCT: return (n + 63) / 64 * 64;
    case CG_TRANSFORM_LOWRANK:
    case CG_TRANSFORM_ATOMO:
        if (r > rows) r = rows;
        if (r > cols) r = cols;
        return (rows + cols) * r;
    default: return n;
    }
}
static uint64_t was_selected(const cg_op *op, uint64_t n) {
    const uint64_t chunk = op->select.size;
    uint64_t k;
    switch (op->select.id) {
    case CG_SELECT_TOPK:
    case CG_SELECT_MSTOPK: return was_k((double)op->select.value, op->k, n);
    case CG_SELECT_SIDE: return was_k((double)op->select.value, 0, n);
    case CG_SELECT_DGC:
    case CG_SELECT_SIDCO: k = was_k((double)op->select.value, 0, n); return k + k * 3 / 10 < n ? k + k * 3 / 10 : n;
    case CG_SELECT_CHUNKED:
        return n / chunk * was_k((double)op->select.value, 0, chunk) + was_k((double)op->select.value, 0, n % chunk);
    default: return n;
    }
}
/* Levels that are entropy coded by their quantizer; not in 0.1. */
static int was_coded(const cg_stage *q) { return q->id == CG_QUANTIZE_RATE || q->id == CG_QUANTIZE_STEP; }
static int was_unbiased(const cg_op *op) {
    const cg_stage *q = &op->quantize;
    if (op->sample.flags & CG_FLAG_UNSCALED) return 0;
    if (op->transform.id == CG_TRANSFORM_LOWRANK) return 0;
    if (op->select.id && op->select.id != CG_SELECT_WANGNI && op->select.id != CG_SELECT_WANGNIVAR &&
        op->select.id != CG_SELECT_BLOCKS)
        return 0;
    switch (q->id) {
    case 0: return 1;
    case CG_QUANTIZE_MINMAX:
    case CG_QUANTIZE_ABSMAX:
    case CG_QUANTIZE_LEVELS:
    case CG_QUANTIZE_DITHER:
    case CG_QUANTIZE_NATURAL: return !(q->flags & CG_FLAG_NEAREST);
    case CG_QUANTIZE_TERNGRAD: return !q->flags;
    case CG_QUANTIZE_LLOYD: return op->transform.arg >= 2;
    case CG_QUANTIZE_F16: /* since 0.1 */
    case CG_QUANTIZE_BF16:
    case CG_QUANTIZE_E4M3:
    case CG_QUANTIZE_E5M2:
    case CG_QUANTIZE_MXFP4:
    case CG_QUANTIZE_MXE4M3:
    case CG_QUANTIZE_MXE5M2:
    case CG_QUANTIZE_NVFP4:
    case CG_QUANTIZE_NF4: return q->flags & CG_FLAG_STOCHASTIC;
    case CG_QUANTIZE_RATE:
    case CG_QUANTIZE_STEP: return q->flags & CG_FLAG_UNBIASED;
    default: return 0;
    }
}
/* The level at the end of a grid around zero; 0: there is none. */
static int was_max_level(const cg_stage *q) {
    switch (q->id) {
    case CG_QUANTIZE_FLEX16: return 32767;
    case CG_QUANTIZE_TERNGRAD:
    case CG_QUANTIZE_TRITS: return 1;
    case CG_QUANTIZE_LEVELS: return q->arg;
    case CG_QUANTIZE_FLEXPOINT: return (1 << (q->arg - 1)) - 1;
    case CG_QUANTIZE_ABSMAX: return q->arg == 1 ? 0 : (1 << (q->arg - 1)) - 1;
    default: return 0;
    }
}
static int was_float_width(const cg_stage *q) { return q->id == 0 ? 4 : q->id == CG_QUANTIZE_BF16 ? 2 : 0; }
static int was_sparse_f32(const cg_op *op) {
    return op->select.id && op->select.id != CG_SELECT_GIVEN && !op->sample.id && !op->transform.id && !op->quantize.id;
}
static int was_with_target_k(const cg_op *op) {
    return was_fixed_k(op) || op->select.id == CG_SELECT_CHUNKED || op->select.id == CG_SELECT_DGC ||
        op->select.id == CG_SELECT_SIDCO;
}
static int was_of_fixed_length(const cg_op *op) {
    if (op->code.arg || op->code.id == CG_CODE_GOLOMB || op->quantize.id >= CG_QUANTIZE_USER ||
        was_coded(&op->quantize) || op->sample.id == CG_SAMPLE_PERMK)
        return 0;
    return !op->select.id || was_fixed_k(op) || op->select.id == CG_SELECT_CHUNKED;
}
/* Which stage holds the ratio: 2 the selection, 1 the sample, 0 none. */
static int was_ratio_stage(const cg_op *op) {
    switch (op->select.id) {
    case CG_SELECT_TOPK:
    case CG_SELECT_DGC:
    case CG_SELECT_MSTOPK:
    case CG_SELECT_SIDCO:
    case CG_SELECT_WANGNI:
    case CG_SELECT_SIDES:
    case CG_SELECT_SIDE:
    case CG_SELECT_CHUNKED: return 2;
    default: return op->sample.id == CG_SAMPLE_RANDK ? 1 : 0;
    }
}
static int was_needing_whole(const cg_op *op) {
    if (was_matrix(op)) return 1;
    return !op->sample.id && !op->transform.id &&
        (op->select.id ? op->select.id != CG_SELECT_TOPK : op->quantize.id >= CG_QUANTIZE_USER);
}
/* What a report says without error feedback begins with, after "ok; "; "" if nothing is to be said. */
static const char *was_stalling(const cg_op *op) {
    static const char *const selections[] = { "", "topk", "threshold", "dgc", "mstopk", "sidco", "", "", "bins",
        "sides", "side", "chunked", "", "given", "variance" };
    if (op->sample.flags & CG_FLAG_UNSCALED)
        return op->sample.id == CG_SAMPLE_RANDK ? "randk" : op->sample.id == CG_SAMPLE_PERMK ? "permk" : "cyclic";
    if (op->transform.id == CG_TRANSFORM_LOWRANK) return "lowrank";
    if (selections[op->select.id][0]) return selections[op->select.id];
    switch (op->quantize.id) {
    case CG_QUANTIZE_SIGN: return "sign";
    case CG_QUANTIZE_EFSIGN: return "efsign";
    case CG_QUANTIZE_TRITS: return "trits";
    case CG_QUANTIZE_GEOMETRIC: return "geometric"; /* since 0.1 */
    case CG_QUANTIZE_STROM: return "strom";
    case CG_QUANTIZE_ONEBIT: return "onebit";
    case CG_QUANTIZE_MEAN: return "mean";
    case CG_QUANTIZE_RATE: return op->quantize.flags ? "" : "rate";
    case CG_QUANTIZE_STEP: return op->quantize.flags ? "" : "step";
    default: return "";
    }
}

static enum greatest_test_res compare_stages(const cg_op *op) {
    const uint32_t t = cg_op_traits_(op);
    const uint64_t n = was_matrix(op) ? (uint64_t)op->transform.size * (uint64_t)op->transform.value : 5003;
    const cg_stage *q = &op->quantize;
    const int user = q->id >= CG_QUANTIZE_USER;
    cg_op copy = *op;
    cg_plan_ plan = cg_plan_of_(op, n);
    cg_resolved_ r;
    unsigned bits;
    /* core */
    SAME("matrix", was_matrix(op), (t & CG_IS_MATRIX_) != 0);
    SAME("PowerSGD", op->transform.id == CG_TRANSFORM_LOWRANK, (t & CG_IS_LINEAR_MATRIX_) != 0);
    SAME("rotation", op->transform.id == CG_TRANSFORM_ROTATE, (t & CG_IS_ROTATION_) != 0);
    SAME("fixed k", was_fixed_k(op), (t & CG_TAKES_K_) != 0);
    SAME("exactly so many", was_fixed_k(op) || op->select.id == CG_SELECT_CHUNKED, (t & CG_KEEPS_EXACTLY_) != 0);
    SAME("a threshold in the header",
        was_fixed_k(op) || op->select.id == CG_SELECT_DGC || op->select.id == CG_SELECT_SIDCO,
        (t & CG_KEEPS_LARGEST_) != 0);
    SAME("one side", op->select.id == CG_SELECT_SIDE, (t & CG_KEEPS_ONE_SIDE_) != 0);
    SAME("blocks", op->select.id == CG_SELECT_BLOCKS, (t & CG_KEEPS_BLOCKS_) != 0);
    SAME("aux", was_with_aux(op), (t & CG_NEEDS_AUX_) != 0);
    SAME("aux of variances", op->select.id == CG_SELECT_VARIANCE, (t & CG_AUX_IS_VARIANCE_) != 0);
    SAME("support", op->select.id == CG_SELECT_GIVEN, (t & CG_NEEDS_SUPPORT_) != 0);
    SAME("indices", op->select.id && op->select.id != CG_SELECT_GIVEN, cg_has_indices_(&plan));
    SAME("fused with a producer", op->select.id == CG_SELECT_TOPK, (t & CG_TAKES_PRODUCER_) != 0);
    SAME("PermK", op->sample.id == CG_SAMPLE_PERMK, (t & CG_IS_PER_RANK_) != 0);
    SAME("random-k", op->sample.id == CG_SAMPLE_RANDK, (t & CG_SAMPLES_RATIO_) != 0);
    SAME("a codec of the user's", user, (t & CG_IS_USER_CODEC_) != 0);
    SAME("own scales",
        q->id == CG_QUANTIZE_LLOYD || q->id == CG_QUANTIZE_NVFP4 || q->id == CG_QUANTIZE_GEOMETRIC || was_coded(q),
        (t & CG_OWNS_SCALES_) != 0);
    SAME("behind a rotation", q->id == CG_QUANTIZE_LLOYD, (t & CG_WANTS_ROTATION_) != 0);
    SAME("two ends", q->id == CG_QUANTIZE_MINMAX, (t & CG_SCALES_ARE_ENDS_) != 0);
    SAME("votes", q->id == CG_QUANTIZE_SIGN, (t & CG_IS_SIGN_) != 0);
    SAME("bytes of stored floats", was_float_width(q), cg_float_width_(q));
    SAME("scales that are steps", q->id == CG_QUANTIZE_FLEXPOINT || q->id == CG_QUANTIZE_FLEX16,
        (t & CG_SCALE_IS_STEP_) != 0);
    SAME("levels to nearest",
        q->id == CG_QUANTIZE_TRITS || q->id == CG_QUANTIZE_FLEXPOINT || q->id == CG_QUANTIZE_FLEX16,
        (t & CG_ROUNDS_TO_NEAREST_) != 0);
    SAME("largest level", was_max_level(q), cg_grid_zero_symbol_(q, &bits));
    SAME("sampled_n", was_sampled(op, n), plan.sampled_n);
    SAME("transformed_n", was_transformed(op, plan.sampled_n), plan.transformed_n);
    SAME("max_selected", was_selected(op, plan.transformed_n), plan.max_selected);
    SAME("values per index", op->select.id == CG_SELECT_BLOCKS ? op->select.size : 1, plan.values_per_index);
    /* exchange */
    SAME("f32", q->id == 0, (t & CG_IS_F32_) != 0);
    SAME("sparse f32", was_sparse_f32(op) && !op->code.arg, cg_is_sparse_f32_(op, t));
    SAME("dense f32", !q->id && !op->select.id && !op->code.arg, cg_is_dense_f32_(op, t));
    SAME("target k", was_with_target_k(op), (t & CG_KEEPS_ABOUT_) != 0);
    SAME("fixed length", was_of_fixed_length(op), cg_has_fixed_len_(op, t) != 0);
    SAME("unbiased", was_unbiased(op), cg_is_unbiased_(op));
    /* error feedback */
    SAME("the stage with the ratio", was_ratio_stage(op),
        cg_op_ratio_stage_(&copy) == &copy.select       ? 2
            : cg_op_ratio_stage_(&copy) == &copy.sample ? 1
                                                        : 0);
    SAME("the whole vector", was_needing_whole(op), cg_ef_needs_whole_vector_(op, t) != 0);
    if (cg_op_only_old_(op)) return GREATEST_TEST_RES_PASS;
    SAME("resolved", CG_OK, cg_resolve_(op, NULL, (size_t)n, &r));
    SAME("bound", user ? 0 : cg_bound(op, (size_t)n), r.bound);
    SAME("scratch", cg_scratch(op, (size_t)n), r.scratch_bytes);
    SAME("k that is aimed at", was_k((double)op->select.value, op->k, n), r.target_k);
    SAME("resolved level", was_max_level(q), r.max_level);
    SAME("resolved bias", was_unbiased(op), r.is_unbiased);
    SAME("warns", was_stalling(op)[0] != 0, r.warning != NULL);
    if (r.warning && strncmp(r.warning + 4, was_stalling(op), strlen(was_stalling(op))) != 0) FAILm(r.warning);
    return GREATEST_TEST_RES_PASS;
}

static const cg_stage samples[] = { { 0, 0, 0, 0, 0.0f }, { CG_SAMPLE_RANDK, 0, 0, 0, 0.3f },
    { CG_SAMPLE_RANDK, CG_FLAG_UNSCALED, 0, 0, 0.3f }, { CG_SAMPLE_PERMK, 0, 0, 3, 0.0f },
    { CG_SAMPLE_PERMK, CG_FLAG_UNSCALED, 0, 3, 0.0f }, { CG_SAMPLE_CYCLIC, 0, 0, 7, 0.0f },
    { CG_SAMPLE_CYCLIC, CG_FLAG_UNSCALED, 0, 7, 0.0f } };
static const cg_stage transforms[] = { { 0, 0, 0, 0, 0.0f }, { CG_TRANSFORM_ROTATE, 0, 1, 0, 0.0f },
    { CG_TRANSFORM_ROTATE, 0, 2, 0, 0.0f }, { CG_TRANSFORM_ROTATE, 0, 3, 0, 0.0f }, { CG_TRANSFORM_DCT, 0, 0, 0, 0.0f },
    { CG_TRANSFORM_LOWRANK, 0, 4, 50, 40.0f }, { CG_TRANSFORM_LOWRANK, 0, 60, 50, 40.0f },
    { CG_TRANSFORM_ATOMO, 0, 4, 50, 40.0f } };
enum { SAMPLES = sizeof samples / sizeof samples[0], TRANSFORMS = sizeof transforms / sizeof transforms[0] };

/* A stage with parameters in the range of its row, the smallest or the largest arg; 0: there is no such row. */
static int stage_of(unsigned slot, unsigned id, unsigned flags, int largest, cg_stage *s) {
    const cg_stage_row_ *row = cg_row_at_(slot, id);
    memset(s, 0, sizeof *s);
    s->id = (uint8_t)id;
    s->flags = (uint8_t)flags;
    if (slot == CG_SLOT_QUANTIZE_ && id >= CG_QUANTIZE_USER) {
        s->arg = (uint16_t)(largest ? 7 : 0);
        return 1;
    }
    if (!row) return 0;
    s->arg = largest ? row->arg_hi : row->arg_lo;
    s->size = row->size_hi ? 64 : 0;
    s->value = row->value_hi == 0.0f ? 0.0f : row->value_hi > 4.0f ? 0.25f : largest ? row->value_hi : 1.0f;
    if (slot == CG_SLOT_SELECT_ && row->value_hi == 1.0f) s->value = 0.01f;
    return 1;
}
/* All combinations that cg_op_check_ accepts. */
TEST traits_of_stages_are_what_was_asked(void) {
    size_t compared = 0;
    cg_op op;
    for (unsigned select = 0; select < 16; select++)
        for (unsigned id = 0; id < 256; id++)
            for (unsigned flags = 0; flags < 4; flags++)
                for (int which = 0; which < 2 * SAMPLES * TRANSFORMS; which++)
                    for (unsigned code = 0; code < 8; code++) {
                        memset(&op, 0, sizeof op);
                        op.sample = samples[which / 2 % SAMPLES];
                        op.transform = transforms[which / 2 / SAMPLES];
                        if (!stage_of(CG_SLOT_SELECT_, select, 0, 0, &op.select)) continue;
                        if (!stage_of(CG_SLOT_QUANTIZE_, id, flags, which % 2, &op.quantize)) continue;
                        op.code.id = (uint8_t)(code % 4);
                        op.code.arg = (uint16_t)(code / 4 * (CG_CODE_HUFFMAN - CG_CODE_PACKED));
                        op.k = code == 0 && which % 3 == 0 ? 17 : 0;
                        if (cg_op_check_(&op) != CG_OK) continue;
                        compared++;
                        CHECK_CALL(compare_stages(&op));
                    }
    snprintf(note, sizeof note, "%lu operators", (unsigned long)compared);
    if (compared < 10000) FAILm(note);
    PASSm(note);
}
TEST rows_stand_at_their_ids(void) {
    static const unsigned counts[] = { 4, 5, 15, 29 };
    for (unsigned slot = 0; slot < CG_SLOT_CODE_; slot++) {
        unsigned id = 0;
        for (; cg_row_at_(slot, id); id++) {
            ASSERT_EQ_FMT(slot, (unsigned)cg_row_at_(slot, id)->slot, "%u");
            ASSERT_EQ_FMT(id, (unsigned)cg_row_at_(slot, id)->id, "%u");
            ASSERT_EQ(id == 0, !cg_row_at_(slot, id)->name[0]);
        }
        ASSERT_EQ_FMT(counts[slot], id, "%u");
    }
    for (unsigned id = 0; id < 4; id++) ASSERT_EQ_FMT(id, (unsigned)cg_index_coder_at_(id)->id, "%u");
    ASSERT_EQ(NULL, cg_index_coder_at_(4));
    for (uint32_t id = 0; id <= CG_ROUTE_ALL_GATHER; id++) ASSERT_EQ_FMT(id, cg_route_row_of_(id)->id, "%u");
    ASSERT_EQ_FMT(0u, cg_route_row_of_(CG_ROUTE_ALL_GATHER + 1)->traits, "%u");
    for (uint32_t id = 0; id <= CG_FOLD_CLIPPED; id++) ASSERT_EQ_FMT(id, cg_fold_row_of_(id)->id, "%u");
    ASSERT_EQ_FMT(0u, cg_fold_row_of_(CG_FOLD_CLIPPED + 1)->traits, "%u");
    ASSERT(cg_is_known_(CG_ROUTE_LINEAR, CG_FOLD_CONTRIBUTORS));
    ASSERT(!cg_is_known_(CG_ROUTE_ALL_GATHER + 1, 0) && !cg_is_known_(0, CG_FOLD_CLIPPED + 1));
    for (uint32_t id = 0; id <= CG_EF_ONEBIT_ADAM; id++) ASSERT_EQ_FMT(id, cg_ef_row_at_(id)->id, "%u");
    ASSERT_EQ(NULL, cg_ef_row_at_(CG_EF_DIFFERENCE + 1));
    PASS();
}

/* ---- index codes: lengths as they were computed before ---- */

static uint64_t words(uint64_t bits) { return (bits + 31) / 32 * 4; }
static unsigned log2_of(uint64_t v) {
    unsigned l = 0;
    while (v >>= 1) l++;
    return l;
}
static uint64_t was_elias_fano(uint64_t universe, uint64_t k) {
    const unsigned low = universe / k ? log2_of(universe / k) : 0;
    return words(k * low) + words(k + ((universe - 1) >> low) + 1);
}
TEST lengths_of_index_codes(void) {
    static const uint64_t universes[] = { 1, 31, 32, 33, 100, 1000, 65536, 1000003, (uint64_t)1 << 33 };
    for (size_t u = 0; u < sizeof universes / sizeof universes[0]; u++)
        for (uint64_t k = 1; k <= universes[u] && k < 5000; k += 1 + k / 3) {
            const uint64_t universe = universes[u], bitmap = words(universe), sparse = was_elias_fano(universe, k) + 8;
            cg_op op = cg_threshold(0.0f);
            ASSERT_EQ(was_elias_fano(universe, k), cg_index_bytes_(CG_CODE_ELIAS_FANO, universe, k));
            ASSERT_EQ(bitmap, cg_index_bytes_(CG_CODE_BITMAP, universe, k));
            ASSERT_EQ(cg_rice_bound_(universe, k), cg_index_bytes_(CG_CODE_GOLOMB, universe, k));
            ASSERT_EQ(sparse < bitmap ? sparse : bitmap, cg_index_bound_(&op, universe, k));
            op.code.id = CG_CODE_ELIAS_FANO;
            ASSERT_EQ(sparse, cg_index_bound_(&op, universe, k));
            op.code.id = CG_CODE_BITMAP;
            ASSERT_EQ(bitmap, cg_index_bound_(&op, universe, k));
        }
    ASSERT_EQ(0u, cg_index_bytes_(CG_CODE_AUTO, 1000, 5));
    ASSERT_EQ(0u, cg_index_bytes_(CG_CODE_BITMAP, 1000, 0));
    PASS();
}

/* ---- what was asked of routes and folds ---- */

#define SAME_ROUTE(what, was, is)                                                                                 \
  do {                                                                                                            \
    if (!(was) != !(is)) {                                                                                        \
      snprintf(note, sizeof note, "%s of route %u, fold %u, %d ranks, exact %d, fixed %d", what, (unsigned)route, \
          (unsigned)fold, ex.transport.size, ex.plan.exact, ex.plan.op_len_fixed);                                \
      FAILm(note);                                                                                                \
    }                                                                                                             \
  } while (0)
TEST traits_of_routes_are_what_was_asked(void) {
    cg_ex_ ex;
    for (uint32_t route = CG_ROUTE_ALLGATHER; route <= CG_ROUTE_LINEAR; route++)
        for (uint32_t fold = 0; fold <= CG_FOLD_CLIPPED; fold++)
            for (int how = 0; how < 128; how++) {
                const int striped = route == CG_ROUTE_RING || route == CG_ROUTE_SCATTER;
                const int hops = route == CG_ROUTE_RING || route == CG_ROUTE_TREE;
                const int server = route == CG_ROUTE_SERVER, scatter = route == CG_ROUTE_SCATTER;
                size_t carry;
                memset(&ex, 0, sizeof ex);
                ex.n = 1000;
                ex.transport.size = how & 1 ? 3 : 1;
                ex.transport.rank = how & 1 ? how >> 6 & 1 : 0;
                ex.plan.route = route;
                ex.plan.stripes = striped ? ex.transport.size : 1;
                ex.plan.exact = how >> 1 & 1;
                ex.plan.op_len_fixed = how >> 2 & 1;
                ex.desc.leader = how & 8 ? CG_LEADER_BY_SCORE : 0;
                ex.desc.back = how & 16 ? &ex.desc.op : NULL;
                ex.plan.traits = how & 32 ? CG_IS_MATRIX_ : 0;
                ex.desc.fold = fold;
                ex.opening.weight_sum = 7.0;
                SAME_ROUTE("stripes", striped, cg_route_has_(&ex, CG_ROUTE_STRIPES_));
                SAME_ROUTE("sendrecv",
                    striped || route == CG_ROUTE_TREE || route == CG_ROUTE_MERGE || route == CG_ROUTE_REGION,
                    cg_route_has_(&ex, CG_ROUTE_SENDS_));
                SAME_ROUTE("cut or added on the way", striped || route == CG_ROUTE_TREE,
                    cg_route_has_(&ex, CG_ROUTE_ADDS_ON_THE_WAY_));
                SAME_ROUTE("back", ex.desc.back && (server || scatter), cg_has_back_(&ex));
                SAME_ROUTE("hops", hops && !ex.plan.exact, cg_hops_reencode_(&ex));
                SAME_ROUTE("votes", route == CG_ROUTE_ALLGATHER || server || scatter,
                    cg_route_has_(&ex, CG_ROUTE_PACKETS_MEET_));
                SAME_ROUTE("contributors, abstaining", route == CG_ROUTE_ALLGATHER,
                    cg_route_has_(&ex, CG_ROUTE_MEETS_EVERYWHERE_));
                SAME_ROUTE("no scales", route == CG_ROUTE_LINEAR || route == CG_ROUTE_SHARED,
                    cg_route_has_(&ex, CG_ROUTE_ALLREDUCES_));
                SAME_ROUTE("no dense step",
                    route == CG_ROUTE_MERGE || route == CG_ROUTE_SHARED || route == CG_ROUTE_REGION,
                    cg_route_has_(&ex, CG_ROUTE_NEEDS_INDICES_));
                SAME_ROUTE("no weights", route == CG_ROUTE_MERGE || route == CG_ROUTE_REGION,
                    cg_route_has_(&ex, CG_ROUTE_HAS_NO_WEIGHTS_));
                SAME_ROUTE("turns", route == CG_ROUTE_SHARED, cg_route_has_(&ex, CG_ROUTE_LEADS_IN_TURN_));
                SAME_ROUTE("tables", route == CG_ROUTE_REGION || (scatter && !ex.plan.op_len_fixed),
                    cg_route_has_(&ex, CG_ROUTE_TELLS_COUNTS_) ||
                        (cg_route_has_(&ex, CG_ROUTE_TELLS_LENGTHS_) && !ex.plan.op_len_fixed));
                SAME_ROUTE("verdict on records",
                    (!ex.plan.op_len_fixed && (route == CG_ROUTE_ALLGATHER || server)) ||
                        (ex.desc.leader == CG_LEADER_BY_SCORE && (server || route == CG_ROUTE_SHARED)),
                    cg_records_need_verdict_(&ex));
                SAME_ROUTE("compressed first",
                    !(hops && !ex.plan.exact) && route != CG_ROUTE_SHARED &&
                        !(route == CG_ROUTE_LINEAR && ex.plan.traits),
                    cg_is_compressed_first_(&ex));
                SAME_ROUTE("the sum's rank", (server || scatter) && (ex.plan.exact || fold == CG_FOLD_VOTE),
                    cg_reduced_rank_(&ex, 0));
                if (striped)
                    SAME_ROUTE("stripe of a rank", (route == CG_ROUTE_RING) && ex.transport.size > 1,
                        cg_stripe_of_rank_(&ex, ex.transport.rank) != ex.transport.rank);
                carry = 0;
                if (!ex.plan.exact && fold != CG_FOLD_VOTE)
                    carry = hops  ? ex.n
                        : scatter ? cg_stripe_n_(&ex, ex.transport.rank)
                        : server && (ex.transport.rank == 0 || ex.desc.leader == CG_LEADER_BY_SCORE) ? ex.n
                                                                                                     : 0;
                SAME_ROUTE("carry", 0, carry != cg_carry_floats_(&ex));
                SAME_ROUTE("vote", fold == CG_FOLD_VOTE, cg_fold_has_(&ex, CG_FOLD_NEEDS_SIGNS_));
                SAME_ROUTE("contributors", fold == CG_FOLD_CONTRIBUTORS, cg_fold_has_(&ex, CG_FOLD_NEEDS_PLACES_));
                SAME_ROUTE("mean or sum", fold <= CG_FOLD_SUM, cg_fold_has_(&ex, CG_FOLD_IS_LINEAR_));
                if (fold != CG_FOLD_VOTE)
                    SAME_ROUTE("divisor", 0, cg_divisor_(&ex) != (fold == CG_FOLD_SUM ? 1.0 : 7.0));
            }
    PASS();
}
/* Which operators a route takes, as far as its row says. */
TEST routes_take_what_they_took(void) {
    size_t taken = 0;
    cg_ex_ ex;
    memset(&ex, 0, sizeof ex);
    for (uint32_t route = CG_ROUTE_ALLGATHER; route <= CG_ROUTE_LINEAR; route++)
        for (unsigned select = 0; select < 15; select++)
            for (unsigned id = 0; id < 25; id++)
                for (int which = 0; which < SAMPLES * TRANSFORMS; which++)
                    for (int code = 0; code < 2; code++) {
                        const cg_op *op = &ex.desc.op;
                        const cg_route_row_ *row = cg_route_row_of_(route);
                        int was = 1, is;
                        ex.desc.op.sample = samples[which % SAMPLES];
                        ex.desc.op.transform = transforms[which / SAMPLES];
                        stage_of(CG_SLOT_SELECT_, select, 0, 0, &ex.desc.op.select);
                        stage_of(CG_SLOT_QUANTIZE_, id, 0, 1, &ex.desc.op.quantize);
                        ex.desc.op.code.arg = (uint16_t)(code ? CG_CODE_HUFFMAN - CG_CODE_PACKED : 0);
                        if (cg_op_check_(op) != CG_OK) continue;
                        ex.plan.traits = cg_op_traits_(op);
                        if (route == CG_ROUTE_MERGE || route == CG_ROUTE_REGION)
                            was = was_sparse_f32(op) && !op->code.arg && was_with_target_k(op) &&
                                select != CG_SELECT_CHUNKED;
                        if (route == CG_ROUTE_SHARED)
                            was = was_sparse_f32(op) && !op->code.arg && was_with_target_k(op);
                        if (route == CG_ROUTE_LINEAR)
                            was = !select && !id && !op->code.arg && op->sample.id != CG_SAMPLE_PERMK &&
                                op->transform.id != CG_TRANSFORM_ATOMO;
                        if (route == CG_ROUTE_SERVER) was = select != CG_SELECT_GIVEN;
                        is = !row->refusal || row->accepts(&ex);
                        taken += (size_t)is;
                        SAME("taken", was, is != 0);
                    }
    ASSERT(taken > 1000);
    PASS();
}

/* ---- what was asked of kinds ---- */

/* p_from_g, p_from_e, e_from_g, e_from_e, and what a commit subtracts. */
static void was_coefficients(const cg_ef_desc *d, float decay, float a, float scale, float received_by, float *c) {
    const float e_rate = d->kind == CG_EF_LOCO ? 1.0f - decay : decay;
    const int difference = d->kind == CG_EF_EF21 || d->kind == CG_EF_DIANA || d->kind == CG_EF_LAQ;
    c[0] = a;
    c[1] = 1.0f;
    c[2] = e_rate * a;
    c[3] = 1.0f;
    if (d->kind == CG_EF_CLASSIC) {
        c[1] = c[3] = decay;
        c[2] = a;
    }
    if (d->kind == CG_EF_MOMENTUM) c[2] = d->nesterov ? a : 0.0f;
    if (d->kind == CG_EF_VARIANCE) c[2] = a;
    if (d->kind == CG_EF_SIGNUM || d->kind == CG_EF_ONEBIT_ADAM) c[2] = a * (1.0f - d->momentum);
    if (d->kind == CG_EF_SIGNUM) c[3] = d->momentum;
    if (d->kind == CG_EF_ECQ) {
        c[1] = d->alpha != 0.0f ? d->alpha : 0.2f;
        c[2] = a;
        c[3] = decay;
    }
    if (difference) {
        c[0] = a * scale;
        c[1] = -scale;
        c[2] = 0.0f;
    }
    c[4] = d->kind == CG_EF_SIGNUM  ? 0.0f
        : difference                ? -received_by
        : d->kind == CG_EF_LOCO     ? (1.0f - decay) * scale
        : d->kind == CG_EF_SCALECOM ? decay * scale
                                    : scale;
}
TEST traits_of_kinds_are_what_was_asked(void) {
    static const float decays[] = { 1.0f, 0.8f, 0.1f, 0.9f, 1.0f, 1.0f, 0.999f, 1.0f, 1.0f, 1.0f, 1.0f };
    const cg_op dense = cg_dense(), *op = &dense;
    for (uint32_t kind = 0; kind <= CG_EF_ONEBIT_ADAM; kind++)
        for (int how = 0; how < 32; how++) {
            const int difference = kind == CG_EF_EF21 || kind == CG_EF_DIANA || kind == CG_EF_LAQ;
            const int own_scale = kind == CG_EF_DIANA || kind == CG_EF_SIGNUM;
            const uint32_t t = cg_ef_row_at_(kind)->traits;
            cg_ef ef;
            cg_ef_step_ st;
            float c[5];
            memset(&ef, 0, sizeof ef);
            memset(&st, 0, sizeof st);
            ef.desc.kind = kind;
            ef.desc.momentum = how & 1 ? 0.7f : 0.0f;
            ef.desc.nesterov = how >> 1 & 1;
            ef.desc.decay = how & 4 ? 0.37f : 0.0f;
            ef.desc.alpha = how & 8 ? 0.11f : 0.0f;
            ef.scale = how & 16 ? 0.123f : 1.0f;
            ef.received_by = 0.45f;
            st.ef = &ef;
            st.grad_scale = 1.7f * ef.scale;
            was_coefficients(&ef.desc, how & 4 ? 0.37f : decays[kind], st.grad_scale, ef.scale, 0.45f, c);
            cg_ef_set_coefficients_(&st, ef.scale);
            SAME("decay", how & 4 ? 0.37f : decays[kind], cg_ef_decay_(&ef.desc));
            SAME("p from g", c[0], st.p_from_g);
            SAME("p from e", c[1], st.p_from_e);
            SAME("e from g", c[2], st.e_from_g);
            SAME("e from e", c[3], st.e_from_e);
            SAME("subtracted", c[4], cg_ef_subtract_factor_(&ef));
            SAME("in place",
                kind == CG_EF_CLASSIC || (kind >= CG_EF_MOMENTUM && kind <= CG_EF_VARIANCE) ||
                    kind == CG_EF_ONEBIT_ADAM,
                (t & CG_EF_IN_PLACE_) != 0);
            SAME("a function that works in place", (t & CG_EF_IN_PLACE_) != 0, cg_ef_row_at_(kind)->compensate != NULL);
            SAME("velocity",
                kind == CG_EF_MOMENTUM || kind == CG_EF_VARIANCE || (kind == CG_EF_EF21 && ef.desc.momentum != 0.0f),
                cg_ef_has_velocity_(&ef.desc));
            SAME("a velocity that can be withdrawn", 1,
                !cg_ef_has_velocity_(&ef.desc) || cg_ef_row_at_(kind)->withdraw_velocity != NULL);
            SAME("received", difference || kind == CG_EF_ONEBIT_ADAM, (t & CG_EF_KEEPS_RECEIVED_) != 0);
            SAME("difference", difference, (t & CG_EF_HAS_SHIFT_) != 0);
            SAME("8 bits", kind <= CG_EF_ECQ, (t & CG_EF_ALLOWS_8BIT_) != 0);
            SAME("momentum",
                kind == CG_EF_MOMENTUM || kind == CG_EF_SIGNUM || kind == CG_EF_ONEBIT_ADAM || kind == CG_EF_EF21,
                (t & CG_EF_TAKES_MOMENTUM_) != 0);
            SAME("nesterov", kind == CG_EF_MOMENTUM, (t & CG_EF_TAKES_NESTEROV_) != 0);
            SAME("nothing to forget", difference || kind == CG_EF_SIGNUM, (t & CG_EF_HAS_NO_RESIDUAL_) != 0);
            SAME("operators as they are", own_scale, (t & CG_EF_TAKES_OP_AS_IS_) != 0);
            SAME("shift by alpha", kind == CG_EF_DIANA, (t & CG_EF_SHIFTS_BY_ALPHA_) != 0);
            SAME("silence", kind == CG_EF_LAQ, (t & CG_EF_MAY_BE_SILENT_) != 0);
            SAME("variance", kind == CG_EF_VARIANCE, (t & CG_EF_TAKES_VARIANCE_) != 0);
            SAME("masking", kind == CG_EF_MOMENTUM || kind == CG_EF_VARIANCE, (t & CG_EF_MASKS_VELOCITY_) != 0);
            SAME("velocity in p", kind == CG_EF_MOMENTUM, (t & CG_EF_ADDS_VELOCITY_) != 0);
            SAME("received in p", kind == CG_EF_ONEBIT_ADAM, (t & CG_EF_ADDS_RECEIVED_) != 0);
            SAME("a running mean", kind == CG_EF_EF21, (t & CG_EF_AVERAGES_GRADIENTS_) != 0);
            SAME("scale of the velocity",
                kind == CG_EF_VARIANCE       ? 0.3 * 0.3
                    : kind == CG_EF_MOMENTUM ? 0.3
                                             : 1.0,
                cg_ef_velocity_scale_(&ef.desc, 0.3));
        }
    PASS();
}

SUITE(rows) {
    RUN_TEST(rows_stand_at_their_ids);
    RUN_TEST(traits_of_stages_are_what_was_asked);
    RUN_TEST(lengths_of_index_codes);
    RUN_TEST(traits_of_routes_are_what_was_asked);
    RUN_TEST(routes_take_what_they_took);
    RUN_TEST(traits_of_kinds_are_what_was_asked);
}
GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(rows);
    GREATEST_MAIN_END();
}
