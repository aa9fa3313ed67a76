/* rows: the table of quantizers, with the plain formats f32, f16, bf16 and signs

   Offers   cg_quantizer_of_, cg_bits_x32_of_, cg_alphabet_of_, cg_float_width_, cg_value_code_fits_
   Needs    base, kernels, codes (symbols), stages, quantize/scales, quantize/formats, quantize/lloyd
   Touches  nothing
   Other headers may use: cg_bucket_dequantize_, cg_bucket_quantize_
   A new quantizer is a row here, a row in stages, and functions for what it shares with no other row. */

/* Functions that only call a kernel. */
#define CG_ENCODE_PLAIN_(name, kernel)                                                                      \
  static uint32_t name(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, cg_key_ key, \
      uint32_t position, const float *v, size_t n, uint8_t *out, double *lanes) {                           \
    (void)stage;                                                                                            \
    (void)scales;                                                                                           \
    (void)key;                                                                                              \
    (void)position;                                                                                         \
    (void)lanes;                                                                                            \
    return kernels->kernel;                                                                                 \
  }
CG_ENCODE_PLAIN_(cg_encode_f32_, copy(v, n, out))
CG_ENCODE_PLAIN_(cg_encode_f16_, f16_encode(v, n, out))
CG_ENCODE_PLAIN_(cg_encode_bf16_, bf16_encode(v, n, out))
CG_ENCODE_PLAIN_(cg_encode_sign_, sign_encode(v, n, out, NULL))
CG_ENCODE_PLAIN_(cg_encode_efsign_, sign_encode(v, n, out, lanes))
#undef CG_ENCODE_PLAIN_

#define CG_DECODE_PLAIN_(name, statement)                                                                     \
  static void name(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, const uint8_t *in, \
      size_t n, float *out, int stream) {                                                                     \
    (void)kernels;                                                                                            \
    (void)stage;                                                                                              \
    (void)scales;                                                                                             \
    (void)stream;                                                                                             \
    statement;                                                                                                \
  }
CG_DECODE_PLAIN_(cg_decode_f32_, for (size_t i = 0; i < n; i++) cg_store_(out, i, cg_as_float_(cg_get32_(in + 4 * i))))
CG_DECODE_PLAIN_(cg_decode_f16_, kernels->f16_decode(in, n, out, stream))
CG_DECODE_PLAIN_(cg_decode_bf16_, kernels->bf16_decode(in, n, out, stream))
CG_DECODE_PLAIN_(cg_decode_sign_, kernels->sign_decode(in, n, 1.0f, out, stream))
CG_DECODE_PLAIN_(cg_decode_efsign_, kernels->sign_decode(in, n, scales[0], out, stream))
#undef CG_DECODE_PLAIN_

/* The largest magnitude of n floats as they are stored in a packet, as bits. */
static uint32_t cg_stored_absmax_bits_f32_(const cg_kernels_ *kernels, const uint8_t *in, size_t n) {
#if CG_BIG_ENDIAN_
    uint32_t largest = 0;
    (void)kernels;
    for (size_t i = 0; i < n; i++) largest = cg_max32_(largest, cg_get32_(in + 4 * i) & CG_ABS_MASK_);
    return largest;
#else
    return kernels->absmax_bits((const float *)(const void *)in, n);
#endif
}
static uint32_t cg_stored_absmax_bits_16_(const cg_kernels_ *kernels, const uint8_t *in, size_t n) {
    return kernels->absmax16_bits(in, n);
}

