/* How examples/transport_tcp.h opens while others knock: strangers, silent and slow ones, ranks that come and go,
   errors of accept, and attackers who know everything but the secret. They speak the protocol by plain sockets and
   by a greeting and a proof written here once more; the first test of each kind lets the same client in when it
   does nothing wrong, so that the others are turned away for what they do, and not for a slip of this file. */
#define _POSIX_C_SOURCE 200809L
#include <sys/types.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/resource.h>

/* accept fails so many times with that error, then it accepts; the nonces come from that file */
static int failures, failure;
static int faulty_accept(int fd, struct sockaddr *a, socklen_t *len);
static const char *random_device = "/dev/urandom";
#define accept faulty_accept
#define CG_TCP_RANDOM_ random_device
#include "examples/transport_threads.h"
#include "examples/transport_tcp.h"
#undef accept
#include "greatest.h"
#include "ran.h"

static int faulty_accept(int fd, struct sockaddr *a, socklen_t *len) {
    if (failures > 0) {
        failures--;
        errno = failure;
        return -1;
    }
    return accept(fd, a, len);
}

enum { MOST = 8, JOB = 4711, HELLO = 28, VERSION = 2 };
static const char *const right = "a secret of sixteen bytes or more", *const wrong = "another secret, just as long";

typedef struct mesh {
    char addresses[400];
    int size, port[MOST], listener[MOST], timeout_ms, how;
    const char *secret[MOST];
} mesh;

static int mesh_make(mesh *m, int size, int timeout_ms) {
    int r;
    memset(m, 0, sizeof *m);
    m->size = size;
    m->timeout_ms = timeout_ms;
    for (r = 0; r < size; r++) {
        if (cg_tcp_listen("127.0.0.1:0", &m->listener[r], &m->port[r])) return 1;
        snprintf(m->addresses + strlen(m->addresses), 32, "%s127.0.0.1:%d", r ? "," : "", m->port[r]);
    }
    return 0;
}

static int join(cg_tcp *net, const mesh *m, int rank) {
    cg_tcp_desc d;
    memset(&d, 0, sizeof d);
    d.rank = rank;
    d.addresses = m->addresses;
    d.job = JOB;
    d.timeout_ms = m->timeout_ms;
    d.listener = m->listener[rank];
    d.secret = m->secret[rank];
    return cg_tcp_open(net, &d);
}

static long now(void) { return (long)cg_tcp_now_(); }

static void nap(long ms) {
    struct timespec t;
    t.tv_sec = ms / 1000;
    t.tv_nsec = ms % 1000 * 1000000;
    nanosleep(&t, NULL);
}

/* Both ways, over the connection of rank 0 and 1. */
static int works(cg_tcp *net) {
    const int other = 1 - net->transport.rank;
    unsigned char out[3] = { 1, 2, (unsigned char)net->transport.rank }, in[3] = { 0 };
    return !net->transport.sendrecv(net, out, 3, other, in, 3, other) && in[1] == 2 && in[2] == other;
}

static int says(int code, const char *words) {
    char text[300];
    cg_tcp_error(code, text, sizeof text);
    if (strstr(text, words)) return 1;
    fprintf(stderr, "\"%s\" does not say \"%s\"\n", text, words);
    return 0;
}

/* ---- a client that is no cg_tcp ---- */

static void patience(int fd) /* no test waits for ever */
{
    struct timeval five = { 5, 0 };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &five, sizeof five);
}

