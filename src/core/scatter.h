/* Values of a selection, a stretch at a time, with their indices before the transform was undone. */
enum { CG_SPARSE_BATCH_ = 128 };
typedef struct cg_selection_reader_ {
    cg_index_reader_ reader;
    cg_piece_cursor_ *cursor; /* NULL without a code */
    uint64_t index[CG_SPARSE_BATCH_];
    const float *values;
    float buf[CG_CHUNK_];
    /* values [first, first + many) are at hand; next: the first that has not been used */
    size_t batch_first, batch_n, next_unused;
} cg_selection_reader_;

static void cg_selection_reader_open_(cg_selection_reader_ *w, const cg_decoder_ *d, cg_piece_cursor_ *cursor) {
    const cg_decoder_ *set = d->support ? d->support : d;
    w->reader = cg_index_open_(&set->info, set->index);
    w->cursor = cursor;
    if (cursor) cg_piece_cursor_open_(cursor, 0, 0);
    w->values = NULL;
    w->batch_first = w->batch_n = w->next_unused = 0;
}
/* How many there are from value `first` on, a multiple of CG_SPARSE_BATCH_; 0: a codec changed its mind after
   cg_verify_. */
static size_t cg_selection_reader_load_(cg_selection_reader_ *w, const cg_decoder_ *d, size_t first) {
    const size_t k = (size_t)d->lay.k, many = cg_min_(CG_SPARSE_BATCH_, k - first);
    if (first % CG_CHUNK_ == 0)
        w->values = cg_decode_chunk_(d, w->cursor, first, cg_min_(CG_CHUNK_, k - first), w->buf, 0);
    return w->values ? many : 0;
}

/* Chunk `first` of what the sample left, transform undone; with a selection chunks must come one after the other. */
static const float *cg_inverse_transform_chunk_(
    const cg_decoder_ *d, cg_selection_reader_ *w, cg_piece_cursor_ *cursor, size_t first, float *out) {
    const cg_stage *stage = &d->info.op.transform;
    const size_t unit = stage->id == CG_TRANSFORM_ROTATE ? CG_ROTATE_BLOCK_ : CG_DCT_BLOCK_,
                 end = cg_min_(d->transformed_n, first + CG_CHUNK_);
    const uint64_t key = cg_shared_key_(&d->info.tag);
    const float *v = out;
    if (!d->info.op.select.id) {
        v = cg_decode_chunk_(d, cursor, first, end - first, out, 0);
        if (!v) return NULL;
    } else {
        memset(out, 0, 4 * (end - first));
        for (;;) {
            if (w->next_unused == w->batch_first + w->batch_n) {
                if (w->next_unused == (size_t)d->lay.k) break;
                w->batch_first = w->next_unused;
                w->batch_n = cg_selection_reader_load_(w, d, w->batch_first);
                if (!w->batch_n) return NULL;
                cg_index_get_per_value_(&w->reader, w->index, w->batch_n);
            }
            if (w->index[w->next_unused - w->batch_first] >= end) break;
            out[(size_t)w->index[w->next_unused - w->batch_first] - first] = cg_load_(
                w->values, w->next_unused % CG_CHUNK_);
            w->next_unused++;
        }
    }
    for (size_t b = first; b < end; b += unit)
        cg_transform_block_(d->kernels, stage, key, b / unit, cg_at_(v, b - first), out + (b - first), 1);
    return out;
}

