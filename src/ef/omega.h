/* omega: the variance w of an unbiased operator, E|C(x) - x|^2 <= w |x|^2, and the scale that bounds a residual

   Offers   cg_omega_, cg_ef_scale_
   Needs    kinds; error and resolve of core
   Touches  nothing
   The operator must be legal. w is 0 for biased operators. The residual of an operator with w >= 1
   would grow without bound, so p is divided by 1 + w, which makes the operator contractive. */

static double cg_omega_(const cg_op *op, const cg_resolved_ *r) {
    return (r->segments_hash ? r->inflation[0] : cg_inflation_(op, &r->plan, 0)) - 1.0;
}
/* The factor of p and of the residual for this operator, in (0, 1]: 1 / (1 + w) where w >= 1, else 1. DIANA and SIGNUM
   take operators as they are. */
static float cg_ef_scale_(const cg_ef_desc *d, const cg_op *op, const cg_resolved_ *r) {
    double w;
    if (cg_ef_has_trait_(d, CG_EF_TAKES_OP_AS_IS_)) return 1.0f;
    w = (r->segments_hash ? r->inflation[1] : cg_inflation_(op, &r->plan, 1)) - 1.0;
    return w < 1.0 ? 1.0f : (float)(1.0 / (1.0 + w));
}
