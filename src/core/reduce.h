/* reduce: packets added or voted on without leaving their domain

   Offers   cg_reduce_, cg_vote_, cg_packet_from_list_, grids of levels, cg_same_stage_
   Needs    base, kernels, packet, quantize, layout, select/list, indices, decoder, verify, decode_into, decode
   Touches  the caller's output and scratch
   Other headers may use: cg_reduce_, cg_same_grid_
   Packets of one vector, sample and transform add by one of three modes: sparse packets merge into a list of f32;
   dense ones whose levels are on one grid add as integers, if 16 bits hold the sum; all others add as f32. Where a
   sample or rotation is private, all packets add decoded, as a dense vector. */

/* All fields equal, values as bits. */
static int cg_same_stage_(const cg_stage *a, const cg_stage *b) {
    return a->id == b->id && a->flags == b->flags && a->arg == b->arg && a->size == b->size &&
        cg_as_bits_(a->value) == cg_as_bits_(b->value);
}
/* What the result is: sparse f32, integers on the grid of all packets, dense f32 of their domain, or of x itself. */
enum { CG_REDUCE_SPARSE_, CG_REDUCE_LEVELS_, CG_REDUCE_FLOATS_, CG_REDUCE_DECODED_ };
typedef struct cg_reducer_ {
    const void *const *packets;
    const size_t *lens;
    const cg_segment_cursor_ *segments; /* of packets with segments: each before the one that is added, or NULL */
    size_t count, transformed_n;        /* packets; values of their domain */
    int mode;                           /* CG_REDUCE_* */
    uint64_t zero_sum;                  /* levels: the sum of the zero symbols of all packets */
    int32_t out_zero;                   /* levels: the zero symbol of the result */
    cg_info info;                       /* of the result */
    cg_layout_ out_lay;                 /* of the result; sparse: with max_values */
    cg_layout_ in_lay;                  /* of the first packet; levels: all have its buckets */
    uint64_t max_values;                /* sparse: values of all packets together, at most transformed_n */
} cg_reducer_;

/* Opens packet i into *d, which has no y. */

static cg_status cg_reducer_packet_open_(const cg_reducer_ *reducer, size_t i, cg_decoder_ *d) {
    const uint8_t *packet = (const uint8_t *)reducer->packets[i];
    float dummy_y = 0.0f;
    cg_status s;
    if (!packet) return CG_E_ARG;
    if (cg_builds_segments_() && reducer->segments) {
        cg_segment_cursor_ c = reducer->segments[i];
        s = cg_segment_decoder_open_(&c, NULL, 1, d);
        d->y = NULL;
        return s;
    }
    s = cg_header_get_(packet, reducer->lens[i], &d->info, &d->plan);
    if (s == CG_OK && cg_has_segments_(&d->info)) return CG_E_MISMATCH; /* others, or the call, have none */
    if (s == CG_OK) s = cg_decoder_open_rest_(d, NULL, packet, reducer->lens[i], &dummy_y, 1);
    d->y = NULL;
    return s;
}
/* CG_OK: both packets are of the same vector, sample and transform, so that their values add index by index; packets
   with a `given` selection must have the same support. Else CG_E_MISMATCH. */
