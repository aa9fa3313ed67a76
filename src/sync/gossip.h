/* gossip: one step of one node, message by message

   Offers   the public cg_gossip_* but for saving
   Needs    graph, gossip_kinds; base, seals of core
   Touches  the state, x at the end of a step
   Two neighbours meet by a note each way, and then a packet each way. All nodes meet in one order of edges, so that the
   first edge that is not through always has both its ends ready. A note says whether its node is well, what it holds of
   the other (have), and the names of what the other should hold (mine) and will (becomes). Names are chains of
   hashes of packet headers: where they do not fit, the whole vector is sent in place of a packet.

   byte 0 "cggn"  4 version  8 status  12 zeros  16 step  24 setup  32 mine  40 becomes  48 have  56 length of the
   packet
       64 weight (double)  72 from  76 to  80 checksum of everything else, as of a packet */

enum {
    CG_GOSSIP_NOTE_ = 96,
    CG_GOSSIP_NOTE_SEAL_ = 80,
    CG_GOSSIP_IDLE_ = 0, /* no step is under way */
    CG_GOSSIP_MEET_,     /* the next peer's note is to go out */
    CG_GOSSIP_NOTED_,    /* it has */
    CG_GOSSIP_PACKET_    /* and the packet too */
};
#define CG_GOSSIP_MAGIC_ 0x6e676763u /* "cggn" */
#define CG_GOSSIP_LEAST_WEIGHT_ 1e-9 /* PUSH_SUM: what has so little left keeps it, and sends nothing */

/* ---- init ---- */

