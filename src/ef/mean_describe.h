/* mean_describe: what a mean does, in words

   Offers   the public cg_mean_describe
   Needs    mean, mean_words
   Touches  the caller's text
   The first line is a configuration, and the others are comments of one, so that all of it opens the same mean. */

static void cg_mean_describe_factor_(cg_text_ *t, double factor) {
    cg_text_uint_(t, (uint64_t)factor);
    if (factor < 100.0) cg_text_char_(t, '.');
    if (factor < 100.0) cg_text_uint_(t, (uint64_t)(factor * 10.0) % 10);
}
/* " as topk:0.01, 78.0 times fewer bits than f32" */
static void cg_mean_describe_op_(cg_text_ *t, const cg_op *op, size_t n) {
    char text[CG_MEAN_OP_TEXT_ + 64];
    cg_about about;
    if (cg_op_print(op, text, sizeof text) != CG_OK) return;
    cg_text_str_(t, " as ");
    cg_text_str_(t, text);
    if (cg_op_about(op, n, &about) != CG_OK || !(about.bits > 0.0)) return;
    cg_text_str_(t, ", ");
    cg_mean_describe_factor_(t, 32.0 / about.bits);
    cg_text_str_(t, " times fewer bits than f32");
    cg_text_str_(t, about.unbiased ? ", unbiased" : ", biased");
}
static void cg_mean_describe_tensor_(const cg_mean *m, size_t i, cg_text_ *t) {
    const cg_mean_tensor_ *tensor = &m->tensor[i];
    cg_ef *ef = cg_mean_state_of_(m, i);
    const cg_ef_desc *d = ef ? &ef->desc : NULL;
    const int is_small = ef && (m->config.packing ? m->pack_op[i] == CG_SEGMENT_EXACT : tensor->n < d->small);
    const cg_op dense = cg_dense();
    cg_exchange_state x;
    cg_op op;
    cg_text_str_(t, "\n# ");
    cg_mean_tensor_name_(t, i, tensor->name);
    if (!d) {
        cg_text_str_(t, ": no values, so it takes no part");
        return;
    }
    cg_text_str_(t, ": ");
    if (tensor->rows > 1) {
        cg_text_uint_(t, tensor->rows);
        cg_text_str_(t, " x ");
        cg_text_uint_(t, tensor->n / tensor->rows);
        cg_text_str_(t, " = ");
    }
    cg_text_uint_(t, tensor->n);
    cg_text_str_(t, " values");
    op = d->op;
    if (is_small || cg_same_op_(&op, &dense)) {
        cg_text_str_(t, is_small ? " as exact f32, because it is small" : " as exact f32");
        return;
    }
    cg_mean_describe_op_(t, &op, tensor->n);
    cg_mean_resolve_(m, ef, d->dense_steps + d->warmup.stages * (d->warmup.period ? d->warmup.period : 1), i,
        m->transport.rank, 0, &x);
    cg_text_str_(t, "; by ");
    cg_text_str_(t, cg_route_name(x.plan.route));
    if (m->config.packing) cg_text_str_(t, ", in one packet with the others");
    if (ef->carry) cg_text_str_(t, ", whose second leg has a memory of its own");
}
CG_API_ cg_status cg_mean_describe(const cg_mean *mean, char *text, size_t cap) {
    cg_fenv_ env;
    cg_text_ t = cg_mean_text_(text, cap);
    int is_cut;
    if (text && cap) text[0] = 0;
    if (!mean || !text) return CG_E_ARG;
    if (mean->magic != CG_MEAN_MAGIC_) return CG_E_STATE;
    if (!cap) return CG_E_CAPACITY;
    env = cg_fenv_enter_();
    cg_mean_config_print_(&mean->config, &t);
    cg_text_str_(&t, "\n# rank ");
    cg_text_uint_(&t, (uint64_t)mean->transport.rank);
    cg_text_str_(&t, " of ");
    cg_text_uint_(&t, (uint64_t)mean->transport.size);
    cg_text_str_(&t, ", ");
    cg_text_uint_(&t, mean->steps);
    cg_text_str_(&t, " steps made");
    if (mean->config.optimizer) {
        cg_text_str_(&t, "\n# ");
        cg_text_str_(&t, cg_mean_optimizer_at_(mean->config.optimizer)->says);
    }
    if (mean->config.ef.dense_steps) {
        cg_text_str_(&t, "\n# the first ");
        cg_text_uint_(&t, mean->config.ef.dense_steps);
        cg_text_str_(&t, " steps are dense");
    }
    for (size_t i = 0; i < mean->tensors; i++) cg_mean_describe_tensor_(mean, i, &t);
    cg_text_char_(&t, '\n');
    is_cut = t.at == t.end;
    *t.at = 0;
    cg_fenv_leave_(env);
    return is_cut ? CG_E_CAPACITY : CG_OK;
}
