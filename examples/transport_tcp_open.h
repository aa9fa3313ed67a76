/* transport_tcp_open.h - how the ranks of transport_tcp.h find each other: a part of that file, which includes it.

   One loop polls everything at the same time: the lower ranks that are called, the listener, guests who have not yet
   said who they are, and the ranks that are there already. Nothing in it waits for anybody in particular. */

#ifndef CG_TRANSPORT_TCP_OPEN_H
#define CG_TRANSPORT_TCP_OPEN_H

#include "hmac_sha256.h"

/* ---- the greeting: "cgtcp", verdict, whether with a secret, version; size, who, whom, job; both sides say it ----

   dialler                      listener
   greeting                ->                            28 bytes
                           <-   greeting, its nonce      28 bytes, with a secret 32 more; the verdict is 0, or a reason
   its nonce, its proof    ->                            64 bytes, only with a secret
                           <-   its proof                32 bytes, only with a secret

   A proof is the HMAC-SHA-256 of the name of the side and all of the above but proofs: it holds for one connection,
   one direction, one pair of ranks. The dialler proves first, so that the listener answers no stranger's challenge. */

enum {
    CG_TCP_VERSION_ = 2,
    CG_TCP_GUESTS_ = 128,    /* connections that have not yet said who they are, at the same time */
    CG_TCP_PATIENCE_ = 2000, /* after so many milliseconds a guest leaves if others want its place */
    CG_TCP_HELLO_ = 28,
    CG_TCP_NONCE_ = 32,
    CG_TCP_PROOF_ = 32,
    /* what was said, in one piece; the HMAC is of all before AT_PROOF_ */
    CG_TCP_AT_SIDE_ = 0,
    CG_TCP_AT_DIALLER_ = 8,
    CG_TCP_AT_LISTENER_ = CG_TCP_AT_DIALLER_ + CG_TCP_HELLO_,
    CG_TCP_AT_LISTENER_NONCE_ = CG_TCP_AT_LISTENER_ + CG_TCP_HELLO_,
    CG_TCP_AT_DIALLER_NONCE_ = CG_TCP_AT_LISTENER_NONCE_ + CG_TCP_NONCE_,
    CG_TCP_AT_PROOF_ = CG_TCP_AT_DIALLER_NONCE_ + CG_TCP_NONCE_,
    CG_TCP_TALK_ = CG_TCP_AT_PROOF_ + CG_TCP_PROOF_
};

typedef struct cg_tcp_link_ { /* a connection on its way: to a lower rank, or of a guest */
    int fd;                   /* -1: none at present */
    int peer;                 /* a lower rank; of a guest who it says it is, -1 before that */
    int connected;
    int reason, error; /* what became of the last attempt: CG_TCP_..._, errno */
    int64_t when;      /* a guest's arrival; the end of an attempt to connect, or the beginning of the next */
    const char *address;
    struct addrinfo *list, *next;
    struct sockaddr_storage where; /* its address; a socket that is reset does not know it any more */
    socklen_t where_bytes;
    size_t at, want; /* where in talk the next bytes go, how many are still to come */
    unsigned char talk[CG_TCP_TALK_];
} cg_tcp_link_;

typedef struct cg_tcp_lobby_ {
    cg_tcp *net;
    const cg_tcp_desc *desc;
    const char *secret;
    int random;          /* with a secret, the system's generator */
    int listener, error; /* errno of the last accept */
    int reason;          /* of those who were turned away, the largest CG_TCP_..._ */
    int64_t deadline, accept_at;
    cg_tcp_link_ *dial, *guest;
    int guests; /* places up to the last one that is taken: poll refuses more entries than there may be descriptors */
} cg_tcp_lobby_;

static inline void cg_tcp_hello_(unsigned char *h, const cg_tcp_desc *desc, int size, int to, int secret) {
    memcpy(h, "cgtcp\0\0\0", 8);
    h[6] = (unsigned char)(secret != 0);
    h[7] = CG_TCP_VERSION_;
    cg_tcp_put_(h + 8, (uint64_t)size, 4);
    cg_tcp_put_(h + 12, (uint64_t)desc->rank, 4);
    cg_tcp_put_(h + 16, (uint64_t)to, 4);
    cg_tcp_put_(h + 20, desc->job, 8);
}

