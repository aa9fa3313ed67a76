/* routes: which operator may take which route, and what follows from the choice

   Offers   cg_ex_resolve_, traits of routes and folds, predicates on operators and routes (cg_has_back_,
            cg_carry_floats_, cg_records_need_verdict_ ...)
   Needs    ranks, core's resolve; the tables themselves are in exchange/rows.h, behind the functions that they name
   Touches  ex->plan; ex->status where a description is refused
   Other headers may use: cg_carry_first_, cg_carry_floats_, cg_fold_row_of_, cg_is_compressed_first_, cg_op_refusal_,
   cg_route_row_of_
   Everything here follows from desc, transport and n before any message, so that ranks with the same description come
   to the same plan; the opening compares what matters of it. */

/* What routes are like. Where code depends on the route it asks for a trait, so that a new route is a row in
   exchange/rows.h, and a room with what the row names. */
enum {
    CG_ROUTE_SENDS_ = 1 << 0,            /* needs sendrecv */
    CG_ROUTE_STRIPES_ = 1 << 1,          /* every rank has a stripe of the vector, and each has a packet of its own */
    CG_ROUTE_ADDS_ON_THE_WAY_ = 1 << 2,  /* packets are cut, or added before all have met */
    CG_ROUTE_HOPS_ = 1 << 3,             /* a partial sum goes from rank to rank, and is encoded by each unless exact */
    CG_ROUTE_HAS_OWNER_ = 1 << 4,        /* an owner adds packets and sends the sum back, by desc.back if it is given */
    CG_ROUTE_PACKETS_MEET_ = 1 << 5,     /* all packets of a stripe meet on one rank, which can fold them as packets */
    CG_ROUTE_MEETS_EVERYWHERE_ = 1 << 6, /* ... on every rank: a rank may abstain, contributors can be counted */
    CG_ROUTE_ALLREDUCES_ = 1 << 7,       /* f32 values are summed by an allreduce */
    CG_ROUTE_NEEDS_INDICES_ = 1 << 8,    /* takes nothing but selections */
    CG_ROUTE_HAS_LEADER_ = 1 << 9,       /* messages depend on who leads */
    CG_ROUTE_LEADS_IN_TURN_ = 1 << 10,   /* with desc.leader 0 another rank leads in every step */
    CG_ROUTE_READS_LENGTHS_ = 1 << 11,   /* packets that have no fixed length have that of the opening records */
    CG_ROUTE_TELLS_LENGTHS_ = 1 << 12,   /* ... have that of a table from every rank */
    CG_ROUTE_TELLS_COUNTS_ = 1 << 13,    /* every rank sends a table in any case */
    CG_ROUTE_HAS_NO_WEIGHTS_ = 1 << 14,  /* desc.weight must be 0 */
    CG_ROUTE_COMPRESSES_LATER_ = 1 << 15, /* the coroutine compresses, not cg_exchange_start */
    CG_ROUTE_ENDS_AT_OWNER_ = 1 << 16,    /* every rank gets the fold of its stripe */
    CG_ROUTE_BEGINS_AT_OWNER_ = 1 << 17   /* every rank has a stripe, which goes to all */
};
struct cg_arena_;
/* What the cost of a route follows from: at most. */
typedef struct cg_lengths_ {
    double packet, sum; /* bytes of a packet of the whole vector, and of the sum of all ranks' */
    double log_ranks;   /* log2 N, rounded up: rounds of an allgather or a broadcast */
} cg_lengths_;
/* A route: which operators it takes, what of mem it needs, the coroutine that moves its messages and makes sure that
   all is there and right, and what it writes then, which cannot fail. The coroutine returns CG_OK when its last message
   is moved, with this rank's outcome in ex->status; any other status: all ranks have stopped. */
