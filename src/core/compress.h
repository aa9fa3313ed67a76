/* Sizes of a packet whose selection left k values (or will leave at most k). */
static cg_status cg_layout_sizes_(
    const cg_op *op, const cg_extra *side, uint64_t k, cg_layout_ *lay, uint64_t *value_bytes) {
    cg_status s = cg_layout_make_(op, side, k, lay);
    if (s != CG_OK) return s;
    *value_bytes = cg_add_sat_(cg_add_sat_(lay->scale_bytes, lay->piece_table_bytes), lay->codes_bytes);
    if (lay->codec) {
        size_t most = lay->codec->bound(lay->codec, &op->quantize, (size_t)k);
        if (!most && k) return CG_E_ARG;
        *value_bytes = cg_add_sat_(most, 3) & ~(uint64_t)3;
    }
    return CG_OK;
}
static size_t cg_bound_(const cg_op *op, const cg_extra *side, size_t n) {
    cg_layout_ lay;
    uint64_t turned, k, universe, values, indices = 0;
    if (!op || cg_op_check_(op) != CG_OK || !cg_matrix_shape_fits_(op, n)) return 0;
    turned = cg_transformed_n_(op, cg_sampled_n_(op, n, NULL));
    if (turned == CG_TOO_LARGE_) return 0;
    k = cg_max_selected_(op, turned);
    if (cg_layout_sizes_(op, side, k, &lay, &values) != CG_OK) return 0;
    universe = cg_index_count_(op, turned);
    if (cg_has_fixed_k_(op) || op->select.id == CG_SELECT_CHUNKED)
        indices = cg_index_bytes_(cg_index_code_(op, universe, k), universe, k);
    else if (op->select.id && op->select.id != CG_SELECT_GIVEN)
        indices = cg_index_bound_(op, universe, cg_index_count_(op, k));
    return cg_size_or_zero_(cg_add_sat_(cg_add_sat_(values, indices), CG_HEADER_BYTES));
}
CG_API_ size_t cg_bound_with(const cg_op *op, const cg_extra *side, size_t n) {
    cg_fenv_ env = cg_fenv_enter_();
    size_t bytes = cg_bound_(op, side, n);
    cg_fenv_leave_(env);
    return bytes;
}
CG_API_ size_t cg_bound(const cg_op *op, size_t n) { return cg_bound_with(op, NULL, n); }

CG_API_ size_t cg_scratch(const cg_op *op, size_t n) {
    cg_fenv_ env = cg_fenv_enter_();
    size_t bytes = !op || cg_op_check_(op) != CG_OK ? 0 : cg_size_or_zero_(cg_scratch_bytes_(op, n));
    cg_fenv_leave_(env);
    return bytes;
}

/* Sample, transform and selection: what the quantizer will see. */
CG_NOINLINE_ cg_status cg_source_prepare_(
    const cg_kernels_ *kernels, cg_info *info, const cg_extra *side, cg_source_ *src, cg_list_ *list) {
    const cg_op *op = &info->op;
    const size_t turned = (size_t)cg_transformed_n_(op, info->drawn);
    cg_status s = CG_OK;
    info->k = turned;
    if (cg_is_matrix_op_(op)) {
        s = cg_matrix_encode_(kernels, info, src->x, list->materialized);
        src->x = list->materialized;
        src->to_transform = 0;
        src->count = turned;
        return s;
    }
    if (cg_needs_materialized_(op) && turned) {
        for (size_t i = 0, many; i < turned; i += many) {
            const float *v;
            many = cg_min_(CG_CHUNK_, turned - i);
            v = cg_source_fetch_(src, i, many, list->materialized + i); /* blocks end within the room */
            if (v != list->materialized + i) memcpy(list->materialized + i, v, 4 * many);
        }
        if (kernels->absmax_bits(list->materialized, turned) >= CG_INF_BITS_) return CG_E_NONFINITE;
        src->x = list->materialized;
        src->to_sample = src->to_transform = 0;
        src->count = turned;
        src->producer = NULL;
    }
    if (op->select.id) {
        cg_selector_ p;
        p.kernels = kernels;
        p.side = side;
        p.x = cg_source_is_lazy_(src) ? NULL : src->x;
        p.producer = src->producer;
        p.n = turned;
        p.shared_key = cg_shared_key_(&info->tag);
        p.rank_key = cg_rank_key_(&info->tag);
        p.list = list;
        p.info = info;
        s = cg_selector_run_(&p);
        src->producer = NULL;
        src->x = list->value;
        src->count = info->k;
    }
    return s;
}
static cg_status cg_encode_user_(const cg_layout_ *lay, const cg_info *info, const cg_source_ *src,
    const cg_kernels_ *kernels, uint8_t *out, size_t cap, size_t *bytes, cg_checksum_ *sum) {
    cg_status s;
    for (size_t i = 0; i < lay->k; i += CG_CHUNK_)
        if (kernels->absmax_bits(cg_at_(src->x, i), cg_min_(CG_CHUNK_, (size_t)lay->k - i)) >= CG_INF_BITS_)
            return CG_E_NONFINITE;
    *bytes = 0;
    s = lay->codec->compress(lay->codec, &info->op.quantize, &info->tag, src->x, (size_t)lay->k, out, cap, bytes);
    if (s != CG_OK) return s;
    if (*bytes > cap) return CG_E_CAPACITY;
    if (cap - *bytes < (4 - *bytes % 4) % 4) return CG_E_CAPACITY;
    while (*bytes % 4) out[(*bytes)++] = 0;
    *sum = cg_checksum_concat_(*sum, cg_checksum_of_(kernels, out, *bytes));
    return CG_OK;
}

