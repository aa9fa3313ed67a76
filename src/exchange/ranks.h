/* ranks: ranks, stripes, tags and weights of one exchange

   Offers   cg_ex_ (the state), cg_ex_fail_, cg_ex_fail_here_, cg_stripe_*, cg_weight_of_, cg_model_step_
   Needs    base, kernels (cg_axpby_)
   Touches  ex->status and the blame in ex->report; desc.model in the steps
   Other headers may use: CG_MAKES_PACKET_, CG_SECOND_ROUND_, CG_STATE_ROOM_, cg_model_step_,
   cg_model_step_at_, cg_rate_ok_
   A stripe is the part of the gradient that has a packet of its own: one for every rank on the routes ring and scatter,
   the whole vector otherwise. */

enum { CG_RECORD_BYTES_ = 64, CG_NOTE_BYTES_ = 24, CG_COUNT_BYTES_ = 1024, CG_FALLBACK_RANKS_ = 16 };
enum { CG_PHASE_IDLE_, CG_PHASE_OPENING_, CG_PHASE_ROUTE_, CG_PHASE_CLOSING_, CG_PHASE_DONE_ };
/* A flag beside those of desc.flags: this exchange follows another one of the same call, and its record says so, so
   that neither is taken for the other. */
enum { CG_SECOND_ROUND_ = 1 << 16 };
/* Likewise: desc.mine must not be NULL, as there is a stripe to be put there. */
enum { CG_NEEDS_MINE_ = 1 << 17 };
/* Another one: report.used has to be a packet, as with CG_FEEDS_BACK. */
enum { CG_MAKES_PACKET_ = 1 << 18 };
typedef cg_exchange_state cg_ex_; /* the name used inside the implementation */
/* Bytes that cg_exchange takes from the start of mem for its state. */
#define CG_STATE_ROOM_ ((sizeof(cg_exchange_state) + 63) / 64 * 64)

/* Messages one after the other, and their bytes. */
typedef struct cg_cost_ {
    double rounds, bytes;
} cg_cost_;
static double cg_round_seconds_(const cg_ex_ *ex) { return ex->desc.alpha > 0.0 ? ex->desc.alpha : 4e-5; }
static double cg_seconds_(const cg_ex_ *ex, cg_cost_ cost) {
    return cost.rounds * cg_round_seconds_(ex) + cost.bytes * (ex->desc.beta > 0.0 ? ex->desc.beta : 2e-9);
}
static void cg_max_update_(uint64_t *a, uint64_t b) {
    if (*a < b) *a = b;
}
/* rank modulo N; it must be at least -N and less than 2 N. */
static int cg_wrap_(const cg_ex_ *ex, int rank) {
    const int size = ex->transport.size;
    return rank < 0 ? rank + size : rank >= size ? rank - size : rank;
}
static size_t cg_ranks_(const cg_ex_ *ex) { return (size_t)ex->transport.size; }
/* Records the first failure, whom it is due to (-1: nobody in particular) and a sentence; later ones are ignored. The
   caller goes on as long as other ranks wait for its messages. */
static void cg_ex_fail_(cg_ex_ *ex, cg_status status, int rank, const char *why) {
    if (ex->status != CG_OK) return;
    ex->status = status;
    ex->report.status = (uint32_t)status;
    ex->report.rank = rank;
    ex->report.why = why;
    ex->report.need = 0;
    ex->report.at = CG_NO_INDEX;
}
/* The same of this rank, with report.need and report.at. */
static void cg_ex_fail_here_(cg_ex_ *ex, cg_status status, const char *why, uint64_t need, uint64_t at) {
    if (ex->status != CG_OK) return;
    cg_ex_fail_(ex, status, ex->transport.rank, why);
    ex->report.need = need;
    ex->report.at = at;
}
/* First value of stripe p, p <= stripes: a multiple of 64, or n. Stripes differ by 64 values at most; some are empty
   if n is small. */
static size_t cg_stripe_offset_(size_t n, size_t stripes, size_t p) {
    const size_t groups = n / 64 + (n % 64 != 0), each = groups / stripes, rest = groups % stripes;
    return cg_min_(n, 64 * (each * p + (rest * p) / stripes));
}
static size_t cg_stripe_start_(const cg_ex_ *ex, int p) {
    if (ex->desc.bounds && ex->plan.stripes == ex->transport.size) return ex->desc.bounds[p];
    return cg_stripe_offset_(ex->n, (size_t)ex->plan.stripes, (size_t)p);
}
static size_t cg_stripe_n_(const cg_ex_ *ex, int p) { return cg_stripe_start_(ex, p + 1) - cg_stripe_start_(ex, p); }
/* The tag of a stripe's packet on a leg: 0 to where packets are added, 1 back to everybody. Every leg and stripe has a
   seed of its own; otherwise two roundings of one value would not be independent. */
static cg_tag cg_stripe_tag_(const cg_ex_ *ex, int stripe, int leg) {
    cg_tag tag = ex->desc.tag;
    if (ex->plan.stripes > 1 || leg)
        tag.seed = cg_mix64_(tag.seed ^ cg_mix64_((uint64_t)(stripe + 1) + (uint64_t)leg * CG_GOLDEN_));
    return tag;
}
/* From the opening records, which must be here. */
static float cg_weight_of_(const cg_ex_ *ex, size_t rank) {
    return cg_as_float_(cg_get32_(ex->opening.records + rank * CG_RECORD_BYTES_ + 40));
}

static int cg_rate_ok_(const cg_exchange_desc *d) { return !d->model || cg_is_finite_(d->rate); }
/* desc.model -= rate * v, if there is a model; cg_model_step_at_ takes the same step, to the bit, at one index. */
static void cg_model_step_(const cg_exchange_desc *d, const float *v, size_t n) {
    if (d->model && n) cg_axpby_(v, n, -d->rate, 1.0f, d->model);
}
CG_INLINE_ void cg_model_step_at_(const cg_exchange_desc *d, size_t i, float v) {
    cg_store_(d->model, i, cg_plus_(cg_load_(d->model, i), cg_times_(-d->rate, v)));
}
