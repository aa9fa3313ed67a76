/* ---- >>bytes in memory: 64 values share a scale, the upper half of a float, rounded up ---- */

static const cg_stage cg_residual8_stage_ = { CG_QUANTIZE_ABSMAX, CG_FLAG_NEAREST, 8, CG_EF_BUCKET_, 0.0f };
static uint8_t *cg_residual8_scale_at_(const cg_ef *ef, size_t bucket) { return ef->bytes + ef->desc.n + 2 * bucket; }
static float cg_residual8_scale_get_(const uint8_t *at) {
    return cg_as_float_((uint32_t)at[0] << 16 | (uint32_t)at[1] << 24);
}
static void cg_residual8_decode_(const cg_kernels_ *kernels, const cg_ef *ef, size_t bucket, float *out) {
    const size_t first = bucket * CG_EF_BUCKET_, many = cg_min_(CG_EF_BUCKET_, ef->desc.n - first);
    const float scale = cg_residual8_scale_get_(cg_residual8_scale_at_(ef, bucket));
    cg_bucket_dequantize_(kernels, &cg_residual8_stage_, scale, ef->bytes + first, many, out);
}
static void cg_residual8_encode_(const cg_kernels_ *kernels, const cg_ef *ef, size_t bucket, const float *v) {
    const size_t first = bucket * CG_EF_BUCKET_, many = cg_min_(CG_EF_BUCKET_, ef->desc.n - first);
    uint8_t *at = cg_residual8_scale_at_(ef, bucket);
    const uint32_t top = (kernels->absmax_bits(v, many) + 0xffffu) >> 16, half = top > 0x7f7fu ? 0x7f7fu : top;
    const float scale = cg_as_float_(half << 16);
    at[0] = (uint8_t)half;
    at[1] = (uint8_t)(half >> 8);
    cg_bucket_quantize_(kernels, &cg_residual8_stage_, scale, v, many, ef->bytes + first);
}
/* e = by v + keep e, for [first, first + many) of it; any stretch. */
static void cg_residual8_axpby_(const cg_ef *ef, size_t first, size_t many, float by, const float *v, float keep) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    float e[CG_EF_BUCKET_];
    for (size_t i = first, some; i < first + many; i += some) {
        const size_t bucket = i / CG_EF_BUCKET_, at = i % CG_EF_BUCKET_;
        some = cg_min_(CG_EF_BUCKET_ - at, first + many - i);
        cg_residual8_decode_(kernels, ef, bucket, e);
        cg_axpby_fading_(kernels, cg_at_(v, i - first), some, by, keep, e + at);
        for (size_t j = at; j < at + some; j++) e[j] = cg_saturate_(e[j]);
        cg_residual8_encode_(kernels, ef, bucket, e);
    }
}
/* e = e + by v at ascending places: what lies in one bucket is rounded once. */
static void cg_residual8_add_sparse_(
    const cg_ef *ef, size_t base, const uint64_t *at, size_t many, float by, const float *v) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    float e[CG_EF_BUCKET_];
    for (size_t i = 0; i < many;) {
        const size_t bucket = (base + (size_t)at[i]) / CG_EF_BUCKET_;
        cg_residual8_decode_(kernels, ef, bucket, e);
        for (; i < many && (base + (size_t)at[i]) / CG_EF_BUCKET_ == bucket; i++) {
            float *to = e + (base + (size_t)at[i]) % CG_EF_BUCKET_;
            *to = cg_saturate_(cg_plus_(*to, cg_times_(by, v[i])));
        }
        cg_residual8_encode_(kernels, ef, bucket, e);
    }
}
static void cg_residual8_read_(const cg_ef *ef, size_t first, size_t many, float *out) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    float e[CG_EF_BUCKET_];
    for (size_t i = first, some; i < first + many; i += some) {
        const size_t at = i % CG_EF_BUCKET_;
        some = cg_min_(CG_EF_BUCKET_ - at, first + many - i);
        if (some == CG_EF_BUCKET_) {
            cg_residual8_decode_(kernels, ef, i / CG_EF_BUCKET_, cg_at_mut_(out, i - first));
            continue;
        }
        cg_residual8_decode_(kernels, ef, i / CG_EF_BUCKET_, e);
        memcpy(cg_at_mut_(out, i - first), e + at, 4 * some);
    }
}
CG_API_ cg_status cg_ef_read(const cg_ef *ef, int which, float *out, size_t n) {
    cg_fenv_ env;
    if (!ef || (!out && n) || which < 0 || which > 2) return CG_E_ARG;
    if (n != ef->desc.n) return CG_E_MISMATCH;
    if (!ef->vector[which] && (which || !ef->bytes)) return CG_E_UNSUPPORTED;
    env = cg_fenv_enter_();
    if (!n) {
    } else if (ef->vector[which]) memcpy(out, ef->vector[which], 4 * n);
    else cg_residual8_read_(ef, 0, n, out);
    cg_fenv_leave_(env);
    return CG_OK;
}
