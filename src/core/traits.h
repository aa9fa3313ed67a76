/* traits: what other headers ask of an operator, answered at once

   Offers   cg_traits_of_
   Needs    stages, shape, select (cg_scratch_bytes_), layout, reduce (cg_grid_zero_symbol_)
   Touches  nothing
   Other headers may use: cg_traits_, cg_traits_of_ */

typedef struct cg_traits_ {
    cg_shape_ shape;        /* how many values every slot leaves at most */
    uint64_t k;             /* values that the selection aims at, by its ratio or op.k */
    int has_fixed_k;        /* it leaves exactly so many */
    int has_user_codec;     /* the values are encoded by a codec of the caller's */
    uint32_t max_level;     /* largest level of a grid around zero, on which packets can be added; 0: there is none */
    uint64_t scale_count;   /* without a selection: scales of a packet */
    uint64_t scratch_bytes; /* of cg_compress; saturates */
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
    return t;
}
