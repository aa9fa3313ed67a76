/* transport_threads.h - the ranks are threads of one process: for tests, demos and measurements.

       static int worker(cg_threads_world *world, int rank, void *user)      // runs once per rank
       {
           cg_transport net = cg_threads_transport(world, rank, CG_THREADS_ALL);
           ... cg_exchange(&desc, &net, grad, n, mem, bytes, &report) ...
           return 0;                                                         // anything else: this rank failed
       }
       int code = cg_threads_run(4, worker, &job);         // 0, or what the first rank to fail returned

   Or with threads of your own: cg_threads_open, one thread per rank, cg_threads_leave at the end of each,
   cg_threads_close. Needs POSIX threads: link with -pthread. Include it first, or compile with
   -D_POSIX_C_SOURCE=200809L (or -std=gnu99).

   There is no buffer in between: a receiver copies from the sender's buffer, so a call returns only after its
   peers have made theirs. allreduce adds in the order of the ranks, in parallel, and gives all of them the same
   bits. One sendrecv sends and receives at once, so shifts, cycles and swaps cannot block each other; a send alone
   waits for its receiver. One thread at a time may call for a rank.

   No rank waits for ever: a callback returns a code (cg_threads_error says what it means) after a timeout (60 s,
   or cg_threads_timeout), after cg_threads_abort, or when a rank that it waits for has left. If sender and
   receiver name different sizes, both get an error. */

#ifndef CG_TRANSPORT_THREADS_H
#define CG_TRANSPORT_THREADS_H

#ifndef _POSIX_C_SOURCE
#  define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "compgrad_exchange.h"

#ifndef CLOCK_MONOTONIC
#  error "include transport_threads.h before other headers, or compile with -D_POSIX_C_SOURCE=200809L"
#endif

enum {
    CG_THREADS_ALLREDUCE = 1,
    CG_THREADS_ALLGATHER = 2,
    CG_THREADS_BROADCAST = 4,
    CG_THREADS_SENDRECV = 8,
    CG_THREADS_ALL = 15
};

enum {
    CG_THREADS_E_ARG = 1,
    CG_THREADS_E_SIZE,
    CG_THREADS_E_TIMEOUT,
    CG_THREADS_E_ABORTED,
    CG_THREADS_E_LEFT,
    CG_THREADS_E_SYSTEM
};

typedef struct cg_threads_world cg_threads_world;
typedef int (*cg_threads_fn)(cg_threads_world *, int rank, void *user);

static inline int cg_threads_open(cg_threads_world **, int size);
/* after all threads have returned from their calls */
static inline void cg_threads_close(cg_threads_world *);
/* which: the callbacks it is to have */
static inline cg_transport cg_threads_transport(cg_threads_world *, int rank, int which);
/* of one call; when it strikes, all calls fail from then on */
static inline void cg_threads_timeout(cg_threads_world *, long milliseconds);
/* blocked and later calls of all ranks fail at once; from any thread */
static inline void cg_threads_abort(cg_threads_world *);
/* this rank makes no more calls; who waits for it fails */
static inline void cg_threads_leave(cg_threads_world *, int rank);
static inline int cg_threads_run(int size, cg_threads_fn, void *user);
static inline const char *cg_threads_error(int code);

/* ---- what it is made of ---- */

/* of what a rank sends */
enum { CG_THREADS_IDLE_, CG_THREADS_OFFERED_, CG_THREADS_COPYING_, CG_THREADS_TAKEN_, CG_THREADS_REFUSED_ };

/* one per rank; everything under world->lock, but spinning looks at bell without */
typedef struct cg_threads_seat_ {
    cg_threads_world *world;
    int rank, left;
    unsigned bell; /* counts what happened that this rank may wait for */
    pthread_cond_t rung;
    const void *out;
    size_t out_bytes;
    int to, state; /* what this rank offers in sendrecv */
    /* its part of a collective, constant between two meetings */
    int kind, root;
    const void *mine;
    float *inout;
    size_t bytes;
    char apart[64]; /* keeps the next bell in another cache line */
} cg_threads_seat_;

struct cg_threads_world {
    pthread_mutex_t lock;
    int size, spins, left, code; /* code: why all calls fail */
    int arrived;
    unsigned meeting; /* of the barrier */
    long timeout_ms;
    int first_failure; /* of cg_threads_run */
    cg_threads_seat_ *seat;
};

