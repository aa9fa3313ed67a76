/* compgrad_exchange.h: made of the files in src/ by "make headers"; change those, not this one. */

/* src/exchange/manual.h */
/* compgrad_exchange.h - the mean of all ranks' gradients, over your own transport.   part of compgrad, MIT licence

       #define COMPGRAD_IMPLEMENTATION                  // in exactly one .c or .cpp file
       #include "compgrad_exchange.h"                   // includes compgrad.h

       cg_transport t = CG_ZERO;                        // which rank this is, and how it sends bytes
       t.rank = rank; t.size = ranks; t.user = &my_sockets;
       t.sendrecv = my_sendrecv;                        // one callback is enough; the library builds the others from it

       cg_exchange_desc d = CG_ZERO;                    // a zero field means its default
       d.op = cg_topk(0.01f);
       d.tag.seed = 42; d.tag.step = step;

       size_t bytes = cg_exchange_memory(&d, &t, n);
       void *mem = malloc(bytes);                       // allocate once, use it in every step
       cg_report report;
       cg_status s = cg_exchange(&d, &t, grad, n, mem, bytes, &report);
       if (s != CG_OK) printf("rank %d: %s\n", report.rank, report.why);
       // grad is now the mean over ranks of the values that top-k kept of each gradient, with equal bits on every rank

   An exchange compresses x with the operator desc.op, moves the packets between ranks along a route, adds them, and
   overwrites x with the result. It performs no I/O itself: it describes one message after the other in a cg_io, and
   cg_exchange passes each one to your callbacks. If you have non-blocking calls or a communication thread, call
   cg_exchange_next yourself and move the messages in any way you like:

       cg_exchange_state e; cg_io io; int code = 0;
       s = cg_exchange_start(&e, &d, &t, grad, n, mem, bytes);          // compresses x, asks for no message yet
       while ((s = cg_exchange_next(&e, code, &io)) == CG_AGAIN)        // io is the next message
           code = cg_io_run(&t, &io);                                   // 0 when it has been sent and received

   WORDS
     rank           one of the N processes or threads that take part, 0 to N-1 as in MPI
     packet         a compressed vector (compgrad.h); D(packet) is the vector that decoding it gives
     fold           how the vectors of all ranks become one result: mean, sum, vote, or mean of contributors
     route          the path that packets take, and where they are added
     stripe         one of N consecutive parts of x, each owned by one rank; it begins at a multiple of 64 values
     first leg      moves the packets to the ranks that add them
     second leg     moves the reduced packets from there back to all ranks; desc.back is its operator
     carry          the residual of the second leg: what re-encoding a sum has lost, added to the next sum
     contribution   the part of a rank's x that is in the result; report.used holds it as packets
     opening record 64 bytes that each rank sends to all others before any packet moves

   TRANSPORT. Any of the four callbacks may be NULL, as long as one is given. A broadcast, allgather or allreduce that
   you do not give is built from the callbacks that you do: by binomial trees, Bruck's allgather and a ring over
   sendrecv, or over allgather or broadcast; if allreduce is the only callback, bytes travel as sums of integers below
   2^24, which are exact. The routes ring, tree, scatter, merge and region need sendrecv and return CG_E_UNSUPPORTED
   without it. Packets of different lengths need no allgatherv. Set CG_ALLREDUCE_AGREES if your allreduce returns
   identical bits on every rank. Otherwise compgrad does not use it for values, unless it is the only callback: then
   every rank takes rank 0's sum. N may be any number from 1.

   ENCODING A SUM AGAIN. On the routes ring, tree, scatter and server a sum of packets is itself sent as a packet, and
   encoding it may lose part of it. With desc.carry the loss goes into the next sum; without, it is subtracted from the
   contribution of the rank that encodes. These routes accept
     operators whose packets add exactly: f32 values, or levels with agreed scales (CG_AGREE_SCALES), without weights;
     sums encoded by an unbiased operator, desc.back or desc.op;
     any other operator only with desc.carry.
   Everything else is refused with CG_E_UNSUPPORTED, and report.why says what to change.

   MEMORY. You own every buffer. cg_exchange needs cg_exchange_memory() bytes of any alignment and never allocates. The
   buffer holds nothing between two exchanges except report.used of the last one.

   RESULTS. All ranks get the same bits, whatever their CPU, compiler or byte order. Packets are added in rank order
   (allgather, server, scatter) or in an order given by n and N alone; your own allreduce adds in its own order.

   CONTRIBUTION. report.used is one packet, or several that cover x from left to right; cg_used_decode decodes them.
   Subtract D(used) from the vector that you gave, and you have the error to feed back (compgrad_ef.h does this). For
   the fold mean on every route, up to rounding,
       sum over ranks of D(used)   + N (sum over ranks of carry before - carry after) = N mean
       sum over ranks of w D(used) + W (sum over ranks of carry before - carry after) = W mean        with weights
   where w is a rank's weight and W the sum of all weights. For the fold sum the factor N or W of the carries is 1.

   ERRORS. The opening records tell every rank the status, packet length, n, operator and tag of all ranks. If one rank
   has failed (NaN in x, bad argument, too little memory) or its n, operator or tag differ, all ranks return an error in
   the same step: the failed rank its own status, the others CG_E_PEER or CG_E_MISMATCH with that rank in report.rank.
   For a corrupt packet, or one of another step or vector, report.rank is its sender. The rank that finds it sends a
   failure packet in place of its own next packet, so that no rank waits for ever. If a callback returns non-zero this
   rank stops with CG_E_TRANSPORT, and report.code is the value returned.
   After any error x, carry, warm, into and model are unchanged, because they are written only after the last message.
   If only the very last message is lost, some ranks may report success and others an error; no protocol can avoid
   this. When the ranks that saw the error repeat the step, the tags differ, and the next exchange reports it.

   THREADS. Every function is re-entrant; one exchange (state, mem, x) belongs to one thread at a time, and cg_exchange
   calls the callbacks on the thread that called it. A cg_io has no channel number: run the exchanges of one transport
   one after the other, in the same order on all ranks. Exchanges that run at the same time each need a transport of
   their own, in MPI a communicator of their own.

   SAVING. Nothing outlives an exchange except the floats behind desc.carry and desc.warm. Save these with the model;
   cg_ef_save does it when a cg_ef owns them.

   ROUTES. N ranks; n values in x; k values selected; m values after sample and transform; L bytes of a packet of the
   whole vector; R bytes of the reduced packet (the same as L unless desc.back or an exact sum makes it longer or
   shorter: a sparse sum has up to N k values). "sends" counts the bytes of the rank that sends most, in packets
   alone; log2 N is rounded up, and stands for N-1 if you give a broadcast callback.
     route      sends                 what happens, and which operators it takes
     allgather  (N-1) L               Every packet goes to every rank, and every rank adds all of them. Takes any
                                      operator.
     ring       2 (N-1)/N R           Each stripe goes once around the ring; every rank decodes it, adds its own values
                                      and encodes the sum. An allgather of the stripes follows. Takes no matrices,
                                      PermK, given indices, op.k or side->scale.
     tree       R log2 N (rank 0)     Whole vectors go up a binomial tree, decoded, added and encoded at every node. A
                                      broadcast follows. Takes no matrices, PermK or given indices.
     scatter    (N-1)/N (L + R)       Each stripe goes to its owner, which adds all N and encodes the sum. An allgather
                                      of the stripes follows. Takes what ring takes. (CGX, qgZ, 1-bit SGD)
     server     L; leader R log2 N    Packets go to the leader (rank 0 by default), which broadcasts their exact sum
                                      or the mean encoded by desc.back. Takes no given indices.
     merge      L log2 N (rank 0)     gTop-k: up a tree, two packets become the k largest values of their sum. Values
                                      dropped there are missing from the contribution of the rank that drops them.
                                      Takes f32 values of topk, mstopk, dgc and sidco, and no weights.
     shared     L' log2 N (leader)    AR-Top-k: the leader broadcasts its indices (L' bytes), and an allreduce sums the
                + 2 (N-1)/N 4 k       values of all ranks there. Takes f32 values of topk, mstopk, dgc, sidco, chunked.
     region     about 2 (N-1)/N L     Ok-Topk: each rank sums one region of x; regions are cut so that they hold about
                + 4096 (N-1)          equally many indices. The k largest sums of all regions survive. Takes what
                                      merge takes.
     linear     2 (N-1)/N 4 m         An allreduce of f32 values. Takes dense, random-k, rotation, DCT and, in two
                                      rounds, low-rank (PowerSGD).
     auto       the first of these rules that applies:
                  fold contributors, given, PermK, op.k or ATOMO                               allgather
                  low-rank; f32 values without selection or value code                         linear
                  no sendrecv, N <= 2, (N-1) L <= 65536, or scales given in side               allgather
                  fold vote                                                                    scatter
                  a selection: of f32 values with (N-1) L > 8 n                                scatter, else allgather
                  an unbiased operator, packets that add exactly, carry or back                scatter, else allgather

   FOLDS. w is a rank's weight (desc.weight), W their sum, D its decoded packet.
     mean          (sum of w D) / W     every route
     sum           sum of w D           every route; a sum too large for f32 is Inf by allgather, and CG_E_NONFINITE
                                        on the other routes
     vote          majority of signs    cg_sign packets of up to 1024 ranks, + for a tie; no weights; allgather,
                                        server or scatter
     contributors  sum of D / ranks     each value is divided by the number of ranks whose packet has one there;
                   that sent one        allgather; no weights

   FORMATS, little-endian. The opening record:

     byte 0        4        8        16       24       32       40       44       48       52       56       64
         +---------+--------+--------+--------+--------+--------+--------+--------+--------+--------+--------+
         | "cgx1"  | status | n      | desc   | tag    | bytes  | weight | score  | scale  | 0      | hash   |
         +---------+--------+--------+--------+--------+--------+--------+--------+--------+--------+--------+

     status   cg_status u32 of the sender; n u64
     desc     hash u64 of N, both operators, route, fold, leader, CG_AGREE_SCALES and whether there are weights
     tag      hash u64 of seed, step and tensor
     bytes    u64, length of the sender's packets in all, 0 if they are made later
     weight   f32; score f32; scale f32, if CG_AGREE_SCALES has a single scale to agree on
     hash     u64 of the 56 bytes before it

     Preamble, 16 bytes before a packet whose length the receiver cannot compute: length u64, status u32, then u32: the
     rank that failed if status is not 0; otherwise a hash of the counts that all ranks agreed on (region) or 0.
     Failure packet, of the length that the receiver expects: "cgno", status u32, rank that failed u32, zeros.
     Scales to agree on, if there are several: f32 each, in the order of the packets.
     Scatter, if packet lengths vary: N lengths u64 per rank. Region: N bounds u64, N lengths u64, then four times 256
     counts u32 per rank. Allreduced values: f32, all NaN if the sender has failed.
     cg_exchange_layers: one opening record whose tag is a hash over all layers, then one record for each exchange. */

/* src/exchange/api.h */
#include "compgrad.h" /* outside the guard: its implementation has to come before the one below */

#ifndef COMPGRAD_EXCHANGE_H
#  define COMPGRAD_EXCHANGE_H

/* ---- transport ---- */

/* cg_transport.flags. Set CG_ALLREDUCE_AGREES if your allreduce returns identical bits on every rank; otherwise
   compgrad does not use it for values where another callback is given. */
enum { CG_ALLREDUCE_AGREES = 1 };

/* Your callbacks. A callback returns 0 when its message has been sent and received completely; any other value ends
   the exchange with CG_E_TRANSPORT and is kept in cg_report.code. Sender and receiver always name the same number of
   bytes. Callbacks may be NULL as long as one is given; the library builds those that are missing. */
typedef struct cg_transport {
    void *user;     /* passed to every callback, never read */
    int rank, size; /* 0 <= rank < size */
    uint32_t flags; /* CG_ALLREDUCE_AGREES or 0 */
    /* inout := the sum of inout over all ranks */
    int (*allreduce)(void *user, float *inout, size_t n);
    /* all := the bytes_each bytes of every rank, in rank order; mine is not inside all */
    int (*allgather)(void *user, const void *mine, void *all, size_t bytes_each);
    /* buf := buf of rank root */
    int (*broadcast)(void *user, void *buf, size_t bytes, int root);
    /* sends out to rank `to` and receives in from rank `from`, both at the same time; a negative rank means that there
       is nothing to send, or nothing to receive */
    int (*sendrecv)(void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from);
} cg_transport;

/* ---- what to exchange; the tables of routes and folds are in the manual above ---- */

typedef enum cg_route {
    CG_ROUTE_AUTO = 0,
    CG_ROUTE_ALLGATHER,
    CG_ROUTE_RING,
    CG_ROUTE_TREE,
    CG_ROUTE_SCATTER,
    CG_ROUTE_SERVER,
    CG_ROUTE_MERGE,
    CG_ROUTE_SHARED,
    CG_ROUTE_REGION,
    CG_ROUTE_LINEAR
} cg_route;
typedef enum cg_fold {
    CG_FOLD_MEAN = 0,
    CG_FOLD_SUM /* on the route allgather a sum too large for f32 is Inf */,
    CG_FOLD_VOTE /* majority of signs, + for a tie */,
    CG_FOLD_CONTRIBUTORS /* mean over the ranks whose packet has that value */
} cg_fold;
enum { CG_LEADER_BY_SCORE = -1 };
/* desc.flags */
enum {
    /* all ranks quantize with the largest scale of any rank, so that levels add as integers */
    CG_AGREE_SCALES = 1,
    /* this rank contributes zeros: it counts in N, but its x is not read. Only for the route allgather with the fold
       mean or sum, without CG_AGREE_SCALES */
    CG_ABSTAIN = 2
};

/* A zero field means its default. All fields must be equal on all ranks, except weight, score, carry, warm, side, into,
   model and the flag CG_ABSTAIN. The struct is copied; the memory that its pointers name must stay valid until the
   exchange has ended. */
typedef struct cg_exchange_desc {
    cg_op op; /* compresses x; zero: dense f32 */
    /* Operator of the second leg on the routes server and scatter. NULL: the sum itself if packets add exactly;
       otherwise f32 (server, or weighted f32 values) or op (scatter) */
    const cg_op *back;
    uint32_t route, fold; /* cg_route, cg_fold */
    cg_tag tag;           /* seed, step and tensor; rank is filled in */
    /* The factor of this rank in the fold: positive and not denormal. 0 means 1, and must be 0 on all ranks or none */
    float weight;
    /* r + 1: rank r leads. 0: rank 0 (server) or rank step % N (shared, STAR). CG_LEADER_BY_SCORE: the rank with the
       largest score (VAR) */
    int leader;
    float score; /* finite; matters only with CG_LEADER_BY_SCORE */
    /* The residual of the second leg: cg_exchange_carry() floats, zeros before the first step; read and updated. With
       CG_ROUTE_AUTO it must be given on all ranks or on none */
    float *carry;
    /* Low-rank: cols * r floats, zeros before the first step; the next power iteration starts from them */
    float *warm;
    const cg_extra *side; /* aux, scales, support and codecs for op; NULL: none */
    uint32_t flags;       /* CG_AGREE_SCALES, CG_ABSTAIN */
    float *into;          /* n floats that receive the result; NULL: x receives it */
    /* n floats that overlap neither x nor into, or NULL. If given, the exchange ends with a step of SGD,
       model -= rate * result, instead of writing a result, and may use into (or x) as scratch. A sum of sparse f32
       packets by allgather changes only the values of model that some rank sent, and leaves into and x alone. An Inf in
       the result (CG_FOLD_SUM) reaches model. */
    float *model;
    float rate; /* of model: finite, and 0 means 0; must be equal on all ranks, which is not checked */
} cg_exchange_desc;

typedef struct cg_report {
    int rank;        /* the rank that caused the error, or -1 if that is unknown or there was none */
    int code;        /* what the failed callback returned, else 0 */
    const char *why; /* a sentence, constant text */
    /* Bytes sent and received by this rank. Exact for sendrecv. For your own collectives the least that they can move:
       allgather (N-1) bytes_each in both directions, broadcast N-1 times the buffer out of the root and once into every
       other rank, allreduce 2 (N-1)/N of its bytes in both directions */
    uint64_t bytes_out, bytes_in;
    uint32_t rounds;  /* callbacks that succeeded */
    uint32_t route;   /* the route taken, which CG_ROUTE_AUTO chose */
    const void *used; /* this rank's contribution, in mem until mem is used again; NULL after an error */
    size_t used_len;
} cg_report;

/* ---- messages, for those who drive an exchange themselves ---- */

typedef enum cg_io_kind {
    CG_IO_NONE = 0,
    CG_IO_ALLREDUCE,
    CG_IO_ALLGATHER,
    CG_IO_BROADCAST,
    CG_IO_SENDRECV
} cg_io_kind;
typedef struct cg_io { /* the next message; its buffers belong to the exchange */
    uint32_t kind;     /* cg_io_kind: the callback that it corresponds to */
    int to, from;      /* sendrecv: the two peers, negative: none. broadcast: from is the root */
    const void *out;   /* sendrecv: bytes to send. allgather: mine */
    size_t out_bytes;
    void *in;        /* sendrecv: bytes to receive. allgather: all. allreduce: the floats. broadcast: the buffer */
    size_t in_bytes; /* allgather: size * out_bytes. allreduce: 4 n */
} cg_io;

/* An exchange in progress. You allocate it and must not move it until the exchange has ended; read it only through the
   functions below. */
typedef struct cg_exchange_state cg_exchange_state;

/* ---- one exchange ---- */

/* Bytes of mem that cg_exchange and cg_exchange_start need on this rank. 0: the sizes overflow, the transport has no
   callback or a bad rank, or the description is refused. Call cg_exchange all the same: it tells the other ranks, for
   which it needs no memory, and says why in its report. With more than 16 ranks telling them does need memory, and a
   refused description gives those bytes instead of 0. One rank alone may be refused (a leader without carry). */
CG_API_ size_t cg_exchange_memory(const cg_exchange_desc *desc, const cg_transport *transport, size_t n);
/* Floats that desc.carry must have on this rank, computed as if carry were given; 0: none, or the description is
   refused. */
CG_API_ size_t cg_exchange_carry(const cg_exchange_desc *desc, const cg_transport *transport, size_t n);
/* x[0..n) := the fold over all ranks. Every rank must call it, even one that has nothing to send; it returns when this
   rank's last message has been moved. x and mem may have any alignment; x may be NULL only if n is 0; report may be
   NULL. With fewer than cg_exchange_memory() bytes it tells the other ranks and returns CG_E_MEMORY (with more than 16
   ranks, mem must have room for their opening records to do so). After an error x, into, model, carry and warm are
   unchanged. */
CG_API_ CG_CHECKED_ cg_status cg_exchange(const cg_exchange_desc *desc, const cg_transport *transport, float *x,
    size_t n, void *mem, size_t bytes, cg_report *report);

/* ---- one exchange, message by message ---- */

/* Begins an exchange: copies desc and transport, checks them and compresses x. Moves no message. state, x and mem must
   stay in place and unchanged until cg_exchange_next has returned something other than CG_AGAIN. It fails only if the
   other ranks cannot be told: a NULL argument, a bad rank, no callback (CG_E_ARG), or more than 16 ranks and mem too
   small even for the opening. Every other error is sent to all ranks and returned by cg_exchange_next. */
CG_API_ CG_CHECKED_ cg_status cg_exchange_start(cg_exchange_state *state, const cg_exchange_desc *desc,
    const cg_transport *transport, float *x, size_t n, void *mem, size_t bytes);
/* CG_AGAIN: move the message *io, then call again with last_code = 0, or with your own error code if moving it failed.
   CG_OK: the exchange has ended and x is the result. Any other status: it has ended with that error, and x is as it
   was. last_code of the first call is ignored. CG_E_STATE: the exchange has not begun, or has ended before. */
CG_API_ CG_CHECKED_ cg_status cg_exchange_next(cg_exchange_state *state, int last_code, cg_io *io);
/* Copies the report; complete after the exchange has ended, and valid as long as mem for report->used. */
CG_API_ void cg_exchange_report(const cg_exchange_state *state, cg_report *report);
/* Moves one message through the callback of its kind, which must be given; returns what the callback returns. */
CG_API_ int cg_io_run(const cg_transport *transport, const cg_io *io);

/* y = beta*y + alpha*D(used), for report.used. side: desc.side of the exchange, if op needs support or codecs. All
   packets are verified first: after an error y is unchanged. CG_E_MISMATCH: they do not cover n values. */
CG_API_ CG_CHECKED_ cg_status cg_used_decode(
    const cg_extra *side, const void *used, size_t len, float alpha, float beta, float *y, size_t n);

/* ---- layer by layer ---- */

/* One layer of cg_exchange_layers: you fill in desc, x and n, and it fills in status and report. */
typedef struct cg_layer {
    cg_exchange_desc desc;
    float *x;
    size_t n;
    cg_status status;
    cg_report report;
} cg_layer;
/* Bytes of mem for the same layers; 0: the sizes overflow, or the transport is unusable. */
CG_API_ size_t cg_exchange_layers_memory(
    const cg_layer *layers, size_t count, size_t small, const cg_transport *transport);
/* Exchanges several vectors, each with an operator, route and tag of its own. All their opening records travel in two
   allgathers; then one exchange follows the other. Layers with fewer than `small` values travel together as one dense
   vector, if their fold is the mean or the sum and if fold and weight equal those of the first such layer.
   If a rank cannot start one of its layers (NaN, a refused operator), no layer is exchanged. A layer that fails later
   keeps its x and model, and the others are exchanged nevertheless, except after CG_E_TRANSPORT. Returns the first
   failure. *report has the sums of bytes and rounds, and rank, code and why of that failure; each layer's used is in
   layers[i].report. */
CG_API_ CG_CHECKED_ cg_status cg_exchange_layers(cg_layer *layers, size_t count, size_t small,
    const cg_transport *transport, void *mem, size_t bytes, cg_report *report);

struct cg_exchange_state {
    cg_exchange_desc desc;
    cg_transport transport;
    float *x, *y; /* in, and out */
    size_t n;
    cg_report report;
    cg_status status; /* this rank's first failure */
    cg_io io;         /* under way, if moving */
    /* where next goes on; scales are agreed on; records are here already */
    int moving, stage, line, settled, opened;
    uint32_t route;
    cg_op back; /* of sums that are encoded again */
    /* sums are exact; packets of x; whether (op), (result) have a length known to all */
    int exact, parts, fixed, closed_fixed, root;
    uint64_t reach;    /* agreed scales: the largest sum of levels */
    uint64_t scales;   /* agreed scales, of all parts */
    double weights;    /* of all ranks */
    float over;        /* what a result is multiplied by */
    size_t most, keep; /* selections: values of a packet at most; how many survive */
    struct {           /* a collective, and how it is carried out */
        uint32_t ask, how;
        int root, step, mask; /* of a hop: from, -, to */
        const uint8_t *mine;
        uint8_t *buf;
        const uint64_t *sizes;
        uint64_t longest;
        size_t bytes, at, many;
    } c;
    struct {
        const uint8_t *out;
        uint8_t *in;
        size_t out_len, in_len, cap;
        int to, from;
    } move;
    const uint8_t *current; /* the packet that is being added to */
    size_t current_len, result_len, result_cap;
    int t, flip, lost, hops;
    /* region: bits of the smallest magnitude that survives, so far; and how many are left below */
    uint32_t key;
    uint64_t left;
    uint32_t check; /* of what ranks found out together: goes with a note */
    size_t lost_len;
    uint8_t *records, *own, *inbox, *in, *buf[2], *lose[2], *used, *result, *scratch, *bounce, *notes, *lists;
    uint64_t *sizes, *part_at, *bounds, *counts;
    const void **packet;
    struct cg_decoder_ *decoder;
    size_t *len, used_cap, lose_cap, scratch_bytes, bounce_bytes, list_room, used_len;
    float *sum, *agreed;
    double *work;
    uint8_t *gathered, *later, note[2][16], record[64]; /* later: the bounce buffer, after the opening */
    size_t later_bytes;
    struct cg_producer_ *fill;       /* x is still to be made */
    struct cg_sparse_cursor_ *lanes; /* allgather of sparse packets: where each is read */
    /* tiny: for the opening, which must do with little; none: x, where there is none */
    float tiny[256], none;
    uint64_t spare_sizes[16]; /* the opening of few ranks, where there is no memory */
    uint8_t spare[2 * 16 * 64];
};

