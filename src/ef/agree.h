/* agree: ranks that have received different vectors come to the same one again

   Offers   the public cg_ef_agree and cg_ef_agree_memory
   Needs    mark, exchange; cg_exchange_or_fail_ of exchange
   Touches  vector[2], the mark, the report, and the carry where it is part of what was agreed on
   Of what a rank keeps only H and M must be equal everywhere. H is the mean of all h, which every rank has its own of
   and keeps; M is made of nothing else, so that the mean of what ranks have in its place is taken. U and bases are
   copied from the rank that has received most. */

static void cg_ef_agreed_(cg_ef *ef) {
    cg_ef_step_ st;
    double norm;
    memset(&st, 0, sizeof st);
    st.kernels = cg_kernels_now_();
    norm = cg_sqrt_(cg_ef_pass_(cg_ef_pass_energy_, &st, ef->vector[2], ef->desc.n));
    if (norm > ef->reach) ef->reach = norm; /* another rank may have had larger values */
    /* H has what carries held back */
    if (ef->carry && cg_ef_has_trait_(&ef->desc, CG_EF_HAS_SHIFT_)) memset(ef->carry, 0, 4 * ef->desc.carry);
    cg_ef_mark_restart_(ef);
}
/* Of kinds whose ranks copy what was received, the rank that has seen most steps gives it to all. Parts of mem. */
typedef struct cg_ef_copy_bytes_ {
    uint64_t vector_bytes, table_bytes, exchange_bytes;
} cg_ef_copy_bytes_;
static cg_exchange_desc cg_ef_copy_desc_(const cg_exchange_desc *desc, uint64_t round) {
    cg_exchange_desc d = CG_ZERO;
    d.tag = desc->tag;
    d.fold = CG_FOLD_SUM;
    d.common = desc->common ^ (CG_EF_MAGIC_ + round);
    d.flags = CG_CONFIRM;
    return d;
}
/* Returns their sum with room to align it; 0: refused. */
static uint64_t cg_ef_copy_bytes_of_(
    const cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *t, cg_ef_copy_bytes_ *b) {
    const cg_exchange_desc first = cg_ef_copy_desc_(desc, 1), second = cg_ef_copy_desc_(desc, 2);
    const size_t ranks = t->size > 0 ? (size_t)t->size : 0, one = cg_exchange_memory(&first, t, ranks),
                 other = cg_exchange_memory(&second, t, ef->desc.n);
    b->vector_bytes = cg_add_sat_(cg_mul_sat_(4, ef->desc.n), 63) & ~(uint64_t)63;
    b->table_bytes = cg_add_sat_(cg_mul_sat_(4, ranks), 63) & ~(uint64_t)63;
    b->exchange_bytes = one > other ? one : other;
    if (!one || !other) return 0;
    return cg_add_sat_(cg_add_sat_(cg_add_sat_(b->vector_bytes, b->table_bytes), b->exchange_bytes), 64);
}
/* A rank without a mark has received nothing. Sums of zeros and the one vector are that vector, on all ranks. */
static cg_status cg_ef_copy_(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *t, void *mem, size_t bytes,
    cg_status own, cg_report *report) {
    const size_t n = ef->desc.n, align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    cg_exchange_desc d = cg_ef_copy_desc_(desc, 1);
    cg_ef_copy_bytes_ b;
    const uint64_t need = cg_ef_copy_bytes_of_(ef, desc, t, &b);
    uint8_t *at = (uint8_t *)mem + align_pad;
    float *v = (float *)(void *)at, *seen = (float *)(void *)(at + (size_t)b.vector_bytes);
    size_t ranks = (size_t)t->size, leader = 0;
    cg_status s;
    if (!need || !mem || bytes < need)
        return cg_exchange_or_fail_(&d, t, NULL, ranks, NULL, 0, own != CG_OK ? own : CG_E_MEMORY, report);
    at += (size_t)(b.vector_bytes + b.table_bytes);
    memset(seen, 0, 4 * ranks);
    if (ef->mark) seen[t->rank] = ef->steps < 8388608 ? (float)(ef->steps + 1) : 8388608.0f;
    s = cg_exchange_or_fail_(&d, t, seen, ranks, at, (size_t)b.exchange_bytes, own, report);
    if (s != CG_OK) return s;
    for (size_t r = 1; r < ranks; r++)
        if (seen[r] > seen[leader]) leader = r;
    if (seen[leader] == 0.0f) return CG_OK;
    if (leader == (size_t)t->rank) memcpy(v, ef->vector[2], 4 * n);
    else memset(v, 0, 4 * n);
    d = cg_ef_copy_desc_(desc, 2);
    s = cg_exchange_or_fail_(&d, t, v, n, at, (size_t)b.exchange_bytes, CG_OK, report);
    if (s != CG_OK) return s;
    memcpy(ef->vector[2], v, 4 * n);
    cg_ef_agreed_(ef);
    return CG_OK;
}
static int cg_ef_has_to_agree_(const cg_ef *ef) { return ef->vector[2] != NULL; }
/* The exchange of the vector whose mean is received: uncompressed, with the caller's tag and weights. Not even a dense
   step has the same common, so that no rank takes one for the other. */
