/* ---- >>allgather ---- */

/* Fails if a sum has reached the largest float: sums saturate there, and would be no mean when divided by N. */
static cg_status cg_sum_check_saturated_(const uint8_t *sum, size_t len) {
    cg_info info;
    const cg_status s = cg_inspect(sum, len, &info);
    if (s != CG_OK || info.op.quantize.id) return s;
    return cg_floats_absmax_bits_le_(sum + CG_HEADER_BYTES, info.value_bytes / 4) >= CG_INF_BITS_ - 1 ? CG_E_NONFINITE
                                                                                                      : CG_OK;
}
/* How many packets have each of the sum's k values, into counts; all packets have their indices in ascending order. */
CG_NOINLINE_ cg_status cg_count_contributors_(const cg_ex_ *ex, size_t k, uint32_t *counts) {
    const cg_extra side = cg_decode_extra_(ex);
    cg_sparse_reader_ sum, one;
    cg_info info;
    memset(counts, 0, 4 * k);
    for (size_t q = 0; q < cg_ranks_(ex); q++) {
        uint64_t sum_index, index = 0;
        cg_status s = cg_sparse_reader_open_(&sum, NULL, ex->reduced.packet, ex->reduced.len, ex->n, &info);
        int more;
        if (s == CG_OK) s = cg_sparse_reader_open_(&one, &side, ex->inputs.packet[q], ex->inputs.len[q], ex->n, &info);
        if (s != CG_OK) return s;
        more = cg_sparse_next_index_(&one, &index);
        for (size_t i = 0; more && i < k && cg_sparse_next_index_(&sum, &sum_index); i++)
            if (index == sum_index) {
                counts[i]++;
                more = cg_sparse_next_index_(&one, &index);
            }
    }
    return CG_OK;
}
/* The sum of all, each value divided by how many ranks sent one there. */
CG_NOINLINE_ cg_status cg_mean_of_contributors_(cg_ex_ *ex) {
    const uint32_t *counts = ex->mem.contributors;
    uint8_t *values = ex->reduced.packet + CG_HEADER_BYTES;
    cg_info sum;
    cg_status s = cg_reduce_(ex->inputs.packet, ex->inputs.len, cg_ranks_(ex), 0, ex->reduced.packet, ex->reduced.cap,
        &ex->reduced.len, ex->mem.scratch, ex->mem.scratch_bytes);
    if (s == CG_OK) s = cg_sum_check_saturated_(ex->reduced.packet, ex->reduced.len);
    if (s == CG_OK) s = cg_inspect(ex->reduced.packet, ex->reduced.len, &sum);
    if (s == CG_OK) s = cg_count_contributors_(ex, (size_t)sum.k, ex->mem.contributors);
    if (s != CG_OK) return s;
    for (size_t i = 0; i < (size_t)sum.k; i++)
        cg_put32_(values + 4 * i, cg_as_bits_(cg_as_float_(cg_get32_(values + 4 * i)) / (float)counts[i]));
    ex->reduced.len = cg_packet_seal_(&sum, ex->reduced.packet);
    return cg_ex_decode_(ex, ex->reduced.packet, ex->reduced.len, 1.0f, 0.0f, ex->result, ex->n);
}
/* Sparse f32 packets side by side, chunk by chunk: the same sums in the same order, but y is written once, and
   added to in L1. touched: a bit for each that was, or NULL; model: what they will be used on. */