/* Dense: every value of y, by blocks. direct: the codes are checked on the way. */
static int cg_decode_block_(const cg_decoder_ *d, cg_selection_reader_ *walk, cg_piece_cursor_ *cursor, size_t block,
    int direct, cg_checksum_ *sum, double *energy) {
    const size_t n = (size_t)d->info.drawn, end = cg_min_(n, (block + 1) * CG_BLOCK_);
    const int turned = d->info.op.transform.id != 0,
              in_place = d->alpha == 1.0f && d->beta == 0.0f && !d->lay.codec && !turned && !d->sink;
    float out[CG_CHUNK_];
    int ok = 1;
    cg_fenv_ env = cg_fenv_enter_();
    sum->a = sum->b = sum->words = 0;
    *energy = 0.0;
    for (size_t first = block * CG_BLOCK_, many; first < end && ok; first += many) {
        many = cg_min_(CG_CHUNK_, end - first);
        if (direct) ok = cg_codes_check_(d, first, cg_min_(CG_CHUNK_, (size_t)d->lay.k - first), sum);
        if (ok) {
            float *y = d->sink ? d->y : cg_at_mut_(d->y, first);
            const float *v;
            cg_codes_prefetch_(d, first);
            if (turned) v = cg_inverse_transform_chunk_(d, walk, cursor, first, out);
            else v = cg_decode_chunk_(d, cursor, first, many, in_place ? y : out, in_place && d->non_temporal);
            if (v && d->sink) *energy += d->sink->take_dense(d->sink->user, first, many, v);
            else if (v && v != y) d->kernels->axpby(v, many, d->alpha, d->beta, y, d->non_temporal);
            ok = v != NULL;
        }
    }
    if (d->non_temporal) d->kernels->stream_fence();
    cg_fenv_leave_(env);
    return ok;
}
/* at: where the block's pieces start */
CG_NOINLINE_ int cg_decode_block_coded_(
    const cg_decoder_ *d, size_t block, size_t at, cg_checksum_ *sum, double *energy) {
    cg_piece_cursor_ cursor;
    cg_piece_cursor_open_(&cursor, block * CG_BLOCK_ / d->lay.piece_values, at);
    return cg_decode_block_(d, NULL, &cursor, block, 0, sum, energy);
}
CG_NOINLINE_ cg_status cg_decode_dense_(const cg_decoder_ *d, int direct) {
    const size_t n = (size_t)d->info.drawn, blocks = n / CG_BLOCK_ + (n % CG_BLOCK_ != 0);
    cg_checksum_ part[CG_WAVE_], sum = { 0, 0, 0 };
    size_t at[CG_WAVE_ + 1] = { 0 };
    double energy[CG_WAVE_];
    int ok[CG_WAVE_];
    for (size_t block = 0; block < blocks; block += CG_WAVE_) {
        int many = cg_wave_size_(blocks - block);
        for (int i = 0; d->lay.value_code && i < many; i++) {
            const size_t per = CG_BLOCK_ / d->lay.piece_values, pieces = (size_t)d->lay.piece_table_bytes / 4,
                         first = (block + (size_t)i) * per;
            at[i + 1] = at[i];
            for (size_t p = first; p < cg_min_(pieces, first + per); p++) at[i + 1] += cg_piece_bytes_(d, p);
        }
        CG_PARALLEL_
        for (int i = 0; i < many; i++)
            ok[i] = d->lay.value_code
                ? cg_decode_block_coded_(d, block + (size_t)i, at[i], &part[i], &energy[i])
                : cg_decode_block_(d, NULL, NULL, block + (size_t)i, direct, &part[i], &energy[i]);
        at[0] = at[many];
        for (int i = 0; i < many; i++) {
            if (!ok[i]) return CG_E_CORRUPT;
            if (d->sink) d->sink->energy += energy[i];
            sum = cg_checksum_concat_(sum, part[i]);
        }
    }
    return !direct || cg_checksum_ok_(d, sum) ? CG_OK : CG_E_CORRUPT;
}
/* A selection behind a transform: its values come one after the other, so blocks do, too. */
CG_NOINLINE_ cg_status cg_decode_sequential_(const cg_decoder_ *d, cg_piece_cursor_ *cursor) {
    const size_t n = (size_t)d->info.drawn;
    cg_selection_reader_ walk;
    cg_checksum_ none;
    double energy;
    cg_selection_reader_open_(&walk, d, cursor);
    for (size_t block = 0; block * CG_BLOCK_ < n; block++) {
        if (!cg_decode_block_(d, &walk, cursor, block, 0, &none, &energy)) return CG_E_CORRUPT;
        if (d->sink) d->sink->energy += energy;
    }
    return CG_OK;
}

