/* ranks.h - a few ranks, driven by turns as in sim.h, whose messages are changed on their way. They are the states of
   one exchange each (ranks_run_states), or threads that make blocking calls (ranks_run_calls), of which one runs at a
   time: what happens depends on the input alone. Nobody waits for ever: whoever cannot go on gets an error from its
   callback, which may happen only if a message was changed. */
#ifndef RANKS_H
#define RANKS_H

#ifndef _POSIX_C_SOURCE
#  define _POSIX_C_SOURCE 200809L
#endif
#include <pthread.h>
#include "fuzz.h"
#include "sim.h"

enum { RANKS_HITS = 8, RANKS_MOST = 4, RANKS_HIT_BYTES = 6, RANKS_MEMORY = 4096 };
enum { /* what becomes of a message; most are plain changes of a byte */
    HIT_BYTE = 0,
    HIT_WORD,    /* a word becomes one that is likely to matter */
    HIT_LONG,    /* eight bytes do */
    HIT_CUT,     /* the rest are zeros */
    HIT_SWAPPED, /* another message of that length */
    HIT_REPEAT,  /* its beginning comes twice */
    HIT_PACKET,  /* fields and words of the packets in it */
    HIT_FAILS,   /* the callback fails */
    HIT_KINDS,
    HIT_SEALED = 8 /* and all checksums are made right */
};
typedef struct hit {
    int rank, io;
    size_t at;
    uint8_t how, by;
} hit;
typedef struct ranks ranks;
typedef struct ranks_seat { /* one rank of those that make blocking calls */
    ranks *all;
    int rank;
    pthread_t thread;
} ranks_seat;
struct ranks {
    sim s;
    hit hits[RANKS_HITS];
    int hit_count, changed;
    int sealed; /* of these, how many have checksums made right */
    uint8_t last[RANKS_MOST][RANKS_MEMORY];
    size_t last_len[RANKS_MOST];
    /* for blocking calls */
    ranks_seat seat[RANKS_MOST];
    void (*job)(int rank, const cg_transport *transport, void *user);
    void *user;
    int running; /* the rank whose turn it is; -1: the scheduler's */
    pthread_mutex_t lock;
    pthread_cond_t turned;
};

FUZZ_FN void ranks_read_hits(ranks *w, fuzz_input *in, int size, int ios) {
    for (w->hit_count = 0; in->left >= RANKS_HIT_BYTES && w->hit_count < RANKS_HITS;) {
        hit *h = &w->hits[w->hit_count++];
        h->rank = (int)fuzz_below(in, (uint32_t)size);
        h->io = (int)fuzz_below(in, (uint32_t)ios);
        h->at = fuzz_word(in, 2);
        h->how = (uint8_t)fuzz_byte(in);
        h->by = (uint8_t)fuzz_byte(in);
    }
}
/* Every packet in a message gets the checksum that its bytes should have. Opening records do, too, where the
   implementation is part of this file. */
