/* residual8: the residual in 8 bits, for desc.bytes

   Offers   cg_residual8_encode_, _read_, _axpby_, _add_sparse_, _scale_get_, cg_residual8_stage_; the public cg_ef_read
   Needs    kinds; quantize and kernels of core
   Touches  ef->bytes
   ef->bytes holds n codes, then a little-endian u16 for each of ceil(n / 64) buckets: its scale, the upper half of a
   float, rounded up so that no value is cut off. Every write of a bucket rounds all of it once. */

static const cg_stage cg_residual8_stage_ = { CG_QUANTIZE_ABSMAX, CG_FLAG_NEAREST, 8, CG_EF_BUCKET_, 0.0f };
static uint8_t *cg_residual8_scale_at_(const cg_ef *ef, size_t bucket) { return ef->bytes + ef->desc.n + 2 * bucket; }
static float cg_residual8_scale_get_(const uint8_t *at) {
    return cg_as_float_((uint32_t)at[0] << 16 | (uint32_t)at[1] << 24);
}
/* out gets the values of a bucket: 64, of the last bucket what there is. */
static void cg_residual8_decode_(const cg_kernels_ *kernels, const cg_ef *ef, size_t bucket, float *out) {
    const size_t first = bucket * CG_EF_BUCKET_, many = cg_min_(CG_EF_BUCKET_, ef->desc.n - first);
    const float scale = cg_residual8_scale_get_(cg_residual8_scale_at_(ef, bucket));
    cg_bucket_dequantize_(kernels, &cg_residual8_stage_, scale, ef->bytes + first, many, out);
}
/* The values of v, which must be finite, become a bucket: its scale and its codes are written. */
static void cg_residual8_encode_(const cg_kernels_ *kernels, const cg_ef *ef, size_t bucket, const float *v) {
    const size_t first = bucket * CG_EF_BUCKET_, many = cg_min_(CG_EF_BUCKET_, ef->desc.n - first);
    uint8_t *at = cg_residual8_scale_at_(ef, bucket);
    /* 0x7f7f is the upper half of the largest float */
    const uint32_t scale_up16 = (CG_KERNEL_(kernels, absmax_bits(v, many)) + 0xffffu) >> 16,
                   scale16 = scale_up16 > 0x7f7fu ? 0x7f7fu : scale_up16;
    const float scale = cg_as_float_(scale16 << 16);
    at[0] = (uint8_t)scale16;
    at[1] = (uint8_t)(scale16 >> 8);
    cg_bucket_quantize_(kernels, &cg_residual8_stage_, scale, v, many, ef->bytes + first);
}
/* e = alpha v + beta e for coordinates [first, first + many), which may begin and end inside a bucket. v holds `many`
   values. beta e fades as in cg_axpby_fading_, and sums too large for a float become the largest. */
static void cg_residual8_axpby_(const cg_ef *ef, size_t first, size_t many, float alpha, const float *v, float beta) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    float e[CG_EF_BUCKET_];
    for (size_t i = first, some; i < first + many; i += some) {
        const size_t bucket = i / CG_EF_BUCKET_, at = i % CG_EF_BUCKET_;
        some = cg_min_(CG_EF_BUCKET_ - at, first + many - i);
        cg_residual8_decode_(kernels, ef, bucket, e);
        cg_axpby_fading_(kernels, cg_at_(v, i - first), some, alpha, beta, e + at);
        for (size_t j = at; j < at + some; j++) e[j] = cg_saturate_(e[j]);
        cg_residual8_encode_(kernels, ef, bucket, e);
    }
}
/* e = e + factor v at the coordinates base + index[i], which must ascend: so all that lie in one bucket are rounded
   once. */
static void cg_residual8_add_sparse_(
    const cg_ef *ef, size_t base, const uint64_t *index, size_t many, float factor, const float *v) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    float e[CG_EF_BUCKET_];
    for (size_t i = 0; i < many;) {
        const size_t bucket = (base + (size_t)index[i]) / CG_EF_BUCKET_;
        cg_residual8_decode_(kernels, ef, bucket, e);
        for (; i < many && (base + (size_t)index[i]) / CG_EF_BUCKET_ == bucket; i++) {
            float *to = e + (base + (size_t)index[i]) % CG_EF_BUCKET_;
            *to = cg_saturate_(cg_plus_(*to, cg_times_(factor, v[i])));
        }
        cg_residual8_encode_(kernels, ef, bucket, e);
    }
}
/* The values of coordinates [first, first + many), any stretch, in out. */
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
