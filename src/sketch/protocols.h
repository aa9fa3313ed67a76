/* ---- >>exchange ---- */

/* The tag says which sketch it is: other descriptions on other ranks are a mismatch in the first round. */
static cg_exchange_desc cg_sketch_step_desc_(const cg_sketch *s, const cg_exchange_desc *desc, uint64_t more) {
    cg_exchange_desc d = *desc;
    d.tag.seed = cg_mix64_(d.tag.seed ^ cg_mix64_(cg_sketch_fingerprint_(s) ^ more));
    d.model = NULL; /* cells are no gradient */
    return d;
}
CG_API_ size_t cg_sketch_exchange_memory(
    const cg_sketch *sketch, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_exchange_desc d;
    if (!sketch || !desc) return 0;
    d = cg_sketch_step_desc_(sketch, desc, 0);
    return cg_exchange_memory(&d, transport, sketch->count);
}
CG_API_ cg_status cg_sketch_exchange(cg_sketch *sketch, const cg_exchange_desc *desc, const cg_transport *transport,
    void *mem, size_t bytes, cg_report *report) {
    cg_exchange_desc d;
    if (!sketch || !desc) return CG_E_ARG;
    d = cg_sketch_step_desc_(sketch, desc, 0);
    return cg_exchange(&d, transport, sketch->cells, sketch->count, mem, bytes, report);
}

static void cg_report_add_(cg_report *all, const cg_report *one) {
    const uint64_t out = all->bytes_out, in = all->bytes_in;
    const uint32_t rounds = all->rounds;
    *all = *one;
    all->bytes_out += out;
    all->bytes_in += in;
    all->rounds += rounds;
    all->used = NULL; /* of cells: of no use to anybody */
    all->used_len = 0;
}
static cg_status cg_check_finite_(const float *x, size_t n) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    for (size_t i = 0; i < n; i += CG_BLOCK_)
        if (kernels->absmax_bits(cg_at_(x, i), cg_min_(CG_BLOCK_, n - i)) >= CG_INF_BITS_) return CG_E_NONFINITE;
    return CG_OK;
}
#define CG_CLAMP_LIMIT_ 7.922816251426434e28f /* 2^96: sums of 2^30 of them are still floats */
/* what has grown beyond that is cut off, or no later sum would be finite */
static void cg_clamp_all_(float *x, size_t n) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    uint32_t top = 0;
    for (size_t i = 0; i < n; i += CG_BLOCK_)
        top = cg_max32_(top, kernels->absmax_bits(x + i, cg_min_(CG_BLOCK_, n - i)));
    for (size_t i = 0; top > cg_as_bits_(CG_CLAMP_LIMIT_) && i < n; i++)
        x[i] = x[i] > CG_CLAMP_LIMIT_ ? CG_CLAMP_LIMIT_ : x[i] < -CG_CLAMP_LIMIT_ ? -CG_CLAMP_LIMIT_ : x[i];
}
/* A sparse vector in place of y, or to the model. */
static void cg_sparse_apply_(
    const cg_exchange_desc *d, const uint64_t *index, const float *value, size_t count, float *y, size_t n) {
    if (n && !d->model) memset(y, 0, 4 * n);
    for (size_t i = 0; i < count; i++) {
        const size_t at = (size_t)index[i];
        if (d->model) cg_model_step_at_(d, at, value[i]);
        else cg_store_(y, at, value[i]);
    }
}
static cg_exchange_desc cg_f32_mean_step_desc_(const cg_exchange_desc *desc) { /* f32, as a mean */
    cg_exchange_desc d = CG_ZERO;
    d.route = desc->route;
    d.tag = desc->tag;
    d.leader = desc->leader;
    return d;
}

