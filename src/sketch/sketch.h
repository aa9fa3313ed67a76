/* sketch: the table of cells: its shape, and what is added to it

   Offers   cg_line_len_; the public calls that make, clear, fill, add, scale and zero a sketch
   Needs    hash, kernels; threads and kernels of core
   Touches  the cells of the sketch
   Every cell gets its additions in the order of lines, at any number of threads, so that bits do not depend on it. */

/* Fills *s in from a description, which may be NULL, but for the cells: cols rounded up to whole slots, levels and
   count. */
static cg_status cg_sketch_shape_(const cg_sketch_desc *d, cg_sketch *s) {
    uint64_t cells;
    memset(s, 0, sizeof *s);
    if (!d || d->rows < 1 || d->rows > CG_SKETCH_MAX_ROWS_ || d->cols < 1 || (uint64_t)d->n > (uint64_t)1 << 40)
        return CG_E_ARG;
    if (d->cols > SIZE_MAX / 2 || d->cols / CG_SKETCH_LINE_ >= 0xffffffffu || (uint64_t)d->groups > 0xffffffffu ||
        !CG_RESERVE_IS_ZERO_(d->reserved))
        return CG_E_ARG;
    s->desc = *d;
    s->desc.cols = (d->cols + CG_SKETCH_LINE_ - 1) / CG_SKETCH_LINE_ * CG_SKETCH_LINE_;
    if (d->groups)
        for (s->levels = 1; cg_group_count_(s, s->levels) > CG_SKETCH_LINE_; s->levels++) {}
    cells = cg_mul_sat_((uint64_t)d->rows, cg_add_sat_(s->desc.cols, cg_mul_sat_((uint64_t)s->levels, d->groups)));
    if (cells > SIZE_MAX / 8) return CG_E_ARG;
    s->count = (size_t)cells;
    return CG_OK;
}
CG_API_ size_t cg_sketch_memory(const cg_sketch_desc *desc) {
    cg_sketch s;
    return cg_sketch_shape_(desc, &s) == CG_OK ? 4 * s.count + 64 : 0;
}
CG_API_ void cg_sketch_clear(cg_sketch *sketch) { memset(sketch->cells, 0, 4 * sketch->count); }
CG_API_ cg_status cg_sketch_init(cg_sketch *sketch, const cg_sketch_desc *desc, void *mem, size_t bytes) {
    const size_t align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    cg_sketch s;
    cg_status status = sketch ? cg_sketch_shape_(desc, &s) : CG_E_ARG;
    if (status != CG_OK) return status;
    if (!mem || bytes < align_pad || bytes - align_pad < 4 * s.count) return CG_E_MEMORY;
    s.cells = (float *)(void *)((uint8_t *)mem + align_pad);
    *sketch = s;
    cg_sketch_clear(sketch);
    return CG_OK;
}
static size_t cg_sketch_lines_(const cg_sketch *s) {
    return s->desc.n / CG_SKETCH_LINE_ + (s->desc.n % CG_SKETCH_LINE_ != 0);
}
/* Coordinates of a line: 256, of the last line what there is. */
static size_t cg_line_len_(const cg_sketch *s, uint64_t line) {
    return cg_min_(CG_SKETCH_LINE_, s->desc.n - (size_t)line * CG_SKETCH_LINE_);
}

/* One thread's share of an addition: it goes over all lines, and adds to an equal share of the slots: some rows, and
   parts of one or two more. */
