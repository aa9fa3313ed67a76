/* region: Ok-Topk, on which every rank sums a region of the vector and all together keep the k largest values

   Offers   cg_route_region_, cg_plan_region_, cg_write_region_
   Needs    coroutine, notes, lists, owner (tables), allgather (cg_sum_check_saturated_), core's reduce
   Touches  ex->region, ex->partial, ex->reduced, ex->dropped, ex->contrib, ex->note, ex->inputs, ex->mem.inbox and
            lists, ex->result
   Regions have about as many selected indices each: their bounds are the means over ranks of where each rank would put
   them. The owner of a region adds up the packets of it. The threshold is then found byte by byte, from histograms of
   all ranks; values equal to it survive in the order of regions, as many as there is room for. */

static void cg_plan_region_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    const uint64_t size = (uint64_t)ex->transport.size;
    cg_plan_lists_(ex, arena, size, size, 1);
    cg_plan_cuts_(ex, arena, scratch, size, 1, 1);
    ex->region.bounds = (uint64_t *)(void *)cg_arena_take_(arena, 8 * (size + 1));
    ex->region.send_offset = (uint64_t *)(void *)cg_arena_take_(arena, 8 * size);
    ex->region.ties = (uint64_t *)(void *)cg_arena_take_(arena, 8 * size);
    /* 256 counts of 4 bytes and a note from every rank */
    ex->region.histograms = cg_arena_take_(arena, cg_mul_sat_(size, CG_COUNT_BYTES_ + CG_NOTE_BYTES_));
}
/* out: N numbers of 8 bytes, where this rank would let every region begin so that each has as many of its indices. */
CG_NOINLINE_ cg_status cg_region_propose_(cg_ex_ *ex, uint8_t *out) {
    const size_t size = cg_ranks_(ex);
    cg_sparse_reader_ r;
    cg_info info;
    uint64_t index;
    size_t region = 1, i = 0;
    cg_status s = cg_reader_open_(ex, &r, NULL, ex->own.packets, (size_t)ex->own.offset[1], ex->n, &info);
    if (s != CG_OK) return s;
    for (; region < size && cg_sparse_next_index_(&r, &index); i++)
        while (region < size && i * size >= region * (size_t)info.k) cg_put64_(out + 8 * region++, index);
    while (region < size) cg_put64_(out + 8 * region++, ex->n);
    cg_put64_(out, 0);
    return CG_OK;
}
/* region.bounds from the proposals of the last allgather: means, rounded down, and summed without overflow. */
static void cg_region_bounds_(cg_ex_ *ex) {
    const size_t size = cg_ranks_(ex);
    for (size_t q = 0; q < size; q++) cg_note_get_(ex, cg_gathered_(ex, q), 8 * size, CG_ROUND_BOUNDS_, (int)q);
    for (size_t j = 0; ex->status == CG_OK && j < size; j++) {
        uint64_t quotients = 0, remainders = 0, before = j ? ex->region.bounds[j - 1] : 0;
        for (size_t q = 0; q < size; q++) {
            const uint64_t at = cg_get64_(cg_gathered_(ex, q) + 8 * j);
            if (at > ex->n) {
                cg_ex_fail_(ex, CG_E_CORRUPT, (int)q, "it proposes a region beyond the vector");
                return;
            }
            quotients += at / size;
            remainders += at % size;
        }
        ex->region.bounds[j] = quotients + remainders / size;
        if (ex->region.bounds[j] < before) {
            cg_ex_fail_(ex, CG_E_CORRUPT, -1, "regions do not ascend");
            return;
        }
    }
    ex->region.bounds[0] = 0;
    ex->region.bounds[size] = ex->n;
}
static size_t cg_region_n_(const cg_ex_ *ex, int q) {
    return (size_t)(ex->region.bounds[q + 1] - ex->region.bounds[q]);
}
/* own.packets cut by region into packets at out (dropped.cap bytes), one after the other; their lengths go to
   cg_own_table_. */
CG_NOINLINE_ cg_status cg_region_split_(cg_ex_ *ex, uint8_t *out) {
    cg_sparse_reader_ r;
    cg_list_ list;
    cg_info info;
    uint64_t index = 0, at = 0;
    float value = 0.0f;
    int more;
    cg_status s = cg_reader_open_(ex, &r, NULL, ex->own.packets, cg_own_packet_len_(ex, 0), ex->n, &info);
    if (s != CG_OK) return s;
    more = cg_sparse_next_(&r, &index, &value);
    for (int q = 0; q < ex->transport.size; q++) {
        const size_t n = cg_region_n_(ex, q);
        const cg_tag tag = cg_stripe_tag_(ex, q, 1);
        size_t len;
        cg_ex_list_(ex, 0, n, &list);
        for (; more && index < ex->region.bounds[q + 1]; more = cg_sparse_next_(&r, &index, &value))
            cg_list_append_(&list, index - ex->region.bounds[q], value);
        s = cg_sparse_packet_put_(0.0f, &tag, n, &list, out + (size_t)at, ex->dropped.cap - (size_t)at, &len);
        if (s != CG_OK) return s;
        cg_put64_(cg_own_table_(ex) + 8 * q, len);
        at += len;
    }
    return CG_OK;
}
/* out: 256 counts of 4 bytes. Of the values of this rank's region whose magnitude has the threshold's bytes above
   `byte` (3 is the highest), how many have which byte there. */
