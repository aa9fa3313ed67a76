/* stochastic: kernels that round to small floats and to the values of a table at random, so that the mean is kept

   Offers   half_stochastic, fp8_stochastic, nf4_stochastic
   Needs    base, random, table, the vector layer
   Touches  nothing but its arguments */

/* A format of floats with fewer bits than f32, as cg_fp8_format_ has it. */
typedef struct cg_minifloat_ {
    uint32_t dropped_bits;    /* mantissa bits that f32 has more */
    uint32_t min_normal_bits; /* the smallest normal value, as f32 bits */
    uint32_t max_code;        /* of the largest value */
    float inv_denormal;       /* 1 over the smallest denormal; 0: denormals of f32 are those of the format */
} cg_minifloat_;
enum { CG_SMALL_F16_, CG_SMALL_BF16_, CG_SMALL_E4M3_, CG_SMALL_E5M2_, CG_SMALL_E2M1_ };
CG_INLINE_ cg_minifloat_ cg_small_float_of_(int format) {
    static const cg_minifloat_ formats[] = { { 13, 0x38800000u, 0x7bff, 16777216.0f }, { 16, 0, 0x7f7f, 0.0f },
        { 20, 0x3c800000u, 0x7e, 512.0f }, { 21, 0x38800000u, 0x7b, 65536.0f }, { 22, 0x3f800000u, 7, 2.0f } };
    return formats[format];
}
/* The code of the magnitude with these bits, which rounds up if the hash h is small. A normal value: the bits that go
   are compared with as many of h, by a carry. Below, a number of steps k + part, which is exact: part is compared with
   24 bits of h. The one part of the code is 0 or the same for all where the other one counts. Magnitudes beyond the
   largest value become it. */
static uint32_t cg_small_float_round_(uint32_t m, uint32_t h, cg_minifloat_ q) {
    const uint32_t step_code = 0x800000u >> q.dropped_bits; /* of the smallest normal value */
    uint32_t code, normal;
    if (q.inv_denormal == 0.0f) code = (m + (h >> (32 - q.dropped_bits))) >> q.dropped_bits;
    else {
        const float steps = cg_times_(cg_as_float_(m < q.min_normal_bits ? m : q.min_normal_bits), q.inv_denormal),
                    part = cg_times_((float)(int32_t)(h >> 8), 5.9604644775390625e-8f);
        float whole = cg_minus_(cg_plus_(steps, 8388608.0f), 8388608.0f);
        whole = cg_minus_(whole, whole > steps ? 1.0f : 0.0f);
        normal = cg_max32_(m, q.min_normal_bits) - q.min_normal_bits + 0x800000u;
        normal = (normal + (h >> (32 - q.dropped_bits))) >> q.dropped_bits;
        code = (cg_as_bits_(cg_plus_(whole, 8388608.0f)) - 0x4b000000u) + (part < cg_minus_(steps, whole)) + normal -
            step_code;
    }
    return code < q.max_code ? code : q.max_code;
}
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_small_float_round8_(cg_vu_ m, cg_vu_ h, cg_minifloat_ q) {
    const cg_vu_ noise = cg_vu_shr_(h, 32 - q.dropped_bits);
    cg_vu_ code;
    if (q.inv_denormal == 0.0f) code = cg_vu_shr_(cg_vu_add_(m, noise), q.dropped_bits);
    else {
        const cg_vu_ least = cg_vu_set_(q.min_normal_bits);
        const cg_vf_ big = cg_vf_set_(8388608.0f),
                     steps = cg_vf_mul_(cg_vf_of_(cg_vu_min_(m, least)), cg_vf_set_(q.inv_denormal)),
                     rounded = cg_vf_sub_(cg_vf_add_(steps, big), big),
                     whole = cg_vf_sub_(
                         rounded, cg_vf_of_(cg_vu_and_(cg_vf_gt_(rounded, steps), cg_vu_of_(cg_vf_set_(1.0f)))));
        const cg_vu_ normal = cg_vu_add_(cg_vu_max_(m, least), cg_vu_set_(0x800000u - q.min_normal_bits));
        code = cg_vu_add_(cg_vu_shr_(cg_vu_add_(normal, noise), q.dropped_bits),
            cg_vu_add_(
                cg_vu_of_(cg_vf_add_(whole, big)), cg_vu_set_(0u - 0x4b000000u - (0x800000u >> q.dropped_bits))));
        /* comparisons are -1 where they hold */
        code = cg_vu_sub_(code, cg_vf_gt_(cg_vf_sub_(steps, whole), cg_vf_uniform_(h)));
    }
    return cg_vu_min_(code, cg_vu_set_(q.max_code));
}
#endif

