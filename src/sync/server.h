/* server: seats, rounds and the model of a server that is fed

   Offers   the public cg_server_memory, _init, _feed, _model, _version; cg_server_may_start_, cg_server_seal_
   Needs    wire, local (cg_sync_take_), core's and exchange's public calls, cg_rows_trim_ of robust
   Touches  the state
   A push is decoded into work, looked at, and enters delta (modes without rounds) or the sum of its round. Then delta
   is compressed: the packet goes into the ring and out of the model, and what it has not said stays in delta. So
   model_0 - sum of rate w D + delta is the model after every feed. */

enum { CG_SERVER_ROUNDS_ = 1, CG_SERVER_WAITS_FOR_ALL_ = 2, CG_SERVER_SAMPLES_ = 4, CG_SERVER_BOUNDED_ = 8 };
typedef struct cg_server_row_ {
    uint32_t id, traits;
} cg_server_row_;
static const cg_server_row_ cg_server_rows_[] = {
    { CG_SERVER_BSP, CG_SERVER_ROUNDS_ | CG_SERVER_WAITS_FOR_ALL_ },
    { CG_SERVER_SSP, CG_SERVER_BOUNDED_ },
    { CG_SERVER_ASP, 0 },
    { CG_SERVER_BACKUP, CG_SERVER_ROUNDS_ },
    { CG_SERVER_SAMPLED, CG_SERVER_ROUNDS_ | CG_SERVER_SAMPLES_ },
};
static int cg_server_has_(const cg_server_desc *d, uint32_t traits) {
    return (cg_server_rows_[d->mode].traits & traits) != 0;
}
enum { CG_SEAT_AWAITED_ = 0, CG_SEAT_HERE_ = 1, CG_SEAT_GONE_ = 2 };
enum {
    CG_SEAT_IN_ROUND_ = 1,
    CG_SEAT_WELCOME_ = 2, /* this message is due */
    CG_SEAT_VERDICT_ = 4, /* and this */
    CG_SEAT_WAITING_ = 8, /* it has nothing to do until it gets a go */
    CG_SEAT_DRAWN_ = 16,  /* it is of the round's sample */
    CG_SEAT_HAS_LAST_ = 32,
    CG_SEAT_ASK_ = 64,     /* a message is due that asks for a hello */
    CG_SEAT_REFUSED_ = 128 /* the verdict that is due is a refusal, which is not remembered */
};
#define CG_NO_VERSION_ (~(uint64_t)0) /* of a seat whose model is not known */
#define CG_PUSH_LIMIT_ 1e30           /* a larger value, times its factor, is refused: sums of pushes stay finite */

/* ---- descriptions and memory ---- */