FUZZ_FN void ranks_seal(uint8_t *p, size_t len) {
    for (size_t i = 0; i + 4 <= len; i += 4) {
        if (!memcmp(p + i, "cgpk", 4) && len - i >= CG_HEADER_BYTES) {
            const uint64_t values = fuzz_load(p + i + 128, 8), indices = fuzz_load(p + i + 136, 8);
            const size_t rest = len - i - CG_HEADER_BYTES;
            fuzz_seal(p + i,
                values <= rest && indices <= rest - values ? CG_HEADER_BYTES + (size_t)(values + indices) : len - i);
        }
#ifdef CG_RECORD_MAGIC_
        if (cg_get32_(p + i) == CG_RECORD_MAGIC_ && len - i >= CG_RECORD_BYTES_)
            cg_put64_(p + i + CG_RECORD_BYTES_ - 8, cg_hash_bytes_(p + i, CG_RECORD_BYTES_ - 8));
#endif
    }
}
FUZZ_FN void ranks_hit(ranks *w, const hit *h, uint8_t *p, size_t len) {
    const size_t at = h->at % len, word = at / 4 * 4;
    uint64_t dice = (uint64_t)h->at << 8 | h->by;
    switch (h->how % HIT_KINDS) {
    case HIT_WORD:
        if (word + 4 <= len) fuzz_store(p + word, 4, fuzz_interesting(fuzz_load(p + word, 4), &dice));
        break;
    case HIT_LONG:
        if (word + 8 <= len) fuzz_store(p + word, 8, fuzz_interesting(fuzz_load(p + word, 8), &dice));
        break;
    case HIT_CUT: memset(p + at, 0, len - at); break;
    case HIT_SWAPPED:
        if (w->last_len[h->rank] == len) memcpy(p, w->last[h->rank], len);
        break;
    case HIT_REPEAT: memmove(p + word, p, len - word < 64 ? len - word : 64); break;
    case HIT_PACKET:
        for (size_t i = 0; i + CG_HEADER_BYTES <= len; i += 4)
            if (!memcmp(p + i, "cgpk", 4)) {
                const size_t end = fuzz_packet_mutate(p + i, len - i, len - i, &dice); /* never longer */
                memset(p + i + end, 0, len - i - end);
                break;
            }
        break;
    default: p[at] ^= h->by;
    }
    if (h->how & HIT_SEALED) ranks_seal(p, len);
}
/* Bytes that arrive at a rank. */
FUZZ_FN void ranks_disturb(void *user, void *bytes, size_t len, int from) {
    ranks *w = (ranks *)user;
    const int r = w->s.hurt_rank;
    if (!len || (w->s.rank[r].io.kind == CG_IO_BROADCAST && from == r)) return; /* nothing came */
    for (int i = 0; i < w->hit_count; i++) {
        const hit *h = &w->hits[i];
        if (h->rank != r || h->io != w->s.rank[r].ios - 1) continue;
        ranks_hit(w, h, (uint8_t *)bytes, len);
        w->changed++;
        w->sealed += (h->how & HIT_SEALED) != 0;
    }
    w->last_len[r] = len <= RANKS_MEMORY ? len : 0;
    memcpy(w->last[r], bytes, w->last_len[r]);
}
/* sim.h disturbs one rank at a time: the one to which something comes next. */
FUZZ_FN void ranks_aim(ranks *w, int r) {
    w->s.hurt_rank = r;
    w->s.hurt_io = w->s.rank[r].ios - 1;
}
/* A callback that is to fail does so at once. */
FUZZ_FN void ranks_fail(ranks *w, int r) {
    sim_rank *k = &w->s.rank[r];
    for (int i = 0; k->waiting && i < w->hit_count; i++)
        if (w->hits[i].how % HIT_KINDS == HIT_FAILS && w->hits[i].rank == r && w->hits[i].io == k->ios - 1) {
            k->code = 97;
            k->waiting = 0;
            w->changed++;
        }
}
/* Two sides that disagree about a size or about what to do, after a changed message: their callbacks fail. */
FUZZ_FN int ranks_tear(ranks *w) {
    sim *s = &w->s;
    int torn = 0, all = 1, differ = 0;
    for (int a = 0; a < s->size; a++) {
        sim_rank *k = &s->rank[a], *to;
        const cg_io *first = &s->rank[0].io;
        all &= k->waiting && k->io.kind != CG_IO_SENDRECV;
        differ |= k->io.kind != first->kind || k->io.in_bytes != first->in_bytes ||
            k->io.out_bytes != first->out_bytes || k->io.from != first->from;
        if (!k->waiting || k->io.kind != CG_IO_SENDRECV || k->sent) continue;
        to = &s->rank[k->io.to];
        if (!to->waiting || to->io.kind != CG_IO_SENDRECV || to->received || to->io.from != a ||
            k->io.out_bytes == to->io.in_bytes)
            continue;
        k->code = to->code = 98;
        k->waiting = to->waiting = 0;
        torn = 1;
    }
    for (int r = 0; all && differ && r < s->size; r++) {
        s->rank[r].code = 98;
        s->rank[r].waiting = 0;
        torn = 1;
    }
    MUST(!torn || w->changed);
    return torn;
}
/* Everybody computes and every message moves that can; 0: nobody can go on. */
FUZZ_FN int ranks_turn(ranks *w, void (*step)(ranks *, int rank)) {
    sim *s = &w->s;
    int moved = 0;
    for (int r = 0; r < s->size; r++) {
        if (s->rank[r].done || s->rank[r].waiting) continue;
        step(w, r);
        ranks_fail(w, r);
        moved = 1;
    }
    moved |= ranks_tear(w);
    for (int a = 0; a < s->size; a++) {
        if (s->rank[a].waiting && s->rank[a].io.kind == CG_IO_SENDRECV && s->rank[a].io.to >= 0)
            ranks_aim(w, s->rank[a].io.to);
        moved |= sim_match(s, a);
    }
    for (int r = 0; r < s->size; r++) {
        sim_rank *k = &s->rank[r];
        if (k->waiting && k->io.kind == CG_IO_SENDRECV && k->sent && k->received) {
            k->waiting = 0;
            moved = 1;
        }
    }
    return moved;
}
/* The same for collectives, in which every rank receives; sim.h's would disturb only one of them. */
FUZZ_FN int ranks_collect(ranks *w) {
    void (*hurt)(void *, void *, size_t, int) = w->s.hurt;
    int moved;
    for (int r = 0; r < w->s.size; r++)
        if (!w->s.rank[r].waiting || w->s.rank[r].io.kind == CG_IO_SENDRECV) return 0;
    w->s.hurt = NULL;
    moved = sim_collective(&w->s);
    w->s.hurt = hurt;
    for (int r = 0; moved && r < w->s.size; r++) {
        ranks_aim(w, r);
        sim_arrived(&w->s, r, w->s.rank[r].io.in, w->s.rank[r].io.in_bytes, w->s.rank[r].io.from);
    }
    return moved;
}
/* Until all have come to their end. */
FUZZ_FN void ranks_run(ranks *w, void (*step)(ranks *, int rank)) {
    sim *s = &w->s;
    w->changed = w->sealed = 0;
    memset(w->last_len, 0, sizeof w->last_len);
    s->hurt = ranks_disturb;
    s->hurt_user = w;
    for (;;) {
        int alive = 0, moved = ranks_turn(w, step);
        moved |= ranks_collect(w);
        for (int r = 0; r < s->size; r++) alive += !s->rank[r].done;
        if (!alive) return;
        if (moved) continue;
        MUST(w->changed);
        for (int r = 0; r < s->size; r++)
            if (s->rank[r].waiting) { /* as a transport with a timeout would */
                s->stuck++;
                s->rank[r].code = 99;
                s->rank[r].waiting = 0;
            }
    }
}

