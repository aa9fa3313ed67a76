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