static const char *cg_server_wrong_(const cg_server_desc *d) {
    const float cap = d->weight_cap, rate = d->rate;
    if (!d->n) return "n is 0";
    if (d->mode >= sizeof cg_server_rows_ / sizeof cg_server_rows_[0]) return "there is no such mode";
    if (d->workers < 1 || d->workers > 65536) return "workers must be 1 to 65536";
    if (d->backup < 0 || d->backup >= d->workers) return "backup must be at least 0 and below workers";
    if (cg_server_has_(d, CG_SERVER_SAMPLES_) && (d->sampled < 1 || d->sampled > d->workers))
        return "sampled must be 1 to workers";
    if (!(rate >= 0.0f && rate <= 1e6f)) return "rate must be 0 to 1e6";
    if (!(cap >= 0.0f && cap <= 1e18f)) return "weight_cap must be 0 to 1e18";
    if (!(d->norm_cap >= 0.0f && cg_is_finite_(d->norm_cap))) return "norm_cap must be finite, and not negative";
    if (d->flags & ~(uint32_t)(CG_SERVER_DAMPED | CG_SERVER_KEEP_LATE)) return "flags has a bit that means nothing";
    if (d->fold && !cg_server_has_(d, CG_SERVER_ROUNDS_)) return "a fold needs rounds: bsp, backup or sampled";
    if (d->fold && d->fold != CG_FOLD_MEDIAN && d->fold != CG_FOLD_TRIMMED)
        return "a server folds by mean, median or trimmed mean";
    if (!(d->fold_limit >= 0.0f && d->fold_limit < 0.5f)) return "fold_limit must be at least 0 and below 0.5";
    if (!CG_RESERVE_IS_ZERO_(d->reserved)) return "reserved must be 0: start from CG_ZERO";
    if (!cg_bound(&d->down, d->n)) return "the operator down does not take n values: cg_op_about says why";
    return NULL;
}
/* Few values are in a packet of down, so that those that several packets have touched may be fewer bytes. */
static int cg_server_is_sparse_(const cg_server_desc *d) {
    return (d->down.select.id || d->down.sample.id) && d->n <= 0xffffffffu;
}
static uint64_t cg_server_max_(uint64_t a, uint64_t b) { return a > b ? a : b; }
/* Lays out mem, and returns its bytes. base NULL: only these. */
static uint64_t cg_server_plan_(cg_server *s, uint8_t *base) {
    const cg_server_desc *d = &s->desc;
    const uint64_t vector = cg_mul_sat_(4, d->n), workers = (uint64_t)d->workers, bound = cg_bound(&d->down, d->n);
    const cg_op dense = cg_dense();
    const size_t piece = d->n < CG_DENSE_PIECE_ ? d->n : (size_t)CG_DENSE_PIECE_;
    uint64_t used = 0;
    s->ring_cap = cg_size_or_zero_(cg_server_max_(d->ring_bytes, bound));
    s->entry_cap = d->ring_bytes / CG_HEADER_BYTES + 1;
    s->out_cap = cg_size_or_zero_(cg_add_sat_(CG_MSG_BYTES_,
        cg_server_max_(bound, cg_server_max_(cg_bound(&dense, piece), 8 + 8 * (uint64_t)CG_TOUCHED_PIECE_))));
    s->scratch_bytes = cg_scratch(&d->down, d->n);
    s->model = (float *)cg_sync_take_(base, &used, vector);
    s->delta = (float *)cg_sync_take_(base, &used, vector);
    s->work = (float *)cg_sync_take_(base, &used, vector);
    s->sum = cg_server_has_(d, CG_SERVER_ROUNDS_) && !d->fold ? (float *)cg_sync_take_(base, &used, vector) : NULL;
    s->rows = d->fold ? (float *)cg_sync_take_(base, &used, cg_mul_sat_(vector, workers)) : NULL;
    s->touched = cg_server_is_sparse_(d) ? (uint32_t *)cg_sync_take_(base, &used, d->n / 8 + 8) : NULL;
    s->seat = (cg_server_seat *)cg_sync_take_(base, &used, cg_mul_sat_(workers, sizeof *s->seat));
    s->entry = (cg_server_entry *)cg_sync_take_(base, &used, cg_mul_sat_(s->entry_cap, sizeof *s->entry));
    s->ring = (uint8_t *)cg_sync_take_(base, &used, s->ring_cap ? s->ring_cap : CG_TOO_LARGE_);
    s->out = (uint8_t *)cg_sync_take_(base, &used, s->out_cap ? s->out_cap : CG_TOO_LARGE_);
    s->scratch = (uint8_t *)cg_sync_take_(base, &used, s->scratch_bytes);
    return cg_add_sat_(used, 64);
}
CG_API_ size_t cg_server_memory(const cg_server_desc *desc) {
    cg_server s;
    if (!desc || cg_server_wrong_(desc)) return 0;
    memset(&s, 0, sizeof s);
    s.desc = *desc;
    return cg_size_or_zero_(cg_server_plan_(&s, NULL));
}
static cg_status cg_server_say_(cg_status s, const char *why, char *text, size_t cap) {
    size_t len = 0;
    if (!text || !cap) return s;
    for (; why[len] && len < cap - 1; len++) text[len] = why[len];
    text[len] = 0;
    return s;
}
static void cg_server_defaults_(cg_server_desc *d) {
    if (d->rate == 0.0f) d->rate = 1.0f;
    if (d->weight_cap == 0.0f) d->weight_cap = 16777216.0f;
    if (d->fold_limit == 0.0f) d->fold_limit = 0.25f;
}
CG_API_ cg_status cg_server_init(
    cg_server *s, const cg_server_desc *desc, const float *x0, void *mem, size_t bytes, char *why, size_t cap) {
    if (cap && why) *why = 0;
    if (!s) return CG_E_ARG;
    memset(s, 0, sizeof *s);
    if (!desc || !x0) return cg_server_say_(CG_E_ARG, "desc or x0 is NULL", why, cap);
    if (cg_server_wrong_(desc)) return cg_server_say_(CG_E_ARG, cg_server_wrong_(desc), why, cap);
    if (!cg_server_memory(desc)) return cg_server_say_(CG_E_ARG, "sizes overflow", why, cap);
    if (!mem || bytes < cg_server_memory(desc))
        return cg_server_say_(CG_E_MEMORY, "mem is too small: cg_server_memory gives its bytes", why, cap);
    if (cg_first_nonfinite_(x0, desc->n) != CG_NO_INDEX)
        return cg_server_say_(CG_E_NONFINITE, "x0 has NaN or Inf", why, cap);
    s->desc = *desc;
    cg_server_defaults_(&s->desc);
    cg_server_plan_(s, (uint8_t *)mem + (64 - ((uintptr_t)mem & 63)) % 64);
    memcpy(s->model, x0, 4 * desc->n);
    memset(s->delta, 0, 4 * desc->n);
    if (s->sum) memset(s->sum, 0, 4 * desc->n);
    memset(s->seat, 0, (size_t)desc->workers * sizeof *s->seat);
    for (int w = 0; w < desc->workers; w++) s->seat[w].version = CG_NO_VERSION_;
    s->job = cg_sync_job_(desc->seed, desc->n);
    s->mark = cg_mix64_(s->job);
    for (size_t i = 0; i < desc->n; i++) s->mark = cg_mix64_(s->mark + cg_as_bits_(s->model[i]));
    return CG_OK;
}
CG_API_ const float *cg_server_model(const cg_server *s) { return s ? s->model : NULL; }
CG_API_ uint64_t cg_server_version(const cg_server *s) { return s ? s->version : 0; }

