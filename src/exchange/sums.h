/* ---- >>sums: shared and linear ---- */

static float *cg_payload_(const cg_ex_ *x) { return (float *)(void *)(x->result + CG_HEADER_BYTES); }
/* A packet's f32 values, times alpha, to be summed in place, and zeros up to `room`; NaN if this rank has failed,
   so that all will know. */
static void cg_load_payload_(cg_ex_ *x, const uint8_t *packet, size_t k, size_t room, float alpha) {
    const float *in = (const float *)(const void *)(packet + CG_HEADER_BYTES);
    float *v = cg_payload_(x);
    if (x->status != CG_OK) k = 0;
    memset(v + k, x->status == CG_OK ? 0 : 0xff, 4 * (room - k));
    if (CG_BIG_ENDIAN_) {
        memcpy(v, in, 4 * k);
        cg_floats_swap_le_(v, k);
        in = v;
    }
    cg_kernels_now_()->axpby(in, k, alpha, 0.0f, v, 0);
}
static void cg_payload_check_(cg_ex_ *x, const float *v, size_t n) {
    const uint32_t top = cg_kernels_now_()->absmax_bits(v, n);
    if (top > CG_INF_BITS_) cg_ex_fail_(x, CG_E_PEER, -1, "a rank has failed and sent NaN in place of its values");
    else if (top == CG_INF_BITS_)
        cg_ex_fail_(x, CG_E_NONFINITE, -1, "the sum over ranks is too large for a float: lower the loss scale");
}
/* The summed values under a header. */
static void cg_seal_payload_(cg_ex_ *x, const cg_info *info) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    uint8_t *values = x->result + CG_HEADER_BYTES;
    cg_floats_swap_le_(cg_payload_(x), info->value_bytes / 4);
    x->result_len = cg_packet_finalize_(kernels, info, x->result, cg_checksum_of_(kernels, values, info->value_bytes));
}
/* This rank's values at the shared indices: a packet that needs no support, and the floats to be summed. */
CG_NOINLINE_ cg_status cg_shared_values_(cg_ex_ *x, cg_info *info) {
    cg_list_ list;
    cg_info sparse = cg_sparse_info_(x->desc.tag, x->n);
    cg_packet_reader_ r;
    uint64_t index;
    float value;
    cg_status s = cg_packet_reader_open_(&r, x->in, x->move.in_len, x->n);
    if (s != CG_OK) return s;
    if (r.d.info.k > x->most) return CG_E_CORRUPT;
    cg_list_wrap_(x, 0, x->n, &list);
    r.next = 0;
    for (size_t i = 0, k = (size_t)r.d.info.k; i < k; i++) {
        if (i % CG_SPARSE_BATCH_ == 0) cg_index_get_per_value_(&r.index, r.at, cg_min_(CG_SPARSE_BATCH_, k - i));
        index = r.at[i % CG_SPARSE_BATCH_];
        value = cg_load_(x->x, (size_t)index);
        cg_list_append_(&list, index, value);
    }
    *info = sparse;
    return cg_packet_from_list_(info, x->n, &list, x->used, x->used_cap, &x->used_len);
}
static cg_op cg_shared_op_(const cg_ex_ *x) { /* of the leader's indices: a selection with values of no bits */
    cg_op op = x->desc.op;
    op.quantize.id = CG_QUANTIZE_MEAN;
    return op;
}
static void cg_shared_indices_(cg_ex_ *x) {
    const cg_op op = cg_shared_op_(x);
    cg_extra side = CG_ZERO;
    cg_status s;
    if (x->desc.side) side = *x->desc.side;
    s = cg_ex_compress_(x, &op, &x->desc.tag, &side, x->x, x->n, x->result, x->result_cap, &x->result_len);
    if (s != CG_OK) cg_ex_fail_(x, s, x->transport.rank, cg_status_str(s));
}
static cg_status cg_route_shared_(cg_ex_ *x) {
    const float alpha = cg_alpha_(x, (size_t)x->transport.rank);
    const cg_op indices = cg_shared_op_(x);
    cg_info info = CG_ZERO;
    cg_status s;
    CG_CO_BEGIN_(x)
    if (x->transport.rank == x->root) cg_shared_indices_(x);
    CG_CO_BROADCAST_(x, 1, 0, x->root);
    if (x->transport.rank != x->root)
        cg_accept_(x, x->result, x->result_len, x->n, cg_stripe_tag_(x, 0, 0), -1, &indices, x->root, x->root);
    if (x->status == CG_OK) {
        memcpy(x->in, x->result, x->result_len);
        x->move.in_len = x->result_len;
        s = cg_shared_values_(x, &info);
        if (s != CG_OK) cg_ex_fail_(x, s, x->transport.rank, cg_status_str(s));
    }
    if (x->status != CG_OK && x->result_len == 0) return x->status; /* the leader's failure: all know it */
    cg_load_payload_(x, x->used, (size_t)info.k, x->most, alpha);
    CG_CO_AWAIT_(x, 2, cg_allreduce_begin_(x, cg_payload_(x), x->most));
    cg_payload_check_(x, cg_payload_(x), x->most);
    if (x->status != CG_OK) return x->status;
    s = cg_header_get_(x->used, x->used_len, &info);
    if (s != CG_OK) return s;
    cg_floats_swap_le_(cg_payload_(x), (size_t)info.k);
    memcpy(
        x->result + CG_HEADER_BYTES + info.value_bytes, x->used + CG_HEADER_BYTES + info.value_bytes, info.index_bytes);
    x->result_len = cg_packet_finalize_(cg_kernels_now_(), &info, x->result,
        cg_checksum_of_(cg_kernels_now_(), x->result + CG_HEADER_BYTES, info.value_bytes + info.index_bytes));
    x->report.used = x->used;
    return cg_ex_decode_(x, x->result, x->result_len, 1.0f, 0.0f, x->y, x->n);
    CG_CO_END_
}
/* PowerSGD: P = MQ summed and made orthonormal, Q = M^T P summed; the factors stand in the result's payload. */
static void cg_powersgd_factor_(cg_ex_ *x, int second, float alpha) {
    const cg_op *op = &x->desc.op;
    const size_t rows = cg_matrix_rows_(op), cols = cg_matrix_cols_(op);
    const unsigned rank = cg_matrix_r_(op);
    double *pw = x->work, *qw = pw + rank * rows, norm = 0.0;
    float *p = cg_payload_(x), *q = p + rows * rank;
    const cg_kernels_ *k = cg_kernels_now_();
    int warm = 0;
    if (!second) {
        for (size_t i = 0; x->desc.warm && i < rank * cols; i++) {
            qw[i] = (double)cg_load_(x->desc.warm, i);
            warm |= (cg_load_bits_(x->desc.warm, i) & CG_ABS_MASK_) != 0;
        }
        if (!warm) cg_lowrank_init_q_(cg_shared_key_(&x->desc.tag), cols, rank, qw);
        cg_matrix_times_(k, x->x, rows, cols, qw, rank, pw);
        for (size_t i = 0; i < rows * rank; i++) p[i] = (float)(pw[i % rank * rows + i / rank] * (double)alpha);
        return;
    }
    for (size_t i = 0; i < rows * rank; i++) pw[i % rank * rows + i / rank] = (double)p[i];
    if (!cg_gram_schmidt_(pw, rows, rank, &norm)) cg_ex_fail_(x, CG_E_NONFINITE, -1, cg_status_str(CG_E_NONFINITE));
    cg_lowrank_store_p_(pw, rows, rank, 1.0, p, rank);
    cg_lowrank_compute_q_(k, x->x, rows, cols, p, rank, rank, qw);
    for (size_t i = 0; i < cols * rank; i++) q[i] = (float)(qw[i] * (double)alpha);
}
static cg_status cg_powersgd_finish_(cg_ex_ *x) {
    const cg_op *op = &x->desc.op;
    const size_t rows = cg_matrix_rows_(op), cols = cg_matrix_cols_(op);
    const unsigned rank = cg_matrix_r_(op);
    const float *q = cg_payload_(x) + rows * rank;
    /* of a sum: this rank's share */
    const float mine = x->desc.fold == CG_FOLD_SUM ? (float)(1.0 / x->weights) : 1.0f;
    cg_info info = CG_ZERO;
    cg_status s;
    for (size_t i = 0; x->desc.warm && i < cols * rank; i++) cg_store_(x->desc.warm, i, q[i]);
    info.op = *op;
    info.tag = x->desc.tag;
    info.n = info.drawn = x->n;
    info.k = cg_transformed_n_(op, x->n);
    info.value_bytes = 4 * (size_t)info.k;
    cg_seal_payload_(x, &info);
    s = cg_ex_decode_(x, x->result, x->result_len, 1.0f, 0.0f, x->y, x->n);
    if (mine != 1.0f) { /* the result is in x; now its packet becomes the share */
        cg_floats_swap_le_(cg_payload_(x), (size_t)info.k);
        for (size_t i = 0; i < cols * rank; i++) cg_payload_(x)[rows * rank + i] = cg_times_(mine, q[i]);
        cg_seal_payload_(x, &info);
    }
    x->report.used = x->result;
    x->used_len = x->result_len;
    return s;
}
static cg_status cg_route_linear_(cg_ex_ *x) {
    const cg_op *op = &x->desc.op;
    const float alpha = cg_alpha_(x, (size_t)x->transport.rank);
    const size_t rows = cg_is_matrix_op_(op) ? cg_matrix_rows_(op) * cg_matrix_r_(op) : 0,
                 values = (size_t)cg_transformed_n_(op, cg_sampled_n_(op, x->n, NULL));
    CG_CO_BEGIN_(x)
    if (cg_is_matrix_op_(op)) {
        cg_powersgd_factor_(x, 0, alpha);
        CG_CO_AWAIT_(x, 1, cg_allreduce_begin_(x, cg_payload_(x), rows));
        cg_payload_check_(x, cg_payload_(x), rows);
        if (x->status == CG_OK) cg_powersgd_factor_(x, 1, alpha);
        /* NaN: nobody waits for this rank */
        if (x->status != CG_OK) memset(cg_payload_(x) + rows, 0xff, 4 * (values - rows));
        CG_CO_AWAIT_(x, 2, cg_allreduce_begin_(x, cg_payload_(x) + rows, values - rows));
        cg_payload_check_(x, cg_payload_(x) + rows, values - rows);
        return x->status == CG_OK ? cg_powersgd_finish_(x) : x->status;
    }
    cg_load_payload_(x, x->own, values, values, alpha);
    CG_CO_AWAIT_(x, 3, cg_allreduce_begin_(x, cg_payload_(x), values));
    cg_payload_check_(x, cg_payload_(x), values);
    if (x->status != CG_OK) return x->status;
    memcpy(x->result, x->own, CG_HEADER_BYTES); /* of an equal packet; its checksum is not looked at again */
    cg_floats_swap_le_(cg_payload_(x), values);
    return cg_ex_decode_(x, x->result, (size_t)x->part_at[1], 1.0f, 0.0f, x->y, x->n);
    CG_CO_END_
}
