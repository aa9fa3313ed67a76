/* The transports of examples/: threads and TCP. What they move is compared with what plain loops say, and whatever
   goes wrong on one rank (a size, a peer that is gone, late or dead) is a code on the others, soon.
   test_tcp_open.c is about strangers. The ranks are threads in both cases. */
#define _POSIX_C_SOURCE 200809L
#include "examples/transport_threads.h"
#include "examples/transport_tcp.h"
#include <signal.h>
#include "greatest.h"
#include "ran.h"

enum { MOST = 8 };
static const int sizes[] = { 1, 2, 3, 4, 5, 8 };

static void nap(long ms) {
    struct timespec t;
    t.tv_sec = ms / 1000;
    t.tv_nsec = ms % 1000 * 1000000;
    nanosleep(&t, NULL);
}

static long now(void) { return (long)cg_tcp_now_(); }

static float value(size_t i, int rank) /* sums of these depend on their order */
{
    uint32_t h = (uint32_t)i * 2654435761u ^ (uint32_t)(rank + 1) * 0x9E3779B9u;
    h = (h ^ h >> 15) * 0x85EBCA6Bu;
    return (float)(h >> 8) / (float)(1u << (h & 15)) - 100.0f;
}

static unsigned char byte(size_t i, int from, int to, int round) {
    return (unsigned char)(i * 7 + i / 251 + (size_t)(from * 31 + to * 57 + round * 101));
}

/* Sends and receives `bytes` that say who they are, with a canary behind; checks them. */
static int swap(const cg_transport *t, int to, int from, size_t bytes, int round) {
    unsigned char *out = (unsigned char *)calloc(1, bytes + 1), *in = (unsigned char *)malloc(bytes + 8);
    size_t i, wrong = 0;
    int code;
    if (!out || !in) exit(2);
    for (i = 0; i < bytes; i++) out[i] = byte(i, t->rank, to, round);
    memset(in, 0xA5, bytes + 8);
    code = t->sendrecv(t->user, out, bytes, to, in, bytes, from);
    for (i = 0; i < bytes && from >= 0 && !code; i++) wrong += in[i] != byte(i, from, t->rank, round);
    for (i = 0; i < 8; i++) wrong += in[bytes + i] != 0xA5;
    free(out);
    free(in);
    return wrong ? 9999 : code;
}

/* ---- threads: what they move ---- */

static int reduces(cg_threads_world *world, int rank, void *user) {
    static const size_t lengths[] = { 0, 1, 15, 16, 17, 33, 1000, 1024, 1025, 5003, 40000 };
    const cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    size_t l, i;
    int r;
    (void)user;
    NEED(t.rank == rank && t.flags == CG_ALLREDUCE_AGREES);
    for (l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        const size_t n = lengths[l];
        float *x = (float *)malloc((n + 1) * sizeof *x);
        NEED(x);
        for (i = 0; i < n; i++) x[i] = value(i, rank);
        x[n] = 12345;
        NEED(t.allreduce(t.user, x, n) == 0);
        for (i = 0; i < n; i++) {
            float sum = value(i, 0);
            for (r = 1; r < t.size; r++) sum += value(i, r);
            NEED(!memcmp(&sum, &x[i], sizeof sum));
        }
        NEED(x[n] > 12344 && x[n] < 12346);
        free(x);
    }
    return 0;
}

