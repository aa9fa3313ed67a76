/* allgather: the route on which every rank gets all packets and adds them up itself

   Offers   cg_route_allgather_, cg_write_allgather_, cg_sum_check_saturated_
   Needs    coroutine, accumulate, lists, core's sparse and reduce
   Touches  ex->inputs, ex->reduced, ex->mem.inbox, ex->mem.contributors, ex->result or desc.model
   Sparse f32 packets are read side by side, so that the sum is put together in the L1 cache and written to memory once,
   or goes straight into the model. */

/* CG_E_NONFINITE if an f32 value of a sum is the largest float: sums of packets saturate there, and such a value
   divided by N is no mean. */
static cg_status cg_sum_check_saturated_(const uint8_t *sum, size_t len) {
    cg_info info;
    const cg_status s = cg_inspect(sum, len, &info);
    if (s != CG_OK || info.op.quantize.id) return s;
    return cg_floats_absmax_bits_le_(sum + CG_HEADER_BYTES, info.value_bytes / 4) >= CG_INF_BITS_ - 1 ? CG_E_NONFINITE
                                                                                                      : CG_OK;
}
/* counts[i] = how many of ex->inputs have the i-th index of the sum (ex->reduced), which has k. Indices ascend in
   all. */
CG_NOINLINE_ cg_status cg_count_contributors_(const cg_ex_ *ex, size_t k, uint32_t *counts) {
    const cg_extra side = cg_decode_extra_(ex);
    cg_sparse_reader_ sum, one;
    cg_info info;
    memset(counts, 0, 4 * k);
    for (size_t q = 0; q < cg_ranks_(ex); q++) {
        uint64_t sum_index, index = 0;
        cg_status s = cg_reader_open_(ex, &sum, NULL, ex->reduced.packet, ex->reduced.len, ex->n, &info);
        int more;
        if (s == CG_OK) s = cg_reader_open_(ex, &one, &side, ex->inputs.packet[q], ex->inputs.len[q], ex->n, &info);
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
/* reduced.packet = the sum of ex->inputs, each value divided by the number of ranks that sent one there. */
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
    return CG_OK;
}
/* Adds alpha times the pairs with indices in [base, end) to chunk, from where the reader stands; first: puts them
   there. touched: gets a bit for every index, or NULL; model, if touched is given, is prefetched where it will be
   stepped. */
CG_INLINE_ void cg_reader_add_(cg_sparse_reader_ *r, int first, float alpha, uint64_t base, uint64_t end, float *chunk,
    uint64_t *touched, const float *model) {
    for (;; r->window_next = r->window_n = 0) {
        size_t i = r->window_next;
        if (!r->window_n) {
            if (!cg_sparse_reader_fill_(r)) return;
            if (touched)
                for (size_t j = 0; j < r->window_n; j++) CG_PREFETCH_(cg_at_(model, (size_t)r->window[j]));
        }
        for (; i < r->window_n && r->window[i] < end; i++, r->values += 4) {
            const float v = cg_times_(alpha, cg_as_float_(cg_get32_(r->values)));
            const size_t j = (size_t)(r->window[i] - base);
            chunk[j] = first ? v : cg_plus_(chunk[j], v);
            if (touched) touched[j / 64] |= (uint64_t)1 << j % 64;
        }
        r->window_next = i;
        if (i < r->window_n) return;
    }
}
/* Readers of all ex->inputs. */
static cg_status cg_readers_open_(cg_ex_ *ex, size_t n) {
    cg_status s = CG_OK;
    for (size_t q = 0; q < cg_ranks_(ex) && s == CG_OK; q++) {
        cg_info info;
        if (ex->inputs.opened) cg_sparse_reader_open_(&ex->inputs.reader[q], &ex->inputs.decoder[q]);
        else s = cg_reader_open_(ex, &ex->inputs.reader[q], NULL, ex->inputs.packet[q], ex->inputs.len[q], n, &info);
    }
    return s;
}
/* y = the sum over ranks, each with its factor, in rank order. */
CG_NOINLINE_ cg_status cg_readers_sum_(cg_ex_ *ex, float *y, size_t n) {
    const int stream = n >= (size_t)1 << 22 && (uintptr_t)y % 16 == 0;
    const cg_status s = cg_readers_open_(ex, n);
    float chunk[2 * CG_CHUNK_];
    if (s != CG_OK) return s;
    memset(chunk, 0, sizeof chunk);
    for (size_t base = 0, many; base < n; base += many) {
        many = cg_min_(2 * CG_CHUNK_, n - base);
        for (size_t q = 0; q < cg_ranks_(ex); q++)
            cg_reader_add_(&ex->inputs.reader[q], q == 0, cg_alpha_(ex, q), base, base + many, chunk, NULL, NULL);
        cg_move_zero_(chunk, many, cg_at_mut_(y, base), stream, base + many == n);
    }
    return CG_OK;
}
/* The same sum as a step of desc.model, which changes only where some rank has sent a value; ex->result is not written.
   desc.model becomes NULL: the step is taken. */
CG_NOINLINE_ cg_status cg_readers_step_model_(cg_ex_ *ex) {
    const cg_status s = cg_readers_open_(ex, ex->n);
    float chunk[2 * CG_CHUNK_];
    uint64_t touched[2 * CG_CHUNK_ / 64];
    if (s != CG_OK) return s;
    memset(chunk, 0, sizeof chunk);
    memset(touched, 0, sizeof touched);
    for (size_t base = 0; base < ex->n; base += 2 * CG_CHUNK_) {
        for (size_t q = 0; q < cg_ranks_(ex); q++)
            cg_reader_add_(&ex->inputs.reader[q], q == 0, cg_alpha_(ex, q), base, base + 2 * CG_CHUNK_, chunk, touched,
                ex->desc.model);
        for (size_t w = 0; w < 2 * CG_CHUNK_ / 64; w++)
            for (; touched[w]; touched[w] &= touched[w] - 1) {
                const size_t j = 64 * w + cg_ctz_(touched[w]);
                cg_model_step_at_(&ex->desc, base + j, chunk[j]);
                chunk[j] = 0.0f;
            }
    }
    ex->desc.model = NULL;
    return CG_OK;
}
/* y = the weighted sum of ex->inputs, by whichever way is faster. */
static cg_status cg_inputs_sum_(cg_ex_ *ex, float *y, size_t n) {
    cg_accum_ b;
    if (ex->inputs.reader) return cg_readers_sum_(ex, y, n);
    cg_accum_ranks_(ex, y, n, &b);
    return cg_accum_all_(&b);
}
/* reduced.packet = the majority of ex->inputs. */
static cg_status cg_vote_of_inputs_(cg_ex_ *ex) {
    return cg_vote(
        ex->inputs.packet, ex->inputs.len, cg_ranks_(ex), ex->reduced.packet, ex->reduced.cap, &ex->reduced.len);
}
/* Does the fold make one packet of all, in reduced.packet? Over contributors only of a selection. */
static int cg_folds_to_packet_(const cg_ex_ *ex) {
    return cg_fold_row_of_(ex->desc.fold)->reduce &&
        (!cg_fold_has_(ex, CG_FOLD_NEEDS_PLACES_) || ex->desc.op.select.id);
}
static const char *cg_refuse_vote_(const cg_ex_ *ex) {
    if (!(ex->plan.traits & CG_IS_SIGN_) || ex->plan.traits & (CG_IS_SELECTION_ | CG_IS_PER_RANK_ | CG_IS_PRIVATE_))
        return "a vote is over cg_sign packets of values in the same places";
    if (!cg_route_has_(ex, CG_ROUTE_PACKETS_MEET_)) return "votes are counted by allgather, server or scatter";
    if (ex->desc.weight != 0.0f || ex->desc.back) return "a vote has no weights and no second operator";
    return NULL;
}
static const char *cg_refuse_contributors_(const cg_ex_ *ex) {
    if (!cg_route_has_(ex, CG_ROUTE_MEETS_EVERYWHERE_)) return "contributors are counted by allgather";
    if (ex->desc.weight != 0.0f) return "a mean over contributors has no weights";
    if (ex->plan.traits & CG_NEEDS_SUPPORT_) return "given indices: every rank contributes; take the mean";
    if (ex->plan.traits & CG_IS_PRIVATE_)
        return "private samples and rotations: ranks send other values, or mixtures of them; take the mean";
    if (ex->plan.traits & CG_IS_PER_RANK_)
        return "PermK: one rank contributes to every value; take the mean (scaled) or the sum (unscaled)";
    return NULL;
}
static void cg_plan_allgather_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    const uint64_t size = (uint64_t)ex->transport.size;
    ex->mem.inbox = cg_arena_take_(arena, cg_mul_sat_(size, ex->plan.packet_room));
    cg_robust_plan_(ex, arena);
    if (ex->plan.has_pairs && !cg_fold_has_(ex, CG_FOLD_IS_ROBUST_))
        ex->inputs.reader = (cg_sparse_reader_ *)(void *)cg_arena_take_(
            arena, cg_mul_sat_(size, sizeof(cg_sparse_reader_)));
    ex->reduced.cap = cg_folds_to_packet_(ex) ? ex->plan.packet_room : 0;
    if (cg_folds_to_packet_(ex) && cg_fold_has_(ex, CG_FOLD_NEEDS_PLACES_)) {
        ex->reduced.cap = (size_t)cg_sum_bound_(ex, ex->n, size);
        cg_max_update_(scratch, cg_sum_scratch_(&ex->desc.op, ex->n, size));
        ex->mem.contributors = (uint32_t *)(void *)cg_arena_take_(
            arena, cg_mul_sat_(4, cg_mul_sat_(size, ex->plan.max_selected)));
    }
    ex->reduced.packet = cg_arena_take_(arena, ex->reduced.cap);
}
static cg_status cg_route_allgather_(cg_ex_ *ex) {
    cg_status s;
    CG_CO_BEGIN_(ex)
    cg_own_failure_put_(ex);
    CG_CO_AWAIT_(ex, 1, cg_allgather_begin_(ex, ex->own.packets, ex->mem.sizes, ex->mem.inbox));
    cg_inputs_from_gather_(ex);
    for (int q = 0; q < ex->transport.size; q++) {
        const uint8_t *packet = (const uint8_t *)ex->inputs.packet[q];
        const cg_extra side = cg_decode_extra_(ex);
        cg_decoder_ *d = &ex->inputs.decoder[q];
        s = cg_ex_header_(ex, d, packet, ex->inputs.len[q]);
        /* a packet of nothing may be padded */
        if (s == CG_OK && cg_is_empty_packet_(ex, &d->info)) ex->inputs.len[q] = d->info.packet_bytes;
        if (q != ex->transport.rank)
            cg_accept_opened_(
                ex, d, s, packet, ex->inputs.len[q], ex->n, cg_stripe_tag_(ex, 0, 0), 0, &ex->desc.op, q, q);
        else if (s == CG_OK) s = cg_packet_open_(d, &side, packet, ex->inputs.len[q], 0);
        if (s != CG_OK && q == ex->transport.rank) cg_ex_fail_(ex, s, q, cg_status_str(s));
    }
    ex->inputs.opened = ex->status == CG_OK;
    if (ex->status != CG_OK || !cg_folds_to_packet_(ex)) return CG_OK;
    s = cg_fold_row_of_(ex->desc.fold)->reduce(ex);
    if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_write_allgather_(cg_ex_ *ex) {
    if (cg_folds_to_packet_(ex))
        return cg_ex_decode_(ex, ex->reduced.packet, ex->reduced.len, 1.0f, 0.0f, ex->result, ex->n);
    return ex->inputs.reader && ex->desc.model ? cg_readers_step_model_(ex) : cg_inputs_sum_(ex, ex->result, ex->n);
}
