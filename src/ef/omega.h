/* omega: the variance w of an unbiased operator, E|C(x) - x|^2 <= w |x|^2, and the scale that bounds a residual

   Offers   cg_omega_, cg_ef_scale_
   Needs    kinds; shape of core
   Touches  nothing
   The operator must be legal (cg_op_check_). w is 0 for biased operators. The residual of an operator with w >= 1
   would grow without bound, so p is divided by 1 + w, which makes the operator contractive. */

static double cg_min_f64_(double a, double b) { return a < b ? a : b; }
/* w of a quantizer alone, for k values. */
static double cg_omega_quantize_(const cg_stage *q, double k) {
    const double bucket = q->size && (double)q->size < k ? (double)q->size : k, root = cg_sqrt_(bucket),
                 s = (double)q->arg;
    const double levels = q->id == CG_QUANTIZE_LEVELS ? s : (double)((1 << (q->arg & 15)) - 1);
    double lowest_level = 1.0; /* DITHER: its smallest level but 0, a power of 1/2 */
    if (q->flags & CG_FLAG_NEAREST) return 0.0;
    switch (q->id) {
    case CG_QUANTIZE_ABSMAX:
        if (q->arg == 1) return bucket;
        return q->arg == 2 ? (root - 1.0) / 2.0
                           : bucket / (4.0 * ((double)(1 << (q->arg - 1)) - 1.0) * ((double)(1 << (q->arg - 1)) - 1.0));
    case CG_QUANTIZE_MINMAX: return bucket / (2.0 * levels * levels);
    case CG_QUANTIZE_LEVELS:
        if (!(q->flags & CG_FLAG_MAX)) return cg_min_f64_(bucket / (s * s), root / s);
        return q->arg == 1 ? (root - 1.0) / 2.0 : bucket / (4.0 * s * s);
    case CG_QUANTIZE_TERNGRAD: return q->flags & CG_FLAG_CLIP ? 0.0 : (root - 1.0) / 2.0;
    case CG_QUANTIZE_DITHER:
        for (int i = 2; i < 1 << (q->arg - 1); i++) lowest_level *= 0.5;
        return 0.125 + root * lowest_level;
    case CG_QUANTIZE_NATURAL: return 0.125;
    case CG_QUANTIZE_LLOYD: return q->value < 2.0f ? 0.571 : q->value < 3.0f ? 0.133 : 0.036;
    default: return 0.0;
    }
}
/* w of the whole operator on n values: the stages' factors 1 + w are multiplied. */
static double cg_omega_(const cg_op *op, size_t n) {
    const cg_shape_ shape = cg_shape_of_(op, n);
    double inflation = 1.0; /* E|C(x)|^2 <= inflation |x|^2 */
    if (!n || !shape.transformed_n) return 0.0;
    if (op->sample.id && !(op->sample.flags & CG_FLAG_UNSCALED))
        inflation *= op->sample.id == CG_SAMPLE_PERMK ? (double)op->sample.size : (double)n / (double)shape.sampled_n;
    if (op->transform.id == CG_TRANSFORM_ATOMO) {
        const double rank_ratio = cg_min_f64_((double)shape.rows, (double)shape.cols) / (double)shape.r;
        inflation *= rank_ratio > 1.0 ? rank_ratio : 1.0;
    }
    if (op->select.id == CG_SELECT_WANGNI) inflation *= 1.0 / (double)op->select.value;
    if (op->select.id == CG_SELECT_WANGNIVAR) inflation *= 1.0 + (double)op->select.value;
    return inflation * (1.0 + cg_omega_quantize_(&op->quantize, (double)shape.max_selected)) - 1.0;
}
/* Whether every value stays closer to itself than the largest magnitude of its bucket. Then the residual cannot grow,
   whatever w is. transformed: a transform comes before the quantizer. */
static int cg_quantizer_is_contractive_(const cg_stage *q, int transformed) {
    const unsigned min_bits = transformed ? 3 : 2; /* after a rotation the bound holds for the mean of squares */
    if (q->id == CG_QUANTIZE_ABSMAX) return q->arg >= 3;
    if (q->id == CG_QUANTIZE_MINMAX) return q->arg >= min_bits && !(q->flags & CG_FLAG_NORM);
    return q->id == CG_QUANTIZE_LEVELS && (q->flags & CG_FLAG_MAX) && q->arg >= 2;
}
/* The factor of p and of the residual for this operator, in (0, 1]: 1 / (1 + w) where w >= 1, else 1. DIANA and SIGNUM
   take operators as they are. */
static float cg_ef_scale_(const cg_ef_desc *d, const cg_op *op) {
    cg_op rest = *op;
    double w;
    if (d->kind == CG_EF_DIANA || d->kind == CG_EF_SIGNUM) return 1.0f;
    if (cg_quantizer_is_contractive_(&op->quantize, op->transform.id != 0))
        memset(&rest.quantize, 0, sizeof rest.quantize);
    w = cg_omega_(&rest, d->n);
    return w < 1.0 ? 1.0f : (float)(1.0 / (1.0 + w));
}
