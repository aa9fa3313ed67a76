/* compress: tensors that lie one behind the other in x, as the segments of one packet

   Offers   cg_compress_segments_, cg_segments_bound_, cg_segments_scratch_, cg_segments_why_, cg_segments_hash_of_
   Needs    base, plan, packet, layout, segments/table, source, select/list, indices, compress, segments/decode
   Touches  the caller's packet, *len and scratch; x, if a producer makes it
   Every segment is compressed as by a call of its own, but for its header, which becomes an entry of the table. The
   table is written at the end of the caller's room while bodies are written from the front, and then moved behind them.
   A selection from all segments is made first; its list is cut where segments end. */

static const cg_op cg_exact_op_ = CG_ZERO;
static uint32_t cg_segments_flags_(const cg_segments *g) {
    uint32_t flags = g->flags & CG_SEGMENTS_GLOBAL;
    if (g->op) flags |= CG_SEGMENTS_MIXED_;
    if (g->tensor) flags |= CG_SEGMENTS_TENSORS_;
    return flags;
}
static uint32_t cg_segment_number_(const cg_segments *g, size_t i) {
    return g->op ? g->op[i] : (uint32_t)CG_SEGMENT_OP;
}
static const cg_op *cg_segment_op_(const cg_segments *g, const cg_op *op, size_t i) {
    const uint32_t number = cg_segment_number_(g, i);
    return number == CG_SEGMENT_OP ? op : number == CG_SEGMENT_EXACT ? &cg_exact_op_ : &g->ops[number - CG_SEGMENT_OPS];
}
static int cg_segment_is_global_(const cg_segments *g, size_t i) {
    return g->flags & CG_SEGMENTS_GLOBAL && cg_segment_number_(g, i) == CG_SEGMENT_OP;
}
/* All values that a selection of all segments sees. */
static size_t cg_segments_global_n_(const cg_segments *g) {
    size_t n = 0;
    for (size_t i = 0; i < g->count; i++) n += cg_segment_is_global_(g, i) ? g->n[i] : 0;
    return n;
}
/* Why segments are refused; NULL: they are not. op has passed cg_op_check_. */
static const char *cg_segments_refusal_(const cg_op *op, const cg_segments *g, size_t n) {
    uint64_t left = n;
    if (!g->count || !g->n) return "segments.count is 0, or segments.n is NULL: without tensors leave segments NULL";
    if ((uint64_t)g->count > 0xffffffffu) return "segments.count is 2^32 or more";
    if (g->flags & ~(uint32_t)CG_SEGMENTS_GLOBAL) return "segments.flags has an unknown flag";
    if (!g->ops && g->op_count) return "segments.ops is NULL, and segments.op_count is not 0";
    if (g->flags & CG_SEGMENTS_GLOBAL) {
        if (!cg_can_be_global_(op, cg_op_traits_(op)))
            return "CG_SEGMENTS_GLOBAL is for operators that begin with a selection of single values, such as topk";
        if ((uint64_t)n > 0xffffffffu) return "CG_SEGMENTS_GLOBAL is for less than 2^32 values";
    }
    for (size_t j = 0; j < g->op_count; j++)
        if (cg_op_check_new_(&g->ops[j]) != CG_OK)
            return "an operator in segments.ops is not valid: as text cg_op_parse_why says why";
    for (size_t i = 0; i < g->count; i++) {
        if (g->op && g->op[i] >= CG_SEGMENT_OPS && g->op[i] - CG_SEGMENT_OPS >= g->op_count)
            return "segments.op names an operator that is not in segments.ops";
        if (!cg_matrix_shape_fits_(cg_segment_op_(g, op, i), g->n[i]))
            return "the operator of a segment is for a matrix of rows * cols values, and its n is another number";
        if (g->n[i] > left) break;
        left -= g->n[i];
        if (i + 1 == g->count && !left) return NULL;
    }
    return "the lengths in segments.n do not add up to n";
}
/* Bytes of the table at most, a multiple of 4. */
static uint64_t cg_segments_table_room_(const cg_op *op, const cg_segments *g) {
    const uint32_t flags = cg_segments_flags_(g);
    uint64_t bytes = flags & CG_SEGMENTS_MIXED_ ? 10 + (uint64_t)CG_SEGMENT_OP_BYTES_ * g->op_count : 0;
    for (size_t i = 0; i < g->count; i++) {
        const cg_op *one = cg_segment_op_(g, op, i);
        const cg_plan_ plan = cg_plan_of_(one, g->n[i]);
        bytes += cg_segment_room_(one, &plan, cg_segment_number_(g, i), flags, cg_segment_is_global_(g, i));
    }
    return cg_add_sat_(bytes, 3) & ~(uint64_t)3;
}
/* Bodies of the `count` segments, of n values in all, from which the selection of op is made together; CG_TOO_LARGE_ if
   they overflow. An index section of a cut list is hardly longer: Elias-Fano's length is concave in (n, k), and
   homogeneous, so that only what fills it up to words comes on top. */
