/* compgrad_sync.h: made of the files in src/ by "make headers"; change those, not this one. */

/* src/sync/manual.h */
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

/* src/sync/api.h */
/* api: the public declarations of graphs, gossip and local SGD

   Offers   cg_graph and the calls on it
   Needs    compgrad_ef.h
   Touches  nothing */
#include "compgrad_ef.h" /* outside the guard: its implementation has to come before the one below */

#ifndef COMPGRAD_SYNC_H
#  define COMPGRAD_SYNC_H

/* ---- graphs; the table of kinds is in the manual above ---- */

typedef enum cg_graph_kind {
    CG_GRAPH_RING = 0,
    CG_GRAPH_COMPLETE,
    CG_GRAPH_STAR,
    CG_GRAPH_TORUS,
    CG_GRAPH_HYPERCUBE,
    CG_GRAPH_EXPONENTIAL,
    CG_GRAPH_ONE_PEER,
    CG_GRAPH_EDGES
} cg_graph_kind;

typedef struct cg_graph_desc { /* equal on all nodes */
    uint32_t kind;             /* cg_graph_kind */
    int nodes;                 /* 1 to 65536 */
    int rows;                  /* TORUS: nodes is a multiple of it */
    const int (*edges)[2];     /* EDGES: pairs of nodes, each once, in any order; may go after cg_graph_init */
    size_t edge_count;
    const float *weights; /* W, nodes * nodes values, row by row; NULL: Metropolis and Hastings. May go too */
    int directed;         /* not 0: edges[k][0] sends to edges[k][1], and hears nothing of it; EDGES without weights */
} cg_graph_desc;

typedef struct cg_graph { /* you allocate it; constant after cg_graph_init */
    cg_graph_desc desc;   /* edges and weights are NULL */
    double gap, omega;
    size_t most;   /* no node has more neighbours, in either direction */
    uint64_t mark; /* hash of nodes, edges and weights */
    const uint64_t
        *first; /* EDGES and weights: neighbours of i are peer[first[i]..first[i + 1]), ascending; else NULL */
    const int *peer;
    const float *weight;        /* of the same edges; NULL: Metropolis and Hastings */
    const uint64_t *first_back; /* who sends to i, if directed; otherwise as first and peer */
    const int *peer_back;
} cg_graph;

/* Bytes that cg_graph_init needs, work space included; 0: cg_graph_init will say why not. */
CG_API_ size_t cg_graph_memory(const cg_graph_desc *desc);
/* Makes *graph in mem, which may have any alignment and must stay in place. Checks everything: CG_E_ARG, and
   why[0..cap) names the row or edge, as in "row 3 of W adds up to 0.9, not to 1". why may be NULL if cap is 0; 160
   bytes always suffice. */
CG_API_ CG_CHECKED_ cg_status cg_graph_init(
    cg_graph *graph, const cg_graph_desc *desc, void *mem, size_t bytes, char *why, size_t cap);
CG_API_ double cg_graph_gap(const cg_graph *graph);   /* 1 - rho; -1: not known */
CG_API_ double cg_graph_omega(const cg_graph *graph); /* the largest omega that DCD survives; -1: not known */
/* The factor of what j sends in the sum of i at that step; 0: i hears nothing of j. i = j: what i keeps of its own. */
CG_API_ float cg_graph_weight(const cg_graph *graph, int i, int j, uint64_t step);

/* ---- gossip: every node mixes its model with those of its neighbours; the table of kinds is in the manual above
   ---- */

typedef enum cg_gossip_kind {
    CG_GOSSIP_DSGD = 0,
    CG_GOSSIP_DSGD_COMBINE_FIRST,
    CG_GOSSIP_NAIVE,
    CG_GOSSIP_DCD,
    CG_GOSSIP_DEEPSQUEEZE,
    CG_GOSSIP_CHOCO,
    CG_GOSSIP_PUSH_SUM
} cg_gossip_kind;
enum { /* cg_gossip_desc.flags */
    /* a neighbour whose message fails is away for this step; DCD and CHOCO then keep a replica of each neighbour */
    CG_GOSSIP_TOLERATE = 1,
    CG_GOSSIP_ANY_OMEGA = 2 /* DCD also with an operator under which it diverges */
};
typedef struct cg_gossip_desc { /* equal on all nodes but for rank; a zero field means its default */
    cg_op op;
    size_t n;
    uint32_t kind;         /* cg_gossip_kind */
    const cg_graph *graph; /* must stay valid */
    int rank;              /* this node */
    float eta;             /* DEEPSQUEEZE and CHOCO: above 0, at most 1; no default */
    uint64_t seed;         /* nodes draw samples, rotations and rounding by themselves, from a hash of seed and rank */
    uint32_t flags;
    float omega;          /* DCD: of a codec of yours, if you know it; 0: what cg_op_about says */
    const cg_extra *side; /* codecs; must stay valid */
} cg_gossip_desc;
typedef struct cg_gossip_peer { /* one message out, one in; private */
    int to, from;               /* negative: none */
    int replicated;             /* replica holds what `from` had under the name `have` */
    int met;                    /* in this step */
    uint64_t order;             /* all nodes meet in the order of this, so that none waits in a circle */
    uint64_t have, becomes;     /* the name of what is known of `from`, before and after this step; 0: nothing */
    float *replica;             /* NULL: sums suffice */
} cg_gossip_peer;
typedef struct cg_gossip { /* you allocate it; its arrays are inside mem */
    cg_gossip_desc desc;
    size_t peers;
    cg_gossip_peer *peer;
    /* n floats each, NULL if the kind has none: its public copy, residual or numerator; the sum of its neighbours' */
    float *own, *sum;
    double weight;          /* PUSH_SUM */
    uint64_t mine, becomes; /* names of what neighbours know of this node, before and after this step */
    uint64_t setup;         /* hash of what must be equal on all nodes */
    uint64_t steps;         /* that have ended well */
    /* the step under way; private */
    float *half, *gathered, *next;
    uint8_t *packet, *incoming, *whole, *scratch, *notes;
    size_t packet_cap, incoming_cap, scratch_bytes, len, whole_len, at, out_bytes, in_bytes;
    float *x;
    const float *grad;
    float rate, mixed;
    double heard;
    int sent, phase, is_whole, taken;
    uint64_t step;
    uint32_t failed, grad_status;
    cg_report report;
    char why[200];
} cg_gossip;

/* Bytes that cg_gossip_init needs; 0: the description is refused (cg_gossip_init says why), or they overflow. */
CG_API_ size_t cg_gossip_memory(const cg_gossip_desc *desc);
/* Makes *gossip; mem is yours, may have any alignment and must stay in place. x0: n floats, this node's own, may differ
   between nodes. DCD needs what its neighbours have: in its first step nodes send their models as they are, 4 n bytes,
   and mix from the second step on; CHOCO starts from 0. CG_E_UNSUPPORTED: this kind, graph and operator do not go
   together, or DCD would diverge; cg_gossip_why says it with numbers. */
CG_API_ CG_CHECKED_ cg_status cg_gossip_init(
    cg_gossip *gossip, const cg_gossip_desc *desc, const float *x0, void *mem, size_t bytes);
CG_API_ const char *cg_gossip_why(const cg_gossip *gossip); /* why cg_gossip_init refused; text inside *gossip */
/* One step: x[0..n) := the mix of x - rate * grad with its neighbours'. step must be equal on all nodes. Between
   steps x stays as it is, for DCD and PUSH_SUM. The transport needs sendrecv.
   If grad is not finite, the step is taken with a gradient of zeros, and returns CG_E_NONFINITE. Any other error leaves
   x and the state as they were, and neighbours hear that this node is away; without CG_GOSSIP_TOLERATE they fail as
   well (CG_E_PEER). With it, x is mixed with those that were met, W stays symmetric and its rows add up to 1, and
   report->rank is the last node that was not met; the status is CG_OK. */
CG_API_ CG_CHECKED_ cg_status cg_gossip_step(cg_gossip *gossip, const cg_transport *transport, float *x,
    const float *grad, float rate, uint64_t step, cg_report *report);
/* The same message by message, as cg_exchange_start and cg_exchange_next: every io is a CG_IO_SENDRECV. What arrives
   may be any bytes. x and grad must stay until the end. */
CG_API_ CG_CHECKED_ cg_status cg_gossip_start(
    cg_gossip *gossip, float *x, const float *grad, float rate, uint64_t step);
CG_API_ CG_CHECKED_ cg_status cg_gossip_next(cg_gossip *gossip, int last_code, cg_io *io);
CG_API_ void cg_gossip_report(const cg_gossip *gossip, cg_report *report);
/* What this node keeps of another: n floats, or NULL (sums, nothing known of it, no neighbour). */
CG_API_ const float *cg_gossip_replica(const cg_gossip *gossip, int node);
CG_API_ size_t cg_gossip_save_bytes(const cg_gossip *gossip);
CG_API_ CG_CHECKED_ cg_status cg_gossip_save(const cg_gossip *gossip, void *buf, size_t cap, size_t *len);
/* Restores a saved state; buf may be any bytes. Give x the value it had, too. After an error *gossip is as it was. */
CG_API_ CG_CHECKED_ cg_status cg_gossip_load(cg_gossip *gossip, const void *buf, size_t len);

/* ---- AD-PSGD: pairs of nodes that meet when it suits them, in a machine that is fed ---- */

typedef struct cg_envelope { /* a message to be sent, by any means */
    int to;
    const void *bytes;
    size_t len;
} cg_envelope;
typedef struct cg_pair_desc { /* equal on all nodes but for rank */
    cg_op op;                 /* compresses the difference of two models; any, biased ones too */
    size_t n;
    int rank, nodes;
    uint64_t seed;
    uint64_t patience;    /* a question is asked again after so much of your clock; 0: never */
    const cg_extra *side; /* codecs; must stay valid */
} cg_pair_desc;
typedef struct cg_pair_answer { /* the last one to a node; private */
    uint64_t serial;
    size_t len;
    int due;
    uint8_t *bytes;
} cg_pair_answer;
typedef struct cg_pair { /* you allocate it; its arrays are inside mem */
    cg_pair_desc desc;
    float *x, *work;        /* n floats each: the model; private */
    cg_pair_answer *answer; /* one per node */
    uint8_t *question, *scratch;
    size_t question_len, answer_cap, scratch_bytes;
    uint64_t serial, asked, setup;
    int asking, question_due; /* asking: the node whose answer is awaited, or -1 */
    uint64_t met, refused;    /* averages in which this node asked, and messages that changed nothing */
} cg_pair;
/* Bytes that cg_pair_init needs, room for one answer per node included; 0: refused, or they overflow. */
CG_API_ size_t cg_pair_memory(const cg_pair_desc *desc);
CG_API_ CG_CHECKED_ cg_status cg_pair_init(
    cg_pair *pair, const cg_pair_desc *desc, const float *x0, void *mem, size_t bytes);
CG_API_ const float *cg_pair_model(const cg_pair *pair); /* x, n floats; changes by the calls below alone */
/* x := x - rate * grad, at any time, also while an answer is awaited. CG_E_NONFINITE: nothing has changed. */
CG_API_ CG_CHECKED_ cg_status cg_pair_gradient(cg_pair *pair, const float *grad, float rate);
/* Asks node `to` for an average. CG_E_STATE: another answer is awaited (cg_pair_forget ends that). */
CG_API_ CG_CHECKED_ cg_status cg_pair_ask(cg_pair *pair, uint64_t now, int to);
/* A message of node `from` has arrived; who sent it comes from you, not from its bytes, which may be any. CG_OK: it
   counted. CG_E_STATE: it is old, or comes twice, and changes nothing; so do all other errors. */
CG_API_ CG_CHECKED_ cg_status cg_pair_feed(cg_pair *pair, uint64_t now, int from, const void *bytes, size_t len);
/* 1: *envelope is to be sent; its bytes stay until the next call on *pair. 0: nothing is, at this time. */
CG_API_ int cg_pair_next(cg_pair *pair, uint64_t now, cg_envelope *envelope);
/* Waits for no answer any more. If the other node has taken its half, that stays with it alone. */
CG_API_ void cg_pair_forget(cg_pair *pair);
CG_API_ size_t cg_pair_save_bytes(const cg_pair *pair);
CG_API_ CG_CHECKED_ cg_status cg_pair_save(const cg_pair *pair, void *buf, size_t cap, size_t *len);
/* Restores the model; no answer is awaited then, and serials go on above those that were used. */
CG_API_ CG_CHECKED_ cg_status cg_pair_load(cg_pair *pair, const void *buf, size_t len);

/* ---- local SGD: models are trained apart, and averaged now and then ---- */

enum { CG_LOCAL_MODELS = 1 /* what is averaged are models; otherwise deltas, anchor - x */ };
typedef struct cg_local_period { /* from that step on, this period */
    uint64_t from, period;
} cg_local_period;
typedef struct cg_local_desc { /* equal on all ranks; a zero field means its default */
    cg_ef_desc ef;             /* operator and error feedback of what is averaged; ef.n: values of the model */
    uint64_t period;           /* steps between two averages; 0 = 1 */
    float outer_rate;          /* 0 = 1 */
    float outer_momentum;      /* 0 <= outer_momentum < 1 */
    int nesterov;              /* not 0: Nesterov's form of the outer momentum, as in DiLoCo */
    uint64_t switch_step;      /* steps before it are averaged one by one (post-local SGD) */
    /* periods that replace `period`, ascending by from; must stay valid. Counting begins anew where one begins */
    const cg_local_period *table;
    size_t table_count;
    size_t fragments; /* 0 = 1; their averages are spread over the period */
    uint64_t delay;   /* steps after which an average reaches the model; not more than the period counts */
    float mix;        /* the part of the model that stays when an average reaches it: x = mix x + (1 - mix) anchor */
    uint32_t flags;   /* CG_LOCAL_MODELS */
} cg_local_desc;
typedef struct cg_local_fragment {
    cg_ef ef;
    int under_way;  /* delta holds a mean that has not reached the model */
    uint64_t lands; /* the step after which it does */
} cg_local_fragment;
typedef struct cg_local { /* you allocate it; its arrays are inside mem */
    cg_local_desc desc;
    float *anchor, *velocity, *delta; /* n floats each; velocity is NULL without outer_momentum */
    cg_local_fragment *fragment;
    uint64_t mark;  /* hash of all averages so far */
    uint64_t steps; /* the largest step so far, and 1 */
    cg_report report;
} cg_local;

/* Bytes that cg_local_init needs; 0: the description is refused (cg_local_init says why), or they overflow. */
CG_API_ size_t cg_local_memory(const cg_local_desc *desc);
/* Makes *local with the anchor x0[0..n), which must be equal on all ranks. mem is yours, may have any alignment and
   must stay in place. After an error cg_local_report says what is wrong. */
CG_API_ CG_CHECKED_ cg_status cg_local_init(
    cg_local *local, const cg_local_desc *desc, const float *x0, void *mem, size_t bytes);
/* 1: after that step some fragment is averaged. */
CG_API_ int cg_local_due(const cg_local *local, uint64_t step);
/* Bytes of mem for cg_local_step; 0: refused, or they overflow. */
CG_API_ size_t cg_local_step_memory(
    const cg_local *local, const cg_exchange_desc *desc, const cg_transport *transport, uint64_t step);
/* Call it after every local step, counted from 0 and equal on all ranks; it sends nothing where nothing is due.
   Averages what is due, and x[0..n) becomes what the outer step makes of it. desc gives route, fold, weight, side,
   and seed and tensor of the tag; fragment f has tensor + f, by which ranks see that all average the same. After an
   error x and the anchor are as they were, the next average has what this one lacks, and error feedback is as it was
   but for rounding (cg_ef_withdraw); for a kind that cannot withdraw, x becomes the anchor, and error feedback has
   the difference. Every average is confirmed (CG_CONFIRM). If its last message is lost on some ranks, all ranks get
   CG_E_MISMATCH from the next one on, until cg_local_agree. */
CG_API_ CG_CHECKED_ cg_status cg_local_step(cg_local *local, const cg_exchange_desc *desc,
    const cg_transport *transport, float *x, uint64_t step, void *mem, size_t bytes, cg_report *report);
/* Momentum averaging: v[0..n), any vector of the optimizer, becomes its mean over ranks after those steps in which
   fragment 0 is averaged; otherwise nothing happens. desc->op compresses it, without memory. mem:
   cg_exchange_memory. */
CG_API_ CG_CHECKED_ cg_status cg_local_average(cg_local *local, const cg_exchange_desc *desc,
    const cg_transport *transport, float *v, uint64_t step, void *mem, size_t bytes, cg_report *report);
/* Makes anchors, outer momentum and models equal again, as dense means; error feedback keeps what is in it. All ranks
   must call it, with equal desc->tag, and may call it again after an error. */
CG_API_ size_t cg_local_agree_memory(
    const cg_local *local, const cg_exchange_desc *desc, const cg_transport *transport);
CG_API_ CG_CHECKED_ cg_status cg_local_agree(cg_local *local, const cg_exchange_desc *desc,
    const cg_transport *transport, float *x, void *mem, size_t bytes, cg_report *report);
CG_API_ const float *cg_local_anchor(const cg_local *local);            /* n floats inside mem */
CG_API_ void cg_local_report(const cg_local *local, cg_report *report); /* of the last init, step or agree */
CG_API_ size_t cg_local_save_bytes(const cg_local *local);
CG_API_ CG_CHECKED_ cg_status cg_local_save(const cg_local *local, void *buf, size_t cap, size_t *len);
/* Restores a saved state; buf may be any bytes. CG_E_MISMATCH: n, fragments, outer momentum or error feedback differ.
   After an error *local is as it was. Give x the value it had, too: it is not in the state. */
CG_API_ CG_CHECKED_ cg_status cg_local_load(cg_local *local, const void *buf, size_t len);

#endif /* COMPGRAD_SYNC_H */

/* src/sync/server_api.h */
/* server_api: the public declarations of servers that do not wait, and of their workers' side

   Offers   cg_server, cg_client and the calls on them
   Needs    api
   Touches  nothing */

#ifndef COMPGRAD_SYNC_SERVER_H
#define COMPGRAD_SYNC_SERVER_H

/* ---- server: a machine that is fed messages and a clock; the table of modes is in the manual above ---- */

typedef enum cg_server_mode {
    CG_SERVER_BSP = 0, /* a round has one push of every worker */
    CG_SERVER_SSP,     /* every push counts at once; nobody is more than `staleness` steps ahead of the slowest */
    CG_SERVER_ASP,     /* every push counts at once */
    CG_SERVER_BACKUP,  /* a round has the first workers - backup pushes */
    CG_SERVER_SAMPLED  /* a round has one push of each of `sampled` workers, drawn anew (federated training) */
} cg_server_mode;
/* cg_server_desc.flags */
enum {
    CG_SERVER_DAMPED = 1,   /* a push made with a model tau updates old counts 1 / (1 + tau) */
    CG_SERVER_KEEP_LATE = 2 /* who is late for a round puts its gradient back into its memory; else it is dropped */
};
typedef struct cg_server_desc { /* a zero field means its default */
    cg_op up;                   /* of the workers, for the report; any packet of n values is taken */
    cg_op down;                 /* compresses the updates of the model */
    size_t n;                   /* values of the model */
    uint32_t mode;              /* cg_server_mode */
    int workers;                /* seats: 1 to 65536 */
    int backup;                 /* BACKUP: 0 <= backup < workers */
    int sampled;                /* SAMPLED: workers of a round */
    uint64_t staleness;         /* SSP */
    size_t ring_bytes;          /* of update packets that are kept for those who lag; 0: one packet */
    float rate;                 /* the model takes steps of rate times the (mean) push; 0 = 1 */
    float weight_cap;           /* a larger weight is refused; 0 = 16777216 */
    float norm_cap;             /* a push is scaled down to this norm; 0: never */
    uint32_t fold;              /* of a round: CG_FOLD_MEAN, MEDIAN or TRIMMED (those without weights) */
    float fold_limit;           /* of TRIMMED, as in cg_exchange_desc */
    uint64_t timeout;           /* a seat that was silent for so long (in units of `now`) is freed; 0: never */
    uint64_t seed;
    uint32_t flags;
    uint64_t reserved[8]; /* must be 0 */
} cg_server_desc;
typedef enum cg_verdict_kind {
    CG_VERDICT_NOTHING = 0, /* a tick, or a message that asks for nothing */
    CG_VERDICT_JOINED,
    CG_VERDICT_LEFT,
    CG_VERDICT_ACCEPTED,
    CG_VERDICT_LATE,      /* dropped: the round was over */
    CG_VERDICT_ROLLBACK,  /* the round was over: the worker keeps its gradient */
    CG_VERDICT_DUPLICATE, /* the push had been decided on before; that verdict is sent again */
    CG_VERDICT_REFUSED    /* nothing has changed; status and why say what is wrong */
} cg_verdict_kind;
typedef struct cg_verdict {
    uint32_t kind;      /* cg_verdict_kind */
    uint32_t status;    /* cg_status of a refusal */
    uint64_t clock;     /* of the push */
    uint64_t staleness; /* updates that its model did not have */
    float weight;       /* times rate: what it counted, damping and norm_cap included; 0 within a round */
    const char *why;    /* a sentence, constant text */
} cg_verdict;
typedef struct cg_server_seat {
    uint32_t state;         /* 0: awaited, 1: here, 2: gone */
    uint32_t flags;         /* private */
    uint64_t clock;         /* that its next push must have */
    uint64_t heard;         /* `now` of its last message */
    uint64_t version, mark; /* of the model that it has, once it has all that was sent */
    uint64_t last_clock;    /* of the last push that was decided on, and how */
    uint32_t last_kind, last_status, refusal;
    uint64_t piece; /* of the dense model, or of touched values: what comes next */
} cg_server_seat;
typedef struct cg_server_entry {     /* a packet of the ring: it leads from version - 1 to version */
    uint64_t version, before, after; /* marks */
    size_t offset, len;
} cg_server_entry;
typedef struct cg_server { /* you allocate it; its arrays are inside mem */
    cg_server_desc desc;
    float *model, *delta; /* n floats each: the model, and what updates have not said yet */
    float *sum;           /* of the pushes of a round; NULL: of a mode without rounds */
    float *rows;          /* folds but the mean: a row of n floats for every worker */
    float *work;          /* n floats, where norm_cap or touched values need them */
    uint32_t *touched;    /* bits: values that differ from the version touched_from */
    cg_server_seat *seat;
    cg_server_entry *entry;
    uint8_t *ring, *out, *scratch;
    size_t entry_cap, entry_first, entry_count, ring_cap, ring_head, out_cap, scratch_bytes;
    uint64_t version, mark, round, now, started, job, touched_from, touched_to;
    uint64_t accepted, late, refused; /* pushes so far */
    double round_weight;
    int arrived, cursor;
} cg_server;

/* Bytes that cg_server_init needs, a function of desc alone: nothing grows with traffic. 0: the description is refused,
   and cg_server_init says why, or they overflow. */
CG_API_ size_t cg_server_memory(const cg_server_desc *desc);
/* Makes *s with the model x0[0..n). mem is yours, may have any alignment and must stay in place. After an error
   why[0..cap) has a sentence; why may be NULL if cap is 0. */
CG_API_ CG_CHECKED_ cg_status cg_server_init(
    cg_server *s, const cg_server_desc *desc, const float *x0, void *mem, size_t bytes, char *why, size_t cap);
/* A message from worker `from`, at time now, which does not fall; len 0 is a tick of the clock. bytes may be anything:
   what is wrong is refused by name, and nothing changes. Who sent it is what your transport says, not what is in the
   bytes. *verdict says what became of it; CG_OK unless an argument is wrong. Then send all that cg_server_next gives:
   what another feed comes between begins anew. */
CG_API_ CG_CHECKED_ cg_status cg_server_feed(
    cg_server *s, uint64_t now, int from, const void *bytes, size_t len, cg_verdict *verdict);
/* 1: *envelope is the next message, whose bytes are the server's until its next call; 0: there is none until the next
   feed. Messages to one worker must arrive in their order; if
   one is lost (a new connection), the worker says hello again. */
CG_API_ int cg_server_next(cg_server *s, cg_envelope *envelope);
/* The longest message that a server sends, or that a client of such a server sends it. */
CG_API_ size_t cg_server_message_bytes(const cg_server *s);
CG_API_ const float *cg_server_model(const cg_server *s); /* n floats inside mem */
CG_API_ uint64_t cg_server_version(const cg_server *s);   /* updates so far */
/* The model, what updates have not said yet, the round under way and all clocks. Seats are awaited again after a load,
   and workers that are ahead are told to come back to the saved version. */
CG_API_ size_t cg_server_save_bytes(const cg_server *s);
CG_API_ CG_CHECKED_ cg_status cg_server_save(const cg_server *s, void *buf, size_t cap, size_t *len);
/* buf may be any bytes. CG_E_MISMATCH: n, workers, mode, fold or seed differ. After an error *s is as it was. */
CG_API_ CG_CHECKED_ cg_status cg_server_load(cg_server *s, const void *buf, size_t len);

/* ---- client: the worker's side ---- */

typedef enum cg_client_event {
    CG_CLIENT_NOTHING = 0, /* more messages are to come */
    CG_CLIENT_START,       /* the model is as the server has it: make the next gradient */
    CG_CLIENT_RESEND,      /* the push has not arrived: send cg_client_pending again */
    CG_CLIENT_HELLO        /* something is missing: send cg_client_hello */
} cg_client_event;
typedef struct cg_client_desc { /* a zero field means its default */
    cg_ef_desc ef;              /* operator and memory; ef.n: values of the model */
    int seat;                   /* this worker's number at the server */
    uint64_t seed;              /* the server's */
    uint64_t reserved[4];       /* must be 0 */
} cg_client_desc;
typedef struct cg_client { /* you allocate it; its arrays are inside mem */
    cg_client_desc desc;
    cg_ef ef;
    float *model;    /* n floats: the server's model, bit for bit, while cg_client_ready says so */
    uint8_t *packet; /* the pending push, behind its header */
    size_t packet_cap, packet_len;
    uint64_t job, clock, version, mark, piece, target, target_mark;
    uint32_t flags; /* private */
    uint64_t accepted, late, rolled_back, refused;
    uint32_t last_kind, last_status; /* of the last verdict */
} cg_client;

CG_API_ size_t cg_client_memory(const cg_client_desc *desc);
CG_API_ CG_CHECKED_ cg_status cg_client_init(cg_client *c, const cg_client_desc *desc, void *mem, size_t bytes);
/* The message that joins, or takes the conversation up again after a lost connection: at most CG_CLIENT_HELLO_BYTES.
   Until the server has answered, other messages of it are taken for older ones and ignored. */
enum { CG_CLIENT_HELLO_BYTES = 64 };
CG_API_ CG_CHECKED_ cg_status cg_client_hello(cg_client *c, void *buf, size_t cap, size_t *len);
CG_API_ CG_CHECKED_ cg_status cg_client_leave(const cg_client *c, void *buf, size_t cap, size_t *len);
/* 1: a step may be made, with the model that cg_client_model gives. */
CG_API_ int cg_client_ready(const cg_client *c);
/* Compresses grad, made with that model, into a push: *bytes[0..*len) is to be sent, and stays until the verdict comes.
   weight > 0. CG_E_STATE: cg_client_ready is 0. */
CG_API_ CG_CHECKED_ cg_status cg_client_push(
    cg_client *c, const float *grad, float weight, const void **bytes, size_t *len);
/* The same push again; *len is 0 if none is pending. */
CG_API_ void cg_client_pending(const cg_client *c, const void **bytes, size_t *len);
/* A message of the server; bytes may be anything. *event says what to do next. What does not belong here is an error,
   changes nothing, and asks for a hello. A push that the server took is committed to the memory, one that it wants kept
   is rolled back into it. */
CG_API_ CG_CHECKED_ cg_status cg_client_feed(cg_client *c, const void *bytes, size_t len, uint32_t *event);
CG_API_ const float *cg_client_model(const cg_client *c); /* n floats inside mem */

#endif /* COMPGRAD_SYNC_SERVER_H */

/* src/sync/begin.h */
/* begin: opens the implementation of gossip and local SGD, for the one file that defines COMPGRAD_IMPLEMENTATION

   Offers   nothing
   Needs    compgrad_ef.h, whose implementation comes first
   Touches  nothing */
#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_SYNC_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_SYNC_IMPLEMENTED_

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

/* src/sync/spectrum.h */
/* spectrum: eigenvalues of symmetric matrices in f64, in a fixed order of operations; no libm

   Offers   cg_sin_pi_, cg_abs64_, cg_tri_extreme_, cg_tri_last_
   Needs    base
   Touches  the matrices and vectors that it is given
   A tridiagonal matrix has diagonal a[0..n) and off-diagonal b[0..n-1), b[i] between i and i + 1. */

/* sin(pi k / n), 0 <= k <= n: reduced to at most pi/4 in integers, then the Taylor series. */
static double cg_sin_pi_(uint64_t k, uint64_t n) {
    const double pi = 3.14159265358979323846;
    double x, x2, term, sum;
    int cosine = 0;
    if (2 * k > n) k = n - k;
    if (4 * k > n) {
        cosine = 1; /* sin(pi k / n) = cos(pi (n - 2 k) / 2 n) */
        x = pi * (double)(n - 2 * k) / (2.0 * (double)n);
    } else {
        x = pi * (double)k / (double)n;
    }
    x2 = cg_times64_(x, x);
    term = sum = cosine ? 1.0 : x;
    for (int i = cosine ? 1 : 2; i < 24; i += 2) {
        term = cg_times64_(term, -x2) / (double)(i * (i + 1));
        sum += term;
    }
    return sum;
}
static double cg_abs64_(double v) { return v < 0.0 ? -v : v; }

