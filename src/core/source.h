/* source: the values that a selection or quantizer sees, as a dense vector, chunk by chunk

   Offers   cg_producer_, cg_source_, cg_source_fetch_, cg_values_view_, cg_producer_make_
   Needs    base, random, sample, transform
   Touches  the caller's x, if a producer makes its values; buffers of the callers
   Other headers may use: cg_producer_
   A source hides whether values lie in memory, are still to be sampled or transformed, or are made by a callback only
   when they are needed, while they are in the cache. */

/* A callback that makes values, so that they are in the cache when they are read. */
typedef struct cg_producer_ {
    /* Makes values [first, first + many) in out and returns the sum of their squares; called from several threads. */
    double (*make)(const void *user, size_t first, size_t many, float *out);
    const void *user;
    size_t n; /* values in all */
    /* CG_CHUNK_ or CG_BLOCK_: unless lazy, make is called once for every step of so many, with out their place in x */
    size_t step;
    int lazy; /* 1: values have no place; any range within a chunk is asked for, at any time, into any buffer */
    uint32_t threshold_hint; /* top-k: a magnitude, as bits, that more than k values are expected to reach, or 0 */
    int started;             /* result, unless lazy: 1 if some or all values have been made */
    double energy;           /* result, unless lazy: the sum of their squares */
    size_t reached_hint;     /* result: how many values reached the hint, or more than the list holds */
} cg_producer_;

typedef struct cg_source_ {
    cg_producer_ *producer; /* NULL: the values have been made */
    const cg_kernels_ *kernels;
    const cg_info *info;         /* n, drawn, op and tag are set */
    const float *x;              /* the values, or what the sample takes them from; any alignment */
    uint64_t count;              /* values before the transform */
    int to_sample, to_transform; /* what is still to be done with x */
    uint32_t clip_bits;          /* the largest magnitude that is left, as bits; CG_INF_BITS_: nothing is cut */
} cg_source_;

static int cg_source_samples_(const cg_source_ *src) { return cg_builds_samples_() && src->to_sample; }
static int cg_source_transforms_(const cg_source_ *src) { return cg_builds_transforms_() && src->to_transform; }
static int cg_source_is_lazy_(const cg_source_ *src) { return src->producer && src->producer->lazy; }
/* Values [first, first + many): where they lie in x, or with x NULL what the lazy producer makes of them in buf. */
static const float *cg_values_view_(const float *x, const cg_producer_ *lazy, size_t first, size_t many, float *buf) {
    if (x) return cg_at_(x, first);
    lazy->make(lazy->user, first, many, buf);
    return buf;
}
/* Makes the step of values from `first` on in x, where x[0] is value 0; returns the sum of their squares. */
static double cg_producer_make_(const cg_producer_ *producer, size_t first, size_t step, float *x) {
    return first < producer->n
        ? producer->make(producer->user, first, cg_min_(step, producer->n - first), cg_at_mut_(x, first))
        : 0.0;
}

/* Values [first, first + count) before the transform, at most CG_CHUNK_: where they lie, or in buf. A sampled value
   that is not finite stays so, and others are scaled without overflow. */
static const float *cg_source_gather_(const cg_source_ *src, size_t first, size_t count, float *buf) {
    size_t index[64];
    cg_strata_ strata;
    const int scaled = !(src->info->op.sample.flags & CG_FLAG_UNSCALED);
    if (cg_source_is_lazy_(src) && !cg_source_samples_(src))
        src->producer->make(src->producer->user, first, count, buf);
    if (!cg_source_samples_(src)) return cg_source_is_lazy_(src) ? buf : cg_at_(src->x, first);
    cg_strata_open_(&strata, src->info, first);
    for (size_t i = 0; i < count; i += 64) { /* ask for 64 cache lines before waiting for the first */
        size_t many = cg_min_(64, count - i);
        for (size_t j = 0; j < many; j++, cg_strata_next_(&strata)) {
            index[j] = (size_t)cg_strata_sample_(&strata);
            if (!cg_source_is_lazy_(src)) CG_PREFETCH_(cg_at_(src->x, index[j]));
            buf[i + j] = scaled ? cg_strata_factor_(&strata) : 1.0f;
        }
        for (size_t j = 0; j < many; j++) {
            float f;
            if (cg_source_is_lazy_(src)) src->producer->make(src->producer->user, index[j], 1, &f);
            else f = cg_load_(src->x, index[j]);
            buf[i + j] = cg_is_finite_(f) ? cg_saturate_(cg_times_(f, buf[i + j])) : f;
        }
    }
    return buf;
}
/* Values [first, first + count) after the transform, which must lie in one chunk: where they lie, or in buf, which has
   room for CG_CHUNK_. Whole blocks are transformed, so buf may hold more around them. */
static const float *cg_source_fetch_whole_(const cg_source_ *src, size_t first, size_t count, float *buf) {
    const int in_buf = cg_source_samples_(src) || cg_source_is_lazy_(src);
    size_t block_size, base, end, available;
    uint64_t key;
    if (!in_buf && !cg_source_transforms_(src)) return cg_at_(src->x, first);
    if (!cg_source_transforms_(src)) return cg_source_gather_(src, first, count, buf);
    key = cg_stage_key_(&src->info->op.transform, &src->info->tag);
    block_size = cg_transformer_of_(&src->info->op)->block;
    base = first / block_size * block_size;
    end = (first + count + block_size - 1) / block_size * block_size;
    available = cg_min_(end, (size_t)src->count) - base;
    if (in_buf) cg_source_gather_(src, base, available, buf);
    for (size_t b = base; b < end; b += block_size) {
        float *v = buf + (b - base);
        const float *from = in_buf ? v : cg_at_(src->x, b);
        if (b - base + block_size > available) { /* the last block is filled with zeros */
            size_t in_block = available - (b - base);
            if (!in_buf) memcpy(v, from, 4 * in_block);
            memset(v + in_block, 0, 4 * (block_size - in_block));
            from = v;
        }
        cg_transform_block_(src->kernels, &src->info->op, key, b / block_size, from, v, 0);
    }
    return buf + (first - base);
}
/* The same, cut to the largest magnitude that is left. */
static const float *cg_source_fetch_(const cg_source_ *src, size_t first, size_t count, float *buf) {
    const float *v = cg_source_fetch_whole_(src, first, count, buf);
    const int in_buf = cg_source_samples_(src) || cg_source_transforms_(src) || cg_source_is_lazy_(src);
    float *out = in_buf ? buf + (v - buf) : buf;
    if (!cg_builds_clips_() || src->clip_bits == CG_INF_BITS_) return v;
    CG_KERNEL_(src->kernels, cut(v, count, src->clip_bits, out));
    return out;
}
