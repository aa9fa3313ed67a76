/* compress: from x to a packet: sizes, sample, transform, selection, values, indices, header

   Offers   cg_bound_, cg_compress_checked_, cg_layout_sizes_
   Needs    base, kernels/dispatch, random, stages, plan, packet, layout, source, select, indices, matrix, encode
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
/* Bytes that any packet of this plan fits; 0: op refuses, or they overflow. */
static size_t cg_plan_bound_(const cg_plan_ *plan, const cg_op *op, const cg_extra *extra) {
    cg_layout_ lay;
    const uint64_t k = plan->max_selected;
    uint64_t values, indices = 0;
    if (plan->transformed_n == CG_TOO_LARGE_) return 0;
    if (cg_layout_sizes_(op, extra, k, &lay, &values) != CG_OK) return 0;
    if (plan->traits & CG_KEEPS_EXACTLY_) indices = cg_index_bytes_(cg_index_code_(op, plan, k), plan->universe, k);
    else if (cg_has_indices_(plan)) indices = cg_index_bound_(op, plan->universe, cg_index_count_(plan, k));
    return cg_size_or_zero_(cg_add_sat_(cg_add_sat_(values, indices), CG_HEADER_BYTES));
}
/* Bytes that any packet of op fits, whose plan this is; 0: op refuses, or they overflow. PermK leaves some ranks one
   value fewer, and Elias-Fano may need a bit more for each index then. */
static size_t cg_op_bound_(const cg_op *op, const cg_extra *extra, const cg_plan_ *plan) {
    const size_t most = cg_plan_bound_(plan, op, extra);
    cg_plan_ fewer = *plan;
    size_t bytes;
    if (!most || !(plan->traits & CG_IS_PER_RANK_) || !plan->sampled_n) return most;
    fewer.sampled_n--;
    cg_plan_resume_(&fewer, op);
    bytes = cg_plan_bound_(&fewer, op, extra);
    return bytes > most ? bytes : most;
}
static size_t cg_segments_bound_(const cg_op *op, const cg_extra *extra, size_t n); /* in core/segments/compress.h */
/* The same for n values; 0 also if op is illegal or does not fit n. */
static size_t cg_bound_(const cg_op *op, const cg_extra *extra, size_t n) {
    cg_plan_ plan;
    if (cg_segments_of_(extra)) return cg_segments_bound_(op, extra, n);
    if (!op || cg_op_resolve_(op, &plan.traits) != CG_OK || !cg_matrix_shape_fits_(op, n)) return 0;
    cg_plan_set_(&plan, op, n, NULL);
    return cg_op_bound_(op, extra, &plan);
}
CG_API_ size_t cg_bound_with(const cg_op *op, const cg_extra *extra, size_t n) {
    cg_fenv_ env = cg_fenv_enter_();
    size_t bytes = !op || cg_op_only_old_(op) ? 0 : cg_bound_(op, extra, n);
    cg_fenv_leave_(env);
    return bytes;
}
CG_API_ size_t cg_bound(const cg_op *op, size_t n) { return cg_bound_with(op, NULL, n); }

static uint64_t cg_segments_scratch_(const cg_op *op, const cg_extra *extra, size_t n); /* as the bound */
CG_API_ size_t cg_scratch_with(const cg_op *op, const cg_extra *extra, size_t n) {
    cg_fenv_ env = cg_fenv_enter_();
    size_t bytes = 0;
    if (op && cg_segments_of_(extra)) bytes = cg_size_or_zero_(cg_segments_scratch_(op, extra, n));
    else if (op && cg_op_check_new_(op) == CG_OK) {
        const cg_plan_ plan = cg_plan_of_(op, n);
        bytes = cg_size_or_zero_(cg_scratch_bytes_(op, &plan));
    }
    cg_fenv_leave_(env);
    return bytes;
}
CG_API_ size_t cg_scratch(const cg_op *op, size_t n) { return cg_scratch_with(op, NULL, n); }

/* Sample, transform and selection: sets info->k, and the source to what the quantizer sees. Without a selection, user
   codec or matrix, sample and transform are left to be done chunk by chunk. list is in scratch; info has op, n, drawn
   and tag. */
