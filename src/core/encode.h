/* encode: the loop that turns values into scales and codes

   Offers   cg_encoder_, cg_encode_values_, cg_source_clip_, cg_scales_put_, cg_scales_get_, cg_bucket_end_,
            cg_producer_make_all_
   Needs    base, random, kernels, codes (symbols, floats), packet (checksums), quantize, layout, source, select/filter
   Touches  the packet's value section; x, if a producer makes it
   Other headers may use: cg_producer_run_, cg_vector_pass_
   Blocks of 65536 values are encoded independently, by threads if there are any, 64 blocks (a wave) at a time; the
   results of a wave are put together in order, so that no bit depends on the number of threads. Within a block, chunks
   of 2048 values are fetched, measured, quantized, packed and summed while they stay in L1. */

/* What all blocks share. */
typedef struct cg_encoder_ {
    const cg_kernels_ *kernels;
    const cg_stage *stage; /* quantize */
    const cg_layout_ *lay;
    const cg_source_ *src;
    const float *given_scales;       /* scales that the caller gave, of any alignment, or NULL */
    uint64_t key;                    /* of rounding noise */
    uint32_t noise_shift;            /* cg_key_.shift of all blocks */
    uint8_t *scales, *table, *codes; /* sections of the packet; table: entries of pieces */
    size_t producer_step;            /* values that the producer makes at a time */
    int to_sum;                      /* checksums are wanted: the packet is not small */
} cg_encoder_;

/* What one block leaves for the end of the wave. */
typedef struct cg_block_result_ {
    cg_checksum_ checksum; /* of its codes, if packed */
    uint32_t absmax_bits;  /* the finite check */
    double lane_total;     /* the sum of encode's lanes */
    double energy;         /* the sum of squares that the producer returned */
    size_t bytes;          /* of its codes, with a value code */
} cg_block_result_;

static const cg_bucket_stats_ cg_bucket_stats_none_ = { 0, CG_FLT_MAX_, -CG_FLT_MAX_, { 0.0, 0.0 }, 0, 0 };

static void cg_bucket_stats_merge_(cg_bucket_stats_ *s, const cg_bucket_stats_ *t) {
    s->absmax_bits = cg_max32_(s->absmax_bits, t->absmax_bits);
    s->lo = t->lo < s->lo ? t->lo : s->lo;
    s->hi = t->hi > s->hi ? t->hi : s->hi;
    s->sums[0] += t->sums[0];
    s->sums[1] += t->sums[1];
    s->negatives += t->negatives;
    s->count += t->count;
}
/* One past the last value of bucket b, which is not empty. */
static size_t cg_bucket_end_(const cg_layout_ *lay, size_t b) {
    size_t k = (size_t)lay->k, size = (size_t)lay->bucket_size, start = b * size;
    return size > k - start ? k : start + size;
}
/* Statistics of values [first, last), summed by runs between multiples of 2048 and by blocks. v holds values [v_first,
   v_end), which begin and end at multiples of 2048 or the last value; others are fetched. */
static cg_bucket_stats_ cg_measure_(
    const cg_encoder_ *e, size_t first, size_t last, const float *v, size_t v_first, size_t v_end) {
    cg_bucket_stats_ stat = cg_bucket_stats_none_, block_stats = cg_bucket_stats_none_;
    float buf[CG_CHUNK_];
    for (size_t i = first, many; i < last; i += many) {
        many = cg_min_(last - i, CG_CHUNK_ - i % CG_CHUNK_);
        block_stats.count += many;
        e->lay->quantizer->measure(e->kernels, e->stage,
            i >= v_first && i < v_end ? cg_at_(v, i - v_first) : cg_source_fetch_(e->src, i, many, buf), many,
            &block_stats);
        if ((i + many) % CG_BLOCK_ == 0 || i + many == last) {
            cg_bucket_stats_merge_(&stat, &block_stats);
            block_stats = cg_bucket_stats_none_;
        }
    }
    return stat;
}
/* Stores the scales of a bucket in the packet. */
static void cg_scales_put_(const cg_encoder_ *e, size_t bucket, const float *scales) {
    const cg_byte_scale_ *byte_scale = e->lay->quantizer->byte_scale;
    unsigned per = e->lay->quantizer->scale_count;
    if (byte_scale) {
        e->scales[(size_t)e->lay->vector_bytes + bucket] = (uint8_t)byte_scale->put(
            e->stage, scales[0], e->lay->vector_bytes ? cg_as_float_(cg_get32_(e->scales)) : 1.0f);
        return;
    }
    for (unsigned i = 0; i < per; i++) cg_put32_(e->scales + 4 * (bucket * per + i), cg_as_bits_(scales[i]));
}
/* The scales of a bucket, scale_count of them, from the scale section at p. */
static void cg_scales_get_(const cg_layout_ *lay, const uint8_t *p, size_t bucket, float *scales) {
    const cg_byte_scale_ *byte_scale = lay->quantizer->byte_scale;
    unsigned per = lay->quantizer->scale_count;
    if (byte_scale) {
        scales[0] = byte_scale->get(
            p[(size_t)lay->vector_bytes + bucket], lay->vector_bytes ? cg_as_float_(cg_get32_(p)) : 1.0f);
        return;
    }
    for (unsigned i = 0; i < per; i++) scales[i] = cg_as_float_(cg_get32_(p + 4 * (bucket * per + i)));
}