/* Why this greeting is none of a job-mate of `mine`, or 0. Ranks are looked at by the caller. */
static inline int cg_tcp_compare_(const unsigned char *theirs, const unsigned char *mine) {
    if (memcmp(theirs, mine, 5)) return CG_TCP_NOT_OURS_;
    if (theirs[7] != mine[7]) return CG_TCP_OTHER_VERSION_;
    if (memcmp(theirs + 20, mine + 20, 8)) return CG_TCP_OTHER_JOB_;
    if (memcmp(theirs + 8, mine + 8, 4)) return CG_TCP_OTHER_SIZE_;
    if (theirs[6] != mine[6]) return mine[6] ? CG_TCP_NO_SECRET_ : CG_TCP_A_SECRET_;
    return 0;
}

#ifndef CG_TCP_RANDOM_ /* only a test has another one */
#  define CG_TCP_RANDOM_ "/dev/urandom"
#endif

/* A nonce of the system's generator, which is open from the beginning, lest strangers leave no descriptor for it: 0, or
   errno. Nothing else will do. */
static inline int cg_tcp_nonce_(const cg_tcp_lobby_ *lobby, unsigned char nonce[CG_TCP_NONCE_]) {
    size_t done = 0;
    while (done < CG_TCP_NONCE_) {
        const ssize_t n = read(lobby->random, nonce + done, CG_TCP_NONCE_ - done);
        if (n > 0) done += (size_t)n;
        else if (n == 0) return EIO;
        else if (errno != EINTR) return errno;
    }
    return 0;
}

static inline void cg_tcp_prove_(unsigned char *talk, const char *secret, int dialler, unsigned char *proof) {
    memcpy(talk + CG_TCP_AT_SIDE_, dialler ? "dialler " : "listener", 8);
    cg_hmac_sha256(secret, strlen(secret), talk, CG_TCP_AT_PROOF_, proof);
}

/* So few bytes fit into a connection that is new: all or nothing. */
static inline int cg_tcp_say_(int fd, const void *p, size_t bytes) {
    return send(fd, p, bytes, CG_TCP_NOSIGNAL_) == (ssize_t)bytes;
}

/* Writes down who it was that is turned away, unless somebody before says more. */
static inline void cg_tcp_describe_(cg_tcp *net, const cg_tcp_link_ *link, size_t hello_at, int reason) {
    const unsigned char *hello = link->talk + hello_at;
    char host[64] = "?", port[16] = "?", said[64] = "";
    if (reason < net->reason) return;
    net->reason = reason;
    getnameinfo((const struct sockaddr *)&link->where, link->where_bytes, host, sizeof host, port, sizeof port,
        NI_NUMERICHOST | NI_NUMERICSERV);
    if (reason > CG_TCP_OTHER_VERSION_)
        snprintf(said, sizeof said, " (rank %u of %u, job %llu)", (unsigned)cg_tcp_get_(hello + 12, 4),
            (unsigned)cg_tcp_get_(hello + 8, 4), (unsigned long long)cg_tcp_get_(hello + 20, 8));
    snprintf(net->stranger, sizeof net->stranger, "%s port %s: %s%s", host, port, cg_tcp_stranger_(reason), said);
}

static inline void cg_tcp_admit_(cg_tcp_lobby_ *lobby, cg_tcp_link_ *link) {
    lobby->net->peer[link->peer].fd = link->fd;
    lobby->net->poll[link->peer].events = POLLIN;
    link->fd = -1;
}

static inline void cg_tcp_await_(cg_tcp_link_ *link, size_t at, size_t want) {
    link->at = at;
    link->want = want;
}

/* Reads no further than what is wanted: 1 complete, 0 not yet, -1 closed or broken (link->error). */
static inline int cg_tcp_hear_(cg_tcp_link_ *link) {
    const ssize_t n = recv(link->fd, link->talk + link->at, link->want, 0);
    if (n < 0 && cg_tcp_again_()) return 0;
    link->error = n < 0 ? errno : 0;
    if (n <= 0) return -1;
    link->at += (size_t)n;
    link->want -= (size_t)n;
    return !link->want;
}

/* ---- those who come ---- */

static inline void cg_tcp_turn_away_(cg_tcp_lobby_ *lobby, cg_tcp_link_ *guest, int reason) {
    lobby->net->turned_away++;
    if (reason > lobby->reason) lobby->reason = reason;
    cg_tcp_describe_(lobby->net, guest, CG_TCP_AT_DIALLER_, reason);
    close(guest->fd);
    guest->fd = -1;
}

