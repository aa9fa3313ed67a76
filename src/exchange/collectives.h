/* collectives: allgather, broadcast and allreduce out of the callbacks that the transport has

   Offers   cg_*_begin_, cg_collective_next_, cg_gathered_
   Needs    ranks, sums
   Touches  ex->collective, ex->mem.sizes, ex->mem.bounce and the buffers that cg_*_begin_ was given
   A collective is begun, then cg_collective_next_ names the messages that it takes, one after the other; the caller
   moves each before it asks for the next. Without the callback of its own name it goes by sendrecv, allgather,
   broadcast or allreduce, whichever comes first; the last three move it in fragments through ex->mem.bounce. */

enum { CG_COLL_NONE_, CG_COLL_ALLGATHER_, CG_COLL_BROADCAST_, CG_COLL_ALLREDUCE_, CG_COLL_SENDRECV_ };
/* the callback of the same name, or one that stands in for it */
enum { CG_VIA_OWN_CALLBACK_, CG_VIA_SENDRECV_, CG_VIA_ALLGATHER_, CG_VIA_BROADCAST_, CG_VIA_ALLREDUCE_ };

/* The transport has at least one callback, or one rank. */
static uint32_t cg_via_fallback_(const cg_transport *t) {
    return (uint32_t)(t->sendrecv ? CG_VIA_SENDRECV_
            : t->allgather        ? CG_VIA_ALLGATHER_
            : t->broadcast        ? CG_VIA_BROADCAST_
                                  : CG_VIA_ALLREDUCE_);
}
static uint32_t cg_via_(const cg_transport *t, int has_callback) {
    return has_callback ? (uint32_t)CG_VIA_OWN_CALLBACK_ : cg_via_fallback_(t);
}

/* Sets up ex->collective anew; what the last collective left there (cg_gathered_) is gone. */
static void cg_collective_begin_(
    cg_ex_ *ex, uint32_t kind, uint32_t via, const void *mine, void *buf, size_t bytes, int root) {
    cg_collective_state_ *c = &ex->collective;
    memset(c, 0, sizeof *c);
    c->kind = kind;
    c->via = via;
    c->mine = (const uint8_t *)mine;
    c->buf = (uint8_t *)buf;
    c->bytes = bytes;
    c->root = root;
}
/* Gathers `mine` of every rank, sizes[rank] bytes each, which all ranks know. buf has room for N times the largest
   size, and mine for the largest: what stands behind its own bytes may be sent, and is zeroed then. Both, and sizes,
   must stay until cg_gathered_ has been asked. */