static cg_exchange_desc cg_ef_agree_desc_(const cg_ef *ef, const cg_exchange_desc *desc) {
    cg_exchange_desc d = CG_ZERO;
    d.tag = desc->tag;
    d.weight = desc->weight;
    /* an H that is a sum of h stays one; a mean of M is taken in any case */
    if (cg_ef_has_trait_(&ef->desc, CG_EF_HAS_SHIFT_) &&
        (cg_fold_row_of_(desc->fold)->traits & (CG_FOLD_IS_LINEAR_ | CG_FOLD_DIVIDES_)) == CG_FOLD_IS_LINEAR_)
        d.fold = CG_FOLD_SUM;
    d.common = desc->common ^ CG_EF_MAGIC_;
    d.into = ef->vector[2];
    d.flags = CG_CONFIRM | CG_FEEDS_BACK; /* after an error the state is as it was */
    return d;
}
CG_API_ size_t cg_ef_agree_memory(const cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_exchange_desc d;
    if (!ef || !desc || !transport || !cg_ef_has_to_agree_(ef)) return 0;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_COPIES_RECEIVED_)) {
        cg_ef_copy_bytes_ b;
        return cg_size_or_zero_(cg_ef_copy_bytes_of_(ef, desc, transport, &b));
    }
    d = cg_ef_agree_desc_(ef, desc);
    return cg_exchange_memory(&d, transport, ef->desc.n);
}
CG_API_ cg_status cg_ef_agree(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, void *mem,
    size_t bytes, cg_report *report) {
    cg_exchange_desc d;
    cg_report own;
    cg_fenv_ env;
    cg_status s;
    const char *unready;
    if (!report) report = &own;
    cg_report_set_(report, CG_E_ARG, "ef, desc or transport is NULL", 0, CG_NO_INDEX);
    if (!ef || !desc || !transport) return CG_E_ARG;
    unready = cg_ef_is_unready_(ef) ? cg_ef_unready_why_(ef) : NULL;
    cg_report_set_(report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    if (ef->desc.n && !cg_ef_has_to_agree_(ef)) return cg_ef_done_(ef);
    env = cg_fenv_enter_();
    d = cg_ef_agree_desc_(ef, desc);
    s = ef->desc.n && cg_ef_has_trait_(&ef->desc, CG_EF_COPIES_RECEIVED_)
        ? cg_ef_copy_(ef, desc, transport, mem, bytes, unready ? CG_E_STATE : CG_OK, report)
        : cg_exchange_or_fail_(&d, transport, ef->vector[cg_ef_has_trait_(&ef->desc, CG_EF_HAS_SHIFT_) ? 0 : 2],
              ef->desc.n, mem, bytes, unready ? CG_E_STATE : CG_OK, report);
    if (s == CG_OK && !cg_ef_has_trait_(&ef->desc, CG_EF_COPIES_RECEIVED_)) cg_ef_agreed_(ef);
    if (unready && s == CG_E_STATE) report->why = unready;
    if (s == CG_E_MEMORY) report->why = "mem is too small: cg_ef_agree_memory gives its bytes";
    cg_ef_keep_report_(ef, report);
    report->used = NULL;
    report->used_len = 0;
    cg_fenv_leave_(env);
    return s;
}