/* The state of one block, whose chunks are encoded one after the other, each in buckets. A bucket is measured when the
   block comes to its first value, or to the first within the block; the block in which it starts stores its scales.
   Buckets longer than a block have been measured before, by cg_measure_long_buckets_. */
typedef struct cg_block_encoder_ {
    size_t block_begin;  /* first value of the block */
    size_t bucket_index; /* whose scales these are; SIZE_MAX: none yet */
    cg_key_ key;
    float scales[2];
    double lanes[16];              /* sums that encode adds to */
    uint32_t absmax_bits;          /* the finite check: the largest magnitude so far, or 0 where sums show it */
    cg_bucket_stats_ bucket_stats; /* of the current bucket */
} cg_block_encoder_;

static void cg_block_encoder_open_(cg_block_encoder_ *enc, const cg_encoder_ *e, size_t block) {
    enc->block_begin = block * CG_BLOCK_;
    enc->bucket_index = SIZE_MAX;
    enc->key = cg_block_key_(e->key, block);
    enc->key.shift = e->noise_shift;
    enc->absmax_bits = 0;
    if (e->lay->quantizer->needs == CG_NEEDS_SUM_AFTERWARDS_) memset(enc->lanes, 0, sizeof enc->lanes);
}
/* The sum of the lanes, of quantizers that need it after all blocks. */
static double cg_block_encoder_total_(cg_block_encoder_ *enc, const cg_encoder_ *e) {
    return e->lay->quantizer->needs == CG_NEEDS_SUM_AFTERWARDS_ ? cg_lanes_reduce_(enc->lanes) : 0.0;
}
/* Sets the scales of bucket b, of which v, values [first, end), has at least one; 0: a value of it is not finite. */
static int cg_block_encoder_bucket_(
    const cg_encoder_ *e, cg_block_encoder_ *enc, size_t b, const float *v, size_t first, size_t end) {
    const cg_layout_ *lay = e->lay;
    const cg_quantizer_ *quantizer = lay->quantizer;
    const size_t start = b * (size_t)lay->bucket_size, stop = cg_bucket_end_(lay, b);
    enc->bucket_index = b;
    if (lay->bucket_size > CG_BLOCK_ || e->given_scales) {
        cg_scales_get_(lay, e->scales, b, enc->scales);
        return 1;
    }
    if (start >= first && stop <= end) { /* all of it is here */
        enc->bucket_stats = cg_bucket_stats_none_;
        enc->bucket_stats.count = stop - start;
        quantizer->measure(e->kernels, e->stage, cg_at_(v, start - first), stop - start, &enc->bucket_stats);
    } else {
        enc->bucket_stats = cg_measure_(e, start, stop, v, first, end);
    }
    enc->absmax_bits = cg_max32_(enc->absmax_bits, enc->bucket_stats.absmax_bits);
    if (enc->bucket_stats.absmax_bits >= CG_INF_BITS_) return 0;
    quantizer->set_scales(e->stage, &enc->bucket_stats, enc->scales);
    if (start >= enc->block_begin && !quantizer->rescale) cg_scales_put_(e, b, enc->scales);
    if (lay->vector_bytes) cg_scales_get_(lay, e->scales, b, enc->scales); /* as rounded; such buckets lie in blocks */
    return 1;
}
/* out = v * full_scale / scale, 0 for a scale of 0. With a tiny scale both are multiplied by 2^100 first. */
static void cg_bucket_normalize_(
    const cg_kernels_ *kernels, float full_scale, float scale, const float *v, size_t n, float *out) {
    if (!cg_is_tiny_(scale) || scale == 0.0f) {
        for (size_t i = 0; i < n; i += 16) CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_));
        CG_KERNEL_(kernels, axpby(v, n, cg_ratio_or_zero_(full_scale, scale), 0.0f, out, 0));
        return;
    }
    scale = cg_times_(scale, CG_POW2_100_);
    for (size_t i = 0; i < n; i++)
        cg_store_(out, i, cg_times_(cg_times_(cg_load_(v, i), CG_POW2_100_), cg_ratio_or_zero_(full_scale, scale)));
}
/* Values [first, first + many) of one chunk to out, as the quantizer's output says: packed bits or a byte each; 0: one
   was not finite. buf has CG_CHUNK_ floats. */
