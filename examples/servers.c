/* cc -O2 -I. examples/servers.c -o servers -lm && ./servers

   Four workers, of which one is four times slower, and servers that wait for it or not. Logistic regression; workers
   and network are simulated, with a clock, so that the table is the same on every machine: how long each server
   takes until the loss has come within 5 % of the best, and what it sent. A server that waits for everybody (bsp)
   goes at the pace of the slowest worker; the others do not, and pay with gradients of older models. A worker that
   is always late for a round (backup) is never heard. AsyLPG is asp with 8 bits both ways and variance-reduced
   gradients. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMPGRAD_IMPLEMENTATION
#include "compgrad_sync.h"

enum { W = 4, N = 64, SAMPLES = 200, BATCH = 8, MAIL = 4096 };
static float data[W][SAMPLES][N], label[W][SAMPLES], snapshot[N], full[N];
static uint64_t dice = 1;
static double uniform(void) {
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (double)(dice >> 40) / 16777216.0;
}
static double normal(void) { return sqrt(-2.0 * log(uniform() + 1e-9)) * cos(6.28318530718 * uniform()); }
static void make_data(void) {
    double truth[N];
    for (int i = 0; i < N; i++) truth[i] = normal();
    for (int w = 0; w < W; w++)
        for (int s = 0; s < SAMPLES; s++) {
            double dot = 0;
            for (int i = 0; i < N; i++) {
                data[w][s][i] = (float)(normal() / sqrt((double)N) * 3.0);
                dot += (double)data[w][s][i] * truth[i];
            }
            label[w][s] = dot + 0.5 * normal() > 0 ? 1.0f : -1.0f;
        }
}
/* grad += scale * the gradient of one sample's loss at x; returns the loss */
static double sample(int w, int s, const float *x, double scale, float *grad) {
    double dot = 0, y = (double)label[w][s];
    for (int i = 0; i < N; i++) dot += (double)data[w][s][i] * (double)x[i];
    for (int i = 0; grad && i < N; i++) grad[i] -= (float)(scale * y / (1.0 + exp(y * dot)) * (double)data[w][s][i]);
    return log(1.0 + exp(-y * dot));
}
static double loss(const float *x, float *grad) { /* of all data, with a little weight decay */
    double sum = 0;
    for (int w = 0; w < W; w++)
        for (int s = 0; s < SAMPLES; s++) sum += sample(w, s, x, 1.0 / (W * SAMPLES), grad) / (W * SAMPLES);
    for (int i = 0; i < N; i++) {
        sum += 0.01 * (double)x[i] * (double)x[i];
        if (grad) grad[i] += 0.02f * x[i];
    }
    return sum;
}
static void gradient(int w, const float *x, int reduced, float *grad) {
    for (int i = 0; i < N; i++) grad[i] = 0.02f * x[i] + (reduced ? full[i] - 0.02f * snapshot[i] : 0.0f);
    for (int b = 0; b < BATCH; b++) {
        const int s = (int)(uniform() * SAMPLES);
        sample(w, s, x, 1.0 / BATCH, grad);
        if (reduced) sample(w, s, snapshot, -1.0 / BATCH, grad);
    }
}

