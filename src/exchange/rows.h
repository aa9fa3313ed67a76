/* rows: the tables of routes and folds

   Offers   cg_route_row_of_, cg_fold_row_of_, cg_is_known_; the public names of routes and folds
   Needs    routes (what a row holds), and the rooms of all routes, whose functions the rows name
   Touches  nothing
   A row stands at the place of its id. A new route is a row here, beside its id and its room. */

#define CG_REFUSAL_LARGEST_ "merge and region keep the k largest: take topk, mstopk, dgc or sidco with f32 values"
static const cg_route_row_ cg_route_rows_[] = {
    { CG_ROUTE_AUTO, "auto", 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL }, /* resolved before a row is asked for */
    { CG_ROUTE_ALLGATHER, "allgather", CG_ROUTE_PACKETS_MEET_ | CG_ROUTE_MEETS_EVERYWHERE_ | CG_ROUTE_READS_LENGTHS_,
        NULL, NULL, cg_plan_allgather_, cg_route_allgather_, cg_write_allgather_, NULL, cg_cost_of_allgather_ },
    { CG_ROUTE_RING, "ring", CG_ROUTE_SENDS_ | CG_ROUTE_STRIPES_ | CG_ROUTE_ADDS_ON_THE_WAY_ | CG_ROUTE_HOPS_, NULL,
        NULL, cg_plan_ring_, cg_route_ring_, cg_write_ring_, NULL, cg_cost_of_ring_ },
    { CG_ROUTE_TREE, "tree", CG_ROUTE_SENDS_ | CG_ROUTE_ADDS_ON_THE_WAY_ | CG_ROUTE_HOPS_, NULL, NULL, cg_plan_tree_,
        cg_route_tree_, cg_write_tree_, NULL, cg_cost_of_tree_ },
    { CG_ROUTE_SCATTER, "scatter",
        CG_ROUTE_SENDS_ | CG_ROUTE_STRIPES_ | CG_ROUTE_ADDS_ON_THE_WAY_ | CG_ROUTE_HAS_OWNER_ | CG_ROUTE_PACKETS_MEET_ |
            CG_ROUTE_TELLS_LENGTHS_,
        NULL, NULL, cg_plan_owner_, cg_route_scatter_, cg_write_scatter_, NULL, cg_cost_of_scatter_ },
    { CG_ROUTE_SERVER, "server",
        CG_ROUTE_HAS_OWNER_ | CG_ROUTE_PACKETS_MEET_ | CG_ROUTE_HAS_LEADER_ | CG_ROUTE_READS_LENGTHS_,
        cg_accepts_server_, "given indices: take allgather, or the route shared", cg_plan_owner_, cg_route_server_,
        cg_write_server_, NULL, cg_cost_of_server_ },
    { CG_ROUTE_MERGE, "merge", CG_ROUTE_SENDS_ | CG_ROUTE_NEEDS_INDICES_ | CG_ROUTE_HAS_NO_WEIGHTS_,
        cg_accepts_largest_, CG_REFUSAL_LARGEST_, cg_plan_merge_, cg_route_merge_, cg_write_reduced_, NULL,
        cg_cost_of_merge_ },
    { CG_ROUTE_SHARED, "shared",
        CG_ROUTE_ALLREDUCES_ | CG_ROUTE_NEEDS_INDICES_ | CG_ROUTE_HAS_LEADER_ | CG_ROUTE_LEADS_IN_TURN_ |
            CG_ROUTE_COMPRESSES_LATER_,
        cg_accepts_pairs_, "shared: take topk, mstopk, chunked, dgc or sidco with f32 values", cg_plan_shared_,
        cg_route_shared_, cg_write_shared_, NULL, cg_cost_of_shared_ },
    { CG_ROUTE_REGION, "region",
        CG_ROUTE_SENDS_ | CG_ROUTE_NEEDS_INDICES_ | CG_ROUTE_TELLS_COUNTS_ | CG_ROUTE_HAS_NO_WEIGHTS_,
        cg_accepts_largest_, CG_REFUSAL_LARGEST_, cg_plan_region_, cg_route_region_, cg_write_region_, NULL,
        cg_cost_of_region_ },
    { CG_ROUTE_LINEAR, "linear", CG_ROUTE_ALLREDUCES_, cg_accepts_linear_,
        "linear adds f32 values of one place: take dense, random-k, a rotation or low-rank, none of them private",
        cg_plan_linear_, cg_route_linear_, cg_write_linear_, NULL, cg_cost_of_linear_ },
    { CG_ROUTE_REDUCE_SCATTER, "reduce_scatter",
        CG_ROUTE_SENDS_ | CG_ROUTE_STRIPES_ | CG_ROUTE_ADDS_ON_THE_WAY_ | CG_ROUTE_PACKETS_MEET_ |
            CG_ROUTE_TELLS_LENGTHS_ | CG_ROUTE_ENDS_AT_OWNER_,
        NULL, NULL, cg_plan_reduce_scatter_, cg_route_scatter_, cg_write_reduce_scatter_, NULL, NULL },
    { CG_ROUTE_ALL_GATHER, "all_gather", CG_ROUTE_STRIPES_ | CG_ROUTE_ADDS_ON_THE_WAY_ | CG_ROUTE_BEGINS_AT_OWNER_,
        NULL, NULL, cg_plan_all_gather_, cg_route_all_gather_, cg_write_all_gather_, cg_compress_mine_, NULL },
};
static const cg_fold_row_ cg_fold_rows_[] = {
    { CG_FOLD_MEAN, "mean", CG_FOLD_IS_LINEAR_ | CG_FOLD_DIVIDES_, NULL, NULL, NULL },
    { CG_FOLD_SUM, "sum", CG_FOLD_IS_LINEAR_, NULL, NULL, NULL },
    { CG_FOLD_VOTE, "vote", CG_FOLD_NEEDS_SIGNS_, cg_refuse_vote_, cg_vote_of_inputs_, NULL },
    { CG_FOLD_CONTRIBUTORS, "contributors", CG_FOLD_DIVIDES_ | CG_FOLD_NEEDS_PLACES_, cg_refuse_contributors_,
        cg_mean_of_contributors_, NULL },
    { CG_FOLD_MEDIAN, "median", CG_FOLD_DIVIDES_ | CG_FOLD_IS_ROBUST_, cg_refuse_median_, NULL, cg_fold_median_ },
    { CG_FOLD_TRIMMED, "trimmed", CG_FOLD_DIVIDES_ | CG_FOLD_IS_ROBUST_, cg_refuse_trimmed_, NULL, cg_fold_trimmed_ },
    { CG_FOLD_CLIPPED, "clipped", CG_FOLD_DIVIDES_ | CG_FOLD_IS_ROBUST_, cg_refuse_clipped_, NULL, cg_fold_clipped_ },
    { 0, "", 0, NULL, NULL, NULL }, /* of a fold that is not known, and refused */
};
enum {
    CG_ROUTE_COUNT_ = sizeof cg_route_rows_ / sizeof cg_route_rows_[0],
    CG_FOLD_COUNT_ = sizeof cg_fold_rows_ / sizeof cg_fold_rows_[0] - 1
};
static const cg_route_row_ *cg_route_row_of_(uint32_t route) {
    return &cg_route_rows_[route < CG_ROUTE_COUNT_ ? route : 0];
}
static const cg_fold_row_ *cg_fold_row_of_(uint32_t fold) {
    return &cg_fold_rows_[fold < CG_FOLD_COUNT_ ? fold : (uint32_t)CG_FOLD_COUNT_];
}
static int cg_is_known_(uint32_t route, uint32_t fold) { return route < CG_ROUTE_COUNT_ && fold < CG_FOLD_COUNT_; }
CG_API_ const char *cg_route_name(uint32_t route) {
    return route < CG_ROUTE_COUNT_ ? cg_route_rows_[route].name : NULL;
}
CG_API_ const char *cg_fold_name(uint32_t fold) { return fold < CG_FOLD_COUNT_ ? cg_fold_rows_[fold].name : NULL; }
CG_API_ cg_status cg_route_parse(uint32_t *route, const char *text) {
    return cg_name_parse_(route, text, cg_route_name);
}
CG_API_ cg_status cg_fold_parse(uint32_t *fold, const char *text) { return cg_name_parse_(fold, text, cg_fold_name); }
