#include "compgrad.h" /* outside the guard: its implementation has to come before the one below */

#ifndef COMPGRAD_EXCHANGE_H
#  define COMPGRAD_EXCHANGE_H

enum { CG_ALLREDUCE_AGREES = 1 }; /* cg_transport.flags: every rank gets the same bits from allreduce */

/* callbacks return 0 = ok; anything else is kept in cg_report.code. Sizes are exact on both sides */
typedef struct cg_transport {
    void *user;
    int rank, size;
    uint32_t flags;
    int (*allreduce)(void *user, float *inout, size_t n); /* sum */
    /* all: rank after rank */
    int (*allgather)(void *user, const void *mine, void *all, size_t bytes_each);
    int (*broadcast)(void *user, void *buf, size_t bytes, int root);
    /* both at once; < 0: none */
    int (*sendrecv)(void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from);
} cg_transport;

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
    CG_FOLD_SUM /* by allgather it may come to Inf */,
    CG_FOLD_VOTE /* of signs, + for a tie */,
    CG_FOLD_CONTRIBUTORS /* mean of those that sent one */
} cg_fold;
enum { CG_LEADER_BY_SCORE = -1 };
/* desc.flags: quantize by the largest scale of all ranks; then levels add as integers */
enum {
    CG_AGREE_SCALES = 1,
    /* this rank counts, with nothing but zeros: x is not read. Allgather, mean or sum */
    CG_ABSTAIN = 2
};

/* zero = default; the same on all ranks but for weight, score, carry, warm, CG_ABSTAIN, into and model */
typedef struct cg_exchange_desc {
    cg_op op;
    /* operator of the second leg (server, scatter); NULL: exact sums where they are short, else op */
    const cg_op *back;
    uint32_t route, fold;
    cg_tag tag;   /* rank is filled in */
    float weight; /* 0 = 1, on all ranks or none: sum of w D, or divided by the sum of w */
    /* r + 1: rank r; 0: rank 0 (server), or step % N (shared: STAR); CG_LEADER_BY_SCORE: the largest score (VAR) */
    int leader;
    float score;
    /* cg_exchange_carry() floats, zero at first: the error of sums that were encoded again; route auto: on all
       ranks or none */
    float *carry;
    /* low-rank: cols*rank floats, zero at first: where the next power iteration starts */
    float *warm;
    const cg_extra *side;
    uint32_t flags; /* CG_AGREE_SCALES, CG_ABSTAIN */
    float *into;    /* n floats: where the result goes; NULL: x itself */
    /* n floats apart from x and into: model -= rate * result, a step of SGD, in place of writing a result; into
       (or x) is then room. A sparse f32 sum by allgather touches nothing else. A sum of Inf would get into it.
       NULL: none */
    float *model;
    float rate; /* of model: finite, 0 is 0; the same on all ranks, which is not checked */
} cg_exchange_desc;

typedef struct cg_report {
    int rank;        /* who is to blame, or -1 */
    int code;        /* of the callback */
    const char *why; /* a sentence */
    /* by sendrecv exactly. Of your collectives what they must move at least: allgather N-1 times mine out and all
       the others' in, broadcast N-1 times out of the root, allreduce 2 (N-1)/N of its bytes both ways */
    uint64_t bytes_out, bytes_in;
    uint32_t rounds;  /* callbacks called */
    uint32_t route;   /* what AUTO chose */
    const void *used; /* in mem, until mem is used again */
    size_t used_len;
} cg_report;

typedef enum cg_io_kind {
    CG_IO_NONE = 0,
    CG_IO_ALLREDUCE,
    CG_IO_ALLGATHER,
    CG_IO_BROADCAST,
    CG_IO_SENDRECV
} cg_io_kind;
typedef struct cg_io { /* what to move next */
    uint32_t kind;
    int to, from;    /* sendrecv: peers, < 0: none. broadcast: from is the root */
    const void *out; /* sendrecv; allgather: mine */
    size_t out_bytes;
    void *in;        /* sendrecv; allgather: all; allreduce: the floats; broadcast: the buffer */
    size_t in_bytes; /* allgather: size * out_bytes; allreduce: 4 n */
} cg_io;

/* yours, and may not move; nothing in it is of interest but through the calls below */
typedef struct cg_exchange_state cg_exchange_state;

/* Bytes of mem; 0: this description is refused (cg_exchange with no memory tells everybody, and says why), or they
   overflow. To be refused may be one rank's alone (a server without carry): of more than 16 ranks it then needs
   some memory to tell the others. */
CG_API_ size_t cg_exchange_memory(const cg_exchange_desc *desc, const cg_transport *transport, size_t n);
/* Floats of desc.carry that this rank needs; 0: none. */
CG_API_ size_t cg_exchange_carry(const cg_exchange_desc *desc, const cg_transport *transport, size_t n);
CG_API_ CG_CHECKED_ cg_status cg_exchange(const cg_exchange_desc *desc, const cg_transport *transport, float *x,
    size_t n, void *mem, size_t bytes, cg_report *report);

/* The same in pieces. start fails only where nothing can be said to the others; whatever else is wrong next will
   tell them, and return. */
CG_API_ CG_CHECKED_ cg_status cg_exchange_start(cg_exchange_state *state, const cg_exchange_desc *desc,
    const cg_transport *transport, float *x, size_t n, void *mem, size_t bytes);
CG_API_ CG_CHECKED_ cg_status cg_exchange_next(cg_exchange_state *state, int last_code, cg_io *io);
CG_API_ void cg_exchange_report(const cg_exchange_state *state, cg_report *report);
CG_API_ int cg_io_run(const cg_transport *transport, const cg_io *io);

/* y = beta*y + alpha*D(used). */
CG_API_ CG_CHECKED_ cg_status cg_used_decode(
    const cg_extra *side, const void *used, size_t len, float alpha, float beta, float *y, size_t n);

/* Layer by layer: every layer has its own operator, route and tag; all of them open in two rounds, then one
   exchange follows the other. Those shorter than `small` values (and with the fold and weight of the first of
   them) travel together as one dense message. If a rank cannot even start a layer (NaN, a refused operator) none
   is exchanged. A layer that fails later leaves its x and model as they were and does not keep the others from
   being exchanged; the first failure is returned. The report adds up all of them. */
typedef struct cg_layer {
    cg_exchange_desc desc;
    float *x;
    size_t n;
    cg_status status;
    cg_report report;
} cg_layer;
CG_API_ size_t cg_exchange_layers_memory(
    const cg_layer *layers, size_t count, size_t small, const cg_transport *transport);
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
