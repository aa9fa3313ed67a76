/* N ranks in one thread: every rank's cg_exchange_state is driven in turn, and their messages are matched here, in
   a fixed order. Faults: at one I/O of one rank a callback can "fail", or the bytes that arrive there can be
   changed. */
#ifndef SIM_H
#define SIM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compgrad_exchange.h"

enum { SIM_MOST = 20, SIM_ALLREDUCE = 1, SIM_ALLGATHER = 2, SIM_BROADCAST = 4, SIM_SENDRECV = 8, SIM_ALL = 15 };

typedef struct sim_rank {
    cg_exchange_desc desc;
    cg_transport transport;
    float *x;
    void *mem;
    size_t n, bytes;
    cg_exchange_state state;
    cg_report report;
    cg_status status;
    cg_io io;
    int waiting, sent, received, done, code;
    int ios;          /* asked for so far */
    uint64_t out, in; /* bytes that really crossed, by sendrecv */
} sim_rank;

typedef struct sim {
    int size;
    sim_rank rank[SIM_MOST];
    int fail_rank, fail_io, fail_code; /* fail_io < 0: none */
    int hurt_rank, hurt_io;            /* the bytes that arrive there are handed to hurt */
    void (*hurt)(void *user, void *bytes, size_t len, int from);
    void *hurt_user;
    void (*before)(int rank);              /* called before a rank computes */
    void (*after)(struct sim *, int rank); /* and when it has asked for a message */
    int stuck;                             /* ranks that wait for ever */
    /* a hash of all bytes that crossed by sendrecv, allgather or broadcast */
    uint64_t transcript;
} sim;

/* Callbacks are not called by the simulator, but which there are decides what is asked for. */
static int sim_no_allreduce(void *u, float *v, size_t n) {
    (void)u;
    (void)v;
    (void)n;
    return -1;
}
static int sim_no_allgather(void *u, const void *m, void *a, size_t b) {
    (void)u;
    (void)m;
    (void)a;
    (void)b;
    return -1;
}
static int sim_no_broadcast(void *u, void *v, size_t b, int r) {
    (void)u;
    (void)v;
    (void)b;
    (void)r;
    return -1;
}
static int sim_no_sendrecv(void *u, const void *o, size_t ob, int to, void *i, size_t ib, int from) {
    (void)u;
    (void)o;
    (void)ob;
    (void)to;
    (void)i;
    (void)ib;
    (void)from;
    return -1;
}
static cg_transport sim_transport(int rank, int size, int which, int agrees) {
    cg_transport t = CG_ZERO;
    t.rank = rank;
    t.size = size;
    t.flags = agrees ? (uint32_t)CG_ALLREDUCE_AGREES : 0u;
    if (which & SIM_ALLREDUCE) t.allreduce = sim_no_allreduce;
    if (which & SIM_ALLGATHER) t.allgather = sim_no_allgather;
    if (which & SIM_BROADCAST) t.broadcast = sim_no_broadcast;
    if (which & SIM_SENDRECV) t.sendrecv = sim_no_sendrecv;
    return t;
}
/* One description for all; x[r] is rank r's vector, n long. Memory is exactly what cg_exchange_memory asks for,
   less the state. */