static uint64_t cg_segments_global_bound_(const cg_op *op, const cg_segments *g, size_t n) {
    const cg_plan_ plan = cg_plan_of_(op, n);
    const uint64_t k = plan.max_selected;
    const int cut = !(plan.traits & CG_INDEX_LENGTH_VARIES_) && op->code.id != CG_CODE_BITMAP;
    uint64_t bytes, one, count = 0, indices = 0;
    cg_layout_ lay;
    if (cg_layout_sizes_(op, NULL, k, &lay, &bytes) != CG_OK || cg_layout_sizes_(op, NULL, 1, &lay, &one) != CG_OK)
        return CG_TOO_LARGE_;
    for (size_t i = 0; i < g->count; i++) {
        if (!cg_segment_is_global_(g, i)) continue;
        count++;
        if (!cut) indices = cg_add_sat_(indices, cg_index_bound_(op, g->n[i], k < g->n[i] ? k : g->n[i]));
    }
    if (cut) indices = cg_index_bound_(op, plan.universe, k);
    return cg_add_sat_(cg_add_sat_(bytes, indices), cg_mul_sat_(count, one + 24));
}
static size_t cg_segments_bound_(const cg_op *op, const cg_extra *extra, size_t n) {
    const cg_segments *g = extra->segments;
    cg_extra sub = *extra;
    uint64_t bytes;
    sub.segments = NULL;
    if (!op || cg_op_check_(op) != CG_OK || cg_segments_refusal_(op, g, n)) return 0;
    bytes = cg_add_sat_(CG_HEADER_BYTES, cg_segments_table_room_(op, g));
    for (size_t i = 0; i < g->count; i++) {
        const size_t one = cg_segment_is_global_(g, i) ? CG_HEADER_BYTES
                                                       : cg_bound_(cg_segment_op_(g, op, i), &sub, g->n[i]);
        if (!one) return 0;
        bytes = cg_add_sat_(bytes, one - CG_HEADER_BYTES);
    }
    if (g->flags & CG_SEGMENTS_GLOBAL)
        bytes = cg_add_sat_(bytes, cg_segments_global_bound_(op, g, cg_segments_global_n_(g)));
    return cg_size_or_zero_(bytes);
}
/* Scratch of a selection from all segments of op: first the values, unless they lie in x one behind the other. */
static uint64_t cg_segments_gathered_bytes_(const cg_segments *g, size_t n, size_t global_n) {
    return g->flags & CG_SEGMENTS_GLOBAL && global_n != n ? cg_add_sat_(cg_mul_sat_(4, global_n), 64) : 0;
}
static uint64_t cg_segments_global_scratch_(const cg_op *op, const cg_segments *g, size_t n) {
    const size_t global_n = cg_segments_global_n_(g);
    const cg_plan_ plan = cg_plan_of_(op, global_n);
    if (!(g->flags & CG_SEGMENTS_GLOBAL)) return 0;
    return cg_add_sat_(cg_segments_gathered_bytes_(g, n, global_n), cg_scratch_bytes_(op, &plan));
}
static uint64_t cg_segments_scratch_(const cg_op *op, const cg_extra *extra, size_t n) {
    const cg_segments *g = extra->segments;
    uint64_t bytes = 0;
    if (cg_op_check_new_(op) != CG_OK || cg_segments_refusal_(op, g, n)) return 0;
    for (size_t i = 0; i < g->count; i++) {
        const cg_op *one = cg_segment_op_(g, op, i);
        const cg_plan_ plan = cg_plan_of_(one, g->n[i]);
        const uint64_t need = cg_segment_is_global_(g, i) ? 0 : cg_scratch_bytes_(one, &plan);
        if (need > bytes) bytes = need;
    }
    return cg_add_sat_(bytes, cg_segments_global_scratch_(op, g, n));
}
static const char *cg_segments_why_(const cg_op *op, const cg_extra *extra, size_t n) {
    const char *why = cg_segments_refusal_(op, extra->segments, n);
    return why ? why
               : "the bytes of a packet overflow, or the operator of a segment has a codec that is not in "
                 "cg_extra.codecs or refuses its parameters";
}
/* What cg_decoder_.segments_hash is of packets of these segments. */
static uint64_t cg_segments_hash_of_(const cg_segments *g) {
    uint8_t stages[CG_SEGMENT_OP_BYTES_];
    uint64_t h = cg_segments_hash_(cg_segments_flags_(g));
    for (size_t j = 0; g->op && j < g->op_count; j++) {
        for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++)
            cg_stage_put_(stages + 12 * slot, cg_op_stage_const_(&g->ops[j], slot));
        h = cg_segment_op_hash_(h, stages);
    }
    for (size_t i = 0; i < g->count; i++) {
        const uint32_t skip = !g->tensor ? 0u : i ? g->tensor[i] - (g->tensor[i - 1] + 1) : g->tensor[0];
        h = cg_segment_hash_(h, g->n[i], cg_segment_number_(g, i), skip);
    }
    return h ? h : 1;
}

