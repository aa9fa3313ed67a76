/* stages: what a row of the table of stages holds, and the checks of stages and operators

   Offers   slots, traits, cg_stage_row_, cg_error_, the lookup of rows, cg_op_traits_, cg_stage_key_, cg_op_check_,
            cg_op_check_new_ and cg_op_only_old_
   Needs    base, random; the table itself is in core/rows.h, behind the functions that its rows name
   Touches  nothing but its arguments
   Other headers may use: cg_op_check_, cg_op_traits_
   A row says everything of a stage: its text, its parameters and their ranges, its traits and its functions. Parsing,
   printing, checking, planning and encoding read it. cg_op_check_ is the only judge of operators: those of the caller
   and those in packet headers pass it before any other function of the implementation sees them. cg_op_check_new_
   refuses a caller what only old packets may have. */

enum {
    CG_SLOT_SAMPLE_,
    CG_SLOT_TRANSFORM_,
    CG_SLOT_SELECT_,
    CG_SLOT_QUANTIZE_,
    CG_SLOT_CODE_,
    CG_SLOT_CLIP_, /* was empty in 0.1, and stands last in headers; its stage is done before the quantizer */
    CG_SLOT_COUNT_
};
/* The slots in the order in which their stages are done, and stand in text; and the place of each slot in it. */
static const uint8_t cg_slot_order_[] = { CG_SLOT_SAMPLE_, CG_SLOT_TRANSFORM_, CG_SLOT_SELECT_, CG_SLOT_CLIP_,
    CG_SLOT_QUANTIZE_, CG_SLOT_CODE_ };
static unsigned cg_slot_place_(unsigned slot) {
    unsigned place = 0;
    while (cg_slot_order_[place] != slot) place++;
    return place;
}

/* What stages are like, whatever their parameters. The traits of an operator are those of all its stages
   (cg_op_traits_): where code depends on a stage it asks for a trait, so that a new stage is a row and nothing else. */