static int knock(int port) /* a connection to that port of the loopback, or -1 */
{
    struct sockaddr_in to;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    memset(&to, 0, sizeof to);
    to.sin_family = AF_INET;
    to.sin_port = htons((uint16_t)port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    patience(fd);
    if (!connect(fd, (struct sockaddr *)&to, sizeof to)) return fd;
    close(fd);
    return -1;
}

static int take(int listener) /* the next who knocks there */
{
    struct pollfd p;
    int fd;
    p.fd = listener;
    p.events = POLLIN;
    if (poll(&p, 1, 5000) != 1) return -1;
    fd = accept(listener, NULL, NULL);
    patience(fd);
    return fd;
}

static void little(unsigned char *p, uint64_t v, int bytes) {
    int i;
    for (i = 0; i < bytes; i++) p[i] = (unsigned char)(v >> 8 * i & 255);
}

static void greeting(unsigned char *h, uint64_t job, int size, int from, int to, int secret) {
    memcpy(h, "cgtcp", 5);
    h[5] = 0;
    h[6] = (unsigned char)secret;
    h[7] = VERSION;
    little(h + 8, (uint64_t)size, 4);
    little(h + 12, (uint64_t)from, 4);
    little(h + 16, (uint64_t)to, 4);
    little(h + 20, job, 8);
}

static int tell(int fd, const void *p, size_t bytes) { return send(fd, p, bytes, MSG_NOSIGNAL) == (ssize_t)bytes; }
static int hear(int fd, void *p, size_t bytes) { return recv(fd, p, bytes, MSG_WAITALL) == (ssize_t)bytes; }
static int over(int fd) /* the other side has closed */
{
    unsigned char byte;
    return recv(fd, &byte, 1, 0) <= 0 && errno != EAGAIN;
}

/* "side"(8) dialler(28) listener(28) listener's nonce(32) dialler's nonce(32), under HMAC */
enum { SIDE = 0, DIALLER = 8, LISTENER = 36, NONCE_L = 64, NONCE_D = 96, TALK = 128 };

static void prove(unsigned char *talk, const char *side, const char *secret, unsigned char proof[32]) {
    memcpy(talk + SIDE, side, 8);
    cg_hmac_sha256(secret, strlen(secret), talk, TALK, proof);
}

/* Greets rank 0 as rank 1, as far as its answer; talk has all but the nonce of this side. */
static int approach(int fd, unsigned char *talk, int size) {
    greeting(talk + DIALLER, JOB, size, 1, 0, 1);
    return tell(fd, talk + DIALLER, HELLO) && hear(fd, talk + LISTENER, HELLO + 32);
}

/* ---- strangers ---- */

/* Rank 0 of 2 opens. A stranger (how) greets; then comes rank 1. */
static int with_a_stranger(cg_threads_world *world, int rank, void *user) {
    static const char *const told[] = { "another job", "another number", "another version", "does not belong",
        "does not belong", "does not belong", "does not belong", "another program", "another program", "a secret" };
    const mesh *m = (const mesh *)user;
    unsigned char h[HELLO], answer[HELLO];
    cg_tcp net;
    int fd, code;
    (void)world;
    if (rank == 0) {
        code = join(&net, m, rank);
        if (code) says(code, "(ok)");
        NEED(code == 0 && works(&net) && net.turned_away == 1);
        if (!strstr(net.stranger, told[m->how])) puts(net.stranger);
        NEED(strstr(net.stranger, told[m->how]) && strstr(net.stranger, "127.0.0.1"));
        cg_tcp_close(&net);
        return 0;
    }
    greeting(h, m->how == 0 ? JOB + 1 : JOB, m->how == 1 ? 3 : 2,
        m->how == 3       ? 0
            : m->how == 4 ? 7
                          : 1,
        m->how == 5 ? 1 : 0, m->how == 9);
    if (m->how == 2) h[7]++;
    if (m->how == 6) memset(h + 12, 255, 4);
    if (m->how == 7) memcpy(h, "GET / HTTP/1.1\r\nHost: you\r\n\r\n", HELLO);
    fd = knock(m->port[0]);
    NEED(fd >= 0 && (m->how == 8 || tell(fd, h, HELLO)));
    if (m->how < 7 || m->how == 9) NEED(hear(fd, answer, HELLO) && !memcmp(answer, "cgtcp", 5) && answer[5]);
    if (m->how == 8) nap(100), close(fd); /* it said nothing */
    else NEED(over(fd));
    nap(50);
    code = join(&net, m, rank);
    NEED(code == 0 && works(&net) && net.turned_away == 0 && !net.stranger[0]);
    cg_tcp_close(&net);
    if (m->how != 8) close(fd);
    return 0;
}

TEST a_stranger_is_turned_away(int how) {
    mesh m;
    ASSERT_EQ(0, mesh_make(&m, 2, 10000));
    m.how = how;
    ASSERT_RAN(2, with_a_stranger, &m);
    PASS();
}

/* Two say that they are rank 1 of 3; rank 2 is missing. */
static int twice(cg_threads_world *world, int rank, void *user) {
    const mesh *m = (const mesh *)user;
    unsigned char h[HELLO], answer[HELLO];
    const long start = now();
    cg_tcp net;
    int fd, code;
    (void)world;
    if (rank == 2) { /* here the second rank 1 */
        nap(200);
        greeting(h, JOB, 3, 1, 0, 0);
        fd = knock(m->port[0]);
        NEED(fd >= 0 && tell(fd, h, HELLO) && hear(fd, answer, HELLO) && answer[5] && over(fd));
        close(fd);
        return 0;
    }
    code = join(&net, m, rank); /* nobody is rank 2 */
    NEED(cg_tcp_blame(code) == 2 && now() - start >= 690 && now() - start < 3000);
    if (rank == 0)
        NEED(says(code, "waiting for rank 2; 1 connection was turned away, among them a rank that is there"));
    return 0;
}

TEST a_rank_that_comes_twice_is_turned_away(void) {
    mesh m;
    ASSERT_EQ(0, mesh_make(&m, 3, 700));
    ASSERT_RAN(3, twice, &m);
    PASS();
}

static int counted(cg_threads_world *world, int rank, void *user) {
    const mesh *m = (const mesh *)user;
    const long start = now();
    unsigned char h[HELLO];
    cg_tcp net;
    int fd, code, k;
    (void)world;
    if (rank == 1) {
        for (k = 0; k < 4; k++) {
            greeting(h, JOB + 100, 2, 1, 0, 0);
            if (k == 3) memset(h, 'x', sizeof h); /* of several reasons the one that says most is told */
            fd = knock(m->port[0]);
            NEED(fd >= 0 && tell(fd, h, HELLO));
            over(fd);
            close(fd);
        }
        return 0;
    }
    code = join(&net, m, rank);
    NEED(cg_tcp_kind(code) == CG_TCP_E_HANDSHAKE && cg_tcp_blame(code) == 1 && net.turned_away == 4);
    NEED(says(code, "waiting for rank 1; 4 connections were turned away, among them a process of another job"));
    NEED(strstr(net.stranger, "rank 1 of 2, job 4811") && strstr(net.stranger, "127.0.0.1 port"));
    NEED(now() - start >= 490 && now() - start < 2000);
    cg_tcp_close(&net);
    return 0;
}

TEST strangers_are_counted_and_named_at_the_deadline(void) {
    mesh m;
    ASSERT_EQ(0, mesh_make(&m, 2, 500));
    ASSERT_RAN(2, counted, &m);
    PASS();
}

/* At the address of rank 0 is a process of another job (how 0: it goes, and rank 0 comes; 1: it stays). */
static int wrong_house(cg_threads_world *world, int rank, void *user) {
    const mesh *m = (const mesh *)user;
    unsigned char h[HELLO];
    cg_tcp net;
    int fd, code, k;
    (void)world;
    if (rank == 1) {
        code = join(&net, m, rank);
        if (m->how == 0) NEED(code == 0 && works(&net));
        else NEED(cg_tcp_blame(code) == 0 && says(code, "rank 0; at its address is a process of another job"));
        NEED(net.turned_away == 0 && strstr(net.stranger, "another job"));
        cg_tcp_close(&net);
        return 0;
    }
    for (k = 0; k <= m->how; k++) { /* it comes again after half a second */
        fd = take(m->listener[0]);
        NEED(fd >= 0 && hear(fd, h, HELLO));
        greeting(h, JOB + 1, 2, 0, 1, 0);
        NEED(tell(fd, h, HELLO) && over(fd)); /* and leaves */
        close(fd);
    }
    if (m->how) return close(m->listener[0]);
    code = join(&net, m, rank);
    NEED(code == 0 && works(&net));
    cg_tcp_close(&net);
    return 0;
}

TEST another_job_at_a_ranks_address_is_no_end(int how) {
    mesh m;
    ASSERT_EQ(0, mesh_make(&m, 2, how ? 900 : 8000));
    m.how = how;
    ASSERT_RAN(2, wrong_house, &m);
    PASS();
}

/* ---- silent and slow ones ---- */

typedef struct crowd {
    mesh m;
    int silent, slow;
    long took;
} crowd;

static int crowded(cg_threads_world *world, int rank, void *user) {
    crowd *c = (crowd *)user;
    const cg_transport sync = cg_threads_transport(world, rank, CG_THREADS_ALL);
    unsigned char h[HELLO];
    int fd[160], k, i, code;
    cg_tcp net;
    long start;
    greeting(h, JOB, 2, 1, 0, 0);
    for (k = 0; k < c->silent + c->slow && rank == 1; k++) {
        fd[k] = knock(c->m.port[0]); /* they are in the queue before rank 0 opens */
        NEED(fd[k] >= 0);
    }
    NEED(sync.allgather(sync.user, NULL, NULL, 0) == 0);
    start = now();
    if (rank == 1) { /* a byte of each in turn, then the real one */
        for (i = 0; i < 5; i++) {
            for (k = c->silent; k < c->silent + c->slow; k++) NEED(tell(fd[k], h + i, 1));
            nap(20);
        }
    }
    code = join(&net, &c->m, rank);
    if (rank == 0) c->took = now() - start;
    NEED(code == 0 && works(&net));
    for (k = 0; k < c->silent + c->slow && rank == 1; k++) close(fd[k]);
    cg_tcp_close(&net);
    return 0;
}

TEST sixteen_silent_clients_cost_no_more_than_one(void) {
    crowd c;
    long one;
    memset(&c, 0, sizeof c);
    ASSERT_EQ(0, mesh_make(&c.m, 2, 50000));
    c.silent = 1;
    ASSERT_RAN(2, crowded, &c);
    one = c.took;
    ASSERT_EQ(0, mesh_make(&c.m, 2, 50000));
    c.silent = 8;
    c.slow = 8;
    ASSERT_RAN(2, crowded, &c);
    printf("one: %ld ms, sixteen: %ld ms\n", one, c.took);
    ASSERT(one < 1000);
    ASSERT(c.took < one + 500);
    PASS();
}

/* More than have a place: the first of them leave after two seconds. */
TEST too_many_silent_clients_make_room(void) {
    crowd c;
    memset(&c, 0, sizeof c);
    ASSERT_EQ(0, mesh_make(&c.m, 2, 50000));
    c.silent = CG_TCP_GUESTS_ + 5;
    ASSERT_RAN(2, crowded, &c);
    ASSERT(c.took < 4000);
    PASS();
}

/* ---- who is to blame ---- */

/* Rank 2 of 4 greets rank 0 and goes (how 0: after the answer, 1: before it); rank 1 is there, rank 3 never comes. */
static int comes_and_goes(cg_threads_world *world, int rank, void *user) {
    const mesh *m = (const mesh *)user;
    const long start = now();
    unsigned char h[HELLO];
    cg_tcp net;
    int fd, code;
    (void)world;
    if (rank == 3) return 0;
    if (rank == 2) {
        nap(150);
        greeting(h, JOB, 4, 2, 0, 0);
        fd = knock(m->port[0]);
        NEED(fd >= 0 && tell(fd, h, HELLO) && (m->how || hear(fd, h, HELLO)));
        close(fd);
        return 0;
    }
    code = join(&net, m, rank);
    NEED(code && cg_tcp_kind(code) == CG_TCP_E_CLOSED && cg_tcp_blame(code) == 2); /* rank 1 knows it from rank 0 */
    NEED(now() - start < 1500);
    return 0;
}

TEST a_rank_that_closes_is_noticed_at_once(int how) {
    mesh m;
    ASSERT_EQ(0, mesh_make(&m, 4, 10000));
    m.how = how;
    ASSERT_RAN(4, comes_and_goes, &m);
    PASS();
}

/* Rank `how` of 4 never comes. The others begin at different times, and all blame that rank. */
static int one_is_missing(cg_threads_world *world, int rank, void *user) {
    const mesh *m = (const mesh *)user;
    const long start = now();
    cg_tcp net;
    int code;
    (void)world;
    if (rank == m->how) return close(m->listener[rank]);
    nap(100 * rank);
    code = join(&net, m, rank);
    if (cg_tcp_blame(code) != m->how) says(code, "(somebody else)");
    NEED(cg_tcp_kind(code) == CG_TCP_E_TIMEOUT && cg_tcp_blame(code) == m->how);
    NEED(now() - start >= 490 && now() - start < 2500);
    return 0;
}

TEST the_missing_rank_is_blamed(int missing) {
    mesh m;
    ASSERT_EQ(0, mesh_make(&m, 4, 600));
    m.how = missing;
    ASSERT_RAN(4, one_is_missing, &m);
    PASS();
}

/* Rank 2 of 3 is open: a false rank 1 has let it in, but does not go to rank 0, which gives up. Rank 2 receives
   from rank 0 (how 0), sends to it (1), waits for rank 1 (2), or sends when it is gone (3), and hears the reason.
   */
static int open_too_early(cg_threads_world *world, int rank, void *user) {
    static unsigned char big[1 << 23];
    const mesh *m = (const mesh *)user;
    unsigned char h[HELLO], byte;
    cg_tcp net;
    int fd, code;
    (void)world;
    if (rank == 1) {
        fd = take(m->listener[1]);
        NEED(fd >= 0 && hear(fd, h, HELLO));
        greeting(h, JOB, 3, 1, 2, 0);
        NEED(tell(fd, h, HELLO) && over(fd));
        return close(fd) | close(m->listener[1]);
    }
    code = join(&net, m, rank);
    if (rank == 2) {
        NEED(code == 0);
        net.timeout_ms = 5000;
        if (m->how == 1) code = net.transport.sendrecv(&net, big, sizeof big, 0, NULL, 0, -1);
        else if (m->how == 3) { /* rank 0 is gone: the first message meets nobody, the second is refused */ nap(900);
            NEED(net.transport.sendrecv(&net, big, 1, 0, NULL, 0, -1) == 0);
            nap(50);
            code = net.transport.sendrecv(&net, big, 1, 0, NULL, 0, -1);
        } else code = net.transport.sendrecv(&net, NULL, 0, -1, &byte, 1, m->how ? 1 : 0);
        cg_tcp_close(&net);
    }
    NEED(code == cg_tcp_code_(CG_TCP_E_TIMEOUT, 1, 0));
    return 0;
}

TEST who_is_open_already_hears_the_reason(int how) {
    mesh m;
    ASSERT_EQ(0, mesh_make(&m, 3, 600));
    m.how = how;
    ASSERT_RAN(3, open_too_early, &m);
    PASS();
}

static int two(cg_threads_world *world, int rank, void *user) {
    const mesh *m = (const mesh *)user;
    cg_tcp net;
    int code;
    (void)world;
    code = join(&net, m, rank);
    NEED(code == 0 && works(&net));
    cg_tcp_close(&net);
    return 0;
}

TEST errors_of_accept_are_tried_again(void) {
    static const int handed_on[] = { ECONNABORTED, EPROTO, ENETDOWN, ENOPROTOOPT, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH,
        ETIMEDOUT, EPERM, EMFILE, ENFILE, ENOBUFS, ENOMEM, EAGAIN, EINTR };
    mesh m;
    cg_tcp net;
    size_t i;
    long start;
    int code;
    for (i = 0; i < sizeof handed_on / sizeof *handed_on; i++) {
        ASSERT_EQ(0, mesh_make(&m, 2, 5000));
        failure = handed_on[i];
        failures = 3;
        ASSERT_RAN(2, two, &m);
        ASSERT_EQ_FMT(0, failures, "%d");
    }
    start = now(); /* no listener: not again */
    ASSERT_EQ(0, mesh_make(&m, 2, 5000));
    close(m.listener[0]);
    m.listener[0] = socket(AF_INET, SOCK_STREAM, 0);
    code = join(&net, &m, 0);
    ASSERT_EQ_FMT((int)CG_TCP_E_SYSTEM, cg_tcp_kind(code), "%d");
    ASSERT(now() - start < 1000);
    close(m.listener[1]);
    PASS();
}

/* ---- the secret ---- */

TEST a_common_secret_lets_all_in(int size) {
    mesh m;
    int r;
    ASSERT_EQ(0, mesh_make(&m, size, 10000));
    for (r = 0; r < size; r++) m.secret[r] = right;
    ASSERT_RAN(size, two, &m);
    PASS();
}

/* A client that knows it enters; what it has said is in `record`, what rank 0 has said in `answer`. */
static unsigned char record[HELLO + 64], answer[HELLO + 64];

static int enters(cg_threads_world *world, int rank, void *user) {
    const mesh *m = (const mesh *)user;
    unsigned char talk[TALK], proof[32], theirs[32];
    cg_tcp net;
    int fd;
    (void)world;
    if (rank == 0) {
        NEED(join(&net, m, rank) == 0 && net.turned_away == 0);
        cg_tcp_close(&net);
        return 0;
    }
    fd = knock(m->port[0]);
    NEED(fd >= 0 && approach(fd, talk, 2));
    memset(talk + NONCE_D, 'n', 32);
    prove(talk, "dialler ", right, proof);
    NEED(tell(fd, talk + NONCE_D, 32) && tell(fd, proof, 32) && hear(fd, theirs, 32));
    memcpy(record, talk + DIALLER, HELLO);
    memcpy(record + HELLO, talk + NONCE_D, 32);
    memcpy(record + HELLO + 32, proof, 32);
    memcpy(answer, talk + LISTENER, HELLO + 32);
    memcpy(answer + HELLO + 32, theirs, 32);
    prove(talk, "listener", right, proof);
    NEED(!memcmp(proof, theirs, 32));
    close(fd);
    return 0;
}

TEST a_client_with_the_secret_enters(void) {
    mesh m;
    unsigned char before[HELLO + 64];
    ASSERT_EQ(0, mesh_make(&m, 2, 5000));
    m.secret[0] = right;
    ASSERT_RAN(2, enters, &m);
    memcpy(before, answer, sizeof before);
    ASSERT_EQ(0, mesh_make(&m, 2, 5000));
    m.secret[0] = right;
    ASSERT_RAN(2, enters, &m);
    ASSERT(!memcmp(before, answer, HELLO)); /* the greeting is the same, nonce and proof are not */
    ASSERT(memcmp(before + HELLO, answer + HELLO, 32));
    ASSERT(memcmp(before + HELLO + 32, answer + HELLO + 32, 32));
    PASS();
}

/* Rank 0 opens with the secret; attackers come first, then the real rank 1. how 0: what a client has said before,
   word by word; 1: another secret; 2: the proof of rank 0 in that recording, as ours; 3: the listener's side of the
   proof, made with the right secret; 4: nothing after the greeting; 5: a proof of a talk of which one byte differs,
   each in turn; 6: as 0, with the nonce of rank 0 mirrored. */
static int attacked(cg_threads_world *world, int rank, void *user) {
    const mesh *m = (const mesh *)user;
    unsigned char talk[TALK], proof[32], both[64], byte;
    cg_tcp net;
    int fd, code, k, times = m->how == 5 ? TALK : 1;
    (void)world;
    if (rank == 0) {
        code = join(&net, m, rank);
        NEED(code == 0 && works(&net) && net.turned_away == times);
        if (m->how != 4) NEED(strstr(net.stranger, "another secret (rank 1 of 2"));
        cg_tcp_close(&net);
        return 0;
    }
    for (k = 0; k < times; k++) {
        fd = knock(m->port[0]);
        NEED(fd >= 0 && approach(fd, talk, 2));
        memset(talk + NONCE_D, 'n', 32);
        if (m->how == 6) memcpy(talk + NONCE_D, talk + NONCE_L, 32);
        prove(talk, m->how == 3 ? "listener" : "dialler ", m->how == 1 ? wrong : right, proof);
        if (m->how == 5) talk[k] ^= 1, cg_hmac_sha256(right, strlen(right), talk, TALK, proof), talk[k] ^= 1;
        if (m->how == 0 || m->how == 6) memcpy(proof, record + HELLO + 32, 32);
        if (m->how == 2) memcpy(proof, answer + HELLO + 32, 32);
        memcpy(both, talk + NONCE_D, 32);
        memcpy(both + 32, proof, 32);
        if (m->how != 4) NEED(tell(fd, both, 64));
        if (m->how != 4) NEED(recv(fd, &byte, 1, 0) <= 0); /* not a byte of an answer */
        close(fd);
    }
    nap(50);
    NEED(join(&net, m, rank) == 0 && works(&net));
    cg_tcp_close(&net);
    return 0;
}

TEST an_attacker_without_the_secret_is_turned_away(int how) {
    mesh m;
    ASSERT_EQ(0, mesh_make(&m, 2, 10000));
    m.secret[0] = m.secret[1] = right;
    m.how = how;
    ASSERT_RAN(2, attacked, &m);
    PASS();
}

/* Two clients know the secret, and both say that they are rank 1 of 3: they greet before either proves. Rank 2 is
   missing. */
static int race(cg_threads_world *world, int rank, void *user) {
    const mesh *m = (const mesh *)user;
    unsigned char talk[2][TALK], both[64], byte;
    cg_tcp net;
    int fd[2], code, k;
    (void)world;
    if (rank == 0) {
        code = join(&net, m, rank);
        NEED(says(code, "for rank 2; 1 connection was turned away, among them a rank that is there already"));
        return 0;
    }
    for (k = 0; k < 2; k++) {
        fd[k] = knock(m->port[0]);
        NEED(fd[k] >= 0 && approach(fd[k], talk[k], 3));
        memset(talk[k] + NONCE_D, 'n', 32);
    }
    for (k = 0; k < 2; k++) {
        memcpy(both, talk[k] + NONCE_D, 32);
        prove(talk[k], "dialler ", right, both + 32);
        NEED(tell(fd[k], both, 64));
        NEED(k ? recv(fd[k], &byte, 1, 0) <= 0 : hear(fd[k], both, 32));
    }
    NEED(hear(fd[0], both, 8)); /* until rank 0 gives up */
    return close(fd[0]) | close(fd[1]);
}

TEST of_two_with_one_rank_the_first_is_taken(void) {
    mesh m;
    ASSERT_EQ(0, mesh_make(&m, 3, 600));
    m.secret[0] = right;
    ASSERT_RAN(2, race, &m);
    close(m.listener[1]);
    close(m.listener[2]);
    PASS();
}

/* Strangers without the secret greet rightly until this process has no descriptor left: rank 0 opens all the same when
   they are gone. (They are of this process too, so there is none left when half of them are accepted.) */
static int exhausted(cg_threads_world *world, int rank, void *user) {
    const cg_transport sync = cg_threads_transport(world, rank, CG_THREADS_ALL);
    const mesh *m = (const mesh *)user;
    unsigned char talk[TALK];
    int fd[64], k, count;
    cg_tcp net;
    NEED(sync.allgather(sync.user, NULL, NULL, 0) == 0);
    if (rank == 0) {
        const int code = join(&net, m, rank);
        if (code) says(code, "(ok)");
        NEED(code == 0 && works(&net));
        cg_tcp_close(&net);
        return 0;
    }
    nap(50);
    for (count = 0; count < 64 && (fd[count] = knock(m->port[0])) >= 0; count++) {
        greeting(talk, JOB, 2, 1, 0, 1);
        NEED(tell(fd[count], talk, HELLO));
        nap(2);
    }
    NEED(count > 4 && count < 64);
    nap(100);
    for (k = 0; k < count; k++) close(fd[k]);
    nap(50);
    NEED(join(&net, m, rank) == 0 && works(&net));
    cg_tcp_close(&net);
    return 0;
}

TEST strangers_that_take_all_descriptors_are_no_end(void) {
    struct rlimit few, before;
    mesh m;
    int ran, next = dup(0);
    ASSERT_EQ(0, mesh_make(&m, 2, 10000));
    m.secret[0] = m.secret[1] = right;
    ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
    few = before;
    close(next);
    few.rlim_cur = (rlim_t)next + 40;
    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &few));
    ran = cg_threads_run(2, exhausted, &m);
    setrlimit(RLIMIT_NOFILE, &before);
    ASSERT_EQ_FMT(0, ran, "%d (10000 + line)");
    PASS();
}

