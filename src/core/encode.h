/* ---- >>compress ---- */

typedef struct cg_encoder_ {
    const cg_kernels_ *kernels;
    const cg_stage *stage;
    const cg_layout_ *lay;
    const cg_source_ *src;
    const float *given_scales; /* scales from outside, or NULL */
    uint64_t key;
    uint8_t *scales, *table, *codes;
    size_t producer_step; /* values to be filled at a time */
} cg_encoder_;

/* what a block tells */
typedef struct cg_block_result_ {
    cg_checksum_ checksum;
    cg_bucket_stats_ stats;
    double lane_total, energy;
    size_t bytes;
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
static size_t cg_bucket_end_(const cg_layout_ *lay, size_t b) {
    size_t k = (size_t)lay->k, bucket = (size_t)lay->bucket_size, start = b * bucket;
    return bucket > k - start ? k : start + bucket;
}
/* Statistic of values [first, last), by runs between multiples of 2048 and blocks. v holds [have, have_end) of
   them already. */
static cg_bucket_stats_ cg_measure_(
    const cg_encoder_ *e, size_t first, size_t last, const float *v, size_t have, size_t have_end) {
    cg_bucket_stats_ stat = cg_bucket_stats_none_, part = cg_bucket_stats_none_;
    float buf[CG_CHUNK_];
    for (size_t i = first, many; i < last; i += many) {
        many = cg_min_(last - i, CG_CHUNK_ - i % CG_CHUNK_);
        part.count += many;
        e->lay->quantizer->measure(e->kernels, e->stage,
            i >= have && i < have_end ? cg_at_(v, i - have) : cg_source_fetch_(e->src, i, many, buf), many, &part);
        if ((i + many) % CG_BLOCK_ == 0 || i + many == last) {
            cg_bucket_stats_merge_(&stat, &part);
            part = cg_bucket_stats_none_;
        }
    }
    return stat;
}
static void cg_scales_put_(const cg_encoder_ *e, size_t bucket, const float *scales) {
    unsigned per = e->lay->quantizer->scale_count;
    if (e->lay->quantizer->scale_width == 1) { /* a power of two; see cg_e8m0_decode_ */
        e->scales[bucket] = (uint8_t)(cg_as_bits_(scales[0]) >> 23);
        return;
    }
    for (unsigned i = 0; i < per; i++) cg_put32_(e->scales + 4 * (bucket * per + i), cg_as_bits_(scales[i]));
}
static void cg_scales_get_(const cg_layout_ *lay, const uint8_t *p, size_t bucket, float *scales) {
    unsigned per = lay->quantizer->scale_count;
    if (lay->quantizer->scale_width == 1) {
        scales[0] = cg_e8m0_decode_(p[bucket]);
        return;
    }
    for (unsigned i = 0; i < per; i++) scales[i] = cg_as_float_(cg_get32_(p + 4 * (bucket * per + i)));
}

/* One chunk after the other of a block, each in buckets. A bucket's statistic is taken when its first value comes
   up; it belongs to the block it starts in. Buckets longer than a block have been measured before
   (cg_measure_long_buckets_). */
typedef struct cg_block_encoder_ {
    size_t block_begin, bucket_index; /* the block; the bucket whose scales these are */
    cg_key_ key;
    float scales[2];
    double lanes[16];
    uint32_t absmax_bits; /* the finite check */
    cg_bucket_stats_ bucket_stats;
} cg_block_encoder_;

static void cg_block_encoder_open_(cg_block_encoder_ *r, const cg_encoder_ *e, size_t block) {
    memset(r, 0, sizeof *r);
    r->block_begin = block * CG_BLOCK_;
    r->bucket_index = SIZE_MAX;
    r->key = cg_block_key_(e->key, block);
}
/* The scales of the bucket at value i, which begins there or before; 0: a value of it is not finite. */
static int cg_block_encoder_bucket_(
    const cg_encoder_ *e, cg_block_encoder_ *r, size_t b, const float *v, size_t first, size_t end) {
    const cg_layout_ *lay = e->lay;
    const cg_quantizer_ *row = lay->quantizer;
    const size_t start = b * (size_t)lay->bucket_size, stop = cg_bucket_end_(lay, b);
    r->bucket_index = b;
    if (lay->bucket_size > CG_BLOCK_ || e->given_scales) {
        cg_scales_get_(lay, e->scales, b, r->scales);
        return 1;
    }
    if (start >= first && stop <= end) { /* all of it is here */
        r->bucket_stats = cg_bucket_stats_none_;
        r->bucket_stats.count = stop - start;
        row->measure(e->kernels, e->stage, cg_at_(v, start - first), stop - start, &r->bucket_stats);
    } else {
        r->bucket_stats = cg_measure_(e, start, stop, v, first, end);
    }
    r->absmax_bits = cg_max32_(r->absmax_bits, r->bucket_stats.absmax_bits);
    if (r->bucket_stats.absmax_bits >= CG_INF_BITS_) return 0;
    row->set_scales(e->stage, &r->bucket_stats, r->scales);
    if (start >= r->block_begin && !row->rescale) cg_scales_put_(e, b, r->scales);
    return 1;
}
/* v by its scale. Tiny scales have no inverse: both are brought up first. */
static void cg_bucket_normalize_(
    const cg_kernels_ *kernels, float unit, float scale, const float *v, size_t n, float *out) {
    if (!cg_is_tiny_(scale) || scale == 0.0f) {
        for (size_t i = 0; i < n; i += 16) CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_));
        kernels->axpby(v, n, cg_ratio_or_zero_(unit, scale), 0.0f, out, 0);
        return;
    }
    scale = cg_times_(scale, CG_POW2_100_); /* 2^100 */
    for (size_t i = 0; i < n; i++)
        cg_store_(out, i, cg_times_(cg_times_(cg_load_(v, i), CG_POW2_100_), cg_ratio_or_zero_(unit, scale)));
}
/* Values [first, first + many) to wire bits or bytes; 0: one was not finite. */
static int cg_encode_chunk_(
    const cg_encoder_ *e, cg_block_encoder_ *r, size_t first, size_t many, float *buf, uint8_t *to) {
    const cg_layout_ *lay = e->lay;
    const cg_quantizer_ *row = lay->quantizer;
    const size_t bucket = (size_t)lay->bucket_size, end = first + many;
    const float *v = cg_source_fetch_(e->src, first, many, buf), one = 1.0f;
    const int shorts = row->full_scale && bucket < 256; /* many calls would cost more than a pass over L1 */
    if (row->needs != CG_NEEDS_BUCKET_STATS_) {
        r->absmax_bits = cg_max32_(r->absmax_bits,
            row->encode(e->kernels, e->stage, NULL, r->key, (uint32_t)(first - r->block_begin), v, many, to, r->lanes));
        return r->absmax_bits < CG_INF_BITS_;
    }
    if (e->given_scales) { /* nobody has looked at these values */
        r->absmax_bits = cg_max32_(r->absmax_bits, e->kernels->absmax_bits(v, many));
        if (r->absmax_bits >= CG_INF_BITS_) return 0;
    }
    for (size_t i = first, b = first / bucket, stop; i < end; i = stop, b++) {
        stop = cg_min_(end, cg_bucket_end_(lay, b));
        if (b != r->bucket_index && !cg_block_encoder_bucket_(e, r, b, v, first, end)) return 0;
        if (row->full_scale) {
            float by = cg_ratio_or_zero_(row->full_scale(e->stage), r->scales[0]);
            const float *w = cg_at_(v, i - first);
            if (shorts || cg_is_tiny_(r->scales[0])) {
                cg_bucket_normalize_(
                    e->kernels, row->full_scale(e->stage), r->scales[0], w, stop - i, buf + (i - first));
                w = buf + (i - first);
                by = 1.0f;
            }
            if (!shorts)
                row->encode(e->kernels, e->stage, &by, r->key, (uint32_t)(i - r->block_begin), w, stop - i,
                    to + (i - first), NULL);
            continue;
        }
        if (row->rescale) memset(r->lanes, 0, sizeof r->lanes);
        row->encode(e->kernels, e->stage, r->scales, r->key, (uint32_t)(i - r->block_begin), cg_at_(v, i - first),
            stop - i, to + (row->output == CG_OUTPUT_SYMBOLS_ ? i - first : (i - first) * lay->bits_x32 / 256),
            r->lanes);
        if (row->rescale) { /* such a bucket never crosses a chunk */
            row->rescale(&r->bucket_stats, cg_lanes_reduce_(r->lanes), r->scales);
            cg_scales_put_(e, b, r->scales);
        }
    }
    if (shorts)
        row->encode(e->kernels, e->stage, &one, r->key, (uint32_t)(first - r->block_begin), buf, many, to, NULL);
    return 1;
}
/* Fixed rate: every chunk has its place. */
CG_NOINLINE_ void cg_encode_block_(const cg_encoder_ *e, size_t block, cg_block_result_ *part) {
    const cg_layout_ *lay = e->lay;
    const size_t begin = block * CG_BLOCK_, end = cg_min_((size_t)lay->k, begin + CG_BLOCK_);
    const int pack = lay->quantizer->output == CG_OUTPUT_SYMBOLS_ && lay->bits_x32 < 8 * 32;
    float buf[CG_CHUNK_];
    uint8_t symbols[CG_CHUNK_];
    cg_block_encoder_ run;
    cg_fenv_ env = cg_fenv_enter_(); /* threads have their own */
    const cg_producer_ *fill = cg_source_is_lazy_(e->src) ? NULL : e->src->producer;
    cg_block_encoder_open_(&run, e, block);
    part->checksum.a = part->checksum.b = part->checksum.words = 0;
    part->energy = 0.0;
    for (size_t first = begin, many; first < end; first += many) {
        uint8_t *out = e->codes + cg_codes_offset_(lay, first);
        size_t bytes;
        many = cg_min_(CG_CHUNK_, end - first);
        if (fill && first % e->producer_step == 0)
            part->energy += cg_producer_make_(fill, first, e->producer_step, (float *)(uintptr_t)e->src->x);
        if (!cg_encode_chunk_(e, &run, first, many, buf, pack ? symbols : out)) break;
        if (pack) e->kernels->pack(symbols, many, lay->bits_x32 / 32, out);
        bytes = (size_t)(((uint64_t)many * lay->bits_x32 / 32 + 7) / 8);
        while (bytes % 4) out[bytes++] = 0; /* the end of the section */
        e->kernels->checksum(&part->checksum, out, bytes / 4);
    }
    part->stats.absmax_bits = run.absmax_bits;
    part->lane_total = cg_lanes_reduce_(run.lanes);
    cg_fenv_leave_(env);
}
/* With a code pieces have any size, but none is larger than if it were packed. */
CG_NOINLINE_ void cg_encode_block_coded_(const cg_encoder_ *e, size_t block, uint8_t *out, cg_block_result_ *part) {
    const cg_layout_ *lay = e->lay;
    const size_t begin = block * CG_BLOCK_, end = cg_min_((size_t)lay->k, begin + CG_BLOCK_);
    const unsigned width = cg_float_width_(e->stage);
    uint8_t *at = out;
    float buf[CG_CHUNK_];
    uint8_t symbols[CG_PIECE_SYMBOLS_];
    cg_block_encoder_ run;
    int ok = 1;
    cg_fenv_ env = cg_fenv_enter_();
    cg_block_encoder_open_(&run, e, block);
    for (size_t piece = begin, many; piece < end && ok; piece += many) {
        const uint8_t *in = symbols;
        size_t cap;
        uint32_t entry;
        many = cg_min_(lay->piece_values, end - piece);
        if (width == 4 && !CG_BIG_ENDIAN_) { /* floats as they lie */
            in = (const uint8_t *)cg_source_fetch_(e->src, piece, many, buf);
            run.absmax_bits = cg_max32_(
                run.absmax_bits, e->kernels->absmax_bits((const float *)(const void *)in, many));
            ok = run.absmax_bits < CG_INF_BITS_;
        } else
            for (size_t first = piece, some; first < piece + many && ok; first += some) {
                some = cg_min_(CG_CHUNK_, piece + many - first);
                ok = cg_encode_chunk_(e, &run, first, some, buf, symbols + (first - piece));
            }
        if (!ok) break;
        cap = 4 * cg_codes_words_(lay, many);
        entry = width ? cg_floats_put_(e->kernels, width, in, many, at, cap)
                      : cg_piece_put_(e->kernels, lay->value_code, &lay->alphabet, symbols, many, at, cap);
        cg_put32_(e->table + piece / lay->piece_values * 4, entry);
        at += (size_t)cg_word_bytes_(entry & 0x3fffffffu);
    }
    part->bytes = (size_t)(at - out);
    part->stats.absmax_bits = run.absmax_bits;
    part->lane_total = cg_lanes_reduce_(run.lanes);
    cg_fenv_leave_(env);
}
CG_NOINLINE_ void cg_measure_block_(const cg_encoder_ *e, size_t first, size_t last, cg_block_result_ *part) {
    cg_fenv_ env = cg_fenv_enter_();
    part->stats = cg_measure_(e, first, last, NULL, 0, 0);
    cg_fenv_leave_(env);
}
static int cg_wave_size_(size_t items) { return (int)cg_min_(CG_WAVE_, items); }

