/* packet: header and checksum of a packet, and the sizes of its index section

   Offers   checksums of several parts, cg_header_put_, cg_header_get_, cg_counts_check_, cg_packet_finalize_,
            cg_index_code_ and sizes, whether there are segments
   Needs    base, kernels (checksum), stages, plan; the codes of indices by their rows
   Touches  the packet that is written
   Other headers may use: cg_packet_rank_put_, cg_packet_seal_, cg_seal_is_intact_, cg_seal_put_
   The manual draws the header byte by byte. cg_header_get_ accepts any bytes: what it returns with CG_OK is
   consistent in itself, so that no later size computation overflows or leaves the packet. */

/* The checksum of the words of s followed by those of t. */
static cg_checksum_ cg_checksum_concat_(cg_checksum_ s, cg_checksum_ t) {
    s.b += t.words * s.a + t.b;
    s.a += t.a;
    s.words += t.words;
    return s;
}
/* bytes is a multiple of 4; p may have any alignment. */
static cg_checksum_ cg_checksum_of_(const cg_kernels_ *kernels, const uint8_t *p, size_t bytes) {
    cg_checksum_ s = { 0, 0, 0 };
    if (bytes) CG_KERNEL_(kernels, checksum(&s, p, bytes / 4));
    return s;
}
/* The checksum of so many words of zeros. */
static cg_checksum_ cg_checksum_zeros_(uint64_t words) {
    cg_checksum_ s = { 0, 0, 0 };
    s.words = words;
    return s;
}

#define CG_CHECKSUM_OFFSET_ (CG_HEADER_BYTES - 16)
static const uint8_t cg_magic_[5] = { 'c', 'g', 'p', 'k', 1 }; /* four letters and the version */
enum { CG_FORMAT_SEGMENTS_ = 2 /* the version of packets with segments */ };
/* Does this build have them? */
CG_INLINE_ int cg_builds_segments_(void) { return 0 CG_OR_BUILT_(SEGMENTS, ); }
CG_INLINE_ int cg_has_segments_(const cg_info *info) { return cg_builds_segments_() && info->segments; }
static const cg_segments *cg_segments_of_(const cg_extra *extra) {
    return cg_builds_segments_() && extra ? extra->segments : NULL;
}
/* In byte 5 of such a packet beside CG_SEGMENTS_GLOBAL: the table names operators, or tensors, of the segments. */
enum { CG_SEGMENTS_MIXED_ = 2, CG_SEGMENTS_TENSORS_ = 4, CG_SEGMENTS_KNOWN_ = 7 };

/* A stage as 12 bytes of a packet, and back. */
static void cg_stage_put_(uint8_t *q, const cg_stage *s) {
    if (CG_BIG_ENDIAN_) {
        q[0] = s->id;
        q[1] = s->flags;
        cg_put16_(q + 2, s->arg);
        cg_put32_(q + 4, s->size);
        cg_put32_(q + 8, cg_as_bits_(s->value));
    } else memcpy(q, s, 12); /* a stage lies in memory as in the header */
}
static void cg_stage_get_(const uint8_t *q, cg_stage *stage) {
    if (CG_BIG_ENDIAN_) {
        stage->id = q[0];
        stage->flags = q[1];
        stage->arg = cg_get16_(q + 2);
        stage->size = cg_get32_(q + 4);
        stage->value = cg_as_float_(cg_get32_(q + 8));
    } else memcpy(stage, q, 12);
}
/* CG_HEADER_BYTES at p, with a checksum of zeros. All of info but packet_bytes is stored, op.k only as drawn or k. */
static void cg_header_put_(uint8_t *p, const cg_info *info) {
    memcpy(p, cg_magic_, 5);
    p[5] = (uint8_t)(cg_has_segments_(info) ? info->segment_flags : info->index_code);
    p[6] = p[7] = 0;
    if (cg_has_segments_(info)) p[4] = CG_FORMAT_SEGMENTS_;
    if (!CG_BIG_ENDIAN_) memcpy(p + 8, &info->op, 12 * CG_SLOT_COUNT_); /* stages lie in memory as in the header */
    for (unsigned slot = 0; CG_BIG_ENDIAN_ && slot < CG_SLOT_COUNT_; slot++)
        cg_stage_put_(p + 8 + 12 * slot, cg_op_stage_const_(&info->op, slot));
    cg_put64_(p + 80, info->n);
    cg_put64_(p + 88, info->drawn);
    cg_put64_(p + 96, info->k);
    cg_put64_(p + 104, info->tag.seed);
    cg_put64_(p + 112, info->tag.step);
    cg_put32_(p + 120, info->tag.tensor);
    cg_put32_(p + 124, info->tag.rank);
    cg_put64_(p + 128, info->value_bytes);
    cg_put64_(p + 136, info->index_bytes);
    cg_put32_(p + 144, cg_as_bits_(info->threshold));
    cg_put32_(p + 148, cg_has_segments_(info) ? info->segments : 0);
    memset(p + CG_CHECKSUM_OFFSET_, 0, 16);
}