#endif /* COMPGRAD_EXCHANGE_H */

/* src/exchange/begin.h */
/* ============================================================================================== */
#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_EXCHANGE_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_EXCHANGE_IMPLEMENTED_

/* src/core/base/fp_begin.h */
/* fp_begin: strict floating point from here to fp_end, whatever flags the includer compiles with

   Offers   pragmas: no contraction, no reassociation, no fast math
   Needs    nothing
   Touches  the compiler's floating-point state, which fp_end gives back; every header has both once
   All code whose results are part of a packet stands between the two. */
#if defined(__clang__)
#  if defined(__x86_64__) || defined(__i386__)
#    pragma float_control(push)
#    pragma float_control(precise, on)
#  endif
#  pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#  pragma GCC push_options
#  pragma GCC optimize("no-fast-math", "fp-contract=off")
#endif

/* src/exchange/ranks.h */
/* ---- >>ranks ---- */

enum { CG_RECORD_BYTES_ = 64, CG_PREAMBLE_BYTES_ = 16, CG_FALLBACK_RANKS_ = 16 };
typedef cg_exchange_state cg_ex_; /* in here */
#define CG_STATE_ROOM_ ((sizeof(cg_exchange_state) + 63) / 64 * 64)

static int cg_wrap_(const cg_ex_ *x, int rank) { /* into [0, N), from at most N off */
    const int size = x->transport.size;
    return rank < 0 ? rank + size : rank >= size ? rank - size : rank;
}
static size_t cg_ranks_(const cg_ex_ *x) { return (size_t)x->transport.size; }
static void cg_ex_fail_(cg_ex_ *x, cg_status status, int rank, const char *why) {
    if (x->status != CG_OK) return; /* the first one counts */
    x->status = status;
    x->report.rank = rank;
    x->report.why = why;
}
/* Where stripe p of so many begins: whole runs of 64 values. */
static size_t cg_stripe_offset_(size_t n, size_t parts, size_t p) {
    const size_t runs = n / 64 + (n % 64 != 0), each = runs / parts, rest = runs % parts;
    return cg_min_(n, 64 * (each * p + (rest * p) / parts));
}
static size_t cg_stripe_start_(const cg_ex_ *x, int p) { return cg_stripe_offset_(x->n, (size_t)x->parts, (size_t)p); }
static size_t cg_stripe_n_(const cg_ex_ *x, int p) { return cg_stripe_start_(x, p + 1) - cg_stripe_start_(x, p); }
/* Every leg and part has randomness of its own, or two roundings of one value would not be independent. */
static cg_tag cg_stripe_tag_(const cg_ex_ *x, int part, int leg) {
    cg_tag tag = x->desc.tag;
    if (x->parts > 1 || leg)
        tag.seed = cg_mix64_(tag.seed ^ cg_mix64_((uint64_t)(part + 1) + (uint64_t)leg * CG_GOLDEN_));
    return tag;
}
static float cg_weight_of_(const cg_ex_ *x, size_t rank) {
    return cg_as_float_(cg_get32_(x->records + rank * CG_RECORD_BYTES_ + 40));
}
/* What a rank's values are multiplied by in a result. */
static float cg_alpha_(const cg_ex_ *x, size_t rank) {
    const float w = cg_weight_of_(x, rank);
    return x->desc.fold == CG_FOLD_SUM ? w : (float)((double)w / x->weights);
}

/* A step of desc.model by the result v, or by one value of it: the same bits. */
static int cg_rate_ok_(const cg_exchange_desc *d) { return !d->model || cg_is_finite_(d->rate); }
static void cg_model_step_(const cg_exchange_desc *d, const float *v, size_t n) {
    if (d->model && n) cg_kernels_now_()->axpby(v, n, -d->rate, 1.0f, d->model, 0);
}
CG_INLINE_ void cg_model_step_at_(const cg_exchange_desc *d, size_t i, float v) {
    cg_store_(d->model, i, cg_plus_(cg_load_(d->model, i), cg_times_(-d->rate, v)));
}

/* src/exchange/collectives.h */
/* ---- >>collectives: from what the transport has ---- */

enum { CG_COLL_NONE_, CG_COLL_ALLGATHER_, CG_COLL_BROADCAST_, CG_COLL_ALLREDUCE_, CG_COLL_SENDRECV_ };
/* the callback of that name, or one of the others */
enum { CG_VIA_OWN_CALLBACK_, CG_VIA_SENDRECV_, CG_VIA_ALLGATHER_, CG_VIA_BROADCAST_, CG_VIA_ALLREDUCE_ };

/* Floats as the wire has them, and back. */
static void cg_floats_swap_le_(float *v, size_t n) {
    for (size_t i = 0; CG_BIG_ENDIAN_ && i < n; i++) {
        uint32_t u = cg_get32_((const uint8_t *)v + 4 * i);
        memcpy((uint8_t *)v + 4 * i, &u, 4);
    }
}
static void cg_floats_add_le_(float *acc, const float *in, size_t n) { /* both as on the wire */
#if CG_BIG_ENDIAN_
    for (size_t i = 0; i < n; i++)
        cg_put32_((uint8_t *)acc + 4 * i,
            cg_as_bits_(cg_plus_(cg_as_float_(cg_get32_((const uint8_t *)acc + 4 * i)),
                cg_as_float_(cg_get32_((const uint8_t *)in + 4 * i)))));
#else
    cg_kernels_now_()->axpby(in, n, 1.0f, 1.0f, acc, 0);
#endif
}
static uint32_t cg_via_fallback_(const cg_transport *t) {
    return (uint32_t)(t->sendrecv ? CG_VIA_SENDRECV_
            : t->allgather        ? CG_VIA_ALLGATHER_
            : t->broadcast        ? CG_VIA_BROADCAST_
                                  : CG_VIA_ALLREDUCE_);
}
static uint32_t cg_via_(const cg_transport *t, int itself) {
    return itself ? (uint32_t)CG_VIA_OWN_CALLBACK_ : cg_via_fallback_(t);
}

static void cg_collective_begin_(
    cg_ex_ *x, uint32_t ask, uint32_t how, const void *mine, void *buf, size_t bytes, int root) {
    memset(&x->c, 0, sizeof x->c);
    x->c.ask = ask;
    x->c.how = how;
    x->c.mine = (const uint8_t *)mine;
    x->c.buf = (uint8_t *)buf;
    x->c.bytes = bytes;
    x->c.root = root;
}
/* Everybody's `mine`, sizes[rank] bytes, known to all; buf has room for N of the longest. Find them with
   cg_gathered_. */
static void cg_allgather_begin_(cg_ex_ *x, const void *mine, const uint64_t *sizes, void *buf) {
    const cg_transport *t = &x->transport;
    uint64_t longest = 0, all = 0;
    uint32_t how = cg_via_fallback_(t);
    for (size_t q = 0; q < cg_ranks_(x); q++) {
        longest = sizes[q] > longest ? sizes[q] : longest;
        all += sizes[q];
    }
    /* the callback moves N times the longest: too much where lengths differ widely */
    if (t->allgather && (how == CG_VIA_ALLGATHER_ || longest * cg_ranks_(x) <= all + all / 4))
        how = CG_VIA_OWN_CALLBACK_;
    cg_collective_begin_(x, CG_COLL_ALLGATHER_, how, mine, buf, all == longest * cg_ranks_(x) ? (size_t)longest : 0, 0);
    x->c.sizes = sizes;
    x->c.longest = longest;
}
static void cg_allgather_equal_begin_(cg_ex_ *x, const uint8_t *mine, uint64_t each, uint8_t *all) {
    for (size_t q = 0; q < cg_ranks_(x); q++) x->sizes[q] = each;
    cg_allgather_begin_(x, mine, x->sizes, all);
}
static void cg_broadcast_begin_(cg_ex_ *x, void *buf, size_t bytes, int root) {
    cg_collective_begin_(
        x, CG_COLL_BROADCAST_, cg_via_(&x->transport, x->transport.broadcast != NULL), NULL, buf, bytes, root);
}
static void cg_allreduce_begin_(cg_ex_ *x, float *v, size_t n) {
    const cg_transport *t = &x->transport;
    const int itself = t->allreduce &&
        ((t->flags & CG_ALLREDUCE_AGREES) || !(t->sendrecv || t->allgather || t->broadcast));
    cg_collective_begin_(x, CG_COLL_ALLREDUCE_, cg_via_(t, itself), NULL, v, 4 * n, 0);
}
static void cg_sendrecv_begin_(
    cg_ex_ *x, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    cg_collective_begin_(x, CG_COLL_SENDRECV_, CG_VIA_OWN_CALLBACK_, out, in, to < 0 ? 0 : out_bytes, from);
    x->c.many = from < 0 ? 0 : in_bytes;
    x->c.mask = to;
}
static int cg_io_set_(
    cg_io *io, uint32_t kind, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    io->kind = kind;
    io->out = out;
    io->out_bytes = out_bytes;
    io->to = to;
    io->in = in;
    io->in_bytes = in_bytes;
    io->from = from;
    return 1;
}
/* Bytes of the ranks before the i-th, counted from `first` on and around. */
static size_t cg_sizes_prefix_sum_(const cg_ex_ *x, size_t first, size_t i) {
    uint64_t at = 0;
    if (x->c.bytes) return i * x->c.bytes; /* all of them equal */
    for (size_t j = 0; j < i; j++) at += x->c.sizes[(first + j) % cg_ranks_(x)];
    return (size_t)at;
}
/* Where the last gather left rank q's bytes. */
static const uint8_t *cg_gathered_(const cg_ex_ *x, size_t q) {
    const size_t me = (size_t)x->transport.rank, size = cg_ranks_(x);
    if (q == me) return x->c.mine;
    if (x->c.how == CG_VIA_SENDRECV_) return x->c.buf + cg_sizes_prefix_sum_(x, me, (q + size - me) % size);
    return x->c.buf + (x->c.how == CG_VIA_ALLREDUCE_ ? cg_sizes_prefix_sum_(x, 0, q) : q * (size_t)x->c.longest);
}
/* Bytes as exact sums: three to a float, zeros from all ranks but one. [at, at + many) of a string of which this
   rank has [from, to), at `mine`. */
static void cg_bytes_to_floats_(float *v, const uint8_t *mine, size_t from, size_t to, size_t at, size_t many) {
    for (size_t i = 0; i < many; i += 3) {
        uint32_t u = 0;
        for (size_t j = 0; j < 3 && i + j < many; j++)
            if (at + i + j >= from && at + i + j < to) u |= (uint32_t)mine[at + i + j - from] << 8 * j;
        v[i / 3] = (float)u;
    }
}
static int cg_floats_to_bytes_(const float *v, uint8_t *out, size_t many) {
    for (size_t i = 0; i < many; i += 3) {
        uint32_t u;
        if (!(v[i / 3] >= 0.0f && v[i / 3] < 16777216.0f)) return 0;
        u = (uint32_t)v[i / 3];
        for (size_t j = 0; j < 3 && i + j < many; j++) out[i + j] = (uint8_t)(u >> 8 * j);
    }
    return 1;
}
/* Each of these asks for the next message, 1, or has finished, 0. */
static int cg_bytes_by_allreduce_step_(cg_ex_ *x, cg_io *io, size_t from, size_t to, size_t total) {
    const uint8_t *mine = x->c.ask == CG_COLL_BROADCAST_ ? x->c.buf : x->c.mine;
    if (x->c.step++) {
        /* the root has it, and nobody would check it here again */
        if (x->c.ask == CG_COLL_BROADCAST_ && to > from) {
        } else if (!cg_floats_to_bytes_((const float *)(void *)x->bounce, x->c.buf + x->c.at, x->c.many)) {
            /* and on: the others still add */
            cg_ex_fail_(x, CG_E_CORRUPT, -1, "the allreduce callback did not return a sum");
        }
        x->c.at += x->c.many;
    }
    if (x->c.at == total) return 0;
    x->c.many = cg_min_(total - x->c.at, x->bounce_bytes / 4 * 3);
    cg_bytes_to_floats_((float *)(void *)x->bounce, mine, from, to, x->c.at, x->c.many);
    return cg_io_set_(io, CG_IO_ALLREDUCE, NULL, 0, -1, x->bounce, (x->c.many + 2) / 3 * 4, -1);
}
static int cg_allgather_step_(cg_ex_ *x, cg_io *io) {
    const size_t size = cg_ranks_(x), me = (size_t)x->transport.rank;
    const size_t longest = (size_t)x->c.longest, mine = (size_t)x->c.sizes[me];
    size_t d, many;
    switch (x->c.how) {
    case CG_VIA_OWN_CALLBACK_:
        if (x->c.step++ || !longest) return 0;
        return cg_io_set_(io, CG_IO_ALLGATHER, x->c.mine, longest, -1, x->c.buf, size * longest, -1);
    case CG_VIA_SENDRECV_: /* Bruck: blocks [me, me + d) are here; d doubles */
        if (!x->c.step) memcpy(x->c.buf, x->c.mine, mine);
        d = (size_t)(x->c.step = x->c.step ? 2 * x->c.step : 1);
        if (d >= size) return 0;
        many = cg_min_(d, size - d);
        cg_io_set_(io, CG_IO_SENDRECV, x->c.buf, cg_sizes_prefix_sum_(x, me, many), (int)((me + size - d) % size),
            x->c.buf + cg_sizes_prefix_sum_(x, me, d), cg_sizes_prefix_sum_(x, (me + d) % size, many),
            (int)((me + d) % size));
        if (!io->out_bytes) io->to = -1;
        if (!io->in_bytes) io->from = -1;
        return 1;
    case CG_VIA_BROADCAST_:
        if (!x->c.step) memcpy(x->c.buf + me * longest, x->c.mine, mine);
        while ((size_t)x->c.step < size) {
            const size_t root = (size_t)x->c.step++;
            if (x->c.sizes[root])
                return cg_io_set_(
                    io, CG_IO_BROADCAST, NULL, 0, -1, x->c.buf + root * longest, (size_t)x->c.sizes[root], (int)root);
        }
        return 0;
    default:
        return cg_bytes_by_allreduce_step_(x, io, cg_sizes_prefix_sum_(x, 0, me), cg_sizes_prefix_sum_(x, 0, me) + mine,
            cg_sizes_prefix_sum_(x, 0, size));
    }
}
static int cg_broadcast_step_(cg_ex_ *x, cg_io *io) {
    const int size = x->transport.size, root = x->c.root, me = cg_wrap_(x, x->transport.rank - root);
    if (!x->c.bytes) return 0;
    switch (x->c.how) {
    case CG_VIA_OWN_CALLBACK_:
        return x->c.step++ ? 0 : cg_io_set_(io, CG_IO_BROADCAST, NULL, 0, -1, x->c.buf, x->c.bytes, root);
    /* binomial: from the rank without my lowest bit, to those with one bit below it */
    case CG_VIA_SENDRECV_:
        if (!x->c.step++) {
            x->c.mask = 1;
            while (x->c.mask < size && !(me & x->c.mask)) x->c.mask <<= 1;
            if (me)
                return cg_io_set_(
                    io, CG_IO_SENDRECV, NULL, 0, -1, x->c.buf, x->c.bytes, cg_wrap_(x, me - x->c.mask + root));
        }
        while ((x->c.mask >>= 1) > 0)
            if (me + x->c.mask < size)
                return cg_io_set_(
                    io, CG_IO_SENDRECV, x->c.buf, x->c.bytes, cg_wrap_(x, me + x->c.mask + root), NULL, 0, -1);
        return 0;
    case CG_VIA_ALLGATHER_:
        if (x->c.step++) {
            if (me) memcpy(x->c.buf + x->c.at, x->bounce + (size_t)root * x->c.many, x->c.many);
            x->c.at += x->c.many;
        }
        if (x->c.at == x->c.bytes) return 0;
        x->c.many = cg_min_(x->c.bytes - x->c.at, x->bounce_bytes / cg_ranks_(x));
        return cg_io_set_(
            io, CG_IO_ALLGATHER, x->c.buf + x->c.at, x->c.many, -1, x->bounce, cg_ranks_(x) * x->c.many, -1);
    default: return cg_bytes_by_allreduce_step_(x, io, 0, me ? 0 : x->c.bytes, x->c.bytes);
    }
}
/* A ring: stripes are summed on their way around, then handed on. */
static int cg_allreduce_ring_step_(cg_ex_ *x, cg_io *io) {
    const int size = x->transport.size, me = x->transport.rank;
    const size_t n = x->c.bytes / 4, parts = cg_ranks_(x);
    float *v = (float *)(void *)x->c.buf;
    size_t out, in;
    int t = x->c.step++;
    if (t > 0 && t < size) { /* what came in the step before */
        in = (size_t)(((me - t) % size + size) % size);
        cg_floats_add_le_(v + cg_stripe_offset_(n, parts, in), (const float *)(void *)x->bounce,
            cg_stripe_offset_(n, parts, in + 1) - cg_stripe_offset_(n, parts, in));
    }
    if (t == 2 * (size - 1)) return 0;
    /* after size - 1 steps stripe me + 1 is whole */
    out = (size_t)(((me - t + (t >= size - 1 ? size : 0)) % size + size) % size);
    in = (out + parts - 1) % parts;
    cg_io_set_(io, CG_IO_SENDRECV, v + cg_stripe_offset_(n, parts, out),
        4 * (cg_stripe_offset_(n, parts, out + 1) - cg_stripe_offset_(n, parts, out)), cg_wrap_(x, me + 1),
        t < size - 1 ? (void *)x->bounce : (void *)(v + cg_stripe_offset_(n, parts, in)),
        4 * (cg_stripe_offset_(n, parts, in + 1) - cg_stripe_offset_(n, parts, in)), cg_wrap_(x, me - 1));
    if (!io->out_bytes) io->to = -1;
    if (!io->in_bytes) io->from = -1;
    return 1;
}
/* Pieces of everybody's, added in rank order. */
static void cg_allreduce_add_pieces_(cg_ex_ *x) {
    float *v = (float *)(void *)(x->c.buf + x->c.at);
    for (size_t q = 0; q < cg_ranks_(x); q++) {
        const float *in = (const float *)(void *)(x->bounce + q * x->c.many);
        if (q) cg_floats_add_le_(v, in, x->c.many / 4);
        else memcpy(v, in, x->c.many);
    }
    x->c.at += x->c.many;
}
static int cg_allreduce_step_(cg_ex_ *x, cg_io *io) {
    const size_t size = cg_ranks_(x);
    const uint32_t how = x->c.how;
    if (!x->c.bytes) return 0;
    if (how == CG_VIA_OWN_CALLBACK_) {
        if (!x->c.step++) return cg_io_set_(io, CG_IO_ALLREDUCE, NULL, 0, -1, x->c.buf, x->c.bytes, -1);
        if (x->transport.flags & CG_ALLREDUCE_AGREES) return 0;
        /* it may not agree, and there is nothing else: rank 0's counts */
        cg_floats_swap_le_((float *)(void *)x->c.buf, x->c.bytes / 4);
        cg_collective_begin_(x, CG_COLL_BROADCAST_, CG_VIA_ALLREDUCE_, NULL, x->c.buf, x->c.bytes, 0);
        x->c.mask = -1;
        return cg_broadcast_step_(x, io);
    }
    if (!x->c.step) cg_floats_swap_le_((float *)(void *)x->c.buf, x->c.bytes / 4);
    if (how == CG_VIA_SENDRECV_) {
        if (cg_allreduce_ring_step_(x, io)) return 1;
    } else if (how == CG_VIA_ALLGATHER_) {
        if (x->c.step++) cg_allreduce_add_pieces_(x);
        x->c.many = cg_min_(x->c.bytes - x->c.at, x->bounce_bytes / size / 4 * 4);
        if (x->c.many)
            return cg_io_set_(io, CG_IO_ALLGATHER, x->c.buf + x->c.at, x->c.many, -1, x->bounce, size * x->c.many, -1);
    } else { /* a piece from every rank in turn */
        const size_t root = (size_t)x->c.step % size;
        if (x->c.step && !root) cg_allreduce_add_pieces_(x);
        if (!root) x->c.many = cg_min_(x->c.bytes - x->c.at, x->bounce_bytes / size / 4 * 4);
        if (x->c.many) {
            x->c.step++;
            if (root == (size_t)x->transport.rank) memcpy(x->bounce + root * x->c.many, x->c.buf + x->c.at, x->c.many);
            return cg_io_set_(io, CG_IO_BROADCAST, NULL, 0, -1, x->bounce + root * x->c.many, x->c.many, (int)root);
        }
    }
    cg_floats_swap_le_((float *)(void *)x->c.buf, x->c.bytes / 4);
    return 0;
}
static int cg_collective_step_(cg_ex_ *x, cg_io *io) {
    if (x->c.ask == CG_COLL_SENDRECV_) {
        if (x->c.step++ || (!x->c.bytes && !x->c.many)) return 0;
        return cg_io_set_(io, CG_IO_SENDRECV, x->c.mine, x->c.bytes, x->c.bytes ? x->c.mask : -1, x->c.buf, x->c.many,
            x->c.many ? x->c.root : -1);
    }
    if (x->transport.size == 1) return 0; /* a sum, and a message to everybody, are there already */
    if (x->c.ask == CG_COLL_ALLGATHER_) return cg_allgather_step_(x, io);
    if (x->c.ask == CG_COLL_ALLREDUCE_) return cg_allreduce_step_(x, io);
    if (cg_broadcast_step_(x, io)) return 1;
    if (x->c.mask == -1) cg_floats_swap_le_((float *)(void *)x->c.buf, x->c.bytes / 4);
    return 0;
}
static int cg_collective_next_(cg_ex_ *x, cg_io *io) { /* nobody is called to move nothing */
    int more;
    do more = cg_collective_step_(x, io);
    while (more && io->kind == CG_IO_SENDRECV && io->to < 0 && io->from < 0);
    return more;
}

/* src/exchange/rules.h */
/* ---- >>rules: what goes along which route ---- */