/* bytes of a stored scale */
#define CG_SCALE_F32_ 4
#define CG_SCALE_E8M0_ 1
/* In the order of cg_quantizer_'s fields. */
static const cg_quantizer_ cg_quantizers_[] = {
    { 0, CG_NEEDS_NOTHING_, 0, CG_SCALE_F32_, 32, CG_OUTPUT_PACKED_, 0, NULL, NULL, NULL, NULL, cg_encode_f32_, NULL,
        cg_decode_f32_, cg_stored_absmax_bits_f32_, CG_INF_BITS_ },
    { CG_QUANTIZE_F16, CG_NEEDS_NOTHING_, 0, CG_SCALE_F32_, 16, CG_OUTPUT_PACKED_, 0, NULL, NULL, NULL, NULL,
        cg_encode_f16_, NULL, cg_decode_f16_, cg_stored_absmax_bits_16_, 0x7c00 },
    { CG_QUANTIZE_BF16, CG_NEEDS_NOTHING_, 0, CG_SCALE_F32_, 16, CG_OUTPUT_PACKED_, 0, NULL, NULL, NULL, NULL,
        cg_encode_bf16_, NULL, cg_decode_bf16_, cg_stored_absmax_bits_16_, 0x7f80 },
    { CG_QUANTIZE_NATURAL, CG_NEEDS_NOTHING_, 0, CG_SCALE_F32_, 9, CG_OUTPUT_PACKED_, 0, NULL, NULL, NULL, NULL,
        cg_encode_natural_, NULL, cg_decode_natural_, NULL, 0 },
    { CG_QUANTIZE_STROM, CG_NEEDS_NOTHING_, 0, CG_SCALE_F32_, 2, CG_OUTPUT_SYMBOLS_, 0, NULL, NULL, NULL, NULL,
        cg_encode_strom_, NULL, cg_decode_strom_, NULL, 0 },
    { CG_QUANTIZE_SIGN, CG_NEEDS_NOTHING_, 0, CG_SCALE_F32_, 1, CG_OUTPUT_PACKED_, 0, NULL, NULL, NULL, NULL,
        cg_encode_sign_, NULL, cg_decode_sign_, NULL, 0 },
    { CG_QUANTIZE_EFSIGN, CG_NEEDS_SUM_AFTERWARDS_, 1, CG_SCALE_F32_, 1, CG_OUTPUT_PACKED_, 0, NULL, NULL,
        cg_legal_magnitude_, NULL, cg_encode_efsign_, NULL, cg_decode_efsign_, NULL, 0 },
#define CG_ROW_(id, scales, width, bits, output, bucket, measure, set, legal, full_scale, encode, rescale, decode)    \
  {                                                                                                                   \
    id, CG_NEEDS_BUCKET_STATS_, scales, width, bits, output, bucket, cg_measure_##measure##_, cg_set_scales_##set##_, \
        cg_legal_##legal##_, full_scale, cg_encode_##encode##_, rescale, cg_decode_##decode##_, NULL, 0               \
  }
    CG_ROW_(CG_QUANTIZE_ABSMAX, 1, CG_SCALE_F32_, 0, CG_OUTPUT_SYMBOLS_, 0, absmax, absmax, magnitude, NULL, levels,
        NULL, levels),
    CG_ROW_(CG_QUANTIZE_TERNGRAD, 1, CG_SCALE_F32_, 2, CG_OUTPUT_SYMBOLS_, 0, ternary, ternary, magnitude, NULL, levels,
        NULL, levels),
    CG_ROW_(CG_QUANTIZE_MINMAX, 2, CG_SCALE_F32_, 0, CG_OUTPUT_SYMBOLS_, 0, range, range, range, NULL, levels, NULL,
        levels),
    CG_ROW_(CG_QUANTIZE_LEVELS, 1, CG_SCALE_F32_, 0, CG_OUTPUT_SYMBOLS_, 0, norm, norm, magnitude, NULL, levels, NULL,
        levels),
    CG_ROW_(CG_QUANTIZE_FLEXPOINT, 1, CG_SCALE_F32_, 0, CG_OUTPUT_SYMBOLS_, 0, absmax, pow2, magnitude, NULL, levels,
        NULL, levels),
    CG_ROW_(CG_QUANTIZE_FLEX16, 1, CG_SCALE_F32_, 16, CG_OUTPUT_PACKED_, 0, absmax, pow2, magnitude, NULL, steps16,
        NULL, steps16),
    CG_ROW_(CG_QUANTIZE_TRITS, 1, CG_SCALE_F32_, 2, CG_OUTPUT_SYMBOLS_, 0, absmax, threelc, magnitude, NULL, levels,
        NULL, levels),
    CG_ROW_(CG_QUANTIZE_ONEBIT, 2, CG_SCALE_F32_, 1, CG_OUTPUT_SYMBOLS_, 0, signed_sums, signed_means, finite2, NULL,
        onebit, NULL, onebit),
    CG_ROW_(
        CG_QUANTIZE_MEAN, 1, CG_SCALE_F32_, 0, CG_OUTPUT_PACKED_, 0, signed_sums, mean, finite, NULL, none, NULL, mean),
    CG_ROW_(CG_QUANTIZE_DITHER, 1, CG_SCALE_F32_, 0, CG_OUTPUT_SYMBOLS_, 0, norm, norm, magnitude, cg_full_scale_one_,
        dither, NULL, dither),
    CG_ROW_(CG_QUANTIZE_DYNAMIC8, 1, CG_SCALE_F32_, 8, CG_OUTPUT_SYMBOLS_, 0, absmax, absmax, magnitude,
        cg_full_scale_one_, dynamic, NULL, dynamic),
    CG_ROW_(CG_QUANTIZE_E4M3, 1, CG_SCALE_F32_, 8, CG_OUTPUT_SYMBOLS_, 0, absmax, absmax, magnitude, cg_full_scale_fp8_,
        fp8, NULL, fp8),
    CG_ROW_(CG_QUANTIZE_E5M2, 1, CG_SCALE_F32_, 8, CG_OUTPUT_SYMBOLS_, 0, absmax, absmax, magnitude, cg_full_scale_fp8_,
        fp8, NULL, fp8),
    CG_ROW_(CG_QUANTIZE_MXFP4, 1, CG_SCALE_E8M0_, 4, CG_OUTPUT_SYMBOLS_, 32, absmax, mx, magnitude, cg_full_scale_one_,
        mx4, NULL, mx4),
    CG_ROW_(CG_QUANTIZE_MXE4M3, 1, CG_SCALE_E8M0_, 8, CG_OUTPUT_SYMBOLS_, 32, absmax, mx, magnitude, cg_full_scale_one_,
        fp8, NULL, mx8),
    CG_ROW_(CG_QUANTIZE_MXE5M2, 1, CG_SCALE_E8M0_, 8, CG_OUTPUT_SYMBOLS_, 32, absmax, mx, magnitude, cg_full_scale_one_,
        fp8, NULL, mx8),
    CG_ROW_(CG_QUANTIZE_NF4, 1, CG_SCALE_F32_, 4, CG_OUTPUT_SYMBOLS_, 0, absmax, absmax, magnitude, cg_full_scale_one_,
        nf4, NULL, nf4),
    CG_ROW_(CG_QUANTIZE_LLOYD, 1, CG_SCALE_F32_, 0, CG_OUTPUT_PACKED_, CG_ROTATE_BLOCK_, norm, l2norm, magnitude, NULL,
        lloyd, cg_rescale_lloyd_, lloyd),
#undef CG_ROW_
};
/* The row of a quantize stage; NULL for a user codec or an unknown id. */
static const cg_quantizer_ *cg_quantizer_of_(const cg_stage *q) {
    for (size_t i = 0; i < sizeof cg_quantizers_ / sizeof cg_quantizers_[0]; i++)
        if (cg_quantizers_[i].id == q->id) return &cg_quantizers_[i];
    return NULL;
}
/* Bits per value, times 32. */
static unsigned cg_bits_x32_of_(const cg_quantizer_ *row, const cg_stage *q) {
    unsigned bits = 0;
    if (row->id == CG_QUANTIZE_LLOYD) return (unsigned)(q->value * 32.0f);
    if (row->id == CG_QUANTIZE_MEAN) return 0;
    if (row->id == CG_QUANTIZE_LEVELS) {
        while (1u << bits < 2u * q->arg + 1u) bits++;
        return 32 * bits;
    }
    return 32u * (row->bits ? row->bits : q->arg);
}
/* The symbols that an entropy code sees of a quantizer; 0: it writes no symbols. max_symbol may be smaller than the
   bits allow, zero_symbol is the symbol of the value 0, or 0 if symbols have no middle. */
