/* decode_into: decoded values into y or a sink: dense, sparse or a product of factors

   Offers   cg_decode_dense_, cg_decode_sparse_, cg_decode_sparse_coded_, cg_decode_few_, cg_matrix_decode_,
            cg_coordinates_get_, cg_selection_reader_
   Needs    base, random, kernels, plan, sample, transform, indices, encode (waves), decoder, verify
   Touches  y, or what the sink writes
   A dense result is decoded by blocks, by threads if there are any. A sparse one is read in batches of values with
   their coordinates. Inputs have been opened and verified, but for CG_DECODE_DIRECT; all but a user codec succeeds. */

enum { CG_SPARSE_BATCH_ = 128 }; /* values; divides CG_CHUNK_ */

/* Reads the values of a selection in order, with their indices in the transformed vector. */
typedef struct cg_selection_reader_ {
    cg_index_reader_ reader;
    cg_piece_cursor_ *cursor;         /* NULL without a value code */
    uint64_t index[CG_SPARSE_BATCH_]; /* of the current batch */
    const float *values;              /* the current chunk, decoded: in buf, or where it lies */
    float buf[CG_CHUNK_];
    size_t batch_first, batch_n; /* the current batch is values [batch_first, batch_first + batch_n) */
    size_t next_unused;          /* the first value that has not been used */
} cg_selection_reader_;

/* Before the first value. cursor: uninitialised, or NULL without a value code. The owner of the indices is the support,
   if there is one. */
static void cg_selection_reader_open_(cg_selection_reader_ *sel, const cg_decoder_ *d, cg_piece_cursor_ *cursor) {
    const cg_decoder_ *owner = d->support ? d->support : d;
    if (!cg_has_segments_(&owner->info))
        sel->reader = cg_index_open_(owner->kernels, &owner->info, &owner->plan, owner->index);
    else sel->reader.values_per_index = 1;
    sel->cursor = cursor;
    if (cursor) cg_piece_cursor_open_(cursor, 0, 0);
    sel->values = NULL;
    sel->batch_first = sel->batch_n = sel->next_unused = 0;
}
/* Decodes the chunk of the batch that begins at value `first`, a multiple of CG_SPARSE_BATCH_; batches must be loaded
   in order. Returns the number of values in the batch; 0: a user codec refused what it had accepted in cg_verify_. */
static size_t cg_selection_reader_load_(cg_selection_reader_ *sel, const cg_decoder_ *d, size_t first) {
    const size_t k = (size_t)d->lay.k, many = cg_min_(CG_SPARSE_BATCH_, k - first);
    if (first % CG_CHUNK_ == 0)
        sel->values = cg_decode_chunk_(d, sel->cursor, first, cg_min_(CG_CHUNK_, k - first), sel->buf, 0);
    return sel->values ? many : 0;
}

/* The chunk from value `first` on, after the inverse transform, in out (CG_CHUNK_ floats); NULL: a user codec refused.
   With a selection sel is needed, and chunks must be asked for in order; cursor only with a value code. */
static const float *cg_inverse_transform_chunk_(
    const cg_decoder_ *d, cg_selection_reader_ *sel, cg_piece_cursor_ *cursor, size_t first, float *out) {
    const size_t block_size = cg_transformer_of_(&d->info.op)->block,
                 end = cg_min_((size_t)d->plan.transformed_n, first + CG_CHUNK_);
    const uint64_t key = cg_stage_key_(&d->info.op.transform, &d->info.tag);
    const float *v = out;
    if (!d->info.op.select.id) {
        v = cg_decode_chunk_(d, cursor, first, end - first, out, 0);
        if (!v) return NULL;
    } else {
        memset(out, 0, 4 * (end - first));
        for (;;) {
            if (sel->next_unused == sel->batch_first + sel->batch_n) {
                if (sel->next_unused == (size_t)d->lay.k) break;
                sel->batch_first = sel->next_unused;
                sel->batch_n = cg_selection_reader_load_(sel, d, sel->batch_first);
                if (!sel->batch_n) return NULL;
                cg_index_get_per_value_(&sel->reader, sel->index, sel->batch_n);
            }
            if (sel->index[sel->next_unused - sel->batch_first] >= end) break;
            out[(size_t)sel->index[sel->next_unused - sel->batch_first] - first] = cg_load_(
                sel->values, sel->next_unused % CG_CHUNK_);
            sel->next_unused++;
        }
    }
    for (size_t b = first; b < end; b += block_size)
        cg_transform_block_(d->kernels, &d->info.op, key, b / block_size, cg_at_(v, b - first), out + (b - first), 1);
    return out;
}

