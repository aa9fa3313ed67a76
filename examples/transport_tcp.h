/* transport_tcp.h - ranks are processes that are connected by TCP, each with each. To be copied with
   transport_tcp_open.h and hmac_sha256.h.

   cg_tcp_desc desc = CG_ZERO;
   cg_tcp net;
   char text[300];
   desc.rank = rank;                                           // 0, 1, ..., of as many as there are addresses
   desc.addresses = "10.0.0.1:4000,10.0.0.2:4000,[fd00::3]:4000";          // the same on all ranks
   desc.job = 20240607;                                        // any number; processes of another job are turned away
   int code = cg_tcp_open(&net, &desc);                        // waits for the others, 30 s or desc.timeout_ms
   if (code) puts(cg_tcp_error(code, text, sizeof text));      // "timeout, waiting for rank 2"
   ...
   cg_exchange(&exchange, &net.transport, grad, n, mem, bytes, &report);    // report.code is such a code, too
   cg_tcp_close(&net);

   POSIX sockets, IPv4 and IPv6. Include it first, or compile with -D_POSIX_C_SOURCE=200809L (or -std=gnu99). Rank
   r listens at its own address (an empty host is any interface: ":4000") and connects to all lower ranks, trying
   again until the timeout. Give addresses that mean the same everywhere: a machine's own name is often 127.0.1.1
   for itself.

   OPENING. All connections are made at the same time, in any order. Whoever connects and is not a rank of this job
   that is still missing (another job, size, version or rank, another program, a silent one) is turned away and does
   no harm; it is counted in net.turned_away and described in net.stranger, and the code at the deadline names it:
   "timeout, waiting for rank 1; 3 connections were turned away, among them a process of another job". A rank that was
   there and closes before all are there ends the opening at once, on all ranks.

   SECRET. With desc.secret, or the environment variable COMPGRAD_TCP_SECRET, both sides of every connection prove that
   they know the same secret before either uses it: challenge and response by HMAC-SHA-256 over both greetings (job,
   size, version, both ranks) and a random number of each side. Ranks with and without a secret do not connect. Make
   it of random bytes (head -c 32 /dev/urandom | base64), as whoever hears one opening can try guesses at leisure. It
   guards entry and nothing else: data travels in the clear, and somebody on the path can read and change it after the
   greeting, or pass the greeting on. Use a network you trust, or a tunnel (WireGuard, IPsec), against that.

   FAILURE. Nothing waits longer than the timeout without a byte moving, and while a rank waits for one peer it
   watches the others. A rank that sees a failure closes all its connections, so every other rank sees one too, and
   from then on all its calls return the code of that failure. cg_tcp_close says goodbye first: a peer that ends
   early, but with its work done, hurts only those who still wanted something from it; a process that ends without
   it counts as dead. Set the timeout longer than the slowest computation between two calls.

   A message is 8 bytes with its length, little-endian, and the data, so that sizes which differ are an error
   (CG_TCP_E_SIZE) and not a wrong result. Nothing is allocated after cg_tcp_open. One thread at a time may use a
   cg_tcp, which stays where it was opened. */

#ifndef CG_TRANSPORT_TCP_H
#define CG_TRANSPORT_TCP_H

#ifndef _POSIX_C_SOURCE
#  define _POSIX_C_SOURCE 200809L
#endif
#if defined(__APPLE__) && !defined(_DARWIN_C_SOURCE)
#  define _DARWIN_C_SOURCE /* for SO_NOSIGPIPE */
#endif
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "compgrad_exchange.h"

#ifndef CLOCK_MONOTONIC
#  error "include transport_tcp.h before other headers, or compile with -D_POSIX_C_SOURCE=200809L"
#endif

typedef struct cg_tcp_desc { /* zero = default */
    int rank;
    const char *addresses; /* "host:port,host:port,...": one per rank, at most 4000; needed only while opening */
    uint64_t job;
    int timeout_ms; /* 0 = 30000 */
    /* 0, or a socket that already listens (cg_tcp_listen); cg_tcp_open closes it in every case */
    int listener;
    /* text of at least 16 bytes, the same on all ranks, needed only while opening; NULL: the environment variable
       COMPGRAD_TCP_SECRET, and where that is not set, none */
    const char *secret;
} cg_tcp_desc;

