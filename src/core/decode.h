/* decode: opens packets, decodes them into y or a sink, and selects by the indices of another packet

   Offers   cg_decoder_open_, cg_support_open_, cg_packet_decode_, cg_decode_to_, cg_select_given_; packets
            opened in two steps
   Needs    base, kernels, packet, layout, select/thresholds, indices, decoder, verify, decode_into
   Touches  the caller's y; the list and info of cg_select_given_
   Other headers may use: cg_decoder_add_block_, cg_decoder_by_blocks_, cg_packet_check_,
   cg_packet_decode_, cg_packet_header_, cg_packet_open_, cg_support_check_
   y is written only after the whole packet has been verified, unless CG_DECODE_DIRECT allows otherwise. */

static cg_status cg_decoder_open_segments_(cg_decoder_ *d); /* in core/segments/decode.h */
/* cg_decoder_open_ once the header has been read, into d->info and d->plan, and n compared. Values begin at body. */
static cg_status cg_decoder_open_body_(
    cg_decoder_ *d, const cg_extra *extra, const uint8_t *body, float *y, int need_codec) {
    uint64_t value_bytes;
    cg_status s = cg_layout_make_(&d->info.op, extra, d->info.k, &d->lay);
    if (s != CG_OK && (need_codec || !cg_is_user_codec_(&d->info.op.quantize))) return s;
    value_bytes = cg_add_sat_(cg_add_sat_(d->lay.scale_bytes, d->lay.piece_table_bytes), d->lay.codes_bytes);
    if (d->lay.quantizer &&
        (cg_is_coded_(&d->lay) ? d->info.value_bytes > value_bytes ||
                    d->info.value_bytes < d->lay.scale_bytes + d->lay.piece_table_bytes
                               : d->info.value_bytes != value_bytes))
        return CG_E_CORRUPT;
    d->kernels = cg_kernels_now_();
    d->support = NULL;
    d->sink = NULL;
    d->walk = NULL;
    d->segments_hash = 0;
    d->scales = body;
    d->piece_table = d->scales + (size_t)d->lay.scale_bytes;
    d->codes = d->piece_table + (size_t)d->lay.piece_table_bytes;
    d->index = d->scales + d->info.value_bytes;
    d->y = y ? y : &d->empty_y;
    if (d->lay.quantizer && !cg_is_coded_(&d->lay) &&
        !cg_padding_zero_(d->codes, (uint64_t)d->lay.k * d->lay.bits_x32 / 32))
        return CG_E_CORRUPT;
    return cg_scales_legal_(d) ? CG_OK : CG_E_CORRUPT;
}
static cg_status cg_decoder_open_rest_(
    cg_decoder_ *d, const cg_extra *extra, const void *packet, size_t len, float *y, int need_codec) {
    if (d->info.packet_bytes != len) return CG_E_CORRUPT;
    d->packet = (const uint8_t *)packet;
    if (!cg_has_segments_(&d->info)) return cg_decoder_open_body_(d, extra, d->packet + CG_HEADER_BYTES, y, need_codec);
    d->y = y ? y : &d->empty_y;
    d->need_codec = need_codec;
    return cg_decoder_open_segments_(d);
}
/* Opens a packet of any len bytes, up to the first look at values and indices: the header agrees with itself, with len
   and with n, sections have the right lengths, scales are legal. y may be NULL only if n is 0; it is not touched.
   need_codec: 0 opens a packet of a user codec without the codec, for its indices. On an error *d is undefined. */
static cg_status cg_decoder_open_(
    cg_decoder_ *d, const cg_extra *extra, const void *packet, size_t len, float *y, size_t n, int need_codec) {
    cg_status s;
    if (!packet || (!y && n)) return CG_E_ARG;
    s = cg_extra_check_(NULL, extra);
    if (s == CG_OK) s = cg_header_get_((const uint8_t *)packet, len, &d->info, &d->plan);
    if (s != CG_OK) return s;
    if (d->info.n != n) return CG_E_MISMATCH;
    return cg_decoder_open_rest_(d, extra, packet, len, y, need_codec);
}
/* Of an extra that the library makes for a segment: support is a cg_segment_cursor_ that stands before the segment of a
   verified support. cg_extra_check_ refuses it of callers. */
#define CG_SUPPORT_IS_SEGMENT_ 0x80000000u
/* in core/segments/decode.h: */
static cg_status cg_support_open_segment_(cg_decoder_ *support, const cg_segment_cursor_ *at, size_t n);
static uint32_t cg_support_fingerprint_segments_(const cg_decoder_ *support);
static cg_status cg_decode_segments_(
    const cg_decoder_ *d, const cg_extra *extra, float alpha, float beta, float *y, cg_sink_ *sink);
