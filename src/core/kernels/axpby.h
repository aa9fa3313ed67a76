/* axpby: kernels that add a vector to another, that move one, and the packet checksum

   Offers   axpby, move_zero, stream_fence, checksum
   Needs    base, table
   Touches  nothing but its arguments */

/* axpby: y = beta*y + alpha*x, each product and the sum rounded. y is not read if beta is 0; beta 1 is no product, and
   alpha 1 with beta 0 copies bits. non_temporal counts only if beta is 0. */
static void cg_axpby_scalar_(const float *x, size_t n, float alpha, float beta, float *y, int non_temporal) {
    (void)non_temporal;
    if (beta == 0.0f && alpha == 1.0f) memcpy(y, x, 4 * n);
    else if (beta == 0.0f)
        for (size_t i = 0; i < n; i++) cg_store_(y, i, cg_times_(alpha, cg_load_(x, i)));
    else if (beta == 1.0f)
        for (size_t i = 0; i < n; i++) cg_store_(y, i, cg_plus_(cg_load_(y, i), cg_times_(alpha, cg_load_(x, i))));
    else
        for (size_t i = 0; i < n; i++)
            cg_store_(y, i, cg_plus_(cg_times_(beta, cg_load_(y, i)), cg_times_(alpha, cg_load_(x, i))));
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_axpby_avx2_(
    const float *x, size_t n, float alpha, float beta, float *y, int non_temporal) {
    const __m256 a = _mm256_set1_ps(alpha), b = _mm256_set1_ps(beta);
    size_t i = 0;
    if (non_temporal && beta == 0.0f) {
        for (; i + 8 <= n; i += 8)
            cg_store_stream_avx2_(
                y, i, _mm256_castps_si256(cg_mul8_avx2_(a, _mm256_castsi256_ps(cg_load8_avx2_(x, i)))), 1);
    } else if (beta == 1.0f) {
        for (; i + 8 <= n; i += 8) {
            __m256 f = _mm256_castsi256_ps(cg_load8_avx2_(y, i));
            cg_store_avx2_(cg_at_mut_(y, i),
                _mm256_castps_si256(_mm256_add_ps(f, cg_mul8_avx2_(a, _mm256_castsi256_ps(cg_load8_avx2_(x, i))))));
        }
    } else if (beta != 0.0f) {
        for (; i + 8 <= n; i += 8) {
            __m256 f = cg_mul8_avx2_(b, _mm256_castsi256_ps(cg_load8_avx2_(y, i)));
            cg_store_avx2_(cg_at_mut_(y, i),
                _mm256_castps_si256(_mm256_add_ps(f, cg_mul8_avx2_(a, _mm256_castsi256_ps(cg_load8_avx2_(x, i))))));
        }
    } else if (alpha != 1.0f) {
        for (; i + 8 <= n; i += 8)
            cg_store_avx2_(
                cg_at_mut_(y, i), _mm256_castps_si256(cg_mul8_avx2_(a, _mm256_castsi256_ps(cg_load8_avx2_(x, i)))));
    }
    _mm256_zeroupper();
    if (i < n) cg_axpby_scalar_(cg_at_(x, i), n - i, alpha, beta, cg_at_mut_(y, i), 0);
}
#endif
#if CG_NEON_
static void cg_axpby_neon_(const float *x, size_t n, float alpha, float beta, float *y, int non_temporal) {
    const float32x4_t a = vdupq_n_f32(alpha), b = vdupq_n_f32(beta);
    size_t i = 0;
    if (beta == 0.0f && alpha == 1.0f) {
        /* the scalar kernel copies */
    } else if (beta == 0.0f) {
        for (; i + 4 <= n; i += 4) cg_store4_neon_(y, i, a * cg_as_float_neon_(cg_load4_neon_(x, i)));
    } else {
        const int beta_is_one = beta == 1.0f;
        for (; i + 4 <= n; i += 4) {
            float32x4_t f = cg_as_float_neon_(cg_load4_neon_(y, i)),
                        g = cg_times_neon_(a, cg_as_float_neon_(cg_load4_neon_(x, i)));
            cg_store4_neon_(y, i, (beta_is_one ? f : cg_times_neon_(b, f)) + g);
        }
    }
    cg_axpby_scalar_(cg_at_(x, i), n - i, alpha, beta, cg_at_mut_(y, i), non_temporal);
}
#endif

/* move_zero: y = from, then from = 0; they do not overlap. In one pass the zeros cost nothing, as the core waits for
   the non-temporal stores anyway; a memset afterwards would cost its own time. */
static void cg_move_zero_scalar_(float *from, size_t n, float *y, int non_temporal) {
    (void)non_temporal;
    memcpy(y, from, 4 * n);
    memset(from, 0, 4 * n);
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_move_zero_avx2_(float *from, size_t n, float *y, int non_temporal) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256i v = cg_load8_avx2_(from, i);
        cg_store_avx2_(cg_at_mut_(from, i), _mm256_setzero_si256());
        if (non_temporal) cg_store_stream_avx2_(y, i, v, 1);
        else cg_store_avx2_(cg_at_mut_(y, i), v);
    }
    _mm256_zeroupper();
    cg_move_zero_scalar_(cg_at_mut_(from, i), n - i, cg_at_mut_(y, i), 0);
}
#endif
#if CG_NEON_
static void cg_move_zero_neon_(float *from, size_t n, float *y, int non_temporal) {
    cg_move_zero_scalar_(from, n, y, non_temporal);
}
#endif

