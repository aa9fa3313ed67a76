/* gossip_kinds: what each kind of gossip sends, and what it makes of what it hears

   Offers   cg_gossip_row_of_, cg_gossip_has_ and the traits; cg_gossip_fail_
   Needs    graph; base, cg_axpby_ and cg_absmax_bits_ of core
   Touches  the state of a step, x at its end
   Names as in METHODS of the manual: half is x - rate grad, D what a packet decodes to, W the sum of the weights of
   those that were met. gathered has W_ij D_j added up, where no replicas are kept. */

enum {
    CG_GOSSIP_EXACT_ = 1 << 0,       /* sends models as they are: the operator must lose nothing */
    CG_GOSSIP_REPLICATES_ = 1 << 1,  /* packets are changes of what neighbours know */
    CG_GOSSIP_FROM_DENSE_ = 1 << 2,  /* ... and they begin by sending the whole */
    CG_GOSSIP_NEEDS_ETA_ = 1 << 3,   /* desc.eta is the rate of mixing */
    CG_GOSSIP_NEEDS_OMEGA_ = 1 << 4, /* diverges above the omega of the graph */
    CG_GOSSIP_ONE_WAY_ = 1 << 5,     /* edges have a direction */
    CG_GOSSIP_HAS_OWN_ = 1 << 6,     /* keeps a vector of its own */
    CG_GOSSIP_HAS_NEXT_ = 1 << 7,    /* computes the next one beside it */
    CG_GOSSIP_OWN_IS_X_ = 1 << 8     /* which starts as x0 */
};
typedef struct cg_gossip_row_ {
    uint32_t id, traits;
    const float *(*make)(cg_gossip *, const float *grad); /* what is compressed; sets half. grad NULL: zeros */
    void (*after)(cg_gossip *);  /* once it has been: what must be known before messages go out; NULL: nothing */
    void (*finish)(cg_gossip *); /* gathered, replicas or sum are there: half := the next x */
} cg_gossip_row_;

static size_t cg_gossip_n_(const cg_gossip *g) { return g->desc.n; }
static void cg_gossip_add_(const cg_gossip *g, const float *v, float alpha, float *y) { /* y += alpha v */
    if (alpha != 0.0f) cg_axpby_(v, cg_gossip_n_(g), alpha, 1.0f, y);
}
static void cg_gossip_set_(const cg_gossip *g, const float *v, float alpha, float *y) { /* y = alpha v */
    cg_axpby_(v, cg_gossip_n_(g), alpha, 0.0f, y);
}
static void cg_gossip_zero_(const cg_gossip *g, float *y) { memset(y, 0, 4 * cg_gossip_n_(g)); }
static void cg_gossip_half_(cg_gossip *g, const float *x, const float *grad) { /* half = x - rate grad */
    memcpy(g->half, x, 4 * cg_gossip_n_(g));
    if (grad) cg_gossip_add_(g, grad, -g->rate, g->half);
}
/* y += alpha D of this node's packet, which has just been made: it decodes. */
static void cg_gossip_add_own_(const cg_gossip *g, float alpha, float *y) {
    const cg_status s = cg_decode(g->desc.side, g->packet, g->len, alpha, 1.0f, y, cg_gossip_n_(g));
    COMPGRAD_ASSERT(s == CG_OK);
    (void)s;
}
static float cg_gossip_weight_(const cg_gossip *g, const cg_gossip_peer *p) {
    return p->from < 0 ? 0.0f : cg_graph_weight(g->desc.graph, g->desc.rank, p->from, g->step);
}
static int cg_gossip_keeps_replicas_(const cg_gossip *g) { return g->peers && g->peer[0].replica; }