/* Its greeting is complete: 0, or a code. */
static inline int cg_tcp_welcome_(cg_tcp_lobby_ *lobby, cg_tcp_link_ *guest) {
    const cg_tcp *net = lobby->net;
    const int size = net->transport.size, rank = net->transport.rank, secret = lobby->secret != NULL;
    unsigned char *theirs = guest->talk + CG_TCP_AT_DIALLER_, *mine = guest->talk + CG_TCP_AT_LISTENER_;
    const uint64_t who = cg_tcp_get_(theirs + 12, 4), whom = cg_tcp_get_(theirs + 16, 4);
    int reason, error = 0;
    cg_tcp_hello_(mine, lobby->desc, size, 0, secret);
    memcpy(mine + 16, theirs + 12, 4);
    reason = cg_tcp_compare_(theirs, mine);
    if (!reason && (who >= (uint64_t)size || who <= (uint64_t)rank || whom != (uint64_t)rank || theirs[5]))
        reason = CG_TCP_OTHER_RANK_;
    if (!reason && net->peer[who].fd >= 0) reason = CG_TCP_RANK_TWICE_;
    if (reason) { /* those who speak our language hear why */
        mine[5] = (unsigned char)reason;
        if (reason != CG_TCP_NOT_OURS_) cg_tcp_say_(guest->fd, mine, CG_TCP_HELLO_);
        cg_tcp_turn_away_(lobby, guest, reason);
        return 0;
    }
    guest->peer = (int)who;
    if (secret) error = cg_tcp_nonce_(lobby, guest->talk + CG_TCP_AT_LISTENER_NONCE_);
    if (error) return cg_tcp_code_(CG_TCP_E_SYSTEM, -1, error);
    if (!cg_tcp_say_(guest->fd, mine, CG_TCP_HELLO_ + (secret ? CG_TCP_NONCE_ : 0)))
        cg_tcp_turn_away_(lobby, guest, CG_TCP_NOT_OURS_);
    else if (secret) cg_tcp_await_(guest, CG_TCP_AT_DIALLER_NONCE_, CG_TCP_NONCE_ + CG_TCP_PROOF_);
    else cg_tcp_admit_(lobby, guest);
    return 0;
}

/* Its nonce and proof are complete. */
static inline void cg_tcp_verify_(cg_tcp_lobby_ *lobby, cg_tcp_link_ *guest) {
    unsigned char proof[CG_TCP_PROOF_];
    int reason = 0;
    cg_tcp_prove_(guest->talk, lobby->secret, 1, proof);
    if (cg_hmac_differs(proof, guest->talk + CG_TCP_AT_PROOF_, CG_TCP_PROOF_)) reason = CG_TCP_OTHER_SECRET_;
    else if (lobby->net->peer[guest->peer].fd >= 0) reason = CG_TCP_RANK_TWICE_; /* came in between */
    if (!reason) cg_tcp_prove_(guest->talk, lobby->secret, 0, proof);
    if (!reason && !cg_tcp_say_(guest->fd, proof, CG_TCP_PROOF_)) reason = CG_TCP_NOT_OURS_;
    if (reason) cg_tcp_turn_away_(lobby, guest, reason);
    else cg_tcp_admit_(lobby, guest);
}

static inline int cg_tcp_guest_(cg_tcp_lobby_ *lobby, cg_tcp_link_ *guest) /* has something to say */
{
    const int heard = cg_tcp_hear_(guest);
    if (heard < 0) cg_tcp_turn_away_(lobby, guest, CG_TCP_NOT_OURS_);
    if (heard > 0 && guest->peer < 0) return cg_tcp_welcome_(lobby, guest);
    if (heard > 0) cg_tcp_verify_(lobby, guest);
    return 0;
}

/* Takes as many as there are and as have a place: 0, or a code. Linux hands on errors of the connection that it would
   have accepted, and there may be no descriptor left at the moment: only a listener that is none ends it. */