/* Bytes of k indices below universe; the maximum where a code's length varies; 0 for CG_CODE_AUTO, which means no
   indices here. */
static uint64_t cg_index_bytes_(uint32_t code, uint64_t universe, uint64_t k) {
    return code && k ? cg_index_coder_at_(code)->bytes(universe, k) : 0;
}
/* The index code that the encoder takes for k indices, as it stands in the header; the decoder demands the same. */
static uint32_t cg_index_code_(const cg_op *op, const cg_plan_ *plan, uint64_t k) {
    if (!cg_has_indices_(plan)) return CG_CODE_AUTO; /* none */
    if (k == 0) return CG_CODE_ELIAS_FANO;
    if (op->code.id) return op->code.id;
    return cg_index_bytes_(CG_CODE_BITMAP, plan->universe, k) < cg_index_bytes_(CG_CODE_ELIAS_FANO, plan->universe, k)
        ? CG_CODE_BITMAP
        : CG_CODE_ELIAS_FANO;
}
/* Bytes for any number of indices up to k, in the code that cg_index_code_ takes for each. */
static uint64_t cg_index_bound_(const cg_op *op, uint64_t universe, uint64_t k) {
    return cg_index_coder_at_(op->code.id)->bound(universe, k);
}

/* All fields of all stages equal, values as bits. */
static int cg_same_stages_(const cg_op *a, const cg_op *b) {
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        const cg_stage *s = cg_op_stage_const_(a, slot), *t = cg_op_stage_const_(b, slot);
        if (s->id != t->id || s->flags != t->flags || s->arg != t->arg || s->size != t->size ||
            cg_as_bits_(s->value) != cg_as_bits_(t->value))
            return 0;
    }
    return 1;
}
/* The second half of the check of a header: info->op has passed cg_op_check_, and its counts must be such as its stages
   can leave; *plan is that of them. Sets op.k where it was set, and the sizes of the sections. any_k: the packet has
   chosen k of all its segments together, so that it may be any number of these values. */
static cg_status cg_counts_check_(
    cg_info *info, cg_plan_ *plan, uint64_t value_bytes, uint64_t index_bytes, int any_k) {
    uint64_t indices, most;
    const uint64_t sampled_n = cg_sampled_n_(&info->op, info->n, &info->tag);
    if (!cg_is_finite_(info->threshold) || cg_as_bits_(info->threshold) >> 31) return CG_E_CORRUPT;
    if (!(plan->traits & CG_KEEPS_LARGEST_) && cg_as_bits_(info->threshold)) return CG_E_CORRUPT;
    /* n, drawn and k must be what the stages can leave; drawn or k may have been fixed by op.k */
    if (plan->traits & CG_IS_PER_RANK_ && info->tag.rank >= info->op.sample.size) return CG_E_CORRUPT;
    if (info->drawn != sampled_n) {
        if (!(plan->traits & CG_SAMPLES_RATIO_) || plan->traits & CG_TAKES_K_ || info->drawn > info->n || !info->drawn)
            return CG_E_CORRUPT;
        info->op.k = info->drawn;
    }
    if (plan->traits & CG_IS_MATRIX_ && !cg_matrix_shape_fits_(&info->op, info->n)) return CG_E_CORRUPT;
    if (!(plan->traits & CG_IS_SELECTION_) && info->k != plan->transformed_n) return CG_E_CORRUPT;
    if (any_k) {
        if (info->k > plan->transformed_n) return CG_E_CORRUPT;
    } else if (plan->traits & CG_TAKES_K_ && info->k != plan->max_selected) {
        if (info->k > plan->transformed_n || !info->k) return CG_E_CORRUPT;
        info->op.k = plan->max_selected = info->k;
    }
    if (!any_k && (plan->traits & CG_KEEPS_EXACTLY_ ? info->k != plan->max_selected : info->k > plan->max_selected))
        return CG_E_CORRUPT;
    indices = cg_index_count_(plan, info->k);
    if (info->index_code != cg_index_code_(&info->op, plan, indices)) return CG_E_CORRUPT;
    most = cg_index_bytes_(info->index_code, plan->universe, indices);
    if (plan->traits & CG_INDEX_LENGTH_VARIES_ ? index_bytes % 4 || index_bytes > most : index_bytes != most)
        return CG_E_CORRUPT;
    if (value_bytes % 4 || cg_add_sat_(cg_add_sat_(value_bytes, index_bytes), CG_HEADER_BYTES) > SIZE_MAX / 2)
        return CG_E_CORRUPT;
    info->value_bytes = (size_t)value_bytes;
    info->index_bytes = (size_t)index_bytes;
    info->packet_bytes = CG_HEADER_BYTES + info->value_bytes + info->index_bytes;
    return CG_OK;
}
/* The rest of the check of a header of version 2, whose stages and tag have been read: its counts are those of all
   segments together, which core/segments/table.h checks when it has their table. */