static void cg_allgather_begin_(cg_ex_ *ex, uint8_t *mine, const uint64_t *sizes, void *buf) {
    const cg_transport *t = &ex->transport;
    uint64_t longest = 0, all = 0;
    uint32_t via = cg_via_fallback_(t);
    for (size_t q = 0; q < cg_ranks_(ex); q++) {
        longest = sizes[q] > longest ? sizes[q] : longest;
        all += sizes[q];
    }
    /* the allgather callback moves N times the largest size: too much where sizes differ widely */
    if (t->allgather && (via == CG_VIA_ALLGATHER_ || longest * cg_ranks_(ex) <= all + all / 4)) {
        via = CG_VIA_OWN_CALLBACK_;
        if (t->size > 1) memset(mine + (size_t)sizes[t->rank], 0, (size_t)(longest - sizes[t->rank]));
    }
    cg_collective_begin_(
        ex, CG_COLL_ALLGATHER_, via, mine, buf, all == longest * cg_ranks_(ex) ? (size_t)longest : 0, 0);
    ex->collective.sizes = sizes;
    ex->collective.longest = longest;
}
/* The same for `each` bytes from every rank; overwrites ex->mem.sizes. */
static void cg_allgather_equal_begin_(cg_ex_ *ex, uint8_t *mine, uint64_t each, uint8_t *all) {
    for (size_t q = 0; q < cg_ranks_(ex); q++) ex->mem.sizes[q] = each;
    cg_allgather_begin_(ex, mine, ex->mem.sizes, all);
}
/* buf of root to all, in place. */
static void cg_broadcast_begin_(cg_ex_ *ex, void *buf, size_t bytes, int root) {
    cg_collective_begin_(
        ex, CG_COLL_BROADCAST_, cg_via_(&ex->transport, ex->transport.broadcast != NULL), NULL, buf, bytes, root);
}
/* Sums v over ranks in place, with the same bits on every rank. */
static void cg_allreduce_begin_(cg_ex_ *ex, float *v, size_t n) {
    const uint32_t sum = cg_sum_kind_(ex, n);
    cg_collective_begin_(ex, CG_COLL_ALLREDUCE_, cg_via_(&ex->transport, sum == CG_SUM_CALLBACK), NULL, v, 4 * n, 0);
    ex->collective.sum = sum;
    if (n && ex->transport.size > 1)
        ex->report.sum = ex->report.sum && ex->report.sum != sum ? (uint32_t)CG_SUM_TREE : sum;
}
/* out to one rank while in comes from another; a peer < 0: none. */
static void cg_sendrecv_begin_(
    cg_ex_ *ex, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    cg_collective_state_ *c = &ex->collective;
    cg_collective_begin_(ex, CG_COLL_SENDRECV_, CG_VIA_OWN_CALLBACK_, out, in, to < 0 ? 0 : out_bytes, -1);
    c->in_bytes = from < 0 ? 0 : in_bytes;
    c->to = to;
    c->from = from;
}
/* Bytes of i ranks of an allgather, from rank `first` on and around. */
static size_t cg_sizes_prefix_sum_(const cg_ex_ *ex, size_t first, size_t i) {
    const cg_collective_state_ *c = &ex->collective;
    uint64_t at = 0;
    if (c->bytes) return i * c->bytes; /* equal sizes */
    for (size_t j = 0; j < i; j++) at += c->sizes[(first + j) % cg_ranks_(ex)];
    return (size_t)at;
}
/* Where the last allgather left rank q's bytes; until another collective begins. */
static const uint8_t *cg_gathered_(const cg_ex_ *ex, size_t q) {
    const cg_collective_state_ *c = &ex->collective;
    const size_t me = (size_t)ex->transport.rank, size = cg_ranks_(ex);
    if (q == me) return c->mine;
    if (c->via == CG_VIA_SENDRECV_) return c->buf + cg_sizes_prefix_sum_(ex, me, (q + size - me) % size);
    return c->buf + (c->via == CG_VIA_ALLREDUCE_ ? cg_sizes_prefix_sum_(ex, 0, q) : q * (size_t)c->longest);
}
/* An allreduce can move bytes: three to a float, zeros from all ranks but one, so that the sum is exact.
   Bytes [offset, offset + many) of a string become floats at v; this rank has [own_begin, own_end) of it, at mine. */
static void cg_bytes_to_floats_(
    float *v, const uint8_t *mine, size_t own_begin, size_t own_end, size_t offset, size_t many) {
    for (size_t i = 0; i < many; i += 3) {
        uint32_t u = 0;
        for (size_t j = 0; j < 3 && i + j < many; j++)
            if (offset + i + j >= own_begin && offset + i + j < own_end)
                u |= (uint32_t)mine[offset + i + j - own_begin] << 8 * j;
        v[i / 3] = (float)u;
    }
}
/* And back; 0: a float is not such a sum. */
static int cg_floats_to_bytes_(const float *v, uint8_t *out, size_t many) {
    for (size_t i = 0; i < many; i += 3) {
        uint32_t u;
        if (!(v[i / 3] >= 0.0f && v[i / 3] < 16777216.0f)) return 0;
        u = (uint32_t)v[i / 3];
        for (size_t j = 0; j < 3 && i + j < many; j++) out[i + j] = (uint8_t)(u >> 8 * j);
    }
    return 1;
}
/* All cg_*_step_ functions first use what the last message brought, then set io to the next and return 1, or return 0
   when the collective is complete. own_begin, own_end: as above; total: bytes of the string. */
