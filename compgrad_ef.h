/* compgrad_ef.h: made of the files in src/ by "make headers"; change those, not this one. */

/* src/ef/manual.h */
/* compgrad_ef.h - what a worker remembers between steps.                        part of compgrad, MIT licence

       #define COMPGRAD_IMPLEMENTATION                  // in exactly one .c or .cpp file
       #include "compgrad_ef.h"                         // brings compgrad_exchange.h and compgrad.h with it

       cg_ef_desc d = CG_ZERO;                          // zero = classic error feedback
       d.op = cg_topk(0.01f);
       d.n = n;
       void *memory = malloc(cg_ef_memory(&d));         // lives as long as training does
       cg_ef ef;
       cg_status s = cg_ef_init(&ef, &d, memory, cg_ef_memory(&d));

       cg_exchange_desc x = CG_ZERO;                    // the road; the operator is ef's
       x.tag.seed = 42; x.tag.step = step;
       size_t bytes = cg_ef_exchange_memory(&ef, &x, &transport);
       s = cg_ef_exchange(&ef, &x, &transport, grad, mem, bytes, &report);      // grad := what the optimizer should use

   An operator that keeps 1 % of a gradient loses the rest, and training with it stalls. Error feedback adds what was not sent to
   the next gradient. With a wire of your own, the same in pieces; nothing is forgotten before you say what became of the packet:

       s = cg_ef_compress(&ef, &tag, grad, packet, cap, &len);                  // cap: cg_ef_bound(&d)
       // ... send it; then exactly one of
       s = cg_ef_commit(&ef, packet, len, NULL);        // it counted (or the packet that did: cg_report.used)
       s = cg_ef_rollback(&ef, packet, len);            // it did not: the gradient stays in memory, and goes with the next one

   KINDS, with g the gradient (after clipping, times desc.rate), p what is compressed, D what counted, and what holds after every
   step. A rollback is a step with D = 0 (ONEBIT_ADAM: e = e + (1 - momentum) g), so nothing is lost; do not give the same
   gradient again.

     CLASSIC      p = g + decay e              e = p - D                       e + sum of D = sum of g, if decay = 1 (its default)
                  EF-SGD, EF-signSGD (Karimireddy 19), MEM-SGD (Stich 18: desc.rate = learning rate), PowerSGD (Vogels 19: a
                  low-rank operator; exchanged, e is against the mean), SparseLoCo (decay .95, chunked:C:r|absmax:2:B:nearest), DeMo (decay .999, demo:r)
     LOCO         p = g + e                    e = e + (1 - decay) (g - D)     e = (1 - decay) sum of (g - D) since the last reset
                  (Xie 25) decay .8 by default; desc.reset forgets
     SCALECOM     p = g + e                    e = e + decay (g - D)           e = decay sum of (g - D); decay .1 (Chen 20)
     ECQ          p = g + alpha e              e = decay e + g - D             e = sum of decay^age (g - D); alpha .2, decay .9 (Wu 18)
     MOMENTUM     u = momentum u + g           v = p - D, and u = 0 where      v + sum of D = sum of u (in p)
                  p = v + u                    sent, if not all is             DGC (Lin 18); nesterov: u = momentum (u + g), p = v + u + g
     SIGNUM       m = momentum m + (1 - momentum) g                            p = m, nothing is subtracted (Bernstein 18)
     VARIANCE     r = r + g, v = v + side.aux  r = p - D; v = 0 where sent,    r + sum of D = sum of g (Tsuzuku 18; op: variance:a)
                  p = r                        elsewhere v = decay v           decay .999
     EF21         p = g - h                    h = h + D                       h = sum of D; mean of all h = H
                  result H = H + mean of D     (Richtarik 21); with momentum: of a running mean of g (EF21-SGDM, Fatkhullin 23)
     DIANA        p = g - h                    h = h + alpha D                 mean of all h = H; alpha 1/(1+w) by default
                  result H + mean D            H = H + alpha mean of D         (Mishchenko 19)
     LAQ          EF21 on a grid of +-max|p| (op: minmax:b:n:nearest, one bucket), and silent (an empty packet) unless it pays, but
                  for the first step (Sun 19): tell how far the model moved with cg_ef_moved
     ONEBIT_ADAM  p = momentum M + (1 - momentum) g + e     e = p - D          M = result. 1-bit Adam and LAMB (Tang 21) after
                  their warm-up, with the variance frozen; update by cg_ef_precondition

   Memory times a factor other than 1 (momentum, decay, ECQ's alpha, a change of scale) counts as 0 below 2^-100: what is not fed any more
   would otherwise end in denormals, which are slow, and stay there. Times 1 nothing is lost, nor in p = g - h; what LOCO, SCALECOM and
   DIANA remember only what is sent makes smaller, and it does not fade. (v of VARIANCE is a square: of gradients below 2^-50.)
   EF21, DIANA, LAQ and ONEBIT_ADAM remember what was received, too: commit needs the mean over ranks of D, and for the first
   three makes the result of it.
   An operator that expands (random-k times n/k, QSGD of few levels, TernGrad: error above |x|^2) would make memory grow without
   bound. Random-k and PermK are used unscaled, and others are divided by 1 + w: memory (but h) is then kept divided, too, by
   cg_ef_scale(). DIANA takes them as they are.

   MEMORY. One float per element; two for MOMENTUM, VARIANCE, EF21, DIANA, LAQ and ONEBIT_ADAM, three for EF21 with momentum;
   desc.bytes: CLASSIC, LOCO, SCALECOM and ECQ in one byte (and 1/32) per element. Beside that only what the operator needs as
   scratch: for a selection a list of about 2 k. Kinds whose p is stored nowhere (all but CLASSIC, MOMENTUM, SIGNUM, VARIANCE and
   ONEBIT_ADAM, or with bytes) make it chunk by chunk; with a selection other than top-k or with a matrix they need room for n
   floats more.
   With a byte, both compress and commit round, each by at most 1/250 of the largest of 64 neighbours (commit of a selection: at
   most twice).

   ERRORS. If compress returns an error memory is as it was and the gradient is not in it; only if a codec of yours fails it is
   there, as after a rollback. cg_ef_exchange returns an error with grad as it was (but for a sum over ranks that is no float any more,
   where EF21 and its kin find Inf in the result), and the gradient in memory if it was put there (cg_ef_stats.kept). NaN and Inf in grad are refused; desc.finite says that you have looked (and that nothing is above 1e37), which
   saves a pass. Sums too large for a float become the largest. After a commit that failed (a corrupt packet) commit or roll back.

   SAVING. cg_ef_save writes everything that the next step depends on but desc, the same bytes on every machine; cg_ef_load takes it
   back. cg_ef_load_mean gives a rank the mean of the blobs of N ranks (carries become part of the error): so N go on as M, and
   the mean over ranks of what is pending stays what it was. */

/* src/ef/api.h */
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

/* src/ef/begin.h */
/* ============================================================================================== */
#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_EF_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_EF_IMPLEMENTED_

/* src/core/base/fp_begin.h */
/* Bits must not depend on the includer's flags: no contraction, no reassociation, no fast math, between
   here and the end of this file, and nothing of it leaks into the includer's own code. */
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

/* src/ef/kinds.h */
/* ---- >>kinds: a row each ---- */

enum {
    CG_EF_IN_PLACE_ = 1 /* p takes the error's place */,
    CG_EF_HAS_VELOCITY_ = 2 /* a second vector */,
    CG_EF_KEEPS_RECEIVED_ = 4 /* remembers results */,
    CG_EF_DIFFERENCE_ = 8 /* p = g - h */,
    CG_EF_ALLOWS_8BIT_ = 16 /* may be kept in 8 bits */,
    CG_EF_TAKES_MOMENTUM_ = 32 /* a momentum */
};
typedef struct cg_ef_row_ {
    uint8_t flags;
    float decay;
} cg_ef_row_;
static const cg_ef_row_ cg_ef_rows_[] = {
    /* by cg_ef_kind */
    { CG_EF_IN_PLACE_ | CG_EF_ALLOWS_8BIT_, 1.0f },
    { CG_EF_ALLOWS_8BIT_, 0.8f },
    { CG_EF_ALLOWS_8BIT_, 0.1f },
    { CG_EF_ALLOWS_8BIT_, 0.9f },
    { CG_EF_IN_PLACE_ | CG_EF_HAS_VELOCITY_ | CG_EF_TAKES_MOMENTUM_, 1.0f },
    { CG_EF_IN_PLACE_ | CG_EF_TAKES_MOMENTUM_, 1.0f },
    { CG_EF_IN_PLACE_ | CG_EF_HAS_VELOCITY_, 0.999f },
    { CG_EF_DIFFERENCE_ | CG_EF_KEEPS_RECEIVED_, 1.0f },
    { CG_EF_DIFFERENCE_ | CG_EF_KEEPS_RECEIVED_, 1.0f },
    { CG_EF_DIFFERENCE_ | CG_EF_KEEPS_RECEIVED_, 1.0f },
    { CG_EF_IN_PLACE_ | CG_EF_KEEPS_RECEIVED_ | CG_EF_TAKES_MOMENTUM_, 1.0f },
};
#define CG_EF_MAGIC_ 0x66656763u /* "cgef" */
#define CG_EF_HUGE_ 1e37f        /* from here on sums are watched */
enum { CG_EF_BUCKET_ = 64, CG_EF_MAX_STAGES_ = 4096, CG_EF_HEADER_BYTES_ = 256, CG_EF_VERSION_ = 1 };

static const cg_ef_row_ *cg_ef_row_of_(const cg_ef_desc *d) { return &cg_ef_rows_[d->kind]; }
static int cg_ef_has_trait_(const cg_ef_desc *d, int what) { return (cg_ef_row_of_(d)->flags & what) != 0; }
static int cg_ef_has_velocity_(const cg_ef_desc *d) {
    return cg_ef_has_trait_(d, CG_EF_HAS_VELOCITY_) || (d->kind == CG_EF_EF21 && d->momentum != 0.0f);
}
static int cg_ef_in_place_(const cg_ef_desc *d) { return cg_ef_has_trait_(d, CG_EF_IN_PLACE_) && !d->bytes; }
static float cg_ef_decay_(const cg_ef_desc *d) { return d->decay != 0.0f ? d->decay : cg_ef_row_of_(d)->decay; }

/* src/ef/omega.h */
/* ---- >>omega: how much an unbiased operator may add, E|C(x) - x|^2 <= w |x|^2; 0 for others ---- */

static double cg_min_f64_(double a, double b) { return a < b ? a : b; }
static double cg_omega_quantize_(const cg_stage *q, double k) {
    const double bucket = q->size && (double)q->size < k ? (double)q->size : k, root = cg_sqrt_(bucket),
                 s = (double)q->arg;
    const double levels = q->id == CG_QUANTIZE_LEVELS ? s : (double)((1 << (q->arg & 15)) - 1);
    double least = 1.0;
    if (q->flags & CG_FLAG_NEAREST) return 0.0;
    switch (q->id) {
    case CG_QUANTIZE_ABSMAX:
        if (q->arg == 1) return bucket;
        return q->arg == 2 ? (root - 1.0) / 2.0
                           : bucket / (4.0 * ((double)(1 << (q->arg - 1)) - 1.0) * ((double)(1 << (q->arg - 1)) - 1.0));
    case CG_QUANTIZE_MINMAX: return bucket / (2.0 * levels * levels);
    case CG_QUANTIZE_LEVELS:
        if (!(q->flags & CG_FLAG_MAX)) return cg_min_f64_(bucket / (s * s), root / s);
        return q->arg == 1 ? (root - 1.0) / 2.0 : bucket / (4.0 * s * s);
    case CG_QUANTIZE_TERNGRAD: return q->flags & CG_FLAG_CLIP ? 0.0 : (root - 1.0) / 2.0;
    case CG_QUANTIZE_DITHER:
        for (int i = 2; i < 1 << (q->arg - 1); i++) least *= 0.5;
        return 0.125 + root * least;
    case CG_QUANTIZE_NATURAL: return 0.125;
    case CG_QUANTIZE_LLOYD: return q->value < 2.0f ? 0.571 : q->value < 3.0f ? 0.133 : 0.036;
    default: return 0.0;
    }
}
static double cg_omega_(const cg_op *op, size_t n) {
    double grows = 1.0;
    uint64_t drawn = cg_sampled_n_(op, n, NULL), turned = cg_transformed_n_(op, drawn);
    if (!n || !turned) return 0.0;
    if (op->sample.id && !(op->sample.flags & CG_FLAG_UNSCALED))
        grows *= op->sample.id == CG_SAMPLE_PERMK ? (double)op->sample.size : (double)n / (double)drawn;
    if (op->transform.id == CG_TRANSFORM_ATOMO) {
        const double rows = (double)cg_matrix_rows_(op), cols = (double)cg_matrix_cols_(op),
                     least = cg_min_f64_(rows, cols) / (double)cg_matrix_r_(op);
        grows *= least > 1.0 ? least : 1.0;
    }
    if (op->select.id == CG_SELECT_WANGNI) grows *= 1.0 / (double)op->select.value;
    if (op->select.id == CG_SELECT_WANGNIVAR) grows *= 1.0 + (double)op->select.value;
    return grows * (1.0 + cg_omega_quantize_(&op->quantize, (double)cg_max_selected_(op, turned))) - 1.0;
}
/* No value is off by as much as the largest of its bucket: then memory cannot grow, whatever w is. */
static int cg_quantizer_is_contractive_(const cg_stage *q, int turned) {
    const unsigned least = turned ? 3 : 2; /* bits; rotated, in the mean of squares */
    if (q->id == CG_QUANTIZE_ABSMAX) return q->arg >= 3;
    if (q->id == CG_QUANTIZE_MINMAX) return q->arg >= least && !(q->flags & CG_FLAG_NORM);
    return q->id == CG_QUANTIZE_LEVELS && (q->flags & CG_FLAG_MAX) && q->arg >= 2;
}
/* What memory, and what is compressed, is multiplied by. */
static float cg_ef_scale_(const cg_ef_desc *d, const cg_op *op) {
    cg_op rest = *op;
    double w;
    if (d->kind == CG_EF_DIANA || d->kind == CG_EF_SIGNUM) return 1.0f;
    if (cg_quantizer_is_contractive_(&op->quantize, op->transform.id != 0))
        memset(&rest.quantize, 0, sizeof rest.quantize);
    w = cg_omega_(&rest, d->n);
    return w < 1.0 ? 1.0f : (float)(1.0 / (1.0 + w));
}