static int gathers(cg_threads_world *world, int rank, void *user) {
    static const size_t lengths[] = { 0, 1, 7, 64, 3001 };
    const cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    unsigned char mine[3001], *all = (unsigned char *)malloc(3001 * MOST + 1);
    size_t l, i;
    int r, root, place;
    (void)user;
    NEED(all);
    for (l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        const size_t n = lengths[l];
        for (place = 0; place < 2; place++) { /* 1: mine is where it will be in all */
            unsigned char *from = place ? all + (size_t)rank * n : mine;
            memset(all, 0xA5, 3001 * MOST + 1);
            for (i = 0; i < n; i++) from[i] = byte(i, rank, 0, place);
            NEED(t.allgather(t.user, from, all, n) == 0);
            for (r = 0; r < t.size; r++)
                for (i = 0; i < n; i++) NEED(all[(size_t)r * n + i] == byte(i, r, 0, place));
            NEED(all[(size_t)t.size * n] == 0xA5);
        }
        for (root = 0; root < t.size; root++) {
            for (i = 0; i < n; i++) mine[i] = byte(i, rank, 1, root);
            NEED(t.broadcast(t.user, mine, n, root) == 0);
            for (i = 0; i < n; i++) NEED(mine[i] == byte(i, root, 1, root));
        }
    }
    NEED(t.broadcast(t.user, mine, 1, t.size) == CG_THREADS_E_ARG &&
        t.broadcast(t.user, mine, 1, -1) == CG_THREADS_E_ARG);
    free(all);
    return 0;
}

/* every shift, to itself too; hand-overs in one direction; every pair, several in a row */
static int moves(const cg_transport *t) {
    static const size_t lengths[] = { 0, 1, 17, 70000 };
    const int rank = t->rank, size = t->size;
    int k, l, a, b;
    for (l = 0; l < 4; l++)
        for (k = 0; k < size; k++) NEED(swap(t, (rank + k) % size, (rank + size - k) % size, lengths[l], k) == 0);
    for (k = 0; k < 20; k++) { /* along a chain */
        if (rank > 0) NEED(swap(t, -1, rank - 1, 100, k) == 0);
        if (rank < size - 1) NEED(swap(t, rank + 1, -1, 100, k) == 0);
    }
    for (a = 0; a < size; a++)
        for (b = 0; b < size; b++)
            for (k = 0; k < 3 && a != b; k++) {
                if (rank == a) NEED(swap(t, b, -1, 9, k) == 0);
                if (rank == b) NEED(swap(t, -1, a, 9, k) == 0);
            }
    NEED(swap(t, -1, -1, 5, 0) == 0);
    return 0;
}

static int messages(cg_threads_world *world, int rank, void *user) {
    const cg_transport t = cg_threads_transport(world, rank, CG_THREADS_SENDRECV);
    int code, k, partner;
    (void)user;
    NEED(t.sendrecv && !t.allreduce && !t.allgather && !t.broadcast);
    code = moves(&t);
    if (code) return code;
    for (k = 1; k < t.size; k++) { /* swaps between pairs that meet in different order */
        partner = rank ^ k;
        if (partner < t.size) NEED(swap(&t, partner, partner, 1000, k) == 0);
    }
    return 0;
}

TEST threads_move(int size) {
    ASSERT_RAN(size, reduces, NULL);
    ASSERT_RAN(size, gathers, NULL);
    ASSERT_RAN(size, messages, NULL);
    PASS();
}

/* ---- threads: what goes wrong ---- */

static int unequal(cg_threads_world *world, int rank, void *user) {
    const cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    unsigned char in[64], out[64], all[64 * 3];
    float x[40];
    int i;
    (void)user;
    memset(in, 0xA5, sizeof in);
    memset(out, 1, sizeof out);
    for (i = 0; i < 40; i++) x[i] = 1;
    /* 0 sends 20 bytes to 1, who expects 10: an error for both; 0 also gets from 2, 1 also sends to 2, and these
       arrive. */
    i = t.sendrecv(t.user, out, rank == 0 ? 20 : 30, (rank + 1) % 3, in, rank == 1 ? 10 : 30, (rank + 2) % 3);
    NEED(i == (rank == 2 ? 0 : CG_THREADS_E_SIZE));
    NEED(in[0] == (rank == 1 ? 0xA5 : 1) && in[30] == 0xA5);
    NEED(swap(&t, (rank + 1) % 3, (rank + 2) % 3, 10, 0) == 0);
    NEED(t.sendrecv(t.user, out, 3, rank, in, 4, rank) == CG_THREADS_E_SIZE);
    NEED(t.allreduce(t.user, x, rank == 2 ? 33 : 40) == CG_THREADS_E_SIZE && x[0] < 2);
    NEED(t.allreduce(t.user, x, 40) == 0 && x[39] > 2);
    NEED(t.allgather(t.user, out, all, rank ? 5 : 6) == CG_THREADS_E_SIZE);
    NEED(t.broadcast(t.user, out, rank ? 5 : 6, 0) == CG_THREADS_E_SIZE);
    NEED(t.broadcast(t.user, out, 5, rank ? 0 : 1) == CG_THREADS_E_ARG);
    NEED((rank ? t.allgather(t.user, out, all, 40) : t.allreduce(t.user, x, 40)) == CG_THREADS_E_ARG);
    NEED(t.sendrecv(t.user, out, 1, 3, in, 1, -1) == CG_THREADS_E_ARG);
    NEED(t.sendrecv(t.user, out, 1, rank, in, 1, -1) == CG_THREADS_E_ARG);
    NEED(t.sendrecv(t.user, out, 1, -1, in, 1, rank) == CG_THREADS_E_ARG);
    NEED(t.allgather(t.user, out, all, 64) == 0);
    return 0;
}