static int cg_is_unbiased_(const cg_op *op) {
    const cg_stage *q = &op->quantize;
    if (op->sample.flags & CG_FLAG_UNSCALED) return 0;
    if (op->transform.id == CG_TRANSFORM_LOWRANK) return 0;
    if (op->select.id && op->select.id != CG_SELECT_WANGNI && op->select.id != CG_SELECT_WANGNIVAR &&
        op->select.id != CG_SELECT_BLOCKS)
        return 0;
    switch (q->id) {
    case 0: return 1;
    case CG_QUANTIZE_MINMAX:
    case CG_QUANTIZE_ABSMAX:
    case CG_QUANTIZE_LEVELS:
    case CG_QUANTIZE_DITHER:
    case CG_QUANTIZE_NATURAL: return !(q->flags & CG_FLAG_NEAREST);
    case CG_QUANTIZE_TERNGRAD: return !q->flags;
    case CG_QUANTIZE_LLOYD: return op->transform.arg == 2; /* two rounds: nearly */
    default: return 0;
    }
}
static int cg_is_f32_(const cg_op *op) { return !op->quantize.id; }
static int cg_is_sparse_f32_(const cg_op *op) {
    return op->select.id && op->select.id != CG_SELECT_GIVEN && !op->sample.id && !op->transform.id && cg_is_f32_(op);
}
/* Is a selection's number of values about known? */
static int cg_has_target_k_(const cg_op *op) {
    return cg_has_fixed_k_(op) || op->select.id == CG_SELECT_CHUNKED || op->select.id == CG_SELECT_DGC ||
        op->select.id == CG_SELECT_SIDCO;
}
/* Is a packet's length known from op and n? */
static int cg_has_fixed_len_(const cg_op *op) {
    if (op->code.arg || op->code.id == CG_CODE_GOLOMB || cg_is_user_codec_(&op->quantize) ||
        op->sample.id == CG_SAMPLE_PERMK)
        return 0;
    return !op->select.id || cg_has_fixed_k_(op) || op->select.id == CG_SELECT_CHUNKED;
}
/* Can cg_reduce add such packets? Levels only on a grid that all ranks agreed on. */
static int cg_is_reducible_(const cg_ex_ *x, const cg_op *op) {
    unsigned bits;
    if (cg_is_matrix_op_(op) || op->sample.id == CG_SAMPLE_PERMK || op->select.id == CG_SELECT_GIVEN ||
        cg_is_user_codec_(&op->quantize))
        return 0;
    if (cg_is_f32_(op)) return 1;
    return cg_grid_zero_symbol_(&op->quantize, &bits) && !op->code.arg && !op->select.id &&
        ((x->desc.flags & CG_AGREE_SCALES) || (x->desc.side && x->desc.side->scale));
}
static int cg_is_striped_(uint32_t route) { return route == CG_ROUTE_RING || route == CG_ROUTE_SCATTER; }
static int cg_has_back_(const cg_ex_ *x) {
    return x->desc.back && (x->route == CG_ROUTE_SERVER || x->route == CG_ROUTE_SCATTER);
}

static uint32_t cg_auto_route_(const cg_ex_ *x) {
    const cg_op *op = &x->desc.op;
    const uint64_t all = cg_mul_sat_(cg_bound_(op, x->desc.side, x->n), (uint64_t)x->transport.size - 1);
    const int once = cg_is_unbiased_(op) || cg_is_reducible_(x, op) || x->desc.carry;
    if (x->desc.fold == CG_FOLD_CONTRIBUTORS || op->select.id == CG_SELECT_GIVEN || op->sample.id == CG_SAMPLE_PERMK ||
        op->k)
        return CG_ROUTE_ALLGATHER;
    if (op->transform.id == CG_TRANSFORM_LOWRANK) return CG_ROUTE_LINEAR;
    if (cg_is_matrix_op_(op)) return CG_ROUTE_ALLGATHER;
    if (cg_is_f32_(op) && !op->select.id && !op->code.arg) return CG_ROUTE_LINEAR;
    if (!x->transport.sendrecv || x->transport.size <= 2 || all <= 65536 || (x->desc.side && x->desc.side->scale))
        return CG_ROUTE_ALLGATHER;
    if (x->desc.fold == CG_FOLD_VOTE) return CG_ROUTE_SCATTER;
    if (op->select.id)
        return cg_is_reducible_(x, op) && all > cg_mul_sat_(8, x->n) ? CG_ROUTE_SCATTER : CG_ROUTE_ALLGATHER;
    return once || x->desc.back ? CG_ROUTE_SCATTER : CG_ROUTE_ALLGATHER;
}
/* Why op cannot go this way, or NULL. */
static const char *cg_refused_route_(const cg_ex_ *x) {
    const cg_op *op = &x->desc.op;
    const uint32_t route = x->route;
    const int whole = cg_is_matrix_op_(op) || op->sample.id == CG_SAMPLE_PERMK || op->select.id == CG_SELECT_GIVEN;
    if (!x->transport.sendrecv && x->transport.size > 1 &&
        (cg_is_striped_(route) || route == CG_ROUTE_TREE || route == CG_ROUTE_MERGE || route == CG_ROUTE_REGION))
        return "this route needs the sendrecv callback: give it, or take allgather, server, shared or linear";
    if (whole && (cg_is_striped_(route) || route == CG_ROUTE_TREE))
        return "matrices, PermK and given indices cannot be cut or added on the way: take allgather or server";
    if (op->select.id == CG_SELECT_GIVEN && route == CG_ROUTE_SERVER)
        return "given indices: take allgather, or the route shared";
    if (cg_is_striped_(route) && op->k) return "stripes: k counts values of the whole vector; give a ratio";
    if (cg_is_striped_(route) && x->desc.side && x->desc.side->scale)
        return "stripes have buckets of their own: agree on scales with CG_AGREE_SCALES";
    if (route == CG_ROUTE_MERGE || route == CG_ROUTE_REGION) {
        if (!cg_is_sparse_f32_(op) || op->code.arg || !cg_has_target_k_(op) || op->select.id == CG_SELECT_CHUNKED)
            return "merge and region keep the k largest: take topk, mstopk, dgc or sidco with f32 values";
        if (x->desc.weight != 0.0f)
            return "merge and region have no weights: take allgather, server, scatter, shared or linear";
    }
    if (route == CG_ROUTE_SHARED && (!cg_is_sparse_f32_(op) || op->code.arg || !cg_has_target_k_(op)))
        return "shared: take topk, mstopk, chunked, dgc or sidco with f32 values";
    if (route == CG_ROUTE_LINEAR &&
        (op->select.id || !cg_is_f32_(op) || op->code.arg || op->sample.id == CG_SAMPLE_PERMK ||
            op->transform.id == CG_TRANSFORM_ATOMO))
        return "linear adds f32 values of one place: take dense, random-k, a rotation or low-rank";
    return NULL;
}
static const char *cg_refused_fold_(const cg_ex_ *x) {
    const cg_op *op = &x->desc.op;
    if (x->desc.fold == CG_FOLD_VOTE) {
        if (op->quantize.id != CG_QUANTIZE_SIGN || op->select.id || op->sample.id == CG_SAMPLE_PERMK)
            return "a vote is over cg_sign packets";
        if (x->route != CG_ROUTE_ALLGATHER && x->route != CG_ROUTE_SERVER && x->route != CG_ROUTE_SCATTER)
            return "votes are counted by allgather, server or scatter";
        if (x->desc.weight != 0.0f || x->desc.back) return "a vote has no weights and no second operator";
    }
    if (x->desc.fold == CG_FOLD_CONTRIBUTORS) {
        if (x->route != CG_ROUTE_ALLGATHER) return "contributors are counted by allgather";
        if (x->desc.weight != 0.0f) return "a mean over contributors has no weights";
        if (op->select.id == CG_SELECT_GIVEN) return "given indices: every rank contributes; take the mean";
        if (op->sample.id == CG_SAMPLE_PERMK)
            return "PermK: one rank contributes to every value; take the mean (scaled) or the sum (unscaled)";
    }
    return NULL;
}
/* Floats of a sum that this rank encodes again, or may. */
static size_t cg_carry_floats_(const cg_ex_ *x) {
    if (x->exact || x->desc.fold == CG_FOLD_VOTE) return 0;
    if (x->route == CG_ROUTE_RING || x->route == CG_ROUTE_TREE) return x->n;
    if (x->route == CG_ROUTE_SCATTER) return cg_stripe_n_(x, x->transport.rank);
    return x->route == CG_ROUTE_SERVER && (x->root == x->transport.rank || x->desc.leader == CG_LEADER_BY_SCORE) ? x->n
                                                                                                                 : 0;
}
/* Sums that are encoded again must be exact, unbiased, or remembered. */
static const char *cg_refused_loss_(const cg_ex_ *x) {
    if (!cg_carry_floats_(x) || x->desc.carry || cg_is_unbiased_(&x->back)) return NULL;
    return "a biased operator would lose part of every sum it encodes: give carry (cg_exchange_carry floats), a back "
           "operator that loses nothing, or take allgather";
}
static int cg_hops_reencode_(const cg_ex_ *x) {
    return (x->route == CG_ROUTE_RING || x->route == CG_ROUTE_TREE) && !x->exact;
}
static const char *cg_refused_agreement_(const cg_ex_ *x) {
    unsigned bits;
    const cg_op *op = &x->desc.op;
    if (!(x->desc.flags & CG_AGREE_SCALES)) return NULL;
    if (!cg_grid_zero_symbol_(&op->quantize, &bits) || op->quantize.id == CG_QUANTIZE_FLEX16 || op->select.id ||
        op->code.arg || op->sample.id == CG_SAMPLE_PERMK)
        return "only packed levels around zero have scales to agree on: absmax (2 to 8 bits), levels, terngrad, trits, "
               "flexpoint, without a selection or code";
    if (x->desc.side && x->desc.side->scale) return "scales are given and to be agreed on: which?";
    if (x->route == CG_ROUTE_LINEAR || x->route == CG_ROUTE_SHARED) return "f32 values have no scales";
    if (cg_hops_reencode_(x))
        return "ring and tree cannot weigh levels of agreed scales: no weights, or take allgather, server or scatter";
    return NULL;
}
/* Fills in defaults; what is wrong goes to x->status, for everybody to hear. */
static void cg_ex_resolve_(cg_ex_ *x) {
    const cg_op *op = &x->desc.op;
    const char *why;
    unsigned bits;
    x->parts = 1;
    x->route = x->desc.route;
    if (x->desc.route > CG_ROUTE_LINEAR || x->desc.fold > CG_FOLD_CONTRIBUTORS ||
        x->desc.flags > (CG_AGREE_SCALES | CG_ABSTAIN)) {
        cg_ex_fail_(x, CG_E_ARG, x->transport.rank, "unknown route, fold or flag");
        return;
    }
    if (!cg_is_finite_(x->desc.weight) || (x->desc.weight != 0.0f && !(x->desc.weight >= 1.17549435e-38f)) ||
        !cg_is_finite_(x->desc.score)) {
        cg_ex_fail_(x, CG_E_ARG, x->transport.rank,
            "weight and score must be finite, weight not negative or a denormal: what was lost is divided by it");
        return;
    }
    if (!cg_rate_ok_(&x->desc)) {
        cg_ex_fail_(x, CG_E_ARG, x->transport.rank, "rate must be finite");
        return;
    }
    if (x->desc.leader < CG_LEADER_BY_SCORE || x->desc.leader > x->transport.size) {
        cg_ex_fail_(x, CG_E_ARG, x->transport.rank, "leader is -1, 0 or a rank plus one");
        return;
    }
    if (!cg_bound_(op, x->desc.side, x->n) || (x->desc.back && !cg_bound_(x->desc.back, NULL, x->n))) {
        cg_ex_fail_(x, CG_E_ARG, x->transport.rank, "an operator is not valid for this n: see cg_bound");
        return;
    }
    if (cg_extra_check_(op, x->desc.side) != CG_OK) {
        cg_ex_fail_(x, cg_extra_check_(op, x->desc.side), x->transport.rank,
            "side has something that this operator does not use");
        return;
    }
    if (x->route == CG_ROUTE_AUTO) x->route = cg_auto_route_(x);
    x->parts = cg_is_striped_(x->route) ? x->transport.size : 1;
    x->root = x->desc.leader > 0 ? x->desc.leader - 1 : 0;
    if (x->route == CG_ROUTE_SHARED && x->desc.leader == 0)
        x->root = (int)(x->desc.tag.step % (uint64_t)x->transport.size);
    x->fixed = cg_has_fixed_len_(op);
    x->most = op->select.id && !op->sample.id && !op->transform.id ? (size_t)cg_max_selected_(op, x->n) : 0;
    x->keep = (size_t)cg_k_from_ratio_(op->select.value, op->k, x->n);
    /* a sum that is not exact is encoded again: by `back`; a server's answer by nothing, if it need not be */
    x->exact = cg_is_reducible_(x, op) && x->desc.weight == 0.0f && !cg_has_back_(x);
    x->back = cg_has_back_(x) ? *x->desc.back : *op;
    if (!cg_has_back_(x) && (x->route == CG_ROUTE_SERVER || (x->route == CG_ROUTE_SCATTER && cg_is_reducible_(x, op))))
        x->back = cg_dense();
    if (x->desc.fold == CG_FOLD_VOTE) x->back = *op;
    x->closed_fixed = x->exact ? cg_is_f32_(op) && !op->select.id && !op->code.arg : cg_has_fixed_len_(&x->back);
    if (x->exact && !cg_is_f32_(op))
        x->reach = (uint64_t)cg_grid_zero_symbol_(&op->quantize, &bits) * (uint64_t)x->transport.size;
    why = cg_refused_route_(x);
    if (!why) why = cg_refused_fold_(x);
    if (!why && (x->desc.flags & CG_ABSTAIN) &&
        (x->route != CG_ROUTE_ALLGATHER || x->desc.fold > CG_FOLD_SUM || (x->desc.flags & CG_AGREE_SCALES)))
        why = "to abstain is for allgather, with a mean or a sum and without agreed scales";
    if (!why) why = cg_refused_loss_(x);
    if (!why) why = cg_refused_agreement_(x);
    if (!why && cg_has_back_(x) &&
        (cg_is_matrix_op_(&x->back) || x->back.sample.id == CG_SAMPLE_PERMK || x->back.select.id == CG_SELECT_GIVEN ||
            x->back.select.id == CG_SELECT_BINS || x->back.select.id == CG_SELECT_VARIANCE ||
            cg_is_user_codec_(&x->back.quantize)))
        why = "the second leg is one vector on one rank: take a back operator that needs nothing else";
    if (!why && x->route == CG_ROUTE_SCATTER && !x->exact &&
        (x->back.select.id == CG_SELECT_BINS || x->back.select.id == CG_SELECT_VARIANCE))
        why = "a sum over ranks has no aux of its own: give a back operator, or take allgather or server";
    if (why) cg_ex_fail_(x, CG_E_UNSUPPORTED, x->transport.rank, why);
}
/* Is x compressed at once, before anything is known of the others? */
static int cg_is_compressed_first_(const cg_ex_ *x) {
    return !cg_hops_reencode_(x) && x->route != CG_ROUTE_SHARED &&
        !(x->route == CG_ROUTE_LINEAR && cg_is_matrix_op_(&x->desc.op));
}

/* src/exchange/memory.h */
/* ---- >>memory: one plan, for the sum of it and for the places ---- */

typedef struct cg_sparse_cursor_ {
    cg_index_reader_ reader;
    const uint8_t *values;
    size_t left, next, have;
    uint64_t at[CG_SPARSE_BATCH_];
} cg_sparse_cursor_;
typedef struct cg_arena_ {
    uint8_t *base;
    uint64_t bytes;
} cg_arena_;
static uint8_t *cg_arena_take_(cg_arena_ *c, uint64_t bytes) {
    uint8_t *p = c->base ? c->base + (size_t)c->bytes : NULL;
    c->bytes = cg_add_sat_(c->bytes, cg_add_sat_(bytes, 63) & ~(uint64_t)63);
    return p;
}
/* An f32 packet of at most so many of n. */
static uint64_t cg_sparse_bound_(uint64_t n, uint64_t most) {
    const cg_op any = cg_threshold(0.0f);
    if (most > n) most = n;
    return cg_add_sat_(CG_HEADER_BYTES, cg_add_sat_(cg_mul_sat_(4, most), cg_index_bound_(&any, n, most)));
}
/* What a sum of `count` packets of n values may take, where it is exact. */
static uint64_t cg_sum_bound_(const cg_ex_ *x, uint64_t n, uint64_t count) {
    const cg_op *op = &x->desc.op;
    const uint64_t turned = cg_transformed_n_(op, cg_sampled_n_(op, n, NULL));
    if (op->select.id) return cg_sparse_bound_(turned, cg_mul_sat_(count, cg_max_selected_(op, turned)));
    return cg_add_sat_(cg_bound_(op, NULL, (size_t)n), cg_add_sat_(CG_HEADER_BYTES, cg_mul_sat_(4, turned)));
}
static uint64_t cg_sum_scratch_(const cg_op *op, uint64_t n, uint64_t count) {
    const uint64_t turned = cg_transformed_n_(op, cg_sampled_n_(op, n, NULL));
    uint64_t most = op->select.id ? cg_mul_sat_(count, cg_max_selected_(op, turned)) : 0;
    if (most > turned) most = turned;
    return op->select.id
        ? cg_add_sat_(
              cg_mul_sat_(2, cg_add_sat_(cg_mul_sat_(8, cg_add_sat_(most, CG_SLACK_)), 8 * ((turned >> 32) + 2))), 64)
        : 0;
}
static uint64_t cg_dense_bound_(uint64_t n) { return cg_add_sat_(CG_HEADER_BYTES, cg_mul_sat_(4, n)); }
static void cg_max_update_(uint64_t *a, uint64_t b) {
    if (*a < b) *a = b;
}
static uint64_t cg_tree_depth_(const cg_ex_ *x) {
    return x->transport.size > 1 ? cg_log2_((uint64_t)x->transport.size - 1) + 1 : 0;
}
/* What a sum needs to be encoded again: the caller's codecs, nothing that belongs to x. */
static cg_extra cg_back_extra_(const cg_ex_ *x) {
    cg_extra side = CG_ZERO;
    if (!x->desc.side || !cg_is_user_codec_(&x->back.quantize)) return side;
    side.codecs = x->desc.side->codecs;
    side.codec_count = x->desc.side->codec_count;
    return side;
}
/* Of any part: the most. */
static uint64_t cg_packet_room_(const cg_ex_ *x) {
    uint64_t room = 0;
    for (int p = 0; p < x->parts; p++) cg_max_update_(&room, cg_bound_(&x->desc.op, x->desc.side, cg_stripe_n_(x, p)));
    return room;
}
static uint64_t cg_reduced_room_(const cg_ex_ *x) {
    const cg_extra side = cg_back_extra_(x);
    uint64_t room = 0;
    if (x->desc.fold == CG_FOLD_VOTE) return cg_packet_room_(x);
    for (int p = 0; p < x->parts; p++)
        cg_max_update_(&room,
            x->exact ? cg_sum_bound_(x, cg_stripe_n_(x, p), (uint64_t)x->transport.size)
                     : cg_bound_(&x->back, &side, cg_stripe_n_(x, p)));
    return room;
}
static uint64_t cg_stripe_max_n_(const cg_ex_ *x) {
    uint64_t n = 0;
    for (int p = 0; p < x->parts; p++) cg_max_update_(&n, cg_stripe_n_(x, p));
    return n;
}
static void cg_sum_scratch_max_(const cg_ex_ *x, uint64_t *scratch) {
    for (int p = 0; p < x->parts; p++)
        cg_max_update_(scratch, cg_sum_scratch_(&x->desc.op, cg_stripe_n_(x, p), (uint64_t)x->transport.size));
}

