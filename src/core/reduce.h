/* ---- >>reduce: packets added without leaving their domain ---- */

static int cg_same_stage_(const cg_stage *a, const cg_stage *b) {
    return a->id == b->id && a->flags == b->flags && a->arg == b->arg && a->size == b->size &&
        cg_as_bits_(a->value) == cg_as_bits_(b->value);
}
/* A result is sparse, or integers on the one grid of all, or floats. */
enum { CG_REDUCE_SPARSE_, CG_REDUCE_LEVELS_, CG_REDUCE_FLOATS_ };
typedef struct cg_reducer_ {
    const void *const *packets;
    const size_t *lens;
    size_t count, transformed_n;
    int mode;
    uint64_t zero_sum; /* levels: the symbols of 0 in all packets, together; and in the sum */
    int32_t out_zero;
    cg_info info;               /* of the result */
    cg_layout_ out_lay, in_lay; /* of the result; of the first packet, and where they add as integers of all */
    uint64_t max_values;        /* sparse: values of all packets */
} cg_reducer_;

static cg_status cg_reducer_packet_open_(const cg_reducer_ *a, size_t i, cg_decoder_ *d) {
    cg_info info;
    float none = 0.0f;
    cg_status s;
    if (!a->packets[i]) return CG_E_ARG;
    s = cg_header_get_((const uint8_t *)a->packets[i], a->lens[i], &info);
    if (s == CG_OK) s = cg_decoder_open_(d, NULL, a->packets[i], a->lens[i], &none, (size_t)info.n, 1);
    d->y = NULL;
    return s;
}
/* One domain: the same vector, sample and transform, so that values at one place belong together. */
static cg_status cg_reducer_match_(const cg_info *a, const cg_info *b) {
    if (a->n != b->n || a->drawn != b->drawn || a->tag.seed != b->tag.seed || a->tag.step != b->tag.step ||
        a->tag.tensor != b->tag.tensor)
        return CG_E_MISMATCH;
    if (!cg_same_stage_(&a->op.sample, &b->op.sample) || !cg_same_stage_(&a->op.transform, &b->op.transform))
        return CG_E_MISMATCH;
    if (a->op.select.id == CG_SELECT_GIVEN || b->op.select.id == CG_SELECT_GIVEN)
        return cg_same_stage_(&a->op.select, &b->op.select) && a->k == b->k ? CG_OK : CG_E_MISMATCH;
    return (a->op.select.id != 0) == (b->op.select.id != 0) ? CG_OK : CG_E_MISMATCH;
}
/* What one level of a bucket is worth to a decoder. */
static float cg_grid_step_(const cg_decoder_ *d, size_t bucket) {
    float scale[2];
    cg_levels_ q;
    cg_scales_get_(&d->lay, d->scales, bucket, scale);
    if (d->info.op.quantize.id == CG_QUANTIZE_FLEX16) return scale[0];
    q = cg_levels_make_(&d->info.op.quantize, scale);
    return cg_saturate_(cg_times_(q.step, q.postscale));
}
/* Symbols that are integers around the one that means 0; returns that one, or 0. */
static int32_t cg_grid_zero_symbol_(const cg_stage *q, unsigned *bits) {
    cg_alphabet_ a = CG_ZERO;
    const cg_quantizer_ *row = cg_is_user_codec_(q) ? NULL : cg_quantizer_of_(q);
    *bits = 16;
    if (q->id == CG_QUANTIZE_FLEX16) return 32767;
    if (!row || row->encode != cg_encode_levels_ || !cg_alphabet_of_(q, &a)) return 0;
    *bits = a.bits;
    return a.zero_symbol;
}

