/* lines: kernels of sketches: adding a line to cells, projecting it to a number, estimating it from cells

   Offers   line_add, line_project, line_estimate; cg_sign_bit_, cg_group_weight_ and cg_coordinate_estimate_ of one
   Needs    base, random, table, the vector layer
   Touches  the cells of its targets, or its out
   Other headers may use: cg_coordinate_estimate_, cg_group_weight_, cg_sign_bit_
   The vector kernels are for whole lines of CG_SKETCH_LINE_ values. x and out may have any alignment, cells are aligned
   to floats. */

/* Word i of a line's random bits. One multiplication more than noise for rounding gets, where products of four bits do
   not matter; the norm's estimate needs them. */
CG_INLINE_ uint32_t cg_sign_word_(cg_key_ key, unsigned i) {
    const uint32_t h = cg_hash32_(key, i) * 0x31848BABu;
    return h ^ h >> 15;
}
/* The random bit of an offset in the line, as a sign bit: bit offset / 8 (from the top) of word offset % 8, so that
   eight neighbours have theirs in eight words. word_set: 0 signs, 1 and 2 weights. */
CG_INLINE_ uint32_t cg_line_bit_(cg_key_ key, unsigned offset, unsigned word_set) {
    return cg_sign_word_(key, 8 * word_set + (offset & 7u)) << (offset >> 3) & CG_SIGN_BIT_;
}
CG_INLINE_ uint32_t cg_sign_bit_(cg_key_ key, unsigned offset) { return cg_line_bit_(key, offset, 0); }
/* In the sum of a group a value is multiplied by 1/2, 1, 3/2 or 2: with signs alone, two equal values would cancel in
   all rows once in 2^rows. */
CG_INLINE_ float cg_group_weight_(cg_key_ key, unsigned offset) {
    return (cg_line_bit_(key, offset, 1) ? 1.0f : 0.5f) + (cg_line_bit_(key, offset, 2) ? 1.0f : 0.0f);
}