/* Where the packet has values, in ascending order: `many` more from value `first` on. */
static void cg_coordinates_get_(const cg_decoder_ *d, cg_index_reader_ *r, size_t first, size_t many, uint64_t *at) {
    const cg_decoder_ *set = d->support ? d->support : d;
    const int indexed = set->info.op.select.id && !set->info.op.transform.id;
    cg_strata_ strata;
    if (indexed) cg_index_get_per_value_(r, at, many);
    if (!set->info.op.sample.id) {
        for (size_t i = 0; !indexed && i < many; i++) at[i] = first + i;
        return;
    }
    cg_strata_open_(&strata, &set->info, first);
    for (size_t i = 0; i < many; i++, cg_strata_next_(&strata)) {
        if (indexed) cg_strata_seek_(&strata, at[i]);
        at[i] = cg_strata_sample_(&strata);
    }
}
static void cg_scale_y_(float *y, size_t n, float beta) { /* where the packet has no value */
    if (beta == 0.0f) memset(y, 0, 4 * n);
    else if (beta != 1.0f)
        for (size_t i = 0; i < n; i++) cg_store_(y, i, cg_times_(beta, cg_load_(y, i)));
}
/* The values of a packet that is sparse in y, a stretch at a time. */
static size_t cg_coordinate_count_(const cg_decoder_ *d) {
    return d->info.op.transform.id ? (size_t)d->info.drawn : (size_t)d->lay.k;
}
static size_t cg_selection_reader_next_(
    cg_selection_reader_ *w, const cg_decoder_ *d, size_t first, float *value, float *buf) {
    const size_t many = cg_min_(CG_SPARSE_BATCH_, cg_coordinate_count_(d) - first);
    if (!buf) buf = w->buf;
    if (d->info.op.transform.id) {
        if (first % CG_CHUNK_ == 0 && !cg_inverse_transform_chunk_(d, w, w->cursor, first, buf)) return 0;
        memcpy(value, buf + first % CG_CHUNK_, 4 * many);
    } else {
        if (!cg_selection_reader_load_(w, d, first)) return 0;
        memcpy(value, cg_at_(w->values, first % CG_CHUNK_), 4 * many);
    }
    if (d->alpha != 1.0f)
        for (size_t i = 0; i < many; i++) value[i] = cg_times_(d->alpha, value[i]);
    return many;
}
/* Into a y that is in the cache, or is added to: fill a stretch, then scatter into it. buf: for a transform of a
   selection. */
static cg_status cg_scatter_into_(const cg_decoder_ *d, cg_piece_cursor_ *cursor, float *buf) {
    const size_t k = cg_coordinate_count_(d), n = (size_t)d->info.n;
    uint64_t at[CG_SPARSE_BATCH_];
    float value[CG_SPARSE_BATCH_];
    size_t filled = 0;
    cg_selection_reader_ w;
    cg_selection_reader_open_(&w, d, cursor);
    for (size_t first = 0, many; first < k; first += many) {
        many = cg_selection_reader_next_(&w, d, first, value, buf);
        if (!many) return CG_E_CORRUPT;
        cg_coordinates_get_(d, &w.reader, first, many, at);
        if (d->sink) {
            d->sink->energy += d->sink->take_sparse(d->sink->user, at, many, value);
            continue;
        }
        cg_scale_y_(cg_at_mut_(d->y, filled), (size_t)at[many - 1] + 1 - filled, d->beta);
        filled = (size_t)at[many - 1] + 1;
        if (w.reader.values_per_index > 1 && !d->info.op.sample.id && !d->support) { /* block by block */
            for (size_t i = 0, run; i < many; i += run) {
                run = cg_min_(many - i, (size_t)(w.reader.values_per_index - at[i] % w.reader.values_per_index));
                d->kernels->axpby(
                    value + i, run, 1.0f, d->beta == 0.0f ? 0.0f : 1.0f, cg_at_mut_(d->y, (size_t)at[i]), 0);
            }
        } else if (d->beta == 0.0f)
            for (size_t i = 0; i < many; i++) cg_store_(d->y, (size_t)at[i], value[i]);
        else
            for (size_t i = 0; i < many; i++)
                cg_store_(d->y, (size_t)at[i], cg_plus_(cg_load_(d->y, (size_t)at[i]), value[i]));
    }
    if (!d->sink) cg_scale_y_(cg_at_mut_(d->y, filled), n - filled, d->beta);
    return CG_OK;
}
CG_NOINLINE_ cg_status cg_scatter_transformed_(const cg_decoder_ *d, cg_piece_cursor_ *cursor) {
    float buf[CG_CHUNK_];
    return cg_scatter_into_(d, cursor, buf);
}
CG_NOINLINE_ cg_status cg_scatter_plain_(const cg_decoder_ *d, cg_piece_cursor_ *cursor) {
    return cg_scatter_into_(d, cursor, NULL);
}
/* Into a y larger than the cache: chunks are put together in L1, mostly zeros, and streamed out. */
CG_NOINLINE_ cg_status cg_scatter_stream_(const cg_decoder_ *d) {
    const size_t k = (size_t)d->lay.k, n = (size_t)d->info.n;
    uint64_t at[CG_SPARSE_BATCH_];
    float value[CG_SPARSE_BATCH_];
    float chunk[CG_CHUNK_];
    uint16_t touched[CG_CHUNK_];
    size_t base = 0, marks = 0;
    cg_selection_reader_ w;
    cg_selection_reader_open_(&w, d, NULL);
    memset(chunk, 0, sizeof chunk);
    for (size_t first = 0, many; first < k; first += many) {
        many = cg_selection_reader_next_(&w, d, first, value, NULL);
        if (!many) return CG_E_CORRUPT;
        cg_coordinates_get_(d, &w.reader, first, many, at);
        for (size_t i = 0; i < many; i++) {
            while ((size_t)at[i] - base >= CG_CHUNK_) {
                d->kernels->axpby(chunk, CG_CHUNK_, 1.0f, 0.0f, cg_at_mut_(d->y, base), 1);
                while (marks) chunk[touched[--marks]] = 0.0f;
                base += CG_CHUNK_;
            }
            touched[marks] = (uint16_t)((size_t)at[i] - base);
            chunk[touched[marks++]] = value[i];
        }
    }
    for (; base < n; base += CG_CHUNK_) {
        d->kernels->axpby(chunk, cg_min_(CG_CHUNK_, n - base), 1.0f, 0.0f, cg_at_mut_(d->y, base), 1);
        while (marks) chunk[touched[--marks]] = 0.0f;
    }
    d->kernels->stream_fence();
    return CG_OK;
}
/* What is not dense, or comes one after the other. */
static cg_status cg_decode_sparse_(const cg_decoder_ *d, int dense, cg_piece_cursor_ *cursor) {
    if (dense) return cg_decode_sequential_(d, cursor);
    if (d->info.op.transform.id && d->info.op.select.id) return cg_scatter_transformed_(d, cursor);
    return d->non_temporal && !cursor && !d->info.op.transform.id && cg_values_per_index_(&d->info.op) == 1
        ? cg_scatter_stream_(d)
        : cg_scatter_plain_(d, cursor);
}
CG_NOINLINE_ cg_status cg_decode_sparse_coded_(const cg_decoder_ *d, int dense) {
    cg_piece_cursor_ cursor;
    return cg_decode_sparse_(d, dense, &cursor);
}