CG_NOINLINE_ void cg_sketch_add_slice_(cg_sketch *s, const float *x, float weight, int thread, int threads) {
    const size_t lines = cg_sketch_lines_(s), row_slots = cg_row_slots_(s), slots = row_slots * (size_t)s->desc.rows;
    const size_t from = slots / (size_t)threads * (size_t)thread,
                 to = thread + 1 < threads ? slots / (size_t)threads * (size_t)(thread + 1) : slots;
    const int first = (int)(from / row_slots), end = (int)((to + row_slots - 1) / row_slots);
    const cg_kernels_ *kernels = cg_kernels_now_();
    uint64_t key[CG_SKETCH_MAX_ROWS_];
    cg_line_target_ next[CG_SKETCH_MAX_ROWS_], p[CG_SKETCH_MAX_ROWS_];
    cg_fenv_ env = cg_fenv_enter_();
    for (int r = first; r < end; r++) {
        key[r] = cg_row_key_(s, r);
        next[r] = cg_line_target_of_(s, r, cg_line_hash_(key[r], 0));
    }
    for (size_t line = 0; line < lines; line++) {
        int hits = 0;
        for (int r = first; r < end; r++) { /* without a branch, which could not be predicted */
            const int in_slice = next[r].cells >= s->cells + from * CG_SKETCH_LINE_ &&
                next[r].cells < s->cells + to * CG_SKETCH_LINE_;
            p[hits] = next[r];
            next[r] = cg_line_target_of_(s, r, cg_line_hash_(key[r], line + 1));
            if (next[r].cells >= s->cells + from * CG_SKETCH_LINE_ && next[r].cells < s->cells + to * CG_SKETCH_LINE_)
                p[hits].prefetch = next[r].cells;
            hits += in_slice;
        }
        CG_KERNEL_(kernels, line_add(p, hits, cg_at_(x, line * CG_SKETCH_LINE_), cg_line_len_(s, line), weight));
    }
    cg_fenv_leave_(env);
}
/* Adds what a line amounts to in this row to its group at every level. */
static void cg_group_add_(cg_sketch *s, int row, uint64_t line, float sum) {
    for (int level = 1; level <= s->levels; level++, line /= CG_SKETCH_LINE_) {
        uint32_t sign;
        float *cell = cg_group_cell_(s, row, level, line, &sign);
        sum = cg_xor_sign_(sum, sign); /* this level's sign, on top of those of the levels below */
        *cell = cg_plus_(*cell, sum);
    }
}
/* One thread's share of an addition to groups: some of the rows. */
CG_NOINLINE_ void cg_sketch_add_groups_(cg_sketch *s, const float *x, float weight, int thread, int threads) {
    const size_t lines = cg_sketch_lines_(s);
    const int from = s->desc.rows * thread / threads, to = s->desc.rows * (thread + 1) / threads;
    const cg_kernels_ *kernels = cg_kernels_now_();
    cg_fenv_ env = cg_fenv_enter_();
    for (size_t line = 0; line < lines && from < to; line++)
        for (int r = from; r < to; r++) {
            const cg_line_target_ p = cg_line_target_of_(s, r, cg_line_hash_(cg_row_key_(s, r), line));
            cg_group_add_(s, r, line,
                CG_KERNEL_(
                    kernels, line_project(&p, cg_at_(x, line * CG_SKETCH_LINE_), cg_line_len_(s, line), weight)));
        }
    cg_fenv_leave_(env);
}
/* Whether all values of a thread's share of x are finite. */
static int cg_slice_finite_(const float *x, size_t n, int thread, int threads) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const size_t to = n / (size_t)threads * (size_t)thread +
        (thread + 1 == threads ? n - n / (size_t)threads * (size_t)thread : n / (size_t)threads);
    for (size_t i = n / (size_t)threads * (size_t)thread; i < to; i += CG_BLOCK_)
        if (CG_KERNEL_(kernels, absmax_bits(cg_at_(x, i), cg_min_(CG_BLOCK_, to - i))) >= CG_INF_BITS_) return 0;
    return 1;
}
/* Nothing is added unless all values are finite. `many` is the number of threads: CG_PARALLEL_ looks at a variable of
   that name. */