static int cg_encode_chunk_(
    const cg_encoder_ *e, cg_block_encoder_ *enc, size_t first, size_t many, float *buf, uint8_t *out) {
    const cg_layout_ *lay = e->lay;
    const cg_quantizer_ *quantizer = lay->quantizer;
    const size_t bucket_size = (size_t)lay->bucket_size, end = first + many;
    const float *v = cg_source_fetch_(e->src, first, many, buf), unit_scale = 1.0f;
    const int short_buckets = quantizer->full_scale != 0.0f &&
        bucket_size < 256; /* calls for each would cost more than a pass */
    if (quantizer->needs != CG_NEEDS_BUCKET_STATS_) {
        enc->absmax_bits = cg_max32_(enc->absmax_bits,
            quantizer->encode(
                e->kernels, e->stage, NULL, enc->key, (uint32_t)(first - enc->block_begin), v, many, out, enc->lanes));
        return enc->absmax_bits < CG_INF_BITS_;
    }
    if (e->given_scales) { /* these values have not been measured */
        enc->absmax_bits = cg_max32_(enc->absmax_bits, CG_KERNEL_(e->kernels, absmax_bits(v, many)));
        if (enc->absmax_bits >= CG_INF_BITS_) return 0;
    }
    for (size_t i = first, b = cg_quotient_(first, bucket_size), stop; i < end; i = stop, b++) {
        stop = cg_min_(end, cg_bucket_end_(lay, b));
        if (b != enc->bucket_index && !cg_block_encoder_bucket_(e, enc, b, v, first, end)) return 0;
        if (quantizer->full_scale != 0.0f) {
            float factor = cg_ratio_or_zero_(quantizer->full_scale, enc->scales[0]);
            const float *w = cg_at_(v, i - first);
            if (short_buckets || cg_is_tiny_(enc->scales[0])) {
                cg_bucket_normalize_(e->kernels, quantizer->full_scale, enc->scales[0], w, stop - i, buf + (i - first));
                w = buf + (i - first);
                factor = 1.0f;
            }
            if (!short_buckets)
                quantizer->encode(e->kernels, e->stage, &factor, enc->key, (uint32_t)(i - enc->block_begin), w,
                    stop - i, out + (i - first), NULL);
            continue;
        }
        if (quantizer->rescale) memset(enc->lanes, 0, sizeof enc->lanes);
        quantizer->encode(e->kernels, e->stage, enc->scales, enc->key, (uint32_t)(i - enc->block_begin),
            cg_at_(v, i - first), stop - i,
            out + (quantizer->output == CG_OUTPUT_SYMBOLS_ ? i - first : (i - first) * lay->bits_x32 / 256),
            enc->lanes);
        if (quantizer->rescale) { /* such a bucket never crosses a chunk */
            quantizer->rescale(&enc->bucket_stats, cg_lanes_reduce_(enc->lanes), enc->scales);
            cg_scales_put_(e, b, enc->scales);
        }
    }
    if (short_buckets)
        quantizer->encode(
            e->kernels, e->stage, &unit_scale, enc->key, (uint32_t)(first - enc->block_begin), buf, many, out, NULL);
    return 1;
}
/* Encodes a block without a value code: every chunk has its place in the codes. Stops at a value that is not finite,
   which result->absmax_bits shows. A producer makes the values on the way. */
