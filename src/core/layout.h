/* layout: how the values of a packet are laid out, and the check of cg_extra

   Offers   cg_layout_, cg_layout_make_, offsets of codes, cg_extra_check_
   Needs    base, codes (symbols), stages, quantize
   Touches  nothing but its arguments
   Other headers may use: cg_extra_check_
   The value section is scales, piece table, codes. Without a value code, codes have a fixed number of bits per value,
   so that every chunk has its place. */

typedef struct cg_layout_ {
    const cg_quantizer_ *quantizer; /* NULL: a user codec, and then all below but k is 0 */
    const cg_codec *codec;          /* NULL: no user codec */
    unsigned bits_x32;              /* bits per value, times 32 */
    unsigned value_code;            /* CG_VALUE_CODE_*; 0: packed, else pieces of variable size */
    cg_alphabet_ alphabet;          /* with a value code, unless floats are coded */
    size_t piece_values;            /* values in one piece; the last may have fewer */
    uint64_t k;                     /* values */
    uint64_t bucket_size;           /* values that share scales; at least 1 */
    uint64_t bucket_count;          /* 0 if the quantizer needs nothing of a bucket */
    uint64_t scale_bytes, piece_table_bytes;
    uint64_t vector_bytes; /* of the scales: a float that all values share, before them */
    uint64_t codes_bytes;  /* of the codes; with a value code, their maximum */
} cg_layout_;
static int cg_is_coded_(const cg_layout_ *lay) { return cg_builds_value_codes_() && lay->value_code; }

/* Bytes from the start of the codes to value `first`, a multiple of 1024; packed only. */
CG_INLINE_ size_t cg_codes_offset_(const cg_layout_ *lay, size_t first) { return first / 256 * lay->bits_x32; }
/* u32 words of `many` packed values. */
CG_INLINE_ size_t cg_codes_words_(const cg_layout_ *lay, size_t many) {
    return (size_t)cg_word_bytes_((uint64_t)many * lay->bits_x32 / 32) / 4;
}

/* Does the operator know what to do with what the caller passed beside? op NULL: only what holds for any operator. */
static cg_status cg_extra_check_(const cg_op *op, const cg_extra *extra) {
    if (!extra) return CG_OK;
    if (extra->flags & ~(uint32_t)CG_DECODE_DIRECT) return CG_E_ARG; /* also what the library sets for itself */
    if ((extra->support_len && !extra->support) || extra->reserved32) return CG_E_ARG;
    if (!cg_builds_segments_() && extra->segments) return CG_E_VERSION;
    if (!op) return CG_OK;
    if ((extra->aux && !cg_has_(op, CG_NEEDS_AUX_)) || (extra->support && !cg_has_(op, CG_NEEDS_SUPPORT_)))
        return CG_E_UNSUPPORTED;
    if (extra->scale &&
        (cg_has_(op, CG_IS_USER_CODEC_ | CG_OWNS_SCALES_) || !cg_quantizer_of_(&op->quantize)->scale_count))
        return CG_E_UNSUPPORTED;
    return CG_OK;
}
/* The layout of k values. op has passed cg_op_check_. CG_E_VERSION: extra does not have the user codec. Sizes that
   overflow are CG_TOO_LARGE_. */
static cg_status cg_layout_make_(const cg_op *op, const cg_extra *extra, uint64_t k, cg_layout_ *lay) {
    const cg_stage *q = &op->quantize;
    memset(lay, 0, sizeof *lay);
    lay->k = k;
    if (cg_is_user_codec_(q)) {
        for (size_t i = 0; extra && extra->codecs && i < extra->codec_count; i++)
            if (extra->codecs[i] && extra->codecs[i]->id == q->id) lay->codec = extra->codecs[i];
        return lay->codec ? CG_OK : CG_E_VERSION;
    }
    lay->quantizer = cg_quantizer_of_(q);
    if (!lay->quantizer) return CG_E_VERSION;
    lay->bits_x32 = cg_bits_x32_of_(lay->quantizer, q);
    /* a size of 0 means one bucket of all values */
    lay->bucket_size = lay->quantizer->fixed_bucket ? lay->quantizer->fixed_bucket
        : q->size && q->size < k                    ? q->size
        : k                                         ? k
                                                    : 1;
    lay->bucket_count = lay->quantizer->needs == CG_NEEDS_NOTHING_ ? 0 : cg_quotient_up_(k, lay->bucket_size);
    lay->scale_bytes = cg_mul_sat_(
        lay->bucket_count, (uint64_t)lay->quantizer->scale_count * lay->quantizer->scale_width);
    if (k && lay->quantizer->byte_scale && lay->quantizer->byte_scale->vector_scale) lay->vector_bytes = 4;
    lay->scale_bytes = cg_add_sat_(lay->scale_bytes, lay->vector_bytes);
    lay->scale_bytes = cg_add_sat_(lay->scale_bytes, 3) & ~(uint64_t)3;
    lay->codes_bytes = cg_word_bytes_(cg_add_sat_(cg_mul_sat_(k / 32, lay->bits_x32), k % 32 * lay->bits_x32 / 32));
    lay->value_code = op->code.arg;
    if (lay->quantizer->output == CG_OUTPUT_LEVELS_) {
        const uint64_t promise = lay->quantizer->promise(q, k);
        lay->value_code = CG_VALUE_CODE_RANS_;
        lay->piece_values = CG_RANS_PIECE_;
        lay->piece_table_bytes = cg_word_bytes_(cg_mul_sat_(16, cg_rans_pieces_(k)));
        lay->codes_bytes = promise
            ? cg_max64_(promise, lay->scale_bytes + lay->piece_table_bytes) - lay->scale_bytes - lay->piece_table_bytes
            : cg_rans_codes_bound_(k, lay->bits_x32 / 32);
    } else if (lay->value_code) {
        lay->piece_values = cg_float_width_(q) ? CG_CHUNK_ : CG_PIECE_SYMBOLS_;
        if (!cg_float_width_(q)) cg_alphabet_of_(q, &lay->alphabet);
        lay->piece_table_bytes = 4 * (k / lay->piece_values + (k % lay->piece_values != 0));
    }
    return CG_OK;
}