/* One block of a dense result. sel: with a selection and a transform; cursor: with a value code, at the block's first
   piece. check_codes: the packet has not been verified; *sum becomes the checksum of the block's codes, and a stored
   float that is not finite ends the block. *energy: what the sink returned. 0: corrupt, y is partly written. */
CG_NOINLINE_ int cg_decode_block_(const cg_decoder_ *d, cg_selection_reader_ *sel, cg_piece_cursor_ *cursor,
    size_t block, int check_codes, cg_checksum_ *sum, double *energy) {
    const size_t n = (size_t)d->info.drawn, end = cg_min_(n, (block + 1) * CG_BLOCK_);
    const int transformed = cg_is_transformed_(&d->info.op),
              in_place = d->alpha == 1.0f && d->beta == 0.0f && !d->lay.codec && !transformed && !d->sink;
    float out[CG_CHUNK_];
    int ok = 1;
    cg_fenv_ env = cg_fenv_enter_thread_();
    sum->a = sum->b = sum->words = 0;
    *energy = 0.0;
    for (size_t first = block * CG_BLOCK_, many; first < end && ok; first += many) {
        many = cg_min_(CG_CHUNK_, end - first);
        if (check_codes) ok = cg_codes_check_(d, first, cg_min_(CG_CHUNK_, (size_t)d->lay.k - first), sum);
        if (ok) {
            float *y = d->sink ? d->y : cg_at_mut_(d->y, first);
            const float *v;
            cg_codes_prefetch_(d, first);
            if (transformed) v = cg_inverse_transform_chunk_(d, sel, cursor, first, out);
            else v = cg_decode_chunk_(d, cursor, first, many, in_place ? y : out, in_place && d->non_temporal);
            if (v && d->sink) *energy += d->sink->take_dense(d->sink->user, first, many, v);
            else if (v && v != y) CG_KERNEL_(d->kernels, axpby(v, many, d->alpha, d->beta, y, d->non_temporal));
            ok = v != NULL;
        }
    }
    if (d->non_temporal) CG_KERNEL_(d->kernels, stream_fence());
    cg_fenv_leave_thread_(env);
    return ok;
}
/* The same with a value code. offset: of the block's first piece in the codes. */
CG_NOINLINE_ int cg_decode_block_coded_(
    const cg_decoder_ *d, size_t block, size_t offset, cg_checksum_ *sum, double *energy) {
    cg_piece_cursor_ cursor;
    cg_piece_cursor_open_(&cursor, block * CG_BLOCK_ / d->lay.piece_values, offset);
    return cg_decode_block_(d, NULL, &cursor, block, 0, sum, energy);
}
/* All blocks of a dense result without a selection, in waves; *sum becomes the checksum of their codes. 0: corrupt. */
CG_NOINLINE_ int cg_decode_waves_(const cg_decoder_ *d, size_t blocks, int check_codes, cg_checksum_ *sum) {
    cg_checksum_ block_sums[CG_WAVE_];
    size_t offset[CG_WAVE_ + 1]; /* of blocks, with a value code */
    double energy[CG_WAVE_];
    int ok[CG_WAVE_];
    offset[0] = 0;
    for (size_t block = 0; block < blocks; block += CG_WAVE_) {
        int many = cg_wave_size_(blocks - block);
        for (int i = 0; cg_is_coded_(&d->lay) && i < many; i++) {
            const size_t block_pieces = CG_BLOCK_ / d->lay.piece_values, pieces = cg_piece_count_(&d->lay),
                         first = (block + (size_t)i) * block_pieces;
            offset[i + 1] = offset[i];
            for (size_t p = first; p < cg_min_(pieces, first + block_pieces); p++)
                offset[i + 1] += cg_piece_bytes_(d, p);
        }
        CG_PARALLEL_
        for (int i = 0; i < many; i++)
            ok[i] = cg_is_coded_(&d->lay)
                ? cg_decode_block_coded_(d, block + (size_t)i, offset[i], &block_sums[i], &energy[i])
                : cg_decode_block_(d, NULL, NULL, block + (size_t)i, check_codes, &block_sums[i], &energy[i]);
        if (cg_is_coded_(&d->lay)) offset[0] = offset[many];
        for (int i = 0; i < many; i++) {
            if (!ok[i]) return 0;
            if (d->sink) d->sink->energy += energy[i];
            *sum = cg_checksum_concat_(*sum, block_sums[i]);
        }
    }
    return 1;
}
/* All of a dense result without a selection. check_codes: verifies the packet on the way (CG_DECODE_DIRECT). */
static cg_status cg_decode_dense_(const cg_decoder_ *d, int check_codes) {
    const size_t n = (size_t)d->info.drawn;
    cg_checksum_ sum = { 0, 0, 0 };
    double energy = 0.0;
    int ok;
    if (n - 1 < CG_BLOCK_ && !cg_is_coded_(&d->lay)) { /* one block */
        ok = cg_decode_block_(d, NULL, NULL, 0, check_codes, &sum, &energy);
        if (d->sink) d->sink->energy += energy;
    } else ok = cg_decode_waves_(d, n / CG_BLOCK_ + (n % CG_BLOCK_ != 0), check_codes, &sum);
    return ok && (!check_codes || cg_checksum_ok_(d, sum)) ? CG_OK : CG_E_CORRUPT;
}
/* All of a dense result that is the inverse transform of a selection: its values come in order, so blocks do, too. */
CG_NOINLINE_ cg_status cg_decode_sequential_(const cg_decoder_ *d, cg_piece_cursor_ *cursor) {
    const size_t n = (size_t)d->info.drawn;
    cg_selection_reader_ sel;
    cg_checksum_ unused;
    double energy;
    cg_selection_reader_open_(&sel, d, cursor);
    for (size_t block = 0; block * CG_BLOCK_ < n; block++) {
        if (!cg_decode_block_(d, &sel, cursor, block, 0, &unused, &energy)) return CG_E_CORRUPT;
        if (d->sink) d->sink->energy += energy;
    }
    return CG_OK;
}