/* ---- the model and the ring ---- */

/* Room for a packet of `room` bytes, in place of the oldest ones; returns its offset. */
static size_t cg_ring_room_(cg_server *s, size_t room) {
    if (s->ring_cap - s->ring_head < room) s->ring_head = 0;
    while (s->entry_count) {
        const cg_server_entry *oldest = &s->entry[s->entry_first];
        const int apart = oldest->offset >= s->ring_head + room || oldest->offset + oldest->len <= s->ring_head;
        if (apart && s->entry_count < s->entry_cap) break;
        s->entry_first = (s->entry_first + 1) % s->entry_cap;
        s->entry_count--;
    }
    return s->ring_head;
}
/* The entry that leads away from that version; NULL: it is not in the ring any more, or was of another history. */
static const cg_server_entry *cg_ring_find_(const cg_server *s, uint64_t version, uint64_t mark) {
    const cg_server_entry *e;
    if (version >= s->version || s->version - version > s->entry_count) return NULL;
    e = &s->entry[(s->entry_first + s->entry_count - (size_t)(s->version - version)) % s->entry_cap];
    return e->before == mark ? e : NULL;
}
/* The next version: what a packet of down says of delta goes into the model. */
static cg_status cg_server_update_(cg_server *s) {
    const size_t n = s->desc.n, room = cg_bound(&s->desc.down, n), offset = cg_ring_room_(s, room);
    cg_tag tag = CG_ZERO;
    cg_server_entry *e;
    cg_status status;
    size_t len;
    tag.seed = s->desc.seed;
    tag.step = s->version;
    tag.rank = 0xffffffffu; /* the server's random numbers are no worker's */
    status = cg_compress(&s->desc.down, &tag, s->delta, n, s->ring + offset, room, &len, s->scratch, s->scratch_bytes);
    if (status == CG_OK) status = cg_decode(NULL, s->ring + offset, len, -1.0f, 1.0f, s->delta, n);
    if (status == CG_OK) status = cg_decode(NULL, s->ring + offset, len, -1.0f, 1.0f, s->model, n);
    if (status != CG_OK) return status;
    e = &s->entry[(s->entry_first + s->entry_count++) % s->entry_cap];
    e->offset = offset;
    e->len = len;
    e->before = s->mark;
    e->after = s->mark = cg_chain_bytes_(s->mark, s->ring + offset, CG_HEADER_BYTES);
    e->version = ++s->version;
    s->ring_head = offset + len;
    return CG_OK;
}