CG_NOINLINE_ void cg_encode_block_(const cg_encoder_ *e, size_t block, cg_block_result_ *result) {
    const cg_layout_ *lay = e->lay;
    const size_t begin = block * CG_BLOCK_, end = cg_min_((size_t)lay->k, begin + CG_BLOCK_);
    const int pack = lay->quantizer->output == CG_OUTPUT_SYMBOLS_ && lay->bits_x32 < 8 * 32;
    float buf[CG_CHUNK_];
    uint8_t symbols[CG_CHUNK_];
    cg_block_encoder_ enc;
    cg_fenv_ env = cg_fenv_enter_thread_();
    const cg_producer_ *producer = cg_source_is_lazy_(e->src) ? NULL : e->src->producer;
    cg_block_encoder_open_(&enc, e, block);
    result->checksum.a = result->checksum.b = result->checksum.words = 0;
    result->energy = 0.0;
    for (size_t first = begin, many; first < end; first += many) {
        uint8_t *out = e->codes + cg_codes_offset_(lay, first);
        size_t bytes;
        many = cg_min_(CG_CHUNK_, end - first);
        if (producer && first % e->producer_step == 0)
            result->energy += cg_producer_make_(producer, first, e->producer_step, (float *)(uintptr_t)e->src->x);
        if (!cg_encode_chunk_(e, &enc, first, many, buf, pack ? symbols : out)) break;
        if (pack) CG_KERNEL_(e->kernels, pack(symbols, many, lay->bits_x32 / 32, out));
        bytes = (size_t)(((uint64_t)many * lay->bits_x32 / 32 + 7) / 8);
        while (bytes % 4) out[bytes++] = 0; /* only at the end of the section */
        if (e->to_sum) CG_KERNEL_(e->kernels, checksum(&result->checksum, out, bytes / 4));
    }
    result->absmax_bits = enc.absmax_bits;
    result->lane_total = cg_block_encoder_total_(&enc, e);
    cg_fenv_leave_thread_(env);
}
/* Encodes a block with a value code to out, and its entries to the piece table. Pieces follow each other without gaps;
   none is larger than if it were packed, which is the room they need. */
CG_NOINLINE_ void cg_encode_block_coded_(const cg_encoder_ *e, size_t block, uint8_t *out, cg_block_result_ *result) {
    const cg_layout_ *lay = e->lay;
    const size_t begin = block * CG_BLOCK_, end = cg_min_((size_t)lay->k, begin + CG_BLOCK_);
    const unsigned width = cg_float_width_(e->stage);
    uint8_t *at = out;
    float buf[CG_CHUNK_];
    uint8_t symbols[CG_PIECE_SYMBOLS_];
    cg_block_encoder_ enc;
    int ok = 1;
    cg_fenv_ env = cg_fenv_enter_thread_();
    cg_block_encoder_open_(&enc, e, block);
    for (size_t piece = begin, many; piece < end && ok; piece += many) {
        const uint8_t *in = symbols;
        size_t cap;
        uint32_t entry;
        many = cg_min_(lay->piece_values, end - piece);
        if (width == 4 && !CG_BIG_ENDIAN_) { /* floats are coded as they are */
            in = (const uint8_t *)cg_source_fetch_(e->src, piece, many, buf);
            enc.absmax_bits = cg_max32_(
                enc.absmax_bits, CG_KERNEL_(e->kernels, absmax_bits((const float *)(const void *)in, many)));
            ok = enc.absmax_bits < CG_INF_BITS_;
        } else
            for (size_t first = piece, sub_n; first < piece + many && ok; first += sub_n) {
                sub_n = cg_min_(CG_CHUNK_, piece + many - first);
                ok = cg_encode_chunk_(e, &enc, first, sub_n, buf, symbols + (first - piece));
            }
        if (!ok) break;
        cap = 4 * cg_codes_words_(lay, many);
        entry = width ? cg_floats_put_(e->kernels, width, in, many, at, cap)
                      : cg_piece_put_(e->kernels, lay->value_code, &lay->alphabet, symbols, many, at, cap);
        cg_put32_(e->table + piece / lay->piece_values * 4, entry);
        at += (size_t)cg_word_bytes_(entry & 0x3fffffffu);
    }
    result->bytes = (size_t)(at - out);
    result->absmax_bits = enc.absmax_bits;
    result->lane_total = cg_block_encoder_total_(&enc, e);
    cg_fenv_leave_thread_(env);
}
/* Statistics of values [first, last), which lie in one block. */
CG_NOINLINE_ void cg_measure_block_(const cg_encoder_ *e, size_t first, size_t last, cg_bucket_stats_ *stats) {
    cg_fenv_ env = cg_fenv_enter_thread_();
    *stats = cg_measure_(e, first, last, NULL, 0, 0);
    cg_fenv_leave_thread_(env);
}
/* Blocks of the next wave, of so many that are left. */
static int cg_wave_size_(size_t items) { return (int)cg_min_(CG_WAVE_, items); }