static void sim_open(sim *s, int size, int which, int agrees, const cg_exchange_desc *desc, float *const *x, size_t n) {
    memset(s, 0, sizeof *s);
    s->size = size;
    s->fail_io = s->hurt_io = -1;
    for (int r = 0; r < size; r++) {
        sim_rank *k = &s->rank[r];
        k->desc = *desc;
        k->transport = sim_transport(r, size, which, agrees);
        k->x = x[r];
        k->n = n;
    }
}
static void sim_close(sim *s) {
    for (int r = 0; r < s->size; r++) {
        free(s->rank[r].mem);
        s->rank[r].mem = NULL;
    }
}
static void sim_finish(sim_rank *k, cg_status status) {
    k->status = status;
    k->done = 1;
    k->waiting = 0;
    cg_exchange_report(&k->state, &k->report);
}
static void sim_step(sim *s, int r) {
    sim_rank *k = &s->rank[r];
    cg_status status;
    if (s->before) s->before(r);
    status = cg_exchange_next(&k->state, k->code, &k->io);
    k->code = 0;
    if (status != CG_AGAIN) {
        sim_finish(k, status);
        return;
    }
    k->waiting = 1;
    k->sent = k->io.kind == CG_IO_SENDRECV && k->io.to < 0;
    k->received = k->io.kind == CG_IO_SENDRECV && k->io.from < 0;
    if (s->fail_rank == r && s->fail_io == k->ios) { /* the callback returns at once */
        k->code = s->fail_code;
        k->waiting = 0;
    }
    k->ios++;
    if (s->after) s->after(s, r);
}
static void sim_record(sim *s, const void *bytes, size_t len) { /* FNV-1a */
    if (!s->transcript) s->transcript = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        s->transcript = (s->transcript ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
}
static void sim_arrived(sim *s, int r, void *bytes, size_t len, int from) {
    if (s->hurt && s->hurt_rank == r && s->hurt_io == s->rank[r].ios - 1) s->hurt(s->hurt_user, bytes, len, from);
}
/* A send that has its receiver. Sizes must be the same: anything else is a defect of a route. */
static int sim_match(sim *s, int a) {
    sim_rank *k = &s->rank[a], *to;
    if (!k->waiting || k->io.kind != CG_IO_SENDRECV || k->sent) return 0;
    if (k->io.to >= s->size || k->io.to == a) {
        printf("sim: rank %d sends to %d\n", a, k->io.to);
        abort();
    }
    to = &s->rank[k->io.to];
    if (!to->waiting || to->io.kind != CG_IO_SENDRECV || to->received || to->io.from != a) return 0;
    if (k->io.out_bytes != to->io.in_bytes) {
        printf("sim: rank %d sends %zu bytes, rank %d expects %zu\n", a, k->io.out_bytes, k->io.to, to->io.in_bytes);
        abort();
    }
    memcpy(to->io.in, k->io.out, k->io.out_bytes);
    sim_record(s, k->io.out, k->io.out_bytes);
    sim_arrived(s, k->io.to, to->io.in, to->io.in_bytes, a);
    k->out += k->io.out_bytes;
    to->in += k->io.out_bytes;
    k->sent = to->received = 1;
    return 1;
}
static void sim_allreduce(sim *s) { /* of ranks that may not agree, each in an order of its own */
    const size_t n = s->rank[0].io.in_bytes / 4;
    float *sum = (float *)malloc((size_t)s->size * n * sizeof *sum + 1);
    for (int r = 0; r < s->size; r++)
        for (size_t i = 0; i < n; i++) {
            float v = 0.0f;
            const int first = (s->rank[0].transport.flags & CG_ALLREDUCE_AGREES) ? 0 : r;
            for (int q = 0; q < s->size; q++) v += ((const float *)s->rank[(first + q) % s->size].io.in)[i];
            sum[(size_t)r * n + i] = v;
        }
    for (int r = 0; r < s->size; r++) memcpy(s->rank[r].io.in, sum + (size_t)r * n, 4 * n);
    free(sum);
}
static int sim_collective(sim *s) {
    const cg_io *first = &s->rank[0].io;
    for (int r = 0; r < s->size; r++) {
        const sim_rank *k = &s->rank[r];
        if (!k->waiting || k->io.kind == CG_IO_SENDRECV) return 0;
        if (k->io.kind != first->kind || k->io.in_bytes != first->in_bytes || k->io.out_bytes != first->out_bytes ||
            k->io.from != first->from) {
            printf("sim: ranks 0 and %d ask for different collectives\n", r);
            abort();
        }
    }
    if (first->kind == CG_IO_ALLREDUCE) sim_allreduce(s);
    for (int r = 0; r < s->size; r++) {
        cg_io *io = &s->rank[r].io;
        if (io->kind == CG_IO_ALLGATHER) sim_record(s, io->out, io->out_bytes);
        if (io->kind == CG_IO_BROADCAST && r == io->from) sim_record(s, io->in, io->in_bytes);
        if (io->kind == CG_IO_ALLGATHER)
            for (int q = 0; q < s->size; q++)
                memcpy((char *)io->in + (size_t)q * io->out_bytes, s->rank[q].io.out, io->out_bytes);
        if (io->kind == CG_IO_BROADCAST && r != io->from) memcpy(io->in, s->rank[io->from].io.in, io->in_bytes);
    }
    for (int r = 0; r < s->size; r++) {
        sim_arrived(s, r, s->rank[r].io.in, s->rank[r].io.in_bytes, s->rank[r].io.from);
        s->rank[r].waiting = 0;
    }
    return 1;
}
/* Until all are done, or nobody can go on: a rank left behind by one that failed would wait for its transport's
   timeout. */
static void sim_run(sim *s) {
    for (int r = 0; r < s->size; r++) {
        sim_rank *k = &s->rank[r];
        cg_status status;
        if (!k->mem) {
            k->bytes = cg_exchange_memory(&k->desc, &k->transport, k->n);
            /* is here: not a byte more than start needs */
            const size_t state = (sizeof(cg_exchange_state) + 63) / 64 * 64;
            if (k->bytes > state) k->bytes -= state;
            k->mem = malloc(k->bytes ? k->bytes : 1);
            memset(k->mem, 0xa5, k->bytes);
        }
        if (s->before) s->before(r);
        status = cg_exchange_start(&k->state, &k->desc, &k->transport, k->x, k->n, k->mem, k->bytes);
        if (status != CG_OK) sim_finish(k, status);
    }
    for (;;) {
        int moved = 0, alive = 0;
        for (int r = 0; r < s->size; r++)
            if (!s->rank[r].done && !s->rank[r].waiting) {
                sim_step(s, r);
                moved = 1;
            }
        for (int r = 0; r < s->size; r++) moved |= sim_match(s, r);
        for (int r = 0; r < s->size; r++) {
            sim_rank *k = &s->rank[r];
            if (k->waiting && k->io.kind == CG_IO_SENDRECV && k->sent && k->received) {
                k->waiting = 0;
                moved = 1;
            }
        }
        moved |= sim_collective(s);
        for (int r = 0; r < s->size; r++) alive += !s->rank[r].done;
        if (!alive) return;
        if (!moved) break;
    }
    for (int r = 0; r < s->size; r++)
        if (!s->rank[r].done) {
            s->stuck++;
            s->rank[r].code = 99; /* as a transport with a timeout would */
            sim_finish(&s->rank[r], cg_exchange_next(&s->rank[r].state, 99, &s->rank[r].io));
        }
}

#endif