typedef struct cg_route_row_ {
    uint32_t id;
    const char *name; /* in text */
    uint32_t traits;
    int (*accepts)(const cg_ex_ *ex); /* desc.op, whose traits are in plan */
    const char *refusal;              /* what a report says if it does not; NULL if it always does */
    void (*plan)(cg_ex_ *ex, struct cg_arena_ *arena, uint64_t *scratch); /* see cg_mem_plan_ */
    cg_status (*move)(cg_ex_ *ex);
    cg_status (*write)(cg_ex_ *ex);
    void (*compress)(cg_ex_ *ex); /* before the opening; NULL: all stripes of grad */
    /* rounds and bytes behind the opening, of the rank that has most; NULL: CG_ROUTE_AUTO does not take the route */
    cg_cost_ (*cost)(const cg_ex_ *ex, const cg_lengths_ *len);
} cg_route_row_;
/* What folds are like. */
enum {
    CG_FOLD_IS_LINEAR_ = 1 << 0,   /* a sum with factors: packets may be added in any order and place */
    CG_FOLD_DIVIDES_ = 1 << 1,     /* by the sum of weights */
    CG_FOLD_NEEDS_SIGNS_ = 1 << 2, /* the values are +-1, and so is the result */
    CG_FOLD_IS_ROBUST_ = 1 << 4,   /* compares what ranks have sent, value by value or as a whole */
    CG_FOLD_NEEDS_PLACES_ = 1 << 3 /* the result depends on where each rank has sent values; dense, it is a mean */
};
typedef struct cg_fold_row_ {
    uint32_t id;
    const char *name; /* in text */
    uint32_t traits;
    const char *(*refuse)(const cg_ex_ *ex); /* a sentence why, or NULL */
    cg_status (*reduce)(cg_ex_ *ex); /* reduced.packet = the fold of ex->inputs; NULL: not a packet of their kind */
    void (*combine)(cg_ex_ *ex, size_t n); /* ex->mem.rows, N rows of n, to one; NULL: the weighted sum is the fold */
} cg_fold_row_;
/* The row of a known route or fold; of another one that has no traits. In exchange/rows.h. */
static const cg_route_row_ *cg_route_row_of_(uint32_t route);
static const cg_fold_row_ *cg_fold_row_of_(uint32_t fold);
static int cg_is_known_(uint32_t route, uint32_t fold);

static int cg_route_has_(const cg_ex_ *ex, uint32_t traits) {
    return (cg_route_row_of_(ex->plan.route)->traits & traits) != 0;
}
static int cg_fold_has_(const cg_ex_ *ex, uint32_t traits) {
    return (cg_fold_row_of_(ex->desc.fold)->traits & traits) != 0;
}
/* What a sum with weights is divided by, from the opening on. */
static double cg_divisor_(const cg_ex_ *ex) {
    return cg_fold_has_(ex, CG_FOLD_DIVIDES_) ? ex->opening.weight_sum : 1.0;
}
/* The factor of a rank's values in the result: its weight, or its share of all weights. */
static float cg_alpha_(const cg_ex_ *ex, size_t rank) {
    return (float)((double)cg_weight_of_(ex, rank) / cg_divisor_(ex));
}
/* Values of the vector itself, as f32 and without a code, with indices of their own. */
static int cg_is_sparse_f32_(const cg_op *op, uint32_t traits) {
    return (traits & (CG_IS_SELECTION_ | CG_NEEDS_SUPPORT_)) == CG_IS_SELECTION_ && traits & CG_IS_F32_ &&
        !op->sample.id && !op->transform.id && !op->code.arg;
}
/* All values, as f32. */
static int cg_is_dense_f32_(const cg_op *op, uint32_t traits) {
    return traits & CG_IS_F32_ && !(traits & CG_IS_SELECTION_) && !op->code.arg;
}
/* Does the length of a packet follow from op and n? */
static int cg_has_fixed_len_(const cg_op *op, uint32_t traits) {
    if (op->code.arg || traits & (CG_IS_USER_CODEC_ | CG_IS_PER_RANK_ | CG_INDEX_LENGTH_VARIES_ | CG_LENGTH_VARIES_))
        return 0;
    return !(traits & CG_IS_SELECTION_) || traits & CG_KEEPS_EXACTLY_;
}
/* Can cg_reduce add packets of desc.op? Levels only on a grid that is the same on all ranks. */
static int cg_is_reducible_(const cg_ex_ *ex, const cg_resolved_ *r) {
    const uint32_t traits = r->plan.traits;
    if (r->segments_hash) return 0;
    if (traits & (CG_IS_MATRIX_ | CG_IS_PER_RANK_ | CG_IS_PRIVATE_ | CG_NEEDS_SUPPORT_ | CG_IS_USER_CODEC_)) return 0;
    if (traits & CG_IS_F32_) return 1;
    return r->max_level && !ex->desc.op.code.arg && !(traits & CG_IS_SELECTION_) &&
        ((ex->desc.flags & CG_AGREE_SCALES) || (ex->desc.side && ex->desc.side->scale));
}
static int cg_has_back_(const cg_ex_ *ex) { return ex->desc.back && cg_route_has_(ex, CG_ROUTE_HAS_OWNER_); }