/* A code is the kind of failure, and with it who it was about and the errno; 0 is success. */
enum {
    CG_TCP_E_ARG = 1,
    CG_TCP_E_ADDRESS,
    CG_TCP_E_TIMEOUT,
    CG_TCP_E_CLOSED,
    CG_TCP_E_HANDSHAKE,
    CG_TCP_E_SIZE,
    CG_TCP_E_MEMORY,
    CG_TCP_E_SYSTEM,
    CG_TCP_E_SECRET
};

typedef struct cg_tcp_peer_ {
    int fd, bye;
} cg_tcp_peer_;

typedef struct cg_tcp {
    cg_transport transport; /* what cg_exchange takes */
    /* bytes through the sockets since opening, with the lengths in front of messages */
    uint64_t sent, received;
    uint64_t messages_sent, messages_received;
    int code; /* of the failure that ended it, or 0 */
    int timeout_ms;
    int turned_away;    /* how many connected while it was opening and were no missing rank of this job */
    char stranger[256]; /* one of them, or who is at a rank's address instead; "" if nobody */
    cg_tcp_peer_ *peer; /* private from here on */
    struct pollfd *poll;
    int reason; /* why the stranger was turned away: CG_TCP_..._ */
} cg_tcp;

static inline int cg_tcp_open(cg_tcp *, const cg_tcp_desc *);
static inline void cg_tcp_close(cg_tcp *);                    /* also after a failure, or twice */
static inline int cg_tcp_kind(int code) { return code & 15; } /* CG_TCP_E_... */
/* the peer that it was about, or -1 */
static inline int cg_tcp_blame(int code) { return (code >> 4 & 4095) - 1; }
static inline const char *cg_tcp_error(int code, char *text, size_t cap); /* a sentence, in text */
static inline int cg_tcp_listen(const char *address, int *fd, int *port); /* "127.0.0.1:0" takes a free port */

/* ---- codes, time, bytes ---- */

static inline int cg_tcp_code_(int kind, int peer, int error) {
    return kind | (peer + 1) << 4 | (error & 0x7fff) << 16;
}

/* Why somebody is turned away. Of several the largest is told, as it says most. */
enum {
    CG_TCP_NOT_OURS_ = 1,
    CG_TCP_OTHER_VERSION_,
    CG_TCP_OTHER_JOB_,
    CG_TCP_OTHER_SIZE_,
    CG_TCP_NO_SECRET_,
    CG_TCP_A_SECRET_,
    CG_TCP_OTHER_RANK_,
    CG_TCP_RANK_TWICE_,
    CG_TCP_OTHER_SECRET_
};

static inline const char *cg_tcp_stranger_(int reason) {
    static const char *const who[] = { "?", "another program, or one that said nothing",
        "a process with another version of transport_tcp.h", "a process of another job",
        "a process with another number of ranks", "a process without a secret, where this one has one",
        "a process with a secret, where this one has none", "a rank that does not belong there",
        "a rank that is there already", "a process with another secret" };
    return who[reason > 0 && reason <= CG_TCP_OTHER_SECRET_ ? reason : 0];
}

static inline const char *cg_tcp_error(int code, char *text, size_t cap) {
    static const char *const what[16] = { "ok",
        "a rank that is not there, or a message to oneself that is not received in the same call",
        "an address is wrong or not to be had", "timeout, waiting", "the connection was closed", "timeout, waiting",
        "sender and receiver gave different sizes", "no memory", "the system refused",
        "the secret is shorter than 16 bytes: give more of them on all ranks, or none", "?", "?", "?", "?", "?", "?" };
    const int kind = cg_tcp_kind(code), peer = cg_tcp_blame(code), more = code >> 16, away = more >> 4;
    char who[40] = "", count[80] = "; at its address is ";
    if (peer >= 0)
        snprintf(who, sizeof who,
            kind == CG_TCP_E_TIMEOUT || kind == CG_TCP_E_HANDSHAKE ? " for rank %d" : " (rank %d)", peer);
    if (kind == CG_TCP_E_HANDSHAKE && away)
        snprintf(
            count, sizeof count, "; %d connection%s turned away, among them ", away, away == 1 ? " was" : "s were");
    if (kind == CG_TCP_E_HANDSHAKE)
        snprintf(text, cap, "%s%s%s%s", what[kind], who, count, cg_tcp_stranger_(more & 15));
    else snprintf(text, cap, "%s%s%s%s", what[kind], who, more ? ": " : "", more ? strerror(more) : "");
    return text;
}

static inline int64_t cg_tcp_now_(void) /* milliseconds */
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline int cg_tcp_left_(int64_t deadline) {
    int64_t left = deadline - cg_tcp_now_();
    return left < 0 ? 0 : left > 1000000000 ? 1000000000 : (int)left;
}