/* How many eigenvalues lie below x (Sturm). */
static size_t cg_tri_below_(const double *a, const double *b, size_t n, double x) {
    size_t below = 0;
    double d = 1.0;
    for (size_t i = 0; i < n; i++) {
        d = a[i] - x - (i ? cg_times64_(b[i - 1], b[i - 1]) / d : 0.0);
        if (d == 0.0) d = -1e-300;
        below += d < 0.0;
    }
    return below;
}
/* The smallest eigenvalue, or the largest, by bisection. */
static double cg_tri_extreme_(const double *a, const double *b, size_t n, int largest) {
    double low = a[0], high = a[0];
    for (size_t i = 0; i < n; i++) {
        const double reach = (i ? cg_abs64_(b[i - 1]) : 0.0) + (i + 1 < n ? cg_abs64_(b[i]) : 0.0);
        if (a[i] - reach < low) low = a[i] - reach;
        if (a[i] + reach > high) high = a[i] + reach;
    }
    for (int round = 0; round < 200 && high > low; round++) {
        const double middle = low + (high - low) / 2.0;
        const size_t below = cg_tri_below_(a, b, n, middle);
        if (middle <= low || middle >= high) break;
        if (largest ? below >= n : below >= 1) high = middle;
        else low = middle;
    }
    return low + (high - low) / 2.0;
}
/* The magnitude of the last component of the unit eigenvector of x, an eigenvalue, by two steps of inverse iteration.
   work: 5 n doubles. */
static double cg_tri_last_(const double *a, const double *b, size_t n, double x, double *work) {
    double *const d = work, *const u = d + n, *const w = u + n, *const y = w + n, *const l = y + n;
    double sum = 0.0;
    if (n == 1) return 1.0;
    for (size_t i = 0; i < n; i++) y[i] = 1.0;
    for (int round = 0; round < 3; round++) {
        /* Gauss with row exchanges: rows of U have d, u and w */
        double di = a[0] - x, ui = b[0], yi = y[0];
        for (size_t i = 0; i + 1 < n; i++) {
            const double below = b[i], next = a[i + 1] - x, far = i + 2 < n ? b[i + 1] : 0.0;
            if (cg_abs64_(di) >= cg_abs64_(below)) {
                double pivot = di == 0.0 ? 1e-30 : di, m = below / pivot;
                d[i] = pivot, u[i] = ui, w[i] = 0.0, l[i] = yi;
                yi = y[i + 1] - cg_times64_(m, yi);
                di = next - cg_times64_(m, ui), ui = far;
            } else {
                double m = di / below;
                d[i] = below, u[i] = next, w[i] = far, l[i] = y[i + 1];
                yi = yi - cg_times64_(m, y[i + 1]);
                di = ui - cg_times64_(m, next), ui = -cg_times64_(m, far);
            }
        }
        d[n - 1] = di == 0.0 ? 1e-30 : di, l[n - 1] = yi;
        sum = 0.0;
        for (size_t i = n; i-- > 0;) {
            double v = l[i];
            if (i + 1 < n) v -= cg_times64_(u[i], y[i + 1]);
            if (i + 2 < n) v -= cg_times64_(w[i], y[i + 2]);
            y[i] = v / d[i];
        }
        for (size_t i = 0; i < n; i++) sum += cg_times64_(y[i], y[i]);
        sum = cg_sqrt_(sum);
        for (size_t i = 0; i < n; i++) y[i] /= sum;
    }
    return cg_abs64_(y[n - 1]);
}

/* src/sync/graph.h */
/* graph: the kinds of graphs, checks of a description, and neighbours and weights

   Offers   cg_graph_joined_, cg_graph_degree_, cg_graph_hop_, cg_graph_edge_weight_; the table of kinds; what
            cg_graph_init needs but for the spectrum
   Needs    spectrum; base
   Touches  the graph and the memory that it is given

   A named kind lists the neighbours of a node, perhaps some of them more than once; EDGES and graphs with weights have
   lists in memory. In named kinds but the star, every node sees the same graph (they are Cayley graphs of an abelian
   group), so that eigenvalues are sums of cosines. */

enum {
    CG_GRAPH_MOST_ = 65536,        /* nodes */
    CG_GRAPH_DENSE_ = 512,         /* nodes up to which eigenvectors are computed */
    CG_GRAPH_KRYLOV_ = 64,         /* steps of Lanczos for omega, at most */
    CG_GRAPH_LISTED_ = 1 << 0,     /* neighbours are in a list of the caller's */
    CG_GRAPH_CHANGES_ = 1 << 1,    /* other neighbours at every step: i hears of i - hop */
    CG_GRAPH_HAS_ROWS_ = 1 << 2,   /* desc.rows counts */
    CG_GRAPH_POWER_OF_2_ = 1 << 3, /* nodes must be one */
    CG_GRAPH_CENTRED_ = 1 << 4     /* all but node 0 have one neighbour */
};
typedef struct cg_graph_row_ {
    uint32_t id, traits;
    size_t (*count)(const cg_graph_desc *);           /* entries of the list of a node */
    int (*peer)(const cg_graph_desc *, int i, int k); /* entry k of the list of i; i itself is none */
    /* the character j of the group at its element p is exp(2 pi sqrt(-1) phase / nodes); NULL: other formulas */
    uint64_t (*phase)(const cg_graph_desc *, uint64_t j, uint64_t p);
    void (*spectrum)(const cg_graph_desc *, double *gap, double *omega); /* NULL: by phase */
} cg_graph_row_;

static unsigned cg_graph_hops_(const cg_graph_desc *d) { /* ceil(log2 nodes) */
    return d->nodes > 1 ? cg_log2_((uint64_t)d->nodes - 1) + 1 : 0;
}
static int cg_graph_around_(const cg_graph_desc *d, int i, int by) { /* i + by on the circle; |by| < nodes */
    const int64_t at = (int64_t)i + by;
    return (int)(at < 0 ? at + d->nodes : at >= d->nodes ? at - d->nodes : at);
}
static size_t cg_graph_two_(const cg_graph_desc *d) { return d->nodes > 1 ? 2 : 0; }
static size_t cg_graph_four_(const cg_graph_desc *d) { return d->nodes > 1 ? 4 : 0; }
static size_t cg_graph_others_(const cg_graph_desc *d) { return (size_t)d->nodes - 1; }
static size_t cg_graph_bits_(const cg_graph_desc *d) { return cg_graph_hops_(d); }
static size_t cg_graph_both_hops_(const cg_graph_desc *d) { return 2 * (size_t)cg_graph_hops_(d); }
static size_t cg_graph_none_(const cg_graph_desc *d) {
    (void)d;
    return 0;
}
static int cg_graph_ring_(const cg_graph_desc *d, int i, int k) { return cg_graph_around_(d, i, k ? 1 : -1); }
static int cg_graph_complete_(const cg_graph_desc *d, int i, int k) {
    (void)d;
    return k < i ? k : k + 1;
}
static int cg_graph_star_(const cg_graph_desc *d, int i, int k) {
    (void)d;
    return i ? 0 : k + 1;
}
static int cg_graph_torus_(const cg_graph_desc *d, int i, int k) {
    const int cols = d->nodes / d->rows, row = i / cols, col = i % cols;
    switch (k) {
    case 0: return row * cols + (col ? col - 1 : cols - 1);
    case 1: return row * cols + (col + 1 < cols ? col + 1 : 0);
    case 2: return (row ? row - 1 : d->rows - 1) * cols + col;
    default: return (row + 1 < d->rows ? row + 1 : 0) * cols + col;
    }
}
static int cg_graph_hypercube_(const cg_graph_desc *d, int i, int k) {
    (void)d;
    return i ^ 1 << k;
}
static int cg_graph_exponential_(const cg_graph_desc *d, int i, int k) {
    const int by = 1 << k / 2; /* below nodes, as k / 2 < ceil(log2 nodes) */
    return cg_graph_around_(d, i, k % 2 ? by : -by);
}
static int cg_graph_no_peer_(const cg_graph_desc *d, int i, int k) {
    (void)d, (void)k;
    return i;
}
static uint64_t cg_graph_phase_circle_(const cg_graph_desc *d, uint64_t j, uint64_t p) {
    return j * p % (uint64_t)d->nodes;
}
static uint64_t cg_graph_phase_torus_(const cg_graph_desc *d, uint64_t j, uint64_t p) {
    const uint64_t rows = (uint64_t)d->rows, cols = (uint64_t)(d->nodes / d->rows);
    return ((j / cols) * (p / cols) % rows * cols + (j % cols) * (p % cols) % cols * rows) % (rows * cols);
}
static uint64_t cg_graph_phase_bits_(const cg_graph_desc *d, uint64_t j, uint64_t p) {
    return (uint64_t)(cg_popcount_(j & p) & 1) * ((uint64_t)d->nodes / 2);
}
static void cg_graph_spectrum_complete_(const cg_graph_desc *d, double *gap, double *omega) {
    *gap = 1.0; /* all eigenvalues beside the 1 are 0 */
    *omega = (double)d->nodes / (double)(d->nodes - 1);
}
/* The star has the eigenvalues 1 - 1/N on the vectors of leaves that add up to 0, and 0 on (N - 1, -1, ..., -1). G then
   has one value for the centre, one between it and a leaf, and two between leaves; its largest eigenvalue is that of 2
   rows. */
static void cg_graph_spectrum_star_(const cg_graph_desc *d, double *gap, double *omega) {
    const double n = (double)d->nodes, r = 1.0 - 1.0 / n, later = r * r / (1.0 - r * r) / (n * n);
    const double centre = r * r, across = 1.0 / (n * n);
    const double off = n > 2.0 ? 1.0 / (n - 1.0) : 0.0, own = n > 2.0 ? 1.0 - off : 0.0;
    const double leaf = 1.0 / (n * n) + later * own * own + (n - 2.0) * later * off * off;
    const double both = across * across * (n - 1.0), apart = centre - leaf;
    *gap = 1.0 / n;
    if (d->nodes == 2) *gap = 1.0;
    *omega = 2.0 / (centre + leaf + cg_sqrt_(apart * apart + 4.0 * both));
}
/* W at step t has the eigenvalues (1 + exp(2 pi i j 2^k / N)) / 2, whose magnitudes are |cos(pi j 2^k / N)|. */
static void cg_graph_spectrum_one_peer_(const cg_graph_desc *d, double *gap, double *omega) {
    const uint64_t nodes = (uint64_t)d->nodes;
    const unsigned hops = cg_graph_hops_(d);
    double largest = 0.0, low = 0.0, high = 1.0;
    for (uint64_t j = 1; j < nodes; j++) {
        double product = 1.0;
        for (unsigned k = 0; k < hops; k++) { /* |cos(pi x)| = sin(pi |1/2 - x|) */
            const uint64_t twice = 2 * ((j << k) % nodes);
            product *= cg_sin_pi_(twice > nodes ? twice - nodes : nodes - twice, 2 * nodes);
        }
        if (product > largest) largest = product;
    }
    for (int round = 0; round < 100; round++) { /* the root of that order, by bisection */
        const double middle = (low + high) / 2.0;
        double power = 1.0;
        for (unsigned k = 0; k < hops; k++) power *= middle;
        if (power < largest) low = middle;
        else high = middle;
    }
    *gap = largest == 0.0 ? 1.0 : 1.0 - high;
    *omega = -1.0;
}

static const cg_graph_row_ cg_graph_rows_[] = {
    { CG_GRAPH_RING, 0, cg_graph_two_, cg_graph_ring_, cg_graph_phase_circle_, NULL },
    { CG_GRAPH_COMPLETE, 0, cg_graph_others_, cg_graph_complete_, NULL, cg_graph_spectrum_complete_ },
    { CG_GRAPH_STAR, CG_GRAPH_CENTRED_, cg_graph_others_, cg_graph_star_, NULL, cg_graph_spectrum_star_ },
    { CG_GRAPH_TORUS, CG_GRAPH_HAS_ROWS_, cg_graph_four_, cg_graph_torus_, cg_graph_phase_torus_, NULL },
    { CG_GRAPH_HYPERCUBE, CG_GRAPH_POWER_OF_2_, cg_graph_bits_, cg_graph_hypercube_, cg_graph_phase_bits_, NULL },
    { CG_GRAPH_EXPONENTIAL, 0, cg_graph_both_hops_, cg_graph_exponential_, cg_graph_phase_circle_, NULL },
    { CG_GRAPH_ONE_PEER, CG_GRAPH_CHANGES_, cg_graph_both_hops_, cg_graph_exponential_, NULL,
        cg_graph_spectrum_one_peer_ },
    { CG_GRAPH_EDGES, CG_GRAPH_LISTED_, cg_graph_none_, cg_graph_no_peer_, NULL, NULL },
};
enum { CG_GRAPH_COUNT_ = (int)(sizeof cg_graph_rows_ / sizeof *cg_graph_rows_) };
static int cg_graph_has_(const cg_graph *g, uint32_t trait) {
    return (cg_graph_rows_[g->desc.kind].traits & trait) != 0;
}

/* peers[0..result) := the neighbours of i, ascending, in any direction. peers has room for g->most, or for what count
   of a named kind says. */
static size_t cg_graph_named_list_(const cg_graph_desc *d, int i, int *peers) {
    const cg_graph_row_ *row = &cg_graph_rows_[d->kind];
    const size_t count = row->count(d);
    size_t kept = 0;
    for (size_t k = 0; k < count; k++) {
        const int p = row->peer(d, i, (int)k);
        size_t at = kept;
        if (p == i) continue;
        while (at && peers[at - 1] > p) at--;
        if (at && peers[at - 1] == p) continue;
        memmove(peers + at + 1, peers + at, (kept - at) * sizeof *peers);
        peers[at] = p;
        kept++;
    }
    return kept;
}
/* Neighbours that i sends to. Of named kinds all nodes but the star's have as many. */
static size_t cg_graph_degree_(const cg_graph *g, int i) {
    if (g->first) return (size_t)(g->first[i + 1] - g->first[i]);
    return cg_graph_has_(g, CG_GRAPH_CENTRED_) && i ? 1 : g->most;
}
/* Whether i sends to j; back: whether j sends to i. */
static int cg_graph_joined_(const cg_graph *g, int i, int j, int back) {
    const uint64_t *first = back ? g->first_back : g->first;
    const int *peer = back ? g->peer_back : g->peer;
    const cg_graph_row_ *row = &cg_graph_rows_[g->desc.kind];
    if (i == j) return 0;
    for (uint64_t k = first ? first[i] : 0; first && k < first[i + 1]; k++)
        if (peer[k] == j) return 1;
    for (size_t k = 0; !first && k < row->count(&g->desc); k++)
        if (row->peer(&g->desc, i, (int)k) == j) return 1;
    return 0;
}
/* Graphs that change: at that step i sends to i + hop, and hears of i - hop. */
static int cg_graph_hop_(const cg_graph *g, uint64_t step) {
    const unsigned hops = cg_graph_hops_(&g->desc);
    return hops ? 1 << step % hops : 0;
}
/* The weight of an edge from j to i that is there at that step, k its place in the list of i. */
static float cg_graph_edge_weight_(const cg_graph *g, int i, int j, uint64_t k) {
    if (g->weight) return g->weight[g->first[i] + k];
    if (cg_graph_has_(g, CG_GRAPH_CHANGES_)) return 0.5f;
    if (g->desc.directed) return 1.0f / (float)(1 + cg_graph_degree_(g, j));
    return 1.0f /
        (float)(1 +
            (cg_graph_degree_(g, i) > cg_graph_degree_(g, j) ? cg_graph_degree_(g, i) : cg_graph_degree_(g, j)));
}

/* src/sync/graph_make.h */
/* graph_make: checks a description, lays out a graph in memory, and computes gap and omega

   Offers   cg_graph_memory, cg_graph_init, cg_graph_gap, cg_graph_omega, cg_graph_weight
   Needs    spectrum, graph; base
   Touches  the graph, the memory that it is given, and why */

/* A sentence in the caller's buffer: text and numbers in turn; a number is left out after NULL. */
static cg_status cg_graph_say_(
    char *why, size_t cap, const char *a, uint64_t i, const char *b, uint64_t j, const char *c) {
    cg_text_ t;
    if (!cap) return CG_E_ARG;
    t.at = why;
    t.end = why + cap - 1;
    cg_text_str_(&t, a);
    if (b) cg_text_uint_(&t, i), cg_text_str_(&t, b);
    if (c) cg_text_uint_(&t, j), cg_text_str_(&t, c);
    *t.at = 0;
    return CG_E_ARG;
}
/* The places of a graph's parts in mem; NULL mem: only counts. */
typedef struct cg_graph_plan_ {
    uint64_t *first, *first_back, *at;
    int *peer, *peer_back, *list;
    float *weight;
    double *v, *y, *d, *e, *z;     /* work space of the spectrum */
    size_t arcs, krylov, constant; /* constant: which eigenvector has the eigenvalue 1 */
    uint64_t bytes;
} cg_graph_plan_;
static void *cg_graph_take_(uint8_t *mem, uint64_t *used, uint64_t count, uint64_t each) {
    void *p = mem ? mem + *used : NULL;
    *used = cg_add_sat_(*used, cg_mul_sat_(count, each));
    *used = cg_add_sat_(*used, (64 - *used % 64) % 64);
    return p;
}
static int cg_graph_is_listed_(const cg_graph_desc *d) {
    return (cg_graph_rows_[d->kind].traits & CG_GRAPH_LISTED_) || d->weights;
}
/* Entries of W that are not 0, off the diagonal; or both directions of the edges. */
static size_t cg_graph_arcs_(const cg_graph_desc *d) {
    const size_t nodes = (size_t)d->nodes;
    size_t arcs = 0;
    if (!d->weights) return d->directed ? d->edge_count : 2 * d->edge_count;
    for (size_t i = 0; i < nodes * nodes; i++) arcs += cg_load_(d->weights, i) != 0.0f && i % (nodes + 1);
    return arcs;
}
static void cg_graph_plan_make_(cg_graph_plan_ *p, const cg_graph_desc *d, uint8_t *mem) {
    const uint64_t nodes = (uint64_t)d->nodes;
    const int listed = cg_graph_is_listed_(d), dense = nodes <= CG_GRAPH_DENSE_;
    uint64_t used = 0;
    memset(p, 0, sizeof *p);
    p->list = (int *)cg_graph_take_(mem, &used, nodes, sizeof(int)); /* a named list, and a queue */
    if (listed) {
        p->arcs = cg_graph_arcs_(d);
        p->first = (uint64_t *)cg_graph_take_(mem, &used, nodes + 1, 8);
        p->peer = (int *)cg_graph_take_(mem, &used, p->arcs, sizeof(int));
        p->first_back = (uint64_t *)cg_graph_take_(mem, &used, nodes + 1, 8);
        p->peer_back = (int *)cg_graph_take_(mem, &used, p->arcs, sizeof(int));
        if (d->weights) p->weight = (float *)cg_graph_take_(mem, &used, p->arcs, sizeof(float));
    }
    p->at = (uint64_t *)cg_graph_take_(mem, &used, nodes, 8);
    if (listed && !d->directed) {
        p->krylov = dense ? (size_t)CG_GRAPH_KRYLOV_ : (size_t)(16 * nodes + 1024);
        if (dense) {
            p->v = (double *)cg_graph_take_(mem, &used, nodes * nodes, 8);
            p->y = (double *)cg_graph_take_(mem, &used, nodes * nodes, 8);
        } else {
            p->v = (double *)cg_graph_take_(mem, &used, 3 * nodes, 8);
        }
        p->d = (double *)cg_graph_take_(mem, &used, nodes + p->krylov, 8);
        p->e = (double *)cg_graph_take_(mem, &used, nodes + p->krylov, 8);
        p->z = (double *)cg_graph_take_(mem, &used, dense ? (p->krylov + 3) * nodes : 5 * p->krylov, 8);
        if (dense) p->krylov = CG_GRAPH_KRYLOV_;
    }
    p->bytes = used;
}
/* NULL, or what is wrong with the numbers of a description. */
static const char *cg_graph_wrong_(const cg_graph_desc *d) {
    const uint32_t traits = d->kind < CG_GRAPH_COUNT_ ? cg_graph_rows_[d->kind].traits : 0;
    if (d->kind >= CG_GRAPH_COUNT_) return "kind is none of the CG_GRAPH_ constants";
    if (d->nodes < 1 || d->nodes > CG_GRAPH_MOST_) return "nodes must be 1 to 65536";
    if ((traits & CG_GRAPH_HAS_ROWS_) && (d->rows < 1 || d->nodes % d->rows)) return "nodes must be a multiple of rows";
    if ((traits & CG_GRAPH_POWER_OF_2_) && (d->nodes & (d->nodes - 1)))
        return "the nodes of a hypercube are a power of 2";
    if ((traits & CG_GRAPH_CHANGES_) && d->weights) return "one-peer graphs have their own weights";
    if (d->directed && (!(traits & CG_GRAPH_LISTED_) || d->weights))
        return "only edges without weights may be directed";
    if ((traits & CG_GRAPH_LISTED_) && !d->edges && (d->edge_count || (!d->weights && d->nodes > 1)))
        return "edges is NULL, and so is weights";
    if (!(traits & CG_GRAPH_LISTED_) && d->edge_count) return "edges are for CG_GRAPH_EDGES";
    if (d->edge_count > ((size_t)1 << 30) || (d->weights && d->nodes > 32768)) return "too many edges";
    return NULL;
}
/* first, then peer, of the transposed lists; ascending if i ascends. */
static void cg_graph_transpose_(
    size_t nodes, const uint64_t *first, const int *peer, uint64_t *to_first, int *to_peer, uint64_t *at) {
    memset(at, 0, nodes * sizeof *at);
    for (uint64_t k = 0; k < first[nodes]; k++) at[peer[k]]++;
    to_first[0] = 0;
    for (size_t i = 0; i < nodes; i++) {
        to_first[i + 1] = to_first[i] + at[i];
        at[i] = to_first[i];
    }
    for (size_t i = 0; i < nodes; i++)
        for (uint64_t k = first[i]; k < first[i + 1]; k++) to_peer[at[peer[k]]++] = (int)i;
}
/* The lists of edges: p->first and p->peer by sender, p->first_back and p->peer_back by receiver. */
static cg_status cg_graph_read_edges_(const cg_graph_desc *d, const cg_graph_plan_ *p, char *why, size_t cap) {
    const size_t nodes = (size_t)d->nodes;
    memset(p->at, 0, nodes * sizeof *p->at);
    for (size_t k = 0; k < d->edge_count; k++) {
        const int a = d->edges[k][0], b = d->edges[k][1];
        if (a < 0 || b < 0 || a >= d->nodes || b >= d->nodes)
            return cg_graph_say_(why, cap, "edge ", k, " names a node that is not below nodes, ", nodes, "");
        if (a == b) return cg_graph_say_(why, cap, "edge ", k, " leads from node ", (uint64_t)a, " to itself");
        p->at[a]++;
        if (!d->directed) p->at[b]++;
    }
    p->first_back[0] = 0;
    for (size_t i = 0; i < nodes; i++) {
        p->first_back[i + 1] = p->first_back[i] + p->at[i];
        p->at[i] = p->first_back[i];
    }
    for (size_t k = 0; k < d->edge_count; k++) { /* by sender, in the order given */
        const int a = d->edges[k][0], b = d->edges[k][1];
        p->peer_back[p->at[a]++] = b;
        if (!d->directed) p->peer_back[p->at[b]++] = a;
    }
    cg_graph_transpose_(nodes, p->first_back, p->peer_back, p->first, p->peer, p->at);
    if (d->directed) { /* by receiver, ascending; and once more by sender */
        for (uint64_t k = 0; k <= nodes; k++) p->first_back[k] = p->first[k];
        memcpy(p->peer_back, p->peer, p->arcs * sizeof *p->peer);
        cg_graph_transpose_(nodes, p->first_back, p->peer_back, p->first, p->peer, p->at);
    } else {
        memcpy(p->first_back, p->first, (nodes + 1) * sizeof *p->first);
        memcpy(p->peer_back, p->peer, p->arcs * sizeof *p->peer);
    }
    for (size_t i = 0; i < nodes; i++)
        for (uint64_t k = p->first[i] + 1; k < p->first[i + 1]; k++)
            if (p->peer[k] == p->peer[k - 1])
                return cg_graph_say_(
                    why, cap, "edges has the edge between nodes ", i, " and ", (uint64_t)p->peer[k], " twice");
    return CG_OK;
}
/* The lists of W, and its weights. */
static cg_status cg_graph_read_weights_(const cg_graph_desc *d, const cg_graph_plan_ *p, char *why, size_t cap) {
    const size_t nodes = (size_t)d->nodes;
    uint64_t arcs = 0;
    p->first[0] = 0;
    for (size_t i = 0; i < nodes; i++) {
        double sum = 0.0;
        size_t known = 0, seen = 0;
        const int named = !(cg_graph_rows_[d->kind].traits & CG_GRAPH_LISTED_);
        if (named) known = cg_graph_named_list_(d, (int)i, p->list);
        for (size_t j = 0; j < nodes; j++) {
            const float w = cg_load_(d->weights, i * nodes + j), back = cg_load_(d->weights, j * nodes + i);
            if (!cg_is_finite_(w) || w < 0.0f)
                return cg_graph_say_(
                    why, cap, "row ", i, " of W has an entry that is negative or not finite, for node ", j, "");
            if (cg_as_bits_(w + 0.0f) != cg_as_bits_(back + 0.0f))
                return cg_graph_say_(
                    why, cap, "row ", i, " of W is not symmetric: its entry for node ", j, " is another there");
            sum += (double)w;
            if (j == i || w == 0.0f) continue;
            while (seen < known && (size_t)p->list[seen] < j) seen++;
            if (named && (seen == known || (size_t)p->list[seen] != j))
                return cg_graph_say_(why, cap, "row ", i, " of W has a weight for node ", j, ", which is no neighbour");
            p->peer[arcs] = (int)j;
            p->weight[arcs++] = w;
        }
        p->first[i + 1] = arcs;
        if (cg_abs64_(sum - 1.0) > 1e-5) {
            cg_text_ t;
            if (!cap) return CG_E_ARG;
            t.at = why;
            t.end = why + cap - 1;
            cg_text_str_(&t, "row ");
            cg_text_uint_(&t, i);
            cg_text_str_(&t, " of W adds up to ");
            cg_text_float_(&t, cg_saturate64_(sum));
            cg_text_str_(&t, ", not to 1");
            *t.at = 0;
            return CG_E_ARG;
        }
    }
    if (d->edges) { /* W must lie on them: each arc of W is looked for among the edges, which are few per node */
        const cg_graph_plan_ *q = p;
        memset(q->at, 0, nodes * sizeof *q->at);
        for (size_t k = 0; k < d->edge_count; k++) {
            const int a = d->edges[k][0], b = d->edges[k][1];
            if (a < 0 || b < 0 || a >= d->nodes || b >= d->nodes || a == b)
                return cg_graph_say_(why, cap, "edge ", k, " does not join two nodes below nodes, ", nodes, "");
            if (cg_load_(d->weights, (size_t)a * nodes + (size_t)b) != 0.0f) q->at[a]++, q->at[b]++;
        }
        for (size_t i = 0; i < nodes; i++)
            if (q->at[i] != q->first[i + 1] - q->first[i])
                return cg_graph_say_(
                    why, cap, "row ", i, " of W and edges differ: an edge is missing, or is there twice", 0, NULL);
    }
    memcpy(p->first_back, p->first, (nodes + 1) * sizeof *p->first);
    memcpy(p->peer_back, p->peer, (size_t)arcs * sizeof *p->peer);
    return CG_OK;
}
/* How many nodes node 0 reaches along these lists; *missing := one that it does not. */
static size_t cg_graph_reach_(
    size_t nodes, const uint64_t *first, const int *peer, int *queue, uint64_t *seen, size_t *missing) {
    size_t many = 1;
    memset(seen, 0, nodes * sizeof *seen);
    seen[0] = 1;
    queue[0] = 0;
    for (size_t at = 0; at < many; at++)
        for (uint64_t k = first[queue[at]]; k < first[queue[at] + 1]; k++)
            if (!seen[peer[k]]) {
                seen[peer[k]] = 1;
                queue[many++] = peer[k];
            }
    for (*missing = 0; *missing < nodes && seen[*missing];) ++*missing;
    return many;
}

/* ---- the spectrum ---- */