static cg_status cg_header_segments_get_(const uint8_t *p, cg_info *info, cg_plan_ *plan) {
    const uint64_t bodies = cg_get64_(p + 128), table = cg_get64_(p + 136);
    info->index_code = 0;
    info->segment_flags = p[5];
    info->segments = cg_get32_(p + 148);
    if (info->segment_flags & ~(uint32_t)CG_SEGMENTS_KNOWN_) return CG_E_VERSION;
    if (cg_get16_(p + 6) || !info->segments || info->drawn > info->n) return CG_E_CORRUPT;
    if (!cg_is_finite_(info->threshold) || cg_as_bits_(info->threshold) >> 31) return CG_E_CORRUPT;
    if (cg_as_bits_(info->threshold) &&
        (!(plan->traits & CG_KEEPS_LARGEST_) || !(info->segment_flags & CG_SEGMENTS_GLOBAL)))
        return CG_E_CORRUPT;
    if (bodies % 4 || table % 4 || table < info->segments ||
        cg_add_sat_(cg_add_sat_(bodies, table), CG_HEADER_BYTES) > SIZE_MAX / 2)
        return CG_E_CORRUPT;
    plan->n = info->n;
    plan->sampled_n = info->drawn;
    plan->transformed_n = plan->max_selected = plan->universe = info->k;
    plan->values_per_index = 1;
    info->value_bytes = (size_t)bodies;
    info->index_bytes = (size_t)table;
    info->packet_bytes = CG_HEADER_BYTES + info->value_bytes + info->index_bytes;
    return CG_OK;
}
/* Reads and checks the header of any len bytes at p. CG_OK: op has passed cg_op_check_, *plan is that of the packet,
   all counts are what its stages can leave, section sizes are multiples of 4 and fit a size_t together; op.k is
   restored where it was set. packet_bytes may still differ from len, and value_bytes from what the quantizer writes:
   cg_decoder_open_ checks. On an error *info and *plan are partly filled. op: one that has passed cg_op_check_, and
   known its plan, which a header of the same operator and n need not be checked and planned for again; or NULL. */
static cg_status cg_header_get_like_(
    const uint8_t *p, size_t len, const cg_op *op, const cg_plan_ *known, cg_info *info, cg_plan_ *plan) {
    int is_known, segmented;
    cg_status s;
    if (len < CG_HEADER_BYTES) return CG_E_CORRUPT;
    for (int i = 0; i < 4; i++)
        if (p[i] != cg_magic_[i]) return CG_E_CORRUPT;
    segmented = cg_builds_segments_() && p[4] == CG_FORMAT_SEGMENTS_;
    if (p[4] != cg_magic_[4] && !segmented) return CG_E_VERSION;
    info->index_code = p[5];
    info->segments = info->segment_flags = 0;
    if (!CG_BIG_ENDIAN_) memcpy(&info->op, p + 8, 12 * CG_SLOT_COUNT_);
    for (unsigned slot = 0; CG_BIG_ENDIAN_ && slot < CG_SLOT_COUNT_; slot++)
        cg_stage_get_(p + 8 + 12 * slot, cg_op_stage_(&info->op, slot));
    info->op.k = info->op.reserved = 0;
    is_known = known && !segmented && !op->k && cg_same_stages_(&info->op, op);
    if (is_known) plan->traits = known->traits;
    s = is_known ? CG_OK : cg_op_resolve_(&info->op, &plan->traits);
    if (s != CG_OK) return s == CG_E_ARG ? CG_E_CORRUPT : s;
    info->n = cg_get64_(p + 80);
    info->drawn = cg_get64_(p + 88);
    info->k = cg_get64_(p + 96);
    info->tag.seed = cg_get64_(p + 104);
    info->tag.step = cg_get64_(p + 112);
    info->tag.tensor = cg_get32_(p + 120);
    info->tag.rank = cg_get32_(p + 124);
    info->threshold = cg_as_float_(cg_get32_(p + 144));
    if (segmented) return cg_header_segments_get_(p, info, plan);
    if (cg_get16_(p + 6) || cg_get32_(p + 148)) return CG_E_CORRUPT;
    plan->n = info->n;
    plan->sampled_n = info->drawn;
    if (is_known && known->n == info->n && known->sampled_n == info->drawn) *plan = *known;
    else cg_plan_resume_(plan, &info->op);
    return cg_counts_check_(info, plan, cg_get64_(p + 128), cg_get64_(p + 136), 0);
}
static cg_status cg_header_get_(const uint8_t *p, size_t len, cg_info *info, cg_plan_ *plan) {
    return cg_header_get_like_(p, len, NULL, NULL, info, plan);
}
/* A packet of at most so many bytes is in the cache, and its checksum is made at once, not section by section. */
enum { CG_SMALL_PACKET_ = 8192 };
/* The checksum of a whole packet of len bytes, with zeros where the header has it. */
static cg_checksum_ cg_packet_checksum_(const cg_kernels_ *kernels, const uint8_t *packet, size_t len) {
    cg_checksum_ s = cg_checksum_of_(kernels, packet, len);
    for (size_t at = CG_CHECKSUM_OFFSET_; at < CG_HEADER_BYTES; at += 4) {
        const uint64_t word = cg_get32_(packet + at);
        s.a -= word;
        s.b -= word * (uint64_t)((len - at) / 4);
    }
    return s;
}
/* Writes header and checksum in front of a body of value_bytes + index_bytes, which has been written and has this
   checksum (of a small packet it is not read); returns the length of the packet in bytes. */