/* src/ef/schedule.h */
/* ---- >>schedule: the operator of a step ---- */

/* e^x, x <= 0: halved until the series is short, then squared back. */
static double cg_exp_(double x) {
    double sum = 1.0, term = 1.0;
    int halves = 0;
    if (x < -700.0) return 0.0;
    for (; x < -0.5; x *= 0.5) halves++;
    for (int i = 1; i <= 18; i++) {
        term *= x / (double)i;
        CG_NO_FMA_(term);
        sum += term;
    }
    for (; halves > 0; halves--) sum *= sum;
    return sum;
}
static float cg_warmup_ratio_(const cg_warmup *w, float ratio, uint64_t step) {
    const uint64_t stage = step / (w->period ? w->period : 1);
    double part, quarter = 1.0;
    if (w->kind == CG_WARMUP_NONE || stage >= w->stages || !(ratio > 0.0f)) return ratio;
    part = (double)(stage + 1) / ((double)w->stages + 1.0);
    switch (w->kind) {
    case CG_WARMUP_POWER: return (float)cg_exp_(part * cg_ln_((double)ratio));
    case CG_WARMUP_QUARTERS:
        for (uint64_t i = 0; i <= stage && quarter > (double)ratio; i++) quarter *= 0.25;
        return quarter > (double)ratio ? (float)quarter : ratio;
    case CG_WARMUP_LINEAR: return (float)(1.0 - cg_times64_(part, 1.0 - (double)ratio));
    default: return w->table[stage];
    }
}
CG_API_ float cg_warmup_ratio(const cg_warmup *warmup, float ratio, uint64_t step) {
    const cg_fenv_ env = cg_fenv_enter_();
    const float r =
        !warmup || (warmup->kind == CG_WARMUP_TABLE && !warmup->table) ? ratio : cg_warmup_ratio_(warmup, ratio, step);
    cg_fenv_leave_(env);
    return r;
}
/* The stage whose value is the ratio kept, or NULL. */
static cg_stage *cg_op_ratio_stage_(cg_op *op) {
    switch (op->select.id) {
    case CG_SELECT_TOPK:
    case CG_SELECT_DGC:
    case CG_SELECT_MSTOPK:
    case CG_SELECT_SIDCO:
    case CG_SELECT_WANGNI:
    case CG_SELECT_SIDES:
    case CG_SELECT_SIDE:
    case CG_SELECT_CHUNKED: return &op->select;
    default: return op->sample.id == CG_SAMPLE_RANDK ? &op->sample : NULL;
    }
}
static void cg_op_set_ratio_(cg_op *op, float ratio) {
    cg_stage *s = cg_op_ratio_stage_(op);
    if (!s) return;
    s->value = ratio;
    op->k = 0;
}
static float cg_op_effective_ratio_(const cg_op *op, size_t n) {
    cg_op copy = *op;
    const cg_stage *s = cg_op_ratio_stage_(&copy);
    return !s ? 1.0f : op->k && n ? (float)((double)cg_k_from_ratio_(0.0f, op->k, n) / (double)n) : s->value;
}
static cg_op cg_ef_warmup_op_(const cg_ef_desc *d, cg_op op, uint64_t step) {
    const float before = cg_op_effective_ratio_(&op, d->n), after = cg_warmup_ratio_(&d->warmup, before, step);
    if (after != before) cg_op_set_ratio_(&op, after);
    return op;
}
static cg_op cg_ef_op_(const cg_ef_desc *d, const cg_tag *tag) {
    const cg_tag none = CG_ZERO;
    cg_op op = d->op;
    if (!tag) tag = &none;
    if (d->n < d->small || tag->step < d->dense_steps) return cg_dense();
    for (size_t i = 0; i < d->rule_count; i++)
        if (tag->tensor >= d->rules[i].first && tag->tensor <= d->rules[i].last && d->n >= d->rules[i].n_from) {
            op = d->rules[i].op;
            break;
        }
    if (d->policy) op = d->policy(d->policy_user, tag, d->n, op);
    op = cg_ef_warmup_op_(d, op, tag->step - d->dense_steps);
    if (op.sample.id && d->kind != CG_EF_DIANA && d->kind != CG_EF_SIGNUM) op = cg_unscaled(op);
    return op;
}

/* src/ef/plan.h */
/* ---- >>plan ---- */

/* Must a stage see all of p at once, with no scratch of its own for it? */
static int cg_ef_needs_whole_vector_(const cg_op *op) {
    if (cg_is_matrix_op_(op)) return 1;
    return !op->sample.id && !op->transform.id &&
        (op->select.id ? op->select.id != CG_SELECT_TOPK : cg_is_user_codec_(&op->quantize));
}
typedef struct cg_ef_needs_ {
    uint64_t scratch_bytes, packet_bytes;
    size_t warm_count;
    int whole_vector;
} cg_ef_needs_;
static cg_status cg_ef_needs_of_op_(const cg_ef_desc *d, cg_op op, cg_ef_needs_ *needs) {
    const uint64_t bytes = cg_op_check_(&op) == CG_OK ? cg_scratch_bytes_(&op, d->n) : 0;
    /* a user's codec is not at hand here */
    const uint64_t most = cg_is_user_codec_(&op.quantize) ? 1 : cg_bound_(&op, NULL, d->n);
    const cg_op dense = cg_dense();
    if (cg_op_check_(&op) != CG_OK || !most) return CG_E_ARG;
    if (op.select.id == CG_SELECT_BINS && (d->clip != 0.0f || (d->rate != 0.0f && d->rate != 1.0f)))
        return CG_E_UNSUPPORTED;
    if ((op.select.id == CG_SELECT_VARIANCE) != (d->kind == CG_EF_VARIANCE) && !cg_same_op_(&op, &dense))
        return CG_E_UNSUPPORTED;
    if (bytes > needs->scratch_bytes) needs->scratch_bytes = bytes;
    if (most > needs->packet_bytes) needs->packet_bytes = most;
    if (cg_ef_needs_whole_vector_(&op) && !cg_ef_in_place_(d)) needs->whole_vector = 1;
    if (op.transform.id == CG_TRANSFORM_LOWRANK && cg_matrix_cols_(&op) * cg_matrix_r_(&op) > needs->warm_count)
        needs->warm_count = cg_matrix_cols_(&op) * cg_matrix_r_(&op);
    return CG_OK;
}
/* An operator, at all ratios that warm-up gives it. */
static cg_status cg_ef_needs_of_schedule_(const cg_ef_desc *d, const cg_op *op, cg_ef_needs_ *needs) {
    cg_status s = cg_ef_needs_of_op_(d, *op, needs);
    for (uint32_t i = 0; i < d->warmup.stages && s == CG_OK && d->warmup.kind; i++)
        s = cg_ef_needs_of_op_(d, cg_ef_warmup_op_(d, *op, i * (d->warmup.period ? d->warmup.period : 1)), needs);
    return s;
}
static int cg_ef_is_fraction_(float f) { return f >= 0.0f && f <= 1.0f; }
static cg_status cg_ef_check_(const cg_ef_desc *d, cg_ef_needs_ *needs) {
    cg_status s;
    memset(needs, 0, sizeof *needs);
    if (!d || d->kind > CG_EF_ONEBIT_ADAM || d->workers < 0 || d->clip_by > CG_CLIP_VALUE ||
        d->warmup.kind > CG_WARMUP_TABLE)
        return CG_E_ARG;
    if (!cg_ef_is_fraction_(d->momentum) || d->momentum == 1.0f || !cg_ef_is_fraction_(d->decay) ||
        !cg_ef_is_fraction_(d->alpha))
        return CG_E_ARG;
    if (!(d->clip >= 0.0f && d->clip <= CG_FLT_MAX_) || !cg_is_finite_(d->rate) ||
        !(d->laq_step >= 0.0f && d->laq_step <= CG_FLT_MAX_))
        return CG_E_ARG;
    if (!(d->laq_weight >= 0.0f && d->laq_weight <= CG_FLT_MAX_)) return CG_E_ARG;
    if ((d->rule_count && !d->rules) || d->warmup.stages > CG_EF_MAX_STAGES_) return CG_E_ARG;
    if (d->warmup.kind == CG_WARMUP_TABLE && d->warmup.stages && !d->warmup.table) return CG_E_ARG;
    if (d->momentum != 0.0f && !cg_ef_has_trait_(d, CG_EF_TAKES_MOMENTUM_) && d->kind != CG_EF_EF21)
        return CG_E_UNSUPPORTED;
    if ((d->nesterov && d->kind != CG_EF_MOMENTUM) || (d->bytes && !cg_ef_has_trait_(d, CG_EF_ALLOWS_8BIT_)))
        return CG_E_UNSUPPORTED;
    /* that is no error */
    if (d->reset && (cg_ef_has_trait_(d, CG_EF_DIFFERENCE_) || d->kind == CG_EF_SIGNUM)) return CG_E_UNSUPPORTED;
    if (d->kind == CG_EF_LAQ && d->laq_step == 0.0f) return CG_E_ARG;
    s = cg_ef_needs_of_schedule_(d, &d->op, needs);
    for (size_t i = 0; i < d->rule_count && s == CG_OK; i++) s = cg_ef_needs_of_schedule_(d, &d->rules[i].op, needs);
    if (s == CG_OK && (d->dense_steps || d->n < d->small)) s = cg_ef_needs_of_op_(d, cg_dense(), needs);
    return s;
}
/* Places, and the sum of them. */
static uint64_t cg_ef_plan_(cg_ef *ef, const cg_ef_desc *d, const cg_ef_needs_ *needs, uint8_t *base) {
    const uint64_t vector = cg_mul_sat_(4, d->n);
    cg_arena_ c;
    c.base = base;
    c.bytes = 0;
    ef->vector[0] = d->bytes ? NULL : (float *)(void *)cg_arena_take_(&c, vector);
    ef->bytes = d->bytes
        ? cg_arena_take_(&c, cg_add_sat_(d->n, cg_mul_sat_(2, cg_add_sat_(d->n, CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_)))
        : NULL;
    ef->vector[1] = cg_ef_has_velocity_(d) ? (float *)(void *)cg_arena_take_(&c, vector) : NULL;
    ef->vector[2] = cg_ef_has_trait_(d, CG_EF_KEEPS_RECEIVED_) ? (float *)(void *)cg_arena_take_(&c, vector) : NULL;
    ef->warm = needs->warm_count ? (float *)(void *)cg_arena_take_(&c, cg_mul_sat_(4, needs->warm_count)) : NULL;
    ef->carry = d->carry ? (float *)(void *)cg_arena_take_(&c, cg_mul_sat_(4, d->carry)) : NULL;
    ef->whole = needs->whole_vector ? (float *)(void *)cg_arena_take_(&c, vector) : NULL;
    ef->scratch = needs->scratch_bytes ? cg_arena_take_(&c, needs->scratch_bytes) : NULL;
    ef->warm_count = needs->warm_count;
    ef->scratch_bytes = cg_size_or_zero_(needs->scratch_bytes);
    return c.bytes;
}
CG_API_ size_t cg_ef_memory(const cg_ef_desc *desc) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_ef_needs_ needs;
    cg_ef ef;
    size_t bytes = 0;
    if (cg_ef_check_(desc, &needs) == CG_OK)
        bytes = cg_size_or_zero_(cg_add_sat_(cg_ef_plan_(&ef, desc, &needs, NULL), 64));
    cg_fenv_leave_(env);
    return bytes;
}
CG_API_ size_t cg_ef_bound(const cg_ef_desc *desc) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_ef_needs_ needs;
    const size_t bytes = cg_ef_check_(desc, &needs) == CG_OK ? cg_size_or_zero_(needs.packet_bytes) : 0;
    cg_fenv_leave_(env);
    return bytes;
}
CG_API_ void cg_ef_reset(cg_ef *ef) {
    const size_t n = ef->desc.n;
    for (int i = 0; i < 3; i++)
        if (ef->vector[i]) memset(ef->vector[i], 0, 4 * n);
    if (ef->bytes) memset(ef->bytes, 0, n + 2 * ((n + CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_));
    if (ef->warm) memset(ef->warm, 0, 4 * ef->warm_count);
    if (ef->carry) memset(ef->carry, 0, 4 * ef->desc.carry);
    memset(&ef->stats, 0, sizeof ef->stats);
    memset(ef->moved, 0, sizeof ef->moved);
    ef->steps = ef->silent = ef->moves = 0;
    ef->pending = 0;
    ef->scale = 1.0f;
    ef->hint = ef->threshold = 0.0f;
    ef->reach = ef->size = ef->error = ef->error_sent = ef->score = 0.0;
    ef->carry_first = 0;
}
CG_API_ cg_status cg_ef_init(cg_ef *ef, const cg_ef_desc *desc, void *mem, size_t bytes) {
    const cg_fenv_ env = cg_fenv_enter_();
    const size_t skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    cg_ef_needs_ needs;
    uint64_t need = 0;
    cg_status s = !ef ? CG_E_ARG : cg_ef_check_(desc, &needs);
    if (s == CG_OK) {
        memset(ef, 0, sizeof *ef);
        need = cg_ef_plan_(ef, desc, &needs, NULL);
        if (need > SIZE_MAX / 2) s = CG_E_ARG;
        else if (need && (!mem || bytes < skip || bytes - skip < need)) s = CG_E_MEMORY;
    }
    if (s == CG_OK) {
        ef->desc = *desc;
        /* vectors of no values are somewhere, too */
        cg_ef_plan_(ef, desc, &needs, need ? (uint8_t *)mem + skip : (uint8_t *)ef->moved);
        cg_ef_reset(ef);
    }
    cg_fenv_leave_(env);
    return s;
}
CG_API_ float cg_ef_scale(const cg_ef *ef) { return ef->scale; }
CG_API_ cg_ef_stats cg_ef_stats_of(const cg_ef *ef) { return ef->stats; }
CG_API_ cg_ef_stats cg_ef_last(const cg_ef *ef) { return cg_ef_stats_of(ef); }
CG_API_ const float *cg_ef_residual(const cg_ef *ef) { return ef->vector[0]; }
CG_API_ cg_op cg_ef_op(const cg_ef *ef, const cg_tag *tag) {
    const cg_fenv_ env = cg_fenv_enter_();
    const cg_op op = cg_ef_op_(&ef->desc, tag);
    cg_fenv_leave_(env);
    return op;
}

/* src/ef/bytes.h */
/* ---- >>bytes in memory: 64 values share a scale, the upper half of a float, rounded up ---- */

static const cg_stage cg_residual8_stage_ = { CG_QUANTIZE_ABSMAX, CG_FLAG_NEAREST, 8, CG_EF_BUCKET_, 0.0f };
static uint8_t *cg_residual8_scale_at_(const cg_ef *ef, size_t bucket) { return ef->bytes + ef->desc.n + 2 * bucket; }
static float cg_residual8_scale_get_(const uint8_t *at) {
    return cg_as_float_((uint32_t)at[0] << 16 | (uint32_t)at[1] << 24);
}
static void cg_residual8_decode_(const cg_kernels_ *kernels, const cg_ef *ef, size_t bucket, float *out) {
    const size_t first = bucket * CG_EF_BUCKET_, many = cg_min_(CG_EF_BUCKET_, ef->desc.n - first);
    const float scale = cg_residual8_scale_get_(cg_residual8_scale_at_(ef, bucket));
    cg_quantizer_of_(&cg_residual8_stage_)
        ->decode(kernels, &cg_residual8_stage_, &scale, ef->bytes + first, many, out, 0);
}
static void cg_residual8_encode_(const cg_kernels_ *kernels, const cg_ef *ef, size_t bucket, const float *v) {
    const size_t first = bucket * CG_EF_BUCKET_, many = cg_min_(CG_EF_BUCKET_, ef->desc.n - first);
    const cg_key_ none = cg_block_key_(0, 0);
    uint8_t *at = cg_residual8_scale_at_(ef, bucket);
    const uint32_t top = (kernels->absmax_bits(v, many) + 0xffffu) >> 16, half = top > 0x7f7fu ? 0x7f7fu : top;
    const float scale = cg_as_float_(half << 16);
    at[0] = (uint8_t)half;
    at[1] = (uint8_t)(half >> 8);
    cg_quantizer_of_(&cg_residual8_stage_)
        ->encode(kernels, &cg_residual8_stage_, &scale, none, 0, v, many, ef->bytes + first, NULL);
}
/* e = by v + keep e, for [first, first + many) of it; any stretch. */
static void cg_residual8_axpby_(const cg_ef *ef, size_t first, size_t many, float by, const float *v, float keep) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    float e[CG_EF_BUCKET_];
    for (size_t i = first, some; i < first + many; i += some) {
        const size_t bucket = i / CG_EF_BUCKET_, at = i % CG_EF_BUCKET_;
        some = cg_min_(CG_EF_BUCKET_ - at, first + many - i);
        cg_residual8_decode_(kernels, ef, bucket, e);
        kernels->axpby_fading(cg_at_(v, i - first), some, by, keep, e + at, CG_AXPBY_NO_SQUARES_, NULL);
        for (size_t j = at; j < at + some; j++) e[j] = cg_saturate_(e[j]);
        cg_residual8_encode_(kernels, ef, bucket, e);
    }
}
/* e = e + by v at ascending places: what lies in one bucket is rounded once. */
static void cg_residual8_add_sparse_(
    const cg_ef *ef, size_t base, const uint64_t *at, size_t many, float by, const float *v) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    float e[CG_EF_BUCKET_];
    for (size_t i = 0; i < many;) {
        const size_t bucket = (base + (size_t)at[i]) / CG_EF_BUCKET_;
        cg_residual8_decode_(kernels, ef, bucket, e);
        for (; i < many && (base + (size_t)at[i]) / CG_EF_BUCKET_ == bucket; i++) {
            float *to = e + (base + (size_t)at[i]) % CG_EF_BUCKET_;
            *to = cg_saturate_(cg_plus_(*to, cg_times_(by, v[i])));
        }
        cg_residual8_encode_(kernels, ef, bucket, e);
    }
}
static void cg_residual8_read_(const cg_ef *ef, size_t first, size_t many, float *out) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    float e[CG_EF_BUCKET_];
    for (size_t i = first, some; i < first + many; i += some) {
        const size_t at = i % CG_EF_BUCKET_;
        some = cg_min_(CG_EF_BUCKET_ - at, first + many - i);
        if (some == CG_EF_BUCKET_) {
            cg_residual8_decode_(kernels, ef, i / CG_EF_BUCKET_, cg_at_mut_(out, i - first));
            continue;
        }
        cg_residual8_decode_(kernels, ef, i / CG_EF_BUCKET_, e);
        memcpy(cg_at_mut_(out, i - first), e + at, 4 * some);
    }
}
CG_API_ cg_status cg_ef_read(const cg_ef *ef, int which, float *out, size_t n) {
    cg_fenv_ env;
    if (!ef || (!out && n) || which < 0 || which > 2) return CG_E_ARG;
    if (n != ef->desc.n) return CG_E_MISMATCH;
    if (!ef->vector[which] && (which || !ef->bytes)) return CG_E_UNSUPPORTED;
    env = cg_fenv_enter_();
    if (!n) {
    } else if (ef->vector[which]) memcpy(out, ef->vector[which], 4 * n);
    else cg_residual8_read_(ef, 0, n, out);
    cg_fenv_leave_(env);
    return CG_OK;
}

