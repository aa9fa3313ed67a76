/* routes: which operator may take which route, and what follows from the choice

   Offers   cg_ex_resolve_, predicates on operators and routes (cg_is_f32_, cg_has_back_, cg_carry_floats_,
            cg_records_need_verdict_ ...)
   Needs    ranks, traits
   Touches  ex->plan; ex->status where a description is refused
   Other headers may use: cg_is_compressed_first_, cg_op_refusal_
   Everything here follows from desc, transport and n before any message, so that ranks with the same description come
   to the same plan; the opening compares what matters of it. */

/* Is D(C(x)) x in expectation, so that a sum may be encoded by it without a carry? */
static int cg_is_unbiased_(const cg_op *op) {
    const cg_stage *q = &op->quantize;
    if (op->sample.flags & CG_FLAG_UNSCALED) return 0;
    if (op->transform.id == CG_TRANSFORM_LOWRANK) return 0;
    if (op->select.id && op->select.id != CG_SELECT_WANGNI && op->select.id != CG_SELECT_WANGNIVAR &&
        op->select.id != CG_SELECT_BLOCKS)
        return 0;
    switch (q->id) {
    case 0: return 1;
    case CG_QUANTIZE_MINMAX:
    case CG_QUANTIZE_ABSMAX:
    case CG_QUANTIZE_LEVELS:
    case CG_QUANTIZE_DITHER:
    case CG_QUANTIZE_NATURAL: return !(q->flags & CG_FLAG_NEAREST);
    case CG_QUANTIZE_TERNGRAD: return !q->flags;
    case CG_QUANTIZE_LLOYD: return op->transform.arg >= 2; /* nearly, after two rounds of rotation */
    default: return 0;
    }
}
static int cg_is_f32_(const cg_op *op) { return !op->quantize.id; }
/* A selection of values of the vector itself, as f32, with indices of its own. */
static int cg_is_sparse_f32_(const cg_op *op) {
    return op->select.id && op->select.id != CG_SELECT_GIVEN && !op->sample.id && !op->transform.id && cg_is_f32_(op);
}
/* Does the selection leave about the number of values that its ratio asks for? */
static int cg_has_target_k_(const cg_op *op, const cg_traits_ *traits) {
    return traits->has_fixed_k || op->select.id == CG_SELECT_CHUNKED || op->select.id == CG_SELECT_DGC ||
        op->select.id == CG_SELECT_SIDCO;
}
/* Does the length of a packet follow from op and n? */
static int cg_has_fixed_len_(const cg_op *op, const cg_traits_ *traits) {
    if (op->code.arg || op->code.id == CG_CODE_GOLOMB || traits->has_user_codec || op->sample.id == CG_SAMPLE_PERMK)
        return 0;
    return !op->select.id || traits->has_fixed_k || op->select.id == CG_SELECT_CHUNKED;
}
/* Can cg_reduce add packets of desc.op? Levels only on a grid that is the same on all ranks. */
static int cg_is_reducible_(const cg_ex_ *ex, const cg_traits_ *traits) {
    const cg_op *op = &ex->desc.op;
    if (traits->shape.is_matrix || op->sample.id == CG_SAMPLE_PERMK || op->select.id == CG_SELECT_GIVEN ||
        traits->has_user_codec)
        return 0;
    if (cg_is_f32_(op)) return 1;
    return traits->max_level && !op->code.arg && !op->select.id &&
        ((ex->desc.flags & CG_AGREE_SCALES) || (ex->desc.side && ex->desc.side->scale));
}
static int cg_is_striped_(uint32_t route) { return route == CG_ROUTE_RING || route == CG_ROUTE_SCATTER; }
static int cg_has_back_(const cg_ex_ *ex) {
    return ex->desc.back && (ex->plan.route == CG_ROUTE_SERVER || ex->plan.route == CG_ROUTE_SCATTER);
}

