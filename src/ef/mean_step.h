/* mean_step: a step of a mean, all or nothing

   Offers   the public cg_mean_step, cg_mean_step_flat, cg_mean_step_with
   Needs    mean, exchange
   Touches  the mean, the gradients
   The exchanges of all tensors fail together (CG_TOGETHER) and are confirmed before anything is written. States are
   copied before the step, as p takes the residual's place, and copied back if it fails. */

static void cg_mean_backup_(cg_mean *m) {
    for (size_t i = 0; i < m->tensors; i++) {
        cg_mean_tensor_ *t = &m->tensor[i];
        if (!t->ef) continue;
        *t->before = *t->ef;
        memcpy(t->backup, t->kept, t->kept_bytes);
    }
}
static void cg_mean_restore_(cg_mean *m) {
    for (size_t i = 0; i < m->tensors; i++) {
        cg_mean_tensor_ *t = &m->tensor[i];
        if (!t->ef) continue;
        *t->ef = *t->before;
        memcpy(t->kept, t->backup, t->kept_bytes);
    }
}
/* The sentence of a step that has failed: the tensor, then what the report says of it, and what to do. */
CG_NOINLINE_ void cg_mean_step_why_(cg_mean *m, size_t tensor) {
    char text[400];
    cg_text_ t = cg_mean_text_(m->why, sizeof m->why);
    cg_status printed;
    if (m->report.status == CG_E_MISMATCH) {
        if (m->report.rank >= 0) cg_text_str_(&t, "rank ");
        if (m->report.rank >= 0) cg_text_uint_(&t, (uint64_t)m->report.rank);
        cg_text_str_(
            &t, m->report.rank >= 0 ? " was opened with another configuration" : "ranks were opened with others");
        cg_text_str_(&t, " or other tensors, or has made other steps: this rank has ");
        cg_text_uint_(&t, m->steps);
        cg_text_str_(&t, " steps, ");
        cg_text_uint_(&t, m->tensors);
        cg_text_str_(&t, " tensors and '");
        cg_mean_config_print_(&m->config, &t);
        cg_text_str_(&t, "'; if a step failed on some ranks only, call cg_mean_agree on all");
        *t.at = 0;
        return;
    }
    printed = cg_report_print(&m->report, text, sizeof text);
    (void)printed; /* what is cut off is cut off */
    if (tensor < m->tensors && m->tensors > 1) {
        cg_mean_tensor_name_(&t, tensor, m->tensor[tensor].name);
        cg_text_str_(&t, ": ");
    }
    cg_text_str_(&t, text);
    *t.at = 0;
}
/* Which tensor a report blames: the first whose exchange ended so. */
static size_t cg_mean_blamed_(const cg_mean *m, cg_status s) {
    for (size_t i = 0, j = 0; i < m->tensors; i++) {
        if (!m->tensor[i].ef) continue;
        if (m->layers[j].report.status == (uint32_t)s && m->layers[j].report.why == m->report.why &&
            m->layers[j].report.at == m->report.at)
            return i;
        j++;
    }
    return m->tensors;
}
/* After a step for an optimizer that divides by the root of a variance: says so where too much waits in a residual. */
static void cg_mean_delay_why_(cg_mean *m) {
    cg_text_ t = cg_mean_text_(m->why, sizeof m->why);
    size_t most = m->tensors;
    float delay = 3.0f;
    for (size_t i = 0; i < m->tensors; i++)
        if (m->tensor[i].ef && m->tensor[i].ef->stats.delay > delay) {
            most = i;
            delay = m->tensor[i].ef->stats.delay;
        }
    if (most == m->tensors) return;
    cg_text_str_(&t, "ok, but ");
    cg_mean_tensor_name_(&t, most, m->tensor[most].name);
    cg_text_str_(&t, " has ");
    cg_text_uint_(&t, delay < 1e6f ? (uint64_t)delay : 1000000);
    cg_text_str_(&t,
        " gradients waiting in its residual, as Adam counts them: above 3 it suffers, above 20 it stalls. Send more, "
        "or "
        "take memory=difference and an unbiased operator, as in 'wangni:0.01|efsign|golomb optimizer=adam'");
    *t.at = 0;
}
/* pack=: all gradients in m->packed, one behind the other; NULL: one is missing. */
static float *cg_mean_pack_(cg_mean *m, float *const *grads) {
    size_t at = 0;
    for (size_t i = 0; i < m->tensors; at += m->tensor[i++].n) {
        if (!m->tensor[i].n) continue;
        if (!grads || !grads[i]) return NULL;
        memcpy(m->packed + at, grads[i], 4 * m->tensor[i].n);
    }
    return m->packed;
}
static void cg_mean_unpack_(const cg_mean *m, float *const *grads) {
    size_t at = 0;
    for (size_t i = 0; i < m->tensors; at += m->tensor[i++].n)
        if (m->tensor[i].n) memcpy(grads[i], m->packed + at, 4 * m->tensor[i].n);
}
/* The tensor that report.at is in, which becomes the index there; m->tensors: it is in none. */
static size_t cg_mean_unpack_at_(cg_mean *m) {
    size_t i = 0;
    if (m->report.at == CG_NO_INDEX) return m->tensors;
    for (; i < m->tensors && m->report.at >= m->tensor[i].n; i++) m->report.at -= m->tensor[i].n;
    return i;
}
static cg_status cg_mean_step_(cg_mean *m, float *const *grads, const float *const *variances) {
    size_t active = 0, blamed = m->tensors;
    cg_status s;
    cg_mean_backup_(m);
    for (size_t i = 0; i < m->tensors; i++) {
        cg_mean_tensor_ *t = &m->tensor[i];
        cg_layer *layer = &m->layers[active];
        float *grad = grads ? grads[i] : NULL;
        if (!t->ef) continue;
        memset(layer, 0, sizeof *layer);
        layer->desc = cg_mean_exchange_desc_(m, m->steps, i);
        layer->n = t->ef->desc.n;
        if (t->result && grad) memcpy(t->result, grad, 4 * t->n);
        layer->x = t->result && grad ? t->result : grad;
        if (m->config.packing) layer->x = cg_mean_pack_(m, grads);
        if (m->sides) {
            memset(&m->sides[active], 0, sizeof m->sides[active]);
            m->sides[active].aux = variances ? variances[i] : NULL;
            layer->desc.side = &m->sides[active];
        }
        active++;
    }
    if (active == 1) {
        s = cg_ef_exchange(
            m->efs[0], &m->layers[0].desc, &m->transport, m->layers[0].x, m->mem, m->mem_bytes, &m->report);
        for (size_t i = 0; i < m->tensors; i++)
            if (m->tensor[i].ef) blamed = i;
        if (m->config.packing) blamed = s == CG_OK ? m->tensors : cg_mean_unpack_at_(m);
    } else {
        s = cg_ef_exchange_layers(
            m->efs, m->layers, active, m->config.ef.small, &m->transport, m->mem, m->mem_bytes, &m->report);
        if (s != CG_OK) blamed = cg_mean_blamed_(m, s);
    }
    m->report.used = NULL;
    m->report.used_len = 0;
    if (s != CG_OK) {
        cg_mean_restore_(m);
        cg_mean_step_why_(m, blamed);
        return s;
    }
    for (size_t i = 0; i < m->tensors; i++)
        if (m->tensor[i].ef && m->tensor[i].result) memcpy(grads[i], m->tensor[i].result, 4 * m->tensor[i].n);
    if (m->config.packing) cg_mean_unpack_(m, grads);
    m->steps++;
    memcpy(m->why, "ok", 3);
    if (cg_mean_optimizer_at_(m->config.optimizer)->divides) cg_mean_delay_why_(m);
    return CG_OK;
}
CG_API_ cg_status cg_mean_step_with(cg_mean *mean, float *const *grads, const float *const *variances) {
    cg_fenv_ env;
    cg_status s;
    if (!mean) return CG_E_ARG;
    if (mean->magic != CG_MEAN_MAGIC_) return CG_E_STATE; /* why says what the open found */
    if (mean->pending) return CG_E_STATE;
    env = cg_fenv_enter_();
    s = cg_mean_step_(mean, grads, variances);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_mean_step(cg_mean *mean, float *const *grads) { return cg_mean_step_with(mean, grads, NULL); }
CG_API_ cg_status cg_mean_step_flat(cg_mean *mean, float *grads) {
    size_t at = 0;
    if (!mean || mean->magic != CG_MEAN_MAGIC_ || mean->pending) return mean ? CG_E_STATE : CG_E_ARG;
    for (size_t i = 0; i < mean->tensors; i++) {
        mean->flat[i] = grads ? cg_at_mut_(grads, at) : NULL;
        at += mean->tensor[i].n;
    }
    return cg_mean_step_with(mean, mean->flat, NULL);
}