/* The cg_refused_ functions return a sentence why the description is refused, or NULL. */
static const char *cg_refused_route_(const cg_ex_ *ex) {
    const cg_route_row_ *row = cg_route_row_of_(ex->plan.route);
    if (!ex->transport.sendrecv && ex->transport.size > 1 && row->traits & CG_ROUTE_SENDS_)
        return "this route needs the sendrecv callback: give it, or take allgather, server, shared or linear";
    if (ex->plan.traits & (CG_IS_MATRIX_ | CG_IS_PER_RANK_ | CG_NEEDS_SUPPORT_) &&
        row->traits & CG_ROUTE_ADDS_ON_THE_WAY_)
        return "matrices, PermK and given indices cannot be cut or added on the way: take allgather or server";
    if (row->traits & CG_ROUTE_STRIPES_ && ex->desc.op.k)
        return "stripes: k counts values of the whole vector; give a ratio";
    if (row->traits & CG_ROUTE_STRIPES_ && ex->desc.side && ex->desc.side->scale)
        return "stripes have buckets of their own: agree on scales with CG_AGREE_SCALES";
    if (ex->desc.flags & CG_CORRELATED && !(row->traits & CG_ROUTE_PACKETS_MEET_))
        return "correlated rounding is for packets that are added once, and these are encoded again at every hop or "
               "not "
               "rounded: take allgather, server or scatter";
    if (row->refusal && !row->accepts(ex)) return row->refusal;
    if (row->traits & CG_ROUTE_HAS_NO_WEIGHTS_ && ex->desc.weight != 0.0f)
        return "merge and region have no weights: take allgather, server, scatter, shared or linear";
    return NULL;
}
/* Floats of the sum that this rank encodes again or may have to: those of desc.carry. */
static size_t cg_carry_floats_(const cg_ex_ *ex) {
    if (ex->plan.exact || cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_)) return 0;
    if (cg_route_has_(ex, CG_ROUTE_BEGINS_AT_OWNER_)) return cg_stripe_n_(ex, ex->transport.rank);
    if (cg_route_has_(ex, CG_ROUTE_HOPS_)) return ex->n;
    if (!cg_route_has_(ex, CG_ROUTE_HAS_OWNER_)) return 0;
    if (cg_route_has_(ex, CG_ROUTE_STRIPES_)) return cg_stripe_n_(ex, ex->transport.rank);
    return ex->plan.root == ex->transport.rank || ex->desc.leader == CG_LEADER_BY_SCORE ? ex->n : 0;
}
/* Where in the vector desc.carry begins: *first, which stays as it is where carry is of the whole vector. */
CG_OFFERED_ void cg_carry_first_(uint32_t route, const cg_transport *t, size_t n, size_t *first) {
    const uint32_t traits = cg_route_row_of_(route)->traits;
    if (traits & CG_ROUTE_STRIPES_ && traits & CG_ROUTE_HAS_OWNER_)
        *first = cg_stripe_offset_(n, (size_t)t->size, (size_t)t->rank);
}
/* A sum that is encoded again must stay exact, be encoded without bias, or leave its error in carry. */
static const char *cg_refused_loss_(const cg_ex_ *ex, int back_is_unbiased) {
    if (!cg_carry_floats_(ex) || ex->desc.carry || back_is_unbiased || cg_route_has_(ex, CG_ROUTE_BEGINS_AT_OWNER_))
        return NULL;
    return "a biased operator would lose part of every sum it encodes: give carry (cg_exchange_carry floats), a back "
           "operator that loses nothing, or take allgather";
}
/* Ring and tree: is the partial sum decoded, added to and encoded again at every hop? */
static int cg_hops_reencode_(const cg_ex_ *ex) { return cg_route_has_(ex, CG_ROUTE_HOPS_) && !ex->plan.exact; }
static const char *cg_refused_agreement_(const cg_ex_ *ex, uint32_t max_level) {
    if (!(ex->desc.flags & CG_AGREE_SCALES)) return NULL;
    if (!max_level || max_level > 127 || ex->desc.op.code.arg ||
        ex->plan.traits & (CG_IS_SELECTION_ | CG_IS_PER_RANK_ | CG_IS_PRIVATE_))
        return "only packed levels around zero have scales to agree on: absmax (2 to 8 bits), levels, terngrad, trits, "
               "flexpoint, without a selection, a code, or a sample or rotation of each rank's own";
    if (ex->desc.side && ex->desc.side->scale) return "scales are given and to be agreed on: which?";
    if (cg_route_has_(ex, CG_ROUTE_ALLREDUCES_)) return "f32 values have no scales";
    if (cg_hops_reencode_(ex))
        return "ring and tree cannot weigh levels of agreed scales: no weights, or take allgather, server or scatter";
    return NULL;
}
/* Room for the packet of any stripe, and scratch to compress it by desc.op or by back. r is desc.op's for the whole
   vector; back that of plan.back, or NULL where that is desc.op. */
