/* sketched: Sketched-SGD, and indices that ranks agree on by a sketch

   Offers   cg_sketched_buffers_plan_, which fetched uses too; the public cg_sketched_ calls
   Needs    heavy, exchange; the arena and cg_exchange_or_fail_ of exchange
   Touches  the state (error, velocity, sketch), grad, the caller's memory and report
   A step has two rounds: the mean of sketches, whose heaviest coordinates are the candidates, the same on all ranks;
   then the mean of the candidates' values. */

/* How many coordinates the second round exchanges: candidates * k, at most n. */
static size_t cg_sketched_candidates_(const cg_sketched_desc *d) {
    const uint64_t many = cg_mul_sat_(d->k, (uint64_t)(d->candidates ? d->candidates : 4));
    return many < d->sketch.n ? (size_t)many : d->sketch.n;
}
static cg_status cg_sketched_check_(const cg_sketched_desc *d) {
    if (!d || d->candidates < 0 || !(d->momentum >= 0.0f && d->momentum < 1.0f) || !d->k ||
        d->sketch.n > SIZE_MAX / 64 || !CG_RESERVE_IS_ZERO_(d->reserved))
        return CG_E_ARG;
    return cg_sketch_memory(&d->sketch) ? CG_OK : CG_E_ARG;
}
/* Sets error and velocity into the memory from base on (a multiple of 64, or NULL to measure), and *cells_mem to the
   sketch's part of it; returns the bytes needed, which saturate. */
static uint64_t cg_sketched_plan_(cg_sketched *sgd, const cg_sketched_desc *d, uint8_t *base, uint8_t **cells_mem) {
    const uint64_t vector = cg_mul_sat_(4, d->sketch.n);
    cg_arena_ arena;
    arena.base = base;
    arena.bytes = 0;
    sgd->error = (float *)(void *)cg_arena_take_(&arena, vector);
    sgd->velocity = d->momentum != 0.0f ? (float *)(void *)cg_arena_take_(&arena, vector) : NULL;
    *cells_mem = cg_arena_take_(&arena, cg_sketch_memory(&d->sketch));
    return arena.bytes;
}
CG_API_ size_t cg_sketched_memory(const cg_sketched_desc *desc) {
    cg_sketched sgd;
    uint8_t *cells_mem;
    return cg_sketched_check_(desc) == CG_OK
        ? cg_size_or_zero_(cg_add_sat_(cg_sketched_plan_(&sgd, desc, NULL, &cells_mem), 64))
        : 0;
}
CG_API_ cg_status cg_sketched_init(cg_sketched *sgd, const cg_sketched_desc *desc, void *mem, size_t bytes) {
    const size_t align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    uint8_t *cells_mem;
    cg_status s = sgd ? cg_sketched_check_(desc) : CG_E_ARG;
    if (s != CG_OK) return s;
    memset(sgd, 0, sizeof *sgd);
    if (!mem || bytes < align_pad || bytes - align_pad < cg_sketched_plan_(sgd, desc, NULL, &cells_mem))
        return CG_E_MEMORY;
    cg_sketched_plan_(sgd, desc, (uint8_t *)mem + align_pad, &cells_mem);
    sgd->desc = *desc;
    if (desc->sketch.n) memset(sgd->error, 0, 4 * desc->sketch.n);
    if (sgd->velocity) memset(sgd->velocity, 0, 4 * desc->sketch.n);
    return cg_sketch_init(&sgd->sketch, &desc->sketch, cells_mem, cg_sketch_memory(&desc->sketch));
}
/* Parts of the caller's memory for one exchange. */
typedef struct cg_sketched_buffers_ {
    uint64_t *index; /* of the heaviest coordinates */
    float *value;    /* and their estimates, then their values */
    uint8_t *scratch, *exchange;
    size_t scratch_bytes, exchange_bytes; /* exchange_bytes: enough for either round */
} cg_sketched_buffers_;
/* Lays out *r for max_count coordinates from base on (a multiple of 64, or NULL to measure); returns the bytes needed,
   or 0 if the exchange is refused. two_rounds: values of the coordinates are exchanged, too (not in FetchSGD). */
