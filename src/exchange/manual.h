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