static void cg_plan_sizes_(cg_ex_ *ex, const cg_resolved_ *r, const cg_resolved_ *back) {
    const int striped = ex->plan.stripes > 1;
    cg_resolved_ stripe;
    ex->plan.packet_room = striped ? 0 : r->bound;
    ex->plan.scratch_bytes = striped ? 0 : r->scratch_bytes;
    if (!striped && back) cg_max_update_(&ex->plan.scratch_bytes, back->scratch_bytes);
    for (int p = 0; striped && p < ex->plan.stripes; p++) {
        const size_t n = cg_stripe_n_(ex, p);
        if (p && n == cg_stripe_n_(ex, p - 1)) continue;
        if (cg_resolve_(&ex->desc.op, ex->desc.side, n, &stripe) != CG_OK) continue; /* it is, for the whole vector */
        if (ex->plan.packet_room < stripe.bound) ex->plan.packet_room = stripe.bound;
        cg_max_update_(&ex->plan.scratch_bytes, stripe.scratch_bytes);
        if (back && cg_resolve_(&ex->plan.back, NULL, n, &stripe) == CG_OK)
            cg_max_update_(&ex->plan.scratch_bytes, stripe.scratch_bytes);
    }
}
/* STAR: ranks lead in turn, from step to step, and within a step from layer to layer. */
static int cg_star_leader_(const cg_tag *tag, uint64_t ranks) {
    return (int)((tag->step % ranks + tag->tensor % ranks) % ranks);
}
/* What is wrong with an operator whose bound is 0, as cg_compress_with says it; CG_OK: its bound is not 0. */
static cg_report cg_op_refusal_(const cg_op *op, const cg_extra *side, size_t n) {
    const float unread = 0.0f;
    cg_extra extra = CG_ZERO;
    cg_report report;
    uint8_t packet;
    size_t len;
    cg_status s = CG_OK;
    cg_report_set_(&report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    if (cg_bound_with(op, side, n)) return report;
    if (side) extra = *side;
    extra.report = &report;
    s = cg_compress_with(op, NULL, &extra, &unread, n, &packet, 0, &len, NULL, 0);
    (void)s; /* the report has it */
    return report;
}
/* Why this rank may not abstain, if it means to. */
static const char *cg_refused_abstention_(const cg_ex_ *ex) {
    if (!(ex->desc.flags & CG_ABSTAIN) ||
        (cg_route_has_(ex, CG_ROUTE_MEETS_EVERYWHERE_) && cg_fold_has_(ex, CG_FOLD_IS_LINEAR_) &&
            !(ex->desc.flags & CG_AGREE_SCALES)))
        return NULL;
    return "to abstain is for allgather, with a mean or a sum and without agreed scales";
}
/* What does not go with a single leg, as a sentence, or NULL. */
static const char *cg_refused_leg_(const cg_ex_ *ex) {
    const cg_exchange_desc *d = &ex->desc;
    const int begins = cg_route_has_(ex, CG_ROUTE_BEGINS_AT_OWNER_);
    if (!begins && !cg_route_has_(ex, CG_ROUTE_ENDS_AT_OWNER_))
        return d->mine ? "mine is for the routes reduce_scatter and all_gather" : NULL;
    if (d->back) return "there is one leg, and op is its operator: back must be NULL";
    if (begins && (d->weight != 0.0f || d->fold || d->model || d->flags & CG_AGREE_SCALES))
        return "all_gather adds nothing: it has no weight, fold, model or agreed scales";
    return NULL;
}
/* Packets with segments are decoded where they meet, and not cut or added on the way. */
static const char *cg_refused_segments_(const cg_ex_ *ex) {
    const uint32_t route = cg_route_row_of_(ex->plan.route)->traits;
    if (!ex->plan.segments_hash) return NULL;
    if (!(route & CG_ROUTE_PACKETS_MEET_) || route & CG_ROUTE_STRIPES_)
        return "segments travel by allgather or server: other routes cut packets, or add them on the way";
    if (!cg_fold_has_(ex, CG_FOLD_IS_LINEAR_)) return "segments are folded by mean or sum";
    if (ex->desc.flags & CG_AGREE_SCALES) return "segments have scales of their own: leave CG_AGREE_SCALES out";
    return NULL;
}
/* What can be wrong with a description whose operators are good, as a sentence. r: of desc.op; back: of plan.back. */
static const char *cg_refused_(const cg_ex_ *ex, const cg_resolved_ *r, const cg_resolved_ *back) {
    const uint32_t back_needs = CG_NEEDS_SUPPORT_ | CG_NEEDS_AUX_ | CG_IS_USER_CODEC_;
    const cg_fold_row_ *fold = cg_fold_row_of_(ex->desc.fold);
    const char *why = cg_refused_leg_(ex);
    if (!why) why = cg_refused_segments_(ex);
    if (!why) why = cg_refused_route_(ex);
    if (!why && fold->refuse) why = fold->refuse(ex);
    if (!why) why = cg_refused_abstention_(ex);
    if (!why) why = cg_refused_loss_(ex, back->is_unbiased);
    if (!why) why = cg_refused_agreement_(ex, r->max_level);
    if (!why && cg_has_back_(ex) && back->plan.traits & (CG_IS_MATRIX_ | CG_IS_PER_RANK_ | back_needs))
        why = "the second leg is one vector on one rank: take a back operator that needs nothing else";
    if (!why && cg_route_has_(ex, CG_ROUTE_HAS_OWNER_) && !ex->plan.exact && back->plan.traits & CG_NEEDS_AUX_)
        why = "a sum over ranks has no aux of its own: give a back operator, or take allgather or server";
    return why;
}
static const char *cg_bad_bounds_(const cg_ex_ *ex) {
    const uint32_t leg = CG_ROUTE_BEGINS_AT_OWNER_ | CG_ROUTE_ENDS_AT_OWNER_;
    const size_t *b = ex->desc.bounds, ranks = cg_ranks_(ex), me = (size_t)ex->transport.rank;
    const size_t mine = b ? b[me + 1] - b[me]
                          : cg_stripe_offset_(ex->n, ranks, me + 1) - cg_stripe_offset_(ex->n, ranks, me);
    if (mine && ex->desc.flags & CG_NEEDS_MINE_ && !ex->desc.mine) return "mine is NULL";
    if (!b) return NULL;
    if (!(cg_route_row_of_(ex->desc.route)->traits & leg))
        return "bounds are for the routes reduce_scatter and all_gather";
    for (size_t r = 0; r < ranks; r++)
        if (b[0] || b[r] > b[r + 1] || b[ranks] != ex->n) return "bounds must begin with 0, not fall, and end with n";
    return NULL;
}
/* Is a field of the description out of range? A sentence, or NULL. */
static const char *cg_bad_field_(const cg_ex_ *ex) {
    const cg_exchange_desc *d = &ex->desc;
    const uint32_t flags = CG_AGREE_SCALES | CG_ABSTAIN | CG_CONFIRM | CG_MAY_ABSTAIN | CG_FEEDS_BACK | CG_CORRELATED |
        CG_TOGETHER | CG_IN_PLACE | CG_ONE_PACKET | CG_SECOND_ROUND_ | CG_NEEDS_MINE_ | CG_MAKES_PACKET_;
    if (!cg_is_known_(d->route, d->fold) || (d->flags & ~flags)) return "unknown route, fold or flag";
    if (!cg_is_finite_(d->weight) || (d->weight != 0.0f && !(d->weight >= 1.17549435e-38f)) || !cg_is_finite_(d->score))
        return "weight and score must be finite, weight not negative or a denormal: what was lost is divided by it";
    if (!cg_rate_ok_(d)) return "rate must be finite";
    if (!(d->alpha >= 0.0 && d->alpha < 1e30) || !(d->beta >= 0.0 && d->beta < 1e30))
        return "alpha and beta are seconds, and seconds per byte: finite and not negative";
    if (d->sum > CG_SUM_HALVING) return "sum is CG_SUM_AUTO, _RING, _TREE, _DOUBLING or _HALVING";
    if (d->sum && !ex->transport.sendrecv && ex->transport.size > 1)
        return "this way to sum needs the sendrecv callback: give it, or take CG_SUM_AUTO";
    if (d->fold_limit != 0.0f && !(cg_fold_row_of_(d->fold)->traits & CG_FOLD_IS_ROBUST_))
        return "fold_limit is for the folds trimmed and clipped: it must be 0";
    if (d->residual) return "residual is for cg_exchange_levels: for one exchange cg_ef_exchange keeps it";
    if (!CG_RESERVE_IS_ZERO_(d->reserved)) return "desc.reserved must be 0: start from CG_ZERO";
    if (d->leader < CG_LEADER_BY_SCORE || d->leader > ex->transport.size) return "leader is -1, 0 or a rank plus one";
    return cg_bad_bounds_(ex);
}
/* What of ex->plan follows from the route, but for sizes. *back becomes what plan.back resolves to. Returns whether
   that is another operator than desc.op. */
static int cg_plan_route_(cg_ex_ *ex, const cg_resolved_ *r, cg_resolved_ *back) {
    const cg_op *op = &ex->desc.op;
    int own_back;
    ex->plan.stripes = cg_route_has_(ex, CG_ROUTE_STRIPES_) ? ex->transport.size : 1;
    ex->plan.root = ex->desc.leader > 0 ? ex->desc.leader - 1 : 0;
    if (cg_route_has_(ex, CG_ROUTE_LEADS_IN_TURN_) && ex->desc.leader == 0)
        ex->plan.root = cg_star_leader_(&ex->desc.tag, (uint64_t)ex->transport.size);
    ex->plan.direct = cg_route_has_(ex, CG_ROUTE_ALLREDUCES_) && cg_is_dense_f32_(op, r->plan.traits) &&
        !op->sample.id && !op->transform.id && !r->segments_hash;
    ex->plan.op_len_fixed = !r->segments_hash && cg_has_fixed_len_(op, r->plan.traits) &&
        !(cg_route_has_(ex, CG_ROUTE_MEETS_EVERYWHERE_) && (ex->desc.flags & CG_MAY_ABSTAIN));
    /* a sum that is not exact is encoded again by plan.back: desc.back, or dense where an owner sums decoded values, or
       desc.op */
    ex->plan.exact = cg_is_reducible_(ex, r) && ex->desc.weight == 0.0f && !cg_has_back_(ex) &&
        !cg_fold_has_(ex, CG_FOLD_IS_ROBUST_) && !cg_route_has_(ex, CG_ROUTE_BEGINS_AT_OWNER_);
    own_back = !cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_) && cg_route_has_(ex, CG_ROUTE_HAS_OWNER_) &&
        (ex->desc.back || !cg_route_has_(ex, CG_ROUTE_STRIPES_) || cg_is_reducible_(ex, r));
    ex->plan.back = !own_back ? *op : ex->desc.back ? *ex->desc.back : cg_dense();
    *back = *r;
    if (own_back && cg_resolve_(&ex->plan.back, NULL, ex->n, back) != CG_OK) *back = *r; /* it has a bound */
    ex->plan.back_traits = back->plan.traits;
    ex->plan.reduced_len_fixed = ex->plan.exact ? cg_is_dense_f32_(op, r->plan.traits)
                                                : cg_has_fixed_len_(&ex->plan.back, back->plan.traits);
    return own_back;
}
static void cg_choose_(cg_ex_ *ex, const char *why, double seconds, uint32_t instead, double instead_seconds) {
    ex->plan.choice = why;
    ex->plan.seconds = seconds;
    ex->plan.instead = instead;
    ex->plan.instead_seconds = instead_seconds;
}
/* CG_ROUTE_AUTO, where no rule says it: of all routes that take the description, the one that costs least. A route that
   may drop what op has kept has to save more than a quarter. Nothing here depends on what may differ between ranks. */