/* What compressing segments shares. */
typedef struct cg_segments_job_ {
    const cg_op *op;
    const cg_segments *segments;
    cg_segment_extra_ sub; /* of the segment that is next */
    const float *scale;    /* of that segment, or NULL */
    const float *x;
    size_t first;
    uint8_t *body, *table, *limit; /* where the next body, entry and the last entry of the table go */
    cg_checksum_ sum;              /* of the bodies */
    cg_info whole;
    cg_list_ all;  /* what a selection of all segments has kept, ... */
    size_t listed; /* ... and how many of that are in segments before */
    size_t global_first;
    void *scratch; /* of a segment */
} cg_segments_job_;

/* Selects from all segments of the call's operator together. */
static cg_status cg_segments_select_(cg_segments_job_ *job, const cg_extra *extra, uint8_t *scratch) {
    const cg_segments *g = job->segments;
    const size_t global_n = cg_segments_global_n_(g);
    const cg_plan_ plan = cg_plan_of_(job->op, global_n);
    const float *x = job->x;
    cg_info info = CG_ZERO;
    cg_extra sub = *extra;
    cg_source_ src;
    cg_status s;
    sub.segments = NULL;
    if (cg_segments_gathered_bytes_(g, (size_t)job->whole.n, global_n)) {
        float *gathered = (float *)(void *)(scratch + (64 - ((uintptr_t)scratch & 63)) % 64);
        size_t at = 0, first = 0;
        for (size_t i = 0; i < g->count; first += g->n[i++]) {
            if (!cg_segment_is_global_(g, i)) continue;
            memcpy(gathered + at, cg_at_(job->x, first), 4 * g->n[i]);
            at += g->n[i];
        }
        x = gathered;
        scratch += (size_t)cg_segments_gathered_bytes_(g, (size_t)job->whole.n, global_n);
    }
    info.op = *job->op;
    info.n = global_n;
    info.tag = job->whole.tag;
    s = cg_source_open_(&info, &plan, &sub, NULL, x, scratch, &src, &job->all);
    job->whole.threshold = info.threshold;
    return s;
}
/* A segment of n values without a selection of all. */
static cg_status cg_segment_body_(
    cg_segments_job_ *job, cg_info *info, const cg_plan_ *plan, cg_extra *extra, cg_checksum_ *sum) {
    const float empty_x = 0.0f;
    cg_list_ list;
    cg_source_ src;
    cg_layout_ lay;
    cg_status s = cg_source_open_(
        info, plan, extra, NULL, info->n ? cg_at_(job->x, job->first) : &empty_x, job->scratch, &src, &list);
    if (s == CG_OK)
        s = cg_body_put_(info, plan, extra, &src, &list, job->body, (size_t)(job->limit - job->body), 1, sum);
    if (s == CG_OK && extra->scale && cg_layout_make_(&info->op, extra, info->k, &lay) == CG_OK)
        job->scale = cg_at_(job->scale, (size_t)lay.bucket_count * lay.quantizer->scale_count);
    return s;
}
/* The part of the list of all that lies in this segment. */
static cg_status cg_segment_body_listed_(
    cg_segments_job_ *job, cg_info *info, const cg_plan_ *plan, const cg_extra *extra, cg_checksum_ *sum) {
    uint64_t start[2] = { 0, 0 };
    const uint64_t end = job->global_first + info->n;
    cg_list_ list = job->all;
    cg_source_ src;
    list.index_low += job->listed;
    list.value += job->listed;
    for (list.count = 0; job->listed < job->all.count && job->all.index_low[job->listed] < end; job->listed++)
        list.index_low[list.count++] -= (uint32_t)job->global_first;
    job->global_first = (size_t)end;
    start[1] = list.count;
    list.segment_start = start;
    list.segment_count = 1;
    info->drawn = info->n;
    info->k = list.count;
    memset(&src, 0, sizeof src);
    src.kernels = cg_kernels_now_();
    src.info = info;
    src.x = list.value;
    src.count = list.count;
    src.clip_bits = CG_INF_BITS_;
    return cg_body_put_(info, plan, extra, &src, &list, job->body, (size_t)(job->limit - job->body), 1, sum);
}
/* Does a quantizer take scales of the caller's? */
static int cg_takes_scales_(const cg_op *op) {
    return !cg_has_(op, CG_IS_USER_CODEC_ | CG_OWNS_SCALES_) && cg_quantizer_of_(&op->quantize)->scale_count;
}
/* Segment i, with its entry. tensor: of the segment if segments.tensor does not say so. */
static cg_status cg_segment_compress_(cg_segments_job_ *job, const cg_extra *given, size_t i, uint32_t tensor) {
    const cg_segments *g = job->segments;
    const uint32_t flags = job->whole.segment_flags, skip = g->tensor ? g->tensor[i] - tensor : 0;
    const int is_global = cg_segment_is_global_(g, i);
    cg_info info = CG_ZERO;
    cg_checksum_ sum = { 0, 0, 0 };
    cg_extra *extra = &job->sub.extra;
    cg_plan_ plan;
    cg_status s;
    info.op = *cg_segment_op_(g, job->op, i);
    info.n = g->n[i];
    info.tag = job->whole.tag;
    info.tag.tensor = tensor + skip;
    plan.traits = cg_op_traits_(&info.op);
    if (plan.traits & CG_IS_PER_RANK_ && info.tag.rank >= info.op.sample.size) return CG_E_ARG;
    cg_plan_set_(&plan, &info.op, info.n, &info.tag);
    extra->aux = given->aux && plan.traits & CG_NEEDS_AUX_ ? cg_at_(given->aux, job->first) : NULL;
    extra->scale = job->scale && cg_takes_scales_(&info.op) ? job->scale : NULL;
    s = is_global ? cg_segment_body_listed_(job, &info, &plan, extra, &sum)
                  : cg_segment_body_(job, &info, &plan, extra, &sum);
    if (s == CG_OK) s = cg_segment_extra_next_(&job->sub);
    if (s != CG_OK) return s;
    job->table = cg_segment_put_(job->table, &info, plan.traits, cg_segment_number_(g, i), skip, flags, is_global);
    job->sum = cg_checksum_concat_(job->sum, sum);
    job->body += info.value_bytes + info.index_bytes;
    job->first += g->n[i];
    job->whole.drawn += info.drawn;
    job->whole.k += info.k;
    job->whole.tag.tensor = info.tag.tensor; /* of the last segment, until the header is written */
    return CG_OK;
}
/* The header of the table: operators beside that of the call. */
static void cg_segments_ops_put_(cg_segments_job_ *job) {
    const cg_segments *g = job->segments;
    if (!(job->whole.segment_flags & CG_SEGMENTS_MIXED_)) return;
    job->table = cg_varint_put_(job->table, g->op_count);
    for (size_t j = 0; j < g->op_count; j++, job->table += CG_SEGMENT_OP_BYTES_)
        for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++)
            cg_stage_put_(job->table + 12 * slot, cg_op_stage_const_(&g->ops[j], slot));
}
CG_NOINLINE_ cg_status cg_compress_segments_(const cg_op *op, const cg_tag *tag, const cg_extra *extra, const float *x,
    cg_producer_ *producer, size_t n, uint8_t *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes) {
    const cg_segments *g = extra->segments;
    const cg_tag none = CG_ZERO;
    const cg_kernels_ *kernels = cg_kernels_now_();
    cg_segments_job_ job;
    uint32_t tensor, needs = 0;
    uint64_t room, global_scratch;
    uint8_t *table;
    cg_status s;
    if (cg_op_check_(op) != CG_OK || cg_segments_refusal_(op, g, n)) return CG_E_ARG;
    s = cg_extra_check_(op, extra);
    if (s != CG_OK) return s;
    for (size_t i = 0; i < g->count; i++) needs |= cg_op_traits_(cg_segment_op_(g, op, i));
    if (((needs & CG_IS_USER_CODEC_) || n > CG_MANY_) && !cg_segments_bound_(op, extra, n)) return CG_E_ARG;
    if (producer && producer->lazy) return CG_E_UNSUPPORTED;
    if (cg_segments_scratch_(op, extra, n) > scratch_bytes) return CG_E_CAPACITY;
    if (scratch_bytes && !scratch) return CG_E_ARG;
    room = cg_segments_table_room_(op, g);
    if (cap < CG_HEADER_BYTES || room > cap - CG_HEADER_BYTES) return CG_E_CAPACITY;
    if (producer) cg_producer_run_(producer, (float *)(uintptr_t)x);
    memset(&job, 0, sizeof job);
    job.op = op;
    job.segments = g;
    job.scale = extra->scale;
    job.x = x;
    job.body = packet + CG_HEADER_BYTES;
    job.limit = job.table = table = packet + (cap - (size_t)room);
    job.whole.op = *op;
    job.whole.n = n;
    job.whole.tag = tag ? *tag : none;
    job.whole.segments = (uint32_t)g->count;
    job.whole.segment_flags = cg_segments_flags_(g);
    s = cg_segment_extra_open_(&job.sub, extra, needs, n);
    if (s != CG_OK) return s;
    if (!(needs & CG_NEEDS_SUPPORT_)) job.sub.extra.support = NULL;
    global_scratch = cg_segments_global_scratch_(op, g, n);
    job.scratch = scratch ? (uint8_t *)scratch + (size_t)global_scratch : NULL;
    if (g->flags & CG_SEGMENTS_GLOBAL) s = cg_segments_select_(&job, extra, (uint8_t *)scratch);
    cg_segments_ops_put_(&job);
    tensor = job.whole.tag.tensor;
    for (size_t i = 0; i < g->count && s == CG_OK; i++) {
        s = cg_segment_compress_(&job, extra, i, tensor);
        tensor = job.whole.tag.tensor + 1;
    }
    if (s != CG_OK) return s;
    job.whole.tag.tensor = tag ? tag->tensor : 0;
    while ((size_t)(job.table - table) % 4) *job.table++ = 0;
    job.whole.value_bytes = (size_t)(job.body - packet) - CG_HEADER_BYTES;
    job.whole.index_bytes = (size_t)(job.table - table);
    memmove(job.body, table, job.whole.index_bytes);
    job.sum = cg_checksum_concat_(job.sum, cg_checksum_of_(kernels, job.body, job.whole.index_bytes));
    *len = cg_packet_finalize_(kernels, &job.whole, packet, job.sum);
    return CG_OK;
}
