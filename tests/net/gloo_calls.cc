/* gloo_calls DIR: groups of processes over loopback, which find each other by files in the empty directory DIR.
   Every callback of examples/transport_gloo.h against plain references, for 1 to 5 ranks. Then one process is
   killed, or only stopped, in the middle of exchanging, and the others have to end with CG_GLOO_IO within the
   timeout. */
#define COMPGRAD_IMPLEMENTATION
#include "../../examples/transport_gloo.h"
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include "greatest.h"
#include <chrono>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

static const char *dir;
static cg_gloo world;
static int rank, size;
static const int timeout_ms = 3000;
enum { GUARD = 64 };

static unsigned char byte_of(int r, size_t i) {
    return static_cast<unsigned char>((i * 2654435761u >> 7) + static_cast<size_t>(r) * 89 + 1);
}

static std::vector<unsigned char> bytes_of(int r, size_t n) {
    std::vector<unsigned char> v(n);
    for (size_t i = 0; i < n; i++) v[i] = byte_of(r, i);
    return v;
}

static bool right(const unsigned char *p, int r, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i] != byte_of(r, i)) return false;
    return true;
}

static bool guarded(const std::vector<unsigned char> &v) {
    for (size_t i = v.size() - GUARD; i < v.size(); i++)
        if (v[i] != 0xA5) return false;
    return true;
}

/* ---- what each process of a group checks: the number of failures ---- */

static int told(const char *what, size_t n, int bad) {
    if (bad)
        fprintf(stderr, "rank %d of %d: %s, length %lu: wrong, %d (%s)\n", rank, size, what,
            static_cast<unsigned long>(n), bad, cg_gloo_error(&world));
    return bad;
}

static int allreduce_is_wrong(size_t n) {
    const cg_transport *t = &world.transport;
    std::vector<float> x(n + 1, 7.0f), y(n + 1);
    int bad = 0;
    for (size_t i = 0; i < n; i++)
        x[i] = static_cast<float>(static_cast<int>(i % 1009) - 500 + rank * static_cast<int>(i % 7));
    bad += t->allreduce(t->user, x.data(), n) != 0;
    for (size_t i = 0; i < n; i++) {
        int sum = 0;
        for (int r = 0; r < size; r++) sum += static_cast<int>(i % 1009) - 500 + r * static_cast<int>(i % 7);
        bad += static_cast<int>(x[i]) != sum;
    }
    bad += static_cast<int>(x[n]) != 7;
    /* sums that round */
    for (size_t i = 0; i < n; i++) x[i] = 1.0f / static_cast<float>(1 + i % 97 + 13 * static_cast<size_t>(rank));
    bad += t->allreduce(t->user, x.data(), n) != 0;
    y = x;
    /* the same bits as on rank 0: CG_ALLREDUCE_AGREES */
    bad += t->broadcast(t->user, y.data(), 4 * n, 0) != 0;
    bad += n && std::memcmp(x.data(), y.data(), 4 * n) != 0;
    return told("allreduce", n, bad);
}

static int allgather_is_wrong(size_t n) {
    const cg_transport *t = &world.transport;
    std::vector<unsigned char> mine = bytes_of(rank, n), all(n * static_cast<size_t>(size) + GUARD, 0xA5);
    int bad = t->allgather(t->user, mine.data(), all.data(), n) != 0;
    for (int r = 0; r < size; r++) bad += !right(all.data() + n * static_cast<size_t>(r), r, n);
    return told("allgather", n, bad + !guarded(all));
}

static int broadcast_is_wrong(size_t n, int root) {
    const cg_transport *t = &world.transport;
    std::vector<unsigned char> buf(n + GUARD, 0xA5);
    for (size_t i = 0; i < n && rank == root; i++) buf[i] = byte_of(root, i);
    int bad = t->broadcast(t->user, buf.data(), n, root) != 0;
    return told("broadcast", n, bad + !right(buf.data(), root, n) + !guarded(buf));
}

static int shift_is_wrong(size_t n, int shift, bool ring) {
    const cg_transport *t = &world.transport;
    int to = rank + shift, from = rank - shift;
    if (ring) {
        to = (to + size) % size;
        from = (from + size) % size;
    }
    if (to < 0 || to >= size) to = -1;
    if (from < 0 || from >= size) from = -1;
    const size_t out = n ? n + 37 * static_cast<size_t>(rank) : 0,
                 in = n && from >= 0 ? n + 37 * static_cast<size_t>(from) : 0;
    std::vector<unsigned char> mine = bytes_of(rank, out), theirs(in + GUARD, 0xA5);
    int bad = t->sendrecv(t->user, mine.data(), out, to, theirs.data(), in, from) != 0;
    return told("sendrecv", n, bad + !right(theirs.data(), from, in) + !guarded(theirs));
}

