/* presets: functions of the public interface that make operators

   Offers   every cg_op constructor and modifier, cg_then
   Needs    base, stages
   Touches  nothing
   A preset never fails: parameters out of range give an operator that cg_op_check_ refuses, so cg_bound is 0. */

/* An operator of one stage. An arg that is no u16 becomes 65535, which no stage but a user codec accepts. */
static cg_op cg_op_one_stage_(unsigned slot, int id, int arg, uint32_t size, float value) {
    cg_op op = CG_ZERO;
    cg_stage *s = cg_op_stage_(&op, slot);
    s->id = (uint8_t)id;
    s->arg = (uint16_t)(arg < 0 || arg > 65535 ? 65535 : arg);
    s->size = size;
    s->value = value;
    return op;
}
/* An operator that cg_op_check_ refuses: there is no such clip. */
static cg_op cg_op_invalid_(void) {
    cg_op op = CG_ZERO;
    op.clip.id = 255;
    return op;
}
static cg_op cg_op_quantize_(int id, int arg, uint32_t size, float value) {
    return cg_op_one_stage_(CG_SLOT_QUANTIZE_, id, arg, size, value);
}
static cg_op cg_op_select_(int id, uint32_t size, float value) {
    return cg_op_one_stage_(CG_SLOT_SELECT_, id, 0, size, value);
}

CG_API_ cg_op cg_dense(void) { return cg_op_quantize_(0, 0, 0, 0.0f); }
CG_API_ cg_op cg_f16(void) { return cg_op_quantize_(CG_QUANTIZE_F16, 0, 0, 0.0f); }
CG_API_ cg_op cg_bf16(void) { return cg_op_quantize_(CG_QUANTIZE_BF16, 0, 0, 0.0f); }
CG_API_ cg_op cg_absmax(int bits, uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_ABSMAX, bits, bucket, 0.0f); }
CG_API_ cg_op cg_minmax(int bits, uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_MINMAX, bits, bucket, 0.0f); }
CG_API_ cg_op cg_sign(void) { return cg_op_quantize_(CG_QUANTIZE_SIGN, 0, 0, 0.0f); }
CG_API_ cg_op cg_efsign(void) { return cg_op_quantize_(CG_QUANTIZE_EFSIGN, 0, 0, 0.0f); }
CG_API_ cg_op cg_onebit(uint32_t column) { return cg_op_quantize_(CG_QUANTIZE_ONEBIT, 0, column, 0.0f); }
CG_API_ cg_op cg_terngrad(void) { return cg_op_quantize_(CG_QUANTIZE_TERNGRAD, 0, 0, 0.0f); }
CG_API_ cg_op cg_levels(int levels, uint32_t bucket) {
    return cg_op_quantize_(CG_QUANTIZE_LEVELS, levels, bucket, 0.0f);
}
CG_API_ cg_op cg_qsgd(int levels) { return cg_coded(cg_levels(levels, 0), CG_CODE_OMEGA); }
CG_API_ cg_op cg_trits(float s) { return cg_op_quantize_(CG_QUANTIZE_TRITS, 0, 0, s); }
CG_API_ cg_op cg_threelc(float s) { return cg_coded(cg_trits(s), CG_CODE_QUARTIC); }
CG_API_ cg_op cg_strom(float tau) { return cg_op_quantize_(CG_QUANTIZE_STROM, 0, 0, tau); }
CG_API_ cg_op cg_flex16(uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_FLEX16, 0, bucket, 0.0f); }
CG_API_ cg_op cg_flexpoint(int bits, uint32_t bucket) {
    return bits == 16 ? cg_flex16(bucket) : cg_op_quantize_(CG_QUANTIZE_FLEXPOINT, bits, bucket, 0.0f);
}
CG_API_ cg_op cg_rate(float bits) { return cg_op_quantize_(CG_QUANTIZE_RATE, 0, 0, bits); }
CG_API_ cg_op cg_step(float share) { return cg_op_quantize_(CG_QUANTIZE_STEP, 0, 0, share); }
CG_API_ cg_op cg_natural(void) { return cg_op_quantize_(CG_QUANTIZE_NATURAL, 0, 0, 0.0f); }
CG_API_ cg_op cg_dither(int bits, uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_DITHER, bits, bucket, 0.0f); }
CG_API_ cg_op cg_dynamic8(void) { return cg_op_quantize_(CG_QUANTIZE_DYNAMIC8, 0, 0, 0.0f); }
CG_API_ cg_op cg_e4m3(uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_E4M3, 0, bucket, 0.0f); }
CG_API_ cg_op cg_e5m2(uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_E5M2, 0, bucket, 0.0f); }
CG_API_ cg_op cg_fp8(void) { return cg_e4m3(512); }
CG_API_ cg_op cg_fp8_e5m2(void) { return cg_e5m2(512); }
CG_API_ cg_op cg_mxfp4(void) { return cg_op_quantize_(CG_QUANTIZE_MXFP4, 0, 0, 0.0f); }
CG_API_ cg_op cg_mxe4m3(void) { return cg_op_quantize_(CG_QUANTIZE_MXE4M3, 0, 0, 0.0f); }
CG_API_ cg_op cg_mxe5m2(void) { return cg_op_quantize_(CG_QUANTIZE_MXE5M2, 0, 0, 0.0f); }
CG_API_ cg_op cg_nvfp4(void) { return cg_op_quantize_(CG_QUANTIZE_NVFP4, 0, 0, 0.0f); }
CG_API_ cg_op cg_geometric(int bits, uint32_t bucket) {
    return cg_op_quantize_(CG_QUANTIZE_GEOMETRIC, bits, bucket, 0.0f);
}
CG_API_ cg_op cg_nf4(void) { return cg_op_quantize_(CG_QUANTIZE_NF4, 0, 64, 0.0f); }
CG_API_ cg_op cg_klevel(int bits, uint32_t bucket) {
    cg_op op = cg_coded(cg_minmax(bits, bucket), CG_CODE_HUFFMAN);
    op.quantize.flags = CG_FLAG_NORM;
    return op;
}