static void cg_mem_plan_ring_tree_(cg_ex_ *x, cg_arena_ *c, uint64_t *scratch) {
    const uint64_t result = cg_reduced_room_(x), size = (uint64_t)x->transport.size;
    /* a tree's packets come one by one */
    x->in = cg_arena_take_(
        c, cg_mul_sat_(x->route == CG_ROUTE_TREE && !x->exact ? cg_add_sat_(cg_tree_depth_(x), 1) : 1, result));
    x->buf[0] = cg_arena_take_(c, result);
    x->buf[1] = cg_arena_take_(c, result);
    x->inbox = cg_arena_take_(c, x->route == CG_ROUTE_RING ? cg_mul_sat_(size, result) : 0);
    if (x->exact) cg_sum_scratch_max_(x, scratch);
    else x->sum = (float *)(void *)cg_arena_take_(c, cg_mul_sat_(4, x->n));
    x->result_cap = (size_t)result;
}
static void cg_mem_plan_owner_(cg_ex_ *x, cg_arena_ *c, uint64_t *scratch) { /* server, scatter */
    const uint64_t result = cg_reduced_room_(x), size = (uint64_t)x->transport.size;
    const int mine = x->route == CG_ROUTE_SCATTER || x->root == x->transport.rank || !x->transport.sendrecv ||
        x->desc.leader == CG_LEADER_BY_SCORE;
    x->inbox = cg_arena_take_(c, mine ? cg_mul_sat_(size, cg_packet_room_(x)) : 0);
    x->result = cg_arena_take_(c, result);
    x->in = cg_arena_take_(c, x->route == CG_ROUTE_SCATTER ? cg_mul_sat_(size, result) : 0);
    x->result_cap = (size_t)result;
    if (!mine || x->desc.fold == CG_FOLD_VOTE) return;
    if (x->exact) {
        cg_sum_scratch_max_(x, scratch);
        return;
    }
    x->sum = (float *)(void *)cg_arena_take_(c, cg_mul_sat_(4, cg_stripe_max_n_(x)));
    if (x->desc.carry || (cg_is_f32_(&x->back) && !x->back.select.id && !x->back.sample.id && !x->back.transform.id))
        return;
    x->used = cg_arena_take_(
        c, cg_add_sat_(cg_mul_sat_((uint64_t)x->parts, cg_packet_room_(x)), cg_dense_bound_(cg_stripe_max_n_(x))));
}
/* Lists of (index, value): merge and region cut sums of packets, shared writes one. */
static void cg_mem_plan_lists_(cg_ex_ *x, cg_arena_ *c, uint64_t *scratch) {
    const uint64_t size = (uint64_t)x->transport.size, n = x->n;
    const uint64_t ways = x->route == CG_ROUTE_REGION ? size
        : x->route == CG_ROUTE_MERGE                  ? 2
                                                      : 1,
                   ups = x->route == CG_ROUTE_MERGE ? cg_tree_depth_(x) : 1;
    uint64_t most = cg_mul_sat_(ways, x->most), lost = cg_mul_sat_(cg_mul_sat_(ways, x->most), ups),
             room = cg_sparse_bound_(n, x->most);
    cg_max_update_(&room, cg_packet_room_(x));
    most = most > n ? n : most;
    x->list_room = (size_t)most;
    x->lists = cg_arena_take_(
        c, cg_mul_sat_(2, cg_add_sat_(cg_mul_sat_(8, cg_add_sat_(most, CG_SLACK_)), 8 * ((n >> 32) + 2))));
    x->used = cg_arena_take_(c, cg_sparse_bound_(n, cg_add_sat_(lost, x->most)));
    x->used_cap = (size_t)cg_sparse_bound_(n, cg_add_sat_(lost, x->most));
    x->result_cap = (size_t)cg_add_sat_(room, 1024);
    x->result = cg_arena_take_(c, x->result_cap);
    x->in = cg_arena_take_(c, cg_mul_sat_(x->route == CG_ROUTE_REGION ? size : 1, cg_add_sat_(room, 1024)));
    if (x->route == CG_ROUTE_SHARED) return;
    x->buf[0] = cg_arena_take_(c, cg_sparse_bound_(n, most));
    x->buf[1] = cg_arena_take_(c, x->route == CG_ROUTE_MERGE ? cg_sparse_bound_(n, most) : 0);
    x->lose_cap = (size_t)cg_add_sat_(cg_sparse_bound_(n, lost), cg_mul_sat_(size, CG_HEADER_BYTES + 96));
    x->lose[0] = cg_arena_take_(c, x->lose_cap);
    x->lose[1] = cg_arena_take_(c, x->route == CG_ROUTE_MERGE ? x->lose_cap : 0);
    cg_max_update_(scratch,
        cg_add_sat_(
            cg_mul_sat_(2,
                cg_add_sat_(cg_mul_sat_(8, cg_add_sat_(cg_add_sat_(lost, x->most), CG_SLACK_)), 8 * ((n >> 32) + 2))),
            64));
    if (x->route != CG_ROUTE_REGION) return;
    x->bounds = (uint64_t *)(void *)cg_arena_take_(c, 8 * (size + 1));
    x->counts = (uint64_t *)(void *)cg_arena_take_(c, 8 * size);
    x->inbox = cg_arena_take_(c, cg_mul_sat_(size, 1024)); /* counts */
}
static void cg_mem_plan_linear_(cg_ex_ *x, cg_arena_ *c) {
    const cg_op *op = &x->desc.op;
    x->result = cg_arena_take_(c, cg_packet_room_(x));
    x->result_cap = (size_t)cg_packet_room_(x);
    if (cg_is_matrix_op_(op))
        x->work = (double *)(void *)cg_arena_take_(
            c, cg_lowrank_work_bytes_(cg_matrix_rows_(op), cg_matrix_cols_(op), op->transform.arg));
}
/* Scales of all parts, one after the other, if they are to be agreed on. */
static uint64_t cg_stripe_scale_count_(const cg_ex_ *x, int part) {
    cg_layout_ lay;
    if (!(x->desc.flags & CG_AGREE_SCALES)) return 0;
    return cg_layout_make_(&x->desc.op, NULL,
               cg_transformed_n_(&x->desc.op, cg_sampled_n_(&x->desc.op, cg_stripe_n_(x, part), NULL)), &lay) == CG_OK
        ? lay.bucket_count
        : 0;
}
static uint64_t cg_bounce_room_(const cg_ex_ *x) {
    const uint64_t size = (uint64_t)x->transport.size, least = 4096,
                   piece = 1048576 / size < least ? least
        : 1048576 / size > 65536                  ? 65536
                                                  : 1048576 / size;
    const cg_op *op = &x->desc.op;
    uint64_t sum = 0;
    if (size == 1) return 0;
    if (x->route == CG_ROUTE_LINEAR) sum = cg_transformed_n_(op, cg_sampled_n_(op, x->n, NULL));
    if (x->route == CG_ROUTE_SHARED) sum = x->most;
    if (x->transport.sendrecv) return sum ? cg_mul_sat_(4, sum / size + 128) : 0; /* a stripe of a ring */
    return cg_mul_sat_(size, piece);
}
static uint64_t cg_mem_plan_(cg_ex_ *x, uint8_t *base) {
    const cg_op *op = &x->desc.op;
    const uint64_t size = (uint64_t)x->transport.size;
    /* from every rank a number for every other */
    const int tables = x->route == CG_ROUTE_REGION || (x->route == CG_ROUTE_SCATTER && !x->fixed);
    cg_arena_ c;
    uint64_t scratch = 0, bounce, room;
    c.base = base;
    c.bytes = 0;
    x->records = cg_arena_take_(&c, size * CG_RECORD_BYTES_);
    x->gathered = cg_arena_take_(&c, size * CG_RECORD_BYTES_);
    x->sizes = (uint64_t *)(void *)cg_arena_take_(&c, 8 * size);
    if (x->status != CG_OK) return c.bytes; /* enough to say so */
    bounce = cg_bounce_room_(x);
    x->bounce = cg_arena_take_(&c, bounce);
    x->bounce_bytes = (size_t)bounce;
    x->notes = cg_arena_take_(&c, cg_mul_sat_(size, CG_PREAMBLE_BYTES_ + (tables ? 8 * size : 0)));
    x->part_at = (uint64_t *)(void *)cg_arena_take_(&c, 8 * (size + 1));
    x->packet = (const void **)(void *)cg_arena_take_(&c, size * sizeof(void *));
    x->len = (size_t *)(void *)cg_arena_take_(&c, size * sizeof(size_t));
    x->decoder = (cg_decoder_ *)(void *)cg_arena_take_(&c, cg_mul_sat_(size, sizeof(cg_decoder_)));
    room = cg_is_compressed_first_(x) ? cg_mul_sat_((uint64_t)x->parts, cg_packet_room_(x)) : 0;
    if (cg_hops_reencode_(x)) room = cg_add_sat_(cg_mul_sat_(4, x->n), (uint64_t)x->parts * CG_HEADER_BYTES);
    x->own = cg_arena_take_(&c, room);
    for (int p = 0; p < x->parts; p++) {
        cg_max_update_(&scratch, cg_scratch_bytes_(op, cg_stripe_n_(x, p)));
        cg_max_update_(&scratch, cg_scratch_bytes_(&x->back, cg_stripe_n_(x, p)));
    }
    if (x->desc.flags & CG_AGREE_SCALES) {
        x->scales = 0;
        for (int p = 0; p < x->parts; p++) x->scales = cg_add_sat_(x->scales, cg_stripe_scale_count_(x, p));
        x->agreed = (float *)(void *)cg_arena_take_(&c, cg_mul_sat_(4, x->scales));
        x->lists = cg_arena_take_(&c, cg_mul_sat_(4 * (size + 1), x->scales)); /* mine and everybody's */
    }
    switch (x->route) {
    case CG_ROUTE_RING:
    case CG_ROUTE_TREE: cg_mem_plan_ring_tree_(x, &c, &scratch); break;
    case CG_ROUTE_SCATTER:
    case CG_ROUTE_SERVER: cg_mem_plan_owner_(x, &c, &scratch); break;
    case CG_ROUTE_MERGE:
    case CG_ROUTE_REGION:
    case CG_ROUTE_SHARED: cg_mem_plan_lists_(x, &c, &scratch); break;
    case CG_ROUTE_LINEAR: cg_mem_plan_linear_(x, &c); break;
    default:
        x->inbox = cg_arena_take_(&c, cg_mul_sat_(size, cg_packet_room_(x)));
        if (cg_is_sparse_f32_(op) && !op->code.arg && cg_values_per_index_(op) == 1)
            x->lanes = (cg_sparse_cursor_ *)(void *)cg_arena_take_(&c, cg_mul_sat_(size, sizeof(cg_sparse_cursor_)));
        x->result_cap = 0;
        if (x->desc.fold == CG_FOLD_VOTE) x->result_cap = (size_t)cg_packet_room_(x);
        if (x->desc.fold == CG_FOLD_CONTRIBUTORS && op->select.id) {
            x->result_cap = (size_t)cg_sum_bound_(x, x->n, size);
            cg_max_update_(&scratch, cg_sum_scratch_(op, x->n, size));
            /* how many sent each */
            x->lists = cg_arena_take_(&c,
                cg_mul_sat_(
                    4, cg_mul_sat_(size, cg_max_selected_(op, cg_transformed_n_(op, cg_sampled_n_(op, x->n, NULL))))));
        }
        x->result = cg_arena_take_(&c, x->result_cap);
    }
    x->scratch = cg_arena_take_(&c, scratch);
    x->scratch_bytes = (size_t)scratch;
    return c.bytes;
}

/* src/exchange/opening.h */
/* ---- >>opening: what everybody knows of everybody before data moves ---- */

#define CG_RECORD_MAGIC_ 0x31786763u  /* "cgx1" */
#define CG_FAILURE_MAGIC_ 0x6f6e6763u /* "cgno" */

static uint64_t cg_hash_stage_(uint64_t h, const cg_stage *s) {
    h = cg_mix64_(h ^ ((uint64_t)s->id | (uint64_t)s->flags << 8 | (uint64_t)s->arg << 16 | (uint64_t)s->size << 32));
    return cg_mix64_(h + cg_as_bits_(s->value) + CG_GOLDEN_);
}
static uint64_t cg_hash_op_(uint64_t h, const cg_op *op) {
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) h = cg_hash_stage_(h, cg_op_stage_const_(op, slot));
    return cg_mix64_(h ^ op->k);
}
static uint64_t cg_hash_desc_(const cg_ex_ *x) {
    const cg_exchange_desc *d = &x->desc;
    uint64_t h = cg_hash_op_((uint64_t)x->transport.size, &d->op);
    h = cg_hash_op_(h, cg_has_back_(x) ? d->back : &d->op);
    h = cg_mix64_(h ^
        ((uint64_t)x->route | (uint64_t)d->fold << 8 | (uint64_t)(d->flags & CG_AGREE_SCALES) << 16 |
            (uint64_t)(d->weight != 0.0f) << 24 | (uint64_t)(uint32_t)d->leader << 32));
    return cg_mix64_(h ^ ((uint64_t)cg_has_back_(x) | (uint64_t)x->exact << 1));
}
static uint64_t cg_hash_bytes_(const uint8_t *p, size_t bytes) { /* whole words of 8 */
    uint64_t h = bytes;
    for (size_t i = 0; i < bytes; i += 8) h = cg_mix64_(h + cg_get64_(p + i) + CG_GOLDEN_);
    return h;
}
static void cg_record_put_(cg_ex_ *x, size_t bytes, float scale) {
    uint8_t *r = x->record;
    cg_tag tag = x->desc.tag;
    memset(r, 0, CG_RECORD_BYTES_);
    cg_put32_(r, CG_RECORD_MAGIC_);
    cg_put32_(r + 4, (uint32_t)x->status);
    cg_put64_(r + 8, x->n);
    cg_put64_(r + 16, cg_hash_desc_(x));
    cg_put64_(r + 24, cg_shared_key_(&tag));
    cg_put64_(r + 32, bytes);
    cg_put32_(r + 40, cg_as_bits_(x->desc.weight != 0.0f && x->status == CG_OK ? x->desc.weight : 1.0f));
    cg_put32_(r + 44, cg_as_bits_(x->status == CG_OK ? x->desc.score : 0.0f));
    cg_put32_(r + 48, cg_as_bits_(scale));
    cg_put64_(r + 56, cg_hash_bytes_(r, 56));
}
static void cg_record_check_(cg_ex_ *x, const uint8_t *r, int rank, uint64_t longest) {
    const uint8_t *mine = x->record;
    const uint32_t status = cg_get32_(r + 4);
    if (cg_get32_(r) != CG_RECORD_MAGIC_ || cg_get64_(r + 56) != cg_hash_bytes_(r, 56))
        cg_ex_fail_(x, CG_E_CORRUPT, rank, "its opening record did not arrive intact");
    else if (status != CG_OK) cg_ex_fail_(x, CG_E_PEER, rank, cg_status_str((cg_status)status));
    else if (cg_get64_(r + 8) != cg_get64_(mine + 8)) cg_ex_fail_(x, CG_E_MISMATCH, rank, "it has another n");
    else if (cg_get64_(r + 24) != cg_get64_(mine + 24))
        cg_ex_fail_(x, CG_E_MISMATCH, rank, "it has another seed, step or tensor");
    else if (cg_get64_(r + 16) != cg_get64_(mine + 16))
        cg_ex_fail_(x, CG_E_MISMATCH, rank,
            "it has another operator, route, fold, leader, flag or number of ranks, or only one of you has weights");
    else if (cg_get64_(r + 32) > longest || !(cg_as_float_(cg_get32_(r + 40)) > 0.0f) ||
        !cg_is_finite_(cg_as_float_(cg_get32_(r + 40))) || !cg_is_finite_(cg_as_float_(cg_get32_(r + 44))) ||
        !cg_is_finite_(cg_as_float_(cg_get32_(r + 48))))
        cg_ex_fail_(x, CG_E_CORRUPT, rank, "its opening record says what cannot be");
}
/* Every rank comes to the same verdict: none, or all, go on. */
static void cg_records_check_(cg_ex_ *x) {
    const size_t size = cg_ranks_(x);
    uint64_t longest;
    float best = 0.0f;
    if (x->status != CG_OK) return;
    longest = cg_mul_sat_((uint64_t)x->parts, cg_packet_room_(x));
    x->weights = 0.0;
    for (size_t q = 0; q < size; q++) {
        const uint8_t *r = x->records + q * CG_RECORD_BYTES_;
        float score;
        cg_record_check_(x, r, (int)q, longest);
        if (x->status != CG_OK) return;
        x->sizes[q] = cg_get64_(r + 32);
        x->weights += (double)cg_as_float_(cg_get32_(r + 40));
        score = cg_as_float_(cg_get32_(r + 44));
        if (x->desc.leader == CG_LEADER_BY_SCORE && (q == 0 || score > best)) {
            best = score;
            x->root = (int)q;
        }
    }
    x->over = x->exact && x->desc.fold != CG_FOLD_SUM ? (float)(1.0 / (double)size) : 1.0f;
    if (cg_hops_reencode_(x)) x->over = x->desc.fold == CG_FOLD_SUM ? 1.0f : (float)(1.0 / x->weights);
    if (x->desc.fold == CG_FOLD_VOTE) x->over = 1.0f;
}

/* src/exchange/packets.h */
/* ---- >>packets ---- */

static cg_extra cg_decode_extra_(const cg_ex_ *x) { /* what decoding needs of the caller's */
    cg_extra side = CG_ZERO;
    if (!x->desc.side) return side;
    side.support = x->desc.side->support;
    side.support_len = x->desc.side->support_len;
    side.codecs = x->desc.side->codecs;
    side.codec_count = x->desc.side->codec_count;
    return side;
}
/* Everything that cg_decode would find wrong, without decoding. */
CG_NOINLINE_ cg_status cg_packet_check_(const cg_extra *side, const void *packet, size_t len, size_t n) {
    cg_decoder_ d;
    float none = 0.0f;
    cg_status s = cg_decoder_open_(&d, side, packet, len, &none, n, 1);
    return s == CG_OK ? cg_verify_(&d) : s;
}
static cg_status cg_ex_decode_(
    const cg_ex_ *x, const void *packet, size_t len, float alpha, float beta, float *y, size_t n) {
    const cg_extra side = cg_decode_extra_(x);
    return cg_decode_(&side, packet, len, alpha, beta, y, n, 1);
}
static int cg_same_op_(const cg_op *a, const cg_op *b) {
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        cg_stage s = *cg_op_stage_const_(a, slot), t = *cg_op_stage_const_(b, slot);
        /* its mark: the decoder looks at that */
        if (slot == CG_SLOT_SELECT_ && s.id == CG_SELECT_GIVEN) s.size = t.size;
        if (!cg_same_stage_(&s, &t)) return 0;
    }
    return 1;
}
/* Agreed scales are the same in every packet, whoever made it, and in their sums. */
CG_NOINLINE_ cg_status cg_same_scales_(const cg_ex_ *x, const uint8_t *p, size_t len, int part) {
    cg_decoder_ d, own;
    float none = 0.0f;
    unsigned bits;
    cg_status s = cg_decoder_open_(&d, NULL, p, len, &none, cg_stripe_n_(x, part), 1);
    if (s == CG_OK)
        s = cg_decoder_open_(&own, NULL, x->own + (size_t)x->part_at[part],
            (size_t)(x->part_at[part + 1] - x->part_at[part]), &none, cg_stripe_n_(x, part), 1);
    /* a sum too large for levels is of floats */
    if (s != CG_OK || !cg_grid_zero_symbol_(&d.info.op.quantize, &bits)) return s;
    if (d.lay.bucket_count != own.lay.bucket_count) return CG_E_MISMATCH;
    for (size_t b = 0; b < (size_t)d.lay.bucket_count; b++)
        if (cg_grid_step_(&d, b) != cg_grid_step_(&own, b)) return CG_E_MISMATCH;
    return CG_OK;
}
/* The packet of a rank that abstains: a selection of nothing. */
static cg_op cg_empty_op_(void) { return cg_threshold(CG_FLT_MAX_); }
static size_t cg_empty_packet_put_(const cg_tag *tag, size_t n, uint8_t *packet) {
    const cg_checksum_ none = { 0, 0, 0 };
    cg_info info = CG_ZERO;
    info.op = cg_empty_op_();
    info.tag = *tag;
    info.n = info.drawn = n;
    info.index_code = cg_index_code_(&info.op, n, 0);
    return cg_packet_finalize_(cg_kernels_now_(), &info, packet, none);
}
static int cg_is_empty_packet_(const cg_ex_ *x, const cg_info *info) {
    const cg_op nothing = cg_empty_op_();
    return x->route == CG_ROUTE_ALLGATHER && info->k == 0 && cg_same_op_(&info->op, &nothing);
}
/* Is this an intact packet of n values of this step, from that rank? part: of x, or -1; op NULL: of whatever
   operator; rank < 0: made by anybody. */
static void cg_accept_(
    cg_ex_ *x, const uint8_t *p, size_t len, size_t n, cg_tag tag, int part, const cg_op *op, int rank, int from) {
    const cg_extra side = cg_decode_extra_(x);
    cg_info info;
    cg_status s;
    if (x->status != CG_OK) return;
    if (len >= 12 && cg_get32_(p) == CG_FAILURE_MAGIC_) {
        const uint32_t who = cg_get32_(p + 8);
        cg_ex_fail_(x, CG_E_PEER, who < (uint32_t)x->transport.size ? (int)who : from,
            cg_status_str((cg_status)cg_get32_(p + 4)));
        return;
    }
    s = cg_header_get_(p, len, &info);
    if (s == CG_OK &&
        (info.n != n || info.tag.seed != tag.seed || info.tag.step != tag.step || info.tag.tensor != tag.tensor ||
            (rank >= 0 && info.tag.rank != (uint32_t)rank) ||
            (op && !cg_same_op_(&info.op, op) && !cg_is_empty_packet_(x, &info))))
        s = CG_E_MISMATCH;
    if (s == CG_OK) s = cg_packet_check_(&side, p, len, n);
    if (s == CG_OK && part >= 0 && (x->desc.flags & CG_AGREE_SCALES)) s = cg_same_scales_(x, p, len, part);
    if (s == CG_OK) return;
    cg_ex_fail_(x, s, from,
        s == CG_E_MISMATCH
            ? "its packet is of another vector: n, seed, step, tensor, rank, operator or agreed scales differ"
            : cg_status_str(s));
}
/* A failure takes the place of a packet, so that the others need not wait for one. */
static void cg_failure_put_(const cg_ex_ *x, uint8_t *p, size_t len) {
    if (x->status == CG_OK || len < 12) return;
    memset(p, 0, len);
    cg_put32_(p, CG_FAILURE_MAGIC_);
    cg_put32_(p + 4, (uint32_t)x->status);
    cg_put32_(p + 8, (uint32_t)(x->report.rank < 0 ? x->transport.rank : x->report.rank));
}
static void cg_preamble_put_(const cg_ex_ *x, uint8_t *note, size_t len) {
    cg_put64_(note, x->status == CG_OK ? len : 0);
    cg_put32_(note + 8, (uint32_t)x->status);
    cg_put32_(
        note + 12, x->status == CG_OK ? x->check : (uint32_t)(x->report.rank < 0 ? x->transport.rank : x->report.rank));
}
static size_t cg_preamble_get_(cg_ex_ *x, const uint8_t *note, size_t cap, int from) {
    const uint64_t len = cg_get64_(note);
    const uint32_t who = cg_get32_(note + 12);
    if (cg_get32_(note + 8))
        cg_ex_fail_(x, CG_E_PEER, who < (uint32_t)x->transport.size ? (int)who : from,
            cg_status_str((cg_status)cg_get32_(note + 8)));
    else if (len > cap) cg_ex_fail_(x, CG_E_CORRUPT, from, "it announces a packet that is too long");
    else if (who != x->check) cg_ex_fail_(x, CG_E_CORRUPT, from, "it counted otherwise: a count did not arrive intact");
    return cg_get32_(note + 8) || len > cap ? 0 : (size_t)len;
}
static cg_status cg_ex_compress_(const cg_ex_ *x, const cg_op *op, const cg_tag *tag, const cg_extra *side,
    const float *v, size_t n, uint8_t *out, size_t cap, size_t *len) {
    return cg_compress_checked_(op, tag, side, v, NULL, n, out, cap, len, x->scratch, x->scratch_bytes);
}
/* x as packets, part after part. */
static void cg_stripes_compress_(cg_ex_ *x) {
    const size_t room = (size_t)cg_packet_room_(x);
    cg_producer_ *fill = x->fill;
    cg_extra side = CG_ZERO;
    uint64_t at = 0, scale = 0;
    x->fill = NULL;
    if (x->desc.side) side = *x->desc.side;
    if (x->desc.flags & CG_ABSTAIN) {
        const cg_tag tag = cg_stripe_tag_(x, 0, 0);
        x->part_at[1] = cg_empty_packet_put_(&tag, x->n, x->own);
        return;
    }
    for (int p = 0; p < x->parts && x->status == CG_OK; p++) {
        const size_t start = cg_stripe_start_(x, p), n = cg_stripe_n_(x, p);
        const cg_tag tag = cg_stripe_tag_(x, p, 0);
        size_t len;
        cg_status s;
        if (x->desc.side && x->desc.side->aux) side.aux = cg_at_(x->desc.side->aux, start);
        if (x->desc.flags & CG_AGREE_SCALES) side.scale = x->settled ? x->agreed + scale : NULL;
        scale += cg_stripe_scale_count_(x, p);
        s = cg_compress_checked_(&x->desc.op, &tag, &side, n ? cg_at_(x->x, start) : NULL, fill, n, x->own + (size_t)at,
            room, &len, x->scratch, x->scratch_bytes);
        if (s != CG_OK) cg_ex_fail_(x, s, x->transport.rank, cg_status_str(s));
        x->part_at[p] = at;
        at += len;
    }
    x->part_at[x->parts] = at;
}
static const uint8_t *cg_own_packet_(const cg_ex_ *x, int p) { return x->own + (size_t)x->part_at[p]; }
static size_t cg_own_packet_len_(const cg_ex_ *x, int p) { return (size_t)(x->part_at[p + 1] - x->part_at[p]); }
static void cg_grad_check_finite_(cg_ex_ *x) { /* where x is not compressed before the others are told */
    const cg_kernels_ *kernels = cg_kernels_now_();
    for (size_t i = 0; i < x->n; i += CG_BLOCK_)
        if (kernels->absmax_bits(cg_at_(x->x, i), cg_min_(CG_BLOCK_, x->n - i)) >= CG_INF_BITS_) {
            cg_ex_fail_(x, CG_E_NONFINITE, x->transport.rank, cg_status_str(CG_E_NONFINITE));
            return;
        }
}
/* Scales stand first in a packet, as floats. */
static void cg_scales_collect_(const cg_ex_ *x, uint8_t *out) {
    for (int p = 0; p < x->parts; p++) {
        const size_t bytes = 4 * (size_t)cg_stripe_scale_count_(x, p);
        memcpy(out, cg_own_packet_(x, p) + CG_HEADER_BYTES, bytes);
        out += bytes;
    }
}
static void cg_scales_agree_(cg_ex_ *x) {
    for (size_t i = 0; i < (size_t)x->scales; i++) {
        float most = 0.0f;
        for (size_t q = 0; q < cg_ranks_(x); q++) {
            const float s = x->scales == 1 ? cg_as_float_(cg_get32_(x->records + q * CG_RECORD_BYTES_ + 48))
                                           : cg_as_float_(cg_get32_(cg_gathered_(x, q) + 4 * i));
            if (!cg_is_finite_(s) || s < 0.0f) cg_ex_fail_(x, CG_E_CORRUPT, (int)q, "it sent a scale that cannot be");
            else if (s > most) most = s;
        }
        x->agreed[i] = most;
    }
    x->settled = 1;
    cg_stripes_compress_(x);
    if (x->status == CG_OK) return;
    x->part_at[0] = 0; /* the others wait for packets */
    for (int p = 0; p < x->parts; p++) {
        const size_t len = cg_bound_(&x->desc.op, NULL, cg_stripe_n_(x, p));
        cg_failure_put_(x, x->own + (size_t)x->part_at[p], len);
        x->part_at[p + 1] = x->part_at[p] + len;
    }
}

/* src/exchange/resume.h */
/* ---- >>routines: a route reads as one after the other, and comes back to where it waited ---- */

/* A mark is where a routine goes on: 1, 2, 3 ... in the order of its text, so that it does not depend on line numbers.
   What moves two messages waits for the first at mark and for the second at -mark. */