static inline int cg_tcp_accept_(cg_tcp_lobby_ *lobby) {
    cg_tcp_link_ *guest = lobby->guest, *end = guest + CG_TCP_GUESTS_;
    for (; guest < end; guest++) {
        struct sockaddr_storage where;
        socklen_t bytes = sizeof where;
        int fd;
        if (guest->fd >= 0) continue;
        fd = accept(lobby->listener, (struct sockaddr *)&where, &bytes);
        if (fd < 0) {
            if (cg_tcp_again_()) return 0;
            if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK || errno == EFAULT)
                return cg_tcp_code_(CG_TCP_E_SYSTEM, -1, errno);
            lobby->error = errno;
            lobby->accept_at = cg_tcp_now_() + 10;
            return 0;
        }
        lobby->error = 0;
        memset(guest, 0, sizeof *guest);
        guest->fd = fd;
        guest->where = where;
        guest->where_bytes = bytes;
        guest->peer = -1;
        guest->when = cg_tcp_now_();
        cg_tcp_await_(guest, CG_TCP_AT_DIALLER_, CG_TCP_HELLO_);
        if (cg_tcp_setup_(fd)) cg_tcp_turn_away_(lobby, guest, CG_TCP_NOT_OURS_);
    }
    return 0;
}

/* ---- those who are called ---- */

/* The attempt has failed: the next address at once, or all of them again after a while. */
static inline void cg_tcp_fail_(cg_tcp_lobby_ *lobby, cg_tcp_link_ *link, int reason, int error) {
    if (reason) cg_tcp_describe_(lobby->net, link, CG_TCP_AT_LISTENER_, reason);
    if (link->fd >= 0) close(link->fd);
    link->fd = -1;
    link->reason = reason;
    link->error = error;
    link->when = cg_tcp_now_() + (link->next ? 0 : reason ? 500 : 50);
    if (link->next || !link->list) return;
    freeaddrinfo(link->list);
    link->list = NULL;
}

static inline void cg_tcp_dial_(cg_tcp_lobby_ *lobby, cg_tcp_link_ *link) {
    const struct addrinfo *a;
    if (!link->list) link->next = link->list = cg_tcp_lookup_(link->address);
    a = link->next;
    if (!a) {
        cg_tcp_fail_(lobby, link, 0, -1);
        return;
    }
    link->next = a->ai_next;
    memcpy(&link->where, a->ai_addr, a->ai_addrlen);
    link->where_bytes = a->ai_addrlen;
    link->connected = 0;
    link->when = cg_tcp_now_() + 3000; /* the next address may answer where this one is silent */
    link->fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
    if (link->fd < 0 || cg_tcp_setup_(link->fd) ||
        (connect(link->fd, a->ai_addr, a->ai_addrlen) && errno != EINPROGRESS && errno != EINTR))
        cg_tcp_fail_(lobby, link, 0, errno);
}

/* The connection is there, or will never be. */
static inline void cg_tcp_greet_(cg_tcp_lobby_ *lobby, cg_tcp_link_ *link) {
    unsigned char *mine = link->talk + CG_TCP_AT_DIALLER_;
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &len)) error = errno;
    cg_tcp_hello_(mine, lobby->desc, lobby->net->transport.size, link->peer, lobby->secret != NULL);
    cg_tcp_await_(link, CG_TCP_AT_LISTENER_, CG_TCP_HELLO_);
    link->connected = 1;
    if (!error && !cg_tcp_say_(link->fd, mine, CG_TCP_HELLO_)) error = errno;
    if (error) cg_tcp_fail_(lobby, link, 0, error);
}

/* The answer to our greeting is complete (with a secret, perhaps but for the nonce): 0, or a code. */
static inline int cg_tcp_answer_(cg_tcp_lobby_ *lobby, cg_tcp_link_ *link) {
    unsigned char *talk = link->talk, *mine = talk + CG_TCP_AT_DIALLER_, *theirs = talk + CG_TCP_AT_LISTENER_;
    /* Where nobody listens yet, the system may connect a local port to itself: then this is our own greeting. */
    const int self = !memcmp(theirs, mine, CG_TCP_HELLO_), verdict = theirs[5];
    int error, reason = cg_tcp_compare_(theirs, mine);
    if (!reason && verdict) reason = verdict <= CG_TCP_OTHER_SECRET_ ? verdict : CG_TCP_NOT_OURS_;
    if (!reason && (memcmp(theirs + 12, mine + 16, 4) || memcmp(theirs + 16, mine + 12, 4)))
        reason = CG_TCP_OTHER_RANK_;
    if (reason || self) {
        cg_tcp_fail_(lobby, link, self ? 0 : reason, 0);
    } else if (!lobby->secret) {
        cg_tcp_admit_(lobby, link);
    } else if (link->at == CG_TCP_AT_LISTENER_NONCE_) {
        cg_tcp_await_(link, CG_TCP_AT_LISTENER_NONCE_, CG_TCP_NONCE_);
    } else {
        error = cg_tcp_nonce_(lobby, talk + CG_TCP_AT_DIALLER_NONCE_);
        if (error) return cg_tcp_code_(CG_TCP_E_SYSTEM, -1, error);
        cg_tcp_prove_(talk, lobby->secret, 1, talk + CG_TCP_AT_PROOF_);
        if (cg_tcp_say_(link->fd, talk + CG_TCP_AT_DIALLER_NONCE_, CG_TCP_NONCE_ + CG_TCP_PROOF_))
            cg_tcp_await_(link, CG_TCP_AT_PROOF_, CG_TCP_PROOF_);
        else cg_tcp_fail_(lobby, link, 0, errno);
    }
    return 0;
}