static inline void cg_tcp_put_(unsigned char *p, uint64_t v, int bytes) {
    while (bytes--) *p++ = (unsigned char)(v & 255), v >>= 8;
}

static inline uint64_t cg_tcp_get_(const unsigned char *p, int bytes) {
    uint64_t v = 0;
    while (bytes--) v = v << 8 | p[bytes];
    return v;
}

/* Waits for one socket: 1 ready (or broken, which the next call on it tells), 0 too late. */
static inline int cg_tcp_ready_(int fd, short events, int64_t deadline) {
    struct pollfd p;
    int n;
    p.fd = fd;
    p.events = events;
    do n = poll(&p, 1, cg_tcp_left_(deadline));
    while (n < 0 && errno == EINTR);
    return n > 0;
}

static inline int cg_tcp_again_(void) { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

/* ---- sockets ---- */

#ifdef MSG_NOSIGNAL
#  define CG_TCP_NOSIGNAL_ MSG_NOSIGNAL
#else
#  define CG_TCP_NOSIGNAL_ 0
#endif

static inline int cg_tcp_setup_(int fd) /* 0, or -1 and errno */
{
    int one = 1, flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
#ifdef SO_NOSIGPIPE
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &one, sizeof one);
#endif
    return 0;
}

/* Splits "host:port" or "[host]:port", up to a comma or the end, into text: 1, or 0 if it is neither. */
static inline int cg_tcp_split_(const char *address, char text[256], char **host, char **port) {
    const size_t len = strcspn(address, ",");
    if (len > 255) return 0;
    memcpy(text, address, len);
    text[len] = 0;
    *host = text;
    *port = strrchr(text, ':');
    if (!*port) return 0;
    *(*port)++ = 0;
    if (**host == '[') {
        if (text[strlen(text) - 1] != ']') return 0;
        text[strlen(text) - 1] = 0;
        ++*host;
    }
    return **port && strspn(*port, "0123456789") == strlen(*port) && strtol(*port, NULL, 10) <= 65535;
}

/* A list for freeaddrinfo, or NULL. An empty host is any of ours. */
static inline struct addrinfo *cg_tcp_lookup_(const char *address) {
    struct addrinfo hint, *list = NULL;
    char text[256], *name, *port;
    if (!cg_tcp_split_(address, text, &name, &port)) return NULL;
    memset(&hint, 0, sizeof hint);
    hint.ai_socktype = SOCK_STREAM;
    hint.ai_flags = *name ? AI_NUMERICSERV : AI_NUMERICSERV | AI_PASSIVE;
    return getaddrinfo(*name ? name : NULL, port, &hint, &list) ? NULL : list;
}

static inline int cg_tcp_bind_(const struct addrinfo *a) /* a listening socket, or -1 and errno */
{
    int one = 1, error, fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (!cg_tcp_setup_(fd) && !bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, 1024)) return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

static inline int cg_tcp_port_(int fd) {
    struct sockaddr_storage at;
    socklen_t len = sizeof at;
    char port[16];
    if (getsockname(fd, (struct sockaddr *)&at, &len)) return 0;
    return getnameinfo((struct sockaddr *)&at, len, NULL, 0, port, sizeof port, NI_NUMERICSERV) ? 0 : atoi(port);
}

static inline int cg_tcp_listen(const char *address, int *fd, int *port) {
    /* an address in use may be a rank that dials itself by chance: see cg_tcp_dial_ */
    const int64_t deadline = cg_tcp_now_() + 1000;
    const struct timespec pause = { 0, 20000000 };
    struct addrinfo *list = cg_tcp_lookup_(address), *a;
    int error = 0;
    *fd = -1;
    while (list && *fd < 0) {
        for (a = list; a && *fd < 0; a = a->ai_next) {
            *fd = cg_tcp_bind_(a);
            if (*fd < 0) error = errno;
        }
        if (*fd < 0 && (error != EADDRINUSE || !cg_tcp_left_(deadline))) break;
        if (*fd < 0) nanosleep(&pause, NULL);
    }
    if (list) freeaddrinfo(list);
    if (*fd < 0) return cg_tcp_code_(CG_TCP_E_ADDRESS, -1, error);
    if (port) *port = cg_tcp_port_(*fd);
    return 0;
}