static cg_status cg_reducer_match_(const cg_reducer_ *reducer, const cg_info *a, const cg_info *b) {
    if (a->n != b->n || a->tag.seed != b->tag.seed || a->tag.step != b->tag.step || a->tag.tensor != b->tag.tensor)
        return CG_E_MISMATCH;
    if (reducer->mode == CG_REDUCE_DECODED_) return CG_OK;
    if (a->drawn != b->drawn) return CG_E_MISMATCH;
    if (!cg_same_stage_(&a->op.sample, &b->op.sample) || !cg_same_stage_(&a->op.transform, &b->op.transform))
        return CG_E_MISMATCH;
    if (cg_has_(&a->op, CG_NEEDS_SUPPORT_) || cg_has_(&b->op, CG_NEEDS_SUPPORT_))
        return cg_same_stage_(&a->op.select, &b->op.select) && a->k == b->k ? CG_OK : CG_E_MISMATCH;
    return (a->op.select.id != 0) == (b->op.select.id != 0) ? CG_OK : CG_E_MISMATCH;
}
/* What one level of a bucket is worth to a decoder; d's quantizer has a zero symbol, see below. */
static float cg_grid_step_(const cg_decoder_ *d, size_t bucket) {
    float scale[2];
    cg_levels_ q;
    cg_scales_get_(&d->lay, d->scales, bucket, scale);
    if (d->lay.quantizer->stage.traits & CG_SCALE_IS_STEP_) return scale[0];
    q = cg_levels_make_(&d->info.op.quantize, scale);
    return cg_saturate_(cg_times_(q.step, q.postscale));
}
/* The symbol of 0, and *bits per symbol, of a quantizer whose symbols are integers around that one; 0: of another. */
static int32_t cg_grid_zero_symbol_(const cg_stage *q, unsigned *bits) {
    const cg_quantizer_ *quantizer = cg_quantizer_of_(q);
    *bits = 0;
    if (!quantizer || !(quantizer->stage.traits & CG_HAS_GRID_)) return 0;
    *bits = cg_bits_x32_of_(quantizer, q) / 32;
    return quantizer->levels(q);
}

/* Opens every packet once and decides the mode. max_level_sum: the largest magnitude that a sum of levels can have, if
   the caller knows it to be smaller than what the packets allow; 0: not known. CG_E_UNSUPPORTED: operators on matrices,
   PermK. Values and indices are not verified here. */
CG_NOINLINE_ cg_status cg_reducer_open_(cg_reducer_ *reducer, const void *const *packets, const size_t *lens,
    size_t count, uint64_t max_level_sum, const cg_segment_cursor_ *segments) {
    cg_decoder_ d, first;
    unsigned bits;
    int32_t zero;
    int on_one_grid = 1;
    memset(reducer, 0, sizeof *reducer);
    memset(&first, 0, sizeof first);
    reducer->packets = packets;
    reducer->lens = lens;
    reducer->count = count;
    reducer->segments = segments;
    if (!packets || !lens || !count) return CG_E_ARG;
    for (size_t i = 0; i < count; i++) {
        cg_status s = cg_reducer_packet_open_(reducer, i, &d);
        if (s != CG_OK) return s;
        if (d.plan.traits & CG_IS_PRIVATE_) reducer->mode = CG_REDUCE_DECODED_;
    }
    for (size_t i = 0; i < count; i++) {
        cg_status s = cg_reducer_packet_open_(reducer, i, &d);
        if (s != CG_OK) return s;
        zero = cg_grid_zero_symbol_(&d.info.op.quantize, &bits);
        if (i == 0) first = d;
        if (d.plan.traits & (CG_IS_MATRIX_ | CG_IS_PER_RANK_) ||
            (reducer->mode == CG_REDUCE_DECODED_ && d.plan.traits & CG_NEEDS_SUPPORT_))
            return CG_E_UNSUPPORTED;
        s = cg_reducer_match_(reducer, &first.info, &d.info);
        if (s != CG_OK) return s;
        on_one_grid = on_one_grid && zero && !d.lay.value_code && d.lay.bucket_count == first.lay.bucket_count &&
            d.lay.bucket_size == first.lay.bucket_size;
        for (size_t j = 0; on_one_grid && j < (size_t)d.lay.bucket_count; j++)
            on_one_grid = cg_grid_step_(&d, j) == cg_grid_step_(&first, j);
        for (size_t j = 0; on_one_grid && j < (size_t)d.lay.bucket_count;
             j++) { /* sums of levels times a denormal step would round */
            float scale = cg_as_float_(cg_get32_(d.scales + 4 * j));
            on_one_grid = scale == 0.0f || !cg_is_tiny_(scale);
        }
        reducer->zero_sum = cg_add_sat_(reducer->zero_sum, (uint64_t)zero);
        reducer->max_values = cg_add_sat_(reducer->max_values, d.info.k);
    }
    reducer->info = first.info;
    reducer->in_lay = first.lay;
    reducer->transformed_n = (size_t)first.plan.transformed_n;
    if (reducer->mode == CG_REDUCE_DECODED_) {
        memset(&reducer->info.op, 0, sizeof reducer->info.op);
        reducer->info.drawn = reducer->info.k = reducer->info.n;
        reducer->info.index_code = CG_CODE_AUTO;
        reducer->info.threshold = 0.0f;
        return cg_layout_make_(&reducer->info.op, NULL, reducer->info.k, &reducer->out_lay);
    }
    reducer->mode = cg_has_indices_(&first.plan) ? CG_REDUCE_SPARSE_ : CG_REDUCE_FLOATS_;
    memset(&reducer->info.op.quantize, 0, sizeof reducer->info.op.quantize);
    memset(&reducer->info.op.code, 0, sizeof reducer->info.op.code);
    memset(&reducer->info.op.clip, 0, sizeof reducer->info.op.clip);
    if (reducer->mode == CG_REDUCE_SPARSE_) { /* threshold:0 is a selection that any index set fits */
        memset(&reducer->info.op.select, 0, sizeof reducer->info.op.select);
        reducer->info.op.select.id = CG_SELECT_THRESHOLD;
        reducer->info.threshold = 0.0f;
        reducer->info.op.k = first.plan.traits & CG_SAMPLES_RATIO_ &&
                first.info.drawn != cg_k_from_ratio_(first.info.op.sample.value, 0, first.info.n)
            ? first.info.drawn
            : 0;
        if (reducer->max_values > reducer->transformed_n) reducer->max_values = reducer->transformed_n;
    } else if (on_one_grid) {
        if (!max_level_sum) max_level_sum = reducer->zero_sum;
        for (bits = 2; bits <= 16 && (uint64_t)((1 << (bits - 1)) - 1) < max_level_sum;) bits++;
        if (bits > 8 && bits < 16) bits = 16;
        if (bits <= 16 && first.lay.bucket_size <= 0xffffffffu) { /* the symbols have headroom for all sums */
            reducer->mode = CG_REDUCE_LEVELS_;
            reducer->out_zero = (1 << (bits - 1)) - 1;
            reducer->info.op.quantize.id = bits <= 8 ? CG_QUANTIZE_FLEXPOINT : CG_QUANTIZE_FLEX16;
            reducer->info.op.quantize.arg = (uint16_t)(bits <= 8 ? bits : 0);
            reducer->info.op.quantize.size = (uint32_t)first.lay.bucket_size;
            if (segments && first.lay.bucket_count <= 1) reducer->info.op.quantize.size = CG_SIZE_MAX_; /* of any n */
        }
    }
    return cg_layout_make_(&reducer->info.op, NULL,
        reducer->mode == CG_REDUCE_SPARSE_ ? reducer->max_values : reducer->info.k, &reducer->out_lay);
}