/* Where the reader of a support with segments stands. */
typedef struct cg_segment_walk_ {
    cg_segment_cursor_ cursor;
    cg_decoder_ segment;
    cg_index_reader_ reader; /* of the segment */
    size_t next, count;      /* of its coordinates */
    uint64_t base;           /* its first value */
} cg_segment_walk_;
/* The next coordinates of a verified support with segments; start: from the first on. In core/segments/decode.h */
static void cg_segment_walk_get_(const cg_decoder_ *support, int start, size_t many, uint64_t *index);
/* The coordinates in x of values [first, first + many), ascending. With indices r is the reader of d or of its support,
   and stands at value `first`; behind a transform all sampled coordinates count as values. */
static void cg_coordinates_get_(const cg_decoder_ *d, cg_index_reader_ *r, size_t first, size_t many, uint64_t *index) {
    const cg_decoder_ *owner = d->support ? d->support : d;
    const int indexed = owner->info.op.select.id && !cg_is_transformed_(&owner->info.op);
    cg_strata_ strata;
    if (cg_has_segments_(&owner->info)) {
        cg_segment_walk_get_(owner, first == 0, many, index);
        return;
    }
    if (indexed) cg_index_get_per_value_(r, index, many);
    if (!cg_is_sampled_(&owner->info.op)) {
        for (size_t i = 0; !indexed && i < many; i++) index[i] = first + i;
        return;
    }
    cg_strata_open_(&strata, &owner->info, first);
    for (size_t i = 0; i < many; i++, cg_strata_next_(&strata)) {
        if (indexed) cg_strata_seek_(&strata, index[i]);
        index[i] = cg_strata_sample_(&strata);
    }
}
/* y = beta*y, for coordinates where the packet has no value; 0 even of NaN if beta is 0. */
static void cg_scale_y_(float *y, size_t n, float beta) {
    if (beta == 0.0f) memset(y, 0, 4 * n);
    else if (beta != 1.0f)
        for (size_t i = 0; i < n; i++) cg_store_(y, i, cg_times_(beta, cg_load_(y, i)));
}
/* How many coordinates of x the packet has values for: behind a transform, all that the sample left. */
static size_t cg_coordinate_count_(const cg_decoder_ *d) {
    if (cg_has_segments_(&d->info)) return (size_t)d->coordinates;
    return cg_is_transformed_(&d->info.op) ? (size_t)d->info.drawn : (size_t)d->lay.k;
}
/* The batch of a sparse result from value `first` on, times alpha; cg_coordinates_get_ gives its coordinates. buf:
   CG_CHUNK_ floats if there are both a selection and a transform, else NULL. Returns how many; 0: a user codec
   refused. */
