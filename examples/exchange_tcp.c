/* cc -O2 -I. examples/exchange_tcp.c -o exchange_tcp && ./exchange_tcp

   Ranks on several machines exchange a gradient of a million values over TCP: the 1 % largest of each rank, then
   all of them as 4 bits. On each machine, with the same list: ./exchange_tcp RANK host0:4000,host1:4000,host2:4000
   Without arguments it starts four processes on this one. With a secret in the environment variable
   COMPGRAD_TCP_SECRET, the same on all machines, only those who know it take part. */

#define _POSIX_C_SOURCE 200809L /* for transport_tcp.h, under -std=c99 */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_exchange.h"
#include "transport_tcp.h"

#include <sys/wait.h>

enum { N = 1000000, LOCAL = 4 };
static float grad[N];

/* A few large values that the ranks share, under small noise that they do not. */
static void make_gradient(float *g, int rank) {
    uint32_t signal = 1, noise = 100u + (uint32_t)rank;
    int i;
    for (i = 0; i < N; i++) {
        signal = signal * 1664525u + 1013904223u;
        noise = noise * 1664525u + 1013904223u;
        g[i] = (float)(noise >> 8) / 16777216.0f - 0.5f;
        if (signal >> 24 == 0) g[i] += (float)(signal & 0xffffu) / 1024.0f - 32.0f;
    }
}

static void checksum(const float *x, unsigned char out[8]) {
    uint64_t h = 14695981039346656037u;
    uint32_t bits;
    int i;
    for (i = 0; i < N; i++) {
        memcpy(&bits, &x[i], 4);
        h = (h ^ bits) * 1099511628211u;
    }
    for (i = 0; i < 8; i++) out[i] = (unsigned char)(h >> 8 * i & 255);
}

/* Rank 0 hears the checksums of the others: whether all of them are its own. */
static int agree(const cg_transport *t, int *same) {
    unsigned char mine[8], theirs[8];
    int r, code = 0;
    checksum(grad, mine);
    *same = 1;
    if (t->rank) return t->sendrecv(t->user, mine, 8, 0, NULL, 0, -1);
    for (r = 1; r < t->size && !code; r++) {
        code = t->sendrecv(t->user, NULL, 0, -1, theirs, 8, r);
        *same &= !memcmp(mine, theirs, 8);
    }
    return code;
}

static int run(cg_tcp *net, const char *op) {
    const cg_transport *t = &net->transport;
    const uint64_t before = net->sent,
                   plain = (uint64_t)N * sizeof(float) * 2 * (uint64_t)(t->size - 1) / (uint64_t)t->size;
    cg_exchange_desc desc = CG_ZERO;
    cg_report report = CG_ZERO;
    char text[200] = "";
    size_t bytes = 0;
    void *mem = NULL;
    uint64_t sent;
    int same = 1, code = 0;
    cg_status s = cg_op_parse(&desc.op, op);
    /* seed, step and tensor are the same on all ranks; the rank is filled in */
    desc.tag.seed = 42;
    if (s == CG_OK) bytes = cg_exchange_memory(&desc, t, N);
    if (s == CG_OK && !(mem = malloc(bytes + 1))) s = CG_E_MEMORY;
    make_gradient(grad, t->rank);
    if (s == CG_OK) s = cg_exchange(&desc, t, grad, N, mem, bytes, &report); /* grad becomes the mean */
    free(mem);
    sent = net->sent - before;
    if (s == CG_OK) code = agree(t, &same);
    if (s != CG_OK || code) {
        fprintf(stderr, "rank %d: %s; %s\n", t->rank, cg_status_str(s),
            cg_tcp_error(code ? code : report.code, text, sizeof text));
        return 1;
    }
    if (t->rank == 0)
        printf("%-13s %7lu bytes sent by a rank, %5.1f times fewer than %lu; %s\n", op, (unsigned long)sent,
            (double)plain / (double)(sent ? sent : 1), (unsigned long)plain,
            same ? "all ranks agree" : "THE RANKS DO NOT AGREE");
    return !same;
}

static int work(int rank, const char *addresses, int listener) {
    cg_tcp_desc desc = CG_ZERO;
    cg_tcp net;
    char text[300];
    int code;
    desc.rank = rank;
    desc.addresses = addresses;
    desc.job = 1;
    desc.listener = listener;
    code = cg_tcp_open(&net, &desc);
    if (code) {
        fprintf(stderr, "rank %d: %s\n", rank, cg_tcp_error(code, text, sizeof text));
        if (net.stranger[0]) fprintf(stderr, "rank %d: turned away: %s\n", rank, net.stranger);
        return 1;
    }
    if (rank == 0)
        printf("%d ranks, connected by TCP, exchange the mean of their gradients of %d values.\n", net.transport.size,
            (int)N);
    code = run(&net, "topk:0.01") || run(&net, "absmax:4:512");
    cg_tcp_close(&net);
    return code;
}

int main(int argc, char **argv) {
    char addresses[LOCAL * 32] = "";
    int listener[LOCAL], port, r, other, status, failed = 0;
    if (argc == 3) return work(atoi(argv[1]), argv[2], 0);
    for (r = 0; r < LOCAL; r++) { /* ports that are free, and stay ours */
        if (cg_tcp_listen("127.0.0.1:0", &listener[r], &port)) return 1;
        snprintf(addresses + strlen(addresses), 32, "%s127.0.0.1:%d", r ? "," : "", port);
    }
    for (r = 0; r < LOCAL; r++) {
        if (fork()) continue;
        for (other = 0; other < LOCAL; other++)
            if (other != r) close(listener[other]);
        return work(r, addresses, listener[r]);
    }
    for (r = 0; r < LOCAL; r++) close(listener[r]);
    while (wait(&status) > 0) failed |= !WIFEXITED(status) || WEXITSTATUS(status);
    return failed;
}
