/* api: the public declarations of error feedback, of training state between steps

   Offers   cg_ef, cg_ef_desc and the calls on them; cg_warmup, cg_ef_rule
   Needs    compgrad_exchange.h
   Touches  nothing */
#include "compgrad_exchange.h" /* outside the guard: its implementation has to come before the one below */

#ifndef COMPGRAD_EF_H
#  define COMPGRAD_EF_H

/* ---- description ---- */

typedef enum cg_ef_kind { /* the table of kinds is in the manual above */
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
    CG_EF_ONEBIT_ADAM,
    CG_EF_NONE /* the same calls without a memory: unbiased operators only */,
    CG_EF_FILTERED /* momentum before the operator, for an optimizer that keeps its own */,
    CG_EF_DIFFERENCE /* the vector is a model: its difference from what all ranks had last is sent */
} cg_ef_kind;

/* The name of a kind in text, as "classic" and "momentum"; NULL: there is none with that number. */
CG_API_ const char *cg_ef_kind_name(uint32_t kind);
/* The kind of that name, in letters of either case. CG_E_ARG: there is none, and *kind stays as it is. */
CG_API_ CG_CHECKED_ cg_status cg_ef_kind_parse(uint32_t *kind, const char *text);

/* Warm-up replaces the ratio of the operator in the first stages * period steps, counted by tag.step. */
typedef enum cg_warmup_kind {
    CG_WARMUP_NONE = 0,
    CG_WARMUP_POWER /* ratio^((stage+1)/(stages+1)), as DGC does */,
    CG_WARMUP_QUARTERS /* 1/4, 1/16, ...: 75 %, 93.75 %, ... of the values are dropped */,
    CG_WARMUP_LINEAR /* 1 - (1 - ratio) (stage+1)/(stages+1) */,
    CG_WARMUP_TABLE /* table[stage] */
} cg_warmup_kind;
typedef struct cg_warmup {
    uint32_t kind, stages;
    uint64_t period /* steps in a stage, for example those of an epoch; 0 = 1 */;
    const float *table /* CG_WARMUP_TABLE: `stages` ratios; must stay valid */;
} cg_warmup;
CG_API_ const char *cg_warmup_name(uint32_t kind); /* as cg_ef_kind_name */
CG_API_ CG_CHECKED_ cg_status cg_warmup_parse(uint32_t *kind, const char *text);
/* The ratio of that step, for an operator whose own ratio is `ratio`. */
CG_API_ float cg_warmup_ratio(const cg_warmup *warmup, float ratio, uint64_t step);

/* An operator for some tensors. The first rule that applies replaces desc.op. */
typedef struct cg_ef_rule {
    uint32_t first, last /* applies to tag.tensor from first to last, both included */;
    size_t n_from /* and only to vectors of at least so many values */;
    cg_op op;
} cg_ef_rule;
enum { CG_CLIP_NORM = 0, CG_CLIP_VALUE = 1 };
#  define CG_LAMBDA_SQRT (-1.0f) /* of cg_ef_desc.lambda */

/* A zero field means its default. The struct is copied by cg_ef_init; the memory that its pointers name must stay
   valid as long as the cg_ef is used. */
