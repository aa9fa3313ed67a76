/* kernels: adding a line to cells, projecting it to a number, estimating it from cells

   Offers   cg_line_add_, cg_line_project_, cg_line_estimate_, cg_coordinate_estimate_, cg_sketch_use_avx2_
   Needs    hash; AVX2 helpers of core
   Touches  the cells of its targets, or its out
   The scalar kernel is the specification; AVX2 returns the same bits, for whole lines of 256. x and out may have any
   alignment, cells are aligned to floats. */

/* Adds weight times `many` values to the cells of one target. */
static void cg_line_add_scalar_(const cg_line_target_ *p, const float *x, size_t many, float weight) {
    for (unsigned offset = 0; offset < many; offset++) {
        float *cell = p->cells + (offset ^ p->xor_mask);
        *cell = cg_plus_(
            *cell, cg_xor_sign_(cg_times_(cg_load_(x, offset), weight), cg_sign_bit_(p->sign_key, offset)));
    }
}
/* The line as a part of groups: the sum of its values, each with its sign and weight. The order of additions is fixed:
   eight lanes, then lanes 4 apart, 2 apart, and neighbours. */
static float cg_line_project_scalar_(const cg_line_target_ *p, const float *x, size_t many, float weight) {
    float lane[8] = { 0.0f };
    for (unsigned offset = 0; offset < many; offset++)
        lane[offset & 7] = cg_plus_(lane[offset & 7],
            cg_times_(cg_xor_sign_(cg_times_(cg_load_(x, offset), weight), cg_sign_bit_(p->sign_key, offset)),
                cg_group_weight_(p->sign_key, offset)));
    for (unsigned step = 4; step; step /= 2)
        for (unsigned offset = 0; offset < step; offset++) lane[offset] = cg_plus_(lane[offset], lane[offset + step]);
    return lane[0];
}
CG_INLINE_ float cg_min_f32_(float a, float b) { return a < b ? a : b; }
CG_INLINE_ float cg_max_f32_(float a, float b) { return a > b ? a : b; }
CG_INLINE_ float cg_median3_(float a, float b, float c) {
    return cg_max_f32_(cg_min_f32_(a, b), cg_min_f32_(cg_max_f32_(a, b), c));
}
/* (a + b) / 2, also where the sum is too large for a float. */
static float cg_mean2_(float a, float b) {
    const float sum = cg_plus_(a, b);
    return cg_is_finite_(sum) ? cg_times_(sum, 0.5f) : cg_plus_(cg_times_(a, 0.5f), cg_times_(b, 0.5f));
}
/* The median of v[0, rows), which may be reordered; of an even number the mean of the two in the middle. */
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
    return rows & 1 ? v[rows / 2] : cg_mean2_(v[rows / 2 - 1], v[rows / 2]);
}
/* The estimate of one coordinate from the targets of its line in all rows. */
static float cg_coordinate_estimate_(const cg_line_target_ *p, int rows, unsigned offset) {
    float v[CG_SKETCH_MAX_ROWS_];
    for (int r = 0; r < rows; r++)
        v[r] = cg_xor_sign_(p[r].cells[offset ^ p[r].xor_mask], cg_sign_bit_(p[r].sign_key, offset));
    return cg_median_(v, rows);
}
static void cg_line_estimate_scalar_(const cg_line_target_ *p, int rows, size_t many, float *out) {
    for (unsigned offset = 0; offset < many; offset++) cg_store_(out, offset, cg_coordinate_estimate_(p, rows, offset));
}
/* Without it gcc -O2 keeps loops over rows as loops, and the vectors of the rows on the stack. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#  define CG_UNROLL_ROWS_ _Pragma("GCC unroll 7")
#else
#  define CG_UNROLL_ROWS_
#endif
#if CG_AVX2_
/* The permutation that takes lane i of eight to lane i ^ (xor_mask & 7). */
CG_AVX2_INLINE_ __m256i cg_xor_permutation_avx2_(uint32_t xor_mask) {
    return _mm256_xor_si256(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32((int)(xor_mask & 7u)));
}
/* v with each lane's sign flipped where the top bit of its word is set. */
CG_AVX2_INLINE_ __m256 cg_xor_sign8_avx2_(__m256 v, __m256i words) {
    return _mm256_xor_ps(v, _mm256_and_ps(_mm256_castsi256_ps(words), _mm256_set1_ps(-0.0f)));
}
/* cg_sign_word_ of eight words. The top bits are those of offsets 0 to 7; each doubling of the words brings the next
   eight offsets to the top. */