CG_NOINLINE_ cg_status cg_region_histogram_(cg_ex_ *ex, int byte, uint8_t *out) {
    uint32_t bins[256] = { 0 };
    cg_sparse_reader_ r;
    cg_info info;
    uint64_t index;
    float value;
    cg_status s = cg_reader_open_(
        ex, &r, NULL, ex->partial.buf[0], ex->partial.len, cg_region_n_(ex, ex->transport.rank), &info);
    if (s != CG_OK) return s;
    while (cg_sparse_next_(&r, &index, &value)) {
        const uint32_t magnitude_bits = cg_as_bits_(value) & CG_ABS_MASK_;
        if (byte == 3 || magnitude_bits >> 8 * (byte + 1) == ex->region.threshold_bits >> 8 * (byte + 1))
            bins[magnitude_bits >> 8 * byte & 255]++;
    }
    for (int b = 0; b < 256; b++) cg_put32_(out + 4 * b, bins[b]);
    return CG_OK;
}
/* From the histograms of the last allgather. */
static uint64_t cg_region_bin_count_(const cg_ex_ *ex, size_t q, int bin) {
    return cg_get32_(cg_gathered_(ex, q) + 4 * bin);
}
/* The next byte of the threshold: the largest such that fewer than region.remaining values are above it. remaining
   becomes how many may survive among those that share it; after the last byte ties[q] is that number in region q. */
static void cg_region_radix_step_(cg_ex_ *ex, int byte) {
    int bin = 255;
    for (; bin > 0; bin--) {
        uint64_t all = 0;
        for (size_t q = 0; q < cg_ranks_(ex); q++) all += cg_region_bin_count_(ex, q, bin);
        if (all >= ex->region.remaining) break;
        ex->region.remaining -= all;
    }
    ex->region.threshold_bits |= (uint32_t)bin << 8 * byte;
    for (size_t q = 0; byte == 0 && q < cg_ranks_(ex); q++) {
        const uint64_t equal = cg_region_bin_count_(ex, q, bin);
        ex->region.ties[q] = equal < ex->region.remaining ? equal : ex->region.remaining;
        ex->region.remaining -= ex->region.ties[q];
    }
}
/* partial.buf[0] = the sum of ex->inputs, packets of this rank's region. */
static void cg_region_reduce_(cg_ex_ *ex) {
    const int me = ex->transport.rank;
    cg_status s;
    for (int q = 0; q < ex->transport.size; q++)
        if (q != me)
            cg_accept_(ex, (const uint8_t *)ex->inputs.packet[q], ex->inputs.len[q], cg_region_n_(ex, me),
                cg_stripe_tag_(ex, me, 1), -1, NULL, q, q);
    if (ex->status != CG_OK) return;
    s = cg_reduce_(ex->inputs.packet, ex->inputs.len, cg_ranks_(ex), 0, ex->partial.buf[0],
        (size_t)cg_sparse_packet_bound_(ex->n, ex->mem.list_cap), &ex->partial.len, ex->mem.scratch,
        ex->mem.scratch_bytes);
    if (s == CG_OK) s = cg_sum_check_saturated_(ex->partial.buf[0], ex->partial.len);
    if (s != CG_OK) cg_ex_fail_(ex, s, me, cg_status_str(s));
}
/* The next byte of the threshold, from the histograms of the last allgather, if all are whole. */
static void cg_region_counts_read_(cg_ex_ *ex, int byte) {
    for (int q = 0; q < ex->transport.size; q++)
        cg_note_get_(ex, cg_gathered_(ex, (size_t)q), CG_COUNT_BYTES_, CG_ROUND_COUNTS_ + (uint32_t)byte, q);
    if (ex->status == CG_OK) cg_region_radix_step_(ex, byte);
}
/* reduced.packet = what survives of the sum of this rank's region; the rest becomes ex->dropped. */
static cg_status cg_region_cut_(cg_ex_ *ex) {
    const int me = ex->transport.rank;
    ex->dropped.any = 1;
    ex->dropped.flip = 0;
    return cg_threshold_split_(ex, ex->partial.buf[0], ex->partial.len, cg_region_n_(ex, me), ex->region.threshold_bits,
        ex->region.ties[me], cg_stripe_tag_(ex, me, 2), ex->reduced.packet, &ex->reduced.len, ex->dropped.buf[0],
        (size_t)cg_sparse_packet_bound_(ex->n, ex->mem.list_cap), (size_t)ex->region.bounds[me], &ex->dropped.len);
}
/* A step of this rank's own, unless it has failed before. */
#define CG_REGION_TRY_(ex, step)                                                                              \
  do {                                                                                                        \
    const cg_status step_status = (ex)->status == CG_OK ? (step) : CG_OK;                                     \
    if (step_status != CG_OK) cg_ex_fail_(ex, step_status, (ex)->transport.rank, cg_status_str(step_status)); \
  } while (0)