#ifdef __APPLE__ /* has no pthread_condattr_setclock */
#  define CG_THREADS_CLOCK_ CLOCK_REALTIME
#else
#  define CG_THREADS_CLOCK_ CLOCK_MONOTONIC
#endif

static inline void cg_threads_ring_(cg_threads_seat_ *seat) {
#if defined(__GNUC__) && !defined(__TINYC__)
    __atomic_store_n(&seat->bell, seat->bell + 1, __ATOMIC_RELEASE);
#else
    seat->bell++;
#endif
    pthread_cond_signal(&seat->rung);
}

static inline void cg_threads_ring_all_(cg_threads_world *world) {
    int r;
    for (r = 0; r < world->size; r++) cg_threads_ring_(&world->seat[r]);
}

static inline void cg_threads_spin_(const cg_threads_seat_ *seat, unsigned bell) {
#if defined(__GNUC__) && !defined(__TINYC__)
    int spins = seat->world->spins;
    while (spins-- > 0 && __atomic_load_n(&seat->bell, __ATOMIC_ACQUIRE) == bell) {
#  if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#  endif
    }
#else
    (void)seat, (void)bell;
#endif
}

/* Gives the lock away until something happened to this rank; 1 if it is past `until` (NULL: never). */
static inline int cg_threads_wait_(cg_threads_seat_ *seat, const struct timespec *until) {
    cg_threads_world *world = seat->world;
    unsigned bell = seat->bell;
    if (world->spins > 0) {
        pthread_mutex_unlock(&world->lock);
        cg_threads_spin_(seat, bell);
        pthread_mutex_lock(&world->lock);
    }
    while (seat->bell == bell) {
        if (!until) pthread_cond_wait(&seat->rung, &world->lock);
        else if (pthread_cond_timedwait(&seat->rung, &world->lock, until) == ETIMEDOUT) return 1;
    }
    return 0;
}

static inline struct timespec cg_threads_deadline_(long milliseconds) {
    struct timespec t;
    clock_gettime(CG_THREADS_CLOCK_, &t);
    t.tv_sec += (time_t)(milliseconds / 1000);
    t.tv_nsec += milliseconds % 1000 * 1000000;
    if (t.tv_nsec >= 1000000000) t.tv_nsec -= 1000000000, t.tv_sec++;
    return t;
}

/* A timeout leaves messages half done, so it is the end for everybody. */
static inline int cg_threads_late_(cg_threads_world *world) {
    world->code = CG_THREADS_E_TIMEOUT;
    cg_threads_ring_all_(world);
    return world->code;
}

/* Every rank comes here before any leaves. A meeting that must happen is one that nobody can miss: all are only
   copying. */
static inline int cg_threads_meet_(cg_threads_seat_ *seat, int must) {
    cg_threads_world *world = seat->world;
    struct timespec until;
    unsigned meeting;
    int late = 0, code = 0;
    pthread_mutex_lock(&world->lock);
    until = cg_threads_deadline_(world->timeout_ms);
    meeting = world->meeting;
    if (++world->arrived == world->size && (must || (!world->code && !world->left))) {
        world->arrived = 0;
        world->meeting++;
        cg_threads_ring_all_(world);
    }
    while (world->meeting == meeting) {
        if (!must) {
            code = world->code ? world->code : world->left ? CG_THREADS_E_LEFT : late ? cg_threads_late_(world) : 0;
            if (code) {
                world->arrived--;
                break;
            }
        }
        late = cg_threads_wait_(seat, must ? NULL : &until);
    }
    pthread_mutex_unlock(&world->lock);
    return code;
}

/* ---- sendrecv ---- */

/* Takes what `from` offers to this rank, if it does: 1 and *code, else 0. */
static inline int cg_threads_take_(cg_threads_seat_ *seat, void *in, size_t in_bytes, int from, int *code) {
    cg_threads_world *world = seat->world;
    cg_threads_seat_ *peer = &world->seat[from];
    if (peer->state != CG_THREADS_OFFERED_ || peer->to != seat->rank) return 0;
    if (peer->out_bytes != in_bytes) {
        peer->state = CG_THREADS_REFUSED_;
        *code = CG_THREADS_E_SIZE;
    } else {
        peer->state = CG_THREADS_COPYING_; /* from here to TAKEN the sender stays in its call */
        pthread_mutex_unlock(&world->lock);
        if (in_bytes) memcpy(in, peer->out, in_bytes);
        pthread_mutex_lock(&world->lock);
        peer->state = CG_THREADS_TAKEN_;
    }
    cg_threads_ring_(peer);
    return 1;
}

