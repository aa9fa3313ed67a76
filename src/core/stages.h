/* stages: the table of all stages but the codes, and the checks of stages and operators

   Offers   the slots, the table with its lookup, names of codes, cg_op_check_, cg_op_check_new_, predicates about
            operators
   Needs    base
   Touches  nothing but its arguments
   Other headers may use: cg_is_user_codec_, cg_op_check_
   A row of the table names a stage, its parameters and their ranges; parsing, printing and every check read it.
   cg_op_check_ is the only judge of operators: those of the caller and those in packet headers pass it before any
   other function of the implementation sees them. cg_op_check_new_ refuses a caller what only old packets may have. */

enum {
    CG_SLOT_SAMPLE_,
    CG_SLOT_TRANSFORM_,
    CG_SLOT_SELECT_,
    CG_SLOT_QUANTIZE_,
    CG_SLOT_CODE_,
    CG_SLOT_SPARE_,
    CG_SLOT_COUNT_
};

typedef struct cg_stage_row_ {
    uint8_t slot, id;
    /* ranges of the three parameters; where an upper end is 0, the stage has no such parameter */
    uint16_t arg_lo, arg_hi;
    uint32_t size_lo, size_hi;
    uint32_t size_default; /* text may leave the size out if this is in its range */
    float value_lo, value_hi;
    uint8_t value_lo_exclusive; /* 1: value_lo itself is too small */
    uint8_t allowed_flags;      /* which CG_FLAG_* may be set */
    const char *name;           /* as text, a stage is name:arg:size:value:flag */
    const char *flag_names[2];  /* of the flags 1 and 2 */
} cg_stage_row_;

