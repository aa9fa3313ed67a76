/* ---- >>source: the values that a stage sees, as a dense vector, piece by piece ---- */

/* Values that are still to be made, so that they are in the cache when they are read. run makes [first, first +
   many), which lie in one unit, in out, and returns the sum of their squares. */
typedef struct cg_producer_ {
    double (*make)(const void *user, size_t first, size_t many, float *out);
    const void *user;
    /* so many, asked for a unit at a time (a chunk or a block), each once: out is where they belong */
    size_t n, step;
    /* they belong nowhere: any stretch of a chunk is asked for, at any time, into a buffer */
    int lazy;
    uint32_t threshold_hint; /* top-k: a magnitude that more than k are expected to reach, or 0 */
    int started;             /* comes back, unless lazy: some or all have been made, */
    double energy;           /* and the sum of their squares */
    size_t reached_hint;     /* comes back: how many reached the hint */
} cg_producer_;

typedef struct cg_source_ {
    cg_producer_ *producer; /* NULL: they are there */
    const cg_kernels_ *kernels;
    const cg_info *info;
    const float *x;              /* the values themselves; or, drawn, where to draw them from */
    uint64_t count;              /* before a transform */
    int to_sample, to_transform; /* still to be drawn, still to be transformed */
} cg_source_;

static int cg_source_is_lazy_(const cg_source_ *src) { return src->producer && src->producer->lazy; }
/* Values [first, first + many) of x, or where that is NULL of what `lazy` makes, in buf. */
static const float *cg_values_view_(const float *x, const cg_producer_ *lazy, size_t first, size_t many, float *buf) {
    if (x) return cg_at_(x, first);
    lazy->make(lazy->user, first, many, buf);
    return buf;
}
static double cg_producer_make_(const cg_producer_ *fill, size_t first, size_t unit, float *x) {
    return first < fill->n ? fill->make(fill->user, first, cg_min_(unit, fill->n - first), cg_at_mut_(x, first)) : 0.0;
}

/* At most CG_CHUNK_ values from `first` on: in place, or gathered into buf. */
static const float *cg_source_gather_(const cg_source_ *src, size_t first, size_t count, float *buf) {
    size_t at[64];
    cg_strata_ strata;
    const int scaled = !(src->info->op.sample.flags & CG_FLAG_UNSCALED);
    if (cg_source_is_lazy_(src) && !src->to_sample) src->producer->make(src->producer->user, first, count, buf);
    if (!src->to_sample) return cg_source_is_lazy_(src) ? buf : cg_at_(src->x, first);
    cg_strata_open_(&strata, src->info, first);
    for (size_t i = 0; i < count; i += 64) { /* ask for 64 cache lines before waiting for the first */
        size_t many = cg_min_(64, count - i);
        for (size_t j = 0; j < many; j++, cg_strata_next_(&strata)) {
            at[j] = (size_t)cg_strata_sample_(&strata);
            if (!cg_source_is_lazy_(src)) CG_PREFETCH_(cg_at_(src->x, at[j]));
            buf[i + j] = scaled ? (float)strata.length : 1.0f;
        }
        for (size_t j = 0; j < many; j++) {
            float f;
            if (cg_source_is_lazy_(src)) src->producer->make(src->producer->user, at[j], 1, &f);
            else f = cg_load_(src->x, at[j]);
            buf[i + j] = cg_is_finite_(f) ? cg_saturate_(cg_times_(f, buf[i + j])) : f;
        }
    }
    return buf;
}
/* The same behind the transform; the values must lie in one chunk. buf has room for CG_CHUNK_. */
static const float *cg_source_fetch_(const cg_source_ *src, size_t first, size_t count, float *buf) {
    const cg_stage *stage = &src->info->op.transform;
    const uint64_t key = cg_shared_key_(&src->info->tag);
    const int made = src->to_sample || cg_source_is_lazy_(src);
    size_t unit, base, end, have;
    if (!src->to_transform) return cg_source_gather_(src, first, count, buf);
    unit = stage->id == CG_TRANSFORM_ROTATE ? CG_ROTATE_BLOCK_ : CG_DCT_BLOCK_;
    base = first / unit * unit;
    end = (first + count + unit - 1) / unit * unit;
    have = cg_min_(end, (size_t)src->count) - base;
    if (made) cg_source_gather_(src, base, have, buf);
    for (size_t b = base; b < end; b += unit) {
        float *v = buf + (b - base);
        const float *from = made ? v : cg_at_(src->x, b);
        if (b - base + unit > have) { /* the last block is filled with zeros */
            size_t some = have - (b - base);
            if (!made) memcpy(v, from, 4 * some);
            memset(v + some, 0, 4 * (unit - some));
            from = v;
        }
        cg_transform_block_(src->kernels, stage, key, b / unit, from, v, 0);
    }
    return buf + (first - base);
}
