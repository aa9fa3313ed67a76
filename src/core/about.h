/* about: what an operator does to a vector of n values, before it does it

   Offers   cg_op_about
   Needs    base, stages, plan, packet, compress (sizes, refusals), error, text, traits (cg_biased_why_)
   Touches  *about */

/* Bits of the values and indices of a packet in which count values are kept; for a code of values the most. Of Golomb
   codes the expectation, if each of the universe is an index with the same probability. */
static double cg_body_bits_(const cg_op *op, const cg_plan_ *plan, uint64_t count) {
    cg_layout_ lay;
    uint64_t bytes = 0;
    const uint64_t indices = cg_index_count_(plan, count);
    const uint32_t code = cg_index_code_(op, plan, indices);
    if (cg_layout_sizes_(op, NULL, count, &lay, &bytes) != CG_OK) return -1.0;
    if (code == CG_CODE_GOLOMB && indices) {
        const double share = (double)indices / (double)plan->universe;
        const unsigned b = cg_rice_parameter_(plan->universe, indices);
        double miss = 1.0 - share; /* 2^b times in a row: one more bit. It may be rounded to 1 */
        for (unsigned i = 0; i < b; i++) miss *= miss;
        bytes += cg_word_bytes_((uint64_t)cg_min_f64_(
            (double)indices * ((double)b + 1.0 / (1.0 - miss)), 8.0 * (double)cg_rice_bound_(plan->universe, indices)));
    } else bytes += cg_index_bytes_(code, plan->universe, indices);
    return 8.0 * (double)bytes;
}
/* Values in a packet, of which a selection keeps about so many. */
static uint64_t cg_about_count_(const cg_plan_ *plan, double count) {
    if (!(plan->traits & CG_IS_SELECTION_) || plan->traits & CG_KEEPS_EXACTLY_) return plan->max_selected;
    return (uint64_t)(cg_min_f64_(count, (double)plan->max_selected) + 0.5);
}
/* Bits per value of x, and whether all packets are equally long; count: values that the selection keeps, or -1. */
static void cg_about_size_(const cg_op *op, const cg_plan_ *plan, double count, cg_about *about) {
    const int exact = !cg_has_indices_(plan) || plan->traits & CG_KEEPS_EXACTLY_;
    const uint64_t n = plan->n;
    double bits;
    about->fixed_size = exact && !op->code.arg &&
        !(plan->traits & (CG_IS_USER_CODEC_ | CG_NEEDS_SUPPORT_ | CG_INDEX_LENGTH_VARIES_ | CG_LENGTH_VARIES_));
    about->bits = -1.0;
    if (count < 0.0 || plan->traits & CG_IS_USER_CODEC_) return;
    bits = cg_body_bits_(op, plan, cg_about_count_(plan, count));
    if (plan->traits & CG_IS_PER_RANK_ && n % op->sample.size) { /* a rank may have one value fewer */
        const double share = (double)(n % op->sample.size) / (double)op->sample.size;
        cg_plan_ fewer = *plan;
        double bits_of_fewer;
        fewer.sampled_n--;
        cg_plan_resume_(&fewer, op);
        bits_of_fewer = cg_body_bits_(op, &fewer, cg_about_count_(&fewer, count));
        about->fixed_size = about->fixed_size && bits == bits_of_fewer;
        bits = share * bits + (1.0 - share) * bits_of_fewer;
    }
    about->bits = bits / (double)n;
}
/* Why op cannot have n values, into why; 0: it can. A codec of the caller's is not asked. */
static int cg_about_refusal_(const cg_op *op, size_t n, cg_text_ *why) {
    cg_op known;
    uint64_t need = 0;
    const char *reason;
    memset(&known, 0, sizeof known);
    if (op) known = *op;
    if (op && cg_is_user_codec_(&op->quantize) && cg_op_check_(op) == CG_OK)
        memset(&known.quantize, 0, sizeof known.quantize);
    reason = cg_bound_why_(op ? &known : NULL, NULL, n, &need);
    if (!reason && op) reason = cg_op_only_old_(op);
    if (!reason) return 0;
    cg_text_str_(why, reason);
    if (need) {
        cg_text_str_(why, ": this one takes n = ");
        cg_text_uint_(why, need);
    }
    return 1;
}
static cg_status cg_op_about_(const cg_op *op, size_t n, cg_about *about) {
    cg_plan_ plan;
    cg_error_ e;
    cg_text_ why;
    const char *stalls;
    memset(about, 0, sizeof *about);
    about->omega = about->delta = about->bits = -1.0;
    why.at = about->why;
    why.end = about->why + sizeof about->why - 1;
    if (cg_about_refusal_(op, n, &why)) return op && cg_op_left_out_(op) ? CG_E_VERSION : CG_E_ARG;
    plan = cg_plan_of_(op, n);
    memset(&e, 0, sizeof e);
    if (n) {
        cg_op_error_(op, &plan, &e);
        cg_about_size_(op, &plan, e.count, about);
    } else {
        about->fixed_size = !(plan.traits & CG_IS_USER_CODEC_);
        about->bits = about->fixed_size ? 0.0 : -1.0;
    }
    stalls = e.bound == 0.0 ? NULL : cg_biased_why_(op);
    about->unbiased = !e.is_biased || e.bound == 0.0;
    about->needs_memory = stalls != NULL;
    about->omega = e.bound;
    about->delta = e.bound < 0.0 || e.data_decides ? -1.0 : e.bound < 1.0 ? 1.0 - e.bound : 0.0;
    cg_text_str_(&why,
        stalls ? stalls
            : plan.traits & CG_IS_USER_CODEC_
            ? "ok; a codec of yours makes the values: only you know its error and size"
            : e.bound < 0.0 ? "ok; how large the error is depends on the data"
                            : "ok");
    return CG_OK;
}
CG_API_ cg_status cg_op_about(const cg_op *op, size_t n, cg_about *about) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = about ? cg_op_about_(op, n, about) : CG_E_ARG;
    cg_fenv_leave_(env);
    return s;
}
