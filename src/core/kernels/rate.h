/* rate: kernels that turn values into levels of 16 bits and back, on one grid with a dead zone

   Offers   rate_encode, rate_decode
   Needs    base, random, table, the vector layer
   Touches  nothing but its arguments */

/* rate_encode: t = |v|*lift*inv, rounded twice; the level is t + dead cut to a whole number of at most 32767, or, if
   stochastic, t, at most 32766, rounded up with the probability of its fraction, which is compared with 31 bits of
   noise. A level of 1 becomes 0 where the noise is above keep, unless stochastic. Levels are integers of 16 bits of
   this machine. A NaN gives any level. */
CG_INLINE_ int32_t cg_rate_level_(const cg_rate_grid_ *g, float t, uint32_t noise) {
    int32_t level;
    if (!g->stochastic) {
        t = cg_plus_(t, g->dead);
        level = (int32_t)(t < 32767.0f ? t : 32767.0f);
        return level == 1 && noise > g->keep ? 0 : level;
    }
    t = t < 32766.0f ? t : 32766.0f;
    level = (int32_t)t;
    return level +
        (cg_times_((float)(int32_t)(noise >> 1), 4.656612873077393e-10f) < cg_minus_(t, (float)level)); /* 2^-31 */
}
static void cg_rate_encode_scalar_(
    const cg_rate_grid_ *g, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *out) {
    const int noisy = g->stochastic || g->keep != UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = cg_load_bits_(v, i);
        const float t = cg_times_(cg_times_(cg_as_float_(u & CG_ABS_MASK_), g->lift), g->inv);
        const int32_t m = cg_rate_level_(g, t, noisy ? cg_noise_bits_(key, position + (uint32_t)i) : 0);
        const int16_t level = (int16_t)(u >> 31 ? -m : m);
        memcpy(out + 2 * i, &level, 2);
    }
}
#if CG_VECTOR_
/* The low 16 bits of the levels of eight values with these hashes. */
CG_VECTOR_FN_ cg_vu_ cg_rate_encode8_(cg_vu_ u, cg_vu_ noise, const cg_rate_grid_ *g, int stochastic, int lift) {
    const cg_vu_ negative = cg_vu_sar_(u, 31);
    cg_vf_ t = cg_vf_of_(cg_vu_abs_(u));
    cg_vu_ m;
    if (lift) t = cg_vf_mul_(t, cg_vf_set_(g->lift));
    t = cg_vf_mul_(t, cg_vf_set_(g->inv));
    if (stochastic) {
        t = cg_vf_min_(t, cg_vf_set_(32766.0f));
        m = cg_vu_trunc_(t);
        t = cg_vf_sub_(t, cg_vf_int_(m));
        m = cg_vu_sub_(
            m, cg_vf_gt_(t, cg_vf_mul_(cg_vf_int_(cg_vu_shr_(noise, 1)), cg_vf_set_(4.656612873077393e-10f))));
    } else m = cg_vu_trunc_(cg_vf_min_(cg_vf_add_(t, cg_vf_set_(g->dead)), cg_vf_set_(32767.0f)));
    return cg_vu_and_(cg_vu_sub_(cg_vu_xor_(m, negative), negative), cg_vu_set_(0xffff));
}
CG_VECTOR_FN_ size_t cg_rate_encode32_(const cg_rate_grid_ *g, cg_key_ key, uint32_t position, const float *v, size_t n,
    uint8_t *out, int stochastic, int lift) {
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        cg_vu_ h[4], x[4];
        h[0] = h[1] = h[2] = h[3] = cg_vu_set_(0);
        cg_prefetch32_(v, i, CG_CHUNK_);
        if (stochastic) cg_vu_noise_(key, position + (uint32_t)i, h);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) x[j] = cg_rate_encode8_(cg_vu_floats_(v, i + 8 * j), h[j], g, stochastic, lift);
        cg_vu_put16_(out + 2 * i, x[0], x[1]);
        cg_vu_put16_(out + 2 * i + 32, x[2], x[3]);
    }
    return i;
}
CG_VECTOR_FN_ void cg_rate_encode_simd_(
    const cg_rate_grid_ *g, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *out) {
    const size_t head = cg_noise_head_(g->stochastic, position, n);
    size_t i = 0;
    if (head) cg_rate_encode_scalar_(g, key, position, v, head, out);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    out += 2 * head;
    n -= head;
    if (!g->stochastic && g->keep != UINT32_MAX) {
    } else if (g->lift != 1.0f) {
        i = g->stochastic ? cg_rate_encode32_(g, key, position, v, n, out, 1, 1)
                          : cg_rate_encode32_(g, key, position, v, n, out, 0, 1);
    } else
        i = g->stochastic ? cg_rate_encode32_(g, key, position, v, n, out, 1, 0)
                          : cg_rate_encode32_(g, key, position, v, n, out, 0, 0);
    if (i < n) cg_rate_encode_scalar_(g, key, position + (uint32_t)i, cg_at_(v, i), n - i, out + 2 * i);
}
#endif

/* rate_decode: level 1 is value[1], m > 1 is m*value[0] + value[2], rounded twice, and all are multiplied by value[3];
   finite after each step. Levels may end where out does, in the same bytes: they are read before these are written. */
static void cg_rate_decode_scalar_(const float *value, const uint8_t *in, size_t n, float *out) {
    for (size_t i = 0; i < n; i++) {
        int16_t level;
        int32_t m;
        float f = 0.0f;
        memcpy(&level, in + 2 * i, 2);
        m = level < 0 ? -level : level;
        if (m == 1) f = value[1];
        else if (m) f = cg_plus_(cg_times_(value[0], (float)m), value[2]);
        f = cg_saturate_(cg_times_(cg_saturate_(f), value[3]));
        cg_store_(out, i, level < 0 ? -f : f);
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_rate_decode_simd_(const float *value, const uint8_t *in, size_t n, float *out) {
    const cg_vf_ step = cg_vf_set_(value[0]), one = cg_vf_set_(value[1]), offset = cg_vf_set_(value[2]),
                 drop = cg_vf_set_(value[3]);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        cg_vu_ x[4];
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) x[j] = cg_vu_u16_(in + 2 * (i + 8 * j));
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) {
            const cg_vu_ wide = cg_vu_shl_(x[j], 16), negative = cg_vu_sar_(wide, 31),
                         m = cg_vu_sub_(cg_vu_xor_(cg_vu_sar_(wide, 16), negative), negative);
            const cg_vf_ f = cg_vf_int_(m), far = cg_vf_add_(cg_vf_mul_(f, step), offset);
            const cg_vu_ some = cg_vf_gt_(f, cg_vf_set_(0.5f)), more = cg_vf_gt_(f, cg_vf_set_(1.5f));
            cg_vu_ r = cg_vu_xor_(cg_vu_of_(one), cg_vu_and_(cg_vu_xor_(cg_vu_of_(one), cg_vu_of_(far)), more));
            r = cg_vu_and_(cg_vu_of_(cg_vf_finite_(cg_vf_mul_(cg_vf_finite_(cg_vf_of_(r)), drop))), some);
            cg_vf_store_(out, i + 8 * j, cg_vf_of_(cg_vu_xor_(r, cg_vu_shl_(negative, 31))));
        }
    }
    if (i < n) cg_rate_decode_scalar_(value, in + 2 * i, n - i, cg_at_mut_(out, i));
}
#endif