enum {
    CG_IS_PER_RANK_ = 1 << 0, /* sample: every rank keeps other values, so that packets of ranks do not add up */
    CG_SAMPLES_RATIO_ =
        1 << 1, /* sample: stage.value is the fraction to keep, or cg_op.k values are, if no selection takes k */
    CG_IS_MATRIX_ = 1 << 2, /* transform: x is a matrix, and two factors take its place */
    CG_IS_LINEAR_MATRIX_ =
        1 << 3,                 /* transform: ranks can find factors of the sum of their matrices together (PowerSGD) */
    CG_IS_ROTATION_ = 1 << 4,   /* transform: values come out about normally distributed */
    CG_IS_SELECTION_ = 1 << 5,  /* every selection */
    CG_TAKES_K_ = 1 << 6,       /* selection: cg_op.k replaces its ratio */
    CG_HAS_RATIO_ = 1 << 7,     /* selection: stage.value is the fraction to keep, which a warm-up may change */
    CG_KEEPS_EXACTLY_ = 1 << 8, /* selection: keeps just as many values as max_selected says */
    CG_KEEPS_ABOUT_ = 1 << 9,   /* selection: keeps about the fraction that it was given */
    CG_KEEPS_LARGEST_ = 1 << 10,     /* selection: of the whole vector; info.threshold is the smallest that was kept */
    CG_TAKES_PRODUCER_ = 1 << 25,    /* selection: can make x while it reads it (cg_producer_) */
    CG_KEEPS_ONE_SIDE_ = 1 << 11,    /* selection: values of one sign */
    CG_KEEPS_BLOCKS_ = 1 << 12,      /* selection: one index stands for stage.size values */
    CG_NEEDS_AUX_ = 1 << 13,         /* selection: reads cg_extra.aux */
    CG_NEEDS_SUPPORT_ = 1 << 14,     /* selection: takes the indices of cg_extra.support, and sends none */
    CG_IS_USER_CODEC_ = 1 << 15,     /* quantizer: a cg_codec of the caller's */
    CG_IS_F32_ = 1 << 16,            /* quantizer: values are sent as they are */
    CG_IS_SIGN_ = 1 << 17,           /* quantizer: a sign without a scale, which can be voted on */
    CG_HAS_GRID_ = 1 << 18,          /* quantizer: symbols are levels around zero, which add as integers */
    CG_SCALE_IS_STEP_ = 1 << 23,     /* quantizer with levels: the scale is one level, not the largest */
    CG_ROUNDS_TO_NEAREST_ = 1 << 24, /* quantizer with levels: never at random */
    CG_OWNS_SCALES_ = 1 << 19,       /* quantizer: cg_extra.scale cannot take the place of its scales */
    CG_CODES_EXPONENTS_ = 1 << 20,   /* quantizer: stores floats whose exponents huffman can code */
    CG_WANTS_ROTATION_ = 1 << 21,    /* quantizer: stands only behind a rotation, whose blocks are its buckets */
    CG_ROUNDS_AT_RANDOM_ = 1 << 26,  /* quantizer: may draw noise; a flag nearest or stochastic says whether it does */
    CG_AUX_IS_VARIANCE_ = 1 << 30,   /* selection: aux has variances of x; otherwise the gradient, where x is a sum */
    CG_SCALES_ARE_ENDS_ = 1 << 27,   /* quantizer: its two scales are the ends of a range */
    CG_INDEX_LENGTH_VARIES_ = 1 << 28, /* code of indices: not their number alone says how long the section is */
    CG_IS_PRIVATE_ =
        1 << 29,            /* of an operator: its sample or rotation differs by rank (CG_FLAG_PRIVATE), so that packets
                                 of ranks add up decoded, and not in their domain */
    CG_IS_BIASED_ = 1 << 22 /* the mean of what is decoded differs from x, but with an unbiasing flag */
};
#define CG_LENGTH_VARIES_ 0x80000000u /* a trait: quantizer whose levels are entropy coded: so is their section */
/* What a stage does to the values v that it sees, whatever they are; see core/error.h. */
typedef struct cg_error_ {
    double bound;       /* E|C(v) - v|^2 <= bound |v|^2, the least that is known; -1: none is */
    double least, most; /* a biased stage that leaves some values as they are, and no others: their share of |v|^2 */
    double total;       /* values that the quantizer sees in all; set before */
    double count;       /* a selection: how many values it keeps, in expectation; -1: data decides */
    double inflation;   /* E|C(v)|^2 <= inflation |v|^2 by the papers, for error feedback; 1 if the stage is biased */
    double step;        /* a grid around zero: its step as a share of the largest magnitude of a bucket; 0: unknown */
    int is_biased;
    int data_decides; /* 1: the error of most vectors is far below the bound */
} cg_error_;
typedef struct cg_stage_row_ {
    uint8_t slot, id;
    const char *name;          /* as text, a stage is name:arg:size:value:flag */
    const char *params;        /* for messages: name=example of each parameter, in the order of the text */
    const char *warning;       /* what a report says of the stage without error feedback, if it is biased; or NULL */
                               /* of a stage that was left out, that it was; it has no params and no flag_names */
    const char *flag_names[2]; /* of the flags 1 and 2; "": there is no such flag */
    uint8_t biasing_flags;     /* those with which the mean of what is decoded differs from x */
    uint8_t unbiasing_flags;   /* those with which it is x, although the stage has CG_IS_BIASED_ */
    uint32_t traits;
    /* ranges of the three parameters; where an upper end is 0, the stage has no such parameter */
    uint16_t arg_lo, arg_hi;
    uint32_t size_lo, size_hi;
    uint32_t size_default; /* text may leave the size out if this is in its range */
    float value_lo, value_hi;
    uint8_t value_lo_exclusive; /* 1: value_lo itself is too small */
    /* n: values that the stage sees, for a quantizer those of a bucket. *e is zeros, but for count, which is n, most
       and inflation, which are 1, and is_biased, which is set */
    void (*error)(const cg_op *op, uint64_t n, cg_error_ *e);
} cg_stage_row_;
#define CG_PRIVATE_KEY_ 0xBB67AE8584CAA73Bu /* of samples and rotations that differ by rank */
#define CG_SIZE_MAX_ 0xffffffffu            /* of stage.size */
/* A row that this build was made without: it has a name, and in place of a warning the sentence that says so. */
CG_INLINE_ int cg_is_left_out_(const cg_stage_row_ *row) { return CG_MAY_LEAVE_OUT_ && !row->error; }
/* The code slot holds two codes: its id is the code of the indices, its arg the code of the values. */
typedef struct cg_value_code_ {
    const char *name;
    const char *left_out; /* NULL, or that it was */
} cg_value_code_;
#define CG_VALUE_CODE_LIST_(X) \
  X(GAMMA, "gamma") X(DELTA, "delta") X(OMEGA, "omega") X(HUFFMAN, "huffman") X(QUARTIC, "quartic")