/* Bytes of one list, 0 on overflow; merging needs two. */
static size_t cg_reducer_list_bytes_(const cg_reducer_ *reducer) {
    return cg_size_or_zero_(cg_add_sat_(cg_mul_sat_(8, cg_add_sat_(reducer->max_values, CG_SLACK_)),
        8 * (((uint64_t)reducer->transformed_n >> 32) + 2)));
}
/* A list in cg_reducer_list_bytes_ at p, aligned to 8; its segments are not initialised. */
static void cg_reducer_list_init_(const cg_reducer_ *reducer, cg_list_ *list, uint8_t *p) {
    memset(list, 0, sizeof *list);
    list->segment_count = reducer->transformed_n ? (((uint64_t)reducer->transformed_n - 1) >> 32) + 1 : 1;
    list->segment_start = (uint64_t *)(void *)p;
    p += 8 * (size_t)(list->segment_count + 1);
    list->index_low = (uint32_t *)(void *)p;
    list->value = (float *)(void *)(p + 4 * ((size_t)reducer->max_values + CG_SLACK_));
}
/* *into = *list + packet, by index; sums saturate. *into has room for both. CG_E_CORRUPT: a user codec refused. */
CG_NOINLINE_ cg_status cg_list_merge_packet_(const cg_decoder_ *d, const cg_list_ *list, cg_list_ *into) {
    const size_t k = (size_t)d->lay.k;
    cg_selection_reader_ sel;
    cg_piece_cursor_ cursor;
    size_t i = 0;
    uint64_t segment = 0, open_segment = 0;
    cg_selection_reader_open_(&sel, d, &cursor);
    into->count = 0;
    into->segment_start[0] = 0;
    for (size_t j = 0;;) {
        uint64_t list_index = UINT64_MAX, packet_index = UINT64_MAX, index;
        float v = 0.0f;
        if (j < k && j == sel.batch_first + sel.batch_n) {
            sel.batch_first = j;
            sel.batch_n = cg_selection_reader_load_(&sel, d, j);
            if (!sel.batch_n) return CG_E_CORRUPT;
            cg_index_get_per_value_(&sel.reader, sel.index, sel.batch_n);
        }
        if (i < list->count) {
            while (i >= list->segment_start[segment + 1]) segment++;
            list_index = segment << 32 | list->index_low[i];
        }
        if (j < k) packet_index = sel.index[j - sel.batch_first];
        index = list_index < packet_index ? list_index : packet_index;
        if (index == UINT64_MAX) break;
        if (list_index == index) v = list->value[i++];
        if (packet_index == index) {
            float u = cg_load_(sel.values, j++ % CG_CHUNK_);
            v = list_index == index ? cg_saturate_(cg_plus_(v, u)) : u;
        }
        while (open_segment < index >> 32) into->segment_start[++open_segment] = into->count;
        cg_list_add_(into, (size_t)index, v);
    }
    while (open_segment < into->segment_count) into->segment_start[++open_segment] = into->count;
    return CG_OK;
}
/* Writes the list's values as f32 and its indices, one for each, to out. info has op, without quantizer, tag, n,
   drawn and threshold; the rest of it is set here. */
