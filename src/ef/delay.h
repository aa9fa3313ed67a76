/* delay: how much of the gradients waits in the residual, in the metric of an optimizer that divides by their size

   Offers   cg_ef_delay_count_, cg_ef_delay_forget_, cg_ef_delay_gradient_, cg_ef_delay_residual_
   Needs    kinds, residual8
   Touches  ef->second, ef->given, ef->delayed and stats.delay
   The residual is small beside the gradient, and may be huge where gradients are: under Adam a value counts divided by
   the root of the running mean v of its squared gradients. The number is the sum of |e| / sqrt(v) over that of
   |g| / sqrt(v), both running sums over steps, in a sample of lines of 8 values: one in 256, at least one line and at
   most 128. The mean begins at 0, so that v is divided by 1 - .999^steps. */

enum { CG_EF_DELAY_LINE_ = 8, CG_EF_DELAY_LINES_ = 128 };
static size_t cg_ef_delay_lines_(size_t n) {
    const size_t lines = n / 2048;
    return lines < 1 ? 1 : cg_min_(lines, CG_EF_DELAY_LINES_);
}
/* Floats of ef->second. */
static size_t cg_ef_delay_count_(const cg_ef_desc *d) {
    return cg_ef_has_trait_(d, CG_EF_HAS_NO_RESIDUAL_) ? 0
                                                       : cg_min_(d->n, CG_EF_DELAY_LINE_ * cg_ef_delay_lines_(d->n));
}
/* Where a line begins: anywhere in its part of the vector. *many: its values. */
static size_t cg_ef_delay_at_(size_t n, size_t line, size_t *many) {
    const size_t part = n / cg_ef_delay_lines_(n);
    *many = cg_min_(n, CG_EF_DELAY_LINE_);
    return line * part + (part > *many ? (size_t)(cg_mix64_(line + 1) % (part - *many + 1)) : 0);
}
/* About 1 / sqrt(v), within .2 %, and 0 where v is nearly 0. */
static float cg_ef_inverse_root_(float v) {
    float r;
    if (!(v > 1e-36f)) return 0.0f;
    r = cg_as_float_(0x5f3759dfu - (cg_as_bits_(v) >> 1));
    return cg_times_(r, cg_plus_(1.5f, -cg_times_(cg_times_(cg_times_(0.5f, v), r), r)));
}
static float cg_ef_abs_(float v) { return v < 0.0f ? -v : v; }
static void cg_ef_delay_forget_(cg_ef *ef) {
    if (ef->second) memset(ef->second, 0, 4 * cg_ef_delay_count_(&ef->desc));
    ef->given = ef->delayed = ef->second_weight = 0.0;
}
/* The gradient of a step, times scale as it enters the state. */
static void cg_ef_delay_gradient_(cg_ef *ef, const float *g, float scale) {
    const size_t n = ef->desc.n;
    double sum = 0.0;
    if (!ef->second) return;
    for (size_t line = 0, many; line < cg_ef_delay_lines_(n); line++) {
        const size_t at = cg_ef_delay_at_(n, line, &many);
        float *v = ef->second + line * CG_EF_DELAY_LINE_;
        for (size_t i = 0; i < many; i++) {
            const float value = cg_ef_abs_(cg_times_(scale, cg_load_(g, at + i)));
            if (!(value < 1e17f)) continue; /* its square is no float */
            v[i] = cg_plus_(cg_times_(0.999f, v[i]), cg_times_(0.001f, cg_times_(value, value)));
            sum += (double)cg_times_(value, cg_ef_inverse_root_(v[i]));
        }
    }
    ef->second_weight = cg_times64_(0.999, ef->second_weight) + 0.001;
    ef->given = cg_times64_(0.98, ef->given) + cg_times64_(sum, cg_sqrt_(ef->second_weight));
}
/* What the step has left in the residual. */
static void cg_ef_delay_residual_(cg_ef *ef) {
    const size_t n = ef->desc.n;
    double sum = 0.0;
    if (!ef->second) return;
    for (size_t line = 0, many; line < cg_ef_delay_lines_(n); line++) {
        const size_t at = cg_ef_delay_at_(n, line, &many);
        const float *v = ef->second + line * CG_EF_DELAY_LINE_;
        float e[CG_EF_DELAY_LINE_];
        if (ef->bytes) cg_residual8_read_(ef, at, many, e);
        else memcpy(e, cg_at_(ef->vector[0], at), 4 * many);
        for (size_t i = 0; i < many; i++) sum += (double)cg_times_(cg_ef_abs_(e[i]), cg_ef_inverse_root_(v[i]));
    }
    ef->delayed = cg_times64_(0.98, ef->delayed) + cg_times64_(sum, cg_sqrt_(ef->second_weight));
    ef->stats.delay = ef->given > 0.0 ? (float)(ef->delayed / ef->given) : 0.0f;
}
