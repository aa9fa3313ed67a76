/* sums: allreduce of floats over sendrecv, by pairs or around a ring

   Offers   cg_sum_kind_ (which way), cg_sum_step_ (its messages), cg_sum_bounce_, cg_sum_cost_; floats in wire order
            (cg_floats_*_le_), cg_io_set_
   Needs    ranks, kernels (cg_axpby_, cg_absmax_bits_)
   Touches  ex->collective and the floats that it sums, ex->mem.bounce
   A tree: P is the largest power of two up to N, and r = N - P. The ranks 2i and 2i + 1, i < r, first add their vectors
   and take part as one; the rank r + i takes part alone, as the i-th of P, i >= r. Then participants at distance P/2,
   P/4, ..., 1 add what they have. By doubling they add whole vectors, and pairs are served by their odd rank. By
   halving (Rabenseifner) each keeps half of what it had, down to one part in P, and the sums come back the same way;
   of a pair each rank serves one half of the vector, so that none moves more than twice the vector. Every value is the
   sum in one and the same order either way, whatever n is and wherever the value stands: vectors may be joined, or the
   way be chosen by length, and no bit changes. On a ring the order depends on the stripe. */

/* Floats on the wire are little-endian, so that ranks of different byte order can add up each other's.
   Host order to wire order in place, or back. */
static void cg_floats_swap_le_(float *v, size_t n) {
    for (size_t i = 0; CG_BIG_ENDIAN_ && i < n; i++) {
        uint32_t u = cg_get32_((const uint8_t *)v + 4 * i);
        memcpy((uint8_t *)v + 4 * i, &u, 4);
    }
}
/* acc += in, both in wire order. */
static void cg_floats_add_le_(float *acc, const float *in, size_t n) {
#if CG_BIG_ENDIAN_
    for (size_t i = 0; i < n; i++)
        cg_put32_((uint8_t *)acc + 4 * i,
            cg_as_bits_(cg_plus_(cg_as_float_(cg_get32_((const uint8_t *)acc + 4 * i)),
                cg_as_float_(cg_get32_((const uint8_t *)in + 4 * i)))));
#else
    cg_axpby_(in, n, 1.0f, 1.0f, acc);
#endif
}
/* Largest magnitude, as bits, of n floats in wire order. */
static uint32_t cg_floats_absmax_bits_le_(const uint8_t *v, size_t n) {
#if CG_BIG_ENDIAN_
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = cg_get32_(v + 4 * i) & CG_ABS_MASK_;
        top = bits > top ? bits : top;
    }
    return top;
#else
    return cg_absmax_bits_((const float *)(const void *)v, n);