static cg_status cg_body_from_list_(cg_info *info, const cg_list_ *list, uint8_t *out, size_t cap) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    cg_plan_ plan;
    uint64_t index_bytes;
    plan.n = info->n;
    plan.sampled_n = info->drawn;
    plan.traits = cg_op_traits_(&info->op);
    cg_plan_resume_(&plan, &info->op);
    info->k = list->count;
    info->index_code = cg_index_code_(&info->op, &plan, list->count);
    index_bytes = cg_index_bytes_(info->index_code, plan.universe, list->count);
    info->value_bytes = 4 * list->count;
    if (cg_add_sat_(index_bytes, 4 * (uint64_t)list->count) > cap) return CG_E_CAPACITY;
    CG_KERNEL_(kernels, copy(list->value, list->count, out));
    info->index_bytes = index_bytes ? cg_index_put_(info->index_code, plan.universe, list, out + info->value_bytes) : 0;
    return CG_OK;
}
/* The same as a packet. */
static cg_status cg_packet_from_list_(cg_info *info, const cg_list_ *list, uint8_t *out, size_t cap, size_t *len) {
    const cg_status s = cap < CG_HEADER_BYTES
        ? CG_E_CAPACITY
        : cg_body_from_list_(info, list, out + CG_HEADER_BYTES, cap - CG_HEADER_BYTES);
    if (s == CG_OK) *len = cg_packet_seal_(info, out);
    return s;
}
/* Merges the packets one by one. scratch: two lists, aligned to 8. */
CG_NOINLINE_ cg_status cg_reduce_sparse_(cg_reducer_ *reducer, uint8_t *out, size_t cap, uint8_t *scratch) {
    cg_list_ lists[2];
    cg_decoder_ d;
    cg_reducer_list_init_(reducer, &lists[0], scratch);
    cg_reducer_list_init_(reducer, &lists[1], scratch + cg_reducer_list_bytes_(reducer));
    memset(lists[0].segment_start, 0, 8 * (size_t)(lists[0].segment_count + 1));
    memset(lists[1].segment_start, 0, 8 * (size_t)(lists[1].segment_count + 1));
    for (size_t i = 0; i < reducer->count; i++) {
        cg_status s = cg_reducer_packet_open_(reducer, i, &d);
        if (s == CG_OK) s = cg_list_merge_packet_(&d, &lists[i % 2], &lists[(i + 1) % 2]);
        if (s != CG_OK) return s;
    }
    return cg_body_from_list_(&reducer->info, &lists[reducer->count % 2], out, cap);
}
/* The codes of packet i, whose levels have been found to be on one grid, and its quantizer. */
static const uint8_t *cg_reducer_codes_(const cg_reducer_ *reducer, size_t i, cg_stage *stage) {
    const uint8_t *body = (const uint8_t *)reducer->packets[i] + CG_HEADER_BYTES;
    if (cg_builds_segments_() && reducer->segments) {
        cg_segment_cursor_ c = reducer->segments[i];
        cg_info info;
        cg_plan_ plan;
        const cg_status s = cg_segment_next_(&c, &info, &plan);
        (void)s; /* it was read before */
        *stage = info.op.quantize;
        body = c.body;
    } else cg_stage_get_(body - CG_HEADER_BYTES + 8 + 12 * CG_SLOT_QUANTIZE_, stage);
    return body + (size_t)reducer->in_lay.scale_bytes;
}
/* Adds values [first, first + many) of one chunk of all packets as integers, and writes the symbols of the sums. */
static void cg_reduce_levels_(
    const cg_kernels_ *kernels, const cg_reducer_ *reducer, uint8_t *codes, size_t first, size_t many) {
    uint16_t sums[CG_CHUNK_];
    uint8_t symbols[CG_CHUNK_];
    memset(sums, 0, sizeof sums);
    for (size_t i = 0; i < reducer->count; i++) {
        cg_stage stage;
        const uint8_t *in = cg_reducer_codes_(reducer, i, &stage);
        unsigned bits;
        const uint16_t max_symbol = (uint16_t)(2 * cg_grid_zero_symbol_(&stage, &bits));
        in += first / 8 * bits;
        if (bits < 8) CG_KERNEL_(kernels, unpack(in, many, bits, symbols));
        else if (bits == 8) memcpy(symbols, in, many);
        if (bits <= 8)
            for (size_t j = 0; j < many; j++)
                sums[j] = (uint16_t)(sums[j] + (symbols[j] < max_symbol ? symbols[j] : max_symbol));
        else
            for (size_t j = 0; j < many; j++) sums[j] = (uint16_t)(sums[j] + cg_get16_(in + 2 * j));
    }
    for (size_t j = 0; j < many; j++) { /* sums of symbols may wrap: the sum of levels fits 16 bits */
        int32_t sum = (int32_t)(((uint32_t)sums[j] + 32768u - (uint32_t)reducer->zero_sum) & 0xffffu) - 32768 +
            reducer->out_zero;
        sum = sum < 0 ? 0 : sum > 2 * reducer->out_zero ? 2 * reducer->out_zero : sum;
        symbols[j] = (uint8_t)sum;
        if (reducer->out_lay.bits_x32 > 8 * 32) cg_put16_(codes + 2 * j, (uint32_t)sum);
    }
    if (reducer->out_lay.bits_x32 > 8 * 32) return;
    if (reducer->out_lay.bits_x32 < 8 * 32)
        CG_KERNEL_(kernels, pack(symbols, many, reducer->out_lay.bits_x32 / 32, codes));
    else memcpy(codes, symbols, many);
}
/* The sum of decoded packets as little-endian floats at sum, of any alignment; packets have been verified. */
CG_NOINLINE_ cg_status cg_reduce_decoded_(const cg_kernels_ *kernels, const cg_reducer_ *reducer, float *sum) {
    const size_t n = (size_t)reducer->info.n;
    cg_status s = CG_OK;
    for (size_t i = 0; i < reducer->count && s == CG_OK; i++) {
        cg_decoder_ d;
        s = cg_reducer_packet_open_(reducer, i, &d);
        if (s == CG_OK) s = cg_packet_decode_(&d, NULL, 1.0f, i ? 1.0f : 0.0f, sum, NULL, 1);
        if (s == CG_OK && i && CG_KERNEL_(kernels, absmax_bits(sum, n)) >= CG_INF_BITS_)
            for (size_t j = 0; j < n; j++) cg_store_(sum, j, cg_saturate_(cg_load_(sum, j)));
    }
    for (size_t j = 0; CG_BIG_ENDIAN_ && j < n; j++)
        cg_put32_((uint8_t *)(void *)cg_at_mut_(sum, j), cg_load_bits_(sum, j));
    return s;
}
/* The body of a dense result. */
CG_NOINLINE_ cg_status cg_reduce_dense_(cg_reducer_ *reducer, uint8_t *out, size_t cap) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const size_t k = (size_t)reducer->info.k;
    uint8_t *scales = out, *codes = scales + (size_t)reducer->out_lay.scale_bytes;
    cg_decoder_ d;
    reducer->info.value_bytes = (size_t)(reducer->out_lay.scale_bytes + reducer->out_lay.codes_bytes);
    reducer->info.index_bytes = 0;
    if (reducer->info.value_bytes > cap) return CG_E_CAPACITY;
    if (reducer->mode == CG_REDUCE_DECODED_) {
        const cg_status s = cg_reduce_decoded_(kernels, reducer, (float *)(void *)codes);
        if (s != CG_OK) return s;
    } else if (reducer->mode == CG_REDUCE_LEVELS_) {
        cg_status s = cg_reducer_packet_open_(reducer, 0, &d);
        if (s != CG_OK) return s;
        for (size_t b = 0; b < (size_t)d.lay.bucket_count; b++)
            cg_put32_(scales + 4 * b, cg_as_bits_(cg_grid_step_(&d, b)));
        for (size_t first = 0; first < k; first += CG_CHUNK_)
            cg_reduce_levels_(kernels, reducer, codes + cg_codes_offset_(&reducer->out_lay, first), first,
                cg_min_(CG_CHUNK_, k - first));
        for (size_t bytes = (size_t)(((uint64_t)k * reducer->out_lay.bits_x32 / 32 + 7) / 8); bytes % 4; bytes++)
            codes[bytes] = 0;
    } else {
        for (size_t i = 0; i < reducer->count; i++) {
            cg_piece_cursor_ cursor;
            float v[CG_CHUNK_], sum[CG_CHUNK_];
            cg_status s = cg_reducer_packet_open_(reducer, i, &d);
            if (s != CG_OK) return s;
            cg_piece_cursor_open_(&cursor, 0, 0);
            for (size_t first = 0, many; first < k; first += many) {
                const float *w;
                many = cg_min_(CG_CHUNK_, k - first);
                w = cg_decode_chunk_(&d, &cursor, first, many, v, 0);
                if (!w) return CG_E_CORRUPT;
                for (size_t j = 0; i && j < many; j++)
                    sum[j] = cg_saturate_(cg_plus_(cg_as_float_(cg_get32_(codes + 4 * (first + j))), cg_load_(w, j)));
                CG_KERNEL_(kernels, copy(i ? sum : w, many, codes + 4 * first));
            }
        }
    }
    return CG_OK;
}
/* The sum of verified packets without its header. scratch: 64 bytes more than two lists, at any alignment. */
static cg_status cg_reduce_body_(cg_reducer_ *reducer, uint8_t *out, size_t cap, uint8_t *scratch) {
    return reducer->mode == CG_REDUCE_SPARSE_
        ? cg_reduce_sparse_(reducer, out, cap, scratch + (64 - ((uintptr_t)scratch & 63)) % 64)
        : cg_reduce_dense_(reducer, out, cap);
}
/* Has the first of the packets segments? Then the sum has some, too. */
static int cg_packets_have_segments_(const void *const *packets, const size_t *lens, size_t count) {
    const uint8_t *p = packets && lens && count ? (const uint8_t *)packets[0] : NULL;
    return cg_builds_segments_() && p && lens[0] >= CG_HEADER_BYTES && p[4] == CG_FORMAT_SEGMENTS_;
}
/* in core/segments/reduce.h: */
static cg_status cg_reduce_segments_plan_(
    const void *const *packets, const size_t *lens, size_t count, size_t *bound, size_t *scratch);
