/* ---- >>collectives: from what the transport has ---- */

enum { CG_COLL_NONE_, CG_COLL_ALLGATHER_, CG_COLL_BROADCAST_, CG_COLL_ALLREDUCE_, CG_COLL_SENDRECV_ };
/* the callback of that name, or one of the others */
enum { CG_VIA_OWN_CALLBACK_, CG_VIA_SENDRECV_, CG_VIA_ALLGATHER_, CG_VIA_BROADCAST_, CG_VIA_ALLREDUCE_ };

/* Floats as the wire has them, and back. */
static void cg_floats_swap_le_(float *v, size_t n) {
    for (size_t i = 0; CG_BIG_ENDIAN_ && i < n; i++) {
        uint32_t u = cg_get32_((const uint8_t *)v + 4 * i);
        memcpy((uint8_t *)v + 4 * i, &u, 4);
    }
}
static void cg_floats_add_le_(float *acc, const float *in, size_t n) { /* both as on the wire */
#if CG_BIG_ENDIAN_
    for (size_t i = 0; i < n; i++)
        cg_put32_((uint8_t *)acc + 4 * i,
            cg_as_bits_(cg_plus_(cg_as_float_(cg_get32_((const uint8_t *)acc + 4 * i)),
                cg_as_float_(cg_get32_((const uint8_t *)in + 4 * i)))));
#else
    cg_kernels_now_()->axpby(in, n, 1.0f, 1.0f, acc, 0);
#endif
}
static uint32_t cg_via_fallback_(const cg_transport *t) {
    return (uint32_t)(t->sendrecv ? CG_VIA_SENDRECV_
            : t->allgather        ? CG_VIA_ALLGATHER_
            : t->broadcast        ? CG_VIA_BROADCAST_
                                  : CG_VIA_ALLREDUCE_);
}
static uint32_t cg_via_(const cg_transport *t, int itself) {
    return itself ? (uint32_t)CG_VIA_OWN_CALLBACK_ : cg_via_fallback_(t);
}

static void cg_collective_begin_(
    cg_ex_ *x, uint32_t ask, uint32_t how, const void *mine, void *buf, size_t bytes, int root) {
    memset(&x->c, 0, sizeof x->c);
    x->c.ask = ask;
    x->c.how = how;
    x->c.mine = (const uint8_t *)mine;
    x->c.buf = (uint8_t *)buf;
    x->c.bytes = bytes;
    x->c.root = root;
}
/* Everybody's `mine`, sizes[rank] bytes, known to all; buf has room for N of the longest. Find them with
   cg_gathered_. */
static void cg_allgather_begin_(cg_ex_ *x, const void *mine, const uint64_t *sizes, void *buf) {
    const cg_transport *t = &x->transport;
    uint64_t longest = 0, all = 0;
    uint32_t how = cg_via_fallback_(t);
    for (size_t q = 0; q < cg_ranks_(x); q++) {
        longest = sizes[q] > longest ? sizes[q] : longest;
        all += sizes[q];
    }
    /* the callback moves N times the longest: too much where lengths differ widely */
    if (t->allgather && (how == CG_VIA_ALLGATHER_ || longest * cg_ranks_(x) <= all + all / 4))
        how = CG_VIA_OWN_CALLBACK_;
    cg_collective_begin_(x, CG_COLL_ALLGATHER_, how, mine, buf, all == longest * cg_ranks_(x) ? (size_t)longest : 0, 0);
    x->c.sizes = sizes;
    x->c.longest = longest;
}
static void cg_allgather_equal_begin_(cg_ex_ *x, const uint8_t *mine, uint64_t each, uint8_t *all) {
    for (size_t q = 0; q < cg_ranks_(x); q++) x->sizes[q] = each;
    cg_allgather_begin_(x, mine, x->sizes, all);
}
static void cg_broadcast_begin_(cg_ex_ *x, void *buf, size_t bytes, int root) {
    cg_collective_begin_(
        x, CG_COLL_BROADCAST_, cg_via_(&x->transport, x->transport.broadcast != NULL), NULL, buf, bytes, root);
}
static void cg_allreduce_begin_(cg_ex_ *x, float *v, size_t n) {
    const cg_transport *t = &x->transport;
    const int itself = t->allreduce &&
        ((t->flags & CG_ALLREDUCE_AGREES) || !(t->sendrecv || t->allgather || t->broadcast));
    cg_collective_begin_(x, CG_COLL_ALLREDUCE_, cg_via_(t, itself), NULL, v, 4 * n, 0);
}
static void cg_sendrecv_begin_(
    cg_ex_ *x, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    cg_collective_begin_(x, CG_COLL_SENDRECV_, CG_VIA_OWN_CALLBACK_, out, in, to < 0 ? 0 : out_bytes, from);
    x->c.many = from < 0 ? 0 : in_bytes;
    x->c.mask = to;
}
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
/* Bytes of the ranks before the i-th, counted from `first` on and around. */
static size_t cg_sizes_prefix_sum_(const cg_ex_ *x, size_t first, size_t i) {
    uint64_t at = 0;
    if (x->c.bytes) return i * x->c.bytes; /* all of them equal */
    for (size_t j = 0; j < i; j++) at += x->c.sizes[(first + j) % cg_ranks_(x)];
    return (size_t)at;
}
/* Where the last gather left rank q's bytes. */
static const uint8_t *cg_gathered_(const cg_ex_ *x, size_t q) {
    const size_t me = (size_t)x->transport.rank, size = cg_ranks_(x);
    if (q == me) return x->c.mine;
    if (x->c.how == CG_VIA_SENDRECV_) return x->c.buf + cg_sizes_prefix_sum_(x, me, (q + size - me) % size);
    return x->c.buf + (x->c.how == CG_VIA_ALLREDUCE_ ? cg_sizes_prefix_sum_(x, 0, q) : q * (size_t)x->c.longest);
}
/* Bytes as exact sums: three to a float, zeros from all ranks but one. [at, at + many) of a string of which this
   rank has [from, to), at `mine`. */
