/* compress: from x to a packet: sizes, sample, transform, selection, values, indices, header

   Offers   cg_bound_, cg_compress_checked_, cg_layout_sizes_
   Needs    base, kernels/dispatch, random, stages, shape, packet, layout, source, select, indices, matrix, encode
   Touches  the caller's packet, *len and scratch; x, if a producer makes it
   Other headers may use: cg_compress_checked_
   A packet is written in the order values, indices, header, as the header has their lengths and the checksum. */

/* The layout of k values, and the bytes of their section; with a value code or a user codec, their maximum. */
static cg_status cg_layout_sizes_(
    const cg_op *op, const cg_extra *extra, uint64_t k, cg_layout_ *lay, uint64_t *value_bytes) {
    cg_status s = cg_layout_make_(op, extra, k, lay);
    if (s != CG_OK) return s;
    *value_bytes = cg_add_sat_(cg_add_sat_(lay->scale_bytes, lay->piece_table_bytes), lay->codes_bytes);
    if (lay->codec) {
        size_t max_bytes = lay->codec->bound(lay->codec, &op->quantize, (size_t)k);
        if (!max_bytes && k) return CG_E_ARG;
        *value_bytes = cg_add_sat_(max_bytes, 3) & ~(uint64_t)3;
    }
    return CG_OK;
}
/* Bytes that any packet fits whose sample has left sampled_n values; 0: op refuses, or they overflow. */
static size_t cg_bound_sampled_(const cg_op *op, const cg_extra *extra, uint64_t sampled_n) {
    cg_layout_ lay;
    const uint64_t transformed_n = cg_transformed_n_(op, sampled_n);
    uint64_t k, universe, values, indices = 0;
    if (transformed_n == CG_TOO_LARGE_) return 0;
    k = cg_max_selected_(op, transformed_n);
    if (cg_layout_sizes_(op, extra, k, &lay, &values) != CG_OK) return 0;
    universe = cg_index_count_(op, transformed_n);
    if (cg_has_fixed_k_(op) || op->select.id == CG_SELECT_CHUNKED)
        indices = cg_index_bytes_(cg_index_code_(op, universe, k), universe, k);
    else if (op->select.id && op->select.id != CG_SELECT_GIVEN)
        indices = cg_index_bound_(op, universe, cg_index_count_(op, k));
    return cg_size_or_zero_(cg_add_sat_(cg_add_sat_(values, indices), CG_HEADER_BYTES));
}
/* Bytes that any packet of op and n values fits; 0: op is illegal or does not fit n, or the bound overflows. PermK
   leaves some ranks one value fewer, and Elias-Fano may need a bit more for each index then. */
static size_t cg_bound_(const cg_op *op, const cg_extra *extra, size_t n) {
    uint64_t sampled_n;
    size_t most, fewer;
    if (!op || cg_op_check_(op) != CG_OK || !cg_matrix_shape_fits_(op, n)) return 0;
    sampled_n = cg_sampled_n_(op, n, NULL);
    most = cg_bound_sampled_(op, extra, sampled_n);
    if (!most || op->sample.id != CG_SAMPLE_PERMK || !sampled_n) return most;
    fewer = cg_bound_sampled_(op, extra, sampled_n - 1);
    return fewer > most ? fewer : most;
}
CG_API_ size_t cg_bound_with(const cg_op *op, const cg_extra *extra, size_t n) {
    cg_fenv_ env = cg_fenv_enter_();
    size_t bytes = !op || cg_op_check_new_(op) != CG_OK ? 0 : cg_bound_(op, extra, n);
    cg_fenv_leave_(env);
    return bytes;
}
CG_API_ size_t cg_bound(const cg_op *op, size_t n) { return cg_bound_with(op, NULL, n); }