#define CG_ROW_(id, name) { name, CG_IF_(COMPGRAD_WITH_##id, (NULL), (CG_LEFT_OUT_WHY_(name, #id))) },
static const cg_value_code_ cg_value_codes_[] = { { "", NULL }, CG_VALUE_CODE_LIST_(CG_ROW_) };
#undef CG_ROW_
enum { CG_VALUE_CODE_COUNT_ = sizeof cg_value_codes_ / sizeof cg_value_codes_[0] };
/* Whether this build has any code of values, sample and transform: code for them that asks is not in the object if it
   has none. */
/* Quantizers whose levels are always coded. */
CG_INLINE_ int cg_builds_levels_(void) { return 0 CG_OR_BUILT_(RATE, ) CG_OR_BUILT_(STEP, ); }
CG_INLINE_ int cg_builds_value_codes_(void) { return cg_builds_levels_() CG_VALUE_CODE_LIST_(CG_OR_BUILT_); }
CG_INLINE_ int cg_builds_samples_(void); /* in core/rows.h, as the next */
CG_INLINE_ int cg_builds_transforms_(void);
CG_INLINE_ int cg_builds_clips_(void);
static int cg_is_sampled_(const cg_op *op) { return cg_builds_samples_() && op->sample.id != 0; }
static int cg_is_clipped_(const cg_op *op) { return cg_builds_clips_() && op->clip.id != 0; }
static int cg_is_transformed_(const cg_op *op) { return cg_builds_transforms_() && op->transform.id != 0; }
struct cg_list_;
struct cg_index_reader_;
/* A code of indices: how long a section it makes of k > 0 indices below universe, and how it writes and reads one. */
typedef struct cg_index_coder_ {
    uint8_t id;
    const char *name;
    const char *left_out; /* NULL, or that it was */
    uint32_t traits;
    uint64_t (*bytes)(uint64_t universe, uint64_t k); /* at most, if CG_INDEX_LENGTH_VARIES_; a multiple of 4 */
    uint64_t (*bound)(uint64_t universe, uint64_t k); /* of any number of indices up to k */
    size_t (*put)(uint64_t universe, const struct cg_list_ *list, uint8_t *out, size_t bytes); /* returns the bytes */
    void (*open)(struct cg_index_reader_ *r, uint64_t k);                     /* what cg_index_open_ has not set */
    size_t (*get)(struct cg_index_reader_ *r, uint64_t *index, size_t count); /* see cg_index_get_ */
    int (*padding_ok)(const struct cg_index_reader_ *r, uint64_t k); /* of a reader at the first of k indices */
    /* k ascending indices below the universe, and no more? *next: the last + 1, 0 if k is 0 */
    int (*check)(struct cg_index_reader_ *r, uint64_t k, uint64_t *next);
} cg_index_coder_;
/* From 0, which chooses, on; NULL: there are no more. */
static const cg_index_coder_ *cg_index_coder_at_(unsigned id); /* in core/rows.h */