CG_API_ cg_op cg_clip(float s) { return cg_op_one_stage_(CG_SLOT_CLIP_, CG_CLIP_RMS, 0, 0, s); }

CG_API_ cg_op cg_topk(float ratio) { return cg_op_select_(CG_SELECT_TOPK, 0, ratio); }
CG_API_ cg_op cg_threshold(float magnitude) { return cg_op_select_(CG_SELECT_THRESHOLD, 0, magnitude); }
CG_API_ cg_op cg_dgc(float ratio) { return cg_op_select_(CG_SELECT_DGC, 0, ratio); }
CG_API_ cg_op cg_mstopk(float ratio) { return cg_op_select_(CG_SELECT_MSTOPK, 0, ratio); }
CG_API_ cg_op cg_sidco(float ratio) { return cg_op_select_(CG_SELECT_SIDCO, 0, ratio); }
CG_API_ cg_op cg_wangni(float ratio) { return cg_op_select_(CG_SELECT_WANGNI, 0, ratio); }
CG_API_ cg_op cg_wangnivar(float epsilon) { return cg_op_select_(CG_SELECT_WANGNIVAR, 0, epsilon); }
CG_API_ cg_op cg_chunked(float ratio, uint32_t chunk) { return cg_op_select_(CG_SELECT_CHUNKED, chunk, ratio); }
CG_API_ cg_op cg_blocks(uint32_t block) { return cg_op_select_(CG_SELECT_BLOCKS, block, 0.0f); }
CG_API_ cg_op cg_given(void) { return cg_op_select_(CG_SELECT_GIVEN, 0, 0.0f); }
CG_API_ cg_op cg_variance(float alpha) { return cg_op_select_(CG_SELECT_VARIANCE, 0, alpha); }
CG_API_ cg_op cg_bins(uint32_t bin) { return cg_op_select_(CG_SELECT_BINS, bin, 0.0f); }
CG_API_ cg_op cg_sides(float ratio) { return cg_op_select_(CG_SELECT_SIDES, 0, ratio); }
CG_API_ cg_op cg_adacomp(uint32_t bin) { return cg_then(cg_bins(bin), cg_efsign()); }
CG_API_ cg_op cg_adaq(float ratio) { return cg_then(cg_sides(ratio), cg_onebit(0)); }
CG_API_ cg_op cg_sbc(float ratio) {
    return cg_coded(cg_then(cg_op_select_(CG_SELECT_SIDE, 0, ratio), cg_op_quantize_(CG_QUANTIZE_MEAN, 0, 0, 0.0f)),
        CG_CODE_GOLOMB);
}
CG_API_ cg_op cg_stc(float ratio) { return cg_coded(cg_then(cg_topk(ratio), cg_efsign()), CG_CODE_GOLOMB); }
CG_API_ cg_op cg_qsparse(float ratio, int levels) { return cg_then(cg_topk(ratio), cg_levels(levels, 0)); }
CG_API_ cg_op cg_cocktail(float sampled, float ratio, int bits) {
    return cg_then(cg_then(cg_unscaled(cg_randk(sampled)), cg_topk(ratio)), cg_nearest(cg_absmax(bits, 512)));
}