#define CG_CO_BEGIN_(x)       \
  switch ((x)->line) {        \
  default: return CG_E_STATE; \
  case 0:
#define CG_CO_YIELD_(x, ask, mark) \
  do {                             \
    ask;                           \
    (x)->line = (mark);            \
    return CG_AGAIN;               \
  case (mark):;                    \
  } while (0)
#define CG_CO_AWAIT_(x, mark, ask) CG_CO_YIELD_(x, ask, mark)
#define CG_CO_END_ }
/* One packet out and one in; a note goes before them where their lengths are not known. */
#define CG_CO_HOP_(x, mark, known, out, out_len, to, in, in_len, cap, from) \
  do {                                                                      \
    cg_hop_set_(x, out, out_len, to, in, in_len, cap, from);                \
    if (!(known)) CG_CO_YIELD_(x, cg_hop_preamble_begin_(x), mark);         \
    CG_CO_YIELD_(x, cg_hop_packet_begin_(x, known), -(mark));               \
  } while (0)
/* x->result from its root to everybody; known: its length, or 0. */
#define CG_CO_BROADCAST_(x, mark, known, from)                                                           \
  do {                                                                                                   \
    cg_preamble_put_(x, (x)->note[0], (x)->result_len);                                                  \
    if (!(known)) CG_CO_YIELD_(x, cg_broadcast_begin_(x, (x)->note[0], CG_PREAMBLE_BYTES_, from), mark); \
    CG_CO_YIELD_(x, cg_broadcast_packet_begin_(x, known, from), -(mark));                                \
  } while (0)
/* Everybody's x->result, `into`; x->sizes becomes their lengths. */
#define CG_CO_ALLGATHER_(x, mark, known, into)                                                                       \
  do {                                                                                                               \
    cg_preamble_put_(x, (x)->note[0], (x)->result_len);                                                              \
    if (!(known)) CG_CO_YIELD_(x, cg_allgather_equal_begin_(x, (x)->note[0], CG_PREAMBLE_BYTES_, (x)->notes), mark); \
    CG_CO_YIELD_(x, cg_allgather_packets_begin_(x, known, into), -(mark));                                           \
  } while (0)

static void cg_hop_set_(
    cg_ex_ *x, const uint8_t *out, size_t out_len, int to, uint8_t *in, size_t in_len, size_t cap, int from) {
    x->move.out = out;
    x->move.out_len = out_len;
    x->move.to = to;
    x->move.in = in;
    x->move.in_len = in_len;
    x->move.cap = cap;
    x->move.from = from;
}
static void cg_hop_preamble_begin_(cg_ex_ *x) {
    cg_preamble_put_(x, x->note[0], x->move.out_len);
    cg_sendrecv_begin_(x, x->note[0], CG_PREAMBLE_BYTES_, x->move.to, x->note[1], CG_PREAMBLE_BYTES_, x->move.from);
}
static void cg_hop_packet_begin_(cg_ex_ *x, int known) {
    if (known) {
        if (x->status != CG_OK) x->move.out = x->buf[0];
        if (x->move.to >= 0) cg_failure_put_(x, x->buf[0], x->move.out_len);
        /* what was promised must be sent, whatever has come to light since */
    } else {
        x->move.out_len = (size_t)cg_get64_(x->note[0]);
        x->move.in_len = x->move.from < 0 ? 0 : cg_preamble_get_(x, x->note[1], x->move.cap, x->move.from);
    }
    cg_sendrecv_begin_(x, x->move.out, x->move.out_len, x->move.to, x->move.in, x->move.in_len, x->move.from);
}
static void cg_broadcast_packet_begin_(cg_ex_ *x, size_t known, int from) {
    if (known) {
        x->result_len = known;
        if (x->transport.rank == from) cg_failure_put_(x, x->result, known);
    } else {
        x->result_len = cg_preamble_get_(x, x->note[0], x->result_cap, from);
    }
    cg_broadcast_begin_(x, x->result, x->result_len, from);
}
/* whose sum a rank has in the end */
static int cg_stripe_of_rank_(const cg_ex_ *x, int rank) {
    return x->route == CG_ROUTE_RING ? cg_wrap_(x, rank + 1) : rank;
}
static size_t cg_reduced_fixed_len_(const cg_ex_ *x, size_t n) { /* length of a result of n values */
    if (x->desc.fold == CG_FOLD_VOTE) return cg_bound_(&x->desc.op, NULL, n);
    if (!x->closed_fixed) return 0;
    return x->exact ? (size_t)cg_dense_bound_(cg_transformed_n_(&x->desc.op, cg_sampled_n_(&x->desc.op, n, NULL)))
                    : cg_bound_(&x->back, NULL, n);
}
static void cg_allgather_packets_begin_(cg_ex_ *x, int known, uint8_t *into) {
    for (size_t q = 0; q < cg_ranks_(x); q++)
        x->len[q] = known ? cg_reduced_fixed_len_(x, cg_stripe_n_(x, cg_stripe_of_rank_(x, (int)q)))
                          : cg_preamble_get_(x, cg_gathered_(x, q), x->result_cap, (int)q);
    for (size_t q = 0; q < cg_ranks_(x); q++) x->sizes[q] = x->len[q];
    if (known) cg_failure_put_(x, x->result, x->len[x->transport.rank]);
    cg_allgather_begin_(x, x->result, x->sizes, into);
}
static void cg_inputs_from_gather_(cg_ex_ *x) { /* after a gather */
    for (size_t q = 0; q < cg_ranks_(x); q++) {
        x->packet[q] = cg_gathered_(x, q);
        x->len[q] = (size_t)x->c.sizes[q];
    }
}

/* src/exchange/blend.h */
/* ---- >>blends: y = own + packets + carry, a block at a time, so that y is written to memory once ---- */

typedef struct cg_accum_ {
    const cg_ex_ *x;
    float *y;
    size_t n, count;          /* of packets */
    const float *own, *carry; /* or NULL */
    float own_by, carry_by;
    int whole; /* some packet cannot be decoded by blocks */
} cg_accum_;

static void cg_accum_open_(cg_accum_ *b, cg_ex_ *x, float *y, size_t n) {
    memset(b, 0, sizeof *b);
    b->x = x;
    b->y = y;
    b->n = n;
}
/* The next packet, verified, times alpha. */
static void cg_accum_packet_(cg_accum_ *b, const uint8_t *packet, size_t len, float alpha) {
    const cg_extra side = cg_decode_extra_(b->x);
    cg_decoder_ *d = &b->x->decoder[b->count];
    if (cg_decoder_open_(d, &side, packet, len, b->y, b->n, 1) != CG_OK) b->whole = 1;
    else if (d->info.op.select.id || d->info.op.sample.id || d->lay.value_code || d->lay.codec ||
        cg_is_matrix_op_(&d->info.op))
        b->whole = 1;
    d->packet = packet;
    d->info.packet_bytes = len;
    d->alpha = alpha;
    d->beta = b->count || b->own ? 1.0f : 0.0f;
    d->non_temporal = 0;
    b->count++;
}
static void cg_accum_ranks_(cg_ex_ *x, float *y, size_t n, cg_accum_ *b) {
    cg_accum_open_(b, x, y, n);
    for (size_t q = 0; q < cg_ranks_(x); q++)
        cg_accum_packet_(b, (const uint8_t *)x->packet[q], x->len[q], cg_alpha_(x, q));
}
static void cg_accum_dense_term_(const cg_accum_ *b, size_t first, size_t many, const float *v, float by, float beta) {
    if (v) cg_kernels_now_()->axpby(cg_at_(v, first), many, by, beta, cg_at_mut_(b->y, first), 0);
}
static double cg_accum_block_(const void *user, size_t first, size_t many, float *out) {
    const cg_accum_ *b = (const cg_accum_ *)user;
    cg_checksum_ sum;
    double energy;
    (void)out; /* b->y + first */
    cg_accum_dense_term_(b, first, many, b->own, b->own_by, 0.0f);
    if (b->own) cg_accum_dense_term_(b, first, many, b->carry, b->carry_by, 1.0f);
    for (size_t i = 0; i < b->count; i++)
        cg_decode_block_(&b->x->decoder[i], NULL, NULL, first / CG_BLOCK_, 0, &sum, &energy);
    if (!b->own) cg_accum_dense_term_(b, first, many, b->carry, b->carry_by, 1.0f);
    return 0.0;
}
static cg_producer_ cg_accum_producer_(const cg_accum_ *b) {
    cg_producer_ fill = CG_ZERO;
    fill.make = cg_accum_block_;
    fill.user = b;
    fill.n = b->n;
    fill.step = CG_BLOCK_;
    return fill;
}
/* The same, packet by packet. */
static cg_status cg_accum_whole_(const cg_accum_ *b) {
    cg_status s = CG_OK;
    cg_accum_dense_term_(b, 0, b->n, b->own, b->own_by, 0.0f);
    if (b->own) cg_accum_dense_term_(b, 0, b->n, b->carry, b->carry_by, 1.0f);
    for (size_t i = 0; i < b->count && s == CG_OK; i++) {
        const cg_decoder_ *d = &b->x->decoder[i];
        s = cg_ex_decode_(b->x, d->packet, d->info.packet_bytes, d->alpha, d->beta, b->y, b->n);
    }
    if (!b->own) cg_accum_dense_term_(b, 0, b->n, b->carry, b->carry_by, 1.0f);
    return s;
}
static cg_status cg_accum_all_(const cg_accum_ *b) {
    cg_producer_ fill = cg_accum_producer_(b);
    cg_source_ src = CG_ZERO;
    if (b->whole) return cg_accum_whole_(b);
    src.producer = &fill;
    src.x = b->y;
    cg_producer_make_all_(&src);
    return CG_OK;
}
/* Decoded, added and encoded again, block by block. */
static cg_status cg_accum_compress_(const cg_accum_ *b, const cg_op *op, const cg_tag *tag, const cg_extra *side,
    uint8_t *out, size_t cap, size_t *len) {
    const cg_ex_ *x = b->x;
    cg_producer_ fill = cg_accum_producer_(b);
    cg_status s = b->whole ? cg_accum_whole_(b) : CG_OK;
    return s == CG_OK ? cg_compress_checked_(op, tag, side, b->y, b->whole ? NULL : &fill, b->n, out, cap, len,
                            x->scratch, x->scratch_bytes)
                      : s;
}

/* src/exchange/allgather.h */
/* ---- >>allgather ---- */

/* A sum of floats that is too large is the largest float, and would be no mean when divided by N. */
static cg_status cg_sum_check_saturated_(const uint8_t *sum, size_t len) {
    cg_info info;
    const cg_status s = cg_header_get_(sum, len, &info);
    if (s != CG_OK || info.op.quantize.id) return s;
    return cg_stored_absmax_bits_f32_(cg_kernels_now_(), sum + CG_HEADER_BYTES, info.value_bytes / 4) >=
            CG_INF_BITS_ - 1
        ? CG_E_NONFINITE
        : CG_OK;
}
/* How many packets have each of the sum's values; both ascend. */
CG_NOINLINE_ cg_status cg_count_contributors_(const cg_ex_ *x, const cg_decoder_ *sum, uint32_t *counts) {
    const size_t k = (size_t)sum->info.k;
    memset(counts, 0, 4 * k);
    for (size_t q = 0; q < cg_ranks_(x); q++) {
        cg_decoder_ d;
        cg_index_reader_ all = cg_index_open_(&sum->info, sum->index), one;
        uint64_t at[CG_SPARSE_BATCH_], in[CG_SPARSE_BATCH_];
        size_t j = 0, have = 0, next = 0;
        float none = 0.0f;
        const cg_extra side = cg_decode_extra_(x);
        cg_status s = cg_decoder_open_(&d, &side, x->packet[q], x->len[q], &none, x->n, 0);
        if (s != CG_OK) return s;
        one = cg_index_open_(&d.info, d.index);
        for (size_t i = 0; i < k; i++) {
            if (i % CG_SPARSE_BATCH_ == 0) cg_index_get_per_value_(&all, at, cg_min_(CG_SPARSE_BATCH_, k - i));
            if (next == have && j < (size_t)d.info.k) {
                have = cg_min_(CG_SPARSE_BATCH_, (size_t)d.info.k - j);
                cg_index_get_per_value_(&one, in, have);
                next = 0;
            }
            if (next < have && in[next] == at[i % CG_SPARSE_BATCH_]) {
                counts[i]++;
                next++;
                j++;
            }
        }
    }
    return CG_OK;
}
/* The sum of all, each value divided by how many ranks sent one there. */
CG_NOINLINE_ cg_status cg_mean_of_contributors_(cg_ex_ *x) {
    uint32_t *counts = (uint32_t *)(void *)x->lists;
    uint8_t *values = x->result + CG_HEADER_BYTES;
    cg_decoder_ sum;
    float none = 0.0f;
    cg_status s = cg_reduce_(
        x->packet, x->len, cg_ranks_(x), 0, x->result, x->result_cap, &x->result_len, x->scratch, x->scratch_bytes);
    if (s == CG_OK) s = cg_sum_check_saturated_(x->result, x->result_len);
    if (s == CG_OK) s = cg_decoder_open_(&sum, NULL, x->result, x->result_len, &none, x->n, 1);
    if (s == CG_OK) s = cg_count_contributors_(x, &sum, counts);
    if (s != CG_OK) return s;
    for (size_t i = 0; i < (size_t)sum.info.k; i++)
        cg_put32_(values + 4 * i, cg_as_bits_(cg_as_float_(cg_get32_(values + 4 * i)) / (float)counts[i]));
    cg_packet_finalize_(sum.kernels, &sum.info, x->result,
        cg_checksum_of_(sum.kernels, values, sum.info.value_bytes + sum.info.index_bytes));
    return cg_ex_decode_(x, x->result, x->result_len, 1.0f, 0.0f, x->y, x->n);
}
/* Sparse f32 packets side by side, chunk by chunk: the same sums in the same order, but y is written once, and
   added to in L1. touched: a bit for each that was, or NULL; model: what they will be used on. */
CG_INLINE_ void cg_sparse_cursor_add_(cg_sparse_cursor_ *a, int first, float alpha, uint64_t base, uint64_t end,
    float *chunk, uint64_t *touched, const float *model) {
    for (;; a->next = a->have = 0) {
        size_t i = a->next;
        if (!a->have) {
            a->have = cg_min_(CG_SPARSE_BATCH_, a->left);
            if (!a->have) return;
            cg_index_get_(&a->reader, a->at, a->have);
            a->left -= a->have;
            if (touched)
                for (size_t j = 0; j < a->have; j++) CG_PREFETCH_(cg_at_(model, (size_t)a->at[j]));
        }
        for (; i < a->have && a->at[i] < end; i++, a->values += 4) {
            const float v = cg_times_(alpha, cg_as_float_(cg_get32_(a->values)));
            const size_t j = (size_t)(a->at[i] - base);
            chunk[j] = first ? v : cg_plus_(chunk[j], v);
            if (touched) touched[j / 64] |= (uint64_t)1 << j % 64;
        }
        a->next = i;
        if (i < a->have) return;
    }
}
static cg_status cg_sparse_cursors_open_(cg_ex_ *x, size_t n) {
    float none = 0.0f;
    for (size_t q = 0; q < cg_ranks_(x); q++) {
        cg_decoder_ d;
        const cg_status s = cg_decoder_open_(&d, NULL, x->packet[q], x->len[q], &none, n, 1);
        if (s != CG_OK) return s;
        x->lanes[q].reader = cg_index_open_(&d.info, d.index);
        x->lanes[q].values = d.codes;
        x->lanes[q].left = (size_t)d.info.k;
        x->lanes[q].next = x->lanes[q].have = 0;
    }
    return CG_OK;
}
CG_NOINLINE_ cg_status cg_sparse_cursors_sum_(cg_ex_ *x, float *y, size_t n) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const int stream = n >= (size_t)1 << 22 && (uintptr_t)y % 16 == 0;
    const cg_status s = cg_sparse_cursors_open_(x, n);
    float chunk[2 * CG_CHUNK_];
    if (s != CG_OK) return s;
    memset(chunk, 0, sizeof chunk);
    for (size_t base = 0, many; base < n; base += many) {
        many = cg_min_(2 * CG_CHUNK_, n - base);
        for (size_t q = 0; q < cg_ranks_(x); q++)
            cg_sparse_cursor_add_(&x->lanes[q], q == 0, cg_alpha_(x, q), base, base + many, chunk, NULL, NULL);
        kernels->move_zero(chunk, many, cg_at_mut_(y, base), stream);
    }
    if (stream) kernels->stream_fence();
    return CG_OK;
}
/* ... to the model, where somebody sent something. */
CG_NOINLINE_ cg_status cg_sparse_cursors_step_model_(cg_ex_ *x) {
    const cg_status s = cg_sparse_cursors_open_(x, x->n);
    float chunk[2 * CG_CHUNK_];
    uint64_t touched[2 * CG_CHUNK_ / 64];
    if (s != CG_OK) return s;
    memset(chunk, 0, sizeof chunk);
    memset(touched, 0, sizeof touched);
    for (size_t base = 0; base < x->n; base += 2 * CG_CHUNK_) {
        for (size_t q = 0; q < cg_ranks_(x); q++)
            cg_sparse_cursor_add_(
                &x->lanes[q], q == 0, cg_alpha_(x, q), base, base + 2 * CG_CHUNK_, chunk, touched, x->desc.model);
        for (size_t w = 0; w < 2 * CG_CHUNK_ / 64; w++)
            for (; touched[w]; touched[w] &= touched[w] - 1) {
                const size_t j = 64 * w + cg_ctz_(touched[w]);
                cg_model_step_at_(&x->desc, base + j, chunk[j]);
                chunk[j] = 0.0f;
            }
    }
    x->desc.model = NULL; /* done */
    return CG_OK;
}
static cg_status cg_inputs_sum_(cg_ex_ *x, float *y, size_t n) {
    cg_accum_ b;
    if (x->lanes) return cg_sparse_cursors_sum_(x, y, n);
    cg_accum_ranks_(x, y, n, &b);
    return cg_accum_all_(&b);
}
static cg_status cg_route_allgather_(cg_ex_ *x) {
    cg_status s;
    CG_CO_BEGIN_(x)
    CG_CO_AWAIT_(x, 1, cg_allgather_begin_(x, x->own, x->sizes, x->inbox));
    cg_inputs_from_gather_(x);
    for (int q = 0; q < x->transport.size; q++)
        if (q != x->transport.rank)
            cg_accept_(
                x, (const uint8_t *)x->packet[q], x->len[q], x->n, cg_stripe_tag_(x, 0, 0), 0, &x->desc.op, q, q);
    if (x->status != CG_OK) return x->status;
    if (x->desc.fold == CG_FOLD_VOTE) {
        s = cg_vote_(x->packet, x->len, cg_ranks_(x), x->result, x->result_cap, &x->result_len);
        return s == CG_OK ? cg_ex_decode_(x, x->result, x->result_len, 1.0f, 0.0f, x->y, x->n) : s;
    }
    if (x->desc.fold == CG_FOLD_CONTRIBUTORS && x->desc.op.select.id) return cg_mean_of_contributors_(x);
    return x->lanes && x->desc.model ? cg_sparse_cursors_step_model_(x) : cg_inputs_sum_(x, x->y, x->n);
    CG_CO_END_
}

/* src/exchange/server.h */
/* ---- >>answers: server and scatter; an owner adds packets, and encodes the sum ---- */

/* What the second leg lost counts as not sent, by the rank that lost it. */
static cg_status cg_contribution_less_error_(cg_ex_ *x, int part) {
    const size_t n = cg_stripe_n_(x, part), before = (size_t)x->part_at[part],
                 after = (size_t)(x->part_at[x->parts] - x->part_at[part + 1]);
    const float share = x->desc.fold == CG_FOLD_SUM ? 1.0f : (float)x->weights;
    const cg_tag tag = cg_stripe_tag_(x, part, 0);
    const cg_op dense = cg_dense();
    size_t len;
    cg_status s;
    cg_kernels_now_()->axpby(x->sum, n, -share / cg_weight_of_(x, (size_t)x->transport.rank), 0.0f, x->sum, 0);
    s = cg_ex_decode_(x, cg_own_packet_(x, part), cg_own_packet_len_(x, part), 1.0f, 1.0f, x->sum, n);
    memcpy(x->used, x->own, before);
    if (s == CG_OK)
        s = cg_ex_compress_(x, &dense, &tag, NULL, x->sum, n, x->used + before, CG_HEADER_BYTES + 4 * n, &len);
    if (s != CG_OK) return s;
    memcpy(x->used + before + len, x->own + (size_t)x->part_at[part + 1], after);
    x->report.used = x->used;
    x->used_len = before + len + after;
    return CG_OK;
}
/* x->packet[] become x->result; what that loses stays in x->sum. */
static void cg_owner_reduce_(cg_ex_ *x, int part) {
    const size_t n = cg_stripe_n_(x, part);
    cg_tag tag = cg_stripe_tag_(x, part, 1);
    const cg_extra side = cg_back_extra_(x);
    cg_status s;
    if (x->status != CG_OK) return;
    if (x->desc.fold == CG_FOLD_VOTE)
        s = cg_vote_(x->packet, x->len, cg_ranks_(x), x->result, x->result_cap, &x->result_len);
    else if (x->exact)
        s = cg_reduce_(x->packet, x->len, cg_ranks_(x), x->reach, x->result, x->result_cap, &x->result_len, x->scratch,
            x->scratch_bytes);
    else {
        cg_accum_ b;
        cg_accum_ranks_(x, x->sum, n, &b);
        b.carry = x->desc.carry;
        b.carry_by = 1.0f;
        s = cg_accum_compress_(&b, &x->back, &tag, &side, x->result, x->result_cap, &x->result_len);
        if (s == CG_OK && (x->desc.carry || x->used))
            s = cg_ex_decode_(x, x->result, x->result_len, -1.0f, 1.0f, x->sum, n);
        /* before the others are told: it may be too large for a float */
        if (s == CG_OK && x->used) s = cg_contribution_less_error_(x, part);
    }
    if (s == CG_OK && x->exact) s = cg_sum_check_saturated_(x->result, x->result_len);
    if (s != CG_OK) cg_ex_fail_(x, s, x->transport.rank, cg_status_str(s));
}
/* The tag of a result: exact sums keep that of what they are made of. */
static cg_tag cg_reduced_tag_(const cg_ex_ *x, int part) {
    return cg_stripe_tag_(x, part, !x->exact && x->desc.fold != CG_FOLD_VOTE && !cg_hops_reencode_(x));
}
/* What the second leg lost goes to carry. */
static void cg_owner_carry_update_(cg_ex_ *x, int part) {
    if (!x->exact && x->desc.fold != CG_FOLD_VOTE && x->desc.carry)
        memcpy(x->desc.carry, x->sum, 4 * cg_stripe_n_(x, part));
}
static cg_status cg_route_server_(cg_ex_ *x) {
    const int me = x->transport.rank, root = x->root;
    const size_t slot = (size_t)cg_packet_room_(x);
    CG_CO_BEGIN_(x)
    if (!x->transport.sendrecv) {
        CG_CO_AWAIT_(x, 1, cg_allgather_begin_(x, x->own, x->sizes, x->inbox));
        cg_inputs_from_gather_(x);
    } else if (me != root) {
        CG_CO_AWAIT_(x, 2, cg_sendrecv_begin_(x, x->own, (size_t)x->sizes[me], root, NULL, 0, -1));
    } else {
        for (x->t = 0; x->t < x->transport.size; x->t++) {
            x->packet[x->t] = x->t == root ? x->own : x->inbox + (size_t)x->t * slot;
            x->len[x->t] = (size_t)x->sizes[x->t];
            if (x->t != root)
                CG_CO_AWAIT_(x, 3,
                    cg_sendrecv_begin_(x, NULL, 0, -1, x->inbox + (size_t)x->t * slot, (size_t)x->sizes[x->t], x->t));
        }
    }
    if (me == root) {
        for (int q = 0; q < x->transport.size; q++)
            if (q != me)
                cg_accept_(
                    x, (const uint8_t *)x->packet[q], x->len[q], x->n, cg_stripe_tag_(x, 0, 0), 0, &x->desc.op, q, q);
        cg_owner_reduce_(x, 0);
    }
    CG_CO_BROADCAST_(x, 4, cg_reduced_fixed_len_(x, x->n), root);
    if (me != root)
        cg_accept_(x, x->result, x->result_len, x->n, cg_reduced_tag_(x, 0), x->exact ? 0 : -1, NULL, -1, root);
    if (x->status != CG_OK) return x->status;
    if (me == root) cg_owner_carry_update_(x, 0);
    return cg_ex_decode_(x, x->result, x->result_len, x->over, 0.0f, x->y, x->n);
    CG_CO_END_
}
/* Stripes, one from every rank, into x. */
static void cg_accept_stripes_(cg_ex_ *x) {
    for (int q = 0; q < x->transport.size; q++) {
        const int part = cg_stripe_of_rank_(x, q);
        if (q != x->transport.rank)
            cg_accept_(x, (const uint8_t *)x->packet[q], x->len[q], cg_stripe_n_(x, part), cg_reduced_tag_(x, part),
                x->exact ? part : -1, NULL, -1, q);
    }
}
static cg_status cg_write_stripes_(cg_ex_ *x) {
    cg_status s = CG_OK;
    for (int q = 0; q < x->transport.size && s == CG_OK; q++) {
        const int part = cg_stripe_of_rank_(x, q);
        const size_t n = cg_stripe_n_(x, part);
        if (n)
            s = cg_ex_decode_(
                x, x->packet[q], x->len[q], x->over, 0.0f, cg_at_mut_(x->y, cg_stripe_start_(x, part)), n);
    }
    return s;
}
/* Lengths of this rank's parts, for everybody, where they are not known. */
static void cg_allgather_lengths_begin_(cg_ex_ *x) {
    uint8_t *mine = x->notes + (size_t)x->transport.size * 8 * cg_ranks_(x);
    for (int p = 0; p < x->parts; p++) cg_put64_(mine + 8 * p, cg_own_packet_len_(x, p));
    cg_allgather_equal_begin_(x, mine, 8 * (uint64_t)x->parts, x->notes);
}
static void cg_lengths_read_(cg_ex_ *x) { /* of the parts that will come to me */
    const int me = x->transport.rank;
    const uint64_t room = cg_packet_room_(x), known = cg_bound_(&x->desc.op, x->desc.side, cg_stripe_n_(x, me));
    for (size_t q = 0; q < cg_ranks_(x); q++) {
        const uint8_t *row = x->fixed ? NULL : cg_gathered_(x, q);
        x->len[q] = (size_t)(row ? cg_get64_(row + 8 * me) : known);
        for (int p = 0; row && p < x->parts; p++)
            if (cg_get64_(row + 8 * p) > room)
                cg_ex_fail_(x, CG_E_CORRUPT, (int)q, "it announces a packet that is too long");
    }
}
static cg_status cg_route_scatter_(cg_ex_ *x) {
    const int me = x->transport.rank, size = x->transport.size;
    const size_t slot = (size_t)cg_packet_room_(x);
    int to, from;
    CG_CO_BEGIN_(x)
    if (!x->fixed) CG_CO_AWAIT_(x, 1, cg_allgather_lengths_begin_(x));
    cg_lengths_read_(x);
    if (!x->fixed && x->status != CG_OK) return x->status; /* everybody has seen the same lengths */
    x->packet[me] = cg_own_packet_(x, me);
    x->len[me] = cg_own_packet_len_(x, me);
    for (x->t = 1; x->t < size; x->t++) {
        to = cg_wrap_(x, me + x->t);
        from = cg_wrap_(x, me - x->t);
        x->packet[from] = x->inbox + (size_t)from * slot;
        CG_CO_AWAIT_(x, 2,
            cg_sendrecv_begin_(x, cg_own_packet_(x, to), cg_own_packet_len_(x, to), to, x->inbox + (size_t)from * slot,
                x->len[from], from));
    }
    for (int q = 0; q < size; q++)
        if (q != me)
            cg_accept_(x, (const uint8_t *)x->packet[q], x->len[q], cg_stripe_n_(x, me), cg_stripe_tag_(x, me, 0), me,
                &x->desc.op, q, q);
    cg_owner_reduce_(x, me);
    CG_CO_ALLGATHER_(x, 3, x->closed_fixed, x->in);
    cg_inputs_from_gather_(x);
    cg_accept_stripes_(x);
    if (x->status != CG_OK) return x->status;
    cg_owner_carry_update_(x, me);
    return cg_write_stripes_(x);
    CG_CO_END_
}