TEST threads_sizes(void) {
    ASSERT_RAN(3, unequal, NULL);
    PASS();
}

/* Who waits for whom, of 4 ranks, when rank 3 gives up after a while: in a collective, to send, to receive. */
static int blocked(const cg_transport *t, int how) {
    float x[8] = { 0 };
    if (how == 0) return t->allreduce(t->user, x, 8);
    if (how == 1) return swap(t, 3, -1, 100, 0);
    if (how == 2) return swap(t, -1, 3, 100, 0);
    return swap(t, (t->rank + 1) % 4, (t->rank + 3) % 4, 100, 0); /* a cycle that has a gap */
}

typedef struct trouble {
    int how, what;
} trouble;

static int troubled(cg_threads_world *world, int rank, void *user) {
    const trouble *job = (const trouble *)user;
    const cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    const long start = now();
    int code;
    if (rank == 0) cg_threads_timeout(world, job->what == CG_THREADS_E_TIMEOUT ? 200 : 20000);
    NEED(t.allgather(t.user, NULL, NULL, 0) == 0); /* so that all have the timeout */
    if (rank == 3) {
        if (job->what == CG_THREADS_E_TIMEOUT) nap(500); /* says nothing for too long */
        else nap(100);
        if (job->what == CG_THREADS_E_ABORTED) cg_threads_abort(world);
        if (job->what == CG_THREADS_E_LEFT) return 0; /* cg_threads_run leaves for it */
        NEED(swap(&t, 0, 0, 1, 0) == job->what);
        /* it is the abort that wakes the others, not the end of this rank */
        if (job->what == CG_THREADS_E_ABORTED) nap(1000);
        return 0;
    }
    code = blocked(&t, job->how);
    if (job->how == 3 && rank == 1) return code; /* the cycle needs rank 3 only for 0 and 2 */
    NEED(code == job->what);
    NEED(now() - start < (job->what == CG_THREADS_E_ABORTED ? 1000 : 5000));
    NEED(now() - start >= (job->what == CG_THREADS_E_TIMEOUT ? 190 : 90));
    /* later calls too */
    if (job->what != CG_THREADS_E_LEFT) NEED(swap(&t, (rank + 1) % 3, (rank + 2) % 3, 10, 0) == job->what);
    return 0;
}

TEST threads_trouble(int what) {
    trouble job;
    clock_t before;
    for (job.how = 0; job.how < 4; job.how++) {
        job.what = what;
        before = clock();
        ASSERT_RAN(4, troubled, &job);
        ASSERTm("waiting costs CPU time", clock() - before < CLOCKS_PER_SEC / 10);
    }
    PASS();
}

/* one has left: the others are still there for each other */
static int others(cg_threads_world *world, int rank, void *user) {
    const cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    float x = 1;
    int k;
    (void)user;
    if (rank == 2) return 77;
    nap(50);
    for (k = 0; k < 100; k++) NEED(swap(&t, 1 - rank, 1 - rank, 1000, k) == 0);
    NEED(t.allreduce(t.user, &x, 1) == CG_THREADS_E_LEFT);
    return 78;
}

