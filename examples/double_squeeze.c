/* cc -O2 -pthread -I. examples/double_squeeze.c -o double_squeeze -lm && ./double_squeeze

   DoubleSqueeze: workers compress what they send to the server, and the server compresses what it sends back to all.
   Each keeps what it has lost, and adds it next time. Here that is the route server with an operator for the way back
   (desc.back), a cg_ef on every worker, and the server's own memory in it (cg_ef_desc.carry). */

#define _POSIX_C_SOURCE 200809L /* for transport_threads.h, under -std=c99 */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include "transport_threads.h"

#include <math.h>
#include <stdio.h>

enum { RANKS = 4, N = 10000, STEPS = 600 };

static float target[RANKS][N], optimum[N]; /* rank r minimises |x - target[r]|^2 / 2 */
typedef struct job {
    const char *up, *down;
    int remember;
    double bytes[RANKS], loss;
} job;

static void make_targets(void) {
    uint32_t h = 1;
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < N; i++) {
            h = h * 1664525u + 1013904223u;
            target[r][i] = (float)(h >> 8) / 1677721.6f - 5.0f;
            optimum[i] += target[r][i] / (float)RANKS;
        }
}
static int worker(cg_threads_world *world, int rank, void *user) {
    job *j = (job *)user;
    const cg_transport net = cg_threads_transport(world, rank, CG_THREADS_ALL);
    static float model[RANKS][N], grad[RANKS][N];
    cg_exchange_desc x = CG_ZERO;
    cg_ef_desc d = CG_ZERO;
    cg_op down;
    cg_ef ef;
    cg_report report;
    void *state, *mem;
    size_t bytes;
    if (cg_op_parse(&d.op, j->up) != CG_OK || cg_op_parse(&down, j->down) != CG_OK) return 1;
    d.n = N;
    x.op = d.op, x.back = &down, x.route = CG_ROUTE_SERVER;
    d.carry = cg_exchange_carry(&x, &net, N); /* on the server n floats, on the others none */
    state = malloc(cg_ef_memory(&d));
    if (cg_ef_init(&ef, &d, state, cg_ef_memory(&d)) != CG_OK) return 2;
    bytes = cg_ef_exchange_memory(&ef, &x, &net);
    mem = malloc(bytes);
    memset(model[rank], 0, sizeof model[rank]);
    for (uint64_t step = 0; step < STEPS; step++) {
        const float rate = 0.1f / (1 + (float)step / 40);
        cg_status s;
        x.tag.step = step;
        for (int i = 0; i < N; i++) grad[rank][i] = model[rank][i] - target[rank][i];
        if (!j->remember) cg_ef_reset(&ef); /* forgets what was lost, on workers and server */
        s = cg_ef_exchange(&ef, &x, &net, grad[rank], mem, bytes, &report);
        if (s != CG_OK) return fprintf(stderr, "rank %d: %s\n", rank, report.why), 3;
        j->bytes[rank] += (double)report.bytes_out / STEPS;
        for (int i = 0; i < N; i++) model[rank][i] -= rate * grad[rank][i];
    }
    for (int i = 0; i < N && !rank; i++) j->loss += pow((double)(model[rank][i] - optimum[i]), 2) / (2.0 * N);
    free(mem);
    free(state);
    return 0;
}
static int run(const char *name, const char *up, const char *down, int remember) {
    job j = CG_ZERO;
    j.up = up, j.down = down, j.remember = remember;
    if (cg_threads_run(RANKS, worker, &j)) return 1;
    printf("%-26s %-10s %-10s %9.0f %9.0f %12.2g\n", name, up, down, j.bytes[1], j.bytes[0] / (RANKS - 1), j.loss);
    return 0;
}
int main(void) {
    int bad;
    make_targets();
    printf("%d workers minimise the mean of their functions of %d weights through a server, in %d steps.\n\n",
        (int)RANKS, (int)N, (int)STEPS);
    printf("                           up         down       bytes up  and down  distance from the optimum\n");
    bad = run("plain", "dense", "dense", 1);
    bad |= run("nobody remembers", "topk:0.01", "topk:0.01", 0);
    bad |= run("workers alone compress", "topk:0.01", "dense", 1);
    bad |= run("DoubleSqueeze", "topk:0.01", "topk:0.01", 1);
    bad |= run("nobody remembers", "onebit", "onebit", 0);
    bad |= run("DoubleSqueeze", "onebit", "onebit", 1);
    return bad;
}
