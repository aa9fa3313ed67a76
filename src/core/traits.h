/* traits: what other headers ask of an operator, answered at once

   Offers   cg_traits_of_
   Needs    stages, shape, select (cg_scratch_bytes_), layout, reduce (cg_grid_zero_symbol_)
   Touches  nothing
   Other headers may use: cg_traits_, cg_traits_of_ */

/* Stages that lose a part of the vector for good, so that training stalls, unless that part is fed back; samples only
   if they are not scaled. The sentence is what a report says of them. */
#define CG_BIASED_(name) "ok; " name " is biased: without compgrad_ef.h training stalls"
typedef struct cg_biased_row_ {
    uint8_t slot, id;
    const char *why;
} cg_biased_row_;
static const cg_biased_row_ cg_biased_rows_[] = {
    { CG_SLOT_SAMPLE_, CG_SAMPLE_RANDK, CG_BIASED_("randk:unscaled") },
    { CG_SLOT_SAMPLE_, CG_SAMPLE_PERMK, CG_BIASED_("permk:unscaled") },
    { CG_SLOT_TRANSFORM_, CG_TRANSFORM_LOWRANK, CG_BIASED_("lowrank") },
    { CG_SLOT_SELECT_, CG_SELECT_TOPK, CG_BIASED_("topk") },
    { CG_SLOT_SELECT_, CG_SELECT_THRESHOLD, CG_BIASED_("threshold") },
    { CG_SLOT_SELECT_, CG_SELECT_DGC, CG_BIASED_("dgc") },
    { CG_SLOT_SELECT_, CG_SELECT_MSTOPK, CG_BIASED_("mstopk") },
    { CG_SLOT_SELECT_, CG_SELECT_SIDCO, CG_BIASED_("sidco") },
    { CG_SLOT_SELECT_, CG_SELECT_BINS, CG_BIASED_("bins") },
    { CG_SLOT_SELECT_, CG_SELECT_SIDES, CG_BIASED_("sides") },
    { CG_SLOT_SELECT_, CG_SELECT_SIDE, CG_BIASED_("side") },
    { CG_SLOT_SELECT_, CG_SELECT_CHUNKED, CG_BIASED_("chunked") },
    { CG_SLOT_SELECT_, CG_SELECT_GIVEN, CG_BIASED_("given") },
    { CG_SLOT_SELECT_, CG_SELECT_VARIANCE, CG_BIASED_("variance") },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_SIGN, CG_BIASED_("sign") },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_EFSIGN, CG_BIASED_("efsign") },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_TRITS, CG_BIASED_("trits") },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_STROM, CG_BIASED_("strom") },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_ONEBIT, CG_BIASED_("onebit") },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_MEAN, CG_BIASED_("mean") },
};
/* NULL: nothing in op needs error feedback. */
static const char *cg_biased_why_(const cg_op *op) {
    for (size_t i = 0; i < sizeof cg_biased_rows_ / sizeof *cg_biased_rows_; i++) {
        const cg_stage *s = cg_op_stage_const_(op, cg_biased_rows_[i].slot);
        if (s->id == cg_biased_rows_[i].id && (cg_biased_rows_[i].slot != CG_SLOT_SAMPLE_ || s->flags))
            return cg_biased_rows_[i].why;
    }
    return NULL;
}

typedef struct cg_traits_ {
    cg_shape_ shape;        /* how many values every slot leaves at most */
    uint64_t k;             /* values that the selection aims at, by its ratio or op.k */
    int has_fixed_k;        /* it leaves exactly so many */
    int has_user_codec;     /* the values are encoded by a codec of the caller's */
    uint32_t max_level;     /* largest level of a grid around zero, on which packets can be added; 0: there is none */
    uint64_t scale_count;   /* without a selection: scales of a packet */
    uint64_t scratch_bytes; /* of cg_compress; saturates */
    const char *biased_why; /* what happens without error feedback, or NULL */
} cg_traits_;

/* op must be valid (cg_bound is not 0 for it and some n). */
CG_OFFERED_ cg_traits_ cg_traits_of_(const cg_op *op, uint64_t n) {
    cg_traits_ t;
    cg_layout_ lay;
    unsigned bits;
    memset(&t, 0, sizeof t);
    t.shape = cg_shape_of_(op, n);
    t.k = cg_k_from_ratio_(op->select.value, op->k, n);
    t.has_fixed_k = cg_has_fixed_k_(op);
    t.has_user_codec = cg_is_user_codec_(&op->quantize);
    t.max_level = (uint32_t)cg_grid_zero_symbol_(&op->quantize, &bits);
    if (cg_layout_make_(op, NULL, t.shape.transformed_n, &lay) == CG_OK) t.scale_count = lay.bucket_count;
    t.scratch_bytes = cg_scratch_bytes_(op, n);
    t.biased_why = cg_biased_why_(op);
    return t;
}
