/* api: the public declarations of error feedback, of training state between steps

   Offers   cg_ef, cg_ef_desc and the calls on them; cg_warmup, cg_ef_rule
   Needs    compgrad_exchange.h
   Touches  nothing */
#include "compgrad_exchange.h" /* outside the guard: its implementation has to come before the one below */

#ifndef COMPGRAD_EF_H
#  define COMPGRAD_EF_H

typedef enum cg_ef_kind {
    CG_EF_CLASSIC = 0,
    CG_EF_LOCO,
    CG_EF_SCALECOM,
    CG_EF_ECQ,
    CG_EF_MOMENTUM,
    CG_EF_SIGNUM,
    CG_EF_VARIANCE,
    CG_EF_EF21,
    CG_EF_DIANA,
    CG_EF_LAQ,
    CG_EF_ONEBIT_ADAM
} cg_ef_kind;

/* The ratio kept in the first stages * period steps (by tag.step), in place of the operator's own. */
typedef enum cg_warmup_kind {
    CG_WARMUP_NONE = 0,
    CG_WARMUP_POWER /* ratio^((stage+1)/(stages+1)), DGC */,
    CG_WARMUP_QUARTERS /* 1/4, 1/16, ...: 75 %, 93.75 % less */,
    CG_WARMUP_LINEAR /* 1 - (1 - ratio) (stage+1)/(stages+1) */,
    CG_WARMUP_TABLE
} cg_warmup_kind;
typedef struct cg_warmup {
    uint32_t kind, stages;
    uint64_t period /* steps of a stage, an epoch; 0 = 1 */;
    const float *table /* stages of them */;
} cg_warmup;
CG_API_ float cg_warmup_ratio(const cg_warmup *warmup, float ratio, uint64_t step);

/* The operator of some tensors: the first rule that applies. */
typedef struct cg_ef_rule {
    uint32_t first, last /* tensors */;
    size_t n_from /* and at least so long */;
    cg_op op;
} cg_ef_rule;
enum { CG_CLIP_NORM = 0, CG_CLIP_VALUE = 1 };

typedef struct cg_ef_desc { /* zero = default */
    cg_op op;
    size_t n;
    uint32_t kind; /* cg_ef_kind */
    int workers;   /* N, for clipping; 0 = 1 */
    float momentum;
    int nesterov;     /* of MOMENTUM */
    float clip;       /* of g, before everything else: at clip / sqrt(workers); 0: not */
    float decay;      /* 0 = the kind's default */
    int finite;       /* grad has been checked by the caller */
    float rate;       /* g is multiplied by it; 0 = 1. cg_ef_set_rate changes it */
    float alpha;      /* of ECQ and DIANA; 0 = the kind's default */
    uint32_t clip_by; /* CG_CLIP_NORM of the whole vector, or CG_CLIP_VALUE */
    int bytes;        /* memory in 8 bits: CLASSIC, LOCO, SCALECOM, ECQ */
    uint64_t reset;   /* forget the error every so many steps; 0: never */
    /* LAQ: the step size of the model; it is silent while |D|^2 < sum of laq_weight/10 |moved|^2 over the last */
    float laq_step;
    float laq_weight;      /* ten steps / laq_step^2 + 3 (error now + error when last sent); 0 = .8 */
    uint64_t laq_patience; /* at most so many silent steps in a row; 0 = 100 */
    uint64_t dense_steps;  /* so many, by tag.step, are sent as they are */
    size_t small;          /* shorter vectors always are */
    cg_warmup warmup;      /* from then on */
    const cg_ef_rule *rules;
    size_t rule_count;
    /* has the last word, but for dense steps, small vectors and */
    cg_op (*policy)(void *user, const cg_tag *tag, size_t n, cg_op planned);
    /* warm-up; may be asked more than once; the same on all ranks, and no operator with more scratch than op or a
       rule */
    void *policy_user;
    /* floats of second-leg memory (cg_exchange_carry) that cg_ef_exchange shall keep, and save */
    size_t carry;
} cg_ef_desc;

typedef struct cg_ef_stats { /* of the last step */
    double put, sent;        /* |p|^2 and |D|^2 */
    float gain;              /* sent / put; 0 if there is nothing */
    float clipped;           /* g was multiplied by it */
    int silent;              /* LAQ sent nothing */
    int kept;                /* the gradient is in memory, sent or not */
} cg_ef_stats;

typedef struct cg_ef { /* yours; nothing in it is of interest but through the calls below */
    cg_ef_desc desc;
    cg_ef_stats stats;
    uint64_t steps, silent; /* silent: in a row */
    int pending;
    float *vector[3];            /* error, velocity, received */
    uint8_t *bytes;              /* the error in 8 bits: n codes, then a u16 of every 64 */
    float *warm, *carry, *whole; /* low-rank; second leg; p, where it must be in one piece */
    size_t warm_count, carry_first;
    void *scratch;
    size_t scratch_bytes;
    /* memory is this times what it means; for the next top-k, two; by which D goes into H */
    float scale, hint, threshold, received_by;
    double reach, size; /* no value in memory is larger; |p| of the last step */
    double moved[10], error, error_sent, score;
    uint64_t moves;
} cg_ef;