static double cg_producer_make_block_(const cg_producer_ *fill, size_t block, float *x) {
    const size_t begin = block * CG_BLOCK_;
    double energy = 0.0;
    cg_fenv_ env = cg_fenv_enter_();
    for (size_t i = 0; i < CG_BLOCK_; i += fill->step) energy += cg_producer_make_(fill, begin + i, fill->step, x);
    cg_fenv_leave_(env);
    return energy;
}
/* All of them now. */
CG_NOINLINE_ void cg_producer_make_all_(cg_source_ *src) {
    cg_producer_ *fill = src->producer;
    const size_t n = fill && !fill->lazy ? fill->n : 0, blocks = n / CG_BLOCK_ + (n % CG_BLOCK_ != 0);
    double energy[CG_WAVE_];
    if (fill && !fill->lazy) fill->started = 1;
    for (size_t block = 0; block < blocks; block += CG_WAVE_) {
        int many = cg_wave_size_(blocks - block);
        CG_PARALLEL_
        for (int i = 0; i < many; i++)
            energy[i] = cg_producer_make_block_(fill, block + (size_t)i, (float *)(uintptr_t)src->x);
        for (int i = 0; i < many; i++) fill->energy += energy[i];
    }
    if (n) src->producer = NULL;
}

/* Pass 0, for buckets longer than a block. */
CG_NOINLINE_ cg_status cg_measure_long_buckets_(const cg_encoder_ *e) {
    const size_t k = (size_t)e->lay->k, bucket = (size_t)e->lay->bucket_size;
    cg_block_result_ part[CG_WAVE_];
    for (size_t b = 0; b * bucket < k; b++) {
        const size_t last = cg_bucket_end_(e->lay, b), start = b * bucket;
        cg_bucket_stats_ stat = cg_bucket_stats_none_;
        float scales[2];
        for (size_t block = start / CG_BLOCK_; block * CG_BLOCK_ < last; block += CG_WAVE_) {
            int many = cg_wave_size_((last - 1) / CG_BLOCK_ - block + 1);
            CG_PARALLEL_
            for (int i = 0; i < many; i++) {
                size_t from = (block + (size_t)i) * CG_BLOCK_, to = cg_min_(CG_BLOCK_, last - from) + from;
                cg_measure_block_(e, from < start ? start : from, to, &part[i]);
            }
            for (int i = 0; i < many; i++) cg_bucket_stats_merge_(&stat, &part[i].stats);
            if (stat.absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
        }
        e->lay->quantizer->set_scales(e->stage, &stat, scales);
        cg_scales_put_(e, b, scales);
    }
    return CG_OK;
}
/* Scales that somebody has agreed on. */
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
/* Scales and codes; sum absorbs both. */
static cg_status cg_encode_values_(const cg_encoder_ *e, cg_checksum_ *sum, size_t *bytes) {
    const cg_layout_ *lay = e->lay;
    const size_t k = (size_t)lay->k, blocks = k / CG_BLOCK_ + (k % CG_BLOCK_ != 0);
    uint8_t *end = e->codes;
    cg_block_result_ part[CG_WAVE_];
    cg_checksum_ codes = { 0, 0, 0 };
    double total = 0.0;
    if (e->src->producer) e->src->producer->started = 1;
    /* what fills the scales to a word */
    if (lay->scale_bytes) memset(e->codes - (size_t)lay->piece_table_bytes - 4, 0, 4);
    if (e->given_scales) {
        cg_status s = cg_scales_put_given_(e);
        if (s != CG_OK) return s;
    } else if (lay->quantizer->needs == CG_NEEDS_BUCKET_STATS_ && lay->bucket_size > CG_BLOCK_ &&
        cg_measure_long_buckets_(e) != CG_OK) {
        return CG_E_NONFINITE;
    }
    for (size_t block = 0, wave; block < blocks; block += wave) {
        uint8_t *start = end;
        int many = cg_wave_size_(lay->value_code ? cg_min_(CG_CODED_WAVE_, blocks - block) : blocks - block);
        wave = (size_t)many;
        CG_PARALLEL_
        for (int i = 0; i < many; i++) {
            if (lay->value_code)
                cg_encode_block_coded_(
                    e, block + (size_t)i, start + cg_codes_offset_(lay, (size_t)i * CG_BLOCK_), &part[i]);
            else cg_encode_block_(e, block + (size_t)i, &part[i]);
        }
        for (int i = 0; i < many; i++) {
            if (part[i].stats.absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
            total += part[i].lane_total;
            if (e->src->producer && !lay->value_code) e->src->producer->energy += part[i].energy;
            if (!lay->value_code) {
                codes = cg_checksum_concat_(codes, part[i].checksum);
                continue;
            }
            if (i) memmove(end, start + cg_codes_offset_(lay, (size_t)i * CG_BLOCK_), part[i].bytes);
            codes = cg_checksum_concat_(codes, cg_checksum_of_(e->kernels, end, part[i].bytes));
            end += part[i].bytes;
        }
    }
    if (lay->quantizer->needs == CG_NEEDS_SUM_AFTERWARDS_ && k && !e->given_scales) {
        float mean = (float)(total / (double)k);
        cg_scales_put_(e, 0, &mean);
    }
    *bytes = (size_t)(lay->scale_bytes + lay->piece_table_bytes) +
        (lay->value_code ? (size_t)(end - e->codes) : (size_t)lay->codes_bytes);
    *sum = cg_checksum_concat_(
        *sum, cg_checksum_of_(e->kernels, e->scales, (size_t)(lay->scale_bytes + lay->piece_table_bytes)));
    *sum = cg_checksum_concat_(*sum, codes);
    return CG_OK;
}
/* Makes all values of a producer that is not lazy, where they belong: x. */
CG_OFFERED_ void cg_producer_run_(cg_producer_ *producer, float *x) {
    cg_source_ src = CG_ZERO;
    src.producer = producer;
    src.x = x;
    cg_producer_make_all_(&src);
}
