/* formats: encode and decode functions of quantizers with levels, small floats or a table of values

   Offers   CG_ENCODE_FN_ and CG_DECODE_FN_, the heads of such functions, and the functions that quantize/rows.h names
   Needs    base, kernels, quantize/scales
   Touches  nothing but its arguments
   What encode and decode require stands at cg_quantizer_. Symbols are a byte per value. */

#define CG_ENCODE_FN_(name)                                                                                 \
  static uint32_t name(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, cg_key_ key, \
      uint32_t position, const float *v, size_t n, uint8_t *out, double *lanes)
#define CG_DECODE_FN_(name)                                                                                   \
  static void name(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, const uint8_t *in, \
      size_t n, float *out, int stream)
#define CG_UNUSED_(a) (void)(a)

CG_ENCODE_FN_(cg_encode_levels_) {
    cg_levels_ q = cg_levels_make_(stage, scales);
    CG_UNUSED_(lanes);
    if (q.range > 0.0f) {
        q.inv_step = (float)(q.zero_symbol ? q.zero_symbol : q.max_symbol) / q.range;
    } else { /* cg_extra.scale may give a scale of 0 to any values: all become level 0 */
        q.prescale = 1.0f;
        q.encode_offset = 0.0f;
    }
    CG_KERNEL_(kernels, levels_encode(&q, key, position, v, n, out));
    return 0; /* the values have been measured */
}
CG_DECODE_FN_(cg_decode_levels_) {
    cg_levels_ q = cg_levels_make_(stage, scales);
    CG_KERNEL_(kernels, levels_decode(&q, in, n, out, stream));
}

/* flex16: integers of 16 bits times the scale, which cg_reduce needs for sums of levels. */
CG_ENCODE_FN_(cg_encode_steps16_) {
    const int tiny = cg_is_tiny_(scales[0]) && scales[0] > 0.0f;
    const float lift = tiny ? CG_POW2_100_ : 1.0f, inv = scales[0] > 0.0f ? 1.0f / cg_times_(scales[0], lift) : 0.0f;
    CG_UNUSED_(kernels);
    CG_UNUSED_(stage);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(lanes);
    for (size_t i = 0; i < n; i++) {
        float t = cg_times_(cg_times_(cg_load_(v, i), lift), inv);
        t = t < -32767.0f ? -32767.0f : t > 32767.0f ? 32767.0f : t;
        /* adding 1.5 * 2^23 rounds to the nearest integer, which then stands in the low bits */
        cg_put16_(out + 2 * i, cg_as_bits_(cg_plus_(t, 12582912.0f)) - 0x4b400000u + 32767u);
    }
    return 0;
}
CG_DECODE_FN_(cg_decode_steps16_) {
    CG_UNUSED_(kernels);
    CG_UNUSED_(stage);
    CG_UNUSED_(stream);
    for (size_t i = 0; i < n; i++)
        cg_store_(out, i, cg_saturate_(cg_times_((float)((int32_t)cg_get16_(in + 2 * i) - 32767), scales[0])));
}

/* Quantizers with a full scale: encode's scales[0] is not the bucket's scale but the factor that brings a value of
   that size to the full scale. The loop multiplies short buckets itself, a chunk of them at once, and passes a factor
   of 1. */
#define CG_E4M3_MAX_ 448.0f
#define CG_E5M2_MAX_ 57344.0f
/* of / scale, and 0 for a scale of 0. */
CG_INLINE_ float cg_ratio_or_zero_(float of, float scale) { return scale > 0.0f ? of / scale : 0.0f; }

