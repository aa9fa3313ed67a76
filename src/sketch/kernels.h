/* ---- >>kernels of a line: the scalar ones are what they mean ---- */

static void cg_line_add_scalar_(const cg_line_target_ *p, const float *x, size_t many, float weight) {
    for (unsigned e = 0; e < many; e++) {
        float *cell = p->cells + (e ^ p->xor_mask);
        *cell = cg_plus_(*cell, cg_xor_sign_(cg_times_(cg_load_(x, e), weight), cg_sign_bit_(p->sign_key, e)));
    }
}
/* The signed sum: eight lanes, then lanes 4 apart, 2 apart, and neighbours. */
static float cg_line_project_scalar_(const cg_line_target_ *p, const float *x, size_t many, float weight) {
    float lane[8] = { 0.0f };
    for (unsigned e = 0; e < many; e++)
        lane[e & 7] = cg_plus_(lane[e & 7],
            cg_times_(cg_xor_sign_(cg_times_(cg_load_(x, e), weight), cg_sign_bit_(p->sign_key, e)),
                cg_group_weight_(p->sign_key, e)));
    for (unsigned step = 4; step; step /= 2)
        for (unsigned e = 0; e < step; e++) lane[e] = cg_plus_(lane[e], lane[e + step]);
    return lane[0];
}
CG_INLINE_ float cg_min_f32_(float a, float b) { return a < b ? a : b; }
CG_INLINE_ float cg_max_f32_(float a, float b) { return a > b ? a : b; }
CG_INLINE_ float cg_median3_(float a, float b, float c) {
    return cg_max_f32_(cg_min_f32_(a, b), cg_min_f32_(cg_max_f32_(a, b), c));
}
static float cg_median_(float *v, int rows) {
    if (rows == 3) return cg_median3_(v[0], v[1], v[2]);
    if (rows == 5)
        return cg_median3_(cg_max_f32_(cg_min_f32_(v[0], v[1]), cg_min_f32_(v[2], v[3])),
            cg_min_f32_(cg_max_f32_(v[0], v[1]), cg_max_f32_(v[2], v[3])), v[4]);
    for (int i = 0; i < rows; i++)
        for (int j = i & 1; j + 1 < rows; j += 2) {
            const float a = v[j], b = v[j + 1];
            v[j] = cg_min_f32_(a, b);
            v[j + 1] = cg_max_f32_(a, b);
        }
    return rows & 1 ? v[rows / 2] : cg_times_(cg_plus_(v[rows / 2 - 1], v[rows / 2]), 0.5f);
}
static float cg_coordinate_estimate_(const cg_line_target_ *p, int rows, unsigned e) {
    float v[CG_SKETCH_MAX_ROWS_];
    for (int r = 0; r < rows; r++) v[r] = cg_xor_sign_(p[r].cells[e ^ p[r].xor_mask], cg_sign_bit_(p[r].sign_key, e));
    return cg_median_(v, rows);
}
static void cg_line_estimate_scalar_(const cg_line_target_ *p, int rows, size_t many, float *out) {
    for (unsigned e = 0; e < many; e++) cg_store_(out, e, cg_coordinate_estimate_(p, rows, e));
}
#if defined(__GNUC__) && !defined(__clang__) && \
    __GNUC__ >= 8 /* or -O2 keeps a loop over rows, and their vectors in memory */