static cg_status cg_clear_segments_(cg_decoder_ *d);
/* Opens and verifies extra->support, a packet that says by itself where its values are; *support is only good for that,
   as its y is NULL. CG_E_ARG: there is none. CG_E_UNSUPPORTED: its own selection is `given`. */
CG_NOINLINE_ cg_status cg_support_open_(cg_decoder_ *support, const cg_extra *extra, size_t n) {
    cg_status s;
    float dummy_y = 0.0f;
    if (!extra || !extra->support) return CG_E_ARG;
    if (extra->flags & CG_SUPPORT_IS_SEGMENT_)
        return cg_support_open_segment_(support, (const cg_segment_cursor_ *)extra->support, n);
    s = cg_decoder_open_(support, NULL, extra->support, extra->support_len, &dummy_y, n, 0);
    if (s == CG_OK && support->plan.traits & CG_NEEDS_SUPPORT_) return CG_E_UNSUPPORTED;
    if (s == CG_OK) s = cg_verify_(support, NULL);
    support->y = NULL;
    return s;
}
/* A hash, never 0, of everything that says where the support's values are; packets that were made with it carry it in
   op.select.size. */
static uint32_t cg_support_fingerprint_(const cg_decoder_ *support) {
    const cg_op *op = &support->info.op;
    const int indexed = op->select.id && !cg_is_transformed_(op);
    uint64_t h = cg_mix64_(cg_coordinate_count_(support) + CG_GOLDEN_);
    if (cg_has_segments_(&support->info)) return cg_support_fingerprint_segments_(support);
    if (cg_is_sampled_(op)) { /* random-k is the same for all ranks, unless it is private */
        h = cg_mix64_(h ^ (support->info.drawn + op->sample.id * CG_GOLDEN_));
        h = cg_mix64_(h ^ cg_stage_key_(&op->sample, &support->info.tag));
        if (support->plan.traits & CG_IS_PER_RANK_)
            h = cg_mix64_(h ^ ((uint64_t)op->sample.size << 32 | support->info.tag.rank));
        else if (op->sample.size) h = cg_mix64_(h ^ op->sample.size);
    }
    if (indexed) {
        cg_checksum_ sum = cg_checksum_of_(support->kernels, support->index, support->info.index_bytes);
        h = cg_mix64_(h ^ (sum.a + support->info.index_code * CG_GOLDEN_));
        h = cg_mix64_(h ^ (sum.b + support->plan.values_per_index * CG_GOLDEN_));
    }
    return (uint32_t)h | 1u;
}
/* The values of p->x where the support has values, to the list without indices; sets info->k and the fingerprint. */
static cg_status cg_select_given_(const cg_selector_ *p) {
    cg_decoder_ support;
    cg_segment_walk_ walk;
    cg_index_reader_ r;
    uint64_t index[CG_SPARSE_BATCH_], k;
    cg_status s = cg_support_open_(&support, p->side, p->n);
    if (s != CG_OK) return s;
    support.walk = &walk;
    k = cg_coordinate_count_(&support);
    if (!cg_has_segments_(&support.info))
        r = cg_index_open_(support.kernels, &support.info, &support.plan, support.index);
    else memset(&r, 0, sizeof r);
    for (size_t first = 0, many; first < (size_t)k; first += many) {
        many = cg_min_(CG_SPARSE_BATCH_, (size_t)k - first);
        cg_coordinates_get_(&support, &r, first, many, index);
        for (size_t i = 0; i < many; i++) p->list->value[first + i] = cg_load_(p->x, (size_t)index[i]);
    }
    if (CG_KERNEL_(p->kernels, absmax_bits(p->list->value, (size_t)k)) >= CG_INF_BITS_) return CG_E_NONFINITE;
    p->list->count = 0;
    p->info->k = k;
    p->info->op.select.size = cg_support_fingerprint_(&support);
    return CG_OK;
}
/* Opens the support of a packet whose selection is `given`, which must be the one that the packet was made with. */
CG_NOINLINE_ cg_status cg_given_open_(cg_decoder_ *d, cg_decoder_ *support, const cg_extra *extra, size_t n) {
    const cg_status s = cg_support_open_(support, extra, n);
    if (s != CG_OK) return s;
    d->support = support;
    return d->info.k == cg_coordinate_count_(support) && d->info.op.select.size == cg_support_fingerprint_(support)
        ? CG_OK
        : CG_E_MISMATCH;
}
/* Whether the support of an opened packet whose selection is `given` is the one that it was made with. */
CG_NOINLINE_ cg_status cg_given_check_(cg_decoder_ *d, const cg_extra *extra) {
    cg_decoder_ support;
    const cg_status s = cg_given_open_(d, &support, extra, (size_t)d->info.n);
    d->support = NULL;
    return s;
}
/* An opened packet: y = alpha*decoded + beta*y, or with a sink the decoded values to that, and y may be NULL.
   verified: 1 if these very bytes have passed cg_verify_. cg_fenv_enter_ has been called. y is as it was unless CG_OK
   is returned, or CG_DECODE_DIRECT is set, or a user codec refuses what it accepted before. */