/* src/exchange/ring.h */
/* ---- >>hops: ring and tree; a packet is decoded, added to and encoded again ---- */

/* An exact sum is a packet all the time. Another is decoded and added to when it is encoded: from x and the
   packets that came. */
static void cg_partial_begin_(cg_ex_ *x, int part) {
    x->hops = 0;
    if (!x->exact || x->status != CG_OK) return;
    x->current = cg_own_packet_(x, part);
    x->current_len = cg_own_packet_len_(x, part);
}
static void cg_partial_reduce_(cg_ex_ *x, const uint8_t *in, size_t in_len) {
    const void *both[2];
    size_t lens[2];
    uint8_t *out = x->buf[x->flip ^= 1];
    cg_status s;
    both[0] = x->current;
    both[1] = in;
    lens[0] = x->current_len;
    lens[1] = in_len;
    s = cg_reduce_(both, lens, in ? 2 : 1, x->reach, out, x->result_cap, &x->current_len, x->scratch, x->scratch_bytes);
    x->current = out;
    if (s == CG_OK) s = cg_sum_check_saturated_(out, x->current_len);
    if (s != CG_OK) cg_ex_fail_(x, s, x->transport.rank, cg_status_str(s));
}
/* where the next is to arrive */
static uint8_t *cg_partial_inbox_(const cg_ex_ *x) { return x->in + (x->exact ? 0 : (size_t)x->hops * x->result_cap); }
static void cg_partial_add_(cg_ex_ *x) {
    if (x->status != CG_OK) return;
    if (x->exact) {
        cg_partial_reduce_(x, x->in, x->move.in_len);
        return;
    }
    x->packet[x->hops] = cg_partial_inbox_(x);
    x->len[x->hops++] = x->move.in_len;
}
/* x->current becomes what goes on. Not exact: x->sum becomes what that loses. */
static void cg_partial_encode_(cg_ex_ *x, int part) {
    const size_t start = cg_stripe_start_(x, part), n = cg_stripe_n_(x, part);
    const cg_tag tag = cg_stripe_tag_(x, part, 0);
    cg_extra side = CG_ZERO;
    cg_accum_ b;
    uint8_t *out;
    cg_status s;
    if (x->status != CG_OK) return;
    if (x->exact) {
        /* room for the sum from the start */
        if (x->reach && x->current == cg_own_packet_(x, part)) cg_partial_reduce_(x, NULL, 0);
        return;
    }
    cg_accum_open_(&b, x, x->sum + start, n);
    b.own = cg_at_(x->x, start);
    b.own_by = cg_weight_of_(x, (size_t)x->transport.rank);
    b.carry = x->desc.carry ? cg_at_(x->desc.carry, start) : NULL;
    b.carry_by = x->desc.fold == CG_FOLD_SUM ? 1.0f : (float)x->weights;
    for (int i = 0; i < x->hops; i++) cg_accum_packet_(&b, (const uint8_t *)x->packet[i], x->len[i], 1.0f);
    if (x->desc.side) side = *x->desc.side;
    if (side.aux) side.aux = cg_at_(side.aux, start);
    out = x->buf[x->flip ^= 1];
    s = cg_accum_compress_(&b, &x->desc.op, &tag, &side, out, x->result_cap, &x->current_len);
    if (s == CG_OK) s = cg_ex_decode_(x, out, x->current_len, -1.0f, 1.0f, x->sum + start, n);
    x->current = out;
    if (s != CG_OK) cg_ex_fail_(x, s, x->transport.rank, cg_status_str(s));
}
static void cg_clamp_(float *v, size_t n) { /* dividing by weights may overflow, after the last message */
    if (cg_kernels_now_()->absmax_bits(v, n) < CG_INF_BITS_) return;
    for (size_t i = 0; i < n; i++) cg_store_(v, i, cg_saturate_(cg_load_(v, i)));
}
/* What counted: x less what was lost here, unless carry has that. */
static cg_status cg_contribution_less_hop_error_(cg_ex_ *x) {
    const float w = cg_weight_of_(x, (size_t)x->transport.rank);
    const cg_op dense = cg_dense();
    uint64_t at = 0;
    cg_status s = CG_OK;
    for (int p = 0; p < x->parts && !x->exact && s == CG_OK; p++) {
        const size_t start = cg_stripe_start_(x, p), n = cg_stripe_n_(x, p);
        const cg_tag tag = cg_stripe_tag_(x, p, 0);
        float *lost = x->sum + start;
        size_t len;
        if (x->desc.carry) {
            cg_kernels_now_()->axpby(lost, n, x->desc.fold == CG_FOLD_SUM ? 1.0f : (float)(1.0 / x->weights), 0.0f,
                cg_at_mut_(x->desc.carry, start), 0);
            cg_clamp_(cg_at_mut_(x->desc.carry, start), n);
            cg_kernels_now_()->axpby(cg_at_(x->x, start), n, 1.0f, 0.0f, lost, 0);
        } else {
            cg_kernels_now_()->axpby(cg_at_(x->x, start), n, 1.0f, (float)(-1.0 / (double)w), lost, 0);
            cg_clamp_(lost, n);
        }
        s = cg_ex_compress_(x, &dense, &tag, NULL, lost, n, x->own + (size_t)at, CG_HEADER_BYTES + 4 * n, &len);
        at += len;
        x->used_len = (size_t)at;
    }
    return s;
}
static cg_status cg_route_ring_(cg_ex_ *x) {
    const int me = x->transport.rank, size = x->transport.size, last = cg_wrap_(x, me + 1);
    int part;
    cg_status s;
    CG_CO_BEGIN_(x)
    cg_partial_begin_(x, me);
    cg_partial_encode_(x, me);
    for (x->t = 1; x->t < size; x->t++) {
        CG_CO_HOP_(x, 1, x->closed_fixed, x->current,
            x->closed_fixed ? cg_reduced_fixed_len_(x, cg_stripe_n_(x, cg_wrap_(x, me - x->t + 1))) : x->current_len,
            last, x->in, cg_reduced_fixed_len_(x, cg_stripe_n_(x, cg_wrap_(x, me - x->t))), x->result_cap,
            cg_wrap_(x, me - 1));
        part = cg_wrap_(x, me - x->t);
        cg_accept_(
            x, x->in, x->move.in_len, cg_stripe_n_(x, part), cg_stripe_tag_(x, part, 0), part, NULL, -1, x->move.from);
        cg_partial_begin_(x, part);
        cg_partial_add_(x);
        cg_partial_encode_(x, part);
    }
    x->result = x->status == CG_OK ? (uint8_t *)(uintptr_t)x->current : x->buf[0];
    x->result_len = x->current_len;
    CG_CO_ALLGATHER_(x, 2, x->closed_fixed, x->inbox);
    cg_inputs_from_gather_(x);
    cg_accept_stripes_(x);
    if (x->status != CG_OK) return x->status;
    s = cg_contribution_less_hop_error_(x);
    return s == CG_OK ? cg_write_stripes_(x) : s;
    CG_CO_END_
}
static cg_status cg_route_tree_(cg_ex_ *x) {
    const int me = x->transport.rank, size = x->transport.size;
    cg_status s;
    CG_CO_BEGIN_(x)
    cg_partial_begin_(x, 0);
    for (x->t = 1; x->t < size && !(me & x->t); x->t <<= 1) {
        if (me + x->t >= size) continue;
        CG_CO_HOP_(x, 1, x->closed_fixed, NULL, 0, -1, cg_partial_inbox_(x), cg_reduced_fixed_len_(x, x->n),
            x->result_cap, me + x->t);
        cg_accept_(x, cg_partial_inbox_(x), x->move.in_len, x->n, cg_stripe_tag_(x, 0, 0), 0, NULL, -1, x->move.from);
        cg_partial_add_(x);
    }
    cg_partial_encode_(x, 0);
    if (me)
        CG_CO_HOP_(x, 2, x->closed_fixed, x->current, x->closed_fixed ? cg_reduced_fixed_len_(x, x->n) : x->current_len,
            me - x->t, NULL, 0, 0, -1);
    x->result = me ? x->in : x->status == CG_OK ? (uint8_t *)(uintptr_t)x->current : x->buf[0];
    x->result_len = x->current_len;
    CG_CO_BROADCAST_(x, 3, cg_reduced_fixed_len_(x, x->n), 0);
    if (me) cg_accept_(x, x->result, x->result_len, x->n, cg_stripe_tag_(x, 0, 0), 0, NULL, -1, 0);
    if (x->status != CG_OK) return x->status;
    s = cg_contribution_less_hop_error_(x);
    return s == CG_OK ? cg_ex_decode_(x, x->result, x->result_len, x->over, 0.0f, x->y, x->n) : s;
    CG_CO_END_
}

/* src/exchange/lists.h */
/* ---- >>lists: selections that shrink on their way ---- */

static void cg_list_wrap_(const cg_ex_ *x, int which, size_t n, cg_list_ *list) {
    const size_t bytes = 8 * (x->list_room + CG_SLACK_) + 8 * (((uint64_t)x->n >> 32) + 2);
    uint8_t *p = x->lists + (size_t)which * bytes;
    memset(list, 0, sizeof *list);
    list->segment_count = n ? (((uint64_t)n - 1) >> 32) + 1 : 1;
    list->segment_start = (uint64_t *)(void *)p;
    memset(list->segment_start, 0, 8 * (size_t)(list->segment_count + 1));
    list->index_low = (uint32_t *)(void *)(p + 8 * (((uint64_t)x->n >> 32) + 2));
    list->value = (float *)(void *)(list->index_low + x->list_room + CG_SLACK_);
}
/* Indices must ascend. */
static void cg_list_append_(cg_list_ *list, uint64_t index, float value) {
    for (uint64_t s = (index >> 32) + 1; s <= list->segment_count; s++) list->segment_start[s] = list->count + 1;
    cg_list_add_(list, (size_t)index, value);
}
static cg_info cg_sparse_info_(cg_tag tag, size_t n) {
    cg_info info = CG_ZERO;
    info.op = cg_threshold(0.0f);
    info.tag = tag;
    info.n = info.drawn = n;
    return info;
}
typedef struct cg_packet_reader_ {
    cg_decoder_ d;
    cg_index_reader_ index;
    uint64_t at[CG_SPARSE_BATCH_];
    size_t next;
} cg_packet_reader_;
static cg_status cg_packet_reader_open_(cg_packet_reader_ *r, const uint8_t *packet, size_t len, size_t n) {
    float none = 0.0f;
    const cg_status s = cg_decoder_open_(&r->d, NULL, packet, len, &none, n, 1);
    if (s == CG_OK) r->index = cg_index_open_(&r->d.info, r->d.index);
    r->next = 0;
    return s;
}
static int cg_packet_reader_next_(cg_packet_reader_ *r, uint64_t *index, float *value) { /* of an f32 packet */
    const size_t k = (size_t)r->d.info.k;
    if (r->next == k) return 0;
    if (r->next % CG_SPARSE_BATCH_ == 0)
        cg_index_get_per_value_(&r->index, r->at, cg_min_(CG_SPARSE_BATCH_, k - r->next));
    *index = r->at[r->next % CG_SPARSE_BATCH_];
    *value = cg_as_float_(cg_get32_(r->d.codes + 4 * r->next));
    r->next++;
    return 1;
}
/* Of a packet's values those above the key, and `ties` that equal it, go to `kept`; the others, negated, to
   `lost`, from index `base` of n on. */
CG_NOINLINE_ cg_status cg_threshold_split_(cg_ex_ *x, const uint8_t *packet, size_t len, size_t n, uint32_t key,
    uint64_t ties, uint8_t *kept, size_t *kept_len, uint8_t *lost, size_t lost_cap, size_t base, size_t *lost_len) {
    cg_packet_reader_ r;
    cg_list_ keep, drop;
    cg_info info;
    uint64_t index;
    float value;
    cg_status s = cg_packet_reader_open_(&r, packet, len, n);
    if (s != CG_OK) return s;
    if (r.d.info.k > x->list_room) return CG_E_CORRUPT; /* somebody sent more than there can be */
    cg_list_wrap_(x, 0, n, &keep);
    cg_list_wrap_(x, 1, x->n, &drop);
    while (cg_packet_reader_next_(&r, &index, &value)) {
        const uint32_t m = cg_as_bits_(value) & CG_ABS_MASK_;
        const int equal = m == key && ties;
        ties -= (uint64_t)equal;
        if (m > key || equal) cg_list_append_(&keep, index, value);
        else cg_list_append_(&drop, index + base, -value);
    }
    info = cg_sparse_info_(r.d.info.tag, n);
    s = cg_packet_from_list_(&info, n, &keep, kept, x->result_cap, kept_len);
    info = cg_sparse_info_(x->desc.tag, x->n);
    if (s == CG_OK) s = cg_packet_from_list_(&info, x->n, &drop, lost, lost_cap, lost_len);
    return s;
}
static cg_status cg_reduce_two_(
    cg_ex_ *x, const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len, uint8_t *out, size_t cap, size_t *len) {
    const void *both[2];
    size_t lens[2];
    both[0] = a;
    both[1] = b;
    lens[0] = a_len;
    lens[1] = b_len;
    return cg_reduce_(both, lens, 2, 0, out, cap, len, x->scratch, x->scratch_bytes);
}
/* D(used) = what was sent less what was dropped here. */
static cg_status cg_contribution_less_dropped_(cg_ex_ *x) {
    cg_status s;
    if (!x->lost) return CG_OK;
    s = cg_reduce_two_(
        x, x->own, (size_t)x->part_at[1], x->lose[x->flip], x->lost_len, x->used, x->used_cap, &x->used_len);
    x->report.used = x->used;
    return s;
}

/* src/exchange/merge.h */
/* ---- >>merge: gTop-k ---- */

/* The k largest of current + in; the rest joins what this rank keeps. */
CG_NOINLINE_ cg_status cg_merge_topk_(cg_ex_ *x) {
    const size_t half = (size_t)cg_sparse_bound_(x->n, x->list_room);
    cg_packet_reader_ r;
    cg_list_ values;
    size_t rank = x->keep, len, dropped_len, k;
    uint64_t index;
    uint32_t key;
    float value;
    cg_status s = cg_reduce_two_(x, x->current, x->current_len, x->in, x->move.in_len, x->buf[0], half, &len);
    if (s == CG_OK) s = cg_sum_check_saturated_(x->buf[0], len);
    if (s == CG_OK) s = cg_packet_reader_open_(&r, x->buf[0], len, x->n);
    if (s != CG_OK) return s;
    k = (size_t)r.d.info.k;
    if (k > x->list_room) return CG_E_CORRUPT;
    if (k <= x->keep) {
        memcpy(x->result, x->buf[0], len);
        x->current = x->result;
        x->current_len = len;
        return CG_OK;
    }
    cg_list_wrap_(x, 0, x->n, &values);
    while (cg_packet_reader_next_(&r, &index, &value)) cg_list_add_(&values, 0, value);
    key = cg_kth_(values.value, k, &rank, 0, CG_INF_BITS_ - 1, cg_both_signs_);
    s = cg_threshold_split_(x, x->buf[0], len, x->n, key, rank, x->result, &x->current_len,
        x->lost ? x->buf[1] : x->lose[0], half, 0, &dropped_len);
    x->current = x->result;
    if (s != CG_OK) return s;
    if (x->lost)
        s = cg_reduce_two_(
            x, x->lose[x->flip], x->lost_len, x->buf[1], dropped_len, x->lose[x->flip ^ 1], x->lose_cap, &x->lost_len);
    else x->lost_len = dropped_len;
    x->flip = x->lost ? x->flip ^ 1 : 0;
    x->lost = 1;
    return s;
}
static cg_status cg_route_merge_(cg_ex_ *x) {
    const int me = x->transport.rank, size = x->transport.size;
    cg_status s;
    CG_CO_BEGIN_(x)
    x->current = x->own;
    x->current_len = (size_t)x->part_at[1];
    for (x->t = 1; x->t < size && !(me & x->t); x->t <<= 1) {
        if (me + x->t >= size) continue;
        CG_CO_HOP_(x, 1, 0, NULL, 0, -1, x->in, 0, x->result_cap, me + x->t);
        cg_accept_(x, x->in, x->move.in_len, x->n, cg_stripe_tag_(x, 0, 0), 0, NULL, -1, x->move.from);
        if (x->status == CG_OK) {
            s = cg_merge_topk_(x);
            if (s != CG_OK) cg_ex_fail_(x, s, me, cg_status_str(s));
        }
    }
    if (me) CG_CO_HOP_(x, 2, 0, x->current, x->current_len, me - x->t, NULL, 0, 0, -1);
    if (!me && x->current == x->own) memcpy(x->result, x->own, x->current_len);
    x->result_len = x->current_len;
    CG_CO_BROADCAST_(x, 3, 0, 0);
    if (me) cg_accept_(x, x->result, x->result_len, x->n, cg_stripe_tag_(x, 0, 0), 0, NULL, -1, 0);
    if (x->status != CG_OK) return x->status;
    s = cg_contribution_less_dropped_(x);
    return s == CG_OK ? cg_ex_decode_(x, x->result, x->result_len, x->over, 0.0f, x->y, x->n) : s;
    CG_CO_END_
}

/* src/exchange/region.h */
/* ---- >>region: Ok-Topk
   Regions with about as many indices each: their bounds are the means over ranks of where each rank would put them. */