/* src/ef/step.h */
/* ---- >>step: from the gradient to p ---- */

typedef struct cg_ef_step_ {
    const cg_kernels_ *kernels;
    const cg_ef *ef;
    cg_op op;
    cg_extra side;
    const float *g, *variance;
    /* g is multiplied by a; before that cut at +-limit, if that is not 0 */
    float grad_scale, clip_limit;
    /* p = pa g + pb e; then e = qa g + qb e, unless p takes its place */
    float p_from_g, p_from_e, e_from_g, e_from_e;
    int may_overflow;   /* a sum may be too large */
    float laq_range[2]; /* LAQ */
} cg_ef_step_;

/* A pass over the vector: by blocks, over threads; returns the sum of what run returns. */
static double cg_ef_pass_sized_(
    double (*run)(const void *, size_t, size_t, float *), const void *user, float *x, size_t n, size_t unit) {
    cg_producer_ fill = CG_ZERO;
    cg_source_ src = CG_ZERO;
    fill.make = run;
    fill.user = user;
    fill.n = n;
    fill.step = unit;
    src.producer = &fill;
    src.x = x;
    if (n) cg_producer_make_all_(&src);
    return fill.energy;
}
static double cg_ef_pass_(double (*run)(const void *, size_t, size_t, float *), const void *user, float *x, size_t n) {
    return cg_ef_pass_sized_(run, user, x, n, CG_CHUNK_);
}
static double cg_ef_pass_energy_(const void *user, size_t first, size_t many, float *x) {
    (void)first;
    return cg_lane_sum_of_(((const cg_ef_step_ *)user)->kernels, x, many, CG_SUM_SQUARES_);
}
/* 1 for a block with something huge, much more if it is not finite */
static double cg_ef_pass_count_huge_(const void *user, size_t first, size_t many, float *x) {
    const uint32_t top = ((const cg_ef_step_ *)user)->kernels->absmax_bits(x, many);
    (void)first;
    return top >= CG_INF_BITS_ ? 1e100 : top >= cg_as_bits_(CG_EF_HUGE_) ? 1.0 : 0.0;
}
static void cg_ef_saturate_(const cg_ef_step_ *st, float *v, size_t many) {
    if (st->may_overflow)
        for (size_t i = 0; i < many; i++) cg_store_(v, i, cg_saturate_(cg_load_(v, i)));
}
static const float *cg_ef_clip_values_(const cg_ef_step_ *st, const float *g, size_t many, float *buf) {
    for (size_t i = 0; i < many; i++) {
        const float f = cg_load_(g, i);
        buf[i] = f > st->clip_limit ? st->clip_limit : f < -st->clip_limit ? -st->clip_limit : f;
    }
    return buf;
}
/* Kinds whose p takes the place of the error: one chunk of it. */
static double cg_ef_axpby_fading_(
    const cg_ef_step_ *st, const float *d, size_t many, float alpha, float beta, float *y) {
    double lanes[16] = { 0.0 };
    st->kernels->axpby_fading(
        d, many, alpha, beta, y, st->may_overflow ? CG_AXPBY_NO_SQUARES_ : CG_AXPBY_SQUARES_Y_, lanes);
    if (!st->may_overflow) return cg_lanes_reduce_(lanes);
    cg_ef_saturate_(st, y, many);
    return cg_lane_sum_of_(st->kernels, y, many, CG_SUM_SQUARES_);
}
/* e = e + by m, for memory m; |e|^2 */
static double cg_ef_axpy_fading_(const cg_kernels_ *k, const float *m, size_t many, float by, float *e) {
    double lanes[16] = { 0.0 };
    k->axpby_fading(m, many, by, 1.0f, e, CG_AXPBY_FADE_X_, lanes);
    return cg_lanes_reduce_(lanes);
}
static double cg_ef_compensate_chunk_(const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    const cg_ef *ef = st->ef;
    const cg_ef_desc *d = &ef->desc;
    const cg_kernels_ *k = st->kernels;
    const float m = d->momentum, a = st->grad_scale;
    float *u = ef->vector[1] ? cg_at_mut_(ef->vector[1], first) : NULL;
    double energy;
    switch (d->kind) {
    case CG_EF_MOMENTUM:
        k->axpby_fading(g, many, d->nesterov ? cg_times_(m, a) : a, m, u, CG_AXPBY_NO_SQUARES_, NULL);
        if (d->nesterov) k->axpby_fading(u, many, 1.0f, 1.0f, e, CG_AXPBY_NO_SQUARES_, NULL);
        energy = d->nesterov ? cg_ef_axpby_fading_(st, g, many, a, 1.0f, e)
                             : cg_ef_axpby_fading_(st, u, many, 1.0f, 1.0f, e);
        cg_ef_saturate_(st, u, many);
        return energy;
    case CG_EF_SIGNUM: return cg_ef_axpby_fading_(st, g, many, cg_times_(a, 1.0f - m), m, e);
    case CG_EF_VARIANCE:
        if (st->variance)
            k->axpby_fading(cg_at_(st->variance, first), many, cg_times_(a, a), 1.0f, u, CG_AXPBY_NO_SQUARES_, NULL);
        cg_ef_saturate_(st, u, many);
        return cg_ef_axpby_fading_(st, g, many, a, 1.0f, e);
    case CG_EF_ONEBIT_ADAM:
        k->axpby_fading(g, many, cg_times_(a, 1.0f - m), 1.0f, e, CG_AXPBY_NO_SQUARES_, NULL);
        energy = cg_ef_axpy_fading_(k, cg_at_(ef->vector[2], first), many, cg_times_(ef->scale, m), e);
        cg_ef_saturate_(st, e, many);
        return st->may_overflow ? cg_lane_sum_of_(k, e, many, CG_SUM_SQUARES_) : energy;
    default: return cg_ef_axpby_fading_(st, g, many, a, cg_ef_decay_(d), e);
    }
}
CG_NOINLINE_ double cg_ef_compensate_chunk_clipped_(
    const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    float buf[CG_CHUNK_];
    return cg_ef_compensate_chunk_(st, first, many, cg_ef_clip_values_(st, g, many, buf), e);
}
static double cg_ef_compensate_in_place_(const void *user, size_t first, size_t many, float *out) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    double energy = 0.0;
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        some = cg_min_(CG_CHUNK_, many - i);
        energy += st->clip_limit != 0.0f ? cg_ef_compensate_chunk_clipped_(st, first + i, some, g, cg_at_mut_(out, i))
                                         : cg_ef_compensate_chunk_(st, first + i, some, g, cg_at_mut_(out, i));
    }
    return energy;
}
/* The others: out = p, memory as it is. */
CG_NOINLINE_ double cg_ef_compensate_(const void *user, size_t first, size_t many, float *out) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    const cg_ef *ef = st->ef;
    float buf[CG_CHUNK_];
    double energy = 0.0;
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        float *p = cg_at_mut_(out, i);
        some = cg_min_(CG_CHUNK_, many - i);
        if (ef->bytes) cg_residual8_read_(ef, first + i, some, p);
        else memcpy(p, cg_at_(ef->vector[0], first + i), 4 * some);
        if (st->clip_limit != 0.0f) g = cg_ef_clip_values_(st, g, some, buf);
        /* h does not fade */
        if (cg_ef_has_trait_(&ef->desc, CG_EF_DIFFERENCE_))
            st->kernels->axpby(g, some, st->p_from_g, st->p_from_e, p, 0);
        else st->kernels->axpby_fading(g, some, st->p_from_g, st->p_from_e, p, CG_AXPBY_NO_SQUARES_, NULL);
        cg_ef_saturate_(st, p, some);
        energy += cg_lane_sum_of_(st->kernels, p, some, CG_SUM_SQUARES_);
    }
    return energy;
}
/* |p|^2, before it is asked for. */
CG_NOINLINE_ double cg_ef_compensated_energy_(const void *user, size_t first, size_t many, float *none) {
    float p[CG_CHUNK_];
    double energy = 0.0;
    (void)none;
    for (size_t i = 0, some; i < many; i += some) {
        some = cg_min_(CG_CHUNK_, many - i);
        energy += cg_ef_compensate_(user, first + i, some, p);
    }
    return energy;
}
static float cg_ef_compensated_absmax_(const cg_ef_step_ *st, size_t n) {
    float p[CG_CHUNK_];
    uint32_t top = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        cg_ef_compensate_(st, i, cg_min_(CG_CHUNK_, n - i), p);
        top = cg_max32_(top, st->kernels->absmax_bits(p, cg_min_(CG_CHUNK_, n - i)));
    }
    return cg_as_float_(top);
}
/* ... and what stays of it: e = qa g + qb e. */
CG_NOINLINE_ double cg_ef_residual_accumulate_(const void *user, size_t first, size_t many, float *e) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    float buf[CG_CHUNK_];
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        some = cg_min_(CG_CHUNK_, many - i);
        if (st->clip_limit != 0.0f) g = cg_ef_clip_values_(st, g, some, buf);
        if (st->ef->bytes) cg_residual8_axpby_(st->ef, first + i, some, st->e_from_g, g, st->e_from_e);
        else {
            st->kernels->axpby_fading(
                g, some, st->e_from_g, st->e_from_e, cg_at_mut_(e, i), CG_AXPBY_NO_SQUARES_, NULL);
            cg_ef_saturate_(st, cg_at_mut_(e, i), some);
        }
    }
    return 0.0;
}
/* EF21 with momentum: a running mean of g. */
static double cg_ef_grad_running_mean_(const void *user, size_t first, size_t many, float *v) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    float buf[64];
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        some = cg_min_(64, many - i);
        if (st->clip_limit != 0.0f) g = cg_ef_clip_values_(st, g, some, buf);
        st->kernels->axpby_fading(g, some, cg_times_(st->grad_scale, 1.0f - st->ef->desc.momentum),
            st->ef->desc.momentum, cg_at_mut_(v, i), CG_AXPBY_NO_SQUARES_, NULL);
        cg_ef_saturate_(st, cg_at_mut_(v, i), some);
    }
    return 0.0;
}
/* for passes: the error, or if it is in bytes something that is not looked at */
static float *cg_ef_pass_vector_(const cg_ef *ef) { return ef->vector[0] ? ef->vector[0] : (float *)(void *)ef->bytes; }
typedef struct cg_ef_factor_ctx_ {
    const cg_kernels_ *kernels;
    const cg_ef *ef;
    float factor;
} cg_ef_factor_ctx_;
static double cg_ef_scale_chunk_(const void *user, size_t first, size_t many, float *e) {
    const cg_ef_factor_ctx_ *b = (const cg_ef_factor_ctx_ *)user;
    static const float zero[CG_EF_BUCKET_] = { 0.0f };
    if (!b->ef || !b->ef->bytes) b->kernels->axpby_fading(e, many, 0.0f, b->factor, e, CG_AXPBY_NO_SQUARES_, NULL);
    else
        for (size_t i = 0; i < many; i += CG_EF_BUCKET_)
            cg_residual8_axpby_(b->ef, first + i, cg_min_(CG_EF_BUCKET_, many - i), 1.0f, zero, b->factor);
    for (size_t i = 0; (!b->ef || !b->ef->bytes) && i < many; i++) cg_store_(e, i, cg_saturate_(cg_load_(e, i)));
    return 0.0;
}
/* A vector times `by`; which 0: the error, in whatever form. */
static void cg_ef_scale_vector_(cg_ef *ef, int which, float by) {
    cg_ef_factor_ctx_ b;
    b.kernels = cg_kernels_now_();
    b.ef = which ? NULL : ef;
    b.factor = by;
    if (which ? ef->vector[which] != NULL : 1)
        cg_ef_pass_(cg_ef_scale_chunk_, &b, which ? ef->vector[which] : cg_ef_pass_vector_(ef), ef->desc.n);
}
static float cg_ef_shift_rate_(const cg_ef_desc *d, const cg_op *op) { /* by which D goes into h and H */
    if (d->kind != CG_EF_DIANA) return 1.0f;
    return d->alpha != 0.0f ? d->alpha : (float)(1.0 / (1.0 + cg_omega_(op, d->n)));
}
static void cg_ef_set_coefficients_(cg_ef_step_ *st, float scale) {
    const cg_ef_desc *d = &st->ef->desc;
    const float decay = cg_ef_decay_(d), a = st->grad_scale;
    const float by = d->kind == CG_EF_LOCO ? 1.0f - decay : decay;
    st->p_from_g = a;
    st->p_from_e = 1.0f;
    st->e_from_g = cg_times_(by, a);
    st->e_from_e = 1.0f;
    if (d->kind == CG_EF_CLASSIC) {
        st->p_from_e = st->e_from_e = decay;
        st->e_from_g = a;
    }
    if (d->kind == CG_EF_ECQ) {
        st->p_from_e = d->alpha != 0.0f ? d->alpha : 0.2f;
        st->e_from_g = a;
        st->e_from_e = decay;
    }
    /* h is not divided */
    if (cg_ef_has_trait_(d, CG_EF_DIFFERENCE_)) {
        st->p_from_g = cg_times_(a, scale);
        st->p_from_e = -scale;
        st->e_from_g = 0.0f;
    }
}
/* By which D is taken from the error. */
static float cg_ef_subtract_factor_(const cg_ef *ef) {
    const cg_ef_desc *d = &ef->desc;
    if (d->kind == CG_EF_SIGNUM) return 0.0f;
    if (cg_ef_has_trait_(d, CG_EF_DIFFERENCE_)) return -ef->received_by;
    if (d->kind == CG_EF_LOCO) return cg_times_(1.0f - cg_ef_decay_(d), ef->scale);
    return d->kind == CG_EF_SCALECOM ? cg_times_(cg_ef_decay_(d), ef->scale) : ef->scale;
}
/* Everything that can be wrong, before memory changes; and the gradient's norm, if somebody asks. */
static cg_status cg_ef_step_check_(
    cg_ef *ef, const cg_tag *tag, const cg_extra *side, const float *grad, int norm, cg_ef_step_ *st, double *squares) {
    const cg_ef_desc *d = &ef->desc;
    const double workers = d->workers > 1 ? (double)d->workers : 1.0;
    double seen = 0.0;
    float clip = 1.0f;
    cg_ef_needs_ needs;
    cg_status s;
    memset(st, 0, sizeof *st);
    memset(&needs, 0, sizeof needs);
    *squares = 0.0;
    if (ef->pending) return CG_E_STATE;
    memset(&ef->stats, 0, sizeof ef->stats);
    ef->stats.clipped = 1.0f;
    if (!grad && d->n) return CG_E_ARG;
    st->kernels = cg_kernels_now_();
    st->ef = ef;
    st->op = cg_ef_op_(d, tag);
    if (side) st->side = *side;
    st->g = grad;
    s = cg_ef_needs_of_op_(d, st->op, &needs);
    if (s != CG_OK) return s;
    if (needs.scratch_bytes > ef->scratch_bytes ||
        (cg_ef_needs_whole_vector_(&st->op) && !cg_ef_in_place_(d) && !ef->whole))
        return CG_E_MEMORY;
    if (needs.warm_count > ef->warm_count) return CG_E_MEMORY;
    if (d->kind == CG_EF_VARIANCE) {
        if (!st->side.aux && d->n) return CG_E_ARG;
        st->variance = st->side.aux;
        st->side.aux = st->op.select.id == CG_SELECT_VARIANCE ? ef->vector[1] : NULL;
        if (d->n &&
            cg_ef_pass_sized_(cg_ef_pass_count_huge_, st, (float *)(uintptr_t)st->variance, d->n, CG_BLOCK_) > 0.0)
            return CG_E_NONFINITE;
    } else if (st->op.select.id == CG_SELECT_BINS && !st->side.aux) st->side.aux = grad;
    if (cg_extra_check_(&st->op, &st->side) != CG_OK) return cg_extra_check_(&st->op, &st->side);
    /* one pass for both: squares of floats do not overflow a double */
    if (norm || (d->clip != 0.0f && d->clip_by == CG_CLIP_NORM)) {
        *squares = cg_ef_pass_(cg_ef_pass_energy_, st, (float *)(uintptr_t)grad, d->n);
        seen = !cg_is_finite64_(*squares) ? 1e100 : cg_sqrt_(*squares) >= (double)CG_EF_HUGE_ ? 1.0 : 0.0;
    } else if (!d->finite) {
        seen = cg_ef_pass_sized_(cg_ef_pass_count_huge_, st, (float *)(uintptr_t)grad, d->n, CG_BLOCK_);
    }
    if (seen >= 1e100) return CG_E_NONFINITE;
    if (d->clip != 0.0f) {
        const double most = (double)d->clip / cg_sqrt_(workers), have = cg_sqrt_(*squares);
        if (d->clip_by == CG_CLIP_VALUE) st->clip_limit = (float)most;
        else if (have > most) clip = (float)(most / have);
    }
    ef->stats.clipped = clip;
    st->grad_scale = cg_times_(d->rate != 0.0f ? d->rate : 1.0f, clip);
    st->may_overflow = seen > 0.0 || ef->reach >= (double)CG_EF_HUGE_ ||
        (cg_as_bits_(st->grad_scale) & CG_ABS_MASK_) > cg_as_bits_(4.0f);
    return CG_OK;
}
/* From here on memory changes: to this step's scale, and for EF21 the mean of gradients. */
static void cg_ef_step_begin_(cg_ef *ef, cg_ef_step_ *st) {
    const cg_ef_desc *d = &ef->desc;
    const float scale = cg_ef_scale_(d, &st->op);
    if (!cg_ef_has_trait_(d, CG_EF_DIFFERENCE_) && scale != ef->scale) {
        cg_ef_scale_vector_(ef, 0, (float)((double)scale / (double)ef->scale));
        if (d->kind == CG_EF_MOMENTUM) cg_ef_scale_vector_(ef, 1, (float)((double)scale / (double)ef->scale));
        if (d->kind == CG_EF_VARIANCE)
            cg_ef_scale_vector_(
                ef, 1, (float)((double)scale * (double)scale / ((double)ef->scale * (double)ef->scale)));
    }
    ef->scale = scale;
    ef->received_by = cg_ef_shift_rate_(d, &st->op);
    if (!cg_ef_has_trait_(d, CG_EF_DIFFERENCE_)) st->grad_scale = cg_times_(st->grad_scale, scale);
    if (d->kind == CG_EF_EF21 && d->momentum != 0.0f) {
        cg_ef_pass_(cg_ef_grad_running_mean_, st, ef->vector[1], d->n);
        st->g = ef->vector[1];
        st->grad_scale = 1.0f;
        st->clip_limit = 0.0f;
    }
    cg_ef_set_coefficients_(st, scale);
}
static void cg_ef_record_energy_(cg_ef *ef, double energy) { /* p is there */
    const double size = cg_sqrt_(energy);
    /* the velocity is the difference of two */
    ef->reach = (cg_ef_in_place_(&ef->desc) ? ef->size : ef->reach) + size;
    ef->size = size;
    ef->stats.put = energy / ((double)ef->scale * (double)ef->scale);
    ef->stats.kept = 1;
}
/* Where the k-th largest will be in the next step, and a little below: a quarter more than k are to pass. */
static void cg_ef_update_hint_(cg_ef *ef, const cg_op *op, const cg_producer_ *fill, float threshold) {
    const size_t k = (size_t)cg_max_selected_(op, ef->desc.n);
    const float last = cg_as_float_(fill->threshold_hint);
    float next = cg_times_(threshold, 0.97f);
    if (op->select.id != CG_SELECT_TOPK || op->sample.id || op->transform.id) return;
    if (fill->threshold_hint && fill->reached_hint > k &&
        last < threshold) /* they lie evenly below the threshold, about */
        next = cg_plus_(threshold,
            -cg_times_(cg_plus_(threshold, -last), (float)(0.25 * (double)k / (double)(fill->reached_hint - k))));
    if (next < cg_times_(threshold, 0.8f)) next = cg_times_(threshold, 0.8f);
    if (ef->threshold > 0.0f) { /* it moves on as it moved */
        float drift = threshold / ef->threshold;
        if (drift > 0.9f && drift < 1.0f) next = cg_times_(next, drift);
    }
    ef->hint = next;
    ef->threshold = threshold;
}
static cg_producer_ cg_ef_producer_(const cg_ef *ef, const cg_ef_step_ *st) {
    cg_producer_ fill = CG_ZERO;
    fill.user = st;
    fill.n = ef->desc.n;
    fill.step = CG_CHUNK_;
    fill.make = cg_ef_in_place_(&ef->desc) ? cg_ef_compensate_in_place_ : cg_ef_compensate_;
    fill.lazy = !cg_ef_in_place_(&ef->desc);
    if (ef->hint > 0.0f) fill.threshold_hint = cg_as_bits_(ef->hint);
    return fill;
}

