/* report: how a call went, and where a vector is not finite

   Offers   cg_report_set_, cg_report_copy_outcome_, cg_first_nonfinite_
   Needs    bits
   Touches  the caller's report
   why is constant text: sentences with numbers are made by cg_report_print, in the caller's buffer. */

/* All other fields become 0, and rank -1. */
static void cg_report_set_(cg_report *r, cg_status status, const char *why, uint64_t need, uint64_t at) {
    memset(r, 0, sizeof *r);
    r->rank = -1;
    r->status = (uint32_t)status;
    r->why = why;
    r->need = need;
    r->at = at;
}
/* All that says how a call went, but not what it moved. */
CG_OFFERED_ void cg_report_copy_outcome_(cg_report *to, const cg_report *from) {
    to->rank = from->rank;
    to->code = from->code;
    to->why = from->why;
    to->status = from->status;
    to->need = from->need;
    to->at = from->at;
}
/* Index of the first NaN or Inf of x, or CG_NO_INDEX. For errors only: it goes from value to value. */
static uint64_t cg_first_nonfinite_(const float *x, size_t n) {
    for (size_t i = 0; x && i < n; i++)
        if (!cg_is_finite_(cg_load_(x, i))) return i;
    return CG_NO_INDEX;
}