static inline int cg_tcp_called_(cg_tcp_lobby_ *lobby, cg_tcp_link_ *link) /* its socket is ready: 0, or a code */
{
    const int proved = link->at >= CG_TCP_AT_PROOF_;
    unsigned char proof[CG_TCP_PROOF_];
    int heard;
    if (!link->connected) {
        cg_tcp_greet_(lobby, link);
        return 0;
    }
    heard = cg_tcp_hear_(link);
    /* who knows the secret does not close now */
    if (heard < 0) cg_tcp_fail_(lobby, link, proved ? CG_TCP_OTHER_SECRET_ : 0, link->error);
    if (heard <= 0) return 0;
    if (!proved) return cg_tcp_answer_(lobby, link);
    cg_tcp_prove_(link->talk, lobby->secret, 0, proof);
    if (cg_hmac_differs(proof, link->talk + CG_TCP_AT_PROOF_, CG_TCP_PROOF_))
        cg_tcp_fail_(lobby, link, CG_TCP_OTHER_SECRET_, 0);
    else cg_tcp_admit_(lobby, link);
    return 0;
}

/* ---- all at the same time ---- */

/* Begins and ends attempts whose time has come, and says what to poll for: until when. */
static inline int64_t cg_tcp_arm_(cg_tcp_lobby_ *lobby) {
    cg_tcp *net = lobby->net;
    const int size = net->transport.size, rank = net->transport.rank;
    struct pollfd *door = net->poll + size;
    const int64_t now = cg_tcp_now_();
    int64_t wake = lobby->deadline, free_at = INT64_MAX;
    cg_tcp_link_ *oldest = NULL;
    int r, missing = 0;
    for (r = 0; r < size; r++) {
        cg_tcp_link_ *link = &lobby->dial[r];
        net->poll[r].fd = net->peer[r].bye ? -1 : net->peer[r].fd;
        if (net->peer[r].fd >= 0) continue;
        missing += r > rank;
        if (r >= rank) continue;
        if (link->fd >= 0 && !link->connected && link->when <= now) cg_tcp_fail_(lobby, link, 0, ETIMEDOUT);
        if (link->fd < 0 && link->when <= now) cg_tcp_dial_(lobby, link);
        if ((link->fd < 0 || !link->connected) && link->when < wake) wake = link->when;
        net->poll[r].fd = link->fd;
        net->poll[r].events = link->connected ? POLLIN : POLLOUT;
    }
    for (r = 0; r < CG_TCP_GUESTS_; r++) {
        cg_tcp_link_ *guest = &lobby->guest[r];
        if (guest->fd < 0) free_at = 0;
        else if (!oldest || guest->when < oldest->when) oldest = guest;
    }
    if (oldest && free_at) free_at = oldest->when + CG_TCP_PATIENCE_;
    if (oldest && free_at && free_at <= now) cg_tcp_turn_away_(lobby, oldest, CG_TCP_NOT_OURS_);
    for (r = 0, lobby->guests = 0; r < CG_TCP_GUESTS_; r++) {
        door[1 + r].fd = lobby->guest[r].fd;
        door[1 + r].events = POLLIN;
        if (lobby->guest[r].fd >= 0) lobby->guests = r + 1;
    }
    if (free_at < lobby->accept_at) free_at = lobby->accept_at;
    door->fd = missing && free_at <= now ? lobby->listener : -1;
    door->events = POLLIN;
    return missing && free_at > now && free_at < wake ? free_at : wake;
}

