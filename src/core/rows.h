/* rows: the tables of samples, transforms, selections and quantizers, and what follows from an operator's rows

   Offers   cg_stage_row_, cg_stage_row_of_, cg_transformer_of_, cg_selection_of_, cg_quantizer_of_, cg_sampled_n_,
            cg_plan_resume_, cg_plan_set_
   Needs    all functions of stages: plan, transform, matrix, quantize, select, error; cg_select_given_ is in decode.h
   Touches  nothing
   A row stands at the place of its id. A new stage is a row here, beside its id and preset and what it computes. */

static cg_status cg_select_given_(const cg_selector_ *p);

/* The parts of a row that all tables have, in the order of cg_stage_row_. */
#define CG_STALLS_(name) "ok; " name " is biased: without compgrad_ef.h training stalls"
#define CG_NO_FLAGS_ { "", "" }, 0, 0
#define CG_FLAG_(first) { first, "" }, 1, 0
#define CG_FLAGS_(first, second, biasing) { first, second }, biasing, 0
#define CG_UNBIASED_ { "unbiased", "" }, 0, CG_FLAG_UNBIASED
#define CG_STOCHASTIC_ { "stochastic", "" }, 0, CG_FLAG_STOCHASTIC
#define CG_NO_ARG_ 0, 0
#define CG_ARG_(lo, hi) lo, hi
#define CG_NO_SIZE_ 0, 0, 0
#define CG_SIZE_(lo) lo, CG_SIZE_MAX_, 0 /* a size, which text must give unless it may be 0 */
#define CG_SIZE_OR_(usual) 1, CG_SIZE_MAX_, usual
#define CG_NO_VALUE_ 0.0f, 0.0f, 0
#define CG_VALUE_(lo, hi) lo, hi, 0
#define CG_RATIO_ 0.0f, 1.0f, 1
#define CG_NOT_NEGATIVE_ 0.0f, CG_FLT_MAX_, 0
#define CG_POSITIVE_ 0.0f, CG_FLT_MAX_, 1

/* The part of a stage that was left out (core/base/with.h). */
#define CG_LEFT_OUT_(slot, id, name, macro)                                                                \
  {                                                                                                        \
    slot, id, name, NULL, CG_LEFT_OUT_WHY_(name, macro), { NULL, NULL }, 0, 0, 0, CG_NO_ARG_, CG_NO_SIZE_, \
        CG_NO_VALUE_, NULL                                                                                 \
  }

/* ---- samples ---- */