static cg_status cg_packet_decode_(
    cg_decoder_ *d, const cg_extra *extra, float alpha, float beta, float *y, cg_sink_ *sink, int verified) {
    const size_t n = (size_t)d->info.n;
    const int selected = d->info.op.select.id != 0,
              dense = !cg_is_sampled_(&d->info.op) && (!selected || cg_is_transformed_(&d->info.op));
    const int direct = dense && !selected && !cg_is_coded_(&d->lay) && !d->lay.codec &&
        !(d->plan.traits & CG_IS_MATRIX_) && extra && (extra->flags & CG_DECODE_DIRECT);
    cg_decoder_ support;
    cg_segment_walk_ walk;
    cg_status s = CG_OK;
    if (cg_has_segments_(&d->info)) {
        if (!verified) s = cg_verify_(d, extra);
        return s == CG_OK ? cg_decode_segments_(d, extra, alpha, beta, y, sink) : s;
    }
    if (d->plan.traits & CG_NEEDS_SUPPORT_) {
        s = cg_given_open_(d, &support, extra, n);
        if (s != CG_OK) return s;
        support.walk = &walk;
    }
    d->y = y ? y : &d->empty_y;
    d->alpha = alpha;
    d->beta = beta;
    d->sink = sink;
    d->non_temporal = !sink && beta == 0.0f && n >= (size_t)1 << 22 && (uintptr_t)y % 16 == 0;
    if (!verified && cg_is_few_(d)) return cg_decode_few_(d);
    if (!direct && !verified) s = cg_verify_(d, extra);
    if (s != CG_OK) {
    } else if (cg_is_transformed_(&d->info.op) && d->plan.traits & CG_IS_MATRIX_) cg_matrix_decode_(d);
    else if (dense && !selected) s = cg_decode_dense_(d, direct && !verified);
    else s = cg_is_coded_(&d->lay) ? cg_decode_sparse_coded_(d, dense) : cg_decode_sparse_(d, dense, NULL);
    d->support = NULL; /* it ends here */
    return s;
}
/* The same of a packet that has not been opened; verified: these bytes have passed cg_decoder_open_, too. */
static cg_status cg_decode_to_(const cg_extra *extra, const void *packet, size_t len, float alpha, float beta, float *y,
    cg_sink_ *sink, size_t n, int verified) {
    cg_decoder_ d;
    const cg_status s = cg_is_finite_(alpha) && cg_is_finite_(beta)
        ? cg_decoder_open_(&d, extra, packet, len, sink ? &d.empty_y : y, n, 1)
        : CG_E_ARG;
    return s == CG_OK ? cg_packet_decode_(&d, extra, alpha, beta, y, sink, verified) : s;
}
/* Of a packet that this build does not know: the sentence of the stage that was left out; NULL: none was. */
static const char *cg_packet_left_out_(const void *packet, size_t len) {
    cg_info info = CG_ZERO;
    cg_plan_ plan;
    const cg_status s = cg_header_get_((const uint8_t *)packet, len, &info, &plan);
    return s == CG_E_VERSION ? cg_op_left_out_(&info.op) : NULL;
}
CG_API_ cg_status cg_decode(
    const cg_extra *extra, const void *packet, size_t len, float alpha, float beta, float *y, size_t n) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_decode_to_(extra, packet, len, alpha, beta, y, NULL, n, 0);
    if (extra && extra->report) {
        const char *why = s == CG_E_VERSION ? cg_packet_left_out_(packet, len) : NULL;
        cg_report_set_(extra->report, s, why ? why : cg_status_str(s), 0, CG_NO_INDEX);
    }
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_decompress(const void *packet, size_t len, float *y, size_t n) {
    return cg_decode(NULL, packet, len, 1.0f, 0.0f, y, n);
}
CG_API_ cg_status cg_decompress_add(const void *packet, size_t len, float weight, float *y, size_t n) {
    return cg_decode(NULL, packet, len, weight, 1.0f, y, n);
}
/* d->y = 0 where an opened and verified packet has values; it has no segments, and is not of `given`. */
static void cg_clear_opened_(cg_decoder_ *d) {
    if (!cg_is_sampled_(&d->info.op) && (!d->info.op.select.id || cg_is_transformed_(&d->info.op))) {
        memset(d->y, 0, 4 * (size_t)d->info.n);
    } else {
        cg_index_reader_ r = cg_index_open_(d->kernels, &d->info, &d->plan, d->index);
        uint64_t index[CG_SPARSE_BATCH_];
        for (size_t first = 0, many; first < cg_coordinate_count_(d); first += many) {
            many = cg_min_(CG_SPARSE_BATCH_, cg_coordinate_count_(d) - first);
            cg_coordinates_get_(d, &r, first, many, index);
            for (size_t i = 0; i < many; i++) cg_store_(d->y, (size_t)index[i], 0.0f);
        }
    }
}
/* y = 0 where the packet has values. */
static cg_status cg_clear_(const void *packet, size_t len, float *y, size_t n) {
    cg_decoder_ d;
    cg_status s = cg_decoder_open_(&d, NULL, packet, len, y, n, 0);
    if (s == CG_OK && cg_has_segments_(&d.info) && d.plan.traits & CG_NEEDS_SUPPORT_) s = CG_E_UNSUPPORTED;
    if (s == CG_OK) s = cg_verify_(&d, NULL);
    if (s == CG_OK && d.plan.traits & CG_NEEDS_SUPPORT_) s = CG_E_UNSUPPORTED; /* clear with the support itself */
    if (s != CG_OK) return s;
    if (cg_has_segments_(&d.info)) return cg_clear_segments_(&d);
    cg_clear_opened_(&d);
    return CG_OK;
}
CG_API_ cg_status cg_clear(const void *packet, size_t len, float *y, size_t n) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_clear_(packet, len, y, n);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_inspect(const void *packet, size_t len, cg_info *info) {
    cg_fenv_ env = cg_fenv_enter_();
    const cg_info zero = CG_ZERO;
    cg_plan_ plan;
    cg_status s = CG_E_ARG;
    if (info) *info = zero;
    if (packet && info) s = cg_header_get_((const uint8_t *)packet, len, info, &plan);
    cg_fenv_leave_(env);
    return s;
}
/* Whether side->support can be the support of n values: CG_OK, or what cg_compress_with would return for it. */
CG_OFFERED_ cg_status cg_support_check_(const cg_extra *side, size_t n) {
    cg_decoder_ set;
    return cg_support_open_(&set, side, n);
}
/* Everything that cg_decode would find wrong with a packet of n values, without decoding it. */
CG_OFFERED_ cg_status cg_packet_check_(const cg_extra *side, const void *packet, size_t len, size_t n) {
    cg_decoder_ d;
    float no_output = 0.0f;
    cg_status s = cg_decoder_open_(&d, side, packet, len, &no_output, n, 1);
    if (s == CG_OK && d.plan.traits & CG_NEEDS_SUPPORT_ && !cg_has_segments_(&d.info)) s = cg_given_check_(&d, side);
    return s == CG_OK ? cg_verify_(&d, side) : s;
}
/* In two steps, for callers who look at the header in between. First: the header of len bytes, to d->info and d->plan.
   op and known: as in cg_header_get_like_. */
