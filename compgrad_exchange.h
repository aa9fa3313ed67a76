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
       if (s != CG_OK) { char text[400]; cg_report_print(&report, text, sizeof text); puts(text); }
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

   TRANSPORT. Any of the four callbacks may be NULL, as long as one is given. A broadcast, allgather or allreduce
   that you do not give is built from the callbacks that you do: by binomial trees, Bruck's allgather and sums by
   doubling and halving over sendrecv, or over allgather or broadcast; if allreduce is the only callback, bytes
   travel as sums of integers below 2^24, which are exact. The routes ring, tree, scatter, merge and region need
   sendrecv and return CG_E_UNSUPPORTED without it. Packets of different lengths need no allgatherv. Set
   CG_ALLREDUCE_AGREES if your allreduce returns identical bits on every rank. Otherwise compgrad does not use it for
   values, unless it is the only callback: then every rank takes rank 0's sum. N may be any number from 1. Once a
   callback has returned, nobody else may write to the bytes that it received: packets are checked first and decoded
   later. A transport by shared memory or RDMA, where the sender could, has to copy them.

   ENCODING A SUM AGAIN. On the routes ring, tree, scatter and server a sum of packets is itself sent as a packet, and
   encoding it may lose part of it. With desc.carry the loss goes into the next sum; without, it is subtracted from the
   contribution of the rank that encodes. These routes accept
     operators whose packets add exactly: f32 values, or levels with agreed scales (CG_AGREE_SCALES), without weights;
     sums encoded by an unbiased operator, desc.back or desc.op;
     any other operator only with desc.carry.
   Everything else is refused with CG_E_UNSUPPORTED, and report.why says what to change.
   DoubleSqueeze is this with error feedback on every rank: route server or scatter, desc.back, and cg_ef_desc.carry.
   Then x_t = x_0 - rate (sum of mean gradients) + rate d_t, where d_t is the mean of the ranks' residuals and the
   carry.

   MEMORY. You own every buffer. cg_exchange needs cg_exchange_memory() bytes of any alignment and never allocates. The
   buffer holds nothing between two exchanges except report.used of the last one.

   RESULTS. All ranks get the same bits, whatever their CPU, compiler or byte order. Packets are added in rank order
   (allgather, server, scatter) or in an order given by n and N alone; your own allreduce adds in its own order.

   CONTRIBUTION. report.used is one packet, or several that cover x from left to right, and cg_used_decode decodes
   them. A dense vector on the route linear makes no packet unless CG_FEEDS_BACK is set: used then says where in mem
   or x the values are, and only cg_used_decode can read it, in this process, as long as they stay there; with
   CG_IN_PLACE it is NULL. Subtract D(used) from the vector that you gave, and you have the error to feed back
   (compgrad_ef.h does this). For the fold mean on every route, up to rounding,
       sum over ranks of D(used)   + N (sum over ranks of carry before - carry after) = N mean
       sum over ranks of w D(used) + W (sum over ranks of carry before - carry after) = W mean        with weights
   where w is a rank's weight and W the sum of all weights. For the fold sum the factor N or W of the carries is 1.

   ERRORS. The opening records tell every rank the status, packet length, n, operator and tag of all ranks. If one rank
   has failed (NaN in x, bad argument, too little memory) or its n, operator or tag differ, all ranks return an error in
   the same step: the failed rank its own status, the others CG_E_PEER or CG_E_MISMATCH with that rank in report.rank.
   A rank of compgrad 0.1 is refused with CG_E_VERSION. For a corrupt packet, or one of another step or vector,
   report.rank is its sender. If a callback returns non-zero this rank stops with CG_E_TRANSPORT, and report.code is the
   value returned: the others wait for it until their transport gives up.
   After any error x, carry, warm, into and model are unchanged, because they are written only after the last message.
   The exception are dense vectors on the route linear, so that they cost hardly more than your allreduce alone: they
   are summed in x or into. After an error x is put back from a copy, unless CG_IN_PLACE spares that, and into holds
   anything, unless CG_FEEDS_BACK is set.
   If only the very last message is lost, some ranks may report success and others an error; no protocol can avoid
   this. When the ranks that saw the error repeat the step, the tags differ, and the next exchange reports it.
   cg_report_print says it all in a sentence: the rank, what was wrong, the bytes that mem needs or the n that the
   operator takes (report.need), the first value that is not finite (report.at), the callback's code.

   DAMAGED MESSAGES. Suppose that one message arrives with other bytes than were sent: a changed bit, a missing end, or
   another message of the same call in its place. Then no rank waits: whoever finds the damage takes part to the end,
   with failures in place of its own packets. And no rank returns CG_OK with a wrong result, except on the routes linear
   and shared, which add plain floats without a checksum. So much always holds.
     without CG_CONFIRM   some ranks may return CG_OK and others an error: those who heard of the damage.
     with CG_CONFIRM      all ranks return CG_OK or none does. Before anything is written every rank tells all others
                          whether it has succeeded. Only if a message of this closing round is lost, so that a callback
                          fails, can ranks differ.
   CG_CONFIRM costs an allgather of 24 bytes per rank. cg_ef_exchange sets it for the kinds that remember what was
   received, cg_ef_agree and cg_fetched_exchange always; otherwise it is off. That nobody waits costs nothing where the
   length of every message follows from n: f32 values, plain formats and packed levels, all of x or of topk, mstopk,
   chunked and random-k, without a code. Otherwise ranks first tell each other that all has arrived by which they know
   the length, an allgather of 24 bytes per rank (a verdict): after the opening on the routes allgather and server, and
   with CG_LEADER_BY_SCORE; after the tables of scatter and region; before a reduced packet. And on ring, tree and merge
   every packet is announced and the announcement acknowledged, 24 bytes each.
   Not covered: two faults in one exchange (NaN on one rank, and damage to the record that says so on another); messages
   of another exchange; bytes that are missing or too many on the wire. The last two are what a transport's own framing
   is for.

   SEGMENTS. Small tensors that lie one behind the other in x can share packets, each with its own scales and selection,
   or none: desc.side->segments, which must be the same on all ranks (see compgrad.h). The means and report.used are
   those of an exchange for each tensor, to the bit, but for f32 values by server, which are then added as they are
   decoded. They travel by allgather, which CG_ROUTE_AUTO takes for them, or by server, with one vector on the way back;
   other routes cut packets or add them on the way, and refuse them, as do folds other than mean and sum and
   CG_AGREE_SCALES.

   BIASED OPERATORS are exchanged as any other, but alone they do not train: what they leave out is lost. After CG_OK
   report.why then is, for example, "ok; topk is biased: without compgrad_ef.h training stalls". Take cg_ef_exchange, or
   feed back yourself what report.used lacks, and set CG_FEEDS_BACK.

   CORRELATED ROUNDING. With CG_CORRELATED all ranks round with the same noise, shifted by rank/N, so that much of
   their errors cancels: on a uniform grid the mean of equal gradients is within a step/N of their value. It costs
   no bits. Each rank alone is as unbiased as before. On equal gradients of 8 ranks the variance of the mean falls
   by a factor of 1.8 or more, for the quantizers that round at random; on gradients that have nothing in common it
   stays what it was.

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
                + 2 (N-1)/N 4 k; SUMS values of all ranks there. Takes f32 values of topk, mstopk, dgc, sidco, chunked.
     region     about 2 (N-1)/N L     Ok-Topk: each rank sums one region of x; regions are cut so that they hold about
                + 4096 (N-1)          equally many indices. The k largest sums of all regions survive. Takes what
                                      merge takes.
     linear     2 (N-1)/N 4 m; see    An allreduce of f32 values. Takes dense, random-k, rotation, DCT and, in two
                SUMS below            sums, low-rank (PowerSGD).
     reduce_    (N-1)/N L             The first leg of scatter by itself (cg_reduce_scatter): every rank gets the fold
     scatter                          of its stripe, by the caller's bounds; the rest of x stays. Takes what ring takes.
     all_gather (N-1)/N R             The second (cg_all_gather): every rank's stripe goes to all, encoded once. What a
                                      biased operator leaves out is lost, or in carry. Takes what ring takes.
     auto       the first of these rules that applies; report.choice says which, and cg_report_print with both times:
                  fold contributors or a robust one, given, PermK, op.k or ATOMO: allgather
                  low-rank; f32 values without selection or value code: linear
                  N <= 2, or (N-1) L beta <= alpha: allgather, as no route takes fewer rounds
                  otherwise of all routes that take the operator the one whose rounds alpha + bytes beta is least
                  (desc.alpha, desc.beta; L and R at their longest, the opening left out). Ring and tree are
                  weighed only where packets add exactly. Merge, shared and region drop values that op has kept
                  (report.used lacks them) and are taken only if they save more than a quarter of the time.

   SUMS of f32 values (linear, and the values of shared) over sendrecv, if you have no allreduce that agrees. P is the
   largest power of two up to N, r = N - P, M the bytes of the values. report.sum says which way it was, desc.sum asks
   for one.
     CG_SUM_DOUBLING   log2 P rounds, M bytes each; two more for 2 r of the ranks. The least for short vectors.
     CG_SUM_HALVING    2 log2 P rounds, 2 (P-1)/P M bytes (Rabenseifner). If r > 0: up to 4 log2 P rounds, up to
                       (2 - 1/P) M bytes.
     CG_SUM_RING       2 (N-1) rounds, 2 (N-1)/N M bytes. Only if desc.sum asks for it.
   CG_SUM_TREE, which is the default, takes of the first two the one whose rounds alpha + bytes beta is less.
   The order of a sum by doubling or halving depends on N alone, not on n or the place of a value: first rank 2 i
   adds 2 i + 1, for i < r, and that is participant i; rank i + r is participant i for the others. Then participants
   i and i + P/2 are added, for i < P/2, then i and i + P/4 of these, and so on down to 0 and 1. So vectors that are
   joined, or cut, have the same sums. On a ring the stripe with the number of a rank starts there: x_p + x_(p+1) +
   ... around. Over allgather or broadcast the order is that of the ranks. All ranks get the same bits from every
   way. Ranks whose ways differ, because desc.sum, alpha, beta or the callbacks do, are told: CG_E_MISMATCH.

   A dense vector is multiplied by its weight before the sum, if there are weights, and divided by W after it (mean); it
   is copied and checked once before the sum, and checked once behind it. What else is summed (random-k, rotated and
   low-rank values, those of shared) is multiplied by w / W before.

   LEVELS. cg_exchange_levels takes two transports: reduce_scatter inside each node, an exchange of the stripes between
   nodes by any operator and route, all_gather inside. desc.residual of either level keeps what its operator leaves out:
     sum of x + residuals before = N mean + residuals after, where those of a stripe stand for all ranks of the node.

   FOLDS. w is a rank's weight (desc.weight), W their sum, D its decoded packet.
     mean          (sum of w D) / W     every route
     sum           sum of w D           every route; a sum too large for f32 is Inf by allgather, and CG_E_NONFINITE
                                        on the other routes
     vote          majority of signs    cg_sign packets of up to 1024 ranks, + for a tie; no weights; allgather,
                                        server or scatter
     contributors  sum of D / ranks     each value is divided by the number of ranks whose packet has one there;
                   that sent one        allgather; no weights
     The rest are for ranks of which some may be broken or lie (f of N); allgather or server, no weights, N n floats of
     memory where they are computed. report.used is what the rank has sent.
     median        middle of the D, of an even number the mean of both in the middle, coordinate by coordinate. Within
                   the range of what honest ranks have sent there, if f < N/2. The same places on all ranks: no
                   selections, PermK or private samples
     trimmed       mean without the c largest and c smallest, coordinate by coordinate; c = fold_limit N, rounded down,
                   at least 1; fold_limit 0 means 0.25. Within that range if f <= c. Takes what the median takes
     clipped       mean of D min(1, M/|D|), where M is fold_limit (0 means 1) times the median norm. Liars move it by
                   at most fold_limit f/N times the longest honest norm, if f < N/2. Takes any operator

   FORMATS, little-endian. The opening record:

     byte 0        4        8        16       24       32       40       44       48       52       56       64
         +---------+--------+--------+--------+--------+--------+--------+--------+--------+--------+--------+
         | "cgx2"  | status | n      | desc   | tag    | bytes  | weight | score  | scale  | sender | hash   |
         +---------+--------+--------+--------+--------+--------+--------+--------+--------+--------+--------+

     status   cg_status u32 of the sender; n u64
     desc     hash u64 of N, both operators, route, fold, leader, the flags CG_AGREE_SCALES, CG_CONFIRM and
              CG_MAY_ABSTAIN, whether there are weights, and desc.common
     tag      hash u64 of seed, step and tensor
     bytes    u64, length of the sender's packets in all, 0 if they are made later
     weight   f32; score f32; scale f32, if CG_AGREE_SCALES has a single scale to agree on
     sender   u32, its rank; plus 2^31 in the second exchange of a call (Sketched-SGD) and in those of layers
     hash     u64 of the 56 bytes before it
     "cgx1" is the record of compgrad 0.1, which has 0 for the sender.

     Note, 24 bytes: a number u64, status u32, the rank u32 that failed, and a hash u64 of these, of the table before
     the note if there is one, of desc and tag, of the sender and of the round. Notes alone are verdicts (number 0), and
     before a packet whose length the receiver cannot compute its length (preamble) and, the other way, whether that
     arrived whole (receipt). Tables with a note behind: of scales to agree on, if there are several, f32 each, in the
     order of the packets, padded to 8 bytes; scatter, if packet lengths vary: N lengths u64; region: N bounds u64, N
     lengths u64, then four times 256 counts u32.
     Packets have the rank of their sender in the tag, exact sums and votes of server and scatter N plus that.
     Failure packet, of the length that the receiver expects: "cgno", status u32, rank that failed u32, zeros.
     Allreduced values: f32, all NaN if the sender has failed. What an allgather callback sends behind a packet is 0.
     cg_exchange_layers: one opening record whose tag is a hash over all layers, then one record for each exchange, then
     a verdict if any of them needs one; the factors of low-rank layers one behind the other, in the order of layers;
     in the closing round one note for each exchange. */

/* src/exchange/api.h */
/* api: the public declarations of an exchange, and the state that the caller allocates for one

   Offers   cg_transport, cg_exchange_desc, cg_io, cg_layer and the calls on them
   Needs    compgrad.h
   Touches  nothing */

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
    /* Optional, for servers, which do not know who sends next; exchanges never call it. Waits at most timeout_ms (< 0:
       for as long as it takes; 0: only looks) for a message that some rank sends to this one by sendrecv. It receives
       one message, whole: *len bytes of at most cap in in, and *from is its sender. No message in time is no error: it
       returns 0 with *from = -1 and *len = 0. A message longer than cap is an error, and so is a rank that nobody can
       hear any more, with that rank in *from. Of two messages of one sender the earlier comes first. */
    int (*recv_any)(void *user, void *in, size_t cap, size_t *len, int *from, int timeout_ms);
    uint64_t reserved[7]; /* must be 0 */
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
    CG_ROUTE_LINEAR,
    /* the legs of scatter by themselves, see cg_reduce_scatter and cg_all_gather; AUTO never takes them */
    CG_ROUTE_REDUCE_SCATTER,
    CG_ROUTE_ALL_GATHER
} cg_route;
typedef enum cg_fold {
    CG_FOLD_MEAN = 0,
    CG_FOLD_SUM /* on the route allgather a sum too large for f32 is Inf */,
    CG_FOLD_VOTE /* majority of signs, + for a tie */,
    CG_FOLD_CONTRIBUTORS /* mean over the ranks whose packet has that value */,
    /* folds that a minority of ranks cannot spoil, whatever it sends; desc.fold_limit is their parameter */
    CG_FOLD_MEDIAN /* coordinate by coordinate */,
    CG_FOLD_TRIMMED /* coordinate by coordinate the mean without the largest and the smallest values */,
    CG_FOLD_CLIPPED /* the mean of vectors that are scaled down to a multiple of the median norm */
} cg_fold;
/* The name of a route or fold in text, as "scatter" and "mean"; NULL: there is none with that number. */
CG_API_ const char *cg_route_name(uint32_t route);
CG_API_ const char *cg_fold_name(uint32_t fold);
/* The route or fold of that name, in letters of either case. CG_E_ARG: there is none, and *route stays as it is. */
CG_API_ CG_CHECKED_ cg_status cg_route_parse(uint32_t *route, const char *text);
CG_API_ CG_CHECKED_ cg_status cg_fold_parse(uint32_t *fold, const char *text);
/* How f32 values are summed on the routes linear and shared: desc.sum, and report.sum, which says how it was. The order
   of a sum is in the manual; by doubling and by halving it is the same, to the bit. */
typedef enum cg_sum {
    CG_SUM_AUTO = 0, /* your allreduce, if its result agrees, otherwise CG_SUM_TREE */
    CG_SUM_RING,     /* sendrecv, 2 (N-1) rounds: around a ring */
    CG_SUM_TREE,     /* sendrecv: by doubling or halving, whichever costs less (desc.alpha, desc.beta) */
    CG_SUM_DOUBLING, /* log2 N rounds of the whole vector; 2 more if N is no power of 2 */
    CG_SUM_HALVING,  /* 2 log2 N rounds of ever smaller parts (Rabenseifner); up to 4 log2 N if N is no power of 2 */
    CG_SUM_CALLBACK, /* report.sum only: your allreduce */
    CG_SUM_GATHER    /* report.sum only: without sendrecv, over allgather or broadcast */
} cg_sum;
enum { CG_LEADER_BY_SCORE = -1 };
/* desc.flags */
enum {
    /* all ranks quantize with the largest scale of any rank, so that levels add as integers */
    CG_AGREE_SCALES = 1,
    /* this rank contributes zeros: it counts in N, but its x is not read. Only for the route allgather with the fold
       mean or sum, without CG_AGREE_SCALES */
    CG_ABSTAIN = 2,
    /* a closing round (24 bytes per rank), in which every rank tells all others whether it has succeeded, before
       anything is written: all ranks succeed or none does, unless a message of that round is lost */
    CG_CONFIRM = 4,
    /* ranks abstain often: a packet of nothing then is a header, and takes a verdict of 24 bytes per rank before the
       packets. Without this flag it is padded to the length of the others, if that follows from n */
    CG_MAY_ABSTAIN = 8,
    /* of layers, with CG_CONFIRM: if one of them fails, no layer is written. It holds for all layers of a call if one
       of them has it */
    CG_TOGETHER = 64,
    /* you feed back what report.used lacks of x (cg_ef_exchange does): no warning if op is biased; and used is a
       packet, and into as it was after an error, also of a dense vector on the route linear */
    CG_FEEDS_BACK = 32,
    /* ranks round together: their noise is spread evenly, so that the mean has a smaller error, for no bits more
       (cg_extra.correlated). For the routes allgather, server and scatter; nothing changes where op rounds to
       nearest */
    CG_CORRELATED = 128,
    /* dense vectors on the route linear: on the terms of MPI_IN_PLACE, x holds anything after an error, and report.used
       is NULL. One pass over x less. Without effect elsewhere, with into, and with CG_FEEDS_BACK */
    CG_IN_PLACE = 256,
    /* of a layer of cg_exchange_layers with fewer than `small` values: it keeps its operator, and travels by allgather
       with all such layers in one packet, of which each is a segment */
    CG_ONE_PACKET = 512
};

/* A zero field means its default. All fields must be equal on all ranks, except weight, score, carry, warm, side, into,
   model and the flags CG_ABSTAIN, CG_FEEDS_BACK and CG_IN_PLACE. The struct is copied; the memory that
   its pointers name must stay valid until the exchange has ended. */
typedef struct cg_exchange_desc {
    cg_op op; /* compresses x; zero: dense f32 */
    /* Operator of the second leg on the routes server and scatter. NULL: the sum itself if packets add exactly;
       otherwise f32 (server, or weighted f32 values) or op (scatter) */
    const cg_op *back;
    uint32_t route, fold; /* cg_route, cg_fold */
    cg_tag tag;           /* seed, step and tensor; rank is filled in */
    /* The factor of this rank in the fold: positive and not denormal. 0 means 1, and must be 0 on all ranks or none */
    float weight;
    /* r + 1: rank r leads. 0: rank 0 (server) or rank (step + tensor) % N (shared, STAR), so that the layers of a step
       are led by different ranks. CG_LEADER_BY_SCORE: the rank with the largest score (VAR) */
    int leader;
    /* Finite; matters only with CG_LEADER_BY_SCORE. VAR takes a running mean of |gradient|; cg_ef_exchange does so */
    float score;
    /* The residual of the second leg: cg_exchange_carry() floats, zeros before the first step; read and updated. With
       CG_ROUTE_AUTO it must be given on all ranks or on none */
    float *carry;
    /* Low-rank: cols * r floats, zeros before the first step; the next power iteration starts from them */
    float *warm;
    const cg_extra *side; /* aux, scales, support, codecs and segments for op; NULL: none */
    /* CG_AGREE_SCALES, CG_ABSTAIN, CG_CONFIRM, CG_MAY_ABSTAIN, CG_FEEDS_BACK, CG_CORRELATED, CG_IN_PLACE */
    uint32_t flags;
    /* n floats that receive the result; NULL: x receives it. A dense vector on the route linear is summed there, so
       that into holds anything after an error */
    float *into;
    /* n floats that overlap neither x nor into, or NULL. If given, the exchange ends with a step of SGD,
       model -= rate * result, instead of writing a result, and may use into (or x) as scratch. A sum of sparse f32
       packets by allgather changes only the values of model that some rank sent, and leaves into and x alone. An Inf in
       the result (CG_FOLD_SUM) reaches model. */
    float *model;
    float rate; /* of model: finite, and 0 means 0; must be equal on all ranks, which is not checked */
    /* hash of what must be the same on all ranks beside desc: ranks that differ get CG_E_MISMATCH; 0: nothing */
    uint64_t common;
    uint32_t sum; /* cg_sum: how f32 values are summed; anything but 0 needs sendrecv, and takes it */
    /* TRIMMED: share of ranks cut at each end, below 0.5; 0 means 0.25, and at least one rank is cut. CLIPPED: the
       longest norm, as a multiple of the median norm; 0 means 1. Otherwise 0 */
    float fold_limit;
    /* Of reduce_scatter and all_gather: rank r has the values [bounds[r], bounds[r + 1]) of x; N + 1 numbers that begin
       with 0, do not fall and end with n. NULL: as cg_stripe_begin gives them */
    const size_t *bounds;
    /* Of cg_exchange_levels: what the operator has left out of earlier vectors, a float for each value, zeros before
       the first step. NULL: none is kept */
    float *residual;
    float *mine; /* of the same routes: where this rank's stripe is; NULL: at its place in x (or into) */
    /* What a message costs: alpha seconds and beta seconds per byte. Routes and ways to sum are chosen by it. 0: 4e-5
       and 2e-9, a common network */
    double alpha, beta;
    uint64_t reserved[8]; /* must be 0 */
} cg_exchange_desc;

/* ---- messages, for those who drive an exchange themselves ---- */

typedef enum cg_io_kind {
    CG_IO_NONE = 0,
    CG_IO_ALLREDUCE,
    CG_IO_ALLGATHER,
    CG_IO_BROADCAST,
    CG_IO_SENDRECV
} cg_io_kind;
typedef struct cg_io { /* the next message; its buffers belong to the exchange, or are parts of x or into */
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
   unchanged, but see CG_IN_PLACE and into. A dense vector on the route linear is summed in x itself: nobody else may
   read x meanwhile. */
CG_API_ CG_CHECKED_ cg_status cg_exchange(const cg_exchange_desc *desc, const cg_transport *transport, float *x,
    size_t n, void *mem, size_t bytes, cg_report *report);

/* ---- sharded vectors (ZeRO, FSDP): the two legs of the route scatter as calls of their own ---- */

/* Where the stripe of rank r of `ranks` begins in n values, if bounds is NULL; of r = ranks: n. */
CG_API_ size_t cg_stripe_begin(size_t n, int ranks, int r);
/* mine := the fold over all ranks of this rank's stripe of x, [bounds[rank], bounds[rank + 1]). desc.op compresses each
   stripe. report.used is this rank's contribution, for all n values. x is read only; mine may be a part of it. With
   desc.model (n floats) its stripe takes the step. Takes what the route scatter takes, but no carry and no back. For
   error feedback call cg_ef_exchange with the route CG_ROUTE_REDUCE_SCATTER. */
CG_API_ CG_CHECKED_ cg_status cg_reduce_scatter(const cg_exchange_desc *desc, const cg_transport *transport,
    const float *x, size_t n, const size_t *bounds, float *mine, void *mem, size_t bytes, cg_report *report);
CG_API_ size_t cg_reduce_scatter_memory(
    const cg_exchange_desc *desc, const cg_transport *transport, size_t n, const size_t *bounds);
/* x := the stripes of all ranks, each as its owner has encoded it by desc.op, so that all have the same bits. A biased
   operator is taken, and loses what it leaves out (report.why says so), unless desc.carry, one float for each value of
   mine, keeps that for the next call. mine may be a part of x. report.used is the packet of mine. */
CG_API_ CG_CHECKED_ cg_status cg_all_gather(const cg_exchange_desc *desc, const cg_transport *transport,
    const float *mine, const size_t *bounds, float *x, size_t n, void *mem, size_t bytes, cg_report *report);
CG_API_ size_t cg_all_gather_memory(
    const cg_exchange_desc *desc, const cg_transport *transport, size_t n, const size_t *bounds);

/* ---- two levels: nodes of several ranks each ---- */

/* x := the mean over all ranks of all nodes, with the same bits everywhere. node: the ranks of this node, as many in
   each; across: the ranks with this one's number in every node. Inside, each rank gets the fold of a stripe by
   inner->op; it exchanges that by `outer` with the other nodes (any operator and route; top-k, say); and the stripes
   go back to the node by inner->back (NULL: as f32). inner->residual (n floats) and outer->residual (as many as the
   stripe, cg_stripe_begin) keep what op leaves out; inner->carry (as many) what back leaves out, outer->carry what
   its route says. With CG_CONFIRM in either description all ranks of all nodes succeed or none does, unless a message
   of the closing between nodes is lost or damaged. After an error x, residuals and carries are as before; report.rank
   is a rank of the transport on which the error was found: that of the node for the routes reduce_scatter and
   all_gather. report has the bytes and rounds of all; used is NULL. No weights, folds or model. */
CG_API_ CG_CHECKED_ cg_status cg_exchange_levels(const cg_exchange_desc *inner, const cg_transport *node,
    const cg_exchange_desc *outer, const cg_transport *across, float *x, size_t n, void *mem, size_t bytes,
    cg_report *report);
CG_API_ size_t cg_exchange_levels_memory(const cg_exchange_desc *inner, const cg_transport *node,
    const cg_exchange_desc *outer, const cg_transport *across, size_t n);

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
   allgathers; then one exchange follows the other. Low-rank layers (route linear, equal sum, alpha and beta) share
   one allreduce for all left factors and one for all right ones, and have the bits that they have alone, unless your
   allreduce adds in an order that depends on the length. Layers with fewer than `small` values travel together as one
   dense vector, if their fold is the mean or the sum and if fold and weight equal those of the first such layer. If a
   rank cannot start one of its layers (NaN, a refused operator), no layer is exchanged. A layer that fails later
   keeps its x and model, and the others are exchanged nevertheless, except after CG_E_TRANSPORT and with CG_TOGETHER.
   Returns the first failure. *report has the sums of bytes and rounds, with those that layers share, the route if all
   took one, and of that failure what it was (need and at as in that layer) or the first warning; each layer's own,
   and its used, are in layers[i].report. */
CG_API_ CG_CHECKED_ cg_status cg_exchange_layers(cg_layer *layers, size_t count, size_t small,
    const cg_transport *transport, void *mem, size_t bytes, cg_report *report);

/* Private from here on. [mem] marks a pointer into the caller's mem: set by cg_mem_plan_, NULL on routes that do not
   need it. cg_ex_init_ zeroes everything else. */

/* A collective under way: set by cg_*_begin_, advanced by cg_collective_next_. What cg_gathered_ reads (via, mine, buf,
   sizes, longest, bytes) stays valid after the collective is complete, until the next one begins. */
typedef struct cg_collective_state_ {
    uint32_t kind;         /* CG_COLL_*_: what was asked for; CG_COLL_NONE_ once complete */
    uint32_t via;          /* CG_VIA_*_: the callback that carries it */
    int root;              /* broadcast: the rank that has the bytes */
    int to, from;          /* sendrecv only: peers, < 0: none */
    int step;              /* messages asked for so far; Bruck's allgather: blocks that have arrived */
    int mask;              /* broadcast by a binomial tree: bit of the child that was served last */
    int swap_back;         /* broadcast that ends an allreduce: buf has little-endian floats, swapped at the end */
    const uint8_t *mine;   /* allgather: this rank's bytes; sendrecv: what goes out */
    uint8_t *buf;          /* allgather: where all go; sendrecv: what comes in; broadcast, allreduce: in place */
    uint32_t sum;          /* allreduce: CG_SUM_*, how */
    const uint64_t *sizes; /* allgather: bytes from every rank */
    uint64_t longest;      /* allgather: the largest of sizes */
    size_t bytes;          /* broadcast, allreduce: of buf; sendrecv: out; allgather: from each, 0 if sizes differ */
    size_t in_bytes;       /* sendrecv: bytes that come in */
    size_t done, fragment; /* carried out in fragments through mem.bounce: bytes done, and of the one under way */
} cg_collective_state_;

struct cg_exchange_state {
    /* the call: copies of its arguments, by cg_ex_init_ */
    cg_exchange_desc desc; /* tag.rank filled in; model NULL once cg_readers_step_model_ has taken the step */
    cg_transport transport;
    float *grad;                   /* what is compressed: the caller's x, or &no_grad */
    float *result;                 /* where the result goes: desc.into, or grad */
    size_t n;                      /* floats of grad and result */
    struct cg_producer_ *producer; /* makes grad block by block, if it is still to be made; NULL once made */
    float no_grad;                 /* what grad points to if x is NULL */

    /* the outcome */
    cg_status status; /* this rank's first failure, by cg_ex_fail_; a callback's failure replaces it (cg_ex_next_) */
    cg_report report; /* rank, why: cg_ex_fail_; bytes, rounds: cg_count_io_; used: the route; rest: cg_ex_finish_ */

    const struct cg_resolved_ *resolved; /* [mem] desc.op and n; before cg_mem_plan_ elsewhere; NULL: not yet */

    /* what follows from desc, transport and n; by cg_ex_resolve_ */
    struct {
        uint32_t route;         /* desc.route, or the one that CG_ROUTE_AUTO chose */
        int stripes;            /* pieces of grad with a packet each: N (ring, scatter), otherwise 1 */
        int root;               /* the leader; CG_LEADER_BY_SCORE: set again by cg_records_check_ */
        cg_op back;             /* operator of sums that are encoded again */
        int exact;              /* sums of packets are packets (cg_reduce) and lose nothing */
        int op_len_fixed;       /* the length of a packet of desc.op follows from n, and is cg_bound_with */
        int reduced_len_fixed;  /* the same of a reduced packet */
        uint32_t traits;        /* of desc.op */
        uint32_t back_traits;   /* of back */
        size_t left_floats;     /* matrices: values of the left factor */
        int has_pairs;          /* desc.op has packets of (index, f32 value) pairs, without a code */
        uint64_t transformed_n; /* values of grad behind the sample and the transform of desc.op, at most */
        size_t packet_room;     /* bytes of the packet of any stripe, at most */
        uint64_t scratch_bytes; /* to compress any stripe by desc.op or back */
        uint64_t segments_hash; /* of desc.side->segments: what packets must have in common; 0: there are none */
        uint64_t max_level_sum; /* exact sums of levels: the largest that N ranks can reach; 0: f32 values */
        size_t max_selected;    /* selections: values of a packet at most */
        size_t k;               /* merge, region: number of values that survive */
        const char *warning;    /* report.why after CG_OK; NULL: nothing to say */
        /* what CG_ROUTE_AUTO says of its choice, for the report */
        const char *choice;
        double seconds, instead_seconds;
        uint32_t instead;
        int direct; /* a dense vector that an allreduce sums where it stands */
    } plan;

    /* the first round, and what follows from the records of all ranks */
    struct {
        uint8_t record[64]; /* this rank's (CG_RECORD_BYTES_); by cg_record_put_ */
        uint8_t *records;   /* [mem] everybody's, in rank order; or in fallback */
        uint8_t *gathered;  /* [mem] where the allgather of records leaves them; or in fallback */
        int in_batch; /* one of many layers: cg_batch_exchange_ moves the records, a verdict and the closing of all */
        int joined;   /* of a batch: a low-rank layer that shares its sums with others; by cg_joined_run_ */
        double weight_sum;   /* of all ranks; by cg_records_check_ */
        float result_factor; /* what the reduced packet is multiplied by when decoded; by cg_records_check_ */
        float bounce[256];   /* mem.bounce during the opening, which also works without the caller's mem */
        /* mem.sizes, and records and gathered, of up to CG_FALLBACK_RANKS_ (16) ranks that lack memory */
        uint64_t fallback_sizes[16];
        uint8_t fallback[2 * 16 * 64];
    } opening;

    /* CG_AGREE_SCALES */
    struct {
        uint64_t count; /* of all stripes; by cg_mem_plan_ */
        int agreed;     /* max is set; by cg_scales_agree_ */
        float *max;     /* [mem] count: of each scale the largest of all ranks; by cg_scales_agree_ */
        uint8_t *all;   /* [mem] count scales of this rank, then room for everybody's */
    } scales;

    /* where the coroutine (opening, then a route) goes on; by cg_ex_next_ and the CG_CO_ macros */
    struct {
        int phase;      /* CG_PHASE_*_ */
        int line;       /* the CG_CO_YIELD_ that it waits at; 0: from the top */
        int i;          /* loop variable of the route, which outlasts a wait: hop, distance in a tree, rank, byte */
        int io_pending; /* io has been handed out, and its code is not known yet */
        cg_io io;
    } co;

    cg_collective_state_ collective; /* what the coroutine waits for */

    /* a packet to one rank and one from another (CG_CO_HOP_); by cg_hop_set_ */
    struct {
        const uint8_t *out;
        uint8_t *in;
        size_t out_len, in_len; /* in_len: from the preamble, if not known before */
        size_t in_cap;
        int to, from; /* < 0: none */
    } hop;

    /* notes of CG_NOTE_BYTES_, by cg_note_put_: preambles, their receipts, verdicts */
    struct {
        uint8_t out[24];                         /* this rank's */
        uint8_t in[24];                          /* of hop.from, or of the root of a broadcast */
        uint8_t receipt_out[24], receipt_in[24]; /* to hop.from, and of hop.to */
        /* [mem] everybody's; scatter, region: each behind a table of N u64, and this rank's behind all of them */
        uint8_t *all;
    } note;

    /* grad as packets, stripe by stripe; by cg_stripes_compress_ */
    struct {
        /* [mem] one after the other. Ring, tree, not exact: empty until cg_contribution_less_hop_error_ */
        uint8_t *packets;
        uint64_t *offset; /* [mem] stripes + 1: where each packet begins in packets */
    } own;

    /* packets to be added up: one of every rank (cg_inputs_from_gather_, routes) or hop (cg_partial_add_) */
    struct {
        const void **packet;              /* [mem] N */
        size_t *len;                      /* [mem] N */
        struct cg_decoder_ *decoder;      /* [mem] N; by cg_accum_packet_, or the route */
        int opened;                       /* decoder has packet, opened: allgather */
        struct cg_sparse_reader_ *reader; /* [mem] N: allgather of sparse f32 packets, otherwise NULL */
    } inputs;

    /* the sum so far (ring, tree, merge), or of this rank's region */
    struct {
        const uint8_t *packet; /* in buf, own.packets or reduced.packet; goes out in the next hop */
        size_t len;
        /* [mem] ring, tree: written in turn, reduced.cap each; buf[0] also takes a failure packet. Merge: the sum of
           two packets, and what it drops. Region: buf[0] is the sum */
        uint8_t *buf[2];
        int flip;     /* which of buf was written last */
        int received; /* ring, tree, not exact: inputs that have come since cg_partial_begin_ */
    } partial;

    /* the packet that all ranks get: the fold of inputs, of a stripe or of the whole */
    struct {
        /* [mem] ring, tree: set by the route, to partial.packet or mem.inbox. Shared: indices, then values. Region:
           also a histogram */
        uint8_t *packet;
        size_t len, cap; /* cap: by cg_mem_plan_ */
    } reduced;

    /* merge, region: minus what this rank has cut off sums; by cg_threshold_split_ */
    struct {
        int any;         /* there is something in buf[flip] */
        int flip;        /* which of buf has it */
        uint8_t *buf[2]; /* [mem] a sparse f32 packet. Region: buf[0] first has own.packets, cut by region */
        size_t len, cap; /* cap: by cg_mem_plan_ */
    } dropped;

    /* the part of grad that went into the result, where that is not own.packets (report.used) */
    struct {
        uint8_t *packets; /* [mem] or NULL */
        size_t len, cap;  /* len: also of what report.used points to instead; 0: all of own.packets */
    } contrib;

    /* plan.direct */
    struct {
        float *sum;         /* where it is summed: result, or saved if result is at an odd address */
        float *saved;       /* [mem] n floats, behind the header of own.packets: grad as it was, by cg_direct_start_ */
        int overwritten;    /* grad is not what it was, and has to be after an error */
        int uses_reference; /* report.used is a reference, at own.packets, and not a packet */
    } direct;

    /* Ok-Topk */
    struct {
        uint64_t *bounds;        /* [mem] N + 1: where regions begin; by cg_region_bounds_ */
        uint64_t *send_offset;   /* [mem] N: where the packet to each owner begins in dropped.buf[0] */
        uint64_t *ties;          /* [mem] N: values equal to the threshold that survive in each region */
        uint8_t *histograms;     /* [mem] N x 256 counts */
        uint32_t threshold_bits; /* magnitude of the smallest value that survives: the bytes found so far */
        uint64_t remaining;      /* of plan.k: how many may survive among those that share these bytes */
    } region;

    /* the other buffers in mem */
    struct {
        /* [mem] packets on their way to be added up; region: then everybody's reduced packets; shared: the leader's
           indices */
        uint8_t *inbox;
        uint8_t *stripes;       /* [mem] ring, scatter: everybody's reduced packets */
        float *sum;             /* [mem] decoded sum that is encoded again; then what that has lost */
        uint8_t *lists;         /* [mem] two cg_list_ of list_cap values; merge, region, shared */
        size_t list_cap;        /* values */
        float *rows;            /* [mem] robust folds: N x n, every rank's decoded vector */
        double *norms;          /* [mem] robust folds: 2 N */
        uint32_t *contributors; /* [mem] CG_FOLD_CONTRIBUTORS of a selection: ranks that sent each value of the sum */
        double *matrix_work;    /* [mem] linear, low-rank: P and Q in double */
        uint64_t *sizes;        /* [mem] N: bytes of every rank, for the next allgather */
        uint8_t *scratch;       /* [mem] of cg_compress and cg_reduce */
        size_t scratch_bytes;
        uint8_t *bounce; /* where a collective's callback works, if not in place: opening.bounce, then route_bounce */
        size_t bounce_bytes;
        uint8_t *route_bounce; /* [mem] */
        size_t route_bounce_bytes;
    } mem;
};

#endif /* COMPGRAD_EXCHANGE_H */

/* src/exchange/begin.h */
/* begin: opens the implementation of exchanges, for the one file that defines COMPGRAD_IMPLEMENTATION

   Offers   nothing
   Needs    compgrad.h, whose implementation comes first
   Touches  nothing */

#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_EXCHANGE_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_EXCHANGE_IMPLEMENTED_

/* src/core/base/fp_begin.h */
/* fp_begin: strict floating point from here to fp_end, whatever flags the includer compiles with

   Offers   pragmas: no contraction, no reassociation, no fast math
   Needs    nothing
   Touches  the compiler's floating-point state, which fp_end gives back; every header has both once
   All code whose results are part of a packet stands between the two. */
#if defined(COMPGRAD_ONLY) && defined(__GNUC__) /* functions that only rows name which were left out */
#  pragma GCC diagnostic push
#  pragma GCC diagnostic ignored "-Wunused-function"
#endif
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
/* ranks: ranks, stripes, tags and weights of one exchange

   Offers   cg_ex_ (the state), cg_ex_fail_, cg_ex_fail_here_, cg_stripe_*, cg_weight_of_, cg_model_step_
   Needs    base, kernels (cg_axpby_)
   Touches  ex->status and the blame in ex->report; desc.model in the steps
   Other headers may use: CG_MAKES_PACKET_, CG_SECOND_ROUND_, CG_STATE_ROOM_, cg_model_step_,
   cg_model_step_at_, cg_rate_ok_
   A stripe is the part of the gradient that has a packet of its own: one for every rank on the routes ring and scatter,
   the whole vector otherwise. */

enum { CG_RECORD_BYTES_ = 64, CG_NOTE_BYTES_ = 24, CG_COUNT_BYTES_ = 1024, CG_FALLBACK_RANKS_ = 16 };
enum { CG_PHASE_IDLE_, CG_PHASE_OPENING_, CG_PHASE_ROUTE_, CG_PHASE_CLOSING_, CG_PHASE_DONE_ };
/* A flag beside those of desc.flags: this exchange follows another one of the same call, and its record says so, so
   that neither is taken for the other. */
enum { CG_SECOND_ROUND_ = 1 << 16 };
/* Likewise: desc.mine must not be NULL, as there is a stripe to be put there. */
enum { CG_NEEDS_MINE_ = 1 << 17 };
/* Another one: report.used has to be a packet, as with CG_FEEDS_BACK. */
enum { CG_MAKES_PACKET_ = 1 << 18 };
typedef cg_exchange_state cg_ex_; /* the name used inside the implementation */
/* Bytes that cg_exchange takes from the start of mem for its state. */
#define CG_STATE_ROOM_ ((sizeof(cg_exchange_state) + 63) / 64 * 64)

/* Messages one after the other, and their bytes. */
typedef struct cg_cost_ {
    double rounds, bytes;
} cg_cost_;
static double cg_round_seconds_(const cg_ex_ *ex) { return ex->desc.alpha > 0.0 ? ex->desc.alpha : 4e-5; }
static double cg_seconds_(const cg_ex_ *ex, cg_cost_ cost) {
    return cost.rounds * cg_round_seconds_(ex) + cost.bytes * (ex->desc.beta > 0.0 ? ex->desc.beta : 2e-9);
}
static void cg_max_update_(uint64_t *a, uint64_t b) {
    if (*a < b) *a = b;
}
/* rank modulo N; it must be at least -N and less than 2 N. */
static int cg_wrap_(const cg_ex_ *ex, int rank) {
    const int size = ex->transport.size;
    return rank < 0 ? rank + size : rank >= size ? rank - size : rank;
}
static size_t cg_ranks_(const cg_ex_ *ex) { return (size_t)ex->transport.size; }
/* Records the first failure, whom it is due to (-1: nobody in particular) and a sentence; later ones are ignored. The
   caller goes on as long as other ranks wait for its messages. */
static void cg_ex_fail_(cg_ex_ *ex, cg_status status, int rank, const char *why) {
    if (ex->status != CG_OK) return;
    ex->status = status;
    ex->report.status = (uint32_t)status;
    ex->report.rank = rank;
    ex->report.why = why;
    ex->report.need = 0;
    ex->report.at = CG_NO_INDEX;
}
/* The same of this rank, with report.need and report.at. */
static void cg_ex_fail_here_(cg_ex_ *ex, cg_status status, const char *why, uint64_t need, uint64_t at) {
    if (ex->status != CG_OK) return;
    cg_ex_fail_(ex, status, ex->transport.rank, why);
    ex->report.need = need;
    ex->report.at = at;
}
/* First value of stripe p, p <= stripes: a multiple of 64, or n. Stripes differ by 64 values at most; some are empty
   if n is small. */
static size_t cg_stripe_offset_(size_t n, size_t stripes, size_t p) {
    const size_t groups = n / 64 + (n % 64 != 0), each = groups / stripes, rest = groups % stripes;
    return cg_min_(n, 64 * (each * p + (rest * p) / stripes));
}
static size_t cg_stripe_start_(const cg_ex_ *ex, int p) {
    if (ex->desc.bounds && ex->plan.stripes == ex->transport.size) return ex->desc.bounds[p];
    return cg_stripe_offset_(ex->n, (size_t)ex->plan.stripes, (size_t)p);
}
static size_t cg_stripe_n_(const cg_ex_ *ex, int p) { return cg_stripe_start_(ex, p + 1) - cg_stripe_start_(ex, p); }
/* The tag of a stripe's packet on a leg: 0 to where packets are added, 1 back to everybody. Every leg and stripe has a
   seed of its own; otherwise two roundings of one value would not be independent. */
static cg_tag cg_stripe_tag_(const cg_ex_ *ex, int stripe, int leg) {
    cg_tag tag = ex->desc.tag;
    if (ex->plan.stripes > 1 || leg)
        tag.seed = cg_mix64_(tag.seed ^ cg_mix64_((uint64_t)(stripe + 1) + (uint64_t)leg * CG_GOLDEN_));
    return tag;
}
/* From the opening records, which must be here. */
static float cg_weight_of_(const cg_ex_ *ex, size_t rank) {
    return cg_as_float_(cg_get32_(ex->opening.records + rank * CG_RECORD_BYTES_ + 40));
}

static int cg_rate_ok_(const cg_exchange_desc *d) { return !d->model || cg_is_finite_(d->rate); }
/* desc.model -= rate * v, if there is a model; cg_model_step_at_ takes the same step, to the bit, at one index. */
static void cg_model_step_(const cg_exchange_desc *d, const float *v, size_t n) {
    if (d->model && n) cg_axpby_(v, n, -d->rate, 1.0f, d->model);
}
CG_INLINE_ void cg_model_step_at_(const cg_exchange_desc *d, size_t i, float v) {
    cg_store_(d->model, i, cg_plus_(cg_load_(d->model, i), cg_times_(-d->rate, v)));
}

/* src/exchange/sums.h */
/* sums: allreduce of floats over sendrecv, by pairs or around a ring

   Offers   cg_sum_kind_ (which way), cg_sum_step_ (its messages), cg_sum_bounce_, cg_sum_cost_; floats in wire order
            (cg_floats_*_le_), cg_io_set_
   Needs    ranks, kernels (cg_axpby_, cg_absmax_bits_)
   Touches  ex->collective and the floats that it sums, ex->mem.bounce
   A tree: P is the largest power of two up to N, and r = N - P. The ranks 2i and 2i + 1, i < r, first add their vectors
   and take part as one; the rank r + i takes part alone, as the i-th of P, i >= r. Then participants at distance P/2,
   P/4, ..., 1 add what they have. By doubling they add whole vectors, and pairs are served by their odd rank. By
   halving (Rabenseifner) each keeps half of what it had, down to one part in P, and the sums come back the same way;
   of a pair each rank serves one half of the vector, so that none moves more than twice the vector. Every value is the
   sum in one and the same order either way, whatever n is and wherever the value stands: vectors may be joined, or the
   way be chosen by length, and no bit changes. On a ring the order depends on the stripe. */

/* Floats on the wire are little-endian, so that ranks of different byte order can add up each other's.
   Host order to wire order in place, or back. */
static void cg_floats_swap_le_(float *v, size_t n) {
    for (size_t i = 0; CG_BIG_ENDIAN_ && i < n; i++) {
        uint32_t u = cg_get32_((const uint8_t *)v + 4 * i);
        memcpy((uint8_t *)v + 4 * i, &u, 4);
    }
}
/* acc += in, both in wire order. */
static void cg_floats_add_le_(float *acc, const float *in, size_t n) {
#if CG_BIG_ENDIAN_
    for (size_t i = 0; i < n; i++)
        cg_put32_((uint8_t *)acc + 4 * i,
            cg_as_bits_(cg_plus_(cg_as_float_(cg_get32_((const uint8_t *)acc + 4 * i)),
                cg_as_float_(cg_get32_((const uint8_t *)in + 4 * i)))));
#else
    cg_axpby_(in, n, 1.0f, 1.0f, acc);
#endif
}
/* Largest magnitude, as bits, of n floats in wire order. */
static uint32_t cg_floats_absmax_bits_le_(const uint8_t *v, size_t n) {
#if CG_BIG_ENDIAN_
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = cg_get32_(v + 4 * i) & CG_ABS_MASK_;
        top = bits > top ? bits : top;
    }
    return top;
#else
    return cg_absmax_bits_((const float *)(const void *)v, n);
#endif
}
/* Returns 1: there is a message to move. */
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
/* What one rank does in one round of a sum: floats of the vector that go out, and that come in. */
typedef struct cg_leg_ {
    size_t out, out_n, in, in_n; /* where in the vector, and how many */
    int to, from;                /* -1: none */
    int adds;                    /* what comes is added to what is there; otherwise it takes its place */
} cg_leg_;
/* Who is who in a tree. */
typedef struct cg_tree_ {
    int ranks, participants, levels, pairs; /* N, P, log2 P, r */
    int is_pair, id;                        /* of this rank, as one of P */
} cg_tree_;
static cg_tree_ cg_tree_of_(int rank, int ranks) {
    cg_tree_ t;
    t.ranks = ranks;
    t.levels = (int)cg_log2_((uint64_t)ranks);
    t.participants = 1 << t.levels;
    t.pairs = ranks - t.participants;
    t.is_pair = rank < 2 * t.pairs;
    t.id = t.is_pair ? rank / 2 : rank - t.pairs;
    return t;
}
static void cg_leg_swap_(cg_leg_ *leg, int peer, size_t out, size_t out_end, size_t in, size_t in_end, int adds) {
    leg->to = leg->from = peer;
    leg->out = out;
    leg->out_n = out_end - out;
    leg->in = in;
    leg->in_n = in_end - in;
    leg->adds = adds;
}
/* The functions cg_leg_by_ give the round t of a rank; 0: there is none. */
static int cg_leg_by_doubling_(int rank, int ranks, size_t n, int t, cg_leg_ *leg) {
    const cg_tree_ tree = cg_tree_of_(rank, ranks);
    const int last = tree.levels + 1;
    int peer;
    if (!tree.is_pair) t++; /* pairs have one round before all others, and one behind */
    if (t > last || (t == last && !tree.is_pair)) return 0;
    if (t == 0 || t == last) {
        const int gives = (rank % 2 == 0) == (t == 0);
        cg_leg_swap_(leg, rank ^ 1, 0, gives ? n : 0, 0, gives ? 0 : n, t == 0);
        return 1;
    }
    if (tree.is_pair && rank % 2 == 0) { /* waits for its partner */
        cg_leg_swap_(leg, rank ^ 1, 0, 0, 0, 0, 0);
        return 1;
    }
    peer = tree.id ^ tree.participants >> t;
    cg_leg_swap_(leg, peer < tree.pairs ? 2 * peer + 1 : peer + tree.pairs, 0, n, 0, n, 1);
    return 1;
}
static int cg_leg_by_halving_(int rank, int ranks, size_t n, int t, cg_leg_ *leg) {
    const cg_tree_ tree = cg_tree_of_(rank, ranks);
    const int halves = tree.pairs && !tree.is_pair ? 2 : 1, rounds = tree.levels * halves, own = rank % 2;
    const size_t middle = cg_stripe_offset_(n, 2, 1);
    size_t base, len, mine, theirs, distance;
    int half, level, peer;
    if (tree.is_pair && t-- == 0) {
        if (own) cg_leg_swap_(leg, rank ^ 1, 0, middle, middle, n, 1);
        else cg_leg_swap_(leg, rank ^ 1, middle, n, 0, middle, 1);
        return 1;
    }
    if (t >= 2 * rounds) {
        if (!tree.is_pair || t > 2 * rounds) return 0;
        if (own) cg_leg_swap_(leg, rank ^ 1, middle, n, 0, middle, 0);
        else cg_leg_swap_(leg, rank ^ 1, 0, middle, middle, n, 0);
        return 1;
    }
    half = tree.is_pair ? own : t % rounds % halves;
    level = t % rounds / halves;
    if (t >= rounds) level = tree.levels - 1 - level;
    base = tree.pairs && half ? middle : 0;
    len = !tree.pairs ? n : half ? n - middle : middle;
    distance = (size_t)tree.participants >> (level + 1);
    peer = tree.id ^ (int)distance;
    mine = (size_t)tree.id & ~(distance - 1);
    theirs = mine ^ distance;
#define CG_PART_(p) (base + cg_stripe_offset_(len, (size_t)tree.participants, p))
    peer = peer < tree.pairs ? 2 * peer + half : peer + tree.pairs;
    if (t < rounds)
        cg_leg_swap_(
            leg, peer, CG_PART_(theirs), CG_PART_(theirs + distance), CG_PART_(mine), CG_PART_(mine + distance), 1);
    else
        cg_leg_swap_(
            leg, peer, CG_PART_(mine), CG_PART_(mine + distance), CG_PART_(theirs), CG_PART_(theirs + distance), 0);
#undef CG_PART_
    return 1;
}
/* In N - 1 rounds every stripe is summed on its way around, in N - 1 more the sums are handed on. */
static int cg_leg_by_ring_(int rank, int ranks, size_t n, int t, cg_leg_ *leg) {
    const size_t stripes = (size_t)ranks;
    size_t out, in;
    if (t >= 2 * (ranks - 1)) return 0;
    /* after ranks - 1 rounds the sum of stripe rank + 1 is complete */
    out = (size_t)(((rank - t + (t >= ranks - 1 ? ranks : 0)) % ranks + ranks) % ranks);
    in = (out + stripes - 1) % stripes;
    cg_leg_swap_(leg, 0, cg_stripe_offset_(n, stripes, out), cg_stripe_offset_(n, stripes, out + 1),
        cg_stripe_offset_(n, stripes, in), cg_stripe_offset_(n, stripes, in + 1), t < ranks - 1);
    leg->to = (rank + 1) % ranks;
    leg->from = (rank + ranks - 1) % ranks;
    return 1;
}
static int cg_leg_at_(const cg_ex_ *ex, uint32_t sum, size_t n, int t, cg_leg_ *leg) {
    const int rank = ex->transport.rank, ranks = ex->transport.size;
    if (sum == CG_SUM_RING) return cg_leg_by_ring_(rank, ranks, n, t, leg);
    if (sum == CG_SUM_HALVING) return cg_leg_by_halving_(rank, ranks, n, t, leg);
    return cg_leg_by_doubling_(rank, ranks, n, t, leg);
}
/* Floats of the bounce buffer that a sum of n needs: what one round adds. */
static uint64_t cg_sum_bounce_(uint32_t sum, int ranks, uint64_t n) {
    const uint64_t share = sum == CG_SUM_RING ? (uint64_t)ranks : sum == CG_SUM_HALVING ? 2 : 1;
    return share > 1 && n / share + 128 < n ? n / share + 128 : n;
}
/* Rounds, and bytes one after the other, of the rank that has most of them. */
static cg_cost_ cg_sum_cost_(uint32_t sum, int ranks, uint64_t n) {
    const cg_tree_ tree = cg_tree_of_(0, ranks);
    const double bytes = 4.0 * (double)n;
    cg_cost_ cost;
    if (sum == CG_SUM_DOUBLING) {
        cost.rounds = tree.levels + (tree.pairs ? 2 : 0);
        cost.bytes = bytes * cost.rounds;
    } else if (sum == CG_SUM_HALVING) {
        cost.rounds = tree.levels * (tree.pairs ? 4 : 2);
        cost.bytes = bytes * (2.0 - (tree.pairs ? 1.0 : 2.0) / tree.participants);
    } else {
        cost.rounds = 2.0 * (ranks - 1);
        cost.bytes = bytes * 2.0 * (ranks - 1) / ranks;
    }
    return cost;
}
/* How n floats are summed: CG_SUM_RING, CG_SUM_DOUBLING or CG_SUM_HALVING; CG_SUM_CALLBACK: by the caller's allreduce,
   which has to give all ranks the same bits unless there is no other callback; CG_SUM_GATHER: over allgather or
   broadcast. */
static uint32_t cg_sum_kind_(const cg_ex_ *ex, size_t n) {
    const cg_transport *t = &ex->transport;
    const uint32_t sum = ex->desc.sum;
    if (t->allreduce && !sum && ((t->flags & CG_ALLREDUCE_AGREES) || !(t->sendrecv || t->allgather || t->broadcast)))
        return CG_SUM_CALLBACK;
    if (!t->sendrecv) return t->allgather || t->broadcast ? CG_SUM_GATHER : CG_SUM_CALLBACK;
    if (sum != CG_SUM_AUTO && sum != CG_SUM_TREE) return sum;
    return cg_seconds_(ex, cg_sum_cost_(CG_SUM_HALVING, t->size, n)) <
            cg_seconds_(ex, cg_sum_cost_(CG_SUM_DOUBLING, t->size, n))
        ? CG_SUM_HALVING
        : CG_SUM_DOUBLING;
}
/* Uses what the last message brought, then sets io to the next and returns 1, or returns 0: the sum is there. */
static int cg_sum_step_(cg_ex_ *ex, cg_io *io) {
    cg_collective_state_ *c = &ex->collective;
    const size_t n = c->bytes / 4;
    float *v = (float *)(void *)c->buf;
    cg_leg_ leg;
    if (c->step && cg_leg_at_(ex, c->sum, n, c->step - 1, &leg) && leg.adds)
        cg_floats_add_le_(v + leg.in, (const float *)(void *)ex->mem.bounce, leg.in_n);
    if (!cg_leg_at_(ex, c->sum, n, c->step++, &leg)) return 0;
    return cg_io_set_(io, CG_IO_SENDRECV, v + leg.out, 4 * leg.out_n, leg.out_n ? leg.to : -1,
        leg.adds ? (void *)ex->mem.bounce : (void *)(v + leg.in), 4 * leg.in_n, leg.in_n ? leg.from : -1);
}

/* src/exchange/collectives.h */
/* collectives: allgather, broadcast and allreduce out of the callbacks that the transport has

   Offers   cg_*_begin_, cg_collective_next_, cg_gathered_
   Needs    ranks, sums
   Touches  ex->collective, ex->mem.sizes, ex->mem.bounce and the buffers that cg_*_begin_ was given
   A collective is begun, then cg_collective_next_ names the messages that it takes, one after the other; the caller
   moves each before it asks for the next. Without the callback of its own name it goes by sendrecv, allgather,
   broadcast or allreduce, whichever comes first; the last three move it in fragments through ex->mem.bounce. */

enum { CG_COLL_NONE_, CG_COLL_ALLGATHER_, CG_COLL_BROADCAST_, CG_COLL_ALLREDUCE_, CG_COLL_SENDRECV_ };
/* the callback of the same name, or one that stands in for it */
enum { CG_VIA_OWN_CALLBACK_, CG_VIA_SENDRECV_, CG_VIA_ALLGATHER_, CG_VIA_BROADCAST_, CG_VIA_ALLREDUCE_ };

/* The transport has at least one callback, or one rank. */
static uint32_t cg_via_fallback_(const cg_transport *t) {
    return (uint32_t)(t->sendrecv ? CG_VIA_SENDRECV_
            : t->allgather        ? CG_VIA_ALLGATHER_
            : t->broadcast        ? CG_VIA_BROADCAST_
                                  : CG_VIA_ALLREDUCE_);
}
static uint32_t cg_via_(const cg_transport *t, int has_callback) {
    return has_callback ? (uint32_t)CG_VIA_OWN_CALLBACK_ : cg_via_fallback_(t);
}

/* Sets up ex->collective anew; what the last collective left there (cg_gathered_) is gone. */
static void cg_collective_begin_(
    cg_ex_ *ex, uint32_t kind, uint32_t via, const void *mine, void *buf, size_t bytes, int root) {
    cg_collective_state_ *c = &ex->collective;
    memset(c, 0, sizeof *c);
    c->kind = kind;
    c->via = via;
    c->mine = (const uint8_t *)mine;
    c->buf = (uint8_t *)buf;
    c->bytes = bytes;
    c->root = root;
}
/* Gathers `mine` of every rank, sizes[rank] bytes each, which all ranks know. buf has room for N times the largest
   size, and mine for the largest: what stands behind its own bytes may be sent, and is zeroed then. Both, and sizes,
   must stay until cg_gathered_ has been asked. */
static void cg_allgather_begin_(cg_ex_ *ex, uint8_t *mine, const uint64_t *sizes, void *buf) {
    const cg_transport *t = &ex->transport;
    uint64_t longest = 0, all = 0;
    uint32_t via = cg_via_fallback_(t);
    for (size_t q = 0; q < cg_ranks_(ex); q++) {
        longest = sizes[q] > longest ? sizes[q] : longest;
        all += sizes[q];
    }
    /* the allgather callback moves N times the largest size: too much where sizes differ widely */
    if (t->allgather && (via == CG_VIA_ALLGATHER_ || longest * cg_ranks_(ex) <= all + all / 4)) {
        via = CG_VIA_OWN_CALLBACK_;
        if (t->size > 1) memset(mine + (size_t)sizes[t->rank], 0, (size_t)(longest - sizes[t->rank]));
    }
    cg_collective_begin_(
        ex, CG_COLL_ALLGATHER_, via, mine, buf, all == longest * cg_ranks_(ex) ? (size_t)longest : 0, 0);
    ex->collective.sizes = sizes;
    ex->collective.longest = longest;
}
/* The same for `each` bytes from every rank; overwrites ex->mem.sizes. */
static void cg_allgather_equal_begin_(cg_ex_ *ex, uint8_t *mine, uint64_t each, uint8_t *all) {
    for (size_t q = 0; q < cg_ranks_(ex); q++) ex->mem.sizes[q] = each;
    cg_allgather_begin_(ex, mine, ex->mem.sizes, all);
}
/* buf of root to all, in place. */
static void cg_broadcast_begin_(cg_ex_ *ex, void *buf, size_t bytes, int root) {
    cg_collective_begin_(
        ex, CG_COLL_BROADCAST_, cg_via_(&ex->transport, ex->transport.broadcast != NULL), NULL, buf, bytes, root);
}
/* Sums v over ranks in place, with the same bits on every rank. */
static void cg_allreduce_begin_(cg_ex_ *ex, float *v, size_t n) {
    const uint32_t sum = cg_sum_kind_(ex, n);
    cg_collective_begin_(ex, CG_COLL_ALLREDUCE_, cg_via_(&ex->transport, sum == CG_SUM_CALLBACK), NULL, v, 4 * n, 0);
    ex->collective.sum = sum;
    if (n && ex->transport.size > 1)
        ex->report.sum = ex->report.sum && ex->report.sum != sum ? (uint32_t)CG_SUM_TREE : sum;
}
/* out to one rank while in comes from another; a peer < 0: none. */
static void cg_sendrecv_begin_(
    cg_ex_ *ex, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    cg_collective_state_ *c = &ex->collective;
    cg_collective_begin_(ex, CG_COLL_SENDRECV_, CG_VIA_OWN_CALLBACK_, out, in, to < 0 ? 0 : out_bytes, -1);
    c->in_bytes = from < 0 ? 0 : in_bytes;
    c->to = to;
    c->from = from;
}
/* Bytes of i ranks of an allgather, from rank `first` on and around. */
static size_t cg_sizes_prefix_sum_(const cg_ex_ *ex, size_t first, size_t i) {
    const cg_collective_state_ *c = &ex->collective;
    uint64_t at = 0;
    if (c->bytes) return i * c->bytes; /* equal sizes */
    for (size_t j = 0; j < i; j++) at += c->sizes[(first + j) % cg_ranks_(ex)];
    return (size_t)at;
}
/* Where the last allgather left rank q's bytes; until another collective begins. */
static const uint8_t *cg_gathered_(const cg_ex_ *ex, size_t q) {
    const cg_collective_state_ *c = &ex->collective;
    const size_t me = (size_t)ex->transport.rank, size = cg_ranks_(ex);
    if (q == me) return c->mine;
    if (c->via == CG_VIA_SENDRECV_) return c->buf + cg_sizes_prefix_sum_(ex, me, (q + size - me) % size);
    return c->buf + (c->via == CG_VIA_ALLREDUCE_ ? cg_sizes_prefix_sum_(ex, 0, q) : q * (size_t)c->longest);
}
/* An allreduce can move bytes: three to a float, zeros from all ranks but one, so that the sum is exact.
   Bytes [offset, offset + many) of a string become floats at v; this rank has [own_begin, own_end) of it, at mine. */
static void cg_bytes_to_floats_(
    float *v, const uint8_t *mine, size_t own_begin, size_t own_end, size_t offset, size_t many) {
    for (size_t i = 0; i < many; i += 3) {
        uint32_t u = 0;
        for (size_t j = 0; j < 3 && i + j < many; j++)
            if (offset + i + j >= own_begin && offset + i + j < own_end)
                u |= (uint32_t)mine[offset + i + j - own_begin] << 8 * j;
        v[i / 3] = (float)u;
    }
}
/* And back; 0: a float is not such a sum. */
static int cg_floats_to_bytes_(const float *v, uint8_t *out, size_t many) {
    for (size_t i = 0; i < many; i += 3) {
        uint32_t u;
        if (!(v[i / 3] >= 0.0f && v[i / 3] < 16777216.0f)) return 0;
        u = (uint32_t)v[i / 3];
        for (size_t j = 0; j < 3 && i + j < many; j++) out[i + j] = (uint8_t)(u >> 8 * j);
    }
    return 1;
}
/* All cg_*_step_ functions first use what the last message brought, then set io to the next and return 1, or return 0
   when the collective is complete. own_begin, own_end: as above; total: bytes of the string. */
static int cg_bytes_by_allreduce_step_(cg_ex_ *ex, cg_io *io, size_t own_begin, size_t own_end, size_t total) {
    cg_collective_state_ *c = &ex->collective;
    const uint8_t *mine = c->kind == CG_COLL_BROADCAST_ ? c->buf : c->mine;
    if (c->step++) {
        if (c->kind == CG_COLL_BROADCAST_ && own_end > own_begin) {
            /* the root keeps its own bytes: it would not check a packet of its own again */
        } else if (!cg_floats_to_bytes_((const float *)(void *)ex->mem.bounce, c->buf + c->done, c->fragment)) {
            /* no sum: bytes that are no packet, record or note, and as floats NaN */
            memset(c->buf + c->done, 0xff, c->fragment);
        }
        c->done += c->fragment;
    }
    if (c->done == total) return 0;
    c->fragment = cg_min_(total - c->done, ex->mem.bounce_bytes / 4 * 3);
    cg_bytes_to_floats_((float *)(void *)ex->mem.bounce, mine, own_begin, own_end, c->done, c->fragment);
    return cg_io_set_(io, CG_IO_ALLREDUCE, NULL, 0, -1, ex->mem.bounce, (c->fragment + 2) / 3 * 4, -1);
}
static int cg_allgather_step_(cg_ex_ *ex, cg_io *io) {
    cg_collective_state_ *c = &ex->collective;
    const size_t size = cg_ranks_(ex), me = (size_t)ex->transport.rank;
    const size_t longest = (size_t)c->longest, mine = (size_t)c->sizes[me];
    size_t have_blocks, send_blocks;
    switch (c->via) {
    case CG_VIA_OWN_CALLBACK_:
        if (c->step++ || !longest) return 0;
        return cg_io_set_(io, CG_IO_ALLGATHER, c->mine, longest, -1, c->buf, size * longest, -1);
    case CG_VIA_SENDRECV_: /* Bruck: blocks [me, me + have_blocks) of buf are here, and double in number */
        if (!c->step) memcpy(c->buf, c->mine, mine);
        have_blocks = (size_t)(c->step = c->step ? 2 * c->step : 1);
        if (have_blocks >= size) return 0;
        send_blocks = cg_min_(have_blocks, size - have_blocks);
        cg_io_set_(io, CG_IO_SENDRECV, c->buf, cg_sizes_prefix_sum_(ex, me, send_blocks),
            (int)((me + size - have_blocks) % size), c->buf + cg_sizes_prefix_sum_(ex, me, have_blocks),
            cg_sizes_prefix_sum_(ex, (me + have_blocks) % size, send_blocks), (int)((me + have_blocks) % size));
        if (!io->out_bytes) io->to = -1;
        if (!io->in_bytes) io->from = -1;
        return 1;
    case CG_VIA_BROADCAST_:
        if (!c->step) memcpy(c->buf + me * longest, c->mine, mine);
        while ((size_t)c->step < size) {
            const size_t root = (size_t)c->step++;
            if (c->sizes[root])
                return cg_io_set_(
                    io, CG_IO_BROADCAST, NULL, 0, -1, c->buf + root * longest, (size_t)c->sizes[root], (int)root);
        }
        return 0;
    default:
        return cg_bytes_by_allreduce_step_(ex, io, cg_sizes_prefix_sum_(ex, 0, me),
            cg_sizes_prefix_sum_(ex, 0, me) + mine, cg_sizes_prefix_sum_(ex, 0, size));
    }
}
static int cg_broadcast_step_(cg_ex_ *ex, cg_io *io) {
    cg_collective_state_ *c = &ex->collective;
    const int size = ex->transport.size, root = c->root, me = cg_wrap_(ex, ex->transport.rank - root);
    if (!c->bytes) return 0;
    switch (c->via) {
    case CG_VIA_OWN_CALLBACK_:
        return c->step++ ? 0 : cg_io_set_(io, CG_IO_BROADCAST, NULL, 0, -1, c->buf, c->bytes, root);
    case CG_VIA_SENDRECV_: /* binomial tree: from the rank without my lowest bit, to those with one more bit below it */
        if (!c->step++) {
            c->mask = 1;
            while (c->mask < size && !(me & c->mask)) c->mask <<= 1;
            if (me)
                return cg_io_set_(io, CG_IO_SENDRECV, NULL, 0, -1, c->buf, c->bytes, cg_wrap_(ex, me - c->mask + root));
        }
        while ((c->mask >>= 1) > 0)
            if (me + c->mask < size)
                return cg_io_set_(io, CG_IO_SENDRECV, c->buf, c->bytes, cg_wrap_(ex, me + c->mask + root), NULL, 0, -1);
        return 0;
    case CG_VIA_ALLGATHER_:
        if (c->step++) {
            if (me) memcpy(c->buf + c->done, ex->mem.bounce + (size_t)root * c->fragment, c->fragment);
            c->done += c->fragment;
        }
        if (c->done == c->bytes) return 0;
        c->fragment = cg_min_(c->bytes - c->done, ex->mem.bounce_bytes / cg_ranks_(ex));
        if (me) memset(c->buf + c->done, 0, c->fragment); /* nobody reads what this rank sends */
        return cg_io_set_(
            io, CG_IO_ALLGATHER, c->buf + c->done, c->fragment, -1, ex->mem.bounce, cg_ranks_(ex) * c->fragment, -1);
    default: return cg_bytes_by_allreduce_step_(ex, io, 0, me ? 0 : c->bytes, c->bytes);
    }
}
/* Sums the fragments of all ranks in mem.bounce, in rank order. */
static void cg_allreduce_add_fragment_(cg_ex_ *ex) {
    cg_collective_state_ *c = &ex->collective;
    float *v = (float *)(void *)(c->buf + c->done);
    for (size_t q = 0; q < cg_ranks_(ex); q++) {
        const float *in = (const float *)(void *)(ex->mem.bounce + q * c->fragment);
        if (q) cg_floats_add_le_(v, in, c->fragment / 4);
        else memcpy(v, in, c->fragment);
    }
    c->done += c->fragment;
}
static int cg_allreduce_step_(cg_ex_ *ex, cg_io *io) {
    cg_collective_state_ *c = &ex->collective;
    const size_t size = cg_ranks_(ex);
    const uint32_t via = c->via;
    if (!c->bytes) return 0;
    if (via == CG_VIA_OWN_CALLBACK_) {
        if (!c->step++) return cg_io_set_(io, CG_IO_ALLREDUCE, NULL, 0, -1, c->buf, c->bytes, -1);
        if (ex->transport.flags & CG_ALLREDUCE_AGREES) return 0;
        /* ranks may have different bits, and there is no other callback: all take rank 0's */
        cg_floats_swap_le_((float *)(void *)c->buf, c->bytes / 4);
        cg_collective_begin_(ex, CG_COLL_BROADCAST_, CG_VIA_ALLREDUCE_, NULL, c->buf, c->bytes, 0);
        c->swap_back = 1;
        return cg_broadcast_step_(ex, io);
    }
    if (!c->step) cg_floats_swap_le_((float *)(void *)c->buf, c->bytes / 4);
    if (via == CG_VIA_SENDRECV_) {
        if (cg_sum_step_(ex, io)) return 1;
    } else if (via == CG_VIA_ALLGATHER_) {
        if (c->step++) cg_allreduce_add_fragment_(ex);
        c->fragment = cg_min_(c->bytes - c->done, ex->mem.bounce_bytes / size / 4 * 4);
        if (c->fragment)
            return cg_io_set_(
                io, CG_IO_ALLGATHER, c->buf + c->done, c->fragment, -1, ex->mem.bounce, size * c->fragment, -1);
    } else { /* every rank in turn broadcasts its fragment */
        const size_t root = (size_t)c->step % size;
        if (c->step && !root) cg_allreduce_add_fragment_(ex);
        if (!root) c->fragment = cg_min_(c->bytes - c->done, ex->mem.bounce_bytes / size / 4 * 4);
        if (c->fragment) {
            c->step++;
            if (root == (size_t)ex->transport.rank)
                memcpy(ex->mem.bounce + root * c->fragment, c->buf + c->done, c->fragment);
            return cg_io_set_(
                io, CG_IO_BROADCAST, NULL, 0, -1, ex->mem.bounce + root * c->fragment, c->fragment, (int)root);
        }
    }
    cg_floats_swap_le_((float *)(void *)c->buf, c->bytes / 4);
    return 0;
}
static int cg_collective_step_(cg_ex_ *ex, cg_io *io) {
    cg_collective_state_ *c = &ex->collective;
    if (c->kind == CG_COLL_SENDRECV_) {
        if (c->step++ || (!c->bytes && !c->in_bytes)) return 0;
        return cg_io_set_(io, CG_IO_SENDRECV, c->mine, c->bytes, c->bytes ? c->to : -1, c->buf, c->in_bytes,
            c->in_bytes ? c->from : -1);
    }
    if (ex->transport.size == 1) return 0; /* the result is in place already */
    if (c->kind == CG_COLL_ALLGATHER_) return cg_allgather_step_(ex, io);
    if (c->kind == CG_COLL_ALLREDUCE_) return cg_allreduce_step_(ex, io);
    if (cg_broadcast_step_(ex, io)) return 1;
    if (c->swap_back) cg_floats_swap_le_((float *)(void *)c->buf, c->bytes / 4);
    return 0;
}
/* The next message that the collective takes, or 0: it is complete. Messages of no bytes are left out. */
static int cg_collective_next_(cg_ex_ *ex, cg_io *io) {
    int more;
    do more = cg_collective_step_(ex, io);
    while (more && io->kind == CG_IO_SENDRECV && io->to < 0 && io->from < 0);
    return more;
}

/* src/exchange/routes.h */
/* routes: which operator may take which route, and what follows from the choice

   Offers   cg_ex_resolve_, traits of routes and folds, predicates on operators and routes (cg_has_back_,
            cg_carry_floats_, cg_records_need_verdict_ ...)
   Needs    ranks, core's resolve; the tables themselves are in exchange/rows.h, behind the functions that they name
   Touches  ex->plan; ex->status where a description is refused
   Other headers may use: cg_carry_first_, cg_carry_floats_, cg_fold_row_of_, cg_is_compressed_first_, cg_op_refusal_,
   cg_route_row_of_
   Everything here follows from desc, transport and n before any message, so that ranks with the same description come
   to the same plan; the opening compares what matters of it. */

/* What routes are like. Where code depends on the route it asks for a trait, so that a new route is a row in
   exchange/rows.h, and a room with what the row names. */
enum {
    CG_ROUTE_SENDS_ = 1 << 0,            /* needs sendrecv */
    CG_ROUTE_STRIPES_ = 1 << 1,          /* every rank has a stripe of the vector, and each has a packet of its own */
    CG_ROUTE_ADDS_ON_THE_WAY_ = 1 << 2,  /* packets are cut, or added before all have met */
    CG_ROUTE_HOPS_ = 1 << 3,             /* a partial sum goes from rank to rank, and is encoded by each unless exact */
    CG_ROUTE_HAS_OWNER_ = 1 << 4,        /* an owner adds packets and sends the sum back, by desc.back if it is given */
    CG_ROUTE_PACKETS_MEET_ = 1 << 5,     /* all packets of a stripe meet on one rank, which can fold them as packets */
    CG_ROUTE_MEETS_EVERYWHERE_ = 1 << 6, /* ... on every rank: a rank may abstain, contributors can be counted */
    CG_ROUTE_ALLREDUCES_ = 1 << 7,       /* f32 values are summed by an allreduce */
    CG_ROUTE_NEEDS_INDICES_ = 1 << 8,    /* takes nothing but selections */
    CG_ROUTE_HAS_LEADER_ = 1 << 9,       /* messages depend on who leads */
    CG_ROUTE_LEADS_IN_TURN_ = 1 << 10,   /* with desc.leader 0 another rank leads in every step */
    CG_ROUTE_READS_LENGTHS_ = 1 << 11,   /* packets that have no fixed length have that of the opening records */
    CG_ROUTE_TELLS_LENGTHS_ = 1 << 12,   /* ... have that of a table from every rank */
    CG_ROUTE_TELLS_COUNTS_ = 1 << 13,    /* every rank sends a table in any case */
    CG_ROUTE_HAS_NO_WEIGHTS_ = 1 << 14,  /* desc.weight must be 0 */
    CG_ROUTE_COMPRESSES_LATER_ = 1 << 15, /* the coroutine compresses, not cg_exchange_start */
    CG_ROUTE_ENDS_AT_OWNER_ = 1 << 16,    /* every rank gets the fold of its stripe */
    CG_ROUTE_BEGINS_AT_OWNER_ = 1 << 17   /* every rank has a stripe, which goes to all */
};
struct cg_arena_;
/* What the cost of a route follows from: at most. */
typedef struct cg_lengths_ {
    double packet, sum; /* bytes of a packet of the whole vector, and of the sum of all ranks' */
    double log_ranks;   /* log2 N, rounded up: rounds of an allgather or a broadcast */
} cg_lengths_;
/* A route: which operators it takes, what of mem it needs, the coroutine that moves its messages and makes sure that
   all is there and right, and what it writes then, which cannot fail. The coroutine returns CG_OK when its last message
   is moved, with this rank's outcome in ex->status; any other status: all ranks have stopped. */
typedef struct cg_route_row_ {
    uint32_t id;
    const char *name; /* in text */
    uint32_t traits;
    int (*accepts)(const cg_ex_ *ex); /* desc.op, whose traits are in plan */
    const char *refusal;              /* what a report says if it does not; NULL if it always does */
    void (*plan)(cg_ex_ *ex, struct cg_arena_ *arena, uint64_t *scratch); /* see cg_mem_plan_ */
    cg_status (*move)(cg_ex_ *ex);
    cg_status (*write)(cg_ex_ *ex);
    void (*compress)(cg_ex_ *ex); /* before the opening; NULL: all stripes of grad */
    /* rounds and bytes behind the opening, of the rank that has most; NULL: CG_ROUTE_AUTO does not take the route */
    cg_cost_ (*cost)(const cg_ex_ *ex, const cg_lengths_ *len);
} cg_route_row_;
/* What folds are like. */
enum {
    CG_FOLD_IS_LINEAR_ = 1 << 0,   /* a sum with factors: packets may be added in any order and place */
    CG_FOLD_DIVIDES_ = 1 << 1,     /* by the sum of weights */
    CG_FOLD_NEEDS_SIGNS_ = 1 << 2, /* the values are +-1, and so is the result */
    CG_FOLD_IS_ROBUST_ = 1 << 4,   /* compares what ranks have sent, value by value or as a whole */
    CG_FOLD_NEEDS_PLACES_ = 1 << 3 /* the result depends on where each rank has sent values; dense, it is a mean */
};
typedef struct cg_fold_row_ {
    uint32_t id;
    const char *name; /* in text */
    uint32_t traits;
    const char *(*refuse)(const cg_ex_ *ex); /* a sentence why, or NULL */
    cg_status (*reduce)(cg_ex_ *ex); /* reduced.packet = the fold of ex->inputs; NULL: not a packet of their kind */
    void (*combine)(cg_ex_ *ex, size_t n); /* ex->mem.rows, N rows of n, to one; NULL: the weighted sum is the fold */
} cg_fold_row_;
/* The row of a known route or fold; of another one that has no traits. In exchange/rows.h. */
static const cg_route_row_ *cg_route_row_of_(uint32_t route);
static const cg_fold_row_ *cg_fold_row_of_(uint32_t fold);
static int cg_is_known_(uint32_t route, uint32_t fold);

static int cg_route_has_(const cg_ex_ *ex, uint32_t traits) {
    return (cg_route_row_of_(ex->plan.route)->traits & traits) != 0;
}
static int cg_fold_has_(const cg_ex_ *ex, uint32_t traits) {
    return (cg_fold_row_of_(ex->desc.fold)->traits & traits) != 0;
}
/* What a sum with weights is divided by, from the opening on. */
static double cg_divisor_(const cg_ex_ *ex) {
    return cg_fold_has_(ex, CG_FOLD_DIVIDES_) ? ex->opening.weight_sum : 1.0;
}
/* The factor of a rank's values in the result: its weight, or its share of all weights. */
static float cg_alpha_(const cg_ex_ *ex, size_t rank) {
    return (float)((double)cg_weight_of_(ex, rank) / cg_divisor_(ex));
}
/* Values of the vector itself, as f32 and without a code, with indices of their own. */
static int cg_is_sparse_f32_(const cg_op *op, uint32_t traits) {
    return (traits & (CG_IS_SELECTION_ | CG_NEEDS_SUPPORT_)) == CG_IS_SELECTION_ && traits & CG_IS_F32_ &&
        !op->sample.id && !op->transform.id && !op->code.arg;
}
/* All values, as f32. */
static int cg_is_dense_f32_(const cg_op *op, uint32_t traits) {
    return traits & CG_IS_F32_ && !(traits & CG_IS_SELECTION_) && !op->code.arg;
}
/* Does the length of a packet follow from op and n? */
static int cg_has_fixed_len_(const cg_op *op, uint32_t traits) {
    if (op->code.arg || traits & (CG_IS_USER_CODEC_ | CG_IS_PER_RANK_ | CG_INDEX_LENGTH_VARIES_ | CG_LENGTH_VARIES_))
        return 0;
    return !(traits & CG_IS_SELECTION_) || traits & CG_KEEPS_EXACTLY_;
}
/* Can cg_reduce add packets of desc.op? Levels only on a grid that is the same on all ranks. */
static int cg_is_reducible_(const cg_ex_ *ex, const cg_resolved_ *r) {
    const uint32_t traits = r->plan.traits;
    if (r->segments_hash) return 0;
    if (traits & (CG_IS_MATRIX_ | CG_IS_PER_RANK_ | CG_IS_PRIVATE_ | CG_NEEDS_SUPPORT_ | CG_IS_USER_CODEC_)) return 0;
    if (traits & CG_IS_F32_) return 1;
    return r->max_level && !ex->desc.op.code.arg && !(traits & CG_IS_SELECTION_) &&
        ((ex->desc.flags & CG_AGREE_SCALES) || (ex->desc.side && ex->desc.side->scale));
}
static int cg_has_back_(const cg_ex_ *ex) { return ex->desc.back && cg_route_has_(ex, CG_ROUTE_HAS_OWNER_); }

/* The cg_refused_ functions return a sentence why the description is refused, or NULL. */
static const char *cg_refused_route_(const cg_ex_ *ex) {
    const cg_route_row_ *row = cg_route_row_of_(ex->plan.route);
    if (!ex->transport.sendrecv && ex->transport.size > 1 && row->traits & CG_ROUTE_SENDS_)
        return "this route needs the sendrecv callback: give it, or take allgather, server, shared or linear";
    if (ex->plan.traits & (CG_IS_MATRIX_ | CG_IS_PER_RANK_ | CG_NEEDS_SUPPORT_) &&
        row->traits & CG_ROUTE_ADDS_ON_THE_WAY_)
        return "matrices, PermK and given indices cannot be cut or added on the way: take allgather or server";
    if (row->traits & CG_ROUTE_STRIPES_ && ex->desc.op.k)
        return "stripes: k counts values of the whole vector; give a ratio";
    if (row->traits & CG_ROUTE_STRIPES_ && ex->desc.side && ex->desc.side->scale)
        return "stripes have buckets of their own: agree on scales with CG_AGREE_SCALES";
    if (ex->desc.flags & CG_CORRELATED && !(row->traits & CG_ROUTE_PACKETS_MEET_))
        return "correlated rounding is for packets that are added once, and these are encoded again at every hop or "
               "not "
               "rounded: take allgather, server or scatter";
    if (row->refusal && !row->accepts(ex)) return row->refusal;
    if (row->traits & CG_ROUTE_HAS_NO_WEIGHTS_ && ex->desc.weight != 0.0f)
        return "merge and region have no weights: take allgather, server, scatter, shared or linear";
    return NULL;
}
/* Floats of the sum that this rank encodes again or may have to: those of desc.carry. */
static size_t cg_carry_floats_(const cg_ex_ *ex) {
    if (ex->plan.exact || cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_)) return 0;
    if (cg_route_has_(ex, CG_ROUTE_BEGINS_AT_OWNER_)) return cg_stripe_n_(ex, ex->transport.rank);
    if (cg_route_has_(ex, CG_ROUTE_HOPS_)) return ex->n;
    if (!cg_route_has_(ex, CG_ROUTE_HAS_OWNER_)) return 0;
    if (cg_route_has_(ex, CG_ROUTE_STRIPES_)) return cg_stripe_n_(ex, ex->transport.rank);
    return ex->plan.root == ex->transport.rank || ex->desc.leader == CG_LEADER_BY_SCORE ? ex->n : 0;
}
/* Where in the vector desc.carry begins: *first, which stays as it is where carry is of the whole vector. */
CG_OFFERED_ void cg_carry_first_(uint32_t route, const cg_transport *t, size_t n, size_t *first) {
    const uint32_t traits = cg_route_row_of_(route)->traits;
    if (traits & CG_ROUTE_STRIPES_ && traits & CG_ROUTE_HAS_OWNER_)
        *first = cg_stripe_offset_(n, (size_t)t->size, (size_t)t->rank);
}
/* A sum that is encoded again must stay exact, be encoded without bias, or leave its error in carry. */
static const char *cg_refused_loss_(const cg_ex_ *ex, int back_is_unbiased) {
    if (!cg_carry_floats_(ex) || ex->desc.carry || back_is_unbiased || cg_route_has_(ex, CG_ROUTE_BEGINS_AT_OWNER_))
        return NULL;
    return "a biased operator would lose part of every sum it encodes: give carry (cg_exchange_carry floats), a back "
           "operator that loses nothing, or take allgather";
}
/* Ring and tree: is the partial sum decoded, added to and encoded again at every hop? */
static int cg_hops_reencode_(const cg_ex_ *ex) { return cg_route_has_(ex, CG_ROUTE_HOPS_) && !ex->plan.exact; }
static const char *cg_refused_agreement_(const cg_ex_ *ex, uint32_t max_level) {
    if (!(ex->desc.flags & CG_AGREE_SCALES)) return NULL;
    if (!max_level || max_level > 127 || ex->desc.op.code.arg ||
        ex->plan.traits & (CG_IS_SELECTION_ | CG_IS_PER_RANK_ | CG_IS_PRIVATE_))
        return "only packed levels around zero have scales to agree on: absmax (2 to 8 bits), levels, terngrad, trits, "
               "flexpoint, without a selection, a code, or a sample or rotation of each rank's own";
    if (ex->desc.side && ex->desc.side->scale) return "scales are given and to be agreed on: which?";
    if (cg_route_has_(ex, CG_ROUTE_ALLREDUCES_)) return "f32 values have no scales";
    if (cg_hops_reencode_(ex))
        return "ring and tree cannot weigh levels of agreed scales: no weights, or take allgather, server or scatter";
    return NULL;
}
/* Room for the packet of any stripe, and scratch to compress it by desc.op or by back. r is desc.op's for the whole
   vector; back that of plan.back, or NULL where that is desc.op. */
static void cg_plan_sizes_(cg_ex_ *ex, const cg_resolved_ *r, const cg_resolved_ *back) {
    const int striped = ex->plan.stripes > 1;
    cg_resolved_ stripe;
    ex->plan.packet_room = striped ? 0 : r->bound;
    ex->plan.scratch_bytes = striped ? 0 : r->scratch_bytes;
    if (!striped && back) cg_max_update_(&ex->plan.scratch_bytes, back->scratch_bytes);
    for (int p = 0; striped && p < ex->plan.stripes; p++) {
        const size_t n = cg_stripe_n_(ex, p);
        if (p && n == cg_stripe_n_(ex, p - 1)) continue;
        if (cg_resolve_(&ex->desc.op, ex->desc.side, n, &stripe) != CG_OK) continue; /* it is, for the whole vector */
        if (ex->plan.packet_room < stripe.bound) ex->plan.packet_room = stripe.bound;
        cg_max_update_(&ex->plan.scratch_bytes, stripe.scratch_bytes);
        if (back && cg_resolve_(&ex->plan.back, NULL, n, &stripe) == CG_OK)
            cg_max_update_(&ex->plan.scratch_bytes, stripe.scratch_bytes);
    }
}
/* STAR: ranks lead in turn, from step to step, and within a step from layer to layer. */
static int cg_star_leader_(const cg_tag *tag, uint64_t ranks) {
    return (int)((tag->step % ranks + tag->tensor % ranks) % ranks);
}
/* What is wrong with an operator whose bound is 0, as cg_compress_with says it; CG_OK: its bound is not 0. */
static cg_report cg_op_refusal_(const cg_op *op, const cg_extra *side, size_t n) {
    const float unread = 0.0f;
    cg_extra extra = CG_ZERO;
    cg_report report;
    uint8_t packet;
    size_t len;
    cg_status s = CG_OK;
    cg_report_set_(&report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    if (cg_bound_with(op, side, n)) return report;
    if (side) extra = *side;
    extra.report = &report;
    s = cg_compress_with(op, NULL, &extra, &unread, n, &packet, 0, &len, NULL, 0);
    (void)s; /* the report has it */
    return report;
}
/* Why this rank may not abstain, if it means to. */
static const char *cg_refused_abstention_(const cg_ex_ *ex) {
    if (!(ex->desc.flags & CG_ABSTAIN) ||
        (cg_route_has_(ex, CG_ROUTE_MEETS_EVERYWHERE_) && cg_fold_has_(ex, CG_FOLD_IS_LINEAR_) &&
            !(ex->desc.flags & CG_AGREE_SCALES)))
        return NULL;
    return "to abstain is for allgather, with a mean or a sum and without agreed scales";
}
/* What does not go with a single leg, as a sentence, or NULL. */
static const char *cg_refused_leg_(const cg_ex_ *ex) {
    const cg_exchange_desc *d = &ex->desc;
    const int begins = cg_route_has_(ex, CG_ROUTE_BEGINS_AT_OWNER_);
    if (!begins && !cg_route_has_(ex, CG_ROUTE_ENDS_AT_OWNER_))
        return d->mine ? "mine is for the routes reduce_scatter and all_gather" : NULL;
    if (d->back) return "there is one leg, and op is its operator: back must be NULL";
    if (begins && (d->weight != 0.0f || d->fold || d->model || d->flags & CG_AGREE_SCALES))
        return "all_gather adds nothing: it has no weight, fold, model or agreed scales";
    return NULL;
}
/* Packets with segments are decoded where they meet, and not cut or added on the way. */
static const char *cg_refused_segments_(const cg_ex_ *ex) {
    const uint32_t route = cg_route_row_of_(ex->plan.route)->traits;
    if (!ex->plan.segments_hash) return NULL;
    if (!(route & CG_ROUTE_PACKETS_MEET_) || route & CG_ROUTE_STRIPES_)
        return "segments travel by allgather or server: other routes cut packets, or add them on the way";
    if (!cg_fold_has_(ex, CG_FOLD_IS_LINEAR_)) return "segments are folded by mean or sum";
    if (ex->desc.flags & CG_AGREE_SCALES) return "segments have scales of their own: leave CG_AGREE_SCALES out";
    return NULL;
}
/* What can be wrong with a description whose operators are good, as a sentence. r: of desc.op; back: of plan.back. */
static const char *cg_refused_(const cg_ex_ *ex, const cg_resolved_ *r, const cg_resolved_ *back) {
    const uint32_t back_needs = CG_NEEDS_SUPPORT_ | CG_NEEDS_AUX_ | CG_IS_USER_CODEC_;
    const cg_fold_row_ *fold = cg_fold_row_of_(ex->desc.fold);
    const char *why = cg_refused_leg_(ex);
    if (!why) why = cg_refused_segments_(ex);
    if (!why) why = cg_refused_route_(ex);
    if (!why && fold->refuse) why = fold->refuse(ex);
    if (!why) why = cg_refused_abstention_(ex);
    if (!why) why = cg_refused_loss_(ex, back->is_unbiased);
    if (!why) why = cg_refused_agreement_(ex, r->max_level);
    if (!why && cg_has_back_(ex) && back->plan.traits & (CG_IS_MATRIX_ | CG_IS_PER_RANK_ | back_needs))
        why = "the second leg is one vector on one rank: take a back operator that needs nothing else";
    if (!why && cg_route_has_(ex, CG_ROUTE_HAS_OWNER_) && !ex->plan.exact && back->plan.traits & CG_NEEDS_AUX_)
        why = "a sum over ranks has no aux of its own: give a back operator, or take allgather or server";
    return why;
}
static const char *cg_bad_bounds_(const cg_ex_ *ex) {
    const uint32_t leg = CG_ROUTE_BEGINS_AT_OWNER_ | CG_ROUTE_ENDS_AT_OWNER_;
    const size_t *b = ex->desc.bounds, ranks = cg_ranks_(ex), me = (size_t)ex->transport.rank;
    const size_t mine = b ? b[me + 1] - b[me]
                          : cg_stripe_offset_(ex->n, ranks, me + 1) - cg_stripe_offset_(ex->n, ranks, me);
    if (mine && ex->desc.flags & CG_NEEDS_MINE_ && !ex->desc.mine) return "mine is NULL";
    if (!b) return NULL;
    if (!(cg_route_row_of_(ex->desc.route)->traits & leg))
        return "bounds are for the routes reduce_scatter and all_gather";
    for (size_t r = 0; r < ranks; r++)
        if (b[0] || b[r] > b[r + 1] || b[ranks] != ex->n) return "bounds must begin with 0, not fall, and end with n";
    return NULL;
}
/* Is a field of the description out of range? A sentence, or NULL. */
static const char *cg_bad_field_(const cg_ex_ *ex) {
    const cg_exchange_desc *d = &ex->desc;
    const uint32_t flags = CG_AGREE_SCALES | CG_ABSTAIN | CG_CONFIRM | CG_MAY_ABSTAIN | CG_FEEDS_BACK | CG_CORRELATED |
        CG_TOGETHER | CG_IN_PLACE | CG_ONE_PACKET | CG_SECOND_ROUND_ | CG_NEEDS_MINE_ | CG_MAKES_PACKET_;
    if (!cg_is_known_(d->route, d->fold) || (d->flags & ~flags)) return "unknown route, fold or flag";
    if (!cg_is_finite_(d->weight) || (d->weight != 0.0f && !(d->weight >= 1.17549435e-38f)) || !cg_is_finite_(d->score))
        return "weight and score must be finite, weight not negative or a denormal: what was lost is divided by it";
    if (!cg_rate_ok_(d)) return "rate must be finite";
    if (!(d->alpha >= 0.0 && d->alpha < 1e30) || !(d->beta >= 0.0 && d->beta < 1e30))
        return "alpha and beta are seconds, and seconds per byte: finite and not negative";
    if (d->sum > CG_SUM_HALVING) return "sum is CG_SUM_AUTO, _RING, _TREE, _DOUBLING or _HALVING";
    if (d->sum && !ex->transport.sendrecv && ex->transport.size > 1)
        return "this way to sum needs the sendrecv callback: give it, or take CG_SUM_AUTO";
    if (d->fold_limit != 0.0f && !(cg_fold_row_of_(d->fold)->traits & CG_FOLD_IS_ROBUST_))
        return "fold_limit is for the folds trimmed and clipped: it must be 0";
    if (d->residual) return "residual is for cg_exchange_levels: for one exchange cg_ef_exchange keeps it";
    if (!CG_RESERVE_IS_ZERO_(d->reserved)) return "desc.reserved must be 0: start from CG_ZERO";
    if (d->leader < CG_LEADER_BY_SCORE || d->leader > ex->transport.size) return "leader is -1, 0 or a rank plus one";
    return cg_bad_bounds_(ex);
}
/* What of ex->plan follows from the route, but for sizes. *back becomes what plan.back resolves to. Returns whether
   that is another operator than desc.op. */
static int cg_plan_route_(cg_ex_ *ex, const cg_resolved_ *r, cg_resolved_ *back) {
    const cg_op *op = &ex->desc.op;
    int own_back;
    ex->plan.stripes = cg_route_has_(ex, CG_ROUTE_STRIPES_) ? ex->transport.size : 1;
    ex->plan.root = ex->desc.leader > 0 ? ex->desc.leader - 1 : 0;
    if (cg_route_has_(ex, CG_ROUTE_LEADS_IN_TURN_) && ex->desc.leader == 0)
        ex->plan.root = cg_star_leader_(&ex->desc.tag, (uint64_t)ex->transport.size);
    ex->plan.direct = cg_route_has_(ex, CG_ROUTE_ALLREDUCES_) && cg_is_dense_f32_(op, r->plan.traits) &&
        !op->sample.id && !op->transform.id && !r->segments_hash;
    ex->plan.op_len_fixed = !r->segments_hash && cg_has_fixed_len_(op, r->plan.traits) &&
        !(cg_route_has_(ex, CG_ROUTE_MEETS_EVERYWHERE_) && (ex->desc.flags & CG_MAY_ABSTAIN));
    /* a sum that is not exact is encoded again by plan.back: desc.back, or dense where an owner sums decoded values, or
       desc.op */
    ex->plan.exact = cg_is_reducible_(ex, r) && ex->desc.weight == 0.0f && !cg_has_back_(ex) &&
        !cg_fold_has_(ex, CG_FOLD_IS_ROBUST_) && !cg_route_has_(ex, CG_ROUTE_BEGINS_AT_OWNER_);
    own_back = !cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_) && cg_route_has_(ex, CG_ROUTE_HAS_OWNER_) &&
        (ex->desc.back || !cg_route_has_(ex, CG_ROUTE_STRIPES_) || cg_is_reducible_(ex, r));
    ex->plan.back = !own_back ? *op : ex->desc.back ? *ex->desc.back : cg_dense();
    *back = *r;
    if (own_back && cg_resolve_(&ex->plan.back, NULL, ex->n, back) != CG_OK) *back = *r; /* it has a bound */
    ex->plan.back_traits = back->plan.traits;
    ex->plan.reduced_len_fixed = ex->plan.exact ? cg_is_dense_f32_(op, r->plan.traits)
                                                : cg_has_fixed_len_(&ex->plan.back, back->plan.traits);
    return own_back;
}
static void cg_choose_(cg_ex_ *ex, const char *why, double seconds, uint32_t instead, double instead_seconds) {
    ex->plan.choice = why;
    ex->plan.seconds = seconds;
    ex->plan.instead = instead;
    ex->plan.instead_seconds = instead_seconds;
}
/* CG_ROUTE_AUTO, where no rule says it: of all routes that take the description, the one that costs least. A route that
   may drop what op has kept has to save more than a quarter. Nothing here depends on what may differ between ranks. */
static uint32_t cg_cheapest_route_(cg_ex_ *ex, const cg_resolved_ *r) {
    const uint32_t flags = ex->desc.flags;
    uint32_t best[2] = { CG_ROUTE_ALLGATHER, 0 }, drops, take, other;
    double seconds[2] = { 0.0, 0.0 };
    cg_lengths_ len;
    cg_resolved_ back;
    len.packet = (double)r->bound;
    len.sum = (double)r->bound;
    len.log_ranks = (double)(cg_log2_((uint64_t)ex->transport.size - 1) + 1);
    if (ex->desc.op.select.id) {
        const uint64_t k = cg_mul_sat_((uint64_t)ex->transport.size, r->plan.max_selected);
        len.sum = (double)cg_sparse_packet_bound_(
            r->plan.transformed_n, k < r->plan.transformed_n ? k : r->plan.transformed_n);
    }
    ex->desc.flags &= ~(uint32_t)CG_ABSTAIN; /* of this rank alone */
    for (ex->plan.route = 1; cg_route_name(ex->plan.route); ex->plan.route++) {
        const cg_route_row_ *row = cg_route_row_of_(ex->plan.route);
        double cost;
        if (!row->cost || ((flags & CG_MAY_ABSTAIN) && !(row->traits & CG_ROUTE_MEETS_EVERYWHERE_))) continue;
        cg_plan_route_(ex, r, &back);
        if (cg_refused_(ex, r, &back) || cg_hops_reencode_(ex)) continue;
        cost = cg_seconds_(ex, row->cost(ex, &len));
        drops = (row->traits & CG_ROUTE_NEEDS_INDICES_) != 0;
        if (seconds[drops] == 0.0 || cost < seconds[drops]) {
            best[drops] = ex->plan.route;
            seconds[drops] = cost;
        }
    }
    ex->desc.flags = flags;
    take = best[1] && seconds[1] < 0.75 * seconds[0];
    other = best[!take];
    cg_choose_(ex,
        take         ? "auto: saves more than a quarter of the time; what this route drops is not in report.used"
            : !other ? "auto: the least time of the routes that take this operator"
            : seconds[1] < seconds[0] ? "auto: the least time of routes that drop nothing; dropping saves too little"
                                      : "auto: the least time",
        seconds[take], other, seconds[!take]);
    return best[take];
}
static uint32_t cg_auto_route_(cg_ex_ *ex, const cg_resolved_ *r) {
    const uint32_t traits = r->plan.traits;
    cg_cost_ allgather;
    if (cg_fold_has_(ex, CG_FOLD_NEEDS_PLACES_ | CG_FOLD_IS_ROBUST_) || r->segments_hash ||
        traits & (CG_NEEDS_SUPPORT_ | CG_IS_PER_RANK_) || ex->desc.op.k ||
        (traits & CG_IS_MATRIX_ && !(traits & CG_IS_LINEAR_MATRIX_))) {
        cg_choose_(ex, "auto: all packets have to meet, for this fold or operator", 0.0, 0, 0.0);
        return CG_ROUTE_ALLGATHER;
    }
    if (traits & CG_IS_LINEAR_MATRIX_ || (cg_is_dense_f32_(&ex->desc.op, traits) && !(traits & CG_IS_PRIVATE_))) {
        cg_choose_(ex, "auto: f32 values of one place, which an allreduce adds", 0.0, 0, 0.0);
        return CG_ROUTE_LINEAR;
    }
    /* no other route takes as few rounds */
    allgather.rounds = 0.0;
    allgather.bytes = (double)r->bound * (ex->transport.size - 1);
    if (ex->transport.size > 2 && cg_seconds_(ex, allgather) > cg_round_seconds_(ex)) return cg_cheapest_route_(ex, r);
    cg_choose_(ex, "auto: no route takes fewer rounds, and packets are short or ranks are two", 0.0, 0, 0.0);
    return CG_ROUTE_ALLGATHER;
}
/* Fills in ex->plan from desc, transport and n. *r becomes what desc.op resolves to, unless known says that it is that
   already. A description that is refused sets ex->status and report.why, which the
   opening tells to all ranks; the plan is then incomplete. */
static void cg_ex_resolve_(cg_ex_ *ex, cg_resolved_ *r, int known) {
    const cg_op *op = &ex->desc.op;
    cg_resolved_ back;
    const char *why = cg_bad_field_(ex);
    int own_back; /* back is not desc.op */
    ex->plan.stripes = 1;
    ex->plan.route = ex->desc.route;
    if (why) {
        cg_ex_fail_(ex, CG_E_ARG, ex->transport.rank, why);
        return;
    }
    ex->resolved = r;
    if (!known && cg_resolve_(op, ex->desc.side, ex->n, r) != CG_OK) r->bound = 0;
    if (!r->bound || (ex->desc.back && !cg_bound(ex->desc.back, ex->n))) {
        const cg_report refusal = cg_op_refusal_(r->bound ? ex->desc.back : op, r->bound ? NULL : ex->desc.side, ex->n);
        cg_ex_fail_here_(
            ex, refusal.status == CG_E_VERSION ? CG_E_VERSION : CG_E_ARG, refusal.why, refusal.need, CG_NO_INDEX);
        return;
    }
    if (r->extra_status != CG_OK) {
        cg_ex_fail_(ex, r->extra_status, ex->transport.rank, "side has something that this operator does not use");
        return;
    }
    ex->plan.traits = r->plan.traits;
    ex->plan.segments_hash = r->segments_hash;
    if (!(ex->desc.flags & CG_FEEDS_BACK) && !cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_)) ex->plan.warning = r->warning;
    ex->plan.transformed_n = r->plan.transformed_n;
    ex->plan.left_floats = r->rows * r->r;
    ex->plan.has_pairs = !r->segments_hash && cg_is_sparse_f32_(op, r->plan.traits) && r->plan.values_per_index == 1;
    ex->plan.max_selected = op->select.id ? (size_t)r->plan.max_selected : 0;
    ex->plan.k = (size_t)r->target_k;
    if (!ex->plan.route) ex->plan.route = cg_auto_route_(ex, r);
    if (cg_route_has_(ex, CG_ROUTE_BEGINS_AT_OWNER_))
        ex->plan.warning = ex->desc.carry || r->is_unbiased || cg_is_dense_f32_(op, r->plan.traits)
            ? NULL
            : "ok; what op leaves out of mine, no rank gets: give carry, and it is in the next stripe";
    own_back = cg_plan_route_(ex, r, &back);
    cg_plan_sizes_(ex, r, own_back ? &back : NULL);
    if (ex->plan.exact && !(r->plan.traits & CG_IS_F32_))
        ex->plan.max_level_sum = (uint64_t)r->max_level * (uint64_t)ex->transport.size;
    why = cg_refused_(ex, r, &back);
    if (why) cg_ex_fail_(ex, CG_E_UNSUPPORTED, ex->transport.rank, why);
}
/* Do messages after the opening depend on what records of other ranks say, so that all must have seen all of them? By
   lengths of packets, or by who is the leader. */
static int cg_records_need_verdict_(const cg_ex_ *ex) {
    return (!ex->plan.op_len_fixed && cg_route_has_(ex, CG_ROUTE_READS_LENGTHS_)) ||
        (ex->desc.leader == CG_LEADER_BY_SCORE && cg_route_has_(ex, CG_ROUTE_HAS_LEADER_));
}
/* Is grad compressed by cg_exchange_start, before the opening? Otherwise the route does that, or sends no packet of
   it: an allreduce of factors. */
static int cg_is_compressed_first_(const cg_ex_ *ex) {
    return !ex->plan.direct && !cg_hops_reencode_(ex) && !cg_route_has_(ex, CG_ROUTE_COMPRESSES_LATER_) &&
        !(cg_route_has_(ex, CG_ROUTE_ALLREDUCES_) && ex->plan.traits & CG_IS_MATRIX_);
}

/* src/exchange/memory.h */
/* memory: one plan of the caller's mem, for its size and for the places in it

   Offers   cg_mem_plan_, cg_arena_, lengths (cg_dense_bound_, cg_sum_bound_), cg_back_extra_
   Needs    ranks, routes, core's resolve and sparse; the plans of routes, by their rows
   Touches  ex->mem and all fields marked [mem] in cg_exchange_state, and the capacities beside them
   Other headers may use: cg_arena_, cg_arena_take_
   All sizes saturate: a sum that does not fit is larger than SIZE_MAX / 2, and refused. */

/* Memory handed out from its start, in multiples of 64 bytes. */
typedef struct cg_arena_ {
    uint8_t *base;  /* NULL: only the bytes are counted */
    uint64_t bytes; /* handed out so far */
} cg_arena_;
/* NULL if base is. The caller has compared the bytes with what there is. */
static uint8_t *cg_arena_take_(cg_arena_ *arena, uint64_t bytes) {
    uint8_t *p = arena->base ? arena->base + (size_t)arena->bytes : NULL;
    arena->bytes = cg_add_sat_(arena->bytes, cg_add_sat_(bytes, 63) & ~(uint64_t)63);
    return p;
}
static uint64_t cg_dense_bound_(uint64_t n) { return cg_add_sat_(CG_HEADER_BYTES, cg_mul_sat_(4, n)); }
/* Bytes of an exact sum of `count` packets of n values, at most. */
static uint64_t cg_sum_bound_(const cg_ex_ *ex, size_t n, uint64_t count) {
    cg_resolved_ r;
    if (cg_resolve_(&ex->desc.op, NULL, n, &r) != CG_OK) return CG_TOO_LARGE_; /* it is, for the whole vector */
    if (ex->desc.op.select.id)
        return cg_sparse_packet_bound_(r.plan.transformed_n, cg_mul_sat_(count, r.plan.max_selected));
    return cg_add_sat_(r.bound, cg_dense_bound_(r.plan.transformed_n));
}
/* Scratch of cg_reduce for them: two lists, if they are sparse. */
static uint64_t cg_sum_scratch_(const cg_op *op, size_t n, uint64_t count) {
    cg_resolved_ r;
    uint64_t max_selected;
    if (!op->select.id) return 0;
    if (cg_resolve_(op, NULL, n, &r) != CG_OK) return CG_TOO_LARGE_;
    max_selected = cg_mul_sat_(count, r.plan.max_selected);
    if (max_selected > r.plan.transformed_n) max_selected = r.plan.transformed_n;
    return cg_add_sat_(cg_mul_sat_(2, cg_list_in_mem_(NULL, NULL, r.plan.transformed_n, max_selected)), 64);
}
/* Hops from the furthest rank to the root of a binomial tree. */
static uint64_t cg_tree_depth_(const cg_ex_ *ex) {
    return ex->transport.size > 1 ? cg_log2_((uint64_t)ex->transport.size - 1) + 1 : 0;
}
/* desc.side as far as it applies to a sum that is encoded again: the caller's codecs, nothing that belongs to grad. */
static cg_extra cg_back_extra_(const cg_ex_ *ex) {
    cg_extra side = CG_ZERO;
    if (!ex->desc.side || !(ex->plan.back_traits & CG_IS_USER_CODEC_)) return side;
    side.codecs = ex->desc.side->codecs;
    side.codec_count = ex->desc.side->codec_count;
    return side;
}
/* Bytes of the reduced packet of any stripe, at most. */
static uint64_t cg_reduced_room_(const cg_ex_ *ex) {
    const cg_extra side = cg_back_extra_(ex);
    uint64_t room = 0;
    if (cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_)) return ex->plan.packet_room;
    for (int p = 0; p < ex->plan.stripes; p++)
        cg_max_update_(&room,
            ex->plan.exact ? cg_sum_bound_(ex, cg_stripe_n_(ex, p), (uint64_t)ex->transport.size)
                           : cg_bound_with(&ex->plan.back, &side, cg_stripe_n_(ex, p)));
    return room;
}
static uint64_t cg_stripe_max_n_(const cg_ex_ *ex) {
    uint64_t n = 0;
    for (int p = 0; p < ex->plan.stripes; p++) cg_max_update_(&n, cg_stripe_n_(ex, p));
    return n;
}
static void cg_sum_scratch_max_(const cg_ex_ *ex, uint64_t *scratch) {
    for (int p = 0; p < ex->plan.stripes; p++)
        cg_max_update_(scratch, cg_sum_scratch_(&ex->desc.op, cg_stripe_n_(ex, p), (uint64_t)ex->transport.size));
}

/* Scales of a stripe, if ranks are to agree on them. */
static uint64_t cg_stripe_scale_count_(const cg_ex_ *ex, int stripe) {
    cg_resolved_ r;
    if (!(ex->desc.flags & CG_AGREE_SCALES)) return 0;
    return cg_resolve_(&ex->desc.op, NULL, cg_stripe_n_(ex, stripe), &r) == CG_OK ? r.scale_count : 0;
}
static uint64_t cg_sum_bounce_of_(const cg_ex_ *ex, uint64_t floats) {
    const uint32_t sum = cg_sum_kind_(ex, (size_t)floats);
    return sum == CG_SUM_CALLBACK ? 0 : cg_sum_bounce_(sum, ex->transport.size, floats);
}
/* Bytes of the bounce buffer: by sendrecv an allreduce needs room for what one round adds; without sendrecv every
   collective that has no callback of its own needs a fragment from every rank. */
static uint64_t cg_bounce_room_of_(const cg_ex_ *ex, uint64_t sum_floats) {
    const uint64_t size = (uint64_t)ex->transport.size, min_fragment = 4096,
                   fragment = 1048576 / size < min_fragment ? min_fragment
        : 1048576 / size > 65536                            ? 65536
                                                            : 1048576 / size;
    if (size == 1) return 0;
    return ex->transport.sendrecv ? cg_mul_sat_(4, sum_floats) : cg_mul_sat_(size, fragment);
}
static uint64_t cg_bounce_room_(const cg_ex_ *ex) {
    uint64_t floats = 0;
    if (cg_route_has_(ex, CG_ROUTE_ALLREDUCES_)) {
        if (ex->plan.traits & CG_IS_SELECTION_) floats = cg_sum_bounce_of_(ex, ex->plan.max_selected);
        else if (ex->plan.traits & CG_IS_MATRIX_) {
            floats = cg_sum_bounce_of_(ex, ex->plan.left_floats);
            cg_max_update_(&floats, cg_sum_bounce_of_(ex, ex->plan.transformed_n - ex->plan.left_floats));
        } else floats = cg_sum_bounce_of_(ex, ex->plan.transformed_n);
    }
    return cg_bounce_room_of_(ex, floats);
}
/* Bytes of mem beside the state. A route's row takes what the route needs beside what all need, and raises scratch to
   what cg_reduce needs there. base: where it begins, aligned to 64 bytes, to set the places in ex too; NULL: they
   are set to NULL. If ex->status is not CG_OK, only what the opening needs. */
static uint64_t cg_mem_plan_(cg_ex_ *ex, uint8_t *base) {
    const uint64_t size = (uint64_t)ex->transport.size;
    /* tables with a number from every rank for every other */
    const int has_tables = cg_route_has_(ex, CG_ROUTE_TELLS_COUNTS_) ||
        (cg_route_has_(ex, CG_ROUTE_TELLS_LENGTHS_) && !ex->plan.op_len_fixed);
    cg_arena_ arena;
    cg_resolved_ *resolved;
    uint64_t scratch = ex->plan.scratch_bytes, bounce, room;
    arena.base = base;
    arena.bytes = 0;
    ex->opening.records = cg_arena_take_(&arena, size * CG_RECORD_BYTES_);
    ex->opening.gathered = cg_arena_take_(&arena, size * CG_RECORD_BYTES_);
    ex->mem.sizes = (uint64_t *)(void *)cg_arena_take_(&arena, 8 * size);
    if (ex->status != CG_OK) return arena.bytes; /* enough to tell the others */
    bounce = cg_bounce_room_(ex);
    ex->mem.bounce = cg_arena_take_(&arena, bounce);
    ex->mem.bounce_bytes = (size_t)bounce;
    ex->note.all = cg_arena_take_(&arena, cg_mul_sat_(size + 1, CG_NOTE_BYTES_ + (has_tables ? 8 * size : 0)));
    ex->own.offset = (uint64_t *)(void *)cg_arena_take_(&arena, 8 * (size + 1));
    ex->inputs.packet = (const void **)(void *)cg_arena_take_(&arena, size * sizeof(void *));
    ex->inputs.len = (size_t *)(void *)cg_arena_take_(&arena, size * sizeof(size_t));
    ex->inputs.decoder = (cg_decoder_ *)(void *)cg_arena_take_(&arena, cg_mul_sat_(size, sizeof(cg_decoder_)));
    resolved = (cg_resolved_ *)(void *)cg_arena_take_(&arena, sizeof *resolved);
    if (resolved) {
        *resolved = *ex->resolved;
        ex->resolved = resolved;
    }
    room = cg_is_compressed_first_(ex) && !cg_route_has_(ex, CG_ROUTE_BEGINS_AT_OWNER_)
        ? cg_mul_sat_((uint64_t)ex->plan.stripes, ex->plan.packet_room)
        : 0;
    if (ex->plan.direct) room = ex->plan.packet_room;
    if (cg_hops_reencode_(ex)) room = cg_add_sat_(cg_mul_sat_(4, ex->n), (uint64_t)ex->plan.stripes * CG_HEADER_BYTES);
    ex->own.packets = cg_arena_take_(&arena, room);
    if (ex->desc.flags & CG_AGREE_SCALES) {
        ex->scales.count = 0;
        for (int p = 0; p < ex->plan.stripes; p++)
            ex->scales.count = cg_add_sat_(ex->scales.count, cg_stripe_scale_count_(ex, p));
        ex->scales.max = (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, ex->scales.count));
        ex->scales.all = cg_arena_take_(
            &arena, cg_mul_sat_(size + 1, cg_add_sat_(cg_mul_sat_(4, ex->scales.count), 4 + CG_NOTE_BYTES_)));
    }
    cg_route_row_of_(ex->plan.route)->plan(ex, &arena, &scratch);
    ex->mem.scratch = cg_arena_take_(&arena, scratch);
    ex->mem.scratch_bytes = (size_t)scratch;
    return arena.bytes;
}

/* src/exchange/opening.h */
/* opening: the first round, in which ranks find out whether they are about to do the same

   Offers   cg_record_put_, cg_record_is_whole_, cg_records_check_, hashes of operators and descriptions
   Needs    ranks, routes
   Touches  ex->opening, ex->mem.sizes, ex->plan.root; ex->status where a rank differs
   Every rank sends a record of 64 bytes: magic, status, n, hash of the description, hash of the tag, bytes of its
   packets, weight, score, scale, sender and a hash of all that. Little-endian, at offsets 0, 4, 8, 16, 24, 32, 40, 44,
   48, 52 and 56. */

#define CG_RECORD_MAGIC_ 0x32786763u    /* "cgx2" */
#define CG_RECORD_MAGIC_01_ 0x31786763u /* "cgx1", of compgrad 0.1: as cgx2, but for a zero in place of the rank */
#define CG_FAILURE_MAGIC_ 0x6f6e6763u   /* "cgno" */
#define CG_REFERENCE_MAGIC_ 0x66726763u /* "cgrf" */

/* All fields of a stage but its value. */
static uint64_t cg_stage_bits_(const cg_stage *s) {
    return (uint64_t)s->id | (uint64_t)s->flags << 8 | (uint64_t)s->arg << 16 | (uint64_t)s->size << 32;
}
static uint64_t cg_hash_stage_(uint64_t h, const cg_stage *s) {
    h = cg_mix64_(h ^ cg_stage_bits_(s));
    return cg_mix64_(h + cg_as_bits_(s->value) + CG_GOLDEN_);
}
static uint64_t cg_hash_op_(uint64_t h, const cg_op *op) {
    h = cg_hash_stage_(h, &op->sample);
    h = cg_hash_stage_(h, &op->transform);
    h = cg_hash_stage_(h, &op->select);
    h = cg_hash_stage_(h, &op->quantize);
    h = cg_hash_stage_(h, &op->code);
    h = cg_hash_stage_(h, &op->clip);
    return cg_mix64_(h ^ op->k);
}
static uint64_t cg_hash_seconds_(double seconds) {
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    return cg_mix64_(bits);
}
/* Whatever of the description must be the same on all ranks, beside n and the tag. */
static uint64_t cg_hash_desc_(const cg_ex_ *ex) {
    const cg_exchange_desc *d = &ex->desc;
    const uint32_t flags_in_common = CG_AGREE_SCALES | CG_CONFIRM | CG_MAY_ABSTAIN | CG_CORRELATED | CG_TOGETHER;
    uint64_t h = cg_hash_op_((uint64_t)ex->transport.size, &d->op);
    h = cg_hash_op_(h, cg_has_back_(ex) ? d->back : &d->op);
    h = cg_mix64_(h ^
        ((uint64_t)ex->plan.route | (uint64_t)d->fold << 8 | (uint64_t)(d->flags & flags_in_common) << 16 |
            (uint64_t)(d->weight != 0.0f) << 24 | (uint64_t)(uint32_t)d->leader << 32));
    /* how floats are summed: all ranks must exchange the same messages */
    if (cg_route_has_(ex, CG_ROUTE_ALLREDUCES_) && ex->transport.size > 1)
        h = cg_mix64_(h ^ cg_sum_kind_(ex, (size_t)ex->plan.transformed_n) ^ cg_mix64_(d->sum) ^
            cg_hash_seconds_(d->alpha) ^ cg_mix64_(cg_hash_seconds_(d->beta)));
    if (ex->plan.segments_hash) h = cg_mix64_(h ^ ex->plan.segments_hash);
    if (d->common) h = cg_mix64_(h ^ d->common);
    for (size_t r = 0; d->bounds && r <= cg_ranks_(ex); r++) h = cg_mix64_(h ^ d->bounds[r]);
    if (d->fold_limit != 0.0f) h = cg_mix64_(h + cg_as_bits_(d->fold_limit));
    return cg_mix64_(h ^ ((uint64_t)cg_has_back_(ex) | (uint64_t)ex->plan.exact << 1));
}
/* What of the tag must be the same on all ranks. */
static uint64_t cg_hash_tag_(const cg_tag *tag) {
    uint64_t h = cg_mix64_(tag->seed + CG_GOLDEN_);
    h = cg_mix64_(h ^ (tag->step + 2 * CG_GOLDEN_));
    return cg_mix64_(h ^ (tag->tensor + 3 * CG_GOLDEN_));
}
/* bytes: a multiple of 8. */
static uint64_t cg_hash_bytes_(const uint8_t *p, size_t bytes) {
    uint64_t h = bytes;
    for (size_t i = 0; i < bytes; i += 8) h = cg_mix64_(h + cg_get64_(p + i) + CG_GOLDEN_);
    return h;
}
/* Who sends a record, and in which round of a call: the rank, and 2^31 in a second one. */
static uint32_t cg_record_sender_(const cg_ex_ *ex, int rank) {
    return (uint32_t)rank | (ex->desc.flags & CG_SECOND_ROUND_ ? 0x80000000u : 0);
}
/* Writes ex->opening.record. bytes: of own.packets; scale: the only one to be agreed on, or 0. */
static void cg_record_put_(cg_ex_ *ex, size_t bytes, float scale) {
    uint8_t *r = ex->opening.record;
    memset(r, 0, CG_RECORD_BYTES_);
    cg_put32_(r, CG_RECORD_MAGIC_);
    cg_put32_(r + 4, (uint32_t)ex->status);
    cg_put64_(r + 8, ex->n);
    cg_put64_(r + 16, cg_hash_desc_(ex));
    cg_put64_(r + 24, cg_hash_tag_(&ex->desc.tag));
    cg_put64_(r + 32, bytes);
    cg_put32_(r + 40, cg_as_bits_(ex->desc.weight != 0.0f && ex->status == CG_OK ? ex->desc.weight : 1.0f));
    cg_put32_(r + 44, cg_as_bits_(ex->status == CG_OK ? ex->desc.score : 0.0f));
    cg_put32_(r + 48, cg_as_bits_(scale));
    cg_put32_(r + 52, cg_record_sender_(ex, ex->transport.rank));
    cg_put64_(r + 56, cg_hash_bytes_(r, 56));
}
/* Has it arrived as that rank sent it in this round? Records of other versions have no rank. */
static int cg_record_is_whole_(const cg_ex_ *ex, const uint8_t *r, int rank) {
    return cg_get64_(r + 56) == cg_hash_bytes_(r, 56) &&
        (cg_get32_(r) != CG_RECORD_MAGIC_ || cg_get32_(r + 52) == cg_record_sender_(ex, rank));
}
/* Compares a record that is whole with this rank's. max_bytes: the most that packets can have. */
static void cg_record_check_(cg_ex_ *ex, const uint8_t *r, int rank, uint64_t max_bytes) {
    const uint8_t *mine = ex->opening.record;
    const uint32_t status = cg_get32_(r + 4);
    if (cg_get32_(r) == CG_RECORD_MAGIC_01_)
        cg_ex_fail_(ex, CG_E_VERSION, rank,
            "it speaks cgx1, the exchange of compgrad 0.1, and this rank cgx2: give all ranks the same version");
    else if (cg_get32_(r) != CG_RECORD_MAGIC_)
        cg_ex_fail_(ex, CG_E_VERSION, rank,
            "it speaks another version of the exchange, and this rank cgx2: give all ranks the same version");
    else if (status != CG_OK) cg_ex_fail_(ex, CG_E_PEER, rank, cg_status_str((cg_status)status));
    else if (cg_get64_(r + 8) != cg_get64_(mine + 8)) cg_ex_fail_(ex, CG_E_MISMATCH, rank, "it has another n");
    else if (cg_get64_(r + 24) != cg_get64_(mine + 24))
        cg_ex_fail_(ex, CG_E_MISMATCH, rank, "it has another seed, step or tensor");
    else if (cg_get64_(r + 16) != cg_get64_(mine + 16))
        cg_ex_fail_(ex, CG_E_MISMATCH, rank,
            "it has another operator, route, fold, leader, flag, common state or number of ranks, or only one of you "
            "has weights");
    else if (cg_get64_(r + 32) > max_bytes || (ex->plan.op_len_fixed && cg_get64_(r + 32) != cg_get64_(mine + 32)) ||
        !(cg_as_float_(cg_get32_(r + 40)) > 0.0f) || !cg_is_finite_(cg_as_float_(cg_get32_(r + 40))) ||
        !cg_is_finite_(cg_as_float_(cg_get32_(r + 44))) || !cg_is_finite_(cg_as_float_(cg_get32_(r + 48))))
        cg_ex_fail_(ex, CG_E_CORRUPT, rank, "its opening record says what cannot be");
}
/* Checks opening.records, in rank order; which of two that differ is blamed depends on the rank. Returns 1 if this rank
   has failed before, or a record that is whole says that the exchange is impossible: all ranks see that, and stop.
   Returns 0 to go on, also where a record did not arrive whole: the others may not know that. ex has failed then, and
   the record is replaced by this rank's own, so that lengths which follow from n, weights and scales are as good as
   any. Sets weight_sum, result_factor and, by score, the leader. */
static int cg_records_check_(cg_ex_ *ex) {
    const size_t size = cg_ranks_(ex);
    uint64_t max_bytes;
    float best_score = 0.0f;
    if (ex->status != CG_OK) return 1;
    max_bytes = cg_mul_sat_((uint64_t)ex->plan.stripes, ex->plan.packet_room);
    for (size_t q = 0; q < size; q++) {
        const uint8_t *r = ex->opening.records + q * CG_RECORD_BYTES_;
        if (cg_record_is_whole_(ex, r, (int)q)) cg_record_check_(ex, r, (int)q, max_bytes);
        if (ex->status != CG_OK) return 1;
    }
    ex->opening.weight_sum = 0.0;
    for (size_t q = 0; q < size; q++) {
        uint8_t *r = ex->opening.records + q * CG_RECORD_BYTES_;
        float score;
        if (!cg_record_is_whole_(ex, r, (int)q)) {
            cg_ex_fail_(ex, CG_E_CORRUPT, (int)q, "its opening record did not arrive intact");
            memcpy(r, ex->opening.record, CG_RECORD_BYTES_);
        }
        ex->opening.weight_sum += (double)cg_as_float_(cg_get32_(r + 40));
        score = cg_as_float_(cg_get32_(r + 44));
        if (ex->desc.leader == CG_LEADER_BY_SCORE && (q == 0 || score > best_score)) {
            best_score = score;
            ex->plan.root = (int)q;
        }
    }
    ex->opening.result_factor = ex->plan.exact && cg_fold_has_(ex, CG_FOLD_DIVIDES_) ? (float)(1.0 / (double)size)
                                                                                     : 1.0f;
    if (cg_hops_reencode_(ex)) ex->opening.result_factor = (float)(1.0 / cg_divisor_(ex));
    return 0;
}
/* mem.sizes = bytes of every rank's packets, from the records. */
static void cg_record_sizes_(cg_ex_ *ex) {
    for (size_t q = 0; q < cg_ranks_(ex); q++)
        ex->mem.sizes[q] = cg_get64_(ex->opening.records + q * CG_RECORD_BYTES_ + 32);
}

/* src/exchange/notes.h */
/* notes: what ranks tell each other beside packets, and how all of them learn of a failure

   Offers   cg_note_put_, cg_note_get_, verdicts (cg_verdict_begin_, cg_verdict_read_,
            cg_verdict_hear_)
   Needs    collectives, opening (records and hashes)
   Touches  ex->note, ex->mem.sizes; ex->status where a note did not arrive whole, or tells of a failure
   A note has 24 bytes: a number u64, the status u32 of its sender, the rank u32 that the sender blames, and a hash u64
   of these, of the table that stands before the note (scales, lengths, bounds, counts: a multiple of 8 bytes, or none),
   of its sender, and of the round and the exchange that it belongs to. So a note that is damaged, or is another one, is
   not taken for this one.

   One damaged message may neither let a rank wait nor pass for another one. So the length of a message follows from n
   and N, or from records or notes of which every rank has told all others that they arrived whole. That is a verdict:
   an allgather of notes with the status of every rank. Ranks stop only where all see the same reason, after the opening
   (cg_records_check_) and after a verdict; otherwise a rank that has failed takes part, with a failure in place of what
   it would have sent. A verdict that is not whole counts as a yes: if one message is damaged, and that is the one, then
   all that it would speak of is whole. */

/* Rounds that notes belong to; some are followed by a verdict. CG_ROUND_COUNTS_ plus 0 to 3: byte of the threshold. */
enum {
    CG_ROUND_OPENING_ = 1,
    CG_ROUND_SCALES_,
    CG_ROUND_BOUNDS_,
    CG_ROUND_LENGTHS_,
    CG_ROUND_HOP_,
    CG_ROUND_RECEIPT_,
    CG_ROUND_REDUCED_,
    CG_ROUND_CLOSING_,
    CG_ROUND_COUNTS_ = 16,
    CG_ROUND_VERDICT_ = 32
};

static uint64_t cg_note_hash_(const cg_ex_ *ex, const uint8_t *p, size_t table_bytes, uint32_t round, int sender) {
    uint64_t h = cg_hash_bytes_(p, table_bytes + 16);
    h = cg_mix64_(h ^ cg_get64_(ex->opening.record + 16)); /* what all ranks have agreed on */
    h = cg_mix64_(h ^ cg_get64_(ex->opening.record + 24));
    return cg_mix64_(h ^ ((uint64_t)round << 32 | (uint32_t)sender));
}
/* The note behind a table at p. status, blamed: what it tells, 0 and anything if all is well. */
static void cg_note_write_(const cg_ex_ *ex, uint8_t *p, size_t table_bytes, uint64_t number, cg_status status,
    uint32_t blamed, uint32_t round) {
    cg_put64_(p + table_bytes, number);
    cg_put32_(p + table_bytes + 8, (uint32_t)status);
    cg_put32_(p + table_bytes + 12, status == CG_OK ? 0 : blamed);
    cg_put64_(p + table_bytes + 16, cg_note_hash_(ex, p, table_bytes, round, ex->transport.rank));
}
/* The same with this rank's status. If it has failed, number is 0 and the table is zeros. */
static void cg_note_put_(const cg_ex_ *ex, uint8_t *p, size_t table_bytes, uint64_t number, uint32_t round) {
    const int failed = ex->status != CG_OK;
    if (failed) memset(p, 0, table_bytes);
    cg_note_write_(ex, p, table_bytes, failed ? 0 : number, ex->status,
        (uint32_t)(ex->report.rank < 0 ? ex->transport.rank : ex->report.rank), round);
}
static int cg_note_is_whole_(const cg_ex_ *ex, const uint8_t *p, size_t table_bytes, uint32_t round, int from) {
    return cg_get64_(p + table_bytes + 16) == cg_note_hash_(ex, p, table_bytes, round, from);
}
/* Fails ex if the note, which is whole, tells of a failure. */
static void cg_note_hear_(cg_ex_ *ex, const uint8_t *p, size_t table_bytes, int from) {
    const uint32_t status = cg_get32_(p + table_bytes + 8), blamed = cg_get32_(p + table_bytes + 12);
    if (status != CG_OK)
        cg_ex_fail_(ex, CG_E_PEER, blamed < (uint32_t)ex->transport.size ? (int)blamed : from,
            cg_status_str((cg_status)status));
}
/* Returns 1 if the note of rank `from` is whole. Fails ex if it is not, or tells of a failure. */
static int cg_note_get_(cg_ex_ *ex, const uint8_t *p, size_t table_bytes, uint32_t round, int from) {
    if (!cg_note_is_whole_(ex, p, table_bytes, round, from)) {
        cg_ex_fail_(ex, CG_E_CORRUPT, from, "its note did not arrive intact");
        return 0;
    }
    cg_note_hear_(ex, p, table_bytes, from);
    return 1;
}
static uint64_t cg_note_number_(const uint8_t *p) { return cg_get64_(p); }

/* The status of every rank to all ranks; overwrites mem.sizes. */
static void cg_verdict_begin_(cg_ex_ *ex, uint32_t round) {
    cg_note_put_(ex, ex->note.out, 0, 0, round | CG_ROUND_VERDICT_);
    cg_allgather_equal_begin_(ex, ex->note.out, CG_NOTE_BYTES_, ex->note.all);
}
/* Fails ex if the note of rank q says so. */
static void cg_verdict_hear_(cg_ex_ *ex, const uint8_t *note, uint32_t round, int q) {
    if (cg_note_is_whole_(ex, note, 0, round | CG_ROUND_VERDICT_, q)) cg_note_hear_(ex, note, 0, q);
}
/* Returns CG_OK, or a status that is another than CG_OK on all ranks. */
static cg_status cg_verdict_read_(cg_ex_ *ex, uint32_t round) {
    for (int q = 0; q < ex->transport.size; q++) cg_verdict_hear_(ex, cg_gathered_(ex, (size_t)q), round, q);
    return ex->status;
}

/* src/exchange/packets.h */
/* packets: this rank's gradient as packets, and whether packets of others are what they should be

   Offers   cg_stripes_compress_, cg_own_packet_, cg_accept_, cg_failure_put_, cg_ex_decode_, cg_ex_compress_, agreed
            scales
   Needs    ranks, opening, notes, memory, core's compress, decode and sparse
   Touches  ex->own, ex->scales, ex->mem.scratch; ex->status where a packet is refused
   Other headers may use: cg_empty_packet_put_, cg_same_op_
   A failed rank sends a failure packet ("cgno", status, rank to blame) in place of a packet whose length follows from
   n, so that nobody waits for it. */

/* desc.side as far as decoding needs it. */
static cg_extra cg_decode_extra_(const cg_ex_ *ex) {
    cg_extra side = CG_ZERO;
    if (!ex->desc.side) return side;
    side.support = ex->desc.side->support;
    side.support_len = ex->desc.side->support_len;
    side.codecs = ex->desc.side->codecs;
    side.codec_count = ex->desc.side->codec_count;
    return side;
}
/* Reads a header, without another check and plan if the packet is of desc.op for the whole vector. */
static cg_status cg_ex_header_(const cg_ex_ *ex, cg_decoder_ *d, const void *packet, size_t len) {
    return cg_packet_header_(d, packet, len, &ex->desc.op, ex->resolved ? &ex->resolved->plan : NULL);
}
/* Opens a packet of n values, which must be this rank's own or have been through cg_accept_. */
static cg_status cg_ex_open_(
    const cg_ex_ *ex, cg_decoder_ *d, const cg_extra *side, const void *packet, size_t len, size_t n) {
    const cg_status s = cg_ex_header_(ex, d, packet, len);
    if (s != CG_OK) return s;
    return d->info.n == n ? cg_packet_open_(d, side, packet, len, 0) : CG_E_MISMATCH;
}
/* y = alpha D(packet) + beta y of such a packet. */
static cg_status cg_ex_decode_(
    const cg_ex_ *ex, const void *packet, size_t len, float alpha, float beta, float *y, size_t n) {
    const cg_extra side = cg_decode_extra_(ex);
    cg_decoder_ d;
    const cg_status s = cg_ex_open_(ex, &d, &side, packet, len, n);
    return s == CG_OK ? cg_packet_decode_(&d, &side, alpha, beta, y, NULL, 1) : s;
}
/* The result, which is such a packet of all n values: to where it is wanted, or as the step of a model, which touches
   only values that the packet has. */
static cg_status cg_ex_write_packet_(cg_ex_ *ex, const void *packet, size_t len) {
    float *model = ex->desc.model;
    if (!model) return cg_ex_decode_(ex, packet, len, 1.0f, 0.0f, ex->result, ex->n);
    ex->desc.model = NULL; /* the step is taken here */
    return cg_ex_decode_(ex, packet, len, -ex->desc.rate, 1.0f, model, ex->n);
}
/* A reader of the pairs of such a packet; *info becomes its header. */
static cg_status cg_reader_open_(const cg_ex_ *ex, cg_sparse_reader_ *r, const cg_extra *side, const void *packet,
    size_t len, size_t n, cg_info *info) {
    cg_decoder_ d;
    const cg_status s = cg_ex_open_(ex, &d, side, packet, len, n);
    if (s != CG_OK) return s;
    cg_sparse_reader_open_(r, &d);
    *info = d.info;
    return CG_OK;
}
static int cg_same_stage_bits_(const cg_stage *a, const cg_stage *b) {
    return cg_stage_bits_(a) == cg_stage_bits_(b) && cg_as_bits_(a->value) == cg_as_bits_(b->value);
}
/* Whether headers of packets of a and b state the same operator. Not compared is k, which every packet states. */
static int cg_same_op_(const cg_op *a, const cg_op *b) {
    return cg_same_stage_bits_(&a->sample, &b->sample) && cg_same_stage_bits_(&a->transform, &b->transform) &&
        cg_same_stage_bits_(&a->select, &b->select) && cg_same_stage_bits_(&a->quantize, &b->quantize) &&
        cg_same_stage_bits_(&a->code, &b->code) && cg_same_stage_bits_(&a->clip, &b->clip);
}
/* Whether a packet is of op, which is desc.op but perhaps for its quantizer. Which indices were given is left to the
   decoder. */
static int cg_is_of_op_(const cg_ex_ *ex, const cg_info *info, const cg_op *op) {
    cg_op expected = *op;
    if (ex->plan.traits & CG_NEEDS_SUPPORT_) expected.select.size = info->op.select.size;
    return cg_same_op_(&info->op, &expected);
}
/* Agreed scales are the same in every packet of a stripe, whoever made it, and in their sums. */
static cg_status cg_same_scales_(const cg_ex_ *ex, const uint8_t *p, size_t len, int stripe) {
    const uint64_t *offset = ex->own.offset;
    return cg_same_grid_(p, len, ex->own.packets + (size_t)offset[stripe],
        (size_t)(offset[stripe + 1] - offset[stripe]), cg_stripe_n_(ex, stripe));
}
/* A rank that abstains sends a selection of nothing. */
static cg_op cg_empty_op_(void) { return cg_threshold(CG_FLT_MAX_); }
/* Returns the length, CG_HEADER_BYTES, for which there must be room. */
static size_t cg_empty_packet_put_(const cg_tag *tag, size_t n, uint8_t *packet) {
    size_t len = 0;
    const cg_status s = cg_sparse_packet_put_(CG_FLT_MAX_, tag, n, NULL, packet, CG_HEADER_BYTES, &len);
    (void)s; /* cannot fail: the packet is a header alone */
    return len;
}
/* On the route allgather a rank may abstain. */
static int cg_is_empty_packet_(const cg_ex_ *ex, const cg_info *info) {
    const cg_op nothing = cg_empty_op_();
    return cg_route_has_(ex, CG_ROUTE_MEETS_EVERYWHERE_) && info->k == 0 && cg_same_op_(&info->op, &nothing);
}
/* Fails ex, and blames sent_by, unless cg_ex_header_ has returned s = CG_OK for d and p, and p is an intact packet of
   n values with this tag. stripe: whose agreed scales it must have, or -1; op: its operator, or NULL for any; made_by:
   the rank in its tag, < 0 for any. A failure packet fails ex with the status and rank that it names. Otherwise the
   packet is open afterwards. */
static void cg_accept_opened_(cg_ex_ *ex, cg_decoder_ *d, cg_status s, const uint8_t *p, size_t len, size_t n,
    cg_tag tag, int stripe, const cg_op *op, int made_by, int sent_by) {
    const cg_extra side = cg_decode_extra_(ex);
    const cg_info *info = &d->info;
    if (ex->status != CG_OK) return;
    if (len >= 12 && cg_get32_(p) == CG_FAILURE_MAGIC_) {
        const uint32_t who = cg_get32_(p + 8);
        cg_ex_fail_(ex, CG_E_PEER, who < (uint32_t)ex->transport.size ? (int)who : sent_by,
            cg_status_str((cg_status)cg_get32_(p + 4)));
        return;
    }
    if (s == CG_OK &&
        (info->n != n || info->tag.seed != tag.seed || info->tag.step != tag.step || info->tag.tensor != tag.tensor ||
            (made_by >= 0 && info->tag.rank != (uint32_t)made_by) ||
            (op && !cg_is_of_op_(ex, info, op) && !cg_is_empty_packet_(ex, info))))
        s = CG_E_MISMATCH;
    if (s == CG_OK) s = cg_packet_open_(d, &side, p, len, 1);
    if (s == CG_OK && op && d->segments_hash != ex->plan.segments_hash && !cg_is_empty_packet_(ex, info))
        s = CG_E_MISMATCH;
    if (s == CG_OK && stripe >= 0 && (ex->desc.flags & CG_AGREE_SCALES)) s = cg_same_scales_(ex, p, len, stripe);
    if (s == CG_OK) return;
    cg_ex_fail_(ex, s, sent_by,
        s == CG_E_MISMATCH
            ? "its packet is of another vector: n, seed, step, tensor, rank, operator, segments or agreed scales differ"
            : cg_status_str(s));
}
static void cg_accept_(cg_ex_ *ex, const uint8_t *p, size_t len, size_t n, cg_tag tag, int stripe, const cg_op *op,
    int made_by, int sent_by) {
    cg_decoder_ d;
    if (ex->status != CG_OK) return;
    cg_accept_opened_(ex, &d, cg_ex_header_(ex, &d, p, len), p, len, n, tag, stripe, op, made_by, sent_by);
}
/* If this rank has failed: a failure packet of len bytes at p. Packets of less than 12 bytes stay as they are. */
static void cg_failure_put_(const cg_ex_ *ex, uint8_t *p, size_t len) {
    if (ex->status == CG_OK || len < 12) return;
    memset(p, 0, len);
    cg_put32_(p, CG_FAILURE_MAGIC_);
    cg_put32_(p + 4, (uint32_t)ex->status);
    cg_put32_(p + 8, (uint32_t)(ex->report.rank < 0 ? ex->transport.rank : ex->report.rank));
}
/* If this rank has failed: failures in place of its packets, whose lengths follow from n. */
static void cg_own_failure_put_(cg_ex_ *ex) {
    if (ex->status == CG_OK) return;
    ex->own.offset[0] = 0;
    for (int p = 0; p < ex->plan.stripes; p++) {
        const size_t len = cg_bound_with(&ex->desc.op, ex->desc.side, cg_stripe_n_(ex, p));
        cg_failure_put_(ex, ex->own.packets + (size_t)ex->own.offset[p], len);
        ex->own.offset[p + 1] = ex->own.offset[p] + len;
    }
}
/* As cg_compress_with, in the exchange's scratch. */
static cg_status cg_ex_compress_(const cg_ex_ *ex, const cg_op *op, const cg_tag *tag, const cg_extra *side,
    const float *v, size_t n, uint8_t *out, size_t cap, size_t *len) {
    return cg_compress_checked_(op, NULL, tag, side, v, NULL, n, out, cap, len, ex->mem.scratch, ex->mem.scratch_bytes);
}
/* Compresses grad, or what ex->producer makes of it, into own.packets, stripe after stripe. Called a second time once
   scales are agreed on. */
static void cg_stripes_compress_(cg_ex_ *ex) {
    cg_producer_ *producer = ex->producer;
    cg_extra side = CG_ZERO;
    cg_report report;
    uint64_t packet_offset = 0, scale_offset = 0;
    ex->producer = NULL;
    if (ex->desc.side) side = *ex->desc.side;
    side.report = &report;
    if (ex->desc.flags & CG_CORRELATED) side.correlated = (uint32_t)ex->transport.size;
    if (ex->desc.flags & CG_ABSTAIN) {
        const cg_tag tag = cg_stripe_tag_(ex, 0, 0);
        ex->contrib.len = cg_empty_packet_put_(&tag, ex->n, ex->own.packets);
        ex->own.offset[1] = ex->contrib.len;
        if (!ex->plan.op_len_fixed) return;
        ex->own.offset[1] = ex->plan.packet_room; /* zeros up to the length that the others expect */
        memset(ex->own.packets + ex->contrib.len, 0, ex->plan.packet_room - ex->contrib.len);
        return;
    }
    for (int p = 0; p < ex->plan.stripes && ex->status == CG_OK; p++) {
        const size_t start = cg_stripe_start_(ex, p), n = cg_stripe_n_(ex, p);
        const cg_tag tag = cg_stripe_tag_(ex, p, 0);
        size_t len;
        cg_status s;
        if (ex->desc.side && ex->desc.side->aux) side.aux = cg_at_(ex->desc.side->aux, start);
        if (ex->desc.flags & CG_AGREE_SCALES) side.scale = ex->scales.agreed ? ex->scales.max + scale_offset : NULL;
        scale_offset += cg_stripe_scale_count_(ex, p);
        s = cg_compress_checked_(&ex->desc.op, ex->resolved && n == ex->n ? &ex->resolved->plan : NULL, &tag, &side,
            n ? cg_at_(ex->grad, start) : NULL, producer, n, ex->own.packets + (size_t)packet_offset,
            ex->plan.packet_room, &len, ex->mem.scratch, ex->mem.scratch_bytes);
        if (s != CG_OK)
            cg_ex_fail_here_(
                ex, s, report.why, report.need, report.at == CG_NO_INDEX ? CG_NO_INDEX : start + report.at);
        ex->own.offset[p] = packet_offset;
        packet_offset += len;
    }
    ex->own.offset[ex->plan.stripes] = packet_offset;
}
static const uint8_t *cg_own_packet_(const cg_ex_ *ex, int p) { return ex->own.packets + (size_t)ex->own.offset[p]; }
static size_t cg_own_packet_len_(const cg_ex_ *ex, int p) {
    return (size_t)(ex->own.offset[p + 1] - ex->own.offset[p]);
}
/* Compressing refuses Inf and NaN; this is for routes that compress only after the opening. */
static void cg_grad_check_finite_(cg_ex_ *ex) {
    for (size_t i = 0; i < ex->n; i += CG_BLOCK_)
        if (cg_absmax_bits_(cg_at_(ex->grad, i), cg_min_(CG_BLOCK_, ex->n - i)) >= CG_INF_BITS_) {
            cg_ex_fail_here_(
                ex, CG_E_NONFINITE, cg_status_str(CG_E_NONFINITE), 0, cg_first_nonfinite_(ex->grad, ex->n));
            return;
        }
}
/* Bytes of the table of scales: with the note behind it, what every rank sends. */
static size_t cg_scale_table_bytes_(const cg_ex_ *ex) { return (4 * (size_t)ex->scales.count + 7) & ~(size_t)7; }
/* Scales of all stripes to scales.all, with a note; they stand first in a packet, as f32. */
static void cg_scales_collect_(cg_ex_ *ex) {
    uint8_t *out = ex->scales.all;
    memset(out, 0, cg_scale_table_bytes_(ex));
    for (int p = 0; p < ex->plan.stripes; p++) {
        const size_t bytes = 4 * (size_t)cg_stripe_scale_count_(ex, p);
        memcpy(out, cg_own_packet_(ex, p) + CG_HEADER_BYTES, bytes);
        out += bytes;
    }
    cg_note_put_(ex, ex->scales.all, cg_scale_table_bytes_(ex), ex->scales.count, CG_ROUND_SCALES_);
}
/* Takes the maximum over ranks of every scale, from the records if there is one and otherwise from the last
   allgather, and compresses again with it. */
static void cg_scales_agree_(cg_ex_ *ex) {
    for (int q = 0; ex->scales.count > 1 && q < ex->transport.size; q++)
        cg_note_get_(ex, cg_gathered_(ex, (size_t)q), cg_scale_table_bytes_(ex), CG_ROUND_SCALES_, q);
    if (ex->status != CG_OK) return;
    for (size_t i = 0; i < (size_t)ex->scales.count; i++) {
        float max_scale = 0.0f;
        for (size_t q = 0; q < cg_ranks_(ex); q++) {
            const float scale = ex->scales.count == 1
                ? cg_as_float_(cg_get32_(ex->opening.records + q * CG_RECORD_BYTES_ + 48))
                : cg_as_float_(cg_get32_(cg_gathered_(ex, q) + 4 * i));
            if (!cg_is_finite_(scale) || scale < 0.0f)
                cg_ex_fail_(ex, CG_E_CORRUPT, (int)q, "it sent a scale that cannot be");
            else if (scale > max_scale) max_scale = scale;
        }
        ex->scales.max[i] = max_scale;
    }
    ex->scales.agreed = 1;
    if (ex->status == CG_OK) cg_stripes_compress_(ex);
}

/* src/exchange/coroutine.h */
/* coroutine: routes as straight code that returns at every message and goes on where it waited

   Offers   CG_CO_BEGIN_ ... CG_CO_END_, CG_CO_AWAIT_, CG_CO_VERDICT_, CG_CO_HOP_, CG_CO_BROADCAST_, CG_CO_ALLGATHER_
   Needs    collectives, packets, notes
   Touches  ex->co.line, ex->hop, ex->note, ex->inputs, ex->reduced.len, ex->mem.sizes
   A coroutine is a function of ex that returns CG_AGAIN while a collective is under way and is called again when that
   is complete. Locals do not outlast a wait, except those computed before CG_CO_BEGIN_, which are computed anew. */

/* resume_line is where the coroutine goes on: 1, 2, 3 ... in the order of its text, not a line of the file. A macro
   that moves a preamble and a packet waits for the packet at -resume_line, and in between at 100 + resume_line. */
#define CG_CO_BEGIN_(ex)      \
  switch ((ex)->co.line) {    \
  default: return CG_E_STATE; \
  case 0:
#define CG_CO_YIELD_(ex, begin_call, resume_line) \
  do {                                            \
    begin_call;                                   \
    (ex)->co.line = (resume_line);                \
    return CG_AGAIN;                              \
  case (resume_line):;                            \
  } while (0)
#define CG_CO_AWAIT_(ex, resume_line, begin_call) CG_CO_YIELD_(ex, begin_call, resume_line)
#define CG_CO_END_ }
/* Returns from the coroutine unless all ranks are well. */
#define CG_CO_VERDICT_(ex, resume_line, round)                     \
  do {                                                             \
    CG_CO_YIELD_(ex, cg_verdict_begin_(ex, round), resume_line);   \
    if (cg_verdict_read_(ex, round) != CG_OK) return (ex)->status; \
  } while (0)
/* One packet out and one in by sendrecv, then ex->hop.in_len is the length of what came. Preambles go before them
   unless len_fixed: both lengths are known to both sides. A preamble is answered by a receipt: if it did not arrive
   whole, its packet is not sent. */
#define CG_CO_HOP_(ex, resume_line, len_fixed, out, out_len, to, in, in_len, cap, from) \
  do {                                                                                  \
    cg_hop_set_(ex, out, out_len, to, in, in_len, cap, from);                           \
    if (!(len_fixed)) {                                                                 \
      CG_CO_YIELD_(ex, cg_hop_preamble_begin_(ex), resume_line);                        \
      CG_CO_YIELD_(ex, cg_hop_receipt_begin_(ex), 100 + (resume_line));                 \
    }                                                                                   \
    CG_CO_YIELD_(ex, cg_hop_packet_begin_(ex, len_fixed), -(resume_line));              \
  } while (0)
/* ex->reduced.packet and its length from rank `from` to everybody. fixed_len: its length, or 0: a preamble and a
   verdict go before it. */
#define CG_CO_BROADCAST_(ex, resume_line, fixed_len, from)                             \
  do {                                                                                 \
    if (!(fixed_len)) {                                                                \
      CG_CO_YIELD_(ex, cg_broadcast_preamble_begin_(ex, from), resume_line);           \
      cg_broadcast_preamble_read_(ex, from);                                           \
      CG_CO_VERDICT_(ex, 100 + (resume_line), CG_ROUND_REDUCED_);                      \
    }                                                                                  \
    CG_CO_YIELD_(ex, cg_broadcast_packet_begin_(ex, fixed_len, from), -(resume_line)); \
  } while (0)
/* Everybody's ex->reduced.packet to everybody, `into` as cg_allgather_begin_ has it; ex->inputs.len and ex->mem.sizes
   become their lengths. len_fixed: all know them (cg_reduced_fixed_len_); otherwise preambles and a verdict go
   before. */
#define CG_CO_ALLGATHER_(ex, resume_line, len_fixed, into)                              \
  do {                                                                                  \
    if (!(len_fixed)) {                                                                 \
      CG_CO_YIELD_(ex, cg_allgather_preambles_begin_(ex), resume_line);                 \
      cg_allgather_preambles_read_(ex);                                                 \
      CG_CO_VERDICT_(ex, 100 + (resume_line), CG_ROUND_REDUCED_);                       \
    }                                                                                   \
    CG_CO_YIELD_(ex, cg_allgather_packets_begin_(ex, len_fixed, into), -(resume_line)); \
  } while (0)

static void cg_hop_set_(
    cg_ex_ *ex, const uint8_t *out, size_t out_len, int to, uint8_t *in, size_t in_len, size_t cap, int from) {
    ex->hop.out = out;
    ex->hop.out_len = out_len;
    ex->hop.to = to;
    ex->hop.in = in;
    ex->hop.in_len = in_len;
    ex->hop.in_cap = cap;
    ex->hop.from = from;
}
/* A rank sends one packet of a stripe, so that its preambles differ by co.i if at all. */
static uint32_t cg_hop_round_(const cg_ex_ *ex, uint32_t round) {
    return ex->plan.stripes > 1 ? round | (uint32_t)ex->co.i << 8 : round;
}
static void cg_hop_preamble_begin_(cg_ex_ *ex) {
    if (ex->status != CG_OK) ex->hop.out_len = 0;
    cg_note_put_(ex, ex->note.out, 0, ex->hop.out_len, cg_hop_round_(ex, CG_ROUND_HOP_));
    cg_sendrecv_begin_(ex, ex->note.out, CG_NOTE_BYTES_, ex->hop.to, ex->note.in, CG_NOTE_BYTES_, ex->hop.from);
}
/* Reads the preamble of hop.from and answers it. */
static void cg_hop_receipt_begin_(cg_ex_ *ex) {
    int whole = 1;
    ex->hop.in_len = 0;
    if (ex->hop.from >= 0) {
        whole = cg_note_get_(ex, ex->note.in, 0, cg_hop_round_(ex, CG_ROUND_HOP_), ex->hop.from) &&
            cg_note_number_(ex->note.in) <= ex->hop.in_cap;
        if (whole) ex->hop.in_len = (size_t)cg_note_number_(ex->note.in);
    }
    cg_note_write_(ex, ex->note.receipt_out, 0, (uint64_t)whole, CG_OK, 0, cg_hop_round_(ex, CG_ROUND_RECEIPT_));
    cg_sendrecv_begin_(
        ex, ex->note.receipt_out, CG_NOTE_BYTES_, ex->hop.from, ex->note.receipt_in, CG_NOTE_BYTES_, ex->hop.to);
}
/* len_fixed: a failed rank sends a failure packet, from partial.buf[0], which has room for it. Otherwise a packet is
   sent as announced, whatever this rank has found out since, unless the receipt says that its preamble was lost. */
static void cg_hop_packet_begin_(cg_ex_ *ex, int len_fixed) {
    if (len_fixed) {
        if (ex->status != CG_OK) ex->hop.out = ex->partial.buf[0];
        if (ex->hop.to >= 0) cg_failure_put_(ex, ex->partial.buf[0], ex->hop.out_len);
    } else if (ex->hop.to >= 0 && !cg_note_number_(ex->note.receipt_in) &&
        cg_note_is_whole_(ex, ex->note.receipt_in, 0, cg_hop_round_(ex, CG_ROUND_RECEIPT_), ex->hop.to)) {
        cg_ex_fail_(ex, CG_E_PEER, ex->hop.to, "a note of this rank did not arrive intact there");
        ex->hop.out_len = 0;
    }
    cg_sendrecv_begin_(ex, ex->hop.out, ex->hop.out_len, ex->hop.to, ex->hop.in, ex->hop.in_len, ex->hop.from);
}
static void cg_broadcast_preamble_begin_(cg_ex_ *ex, int from) {
    if (ex->transport.rank == from) cg_note_put_(ex, ex->note.in, 0, ex->reduced.len, CG_ROUND_REDUCED_);
    cg_broadcast_begin_(ex, ex->note.in, CG_NOTE_BYTES_, from);
}
/* ex->reduced.len = length of the packet that rank `from` or q announces; ex fails if it has failed, or announces more
   than reduced.cap bytes. */
static size_t cg_preamble_read_(cg_ex_ *ex, const uint8_t *note, int from) {
    if (!cg_note_get_(ex, note, 0, CG_ROUND_REDUCED_, from)) return 0;
    if (cg_note_number_(note) <= ex->reduced.cap) return (size_t)cg_note_number_(note);
    cg_ex_fail_(ex, CG_E_CORRUPT, from, "it announces a packet that is too long");
    return 0;
}
static void cg_broadcast_preamble_read_(cg_ex_ *ex, int from) {
    ex->reduced.len = cg_preamble_read_(ex, ex->note.in, from);
}
static void cg_broadcast_packet_begin_(cg_ex_ *ex, size_t fixed_len, int from) {
    if (fixed_len) {
        ex->reduced.len = fixed_len;
        if (ex->transport.rank == from) cg_failure_put_(ex, ex->reduced.packet, fixed_len);
    }
    cg_broadcast_begin_(ex, ex->reduced.packet, ex->reduced.len, from);
}
static void cg_allgather_preambles_begin_(cg_ex_ *ex) {
    cg_note_put_(ex, ex->note.out, 0, ex->reduced.len, CG_ROUND_REDUCED_);
    cg_allgather_equal_begin_(ex, ex->note.out, CG_NOTE_BYTES_, ex->note.all);
}
static void cg_allgather_preambles_read_(cg_ex_ *ex) {
    for (int q = 0; q < ex->transport.size; q++)
        ex->inputs.len[q] = cg_preamble_read_(ex, cg_gathered_(ex, (size_t)q), q);
}
/* The stripe whose sum a rank reduces, or has complete at the end of the ring. */
static int cg_stripe_of_rank_(const cg_ex_ *ex, int rank) {
    return cg_route_has_(ex, CG_ROUTE_HOPS_) ? cg_wrap_(ex, rank + 1) : rank;
}
/* Length of a reduced packet of n values; 0: not known beforehand. */
static size_t cg_reduced_fixed_len_(const cg_ex_ *ex, size_t n) {
    if (cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_)) return cg_bound(&ex->desc.op, n);
    if (!ex->plan.reduced_len_fixed) return 0;
    if (ex->plan.exact && !ex->desc.op.sample.id && !ex->desc.op.transform.id) return (size_t)cg_dense_bound_(n);
    return cg_bound(ex->plan.exact ? &ex->desc.op : &ex->plan.back, n);
}
/* Not len_fixed: ex->inputs.len has the lengths. */
static void cg_allgather_packets_begin_(cg_ex_ *ex, int len_fixed, uint8_t *into) {
    for (int q = 0; len_fixed && q < ex->transport.size; q++)
        ex->inputs.len[q] = cg_reduced_fixed_len_(ex, cg_stripe_n_(ex, cg_stripe_of_rank_(ex, q)));
    for (size_t q = 0; q < cg_ranks_(ex); q++) ex->mem.sizes[q] = ex->inputs.len[q];
    if (len_fixed) cg_failure_put_(ex, ex->reduced.packet, ex->inputs.len[ex->transport.rank]);
    cg_allgather_begin_(ex, ex->reduced.packet, ex->mem.sizes, into);
}
/* The packets of the last allgather become ex->inputs. */
static void cg_inputs_from_gather_(cg_ex_ *ex) {
    for (size_t q = 0; q < cg_ranks_(ex); q++) {
        ex->inputs.packet[q] = cg_gathered_(ex, q);
        ex->inputs.len[q] = (size_t)ex->collective.sizes[q];
    }
}

/* src/exchange/lists.h */
/* lists: sparse packets read and written pair by pair, and cut by magnitude

   Offers   cg_sparse_next_, cg_ex_list_, cg_threshold_split_, cg_reduce_two_, cg_contribution_less_dropped_;
            cg_plan_lists_, cg_plan_cuts_, cg_accepts_pairs_, cg_accepts_largest_
   Needs    memory, core's sparse and reduce
   Touches  ex->mem.lists, ex->mem.scratch; cg_contribution_less_dropped_ also ex->contrib and report.used
   For the routes merge, region and shared, and for the fold over contributors. */

/* Merge and region add fan_in packets at once and split the sum into two lists, shared writes one list (fan_in 1).
   inboxes: packets that are kept until then; merges: sums that this rank may cut, each of which drops something. */
static void cg_plan_lists_(cg_ex_ *ex, cg_arena_ *arena, uint64_t fan_in, uint64_t inboxes, uint64_t merges) {
    const uint64_t n = ex->n, max_selected = ex->plan.max_selected;
    const uint64_t max_sum_n = cg_mul_sat_(fan_in, max_selected), max_dropped = cg_mul_sat_(max_sum_n, merges),
                   contrib_bytes = cg_sparse_packet_bound_(n, cg_add_sat_(max_dropped, max_selected));
    uint64_t room = cg_sparse_packet_bound_(n, max_selected);
    cg_max_update_(&room, ex->plan.packet_room);
    ex->mem.list_cap = (size_t)(max_sum_n > n ? n : max_sum_n);
    ex->mem.lists = cg_arena_take_(arena, cg_mul_sat_(2, cg_list_in_mem_(NULL, NULL, n, ex->mem.list_cap)));
    ex->contrib.packets = cg_arena_take_(arena, contrib_bytes);
    ex->contrib.cap = (size_t)contrib_bytes;
    ex->reduced.cap = (size_t)cg_add_sat_(room, 1024);
    ex->reduced.packet = cg_arena_take_(arena, ex->reduced.cap);
    ex->mem.inbox = cg_arena_take_(arena, cg_mul_sat_(inboxes, cg_add_sat_(room, 1024)));
}
/* Behind them what merge and region need to cut a sum; buffers: of the sum, and of what was dropped. */
static void cg_plan_cuts_(
    cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch, uint64_t fan_in, uint64_t merges, int buffers) {
    const uint64_t n = ex->n, max_dropped = cg_mul_sat_(cg_mul_sat_(fan_in, ex->plan.max_selected), merges),
                   sum_bytes = cg_sparse_packet_bound_(n, ex->mem.list_cap);
    ex->dropped.cap = (size_t)cg_add_sat_(
        cg_sparse_packet_bound_(n, max_dropped), cg_mul_sat_((uint64_t)ex->transport.size, CG_HEADER_BYTES + 96));
    for (int i = 0; i < 2; i++) {
        ex->partial.buf[i] = cg_arena_take_(arena, i < buffers ? sum_bytes : 0);
        ex->dropped.buf[i] = cg_arena_take_(arena, i < buffers ? ex->dropped.cap : 0);
    }
    cg_max_update_(scratch,
        cg_add_sat_(
            cg_mul_sat_(2, cg_list_in_mem_(NULL, NULL, n, cg_add_sat_(max_dropped, ex->plan.max_selected))), 64));
}
/* Pairs of a selection that leaves about as many as it was asked for; the k largest of the whole vector. */
static int cg_accepts_pairs_(const cg_ex_ *ex) {
    return cg_is_sparse_f32_(&ex->desc.op, ex->plan.traits) && ex->plan.traits & CG_KEEPS_ABOUT_;
}
static int cg_accepts_largest_(const cg_ex_ *ex) {
    return cg_accepts_pairs_(ex) && ex->plan.traits & CG_KEEPS_LARGEST_;
}

/* List 0 or 1 of mem.lists, emptied, for up to mem.list_cap pairs with indices below n <= ex->n. */
static void cg_ex_list_(const cg_ex_ *ex, int which, size_t n, cg_list_ *list) {
    const size_t bytes = (size_t)cg_list_in_mem_(NULL, NULL, ex->n, ex->mem.list_cap);
    cg_list_in_mem_(list, ex->mem.lists + (size_t)which * bytes, n, ex->mem.list_cap);
}
/* The next index, or pair, of a packet; 0 at its end. The two are not to be mixed for one reader. */
static int cg_sparse_next_index_(cg_sparse_reader_ *r, uint64_t *index) {
    if (r->window_next == r->window_n && !cg_sparse_reader_fill_(r)) return 0;
    *index = r->window[r->window_next++];
    return 1;
}
static int cg_sparse_next_(cg_sparse_reader_ *r, uint64_t *index, float *value) { /* f32 packets only */
    if (!cg_sparse_next_index_(r, index)) return 0;
    *value = cg_as_float_(cg_get32_(r->values));
    r->values += 4;
    return 1;
}
/* Splits a sparse f32 packet of n values by magnitude: those above the threshold, and the first `ties` that equal it,
   go to `kept` (reduced.cap bytes, with kept_tag), the others, negated, to `dropped` (dropped_cap bytes), a packet of
   ex->n values where index 0 of the split one is index_base. CG_E_CORRUPT: more than mem.list_cap values, which no
   honest rank sends. */
CG_NOINLINE_ cg_status cg_threshold_split_(cg_ex_ *ex, const uint8_t *packet, size_t len, size_t n,
    uint32_t threshold_bits, uint64_t ties, cg_tag kept_tag, uint8_t *kept, size_t *kept_len, uint8_t *dropped,
    size_t dropped_cap, size_t index_base, size_t *dropped_len) {
    cg_sparse_reader_ r;
    cg_list_ keep, drop;
    cg_info info;
    uint64_t index;
    float value;
    cg_status s = cg_reader_open_(ex, &r, NULL, packet, len, n, &info);
    if (s != CG_OK) return s;
    if (info.k > ex->mem.list_cap) return CG_E_CORRUPT;
    cg_ex_list_(ex, 0, n, &keep);
    cg_ex_list_(ex, 1, ex->n, &drop);
    while (cg_sparse_next_(&r, &index, &value)) {
        const uint32_t magnitude_bits = cg_as_bits_(value) & CG_ABS_MASK_;
        const int equal = magnitude_bits == threshold_bits && ties;
        ties -= (uint64_t)equal;
        if (magnitude_bits > threshold_bits || equal) cg_list_append_(&keep, index, value);
        else cg_list_append_(&drop, index + index_base, -value);
    }
    s = cg_sparse_packet_put_(0.0f, &kept_tag, n, &keep, kept, ex->reduced.cap, kept_len);
    if (s == CG_OK) s = cg_sparse_packet_put_(0.0f, &ex->desc.tag, ex->n, &drop, dropped, dropped_cap, dropped_len);
    return s;
}
/* The sum of two sparse packets; out is apart from both. */
static cg_status cg_reduce_two_(
    cg_ex_ *ex, const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len, uint8_t *out, size_t cap, size_t *len) {
    const void *both[2];
    size_t lens[2];
    both[0] = a;
    both[1] = b;
    lens[0] = a_len;
    lens[1] = b_len;
    return cg_reduce_(both, lens, 2, 0, out, cap, len, ex->mem.scratch, ex->mem.scratch_bytes);
}
/* report.used: what was sent less what this rank has dropped of sums. Does nothing if ex has failed. */
static void cg_contribution_less_dropped_(cg_ex_ *ex) {
    cg_status s;
    if (!ex->dropped.any || ex->status != CG_OK) return;
    s = cg_reduce_two_(ex, ex->own.packets, (size_t)ex->own.offset[1], ex->dropped.buf[ex->dropped.flip],
        ex->dropped.len, ex->contrib.packets, ex->contrib.cap, &ex->contrib.len);
    ex->report.used = ex->contrib.packets;
    if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
}

/* src/exchange/robust.h */
/* robust: folds that a minority of ranks cannot spoil, whatever it sends: median, trimmed mean, mean of clipped norms

   Offers   cg_robust_fold_, cg_robust_plan_, the folds' functions cg_fold_median_, cg_fold_trimmed_, cg_fold_clipped_
            and refusals
   Needs    ranks, routes, memory, packets, core's decode
   Touches  ex->mem.rows and norms
   Other headers may use: cg_rows_trim_
   All packets are decoded, a row of n floats for each rank, and the result takes the place of the first row. A sum in
   double over the ranks, in an order that values or ranks fix, so that all ranks have the same bits. */

/* Columns that are sorted together, so that a compare-exchange is a loop over neighbours. */
enum { CG_COLUMNS_ = 64 };

/* How many ranks the trimmed mean leaves out at each end. */
static size_t cg_trim_count_(const cg_ex_ *ex) {
    const double share = ex->desc.fold_limit != 0.0f ? (double)ex->desc.fold_limit : 0.25;
    const size_t ranks = cg_ranks_(ex), cut = (size_t)cg_times64_(share, (double)ranks);
    return cut || ranks < 3 ? cut : 1;
}
static void cg_robust_plan_(cg_ex_ *ex, cg_arena_ *arena) {
    const uint64_t size = (uint64_t)ex->transport.size;
    if (!cg_fold_row_of_(ex->desc.fold)->combine) return;
    ex->mem.rows = (float *)(void *)cg_arena_take_(arena, cg_mul_sat_(size, cg_mul_sat_(4, ex->n)));
    ex->mem.norms = (double *)(void *)cg_arena_take_(arena, cg_mul_sat_(size, 2 * sizeof(double)));
}
/* Sorts the columns of `many` <= CG_COLUMNS_ neighbours, beginning at first: row 0 gets the smallest. Batcher's merge
   exchange, which compares the same pairs whatever the values are. */
static void cg_columns_sort_(float *rows, size_t n, size_t ranks, size_t first, size_t many) {
    size_t top = 1;
    while (top < ranks) top *= 2;
    for (size_t p = top / 2; p; p /= 2)
        for (size_t q = top / 2, r = 0, d = p;; d = q - p, q /= 2, r = p) {
            for (size_t i = 0; i + d < ranks; i++)
                if ((i & p) == r) {
                    float *a = rows + i * n + first, *b = a + d * n;
                    for (size_t j = 0; j < many; j++) {
                        const float x = a[j], y = b[j];
                        a[j] = y < x ? y : x;
                        b[j] = y < x ? x : y;
                    }
                }
            if (q == p) break;
        }
}
/* row 0 = the mean of ranks [cut, ranks - cut) of the sorted columns. */
static void cg_rows_trim_(float *rows, size_t n, size_t ranks, size_t cut) {
    for (size_t first = 0, many; first < n; first += many) {
        double sum[CG_COLUMNS_] = { 0.0 };
        many = cg_min_(CG_COLUMNS_, n - first);
        cg_columns_sort_(rows, n, ranks, first, many);
        for (size_t r = cut; r < ranks - cut; r++)
            for (size_t j = 0; j < many; j++) sum[j] += (double)rows[r * n + first + j];
        for (size_t j = 0; j < many; j++) rows[first + j] = (float)(sum[j] / (double)(ranks - 2 * cut));
    }
}
static void cg_fold_median_(cg_ex_ *ex, size_t n) {
    cg_rows_trim_(ex->mem.rows, n, cg_ranks_(ex), (cg_ranks_(ex) - 1) / 2);
}
static void cg_fold_trimmed_(cg_ex_ *ex, size_t n) {
    cg_rows_trim_(ex->mem.rows, n, cg_ranks_(ex), cg_trim_count_(ex));
}
/* |v|, summed in 16 lanes. */
static double cg_row_norm_(const float *v, size_t n) {
    double lanes[16] = { 0.0 }, sum = 0.0;
    for (size_t i = 0; i < n; i++) lanes[i % 16] += cg_times64_((double)v[i], (double)v[i]);
    for (size_t l = 0; l < 16; l++) sum += lanes[l];
    return cg_sqrt_(sum);
}
/* norms[r] = the factor that brings row r to at most fold_limit times the median of the norms, of an even number of
   them the smaller one in the middle. */
static void cg_clip_factors_(cg_ex_ *ex, size_t n) {
    const size_t ranks = cg_ranks_(ex);
    double *norms = ex->mem.norms, *sorted = norms + ranks, longest;
    for (size_t r = 0; r < ranks; r++) {
        size_t i = r;
        norms[r] = cg_row_norm_(ex->mem.rows + r * n, n);
        for (; i && sorted[i - 1] > norms[r]; i--) sorted[i] = sorted[i - 1];
        sorted[i] = norms[r];
    }
    longest = cg_times64_(ex->desc.fold_limit != 0.0f ? (double)ex->desc.fold_limit : 1.0, sorted[(ranks - 1) / 2]);
    for (size_t r = 0; r < ranks; r++) norms[r] = norms[r] > longest ? longest / norms[r] : 1.0;
}
static void cg_fold_clipped_(cg_ex_ *ex, size_t n) {
    const size_t ranks = cg_ranks_(ex);
    float *rows = ex->mem.rows;
    cg_clip_factors_(ex, n);
    for (size_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (size_t r = 0; r < ranks; r++) sum += cg_times64_(ex->mem.norms[r], (double)rows[r * n + i]);
        rows[i] = cg_saturate64_(sum / (double)ranks);
    }
}
/* ex->mem.rows = the fold of ex->inputs, n floats: the inputs have been verified, and are opened if ex says so. */
static cg_status cg_robust_fold_(cg_ex_ *ex, size_t n) {
    const cg_extra side = cg_decode_extra_(ex);
    cg_status s = CG_OK;
    for (size_t q = 0; q < cg_ranks_(ex) && s == CG_OK; q++) {
        float *row = n ? ex->mem.rows + q * n : NULL;
        if (!ex->inputs.opened) s = cg_ex_decode_(ex, ex->inputs.packet[q], ex->inputs.len[q], 1.0f, 0.0f, row, n);
        else s = cg_packet_decode_(&ex->inputs.decoder[q], &side, 1.0f, 0.0f, row, NULL, 1);
    }
    if (s == CG_OK && n) cg_fold_row_of_(ex->desc.fold)->combine(ex, n);
    return s;
}
/* What all robust folds refuse, as a sentence; limit: what fold_limit has to stay below. */
static const char *cg_refuse_robust_(const cg_ex_ *ex, float limit, const char *range) {
    if (!cg_route_has_(ex, CG_ROUTE_PACKETS_MEET_) || cg_route_has_(ex, CG_ROUTE_STRIPES_))
        return "a robust fold compares whole vectors of all ranks on one rank: take allgather or server";
    if (ex->desc.weight != 0.0f) return "a robust fold has no weights: a rank that lies would choose a large one";
    if (!(ex->desc.fold_limit >= 0.0f) || !(ex->desc.fold_limit < limit)) return range;
    return NULL;
}
/* Columns are compared, so every rank has to have sent something in each of them. */
static const char *cg_refuse_sorted_(const cg_ex_ *ex, float limit, const char *range) {
    if (ex->plan.traits & (CG_IS_SELECTION_ | CG_IS_PER_RANK_) ||
        (ex->plan.traits & CG_IS_PRIVATE_ && ex->desc.op.sample.id))
        return "where most ranks have sent nothing, the median and the trimmed mean are 0: take an operator that sends "
               "the same places on all ranks, or the fold clipped";
    return cg_refuse_robust_(ex, limit, range);
}
static const char *cg_refuse_median_(const cg_ex_ *ex) {
    return cg_refuse_sorted_(ex, 1e-45f, "the median has no limit: fold_limit must be 0");
}
static const char *cg_refuse_trimmed_(const cg_ex_ *ex) {
    if (ex->transport.size < 3) return "a trimmed mean needs 3 ranks or more: the largest and the smallest value go";
    return cg_refuse_sorted_(ex, 0.5f, "fold_limit of a trimmed mean, the share cut at each end, must be below 0.5");
}
static const char *cg_refuse_clipped_(const cg_ex_ *ex) {
    return cg_refuse_robust_(ex, CG_FLT_MAX_,
        "fold_limit, the multiple of the median norm, must be finite, and not "
        "negative");
}

/* src/exchange/accumulate.h */
/* accumulate: sum = weight * grad + packets + weight * carry, by blocks, so that sum is written to memory once

   Offers   cg_accum_ranks_, cg_accum_open_ and cg_accum_packet_, then cg_accum_all_ or cg_accum_compress_
   Needs    ranks, packets, core's decode (by blocks) and producer
   Touches  ex->inputs.decoder, the sum, ex->mem.scratch and the packet written
   As a producer the sum is made block by block while it is compressed. Packets that cannot be decoded by blocks are
   added one after the other, in the same order. */

typedef struct cg_accum_ {
    const cg_ex_ *ex;
    float *sum; /* n floats */
    size_t n, packet_count;
    const float *grad, *carry; /* n floats each, or NULL */
    float grad_weight, carry_weight;
    int not_by_blocks; /* some packet cannot be decoded by blocks */
    cg_status status;  /* of opening the packets */
} cg_accum_;

/* No terms yet; grad and carry are set by the caller, grad before the first packet. */
static void cg_accum_open_(cg_accum_ *b, cg_ex_ *ex, float *sum, size_t n) {
    memset(b, 0, sizeof *b);
    b->ex = ex;
    b->sum = sum;
    b->n = n;
}
/* The next packet, times alpha. It has been verified and stays where it is; at most N packets. */
static void cg_accum_packet_(cg_accum_ *b, const uint8_t *packet, size_t len, float alpha) {
    const cg_extra side = cg_decode_extra_(b->ex);
    cg_decoder_ *d = &b->ex->inputs.decoder[b->packet_count];
    if (!b->ex->inputs.opened && b->status == CG_OK) b->status = cg_ex_open_(b->ex, d, &side, packet, len, b->n);
    if (b->status != CG_OK) return;
    if (!cg_decoder_by_blocks_(d, alpha, b->packet_count || b->grad ? 1.0f : 0.0f, b->sum)) b->not_by_blocks = 1;
    b->packet_count++;
}
/* ex->inputs of all ranks, each with its weight in the result; or what a robust fold makes of them, as one term. */
static void cg_accum_ranks_(cg_ex_ *ex, float *sum, size_t n, cg_accum_ *b) {
    cg_accum_open_(b, ex, sum, n);
    if (cg_fold_row_of_(ex->desc.fold)->combine) {
        b->status = cg_robust_fold_(ex, n);
        b->grad = ex->mem.rows;
        b->grad_weight = 1.0f;
        return;
    }
    for (size_t q = 0; q < cg_ranks_(ex); q++)
        cg_accum_packet_(b, (const uint8_t *)ex->inputs.packet[q], ex->inputs.len[q], cg_alpha_(ex, q));
}
static void cg_accum_dense_term_(const cg_accum_ *b, size_t first, size_t many, const float *v, float by, float beta) {
    if (v) cg_axpby_(cg_at_(v, first), many, by, beta, cg_at_mut_(b->sum, first));
}
/* A cg_producer_ function: values [first, first + many), one block. */
static double cg_accum_block_(const void *user, size_t first, size_t many, float *out) {
    const cg_accum_ *b = (const cg_accum_ *)user;
    (void)out; /* b->sum + first */
    cg_accum_dense_term_(b, first, many, b->grad, b->grad_weight, 0.0f);
    if (b->grad) cg_accum_dense_term_(b, first, many, b->carry, b->carry_weight, 1.0f);
    for (size_t i = 0; i < b->packet_count; i++) cg_decoder_add_block_(&b->ex->inputs.decoder[i], first / CG_BLOCK_);
    if (!b->grad) cg_accum_dense_term_(b, first, many, b->carry, b->carry_weight, 1.0f);
    return 0.0;
}
static cg_producer_ cg_accum_producer_(const cg_accum_ *b) {
    cg_producer_ producer = CG_ZERO;
    producer.make = cg_accum_block_;
    producer.user = b;
    producer.n = b->n;
    producer.step = CG_BLOCK_;
    return producer;
}
/* The whole sum, term by term. */
static cg_status cg_accum_whole_(const cg_accum_ *b) {
    const cg_extra side = cg_decode_extra_(b->ex);
    cg_status s = CG_OK;
    cg_accum_dense_term_(b, 0, b->n, b->grad, b->grad_weight, 0.0f);
    if (b->grad) cg_accum_dense_term_(b, 0, b->n, b->carry, b->carry_weight, 1.0f);
    for (size_t i = 0; i < b->packet_count && s == CG_OK; i++) {
        cg_decoder_ *d = &b->ex->inputs.decoder[i];
        s = cg_packet_decode_(d, &side, d->alpha, d->beta, b->sum, NULL, 1);
    }
    if (!b->grad) cg_accum_dense_term_(b, 0, b->n, b->carry, b->carry_weight, 1.0f);
    return s;
}
static cg_status cg_accum_all_(const cg_accum_ *b) {
    cg_producer_ producer = cg_accum_producer_(b);
    if (b->status != CG_OK) return b->status;
    if (b->not_by_blocks) return cg_accum_whole_(b);
    cg_producer_run_(&producer, b->sum);
    return CG_OK;
}
/* The sum as a packet; the sum itself is there afterwards, too. */
static cg_status cg_accum_compress_(const cg_accum_ *b, const cg_op *op, const cg_tag *tag, const cg_extra *side,
    uint8_t *out, size_t cap, size_t *len) {
    const cg_ex_ *ex = b->ex;
    cg_producer_ producer = cg_accum_producer_(b);
    cg_status s = b->status == CG_OK && b->not_by_blocks ? cg_accum_whole_(b) : b->status;
    return s == CG_OK ? cg_compress_checked_(op, NULL, tag, side, b->sum, b->not_by_blocks ? NULL : &producer, b->n,
                            out, cap, len, ex->mem.scratch, ex->mem.scratch_bytes)
                      : s;
}

/* src/exchange/allgather.h */
/* allgather: the route on which every rank gets all packets and adds them up itself

   Offers   cg_route_allgather_, cg_write_allgather_, cg_sum_check_saturated_
   Needs    coroutine, accumulate, lists, core's sparse and reduce
   Touches  ex->inputs, ex->reduced, ex->mem.inbox, ex->mem.contributors, ex->result or desc.model
   Sparse f32 packets are read side by side, so that the sum is put together in the L1 cache and written to memory once,
   or goes straight into the model. */

/* CG_E_NONFINITE if an f32 value of a sum is the largest float: sums of packets saturate there, and such a value
   divided by N is no mean. */
static cg_status cg_sum_check_saturated_(const uint8_t *sum, size_t len) {
    cg_info info;
    const cg_status s = cg_inspect(sum, len, &info);
    if (s != CG_OK || info.op.quantize.id) return s;
    return cg_floats_absmax_bits_le_(sum + CG_HEADER_BYTES, info.value_bytes / 4) >= CG_INF_BITS_ - 1 ? CG_E_NONFINITE
                                                                                                      : CG_OK;
}
/* counts[i] = how many of ex->inputs have the i-th index of the sum (ex->reduced), which has k. Indices ascend in
   all. */
CG_NOINLINE_ cg_status cg_count_contributors_(const cg_ex_ *ex, size_t k, uint32_t *counts) {
    const cg_extra side = cg_decode_extra_(ex);
    cg_sparse_reader_ sum, one;
    cg_info info;
    memset(counts, 0, 4 * k);
    for (size_t q = 0; q < cg_ranks_(ex); q++) {
        uint64_t sum_index, index = 0;
        cg_status s = cg_reader_open_(ex, &sum, NULL, ex->reduced.packet, ex->reduced.len, ex->n, &info);
        int more;
        if (s == CG_OK) s = cg_reader_open_(ex, &one, &side, ex->inputs.packet[q], ex->inputs.len[q], ex->n, &info);
        if (s != CG_OK) return s;
        more = cg_sparse_next_index_(&one, &index);
        for (size_t i = 0; more && i < k && cg_sparse_next_index_(&sum, &sum_index); i++)
            if (index == sum_index) {
                counts[i]++;
                more = cg_sparse_next_index_(&one, &index);
            }
    }
    return CG_OK;
}
/* reduced.packet = the sum of ex->inputs, each value divided by the number of ranks that sent one there. */
CG_NOINLINE_ cg_status cg_mean_of_contributors_(cg_ex_ *ex) {
    const uint32_t *counts = ex->mem.contributors;
    uint8_t *values = ex->reduced.packet + CG_HEADER_BYTES;
    cg_info sum;
    cg_status s = cg_reduce_(ex->inputs.packet, ex->inputs.len, cg_ranks_(ex), 0, ex->reduced.packet, ex->reduced.cap,
        &ex->reduced.len, ex->mem.scratch, ex->mem.scratch_bytes);
    if (s == CG_OK) s = cg_sum_check_saturated_(ex->reduced.packet, ex->reduced.len);
    if (s == CG_OK) s = cg_inspect(ex->reduced.packet, ex->reduced.len, &sum);
    if (s == CG_OK) s = cg_count_contributors_(ex, (size_t)sum.k, ex->mem.contributors);
    if (s != CG_OK) return s;
    for (size_t i = 0; i < (size_t)sum.k; i++)
        cg_put32_(values + 4 * i, cg_as_bits_(cg_as_float_(cg_get32_(values + 4 * i)) / (float)counts[i]));
    ex->reduced.len = cg_packet_seal_(&sum, ex->reduced.packet);
    return CG_OK;
}
/* Adds alpha times the pairs with indices in [base, end) to chunk, from where the reader stands; first: puts them
   there. touched: gets a bit for every index, or NULL; model, if touched is given, is prefetched where it will be
   stepped. */
CG_INLINE_ void cg_reader_add_(cg_sparse_reader_ *r, int first, float alpha, uint64_t base, uint64_t end, float *chunk,
    uint64_t *touched, const float *model) {
    for (;; r->window_next = r->window_n = 0) {
        size_t i = r->window_next;
        if (!r->window_n) {
            if (!cg_sparse_reader_fill_(r)) return;
            if (touched)
                for (size_t j = 0; j < r->window_n; j++) CG_PREFETCH_(cg_at_(model, (size_t)r->window[j]));
        }
        for (; i < r->window_n && r->window[i] < end; i++, r->values += 4) {
            const float v = cg_times_(alpha, cg_as_float_(cg_get32_(r->values)));
            const size_t j = (size_t)(r->window[i] - base);
            chunk[j] = first ? v : cg_plus_(chunk[j], v);
            if (touched) touched[j / 64] |= (uint64_t)1 << j % 64;
        }
        r->window_next = i;
        if (i < r->window_n) return;
    }
}
/* Readers of all ex->inputs. */
static cg_status cg_readers_open_(cg_ex_ *ex, size_t n) {
    cg_status s = CG_OK;
    for (size_t q = 0; q < cg_ranks_(ex) && s == CG_OK; q++) {
        cg_info info;
        if (ex->inputs.opened) cg_sparse_reader_open_(&ex->inputs.reader[q], &ex->inputs.decoder[q]);
        else s = cg_reader_open_(ex, &ex->inputs.reader[q], NULL, ex->inputs.packet[q], ex->inputs.len[q], n, &info);
    }
    return s;
}
/* y = the sum over ranks, each with its factor, in rank order. */
CG_NOINLINE_ cg_status cg_readers_sum_(cg_ex_ *ex, float *y, size_t n) {
    const int stream = n >= (size_t)1 << 22 && (uintptr_t)y % 16 == 0;
    const cg_status s = cg_readers_open_(ex, n);
    float chunk[2 * CG_CHUNK_];
    if (s != CG_OK) return s;
    memset(chunk, 0, sizeof chunk);
    for (size_t base = 0, many; base < n; base += many) {
        many = cg_min_(2 * CG_CHUNK_, n - base);
        for (size_t q = 0; q < cg_ranks_(ex); q++)
            cg_reader_add_(&ex->inputs.reader[q], q == 0, cg_alpha_(ex, q), base, base + many, chunk, NULL, NULL);
        cg_move_zero_(chunk, many, cg_at_mut_(y, base), stream, base + many == n);
    }
    return CG_OK;
}
/* The same sum as a step of desc.model, which changes only where some rank has sent a value; ex->result is not written.
   desc.model becomes NULL: the step is taken. */
CG_NOINLINE_ cg_status cg_readers_step_model_(cg_ex_ *ex) {
    const cg_status s = cg_readers_open_(ex, ex->n);
    float chunk[2 * CG_CHUNK_];
    uint64_t touched[2 * CG_CHUNK_ / 64];
    if (s != CG_OK) return s;
    memset(chunk, 0, sizeof chunk);
    memset(touched, 0, sizeof touched);
    for (size_t base = 0; base < ex->n; base += 2 * CG_CHUNK_) {
        for (size_t q = 0; q < cg_ranks_(ex); q++)
            cg_reader_add_(&ex->inputs.reader[q], q == 0, cg_alpha_(ex, q), base, base + 2 * CG_CHUNK_, chunk, touched,
                ex->desc.model);
        for (size_t w = 0; w < 2 * CG_CHUNK_ / 64; w++)
            for (; touched[w]; touched[w] &= touched[w] - 1) {
                const size_t j = 64 * w + cg_ctz_(touched[w]);
                cg_model_step_at_(&ex->desc, base + j, chunk[j]);
                chunk[j] = 0.0f;
            }
    }
    ex->desc.model = NULL;
    return CG_OK;
}
/* y = the weighted sum of ex->inputs, by whichever way is faster. */
static cg_status cg_inputs_sum_(cg_ex_ *ex, float *y, size_t n) {
    cg_accum_ b;
    if (ex->inputs.reader) return cg_readers_sum_(ex, y, n);
    cg_accum_ranks_(ex, y, n, &b);
    return cg_accum_all_(&b);
}
/* reduced.packet = the majority of ex->inputs. */
static cg_status cg_vote_of_inputs_(cg_ex_ *ex) {
    return cg_vote(
        ex->inputs.packet, ex->inputs.len, cg_ranks_(ex), ex->reduced.packet, ex->reduced.cap, &ex->reduced.len);
}
/* Does the fold make one packet of all, in reduced.packet? Over contributors only of a selection. */
static int cg_folds_to_packet_(const cg_ex_ *ex) {
    return cg_fold_row_of_(ex->desc.fold)->reduce &&
        (!cg_fold_has_(ex, CG_FOLD_NEEDS_PLACES_) || ex->desc.op.select.id);
}
static const char *cg_refuse_vote_(const cg_ex_ *ex) {
    if (!(ex->plan.traits & CG_IS_SIGN_) || ex->plan.traits & (CG_IS_SELECTION_ | CG_IS_PER_RANK_ | CG_IS_PRIVATE_))
        return "a vote is over cg_sign packets of values in the same places";
    if (!cg_route_has_(ex, CG_ROUTE_PACKETS_MEET_)) return "votes are counted by allgather, server or scatter";
    if (ex->desc.weight != 0.0f || ex->desc.back) return "a vote has no weights and no second operator";
    return NULL;
}
static const char *cg_refuse_contributors_(const cg_ex_ *ex) {
    if (!cg_route_has_(ex, CG_ROUTE_MEETS_EVERYWHERE_)) return "contributors are counted by allgather";
    if (ex->desc.weight != 0.0f) return "a mean over contributors has no weights";
    if (ex->plan.traits & CG_NEEDS_SUPPORT_) return "given indices: every rank contributes; take the mean";
    if (ex->plan.traits & CG_IS_PRIVATE_)
        return "private samples and rotations: ranks send other values, or mixtures of them; take the mean";
    if (ex->plan.traits & CG_IS_PER_RANK_)
        return "PermK: one rank contributes to every value; take the mean (scaled) or the sum (unscaled)";
    return NULL;
}
static void cg_plan_allgather_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    const uint64_t size = (uint64_t)ex->transport.size;
    ex->mem.inbox = cg_arena_take_(arena, cg_mul_sat_(size, ex->plan.packet_room));
    cg_robust_plan_(ex, arena);
    if (ex->plan.has_pairs && !cg_fold_has_(ex, CG_FOLD_IS_ROBUST_))
        ex->inputs.reader = (cg_sparse_reader_ *)(void *)cg_arena_take_(
            arena, cg_mul_sat_(size, sizeof(cg_sparse_reader_)));
    ex->reduced.cap = cg_folds_to_packet_(ex) ? ex->plan.packet_room : 0;
    if (cg_folds_to_packet_(ex) && cg_fold_has_(ex, CG_FOLD_NEEDS_PLACES_)) {
        ex->reduced.cap = (size_t)cg_sum_bound_(ex, ex->n, size);
        cg_max_update_(scratch, cg_sum_scratch_(&ex->desc.op, ex->n, size));
        ex->mem.contributors = (uint32_t *)(void *)cg_arena_take_(
            arena, cg_mul_sat_(4, cg_mul_sat_(size, ex->plan.max_selected)));
    }
    ex->reduced.packet = cg_arena_take_(arena, ex->reduced.cap);
}
static cg_status cg_route_allgather_(cg_ex_ *ex) {
    cg_status s;
    CG_CO_BEGIN_(ex)
    cg_own_failure_put_(ex);
    CG_CO_AWAIT_(ex, 1, cg_allgather_begin_(ex, ex->own.packets, ex->mem.sizes, ex->mem.inbox));
    cg_inputs_from_gather_(ex);
    for (int q = 0; q < ex->transport.size; q++) {
        const uint8_t *packet = (const uint8_t *)ex->inputs.packet[q];
        const cg_extra side = cg_decode_extra_(ex);
        cg_decoder_ *d = &ex->inputs.decoder[q];
        s = cg_ex_header_(ex, d, packet, ex->inputs.len[q]);
        /* a packet of nothing may be padded */
        if (s == CG_OK && cg_is_empty_packet_(ex, &d->info)) ex->inputs.len[q] = d->info.packet_bytes;
        if (q != ex->transport.rank)
            cg_accept_opened_(
                ex, d, s, packet, ex->inputs.len[q], ex->n, cg_stripe_tag_(ex, 0, 0), 0, &ex->desc.op, q, q);
        else if (s == CG_OK) s = cg_packet_open_(d, &side, packet, ex->inputs.len[q], 0);
        if (s != CG_OK && q == ex->transport.rank) cg_ex_fail_(ex, s, q, cg_status_str(s));
    }
    ex->inputs.opened = ex->status == CG_OK;
    if (ex->status != CG_OK || !cg_folds_to_packet_(ex)) return CG_OK;
    s = cg_fold_row_of_(ex->desc.fold)->reduce(ex);
    if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_write_allgather_(cg_ex_ *ex) {
    if (cg_folds_to_packet_(ex))
        return cg_ex_decode_(ex, ex->reduced.packet, ex->reduced.len, 1.0f, 0.0f, ex->result, ex->n);
    return ex->inputs.reader && ex->desc.model ? cg_readers_step_model_(ex) : cg_inputs_sum_(ex, ex->result, ex->n);
}

/* src/exchange/owner.h */
/* owner: the routes server and scatter, on which an owner adds packets and sends the sum back to everybody

   Offers   cg_route_server_, cg_route_scatter_, cg_plan_owner_, cg_accepts_server_, what they write (cg_write_*_),
            cg_reduced_tag_, cg_accept_stripes_, cg_write_stripes_, cg_write_reduced_, tables of numbers
            (cg_own_table_, cg_allgather_tables_begin_, cg_lengths_read_)
   Needs    memory, coroutine, notes, accumulate, allgather (cg_sum_check_saturated_), core's reduce
   Touches  ex->inputs, ex->reduced, ex->contrib, ex->mem.inbox, stripes and sum, desc.carry, ex->result
   The first leg takes packets to the owner: the leader (server), or of every stripe the rank of its number (scatter).
   The second takes the reduced packet back. It is exact (cg_reduce), a vote, or encoded by plan.back; what that loses
   stays in carry, or is taken out of what the owner says it has contributed. */

static void cg_plan_owner_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    const uint64_t reduced_room = cg_reduced_room_(ex), size = (uint64_t)ex->transport.size;
    const int striped = cg_route_has_(ex, CG_ROUTE_STRIPES_);
    const int is_owner = striped || ex->plan.root == ex->transport.rank || !ex->transport.sendrecv ||
        ex->desc.leader == CG_LEADER_BY_SCORE;
    ex->mem.inbox = cg_arena_take_(arena, is_owner ? cg_mul_sat_(size, ex->plan.packet_room) : 0);
    ex->reduced.packet = cg_arena_take_(arena, reduced_room);
    ex->mem.stripes = cg_arena_take_(arena, striped ? cg_mul_sat_(size, reduced_room) : 0);
    ex->reduced.cap = (size_t)reduced_room;
    if (!is_owner || cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_)) return;
    if (ex->plan.exact) {
        cg_sum_scratch_max_(ex, scratch);
        return;
    }
    ex->mem.sum = (float *)(void *)cg_arena_take_(arena, cg_mul_sat_(4, cg_stripe_max_n_(ex)));
    cg_robust_plan_(ex, arena);
    if (ex->desc.carry || cg_fold_has_(ex, CG_FOLD_IS_ROBUST_) ||
        (ex->plan.back_traits & CG_IS_F32_ && !ex->plan.back.select.id && !ex->plan.back.sample.id &&
            !ex->plan.back.transform.id))
        return;
    ex->contrib.packets = cg_arena_take_(arena,
        cg_add_sat_(
            cg_mul_sat_((uint64_t)ex->plan.stripes, ex->plan.packet_room), cg_dense_bound_(cg_stripe_max_n_(ex))));
}
/* contrib.packets = own.packets, but for this stripe, which is D(own packet) less the error of the second leg (mem.sum,
   which is overwritten) in terms of this rank's weight: as if this rank had sent so much less. */
static cg_status cg_contribution_less_error_(cg_ex_ *ex, int stripe) {
    const size_t n = cg_stripe_n_(ex, stripe), bytes_before = (size_t)ex->own.offset[stripe],
                 bytes_after = (size_t)(ex->own.offset[ex->plan.stripes] - ex->own.offset[stripe + 1]);
    const float sum_weight = (float)cg_divisor_(ex);
    const cg_tag tag = cg_stripe_tag_(ex, stripe, 0);
    const cg_op dense = cg_dense();
    size_t len;
    cg_status s;
    cg_axpby_(ex->mem.sum, n, -sum_weight / cg_weight_of_(ex, (size_t)ex->transport.rank), 0.0f, ex->mem.sum);
    s = cg_ex_decode_(ex, cg_own_packet_(ex, stripe), cg_own_packet_len_(ex, stripe), 1.0f, 1.0f, ex->mem.sum, n);
    memcpy(ex->contrib.packets, ex->own.packets, bytes_before);
    if (s == CG_OK)
        s = cg_ex_compress_(
            ex, &dense, &tag, NULL, ex->mem.sum, n, ex->contrib.packets + bytes_before, CG_HEADER_BYTES + 4 * n, &len);
    if (s != CG_OK) return s;
    memcpy(ex->contrib.packets + bytes_before + len, ex->own.packets + (size_t)ex->own.offset[stripe + 1], bytes_after);
    ex->report.used = ex->contrib.packets;
    ex->contrib.len = bytes_before + len + bytes_after;
    return CG_OK;
}
/* The tag that a reduced packet must have: exact sums and votes keep that of the packets they are made of, ... */
static cg_tag cg_reduced_tag_(const cg_ex_ *ex, int stripe) {
    return cg_stripe_tag_(
        ex, stripe, !ex->plan.exact && !cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_) && !cg_hops_reencode_(ex));
}
/* ... so that server and scatter mark them by another rank: N plus that of their maker. */
static int cg_reduced_rank_(const cg_ex_ *ex, int maker) {
    const int keeps_tag = ex->plan.exact || cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_);
    return maker + (keeps_tag && cg_route_has_(ex, CG_ROUTE_HAS_OWNER_) ? ex->transport.size : 0);
}
/* ex->reduced.packet = the fold of ex->inputs for this stripe, with desc.carry added where it is encoded again.
   mem.sum is then what encoding has lost, if carry or contrib.packets asks for it. Does nothing if ex has failed. */
static void cg_owner_reduce_(cg_ex_ *ex, int stripe) {
    const size_t n = cg_stripe_n_(ex, stripe);
    cg_tag tag = cg_stripe_tag_(ex, stripe, 1);
    const cg_extra side = cg_back_extra_(ex);
    cg_status s;
    if (ex->status != CG_OK) return;
    if (cg_fold_row_of_(ex->desc.fold)->reduce) s = cg_fold_row_of_(ex->desc.fold)->reduce(ex);
    else if (ex->plan.exact)
        s = cg_reduce_(ex->inputs.packet, ex->inputs.len, cg_ranks_(ex), ex->plan.max_level_sum, ex->reduced.packet,
            ex->reduced.cap, &ex->reduced.len, ex->mem.scratch, ex->mem.scratch_bytes);
    else {
        cg_accum_ b;
        cg_accum_ranks_(ex, ex->mem.sum, n, &b);
        b.carry = ex->desc.carry;
        b.carry_weight = 1.0f;
        s = cg_accum_compress_(&b, &ex->plan.back, &tag, &side, ex->reduced.packet, ex->reduced.cap, &ex->reduced.len);
        if (s == CG_OK && (ex->desc.carry || ex->contrib.packets))
            s = cg_ex_decode_(ex, ex->reduced.packet, ex->reduced.len, -1.0f, 1.0f, ex->mem.sum, n);
        /* now, while a failure can still be told to the others: the difference may be too large for a float */
        if (s == CG_OK && ex->contrib.packets) s = cg_contribution_less_error_(ex, stripe);
    }
    if (s == CG_OK && ex->plan.exact) s = cg_sum_check_saturated_(ex->reduced.packet, ex->reduced.len);
    if (s == CG_OK)
        cg_packet_rank_put_(ex->reduced.packet, ex->reduced.len, (uint32_t)cg_reduced_rank_(ex, ex->transport.rank));
    if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
}
/* Only once the exchange cannot fail any more. */
static void cg_owner_carry_update_(cg_ex_ *ex, int stripe) {
    if (!ex->plan.exact && !cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_) && ex->desc.carry)
        memcpy(ex->desc.carry, ex->mem.sum, 4 * cg_stripe_n_(ex, stripe));
}
static int cg_accepts_server_(const cg_ex_ *ex) { return !(ex->plan.traits & CG_NEEDS_SUPPORT_); }
static cg_status cg_route_server_(cg_ex_ *ex) {
    const int me = ex->transport.rank, root = ex->plan.root;
    const size_t inbox_stride = ex->plan.packet_room;
    CG_CO_BEGIN_(ex)
    cg_own_failure_put_(ex);
    if (!ex->transport.sendrecv) {
        CG_CO_AWAIT_(ex, 1, cg_allgather_begin_(ex, ex->own.packets, ex->mem.sizes, ex->mem.inbox));
        cg_inputs_from_gather_(ex);
    } else if (me != root) {
        CG_CO_AWAIT_(ex, 2, cg_sendrecv_begin_(ex, ex->own.packets, (size_t)ex->mem.sizes[me], root, NULL, 0, -1));
    } else {
        for (ex->co.i = 0; ex->co.i < ex->transport.size; ex->co.i++) {
            ex->inputs.packet[ex->co.i] = ex->co.i == root ? ex->own.packets
                                                           : ex->mem.inbox + (size_t)ex->co.i * inbox_stride;
            ex->inputs.len[ex->co.i] = (size_t)ex->mem.sizes[ex->co.i];
            if (ex->co.i != root)
                CG_CO_AWAIT_(ex, 3,
                    cg_sendrecv_begin_(ex, NULL, 0, -1, ex->mem.inbox + (size_t)ex->co.i * inbox_stride,
                        (size_t)ex->mem.sizes[ex->co.i], ex->co.i));
        }
    }
    if (me == root) {
        for (int q = 0; q < ex->transport.size; q++)
            if (q != me)
                cg_accept_(ex, (const uint8_t *)ex->inputs.packet[q], ex->inputs.len[q], ex->n,
                    cg_stripe_tag_(ex, 0, 0), 0, &ex->desc.op, q, q);
        cg_owner_reduce_(ex, 0);
    }
    CG_CO_BROADCAST_(ex, 4, cg_reduced_fixed_len_(ex, ex->n), root);
    if (me != root)
        cg_accept_(ex, ex->reduced.packet, ex->reduced.len, ex->n, cg_reduced_tag_(ex, 0), ex->plan.exact ? 0 : -1,
            NULL, cg_reduced_rank_(ex, root), root);
    return CG_OK;
    CG_CO_END_
}
/* The reduced packet into ex->result. */
static cg_status cg_write_reduced_(cg_ex_ *ex) {
    return cg_ex_decode_(ex, ex->reduced.packet, ex->reduced.len, ex->opening.result_factor, 0.0f, ex->result, ex->n);
}
static cg_status cg_write_server_(cg_ex_ *ex) {
    if (ex->transport.rank == ex->plan.root) cg_owner_carry_update_(ex, 0);
    return cg_write_reduced_(ex);
}
/* ex->inputs are reduced packets, one stripe from every rank: checks those of others; then decodes all into
   ex->result. */
static void cg_accept_stripes_(cg_ex_ *ex) {
    for (int q = 0; q < ex->transport.size; q++) {
        const int stripe = cg_stripe_of_rank_(ex, q);
        if (q != ex->transport.rank)
            cg_accept_(ex, (const uint8_t *)ex->inputs.packet[q], ex->inputs.len[q], cg_stripe_n_(ex, stripe),
                cg_reduced_tag_(ex, stripe), ex->plan.exact ? stripe : -1, NULL, cg_reduced_rank_(ex, q), q);
    }
}
static cg_status cg_write_stripes_(cg_ex_ *ex) {
    cg_status s = CG_OK;
    for (int q = 0; q < ex->transport.size && s == CG_OK; q++) {
        const int stripe = cg_stripe_of_rank_(ex, q);
        const size_t n = cg_stripe_n_(ex, stripe);
        if (n)
            s = cg_ex_decode_(ex, ex->inputs.packet[q], ex->inputs.len[q], ex->opening.result_factor, 0.0f,
                cg_at_mut_(ex->result, cg_stripe_start_(ex, stripe)), n);
    }
    return s;
}
/* This rank's table of N u64, with room for a note behind it; it stands behind those of all ranks in note.all. */
static uint8_t *cg_own_table_(const cg_ex_ *ex) {
    return ex->note.all + cg_ranks_(ex) * (8 * cg_ranks_(ex) + CG_NOTE_BYTES_);
}
static void cg_allgather_tables_begin_(cg_ex_ *ex, uint32_t round) {
    uint8_t *mine = cg_own_table_(ex);
    cg_note_put_(ex, mine, 8 * cg_ranks_(ex), 0, round);
    cg_allgather_equal_begin_(ex, mine, 8 * cg_ranks_(ex) + CG_NOTE_BYTES_, ex->note.all);
}
/* Tables of the lengths of the packets that every rank sends to every other have been gathered: ex->inputs.len = those
   of the packets that come to this rank. */
static void cg_lengths_read_(cg_ex_ *ex, uint64_t room) {
    const size_t ranks = cg_ranks_(ex);
    for (size_t q = 0; q < ranks; q++) {
        const uint8_t *row = cg_gathered_(ex, q);
        ex->inputs.len[q] = 0;
        if (!cg_note_get_(ex, row, 8 * ranks, CG_ROUND_LENGTHS_, (int)q)) continue;
        if (cg_get64_(row + 8 * ex->transport.rank) > room)
            cg_ex_fail_(ex, CG_E_CORRUPT, (int)q, "it announces a packet that is too long");
        else ex->inputs.len[q] = (size_t)cg_get64_(row + 8 * ex->transport.rank);
    }
}
static cg_status cg_route_scatter_(cg_ex_ *ex) {
    const int me = ex->transport.rank, size = ex->transport.size;
    const size_t inbox_stride = ex->plan.packet_room;
    int to, from;
    CG_CO_BEGIN_(ex)
    if (ex->plan.op_len_fixed) {
        cg_own_failure_put_(ex);
        for (int q = 0; q < size; q++)
            ex->inputs.len[q] = cg_bound_with(&ex->desc.op, ex->desc.side, cg_stripe_n_(ex, me));
    } else {
        for (int p = 0; p < size; p++) cg_put64_(cg_own_table_(ex) + 8 * p, cg_own_packet_len_(ex, p));
        CG_CO_AWAIT_(ex, 1, cg_allgather_tables_begin_(ex, CG_ROUND_LENGTHS_));
        cg_lengths_read_(ex, ex->plan.packet_room);
        CG_CO_VERDICT_(ex, 2, CG_ROUND_LENGTHS_);
    }
    ex->inputs.packet[me] = cg_own_packet_(ex, me);
    ex->inputs.len[me] = cg_own_packet_len_(ex, me);
    for (ex->co.i = 1; ex->co.i < size; ex->co.i++) {
        to = cg_wrap_(ex, me + ex->co.i);
        from = cg_wrap_(ex, me - ex->co.i);
        ex->inputs.packet[from] = ex->mem.inbox + (size_t)from * inbox_stride;
        CG_CO_AWAIT_(ex, 3,
            cg_sendrecv_begin_(ex, cg_own_packet_(ex, to), cg_own_packet_len_(ex, to), to,
                ex->mem.inbox + (size_t)from * inbox_stride, ex->inputs.len[from], from));
    }
    for (int q = 0; q < size; q++)
        if (q != me)
            cg_accept_(ex, (const uint8_t *)ex->inputs.packet[q], ex->inputs.len[q], cg_stripe_n_(ex, me),
                cg_stripe_tag_(ex, me, 0), me, &ex->desc.op, q, q);
    if (!cg_route_has_(ex, CG_ROUTE_ENDS_AT_OWNER_) || cg_fold_row_of_(ex->desc.fold)->reduce) cg_owner_reduce_(ex, me);
    if (cg_route_has_(ex, CG_ROUTE_ENDS_AT_OWNER_)) return CG_OK;
    CG_CO_ALLGATHER_(ex, 4, ex->plan.reduced_len_fixed, ex->mem.stripes);
    cg_inputs_from_gather_(ex);
    cg_accept_stripes_(ex);
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_write_scatter_(cg_ex_ *ex) {
    cg_owner_carry_update_(ex, ex->transport.rank);
    return cg_write_stripes_(ex);
}

/* src/exchange/legs.h */
/* legs: the two legs of scatter as routes of their own: every rank gets the fold of its stripe, or gives its stripe to
   all

   Offers   cg_plan_reduce_scatter_, cg_write_reduce_scatter_, cg_refuse_half_; cg_compress_mine_, cg_plan_all_gather_,
            cg_route_all_gather_, cg_write_all_gather_
   Needs    owner (whose coroutine is the first leg, too), coroutine, accumulate
   Touches  ex->inputs, ex->reduced, ex->mem.inbox, stripes and sum, desc.carry, ex->result or desc.mine, desc.model */

/* This rank's stripe: apart from x, or in it. */
static float *cg_mine_(const cg_ex_ *ex, float *x) {
    if (ex->desc.mine) return ex->desc.mine;
    return cg_stripe_n_(ex, ex->transport.rank) ? cg_at_mut_(x, cg_stripe_start_(ex, ex->transport.rank)) : x;
}
static void cg_plan_reduce_scatter_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    (void)scratch;
    ex->mem.inbox = cg_arena_take_(arena, cg_mul_sat_((uint64_t)ex->transport.size, ex->plan.packet_room));
    ex->reduced.cap = cg_fold_row_of_(ex->desc.fold)->reduce ? ex->plan.packet_room : 0;
    ex->reduced.packet = cg_arena_take_(arena, ex->reduced.cap);
}
static cg_status cg_write_reduce_scatter_(cg_ex_ *ex) {
    const int me = ex->transport.rank;
    const size_t n = cg_stripe_n_(ex, me);
    float *mine = cg_mine_(ex, ex->result);
    cg_accum_ sum;
    cg_status s;
    if (cg_fold_row_of_(ex->desc.fold)->reduce) {
        s = cg_ex_decode_(ex, ex->reduced.packet, ex->reduced.len, 1.0f, 0.0f, mine, n);
    } else {
        cg_accum_ranks_(ex, mine, n, &sum);
        s = cg_accum_all_(&sum);
    }
    if (s == CG_OK && ex->desc.model && n)
        cg_axpby_(mine, n, -ex->desc.rate, 1.0f, cg_at_mut_(ex->desc.model, cg_stripe_start_(ex, me)));
    ex->desc.model = NULL; /* its step is taken */
    return s;
}

/* reduced.packet = this rank's stripe, with carry added; mem.sum = what that has lost, if there is a carry. */
static void cg_compress_mine_(cg_ex_ *ex) {
    const int me = ex->transport.rank;
    const size_t n = cg_stripe_n_(ex, me);
    const cg_tag tag = cg_stripe_tag_(ex, me, 1);
    const float *v = cg_mine_(ex, ex->grad);
    cg_extra side = CG_ZERO;
    cg_report report;
    cg_status s;
    for (int p = 0; p <= ex->plan.stripes; p++) ex->own.offset[p] = 0; /* no packets but that one */
    if (ex->desc.side) side = *ex->desc.side;
    side.report = &report;
    if (ex->desc.carry && n) {
        memcpy(ex->mem.sum, v, 4 * n);
        cg_axpby_(ex->desc.carry, n, 1.0f, 1.0f, ex->mem.sum);
        v = ex->mem.sum;
    }
    s = cg_ex_compress_(ex, &ex->desc.op, &tag, &side, v, n, ex->reduced.packet, ex->reduced.cap, &ex->reduced.len);
    if (s != CG_OK) {
        cg_ex_fail_here_(ex, s, report.why, report.need,
            report.at == CG_NO_INDEX ? CG_NO_INDEX : cg_stripe_start_(ex, me) + report.at);
        return;
    }
    ex->report.used = ex->reduced.packet;
    ex->contrib.len = ex->reduced.len;
    if (ex->desc.carry) s = cg_ex_decode_(ex, ex->reduced.packet, ex->reduced.len, -1.0f, 1.0f, ex->mem.sum, n);
    if (s != CG_OK) cg_ex_fail_(ex, s, me, cg_status_str(s));
}
static void cg_plan_all_gather_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    const uint64_t room = cg_reduced_room_(ex), n = cg_stripe_n_(ex, ex->transport.rank);
    (void)scratch;
    ex->reduced.cap = (size_t)room;
    ex->reduced.packet = cg_arena_take_(arena, room);
    ex->mem.stripes = cg_arena_take_(arena, cg_mul_sat_((uint64_t)ex->transport.size, room));
    ex->mem.sum = (float *)(void *)cg_arena_take_(arena, ex->desc.carry ? cg_mul_sat_(4, n) : 0);
}
static cg_status cg_route_all_gather_(cg_ex_ *ex) {
    CG_CO_BEGIN_(ex)
    CG_CO_ALLGATHER_(ex, 1, ex->plan.reduced_len_fixed, ex->mem.stripes);
    cg_inputs_from_gather_(ex);
    cg_accept_stripes_(ex);
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_write_all_gather_(cg_ex_ *ex) {
    const size_t n = cg_stripe_n_(ex, ex->transport.rank);
    if (ex->desc.carry && n) memcpy(ex->desc.carry, ex->mem.sum, 4 * n);
    return cg_write_stripes_(ex);
}

/* src/exchange/partial.h */
/* partial: the routes ring and tree, on which a partial sum goes from rank to rank

   Offers   cg_route_ring_, cg_route_tree_, what they need of mem (cg_plan_*_) and what they write (cg_write_*_)
   Needs    memory, coroutine, accumulate, owner (stripes), allgather (cg_sum_check_saturated_), core's reduce
   Touches  ex->partial, ex->reduced, ex->inputs, ex->own, ex->mem.inbox, stripes and sum, desc.carry, ex->result
   An exact partial sum is a packet all the time, and cg_reduce adds to it. Otherwise a rank collects the packets that
   come, then decodes them, adds its own gradient and encodes the sum by desc.op, once per rank and stripe. Either way
   the tag of a partial sum has the rank that sends it, because cg_reduce keeps the tag of its first packet. */

/* hops: packets that a rank keeps until it encodes the sum again. */
static void cg_plan_partial_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch, uint64_t hops, uint64_t stripes) {
    const uint64_t reduced_room = cg_reduced_room_(ex);
    ex->mem.inbox = cg_arena_take_(arena, cg_mul_sat_(hops, reduced_room));
    ex->partial.buf[0] = cg_arena_take_(arena, reduced_room);
    ex->partial.buf[1] = cg_arena_take_(arena, reduced_room);
    ex->mem.stripes = cg_arena_take_(arena, cg_mul_sat_(stripes, reduced_room));
    if (ex->plan.exact) cg_sum_scratch_max_(ex, scratch);
    else ex->mem.sum = (float *)(void *)cg_arena_take_(arena, cg_mul_sat_(4, ex->n));
    ex->reduced.cap = (size_t)reduced_room;
}
static void cg_plan_ring_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    cg_plan_partial_(ex, arena, scratch, 1, (uint64_t)ex->transport.size);
}
/* a rank of a tree that encodes again keeps the packets of all its children until then */
static void cg_plan_tree_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    cg_plan_partial_(ex, arena, scratch, ex->plan.exact ? 1 : cg_add_sat_(cg_tree_depth_(ex), 1), 0);
}
/* A new partial sum of a stripe: this rank's packet, if exact. */
static void cg_partial_begin_(cg_ex_ *ex, int stripe) {
    ex->partial.received = 0;
    if (!ex->plan.exact || ex->status != CG_OK) return;
    ex->partial.packet = cg_own_packet_(ex, stripe);
    ex->partial.len = cg_own_packet_len_(ex, stripe);
}
/* partial.packet += in, or with in NULL only widens levels to hold the sum of all ranks; the result is in the other
   partial.buf. */
static void cg_partial_reduce_(cg_ex_ *ex, const uint8_t *in, size_t in_len) {
    const void *both[2];
    size_t lens[2];
    uint8_t *out = ex->partial.buf[ex->partial.flip ^= 1];
    cg_status s;
    both[0] = ex->partial.packet;
    both[1] = in;
    lens[0] = ex->partial.len;
    lens[1] = in_len;
    s = cg_reduce_(both, lens, in ? 2 : 1, ex->plan.max_level_sum, out, ex->reduced.cap, &ex->partial.len,
        ex->mem.scratch, ex->mem.scratch_bytes);
    ex->partial.packet = out;
    if (s == CG_OK) s = cg_sum_check_saturated_(out, ex->partial.len);
    if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
}
/* Where the next packet is to arrive, reduced.cap bytes. */
static uint8_t *cg_partial_inbox_(const cg_ex_ *ex) {
    return ex->mem.inbox + (ex->plan.exact ? 0 : (size_t)ex->partial.received * ex->reduced.cap);
}
/* Adds the packet that has just come to cg_partial_inbox_, or if not exact keeps it for cg_partial_encode_. */
static void cg_partial_add_(cg_ex_ *ex) {
    if (ex->status != CG_OK) return;
    if (ex->plan.exact) {
        cg_partial_reduce_(ex, ex->mem.inbox, ex->hop.in_len);
        return;
    }
    ex->inputs.packet[ex->partial.received] = cg_partial_inbox_(ex);
    ex->inputs.len[ex->partial.received++] = ex->hop.in_len;
}
/* partial.packet becomes the packet to send on. Not exact: the stripe of mem.sum becomes the error of encoding it. */
static void cg_partial_encode_(cg_ex_ *ex, int stripe) {
    const size_t start = cg_stripe_start_(ex, stripe), n = cg_stripe_n_(ex, stripe);
    const cg_tag tag = cg_stripe_tag_(ex, stripe, 0);
    cg_extra side = CG_ZERO;
    cg_accum_ b;
    uint8_t *out;
    cg_status s;
    if (ex->status != CG_OK) return;
    if (ex->plan.exact) {
        /* the first rank of a stripe sends levels that are wide enough for the whole sum */
        if (ex->plan.max_level_sum && ex->partial.packet == cg_own_packet_(ex, stripe)) cg_partial_reduce_(ex, NULL, 0);
        return;
    }
    cg_accum_open_(&b, ex, ex->mem.sum + start, n);
    b.grad = cg_at_(ex->grad, start);
    b.grad_weight = cg_weight_of_(ex, (size_t)ex->transport.rank);
    b.carry = ex->desc.carry ? cg_at_(ex->desc.carry, start) : NULL;
    b.carry_weight = (float)cg_divisor_(ex);
    for (int i = 0; i < ex->partial.received; i++)
        cg_accum_packet_(&b, (const uint8_t *)ex->inputs.packet[i], ex->inputs.len[i], 1.0f);
    if (ex->desc.side) side = *ex->desc.side;
    if (side.aux) side.aux = cg_at_(side.aux, start);
    out = ex->partial.buf[ex->partial.flip ^= 1];
    s = cg_accum_compress_(&b, &ex->desc.op, &tag, &side, out, ex->reduced.cap, &ex->partial.len);
    if (s == CG_OK) s = cg_ex_decode_(ex, out, ex->partial.len, -1.0f, 1.0f, ex->mem.sum + start, n);
    ex->partial.packet = out;
    if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
}
/* Inf to the largest float: dividing by weights may overflow, and after the last message no failure can be told. */
static void cg_clamp_(float *v, size_t n) {
    if (cg_absmax_bits_(v, n) < CG_INF_BITS_) return;
    for (size_t i = 0; i < n; i++) cg_store_(v, i, cg_saturate_(cg_load_(v, i)));
}
/* Not exact: own.packets = the gradient, stripe by stripe, less the error of encoding (mem.sum, which is
   overwritten); with a carry, that takes the error, and own.packets is the gradient. */
static cg_status cg_contribution_less_hop_error_(cg_ex_ *ex) {
    const float weight = cg_weight_of_(ex, (size_t)ex->transport.rank);
    const cg_op dense = cg_dense();
    uint64_t packet_offset = 0;
    cg_status s = CG_OK;
    for (int p = 0; p < ex->plan.stripes && !ex->plan.exact && s == CG_OK; p++) {
        const size_t start = cg_stripe_start_(ex, p), n = cg_stripe_n_(ex, p);
        const cg_tag tag = cg_stripe_tag_(ex, p, 0);
        float *error = ex->mem.sum + start;
        size_t len;
        if (ex->desc.carry) {
            cg_axpby_(error, n, (float)(1.0 / cg_divisor_(ex)), 0.0f, cg_at_mut_(ex->desc.carry, start));
            cg_clamp_(cg_at_mut_(ex->desc.carry, start), n);
            cg_axpby_(cg_at_(ex->grad, start), n, 1.0f, 0.0f, error);
        } else {
            cg_axpby_(cg_at_(ex->grad, start), n, 1.0f, (float)(-1.0 / (double)weight), error);
            cg_clamp_(error, n);
        }
        s = cg_ex_compress_(
            ex, &dense, &tag, NULL, error, n, ex->own.packets + (size_t)packet_offset, CG_HEADER_BYTES + 4 * n, &len);
        packet_offset += len;
        ex->contrib.len = (size_t)packet_offset;
    }
    return s;
}
static cg_status cg_route_ring_(cg_ex_ *ex) {
    const int me = ex->transport.rank, size = ex->transport.size, last = cg_wrap_(ex, me + 1);
    int stripe;
    CG_CO_BEGIN_(ex)
    cg_partial_begin_(ex, me);
    cg_partial_encode_(ex, me);
    for (ex->co.i = 1; ex->co.i < size; ex->co.i++) {
        CG_CO_HOP_(ex, 1, ex->plan.reduced_len_fixed, ex->partial.packet,
            ex->plan.reduced_len_fixed ? cg_reduced_fixed_len_(ex, cg_stripe_n_(ex, cg_wrap_(ex, me - ex->co.i + 1)))
                                       : ex->partial.len,
            last, ex->mem.inbox, cg_reduced_fixed_len_(ex, cg_stripe_n_(ex, cg_wrap_(ex, me - ex->co.i))),
            ex->reduced.cap, cg_wrap_(ex, me - 1));
        stripe = cg_wrap_(ex, me - ex->co.i);
        cg_accept_(ex, ex->mem.inbox, ex->hop.in_len, cg_stripe_n_(ex, stripe), cg_stripe_tag_(ex, stripe, 0), stripe,
            NULL, ex->hop.from, ex->hop.from);
        cg_partial_begin_(ex, stripe);
        cg_partial_add_(ex);
        cg_partial_encode_(ex, stripe);
    }
    ex->reduced.packet = ex->status == CG_OK ? (uint8_t *)(uintptr_t)ex->partial.packet : ex->partial.buf[0];
    ex->reduced.len = ex->partial.len;
    CG_CO_ALLGATHER_(ex, 2, ex->plan.reduced_len_fixed, ex->mem.stripes);
    cg_inputs_from_gather_(ex);
    cg_accept_stripes_(ex);
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_write_ring_(cg_ex_ *ex) {
    const cg_status s = cg_contribution_less_hop_error_(ex);
    return s == CG_OK ? cg_write_stripes_(ex) : s;
}
static cg_status cg_route_tree_(cg_ex_ *ex) {
    const int me = ex->transport.rank, size = ex->transport.size;
    CG_CO_BEGIN_(ex)
    cg_partial_begin_(ex, 0);
    for (ex->co.i = 1; ex->co.i < size && !(me & ex->co.i); ex->co.i <<= 1) {
        if (me + ex->co.i >= size) continue;
        CG_CO_HOP_(ex, 1, ex->plan.reduced_len_fixed, NULL, 0, -1, cg_partial_inbox_(ex),
            cg_reduced_fixed_len_(ex, ex->n), ex->reduced.cap, me + ex->co.i);
        cg_accept_(ex, cg_partial_inbox_(ex), ex->hop.in_len, ex->n, cg_stripe_tag_(ex, 0, 0), 0, NULL, ex->hop.from,
            ex->hop.from);
        cg_partial_add_(ex);
    }
    cg_partial_encode_(ex, 0);
    if (me)
        CG_CO_HOP_(ex, 2, ex->plan.reduced_len_fixed, ex->partial.packet,
            ex->plan.reduced_len_fixed ? cg_reduced_fixed_len_(ex, ex->n) : ex->partial.len, me - ex->co.i, NULL, 0, 0,
            -1);
    ex->reduced.packet = me   ? ex->mem.inbox
        : ex->status == CG_OK ? (uint8_t *)(uintptr_t)ex->partial.packet
                              : ex->partial.buf[0];
    ex->reduced.len = ex->partial.len;
    CG_CO_BROADCAST_(ex, 3, cg_reduced_fixed_len_(ex, ex->n), 0);
    if (me) cg_accept_(ex, ex->reduced.packet, ex->reduced.len, ex->n, cg_stripe_tag_(ex, 0, 0), 0, NULL, 0, 0);
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_write_tree_(cg_ex_ *ex) {
    const cg_status s = cg_contribution_less_hop_error_(ex);
    return s == CG_OK ? cg_write_reduced_(ex) : s;
}

/* src/exchange/merge.h */
/* merge: gTop-k, a tree on which the k largest values of every sum of two packets survive

   Offers   cg_route_merge_, cg_plan_merge_; cg_write_reduced_ writes its result
   Needs    coroutine, lists, allgather (cg_sum_check_saturated_)
   Touches  ex->partial, ex->reduced, ex->dropped, ex->contrib, ex->mem.inbox and lists, ex->result
   What a rank cuts off a sum it takes out of its own contribution, so that error feedback keeps it. */

/* partial.packet = the plan.k largest values of it plus the packet in mem.inbox, in reduced.packet; the rest is added
   to ex->dropped. The first of equal magnitudes survive. */
CG_NOINLINE_ cg_status cg_merge_topk_(cg_ex_ *ex) {
    const size_t sum_cap = (size_t)cg_sparse_packet_bound_(ex->n, ex->mem.list_cap);
    cg_sparse_reader_ r;
    cg_info info;
    cg_list_ values;
    size_t kth = ex->plan.k, len, dropped_len, k;
    uint64_t index;
    uint32_t threshold_bits;
    float value;
    cg_status s = cg_reduce_two_(
        ex, ex->partial.packet, ex->partial.len, ex->mem.inbox, ex->hop.in_len, ex->partial.buf[0], sum_cap, &len);
    if (s == CG_OK) s = cg_sum_check_saturated_(ex->partial.buf[0], len);
    if (s == CG_OK) s = cg_reader_open_(ex, &r, NULL, ex->partial.buf[0], len, ex->n, &info);
    if (s != CG_OK) return s;
    k = (size_t)info.k;
    if (k > ex->mem.list_cap) return CG_E_CORRUPT;
    if (k <= ex->plan.k) {
        memcpy(ex->reduced.packet, ex->partial.buf[0], len);
        ex->partial.packet = ex->reduced.packet;
        ex->partial.len = len;
        return CG_OK;
    }
    cg_ex_list_(ex, 0, ex->n, &values);
    while (cg_sparse_next_(&r, &index, &value)) cg_list_append_(&values, index, value);
    threshold_bits = cg_list_kth_(&values, &kth);
    s = cg_threshold_split_(ex, ex->partial.buf[0], len, ex->n, threshold_bits, kth, cg_stripe_tag_(ex, 0, 0),
        ex->reduced.packet, &ex->partial.len, ex->dropped.any ? ex->partial.buf[1] : ex->dropped.buf[0], sum_cap, 0,
        &dropped_len);
    ex->partial.packet = ex->reduced.packet;
    if (s != CG_OK) return s;
    if (ex->dropped.any)
        s = cg_reduce_two_(ex, ex->dropped.buf[ex->dropped.flip], ex->dropped.len, ex->partial.buf[1], dropped_len,
            ex->dropped.buf[ex->dropped.flip ^ 1], ex->dropped.cap, &ex->dropped.len);
    else ex->dropped.len = dropped_len;
    ex->dropped.flip = ex->dropped.any ? ex->dropped.flip ^ 1 : 0;
    ex->dropped.any = 1;
    return s;
}
static void cg_plan_merge_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    cg_plan_lists_(ex, arena, 2, 1, cg_tree_depth_(ex));
    cg_plan_cuts_(ex, arena, scratch, 2, cg_tree_depth_(ex), 2);
}
static cg_status cg_route_merge_(cg_ex_ *ex) {
    const int me = ex->transport.rank, size = ex->transport.size;
    cg_status s;
    CG_CO_BEGIN_(ex)
    ex->partial.packet = ex->own.packets;
    ex->partial.len = (size_t)ex->own.offset[1];
    for (ex->co.i = 1; ex->co.i < size && !(me & ex->co.i); ex->co.i <<= 1) {
        if (me + ex->co.i >= size) continue;
        CG_CO_HOP_(ex, 1, 0, NULL, 0, -1, ex->mem.inbox, 0, ex->reduced.cap, me + ex->co.i);
        cg_accept_(
            ex, ex->mem.inbox, ex->hop.in_len, ex->n, cg_stripe_tag_(ex, 0, 0), 0, NULL, ex->hop.from, ex->hop.from);
        if (ex->status == CG_OK) {
            s = cg_merge_topk_(ex);
            if (s != CG_OK) cg_ex_fail_(ex, s, me, cg_status_str(s));
        }
    }
    if (me) CG_CO_HOP_(ex, 2, 0, ex->partial.packet, ex->partial.len, me - ex->co.i, NULL, 0, 0, -1);
    if (!me && ex->partial.packet == ex->own.packets) memcpy(ex->reduced.packet, ex->own.packets, ex->partial.len);
    ex->reduced.len = ex->partial.len;
    CG_CO_BROADCAST_(ex, 3, 0, 0);
    if (me) cg_accept_(ex, ex->reduced.packet, ex->reduced.len, ex->n, cg_stripe_tag_(ex, 0, 0), 0, NULL, 0, 0);
    cg_contribution_less_dropped_(ex);
    return CG_OK;
    CG_CO_END_
}

/* src/exchange/region.h */
/* region: Ok-Topk, on which every rank sums a region of the vector and all together keep the k largest values

   Offers   cg_route_region_, cg_plan_region_, cg_write_region_
   Needs    coroutine, notes, lists, owner (tables), allgather (cg_sum_check_saturated_), core's reduce
   Touches  ex->region, ex->partial, ex->reduced, ex->dropped, ex->contrib, ex->note, ex->inputs, ex->mem.inbox and
            lists, ex->result
   Regions have about as many selected indices each: their bounds are the means over ranks of where each rank would put
   them. The owner of a region adds up the packets of it. The threshold is then found byte by byte, from histograms of
   all ranks; values equal to it survive in the order of regions, as many as there is room for. */

static void cg_plan_region_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    const uint64_t size = (uint64_t)ex->transport.size;
    cg_plan_lists_(ex, arena, size, size, 1);
    cg_plan_cuts_(ex, arena, scratch, size, 1, 1);
    ex->region.bounds = (uint64_t *)(void *)cg_arena_take_(arena, 8 * (size + 1));
    ex->region.send_offset = (uint64_t *)(void *)cg_arena_take_(arena, 8 * size);
    ex->region.ties = (uint64_t *)(void *)cg_arena_take_(arena, 8 * size);
    /* 256 counts of 4 bytes and a note from every rank */
    ex->region.histograms = cg_arena_take_(arena, cg_mul_sat_(size, CG_COUNT_BYTES_ + CG_NOTE_BYTES_));
}
/* out: N numbers of 8 bytes, where this rank would let every region begin so that each has as many of its indices. */
CG_NOINLINE_ cg_status cg_region_propose_(cg_ex_ *ex, uint8_t *out) {
    const size_t size = cg_ranks_(ex);
    cg_sparse_reader_ r;
    cg_info info;
    uint64_t index;
    size_t region = 1, i = 0;
    cg_status s = cg_reader_open_(ex, &r, NULL, ex->own.packets, (size_t)ex->own.offset[1], ex->n, &info);
    if (s != CG_OK) return s;
    for (; region < size && cg_sparse_next_index_(&r, &index); i++)
        while (region < size && i * size >= region * (size_t)info.k) cg_put64_(out + 8 * region++, index);
    while (region < size) cg_put64_(out + 8 * region++, ex->n);
    cg_put64_(out, 0);
    return CG_OK;
}
/* region.bounds from the proposals of the last allgather: means, rounded down, and summed without overflow. */
static void cg_region_bounds_(cg_ex_ *ex) {
    const size_t size = cg_ranks_(ex);
    for (size_t q = 0; q < size; q++) cg_note_get_(ex, cg_gathered_(ex, q), 8 * size, CG_ROUND_BOUNDS_, (int)q);
    for (size_t j = 0; ex->status == CG_OK && j < size; j++) {
        uint64_t quotients = 0, remainders = 0, before = j ? ex->region.bounds[j - 1] : 0;
        for (size_t q = 0; q < size; q++) {
            const uint64_t at = cg_get64_(cg_gathered_(ex, q) + 8 * j);
            if (at > ex->n) {
                cg_ex_fail_(ex, CG_E_CORRUPT, (int)q, "it proposes a region beyond the vector");
                return;
            }
            quotients += at / size;
            remainders += at % size;
        }
        ex->region.bounds[j] = quotients + remainders / size;
        if (ex->region.bounds[j] < before) {
            cg_ex_fail_(ex, CG_E_CORRUPT, -1, "regions do not ascend");
            return;
        }
    }
    ex->region.bounds[0] = 0;
    ex->region.bounds[size] = ex->n;
}
static size_t cg_region_n_(const cg_ex_ *ex, int q) {
    return (size_t)(ex->region.bounds[q + 1] - ex->region.bounds[q]);
}
/* own.packets cut by region into packets at out (dropped.cap bytes), one after the other; their lengths go to
   cg_own_table_. */
CG_NOINLINE_ cg_status cg_region_split_(cg_ex_ *ex, uint8_t *out) {
    cg_sparse_reader_ r;
    cg_list_ list;
    cg_info info;
    uint64_t index = 0, at = 0;
    float value = 0.0f;
    int more;
    cg_status s = cg_reader_open_(ex, &r, NULL, ex->own.packets, cg_own_packet_len_(ex, 0), ex->n, &info);
    if (s != CG_OK) return s;
    more = cg_sparse_next_(&r, &index, &value);
    for (int q = 0; q < ex->transport.size; q++) {
        const size_t n = cg_region_n_(ex, q);
        const cg_tag tag = cg_stripe_tag_(ex, q, 1);
        size_t len;
        cg_ex_list_(ex, 0, n, &list);
        for (; more && index < ex->region.bounds[q + 1]; more = cg_sparse_next_(&r, &index, &value))
            cg_list_append_(&list, index - ex->region.bounds[q], value);
        s = cg_sparse_packet_put_(0.0f, &tag, n, &list, out + (size_t)at, ex->dropped.cap - (size_t)at, &len);
        if (s != CG_OK) return s;
        cg_put64_(cg_own_table_(ex) + 8 * q, len);
        at += len;
    }
    return CG_OK;
}
/* out: 256 counts of 4 bytes. Of the values of this rank's region whose magnitude has the threshold's bytes above
   `byte` (3 is the highest), how many have which byte there. */
CG_NOINLINE_ cg_status cg_region_histogram_(cg_ex_ *ex, int byte, uint8_t *out) {
    uint32_t bins[256] = { 0 };
    cg_sparse_reader_ r;
    cg_info info;
    uint64_t index;
    float value;
    cg_status s = cg_reader_open_(
        ex, &r, NULL, ex->partial.buf[0], ex->partial.len, cg_region_n_(ex, ex->transport.rank), &info);
    if (s != CG_OK) return s;
    while (cg_sparse_next_(&r, &index, &value)) {
        const uint32_t magnitude_bits = cg_as_bits_(value) & CG_ABS_MASK_;
        if (byte == 3 || magnitude_bits >> 8 * (byte + 1) == ex->region.threshold_bits >> 8 * (byte + 1))
            bins[magnitude_bits >> 8 * byte & 255]++;
    }
    for (int b = 0; b < 256; b++) cg_put32_(out + 4 * b, bins[b]);
    return CG_OK;
}
/* From the histograms of the last allgather. */
static uint64_t cg_region_bin_count_(const cg_ex_ *ex, size_t q, int bin) {
    return cg_get32_(cg_gathered_(ex, q) + 4 * bin);
}
/* The next byte of the threshold: the largest such that fewer than region.remaining values are above it. remaining
   becomes how many may survive among those that share it; after the last byte ties[q] is that number in region q. */
static void cg_region_radix_step_(cg_ex_ *ex, int byte) {
    int bin = 255;
    for (; bin > 0; bin--) {
        uint64_t all = 0;
        for (size_t q = 0; q < cg_ranks_(ex); q++) all += cg_region_bin_count_(ex, q, bin);
        if (all >= ex->region.remaining) break;
        ex->region.remaining -= all;
    }
    ex->region.threshold_bits |= (uint32_t)bin << 8 * byte;
    for (size_t q = 0; byte == 0 && q < cg_ranks_(ex); q++) {
        const uint64_t equal = cg_region_bin_count_(ex, q, bin);
        ex->region.ties[q] = equal < ex->region.remaining ? equal : ex->region.remaining;
        ex->region.remaining -= ex->region.ties[q];
    }
}
/* partial.buf[0] = the sum of ex->inputs, packets of this rank's region. */
static void cg_region_reduce_(cg_ex_ *ex) {
    const int me = ex->transport.rank;
    cg_status s;
    for (int q = 0; q < ex->transport.size; q++)
        if (q != me)
            cg_accept_(ex, (const uint8_t *)ex->inputs.packet[q], ex->inputs.len[q], cg_region_n_(ex, me),
                cg_stripe_tag_(ex, me, 1), -1, NULL, q, q);
    if (ex->status != CG_OK) return;
    s = cg_reduce_(ex->inputs.packet, ex->inputs.len, cg_ranks_(ex), 0, ex->partial.buf[0],
        (size_t)cg_sparse_packet_bound_(ex->n, ex->mem.list_cap), &ex->partial.len, ex->mem.scratch,
        ex->mem.scratch_bytes);
    if (s == CG_OK) s = cg_sum_check_saturated_(ex->partial.buf[0], ex->partial.len);
    if (s != CG_OK) cg_ex_fail_(ex, s, me, cg_status_str(s));
}
/* The next byte of the threshold, from the histograms of the last allgather, if all are whole. */
static void cg_region_counts_read_(cg_ex_ *ex, int byte) {
    for (int q = 0; q < ex->transport.size; q++)
        cg_note_get_(ex, cg_gathered_(ex, (size_t)q), CG_COUNT_BYTES_, CG_ROUND_COUNTS_ + (uint32_t)byte, q);
    if (ex->status == CG_OK) cg_region_radix_step_(ex, byte);
}
/* reduced.packet = what survives of the sum of this rank's region; the rest becomes ex->dropped. */
static cg_status cg_region_cut_(cg_ex_ *ex) {
    const int me = ex->transport.rank;
    ex->dropped.any = 1;
    ex->dropped.flip = 0;
    return cg_threshold_split_(ex, ex->partial.buf[0], ex->partial.len, cg_region_n_(ex, me), ex->region.threshold_bits,
        ex->region.ties[me], cg_stripe_tag_(ex, me, 2), ex->reduced.packet, &ex->reduced.len, ex->dropped.buf[0],
        (size_t)cg_sparse_packet_bound_(ex->n, ex->mem.list_cap), (size_t)ex->region.bounds[me], &ex->dropped.len);
}
/* A step of this rank's own, unless it has failed before. */
#define CG_REGION_TRY_(ex, step)                                                                              \
  do {                                                                                                        \
    const cg_status step_status = (ex)->status == CG_OK ? (step) : CG_OK;                                     \
    if (step_status != CG_OK) cg_ex_fail_(ex, step_status, (ex)->transport.rank, cg_status_str(step_status)); \
  } while (0)
static cg_status cg_route_region_(cg_ex_ *ex) {
    const int me = ex->transport.rank, size = ex->transport.size;
    const size_t inbox_stride = ex->reduced.cap;
    uint8_t *own_table = cg_own_table_(ex);
    int to, from;
    CG_CO_BEGIN_(ex)
    CG_REGION_TRY_(ex, cg_region_propose_(ex, own_table));
    CG_CO_AWAIT_(ex, 1, cg_allgather_tables_begin_(ex, CG_ROUND_BOUNDS_));
    cg_region_bounds_(ex);
    CG_REGION_TRY_(ex, cg_region_split_(ex, ex->dropped.buf[0]));
    CG_CO_AWAIT_(ex, 2, cg_allgather_tables_begin_(ex, CG_ROUND_LENGTHS_));
    cg_lengths_read_(ex, inbox_stride);
    CG_CO_VERDICT_(ex, 3, CG_ROUND_LENGTHS_);
    ex->region.send_offset[0] = 0;
    for (int q = 1; q < size; q++)
        ex->region.send_offset[q] = ex->region.send_offset[q - 1] + cg_get64_(own_table + 8 * (q - 1));
    for (ex->co.i = 0; ex->co.i < size; ex->co.i++) {
        to = cg_wrap_(ex, me + ex->co.i);
        from = cg_wrap_(ex, me - ex->co.i);
        ex->inputs.packet[from] = ex->co.i ? ex->mem.inbox + (size_t)from * inbox_stride
                                           : ex->dropped.buf[0] + (size_t)ex->region.send_offset[me];
        if (ex->co.i)
            CG_CO_AWAIT_(ex, 4,
                cg_sendrecv_begin_(ex, ex->dropped.buf[0] + (size_t)ex->region.send_offset[to],
                    (size_t)cg_get64_(own_table + 8 * to), to, ex->mem.inbox + (size_t)from * inbox_stride,
                    ex->inputs.len[from], from));
    }
    cg_region_reduce_(ex);
    ex->region.threshold_bits = 0;
    ex->region.remaining = ex->plan.k;
    for (ex->co.i = 3; ex->co.i >= 0; ex->co.i--) {
        CG_REGION_TRY_(ex, cg_region_histogram_(ex, ex->co.i, ex->reduced.packet));
        cg_note_put_(ex, ex->reduced.packet, CG_COUNT_BYTES_, 0, CG_ROUND_COUNTS_ + (uint32_t)ex->co.i);
        CG_CO_AWAIT_(ex, 5,
            cg_allgather_equal_begin_(ex, ex->reduced.packet, CG_COUNT_BYTES_ + CG_NOTE_BYTES_, ex->region.histograms));
        cg_region_counts_read_(ex, ex->co.i);
    }
    CG_REGION_TRY_(ex, cg_region_cut_(ex));
    /* inbox has room for reduced.cap bytes from every rank, the most that a preamble may announce */
    CG_CO_ALLGATHER_(ex, 6, 0, ex->mem.inbox);
    cg_inputs_from_gather_(ex);
    for (int q = 0; q < size; q++)
        if (q != me)
            cg_accept_(ex, (const uint8_t *)ex->inputs.packet[q], ex->inputs.len[q], cg_region_n_(ex, q),
                cg_stripe_tag_(ex, q, 2), -1, NULL, q, q);
    cg_contribution_less_dropped_(ex);
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_write_region_(cg_ex_ *ex) {
    cg_status s = CG_OK;
    for (int q = 0; q < ex->transport.size && s == CG_OK; q++)
        s = cg_ex_decode_(ex, ex->inputs.packet[q], ex->inputs.len[q], ex->opening.result_factor, 0.0f,
            cg_at_mut_(ex->result, (size_t)ex->region.bounds[q]), cg_region_n_(ex, q));
    return s;
}

/* src/exchange/direct.h */
/* direct: dense vectors that an allreduce sums where they stand, on the route linear

   Offers   cg_direct_start_, _begin_, _end_, _write_, _restore_ and _used_; cg_sum_check_; references
   Needs    packets, core's cg_scale_checked_
   Touches  ex->direct, ex->own, ex->result, ex->grad; ex->status
   Passes over memory count here. One copies x, checks it, and multiplies it by a weight if there is one; the sum is
   made in place, in into or in x; one checks the sum and divides it. Where x is overwritten the copy is there to put it
   back after an error, and is what report.used stands for. */

/* Fails if a sum with this largest magnitude has NaN or Inf. */
static void cg_sum_check_(cg_ex_ *ex, uint32_t absmax_bits) {
    if (absmax_bits > CG_INF_BITS_)
        cg_ex_fail_(ex, CG_E_PEER, -1, "a rank has failed and sent NaN in place of its values");
    else if (absmax_bits == CG_INF_BITS_)
        cg_ex_fail_(ex, CG_E_NONFINITE, -1, "the sum over ranks is too large for a float: lower the loss scale");
}
static int cg_makes_packet_(const cg_ex_ *ex) {
    return (ex->desc.flags & ((uint32_t)CG_FEEDS_BACK | (uint32_t)CG_MAKES_PACKET_)) != 0;
}
/* The flag counts only where x itself receives the result. */
static int cg_is_in_place_(const cg_ex_ *ex) {
    return (ex->desc.flags & CG_IN_PLACE) && !cg_makes_packet_(ex) && ex->direct.sum == ex->grad;
}
/* Past the caches, if the vector is larger than they are. */
static int cg_streams_to_(const float *y, size_t n) { return n >= (size_t)1 << 20 && (uintptr_t)y % 16 == 0; }
/* This rank's factor before the sum; the sum is divided afterwards. */
static float cg_direct_weight_(const cg_ex_ *ex) { return ex->desc.weight != 0.0f ? ex->desc.weight : 1.0f; }

/* Before the opening: the pass over x, which finds NaN and Inf, so that the opening tells them. */
static void cg_direct_start_(cg_ex_ *ex) {
    const float weight = cg_direct_weight_(ex);
    uint32_t absmax_bits = 0;
    float *sum;
    ex->direct.saved = (float *)(void *)(ex->own.packets + CG_HEADER_BYTES);
    sum = cg_makes_packet_(ex) ? ex->grad : ex->result; /* of x there will be a packet, to put it back */
    if ((uintptr_t)sum % 4) sum = ex->direct.saved;
    ex->direct.sum = sum;
    if (cg_is_in_place_(ex)) return; /* whatever there is, is in the sum */
    if (cg_makes_packet_(ex)) {
        cg_stripes_compress_(ex);
        return;
    }
    if (sum == ex->grad) sum = ex->direct.saved;
    absmax_bits = cg_scale_checked_(
        ex->grad, ex->n, sum == ex->direct.sum ? weight : 1.0f, sum, cg_streams_to_(sum, ex->n));
    if (absmax_bits >= CG_INF_BITS_)
        cg_ex_fail_here_(ex, CG_E_NONFINITE, cg_status_str(CG_E_NONFINITE), 0, cg_first_nonfinite_(ex->grad, ex->n));
}
/* Before the sum. A rank that has failed sends NaN, so that all see it. */
static void cg_direct_begin_(cg_ex_ *ex) {
    float *sum = ex->direct.sum;
    const float weight = cg_direct_weight_(ex);
    if (sum == ex->grad) ex->direct.overwritten = 1;
    if (ex->status != CG_OK && ex->n) memset(sum, 0xff, 4 * ex->n);
    else if (sum == ex->grad && weight != 1.0f) cg_scale_checked_(sum, ex->n, weight, sum, 0);
    else if (sum == ex->direct.saved && cg_makes_packet_(ex)) /* over the packet */
        cg_scale_checked_(ex->grad, ex->n, weight, sum, 0);
}
/* The sum becomes the result. */
static void cg_direct_end_(cg_ex_ *ex) {
    float *sum = ex->direct.sum;
    cg_sum_check_(ex, cg_scale_checked_(sum, ex->n, (float)(1.0 / cg_divisor_(ex)), sum, 0));
}
/* What report.used is where the contribution is all of x and nobody feeds back: no packet, which would take passes of
   its own, but where the n values are. Only the process that wrote it can read it: it names its own address, too. */
enum { CG_REFERENCE_BYTES_ = 40 };
static uint64_t cg_reference_hash_(const uint8_t *p) {
    return cg_mix64_(cg_get64_(p + 8) ^ cg_mix64_(cg_get64_(p + 16) ^ cg_mix64_(cg_get64_(p + 24) + CG_GOLDEN_)));
}
static void cg_reference_put_(uint8_t *p, const float *values, size_t n) {
    cg_put32_(p, CG_REFERENCE_MAGIC_);
    cg_put32_(p + 4, 0);
    cg_put64_(p + 8, n);
    cg_put64_(p + 16, (uint64_t)(uintptr_t)values);
    cg_put64_(p + 24, (uint64_t)(uintptr_t)p);
    cg_put64_(p + 32, cg_reference_hash_(p));
}
/* The n values of a reference that stands where it was written; NULL: it is none. */
static const float *cg_reference_get_(const uint8_t *p, size_t len, size_t n) {
    if (len != CG_REFERENCE_BYTES_ || cg_get32_(p) != CG_REFERENCE_MAGIC_ || cg_get64_(p + 8) != n ||
        cg_get64_(p + 24) != (uint64_t)(uintptr_t)p || cg_get64_(p + 32) != cg_reference_hash_(p))
        return NULL;
    return (const float *)(uintptr_t)cg_get64_(p + 16);
}
/* Floats of two vectors change places; b is at a multiple of 4. */
static void cg_floats_exchange_(float *a, float *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const float v = cg_load_(a, i);
        cg_store_(a, i, b[i]);
        b[i] = v;
    }
}
/* x as it was. */
static void cg_direct_put_back_(cg_ex_ *ex) {
    if (!ex->direct.overwritten) return;
    if (ex->n) memcpy(ex->grad, ex->direct.saved, 4 * ex->n);
    if (cg_makes_packet_(ex)) cg_floats_swap_le_(ex->grad, ex->n); /* from the packet */
    ex->direct.overwritten = 0;
}
/* After an error. */
static void cg_direct_restore_(cg_ex_ *ex) {
    if (!cg_is_in_place_(ex)) cg_direct_put_back_(ex);
}
/* The result to where it belongs, if it is not there. If saved has it, that gets x. */
static cg_status cg_direct_write_(cg_ex_ *ex) {
    const int feeds_back = cg_makes_packet_(ex), apart = ex->result != ex->grad, steps = ex->desc.model != NULL;
    float *saved = ex->direct.saved, *sum = ex->direct.sum;
    cg_info info;
    cg_status s = CG_OK;
    ex->direct.uses_reference = !feeds_back;
    if (steps) {
        cg_model_step_(&ex->desc, sum, ex->n);
        ex->desc.model = NULL;
    } else if (sum == saved && !apart) cg_floats_exchange_(ex->grad, saved, ex->n);
    else if (sum != ex->result && ex->n) memcpy(ex->result, sum, 4 * ex->n);
    if (apart) cg_direct_put_back_(ex);
    if (sum != saved) return CG_OK;
    if ((apart || steps) && ex->n) memcpy(saved, ex->grad, 4 * ex->n);
    if (!feeds_back) return CG_OK;
    s = cg_inspect(ex->own.packets, (size_t)ex->own.offset[1], &info); /* the packet again */
    if (s != CG_OK) return s;
    cg_floats_swap_le_(saved, ex->n);
    cg_packet_seal_(&info, ex->own.packets);
    return CG_OK;
}
/* Sets report.used, unless it is a packet: returns 0. */
static int cg_direct_used_(cg_ex_ *ex) {
    const float *x_is_here;
    if (!ex->direct.uses_reference) return 0;
    ex->report.used = NULL;
    ex->report.used_len = 0;
    if (cg_is_in_place_(ex)) return 1;
    x_is_here = ex->direct.overwritten || ex->direct.sum == ex->direct.saved ? ex->direct.saved : ex->grad;
    cg_reference_put_(ex->own.packets, x_is_here, ex->n); /* where a packet would have its header */
    ex->report.used = ex->own.packets;
    ex->report.used_len = CG_REFERENCE_BYTES_;
    return 1;
}

/* src/exchange/shared_linear.h */
/* shared_linear: the routes shared and linear, on which an allreduce sums f32 values that all ranks have in one place

   Offers   cg_route_shared_, cg_route_linear_, what they need of mem (cg_plan_*_) and what they write (cg_write_*_)
   Needs    coroutine, direct, lists, core's sparse, matrix (PowerSGD) and packet (cg_packet_seal_)
   Touches  ex->reduced, ex->contrib, ex->mem.inbox, lists and matrix_work, desc.warm, ex->result
   Shared: the leader selects, everybody takes its indices. Linear: dense, random-k and rotated vectors as they are;
   low-rank by PowerSGD, one allreduce for each factor. A failed rank contributes NaN, so that all see it in the sum. */

static void cg_plan_shared_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    (void)scratch;
    cg_plan_lists_(ex, arena, 1, 1, 1);
}
static void cg_plan_linear_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    (void)scratch;
    if (ex->plan.direct) return;
    ex->reduced.packet = cg_arena_take_(arena, ex->plan.packet_room);
    ex->reduced.cap = (size_t)ex->plan.packet_room;
    if (ex->plan.traits & CG_IS_MATRIX_)
        ex->mem.matrix_work = (double *)(void *)cg_arena_take_(arena, cg_mul_sat_(8, ex->plan.transformed_n));
}
static int cg_accepts_linear_(const cg_ex_ *ex) {
    const uint32_t traits = ex->plan.traits;
    return cg_is_dense_f32_(&ex->desc.op, traits) && !(traits & (CG_IS_PER_RANK_ | CG_IS_PRIVATE_)) &&
        !(traits & CG_IS_MATRIX_ && !(traits & CG_IS_LINEAR_MATRIX_));
}
/* The values of reduced.packet; floats in host order while they are being summed. */
static float *cg_payload_(const cg_ex_ *ex) {
    return ex->reduced.packet ? (float *)(void *)(ex->reduced.packet + CG_HEADER_BYTES) : NULL;
}
/* payload = alpha times the k f32 values of a packet, then zeros up to `total`; NaN all over if this rank has failed.
   */
static void cg_load_payload_(cg_ex_ *ex, const uint8_t *packet, size_t k, size_t total, float alpha) {
    const float *in = (const float *)(const void *)(packet + CG_HEADER_BYTES);
    float *v = cg_payload_(ex);
    if (ex->status != CG_OK) k = 0;
    memset(v + k, ex->status == CG_OK ? 0 : 0xff, 4 * (total - k));
    if (CG_BIG_ENDIAN_) {
        memcpy(v, in, 4 * k);
        cg_floats_swap_le_(v, k);
        in = v;
    }
    cg_axpby_(in, k, alpha, 0.0f, v);
}
/* Fails if a sum has NaN or Inf. */
static void cg_payload_check_(cg_ex_ *ex, const float *v, size_t n) { cg_sum_check_(ex, cg_absmax_bits_(v, n)); }
/* Makes reduced.packet a packet again: payload in wire order, under the header of info. */
static void cg_seal_payload_(cg_ex_ *ex, const cg_info *info) {
    cg_floats_swap_le_(cg_payload_(ex), info->value_bytes / 4);
    ex->reduced.len = cg_packet_seal_(info, ex->reduced.packet);
}
/* contrib.packets = this rank's values at the indices of the packet in mem.inbox (reduced.len bytes); *k of them. */
CG_NOINLINE_ cg_status cg_shared_values_(cg_ex_ *ex, size_t *k) {
    cg_list_ list;
    cg_sparse_reader_ r;
    cg_info info;
    uint64_t index;
    cg_status s = cg_reader_open_(ex, &r, NULL, ex->mem.inbox, ex->reduced.len, ex->n, &info);
    if (s != CG_OK) return s;
    if (info.k > ex->plan.max_selected) return CG_E_CORRUPT;
    cg_ex_list_(ex, 0, ex->n, &list);
    while (cg_sparse_next_index_(&r, &index)) cg_list_append_(&list, index, cg_load_(ex->grad, (size_t)index));
    *k = list.count;
    return cg_sparse_packet_put_(
        0.0f, &ex->desc.tag, ex->n, &list, ex->contrib.packets, ex->contrib.cap, &ex->contrib.len);
}
/* Operator of the packet of indices: desc.op with values that take no bits. */
static cg_op cg_shared_op_(const cg_ex_ *ex) {
    cg_op op = ex->desc.op;
    op.quantize.id = CG_QUANTIZE_MEAN;
    return op;
}
/* Bytes of that packet, if they follow from n, otherwise 0: one value, the mean, in place of all f32 values. */
static size_t cg_shared_fixed_len_(const cg_ex_ *ex) {
    const size_t k = ex->plan.max_selected;
    return ex->plan.op_len_fixed ? cg_bound_with(&ex->desc.op, ex->desc.side, ex->n) - 4 * k + (k ? 4 : 0) : 0;
}
/* reduced.packet = the indices that this rank, the leader, selects. */
static void cg_shared_indices_(cg_ex_ *ex) {
    const cg_op op = cg_shared_op_(ex);
    cg_extra side = CG_ZERO;
    cg_status s;
    if (ex->desc.side) side = *ex->desc.side;
    s = cg_ex_compress_(
        ex, &op, &ex->desc.tag, &side, ex->grad, ex->n, ex->reduced.packet, ex->reduced.cap, &ex->reduced.len);
    if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
}
/* reduced.packet = the summed values of payload, under the header and with the indices of contrib.packets. */
static cg_status cg_shared_sum_(cg_ex_ *ex) {
    cg_info info;
    const cg_status s = cg_inspect(ex->contrib.packets, ex->contrib.len, &info);
    if (s != CG_OK) return s;
    cg_floats_swap_le_(cg_payload_(ex), (size_t)info.k);
    memcpy(ex->reduced.packet + CG_HEADER_BYTES + info.value_bytes,
        ex->contrib.packets + CG_HEADER_BYTES + info.value_bytes, info.index_bytes);
    ex->reduced.len = cg_packet_seal_(&info, ex->reduced.packet);
    ex->report.used = ex->contrib.packets;
    return CG_OK;
}
static cg_status cg_route_shared_(cg_ex_ *ex) {
    const float alpha = cg_alpha_(ex, (size_t)ex->transport.rank);
    const cg_op indices = cg_shared_op_(ex);
    size_t k = 0;
    cg_status s = CG_OK;
    CG_CO_BEGIN_(ex)
    if (ex->transport.rank == ex->plan.root) cg_shared_indices_(ex);
    CG_CO_BROADCAST_(ex, 1, cg_shared_fixed_len_(ex), ex->plan.root);
    if (ex->transport.rank != ex->plan.root)
        cg_accept_(ex, ex->reduced.packet, ex->reduced.len, ex->n, cg_stripe_tag_(ex, 0, 0), -1, &indices,
            ex->plan.root, ex->plan.root);
    if (ex->status == CG_OK) {
        memcpy(ex->mem.inbox, ex->reduced.packet, ex->reduced.len);
        s = cg_shared_values_(ex, &k);
        if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
    }
    cg_load_payload_(ex, ex->contrib.packets, k, ex->plan.max_selected, alpha);
    CG_CO_AWAIT_(ex, 2, cg_allreduce_begin_(ex, cg_payload_(ex), ex->plan.max_selected));
    cg_payload_check_(ex, cg_payload_(ex), ex->plan.max_selected);
    if (ex->status == CG_OK) s = cg_shared_sum_(ex);
    if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_write_shared_(cg_ex_ *ex) { return cg_ex_write_packet_(ex, ex->reduced.packet, ex->reduced.len); }
/* After both factors are summed: Q to desc.warm, P Q to ex->result; report.used is the same packet, but of a sum with Q
   scaled to this rank's share. */
static cg_status cg_powersgd_finish_(cg_ex_ *ex) {
    const cg_op *op = &ex->desc.op;
    const size_t p_floats = ex->plan.left_floats, q_floats = (size_t)ex->plan.transformed_n - p_floats;
    const float *q = cg_payload_(ex) + p_floats;
    const float own_share = (float)(cg_divisor_(ex) / ex->opening.weight_sum);
    cg_info info = CG_ZERO;
    cg_status s;
    for (size_t i = 0; ex->desc.warm && i < q_floats; i++) cg_store_(ex->desc.warm, i, q[i]);
    info.op = *op;
    info.tag = ex->desc.tag;
    info.n = info.drawn = ex->n;
    info.k = ex->plan.transformed_n;
    info.value_bytes = 4 * (size_t)info.k;
    cg_seal_payload_(ex, &info);
    s = cg_ex_write_packet_(ex, ex->reduced.packet, ex->reduced.len);
    if (own_share != 1.0f) { /* the result is decoded: the packet can become the share */
        cg_floats_swap_le_(cg_payload_(ex), (size_t)info.k);
        for (size_t i = 0; i < q_floats; i++) cg_payload_(ex)[p_floats + i] = cg_times_(own_share, q[i]);
        cg_seal_payload_(ex, &info);
    }
    ex->report.used = ex->reduced.packet;
    ex->contrib.len = ex->reduced.len;
    return s;
}
static cg_status cg_route_linear_(cg_ex_ *ex) {
    const cg_op *op = &ex->desc.op;
    const float alpha = cg_alpha_(ex, (size_t)ex->transport.rank);
    const size_t p_floats = ex->plan.left_floats, all_floats = (size_t)ex->plan.transformed_n;
    float *p = cg_payload_(ex), *q = p ? p + p_floats : NULL;
    cg_status s;
    CG_CO_BEGIN_(ex)
    if (ex->plan.direct) {
        cg_direct_begin_(ex);
        CG_CO_AWAIT_(ex, 4, cg_allreduce_begin_(ex, ex->direct.sum, ex->n));
        cg_direct_end_(ex);
        return CG_OK;
    }
    if (ex->plan.traits & CG_IS_MATRIX_) {
        cg_lowrank_left_(op, &ex->desc.tag, ex->desc.warm, ex->grad, alpha, p, ex->mem.matrix_work);
        /* a failed rank sends NaN, so that nobody waits for it */
        if (ex->status != CG_OK) memset(p, 0xff, 4 * p_floats);
        CG_CO_AWAIT_(ex, 1, cg_allreduce_begin_(ex, p, p_floats));
        cg_payload_check_(ex, p, p_floats);
        if (ex->status == CG_OK) {
            s = cg_lowrank_right_(op, ex->grad, alpha, p, q, ex->mem.matrix_work);
            if (s != CG_OK) cg_ex_fail_(ex, s, -1, cg_status_str(s));
        }
        if (ex->status != CG_OK) memset(q, 0xff, 4 * (all_floats - p_floats));
        CG_CO_AWAIT_(ex, 2, cg_allreduce_begin_(ex, q, all_floats - p_floats));
        cg_payload_check_(ex, q, all_floats - p_floats);
        return CG_OK;
    }
    cg_load_payload_(ex, ex->own.packets, all_floats, all_floats, alpha);
    CG_CO_AWAIT_(ex, 3, cg_allreduce_begin_(ex, cg_payload_(ex), all_floats));
    cg_payload_check_(ex, cg_payload_(ex), all_floats);
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_write_linear_(cg_ex_ *ex) {
    if (ex->plan.direct) return cg_direct_write_(ex);
    if (ex->plan.traits & CG_IS_MATRIX_) return cg_powersgd_finish_(ex);
    /* the header of a packet of equal length; its checksum is not looked at again */
    memcpy(ex->reduced.packet, ex->own.packets, CG_HEADER_BYTES);
    cg_floats_swap_le_(cg_payload_(ex), (size_t)ex->plan.transformed_n);
    return cg_ex_write_packet_(ex, ex->reduced.packet, (size_t)ex->own.offset[1]);
}

/* src/exchange/costs.h */
/* costs: rounds and bytes of each route behind the opening, for the choice of CG_ROUTE_AUTO

   Offers   cg_cost_of_ functions, which the rows of routes name
   Needs    routes, sums
   Touches  nothing
   Of the rank that has most of either; packets at their longest. A callback counts as the rounds of the tree that it
   stands for. What is told where lengths vary: an announcement and a receipt for a hop, tables and verdicts for all. */

static cg_cost_ cg_cost_make_(double rounds, double bytes) {
    cg_cost_ cost;
    cost.rounds = rounds;
    cost.bytes = bytes;
    return cost;
}
static double cg_others_(const cg_ex_ *ex) { return (double)(ex->transport.size - 1); }
/* Bytes of the reduced packet of the whole vector. */
static double cg_reduced_bytes_(const cg_ex_ *ex, const cg_lengths_ *len) {
    if (ex->plan.exact) return len->sum;
    return cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_) ? len->packet : (double)cg_bound(&ex->plan.back, ex->n);
}
/* Rounds in which lengths are told: of packets, two allgathers; of reduced ones likewise. */
static double cg_told_(const cg_ex_ *ex, const cg_lengths_ *len) {
    return ex->plan.op_len_fixed ? 0.0 : len->log_ranks;
}
static double cg_reduced_told_(const cg_ex_ *ex, const cg_lengths_ *len) {
    return ex->plan.reduced_len_fixed || cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_) ? 0.0 : 2.0 * len->log_ranks;
}
static cg_cost_ cg_cost_of_allgather_(const cg_ex_ *ex, const cg_lengths_ *len) {
    return cg_cost_make_(len->log_ranks + cg_told_(ex, len), cg_others_(ex) * len->packet);
}
static cg_cost_ cg_cost_of_ring_(const cg_ex_ *ex, const cg_lengths_ *len) {
    const double hop = ex->plan.reduced_len_fixed ? 1.0 : 3.0, others = cg_others_(ex);
    return cg_cost_make_(hop * others + len->log_ranks + cg_reduced_told_(ex, len),
        2.0 * others / (others + 1.0) * cg_reduced_bytes_(ex, len));
}
static cg_cost_ cg_cost_of_tree_(const cg_ex_ *ex, const cg_lengths_ *len) {
    const double hop = ex->plan.reduced_len_fixed ? 1.0 : 3.0;
    return cg_cost_make_(hop * len->log_ranks + len->log_ranks + cg_reduced_told_(ex, len),
        2.0 * len->log_ranks * cg_reduced_bytes_(ex, len));
}
static cg_cost_ cg_cost_of_scatter_(const cg_ex_ *ex, const cg_lengths_ *len) {
    const double others = cg_others_(ex);
    return cg_cost_make_(others + len->log_ranks + 2.0 * cg_told_(ex, len) + cg_reduced_told_(ex, len),
        others / (others + 1.0) * (len->packet + cg_reduced_bytes_(ex, len)));
}
static cg_cost_ cg_cost_of_server_(const cg_ex_ *ex, const cg_lengths_ *len) {
    const double others = cg_others_(ex);
    return cg_cost_make_(others + len->log_ranks + cg_told_(ex, len) + cg_reduced_told_(ex, len),
        others * len->packet + len->log_ranks * cg_reduced_bytes_(ex, len));
}
static cg_cost_ cg_cost_of_merge_(const cg_ex_ *ex, const cg_lengths_ *len) {
    (void)ex;
    return cg_cost_make_(6.0 * len->log_ranks, 2.0 * len->log_ranks * len->packet);
}
/* An allreduce of m floats; by a callback as by halving, and over allgather or broadcast as that moves them. */
static cg_cost_ cg_cost_of_sum_(const cg_ex_ *ex, size_t m, double log_ranks) {
    const uint32_t sum = cg_sum_kind_(ex, m);
    if (sum == CG_SUM_GATHER) return cg_cost_make_(log_ranks, cg_others_(ex) * 4.0 * (double)m);
    return cg_sum_cost_(sum == CG_SUM_CALLBACK ? (uint32_t)CG_SUM_HALVING : sum, ex->transport.size, m);
}
static cg_cost_ cg_cost_of_shared_(const cg_ex_ *ex, const cg_lengths_ *len) {
    const size_t k = ex->plan.max_selected;
    const double copies = ex->transport.sendrecv || ex->transport.broadcast ? len->log_ranks : cg_others_(ex);
    cg_cost_ cost = cg_cost_of_sum_(ex, k, len->log_ranks);
    cost.rounds += len->log_ranks + 2.0 * cg_told_(ex, len);
    cost.bytes += copies * (len->packet - 4.0 * (double)k);
    return cost;
}
static cg_cost_ cg_cost_of_region_(const cg_ex_ *ex, const cg_lengths_ *len) {
    const double others = cg_others_(ex), tables = 2.0 * 8.0 * (others + 1.0) + 4.0 * (double)(int)CG_COUNT_BYTES_;
    return cg_cost_make_(others + 10.0 * len->log_ranks, others * tables + 2.0 * others / (others + 1.0) * len->packet);
}
static cg_cost_ cg_cost_of_linear_(const cg_ex_ *ex, const cg_lengths_ *len) {
    return cg_cost_of_sum_(ex, (size_t)ex->plan.transformed_n, len->log_ranks);
}

/* src/exchange/rows.h */
/* rows: the tables of routes and folds

   Offers   cg_route_row_of_, cg_fold_row_of_, cg_is_known_; the public names of routes and folds
   Needs    routes (what a row holds), and the rooms of all routes, whose functions the rows name
   Touches  nothing
   A row stands at the place of its id. A new route is a row here, beside its id and its room. */

#define CG_REFUSAL_LARGEST_ "merge and region keep the k largest: take topk, mstopk, dgc or sidco with f32 values"
static const cg_route_row_ cg_route_rows_[] = {
    { CG_ROUTE_AUTO, "auto", 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL }, /* resolved before a row is asked for */
    { CG_ROUTE_ALLGATHER, "allgather", CG_ROUTE_PACKETS_MEET_ | CG_ROUTE_MEETS_EVERYWHERE_ | CG_ROUTE_READS_LENGTHS_,
        NULL, NULL, cg_plan_allgather_, cg_route_allgather_, cg_write_allgather_, NULL, cg_cost_of_allgather_ },
    { CG_ROUTE_RING, "ring", CG_ROUTE_SENDS_ | CG_ROUTE_STRIPES_ | CG_ROUTE_ADDS_ON_THE_WAY_ | CG_ROUTE_HOPS_, NULL,
        NULL, cg_plan_ring_, cg_route_ring_, cg_write_ring_, NULL, cg_cost_of_ring_ },
    { CG_ROUTE_TREE, "tree", CG_ROUTE_SENDS_ | CG_ROUTE_ADDS_ON_THE_WAY_ | CG_ROUTE_HOPS_, NULL, NULL, cg_plan_tree_,
        cg_route_tree_, cg_write_tree_, NULL, cg_cost_of_tree_ },
    { CG_ROUTE_SCATTER, "scatter",
        CG_ROUTE_SENDS_ | CG_ROUTE_STRIPES_ | CG_ROUTE_ADDS_ON_THE_WAY_ | CG_ROUTE_HAS_OWNER_ | CG_ROUTE_PACKETS_MEET_ |
            CG_ROUTE_TELLS_LENGTHS_,
        NULL, NULL, cg_plan_owner_, cg_route_scatter_, cg_write_scatter_, NULL, cg_cost_of_scatter_ },
    { CG_ROUTE_SERVER, "server",
        CG_ROUTE_HAS_OWNER_ | CG_ROUTE_PACKETS_MEET_ | CG_ROUTE_HAS_LEADER_ | CG_ROUTE_READS_LENGTHS_,
        cg_accepts_server_, "given indices: take allgather, or the route shared", cg_plan_owner_, cg_route_server_,
        cg_write_server_, NULL, cg_cost_of_server_ },
    { CG_ROUTE_MERGE, "merge", CG_ROUTE_SENDS_ | CG_ROUTE_NEEDS_INDICES_ | CG_ROUTE_HAS_NO_WEIGHTS_,
        cg_accepts_largest_, CG_REFUSAL_LARGEST_, cg_plan_merge_, cg_route_merge_, cg_write_reduced_, NULL,
        cg_cost_of_merge_ },
    { CG_ROUTE_SHARED, "shared",
        CG_ROUTE_ALLREDUCES_ | CG_ROUTE_NEEDS_INDICES_ | CG_ROUTE_HAS_LEADER_ | CG_ROUTE_LEADS_IN_TURN_ |
            CG_ROUTE_COMPRESSES_LATER_,
        cg_accepts_pairs_, "shared: take topk, mstopk, chunked, dgc or sidco with f32 values", cg_plan_shared_,
        cg_route_shared_, cg_write_shared_, NULL, cg_cost_of_shared_ },
    { CG_ROUTE_REGION, "region",
        CG_ROUTE_SENDS_ | CG_ROUTE_NEEDS_INDICES_ | CG_ROUTE_TELLS_COUNTS_ | CG_ROUTE_HAS_NO_WEIGHTS_,
        cg_accepts_largest_, CG_REFUSAL_LARGEST_, cg_plan_region_, cg_route_region_, cg_write_region_, NULL,
        cg_cost_of_region_ },
    { CG_ROUTE_LINEAR, "linear", CG_ROUTE_ALLREDUCES_, cg_accepts_linear_,
        "linear adds f32 values of one place: take dense, random-k, a rotation or low-rank, none of them private",
        cg_plan_linear_, cg_route_linear_, cg_write_linear_, NULL, cg_cost_of_linear_ },
    { CG_ROUTE_REDUCE_SCATTER, "reduce_scatter",
        CG_ROUTE_SENDS_ | CG_ROUTE_STRIPES_ | CG_ROUTE_ADDS_ON_THE_WAY_ | CG_ROUTE_PACKETS_MEET_ |
            CG_ROUTE_TELLS_LENGTHS_ | CG_ROUTE_ENDS_AT_OWNER_,
        NULL, NULL, cg_plan_reduce_scatter_, cg_route_scatter_, cg_write_reduce_scatter_, NULL, NULL },
    { CG_ROUTE_ALL_GATHER, "all_gather", CG_ROUTE_STRIPES_ | CG_ROUTE_ADDS_ON_THE_WAY_ | CG_ROUTE_BEGINS_AT_OWNER_,
        NULL, NULL, cg_plan_all_gather_, cg_route_all_gather_, cg_write_all_gather_, cg_compress_mine_, NULL },
};
static const cg_fold_row_ cg_fold_rows_[] = {
    { CG_FOLD_MEAN, "mean", CG_FOLD_IS_LINEAR_ | CG_FOLD_DIVIDES_, NULL, NULL, NULL },
    { CG_FOLD_SUM, "sum", CG_FOLD_IS_LINEAR_, NULL, NULL, NULL },
    { CG_FOLD_VOTE, "vote", CG_FOLD_NEEDS_SIGNS_, cg_refuse_vote_, cg_vote_of_inputs_, NULL },
    { CG_FOLD_CONTRIBUTORS, "contributors", CG_FOLD_DIVIDES_ | CG_FOLD_NEEDS_PLACES_, cg_refuse_contributors_,
        cg_mean_of_contributors_, NULL },
    { CG_FOLD_MEDIAN, "median", CG_FOLD_DIVIDES_ | CG_FOLD_IS_ROBUST_, cg_refuse_median_, NULL, cg_fold_median_ },
    { CG_FOLD_TRIMMED, "trimmed", CG_FOLD_DIVIDES_ | CG_FOLD_IS_ROBUST_, cg_refuse_trimmed_, NULL, cg_fold_trimmed_ },
    { CG_FOLD_CLIPPED, "clipped", CG_FOLD_DIVIDES_ | CG_FOLD_IS_ROBUST_, cg_refuse_clipped_, NULL, cg_fold_clipped_ },
    { 0, "", 0, NULL, NULL, NULL }, /* of a fold that is not known, and refused */
};
enum {
    CG_ROUTE_COUNT_ = sizeof cg_route_rows_ / sizeof cg_route_rows_[0],
    CG_FOLD_COUNT_ = sizeof cg_fold_rows_ / sizeof cg_fold_rows_[0] - 1
};
static const cg_route_row_ *cg_route_row_of_(uint32_t route) {
    return &cg_route_rows_[route < CG_ROUTE_COUNT_ ? route : 0];
}
static const cg_fold_row_ *cg_fold_row_of_(uint32_t fold) {
    return &cg_fold_rows_[fold < CG_FOLD_COUNT_ ? fold : (uint32_t)CG_FOLD_COUNT_];
}
static int cg_is_known_(uint32_t route, uint32_t fold) { return route < CG_ROUTE_COUNT_ && fold < CG_FOLD_COUNT_; }
CG_API_ const char *cg_route_name(uint32_t route) {
    return route < CG_ROUTE_COUNT_ ? cg_route_rows_[route].name : NULL;
}
CG_API_ const char *cg_fold_name(uint32_t fold) { return fold < CG_FOLD_COUNT_ ? cg_fold_rows_[fold].name : NULL; }
CG_API_ cg_status cg_route_parse(uint32_t *route, const char *text) {
    return cg_name_parse_(route, text, cg_route_name);
}
CG_API_ cg_status cg_fold_parse(uint32_t *fold, const char *text) { return cg_name_parse_(fold, text, cg_fold_name); }

/* src/exchange/exchange.h */
/* exchange: one exchange from start to report, blocking or in pieces  Offers   the public calls but those of layers;
   cg_ex_init_, cg_ex_start_, cg_ex_next_, cg_count_io_ Needs    all rooms before it Touches  the state, the caller's
   mem, x or desc.into, desc.model, desc.carry, desc.warm Other headers may use: cg_exchange_begin_in_state_,
   cg_exchange_in_state_, cg_exchange_or_fail_, cg_exchange_resolve_, cg_transport_error_, cg_used_decoder_ A rank that
   fails still takes part in every message that others expect of it, so that all ranks return, with a reason, in the
   same exchange. The result, model, carry and warm change only after the last message, when all packets have been
   checked. */

/* Coroutine of the opening, which returns as a route does: records of all ranks, checked; scales, if they are to be
   agreed on; a verdict, if messages depend on records. */
static cg_status cg_opening_(cg_ex_ *ex) {
    CG_CO_BEGIN_(ex)
    if (!ex->opening.in_batch) {
        CG_CO_AWAIT_(ex, 1, cg_allgather_equal_begin_(ex, ex->opening.record, CG_RECORD_BYTES_, ex->opening.gathered));
        for (size_t q = 0; q < cg_ranks_(ex); q++)
            memcpy(ex->opening.records + q * CG_RECORD_BYTES_, cg_gathered_(ex, q), CG_RECORD_BYTES_);
    }
    if (cg_records_check_(ex)) return ex->status;
    if (ex->scales.count > 1) {
        cg_scales_collect_(ex);
        CG_CO_AWAIT_(ex, 2,
            cg_allgather_equal_begin_(ex, ex->scales.all, cg_scale_table_bytes_(ex) + CG_NOTE_BYTES_,
                ex->scales.all + cg_scale_table_bytes_(ex) + CG_NOTE_BYTES_));
    }
    if (ex->desc.flags & CG_AGREE_SCALES) cg_scales_agree_(ex);
    if (!ex->opening.in_batch && cg_records_need_verdict_(ex)) CG_CO_VERDICT_(ex, 3, CG_ROUND_OPENING_);
    cg_record_sizes_(ex);
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_closing_(cg_ex_ *ex) {
    CG_CO_BEGIN_(ex)
    CG_CO_VERDICT_(ex, 1, CG_ROUND_CLOSING_);
    return CG_OK;
    CG_CO_END_
}
static void cg_phase_begin_(cg_ex_ *ex, int phase) {
    ex->co.phase = phase;
    ex->co.line = 0;
}
/* Goes on with the opening, the route or the closing: CG_AGAIN if it waits for a collective again, otherwise the
   outcome. */
static cg_status cg_ex_resume_(cg_ex_ *ex) {
    cg_status s;
    if (ex->co.phase == CG_PHASE_OPENING_) {
        s = cg_opening_(ex);
        if (s != CG_OK) return s;
        ex->mem.bounce = ex->mem.route_bounce;
        ex->mem.bounce_bytes = ex->mem.route_bounce_bytes;
        cg_phase_begin_(ex, CG_PHASE_ROUTE_);
    }
    if (ex->co.phase == CG_PHASE_ROUTE_) {
        s = cg_route_row_of_(ex->plan.route)->move(ex);
        if (s != CG_OK) return s;
        cg_phase_begin_(ex, CG_PHASE_CLOSING_);
    }
    return (ex->desc.flags & CG_CONFIRM) && !ex->opening.in_batch ? cg_closing_(ex) : ex->status;
}
/* Adds the message that has just been moved to the report. */
static void cg_count_io_(cg_ex_ *ex) {
    const cg_io *io = &ex->co.io;
    const uint64_t others = (uint64_t)ex->transport.size - 1;
    uint64_t out = 0, in = 0;
    ex->report.rounds++;
    switch (io->kind) {
    case CG_IO_ALLREDUCE: out = in = 2 * others * io->in_bytes / (others + 1); break;
    case CG_IO_ALLGATHER: out = in = others * io->out_bytes; break;
    case CG_IO_BROADCAST:
        if (io->from == ex->transport.rank) out = others * io->in_bytes;
        else in = io->in_bytes;
        break;
    default:
        out = io->out_bytes;
        in = io->in_bytes;
        break;
    }
    ex->report.bytes_out += out;
    ex->report.bytes_in += in;
}
/* Ends the exchange: writes what it has, takes the step of the model and completes the report. */
static cg_status cg_ex_finish_(cg_ex_ *ex, cg_status s) {
    ex->co.phase = CG_PHASE_DONE_;
    if (s == CG_OK && ex->status == CG_OK) s = cg_route_row_of_(ex->plan.route)->write(ex);
    if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
    ex->report.route = ex->plan.route;
    if (ex->status != CG_OK) {
        cg_direct_restore_(ex);
        ex->report.used = NULL;
        ex->report.used_len = 0;
        return ex->status;
    }
    cg_model_step_(&ex->desc, ex->result, ex->n);
    ex->report.rank = -1;
    ex->report.why = ex->plan.warning ? ex->plan.warning : cg_status_str(CG_OK);
    if (cg_direct_used_(ex)) return CG_OK;
    if (!ex->report.used) ex->report.used = ex->own.packets;
    ex->report.used_len = ex->contrib.len ? ex->contrib.len : (size_t)ex->own.offset[ex->plan.stripes];
    return CG_OK;
}
/* The packet in report.used, if it is one that is open; otherwise NULL. */
CG_OFFERED_ cg_decoder_ *cg_used_decoder_(const cg_ex_ *ex) {
    return ex->inputs.opened && ex->report.used == ex->own.packets ? &ex->inputs.decoder[ex->transport.rank] : NULL;
}
/* cg_exchange_next, within the floating-point environment. In a batch an exchange with CG_CONFIRM is not finished
   here, but returns its status in the phase CG_PHASE_CLOSING_. */
static cg_status cg_ex_next_(cg_ex_ *ex, int last_code, cg_io *io) {
    cg_status s;
    if (ex->co.io_pending) {
        const int peer = ex->co.io.kind != CG_IO_SENDRECV && ex->co.io.kind != CG_IO_BROADCAST ? -1
            : ex->co.io.from >= 0                                                              ? ex->co.io.from
                                                                                               : ex->co.io.to;
        ex->co.io_pending = 0;
        if (last_code) {
            ex->status = CG_OK; /* an earlier failure gives way to the one that ends the exchange */
            ex->report.code = last_code;
            cg_ex_fail_(ex, CG_E_TRANSPORT, peer == ex->transport.rank ? -1 : peer, cg_status_str(CG_E_TRANSPORT));
            return cg_ex_finish_(ex, CG_E_TRANSPORT);
        }
        cg_count_io_(ex);
    }
    do {
        if (ex->collective.kind && cg_collective_next_(ex, &ex->co.io)) {
            ex->co.io_pending = 1;
            *io = ex->co.io;
            return CG_AGAIN;
        }
        ex->collective.kind = CG_COLL_NONE_;
        s = cg_ex_resume_(ex);
    } while (s == CG_AGAIN);
    if (ex->opening.in_batch && (ex->desc.flags & CG_CONFIRM) && ex->co.phase == CG_PHASE_CLOSING_) return s;
    return cg_ex_finish_(ex, s);
}
/* Copies the arguments. */
static void cg_ex_set_call_(
    cg_ex_ *ex, const cg_exchange_desc *desc, const cg_transport *transport, float *grad, size_t n) {
    ex->desc = *desc;
    ex->transport = *transport;
    ex->desc.tag.rank = (uint32_t)transport->rank;
    ex->grad = grad ? grad : &ex->no_grad;
    ex->result = desc->into ? desc->into : ex->grad;
    ex->n = n;
    cg_report_set_(&ex->report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
}
/* Zeroes the state and copies the arguments. */
static void cg_ex_init_(
    cg_ex_ *ex, const cg_exchange_desc *desc, const cg_transport *transport, float *grad, size_t n) {
    memset(ex, 0, sizeof *ex);
    cg_ex_set_call_(ex, desc, transport, grad, n);
}
/* NULL, or why no message can be sent at all. */
static const char *cg_transport_error_(const cg_transport *t) {
    if (t->size < 1 || t->rank < 0 || t->rank >= t->size) return "rank must be from 0 to size - 1";
    if (!CG_RESERVE_IS_ZERO_(t->reserved)) return "reserved of the transport must be 0: start from CG_ZERO";
    if (t->size > 1 && !t->sendrecv && !t->allgather && !t->broadcast && !t->allreduce)
        return "no callback: give sendrecv, or at least one of allgather, broadcast and allreduce";
    return NULL;
}
/* Resolves the plan, unless ex->resolved says that it is, lays out mem, compresses what can be compressed at once and
   writes the opening record. Whatever is wrong goes into ex->status, and the opening will tell it. Returns another
   status than CG_OK only if that is impossible: an unusable transport, or no memory for the records of more than
   CG_FALLBACK_RANKS_ ranks. */
static cg_status cg_ex_start_(cg_ex_ *ex, float *grad, void *mem, size_t bytes) {
    const size_t align_skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    uint64_t need_bytes;
    float scale = 0.0f;
    cg_resolved_ resolved;
    if (cg_transport_error_(&ex->transport)) {
        cg_ex_fail_(ex, CG_E_ARG, -1, cg_transport_error_(&ex->transport));
        return CG_E_ARG;
    }
    if (!grad && ex->n) cg_ex_fail_(ex, CG_E_ARG, ex->transport.rank, "x is NULL");
    else if (!ex->resolved) cg_ex_resolve_(ex, &resolved, 0);
    ex->report.route = ex->plan.route;
    ex->report.choice = ex->plan.choice;
    ex->report.instead = ex->plan.instead ? cg_route_name(ex->plan.instead) : NULL;
    ex->report.seconds = ex->plan.seconds;
    ex->report.instead_seconds = ex->plan.instead_seconds;
    need_bytes = cg_mem_plan_(ex, NULL);
    if (need_bytes > SIZE_MAX / 2) cg_ex_fail_(ex, CG_E_ARG, ex->transport.rank, "sizes overflow");
    else if (!mem || bytes < align_skip || bytes - align_skip < need_bytes)
        cg_ex_fail_here_(ex, CG_E_MEMORY, "mem is too small: cg_exchange_memory gives its bytes",
            cg_add_sat_(need_bytes, 64 + CG_STATE_ROOM_), CG_NO_INDEX);
    if (ex->status == CG_OK || (mem && bytes >= align_skip && bytes - align_skip >= cg_mem_plan_(ex, NULL))) {
        cg_mem_plan_(ex, (uint8_t *)mem + align_skip);
    } else {
        if (ex->transport.size > CG_FALLBACK_RANKS_) return ex->status;
        ex->opening.records = ex->opening.fallback;
        ex->opening.gathered = ex->opening.fallback + CG_FALLBACK_RANKS_ * CG_RECORD_BYTES_;
        ex->mem.sizes = ex->opening.fallback_sizes;
    }
    if (ex->status == CG_OK && ex->producer && !(ex->plan.direct && cg_makes_packet_(ex)) &&
        (ex->plan.stripes > 1 || !cg_is_compressed_first_(ex))) {
        cg_producer_run_(ex->producer, ex->grad);
        ex->producer = NULL;
    }
    if (ex->status == CG_OK && ex->plan.direct) cg_direct_start_(ex);
    else if (ex->status == CG_OK && cg_is_compressed_first_(ex)) {
        if (cg_route_row_of_(ex->plan.route)->compress) cg_route_row_of_(ex->plan.route)->compress(ex);
        else cg_stripes_compress_(ex);
    } else if (ex->status == CG_OK) cg_grad_check_finite_(ex);
    if (ex->status == CG_OK && ex->scales.count == 1)
        scale = cg_as_float_(cg_get32_(ex->own.packets + CG_HEADER_BYTES));
    cg_record_put_(
        ex, ex->status == CG_OK && cg_is_compressed_first_(ex) ? (size_t)ex->own.offset[ex->plan.stripes] : 0, scale);
    ex->mem.route_bounce = ex->mem.bounce;
    ex->mem.route_bounce_bytes = ex->mem.bounce_bytes;
    ex->mem.bounce = (uint8_t *)ex->opening.bounce;
    ex->mem.bounce_bytes = sizeof ex->opening.bounce;
    ex->co.phase = CG_PHASE_OPENING_;
    if (ex->status != CG_OK) ex->resolved = NULL; /* it may not be in mem */
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
    if (state->co.phase == CG_PHASE_IDLE_ || state->co.phase == CG_PHASE_DONE_) return CG_E_STATE;
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
/* Resolves an exchange ahead of its start, in *ex; *resolved as in cg_ex_resolve_. Returns what cg_exchange_memory
   does. */
static uint64_t cg_exchange_resolve_(cg_ex_ *ex, const cg_exchange_desc *desc, const cg_transport *transport, size_t n,
    cg_resolved_ *resolved, int known) {
    if (cg_transport_error_(transport)) return 0;
    cg_ex_init_(ex, desc, transport, NULL, n);
    cg_ex_resolve_(ex, resolved, known);
    if (ex->status != CG_OK && transport->size <= CG_FALLBACK_RANKS_) return 0;
    return cg_add_sat_(cg_mem_plan_(ex, NULL), 64 + CG_STATE_ROOM_);
}
CG_API_ size_t cg_exchange_memory(const cg_exchange_desc *desc, const cg_transport *transport, size_t n) {
    cg_exchange_state ex;
    cg_resolved_ resolved;
    cg_fenv_ env;
    uint64_t bytes;
    if (!desc || !transport) return 0;
    env = cg_fenv_enter_();
    bytes = cg_exchange_resolve_(&ex, desc, transport, n, &resolved, 0);
    cg_fenv_leave_(env);
    return cg_size_or_zero_(bytes);
}
CG_API_ size_t cg_exchange_carry(const cg_exchange_desc *desc, const cg_transport *transport, size_t n) {
    cg_exchange_state ex;
    cg_resolved_ resolved;
    cg_fenv_ env;
    size_t floats = 0;
    if (!desc || !transport || cg_transport_error_(transport)) return 0;
    env = cg_fenv_enter_();
    cg_ex_init_(&ex, desc, transport, NULL, n);
    ex.desc.carry = &ex.no_grad; /* as if there were one: without it the description may be refused */
    cg_ex_resolve_(&ex, &resolved, 0);
    if (ex.status == CG_OK) floats = cg_carry_floats_(&ex);
    cg_fenv_leave_(env);
    return floats;
}
/* Begins an exchange in the caller's state; mem is beside the state. resolved: cg_exchange_resolve_ has been called for
   this state, and desc is as it was then but for into, model, score and CG_ABSTAIN. producer: makes grad, or NULL if
   it is there. earlier_status: if not CG_OK, this rank has nothing to exchange but that. */
static cg_status cg_exchange_begin_in_state_(cg_ex_ *ex, const cg_exchange_desc *desc, const cg_transport *t,
    float *grad, struct cg_producer_ *producer, size_t n, void *mem, size_t bytes, int resolved,
    cg_status earlier_status) {
    const char *why;
    cg_status s;
    const cg_fenv_ env = cg_fenv_enter_();
    if (resolved) cg_ex_set_call_(ex, desc, t, grad, n);
    else cg_ex_init_(ex, desc, t, grad, n);
    why = resolved ? cg_refused_abstention_(ex) : NULL;
    if (why) cg_ex_fail_(ex, CG_E_UNSUPPORTED, t->rank, why);
    if (earlier_status != CG_OK) cg_ex_fail_(ex, earlier_status, t->rank, cg_status_str(earlier_status));
    else ex->producer = producer;
    s = cg_ex_start_(ex, grad, mem, bytes);
    cg_fenv_leave_(env);
    return s;
}
/* A whole exchange, as above. */
static cg_status cg_exchange_in_state_(cg_ex_ *ex, const cg_exchange_desc *desc, const cg_transport *t, float *grad,
    struct cg_producer_ *producer, size_t n, void *mem, size_t bytes, int resolved, cg_status earlier_status,
    cg_report *report) {
    cg_io io;
    int code = 0;
    cg_status s = cg_exchange_begin_in_state_(ex, desc, t, grad, producer, n, mem, bytes, resolved, earlier_status);
    if (s == CG_OK)
        while ((s = cg_exchange_next(ex, code, &io)) == CG_AGAIN) code = cg_io_run(t, &io);
    cg_exchange_report(ex, report);
    return s;
}
/* For mem that is too small even for the state: only tells the others. */
CG_NOINLINE_ cg_status cg_exchange_no_memory_(const cg_exchange_desc *desc, const cg_transport *transport, float *x,
    size_t n, cg_status earlier_status, cg_report *report) {
    cg_exchange_state state;
    return cg_exchange_in_state_(&state, desc, transport, x, NULL, n, NULL, 0, 0, earlier_status, report);
}
/* cg_exchange; earlier_status: CG_OK, or a failure that this rank only tells the others. */
static cg_status cg_exchange_or_fail_(const cg_exchange_desc *desc, const cg_transport *transport, float *x, size_t n,
    void *mem, size_t bytes, cg_status earlier_status, cg_report *report) {
    const size_t align_skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    uint8_t *p = (uint8_t *)mem;
    if (report) cg_report_set_(report, CG_E_ARG, "desc or transport is NULL", 0, CG_NO_INDEX);
    if (!desc || !transport) return CG_E_ARG;
    if (!mem || bytes < align_skip + CG_STATE_ROOM_)
        return cg_exchange_no_memory_(desc, transport, x, n, earlier_status, report);
    return cg_exchange_in_state_((cg_ex_ *)(void *)(p + align_skip), desc, transport, x, NULL, n,
        p + align_skip + CG_STATE_ROOM_, bytes - align_skip - CG_STATE_ROOM_, 0, earlier_status, report);
}
CG_API_ cg_status cg_exchange(const cg_exchange_desc *desc, const cg_transport *transport, float *x, size_t n,
    void *mem, size_t bytes, cg_report *report) {
    return cg_exchange_or_fail_(desc, transport, x, n, mem, bytes, CG_OK, report);
}

CG_API_ size_t cg_stripe_begin(size_t n, int ranks, int r) {
    if (ranks < 1 || r < 0 || r > ranks) return 0;
    return cg_stripe_offset_(n, (size_t)ranks, (size_t)r);
}
/* desc for one leg of scatter. */
static cg_exchange_desc cg_leg_desc_(const cg_exchange_desc *desc, uint32_t route, const size_t *bounds, float *mine) {
    cg_exchange_desc d = *desc;
    d.route = route;
    d.bounds = bounds;
    d.mine = mine;
    return d;
}
static cg_status cg_leg_run_(const cg_exchange_desc *desc, const cg_transport *transport, uint32_t route, float *x,
    size_t n, const size_t *bounds, float *mine, void *mem, size_t bytes, cg_report *report) {
    cg_exchange_desc d;
    if (!desc || !transport) return cg_exchange_or_fail_(NULL, NULL, x, n, mem, bytes, CG_OK, report);
    d = cg_leg_desc_(desc, route, bounds, mine);
    d.flags |= CG_NEEDS_MINE_;
    return cg_exchange_or_fail_(&d, transport, x, n, mem, bytes, CG_OK, report);
}
CG_API_ cg_status cg_reduce_scatter(const cg_exchange_desc *desc, const cg_transport *transport, const float *x,
    size_t n, const size_t *bounds, float *mine, void *mem, size_t bytes, cg_report *report) {
    /* with mine the route does not write to x */
    return cg_leg_run_(
        desc, transport, CG_ROUTE_REDUCE_SCATTER, (float *)(uintptr_t)x, n, bounds, mine, mem, bytes, report);
}
CG_API_ cg_status cg_all_gather(const cg_exchange_desc *desc, const cg_transport *transport, const float *mine,
    const size_t *bounds, float *x, size_t n, void *mem, size_t bytes, cg_report *report) {
    return cg_leg_run_(
        desc, transport, CG_ROUTE_ALL_GATHER, x, n, bounds, (float *)(uintptr_t)mine, mem, bytes, report);
}
static size_t cg_leg_memory_(
    const cg_exchange_desc *desc, const cg_transport *transport, uint32_t route, size_t n, const size_t *bounds) {
    cg_exchange_desc d;
    if (!desc) return 0;
    d = cg_leg_desc_(desc, route, bounds, NULL);
    return cg_exchange_memory(&d, transport, n);
}
CG_API_ size_t cg_reduce_scatter_memory(
    const cg_exchange_desc *desc, const cg_transport *transport, size_t n, const size_t *bounds) {
    return cg_leg_memory_(desc, transport, CG_ROUTE_REDUCE_SCATTER, n, bounds);
}
CG_API_ size_t cg_all_gather_memory(
    const cg_exchange_desc *desc, const cg_transport *transport, size_t n, const size_t *bounds) {
    return cg_leg_memory_(desc, transport, CG_ROUTE_ALL_GATHER, n, bounds);
}

/* src/exchange/joined.h */
/* joined: low-rank layers share the sum of their left factors, and that of their right ones

   Offers   cg_joined_, cg_joined_add_, cg_joined_plan_, cg_joined_run_, cg_collective_wait_
   Needs    exchange, memory (bounces), sums
   Touches  the joined exchanges and the one that opens them, the joined buffers
   The order of a sum does not depend on where a value stands, so that each layer has the bits that it has alone. On a
   ring it does: such layers are not joined. */

typedef struct cg_joined_ {
    size_t count;         /* of exchanges; 1: none is joined */
    uint64_t left, right; /* floats of all their factors */
    uint32_t sum;         /* of the first: the others have the same */
    double alpha, beta;   /* likewise */
    float *floats;        /* in mem: left or right ones, whichever are more */
    uint8_t *bounce;      /* in mem: for their sum */
    uint64_t bounce_bytes;
} cg_joined_;
/* May an exchange be joined with those before it? Its plan has been resolved. */
static int cg_may_join_(const cg_joined_ *j, const cg_ex_ *ex) {
    const cg_exchange_desc *d = &ex->desc;
    if (ex->status != CG_OK || !cg_route_has_(ex, CG_ROUTE_ALLREDUCES_) || !(ex->plan.traits & CG_IS_MATRIX_)) return 0;
    return d->sum != CG_SUM_RING && (!j->count || (d->sum == j->sum && d->alpha == j->alpha && d->beta == j->beta));
}
static void cg_joined_add_(cg_joined_ *j, const cg_ex_ *ex) {
    if (!cg_may_join_(j, ex)) return;
    j->count++;
    j->sum = ex->desc.sum;
    j->alpha = ex->desc.alpha;
    j->beta = ex->desc.beta;
    j->left = cg_add_sat_(j->left, ex->plan.left_floats);
    j->right = cg_add_sat_(j->right, ex->plan.transformed_n - ex->plan.left_floats);
}
/* Floats that are summed at once, at most; the places of them and of the bounce buffer. */
static void cg_joined_plan_(cg_joined_ *j, const cg_transport *t, cg_arena_ *arena) {
    cg_ex_ ex;
    const uint64_t floats = j->left > j->right ? j->left : j->right;
    if (j->count < 2) return;
    memset(&ex, 0, sizeof ex);
    ex.transport = *t;
    ex.desc.sum = j->sum;
    ex.desc.alpha = j->alpha;
    ex.desc.beta = j->beta;
    j->bounce_bytes = cg_sum_bounce_of_(&ex, j->left);
    cg_max_update_(&j->bounce_bytes, cg_sum_bounce_of_(&ex, j->right));
    j->bounce_bytes = cg_bounce_room_of_(&ex, j->bounce_bytes);
    j->floats = (float *)(void *)cg_arena_take_(arena, cg_mul_sat_(4, floats));
    j->bounce = cg_arena_take_(arena, j->bounce_bytes);
}
/* Moves the collective that was begun, by the callbacks, until it is complete or one of them fails. */
static cg_status cg_collective_wait_(cg_ex_ *ex) {
    for (;;) {
        const cg_fenv_ env = cg_fenv_enter_();
        const int more = ex->collective.kind && cg_collective_next_(ex, &ex->co.io);
        int code;
        cg_fenv_leave_(env);
        if (!more) break;
        code = cg_io_run(&ex->transport, &ex->co.io);
        if (code) {
            ex->co.io_pending = 1;
            return cg_ex_next_(ex, code, &ex->co.io);
        }
        cg_count_io_(ex);
    }
    ex->collective.kind = CG_COLL_NONE_;
    return ex->status;
}
/* Goes on with a joined exchange until it asks for a sum (1), or has ended (0). */
static int cg_joined_resume_(cg_ex_ *ex) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_status s;
    ex->collective.kind = CG_COLL_NONE_;
    s = cg_ex_resume_(ex);
    if (s != CG_AGAIN && !(ex->desc.flags & CG_CONFIRM && ex->co.phase == CG_PHASE_CLOSING_)) s = cg_ex_finish_(ex, s);
    cg_fenv_leave_(env);
    return s == CG_AGAIN;
}
/* All joined exchanges, from behind the opening to their end. Returns CG_E_TRANSPORT if a callback has failed: then
   none has ended. All ranks sum the same number of floats, also for an exchange that has ended before: NaN. */
static cg_status cg_joined_run_(const cg_joined_ *j, cg_ex_ *opening, cg_ex_ *exchanges, size_t count) {
    cg_status s = CG_OK;
    if (j->count < 2) return CG_OK;
    for (size_t e = 0; e < count; e++) exchanges[e].opening.joined = cg_may_join_(j, &exchanges[e]);
    opening->desc.sum = j->sum;
    opening->desc.alpha = j->alpha;
    opening->desc.beta = j->beta;
    opening->mem.bounce = j->bounce;
    opening->mem.bounce_bytes = (size_t)j->bounce_bytes;
    for (int leg = 0; leg < 2 && s != CG_E_TRANSPORT; leg++) { /* left factors, right ones */
        size_t at = 0;
        for (size_t e = 0; e < count; e++) {
            cg_ex_ *ex = &exchanges[e];
            const size_t left = ex->plan.left_floats, many = leg ? (size_t)ex->plan.transformed_n - left : left;
            if (!ex->opening.joined) continue;
            if ((leg == 0 || ex->collective.kind) && cg_joined_resume_(ex))
                memcpy(j->floats + at, ex->collective.buf, 4 * many);
            else memset(j->floats + at, 0xff, 4 * many);
            at += many;
        }
        cg_allreduce_begin_(opening, j->floats, at);
        s = cg_collective_wait_(opening);
        at = 0;
        for (size_t e = 0; e < count; e++) {
            cg_ex_ *ex = &exchanges[e];
            const size_t left = ex->plan.left_floats, many = leg ? (size_t)ex->plan.transformed_n - left : left;
            if (!ex->opening.joined) continue;
            if (ex->collective.kind) memcpy(ex->collective.buf, j->floats + at, 4 * many);
            at += many;
        }
    }
    for (size_t e = 0; e < count && s != CG_E_TRANSPORT; e++)
        if (exchanges[e].opening.joined && exchanges[e].collective.kind) cg_joined_resume_(&exchanges[e]);
    return s;
}

/* src/exchange/packed.h */
/* packed: small layers that keep their operators, as the segments of one packet

   Offers   cg_packed_, cg_packed_fits_, cg_packed_plan_, cg_packed_room_, cg_packed_fill_
   Needs    exchange, memory (cg_arena_), core's segments
   Touches  its arrays in the caller's mem; report.used of the layers
   Layers with CG_ONE_PACKET that are small enough travel by allgather, each with its own operator, scales, selection
   and tensor. What was used of each is its segment of this rank's packet, as a packet of its own. */

typedef struct cg_packed_ {
    size_t count;      /* of segments; 0: none, and then nothing below matters */
    uint64_t bound;    /* of the packet */
    uint64_t scratch;  /* to compress any of them */
    uint32_t traits;   /* of any */
    size_t used_bytes; /* of all segments as packets of their own */
    cg_segments segments;
    cg_extra side;
    /* in mem: */
    size_t *n;
    uint32_t *op, *tensor;
    cg_op *ops;
} cg_packed_;
/* Can layer d travel so? first: the first that does. */
static int cg_packed_fits_(const cg_exchange_desc *d, size_t n, const cg_exchange_desc *first) {
    const uint32_t alike = CG_CORRELATED | CG_ONE_PACKET, never = CG_AGREE_SCALES | CG_ABSTAIN | CG_MAY_ABSTAIN;
    const cg_extra *side = d->side;
    cg_resolved_ r;
    if ((d->flags ^ first->flags) & alike || d->flags & never) return 0;
    if (d->route != CG_ROUTE_ALLGATHER && d->route != CG_ROUTE_AUTO) return 0;
    if (d->tag.seed != first->tag.seed || d->tag.step != first->tag.step) return 0;
    if (side && (side->aux || side->scale || side->support || side->codec_count || side->segments)) return 0;
    if (cg_resolve_(&d->op, NULL, n, &r) != CG_OK || !r.bound)
        return 0; /* alone, it is refused with its own sentence */
    if (r.plan.traits & (CG_NEEDS_SUPPORT_ | CG_NEEDS_AUX_)) return 0;
    return !(r.plan.traits & CG_IS_LINEAR_MATRIX_) || d->route == CG_ROUTE_ALLGATHER;
}
/* Counts a layer in; all of them before cg_packed_plan_. An entry of the table takes less than 140 bytes, the operator
   included. */
static void cg_packed_add_(cg_packed_ *p, const cg_exchange_desc *d, size_t n) {
    cg_resolved_ r;
    if (cg_resolve_(&d->op, NULL, n, &r) != CG_OK) return; /* it was resolved before */
    if (!p->count++) p->bound = CG_HEADER_BYTES + 16;
    p->bound = cg_add_sat_(p->bound, cg_add_sat_(r.bound - CG_HEADER_BYTES, 140));
    cg_max_update_(&p->scratch, r.scratch_bytes);
    p->traits |= r.plan.traits;
    p->used_bytes = (size_t)cg_add_sat_(p->used_bytes, r.bound);
}
static void cg_packed_plan_(cg_packed_ *p, cg_arena_ *arena) {
    p->n = (size_t *)(void *)cg_arena_take_(arena, cg_mul_sat_(sizeof(size_t), p->count));
    p->op = (uint32_t *)(void *)cg_arena_take_(arena, cg_mul_sat_(4, p->count));
    p->tensor = (uint32_t *)(void *)cg_arena_take_(arena, cg_mul_sat_(4, p->count));
    p->ops = (cg_op *)(void *)cg_arena_take_(arena, cg_mul_sat_(sizeof(cg_op), p->count));
}
/* Bytes of mem for their exchange, before there are arrays. */
static uint64_t cg_packed_room_(const cg_packed_ *p, const cg_transport *t, const cg_exchange_desc *desc, size_t n) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_exchange_desc d = *desc;
    cg_exchange_state ex;
    cg_resolved_ r;
    uint64_t bytes;
    memset(&r, 0, sizeof r);
    d.side = NULL;
    r.bound = cg_size_or_zero_(p->bound);
    r.scratch_bytes = p->scratch;
    r.plan.traits = p->traits;
    r.plan.n = r.plan.sampled_n = r.plan.transformed_n = r.plan.max_selected = n;
    r.plan.values_per_index = r.segments_hash = 1;
    bytes = cg_exchange_resolve_(&ex, &d, t, n, &r, 1);
    cg_fenv_leave_(env);
    return cg_add_sat_(bytes, 63) & ~(uint64_t)63;
}
/* Number of an operator among those of the table. */
static uint32_t cg_packed_number_(cg_packed_ *p, const cg_op *op, const cg_op *common) {
    const cg_op dense = cg_dense();
    size_t j = 0;
    if (cg_same_op_(op, common) && op->k == common->k) return CG_SEGMENT_OP;
    if (cg_same_op_(op, &dense)) return CG_SEGMENT_EXACT;
    while (j < p->segments.op_count && !(cg_same_op_(op, &p->ops[j]) && op->k == p->ops[j].k)) j++;
    if (j == p->segments.op_count) p->ops[p->segments.op_count++] = *op;
    return CG_SEGMENT_OPS + (uint32_t)j;
}
/* Layer number i of them, in order; desc: of their exchange. */
static void cg_packed_fill_(cg_packed_ *p, size_t i, const cg_exchange_desc *d, size_t n, cg_exchange_desc *desc) {
    if (i == 0) {
        desc->op = d->op;
        p->segments.n = p->n;
        p->segments.op = p->op;
        p->segments.ops = p->ops;
        p->segments.tensor = p->tensor;
        p->segments.count = p->count;
        p->segments.op_count = 0;
        p->side.segments = &p->segments;
        desc->side = &p->side;
    }
    p->n[i] = n;
    p->tensor[i] = d->tag.tensor;
    p->op[i] = cg_packed_number_(p, &d->op, &desc->op);
}

/* src/exchange/layers.h */
/* layers: many exchanges that share one opening, and small layers that travel as one vector

   Offers   cg_exchange_layers, cg_exchange_layers_memory, cg_used_decode
   Needs    exchange, packed, joined, memory (cg_arena_), opening
   Touches  the layers' x, into, model, status and report; the caller's mem
   All exchanges are started, then a first round compares one record for all of them, a second moves the opening records
   of all, a verdict follows if the messages of any exchange depend on records, and the routes follow one after the
   other; those of low-rank layers share their sums (joined). Exchanges with CG_CONFIRM are closed together, in one
   round, before any of them writes. */

typedef struct cg_batch_ {
    const cg_layer *layers;
    size_t count;               /* of layers */
    size_t small_below;         /* layers of fewer values travel together */
    size_t first_small;         /* index of the first of them; count: none */
    size_t flat_n;              /* values of all small layers */
    size_t exchange_count;      /* long layers, and one for all the small ones */
    cg_exchange_desc flat_desc; /* of the small ones */
    cg_packed_ packed;          /* the small ones, if they keep their operators */
    uint32_t route;             /* of all exchanges; CG_ROUTE_AUTO if they differ */
    cg_joined_ joined;          /* exchanges of low-rank layers */
    /* in mem: */
    cg_ex_ *opening;       /* the first round, for all */
    cg_ex_ *exchanges;     /* exchange_count states */
    uint8_t *own_records;  /* opening records of this rank, one for every exchange */
    uint8_t *records;      /* of all ranks */
    uint8_t *exchange_mem; /* for the first round, then for every exchange */
    uint8_t *contrib;      /* packets of the small layers: what report.used points to */
    float *flat_grad;      /* the small layers, one after the other */
} cg_batch_;
/* Does layer i travel with the small ones? Those have the fold and weight of the first of them. */
static int cg_batch_is_small_(const cg_batch_ *p, size_t i) {
    const cg_exchange_desc *d = &p->layers[i].desc,
                           *first = p->first_small < p->count ? &p->layers[p->first_small].desc : d;
    return p->layers[i].n < p->small_below && cg_fold_row_of_(d->fold)->traits & CG_FOLD_IS_LINEAR_ &&
        d->fold == first->fold && cg_as_bits_(d->weight) == cg_as_bits_(first->weight) &&
        (!((d->flags | first->flags) & CG_ONE_PACKET) || cg_packed_fits_(d, p->layers[i].n, first));
}
/* Exchanges go by the index of their layer; count stands for that of the small ones. */
static const cg_exchange_desc *cg_batch_desc_(const cg_batch_ *p, size_t i) {
    return i < p->count ? &p->layers[i].desc : &p->flat_desc;
}
static size_t cg_batch_n_(const cg_batch_ *p, size_t i) { return i < p->count ? p->layers[i].n : p->flat_n; }
/* The exchange after i: a layer, count, or count + 1 at the end. i = (size_t)-1 gives the first. */
static size_t cg_batch_next_(const cg_batch_ *p, size_t i) {
    for (i++; i < p->count; i++)
        if (!cg_batch_is_small_(p, i)) return i;
    return i == p->count && p->first_small < p->count ? i : p->count + 1;
}
/* joined: NULL, or counts the exchange if it is one of them. */
static uint64_t cg_batch_room_(const cg_transport *t, const cg_exchange_desc *desc, size_t n, cg_joined_ *joined) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_exchange_state ex;
    cg_resolved_ resolved;
    const uint64_t bytes = cg_size_or_zero_(cg_exchange_resolve_(&ex, desc, t, n, &resolved, 0));
    if (joined) cg_joined_add_(joined, &ex);
    cg_fenv_leave_(env);
    return cg_add_sat_(bytes, 63) & ~(uint64_t)63;
}
static uint64_t cg_batch_room_of_(const cg_batch_ *p, const cg_transport *t, size_t i, cg_joined_ *joined) {
    if (i == p->count && p->packed.count) return cg_packed_room_(&p->packed, t, &p->flat_desc, p->flat_n);
    return cg_batch_room_(t, cg_batch_desc_(p, i), cg_batch_n_(p, i), joined);
}
/* Bytes of mem, which is aligned to 64; base NULL: only these. Otherwise p has the places in it, too. */
static uint64_t cg_batch_mem_plan_(
    cg_batch_ *p, const cg_layer *layers, size_t count, size_t small, const cg_transport *t, uint8_t *base) {
    const size_t before_first = (size_t)0 - 1;
    const cg_exchange_desc default_desc = CG_ZERO;
    cg_arena_ arena;
    uint64_t used = 0;
    memset(p, 0, sizeof *p);
    p->layers = layers;
    p->count = p->first_small = count;
    p->small_below = small;
    for (size_t i = 0; i < count && p->first_small == count; i++)
        if (cg_batch_is_small_(p, i)) p->first_small = i;
    for (size_t i = 0; i < count; i++)
        if (p->first_small < count && cg_batch_is_small_(p, i)) {
            p->flat_n = (size_t)cg_add_sat_(p->flat_n, layers[i].n);
            p->flat_desc.common = cg_mix64_(p->flat_desc.common ^ layers[i].desc.common);
            p->flat_desc.flags |= layers[i].desc.flags & (CG_CONFIRM | CG_TOGETHER | CG_CORRELATED | CG_FEEDS_BACK);
            if (layers[i].desc.flags & CG_ONE_PACKET) cg_packed_add_(&p->packed, &layers[i].desc, layers[i].n);
            else used = cg_add_sat_(used, cg_dense_bound_(layers[i].n));
        }
    if (p->packed.count) {
        used = p->packed.used_bytes;
        p->flat_desc.route = CG_ROUTE_ALLGATHER;
    } else p->flat_desc.flags &= ~(uint32_t)(CG_CORRELATED | CG_FEEDS_BACK);
    if (p->first_small < count) {
        p->flat_desc.fold = layers[p->first_small].desc.fold;
        p->flat_desc.weight = layers[p->first_small].desc.weight;
        p->flat_desc.tag = layers[p->first_small].desc.tag;
    }
    for (size_t i = cg_batch_next_(p, before_first); i <= count; i = cg_batch_next_(p, i)) p->exchange_count++;
    arena.base = base;
    arena.bytes = 0;
    p->opening = (cg_ex_ *)(void *)cg_arena_take_(&arena, sizeof(cg_ex_));
    p->exchanges = (cg_ex_ *)(void *)cg_arena_take_(&arena, cg_mul_sat_(p->exchange_count, sizeof(cg_ex_)));
    p->own_records = cg_arena_take_(&arena, cg_mul_sat_(p->exchange_count, CG_RECORD_BYTES_));
    p->records = cg_arena_take_(
        &arena, cg_mul_sat_((uint64_t)t->size, cg_mul_sat_(p->exchange_count, CG_RECORD_BYTES_)));
    p->flat_grad = (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, p->flat_n));
    p->contrib = cg_arena_take_(&arena, used);
    cg_packed_plan_(&p->packed, &arena);
    p->exchange_mem = cg_arena_take_(&arena, 0);
    arena.bytes = cg_add_sat_(arena.bytes, cg_batch_room_(t, &default_desc, 0, NULL)); /* for the opening */
    for (size_t i = cg_batch_next_(p, before_first); i <= count; i = cg_batch_next_(p, i))
        arena.bytes = cg_add_sat_(arena.bytes, cg_batch_room_of_(p, t, i, &p->joined));
    cg_joined_plan_(&p->joined, t, &arena);
    return arena.bytes;
}
CG_API_ size_t cg_exchange_layers_memory(
    const cg_layer *layers, size_t count, size_t small, const cg_transport *transport) {
    cg_batch_ p;
    if ((!layers && count) || !transport || cg_transport_error_(transport)) return 0;
    return cg_size_or_zero_(cg_add_sat_(cg_batch_mem_plan_(&p, layers, count, small, transport, NULL), 64));
}
/* Copies the small layers to flat_grad, and unless they keep their operators each as a dense packet to contrib, as they
   are then sent without loss. NULL: one of them has values but no x. */
static float *cg_batch_flatten_(cg_batch_ *p, cg_layer *layers) {
    const cg_op dense = cg_dense();
    size_t at = 0, used = 0, packed = 0, len;
    int none_missing = 1;
    for (size_t i = p->first_small; i < p->count; i++) {
        if (!cg_batch_is_small_(p, i)) continue;
        if (layers[i].x) memcpy(p->flat_grad + at, layers[i].x, 4 * layers[i].n);
        else none_missing &= !layers[i].n;
        if (p->packed.count) {
            cg_packed_fill_(&p->packed, packed++, &layers[i].desc, layers[i].n, &p->flat_desc);
            at += layers[i].n;
            continue;
        }
        layers[i].report.used = p->contrib + used;
        if (cg_compress_checked_(&dense, NULL, &layers[i].desc.tag, NULL, layers[i].x, NULL, layers[i].n,
                p->contrib + used, (size_t)cg_dense_bound_(layers[i].n), &len, NULL, 0) != CG_OK)
            len = 0;
        layers[i].report.used_len = len;
        at += layers[i].n;
        used += (size_t)cg_dense_bound_(layers[i].n);
    }
    return none_missing ? p->flat_grad : NULL;
}
/* Result, status and report of the exchange of the small layers to each of them. */
static void cg_batch_unflatten_(const cg_batch_ *p, cg_layer *layers, const cg_ex_ *ex) {
    const cg_fenv_ env = cg_fenv_enter_(); /* for the step of a model */
    size_t at = 0, split = 0, split_len = 0;
    cg_info info;
    /* cannot fail: it is this rank's own packet, and there is room */
    if (p->packed.count && ex->status == CG_OK &&
        cg_segments_split(NULL, ex->report.used, ex->report.used_len, p->contrib, p->packed.used_bytes, &split_len) !=
            CG_OK)
        split_len = 0;
    for (size_t i = p->first_small; i < p->count; i++) {
        const void *used = layers[i].report.used;
        size_t len = layers[i].report.used_len;
        if (!cg_batch_is_small_(p, i)) continue;
        if (p->packed.count && split < split_len && cg_inspect(p->contrib + split, split_len - split, &info) == CG_OK) {
            used = p->contrib + split;
            len = info.packet_bytes;
            split += len;
        }
        layers[i].status = ex->status;
        layers[i].report = ex->report;
        layers[i].report.used = ex->status == CG_OK ? used : NULL;
        layers[i].report.used_len = ex->status == CG_OK ? len : 0;
        if (ex->status == CG_OK && layers[i].n) {
            const cg_exchange_desc *d = &layers[i].desc;
            cg_model_step_(d, p->flat_grad + at, layers[i].n);
            if (!d->model) memcpy(d->into ? d->into : layers[i].x, p->flat_grad + at, 4 * layers[i].n);
        }
        at += layers[i].n;
    }
    cg_fenv_leave_(env);
}
static int cg_batch_rates_ok_(const cg_batch_ *p, const cg_layer *layers) {
    int ok = 1;
    for (size_t i = p->first_small; i < p->count; i++) ok &= !cg_batch_is_small_(p, i) || cg_rate_ok_(&layers[i].desc);
    return ok;
}
/* Copies how the exchange of layer i went to its report, or of the small ones (i = count) to all of theirs. Returns
   report.at as the index in the layer where it is. */
static uint64_t cg_batch_copy_outcome_(const cg_batch_ *p, cg_layer *layers, size_t i, const cg_report *report) {
    size_t start = 0; /* of layer j among the small ones */
    uint64_t found = report->at;
    for (size_t j = 0; j < p->count; j++) {
        cg_report *r = &layers[j].report;
        if (i < p->count ? j != i : !cg_batch_is_small_(p, j)) continue;
        cg_report_copy_outcome_(r, report);
        r->route = report->route;
        if (i == p->count && report->at != CG_NO_INDEX) {
            r->at = report->at >= start && report->at - start < layers[j].n ? report->at - start : CG_NO_INDEX;
            if (r->at != CG_NO_INDEX) found = r->at;
        }
        start += layers[j].n;
    }
    return found;
}
/* Records and notes that did not arrive whole are forgotten. */
static cg_status cg_batch_well_(cg_ex_ *opening) {
    cg_report ok;
    cg_report_set_(&ok, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    cg_report_copy_outcome_(&opening->report, &ok);
    return opening->status = CG_OK;
}
/* Starts all exchanges, and moves the first round: a record that says whether that went well, with a hash of all
   layers in place of the seed. */
static cg_status cg_batch_open_(cg_batch_ *p, cg_layer *layers, const cg_transport *t) {
    const size_t before_first = (size_t)0 - 1;
    const cg_exchange_desc default_desc = CG_ZERO;
    cg_ex_ *opening = p->opening;
    uint64_t hash = p->exchange_count;
    const size_t opening_bytes = (size_t)cg_batch_room_(t, &default_desc, 0, NULL);
    cg_status s, first_failure = CG_OK;
    const cg_report *first_report = NULL;
    uint64_t at, first_at = CG_NO_INDEX;
    uint8_t *mem = p->exchange_mem + opening_bytes;
    cg_fenv_ env = cg_fenv_enter_();
    size_t exchange = 0;
    float *flat = p->first_small < p->count ? cg_batch_flatten_(p, layers) : NULL;
    for (size_t i = cg_batch_next_(p, before_first); i <= p->count; i = cg_batch_next_(p, i), exchange++) {
        cg_ex_ *ex = &p->exchanges[exchange];
        const size_t room = (size_t)cg_batch_room_of_(p, t, i, NULL);
        float *grad = i < p->count ? layers[i].x : flat;
        cg_ex_init_(ex, cg_batch_desc_(p, i), t, grad, cg_batch_n_(p, i));
        ex->desc.flags |= CG_SECOND_ROUND_;
        if (i == p->count && !cg_batch_rates_ok_(p, layers)) cg_ex_fail_(ex, CG_E_ARG, t->rank, "rate must be finite");
        s = cg_ex_start_(ex, grad, mem, room);
        at = cg_batch_copy_outcome_(p, layers, i, &ex->report);
        if ((s != CG_OK || ex->status != CG_OK) && first_failure == CG_OK) {
            first_failure = s != CG_OK ? s : ex->status;
            first_report = &ex->report;
            first_at = at;
        }
        p->route = exchange == 0 || p->route == ex->plan.route ? ex->plan.route : (uint32_t)CG_ROUTE_AUTO;
        memcpy(p->own_records + exchange * CG_RECORD_BYTES_, ex->opening.record, CG_RECORD_BYTES_);
        hash = cg_mix64_(hash ^ cg_hash_bytes_(ex->opening.record + 8, 24));
        mem += room;
    }
    cg_ex_init_(opening, &default_desc, t, NULL, 0);
    s = cg_ex_start_(opening, NULL, p->exchange_mem, opening_bytes);
    cg_fenv_leave_(env);
    if (s != CG_OK) return s;
    opening->desc.tag.seed = hash;
    if (first_report) cg_ex_fail_here_(opening, first_failure, first_report->why, first_report->need, first_at);
    cg_record_put_(opening, 0, 0.0f);
    cg_allgather_equal_begin_(opening, opening->opening.record, CG_RECORD_BYTES_, opening->opening.gathered);
    s = cg_collective_wait_(opening);
    if (s == CG_E_TRANSPORT) return s;
    for (size_t q = 0; q < cg_ranks_(opening); q++)
        memcpy(opening->opening.records + q * CG_RECORD_BYTES_, cg_gathered_(opening, q), CG_RECORD_BYTES_);
    if (!cg_records_check_(opening)) return cg_batch_well_(opening); /* the next round says all of it again */
    if (opening->status == CG_E_MISMATCH)
        opening->report.why = "its layers differ: in number, length, operator, route, tag or common state";
    return opening->status;
}
/* The second round: opening records of all exchanges, and a verdict if messages of any exchange depend on them.
   Otherwise an exchange with a record that is not whole fails by itself. */
static cg_status cg_batch_records_(cg_batch_ *p) {
    cg_ex_ *opening = p->opening;
    int need_verdict = 0;
    cg_allgather_equal_begin_(opening, p->own_records, (uint64_t)p->exchange_count * CG_RECORD_BYTES_, p->records);
    if (cg_collective_wait_(opening) != CG_OK) return opening->status;
    for (size_t e = 0; e < p->exchange_count; e++) {
        cg_ex_ *ex = &p->exchanges[e];
        for (size_t q = 0; q < cg_ranks_(ex); q++) {
            const uint8_t *r = cg_gathered_(opening, q) + e * CG_RECORD_BYTES_;
            memcpy(ex->opening.records + q * CG_RECORD_BYTES_, r, CG_RECORD_BYTES_);
            if (!cg_record_is_whole_(ex, r, (int)q))
                cg_ex_fail_(opening, CG_E_CORRUPT, (int)q, "its opening record did not arrive intact");
        }
        ex->opening.in_batch = 1;
        need_verdict |= cg_records_need_verdict_(ex);
    }
    if (!need_verdict) return cg_batch_well_(opening);
    cg_verdict_begin_(opening, CG_ROUND_OPENING_);
    if (cg_collective_wait_(opening) == CG_E_TRANSPORT) return opening->status;
    return cg_verdict_read_(opening, CG_ROUND_OPENING_);
}
/* The closing of all exchanges with CG_CONFIRM that have come so far: a note for each. */
static cg_status cg_batch_close_(cg_batch_ *p) {
    cg_ex_ *opening = p->opening;
    int confirm = 0;
    for (size_t e = 0; e < p->exchange_count; e++) {
        const cg_ex_ *ex = &p->exchanges[e];
        confirm |= (ex->desc.flags & CG_CONFIRM) != 0;
        cg_note_put_(ex, p->own_records + e * CG_NOTE_BYTES_, 0, 0, CG_ROUND_CLOSING_ | CG_ROUND_VERDICT_);
    }
    if (!confirm) return CG_OK;
    cg_allgather_equal_begin_(opening, p->own_records, (uint64_t)p->exchange_count * CG_NOTE_BYTES_, p->records);
    if (cg_collective_wait_(opening) != CG_OK) return opening->status;
    for (size_t e = 0; e < p->exchange_count; e++)
        for (int q = 0; q < opening->transport.size; q++)
            if (p->exchanges[e].co.phase == CG_PHASE_CLOSING_)
                cg_verdict_hear_(
                    &p->exchanges[e], cg_gathered_(opening, (size_t)q) + e * CG_NOTE_BYTES_, CG_ROUND_CLOSING_, q);
    return CG_OK;
}
/* With CG_TOGETHER, an exchange that has failed is the failure of all that wait to be written; all ranks know of it. */
static void cg_batch_fail_together_(cg_batch_ *p) {
    const cg_ex_ *failed = NULL;
    int together = 0;
    for (size_t e = 0; e < p->exchange_count; e++) {
        together |= (p->exchanges[e].desc.flags & CG_TOGETHER) != 0;
        if (!failed && p->exchanges[e].status != CG_OK) failed = &p->exchanges[e];
    }
    for (size_t e = 0; together && failed && e < p->exchange_count; e++)
        if (p->exchanges[e].co.phase == CG_PHASE_CLOSING_ && p->exchanges[e].status == CG_OK)
            cg_ex_fail_(&p->exchanges[e], failed->status, failed->report.rank, failed->report.why);
}
/* Ends the exchange of layer i, or of the small ones, and reports it. */
static void cg_batch_finish_(cg_batch_ *p, cg_layer *layers, size_t i, cg_ex_ *ex) {
    cg_report *all = &p->opening->report;
    if (ex->co.phase == CG_PHASE_CLOSING_) {
        const cg_fenv_ env = cg_fenv_enter_();
        cg_ex_finish_(ex, ex->status);
        cg_fenv_leave_(env);
    }
    if (i == p->count) cg_batch_unflatten_(p, layers, ex);
    else {
        layers[i].status = ex->status;
        layers[i].report = ex->report;
    }
    all->bytes_out += ex->report.bytes_out;
    all->bytes_in += ex->report.bytes_in;
    all->rounds += ex->report.rounds;
}
/* The second round, then all exchanges; the first failure is returned, and only a failed callback ends the rest. */
static cg_status cg_batch_exchange_(cg_batch_ *p, cg_layer *layers) {
    const size_t before_first = (size_t)0 - 1;
    cg_ex_ *opening = p->opening, *failed_callback = NULL;
    size_t moved = 0, exchange = 0;
    int has_warning = 0;
    cg_io io;
    cg_status s = cg_batch_records_(p), verdict = CG_OK;
    if (s == CG_OK) s = cg_joined_run_(&p->joined, opening, p->exchanges, p->exchange_count);
    if (s != CG_OK) return s;
    for (; moved < p->exchange_count && !failed_callback; moved++) {
        cg_ex_ *ex = &p->exchanges[moved];
        int code = 0;
        if (ex->opening.joined) continue;
        while ((s = cg_exchange_next(ex, code, &io)) == CG_AGAIN) code = cg_io_run(&ex->transport, &io);
        if (s == CG_E_TRANSPORT) failed_callback = ex;
    }
    if (!failed_callback && cg_batch_close_(p) == CG_E_TRANSPORT) failed_callback = opening;
    if (!failed_callback) cg_batch_fail_together_(p);
    for (size_t i = cg_batch_next_(p, before_first); i <= p->count; i = cg_batch_next_(p, i), exchange++) {
        cg_ex_ *ex = &p->exchanges[exchange];
        if (ex->co.phase < CG_PHASE_CLOSING_) continue;             /* behind the one whose callback has failed */
        if (failed_callback && ex->co.phase == CG_PHASE_CLOSING_) { /* it cannot be confirmed */
            cg_ex_fail_(ex, CG_E_TRANSPORT, failed_callback->report.rank, cg_status_str(CG_E_TRANSPORT));
            ex->report.code = failed_callback->report.code;
        }
        cg_batch_finish_(p, layers, i, ex);
        if (verdict != CG_OK || (ex->status == CG_OK && (!ex->plan.warning || has_warning))) continue;
        has_warning = ex->status == CG_OK;
        verdict = ex->status;
        cg_report_copy_outcome_(&opening->report, &ex->report);
    }
    return verdict;
}
/* cg_exchange_layers; layers that keep the status CG_E_STATE have not been exchanged. */
static cg_status cg_exchange_layers_(cg_layer *layers, size_t count, size_t small, const cg_transport *transport,
    void *mem, size_t bytes, cg_report *report) {
    const size_t align_skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    const cg_exchange_desc default_desc = CG_ZERO;
    uint64_t need;
    cg_batch_ p;
    cg_status s;
    if (cg_transport_error_(transport)) {
        report->why = cg_transport_error_(transport);
        return CG_E_ARG;
    }
    need = cg_batch_mem_plan_(&p, layers, count, small, transport, NULL);
    if (!mem || bytes < align_skip || bytes - align_skip < need) {
        s = cg_exchange_no_memory_(&default_desc, transport, NULL, 0, CG_OK, report);
        if (report->status != CG_E_MEMORY) return s; /* a callback's failure is told instead */
        report->why = "mem is too small: cg_exchange_layers_memory gives its bytes";
        report->need = cg_add_sat_(need, 64);
        return s;
    }
    cg_batch_mem_plan_(&p, layers, count, small, transport, (uint8_t *)mem + align_skip);
    s = cg_batch_open_(&p, layers, transport);
    if (s == CG_OK) s = cg_batch_exchange_(&p, layers);
    *report = p.opening->report;
    report->route = p.route;
    return s;
}
CG_API_ cg_status cg_exchange_layers(cg_layer *layers, size_t count, size_t small, const cg_transport *transport,
    void *mem, size_t bytes, cg_report *report) {
    cg_report own;
    cg_status s;
    if (!report) report = &own;
    cg_report_set_(report, CG_E_ARG, "layers or transport is NULL", 0, CG_NO_INDEX);
    if (!layers && count) return CG_E_ARG;
    for (size_t i = 0; i < count; i++) {
        cg_report_set_(&layers[i].report, CG_OK, NULL, 0, CG_NO_INDEX);
        layers[i].status = CG_E_STATE;
    }
    s = transport ? cg_exchange_layers_(layers, count, small, transport, mem, bytes, report) : CG_E_ARG;
    for (size_t i = 0; i < count; i++) {
        if (layers[i].status != CG_E_STATE) continue;
        layers[i].status = s;
        layers[i].report.used = NULL;
        layers[i].report.used_len = 0;
        if (layers[i].report.status != CG_OK) continue;
        cg_report_copy_outcome_(&layers[i].report, report); /* the trouble is with another layer, or with all */
        if (s != CG_E_MEMORY) layers[i].report.need = 0;    /* mem is that of all */
        layers[i].report.at = CG_NO_INDEX;
    }
    return s;
}
CG_API_ cg_status cg_used_decode(
    const cg_extra *side, const void *used, size_t len, float alpha, float beta, float *y, size_t n) {
    const uint8_t *p = (const uint8_t *)used;
    size_t at = 0, done = 0;
    cg_decoder_ d;
    cg_info info;
    const float *values = used ? cg_reference_get_(p, len, n) : NULL;
    cg_status s = used || !len ? CG_OK : CG_E_ARG;
    if (values && n) {
        const cg_fenv_ env = cg_fenv_enter_();
        cg_axpby_(values, n, alpha, beta, y);
        cg_fenv_leave_(env);
    }
    if (values) return CG_OK;
    /* checks all packets before y changes */
    for (; at < len && s == CG_OK; at += info.packet_bytes, done += (size_t)info.n) {
        s = cg_packet_header_(&d, p + at, len - at, NULL, NULL);
        info = d.info;
        if (s == CG_OK && info.n > n - done) s = CG_E_MISMATCH;
        if (s == CG_OK && info.packet_bytes > len - at) s = CG_E_CORRUPT;
        if (s == CG_OK) s = cg_packet_open_(&d, side, p + at, info.packet_bytes, 1);
    }
    if (s == CG_OK && done != n) s = CG_E_MISMATCH;
    for (at = done = 0; at < len && s == CG_OK; at += info.packet_bytes, done += (size_t)info.n) {
        s = cg_inspect(p + at, len - at, &info);
        if (s == CG_OK) s = cg_decode(side, p + at, info.packet_bytes, alpha, beta, n ? y + done : y, (size_t)info.n);
    }
    return s;
}

/* src/exchange/levels.h */
/* levels: a mean over ranks of ranks: inside a node by one transport and operator, between nodes by another

   Offers   cg_exchange_levels, cg_exchange_levels_memory
   Needs    exchange (both legs of scatter), memory (cg_arena_)
   Touches  x, residual and carry of both descriptions, the caller's mem
   Every rank takes part in all four exchanges, also after one has failed, so that nobody waits: the fold of its stripe
   inside the node; the exchange of that stripe with the ranks of its number in other nodes; the stripes of the node
   back to all; and, with CG_CONFIRM, a vector of no values that tells other nodes how it went. What the caller owns is
   written after the last of them. */

typedef struct cg_nodes_ {
    cg_exchange_desc first, across, last, closing;
    size_t begin, mine_n;   /* this rank's stripe */
    size_t across_carry;    /* floats of outer->carry */
    uint64_t exchange_room; /* bytes of mem.exchange */
    cg_report refusal;      /* what is wrong with the descriptions; its status is CG_OK if nothing is */
    /* in mem: */
    float *input;                   /* x + residual; x itself without a residual */
    float *mine, *compensated;      /* the stripe: its fold; with outer->residual added */
    float *result;                  /* n floats, until all is well */
    float *across_kept, *last_kept; /* carries as they were */
    uint8_t *exchange;
} cg_nodes_;

static const char *cg_nodes_refused_(const cg_exchange_desc *inner, const cg_exchange_desc *outer) {
    if (inner->weight != 0.0f || outer->weight != 0.0f || inner->fold || outer->fold)
        return "levels take the mean over ranks of equal weight: fold and weight must be 0 in both descriptions";
    if (inner->model || outer->model || inner->into || outer->into || inner->warm || outer->warm)
        return "levels write to x: into, model and warm must be NULL in both descriptions";
    if (inner->route) return "inside a node levels use both legs of scatter: route must be 0 in the inner description";
    return NULL;
}
/* What each of the four exchanges is. Ranks of one number in different nodes round by different seeds, since their
   errors meet in one mean; the way back has the same one, so that all nodes end with the same bits. */
static void cg_nodes_describe_(cg_nodes_ *v, const cg_exchange_desc *inner, const cg_transport *node,
    const cg_exchange_desc *outer, const cg_transport *across, size_t n) {
    const cg_exchange_desc none = CG_ZERO;
    const uint32_t confirm = (inner->flags | outer->flags) & CG_CONFIRM;
    const uint64_t shape = (uint64_t)(uint32_t)node->size << 32 | (uint32_t)node->rank;
    cg_report_set_(&v->refusal, CG_OK, cg_nodes_refused_(inner, outer), 0, CG_NO_INDEX);
    if (v->refusal.why) v->refusal.status = CG_E_UNSUPPORTED;
    v->begin = cg_stripe_begin(n, node->size, node->rank);
    v->mine_n = cg_stripe_begin(n, node->size, node->rank + 1) - v->begin;
    v->first = *inner;
    v->first.route = CG_ROUTE_REDUCE_SCATTER;
    v->first.tag.seed = cg_mix64_(inner->tag.seed ^ cg_mix64_((uint64_t)(uint32_t)across->rank + CG_GOLDEN_));
    v->first.back = NULL;
    v->first.carry = v->first.residual = NULL;
    v->first.flags |= confirm | (inner->residual ? (uint32_t)CG_FEEDS_BACK : 0u);
    v->across = *outer;
    v->across.residual = NULL;
    v->across.tag.seed = cg_mix64_(outer->tag.seed ^ cg_mix64_(shape + CG_GOLDEN_));
    v->across.common ^= cg_mix64_(shape);
    v->across.flags |= confirm | (outer->residual ? (uint32_t)CG_FEEDS_BACK : 0u);
    v->last = none;
    v->last.op = inner->back ? *inner->back : cg_dense();
    v->last.route = CG_ROUTE_ALL_GATHER;
    v->last.tag = inner->tag;
    v->last.carry = inner->carry;
    v->last.flags = confirm;
    v->closing = none;
    v->closing.route = CG_ROUTE_ALLGATHER;
    v->closing.tag = outer->tag;
    v->closing.tag.seed = cg_mix64_(outer->tag.seed + CG_GOLDEN_);
    v->closing.flags = confirm;
}
/* Bytes of mem for one of the exchanges; 0: it is refused, and v->refusal says why. */
CG_NOINLINE_ uint64_t cg_nodes_room_(cg_nodes_ *v, const cg_exchange_desc *desc, const cg_transport *t, size_t n) {
    cg_exchange_state ex;
    cg_resolved_ resolved;
    const uint64_t room = cg_exchange_resolve_(&ex, desc, t, n, &resolved, 0);
    if (ex.status == CG_OK) return room;
    v->refusal = ex.report;
    return 0;
}
/* Bytes of mem, which is aligned to 64. base: where it begins, or NULL. 0: some exchange is refused. */
static uint64_t cg_nodes_plan_(cg_nodes_ *v, const cg_exchange_desc *inner, const cg_transport *node,
    const cg_exchange_desc *outer, const cg_transport *across, size_t n, uint8_t *base) {
    const uint64_t room[4] = { cg_nodes_room_(v, &v->first, node, n), cg_nodes_room_(v, &v->across, across, v->mine_n),
        cg_nodes_room_(v, &v->last, node, n), cg_nodes_room_(v, &v->closing, across, 0) };
    cg_arena_ arena;
    v->exchange_room = 0;
    for (int i = 0; i < 4; i++) {
        if (!room[i]) return 0;
        cg_max_update_(&v->exchange_room, room[i]);
    }
    v->across_carry = outer->carry ? cg_exchange_carry(&v->across, across, v->mine_n) : 0;
    arena.base = base;
    arena.bytes = 0;
    v->input = (float *)(void *)cg_arena_take_(&arena, inner->residual ? cg_mul_sat_(4, n) : 0);
    v->mine = (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, v->mine_n) + 4);
    v->compensated = (float *)(void *)cg_arena_take_(&arena, outer->residual ? cg_mul_sat_(4, v->mine_n) + 4 : 0);
    v->result = (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, n) + 4);
    v->across_kept = (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, v->across_carry));
    v->last_kept = (float *)(void *)cg_arena_take_(&arena, inner->carry ? cg_mul_sat_(4, v->mine_n) : 0);
    v->exchange = cg_arena_take_(&arena, v->exchange_room);
    return arena.bytes;
}
/* One of the exchanges, with what went wrong before, if anything; *report adds it up, and has the first failure. */
static cg_status cg_nodes_run_(const cg_nodes_ *v, const cg_exchange_desc *desc, const cg_transport *t, float *x,
    size_t n, cg_status status, cg_report *report, cg_report *one) {
    const cg_status s = cg_exchange_or_fail_(
        desc, t, x, n, v->exchange, v->exchange ? (size_t)v->exchange_room : 0, status, one);
    const uint64_t bytes_out = report->bytes_out + one->bytes_out, bytes_in = report->bytes_in + one->bytes_in;
    const uint32_t rounds = report->rounds + one->rounds;
    if (status == CG_OK && (s != CG_OK || desc == &v->across)) *report = *one;
    report->bytes_out = bytes_out;
    report->bytes_in = bytes_in;
    report->rounds = rounds;
    report->used = NULL;
    report->used_len = 0;
    return status != CG_OK ? status : s;
}
static void cg_nodes_copy_(float *to, const float *from, size_t n) {
    if (n) memcpy(to, from, 4 * n);
}
/* v = x + residual, or a copy of x. */
static void cg_nodes_add_(float *v, const float *x, const float *residual, size_t n) {
    cg_fenv_ env;
    if (!n) return;
    env = cg_fenv_enter_();
    memcpy(v, x, 4 * n);
    cg_axpby_(residual, n, 1.0f, 1.0f, v);
    cg_fenv_leave_(env);
}
/* All four. Residuals and carries of the caller may have changed afterwards if they are kept in v. */
static cg_status cg_nodes_exchange_(cg_nodes_ *v, const cg_exchange_desc *inner, const cg_transport *node,
    const cg_exchange_desc *outer, const cg_transport *across, const float *x, size_t n, cg_status s,
    cg_report *report) {
    cg_report one;
    float *input = (float *)(uintptr_t)x; /* only read: the fold goes to mine */
    if (s == CG_OK && inner->residual) cg_nodes_add_(input = v->input, x, inner->residual, n);
    v->first.mine = v->mine;
    s = cg_nodes_run_(v, &v->first, node, input, n, s, report, &one);
    if (s == CG_OK && inner->residual)
        s = cg_used_decode(inner->side, one.used, one.used_len, -1.0f, 1.0f, v->input, n);
    if (s == CG_OK && outer->residual) {
        cg_nodes_add_(v->compensated, v->mine, outer->residual, v->mine_n);
        v->across.into = v->mine;
    }
    s = cg_nodes_run_(v, &v->across, across, outer->residual ? v->compensated : v->mine, v->mine_n, s, report, &one);
    if (s == CG_OK && outer->residual)
        s = cg_used_decode(outer->side, one.used, one.used_len, -1.0f, 1.0f, v->compensated, v->mine_n);
    v->last.mine = v->mine;
    s = cg_nodes_run_(v, &v->last, node, v->result, n, s, report, &one);
    if (v->closing.flags) s = cg_nodes_run_(v, &v->closing, across, NULL, 0, s, report, &one);
    return s;
}
CG_API_ size_t cg_exchange_levels_memory(const cg_exchange_desc *inner, const cg_transport *node,
    const cg_exchange_desc *outer, const cg_transport *across, size_t n) {
    cg_nodes_ v;
    cg_fenv_ env;
    uint64_t bytes;
    if (!inner || !node || !outer || !across || cg_transport_error_(node) || cg_transport_error_(across)) return 0;
    env = cg_fenv_enter_();
    cg_nodes_describe_(&v, inner, node, outer, across, n);
    bytes = v.refusal.status ? 0 : cg_nodes_plan_(&v, inner, node, outer, across, n, NULL);
    cg_fenv_leave_(env);
    return bytes ? cg_size_or_zero_(cg_add_sat_(bytes, 64)) : 0;
}
CG_API_ cg_status cg_exchange_levels(const cg_exchange_desc *inner, const cg_transport *node,
    const cg_exchange_desc *outer, const cg_transport *across, float *x, size_t n, void *mem, size_t bytes,
    cg_report *report) {
    const size_t skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    cg_nodes_ v;
    cg_report ours;
    uint64_t need;
    cg_status s = CG_OK;
    if (!report) report = &ours;
    cg_report_set_(report, CG_E_ARG, "a description or a transport is NULL", 0, CG_NO_INDEX);
    if (!inner || !node || !outer || !across) return CG_E_ARG;
    if (cg_transport_error_(node) || cg_transport_error_(across)) {
        report->why = cg_transport_error_(node) ? cg_transport_error_(node) : cg_transport_error_(across);
        return CG_E_ARG;
    }
    cg_nodes_describe_(&v, inner, node, outer, across, n);
    need = v.refusal.status ? 0 : cg_nodes_plan_(&v, inner, node, outer, across, n, NULL);
    v.exchange = NULL;
    cg_report_set_(report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    if (v.refusal.status) *report = v.refusal;
    else if (!x && n) cg_report_set_(report, CG_E_ARG, "x is NULL", 0, CG_NO_INDEX);
    else if ((!mem || bytes < skip || bytes - skip < need))
        cg_report_set_(
            report, CG_E_MEMORY, "mem is too small: cg_exchange_levels_memory gives its bytes", need + 64, CG_NO_INDEX);
    s = (cg_status)report->status;
    if (s != CG_OK) report->rank = node->rank;
    else cg_nodes_plan_(&v, inner, node, outer, across, n, (uint8_t *)mem + skip);
    if (s == CG_OK) {
        cg_nodes_copy_(v.across_kept, outer->carry, v.across_carry);
        if (inner->carry) cg_nodes_copy_(v.last_kept, inner->carry, v.mine_n);
    }
    s = cg_nodes_exchange_(&v, inner, node, outer, across, x, n, s, report);
    if (!v.exchange) return s;
    if (s == CG_OK) {
        if (inner->residual) cg_nodes_copy_(inner->residual, v.input, n);
        if (outer->residual) cg_nodes_copy_(outer->residual, v.compensated, v.mine_n);
        cg_nodes_copy_(x, v.result, n);
    } else {
        cg_nodes_copy_(outer->carry, v.across_kept, v.across_carry);
        if (inner->carry) cg_nodes_copy_(inner->carry, v.last_kept, v.mine_n);
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
#if defined(COMPGRAD_ONLY) && defined(__GNUC__)
#  pragma GCC diagnostic pop
#endif

/* src/core/base/end.h */
/* end: closes the implementation that begin.h of the same header opened

   Offers   the #endif
   Needs    begin
   Touches  nothing */
#endif /* COMPGRAD_IMPLEMENTATION */
