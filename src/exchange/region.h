/* ---- >>region: Ok-Topk
   Regions with about as many indices each: their bounds are the means over ranks of where each rank would put them. */

CG_NOINLINE_ cg_status cg_region_propose_(cg_ex_ *x, uint8_t *out) {
    const size_t size = cg_ranks_(x);
    cg_packet_reader_ r;
    uint64_t index;
    float value;
    size_t next = 1;
    cg_status s = cg_packet_reader_open_(&r, x->own, (size_t)x->part_at[1], x->n);
    if (s != CG_OK) return s;
    while (next < size && cg_packet_reader_next_(&r, &index, &value))
        while (next < size && (r.next - 1) * size >= next * (size_t)r.d.info.k) cg_put64_(out + 8 * next++, index);
    while (next < size) cg_put64_(out + 8 * next++, x->n);
    cg_put64_(out, 0);
    return CG_OK;
}
static void cg_region_bounds_(cg_ex_ *x) {
    const size_t size = cg_ranks_(x);
    for (size_t j = 0; j < size; j++) {
        uint64_t whole = 0, rest = 0, before = j ? x->bounds[j - 1] : 0;
        for (size_t q = 0; q < size; q++) {
            const uint64_t at = cg_get64_(cg_gathered_(x, q) + 8 * j);
            if (at > x->n) {
                cg_ex_fail_(
                    x, at == UINT64_MAX ? CG_E_PEER : CG_E_CORRUPT, (int)q, "it proposes a region beyond the vector");
                return;
            }
            whole += at / size;
            rest += at % size;
        }
        x->bounds[j] = whole + rest / size;
        if (x->bounds[j] < before) {
            cg_ex_fail_(x, CG_E_CORRUPT, -1, "regions do not ascend");
            return;
        }
    }
    x->bounds[0] = 0;
    x->bounds[size] = x->n;
}
static size_t cg_region_n_(const cg_ex_ *x, int q) { return (size_t)(x->bounds[q + 1] - x->bounds[q]); }
/* What was sent, region by region, as packets one after the other; their places to part_at. */
CG_NOINLINE_ cg_status cg_region_split_(cg_ex_ *x, uint8_t *out) {
    cg_packet_reader_ r;
    cg_list_ list;
    cg_info info;
    uint64_t index = 0, at = 0;
    float value = 0.0f;
    int more;
    cg_status s = cg_packet_reader_open_(&r, x->own, (size_t)cg_own_packet_len_(x, 0), x->n);
    if (s != CG_OK) return s;
    more = cg_packet_reader_next_(&r, &index, &value);
    for (int q = 0; q < x->transport.size; q++) {
        const size_t n = cg_region_n_(x, q);
        size_t len;
        cg_list_wrap_(x, 0, n, &list);
        for (; more && index < x->bounds[q + 1]; more = cg_packet_reader_next_(&r, &index, &value))
            cg_list_append_(&list, index - x->bounds[q], value);
        info = cg_sparse_info_(x->desc.tag, n);
        s = cg_packet_from_list_(&info, n, &list, out + (size_t)at, x->lose_cap - (size_t)at, &len);
        if (s != CG_OK) return s;
        cg_put64_(x->notes + 8 * ((size_t)x->transport.size * cg_ranks_(x) + (size_t)q), len);
        at += len;
    }
    return CG_OK;
}
/* The next byte of the key: of those that share the bits so far, how many have which byte. */
CG_NOINLINE_ cg_status cg_region_histogram_(cg_ex_ *x, int byte, uint8_t *out) {
    uint32_t bins[256] = { 0 };
    cg_packet_reader_ r;
    uint64_t index;
    float value;
    cg_status s = cg_packet_reader_open_(&r, x->buf[0], x->current_len, cg_region_n_(x, x->transport.rank));
    if (s != CG_OK) return s;
    while (cg_packet_reader_next_(&r, &index, &value)) {
        const uint32_t m = cg_as_bits_(value) & CG_ABS_MASK_;
        if (byte == 3 || m >> 8 * (byte + 1) == x->key >> 8 * (byte + 1)) bins[m >> 8 * byte & 255]++;
    }
    for (int b = 0; b < 256; b++) cg_put32_(out + 4 * b, bins[b]);
    return CG_OK;
}
static uint64_t cg_region_bin_count_(const cg_ex_ *x, size_t q, int bin) {
    return cg_get32_(cg_gathered_(x, q) + 4 * bin);
}
/* left: how many of those with the bits so far may stay. After the last byte counts[q]: how many of the equal ones
   in region q. */