static cg_status cg_vote_segments_(
    const void *const *packets, const size_t *lens, size_t count, uint8_t *out, size_t cap, size_t *len);
static cg_status cg_reduce_segments_(const void *const *packets, const size_t *lens, size_t count, uint8_t *out,
    size_t cap, size_t *len, uint8_t *scratch, size_t scratch_bytes);
/* Can the packets be added? *bound: bytes of the result; *scratch: bytes of scratch at any alignment. */
static cg_status cg_reduce_plan_(const void *const *packets, const size_t *lens, size_t count, uint64_t max_level_sum,
    cg_reducer_ *reducer, size_t *bound, size_t *scratch) {
    cg_status s = cg_reducer_open_(reducer, packets, lens, count, max_level_sum, NULL);
    uint64_t bytes;
    *bound = *scratch = 0;
    if (s != CG_OK) return s;
    bytes = cg_add_sat_(cg_add_sat_(reducer->out_lay.scale_bytes, reducer->out_lay.codes_bytes), CG_HEADER_BYTES);
    if (reducer->mode == CG_REDUCE_SPARSE_) {
        bytes = cg_add_sat_(bytes, cg_index_bound_(&reducer->info.op, reducer->transformed_n, reducer->max_values));
        if (!cg_reducer_list_bytes_(reducer)) return CG_E_ARG;
        *scratch = cg_size_or_zero_(cg_add_sat_(cg_mul_sat_(2, cg_reducer_list_bytes_(reducer)), 64));
    }
    *bound = cg_size_or_zero_(bytes);
    return *bound ? CG_OK : CG_E_ARG;
}
CG_API_ cg_status cg_reduce_plan(
    const void *const *packets, const size_t *lens, size_t count, size_t *bound, size_t *scratch) {
    cg_reducer_ reducer;
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = CG_E_ARG;
    if (bound && scratch)
        s = cg_packets_have_segments_(packets, lens, count)
            ? cg_reduce_segments_plan_(packets, lens, count, bound, scratch)
            : cg_reduce_plan_(packets, lens, count, 0, &reducer, bound, scratch);
    cg_fenv_leave_(env);
    return s;
}
CG_NOINLINE_ cg_status cg_verify_all_(const cg_reducer_ *reducer) {
    for (size_t i = 0; i < reducer->count; i++) {
        cg_decoder_ d;
        cg_status s = cg_reducer_packet_open_(reducer, i, &d);
        if (s == CG_OK) s = cg_verify_(&d, NULL);
        if (s != CG_OK) return s;
    }
    return CG_OK;
}
/* cg_reduce, inside cg_fenv_enter_; max_level_sum as for cg_reducer_open_. */
static cg_status cg_reduce_(const void *const *packets, const size_t *lens, size_t count, uint64_t max_level_sum,
    void *out, size_t cap, size_t *len, void *scratch, size_t scratch_bytes) {
    cg_reducer_ reducer;
    size_t bound = 0, need = 0;
    const int valid = out && len && (scratch || !scratch_bytes);
    cg_status s;
    if (len) *len = 0;
    if (valid && cg_packets_have_segments_(packets, lens, count))
        return cg_reduce_segments_(packets, lens, count, (uint8_t *)out, cap, len, (uint8_t *)scratch, scratch_bytes);
    s = valid ? cg_reduce_plan_(packets, lens, count, max_level_sum, &reducer, &bound, &need) : CG_E_ARG;
    if (s == CG_OK && (cap < CG_HEADER_BYTES || need > scratch_bytes)) s = CG_E_CAPACITY;
    if (s == CG_OK) s = cg_verify_all_(&reducer);
    if (s == CG_OK)
        s = cg_reduce_body_(&reducer, (uint8_t *)out + CG_HEADER_BYTES, cap - CG_HEADER_BYTES, (uint8_t *)scratch);
    if (s == CG_OK) *len = cg_packet_seal_(&reducer.info, (uint8_t *)out);
    return s;
}
CG_API_ cg_status cg_reduce(const void *const *packets, const size_t *lens, size_t count, void *out, size_t cap,
    size_t *len, void *scratch, size_t scratch_bytes) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_reduce_(packets, lens, count, 0, out, cap, len, scratch, scratch_bytes);
    cg_fenv_leave_(env);
    return s;
}
/* cg_vote, inside cg_fenv_enter_: out, cap and len are not NULL. Up to FUSED_MAX packets are read once: a tile of
   each is counted, and its checksum taken while it is in the cache; more are verified first. */