CG_NOINLINE_ cg_status cg_region_propose_(cg_ex_ *x, uint8_t *out) {
    const size_t size = cg_ranks_(x);
    cg_packet_reader_ r;
    uint64_t index;
    float value;
    size_t next = 1;
    cg_status s = cg_packet_reader_open_(&r, x->own, (size_t)x->part_at[1], x->n);
    if (s != CG_OK) return s;
    while (next < size && cg_packet_reader_next_(&r, &index, &value))
        while (next < size && (r.next - 1) * size >= next * (size_t)r.d.info.k) cg_put64_(out + 8 * next++, index);
    while (next < size) cg_put64_(out + 8 * next++, x->n);
    cg_put64_(out, 0);
    return CG_OK;
}
static void cg_region_bounds_(cg_ex_ *x) {
    const size_t size = cg_ranks_(x);
    for (size_t j = 0; j < size; j++) {
        uint64_t whole = 0, rest = 0, before = j ? x->bounds[j - 1] : 0;
        for (size_t q = 0; q < size; q++) {
            const uint64_t at = cg_get64_(cg_gathered_(x, q) + 8 * j);
            if (at > x->n) {
                cg_ex_fail_(
                    x, at == UINT64_MAX ? CG_E_PEER : CG_E_CORRUPT, (int)q, "it proposes a region beyond the vector");
                return;
            }
            whole += at / size;
            rest += at % size;
        }
        x->bounds[j] = whole + rest / size;
        if (x->bounds[j] < before) {
            cg_ex_fail_(x, CG_E_CORRUPT, -1, "regions do not ascend");
            return;
        }
    }
    x->bounds[0] = 0;
    x->bounds[size] = x->n;
}
static size_t cg_region_n_(const cg_ex_ *x, int q) { return (size_t)(x->bounds[q + 1] - x->bounds[q]); }
/* What was sent, region by region, as packets one after the other; their places to part_at. */
CG_NOINLINE_ cg_status cg_region_split_(cg_ex_ *x, uint8_t *out) {
    cg_packet_reader_ r;
    cg_list_ list;
    cg_info info;
    uint64_t index = 0, at = 0;
    float value = 0.0f;
    int more;
    cg_status s = cg_packet_reader_open_(&r, x->own, (size_t)cg_own_packet_len_(x, 0), x->n);
    if (s != CG_OK) return s;
    more = cg_packet_reader_next_(&r, &index, &value);
    for (int q = 0; q < x->transport.size; q++) {
        const size_t n = cg_region_n_(x, q);
        size_t len;
        cg_list_wrap_(x, 0, n, &list);
        for (; more && index < x->bounds[q + 1]; more = cg_packet_reader_next_(&r, &index, &value))
            cg_list_append_(&list, index - x->bounds[q], value);
        info = cg_sparse_info_(x->desc.tag, n);
        s = cg_packet_from_list_(&info, n, &list, out + (size_t)at, x->lose_cap - (size_t)at, &len);
        if (s != CG_OK) return s;
        cg_put64_(x->notes + 8 * ((size_t)x->transport.size * cg_ranks_(x) + (size_t)q), len);
        at += len;
    }
    return CG_OK;
}
/* The next byte of the key: of those that share the bits so far, how many have which byte. */
CG_NOINLINE_ cg_status cg_region_histogram_(cg_ex_ *x, int byte, uint8_t *out) {
    uint32_t bins[256] = { 0 };
    cg_packet_reader_ r;
    uint64_t index;
    float value;
    cg_status s = cg_packet_reader_open_(&r, x->buf[0], x->current_len, cg_region_n_(x, x->transport.rank));
    if (s != CG_OK) return s;
    while (cg_packet_reader_next_(&r, &index, &value)) {
        const uint32_t m = cg_as_bits_(value) & CG_ABS_MASK_;
        if (byte == 3 || m >> 8 * (byte + 1) == x->key >> 8 * (byte + 1)) bins[m >> 8 * byte & 255]++;
    }
    for (int b = 0; b < 256; b++) cg_put32_(out + 4 * b, bins[b]);
    return CG_OK;
}
static uint64_t cg_region_bin_count_(const cg_ex_ *x, size_t q, int bin) {
    return cg_get32_(cg_gathered_(x, q) + 4 * bin);
}
/* left: how many of those with the bits so far may stay. After the last byte counts[q]: how many of the equal ones
   in region q. */
static void cg_region_radix_step_(cg_ex_ *x, int byte) {
    int bin = 255;
    for (; bin > 0; bin--) {
        uint64_t all = 0;
        for (size_t q = 0; q < cg_ranks_(x); q++) all += cg_region_bin_count_(x, q, bin);
        if (all >= x->left) break;
        x->left -= all;
    }
    x->key |= (uint32_t)bin << 8 * byte;
    for (size_t q = 0; byte == 0 && q < cg_ranks_(x); q++) {
        const uint64_t equal = cg_region_bin_count_(x, q, bin);
        x->counts[q] = equal < x->left ? equal : x->left;
        x->left -= x->counts[q];
    }
}
static void cg_region_reduce_(cg_ex_ *x) {
    const int me = x->transport.rank;
    cg_status s;
    for (int q = 0; q < x->transport.size; q++)
        if (q != me)
            cg_accept_(x, (const uint8_t *)x->packet[q], x->len[q], cg_region_n_(x, me), cg_stripe_tag_(x, 0, 0), -1,
                NULL, q, q);
    if (x->status != CG_OK) return;
    s = cg_reduce_(x->packet, x->len, cg_ranks_(x), 0, x->buf[0], (size_t)cg_sparse_bound_(x->n, x->list_room),
        &x->current_len, x->scratch, x->scratch_bytes);
    if (s == CG_OK) s = cg_sum_check_saturated_(x->buf[0], x->current_len);
    if (s != CG_OK) cg_ex_fail_(x, s, me, cg_status_str(s));
}
/* A failure between rounds of equal size has no packet to travel in: it goes as counts that cannot be. */
static void cg_region_mark_failed_(cg_ex_ *x, cg_status s, uint8_t *out, size_t bytes) {
    if (s != CG_OK) cg_ex_fail_(x, s, x->transport.rank, cg_status_str(s));
    if (x->status != CG_OK) memset(out, 0xff, bytes);
}
static cg_status cg_route_region_(cg_ex_ *x) {
    const int me = x->transport.rank, size = x->transport.size;
    const size_t ranks = cg_ranks_(x), slot = x->result_cap;
    uint8_t *mine = x->notes + 8 * ranks * ranks; /* 16 bytes for every rank */
    int to, from;
    cg_status s;
    CG_CO_BEGIN_(x)
    cg_region_mark_failed_(x, cg_region_propose_(x, mine), mine, 8 * ranks);
    CG_CO_AWAIT_(x, 1, cg_allgather_equal_begin_(x, mine, 8 * ranks, x->notes));
    cg_region_bounds_(x);
    if (x->status != CG_OK) return x->status; /* everybody has seen the same proposals */
    cg_region_mark_failed_(x, cg_region_split_(x, x->lose[0]), mine, 8 * ranks);
    CG_CO_AWAIT_(x, 2, cg_allgather_equal_begin_(x, mine, 8 * ranks, x->notes));
    for (int q = 0; q < size; q++) { /* len[q]: what comes from q */
        x->len[q] = (size_t)cg_get64_(cg_gathered_(x, (size_t)q) + 8 * (size_t)me);
        for (const uint8_t *row = cg_gathered_(x, (size_t)q), *p = row; p < row + 8 * ranks; p += 8)
            if (cg_get64_(p) > slot) cg_ex_fail_(x, CG_E_PEER, q, "it failed between two rounds");
    }
    if (x->status != CG_OK) return x->status; /* everybody has seen the same lengths */
    /* where what goes to each begins; later, how many of the equal ones it keeps */
    x->counts[0] = 0;
    for (int q = 1; q < size; q++) x->counts[q] = x->counts[q - 1] + cg_get64_(mine + 8 * (q - 1));
    for (x->t = 0; x->t < size; x->t++) {
        to = cg_wrap_(x, me + x->t);
        from = cg_wrap_(x, me - x->t);
        x->packet[from] = x->t ? x->in + (size_t)from * slot : x->lose[0] + (size_t)x->counts[me];
        if (x->t)
            CG_CO_AWAIT_(x, 3,
                cg_sendrecv_begin_(x, x->lose[0] + (size_t)x->counts[to], (size_t)cg_get64_(mine + 8 * to), to,
                    x->in + (size_t)from * slot, x->len[from], from));
    }
    cg_region_reduce_(x);
    x->key = 0;
    x->left = x->keep;
    for (x->t = 3; x->t >= 0; x->t--) {
        cg_region_mark_failed_(
            x, x->status == CG_OK ? cg_region_histogram_(x, x->t, x->result) : x->status, x->result, 1024);
        CG_CO_AWAIT_(x, 4, cg_allgather_equal_begin_(x, x->result, 1024, x->inbox));
        for (size_t q = 0; q < ranks; q++)
            if (cg_region_bin_count_(x, q, 255) == 0xffffffffu)
                cg_ex_fail_(x, CG_E_PEER, (int)q, "it failed between two rounds");
        if (x->status != CG_OK) return x->status;
        cg_region_radix_step_(x, x->t);
    }
    x->check = x->key;
    for (size_t q = 0; q < ranks; q++) x->check = (uint32_t)cg_mix64_(x->check + x->counts[q] + CG_GOLDEN_);
    if (x->status == CG_OK) {
        s = cg_threshold_split_(x, x->buf[0], x->current_len, cg_region_n_(x, me), x->key, x->counts[me], x->result,
            &x->result_len, x->lose[0], (size_t)cg_sparse_bound_(x->n, x->list_room), (size_t)x->bounds[me],
            &x->lost_len);
        x->lost = 1;
        x->flip = 0;
        if (s != CG_OK) cg_ex_fail_(x, s, me, cg_status_str(s));
    }
    /* room for the longest from everybody, whatever they announce */
    CG_CO_ALLGATHER_(x, 5, 0, x->in);
    cg_inputs_from_gather_(x);
    for (int q = 0; q < size; q++)
        if (q != me)
            cg_accept_(x, (const uint8_t *)x->packet[q], x->len[q], cg_region_n_(x, q), cg_stripe_tag_(x, 0, 0), -1,
                NULL, -1, q);
    if (x->status != CG_OK) return x->status;
    s = cg_contribution_less_dropped_(x);
    for (int q = 0; q < size && s == CG_OK; q++)
        s = cg_ex_decode_(
            x, x->packet[q], x->len[q], x->over, 0.0f, cg_at_mut_(x->y, (size_t)x->bounds[q]), cg_region_n_(x, q));
    return s;
    CG_CO_END_
}

/* src/exchange/sums.h */
/* ---- >>sums: shared and linear ---- */

static float *cg_payload_(const cg_ex_ *x) { return (float *)(void *)(x->result + CG_HEADER_BYTES); }
/* A packet's f32 values, times alpha, to be summed in place, and zeros up to `room`; NaN if this rank has failed,
   so that all will know. */
static void cg_load_payload_(cg_ex_ *x, const uint8_t *packet, size_t k, size_t room, float alpha) {
    const float *in = (const float *)(const void *)(packet + CG_HEADER_BYTES);
    float *v = cg_payload_(x);
    if (x->status != CG_OK) k = 0;
    memset(v + k, x->status == CG_OK ? 0 : 0xff, 4 * (room - k));
    if (CG_BIG_ENDIAN_) {
        memcpy(v, in, 4 * k);
        cg_floats_swap_le_(v, k);
        in = v;
    }
    cg_kernels_now_()->axpby(in, k, alpha, 0.0f, v, 0);
}
static void cg_payload_check_(cg_ex_ *x, const float *v, size_t n) {
    const uint32_t top = cg_kernels_now_()->absmax_bits(v, n);
    if (top > CG_INF_BITS_) cg_ex_fail_(x, CG_E_PEER, -1, "a rank has failed and sent NaN in place of its values");
    else if (top == CG_INF_BITS_)
        cg_ex_fail_(x, CG_E_NONFINITE, -1, "the sum over ranks is too large for a float: lower the loss scale");
}
/* The summed values under a header. */
static void cg_seal_payload_(cg_ex_ *x, const cg_info *info) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    uint8_t *values = x->result + CG_HEADER_BYTES;
    cg_floats_swap_le_(cg_payload_(x), info->value_bytes / 4);
    x->result_len = cg_packet_finalize_(kernels, info, x->result, cg_checksum_of_(kernels, values, info->value_bytes));
}
/* This rank's values at the shared indices: a packet that needs no support, and the floats to be summed. */
CG_NOINLINE_ cg_status cg_shared_values_(cg_ex_ *x, cg_info *info) {
    cg_list_ list;
    cg_info sparse = cg_sparse_info_(x->desc.tag, x->n);
    cg_packet_reader_ r;
    uint64_t index;
    float value;
    cg_status s = cg_packet_reader_open_(&r, x->in, x->move.in_len, x->n);
    if (s != CG_OK) return s;
    if (r.d.info.k > x->most) return CG_E_CORRUPT;
    cg_list_wrap_(x, 0, x->n, &list);
    r.next = 0;
    for (size_t i = 0, k = (size_t)r.d.info.k; i < k; i++) {
        if (i % CG_SPARSE_BATCH_ == 0) cg_index_get_per_value_(&r.index, r.at, cg_min_(CG_SPARSE_BATCH_, k - i));
        index = r.at[i % CG_SPARSE_BATCH_];
        value = cg_load_(x->x, (size_t)index);
        cg_list_append_(&list, index, value);
    }
    *info = sparse;
    return cg_packet_from_list_(info, x->n, &list, x->used, x->used_cap, &x->used_len);
}
static cg_op cg_shared_op_(const cg_ex_ *x) { /* of the leader's indices: a selection with values of no bits */
    cg_op op = x->desc.op;
    op.quantize.id = CG_QUANTIZE_MEAN;
    return op;
}
static void cg_shared_indices_(cg_ex_ *x) {
    const cg_op op = cg_shared_op_(x);
    cg_extra side = CG_ZERO;
    cg_status s;
    if (x->desc.side) side = *x->desc.side;
    s = cg_ex_compress_(x, &op, &x->desc.tag, &side, x->x, x->n, x->result, x->result_cap, &x->result_len);
    if (s != CG_OK) cg_ex_fail_(x, s, x->transport.rank, cg_status_str(s));
}
static cg_status cg_route_shared_(cg_ex_ *x) {
    const float alpha = cg_alpha_(x, (size_t)x->transport.rank);
    const cg_op indices = cg_shared_op_(x);
    cg_info info = CG_ZERO;
    cg_status s;
    CG_CO_BEGIN_(x)
    if (x->transport.rank == x->root) cg_shared_indices_(x);
    CG_CO_BROADCAST_(x, 1, 0, x->root);
    if (x->transport.rank != x->root)
        cg_accept_(x, x->result, x->result_len, x->n, cg_stripe_tag_(x, 0, 0), -1, &indices, x->root, x->root);
    if (x->status == CG_OK) {
        memcpy(x->in, x->result, x->result_len);
        x->move.in_len = x->result_len;
        s = cg_shared_values_(x, &info);
        if (s != CG_OK) cg_ex_fail_(x, s, x->transport.rank, cg_status_str(s));
    }
    if (x->status != CG_OK && x->result_len == 0) return x->status; /* the leader's failure: all know it */
    cg_load_payload_(x, x->used, (size_t)info.k, x->most, alpha);
    CG_CO_AWAIT_(x, 2, cg_allreduce_begin_(x, cg_payload_(x), x->most));
    cg_payload_check_(x, cg_payload_(x), x->most);
    if (x->status != CG_OK) return x->status;
    s = cg_header_get_(x->used, x->used_len, &info);
    if (s != CG_OK) return s;
    cg_floats_swap_le_(cg_payload_(x), (size_t)info.k);
    memcpy(
        x->result + CG_HEADER_BYTES + info.value_bytes, x->used + CG_HEADER_BYTES + info.value_bytes, info.index_bytes);
    x->result_len = cg_packet_finalize_(cg_kernels_now_(), &info, x->result,
        cg_checksum_of_(cg_kernels_now_(), x->result + CG_HEADER_BYTES, info.value_bytes + info.index_bytes));
    x->report.used = x->used;
    return cg_ex_decode_(x, x->result, x->result_len, 1.0f, 0.0f, x->y, x->n);
    CG_CO_END_
}
/* PowerSGD: P = MQ summed and made orthonormal, Q = M^T P summed; the factors stand in the result's payload. */
static void cg_powersgd_factor_(cg_ex_ *x, int second, float alpha) {
    const cg_op *op = &x->desc.op;
    const size_t rows = cg_matrix_rows_(op), cols = cg_matrix_cols_(op);
    const unsigned rank = cg_matrix_r_(op);
    double *pw = x->work, *qw = pw + rank * rows, norm = 0.0;
    float *p = cg_payload_(x), *q = p + rows * rank;
    const cg_kernels_ *k = cg_kernels_now_();
    int warm = 0;
    if (!second) {
        for (size_t i = 0; x->desc.warm && i < rank * cols; i++) {
            qw[i] = (double)cg_load_(x->desc.warm, i);
            warm |= (cg_load_bits_(x->desc.warm, i) & CG_ABS_MASK_) != 0;
        }
        if (!warm) cg_lowrank_init_q_(cg_shared_key_(&x->desc.tag), cols, rank, qw);
        cg_matrix_times_(k, x->x, rows, cols, qw, rank, pw);
        for (size_t i = 0; i < rows * rank; i++) p[i] = (float)(pw[i % rank * rows + i / rank] * (double)alpha);
        return;
    }
    for (size_t i = 0; i < rows * rank; i++) pw[i % rank * rows + i / rank] = (double)p[i];
    if (!cg_gram_schmidt_(pw, rows, rank, &norm)) cg_ex_fail_(x, CG_E_NONFINITE, -1, cg_status_str(CG_E_NONFINITE));
    cg_lowrank_store_p_(pw, rows, rank, 1.0, p, rank);
    cg_lowrank_compute_q_(k, x->x, rows, cols, p, rank, rank, qw);
    for (size_t i = 0; i < cols * rank; i++) q[i] = (float)(qw[i] * (double)alpha);
}
static cg_status cg_powersgd_finish_(cg_ex_ *x) {
    const cg_op *op = &x->desc.op;
    const size_t rows = cg_matrix_rows_(op), cols = cg_matrix_cols_(op);
    const unsigned rank = cg_matrix_r_(op);
    const float *q = cg_payload_(x) + rows * rank;
    /* of a sum: this rank's share */
    const float mine = x->desc.fold == CG_FOLD_SUM ? (float)(1.0 / x->weights) : 1.0f;
    cg_info info = CG_ZERO;
    cg_status s;
    for (size_t i = 0; x->desc.warm && i < cols * rank; i++) cg_store_(x->desc.warm, i, q[i]);
    info.op = *op;
    info.tag = x->desc.tag;
    info.n = info.drawn = x->n;
    info.k = cg_transformed_n_(op, x->n);
    info.value_bytes = 4 * (size_t)info.k;
    cg_seal_payload_(x, &info);
    s = cg_ex_decode_(x, x->result, x->result_len, 1.0f, 0.0f, x->y, x->n);
    if (mine != 1.0f) { /* the result is in x; now its packet becomes the share */
        cg_floats_swap_le_(cg_payload_(x), (size_t)info.k);
        for (size_t i = 0; i < cols * rank; i++) cg_payload_(x)[rows * rank + i] = cg_times_(mine, q[i]);
        cg_seal_payload_(x, &info);
    }
    x->report.used = x->result;
    x->used_len = x->result_len;
    return s;
}
static cg_status cg_route_linear_(cg_ex_ *x) {
    const cg_op *op = &x->desc.op;
    const float alpha = cg_alpha_(x, (size_t)x->transport.rank);
    const size_t rows = cg_is_matrix_op_(op) ? cg_matrix_rows_(op) * cg_matrix_r_(op) : 0,
                 values = (size_t)cg_transformed_n_(op, cg_sampled_n_(op, x->n, NULL));
    CG_CO_BEGIN_(x)
    if (cg_is_matrix_op_(op)) {
        cg_powersgd_factor_(x, 0, alpha);
        CG_CO_AWAIT_(x, 1, cg_allreduce_begin_(x, cg_payload_(x), rows));
        cg_payload_check_(x, cg_payload_(x), rows);
        if (x->status == CG_OK) cg_powersgd_factor_(x, 1, alpha);
        /* NaN: nobody waits for this rank */
        if (x->status != CG_OK) memset(cg_payload_(x) + rows, 0xff, 4 * (values - rows));
        CG_CO_AWAIT_(x, 2, cg_allreduce_begin_(x, cg_payload_(x) + rows, values - rows));
        cg_payload_check_(x, cg_payload_(x) + rows, values - rows);
        return x->status == CG_OK ? cg_powersgd_finish_(x) : x->status;
    }
    cg_load_payload_(x, x->own, values, values, alpha);
    CG_CO_AWAIT_(x, 3, cg_allreduce_begin_(x, cg_payload_(x), values));
    cg_payload_check_(x, cg_payload_(x), values);
    if (x->status != CG_OK) return x->status;
    memcpy(x->result, x->own, CG_HEADER_BYTES); /* of an equal packet; its checksum is not looked at again */
    cg_floats_swap_le_(cg_payload_(x), values);
    return cg_ex_decode_(x, x->result, (size_t)x->part_at[1], 1.0f, 0.0f, x->y, x->n);
    CG_CO_END_
}

/* src/exchange/exchange.h */
/* ---- >>exchange ---- */