/* ---- states ---- */

/* A callback may only be handed bytes of mem, of the state, or of a dense vector that is summed, however long a
   note says that a message is. */
FUZZ_FN int ranks_inside(const sim_rank *k, const void *bytes, size_t len) {
    const unsigned char *p = (const unsigned char *)bytes, *mem = (const unsigned char *)k->mem,
                        *state = (const unsigned char *)&k->state;
    if (!len) return 1;
    for (int i = 0; i < 2; i++) {
        const unsigned char *x = (const unsigned char *)(i ? k->desc.into : k->x);
        if (k->state.plan.direct && x && p >= x && p <= x + 4 * k->n) return len <= (size_t)(x + 4 * k->n - p);
    }
    if (p >= mem && p <= mem + k->bytes) return len <= (size_t)(mem + k->bytes - p);
    return p >= state && p < state + sizeof k->state && len <= (size_t)(state + sizeof k->state - p);
}
FUZZ_FN void ranks_step_state(ranks *w, int r) {
    const sim_rank *k = &w->s.rank[r];
    sim_step(&w->s, r);
    if (!k->done) MUST(ranks_inside(k, k->io.in, k->io.in_bytes) && ranks_inside(k, k->io.out, k->io.out_bytes));
}
/* What a target that makes blocking calls does not use of sim.h, for compilers that warn. */
FUZZ_FN void ranks_unused(void) { (void)sim_open, (void)sim_run, (void)sim_close; }
/* After sim_open, and whatever the caller has changed of the ranks' descriptions. */
FUZZ_FN void ranks_run_states(ranks *w) {
    for (int r = 0; r < w->s.size; r++) {
        sim_rank *k = &w->s.rank[r];
        k->bytes = cg_exchange_memory(&k->desc, &k->transport, k->n);
        k->mem = malloc(k->bytes + !k->bytes); /* whatever was there before */
        MUST(k->mem);
        if (cg_exchange_start(&k->state, &k->desc, &k->transport, k->x, k->n, k->mem, k->bytes) != CG_OK)
            sim_finish(k, k->state.status);
    }
    ranks_run(w, ranks_step_state);
}

