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

#endif /* COMPGRAD_SYNC_H */