CG_NOINLINE_ cg_status cg_vote_(
    const void *const *packets, const size_t *lens, size_t count, uint8_t *out, size_t cap, size_t *len) {
    enum { MAX_PACKETS = 1024, FUSED_MAX = 64, TILE = 4096 };
    const cg_kernels_ *kernels = cg_kernels_now_();
    const uint8_t *in[MAX_PACKETS];
    cg_checksum_ sums[FUSED_MAX];
    cg_reducer_ reducer;
    cg_decoder_ d;
    size_t bytes;
    cg_status s;
    if (cg_packets_have_segments_(packets, lens, count)) return cg_vote_segments_(packets, lens, count, out, cap, len);
    s = cg_reducer_open_(&reducer, packets, lens, count, 0, NULL);
    if (s != CG_OK) return s;
    if (count > MAX_PACKETS) return CG_E_UNSUPPORTED;
    for (size_t i = 0; i < count; i++) {
        s = cg_reducer_packet_open_(&reducer, i, &d);
        if (s != CG_OK) return s;
        if (!(d.plan.traits & CG_IS_SIGN_) || reducer.mode != CG_REDUCE_FLOATS_) return CG_E_UNSUPPORTED;
        in[i] = d.codes;
    }
    if (count > FUSED_MAX) s = cg_verify_all_(&reducer);
    if (s != CG_OK) return s;
    reducer.info.op.quantize.id = CG_QUANTIZE_SIGN;
    bytes = (size_t)cg_word_bytes_(reducer.info.k);
    if (cap < CG_HEADER_BYTES || bytes > cap - CG_HEADER_BYTES) return CG_E_CAPACITY;
    memset(sums, 0, sizeof sums);
    for (size_t at = 0, many; at < bytes; at += many) {
        many = cg_min_(TILE, bytes - at);
        CG_KERNEL_(kernels, vote(in, count, many, out + CG_HEADER_BYTES + at));
        for (size_t i = 0; count <= FUSED_MAX && i < count; i++)
            CG_KERNEL_(kernels, checksum(&sums[i], in[i], many / 4));
        for (size_t i = 0; i < count; i++) in[i] += many;
    }
    for (size_t i = 0; count <= FUSED_MAX && i < count; i++) {
        s = cg_reducer_packet_open_(&reducer, i, &d);
        if (s != CG_OK || !cg_checksum_ok_(&d, sums[i])) return CG_E_CORRUPT;
    }
    reducer.info.value_bytes = bytes;
    reducer.info.index_bytes = 0;
    *len = cg_packet_finalize_(kernels, &reducer.info, out, cg_checksum_of_(kernels, out + CG_HEADER_BYTES, bytes));
    return CG_OK;
}
CG_API_ cg_status cg_vote(
    const void *const *packets, const size_t *lens, size_t count, void *out, size_t cap, size_t *len) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s;
    if (len) *len = 0;
    s = out && len ? cg_vote_(packets, lens, count, (uint8_t *)out, cap, len) : CG_E_ARG;
    cg_fenv_leave_(env);
    return s;
}
/* CG_E_MISMATCH: both are packets of n levels, but on different grids. A packet without levels (a sum that was too
   large for them) is on any grid. */
CG_OFFERED_ cg_status cg_same_grid_(const void *a, size_t a_len, const void *b, size_t b_len, size_t n) {
    cg_decoder_ d, e;
    float no_output = 0.0f;
    unsigned bits;
    cg_status s = cg_decoder_open_(&d, NULL, a, a_len, &no_output, n, 1);
    if (s == CG_OK) s = cg_decoder_open_(&e, NULL, b, b_len, &no_output, n, 1);
    if (s != CG_OK || !cg_grid_zero_symbol_(&d.info.op.quantize, &bits)) return s;
    if (d.lay.bucket_count != e.lay.bucket_count) return CG_E_MISMATCH;
    for (size_t i = 0; i < (size_t)d.lay.bucket_count; i++)
        if (cg_grid_step_(&d, i) != cg_grid_step_(&e, i)) return CG_E_MISMATCH;
    return CG_OK;
}
