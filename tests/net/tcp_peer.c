/* tcp_peer RANKS ROUNDS TIMEOUT_MS [kill|stop VICTIM]: processes on the loopback that pass messages around a ring
   and exchange a gradient in every round. Without a victim all of them must end well after that many rounds; when
   one is killed (or stopped: it is silent then) in the middle of it, every survivor must end with an error: at
   once, or after the timeout. Ends with 0 if so. */
#define _POSIX_C_SOURCE 200809L
#define COMPGRAD_IMPLEMENTATION
#include "examples/transport_tcp.h"
#include <signal.h>
#include <sys/wait.h>

enum { MOST = 16, BYTES = 100000, N = 10000, FAILED = 3, WRONG = 4 };

/* Constant vectors, of which top-k keeps the first values: the mean is known. 0, or the transport's code. */
static int exchange(const cg_transport *t, long round, void *mem, size_t bytes, const cg_exchange_desc *desc) {
    static float x[N];
    const float mean = (float)(round % 100) + 1 + (float)(t->size - 1) / 2;
    cg_report report;
    cg_status s;
    int i;
    for (i = 0; i < N; i++) x[i] = (float)(round % 100 + 1 + t->rank);
    s = cg_exchange(desc, t, x, N, mem, bytes, &report);
    if (s == CG_E_TRANSPORT && report.code) return report.code;
    if (s != CG_OK || x[0] < 0.999f * mean || x[0] > 1.001f * mean || x[N / 100 - 1] != x[0] || x[N / 100] != 0)
        exit(WRONG);
    return 0;
}

static int ring(const cg_transport *t, long rounds) {
    static unsigned char out[BYTES], in[BYTES];
    const int to = (t->rank + 1) % t->size, from = (t->rank + t->size - 1) % t->size;
    cg_exchange_desc desc;
    size_t bytes;
    void *mem;
    long k;
    int code = 0;
    memset(&desc, 0, sizeof desc);
    desc.op = cg_topk(0.01f);
    bytes = cg_exchange_memory(&desc, t, N);
    mem = malloc(bytes);
    if (!mem) exit(WRONG);
    for (k = 0; k < rounds && !code; k++) {
        memset(out, (int)((k + t->rank) & 255), sizeof out);
        code = t->sendrecv(t->user, out, sizeof out, to, in, sizeof in, from);
        if (!code && (in[0] != ((k + from) & 255) || memcmp(in, in + 1, BYTES - 1))) exit(WRONG);
        desc.tag.step = (uint64_t)k;
        if (!code) code = exchange(t, k, mem, bytes, &desc);
    }
    free(mem);
    return code;
}

static int child(const char *addresses, int rank, int listener, long rounds, int timeout_ms, int ready) {
    cg_tcp_desc desc;
    cg_tcp net;
    char text[200];
    int code;
    alarm(60); /* whatever happens, it does not stay */
    memset(&desc, 0, sizeof desc);
    desc.rank = rank;
    desc.addresses = addresses;
    desc.timeout_ms = timeout_ms;
    desc.listener = listener;
    code = cg_tcp_open(&net, &desc);
    if (write(ready, "", 1) != 1) return 2;
    if (!code) code = ring(&net.transport, rounds);
    if (code) printf("rank %d: %s\n", rank, cg_tcp_error(code, text, sizeof text)), fflush(stdout);
    cg_tcp_close(&net);
    return code ? FAILED : 0;
}

/* Waits for all but the victim: whether each ended with `expected`, and after at most `limit` milliseconds. */
static int survivors(const pid_t *pid, int ranks, int victim, int expected, long limit) {
    const int64_t start = cg_tcp_now_();
    long slowest = 0;
    int left, status, good = 0;
    for (left = ranks - (victim >= 0); left; left--) {
        pid_t p;
        do p = waitpid(-1, &status, 0);
        while ((p < 0 && errno == EINTR) || (victim >= 0 && p == pid[victim]));
        if (p < 0) break;
        slowest = (long)(cg_tcp_now_() - start);
        good += WIFEXITED(status) && WEXITSTATUS(status) == expected && slowest <= limit;
    }
    printf("%d of %d ended with %s, the last after %ld ms (limit %ld)\n", good, ranks - (victim >= 0),
        expected ? "an error" : "success", slowest, limit);
    return good == ranks - (victim >= 0);
}

int main(int argc, char **argv) {
    const int ranks = argc > 3 ? atoi(argv[1]) : 0, timeout_ms = argc > 3 ? atoi(argv[3]) : 0;
    const int victim = argc > 5 ? atoi(argv[5]) : -1, stop = argc > 5 && !strcmp(argv[4], "stop");
    const struct timespec a_while = { 0, 100000000 };
    char addresses[MOST * 32] = "", byte;
    int ready[2], listener[MOST], r, other, port, good;
    pid_t pid[MOST];
    if (ranks < 2 || ranks > MOST || victim >= ranks || pipe(ready)) return 2;
    for (r = 0; r < ranks; r++) {
        if (cg_tcp_listen("127.0.0.1:0", &listener[r], &port)) return 2;
        snprintf(addresses + strlen(addresses), 32, "%s127.0.0.1:%d", r ? "," : "", port);
    }
    for (r = 0; r < ranks; r++) {
        pid[r] = fork();
        if (pid[r] < 0) return 2;
        if (pid[r]) continue;
        for (other = 0; other < ranks; other++)
            if (other != r) close(listener[other]);
        return child(addresses, r, listener[r], atol(argv[2]), timeout_ms, ready[1]);
    }
    for (r = 0; r < ranks; r++) close(listener[r]);
    if (victim < 0) return !survivors(pid, ranks, -1, 0, 50000);
    for (r = 0; r < ranks; r++)
        if (read(ready[0], &byte, 1) != 1) return 2;
    nanosleep(&a_while, NULL); /* they are connected and at work */
    kill(pid[victim], stop ? SIGSTOP : SIGKILL);
    good = survivors(pid, ranks, victim, FAILED, stop ? timeout_ms + 1000 : 1000);
    kill(pid[victim], SIGKILL);
    waitpid(pid[victim], NULL, 0);
    return !good;
}