CG_NOINLINE_ cg_status cg_source_prepare_(const cg_kernels_ *kernels, const cg_plan_ *plan, cg_info *info,
    const cg_extra *extra, cg_source_ *src, cg_list_ *list) {
    const cg_op *op = &info->op;
    const size_t transformed_n = (size_t)plan->transformed_n;
    cg_status s = CG_OK;
    info->k = transformed_n;
    if (plan->traits & CG_IS_MATRIX_) {
        s = cg_transformer_of_(op)->factor(kernels, info, src->x, list->materialized);
        src->x = list->materialized;
        src->to_transform = 0;
        src->count = transformed_n;
        return s;
    }
    if (cg_needs_materialized_(op, plan) && transformed_n) {
        for (size_t i = 0, many; i < transformed_n; i += many) {
            const float *v;
            many = cg_min_(CG_CHUNK_, transformed_n - i);
            v = cg_source_fetch_(src, i, many, list->materialized + i); /* writes `many` floats: whole blocks */
            if (v != list->materialized + i) memcpy(list->materialized + i, v, 4 * many);
        }
        if (CG_KERNEL_(kernels, absmax_bits(list->materialized, transformed_n)) >= CG_INF_BITS_) return CG_E_NONFINITE;
        src->x = list->materialized;
        src->to_sample = src->to_transform = 0;
        src->count = transformed_n;
        src->producer = NULL;
    }
    if (plan->traits & CG_IS_SELECTION_) {
        cg_selector_ selector;
        selector.kernels = kernels;
        selector.side = extra;
        selector.x = cg_source_is_lazy_(src) ? NULL : src->x;
        selector.producer = src->producer;
        selector.n = transformed_n;
        selector.max_selected = (size_t)plan->max_selected;
        selector.shared_key = cg_shared_key_(&info->tag);
        selector.rank_key = cg_rank_key_(&info->tag);
        selector.list = list;
        selector.info = info;
        info->k = list->count = 0;
        if (transformed_n || plan->traits & CG_NEEDS_SUPPORT_) s = cg_selection_of_(op)->pick(&selector);
        if (!(plan->traits & (CG_KEEPS_BLOCKS_ | CG_NEEDS_SUPPORT_))) info->k = list->count;
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
        if (CG_KERNEL_(kernels, absmax_bits(cg_at_(src->x, i), cg_min_(CG_CHUNK_, (size_t)lay->k - i))) >= CG_INF_BITS_)
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
static int cg_producer_is_fused_(const cg_op *op, uint32_t traits, const cg_producer_ *producer) {
    if (op->sample.id || op->code.arg || traits & (CG_IS_MATRIX_ | CG_IS_USER_CODEC_)) return 0;
    if (traits & CG_LENGTH_VARIES_ && !op->select.id) return 0; /* a quantizer that looks at its values several times */
    if (cg_is_clipped_(op) && !op->select.id) return 0;         /* all values are looked at before they are encoded */
    return !op->select.id || (traits & CG_TAKES_PRODUCER_ && !op->transform.id && producer->threshold_hint);
}
/* x as the quantizer is to see it, in *src, and in *list what a selection keeps of it. info has op, n and tag, all
   checked, and plan is theirs; scratch has cg_scratch_bytes_. info->drawn, k and threshold are set. */
static cg_status cg_source_open_(cg_info *info, const cg_plan_ *plan, const cg_extra *extra, cg_producer_ *producer,
    const float *x, void *scratch, cg_source_ *src, cg_list_ *list) {
    info->drawn = plan->sampled_n;
    src->kernels = cg_kernels_now_();
    src->info = info;
    src->x = x;
    src->count = info->drawn;
    src->to_sample = cg_is_sampled_(&info->op);
    src->to_transform = cg_is_transformed_(&info->op);
    src->producer = producer;
    src->clip_bits = CG_INF_BITS_;
    if (producer && !cg_producer_is_fused_(&info->op, plan->traits, producer)) cg_producer_make_all_(src);
    cg_list_in_scratch_(list, &info->op, plan, scratch);
    return cg_source_prepare_(src->kernels, plan, info, extra, src, list);
}
/* Writes values and indices of an open source to out, at most cap bytes, and sets the sizes of both sections. *body
   absorbs them, unless they are few and sums_few is 0. */
static cg_status cg_body_put_(cg_info *info, const cg_plan_ *plan, const cg_extra *extra, cg_source_ *src,
    const cg_list_ *list, uint8_t *out, size_t cap, int sums_few, cg_checksum_ *body) {
    const cg_kernels_ *kernels = src->kernels;
    cg_layout_ lay;
    uint64_t value_bytes, index_bytes, indices, need;
    int to_sum;
    cg_status s = cg_is_clipped_(&info->op) ? cg_source_clip_(src, &info->op.clip, (size_t)info->k) : CG_OK;
    if (s == CG_OK) s = cg_layout_sizes_(&info->op, extra, info->k, &lay, &value_bytes);
    if (s != CG_OK) return s;
    /* buckets that cross blocks are measured before all their values would have been made */
    if (lay.vector_bytes ||
        (lay.k > CG_BLOCK_ && lay.quantizer && lay.quantizer->needs == CG_NEEDS_BUCKET_STATS_ &&
            CG_BLOCK_ % lay.bucket_size))
        cg_producer_make_all_(src);
    indices = cg_index_count_(plan, info->k);
    info->index_code = cg_index_code_(&info->op, plan, indices);
    index_bytes = cg_index_bytes_(info->index_code, plan->universe, indices);
    need = cg_add_sat_(lay.codec ? 0 : value_bytes, index_bytes);
    if (need > cap) return CG_E_CAPACITY;
    to_sum = sums_few || need > CG_SMALL_PACKET_ - CG_HEADER_BYTES;
    if (lay.codec) {
        if (src->clip_bits != CG_INF_BITS_) /* what a clip leaves is in scratch */
            CG_KERNEL_(kernels, cut(src->x, (size_t)info->k, src->clip_bits, (float *)(uintptr_t)src->x));
        s = cg_encode_user_(&lay, info, src, kernels, out, cap - (size_t)need, &info->value_bytes, body);
    } else {
        cg_encoder_ e;
        e.kernels = kernels;
        e.stage = &info->op.quantize;
        e.lay = &lay;
        e.src = src;
        e.given_scales = extra ? extra->scale : NULL;
        e.key = plan->traits & CG_ROUNDS_AT_RANDOM_ ? cg_rank_key_(&info->tag) : 0;
        e.noise_shift = 0;
        if (plan->traits & CG_ROUNDS_AT_RANDOM_ && extra && extra->correlated) {
            e.key = cg_mix64_(cg_shared_key_(&info->tag) ^ CG_TOGETHER_KEY_);
            e.noise_shift = cg_noise_shift_(info->tag.rank, extra->correlated);
        }
        e.scales = out;
        e.table = e.scales + (size_t)lay.scale_bytes;
        e.codes = e.table + (size_t)lay.piece_table_bytes;
        e.to_sum = to_sum;
        e.producer_step = src->producer && src->producer->step == CG_CHUNK_ &&
                (lay.quantizer->needs != CG_NEEDS_BUCKET_STATS_ || CG_CHUNK_ % lay.bucket_size == 0)
            ? CG_CHUNK_
            : CG_BLOCK_;
        s = cg_builds_levels_() && lay.quantizer->output == CG_OUTPUT_LEVELS_
            ? cg_rate_encode_(&e, (uint8_t *)list->work, body, &info->value_bytes)
            : cg_encode_values_(&e, body, &info->value_bytes);
    }
    if (s != CG_OK) return s;
    if (index_bytes) {
        out += info->value_bytes;
        info->index_bytes = cg_index_put_(info->index_code, plan->universe, list, out);
        if (lay.codec || to_sum) *body = cg_checksum_concat_(*body, cg_checksum_of_(kernels, out, info->index_bytes));
    }
    return CG_OK;
}
/* As cg_source_open_. CG_OK: the packet has *len bytes. On an error the packet's bytes are undefined, and *len is as it
   was. */
static cg_status cg_compress_packet_(cg_info *info, const cg_plan_ *plan, const cg_extra *extra, cg_producer_ *producer,
    const float *x, uint8_t *packet, size_t cap, size_t *len, void *scratch) {
    cg_list_ list;
    cg_source_ src;
    cg_checksum_ body = { 0, 0, 0 };
    cg_status s = cg_source_open_(info, plan, extra, producer, x, scratch, &src, &list);
    if (s != CG_OK) return s;
    if (cap < CG_HEADER_BYTES) return CG_E_CAPACITY;
    s = cg_body_put_(info, plan, extra, &src, &list, packet + CG_HEADER_BYTES, cap - CG_HEADER_BYTES, 0, &body);
    if (s == CG_OK) *len = cg_packet_finalize_(src.kernels, info, packet, body);
    return s;
}
/* Why cg_bound_ is 0, in a sentence; NULL: it is not. *need: the n that op takes, if it takes only one. */
static const char *cg_segments_why_(const cg_op *op, const cg_extra *extra, size_t n); /* as the bound */
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
    why = cg_op_left_out_(op);
    if (why) return why;
    if (cg_segments_of_(extra) && cg_op_check_(op) == CG_OK) return cg_segments_why_(op, extra, n);
    for (slot = CG_SLOT_COUNT_; slot--;)
        if (cg_stage_check_(slot, cg_op_stage_const_(op, slot)) != CG_OK)
            return slot == CG_SLOT_CLIP_ && cg_row_at_(slot, op->clip.id)
                ? "the clip of the operator has a parameter out of range: as text cg_op_parse_why says which"
                : slot_why[slot];
    if (op->reserved) return "the operator is not valid: reserved must be 0";
    why = cg_op_conflict_(op, cg_op_traits_(op), &slot);
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
    const uint32_t traits = op ? cg_op_traits_(op) : 0;
    *at = CG_NO_INDEX;
    if (why) return why;
    if (!packet) return "packet is NULL";
    if (!len) return "len is NULL";
    if (!x && n) return "x is NULL, and n is not 0";
    if (cg_extra_check_(op, extra) == CG_E_UNSUPPORTED)
        return "cg_extra has an aux, a support or scales that this operator has no use for: leave them NULL";
    if (s == CG_E_CAPACITY) {
        const cg_plan_ plan = cg_plan_of_(op, n);
        *need = cg_segments_of_(extra) ? cg_segments_scratch_(op, extra, n) : cg_scratch_bytes_(op, &plan);
        if (*need > scratch_bytes) return "scratch is too small: cg_scratch gives its bytes";
        *need = cg_bound_(op, extra, n);
        return "packet is too small: cg_bound gives its bytes";
    }
    if (s == CG_E_NONFINITE) {
        *at = cg_first_nonfinite_(x, n);
        if (*at != CG_NO_INDEX || !extra->aux) return cg_status_str(s);
        *at = cg_first_nonfinite_(extra->aux, n);
        return "NaN or Inf in cg_extra.aux";
    }
    if (traits & CG_NEEDS_SUPPORT_)
        return extra->support ? "the packet cg_extra.support is damaged, of another n, or has no indices of its own"
                              : "the operator given needs the packet cg_extra.support";
    if (s != CG_E_ARG) return cg_status_str(s);
    if (scratch_bytes && !scratch) return "scratch is NULL, and scratch_bytes is not 0";
    if (cg_extra_check_(op, extra) != CG_OK) return "cg_extra has an unknown flag, or support_len without a support";
    if (traits & CG_IS_PER_RANK_ && (tag ? tag->rank : 0) >= op->sample.size)
        return "tag.rank is not below the workers of permk";
    if (traits & CG_NEEDS_AUX_ && !extra->aux) return "the operator needs the n floats cg_extra.aux";
    return extra->scale ? "a scale in cg_extra.scale is negative or not finite" : cg_status_str(s);
}
/* No packet of so many values overflows a size_t. */
#define CG_MANY_ ((size_t)1 << 24)
/* cg_compress_unreported_ with extra->segments, once its pointers have been checked. */
static cg_status cg_compress_segments_(const cg_op *op, const cg_tag *tag, const cg_extra *extra, const float *x,
    cg_producer_ *producer, size_t n, uint8_t *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes);
/* cg_compress_checked_ but for the report. */
static cg_status cg_compress_unreported_(const cg_op *op, const cg_plan_ *known, const cg_tag *tag,
    const cg_extra *extra, const float *x, cg_producer_ *producer, size_t n, void *packet, size_t cap, size_t *len,
    void *scratch, size_t scratch_bytes) {
    cg_info info = CG_ZERO;
    cg_plan_ plan;
    const float empty_x = 0.0f; /* x if there are no values, as NULL + 0 is undefined */
    cg_status s;
    if (len) *len = 0;
    if (!op || !len || !packet || (!x && n)) return CG_E_ARG;
    if (cg_segments_of_(extra))
        return cg_compress_segments_(
            op, tag, extra, x, producer, n, (uint8_t *)packet, cap, len, scratch, scratch_bytes);
    if (known) plan = *known;
    else if (cg_op_resolve_(op, &plan.traits) != CG_OK) return cg_op_left_out_(op) ? CG_E_VERSION : CG_E_ARG;
    if (plan.traits & CG_IS_MATRIX_ && !cg_matrix_shape_fits_(op, n)) return CG_E_ARG;
    info.op = *op;
    info.n = n;
    if (tag) info.tag = *tag;
    if (plan.traits & CG_IS_PER_RANK_ && info.tag.rank >= op->sample.size) return CG_E_ARG;
    if (!known) cg_plan_set_(&plan, op, n, NULL);
    /* x must not be read where the bound is 0: that is, where a codec refuses or so many values overflow */
    if ((plan.traits & CG_IS_USER_CODEC_ || n > CG_MANY_) && !cg_plan_bound_(&plan, op, extra)) return CG_E_ARG;
    s = cg_extra_check_(op, extra);
    if (s != CG_OK) return s;
    if (cg_scratch_bytes_(op, &plan) > scratch_bytes) return CG_E_CAPACITY;
    if (plan.traits & CG_IS_PER_RANK_) cg_plan_set_(&plan, op, n, &info.tag);
    if (scratch_bytes && !scratch) return CG_E_ARG;
    return cg_compress_packet_(&info, &plan, extra, producer, x ? x : &empty_x, (uint8_t *)packet, cap, len, scratch);
}
/* cg_compress_with, inside cg_fenv_enter_; all arguments are checked but for the producer. known: the plan of op and n,
   which cg_resolve_ has accepted, or NULL. producer: NULL; or it makes
   x, which is written; or it is lazy, and x is not read but must not be NULL. Lazy values suit no operator on
   matrices, and without sample and transform no selection but top-k and no user codec. */
static cg_status cg_compress_checked_(const cg_op *op, const cg_plan_ *known, const cg_tag *tag, const cg_extra *extra,
    const float *x, cg_producer_ *producer, size_t n, void *packet, size_t cap, size_t *len, void *scratch,
    size_t scratch_bytes) {
    const cg_status s = cg_compress_unreported_(
        op, known, tag, extra, x, producer, n, packet, cap, len, scratch, scratch_bytes);
    uint64_t need = 0, at = CG_NO_INDEX;
    const char *why;
    if (!extra || !extra->report) return s;
    why = cg_status_str(s);
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
    if (!only_old) s = cg_compress_checked_(op, NULL, tag, extra, x, NULL, n, packet, cap, len, scratch, scratch_bytes);
    else if (extra && extra->report) cg_report_set_(extra->report, s, only_old, 0, CG_NO_INDEX);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_compress(const cg_op *op, const cg_tag *tag, const float *x, size_t n, void *packet, size_t cap,
    size_t *len, void *scratch, size_t scratch_bytes) {
    return cg_compress_with(op, tag, NULL, x, n, packet, cap, len, scratch, scratch_bytes);
}