/* A false rank 0 that knows all but the secret. how 0: it mirrors the nonce and the proof; 1: it mirrors every
   byte; 2: it answers as one who needs no secret; 3: with what rank 0 said in another opening; 4: it does know the
   secret, and is let in. */
static int false_listener(cg_threads_world *world, int rank, void *user) {
    const mesh *m = (const mesh *)user;
    unsigned char talk[TALK], proof[32], more;
    const long start = now();
    cg_tcp net;
    int fd, code, k;
    (void)world;
    if (rank == 1) {
        code = join(&net, m, rank);
        if (m->how == 4) NEED(code == 0);
        else NEED(code && cg_tcp_blame(code) == 0 && now() - start >= 790);
        if (m->how == 0 || m->how == 3) NEED(says(code, "at its address is a process with another secret"));
        if (m->how == 1) NEED(cg_tcp_kind(code) == CG_TCP_E_TIMEOUT);
        if (m->how == 2) NEED(says(code, "at its address is a process without a secret"));
        cg_tcp_close(&net);
        return 0;
    }
    for (k = 0; k < (m->how == 1 ? 10 : m->how == 4 ? 1 : 2); k++) { /* it comes again after 0.05 or 0.5 s */
        fd = take(m->listener[0]);
        NEED(fd >= 0 && hear(fd, talk + DIALLER, HELLO));
        greeting(talk + LISTENER, JOB, 2, 0, 1, m->how != 2);
        memset(talk + NONCE_L, 'N', 32);
        if (m->how == 1) memcpy(talk + LISTENER, talk + DIALLER, HELLO);
        if (m->how == 3) memcpy(talk + LISTENER, answer, HELLO + 32);
        NEED(tell(fd, talk + LISTENER, HELLO));
        if (m->how == 2 || m->how == 1) {
            NEED(recv(fd, &more, 1, 0) <= 0); /* no proof for such a one */
        } else {
            NEED(tell(fd, talk + NONCE_L, 32) && hear(fd, talk + NONCE_D, 32) && hear(fd, proof, 32));
            if (m->how == 3) memcpy(proof, answer + HELLO + 32, 32);
            if (m->how == 4) prove(talk, "listener", right, proof);
            NEED(tell(fd, proof, 32));
            NEED(over(fd) || m->how == 4);
        }
        close(fd);
    }
    nap(900); /* for the last answer counts, not that nobody is there any more */
    return close(m->listener[0]);
}