/* CG_ROUTE_AUTO. bound: bytes of a packet. */
static uint32_t cg_auto_route_(const cg_ex_ *ex, const cg_traits_ *traits, size_t bound) {
    const cg_op *op = &ex->desc.op;
    const uint64_t allgather_bytes = cg_mul_sat_(bound, (uint64_t)ex->transport.size - 1);
    const int may_reencode = cg_is_unbiased_(op) || cg_is_reducible_(ex, traits) || ex->desc.carry;
    if (ex->desc.fold == CG_FOLD_CONTRIBUTORS || op->select.id == CG_SELECT_GIVEN || op->sample.id == CG_SAMPLE_PERMK ||
        op->k)
        return CG_ROUTE_ALLGATHER;
    if (op->transform.id == CG_TRANSFORM_LOWRANK) return CG_ROUTE_LINEAR;
    if (traits->shape.is_matrix) return CG_ROUTE_ALLGATHER;
    if (cg_is_f32_(op) && !op->select.id && !op->code.arg) return CG_ROUTE_LINEAR;
    if (!ex->transport.sendrecv || ex->transport.size <= 2 || allgather_bytes <= 65536 ||
        (ex->desc.side && ex->desc.side->scale))
        return CG_ROUTE_ALLGATHER;
    if (ex->desc.fold == CG_FOLD_VOTE) return CG_ROUTE_SCATTER;
    if (op->select.id)
        return cg_is_reducible_(ex, traits) && allgather_bytes > cg_mul_sat_(8, ex->n) ? CG_ROUTE_SCATTER
                                                                                       : CG_ROUTE_ALLGATHER;
    return may_reencode || ex->desc.back ? CG_ROUTE_SCATTER : CG_ROUTE_ALLGATHER;
}
/* The cg_refused_ functions return a sentence why the description is refused, or NULL. */
static const char *cg_refused_route_(const cg_ex_ *ex, const cg_traits_ *traits) {
    const cg_op *op = &ex->desc.op;
    const uint32_t route = ex->plan.route;
    const int indivisible = traits->shape.is_matrix || op->sample.id == CG_SAMPLE_PERMK ||
        op->select.id == CG_SELECT_GIVEN;
    if (!ex->transport.sendrecv && ex->transport.size > 1 &&
        (cg_is_striped_(route) || route == CG_ROUTE_TREE || route == CG_ROUTE_MERGE || route == CG_ROUTE_REGION))
        return "this route needs the sendrecv callback: give it, or take allgather, server, shared or linear";
    if (indivisible && (cg_is_striped_(route) || route == CG_ROUTE_TREE))
        return "matrices, PermK and given indices cannot be cut or added on the way: take allgather or server";
    if (op->select.id == CG_SELECT_GIVEN && route == CG_ROUTE_SERVER)
        return "given indices: take allgather, or the route shared";
    if (cg_is_striped_(route) && op->k) return "stripes: k counts values of the whole vector; give a ratio";
    if (cg_is_striped_(route) && ex->desc.side && ex->desc.side->scale)
        return "stripes have buckets of their own: agree on scales with CG_AGREE_SCALES";
    if (route == CG_ROUTE_MERGE || route == CG_ROUTE_REGION) {
        if (!cg_is_sparse_f32_(op) || op->code.arg || !cg_has_target_k_(op, traits) ||
            op->select.id == CG_SELECT_CHUNKED)
            return "merge and region keep the k largest: take topk, mstopk, dgc or sidco with f32 values";
        if (ex->desc.weight != 0.0f)
            return "merge and region have no weights: take allgather, server, scatter, shared or linear";
    }
    if (route == CG_ROUTE_SHARED && (!cg_is_sparse_f32_(op) || op->code.arg || !cg_has_target_k_(op, traits)))
        return "shared: take topk, mstopk, chunked, dgc or sidco with f32 values";
    if (route == CG_ROUTE_LINEAR &&
        (op->select.id || !cg_is_f32_(op) || op->code.arg || op->sample.id == CG_SAMPLE_PERMK ||
            op->transform.id == CG_TRANSFORM_ATOMO))
        return "linear adds f32 values of one place: take dense, random-k, a rotation or low-rank";
    return NULL;
}
static const char *cg_refused_fold_(const cg_ex_ *ex) {
    const cg_op *op = &ex->desc.op;
    if (ex->desc.fold == CG_FOLD_VOTE) {
        if (op->quantize.id != CG_QUANTIZE_SIGN || op->select.id || op->sample.id == CG_SAMPLE_PERMK)
            return "a vote is over cg_sign packets";
        if (ex->plan.route != CG_ROUTE_ALLGATHER && ex->plan.route != CG_ROUTE_SERVER &&
            ex->plan.route != CG_ROUTE_SCATTER)
            return "votes are counted by allgather, server or scatter";
        if (ex->desc.weight != 0.0f || ex->desc.back) return "a vote has no weights and no second operator";
    }
    if (ex->desc.fold == CG_FOLD_CONTRIBUTORS) {
        if (ex->plan.route != CG_ROUTE_ALLGATHER) return "contributors are counted by allgather";
        if (ex->desc.weight != 0.0f) return "a mean over contributors has no weights";
        if (op->select.id == CG_SELECT_GIVEN) return "given indices: every rank contributes; take the mean";
        if (op->sample.id == CG_SAMPLE_PERMK)
            return "PermK: one rank contributes to every value; take the mean (scaled) or the sum (unscaled)";
    }
    return NULL;
}
/* Floats of the sum that this rank encodes again or may have to: those of desc.carry. */
static size_t cg_carry_floats_(const cg_ex_ *ex) {
    if (ex->plan.exact || ex->desc.fold == CG_FOLD_VOTE) return 0;
    if (ex->plan.route == CG_ROUTE_RING || ex->plan.route == CG_ROUTE_TREE) return ex->n;
    if (ex->plan.route == CG_ROUTE_SCATTER) return cg_stripe_n_(ex, ex->transport.rank);
    return ex->plan.route == CG_ROUTE_SERVER &&
            (ex->plan.root == ex->transport.rank || ex->desc.leader == CG_LEADER_BY_SCORE)
        ? ex->n
        : 0;
}
/* A sum that is encoded again must stay exact, be encoded without bias, or leave its error in carry. */
static const char *cg_refused_loss_(const cg_ex_ *ex) {
    if (!cg_carry_floats_(ex) || ex->desc.carry || cg_is_unbiased_(&ex->plan.back)) return NULL;
    return "a biased operator would lose part of every sum it encodes: give carry (cg_exchange_carry floats), a back "
           "operator that loses nothing, or take allgather";
}
/* Ring and tree: is the partial sum decoded, added to and encoded again at every hop? */
static int cg_hops_reencode_(const cg_ex_ *ex) {
    return (ex->plan.route == CG_ROUTE_RING || ex->plan.route == CG_ROUTE_TREE) && !ex->plan.exact;
}
static const char *cg_refused_agreement_(const cg_ex_ *ex, const cg_traits_ *traits) {
    const cg_op *op = &ex->desc.op;
    if (!(ex->desc.flags & CG_AGREE_SCALES)) return NULL;
    if (!traits->max_level || op->quantize.id == CG_QUANTIZE_FLEX16 || op->select.id || op->code.arg ||
        op->sample.id == CG_SAMPLE_PERMK)
        return "only packed levels around zero have scales to agree on: absmax (2 to 8 bits), levels, terngrad, trits, "
               "flexpoint, without a selection or code";
    if (ex->desc.side && ex->desc.side->scale) return "scales are given and to be agreed on: which?";
    if (ex->plan.route == CG_ROUTE_LINEAR || ex->plan.route == CG_ROUTE_SHARED) return "f32 values have no scales";
    if (cg_hops_reencode_(ex))
        return "ring and tree cannot weigh levels of agreed scales: no weights, or take allgather, server or scatter";
    return NULL;
}
/* Room for the packet of any stripe, and scratch to compress it by desc.op or by back. bound and traits are those of
   desc.op for the whole vector; back_traits those of back, or NULL where back is desc.op. */