/* A tiny scale is multiplied by 2^100, and the values by 2^-100, so that scale / 448 keeps its bits. */
static void cg_decode_fp8_(
    const cg_kernels_ *kernels, float full_scale, float scale, const uint8_t *in, size_t n, float *out, int stream) {
    const int tiny = cg_is_tiny_(scale);
    if (tiny) scale = cg_times_(scale, CG_POW2_100_);
    CG_KERNEL_(kernels, fp8_decode(in, n, scale / full_scale, full_scale > CG_E4M3_MAX_, out, stream && !tiny));
    for (size_t i = 0; tiny && i < n; i++) cg_store_(out, i, cg_times_(cg_load_(out, i), CG_POW2_MINUS_100_));
}
#define CG_FP8_(format, max)                                                                                        \
  CG_ENCODE_FN_(cg_encode_##format##_) {                                                                            \
    const int is_e5m2 = max > CG_E4M3_MAX_;                                                                         \
    CG_UNUSED_(lanes);                                                                                              \
    if (stage->flags & CG_FLAG_STOCHASTIC)                                                                          \
      CG_KERNEL_(                                                                                                   \
          kernels, fp8_stochastic(v, n, scales[0], is_e5m2 ? CG_SMALL_E5M2_ : CG_SMALL_E4M3_, key, position, out)); \
    else CG_KERNEL_(kernels, fp8_encode(v, n, scales[0], is_e5m2, out));                                            \
    return 0;                                                                                                       \
  }                                                                                                                 \
  CG_DECODE_FN_(cg_decode_##format##_) {                                                                            \
    CG_UNUSED_(stage);                                                                                              \
    cg_decode_fp8_(kernels, max, scales[0], in, n, out, stream);                                                    \
  }                                                                                                                 \
  CG_DECODE_FN_(cg_decode_mx_##format##_) {                                                                         \
    CG_UNUSED_(stage);                                                                                              \
    CG_KERNEL_(kernels, fp8_decode(in, n, scales[0], max > CG_E4M3_MAX_, out, stream));                             \
  }
CG_FP8_(e4m3, CG_E4M3_MAX_)
CG_FP8_(e5m2, CG_E5M2_MAX_)
#undef CG_FP8_
CG_ENCODE_FN_(cg_encode_mx4_) {
    cg_bucketizer_ thresholds;
    CG_UNUSED_(lanes);
    if (stage->flags & CG_FLAG_STOCHASTIC) {
        CG_KERNEL_(kernels, fp8_stochastic(v, n, scales[0], CG_SMALL_E2M1_, key, position, out));
        return 0;
    }
    thresholds.inv_scale = scales[0];
    thresholds.limit_count = 7;
    thresholds.sign_bit = 8;
    memcpy(thresholds.limit, cg_e2m1_limits_, sizeof thresholds.limit);
    CG_KERNEL_(kernels, bucketize(&thresholds, v, n, out, NULL, NULL));
    return 0;
}
CG_DECODE_FN_(cg_decode_mx4_) {
    float table[16];
    CG_UNUSED_(stage);
    for (int i = 0; i < 8; i++) {
        table[i] = cg_saturate_(cg_times_(cg_e2m1_values_[i], scales[0]));
        table[i + 8] = -table[i];
    }
    CG_KERNEL_(kernels, table_decode(table, in, n, out, stream));
}
/* NF4: quantiles of a normal distribution (QLoRA), and the limits between them, halfway. */
static const float cg_nf4_values_[16] = { -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
    -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f, 0.07958029955625534f,
    0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f,
    0.7229568362236023f, 1.0f };
static const float cg_nf4_limits_[15] = { -0.848096371f, -0.610632896f, -0.45999527f, -0.33967942f, -0.234607399f,
    -0.137911737f, -0.0455250181f, 0.0397901498f, 0.120255247f, 0.203521252f, 0.292013764f, 0.389312536f, 0.501663446f,
    0.64278692f, 0.861478448f };
CG_ENCODE_FN_(cg_encode_nf4_) {
    CG_UNUSED_(lanes);
    if (stage->flags & CG_FLAG_STOCHASTIC)
        CG_KERNEL_(kernels, nf4_stochastic(cg_nf4_values_, scales[0], key, position, v, n, out));
    else CG_KERNEL_(kernels, nf4_search(cg_nf4_limits_, scales[0], v, n, out));
    return 0;
}
CG_DECODE_FN_(cg_decode_nf4_) {
    float table[16];
    CG_UNUSED_(stage);
    for (int i = 0; i < 16; i++) table[i] = cg_times_(cg_nf4_values_[i], scales[0]);
    CG_KERNEL_(kernels, table_decode(table, in, n, out, stream));
}
/* geometric: 2^(bits-1) levels from lo to hi, each in the middle of its part of the logarithmic scale; bits 1..4. The
   roots are correctly rounded, so that the levels are the same everywhere. */
