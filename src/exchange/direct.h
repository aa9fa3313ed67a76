/* direct: dense vectors that an allreduce sums where they stand, on the route linear

   Offers   cg_direct_start_, _begin_, _end_, _write_, _restore_ and _used_; cg_sum_check_; references
   Needs    packets, core's cg_scale_checked_
   Touches  ex->direct, ex->own, ex->result, ex->grad; ex->status
   Passes over memory count here. One copies x, checks it, and multiplies it by a weight if there is one; the sum is
   made in place, in into or in x; one checks the sum and divides it. Where x is overwritten the copy is there to put it
   back after an error, and is what report.used stands for. */

/* Fails if a sum with this largest magnitude has NaN or Inf. */
static void cg_sum_check_(cg_ex_ *ex, uint32_t absmax_bits) {
    if (absmax_bits > CG_INF_BITS_)
        cg_ex_fail_(ex, CG_E_PEER, -1, "a rank has failed and sent NaN in place of its values");
    else if (absmax_bits == CG_INF_BITS_)
        cg_ex_fail_(ex, CG_E_NONFINITE, -1, "the sum over ranks is too large for a float: lower the loss scale");
}
static int cg_makes_packet_(const cg_ex_ *ex) {
    return (ex->desc.flags & ((uint32_t)CG_FEEDS_BACK | (uint32_t)CG_MAKES_PACKET_)) != 0;
}
/* The flag counts only where x itself receives the result. */
static int cg_is_in_place_(const cg_ex_ *ex) {
    return (ex->desc.flags & CG_IN_PLACE) && !cg_makes_packet_(ex) && ex->direct.sum == ex->grad;
}
/* Past the caches, if the vector is larger than they are. */
static int cg_streams_to_(const float *y, size_t n) { return n >= (size_t)1 << 20 && (uintptr_t)y % 16 == 0; }
/* This rank's factor before the sum; the sum is divided afterwards. */
static float cg_direct_weight_(const cg_ex_ *ex) { return ex->desc.weight != 0.0f ? ex->desc.weight : 1.0f; }

/* Before the opening: the pass over x, which finds NaN and Inf, so that the opening tells them. */
static void cg_direct_start_(cg_ex_ *ex) {
    const float weight = cg_direct_weight_(ex);
    uint32_t absmax_bits = 0;
    float *sum;
    ex->direct.saved = (float *)(void *)(ex->own.packets + CG_HEADER_BYTES);
    sum = cg_makes_packet_(ex) ? ex->grad : ex->result; /* of x there will be a packet, to put it back */
    if ((uintptr_t)sum % 4) sum = ex->direct.saved;
    ex->direct.sum = sum;
    if (cg_is_in_place_(ex)) return; /* whatever there is, is in the sum */
    if (cg_makes_packet_(ex)) {
        cg_stripes_compress_(ex);
        return;
    }
    if (sum == ex->grad) sum = ex->direct.saved;
    absmax_bits = cg_scale_checked_(
        ex->grad, ex->n, sum == ex->direct.sum ? weight : 1.0f, sum, cg_streams_to_(sum, ex->n));
    if (absmax_bits >= CG_INF_BITS_)
        cg_ex_fail_here_(ex, CG_E_NONFINITE, cg_status_str(CG_E_NONFINITE), 0, cg_first_nonfinite_(ex->grad, ex->n));
}
/* Before the sum. A rank that has failed sends NaN, so that all see it. */
static void cg_direct_begin_(cg_ex_ *ex) {
    float *sum = ex->direct.sum;
    const float weight = cg_direct_weight_(ex);
    if (sum == ex->grad) ex->direct.overwritten = 1;
    if (ex->status != CG_OK && ex->n) memset(sum, 0xff, 4 * ex->n);
    else if (sum == ex->grad && weight != 1.0f) cg_scale_checked_(sum, ex->n, weight, sum, 0);
    else if (sum == ex->direct.saved && cg_makes_packet_(ex)) /* over the packet */
        cg_scale_checked_(ex->grad, ex->n, weight, sum, 0);
}
/* The sum becomes the result. */
static void cg_direct_end_(cg_ex_ *ex) {
    float *sum = ex->direct.sum;
    cg_sum_check_(ex, cg_scale_checked_(sum, ex->n, (float)(1.0 / cg_divisor_(ex)), sum, 0));
}
/* What report.used is where the contribution is all of x and nobody feeds back: no packet, which would take passes of
   its own, but where the n values are. Only the process that wrote it can read it: it names its own address, too. */