/* Does a later stage make the values, where it needs them? Others need all of them at once. */
static int cg_producer_is_fused_(const cg_op *op, const cg_producer_ *fill) {
    if (op->sample.id || op->code.arg || cg_is_matrix_op_(op) || cg_is_user_codec_(&op->quantize)) return 0;
    return !op->select.id || (op->select.id == CG_SELECT_TOPK && !op->transform.id && fill->threshold_hint);
}
static cg_status cg_compress_packet_(cg_info *info, const cg_extra *side, cg_producer_ *fill, const float *x,
    uint8_t *packet, size_t cap, size_t *len, void *scratch) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    cg_layout_ lay;
    cg_list_ list;
    cg_source_ src;
    cg_checksum_ body = { 0, 0, 0 };
    uint64_t value_bytes, index_bytes, universe, need;
    cg_status s;
    if (info->op.sample.id == CG_SAMPLE_PERMK && info->tag.rank >= info->op.sample.size) return CG_E_ARG;
    info->drawn = cg_sampled_n_(&info->op, info->n, &info->tag);
    src.kernels = kernels;
    src.info = info;
    src.x = x;
    src.count = info->drawn;
    src.to_sample = info->op.sample.id != 0;
    src.to_transform = info->op.transform.id != 0;
    src.producer = fill;
    if (fill && !cg_producer_is_fused_(&info->op, fill)) cg_producer_make_all_(&src);
    cg_list_in_scratch_(&list, &info->op, cg_transformed_n_(&info->op, info->drawn), scratch);
    s = cg_source_prepare_(kernels, info, side, &src, &list);
    if (s != CG_OK) return s;
    s = cg_layout_sizes_(&info->op, side, info->k, &lay, &value_bytes);
    if (s != CG_OK) return s;
    /* buckets across blocks */
    if (lay.quantizer && lay.quantizer->needs == CG_NEEDS_BUCKET_STATS_ && CG_BLOCK_ % lay.bucket_size &&
        lay.k > CG_BLOCK_)
        cg_producer_make_all_(&src);
    universe = cg_index_count_(&info->op, cg_transformed_n_(&info->op, info->drawn));
    info->index_code = cg_index_code_(&info->op, universe, cg_index_count_(&info->op, info->k));
    index_bytes = cg_index_bytes_(info->index_code, universe, cg_index_count_(&info->op, info->k));
    need = cg_add_sat_(cg_add_sat_(lay.codec ? 0 : value_bytes, index_bytes), CG_HEADER_BYTES);
    if (need > cap) return CG_E_CAPACITY;
    if (lay.codec) {
        s = cg_encode_user_(
            &lay, info, &src, kernels, packet + CG_HEADER_BYTES, cap - (size_t)need, &info->value_bytes, &body);
    } else {
        cg_encoder_ e;
        e.kernels = kernels;
        e.stage = &info->op.quantize;
        e.lay = &lay;
        e.src = &src;
        e.given_scales = side ? side->scale : NULL;
        e.key = cg_rank_key_(&info->tag);
        e.scales = packet + CG_HEADER_BYTES;
        e.table = e.scales + (size_t)lay.scale_bytes;
        e.codes = e.table + (size_t)lay.piece_table_bytes;
        e.producer_step = fill && fill->step == CG_CHUNK_ &&
                (lay.quantizer->needs != CG_NEEDS_BUCKET_STATS_ || CG_CHUNK_ % lay.bucket_size == 0)
            ? CG_CHUNK_
            : CG_BLOCK_;
        s = cg_encode_values_(&e, &body, &info->value_bytes);
    }
    if (s != CG_OK) return s;
    if (index_bytes) {
        uint8_t *out = packet + CG_HEADER_BYTES + info->value_bytes;
        info->index_bytes = cg_index_put_(info->index_code, universe, &list, out);
        body = cg_checksum_concat_(body, cg_checksum_of_(kernels, out, info->index_bytes));
    }
    *len = cg_packet_finalize_(kernels, info, packet, body);
    return CG_OK;
}
static cg_status cg_compress_checked_(const cg_op *op, const cg_tag *tag, const cg_extra *side, const float *x,
    cg_producer_ *fill, size_t n, void *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes) {
    cg_info info = CG_ZERO;
    const float none = 0.0f; /* x, where there are no values: NULL + 0 is undefined */
    if (len) *len = 0;
    if (!op || !len || !packet || (!x && n) || cg_bound_(op, side, n) == 0) return CG_E_ARG;
    if (cg_extra_check_(op, side) != CG_OK) return cg_extra_check_(op, side);
    if (cg_scratch_bytes_(op, n) > scratch_bytes) return CG_E_CAPACITY;
    if (scratch_bytes && !scratch) return CG_E_ARG;
    info.op = *op;
    info.n = n;
    if (tag) info.tag = *tag;
    return cg_compress_packet_(&info, side, fill, x ? x : &none, (uint8_t *)packet, cap, len, scratch);
}
CG_API_ cg_status cg_compress_with(const cg_op *op, const cg_tag *tag, const cg_extra *side, const float *x, size_t n,
    void *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_compress_checked_(op, tag, side, x, NULL, n, packet, cap, len, scratch, scratch_bytes);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_compress(const cg_op *op, const cg_tag *tag, const float *x, size_t n, void *packet, size_t cap,
    size_t *len, void *scratch, size_t scratch_bytes) {
    return cg_compress_with(op, tag, NULL, x, n, packet, cap, len, scratch, scratch_bytes);
}