/* reach: the largest sum of levels there can be, if less than the packets could have; or 0. */
CG_NOINLINE_ cg_status cg_reducer_open_(
    cg_reducer_ *a, const void *const *packets, const size_t *lens, size_t count, uint64_t reach) {
    cg_decoder_ d, first;
    unsigned bits;
    int32_t zero;
    int grid = 1;
    memset(a, 0, sizeof *a);
    memset(&first, 0, sizeof first);
    a->packets = packets;
    a->lens = lens;
    a->count = count;
    if (!packets || !lens || !count) return CG_E_ARG;
    for (size_t i = 0; i < count; i++) {
        cg_status s = cg_reducer_packet_open_(a, i, &d);
        if (s != CG_OK) return s;
        zero = cg_grid_zero_symbol_(&d.info.op.quantize, &bits);
        if (i == 0) first = d;
        if (cg_is_matrix_op_(&d.info.op) || d.info.op.sample.id == CG_SAMPLE_PERMK) return CG_E_UNSUPPORTED;
        s = cg_reducer_match_(&first.info, &d.info);
        if (s != CG_OK) return s;
        grid = grid && zero && !d.lay.value_code && d.lay.bucket_count == first.lay.bucket_count &&
            d.lay.bucket_size == first.lay.bucket_size;
        for (size_t j = 0; grid && j < (size_t)d.lay.bucket_count; j++)
            grid = cg_grid_step_(&d, j) == cg_grid_step_(&first, j);
        for (size_t j = 0; grid && j < (size_t)d.lay.bucket_count; j++) { /* a denormal step would round */
            float scale = cg_as_float_(cg_get32_(d.scales + 4 * j));
            grid = scale == 0.0f || !cg_is_tiny_(scale);
        }
        a->zero_sum = cg_add_sat_(a->zero_sum, (uint64_t)zero);
        a->max_values = cg_add_sat_(a->max_values, d.info.k);
    }
    a->info = first.info;
    a->in_lay = first.lay;
    a->transformed_n = first.transformed_n;
    a->mode = first.info.op.select.id && first.info.op.select.id != CG_SELECT_GIVEN ? CG_REDUCE_SPARSE_
                                                                                    : CG_REDUCE_FLOATS_;
    memset(&a->info.op.quantize, 0, sizeof a->info.op.quantize);
    memset(&a->info.op.code, 0, sizeof a->info.op.code);
    if (a->mode == CG_REDUCE_SPARSE_) { /* any index set at all is what is above 0 */
        memset(&a->info.op.select, 0, sizeof a->info.op.select);
        a->info.op.select.id = CG_SELECT_THRESHOLD;
        a->info.threshold = 0.0f;
        a->info.op.k = first.info.op.sample.id &&
                first.info.drawn != cg_k_from_ratio_(first.info.op.sample.value, 0, first.info.n)
            ? first.info.drawn
            : 0;
        if (a->max_values > a->transformed_n) a->max_values = a->transformed_n;
    } else if (grid) {
        if (!reach) reach = a->zero_sum;
        for (bits = 2; bits <= 16 && (uint64_t)((1 << (bits - 1)) - 1) < reach;) bits++;
        if (bits > 8 && bits < 16) bits = 16;
        if (bits <= 16 && first.lay.bucket_size <= 0xffffffffu) { /* headroom for all of them */
            a->mode = CG_REDUCE_LEVELS_;
            a->out_zero = (1 << (bits - 1)) - 1;
            a->info.op.quantize.id = bits <= 8 ? CG_QUANTIZE_FLEXPOINT : CG_QUANTIZE_FLEX16;
            a->info.op.quantize.arg = (uint16_t)(bits <= 8 ? bits : 0);
            a->info.op.quantize.size = (uint32_t)first.lay.bucket_size;
        }
    }
    return cg_layout_make_(&a->info.op, NULL, a->mode == CG_REDUCE_SPARSE_ ? a->max_values : a->info.k, &a->out_lay);
}