/* A product of factors, in tiles whose part of q stays in L1. */
CG_NOINLINE_ void cg_matrix_decode_(const cg_decoder_ *d) {
    const size_t rows = cg_matrix_rows_(&d->info.op), cols = cg_matrix_cols_(&d->info.op);
    const unsigned rank = cg_matrix_r_(&d->info.op);
    const uint8_t *p = d->codes, *q = p + 4 * rows * rank;
    const int direct = d->alpha == 1.0f && d->beta == 0.0f && !d->sink;
    enum { TALL = 8, FLOATS = 3072 }; /* rows, and values of q or of a result */
    const size_t wide = FLOATS / (rank > TALL ? rank : (unsigned)TALL) / 16 * 16;
    float part[FLOATS], out[FLOATS], left[TALL * 64];
    for (size_t j = 0; j < cols; j += wide) {
        const size_t many = cg_min_(wide, cols - j);
        for (unsigned a = 0; a < rank; a++)
            for (size_t c = 0; c < many; c++) part[a * many + c] = cg_as_float_(cg_get32_(q + 4 * (a * cols + j + c)));
        for (size_t i = 0; i < rows; i += TALL) {
            const size_t tall = cg_min_(TALL, rows - i);
            float *y = d->sink ? d->y : cg_at_mut_(d->y, i * cols + j);
            for (size_t c = 0; c < tall * rank; c++) left[c] = cg_as_float_(cg_get32_(p + 4 * (i * rank + c)));
            if (direct) {
                d->kernels->lowrank_tile(left, part, many, rank, tall, many, y, cols, d->non_temporal && cols % 4 == 0);
            } else {
                d->kernels->lowrank_tile(left, part, many, rank, tall, many, out, many, 0);
                for (size_t r = 0; r < tall; r++) {
                    if (d->sink)
                        d->sink->energy += d->sink->take_dense(d->sink->user, (i + r) * cols + j, many, out + r * many);
                    else d->kernels->axpby(out + r * many, many, d->alpha, d->beta, cg_at_mut_(y, r * cols), 0);
                }
            }
        }
    }
    if (d->non_temporal) d->kernels->stream_fence();
}