TEST threads_first_failure(void) {
    ASSERT_EQ_FMT(77, cg_threads_run(3, others, NULL), "%d");
    ASSERT_EQ_FMT((int)CG_THREADS_E_ARG, cg_threads_run(0, others, NULL), "%d");
    PASS();
}

/* Buffers are freed right after a call that an abort ended: nobody may still use them (the sanitizers look). Rank
   4 aborts the world of 0 to 3. */
typedef struct storm {
    cg_threads_world *world;
    int round;
} storm;

static int stormy(cg_threads_world *outer, int rank, void *user) {
    const storm *job = (const storm *)user;
    cg_transport t;
    int k, code = 0;
    (void)outer;
    if (rank == 4) {
        nap(1 + job->round % 3);
        cg_threads_abort(job->world);
        return 0;
    }
    t = cg_threads_transport(job->world, rank, CG_THREADS_ALL);
    for (k = 0; !code; k++) {
        float *x = (float *)calloc(20000, sizeof *x);
        NEED(x);
        code = job->round % 2 ? t.allreduce(t.user, x, 20000)
                              : t.sendrecv(t.user, x, 40000, (rank + 1) % 4, x + 10000, 40000, (rank + 3) % 4);
        memset(x, 1, 20000 * sizeof *x);
        free(x);
    }
    NEED(code == CG_THREADS_E_ABORTED);
    return 0;
}

TEST threads_storm(void) {
    storm job;
    for (job.round = 0; job.round < 60; job.round++) {
        ASSERT_EQ(0, cg_threads_open(&job.world, 4));
        ASSERT_RAN(5, stormy, &job);
        cg_threads_close(job.world);
    }
    PASS();
}

/* ---- TCP: what it moves ---- */

typedef struct mesh {
    char addresses[400];
    int listener[MOST], timeout_ms, how;
} mesh;

static int mesh_make(mesh *m, const char *host, int size, int timeout_ms) /* 0, or the code of cg_tcp_listen */
{
    int r, port;
    m->addresses[0] = 0;
    m->timeout_ms = timeout_ms;
    for (r = 0; r < size; r++) {
        char any[64];
        int code;
        snprintf(any, sizeof any, "%s:0", host);
        code = cg_tcp_listen(any, &m->listener[r], &port);
        if (code) return code;
        snprintf(m->addresses + strlen(m->addresses), sizeof m->addresses - strlen(m->addresses), "%s%s:%d",
            r ? "," : "", host, port);
    }
    return 0;
}

static cg_tcp_desc tcp_desc(const mesh *m, int rank) {
    cg_tcp_desc d;
    memset(&d, 0, sizeof d);
    d.rank = rank;
    d.addresses = m->addresses;
    d.job = 0x123456789ABCDEFu;
    d.timeout_ms = m->timeout_ms;
    d.listener = m->listener[rank];
    return d;
}

#define JOIN(net, m, rank)                  \
  do {                                      \
    cg_tcp_desc desc_ = tcp_desc(m, rank);  \
    NEED(cg_tcp_open(&(net), &desc_) == 0); \
  } while (0)

static void die(cg_tcp *net) /* like a killed process: the sockets close, and no goodbye */
{
    int r;
    for (r = 0; r < net->transport.size; r++)
        if (net->peer[r].fd >= 0) close(net->peer[r].fd), net->peer[r].fd = -1;
    cg_tcp_close(net);
}

static int tcp_moves(cg_threads_world *world, int rank, void *user) {
    cg_tcp net;
    int code, k;
    (void)world;
    JOIN(net, (const mesh *)user, rank);
    NEED(net.transport.rank == rank && !net.transport.allreduce);
    code = moves(&net.transport);
    if (code) return code;
    if (net.transport.size > 1) { /* many small ones, and the counters tell them exactly */
        const int to = (rank + 1) % net.transport.size, from = (rank + net.transport.size - 1) % net.transport.size;
        const uint64_t sent = net.sent, received = net.received, out = net.messages_sent, in = net.messages_received;
        uint64_t bytes = 0;
        for (k = 0; k < 2000; k++) {
            NEED(swap(&net.transport, to, from, (size_t)(k % 41), k) == 0);
            bytes += (uint64_t)(k % 41);
        }
        NEED(net.messages_sent - out == 2000 && net.messages_received - in == 2000);
        NEED(net.sent - sent == bytes + 2000 * 8 && net.received - received == bytes + 2000 * 8);
    }
    cg_tcp_close(&net);
    NEED(net.transport.sendrecv(net.transport.user, NULL, 0, -1, NULL, 0, -1) != 0);
    cg_tcp_close(&net);
    return 0;
}

