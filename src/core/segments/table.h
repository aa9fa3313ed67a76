/* table: the table of a packet with segments, which says what each of them is

   Offers   cg_segment_cursor_ with cg_segments_open_, cg_segment_next_ and cg_segments_end_; cg_segment_put_,
            cg_segment_room_, cg_varint_put_
   Needs    base, stages, plan, packet, layout
   Touches  the table that is written; the cursor
   A cursor reads the entries of any bytes in order: what cg_segment_next_ returns with CG_OK is a header as that of a
   packet of this segment alone, with a body that lies in the packet. The manual draws the table. */

/* 7 bits a byte, the lowest first; all bytes but the last have the eighth. */
static size_t cg_varint_bytes_(uint64_t v) {
    size_t bytes = 1;
    for (; v >= 128; v >>= 7) bytes++;
    return bytes;
}
static uint8_t *cg_varint_put_(uint8_t *p, uint64_t v) {
    for (; v >= 128; v >>= 7) *p++ = (uint8_t)(v | 128);
    *p++ = (uint8_t)v;
    return p;
}
/* Moves *p behind the number; 0: it does not end before `end`, is larger than `most`, or could be shorter. */
static int cg_varint_get_(const uint8_t **p, const uint8_t *end, uint64_t most, uint64_t *v) {
    *v = 0;
    for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
        const uint8_t byte = *(*p)++;
        if (shift == 63 && byte > 1) return 0;
        *v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return (byte || !shift) && *v <= most;
    }
    return 0;
}

/* Stands before one of the segments. */
typedef struct cg_segment_cursor_ {
    const cg_info *whole; /* of the packet */
    uint32_t traits;      /* of its operator */
    const uint8_t *ops;   /* the operators of the table */
    uint64_t op_count;
    const uint8_t *at, *end;         /* of the table */
    const uint8_t *next_body, *body; /* body: of the segment read last */
    uint64_t body_left, n_left, drawn_left, k_left;
    uint32_t left;   /* segments */
    uint32_t tensor; /* of the next, unless the table names another */
    uint64_t first;  /* of the segment read last: its first value, ... */
    uint32_t number; /* ... and which operator it has: CG_SEGMENT_OP, ... */
    uint64_t hash;   /* of what all ranks have in common: lengths, operators, tensors */
} cg_segment_cursor_;

enum { CG_SEGMENT_OP_BYTES_ = 12 * CG_SLOT_COUNT_ }; /* an operator in the table: its stages */

/* Can op select from all segments together? */
static int cg_can_be_global_(const cg_op *op, uint32_t traits) {
    return traits & CG_IS_SELECTION_ && !cg_is_sampled_(op) && !cg_is_transformed_(op) &&
        !(traits & (CG_NEEDS_SUPPORT_ | CG_NEEDS_AUX_ | CG_KEEPS_BLOCKS_ | CG_IS_USER_CODEC_));
}
/* The entry of a segment has these fields beside n. */
static int cg_segment_has_drawn_(uint32_t traits) { return (traits & CG_SAMPLES_RATIO_) != 0; }
static int cg_segment_has_k_(uint32_t traits) { return (traits & CG_IS_SELECTION_) != 0; }
static int cg_segment_has_threshold_(uint32_t traits, int is_global) {
    return traits & CG_KEEPS_LARGEST_ && !is_global;
}
static int cg_segment_has_value_bytes_(const cg_op *op, uint32_t traits) {
    return op->code.arg || traits & (CG_IS_USER_CODEC_ | CG_LENGTH_VARIES_);
}
static uint64_t cg_segments_hash_(uint32_t flags) { return cg_mix64_(flags + CG_GOLDEN_); }
/* tensor_skip: of the first segment its tensor, if the table names tensors. */
static uint64_t cg_segment_hash_(uint64_t h, uint64_t n, uint32_t number, uint32_t tensor_skip) {
    return cg_mix64_(cg_mix64_(h ^ n) + ((uint64_t)number << 32 | tensor_skip));
}
static uint64_t cg_segment_op_hash_(uint64_t h, const uint8_t *stages) {
    for (unsigned i = 0; i < CG_SEGMENT_OP_BYTES_; i += 4) h = cg_mix64_(h ^ cg_get32_(stages + i));
    return h;
}
/* Bytes of an entry at most. */
static uint64_t cg_segment_room_(
    const cg_op *op, const cg_plan_ *plan, uint32_t number, uint32_t flags, int is_global) {
    uint64_t bytes = cg_varint_bytes_(plan->n);
    if (flags & CG_SEGMENTS_TENSORS_) bytes += 5;
    if (flags & CG_SEGMENTS_MIXED_) bytes += cg_varint_bytes_(number);
    if (cg_segment_has_drawn_(plan->traits)) bytes += cg_varint_bytes_(plan->n);
    if (cg_segment_has_k_(plan->traits))
        bytes += cg_varint_bytes_(is_global ? plan->transformed_n : plan->max_selected);
    if (plan->traits & CG_NEEDS_SUPPORT_) bytes += 4;
    if (cg_segment_has_threshold_(plan->traits, is_global)) bytes += 4;
    if (cg_segment_has_value_bytes_(op, plan->traits)) bytes += 10;
    if (plan->traits & CG_INDEX_LENGTH_VARIES_) bytes += 10;
    return bytes;
}
/* Writes the entry of a segment whose header is info; returns where it ends. */
static uint8_t *cg_segment_put_(uint8_t *p, const cg_info *info, uint32_t traits, uint32_t number, uint32_t tensor_skip,
    uint32_t flags, int is_global) {
    if (flags & CG_SEGMENTS_TENSORS_) p = cg_varint_put_(p, tensor_skip);
    p = cg_varint_put_(p, info->n);
    if (flags & CG_SEGMENTS_MIXED_) p = cg_varint_put_(p, number);
    if (cg_segment_has_drawn_(traits)) p = cg_varint_put_(p, info->drawn);
    if (cg_segment_has_k_(traits)) p = cg_varint_put_(p, info->k);
    if (traits & CG_NEEDS_SUPPORT_) {
        cg_put32_(p, info->op.select.size);
        p += 4;
    }
    if (cg_segment_has_threshold_(traits, is_global)) {
        cg_put32_(p, cg_as_bits_(info->threshold));
        p += 4;
    }
    if (cg_segment_has_value_bytes_(&info->op, traits)) p = cg_varint_put_(p, info->value_bytes / 4);
    if (traits & CG_INDEX_LENGTH_VARIES_) p = cg_varint_put_(p, info->index_bytes / 4);
    return p;
}