static size_t cg_selection_reader_next_(
    cg_selection_reader_ *sel, const cg_decoder_ *d, size_t first, float *value, float *buf) {
    const size_t many = cg_min_(CG_SPARSE_BATCH_, cg_coordinate_count_(d) - first);
    if (!buf) buf = sel->buf;
    if (cg_is_transformed_(&d->info.op)) {
        if (first % CG_CHUNK_ == 0 && !cg_inverse_transform_chunk_(d, sel, sel->cursor, first, buf)) return 0;
        memcpy(value, buf + first % CG_CHUNK_, 4 * many);
    } else {
        if (!cg_selection_reader_load_(sel, d, first)) return 0;
        memcpy(value, cg_at_(sel->values, first % CG_CHUNK_), 4 * many);
    }
    if (d->alpha != 1.0f)
        for (size_t i = 0; i < many; i++) value[i] = cg_times_(d->alpha, value[i]);
    return many;
}
/* A sparse result into a y that is in the cache or is added to, or into a sink: for each batch, y is scaled up to its
   last coordinate, then values are added. buf as for cg_selection_reader_next_. */
static cg_status cg_scatter_into_(const cg_decoder_ *d, cg_piece_cursor_ *cursor, float *buf) {
    const size_t k = cg_coordinate_count_(d), n = (size_t)d->info.n;
    uint64_t index[CG_SPARSE_BATCH_];
    float value[CG_SPARSE_BATCH_];
    size_t scaled_n = 0;
    cg_selection_reader_ sel;
    cg_selection_reader_open_(&sel, d, cursor);
    for (size_t first = 0, many; first < k; first += many) {
        many = cg_selection_reader_next_(&sel, d, first, value, buf);
        if (!many) return CG_E_CORRUPT;
        cg_coordinates_get_(d, &sel.reader, first, many, index);
        if (d->sink) {
            d->sink->energy += d->sink->take_sparse(d->sink->user, index, many, value);
            continue;
        }
        cg_scale_y_(cg_at_mut_(d->y, scaled_n), (size_t)index[many - 1] + 1 - scaled_n, d->beta);
        scaled_n = (size_t)index[many - 1] + 1;
        if (sel.reader.values_per_index > 1 && !cg_is_sampled_(&d->info.op) && !d->support) { /* block by block */
            for (size_t i = 0, in_block; i < many; i += in_block) {
                in_block = cg_min_(
                    many - i, (size_t)(sel.reader.values_per_index - index[i] % sel.reader.values_per_index));
                CG_KERNEL_(d->kernels,
                    axpby(value + i, in_block, 1.0f, d->beta == 0.0f ? 0.0f : 1.0f, cg_at_mut_(d->y, (size_t)index[i]),
                        0));
            }
        } else if (d->beta == 0.0f)
            for (size_t i = 0; i < many; i++) cg_store_(d->y, (size_t)index[i], value[i]);
        else
            for (size_t i = 0; i < many; i++)
                cg_store_(d->y, (size_t)index[i], cg_plus_(cg_load_(d->y, (size_t)index[i]), value[i]));
    }
    if (!d->sink) cg_scale_y_(cg_at_mut_(d->y, scaled_n), n - scaled_n, d->beta);
    return CG_OK;
}
CG_NOINLINE_ cg_status cg_scatter_transformed_(const cg_decoder_ *d, cg_piece_cursor_ *cursor) {
    float buf[CG_CHUNK_];
    return cg_scatter_into_(d, cursor, buf);
}
CG_NOINLINE_ cg_status cg_scatter_plain_(const cg_decoder_ *d, cg_piece_cursor_ *cursor) {
    return cg_scatter_into_(d, cursor, NULL);
}
/* A sparse result into a y that is larger than the caches, with beta 0: chunks are put together in L1, mostly zeros,
   and written around the caches. */