enum {
    CG_EF_ERROR = 0 /* e, v of MOMENTUM, m of SIGNUM, r, h */,
    CG_EF_VELOCITY = 1 /* u; v of VARIANCE and EF21 */,
    CG_EF_RECEIVED = 2 /* H, M */
};

/* 0: refused (cg_ef_init says why), or it overflows */
CG_API_ size_t cg_ef_memory(const cg_ef_desc *desc);
CG_API_ size_t cg_ef_bound(const cg_ef_desc *desc); /* no packet is larger, but a policy's may */
CG_API_ CG_CHECKED_ cg_status cg_ef_init(cg_ef *ef, const cg_ef_desc *desc, void *mem, size_t bytes);
CG_API_ void cg_ef_reset(cg_ef *ef);                  /* as after init */
CG_API_ const float *cg_ef_residual(const cg_ef *ef); /* n floats; NULL if they are bytes: cg_ef_read */
CG_API_ CG_CHECKED_ cg_status cg_ef_read(const cg_ef *ef, int which, float *out, size_t n);
CG_API_ float cg_ef_scale(const cg_ef *ef); /* of the last step */
CG_API_ cg_ef_stats cg_ef_stats_of(const cg_ef *ef);
CG_API_ cg_ef_stats cg_ef_last(const cg_ef *ef);            /* as 0.1 called it */
CG_API_ cg_op cg_ef_op(const cg_ef *ef, const cg_tag *tag); /* the operator of that step */

CG_API_ CG_CHECKED_ cg_status cg_ef_compress(
    cg_ef *ef, const cg_tag *tag, const float *grad, void *packet, size_t cap, size_t *len);
CG_API_ CG_CHECKED_ cg_status cg_ef_compress_with(
    cg_ef *ef, const cg_tag *tag, const cg_extra *side, const float *grad, void *packet, size_t cap, size_t *len);
CG_API_ CG_CHECKED_ cg_status cg_ef_commit(cg_ef *ef, const void *used, size_t used_len, float *mean);
CG_API_ CG_CHECKED_ cg_status cg_ef_commit_with(
    cg_ef *ef, const cg_extra *side, const void *used, size_t used_len, float *mean);
/* the packet may be NULL */
CG_API_ CG_CHECKED_ cg_status cg_ef_rollback(cg_ef *ef, const void *packet, size_t len);

/* Clip, momentum, compensate, compress, exchange, decompress, remember: desc.op, into, warm and carry are ef's;
   score, if leader is CG_LEADER_BY_SCORE and it is 0, a running mean of |grad| (0.9 of it stays). A dense step
   goes by auto where merge, shared or region would refuse it. desc.model takes the step at once, by desc.rate
   (beside ef's own rate, if it has one); grad is then room, but the result all the same for EF21, DIANA, LAQ and
   ONEBIT_ADAM (whose M is not preconditioned: take that step yourself). */
CG_API_ size_t cg_ef_exchange_memory(const cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport);
CG_API_ CG_CHECKED_ cg_status cg_ef_exchange(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport,
    float *grad, void *mem, size_t bytes, cg_report *report);

/* Layer by layer, as cg_exchange_layers: layers[i].x is the gradient of efs[i], and desc is as for cg_ef_exchange
   (op, n, warm and carry are filled in). If a gradient is refused here none is put in memory; if another rank
   refuses, all of them are kept. */
CG_API_ size_t cg_ef_layers_memory(
    cg_ef *const *efs, cg_layer *layers, size_t count, size_t small, const cg_transport *transport);
CG_API_ CG_CHECKED_ cg_status cg_ef_exchange_layers(cg_ef *const *efs, cg_layer *layers, size_t count, size_t small,
    const cg_transport *transport, void *mem, size_t bytes, cg_report *report);

/* the error, when a learning rate outside changes: by old / new */
CG_API_ CG_CHECKED_ cg_status cg_ef_rescale(cg_ef *ef, float factor);
CG_API_ CG_CHECKED_ cg_status cg_ef_set_rate(cg_ef *ef, float rate);   /* not 0 */
CG_API_ CG_CHECKED_ cg_status cg_ef_set_ratio(cg_ef *ef, float ratio); /* of desc.op; not above what init saw */
/* LAQ: |model after - before|^2 of the step just done */
CG_API_ CG_CHECKED_ cg_status cg_ef_moved(cg_ef *ef, double squared);

CG_API_ size_t cg_ef_save_bytes(const cg_ef *ef);
CG_API_ CG_CHECKED_ cg_status cg_ef_save(const cg_ef *ef, void *buf, size_t cap, size_t *len);
CG_API_ CG_CHECKED_ cg_status cg_ef_load(cg_ef *ef, const void *buf, size_t len);
CG_API_ CG_CHECKED_ cg_status cg_ef_load_mean(cg_ef *ef, const void *const *bufs, const size_t *lens, size_t count);

/* out = m / (sqrt(variance) + epsilon), and 0 where the variance is 0: an operator of one bit cannot send a zero.
   Returns |out|, for LAMB's ratio. */
CG_API_ double cg_ef_precondition(const float *momentum, const float *variance, float epsilon, float *out, size_t n);

#endif /* COMPGRAD_EF_H */