enum { CG_REFERENCE_BYTES_ = 40 };
static uint64_t cg_reference_hash_(const uint8_t *p) {
    return cg_mix64_(cg_get64_(p + 8) ^ cg_mix64_(cg_get64_(p + 16) ^ cg_mix64_(cg_get64_(p + 24) + CG_GOLDEN_)));
}
static void cg_reference_put_(uint8_t *p, const float *values, size_t n) {
    cg_put32_(p, CG_REFERENCE_MAGIC_);
    cg_put32_(p + 4, 0);
    cg_put64_(p + 8, n);
    cg_put64_(p + 16, (uint64_t)(uintptr_t)values);
    cg_put64_(p + 24, (uint64_t)(uintptr_t)p);
    cg_put64_(p + 32, cg_reference_hash_(p));
}
/* The n values of a reference that stands where it was written; NULL: it is none. */
static const float *cg_reference_get_(const uint8_t *p, size_t len, size_t n) {
    if (len != CG_REFERENCE_BYTES_ || cg_get32_(p) != CG_REFERENCE_MAGIC_ || cg_get64_(p + 8) != n ||
        cg_get64_(p + 24) != (uint64_t)(uintptr_t)p || cg_get64_(p + 32) != cg_reference_hash_(p))
        return NULL;
    return (const float *)(uintptr_t)cg_get64_(p + 16);
}
/* Floats of two vectors change places; b is at a multiple of 4. */
static void cg_floats_exchange_(float *a, float *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const float v = cg_load_(a, i);
        cg_store_(a, i, b[i]);
        b[i] = v;
    }
}
/* x as it was. */
static void cg_direct_put_back_(cg_ex_ *ex) {
    if (!ex->direct.overwritten) return;
    if (ex->n) memcpy(ex->grad, ex->direct.saved, 4 * ex->n);
    if (cg_makes_packet_(ex)) cg_floats_swap_le_(ex->grad, ex->n); /* from the packet */
    ex->direct.overwritten = 0;
}
/* After an error. */
static void cg_direct_restore_(cg_ex_ *ex) {
    if (!cg_is_in_place_(ex)) cg_direct_put_back_(ex);
}
/* The result to where it belongs, if it is not there. If saved has it, that gets x. */
static cg_status cg_direct_write_(cg_ex_ *ex) {
    const int feeds_back = cg_makes_packet_(ex), apart = ex->result != ex->grad, steps = ex->desc.model != NULL;
    float *saved = ex->direct.saved, *sum = ex->direct.sum;
    cg_info info;
    cg_status s = CG_OK;
    ex->direct.uses_reference = !feeds_back;
    if (steps) {
        cg_model_step_(&ex->desc, sum, ex->n);
        ex->desc.model = NULL;
    } else if (sum == saved && !apart) cg_floats_exchange_(ex->grad, saved, ex->n);
    else if (sum != ex->result && ex->n) memcpy(ex->result, sum, 4 * ex->n);
    if (apart) cg_direct_put_back_(ex);
    if (sum != saved) return CG_OK;
    if ((apart || steps) && ex->n) memcpy(saved, ex->grad, 4 * ex->n);
    if (!feeds_back) return CG_OK;
    s = cg_inspect(ex->own.packets, (size_t)ex->own.offset[1], &info); /* the packet again */
    if (s != CG_OK) return s;
    cg_floats_swap_le_(saved, ex->n);
    cg_packet_seal_(&info, ex->own.packets);
    return CG_OK;
}
/* Sets report.used, unless it is a packet: returns 0. */
static int cg_direct_used_(cg_ex_ *ex) {
    const float *x_is_here;
    if (!ex->direct.uses_reference) return 0;
    ex->report.used = NULL;
    ex->report.used_len = 0;
    if (cg_is_in_place_(ex)) return 1;
    x_is_here = ex->direct.overwritten || ex->direct.sum == ex->direct.saved ? ex->direct.saved : ex->grad;
    cg_reference_put_(ex->own.packets, x_is_here, ex->n); /* where a packet would have its header */
    ex->report.used = ex->own.packets;
    ex->report.used_len = CG_REFERENCE_BYTES_;
    return 1;
}