#  define CG_UNROLL_ROWS_ _Pragma("GCC unroll 7")
#else
#  define CG_UNROLL_ROWS_
#endif
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_xor_permutation_avx2_(uint32_t flip) { /* lane i to lane i ^ flip, of eight */
    return _mm256_xor_si256(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32((int)(flip & 7u)));
}
/* with the signs of its eight lanes, the top bits of words */
CG_AVX2_INLINE_ __m256 cg_xor_sign8_avx2_(__m256 v, __m256i words) {
    return _mm256_xor_ps(v, _mm256_and_ps(_mm256_castsi256_ps(words), _mm256_set1_ps(-0.0f)));
}
CG_AVX2_INLINE_ __m256i cg_sign_words8_avx2_(cg_key_ key, unsigned set) {
    const __m256i h = _mm256_mullo_epi32(cg_hash8_avx2_(key, 8 * set), _mm256_set1_epi32(0x31848BAB));
    return _mm256_xor_si256(h, _mm256_srli_epi32(h, 15));
}
CG_AVX2_INLINE_ __m256 cg_value_if_msb8_avx2_(__m256i words, float value) { /* value where the top bit is set, or 0 */
    return _mm256_and_ps(_mm256_castsi256_ps(_mm256_srai_epi32(words, 31)), _mm256_set1_ps(value));
}
CG_AVX2_INLINE_ void cg_line_add8_avx2_(const cg_line_target_ *p, int rows, const float *x, float weight) {
    __m256i words[5], cross[5];
    float *cells[5];
    const float *ahead[5];
    unsigned high[5];
    CG_UNROLL_ROWS_
    for (int r = 0; r < rows; r++) {
        words[r] = cg_sign_words8_avx2_(p[r].sign_key, 0);
        cross[r] = cg_xor_permutation_avx2_(p[r].xor_mask);
        cells[r] = p[r].cells;
        ahead[r] = p[r].prefetch;
        high[r] = p[r].xor_mask >> 3;
    }
    for (unsigned vec = 0; vec < 32; vec++) {
        const __m256 v = cg_mul8_avx2_(_mm256_castsi256_ps(cg_load8_avx2_(x, 8 * (size_t)vec)), _mm256_set1_ps(weight));
        if (!(vec & 1)) CG_PREFETCH_(cg_at_(x, 8 * (size_t)vec + 512));
        CG_UNROLL_ROWS_
        for (int r = 0; r < rows; r++) {
            float *to = cells[r] + 8 * (vec ^ high[r]);
            _mm256_storeu_ps(to,
                _mm256_add_ps(
                    _mm256_loadu_ps(to), _mm256_permutevar8x32_ps(cg_xor_sign8_avx2_(v, words[r]), cross[r])));
            words[r] = _mm256_add_epi32(words[r], words[r]);
            if (!(vec & 1)) CG_PREFETCH_WRITE_(ahead[r] + 8 * vec);
        }
    }
}
CG_TARGET_AVX2_ static void cg_line_add_avx2_(const cg_line_target_ *p, int rows, const float *x, float weight) {
    for (; rows > 0; rows -= 5, p += 5) switch (rows) { /* known numbers unroll */
        case 1: cg_line_add8_avx2_(p, 1, x, weight); break;
        case 2: cg_line_add8_avx2_(p, 2, x, weight); break;
        case 3: cg_line_add8_avx2_(p, 3, x, weight); break;
        case 4: cg_line_add8_avx2_(p, 4, x, weight); break;
        default: cg_line_add8_avx2_(p, 5, x, weight); break; /* all that fits into registers */
        }
}
CG_TARGET_AVX2_ static float cg_line_project_avx2_(const cg_line_target_ *p, const float *x, float weight) {
    __m256i words = cg_sign_words8_avx2_(p->sign_key, 0), half = cg_sign_words8_avx2_(p->sign_key, 1),
            full = cg_sign_words8_avx2_(p->sign_key, 2);
    const __m256 w = _mm256_set1_ps(weight);
    __m256 sum = _mm256_setzero_ps();
    float lane[8];
    for (int vec = 0; vec < 32; vec++) {
        const __m256 share = _mm256_add_ps(_mm256_add_ps(_mm256_set1_ps(0.5f), cg_value_if_msb8_avx2_(half, 0.5f)),
            cg_value_if_msb8_avx2_(full, 1.0f));
        sum = _mm256_add_ps(sum,
            cg_mul8_avx2_(
                cg_xor_sign8_avx2_(cg_mul8_avx2_(_mm256_castsi256_ps(cg_load8_avx2_(x, 8 * (size_t)vec)), w), words),
                share));
        words = _mm256_add_epi32(words, words);
        half = _mm256_add_epi32(half, half);
        full = _mm256_add_epi32(full, full);
    }
    _mm256_storeu_ps(lane, sum);
    for (unsigned step = 4; step; step /= 2)
        for (unsigned e = 0; e < step; e++) lane[e] = cg_plus_(lane[e], lane[e + step]);
    return lane[0];
}
#  define CG_MIN8_(a, b) _mm256_min_ps(a, b) /* a < b ? a : b, as above */
#  define CG_MAX8_(a, b) _mm256_max_ps(a, b)
CG_AVX2_INLINE_ __m256 cg_median3x8_avx2_(__m256 a, __m256 b, __m256 c) {
    return CG_MAX8_(CG_MIN8_(a, b), CG_MIN8_(CG_MAX8_(a, b), c));
}
CG_AVX2_INLINE_ __m256 cg_median8_avx2_(__m256 *v, int rows) {
    if (rows == 3) return cg_median3x8_avx2_(v[0], v[1], v[2]);
    if (rows == 5)
        return cg_median3x8_avx2_(CG_MAX8_(CG_MIN8_(v[0], v[1]), CG_MIN8_(v[2], v[3])),
            CG_MIN8_(CG_MAX8_(v[0], v[1]), CG_MAX8_(v[2], v[3])), v[4]);
    for (int i = 0; i < rows; i++)
        for (int j = i & 1; j + 1 < rows; j += 2) {
            const __m256 a = v[j], b = v[j + 1];
            v[j] = CG_MIN8_(a, b);
            v[j + 1] = CG_MAX8_(a, b);
        }
    return rows & 1 ? v[rows / 2] : _mm256_mul_ps(_mm256_add_ps(v[rows / 2 - 1], v[rows / 2]), _mm256_set1_ps(0.5f));
}
CG_AVX2_INLINE_ void cg_line_estimate8_avx2_(const cg_line_target_ *p, int rows, float *out) {
    __m256i words[CG_SKETCH_MAX_ROWS_], cross[CG_SKETCH_MAX_ROWS_];
    CG_UNROLL_ROWS_
    for (int r = 0; r < rows; r++) {
        words[r] = cg_sign_words8_avx2_(p[r].sign_key, 0);
        cross[r] = cg_xor_permutation_avx2_(p[r].xor_mask);
    }
    for (int vec = 0; vec < 32; vec++) {
        __m256 v[CG_SKETCH_MAX_ROWS_];
        CG_UNROLL_ROWS_
        for (int r = 0; r < rows; r++) {
            v[r] = cg_xor_sign8_avx2_(
                _mm256_permutevar8x32_ps(_mm256_loadu_ps(p[r].cells + 8 * (vec ^ (int)(p[r].xor_mask >> 3))), cross[r]),
                words[r]);
            words[r] = _mm256_add_epi32(words[r], words[r]);
            if (!(vec & 1)) CG_PREFETCH_(p[r].prefetch + 8 * vec);
        }
        cg_store_avx2_(cg_at_mut_(out, 8 * (size_t)vec), _mm256_castps_si256(cg_median8_avx2_(v, rows)));
    }
}
CG_TARGET_AVX2_ static void cg_line_estimate_avx2_(const cg_line_target_ *p, int rows, float *out) {
    switch (rows) { /* known numbers unroll */
    case 1: cg_line_estimate8_avx2_(p, 1, out); break;
    case 3: cg_line_estimate8_avx2_(p, 3, out); break;
    case 5: cg_line_estimate8_avx2_(p, 5, out); break;
    case 7: cg_line_estimate8_avx2_(p, 7, out); break;
    default: cg_line_estimate8_avx2_(p, rows, out); break;
    }
}
#endif
static int cg_sketch_use_avx2_(void) {
#if CG_AVX2_
    return cg_kernels_now_()->isa == CG_ISA_AVX2;
#else
    return 0;
#endif
}
static void cg_line_add_(const cg_line_target_ *p, int rows, const float *x, size_t many, float weight, int avx2) {
#if CG_AVX2_
    if (avx2 && many == CG_SKETCH_LINE_) {
        cg_line_add_avx2_(p, rows, x, weight);
        return;
    }
#endif
    (void)avx2;
    for (int r = 0; r < rows; r++) cg_line_add_scalar_(p + r, x, many, weight);
}
static float cg_line_project_(const cg_line_target_ *p, const float *x, size_t many, float weight, int avx2) {
#if CG_AVX2_
    if (avx2 && many == CG_SKETCH_LINE_) return cg_line_project_avx2_(p, x, weight);
#endif
    (void)avx2;
    return cg_line_project_scalar_(p, x, many, weight);
}
static void cg_line_estimate_(const cg_line_target_ *p, int rows, size_t many, float *out, int avx2) {
#if CG_AVX2_
    if (avx2 && many == CG_SKETCH_LINE_) {
        cg_line_estimate_avx2_(p, rows, out);
        return;
    }
#endif
    (void)avx2;
    cg_line_estimate_scalar_(p, rows, many, out);
}
