/* estimate: coordinates and norm of the sketched vector, from the cells

   Offers   cg_sketch_estimate_, cg_sketch_estimate_range_, cg_sketch_norm_; the public calls of the same names
   Needs    hash, kernels, sketch; passes and energies of core
   Touches  nothing but its out */

/* The targets of a line in all rows; keys: of all rows. A line beyond the last one is fine: it has cells, too. */
static void cg_line_targets_(const cg_sketch *s, const uint64_t *keys, uint64_t line, cg_line_target_ *p) {
    for (int r = 0; r < s->desc.rows; r++) p[r] = cg_line_target_of_(s, r, cg_line_hash_(keys[r], line));
}
static void cg_row_keys_(const cg_sketch *s, uint64_t *keys) {
    for (int r = 0; r < s->desc.rows; r++) keys[r] = cg_row_key_(s, r);
}
/* The estimate of coordinate i. */
static float cg_sketch_estimate_(const cg_sketch *s, uint64_t i) {
    uint64_t keys[CG_SKETCH_MAX_ROWS_];
    cg_line_target_ p[CG_SKETCH_MAX_ROWS_];
    cg_row_keys_(s, keys);
    cg_line_targets_(s, keys, i / CG_SKETCH_LINE_, p);
    return cg_coordinate_estimate_(p, s->desc.rows, (unsigned)(i % CG_SKETCH_LINE_));
}
CG_API_ float cg_sketch_estimate(const cg_sketch *sketch, uint64_t i) {
    const cg_fenv_ env = cg_fenv_enter_();
    const float v = i < sketch->desc.n ? cg_sketch_estimate_(sketch, i) : 0.0f;
    cg_fenv_leave_(env);
    return v;
}
/* make of a lazy producer, and of a pass; user is the sketch. Estimates of coordinates [first, first + many) in out, by
   lines if first begins one, and one after the other if it does not; returns 0. */
static double cg_sketch_estimate_range_(const void *user, size_t first, size_t many, float *out) {
    const cg_sketch *s = (const cg_sketch *)user;
    const cg_kernels_ *kernels = cg_kernels_now_();
    uint64_t keys[CG_SKETCH_MAX_ROWS_];
    cg_line_target_ p[2][CG_SKETCH_MAX_ROWS_];
    if (first % CG_SKETCH_LINE_) {
        for (size_t i = 0; i < many; i++) cg_store_(out, i, cg_sketch_estimate_(s, first + i));
        return 0.0;
    }
    cg_row_keys_(s, keys);
    cg_line_targets_(s, keys, first / CG_SKETCH_LINE_, p[first / CG_SKETCH_LINE_ & 1]);
    for (size_t i = 0, line = first / CG_SKETCH_LINE_; i < many; i += CG_SKETCH_LINE_, line++) {
        cg_line_target_ *now = p[line & 1];
        cg_line_target_ *next = p[~line & 1];
        cg_line_targets_(s, keys, line + 1, next);
        for (int r = 0; r < s->desc.rows; r++) now[r].prefetch = next[r].cells;
        CG_KERNEL_(kernels, line_estimate(now, s->desc.rows, cg_min_(CG_SKETCH_LINE_, many - i), cg_at_mut_(out, i)));
    }
    return 0.0;
}
CG_API_ cg_status cg_sketch_estimate_all(const cg_sketch *sketch, float *y, size_t n) {
    cg_fenv_ env;
    if (!sketch || (!y && n)) return CG_E_ARG;
    if (n != sketch->desc.n) return CG_E_MISMATCH;
    env = cg_fenv_enter_();
    cg_vector_pass_(cg_sketch_estimate_range_, sketch, y, n, CG_BLOCK_);
    cg_fenv_leave_(env);
    return CG_OK;
}
/* The root of the median over rows of the energy of the row's cells; not finite if cells overflowed. */
static double cg_sketch_norm_(const cg_sketch *s) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const int rows = s->desc.rows;
    double v[CG_SKETCH_MAX_ROWS_], middle; /* v: sorted */
    for (int r = 0; r < rows; r++) {
        int j = r;
        double sum = 0.0;
        for (size_t i = 0; i < s->desc.cols; i += CG_BLOCK_)
            sum += cg_energy_(kernels, s->cells + (size_t)r * s->desc.cols + i, cg_min_(CG_BLOCK_, s->desc.cols - i));
        for (; j > 0 && v[j - 1] > sum; j--) v[j] = v[j - 1];
        v[j] = sum;
    }
    middle = rows & 1 ? v[rows / 2] : (v[rows / 2 - 1] + v[rows / 2]) * 0.5;
    return cg_is_finite64_(middle) ? cg_sqrt_(middle) : middle;
}
CG_API_ double cg_sketch_norm(const cg_sketch *sketch) {
    const cg_fenv_ env = cg_fenv_enter_();
    const double norm = cg_sketch_norm_(sketch);
    cg_fenv_leave_(env);
    return norm;
}