TEST a_false_listener_is_not_believed(int how) {
    mesh m;
    ASSERT_EQ(0, mesh_make(&m, 2, how == 4 ? 5000 : 800));
    m.secret[1] = right;
    m.how = how;
    ASSERT_RAN(2, false_listener, &m);
    PASS();
}

/* Rank 0 and rank 1 have different ideas: how 0: two secrets; 1: only rank 0 has one; 2: only rank 1 has one. */
static int disagree(cg_threads_world *world, int rank, void *user) {
    const mesh *m = (const mesh *)user;
    const int has = m->secret[rank] != NULL;
    cg_tcp net;
    int code;
    (void)world;
    code = join(&net, m, rank);
    NEED(cg_tcp_kind(code) == CG_TCP_E_HANDSHAKE && cg_tcp_blame(code) == 1 - rank);
    NEED(says(code,
        m->how == 0 ? "a process with another secret"
            : has   ? "a process without a secret, where this one has one"
                    : "a process with a secret, where this one has none"));
    return 0;
}

TEST both_sides_must_have_the_same_secret(int how) {
    mesh m;
    ASSERT_EQ(0, mesh_make(&m, 2, 800));
    if (how != 2) m.secret[0] = right;
    if (how != 1) m.secret[1] = how == 0 ? wrong : right;
    m.how = how;
    ASSERT_RAN(2, disagree, &m);
    PASS();
}