static int wrong_calls() /* a code, and the transport goes on */
{
    const cg_transport *t = &world.transport;
    char a[8] = "", b[8] = "";
    int bad = 0;
    bad += t->sendrecv(t->user, a, 8, size, b, 8, -1) != CG_GLOO_CALL;
    bad += t->sendrecv(t->user, a, 8, -1, b, 8, size + 3) != CG_GLOO_CALL;
    bad += t->sendrecv(t->user, a, 8, rank, b, 8, -1) != CG_GLOO_CALL;
    bad += t->sendrecv(t->user, a, 8, rank, b, 4, rank) != CG_GLOO_CALL;
    bad += t->sendrecv(t->user, a, 8, -1, b, 8, -1) != 0;
    bad += t->broadcast(t->user, b, 8, size) != CG_GLOO_CALL;
    bad += t->broadcast(t->user, b, 8, -1) != CG_GLOO_CALL;
    bad += std::strlen(cg_gloo_error(&world)) < 5;
    return told("wrong calls", 8, bad);
}

static int all_calls() {
    const size_t lengths[] = { 0, 1, 2, 3, 1000, 100003 };
    int bad = 0;
    for (size_t n : lengths) {
        bad += allreduce_is_wrong(n) + allgather_is_wrong(n);
        for (int r = 0; r < size; r++)
            bad += broadcast_is_wrong(n, r) + shift_is_wrong(n, r, true) + shift_is_wrong(n, r, false);
    }
    bad += shift_is_wrong(4 << 20, 1, true) + wrong_calls();
    /* without a pause, ranks out of step, kinds mixed: nothing may meet the wrong message */
    for (int i = 0; i < 300; i++) {
        const size_t n = 1 + static_cast<size_t>(i % 5) * 100;
        if (i % size == rank) usleep(500);
        bad += allgather_is_wrong(n) + shift_is_wrong(n, i % size, true) + broadcast_is_wrong(n, i % size) +
            (i % 10 ? 0 : allreduce_is_wrong(n));
    }
    return bad;
}

/* Goes on until a call fails: which must be by CG_GLOO_IO, and soon after the call began. */
static int until_it_fails() {
    const cg_transport *t = &world.transport;
    std::vector<unsigned char> mine(10000), all(10000 * static_cast<size_t>(size));
    for (;;) {
        const auto began = std::chrono::steady_clock::now();
        int code = t->allgather(t->user, mine.data(), all.data(), mine.size());
        if (!code)
            code = t->sendrecv(t->user, mine.data(), 999, (rank + 1) % size, all.data(), 999, (rank + size - 1) % size);
        if (!code) continue;
        const auto ms =
            std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began).count();
        fprintf(stderr, "rank %d: code %d after %d ms: %s\n", rank, code, static_cast<int>(ms), cg_gloo_error(&world));
        return code != CG_GLOO_IO || ms > 2 * timeout_ms + 1000 ||
            t->allgather(t->user, mine.data(), all.data(), 1) == 0;
    }
}

/* ---- groups of processes ---- */

static int member(int group, int r, int n, int (*body)()) {
    try {
        gloo::rendezvous::FileStore files(dir);
        gloo::rendezvous::PrefixStore store("group" + std::to_string(group), files);
        std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice("127.0.0.1");
        auto context = std::make_shared<gloo::rendezvous::Context>(r, n);
        context->setTimeout(std::chrono::milliseconds(timeout_ms));
        context->connectFullMesh(store, device);
        cg_gloo_open(&world, context);
        rank = world.transport.rank;
        size = world.transport.size;
        return rank != r || size != n ? 99 : body();
    } catch (const std::exception &e) {
        fprintf(stderr, "rank %d of %d: %s\n", r, n, e.what());
        return 98;
    }
}

/* Starts n processes, does `signal` to rank 1 after half a second, and counts those of the others that do not end
   with 0. */
static int failing_members(int n, int (*body)(), int signal) {
    static int group;
    std::vector<pid_t> pid(static_cast<size_t>(n));
    int bad = 0;
    group++;
    fflush(NULL);
    for (int r = 0; r < n; r++) {
        pid[static_cast<size_t>(r)] = fork();
        if (pid[static_cast<size_t>(r)] == 0) {
            alarm(60); /* whatever happens, it ends */
            _exit(member(group, r, n, body) ? 1 : 0);
        }
    }
    if (signal) {
        usleep(500000);
        kill(pid[1], signal);
    }
    for (int r = 0; r < n; r++) {
        int status = 0;
        if (signal && r == 1) continue;
        waitpid(pid[static_cast<size_t>(r)], &status, 0);
        bad += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    if (signal) {
        kill(pid[1], SIGKILL);
        waitpid(pid[1], NULL, 0);
    }
    return bad;
}

TEST calls_of_a_group(int n) {
    ASSERT_EQ_FMT(0, failing_members(n, all_calls, 0), "%d");
    PASS();
}

TEST a_killed_rank_fails_the_others(void) {
    ASSERT_EQ_FMT(0, failing_members(4, until_it_fails, SIGKILL), "%d");
    PASS();
}

TEST a_stopped_rank_is_a_timeout(void) {
    ASSERT_EQ_FMT(0, failing_members(4, until_it_fails, SIGSTOP), "%d");
    PASS();
}

SUITE(gloo_transport) {
    for (int n = 1; n <= 5; n++) RUN_TEST1(calls_of_a_group, n);
    RUN_TEST(a_killed_rank_fails_the_others);
    RUN_TEST(a_stopped_rank_is_a_timeout);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    dir = argv[1];
    argv[1] = argv[0]; /* what is left are greatest's own arguments */
    argc--;
    argv++;
    signal(SIGPIPE, SIG_IGN);
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(gloo_transport);
    GREATEST_MAIN_END();
}