static uint64_t cg_sketched_buffers_plan_(const cg_sketch *s, size_t max_count, const cg_exchange_desc *desc,
    const cg_transport *t, int two_rounds, uint8_t *base, cg_sketched_buffers_ *r) {
    const cg_exchange_desc step_desc = cg_f32_mean_step_desc_(desc);
    const uint64_t first = cg_exchange_memory(&step_desc, t, s->count),
                   second = two_rounds ? cg_exchange_memory(&step_desc, t, max_count) : 0;
    cg_arena_ arena;
    arena.base = base;
    arena.bytes = 0;
    if (!first || (two_rounds && !second)) return 0;
    r->index = (uint64_t *)(void *)cg_arena_take_(&arena, cg_mul_sat_(8, max_count));
    r->value = (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, max_count));
    r->scratch_bytes = cg_sketch_heavy_scratch(s, max_count);
    r->scratch = cg_arena_take_(&arena, r->scratch_bytes);
    r->exchange_bytes = cg_size_or_zero_(first > second ? first : second);
    r->exchange = cg_arena_take_(&arena, r->exchange_bytes);
    return arena.bytes;
}
CG_API_ size_t cg_sketched_exchange_memory(
    const cg_sketched *sgd, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_sketched_buffers_ r;
    uint64_t need;
    if (!sgd || !desc || !transport) return 0;
    need = cg_sketched_buffers_plan_(&sgd->sketch, cg_sketched_candidates_(&sgd->desc), desc, transport, 1, NULL, &r);
    return need ? cg_size_or_zero_(cg_add_sat_(need, 64)) : 0;
}
/* Keeps of `count` coordinates the k with the largest magnitudes (of equals the first), in their order; returns how
   many are left. */
static size_t cg_sketched_topk_(uint64_t *index, float *value, size_t count, size_t k) {
    size_t ties_left = k, kept = 0;
    uint32_t kth_bits;
    if (count <= k) return count;
    kth_bits = cg_kth_magnitude_(value, count, &ties_left);
    for (size_t i = 0; i < count; i++) {
        const uint32_t m = cg_as_bits_(value[i]) & CG_ABS_MASK_;
        if (m < kth_bits || (m == kth_bits && !ties_left)) continue;
        if (m == kth_bits) ties_left--;
        index[kept] = index[i];
        value[kept++] = value[i];
    }
    return kept;
}
/* The gradient into velocity and error, and the error into the sketch. */
static cg_status cg_sketched_accumulate_(cg_sketched *sgd, const cg_exchange_desc *desc, const float *grad) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const cg_sketched_desc *d = &sgd->desc;
    const size_t n = d->sketch.n;
    if (n && sgd->velocity) cg_axpby_fading_(kernels, grad, n, 1.0f, d->momentum, sgd->velocity);
    if (n && sgd->velocity) cg_clamp_all_(sgd->velocity, n);
    if (n) CG_KERNEL_(kernels, axpby(sgd->velocity ? sgd->velocity : grad, n, 1.0f, 1.0f, sgd->error, 0));
    if (n) cg_clamp_all_(sgd->error, n);
    /* another hash in every step, so that coordinates that collide do not collide for ever */
    sgd->sketch.desc.seed = cg_mix64_(d->sketch.seed ^ cg_mix64_(desc->tag.step + 1));
    cg_sketch_clear(&sgd->sketch);
    return cg_sketch_add(&sgd->sketch, sgd->error, n, 1.0f);
}
/* The candidates of the summed sketch, and this rank's values there. */
static cg_status cg_sketched_pick_(
    cg_sketched *sgd, const cg_exchange_desc *desc, size_t candidates, const cg_sketched_buffers_ *r) {
    const cg_status s = sgd->desc.mix
        ? cg_sketch_heavymix(&sgd->sketch, candidates, &desc->tag, r->index, r->value, r->scratch, r->scratch_bytes)
        : cg_sketch_heavy(&sgd->sketch, candidates, r->index, r->value, r->scratch, r->scratch_bytes);
    for (size_t i = 0; i < candidates && s == CG_OK; i++) r->value[i] = cg_load_(sgd->error, (size_t)r->index[i]);
    return s;
}
/* A rank that fails, in the first round or before it, takes part in the second with that status, so that no other rank
   waits for it there. Once the gradient is in error and velocity it stays there. */