typedef struct cg_sampler_ {
    cg_stage_row_ stage;
    uint64_t (*sampled_n)(const cg_op *op, uint64_t n, const cg_tag *tag); /* see core/plan.h */
    uint8_t walk;                                                          /* CG_WALK_* */
} cg_sampler_;
#define CG_ROW_(id, name, params, warning, flags, traits, size, value, sampled_n, walk, error)             \
  CG_IF_(COMPGRAD_WITH_##id,                                                                               \
      ({ { CG_SLOT_SAMPLE_, CG_SAMPLE_##id, name, params, warning, flags, traits, CG_NO_ARG_, size, value, \
             cg_error_##error##_ },                                                                        \
          cg_sampled_##sampled_n##_, CG_WALK_##walk##_ }),                                                 \
      ({ CG_LEFT_OUT_(CG_SLOT_SAMPLE_, CG_SAMPLE_##id, name, #id), cg_sampled_all_, CG_WALK_STRATA_ })),
/* clang-format off */
#define CG_SAMPLE_LIST_(X)                                                                                            \
  X(RANDK, "randk", "ratio=0.01", CG_STALLS_("randk:unscaled"), CG_FLAGS_("unscaled", "private", 1),                  \
      CG_SAMPLES_RATIO_, CG_NO_SIZE_, CG_RATIO_, randk, STRATA, randk)                                                \
  X(PERMK, "permk", "workers=8", CG_STALLS_("permk:unscaled"), CG_FLAG_("unscaled"), CG_IS_PER_RANK_,                 \
      CG_SIZE_(1), CG_NO_VALUE_, permk, GROUPS, permk)                                                                \
  X(CYCLIC, "cyclic", "blocks=8", CG_STALLS_("cyclic:unscaled"), CG_FLAG_("unscaled"), 0, CG_SIZE_(1),                \
      CG_NO_VALUE_, cyclic, BLOCK, cyclic)
/* clang-format on */
static const cg_sampler_ cg_samplers_[] = {
    { { CG_SLOT_SAMPLE_, 0, "", "", NULL, CG_NO_FLAGS_, 0, CG_NO_ARG_, CG_NO_SIZE_, CG_NO_VALUE_, cg_error_none_ },
        cg_sampled_all_, CG_WALK_STRATA_ },
    CG_SAMPLE_LIST_(CG_ROW_)
};
#undef CG_ROW_

/* ---- transforms ---- */

#define CG_ROW_(id, name, params, warning, flags, traits, arg, size, value, transformed_n, block, apply, factor, \
    work_bytes, error)                                                                                           \
  CG_IF_(COMPGRAD_WITH_##id,                                                                                     \
      ({ { CG_SLOT_TRANSFORM_, CG_TRANSFORM_##id, name, params, warning, flags, traits, arg, size, value,        \
             cg_error_##error##_ },                                                                              \
          cg_transformed_##transformed_n##_, block, apply, factor, work_bytes }),                                \
      ({ CG_LEFT_OUT_(CG_SLOT_TRANSFORM_, CG_TRANSFORM_##id, name, #id), cg_transformed_same_, 0, NULL, NULL,    \
          NULL })),
/* clang-format off */
#define CG_TRANSFORM_LIST_(X)                                                                                         \
  X(ROTATE, "rotate", "rounds=3", NULL, CG_FLAGS_("", "private", 0), CG_IS_ROTATION_, CG_ARG_(1, 3), CG_NO_SIZE_,     \
      CG_NO_VALUE_, rotate, CG_ROTATE_BLOCK_, cg_apply_rotation_, NULL, NULL, none)                                   \
  X(DCT, "dct", "", NULL, CG_NO_FLAGS_, 0, CG_NO_ARG_, CG_NO_SIZE_, CG_NO_VALUE_, dct, CG_DCT_BLOCK_,                 \
      cg_apply_dct_, NULL, NULL, none)                                                                                \
  X(LOWRANK, "lowrank", "rank=4:rows=512:cols=256", CG_STALLS_("lowrank"), CG_NO_FLAGS_, CG_IS_MATRIX_ |              \
      CG_IS_LINEAR_MATRIX_ | CG_IS_BIASED_, CG_ARG_(1, 64), CG_SIZE_(1), CG_VALUE_(1.0f, 16777216.0f), matrix, 0,     \
      NULL, cg_factor_lowrank_, cg_work_bytes_lowrank_, by_data)                                                      \
  X(ATOMO, "atomo", "budget=4:rows=512:cols=256", NULL, CG_NO_FLAGS_, CG_IS_MATRIX_, CG_ARG_(1, 64), CG_SIZE_(1),     \
      CG_VALUE_(1.0f, 16777216.0f), matrix, 0, NULL, cg_factor_atomo_, cg_work_bytes_atomo_, atomo)
/* clang-format on */
static const cg_transformer_ cg_transformers_[] = {
    { { CG_SLOT_TRANSFORM_, 0, "", "", NULL, CG_NO_FLAGS_, 0, CG_NO_ARG_, CG_NO_SIZE_, CG_NO_VALUE_, cg_error_none_ },
        cg_transformed_same_, 0, NULL, NULL, NULL },
    CG_TRANSFORM_LIST_(CG_ROW_)
};
#undef CG_ROW_

/* ---- clips ---- */

#define CG_ROW_(id, number, name, params, traits, value, error)                                           \
  CG_IF_(COMPGRAD_WITH_##id,                                                                              \
      ({ CG_SLOT_CLIP_, number, name, params, NULL, CG_NO_FLAGS_, traits, CG_NO_ARG_, CG_NO_SIZE_, value, \
          cg_error_##error##_ }),                                                                         \
      (CG_LEFT_OUT_(CG_SLOT_CLIP_, number, name, #id))),
/* clang-format off */
#define CG_CLIP_LIST_(X)                                                                                              \
  X(CLIP, CG_CLIP_RMS, "clip", "rms=2.5", CG_IS_BIASED_, CG_POSITIVE_, clip)
/* clang-format on */
static const cg_stage_row_ cg_clips_[] = { { CG_SLOT_CLIP_, 0, "", "", NULL, CG_NO_FLAGS_, 0, CG_NO_ARG_, CG_NO_SIZE_,
                                               CG_NO_VALUE_, cg_error_none_ },
    CG_CLIP_LIST_(CG_ROW_) };
#undef CG_ROW_

/* ---- selections ---- */

#define CG_ROW_(id, name, params, warning, traits, size, value, max_selected, pick, error)                    \
  CG_IF_(COMPGRAD_WITH_##id,                                                                                  \
      ({ { CG_SLOT_SELECT_, CG_SELECT_##id, name, params, warning, CG_NO_FLAGS_, CG_IS_SELECTION_ | (traits), \
             CG_NO_ARG_, size, value, cg_error_##error##_ },                                                  \
          cg_selected_##max_selected##_, cg_select_##pick##_ }),                                              \
      ({ CG_LEFT_OUT_(CG_SLOT_SELECT_, CG_SELECT_##id, name, #id), cg_selected_all_, NULL }))
#define CG_TOPK_TRAITS_ CG_IS_BIASED_ | CG_HAS_RATIO_ | CG_KEEPS_ABOUT_ | CG_KEEPS_LARGEST_
static const cg_selection_ cg_selections_[] = {
    { { CG_SLOT_SELECT_, 0, "", "", NULL, CG_NO_FLAGS_, 0, CG_NO_ARG_, CG_NO_SIZE_, CG_NO_VALUE_, cg_error_none_ },
        cg_selected_all_, NULL },
    CG_ROW_(TOPK, "topk", "ratio=0.01", CG_STALLS_("topk"),
        CG_TOPK_TRAITS_ | CG_TAKES_K_ | CG_KEEPS_EXACTLY_ | CG_TAKES_PRODUCER_, CG_NO_SIZE_, CG_RATIO_, k,
        topk_by_ratio, largest),
    CG_ROW_(THRESHOLD, "threshold", "magnitude=0.001", CG_STALLS_("threshold"), CG_IS_BIASED_, CG_NO_SIZE_,
        CG_NOT_NEGATIVE_, all, threshold, by_data),
    CG_ROW_(
        DGC, "dgc", "ratio=0.01", CG_STALLS_("dgc"), CG_TOPK_TRAITS_, CG_NO_SIZE_, CG_RATIO_, estimate, dgc, estimated),
    CG_ROW_(MSTOPK, "mstopk", "ratio=0.01", CG_STALLS_("mstopk"), CG_TOPK_TRAITS_ | CG_TAKES_K_ | CG_KEEPS_EXACTLY_,
        CG_NO_SIZE_, CG_RATIO_, k, mstopk, largest),
    CG_ROW_(SIDCO, "sidco", "ratio=0.01", CG_STALLS_("sidco"), CG_TOPK_TRAITS_, CG_NO_SIZE_, CG_RATIO_, estimate, sidco,
        estimated),
    CG_ROW_(WANGNI, "wangni", "ratio=0.01", NULL, CG_HAS_RATIO_, CG_NO_SIZE_, CG_RATIO_, all, wangni, wangni),
    CG_ROW_(WANGNIVAR, "wangnivar", "epsilon=0.5", NULL, 0, CG_NO_SIZE_, CG_POSITIVE_, all, wangni_variance, wangnivar),
    CG_ROW_(BINS, "bins", "bin=50", CG_STALLS_("bins"), CG_IS_BIASED_ | CG_NEEDS_AUX_, CG_SIZE_(1), CG_NO_VALUE_, all,
        adacomp, unknown),
    CG_ROW_(SIDES, "sides", "ratio=0.01", CG_STALLS_("sides"), CG_IS_BIASED_ | CG_HAS_RATIO_, CG_NO_SIZE_, CG_RATIO_,
        all, sides, sides),
    CG_ROW_(SIDE, "side", "ratio=0.01", CG_STALLS_("side"), CG_IS_BIASED_ | CG_HAS_RATIO_ | CG_KEEPS_ONE_SIDE_,
        CG_NO_SIZE_, CG_RATIO_, k, sides, side),
    CG_ROW_(CHUNKED, "chunked", "chunk=64:ratio=0.1", CG_STALLS_("chunked"),
        CG_IS_BIASED_ | CG_HAS_RATIO_ | CG_KEEPS_ABOUT_ | CG_KEEPS_EXACTLY_, CG_SIZE_(1), CG_RATIO_, chunked, chunked,
        chunked),
    CG_ROW_(BLOCKS, "blocks", "block=256", NULL, CG_KEEPS_BLOCKS_, CG_SIZE_(1), CG_NO_VALUE_, all, blocks, blocks),
    CG_ROW_(GIVEN, "given", "support=0", CG_STALLS_("given"), CG_IS_BIASED_ | CG_NEEDS_SUPPORT_, CG_SIZE_(0),
        CG_NO_VALUE_, all, given, by_data),
    CG_ROW_(VARIANCE, "variance", "alpha=1", CG_STALLS_("variance"),
        CG_IS_BIASED_ | CG_NEEDS_AUX_ | CG_AUX_IS_VARIANCE_, CG_NO_SIZE_, CG_NOT_NEGATIVE_, all, variance, by_data),
};
#undef CG_ROW_

/* ---- quantizers ---- */

/* needs, scale_count, scale_width, byte_scale, measure, set_scales, legal */
#define CG_NO_SCALES_ CG_NEEDS_NOTHING_, 0, 4, NULL, NULL, NULL, NULL
#define CG_MEAN_AFTERWARDS_ CG_NEEDS_SUM_AFTERWARDS_, 1, 4, NULL, NULL, NULL, cg_legal_magnitude_
#define CG_SCALES_(count, measure, set, legal) \
  CG_NEEDS_BUCKET_STATS_, count, 4, NULL, cg_measure_##measure##_, cg_set_scales_##set##_, cg_legal_##legal##_
#define CG_E8M0_(element) /* one byte */ \
  CG_NEEDS_BUCKET_STATS_, 1, 1, &cg_byte_e8m0_, cg_measure_absmax_, cg_set_scales_mx_##element##_, cg_legal_magnitude_
#define CG_E4M3_SCALES_ /* one byte, and one float for all */ \
  CG_NEEDS_BUCKET_STATS_, 1, 1, &cg_byte_e4m3_, cg_measure_absmax_, cg_set_scales_absmax_, cg_legal_magnitude_
/* output, bits, fixed_bucket, full_scale, levels, bits_x32 */
#define CG_PACKED_(bits) CG_OUTPUT_PACKED_, bits, 0, 0.0f, NULL, NULL
#define CG_GRID_(levels) CG_OUTPUT_SYMBOLS_, 0, 0, 0.0f, cg_levels_##levels##_, NULL
#define CG_PACKED_GRID_(bits, levels) CG_OUTPUT_PACKED_, bits, 0, 0.0f, cg_levels_##levels##_, NULL
#define CG_LEVELS16_ CG_OUTPUT_LEVELS_, 16, 0, 0.0f, NULL, NULL
#define CG_RATE_SCALES_ CG_NEEDS_BUCKET_STATS_, 2, 4, NULL, NULL, NULL, cg_legal_rate_
#define CG_RATE_TRAITS_ CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_ | CG_OWNS_SCALES_ | CG_LENGTH_VARIES_
#define CG_TABLE_(bits, bucket, full_scale) CG_OUTPUT_SYMBOLS_, bits, bucket, full_scale, NULL, NULL
/* rescale, stored_absmax_bits, stored_limit, promise */
#define CG_TOTAL_ NULL, NULL, 0, NULL
#define CG_ENTROPY_CODED_(promise) NULL, NULL, 0, cg_##promise##_promise_
#define CG_STORED_(width, limit) NULL, cg_stored_absmax_bits_##width##_, limit, NULL
#define CG_ROW_(                                                                                             \
    id, name, params, warning, flags, traits, arg, size, value, scales, output, encode, decode, rest, error) \
  CG_IF_(COMPGRAD_WITH_##id,                                                                                 \
      ({ { CG_SLOT_QUANTIZE_, CG_QUANTIZE_##id, name, params, warning, flags, traits, arg, size, value,      \
             cg_error_##error##_ },                                                                          \
          scales, output, cg_encode_##encode##_, cg_decode_##decode##_, rest }),                             \
      ({ CG_LEFT_OUT_(CG_SLOT_QUANTIZE_, CG_QUANTIZE_##id, name, #id), CG_LEFT_OUT_QUANTIZER_ }))
#define CG_LEFT_OUT_QUANTIZER_ CG_NO_SCALES_, CG_PACKED_(0), NULL, NULL, CG_TOTAL_
/* the same of a format without parameters */
#define CG_PLAIN_(id, name, params, warning, traits, scales, output, function, rest, error)                           \
  CG_IF_(COMPGRAD_WITH_##id,                                                                                          \
      ({ { CG_SLOT_QUANTIZE_, CG_QUANTIZE_##id, name, params, warning, CG_NO_FLAGS_, traits, CG_NO_ARG_, CG_NO_SIZE_, \
             CG_NO_VALUE_, cg_error_##error##_ },                                                                     \
          scales, output, cg_encode_##function##_, cg_decode_##function##_, rest }),                                  \
      ({ CG_LEFT_OUT_(CG_SLOT_QUANTIZE_, CG_QUANTIZE_##id, name, #id), CG_LEFT_OUT_QUANTIZER_ }))
static const cg_quantizer_ cg_quantizers_[] = {
    { { CG_SLOT_QUANTIZE_, 0, "", "", NULL, CG_NO_FLAGS_, CG_IS_F32_ | CG_CODES_EXPONENTS_, CG_NO_ARG_, CG_NO_SIZE_,
          CG_NO_VALUE_, cg_error_none_ },
        CG_NO_SCALES_, CG_PACKED_(32), cg_encode_f32_, cg_decode_f32_, CG_STORED_(f32, CG_INF_BITS_) },
    CG_ROW_(F16, "f16", "", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_, CG_NO_ARG_, CG_NO_SIZE_,
        CG_NO_VALUE_, CG_NO_SCALES_, CG_PACKED_(16), f16, f16, CG_STORED_(16, 0x7c00), f16),
    CG_ROW_(BF16, "bf16", "", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_ | CG_CODES_EXPONENTS_,
        CG_NO_ARG_, CG_NO_SIZE_, CG_NO_VALUE_, CG_NO_SCALES_, CG_PACKED_(16), bf16, bf16, CG_STORED_(16, 0x7f80), bf16),
    CG_PLAIN_(SIGN, "sign", "", CG_STALLS_("sign"), CG_IS_BIASED_ | CG_IS_SIGN_, CG_NO_SCALES_, CG_PACKED_(1), sign,
        CG_TOTAL_, unknown),
    CG_PLAIN_(EFSIGN, "efsign", "", CG_STALLS_("efsign"), CG_IS_BIASED_, CG_MEAN_AFTERWARDS_, CG_PACKED_(1), efsign,
        CG_TOTAL_, mean),
    CG_ROW_(ABSMAX, "absmax", "bits=4:bucket=512", NULL, CG_FLAG_("nearest"), CG_HAS_GRID_ | CG_ROUNDS_AT_RANDOM_,
        CG_ARG_(1, 8), CG_SIZE_(1), CG_NO_VALUE_, CG_SCALES_(1, absmax, absmax, magnitude), CG_GRID_(of_bits), levels,
        levels, CG_TOTAL_, grid),
    CG_ROW_(MINMAX, "minmax", "bits=4:bucket=512", NULL, CG_FLAGS_("nearest", "norm", 1),
        CG_HAS_GRID_ | CG_ROUNDS_AT_RANDOM_ | CG_SCALES_ARE_ENDS_, CG_ARG_(1, 8), CG_SIZE_(1), CG_NO_VALUE_,
        CG_SCALES_(2, range, range, range), CG_GRID_(none), levels, levels, CG_TOTAL_, minmax),
    CG_ROW_(TERNGRAD, "terngrad", "", NULL, CG_FLAGS_("nearest", "clip", 3), CG_HAS_GRID_ | CG_ROUNDS_AT_RANDOM_,
        CG_NO_ARG_, CG_NO_SIZE_, CG_NO_VALUE_, CG_SCALES_(1, ternary, ternary, magnitude), CG_GRID_(one), levels,
        levels, CG_TOTAL_, terngrad),
    CG_ROW_(LEVELS, "levels", "levels=4:bucket=512", NULL, CG_FLAGS_("nearest", "max", 1),
        CG_HAS_GRID_ | CG_ROUNDS_AT_RANDOM_, CG_ARG_(1, 127), CG_SIZE_(0), CG_NO_VALUE_,
        CG_SCALES_(1, norm, norm, magnitude), CG_GRID_(of_arg), levels, levels, CG_TOTAL_, levels),
    CG_ROW_(FLEXPOINT, "flexpoint", "bits=8:bucket=512", NULL, CG_NO_FLAGS_,
        CG_IS_BIASED_ | CG_HAS_GRID_ | CG_SCALE_IS_STEP_ | CG_ROUNDS_TO_NEAREST_, CG_ARG_(2, 8), CG_SIZE_(1),
        CG_NO_VALUE_, CG_SCALES_(1, absmax, pow2, magnitude), CG_GRID_(of_bits), levels, levels, CG_TOTAL_, flexpoint),
    CG_ROW_(TRITS, "trits", "multiplier=1", CG_STALLS_("trits"), CG_NO_FLAGS_,
        CG_IS_BIASED_ | CG_HAS_GRID_ | CG_ROUNDS_TO_NEAREST_, CG_NO_ARG_, CG_NO_SIZE_, CG_VALUE_(1.0f, 1.99999988f),
        CG_SCALES_(1, absmax, threelc, magnitude), CG_GRID_(one), levels, levels, CG_TOTAL_, trits),
    CG_ROW_(STROM, "strom", "tau=0.001", CG_STALLS_("strom"), CG_NO_FLAGS_, CG_IS_BIASED_, CG_NO_ARG_, CG_NO_SIZE_,
        CG_POSITIVE_, CG_NO_SCALES_, CG_GRID_(one), strom, strom, CG_TOTAL_, by_data),
    CG_ROW_(ONEBIT, "onebit", "column=1024", CG_STALLS_("onebit"), CG_NO_FLAGS_, CG_IS_BIASED_, CG_NO_ARG_, CG_SIZE_(0),
        CG_NO_VALUE_, CG_SCALES_(2, signed_sums, signed_means, finite2), CG_TABLE_(1, 0, 0.0f), onebit, onebit,
        CG_TOTAL_, mean),
    CG_ROW_(MEAN, "mean", "", CG_STALLS_("mean"), CG_NO_FLAGS_, CG_IS_BIASED_, CG_NO_ARG_, CG_NO_SIZE_, CG_NO_VALUE_,
        CG_SCALES_(1, signed_sums, mean, finite), CG_PACKED_(0), none, mean, CG_TOTAL_, mean),
    CG_ROW_(NATURAL, "natural", "", NULL, CG_FLAG_("nearest"), CG_ROUNDS_AT_RANDOM_, CG_NO_ARG_, CG_NO_SIZE_,
        CG_NO_VALUE_, CG_NO_SCALES_, CG_PACKED_(9), natural, natural, CG_TOTAL_, natural),
    CG_ROW_(DITHER, "dither", "bits=4:bucket=512", NULL, CG_FLAGS_("nearest", "max", 1), CG_ROUNDS_AT_RANDOM_,
        CG_ARG_(2, 8), CG_SIZE_(0), CG_NO_VALUE_, CG_SCALES_(1, norm, norm, magnitude), CG_TABLE_(0, 0, 1.0f), dither,
        dither, CG_TOTAL_, dither),
    CG_ROW_(DYNAMIC8, "dynamic8", "bucket=256", NULL, CG_NO_FLAGS_, CG_IS_BIASED_, CG_NO_ARG_, CG_SIZE_(0),
        CG_NO_VALUE_, CG_SCALES_(1, absmax, absmax, magnitude), CG_TABLE_(8, 0, 1.0f), dynamic, dynamic, CG_TOTAL_,
        dynamic8),
    CG_ROW_(E4M3, "e4m3", "bucket=512", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_, CG_NO_ARG_,
        CG_SIZE_OR_(512), CG_NO_VALUE_, CG_SCALES_(1, absmax, absmax, magnitude), CG_TABLE_(8, 0, CG_E4M3_MAX_), e4m3,
        e4m3, CG_TOTAL_, e4m3),
    CG_ROW_(E5M2, "e5m2", "bucket=512", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_, CG_NO_ARG_,
        CG_SIZE_OR_(512), CG_NO_VALUE_, CG_SCALES_(1, absmax, absmax, magnitude), CG_TABLE_(8, 0, CG_E5M2_MAX_), e5m2,
        e5m2, CG_TOTAL_, e5m2),
    CG_ROW_(MXFP4, "mxfp4", "", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_, CG_NO_ARG_, CG_NO_SIZE_,
        CG_NO_VALUE_, CG_E8M0_(e2m1), CG_TABLE_(4, 32, 1.0f), mx4, mx4, CG_TOTAL_, mxfp4),
    CG_ROW_(MXE4M3, "mxe4m3", "", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_, CG_NO_ARG_, CG_NO_SIZE_,
        CG_NO_VALUE_, CG_E8M0_(e4m3), CG_TABLE_(8, 32, 1.0f), e4m3, mx_e4m3, CG_TOTAL_, mxe4m3),
    CG_ROW_(MXE5M2, "mxe5m2", "", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_, CG_NO_ARG_, CG_NO_SIZE_,
        CG_NO_VALUE_, CG_E8M0_(e5m2), CG_TABLE_(8, 32, 1.0f), e5m2, mx_e5m2, CG_TOTAL_, mxe5m2),
    CG_ROW_(NF4, "nf4", "bucket=64", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_, CG_NO_ARG_,
        CG_SIZE_OR_(64), CG_NO_VALUE_, CG_SCALES_(1, absmax, absmax, magnitude), CG_TABLE_(4, 0, 1.0f), nf4, nf4,
        CG_TOTAL_, nf4),
    CG_IF_(COMPGRAD_WITH_LLOYD,
        ({ { CG_SLOT_QUANTIZE_, CG_QUANTIZE_LLOYD, "lloyd", "bits=2", NULL, CG_NO_FLAGS_,
               CG_WANTS_ROTATION_ | CG_OWNS_SCALES_, CG_NO_ARG_, CG_NO_SIZE_, CG_VALUE_(1.0f, 4.0f), cg_error_lloyd_ },
            CG_SCALES_(1, norm, l2norm, magnitude), CG_OUTPUT_PACKED_, 0, CG_ROTATE_BLOCK_, 0.0f, NULL,
            cg_bits_x32_lloyd_, cg_encode_lloyd_, cg_decode_lloyd_, cg_rescale_lloyd_, NULL, 0, NULL }),
        ({ CG_LEFT_OUT_(CG_SLOT_QUANTIZE_, CG_QUANTIZE_LLOYD, "lloyd", "LLOYD"), CG_LEFT_OUT_QUANTIZER_ })),
    CG_ROW_(FLEX16, "flex16", "bucket=512", NULL, CG_NO_FLAGS_,
        CG_IS_BIASED_ | CG_HAS_GRID_ | CG_SCALE_IS_STEP_ | CG_ROUNDS_TO_NEAREST_, CG_NO_ARG_, CG_SIZE_(1), CG_NO_VALUE_,
        CG_SCALES_(1, absmax, pow2, magnitude), CG_PACKED_GRID_(16, 16_bits), steps16, steps16, CG_TOTAL_, flexpoint),
    CG_ROW_(RATE, "rate", "bits=0.5", CG_STALLS_("rate"), CG_UNBIASED_, CG_RATE_TRAITS_, CG_NO_ARG_, CG_NO_SIZE_,
        CG_VALUE_(0.005f, 8.0f), CG_RATE_SCALES_, CG_LEVELS16_, rate, rate, CG_ENTROPY_CODED_(rate), rate),
    CG_ROW_(STEP, "step", "share=0.5", CG_STALLS_("step"), CG_UNBIASED_, CG_RATE_TRAITS_, CG_NO_ARG_, CG_NO_SIZE_,
        CG_VALUE_(0.001f, 1024.0f), CG_RATE_SCALES_, CG_LEVELS16_, rate, rate, CG_ENTROPY_CODED_(step), step),
    CG_ROW_(NVFP4, "nvfp4", "", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_ | CG_OWNS_SCALES_,
        CG_NO_ARG_, CG_NO_SIZE_, CG_NO_VALUE_, CG_E4M3_SCALES_, CG_TABLE_(4, 16, 1.0f), mx4, mx4, CG_TOTAL_, nvfp4),
    CG_ROW_(GEOMETRIC, "geometric", "bits=2:bucket=512", CG_STALLS_("geometric"), CG_NO_FLAGS_,
        CG_IS_BIASED_ | CG_OWNS_SCALES_, CG_ARG_(1, 4), CG_SIZE_(0), CG_NO_VALUE_,
        CG_SCALES_(2, magnitudes, magnitudes, magnitudes), CG_TABLE_(0, 0, 0.0f), geometric, geometric, CG_TOTAL_,
        geometric),
};
#undef CG_ROW_
#undef CG_PLAIN_
/* of every cg_codec */
static const cg_stage_row_ cg_user_row_ = { CG_SLOT_QUANTIZE_, CG_QUANTIZE_USER, "user", "", NULL, CG_NO_FLAGS_,
    CG_IS_USER_CODEC_ | CG_IS_BIASED_, CG_ARG_(0, 65535), CG_SIZE_(0), CG_NOT_NEGATIVE_, cg_error_unknown_ };

/* ---- codes of indices ---- */

#define CG_CODER_(id, name, traits, bytes, bound, code, reader)                                                   \
  {                                                                                                               \
    id, name, NULL, traits, cg_index_bytes_##bytes##_, cg_index_bound_##bound##_, cg_index_put_##code##_,         \
        cg_index_open_##code##_, cg_index_get_##reader##_, cg_index_padding_##code##_, cg_index_check_##reader##_ \
  }
#define CG_ROW_(id, name, traits, bytes, bound, code, reader)                                     \
  CG_IF_(COMPGRAD_WITH_##id, (CG_CODER_(CG_CODE_##id, name, traits, bytes, bound, code, reader)), \
      ({ CG_CODE_##id, name, CG_LEFT_OUT_WHY_(name, #id), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL }))
static const cg_index_coder_ cg_index_coders_[] = {
    /* chooses; in a header: there are no indices */
    { CG_CODE_AUTO, "", NULL, 0, NULL, cg_index_bound_auto_, NULL, NULL, cg_index_get_bits_, NULL, NULL },
    CG_CODER_(CG_CODE_ELIAS_FANO, "eliasfano", 0, elias_fano, elias_fano, elias_fano, bits),
    CG_CODER_(CG_CODE_BITMAP, "bitmap", 0, bitmap, bitmap, bitmap, bits),
    CG_ROW_(GOLOMB, "golomb", CG_INDEX_LENGTH_VARIES_, golomb, golomb, golomb, golomb),
};
#undef CG_ROW_
#undef CG_CODER_

#define CG_LENGTH_OF_(table) (sizeof(table) / sizeof(table)[0])
static const cg_index_coder_ *cg_index_coder_at_(unsigned id) {
    return id < CG_LENGTH_OF_(cg_index_coders_) ? &cg_index_coders_[id] : NULL;
}
static const cg_stage_row_ *cg_row_at_(unsigned slot, unsigned id) {
    switch (slot) {
    case CG_SLOT_SAMPLE_: return id < CG_LENGTH_OF_(cg_samplers_) ? &cg_samplers_[id].stage : NULL;
    case CG_SLOT_TRANSFORM_: return id < CG_LENGTH_OF_(cg_transformers_) ? &cg_transformers_[id].stage : NULL;
    case CG_SLOT_SELECT_: return id < CG_LENGTH_OF_(cg_selections_) ? &cg_selections_[id].stage : NULL;
    case CG_SLOT_QUANTIZE_: return id < CG_LENGTH_OF_(cg_quantizers_) ? &cg_quantizers_[id].stage : NULL;
    case CG_SLOT_CLIP_: return id < CG_LENGTH_OF_(cg_clips_) ? &cg_clips_[id] : NULL;
    default: return NULL;
    }
}
static const cg_stage_row_ *cg_stage_row_of_(unsigned slot, const cg_stage *s) {
    const cg_stage_row_ *row = cg_row_at_(slot, s->id);
    if (row) return row;
    return slot == CG_SLOT_QUANTIZE_ && cg_is_user_codec_(s) ? &cg_user_row_ : &cg_samplers_[0].stage;
}
static uint32_t cg_op_traits_(const cg_op *op) {
    uint32_t traits = 0;
    if (op->sample.id < CG_LENGTH_OF_(cg_samplers_)) traits |= cg_samplers_[op->sample.id].stage.traits;
    if (op->transform.id < CG_LENGTH_OF_(cg_transformers_)) traits |= cg_transformers_[op->transform.id].stage.traits;
    if (op->select.id < CG_LENGTH_OF_(cg_selections_)) traits |= cg_selections_[op->select.id].stage.traits;
    if (op->quantize.id < CG_LENGTH_OF_(cg_quantizers_)) traits |= cg_quantizers_[op->quantize.id].stage.traits;
    else if (cg_is_user_codec_(&op->quantize)) traits |= cg_user_row_.traits;
    if (op->clip.id && op->clip.id < CG_LENGTH_OF_(cg_clips_)) {
        traits |= cg_clips_[op->clip.id].traits;
        traits &= ~(uint32_t)CG_IS_F32_; /* values are not sent as they are */
    }
    if ((op->sample.flags | op->transform.flags) & CG_FLAG_PRIVATE) traits |= CG_IS_PRIVATE_;
    if (op->code.id < CG_LENGTH_OF_(cg_index_coders_)) traits |= cg_index_coders_[op->code.id].traits;
    return traits;
}
CG_INLINE_ int cg_builds_samples_(void) { return 0 CG_SAMPLE_LIST_(CG_OR_BUILT_); }
CG_INLINE_ int cg_builds_clips_(void) { return 0 CG_CLIP_LIST_(CG_OR_BUILT_); }
CG_INLINE_ int cg_builds_transforms_(void) { return 0 CG_TRANSFORM_LIST_(CG_OR_BUILT_); }
static const cg_transformer_ *cg_transformer_of_(const cg_op *op) { return &cg_transformers_[op->transform.id]; }
static const cg_selection_ *cg_selection_of_(const cg_op *op) { return &cg_selections_[op->select.id]; }
static const cg_quantizer_ *cg_quantizer_of_(const cg_stage *q) {
    return q->id < CG_LENGTH_OF_(cg_quantizers_) ? &cg_quantizers_[q->id] : NULL;
}

static int cg_sample_walk_(const cg_op *op) { return cg_samplers_[op->sample.id].walk; }
static uint64_t cg_sampled_n_(const cg_op *op, uint64_t n, const cg_tag *tag) {
    return cg_samplers_[op->sample.id].sampled_n(op, n, tag);
}
static void cg_plan_resume_(cg_plan_ *plan, const cg_op *op) {
    plan->transformed_n = cg_transformer_of_(op)->transformed_n(op, plan->sampled_n);
    plan->max_selected = cg_selection_of_(op)->max_selected(op, plan->transformed_n);
    plan->values_per_index = plan->traits & CG_KEEPS_BLOCKS_ ? op->select.size : 1;
    plan->universe = cg_index_count_(plan, plan->transformed_n);
}
static void cg_plan_set_(cg_plan_ *plan, const cg_op *op, uint64_t n, const cg_tag *tag) {
    plan->n = n;
    plan->sampled_n = cg_sampled_n_(op, n, tag);
    cg_plan_resume_(plan, op);
}