CG_NOINLINE_ cg_status cg_scatter_stream_(const cg_decoder_ *d) {
    const size_t k = (size_t)d->lay.k, n = (size_t)d->info.n;
    uint64_t index[CG_SPARSE_BATCH_];
    float value[CG_SPARSE_BATCH_];
    float chunk[CG_CHUNK_];
    uint16_t touched[CG_CHUNK_];
    size_t base = 0, touched_n = 0;
    cg_selection_reader_ sel;
    cg_selection_reader_open_(&sel, d, NULL);
    memset(chunk, 0, sizeof chunk);
    for (size_t first = 0, many; first < k; first += many) {
        many = cg_selection_reader_next_(&sel, d, first, value, NULL);
        if (!many) return CG_E_CORRUPT;
        cg_coordinates_get_(d, &sel.reader, first, many, index);
        for (size_t i = 0; i < many; i++) {
            while ((size_t)index[i] - base >= CG_CHUNK_) {
                CG_KERNEL_(d->kernels, axpby(chunk, CG_CHUNK_, 1.0f, 0.0f, cg_at_mut_(d->y, base), 1));
                while (touched_n) chunk[touched[--touched_n]] = 0.0f;
                base += CG_CHUNK_;
            }
            touched[touched_n] = (uint16_t)((size_t)index[i] - base);
            chunk[touched[touched_n++]] = value[i];
        }
    }
    for (; base < n; base += CG_CHUNK_) {
        CG_KERNEL_(d->kernels, axpby(chunk, cg_min_(CG_CHUNK_, n - base), 1.0f, 0.0f, cg_at_mut_(d->y, base), 1));
        while (touched_n) chunk[touched[--touched_n]] = 0.0f;
    }
    CG_KERNEL_(d->kernels, stream_fence());
    return CG_OK;
}
/* A result that is sparse, or that is dense but has to be decoded in order. cursor: uninitialised, NULL without a value
   code. The functions it calls are not inlined, so that each has its own stack only. */
static cg_status cg_decode_sparse_(const cg_decoder_ *d, int dense, cg_piece_cursor_ *cursor) {
    if (dense) return cg_decode_sequential_(d, cursor);
    if (cg_is_transformed_(&d->info.op) && d->info.op.select.id) return cg_scatter_transformed_(d, cursor);
    return d->non_temporal && !cursor && !cg_is_transformed_(&d->info.op) && d->plan.values_per_index == 1
        ? cg_scatter_stream_(d)
        : cg_scatter_plain_(d, cursor);
}
CG_NOINLINE_ cg_status cg_decode_sparse_coded_(const cg_decoder_ *d, int dense) {
    cg_piece_cursor_ cursor;
    return cg_decode_sparse_(d, dense, &cursor);
}