static size_t cg_sketched_candidates_(const cg_sketched_desc *d) { /* candidates */
    const uint64_t many = cg_mul_sat_(d->k, (uint64_t)(d->candidates ? d->candidates : 4));
    return many < d->sketch.n ? (size_t)many : d->sketch.n;
}
static cg_status cg_sketched_check_(const cg_sketched_desc *d) {
    if (!d || d->candidates < 0 || !(d->momentum >= 0.0f && d->momentum < 1.0f) || !d->k || d->sketch.n > SIZE_MAX / 64)
        return CG_E_ARG;
    return cg_sketch_memory(&d->sketch) ? CG_OK : CG_E_ARG;
}
static uint64_t cg_sketched_plan_(cg_sketched *sgd, const cg_sketched_desc *d, uint8_t *base, uint8_t **cells) {
    const uint64_t vector = cg_mul_sat_(4, d->sketch.n);
    cg_arena_ c;
    c.base = base;
    c.bytes = 0;
    sgd->error = (float *)(void *)cg_arena_take_(&c, vector);
    sgd->velocity = d->momentum != 0.0f ? (float *)(void *)cg_arena_take_(&c, vector) : NULL;
    *cells = cg_arena_take_(&c, cg_sketch_memory(&d->sketch));
    return c.bytes;
}
CG_API_ size_t cg_sketched_memory(const cg_sketched_desc *desc) {
    cg_sketched sgd;
    uint8_t *cells;
    return cg_sketched_check_(desc) == CG_OK
        ? cg_size_or_zero_(cg_add_sat_(cg_sketched_plan_(&sgd, desc, NULL, &cells), 64))
        : 0;
}
CG_API_ cg_status cg_sketched_init(cg_sketched *sgd, const cg_sketched_desc *desc, void *mem, size_t bytes) {
    const size_t skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    uint8_t *cells;
    cg_status s = sgd ? cg_sketched_check_(desc) : CG_E_ARG;
    if (s != CG_OK) return s;
    memset(sgd, 0, sizeof *sgd);
    if (!mem || bytes < skip || bytes - skip < cg_sketched_plan_(sgd, desc, NULL, &cells)) return CG_E_MEMORY;
    cg_sketched_plan_(sgd, desc, (uint8_t *)mem + skip, &cells);
    sgd->desc = *desc;
    if (desc->sketch.n) memset(sgd->error, 0, 4 * desc->sketch.n);
    if (sgd->velocity) memset(sgd->velocity, 0, 4 * desc->sketch.n);
    return cg_sketch_init(&sgd->sketch, &desc->sketch, cells, cg_sketch_memory(&desc->sketch));
}
typedef struct cg_sketched_buffers_ {
    uint64_t *index;
    float *value;
    uint8_t *scratch, *exchange;
    size_t scratch_bytes, exchange_bytes;
} cg_sketched_buffers_;
static uint64_t cg_sketched_buffers_plan_(const cg_sketch *s, size_t most, const cg_exchange_desc *desc,
    const cg_transport *t, int twice, uint8_t *base, cg_sketched_buffers_ *r) {
    const cg_exchange_desc road = cg_f32_mean_step_desc_(desc);
    const uint64_t first = cg_exchange_memory(&road, t, s->count),
                   second = twice ? cg_exchange_memory(&road, t, most) : 0;
    cg_arena_ c;
    c.base = base;
    c.bytes = 0;
    if (!first || (twice && !second)) return 0;
    r->index = (uint64_t *)(void *)cg_arena_take_(&c, cg_mul_sat_(8, most));
    r->value = (float *)(void *)cg_arena_take_(&c, cg_mul_sat_(4, most));
    r->scratch_bytes = cg_sketch_heavy_scratch(s, most);
    r->scratch = cg_arena_take_(&c, r->scratch_bytes);
    r->exchange_bytes = cg_size_or_zero_(first > second ? first : second);
    r->exchange = cg_arena_take_(&c, r->exchange_bytes);
    return c.bytes;
}
CG_API_ size_t cg_sketched_exchange_memory(
    const cg_sketched *sgd, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_sketched_buffers_ r;
    uint64_t need;
    if (!sgd || !desc || !transport) return 0;
    need = cg_sketched_buffers_plan_(&sgd->sketch, cg_sketched_candidates_(&sgd->desc), desc, transport, 1, NULL, &r);
    return need ? cg_size_or_zero_(cg_add_sat_(need, 64)) : 0;
}
/* Of `count` the k with the largest values (of equals the first), in their order. */
static size_t cg_sketched_topk_(uint64_t *index, float *value, size_t count, size_t k) {
    size_t left = k, kept = 0;
    uint32_t key;
    if (count <= k) return count;
    key = cg_kth_magnitude_(value, count, &left);
    for (size_t i = 0; i < count; i++) {
        const uint32_t m = cg_as_bits_(value[i]) & CG_ABS_MASK_;
        if (m < key || (m == key && !left)) continue;
        if (m == key) left--;
        index[kept] = index[i];
        value[kept++] = value[i];
    }
    return kept;
}
static cg_status cg_sketched_exchange_(cg_sketched *sgd, const cg_exchange_desc *desc, const cg_transport *t,
    float *grad, void *mem, size_t bytes, cg_report *report) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const cg_sketched_desc *d = &sgd->desc;
    const size_t n = d->sketch.n, most = cg_sketched_candidates_(d), skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    const uint64_t more = cg_mix64_(d->k) ^ cg_mix64_((uint64_t)most + 1) ^ (uint64_t)(d->mix != 0) ^
        cg_mix64_(d->sketch.seed);
    cg_exchange_desc road = cg_f32_mean_step_desc_(desc);
    cg_sketched_buffers_ r;
    cg_report one;
    size_t kept;
    uint64_t need = cg_sketched_buffers_plan_(&sgd->sketch, most, desc, t, 1, NULL, &r);
    cg_status s = (!grad && n) || !cg_rate_ok_(desc) ? CG_E_ARG : cg_check_finite_(grad, n);
    sgd->sketch.desc.seed = d->sketch.seed;
    road = cg_sketch_step_desc_(&sgd->sketch, &road, more);
    if (s == CG_OK && need && (!mem || bytes < skip || bytes - skip < need)) s = CG_E_MEMORY;
    if (s != CG_OK || !need)
        return cg_exchange_or_fail_(&road, t, sgd->sketch.cells, sgd->sketch.count, mem, bytes, s, report);
    cg_sketched_buffers_plan_(&sgd->sketch, most, desc, t, 1, (uint8_t *)mem + skip, &r);
    if (n && sgd->velocity) cg_axpby_fading_(kernels, grad, n, 1.0f, d->momentum, sgd->velocity);
    if (n && sgd->velocity) cg_clamp_all_(sgd->velocity, n);
    if (n) kernels->axpby(sgd->velocity ? sgd->velocity : grad, n, 1.0f, 1.0f, sgd->error, 0);
    if (n) cg_clamp_all_(sgd->error, n);
    /* who collides with whom changes with every step */
    sgd->sketch.desc.seed = cg_mix64_(d->sketch.seed ^ cg_mix64_(desc->tag.step + 1));
    cg_sketch_clear(&sgd->sketch);
    s = cg_sketch_add(&sgd->sketch, sgd->error, n, 1.0f);
    s = cg_exchange_or_fail_(&road, t, sgd->sketch.cells, sgd->sketch.count, r.exchange, r.exchange_bytes, s, &one);
    cg_report_add_(report, &one);
    if (s != CG_OK) return s;
    s = d->mix ? cg_sketch_heavymix(&sgd->sketch, most, &desc->tag, r.index, r.value, r.scratch, r.scratch_bytes)
               : cg_sketch_heavy(&sgd->sketch, most, r.index, r.value, r.scratch, r.scratch_bytes);
    for (size_t i = 0; i < most && s == CG_OK; i++) r.value[i] = cg_load_(sgd->error, (size_t)r.index[i]);
    road.tag.seed = cg_mix64_(road.tag.seed); /* the second round */
    s = cg_exchange_or_fail_(&road, t, r.value, most, r.exchange, r.exchange_bytes, s, &one);
    cg_report_add_(report, &one);
    if (s != CG_OK) return s;
    kept = cg_sketched_topk_(r.index, r.value, most, d->k);
    cg_sparse_apply_(desc, r.index, r.value, kept, grad, n);
    for (size_t i = 0; i < kept; i++) {
        cg_store_(sgd->error, (size_t)r.index[i], 0.0f);
        if (sgd->velocity) cg_store_(sgd->velocity, (size_t)r.index[i], 0.0f);
    }
    return CG_OK;
}
CG_API_ cg_status cg_sketched_exchange(cg_sketched *sgd, const cg_exchange_desc *desc, const cg_transport *transport,
    float *grad, void *mem, size_t bytes, cg_report *report) {
    cg_report own;
    cg_fenv_ env;
    cg_status s;
    if (!report) report = &own;
    memset(report, 0, sizeof *report);
    if (!sgd || !desc || !transport) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_sketched_exchange_(sgd, desc, transport, grad, mem, bytes, report);
    cg_fenv_leave_(env);
    return s;
}