static void cg_bytes_to_floats_(float *v, const uint8_t *mine, size_t from, size_t to, size_t at, size_t many) {
    for (size_t i = 0; i < many; i += 3) {
        uint32_t u = 0;
        for (size_t j = 0; j < 3 && i + j < many; j++)
            if (at + i + j >= from && at + i + j < to) u |= (uint32_t)mine[at + i + j - from] << 8 * j;
        v[i / 3] = (float)u;
    }
}
static int cg_floats_to_bytes_(const float *v, uint8_t *out, size_t many) {
    for (size_t i = 0; i < many; i += 3) {
        uint32_t u;
        if (!(v[i / 3] >= 0.0f && v[i / 3] < 16777216.0f)) return 0;
        u = (uint32_t)v[i / 3];
        for (size_t j = 0; j < 3 && i + j < many; j++) out[i + j] = (uint8_t)(u >> 8 * j);
    }
    return 1;
}
/* Each of these asks for the next message, 1, or has finished, 0. */
static int cg_bytes_by_allreduce_step_(cg_ex_ *x, cg_io *io, size_t from, size_t to, size_t total) {
    const uint8_t *mine = x->c.ask == CG_COLL_BROADCAST_ ? x->c.buf : x->c.mine;
    if (x->c.step++) {
        /* the root has it, and nobody would check it here again */
        if (x->c.ask == CG_COLL_BROADCAST_ && to > from) {
        } else if (!cg_floats_to_bytes_((const float *)(void *)x->bounce, x->c.buf + x->c.at, x->c.many)) {
            /* and on: the others still add */
            cg_ex_fail_(x, CG_E_CORRUPT, -1, "the allreduce callback did not return a sum");
        }
        x->c.at += x->c.many;
    }
    if (x->c.at == total) return 0;
    x->c.many = cg_min_(total - x->c.at, x->bounce_bytes / 4 * 3);
    cg_bytes_to_floats_((float *)(void *)x->bounce, mine, from, to, x->c.at, x->c.many);
    return cg_io_set_(io, CG_IO_ALLREDUCE, NULL, 0, -1, x->bounce, (x->c.many + 2) / 3 * 4, -1);
}
static int cg_allgather_step_(cg_ex_ *x, cg_io *io) {
    const size_t size = cg_ranks_(x), me = (size_t)x->transport.rank;
    const size_t longest = (size_t)x->c.longest, mine = (size_t)x->c.sizes[me];
    size_t d, many;
    switch (x->c.how) {
    case CG_VIA_OWN_CALLBACK_:
        if (x->c.step++ || !longest) return 0;
        return cg_io_set_(io, CG_IO_ALLGATHER, x->c.mine, longest, -1, x->c.buf, size * longest, -1);
    case CG_VIA_SENDRECV_: /* Bruck: blocks [me, me + d) are here; d doubles */
        if (!x->c.step) memcpy(x->c.buf, x->c.mine, mine);
        d = (size_t)(x->c.step = x->c.step ? 2 * x->c.step : 1);
        if (d >= size) return 0;
        many = cg_min_(d, size - d);
        cg_io_set_(io, CG_IO_SENDRECV, x->c.buf, cg_sizes_prefix_sum_(x, me, many), (int)((me + size - d) % size),
            x->c.buf + cg_sizes_prefix_sum_(x, me, d), cg_sizes_prefix_sum_(x, (me + d) % size, many),
            (int)((me + d) % size));
        if (!io->out_bytes) io->to = -1;
        if (!io->in_bytes) io->from = -1;
        return 1;
    case CG_VIA_BROADCAST_:
        if (!x->c.step) memcpy(x->c.buf + me * longest, x->c.mine, mine);
        while ((size_t)x->c.step < size) {
            const size_t root = (size_t)x->c.step++;
            if (x->c.sizes[root])
                return cg_io_set_(
                    io, CG_IO_BROADCAST, NULL, 0, -1, x->c.buf + root * longest, (size_t)x->c.sizes[root], (int)root);
        }
        return 0;
    default:
        return cg_bytes_by_allreduce_step_(x, io, cg_sizes_prefix_sum_(x, 0, me), cg_sizes_prefix_sum_(x, 0, me) + mine,
            cg_sizes_prefix_sum_(x, 0, size));
    }
}
static int cg_broadcast_step_(cg_ex_ *x, cg_io *io) {
    const int size = x->transport.size, root = x->c.root, me = cg_wrap_(x, x->transport.rank - root);
    if (!x->c.bytes) return 0;
    switch (x->c.how) {
    case CG_VIA_OWN_CALLBACK_:
        return x->c.step++ ? 0 : cg_io_set_(io, CG_IO_BROADCAST, NULL, 0, -1, x->c.buf, x->c.bytes, root);
    /* binomial: from the rank without my lowest bit, to those with one bit below it */
    case CG_VIA_SENDRECV_:
        if (!x->c.step++) {
            x->c.mask = 1;
            while (x->c.mask < size && !(me & x->c.mask)) x->c.mask <<= 1;
            if (me)
                return cg_io_set_(
                    io, CG_IO_SENDRECV, NULL, 0, -1, x->c.buf, x->c.bytes, cg_wrap_(x, me - x->c.mask + root));
        }
        while ((x->c.mask >>= 1) > 0)
            if (me + x->c.mask < size)
                return cg_io_set_(
                    io, CG_IO_SENDRECV, x->c.buf, x->c.bytes, cg_wrap_(x, me + x->c.mask + root), NULL, 0, -1);
        return 0;
    case CG_VIA_ALLGATHER_:
        if (x->c.step++) {
            if (me) memcpy(x->c.buf + x->c.at, x->bounce + (size_t)root * x->c.many, x->c.many);
            x->c.at += x->c.many;
        }
        if (x->c.at == x->c.bytes) return 0;
        x->c.many = cg_min_(x->c.bytes - x->c.at, x->bounce_bytes / cg_ranks_(x));
        return cg_io_set_(
            io, CG_IO_ALLGATHER, x->c.buf + x->c.at, x->c.many, -1, x->bounce, cg_ranks_(x) * x->c.many, -1);
    default: return cg_bytes_by_allreduce_step_(x, io, 0, me ? 0 : x->c.bytes, x->c.bytes);
    }
}
/* A ring: stripes are summed on their way around, then handed on. */
static int cg_allreduce_ring_step_(cg_ex_ *x, cg_io *io) {
    const int size = x->transport.size, me = x->transport.rank;
    const size_t n = x->c.bytes / 4, parts = cg_ranks_(x);
    float *v = (float *)(void *)x->c.buf;
    size_t out, in;
    int t = x->c.step++;
    if (t > 0 && t < size) { /* what came in the step before */
        in = (size_t)(((me - t) % size + size) % size);
        cg_floats_add_le_(v + cg_stripe_offset_(n, parts, in), (const float *)(void *)x->bounce,
            cg_stripe_offset_(n, parts, in + 1) - cg_stripe_offset_(n, parts, in));
    }
    if (t == 2 * (size - 1)) return 0;
    /* after size - 1 steps stripe me + 1 is whole */
    out = (size_t)(((me - t + (t >= size - 1 ? size : 0)) % size + size) % size);
    in = (out + parts - 1) % parts;
    cg_io_set_(io, CG_IO_SENDRECV, v + cg_stripe_offset_(n, parts, out),
        4 * (cg_stripe_offset_(n, parts, out + 1) - cg_stripe_offset_(n, parts, out)), cg_wrap_(x, me + 1),
        t < size - 1 ? (void *)x->bounce : (void *)(v + cg_stripe_offset_(n, parts, in)),
        4 * (cg_stripe_offset_(n, parts, in + 1) - cg_stripe_offset_(n, parts, in)), cg_wrap_(x, me - 1));
    if (!io->out_bytes) io->to = -1;
    if (!io->in_bytes) io->from = -1;
    return 1;
}
/* Pieces of everybody's, added in rank order. */
static void cg_allreduce_add_pieces_(cg_ex_ *x) {
    float *v = (float *)(void *)(x->c.buf + x->c.at);
    for (size_t q = 0; q < cg_ranks_(x); q++) {
        const float *in = (const float *)(void *)(x->bounce + q * x->c.many);
        if (q) cg_floats_add_le_(v, in, x->c.many / 4);
        else memcpy(v, in, x->c.many);
    }
    x->c.at += x->c.many;
}
static int cg_allreduce_step_(cg_ex_ *x, cg_io *io) {
    const size_t size = cg_ranks_(x);
    const uint32_t how = x->c.how;
    if (!x->c.bytes) return 0;
    if (how == CG_VIA_OWN_CALLBACK_) {
        if (!x->c.step++) return cg_io_set_(io, CG_IO_ALLREDUCE, NULL, 0, -1, x->c.buf, x->c.bytes, -1);
        if (x->transport.flags & CG_ALLREDUCE_AGREES) return 0;
        /* it may not agree, and there is nothing else: rank 0's counts */
        cg_floats_swap_le_((float *)(void *)x->c.buf, x->c.bytes / 4);
        cg_collective_begin_(x, CG_COLL_BROADCAST_, CG_VIA_ALLREDUCE_, NULL, x->c.buf, x->c.bytes, 0);
        x->c.mask = -1;
        return cg_broadcast_step_(x, io);
    }
    if (!x->c.step) cg_floats_swap_le_((float *)(void *)x->c.buf, x->c.bytes / 4);
    if (how == CG_VIA_SENDRECV_) {
        if (cg_allreduce_ring_step_(x, io)) return 1;
    } else if (how == CG_VIA_ALLGATHER_) {
        if (x->c.step++) cg_allreduce_add_pieces_(x);
        x->c.many = cg_min_(x->c.bytes - x->c.at, x->bounce_bytes / size / 4 * 4);
        if (x->c.many)
            return cg_io_set_(io, CG_IO_ALLGATHER, x->c.buf + x->c.at, x->c.many, -1, x->bounce, size * x->c.many, -1);
    } else { /* a piece from every rank in turn */
        const size_t root = (size_t)x->c.step % size;
        if (x->c.step && !root) cg_allreduce_add_pieces_(x);
        if (!root) x->c.many = cg_min_(x->c.bytes - x->c.at, x->bounce_bytes / size / 4 * 4);
        if (x->c.many) {
            x->c.step++;
            if (root == (size_t)x->transport.rank) memcpy(x->bounce + root * x->c.many, x->c.buf + x->c.at, x->c.many);
            return cg_io_set_(io, CG_IO_BROADCAST, NULL, 0, -1, x->bounce + root * x->c.many, x->c.many, (int)root);
        }
    }
    cg_floats_swap_le_((float *)(void *)x->c.buf, x->c.bytes / 4);
    return 0;
}
static int cg_collective_step_(cg_ex_ *x, cg_io *io) {
    if (x->c.ask == CG_COLL_SENDRECV_) {
        if (x->c.step++ || (!x->c.bytes && !x->c.many)) return 0;
        return cg_io_set_(io, CG_IO_SENDRECV, x->c.mine, x->c.bytes, x->c.bytes ? x->c.mask : -1, x->c.buf, x->c.many,
            x->c.many ? x->c.root : -1);
    }
    if (x->transport.size == 1) return 0; /* a sum, and a message to everybody, are there already */
    if (x->c.ask == CG_COLL_ALLGATHER_) return cg_allgather_step_(x, io);
    if (x->c.ask == CG_COLL_ALLREDUCE_) return cg_allreduce_step_(x, io);
    if (cg_broadcast_step_(x, io)) return 1;
    if (x->c.mask == -1) cg_floats_swap_le_((float *)(void *)x->c.buf, x->c.bytes / 4);
    return 0;
}
static int cg_collective_next_(cg_ex_ *x, cg_io *io) { /* nobody is called to move nothing */
    int more;
    do more = cg_collective_step_(x, io);
    while (more && io->kind == CG_IO_SENDRECV && io->to < 0 && io->from < 0);
    return more;
}