/* Letters on their way, to the server (to = W) or to a worker, and gradients that will be ready. */
typedef struct letter {
    double time;
    int to, from, is_gradient;
    size_t len;
    unsigned char bytes[2048];
} letter;
static letter mail[MAIL];
static int mails;
static void post(double time, int to, int from, int is_gradient, const void *bytes, size_t len) {
    letter *l = &mail[mails++];
    if (mails == MAIL || len > sizeof l->bytes) exit(1);
    l->time = time, l->to = to, l->from = from, l->is_gradient = is_gradient, l->len = len;
    if (len) memcpy(l->bytes, bytes, len);
}
static double run(const char *name, cg_server_desc d, int reduced, double floor_loss, double first) {
    cg_server server;
    cg_client client[W];
    void *mem[W + 1];
    float x0[N] = { 0 }, grad[N];
    double now = 0, reached = -1, bytes = 0;
    char why[200];
    cg_envelope e;
    size_t len;
    mails = 0;
    dice = 7;
    mem[W] = malloc(cg_server_memory(&d));
    if (cg_server_init(&server, &d, x0, mem[W], cg_server_memory(&d), why, sizeof why) != CG_OK) puts(why), exit(1);
    for (int w = 0; w < W; w++) {
        unsigned char hello[CG_CLIENT_HELLO_BYTES];
        cg_client_desc c = CG_ZERO;
        c.ef.op = d.up;
        c.ef.n = N;
        c.seat = w;
        c.seed = d.seed;
        mem[w] = malloc(cg_client_memory(&c));
        if (cg_client_init(&client[w], &c, mem[w], cg_client_memory(&c)) != CG_OK) exit(1);
        if (cg_client_hello(&client[w], hello, sizeof hello, &len) != CG_OK) exit(1);
        post(0.001 * w, W, w, 0, hello, len);
    }
    while (now < 3000 && reached < 0) {
        int next = 0;
        letter l;
        for (int i = 1; i < mails; i++)
            if (mail[i].time < mail[next].time) next = i;
        l = mail[next];
        memmove(mail + next, mail + next + 1, (size_t)(--mails - next) * sizeof *mail); /* others stay in order */
        now = l.time;
        bytes += l.is_gradient ? 0 : (double)l.len;
        if (l.to == W) {
            const uint64_t before = cg_server_version(&server);
            cg_verdict v;
            if (cg_server_feed(&server, (uint64_t)(now * 1000), l.from, l.bytes, l.len, &v) != CG_OK) exit(1);
            while (cg_server_next(&server, &e)) post(now + 0.1, e.to, W, 0, e.bytes, e.len);
            if (reduced && cg_server_version(&server) != before && cg_server_version(&server) % 100 == 0) {
                memcpy(snapshot, cg_server_model(&server), sizeof snapshot);
                memset(full, 0, sizeof full);
                loss(snapshot, full);
            }
            if (loss(cg_server_model(&server), NULL) - floor_loss < 0.05 * (first - floor_loss)) reached = now;
        } else if (l.is_gradient) {
            const void *push;
            gradient(l.to, cg_client_model(&client[l.to]), reduced, grad);
            if (cg_client_push(&client[l.to], grad, 1.0f, &push, &len) != CG_OK) exit(1);
            post(now + 0.1, W, l.to, 0, push, len);
        } else {
            uint32_t event;
            if (cg_client_feed(&client[l.to], l.bytes, l.len, &event) != CG_OK) exit(1);
            if (event == CG_CLIENT_START)
                post(now + (l.to ? 1.0 : 4.0) * (0.9 + 0.2 * uniform()), l.to, l.to, 1, NULL, 0);
        }
    }
    if (reached < 0) printf("%-28s not within 3000 s\n", name);
    else
        printf("%-28s %7.0f s %8llu updates %8llu late %9.0f KB\n", name, reached,
            (unsigned long long)cg_server_version(&server), (unsigned long long)server.late, bytes / 1000);
    for (int w = 0; w <= W; w++) free(mem[w]);
    return reached;
}
int main(void) {
    static const char *const names[] = { "bsp", "ssp, staleness 3", "asp", "asp, damped", "backup, 1 of 4 dropped",
        "asp, 8 bits both ways", "AsyLPG: the same, reduced" };
    float best[N] = { 0 };
    double floor_loss = 0, first = loss(best, NULL);
    make_data();
    first = loss(best, NULL);
    for (int t = 0; t < 4000; t++) {
        float grad[N] = { 0 };
        floor_loss = loss(best, grad);
        for (int i = 0; i < N; i++) best[i] -= 0.5f * grad[i];
    }
    printf("Four workers, one of them four times slower: the time until the loss is within 5 %% of the best.\n"
           "(It begins at %.4f; the best is %.4f.)\n\n",
        first, floor_loss);
    for (int m = 0; m < 7; m++) {
        static const uint32_t mode[] = { CG_SERVER_BSP, CG_SERVER_SSP, CG_SERVER_ASP, CG_SERVER_ASP, CG_SERVER_BACKUP,
            CG_SERVER_ASP, CG_SERVER_ASP };
        cg_server_desc d = CG_ZERO;
        d.n = N;
        d.mode = mode[m];
        d.workers = W;
        d.seed = 5;
        d.rate = m == 0 || m == 4 ? 0.4f : 0.1f; /* a round has the mean of four pushes */
        d.ring_bytes = 1 << 16;
        d.staleness = 3;
        d.backup = d.mode == CG_SERVER_BACKUP;
        d.flags = m == 3 ? CG_SERVER_DAMPED : 0u;
        if (m >= 5) d.up = d.down = cg_absmax(8, 64);
        run(names[m], d, m == 6, floor_loss, first);
    }
    return 0;
}
