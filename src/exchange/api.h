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