/* src/ef/lazy.h */
/* ---- >>lazy: LAQ sends only what is worth it ---- */

static double cg_ef_energy_dense_(const void *user, size_t first, size_t many, const float *v) {
    (void)first;
    return cg_lane_sum_of_(((const cg_ef_step_ *)user)->kernels, v, many, CG_SUM_SQUARES_);
}
static double cg_ef_energy_sparse_(const void *user, const uint64_t *at, size_t many, const float *v) {
    (void)at;
    return cg_ef_energy_dense_(user, 0, many, v);
}
/* |p - v|^2 - |p|^2 */
CG_NOINLINE_ double cg_ef_error_dense_(const void *user, size_t first, size_t many, const float *v) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    float p[CG_CHUNK_];
    double sum = 0.0;
    for (size_t i = 0, some; i < many; i += some) {
        some = cg_min_(CG_CHUNK_, many - i);
        cg_ef_compensate_(st, first + i, some, p);
        sum -= cg_lane_sum_of_(st->kernels, p, some, CG_SUM_SQUARES_);
        st->kernels->axpby(cg_at_(v, i), some, -1.0f, 1.0f, p, 0);
        sum += cg_lane_sum_of_(st->kernels, p, some, CG_SUM_SQUARES_);
    }
    return sum;
}
static double cg_ef_error_sparse_(const void *user, const uint64_t *at, size_t many, const float *v) {
    double sum = 0.0;
    for (size_t i = 0; i < many; i++) sum += cg_ef_error_dense_(user, (size_t)at[i], 1, v + i);
    return sum;
}
static double cg_ef_packet_reduce_(const cg_ef_step_ *st, const void *packet, size_t len,
    double (*dense)(const void *, size_t, size_t, const float *),
    double (*sparse)(const void *, const uint64_t *, size_t, const float *)) {
    cg_sink_ sink;
    sink.take_dense = dense;
    sink.take_sparse = sparse;
    sink.user = st;
    sink.energy = 0.0;
    return cg_decode_to_(&st->side, packet, len, 1.0f, 1.0f, NULL, &sink, st->ef->desc.n, 1) == CG_OK ? sink.energy
                                                                                                      : 0.0;
}
/* Is it? Also: what the packet would leave, in ef->error. */
static int cg_ef_laq_should_send_(cg_ef *ef, const cg_ef_step_ *st, double put, const void *packet, size_t len) {
    const cg_ef_desc *d = &ef->desc;
    const double weight = d->laq_weight != 0.0f ? (double)d->laq_weight : 0.8, step = (double)d->laq_step;
    const double sent = cg_ef_packet_reduce_(st, packet, len, cg_ef_energy_dense_, cg_ef_energy_sparse_);
    double moved = 0.0, left = put + cg_ef_packet_reduce_(st, packet, len, cg_ef_error_dense_, cg_ef_error_sparse_);
    ef->error = left > 0.0 ? left : 0.0;
    for (int i = 0; i < 10; i++) moved += ef->moved[i];
    if (ef->silent >= (d->laq_patience ? d->laq_patience : 100) || ef->steps == 0) return 1;
    return sent >= weight / 10.0 * moved / (step * step) + 3.0 * (ef->error + ef->error_sent);
}
CG_API_ cg_status cg_ef_moved(cg_ef *ef, double squared) {
    if (!ef || !(squared >= 0.0 && squared <= 1.7976931348623157e308)) return CG_E_ARG;
    ef->moved[ef->moves++ % 10] = squared;
    return CG_OK;
}