static cg_status cg_route_region_(cg_ex_ *ex) {
    const int me = ex->transport.rank, size = ex->transport.size;
    const size_t inbox_stride = ex->reduced.cap;
    uint8_t *own_table = cg_own_table_(ex);
    int to, from;
    CG_CO_BEGIN_(ex)
    CG_REGION_TRY_(ex, cg_region_propose_(ex, own_table));
    CG_CO_AWAIT_(ex, 1, cg_allgather_tables_begin_(ex, CG_ROUND_BOUNDS_));
    cg_region_bounds_(ex);
    CG_REGION_TRY_(ex, cg_region_split_(ex, ex->dropped.buf[0]));
    CG_CO_AWAIT_(ex, 2, cg_allgather_tables_begin_(ex, CG_ROUND_LENGTHS_));
    cg_lengths_read_(ex, inbox_stride);
    CG_CO_VERDICT_(ex, 3, CG_ROUND_LENGTHS_);
    ex->region.send_offset[0] = 0;
    for (int q = 1; q < size; q++)
        ex->region.send_offset[q] = ex->region.send_offset[q - 1] + cg_get64_(own_table + 8 * (q - 1));
    for (ex->co.i = 0; ex->co.i < size; ex->co.i++) {
        to = cg_wrap_(ex, me + ex->co.i);
        from = cg_wrap_(ex, me - ex->co.i);
        ex->inputs.packet[from] = ex->co.i ? ex->mem.inbox + (size_t)from * inbox_stride
                                           : ex->dropped.buf[0] + (size_t)ex->region.send_offset[me];
        if (ex->co.i)
            CG_CO_AWAIT_(ex, 4,
                cg_sendrecv_begin_(ex, ex->dropped.buf[0] + (size_t)ex->region.send_offset[to],
                    (size_t)cg_get64_(own_table + 8 * to), to, ex->mem.inbox + (size_t)from * inbox_stride,
                    ex->inputs.len[from], from));
    }
    cg_region_reduce_(ex);
    ex->region.threshold_bits = 0;
    ex->region.remaining = ex->plan.k;
    for (ex->co.i = 3; ex->co.i >= 0; ex->co.i--) {
        CG_REGION_TRY_(ex, cg_region_histogram_(ex, ex->co.i, ex->reduced.packet));
        cg_note_put_(ex, ex->reduced.packet, CG_COUNT_BYTES_, 0, CG_ROUND_COUNTS_ + (uint32_t)ex->co.i);
        CG_CO_AWAIT_(ex, 5,
            cg_allgather_equal_begin_(ex, ex->reduced.packet, CG_COUNT_BYTES_ + CG_NOTE_BYTES_, ex->region.histograms));
        cg_region_counts_read_(ex, ex->co.i);
    }
    CG_REGION_TRY_(ex, cg_region_cut_(ex));
    /* inbox has room for reduced.cap bytes from every rank, the most that a preamble may announce */
    CG_CO_ALLGATHER_(ex, 6, 0, ex->mem.inbox);
    cg_inputs_from_gather_(ex);
    for (int q = 0; q < size; q++)
        if (q != me)
            cg_accept_(ex, (const uint8_t *)ex->inputs.packet[q], ex->inputs.len[q], cg_region_n_(ex, q),
                cg_stripe_tag_(ex, q, 2), -1, NULL, q, q);
    cg_contribution_less_dropped_(ex);
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_write_region_(cg_ex_ *ex) {
    cg_status s = CG_OK;
    for (int q = 0; q < ex->transport.size && s == CG_OK; q++)
        s = cg_ex_decode_(ex, ex->inputs.packet[q], ex->inputs.len[q], ex->opening.result_factor, 0.0f,
            cg_at_mut_(ex->result, (size_t)ex->region.bounds[q]), cg_region_n_(ex, q));
    return s;
}