static cg_status cg_opening_(cg_ex_ *x) {
    CG_CO_BEGIN_(x)
    if (!x->opened) {
        CG_CO_AWAIT_(x, 1, cg_allgather_equal_begin_(x, x->record, CG_RECORD_BYTES_, x->gathered));
        for (size_t q = 0; q < cg_ranks_(x); q++)
            memcpy(x->records + q * CG_RECORD_BYTES_, cg_gathered_(x, q), CG_RECORD_BYTES_);
    }
    cg_records_check_(x);
    if (x->status != CG_OK || !(x->desc.flags & CG_AGREE_SCALES)) return x->status;
    if (x->scales > 1) {
        cg_scales_collect_(x, x->lists);
        CG_CO_AWAIT_(x, 2, cg_allgather_equal_begin_(x, x->lists, 4 * x->scales, x->lists + 4 * (size_t)x->scales));
    }
    cg_scales_agree_(x);
    for (size_t q = 0; q < cg_ranks_(x); q++) x->sizes[q] = cg_get64_(x->records + q * CG_RECORD_BYTES_ + 32);
    return CG_OK; /* a failure from here on travels as a packet */
    CG_CO_END_
}
static cg_status cg_ex_resume_(cg_ex_ *x) {
    if (x->stage == 1) {
        cg_status s = cg_opening_(x);
        if (s != CG_OK) return s;
        x->bounce = x->later;
        x->bounce_bytes = x->later_bytes;
        x->stage = 2;
        x->line = 0;
    }
    switch (x->route) {
    case CG_ROUTE_RING: return cg_route_ring_(x);
    case CG_ROUTE_TREE: return cg_route_tree_(x);
    case CG_ROUTE_SCATTER: return cg_route_scatter_(x);
    case CG_ROUTE_SERVER: return cg_route_server_(x);
    case CG_ROUTE_MERGE: return cg_route_merge_(x);
    case CG_ROUTE_REGION: return cg_route_region_(x);
    case CG_ROUTE_SHARED: return cg_route_shared_(x);
    case CG_ROUTE_LINEAR: return cg_route_linear_(x);
    default: return cg_route_allgather_(x);
    }
}
static void cg_count_io_(cg_ex_ *x) {
    const cg_io *io = &x->io;
    const uint64_t others = (uint64_t)x->transport.size - 1;
    uint64_t out = 0, in = 0;
    x->report.rounds++;
    switch (io->kind) {
    case CG_IO_ALLREDUCE: out = in = 2 * others * io->in_bytes / (others + 1); break;
    case CG_IO_ALLGATHER: out = in = others * io->out_bytes; break;
    case CG_IO_BROADCAST:
        if (io->from == x->transport.rank) out = others * io->in_bytes;
        else in = io->in_bytes;
        break;
    default:
        out = io->out_bytes;
        in = io->in_bytes;
        break;
    }
    x->report.bytes_out += out;
    x->report.bytes_in += in;
}
static cg_status cg_ex_finish_(cg_ex_ *x, cg_status s) {
    x->stage = 3;
    if (s != CG_OK) cg_ex_fail_(x, s, x->transport.rank, cg_status_str(s));
    x->report.route = x->route;
    if (x->status != CG_OK) {
        x->report.used = NULL;
        x->report.used_len = 0;
        return x->status;
    }
    cg_model_step_(&x->desc, x->y, x->n);
    x->report.rank = -1;
    x->report.why = cg_status_str(CG_OK);
    if (!x->report.used) x->report.used = x->own;
    x->report.used_len = x->used_len ? x->used_len : (size_t)x->part_at[x->parts];
    return CG_OK;
}
static cg_status cg_ex_next_(cg_ex_ *x, int last_code, cg_io *io) {
    cg_status s;
    if (x->moving) {
        const int peer = x->io.kind != CG_IO_SENDRECV && x->io.kind != CG_IO_BROADCAST ? -1
            : x->io.from >= 0                                                          ? x->io.from
                                                                                       : x->io.to;
        x->moving = 0;
        if (last_code) {
            x->status = CG_OK; /* whatever went before, this is what ended it */
            x->report.code = last_code;
            cg_ex_fail_(x, CG_E_TRANSPORT, peer == x->transport.rank ? -1 : peer, cg_status_str(CG_E_TRANSPORT));
            return cg_ex_finish_(x, CG_E_TRANSPORT);
        }
        cg_count_io_(x);
    }
    do {
        if (x->c.ask && cg_collective_next_(x, &x->io)) {
            x->moving = 1;
            *io = x->io;
            return CG_AGAIN;
        }
        x->c.ask = CG_COLL_NONE_;
        s = cg_ex_resume_(x);
    } while (s == CG_AGAIN);
    return cg_ex_finish_(x, s);
}
static void cg_ex_init_(cg_ex_ *x, const cg_exchange_desc *desc, const cg_transport *transport, float *v, size_t n) {
    memset(x, 0, sizeof *x);
    x->desc = *desc;
    x->transport = *transport;
    x->desc.tag.rank = (uint32_t)transport->rank;
    x->x = v ? v : &x->none;
    x->y = desc->into ? desc->into : x->x;
    x->n = n;
    x->report.rank = -1;
    x->report.why = cg_status_str(CG_OK);
}
/* NULL, or why nothing can be said to anybody. */
static const char *cg_transport_error_(const cg_transport *t) {
    if (t->size < 1 || t->rank < 0 || t->rank >= t->size) return "rank must be from 0 to size - 1";
    if (t->size > 1 && !t->sendrecv && !t->allgather && !t->broadcast && !t->allreduce)
        return "no callback: give sendrecv, or at least one of allgather, broadcast and allreduce";
    return NULL;
}
static cg_status cg_ex_start_(cg_ex_ *x, float *v, void *mem, size_t bytes) {
    const size_t skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    uint64_t need;
    float scale = 0.0f;
    if (cg_transport_error_(&x->transport)) {
        x->status = CG_E_ARG;
        x->report.why = cg_transport_error_(&x->transport);
        return CG_E_ARG;
    }
    if (!v && x->n) cg_ex_fail_(x, CG_E_ARG, x->transport.rank, "x is NULL");
    else cg_ex_resolve_(x);
    need = cg_mem_plan_(x, NULL);
    if (need > SIZE_MAX / 2) cg_ex_fail_(x, CG_E_ARG, x->transport.rank, "sizes overflow");
    else if (!mem || bytes < skip || bytes - skip < need)
        cg_ex_fail_(x, CG_E_MEMORY, x->transport.rank, "mem is smaller than cg_exchange_memory");
    if (x->status == CG_OK || (mem && bytes >= skip && bytes - skip >= cg_mem_plan_(x, NULL))) {
        cg_mem_plan_(x, (uint8_t *)mem + skip);
    } else {
        if (x->transport.size > CG_FALLBACK_RANKS_) return x->status;
        x->records = x->spare;
        x->gathered = x->spare + CG_FALLBACK_RANKS_ * CG_RECORD_BYTES_;
        x->sizes = x->spare_sizes;
    }
    if (x->status == CG_OK && x->fill && (x->parts > 1 || !cg_is_compressed_first_(x))) {
        cg_source_ src = CG_ZERO;
        src.producer = x->fill;
        src.x = x->x;
        cg_producer_make_all_(&src);
        x->fill = NULL;
    }
    if (x->status == CG_OK && cg_is_compressed_first_(x)) cg_stripes_compress_(x);
    else if (x->status == CG_OK) cg_grad_check_finite_(x);
    if (x->status == CG_OK && x->scales == 1) scale = cg_as_float_(cg_get32_(x->own + CG_HEADER_BYTES));
    cg_record_put_(x, x->status == CG_OK && cg_is_compressed_first_(x) ? (size_t)x->part_at[x->parts] : 0, scale);
    x->later = x->bounce;
    x->later_bytes = x->bounce_bytes;
    x->bounce = (uint8_t *)x->tiny;
    x->bounce_bytes = sizeof x->tiny;
    x->stage = 1;
    return CG_OK;
}
CG_API_ cg_status cg_exchange_start(cg_exchange_state *state, const cg_exchange_desc *desc,
    const cg_transport *transport, float *x, size_t n, void *mem, size_t bytes) {
    cg_fenv_ env;
    cg_status s;
    if (!state || !desc || !transport) return CG_E_ARG;
    env = cg_fenv_enter_();
    cg_ex_init_(state, desc, transport, x, n);
    s = cg_ex_start_(state, x, mem, bytes);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_exchange_next(cg_exchange_state *state, int last_code, cg_io *io) {
    cg_fenv_ env;
    cg_status s;
    if (!state || !io) return CG_E_ARG;
    memset(io, 0, sizeof *io);
    if (state->stage < 1 || state->stage > 2) return CG_E_STATE;
    env = cg_fenv_enter_();
    s = cg_ex_next_(state, last_code, io);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ void cg_exchange_report(const cg_exchange_state *state, cg_report *report) {
    if (state && report) *report = state->report;
}

CG_API_ int cg_io_run(const cg_transport *t, const cg_io *io) {
    switch (io->kind) {
    case CG_IO_ALLREDUCE: return t->allreduce(t->user, (float *)io->in, io->in_bytes / 4);
    case CG_IO_ALLGATHER: return t->allgather(t->user, io->out, io->in, io->out_bytes);
    case CG_IO_BROADCAST: return t->broadcast(t->user, io->in, io->in_bytes, io->from);
    case CG_IO_SENDRECV: return t->sendrecv(t->user, io->out, io->out_bytes, io->to, io->in, io->in_bytes, io->from);
    default: return 0;
    }
}
CG_API_ size_t cg_exchange_memory(const cg_exchange_desc *desc, const cg_transport *transport, size_t n) {
    cg_exchange_state x;
    cg_fenv_ env;
    uint64_t bytes = 0;
    if (!desc || !transport || cg_transport_error_(transport)) return 0;
    env = cg_fenv_enter_();
    cg_ex_init_(&x, desc, transport, NULL, n);
    cg_ex_resolve_(&x);
    if (x.status == CG_OK || transport->size > CG_FALLBACK_RANKS_)
        bytes = cg_add_sat_(cg_mem_plan_(&x, NULL), 64 + CG_STATE_ROOM_);
    cg_fenv_leave_(env);
    return cg_size_or_zero_(bytes);
}
CG_API_ size_t cg_exchange_carry(const cg_exchange_desc *desc, const cg_transport *transport, size_t n) {
    cg_exchange_state x;
    cg_fenv_ env;
    size_t floats = 0;
    if (!desc || !transport || cg_transport_error_(transport)) return 0;
    env = cg_fenv_enter_();
    cg_ex_init_(&x, desc, transport, NULL, n);
    x.desc.carry = &x.none; /* as if there were one */
    cg_ex_resolve_(&x);
    if (x.status == CG_OK) floats = cg_carry_floats_(&x);
    cg_fenv_leave_(env);
    return floats;
}
/* fill: x is still to be made; failed: this rank has nothing to exchange but its status. */
static cg_status cg_exchange_in_state_(cg_ex_ *x, const cg_exchange_desc *desc, const cg_transport *t, float *v,
    struct cg_producer_ *fill, size_t n, void *mem, size_t bytes, cg_status failed, cg_report *report) {
    cg_io io;
    int code = 0;
    cg_status s;
    const cg_fenv_ env = cg_fenv_enter_();
    cg_ex_init_(x, desc, t, v, n);
    if (failed != CG_OK) cg_ex_fail_(x, failed, t->rank, cg_status_str(failed));
    else x->fill = fill;
    s = cg_ex_start_(x, v, mem, bytes);
    cg_fenv_leave_(env);
    if (s == CG_OK)
        while ((s = cg_exchange_next(x, code, &io)) == CG_AGAIN) code = cg_io_run(t, &io);
    cg_exchange_report(x, report);
    return s;
}
CG_NOINLINE_ cg_status cg_exchange_no_memory_(const cg_exchange_desc *desc, const cg_transport *transport, float *x,
    size_t n, cg_status failed, cg_report *report) {
    cg_exchange_state state; /* too little memory for anything but to say so */
    return cg_exchange_in_state_(&state, desc, transport, x, NULL, n, NULL, 0, failed, report);
}
/* failed: CG_OK, or why this rank can only tell the others. */
static cg_status cg_exchange_or_fail_(const cg_exchange_desc *desc, const cg_transport *transport, float *x, size_t n,
    void *mem, size_t bytes, cg_status failed, cg_report *report) {
    const size_t skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    uint8_t *p = (uint8_t *)mem;
    if (report) memset(report, 0, sizeof *report);
    if (!desc || !transport) return CG_E_ARG;
    if (!mem || bytes < skip + CG_STATE_ROOM_) return cg_exchange_no_memory_(desc, transport, x, n, failed, report);
    return cg_exchange_in_state_((cg_ex_ *)(void *)(p + skip), desc, transport, x, NULL, n, p + skip + CG_STATE_ROOM_,
        bytes - skip - CG_STATE_ROOM_, failed, report);
}
CG_API_ cg_status cg_exchange(const cg_exchange_desc *desc, const cg_transport *transport, float *x, size_t n,
    void *mem, size_t bytes, cg_report *report) {
    return cg_exchange_or_fail_(desc, transport, x, n, mem, bytes, CG_OK, report);
}

/* src/exchange/layers.h */
/* ---- >>layers ---- */

typedef struct cg_batch_ {
    const cg_layer *layers;
    size_t count, small, first, flat_n; /* first: of the small ones; count: none */
    size_t exchanges;                   /* long layers, and one for all the small ones */
    cg_exchange_desc flat_desc;
    cg_ex_ *all, *state; /* the opening of all; every exchange */
    uint8_t *mine, *records, *room, *used;
    float *flat;
} cg_batch_;
static int cg_batch_is_small_(const cg_batch_ *p, size_t i) {
    const cg_exchange_desc *d = &p->layers[i].desc, *first = p->first < p->count ? &p->layers[p->first].desc : d;
    return p->layers[i].n < p->small && (d->fold == CG_FOLD_MEAN || d->fold == CG_FOLD_SUM) && d->fold == first->fold &&
        cg_as_bits_(d->weight) == cg_as_bits_(first->weight);
}
static const cg_exchange_desc *cg_batch_desc_(const cg_batch_ *p, size_t i) {
    return i < p->count ? &p->layers[i].desc : &p->flat_desc;
}
static size_t cg_batch_n_(const cg_batch_ *p, size_t i) { return i < p->count ? p->layers[i].n : p->flat_n; }
/* The layer whose exchange comes after layer i's, count: the small ones together, or count + 1: the end. */
static size_t cg_batch_next_(const cg_batch_ *p, size_t i) {
    for (i++; i < p->count; i++)
        if (!cg_batch_is_small_(p, i)) return i;
    return i == p->count && p->first < p->count ? i : p->count + 1;
}
static uint64_t cg_batch_room_(const cg_transport *t, const cg_exchange_desc *desc, size_t n) {
    return cg_add_sat_(cg_exchange_memory(desc, t, n), 63) & ~(uint64_t)63;
}
static uint64_t cg_batch_mem_plan_(
    cg_batch_ *p, const cg_layer *layers, size_t count, size_t small, const cg_transport *t, uint8_t *base) {
    const size_t before = (size_t)0 - 1;
    const cg_exchange_desc none = CG_ZERO;
    cg_arena_ c;
    uint64_t used = 0;
    memset(p, 0, sizeof *p);
    p->layers = layers;
    p->count = p->first = count;
    p->small = small;
    for (size_t i = 0; i < count && p->first == count; i++)
        if (cg_batch_is_small_(p, i)) p->first = i;
    for (size_t i = 0; i < count; i++)
        if (p->first < count && cg_batch_is_small_(p, i)) {
            p->flat_n = (size_t)cg_add_sat_(p->flat_n, layers[i].n);
            used = cg_add_sat_(used, cg_dense_bound_(layers[i].n));
        }
    if (p->first < count) {
        p->flat_desc.fold = layers[p->first].desc.fold;
        p->flat_desc.weight = layers[p->first].desc.weight;
        p->flat_desc.tag = layers[p->first].desc.tag;
    }
    for (size_t i = cg_batch_next_(p, before); i <= count; i = cg_batch_next_(p, i)) p->exchanges++;
    c.base = base;
    c.bytes = 0;
    p->all = (cg_ex_ *)(void *)cg_arena_take_(&c, sizeof(cg_ex_));
    p->state = (cg_ex_ *)(void *)cg_arena_take_(&c, cg_mul_sat_(p->exchanges, sizeof(cg_ex_)));
    p->mine = cg_arena_take_(&c, cg_mul_sat_(p->exchanges, CG_RECORD_BYTES_));
    p->records = cg_arena_take_(&c, cg_mul_sat_((uint64_t)t->size, cg_mul_sat_(p->exchanges, CG_RECORD_BYTES_)));
    p->flat = (float *)(void *)cg_arena_take_(&c, cg_mul_sat_(4, p->flat_n));
    p->used = cg_arena_take_(&c, used);
    p->room = cg_arena_take_(&c, 0);
    c.bytes = cg_add_sat_(c.bytes, cg_batch_room_(t, &none, 0)); /* for the opening */
    for (size_t i = cg_batch_next_(p, before); i <= count; i = cg_batch_next_(p, i))
        c.bytes = cg_add_sat_(c.bytes, cg_batch_room_(t, cg_batch_desc_(p, i), cg_batch_n_(p, i)));
    return c.bytes;
}
CG_API_ size_t cg_exchange_layers_memory(
    const cg_layer *layers, size_t count, size_t small, const cg_transport *transport) {
    cg_batch_ p;
    if ((!layers && count) || !transport || cg_transport_error_(transport)) return 0;
    return cg_size_or_zero_(cg_add_sat_(cg_batch_mem_plan_(&p, layers, count, small, transport, NULL), 64));
}
/* By the callbacks, until what was asked for is done. */
static cg_status cg_collective_wait_(cg_ex_ *x) {
    while (x->c.ask && cg_collective_next_(x, &x->io)) {
        const int code = cg_io_run(&x->transport, &x->io);
        if (code) {
            x->moving = 1;
            return cg_ex_next_(x, code, &x->io);
        }
        cg_count_io_(x);
    }
    x->c.ask = CG_COLL_NONE_;
    return x->status;
}
/* The small ones, one after the other, and a packet each to say that all of them counted. NULL: one of them is NULL. */
static float *cg_batch_flatten_(cg_batch_ *p, cg_layer *layers) {
    const cg_op dense = cg_dense();
    size_t at = 0, used = 0, len;
    int whole = 1;
    for (size_t i = p->first; i < p->count; i++) {
        if (!cg_batch_is_small_(p, i)) continue;
        if (layers[i].x) memcpy(p->flat + at, layers[i].x, 4 * layers[i].n);
        else whole &= !layers[i].n;
        layers[i].report.used = p->used + used;
        if (cg_compress_checked_(&dense, &layers[i].desc.tag, NULL, layers[i].x, NULL, layers[i].n, p->used + used,
                (size_t)cg_dense_bound_(layers[i].n), &len, NULL, 0) != CG_OK)
            len = 0;
        layers[i].report.used_len = len;
        at += layers[i].n;
        used += (size_t)cg_dense_bound_(layers[i].n);
    }
    return whole ? p->flat : NULL;
}
static void cg_batch_unflatten_(const cg_batch_ *p, cg_layer *layers, const cg_ex_ *x) {
    const cg_fenv_ env = cg_fenv_enter_(); /* for steps of a model */
    size_t at = 0;
    for (size_t i = p->first; i < p->count; i++) {
        const void *used = layers[i].report.used;
        const size_t len = layers[i].report.used_len;
        if (!cg_batch_is_small_(p, i)) continue;
        layers[i].status = x->status;
        layers[i].report = x->report;
        layers[i].report.used = x->status == CG_OK ? used : NULL;
        layers[i].report.used_len = x->status == CG_OK ? len : 0;
        if (x->status == CG_OK && layers[i].n) {
            const cg_exchange_desc *d = &layers[i].desc;
            cg_model_step_(d, p->flat + at, layers[i].n);
            if (!d->model) memcpy(d->into ? d->into : layers[i].x, p->flat + at, 4 * layers[i].n);
        }
        at += layers[i].n;
    }
    cg_fenv_leave_(env);
}
static int cg_batch_rates_ok_(const cg_batch_ *p, const cg_layer *layers) {
    int ok = 1;
    for (size_t i = p->first; i < p->count; i++) ok &= !cg_batch_is_small_(p, i) || cg_rate_ok_(&layers[i].desc);
    return ok;
}
/* Starts all, and tells everybody in one record whether that went well and whether the layers are the same. */
static cg_status cg_batch_open_(cg_batch_ *p, cg_layer *layers, const cg_transport *t) {
    const size_t before = (size_t)0 - 1;
    const cg_exchange_desc none = CG_ZERO;
    cg_ex_ *all = p->all;
    uint64_t hash = p->exchanges;
    const size_t own = (size_t)cg_batch_room_(t, &none, 0);
    cg_status s, first = CG_OK;
    const char *why = NULL;
    uint8_t *mem = p->room + own;
    cg_fenv_ env = cg_fenv_enter_();
    size_t e = 0;
    float *flat = p->first < p->count ? cg_batch_flatten_(p, layers) : NULL;
    for (size_t i = cg_batch_next_(p, before); i <= p->count; i = cg_batch_next_(p, i), e++) {
        cg_ex_ *x = &p->state[e];
        const size_t room = (size_t)cg_batch_room_(t, cg_batch_desc_(p, i), cg_batch_n_(p, i));
        float *v = i < p->count ? layers[i].x : flat;
        cg_ex_init_(x, cg_batch_desc_(p, i), t, v, cg_batch_n_(p, i));
        if (i == p->count && !cg_batch_rates_ok_(p, layers)) cg_ex_fail_(x, CG_E_ARG, t->rank, "rate must be finite");
        s = cg_ex_start_(x, v, mem, room);
        if ((s != CG_OK || x->status != CG_OK) && first == CG_OK) {
            first = s != CG_OK ? s : x->status;
            why = x->report.why;
        }
        memcpy(p->mine + e * CG_RECORD_BYTES_, x->record, CG_RECORD_BYTES_);
        hash = cg_mix64_(hash ^ cg_hash_bytes_(x->record + 8, 24));
        mem += room;
    }
    cg_ex_init_(all, &none, t, NULL, 0);
    s = cg_ex_start_(all, NULL, p->room, own);
    cg_fenv_leave_(env);
    if (s != CG_OK) return s;
    all->desc.tag.seed = hash;
    if (first != CG_OK) cg_ex_fail_(all, first, t->rank, why);
    cg_record_put_(all, 0, 0.0f);
    cg_allgather_equal_begin_(all, all->record, CG_RECORD_BYTES_, all->gathered);
    s = cg_collective_wait_(all);
    if (s == CG_E_TRANSPORT) return s;
    for (size_t q = 0; q < cg_ranks_(all); q++)
        memcpy(all->records + q * CG_RECORD_BYTES_, cg_gathered_(all, q), CG_RECORD_BYTES_);
    cg_records_check_(all);
    if (all->status == CG_E_MISMATCH) all->report.why = "its layers differ: in number, length, operator, route or tag";
    return all->status;
}
static cg_status cg_batch_exchange_(cg_batch_ *p, cg_layer *layers) {
    const size_t before = (size_t)0 - 1;
    cg_ex_ *all = p->all;
    size_t e = 0;
    cg_io io;
    cg_status s, verdict = CG_OK;
    cg_allgather_equal_begin_(all, p->mine, (uint64_t)p->exchanges * CG_RECORD_BYTES_, p->records);
    s = cg_collective_wait_(all);
    for (size_t i = cg_batch_next_(p, before); i <= p->count && s != CG_E_TRANSPORT; i = cg_batch_next_(p, i), e++) {
        cg_ex_ *x = &p->state[e];
        int code = 0;
        for (size_t q = 0; q < cg_ranks_(x); q++)
            memcpy(x->records + q * CG_RECORD_BYTES_, cg_gathered_(all, q) + e * CG_RECORD_BYTES_, CG_RECORD_BYTES_);
        x->opened = 1;
        while ((s = cg_exchange_next(x, code, &io)) == CG_AGAIN) code = cg_io_run(&x->transport, &io);
        if (i == p->count) cg_batch_unflatten_(p, layers, x);
        else {
            layers[i].status = s;
            layers[i].report = x->report;
        }
        all->report.bytes_out += x->report.bytes_out;
        all->report.bytes_in += x->report.bytes_in;
        all->report.rounds += x->report.rounds;
        if (s == CG_OK || verdict != CG_OK) continue;
        verdict = s;
        all->report.rank = x->report.rank;
        all->report.code = x->report.code;
        all->report.why = x->report.why;
    }
    return verdict != CG_OK ? verdict : s;
}
CG_API_ cg_status cg_exchange_layers(cg_layer *layers, size_t count, size_t small, const cg_transport *transport,
    void *mem, size_t bytes, cg_report *report) {
    const size_t skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    const cg_exchange_desc none = CG_ZERO;
    cg_batch_ p;
    cg_status s;
    if (report) memset(report, 0, sizeof *report);
    if ((!layers && count) || !transport || cg_transport_error_(transport)) return CG_E_ARG;
    if (!mem || bytes < skip || bytes - skip < cg_batch_mem_plan_(&p, layers, count, small, transport, NULL))
        return cg_exchange_no_memory_(&none, transport, NULL, 0, CG_OK, report);
    cg_batch_mem_plan_(&p, layers, count, small, transport, (uint8_t *)mem + skip);
    for (size_t i = 0; i < count; i++) {
        memset(&layers[i].report, 0, sizeof layers[i].report);
        layers[i].status = CG_E_STATE;
    }
    s = cg_batch_open_(&p, layers, transport);
    if (s == CG_OK) s = cg_batch_exchange_(&p, layers);
    if (report) *report = p.all->report;
    for (size_t i = 0; i < count; i++)
        if (layers[i].status == CG_E_STATE) layers[i].status = s;
    return s;
}
CG_API_ cg_status cg_used_decode(
    const cg_extra *side, const void *used, size_t len, float alpha, float beta, float *y, size_t n) {
    const uint8_t *p = (const uint8_t *)used;
    size_t at = 0, done = 0;
    cg_info info;
    cg_status s = used || !len ? CG_OK : CG_E_ARG;
    /* all of them, before y changes */
    for (; at < len && s == CG_OK; at += info.packet_bytes, done += (size_t)info.n) {
        s = cg_inspect(p + at, len - at, &info);
        if (s == CG_OK && info.n > n - done) s = CG_E_MISMATCH;
        if (s == CG_OK && info.packet_bytes > len - at) s = CG_E_CORRUPT;
        if (s == CG_OK) s = cg_packet_check_(side, p + at, info.packet_bytes, (size_t)info.n);
    }
    if (s == CG_OK && done != n) s = CG_E_MISMATCH;
    for (at = done = 0; at < len && s == CG_OK; at += info.packet_bytes, done += (size_t)info.n) {
        s = cg_inspect(p + at, len - at, &info);
        if (s == CG_OK) s = cg_decode(side, p + at, info.packet_bytes, alpha, beta, n ? y + done : y, (size_t)info.n);
    }
    return s;
}

/* src/core/base/fp_end.h */
/* fp_end: gives the floating-point flags back to the includer

   Offers   the end of what fp_begin began
   Needs    fp_begin
   Touches  the compiler's floating-point state */
#if defined(__clang__)
#  pragma STDC FP_CONTRACT DEFAULT
#  if defined(__x86_64__) || defined(__i386__)
#    pragma float_control(pop)
#  endif
#elif defined(__GNUC__)
#  pragma GCC pop_options
#endif

/* src/core/base/end.h */
/* end: closes the implementation that begin.h of the same header opened

   Offers   the #endif
   Needs    begin
   Touches  nothing */
#endif /* COMPGRAD_IMPLEMENTATION */