/* Makes a block of x; returns the sum of its squares. */
static double cg_producer_make_block_(const cg_producer_ *producer, size_t block, float *x) {
    const size_t begin = block * CG_BLOCK_;
    double energy = 0.0;
    cg_fenv_ env = cg_fenv_enter_thread_();
    for (size_t i = 0; i < CG_BLOCK_; i += producer->step)
        energy += cg_producer_make_(producer, begin + i, producer->step, x);
    cg_fenv_leave_thread_(env);
    return energy;
}
/* Makes all of x now, unless there is no producer or it is lazy; then the source has none any more. */
CG_NOINLINE_ void cg_producer_make_all_(cg_source_ *src) {
    cg_producer_ *producer = src->producer;
    const size_t n = producer && !producer->lazy ? producer->n : 0, blocks = n / CG_BLOCK_ + (n % CG_BLOCK_ != 0);
    double energy[CG_WAVE_];
    if (producer && !producer->lazy) producer->started = 1;
    for (size_t block = 0; block < blocks; block += CG_WAVE_) {
        int many = cg_wave_size_(blocks - block);
        CG_PARALLEL_
        for (int i = 0; i < many; i++)
            energy[i] = cg_producer_make_block_(producer, block + (size_t)i, (float *)(uintptr_t)src->x);
        for (int i = 0; i < many; i++) producer->energy += energy[i];
    }
    if (n) src->producer = NULL;
}

