/* What a quantizer writes for k values. */
typedef struct cg_layout_ {
    const cg_quantizer_ *quantizer; /* NULL: a codec of the user's */
    const cg_codec *codec;
    unsigned bits_x32;   /* bits per value, times 32 */
    unsigned value_code; /* 0: packed; else pieces of variable size */
    cg_alphabet_ alphabet;
    size_t piece_values; /* values in one */
    uint64_t k, bucket_size, bucket_count, scale_bytes;
    uint64_t piece_table_bytes, codes_bytes; /* of all pieces; with a code code_bytes is the most */
} cg_layout_;

/* first is a multiple of 1024 */
CG_INLINE_ size_t cg_codes_offset_(const cg_layout_ *lay, size_t first) { return first / 256 * lay->bits_x32; }
CG_INLINE_ size_t cg_codes_words_(const cg_layout_ *lay, size_t many) {
    return (size_t)cg_word_bytes_((uint64_t)many * lay->bits_x32 / 32) / 4;
}

static cg_status cg_extra_check_(const cg_op *op, const cg_extra *side) {
    if (!side) return CG_OK;
    if (side->flags & ~(uint32_t)CG_DECODE_DIRECT) return CG_E_ARG;
    if (side->support_len && !side->support) return CG_E_ARG;
    if (side->aux && op && op->select.id != CG_SELECT_BINS && op->select.id != CG_SELECT_VARIANCE)
        return CG_E_UNSUPPORTED;
    if (side->support && op && op->select.id != CG_SELECT_GIVEN) return CG_E_UNSUPPORTED;
    if (side->scale && op &&
        (cg_is_user_codec_(&op->quantize) || !cg_quantizer_of_(&op->quantize)->scale_count ||
            op->quantize.id == CG_QUANTIZE_LLOYD))
        return CG_E_UNSUPPORTED;
    return CG_OK;
}
static cg_status cg_layout_make_(const cg_op *op, const cg_extra *side, uint64_t k, cg_layout_ *lay) {
    const cg_stage *q = &op->quantize;
    memset(lay, 0, sizeof *lay);
    lay->k = k;
    if (cg_is_user_codec_(q)) {
        for (size_t i = 0; side && side->codecs && i < side->codec_count; i++)
            if (side->codecs[i] && side->codecs[i]->id == q->id) lay->codec = side->codecs[i];
        return lay->codec ? CG_OK : CG_E_VERSION;
    }
    lay->quantizer = cg_quantizer_of_(q);
    if (!lay->quantizer) return CG_E_VERSION;
    lay->bits_x32 = cg_bits_x32_of_(lay->quantizer, q);
    /* no size: one bucket */
    lay->bucket_size = lay->quantizer->fixed_bucket ? lay->quantizer->fixed_bucket
        : q->size && q->size < k                    ? q->size
        : k                                         ? k
                                                    : 1;
    lay->bucket_count = lay->quantizer->needs == CG_NEEDS_NOTHING_ ? 0
                                                                   : k / lay->bucket_size + (k % lay->bucket_size != 0);
    lay->scale_bytes = cg_mul_sat_(
        lay->bucket_count, (uint64_t)lay->quantizer->scale_count * lay->quantizer->scale_width);
    lay->scale_bytes = cg_add_sat_(lay->scale_bytes, 3) & ~(uint64_t)3;
    lay->codes_bytes = cg_word_bytes_(cg_add_sat_(cg_mul_sat_(k / 32, lay->bits_x32), k % 32 * lay->bits_x32 / 32));
    lay->value_code = op->code.arg;
    if (lay->value_code) {
        lay->piece_values = cg_float_width_(q) ? CG_CHUNK_ : CG_PIECE_SYMBOLS_;
        if (!cg_float_width_(q)) cg_alphabet_of_(q, &lay->alphabet);
        lay->piece_table_bytes = 4 * (k / lay->piece_values + (k % lay->piece_values != 0));
    }
    return CG_OK;
}