/* Before the first segment of a packet whose header is *info, which must stay, and traits those of its operator. All of
   the packet is there. */
static cg_status cg_segments_open_(cg_segment_cursor_ *c, const cg_info *info, uint32_t traits, const uint8_t *packet) {
    c->whole = info;
    c->traits = traits;
    c->next_body = packet + CG_HEADER_BYTES;
    c->body = NULL;
    c->at = c->next_body + info->value_bytes;
    c->end = c->at + info->index_bytes;
    c->body_left = info->value_bytes;
    c->n_left = info->n;
    c->drawn_left = info->drawn;
    c->k_left = info->k;
    c->left = info->segments;
    c->tensor = info->tag.tensor;
    c->first = c->number = 0;
    c->ops = NULL;
    c->op_count = 0;
    c->hash = cg_segments_hash_(info->segment_flags);
    if (info->segment_flags & CG_SEGMENTS_GLOBAL && !cg_can_be_global_(&info->op, traits)) return CG_E_CORRUPT;
    if (!(info->segment_flags & CG_SEGMENTS_MIXED_)) return CG_OK;
    if (!cg_varint_get_(&c->at, c->end, info->index_bytes / CG_SEGMENT_OP_BYTES_, &c->op_count)) return CG_E_CORRUPT;
    if (c->op_count * CG_SEGMENT_OP_BYTES_ > (uint64_t)(c->end - c->at)) return CG_E_CORRUPT;
    c->ops = c->at;
    for (uint64_t i = 0; i < c->op_count; i++, c->at += CG_SEGMENT_OP_BYTES_)
        c->hash = cg_segment_op_hash_(c->hash, c->at);
    return CG_OK;
}
/* Operator `number` of the table into *op, and its traits. */
static cg_status cg_segment_op_get_(const cg_segment_cursor_ *c, uint64_t number, cg_op *op, uint32_t *traits) {
    cg_status s;
    memset(op, 0, sizeof *op);
    if (number >= CG_SEGMENT_OPS)
        for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++)
            cg_stage_get_(
                c->ops + (size_t)(number - CG_SEGMENT_OPS) * CG_SEGMENT_OP_BYTES_ + 12 * slot, cg_op_stage_(op, slot));
    s = cg_op_resolve_(op, traits);
    return s == CG_E_ARG ? CG_E_CORRUPT : s;
}
/* The next segment: *info becomes its header, *plan its plan and c->body its values. c->left must not be 0. */
static cg_status cg_segment_next_(cg_segment_cursor_ *c, cg_info *info, cg_plan_ *plan) {
    const cg_info *whole = c->whole;
    const uint32_t flags = whole->segment_flags;
    const cg_info zero = CG_ZERO;
    uint64_t number = 0, skip = 0, values = 0, indices = 0;
    uint32_t traits = c->traits;
    int is_global;
    cg_layout_ lay;
    cg_status s;
    *info = zero;
    info->tag = whole->tag;
    if (flags & CG_SEGMENTS_TENSORS_ && !cg_varint_get_(&c->at, c->end, 0xffffffffu, &skip)) return CG_E_CORRUPT;
    if (!cg_varint_get_(&c->at, c->end, c->n_left, &info->n)) return CG_E_CORRUPT;
    if (flags & CG_SEGMENTS_MIXED_ && !cg_varint_get_(&c->at, c->end, c->op_count + CG_SEGMENT_OPS - 1, &number))
        return CG_E_CORRUPT;
    info->tag.tensor = c->tensor + (uint32_t)skip;
    info->op = whole->op;
    if (number != CG_SEGMENT_OP) {
        s = cg_segment_op_get_(c, number, &info->op, &traits);
        if (s != CG_OK) return s;
    }
    is_global = flags & CG_SEGMENTS_GLOBAL && number == CG_SEGMENT_OP;
    if (traits & CG_IS_PER_RANK_ && info->tag.rank >= info->op.sample.size) return CG_E_CORRUPT;
    if (!cg_segment_has_drawn_(traits)) info->drawn = cg_sampled_n_(&info->op, info->n, &info->tag);
    else if (!cg_varint_get_(&c->at, c->end, c->drawn_left, &info->drawn)) return CG_E_CORRUPT;
    plan->traits = traits;
    plan->n = info->n;
    plan->sampled_n = info->drawn;
    cg_plan_resume_(plan, &info->op);
    info->k = plan->transformed_n;
    if (cg_segment_has_k_(traits) && !cg_varint_get_(&c->at, c->end, c->k_left, &info->k)) return CG_E_CORRUPT;
    if (traits & CG_NEEDS_SUPPORT_) {
        if (c->end - c->at < 4) return CG_E_CORRUPT;
        info->op.select.size = cg_get32_(c->at);
        c->at += 4;
    }
    if (cg_segment_has_threshold_(traits, is_global)) {
        if (c->end - c->at < 4) return CG_E_CORRUPT;
        info->threshold = cg_as_float_(cg_get32_(c->at));
        c->at += 4;
    }
    if (cg_segment_has_value_bytes_(&info->op, traits)) {
        if (!cg_varint_get_(&c->at, c->end, c->body_left / 4, &values)) return CG_E_CORRUPT;
        values *= 4;
    } else {
        s = cg_layout_make_(&info->op, NULL, info->k, &lay);
        if (s != CG_OK) return s;
        values = cg_add_sat_(lay.scale_bytes, lay.codes_bytes);
    }
    indices = cg_index_count_(plan, info->k);
    info->index_code = cg_index_code_(&info->op, plan, indices);
    indices = cg_index_bytes_(info->index_code, plan->universe, indices);
    if (traits & CG_INDEX_LENGTH_VARIES_) {
        if (!cg_varint_get_(&c->at, c->end, c->body_left / 4, &indices)) return CG_E_CORRUPT;
        indices *= 4;
    }
    if (cg_add_sat_(values, indices) > c->body_left || info->drawn > c->drawn_left || info->k > c->k_left)
        return CG_E_CORRUPT;
    s = cg_counts_check_(info, plan, values, indices, is_global);
    if (s != CG_OK) return s;
    if (is_global) plan->max_selected = plan->transformed_n;
    c->first = whole->n - c->n_left;
    c->number = (uint32_t)number;
    c->body = c->next_body;
    c->next_body += (size_t)(values + indices);
    c->body_left -= values + indices;
    c->n_left -= info->n;
    c->drawn_left -= info->drawn;
    c->k_left -= info->k;
    if (c->left == whole->segments && flags & CG_SEGMENTS_TENSORS_) skip = info->tag.tensor;
    c->hash = cg_segment_hash_(c->hash, info->n, (uint32_t)number, (uint32_t)skip);
    c->tensor = info->tag.tensor + 1;
    c->left--;
    return CG_OK;
}
/* After the last segment: is nothing left over? */
static int cg_segments_end_(const cg_segment_cursor_ *c) {
    const uint8_t *p = c->at;
    if (c->left || c->body_left || c->n_left || c->drawn_left || c->k_left || c->end - p > 3) return 0;
    for (; p < c->end; p++)
        if (*p) return 0;
    return 1;
}