static int cg_bytes_by_allreduce_step_(cg_ex_ *ex, cg_io *io, size_t own_begin, size_t own_end, size_t total) {
    cg_collective_state_ *c = &ex->collective;
    const uint8_t *mine = c->kind == CG_COLL_BROADCAST_ ? c->buf : c->mine;
    if (c->step++) {
        if (c->kind == CG_COLL_BROADCAST_ && own_end > own_begin) {
            /* the root keeps its own bytes: it would not check a packet of its own again */
        } else if (!cg_floats_to_bytes_((const float *)(void *)ex->mem.bounce, c->buf + c->done, c->fragment)) {
            /* no sum: bytes that are no packet, record or note, and as floats NaN */
            memset(c->buf + c->done, 0xff, c->fragment);
        }
        c->done += c->fragment;
    }
    if (c->done == total) return 0;
    c->fragment = cg_min_(total - c->done, ex->mem.bounce_bytes / 4 * 3);
    cg_bytes_to_floats_((float *)(void *)ex->mem.bounce, mine, own_begin, own_end, c->done, c->fragment);
    return cg_io_set_(io, CG_IO_ALLREDUCE, NULL, 0, -1, ex->mem.bounce, (c->fragment + 2) / 3 * 4, -1);
}
static int cg_allgather_step_(cg_ex_ *ex, cg_io *io) {
    cg_collective_state_ *c = &ex->collective;
    const size_t size = cg_ranks_(ex), me = (size_t)ex->transport.rank;
    const size_t longest = (size_t)c->longest, mine = (size_t)c->sizes[me];
    size_t have_blocks, send_blocks;
    switch (c->via) {
    case CG_VIA_OWN_CALLBACK_:
        if (c->step++ || !longest) return 0;
        return cg_io_set_(io, CG_IO_ALLGATHER, c->mine, longest, -1, c->buf, size * longest, -1);
    case CG_VIA_SENDRECV_: /* Bruck: blocks [me, me + have_blocks) of buf are here, and double in number */
        if (!c->step) memcpy(c->buf, c->mine, mine);
        have_blocks = (size_t)(c->step = c->step ? 2 * c->step : 1);
        if (have_blocks >= size) return 0;
        send_blocks = cg_min_(have_blocks, size - have_blocks);
        cg_io_set_(io, CG_IO_SENDRECV, c->buf, cg_sizes_prefix_sum_(ex, me, send_blocks),
            (int)((me + size - have_blocks) % size), c->buf + cg_sizes_prefix_sum_(ex, me, have_blocks),
            cg_sizes_prefix_sum_(ex, (me + have_blocks) % size, send_blocks), (int)((me + have_blocks) % size));
        if (!io->out_bytes) io->to = -1;
        if (!io->in_bytes) io->from = -1;
        return 1;
    case CG_VIA_BROADCAST_:
        if (!c->step) memcpy(c->buf + me * longest, c->mine, mine);
        while ((size_t)c->step < size) {
            const size_t root = (size_t)c->step++;
            if (c->sizes[root])
                return cg_io_set_(
                    io, CG_IO_BROADCAST, NULL, 0, -1, c->buf + root * longest, (size_t)c->sizes[root], (int)root);
        }
        return 0;
    default:
        return cg_bytes_by_allreduce_step_(ex, io, cg_sizes_prefix_sum_(ex, 0, me),
            cg_sizes_prefix_sum_(ex, 0, me) + mine, cg_sizes_prefix_sum_(ex, 0, size));
    }
}
static int cg_broadcast_step_(cg_ex_ *ex, cg_io *io) {
    cg_collective_state_ *c = &ex->collective;
    const int size = ex->transport.size, root = c->root, me = cg_wrap_(ex, ex->transport.rank - root);
    if (!c->bytes) return 0;
    switch (c->via) {
    case CG_VIA_OWN_CALLBACK_:
        return c->step++ ? 0 : cg_io_set_(io, CG_IO_BROADCAST, NULL, 0, -1, c->buf, c->bytes, root);
    case CG_VIA_SENDRECV_: /* binomial tree: from the rank without my lowest bit, to those with one more bit below it */
        if (!c->step++) {
            c->mask = 1;
            while (c->mask < size && !(me & c->mask)) c->mask <<= 1;
            if (me)
                return cg_io_set_(io, CG_IO_SENDRECV, NULL, 0, -1, c->buf, c->bytes, cg_wrap_(ex, me - c->mask + root));
        }
        while ((c->mask >>= 1) > 0)
            if (me + c->mask < size)
                return cg_io_set_(io, CG_IO_SENDRECV, c->buf, c->bytes, cg_wrap_(ex, me + c->mask + root), NULL, 0, -1);
        return 0;
    case CG_VIA_ALLGATHER_:
        if (c->step++) {
            if (me) memcpy(c->buf + c->done, ex->mem.bounce + (size_t)root * c->fragment, c->fragment);
            c->done += c->fragment;
        }
        if (c->done == c->bytes) return 0;
        c->fragment = cg_min_(c->bytes - c->done, ex->mem.bounce_bytes / cg_ranks_(ex));
        if (me) memset(c->buf + c->done, 0, c->fragment); /* nobody reads what this rank sends */
        return cg_io_set_(
            io, CG_IO_ALLGATHER, c->buf + c->done, c->fragment, -1, ex->mem.bounce, cg_ranks_(ex) * c->fragment, -1);
    default: return cg_bytes_by_allreduce_step_(ex, io, 0, me ? 0 : c->bytes, c->bytes);
    }
}
/* Sums the fragments of all ranks in mem.bounce, in rank order. */
static void cg_allreduce_add_fragment_(cg_ex_ *ex) {
    cg_collective_state_ *c = &ex->collective;
    float *v = (float *)(void *)(c->buf + c->done);
    for (size_t q = 0; q < cg_ranks_(ex); q++) {
        const float *in = (const float *)(void *)(ex->mem.bounce + q * c->fragment);
        if (q) cg_floats_add_le_(v, in, c->fragment / 4);
        else memcpy(v, in, c->fragment);
    }
    c->done += c->fragment;
}
static int cg_allreduce_step_(cg_ex_ *ex, cg_io *io) {
    cg_collective_state_ *c = &ex->collective;
    const size_t size = cg_ranks_(ex);
    const uint32_t via = c->via;
    if (!c->bytes) return 0;
    if (via == CG_VIA_OWN_CALLBACK_) {
        if (!c->step++) return cg_io_set_(io, CG_IO_ALLREDUCE, NULL, 0, -1, c->buf, c->bytes, -1);
        if (ex->transport.flags & CG_ALLREDUCE_AGREES) return 0;
        /* ranks may have different bits, and there is no other callback: all take rank 0's */
        cg_floats_swap_le_((float *)(void *)c->buf, c->bytes / 4);
        cg_collective_begin_(ex, CG_COLL_BROADCAST_, CG_VIA_ALLREDUCE_, NULL, c->buf, c->bytes, 0);
        c->swap_back = 1;
        return cg_broadcast_step_(ex, io);
    }
    if (!c->step) cg_floats_swap_le_((float *)(void *)c->buf, c->bytes / 4);
    if (via == CG_VIA_SENDRECV_) {
        if (cg_sum_step_(ex, io)) return 1;
    } else if (via == CG_VIA_ALLGATHER_) {
        if (c->step++) cg_allreduce_add_fragment_(ex);
        c->fragment = cg_min_(c->bytes - c->done, ex->mem.bounce_bytes / size / 4 * 4);
        if (c->fragment)
            return cg_io_set_(
                io, CG_IO_ALLGATHER, c->buf + c->done, c->fragment, -1, ex->mem.bounce, size * c->fragment, -1);
    } else { /* every rank in turn broadcasts its fragment */
        const size_t root = (size_t)c->step % size;
        if (c->step && !root) cg_allreduce_add_fragment_(ex);
        if (!root) c->fragment = cg_min_(c->bytes - c->done, ex->mem.bounce_bytes / size / 4 * 4);
        if (c->fragment) {
            c->step++;
            if (root == (size_t)ex->transport.rank)
                memcpy(ex->mem.bounce + root * c->fragment, c->buf + c->done, c->fragment);
            return cg_io_set_(
                io, CG_IO_BROADCAST, NULL, 0, -1, ex->mem.bounce + root * c->fragment, c->fragment, (int)root);
        }
    }
    cg_floats_swap_le_((float *)(void *)c->buf, c->bytes / 4);
    return 0;
}
static int cg_collective_step_(cg_ex_ *ex, cg_io *io) {
    cg_collective_state_ *c = &ex->collective;
    if (c->kind == CG_COLL_SENDRECV_) {
        if (c->step++ || (!c->bytes && !c->in_bytes)) return 0;
        return cg_io_set_(io, CG_IO_SENDRECV, c->mine, c->bytes, c->bytes ? c->to : -1, c->buf, c->in_bytes,
            c->in_bytes ? c->from : -1);
    }
    if (ex->transport.size == 1) return 0; /* the result is in place already */
    if (c->kind == CG_COLL_ALLGATHER_) return cg_allgather_step_(ex, io);
    if (c->kind == CG_COLL_ALLREDUCE_) return cg_allreduce_step_(ex, io);
    if (cg_broadcast_step_(ex, io)) return 1;
    if (c->swap_back) cg_floats_swap_le_((float *)(void *)c->buf, c->bytes / 4);
    return 0;
}
/* The next message that the collective takes, or 0: it is complete. Messages of no bytes are left out. */
static int cg_collective_next_(cg_ex_ *ex, cg_io *io) {
    int more;
    do more = cg_collective_step_(ex, io);
    while (more && io->kind == CG_IO_SENDRECV && io->to < 0 && io->from < 0);
    return more;
}