/* line_add: each value times weight, with the sign of its offset, is added to its cell, row by row. */
static void cg_line_add_scalar_(const cg_line_target_ *p, int rows, const float *x, size_t many, float weight) {
    for (int r = 0; r < rows; r++, p++)
        for (unsigned offset = 0; offset < many; offset++) {
            float *cell = p->cells + (offset ^ p->xor_mask);
            *cell = cg_plus_(
                *cell, cg_xor_sign_(cg_times_(cg_load_(x, offset), weight), cg_sign_bit_(p->sign_key, offset)));
        }
}
#if CG_VECTOR_
/* The permutation that takes lane i of eight to lane i ^ (xor_mask & 7). */
CG_VECTOR_FN_ cg_vu_ cg_xor_permutation_(uint32_t xor_mask) {
    static const uint32_t lane[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    return cg_vu_xor_(cg_vu_load_(lane), cg_vu_set_(xor_mask & 7u));
}
/* v with each lane's sign flipped where the top bit of its word is set. */
CG_VECTOR_FN_ cg_vf_ cg_xor_sign8_(cg_vf_ v, cg_vu_ words) {
    return cg_vf_of_(cg_vu_xor_(cg_vu_of_(v), cg_vu_and_(words, cg_vu_set_(CG_SIGN_BIT_))));
}
/* cg_sign_word_ of eight words. The top bits are those of offsets 0 to 7; each doubling of the words brings the next
   eight offsets to the top. */
CG_VECTOR_FN_ cg_vu_ cg_sign_words8_(cg_key_ key, unsigned word_set) {
    const cg_vu_ h = cg_vu_mul_(cg_vu_hash_(key, 8 * word_set), cg_vu_set_(0x31848BABu));
    return cg_vu_xor_(h, cg_vu_shr_(h, 15));
}
/* Adds a line to at most five rows, so that words and permutations stay in registers. */
CG_VECTOR_FN_ void cg_line_add5_(const cg_line_target_ *p, int rows, const float *x, float weight) {
    cg_vu_ words[5], permute[5];
    float *cells[5];
    const float *prefetch[5];
    unsigned block_xor[5];
    CG_UNROLL_
    for (int r = 0; r < rows; r++) {
        words[r] = cg_sign_words8_(p[r].sign_key, 0);
        permute[r] = cg_xor_permutation_(p[r].xor_mask);
        cells[r] = p[r].cells;
        prefetch[r] = p[r].prefetch;
        block_xor[r] = p[r].xor_mask >> 3;
    }
    for (unsigned pair = 0; pair < CG_SKETCH_LINE_ / 8; pair += 2) { /* two vectors: a cache line */
        CG_PREFETCH_(cg_at_(x, 8 * (size_t)pair + 512));
        CG_UNROLL_
        for (int r = 0; r < rows; r++) CG_PREFETCH_WRITE_(prefetch[r] + 8 * pair);
        CG_UNROLL_
        for (unsigned vec = pair; vec < pair + 2; vec++) {
            const cg_vf_ v = cg_vf_mul_(cg_vf_load_(x, 8 * (size_t)vec), cg_vf_set_(weight));
            CG_UNROLL_
            for (int r = 0; r < rows; r++) {
                float *to = cells[r] + 8 * (vec ^ block_xor[r]);
                cg_vf_store_(
                    to, 0, cg_vf_add_(cg_vf_load_(to, 0), cg_vf_lookup8_(cg_xor_sign8_(v, words[r]), permute[r])));
                words[r] = cg_vu_add_(words[r], words[r]);
            }
        }
    }
}
CG_VECTOR_FN_ void cg_line_add_simd_(const cg_line_target_ *p, int rows, const float *x, size_t many, float weight) {
    if (many != CG_SKETCH_LINE_) cg_line_add_scalar_(p, rows, x, many, weight);
    else
        for (; rows > 0; rows -= 5, p += 5) switch (rows) { /* constants, so that loops over rows unroll */
            case 1: cg_line_add5_(p, 1, x, weight); break;
            case 2: cg_line_add5_(p, 2, x, weight); break;
            case 3: cg_line_add5_(p, 3, x, weight); break;
            case 4: cg_line_add5_(p, 4, x, weight); break;
            default: cg_line_add5_(p, 5, x, weight); break; /* all that fits into registers */
            }
}
#endif

/* line_project: the line as a part of groups: the sum of its values, each with its sign and weight. The order of
   additions is fixed: eight lanes, then lanes 4 apart, 2 apart, and neighbours. */
CG_INLINE_ float cg_line_sum_(float *lane) {
    for (unsigned step = 4; step; step /= 2)
        for (unsigned i = 0; i < step; i++) lane[i] = cg_plus_(lane[i], lane[i + step]);
    return lane[0];
}
static float cg_line_project_scalar_(const cg_line_target_ *p, const float *x, size_t many, float weight) {
    float lane[8] = { 0.0f };
    for (unsigned offset = 0; offset < many; offset++)
        lane[offset & 7] = cg_plus_(lane[offset & 7],
            cg_times_(cg_xor_sign_(cg_times_(cg_load_(x, offset), weight), cg_sign_bit_(p->sign_key, offset)),
                cg_group_weight_(p->sign_key, offset)));
    return cg_line_sum_(lane);
}
#if CG_VECTOR_
/* value where the top bit of the word is set, else 0. */
CG_VECTOR_FN_ cg_vf_ cg_value_if_top8_(cg_vu_ words, float value) {
    return cg_vf_of_(cg_vu_and_(cg_vu_sar_(words, 31), cg_vu_of_(cg_vf_set_(value))));
}
CG_VECTOR_FN_ float cg_line_project_simd_(const cg_line_target_ *p, const float *x, size_t many, float weight) {
    cg_vu_ words = cg_sign_words8_(p->sign_key, 0), weight_half = cg_sign_words8_(p->sign_key, 1),
           weight_one = cg_sign_words8_(p->sign_key, 2);
    const cg_vf_ w = cg_vf_set_(weight);
    cg_vf_ sum = cg_vf_set_(0.0f);
    float lane[8];
    if (many != CG_SKETCH_LINE_) return cg_line_project_scalar_(p, x, many, weight);
    for (size_t i = 0; i < CG_SKETCH_LINE_; i += 8) {
        const cg_vf_ group_weight = cg_vf_add_(
            cg_vf_add_(cg_vf_set_(0.5f), cg_value_if_top8_(weight_half, 0.5f)), cg_value_if_top8_(weight_one, 1.0f));
        sum = cg_vf_add_(sum, cg_vf_mul_(cg_xor_sign8_(cg_vf_mul_(cg_vf_load_(x, i), w), words), group_weight));
        words = cg_vu_add_(words, words);
        weight_half = cg_vu_add_(weight_half, weight_half);
        weight_one = cg_vu_add_(weight_one, weight_one);
    }
    cg_vf_store_(lane, 0, sum);
    return cg_line_sum_(lane);
}
#endif

/* line_estimate: of every coordinate the median over rows of its cells, with their signs. */
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
#if CG_VECTOR_
/* For loops over rows, up to 7. */
#  if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#    define CG_UNROLL_ROWS_ _Pragma("GCC unroll 7")
#  else
#    define CG_UNROLL_ROWS_
#  endif
CG_VECTOR_FN_ cg_vf_ cg_median3x8_(cg_vf_ a, cg_vf_ b, cg_vf_ c) {
    return cg_vf_max_(cg_vf_min_(a, b), cg_vf_min_(cg_vf_max_(a, b), c));
}
CG_VECTOR_FN_ cg_vf_ cg_mean2x8_(cg_vf_ a, cg_vf_ b) {
    const cg_vf_ half = cg_vf_set_(0.5f), sum = cg_vf_add_(a, b);
    const cg_vu_ finite = cg_vu_gt_(cg_vu_set_(CG_INF_BITS_), cg_vu_abs_(cg_vu_of_(sum)));
    return cg_vf_of_(cg_vu_or_(cg_vu_and_(finite, cg_vu_of_(cg_vf_mul_(sum, half))),
        cg_vu_andnot_(finite, cg_vu_of_(cg_vf_add_(cg_vf_mul_(a, half), cg_vf_mul_(b, half))))));
}
CG_VECTOR_FN_ cg_vf_ cg_median8_(cg_vf_ *v, int rows) {
    if (rows == 3) return cg_median3x8_(v[0], v[1], v[2]);
    if (rows == 5)
        return cg_median3x8_(cg_vf_max_(cg_vf_min_(v[0], v[1]), cg_vf_min_(v[2], v[3])),
            cg_vf_min_(cg_vf_max_(v[0], v[1]), cg_vf_max_(v[2], v[3])), v[4]);
    CG_UNROLL_ROWS_
    for (int i = 0; i < rows; i++) {
        CG_UNROLL_ROWS_
        for (int j = i & 1; j + 1 < rows; j += 2) {
            const cg_vf_ a = v[j], b = v[j + 1];
            v[j] = cg_vf_min_(a, b);
            v[j + 1] = cg_vf_max_(a, b);
        }
    }
    return rows & 1 ? v[rows / 2] : cg_mean2x8_(v[rows / 2 - 1], v[rows / 2]);
}
CG_VECTOR_FN_ void cg_line_estimate8_(const cg_line_target_ *p, int rows, float *out) {
    cg_vu_ words[CG_SKETCH_MAX_ROWS_], permute[CG_SKETCH_MAX_ROWS_];
    CG_UNROLL_ROWS_
    for (int r = 0; r < rows; r++) {
        words[r] = cg_sign_words8_(p[r].sign_key, 0);
        permute[r] = cg_xor_permutation_(p[r].xor_mask);
    }
    for (unsigned vec = 0; vec < CG_SKETCH_LINE_ / 8; vec++) {
        cg_vf_ v[CG_SKETCH_MAX_ROWS_];
        CG_UNROLL_ROWS_
        for (int r = 0; r < rows; r++) {
            v[r] = cg_xor_sign8_(
                cg_vf_lookup8_(cg_vf_load_(p[r].cells, 8 * (size_t)(vec ^ p[r].xor_mask >> 3)), permute[r]), words[r]);
            words[r] = cg_vu_add_(words[r], words[r]);
            if (!(vec & 1)) CG_PREFETCH_(p[r].prefetch + 8 * vec);
        }
        cg_vf_store_(out, 8 * (size_t)vec, cg_median8_(v, rows));
    }
}
CG_VECTOR_FN_ void cg_line_estimate_simd_(const cg_line_target_ *p, int rows, size_t many, float *out) {
    if (many != CG_SKETCH_LINE_) cg_line_estimate_scalar_(p, rows, many, out);
    else switch (rows) { /* constants, so that loops over rows unroll */
        case 1: cg_line_estimate8_(p, 1, out); break;
        case 3: cg_line_estimate8_(p, 3, out); break;
        case 4: cg_line_estimate8_(p, 4, out); break;
        case 5: cg_line_estimate8_(p, 5, out); break;
        case 7: cg_line_estimate8_(p, 7, out); break;
        default: cg_line_estimate8_(p, rows, out); break;
        }
}
#endif