/* ---- seats and rounds ---- */

static uint64_t cg_server_min_clock_(const cg_server *s) {
    uint64_t least = CG_NO_VERSION_;
    for (int w = 0; w < s->desc.workers; w++)
        if (s->seat[w].state == CG_SEAT_HERE_ && s->seat[w].clock < least) least = s->seat[w].clock;
    return least;
}
/* May it make the step of its clock? */
static int cg_server_may_start_(const cg_server *s, const cg_server_seat *seat) {
    if (cg_server_has_(&s->desc, CG_SERVER_ROUNDS_))
        return seat->clock == s->round && !(seat->flags & CG_SEAT_IN_ROUND_) &&
            (!cg_server_has_(&s->desc, CG_SERVER_SAMPLES_) || seat->flags & CG_SEAT_DRAWN_);
    return !cg_server_has_(&s->desc, CG_SERVER_BOUNDED_) || seat->clock - cg_server_min_clock_(s) <= s->desc.staleness;
}
/* Draws the sample of a round among those who are here and have nothing to do, all equally likely. */
static void cg_server_draw_(cg_server *s) {
    uint64_t left = 0, need = (uint64_t)s->desc.sampled;
    for (int w = 0; w < s->desc.workers; w++)
        left += s->seat[w].state == CG_SEAT_HERE_ && s->seat[w].flags & CG_SEAT_WAITING_;
    for (int w = 0; w < s->desc.workers; w++) {
        cg_server_seat *seat = &s->seat[w];
        const uint64_t h = cg_mix64_(cg_mix64_(s->desc.seed ^ cg_mix64_(s->round + CG_GOLDEN_)) + (uint64_t)w);
        seat->flags &= ~(uint32_t)CG_SEAT_DRAWN_;
        if (seat->state != CG_SEAT_HERE_ || !(seat->flags & CG_SEAT_WAITING_)) continue;
        if ((h >> 32) * left >> 32 < need) {
            seat->flags |= CG_SEAT_DRAWN_;
            seat->clock = s->round;
            need -= need > 0;
        }
        left--;
    }
}
/* Are all here whose push the round waits for? */
static int cg_server_round_is_full_(const cg_server *s) {
    const int samples = cg_server_has_(&s->desc, CG_SERVER_SAMPLES_);
    int missing = 0;
    if (!s->arrived) return 0;
    for (int w = 0; w < s->desc.workers; w++) {
        const cg_server_seat *seat = &s->seat[w];
        const int counts = samples ? seat->state == CG_SEAT_HERE_ && seat->flags & CG_SEAT_DRAWN_
                                   : seat->state != CG_SEAT_GONE_;
        missing += counts && !(seat->flags & CG_SEAT_IN_ROUND_);
    }
    if (samples || cg_server_has_(&s->desc, CG_SERVER_WAITS_FOR_ALL_)) return !missing;
    return !missing || s->arrived >= s->desc.workers - s->desc.backup;
}
/* The fold of the round enters delta, and the next round begins. */
static void cg_server_round_end_(cg_server *s) {
    const size_t n = s->desc.n, pushes = (size_t)s->arrived;
    const cg_fenv_ env = cg_fenv_enter_();
    if (s->rows) {
        const size_t share = (size_t)((double)s->desc.fold_limit * (double)pushes);
        const size_t cut = s->desc.fold == CG_FOLD_MEDIAN ? (pushes - 1) / 2 : pushes < 3 ? 0 : share ? share : 1;
        cg_rows_trim_(s->rows, n, pushes, cut);
        cg_axpby_(s->rows, n, s->desc.rate, 1.0f, s->delta);
    } else {
        cg_axpby_(s->sum, n, (float)((double)s->desc.rate / s->round_weight), 1.0f, s->delta);
        memset(s->sum, 0, 4 * n);
    }
    cg_fenv_leave_(env);
    s->arrived = 0;
    s->round_weight = 0.0;
    s->round++;
    for (int w = 0; w < s->desc.workers; w++) s->seat[w].flags &= ~(uint32_t)(CG_SEAT_IN_ROUND_ | CG_SEAT_DRAWN_);
}
/* Frees seats that were silent for too long. */
static void cg_server_free_silent_(cg_server *s) {
    for (int w = 0; w < s->desc.workers && s->desc.timeout; w++) {
        const uint64_t heard = s->seat[w].state == CG_SEAT_AWAITED_ ? s->started : s->seat[w].heard;
        if (s->seat[w].state == CG_SEAT_GONE_ || s->now - heard <= s->desc.timeout) continue;
        if (s->seat[w].state == CG_SEAT_HERE_) s->seat[w].flags |= CG_SEAT_ASK_; /* if it can still hear */
        s->seat[w].state = CG_SEAT_GONE_;
    }
}
/* Whatever follows from a change of seats or pushes. */
static void cg_server_settle_(cg_server *s) {
    int drawn = 0;
    if (!cg_server_has_(&s->desc, CG_SERVER_ROUNDS_)) return;
    if (cg_server_round_is_full_(s)) {
        cg_status status;
        cg_server_round_end_(s);
        status = cg_server_update_(s);
        (void)status; /* delta is finite (CG_PUSH_LIMIT_), and the ring has room */
    }
    for (int w = 0; w < s->desc.workers; w++)
        drawn |= s->seat[w].state == CG_SEAT_HERE_ && s->seat[w].flags & CG_SEAT_DRAWN_;
    if (cg_server_has_(&s->desc, CG_SERVER_SAMPLES_) && !drawn && !s->arrived) cg_server_draw_(s);
}