CG_AVX2_INLINE_ __m256i cg_sign_words8_avx2_(cg_key_ key, unsigned word_set) {
    const __m256i h = _mm256_mullo_epi32(cg_hash8_avx2_(key, 8 * word_set), _mm256_set1_epi32(0x31848BAB));
    return _mm256_xor_si256(h, _mm256_srli_epi32(h, 15));
}
/* value where the top bit of the word is set, else 0. */
CG_AVX2_INLINE_ __m256 cg_value_if_msb8_avx2_(__m256i words, float value) {
    return _mm256_and_ps(_mm256_castsi256_ps(_mm256_srai_epi32(words, 31)), _mm256_set1_ps(value));
}
/* Adds a line to at most five rows, so that words and permutations stay in registers. */
CG_AVX2_INLINE_ void cg_line_add8_avx2_(const cg_line_target_ *p, int rows, const float *x, float weight) {
    __m256i words[5], permute[5];
    float *cells[5];
    const float *prefetch[5];
    unsigned block_xor[5];
    CG_UNROLL_ROWS_
    for (int r = 0; r < rows; r++) {
        words[r] = cg_sign_words8_avx2_(p[r].sign_key, 0);
        permute[r] = cg_xor_permutation_avx2_(p[r].xor_mask);
        cells[r] = p[r].cells;
        prefetch[r] = p[r].prefetch;
        block_xor[r] = p[r].xor_mask >> 3;
    }
    for (unsigned vec = 0; vec < 32; vec++) {
        const __m256 v = cg_mul8_avx2_(_mm256_castsi256_ps(cg_load8_avx2_(x, 8 * (size_t)vec)), _mm256_set1_ps(weight));
        if (!(vec & 1)) CG_PREFETCH_(cg_at_(x, 8 * (size_t)vec + 512));
        CG_UNROLL_ROWS_
        for (int r = 0; r < rows; r++) {
            float *to = cells[r] + 8 * (vec ^ block_xor[r]);
            _mm256_storeu_ps(to,
                _mm256_add_ps(
                    _mm256_loadu_ps(to), _mm256_permutevar8x32_ps(cg_xor_sign8_avx2_(v, words[r]), permute[r])));
            words[r] = _mm256_add_epi32(words[r], words[r]);
            if (!(vec & 1)) CG_PREFETCH_WRITE_(prefetch[r] + 8 * vec);
        }
    }
}
CG_TARGET_AVX2_ static void cg_line_add_avx2_(const cg_line_target_ *p, int rows, const float *x, float weight) {
    for (; rows > 0; rows -= 5, p += 5) switch (rows) { /* constants, so that loops over rows unroll */
        case 1: cg_line_add8_avx2_(p, 1, x, weight); break;
        case 2: cg_line_add8_avx2_(p, 2, x, weight); break;
        case 3: cg_line_add8_avx2_(p, 3, x, weight); break;
        case 4: cg_line_add8_avx2_(p, 4, x, weight); break;
        default: cg_line_add8_avx2_(p, 5, x, weight); break; /* all that fits into registers */
        }
}
CG_TARGET_AVX2_ static float cg_line_project_avx2_(const cg_line_target_ *p, const float *x, float weight) {
    __m256i words = cg_sign_words8_avx2_(p->sign_key, 0), weight_half = cg_sign_words8_avx2_(p->sign_key, 1),
            weight_one = cg_sign_words8_avx2_(p->sign_key, 2);
    const __m256 w = _mm256_set1_ps(weight);
    __m256 sum = _mm256_setzero_ps();
    float lane[8];
    for (int vec = 0; vec < 32; vec++) {
        const __m256 group_weight = _mm256_add_ps(
            _mm256_add_ps(_mm256_set1_ps(0.5f), cg_value_if_msb8_avx2_(weight_half, 0.5f)),
            cg_value_if_msb8_avx2_(weight_one, 1.0f));
        sum = _mm256_add_ps(sum,
            cg_mul8_avx2_(
                cg_xor_sign8_avx2_(cg_mul8_avx2_(_mm256_castsi256_ps(cg_load8_avx2_(x, 8 * (size_t)vec)), w), words),
                group_weight));
        words = _mm256_add_epi32(words, words);
        weight_half = _mm256_add_epi32(weight_half, weight_half);
        weight_one = _mm256_add_epi32(weight_one, weight_one);
    }
    _mm256_storeu_ps(lane, sum);
    for (unsigned step = 4; step; step /= 2)
        for (unsigned i = 0; i < step; i++) lane[i] = cg_plus_(lane[i], lane[i + step]);
    return lane[0];
}
#  define CG_MIN8_(a, b) _mm256_min_ps(a, b) /* a < b ? a : b, as cg_min_f32_ */
#  define CG_MAX8_(a, b) _mm256_max_ps(a, b)
CG_AVX2_INLINE_ __m256 cg_median3x8_avx2_(__m256 a, __m256 b, __m256 c) {
    return CG_MAX8_(CG_MIN8_(a, b), CG_MIN8_(CG_MAX8_(a, b), c));
}
CG_AVX2_INLINE_ __m256 cg_mean2x8_avx2_(__m256 a, __m256 b) {
    const __m256 half = _mm256_set1_ps(0.5f), sum = _mm256_add_ps(a, b);
    const __m256 magnitude = _mm256_and_ps(sum, _mm256_castsi256_ps(_mm256_set1_epi32((int)CG_ABS_MASK_)));
    return _mm256_blendv_ps(_mm256_add_ps(cg_mul8_avx2_(a, half), cg_mul8_avx2_(b, half)), cg_mul8_avx2_(sum, half),
        _mm256_cmp_ps(magnitude, _mm256_set1_ps(CG_FLT_MAX_), _CMP_LE_OQ));
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
    return rows & 1 ? v[rows / 2] : cg_mean2x8_avx2_(v[rows / 2 - 1], v[rows / 2]);
}
CG_AVX2_INLINE_ void cg_line_estimate8_avx2_(const cg_line_target_ *p, int rows, float *out) {
    __m256i words[CG_SKETCH_MAX_ROWS_], permute[CG_SKETCH_MAX_ROWS_];
    CG_UNROLL_ROWS_
    for (int r = 0; r < rows; r++) {
        words[r] = cg_sign_words8_avx2_(p[r].sign_key, 0);
        permute[r] = cg_xor_permutation_avx2_(p[r].xor_mask);
    }
    for (int vec = 0; vec < 32; vec++) {
        __m256 v[CG_SKETCH_MAX_ROWS_];
        CG_UNROLL_ROWS_
        for (int r = 0; r < rows; r++) {
            v[r] = cg_xor_sign8_avx2_(
                _mm256_permutevar8x32_ps(
                    _mm256_loadu_ps(p[r].cells + 8 * (vec ^ (int)(p[r].xor_mask >> 3))), permute[r]),
                words[r]);
            words[r] = _mm256_add_epi32(words[r], words[r]);
            if (!(vec & 1)) CG_PREFETCH_(p[r].prefetch + 8 * vec);
        }
        cg_store_avx2_(cg_at_mut_(out, 8 * (size_t)vec), _mm256_castps_si256(cg_median8_avx2_(v, rows)));
    }
}
CG_TARGET_AVX2_ static void cg_line_estimate_avx2_(const cg_line_target_ *p, int rows, float *out) {
    switch (rows) { /* constants, so that loops over rows unroll */
    case 1: cg_line_estimate8_avx2_(p, 1, out); break;
    case 3: cg_line_estimate8_avx2_(p, 3, out); break;
    case 5: cg_line_estimate8_avx2_(p, 5, out); break;
    case 7: cg_line_estimate8_avx2_(p, 7, out); break;
    default: cg_line_estimate8_avx2_(p, rows, out); break;
    }
}
#endif
/* What the functions below get as avx2: asked once per call, not per line. */
static int cg_sketch_use_avx2_(void) {
#if CG_AVX2_
    return cg_isa_used() == CG_ISA_AVX2;
#else
    return 0;
#endif
}
/* Adds weight times a line of `many` values, at most 256, to `rows` targets. */
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
/* The line's part of the sum of its groups in one row. */
static float cg_line_project_(const cg_line_target_ *p, const float *x, size_t many, float weight, int avx2) {
#if CG_AVX2_
    if (avx2 && many == CG_SKETCH_LINE_) return cg_line_project_avx2_(p, x, weight);
#endif
    (void)avx2;
    return cg_line_project_scalar_(p, x, many, weight);
}
/* Estimates of the first `many` coordinates of a line, from its targets in all rows. */
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