static void cg_plan_sizes_(cg_ex_ *ex, size_t bound, const cg_traits_ *traits, const cg_traits_ *back_traits) {
    const int striped = ex->plan.stripes > 1;
    ex->plan.packet_room = striped ? 0 : bound;
    ex->plan.scratch_bytes = striped ? 0 : traits->scratch_bytes;
    if (!striped && back_traits) cg_max_update_(&ex->plan.scratch_bytes, back_traits->scratch_bytes);
    for (int p = 0; striped && p < ex->plan.stripes; p++) {
        const size_t n = cg_stripe_n_(ex, p);
        if (p && n == cg_stripe_n_(ex, p - 1)) continue;
        bound = cg_bound_with(&ex->desc.op, ex->desc.side, n);
        if (ex->plan.packet_room < bound) ex->plan.packet_room = bound;
        cg_max_update_(&ex->plan.scratch_bytes, cg_traits_of_(&ex->desc.op, n).scratch_bytes);
        if (back_traits) cg_max_update_(&ex->plan.scratch_bytes, cg_traits_of_(&ex->plan.back, n).scratch_bytes);
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
/* Fills in ex->plan from desc, transport and n. A description that is refused sets ex->status and report.why, which the
   opening tells to all ranks; the plan is then incomplete. */
static void cg_ex_resolve_(cg_ex_ *ex) {
    const cg_op *op = &ex->desc.op;
    cg_traits_ traits, back_traits;
    const char *why;
    size_t bound;
    cg_status s;
    int own_back = 0; /* back is not desc.op */
    ex->plan.stripes = 1;
    ex->plan.route = ex->desc.route;
    if (ex->desc.route > CG_ROUTE_LINEAR || ex->desc.fold > CG_FOLD_CONTRIBUTORS ||
        (ex->desc.flags &
            ~(uint32_t)(CG_AGREE_SCALES | CG_ABSTAIN | CG_CONFIRM | CG_MAY_ABSTAIN | CG_FEEDS_BACK |
                CG_SECOND_ROUND_))) {
        cg_ex_fail_(ex, CG_E_ARG, ex->transport.rank, "unknown route, fold or flag");
        return;
    }
    if (!cg_is_finite_(ex->desc.weight) || (ex->desc.weight != 0.0f && !(ex->desc.weight >= 1.17549435e-38f)) ||
        !cg_is_finite_(ex->desc.score)) {
        cg_ex_fail_(ex, CG_E_ARG, ex->transport.rank,
            "weight and score must be finite, weight not negative or a denormal: what was lost is divided by it");
        return;
    }
    if (!cg_rate_ok_(&ex->desc)) {
        cg_ex_fail_(ex, CG_E_ARG, ex->transport.rank, "rate must be finite");
        return;
    }
    if (ex->desc.leader < CG_LEADER_BY_SCORE || ex->desc.leader > ex->transport.size) {
        cg_ex_fail_(ex, CG_E_ARG, ex->transport.rank, "leader is -1, 0 or a rank plus one");
        return;
    }
    bound = cg_bound_with(op, ex->desc.side, ex->n);
    if (!bound || (ex->desc.back && !cg_bound(ex->desc.back, ex->n))) {
        const cg_report refusal = cg_op_refusal_(bound ? ex->desc.back : op, bound ? NULL : ex->desc.side, ex->n);
        cg_ex_fail_here_(ex, CG_E_ARG, refusal.why, refusal.need, CG_NO_INDEX);
        return;
    }
    s = cg_extra_check_(op, ex->desc.side);
    if (s != CG_OK) {
        cg_ex_fail_(ex, s, ex->transport.rank, "side has something that this operator does not use");
        return;
    }
    traits = cg_traits_of_(op, ex->n);
    if (!(ex->desc.flags & CG_FEEDS_BACK) && ex->desc.fold != CG_FOLD_VOTE) ex->plan.warning = traits.biased_why;
    if (ex->plan.route == CG_ROUTE_AUTO) ex->plan.route = cg_auto_route_(ex, &traits, bound);
    ex->plan.stripes = cg_is_striped_(ex->plan.route) ? ex->transport.size : 1;
    ex->plan.root = ex->desc.leader > 0 ? ex->desc.leader - 1 : 0;
    if (ex->plan.route == CG_ROUTE_SHARED && ex->desc.leader == 0)
        ex->plan.root = cg_star_leader_(&ex->desc.tag, (uint64_t)ex->transport.size);
    ex->plan.is_matrix = traits.shape.is_matrix;
    ex->plan.transformed_n = traits.shape.transformed_n;
    ex->plan.has_pairs = cg_is_sparse_f32_(op) && !op->code.arg && traits.shape.values_per_index == 1;
    ex->plan.op_len_fixed = cg_has_fixed_len_(op, &traits) &&
        !(ex->plan.route == CG_ROUTE_ALLGATHER && (ex->desc.flags & CG_MAY_ABSTAIN));
    ex->plan.max_selected = op->select.id && !op->sample.id && !op->transform.id ? (size_t)traits.shape.max_selected
                                                                                 : 0;
    ex->plan.k = (size_t)traits.k;
    /* a sum that is not exact is encoded again by plan.back: desc.back, or dense where an owner sums decoded values, or
       desc.op */
    ex->plan.exact = cg_is_reducible_(ex, &traits) && ex->desc.weight == 0.0f && !cg_has_back_(ex);
    ex->plan.back = *op;
    back_traits = traits;
    if (ex->desc.fold != CG_FOLD_VOTE &&
        (cg_has_back_(ex) || ex->plan.route == CG_ROUTE_SERVER ||
            (ex->plan.route == CG_ROUTE_SCATTER && cg_is_reducible_(ex, &traits)))) {
        ex->plan.back = cg_has_back_(ex) ? *ex->desc.back : cg_dense();
        back_traits = cg_traits_of_(&ex->plan.back, ex->n);
        own_back = 1;
    }
    cg_plan_sizes_(ex, bound, &traits, own_back ? &back_traits : NULL);
    ex->plan.reduced_len_fixed = ex->plan.exact ? cg_is_f32_(op) && !op->select.id && !op->code.arg
                                                : cg_has_fixed_len_(&ex->plan.back, &back_traits);
    if (ex->plan.exact && !cg_is_f32_(op))
        ex->plan.max_level_sum = (uint64_t)traits.max_level * (uint64_t)ex->transport.size;
    why = cg_refused_route_(ex, &traits);
    if (!why) why = cg_refused_fold_(ex);
    if (!why && (ex->desc.flags & CG_ABSTAIN) &&
        (ex->plan.route != CG_ROUTE_ALLGATHER || ex->desc.fold > CG_FOLD_SUM || (ex->desc.flags & CG_AGREE_SCALES)))
        why = "to abstain is for allgather, with a mean or a sum and without agreed scales";
    if (!why) why = cg_refused_loss_(ex);
    if (!why) why = cg_refused_agreement_(ex, &traits);
    if (!why && cg_has_back_(ex) &&
        (back_traits.shape.is_matrix || ex->plan.back.sample.id == CG_SAMPLE_PERMK ||
            ex->plan.back.select.id == CG_SELECT_GIVEN || ex->plan.back.select.id == CG_SELECT_BINS ||
            ex->plan.back.select.id == CG_SELECT_VARIANCE || back_traits.has_user_codec))
        why = "the second leg is one vector on one rank: take a back operator that needs nothing else";
    if (!why && ex->plan.route == CG_ROUTE_SCATTER && !ex->plan.exact &&
        (ex->plan.back.select.id == CG_SELECT_BINS || ex->plan.back.select.id == CG_SELECT_VARIANCE))
        why = "a sum over ranks has no aux of its own: give a back operator, or take allgather or server";
    if (why) cg_ex_fail_(ex, CG_E_UNSUPPORTED, ex->transport.rank, why);
}
/* Do messages after the opening depend on what records of other ranks say, so that all must have seen all of them? By
   lengths of packets, or by who is the leader. */
static int cg_records_need_verdict_(const cg_ex_ *ex) {
    const uint32_t route = ex->plan.route;
    return (!ex->plan.op_len_fixed && (route == CG_ROUTE_ALLGATHER || route == CG_ROUTE_SERVER)) ||
        (ex->desc.leader == CG_LEADER_BY_SCORE && (route == CG_ROUTE_SERVER || route == CG_ROUTE_SHARED));
}
/* Is grad compressed by cg_exchange_start, before the opening? Otherwise the route does that, or sends no packet of
   it. */
static int cg_is_compressed_first_(const cg_ex_ *ex) {
    return !cg_hops_reencode_(ex) && ex->plan.route != CG_ROUTE_SHARED &&
        !(ex->plan.route == CG_ROUTE_LINEAR && ex->plan.is_matrix);
}