/* ---- messages ---- */

static void cg_verdict_refuse_(cg_verdict *v, cg_status status, const char *why) {
    v->kind = CG_VERDICT_REFUSED;
    v->status = (uint32_t)status;
    v->why = why;
}
static void cg_server_hello_(cg_server *s, cg_server_seat *seat, const cg_msg_ *m, cg_verdict *v) {
    const int has_pending = m->status == 1 && m->clock <= seat->clock, was_here = seat->state == CG_SEAT_HERE_;
    const uint64_t least = cg_server_min_clock_(s);
    if (!has_pending && cg_server_has_(&s->desc, CG_SERVER_ROUNDS_) && seat->clock < s->round) seat->clock = s->round;
    if (!has_pending && !was_here && !cg_server_has_(&s->desc, CG_SERVER_ROUNDS_) && least != CG_NO_VERSION_)
        seat->clock = cg_server_max_(seat->clock, least);
    seat->state = CG_SEAT_HERE_;
    seat->piece = 0;
    seat->version = CG_NO_VERSION_;
    if (m->number != 1 && ((m->version == s->version && m->mark == s->mark) || cg_ring_find_(s, m->version, m->mark))) {
        seat->version = m->version;
        seat->mark = m->mark;
    }
    seat->flags |= CG_SEAT_WELCOME_;
    seat->flags &= ~(uint32_t)(CG_SEAT_VERDICT_ | CG_SEAT_WAITING_ | CG_SEAT_ASK_ | CG_SEAT_REFUSED_);
    if (has_pending && seat->flags & CG_SEAT_HAS_LAST_ && m->clock == seat->last_clock && m->clock < seat->clock)
        seat->flags |= CG_SEAT_VERDICT_;
    if (!has_pending || seat->flags & CG_SEAT_VERDICT_) seat->flags |= CG_SEAT_WAITING_;
    v->kind = CG_VERDICT_JOINED;
}
/* A verdict that the worker hears of, and the clock of its next push. */
static void cg_server_decide_(cg_server_seat *seat, cg_verdict *v, uint32_t kind, uint64_t next) {
    seat->last_clock = v->clock;
    seat->last_kind = kind;
    seat->last_status = CG_OK;
    seat->clock = next;
    seat->flags |= CG_SEAT_VERDICT_ | CG_SEAT_WAITING_ | CG_SEAT_HAS_LAST_;
    seat->flags &= ~(uint32_t)CG_SEAT_REFUSED_;
    v->kind = kind;
}
/* What is wrong with a push before its packet is looked at; the status goes to *status. */
static const char *cg_push_wrong_(const cg_server *s, const cg_server_seat *seat, const cg_msg_ *m, cg_status *status) {
    *status = CG_E_STATE;
    if (seat->state != CG_SEAT_HERE_) return "this worker has not said hello, or its seat was freed: say hello first";
    if (m->clock < seat->clock) return "the push is of the past: its clock was decided on long ago";
    if (m->clock > seat->clock) return "the push is of the future: there are others before its clock";
    *status = CG_E_ARG;
    if (!(m->weight > 0.0f) || !cg_is_finite_(m->weight)) return "the weight must be finite and positive";
    if (m->weight > s->desc.weight_cap) return "the weight is larger than weight_cap";
    if (s->rows && m->weight != 1.0f) return "a robust fold has no weights: the weight must be 1";
    *status = CG_E_MISMATCH;
    if (m->version > s->version) return "the push was made with a model that this server has not had";
    *status = CG_E_STATE;
    if (!(cg_server_has_(&s->desc, CG_SERVER_ROUNDS_) && m->clock < s->round) && !cg_server_may_start_(s, seat))
        return "the worker may not make this step yet";
    return NULL;
}
/* work = the values of the packet; NULL, or what is wrong with it. *norm = its norm. */
static const char *cg_push_decode_(cg_server *s, int from, const cg_msg_ *m, cg_status *status, double *norm) {
    const size_t n = s->desc.n;
    double lanes[16] = { 0.0 }, scale = (double)s->desc.rate * (double)m->weight;
    cg_info info;
    *status = cg_inspect(m->payload, m->payload_len, &info);
    if (*status != CG_OK) return "the packet is damaged";
    *status = CG_E_MISMATCH;
    if (info.n != n || info.packet_bytes != m->payload_len) return "the packet has another n";
    if (info.tag.seed != s->desc.seed || info.tag.step != m->clock || info.tag.rank != (uint32_t)from)
        return "the packet is of another worker, clock or seed than its message";
    *status = cg_decode(NULL, m->payload, m->payload_len, 1.0f, 0.0f, s->work, n);
    if (*status != CG_OK) return "the packet is damaged";
    *status = CG_E_NONFINITE;
    *norm = 0.0;
    if (scale < 1.0) scale = 1.0;
    if ((double)cg_as_float_(cg_absmax_bits_(s->work, n)) * scale > CG_PUSH_LIMIT_)
        return "values times weight and rate are larger than 1e30";
    if (s->desc.norm_cap > 0.0f) {
        for (size_t i = 0; i < n; i++) lanes[i % 16] += cg_times64_((double)s->work[i], (double)s->work[i]);
        for (int l = 0; l < 16; l++) *norm += lanes[l];
        *norm = cg_sqrt_(*norm);
    }
    *status = CG_OK;
    return NULL;
}
static void cg_server_push_(cg_server *s, int from, const cg_msg_ *m, cg_verdict *v) {
    cg_server_seat *seat = &s->seat[from];
    const int rounds = cg_server_has_(&s->desc, CG_SERVER_ROUNDS_);
    double norm, factor = 1.0;
    cg_status status;
    const char *why;
    cg_fenv_ env;
    v->clock = m->clock;
    if (seat->state == CG_SEAT_HERE_ && seat->flags & CG_SEAT_HAS_LAST_ && m->clock == seat->last_clock &&
        m->clock < seat->clock) {
        seat->flags |= CG_SEAT_VERDICT_;
        v->kind = CG_VERDICT_DUPLICATE;
        return;
    }
    why = cg_push_wrong_(s, seat, m, &status);
    if (!why) v->staleness = s->version - m->version;
    if (!why && rounds && m->clock < s->round) {
        const int keep = (s->desc.flags & CG_SERVER_KEEP_LATE) != 0;
        cg_server_decide_(seat, v, keep ? CG_VERDICT_ROLLBACK : CG_VERDICT_LATE, s->round);
        s->late++;
        return;
    }
    if (!why) why = cg_push_decode_(s, from, m, &status, &norm);
    if (why) {
        s->refused++;
        cg_verdict_refuse_(v, status, why);
        if (seat->state == CG_SEAT_HERE_ && m->clock == seat->clock) { /* its gradient goes back into its memory */
            seat->flags |= CG_SEAT_VERDICT_ | CG_SEAT_REFUSED_ | CG_SEAT_WAITING_;
            seat->refusal = (uint32_t)status;
        } else seat->flags |= CG_SEAT_ASK_;
        return;
    }
    if (s->desc.norm_cap > 0.0f && norm > (double)s->desc.norm_cap) factor = (double)s->desc.norm_cap / norm;
    if (s->desc.flags & CG_SERVER_DAMPED) factor = factor / (1.0 + (double)v->staleness);
    env = cg_fenv_enter_();
    if (s->rows) {
        cg_axpby_(s->work, s->desc.n, (float)factor, 0.0f, s->rows + (size_t)s->arrived * s->desc.n);
    } else if (rounds) {
        cg_axpby_(s->work, s->desc.n, (float)((double)m->weight * factor), 1.0f, s->sum);
        s->round_weight += (double)m->weight;
    } else {
        v->weight = (float)((double)s->desc.rate * (double)m->weight * factor);
        cg_axpby_(s->work, s->desc.n, v->weight, 1.0f, s->delta);
    }
    cg_fenv_leave_(env);
    cg_server_decide_(seat, v, CG_VERDICT_ACCEPTED, m->clock + 1);
    s->accepted++;
    if (rounds) {
        s->arrived++;
        seat->flags |= CG_SEAT_IN_ROUND_;
    } else {
        status = cg_server_update_(s);
        (void)status; /* as in cg_server_settle_ */
    }
}
CG_API_ cg_status cg_server_feed(
    cg_server *s, uint64_t now, int from, const void *bytes, size_t len, cg_verdict *verdict) {
    cg_verdict own;
    cg_msg_ m;
    cg_status status;
    const char *why;
    if (!verdict) verdict = &own;
    memset(verdict, 0, sizeof *verdict);
    verdict->why = "ok";
    if (!s || !s->model || (len && !bytes)) return CG_E_ARG;
    if (!s->started) s->started = s->now = now;
    if (now > s->now) s->now = now;
    s->cursor = 0;
    for (int w = 0; w < s->desc.workers; w++) s->seat[w].piece = 0; /* what is half sent begins anew */
    if (len) {
        if (from < 0 || from >= s->desc.workers)
            cg_verdict_refuse_(verdict, CG_E_ARG, "there is no seat for this worker");
        else if ((why = cg_msg_get_(bytes, len, s->job, &m, &status)) != NULL) {
            cg_verdict_refuse_(verdict, status, why);
            s->seat[from].flags |= CG_SEAT_ASK_;
        } else {
            cg_server_seat *seat = &s->seat[from];
            if (seat->state == CG_SEAT_HERE_) seat->heard = s->now;
            if (m.kind == CG_MSG_HELLO_) {
                seat->heard = s->now;
                cg_server_hello_(s, seat, &m, verdict);
            } else if (m.kind == CG_MSG_PUSH_) cg_server_push_(s, from, &m, verdict);
            else if (m.kind == CG_MSG_LEAVE_) {
                seat->state = CG_SEAT_GONE_;
                seat->flags &= ~(uint32_t)(CG_SEAT_ASK_ | CG_SEAT_VERDICT_ | CG_SEAT_WELCOME_ | CG_SEAT_WAITING_);
                verdict->kind = CG_VERDICT_LEFT;
            } else {
                cg_verdict_refuse_(verdict, CG_E_CORRUPT, "workers send no such message");
                seat->flags |= CG_SEAT_ASK_;
            }
        }
    }
    cg_server_free_silent_(s);
    cg_server_settle_(s);
    return CG_OK;
}