CG_OFFERED_ cg_status cg_packet_header_(
    cg_decoder_ *d, const void *packet, size_t len, const cg_op *op, const cg_plan_ *known) {
    return packet ? cg_header_get_like_((const uint8_t *)packet, len, op, known, &d->info, &d->plan) : CG_E_ARG;
}
/* Then, with the same packet: all that cg_decode would find wrong with it if verify is 1, otherwise only with its
   sections, for one that has been verified before. After CG_OK the packet is open, as long as it stays where it is. */
CG_OFFERED_ cg_status cg_packet_open_(
    cg_decoder_ *d, const cg_extra *side, const void *packet, size_t len, int verify) {
    cg_status s = cg_extra_check_(NULL, side);
    if (s == CG_OK) s = cg_decoder_open_rest_(d, side, packet, len, NULL, 1);
    if (s == CG_OK && verify && d->plan.traits & CG_NEEDS_SUPPORT_ && !cg_has_segments_(&d->info))
        s = cg_given_check_(d, side);
    return s == CG_OK && verify ? cg_verify_(d, side) : s;
}
/* y = alpha D + beta y of an opened packet, by blocks of CG_BLOCK_ values with cg_decoder_add_block_, unless that
   cannot be (a selection, a sample, a code, a matrix): then 0 is returned, and d->alpha and d->beta are set
   nevertheless. */
CG_OFFERED_ int cg_decoder_by_blocks_(cg_decoder_ *d, float alpha, float beta, float *y) {
    d->y = y ? y : &d->empty_y;
    d->sink = NULL;
    d->alpha = alpha;
    d->beta = beta;
    d->non_temporal = 0;
    return !cg_has_segments_(&d->info) && !d->info.op.select.id && !cg_is_sampled_(&d->info.op) &&
        !cg_is_coded_(&d->lay) && !d->lay.codec && !(d->plan.traits & CG_IS_MATRIX_);
}
CG_OFFERED_ void cg_decoder_add_block_(const cg_decoder_ *d, size_t block) {
    cg_checksum_ sum;
    double energy;
    cg_decode_block_(d, NULL, NULL, block, 0, &sum, &energy);
}
