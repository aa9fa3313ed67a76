/* costs: rounds and bytes of each route behind the opening, for the choice of CG_ROUTE_AUTO

   Offers   cg_cost_of_ functions, which the rows of routes name
   Needs    routes, sums
   Touches  nothing
   Of the rank that has most of either; packets at their longest. A callback counts as the rounds of the tree that it
   stands for. What is told where lengths vary: an announcement and a receipt for a hop, tables and verdicts for all. */

static cg_cost_ cg_cost_make_(double rounds, double bytes) {
    cg_cost_ cost;
    cost.rounds = rounds;
    cost.bytes = bytes;
    return cost;
}
static double cg_others_(const cg_ex_ *ex) { return (double)(ex->transport.size - 1); }
/* Bytes of the reduced packet of the whole vector. */
static double cg_reduced_bytes_(const cg_ex_ *ex, const cg_lengths_ *len) {
    if (ex->plan.exact) return len->sum;
    return cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_) ? len->packet : (double)cg_bound(&ex->plan.back, ex->n);
}
/* Rounds in which lengths are told: of packets, two allgathers; of reduced ones likewise. */
static double cg_told_(const cg_ex_ *ex, const cg_lengths_ *len) {
    return ex->plan.op_len_fixed ? 0.0 : len->log_ranks;
}
static double cg_reduced_told_(const cg_ex_ *ex, const cg_lengths_ *len) {
    return ex->plan.reduced_len_fixed || cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_) ? 0.0 : 2.0 * len->log_ranks;
}
static cg_cost_ cg_cost_of_allgather_(const cg_ex_ *ex, const cg_lengths_ *len) {
    return cg_cost_make_(len->log_ranks + cg_told_(ex, len), cg_others_(ex) * len->packet);
}
static cg_cost_ cg_cost_of_ring_(const cg_ex_ *ex, const cg_lengths_ *len) {
    const double hop = ex->plan.reduced_len_fixed ? 1.0 : 3.0, others = cg_others_(ex);
    return cg_cost_make_(hop * others + len->log_ranks + cg_reduced_told_(ex, len),
        2.0 * others / (others + 1.0) * cg_reduced_bytes_(ex, len));
}
static cg_cost_ cg_cost_of_tree_(const cg_ex_ *ex, const cg_lengths_ *len) {
    const double hop = ex->plan.reduced_len_fixed ? 1.0 : 3.0;
    return cg_cost_make_(hop * len->log_ranks + len->log_ranks + cg_reduced_told_(ex, len),
        2.0 * len->log_ranks * cg_reduced_bytes_(ex, len));
}
static cg_cost_ cg_cost_of_scatter_(const cg_ex_ *ex, const cg_lengths_ *len) {
    const double others = cg_others_(ex);
    return cg_cost_make_(others + len->log_ranks + 2.0 * cg_told_(ex, len) + cg_reduced_told_(ex, len),
        others / (others + 1.0) * (len->packet + cg_reduced_bytes_(ex, len)));
}
static cg_cost_ cg_cost_of_server_(const cg_ex_ *ex, const cg_lengths_ *len) {
    const double others = cg_others_(ex);
    return cg_cost_make_(others + len->log_ranks + cg_told_(ex, len) + cg_reduced_told_(ex, len),
        others * len->packet + len->log_ranks * cg_reduced_bytes_(ex, len));
}
static cg_cost_ cg_cost_of_merge_(const cg_ex_ *ex, const cg_lengths_ *len) {
    (void)ex;
    return cg_cost_make_(6.0 * len->log_ranks, 2.0 * len->log_ranks * len->packet);
}
/* An allreduce of m floats; by a callback as by halving, and over allgather or broadcast as that moves them. */
static cg_cost_ cg_cost_of_sum_(const cg_ex_ *ex, size_t m, double log_ranks) {
    const uint32_t sum = cg_sum_kind_(ex, m);
    if (sum == CG_SUM_GATHER) return cg_cost_make_(log_ranks, cg_others_(ex) * 4.0 * (double)m);
    return cg_sum_cost_(sum == CG_SUM_CALLBACK ? (uint32_t)CG_SUM_HALVING : sum, ex->transport.size, m);
}
static cg_cost_ cg_cost_of_shared_(const cg_ex_ *ex, const cg_lengths_ *len) {
    const size_t k = ex->plan.max_selected;
    const double copies = ex->transport.sendrecv || ex->transport.broadcast ? len->log_ranks : cg_others_(ex);
    cg_cost_ cost = cg_cost_of_sum_(ex, k, len->log_ranks);
    cost.rounds += len->log_ranks + 2.0 * cg_told_(ex, len);
    cost.bytes += copies * (len->packet - 4.0 * (double)k);
    return cost;
}
static cg_cost_ cg_cost_of_region_(const cg_ex_ *ex, const cg_lengths_ *len) {
    const double others = cg_others_(ex), tables = 2.0 * 8.0 * (others + 1.0) + 4.0 * (double)(int)CG_COUNT_BYTES_;
    return cg_cost_make_(others + 10.0 * len->log_ranks, others * tables + 2.0 * others / (others + 1.0) * len->packet);
}
static cg_cost_ cg_cost_of_linear_(const cg_ex_ *ex, const cg_lengths_ *len) {
    return cg_cost_of_sum_(ex, (size_t)ex->plan.transformed_n, len->log_ranks);
}
