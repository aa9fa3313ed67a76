/* plain: the plain formats f32, f16, bf16 and signs, and what a value code sees of a quantizer

   Offers   the functions of plain formats, cg_alphabet_of_, cg_float_width_, cg_value_code_fits_
   Needs    base, kernels, codes (symbols), stages, quantize/scales
   Touches  nothing
   Other headers may use: cg_bucket_dequantize_, cg_bucket_quantize_ */

/* Functions that only call a kernel. */
#define CG_ENCODE_PLAIN_(name, kernel)                                                                      \
  static uint32_t name(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, cg_key_ key, \
      uint32_t position, const float *v, size_t n, uint8_t *out, double *lanes) {                           \
    (void)stage;                                                                                            \
    (void)scales;                                                                                           \
    (void)key;                                                                                              \
    (void)position;                                                                                         \
    (void)lanes;                                                                                            \
    return CG_KERNEL_(kernels, kernel);                                                                     \
  }
CG_ENCODE_PLAIN_(cg_encode_f32_, copy(v, n, out))
CG_ENCODE_PLAIN_(cg_encode_sign_, sign_encode(v, n, out, NULL))
CG_ENCODE_PLAIN_(cg_encode_efsign_, sign_encode(v, n, out, lanes))
#undef CG_ENCODE_PLAIN_
static uint32_t cg_encode_f16_(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, cg_key_ key,
    uint32_t position, const float *v, size_t n, uint8_t *out, double *lanes) {
    (void)scales;
    (void)lanes;
    return stage->flags & CG_FLAG_STOCHASTIC ? CG_KERNEL_(kernels, half_stochastic(v, n, key, position, 0, out))
                                             : CG_KERNEL_(kernels, f16_encode(v, n, out));
}
static uint32_t cg_encode_bf16_(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, cg_key_ key,
    uint32_t position, const float *v, size_t n, uint8_t *out, double *lanes) {
    (void)scales;
    (void)lanes;
    return stage->flags & CG_FLAG_STOCHASTIC ? CG_KERNEL_(kernels, half_stochastic(v, n, key, position, 1, out))
                                             : CG_KERNEL_(kernels, bf16_encode(v, n, out));
}

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
CG_DECODE_PLAIN_(cg_decode_f16_, CG_KERNEL_(kernels, f16_decode(in, n, out, stream)))
CG_DECODE_PLAIN_(cg_decode_bf16_, CG_KERNEL_(kernels, bf16_decode(in, n, out, stream)))
CG_DECODE_PLAIN_(cg_decode_sign_, CG_KERNEL_(kernels, sign_decode(in, n, 1.0f, out, stream)))
CG_DECODE_PLAIN_(cg_decode_efsign_, CG_KERNEL_(kernels, sign_decode(in, n, scales[0], out, stream)))
#undef CG_DECODE_PLAIN_

/* The largest magnitude of n floats as they are stored in a packet, as bits. */
static uint32_t cg_stored_absmax_bits_f32_(const cg_kernels_ *kernels, const uint8_t *in, size_t n) {
#if CG_BIG_ENDIAN_
    uint32_t largest = 0;
    (void)kernels;
    for (size_t i = 0; i < n; i++) largest = cg_max32_(largest, cg_get32_(in + 4 * i) & CG_ABS_MASK_);
    return largest;
#else
    return CG_KERNEL_(kernels, absmax_bits((const float *)(const void *)in, n));
#endif
}
static uint32_t cg_stored_absmax_bits_16_(const cg_kernels_ *kernels, const uint8_t *in, size_t n) {
    return CG_KERNEL_(kernels, absmax16_bits(in, n));
}

/* The symbols that an entropy code sees of a quantizer; 0: it writes no symbols. max_symbol may be smaller than the
   bits allow, zero_symbol is the symbol of the value 0, or 0 if symbols have no middle. */
static int cg_alphabet_of_(const cg_stage *q, cg_alphabet_ *a) {
    const cg_quantizer_ *row = cg_quantizer_of_(q);
    int32_t levels;
    if (!row || row->output != CG_OUTPUT_SYMBOLS_) return 0;
    levels = row->levels ? row->levels(q) : 0;
    a->bits = cg_bits_x32_of_(row, q) / 32;
    a->max_symbol = (uint8_t)(levels ? 2u * (unsigned)levels : (1u << a->bits) - 1u);
    a->zero_symbol = (uint8_t)levels;
    return 1;
}
/* Bytes of a stored float whose exponents huffman can code; 0: another format. */
static unsigned cg_float_width_(const cg_stage *q) {
    const cg_quantizer_ *row = cg_quantizer_of_(q);
    return row && row->stage.traits & CG_CODES_EXPONENTS_ ? row->bits / 8u : 0;
}
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
    const cg_key_ unused = { 0, 0, 0 }; /* no noise where rounding is to nearest */
    cg_quantizer_of_(stage)->encode(kernels, stage, &scale, unused, 0, v, n, codes, NULL);
}
CG_OFFERED_ void cg_bucket_dequantize_(
    const cg_kernels_ *kernels, const cg_stage *stage, float scale, const uint8_t *codes, size_t n, float *out) {
    cg_quantizer_of_(stage)->decode(kernels, stage, &scale, codes, n, out, 0);
}