CG_API_ size_t cg_scratch(const cg_op *op, size_t n) {
    cg_fenv_ env = cg_fenv_enter_();
    size_t bytes = !op || cg_op_check_new_(op) != CG_OK ? 0 : cg_size_or_zero_(cg_scratch_bytes_(op, n));
    cg_fenv_leave_(env);
    return bytes;
}

/* Sample, transform and selection: sets info->k, and the source to what the quantizer sees. Without a selection, user
   codec or matrix, sample and transform are left to be done chunk by chunk. list is in scratch; info has op, n, drawn
   and tag. */
CG_NOINLINE_ cg_status cg_source_prepare_(
    const cg_kernels_ *kernels, cg_info *info, const cg_extra *extra, cg_source_ *src, cg_list_ *list) {
    const cg_op *op = &info->op;
    const size_t transformed_n = (size_t)cg_transformed_n_(op, info->drawn);
    cg_status s = CG_OK;
    info->k = transformed_n;
    if (cg_is_matrix_op_(op)) {
        s = cg_matrix_encode_(kernels, info, src->x, list->materialized);
        src->x = list->materialized;
        src->to_transform = 0;
        src->count = transformed_n;
        return s;
    }
    if (cg_needs_materialized_(op) && transformed_n) {
        for (size_t i = 0, many; i < transformed_n; i += many) {
            const float *v;
            many = cg_min_(CG_CHUNK_, transformed_n - i);
            v = cg_source_fetch_(src, i, many, list->materialized + i); /* writes `many` floats: whole blocks */
            if (v != list->materialized + i) memcpy(list->materialized + i, v, 4 * many);
        }
        if (kernels->absmax_bits(list->materialized, transformed_n) >= CG_INF_BITS_) return CG_E_NONFINITE;
        src->x = list->materialized;
        src->to_sample = src->to_transform = 0;
        src->count = transformed_n;
        src->producer = NULL;
    }
    if (op->select.id) {
        cg_selector_ selector;
        selector.kernels = kernels;
        selector.side = extra;
        selector.x = cg_source_is_lazy_(src) ? NULL : src->x;
        selector.producer = src->producer;
        selector.n = transformed_n;
        selector.shared_key = cg_shared_key_(&info->tag);
        selector.rank_key = cg_rank_key_(&info->tag);
        selector.list = list;
        selector.info = info;
        s = cg_selector_run_(&selector);
        src->producer = NULL;
        src->x = list->value;
        src->count = info->k;
    }
    return s;
}
/* The value section of a user codec: out has cap bytes, *bytes becomes a multiple of 4, *sum absorbs the section. */
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

/* Will a later stage call the producer where it needs values? If not, cg_producer_make_all_ has to make x first. */
static int cg_producer_is_fused_(const cg_op *op, const cg_producer_ *producer) {
    if (op->sample.id || op->code.arg || cg_is_matrix_op_(op) || cg_is_user_codec_(&op->quantize)) return 0;
    return !op->select.id || (op->select.id == CG_SELECT_TOPK && !op->transform.id && producer->threshold_hint);
}
/* info has op, n and tag, all checked; scratch has cg_scratch_bytes_. CG_OK: the packet has *len bytes. On an error the
   packet's bytes are undefined, and *len is as it was. */
