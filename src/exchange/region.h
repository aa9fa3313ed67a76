/* region: Ok-Topk, on which every rank sums a region of the vector and all together keep the k largest values

   Offers   cg_route_region_
   Needs    coroutine, lists, allgather (cg_sum_check_saturated_), core's reduce
   Touches  ex->region, ex->partial, ex->reduced, ex->dropped, ex->contrib, ex->preamble, ex->inputs, ex->mem.inbox and
            lists, ex->result
   Regions have about as many selected indices each: their bounds are the means over ranks of where each rank would put
   them. The owner of a region adds up the packets of it. The threshold is then found byte by byte, from histograms of
   all ranks; values equal to it survive in the order of regions, as many as there is room for. A digest of the outcome
   goes with the last preambles, because histograms have no checksum. */

/* out: N numbers of 8 bytes, where this rank would let every region begin so that each has as many of its indices. */
CG_NOINLINE_ cg_status cg_region_propose_(cg_ex_ *ex, uint8_t *out) {
    const size_t size = cg_ranks_(ex);
    cg_sparse_reader_ r;
    cg_info info;
    uint64_t index;
    size_t region = 1, i = 0;
    cg_status s = cg_sparse_reader_open_(&r, NULL, ex->own.packets, (size_t)ex->own.offset[1], ex->n, &info);
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
    for (size_t j = 0; j < size; j++) {
        uint64_t quotients = 0, remainders = 0, before = j ? ex->region.bounds[j - 1] : 0;
        for (size_t q = 0; q < size; q++) {
            const uint64_t at = cg_get64_(cg_gathered_(ex, q) + 8 * j);
            if (at > ex->n) {
                cg_ex_fail_(
                    ex, at == UINT64_MAX ? CG_E_PEER : CG_E_CORRUPT, (int)q, "it proposes a region beyond the vector");
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
/* own.packets cut by region into packets at out (dropped.cap bytes), one after the other; their lengths go to this
   rank's row behind the table in preamble.all. */
CG_NOINLINE_ cg_status cg_region_split_(cg_ex_ *ex, uint8_t *out) {
    cg_sparse_reader_ r;
    cg_list_ list;
    cg_info info;
    uint64_t index = 0, at = 0;
    float value = 0.0f;
    int more;
    cg_status s = cg_sparse_reader_open_(&r, NULL, ex->own.packets, cg_own_packet_len_(ex, 0), ex->n, &info);
    if (s != CG_OK) return s;
    more = cg_sparse_next_(&r, &index, &value);
    for (int q = 0; q < ex->transport.size; q++) {
        const size_t n = cg_region_n_(ex, q);
        size_t len;
        cg_list_in_mem_(ex, 0, n, &list);
        for (; more && index < ex->region.bounds[q + 1]; more = cg_sparse_next_(&r, &index, &value))
            cg_list_append_(&list, index - ex->region.bounds[q], value);
        s = cg_sparse_packet_put_(0.0f, &ex->desc.tag, n, &list, out + (size_t)at, ex->dropped.cap - (size_t)at, &len);
        if (s != CG_OK) return s;
        cg_put64_(ex->preamble.all + 8 * ((size_t)ex->transport.size * cg_ranks_(ex) + (size_t)q), len);
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
    cg_status s = cg_sparse_reader_open_(
        &r, NULL, ex->partial.buf[0], ex->partial.len, cg_region_n_(ex, ex->transport.rank), &info);
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
                cg_stripe_tag_(ex, 0, 0), -1, NULL, q, q);
    if (ex->status != CG_OK) return;
    s = cg_reduce_(ex->inputs.packet, ex->inputs.len, cg_ranks_(ex), 0, ex->partial.buf[0],
        (size_t)cg_sparse_packet_bound_(ex->n, ex->mem.list_cap), &ex->partial.len, ex->mem.scratch,
        ex->mem.scratch_bytes);
    if (s == CG_OK) s = cg_sum_check_saturated_(ex->partial.buf[0], ex->partial.len);
    if (s != CG_OK) cg_ex_fail_(ex, s, me, cg_status_str(s));
}
/* In rounds without packets a failed rank sends 0xff bytes: counts, lengths or bounds that cannot be. */
static void cg_region_mark_failed_(cg_ex_ *ex, cg_status s, uint8_t *out, size_t bytes) {
    if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
    if (ex->status != CG_OK) memset(out, 0xff, bytes);
}
static cg_status cg_route_region_(cg_ex_ *ex) {
    const int me = ex->transport.rank, size = ex->transport.size;
    const size_t ranks = cg_ranks_(ex), inbox_stride = ex->reduced.cap;
    uint8_t *own_row = ex->preamble.all + 8 * ranks * ranks; /* behind the table */
    int to, from;
    cg_status s;
    CG_CO_BEGIN_(ex)
    cg_region_mark_failed_(ex, cg_region_propose_(ex, own_row), own_row, 8 * ranks);
    CG_CO_AWAIT_(ex, 1, cg_allgather_equal_begin_(ex, own_row, 8 * ranks, ex->preamble.all));
    cg_region_bounds_(ex);
    if (ex->status != CG_OK) return ex->status; /* everybody has seen the same proposals */
    cg_region_mark_failed_(ex, cg_region_split_(ex, ex->dropped.buf[0]), own_row, 8 * ranks);
    CG_CO_AWAIT_(ex, 2, cg_allgather_equal_begin_(ex, own_row, 8 * ranks, ex->preamble.all));
    for (int q = 0; q < size; q++) {
        ex->inputs.len[q] = (size_t)cg_get64_(cg_gathered_(ex, (size_t)q) + 8 * (size_t)me);
        for (const uint8_t *row = cg_gathered_(ex, (size_t)q), *p = row; p < row + 8 * ranks; p += 8)
            if (cg_get64_(p) > inbox_stride) cg_ex_fail_(ex, CG_E_PEER, q, "it failed between two rounds");
    }
    if (ex->status != CG_OK) return ex->status; /* everybody has seen the same lengths */
    ex->region.send_offset[0] = 0;
    for (int q = 1; q < size; q++)
        ex->region.send_offset[q] = ex->region.send_offset[q - 1] + cg_get64_(own_row + 8 * (q - 1));
    for (ex->co.i = 0; ex->co.i < size; ex->co.i++) {
        to = cg_wrap_(ex, me + ex->co.i);
        from = cg_wrap_(ex, me - ex->co.i);
        ex->inputs.packet[from] = ex->co.i ? ex->mem.inbox + (size_t)from * inbox_stride
                                           : ex->dropped.buf[0] + (size_t)ex->region.send_offset[me];
        if (ex->co.i)
            CG_CO_AWAIT_(ex, 3,
                cg_sendrecv_begin_(ex, ex->dropped.buf[0] + (size_t)ex->region.send_offset[to],
                    (size_t)cg_get64_(own_row + 8 * to), to, ex->mem.inbox + (size_t)from * inbox_stride,
                    ex->inputs.len[from], from));
    }
    cg_region_reduce_(ex);
    ex->region.threshold_bits = 0;
    ex->region.remaining = ex->plan.k;
    for (ex->co.i = 3; ex->co.i >= 0; ex->co.i--) {
        cg_region_mark_failed_(ex,
            ex->status == CG_OK ? cg_region_histogram_(ex, ex->co.i, ex->reduced.packet) : ex->status,
            ex->reduced.packet, 1024);
        CG_CO_AWAIT_(ex, 4, cg_allgather_equal_begin_(ex, ex->reduced.packet, 1024, ex->region.histograms));
        for (size_t q = 0; q < ranks; q++)
            if (cg_region_bin_count_(ex, q, 255) == 0xffffffffu)
                cg_ex_fail_(ex, CG_E_PEER, (int)q, "it failed between two rounds");
        if (ex->status != CG_OK) return ex->status;
        cg_region_radix_step_(ex, ex->co.i);
    }
    ex->preamble.digest = ex->region.threshold_bits;
    for (size_t q = 0; q < ranks; q++)
        ex->preamble.digest = (uint32_t)cg_mix64_(ex->preamble.digest + ex->region.ties[q] + CG_GOLDEN_);
    if (ex->status == CG_OK) {
        s = cg_threshold_split_(ex, ex->partial.buf[0], ex->partial.len, cg_region_n_(ex, me),
            ex->region.threshold_bits, ex->region.ties[me], ex->reduced.packet, &ex->reduced.len, ex->dropped.buf[0],
            (size_t)cg_sparse_packet_bound_(ex->n, ex->mem.list_cap), (size_t)ex->region.bounds[me], &ex->dropped.len);
        ex->dropped.any = 1;
        ex->dropped.flip = 0;
        if (s != CG_OK) cg_ex_fail_(ex, s, me, cg_status_str(s));
    }
    /* inbox has room for reduced.cap bytes from every rank, the most that a preamble may announce */
    CG_CO_ALLGATHER_(ex, 5, 0, ex->mem.inbox);
    cg_inputs_from_gather_(ex);
    for (int q = 0; q < size; q++)
        if (q != me)
            cg_accept_(ex, (const uint8_t *)ex->inputs.packet[q], ex->inputs.len[q], cg_region_n_(ex, q),
                cg_stripe_tag_(ex, 0, 0), -1, NULL, -1, q);
    if (ex->status != CG_OK) return ex->status;
    s = cg_contribution_less_dropped_(ex);
    for (int q = 0; q < size && s == CG_OK; q++)
        s = cg_ex_decode_(ex, ex->inputs.packet[q], ex->inputs.len[q], ex->opening.result_factor, 0.0f,
            cg_at_mut_(ex->result, (size_t)ex->region.bounds[q]), cg_region_n_(ex, q));
    return s;
    CG_CO_END_
}