static int cg_geometric_levels_(const cg_stage *stage, const float *scales, float *level) {
    const int count = 1 << (stage->arg - 1);
    double ratio = scales[0] > 0.0f ? (double)scales[1] / (double)scales[0] : 1.0, at = (double)scales[0];
    for (int i = 1; i < count; i *= 2) ratio = cg_sqrt_(ratio); /* the count-th root */
    at *= cg_sqrt_(ratio);
    for (int i = 0; i < count; i++) {
        level[i] = cg_saturate64_(at);
        at *= ratio;
    }
    return count;
}
CG_ENCODE_FN_(cg_encode_geometric_) {
    cg_bucketizer_ thresholds;
    float level[8];
    const int count = cg_geometric_levels_(stage, scales, level);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(lanes);
    thresholds.inv_scale = 1.0f;
    thresholds.limit_count = count - 1;
    thresholds.sign_bit = (uint8_t)count;
    for (int i = 0; i + 1 < count; i++) thresholds.limit[i] = (float)(((double)level[i] + (double)level[i + 1]) * 0.5);
    CG_KERNEL_(kernels, bucketize(&thresholds, v, n, out, NULL, NULL));
    return 0;
}
CG_DECODE_FN_(cg_decode_geometric_) {
    float table[16] = { 0.0f }, level[8];
    const int count = cg_geometric_levels_(stage, scales, level);
    for (int i = 0; i < count; i++) {
        table[i] = level[i];
        table[count + i] = -level[i];
    }
    CG_KERNEL_(kernels, table_decode(table, in, n, out, stream));
}
CG_ENCODE_FN_(cg_encode_dynamic_) {
    CG_UNUSED_(stage);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(lanes);
    CG_KERNEL_(kernels, dynamic8_encode(v, n, scales[0], out));
    return 0;
}
CG_DECODE_FN_(cg_decode_dynamic_) {
    CG_UNUSED_(stage);
    CG_KERNEL_(kernels, dynamic8_decode(in, n, scales[0], out, stream));
}
CG_ENCODE_FN_(cg_encode_dither_) {
    cg_dither_ q;
    CG_UNUSED_(lanes);
    q.inv_scale = scales[0];
    q.bits = stage->arg;
    q.stochastic = !(stage->flags & CG_FLAG_NEAREST);
    CG_KERNEL_(kernels, dither_encode(&q, key, position, v, n, out));
    return 0;
}
CG_DECODE_FN_(cg_decode_dither_) { CG_KERNEL_(kernels, dither_decode(stage->arg, scales[0], in, n, out, stream)); }
CG_ENCODE_FN_(cg_encode_strom_) {
    CG_UNUSED_(scales);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(lanes);
    CG_KERNEL_(kernels, strom_encode(v, n, stage->value, out));
    return CG_KERNEL_(kernels, absmax_bits(v, n));
}
CG_DECODE_FN_(cg_decode_strom_) {
    float table[16] = { 0.0f };
    CG_UNUSED_(scales);
    table[0] = -stage->value;
    table[2] = stage->value;
    CG_KERNEL_(kernels, table_decode(table, in, n, out, stream));
}
CG_ENCODE_FN_(cg_encode_natural_) {
    CG_UNUSED_(scales);
    CG_UNUSED_(lanes);
    return CG_KERNEL_(kernels, natural_encode(v, n, key, position, !(stage->flags & CG_FLAG_NEAREST), out));
}
CG_DECODE_FN_(cg_decode_natural_) {
    CG_UNUSED_(stage);
    CG_UNUSED_(scales);
    CG_KERNEL_(kernels, natural_decode(in, n, out, stream));
}
/* mean: no codes at all, only the scale. */
CG_ENCODE_FN_(cg_encode_none_) {
    CG_UNUSED_(kernels);
    CG_UNUSED_(stage);
    CG_UNUSED_(scales);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(v);
    CG_UNUSED_(n);
    CG_UNUSED_(out);
    CG_UNUSED_(lanes);
    return 0;
}
CG_DECODE_FN_(cg_decode_mean_) {
    CG_UNUSED_(kernels);
    CG_UNUSED_(stage);
    CG_UNUSED_(in);
    CG_UNUSED_(stream);
    for (size_t i = 0; i < n; i++) cg_store_(out, i, scales[0]);
}
/* A bucket may start at any bit, so the signs are symbols, which the loop packs. */
CG_ENCODE_FN_(cg_encode_onebit_) {
    static const cg_bucketizer_ signs = { 0.0f, 0, { 0.0f }, 1 };
    CG_UNUSED_(stage);
    CG_UNUSED_(scales);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(lanes);
    CG_KERNEL_(kernels, bucketize(&signs, v, n, out, NULL, NULL));
    return 0;
}
CG_DECODE_FN_(cg_decode_onebit_) {
    float table[16] = { 0.0f };
    CG_UNUSED_(stage);
    table[0] = scales[1];
    table[1] = scales[0];
    CG_KERNEL_(kernels, table_decode(table, in, n, out, stream));
}