static uint32_t cg_cheapest_route_(cg_ex_ *ex, const cg_resolved_ *r) {
    const uint32_t flags = ex->desc.flags;
    uint32_t best[2] = { CG_ROUTE_ALLGATHER, 0 }, drops, take, other;
    double seconds[2] = { 0.0, 0.0 };
    cg_lengths_ len;
    cg_resolved_ back;
    len.packet = (double)r->bound;
    len.sum = (double)r->bound;
    len.log_ranks = (double)(cg_log2_((uint64_t)ex->transport.size - 1) + 1);
    if (ex->desc.op.select.id) {
        const uint64_t k = cg_mul_sat_((uint64_t)ex->transport.size, r->plan.max_selected);
        len.sum = (double)cg_sparse_packet_bound_(
            r->plan.transformed_n, k < r->plan.transformed_n ? k : r->plan.transformed_n);
    }
    ex->desc.flags &= ~(uint32_t)CG_ABSTAIN; /* of this rank alone */
    for (ex->plan.route = 1; cg_route_name(ex->plan.route); ex->plan.route++) {
        const cg_route_row_ *row = cg_route_row_of_(ex->plan.route);
        double cost;
        if (!row->cost || ((flags & CG_MAY_ABSTAIN) && !(row->traits & CG_ROUTE_MEETS_EVERYWHERE_))) continue;
        cg_plan_route_(ex, r, &back);
        if (cg_refused_(ex, r, &back) || cg_hops_reencode_(ex)) continue;
        cost = cg_seconds_(ex, row->cost(ex, &len));
        drops = (row->traits & CG_ROUTE_NEEDS_INDICES_) != 0;
        if (seconds[drops] == 0.0 || cost < seconds[drops]) {
            best[drops] = ex->plan.route;
            seconds[drops] = cost;
        }
    }
    ex->desc.flags = flags;
    take = best[1] && seconds[1] < 0.75 * seconds[0];
    other = best[!take];
    cg_choose_(ex,
        take         ? "auto: saves more than a quarter of the time; what this route drops is not in report.used"
            : !other ? "auto: the least time of the routes that take this operator"
            : seconds[1] < seconds[0] ? "auto: the least time of routes that drop nothing; dropping saves too little"
                                      : "auto: the least time",
        seconds[take], other, seconds[!take]);
    return best[take];
}
static uint32_t cg_auto_route_(cg_ex_ *ex, const cg_resolved_ *r) {
    const uint32_t traits = r->plan.traits;
    cg_cost_ allgather;
    if (cg_fold_has_(ex, CG_FOLD_NEEDS_PLACES_ | CG_FOLD_IS_ROBUST_) || r->segments_hash ||
        traits & (CG_NEEDS_SUPPORT_ | CG_IS_PER_RANK_) || ex->desc.op.k ||
        (traits & CG_IS_MATRIX_ && !(traits & CG_IS_LINEAR_MATRIX_))) {
        cg_choose_(ex, "auto: all packets have to meet, for this fold or operator", 0.0, 0, 0.0);
        return CG_ROUTE_ALLGATHER;
    }
    if (traits & CG_IS_LINEAR_MATRIX_ || (cg_is_dense_f32_(&ex->desc.op, traits) && !(traits & CG_IS_PRIVATE_))) {
        cg_choose_(ex, "auto: f32 values of one place, which an allreduce adds", 0.0, 0, 0.0);
        return CG_ROUTE_LINEAR;
    }
    /* no other route takes as few rounds */
    allgather.rounds = 0.0;
    allgather.bytes = (double)r->bound * (ex->transport.size - 1);
    if (ex->transport.size > 2 && cg_seconds_(ex, allgather) > cg_round_seconds_(ex)) return cg_cheapest_route_(ex, r);
    cg_choose_(ex, "auto: no route takes fewer rounds, and packets are short or ranks are two", 0.0, 0, 0.0);
    return CG_ROUTE_ALLGATHER;
}
/* Fills in ex->plan from desc, transport and n. *r becomes what desc.op resolves to, unless known says that it is that
   already. A description that is refused sets ex->status and report.why, which the
   opening tells to all ranks; the plan is then incomplete. */