typedef struct cg_ef_desc {
    cg_op op;
    size_t n;         /* values in every gradient; 0 is refused */
    uint32_t kind;    /* cg_ef_kind */
    int workers;      /* number of ranks, read only by clip and CG_LAMBDA_SQRT; 0 = 1 */
    float momentum;   /* 0 <= momentum < 1; MOMENTUM, SIGNUM, EF21, ONEBIT_ADAM and FILTERED only */
    int nesterov;     /* not 0: Nesterov momentum; MOMENTUM only */
    float clip;       /* the gradient is first clipped at clip / sqrt(workers); 0: no clipping */
    float decay;      /* 0 to 1; 0 = the default of the kind */
    int finite;       /* not 0: the caller guarantees that grad is finite and below 1e37 in magnitude */
    float rate;       /* the gradient is multiplied by it; 0 = 1. cg_ef_set_rate changes it */
    float alpha;      /* ECQ and DIANA, 0 to 1; 0 = the default of the kind */
    uint32_t clip_by; /* CG_CLIP_NORM: the norm of the whole vector; CG_CLIP_VALUE: every value */
    int bytes;        /* not 0: keep the residual in 8 bits; CLASSIC, LOCO, SCALECOM and ECQ only */
    uint64_t reset;   /* set the residual to zero every so many steps; 0: never */
    /* LAQ sends nothing while |D|^2 < laq_weight / 10 * (sum of cg_ef_moved over the last ten steps) / laq_step^2
       + 3 (squared error now + squared error when last sent). laq_step: the learning rate of the model, not 0 */
    float laq_step;
    float laq_weight;      /* 0 = .8 */
    uint64_t laq_patience; /* after so many silent steps in a row LAQ sends in any case; 0 = 100 */
    uint64_t dense_steps;  /* steps with tag.step < dense_steps send the whole vector as f32 */
    size_t small;          /* vectors with fewer values always do */
    cg_warmup warmup;      /* begins after the dense steps */
    const cg_ef_rule *rules;
    size_t rule_count;
    /* Chooses the operator of a step: `planned` is desc.op or that of a rule. NULL: takes `planned`. It is not asked
       for dense steps and small vectors, and warm-up changes the ratio of its answer. It may be called more than once
       for a step. It must give the same operator on all ranks, and none that needs more scratch than desc.op and the
       rules */
    cg_op (*policy)(void *user, const cg_tag *tag, size_t n, cg_op planned);
    void *policy_user; /* passed to policy */
    /* floats of cg_exchange_desc.carry that cg_ef_exchange keeps, uses and saves: cg_exchange_carry(); 0: no carry */
    size_t carry;
    float lambda; /* DIFFERENCE: base += lambda mean D; 0 = 1; CG_LAMBDA_SQRT: the square root of workers */
    int biased;   /* NONE, not 0: take biased operators, too; what they drop is lost for good */
    /* The vector consists of these segments (see cg_extra), which the state of one vector is kept for: operators of
       desc, rules and policy are those of segments that have no other. Not for dense steps. NULL: it has none */
    const cg_segments *segments;
    uint64_t reserved[6]; /* must be 0 */
} cg_ef_desc;

typedef struct cg_ef_stats { /* of the last step */
    double put, sent;        /* |p|^2, and |D|^2 of the contribution */
    float gain;              /* sent / put; 0 if put is 0 */
    float clipped;           /* the factor that clipping by norm applied, else 1 */
    int silent;              /* 1: LAQ sent nothing */
    int kept;                /* 1: the gradient has entered the state, whether or not it was sent */
    /* residual over gradient, both divided by the root of a running mean of squared gradients, as Adam does: a sampled,
       running estimate. Above 3 an Adam behind the mean suffers, above 20 it stalls. 0: the kind has no residual */
    float delay;
} cg_ef_stats;

/* The state of one vector. You allocate it; read it only through the functions below. */
typedef struct cg_ef {
    cg_ef_desc desc;
    cg_ef_stats stats;
    uint64_t steps, silent; /* silent: silent steps in a row */
    int pending;            /* between compress and commit or rollback */
    float *vector[3];       /* by CG_EF_ERROR, CG_EF_VELOCITY, CG_EF_RECEIVED; NULL if the kind has none */
    uint8_t *bytes;         /* the residual in 8 bits: n codes, then a u16 scale for every 64 */
    /* start of the low-rank iteration; residual of the second leg; p, where the operator needs all of it at once */
    float *warm, *carry, *whole;
    size_t warm_count, carry_first;
    void *scratch;
    size_t scratch_bytes;
    /* factor of the stored residual; two thresholds for the next top-k; factor of D in h and H */
    float scale, hint, threshold, received_by;
    double reach, size; /* a bound of all magnitudes in the state; |p| of the last step */
    double moved[10], error, error_sent, score;
    uint64_t moves;
    uint64_t mark; /* see cg_ef_mark */
    /* cg_ef_withdraw: whether the last step was rolled back, and the factor by which its gradient was taken */
    int may_withdraw;
    float given_by;
    cg_report report; /* see cg_ef_report */
    /* of stats.delay: running means of squares, in a sample, their weight, and two running sums */
    float *second;
    double second_weight, given, delayed;
    cg_extra segments; /* nothing but desc.segments, for exchanges without a side of the caller's */
} cg_ef;