static cg_status cg_compress_packet_(cg_info *info, const cg_extra *extra, cg_producer_ *producer, const float *x,
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
    src.producer = producer;
    if (producer && !cg_producer_is_fused_(&info->op, producer)) cg_producer_make_all_(&src);
    cg_list_in_scratch_(&list, &info->op, cg_transformed_n_(&info->op, info->drawn), scratch);
    s = cg_source_prepare_(kernels, info, extra, &src, &list);
    if (s != CG_OK) return s;
    s = cg_layout_sizes_(&info->op, extra, info->k, &lay, &value_bytes);
    if (s != CG_OK) return s;
    /* buckets that cross blocks are measured before all their values would have been made */
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
        e.given_scales = extra ? extra->scale : NULL;
        e.key = cg_rank_key_(&info->tag);
        e.scales = packet + CG_HEADER_BYTES;
        e.table = e.scales + (size_t)lay.scale_bytes;
        e.codes = e.table + (size_t)lay.piece_table_bytes;
        e.producer_step = producer && producer->step == CG_CHUNK_ &&
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
/* Why cg_bound_ is 0, in a sentence; NULL: it is not. *need: the n that op takes, if it takes only one. */
static const char *cg_bound_why_(const cg_op *op, const cg_extra *extra, size_t n, uint64_t *need) {
    static const char *const slot_why[] = {
        "the sample of the operator is not valid, or has a parameter out of range: as text cg_op_parse_why says which",
        "the transform of the operator is not valid, or has a parameter out of range: as text cg_op_parse_why says "
        "which",
        "the selection of the operator is not valid, or has a parameter out of range: as text cg_op_parse_why says "
        "which",
        "the quantizer of the operator is not valid, or has a parameter out of range: as text cg_op_parse_why says "
        "which",
        "the code of the operator is not valid",
        "the operator is not valid: cg_then filled a slot twice, a modifier does not go with its stage, or a parameter "
        "is out of range"
    };
    const char *why;
    unsigned slot;
    uint64_t bytes;
    cg_layout_ lay;
    *need = 0;
    if (!op) return "op is NULL";
    if (cg_bound_(op, extra, n)) return NULL;
    for (slot = CG_SLOT_COUNT_; slot--;)
        if (cg_stage_check_(slot, cg_op_stage_const_(op, slot)) != CG_OK) return slot_why[slot];
    if (op->reserved) return "the operator is not valid: reserved must be 0";
    why = cg_op_conflict_(op, &slot);
    if (why) return why;
    if (!cg_matrix_shape_fits_(op, n)) {
        *need = (uint64_t)op->transform.size * (uint64_t)op->transform.value;
        return "the operator is for a matrix of rows * cols values, and n is another number";
    }
    switch (cg_layout_sizes_(op, extra, 0, &lay, &bytes)) {
    case CG_OK: break;
    case CG_E_VERSION: return "the codec of the operator is not in cg_extra.codecs";
    default: return "a codec of yours refuses its parameters: its bound is 0";
    }
    return lay.codec ? "a codec of yours refuses its parameters, or the bytes for n values overflow"
                     : "n is too large: the bytes of a packet overflow";
}
/* Why compressing has failed, and in *need and *at by how much and where; the arguments as in cg_compress_checked_,
   but that extra is not NULL. */
static const char *cg_compress_why_(cg_status s, const cg_op *op, const cg_tag *tag, const cg_extra *extra,
    const float *x, size_t n, const void *packet, const size_t *len, const void *scratch, size_t scratch_bytes,
    uint64_t *need, uint64_t *at) {
    const char *why = cg_bound_why_(op, extra, n, need);
    const int is_given = op && op->select.id == CG_SELECT_GIVEN;
    *at = CG_NO_INDEX;
    if (why) return why;
    if (!packet) return "packet is NULL";
    if (!len) return "len is NULL";
    if (!x && n) return "x is NULL, and n is not 0";
    if (cg_extra_check_(op, extra) == CG_E_UNSUPPORTED)
        return "cg_extra has an aux, a support or scales that this operator has no use for: leave them NULL";
    if (s == CG_E_CAPACITY && cg_scratch_bytes_(op, n) > scratch_bytes) {
        *need = cg_scratch_bytes_(op, n);
        return "scratch is too small: cg_scratch gives its bytes";
    }
    if (s == CG_E_CAPACITY) {
        *need = cg_bound_(op, extra, n);
        return "packet is too small: cg_bound gives its bytes";
    }
    if (s == CG_E_NONFINITE) {
        *at = cg_first_nonfinite_(x, n);
        if (*at != CG_NO_INDEX || !extra->aux) return cg_status_str(s);
        *at = cg_first_nonfinite_(extra->aux, n);
        return "NaN or Inf in cg_extra.aux";
    }
    if (is_given)
        return extra->support ? "the packet cg_extra.support is damaged, of another n, or has no indices of its own"
                              : "the operator given needs the packet cg_extra.support";
    if (s != CG_E_ARG) return cg_status_str(s);
    if (scratch_bytes && !scratch) return "scratch is NULL, and scratch_bytes is not 0";
    if (cg_extra_check_(op, extra) != CG_OK) return "cg_extra has an unknown flag, or support_len without a support";
    if (op->sample.id == CG_SAMPLE_PERMK && (tag ? tag->rank : 0) >= op->sample.size)
        return "tag.rank is not below the workers of permk";
    if ((op->select.id == CG_SELECT_BINS || op->select.id == CG_SELECT_VARIANCE) && !extra->aux)
        return "the operator needs the n floats cg_extra.aux";
    return extra->scale ? "a scale in cg_extra.scale is negative or not finite" : cg_status_str(s);
}
/* cg_compress_checked_ but for the report. */
static cg_status cg_compress_unreported_(const cg_op *op, const cg_tag *tag, const cg_extra *extra, const float *x,
    cg_producer_ *producer, size_t n, void *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes) {
    cg_info info = CG_ZERO;
    const float empty_x = 0.0f; /* x if there are no values, as NULL + 0 is undefined */
    if (len) *len = 0;
    if (!op || !len || !packet || (!x && n) || cg_bound_(op, extra, n) == 0) return CG_E_ARG;
    if (cg_extra_check_(op, extra) != CG_OK) return cg_extra_check_(op, extra);
    if (cg_scratch_bytes_(op, n) > scratch_bytes) return CG_E_CAPACITY;
    if (scratch_bytes && !scratch) return CG_E_ARG;
    info.op = *op;
    info.n = n;
    if (tag) info.tag = *tag;
    return cg_compress_packet_(&info, extra, producer, x ? x : &empty_x, (uint8_t *)packet, cap, len, scratch);
}
/* cg_compress_with, inside cg_fenv_enter_; all arguments are checked but for the producer. producer: NULL; or it makes
   x, which is written; or it is lazy, and x is not read but must not be NULL. Lazy values suit no operator on
   matrices, and without sample and transform no selection but top-k and no user codec. */
static cg_status cg_compress_checked_(const cg_op *op, const cg_tag *tag, const cg_extra *extra, const float *x,
    cg_producer_ *producer, size_t n, void *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes) {
    const cg_status s = cg_compress_unreported_(
        op, tag, extra, x, producer, n, packet, cap, len, scratch, scratch_bytes);
    uint64_t need = 0, at = CG_NO_INDEX;
    const char *why = cg_status_str(s);
    if (!extra || !extra->report) return s;
    if (s != CG_OK) why = cg_compress_why_(s, op, tag, extra, x, n, packet, len, scratch, scratch_bytes, &need, &at);
    cg_report_set_(extra->report, s, why, need, at);
    return s;
}
CG_API_ cg_status cg_compress_with(const cg_op *op, const cg_tag *tag, const cg_extra *extra, const float *x, size_t n,
    void *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes) {
    cg_fenv_ env = cg_fenv_enter_();
    const char *only_old = op ? cg_op_only_old_(op) : NULL;
    cg_status s = CG_E_ARG;
    if (len) *len = 0;
    if (!only_old) s = cg_compress_checked_(op, tag, extra, x, NULL, n, packet, cap, len, scratch, scratch_bytes);
    else if (extra && extra->report) cg_report_set_(extra->report, s, only_old, 0, CG_NO_INDEX);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_compress(const cg_op *op, const cg_tag *tag, const float *x, size_t n, void *packet, size_t cap,
    size_t *len, void *scratch, size_t scratch_bytes) {
    return cg_compress_with(op, tag, NULL, x, n, packet, cap, len, scratch, scratch_bytes);
}
