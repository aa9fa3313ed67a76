/* compgrad_sync.h - who talks to whom, and when: local SGD and gossip.   part of compgrad, MIT licence

       #define COMPGRAD_IMPLEMENTATION                  // in exactly one .c or .cpp file
       #include "compgrad_sync.h"                       // includes compgrad_ef.h, compgrad_exchange.h and compgrad.h

   WHAT GOES WITH WHAT. Who talks to whom (rows), and when (columns); by which call:

                        every step, all wait           every tau-th step             without waiting
     server, workers    CG_ROUTE_SERVER; with carry    cg_local by that route        -
                        and back DoubleSqueeze
     all to all         every other route              cg_local: local SGD,          cg_local with delay: averages
                                                       DiLoCo, SparseLoCo            arrive while training goes on
     neighbours         cg_gossip: D-SGD, DCD,         cg_gossip with D-SGD after    cg_pair (AD-PSGD)
                        DeepSqueeze, CHOCO             tau steps of your own
     one direction      cg_gossip: PUSH_SUM            -                             -

   Any operator goes with any place, but: D-SGD sends models as they are; DCD is refused above omega of its graph;
   DeepSqueeze and PUSH_SUM need several bits; pairs and CHOCO need operators that do not expand. Error feedback (cg_ef)
   is for servers and all-to-all exchanges; gossip has its own memory.

   GOSSIP. Every node keeps a model x of its own, and in a step mixes it with those of its neighbours: no node hears
   of all, and none waits for more than its neighbours.

       cg_graph_desc r = CG_ZERO;                       // a ring
       r.kind = CG_GRAPH_RING; r.nodes = transport.size;
       status = cg_graph_init(&graph, &r, room, cg_graph_memory(&r), why, sizeof why);
       cg_gossip_desc d = CG_ZERO;
       d.kind = CG_GOSSIP_CHOCO; d.op = cg_nearest(cg_absmax(2, 256)); d.eta = 0.4f; d.n = n;
       d.graph = &graph; d.rank = transport.rank;
       status = cg_gossip_init(&gossip, &d, x, state, cg_gossip_memory(&d));
       ... in every step:
       status = cg_gossip_step(&gossip, &transport, x, grad, rate, step, &report);

     kind                sends                     x becomes                                       state, floats
     DSGD                y = x - rate g            sum of W_ij y_j (adapt, then combine)           0
     DSGD_COMBINE_FIRST  x                         sum of W_ij x_j - rate g                        0
     NAIVE               C(x)                      sum of W_ij D_j - rate g: stalls                0
     DCD                 C(z), z = sum of W_ij     x + D                                           n: sum W_ij x_j
                         (x_j - x) - rate g
     DEEPSQUEEZE         C(v), v = y + delta       y + eta sum of W_ij (D_j - D), delta = v - D    2 n
     CHOCO               C(y - h)                  y + eta sum of W_ij (h_j - h), h = h + D        2 n: h, sum W_ij h_j
     PUSH_SUM            C(u / (out + 1)), and     u / w; u = x0 at first, u - rate g, less what   n: u
                         w / (out + 1)             was sent and with what was heard

   g is the gradient, C an operator, D what its packet decodes to, out the number of those that i sends to. The mean
   of x (of u) moves by -rate times the mean of gradients and nothing else, to rounding, but for NAIVE and DCD, which
   add the errors of the operator. DCD needs an operator with omega of at most cg_graph_omega, and is refused beyond.
   eta: .4 for 2 bits to nearest, .05 for top-k of 1 % (a larger one diverges). DEEPSQUEEZE sends models, not
   differences: with 2 bits the mean is good, but local models end at a distance in proportion to eta; top-k fails.
   PUSH_SUM needs an operator that loses little, 8 bits; while a node hears of nobody its w falls, and it takes steps
   of rate / w. On the pinned problem of the tests (ring of 8, 3,000 steps) (f - f*) / (f(0) - f*) of the mean model
   is 2.5e-4 for D-SGD, 2.8e-4 for DCD with 4 bits, 3.4e-4 for CHOCO with 2 and 2.2e-3 with top-k of 1 %, 9.5e-4 for
   DEEPSQUEEZE with 2, and .25 for NAIVE with 4.

   MEETING. Two neighbours exchange a note of 96 bytes each way, then a packet each way. Nodes meet in one order of
   edges, so that no schedule makes them wait in a circle; transports need sendrecv. One-peer graphs are met by a shift.
   NODES THAT ARE AWAY. With CG_GOSSIP_TOLERATE a neighbour that cannot be met is left out of the step on both sides, so
   that W stays symmetric and its rows add up to 1; DCD and CHOCO then keep a replica of each neighbour, n floats
   each, in place of the sum. Notes carry the name of what each holds of the other: after an absence, or a start
   without a saved state, one dense packet each way makes replicas equal again. A message that is lost on one side
   alone is seen at the next meeting, but in that step one of the two has mixed and the other has not. A transport
   that ends all links after one failure does not go with this flag.
   MEMORY of cg_gossip: its state above, 8 n bytes for a step (12 n DEEPSQUEEZE), room for two packets, and scratch
   of the operator; for DCD and with replicas of CHOCO also 4 n for a dense packet out, and the incoming one may be
   dense.

   PAIRS (AD-PSGD). cg_pair is a machine that is fed, without steps in common: cg_pair_ask begins an average with one
   other node, cg_pair_next gives messages to send by any means, cg_pair_feed takes those that arrive, and
   cg_pair_gradient may be called at any time. The node that is asked answers with C(d), d the difference of both
   models, and both take half of D: the sum of models changes by gradients alone, and nobody
   waits, so that there is no deadlock. Operators that lose part of a difference suit (top-k, nearest, unscaled
   samples), those that make it larger do not. A question that is lost, or whose answer is, is asked again with the same
   serial after desc.patience, and answered with the same bytes. Memory: 8 n bytes, one dense packet, and room for
   one answer per node.

   LOCAL SGD. Every rank trains a model x of its own, and calls cg_local_step after every step. Where an average is due,
   delta = anchor - x goes through error feedback and any operator and route (cg_ef_exchange), and the anchor takes an
   outer step by the mean of all deltas; x becomes the anchor, and training goes on from there.

       cg_local_desc d = CG_ZERO;                       // DiLoCo: 500 steps apart, Nesterov momentum outside
       d.ef.op = cg_dense(); d.ef.n = n; d.period = 500;
       d.outer_rate = 0.7f; d.outer_momentum = 0.9f; d.nesterov = 1;
       status = cg_local_init(&local, &d, x, state, cg_local_memory(&d));
       ... train x for one step; then, step counting from 0:
       status = cg_local_step(&local, &exchange, &transport, x, step, mem, bytes, &report);

     local SGD                  period, op dense; CG_LOCAL_MODELS averages models in place of deltas
     Qsparse-local-SGD          any operator, such as cg_qsparse, with error feedback
     post-local SGD             switch_step: before it, every step is averaged
     growing periods            table: from which step on which period
     momentum averaging         cg_local_average, beside cg_local_step, for the optimizer's own vectors
     DiLoCo                     outer_rate .7, outer_momentum .9, nesterov, about 500 steps: u = .9 u + D,
                                anchor -= .7 (D + .9 u), D the mean of deltas
     SparseLoCo                 op chunked:C:r|absmax:4:64:nearest, ef.decay .95, outer_rate alone: the memory fades
     Streaming DiLoCo           fragments, delay (an average reaches the model so many steps after its start), mix
     BSP                        period 1, op dense: x is then what a plain exchange makes of it, bit for bit

   Of each fragment anchor_0 - anchor_T + mean e = sum of the means of deltas (outer_rate 1, no momentum, decay 1), e
   the residuals: nothing is lost, whatever fails. Memory: 8 n bytes (anchor, delta), 4 n more with outer momentum,
   and that of the error feedback. With a delay, averages are sent where they start; only what they do to x comes later.

   GRAPHS. A graph says which nodes are neighbours, and with which weights W they mix their models. W is symmetric, no
   weight is negative, and every row adds up to 1. What is computed of it (cg_graph_gap, cg_graph_omega) is computed in
   cg_graph_init: a graph is constant afterwards, and threads may share it.

     kind          neighbours of node i of N                                 weights
     RING          i - 1, i + 1                                              1/3
     COMPLETE      all others                                                1/N
     STAR          node 0, or all others for node 0                          1/N
     TORUS         left, right, above, below, in `rows` rows                 1/5
     HYPERCUBE     numbers that differ in one bit; N is a power of 2         1/(log2 N + 1)
     EXPONENTIAL   i + 2^k and i - 2^k                                       1/(number of neighbours + 1)
     ONE_PEER      at step t: hears of i - 2^(t mod ceil(log2 N))            1/2
     EDGES         those of your list                                        1/(1 + the larger of both degrees)

   The weights above are those of Metropolis and Hastings; where neighbours coincide (a ring of 2) there is one. With
   desc.weights you give W yourself: its entries that are not 0 are the edges, or must lie on the edges of kind. With
   desc.directed an edge { a, b } leads from a to b only; such graphs are for CG_GOSSIP_PUSH_SUM, and every node must be
   reached from every other.

   cg_graph_gap is 1 - rho, where rho is the largest magnitude of an eigenvalue of W beside the 1, to relative 1e-6: by
   closed forms for named kinds, by a dense solver up to 512 nodes, and by the Lanczos method above, which gives -1 if
   the error that it estimates is larger than that. Distances from the mean shrink by rho per step in the end. For
   ONE_PEER it is the mean rate over a period: 1 means that the mean is exact after one period.
   cg_graph_omega is the largest variance w of an operator, E|C(x) - x|^2 <= w |x|^2, with which DCD is stable in the
   mean square: 1/spectral radius of G, where G_ij is the sum over t >= 0 of ([(W - I) W^t]_ij)^2. -1: not known (more
   than 512 nodes of EDGES or with weights, ONE_PEER, directed). One node alone survives any: 1e300.
   cg_graph_init takes up to a few seconds for 512 nodes of EDGES or with weights, milliseconds for others.

   SERVERS. cg_server is a machine that is fed messages and a clock, and says what to send; it does no I/O, starts no
   thread and allocates nothing. Its workers have a cg_client each, with error feedback and a copy of the model.

       cg_server_feed(&server, now, from, bytes, len, &verdict);      // a message from worker `from`
       while (cg_server_next(&server, &e)) send_to(e.to, e.bytes, e.len);

       cg_client_feed(&client, bytes, len, &event);                   // a worker's side, for every message
       if (event == CG_CLIENT_START) {
           ... the gradient of cg_client_model(&client) ...
           cg_client_push(&client, grad, weight, &bytes, &len);       // send these to the server
       }                                                              // CG_CLIENT_HELLO, CG_CLIENT_RESEND: see below

     mode      a worker may make its next step    what its push does
     BSP       when the round has ended           a round has one push of every worker; it steps by their mean
     SSP       if it is at most `staleness`       steps at once
               steps ahead of the slowest
     ASP       at once                            steps at once; with CG_SERVER_DAMPED by 1 / (1 + updates missed)
     BACKUP    when the round has ended           a round has the first workers - backup; who is late is dropped, or
                                                  keeps its gradient (CG_SERVER_KEEP_LATE)
     SAMPLED   when it is drawn                   a round has the `sampled` workers that were drawn; weights count

   UPDATES. v = rate w D + delta is compressed by `down`, the packet goes out of the model on both sides, and delta
   keeps what it has not said: model = model_0 - sum of rate w D + delta after every message. Packets stay in a ring.
   A worker that lags gets those that it lacks, or the values that they have touched, or the model in pieces,
   whichever is shortest: its copy has the bits of the server's model of that version in any case. Memory is 12 n
   bytes and ring_bytes; a round takes 4 n more, a median or trimmed mean 4 n for each worker. Dense both ways and
   one worker is plain SGD, bit for bit.

   WHO IS THERE. A worker says hello, and gets a seat, its clock (the smallest of all) and the model. It may come back
   after a lost connection, or as another process: its pushes have clocks, and none counts twice. A seat that is silent
   for `timeout` is free, and nobody waits for it. accepted + late + refused = the pushes that arrived. A push that is
   refused (a weight or packet that is wrong, values above 1e30, of the past or of the future) changes nothing but that
   count, and its gradient goes back into the worker's memory. Who sent a message is what your transport says: a
   connection that anybody can open needs a secret of its own (examples/transport_tcp.h has one). */
