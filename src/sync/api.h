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