static size_t cg_packet_finalize_(const cg_kernels_ *kernels, const cg_info *info, uint8_t *packet, cg_checksum_ body) {
    const size_t len = CG_HEADER_BYTES + info->value_bytes + info->index_bytes;
    cg_checksum_ sum;
    cg_header_put_(packet, info);
    if (len <= CG_SMALL_PACKET_) sum = cg_checksum_of_(kernels, packet, len);
    else {
        sum = cg_checksum_concat_(cg_checksum_of_(kernels, packet, CG_CHECKSUM_OFFSET_), cg_checksum_zeros_(4));
        sum = cg_checksum_concat_(sum, body);
    }
    cg_put64_(packet + CG_CHECKSUM_OFFSET_, sum.a);
    cg_put64_(packet + CG_CHECKSUM_OFFSET_ + 8, sum.b);
    return len;
}
/* Another rank into the tag of a packet of len bytes. A word counts once in the first half of the checksum, and in the
   second once for itself and every word behind it, so that no pass over the body is needed. */
CG_OFFERED_ void cg_packet_rank_put_(uint8_t *packet, size_t len, uint32_t rank) {
    const uint64_t change = (uint64_t)rank - cg_get32_(packet + 124);
    uint8_t *sum = packet + CG_CHECKSUM_OFFSET_;
    cg_put32_(packet + 124, rank);
    cg_put64_(sum, cg_get64_(sum) + change);
    cg_put64_(sum + 8, cg_get64_(sum + 8) + ((uint64_t)len / 4 - 31) * change);
}
/* A seal: the checksum of p[0, len), 16 bytes at `offset` that count as zeros while it is computed, for other headers
   that save state. len and offset are multiples of 4, and offset + 16 <= len. */
CG_OFFERED_ cg_checksum_ cg_seal_of_(const uint8_t *p, size_t len, size_t offset) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    cg_checksum_ sum = cg_checksum_concat_(cg_checksum_of_(kernels, p, offset), cg_checksum_zeros_(4));
    return cg_checksum_concat_(sum, cg_checksum_of_(kernels, p + offset + 16, len - offset - 16));
}
CG_OFFERED_ void cg_seal_put_(uint8_t *p, size_t len, size_t offset) {
    const cg_checksum_ sum = cg_seal_of_(p, len, offset);
    cg_put64_(p + offset, sum.a);
    cg_put64_(p + offset + 8, sum.b);
}
CG_OFFERED_ int cg_seal_is_intact_(const uint8_t *p, size_t len, size_t offset) {
    const cg_checksum_ sum = cg_seal_of_(p, len, offset);
    return sum.a == cg_get64_(p + offset) && sum.b == cg_get64_(p + offset + 8);
}
/* The same where the whole body (info->value_bytes and info->index_bytes) stands in the packet already, with a checksum
   that is still to be made. */
CG_OFFERED_ size_t cg_packet_seal_(const cg_info *info, uint8_t *packet) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    return cg_packet_finalize_(kernels, info, packet,
        cg_checksum_of_(kernels, packet + CG_HEADER_BYTES, info->value_bytes + info->index_bytes));
}