static cg_status cg_gossip_say_(cg_gossip *g, cg_status s, const char *a, const char *b) {
    cg_text_ t = { g->why, g->why + sizeof g->why - 1 };
    cg_text_str_(&t, a);
    if (b) cg_text_str_(&t, b);
    *t.at = 0;
    cg_report_set_(&g->report, s, cg_status_str(s), 0, CG_NO_INDEX);
    return s;
}
static int cg_gossip_wants_replicas_(const cg_gossip_desc *d) {
    return cg_gossip_has_(d, CG_GOSSIP_REPLICATES_) &&
        ((d->flags & CG_GOSSIP_TOLERATE) || cg_graph_has_(d->graph, CG_GRAPH_CHANGES_));
}
/* Only the peer of the step is met, where the graph changes; replicas must be kept up with all of them. */
static int cg_gossip_meets_one_(const cg_gossip_desc *d) {
    return cg_graph_has_(d->graph, CG_GRAPH_CHANGES_) && !cg_gossip_has_(d, CG_GOSSIP_REPLICATES_);
}
static size_t cg_gossip_count_(const cg_gossip_desc *d) { /* of peers */
    const cg_graph *graph = d->graph;
    size_t count;
    if (cg_gossip_meets_one_(d)) return graph->desc.nodes > 1 ? (cg_gossip_has_(d, CG_GOSSIP_ONE_WAY_) ? 2 : 1) : 0;
    count = cg_graph_degree_(graph, d->rank);
    if (cg_gossip_has_(d, CG_GOSSIP_ONE_WAY_))
        count += graph->desc.directed ? (size_t)(graph->first_back[d->rank + 1] - graph->first_back[d->rank]) : count;
    return count;
}
/* What is wrong with a description; why: g's. */
static cg_status cg_gossip_check_(cg_gossip *g, const cg_gossip_desc *d, cg_about *about) {
    const cg_graph *graph = d->graph;
    double omega;
    if (d->kind >= CG_GOSSIP_KINDS_)
        return cg_gossip_say_(g, CG_E_ARG, "kind is none of the CG_GOSSIP_ constants", NULL);
    if (!graph || !graph->desc.nodes)
        return cg_gossip_say_(g, CG_E_ARG, "graph is NULL, or cg_graph_init has not made it", NULL);
    if (d->rank < 0 || d->rank >= graph->desc.nodes)
        return cg_gossip_say_(g, CG_E_ARG, "rank is not below the nodes of graph", NULL);
    if (d->flags & ~(uint32_t)(CG_GOSSIP_TOLERATE | CG_GOSSIP_ANY_OMEGA))
        return cg_gossip_say_(g, CG_E_ARG, "flags has a bit that means nothing", NULL);
    if (cg_gossip_has_(d, CG_GOSSIP_NEEDS_ETA_) ? !(d->eta > 0.0f && d->eta <= 1.0f) : d->eta != 0.0f)
        return cg_gossip_say_(g, CG_E_ARG,
            cg_gossip_has_(d, CG_GOSSIP_NEEDS_ETA_)
                ? "eta must be above 0 and at most 1: .4 suits 2 bits, .05 top-k of 1 %, .1 DEEPSQUEEZE"
                : "eta is for DEEPSQUEEZE and CHOCO",
            NULL);
    if (graph->desc.directed && !cg_gossip_has_(d, CG_GOSSIP_ONE_WAY_))
        return cg_gossip_say_(
            g, CG_E_UNSUPPORTED, "a directed graph is for PUSH_SUM: other kinds need both directions", NULL);
    if ((d->flags & CG_GOSSIP_TOLERATE) && cg_gossip_meets_one_(d) && !cg_gossip_has_(d, CG_GOSSIP_ONE_WAY_))
        return cg_gossip_say_(g, CG_E_UNSUPPORTED,
            "a one-peer graph cannot do without a node: its rows would not add up to 1; PUSH_SUM can", NULL);
    if (!(d->omega >= 0.0f)) return cg_gossip_say_(g, CG_E_ARG, "omega must be 0 or more", NULL);
    if (!cg_bound_with(&d->op, d->side, d->n)) {
        (void)cg_op_about(&d->op, d->n, about);
        return cg_gossip_say_(g, CG_E_ARG, "op: ", about->why);
    }
    if (cg_op_about(&d->op, d->n, about) != CG_OK) return cg_gossip_say_(g, CG_E_ARG, "op: ", about->why);
    if (cg_gossip_has_(d, CG_GOSSIP_EXACT_) && about->omega != 0.0)
        return cg_gossip_say_(
            g, CG_E_UNSUPPORTED, "D-SGD sends models as they are, and op loses something: take CHOCO or DCD", NULL);
    omega = d->omega != 0.0f ? (double)d->omega : about->omega;
    if (cg_gossip_has_(d, CG_GOSSIP_NEEDS_OMEGA_) && !(d->flags & CG_GOSSIP_ANY_OMEGA) && graph->omega >= 0.0 &&
        omega > graph->omega) {
        cg_text_ t = { g->why, g->why + sizeof g->why - 1 };
        cg_text_str_(&t, "DCD diverges: omega of op is ");
        cg_text_float_(&t, cg_saturate64_(omega));
        cg_text_str_(&t, ", and this graph survives ");
        cg_text_float_(&t, cg_saturate64_(graph->omega));
        cg_text_str_(&t, "; take CHOCO, or an operator with more bits");
        *t.at = 0;
        cg_report_set_(&g->report, CG_E_UNSUPPORTED, cg_status_str(CG_E_UNSUPPORTED), 0, CG_NO_INDEX);
        return CG_E_UNSUPPORTED;
    }
    return CG_OK;
}
/* Parts of mem, into *g; NULL mem: only counts. desc has been checked. */
static uint64_t cg_gossip_plan_(cg_gossip *g, const cg_gossip_desc *d, uint8_t *mem) {
    const uint64_t vector = cg_mul_sat_(4, d->n);
    const size_t peers = cg_gossip_count_(d), bound = cg_bound_with(&d->op, d->side, d->n);
    const cg_op dense = cg_dense();
    const size_t whole = cg_bound(&dense, d->n);
    const int replicates = cg_gossip_has_(d, CG_GOSSIP_REPLICATES_), each = cg_gossip_wants_replicas_(d);
    uint64_t used = 0;
    if (!whole) return CG_TOO_LARGE_;
    g->peers = peers;
    g->packet_cap = bound;
    g->incoming_cap = replicates && whole > bound ? whole : bound;
    g->scratch_bytes = cg_scratch(&d->op, d->n);
    g->peer = (cg_gossip_peer *)cg_sync_take_(mem, &used, cg_mul_sat_(peers, sizeof *g->peer));
    g->notes = (uint8_t *)cg_sync_take_(mem, &used, 2 * CG_GOSSIP_NOTE_);
    g->packet = (uint8_t *)cg_sync_take_(mem, &used, g->packet_cap);
    g->incoming = (uint8_t *)cg_sync_take_(mem, &used, g->incoming_cap);
    g->scratch = (uint8_t *)cg_sync_take_(mem, &used, g->scratch_bytes);
    g->half = (float *)cg_sync_take_(mem, &used, vector);
    g->gathered = (float *)cg_sync_take_(mem, &used, vector);
    if (cg_gossip_has_(d, CG_GOSSIP_HAS_OWN_)) g->own = (float *)cg_sync_take_(mem, &used, vector);
    if (cg_gossip_has_(d, CG_GOSSIP_HAS_NEXT_)) g->next = (float *)cg_sync_take_(mem, &used, vector);
    if (replicates && !each && peers) g->sum = (float *)cg_sync_take_(mem, &used, vector);
    if (replicates && (each || cg_gossip_has_(d, CG_GOSSIP_FROM_DENSE_)))
        g->whole = (uint8_t *)cg_sync_take_(mem, &used, whole);
    for (size_t k = 0; each && k < peers; k++) {
        float *replica = (float *)cg_sync_take_(mem, &used, vector);
        if (mem) g->peer[k].replica = replica;
    }
    return cg_add_sat_(used, 64);
}
static cg_tag cg_gossip_tag_(const cg_gossip *g, int rank, uint64_t step) {
    cg_tag tag = { 0, 0, 0, 0 };
    tag.seed = cg_mix64_(g->desc.seed + CG_GOLDEN_ * ((uint64_t)rank + 1));
    tag.step = step;
    tag.rank = (uint32_t)rank;
    return tag;
}
/* Where two nodes meet in the order of all edges: edges that a ring, a torus or a hypercube has at once come together,
   others in an order that depends on nothing. */