enum {
    CG_EF_ERROR = 0 /* the residual e; u of SIGNUM and FILTERED; h of EF21, DIANA and LAQ */,
    CG_EF_VELOCITY = 1 /* u of MOMENTUM and of EF21 with momentum; s of VARIANCE */,
    CG_EF_RECEIVED = 2 /* H of EF21, DIANA and LAQ; M of ONEBIT_ADAM; U of FILTERED; the base of DIFFERENCE */
};

/* ---- state ---- */

/* Bytes that cg_ef_init needs; 0: the description is refused (cg_ef_init returns why), or they overflow. */
CG_API_ size_t cg_ef_memory(const cg_ef_desc *desc);
/* Bytes that suffice for every packet of cg_ef_compress; 0 as above. It does not know the packets of a policy, nor
   those of a codec of yours: use cg_bound_with for these. */
CG_API_ size_t cg_ef_bound(const cg_ef_desc *desc);
/* Makes *ef with all state zero. mem may have any alignment and is yours; *ef and mem must stay in place as long as
   *ef is used. CG_E_ARG: a value out of range, or n is 0. CG_E_UNSUPPORTED: a field that this kind or operator cannot
   use. CG_E_MEMORY: fewer than cg_ef_memory() bytes. After an error *ef is zero but for its report (cg_ef_report), and
   the other calls refuse it with CG_E_STATE, as they do a cg_ef of zeros that cg_ef_init has not made. */
CG_API_ CG_CHECKED_ cg_status cg_ef_init(cg_ef *ef, const cg_ef_desc *desc, void *mem, size_t bytes);
/* Sets the state to zero, as after cg_ef_init; a pending step is forgotten, and desc stays as it is. */
CG_API_ void cg_ef_reset(cg_ef *ef);
/* The vector CG_EF_ERROR, n floats inside mem, multiplied by cg_ef_scale() except for h; NULL with desc.bytes (use
   cg_ef_read). */
CG_API_ const float *cg_ef_residual(const cg_ef *ef);
/* out[0..n) := a vector of the state, as stored. CG_E_UNSUPPORTED: this kind does not have it. CG_E_MISMATCH: n is not
   desc.n. */
CG_API_ CG_CHECKED_ cg_status cg_ef_read(const cg_ef *ef, int which, float *out, size_t n);
/* The factor by which the residual is stored since the last step: 1, or 1/(1 + w) of an operator that expands. */
CG_API_ float cg_ef_scale(const cg_ef *ef);
CG_API_ cg_ef_stats cg_ef_stats_of(const cg_ef *ef);
CG_API_ cg_ef_stats cg_ef_last(const cg_ef *ef); /* as 0.1 called it */
/* How the last cg_ef_init, cg_ef_set_ratio, cg_ef_withdraw, cg_ef_agree or step (compress, commit, rollback, exchange)
   of *ef went: status, why, need and at; after cg_ef_init also if it was refused, and after an exchange its report
   without used. */
CG_API_ void cg_ef_report(const cg_ef *ef, cg_report *report);
/* The operator of the step with that tag, after rules, policy and warm-up; NULL: the tag is zero. */
CG_API_ cg_op cg_ef_op(const cg_ef *ef, const cg_tag *tag);

/* ---- a step in two halves, for those who move packets themselves ---- */

/* Compresses grad[0..n) and the residual into packet[0..*len). Succeeds if cap >= cg_ef_bound() and grad is finite;
   the step is then pending, and exactly one cg_ef_commit or cg_ef_rollback must follow. grad is not kept. CG_E_STATE:
   a step is pending already, and *len is left alone. CG_E_CAPACITY: cap is too small for the operator of this step.
   After any other error *len is 0. The state is as it was, except after an error of a codec of yours, which counts as a
   rollback (stats.kept is 1). cg_ef_report says more. */
CG_API_ CG_CHECKED_ cg_status cg_ef_compress(
    cg_ef *ef, const cg_tag *tag, const float *grad, void *packet, size_t cap, size_t *len);
/* The same with what the operator or kind needs beside: side->aux (VARIANCE: the variances of this step), support,
   codecs. */
CG_API_ CG_CHECKED_ cg_status cg_ef_compress_with(
    cg_ef *ef, const cg_tag *tag, const cg_extra *side, const float *grad, void *packet, size_t cap, size_t *len);