/* Why waiting is in vain, or 0. */
static inline int cg_threads_vain_(cg_threads_world *world, int late, int to, int from) {
    if (world->code) return world->code;
    if ((to >= 0 && world->seat[to].left) || (from >= 0 && world->seat[from].left)) return CG_THREADS_E_LEFT;
    return late ? cg_threads_late_(world) : 0;
}

static inline int cg_threads_swap_(cg_threads_seat_ *seat, int to, void *in, size_t in_bytes, int from) {
    const struct timespec until = cg_threads_deadline_(seat->world->timeout_ms);
    int late = 0, received = from < 0, code = 0, why;
    for (;;) {
        int sent = to < 0 || seat->state == CG_THREADS_TAKEN_ || seat->state == CG_THREADS_REFUSED_;
        if (sent && received) break;
        why = cg_threads_vain_(seat->world, late, sent ? -1 : to, -1);
        if (!why && !received && cg_threads_take_(seat, in, in_bytes, from, &code)) {
            received = 1;
            continue;
        }
        if (!why && !received) why = cg_threads_vain_(seat->world, late, -1, from);
        if (why && seat->state != CG_THREADS_COPYING_) {
            code = why;
            break;
        }
        late = cg_threads_wait_(seat, seat->state == CG_THREADS_COPYING_ ? NULL : &until);
    }
    if (seat->state == CG_THREADS_REFUSED_) code = CG_THREADS_E_SIZE;
    seat->state = CG_THREADS_IDLE_;
    return code;
}

static inline int cg_threads_sendrecv_(
    void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    cg_threads_seat_ *seat = (cg_threads_seat_ *)user;
    cg_threads_world *world = seat->world;
    int code;
    if (to >= world->size || from >= world->size || (to == seat->rank) != (from == seat->rank)) return CG_THREADS_E_ARG;
    pthread_mutex_lock(&world->lock);
    code = world->code;
    if (!code && to == seat->rank) {
        if (out_bytes != in_bytes) code = CG_THREADS_E_SIZE;
        else if (in_bytes) memmove(in, out, in_bytes);
    } else if (!code) {
        if (to >= 0) {
            seat->out = out;
            seat->out_bytes = out_bytes;
            seat->to = to;
            seat->state = CG_THREADS_OFFERED_;
            cg_threads_ring_(&world->seat[to]);
        }
        code = cg_threads_swap_(seat, to, in, in_bytes, from);
    }
    pthread_mutex_unlock(&world->lock);
    return code;
}

/* ---- collectives: meet, read each other's buffers, meet again ---- */

static inline int cg_threads_gather_(
    cg_threads_seat_ *seat, int kind, int root, const void *mine, float *inout, size_t bytes) {
    seat->kind = kind; /* nobody reads it before the meeting */
    seat->root = root;
    seat->mine = mine;
    seat->inout = inout;
    seat->bytes = bytes;
    return cg_threads_meet_(seat, 0);
}

/* Whether all ranks called the same thing: the same answer on every rank. */
static inline int cg_threads_differ_(const cg_threads_world *world) {
    int r, kind = 0, other = 0;
    for (r = 1; r < world->size; r++) {
        kind |= world->seat[r].kind != world->seat[0].kind || world->seat[r].root != world->seat[0].root;
        other |= world->seat[r].bytes != world->seat[0].bytes;
    }
    return kind ? CG_THREADS_E_ARG : other ? CG_THREADS_E_SIZE : 0;
}

enum { CG_THREADS_CHUNK_ = 1024 }; /* floats that stay in the L1 cache while all ranks are added */

static inline void cg_threads_add_(float *sum, const float *x, size_t n) {
    size_t i;
    /* a fixed length vectorizes at -O2 too */
    if (n == CG_THREADS_CHUNK_)
        for (i = 0; i < CG_THREADS_CHUNK_; i++) sum[i] += x[i];
    else
        for (i = 0; i < n; i++) sum[i] += x[i];
}