static uint64_t cg_gossip_order_(int a, int b, int nodes, int one_way) {
    const uint64_t low = (uint64_t)(a < b ? a : b), high = (uint64_t)(a < b ? b : a), differ = low ^ high;
    uint64_t colour = 40;
    if (low == high) return 0;
    if (high - low == 1) colour = low & 1;
    else if (low == 0 && high == (uint64_t)nodes - 1) colour = high & 1 ? 1 : 2;
    else if (!(differ & (differ - 1))) colour = 3 + cg_log2_(differ);
    return colour << 57 | (cg_mix64_(low << 32 | high) >> 8) << 1 | (one_way && a > b ? 1u : 0u);
}
static void cg_gossip_peer_add_(cg_gossip *g, size_t k, int to, int from) {
    cg_gossip_peer p;
    const int other = to >= 0 ? to : from, one_way = to != from;
    memset(&p, 0, sizeof p);
    p.to = to;
    p.from = from;
    p.replica = g->peer[k].replica;
    p.order = cg_gossip_order_(
        to >= 0 ? g->desc.rank : other, to >= 0 ? other : g->desc.rank, g->desc.graph->desc.nodes, one_way);
    for (; k && g->peer[k - 1].order > p.order; k--) { /* ascending; each keeps the place of a replica */
        float *const room = g->peer[k].replica;
        g->peer[k] = g->peer[k - 1];
        g->peer[k].replica = room;
        p.replica = g->peer[k - 1].replica;
    }
    g->peer[k] = p;
}
static void cg_gossip_meet_all_(cg_gossip *g) {
    const cg_graph *graph = g->desc.graph;
    size_t count = 0;
    if (cg_gossip_meets_one_(&g->desc)) return; /* every step anew */
    for (int j = 0; j < graph->desc.nodes; j++) {
        int to = 0, from = 0;
        if (j == g->desc.rank) continue;
        to = cg_graph_joined_(graph, g->desc.rank, j, 0);
        from = cg_graph_joined_(graph, g->desc.rank, j, 1);
        if (cg_gossip_has_(&g->desc, CG_GOSSIP_ONE_WAY_)) {
            if (to) cg_gossip_peer_add_(g, count++, j, -1);
            if (from) cg_gossip_peer_add_(g, count++, -1, j);
        } else if (to) {
            cg_gossip_peer_add_(g, count++, j, j);
        }
    }
}
static uint64_t cg_gossip_hash_(uint64_t h, const void *p, size_t bytes) {
    const uint8_t *b = (const uint8_t *)p;
    for (size_t i = 0; i < bytes; i++) h = (h ^ b[i]) * 0x100000001b3u;
    return cg_mix64_(h);
}
static uint64_t cg_gossip_setup_(const cg_gossip_desc *d) {
    char text[160];
    uint64_t h = cg_mix64_(d->graph->mark ^ d->n * CG_GOLDEN_);
    size_t len = 0;
    if (cg_op_print(&d->op, text, sizeof text) == CG_OK) len = cg_text_len_(text);
    h = cg_gossip_hash_(h, text, len);
    h = cg_mix64_(h ^ ((uint64_t)d->kind << 32 | cg_as_bits_(d->eta)));
    return cg_mix64_(h ^ d->seed ^ (uint64_t)(d->flags & CG_GOSSIP_TOLERATE) << 63);
}
CG_API_ size_t cg_gossip_memory(const cg_gossip_desc *desc) {
    cg_gossip g;
    cg_about about;
    memset(&g, 0, sizeof g);
    if (!desc || cg_gossip_check_(&g, desc, &about) != CG_OK) return 0;
    return cg_size_or_zero_(cg_gossip_plan_(&g, desc, NULL));
}
static cg_status cg_gossip_make_(cg_gossip *g, const cg_gossip_desc *d, const float *x0, uint8_t *mem) {
    const cg_tag tag = cg_gossip_tag_(g, d->rank, 0);
    cg_report report;
    cg_extra side = CG_ZERO;
    cg_status s;
    memset(mem, 0, (size_t)cg_gossip_plan_(g, d, NULL) - 64); /* also what no packet will fill goes out as zeros */
    cg_gossip_plan_(g, d, mem);
    if (d->side) side = *d->side;
    side.report = &report;
    /* what every step would refuse */
    s = cg_compress_with(
        &d->op, &tag, &side, x0, d->n, g->packet, g->packet_cap, &g->len, g->scratch, g->scratch_bytes);
    if (s != CG_OK) return cg_gossip_say_(g, s, s == CG_E_NONFINITE ? "x0: " : "op: ", report.why);
    if (d->n && cg_absmax_bits_(x0, d->n) >= CG_INF_BITS_)
        return cg_gossip_say_(g, CG_E_NONFINITE, "x0 has NaN or Inf", NULL);
    g->desc = *d;
    cg_gossip_meet_all_(g);
    g->setup = cg_gossip_setup_(d);
    g->weight = 1.0;
    g->mine = 1; /* what everybody knows: zeros */
    for (size_t k = 0; k < g->peers; k++) g->peer[k].have = 1, g->peer[k].replicated = 1;
    if (cg_gossip_has_(d, CG_GOSSIP_FROM_DENSE_)) {
        g->mine = tag.seed;
        for (size_t i = 0; i < d->n; i++) g->mine = cg_mix64_(g->mine ^ cg_load_bits_(x0, i));
        g->mine |= 2;
        for (size_t k = 0; k < g->peers; k++) g->peer[k].have = 0, g->peer[k].replicated = 0;
    }
    if (cg_gossip_has_(d, CG_GOSSIP_OWN_IS_X_)) memcpy(g->own, x0, 4 * d->n);
    g->why[0] = 0;
    cg_report_set_(&g->report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    return CG_OK;
}
CG_API_ cg_status cg_gossip_init(
    cg_gossip *gossip, const cg_gossip_desc *desc, const float *x0, void *mem, size_t bytes) {
    cg_about about;
    cg_fenv_ env;
    cg_status s;
    uint64_t need;
    if (!gossip) return CG_E_ARG;
    memset(gossip, 0, sizeof *gossip);
    if (!desc || (!x0 && desc->n)) return cg_gossip_say_(gossip, CG_E_ARG, "desc or x0 is NULL", NULL);
    s = cg_gossip_check_(gossip, desc, &about);
    if (s != CG_OK) return s;
    need = cg_gossip_plan_(gossip, desc, NULL);
    if (cg_size_or_zero_(need) == 0) return cg_gossip_say_(gossip, CG_E_ARG, "sizes overflow", NULL);
    if (!mem || bytes < need) {
        memset(gossip, 0, sizeof *gossip);
        cg_gossip_say_(gossip, CG_E_MEMORY, "mem is too small: cg_gossip_memory gives its bytes", NULL);
        gossip->report.need = need;
        return CG_E_MEMORY;
    }
    env = cg_fenv_enter_();
    s = cg_gossip_make_(gossip, desc, x0, (uint8_t *)mem + (64 - ((uintptr_t)mem & 63)) % 64);
    cg_fenv_leave_(env);
    if (s != CG_OK) gossip->desc.graph = NULL;
    return s;
}
CG_API_ const char *cg_gossip_why(const cg_gossip *gossip) { return gossip ? gossip->why : "gossip is NULL"; }
CG_API_ void cg_gossip_report(const cg_gossip *gossip, cg_report *report) {
    if (gossip && report) *report = gossip->report;
}
CG_API_ const float *cg_gossip_replica(const cg_gossip *gossip, int node) {
    for (size_t k = 0; gossip && gossip->desc.graph && k < gossip->peers; k++)
        if (gossip->peer[k].from == node && gossip->peer[k].replicated) return gossip->peer[k].replica;
    return NULL;
}

/* ---- a step ---- */

/* This node fails, or a neighbour of it: the first failure is the step's. */
static void cg_gossip_fail_(cg_gossip *g, cg_status s, const char *why, int rank, uint64_t at) {
    if (g->failed) return;
    g->failed = (uint32_t)s;
    g->report.status = (uint32_t)s;
    g->report.why = why;
    g->report.rank = rank;
    g->report.at = at;
}
/* Compresses what the kind sends. A gradient that is not finite counts as zeros. */
static void cg_gossip_begin_(cg_gossip *g) {
    const cg_gossip_row_ *row = cg_gossip_row_of_(&g->desc);
    const size_t n = g->desc.n;
    const cg_tag tag = cg_gossip_tag_(g, g->desc.rank, g->step);
    const float *grad = g->grad, *v;
    cg_status s;
    if (!cg_is_finite_(g->rate)) {
        cg_gossip_fail_(g, CG_E_ARG, "rate must be finite", g->desc.rank, CG_NO_INDEX);
        return;
    }
    v = row->make(g, grad);
    /* what is not finite shows in v, which has the gradient in it, unless v is x itself */
    if (n && (cg_absmax_bits_(v, n) >= CG_INF_BITS_ || (v == g->x && cg_absmax_bits_(g->half, n) >= CG_INF_BITS_))) {
        const uint64_t at = cg_first_nonfinite_(g->x, n);
        if (at != CG_NO_INDEX) {
            cg_gossip_fail_(g, CG_E_NONFINITE, "x has NaN or Inf", g->desc.rank, at);
            return;
        }
        g->grad_status = CG_E_NONFINITE;
        g->report.at = cg_first_nonfinite_(grad, n);
        v = row->make(g, NULL);
    }
    s = cg_compress_with(
        &g->desc.op, &tag, g->desc.side, v, n, g->packet, g->packet_cap, &g->len, g->scratch, g->scratch_bytes);
    if (s != CG_OK) {
        cg_gossip_fail_(g, s, cg_status_str(s), g->desc.rank, CG_NO_INDEX);
        return;
    }
    if (row->after) row->after(g);
    g->taken = 0;
    g->becomes = cg_mix64_(cg_gossip_hash_(g->mine ^ cg_mix64_(g->step + 1), g->packet, CG_HEADER_BYTES)) | 2;
}
CG_API_ cg_status cg_gossip_start(cg_gossip *gossip, float *x, const float *grad, float rate, uint64_t step) {
    cg_fenv_ env;
    if (!gossip || ((!x || !grad) && gossip->desc.n)) return CG_E_ARG;
    if (!gossip->desc.graph) return CG_E_STATE;
    cg_report_set_(&gossip->report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    gossip->x = x ? x : gossip->half; /* of no values */
    gossip->grad = grad ? grad : gossip->half;
    gossip->rate = rate;
    gossip->step = step;
    gossip->at = 0;
    gossip->failed = gossip->grad_status = 0;
    gossip->mixed = 0.0f;
    gossip->heard = 0.0;
    gossip->sent = gossip->is_whole = 0;
    gossip->phase = CG_GOSSIP_MEET_;
    for (size_t k = 0; k < gossip->peers; k++) gossip->peer[k].met = 0;
    if (cg_gossip_meets_one_(&gossip->desc) && gossip->peers) {
        const cg_graph_desc *d = &gossip->desc.graph->desc;
        const int hop = cg_graph_hop_(gossip->desc.graph, step);
        const int to = cg_graph_around_(d, gossip->desc.rank, hop), from = cg_graph_around_(d, gossip->desc.rank, -hop);
        /* what was sent must be known for each packet alone, if mass is to stay */
        cg_gossip_peer_add_(gossip, 0, to, gossip->peers > 1 ? -1 : from);
        if (gossip->peers > 1) cg_gossip_peer_add_(gossip, 1, -1, from);
    }
    env = cg_fenv_enter_();
    cg_gossip_begin_(gossip);
    cg_fenv_leave_(env);
    return CG_OK;
}
static int cg_gossip_sends_(const cg_gossip *g) { /* this node, in this step */
    return !g->failed && (!cg_gossip_has_(&g->desc, CG_GOSSIP_ONE_WAY_) || g->weight >= CG_GOSSIP_LEAST_WEIGHT_);
}
static void cg_gossip_note_put_(const cg_gossip *g, const cg_gossip_peer *p, uint8_t *note) {
    memset(note, 0, CG_GOSSIP_NOTE_);
    cg_put32_(note, CG_GOSSIP_MAGIC_);
    cg_put32_(note + 4, 1);
    cg_put32_(note + 8, cg_gossip_sends_(g) ? 0u : 1u);
    cg_put64_(note + 16, g->step);
    cg_put64_(note + 24, g->setup);
    cg_put64_(note + 32, g->mine);
    cg_put64_(note + 40, g->becomes);
    cg_put64_(note + 48, p->have);
    cg_put64_(note + 56, cg_gossip_sends_(g) ? g->len : 0);
    cg_put64_(note + 64, cg_as_bits64_(cg_times64_(g->weight, cg_gossip_share_(g))));
    cg_put32_(note + 72, (uint32_t)g->desc.rank);
    cg_put32_(note + 76, (uint32_t)p->to);
    cg_seal_put_(note, CG_GOSSIP_NOTE_, CG_GOSSIP_NOTE_SEAL_);
}
/* A neighbour that was not met. */
static void cg_gossip_miss_(cg_gossip *g, cg_gossip_peer *p, cg_status s, const char *why) {
    const int rank = p->from >= 0 ? p->from : p->to;
    p->met = 0;
    p->replicated = p->replicated && !p->replica; /* to be compared at the next meeting */
    g->report.rank = rank;
    if (!(g->desc.flags & CG_GOSSIP_TOLERATE)) cg_gossip_fail_(g, s, why, rank, CG_NO_INDEX);
}
/* NULL, or what is wrong with a note of p->from. */
static const char *cg_gossip_note_wrong_(
    const cg_gossip *g, const cg_gossip_peer *p, const uint8_t *note, cg_status *s) {
    const double weight = cg_as_double_(cg_get64_(note + 64));
    *s = CG_E_CORRUPT;
    if (cg_get32_(note) != CG_GOSSIP_MAGIC_ || !cg_seal_is_intact_(note, CG_GOSSIP_NOTE_, CG_GOSSIP_NOTE_SEAL_))
        return "a note of this neighbour is damaged";
    *s = CG_E_VERSION;
    if (cg_get32_(note + 4) != 1) return "this neighbour speaks another version";
    *s = CG_E_MISMATCH;
    if (cg_get64_(note + 24) != g->setup)
        return "this neighbour has another graph, kind, operator, n, eta, seed or flags";
    if (cg_get64_(note + 16) != g->step) return "this neighbour is at another step";
    if (cg_get32_(note + 72) != (uint32_t)p->from || cg_get32_(note + 76) != (uint32_t)g->desc.rank)
        return "a note of another node, or for another";
    *s = CG_E_CORRUPT;
    if (cg_get64_(note + 56) > g->packet_cap || cg_get32_(note + 12) || cg_get32_(note + 8) > 1)
        return "a note of this neighbour is damaged";
    if (!(weight > 0.0 && weight <= (double)g->desc.graph->desc.nodes)) return "a note of this neighbour is damaged";
    return NULL;
}
/* The notes are there: how many bytes go out and come in. */
static void cg_gossip_noted_(cg_gossip *g, cg_gossip_peer *p, int code) {
    const uint8_t *note = g->notes + CG_GOSSIP_NOTE_;
    const int one_way = cg_gossip_has_(&g->desc, CG_GOSSIP_ONE_WAY_), pair = !one_way && p->to == p->from;
    const int replicates = cg_gossip_has_(&g->desc, CG_GOSSIP_REPLICATES_);
    const cg_op dense = cg_dense();
    const char *why;
    cg_status s;
    g->out_bytes = g->in_bytes = 0;
    g->is_whole = 0;
    if (code) {
        g->report.code = code;
        cg_gossip_miss_(g, p, CG_E_TRANSPORT, cg_status_str(CG_E_TRANSPORT));
        return;
    }
    g->report.bytes_out += p->to >= 0 ? CG_GOSSIP_NOTE_ : 0;
    g->report.bytes_in += p->from >= 0 ? CG_GOSSIP_NOTE_ : 0;
    g->report.rounds++;
    if (!pair && p->to >= 0 && cg_gossip_sends_(g)) g->out_bytes = g->len;
    if (p->from < 0) return;
    why = cg_gossip_note_wrong_(g, p, note, &s);
    if (why) {
        if (pair) g->out_bytes = 0;
        cg_gossip_miss_(g, p, s, why);
        return;
    }
    if (cg_get32_(note + 8)) {
        if (!one_way) cg_gossip_miss_(g, p, CG_E_PEER, cg_status_str(CG_E_PEER));
        return;
    }
    g->in_bytes = (size_t)cg_get64_(note + 56);
    if (!pair) return;
    if (!cg_gossip_sends_(g)) {
        g->in_bytes = 0;
        return;
    }
    g->out_bytes = g->len;
    if (!replicates) return;
    p->becomes = cg_get64_(note + 40);
    p->replicated = p->have == cg_get64_(note + 32);
    if (!p->replicated) g->in_bytes = cg_bound(&dense, g->desc.n); /* known is something old, or nothing */
    if (cg_get64_(note + 48) != g->mine) g->is_whole = 1;
    if (!p->replica && (g->is_whole || !p->replicated) && (g->steps || p->have || cg_get64_(note + 48))) {
        g->in_bytes = g->out_bytes = 0;
        cg_gossip_miss_(g, p, CG_E_MISMATCH,
            "sums of replicas are not of what this neighbour has: load states of one step, or set CG_GOSSIP_TOLERATE");
        return;
    }
    if (g->is_whole) {
        const cg_tag tag = cg_gossip_tag_(g, g->desc.rank, g->step);
        const float *v = cg_gossip_has_(&g->desc, CG_GOSSIP_FROM_DENSE_) ? g->half : g->own;
        s = cg_compress(
            &dense, &tag, v, g->desc.n, g->whole, g->out_bytes = cg_bound(&dense, g->desc.n), &g->whole_len, NULL, 0);
        COMPGRAD_ASSERT(s == CG_OK && g->whole_len == g->out_bytes);
        if (s != CG_OK) memset(g->whole, 0, g->out_bytes); /* half is finite, so that this does not happen */
    }
}
/* A packet of p->from is there; whole: not a change. */
static const char *cg_gossip_take_(cg_gossip *g, cg_gossip_peer *p, cg_status *s) {
    const int whole = cg_gossip_has_(&g->desc, CG_GOSSIP_REPLICATES_) && !p->replicated;
    const cg_tag tag = cg_gossip_tag_(g, p->from, g->step);
    const float w = cg_gossip_has_(&g->desc, CG_GOSSIP_ONE_WAY_) ? 1.0f : cg_gossip_weight_(g, p);
    cg_info info;
    *s = cg_inspect(g->incoming, g->in_bytes, &info);
    if (*s != CG_OK) return "a packet of this neighbour is damaged";
    *s = CG_E_MISMATCH;
    if (info.tag.seed != tag.seed || info.tag.step != tag.step || info.tag.rank != tag.rank || info.n != g->desc.n)
        return "a packet of another node, step or n";
    if (p->replica)
        *s = cg_decode(g->desc.side, g->incoming, g->in_bytes, 1.0f, whole ? 0.0f : 1.0f, p->replica, g->desc.n);
    else *s = cg_decode(g->desc.side, g->incoming, g->in_bytes, w, g->taken ? 1.0f : 0.0f, g->gathered, g->desc.n);
    if (*s != CG_OK) return "a packet of this neighbour is damaged";
    if (p->replica) { /* at once: what was received is known, whatever becomes of this step */
        p->have = p->becomes;
        p->replicated = 1;
    } else {
        g->taken = 1;
        g->mixed = cg_plus_(g->mixed, w);
    }
    return NULL;
}
static void cg_gossip_took_(cg_gossip *g, cg_gossip_peer *p, int code) {
    const char *why;
    cg_status s;
    if (code) {
        g->report.code = code;
        cg_gossip_miss_(g, p, CG_E_TRANSPORT, cg_status_str(CG_E_TRANSPORT));
        return;
    }
    g->report.bytes_out += g->out_bytes;
    g->report.bytes_in += g->in_bytes;
    g->report.rounds++;
    if (g->out_bytes && cg_gossip_has_(&g->desc, CG_GOSSIP_ONE_WAY_)) g->sent++;
    if (g->in_bytes) {
        if (g->failed) return; /* discarded: this node is away */
        why = cg_gossip_take_(g, p, &s);
        if (why) {
            cg_gossip_miss_(g, p, s, why);
            return;
        }
        g->heard += cg_as_double_(cg_get64_(g->notes + CG_GOSSIP_NOTE_ + 64));
    }
    p->met = 1;
}
/* All neighbours have been met, or not: the step is taken, or the first failure returned. */
static cg_status cg_gossip_end_(cg_gossip *g) {
    const size_t n = g->desc.n;
    g->phase = CG_GOSSIP_IDLE_;
    if (!g->failed) {
        if (!g->taken) cg_gossip_zero_(g, g->gathered);
        cg_gossip_row_of_(&g->desc)->finish(g);
        if (n && cg_absmax_bits_(g->half, n) >= CG_INF_BITS_) /* models of 1e38: saturated rather than lost */
            for (size_t i = 0; i < n; i++) g->half[i] = g->half[i] != g->half[i] ? 0.0f : cg_saturate_(g->half[i]);
        memcpy(g->x, g->half, 4 * n);
        g->mine = g->becomes;
        for (size_t k = 0; k < g->peers; k++)
            if (!g->peer[k].replica && cg_gossip_has_(&g->desc, CG_GOSSIP_REPLICATES_)) {
                g->peer[k].have = g->peer[k].becomes;
                g->peer[k].replicated = 1;
            }
        g->steps++;
        if (!g->grad_status) return CG_OK;
        g->report.status = g->grad_status;
        g->report.why = "grad has NaN or Inf: the step was taken with zeros in its place";
        g->report.rank = g->desc.rank;
        return (cg_status)g->grad_status;
    }
    /* some neighbours may have taken the packet, and own is changed: let all of them ask for the whole */
    if (cg_gossip_keeps_replicas_(g)) g->mine = cg_mix64_(g->mine ^ cg_mix64_(g->step + CG_GOLDEN_)) | 2;
    return (cg_status)g->failed;
}
static cg_status cg_gossip_next_(cg_gossip *g, int last_code, cg_io *io) {
    for (;;) {
        cg_gossip_peer *p = &g->peer[g->at];
        if (g->phase == CG_GOSSIP_MEET_) {
            if (g->at == g->peers) return cg_gossip_end_(g);
            cg_gossip_note_put_(g, p, g->notes);
            memset(g->notes + CG_GOSSIP_NOTE_, 0, CG_GOSSIP_NOTE_);
            io->out = g->notes;
            io->in = g->notes + CG_GOSSIP_NOTE_;
            io->out_bytes = p->to >= 0 ? CG_GOSSIP_NOTE_ : 0;
            io->in_bytes = p->from >= 0 ? CG_GOSSIP_NOTE_ : 0;
            io->to = p->to;
            io->from = p->from;
            g->phase = CG_GOSSIP_NOTED_;
            break;
        }
        if (g->phase == CG_GOSSIP_NOTED_) {
            cg_gossip_noted_(g, p, last_code);
            if (g->out_bytes || g->in_bytes) {
                io->out = g->is_whole ? g->whole : g->packet;
                io->in = g->incoming;
                io->out_bytes = g->out_bytes;
                io->in_bytes = g->in_bytes;
                io->to = g->out_bytes ? p->to : -1;
                io->from = g->in_bytes ? p->from : -1;
                g->phase = CG_GOSSIP_PACKET_;
                break;
            }
        } else {
            cg_gossip_took_(g, p, last_code);
        }
        last_code = 0;
        g->at++;
        g->phase = CG_GOSSIP_MEET_;
    }
    io->kind = CG_IO_SENDRECV;
    return CG_AGAIN;
}
CG_API_ cg_status cg_gossip_next(cg_gossip *gossip, int last_code, cg_io *io) {
    cg_fenv_ env;
    cg_status s;
    if (!gossip || !io) return CG_E_ARG;
    memset(io, 0, sizeof *io);
    if (!gossip->desc.graph || gossip->phase == CG_GOSSIP_IDLE_) return CG_E_STATE;
    env = cg_fenv_enter_();
    s = cg_gossip_next_(gossip, last_code, io);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_gossip_step(cg_gossip *gossip, const cg_transport *transport, float *x, const float *grad,
    float rate, uint64_t step, cg_report *report) {
    cg_io io;
    int code = 0;
    cg_status s;
    if (report) cg_report_set_(report, CG_E_ARG, "gossip, transport, x or grad is NULL", 0, CG_NO_INDEX);
    if (!gossip || !transport || ((!x || !grad) && gossip->desc.n)) return CG_E_ARG;
    if (!transport->sendrecv) {
        if (report) cg_report_set_(report, CG_E_UNSUPPORTED, "gossip needs the callback sendrecv", 0, CG_NO_INDEX);
        return CG_E_UNSUPPORTED;
    }
    s = cg_gossip_start(gossip, x, grad, rate, step);
    if (s == CG_OK)
        while ((s = cg_gossip_next(gossip, code, &io)) == CG_AGAIN) code = cg_io_run(transport, &io);
    if (report) *report = gossip->report;
    return s;
}