/* Ends the step: `used`, one packet or several that cover the vector from left to right, is this rank's contribution
   and is subtracted from the residual. mean is needed by EF21, DIANA, LAQ, ONEBIT_ADAM, FILTERED and DIFFERENCE, and
   ignored by the other kinds: n floats, the mean over ranks of the contributions; all of these but ONEBIT_ADAM
   overwrite it with the result. Kinds without a residual need no `used`: with NULL, stats.sent is 0. CG_E_STATE: no
   step is pending. After any other error nothing has changed, mean included, and the step is still
   pending. */
CG_API_ CG_CHECKED_ cg_status cg_ef_commit(cg_ef *ef, const void *used, size_t used_len, float *mean);
/* The same with side->support or side->codecs, where decoding `used` needs them. */
CG_API_ CG_CHECKED_ cg_status cg_ef_commit_with(
    cg_ef *ef, const cg_extra *side, const void *used, size_t used_len, float *mean);
/* Ends the step without a contribution: the gradient stays in the state; do not give it again. packet is not read and
   may be NULL. CG_E_STATE: no step is pending. */
CG_API_ CG_CHECKED_ cg_status cg_ef_rollback(cg_ef *ef, const void *packet, size_t len);

/* ---- a step by an exchange ---- */

/* Bytes of mem for cg_ef_exchange with this tag and route; 0: refused, or they overflow. Operators of other steps
   (warm-up, dense steps) may need more. */
CG_API_ size_t cg_ef_exchange_memory(const cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport);
/* A whole step: clips, adds momentum and residual, compresses, exchanges, and commits or rolls back. grad := the
   result. ef provides op, into, warm and carry of desc. If leader is CG_LEADER_BY_SCORE and score is 0, the score is
   the one of VAR: not a variance, but a running mean of the L2 norm of grad as given, before clipping, rate, momentum
   and residual (0.9 of the old score plus 0.1 of the norm; in the first step the norm). A step that fails counts. A
   dense step takes CG_ROUTE_AUTO in place of merge, shared and region, and LAQ takes allgather in place of
   CG_ROUTE_AUTO, and so do NONE, FILTERED and DIFFERENCE but in dense steps. With desc->model the step ends with
   model -= desc->rate * result, and grad is scratch; only EF21, DIANA, LAQ and ONEBIT_ADAM still leave the result
   there. M of ONEBIT_ADAM is not preconditioned: update the model
   yourself instead. mem: as for cg_exchange. After an error grad and model are as they were (one exception: see ERRORS
   above), and stats.kept tells whether the state has the gradient. */
CG_API_ CG_CHECKED_ cg_status cg_ef_exchange(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport,
    float *grad, void *mem, size_t bytes, cg_report *report);

/* Bytes of mem for cg_ef_exchange_layers; 0: refused, or they overflow. Writes n and the op, warm and carry of this
   step into layers[i], and clears layers[i].report. */
CG_API_ size_t cg_ef_layers_memory(
    cg_ef *const *efs, cg_layer *layers, size_t count, size_t small, const cg_transport *transport);
/* One step of several vectors, as cg_exchange_layers: layers[i].x is the gradient of efs[i] and receives its result,
   and layers[i].desc is as for cg_ef_exchange. All efs must differ. As cg_ef_layers_memory does, it writes n, op, warm
   and carry into layers[i]. If this rank refuses one gradient, no state changes; if another rank does, the states of
   this rank keep all gradients, as after a rollback. A layer that fails later is rolled back alone. */
CG_API_ CG_CHECKED_ cg_status cg_ef_exchange_layers(cg_ef *const *efs, cg_layer *layers, size_t count, size_t small,
    const cg_transport *transport, void *mem, size_t bytes, cg_report *report);

/* ---- when a step has failed, and its gradient goes another way ---- */

