/* Gossip between processes over TCP: eight nodes of a ring train the pinned problem by minibatches, and print the
   distance of their mean model from the optimum. With an argument "kill", one of them is killed with -9 on the way, and
   comes back from its last saved state; its neighbours go on without it.

   gossip_peers SEED STEPS [kill]

   A frame is its length, step and bytes. Two neighbours have a connection, which the lower rank opens; where it is
   lost, meetings fail at once, and it is opened again every 50 ms. Who comes back and hears of a later step goes on
   there. */
#define _POSIX_C_SOURCE 200809L
#include "tests/pinned.h"
#include "compgrad_sync.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NODES = PIN_NODES, N = PIN_D, FRAME = 1 << 13, BATCH = 16, SAVE_EVERY = 20, VICTIM = 3 };
static struct shared { /* between the processes: results, and how far each is */
    float x[NODES][N];
    volatile uint64_t step[NODES];
    uint8_t saved[NODES][1 << 14];
    size_t saved_len[NODES];
    float saved_x[NODES][N];
    int misses[NODES];
} * shared;
static int listener[NODES];
static struct sockaddr_in address[NODES];

/* ---- one node's connections ---- */

typedef struct link_to {
    int fd;
    double tried, begun; /* when the connection was asked for, and when it was opened */
    int proved, lost;    /* something has come over this connection; one before it was lost */
    int ahead;           /* a frame of a later step is kept */
    uint64_t ahead_step;
    size_t ahead_len;
    uint8_t kept[FRAME];
} link_to;
static link_to link_of[NODES];
static int me;
static uint64_t now_step, jump_to;

static double clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static void drop(int j) {
    if (link_of[j].fd >= 0) close(link_of[j].fd);
    link_of[j].fd = -1;
    link_of[j].ahead = link_of[j].proved = 0;
    link_of[j].lost = link_of[j].begun > 0;
}
static int ready(int fd, short what, double seconds) {
    struct pollfd p = { fd, what, 0 };
    return poll(&p, 1, (int)(seconds * 1000)) > 0;
}
static int all_bytes(int fd, void *bytes, size_t len, int out, double seconds) {
    char *p = bytes;
    const double end = clock_now() + seconds;
    while (len) {
        ssize_t k;
        if (!ready(fd, out ? POLLOUT : POLLIN, end - clock_now() > 0 ? end - clock_now() : 0)) return 0;
        k = out ? send(fd, p, len, MSG_NOSIGNAL) : recv(fd, p, len, 0);
        if (k <= 0) return 0;
        p += k, len -= (size_t)k;
    }
    return 1;
}
static void take_connections(void) { /* of lower neighbours */
    int fd, rank;
    while (ready(listener[me], POLLIN, 0) && (fd = accept(listener[me], NULL, NULL)) >= 0) {
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (!all_bytes(fd, &rank, sizeof rank, 0, 0.02) || rank < 0 || rank >= NODES) {
            close(fd);
            continue;
        }
        drop(rank);
        link_of[rank].fd = fd;
        link_of[rank].begun = clock_now();
    }
}
static int linked(int j) {
    const double now = clock_now();
    int one = 1;
    take_connections();
    if (link_of[j].fd >= 0) return 1;
    if (now - link_of[j].tried < 0.05 && link_of[j].begun > 0) return 0;
    link_of[j].tried = now;
    if (j < me) { /* it opens the connection */
        if (ready(listener[me], POLLIN, link_of[j].begun > 0 ? 0 : 5)) take_connections();
        return link_of[j].fd >= 0;
    }
    link_of[j].fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(link_of[j].fd, (struct sockaddr *)&address[j], sizeof address[j])) return drop(j), 0;
    setsockopt(link_of[j].fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    link_of[j].begun = now;
    return all_bytes(link_of[j].fd, &me, sizeof me, 1, 1) || (drop(j), 0);
}
static int get_frame(int j, void *in, size_t in_bytes) {
    link_to *l = &link_of[j];
    for (;;) {
        uint64_t head[2];
        const double patience = l->proved || !l->lost ? 5 : 0.03;
        if (l->ahead) head[0] = l->ahead_len, head[1] = l->ahead_step;
        else if (!all_bytes(l->fd, head, sizeof head, 0, patience) || head[0] > FRAME ||
            !all_bytes(l->fd, l->kept, head[0], 0, patience))
            return drop(j), 1;
        l->proved = 1;
        l->ahead = 0;
        if (head[1] < now_step) continue; /* of a step that this node has left */
        if (head[1] > now_step) {         /* this node is behind */
            l->ahead = 1, l->ahead_len = head[0], l->ahead_step = head[1];
            if (head[1] > jump_to) jump_to = head[1];
            return 2;
        }
        if (head[0] != in_bytes) return drop(j), 3;
        memcpy(in, l->kept, in_bytes);
        return 0;
    }
}
static int swap(void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    uint64_t head[2] = { out_bytes, now_step };
    (void)user;
    if (to >= 0 && !linked(to)) return 4;
    if (to < 0 && !linked(from)) return 4;
    if (to >= 0 &&
        (!all_bytes(link_of[to].fd, head, sizeof head, 1, 3) ||
            !all_bytes(link_of[to].fd, (void *)(uintptr_t)out, out_bytes, 1, 3)))
        return drop(to), 5;
    return from >= 0 ? get_frame(from, in, in_bytes) : 0;
}