static void cg_region_radix_step_(cg_ex_ *x, int byte) {
    int bin = 255;
    for (; bin > 0; bin--) {
        uint64_t all = 0;
        for (size_t q = 0; q < cg_ranks_(x); q++) all += cg_region_bin_count_(x, q, bin);
        if (all >= x->left) break;
        x->left -= all;
    }
    x->key |= (uint32_t)bin << 8 * byte;
    for (size_t q = 0; byte == 0 && q < cg_ranks_(x); q++) {
        const uint64_t equal = cg_region_bin_count_(x, q, bin);
        x->counts[q] = equal < x->left ? equal : x->left;
        x->left -= x->counts[q];
    }
}
static void cg_region_reduce_(cg_ex_ *x) {
    const int me = x->transport.rank;
    cg_status s;
    for (int q = 0; q < x->transport.size; q++)
        if (q != me)
            cg_accept_(x, (const uint8_t *)x->packet[q], x->len[q], cg_region_n_(x, me), cg_stripe_tag_(x, 0, 0), -1,
                NULL, q, q);
    if (x->status != CG_OK) return;
    s = cg_reduce_(x->packet, x->len, cg_ranks_(x), 0, x->buf[0], (size_t)cg_sparse_bound_(x->n, x->list_room),
        &x->current_len, x->scratch, x->scratch_bytes);
    if (s == CG_OK) s = cg_sum_check_saturated_(x->buf[0], x->current_len);
    if (s != CG_OK) cg_ex_fail_(x, s, me, cg_status_str(s));
}
/* A failure between rounds of equal size has no packet to travel in: it goes as counts that cannot be. */
static void cg_region_mark_failed_(cg_ex_ *x, cg_status s, uint8_t *out, size_t bytes) {
    if (s != CG_OK) cg_ex_fail_(x, s, x->transport.rank, cg_status_str(s));
    if (x->status != CG_OK) memset(out, 0xff, bytes);
}
static cg_status cg_route_region_(cg_ex_ *x) {
    const int me = x->transport.rank, size = x->transport.size;
    const size_t ranks = cg_ranks_(x), slot = x->result_cap;
    uint8_t *mine = x->notes + 8 * ranks * ranks; /* 16 bytes for every rank */
    int to, from;
    cg_status s;
    CG_CO_BEGIN_(x)
    cg_region_mark_failed_(x, cg_region_propose_(x, mine), mine, 8 * ranks);
    CG_CO_AWAIT_(x, 1, cg_allgather_equal_begin_(x, mine, 8 * ranks, x->notes));
    cg_region_bounds_(x);
    if (x->status != CG_OK) return x->status; /* everybody has seen the same proposals */
    cg_region_mark_failed_(x, cg_region_split_(x, x->lose[0]), mine, 8 * ranks);
    CG_CO_AWAIT_(x, 2, cg_allgather_equal_begin_(x, mine, 8 * ranks, x->notes));
    for (int q = 0; q < size; q++) { /* len[q]: what comes from q */
        x->len[q] = (size_t)cg_get64_(cg_gathered_(x, (size_t)q) + 8 * (size_t)me);
        for (const uint8_t *row = cg_gathered_(x, (size_t)q), *p = row; p < row + 8 * ranks; p += 8)
            if (cg_get64_(p) > slot) cg_ex_fail_(x, CG_E_PEER, q, "it failed between two rounds");
    }
    if (x->status != CG_OK) return x->status; /* everybody has seen the same lengths */
    /* where what goes to each begins; later, how many of the equal ones it keeps */
    x->counts[0] = 0;
    for (int q = 1; q < size; q++) x->counts[q] = x->counts[q - 1] + cg_get64_(mine + 8 * (q - 1));
    for (x->t = 0; x->t < size; x->t++) {
        to = cg_wrap_(x, me + x->t);
        from = cg_wrap_(x, me - x->t);
        x->packet[from] = x->t ? x->in + (size_t)from * slot : x->lose[0] + (size_t)x->counts[me];
        if (x->t)
            CG_CO_AWAIT_(x, 3,
                cg_sendrecv_begin_(x, x->lose[0] + (size_t)x->counts[to], (size_t)cg_get64_(mine + 8 * to), to,
                    x->in + (size_t)from * slot, x->len[from], from));
    }
    cg_region_reduce_(x);
    x->key = 0;
    x->left = x->keep;
    for (x->t = 3; x->t >= 0; x->t--) {
        cg_region_mark_failed_(
            x, x->status == CG_OK ? cg_region_histogram_(x, x->t, x->result) : x->status, x->result, 1024);
        CG_CO_AWAIT_(x, 4, cg_allgather_equal_begin_(x, x->result, 1024, x->inbox));
        for (size_t q = 0; q < ranks; q++)
            if (cg_region_bin_count_(x, q, 255) == 0xffffffffu)
                cg_ex_fail_(x, CG_E_PEER, (int)q, "it failed between two rounds");
        if (x->status != CG_OK) return x->status;
        cg_region_radix_step_(x, x->t);
    }
    x->check = x->key;
    for (size_t q = 0; q < ranks; q++) x->check = (uint32_t)cg_mix64_(x->check + x->counts[q] + CG_GOLDEN_);
    if (x->status == CG_OK) {
        s = cg_threshold_split_(x, x->buf[0], x->current_len, cg_region_n_(x, me), x->key, x->counts[me], x->result,
            &x->result_len, x->lose[0], (size_t)cg_sparse_bound_(x->n, x->list_room), (size_t)x->bounds[me],
            &x->lost_len);
        x->lost = 1;
        x->flip = 0;
        if (s != CG_OK) cg_ex_fail_(x, s, me, cg_status_str(s));
    }
    /* room for the longest from everybody, whatever they announce */
    CG_CO_ALLGATHER_(x, 5, 0, x->in);
    cg_inputs_from_gather_(x);
    for (int q = 0; q < size; q++)
        if (q != me)
            cg_accept_(x, (const uint8_t *)x->packet[q], x->len[q], cg_region_n_(x, q), cg_stripe_tag_(x, 0, 0), -1,
                NULL, -1, q);
    if (x->status != CG_OK) return x->status;
    s = cg_contribution_less_dropped_(x);
    for (int q = 0; q < size && s == CG_OK; q++)
        s = cg_ex_decode_(
            x, x->packet[q], x->len[q], x->over, 0.0f, cg_at_mut_(x->y, (size_t)x->bounds[q]), cg_region_n_(x, q));
    return s;
    CG_CO_END_
}