/* Takes the gradient of the last step out of the state again, after a cg_ef_exchange that failed (also one layer of
   cg_ef_exchange_layers) or a cg_ef_rollback: if you then average grad without compgrad, it would be counted twice;
   and if you want to repeat the step with the same gradient, withdraw it first. grad must be what that step was given.
   It sends nothing. The state is then what it was before the step: the residual e, u of MOMENTUM and SIGNUM and the
   running mean of EF21 with momentum, and the number of steps. EF21 without momentum, DIANA and LAQ have nothing of
   grad in their state.
   Not quite what it was: each value is off by rounding, at most 8 2^-24 times the magnitudes that were added up in the
   step, divided by decay (CLASSIC, ECQ) or by momentum (u); with desc.bytes by up to three roundings to 8 bits; a value
   that had grown too large for a float, or below 2^-100 was dropped, stays lost; a residual that desc.reset has just
   set to zero stays zero; with momentum 0, u becomes 0. Score, thresholds and cg_ef_moved stay as they are.
   CG_E_STATE: the last step was committed or is pending, its gradient was refused (stats.kept is 0) or has been
   withdrawn, or cg_ef_rescale, cg_ef_load or cg_ef_reset came in between. CG_E_ARG: VARIANCE needs
   cg_ef_withdraw_with. CG_E_NONFINITE: grad cannot be what was given. After an error nothing has changed, and
   cg_ef_report says more. */
CG_API_ CG_CHECKED_ cg_status cg_ef_withdraw(cg_ef *ef, const float *grad);
/* The same with side->aux, the variances that a step of VARIANCE was given. */
CG_API_ CG_CHECKED_ cg_status cg_ef_withdraw_with(cg_ef *ef, const cg_extra *side, const float *grad);

/* ---- when ranks have received different vectors ---- */

/* A hash of everything that was committed to H or M so far, the same on every machine; 0 before the first commit, and
   for kinds that have neither. cg_ef_exchange and cg_ef_exchange_layers compare it: if it is not equal on all ranks,
   because a step was committed on some of them only, all get CG_E_MISMATCH and the step is rolled back, in every step
   until ranks agree again. If you move packets yourself, send the mark along and compare it before you commit, or put
   it into cg_exchange_desc.common. */
CG_API_ uint64_t cg_ef_mark(const cg_ef *ef);
/* Bytes of mem for cg_ef_agree; 0: no message will be sent, or refused. */
CG_API_ size_t cg_ef_agree_memory(const cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport);
/* Makes H or M equal on all ranks, with equal marks. Every rank must call it. H of EF21, DIANA and LAQ becomes the mean
   over ranks of h, which is what it should be (with desc->fold CG_FOLD_SUM their sum, with desc->weight the weighted
   one) and so has all that any rank has sent; carries, which H lacked, become 0. M of ONEBIT_ADAM becomes the mean of
   all M. h, e and u stay as they are: no gradient is lost or counted twice. Of desc it takes tag, fold, weight and
   common, which must be as for cg_exchange; the tag may be any that is equal on all ranks. It sends uncompressed f32
   values, 4 n bytes as a dense step does. U of FILTERED and the base of DIFFERENCE become those of the rank that has
   seen most steps, the first of several; a rank that joins has seen none. Kinds that have received nothing have
   nothing to agree on: CG_OK, and no message. CG_E_STATE: a step is pending; the other ranks are told. After an error
   nothing has changed on this rank, and it may
   be called again, also by ranks where it has succeeded. mem, report: as for cg_exchange; report->used is NULL. */
CG_API_ CG_CHECKED_ cg_status cg_ef_agree(
    cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, void *mem, size_t bytes, cg_report *report);

/* DIFFERENCE and FILTERED: what was received (the base; U) := v, n finite floats, as if it had come in the last step.
   For a start at a model that all ranks know, which saves the first dense step, and for ranks that join over a wire of
   their own. All ranks must set the same bits; the mark begins anew. CG_E_STATE: a step is pending. */
CG_API_ CG_CHECKED_ cg_status cg_ef_set_received(cg_ef *ef, const float *v, size_t n);

/* ---- changes between two steps: CG_E_STATE while a step is pending ---- */

/* Multiplies residual and carry by factor. If the learning rate is applied after the exchange, call it with old rate /
   new rate when that changes. CG_E_UNSUPPORTED: SIGNUM, EF21, DIANA and LAQ have no residual. */
CG_API_ CG_CHECKED_ cg_status cg_ef_rescale(cg_ef *ef, float factor);
/* Sets desc.rate: finite and not 0. */
CG_API_ CG_CHECKED_ cg_status cg_ef_set_rate(cg_ef *ef, float rate);
/* Sets the ratio of desc.op. CG_E_UNSUPPORTED: it has none. CG_E_MEMORY: it needs more scratch than cg_ef_init was
   given; ratios up to the one in desc do not. */