/* By characters: 1 - lambda_j and 1 + lambda_j are sums over the neighbours p of node 0 of sin^2 and cos^2. */
static void cg_graph_spectrum_group_(const cg_graph *g, const int *peers, double *gap, double *omega) {
    const cg_graph_row_ *row = &cg_graph_rows_[g->desc.kind];
    const uint64_t nodes = (uint64_t)g->desc.nodes;
    const double self = 1.0 / (double)(1 + g->most);
    double least = 2.0, sum = 0.0;
    for (uint64_t j = 1; j < nodes; j++) {
        double below = 0.0, above = 2.0 * self; /* 1 - lambda, 1 + lambda */
        for (size_t k = 0; k < g->most; k++) {
            const uint64_t phase = row->phase(&g->desc, j, (uint64_t)peers[k]);
            const uint64_t twice = 2 * phase > nodes ? 2 * phase - nodes : nodes - 2 * phase;
            const double s = cg_sin_pi_(phase, nodes), c = cg_sin_pi_(twice, 2 * nodes);
            below += 2.0 * self * s * s;
            above += 2.0 * self * c * c;
        }
        if (below < least) least = below;
        if (above < least) least = above;
        sum += below / above;
    }
    *gap = least;
    *omega = (double)nodes / sum;
}
/* L = I - W times x, from differences, so that small eigenvalues keep their digits. */
static void cg_graph_laplace_(const cg_graph *g, const double *x, double *y) {
    for (int i = 0; i < g->desc.nodes; i++) {
        double sum = 0.0;
        for (uint64_t k = g->first[i]; k < g->first[i + 1]; k++)
            sum += cg_times64_((double)cg_graph_edge_weight_(g, i, g->peer[k], k - g->first[i]), x[i] - x[g->peer[k]]);
        y[i] = sum;
    }
}
/* A start that no symmetry of the graph knows, without mean. */
static void cg_graph_start_(double *x, size_t n) {
    double mean = 0.0;
    for (size_t i = 0; i < n; i++) {
        x[i] = (double)(cg_mix64_((i + 1) * CG_GOLDEN_) >> 11) / 9007199254740992.0 - 0.5;
        mean += x[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) x[i] -= mean;
}
/* The gap alone, by Lanczos on L across the constant vectors. Vectors are not made orthogonal again: copies of
   eigenvalues that have converged come up, which changes neither end of the spectrum. -1: not to 1e-6. */
static double cg_graph_lanczos_(const cg_graph *g, const cg_graph_plan_ *p) {
    const size_t n = (size_t)g->desc.nodes;
    double *q = p->v, *last = q + n, *next = last + n, *a = p->d, *b = p->e, beta = 0.0;
    size_t check = 32;
    cg_graph_start_(q, n);
    memset(last, 0, n * sizeof *last);
    beta = cg_sqrt_(cg_dot_(q, q, n));
    for (size_t i = 0; i < n; i++) q[i] /= beta;
    beta = 0.0;
    for (size_t k = 0; k < p->krylov; k++) {
        double mean = 0.0, *t;
        cg_graph_laplace_(g, q, next);
        for (size_t i = 0; i < n; i++) next[i] -= cg_times64_(beta, last[i]);
        a[k] = cg_dot_(next, q, n);
        for (size_t i = 0; i < n; i++) {
            next[i] -= cg_times64_(a[k], q[i]);
            mean += next[i];
        }
        mean /= (double)n;
        for (size_t i = 0; i < n; i++) next[i] -= mean;
        beta = b[k] = cg_sqrt_(cg_dot_(next, next, n));
        if (k + 1 == check || beta < 1e-13 || k + 1 == p->krylov) {
            const double low = cg_tri_extreme_(a, b, k + 1, 0), high = cg_tri_extreme_(a, b, k + 1, 1);
            const double gap = low < 2.0 - high ? low : 2.0 - high;
            const double error = cg_times64_(beta, cg_tri_last_(a, b, k + 1, low, p->z));
            const double other = cg_times64_(beta, cg_tri_last_(a, b, k + 1, high, p->z));
            /* the error of an eigenvalue is at most the residual; a hundredth more for the rounding of L */
            if (error <= 5e-7 * gap && (2.0 - high - other > gap || other <= 5e-7 * gap) && gap > 2e-10) return gap;
            if (beta < 1e-13) return gap > 2e-10 ? gap : -1.0;
            check += check / 4 + 16;
        }
        for (size_t i = 0; i < n; i++) next[i] /= beta;
        t = last, last = q, q = next, next = t;
    }
    return -1.0;
}
/* out = G x, for G of the manual: x on the diagonal between the factors (W - I) W^t of both sides, summed over t in the
   basis of eigenvectors, where the sum over t is a geometric one. */
static void cg_graph_noise_(const cg_graph_plan_ *p, size_t n, const double *x, double *out, double *row) {
    const double *v = p->v, *d = p->d;
    double *y = p->y;
    memset(y, 0, n * n * sizeof *y);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            const double f = cg_times64_(x[i], v[i * n + k]);
            cg_axpy_(f, v + i * n + k, y + k * n + k, n - k);
        }
    for (size_t k = 0; k < n; k++)
        for (size_t l = k; l < n; l++) {
            const int constant = l == p->constant || k == p->constant;
            y[k * n + l] *= constant ? 0.0 : (1.0 - d[k]) * (1.0 - d[l]) / (1.0 - cg_times64_(d[k], d[l]));
            y[l * n + k] = y[k * n + l];
        }
    for (size_t i = 0; i < n; i++) {
        memset(row, 0, n * sizeof *row);
        for (size_t k = 0; k < n; k++) cg_axpy_(v[i * n + k], y + k * n, row, n);
        out[i] = cg_dot_(row, v + i * n, n);
    }
}
/* 1 / the spectral radius of G, by Lanczos with all vectors kept orthogonal. */
static double cg_graph_dcd_(const cg_graph_plan_ *p, size_t n) {
    double *a = p->d + n, *b = p->e + n, *q = p->z, *row = q + p->krylov * n, *out = row + n, radius = 0.0;
    for (size_t i = 0; i < n; i++) q[i] = 1.0 / cg_sqrt_((double)n); /* the eigenvector, if all nodes see the same */
    for (size_t k = 0; k < p->krylov && k < n; k++) {
        double before = radius, beta;
        cg_graph_noise_(p, n, q + k * n, out, row);
        a[k] = cg_dot_(out, q + k * n, n);
        for (int twice = 0; twice < 2; twice++)
            for (size_t j = 0; j <= k; j++) {
                const double f = cg_dot_(out, q + j * n, n);
                cg_axpy_(-f, q + j * n, out, n);
            }
        beta = b[k] = cg_sqrt_(cg_dot_(out, out, n));
        radius = cg_tri_extreme_(a, b, k + 1, 1);
        if (beta <= 1e-9 * radius || (k && radius - before <= 1e-10 * radius) || k + 1 == p->krylov) break;
        if (k + 1 < n && k + 1 < p->krylov)
            for (size_t i = 0; i < n; i++) q[(k + 1) * n + i] = out[i] / beta;
    }
    return 1.0 / radius;
}
static void cg_graph_spectrum_listed_(cg_graph *g, cg_graph_plan_ *p) {
    const size_t n = (size_t)g->desc.nodes;
    double largest = 0.0, least = 1.0;
    g->omega = -1.0;
    if (n > CG_GRAPH_DENSE_) {
        g->gap = cg_graph_lanczos_(g, p);
        return;
    }
    memset(p->y, 0, n * n * sizeof *p->y);
    for (size_t i = 0; i < n; i++) {
        double own = 1.0;
        for (uint64_t k = g->first[i]; k < g->first[i + 1]; k++) {
            const double w = (double)cg_graph_edge_weight_(g, (int)i, g->peer[k], k - g->first[i]);
            p->y[i * n + (size_t)g->peer[k]] = w;
            own -= w;
        }
        p->y[i * n + i] = own;
    }
    cg_tridiagonal_(p->y, n, p->v, p->d, p->e, p->z);
    cg_tridiagonal_ql_(p->d, p->e, n, p->v);
    for (size_t i = 0; i < n; i++) /* eigenvectors become columns */
        for (size_t j = 0; j < i; j++) {
            const double t = p->v[i * n + j];
            p->v[i * n + j] = p->v[j * n + i];
            p->v[j * n + i] = t;
        }
    for (size_t k = 0; k < n; k++)
        if (p->d[k] > p->d[p->constant]) p->constant = k;
    for (size_t k = 0; k < n; k++) {
        if (k != p->constant && cg_abs64_(p->d[k]) > largest) largest = cg_abs64_(p->d[k]);
        if (p->d[k] < least) least = p->d[k];
    }
    g->gap = 1.0 - largest;
    g->omega = least <= -1.0 + 1e-12 ? 0.0 : cg_graph_dcd_(p, n);
    if (g->gap < 1e-12) g->gap = 0.0;
}

/* ---- public ---- */

CG_API_ size_t cg_graph_memory(const cg_graph_desc *desc) {
    cg_graph_plan_ plan;
    if (!desc || cg_graph_wrong_(desc)) return 0;
    cg_graph_plan_make_(&plan, desc, NULL);
    return cg_size_or_zero_(cg_add_sat_(plan.bytes, 64));
}
static cg_status cg_graph_make_(cg_graph *g, const cg_graph_desc *desc, void *mem, char *why, size_t cap) {
    const size_t nodes = (size_t)desc->nodes;
    cg_graph_plan_ p;
    size_t missing;
    cg_status s;
    cg_graph_plan_make_(&p, desc, (uint8_t *)mem + (64 - ((uintptr_t)mem & 63)) % 64);
    g->desc = *desc;
    g->desc.edges = NULL;
    g->desc.weights = NULL;
    g->mark = cg_mix64_(((uint64_t)desc->kind << 32 | (uint64_t)nodes) + CG_GOLDEN_);
    g->mark = cg_mix64_(g->mark ^ (uint64_t)(desc->rows + 2 * (desc->directed != 0)) * CG_GOLDEN_);
    g->gap = g->omega = -1.0;
    if (!p.first) {
        g->most = cg_graph_named_list_(desc, 0, p.list);
        if (nodes < 2) g->gap = 1.0, g->omega = 1e300;
        else if (cg_graph_rows_[desc->kind].spectrum) cg_graph_rows_[desc->kind].spectrum(desc, &g->gap, &g->omega);
        else cg_graph_spectrum_group_(g, p.list, &g->gap, &g->omega);
        return CG_OK;
    }
    s = desc->weights ? cg_graph_read_weights_(desc, &p, why, cap) : cg_graph_read_edges_(desc, &p, why, cap);
    if (s != CG_OK) return s;
    g->first = p.first, g->peer = p.peer, g->first_back = p.first_back, g->peer_back = p.peer_back;
    g->weight = p.weight;
    for (size_t i = 0; i < nodes; i++) {
        const uint64_t out = p.first[i + 1] - p.first[i], in = p.first_back[i + 1] - p.first_back[i];
        if (out > g->most) g->most = (size_t)out;
        if (in > g->most) g->most = (size_t)in;
        for (uint64_t k = p.first[i]; k < p.first[i + 1]; k++)
            g->mark = cg_mix64_(g->mark ^ ((uint64_t)p.peer[k] << 32 | (p.weight ? cg_as_bits_(p.weight[k]) : 0u)));
        g->mark = cg_mix64_(g->mark + out);
    }
    for (int back = 0; back < 2; back++)
        if (cg_graph_reach_(nodes, back ? p.first_back : p.first, back ? p.peer_back : p.peer, p.list, p.at, &missing) <
            nodes)
            return cg_graph_say_(
                why, cap, "the graph falls apart: no way leads between node 0 and node ", missing, "", 0, NULL);
    if (nodes < 2) g->gap = 1.0, g->omega = 1e300;
    else if (!desc->directed) cg_graph_spectrum_listed_(g, &p);
    return CG_OK;
}
CG_API_ cg_status cg_graph_init(
    cg_graph *graph, const cg_graph_desc *desc, void *mem, size_t bytes, char *why, size_t cap) {
    cg_fenv_ env;
    cg_status s;
    if (why && cap) *why = 0;
    if (!why) cap = 0;
    if (graph) memset(graph, 0, sizeof *graph);
    if (!graph || !desc) return cg_graph_say_(why, cap, "graph or desc is NULL", 0, NULL, 0, NULL);
    if (cg_graph_wrong_(desc)) return cg_graph_say_(why, cap, cg_graph_wrong_(desc), 0, NULL, 0, NULL);
    if (!mem || !cg_graph_memory(desc) || bytes < cg_graph_memory(desc)) {
        cg_graph_say_(why, cap, "mem is too small: cg_graph_memory gives ", cg_graph_memory(desc), " bytes", 0, NULL);
        return CG_E_MEMORY;
    }
    env = cg_fenv_enter_();
    s = cg_graph_make_(graph, desc, mem, why, cap);
    cg_fenv_leave_(env);
    if (s != CG_OK) memset(graph, 0, sizeof *graph);
    return s;
}
CG_API_ double cg_graph_gap(const cg_graph *graph) { return graph && graph->desc.nodes ? graph->gap : -1.0; }
CG_API_ double cg_graph_omega(const cg_graph *graph) { return graph && graph->desc.nodes ? graph->omega : -1.0; }
CG_API_ float cg_graph_weight(const cg_graph *graph, int i, int j, uint64_t step) {
    const cg_graph_desc *d = graph ? &graph->desc : NULL;
    double own = 1.0;
    if (!d || i < 0 || j < 0 || i >= d->nodes || j >= d->nodes) return 0.0f;
    if (cg_graph_has_(graph, CG_GRAPH_CHANGES_)) {
        if (d->nodes == 1) return 1.0f;
        return j == i || j == cg_graph_around_(d, i, -cg_graph_hop_(graph, step)) ? 0.5f : 0.0f;
    }
    if (d->directed && i == j) return 1.0f / (float)(1 + cg_graph_degree_(graph, i));
    if (graph->first) {
        for (uint64_t k = graph->first_back[i]; k < graph->first_back[i + 1]; k++) {
            const float w = cg_graph_edge_weight_(graph, i, graph->peer_back[k], k - graph->first_back[i]);
            if (graph->peer_back[k] == j) return w;
            own -= (double)w;
        }
    } else {
        const cg_graph_row_ *row = &cg_graph_rows_[d->kind];
        for (size_t k = 0; i != j && k < row->count(d); k++)
            if (row->peer(d, i, (int)k) == j) return cg_graph_edge_weight_(graph, i, j, 0);
        if (cg_graph_has_(graph, CG_GRAPH_CENTRED_))
            own -= (double)cg_graph_edge_weight_(graph, 0, 1, 0) * (double)cg_graph_degree_(graph, i);
        else own = 1.0 / (double)(1 + graph->most);
    }
    return i == j ? (float)own : 0.0f;
}

/* src/sync/local.h */
/* local: models that are trained apart, and averaged now and then (local SGD, DiLoCo and their kin)

   Offers   the public cg_local_* but for saving
   Needs    base, ef's and exchange's public calls
   Touches  the state, x, the caller's memory, the report
   A fragment f of F is [f n / F, (f + 1) n / F), with an anchor, a delta and error feedback of its own. In a step it
   starts: delta = anchor - x, which an exchange makes the mean over ranks; and it lands, at once or delay steps later:
   the outer step changes the anchor, and x is mixed with it. */

enum {
    CG_LOCAL_FRAGMENTS_ = 4096 /* at most */
};
static size_t cg_local_first_(const cg_local_desc *d, size_t f) { /* of fragment f; f = fragments: n */
    const size_t count = d->fragments ? d->fragments : 1, n = d->ef.n;
    return n / count * f + cg_min_(f, n % count);
}
static size_t cg_local_count_(const cg_local_desc *d) { return d->fragments ? d->fragments : 1; }
static cg_ef_desc cg_local_ef_desc_(const cg_local_desc *d, size_t f) {
    cg_ef_desc e = d->ef;
    e.n = cg_local_first_(d, f + 1) - cg_local_first_(d, f);
    return e;
}
/* NULL, or what is wrong with a description but for its ef. */
static const char *cg_local_wrong_(const cg_local_desc *d) {
    if (!d->ef.n) return "ef.n is 0";
    if (d->fragments > CG_LOCAL_FRAGMENTS_ || d->fragments > d->ef.n) return "more fragments than values, or than 4096";
    if (!(d->outer_rate >= 0.0f && d->outer_rate <= 1e6f)) return "outer_rate must be 0 to 1e6";
    if (!(d->outer_momentum >= 0.0f && d->outer_momentum < 1.0f))
        return "outer_momentum must be at least 0 and below 1";
    if (!(d->mix >= 0.0f && d->mix < 1.0f)) return "mix must be at least 0 and below 1";
    if (d->flags & ~(uint32_t)CG_LOCAL_MODELS) return "flags has a bit that means nothing";
    if ((d->flags & CG_LOCAL_MODELS) && (d->outer_rate != 0.0f || d->outer_momentum != 0.0f || d->nesterov))
        return "the mean of models is the model: outer_rate, outer_momentum and nesterov are for deltas";
    if (d->nesterov && d->outer_momentum == 0.0f) return "nesterov needs an outer_momentum";
    if (d->table_count && !d->table) return "table is NULL";
    for (size_t k = 0; k < d->table_count; k++)
        if (!d->table[k].period || (k && d->table[k].from <= d->table[k - 1].from))
            return "table must ascend by from, and its periods begin at 1";
    return NULL;
}
/* The period at that step, and the step where its counting begins. */
static uint64_t cg_local_period_(const cg_local_desc *d, uint64_t step, uint64_t *from) {
    uint64_t period = d->period ? d->period : 1;
    *from = 0;
    if (step < d->switch_step) return 1;
    *from = d->switch_step;
    for (size_t k = 0; k < d->table_count && d->table[k].from <= step; k++) {
        period = d->table[k].period;
        if (d->table[k].from > *from) *from = d->table[k].from;
    }
    return period;
}
/* Whether fragment f starts after that step. Starts are spread over the period, in the order of fragments. */
static int cg_local_starts_(const cg_local_desc *d, size_t f, uint64_t step) {
    const uint64_t count = cg_local_count_(d);
    uint64_t from, period = cg_local_period_(d, step, &from);
    const uint64_t share = period / count * (f + 1) + period % count * (f + 1) / count;
    return (step - from + 1) % period == share % period;
}
CG_API_ int cg_local_due(const cg_local *local, uint64_t step) {
    if (!local || !local->anchor) return 0;
    for (size_t f = 0; f < cg_local_count_(&local->desc); f++)
        if (cg_local_starts_(&local->desc, f, step)) return 1;
    return 0;
}

/* ---- memory ---- */

