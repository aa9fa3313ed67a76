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
    CG_ROUTE_LINEAR
} cg_route;
typedef enum cg_fold {
    CG_FOLD_MEAN = 0,
    CG_FOLD_SUM /* on the route allgather a sum too large for f32 is Inf */,
    CG_FOLD_VOTE /* majority of signs, + for a tie */,
    CG_FOLD_CONTRIBUTORS /* mean over the ranks whose packet has that value */
} cg_fold;
enum { CG_LEADER_BY_SCORE = -1 };
/* desc.flags */
enum {
    /* all ranks quantize with the largest scale of any rank, so that levels add as integers */
    CG_AGREE_SCALES = 1,
    /* this rank contributes zeros: it counts in N, but its x is not read. Only for the route allgather with the fold
       mean or sum, without CG_AGREE_SCALES */
    CG_ABSTAIN = 2
};

/* A zero field means its default. All fields must be equal on all ranks, except weight, score, carry, warm, side, into,
   model and the flag CG_ABSTAIN. The struct is copied; the memory that its pointers name must stay valid until the
   exchange has ended. */
typedef struct cg_exchange_desc {
    cg_op op; /* compresses x; zero: dense f32 */
    /* Operator of the second leg on the routes server and scatter. NULL: the sum itself if packets add exactly;
       otherwise f32 (server, or weighted f32 values) or op (scatter) */
    const cg_op *back;
    uint32_t route, fold; /* cg_route, cg_fold */
    cg_tag tag;           /* seed, step and tensor; rank is filled in */
    /* The factor of this rank in the fold: positive and not denormal. 0 means 1, and must be 0 on all ranks or none */
    float weight;
    /* r + 1: rank r leads. 0: rank 0 (server) or rank step % N (shared, STAR). CG_LEADER_BY_SCORE: the rank with the
       largest score (VAR) */
    int leader;
    float score; /* finite; matters only with CG_LEADER_BY_SCORE */
    /* The residual of the second leg: cg_exchange_carry() floats, zeros before the first step; read and updated. With
       CG_ROUTE_AUTO it must be given on all ranks or on none */
    float *carry;
    /* Low-rank: cols * r floats, zeros before the first step; the next power iteration starts from them */
    float *warm;
    const cg_extra *side; /* aux, scales, support and codecs for op; NULL: none */
    uint32_t flags;       /* CG_AGREE_SCALES, CG_ABSTAIN */
    float *into;          /* n floats that receive the result; NULL: x receives it */
    /* n floats that overlap neither x nor into, or NULL. If given, the exchange ends with a step of SGD,
       model -= rate * result, instead of writing a result, and may use into (or x) as scratch. A sum of sparse f32
       packets by allgather changes only the values of model that some rank sent, and leaves into and x alone. An Inf in
       the result (CG_FOLD_SUM) reaches model. */
    float *model;
    float rate; /* of model: finite, and 0 means 0; must be equal on all ranks, which is not checked */
} cg_exchange_desc;

typedef struct cg_report {
    int rank;        /* the rank that caused the error, or -1 if that is unknown or there was none */
    int code;        /* what the failed callback returned, else 0 */
    const char *why; /* a sentence, constant text */
    /* Bytes sent and received by this rank. Exact for sendrecv. For your own collectives the least that they can move:
       allgather (N-1) bytes_each in both directions, broadcast N-1 times the buffer out of the root and once into every
       other rank, allreduce 2 (N-1)/N of its bytes in both directions */
    uint64_t bytes_out, bytes_in;
    uint32_t rounds;  /* callbacks that succeeded */
    uint32_t route;   /* the route taken, which CG_ROUTE_AUTO chose */
    const void *used; /* this rank's contribution, in mem until mem is used again; NULL after an error */
    size_t used_len;
} cg_report;

/* ---- messages, for those who drive an exchange themselves ---- */

typedef enum cg_io_kind {
    CG_IO_NONE = 0,
    CG_IO_ALLREDUCE,
    CG_IO_ALLGATHER,
    CG_IO_BROADCAST,
    CG_IO_SENDRECV
} cg_io_kind;
typedef struct cg_io { /* the next message; its buffers belong to the exchange */
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
   unchanged. */
CG_API_ CG_CHECKED_ cg_status cg_exchange(const cg_exchange_desc *desc, const cg_transport *transport, float *x,
    size_t n, void *mem, size_t bytes, cg_report *report);

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
   allgathers; then one exchange follows the other. Layers with fewer than `small` values travel together as one dense
   vector, if their fold is the mean or the sum and if fold and weight equal those of the first such layer.
   If a rank cannot start one of its layers (NaN, a refused operator), no layer is exchanged. A layer that fails later
   keeps its x and model, and the others are exchanged nevertheless, except after CG_E_TRANSPORT. Returns the first
   failure. *report has the sums of bytes and rounds, and rank, code and why of that failure; each layer's used is in
   layers[i].report. */
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
