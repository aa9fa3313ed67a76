/* stages: the table of all stages but the codes, and the checks of stages and operators

   Offers   the slots, the table with its lookup, names of codes, cg_op_check_, cg_op_check_new_ and
            cg_op_only_old_, predicates about operators
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
    const char *params;         /* for messages: name=example of each parameter, in the order of the text */
} cg_stage_row_;

#define CG_ANY_SIZE_ 0xffffffffu
/* ranges of stage.value: value_lo, value_hi, value_lo_exclusive */
#define CG_RANGE_RATIO_ 0.0f, 1.0f, 1
#define CG_RANGE_NONNEGATIVE_ 0.0f, CG_FLT_MAX_, 0
#define CG_RANGE_POSITIVE_ 0.0f, CG_FLT_MAX_, 1
#define CG_RANGE_NONE_ 0.0f, 0.0f, 0
static const cg_stage_row_ cg_stage_rows_[] = {
    { CG_SLOT_SAMPLE_, CG_SAMPLE_RANDK, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, CG_FLAG_UNSCALED, "randk", { "unscaled", "" },
        "ratio=0.01" },
    { CG_SLOT_SAMPLE_, CG_SAMPLE_PERMK, 0, 0, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, CG_FLAG_UNSCALED, "permk",
        { "unscaled", "" }, "workers=8" },
    { CG_SLOT_TRANSFORM_, CG_TRANSFORM_ROTATE, 1, 3, 0, 0, 0, CG_RANGE_NONE_, 0, "rotate", { "", "" }, "rounds=3" },
    { CG_SLOT_TRANSFORM_, CG_TRANSFORM_DCT, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "dct", { "", "" }, "" },
    { CG_SLOT_TRANSFORM_, CG_TRANSFORM_LOWRANK, 1, 64, 1, CG_ANY_SIZE_, 0, 1.0f, 16777216.0f, 0, 0, "lowrank",
        { "", "" }, "rank=4:rows=512:cols=256" },
    { CG_SLOT_TRANSFORM_, CG_TRANSFORM_ATOMO, 1, 64, 1, CG_ANY_SIZE_, 0, 1.0f, 16777216.0f, 0, 0, "atomo", { "", "" },
        "budget=4:rows=512:cols=256" },
    { CG_SLOT_SELECT_, CG_SELECT_TOPK, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "topk", { "", "" }, "ratio=0.01" },
    { CG_SLOT_SELECT_, CG_SELECT_THRESHOLD, 0, 0, 0, 0, 0, CG_RANGE_NONNEGATIVE_, 0, "threshold", { "", "" },
        "magnitude=0.001" },
    { CG_SLOT_SELECT_, CG_SELECT_DGC, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "dgc", { "", "" }, "ratio=0.01" },
    { CG_SLOT_SELECT_, CG_SELECT_MSTOPK, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "mstopk", { "", "" }, "ratio=0.01" },
    { CG_SLOT_SELECT_, CG_SELECT_SIDCO, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "sidco", { "", "" }, "ratio=0.01" },
    { CG_SLOT_SELECT_, CG_SELECT_WANGNI, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "wangni", { "", "" }, "ratio=0.01" },
    { CG_SLOT_SELECT_, CG_SELECT_WANGNIVAR, 0, 0, 0, 0, 0, CG_RANGE_POSITIVE_, 0, "wangnivar", { "", "" },
        "epsilon=0.5" },
    { CG_SLOT_SELECT_, CG_SELECT_BINS, 0, 0, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "bins", { "", "" }, "bin=50" },
    { CG_SLOT_SELECT_, CG_SELECT_SIDES, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "sides", { "", "" }, "ratio=0.01" },
    { CG_SLOT_SELECT_, CG_SELECT_SIDE, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "side", { "", "" }, "ratio=0.01" },
    { CG_SLOT_SELECT_, CG_SELECT_CHUNKED, 0, 0, 1, CG_ANY_SIZE_, 0, CG_RANGE_RATIO_, 0, "chunked", { "", "" },
        "chunk=64:ratio=0.1" },
    { CG_SLOT_SELECT_, CG_SELECT_BLOCKS, 0, 0, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "blocks", { "", "" },
        "block=256" },
    { CG_SLOT_SELECT_, CG_SELECT_GIVEN, 0, 0, 0, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "given", { "", "" }, "support=0" },
    { CG_SLOT_SELECT_, CG_SELECT_VARIANCE, 0, 0, 0, 0, 0, CG_RANGE_NONNEGATIVE_, 0, "variance", { "", "" }, "alpha=1" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_F16, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "f16", { "", "" }, "" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_BF16, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "bf16", { "", "" }, "" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_SIGN, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "sign", { "", "" }, "" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_EFSIGN, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "efsign", { "", "" }, "" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_ABSMAX, 1, 8, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST, "absmax",
        { "nearest", "" }, "bits=4:bucket=512" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_MINMAX, 1, 8, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST | CG_FLAG_NORM,
        "minmax", { "nearest", "norm" }, "bits=4:bucket=512" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_TERNGRAD, 0, 0, 0, 0, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST | CG_FLAG_CLIP,
        "terngrad", { "nearest", "clip" }, "" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_LEVELS, 1, 127, 0, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST | CG_FLAG_MAX,
        "levels", { "nearest", "max" }, "levels=4:bucket=512" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_FLEXPOINT, 2, 8, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "flexpoint", { "", "" },
        "bits=8:bucket=512" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_FLEX16, 0, 0, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "flex16", { "", "" },
        "bucket=512" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_TRITS, 0, 0, 0, 0, 0, 1.0f, 1.99999988f, 0, 0, "trits", { "", "" },
        "multiplier=1" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_STROM, 0, 0, 0, 0, 0, CG_RANGE_POSITIVE_, 0, "strom", { "", "" }, "tau=0.001" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_ONEBIT, 0, 0, 0, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "onebit", { "", "" },
        "column=1024" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_MEAN, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "mean", { "", "" }, "" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_NATURAL, 0, 0, 0, 0, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST, "natural",
        { "nearest", "" }, "" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_DITHER, 2, 8, 0, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST | CG_FLAG_MAX,
        "dither", { "nearest", "max" }, "bits=4:bucket=512" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_DYNAMIC8, 0, 0, 0, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "dynamic8", { "", "" },
        "bucket=256" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_E4M3, 0, 0, 1, CG_ANY_SIZE_, 512, CG_RANGE_NONE_, 0, "e4m3", { "", "" },
        "bucket=512" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_E5M2, 0, 0, 1, CG_ANY_SIZE_, 512, CG_RANGE_NONE_, 0, "e5m2", { "", "" },
        "bucket=512" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_MXFP4, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "mxfp4", { "", "" }, "" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_MXE4M3, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "mxe4m3", { "", "" }, "" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_MXE5M2, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "mxe5m2", { "", "" }, "" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_NF4, 0, 0, 1, CG_ANY_SIZE_, 64, CG_RANGE_NONE_, 0, "nf4", { "", "" },
        "bucket=64" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_LLOYD, 0, 0, 0, 0, 0, 1.0f, 4.0f, 0, 0, "lloyd", { "", "" }, "bits=2" },
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
/* A sentence why stages that are each good do not go together, and the slot of the one that does not fit; NULL: they do
   go together. */
static const char *cg_op_conflict_(const cg_op *op, unsigned *slot) {
    const int is_given = op->select.id == CG_SELECT_GIVEN;
    *slot = CG_SLOT_CODE_;
    if (op->code.id && (!op->select.id || is_given))
        return "a code for indices needs a selection that sends indices before it, as in 'topk:0.01|golomb'";
    if (op->code.arg && !cg_value_code_fits_(op)) {
        if (op->code.arg == CG_CODE_QUARTIC - CG_CODE_PACKED)
            return "quartic needs a quantizer of three levels before it (terngrad, trits, strom, absmax:2, flexpoint:2 "
                   "or levels:1), as in 'terngrad|quartic'";
        if (!op->quantize.id || op->quantize.id == CG_QUANTIZE_BF16)
            return "f32 and bf16 values take no code but huffman; other codes need a quantizer with levels before "
                   "them, as in 'absmax:4:512|omega'";
        return "the values of this quantizer have no code; those of absmax, minmax, levels and terngrad do, as in "
               "'absmax:4:512|huffman'";
    }
    *slot = CG_SLOT_TRANSFORM_;
    if (cg_is_matrix_op_(op) && (op->sample.id || op->select.id || op->quantize.id || op->code.arg))
        return "lowrank and atomo are complete operators: no other stage goes with them";
    if (cg_is_matrix_op_(op) && op->transform.value != (float)(uint32_t)op->transform.value)
        return "cols must be a whole number";
    *slot = CG_SLOT_SELECT_;
    if (is_given && (op->sample.id || op->transform.id))
        return "given takes neither a sample nor a transform: indices of a support are those of x itself";
    if ((op->select.id == CG_SELECT_BINS || op->select.id == CG_SELECT_VARIANCE) && (op->sample.id || op->transform.id))
        return "bins and variance take neither a sample nor a transform: cg_extra.aux belongs to x itself";
    *slot = CG_SLOT_QUANTIZE_;
    if (op->quantize.id == CG_QUANTIZE_LLOYD) { /* buckets are the rotation's blocks; bits in steps of 1/32 */
        const float steps = op->quantize.value * 32.0f;
        if (op->transform.id != CG_TRANSFORM_ROTATE || op->select.id)
            return "lloyd needs rotate before it and takes no selection, as in 'rotate:3|lloyd:2'";
        if (steps != (float)(int)steps) return "bits of lloyd go in steps of 1/32, as in 'rotate:3|lloyd:2.5'";
    }
    /* a count that no stage takes */
    if (op->k && !cg_has_fixed_k_(op) && op->sample.id != CG_SAMPLE_RANDK)
        return "k needs topk, mstopk or randk, as in 'topk:k=100'";
    return NULL;
}
/* All stages of op, each by itself and together. Any bytes may be in *op. CG_OK is what the rest of the
   implementation relies on; errors as those of cg_stage_check_. */
static cg_status cg_op_check_(const cg_op *op) {
    unsigned at;
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        cg_status s = cg_stage_check_(slot, cg_op_stage_const_(op, slot));
        if (s != CG_OK) return s;
    }
    return op->reserved || cg_op_conflict_(op, &at) ? CG_E_ARG : CG_OK;
}
/* What only old packets may have, as a sentence, or NULL: mean after a selection of both sides. The mean of values of
   both signs is about nothing, and training with it would stand still. Packets of 0.1 may have it, and the route shared
   sends indices with it, whose values nobody reads. */
static const char *cg_op_only_old_(const cg_op *op) {
    return op->quantize.id == CG_QUANTIZE_MEAN && op->select.id != CG_SELECT_SIDE
        ? "mean needs side before it, as in 'side:0.01|mean': values of both signs have no mean worth sending"
        : NULL;
}
/* An operator that the caller wants to use. */
static cg_status cg_op_check_new_(const cg_op *op) { return cg_op_only_old_(op) ? CG_E_ARG : cg_op_check_(op); }