/* half_stochastic: f16 or bf16 to the wire, 2 bytes each; returns absmax bits. */
static uint32_t cg_half_stochastic_scalar_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int is_bf16, uint8_t *out) {
    const cg_minifloat_ q = cg_small_float_of_(is_bf16 ? CG_SMALL_BF16_ : CG_SMALL_F16_);
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = cg_load_bits_(v, i), m = u & CG_ABS_MASK_;
        absmax_bits = cg_max32_(absmax_bits, m);
        cg_put16_(out + 2 * i,
            (u >> 16 & 0x8000u) | cg_small_float_round_(m, cg_noise_bits_(key, position + (uint32_t)i), q));
    }
    return absmax_bits;
}
#if CG_VECTOR_
CG_VECTOR_FN_ size_t cg_half_stochastic32_(
    const float *v, size_t n, cg_key_ key, uint32_t position, cg_minifloat_ q, uint8_t *out, cg_vu_ *absmax) {
    cg_vu_ t0 = cg_vu_set_(0), t1 = t0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        cg_vu_ x[4], noise[4];
        cg_prefetch32_(v, i, CG_AHEAD_);
        cg_vu_noise_(key, position + (uint32_t)i, noise);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) {
            const cg_vu_ u = cg_vu_floats_(v, i + 8 * j), m = cg_vu_abs_(u);
            if (j < 2) t0 = cg_vu_max_(t0, m);
            else t1 = cg_vu_max_(t1, m);
            x[j] = cg_vu_or_(
                cg_vu_and_(cg_vu_shr_(u, 16), cg_vu_set_(0x8000u)), cg_small_float_round8_(m, noise[j], q));
        }
        cg_vu_put16_(out + 2 * i, x[0], x[1]);
        cg_vu_put16_(out + 2 * i + 32, x[2], x[3]);
    }
    *absmax = cg_vu_max_(t0, t1);
    return i;
}
CG_VECTOR_FN_ uint32_t cg_half_stochastic_simd_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int is_bf16, uint8_t *out) {
    const size_t head = cg_noise_head_(1, position, n);
    uint32_t absmax_bits = cg_half_stochastic_scalar_(v, head, key, position, is_bf16, out);
    cg_vu_ absmax;
    size_t i;
    v = cg_at_(v, head);
    position += (uint32_t)head;
    out += 2 * head;
    n -= head;
    i = is_bf16 ? cg_half_stochastic32_(v, n, key, position, cg_small_float_of_(CG_SMALL_BF16_), out, &absmax)
                : cg_half_stochastic32_(v, n, key, position, cg_small_float_of_(CG_SMALL_F16_), out, &absmax);
    absmax_bits = cg_max32_(absmax_bits, cg_vu_hmax_(absmax));
    return cg_max32_(absmax_bits,
        cg_half_stochastic_scalar_(cg_at_(v, i), n - i, key, position + (uint32_t)i, is_bf16, out + 2 * i));
}
#endif

/* fp8_stochastic: v*inv_scale, rounded to f32 first, as E4M3, E5M2 or E2M1, a byte each with the sign in front. */
CG_INLINE_ uint32_t cg_small_sign_(int format, uint32_t u) {
    return format == CG_SMALL_E2M1_ ? u >> 28 & 8u : u >> 24 & 0x80u;
}
static void cg_fp8_stochastic_scalar_(
    const float *v, size_t n, float inv_scale, int format, cg_key_ key, uint32_t position, uint8_t *out) {
    const cg_minifloat_ q = cg_small_float_of_(format);
    for (size_t i = 0; i < n; i++) {
        const float f = cg_load_(v, i);
        const uint32_t m = cg_as_bits_(cg_times_(f, inv_scale)) & CG_ABS_MASK_,
                       code = cg_small_float_round_(m, cg_noise_bits_(key, position + (uint32_t)i), q);
        out[i] = (uint8_t)(cg_small_sign_(format, cg_as_bits_(f)) | code);
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ size_t cg_fp8_stochastic32_(
    const float *v, size_t n, float inv_scale, int format, cg_key_ key, uint32_t position, uint8_t *out) {
    const cg_minifloat_ q = cg_small_float_of_(format);
    const cg_vf_ inv = cg_vf_set_(inv_scale);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        cg_vu_ u[4], x[4], noise[4], signs;
        cg_prefetch32_(v, i, CG_AHEAD_);
        cg_vu_noise_(key, position + (uint32_t)i, noise);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) {
            u[j] = cg_vu_floats_(v, i + 8 * j);
            x[j] = cg_small_float_round8_(cg_vu_abs_(cg_vu_of_(cg_vf_mul_(cg_vf_of_(u[j]), inv))), noise[j], q);
        }
        signs = cg_vb_narrow_tops_(u[0], u[1], u[2], u[3]);
        if (format == CG_SMALL_E2M1_) signs = cg_vu_shr_(signs, 4); /* within each byte: no others are set */
        cg_vb_put_(out + i, cg_vu_or_(cg_vb_narrow_add_(x[0], x[1], x[2], x[3], 0), signs));
    }
    return i;
}
CG_VECTOR_FN_ void cg_fp8_stochastic_simd_(
    const float *v, size_t n, float inv_scale, int format, cg_key_ key, uint32_t position, uint8_t *out) {
    const size_t head = cg_noise_head_(1, position, n);
    size_t i;
    cg_fp8_stochastic_scalar_(v, head, inv_scale, format, key, position, out);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    out += head;
    n -= head;
    i = format == CG_SMALL_E4M3_   ? cg_fp8_stochastic32_(v, n, inv_scale, CG_SMALL_E4M3_, key, position, out)
        : format == CG_SMALL_E5M2_ ? cg_fp8_stochastic32_(v, n, inv_scale, CG_SMALL_E5M2_, key, position, out)
                                   : cg_fp8_stochastic32_(v, n, inv_scale, CG_SMALL_E2M1_, key, position, out);
    cg_fp8_stochastic_scalar_(cg_at_(v, i), n - i, inv_scale, format, key, position + (uint32_t)i, out + i);
}
#endif