TEST tcp_move(const char *host, int size) {
    mesh m;
    if (mesh_make(&m, host, size, 20000)) SKIPm("no such loopback address");
    ASSERT_RAN(size, tcp_moves, &m);
    PASS();
}

static pthread_t pestered[3];
static void pest(int number) { (void)number; }

/* 10 MB both ways at once, while signals arrive */
static int tcp_big(cg_threads_world *world, int rank, void *user) {
    const cg_transport sync = cg_threads_transport(world, rank, CG_THREADS_ALL);
    cg_tcp net;
    int k;
    if (rank < 3) {
        pestered[rank] = pthread_self();
        JOIN(net, (const mesh *)user, rank);
    }
    NEED(sync.allgather(sync.user, NULL, NULL, 0) == 0);
    if (rank == 3) {
        for (k = 0; k < 120; k++) pthread_kill(pestered[k % 2 * 2], SIGUSR1), nap(1);
    } else {
        if (rank == 1) nap(50); /* so that the others are waiting when the signals come */
        NEED(swap(&net.transport, (rank + 1) % 3, (rank + 2) % 3, 10000000, 1) == 0);
        if (rank < 2) NEED(swap(&net.transport, 1 - rank, 1 - rank, 10000000, 2) == 0);
    }
    NEED(sync.allgather(sync.user, NULL, NULL, 0) == 0);
    if (rank < 3) cg_tcp_close(&net);
    return 0;
}

TEST tcp_large(void) {
    struct sigaction act;
    mesh m;
    memset(&act, 0, sizeof act);
    act.sa_handler = pest; /* no SA_RESTART: calls are interrupted */
    sigaction(SIGUSR1, &act, NULL);
    ASSERT_EQ(0, mesh_make(&m, "127.0.0.1", 3, 20000));
    ASSERT_RAN(4, tcp_big, &m);
    PASS();
}

/* Rank 2 is done early and closes: with a last message that rank 0 reads much later (how 0), or without (how 1). */
static int tcp_early(cg_threads_world *world, int rank, void *user) {
    const mesh *m = (const mesh *)user;
    cg_tcp net;
    int k;
    (void)world;
    JOIN(net, m, rank);
    for (k = 0; k < 10 && rank < 2; k++) {
        if (rank == 1) nap(20); /* rank 0 sleeps in poll and sees rank 2 */
        NEED(swap(&net.transport, 1 - rank, 1 - rank, 100, k) == 0);
    }
    if (m->how == 0 && rank == 2) NEED(swap(&net.transport, 0, -1, 5000, 7) == 0);
    if (m->how == 0 && rank == 0) NEED(swap(&net.transport, -1, 2, 5000, 7) == 0);
    if (rank == 0) { /* now there is nothing more to come */
        int code = m->how == 0 ? swap(&net.transport, -1, 2, 1, 0) : swap(&net.transport, 2, -1, 1, 0);
        NEED(cg_tcp_kind(code) == CG_TCP_E_CLOSED && cg_tcp_blame(code) == 2);
    }
    cg_tcp_close(&net);
    return 0;
}

TEST tcp_goodbye(void) {
    mesh m;
    for (m.how = 0; m.how < 2; m.how++) {
        ASSERT_EQ(0, mesh_make(&m, "127.0.0.1", 3, 20000));
        ASSERT_RAN(3, tcp_early, &m);
    }
    PASS();
}

/* ---- TCP: what goes wrong ---- */

/* Rank 3 of 4 dies. Rank 0 waits for 1, 1 for 2, and 2 for (how) 0: data from 3; 1: nobody, it then sends to 3
   until it notices; 2: nobody, it sleeps. How 3: as 2, and 3 has sent something to everybody that nobody has read. */
