/* report: how the last call on a state went

   Offers   cg_ef_fail_, cg_ef_done_, cg_ef_op_why_, cg_ef_unready_why_; the public cg_ef_report
   Needs    cg_op_refusal_ of exchange
   Touches  the state's report
   Calls find out that something is wrong first, and look for the words only then. */

/* Returns s, which the report then has, too. */
static cg_status cg_ef_fail_(cg_ef *ef, cg_status s, const char *why, uint64_t need, uint64_t at) {
    cg_report_set_(&ef->report, s, why, need, at);
    return s;
}
static cg_status cg_ef_done_(cg_ef *ef) { return cg_ef_fail_(ef, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX); }
static const char *cg_ef_unready_why_(const cg_ef *ef) {
    return ef->pending ? "a step is pending: end it by cg_ef_commit or cg_ef_rollback first"
                       : "cg_ef_init has not been called, or was refused: desc.n is the number of values";
}
/* Is op what is wrong? Then the report says why, with the n that it takes. A codec of the user's is not known here. */
static int cg_ef_op_why_(cg_ef *ef, const cg_op *op, size_t n) {
    cg_report refusal;
    if (cg_op_traits_(op) & CG_IS_USER_CODEC_ && cg_op_check_(op) == CG_OK) return 0;
    refusal = cg_op_refusal_(op, NULL, n);
    if (refusal.status == CG_OK) return 0;
    cg_ef_fail_(ef, refusal.status == CG_E_VERSION ? CG_E_VERSION : CG_E_ARG, refusal.why, refusal.need, CG_NO_INDEX);
    return 1;
}
CG_API_ void cg_ef_report(const cg_ef *ef, cg_report *report) {
    if (ef && report) *report = ef->report;
}