/* src/ef/ends.h */
/* ---- >>ends of a step ---- */

static void cg_ef_step_end_(cg_ef *ef) { /* a step is over */
    ef->pending = 0;
    ef->steps++;
    if (ef->desc.reset && ef->steps % ef->desc.reset == 0) cg_ef_scale_vector_(ef, 0, 0.0f);
}
static double cg_ef_subtract_mean_(const void *user, size_t first, size_t many, float *e) {
    const cg_ef_factor_ctx_ *b = (const cg_ef_factor_ctx_ *)user;
    cg_ef_axpy_fading_(b->kernels, cg_at_(b->ef->vector[2], first), many, b->factor, e);
    for (size_t i = 0; i < many; i++) cg_store_(e, i, cg_saturate_(cg_load_(e, i)));
    return 0.0;
}
/* Nothing was sent: only what the kind would add again must go. */
static void cg_ef_rollback_now_(cg_ef *ef) {
    if (ef->desc.kind == CG_EF_VARIANCE) cg_ef_scale_vector_(ef, 1, cg_ef_decay_(&ef->desc));
    if (ef->desc.kind == CG_EF_ONEBIT_ADAM) {
        cg_ef_factor_ctx_ b;
        b.kernels = cg_kernels_now_();
        b.ef = ef;
        b.factor = -cg_times_(ef->scale, ef->desc.momentum);
        cg_ef_pass_(cg_ef_subtract_mean_, &b, ef->vector[0], ef->desc.n);
    }
    ef->stats.sent = 0.0;
    ef->stats.gain = 0.0f;
    cg_ef_step_end_(ef);
}

/* src/ef/compress.h */
/* ---- >>compress ---- */