typedef struct cg_local_plan_ {
    float *anchor, *velocity, *delta;
    cg_local_fragment *fragment;
    uint64_t ef, bytes; /* where the memory of error feedback begins */
} cg_local_plan_;
static void *cg_sync_take_(uint8_t *mem, uint64_t *used, uint64_t bytes) {
    void *p = mem ? mem + *used : NULL;
    *used = cg_add_sat_(*used, bytes);
    *used = cg_add_sat_(*used, (64 - *used % 64) % 64);
    return p;
}
static void cg_local_plan_make_(const cg_local_desc *d, uint8_t *mem, cg_local_plan_ *p) {
    const uint64_t vector = cg_mul_sat_(4, d->ef.n), count = cg_local_count_(d);
    uint64_t used = 0;
    memset(p, 0, sizeof *p);
    p->fragment = (cg_local_fragment *)cg_sync_take_(mem, &used, cg_mul_sat_(count, sizeof *p->fragment));
    p->anchor = (float *)cg_sync_take_(mem, &used, vector);
    p->delta = (float *)cg_sync_take_(mem, &used, vector);
    if (d->outer_momentum != 0.0f) p->velocity = (float *)cg_sync_take_(mem, &used, vector);
    p->ef = used;
    for (size_t f = 0; f < count; f++) {
        const cg_ef_desc e = cg_local_ef_desc_(d, f);
        const size_t bytes = cg_ef_memory(&e);
        used = bytes ? used : CG_TOO_LARGE_;
        cg_sync_take_(NULL, &used, bytes);
    }
    p->bytes = cg_add_sat_(used, 64);
}
CG_API_ size_t cg_local_memory(const cg_local_desc *desc) {
    cg_local_plan_ p;
    if (!desc || cg_local_wrong_(desc)) return 0;
    cg_local_plan_make_(desc, NULL, &p);
    return cg_size_or_zero_(p.bytes);
}
static cg_status cg_local_fail_(cg_local *l, cg_status s, const char *why, uint64_t need, uint64_t at) {
    cg_report_set_(&l->report, s, why, need, at);
    return s;
}
CG_API_ cg_status cg_local_init(cg_local *local, const cg_local_desc *desc, const float *x0, void *mem, size_t bytes) {
    cg_local_plan_ p;
    uint8_t *base, *at;
    if (!local) return CG_E_ARG;
    memset(local, 0, sizeof *local);
    if (!desc || !x0) return cg_local_fail_(local, CG_E_ARG, "desc or x0 is NULL", 0, CG_NO_INDEX);
    if (cg_local_wrong_(desc)) return cg_local_fail_(local, CG_E_ARG, cg_local_wrong_(desc), 0, CG_NO_INDEX);
    if (cg_first_nonfinite_(x0, desc->ef.n) != CG_NO_INDEX)
        return cg_local_fail_(local, CG_E_NONFINITE, "x0 has NaN or Inf", 0, cg_first_nonfinite_(x0, desc->ef.n));
    if (cg_local_memory(desc) && (!mem || bytes < cg_local_memory(desc)))
        return cg_local_fail_(local, CG_E_MEMORY, "mem is too small: cg_local_memory gives its bytes",
            cg_local_memory(desc), CG_NO_INDEX);
    if (!cg_local_memory(desc)) { /* the first fragment that error feedback refuses says why */
        for (size_t f = 0; f < cg_local_count_(desc); f++) {
            const cg_ef_desc e = cg_local_ef_desc_(desc, f);
            cg_ef ef;
            const cg_status s = cg_ef_init(&ef, &e, NULL, 0);
            cg_ef_report(&ef, &local->report);
            if (s != CG_E_MEMORY) return s;
        }
        return cg_local_fail_(local, CG_E_ARG, "sizes overflow", 0, CG_NO_INDEX);
    }
    base = (uint8_t *)mem + (64 - ((uintptr_t)mem & 63)) % 64;
    cg_local_plan_make_(desc, base, &p);
    at = base + p.ef;
    for (size_t f = 0; f < cg_local_count_(desc); f++) {
        const cg_ef_desc e = cg_local_ef_desc_(desc, f);
        const size_t room = cg_ef_memory(&e);
        cg_status s;
        memset(&p.fragment[f], 0, sizeof p.fragment[f]);
        s = cg_ef_init(&p.fragment[f].ef, &e, at, room);
        if (s != CG_OK) {
            cg_ef_report(&p.fragment[f].ef, &local->report);
            return s;
        }
        at += (room + 63) / 64 * 64;
    }
    memmove(p.anchor, x0, 4 * desc->ef.n);
    memset(p.delta, 0, 4 * desc->ef.n);
    if (p.velocity) memset(p.velocity, 0, 4 * desc->ef.n);
    local->desc = *desc;
    local->anchor = p.anchor;
    local->delta = p.delta;
    local->velocity = p.velocity;
    local->fragment = p.fragment;
    return cg_local_fail_(local, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
}
CG_API_ const float *cg_local_anchor(const cg_local *local) { return local ? local->anchor : NULL; }
CG_API_ void cg_local_report(const cg_local *local, cg_report *report) {
    if (local && report) *report = local->report;
}

/* ---- a step ---- */

/* The caller's description for fragment f at that step. */
static cg_exchange_desc cg_local_exchange_desc_(
    const cg_local *l, const cg_exchange_desc *desc, size_t f, uint64_t step) {
    cg_exchange_desc d = *desc;
    d.tag.step = step;
    d.tag.tensor += (uint32_t)f;
    d.model = NULL;
    d.into = NULL;
    d.common ^= l->mark;
    d.flags |= CG_CONFIRM; /* all ranks move their anchors, or none does */
    return d;
}
CG_API_ size_t cg_local_step_memory(
    const cg_local *local, const cg_exchange_desc *desc, const cg_transport *transport, uint64_t step) {
    size_t most = 0;
    if (!local || !local->anchor || !desc || !transport) return 0;
    for (size_t f = 0; f < cg_local_count_(&local->desc); f++) {
        const cg_exchange_desc d = cg_local_exchange_desc_(local, desc, f, step);
        const size_t bytes = cg_ef_exchange_memory(&local->fragment[f].ef, &d, transport);
        if (!bytes) return 0;
        if (bytes > most) most = bytes;
    }
    return most;
}
/* delta holds the mean: the anchor takes its outer step, and x comes to it. */
static void cg_local_land_(cg_local *l, size_t f, float *x) {
    const cg_local_desc *d = &l->desc;
    const size_t first = cg_local_first_(d, f), end = cg_local_first_(d, f + 1);
    const float rate = d->outer_rate == 0.0f ? 1.0f : d->outer_rate, momentum = d->outer_momentum, rest = 1.0f - d->mix;
    const cg_fenv_ env = cg_fenv_enter_();
    for (size_t i = first; i < end; i++) {
        float update = l->delta[i];
        if (d->flags & CG_LOCAL_MODELS) {
            l->anchor[i] = update;
        } else {
            if (l->velocity) {
                const float u = cg_saturate_(cg_plus_(cg_times_(momentum, l->velocity[i]), update));
                l->velocity[i] = cg_faded_(u);
                update = d->nesterov ? cg_plus_(update, cg_times_(momentum, u)) : u;
            }
            l->anchor[i] = cg_saturate_(cg_minus_(l->anchor[i], cg_times_(rate, update)));
        }
        cg_store_(x, i,
            d->mix == 0.0f ? l->anchor[i]
                           : cg_saturate_(cg_plus_(cg_times_(d->mix, cg_load_(x, i)), cg_times_(rest, l->anchor[i]))));
    }
    l->fragment[f].under_way = 0;
    l->fragment[f].lands = 0;
    cg_fenv_leave_(env);
}
/* Starts fragment f: what the ranks make of their deltas is in delta afterwards. After an error nothing has changed,
   but for rounding in error feedback (cg_ef_withdraw). */
static cg_status cg_local_start_(cg_local *l, const cg_exchange_desc *desc, const cg_transport *t, float *x, size_t f,
    uint64_t step, void *mem, size_t bytes, cg_report *report) {
    const size_t first = cg_local_first_(&l->desc, f), end = cg_local_first_(&l->desc, f + 1);
    const cg_exchange_desc d = cg_local_exchange_desc_(l, desc, f, step);
    cg_ef *ef = &l->fragment[f].ef;
    cg_fenv_ env = cg_fenv_enter_();
    uint64_t from, period = cg_local_period_(&l->desc, step, &from);
    cg_status s;
    for (size_t i = first; i < end; i++)
        l->delta[i] = l->desc.flags & CG_LOCAL_MODELS ? cg_load_(x, i) : cg_minus_(l->anchor[i], cg_load_(x, i));
    cg_fenv_leave_(env);
    s = cg_ef_exchange(ef, &d, t, l->delta + first, mem, bytes, report);
    if (report->at != CG_NO_INDEX && report->rank == t->rank) report->at += first;
    if (s != CG_OK) {
        if (cg_ef_stats_of(ef).kept && cg_ef_withdraw(ef, l->delta + first) != CG_OK)
            for (size_t i = first; i < end; i++) cg_store_(x, i, l->anchor[i]); /* the state has what x had done */
        return s;
    }
    l->mark = cg_mix64_(l->mark ^ (step * CG_GOLDEN_ + f + 1));
    l->fragment[f].under_way = 1;
    l->fragment[f].lands = step + (l->desc.delay < period ? l->desc.delay : period);
    return CG_OK;
}
static void cg_local_count_report_(cg_report *sum, const cg_report *one) {
    sum->bytes_out += one->bytes_out;
    sum->bytes_in += one->bytes_in;
    sum->rounds += one->rounds;
    sum->route = one->route;
}
CG_API_ cg_status cg_local_step(cg_local *local, const cg_exchange_desc *desc, const cg_transport *transport, float *x,
    uint64_t step, void *mem, size_t bytes, cg_report *report) {
    cg_report own;
    cg_status s = CG_OK;
    if (!report) report = &own;
    cg_report_set_(report, CG_E_ARG, "local, desc, transport or x is NULL", 0, CG_NO_INDEX);
    if (!local || !desc || !transport || !x) return CG_E_ARG;
    if (!local->anchor) {
        cg_report_set_(report, CG_E_STATE, "cg_local_init has not made this state", 0, CG_NO_INDEX);
        return CG_E_STATE;
    }
    cg_report_set_(report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    for (size_t f = 0; f < cg_local_count_(&local->desc); f++)
        if (local->fragment[f].under_way && local->fragment[f].lands <= step) cg_local_land_(local, f, x);
    for (size_t f = 0; f < cg_local_count_(&local->desc) && s == CG_OK; f++) {
        cg_report one;
        if (!cg_local_starts_(&local->desc, f, step)) continue;
        if (local->fragment[f].under_way) cg_local_land_(local, f, x); /* the period has become shorter */
        s = cg_local_start_(local, desc, transport, x, f, step, mem, bytes, &one);
        cg_local_count_report_(report, &one);
        if (s != CG_OK || one.why != cg_status_str(CG_OK)) cg_report_copy_outcome_(report, &one);
        if (s == CG_OK && local->fragment[f].lands <= step) cg_local_land_(local, f, x);
    }
    if (step + 1 > local->steps) local->steps = step + 1;
    local->report = *report;
    return s;
}
CG_API_ cg_status cg_local_average(cg_local *local, const cg_exchange_desc *desc, const cg_transport *transport,
    float *v, uint64_t step, void *mem, size_t bytes, cg_report *report) {
    cg_exchange_desc d;
    if (report) cg_report_set_(report, CG_E_ARG, "local, desc, transport or v is NULL", 0, CG_NO_INDEX);
    if (!local || !desc || !transport || !v) return CG_E_ARG;
    if (!local->anchor) return CG_E_STATE;
    if (report) cg_report_set_(report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    if (!cg_local_starts_(&local->desc, 0, step)) return CG_OK;
    d = *desc;
    d.tag.step = step;
    d.tag.tensor += (uint32_t)cg_local_count_(&local->desc);
    d.flags |= CG_CONFIRM;
    return cg_exchange(&d, transport, v, local->desc.ef.n, mem, bytes, report);
}

/* ---- ranks whose anchors differ ---- */

CG_API_ size_t cg_local_agree_memory(
    const cg_local *local, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_exchange_desc d;
    size_t most;
    if (!local || !local->anchor || !desc || !transport) return 0;
    d = *desc;
    d.op = cg_dense();
    d.route = CG_ROUTE_AUTO;
    d.flags |= CG_CONFIRM;
    d.carry = d.warm = NULL;
    most = cg_exchange_memory(&d, transport, local->desc.ef.n);
    for (size_t f = 0; most && f < cg_local_count_(&local->desc); f++) {
        const size_t bytes = cg_ef_agree_memory(&local->fragment[f].ef, &d, transport);
        if (bytes > most) most = bytes;
    }
    return most;
}
CG_API_ cg_status cg_local_agree(cg_local *local, const cg_exchange_desc *desc, const cg_transport *transport, float *x,
    void *mem, size_t bytes, cg_report *report) {
    cg_exchange_desc d = CG_ZERO;
    cg_report own;
    cg_status s;
    if (!report) report = &own;
    cg_report_set_(report, CG_E_ARG, "local, desc, transport or x is NULL", 0, CG_NO_INDEX);
    if (!local || !desc || !transport || !x) return CG_E_ARG;
    if (!local->anchor) return CG_E_STATE;
    for (size_t f = 0; f < cg_local_count_(&local->desc); f++)
        if (local->fragment[f].under_way) cg_local_land_(local, f, x);
    d.tag = desc->tag;
    d.common = desc->common;
    d.weight = desc->weight;
    d.flags = CG_CONFIRM;
    d.into = local->delta; /* the anchor changes if all goes well */
    s = cg_exchange(&d, transport, local->anchor, local->desc.ef.n, mem, bytes, report);
    for (size_t f = 0; s == CG_OK && f < cg_local_count_(&local->desc); f++) {
        cg_exchange_desc one = d;
        one.into = NULL;
        one.tag.tensor += (uint32_t)f + 2;
        s = cg_ef_agree(&local->fragment[f].ef, &one, transport, mem, bytes, report);
    }
    if (s == CG_OK && local->velocity) {
        d.tag.tensor++;
        d.into = NULL;
        s = cg_exchange(&d, transport, local->velocity, local->desc.ef.n, mem, bytes, report);
    }
    local->report = *report;
    if (s != CG_OK) return s;
    memcpy(local->anchor, local->delta, 4 * local->desc.ef.n);
    for (size_t i = 0; i < local->desc.ef.n; i++) cg_store_(x, i, local->anchor[i]);
    local->mark = cg_mix64_(desc->tag.step + CG_GOLDEN_);
    return CG_OK;
}

/* src/sync/local_save.h */
/* local_save: the state of local SGD as bytes, the same on every machine, and back

   Offers   the public cg_local_save_bytes, cg_local_save and cg_local_load
   Needs    local; seals of core
   Touches  the caller's buffer; loading all of the state but its description
   A blob is little-endian. Nothing is loaded before all of it has been checked.

   byte 0 "cglo"  4 version  8 fragments  12 parts (bit 0 velocity)  16 n  24 mark  32 steps  40 zeros  48 checksum of
   everything else (16 bytes)  64 of each fragment: under way (u32), zeros (u32), lands (u64), bytes of its error
   feedback (u64); then anchor, delta and velocity as floats, then the states of error feedback. delta is zeros where
   nothing is under way. */

enum { CG_LOCAL_HEADER_ = 64, CG_LOCAL_ENTRY_ = 24, CG_LOCAL_SEAL_ = 48 };
#define CG_LOCAL_MAGIC_ 0x6f6c6763u /* "cglo" */

static uint64_t cg_local_blob_bytes_(const cg_local *l) {
    const size_t count = cg_local_count_(&l->desc);
    uint64_t bytes = cg_add_sat_(CG_LOCAL_HEADER_, cg_mul_sat_(CG_LOCAL_ENTRY_, count));
    bytes = cg_add_sat_(bytes, cg_mul_sat_(l->velocity ? 12 : 8, l->desc.ef.n));
    for (size_t f = 0; f < count; f++) bytes = cg_add_sat_(bytes, cg_ef_save_bytes(&l->fragment[f].ef));
    return bytes;
}
CG_API_ size_t cg_local_save_bytes(const cg_local *local) {
    return local && local->anchor ? cg_size_or_zero_(cg_local_blob_bytes_(local)) : 0;
}
static uint8_t *cg_sync_put_floats_(uint8_t *p, const float *v, size_t n) {
    for (size_t i = 0; i < n; i++, p += 4) cg_put32_(p, v ? cg_as_bits_(v[i]) : 0u);
    return p;
}
static const uint8_t *cg_sync_get_floats_(const uint8_t *p, float *v, size_t n) {
    for (size_t i = 0; i < n; i++, p += 4) v[i] = cg_as_float_(cg_get32_(p));
    return p;
}
static int cg_sync_finite_(const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++, p += 4)
        if (!cg_is_finite_(cg_as_float_(cg_get32_(p)))) return 0;
    return 1;
}
CG_API_ cg_status cg_local_save(const cg_local *local, void *buf, size_t cap, size_t *len) {
    uint8_t *const start = (uint8_t *)buf;
    uint8_t *p;
    size_t count, bytes;
    if (len) *len = 0;
    if (!local || !buf || !len) return CG_E_ARG;
    if (!local->anchor) return CG_E_STATE;
    bytes = cg_local_save_bytes(local);
    count = cg_local_count_(&local->desc);
    if (!bytes || cap < bytes) return CG_E_CAPACITY;
    memset(start, 0, CG_LOCAL_HEADER_ + CG_LOCAL_ENTRY_ * count);
    cg_put32_(start, CG_LOCAL_MAGIC_);
    cg_put32_(start + 4, 1);
    cg_put32_(start + 8, (uint32_t)count);
    cg_put32_(start + 12, local->velocity ? 1u : 0u);
    cg_put64_(start + 16, local->desc.ef.n);
    cg_put64_(start + 24, local->mark);
    cg_put64_(start + 32, local->steps);
    p = start + CG_LOCAL_HEADER_ + CG_LOCAL_ENTRY_ * count;
    p = cg_sync_put_floats_(p, local->anchor, local->desc.ef.n);
    for (size_t f = 0; f < count; f++) {
        const size_t first = cg_local_first_(&local->desc, f), end = cg_local_first_(&local->desc, f + 1);
        p = cg_sync_put_floats_(p, local->fragment[f].under_way ? local->delta + first : NULL, end - first);
    }
    if (local->velocity) p = cg_sync_put_floats_(p, local->velocity, local->desc.ef.n);
    for (size_t f = 0; f < count; f++) {
        uint8_t *entry = start + CG_LOCAL_HEADER_ + CG_LOCAL_ENTRY_ * f;
        size_t one;
        const cg_status s = cg_ef_save(&local->fragment[f].ef, p, (size_t)(start + bytes - p), &one);
        if (s != CG_OK) return s;
        cg_put32_(entry, (uint32_t)local->fragment[f].under_way);
        cg_put64_(entry + 8, local->fragment[f].lands);
        cg_put64_(entry + 16, one);
        p += one;
    }
    cg_seal_put_(start, bytes, CG_LOCAL_SEAL_);
    *len = bytes;
    return CG_OK;
}
/* Everything that can be wrong but in the states of error feedback. */
static cg_status cg_local_blob_check_(const cg_local *l, const uint8_t *p, size_t len) {
    const size_t count = cg_local_count_(&l->desc), n = l->desc.ef.n;
    const uint8_t *deltas = p + CG_LOCAL_HEADER_ + CG_LOCAL_ENTRY_ * count + 4 * n;
    uint64_t steps;
    if (len < CG_LOCAL_HEADER_ || len % 4 || cg_get32_(p) != CG_LOCAL_MAGIC_) return CG_E_CORRUPT;
    if (!cg_seal_is_intact_(p, len, CG_LOCAL_SEAL_)) return CG_E_CORRUPT;
    if (cg_get32_(p + 4) != 1) return CG_E_VERSION;
    if (cg_get32_(p + 8) != count || cg_get32_(p + 12) != (l->velocity ? 1u : 0u) || cg_get64_(p + 16) != n)
        return CG_E_MISMATCH;
    if (len != cg_local_save_bytes(l) || cg_get64_(p + 40)) return CG_E_CORRUPT;
    steps = cg_get64_(p + 32);
    for (size_t f = 0; f < count; f++) {
        const uint8_t *entry = p + CG_LOCAL_HEADER_ + CG_LOCAL_ENTRY_ * f;
        const uint32_t under_way = cg_get32_(entry);
        const uint64_t lands = cg_get64_(entry + 8);
        if (under_way > 1 || cg_get32_(entry + 4) || cg_get64_(entry + 16) != cg_ef_save_bytes(&l->fragment[f].ef))
            return CG_E_CORRUPT;
        /* what is under way has started at one of the steps so far, and lands after the last of them */
        if (under_way ? !steps || lands < steps || lands - (steps - 1) > l->desc.delay : lands != 0)
            return CG_E_CORRUPT;
        for (size_t i = cg_local_first_(&l->desc, f); !under_way && i < cg_local_first_(&l->desc, f + 1); i++)
            if (cg_get32_(deltas + 4 * i)) return CG_E_CORRUPT;
    }
    return cg_sync_finite_(deltas - 4 * n, (l->velocity ? 3 : 2) * n) ? CG_OK : CG_E_CORRUPT;
}
CG_API_ cg_status cg_local_load(cg_local *local, const void *buf, size_t len) {
    const uint8_t *const start = (const uint8_t *)buf;
    const uint8_t *p;
    cg_status s;
    size_t count;
    if (!local || !buf) return CG_E_ARG;
    if (!local->anchor) return CG_E_STATE;
    count = cg_local_count_(&local->desc);
    s = cg_local_blob_check_(local, start, len);
    if (s != CG_OK) return s;
    p = start + CG_LOCAL_HEADER_ + CG_LOCAL_ENTRY_ * count + (local->velocity ? 12 : 8) * local->desc.ef.n;
    for (size_t f = 0; f < count; f++) {
        s = cg_ef_blob_check_(&local->fragment[f].ef, p, cg_ef_save_bytes(&local->fragment[f].ef), 1);
        if (s != CG_OK) return s;
        p += cg_ef_save_bytes(&local->fragment[f].ef);
    }
    p = start + CG_LOCAL_HEADER_ + CG_LOCAL_ENTRY_ * count;
    p = cg_sync_get_floats_(p, local->anchor, local->desc.ef.n);
    p = cg_sync_get_floats_(p, local->delta, local->desc.ef.n);
    if (local->velocity) p = cg_sync_get_floats_(p, local->velocity, local->desc.ef.n);
    for (size_t f = 0; f < count; f++) {
        const uint8_t *entry = start + CG_LOCAL_HEADER_ + CG_LOCAL_ENTRY_ * f;
        local->fragment[f].under_way = (int)cg_get32_(entry);
        local->fragment[f].lands = cg_get64_(entry + 8);
        s = cg_ef_load(&local->fragment[f].ef, p, cg_ef_save_bytes(&local->fragment[f].ef));
        if (s != CG_OK) return s; /* does not happen: it has been checked */
        p += cg_ef_save_bytes(&local->fragment[f].ef);
    }
    local->mark = cg_get64_(start + 24);
    local->steps = cg_get64_(start + 32);
    return CG_OK;
}

/* src/sync/gossip_kinds.h */
/* gossip_kinds: what each kind of gossip sends, and what it makes of what it hears

   Offers   cg_gossip_row_of_, cg_gossip_has_ and the traits; cg_gossip_fail_
   Needs    graph; base, cg_axpby_ and cg_absmax_bits_ of core
   Touches  the state of a step, x at its end
   Names as in METHODS of the manual: half is x - rate grad, D what a packet decodes to, W the sum of the weights of
   those that were met. gathered has W_ij D_j added up, where no replicas are kept. */

enum {
    CG_GOSSIP_EXACT_ = 1 << 0,       /* sends models as they are: the operator must lose nothing */
    CG_GOSSIP_REPLICATES_ = 1 << 1,  /* packets are changes of what neighbours know */
    CG_GOSSIP_FROM_DENSE_ = 1 << 2,  /* ... and they begin by sending the whole */
    CG_GOSSIP_NEEDS_ETA_ = 1 << 3,   /* desc.eta is the rate of mixing */
    CG_GOSSIP_NEEDS_OMEGA_ = 1 << 4, /* diverges above the omega of the graph */
    CG_GOSSIP_ONE_WAY_ = 1 << 5,     /* edges have a direction */
    CG_GOSSIP_HAS_OWN_ = 1 << 6,     /* keeps a vector of its own */
    CG_GOSSIP_HAS_NEXT_ = 1 << 7,    /* computes the next one beside it */
    CG_GOSSIP_OWN_IS_X_ = 1 << 8     /* which starts as x0 */
};
typedef struct cg_gossip_row_ {
    uint32_t id, traits;
    const float *(*make)(cg_gossip *, const float *grad); /* what is compressed; sets half. grad NULL: zeros */
    void (*after)(cg_gossip *);  /* once it has been: what must be known before messages go out; NULL: nothing */
    void (*finish)(cg_gossip *); /* gathered, replicas or sum are there: half := the next x */
} cg_gossip_row_;

static size_t cg_gossip_n_(const cg_gossip *g) { return g->desc.n; }
static void cg_gossip_add_(const cg_gossip *g, const float *v, float alpha, float *y) { /* y += alpha v */
    if (alpha != 0.0f) cg_axpby_(v, cg_gossip_n_(g), alpha, 1.0f, y);
}
static void cg_gossip_set_(const cg_gossip *g, const float *v, float alpha, float *y) { /* y = alpha v */
    cg_axpby_(v, cg_gossip_n_(g), alpha, 0.0f, y);
}
static void cg_gossip_zero_(const cg_gossip *g, float *y) { memset(y, 0, 4 * cg_gossip_n_(g)); }
static void cg_gossip_half_(cg_gossip *g, const float *x, const float *grad) { /* half = x - rate grad */
    memcpy(g->half, x, 4 * cg_gossip_n_(g));
    if (grad) cg_gossip_add_(g, grad, -g->rate, g->half);
}
/* y += alpha D of this node's packet, which has just been made: it decodes. */
static void cg_gossip_add_own_(const cg_gossip *g, float alpha, float *y) {
    const cg_status s = cg_decode(g->desc.side, g->packet, g->len, alpha, 1.0f, y, cg_gossip_n_(g));
    COMPGRAD_ASSERT(s == CG_OK);
    (void)s;
}
static float cg_gossip_weight_(const cg_gossip *g, const cg_gossip_peer *p) {
    return p->from < 0 ? 0.0f : cg_graph_weight(g->desc.graph, g->desc.rank, p->from, g->step);
}
static int cg_gossip_keeps_replicas_(const cg_gossip *g) { return g->peers && g->peer[0].replica; }

static const float *cg_gossip_make_half_(cg_gossip *g, const float *grad) {
    cg_gossip_half_(g, g->x, grad);
    return g->half;
}
static const float *cg_gossip_make_x_(cg_gossip *g, const float *grad) {
    cg_gossip_half_(g, g->x, grad);
    return g->x;
}
static const float *cg_gossip_make_naive_(cg_gossip *g, const float *grad) {
    if (grad) cg_gossip_set_(g, grad, -g->rate, g->half);
    else cg_gossip_zero_(g, g->half);
    return g->x;
}
static const float *cg_gossip_make_dcd_(cg_gossip *g, const float *grad) { /* the sum of W_ij (x_j - x) - rate grad */
    float weights = 0.0f;
    if (g->sum) cg_gossip_set_(g, g->sum, 1.0f, g->gathered);
    else cg_gossip_zero_(g, g->gathered);
    for (size_t k = 0; k < g->peers; k++) {
        const float w = cg_gossip_weight_(g, &g->peer[k]);
        if (!g->peer[k].replicated) continue;
        weights = cg_plus_(weights, w);
        if (g->peer[k].replica) cg_gossip_add_(g, g->peer[k].replica, w, g->gathered);
    }
    cg_gossip_add_(g, g->x, -weights, g->gathered);
    if (grad) cg_gossip_add_(g, grad, -g->rate, g->gathered);
    return g->gathered;
}
static void cg_gossip_after_dcd_(cg_gossip *g) {
    cg_gossip_set_(g, g->x, 1.0f, g->half);
    cg_gossip_add_own_(g, 1.0f, g->half);
}
static const float *cg_gossip_make_deepsqueeze_(cg_gossip *g, const float *grad) {
    cg_gossip_half_(g, g->x, grad);
    cg_gossip_set_(g, g->half, 1.0f, g->next);
    cg_gossip_add_(g, g->own, 1.0f, g->next);
    return g->next;
}
static void cg_gossip_after_deepsqueeze_(cg_gossip *g) { cg_gossip_add_own_(g, -1.0f, g->next); }
static const float *cg_gossip_make_choco_(cg_gossip *g, const float *grad) {
    cg_gossip_half_(g, g->x, grad);
    cg_gossip_set_(g, g->half, 1.0f, g->gathered);
    cg_gossip_add_(g, g->own, -1.0f, g->gathered);
    return g->gathered;
}
static void cg_gossip_after_choco_(cg_gossip *g) {
    if (cg_gossip_keeps_replicas_(g)) cg_gossip_add_own_(g, 1.0f, g->own);
}
static size_t cg_gossip_out_degree_(const cg_gossip *g) {
    size_t out = 0;
    for (size_t k = 0; k < g->peers; k++) out += g->peer[k].to >= 0;
    return out;
}
static double cg_gossip_share_(const cg_gossip *g) { return 1.0 / (double)(1 + cg_gossip_out_degree_(g)); }
static const float *cg_gossip_make_push_sum_(cg_gossip *g, const float *grad) {
    cg_gossip_half_(g, g->own, grad);
    cg_gossip_set_(g, g->half, (float)cg_gossip_share_(g), g->gathered);
    return g->gathered;
}

static void cg_gossip_finish_dsgd_(cg_gossip *g) { /* (1 - W) half + gathered */
    cg_axpby_(g->gathered, cg_gossip_n_(g), 1.0f, cg_minus_(1.0f, g->mixed), g->half);
}
static void cg_gossip_finish_combine_first_(cg_gossip *g) { /* x + gathered - W x - rate grad */
    cg_gossip_add_(g, g->gathered, 1.0f, g->half);
    cg_gossip_add_(g, g->x, -g->mixed, g->half);
}
static void cg_gossip_finish_naive_(cg_gossip *g) { /* gathered + (1 - W) D - rate grad */
    cg_gossip_add_(g, g->gathered, 1.0f, g->half);
    cg_gossip_add_own_(g, cg_minus_(1.0f, g->mixed), g->half);
}
static void cg_gossip_finish_dcd_(cg_gossip *g) { /* half is x + D already */
    if (!cg_gossip_keeps_replicas_(g) && g->peers) cg_gossip_add_(g, g->gathered, 1.0f, g->sum);
}
static void cg_gossip_finish_deepsqueeze_(cg_gossip *g) { /* half + eta (gathered - W D); next is the residual */
    float *const t = g->own;
    cg_gossip_add_own_(g, -g->mixed, g->gathered);
    cg_gossip_add_(g, g->gathered, g->desc.eta, g->half);
    g->own = g->next;
    g->next = t;
}
static void cg_gossip_finish_choco_(cg_gossip *g) { /* half + eta (sum of W_ij xhat_j - W xhat) */
    const float eta = g->desc.eta;
    float weights = 0.0f;
    if (!cg_gossip_keeps_replicas_(g)) {
        cg_gossip_add_own_(g, 1.0f, g->own);
        if (g->peers) cg_gossip_add_(g, g->gathered, 1.0f, g->sum);
        if (g->peers) cg_gossip_add_(g, g->sum, eta, g->half);
        weights = g->mixed;
    }
    for (size_t k = 0; k < g->peers && g->peer[k].replica; k++) {
        const float w = cg_gossip_weight_(g, &g->peer[k]);
        if (!g->peer[k].met) continue;
        weights = cg_plus_(weights, w);
        cg_gossip_add_(g, g->peer[k].replica, cg_times_(eta, w), g->half);
    }
    cg_gossip_add_(g, g->own, -cg_times_(eta, weights), g->half);
}
/* What was sent leaves the numerator, what was heard enters it, and so with the weight: whatever is lost by the
   operator or on the way stays here. */
static void cg_gossip_finish_push_sum_(cg_gossip *g) {
    const double share = cg_gossip_share_(g);
    double weight = g->weight;
    if (g->sent) cg_gossip_add_own_(g, -(float)g->sent, g->half);
    cg_gossip_add_(g, g->gathered, 1.0f, g->half);
    weight -= cg_times64_(cg_times64_((double)g->sent, share), g->weight);
    g->weight = weight + g->heard;
    cg_gossip_set_(g, g->half, 1.0f, g->own);
    cg_gossip_set_(g, g->own, cg_saturate64_(1.0 / g->weight), g->half);
}

static const cg_gossip_row_ cg_gossip_rows_[] = {
    { CG_GOSSIP_DSGD, CG_GOSSIP_EXACT_, cg_gossip_make_half_, NULL, cg_gossip_finish_dsgd_ },
    { CG_GOSSIP_DSGD_COMBINE_FIRST, CG_GOSSIP_EXACT_, cg_gossip_make_x_, NULL, cg_gossip_finish_combine_first_ },
    { CG_GOSSIP_NAIVE, 0, cg_gossip_make_naive_, NULL, cg_gossip_finish_naive_ },
    { CG_GOSSIP_DCD, CG_GOSSIP_REPLICATES_ | CG_GOSSIP_FROM_DENSE_ | CG_GOSSIP_NEEDS_OMEGA_, cg_gossip_make_dcd_,
        cg_gossip_after_dcd_, cg_gossip_finish_dcd_ },
    { CG_GOSSIP_DEEPSQUEEZE, CG_GOSSIP_NEEDS_ETA_ | CG_GOSSIP_HAS_OWN_ | CG_GOSSIP_HAS_NEXT_,
        cg_gossip_make_deepsqueeze_, cg_gossip_after_deepsqueeze_, cg_gossip_finish_deepsqueeze_ },
    { CG_GOSSIP_CHOCO, CG_GOSSIP_REPLICATES_ | CG_GOSSIP_NEEDS_ETA_ | CG_GOSSIP_HAS_OWN_, cg_gossip_make_choco_,
        cg_gossip_after_choco_, cg_gossip_finish_choco_ },
    { CG_GOSSIP_PUSH_SUM, CG_GOSSIP_ONE_WAY_ | CG_GOSSIP_HAS_OWN_ | CG_GOSSIP_OWN_IS_X_, cg_gossip_make_push_sum_, NULL,
        cg_gossip_finish_push_sum_ },
};
enum { CG_GOSSIP_KINDS_ = (int)(sizeof cg_gossip_rows_ / sizeof *cg_gossip_rows_) };
static const cg_gossip_row_ *cg_gossip_row_of_(const cg_gossip_desc *d) { return &cg_gossip_rows_[d->kind]; }
static int cg_gossip_has_(const cg_gossip_desc *d, uint32_t trait) {
    return (cg_gossip_row_of_(d)->traits & trait) != 0;
}

/* src/sync/gossip.h */
/* gossip: one step of one node, message by message

   Offers   the public cg_gossip_* but for saving
   Needs    graph, gossip_kinds; base, seals of core
   Touches  the state, x at the end of a step
   Two neighbours meet by a note each way, and then a packet each way. All nodes meet in one order of edges, so that the
   first edge that is not through always has both its ends ready. A note says whether its node is well, what it holds of
   the other (have), and the names of what the other should hold (mine) and will (becomes). Names are chains of
   hashes of packet headers: where they do not fit, the whole vector is sent in place of a packet.

   byte 0 "cggn"  4 version  8 status  12 zeros  16 step  24 setup  32 mine  40 becomes  48 have  56 length of the
   packet
       64 weight (double)  72 from  76 to  80 checksum of everything else, as of a packet */

enum {
    CG_GOSSIP_NOTE_ = 96,
    CG_GOSSIP_NOTE_SEAL_ = 80,
    CG_GOSSIP_IDLE_ = 0, /* no step is under way */
    CG_GOSSIP_MEET_,     /* the next peer's note is to go out */
    CG_GOSSIP_NOTED_,    /* it has */
    CG_GOSSIP_PACKET_    /* and the packet too */
};
#define CG_GOSSIP_MAGIC_ 0x6e676763u /* "cggn" */
#define CG_GOSSIP_LEAST_WEIGHT_ 1e-9 /* PUSH_SUM: what has so little left keeps it, and sends nothing */

/* ---- init ---- */

static cg_status cg_gossip_say_(cg_gossip *g, cg_status s, const char *a, const char *b) {
    cg_text_ t = { g->why, g->why + sizeof g->why - 1 };
    cg_text_str_(&t, a);
    if (b) cg_text_str_(&t, b);
    *t.at = 0;
    cg_report_set_(&g->report, s, cg_status_str(s), 0, CG_NO_INDEX);
    return s;
}
static int cg_gossip_wants_replicas_(const cg_gossip_desc *d) {
    return cg_gossip_has_(d, CG_GOSSIP_REPLICATES_) &&
        ((d->flags & CG_GOSSIP_TOLERATE) || cg_graph_has_(d->graph, CG_GRAPH_CHANGES_));
}
/* Only the peer of the step is met, where the graph changes; replicas must be kept up with all of them. */
static int cg_gossip_meets_one_(const cg_gossip_desc *d) {
    return cg_graph_has_(d->graph, CG_GRAPH_CHANGES_) && !cg_gossip_has_(d, CG_GOSSIP_REPLICATES_);
}
static size_t cg_gossip_count_(const cg_gossip_desc *d) { /* of peers */
    const cg_graph *graph = d->graph;
    size_t count;
    if (cg_gossip_meets_one_(d)) return graph->desc.nodes > 1 ? (cg_gossip_has_(d, CG_GOSSIP_ONE_WAY_) ? 2 : 1) : 0;
    count = cg_graph_degree_(graph, d->rank);
    if (cg_gossip_has_(d, CG_GOSSIP_ONE_WAY_))
        count += graph->desc.directed ? (size_t)(graph->first_back[d->rank + 1] - graph->first_back[d->rank]) : count;
    return count;
}
/* What is wrong with a description; why: g's. */
static cg_status cg_gossip_check_(cg_gossip *g, const cg_gossip_desc *d, cg_about *about) {
    const cg_graph *graph = d->graph;
    double omega;
    if (d->kind >= CG_GOSSIP_KINDS_)
        return cg_gossip_say_(g, CG_E_ARG, "kind is none of the CG_GOSSIP_ constants", NULL);
    if (!graph || !graph->desc.nodes)
        return cg_gossip_say_(g, CG_E_ARG, "graph is NULL, or cg_graph_init has not made it", NULL);
    if (d->rank < 0 || d->rank >= graph->desc.nodes)
        return cg_gossip_say_(g, CG_E_ARG, "rank is not below the nodes of graph", NULL);
    if (d->flags & ~(uint32_t)(CG_GOSSIP_TOLERATE | CG_GOSSIP_ANY_OMEGA))
        return cg_gossip_say_(g, CG_E_ARG, "flags has a bit that means nothing", NULL);
    if (cg_gossip_has_(d, CG_GOSSIP_NEEDS_ETA_) ? !(d->eta > 0.0f && d->eta <= 1.0f) : d->eta != 0.0f)
        return cg_gossip_say_(g, CG_E_ARG,
            cg_gossip_has_(d, CG_GOSSIP_NEEDS_ETA_)
                ? "eta must be above 0 and at most 1: .4 suits 2 bits, .05 top-k of 1 %, .1 DEEPSQUEEZE"
                : "eta is for DEEPSQUEEZE and CHOCO",
            NULL);
    if (graph->desc.directed && !cg_gossip_has_(d, CG_GOSSIP_ONE_WAY_))
        return cg_gossip_say_(
            g, CG_E_UNSUPPORTED, "a directed graph is for PUSH_SUM: other kinds need both directions", NULL);
    if ((d->flags & CG_GOSSIP_TOLERATE) && cg_gossip_meets_one_(d) && !cg_gossip_has_(d, CG_GOSSIP_ONE_WAY_))
        return cg_gossip_say_(g, CG_E_UNSUPPORTED,
            "a one-peer graph cannot do without a node: its rows would not add up to 1; PUSH_SUM can", NULL);
    if (!(d->omega >= 0.0f)) return cg_gossip_say_(g, CG_E_ARG, "omega must be 0 or more", NULL);
    if (!cg_bound_with(&d->op, d->side, d->n)) {
        (void)cg_op_about(&d->op, d->n, about);
        return cg_gossip_say_(g, CG_E_ARG, "op: ", about->why);
    }
    if (cg_op_about(&d->op, d->n, about) != CG_OK) return cg_gossip_say_(g, CG_E_ARG, "op: ", about->why);
    if (cg_gossip_has_(d, CG_GOSSIP_EXACT_) && about->omega != 0.0)
        return cg_gossip_say_(
            g, CG_E_UNSUPPORTED, "D-SGD sends models as they are, and op loses something: take CHOCO or DCD", NULL);
    omega = d->omega != 0.0f ? (double)d->omega : about->omega;
    if (cg_gossip_has_(d, CG_GOSSIP_NEEDS_OMEGA_) && !(d->flags & CG_GOSSIP_ANY_OMEGA) && graph->omega >= 0.0 &&
        omega > graph->omega) {
        cg_text_ t = { g->why, g->why + sizeof g->why - 1 };
        cg_text_str_(&t, "DCD diverges: omega of op is ");
        cg_text_float_(&t, cg_saturate64_(omega));
        cg_text_str_(&t, ", and this graph survives ");
        cg_text_float_(&t, cg_saturate64_(graph->omega));
        cg_text_str_(&t, "; take CHOCO, or an operator with more bits");
        *t.at = 0;
        cg_report_set_(&g->report, CG_E_UNSUPPORTED, cg_status_str(CG_E_UNSUPPORTED), 0, CG_NO_INDEX);
        return CG_E_UNSUPPORTED;
    }
    return CG_OK;
}
/* Parts of mem, into *g; NULL mem: only counts. desc has been checked. */
static uint64_t cg_gossip_plan_(cg_gossip *g, const cg_gossip_desc *d, uint8_t *mem) {
    const uint64_t vector = cg_mul_sat_(4, d->n);
    const size_t peers = cg_gossip_count_(d), bound = cg_bound_with(&d->op, d->side, d->n);
    const cg_op dense = cg_dense();
    const size_t whole = cg_bound(&dense, d->n);
    const int replicates = cg_gossip_has_(d, CG_GOSSIP_REPLICATES_), each = cg_gossip_wants_replicas_(d);
    uint64_t used = 0;
    if (!whole) return CG_TOO_LARGE_;
    g->peers = peers;
    g->packet_cap = bound;
    g->incoming_cap = replicates && whole > bound ? whole : bound;
    g->scratch_bytes = cg_scratch(&d->op, d->n);
    g->peer = (cg_gossip_peer *)cg_sync_take_(mem, &used, cg_mul_sat_(peers, sizeof *g->peer));
    g->notes = (uint8_t *)cg_sync_take_(mem, &used, 2 * CG_GOSSIP_NOTE_);
    g->packet = (uint8_t *)cg_sync_take_(mem, &used, g->packet_cap);
    g->incoming = (uint8_t *)cg_sync_take_(mem, &used, g->incoming_cap);
    g->scratch = (uint8_t *)cg_sync_take_(mem, &used, g->scratch_bytes);
    g->half = (float *)cg_sync_take_(mem, &used, vector);
    g->gathered = (float *)cg_sync_take_(mem, &used, vector);
    if (cg_gossip_has_(d, CG_GOSSIP_HAS_OWN_)) g->own = (float *)cg_sync_take_(mem, &used, vector);
    if (cg_gossip_has_(d, CG_GOSSIP_HAS_NEXT_)) g->next = (float *)cg_sync_take_(mem, &used, vector);
    if (replicates && !each && peers) g->sum = (float *)cg_sync_take_(mem, &used, vector);
    if (replicates && (each || cg_gossip_has_(d, CG_GOSSIP_FROM_DENSE_)))
        g->whole = (uint8_t *)cg_sync_take_(mem, &used, whole);
    for (size_t k = 0; each && k < peers; k++) {
        float *replica = (float *)cg_sync_take_(mem, &used, vector);
        if (mem) g->peer[k].replica = replica;
    }
    return cg_add_sat_(used, 64);
}
static cg_tag cg_gossip_tag_(const cg_gossip *g, int rank, uint64_t step) {
    cg_tag tag = { 0, 0, 0, 0 };
    tag.seed = cg_mix64_(g->desc.seed + CG_GOLDEN_ * ((uint64_t)rank + 1));
    tag.step = step;
    tag.rank = (uint32_t)rank;
    return tag;
}
/* Where two nodes meet in the order of all edges: edges that a ring, a torus or a hypercube has at once come together,
   others in an order that depends on nothing. */
static uint64_t cg_gossip_order_(int a, int b, int nodes, int one_way) {
    const uint64_t low = (uint64_t)(a < b ? a : b), high = (uint64_t)(a < b ? b : a), differ = low ^ high;
    uint64_t colour = 40;
    if (low == high) return 0;
    if (high - low == 1) colour = low & 1;
    else if (low == 0 && high == (uint64_t)nodes - 1) colour = high & 1 ? 1 : 2;
    else if (!(differ & (differ - 1))) colour = 3 + cg_log2_(differ);
    return colour << 57 | (cg_mix64_(low << 32 | high) >> 8) << 1 | (one_way && a > b ? 1u : 0u);
}
static void cg_gossip_peer_add_(cg_gossip *g, size_t k, int to, int from) {
    cg_gossip_peer p;
    const int other = to >= 0 ? to : from, one_way = to != from;
    memset(&p, 0, sizeof p);
    p.to = to;
    p.from = from;
    p.replica = g->peer[k].replica;
    p.order = cg_gossip_order_(
        to >= 0 ? g->desc.rank : other, to >= 0 ? other : g->desc.rank, g->desc.graph->desc.nodes, one_way);
    for (; k && g->peer[k - 1].order > p.order; k--) { /* ascending; each keeps the place of a replica */
        float *const room = g->peer[k].replica;
        g->peer[k] = g->peer[k - 1];
        g->peer[k].replica = room;
        p.replica = g->peer[k - 1].replica;
    }
    g->peer[k] = p;
}
static void cg_gossip_meet_all_(cg_gossip *g) {
    const cg_graph *graph = g->desc.graph;
    size_t count = 0;
    if (cg_gossip_meets_one_(&g->desc)) return; /* every step anew */
    for (int j = 0; j < graph->desc.nodes; j++) {
        int to = 0, from = 0;
        if (j == g->desc.rank) continue;
        to = cg_graph_joined_(graph, g->desc.rank, j, 0);
        from = cg_graph_joined_(graph, g->desc.rank, j, 1);
        if (cg_gossip_has_(&g->desc, CG_GOSSIP_ONE_WAY_)) {
            if (to) cg_gossip_peer_add_(g, count++, j, -1);
            if (from) cg_gossip_peer_add_(g, count++, -1, j);
        } else if (to) {
            cg_gossip_peer_add_(g, count++, j, j);
        }
    }
}
static uint64_t cg_gossip_hash_(uint64_t h, const void *p, size_t bytes) {
    const uint8_t *b = (const uint8_t *)p;
    for (size_t i = 0; i < bytes; i++) h = (h ^ b[i]) * 0x100000001b3u;
    return cg_mix64_(h);
}
static uint64_t cg_gossip_setup_(const cg_gossip_desc *d) {
    char text[160];
    uint64_t h = cg_mix64_(d->graph->mark ^ d->n * CG_GOLDEN_);
    size_t len = 0;
    if (cg_op_print(&d->op, text, sizeof text) == CG_OK) len = cg_text_len_(text);
    h = cg_gossip_hash_(h, text, len);
    h = cg_mix64_(h ^ ((uint64_t)d->kind << 32 | cg_as_bits_(d->eta)));
    return cg_mix64_(h ^ d->seed ^ (uint64_t)(d->flags & CG_GOSSIP_TOLERATE) << 63);
}
CG_API_ size_t cg_gossip_memory(const cg_gossip_desc *desc) {
    cg_gossip g;
    cg_about about;
    memset(&g, 0, sizeof g);
    if (!desc || cg_gossip_check_(&g, desc, &about) != CG_OK) return 0;
    return cg_size_or_zero_(cg_gossip_plan_(&g, desc, NULL));
}
static cg_status cg_gossip_make_(cg_gossip *g, const cg_gossip_desc *d, const float *x0, uint8_t *mem) {
    const cg_tag tag = cg_gossip_tag_(g, d->rank, 0);
    cg_report report;
    cg_extra side = CG_ZERO;
    cg_status s;
    memset(mem, 0, (size_t)cg_gossip_plan_(g, d, NULL) - 64); /* also what no packet will fill goes out as zeros */
    cg_gossip_plan_(g, d, mem);
    if (d->side) side = *d->side;
    side.report = &report;
    /* what every step would refuse */
    s = cg_compress_with(
        &d->op, &tag, &side, x0, d->n, g->packet, g->packet_cap, &g->len, g->scratch, g->scratch_bytes);
    if (s != CG_OK) return cg_gossip_say_(g, s, s == CG_E_NONFINITE ? "x0: " : "op: ", report.why);
    if (d->n && cg_absmax_bits_(x0, d->n) >= CG_INF_BITS_)
        return cg_gossip_say_(g, CG_E_NONFINITE, "x0 has NaN or Inf", NULL);
    g->desc = *d;
    cg_gossip_meet_all_(g);
    g->setup = cg_gossip_setup_(d);
    g->weight = 1.0;
    g->mine = 1; /* what everybody knows: zeros */
    for (size_t k = 0; k < g->peers; k++) g->peer[k].have = 1, g->peer[k].replicated = 1;
    if (cg_gossip_has_(d, CG_GOSSIP_FROM_DENSE_)) {
        g->mine = tag.seed;
        for (size_t i = 0; i < d->n; i++) g->mine = cg_mix64_(g->mine ^ cg_load_bits_(x0, i));
        g->mine |= 2;
        for (size_t k = 0; k < g->peers; k++) g->peer[k].have = 0, g->peer[k].replicated = 0;
    }
    if (cg_gossip_has_(d, CG_GOSSIP_OWN_IS_X_)) memcpy(g->own, x0, 4 * d->n);
    g->why[0] = 0;
    cg_report_set_(&g->report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    return CG_OK;
}
CG_API_ cg_status cg_gossip_init(
    cg_gossip *gossip, const cg_gossip_desc *desc, const float *x0, void *mem, size_t bytes) {
    cg_about about;
    cg_fenv_ env;
    cg_status s;
    uint64_t need;
    if (!gossip) return CG_E_ARG;
    memset(gossip, 0, sizeof *gossip);
    if (!desc || (!x0 && desc->n)) return cg_gossip_say_(gossip, CG_E_ARG, "desc or x0 is NULL", NULL);
    s = cg_gossip_check_(gossip, desc, &about);
    if (s != CG_OK) return s;
    need = cg_gossip_plan_(gossip, desc, NULL);
    if (cg_size_or_zero_(need) == 0) return cg_gossip_say_(gossip, CG_E_ARG, "sizes overflow", NULL);
    if (!mem || bytes < need) {
        memset(gossip, 0, sizeof *gossip);
        cg_gossip_say_(gossip, CG_E_MEMORY, "mem is too small: cg_gossip_memory gives its bytes", NULL);
        gossip->report.need = need;
        return CG_E_MEMORY;
    }
    env = cg_fenv_enter_();
    s = cg_gossip_make_(gossip, desc, x0, (uint8_t *)mem + (64 - ((uintptr_t)mem & 63)) % 64);
    cg_fenv_leave_(env);
    if (s != CG_OK) gossip->desc.graph = NULL;
    return s;
}
CG_API_ const char *cg_gossip_why(const cg_gossip *gossip) { return gossip ? gossip->why : "gossip is NULL"; }
CG_API_ void cg_gossip_report(const cg_gossip *gossip, cg_report *report) {
    if (gossip && report) *report = gossip->report;
}
CG_API_ const float *cg_gossip_replica(const cg_gossip *gossip, int node) {
    for (size_t k = 0; gossip && gossip->desc.graph && k < gossip->peers; k++)
        if (gossip->peer[k].from == node && gossip->peer[k].replicated) return gossip->peer[k].replica;
    return NULL;
}

/* ---- a step ---- */

/* This node fails, or a neighbour of it: the first failure is the step's. */
static void cg_gossip_fail_(cg_gossip *g, cg_status s, const char *why, int rank, uint64_t at) {
    if (g->failed) return;
    g->failed = (uint32_t)s;
    g->report.status = (uint32_t)s;
    g->report.why = why;
    g->report.rank = rank;
    g->report.at = at;
}
/* Compresses what the kind sends. A gradient that is not finite counts as zeros. */
static void cg_gossip_begin_(cg_gossip *g) {
    const cg_gossip_row_ *row = cg_gossip_row_of_(&g->desc);
    const size_t n = g->desc.n;
    const cg_tag tag = cg_gossip_tag_(g, g->desc.rank, g->step);
    const float *grad = g->grad, *v;
    cg_status s;
    if (!cg_is_finite_(g->rate)) {
        cg_gossip_fail_(g, CG_E_ARG, "rate must be finite", g->desc.rank, CG_NO_INDEX);
        return;
    }
    v = row->make(g, grad);
    /* what is not finite shows in v, which has the gradient in it, unless v is x itself */
    if (n && (cg_absmax_bits_(v, n) >= CG_INF_BITS_ || (v == g->x && cg_absmax_bits_(g->half, n) >= CG_INF_BITS_))) {
        const uint64_t at = cg_first_nonfinite_(g->x, n);
        if (at != CG_NO_INDEX) {
            cg_gossip_fail_(g, CG_E_NONFINITE, "x has NaN or Inf", g->desc.rank, at);
            return;
        }
        g->grad_status = CG_E_NONFINITE;
        g->report.at = cg_first_nonfinite_(grad, n);
        v = row->make(g, NULL);
    }
    s = cg_compress_with(
        &g->desc.op, &tag, g->desc.side, v, n, g->packet, g->packet_cap, &g->len, g->scratch, g->scratch_bytes);
    if (s != CG_OK) {
        cg_gossip_fail_(g, s, cg_status_str(s), g->desc.rank, CG_NO_INDEX);
        return;
    }
    if (row->after) row->after(g);
    g->taken = 0;
    g->becomes = cg_mix64_(cg_gossip_hash_(g->mine ^ cg_mix64_(g->step + 1), g->packet, CG_HEADER_BYTES)) | 2;
}
CG_API_ cg_status cg_gossip_start(cg_gossip *gossip, float *x, const float *grad, float rate, uint64_t step) {
    cg_fenv_ env;
    if (!gossip || ((!x || !grad) && gossip->desc.n)) return CG_E_ARG;
    if (!gossip->desc.graph) return CG_E_STATE;
    cg_report_set_(&gossip->report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    gossip->x = x ? x : gossip->half; /* of no values */
    gossip->grad = grad ? grad : gossip->half;
    gossip->rate = rate;
    gossip->step = step;
    gossip->at = 0;
    gossip->failed = gossip->grad_status = 0;
    gossip->mixed = 0.0f;
    gossip->heard = 0.0;
    gossip->sent = gossip->is_whole = 0;
    gossip->phase = CG_GOSSIP_MEET_;
    for (size_t k = 0; k < gossip->peers; k++) gossip->peer[k].met = 0;
    if (cg_gossip_meets_one_(&gossip->desc) && gossip->peers) {
        const cg_graph_desc *d = &gossip->desc.graph->desc;
        const int hop = cg_graph_hop_(gossip->desc.graph, step);
        const int to = cg_graph_around_(d, gossip->desc.rank, hop), from = cg_graph_around_(d, gossip->desc.rank, -hop);
        /* what was sent must be known for each packet alone, if mass is to stay */
        cg_gossip_peer_add_(gossip, 0, to, gossip->peers > 1 ? -1 : from);
        if (gossip->peers > 1) cg_gossip_peer_add_(gossip, 1, -1, from);
    }
    env = cg_fenv_enter_();
    cg_gossip_begin_(gossip);
    cg_fenv_leave_(env);
    return CG_OK;
}
static int cg_gossip_sends_(const cg_gossip *g) { /* this node, in this step */
    return !g->failed && (!cg_gossip_has_(&g->desc, CG_GOSSIP_ONE_WAY_) || g->weight >= CG_GOSSIP_LEAST_WEIGHT_);
}
static void cg_gossip_note_put_(const cg_gossip *g, const cg_gossip_peer *p, uint8_t *note) {
    memset(note, 0, CG_GOSSIP_NOTE_);
    cg_put32_(note, CG_GOSSIP_MAGIC_);
    cg_put32_(note + 4, 1);
    cg_put32_(note + 8, cg_gossip_sends_(g) ? 0u : 1u);
    cg_put64_(note + 16, g->step);
    cg_put64_(note + 24, g->setup);
    cg_put64_(note + 32, g->mine);
    cg_put64_(note + 40, g->becomes);
    cg_put64_(note + 48, p->have);
    cg_put64_(note + 56, cg_gossip_sends_(g) ? g->len : 0);
    cg_put64_(note + 64, cg_as_bits64_(cg_times64_(g->weight, cg_gossip_share_(g))));
    cg_put32_(note + 72, (uint32_t)g->desc.rank);
    cg_put32_(note + 76, (uint32_t)p->to);
    cg_seal_put_(note, CG_GOSSIP_NOTE_, CG_GOSSIP_NOTE_SEAL_);
}
/* A neighbour that was not met. */
static void cg_gossip_miss_(cg_gossip *g, cg_gossip_peer *p, cg_status s, const char *why) {
    const int rank = p->from >= 0 ? p->from : p->to;
    p->met = 0;
    p->replicated = p->replicated && !p->replica; /* to be compared at the next meeting */
    g->report.rank = rank;
    if (!(g->desc.flags & CG_GOSSIP_TOLERATE)) cg_gossip_fail_(g, s, why, rank, CG_NO_INDEX);
}
/* NULL, or what is wrong with a note of p->from. */
static const char *cg_gossip_note_wrong_(
    const cg_gossip *g, const cg_gossip_peer *p, const uint8_t *note, cg_status *s) {
    const double weight = cg_as_double_(cg_get64_(note + 64));
    *s = CG_E_CORRUPT;
    if (cg_get32_(note) != CG_GOSSIP_MAGIC_ || !cg_seal_is_intact_(note, CG_GOSSIP_NOTE_, CG_GOSSIP_NOTE_SEAL_))
        return "a note of this neighbour is damaged";
    *s = CG_E_VERSION;
    if (cg_get32_(note + 4) != 1) return "this neighbour speaks another version";
    *s = CG_E_MISMATCH;
    if (cg_get64_(note + 24) != g->setup)
        return "this neighbour has another graph, kind, operator, n, eta, seed or flags";
    if (cg_get64_(note + 16) != g->step) return "this neighbour is at another step";
    if (cg_get32_(note + 72) != (uint32_t)p->from || cg_get32_(note + 76) != (uint32_t)g->desc.rank)
        return "a note of another node, or for another";
    *s = CG_E_CORRUPT;
    if (cg_get64_(note + 56) > g->packet_cap || cg_get32_(note + 12) || cg_get32_(note + 8) > 1)
        return "a note of this neighbour is damaged";
    if (!(weight > 0.0 && weight <= (double)g->desc.graph->desc.nodes)) return "a note of this neighbour is damaged";
    return NULL;
}
/* The notes are there: how many bytes go out and come in. */
static void cg_gossip_noted_(cg_gossip *g, cg_gossip_peer *p, int code) {
    const uint8_t *note = g->notes + CG_GOSSIP_NOTE_;
    const int one_way = cg_gossip_has_(&g->desc, CG_GOSSIP_ONE_WAY_), pair = !one_way && p->to == p->from;
    const int replicates = cg_gossip_has_(&g->desc, CG_GOSSIP_REPLICATES_);
    const cg_op dense = cg_dense();
    const char *why;
    cg_status s;
    g->out_bytes = g->in_bytes = 0;
    g->is_whole = 0;
    if (code) {
        g->report.code = code;
        cg_gossip_miss_(g, p, CG_E_TRANSPORT, cg_status_str(CG_E_TRANSPORT));
        return;
    }
    g->report.bytes_out += p->to >= 0 ? CG_GOSSIP_NOTE_ : 0;
    g->report.bytes_in += p->from >= 0 ? CG_GOSSIP_NOTE_ : 0;
    g->report.rounds++;
    if (!pair && p->to >= 0 && cg_gossip_sends_(g)) g->out_bytes = g->len;
    if (p->from < 0) return;
    why = cg_gossip_note_wrong_(g, p, note, &s);
    if (why) {
        if (pair) g->out_bytes = 0;
        cg_gossip_miss_(g, p, s, why);
        return;
    }
    if (cg_get32_(note + 8)) {
        if (!one_way) cg_gossip_miss_(g, p, CG_E_PEER, cg_status_str(CG_E_PEER));
        return;
    }
    g->in_bytes = (size_t)cg_get64_(note + 56);
    if (!pair) return;
    if (!cg_gossip_sends_(g)) {
        g->in_bytes = 0;
        return;
    }
    g->out_bytes = g->len;
    if (!replicates) return;
    p->becomes = cg_get64_(note + 40);
    p->replicated = p->have == cg_get64_(note + 32);
    if (!p->replicated) g->in_bytes = cg_bound(&dense, g->desc.n); /* known is something old, or nothing */
    if (cg_get64_(note + 48) != g->mine) g->is_whole = 1;
    if (!p->replica && (g->is_whole || !p->replicated) && (g->steps || p->have || cg_get64_(note + 48))) {
        g->in_bytes = g->out_bytes = 0;
        cg_gossip_miss_(g, p, CG_E_MISMATCH,
            "sums of replicas are not of what this neighbour has: load states of one step, or set CG_GOSSIP_TOLERATE");
        return;
    }
    if (g->is_whole) {
        const cg_tag tag = cg_gossip_tag_(g, g->desc.rank, g->step);
        const float *v = cg_gossip_has_(&g->desc, CG_GOSSIP_FROM_DENSE_) ? g->half : g->own;
        s = cg_compress(
            &dense, &tag, v, g->desc.n, g->whole, g->out_bytes = cg_bound(&dense, g->desc.n), &g->whole_len, NULL, 0);
        COMPGRAD_ASSERT(s == CG_OK && g->whole_len == g->out_bytes);
        if (s != CG_OK) memset(g->whole, 0, g->out_bytes); /* half is finite, so that this does not happen */
    }
}
/* A packet of p->from is there; whole: not a change. */
static const char *cg_gossip_take_(cg_gossip *g, cg_gossip_peer *p, cg_status *s) {
    const int whole = cg_gossip_has_(&g->desc, CG_GOSSIP_REPLICATES_) && !p->replicated;
    const cg_tag tag = cg_gossip_tag_(g, p->from, g->step);
    const float w = cg_gossip_has_(&g->desc, CG_GOSSIP_ONE_WAY_) ? 1.0f : cg_gossip_weight_(g, p);
    cg_info info;
    *s = cg_inspect(g->incoming, g->in_bytes, &info);
    if (*s != CG_OK) return "a packet of this neighbour is damaged";
    *s = CG_E_MISMATCH;
    if (info.tag.seed != tag.seed || info.tag.step != tag.step || info.tag.rank != tag.rank || info.n != g->desc.n)
        return "a packet of another node, step or n";
    if (p->replica)
        *s = cg_decode(g->desc.side, g->incoming, g->in_bytes, 1.0f, whole ? 0.0f : 1.0f, p->replica, g->desc.n);
    else *s = cg_decode(g->desc.side, g->incoming, g->in_bytes, w, g->taken ? 1.0f : 0.0f, g->gathered, g->desc.n);
    if (*s != CG_OK) return "a packet of this neighbour is damaged";
    if (p->replica) { /* at once: what was received is known, whatever becomes of this step */
        p->have = p->becomes;
        p->replicated = 1;
    } else {
        g->taken = 1;
        g->mixed = cg_plus_(g->mixed, w);
    }
    return NULL;
}
static void cg_gossip_took_(cg_gossip *g, cg_gossip_peer *p, int code) {
    const char *why;
    cg_status s;
    if (code) {
        g->report.code = code;
        cg_gossip_miss_(g, p, CG_E_TRANSPORT, cg_status_str(CG_E_TRANSPORT));
        return;
    }
    g->report.bytes_out += g->out_bytes;
    g->report.bytes_in += g->in_bytes;
    g->report.rounds++;
    if (g->out_bytes && cg_gossip_has_(&g->desc, CG_GOSSIP_ONE_WAY_)) g->sent++;
    if (g->in_bytes) {
        if (g->failed) return; /* discarded: this node is away */
        why = cg_gossip_take_(g, p, &s);
        if (why) {
            cg_gossip_miss_(g, p, s, why);
            return;
        }
        g->heard += cg_as_double_(cg_get64_(g->notes + CG_GOSSIP_NOTE_ + 64));
    }
    p->met = 1;
}
/* All neighbours have been met, or not: the step is taken, or the first failure returned. */
static cg_status cg_gossip_end_(cg_gossip *g) {
    const size_t n = g->desc.n;
    g->phase = CG_GOSSIP_IDLE_;
    if (!g->failed) {
        if (!g->taken) cg_gossip_zero_(g, g->gathered);
        cg_gossip_row_of_(&g->desc)->finish(g);
        if (n && cg_absmax_bits_(g->half, n) >= CG_INF_BITS_) /* models of 1e38: saturated rather than lost */
            for (size_t i = 0; i < n; i++) g->half[i] = g->half[i] != g->half[i] ? 0.0f : cg_saturate_(g->half[i]);
        memcpy(g->x, g->half, 4 * n);
        g->mine = g->becomes;
        for (size_t k = 0; k < g->peers; k++)
            if (!g->peer[k].replica && cg_gossip_has_(&g->desc, CG_GOSSIP_REPLICATES_)) {
                g->peer[k].have = g->peer[k].becomes;
                g->peer[k].replicated = 1;
            }
        g->steps++;
        if (!g->grad_status) return CG_OK;
        g->report.status = g->grad_status;
        g->report.why = "grad has NaN or Inf: the step was taken with zeros in its place";
        g->report.rank = g->desc.rank;
        return (cg_status)g->grad_status;
    }
    /* some neighbours may have taken the packet, and own is changed: let all of them ask for the whole */
    if (cg_gossip_keeps_replicas_(g)) g->mine = cg_mix64_(g->mine ^ cg_mix64_(g->step + CG_GOLDEN_)) | 2;
    return (cg_status)g->failed;
}
static cg_status cg_gossip_next_(cg_gossip *g, int last_code, cg_io *io) {
    for (;;) {
        cg_gossip_peer *p = &g->peer[g->at];
        if (g->phase == CG_GOSSIP_MEET_) {
            if (g->at == g->peers) return cg_gossip_end_(g);
            cg_gossip_note_put_(g, p, g->notes);
            memset(g->notes + CG_GOSSIP_NOTE_, 0, CG_GOSSIP_NOTE_);
            io->out = g->notes;
            io->in = g->notes + CG_GOSSIP_NOTE_;
            io->out_bytes = p->to >= 0 ? CG_GOSSIP_NOTE_ : 0;
            io->in_bytes = p->from >= 0 ? CG_GOSSIP_NOTE_ : 0;
            io->to = p->to;
            io->from = p->from;
            g->phase = CG_GOSSIP_NOTED_;
            break;
        }
        if (g->phase == CG_GOSSIP_NOTED_) {
            cg_gossip_noted_(g, p, last_code);
            if (g->out_bytes || g->in_bytes) {
                io->out = g->is_whole ? g->whole : g->packet;
                io->in = g->incoming;
                io->out_bytes = g->out_bytes;
                io->in_bytes = g->in_bytes;
                io->to = g->out_bytes ? p->to : -1;
                io->from = g->in_bytes ? p->from : -1;
                g->phase = CG_GOSSIP_PACKET_;
                break;
            }
        } else {
            cg_gossip_took_(g, p, last_code);
        }
        last_code = 0;
        g->at++;
        g->phase = CG_GOSSIP_MEET_;
    }
    io->kind = CG_IO_SENDRECV;
    return CG_AGAIN;
}
CG_API_ cg_status cg_gossip_next(cg_gossip *gossip, int last_code, cg_io *io) {
    cg_fenv_ env;
    cg_status s;
    if (!gossip || !io) return CG_E_ARG;
    memset(io, 0, sizeof *io);
    if (!gossip->desc.graph || gossip->phase == CG_GOSSIP_IDLE_) return CG_E_STATE;
    env = cg_fenv_enter_();
    s = cg_gossip_next_(gossip, last_code, io);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_gossip_step(cg_gossip *gossip, const cg_transport *transport, float *x, const float *grad,
    float rate, uint64_t step, cg_report *report) {
    cg_io io;
    int code = 0;
    cg_status s;
    if (report) cg_report_set_(report, CG_E_ARG, "gossip, transport, x or grad is NULL", 0, CG_NO_INDEX);
    if (!gossip || !transport || ((!x || !grad) && gossip->desc.n)) return CG_E_ARG;
    if (!transport->sendrecv) {
        if (report) cg_report_set_(report, CG_E_UNSUPPORTED, "gossip needs the callback sendrecv", 0, CG_NO_INDEX);
        return CG_E_UNSUPPORTED;
    }
    s = cg_gossip_start(gossip, x, grad, rate, step);
    if (s == CG_OK)
        while ((s = cg_gossip_next(gossip, code, &io)) == CG_AGAIN) code = cg_io_run(transport, &io);
    if (report) *report = gossip->report;
    return s;
}

/* src/sync/gossip_save.h */
/* gossip_save: the state of gossip as bytes, the same on every machine, and back

   Offers   the public cg_gossip_save_bytes, cg_gossip_save and cg_gossip_load
   Needs    gossip, local_save; seals of core
   Touches  the caller's buffer; loading all of the state but its description
   A blob is little-endian. Nothing is loaded before all of it has been checked.

   byte 0 "cgos"  4 version  8 peers  12 zeros  16 n  24 setup  32 mine  40 weight (double)  48 checksum of everything
   else (16 bytes)  64 steps  72 rank  76 zeros  80 of each peer: from (u32), replicated (u32), have (u64); then own,
   sum and replicas as floats */

enum { CG_GOSSIP_HEADER_ = 80, CG_GOSSIP_ENTRY_ = 16, CG_GOSSIP_SEAL_ = 48 };
#define CG_GOSSIP_SAVED_ 0x736f6763u /* "cgos" */

static uint64_t cg_gossip_vectors_(const cg_gossip *g) {
    return (g->own ? 1u : 0u) + (g->sum ? 1u : 0u) + (cg_gossip_keeps_replicas_(g) ? g->peers : 0u);
}
CG_API_ size_t cg_gossip_save_bytes(const cg_gossip *gossip) {
    if (!gossip || !gossip->desc.graph) return 0;
    return cg_size_or_zero_(cg_add_sat_(CG_GOSSIP_HEADER_ + cg_mul_sat_(CG_GOSSIP_ENTRY_, gossip->peers),
        cg_mul_sat_(cg_gossip_vectors_(gossip), cg_mul_sat_(4, gossip->desc.n))));
}
/* A peer of the step alone is not part of the state. */
static uint32_t cg_gossip_saved_peer_(const cg_gossip *g, size_t k) {
    return cg_gossip_meets_one_(&g->desc) ? 0u : (uint32_t)g->peer[k].from;
}
CG_API_ cg_status cg_gossip_save(const cg_gossip *gossip, void *buf, size_t cap, size_t *len) {
    uint8_t *const start = (uint8_t *)buf;
    uint8_t *p = start + CG_GOSSIP_HEADER_;
    const size_t bytes = cg_gossip_save_bytes(gossip);
    if (len) *len = 0;
    if (!gossip || !buf || !len) return CG_E_ARG;
    if (!gossip->desc.graph || gossip->phase != CG_GOSSIP_IDLE_) return CG_E_STATE;
    if (!bytes || cap < bytes) return CG_E_CAPACITY;
    memset(start, 0, CG_GOSSIP_HEADER_);
    cg_put32_(start, CG_GOSSIP_SAVED_);
    cg_put32_(start + 4, 1);
    cg_put32_(start + 8, (uint32_t)gossip->peers);
    cg_put64_(start + 16, gossip->desc.n);
    cg_put64_(start + 24, gossip->setup);
    cg_put64_(start + 32, gossip->mine);
    cg_put64_(start + 40, cg_as_bits64_(gossip->weight));
    cg_put64_(start + 64, gossip->steps);
    cg_put32_(start + 72, (uint32_t)gossip->desc.rank);
    for (size_t k = 0; k < gossip->peers; k++, p += CG_GOSSIP_ENTRY_) {
        cg_put32_(p, cg_gossip_saved_peer_(gossip, k));
        cg_put32_(p + 4, (uint32_t)gossip->peer[k].replicated);
        cg_put64_(p + 8, gossip->peer[k].have);
    }
    if (gossip->own) p = cg_sync_put_floats_(p, gossip->own, gossip->desc.n);
    if (gossip->sum) p = cg_sync_put_floats_(p, gossip->sum, gossip->desc.n);
    for (size_t k = 0; k < gossip->peers && gossip->peer[k].replica; k++)
        p = cg_sync_put_floats_(p, gossip->peer[k].replica, gossip->desc.n);
    cg_seal_put_(start, bytes, CG_GOSSIP_SEAL_);
    *len = bytes;
    return CG_OK;
}
static cg_status cg_gossip_blob_check_(const cg_gossip *g, const uint8_t *p, size_t len) {
    const size_t floats = CG_GOSSIP_HEADER_ + CG_GOSSIP_ENTRY_ * g->peers;
    double weight;
    if (len < CG_GOSSIP_HEADER_ || len % 4 || cg_get32_(p) != CG_GOSSIP_SAVED_) return CG_E_CORRUPT;
    if (!cg_seal_is_intact_(p, len, CG_GOSSIP_SEAL_)) return CG_E_CORRUPT;
    if (cg_get32_(p + 4) != 1) return CG_E_VERSION;
    if (cg_get32_(p + 8) != g->peers || cg_get64_(p + 16) != g->desc.n || cg_get64_(p + 24) != g->setup ||
        cg_get32_(p + 72) != (uint32_t)g->desc.rank)
        return CG_E_MISMATCH;
    weight = cg_as_double_(cg_get64_(p + 40));
    if (len != cg_gossip_save_bytes(g) || cg_get32_(p + 12) || cg_get32_(p + 76)) return CG_E_CORRUPT;
    if (!(weight > 0.0 && weight <= (double)g->desc.graph->desc.nodes)) return CG_E_CORRUPT;
    for (size_t k = 0; k < g->peers; k++) {
        const uint8_t *entry = p + CG_GOSSIP_HEADER_ + CG_GOSSIP_ENTRY_ * k;
        if (cg_get32_(entry) != cg_gossip_saved_peer_(g, k) || cg_get32_(entry + 4) > 1) return CG_E_CORRUPT;
    }
    return cg_sync_finite_(p + floats, (len - floats) / 4) ? CG_OK : CG_E_CORRUPT;
}
CG_API_ cg_status cg_gossip_load(cg_gossip *gossip, const void *buf, size_t len) {
    const uint8_t *p = (const uint8_t *)buf;
    cg_status s;
    if (!gossip || !buf) return CG_E_ARG;
    if (!gossip->desc.graph || gossip->phase != CG_GOSSIP_IDLE_) return CG_E_STATE;
    s = cg_gossip_blob_check_(gossip, p, len);
    if (s != CG_OK) return s;
    gossip->mine = cg_get64_(p + 32);
    gossip->weight = cg_as_double_(cg_get64_(p + 40));
    gossip->steps = cg_get64_(p + 64);
    p += CG_GOSSIP_HEADER_;
    for (size_t k = 0; k < gossip->peers; k++, p += CG_GOSSIP_ENTRY_) {
        gossip->peer[k].replicated = (int)cg_get32_(p + 4);
        gossip->peer[k].have = cg_get64_(p + 8);
    }
    if (gossip->own) p = cg_sync_get_floats_(p, gossip->own, gossip->desc.n);
    if (gossip->sum) p = cg_sync_get_floats_(p, gossip->sum, gossip->desc.n);
    for (size_t k = 0; k < gossip->peers && gossip->peer[k].replica; k++)
        p = cg_sync_get_floats_(p, gossip->peer[k].replica, gossip->desc.n);
    return CG_OK;
}

/* src/sync/pair.h */
/* pair: AD-PSGD, in which two nodes average their models when one of them asks

   Offers   the public cg_pair_*
   Needs    gossip (cg_gossip_hash_), local_save; base, seals of core
   Touches  the state, the caller's buffer
   i asks with its model; j answers with C(d), d = x_i - x_j, and adds D/2; i subtracts D/2 when the answer comes. Only
   differences change models, so that gradients and other averages may come between question and answer, and the sum of
   all models changes by gradients alone, whatever the operator loses. Nobody waits for anybody: there is no
   deadlock. An answer is kept until the next question of that node, so that a question that comes twice is answered
   twice the same.

   A message: byte 0 "cgap"  4 version  8 what (1 question, 2 answer)  12 from  16 to  20 zeros  24 serial  32 setup
   40 length of the packet  48 checksum of these 64 bytes  64 the packet: the model dense, or C(d)
   A saved state: byte 0 "cgps"  4 version  8 rank  12 zeros  16 n  24 setup  32 serial  40 zeros  48 checksum  64 x */

enum { CG_PAIR_HEADER_ = 64, CG_PAIR_SEAL_ = 48, CG_PAIR_QUESTION_ = 1, CG_PAIR_ANSWER_ = 2 };
#define CG_PAIR_MAGIC_ 0x70616763u /* "cgap" */
#define CG_PAIR_SAVED_ 0x73706763u /* "cgps" */

static uint64_t cg_pair_plan_(cg_pair *p, const cg_pair_desc *d, uint8_t *mem) {
    const cg_op dense = cg_dense();
    const size_t whole = cg_bound(&dense, d->n), bound = cg_bound_with(&d->op, d->side, d->n);
    const uint64_t vector = cg_mul_sat_(4, d->n);
    uint64_t used = 0;
    if (d->nodes < 1 || d->nodes > CG_GRAPH_MOST_ || d->rank < 0 || d->rank >= d->nodes || !whole || !bound)
        return CG_TOO_LARGE_;
    p->answer_cap = bound + CG_PAIR_HEADER_;
    p->scratch_bytes = cg_scratch(&d->op, d->n);
    p->x = (float *)cg_sync_take_(mem, &used, vector);
    p->work = (float *)cg_sync_take_(mem, &used, vector);
    p->answer = (cg_pair_answer *)cg_sync_take_(mem, &used, cg_mul_sat_((uint64_t)d->nodes, sizeof *p->answer));
    p->question = (uint8_t *)cg_sync_take_(mem, &used, cg_add_sat_(whole, CG_PAIR_HEADER_));
    p->scratch = (uint8_t *)cg_sync_take_(mem, &used, p->scratch_bytes);
    for (int k = 0; k < d->nodes; k++) {
        uint8_t *room = k == d->rank ? NULL : (uint8_t *)cg_sync_take_(mem, &used, p->answer_cap);
        if (mem) p->answer[k].bytes = room;
    }
    return cg_add_sat_(used, 64);
}
CG_API_ size_t cg_pair_memory(const cg_pair_desc *desc) {
    cg_pair p;
    memset(&p, 0, sizeof p);
    return desc ? cg_size_or_zero_(cg_pair_plan_(&p, desc, NULL)) : 0;
}
static cg_tag cg_pair_tag_(const cg_pair *p, int rank, uint64_t serial) {
    cg_tag tag = { 0, 0, 0, 0 };
    tag.seed = cg_mix64_(p->desc.seed + CG_GOLDEN_ * ((uint64_t)rank + 1));
    tag.step = serial;
    tag.rank = (uint32_t)rank;
    return tag;
}
CG_API_ cg_status cg_pair_init(cg_pair *pair, const cg_pair_desc *desc, const float *x0, void *mem, size_t bytes) {
    char text[160];
    uint8_t *base;
    size_t len = 0;
    uint64_t need;
    cg_tag tag;
    cg_fenv_ env;
    cg_status s;
    if (!pair) return CG_E_ARG;
    memset(pair, 0, sizeof *pair);
    if (!desc || (!x0 && desc->n) || !cg_pair_memory(desc)) return CG_E_ARG;
    need = cg_pair_memory(desc);
    if (!mem || bytes < need) return CG_E_MEMORY;
    if (desc->n && cg_absmax_bits_(x0, desc->n) >= CG_INF_BITS_) return CG_E_NONFINITE;
    base = (uint8_t *)mem + (64 - ((uintptr_t)mem & 63)) % 64;
    memset(base, 0, (size_t)need - 64);
    cg_pair_plan_(pair, desc, base);
    memcpy(pair->x, x0 ? x0 : pair->work, 4 * desc->n);
    pair->desc = *desc;
    if (desc->nodes > 1) { /* what every answer would refuse */
        tag = cg_pair_tag_(pair, desc->rank, 0);
        env = cg_fenv_enter_();
        s = cg_compress_with(&desc->op, &tag, desc->side, pair->x, desc->n, pair->answer[desc->rank ? 0 : 1].bytes,
            pair->answer_cap, &len, pair->scratch, pair->scratch_bytes);
        cg_fenv_leave_(env);
        if (s != CG_OK) {
            memset(pair, 0, sizeof *pair);
            return s;
        }
    }
    pair->asking = -1;
    len = 0;
    if (cg_op_print(&desc->op, text, sizeof text) == CG_OK) len = cg_text_len_(text);
    pair->setup = cg_gossip_hash_(cg_mix64_(desc->n ^ desc->seed * CG_GOLDEN_) + (uint64_t)desc->nodes, text, len);
    return CG_OK;
}
CG_API_ const float *cg_pair_model(const cg_pair *pair) { return pair ? pair->x : NULL; }
CG_API_ cg_status cg_pair_gradient(cg_pair *pair, const float *grad, float rate) {
    cg_fenv_ env;
    cg_status s = CG_OK;
    if (!pair || (!grad && pair->desc.n) || !cg_is_finite_(rate)) return CG_E_ARG;
    if (!pair->setup) return CG_E_STATE;
    env = cg_fenv_enter_();
    memcpy(pair->work, pair->x, 4 * pair->desc.n);
    if (pair->desc.n) cg_axpby_(grad, pair->desc.n, -rate, 1.0f, pair->work);
    if (pair->desc.n && cg_absmax_bits_(pair->work, pair->desc.n) >= CG_INF_BITS_) s = CG_E_NONFINITE;
    else memcpy(pair->x, pair->work, 4 * pair->desc.n);
    cg_fenv_leave_(env);
    return s;
}
static void cg_pair_header_put_(const cg_pair *p, uint8_t *b, uint32_t what, int to, uint64_t serial, size_t len) {
    memset(b, 0, CG_PAIR_HEADER_);
    cg_put32_(b, CG_PAIR_MAGIC_);
    cg_put32_(b + 4, 1);
    cg_put32_(b + 8, what);
    cg_put32_(b + 12, (uint32_t)p->desc.rank);
    cg_put32_(b + 16, (uint32_t)to);
    cg_put64_(b + 24, serial);
    cg_put64_(b + 32, p->setup);
    cg_put64_(b + 40, len);
    cg_seal_put_(b, CG_PAIR_HEADER_, CG_PAIR_SEAL_);
}
CG_API_ cg_status cg_pair_ask(cg_pair *pair, uint64_t now, int to) {
    const cg_op dense = cg_dense();
    cg_tag tag;
    cg_status s;
    size_t len;
    if (!pair || !pair->setup) return pair ? CG_E_STATE : CG_E_ARG;
    if (to < 0 || to >= pair->desc.nodes || to == pair->desc.rank) return CG_E_ARG;
    if (pair->asking >= 0) return CG_E_STATE;
    tag = cg_pair_tag_(pair, pair->desc.rank, pair->serial + 1);
    s = cg_compress(&dense, &tag, pair->x, pair->desc.n, pair->question + CG_PAIR_HEADER_,
        cg_bound(&dense, pair->desc.n), &len, NULL, 0);
    if (s != CG_OK) return s;
    pair->serial++;
    cg_pair_header_put_(pair, pair->question, CG_PAIR_QUESTION_, to, pair->serial, len);
    pair->question_len = CG_PAIR_HEADER_ + len;
    pair->asking = to;
    pair->asked = now;
    pair->question_due = 1;
    return CG_OK;
}
CG_API_ void cg_pair_forget(cg_pair *pair) {
    if (pair) pair->asking = -1, pair->question_due = 0;
}
/* x := x + alpha D. Nothing has changed if that is not finite, or the packet not right. */
static cg_status cg_pair_move_(cg_pair *p, const uint8_t *packet, size_t len, float alpha) {
    const size_t n = p->desc.n;
    cg_status s;
    memcpy(p->work, p->x, 4 * n);
    s = cg_decode(p->desc.side, packet, len, alpha, 1.0f, p->work, n);
    if (s == CG_OK && n && cg_absmax_bits_(p->work, n) >= CG_INF_BITS_) s = CG_E_NONFINITE;
    if (s == CG_OK) memcpy(p->x, p->work, 4 * n);
    return s;
}
static cg_status cg_pair_answer_(cg_pair *p, int from, uint64_t serial, const uint8_t *packet, size_t len) {
    cg_pair_answer *a = &p->answer[from];
    const cg_tag tag = cg_pair_tag_(p, p->desc.rank, cg_mix64_(serial) + (uint64_t)from);
    const size_t n = p->desc.n;
    size_t made;
    cg_status s;
    if (serial == a->serial && a->len) { /* it has not come: the same again */
        a->due = 1;
        return CG_E_STATE;
    }
    if (serial <= a->serial) return CG_E_STATE;
    s = cg_decode(NULL, packet, len, 1.0f, 0.0f, p->work, n);
    if (s != CG_OK) return s;
    if (n) cg_axpby_(p->x, n, -1.0f, 1.0f, p->work);
    a->len = 0; /* the answer before is not asked for any more */
    a->due = 0;
    s = cg_compress_with(&p->desc.op, &tag, p->desc.side, p->work, n, a->bytes + CG_PAIR_HEADER_,
        p->answer_cap - CG_PAIR_HEADER_, &made, p->scratch, p->scratch_bytes);
    if (s == CG_OK) s = cg_pair_move_(p, a->bytes + CG_PAIR_HEADER_, made, 0.5f);
    if (s != CG_OK) return s;
    cg_pair_header_put_(p, a->bytes, CG_PAIR_ANSWER_, from, serial, made);
    a->serial = serial;
    a->len = CG_PAIR_HEADER_ + made;
    a->due = 1;
    return CG_OK;
}
static cg_status cg_pair_feed_(cg_pair *p, int from, const uint8_t *b, size_t len) {
    const uint8_t *packet = b + CG_PAIR_HEADER_;
    uint64_t serial;
    cg_info info;
    cg_tag tag;
    cg_status s;
    if (len < CG_PAIR_HEADER_ || cg_get32_(b) != CG_PAIR_MAGIC_ ||
        !cg_seal_is_intact_(b, CG_PAIR_HEADER_, CG_PAIR_SEAL_))
        return CG_E_CORRUPT;
    if (cg_get32_(b + 4) != 1) return CG_E_VERSION;
    if (cg_get64_(b + 32) != p->setup || cg_get32_(b + 12) != (uint32_t)from ||
        cg_get32_(b + 16) != (uint32_t)p->desc.rank)
        return CG_E_MISMATCH;
    if (cg_get32_(b + 20) || cg_get64_(b + 40) != len - CG_PAIR_HEADER_) return CG_E_CORRUPT;
    serial = cg_get64_(b + 24);
    len -= CG_PAIR_HEADER_;
    s = cg_inspect(packet, len, &info);
    if (s != CG_OK) return s;
    switch (cg_get32_(b + 8)) {
    case CG_PAIR_QUESTION_:
        tag = cg_pair_tag_(p, from, serial);
        if (info.tag.seed != tag.seed || info.tag.step != tag.step || info.n != p->desc.n) return CG_E_MISMATCH;
        return cg_pair_answer_(p, from, serial, packet, len);
    case CG_PAIR_ANSWER_:
        if (p->asking != from || serial != p->serial) return CG_E_STATE;
        tag = cg_pair_tag_(p, from, cg_mix64_(serial) + (uint64_t)p->desc.rank);
        if (info.tag.seed != tag.seed || info.tag.step != tag.step || info.n != p->desc.n) return CG_E_MISMATCH;
        s = cg_pair_move_(p, packet, len, -0.5f);
        if (s != CG_OK) return s;
        cg_pair_forget(p);
        p->met++;
        return CG_OK;
    default: return CG_E_CORRUPT;
    }
}
CG_API_ cg_status cg_pair_feed(cg_pair *pair, uint64_t now, int from, const void *bytes, size_t len) {
    cg_fenv_ env;
    cg_status s;
    (void)now;
    if (!pair || !bytes) return CG_E_ARG;
    if (!pair->setup) return CG_E_STATE;
    if (from < 0 || from >= pair->desc.nodes || from == pair->desc.rank) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_pair_feed_(pair, from, (const uint8_t *)bytes, len);
    cg_fenv_leave_(env);
    pair->refused += s != CG_OK;
    return s;
}
CG_API_ int cg_pair_next(cg_pair *pair, uint64_t now, cg_envelope *envelope) {
    if (!pair || !envelope || !pair->setup) return 0;
    if (pair->asking >= 0 && pair->desc.patience && now - pair->asked >= pair->desc.patience) {
        pair->asked = now;
        pair->question_due = 1;
    }
    if (pair->question_due) {
        pair->question_due = 0;
        envelope->to = pair->asking;
        envelope->bytes = pair->question;
        envelope->len = pair->question_len;
        return 1;
    }
    for (int k = 0; k < pair->desc.nodes; k++)
        if (pair->answer[k].due) {
            pair->answer[k].due = 0;
            envelope->to = k;
            envelope->bytes = pair->answer[k].bytes;
            envelope->len = pair->answer[k].len;
            return 1;
        }
    return 0;
}

/* ---- saving: the model and the serial; answers that are still to be asked for again are lost ---- */

CG_API_ size_t cg_pair_save_bytes(const cg_pair *pair) {
    return pair && pair->setup ? cg_size_or_zero_(cg_add_sat_(CG_PAIR_HEADER_, cg_mul_sat_(4, pair->desc.n))) : 0;
}
CG_API_ cg_status cg_pair_save(const cg_pair *pair, void *buf, size_t cap, size_t *len) {
    uint8_t *const b = (uint8_t *)buf;
    const size_t bytes = cg_pair_save_bytes(pair);
    if (len) *len = 0;
    if (!pair || !buf || !len) return CG_E_ARG;
    if (!pair->setup) return CG_E_STATE;
    if (!bytes || cap < bytes) return CG_E_CAPACITY;
    memset(b, 0, CG_PAIR_HEADER_);
    cg_put32_(b, CG_PAIR_SAVED_);
    cg_put32_(b + 4, 1);
    cg_put32_(b + 8, (uint32_t)pair->desc.rank);
    cg_put64_(b + 16, pair->desc.n);
    cg_put64_(b + 24, pair->setup);
    cg_put64_(b + 32, pair->serial);
    cg_sync_put_floats_(b + CG_PAIR_HEADER_, pair->x, pair->desc.n);
    cg_seal_put_(b, bytes, CG_PAIR_SEAL_);
    *len = bytes;
    return CG_OK;
}
CG_API_ cg_status cg_pair_load(cg_pair *pair, const void *buf, size_t len) {
    const uint8_t *b = (const uint8_t *)buf;
    if (!pair || !buf) return CG_E_ARG;
    if (!pair->setup) return CG_E_STATE;
    if (len < CG_PAIR_HEADER_ || len % 4 || cg_get32_(b) != CG_PAIR_SAVED_ ||
        !cg_seal_is_intact_(b, len, CG_PAIR_SEAL_))
        return CG_E_CORRUPT;
    if (cg_get32_(b + 4) != 1) return CG_E_VERSION;
    if (cg_get32_(b + 8) != (uint32_t)pair->desc.rank || cg_get64_(b + 16) != pair->desc.n ||
        cg_get64_(b + 24) != pair->setup)
        return CG_E_MISMATCH;
    if (len != cg_pair_save_bytes(pair) || cg_get32_(b + 12) || cg_get64_(b + 40)) return CG_E_CORRUPT;
    if (!cg_sync_finite_(b + CG_PAIR_HEADER_, pair->desc.n) || cg_get64_(b + 32) >> 63) return CG_E_CORRUPT;
    cg_sync_get_floats_(b + CG_PAIR_HEADER_, pair->x, pair->desc.n);
    cg_pair_forget(pair);
    /* the saved state may be older than what others have heard: leave room for 2^32 questions since */
    if (pair->serial < cg_get64_(b + 32)) pair->serial = cg_get64_(b + 32);
    pair->serial = (pair->serial | 0xffffffffu) + 1;
    return CG_OK;
}

/* src/sync/wire.h */
/* wire: messages between a server and its workers

   Offers   cg_msg_ and kinds, cg_msg_put_, cg_msg_get_, cg_sync_job_, cg_chain_bytes_
   Needs    base
   Touches  nothing
   A message is a header of 64 bytes and, behind it, a packet, or indices and values:

     byte 0        4        8        16       24        32       40       48       52       56       64
         +---------+--------+--------+--------+---------+--------+--------+--------+--------+--------+--------
         | "cgs1"  | kind   | job    | clock  | version | mark   | number | weight | status | hash   | payload
         +---------+--------+--------+--------+---------+--------+--------+--------+--------+--------+--------

     hello    up    clock: of the pending push or the next one; version and mark: of the model, or number 1: none
     push     up    clock, version of the model, weight; a packet
     leave    up
     welcome  down  clock: that the next push must have; version and mark: where updates will lead
     verdict  down  clock: of the push; number: clock of the next; status: kind of verdict, and cg_status << 8
     update   down  a packet that leads from version - 1 to version; number: the mark before, mark: after
     touched  down  values as they are at version: number of them, status 1 if more come; u32 indices, then f32 values
     dense    down  a packet of the values from number on, at version; the last ends with n
     ask      down  say hello: something that the worker sent could not be read, or its seat was freed
    go       down  clock: the step that may be made now, with the model of version and mark
   The hash is over the 56 bytes before it and, where the payload is no packet, over that. Little-endian. */

#define CG_SYNC_MAGIC_ 0x31736763u /* "cgs1" */
enum {
    CG_MSG_HELLO_ = 1,
    CG_MSG_PUSH_,
    CG_MSG_LEAVE_,
    CG_MSG_WELCOME_ = 16,
    CG_MSG_VERDICT_,
    CG_MSG_UPDATE_,
    CG_MSG_TOUCHED_,
    CG_MSG_DENSE_,
    CG_MSG_GO_,
    CG_MSG_ASK_
};
enum { CG_MSG_BYTES_ = 64, CG_DENSE_PIECE_ = 65536, CG_TOUCHED_PIECE_ = 16384 };
typedef struct cg_msg_ {
    uint32_t kind, status;
    uint64_t clock, version, mark, number;
    float weight;
    const uint8_t *payload;
    size_t payload_len;
} cg_msg_;

/* A hash of bytes[0..len), going on from h. */
static uint64_t cg_chain_bytes_(uint64_t h, const uint8_t *bytes, size_t len) {
    size_t i = 0;
    for (; i + 8 <= len; i += 8) h = cg_mix64_(h + cg_get64_(bytes + i) + CG_GOLDEN_);
    for (; i < len; i++) h = cg_mix64_(h + bytes[i] + 2 * CG_GOLDEN_);
    return h;
}
/* What a server and its workers must have in common. */
static uint64_t cg_sync_job_(uint64_t seed, size_t n) { return cg_mix64_(cg_mix64_(seed + CG_GOLDEN_) ^ n); }
static uint64_t cg_msg_hash_(const uint8_t *bytes, size_t payload_len) {
    const int is_raw = cg_get32_(bytes + 4) == CG_MSG_TOUCHED_;
    return cg_chain_bytes_(cg_chain_bytes_(CG_GOLDEN_, bytes, 56), bytes + CG_MSG_BYTES_, is_raw ? payload_len : 0);
}
/* Writes the header; the payload is there already. */
static size_t cg_msg_put_(uint8_t *out, uint64_t job, const cg_msg_ *m) {
    cg_put32_(out, CG_SYNC_MAGIC_);
    cg_put32_(out + 4, m->kind);
    cg_put64_(out + 8, job);
    cg_put64_(out + 16, m->clock);
    cg_put64_(out + 24, m->version);
    cg_put64_(out + 32, m->mark);
    cg_put64_(out + 40, m->number);
    cg_put32_(out + 48, cg_as_bits_(m->weight));
    cg_put32_(out + 52, m->status);
    cg_put64_(out + 56, cg_msg_hash_(out, m->payload_len));
    return CG_MSG_BYTES_ + m->payload_len;
}
/* NULL, or what is wrong with bytes[0..len); *s becomes the status that goes with it. */
static const char *cg_msg_get_(const void *bytes, size_t len, uint64_t job, cg_msg_ *m, cg_status *s) {
    const uint8_t *p = (const uint8_t *)bytes;
    *s = CG_E_CORRUPT;
    if (!p || len < CG_MSG_BYTES_) return "the message is shorter than a header";
    if (cg_get32_(p) >> 24 != CG_SYNC_MAGIC_ >> 24 && (cg_get32_(p) & 0xffffff) == (CG_SYNC_MAGIC_ & 0xffffff)) {
        *s = CG_E_VERSION;
        return "the message is of another version of this protocol";
    }
    if (cg_get32_(p) != CG_SYNC_MAGIC_) return "the message is none of a server or its workers";
    m->payload = p + CG_MSG_BYTES_;
    m->payload_len = len - CG_MSG_BYTES_;
    if (cg_get64_(p + 56) != cg_msg_hash_(p, m->payload_len)) return "the message did not arrive intact";
    *s = CG_E_MISMATCH;
    if (cg_get64_(p + 8) != job) return "the message is of another job: seed or n differ";
    m->kind = cg_get32_(p + 4);
    m->clock = cg_get64_(p + 16);
    m->version = cg_get64_(p + 24);
    m->mark = cg_get64_(p + 32);
    m->number = cg_get64_(p + 40);
    m->weight = cg_as_float_(cg_get32_(p + 48));
    m->status = cg_get32_(p + 52);
    *s = CG_OK;
    return NULL;
}

/* src/sync/server.h */
/* server: seats, rounds and the model of a server that is fed

   Offers   the public cg_server_memory, _init, _feed, _model, _version; cg_server_may_start_, cg_server_seal_
   Needs    wire, local (cg_sync_take_), core's and exchange's public calls, cg_rows_trim_ of robust
   Touches  the state
   A push is decoded into work, looked at, and enters delta (modes without rounds) or the sum of its round. Then delta
   is compressed: the packet goes into the ring and out of the model, and what it has not said stays in delta. So
   model_0 - sum of rate w D + delta is the model after every feed. */

enum { CG_SERVER_ROUNDS_ = 1, CG_SERVER_WAITS_FOR_ALL_ = 2, CG_SERVER_SAMPLES_ = 4, CG_SERVER_BOUNDED_ = 8 };
typedef struct cg_server_row_ {
    uint32_t id, traits;
} cg_server_row_;
static const cg_server_row_ cg_server_rows_[] = {
    { CG_SERVER_BSP, CG_SERVER_ROUNDS_ | CG_SERVER_WAITS_FOR_ALL_ },
    { CG_SERVER_SSP, CG_SERVER_BOUNDED_ },
    { CG_SERVER_ASP, 0 },
    { CG_SERVER_BACKUP, CG_SERVER_ROUNDS_ },
    { CG_SERVER_SAMPLED, CG_SERVER_ROUNDS_ | CG_SERVER_SAMPLES_ },
};
static int cg_server_has_(const cg_server_desc *d, uint32_t traits) {
    return (cg_server_rows_[d->mode].traits & traits) != 0;
}
enum { CG_SEAT_AWAITED_ = 0, CG_SEAT_HERE_ = 1, CG_SEAT_GONE_ = 2 };
enum {
    CG_SEAT_IN_ROUND_ = 1,
    CG_SEAT_WELCOME_ = 2, /* this message is due */
    CG_SEAT_VERDICT_ = 4, /* and this */
    CG_SEAT_WAITING_ = 8, /* it has nothing to do until it gets a go */
    CG_SEAT_DRAWN_ = 16,  /* it is of the round's sample */
    CG_SEAT_HAS_LAST_ = 32,
    CG_SEAT_ASK_ = 64,     /* a message is due that asks for a hello */
    CG_SEAT_REFUSED_ = 128 /* the verdict that is due is a refusal, which is not remembered */
};
#define CG_NO_VERSION_ (~(uint64_t)0) /* of a seat whose model is not known */
#define CG_PUSH_LIMIT_ 1e30           /* a larger value, times its factor, is refused: sums of pushes stay finite */

/* ---- descriptions and memory ---- */

static const char *cg_server_wrong_(const cg_server_desc *d) {
    const float cap = d->weight_cap, rate = d->rate;
    if (!d->n) return "n is 0";
    if (d->mode >= sizeof cg_server_rows_ / sizeof cg_server_rows_[0]) return "there is no such mode";
    if (d->workers < 1 || d->workers > 65536) return "workers must be 1 to 65536";
    if (d->backup < 0 || d->backup >= d->workers) return "backup must be at least 0 and below workers";
    if (cg_server_has_(d, CG_SERVER_SAMPLES_) && (d->sampled < 1 || d->sampled > d->workers))
        return "sampled must be 1 to workers";
    if (!(rate >= 0.0f && rate <= 1e6f)) return "rate must be 0 to 1e6";
    if (!(cap >= 0.0f && cap <= 1e18f)) return "weight_cap must be 0 to 1e18";
    if (!(d->norm_cap >= 0.0f && cg_is_finite_(d->norm_cap))) return "norm_cap must be finite, and not negative";
    if (d->flags & ~(uint32_t)(CG_SERVER_DAMPED | CG_SERVER_KEEP_LATE)) return "flags has a bit that means nothing";
    if (d->fold && !cg_server_has_(d, CG_SERVER_ROUNDS_)) return "a fold needs rounds: bsp, backup or sampled";
    if (d->fold && d->fold != CG_FOLD_MEDIAN && d->fold != CG_FOLD_TRIMMED)
        return "a server folds by mean, median or trimmed mean";
    if (!(d->fold_limit >= 0.0f && d->fold_limit < 0.5f)) return "fold_limit must be at least 0 and below 0.5";
    if (!CG_RESERVE_IS_ZERO_(d->reserved)) return "reserved must be 0: start from CG_ZERO";
    if (!cg_bound(&d->down, d->n)) return "the operator down does not take n values: cg_op_about says why";
    return NULL;
}
/* Few values are in a packet of down, so that those that several packets have touched may be fewer bytes. */
static int cg_server_is_sparse_(const cg_server_desc *d) {
    return (d->down.select.id || d->down.sample.id) && d->n <= 0xffffffffu;
}
static uint64_t cg_server_max_(uint64_t a, uint64_t b) { return a > b ? a : b; }
/* Lays out mem, and returns its bytes. base NULL: only these. */
static uint64_t cg_server_plan_(cg_server *s, uint8_t *base) {
    const cg_server_desc *d = &s->desc;
    const uint64_t vector = cg_mul_sat_(4, d->n), workers = (uint64_t)d->workers, bound = cg_bound(&d->down, d->n);
    const cg_op dense = cg_dense();
    const size_t piece = d->n < CG_DENSE_PIECE_ ? d->n : (size_t)CG_DENSE_PIECE_;
    uint64_t used = 0;
    s->ring_cap = cg_size_or_zero_(cg_server_max_(d->ring_bytes, bound));
    s->entry_cap = d->ring_bytes / CG_HEADER_BYTES + 1;
    s->out_cap = cg_size_or_zero_(cg_add_sat_(CG_MSG_BYTES_,
        cg_server_max_(bound, cg_server_max_(cg_bound(&dense, piece), 8 + 8 * (uint64_t)CG_TOUCHED_PIECE_))));
    s->scratch_bytes = cg_scratch(&d->down, d->n);
    s->model = (float *)cg_sync_take_(base, &used, vector);
    s->delta = (float *)cg_sync_take_(base, &used, vector);
    s->work = (float *)cg_sync_take_(base, &used, vector);
    s->sum = cg_server_has_(d, CG_SERVER_ROUNDS_) && !d->fold ? (float *)cg_sync_take_(base, &used, vector) : NULL;
    s->rows = d->fold ? (float *)cg_sync_take_(base, &used, cg_mul_sat_(vector, workers)) : NULL;
    s->touched = cg_server_is_sparse_(d) ? (uint32_t *)cg_sync_take_(base, &used, d->n / 8 + 8) : NULL;
    s->seat = (cg_server_seat *)cg_sync_take_(base, &used, cg_mul_sat_(workers, sizeof *s->seat));
    s->entry = (cg_server_entry *)cg_sync_take_(base, &used, cg_mul_sat_(s->entry_cap, sizeof *s->entry));
    s->ring = (uint8_t *)cg_sync_take_(base, &used, s->ring_cap ? s->ring_cap : CG_TOO_LARGE_);
    s->out = (uint8_t *)cg_sync_take_(base, &used, s->out_cap ? s->out_cap : CG_TOO_LARGE_);
    s->scratch = (uint8_t *)cg_sync_take_(base, &used, s->scratch_bytes);
    return cg_add_sat_(used, 64);
}
CG_API_ size_t cg_server_memory(const cg_server_desc *desc) {
    cg_server s;
    if (!desc || cg_server_wrong_(desc)) return 0;
    memset(&s, 0, sizeof s);
    s.desc = *desc;
    return cg_size_or_zero_(cg_server_plan_(&s, NULL));
}
static cg_status cg_server_say_(cg_status s, const char *why, char *text, size_t cap) {
    size_t len = 0;
    if (!text || !cap) return s;
    for (; why[len] && len < cap - 1; len++) text[len] = why[len];
    text[len] = 0;
    return s;
}
static void cg_server_defaults_(cg_server_desc *d) {
    if (d->rate == 0.0f) d->rate = 1.0f;
    if (d->weight_cap == 0.0f) d->weight_cap = 16777216.0f;
    if (d->fold_limit == 0.0f) d->fold_limit = 0.25f;
}
CG_API_ cg_status cg_server_init(
    cg_server *s, const cg_server_desc *desc, const float *x0, void *mem, size_t bytes, char *why, size_t cap) {
    if (cap && why) *why = 0;
    if (!s) return CG_E_ARG;
    memset(s, 0, sizeof *s);
    if (!desc || !x0) return cg_server_say_(CG_E_ARG, "desc or x0 is NULL", why, cap);
    if (cg_server_wrong_(desc)) return cg_server_say_(CG_E_ARG, cg_server_wrong_(desc), why, cap);
    if (!cg_server_memory(desc)) return cg_server_say_(CG_E_ARG, "sizes overflow", why, cap);
    if (!mem || bytes < cg_server_memory(desc))
        return cg_server_say_(CG_E_MEMORY, "mem is too small: cg_server_memory gives its bytes", why, cap);
    if (cg_first_nonfinite_(x0, desc->n) != CG_NO_INDEX)
        return cg_server_say_(CG_E_NONFINITE, "x0 has NaN or Inf", why, cap);
    s->desc = *desc;
    cg_server_defaults_(&s->desc);
    cg_server_plan_(s, (uint8_t *)mem + (64 - ((uintptr_t)mem & 63)) % 64);
    memcpy(s->model, x0, 4 * desc->n);
    memset(s->delta, 0, 4 * desc->n);
    if (s->sum) memset(s->sum, 0, 4 * desc->n);
    memset(s->seat, 0, (size_t)desc->workers * sizeof *s->seat);
    for (int w = 0; w < desc->workers; w++) s->seat[w].version = CG_NO_VERSION_;
    s->job = cg_sync_job_(desc->seed, desc->n);
    s->mark = cg_mix64_(s->job);
    for (size_t i = 0; i < desc->n; i++) s->mark = cg_mix64_(s->mark + cg_as_bits_(s->model[i]));
    return CG_OK;
}
CG_API_ const float *cg_server_model(const cg_server *s) { return s ? s->model : NULL; }
CG_API_ uint64_t cg_server_version(const cg_server *s) { return s ? s->version : 0; }

/* ---- the model and the ring ---- */

/* Room for a packet of `room` bytes, in place of the oldest ones; returns its offset. */
static size_t cg_ring_room_(cg_server *s, size_t room) {
    if (s->ring_cap - s->ring_head < room) s->ring_head = 0;
    while (s->entry_count) {
        const cg_server_entry *oldest = &s->entry[s->entry_first];
        const int apart = oldest->offset >= s->ring_head + room || oldest->offset + oldest->len <= s->ring_head;
        if (apart && s->entry_count < s->entry_cap) break;
        s->entry_first = (s->entry_first + 1) % s->entry_cap;
        s->entry_count--;
    }
    return s->ring_head;
}
/* The entry that leads away from that version; NULL: it is not in the ring any more, or was of another history. */
static const cg_server_entry *cg_ring_find_(const cg_server *s, uint64_t version, uint64_t mark) {
    const cg_server_entry *e;
    if (version >= s->version || s->version - version > s->entry_count) return NULL;
    e = &s->entry[(s->entry_first + s->entry_count - (size_t)(s->version - version)) % s->entry_cap];
    return e->before == mark ? e : NULL;
}
/* The next version: what a packet of down says of delta goes into the model. */
static cg_status cg_server_update_(cg_server *s) {
    const size_t n = s->desc.n, room = cg_bound(&s->desc.down, n), offset = cg_ring_room_(s, room);
    cg_tag tag = CG_ZERO;
    cg_server_entry *e;
    cg_status status;
    size_t len;
    tag.seed = s->desc.seed;
    tag.step = s->version;
    tag.rank = 0xffffffffu; /* the server's random numbers are no worker's */
    status = cg_compress(&s->desc.down, &tag, s->delta, n, s->ring + offset, room, &len, s->scratch, s->scratch_bytes);
    if (status == CG_OK) status = cg_decode(NULL, s->ring + offset, len, -1.0f, 1.0f, s->delta, n);
    if (status == CG_OK) status = cg_decode(NULL, s->ring + offset, len, -1.0f, 1.0f, s->model, n);
    if (status != CG_OK) return status;
    e = &s->entry[(s->entry_first + s->entry_count++) % s->entry_cap];
    e->offset = offset;
    e->len = len;
    e->before = s->mark;
    e->after = s->mark = cg_chain_bytes_(s->mark, s->ring + offset, CG_HEADER_BYTES);
    e->version = ++s->version;
    s->ring_head = offset + len;
    return CG_OK;
}

/* ---- seats and rounds ---- */

static uint64_t cg_server_min_clock_(const cg_server *s) {
    uint64_t least = CG_NO_VERSION_;
    for (int w = 0; w < s->desc.workers; w++)
        if (s->seat[w].state == CG_SEAT_HERE_ && s->seat[w].clock < least) least = s->seat[w].clock;
    return least;
}
/* May it make the step of its clock? */
static int cg_server_may_start_(const cg_server *s, const cg_server_seat *seat) {
    if (cg_server_has_(&s->desc, CG_SERVER_ROUNDS_))
        return seat->clock == s->round && !(seat->flags & CG_SEAT_IN_ROUND_) &&
            (!cg_server_has_(&s->desc, CG_SERVER_SAMPLES_) || seat->flags & CG_SEAT_DRAWN_);
    return !cg_server_has_(&s->desc, CG_SERVER_BOUNDED_) || seat->clock - cg_server_min_clock_(s) <= s->desc.staleness;
}
/* Draws the sample of a round among those who are here and have nothing to do, all equally likely. */
static void cg_server_draw_(cg_server *s) {
    uint64_t left = 0, need = (uint64_t)s->desc.sampled;
    for (int w = 0; w < s->desc.workers; w++)
        left += s->seat[w].state == CG_SEAT_HERE_ && s->seat[w].flags & CG_SEAT_WAITING_;
    for (int w = 0; w < s->desc.workers; w++) {
        cg_server_seat *seat = &s->seat[w];
        const uint64_t h = cg_mix64_(cg_mix64_(s->desc.seed ^ cg_mix64_(s->round + CG_GOLDEN_)) + (uint64_t)w);
        seat->flags &= ~(uint32_t)CG_SEAT_DRAWN_;
        if (seat->state != CG_SEAT_HERE_ || !(seat->flags & CG_SEAT_WAITING_)) continue;
        if ((h >> 32) * left >> 32 < need) {
            seat->flags |= CG_SEAT_DRAWN_;
            seat->clock = s->round;
            need -= need > 0;
        }
        left--;
    }
}
/* Are all here whose push the round waits for? */
static int cg_server_round_is_full_(const cg_server *s) {
    const int samples = cg_server_has_(&s->desc, CG_SERVER_SAMPLES_);
    int missing = 0;
    if (!s->arrived) return 0;
    for (int w = 0; w < s->desc.workers; w++) {
        const cg_server_seat *seat = &s->seat[w];
        const int counts = samples ? seat->state == CG_SEAT_HERE_ && seat->flags & CG_SEAT_DRAWN_
                                   : seat->state != CG_SEAT_GONE_;
        missing += counts && !(seat->flags & CG_SEAT_IN_ROUND_);
    }
    if (samples || cg_server_has_(&s->desc, CG_SERVER_WAITS_FOR_ALL_)) return !missing;
    return !missing || s->arrived >= s->desc.workers - s->desc.backup;
}
/* The fold of the round enters delta, and the next round begins. */
static void cg_server_round_end_(cg_server *s) {
    const size_t n = s->desc.n, pushes = (size_t)s->arrived;
    const cg_fenv_ env = cg_fenv_enter_();
    if (s->rows) {
        const size_t share = (size_t)((double)s->desc.fold_limit * (double)pushes);
        const size_t cut = s->desc.fold == CG_FOLD_MEDIAN ? (pushes - 1) / 2 : pushes < 3 ? 0 : share ? share : 1;
        cg_rows_trim_(s->rows, n, pushes, cut);
        cg_axpby_(s->rows, n, s->desc.rate, 1.0f, s->delta);
    } else {
        cg_axpby_(s->sum, n, (float)((double)s->desc.rate / s->round_weight), 1.0f, s->delta);
        memset(s->sum, 0, 4 * n);
    }
    cg_fenv_leave_(env);
    s->arrived = 0;
    s->round_weight = 0.0;
    s->round++;
    for (int w = 0; w < s->desc.workers; w++) s->seat[w].flags &= ~(uint32_t)(CG_SEAT_IN_ROUND_ | CG_SEAT_DRAWN_);
}
/* Frees seats that were silent for too long. */
static void cg_server_free_silent_(cg_server *s) {
    for (int w = 0; w < s->desc.workers && s->desc.timeout; w++) {
        const uint64_t heard = s->seat[w].state == CG_SEAT_AWAITED_ ? s->started : s->seat[w].heard;
        if (s->seat[w].state == CG_SEAT_GONE_ || s->now - heard <= s->desc.timeout) continue;
        if (s->seat[w].state == CG_SEAT_HERE_) s->seat[w].flags |= CG_SEAT_ASK_; /* if it can still hear */
        s->seat[w].state = CG_SEAT_GONE_;
    }
}
/* Whatever follows from a change of seats or pushes. */
static void cg_server_settle_(cg_server *s) {
    int drawn = 0;
    if (!cg_server_has_(&s->desc, CG_SERVER_ROUNDS_)) return;
    if (cg_server_round_is_full_(s)) {
        cg_status status;
        cg_server_round_end_(s);
        status = cg_server_update_(s);
        (void)status; /* delta is finite (CG_PUSH_LIMIT_), and the ring has room */
    }
    for (int w = 0; w < s->desc.workers; w++)
        drawn |= s->seat[w].state == CG_SEAT_HERE_ && s->seat[w].flags & CG_SEAT_DRAWN_;
    if (cg_server_has_(&s->desc, CG_SERVER_SAMPLES_) && !drawn && !s->arrived) cg_server_draw_(s);
}

/* ---- messages ---- */

static void cg_verdict_refuse_(cg_verdict *v, cg_status status, const char *why) {
    v->kind = CG_VERDICT_REFUSED;
    v->status = (uint32_t)status;
    v->why = why;
}
static void cg_server_hello_(cg_server *s, cg_server_seat *seat, const cg_msg_ *m, cg_verdict *v) {
    const int has_pending = m->status == 1 && m->clock <= seat->clock, was_here = seat->state == CG_SEAT_HERE_;
    const uint64_t least = cg_server_min_clock_(s);
    if (!has_pending && cg_server_has_(&s->desc, CG_SERVER_ROUNDS_) && seat->clock < s->round) seat->clock = s->round;
    if (!has_pending && !was_here && !cg_server_has_(&s->desc, CG_SERVER_ROUNDS_) && least != CG_NO_VERSION_)
        seat->clock = cg_server_max_(seat->clock, least);
    seat->state = CG_SEAT_HERE_;
    seat->piece = 0;
    seat->version = CG_NO_VERSION_;
    if (m->number != 1 && ((m->version == s->version && m->mark == s->mark) || cg_ring_find_(s, m->version, m->mark))) {
        seat->version = m->version;
        seat->mark = m->mark;
    }
    seat->flags |= CG_SEAT_WELCOME_;
    seat->flags &= ~(uint32_t)(CG_SEAT_VERDICT_ | CG_SEAT_WAITING_ | CG_SEAT_ASK_ | CG_SEAT_REFUSED_);
    if (has_pending && seat->flags & CG_SEAT_HAS_LAST_ && m->clock == seat->last_clock && m->clock < seat->clock)
        seat->flags |= CG_SEAT_VERDICT_;
    if (!has_pending || seat->flags & CG_SEAT_VERDICT_) seat->flags |= CG_SEAT_WAITING_;
    v->kind = CG_VERDICT_JOINED;
}
/* A verdict that the worker hears of, and the clock of its next push. */
static void cg_server_decide_(cg_server_seat *seat, cg_verdict *v, uint32_t kind, uint64_t next) {
    seat->last_clock = v->clock;
    seat->last_kind = kind;
    seat->last_status = CG_OK;
    seat->clock = next;
    seat->flags |= CG_SEAT_VERDICT_ | CG_SEAT_WAITING_ | CG_SEAT_HAS_LAST_;
    seat->flags &= ~(uint32_t)CG_SEAT_REFUSED_;
    v->kind = kind;
}
/* What is wrong with a push before its packet is looked at; the status goes to *status. */
static const char *cg_push_wrong_(const cg_server *s, const cg_server_seat *seat, const cg_msg_ *m, cg_status *status) {
    *status = CG_E_STATE;
    if (seat->state != CG_SEAT_HERE_) return "this worker has not said hello, or its seat was freed: say hello first";
    if (m->clock < seat->clock) return "the push is of the past: its clock was decided on long ago";
    if (m->clock > seat->clock) return "the push is of the future: there are others before its clock";
    *status = CG_E_ARG;
    if (!(m->weight > 0.0f) || !cg_is_finite_(m->weight)) return "the weight must be finite and positive";
    if (m->weight > s->desc.weight_cap) return "the weight is larger than weight_cap";
    if (s->rows && m->weight != 1.0f) return "a robust fold has no weights: the weight must be 1";
    *status = CG_E_MISMATCH;
    if (m->version > s->version) return "the push was made with a model that this server has not had";
    *status = CG_E_STATE;
    if (!(cg_server_has_(&s->desc, CG_SERVER_ROUNDS_) && m->clock < s->round) && !cg_server_may_start_(s, seat))
        return "the worker may not make this step yet";
    return NULL;
}
/* work = the values of the packet; NULL, or what is wrong with it. *norm = its norm. */
static const char *cg_push_decode_(cg_server *s, int from, const cg_msg_ *m, cg_status *status, double *norm) {
    const size_t n = s->desc.n;
    double lanes[16] = { 0.0 }, scale = (double)s->desc.rate * (double)m->weight;
    cg_info info;
    *status = cg_inspect(m->payload, m->payload_len, &info);
    if (*status != CG_OK) return "the packet is damaged";
    *status = CG_E_MISMATCH;
    if (info.n != n || info.packet_bytes != m->payload_len) return "the packet has another n";
    if (info.tag.seed != s->desc.seed || info.tag.step != m->clock || info.tag.rank != (uint32_t)from)
        return "the packet is of another worker, clock or seed than its message";
    *status = cg_decode(NULL, m->payload, m->payload_len, 1.0f, 0.0f, s->work, n);
    if (*status != CG_OK) return "the packet is damaged";
    *status = CG_E_NONFINITE;
    *norm = 0.0;
    if (scale < 1.0) scale = 1.0;
    if ((double)cg_as_float_(cg_absmax_bits_(s->work, n)) * scale > CG_PUSH_LIMIT_)
        return "values times weight and rate are larger than 1e30";
    if (s->desc.norm_cap > 0.0f) {
        for (size_t i = 0; i < n; i++) lanes[i % 16] += cg_times64_((double)s->work[i], (double)s->work[i]);
        for (int l = 0; l < 16; l++) *norm += lanes[l];
        *norm = cg_sqrt_(*norm);
    }
    *status = CG_OK;
    return NULL;
}
static void cg_server_push_(cg_server *s, int from, const cg_msg_ *m, cg_verdict *v) {
    cg_server_seat *seat = &s->seat[from];
    const int rounds = cg_server_has_(&s->desc, CG_SERVER_ROUNDS_);
    double norm, factor = 1.0;
    cg_status status;
    const char *why;
    cg_fenv_ env;
    v->clock = m->clock;
    if (seat->state == CG_SEAT_HERE_ && seat->flags & CG_SEAT_HAS_LAST_ && m->clock == seat->last_clock &&
        m->clock < seat->clock) {
        seat->flags |= CG_SEAT_VERDICT_;
        v->kind = CG_VERDICT_DUPLICATE;
        return;
    }
    why = cg_push_wrong_(s, seat, m, &status);
    if (!why) v->staleness = s->version - m->version;
    if (!why && rounds && m->clock < s->round) {
        const int keep = (s->desc.flags & CG_SERVER_KEEP_LATE) != 0;
        cg_server_decide_(seat, v, keep ? CG_VERDICT_ROLLBACK : CG_VERDICT_LATE, s->round);
        s->late++;
        return;
    }
    if (!why) why = cg_push_decode_(s, from, m, &status, &norm);
    if (why) {
        s->refused++;
        cg_verdict_refuse_(v, status, why);
        if (seat->state == CG_SEAT_HERE_ && m->clock == seat->clock) { /* its gradient goes back into its memory */
            seat->flags |= CG_SEAT_VERDICT_ | CG_SEAT_REFUSED_ | CG_SEAT_WAITING_;
            seat->refusal = (uint32_t)status;
        } else seat->flags |= CG_SEAT_ASK_;
        return;
    }
    if (s->desc.norm_cap > 0.0f && norm > (double)s->desc.norm_cap) factor = (double)s->desc.norm_cap / norm;
    if (s->desc.flags & CG_SERVER_DAMPED) factor = factor / (1.0 + (double)v->staleness);
    env = cg_fenv_enter_();
    if (s->rows) {
        cg_axpby_(s->work, s->desc.n, (float)factor, 0.0f, s->rows + (size_t)s->arrived * s->desc.n);
    } else if (rounds) {
        cg_axpby_(s->work, s->desc.n, (float)((double)m->weight * factor), 1.0f, s->sum);
        s->round_weight += (double)m->weight;
    } else {
        v->weight = (float)((double)s->desc.rate * (double)m->weight * factor);
        cg_axpby_(s->work, s->desc.n, v->weight, 1.0f, s->delta);
    }
    cg_fenv_leave_(env);
    cg_server_decide_(seat, v, CG_VERDICT_ACCEPTED, m->clock + 1);
    s->accepted++;
    if (rounds) {
        s->arrived++;
        seat->flags |= CG_SEAT_IN_ROUND_;
    } else {
        status = cg_server_update_(s);
        (void)status; /* as in cg_server_settle_ */
    }
}
CG_API_ cg_status cg_server_feed(
    cg_server *s, uint64_t now, int from, const void *bytes, size_t len, cg_verdict *verdict) {
    cg_verdict own;
    cg_msg_ m;
    cg_status status;
    const char *why;
    if (!verdict) verdict = &own;
    memset(verdict, 0, sizeof *verdict);
    verdict->why = "ok";
    if (!s || !s->model || (len && !bytes)) return CG_E_ARG;
    if (!s->started) s->started = s->now = now;
    if (now > s->now) s->now = now;
    s->cursor = 0;
    for (int w = 0; w < s->desc.workers; w++) s->seat[w].piece = 0; /* what is half sent begins anew */
    if (len) {
        if (from < 0 || from >= s->desc.workers)
            cg_verdict_refuse_(verdict, CG_E_ARG, "there is no seat for this worker");
        else if ((why = cg_msg_get_(bytes, len, s->job, &m, &status)) != NULL) {
            cg_verdict_refuse_(verdict, status, why);
            s->seat[from].flags |= CG_SEAT_ASK_;
        } else {
            cg_server_seat *seat = &s->seat[from];
            if (seat->state == CG_SEAT_HERE_) seat->heard = s->now;
            if (m.kind == CG_MSG_HELLO_) {
                seat->heard = s->now;
                cg_server_hello_(s, seat, &m, verdict);
            } else if (m.kind == CG_MSG_PUSH_) cg_server_push_(s, from, &m, verdict);
            else if (m.kind == CG_MSG_LEAVE_) {
                seat->state = CG_SEAT_GONE_;
                seat->flags &= ~(uint32_t)(CG_SEAT_ASK_ | CG_SEAT_VERDICT_ | CG_SEAT_WELCOME_ | CG_SEAT_WAITING_);
                verdict->kind = CG_VERDICT_LEFT;
            } else {
                cg_verdict_refuse_(verdict, CG_E_CORRUPT, "workers send no such message");
                seat->flags |= CG_SEAT_ASK_;
            }
        }
    }
    cg_server_free_silent_(s);
    cg_server_settle_(s);
    return CG_OK;
}

/* src/sync/server_next.h */
/* server_next: what a server has to tell its workers, one message after the other

   Offers   the public cg_server_next, cg_server_message_bytes
   Needs    server, wire
   Touches  seats, out, work and touched
   Nothing is queued: what a worker has to hear follows from its seat. In this order: a welcome, a verdict, and if it
   may make its next step, updates until it has the model, and a go. Of updates, whichever is the fewest bytes: packets
   of the ring, one by one; the values that they have touched, as they are now; or the model, piece by piece. */

static cg_msg_ cg_server_message_(uint32_t kind, const cg_server_seat *seat) {
    cg_msg_ m;
    memset(&m, 0, sizeof m);
    m.kind = kind;
    m.clock = seat->clock;
    return m;
}
static void cg_server_envelope_(cg_server *s, int to, const cg_msg_ *m, cg_envelope *e) {
    e->to = to;
    e->bytes = s->out;
    e->len = cg_msg_put_(s->out, s->job, m);
}
/* touched = the values that packets since seat->version may have changed; returns how many. */
static uint64_t cg_server_touch_(cg_server *s, const cg_server_seat *seat) {
    const size_t n = s->desc.n;
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++) s->work[i] = 1.0f;
    for (uint64_t v = seat->version; v < s->version; v++) {
        const cg_server_entry *e =
            &s->entry[(s->entry_first + s->entry_count - (size_t)(s->version - v)) % s->entry_cap];
        if (cg_clear(s->ring + e->offset, e->len, s->work, n) != CG_OK) return n;
    }
    memset(s->touched, 0, n / 8 + 8);
    for (size_t i = 0; i < n; i++)
        if (s->work[i] == 0.0f) {
            s->touched[i / 32] |= 1u << i % 32;
            count++;
        }
    return count;
}
/* The next of the touched values, from seat->piece on. */
static void cg_server_touched_put_(cg_server *s, int to, cg_server_seat *seat, cg_envelope *e) {
    cg_msg_ m = cg_server_message_(CG_MSG_TOUCHED_, seat);
    uint8_t *out = s->out + CG_MSG_BYTES_ + 8;
    size_t count = 0, i = (size_t)seat->piece;
    cg_put64_(s->out + CG_MSG_BYTES_, seat->mark);
    for (; i < s->desc.n && count < CG_TOUCHED_PIECE_; i++)
        if (s->touched[i / 32] >> i % 32 & 1) cg_put32_(out + 4 * count++, (uint32_t)i);
    for (size_t j = 0; j < count; j++) cg_put32_(out + 4 * (count + j), cg_as_bits_(s->model[cg_get32_(out + 4 * j)]));
    m.version = s->version;
    m.mark = s->mark;
    m.number = count;
    m.status = i < s->desc.n;
    m.payload_len = 8 + 8 * count;
    seat->piece = i;
    cg_server_envelope_(s, to, &m, e);
    if (i < s->desc.n) return;
    seat->version = s->version;
    seat->mark = s->mark;
    seat->piece = 0;
}
/* The next piece of the model. */
static void cg_server_dense_put_(cg_server *s, int to, cg_server_seat *seat, cg_envelope *e) {
    cg_msg_ m = cg_server_message_(CG_MSG_DENSE_, seat);
    const cg_op dense = cg_dense();
    const size_t first = (size_t)seat->piece, many = cg_min_(CG_DENSE_PIECE_, s->desc.n - first);
    size_t len = 0;
    cg_status status = cg_compress(
        &dense, NULL, s->model + first, many, s->out + CG_MSG_BYTES_, s->out_cap - CG_MSG_BYTES_, &len, NULL, 0);
    (void)status; /* the model is finite, and out has room */
    m.version = s->version;
    m.mark = s->mark;
    m.number = first;
    m.payload_len = len;
    seat->version = CG_NO_VERSION_;
    seat->piece = first + many;
    cg_server_envelope_(s, to, &m, e);
    if (seat->piece < s->desc.n) return;
    seat->version = s->version;
    seat->mark = s->mark;
    seat->piece = 0;
}
static void cg_server_update_put_(cg_server *s, int to, cg_server_seat *seat, cg_envelope *e) {
    const cg_server_entry *next = seat->version == CG_NO_VERSION_ ? NULL : cg_ring_find_(s, seat->version, seat->mark);
    uint64_t bytes = 0, dense = cg_mul_sat_(4, s->desc.n);
    cg_msg_ m = cg_server_message_(CG_MSG_UPDATE_, seat);
    if (seat->piece && seat->version != CG_NO_VERSION_) { /* in the middle of touched values */
        cg_server_touched_put_(s, to, seat, e);
        return;
    }
    for (uint64_t v = seat->version; next && v < s->version; v++)
        bytes += s->entry[(s->entry_first + s->entry_count - (size_t)(s->version - v)) % s->entry_cap].len +
            CG_MSG_BYTES_;
    if (next && s->touched && s->version - seat->version >= 4 &&
        8 * cg_server_touch_(s, seat) + CG_MSG_BYTES_ < bytes) {
        cg_server_touched_put_(s, to, seat, e);
        return;
    }
    if (!next || (bytes > dense && s->version - seat->version > 1)) {
        cg_server_dense_put_(s, to, seat, e);
        return;
    }
    m.version = next->version;
    m.mark = next->after;
    m.number = next->before;
    m.payload_len = next->len;
    memcpy(s->out + CG_MSG_BYTES_, s->ring + next->offset, next->len);
    seat->version = next->version;
    seat->mark = next->after;
    cg_server_envelope_(s, to, &m, e);
}
CG_API_ int cg_server_next(cg_server *s, cg_envelope *envelope) {
    if (!s || !s->model || !envelope) return 0;
    memset(envelope, 0, sizeof *envelope);
    for (; s->cursor < s->desc.workers; s->cursor++) {
        cg_server_seat *seat = &s->seat[s->cursor];
        cg_msg_ m = cg_server_message_(CG_MSG_WELCOME_, seat);
        if (seat->flags & CG_SEAT_ASK_) {
            seat->flags &= ~(uint32_t)CG_SEAT_ASK_;
            m.kind = CG_MSG_ASK_;
        } else if (seat->state != CG_SEAT_HERE_) continue;
        else if (seat->flags & CG_SEAT_WELCOME_) {
            seat->flags &= ~(uint32_t)CG_SEAT_WELCOME_;
            m.version = s->version;
            m.mark = s->mark;
        } else if (seat->flags & CG_SEAT_VERDICT_) {
            const int refused = (seat->flags & CG_SEAT_REFUSED_) != 0;
            seat->flags &= ~(uint32_t)(CG_SEAT_VERDICT_ | CG_SEAT_REFUSED_);
            m = cg_server_message_(CG_MSG_VERDICT_, seat);
            m.clock = refused ? seat->clock : seat->last_clock;
            m.number = seat->clock;
            m.status = refused ? CG_VERDICT_REFUSED | seat->refusal << 8 : seat->last_kind | seat->last_status << 8;
        } else if (seat->flags & CG_SEAT_WAITING_ && cg_server_may_start_(s, seat)) {
            if (seat->version != s->version || seat->mark != s->mark) {
                cg_server_update_put_(s, s->cursor, seat, envelope);
                return 1;
            }
            seat->flags &= ~(uint32_t)CG_SEAT_WAITING_;
            m = cg_server_message_(CG_MSG_GO_, seat);
            m.version = s->version;
            m.mark = s->mark;
        } else continue;
        cg_server_envelope_(s, s->cursor, &m, envelope);
        return 1;
    }
    return 0;
}
CG_API_ size_t cg_server_message_bytes(const cg_server *s) {
    size_t up;
    if (!s || !s->model) return 0;
    up = cg_bound(&s->desc.up, s->desc.n);
    return cg_min_(s->out_cap, SIZE_MAX) > up + CG_MSG_BYTES_ ? s->out_cap : up + CG_MSG_BYTES_;
}

/* src/sync/server_save.h */
/* server_save: the state of a server as bytes, the same on every machine, and back

   Offers   the public cg_server_save_bytes, cg_server_save, cg_server_load
   Needs    server
   Touches  the state in a load, once all has been checked
   Little-endian: 128 bytes of header ("cgsv", version 1, n, workers, mode, fold, seed, version, mark, round, accepted,
   late, refused, weight of the round, pushes in it, hash of all behind the header, hash of the header), model, delta,
   the sum or the rows of the round, 40 bytes for each seat. */

#define CG_SERVER_MAGIC_ 0x76736763u /* "cgsv" */
enum { CG_SERVER_HEAD_ = 128, CG_SERVER_SEAT_BYTES_ = 40 };

/* Floats of the round under way. */
static uint64_t cg_server_round_floats_(const cg_server *s, uint64_t arrived) {
    return s->rows ? cg_mul_sat_(arrived, s->desc.n) : s->sum ? s->desc.n : 0;
}
static uint64_t cg_server_bytes_(const cg_server *s, uint64_t arrived) {
    const uint64_t floats = cg_add_sat_(cg_mul_sat_(2, s->desc.n), cg_server_round_floats_(s, arrived));
    return cg_add_sat_(
        CG_SERVER_HEAD_ + (uint64_t)CG_SERVER_SEAT_BYTES_ * (uint64_t)s->desc.workers, cg_mul_sat_(4, floats));
}
CG_API_ size_t cg_server_save_bytes(const cg_server *s) {
    return s && s->model ? cg_size_or_zero_(cg_server_bytes_(s, (uint64_t)s->arrived)) : 0;
}
static uint8_t *cg_server_floats_put_(uint8_t *p, const float *v, uint64_t n) {
    for (uint64_t i = 0; i < n; i++, p += 4) cg_put32_(p, cg_as_bits_(v[i]));
    return p;
}
static const uint8_t *cg_server_floats_get_(const uint8_t *p, float *v, uint64_t n) {
    for (uint64_t i = 0; i < n; i++, p += 4) v[i] = cg_as_float_(cg_get32_(p));
    return p;
}
CG_API_ cg_status cg_server_save(const cg_server *s, void *buf, size_t cap, size_t *len) {
    const size_t bytes = cg_server_save_bytes(s);
    uint8_t *h = (uint8_t *)buf, *p;
    if (!s || !s->model || !buf || !len) return CG_E_ARG;
    *len = 0;
    if (!bytes || cap < bytes) return CG_E_CAPACITY;
    memset(h, 0, CG_SERVER_HEAD_);
    cg_put32_(h, CG_SERVER_MAGIC_);
    cg_put32_(h + 4, 1);
    cg_put64_(h + 8, s->desc.n);
    cg_put32_(h + 16, (uint32_t)s->desc.workers);
    cg_put32_(h + 20, s->desc.mode);
    cg_put64_(h + 24, s->desc.seed);
    cg_put64_(h + 32, s->version);
    cg_put64_(h + 40, s->mark);
    cg_put64_(h + 48, s->round);
    cg_put64_(h + 56, s->accepted);
    cg_put64_(h + 64, s->late);
    cg_put64_(h + 72, s->refused);
    cg_put64_(h + 80, cg_as_bits64_(s->round_weight));
    cg_put32_(h + 88, (uint32_t)s->arrived);
    cg_put32_(h + 92, s->desc.fold);
    p = cg_server_floats_put_(h + CG_SERVER_HEAD_, s->model, s->desc.n);
    p = cg_server_floats_put_(p, s->delta, s->desc.n);
    p = cg_server_floats_put_(p, s->rows ? s->rows : s->sum, cg_server_round_floats_(s, (uint64_t)s->arrived));
    for (int w = 0; w < s->desc.workers; w++, p += CG_SERVER_SEAT_BYTES_) {
        const cg_server_seat *seat = &s->seat[w];
        cg_put32_(p, seat->flags & (CG_SEAT_IN_ROUND_ | CG_SEAT_HAS_LAST_ | CG_SEAT_DRAWN_));
        cg_put32_(p + 4, seat->state);
        cg_put64_(p + 8, seat->clock);
        cg_put64_(p + 16, seat->last_clock);
        cg_put32_(p + 24, seat->last_kind);
        cg_put32_(p + 28, seat->last_status);
        cg_put64_(p + 32, 0);
    }
    cg_put64_(h + 112, cg_chain_bytes_(CG_GOLDEN_, h + CG_SERVER_HEAD_, bytes - CG_SERVER_HEAD_));
    cg_put64_(h + 120, cg_chain_bytes_(CG_GOLDEN_, h, 120));
    *len = bytes;
    return CG_OK;
}
/* Are the seats at p such as a server could have saved, and `arrived` of them in the round? */
static int cg_server_seats_ok_(const cg_server *s, const uint8_t *p, uint64_t round, uint64_t arrived) {
    uint64_t in_round = 0;
    for (int w = 0; w < s->desc.workers; w++, p += CG_SERVER_SEAT_BYTES_) {
        const uint32_t flags = cg_get32_(p);
        if (flags & ~(uint32_t)(CG_SEAT_IN_ROUND_ | CG_SEAT_HAS_LAST_ | CG_SEAT_DRAWN_)) return 0;
        if (cg_get32_(p + 4) > CG_SEAT_GONE_ || cg_get64_(p + 32)) return 0;
        if (cg_server_has_(&s->desc, CG_SERVER_ROUNDS_) && cg_get64_(p + 8) > cg_add_sat_(round, 1)) return 0;
        if (flags & CG_SEAT_HAS_LAST_ && cg_get64_(p + 16) >= cg_get64_(p + 8)) return 0;
        if (cg_get32_(p + 24) > CG_VERDICT_REFUSED) return 0;
        in_round += (flags & CG_SEAT_IN_ROUND_) != 0;
    }
    return in_round == arrived;
}
CG_API_ cg_status cg_server_load(cg_server *s, const void *buf, size_t len) {
    const uint8_t *h = (const uint8_t *)buf, *p;
    uint64_t arrived, floats;
    double weight;
    if (!s || !s->model || !buf) return CG_E_ARG;
    if (len < CG_SERVER_HEAD_ || cg_get32_(h) != CG_SERVER_MAGIC_) return CG_E_CORRUPT;
    if (cg_get64_(h + 120) != cg_chain_bytes_(CG_GOLDEN_, h, 120)) return CG_E_CORRUPT;
    if (cg_get32_(h + 4) != 1) return CG_E_VERSION;
    if (cg_get64_(h + 8) != s->desc.n || cg_get32_(h + 16) != (uint32_t)s->desc.workers ||
        cg_get32_(h + 20) != s->desc.mode || cg_get64_(h + 24) != s->desc.seed || cg_get32_(h + 92) != s->desc.fold)
        return CG_E_MISMATCH;
    arrived = cg_get32_(h + 88);
    weight = cg_as_double_(cg_get64_(h + 80));
    if (arrived > (uint64_t)s->desc.workers || (arrived && !cg_server_has_(&s->desc, CG_SERVER_ROUNDS_)))
        return CG_E_CORRUPT;
    if (!cg_is_finite64_(weight) || weight < 0.0 || (s->sum && (weight > 0.0) != (arrived > 0))) return CG_E_CORRUPT;
    if (len != cg_server_bytes_(s, arrived) || cg_get64_(h + 96) || cg_get64_(h + 104)) return CG_E_CORRUPT;
    if (cg_get64_(h + 112) != cg_chain_bytes_(CG_GOLDEN_, h + CG_SERVER_HEAD_, len - CG_SERVER_HEAD_))
        return CG_E_CORRUPT;
    floats = 2 * (uint64_t)s->desc.n + cg_server_round_floats_(s, arrived);
    for (uint64_t i = 0; i < floats; i++)
        if (!cg_is_finite_(cg_as_float_(cg_get32_(h + CG_SERVER_HEAD_ + 4 * i)))) return CG_E_CORRUPT;
    p = h + CG_SERVER_HEAD_ + 4 * floats;
    if (!cg_server_seats_ok_(s, p, cg_get64_(h + 48), arrived)) return CG_E_CORRUPT;
    for (int w = 0; w < s->desc.workers; w++, p += CG_SERVER_SEAT_BYTES_) {
        cg_server_seat *seat = &s->seat[w];
        memset(seat, 0, sizeof *seat);
        seat->flags = cg_get32_(p);
        seat->state = cg_get32_(p + 4) == CG_SEAT_GONE_ ? CG_SEAT_GONE_ : CG_SEAT_AWAITED_;
        seat->clock = cg_get64_(p + 8);
        seat->last_clock = cg_get64_(p + 16);
        seat->last_kind = cg_get32_(p + 24);
        seat->last_status = cg_get32_(p + 28);
        seat->version = CG_NO_VERSION_;
    }
    p = cg_server_floats_get_(h + CG_SERVER_HEAD_, s->model, s->desc.n);
    p = cg_server_floats_get_(p, s->delta, s->desc.n);
    cg_server_floats_get_(p, s->rows ? s->rows : s->sum, cg_server_round_floats_(s, arrived));
    s->version = cg_get64_(h + 32);
    s->mark = cg_get64_(h + 40);
    s->round = cg_get64_(h + 48);
    s->accepted = cg_get64_(h + 56);
    s->late = cg_get64_(h + 64);
    s->refused = cg_get64_(h + 72);
    s->round_weight = weight;
    s->arrived = (int)arrived;
    s->entry_count = s->entry_first = s->ring_head = 0;
    s->now = s->started = 0; /* the clock begins with the next feed */
    return CG_OK;
}

/* src/sync/client.h */
/* client: a worker of a server that is fed

   Offers   the public cg_client_*
   Needs    wire, local (cg_sync_take_), ef's public calls
   Touches  the state
   The model is changed by what the server sends, in its order, and by nothing else: so it has the server's bits. A push
   stays pending until its verdict comes, and its gradient with it, in error feedback. */

enum {
    CG_CLIENT_LOST_ = 1,       /* something is missing: only a welcome helps */
    CG_CLIENT_PARTIAL_ = 2,    /* the model is half of one version, half of another */
    CG_CLIENT_PENDING_ = 4,    /* a push waits for its verdict */
    CG_CLIENT_READY_ = 8,      /* a step may be made */
    CG_CLIENT_HAS_MODEL_ = 16, /* version and mark say which */
    CG_CLIENT_ASKED_ = 32      /* hello has been said, and not answered yet */
};
static const char *cg_client_wrong_(const cg_client_desc *d) {
    if (!d->ef.n) return "ef.n is 0";
    if (d->seat < 0 || d->seat > 65535) return "seat must be 0 to 65535";
    if (!CG_RESERVE_IS_ZERO_(d->reserved)) return "reserved must be 0: start from CG_ZERO";
    return NULL;
}
static uint64_t cg_client_plan_(cg_client *c, uint8_t *base, void **ef_mem, size_t *ef_bytes) {
    const size_t bound = cg_ef_bound(&c->desc.ef);
    uint64_t used = 0;
    *ef_bytes = cg_ef_memory(&c->desc.ef);
    c->packet_cap = bound;
    c->model = (float *)cg_sync_take_(base, &used, cg_mul_sat_(4, c->desc.ef.n));
    c->packet = (uint8_t *)cg_sync_take_(base, &used, bound ? cg_add_sat_(bound, CG_MSG_BYTES_) : CG_TOO_LARGE_);
    *ef_mem = cg_sync_take_(base, &used, *ef_bytes ? *ef_bytes : CG_TOO_LARGE_);
    return cg_add_sat_(used, 64);
}
CG_API_ size_t cg_client_memory(const cg_client_desc *desc) {
    cg_client c;
    void *ef_mem;
    size_t ef_bytes;
    if (!desc || cg_client_wrong_(desc)) return 0;
    memset(&c, 0, sizeof c);
    c.desc = *desc;
    return cg_size_or_zero_(cg_client_plan_(&c, NULL, &ef_mem, &ef_bytes));
}
CG_API_ cg_status cg_client_init(cg_client *c, const cg_client_desc *desc, void *mem, size_t bytes) {
    void *ef_mem;
    size_t ef_bytes;
    cg_status s;
    if (!c) return CG_E_ARG;
    memset(c, 0, sizeof *c);
    if (!desc || cg_client_wrong_(desc)) return CG_E_ARG;
    /* what they received would be the mean over ranks, of which a worker hears nothing */
    if (cg_ef_row_at_(desc->ef.kind) &&
        cg_ef_row_at_(desc->ef.kind)->traits & (CG_EF_KEEPS_RECEIVED_ | CG_EF_TAKES_MODELS_ | CG_EF_MAY_BE_SILENT_))
        return CG_E_UNSUPPORTED;
    c->desc = *desc;
    if (!cg_client_memory(desc)) { /* error feedback says why */
        s = cg_ef_init(&c->ef, &desc->ef, NULL, 0);
        return s == CG_E_MEMORY ? CG_E_ARG : s;
    }
    if (!mem || bytes < cg_client_memory(desc)) return CG_E_MEMORY;
    cg_client_plan_(c, (uint8_t *)mem + (64 - ((uintptr_t)mem & 63)) % 64, &ef_mem, &ef_bytes);
    s = cg_ef_init(&c->ef, &desc->ef, ef_mem, ef_bytes);
    if (s != CG_OK) {
        c->model = NULL;
        return s;
    }
    memset(c->model, 0, 4 * desc->ef.n);
    c->job = cg_sync_job_(desc->seed, desc->ef.n);
    c->flags = CG_CLIENT_LOST_;
    return CG_OK;
}
CG_API_ const float *cg_client_model(const cg_client *c) { return c ? c->model : NULL; }
CG_API_ int cg_client_ready(const cg_client *c) { return c && c->model && (c->flags & CG_CLIENT_READY_) != 0; }
static cg_status cg_client_say_(const cg_client *c, uint32_t kind, void *buf, size_t cap, size_t *len) {
    cg_msg_ m;
    if (!c || !c->model || !buf || !len) return CG_E_ARG;
    *len = 0;
    if (cap < CG_MSG_BYTES_) return CG_E_CAPACITY;
    memset(&m, 0, sizeof m);
    m.kind = kind;
    m.clock = c->clock;
    m.version = c->version;
    m.mark = c->mark;
    m.number = !(c->flags & CG_CLIENT_HAS_MODEL_) || c->flags & CG_CLIENT_PARTIAL_;
    m.status = (c->flags & CG_CLIENT_PENDING_) != 0;
    *len = cg_msg_put_((uint8_t *)buf, c->job, &m);
    return CG_OK;
}
CG_API_ cg_status cg_client_hello(cg_client *c, void *buf, size_t cap, size_t *len) {
    const cg_status s = cg_client_say_(c, CG_MSG_HELLO_, buf, cap, len);
    if (s == CG_OK) c->flags = (c->flags & ~(uint32_t)(CG_CLIENT_LOST_ | CG_CLIENT_READY_)) | CG_CLIENT_ASKED_;
    return s;
}
CG_API_ cg_status cg_client_leave(const cg_client *c, void *buf, size_t cap, size_t *len) {
    return cg_client_say_(c, CG_MSG_LEAVE_, buf, cap, len);
}
CG_API_ cg_status cg_client_push(cg_client *c, const float *grad, float weight, const void **bytes, size_t *len) {
    cg_tag tag = CG_ZERO;
    cg_msg_ m;
    cg_status s;
    if (!c || !c->model || !bytes || !len || !(weight > 0.0f) || !cg_is_finite_(weight)) return CG_E_ARG;
    *bytes = NULL;
    *len = 0;
    if (!cg_client_ready(c)) return CG_E_STATE;
    tag.seed = c->desc.seed;
    tag.step = c->clock;
    tag.rank = (uint32_t)c->desc.seat;
    memset(&m, 0, sizeof m);
    s = cg_ef_compress(&c->ef, &tag, grad, c->packet + CG_MSG_BYTES_, c->packet_cap, &m.payload_len);
    if (s != CG_OK) return s;
    m.kind = CG_MSG_PUSH_;
    m.clock = c->clock;
    m.version = c->version;
    m.mark = c->mark;
    m.weight = weight;
    c->packet_len = cg_msg_put_(c->packet, c->job, &m);
    c->flags = (c->flags & ~(uint32_t)CG_CLIENT_READY_) | CG_CLIENT_PENDING_;
    *bytes = c->packet;
    *len = c->packet_len;
    return CG_OK;
}
CG_API_ void cg_client_pending(const cg_client *c, const void **bytes, size_t *len) {
    const int pending = c && c->model && c->flags & CG_CLIENT_PENDING_;
    if (bytes) *bytes = pending ? c->packet : NULL;
    if (len) *len = pending ? c->packet_len : 0;
}
/* The pending push has ended: its packet counts, or its gradient stays in the memory. */
static cg_status cg_client_end_(cg_client *c, int counts, uint64_t next) {
    const cg_status s = counts ? cg_ef_commit(&c->ef, c->packet + CG_MSG_BYTES_, c->packet_len - CG_MSG_BYTES_, NULL)
                               : cg_ef_rollback(&c->ef, NULL, 0);
    c->flags &= ~(uint32_t)CG_CLIENT_PENDING_;
    c->packet_len = 0;
    c->clock = next;
    return s;
}
static cg_status cg_client_verdict_(cg_client *c, const cg_msg_ *m) {
    const uint32_t kind = m->status & 255;
    if (!(c->flags & CG_CLIENT_PENDING_) || m->clock != c->clock) return CG_OK; /* known already */
    c->last_kind = kind;
    c->last_status = m->status >> 8;
    c->accepted += kind == CG_VERDICT_ACCEPTED;
    c->late += kind == CG_VERDICT_LATE;
    c->rolled_back += kind == CG_VERDICT_ROLLBACK;
    c->refused += kind == CG_VERDICT_REFUSED;
    return cg_client_end_(c, kind == CG_VERDICT_ACCEPTED || kind == CG_VERDICT_LATE, m->number);
}
/* The model is at m's version now. */
static cg_status cg_client_arrive_(cg_client *c, const cg_msg_ *m) {
    c->version = m->version;
    c->mark = m->mark;
    c->piece = 0;
    c->flags = (c->flags & ~(uint32_t)CG_CLIENT_PARTIAL_) | CG_CLIENT_HAS_MODEL_;
    return CG_OK;
}
static cg_status cg_client_update_(cg_client *c, const cg_msg_ *m) {
    cg_status s;
    if (!(c->flags & CG_CLIENT_HAS_MODEL_) || c->flags & CG_CLIENT_PARTIAL_ || m->version != c->version + 1 ||
        m->number != c->mark)
        return CG_E_MISMATCH;
    s = cg_decode(NULL, m->payload, m->payload_len, -1.0f, 1.0f, c->model, c->desc.ef.n);
    return s == CG_OK ? cg_client_arrive_(c, m) : s;
}
static cg_status cg_client_touched_(cg_client *c, const cg_msg_ *m) {
    const size_t n = c->desc.ef.n, count = (size_t)m->number;
    const uint8_t *index = m->payload + 8, *value;
    if (m->number > CG_TOUCHED_PIECE_ || m->payload_len != 8 + 8 * count) return CG_E_CORRUPT;
    if (!(c->flags & CG_CLIENT_HAS_MODEL_) || cg_get64_(m->payload) != c->mark) return CG_E_MISMATCH;
    value = index + 4 * count;
    for (size_t i = 0; i < count; i++)
        if (cg_get32_(index + 4 * i) >= n || (i && cg_get32_(index + 4 * i) <= cg_get32_(index + 4 * i - 4)) ||
            !cg_is_finite_(cg_as_float_(cg_get32_(value + 4 * i))))
            return CG_E_CORRUPT;
    for (size_t i = 0; i < count; i++) c->model[cg_get32_(index + 4 * i)] = cg_as_float_(cg_get32_(value + 4 * i));
    if (!m->status) return cg_client_arrive_(c, m);
    c->flags |= CG_CLIENT_PARTIAL_; /* the same message from its beginning mends it, and so does a dense model */
    return CG_OK;
}
static cg_status cg_client_dense_(cg_client *c, const cg_msg_ *m) {
    const size_t n = c->desc.ef.n, first = (size_t)m->number;
    cg_status s;
    cg_info info;
    if (m->number >= n ||
        (m->number && (m->number != c->piece || m->version != c->target || m->mark != c->target_mark)))
        return CG_E_MISMATCH;
    s = cg_inspect(m->payload, m->payload_len, &info);
    if (s != CG_OK) return s;
    if (info.n != cg_min_(CG_DENSE_PIECE_, n - first)) return CG_E_MISMATCH;
    c->flags |= CG_CLIENT_PARTIAL_;
    s = cg_decode(NULL, m->payload, m->payload_len, 1.0f, 0.0f, c->model + first, (size_t)info.n);
    if (s != CG_OK) return s;
    c->piece = m->number + info.n;
    c->target = m->version;
    c->target_mark = m->mark;
    return c->piece == n ? cg_client_arrive_(c, m) : CG_OK;
}
static cg_status cg_client_welcome_(cg_client *c, const cg_msg_ *m, uint32_t *event) {
    cg_status s = CG_OK;
    c->flags &= ~(uint32_t)(CG_CLIENT_LOST_ | CG_CLIENT_ASKED_ | CG_CLIENT_READY_);
    c->piece = 0;
    if (!(c->flags & CG_CLIENT_PENDING_)) c->clock = m->clock;
    else if (m->clock == c->clock) *event = CG_CLIENT_RESEND;
    else if (m->clock < c->clock) { /* the server has come back from a save: the push is of a future that is gone */
        s = cg_client_end_(c, 0, m->clock);
        c->rolled_back++;
    }
    return s;
}
static cg_status cg_client_go_(cg_client *c, const cg_msg_ *m, uint32_t *event) {
    cg_status s = CG_OK;
    if (!(c->flags & CG_CLIENT_HAS_MODEL_) || c->flags & CG_CLIENT_PARTIAL_ || m->version != c->version ||
        m->mark != c->mark || m->clock < c->clock)
        return CG_E_MISMATCH;
    if (c->flags & CG_CLIENT_PENDING_) { /* nobody knows of it any more */
        if (m->clock == c->clock) return CG_E_MISMATCH;
        s = cg_client_end_(c, 0, m->clock);
        c->rolled_back++;
    }
    c->clock = m->clock;
    c->flags |= CG_CLIENT_READY_;
    *event = CG_CLIENT_START;
    return s;
}
CG_API_ cg_status cg_client_feed(cg_client *c, const void *bytes, size_t len, uint32_t *event) {
    uint32_t none;
    cg_status s;
    cg_msg_ m;
    if (!event) event = &none;
    *event = CG_CLIENT_NOTHING;
    if (!c || !c->model) return CG_E_ARG;
    if (!cg_msg_get_(bytes, len, c->job, &m, &s)) {
        if (m.kind == CG_MSG_WELCOME_) s = cg_client_welcome_(c, &m, event);
        else if (c->flags & CG_CLIENT_ASKED_) s = CG_OK; /* it is older than the hello */
        else if (c->flags & CG_CLIENT_LOST_ || m.kind == CG_MSG_ASK_) {
            c->flags = (c->flags & ~(uint32_t)CG_CLIENT_READY_) | CG_CLIENT_LOST_;
            *event = CG_CLIENT_HELLO;
        } else if (m.kind == CG_MSG_VERDICT_) s = cg_client_verdict_(c, &m);
        else if (m.kind == CG_MSG_UPDATE_) s = cg_client_update_(c, &m);
        else if (m.kind == CG_MSG_TOUCHED_) s = cg_client_touched_(c, &m);
        else if (m.kind == CG_MSG_DENSE_) s = cg_client_dense_(c, &m);
        else if (m.kind == CG_MSG_GO_) s = cg_client_go_(c, &m, event);
        else s = CG_E_CORRUPT;
    }
    if (s != CG_OK && !(c->flags & (CG_CLIENT_READY_ | CG_CLIENT_ASKED_))) {
        c->flags |= CG_CLIENT_LOST_;
        *event = CG_CLIENT_HELLO;
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