CG_API_ CG_CHECKED_ cg_status cg_ef_set_ratio(cg_ef *ef, float ratio);
/* LAQ, after every update of the model: squared = |model after - model before|^2. May be called at any time. */
CG_API_ CG_CHECKED_ cg_status cg_ef_moved(cg_ef *ef, double squared);

/* ---- saving ---- */

/* Bytes that cg_ef_save writes. */
CG_API_ size_t cg_ef_save_bytes(const cg_ef *ef);
/* Writes the state to buf[0..*len). CG_E_STATE: a step is pending. */
CG_API_ CG_CHECKED_ cg_status cg_ef_save(const cg_ef *ef, void *buf, size_t cap, size_t *len);
/* Restores a saved state into an initialised *ef. buf may be any bytes. CG_E_MISMATCH: kind, n, operator or carry
   differ from those of *ef. After an error *ef is as it was. */
CG_API_ CG_CHECKED_ cg_status cg_ef_load(cg_ef *ef, const void *buf, size_t len);
/* Restores the mean of `count` saved states, for another number of ranks; carries become part of the residual. Errors
   as cg_ef_load. */
CG_API_ CG_CHECKED_ cg_status cg_ef_load_mean(cg_ef *ef, const void *const *bufs, const size_t *lens, size_t count);

/* out := momentum / (sqrt(variance) + epsilon), and 0 where the variance is 0, because an operator of one bit cannot
   send a zero. out may be momentum. Returns |out|, for the trust ratio of LAMB. */
CG_API_ double cg_ef_precondition(const float *momentum, const float *variance, float epsilon, float *out, size_t n);

/* ---- differences of models, for those who have a wire of their own ----
   The state is the base, the model that all ranks had after the last exchange. A step is compress, your wire, apply.
   Exchanges over a cg_transport need none of this: CG_EF_DIFFERENCE and cg_ef_exchange. */

typedef struct cg_diff {
    cg_ef ef;
} cg_diff;
/* Bytes of mem; 0: op is refused (cg_diff_init says why, in cg_ef_report(&diff->ef)), or they overflow. */
CG_API_ size_t cg_diff_memory(const cg_op *op, size_t n);
/* op: unbiased. base: n floats, the same bits on all ranks; it is copied. lambda: base += lambda mean D, 0 = 1,
   CG_LAMBDA_SQRT the square root of workers. Errors as those of cg_ef_init. */
CG_API_ CG_CHECKED_ cg_status cg_diff_init(
    cg_diff *diff, const cg_op *op, size_t n, float lambda, int workers, const float *base, void *mem, size_t bytes);
/* Writes model - base as a packet; cap: cg_bound(op, n). tag as for cg_compress, another step every time. */
CG_API_ CG_CHECKED_ cg_status cg_diff_compress(
    cg_diff *diff, const cg_tag *tag, const float *model, void *packet, size_t cap, size_t *len);
/* mean: of all ranks' packets decoded, with the same bits on all ranks; it becomes base + lambda mean, the new base and
   the model of all. A rank that has not moved sends nothing and counts as zeros; it calls this all the same.
   CG_E_NONFINITE: nothing has changed, and the packet may be made again. */
CG_API_ CG_CHECKED_ cg_status cg_diff_apply(cg_diff *diff, float *mean, size_t n);
CG_API_ void cg_diff_cancel(cg_diff *diff); /* instead of apply: the exchange has failed, and the base stays */
CG_API_ const float *cg_diff_base(const cg_diff *diff);
CG_API_ uint64_t cg_diff_mark(const cg_diff *diff); /* send it along: where marks differ, bases do */
CG_API_ size_t cg_diff_save_bytes(const cg_diff *diff);
CG_API_ CG_CHECKED_ cg_status cg_diff_save(const cg_diff *diff, void *buf, size_t cap, size_t *len);
/* A rank that joins loads what another has saved. */
CG_API_ CG_CHECKED_ cg_status cg_diff_load(cg_diff *diff, const void *buf, size_t len);

#endif /* COMPGRAD_EF_H */
