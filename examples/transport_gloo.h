/* transport_gloo.h - compgrad exchanges over Gloo, the collective library of PyTorch and Horovod on CPUs. C++14.

       #define COMPGRAD_IMPLEMENTATION
       #include "transport_gloo.h"                       // c++ -std=c++14 -I (where compgrad.h is) ... -lgloo -lpthread

       auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
       context->setTimeout(std::chrono::seconds(30));    // of every message; afterwards the call fails
       context->connectFullMesh(store, device);          // see examples/exchange_gloo.cc

       cg_gloo gloo;
       cg_gloo_open(&gloo, context);
       s = cg_exchange(&desc, &gloo.transport, grad, n, mem, bytes, &report);
       if (s == CG_E_TRANSPORT) puts(cg_gloo_error(&gloo));

   Gloo's exceptions become the codes below. A peer that dies or is late is CG_GLOO_IO on every rank that waits for
   it; Gloo then closes all connections of this context, so the others notice soon too, and every later call on it
   fails: make a new context. Call signal(SIGPIPE, SIG_IGN) once, since Gloo writes to closed sockets like to any
   other. Both sides of a message must name the same size: Gloo ends a process that gets more than it asked for.

   The struct must not move while it is in use. One thread at a time; several exchanges at once on one context need
   a cg_gloo each, with another tag. Uses Gloo's collectives with that tag, and for messages slots that no
   collective of Gloo has. */

#ifndef COMPGRAD_TRANSPORT_GLOO_H
#define COMPGRAD_TRANSPORT_GLOO_H

#include "compgrad_exchange.h"
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/context.h>
#include <gloo/math.h>

enum {
    CG_GLOO_IO = 1, /* a peer died or was late */
    /* a rank that there is not, or a message to itself that is not received in the same call */
    CG_GLOO_CALL = 2,
    CG_GLOO_OTHER = 3 /* any other exception: out of memory, or what Gloo checks inside */
};

struct cg_gloo {
    cg_transport transport; /* hand this to cg_exchange */
    std::shared_ptr<gloo::Context> context;
    uint32_t tag;
    std::string error; /* the last one, in Gloo's words */
};

inline const char *cg_gloo_error(const cg_gloo *g) { return g->error.c_str(); }

inline int cg_gloo_fail_(cg_gloo *g, int code, const char *why) {
    g->error = why;
    return code;
}

/* Runs one call; no exception leaves, as C code stands above. */
template <class Call> int cg_gloo_guard_(void *user, Call call) {
    cg_gloo *g = static_cast<cg_gloo *>(user);
    try {
        try {
            return call(g);
        } catch (const gloo::IoException &e) {
            return cg_gloo_fail_(g, CG_GLOO_IO, e.what());
        } catch (const std::exception &e) { return cg_gloo_fail_(g, CG_GLOO_OTHER, e.what()); }
    } catch (...) { /* there was no memory for the words */
        return CG_GLOO_OTHER;
    }
}

/* The ring sums each value on one rank and copies it to the others, so all get the same bits: CG_ALLREDUCE_AGREES. */
inline int cg_gloo_allreduce(void *user, float *inout, size_t n) {
    return cg_gloo_guard_(user, [=](cg_gloo *g) {
        if (n == 0) return 0;
        gloo::AllreduceOptions options(g->context);
        options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
        options.setOutput(inout, n);
        options.setReduceFunction(static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<float>));
        options.setTag(g->tag);
        gloo::allreduce(options);
        return 0;
    });
}

inline int cg_gloo_allgather(void *user, const void *mine, void *all, size_t bytes_each) {
    return cg_gloo_guard_(user, [=](cg_gloo *g) {
        if (bytes_each == 0) return 0;
        gloo::AllgatherOptions options(g->context);
        options.setInput(static_cast<char *>(const_cast<void *>(mine)), bytes_each);
        options.setOutput(static_cast<char *>(all), bytes_each * static_cast<size_t>(g->transport.size));
        options.setTag(g->tag);
        gloo::allgather(options);
        return 0;
    });
}

inline int cg_gloo_broadcast(void *user, void *buf, size_t bytes, int root) {
    return cg_gloo_guard_(user, [=](cg_gloo *g) {
        if (root < 0 || root >= g->transport.size) return cg_gloo_fail_(g, CG_GLOO_CALL, "broadcast: no such root");
        if (bytes == 0) return 0;
        gloo::BroadcastOptions options(g->context);
        options.setOutput(static_cast<char *>(buf), bytes);
        options.setRoot(root);
        options.setTag(g->tag);
        gloo::broadcast(options);
        return 0;
    });
}

/* A message of no bytes is not sent, and not waited for on the other side, which knows its size too. */
inline int cg_gloo_sendrecv(
    void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    return cg_gloo_guard_(user, [=](cg_gloo *g) {
        const int rank = g->transport.rank, size = g->transport.size;
        const uint64_t slot = uint64_t(0xC6) << 48 | g->tag; /* those of collectives are below 2^48 */
        const auto timeout = g->context->getTimeout();
        std::unique_ptr<gloo::transport::UnboundBuffer> sent, got;
        if (to >= size || from >= size) return cg_gloo_fail_(g, CG_GLOO_CALL, "sendrecv: no such rank");
        if ((to == rank) != (from == rank))
            return cg_gloo_fail_(g, CG_GLOO_CALL, "sendrecv: one side of a message to itself");
        if (to == rank) {
            if (out_bytes != in_bytes)
                return cg_gloo_fail_(g, CG_GLOO_CALL, "sendrecv: two sizes of a message to itself");
            if (in_bytes) std::memmove(in, out, in_bytes);
            return 0;
        }
        if (from >= 0 && in_bytes) {
            got = g->context->createUnboundBuffer(in, in_bytes);
            got->recv(from, slot);
        }
        if (to >= 0 && out_bytes) {
            sent = g->context->createUnboundBuffer(const_cast<void *>(out), out_bytes);
            sent->send(to, slot);
        }
        if ((got && !got->waitRecv(timeout)) || (sent && !sent->waitSend(timeout)))
            return cg_gloo_fail_(g, CG_GLOO_IO, "aborted");
        return 0;
    });
}

/* tag: another one for every cg_gloo on the same context, and not one that you use with Gloo yourself. */
inline void cg_gloo_open(cg_gloo *g, std::shared_ptr<gloo::Context> context, uint32_t tag = 0x6367) {
    g->transport = cg_transport();
    g->transport.user = g;
    g->transport.rank = context->rank;
    g->transport.size = context->size;
    g->transport.flags = CG_ALLREDUCE_AGREES;
    g->transport.allreduce = cg_gloo_allreduce;
    g->transport.allgather = cg_gloo_allgather;
    g->transport.broadcast = cg_gloo_broadcast;
    g->transport.sendrecv = cg_gloo_sendrecv;
    g->context = std::move(context);
    g->tag = tag;
    g->error.clear();
}

#endif
