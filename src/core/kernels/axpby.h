/* axpby: kernels that add a vector to another, that move one, and the packet checksum

   Offers   axpby, move_zero, stream_fence, checksum
   Needs    base, table, the vector layer
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
#if CG_VECTOR_
/* The first n / 16 * 16 values; returns how many. beta is 0 (y is not read), 1 or any other, told by which. */
CG_VECTOR_FN_ size_t cg_axpby16_(
    const float *x, size_t n, float alpha, float beta, float *y, int non_temporal, int which) {
    const cg_vf_ a = cg_vf_set_(alpha), b = cg_vf_set_(beta);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        CG_UNROLL_
        for (size_t l = 0; l < 16; l += 8) {
            const size_t j = i + l;
            cg_vf_ f = cg_vf_mul_(a, cg_vf_load_(x, j));
            if (which == 1) f = cg_vf_add_(cg_vf_load_(y, j), f);
            if (which == 2) f = cg_vf_add_(cg_vf_mul_(b, cg_vf_load_(y, j)), f);
            cg_vf_stream_(y, j, f, non_temporal);
        }
    }
    return i;
}
CG_VECTOR_FN_ void cg_axpby_simd_(const float *x, size_t n, float alpha, float beta, float *y, int non_temporal) {
    size_t i = 0;
    if (non_temporal && beta == 0.0f) i = cg_axpby16_(x, n, alpha, beta, y, 1, 0);
    else if (beta == 1.0f) i = cg_axpby16_(x, n, alpha, beta, y, 0, 1);
    else if (beta != 0.0f) i = cg_axpby16_(x, n, alpha, beta, y, 0, 2);
    else if (alpha != 1.0f) i = cg_axpby16_(x, n, alpha, beta, y, 0, 0);
    if (i < n) cg_axpby_scalar_(cg_at_(x, i), n - i, alpha, beta, cg_at_mut_(y, i), 0);
}
#endif

/* move_zero: y = from, then from = 0; they do not overlap. In one pass the zeros cost nothing, as the core waits for
   the non-temporal stores anyway; a memset afterwards would cost its own time. */
static void cg_move_zero_scalar_(float *from, size_t n, float *y, int non_temporal) {
    (void)non_temporal;
    memcpy(y, from, 4 * n);
    memset(from, 0, 4 * n);
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_move_zero_simd_(float *from, size_t n, float *y, int non_temporal) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const cg_vf_ a = cg_vf_load_(from, i), b = cg_vf_load_(from, i + 8);
        cg_vf_store_(from, i, cg_vf_set_(0.0f));
        cg_vf_store_(from, i + 8, cg_vf_set_(0.0f));
        cg_vf_stream_(y, i, a, non_temporal);
        cg_vf_stream_(y, i + 8, b, non_temporal);
    }
    cg_move_zero_scalar_(cg_at_mut_(from, i), n - i, cg_at_mut_(y, i), 0);
}
#endif

/* stream_fence: after the last kernel with non_temporal, before another thread may read the output. */
static void cg_stream_fence_scalar_(void) {}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_stream_fence_simd_(void) { cg_stream_end_(); }
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
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_checksum_simd_(cg_checksum_ *sum, const uint8_t *words, size_t word_count) {
    cg_vq_ s[2], t[2];
    uint64_t a[8] = { 0 }, b[8], sa = 0, sb = 0;
    const size_t rows = word_count / 8;
    memcpy(&s[0], a, 32);
    s[1] = t[0] = t[1] = s[0];
    for (size_t i = 0; i < rows; i += 4) {
        const size_t many = cg_min_(4, rows - i);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) {
            if (j >= many) break;
            cg_vq_add_words_(s, words + 32 * (i + j));
            t[0] = cg_vq_add_(t[0], s[0]);
            t[1] = cg_vq_add_(t[1], s[1]);
        }
    }
    memcpy(a, &s[0], 32);
    memcpy(a + 4, &s[1], 32);
    memcpy(b, &t[0], 32);
    memcpy(b + 4, &t[1], 32);
    for (unsigned j = 0; j < 8; j++) { /* of each row of eight words a lane holds one */
        sa += a[j];
        sb += 8 * b[j] - CG_WORD_OF_LANE_(j) * a[j];
    }
    sum->b += 8 * (uint64_t)rows * sum->a + sb;
    sum->a += sa;
    sum->words += 8 * (uint64_t)rows;
    cg_checksum_scalar_(sum, words + 32 * rows, word_count - 8 * rows);
}
#endif