/* The stage of op in that slot; slot < CG_SLOT_COUNT_. Stages lie one behind the other, as in a packet's header. */
CG_INLINE_ const cg_stage *cg_op_stage_const_(const cg_op *op, unsigned slot) {
    return (const cg_stage *)(const void *)((const uint8_t *)op + slot * sizeof(cg_stage));
}
static cg_stage *cg_op_stage_(cg_op *op, unsigned slot) { return (cg_stage *)(uintptr_t)cg_op_stage_const_(op, slot); }
/* Row number `id` of a slot, from 0, the empty stage, on; NULL: there are no more (or the slot is that of codes). */
static const cg_stage_row_ *cg_row_at_(unsigned slot, unsigned id); /* in core/rows.h, as those below */
/* The row of a stage that cg_stage_check_ accepts; the row of the empty stage for one that this build does not know. */
static const cg_stage_row_ *cg_stage_row_of_(unsigned slot, const cg_stage *s);
/* All traits of the stages of an operator; of any, but stages that this build does not know have none. */
static uint32_t cg_op_traits_(const cg_op *op);
/* The key of a sample or transform: that of all ranks, or this rank's own, which is not the key of its rounding. */
static uint64_t cg_stage_key_(const cg_stage *s, const cg_tag *tag) {
    return s->flags & CG_FLAG_PRIVATE ? cg_rank_key_(tag) ^ CG_PRIVATE_KEY_ : cg_shared_key_(tag);
}
static int cg_has_(const cg_op *op, uint32_t traits) { return (cg_op_traits_(op) & traits) != 0; }
/* s is a quantize stage. */
static int cg_is_user_codec_(const cg_stage *s) { return s->id >= CG_QUANTIZE_USER; }
CG_INLINE_ int cg_stage_is_empty_(const cg_stage *s) {
    uint64_t id_to_size;
    memcpy(&id_to_size, s, 8);
    return !(id_to_size | cg_as_bits_(s->value));
}
static int cg_value_code_fits_(const cg_op *op); /* in quantize/rows.h */
/* Does the mean of what is decoded differ from what this stage sees? */
static int cg_stage_is_biased_(unsigned slot, const cg_stage *s) {
    const cg_stage_row_ *row = cg_stage_row_of_(slot, s);
    if (s->flags & row->unbiasing_flags) return 0;
    return (row->traits & CG_IS_BIASED_) != 0 || (s->flags & row->biasing_flags) != 0;
}

/* Why this build does not have a code whose numbers are good: the sentence that says so; NULL: it has it. */
static const char *cg_code_left_out_(const cg_stage *s) {
    if (!CG_MAY_LEAVE_OUT_) return NULL;
    return cg_index_coder_at_(s->id)->left_out ? cg_index_coder_at_(s->id)->left_out : cg_value_codes_[s->arg].left_out;
}
/* The sentence of the first stage or code of op that this build was made without; NULL: it was not. */
static const char *cg_op_left_out_(const cg_op *op) {
    for (unsigned slot = 0; CG_MAY_LEAVE_OUT_ && slot < CG_SLOT_COUNT_; slot++) {
        const cg_stage_row_ *row = cg_row_at_(slot, cg_op_stage_const_(op, slot)->id);
        if (row && cg_is_left_out_(row)) return row->warning;
    }
    return cg_index_coder_at_(op->code.id) && op->code.arg < CG_VALUE_CODE_COUNT_ ? cg_code_left_out_(&op->code) : NULL;
}
/* One stage by itself. CG_E_VERSION: a stage, code or flag that this build does not know. CG_E_ARG: a known stage
   with parameters out of range. */
