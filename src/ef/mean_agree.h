/* mean_agree: memories and step counts are common to all ranks again

   Offers   cg_mean_agree_bytes_; the public cg_mean_agree
   Needs    mean, agree
   Touches  the mean's number of steps, and H and M of its states
   Every rank puts its number of steps, in quarters of 16 bits that floats hold exactly, into a vector of zeros; the sum
   over ranks has all of them. */

static cg_exchange_desc cg_mean_counts_desc_(const cg_mean *m) {
    cg_exchange_desc d = CG_ZERO;
    d.fold = CG_FOLD_SUM;
    d.flags = CG_CONFIRM;
    d.tag = cg_mean_tag_(m, UINT64_MAX, 0);
    d.common = m->common ^ CG_MEAN_MAGIC_;
    return d;
}
static uint64_t cg_mean_counts_bytes_(const cg_mean *m) {
    return cg_add_sat_(cg_mul_sat_(16, (uint64_t)m->transport.size), 63) & ~(uint64_t)63;
}
/* Bytes of m->mem that cg_mean_agree needs for the numbers of steps. */
static uint64_t cg_mean_agree_bytes_(const cg_mean *m) {
    const cg_exchange_desc d = cg_mean_counts_desc_(m);
    return cg_add_sat_(cg_mean_counts_bytes_(m), cg_exchange_memory(&d, &m->transport, 4 * (size_t)m->transport.size));
}
static cg_status cg_mean_agree_counts_(cg_mean *m, uint64_t *most) {
    const cg_exchange_desc d = cg_mean_counts_desc_(m);
    const size_t ranks = (size_t)m->transport.size, bytes = (size_t)cg_mean_counts_bytes_(m);
    float *counts = (float *)m->mem;
    cg_status s;
    memset(counts, 0, 16 * ranks);
    for (size_t i = 0; i < 4; i++) counts[4 * (size_t)m->transport.rank + i] = (float)(m->steps >> (16 * i) & 0xffff);
    s = cg_exchange(&d, &m->transport, counts, 4 * ranks, (uint8_t *)m->mem + bytes, m->mem_bytes - bytes, &m->report);
    *most = 0;
    for (size_t rank = 0; s == CG_OK && rank < ranks; rank++) {
        uint64_t count = 0;
        for (size_t i = 0; i < 4; i++) count |= (uint64_t)counts[4 * rank + i] << (16 * i);
        if (count > *most) *most = count;
    }
    return s;
}
CG_API_ cg_status cg_mean_agree(cg_mean *mean) {
    cg_fenv_ env;
    uint64_t most = 0;
    size_t i = 0;
    cg_status s;
    if (!mean) return CG_E_ARG;
    if (mean->magic != CG_MEAN_MAGIC_ || mean->pending) return CG_E_STATE;
    env = cg_fenv_enter_();
    s = cg_mean_agree_counts_(mean, &most);
    for (; i < mean->tensors && s == CG_OK; i++) {
        const cg_exchange_desc d = cg_mean_exchange_desc_(mean, most, i);
        if (!mean->tensor[i].ef || !mean->tensor[i].ef->vector[2]) continue;
        s = cg_ef_agree(mean->tensor[i].ef, &d, &mean->transport, mean->mem, mean->mem_bytes, &mean->report);
    }
    mean->report.used = NULL;
    mean->report.used_len = 0;
    if (s == CG_OK) {
        mean->steps = most;
        memcpy(mean->why, "ok", 3);
    } else cg_mean_step_why_(mean, i ? i - 1 : mean->tensors);
    cg_fenv_leave_(env);
    return s;
}