/* The sum of squares of values of one block. */
CG_NOINLINE_ double cg_source_block_energy_(const cg_source_ *src, size_t first, size_t last) {
    double energy = 0.0;
    float buf[CG_CHUNK_];
    cg_fenv_ env = cg_fenv_enter_thread_();
    for (size_t i = first, many; i < last; i += many) {
        many = cg_min_(CG_CHUNK_, last - i);
        energy += cg_lane_sum_of_(src->kernels, cg_source_fetch_(src, i, many, buf), many, CG_SUM_SQUARES_);
    }
    cg_fenv_leave_thread_(env);
    return energy;
}
/* A pass over the k values that the quantizer will see: they are cut to so many times their root mean square. */
CG_NOINLINE_ cg_status cg_source_clip_(cg_source_ *src, const cg_stage *clip, size_t k) {
    const size_t blocks = k / CG_BLOCK_ + (k % CG_BLOCK_ != 0);
    double energy[CG_WAVE_], total = 0.0;
    for (size_t block = 0; block < blocks; block += CG_WAVE_) {
        int many = cg_wave_size_(blocks - block);
        CG_PARALLEL_
        for (int i = 0; i < many; i++) {
            const size_t from = (block + (size_t)i) * CG_BLOCK_;
            energy[i] = cg_source_block_energy_(src, from, cg_min_(k, from + CG_BLOCK_));
        }
        for (int i = 0; i < many; i++) total += energy[i];
    }
    if (!cg_is_finite64_(total)) return CG_E_NONFINITE; /* squares of finite floats do not overflow */
    if (k) {
        double limit = (double)clip->value * cg_sqrt_(total / (double)k);
        CG_NO_FMA_(limit);
        src->clip_bits = cg_as_bits_(cg_saturate64_(limit));
    }
    return CG_OK;
}
/* Statistics of values [start, last); CG_E_NONFINITE: one is not finite. */
CG_NOINLINE_ cg_status cg_measure_waves_(const cg_encoder_ *e, size_t start, size_t last, cg_bucket_stats_ *stat) {
    cg_bucket_stats_ stats[CG_WAVE_];
    *stat = cg_bucket_stats_none_;
    for (size_t block = start / CG_BLOCK_; block * CG_BLOCK_ < last; block += CG_WAVE_) {
        int many = cg_wave_size_((last - 1) / CG_BLOCK_ - block + 1);
        CG_PARALLEL_
        for (int i = 0; i < many; i++) {
            size_t from = (block + (size_t)i) * CG_BLOCK_, to = cg_min_(CG_BLOCK_, last - from) + from;
            cg_measure_block_(e, from < start ? start : from, to, &stats[i]);
        }
        for (int i = 0; i < many; i++) cg_bucket_stats_merge_(stat, &stats[i]);
        if (stat->absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
    }
    return CG_OK;
}
/* A pass before all others: stores the float that all values share. */
static cg_status cg_measure_vector_(const cg_encoder_ *e) {
    cg_bucket_stats_ stat;
    const cg_status s = cg_measure_waves_(e, 0, (size_t)e->lay->k, &stat);
    cg_put32_(e->scales, cg_as_bits_(e->lay->quantizer->byte_scale->vector_scale(cg_as_float_(stat.absmax_bits))));
    return s;
}
/* A pass before all others: measures buckets longer than a block, and stores their scales. */
CG_NOINLINE_ cg_status cg_measure_long_buckets_(const cg_encoder_ *e) {
    const size_t k = (size_t)e->lay->k, bucket_size = (size_t)e->lay->bucket_size;
    for (size_t b = 0; b * bucket_size < k; b++) {
        cg_bucket_stats_ stat;
        float scales[2];
        if (cg_measure_waves_(e, b * bucket_size, cg_bucket_end_(e->lay, b), &stat) != CG_OK) return CG_E_NONFINITE;
        e->lay->quantizer->set_scales(e->stage, &stat, scales);
        cg_scales_put_(e, b, scales);
    }
    return CG_OK;
}
/* Stores the scales that the caller gave; CG_E_ARG: one that no encoder makes. */
static cg_status cg_scales_put_given_(const cg_encoder_ *e) {
    const unsigned per = e->lay->quantizer->scale_count;
    for (size_t b = 0; b < (size_t)e->lay->bucket_count; b++) {
        float scales[2] = { 0.0f, 0.0f };
        for (unsigned i = 0; i < per; i++) scales[i] = cg_load_(e->given_scales, b * per + i);
        if (!e->lay->quantizer->legal(scales)) return CG_E_ARG;
        cg_scales_put_(e, b, scales);
    }
    return CG_OK;
}
/* All blocks, in waves: *codes becomes the checksum of their codes, *total the sum of their lanes; returns where the
   codes end, or NULL if a value is not finite. */
CG_NOINLINE_ uint8_t *cg_encode_waves_(const cg_encoder_ *e, size_t blocks, cg_checksum_ *codes, double *total) {
    const cg_layout_ *lay = e->lay;
    cg_block_result_ results[CG_WAVE_];
    uint8_t *end = e->codes;
    for (size_t block = 0, wave; block < blocks; block += wave) {
        uint8_t *start = end;
        int many = cg_wave_size_(cg_is_coded_(lay) ? cg_min_(CG_CODED_WAVE_, blocks - block) : blocks - block);
        wave = (size_t)many;
        CG_PARALLEL_
        for (int i = 0; i < many; i++) {
            if (cg_is_coded_(lay))
                cg_encode_block_coded_(
                    e, block + (size_t)i, start + cg_codes_offset_(lay, (size_t)i * CG_BLOCK_), &results[i]);
            else cg_encode_block_(e, block + (size_t)i, &results[i]);
        }
        for (int i = 0; i < many; i++) {
            if (results[i].absmax_bits >= CG_INF_BITS_) return NULL;
            *total += results[i].lane_total;
            if (e->src->producer && !cg_is_coded_(lay)) e->src->producer->energy += results[i].energy;
            if (!cg_is_coded_(lay)) {
                *codes = cg_checksum_concat_(*codes, results[i].checksum);
                continue;
            }
            if (i) memmove(end, start + cg_codes_offset_(lay, (size_t)i * CG_BLOCK_), results[i].bytes);
            *codes = cg_checksum_concat_(*codes, cg_checksum_of_(e->kernels, end, results[i].bytes));
            end += results[i].bytes;
        }
    }
    return cg_is_coded_(lay) ? end : e->codes + (size_t)lay->codes_bytes;
}
/* One block by itself, without a value code: the same as a wave of it. */
static uint8_t *cg_encode_one_block_(const cg_encoder_ *e, cg_checksum_ *codes, double *total) {
    cg_block_result_ result;
    cg_encode_block_(e, 0, &result);
    if (result.absmax_bits >= CG_INF_BITS_) return NULL;
    *codes = result.checksum;
    *total = result.lane_total;
    if (e->src->producer) e->src->producer->energy += result.energy;
    return e->codes + (size_t)e->lay->codes_bytes;
}
/* The whole value section: scales, piece table and codes. *sum becomes its checksum if to_sum is set, *bytes its
   length. Errors: CG_E_NONFINITE, and CG_E_ARG for given scales; the section is undefined then. */
static cg_status cg_encode_values_(const cg_encoder_ *e, cg_checksum_ *sum, size_t *bytes) {
    const cg_layout_ *lay = e->lay;
    const size_t k = (size_t)lay->k, blocks = k / CG_BLOCK_ + (k % CG_BLOCK_ != 0);
    const uint8_t *end;
    cg_checksum_ codes = { 0, 0, 0 };
    double total = 0.0;
    if (e->src->producer) e->src->producer->started = 1;
    /* zeros that fill the scales up to a word */
    if (lay->scale_bytes) memset(e->codes - (size_t)lay->piece_table_bytes - 4, 0, 4);
    if (e->given_scales) {
        cg_status s = cg_scales_put_given_(e);
        if (s != CG_OK) return s;
    } else if (lay->quantizer->needs == CG_NEEDS_BUCKET_STATS_ && lay->bucket_size > CG_BLOCK_ &&
        cg_measure_long_buckets_(e) != CG_OK) {
        return CG_E_NONFINITE;
    }
    if (lay->vector_bytes && cg_measure_vector_(e) != CG_OK) return CG_E_NONFINITE;
    end = blocks == 1 && !cg_is_coded_(lay) ? cg_encode_one_block_(e, &codes, &total)
                                            : cg_encode_waves_(e, blocks, &codes, &total);
    if (!end) return CG_E_NONFINITE;
    if (lay->quantizer->needs == CG_NEEDS_SUM_AFTERWARDS_ && k && !e->given_scales) {
        float mean = (float)(total / (double)k);
        cg_scales_put_(e, 0, &mean);
    }
    *bytes = (size_t)(end - e->scales);
    *sum = codes;
    if (e->to_sum && e->codes != e->scales)
        *sum = cg_checksum_concat_(cg_checksum_of_(e->kernels, e->scales, (size_t)(e->codes - e->scales)), codes);
    return CG_OK;
}
/* A pass over x for other headers: calls make(user, first, many, x + first) for all of [0, n), `step` values at a time
   (a chunk or a block), blocks spread over threads; returns the sum of what make returns, in the order of blocks.
   make may read x, write it, or both; calls for different blocks must not depend on each other. */
CG_OFFERED_ double cg_vector_pass_(
    double (*make)(const void *, size_t, size_t, float *), const void *user, float *x, size_t n, size_t step) {
    cg_producer_ producer = CG_ZERO;
    cg_source_ source = CG_ZERO;
    producer.make = make;
    producer.user = user;
    producer.n = n;
    producer.step = step;
    source.producer = &producer;
    source.x = x;
    cg_producer_make_all_(&source);
    return producer.energy;
}
/* Makes all values of a producer that is not lazy, where they belong: x. */
CG_OFFERED_ void cg_producer_run_(cg_producer_ *producer, float *x) {
    cg_source_ src = CG_ZERO;
    src.producer = producer;
    src.x = x;
    cg_producer_make_all_(&src);
}