static size_t cg_reducer_list_bytes_(const cg_reducer_ *a) { /* one list; two are needed to merge */
    return cg_size_or_zero_(cg_add_sat_(
        cg_mul_sat_(8, cg_add_sat_(a->max_values, CG_SLACK_)), 8 * (((uint64_t)a->transformed_n >> 32) + 2)));
}
static void cg_reducer_list_init_(const cg_reducer_ *a, cg_list_ *list, uint8_t *p) {
    memset(list, 0, sizeof *list);
    list->segment_count = a->transformed_n ? (((uint64_t)a->transformed_n - 1) >> 32) + 1 : 1;
    list->segment_start = (uint64_t *)(void *)p;
    p += 8 * (size_t)(list->segment_count + 1);
    list->index_low = (uint32_t *)(void *)p;
    list->value = (float *)(void *)(p + 4 * ((size_t)a->max_values + CG_SLACK_));
}
/* into = list + packet, both ascending. */
CG_NOINLINE_ cg_status cg_list_merge_packet_(const cg_decoder_ *d, const cg_list_ *list, cg_list_ *into) {
    const size_t k = (size_t)d->lay.k;
    cg_selection_reader_ w;
    cg_piece_cursor_ cursor;
    size_t i = 0;
    uint64_t segment = 0, open = 0;
    cg_selection_reader_open_(&w, d, &cursor);
    into->count = 0;
    into->segment_start[0] = 0;
    for (size_t j = 0;;) {
        uint64_t a = UINT64_MAX, b = UINT64_MAX, at;
        float v = 0.0f;
        if (j < k && j == w.batch_first + w.batch_n) {
            w.batch_first = j;
            w.batch_n = cg_selection_reader_load_(&w, d, j);
            if (!w.batch_n) return CG_E_CORRUPT;
            cg_index_get_per_value_(&w.reader, w.index, w.batch_n);
        }
        if (i < list->count) {
            while (i >= list->segment_start[segment + 1]) segment++;
            a = segment << 32 | list->index_low[i];
        }
        if (j < k) b = w.index[j - w.batch_first];
        at = a < b ? a : b;
        if (at == UINT64_MAX) break;
        if (a == at) v = list->value[i++];
        if (b == at) {
            float u = cg_load_(w.values, j++ % CG_CHUNK_);
            v = a == at ? cg_saturate_(cg_plus_(v, u)) : u;
        }
        while (open < at >> 32) into->segment_start[++open] = into->count;
        cg_list_add_(into, (size_t)at, v);
    }
    while (open < into->segment_count) into->segment_start[++open] = into->count;
    return CG_OK;
}
/* A list as a packet of f32; info says the rest. */
static cg_status cg_packet_from_list_(
    cg_info *info, size_t turned, const cg_list_ *list, uint8_t *out, size_t cap, size_t *len) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    uint64_t index_bytes;
    info->k = list->count;
    info->index_code = cg_index_code_(&info->op, turned, list->count);
    index_bytes = cg_index_bytes_(info->index_code, turned, list->count);
    info->value_bytes = 4 * list->count;
    if (cg_add_sat_(index_bytes, CG_HEADER_BYTES + 4 * (uint64_t)list->count) > cap) return CG_E_CAPACITY;
    kernels->copy(list->value, list->count, out + CG_HEADER_BYTES);
    info->index_bytes =
        index_bytes ? cg_index_put_(info->index_code, turned, list, out + CG_HEADER_BYTES + info->value_bytes) : 0;
    *len = cg_packet_finalize_(
        kernels, info, out, cg_checksum_of_(kernels, out + CG_HEADER_BYTES, info->value_bytes + info->index_bytes));
    return CG_OK;
}
CG_NOINLINE_ cg_status cg_reduce_sparse_(cg_reducer_ *a, uint8_t *out, size_t cap, uint8_t *scratch, size_t *len) {
    cg_list_ lists[2];
    cg_decoder_ d;
    cg_reducer_list_init_(a, &lists[0], scratch);
    cg_reducer_list_init_(a, &lists[1], scratch + cg_reducer_list_bytes_(a));
    memset(lists[0].segment_start, 0, 8 * (size_t)(lists[0].segment_count + 1));
    memset(lists[1].segment_start, 0, 8 * (size_t)(lists[1].segment_count + 1));
    for (size_t i = 0; i < a->count; i++) {
        cg_status s = cg_reducer_packet_open_(a, i, &d);
        if (s == CG_OK) s = cg_list_merge_packet_(&d, &lists[i % 2], &lists[(i + 1) % 2]);
        if (s != CG_OK) return s;
    }
    return cg_packet_from_list_(&a->info, a->transformed_n, &lists[a->count % 2], out, cap, len);
}
/* Packed symbols of one grid: integers, with room for their sum. */
static void cg_reduce_levels_(
    const cg_kernels_ *kernels, const cg_reducer_ *a, uint8_t *codes, size_t first, size_t many) {
    uint16_t sums[CG_CHUNK_];
    uint8_t symbols[CG_CHUNK_];
    memset(sums, 0, sizeof sums);
    for (size_t i = 0; i < a->count; i++) {
        const uint8_t *in = (const uint8_t *)a->packets[i], *q = in + 8 + 12 * CG_SLOT_QUANTIZE_;
        cg_stage stage = { 0, 0, 0, 0, 0.0f };
        unsigned bits;
        uint16_t top;
        stage.id = q[0];
        stage.arg = cg_get16_(q + 2);
        top = (uint16_t)(2 * cg_grid_zero_symbol_(&stage, &bits));
        in += CG_HEADER_BYTES + (size_t)a->in_lay.scale_bytes + first / 8 * bits;
        if (bits < 8) kernels->unpack(in, many, bits, symbols);
        else if (bits == 8) memcpy(symbols, in, many);
        if (bits <= 8)
            for (size_t j = 0; j < many; j++) sums[j] = (uint16_t)(sums[j] + (symbols[j] < top ? symbols[j] : top));
        else
            for (size_t j = 0; j < many; j++) sums[j] = (uint16_t)(sums[j] + cg_get16_(in + 2 * j));
    }
    for (size_t j = 0; j < many; j++) { /* modulo 2^16: what counts is less */
        int32_t sum = (int32_t)(((uint32_t)sums[j] + 32768u - (uint32_t)a->zero_sum) & 0xffffu) - 32768 + a->out_zero;
        sum = sum < 0 ? 0 : sum > 2 * a->out_zero ? 2 * a->out_zero : sum;
        symbols[j] = (uint8_t)sum;
        if (a->out_lay.bits_x32 > 8 * 32) cg_put16_(codes + 2 * j, (uint32_t)sum);
    }
    if (a->out_lay.bits_x32 > 8 * 32) return;
    if (a->out_lay.bits_x32 < 8 * 32) kernels->pack(symbols, many, a->out_lay.bits_x32 / 32, codes);
    else memcpy(codes, symbols, many);
}
CG_NOINLINE_ cg_status cg_reduce_dense_(cg_reducer_ *a, uint8_t *out, size_t cap, size_t *len) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const size_t k = (size_t)a->info.k;
    uint8_t *scales = out + CG_HEADER_BYTES, *codes = scales + (size_t)a->out_lay.scale_bytes;
    cg_decoder_ d;
    a->info.value_bytes = (size_t)(a->out_lay.scale_bytes + a->out_lay.codes_bytes);
    a->info.index_bytes = 0;
    if (a->info.value_bytes > cap - CG_HEADER_BYTES) return CG_E_CAPACITY;
    if (a->mode == CG_REDUCE_LEVELS_) {
        cg_status s = cg_reducer_packet_open_(a, 0, &d);
        if (s != CG_OK) return s;
        for (size_t b = 0; b < (size_t)d.lay.bucket_count; b++)
            cg_put32_(scales + 4 * b, cg_as_bits_(cg_grid_step_(&d, b)));
        for (size_t first = 0; first < k; first += CG_CHUNK_)
            cg_reduce_levels_(
                kernels, a, codes + cg_codes_offset_(&a->out_lay, first), first, cg_min_(CG_CHUNK_, k - first));
        for (size_t bytes = (size_t)(((uint64_t)k * a->out_lay.bits_x32 / 32 + 7) / 8); bytes % 4; bytes++)
            codes[bytes] = 0;
    } else {
        for (size_t i = 0; i < a->count; i++) {
            cg_piece_cursor_ cursor;
            float v[CG_CHUNK_], sum[CG_CHUNK_];
            cg_status s = cg_reducer_packet_open_(a, i, &d);
            if (s != CG_OK) return s;
            cg_piece_cursor_open_(&cursor, 0, 0);
            for (size_t first = 0, many; first < k; first += many) {
                const float *w;
                many = cg_min_(CG_CHUNK_, k - first);
                w = cg_decode_chunk_(&d, &cursor, first, many, v, 0);
                if (!w) return CG_E_CORRUPT;
                for (size_t j = 0; i && j < many; j++)
                    sum[j] = cg_saturate_(cg_plus_(cg_as_float_(cg_get32_(codes + 4 * (first + j))), cg_load_(w, j)));
                kernels->copy(i ? sum : w, many, codes + 4 * first);
            }
        }
    }
    *len = cg_packet_finalize_(kernels, &a->info, out, cg_checksum_of_(kernels, scales, a->info.value_bytes));
    return CG_OK;
}
/* Whether packets can be added, and what that takes. */
static cg_status cg_reduce_plan_(const void *const *packets, const size_t *lens, size_t count, uint64_t reach,
    cg_reducer_ *a, size_t *bound, size_t *scratch) {
    cg_status s = cg_reducer_open_(a, packets, lens, count, reach);
    uint64_t bytes;
    *bound = *scratch = 0;
    if (s != CG_OK) return s;
    bytes = cg_add_sat_(cg_add_sat_(a->out_lay.scale_bytes, a->out_lay.codes_bytes), CG_HEADER_BYTES);
    if (a->mode == CG_REDUCE_SPARSE_) {
        bytes = cg_add_sat_(bytes, cg_index_bound_(&a->info.op, a->transformed_n, a->max_values));
        if (!cg_reducer_list_bytes_(a)) return CG_E_ARG;
        *scratch = cg_size_or_zero_(cg_add_sat_(cg_mul_sat_(2, cg_reducer_list_bytes_(a)), 64));
    }
    *bound = cg_size_or_zero_(bytes);
    return *bound ? CG_OK : CG_E_ARG;
}
CG_API_ cg_status cg_reduce_plan(
    const void *const *packets, const size_t *lens, size_t count, size_t *bound, size_t *scratch) {
    cg_reducer_ a;
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = bound && scratch ? cg_reduce_plan_(packets, lens, count, 0, &a, bound, scratch) : CG_E_ARG;
    cg_fenv_leave_(env);
    return s;
}
CG_NOINLINE_ cg_status cg_verify_all_(const cg_reducer_ *a) {
    for (size_t i = 0; i < a->count; i++) {
        cg_decoder_ d;
        cg_status s = cg_reducer_packet_open_(a, i, &d);
        if (s == CG_OK) s = cg_verify_(&d);
        if (s != CG_OK) return s;
    }
    return CG_OK;
}
static cg_status cg_reduce_(const void *const *packets, const size_t *lens, size_t count, uint64_t reach, void *out,
    size_t cap, size_t *len, void *scratch, size_t scratch_bytes) {
    cg_reducer_ a;
    size_t bound = 0, need = 0;
    cg_status s = out && len && (scratch || !scratch_bytes)
        ? cg_reduce_plan_(packets, lens, count, reach, &a, &bound, &need)
        : CG_E_ARG;
    if (len) *len = 0;
    if (s == CG_OK && (cap < CG_HEADER_BYTES || need > scratch_bytes)) s = CG_E_CAPACITY;
    if (s == CG_OK) s = cg_verify_all_(&a);
    if (s == CG_OK && a.mode == CG_REDUCE_SPARSE_)
        s = cg_reduce_sparse_(&a, (uint8_t *)out, cap, (uint8_t *)scratch + (64 - ((uintptr_t)scratch & 63)) % 64, len);
    else if (s == CG_OK) s = cg_reduce_dense_(&a, (uint8_t *)out, cap, len);
    return s;
}
CG_API_ cg_status cg_reduce(const void *const *packets, const size_t *lens, size_t count, void *out, size_t cap,
    size_t *len, void *scratch, size_t scratch_bytes) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_reduce_(packets, lens, count, 0, out, cap, len, scratch, scratch_bytes);
    cg_fenv_leave_(env);
    return s;
}
/* Packets are read once: a tile of each is counted, then summed while it is in the cache. */
CG_NOINLINE_ cg_status cg_vote_(
    const void *const *packets, const size_t *lens, size_t count, uint8_t *out, size_t cap, size_t *len) {
    enum { MOST = 1024, FEW = 64, TILE = 4096 };
    const cg_kernels_ *kernels = cg_kernels_now_();
    const uint8_t *in[MOST];
    cg_checksum_ sums[FEW];
    cg_reducer_ a;
    cg_decoder_ d;
    size_t bytes;
    cg_status s = cg_reducer_open_(&a, packets, lens, count, 0);
    if (s != CG_OK) return s;
    if (count > MOST) return CG_E_UNSUPPORTED;
    for (size_t i = 0; i < count; i++) {
        s = cg_reducer_packet_open_(&a, i, &d);
        if (s != CG_OK) return s;
        if (d.info.op.quantize.id != CG_QUANTIZE_SIGN || a.mode == CG_REDUCE_SPARSE_) return CG_E_UNSUPPORTED;
        in[i] = d.codes;
    }
    if (count > FEW) s = cg_verify_all_(&a);
    if (s != CG_OK) return s;
    a.info.op.quantize.id = CG_QUANTIZE_SIGN;
    bytes = (size_t)cg_word_bytes_(a.info.k);
    if (cap < CG_HEADER_BYTES || bytes > cap - CG_HEADER_BYTES) return CG_E_CAPACITY;
    memset(sums, 0, sizeof sums);
    for (size_t at = 0, many; at < bytes; at += many) {
        many = cg_min_(TILE, bytes - at);
        kernels->vote(in, count, many, out + CG_HEADER_BYTES + at);
        for (size_t i = 0; count <= FEW && i < count; i++) kernels->checksum(&sums[i], in[i], many / 4);
        for (size_t i = 0; i < count; i++) in[i] += many;
    }
    for (size_t i = 0; count <= FEW && i < count; i++) {
        s = cg_reducer_packet_open_(&a, i, &d);
        if (s != CG_OK || !cg_checksum_ok_(&d, sums[i])) return CG_E_CORRUPT;
    }
    a.info.value_bytes = bytes;
    a.info.index_bytes = 0;
    *len = cg_packet_finalize_(kernels, &a.info, out, cg_checksum_of_(kernels, out + CG_HEADER_BYTES, bytes));
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
/* CG_E_MISMATCH: both are packets of n levels, but on different grids. A packet without levels (a sum that was too large
   for them) is on any grid. */
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
