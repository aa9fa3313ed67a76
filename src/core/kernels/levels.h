/* levels: kernels that write sign bits and the symbols of a uniform grid

   Offers   sign_encode, levels_encode
   Needs    base, random, table, the vector layer
   Touches  nothing but its arguments */

/* sign_encode: bit i % 8 of out[i / 8] is 1 where v[i] < 0 (so 0 for -0 and NaN), bits after the last are 0. Adds
   |v[i]| to lanes[i % 16] unless lanes is NULL; to sum up a longer vector, all calls but the last have n % 16 == 0.
   Returns absmax bits; with lanes, SIMD versions may return less, but CG_INF_BITS_ or more just where they should. */
static uint32_t cg_sign_encode_scalar_(const float *v, size_t n, uint8_t *out, double *lanes) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        uint32_t m = cg_as_bits_(f) & CG_ABS_MASK_;
        absmax_bits = cg_max32_(absmax_bits, m);
        if (lanes) lanes[i % 16] += (double)cg_as_float_(m);
        if (i % 8 == 0) out[i / 8] = 0;
        out[i / 8] = (uint8_t)(out[i / 8] | (unsigned)(f < 0.0f) << i % 8);
    }
    return absmax_bits;
}
#if CG_VECTOR_
/* The first n / 32 * 32 values; returns how many. sums: adds to s, and leaves *absmax 0: a NaN or Inf shows in the sum
   of magnitudes, so that no maximum is needed beside it. */
CG_VECTOR_FN_ size_t cg_sign_encode32_(const float *v, size_t n, uint8_t *out, cg_vu_ *absmax, cg_vd_ *s, int sums) {
    cg_vu_ t0 = cg_vu_set_(0), t1 = t0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        cg_vu_ a = cg_vu_floats_(v, i), b = cg_vu_floats_(v, i + 8), c = cg_vu_floats_(v, i + 16),
               d = cg_vu_floats_(v, i + 24);
        cg_prefetch32_(v, i, CG_AHEAD_);
        cg_put32_(out + i / 8,
            cg_vb_mask_(
                cg_vb_narrow_signed_(cg_vu_negative_(a), cg_vu_negative_(b), cg_vu_negative_(c), cg_vu_negative_(d))));
        a = cg_vu_abs_(a);
        b = cg_vu_abs_(b);
        c = cg_vu_abs_(c);
        d = cg_vu_abs_(d);
        if (sums) {
            cg_lanes_add_(s, cg_vf_of_(a));
            cg_lanes_add_(s + 2, cg_vf_of_(b));
            cg_lanes_add_(s, cg_vf_of_(c));
            cg_lanes_add_(s + 2, cg_vf_of_(d));
        } else {
            t0 = cg_vu_max_(t0, cg_vu_max_(a, b));
            t1 = cg_vu_max_(t1, cg_vu_max_(c, d));
        }
    }
    *absmax = cg_vu_max_(t0, t1);
    return i;
}
CG_VECTOR_FN_ uint32_t cg_sign_encode_simd_(const float *v, size_t n, uint8_t *out, double *lanes) {
    cg_vu_ absmax;
    cg_vd_ s[4];
    uint32_t absmax_bits;
    size_t i;
    if (lanes) {
        double lane_total = 0.0;
        cg_lanes_load_(s, lanes);
        i = cg_sign_encode32_(v, n, out, &absmax, s, 1);
        cg_lanes_store_(lanes, s);
        for (int j = 0; j < 16; j++) lane_total += lanes[j];
        absmax_bits = lane_total < 1.7e308 ? 0 : CG_INF_BITS_; /* false for NaN as well */
    } else {
        i = cg_sign_encode32_(v, n, out, &absmax, NULL, 0);
        absmax_bits = cg_vu_hmax_(absmax);
    }
    return i < n ? cg_max32_(absmax_bits, cg_sign_encode_scalar_(cg_at_(v, i), n - i, out + i / 8, lanes))
                 : absmax_bits;
}
#endif

/* levels_encode: symbol = t rounded to nearest even + zero_symbol, kept within [0, max_symbol], where
   t = (v*prescale - encode_offset)*inv_step, each operation rounded, plus cg_noise_ if stochastic. Values of the grid
   keep |t| below 2^9, so that adding 1.5*2^23 rounds; others are clamped. An Inf or NaN gives any symbol. */