CG_API_ cg_op cg_randk(float ratio) { return cg_op_one_stage_(CG_SLOT_SAMPLE_, CG_SAMPLE_RANDK, 0, 0, ratio); }
CG_API_ cg_op cg_permk(uint32_t workers) {
    return cg_op_one_stage_(CG_SLOT_SAMPLE_, CG_SAMPLE_PERMK, 0, workers, 0.0f);
}
CG_API_ cg_op cg_cyclic(uint32_t blocks) {
    return cg_op_one_stage_(CG_SLOT_SAMPLE_, CG_SAMPLE_CYCLIC, 0, blocks, 0.0f);
}
CG_API_ cg_op cg_rotate(int rounds) {
    return cg_op_one_stage_(CG_SLOT_TRANSFORM_, CG_TRANSFORM_ROTATE, rounds, 0, 0.0f);
}
CG_API_ cg_op cg_dct(void) { return cg_op_one_stage_(CG_SLOT_TRANSFORM_, CG_TRANSFORM_DCT, 0, 0, 0.0f); }
CG_API_ cg_op cg_srq(int bits) { return cg_then(cg_rotate(1), cg_minmax(bits, CG_ROTATE_BLOCK_)); }
CG_API_ cg_op cg_lloyd(float bits) { return cg_op_quantize_(CG_QUANTIZE_LLOYD, 0, 0, bits); }
/* bits are rounded to 1/32; below one bit a random sample comes first. Two rounds would leave a bias, see README. */
CG_API_ cg_op cg_eden(float bits) {
    float steps = (float)(int)(bits > 0.0f && bits <= 4.0f ? bits * 32.0f + 0.5f : 0.0f) / 32.0f;
    cg_op op = cg_then(cg_rotate(3), cg_lloyd(bits < 1.0f ? 1.0f : steps));
    if (!(bits > 0.0f && bits <= 4.0f)) return cg_op_invalid_();
    return bits < 1.0f ? cg_then(cg_randk(bits), op) : op;
}
CG_API_ cg_op cg_drive(void) { return cg_eden(1.0f); }
CG_API_ cg_op cg_demo_dct(float ratio) { return cg_then(cg_dct(), cg_chunked(ratio, 64)); }
/* cols is stored as a float, which holds integers up to 2^24 exactly. */
static cg_op cg_op_matrix_(int id, uint32_t rows, uint32_t cols, int r) {
    return cols > 16777216u ? cg_op_invalid_() : cg_op_one_stage_(CG_SLOT_TRANSFORM_, id, r, rows, (float)cols);
}
CG_API_ cg_op cg_lowrank(uint32_t rows, uint32_t cols, int rank) {
    return cg_op_matrix_(CG_TRANSFORM_LOWRANK, rows, cols, rank);
}
CG_API_ cg_op cg_atomo(uint32_t rows, uint32_t cols, int budget) {
    return cg_op_matrix_(CG_TRANSFORM_ATOMO, rows, cols, budget);
}