static int tcp_dies(cg_threads_world *world, int rank, void *user) {
    const mesh *m = (const mesh *)user;
    const long start = now();
    cg_tcp net;
    int code = 0, r;
    (void)world;
    JOIN(net, m, rank);
    if (rank == 3) {
        for (r = 0; r < 3 && m->how == 3; r++) NEED(swap(&net.transport, r, -1, 10, 0) == 0);
        nap(100);
        die(&net);
        return 0;
    }
    if (rank == 2) {
        if (m->how == 0) code = swap(&net.transport, -1, 3, 10, 0);
        /* it is dead by now: the second message to it would raise SIGPIPE */
        if (m->how == 1) nap(200);
        for (r = 0; r < 1000 && m->how == 1 && !code; r++) nap(1), code = swap(&net.transport, 3, -1, 1000, r);
        if (m->how >= 2) nap(1500), code = swap(&net.transport, 1, -1, 10, 0);
        if (m->how == 3 && !code) code = swap(&net.transport, -1, 3, 10, 0);
        if (m->how == 3 && !code) code = swap(&net.transport, -1, 3, 10, 0);
    } else code = swap(&net.transport, -1, rank + 1, 10, 0);
    if (m->how == 3 && rank < 2) NEED(code == 0 || cg_tcp_kind(code) == CG_TCP_E_CLOSED);
    else NEED(cg_tcp_kind(code) == CG_TCP_E_CLOSED && cg_tcp_blame(code) >= 0 && cg_tcp_blame(code) != rank);
    /* the others noticed it while they waited for somebody else */
    NEED(now() - start < (m->how == 2 && rank < 2 ? 1000 : 5000));
    if (code) NEED(swap(&net.transport, (rank + 1) % 3, (rank + 2) % 3, 10, 0) == code);
    cg_tcp_close(&net);
    return 0;
}

TEST tcp_dead_peer(int how) {
    mesh m;
    m.how = how;
    ASSERT_EQ(0, mesh_make(&m, "127.0.0.1", 4, 20000));
    ASSERT_RAN(4, tcp_dies, &m);
    PASS();
}

static int tcp_waits(cg_threads_world *world, int rank, void *user) {
    const mesh *m = (const mesh *)user;
    static unsigned char big[8000000];
    unsigned char frame[8] = { 6, 0, 0, 0, 0, 0, 0, 0 }, in[8];
    long start;
    cg_tcp net;
    int code, k;
    (void)world;
    JOIN(net, m, rank);
    start = now();
    if (rank == 1 && m->how == 2) { /* six bytes that come slowly are no timeout */
        NEED(send(net.peer[0].fd, frame, 8, 0) == 8);
        for (k = 0; k < 6; k++) {
            nap(150);
            NEED(send(net.peer[0].fd, frame, 1, 0) == 1);
        }
    }
    if (rank == 1) {
        nap(1000);
        cg_tcp_close(&net);
        return 0;
    }
    if (m->how == 2)
        NEED(net.transport.sendrecv(net.transport.user, NULL, 0, -1, in, 6, 1) == 0 && in[5] == 6 &&
            now() - start > 600);
    if (m->how == 2) start = now();
    code = m->how == 1 ? net.transport.sendrecv(net.transport.user, big, sizeof big, 1, NULL, 0, -1)
                       : net.transport.sendrecv(net.transport.user, NULL, 0, -1, in, 6, 1);
    NEED(code == cg_tcp_code_(CG_TCP_E_TIMEOUT, 1, 0));
    NEED(now() - start >= 390 && now() - start < 950);
    NEED(swap(&net.transport, 1, 1, 1, 0) == code);
    cg_tcp_close(&net);
    return 0;
}

TEST tcp_timeout(int how) {
    mesh m;
    m.how = how;
    ASSERT_EQ(0, mesh_make(&m, "127.0.0.1", 2, 400));
    ASSERT_RAN(2, tcp_waits, &m);
    PASS();
}