#define CG_ANY_SIZE_ 0xffffffffu
/* ranges of stage.value: value_lo, value_hi, value_lo_exclusive */
#define CG_RANGE_RATIO_ 0.0f, 1.0f, 1
#define CG_RANGE_NONNEGATIVE_ 0.0f, CG_FLT_MAX_, 0
#define CG_RANGE_POSITIVE_ 0.0f, CG_FLT_MAX_, 1
#define CG_RANGE_NONE_ 0.0f, 0.0f, 0
static const cg_stage_row_ cg_stage_rows_[] = {
    { CG_SLOT_SAMPLE_, CG_SAMPLE_RANDK, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, CG_FLAG_UNSCALED, "randk", { "unscaled", "" } },
    { CG_SLOT_SAMPLE_, CG_SAMPLE_PERMK, 0, 0, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, CG_FLAG_UNSCALED, "permk",
        { "unscaled", "" } },
    { CG_SLOT_TRANSFORM_, CG_TRANSFORM_ROTATE, 1, 3, 0, 0, 0, CG_RANGE_NONE_, 0, "rotate", { "", "" } },
    { CG_SLOT_TRANSFORM_, CG_TRANSFORM_DCT, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "dct", { "", "" } },
    { CG_SLOT_TRANSFORM_, CG_TRANSFORM_LOWRANK, 1, 64, 1, CG_ANY_SIZE_, 0, 1.0f, 16777216.0f, 0, 0, "lowrank",
        { "", "" } },
    { CG_SLOT_TRANSFORM_, CG_TRANSFORM_ATOMO, 1, 64, 1, CG_ANY_SIZE_, 0, 1.0f, 16777216.0f, 0, 0, "atomo", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_TOPK, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "topk", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_THRESHOLD, 0, 0, 0, 0, 0, CG_RANGE_NONNEGATIVE_, 0, "threshold", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_DGC, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "dgc", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_MSTOPK, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "mstopk", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_SIDCO, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "sidco", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_WANGNI, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "wangni", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_WANGNIVAR, 0, 0, 0, 0, 0, CG_RANGE_POSITIVE_, 0, "wangnivar", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_BINS, 0, 0, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "bins", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_SIDES, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "sides", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_SIDE, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "side", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_CHUNKED, 0, 0, 1, CG_ANY_SIZE_, 0, CG_RANGE_RATIO_, 0, "chunked", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_BLOCKS, 0, 0, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "blocks", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_GIVEN, 0, 0, 0, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "given", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_VARIANCE, 0, 0, 0, 0, 0, CG_RANGE_NONNEGATIVE_, 0, "variance", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_F16, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "f16", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_BF16, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "bf16", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_SIGN, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "sign", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_EFSIGN, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "efsign", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_ABSMAX, 1, 8, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST, "absmax",
        { "nearest", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_MINMAX, 1, 8, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST | CG_FLAG_NORM,
        "minmax", { "nearest", "norm" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_TERNGRAD, 0, 0, 0, 0, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST | CG_FLAG_CLIP,
        "terngrad", { "nearest", "clip" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_LEVELS, 1, 127, 0, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST | CG_FLAG_MAX,
        "levels", { "nearest", "max" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_FLEXPOINT, 2, 8, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "flexpoint", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_FLEX16, 0, 0, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "flex16", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_TRITS, 0, 0, 0, 0, 0, 1.0f, 1.99999988f, 0, 0, "trits", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_STROM, 0, 0, 0, 0, 0, CG_RANGE_POSITIVE_, 0, "strom", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_ONEBIT, 0, 0, 0, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "onebit", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_MEAN, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "mean", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_NATURAL, 0, 0, 0, 0, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST, "natural",
        { "nearest", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_DITHER, 2, 8, 0, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST | CG_FLAG_MAX,
        "dither", { "nearest", "max" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_DYNAMIC8, 0, 0, 0, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "dynamic8", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_E4M3, 0, 0, 1, CG_ANY_SIZE_, 512, CG_RANGE_NONE_, 0, "e4m3", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_E5M2, 0, 0, 1, CG_ANY_SIZE_, 512, CG_RANGE_NONE_, 0, "e5m2", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_MXFP4, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "mxfp4", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_MXE4M3, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "mxe4m3", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_MXE5M2, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "mxe5m2", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_NF4, 0, 0, 1, CG_ANY_SIZE_, 64, CG_RANGE_NONE_, 0, "nf4", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_LLOYD, 0, 0, 0, 0, 0, 1.0f, 4.0f, 0, 0, "lloyd", { "", "" } },
};
#define CG_STAGE_ROWS_ (sizeof cg_stage_rows_ / sizeof cg_stage_rows_[0])

/* The code slot holds two codes: its id is the code of the indices, its arg the code of the values. */
static const char *const cg_index_code_names_[] = { "", "eliasfano", "bitmap", "golomb" };
static const char *const cg_value_code_names_[] = { "", "gamma", "delta", "omega", "huffman", "quartic" };
enum {
    CG_INDEX_CODE_COUNT_ = sizeof cg_index_code_names_ / sizeof cg_index_code_names_[0],
    CG_VALUE_CODE_COUNT_ = sizeof cg_value_code_names_ / sizeof cg_value_code_names_[0]
};

/* The stage of op in that slot; slot < CG_SLOT_COUNT_. */
static const cg_stage *cg_op_stage_const_(const cg_op *op, unsigned slot) {
    const cg_stage *const slots[CG_SLOT_COUNT_] = { &op->sample, &op->transform, &op->select, &op->quantize, &op->code,
        &op->spare };
    return slots[slot];
}
static cg_stage *cg_op_stage_(cg_op *op, unsigned slot) { return (cg_stage *)(uintptr_t)cg_op_stage_const_(op, slot); }
/* The row of a stage, or NULL: empty stages, codes and user codecs have none. */
static int cg_same_text_(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}
static const cg_stage_row_ *cg_stage_row_of_(unsigned slot, unsigned id) {
    for (size_t i = 0; i < CG_STAGE_ROWS_; i++)
        if (cg_stage_rows_[i].slot == slot && cg_stage_rows_[i].id == id) return &cg_stage_rows_[i];
    return NULL;
}
/* s is a quantize stage. */
static int cg_is_user_codec_(const cg_stage *s) { return s->id >= CG_QUANTIZE_USER; }
static int cg_stage_is_empty_(const cg_stage *s) {
    return !s->id && !s->flags && !s->arg && !s->size && !cg_as_bits_(s->value);
}
static int cg_is_matrix_op_(const cg_op *op) {
    return op->transform.id == CG_TRANSFORM_LOWRANK || op->transform.id == CG_TRANSFORM_ATOMO;
}

/* Does the selection keep exactly k values, known beforehand from the ratio or cg_op.k? Then cg_op.k belongs to it,
   else to the random sample. */
static int cg_has_fixed_k_(const cg_op *op) {
    return op->select.id == CG_SELECT_TOPK || op->select.id == CG_SELECT_MSTOPK;
}
static int cg_value_code_fits_(const cg_op *op); /* in quantize/rows.h */

/* One stage by itself. CG_E_VERSION: a stage, code or flag that this build does not know. CG_E_ARG: a known stage
   with parameters out of range. */
static cg_status cg_stage_check_(unsigned slot, const cg_stage *s) {
    const cg_stage_row_ *row;
    if (cg_stage_is_empty_(s)) return CG_OK;
    if (slot == CG_SLOT_CODE_) {
        if (s->id >= CG_INDEX_CODE_COUNT_ || s->arg >= CG_VALUE_CODE_COUNT_) return CG_E_VERSION;
        return s->flags || s->size || cg_as_bits_(s->value) ? CG_E_ARG : CG_OK;
    }
    if (s->id == 0) return CG_E_ARG;
    if (slot == CG_SLOT_QUANTIZE_ && cg_is_user_codec_(s))
        return s->flags || !cg_is_finite_(s->value) ? CG_E_ARG : CG_OK;
    row = cg_stage_row_of_(slot, s->id);
    if (!row || (s->flags & ~row->allowed_flags)) return CG_E_VERSION;
    if (row->arg_hi ? s->arg < row->arg_lo || s->arg > row->arg_hi : s->arg != 0) return CG_E_ARG;
    if (row->size_hi ? s->size < row->size_lo : s->size != 0) return CG_E_ARG;
    if (row->value_hi == 0.0f) return cg_as_bits_(s->value) ? CG_E_ARG : CG_OK;
    if (!(s->value >= row->value_lo && s->value <= row->value_hi) ||
        (row->value_lo_exclusive && s->value == row->value_lo))
        return CG_E_ARG;
    return CG_OK;
}
/* All stages of op, each by itself and together. Any bytes may be in *op. CG_OK is what the rest of the
   implementation relies on; errors as those of cg_stage_check_. */
static cg_status cg_op_check_(const cg_op *op) {
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        cg_status s = cg_stage_check_(slot, cg_op_stage_const_(op, slot));
        if (s != CG_OK) return s;
    }
    if (op->reserved) return CG_E_ARG;
    /* a count that no stage takes */
    if (op->k && !cg_has_fixed_k_(op) && op->sample.id != CG_SAMPLE_RANDK) return CG_E_ARG;
    /* a code for indices where the packet has none */
    if (op->code.id && (!op->select.id || op->select.id == CG_SELECT_GIVEN)) return CG_E_ARG;
    if (op->code.arg && !cg_value_code_fits_(op)) return CG_E_ARG;
    if (cg_is_matrix_op_(op)) {
        float cols = op->transform.value;
        if (op->sample.id || op->select.id || op->quantize.id || op->code.arg || cols != (float)(uint32_t)cols)
            return CG_E_ARG;
    }
    /* indices of a support, and cg_extra.aux, refer to x itself */
    if (op->select.id == CG_SELECT_GIVEN && (op->sample.id || op->transform.id)) return CG_E_ARG;
    if ((op->select.id == CG_SELECT_BINS || op->select.id == CG_SELECT_VARIANCE) && (op->sample.id || op->transform.id))
        return CG_E_ARG;
    if (op->quantize.id == CG_QUANTIZE_LLOYD) { /* buckets are the rotation's blocks; bits in steps of 1/32 */
        float steps = op->quantize.value * 32.0f;
        if (op->transform.id != CG_TRANSFORM_ROTATE || op->select.id || steps != (float)(int)steps) return CG_E_ARG;
    }
    return CG_OK;
}
/* An operator that the caller wants to use: cg_op_check_, and mean only after a selection of one side. The mean of
   values of both signs is about nothing: training with it would stand still. Packets of 0.1 may have it, and the route
   shared sends indices with it, whose values nobody reads. */
static cg_status cg_op_check_new_(const cg_op *op) {
    if (op->quantize.id == CG_QUANTIZE_MEAN && op->select.id != CG_SELECT_SIDE) return CG_E_ARG;
    return cg_op_check_(op);
}