static void cg_ex_resolve_(cg_ex_ *ex, cg_resolved_ *r, int known) {
    const cg_op *op = &ex->desc.op;
    cg_resolved_ back;
    const char *why = cg_bad_field_(ex);
    int own_back; /* back is not desc.op */
    ex->plan.stripes = 1;
    ex->plan.route = ex->desc.route;
    if (why) {
        cg_ex_fail_(ex, CG_E_ARG, ex->transport.rank, why);
        return;
    }
    ex->resolved = r;
    if (!known && cg_resolve_(op, ex->desc.side, ex->n, r) != CG_OK) r->bound = 0;
    if (!r->bound || (ex->desc.back && !cg_bound(ex->desc.back, ex->n))) {
        const cg_report refusal = cg_op_refusal_(r->bound ? ex->desc.back : op, r->bound ? NULL : ex->desc.side, ex->n);
        cg_ex_fail_here_(
            ex, refusal.status == CG_E_VERSION ? CG_E_VERSION : CG_E_ARG, refusal.why, refusal.need, CG_NO_INDEX);
        return;
    }
    if (r->extra_status != CG_OK) {
        cg_ex_fail_(ex, r->extra_status, ex->transport.rank, "side has something that this operator does not use");
        return;
    }
    ex->plan.traits = r->plan.traits;
    ex->plan.segments_hash = r->segments_hash;
    if (!(ex->desc.flags & CG_FEEDS_BACK) && !cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_)) ex->plan.warning = r->warning;
    ex->plan.transformed_n = r->plan.transformed_n;
    ex->plan.left_floats = r->rows * r->r;
    ex->plan.has_pairs = !r->segments_hash && cg_is_sparse_f32_(op, r->plan.traits) && r->plan.values_per_index == 1;
    ex->plan.max_selected = op->select.id ? (size_t)r->plan.max_selected : 0;
    ex->plan.k = (size_t)r->target_k;
    if (!ex->plan.route) ex->plan.route = cg_auto_route_(ex, r);
    if (cg_route_has_(ex, CG_ROUTE_BEGINS_AT_OWNER_))
        ex->plan.warning = ex->desc.carry || r->is_unbiased || cg_is_dense_f32_(op, r->plan.traits)
            ? NULL
            : "ok; what op leaves out of mine, no rank gets: give carry, and it is in the next stripe";
    own_back = cg_plan_route_(ex, r, &back);
    cg_plan_sizes_(ex, r, own_back ? &back : NULL);
    if (ex->plan.exact && !(r->plan.traits & CG_IS_F32_))
        ex->plan.max_level_sum = (uint64_t)r->max_level * (uint64_t)ex->transport.size;
    why = cg_refused_(ex, r, &back);
    if (why) cg_ex_fail_(ex, CG_E_UNSUPPORTED, ex->transport.rank, why);
}
/* Do messages after the opening depend on what records of other ranks say, so that all must have seen all of them? By
   lengths of packets, or by who is the leader. */
static int cg_records_need_verdict_(const cg_ex_ *ex) {
    return (!ex->plan.op_len_fixed && cg_route_has_(ex, CG_ROUTE_READS_LENGTHS_)) ||
        (ex->desc.leader == CG_LEADER_BY_SCORE && cg_route_has_(ex, CG_ROUTE_HAS_LEADER_));
}
/* Is grad compressed by cg_exchange_start, before the opening? Otherwise the route does that, or sends no packet of
   it: an allreduce of factors. */
static int cg_is_compressed_first_(const cg_ex_ *ex) {
    return !ex->plan.direct && !cg_hops_reencode_(ex) && !cg_route_has_(ex, CG_ROUTE_COMPRESSES_LATER_) &&
        !(cg_route_has_(ex, CG_ROUTE_ALLREDUCES_) && ex->plan.traits & CG_IS_MATRIX_);
}