/* Adds one stripe over all ranks and stores it in all of them: nobody else touches that stripe. */
static inline void cg_threads_stripe_(const cg_threads_world *world, size_t begin, size_t end) {
    float sum[CG_THREADS_CHUNK_];
    int r;
    while (begin < end) {
        size_t n = end - begin < CG_THREADS_CHUNK_ ? end - begin : (size_t)CG_THREADS_CHUNK_;
        memcpy(sum, world->seat[0].inout + begin, n * sizeof *sum);
        for (r = 1; r < world->size; r++) cg_threads_add_(sum, world->seat[r].inout + begin, n);
        for (r = 0; r < world->size; r++) memcpy(world->seat[r].inout + begin, sum, n * sizeof *sum);
        begin += n;
    }
}

static inline int cg_threads_allreduce_(void *user, float *inout, size_t n) {
    cg_threads_seat_ *seat = (cg_threads_seat_ *)user;
    const size_t share = (n / (size_t)seat->world->size / 16 + 1) * 16; /* whole cache lines */
    const size_t rank = (size_t)seat->rank;
    int code = cg_threads_gather_(seat, CG_THREADS_ALLREDUCE, 0, NULL, inout, n);
    if (code) return code;
    code = cg_threads_differ_(seat->world);
    if (!code && n / share >= rank)
        cg_threads_stripe_(seat->world, rank * share, n - rank * share < share ? n : (rank + 1) * share);
    cg_threads_meet_(seat, 1);
    return code;
}

static inline int cg_threads_allgather_(void *user, const void *mine, void *all, size_t bytes_each) {
    cg_threads_seat_ *seat = (cg_threads_seat_ *)user;
    char *to = (char *)all;
    int r, code = cg_threads_gather_(seat, CG_THREADS_ALLGATHER, 0, mine, NULL, bytes_each);
    if (code) return code;
    code = cg_threads_differ_(seat->world);
    for (r = 0; r < seat->world->size && !code && bytes_each; r++, to += bytes_each) /* mine may be its place in all */
        if (seat->world->seat[r].mine != to) memcpy(to, seat->world->seat[r].mine, bytes_each);
    cg_threads_meet_(seat, 1);
    return code;
}

static inline int cg_threads_broadcast_(void *user, void *buf, size_t bytes, int root) {
    cg_threads_seat_ *seat = (cg_threads_seat_ *)user;
    int code;
    if (root < 0 || root >= seat->world->size) return CG_THREADS_E_ARG;
    code = cg_threads_gather_(seat, CG_THREADS_BROADCAST, root, buf, NULL, bytes);
    if (code) return code;
    code = cg_threads_differ_(seat->world);
    if (!code && seat->rank != root && bytes) memcpy(buf, seat->world->seat[root].mine, bytes);
    cg_threads_meet_(seat, 1);
    return code;
}

/* ---- the world ---- */

static inline int cg_threads_sync_(cg_threads_world *world) {
    pthread_condattr_t attr;
    int r, bad = pthread_condattr_init(&attr) | pthread_mutex_init(&world->lock, NULL);
#ifndef __APPLE__
    bad |= pthread_condattr_setclock(&attr, CG_THREADS_CLOCK_);
#endif
    for (r = 0; r < world->size; r++) bad |= pthread_cond_init(&world->seat[r].rung, &attr);
    pthread_condattr_destroy(&attr);
    return bad;
}

static inline int cg_threads_open(cg_threads_world **out, int size) {
    cg_threads_world *world;
    int r;
    *out = NULL;
    if (size < 1) return CG_THREADS_E_ARG;
    world = (cg_threads_world *)calloc(1, sizeof *world);
    if (world) world->seat = (cg_threads_seat_ *)calloc((size_t)size, sizeof *world->seat);
    if (!world || !world->seat) {
        free(world);
        return CG_THREADS_E_SYSTEM;
    }
    world->size = size;
    world->timeout_ms = 60000;
#ifdef _SC_NPROCESSORS_ONLN
    /* some 20 us; with more ranks than cores it only takes the core away */
    if (sysconf(_SC_NPROCESSORS_ONLN) >= size) world->spins = 1000;
#endif
    for (r = 0; r < size; r++) world->seat[r].world = world, world->seat[r].rank = r;
    if (cg_threads_sync_(world)) {
        free(world->seat);
        free(world);
        return CG_THREADS_E_SYSTEM;
    }
    *out = world;
    return 0;
}