/* ---- blocking calls ---- */

FUZZ_FN void ranks_pass(ranks *w, int from, int to) { /* the turn; back when it is from's again */
    pthread_mutex_lock(&w->lock);
    w->running = to;
    pthread_cond_broadcast(&w->turned);
    while (w->running != from) pthread_cond_wait(&w->turned, &w->lock);
    pthread_mutex_unlock(&w->lock);
}
FUZZ_FN int ranks_message(
    ranks_seat *seat, uint32_t kind, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    sim_rank *k = &seat->all->s.rank[seat->rank];
    const cg_io io = { kind, to, from, out, out_bytes, in, in_bytes };
    int code;
    k->io = io;
    k->waiting = 1;
    k->sent = kind == CG_IO_SENDRECV && to < 0;
    k->received = kind == CG_IO_SENDRECV && from < 0;
    k->ios++;
    ranks_pass(seat->all, seat->rank, -1);
    code = k->code;
    k->code = 0;
    return code;
}
FUZZ_FN int ranks_allreduce(void *user, float *v, size_t n) {
    return ranks_message((ranks_seat *)user, CG_IO_ALLREDUCE, NULL, 0, -1, v, 4 * n, -1);
}
FUZZ_FN int ranks_allgather(void *user, const void *mine, void *all, size_t bytes) {
    ranks_seat *seat = (ranks_seat *)user;
    return ranks_message(seat, CG_IO_ALLGATHER, mine, bytes, -1, all, bytes * (size_t)seat->all->s.size, -1);
}
FUZZ_FN int ranks_broadcast(void *user, void *buf, size_t bytes, int root) {
    return ranks_message((ranks_seat *)user, CG_IO_BROADCAST, NULL, 0, -1, buf, bytes, root);
}
FUZZ_FN int ranks_sendrecv(void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    return ranks_message((ranks_seat *)user, CG_IO_SENDRECV, out, out_bytes, to, in, in_bytes, from);
}
FUZZ_FN void *ranks_thread(void *user) {
    ranks_seat *seat = (ranks_seat *)user;
    ranks *w = seat->all;
    pthread_mutex_lock(&w->lock);
    while (w->running != seat->rank) pthread_cond_wait(&w->turned, &w->lock);
    pthread_mutex_unlock(&w->lock);
    w->job(seat->rank, &w->s.rank[seat->rank].transport, w->user);
    pthread_mutex_lock(&w->lock);
    w->s.rank[seat->rank].done = 1;
    w->running = -1;
    pthread_cond_broadcast(&w->turned);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}
FUZZ_FN void ranks_step_call(ranks *w, int r) { ranks_pass(w, -1, r); }
/* job runs once per rank, with a transport that has the callbacks of mask. The hits are already there. */
FUZZ_FN void ranks_run_calls(ranks *w, int size, int mask, int agrees,
    void (*job)(int rank, const cg_transport *transport, void *user), void *user) {
    memset(&w->s, 0, sizeof w->s);
    w->s.size = size;
    w->s.fail_io = w->s.hurt_io = -1;
    w->job = job;
    w->user = user;
    w->running = -1;
    MUST(!pthread_mutex_init(&w->lock, NULL) && !pthread_cond_init(&w->turned, NULL));
    for (int r = 0; r < size; r++) {
        cg_transport *t = &w->s.rank[r].transport;
        ranks_seat *seat = &w->seat[r];
        *t = sim_transport(r, size, mask, agrees);
        seat->all = w;
        seat->rank = r;
        t->user = seat;
        if (t->allreduce) t->allreduce = ranks_allreduce;
        if (t->allgather) t->allgather = ranks_allgather;
        if (t->broadcast) t->broadcast = ranks_broadcast;
        if (t->sendrecv) t->sendrecv = ranks_sendrecv;
        MUST(!pthread_create(&seat->thread, NULL, ranks_thread, seat));
    }
    ranks_run(w, ranks_step_call);
    for (int r = 0; r < size; r++) pthread_join(w->seat[r].thread, NULL);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->turned);
}

#endif