CG_INLINE_ uint8_t cg_level_encode_(const cg_levels_ *q, float v, float noise) {
    float t = cg_times_(cg_minus_(cg_times_(v, q->prescale), q->encode_offset), q->inv_step);
    int32_t level;
    if (q->stochastic) t = cg_plus_(t, noise);
    t = t < -1024.0f ? -1024.0f : t > 1024.0f ? 1024.0f : t;
    level = (int32_t)(cg_as_bits_(cg_plus_(t, 12582912.0f)) - 0x4b400000u) + q->zero_symbol;
    return (uint8_t)(level < 0 ? 0 : level > q->max_symbol ? q->max_symbol : level);
}
static void cg_levels_encode_scalar_(
    const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    for (size_t i = 0; i < n; i++)
        symbols[i] = cg_level_encode_(q, cg_load_(v, i), q->stochastic ? cg_noise_(key, position + (uint32_t)i) : 0.0f);
}
#if CG_VECTOR_
/* Levels of eight values with hashes h. prescale, subtract: whether these steps change anything. */
CG_VECTOR_FN_ cg_vu_ cg_levels_encode8_(
    cg_vf_ t, cg_vu_ h, const cg_levels_ *q, int stochastic, int prescale, int subtract) {
    if (prescale) t = cg_vf_mul_(t, cg_vf_set_(q->prescale));
    if (subtract) t = cg_vf_sub_(t, cg_vf_set_(q->encode_offset));
    t = cg_vf_mul_(t, cg_vf_set_(q->inv_step));
    if (stochastic) t = cg_vf_add_(t, cg_vf_mul_(cg_vf_int_(h), cg_vf_set_(2.3283064365386963e-10f)));
    return cg_vu_round_(t);
}
CG_VECTOR_FN_ size_t cg_levels_encode32_(const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n,
    uint8_t *symbols, int stochastic, int prescale, int subtract) {
    const cg_vu_ max_symbol = cg_vb_set_((unsigned)q->max_symbol);
    const int zero_symbol = q->zero_symbol;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        cg_vu_ h[4], a, b, c, d;
        h[0] = h[1] = h[2] = h[3] = cg_vu_set_(0);
        cg_prefetch32_(v, i, CG_CHUNK_); /* this chunk was measured before and is in L1; the next one is not */
        if (stochastic) cg_vu_noise_(key, position + (uint32_t)i, h);
        a = cg_levels_encode8_(cg_vf_load_(v, i), h[0], q, stochastic, prescale, subtract);
        b = cg_levels_encode8_(cg_vf_load_(v, i + 8), h[1], q, stochastic, prescale, subtract);
        c = cg_levels_encode8_(cg_vf_load_(v, i + 16), h[2], q, stochastic, prescale, subtract);
        d = cg_levels_encode8_(cg_vf_load_(v, i + 24), h[3], q, stochastic, prescale, subtract);
        cg_vb_put_(symbols + i, cg_vb_min_(cg_vb_narrow_add_(a, b, c, d, zero_symbol), max_symbol));
    }
    return i;
}
CG_VECTOR_FN_ void cg_levels_encode_simd_(
    const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    const int mode = (q->stochastic ? 3 : 0) + (q->prescale != 1.0f ? 2 : q->encode_offset != 0.0f ? 1 : 0);
    size_t head = cg_noise_head_(q->stochastic, position, n), i = 0;
    if (head) cg_levels_encode_scalar_(q, key, position, v, head, symbols);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    symbols += head;
    n -= head;
    switch (mode) {
    case 0: i = cg_levels_encode32_(q, key, position, v, n, symbols, 0, 0, 0); break;
    case 1: i = cg_levels_encode32_(q, key, position, v, n, symbols, 0, 0, 1); break;
    case 2: i = cg_levels_encode32_(q, key, position, v, n, symbols, 0, 1, 1); break;
    case 3: i = cg_levels_encode32_(q, key, position, v, n, symbols, 1, 0, 0); break;
    case 4: i = cg_levels_encode32_(q, key, position, v, n, symbols, 1, 0, 1); break;
    default: i = cg_levels_encode32_(q, key, position, v, n, symbols, 1, 1, 1);
    }
    if (i < n) cg_levels_encode_scalar_(q, key, position + (uint32_t)i, cg_at_(v, i), n - i, symbols + i);
}
#endif