/* The packet, and p's squares; memory changes only in place. */
static cg_status cg_ef_pack_(
    cg_ef *ef, cg_ef_step_ *st, cg_producer_ *fill, const cg_tag *tag, void *packet, size_t cap, size_t *len) {
    const cg_ef_desc *d = &ef->desc;
    const float *x = cg_ef_in_place_(d) ? ef->vector[0] : st->g;
    cg_producer_ *by = fill;
    const int whole = fill->lazy && cg_ef_needs_whole_vector_(&st->op);
    if (fill->lazy && !whole) fill->energy = cg_ef_pass_(cg_ef_compensated_energy_, st, cg_ef_pass_vector_(ef), d->n);
    if (d->kind == CG_EF_LAQ && st->op.quantize.id == CG_QUANTIZE_MINMAX && !st->op.select.id && !st->op.sample.id &&
        !st->op.transform.id && st->op.quantize.size >= d->n) {
        st->laq_range[1] = cg_ef_compensated_absmax_(st, d->n);
        st->laq_range[0] = -st->laq_range[1];
        st->side.scale = st->laq_range;
    }
    if (whole) {
        fill->energy = cg_ef_pass_(cg_ef_compensate_, st, ef->whole, d->n);
        x = ef->whole;
        by = NULL;
    }
    return cg_compress_checked_(&st->op, tag, &st->side, x, by, d->n, packet, cap, len, ef->scratch, ef->scratch_bytes);
}
static float cg_packet_threshold_(const void *packet) { return cg_as_float_(cg_get32_((const uint8_t *)packet + 144)); }
static cg_status cg_ef_compress_(
    cg_ef *ef, const cg_tag *tag, const cg_extra *side, const float *grad, void *packet, size_t cap, size_t *len) {
    const cg_tag none = CG_ZERO;
    cg_ef_step_ st;
    cg_producer_ fill;
    double squares;
    cg_status s;
    if (!len) return CG_E_ARG;
    *len = 0;
    if (!ef || !packet) return CG_E_ARG;
    if (!tag) tag = &none;
    s = cg_ef_step_check_(ef, tag, side, grad, 0, &st, &squares);
    if (s != CG_OK) return s;
    if (!cg_bound_(&st.op, &st.side, ef->desc.n)) return CG_E_ARG;
    if (cap < cg_bound_(&st.op, &st.side, ef->desc.n) || cap < CG_HEADER_BYTES) return CG_E_CAPACITY;
    if (st.op.sample.id == CG_SAMPLE_PERMK && tag->rank >= st.op.sample.size) return CG_E_ARG;
    if (st.op.select.id == CG_SELECT_GIVEN) {
        cg_decoder_ set;
        s = cg_support_open_(&set, &st.side, ef->desc.n);
        if (s != CG_OK) return s;
    }
    cg_ef_step_begin_(ef, &st);
    fill = cg_ef_producer_(ef, &st);
    s = cg_ef_pack_(ef, &st, &fill, tag, packet, cap, len);
    if (s == CG_OK && !fill.lazy) cg_ef_update_hint_(ef, &st.op, &fill, cg_packet_threshold_(packet));
    if (s == CG_OK) cg_ef_record_energy_(ef, fill.energy);
    if (s == CG_OK && ef->desc.kind == CG_EF_LAQ && !cg_ef_laq_should_send_(ef, &st, fill.energy, packet, *len)) {
        ef->stats.silent = 1;
        *len = cg_empty_packet_put_(tag, ef->desc.n, (uint8_t *)packet);
    }
    if (s == CG_OK && fill.lazy && !cg_ef_has_trait_(&ef->desc, CG_EF_DIFFERENCE_))
        cg_ef_pass_(cg_ef_residual_accumulate_, &st, cg_ef_pass_vector_(ef), ef->desc.n);
    ef->pending = s == CG_OK;
    if (s != CG_OK && (fill.started || st.g != grad)) { /* a codec of the user's */
        cg_ef_record_energy_(ef, fill.energy);
        cg_ef_rollback_now_(ef);
    }
    return s;
}
CG_API_ cg_status cg_ef_compress_with(
    cg_ef *ef, const cg_tag *tag, const cg_extra *side, const float *grad, void *packet, size_t cap, size_t *len) {
    const cg_fenv_ env = cg_fenv_enter_();
    const cg_status s = cg_ef_compress_(ef, tag, side, grad, packet, cap, len);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_ef_compress(
    cg_ef *ef, const cg_tag *tag, const float *grad, void *packet, size_t cap, size_t *len) {
    return cg_ef_compress_with(ef, tag, NULL, grad, packet, cap, len);
}

/* src/ef/commit.h */
/* ---- >>commit ---- */

typedef struct cg_ef_commit_ctx_ {
    const cg_kernels_ *kernels;
    const cg_ef *ef;
    size_t packet_start;
    float subtract_factor;
    int may_overflow;
} cg_ef_commit_ctx_;
static double cg_ef_subtract_dense_(const void *user, size_t first, size_t many, const float *v) {
    const cg_ef_commit_ctx_ *c = (const cg_ef_commit_ctx_ *)user;
    const size_t at = c->packet_start + first;
    if (c->ef->desc.kind == CG_EF_VARIANCE) memset(cg_at_mut_(c->ef->vector[1], at), 0, 4 * many);
    if (c->ef->bytes) cg_residual8_axpby_(c->ef, at, many, -c->subtract_factor, v, 1.0f);
    else {
        float *e = cg_at_mut_(c->ef->vector[0], at);
        double lanes[16] = { 0.0 };
        c->kernels->axpby_fading(v, many, -c->subtract_factor, 1.0f, e, CG_AXPBY_SQUARES_X_, lanes);
        for (size_t i = 0; c->may_overflow && i < many; i++) cg_store_(e, i, cg_saturate_(cg_load_(e, i)));
        return cg_lanes_reduce_(lanes);
    }
    return cg_lane_sum_of_(c->kernels, v, many, CG_SUM_SQUARES_);
}
static double cg_ef_subtract_sparse_(const void *user, const uint64_t *at, size_t many, const float *v) {
    const cg_ef_commit_ctx_ *c = (const cg_ef_commit_ctx_ *)user;
    const int masks = c->ef->desc.kind == CG_EF_MOMENTUM || c->ef->desc.kind == CG_EF_VARIANCE;
    float *e = c->ef->vector[0], *u = masks ? c->ef->vector[1] : NULL;
    for (size_t i = 0; e && i < many; i++) CG_PREFETCH_(cg_at_(e, c->packet_start + (size_t)at[i]));
    for (size_t i = 0; u && i < many; i++) CG_PREFETCH_(cg_at_(u, c->packet_start + (size_t)at[i]));
    if (c->ef->bytes) cg_residual8_add_sparse_(c->ef, c->packet_start, at, many, -c->subtract_factor, v);
    for (size_t i = 0; e && i < many; i++) {
        const size_t j = c->packet_start + (size_t)at[i];
        cg_store_(e, j, cg_saturate_(cg_plus_(cg_load_(e, j), cg_times_(-c->subtract_factor, v[i]))));
        if (u) cg_store_(u, j, 0.0f);
    }
    return cg_lane_sum_of_(c->kernels, v, many, CG_SUM_SQUARES_);
}
/* One packet, or several that cover the vector one after the other. What is done with each depends on sink; NULL:
   it is verified. */
static cg_status cg_ef_for_each_packet_(
    const cg_ef *ef, const cg_extra *side, const uint8_t *used, size_t len, cg_ef_commit_ctx_ *c, cg_sink_ *sink) {
    size_t at = 0, done = 0;
    cg_status s = used ? CG_OK : CG_E_ARG;
    cg_info info;
    for (; at < len && s == CG_OK; at += info.packet_bytes, done += (size_t)info.n) {
        s = cg_header_get_(used + at, len - at, &info);
        if (s == CG_OK && info.n > ef->desc.n - done) s = CG_E_MISMATCH;
        if (s == CG_OK && info.packet_bytes > len - at) s = CG_E_CORRUPT;
        c->packet_start = done;
        if (s == CG_OK)
            s = sink ? cg_decode_to_(side, used + at, info.packet_bytes, 1.0f, 1.0f, NULL, sink, (size_t)info.n, 1)
                     : cg_packet_check_(side, used + at, info.packet_bytes, (size_t)info.n);
    }
    return s == CG_OK && (done != ef->desc.n || len == 0) ? CG_E_MISMATCH : s;
}
typedef struct cg_ef_apply_mean_ctx_ {
    const cg_ef *ef;
    float *mean;
    int may_overflow;
} cg_ef_apply_mean_ctx_;
static double cg_ef_apply_mean_(const void *user, size_t first, size_t many, float *h) {
    const cg_ef_apply_mean_ctx_ *r = (const cg_ef_apply_mean_ctx_ *)user;
    const cg_kernels_ *kernels = cg_kernels_now_();
    float *mean = cg_at_mut_(r->mean, first), buf[CG_EF_BUCKET_];
    if (r->ef->received_by == 1.0f || !cg_ef_has_trait_(&r->ef->desc, CG_EF_DIFFERENCE_)) {
        if (cg_ef_has_trait_(&r->ef->desc, CG_EF_DIFFERENCE_)) kernels->axpby(h, many, 1.0f, 1.0f, mean, 0);
        for (size_t i = 0; r->may_overflow && i < many; i++) cg_store_(mean, i, cg_saturate_(cg_load_(mean, i)));
        memcpy(h, mean, 4 * many);
        return 0.0;
    }
    for (size_t i = 0, some; i < many; i += some) {
        some = cg_min_(CG_EF_BUCKET_, many - i);
        memcpy(buf, cg_at_(mean, i), 4 * some);
        kernels->axpby(cg_at_(h, i), some, 1.0f, 1.0f, cg_at_mut_(mean, i), 0);
        kernels->axpby(buf, some, r->ef->received_by, 1.0f, cg_at_mut_(h, i), 0);
        for (size_t j = i; r->may_overflow && j < i + some; j++) {
            cg_store_(mean, j, cg_saturate_(cg_load_(mean, j)));
            cg_store_(h, j, cg_saturate_(cg_load_(h, j)));
        }
    }
    return 0.0;
}
static cg_status cg_ef_commit_now_(
    cg_ef *ef, const cg_extra *side, const void *used, size_t len, float *mean, int verified) {
    const cg_ef_desc *d = &ef->desc;
    cg_ef_step_ st;
    cg_ef_commit_ctx_ c;
    cg_sink_ sink;
    double huge = 0.0;
    cg_status s = CG_OK;
    memset(&st, 0, sizeof st);
    st.kernels = c.kernels = cg_kernels_now_();
    c.ef = ef;
    c.subtract_factor = cg_ef_subtract_factor_(ef);
    c.may_overflow = ef->reach >= (double)CG_EF_HUGE_;
    sink.take_dense = cg_ef_subtract_dense_;
    sink.take_sparse = cg_ef_subtract_sparse_;
    sink.user = &c;
    sink.energy = 0.0;
    if (cg_ef_has_trait_(d, CG_EF_KEEPS_RECEIVED_) && d->n) {
        if (!mean) return CG_E_ARG;
        huge = cg_ef_pass_sized_(cg_ef_pass_count_huge_, &st, mean, d->n, CG_BLOCK_);
        if (huge >= 1e100) return CG_E_NONFINITE;
    }
    if (!verified) s = cg_ef_for_each_packet_(ef, side, (const uint8_t *)used, len, &c, NULL);
    if (s != CG_OK) return s;
    if (d->kind == CG_EF_VARIANCE) cg_ef_scale_vector_(ef, 1, cg_ef_decay_(d));
    if (c.subtract_factor == 0.0f) { /* nothing to take, only to measure */
        sink.take_dense = cg_ef_energy_dense_;
        sink.take_sparse = cg_ef_energy_sparse_;
        sink.user = &st;
    }
    s = cg_ef_for_each_packet_(ef, side, (const uint8_t *)used, len, &c, &sink);
    if (s == CG_OK && cg_ef_has_trait_(d, CG_EF_KEEPS_RECEIVED_)) {
        cg_ef_apply_mean_ctx_ r;
        r.ef = ef;
        r.mean = mean;
        r.may_overflow = c.may_overflow || huge > 0.0;
        cg_ef_pass_(cg_ef_apply_mean_, &r, ef->vector[2], d->n);
    }
    ef->stats.sent = sink.energy;
    ef->stats.gain = ef->stats.put > 0.0 ? (float)(sink.energy / ef->stats.put) : 0.0f;
    ef->reach += cg_sqrt_(sink.energy);
    if (d->kind == CG_EF_LAQ) {
        ef->silent = ef->stats.silent ? ef->silent + 1 : 0;
        if (!ef->stats.silent) ef->error_sent = ef->error;
    }
    cg_ef_step_end_(ef);
    return s;
}
CG_API_ cg_status cg_ef_commit_with(cg_ef *ef, const cg_extra *side, const void *used, size_t used_len, float *mean) {
    const cg_fenv_ env = cg_fenv_enter_();
    const cg_status s = !ef ? CG_E_ARG
        : !ef->pending      ? CG_E_STATE
                            : cg_ef_commit_now_(ef, side, used, used_len, mean, 0);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_ef_commit(cg_ef *ef, const void *used, size_t used_len, float *mean) {
    return cg_ef_commit_with(ef, NULL, used, used_len, mean);
}

CG_API_ cg_status cg_ef_rollback(cg_ef *ef, const void *packet, size_t len) {
    cg_fenv_ env;
    (void)packet;
    (void)len;
    if (!ef) return CG_E_ARG;
    if (!ef->pending) return CG_E_STATE;
    env = cg_fenv_enter_();
    cg_ef_rollback_now_(ef);
    cg_fenv_leave_(env);
    return CG_OK;
}

/* src/ef/exchange.h */
/* ---- >>exchange ---- */

/* desc as ef has it, for that step. */
static cg_exchange_desc cg_ef_step_desc_(const cg_ef *ef, const cg_exchange_desc *desc) {
    const cg_op dense = cg_dense(); /* of dense steps, which some routes do not take */
    cg_exchange_desc x = *desc;
    x.op = cg_ef_op_(&ef->desc, &desc->tag);
    x.into = NULL;
    x.warm = x.op.transform.id == CG_TRANSFORM_LOWRANK ? ef->warm : NULL;
    x.carry = ef->carry;
    /* a dense step of VARIANCE */
    if (x.side && x.side->aux && x.op.select.id != CG_SELECT_BINS && x.op.select.id != CG_SELECT_VARIANCE)
        x.side = NULL;
    if (ef->desc.kind == CG_EF_LAQ && x.route == CG_ROUTE_AUTO) x.route = CG_ROUTE_ALLGATHER;
    if (cg_same_op_(&x.op, &dense) &&
        (x.route == CG_ROUTE_MERGE || x.route == CG_ROUTE_SHARED || x.route == CG_ROUTE_REGION))
        x.route = CG_ROUTE_AUTO;
    return x;
}
typedef struct cg_ef_buffer_bytes_ {
    uint64_t vector_bytes, packet_bytes, exchange_bytes;
} cg_ef_buffer_bytes_;
static uint64_t cg_ef_buffer_bytes_of_(
    const cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, cg_ef_buffer_bytes_ *r) {
    const cg_exchange_desc x = cg_ef_step_desc_(ef, desc);
    const uint64_t up = 63;
    memset(r, 0, sizeof *r);
    r->exchange_bytes = cg_exchange_memory(&x, transport, ef->desc.n);
    if (!r->exchange_bytes) return 0;
    if (!cg_ef_in_place_(&ef->desc)) r->vector_bytes = cg_add_sat_(cg_mul_sat_(4, ef->desc.n), up) & ~up;
    if (ef->desc.kind == CG_EF_LAQ)
        r->packet_bytes = cg_add_sat_(cg_add_sat_(cg_bound_(&x.op, NULL, ef->desc.n), CG_HEADER_BYTES), up) & ~up;
    return cg_add_sat_(cg_add_sat_(cg_add_sat_(r->vector_bytes, r->packet_bytes), r->exchange_bytes), 64);
}
CG_API_ size_t cg_ef_exchange_memory(const cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_fenv_ env;
    cg_ef_buffer_bytes_ r;
    size_t bytes;
    if (!ef || !desc || !transport) return 0;
    env = cg_fenv_enter_();
    bytes = cg_size_or_zero_(cg_ef_buffer_bytes_of_(ef, desc, transport, &r));
    cg_fenv_leave_(env);
    return bytes;
}
/* LAQ: would it be sent? */
static cg_status cg_ef_laq_decide_(cg_ef *ef, cg_ef_step_ *st, const cg_tag *tag, uint8_t *packet, size_t cap) {
    cg_producer_ fill = cg_ef_producer_(ef, st);
    size_t len;
    const cg_status s = cg_ef_pack_(ef, st, &fill, tag, packet, cap, &len);
    cg_ef_record_energy_(ef, fill.energy);
    if (s == CG_OK) ef->stats.silent = !cg_ef_laq_should_send_(ef, st, fill.energy, packet, len);
    return s;
}
typedef struct cg_ef_exchange_ctx_ {
    cg_ef_step_ step;
    cg_exchange_desc desc, caller_desc;
    cg_ef_buffer_bytes_ buffers;
    cg_producer_ fill;
    float *p, *grad;
    double grad_energy;
} cg_ef_exchange_ctx_;

/* Everything that can be refused, with memory as it is. */
static cg_status cg_ef_exchange_prepare_(
    cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, const float *grad, cg_ef_exchange_ctx_ *r) {
    const int scored = desc->leader == CG_LEADER_BY_SCORE && desc->score == 0.0f;
    cg_status s;
    memset(r, 0, sizeof *r);
    r->caller_desc = *desc;
    r->desc = cg_ef_step_desc_(ef, desc);
    cg_ef_buffer_bytes_of_(ef, desc, transport, &r->buffers);
    s = cg_ef_step_check_(ef, &desc->tag, desc->side, grad, scored, &r->step, &r->grad_energy);
    r->desc.side = &r->step.side;
    if (s == CG_OK && ef->carry && cg_exchange_carry(&r->desc, transport, ef->desc.n) > ef->desc.carry) s = CG_E_MEMORY;
    if (s == CG_OK && !cg_rate_ok_(desc)) s = CG_E_ARG;
    if (s == CG_OK && r->step.op.sample.id == CG_SAMPLE_PERMK && (uint32_t)transport->rank >= r->step.op.sample.size)
        s = CG_E_ARG;
    return s;
}
/* p is made, or will be by r->fill; room: for p and for a packet of LAQ's. */
static cg_status cg_ef_exchange_begin_(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport,
    float *grad, uint8_t *room, cg_ef_exchange_ctx_ *r) {
    const size_t n = ef->desc.n;
    cg_status s = CG_OK;
    cg_ef_step_begin_(ef, &r->step);
    r->desc.into = grad;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_KEEPS_RECEIVED_)) r->desc.model = NULL; /* their result is made of the mean */
    r->p = n ? ef->vector[0] : grad;
    if (desc->leader == CG_LEADER_BY_SCORE && desc->score == 0.0f) {
        const double norm = cg_sqrt_(r->grad_energy);
        ef->score = ef->score > 0.0 ? cg_times64_(0.9, ef->score) + cg_times64_(0.1, norm) : norm;
        r->desc.score = cg_saturate64_(ef->score);
    }
    if (cg_ef_in_place_(&ef->desc)) {
        r->fill = cg_ef_producer_(ef, &r->step);
        return CG_OK;
    }
    r->p = n ? (float *)(void *)room : grad;
    if (ef->desc.kind == CG_EF_LAQ) {
        cg_tag tag = desc->tag;
        tag.rank = (uint32_t)transport->rank;
        s = cg_ef_laq_decide_(
            ef, &r->step, &tag, room + (size_t)r->buffers.vector_bytes, (size_t)r->buffers.packet_bytes);
        if (ef->stats.silent) r->desc.flags |= CG_ABSTAIN;
    }
    cg_ef_record_energy_(ef, cg_ef_pass_(cg_ef_compensate_, &r->step, r->p, n));
    if (!cg_ef_has_trait_(&ef->desc, CG_EF_DIFFERENCE_))
        cg_ef_pass_(cg_ef_residual_accumulate_, &r->step, cg_ef_pass_vector_(ef), n);
    return s;
}
static cg_status cg_ef_exchange_finish_(
    cg_ef *ef, const cg_ef_exchange_ctx_ *r, cg_status s, cg_report *report, float *grad) {
    if (s == CG_OK) {
        s = cg_ef_commit_now_(ef, &r->step.side, report->used, report->used_len, grad, 1);
        if (s == CG_OK) {
            if (!r->desc.model) cg_model_step_(&r->caller_desc, grad, ef->desc.n);
            return CG_OK;
        }
        /* all that can be wrong with it */
        report->why = "the result is not finite: the sum over ranks is too large";
        report->used = NULL;
        report->used_len = 0;
    }
    if (ef->stats.kept) cg_ef_rollback_now_(ef);
    return s;
}
static cg_status cg_ef_exchange_(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, float *grad,
    void *mem, size_t bytes, cg_report *report) {
    const size_t n = ef->desc.n, skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    uint8_t *at = mem ? (uint8_t *)mem + skip : NULL;
    cg_exchange_state *x;
    cg_ef_exchange_ctx_ r;
    cg_status s = cg_ef_exchange_prepare_(ef, desc, transport, grad, &r);
    const uint64_t need = cg_add_sat_(
        cg_add_sat_(r.buffers.vector_bytes, r.buffers.packet_bytes), r.buffers.exchange_bytes);
    if (s == CG_OK && r.buffers.exchange_bytes && (!mem || bytes < skip || bytes - skip < need)) s = CG_E_MEMORY;
    /* the others must hear of it */
    if (s != CG_OK || !r.buffers.exchange_bytes)
        return cg_exchange_or_fail_(&r.desc, transport, grad, n, mem, bytes, s, report);
    s = cg_ef_exchange_begin_(ef, desc, transport, grad, at, &r);
    at += (size_t)(r.buffers.vector_bytes + r.buffers.packet_bytes);
    x = (cg_exchange_state *)(void *)at;
    s = cg_exchange_in_state_(x, &r.desc, transport, r.p, r.fill.make ? &r.fill : NULL, n, at + CG_STATE_ROOM_,
        (size_t)(r.buffers.exchange_bytes - CG_STATE_ROOM_), s, report);
    if (r.fill.started) cg_ef_record_energy_(ef, r.fill.energy);
    if (x->plan.route == CG_ROUTE_SCATTER) ef->carry_first = cg_stripe_start_(x, transport->rank);
    if (s == CG_OK && r.fill.started && x->plan.stripes == 1 && cg_is_compressed_first_(x))
        cg_ef_update_hint_(ef, &r.step.op, &r.fill, cg_packet_threshold_(x->own.packets));
    return cg_ef_exchange_finish_(ef, &r, s, report, grad);
}
CG_API_ cg_status cg_ef_exchange(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, float *grad,
    void *mem, size_t bytes, cg_report *report) {
    cg_report own;
    cg_fenv_ env;
    cg_status s;
    if (!report) report = &own;
    memset(report, 0, sizeof *report);
    report->rank = -1;
    report->why = cg_status_str(CG_E_ARG);
    if (!ef || !desc || !transport) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_ef_exchange_(ef, desc, transport, grad, mem, bytes, report);
    cg_fenv_leave_(env);
    return s;
}