static const float *cg_gossip_make_half_(cg_gossip *g, const float *grad) {
    cg_gossip_half_(g, g->x, grad);
    return g->half;
}
static const float *cg_gossip_make_x_(cg_gossip *g, const float *grad) {
    cg_gossip_half_(g, g->x, grad);
    return g->x;
}
static const float *cg_gossip_make_naive_(cg_gossip *g, const float *grad) {
    if (grad) cg_gossip_set_(g, grad, -g->rate, g->half);
    else cg_gossip_zero_(g, g->half);
    return g->x;
}
static const float *cg_gossip_make_dcd_(cg_gossip *g, const float *grad) { /* the sum of W_ij (x_j - x) - rate grad */
    float weights = 0.0f;
    if (g->sum) cg_gossip_set_(g, g->sum, 1.0f, g->gathered);
    else cg_gossip_zero_(g, g->gathered);
    for (size_t k = 0; k < g->peers; k++) {
        const float w = cg_gossip_weight_(g, &g->peer[k]);
        if (!g->peer[k].replicated) continue;
        weights = cg_plus_(weights, w);
        if (g->peer[k].replica) cg_gossip_add_(g, g->peer[k].replica, w, g->gathered);
    }
    cg_gossip_add_(g, g->x, -weights, g->gathered);
    if (grad) cg_gossip_add_(g, grad, -g->rate, g->gathered);
    return g->gathered;
}
static void cg_gossip_after_dcd_(cg_gossip *g) {
    cg_gossip_set_(g, g->x, 1.0f, g->half);
    cg_gossip_add_own_(g, 1.0f, g->half);
}
static const float *cg_gossip_make_deepsqueeze_(cg_gossip *g, const float *grad) {
    cg_gossip_half_(g, g->x, grad);
    cg_gossip_set_(g, g->half, 1.0f, g->next);
    cg_gossip_add_(g, g->own, 1.0f, g->next);
    return g->next;
}
static void cg_gossip_after_deepsqueeze_(cg_gossip *g) { cg_gossip_add_own_(g, -1.0f, g->next); }
static const float *cg_gossip_make_choco_(cg_gossip *g, const float *grad) {
    cg_gossip_half_(g, g->x, grad);
    cg_gossip_set_(g, g->half, 1.0f, g->gathered);
    cg_gossip_add_(g, g->own, -1.0f, g->gathered);
    return g->gathered;
}
static void cg_gossip_after_choco_(cg_gossip *g) {
    if (cg_gossip_keeps_replicas_(g)) cg_gossip_add_own_(g, 1.0f, g->own);
}
static size_t cg_gossip_out_degree_(const cg_gossip *g) {
    size_t out = 0;
    for (size_t k = 0; k < g->peers; k++) out += g->peer[k].to >= 0;
    return out;
}
static double cg_gossip_share_(const cg_gossip *g) { return 1.0 / (double)(1 + cg_gossip_out_degree_(g)); }
static const float *cg_gossip_make_push_sum_(cg_gossip *g, const float *grad) {
    cg_gossip_half_(g, g->own, grad);
    cg_gossip_set_(g, g->half, (float)cg_gossip_share_(g), g->gathered);
    return g->gathered;
}

static void cg_gossip_finish_dsgd_(cg_gossip *g) { /* (1 - W) half + gathered */
    cg_axpby_(g->gathered, cg_gossip_n_(g), 1.0f, cg_minus_(1.0f, g->mixed), g->half);
}
static void cg_gossip_finish_combine_first_(cg_gossip *g) { /* x + gathered - W x - rate grad */
    cg_gossip_add_(g, g->gathered, 1.0f, g->half);
    cg_gossip_add_(g, g->x, -g->mixed, g->half);
}
static void cg_gossip_finish_naive_(cg_gossip *g) { /* gathered + (1 - W) D - rate grad */
    cg_gossip_add_(g, g->gathered, 1.0f, g->half);
    cg_gossip_add_own_(g, cg_minus_(1.0f, g->mixed), g->half);
}
static void cg_gossip_finish_dcd_(cg_gossip *g) { /* half is x + D already */
    if (!cg_gossip_keeps_replicas_(g) && g->peers) cg_gossip_add_(g, g->gathered, 1.0f, g->sum);
}
static void cg_gossip_finish_deepsqueeze_(cg_gossip *g) { /* half + eta (gathered - W D); next is the residual */
    float *const t = g->own;
    cg_gossip_add_own_(g, -g->mixed, g->gathered);
    cg_gossip_add_(g, g->gathered, g->desc.eta, g->half);
    g->own = g->next;
    g->next = t;
}
static void cg_gossip_finish_choco_(cg_gossip *g) { /* half + eta (sum of W_ij xhat_j - W xhat) */
    const float eta = g->desc.eta;
    float weights = 0.0f;
    if (!cg_gossip_keeps_replicas_(g)) {
        cg_gossip_add_own_(g, 1.0f, g->own);
        if (g->peers) cg_gossip_add_(g, g->gathered, 1.0f, g->sum);
        if (g->peers) cg_gossip_add_(g, g->sum, eta, g->half);
        weights = g->mixed;
    }
    for (size_t k = 0; k < g->peers && g->peer[k].replica; k++) {
        const float w = cg_gossip_weight_(g, &g->peer[k]);
        if (!g->peer[k].met) continue;
        weights = cg_plus_(weights, w);
        cg_gossip_add_(g, g->peer[k].replica, cg_times_(eta, w), g->half);
    }
    cg_gossip_add_(g, g->own, -cg_times_(eta, weights), g->half);
}
/* What was sent leaves the numerator, what was heard enters it, and so with the weight: whatever is lost by the
   operator or on the way stays here. */
