/* cc -O2 -pthread -I. examples/overlap_thread.c -o overlap_thread && ./overlap_thread

   A backward pass computes the gradients of twelve layers, the last layer first. Either all of them are exchanged when
   it is over, or a second thread of each rank takes them from a queue and calls the ordinary blocking cg_exchange,
   while the first thread goes on computing. Unlike examples/overlap_mpi.c this needs no change of the computation, but
   the second thread needs a core while it compresses; while it waits for the network it needs none. Here the ranks are
   threads too, so the network is imitated: a message takes as long as over a link of 12.5 MB/s and 0.1 ms (for another
   speed: overlap_thread MB/s). It measures for ten seconds, and shows every step. */

#define COMPGRAD_IMPLEMENTATION
#include "transport_threads.h"

#include <stdio.h>

enum { RANKS = 2, LAYERS = 12, N = 1 << 18, WORK = 100, REPEATS = 6 };
typedef enum plan { COMPUTE_ONLY, AFTERWARDS, OVERLAPPED, PLANS } plan;

typedef struct slow_link {
    cg_transport below;
    double speed;
} slow_link; /* speed: bytes per second, or 0 */

/* The message itself, and the time that it would take. */
static int link_sendrecv(void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    const slow_link *l = (const slow_link *)user;
    const size_t longer = to < 0 || (from >= 0 && in_bytes > out_bytes) ? in_bytes : out_bytes;
    const int code = l->below.sendrecv(l->below.user, out, out_bytes, to, in, in_bytes, from);
    if (!code && l->speed > 0) {
        const double seconds = 1e-4 + (double)longer / l->speed;
        struct timespec t;
        t.tv_sec = (time_t)seconds;
        t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
        nanosleep(&t, NULL);
    }
    return code;
}

/* layers go in by one thread and are exchanged by the other, in the same order on all ranks */
typedef struct queue {
    pthread_mutex_t lock;
    pthread_cond_t more;
    int ready; /* layers computed */
    const cg_transport *transport;
    float (*grad)[N];
    cg_status status; /* of the first exchange that failed */
} queue;

static void put(queue *q, int ready) {
    pthread_mutex_lock(&q->lock);
    q->ready = ready;
    pthread_cond_signal(&q->more);
    pthread_mutex_unlock(&q->lock);
}

