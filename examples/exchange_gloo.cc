/* c++ -std=c++14 -O2 -I. examples/exchange_gloo.cc -o exchange_gloo -lgloo -lpthread && ./exchange_gloo

   Every rank has a gradient of its own; after an exchange over Gloo all have the same mean of the largest 1 % of
   each, in 4 bits. As it is, it starts four processes here. On machines that share a directory, which has to be
   empty: exchange_gloo RANK SIZE DIRECTORY ADDRESS, with the address under which the others reach this one. */

#define COMPGRAD_IMPLEMENTATION
#include "transport_gloo.h"
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

static const size_t N = 1000000;

/* A few large values that the ranks share, under small noise that they do not. */
static std::vector<float> make_gradient(int rank) {
    std::vector<float> g(N);
    uint32_t signal = 1, noise = 100 + static_cast<uint32_t>(rank);
    for (float &v : g) {
        signal = signal * 1664525u + 1013904223u;
        noise = noise * 1664525u + 1013904223u;
        v = static_cast<float>(noise >> 8) / 16777216.0f - 0.5f;
        if (signal >> 24 == 0) v += static_cast<float>(signal & 0xffffu) / 1024.0f - 32.0f;
    }
    return g;
}

/* Whether rank 0 has the same bits. */
static bool agrees(const cg_transport *t, const std::vector<float> &x) {
    std::vector<float> first = x;
    return t->broadcast(t->user, first.data(), 4 * N, 0) == 0 && std::memcmp(first.data(), x.data(), 4 * N) == 0;
}

static int exchange(cg_gloo *gloo) {
    const cg_transport *t = &gloo->transport;
    std::vector<float> grad = make_gradient(t->rank);
    cg_exchange_desc desc = CG_ZERO;
    cg_report report = CG_ZERO;

    desc.op = cg_then(cg_topk(0.01f), cg_absmax(4, 512));
    desc.tag.seed = 42;
    std::vector<char> mem(cg_exchange_memory(&desc, t, N));
    cg_status s = cg_exchange(&desc, t, grad.data(), N, mem.data(), mem.size(), &report);
    if (s != CG_OK) {
        fprintf(stderr, "rank %d: %s (%s) %s\n", t->rank, cg_status_str(s), report.why ? report.why : "",
            cg_gloo_error(gloo));
        return 1;
    }
    const bool same = agrees(t, grad);
    printf("rank %d of %d received %.1f KB instead of %.1f KB and %s\n", t->rank, t->size,
        static_cast<double>(report.bytes_in) / 1e3,
        2e-3 * (t->size - 1) / t->size * 4 * static_cast<double>(N) /* a ring of dense floats */,
        same ? "agrees" : "DISAGREES");
    return !same;
}

static int member(int rank, int size, const char *directory, const char *address) {
    try {
        gloo::rendezvous::FileStore store(directory);
        std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(address);
        auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
        context->setTimeout(std::chrono::seconds(30));
        context->connectFullMesh(store, device);
        cg_gloo gloo;
        cg_gloo_open(&gloo, context);
        return exchange(&gloo);
    } catch (const std::exception &e) {
        fprintf(stderr, "rank %d: %s\n", rank, e.what());
        return 1;
    }
}

static void remove_all(const char *directory) /* what the ranks left for each other */
{
    if (DIR *d = opendir(directory)) {
        while (const dirent *entry = readdir(d)) unlink((std::string(directory) + "/" + entry->d_name).c_str());
        closedir(d);
    }
    rmdir(directory);
}

int main(int argc, char **argv) {
    const int size = 4;
    char directory[] = "/tmp/exchange_gloo.XXXXXX";
    int failed = 0;
    signal(SIGPIPE, SIG_IGN);
    if (argc == 5) return member(atoi(argv[1]), atoi(argv[2]), argv[3], argv[4]);
    if (argc != 1 || !mkdtemp(directory)) {
        fprintf(stderr, "usage: %s [RANK SIZE DIRECTORY ADDRESS]\n", argv[0]);
        return 2;
    }
    printf("%d processes exchange the mean of their gradients of %lu values over Gloo.\n", size,
        static_cast<unsigned long>(N));
    fflush(stdout);
    for (int rank = 0; rank < size; rank++) {
        const pid_t pid = fork();
        if (pid == 0) exit(member(rank, size, directory, "127.0.0.1"));
        failed += pid < 0;
    }
    for (int rank = 0, status = 0; rank < size; rank++) failed += wait(&status) < 0 || status != 0;
    remove_all(directory);
    return failed != 0;
}