#endif
}
/* Returns 1: there is a message to move. */
static int cg_io_set_(
    cg_io *io, uint32_t kind, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    io->kind = kind;
    io->out = out;
    io->out_bytes = out_bytes;
    io->to = to;
    io->in = in;
    io->in_bytes = in_bytes;
    io->from = from;
    return 1;
}
/* What one rank does in one round of a sum: floats of the vector that go out, and that come in. */
typedef struct cg_leg_ {
    size_t out, out_n, in, in_n; /* where in the vector, and how many */
    int to, from;                /* -1: none */
    int adds;                    /* what comes is added to what is there; otherwise it takes its place */
} cg_leg_;
/* Who is who in a tree. */
typedef struct cg_tree_ {
    int ranks, participants, levels, pairs; /* N, P, log2 P, r */
    int is_pair, id;                        /* of this rank, as one of P */
} cg_tree_;
static cg_tree_ cg_tree_of_(int rank, int ranks) {
    cg_tree_ t;
    t.ranks = ranks;
    t.levels = (int)cg_log2_((uint64_t)ranks);
    t.participants = 1 << t.levels;
    t.pairs = ranks - t.participants;
    t.is_pair = rank < 2 * t.pairs;
    t.id = t.is_pair ? rank / 2 : rank - t.pairs;
    return t;
}
static void cg_leg_swap_(cg_leg_ *leg, int peer, size_t out, size_t out_end, size_t in, size_t in_end, int adds) {
    leg->to = leg->from = peer;
    leg->out = out;
    leg->out_n = out_end - out;
    leg->in = in;
    leg->in_n = in_end - in;
    leg->adds = adds;
}
/* The functions cg_leg_by_ give the round t of a rank; 0: there is none. */
static int cg_leg_by_doubling_(int rank, int ranks, size_t n, int t, cg_leg_ *leg) {
    const cg_tree_ tree = cg_tree_of_(rank, ranks);
    const int last = tree.levels + 1;
    int peer;
    if (!tree.is_pair) t++; /* pairs have one round before all others, and one behind */
    if (t > last || (t == last && !tree.is_pair)) return 0;
    if (t == 0 || t == last) {
        const int gives = (rank % 2 == 0) == (t == 0);
        cg_leg_swap_(leg, rank ^ 1, 0, gives ? n : 0, 0, gives ? 0 : n, t == 0);
        return 1;
    }
    if (tree.is_pair && rank % 2 == 0) { /* waits for its partner */
        cg_leg_swap_(leg, rank ^ 1, 0, 0, 0, 0, 0);
        return 1;
    }
    peer = tree.id ^ tree.participants >> t;
    cg_leg_swap_(leg, peer < tree.pairs ? 2 * peer + 1 : peer + tree.pairs, 0, n, 0, n, 1);
    return 1;
}
static int cg_leg_by_halving_(int rank, int ranks, size_t n, int t, cg_leg_ *leg) {
    const cg_tree_ tree = cg_tree_of_(rank, ranks);
    const int halves = tree.pairs && !tree.is_pair ? 2 : 1, rounds = tree.levels * halves, own = rank % 2;
    const size_t middle = cg_stripe_offset_(n, 2, 1);
    size_t base, len, mine, theirs, distance;
    int half, level, peer;
    if (tree.is_pair && t-- == 0) {
        if (own) cg_leg_swap_(leg, rank ^ 1, 0, middle, middle, n, 1);
        else cg_leg_swap_(leg, rank ^ 1, middle, n, 0, middle, 1);
        return 1;
    }
    if (t >= 2 * rounds) {
        if (!tree.is_pair || t > 2 * rounds) return 0;
        if (own) cg_leg_swap_(leg, rank ^ 1, middle, n, 0, middle, 0);
        else cg_leg_swap_(leg, rank ^ 1, 0, middle, middle, n, 0);
        return 1;
    }
    half = tree.is_pair ? own : t % rounds % halves;
    level = t % rounds / halves;
    if (t >= rounds) level = tree.levels - 1 - level;
    base = tree.pairs && half ? middle : 0;
    len = !tree.pairs ? n : half ? n - middle : middle;
    distance = (size_t)tree.participants >> (level + 1);
    peer = tree.id ^ (int)distance;
    mine = (size_t)tree.id & ~(distance - 1);
    theirs = mine ^ distance;
#define CG_PART_(p) (base + cg_stripe_offset_(len, (size_t)tree.participants, p))
    peer = peer < tree.pairs ? 2 * peer + half : peer + tree.pairs;
    if (t < rounds)
        cg_leg_swap_(
            leg, peer, CG_PART_(theirs), CG_PART_(theirs + distance), CG_PART_(mine), CG_PART_(mine + distance), 1);
    else
        cg_leg_swap_(
            leg, peer, CG_PART_(mine), CG_PART_(mine + distance), CG_PART_(theirs), CG_PART_(theirs + distance), 0);
#undef CG_PART_
    return 1;
}
/* In N - 1 rounds every stripe is summed on its way around, in N - 1 more the sums are handed on. */
static int cg_leg_by_ring_(int rank, int ranks, size_t n, int t, cg_leg_ *leg) {
    const size_t stripes = (size_t)ranks;
    size_t out, in;
    if (t >= 2 * (ranks - 1)) return 0;
    /* after ranks - 1 rounds the sum of stripe rank + 1 is complete */
    out = (size_t)(((rank - t + (t >= ranks - 1 ? ranks : 0)) % ranks + ranks) % ranks);
    in = (out + stripes - 1) % stripes;
    cg_leg_swap_(leg, 0, cg_stripe_offset_(n, stripes, out), cg_stripe_offset_(n, stripes, out + 1),
        cg_stripe_offset_(n, stripes, in), cg_stripe_offset_(n, stripes, in + 1), t < ranks - 1);
    leg->to = (rank + 1) % ranks;
    leg->from = (rank + ranks - 1) % ranks;
    return 1;
}
static int cg_leg_at_(const cg_ex_ *ex, uint32_t sum, size_t n, int t, cg_leg_ *leg) {
    const int rank = ex->transport.rank, ranks = ex->transport.size;
    if (sum == CG_SUM_RING) return cg_leg_by_ring_(rank, ranks, n, t, leg);
    if (sum == CG_SUM_HALVING) return cg_leg_by_halving_(rank, ranks, n, t, leg);
    return cg_leg_by_doubling_(rank, ranks, n, t, leg);
}
/* Floats of the bounce buffer that a sum of n needs: what one round adds. */
static uint64_t cg_sum_bounce_(uint32_t sum, int ranks, uint64_t n) {
    const uint64_t share = sum == CG_SUM_RING ? (uint64_t)ranks : sum == CG_SUM_HALVING ? 2 : 1;
    return share > 1 && n / share + 128 < n ? n / share + 128 : n;
}
/* Rounds, and bytes one after the other, of the rank that has most of them. */
static cg_cost_ cg_sum_cost_(uint32_t sum, int ranks, uint64_t n) {
    const cg_tree_ tree = cg_tree_of_(0, ranks);
    const double bytes = 4.0 * (double)n;
    cg_cost_ cost;
    if (sum == CG_SUM_DOUBLING) {
        cost.rounds = tree.levels + (tree.pairs ? 2 : 0);
        cost.bytes = bytes * cost.rounds;
    } else if (sum == CG_SUM_HALVING) {
        cost.rounds = tree.levels * (tree.pairs ? 4 : 2);
        cost.bytes = bytes * (2.0 - (tree.pairs ? 1.0 : 2.0) / tree.participants);
    } else {
        cost.rounds = 2.0 * (ranks - 1);
        cost.bytes = bytes * 2.0 * (ranks - 1) / ranks;
    }
    return cost;
}
/* How n floats are summed: CG_SUM_RING, CG_SUM_DOUBLING or CG_SUM_HALVING; CG_SUM_CALLBACK: by the caller's allreduce,
   which has to give all ranks the same bits unless there is no other callback; CG_SUM_GATHER: over allgather or
   broadcast. */