CG_INLINE_ void cg_sparse_cursor_add_(cg_sparse_reader_ *a, int first, float alpha, uint64_t base, uint64_t end,
    float *chunk, uint64_t *touched, const float *model) {
    for (;; a->window_next = a->window_n = 0) {
        size_t i = a->window_next;
        if (!a->window_n) {
            if (!cg_sparse_reader_fill_(a)) return;
            if (touched)
                for (size_t j = 0; j < a->window_n; j++) CG_PREFETCH_(cg_at_(model, (size_t)a->window[j]));
        }
        for (; i < a->window_n && a->window[i] < end; i++, a->values += 4) {
            const float v = cg_times_(alpha, cg_as_float_(cg_get32_(a->values)));
            const size_t j = (size_t)(a->window[i] - base);
            chunk[j] = first ? v : cg_plus_(chunk[j], v);
            if (touched) touched[j / 64] |= (uint64_t)1 << j % 64;
        }
        a->window_next = i;
        if (i < a->window_n) return;
    }
}
static cg_status cg_sparse_cursors_open_(cg_ex_ *ex, size_t n) {
    cg_status s = CG_OK;
    for (size_t q = 0; q < cg_ranks_(ex) && s == CG_OK; q++) {
        cg_info info;
        s = cg_sparse_reader_open_(&ex->inputs.reader[q], NULL, ex->inputs.packet[q], ex->inputs.len[q], n, &info);
    }
    return s;
}
CG_NOINLINE_ cg_status cg_sparse_cursors_sum_(cg_ex_ *ex, float *y, size_t n) {
    const int stream = n >= (size_t)1 << 22 && (uintptr_t)y % 16 == 0;
    const cg_status s = cg_sparse_cursors_open_(ex, n);
    float chunk[2 * CG_CHUNK_];
    if (s != CG_OK) return s;
    memset(chunk, 0, sizeof chunk);
    for (size_t base = 0, many; base < n; base += many) {
        many = cg_min_(2 * CG_CHUNK_, n - base);
        for (size_t q = 0; q < cg_ranks_(ex); q++)
            cg_sparse_cursor_add_(
                &ex->inputs.reader[q], q == 0, cg_alpha_(ex, q), base, base + many, chunk, NULL, NULL);
        cg_move_zero_(chunk, many, cg_at_mut_(y, base), stream, base + many == n);
    }
    return CG_OK;
}
/* ... to the model, where somebody sent something. */
CG_NOINLINE_ cg_status cg_sparse_cursors_step_model_(cg_ex_ *ex) {
    const cg_status s = cg_sparse_cursors_open_(ex, ex->n);
    float chunk[2 * CG_CHUNK_];
    uint64_t touched[2 * CG_CHUNK_ / 64];
    if (s != CG_OK) return s;
    memset(chunk, 0, sizeof chunk);
    memset(touched, 0, sizeof touched);
    for (size_t base = 0; base < ex->n; base += 2 * CG_CHUNK_) {
        for (size_t q = 0; q < cg_ranks_(ex); q++)
            cg_sparse_cursor_add_(&ex->inputs.reader[q], q == 0, cg_alpha_(ex, q), base, base + 2 * CG_CHUNK_, chunk,
                touched, ex->desc.model);
        for (size_t w = 0; w < 2 * CG_CHUNK_ / 64; w++)
            for (; touched[w]; touched[w] &= touched[w] - 1) {
                const size_t j = 64 * w + cg_ctz_(touched[w]);
                cg_model_step_at_(&ex->desc, base + j, chunk[j]);
                chunk[j] = 0.0f;
            }
    }
    ex->desc.model = NULL; /* done */
    return CG_OK;
}
static cg_status cg_inputs_sum_(cg_ex_ *ex, float *y, size_t n) {
    cg_accum_ b;
    if (ex->inputs.reader) return cg_sparse_cursors_sum_(ex, y, n);
    cg_accum_ranks_(ex, y, n, &b);
    return cg_accum_all_(&b);
}
static cg_status cg_route_allgather_(cg_ex_ *ex) {
    cg_status s;
    CG_CO_BEGIN_(ex)
    CG_CO_AWAIT_(ex, 1, cg_allgather_begin_(ex, ex->own.packets, ex->mem.sizes, ex->mem.inbox));
    cg_inputs_from_gather_(ex);
    for (int q = 0; q < ex->transport.size; q++)
        if (q != ex->transport.rank)
            cg_accept_(ex, (const uint8_t *)ex->inputs.packet[q], ex->inputs.len[q], ex->n, cg_stripe_tag_(ex, 0, 0), 0,
                &ex->desc.op, q, q);
    if (ex->status != CG_OK) return ex->status;
    if (ex->desc.fold == CG_FOLD_VOTE) {
        s = cg_vote(
            ex->inputs.packet, ex->inputs.len, cg_ranks_(ex), ex->reduced.packet, ex->reduced.cap, &ex->reduced.len);
        return s == CG_OK ? cg_ex_decode_(ex, ex->reduced.packet, ex->reduced.len, 1.0f, 0.0f, ex->result, ex->n) : s;
    }
    if (ex->desc.fold == CG_FOLD_CONTRIBUTORS && ex->desc.op.select.id) return cg_mean_of_contributors_(ex);
    return ex->inputs.reader && ex->desc.model ? cg_sparse_cursors_step_model_(ex)
                                               : cg_inputs_sum_(ex, ex->result, ex->n);
    CG_CO_END_
}
