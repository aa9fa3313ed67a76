/* reduce: packets with the same segments added segment by segment, or voted on

   Offers   cg_reduce_segments_plan_, cg_reduce_segments_, cg_vote_segments_
   Needs    base, kernels (vote), packet, segments (table, decode), reduce
   Touches  the caller's output and scratch
   Every segment is added as packets without segments are; scratch has a cursor for each packet. Operators of sums are
   put down in scratch, as those of different segments are seldom different. */

enum { CG_REDUCE_MAX_ = 256 };

typedef struct cg_segments_sum_ {
    cg_info *info; /* count of each */
    cg_segment_cursor_ *cursor;
    cg_op *op; /* of sums: the first is that of the header */
    uint64_t op_cap, op_count;
    uint8_t *lists;
    uint64_t room;        /* of the table */
    uint64_t bound, most; /* bytes of the sum; values of the largest list */
} cg_segments_sum_;

/* Bytes of scratch, at any alignment; p NULL: only these. */
static uint64_t cg_segments_sum_layout_(cg_segments_sum_ *sum, size_t count, uint8_t *p) {
    const uint64_t infos = 8 * ((sizeof(cg_info) + 7) / 8) * (uint64_t)count,
                   cursors = 8 * ((sizeof(cg_segment_cursor_) + 7) / 8) * (uint64_t)count,
                   ops = cg_mul_sat_(8 * ((sizeof(cg_op) + 7) / 8), sum->op_cap),
                   list = cg_add_sat_(cg_mul_sat_(8, cg_add_sat_(sum->most, CG_SLACK_)), 8 * ((sum->most >> 32) + 2));
    if (p) {
        p += (64 - ((uintptr_t)p & 63)) % 64;
        sum->info = (cg_info *)(void *)p;
        p += (size_t)infos;
        sum->cursor = (cg_segment_cursor_ *)(void *)p;
        p += (size_t)cursors;
        sum->op = (cg_op *)(void *)p;
        sum->lists = p + (size_t)ops;
    }
    return cg_add_sat_(cg_add_sat_(infos + cursors + 192, ops), cg_mul_sat_(2, list));
}
/* Opens the table of a packet of `len` bytes; its header to *info. */
static cg_status cg_segments_summand_open_(const void *packet, size_t len, cg_info *info, cg_segment_cursor_ *c) {
    cg_plan_ plan;
    cg_status s = packet ? cg_header_get_((const uint8_t *)packet, len, info, &plan) : CG_E_ARG;
    if (s != CG_OK) return s;
    if (info->packet_bytes != len) return CG_E_CORRUPT;
    if (!info->segments) return CG_E_MISMATCH;
    return cg_segments_open_(c, info, plan.traits, (const uint8_t *)packet);
}
/* Reads all tables, each beside the first: can the packets be added, and what does their sum take? */
static cg_status cg_segments_sum_plan_(
    const void *const *packets, const size_t *lens, size_t count, cg_segments_sum_ *sum) {
    uint64_t kept = 0, universe = 0, dense = 0, n = 0, sparse_segments = 0, segments = 0;
    int any_private = 0;
    cg_reducer_ pair;
    const cg_op any = cg_threshold(0.0f);
    memset(sum, 0, sizeof *sum);
    if (count > CG_REDUCE_MAX_) return CG_E_UNSUPPORTED;
    for (size_t j = 0; j < count; j++) {
        cg_info first_info, info, a, b;
        cg_plan_ first_plan, plan;
        cg_segment_cursor_ first, c;
        cg_status s = cg_segments_summand_open_(packets[0], lens[0], &first_info, &first);
        if (s == CG_OK) s = cg_segments_summand_open_(packets[j], lens[j], &info, &c);
        if (s != CG_OK) return s;
        if (info.segments != first_info.segments || info.n != first_info.n) return CG_E_MISMATCH;
        segments = info.segments;
        n = info.n;
        if (j == 0) {
            sum->op_cap = segments <= 16 ? 16 : 4 * (first.op_count + 2);
            sum->room = 10 + (uint64_t)CG_SEGMENT_OP_BYTES_ * sum->op_cap;
        }
        while (c.left) {
            s = cg_segment_next_(&first, &a, &first_plan);
            if (s == CG_OK) s = cg_segment_next_(&c, &b, &plan);
            if (s == CG_OK && plan.traits & (CG_IS_MATRIX_ | CG_IS_PER_RANK_)) s = CG_E_UNSUPPORTED;
            /* privately sampled or rotated values are decoded before they are added */
            pair.mode = (first_plan.traits | plan.traits) & CG_IS_PRIVATE_ ? CG_REDUCE_DECODED_ : CG_REDUCE_FLOATS_;
            if (s == CG_OK && pair.mode == CG_REDUCE_DECODED_) {
                any_private = 1;
                if ((first_plan.traits | plan.traits) & CG_NEEDS_SUPPORT_) s = CG_E_UNSUPPORTED;
            }
            if (s == CG_OK) s = cg_reducer_match_(&pair, &a, &b);
            if (s != CG_OK) return s;
            if (plan.traits & CG_IS_USER_CODEC_) return CG_E_VERSION;
            if (cg_has_indices_(&plan)) kept = cg_add_sat_(kept, b.k);
            if (j) continue;
            sum->room = cg_add_sat_(sum->room, 5 + 3 * cg_varint_bytes_(plan.transformed_n | plan.n) + 5 + 8);
            if (cg_has_indices_(&plan)) {
                sparse_segments++;
                universe = cg_add_sat_(universe, plan.transformed_n);
                if (plan.transformed_n > sum->most) sum->most = plan.transformed_n;
            } else dense = cg_add_sat_(dense, cg_add_sat_(cg_mul_sat_(6, b.k), 16));
        }
        if (!cg_segments_end_(&first) || !cg_segments_end_(&c)) return CG_E_CORRUPT;
    }
    if (kept > universe) kept = universe;
    sum->room = cg_add_sat_(sum->room, 3) & ~(uint64_t)3;
    sum->bound = cg_add_sat_(cg_add_sat_(CG_HEADER_BYTES, sum->room), cg_add_sat_(dense, cg_mul_sat_(4, kept)));
    /* as in cg_segments_global_bound_, a section that is cut takes hardly more */
    sum->bound = cg_add_sat_(sum->bound,
        cg_add_sat_(universe ? cg_index_bound_(&any, universe, kept) : 0, cg_mul_sat_(16, sparse_segments)));
    if (any_private && count)
        sum->bound = cg_add_sat_(sum->bound, cg_add_sat_(cg_mul_sat_(4, n), cg_mul_sat_(16, segments)));
    return CG_OK;
}
static cg_status cg_reduce_segments_plan_(
    const void *const *packets, const size_t *lens, size_t count, size_t *bound, size_t *scratch) {
    cg_segments_sum_ sum;
    const cg_status s = cg_segments_sum_plan_(packets, lens, count, &sum);
    *bound = *scratch = 0;
    if (s != CG_OK) return s;
    *bound = cg_size_or_zero_(sum.bound);
    *scratch = cg_size_or_zero_(cg_segments_sum_layout_(&sum, count, NULL));
    return *bound && *scratch ? CG_OK : CG_E_ARG;
}
/* The number of op among the operators of sums, where it is put if it is new; sum->op_cap: there is no room. */
static uint64_t cg_segments_sum_op_(cg_segments_sum_ *sum, const cg_op *op) {
    cg_op same = *op;
    uint64_t j = 0;
    if (cg_has_(op, CG_NEEDS_SUPPORT_)) same.select.size = 0; /* the entry says which support */
    while (j < sum->op_count && !cg_same_stages_(&sum->op[j], &same)) j++;
    if (j == sum->op_count && j < sum->op_cap) sum->op[sum->op_count++] = same;
    return j;
}
static cg_status cg_reduce_segments_(const void *const *packets, const size_t *lens, size_t count, uint8_t *out,
    size_t cap, size_t *len, uint8_t *scratch, size_t scratch_bytes) {
    cg_segments_sum_ sum;
    cg_info whole;
    uint8_t *body = out + CG_HEADER_BYTES, *table, *entries, *at;
    cg_reducer_ reducer;
    cg_plan_ plan;
    uint32_t flags, tensor;
    size_t ops_bytes;
    cg_status s = cg_segments_sum_plan_(packets, lens, count, &sum);
    if (s != CG_OK) return s;
    if (cg_segments_sum_layout_(&sum, count, NULL) > scratch_bytes || cap < CG_HEADER_BYTES ||
        sum.room > cap - CG_HEADER_BYTES)
        return CG_E_CAPACITY;
    cg_segments_sum_layout_(&sum, count, scratch);
    for (size_t j = 0; j < count && s == CG_OK; j++) {
        cg_decoder_ d;
        s = cg_header_get_((const uint8_t *)packets[j], lens[j], &d.info, &d.plan);
        if (s == CG_OK) s = cg_decoder_open_rest_(&d, NULL, packets[j], lens[j], NULL, 1);
        d.plan.traits &= ~(uint32_t)CG_NEEDS_SUPPORT_; /* packets of one support add without it */
        if (s == CG_OK) s = cg_verify_(&d, NULL);
        if (s == CG_OK) s = cg_segments_summand_open_(packets[j], lens[j], &sum.info[j], &sum.cursor[j]);
    }
    if (s != CG_OK) return s;
    whole = sum.info[0];
    flags = (whole.segment_flags & CG_SEGMENTS_TENSORS_) | CG_SEGMENTS_MIXED_;
    tensor = whole.tag.tensor;
    whole.drawn = whole.k = 0;
    whole.threshold = 0.0f;
    table = at = entries = out + (cap - (size_t)sum.room) + 10 + CG_SEGMENT_OP_BYTES_ * (size_t)sum.op_cap;
    for (uint32_t i = 0; i < whole.segments; i++) {
        uint64_t number;
        s = cg_reducer_open_(&reducer, packets, lens, count, 0, sum.cursor);
        if (s == CG_OK) s = cg_reduce_body_(&reducer, body, (size_t)(out + (cap - (size_t)sum.room) - body), sum.lists);
        if (s != CG_OK) return s;
        if (reducer.mode != CG_REDUCE_SPARSE_) reducer.info.index_code = 0;
        number = cg_segments_sum_op_(&sum, &reducer.info.op);
        if (number == sum.op_cap) return CG_E_UNSUPPORTED;
        at = cg_segment_put_(at, &reducer.info, cg_op_traits_(&reducer.info.op),
            number ? (uint32_t)number + CG_SEGMENT_OPS - 1 : (uint32_t)CG_SEGMENT_OP, reducer.info.tag.tensor - tensor,
            flags, 0);
        tensor = reducer.info.tag.tensor + 1;
        body += reducer.info.value_bytes + reducer.info.index_bytes;
        whole.drawn += reducer.info.drawn;
        whole.k += reducer.info.k;
        for (size_t j = 0; j < count; j++) {
            cg_info unused;
            s = cg_segment_next_(&sum.cursor[j], &unused, &plan);
            if (s != CG_OK) return s;
        }
    }
    /* the operators go before the entries, which end where there is room for all */
    ops_bytes = cg_varint_bytes_(sum.op_count - 1) + CG_SEGMENT_OP_BYTES_ * (size_t)(sum.op_count - 1);
    table -= ops_bytes;
    entries = cg_varint_put_(table, sum.op_count - 1);
    for (uint64_t j = 1; j < sum.op_count; j++, entries += CG_SEGMENT_OP_BYTES_)
        for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++)
            cg_stage_put_(entries + 12 * slot, cg_op_stage_const_(&sum.op[j], slot));
    while ((size_t)(at - table) % 4) *at++ = 0;
    memmove(body, table, (size_t)(at - table));
    whole.op = sum.op[0];
    whole.op.k = 0;
    whole.segment_flags = flags;
    whole.value_bytes = (size_t)(body - out) - CG_HEADER_BYTES;
    whole.index_bytes = (size_t)(at - table);
    *len = cg_packet_seal_(&whole, out);
    return CG_OK;
}
static int cg_same_bytes_(const uint8_t *a, const uint8_t *b, size_t bytes) {
    size_t i = 0;
    while (i < bytes && a[i] == b[i]) i++;
    return i == bytes;
}
/* Signs alone: then bodies of equal tables are bits at equal places, and those that fill words are zeros in all. */
static cg_status cg_vote_segments_(
    const void *const *packets, const size_t *lens, size_t count, uint8_t *out, size_t cap, size_t *len) {
    enum { MAX_PACKETS = 1024, TILE = 4096 };
    const cg_kernels_ *kernels = cg_kernels_now_();
    const uint8_t *in[MAX_PACKETS];
    cg_info whole, info;
    cg_plan_ plan;
    cg_segment_cursor_ c;
    cg_status s = CG_OK;
    if (count > MAX_PACKETS) return CG_E_UNSUPPORTED;
    for (size_t j = 0; j < count; j++) {
        const uint8_t *p = (const uint8_t *)packets[j], *first = (const uint8_t *)packets[0];
        cg_decoder_ d;
        s = cg_segments_summand_open_(p, lens[j], &info, &c);
        if (s != CG_OK) return s;
        if (j == 0) whole = info;
        if (info.packet_bytes != whole.packet_bytes || info.value_bytes != whole.value_bytes ||
            info.segment_flags != whole.segment_flags || info.tag.seed != whole.tag.seed ||
            info.tag.step != whole.tag.step || info.tag.tensor != whole.tag.tensor ||
            !cg_same_stages_(&info.op, &whole.op) ||
            !cg_same_bytes_(
                p + CG_HEADER_BYTES + info.value_bytes, first + CG_HEADER_BYTES + info.value_bytes, info.index_bytes))
            return CG_E_MISMATCH;
        while (c.left) {
            cg_info one;
            s = cg_segment_next_(&c, &one, &plan);
            if (s != CG_OK) return s;
            if (!(plan.traits & CG_IS_SIGN_) || plan.traits & (CG_IS_SELECTION_ | CG_IS_PER_RANK_ | CG_IS_MATRIX_))
                return CG_E_UNSUPPORTED;
        }
        s = cg_header_get_(p, lens[j], &d.info, &d.plan);
        if (s == CG_OK) s = cg_decoder_open_rest_(&d, NULL, p, lens[j], NULL, 1);
        if (s == CG_OK) s = cg_verify_(&d, NULL);
        if (s != CG_OK) return s;
        in[j] = p + CG_HEADER_BYTES;
    }
    if (cap < whole.packet_bytes) return CG_E_CAPACITY;
    memcpy(out + CG_HEADER_BYTES + whole.value_bytes, in[0] + whole.value_bytes, whole.index_bytes);
    for (size_t at = 0, many; at < whole.value_bytes; at += many) {
        many = cg_min_(TILE, whole.value_bytes - at);
        CG_KERNEL_(kernels, vote(in, count, many, out + CG_HEADER_BYTES + at));
        for (size_t j = 0; j < count; j++) in[j] += many;
    }
    *len = cg_packet_seal_(&whole, out);
    return CG_OK;
}