/* ---- a node ---- */

static int node(int rank, uint64_t seed, uint64_t steps, int again) {
    static float x[N], grad[N];
    cg_graph_desc gd = CG_ZERO;
    cg_gossip_desc d = CG_ZERO;
    cg_transport net = CG_ZERO;
    cg_graph graph;
    cg_gossip g;
    char room[1 << 12], why[200];
    me = rank;
    for (int j = 0; j < NODES; j++) link_of[j].fd = -1;
    gd.nodes = NODES;
    if (cg_graph_init(&graph, &gd, room, sizeof room, why, sizeof why) != CG_OK) return 10;
    d.graph = &graph, d.n = N, d.kind = CG_GOSSIP_CHOCO, d.op = cg_nearest(cg_absmax(2, 256)), d.eta = 0.4f;
    d.rank = rank, d.seed = seed, d.flags = CG_GOSSIP_TOLERATE;
    if (cg_gossip_init(&g, &d, x, malloc(cg_gossip_memory(&d)), cg_gossip_memory(&d)) != CG_OK) return 11;
    net.rank = rank, net.size = NODES, net.sendrecv = swap;
    if (again) { /* from what was saved, which is some steps old */
        if (cg_gossip_load(&g, shared->saved[rank], shared->saved_len[rank]) != CG_OK) return 12;
        memcpy(x, shared->saved_x[rank], sizeof x);
        now_step = shared->step[rank];
    }
    for (; now_step<steps; now_step = jump_to> now_step ? jump_to : now_step + 1) {
        cg_report report;
        /* a minibatch of the node's own samples, drawn by seed, node and step */
        const int first = rank * PIN_SAMPLES +
            (int)(pin_mix(seed * 7919 + now_step * 64 + (uint64_t)rank) % (PIN_SAMPLES - BATCH));
        pin_gradient(first, BATCH, x, grad);
        if (cg_gossip_step(&g, &net, x, grad, pin_rate((int)now_step), now_step, &report) != CG_OK) return 13;
        shared->misses[rank] += report.rank >= 0;
        shared->step[rank] = now_step;
        if (now_step % SAVE_EVERY == 0) {
            if (cg_gossip_save(&g, shared->saved[rank], sizeof shared->saved[rank], &shared->saved_len[rank]) != CG_OK)
                return 14;
            memcpy(shared->saved_x[rank], x, sizeof x);
        }
    }
    memcpy(shared->x[rank], x, sizeof x);
    return 0;
}
int main(int argc, char **argv) {
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1,
                   steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 500;
    const int kills = argc > 3;
    const float *models[NODES];
    pid_t pid[NODES];
    double own, mean;
    int bad = 0, misses = 0;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 2;
    pin_make(1);
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < NODES; i++) {
        socklen_t len = sizeof address[i];
        listener[i] = socket(AF_INET, SOCK_STREAM, 0);
        address[i].sin_family = AF_INET, address[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (bind(listener[i], (struct sockaddr *)&address[i], len) || listen(listener[i], 64) ||
            getsockname(listener[i], (struct sockaddr *)&address[i], &len) || fcntl(listener[i], F_SETFL, O_NONBLOCK))
            return 2;
    }
    fflush(stdout);
    for (int i = 0; i < NODES; i++)
        if (!(pid[i] = fork())) _exit(node(i, seed, steps, 0));
    if (kills) {
        const double end = clock_now() + 60;
        struct timespec wait = { 0, 1000000 };
        uint64_t died;
        while (shared->step[VICTIM] < steps / 3 && clock_now() < end) nanosleep(&wait, NULL);
        kill(pid[VICTIM], SIGKILL);
        waitpid(pid[VICTIM], NULL, 0);
        died = shared->step[0];
        while (shared->step[0] < died + steps / 10 && clock_now() < end) nanosleep(&wait, NULL); /* they go on */
        if (!(pid[VICTIM] = fork())) _exit(node(VICTIM, seed, steps, 1));
    }
    for (int i = 0; i < NODES; i++) {
        int status = 1;
        waitpid(pid[i], &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status))
            bad = 1, fprintf(stderr, "node %d: status %x\n", i, (unsigned)status);
        models[i] = shared->x[i];
        misses += shared->misses[i];
    }
    mean = pin_score(models, &own);
    printf("%.9g %.9g %d\n", mean, own, misses);
    return bad;
}