/* All of `bytes`, until the deadline. Only for goodbyes. */
static inline void cg_tcp_send_(int fd, const unsigned char *p, size_t bytes, int64_t deadline) {
    while (bytes) {
        const ssize_t n = send(fd, p, bytes, CG_TCP_NOSIGNAL_);
        if (n > 0) p += n, bytes -= (size_t)n;
        else if (n == 0 || !cg_tcp_again_() || !cg_tcp_ready_(fd, POLLOUT, deadline)) return;
    }
}

enum { CG_TCP_FRAME_ = 8 };
#define CG_TCP_BYE_ UINT64_MAX /* as the length of a message */

/* ---- sendrecv ---- */

typedef struct cg_tcp_half_ { /* one direction of a sendrecv: the length, then the data */
    unsigned char frame[CG_TCP_FRAME_];
    unsigned char *data;
    size_t bytes, done; /* done: of both together */
    int peer;           /* -1: nothing to do, or finished */
} cg_tcp_half_;

/* Ends it for everybody. Unread data goes too (linger 0), so that it reaches those who are busy with others. */
static inline int cg_tcp_break_(cg_tcp *net, int code) {
    struct linger hard = { 1, 0 };
    int r;
    for (r = 0; r < net->transport.size; r++) {
        if (net->peer[r].fd < 0) continue;
        setsockopt(net->peer[r].fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close(net->peer[r].fd);
        net->peer[r].fd = -1;
    }
    net->code = code;
    return code;
}

/* A rank that fails while it opens tells those it is connected with why, so that all blame the same rank: the length
   of a message is then UINT32_MAX << 32 | code. The code, or 0 if this is no such length. */
static inline int cg_tcp_quit_(const cg_tcp *net, int peer, uint64_t length) {
    const int code = (int)(length & 0x7fffffff), kind = cg_tcp_kind(code), blame = cg_tcp_blame(code);
    if (length >> 32 != UINT32_MAX || length == CG_TCP_BYE_) return 0;
    if (length >> 31 & 1 || !kind || kind > CG_TCP_E_SECRET || blame >= net->transport.size ||
        blame == net->transport.rank)
        return cg_tcp_code_(CG_TCP_E_CLOSED, peer, 0);
    return blame < 0 ? cg_tcp_code_(kind, peer, code >> 16) : code;
}

/* The connection is broken: has it left the reason? */
static inline int cg_tcp_broken_(const cg_tcp *net, int peer, int error) {
    unsigned char frame[CG_TCP_FRAME_];
    int code = 0;
    if (recv(net->peer[peer].fd, frame, sizeof frame, MSG_PEEK) == CG_TCP_FRAME_)
        code = cg_tcp_quit_(net, peer, cg_tcp_get_(frame, CG_TCP_FRAME_));
    return code ? code : cg_tcp_code_(CG_TCP_E_CLOSED, peer, error);
}

/* Moves what the socket takes or has now: 0, or a code. *moved is set if anything did; half->peer becomes -1 at
   the end. */
static inline int cg_tcp_step_(cg_tcp *net, cg_tcp_half_ *half, int out, int *moved) {
    struct iovec part[2];
    struct msghdr message;
    const size_t head = half->done < CG_TCP_FRAME_ ? CG_TCP_FRAME_ - half->done : 0,
                 body = half->done + head - CG_TCP_FRAME_;
    const size_t rest = half->bytes - body, most = (size_t)1 << 30;
    ssize_t n;
    part[0].iov_base = half->frame + (CG_TCP_FRAME_ - head);
    part[0].iov_len = head;
    part[1].iov_base = rest ? half->data + body : half->data;
    part[1].iov_len = rest < most ? rest : most;
    memset(&message, 0, sizeof message);
    message.msg_iov = head ? part : part + 1;
    message.msg_iovlen = head && rest ? 2 : 1;
    n = out ? sendmsg(net->peer[half->peer].fd, &message, CG_TCP_NOSIGNAL_)
            : recvmsg(net->peer[half->peer].fd, &message, 0);
    if (n < 0 && cg_tcp_again_()) return 0;
    if (n <= 0) return cg_tcp_broken_(net, half->peer, n ? errno : 0);
    half->done += (size_t)n;
    *moved = 1;
    *(out ? &net->sent : &net->received) += (uint64_t)n;
    if (!out && head && half->done >= CG_TCP_FRAME_) { /* the length has just become complete */
        uint64_t length = cg_tcp_get_(half->frame, CG_TCP_FRAME_);
        const int quit = cg_tcp_quit_(net, half->peer, length);
        if (quit) return quit;
        if (length == CG_TCP_BYE_) return cg_tcp_code_(CG_TCP_E_CLOSED, half->peer, 0);
        if (length != half->bytes) return cg_tcp_code_(CG_TCP_E_SIZE, half->peer, 0);
    }
    if (half->done == half->bytes + CG_TCP_FRAME_) {
        half->peer = -1;
        ++*(out ? &net->messages_sent : &net->messages_received);
    }
    return 0;
}

/* A peer from which this call reads nothing has something to say: its end, or data of a later call that is left
   where it is. */
static inline int cg_tcp_watch_(cg_tcp *net, int peer, int events) {
    unsigned char frame[CG_TCP_FRAME_];
    ssize_t n = recv(net->peer[peer].fd, frame, sizeof frame, MSG_PEEK);
    const uint64_t length = n == CG_TCP_FRAME_ ? cg_tcp_get_(frame, CG_TCP_FRAME_) : 0;
    const int quit = cg_tcp_quit_(net, peer, length);
    if (quit) return quit;
    /* broken, whatever it sent before */
    if (events & (POLLERR | POLLHUP)) return cg_tcp_code_(CG_TCP_E_CLOSED, peer, ECONNRESET);
    if (n < 0 && cg_tcp_again_()) return 0;
    if (n <= 0) return cg_tcp_code_(CG_TCP_E_CLOSED, peer, n ? errno : 0);
    if (length == CG_TCP_BYE_) net->peer[peer].bye = 1;
    net->poll[peer].events &= (short)~POLLIN; /* do not be woken by it again in this call */
    return 0;
}

static inline int cg_tcp_progress_(cg_tcp *net, cg_tcp_half_ *out, cg_tcp_half_ *in, int *moved) {
    int code = out->peer >= 0 ? cg_tcp_step_(net, out, 1, moved) : 0;
    return code || in->peer < 0 ? code : cg_tcp_step_(net, in, 0, moved);
}

/* Sleeps until one of the two can move, or something happened to anybody else: 0, or a code. */
static inline int cg_tcp_sleep_(cg_tcp *net, const cg_tcp_half_ *out, const cg_tcp_half_ *in, int64_t deadline) {
    int r, n, code = 0;
    for (r = 0; r < net->transport.size; r++) {
        net->poll[r].fd = net->peer[r].bye && r != in->peer && r != out->peer ? -1 : net->peer[r].fd;
        if (r == out->peer) net->poll[r].events |= POLLOUT;
        else net->poll[r].events &= (short)~POLLOUT;
        if (r == in->peer) net->poll[r].events |= POLLIN;
    }
    n = poll(net->poll, (nfds_t)net->transport.size, cg_tcp_left_(deadline));
    if (n < 0) return errno == EINTR ? 0 : cg_tcp_code_(CG_TCP_E_SYSTEM, -1, errno);
    if (n == 0)
        return cg_tcp_left_(deadline) ? 0 : cg_tcp_code_(CG_TCP_E_TIMEOUT, in->peer >= 0 ? in->peer : out->peer, 0);
    for (r = 0; r < net->transport.size && !code; r++)
        if (net->poll[r].fd >= 0 && r != in->peer && net->poll[r].revents & (POLLIN | POLLERR | POLLHUP))
            code = cg_tcp_watch_(net, r, net->poll[r].revents);
    return code;
}

static inline int cg_tcp_sendrecv_(
    void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    cg_tcp *net = (cg_tcp *)user;
    const int rank = net->transport.rank, size = net->transport.size;
    cg_tcp_half_ give, take;
    int64_t deadline;
    int r, code = net->code, moved;
    if (code) return code;
    if (to >= size || from >= size || (to == rank) != (from == rank)) return CG_TCP_E_ARG;
    if (to == rank) {
        if (out_bytes != in_bytes) return cg_tcp_code_(CG_TCP_E_SIZE, rank, 0);
        if (in_bytes) memmove(in, out, in_bytes);
        return 0;
    }
    memset(&give, 0, sizeof give);
    memset(&take, 0, sizeof take);
    give.data = (unsigned char *)(size_t)out; /* only read */
    give.bytes = out_bytes;
    give.peer = to < 0 ? -1 : to;
    take.data = (unsigned char *)in;
    take.bytes = in_bytes;
    take.peer = from < 0 ? -1 : from;
    cg_tcp_put_(give.frame, out_bytes, CG_TCP_FRAME_);
    for (r = 0; r < size; r++) net->poll[r].events = POLLIN;
    if (to >= 0 && net->peer[to].bye) return cg_tcp_break_(net, cg_tcp_code_(CG_TCP_E_CLOSED, to, 0));
    deadline = cg_tcp_now_() + net->timeout_ms;
    for (;;) {
        moved = 0;
        code = cg_tcp_progress_(net, &give, &take, &moved);
        if (code || (give.peer < 0 && take.peer < 0)) break;
        if (moved) deadline = cg_tcp_now_() + net->timeout_ms;
        code = cg_tcp_sleep_(net, &give, &take, deadline);
        if (code) break;
    }
    return code ? cg_tcp_break_(net, code) : 0;
}

#include "transport_tcp_open.h"

/* ---- opening and closing ---- */

/* It cannot be opened: all who are there hear why. */
static inline void cg_tcp_give_up_(cg_tcp *net, int code) {
    unsigned char quit[CG_TCP_FRAME_];
    int r;
    cg_tcp_put_(quit, (uint64_t)UINT32_MAX << 32 | (uint64_t)code, CG_TCP_FRAME_);
    for (r = 0; r < net->transport.size; r++) {
        if (net->peer[r].fd < 0) continue;
        cg_tcp_say_(net->peer[r].fd, quit, sizeof quit);
        close(net->peer[r].fd);
        net->peer[r].fd = -1;
    }
}

static inline int cg_tcp_open(cg_tcp *net, const cg_tcp_desc *desc) {
    const char *p, *own = desc->addresses, *secret = desc->secret ? desc->secret : getenv("COMPGRAD_TCP_SECRET");
    char text[256], *host, *port;
    int r, size = 1, listener = desc->listener > 0 ? desc->listener : -1, code = 0;
    memset(net, 0, sizeof *net);
    for (p = desc->addresses ? desc->addresses : ""; *p; p++) {
        if (*p != ',') continue;
        if (size++ == desc->rank) own = p + 1;
    }
    net->timeout_ms = desc->timeout_ms > 0 ? desc->timeout_ms : 30000;
    if (!desc->addresses || desc->rank < 0 || desc->rank >= size || size > 4000) code = CG_TCP_E_ARG;
    if (!code && secret && strlen(secret) < 16) code = CG_TCP_E_SECRET;
    for (r = 0, p = desc->addresses; r < size && !code; r++, p += strcspn(p, ",") + 1)
        if (!cg_tcp_split_(p, text, &host, &port)) code = cg_tcp_code_(CG_TCP_E_ADDRESS, r, 0);
    if (!code) net->peer = (cg_tcp_peer_ *)calloc((size_t)size, sizeof *net->peer);
    if (!code) net->poll = (struct pollfd *)calloc((size_t)size + 1 + CG_TCP_GUESTS_, sizeof *net->poll);
    if (!code && (!net->peer || !net->poll)) code = CG_TCP_E_MEMORY;
    if (!code) {
        for (r = 0; r < size; r++) net->peer[r].fd = -1;
        net->transport.rank = desc->rank;
        net->transport.size = size;
        net->transport.user = net;
        net->transport.sendrecv = cg_tcp_sendrecv_; /* the others are built from it */
        if (listener < 0 && desc->rank < size - 1) code = cg_tcp_listen(own, &listener, NULL);
        if (listener >= 0 && cg_tcp_setup_(listener)) code = cg_tcp_code_(CG_TCP_E_SYSTEM, -1, errno);
        if (!code) code = cg_tcp_mesh_(net, desc, secret, listener);
        if (code) cg_tcp_give_up_(net, code);
    }
    if (listener >= 0) close(listener);
    if (code) cg_tcp_close(net);
    net->code = code;
    return code;
}

/* The last data and the goodbye travel on after the close; only a socket that is full has to be waited for. */
static inline void cg_tcp_close(cg_tcp *net) {
    unsigned char bye[CG_TCP_FRAME_];
    int r;
    cg_tcp_put_(bye, CG_TCP_BYE_, CG_TCP_FRAME_);
    for (r = 0; net->peer && r < net->transport.size; r++) {
        if (net->peer[r].fd < 0) continue;
        if (!net->code && !net->peer[r].bye)
            cg_tcp_send_(net->peer[r].fd, bye, sizeof bye, cg_tcp_now_() + net->timeout_ms);
        close(net->peer[r].fd);
    }
    free(net->peer);
    free(net->poll);
    net->peer = NULL;
    net->poll = NULL;
    if (!net->code) net->code = CG_TCP_E_ARG; /* of calls that come too late */
}

#endif
