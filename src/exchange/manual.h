/* compgrad_exchange.h - the mean of everybody's gradient, over your own transport.   part of compgrad, MIT licence

       #define COMPGRAD_IMPLEMENTATION                  // in exactly one .c or .cpp file
       #include "compgrad_exchange.h"                   // brings compgrad.h with it

       cg_transport t = CG_ZERO;                        // who am I, and how do bytes move?
       t.rank = rank; t.size = ranks; t.user = &my_sockets;
       t.sendrecv = my_sendrecv;                        // one callback is enough; what is NULL is built from what is there

       cg_exchange_desc d = CG_ZERO;                    // zero = default
       d.op = cg_topk(0.01f);
       d.tag.seed = 42; d.tag.step = step;

       size_t bytes = cg_exchange_memory(&d, &t, n);
       void *mem = malloc(bytes);                       // once; every step uses it again
       cg_report report;
       cg_status s = cg_exchange(&d, &t, grad, n, mem, bytes, &report);
       if (s != CG_OK) printf("rank %d: %s\n", report.rank, report.why);
       // grad is now the mean over ranks of what top-k kept of each, the same bits on every rank

   An exchange compresses x with desc.op, moves packets along a route and decodes what comes back: x := the fold (mean, sum, vote)
   over ranks of C(x). It never moves a byte itself: it asks for one message after the other (cg_io), and cg_exchange hands them
   to your callbacks. People with non-blocking calls or a communication thread drive it themselves:

       cg_exchange_state e; cg_io io; int code = 0;
       s = cg_exchange_start(&e, &d, &t, grad, n, mem, bytes);                  // compresses; no I/O yet
       while ((s = cg_exchange_next(&e, code, &io)) == CG_AGAIN) code = cg_io_run(&t, &io);     // or your own way to move it

   TRANSPORT. Any of the four callbacks may be NULL. Broadcast, allgather and allreduce are built from whatever is there (trees,
   Bruck's allgather, a ring over sendrecv; an allreduce alone carries bytes as exact sums). Point-to-point routes (ring, tree,
   scatter, merge, region) need sendrecv, and say so. Packets of different length need no allgatherv. An allreduce whose bits may
   differ between ranks is not relied upon: say CG_ALLREDUCE_AGREES if yours does not. N may be any number from 1.

   ROUTES, N ranks, L bytes a packet of the whole vector, c floats of a sample; bytes that a rank sends, beside headers and notes
     allgather   any operator. Every packet to everybody, added in rank order                        (N-1) L
     ring        stripes travel once around, decoded, added to and encoded again at every hop         2 (N-1)/N L
     tree        the same up a binomial tree, and back                                                L log2 N at the root
     scatter     every stripe to its owner, which adds and encodes the sum (back); CGX, qgZ, 1-bit    2 (N-1)/N L
     server      packets to the leader (rank 0); back: the exact sum, or desc.back of the mean         L; the leader N-1 or log2 N times its answer
     merge       gTop-k: two packets become the k largest of their sum, up a tree; what a rank drops there it keeps (used)
     shared      AR-Top-k: the leader's indices, everybody's values by allreduce                      L of indices + 2 (N-1)/N 4 k
     region      Ok-Topk: every owner sums a region with about as many indices as any other, and the k largest of all survive
     linear      an allreduce of f32 values: dense, random-k, rotations; low-rank in two rounds (PowerSGD)   2 (N-1)/N 4 c
     auto        f32 without selection or low-rank: linear. Selections: allgather, unless that sends more than twice the dense
                 vector: scatter. Quantizers: scatter if there are more than two ranks, it may be encoded twice, and packets are
                 not small (64 KiB in all); otherwise allgather.

   Encoding what was decoded and added loses something at every hop, and nobody remembers it. So ring, tree, scatter and the
   server's answer are for operators whose sums are exact (f32 values; levels of agreed scales) or which are unbiased, or with
   desc.carry, which remembers; all others are refused (CG_E_UNSUPPORTED, and report.why says it).

   WHAT COUNTED. report.used is a packet, or several one after the other that cover x from left to right: D(used) is what of this
   rank's x went into the result (cg_used_decode). On every route that takes a mean:
       sum over ranks of D(used) + N * (sum of carries before - after) = N * mean           (to rounding; with weights: w D(used), W)
   Subtract D(used) from what you put in and you have the error to feed back.

   ERRORS. The first round tells everybody the status, length, n, operator and tag of everybody: if any rank has failed (NaN, bad
   argument) or does not match, all of them return an error in the same step: that rank its own, the others CG_E_PEER or
   CG_E_MISMATCH with the rank in the report. A corrupt or foreign packet names its sender, and is passed on as a failure, so that
   nobody waits. After a callback's non-zero return (CG_E_TRANSPORT, report.code) this rank stops. x, carry, warm and model are
   written only after the last message. When only the very last message is lost ranks may disagree about success; the step in the tag
   exposes that at the next exchange.

   MEMORY. cg_exchange_memory() bytes, no allocation. Results are the same bits on every rank, whatever its CPU or byte order.

   THE OPENING RECORD, 64 bytes, little-endian: "cgx1", status u32, n u64, hash of operators, route, fold and ranks u64, hash of
   the tag u64, packet bytes u64, weight f32, score f32, largest scale f32, 0, and a hash of all that u64. A rank that failed later
   sends "cgno", status u32, rank u32 and zeros in place of a packet. A note (where a length is not known) is length u64, status
   u32, and the rank that failed u32, or if none has a check of what ranks have counted together (region), else 0. */