static cg_status cg_sketched_exchange_(cg_sketched *sgd, const cg_exchange_desc *desc, const cg_transport *t,
    float *grad, void *mem, size_t bytes, cg_report *report) {
    const cg_sketched_desc *d = &sgd->desc;
    const size_t n = d->sketch.n, candidates = cg_sketched_candidates_(d),
                 align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    const uint64_t salt = cg_mix64_(d->k) ^ cg_mix64_((uint64_t)candidates + 1) ^ (uint64_t)(d->mix != 0) ^
        cg_mix64_(d->sketch.seed);
    cg_exchange_desc step_desc = cg_f32_mean_step_desc_(desc);
    cg_sketched_buffers_ r = CG_ZERO;
    cg_report round_report;
    size_t kept;
    const uint64_t need = cg_sketched_buffers_plan_(&sgd->sketch, candidates, desc, t, 1, NULL, &r);
    const cg_report refusal = cg_sgd_check_(
        desc, t, grad, n, mem, bytes, need, "mem is too small: cg_sketched_exchange_memory gives its bytes");
    cg_status first, s = (cg_status)refusal.status;
    sgd->sketch.desc.seed = d->sketch.seed;
    step_desc = cg_sketch_step_desc_(&sgd->sketch, &step_desc, salt);
    if (s == CG_OK && need) {
        cg_sketched_buffers_plan_(&sgd->sketch, candidates, desc, t, 1, (uint8_t *)mem + align_pad, &r);
        s = cg_sketched_accumulate_(sgd, desc, grad);
    } else { /* there is nothing to exchange but a refusal */
        r.exchange = (uint8_t *)mem;
        r.exchange_bytes = bytes;
    }
    step_desc.flags = 0; /* the second round confirms the first */
    first = cg_exchange_or_fail_(
        &step_desc, t, sgd->sketch.cells, sgd->sketch.count, r.exchange, r.exchange_bytes, s, &round_report);
    cg_report_add_(report, &round_report);
    if (refusal.status != CG_OK && first == s) cg_report_copy_outcome_(report, &refusal);
    if (first == CG_E_TRANSPORT) return first;
    s = first == CG_OK ? cg_sketched_pick_(sgd, desc, candidates, &r) : first;
    step_desc.flags = (desc->flags & CG_CONFIRM) | CG_SECOND_ROUND_;
    step_desc.tag.seed = cg_mix64_(step_desc.tag.seed); /* the second round */
    s = cg_exchange_or_fail_(&step_desc, t, r.value, candidates, r.exchange, r.exchange_bytes, s, &round_report);
    if (first != CG_OK) { /* the report stays that of the first round */
        report->bytes_out += round_report.bytes_out;
        report->bytes_in += round_report.bytes_in;
        report->rounds += round_report.rounds;
        return first;
    }
    cg_report_add_(report, &round_report);
    if (s != CG_OK) return s;
    kept = cg_sketched_topk_(r.index, r.value, candidates, d->k);
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
    cg_report_set_(report, CG_E_ARG, "sgd, desc or transport is NULL", 0, CG_NO_INDEX);
    if (!sgd || !desc || !transport) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_sketched_exchange_(sgd, desc, transport, grad, mem, bytes, report);
    cg_fenv_leave_(env);
    return s;
}