TEST a_short_secret_is_refused(void) {
    static const char *const secrets[] = { "", "fifteen bytes..", "sixteen bytes..." };
    const long start = now();
    cg_tcp_desc d;
    cg_tcp net;
    int i;
    memset(&d, 0, sizeof d);
    d.addresses = "127.0.0.1:4000"; /* alone, it needs no port */
    for (i = 0; i < 6; i++) {
        const int code = (setenv("COMPGRAD_TCP_SECRET", secrets[i % 3], 1), d.secret = i < 3 ? secrets[i] : NULL,
            cg_tcp_open(&net, &d));
        if (i % 3 == 2) ASSERT_EQ_FMT(0, code, "%d");
        else ASSERT_EQ_FMT((int)CG_TCP_E_SECRET, code, "%d");
        cg_tcp_close(&net);
    }
    unsetenv("COMPGRAD_TCP_SECRET");
    ASSERT(now() - start < 1000);
    ASSERT(says(CG_TCP_E_SECRET, "shorter than 16 bytes"));
    PASS();
}

TEST the_environment_has_a_secret(void) {
    mesh m;
    int how;
    for (how = 0; how < 3; how++) { /* 1: the field comes first, and is the same; 2: and is another */
        ASSERT_EQ(0, mesh_make(&m, 2, how == 2 ? 800 : 5000));
        m.secret[0] = how == 1 ? right : how == 2 ? wrong : NULL;
        setenv("COMPGRAD_TCP_SECRET", right, 1);
        if (how == 2) {
            m.secret[1] = right;
            ASSERT_RAN(2, disagree, &m);
        } else ASSERT_RAN(2, two, &m);
        unsetenv("COMPGRAD_TCP_SECRET");
    }
    ASSERT_EQ(0, mesh_make(&m, 2, 5000)); /* it is really asked for, with nothing else said */
    setenv("COMPGRAD_TCP_SECRET", right, 1);
    m.secret[1] = right;
    ASSERT_RAN(2, enters, &m);
    unsetenv("COMPGRAD_TCP_SECRET");
    PASS();
}