CG_API_ cg_op cg_mxfp8(void) { return cg_mxe4m3(); }
CG_API_ cg_op cg_mxfp8_e5m2(void) { return cg_mxe5m2(); }
CG_API_ cg_op cg_wangni_variance(float epsilon) { return cg_wangnivar(epsilon); }
CG_API_ cg_op cg_demo(float ratio) { return cg_demo_dct(ratio); }

CG_API_ cg_op cg_user(int id, int arg, uint32_t size, float value) {
    return id < CG_QUANTIZE_USER || id > 255 || arg < 0 || arg > 65535 ? cg_op_invalid_()
                                                                       : cg_op_quantize_(id, arg, size, value);
}
/* op with a flag of its stage in `slot`, by the name that the stage's row has for it; invalid if it has none. */
static cg_op cg_op_flagged_(cg_op op, unsigned slot, const char *name) {
    cg_stage *s = cg_op_stage_(&op, slot);
    const cg_stage_row_ *row = cg_stage_row_of_(slot, s);
    for (unsigned f = 0; f < 2; f++) {
        if (cg_is_left_out_(row) || !cg_same_text_(row->flag_names[f], name)) continue;
        s->flags = (uint8_t)(s->flags | 1u << f);
        return op;
    }
    return cg_op_invalid_();
}
CG_API_ cg_op cg_nearest(cg_op op) { return cg_op_flagged_(op, CG_SLOT_QUANTIZE_, "nearest"); }
CG_API_ cg_op cg_unbiased(cg_op op) { return cg_op_flagged_(op, CG_SLOT_QUANTIZE_, "unbiased"); }
CG_API_ cg_op cg_stochastic(cg_op op) { return cg_op_flagged_(op, CG_SLOT_QUANTIZE_, "stochastic"); }
CG_API_ cg_op cg_clipped(cg_op op) { return cg_op_flagged_(op, CG_SLOT_QUANTIZE_, "clip"); }
CG_API_ cg_op cg_maxnorm(cg_op op, uint32_t bucket) {
    op.quantize.size = bucket;
    return cg_op_flagged_(op, CG_SLOT_QUANTIZE_, "max");
}
CG_API_ cg_op cg_unscaled(cg_op op) { return cg_op_flagged_(op, CG_SLOT_SAMPLE_, "unscaled"); }
CG_API_ cg_op cg_private(cg_op op) {
    if (!op.transform.id || op.sample.id) op = cg_op_flagged_(op, CG_SLOT_SAMPLE_, "private");
    return op.transform.id ? cg_op_flagged_(op, CG_SLOT_TRANSFORM_, "private") : op;
}
CG_API_ cg_op cg_coded(cg_op op, cg_coding coding) {
    unsigned c = (unsigned)coding;
    if (c < CG_CODE_PACKED) op.code.id = (uint8_t)c;
    else op.code.arg = (uint16_t)(c > 255 ? 255 : c - CG_CODE_PACKED);
    return op;
}

CG_API_ cg_op cg_then(cg_op first, cg_op second) {
    const uint64_t k = first.k | second.k;
    const int is_of_selection = cg_has_(first.k ? &first : &second, CG_TAKES_K_);
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        cg_stage *a = cg_op_stage_(&first, slot);
        const cg_stage *b = cg_op_stage_const_(&second, slot);
        if (slot == CG_SLOT_CODE_) { /* holds two codes: either may come from either operator */
            if ((a->id && b->id) || (a->arg && b->arg)) return cg_op_invalid_();
            a->id = (uint8_t)(a->id | b->id);
            a->arg = (uint16_t)(a->arg | b->arg);
            continue;
        }
        /* a slot filled twice, or flags without a stage: cg_nearest() of what does not round */
        if (b->id ? a->id || a->flags : b->flags) return cg_op_invalid_();
        if (b->id) *a = *b;
    }
    /* two counts, or one that would pass from the sample to the selection or back */
    if ((first.k && second.k) || (k && is_of_selection != cg_has_(&first, CG_TAKES_K_))) return cg_op_invalid_();
    first.k = k;
    first.reserved |= second.reserved;
    return first;
}