static inline void cg_threads_close(cg_threads_world *world) {
    int r;
    if (!world) return;
    for (r = 0; r < world->size; r++) pthread_cond_destroy(&world->seat[r].rung);
    pthread_mutex_destroy(&world->lock);
    free(world->seat);
    free(world);
}

static inline cg_transport cg_threads_transport(cg_threads_world *world, int rank, int which) {
    cg_transport t;
    memset(&t, 0, sizeof t);
    t.user = &world->seat[rank];
    t.rank = rank;
    t.size = world->size;
    t.flags = CG_ALLREDUCE_AGREES;
    if (which & CG_THREADS_ALLREDUCE) t.allreduce = cg_threads_allreduce_;
    if (which & CG_THREADS_ALLGATHER) t.allgather = cg_threads_allgather_;
    if (which & CG_THREADS_BROADCAST) t.broadcast = cg_threads_broadcast_;
    if (which & CG_THREADS_SENDRECV) t.sendrecv = cg_threads_sendrecv_;
    return t;
}

static inline void cg_threads_timeout(cg_threads_world *world, long milliseconds) {
    pthread_mutex_lock(&world->lock);
    world->timeout_ms = milliseconds;
    pthread_mutex_unlock(&world->lock);
}

static inline void cg_threads_abort(cg_threads_world *world) {
    pthread_mutex_lock(&world->lock);
    if (!world->code) world->code = CG_THREADS_E_ABORTED;
    cg_threads_ring_all_(world);
    pthread_mutex_unlock(&world->lock);
}

static inline void cg_threads_leave(cg_threads_world *world, int rank) {
    pthread_mutex_lock(&world->lock);
    if (!world->seat[rank].left) world->seat[rank].left = 1, world->left++;
    cg_threads_ring_all_(world);
    pthread_mutex_unlock(&world->lock);
}

typedef struct cg_threads_job_ {
    cg_threads_world *world;
    int rank;
    cg_threads_fn fn;
    void *user;
    pthread_t thread;
} cg_threads_job_;

static inline void cg_threads_failed_(cg_threads_world *world, int code) {
    pthread_mutex_lock(&world->lock);
    if (!world->first_failure) world->first_failure = code;
    pthread_mutex_unlock(&world->lock);
}

static inline void *cg_threads_main_(void *arg) {
    cg_threads_job_ *job = (cg_threads_job_ *)arg;
    int code = job->fn(job->world, job->rank, job->user);
    if (code) cg_threads_failed_(job->world, code);
    cg_threads_leave(job->world, job->rank);
    return NULL;
}

static inline int cg_threads_run(int size, cg_threads_fn fn, void *user) {
    cg_threads_world *world;
    cg_threads_job_ *job;
    int r, started, code = cg_threads_open(&world, size);
    if (code) return code;
    job = (cg_threads_job_ *)calloc((size_t)size, sizeof *job);
    if (!job) {
        cg_threads_close(world);
        return CG_THREADS_E_SYSTEM;
    }
    for (started = 0; started < size; started++) {
        job[started].world = world;
        job[started].rank = started;
        job[started].fn = fn;
        job[started].user = user;
        if (pthread_create(&job[started].thread, NULL, cg_threads_main_, &job[started])) break;
    }
    if (started < size) cg_threads_failed_(world, CG_THREADS_E_SYSTEM), cg_threads_abort(world);
    for (r = 0; r < started; r++) pthread_join(job[r].thread, NULL);
    code = world->first_failure;
    free(job);
    cg_threads_close(world);
    return code;
}

static inline const char *cg_threads_error(int code) {
    switch (code) {
    case 0: return "ok";
    case CG_THREADS_E_ARG:
        return "a rank that is not there, a message to oneself not received in the same call, or ranks in different "
               "collectives";
    case CG_THREADS_E_SIZE: return "sender and receiver, or the ranks of a collective, gave different sizes";
    case CG_THREADS_E_TIMEOUT: return "a peer did not come in time: raise cg_threads_timeout if it is only slow";
    case CG_THREADS_E_ABORTED: return "cg_threads_abort was called";
    case CG_THREADS_E_LEFT: return "a rank that this call needs has left";
    case CG_THREADS_E_SYSTEM: return "no memory or no threads left";
    default: return "not a code of this transport";
    }
}

#endif