static void cg_gossip_finish_push_sum_(cg_gossip *g) {
    const double share = cg_gossip_share_(g);
    double weight = g->weight;
    if (g->sent) cg_gossip_add_own_(g, -(float)g->sent, g->half);
    cg_gossip_add_(g, g->gathered, 1.0f, g->half);
    weight -= cg_times64_(cg_times64_((double)g->sent, share), g->weight);
    g->weight = weight + g->heard;
    cg_gossip_set_(g, g->half, 1.0f, g->own);
    cg_gossip_set_(g, g->own, cg_saturate64_(1.0 / g->weight), g->half);
}

static const cg_gossip_row_ cg_gossip_rows_[] = {
    { CG_GOSSIP_DSGD, CG_GOSSIP_EXACT_, cg_gossip_make_half_, NULL, cg_gossip_finish_dsgd_ },
    { CG_GOSSIP_DSGD_COMBINE_FIRST, CG_GOSSIP_EXACT_, cg_gossip_make_x_, NULL, cg_gossip_finish_combine_first_ },
    { CG_GOSSIP_NAIVE, 0, cg_gossip_make_naive_, NULL, cg_gossip_finish_naive_ },
    { CG_GOSSIP_DCD, CG_GOSSIP_REPLICATES_ | CG_GOSSIP_FROM_DENSE_ | CG_GOSSIP_NEEDS_OMEGA_, cg_gossip_make_dcd_,
        cg_gossip_after_dcd_, cg_gossip_finish_dcd_ },
    { CG_GOSSIP_DEEPSQUEEZE, CG_GOSSIP_NEEDS_ETA_ | CG_GOSSIP_HAS_OWN_ | CG_GOSSIP_HAS_NEXT_,
        cg_gossip_make_deepsqueeze_, cg_gossip_after_deepsqueeze_, cg_gossip_finish_deepsqueeze_ },
    { CG_GOSSIP_CHOCO, CG_GOSSIP_REPLICATES_ | CG_GOSSIP_NEEDS_ETA_ | CG_GOSSIP_HAS_OWN_, cg_gossip_make_choco_,
        cg_gossip_after_choco_, cg_gossip_finish_choco_ },
    { CG_GOSSIP_PUSH_SUM, CG_GOSSIP_ONE_WAY_ | CG_GOSSIP_HAS_OWN_ | CG_GOSSIP_OWN_IS_X_, cg_gossip_make_push_sum_, NULL,
        cg_gossip_finish_push_sum_ },
};
enum { CG_GOSSIP_KINDS_ = (int)(sizeof cg_gossip_rows_ / sizeof *cg_gossip_rows_) };
static const cg_gossip_row_ *cg_gossip_row_of_(const cg_gossip_desc *d) { return &cg_gossip_rows_[d->kind]; }
static int cg_gossip_has_(const cg_gossip_desc *d, uint32_t trait) {
    return (cg_gossip_row_of_(d)->traits & trait) != 0;
}