static cg_status cg_fetched_check_(const cg_fetched_desc *d) {
    if (!d || !(d->momentum >= 0.0f && d->momentum < 1.0f) || !cg_is_finite_(d->rate) || !d->k) return CG_E_ARG;
    if (d->sketch.groups) return CG_E_UNSUPPORTED; /* see cg_sketch_zero */
    return cg_sketch_memory(&d->sketch) && cg_sketch_memory(&d->sketch) < SIZE_MAX / 4 ? CG_OK : CG_E_ARG;
}
CG_API_ size_t cg_fetched_memory(const cg_fetched_desc *desc) {
    return cg_fetched_check_(desc) == CG_OK ? 3 * cg_sketch_memory(&desc->sketch) : 0;
}
CG_API_ cg_status cg_fetched_init(cg_fetched *sgd, const cg_fetched_desc *desc, void *mem, size_t bytes) {
    uint8_t *p = (uint8_t *)mem;
    size_t each;
    cg_status s = sgd ? cg_fetched_check_(desc) : CG_E_ARG;
    if (s != CG_OK) return s;
    each = cg_sketch_memory(&desc->sketch);
    if (!mem || bytes < 3 * each) return CG_E_MEMORY;
    sgd->desc = *desc;
    s = cg_sketch_init(&sgd->momentum, &desc->sketch, p, each);
    if (s == CG_OK) s = cg_sketch_init(&sgd->error, &desc->sketch, p + each, each);
    if (s == CG_OK) s = cg_sketch_init(&sgd->fresh, &desc->sketch, p + 2 * each, each);
    return s;
}
CG_API_ size_t cg_fetched_exchange_memory(
    const cg_fetched *sgd, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_sketched_buffers_ r;
    uint64_t need;
    if (!sgd || !desc || !transport) return 0;
    need = cg_sketched_buffers_plan_(
        &sgd->fresh, cg_min_(sgd->desc.k, sgd->desc.sketch.n), desc, transport, 0, NULL, &r);
    return need ? cg_size_or_zero_(cg_add_sat_(need, 64)) : 0;
}
static cg_status cg_fetched_exchange_(cg_fetched *sgd, const cg_exchange_desc *desc, const cg_transport *t, float *grad,
    void *mem, size_t bytes, cg_report *report) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const cg_fetched_desc *d = &sgd->desc;
    const size_t n = d->sketch.n, k = cg_min_(d->k, n), skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0,
                 cells = sgd->fresh.count;
    const float rate = d->rate != 0.0f ? d->rate : 1.0f;
    float chunk[CG_CHUNK_];
    cg_exchange_desc road = cg_f32_mean_step_desc_(desc);
    cg_sketched_buffers_ r;
    cg_report one;
    uint64_t need = cg_sketched_buffers_plan_(&sgd->fresh, k, desc, t, 0, NULL, &r);
    cg_status s = (!grad && n) || !cg_rate_ok_(desc) ? CG_E_ARG : cg_check_finite_(grad, n);
    road = cg_sketch_step_desc_(
        &sgd->fresh, &road, cg_mix64_(d->k) ^ cg_as_bits_(d->momentum) ^ (uint64_t)cg_as_bits_(rate) << 32);
    if (s == CG_OK && need && (!mem || bytes < skip || bytes - skip < need)) s = CG_E_MEMORY;
    if (s != CG_OK || !need) return cg_exchange_or_fail_(&road, t, sgd->fresh.cells, cells, mem, bytes, s, report);
    cg_sketched_buffers_plan_(&sgd->fresh, k, desc, t, 0, (uint8_t *)mem + skip, &r);
    cg_sketch_clear(&sgd->fresh);
    s = cg_sketch_add(&sgd->fresh, grad, n, 1.0f);
    s = cg_exchange_or_fail_(&road, t, sgd->fresh.cells, cells, r.exchange, r.exchange_bytes, s, &one);
    cg_report_add_(report, &one);
    if (s != CG_OK) return s;
    /* the new momentum, not yet in its place */
    cg_axpy_faded_energy_y_(kernels, sgd->momentum.cells, cells, d->momentum, sgd->fresh.cells);
    for (size_t i = 0; i < cells && s == CG_OK; i += CG_CHUNK_) { /* and the new error is finite, too */
        const size_t many = cg_min_(CG_CHUNK_, cells - i);
        memcpy(chunk, sgd->error.cells + i, 4 * many);
        kernels->axpby(sgd->fresh.cells + i, many, rate, 1.0f, chunk, 0);
        if (kernels->absmax_bits(chunk, many) >= CG_INF_BITS_) s = CG_E_NONFINITE;
    }
    if (s != CG_OK) {
        report->rank = t->rank;
        report->why = "the sums of sketches have become too large for floats";
        return s;
    }
    memcpy(sgd->momentum.cells, sgd->fresh.cells, 4 * cells);
    kernels->axpby(sgd->momentum.cells, cells, rate, 1.0f, sgd->error.cells, 0);
    s = cg_sketch_heavy(&sgd->error, k, r.index, r.value, r.scratch, r.scratch_bytes);
    if (s == CG_OK) s = cg_sketch_zero(&sgd->error, r.index, k);
    if (s == CG_OK) s = cg_sketch_zero(&sgd->momentum, r.index, k);
    if (s == CG_OK) cg_sparse_apply_(desc, r.index, r.value, k, grad, n);
    return s;
}
CG_API_ cg_status cg_fetched_exchange(cg_fetched *sgd, const cg_exchange_desc *desc, const cg_transport *transport,
    float *grad, void *mem, size_t bytes, cg_report *report) {
    cg_report own;
    cg_fenv_ env;
    cg_status s;
    if (!report) report = &own;
    memset(report, 0, sizeof *report);
    if (!sgd || !desc || !transport) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_fetched_exchange_(sgd, desc, transport, grad, mem, bytes, report);
    cg_fenv_leave_(env);
    return s;
}