/* stream_fence: after the last kernel with non_temporal, before another thread may read the output. */
static void cg_stream_fence_scalar_(void) {}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_stream_fence_avx2_(void) { _mm_sfence(); }
#endif
#if CG_NEON_
static void cg_stream_fence_neon_(void) {}
#endif

/* checksum: for each little-endian u32 word, a += word, b += a, modulo 2^64; counts the words. */
static void cg_checksum_scalar_(cg_checksum_ *sum, const uint8_t *words, size_t word_count) {
    uint64_t a = sum->a, b = sum->b;
    for (size_t i = 0; i < word_count; i++) {
        a += cg_get32_(words + 4 * i);
        b += a;
    }
    sum->a = a;
    sum->b = b;
    sum->words += word_count;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_checksum_avx2_(cg_checksum_ *sum, const uint8_t *words, size_t word_count) {
    const __m256i low = _mm256_set1_epi64x(0xffffffff);
    __m256i ae = _mm256_setzero_si256(), ao = ae, be = ae, bo = ae;
    uint64_t a[8], b[8], sa = 0, sb = 0;
    const size_t rows = word_count / 8;
    for (size_t i = 0; i < rows; i++) {
        __m256i w = cg_load_bytes_avx2_(words + 32 * i);
        ae = _mm256_add_epi64(ae, _mm256_and_si256(w, low));
        ao = _mm256_add_epi64(ao, _mm256_srli_epi64(w, 32));
        be = _mm256_add_epi64(be, ae);
        bo = _mm256_add_epi64(bo, ao);
    }
    cg_store_avx2_(a, ae);
    cg_store_avx2_(a + 4, ao);
    cg_store_avx2_(b, be);
    cg_store_avx2_(b + 4, bo);
    for (unsigned j = 0; j < 8; j++) { /* lane j holds words 2j, or 2(j-4)+1, of each row of eight */
        sa += a[j];
        sb += 8 * b[j] - (j < 4 ? 2 * j : 2 * (j - 4) + 1) * a[j];
    }
    sum->b += 8 * (uint64_t)rows * sum->a + sb;
    sum->a += sa;
    sum->words += 8 * (uint64_t)rows;
    cg_checksum_scalar_(sum, words + 32 * rows, word_count - 8 * rows);
}
#endif
#if CG_NEON_
static void cg_checksum_neon_(cg_checksum_ *sum, const uint8_t *words, size_t word_count) {
    uint64x2_t a0 = vdupq_n_u64(0), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
    uint64_t a[8], b[8], sa = 0, sb = 0;
    const size_t rows = word_count / 8;
    for (size_t i = 0; i < rows; i++) {
        uint32x4_t v = vreinterpretq_u32_u8(vld1q_u8(words + 32 * i)),
                   w = vreinterpretq_u32_u8(vld1q_u8(words + 32 * i + 16));
        a0 = vaddw_u32(a0, vget_low_u32(v));
        a1 = vaddw_high_u32(a1, v);
        a2 = vaddw_u32(a2, vget_low_u32(w));
        a3 = vaddw_high_u32(a3, w);
        b0 = vaddq_u64(b0, a0);
        b1 = vaddq_u64(b1, a1);
        b2 = vaddq_u64(b2, a2);
        b3 = vaddq_u64(b3, a3);
    }
    vst1q_u64(a, a0);
    vst1q_u64(a + 2, a1);
    vst1q_u64(a + 4, a2);
    vst1q_u64(a + 6, a3);
    vst1q_u64(b, b0);
    vst1q_u64(b + 2, b1);
    vst1q_u64(b + 4, b2);
    vst1q_u64(b + 6, b3);
    for (unsigned j = 0; j < 8; j++) { /* lane j holds word j of each row of eight */
        sa += a[j];
        sb += 8 * b[j] - j * a[j];
    }
    sum->b += 8 * (uint64_t)rows * sum->a + sb;
    sum->a += sa;
    sum->words += 8 * (uint64_t)rows;
    cg_checksum_scalar_(sum, words + 32 * rows, word_count - 8 * rows);
}
#endif