static int cg_alphabet_of_(const cg_stage *q, cg_alphabet_ *a) {
    const cg_quantizer_ *row = cg_is_user_codec_(q) ? NULL : cg_quantizer_of_(q);
    if (!row || row->output != CG_OUTPUT_SYMBOLS_) return 0;
    a->bits = cg_bits_x32_of_(row, q) / 32;
    a->max_symbol = (uint8_t)((1u << a->bits) - 1u);
    a->zero_symbol = 0;
    if (row->encode == cg_encode_levels_) {
        float scales[2] = { 1.0f, 1.0f };
        cg_levels_ grid = cg_levels_make_(q, scales);
        a->max_symbol = (uint8_t)grid.max_symbol;
        a->zero_symbol = (uint8_t)grid.zero_symbol;
    } else if (q->id == CG_QUANTIZE_STROM) {
        a->max_symbol = 2;
        a->zero_symbol = 1;
    }
    return 1;
}
/* Bytes of a stored float whose exponents huffman can code; 0: another format. */
static unsigned cg_float_width_(const cg_stage *q) { return q->id == 0 ? 4 : q->id == CG_QUANTIZE_BF16 ? 2 : 0; }
/* Can the value code of op carry what its quantizer writes? */
static int cg_value_code_fits_(const cg_op *op) {
    cg_alphabet_ a;
    if (op->code.arg == CG_CODE_HUFFMAN - CG_CODE_PACKED && cg_float_width_(&op->quantize)) return 1;
    return cg_alphabet_of_(&op->quantize, &a) && cg_code_fits_alphabet_(op->code.arg, &a);
}
/* One bucket by itself, for other headers that store values as codes. The stage must round to nearest, have one scale
   and leave a byte per value (absmax:8:B:nearest): codes has n bytes. Values must be finite; a magnitude above the
   scale is stored as the scale. */
CG_OFFERED_ void cg_bucket_quantize_(
    const cg_kernels_ *kernels, const cg_stage *stage, float scale, const float *v, size_t n, uint8_t *codes) {
    const cg_key_ unused = { 0, 0 }; /* no noise where rounding is to nearest */
    cg_quantizer_of_(stage)->encode(kernels, stage, &scale, unused, 0, v, n, codes, NULL);
}
CG_OFFERED_ void cg_bucket_dequantize_(
    const cg_kernels_ *kernels, const cg_stage *stage, float scale, const uint8_t *codes, size_t n, float *out) {
    cg_quantizer_of_(stage)->decode(kernels, stage, &scale, codes, n, out, 0);
}