static cg_status cg_stage_check_(unsigned slot, const cg_stage *s) {
    const cg_stage_row_ *row;
    if (cg_stage_is_empty_(s)) return CG_OK;
    if (slot == CG_SLOT_CODE_) {
        if (!cg_index_coder_at_(s->id) || s->arg >= CG_VALUE_CODE_COUNT_ || cg_code_left_out_(s)) return CG_E_VERSION;
        return s->flags || s->size || cg_as_bits_(s->value) ? CG_E_ARG : CG_OK;
    }
    if (s->id == 0) return CG_E_ARG;
    if (slot == CG_SLOT_QUANTIZE_ && cg_is_user_codec_(s))
        return s->flags || !cg_is_finite_(s->value) ? CG_E_ARG : CG_OK;
    row = cg_row_at_(slot, s->id);
    if (!row || cg_is_left_out_(row) ||
        s->flags & ~(unsigned)((row->flag_names[0][0] != 0) | (row->flag_names[1][0] != 0) << 1))
        return CG_E_VERSION;
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
static const char *cg_op_conflict_(const cg_op *op, uint32_t traits, unsigned *slot) {
    if (!(op->sample.id | op->transform.id | op->select.id | op->code.id | op->code.arg | op->k) &&
        !(traits & CG_WANTS_ROTATION_))
        return NULL; /* a quantizer by itself */
    *slot = CG_SLOT_CODE_;
    if (op->code.id && (!(traits & CG_IS_SELECTION_) || traits & CG_NEEDS_SUPPORT_))
        return "a code for indices needs a selection that sends indices before it, as in 'topk:0.01|golomb'";
    if (op->code.arg && !cg_value_code_fits_(op)) {
        if (op->code.arg == CG_CODE_QUARTIC - CG_CODE_PACKED)
            return "quartic needs a quantizer of three levels before it (terngrad, trits, strom, absmax:2, flexpoint:2 "
                   "or levels:1), as in 'terngrad|quartic'";
        if (traits & CG_CODES_EXPONENTS_)
            return "f32 and bf16 values take no code but huffman; other codes need a quantizer with levels before "
                   "them, as in 'absmax:4:512|omega'";
        return "the values of this quantizer have no code; those of absmax, minmax, levels and terngrad do, as in "
               "'absmax:4:512|huffman'";
    }
    *slot = CG_SLOT_TRANSFORM_;
    if (traits & CG_IS_MATRIX_) {
        if (op->sample.id || op->select.id || op->clip.id || op->quantize.id || op->code.arg)
            return "lowrank and atomo are complete operators: no other stage goes with them";
        if (op->transform.value != (float)(uint32_t)op->transform.value) return "cols must be a whole number";
    }
    *slot = CG_SLOT_SELECT_;
    if (op->sample.id || op->transform.id) {
        if (traits & CG_NEEDS_SUPPORT_)
            return "given takes neither a sample nor a transform: indices of a support are those of x itself";
        if (traits & CG_NEEDS_AUX_)
            return "bins and variance take neither a sample nor a transform: cg_extra.aux belongs to x itself";
    }
    *slot = CG_SLOT_QUANTIZE_;
    if (traits & CG_WANTS_ROTATION_) { /* buckets are the rotation's blocks; bits in steps of 1/32 */
        const float steps = op->quantize.value * 32.0f;
        if (!(traits & CG_IS_ROTATION_) || op->select.id)
            return "lloyd needs rotate before it and takes no selection, as in 'rotate:3|lloyd:2'";
        if (steps != (float)(int)steps) return "bits of lloyd go in steps of 1/32, as in 'rotate:3|lloyd:2.5'";
    }
    /* a count that no stage takes */
    if (op->k && !(traits & (CG_TAKES_K_ | CG_SAMPLES_RATIO_)))
        return "k needs topk, mstopk or randk, as in 'topk:k=100'";
    return NULL;
}
/* Is everything but the quantizer zero? Six stages of 12 bytes lie one behind the other, then k. */
static int cg_is_quantizer_alone_(const cg_op *op) {
    uint64_t before[4], behind[3];
    uint32_t last;
    memcpy(before, op, 32);
    memcpy(&last, (const uint8_t *)op + 32, 4);
    memcpy(behind, (const uint8_t *)op + 48, 24);
    return !(before[0] | before[1] | before[2] | before[3] | last | behind[0] | behind[1] | behind[2] | op->k |
        op->reserved);
}
/* All stages of op, each by itself and together. Any bytes may be in *op. CG_OK is what the rest of the
   implementation relies on; errors as those of cg_stage_check_. */
static cg_status cg_op_resolve_(const cg_op *op, uint32_t *traits) {
    unsigned at;
    if (cg_is_quantizer_alone_(op)) { /* the operators of which small tensors have most */
        const cg_status s = cg_stage_is_empty_(&op->quantize) ? CG_OK
                                                              : cg_stage_check_(CG_SLOT_QUANTIZE_, &op->quantize);
        if (s != CG_OK) return s;
        *traits = cg_stage_row_of_(CG_SLOT_QUANTIZE_, &op->quantize)->traits;
        if (!(*traits & CG_WANTS_ROTATION_)) return CG_OK;
    }
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        const cg_stage *stage = cg_op_stage_const_(op, slot);
        cg_status s = cg_stage_is_empty_(stage) ? CG_OK : cg_stage_check_(slot, stage);
        if (s != CG_OK) return s;
    }
    *traits = cg_op_traits_(op);
    return op->reserved || cg_op_conflict_(op, *traits, &at) ? CG_E_ARG : CG_OK;
}
static cg_status cg_op_check_(const cg_op *op) {
    uint32_t traits;
    return cg_op_resolve_(op, &traits);
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