/* Few values at places of their own, whose packet has not been verified: do they go in one batch? */
static int cg_is_few_(const cg_decoder_ *d) {
    const uint32_t others = CG_NEEDS_SUPPORT_ | CG_KEEPS_BLOCKS_ | CG_INDEX_LENGTH_VARIES_ | CG_IS_USER_CODEC_;
    return (d->plan.traits & (CG_IS_SELECTION_ | others)) == CG_IS_SELECTION_ && d->lay.k - 1 < CG_SPARSE_BATCH_ &&
        !cg_is_sampled_(&d->info.op) && !cg_is_transformed_(&d->info.op) && !cg_is_coded_(&d->lay) && !d->non_temporal;
}
/* Verifies and decodes such a packet with one look at its indices; the same as cg_verify_ and cg_decode_sparse_. */
CG_NOINLINE_ cg_status cg_decode_few_(const cg_decoder_ *d) {
    const size_t k = (size_t)d->lay.k, n = (size_t)d->info.n;
    uint64_t index[CG_SPARSE_BATCH_], one_more;
    float buf[CG_SPARSE_BATCH_], value[CG_SPARSE_BATCH_];
    cg_checksum_ sum = { 0, 0, 0 };
    cg_index_reader_ r;
    int bad;
    if (!cg_codes_check_(d, 0, k, &sum) || !cg_checksum_ok_(d, sum)) return CG_E_CORRUPT;
    r = cg_index_open_(d->kernels, &d->info, &d->plan, d->index);
    if (!r.coder->padding_ok(&r, k) || cg_index_get_(&r, index, k) < k || cg_index_get_(&r, &one_more, 1))
        return CG_E_CORRUPT;
    bad = index[k - 1] >= r.universe;
    for (size_t i = 1; i < k; i++) bad |= index[i] <= index[i - 1];
    if (bad) return CG_E_CORRUPT;
    memcpy(value, cg_decode_chunk_(d, NULL, 0, k, buf, 0), 4 * k);
    if (d->alpha != 1.0f)
        for (size_t i = 0; i < k; i++) value[i] = cg_times_(d->alpha, value[i]);
    if (d->sink) {
        d->sink->energy += d->sink->take_sparse(d->sink->user, index, k, value);
        return CG_OK;
    }
    cg_scale_y_(d->y, n, d->beta);
    for (size_t i = 0; i < k; i++)
        cg_store_(
            d->y, (size_t)index[i], d->beta == 0.0f ? value[i] : cg_plus_(cg_load_(d->y, (size_t)index[i]), value[i]));
    return CG_OK;
}

/* The product of the factors p and q, in tiles whose part of q stays in L1. */
CG_NOINLINE_ void cg_matrix_decode_(const cg_decoder_ *d) {
    const size_t rows = cg_matrix_rows_(&d->info.op), cols = cg_matrix_cols_(&d->info.op);
    const unsigned r = cg_matrix_r_(&d->info.op);
    const uint8_t *p = d->codes, *q = p + 4 * rows * r;
    const int in_place = d->alpha == 1.0f && d->beta == 0.0f && !d->sink;
    enum { TALL = 8, FLOATS = 3072 }; /* rows of a tile; values of its part of q, or of its result */
    const size_t wide = FLOATS / (r > TALL ? r : (unsigned)TALL) / 16 * 16;
    float q_tile[FLOATS], out[FLOATS], p_tile[TALL * 64];
    for (size_t j = 0; j < cols; j += wide) {
        const size_t many = cg_min_(wide, cols - j);
        for (unsigned a = 0; a < r; a++)
            for (size_t c = 0; c < many; c++)
                q_tile[a * many + c] = cg_as_float_(cg_get32_(q + 4 * (a * cols + j + c)));
        for (size_t i = 0; i < rows; i += TALL) {
            const size_t tall = cg_min_(TALL, rows - i);
            float *y = d->sink ? d->y : cg_at_mut_(d->y, i * cols + j);
            for (size_t c = 0; c < tall * r; c++) p_tile[c] = cg_as_float_(cg_get32_(p + 4 * (i * r + c)));
            if (in_place) {
                CG_KERNEL_(d->kernels,
                    lowrank_tile(p_tile, q_tile, many, r, tall, many, y, cols, d->non_temporal && cols % 4 == 0));
            } else {
                CG_KERNEL_(d->kernels, lowrank_tile(p_tile, q_tile, many, r, tall, many, out, many, 0));
                for (size_t row = 0; row < tall; row++) {
                    if (d->sink)
                        d->sink->energy += d->sink->take_dense(
                            d->sink->user, (i + row) * cols + j, many, out + row * many);
                    else
                        CG_KERNEL_(
                            d->kernels, axpby(out + row * many, many, d->alpha, d->beta, cg_at_mut_(y, row * cols), 0));
                }
            }
        }
    }
    if (d->non_temporal) CG_KERNEL_(d->kernels, stream_fence());
}