/* Layers: as one by one, but that all exchanges are opened together. */
static void cg_ef_layer_step_desc_(const cg_ef *ef, cg_layer *layer) {
    layer->desc = cg_ef_step_desc_(ef, &layer->desc);
    layer->n = ef->desc.n;
}
static uint64_t cg_ef_layer_buffer_bytes_(const cg_ef *ef, const cg_layer *layer, const cg_transport *t) {
    cg_ef_buffer_bytes_ rooms;
    cg_ef_buffer_bytes_of_(ef, &layer->desc, t, &rooms);
    return cg_add_sat_(rooms.vector_bytes, rooms.packet_bytes);
}
static uint64_t cg_ef_layers_buffer_bytes_(
    cg_ef *const *efs, const cg_layer *layers, size_t count, const cg_transport *t) {
    uint64_t bytes = (cg_mul_sat_(count, sizeof(cg_ef_exchange_ctx_)) + 63) & ~(uint64_t)63;
    for (size_t i = 0; i < count; i++) bytes = cg_add_sat_(bytes, cg_ef_layer_buffer_bytes_(efs[i], &layers[i], t));
    return bytes;
}
CG_API_ size_t cg_ef_layers_memory(
    cg_ef *const *efs, cg_layer *layers, size_t count, size_t small, const cg_transport *transport) {
    cg_fenv_ env;
    size_t bytes;
    if ((count && (!efs || !layers)) || !transport) return 0;
    env = cg_fenv_enter_();
    for (size_t i = 0; i < count; i++) cg_ef_layer_step_desc_(efs[i], &layers[i]);
    bytes = cg_exchange_layers_memory(layers, count, small, transport);
    if (bytes)
        bytes = cg_size_or_zero_(
            cg_add_sat_(cg_add_sat_(cg_ef_layers_buffer_bytes_(efs, layers, count, transport), bytes), 64));
    cg_fenv_leave_(env);
    return bytes;
}
static cg_status cg_ef_exchange_layers_(cg_ef *const *efs, cg_layer *layers, size_t count, size_t small,
    const cg_transport *t, void *mem, size_t bytes, cg_report *report) {
    const size_t skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    cg_ef_exchange_ctx_ *runs = (cg_ef_exchange_ctx_ *)(void *)((uint8_t *)mem + skip);
    uint8_t *at = (uint8_t *)mem + skip + ((count * sizeof(cg_ef_exchange_ctx_) + 63) & ~(size_t)63);
    cg_status failed = CG_OK, s;
    size_t who = count, room;
    for (size_t i = 0; i < count; i++) { /* all of them, before any memory changes */
        s = cg_ef_exchange_prepare_(efs[i], &layers[i].desc, t, layers[i].x, &runs[i]);
        for (size_t j = 0; j < i && s == CG_OK; j++)
            if (efs[j] == efs[i]) s = CG_E_ARG;
        if (s != CG_OK && failed == CG_OK) {
            failed = s;
            who = i;
        }
    }
    for (size_t i = 0; i < count; i++) {
        cg_ef_exchange_ctx_ *r = &runs[i];
        r->grad = layers[i].x;
        layers[i].desc = r->desc;
        if (failed != CG_OK || !r->buffers.exchange_bytes) {
            layers[i].x = i == who ? NULL : layers[i].x;
            continue;
        }
        s = cg_ef_exchange_begin_(efs[i], &r->caller_desc, t, r->grad, at, r);
        if (r->fill.make)
            cg_ef_record_energy_(efs[i], cg_ef_pass_(cg_ef_compensate_in_place_, &r->step, r->p, efs[i]->desc.n));
        layers[i].desc = r->desc;
        layers[i].x = s == CG_OK ? r->p : NULL;
        at += (size_t)(r->buffers.vector_bytes + r->buffers.packet_bytes);
    }
    room = bytes - (size_t)(at - (uint8_t *)mem);
    s = cg_exchange_layers(layers, count, small, t, at, room, report);
    for (size_t i = 0; i < count; i++) {
        if (efs[i]->carry && layers[i].report.route == CG_ROUTE_SCATTER)
            efs[i]->carry_first = cg_stripe_offset_(layers[i].n, (size_t)t->size, (size_t)t->rank);
        layers[i].x = runs[i].grad;
        layers[i].desc = runs[i].caller_desc;
        if (failed == CG_OK && efs[i]->stats.kept)
            layers[i].status = cg_ef_exchange_finish_(
                efs[i], &runs[i], layers[i].status, &layers[i].report, runs[i].grad);
        if (layers[i].status != CG_OK && s == CG_OK) s = layers[i].status;
    }
    if (failed == CG_OK) return s;
    if (report && s == CG_E_ARG) report->why = cg_status_str(failed);
    for (size_t i = 0; i < count; i++) layers[i].status = failed;
    return failed;
}
CG_API_ cg_status cg_ef_exchange_layers(cg_ef *const *efs, cg_layer *layers, size_t count, size_t small,
    const cg_transport *transport, void *mem, size_t bytes, cg_report *report) {
    const size_t need = cg_ef_layers_memory(efs, layers, count, small, transport);
    cg_fenv_ env;
    cg_status s;
    if (report) memset(report, 0, sizeof *report);
    if ((count && (!efs || !layers)) || !transport) return CG_E_ARG;
    /* tells the others */
    if (!need || !mem || bytes < need) return cg_exchange_layers(layers, count, small, transport, NULL, 0, report);
    env = cg_fenv_enter_();
    s = cg_ef_exchange_layers_(efs, layers, count, small, transport, mem, bytes, report);
    cg_fenv_leave_(env);
    return s;
}

/* src/ef/changes.h */
/* ---- >>changes ---- */

CG_API_ cg_status cg_ef_rescale(cg_ef *ef, float factor) {
    cg_fenv_ env;
    if (!ef || !cg_is_finite_(factor)) return CG_E_ARG;
    if (ef->pending) return CG_E_STATE;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_DIFFERENCE_) || ef->desc.kind == CG_EF_SIGNUM) return CG_E_UNSUPPORTED;
    env = cg_fenv_enter_();
    cg_ef_scale_vector_(ef, 0, factor);
    for (size_t i = 0; ef->carry && i < ef->desc.carry; i++) {
        const float v = cg_times_(ef->carry[i], factor);
        ef->carry[i] = cg_saturate_(factor == 1.0f ? v : cg_faded_(v));
    }
    ef->reach *= factor < 0.0f ? -(double)factor : (double)factor;
    ef->hint = ef->threshold = 0.0f;
    cg_fenv_leave_(env);
    return CG_OK;
}
CG_API_ cg_status cg_ef_set_rate(cg_ef *ef, float rate) {
    if (!ef || !cg_is_finite_(rate) || rate == 0.0f) return CG_E_ARG;
    if (ef->pending) return CG_E_STATE;
    ef->desc.rate = rate;
    return CG_OK;
}
CG_API_ cg_status cg_ef_set_ratio(cg_ef *ef, float ratio) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_status s = CG_OK;
    cg_ef_needs_ needs;
    cg_ef_desc d;
    if (!ef) s = CG_E_ARG;
    else if (ef->pending) s = CG_E_STATE;
    else {
        d = ef->desc;
        cg_op_set_ratio_(&d.op, ratio);
        if (!cg_op_ratio_stage_(&d.op)) s = CG_E_UNSUPPORTED;
        else s = cg_ef_check_(&d, &needs);
        if (s == CG_OK && needs.scratch_bytes > ef->scratch_bytes) s = CG_E_MEMORY;
        if (s == CG_OK) ef->desc.op = d.op;
    }
    cg_fenv_leave_(env);
    return s;
}
CG_API_ double cg_ef_precondition(const float *momentum, const float *variance, float epsilon, float *out, size_t n) {
    const cg_fenv_ env = cg_fenv_enter_();
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double v = (double)cg_load_(variance, i), by = v > 0.0 ? 1.0 / (cg_sqrt_(v) + (double)epsilon) : 0.0;
        const float u = cg_saturate_((float)((double)cg_load_(momentum, i) * by));
        cg_store_(out, i, u);
        sum += cg_times64_((double)u, (double)u);
    }
    sum = cg_sqrt_(sum);
    cg_fenv_leave_(env);
    return sum;
}

/* src/ef/blobs.h */
/* ---- >>blobs: little-endian, every part in whole words

   byte 0  "cgef"  4 version  8 kind  12 parts present (bit 0 error, 1 velocity, 2 received, 3 error in bytes)
       16 n  24 steps  32 silent  40 moves  48 first of carry  56 floats of carry  64 floats of warm
       72 moved, ten doubles  152 error  160 error when sent  168 score  176 reach  184 size (doubles)
       192 scale  196 hint  200 threshold (floats)  204 zeros to 240  240 checksum of everything else, as of a packet
   256 error, velocity, received (floats; or n codes and the scales of 64, filled to a word), carry, warm */