static inline int cg_tcp_serve_(cg_tcp_lobby_ *lobby) {
    cg_tcp *net = lobby->net;
    const int size = net->transport.size;
    struct pollfd *door = net->poll + size;
    int r, code = 0;
    for (r = 0; r < size && !code; r++) {
        if (net->poll[r].fd < 0 || !net->poll[r].revents) continue;
        if (net->peer[r].fd >= 0) code = cg_tcp_watch_(net, r, net->poll[r].revents);
        else code = cg_tcp_called_(lobby, &lobby->dial[r]);
    }
    for (r = 0; r < lobby->guests && !code; r++)
        if (door[1 + r].fd >= 0 && door[1 + r].revents) code = cg_tcp_guest_(lobby, &lobby->guest[r]);
    if (!code && door->fd >= 0 && door->revents) code = cg_tcp_accept_(lobby);
    return code;
}

/* The deadline has come, and `missing` is not there: who is to blame, and what was there instead? */
static inline int cg_tcp_late_(const cg_tcp_lobby_ *lobby, int missing) {
    const cg_tcp_link_ *link = missing < lobby->desc->rank ? &lobby->dial[missing] : NULL;
    const int reason = link ? link->reason : lobby->reason, error = link ? link->error : lobby->error;
    const int away = link ? 0 : lobby->net->turned_away < 2047 ? lobby->net->turned_away : 2047;
    if (reason) return cg_tcp_code_(CG_TCP_E_HANDSHAKE, missing, away << 4 | reason);
    return error < 0 ? cg_tcp_code_(CG_TCP_E_ADDRESS, missing, 0) : cg_tcp_code_(CG_TCP_E_TIMEOUT, missing, error);
}

static inline int cg_tcp_mesh_(cg_tcp *net, const cg_tcp_desc *desc, const char *secret, int listener) {
    const int size = net->transport.size, links = size + CG_TCP_GUESTS_;
    const char *address = desc->addresses;
    cg_tcp_link_ *link = (cg_tcp_link_ *)calloc((size_t)links, sizeof *link);
    cg_tcp_lobby_ lobby;
    int64_t wake;
    int r, n, code = link ? 0 : CG_TCP_E_MEMORY;
    memset(&lobby, 0, sizeof lobby);
    lobby.net = net;
    lobby.desc = desc;
    lobby.secret = secret;
    lobby.random = secret ? open(CG_TCP_RANDOM_, O_RDONLY | O_CLOEXEC) : -1;
    if (secret && lobby.random < 0) code = cg_tcp_code_(CG_TCP_E_SYSTEM, -1, errno);
    lobby.listener = listener;
    lobby.deadline = cg_tcp_now_() + net->timeout_ms;
    lobby.dial = link;
    lobby.guest = link + size;
    for (r = 0; r < links && link; r++) {
        link[r].fd = -1;
        link[r].peer = r;
        if (r < size) link[r].address = address, address += strcspn(address, ",") + 1;
    }
    while (!code) {
        for (r = 0; r < size && (r == desc->rank || net->peer[r].fd >= 0); r++) {}
        if (r == size) break;
        if (!cg_tcp_left_(lobby.deadline)) {
            code = cg_tcp_late_(&lobby, r);
            break;
        }
        wake = cg_tcp_arm_(&lobby);
        n = poll(net->poll, (nfds_t)(size + 1 + lobby.guests), cg_tcp_left_(wake));
        if (n < 0 && errno != EINTR) code = cg_tcp_code_(CG_TCP_E_SYSTEM, -1, errno);
        if (n > 0) code = cg_tcp_serve_(&lobby);
        r = cg_tcp_blame(code); /* another rank has given up, but it may be here that the missing one was turned away */
        if (cg_tcp_kind(code) == CG_TCP_E_TIMEOUT && net->peer[r].fd < 0) {
            const int late = cg_tcp_late_(&lobby, r);
            if (cg_tcp_kind(late) == CG_TCP_E_HANDSHAKE) code = late;
        }
    }
    for (r = 0; r < links && link; r++) {
        if (link[r].fd >= 0) close(link[r].fd);
        if (link[r].list) freeaddrinfo(link[r].list);
    }
    free(link);
    if (lobby.random >= 0) close(lobby.random);
    return code;
}

#endif
