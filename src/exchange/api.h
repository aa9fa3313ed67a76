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

    /* what follows from desc, transport and n; by cg_ex_resolve_ */
    struct {
        uint32_t route;         /* desc.route, or the one that CG_ROUTE_AUTO chose */
        int stripes;            /* pieces of grad with a packet each: N (ring, scatter), otherwise 1 */
        int root;               /* the leader; CG_LEADER_BY_SCORE: set again by cg_records_check_ */
        cg_op back;             /* operator of sums that are encoded again */
        int exact;              /* sums of packets are packets (cg_reduce) and lose nothing */
        int op_len_fixed;       /* the length of a packet of desc.op follows from n: no preamble */
        int reduced_len_fixed;  /* the same of a reduced packet */
        int is_matrix;          /* desc.op is of matrices */
        int has_pairs;          /* desc.op has packets of (index, f32 value) pairs, without a code */
        uint64_t transformed_n; /* values of grad behind the sample and the transform of desc.op, at most */
        size_t packet_room;     /* bytes of the packet of any stripe, at most */
        uint64_t scratch_bytes; /* to compress any stripe by desc.op or back */
        uint64_t max_level_sum; /* exact sums of levels: the largest that N ranks can reach; 0: f32 values */
        size_t max_selected;    /* selections: values of a packet at most */
        size_t k;               /* merge, region: number of values that survive */
    } plan;

    /* the first round, and what follows from the records of all ranks */
    struct {
        uint8_t record[64];  /* this rank's (CG_RECORD_BYTES_); by cg_record_put_ */
        uint8_t *records;    /* [mem] everybody's, in rank order; or in fallback */
        uint8_t *gathered;   /* [mem] where the allgather of records leaves them; or in fallback */
        int have_records;    /* records are here already: cg_batch_exchange_ has moved those of all layers together */
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

    /* length and status, sent before a packet whose length is not known */
    struct {
        uint8_t out[16]; /* this rank's (CG_PREAMBLE_BYTES_), by cg_preamble_put_; broadcast: the root's */
        uint8_t in[16];  /* of hop.from */
        /* [mem] everybody's; also N x N tables of u64 (scatter, region), and this rank's row behind them */
        uint8_t *all;
        uint32_t digest; /* region: hash of what ranks have counted together, equal in every preamble; otherwise 0 */
    } preamble;

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
        struct cg_decoder_ *decoder;      /* [mem] N; by cg_accum_packet_ */
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