/* nf4_stochastic: t = v*inv_scale, rounded, lies above value[i] and up to value[i + 1] of 16 ascending values; the
   symbol is i, or i + 1 with probability (t - value[i])/(value[i + 1] - value[i]). Below value[0] it is 0, above
   value[15] 15; a NaN gives 0. */
static void cg_nf4_stochastic_scalar_(
    const float *value, float inv_scale, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    float l[16]; /* a copy: symbols cannot alias it */
    memcpy(l, value, sizeof l);
    for (size_t i = 0; i < n; i++) {
        const float t = cg_times_(cg_load_(v, i), inv_scale),
                    u = cg_times_(
                        (float)(int32_t)(cg_noise_bits_(key, position + (uint32_t)i) >> 8), 5.9604644775390625e-8f);
        unsigned at = t > l[8] ? 8u : 0u; /* how many of l[1..14] t is above */
        at += t > l[at + 4] ? 4u : 0u;
        at += t > l[at + 2] ? 2u : 0u;
        at += at < 14 && t > l[at + 1] ? 1u : 0u;
        symbols[i] = (uint8_t)(at + (cg_times_(u, cg_minus_(l[at + 1], l[at])) < cg_minus_(t, l[at])));
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_nf4_stochastic_simd_(
    const float *value, float inv_scale, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    const size_t head = cg_noise_head_(1, position, n);
    const cg_vf_ inv = cg_vf_set_(inv_scale);
    cg_vf_ low, high, low_width, high_width;
    cg_search_tree_ tree;
    float limit[15], width[16];
    size_t i = 0;
    for (size_t j = 0; j < 15; j++) {
        limit[j] = j < 14 ? cg_load_(value, j + 1) : cg_as_float_(CG_INF_BITS_);
        width[j] = cg_minus_(cg_load_(value, j + 1), cg_load_(value, j));
    }
    width[15] = 0.0f;
    tree = cg_search_tree_make_(limit, 4);
    low = cg_vf_load_(value, 0);
    high = cg_vf_load_(value, 8);
    low_width = cg_vf_load_(width, 0);
    high_width = cg_vf_load_(width, 8);
    cg_nf4_stochastic_scalar_(value, inv_scale, key, position, v, head, symbols);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    symbols += head;
    n -= head;
    for (; i + 32 <= n; i += 32) {
        cg_vu_ x[4], noise[4];
        cg_prefetch32_(v, i, CG_AHEAD_);
        cg_vu_noise_(key, position + (uint32_t)i, noise);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) {
            const cg_vf_ t = cg_vf_mul_(cg_vf_load_(v, i + 8 * j), inv);
            const cg_vu_ at = cg_vu_sub_(cg_vu_set_(0), cg_search_(t, &tree, 4));
            const cg_vf_ part = cg_vf_mul_(cg_vf_uniform_(noise[j]), cg_vf_lookup16_(low_width, high_width, at));
            x[j] = cg_vu_sub_(at, cg_vf_gt_(cg_vf_sub_(t, cg_vf_lookup16_(low, high, at)), part));
        }
        cg_vb_put_(symbols + i, cg_vb_narrow_(x[0], x[1], x[2], x[3]));
    }
    cg_nf4_stochastic_scalar_(value, inv_scale, key, position + (uint32_t)i, cg_at_(v, i), n - i, symbols + i);
}
#endif