static cg_status cg_sketch_add_(cg_sketch *s, const float *x, size_t n, float weight) {
    const int many = cg_thread_count_();
    int finite[64];
    if (!s || (!x && n) || !cg_is_finite_(weight)) return CG_E_ARG;
    if (n != s->desc.n) return CG_E_MISMATCH;
    CG_PARALLEL_
    for (int i = 0; i < many; i++) finite[i] = cg_slice_finite_(x, n, i, many);
    for (int i = 0; i < many; i++)
        if (!finite[i]) return CG_E_NONFINITE; /* before a cell changes */
    CG_PARALLEL_
    for (int i = 0; i < many; i++) cg_sketch_add_slice_(s, x, weight, i, many);
    if (!s->levels) return CG_OK;
    CG_PARALLEL_
    for (int i = 0; i < many; i++) cg_sketch_add_groups_(s, x, weight, i, many);
    return CG_OK;
}
CG_API_ cg_status cg_sketch_add(cg_sketch *sketch, const float *x, size_t n, float weight) {
    const cg_fenv_ env = cg_fenv_enter_();
    const cg_status s = cg_sketch_add_(sketch, x, n, weight);
    cg_fenv_leave_(env);
    return s;
}
/* CG_E_ARG unless all indices are below n. */
static cg_status cg_sketch_list_check_(const cg_sketch *s, const uint64_t *index, size_t count) {
    if (!s || (!index && count)) return CG_E_ARG;
    for (size_t i = 0; i < count; i++)
        if (index[i] >= s->desc.n) return CG_E_ARG;
    return CG_OK;
}
CG_API_ cg_status cg_sketch_add_list(
    cg_sketch *sketch, const uint64_t *index, const float *value, size_t count, float weight) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_sketch_list_check_(sketch, index, count);
    if (s == CG_OK && ((!value && count) || !cg_is_finite_(weight))) s = CG_E_ARG;
    for (size_t i = 0; i < count && s == CG_OK; i++)
        if (!cg_is_finite_(cg_load_(value, i))) s = CG_E_NONFINITE;
    for (size_t i = 0; i < count && s == CG_OK; i++)
        for (int r = 0; r < sketch->desc.rows; r++) {
            const uint64_t line = index[i] / CG_SKETCH_LINE_;
            const unsigned offset = (unsigned)(index[i] % CG_SKETCH_LINE_);
            const cg_line_target_ p = cg_line_target_of_(sketch, r, cg_line_hash_(cg_row_key_(sketch, r), line));
            const float v = cg_xor_sign_(cg_times_(cg_load_(value, i), weight), cg_sign_bit_(p.sign_key, offset));
            p.cells[offset ^ p.xor_mask] = cg_plus_(p.cells[offset ^ p.xor_mask], v);
            if (sketch->levels) cg_group_add_(sketch, r, line, cg_times_(v, cg_group_weight_(p.sign_key, offset)));
        }
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_sketch_zero(cg_sketch *sketch, const uint64_t *index, size_t count) {
    cg_status s = cg_sketch_list_check_(sketch, index, count);
    if (s == CG_OK && sketch->levels)
        s = CG_E_UNSUPPORTED; /* groups hold sums of many coordinates: one cannot be taken out */
    for (size_t i = 0; i < count && s == CG_OK; i++)
        for (int r = 0; r < sketch->desc.rows; r++) {
            const cg_line_target_ p = cg_line_target_of_(
                sketch, r, cg_line_hash_(cg_row_key_(sketch, r), index[i] / CG_SKETCH_LINE_));
            p.cells[(unsigned)(index[i] % CG_SKETCH_LINE_) ^ p.xor_mask] = 0.0f;
        }
    return s;
}
static int cg_sketch_same_(const cg_sketch *a, const cg_sketch *b) {
    return a->desc.rows == b->desc.rows && a->desc.cols == b->desc.cols && a->desc.n == b->desc.n &&
        a->desc.seed == b->desc.seed && a->desc.groups == b->desc.groups;
}
CG_API_ cg_status cg_sketch_merge(cg_sketch *to, const cg_sketch *from) {
    cg_fenv_ env;
    if (!to || !from || to == from) return CG_E_ARG;
    if (!cg_sketch_same_(to, from)) return CG_E_MISMATCH;
    env = cg_fenv_enter_();
    CG_KERNEL_(cg_kernels_now_(), axpby(from->cells, to->count, 1.0f, 1.0f, to->cells, 0));
    cg_fenv_leave_(env);
    return CG_OK;
}
CG_API_ cg_status cg_sketch_scale(cg_sketch *sketch, float by) {
    cg_fenv_ env;
    if (!sketch || !cg_is_finite_(by)) return CG_E_ARG;
    env = cg_fenv_enter_();
    CG_KERNEL_(cg_kernels_now_(), axpby(sketch->cells, sketch->count, by, 0.0f, sketch->cells, 0));
    cg_fenv_leave_(env);
    return CG_OK;
}