static int tcp_unequal(cg_threads_world *world, int rank, void *user) {
    const mesh *m = (const mesh *)user;
    const size_t expected = m->how ? 10 : 30;
    const long start = now();
    unsigned char out[64] = { 0 }, in[64];
    cg_tcp net;
    int code;
    (void)world;
    JOIN(net, m, rank);
    memset(in, 0xA5, sizeof in);
    if (rank == 0) NEED(net.transport.sendrecv(net.transport.user, out, 20, 1, NULL, 0, -1) == 0);
    code = net.transport.sendrecv(net.transport.user, NULL, 0, -1, in, expected, 1 - rank);
    NEED(cg_tcp_kind(code) == (rank ? CG_TCP_E_SIZE : CG_TCP_E_CLOSED) && in[expected] == 0xA5);
    NEED(now() - start < 900);
    if (rank) nap(1000); /* rank 0 knows from the failure, not from the close */
    cg_tcp_close(&net);
    return 0;
}

static int tcp_args(cg_threads_world *world, int rank, void *user) {
    cg_tcp net;
    unsigned char a[4] = { 1, 2, 3, 4 }, b[4];
    (void)world;
    JOIN(net, (const mesh *)user, rank);
    NEED(net.transport.sendrecv(&net, a, 4, 2, b, 4, -1) == CG_TCP_E_ARG);
    NEED(net.transport.sendrecv(&net, a, 4, rank, b, 4, -1) == CG_TCP_E_ARG);
    NEED(net.transport.sendrecv(&net, a, 4, -1, b, 4, rank) == CG_TCP_E_ARG);
    NEED(cg_tcp_kind(net.transport.sendrecv(&net, a, 4, rank, b, 3, rank)) == CG_TCP_E_SIZE);
    NEED(swap(&net.transport, 1 - rank, 1 - rank, 9, 0) == 0); /* none of this broke it */
    cg_tcp_close(&net);
    return 0;
}

TEST tcp_sizes(void) {
    mesh m;
    for (m.how = 0; m.how < 2; m.how++) {
        ASSERT_EQ(0, mesh_make(&m, "127.0.0.1", 2, 20000));
        ASSERT_RAN(2, tcp_unequal, &m);
    }
    ASSERT_EQ(0, mesh_make(&m, "127.0.0.1", 2, 20000));
    ASSERT_RAN(2, tcp_args, &m);
    PASS();
}

/* ---- TCP: opening ---- */

/* Without listeners handed over, and rank 0 comes late (how 0) or rank 1 does (1). */
static int tcp_opens(cg_threads_world *world, int rank, void *user) {
    const mesh *m = (const mesh *)user;
    const long start = now();
    cg_tcp_desc d = tcp_desc(m, rank);
    cg_tcp net;
    (void)world;
    d.listener = 0;
    if (m->how == rank) nap(300);
    NEED(cg_tcp_open(&net, &d) == 0 && swap(&net.transport, 1 - rank, 1 - rank, 1000, 0) == 0);
    NEED(now() - start < 5000);
    cg_tcp_close(&net);
    return 0;
}

TEST tcp_opening(int how) {
    mesh m;
    m.how = how;
    ASSERT_EQ(0, mesh_make(&m, "127.0.0.1", 2, 10000));
    close(m.listener[0]); /* only to have free ports */
    close(m.listener[1]);
    ASSERT_RAN(2, tcp_opens, &m);
    PASS();
}

TEST tcp_alone(void) {
    cg_tcp_desc d;
    cg_tcp net;
    mesh m;
    long start;
    int rank, code;
    for (rank = 0; rank < 2; rank++) {
        ASSERT_EQ(0, mesh_make(&m, "127.0.0.1", 2, 300));
        close(m.listener[0]);
        close(m.listener[1]);
        d = tcp_desc(&m, rank);
        d.listener = 0;
        start = now();
        code = cg_tcp_open(&net, &d);
        ASSERT_EQ_FMT(cg_tcp_code_(CG_TCP_E_TIMEOUT, 1 - rank, rank ? ECONNREFUSED : 0), code, "%d");
        ASSERT(now() - start >= 290);
        ASSERT(now() - start < 3000);
        cg_tcp_close(&net);
    }
    PASS();
}