/* Without the system's generator there is no nonce, and nothing takes its place. */
static int no_random(cg_threads_world *world, int rank, void *user) {
    const mesh *m = (const mesh *)user;
    const long start = now();
    cg_tcp net;
    int code;
    (void)world;
    code = join(&net, m, rank);
    NEED(rank ? code != 0 : cg_tcp_kind(code) == CG_TCP_E_SYSTEM && now() - start < 700);
    return 0;
}

TEST without_the_systems_generator_nothing_opens(const char *device) {
    mesh m;
    ASSERT_EQ(0, mesh_make(&m, 2, 800));
    m.secret[0] = m.secret[1] = right;
    random_device = device;
    ASSERT_RAN(2, no_random, &m);
    random_device = "/dev/urandom";
    PASS();
}

SUITE(strangers) {
    int i;
    for (i = 0; i < 10; i++) RUN_TESTp(a_stranger_is_turned_away, i);
    RUN_TEST(a_rank_that_comes_twice_is_turned_away);
    RUN_TEST(strangers_are_counted_and_named_at_the_deadline);
    for (i = 0; i < 2; i++) RUN_TESTp(another_job_at_a_ranks_address_is_no_end, i);
    RUN_TEST(sixteen_silent_clients_cost_no_more_than_one);
    RUN_TEST(too_many_silent_clients_make_room);
}