static void wait_for(queue *q, int layer) {
    pthread_mutex_lock(&q->lock);
    while (q->ready <= layer) pthread_cond_wait(&q->more, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

/* The second thread: exchanges all layers, each as soon as it is there. */
static void *exchange_all(void *arg) {
    queue *q = (queue *)arg;
    cg_exchange_desc desc = CG_ZERO;
    size_t bytes;
    void *mem;
    int layer;
    desc.op = cg_absmax(4, 512);
    desc.tag.seed = 42;
    bytes = cg_exchange_memory(&desc, q->transport, N);
    mem = malloc(bytes);
    q->status = mem ? CG_OK : CG_E_MEMORY;
    for (layer = 0; q->status == CG_OK && layer < LAYERS; layer++) {
        wait_for(q, layer);
        desc.tag.tensor = (uint32_t)layer;
        q->status = cg_exchange(&desc, q->transport, q->grad[layer], N, mem, bytes, NULL);
    }
    free(mem);
    return NULL;
}

/* Stands for the backward pass of one layer: WORK multiply-adds for each value of its gradient. */
static void compute(float *g, int layer, int rank) {
    size_t i;
    int k;
    for (i = 0; i < N; i++) {
        float v = (float)(((uint32_t)i * 2654435761u ^ (uint32_t)(rank * 7 + layer) * 40503u) >> 8) / 8388608.0f - 1.0f;
        for (k = 0; k < WORK; k++) v = v * 0.999f + 0.0001f;
        g[i] = v;
    }
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One step of training on one rank; its time, or -1. */
static double step(queue *q, int rank, plan how) {
    pthread_t second;
    double began;
    int layer, code = 0;
    char byte = 0, other;
    q->ready = 0;
    q->status = CG_OK;
    /* begin together */
    q->transport->sendrecv(q->transport->user, &byte, 1, RANKS - 1 - rank, &other, 1, RANKS - 1 - rank);
    began = now();
    if (how == OVERLAPPED) code = pthread_create(&second, NULL, exchange_all, q);
    for (layer = 0; !code && layer < LAYERS; layer++) {
        compute(q->grad[layer], layer, rank);
        if (how == OVERLAPPED) put(q, layer + 1);
    }
    if (how == OVERLAPPED && !code) pthread_join(second, NULL);
    if (how == AFTERWARDS) {
        put(q, LAYERS);
        exchange_all(q);
    }
    if (q->status != CG_OK) fprintf(stderr, "rank %d: %s\n", rank, cg_status_str(q->status));
    return code || q->status != CG_OK ? -1.0 : now() - began;
}

/* What an exchange adds to the computation, afterwards and overlapped. */
static void show(const char *name, const double *t) {
    printf("%s: compute %.1f ms, exchange afterwards %+.1f ms, overlapped %+.1f ms", name, 1e3 * t[COMPUTE_ONLY],
        1e3 * (t[AFTERWARDS] - t[COMPUTE_ONLY]), 1e3 * (t[OVERLAPPED] - t[COMPUTE_ONLY]));
}

/* One rank: the best of several steps, and whether all plans give the same means. */
static int worker(cg_threads_world *world, int rank, void *user) {
    const size_t size = sizeof(float) * N * LAYERS;
    float(*grad)[N] = (float(*)[N])malloc(size), (*first)[N] = (float(*)[N])malloc(size);
    double best[PLANS] = { 1e9, 1e9, 1e9 }, took[PLANS], exposed, hidden;
    queue q = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, NULL, NULL, CG_OK };
    cg_transport transport;
    slow_link l;
    int i, how, wrong = !grad || !first;
    /* all else is built of messages, which the link delays */
    l.below = cg_threads_transport(world, rank, CG_THREADS_SENDRECV);
    l.speed = *(const double *)user;
    transport = l.below;
    transport.user = &l;
    transport.sendrecv = link_sendrecv;
    q.transport = &transport;
    q.grad = grad;
    for (i = 0; !wrong && i < REPEATS; i++) {
        for (how = 0; !wrong && how < PLANS; how++) {
            took[how] = step(&q, rank, (plan)how);
            if (took[how] < best[how]) best[how] = took[how];
            wrong = took[how] < 0;
            if (how == AFTERWARDS) memcpy(first, grad, size);
            if (how == OVERLAPPED) wrong |= memcmp(first, grad, size) != 0;
        }
        if (rank == 0 && !wrong) {
            char name[32];
            snprintf(name, sizeof name, "step %d of %d", i + 1, (int)REPEATS);
            show(name, took);
            puts("");
            fflush(stdout);
        }
    }
    exposed = best[AFTERWARDS] - best[COMPUTE_ONLY];
    hidden = best[AFTERWARDS] - best[OVERLAPPED];
    if (rank == 0 && !wrong) {
        show("best", best);
        if (exposed < 0.05 * best[COMPUTE_ONLY]) puts(": too short an exchange to tell");
        else if (hidden < 0) puts(": none of the exchange hidden; is every core free for this?");
        else if (hidden > exposed) puts(": all of the exchange hidden, as far as the times here are exact");
        else printf(": %.0f %% of the exchange hidden\n", 100 * hidden / exposed);
    }
    free(grad);
    free(first);
    return wrong;
}

int main(int argc, char **argv) {
    double speed = argc > 1 ? atof(argv[1]) * 1e6 : 12.5e6;
    int code;
    printf("Two ranks compute the gradients of %d layers with %d values, and exchange them in 4 bits each,\n"
           "after the computation or during it, over a link",
        (int)LAYERS, (int)N);
    if (speed > 0) printf(" of %.1f MB/s.\n", speed / 1e6);
    else puts(" that takes no time.");
    fflush(stdout);
    code = cg_threads_run(RANKS, worker, &speed);
    if (code) fprintf(stderr, "failed: a rank stopped, or the means of two plans differ\n");
    return code != 0;
}