static uint32_t cg_sum_kind_(const cg_ex_ *ex, size_t n) {
    const cg_transport *t = &ex->transport;
    const uint32_t sum = ex->desc.sum;
    if (t->allreduce && !sum && ((t->flags & CG_ALLREDUCE_AGREES) || !(t->sendrecv || t->allgather || t->broadcast)))
        return CG_SUM_CALLBACK;
    if (!t->sendrecv) return t->allgather || t->broadcast ? CG_SUM_GATHER : CG_SUM_CALLBACK;
    if (sum != CG_SUM_AUTO && sum != CG_SUM_TREE) return sum;
    return cg_seconds_(ex, cg_sum_cost_(CG_SUM_HALVING, t->size, n)) <
            cg_seconds_(ex, cg_sum_cost_(CG_SUM_DOUBLING, t->size, n))
        ? CG_SUM_HALVING
        : CG_SUM_DOUBLING;
}
/* Uses what the last message brought, then sets io to the next and returns 1, or returns 0: the sum is there. */
static int cg_sum_step_(cg_ex_ *ex, cg_io *io) {
    cg_collective_state_ *c = &ex->collective;
    const size_t n = c->bytes / 4;
    float *v = (float *)(void *)c->buf;
    cg_leg_ leg;
    if (c->step && cg_leg_at_(ex, c->sum, n, c->step - 1, &leg) && leg.adds)
        cg_floats_add_le_(v + leg.in, (const float *)(void *)ex->mem.bounce, leg.in_n);
    if (!cg_leg_at_(ex, c->sum, n, c->step++, &leg)) return 0;
    return cg_io_set_(io, CG_IO_SENDRECV, v + leg.out, 4 * leg.out_n, leg.out_n ? leg.to : -1,
        leg.adds ? (void *)ex->mem.bounce : (void *)(v + leg.in), 4 * leg.in_n, leg.in_n ? leg.from : -1);
}