SUITE(blame) {
    int i;
    for (i = 0; i < 2; i++) RUN_TESTp(a_rank_that_closes_is_noticed_at_once, i);
    for (i = 0; i < 4; i++) RUN_TESTp(the_missing_rank_is_blamed, i);
    for (i = 0; i < 4; i++) RUN_TESTp(who_is_open_already_hears_the_reason, i);
    RUN_TEST(errors_of_accept_are_tried_again);
}

SUITE(secrets) {
    int i;
    RUN_TESTp(a_common_secret_lets_all_in, 2);
    RUN_TEST(a_client_with_the_secret_enters);
    for (i = 0; i < 7; i++) RUN_TESTp(an_attacker_without_the_secret_is_turned_away, i);
    RUN_TEST(strangers_that_take_all_descriptors_are_no_end);
    RUN_TEST(of_two_with_one_rank_the_first_is_taken);
    for (i = 0; i < 5; i++) RUN_TESTp(a_false_listener_is_not_believed, i);
    for (i = 0; i < 3; i++) RUN_TESTp(both_sides_must_have_the_same_secret, i);
    RUN_TEST(a_short_secret_is_refused);
    RUN_TEST(the_environment_has_a_secret);
    RUN_TESTp(without_the_systems_generator_nothing_opens, "/dev/null");
    RUN_TESTp(without_the_systems_generator_nothing_opens, "/dev/there is no such device");
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    unsetenv("COMPGRAD_TCP_SECRET"); /* whoever runs this may have one */
    RUN_SUITE(strangers);
    RUN_SUITE(blame);
    RUN_SUITE(secrets);
    GREATEST_MAIN_END();
}