TEST tcp_addresses(void) {
    static const char *const wrong[] = { "", "nonsense", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "[::1:5",
        "127.0.0.1:5,", "127.0.0.1:5,,127.0.0.1:6" };
    const long start = now();
    cg_tcp_desc d;
    cg_tcp net;
    size_t i;
    memset(&d, 0, sizeof d);
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        d.addresses = wrong[i];
        ASSERT_EQ_FMT((int)CG_TCP_E_ADDRESS, cg_tcp_kind(cg_tcp_open(&net, &d)), "%d");
        cg_tcp_close(&net);
    }
    d.addresses = "192.0.2.1:5000,127.0.0.1:5001"; /* an address for documentation, not ours to listen at */
    ASSERT_EQ_FMT((int)CG_TCP_E_ADDRESS, cg_tcp_kind(cg_tcp_open(&net, &d)), "%d");
    d.rank = 2;
    ASSERT_EQ_FMT((int)CG_TCP_E_ARG, cg_tcp_open(&net, &d), "%d");
    d.rank = -1;
    ASSERT_EQ_FMT((int)CG_TCP_E_ARG, cg_tcp_open(&net, &d), "%d");
    d.rank = 0;
    d.addresses = NULL;
    ASSERT_EQ_FMT((int)CG_TCP_E_ARG, cg_tcp_open(&net, &d), "%d");
    ASSERT(now() - start < 1000);
    PASS();
}

TEST error_texts(void) {
    char text[200];
    int code;
    ASSERT_STR_EQ("timeout, waiting for rank 2", cg_tcp_error(cg_tcp_code_(CG_TCP_E_TIMEOUT, 2, 0), text, sizeof text));
    cg_tcp_error(cg_tcp_code_(CG_TCP_E_CLOSED, 3999, ECONNRESET), text, sizeof text);
    ASSERT(strstr(text, "(rank 3999)") && strstr(text, strerror(ECONNRESET)));
    ASSERT_EQ_FMT(3999, cg_tcp_blame(cg_tcp_code_(CG_TCP_E_CLOSED, 3999, ECONNRESET)), "%d");
    ASSERT_EQ_FMT(-1, cg_tcp_blame(CG_TCP_E_ARG), "%d");
    for (code = 0; code <= CG_TCP_E_SECRET; code++)
        ASSERT(strlen(cg_tcp_error(code, text, sizeof text)) > 1 && text[0] != '?');
    for (code = 0; code <= CG_THREADS_E_SYSTEM; code++) ASSERT(!strstr(cg_threads_error(code), "not a code"));
    PASS();
}

SUITE(threads) {
    size_t i;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) RUN_TESTp(threads_move, sizes[i]);
    RUN_TEST(threads_sizes);
    RUN_TESTp(threads_trouble, CG_THREADS_E_ABORTED);
    RUN_TESTp(threads_trouble, CG_THREADS_E_LEFT);
    RUN_TESTp(threads_trouble, CG_THREADS_E_TIMEOUT);
    RUN_TEST(threads_first_failure);
    RUN_TEST(threads_storm);
}

SUITE(tcp) {
    int i;
    for (i = 1; i <= 5; i++) RUN_TESTp(tcp_move, "127.0.0.1", i);
    RUN_TESTp(tcp_move, "[::1]", 3);
    RUN_TESTp(tcp_move, "localhost", 2);
    RUN_TEST(tcp_large);
    RUN_TEST(tcp_goodbye);
    for (i = 0; i < 4; i++) RUN_TESTp(tcp_dead_peer, i);
    for (i = 0; i < 3; i++) RUN_TESTp(tcp_timeout, i);
    RUN_TEST(tcp_sizes);
    for (i = 0; i < 2; i++) RUN_TESTp(tcp_opening, i);
    RUN_TEST(tcp_alone);
    RUN_TEST(tcp_addresses);
    RUN_TEST(error_texts);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(threads);
    RUN_SUITE(tcp);
    GREATEST_MAIN_END();
}