static void cg_put_double_(uint8_t *p, double v) {
    uint64_t u;
    memcpy(&u, &v, 8);
    cg_put64_(p, u);
}
static double cg_get_double_(const uint8_t *p) {
    const uint64_t u = cg_get64_(p);
    double v;
    memcpy(&v, &u, 8);
    return v;
}
static uint64_t cg_residual8_saved_bytes_(size_t n) {
    return (cg_add_sat_(n, cg_mul_sat_(2, cg_add_sat_(n, CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_)) + 3) & ~(uint64_t)3;
}
static uint32_t cg_ef_section_mask_(const cg_ef *ef) {
    return (ef->vector[0] ? 1u : 0u) | (ef->vector[1] ? 2u : 0u) | (ef->vector[2] ? 4u : 0u) | (ef->bytes ? 8u : 0u);
}
static uint64_t cg_ef_blob_bytes_(const cg_ef *ef) {
    uint64_t bytes = CG_EF_HEADER_BYTES_;
    for (int i = 0; i < 3; i++)
        if (ef->vector[i]) bytes = cg_add_sat_(bytes, cg_mul_sat_(4, ef->desc.n));
    if (ef->bytes) bytes = cg_add_sat_(bytes, cg_residual8_saved_bytes_(ef->desc.n));
    return cg_add_sat_(bytes, cg_mul_sat_(4, cg_add_sat_(ef->carry ? ef->desc.carry : 0, ef->warm_count)));
}
CG_API_ size_t cg_ef_save_bytes(const cg_ef *ef) { return ef ? cg_size_or_zero_(cg_ef_blob_bytes_(ef)) : 0; }

static uint8_t *cg_ef_write_floats_(uint8_t *p, const float *v, size_t n) {
    for (size_t i = 0; v && i < n; i++, p += 4) cg_put32_(p, cg_as_bits_(v[i]));
    return p;
}
static cg_checksum_ cg_ef_blob_checksum_(const uint8_t *p, size_t len) {
    static const uint8_t zeros[16] = { 0 };
    const cg_kernels_ *kernels = cg_kernels_now_();
    cg_checksum_ sum = cg_checksum_of_(kernels, p, 240);
    sum = cg_checksum_concat_(sum, cg_checksum_of_(kernels, zeros, 16));
    return cg_checksum_concat_(sum, cg_checksum_of_(kernels, p + CG_EF_HEADER_BYTES_, len - CG_EF_HEADER_BYTES_));
}
static cg_status cg_ef_save_(const cg_ef *ef, uint8_t *buf, size_t cap, size_t *len) {
    const size_t n = ef->desc.n, bytes = cg_size_or_zero_(cg_ef_blob_bytes_(ef)),
                 codes = cg_size_or_zero_(cg_residual8_saved_bytes_(n)),
                 have = n + 2 * ((n + CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_);
    uint8_t *p = buf + CG_EF_HEADER_BYTES_;
    cg_checksum_ sum;
    if (ef->pending) return CG_E_STATE;
    if (cap < bytes) return CG_E_CAPACITY;
    memset(buf, 0, CG_EF_HEADER_BYTES_);
    cg_put32_(buf, CG_EF_MAGIC_);
    cg_put32_(buf + 4, CG_EF_VERSION_);
    cg_put32_(buf + 8, ef->desc.kind);
    cg_put32_(buf + 12, cg_ef_section_mask_(ef));
    cg_put64_(buf + 16, n);
    cg_put64_(buf + 24, ef->steps);
    cg_put64_(buf + 32, ef->silent);
    cg_put64_(buf + 40, ef->moves);
    cg_put64_(buf + 48, ef->carry_first);
    cg_put64_(buf + 56, ef->carry ? ef->desc.carry : 0);
    cg_put64_(buf + 64, ef->warm_count);
    for (int i = 0; i < 10; i++) cg_put_double_(buf + 72 + 8 * i, ef->moved[i]);
    cg_put_double_(buf + 152, ef->error);
    cg_put_double_(buf + 160, ef->error_sent);
    cg_put_double_(buf + 168, ef->score);
    cg_put_double_(buf + 176, ef->reach);
    cg_put_double_(buf + 184, ef->size);
    cg_put32_(buf + 192, cg_as_bits_(ef->scale));
    cg_put32_(buf + 196, cg_as_bits_(ef->hint));
    cg_put32_(buf + 200, cg_as_bits_(ef->threshold));
    p = cg_ef_write_floats_(p, ef->vector[0], n);
    if (ef->bytes) {
        memcpy(p, ef->bytes, have);
        memset(p + have, 0, codes - have);
        p += codes;
    }
    p = cg_ef_write_floats_(p, ef->vector[1], n);
    p = cg_ef_write_floats_(p, ef->vector[2], n);
    p = cg_ef_write_floats_(p, ef->carry, ef->desc.carry);
    cg_ef_write_floats_(p, ef->warm, ef->warm_count);
    sum = cg_ef_blob_checksum_(buf, bytes);
    cg_put64_(buf + 240, sum.a);
    cg_put64_(buf + 248, sum.b);
    *len = bytes;
    return CG_OK;
}
CG_API_ cg_status cg_ef_save(const cg_ef *ef, void *buf, size_t cap, size_t *len) {
    cg_fenv_ env;
    cg_status s;
    if (len) *len = 0;
    if (!ef || !buf || !len) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_ef_save_(ef, (uint8_t *)buf, cap, len);
    cg_fenv_leave_(env);
    return s;
}
static int cg_ef_is_nonnegative_(double v) { return v >= 0.0 && v <= 1.7976931348623157e308; }
static int cg_floats_finite_(const uint8_t *p, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        if (!cg_is_finite_(cg_as_float_(cg_get32_(p + 4 * (size_t)i)))) return 0;
    return 1;
}
/* Everything that can be wrong with a blob. alone: it is taken as it is, and its carry must fit. */
static cg_status cg_ef_blob_check_(const cg_ef *ef, const uint8_t *p, size_t len, int alone) {
    const size_t n = ef->desc.n;
    uint64_t carry, first, warm, floats;
    cg_checksum_ sum;
    if (!p) return CG_E_ARG;
    if (len < CG_EF_HEADER_BYTES_ || len % 4 || cg_get32_(p) != CG_EF_MAGIC_) return CG_E_CORRUPT;
    sum = cg_ef_blob_checksum_(p, len);
    if (sum.a != cg_get64_(p + 240) || sum.b != cg_get64_(p + 248)) return CG_E_CORRUPT;
    if (cg_get32_(p + 4) != CG_EF_VERSION_) return CG_E_VERSION;
    first = cg_get64_(p + 48);
    carry = cg_get64_(p + 56);
    warm = cg_get64_(p + 64);
    if (cg_get32_(p + 8) != ef->desc.kind || cg_get32_(p + 12) != cg_ef_section_mask_(ef) || cg_get64_(p + 16) != n ||
        warm != ef->warm_count)
        return CG_E_MISMATCH;
    if (alone ? carry != (ef->carry ? ef->desc.carry : 0) : carry && (carry > n || first > n - (size_t)carry))
        return CG_E_MISMATCH;
    floats = cg_add_sat_(carry, warm);
    for (int i = 0; i < 3; i++)
        if (ef->vector[i]) floats = cg_add_sat_(floats, n);
    if (cg_add_sat_(CG_EF_HEADER_BYTES_ + (ef->bytes ? cg_residual8_saved_bytes_(n) : 0), cg_mul_sat_(4, floats)) !=
        len)
        return CG_E_CORRUPT;
    for (int i = 0; i < 15; i++)
        if (!cg_ef_is_nonnegative_(cg_get_double_(p + 72 + 8 * i))) return CG_E_CORRUPT;
    if (!(cg_as_float_(cg_get32_(p + 192)) > 0.0f && cg_as_float_(cg_get32_(p + 192)) <= 1.0f) ||
        !cg_floats_finite_(p + 196, 2))
        return CG_E_CORRUPT;
    for (size_t i = 204; i < 240; i++)
        if (p[i]) return CG_E_CORRUPT;
    if (ef->bytes) {
        for (size_t b = 0; b < (n + CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_; b++)
            if ((p[CG_EF_HEADER_BYTES_ + n + 2 * b + 1] << 8 | p[CG_EF_HEADER_BYTES_ + n + 2 * b]) > 0x7f7f)
                return CG_E_CORRUPT;
        p += cg_size_or_zero_(cg_residual8_saved_bytes_(n));
    }
    return cg_floats_finite_(p + CG_EF_HEADER_BYTES_, floats) ? CG_OK : CG_E_CORRUPT;
}
static void cg_ef_load_header_(cg_ef *ef, const uint8_t *p) {
    ef->steps = cg_get64_(p + 24);
    ef->silent = cg_get64_(p + 32);
    ef->moves = cg_get64_(p + 40);
    ef->carry_first = cg_size_or_zero_(cg_get64_(p + 48));
    for (int i = 0; i < 10; i++) ef->moved[i] = cg_get_double_(p + 72 + 8 * i);
    ef->error = cg_get_double_(p + 152);
    ef->error_sent = cg_get_double_(p + 160);
    ef->score = cg_get_double_(p + 168);
    ef->reach = cg_get_double_(p + 176);
    ef->size = cg_get_double_(p + 184);
    ef->scale = cg_as_float_(cg_get32_(p + 192));
    ef->hint = cg_as_float_(cg_get32_(p + 196));
    ef->threshold = cg_as_float_(cg_get32_(p + 200));
}
static const uint8_t *cg_ef_read_floats_(const uint8_t *p, float *v, size_t n) {
    for (size_t i = 0; v && i < n; i++, p += 4) v[i] = cg_as_float_(cg_get32_(p));
    return p;
}
static void cg_ef_load_one_(cg_ef *ef, const uint8_t *blob) {
    const size_t n = ef->desc.n;
    const uint8_t *p = blob + CG_EF_HEADER_BYTES_;
    p = cg_ef_read_floats_(p, ef->vector[0], n);
    if (ef->bytes) {
        memcpy(ef->bytes, p, n + 2 * ((n + CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_));
        p += cg_size_or_zero_(cg_residual8_saved_bytes_(n));
    }
    p = cg_ef_read_floats_(p, ef->vector[1], n);
    p = cg_ef_read_floats_(p, ef->vector[2], n);
    if (cg_get64_(blob + 56) == ef->desc.carry) cg_ef_read_floats_(p, ef->carry, ef->desc.carry);
    p += 4 * cg_size_or_zero_(cg_get64_(blob + 56));
    cg_ef_read_floats_(p, ef->warm, ef->warm_count);
    cg_ef_load_header_(ef, blob);
}
/* What blob q says of value i of part w (0 error, 1 velocity, 2 received): in units that do not depend on its scale. */
static double cg_ef_blob_value_(const cg_ef *ef, const uint8_t *p, int w, size_t i) {
    const size_t n = ef->desc.n, codes = ef->bytes ? cg_size_or_zero_(cg_residual8_saved_bytes_(n)) : 0;
    double scale = w == 2 || cg_ef_has_trait_(&ef->desc, CG_EF_DIFFERENCE_) ? 1.0
                                                                            : (double)cg_as_float_(cg_get32_(p + 192));
    if (w == 1 && ef->desc.kind == CG_EF_VARIANCE) scale *= scale;
    p += CG_EF_HEADER_BYTES_;
    if (w == 0 && ef->bytes) {
        const float by = cg_residual8_scale_get_(p + n + 2 * (i / CG_EF_BUCKET_));
        float f;
        cg_quantizer_of_(&cg_residual8_stage_)->decode(cg_kernels_now_(), &cg_residual8_stage_, &by, p + i, 1, &f, 0);
        return (double)f / scale;
    }
    p += codes;
    for (int v = 0; v < w; v++)
        if (ef->vector[v]) p += 4 * n;
    return (double)cg_as_float_(cg_get32_(p + 4 * i)) / scale;
}
/* Second legs end here: what one has kept of a mean, every rank gets. */
static double cg_ef_blob_carry_(const cg_ef *ef, const uint8_t *p, size_t i) {
    const uint64_t first = cg_get64_(p + 48), many = cg_get64_(p + 56), warm = cg_get64_(p + 64);
    const size_t len = cg_size_or_zero_(cg_ef_blob_bytes_(ef)) - 4 * (ef->carry ? ef->desc.carry : 0) +
        4 * (size_t)many;
    if (i < first || i - first >= many) return 0.0;
    return (double)cg_as_float_(cg_get32_(p + len - 4 * (size_t)(warm + many) + 4 * (i - (size_t)first)));
}
static float cg_ef_blobs_mean_(const cg_ef *ef, const void *const *bufs, size_t count, int w, size_t i) {
    const int differs = cg_ef_has_trait_(&ef->desc, CG_EF_DIFFERENCE_);
    double sum = 0.0;
    for (size_t q = 0; q < count; q++) {
        /* the mean of all h is H, but for a carry */
        sum += cg_ef_blob_value_(ef, (const uint8_t *)bufs[q], differs && w == 0 ? 2 : w, i);
        if (w == 0 && !differs) sum += cg_times64_((double)count, cg_ef_blob_carry_(ef, (const uint8_t *)bufs[q], i));
    }
    return cg_saturate_((float)(sum / (double)count));
}
static void cg_ef_load_mean_(cg_ef *ef, const void *const *bufs, size_t count) {
    const size_t n = ef->desc.n;
    float e[CG_EF_BUCKET_];
    double reach = 0.0;
    cg_ef_load_one_(ef, (const uint8_t *)bufs[0]);
    for (int w = 0; w < 3; w++)
        for (size_t i = 0; ef->vector[w] && i < n; i++) ef->vector[w][i] = cg_ef_blobs_mean_(ef, bufs, count, w, i);
    for (size_t i = 0; ef->bytes && i < n; i++) {
        e[i % CG_EF_BUCKET_] = cg_ef_blobs_mean_(ef, bufs, count, 0, i);
        if (i % CG_EF_BUCKET_ == CG_EF_BUCKET_ - 1 || i == n - 1)
            cg_residual8_encode_(cg_kernels_now_(), ef, i / CG_EF_BUCKET_, e);
    }
    for (size_t q = 0; q < count; q++) {
        const double one = cg_get_double_((const uint8_t *)bufs[q] + 176);
        reach = one > reach ? one : reach;
    }
    if (ef->carry) memset(ef->carry, 0, 4 * ef->desc.carry);
    ef->scale = 1.0f;
    ef->reach = 2.0 * reach;
}
static cg_status cg_ef_load_(cg_ef *ef, const void *const *bufs, const size_t *lens, size_t count, int alone) {
    cg_fenv_ env;
    cg_status s = CG_OK;
    if (!ef || !bufs || !lens || !count) return CG_E_ARG;
    if (ef->pending) return CG_E_STATE;
    env = cg_fenv_enter_();
    for (size_t q = 0; q < count && s == CG_OK; q++)
        s = cg_ef_blob_check_(ef, (const uint8_t *)bufs[q], lens[q], alone);
    if (s == CG_OK && alone) cg_ef_load_one_(ef, (const uint8_t *)bufs[0]);
    else if (s == CG_OK) cg_ef_load_mean_(ef, bufs, count);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_ef_load(cg_ef *ef, const void *buf, size_t len) { return cg_ef_load_(ef, &buf, &len, 1, 1); }
CG_API_ cg_status cg_ef_load_mean(cg_ef *ef, const void *const *bufs, const size_t *lens, size_t count) {
    return cg_ef_load_(ef, bufs, lens, count, 0);
}

/* src/core/base/fp_end.h */
#if defined(__clang__)
#  pragma STDC FP_CONTRACT DEFAULT
#  if defined(__x86_64__) || defined(__i386__)
#    pragma float_control(pop)
#  endif
#elif defined(__GNUC__)
#  pragma GCC pop_options
#endif

/* src/core/base/end.h */
#endif /* COMPGRAD_IMPLEMENTATION */
