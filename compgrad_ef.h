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

#include "compgrad_exchange.h"       /* outside the guard: its implementation has to come before the one below */

#ifndef COMPGRAD_EF_H
#define COMPGRAD_EF_H

typedef enum cg_ef_kind {
    CG_EF_CLASSIC = 0, CG_EF_LOCO, CG_EF_SCALECOM, CG_EF_ECQ, CG_EF_MOMENTUM, CG_EF_SIGNUM, CG_EF_VARIANCE, CG_EF_EF21, CG_EF_DIANA, CG_EF_LAQ,
    CG_EF_ONEBIT_ADAM
} cg_ef_kind;

/* The ratio kept in the first stages * period steps (by tag.step), in place of the operator's own. */
typedef enum cg_warmup_kind {
    CG_WARMUP_NONE = 0, CG_WARMUP_POWER /* ratio^((stage+1)/(stages+1)), DGC */, CG_WARMUP_QUARTERS /* 1/4, 1/16, ...: 75 %, 93.75 % less */,
    CG_WARMUP_LINEAR /* 1 - (1 - ratio) (stage+1)/(stages+1) */, CG_WARMUP_TABLE
} cg_warmup_kind;
typedef struct cg_warmup { uint32_t kind, stages; uint64_t period /* steps of a stage, an epoch; 0 = 1 */; const float *table /* stages of them */; } cg_warmup;
CG_API_ float cg_warmup_ratio(const cg_warmup *warmup, float ratio, uint64_t step);

/* The operator of some tensors: the first rule that applies. */
typedef struct cg_ef_rule { uint32_t first, last /* tensors */; size_t n_from /* and at least so long */; cg_op op; } cg_ef_rule;
enum { CG_CLIP_NORM = 0, CG_CLIP_VALUE = 1 };

typedef struct cg_ef_desc {          /* zero = default */
    cg_op op;
    size_t n;
    uint32_t kind;                   /* cg_ef_kind */
    int workers;                     /* N, for clipping; 0 = 1 */
    float momentum;
    int nesterov;                    /* of MOMENTUM */
    float clip;                      /* of g, before everything else: at clip / sqrt(workers); 0: not */
    float decay;                     /* 0 = the kind's default */
    int finite;                      /* grad has been checked by the caller */
    float rate;                      /* g is multiplied by it; 0 = 1. cg_ef_set_rate changes it */
    float alpha;                     /* of ECQ and DIANA; 0 = the kind's default */
    uint32_t clip_by;                /* CG_CLIP_NORM of the whole vector, or CG_CLIP_VALUE */
    int bytes;                       /* memory in 8 bits: CLASSIC, LOCO, SCALECOM, ECQ */
    uint64_t reset;                  /* forget the error every so many steps; 0: never */
    float laq_step;                  /* LAQ: the step size of the model; it is silent while |D|^2 < sum of laq_weight/10 |moved|^2 over the last */
    float laq_weight;                /* ten steps / laq_step^2 + 3 (error now + error when last sent); 0 = .8 */
    uint64_t laq_patience;           /* at most so many silent steps in a row; 0 = 100 */
    uint64_t dense_steps;            /* so many, by tag.step, are sent as they are */
    size_t small;                    /* shorter vectors always are */
    cg_warmup warmup;                /* from then on */
    const cg_ef_rule *rules;
    size_t rule_count;
    cg_op (*policy)(void *user, const cg_tag *tag, size_t n, cg_op planned);   /* has the last word, but for dense steps, small vectors and */
    void *policy_user;               /* warm-up; may be asked more than once; the same on all ranks, and no operator with more scratch than op or a rule */
    size_t carry;                    /* floats of second-leg memory (cg_exchange_carry) that cg_ef_exchange shall keep, and save */
} cg_ef_desc;

typedef struct cg_ef_stats {         /* of the last step */
    double put, sent;                /* |p|^2 and |D|^2 */
    float gain;                      /* sent / put; 0 if there is nothing */
    float clipped;                   /* g was multiplied by it */
    int silent;                      /* LAQ sent nothing */
    int kept;                        /* the gradient is in memory, sent or not */
} cg_ef_stats;

typedef struct cg_ef {               /* yours; nothing in it is of interest but through the calls below */
    cg_ef_desc desc;
    cg_ef_stats stats;
    uint64_t steps, silent;          /* silent: in a row */
    int pending;
    float *vector[3];                /* error, velocity, received */
    uint8_t *bytes;                  /* the error in 8 bits: n codes, then a u16 of every 64 */
    float *warm, *carry, *whole;     /* low-rank; second leg; p, where it must be in one piece */
    size_t warm_count, carry_first;
    void *scratch;
    size_t scratch_bytes;
    float scale, hint, threshold, received_by;       /* memory is this times what it means; for the next top-k, two; by which D goes into H */
    double reach, size;              /* no value in memory is larger; |p| of the last step */
    double moved[10], error, error_sent, score;
    uint64_t moves;
} cg_ef;

enum { CG_EF_ERROR = 0 /* e, v of MOMENTUM, m of SIGNUM, r, h */, CG_EF_VELOCITY = 1 /* u; v of VARIANCE and EF21 */, CG_EF_RECEIVED = 2 /* H, M */ };

CG_API_ size_t cg_ef_memory(const cg_ef_desc *desc);                 /* 0: refused (cg_ef_init says why), or it overflows */
CG_API_ size_t cg_ef_bound(const cg_ef_desc *desc);                  /* no packet is larger, but a policy's may */
CG_API_ CG_CHECKED_ cg_status cg_ef_init(cg_ef *ef, const cg_ef_desc *desc, void *mem, size_t bytes);
CG_API_ void cg_ef_reset(cg_ef *ef);                                 /* as after init */
CG_API_ const float *cg_ef_residual(const cg_ef *ef);                /* n floats; NULL if they are bytes: cg_ef_read */
CG_API_ CG_CHECKED_ cg_status cg_ef_read(const cg_ef *ef, int which, float *out, size_t n);
CG_API_ float cg_ef_scale(const cg_ef *ef);                          /* of the last step */
CG_API_ cg_ef_stats cg_ef_last(const cg_ef *ef);
CG_API_ cg_op cg_ef_op(const cg_ef *ef, const cg_tag *tag);          /* the operator of that step */

CG_API_ CG_CHECKED_ cg_status cg_ef_compress(cg_ef *ef, const cg_tag *tag, const float *grad, void *packet, size_t cap, size_t *len);
CG_API_ CG_CHECKED_ cg_status cg_ef_compress_with(cg_ef *ef, const cg_tag *tag, const cg_side *side, const float *grad, void *packet, size_t cap, size_t *len);
CG_API_ CG_CHECKED_ cg_status cg_ef_commit(cg_ef *ef, const void *used, size_t used_len, float *mean);
CG_API_ CG_CHECKED_ cg_status cg_ef_commit_with(cg_ef *ef, const cg_side *side, const void *used, size_t used_len, float *mean);
CG_API_ CG_CHECKED_ cg_status cg_ef_rollback(cg_ef *ef, const void *packet, size_t len);     /* the packet may be NULL */

/* Clip, momentum, compensate, compress, exchange, decompress, remember: desc.op, into, warm and carry are ef's; score, if leader is
   CG_LEADER_BY_SCORE and it is 0, a running mean of |grad| (0.9 of it stays). A dense step goes by auto where merge, shared or region
   would refuse it. desc.model takes the step at once, by desc.rate (beside ef's own rate, if it has one); grad is then room, but the
   result all the same for EF21, DIANA, LAQ and ONEBIT_ADAM (whose M is not preconditioned: take that step yourself). */
CG_API_ size_t cg_ef_exchange_memory(const cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport);
CG_API_ CG_CHECKED_ cg_status cg_ef_exchange(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, float *grad, void *mem, size_t bytes,
    cg_report *report);

/* Layer by layer, as cg_exchange_layers: layers[i].x is the gradient of efs[i], and desc is as for cg_ef_exchange (op, n, warm and carry
   are filled in). If a gradient is refused here none is put in memory; if another rank refuses, all of them are kept. */
CG_API_ size_t cg_ef_layers_memory(cg_ef *const *efs, cg_layer *layers, size_t count, size_t small, const cg_transport *transport);
CG_API_ CG_CHECKED_ cg_status cg_ef_exchange_layers(cg_ef *const *efs, cg_layer *layers, size_t count, size_t small, const cg_transport *transport, void *mem,
    size_t bytes, cg_report *report);

CG_API_ CG_CHECKED_ cg_status cg_ef_rescale(cg_ef *ef, float factor);    /* the error, when a learning rate outside changes: by old / new */
CG_API_ CG_CHECKED_ cg_status cg_ef_set_rate(cg_ef *ef, float rate);     /* not 0 */
CG_API_ CG_CHECKED_ cg_status cg_ef_set_ratio(cg_ef *ef, float ratio);   /* of desc.op; not above what init saw */
CG_API_ CG_CHECKED_ cg_status cg_ef_moved(cg_ef *ef, double squared);    /* LAQ: |model after - before|^2 of the step just done */

CG_API_ size_t cg_ef_save_bytes(const cg_ef *ef);
CG_API_ CG_CHECKED_ cg_status cg_ef_save(const cg_ef *ef, void *buf, size_t cap, size_t *len);
CG_API_ CG_CHECKED_ cg_status cg_ef_load(cg_ef *ef, const void *buf, size_t len);
CG_API_ CG_CHECKED_ cg_status cg_ef_load_mean(cg_ef *ef, const void *const *bufs, const size_t *lens, size_t count);

/* out = m / (sqrt(variance) + epsilon), and 0 where the variance is 0: an operator of one bit cannot send a zero. Returns |out|,
   for LAMB's ratio. */
CG_API_ double cg_ef_precondition(const float *momentum, const float *variance, float epsilon, float *out, size_t n);

#endif /* COMPGRAD_EF_H */

/* ============================================================================================== */
#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_LINKED) && !defined(COMPGRAD_EF_IMPLEMENTED_)
#define COMPGRAD_EF_IMPLEMENTED_

#if defined(__clang__)               /* as in compgrad.h: no bit depends on the includer's flags */
#  if defined(__x86_64__) || defined(__i386__)
#    pragma float_control(push)
#    pragma float_control(precise, on)
#  endif
#  pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#  pragma GCC push_options
#  pragma GCC optimize("no-fast-math", "fp-contract=off")
#endif

/* ---- >>kinds: a row each ------------------------------------------------------------------------------- */

enum { CG_EF_PLACE_ = 1 /* p takes the error's place */, CG_EF_SPEED_ = 2 /* a second vector */, CG_EF_GETS_ = 4 /* remembers results */,
       CG_EF_DIFFERS_ = 8 /* p = g - h */, CG_EF_BYTES_ = 16 /* may be kept in 8 bits */, CG_EF_WANTS_ = 32 /* a momentum */ };
typedef struct cg_ef_row_ { uint8_t is; float decay; } cg_ef_row_;
static const cg_ef_row_ cg_ef_rows_[] = {            /* by cg_ef_kind */
    { CG_EF_PLACE_ | CG_EF_BYTES_, 1.0f }, { CG_EF_BYTES_, 0.8f }, { CG_EF_BYTES_, 0.1f }, { CG_EF_BYTES_, 0.9f },
    { CG_EF_PLACE_ | CG_EF_SPEED_ | CG_EF_WANTS_, 1.0f }, { CG_EF_PLACE_ | CG_EF_WANTS_, 1.0f }, { CG_EF_PLACE_ | CG_EF_SPEED_, 0.999f },
    { CG_EF_DIFFERS_ | CG_EF_GETS_, 1.0f }, { CG_EF_DIFFERS_ | CG_EF_GETS_, 1.0f }, { CG_EF_DIFFERS_ | CG_EF_GETS_, 1.0f },
    { CG_EF_PLACE_ | CG_EF_GETS_ | CG_EF_WANTS_, 1.0f },
};
#define CG_EF_MAGIC_ 0x66656763u                     /* "cgef" */
#define CG_EF_HUGE_ 1e37f                            /* from here on sums are watched */
enum { CG_EF_BUCKET_ = 64, CG_EF_STAGES_ = 4096, CG_EF_HEAD_ = 256, CG_EF_VERSION_ = 1 };

static const cg_ef_row_ *cg_ef_row_of_(const cg_ef_desc *d) { return &cg_ef_rows_[d->kind]; }
static int cg_ef_is_(const cg_ef_desc *d, int what) { return (cg_ef_row_of_(d)->is & what) != 0; }
static int cg_ef_has_speed_(const cg_ef_desc *d) { return cg_ef_is_(d, CG_EF_SPEED_) || (d->kind == CG_EF_EF21 && d->momentum != 0.0f); }
static int cg_ef_in_place_(const cg_ef_desc *d) { return cg_ef_is_(d, CG_EF_PLACE_) && !d->bytes; }
static float cg_ef_decay_(const cg_ef_desc *d) { return d->decay != 0.0f ? d->decay : cg_ef_row_of_(d)->decay; }

/* ---- >>omega: how much an unbiased operator may add, E|C(x) - x|^2 <= w |x|^2; 0 for others -------------------------- */

static double cg_ef_least_(double a, double b) { return a < b ? a : b; }
static double cg_omega_quantize_(const cg_stage *q, double k) {
    const double bucket = q->size && (double)q->size < k ? (double)q->size : k, root = cg_sqrt_(bucket), s = (double)q->arg;
    const double levels = q->id == CG_QUANTIZE_QSGD ? s : (double)((1 << (q->arg & 15)) - 1);
    double least = 1.0;
    if (q->flags & CG_FLAG_NEAREST) return 0.0;
    switch (q->id) {
        case CG_QUANTIZE_ABSMAX:
            if (q->arg == 1) return bucket;
            return q->arg == 2 ? (root - 1.0) / 2.0 : bucket / (4.0 * ((double)(1 << (q->arg - 1)) - 1.0) * ((double)(1 << (q->arg - 1)) - 1.0));
        case CG_QUANTIZE_MINMAX: return bucket / (2.0 * levels * levels);
        case CG_QUANTIZE_QSGD:
            if (!(q->flags & CG_FLAG_MAX)) return cg_ef_least_(bucket / (s * s), root / s);
            return q->arg == 1 ? (root - 1.0) / 2.0 : bucket / (4.0 * s * s);
        case CG_QUANTIZE_TERNARY: return q->flags & CG_FLAG_CLIP ? 0.0 : (root - 1.0) / 2.0;
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
    uint64_t drawn = cg_drawn_(op, n, NULL), turned = cg_turned_(op, drawn);
    if (!n || !turned) return 0.0;
    if (op->sample.id && !(op->sample.flags & CG_FLAG_UNSCALED)) grows *= op->sample.id == CG_SAMPLE_PERMK ? (double)op->sample.size : (double)n / (double)drawn;
    if (op->transform.id == CG_TRANSFORM_ATOMO) {
        const double rows = (double)cg_rows_(op), cols = (double)cg_cols_(op), least = cg_ef_least_(rows, cols) / (double)cg_matrix_rank_(op);
        grows *= least > 1.0 ? least : 1.0;
    }
    if (op->select.id == CG_SELECT_WANGNI) grows *= 1.0 / (double)op->select.value;
    if (op->select.id == CG_SELECT_WANGNI_VARIANCE) grows *= 1.0 + (double)op->select.value;
    return grows * (1.0 + cg_omega_quantize_(&op->quantize, (double)cg_most_(op, turned))) - 1.0;
}
/* No value is off by as much as the largest of its bucket: then memory cannot grow, whatever w is. */
static int cg_is_near_(const cg_stage *q, int turned) {
    const unsigned least = turned ? 3 : 2;           /* bits; rotated, in the mean of squares */
    if (q->id == CG_QUANTIZE_ABSMAX) return q->arg >= 3;
    if (q->id == CG_QUANTIZE_MINMAX) return q->arg >= least && !(q->flags & CG_FLAG_NORM);
    return q->id == CG_QUANTIZE_QSGD && (q->flags & CG_FLAG_MAX) && q->arg >= 2;
}
/* What memory, and what is compressed, is multiplied by. */
static float cg_ef_scale_(const cg_ef_desc *d, const cg_op *op) {
    cg_op rest = *op;
    double w;
    if (d->kind == CG_EF_DIANA || d->kind == CG_EF_SIGNUM) return 1.0f;
    if (cg_is_near_(&op->quantize, op->transform.id != 0)) memset(&rest.quantize, 0, sizeof rest.quantize);
    w = cg_omega_(&rest, d->n);
    return w < 1.0 ? 1.0f : (float)(1.0 / (1.0 + w));
}

/* ---- >>schedule: the operator of a step ----------------------------------------------------------------------- */

/* e^x, x <= 0: halved until the series is short, then squared back. */
static double cg_exp_(double x) {
    double sum = 1.0, term = 1.0;
    int halves = 0;
    if (x < -700.0) return 0.0;
    for (; x < -0.5; x *= 0.5) halves++;
    for (int i = 1; i <= 18; i++) {
        term *= x / (double)i;
        CG_FENCE_(term);
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
    const cg_env_ env = cg_env_enter_();
    const float r = !warmup || (warmup->kind == CG_WARMUP_TABLE && !warmup->table) ? ratio : cg_warmup_ratio_(warmup, ratio, step);
    cg_env_leave_(env);
    return r;
}
/* The stage whose value is the ratio kept, or NULL. */
static cg_stage *cg_ratio_of_(cg_op *op) {
    switch (op->select.id) {
        case CG_SELECT_TOPK: case CG_SELECT_DGC: case CG_SELECT_MSTOPK: case CG_SELECT_SIDCO: case CG_SELECT_WANGNI: case CG_SELECT_SIDES:
        case CG_SELECT_SIDE: case CG_SELECT_CHUNKED: return &op->select;
        default: return op->sample.id == CG_SAMPLE_RANDK ? &op->sample : NULL;
    }
}
static void cg_op_ratio_(cg_op *op, float ratio) {
    cg_stage *s = cg_ratio_of_(op);
    if (!s) return;
    s->value = ratio;
    op->k = 0;
}
static float cg_ef_ratio_(const cg_op *op, size_t n) {
    cg_op copy = *op;
    const cg_stage *s = cg_ratio_of_(&copy);
    return !s ? 1.0f : op->k && n ? (float)((double)cg_count_(0.0f, op->k, n) / (double)n) : s->value;
}
static cg_op cg_ef_warmed_(const cg_ef_desc *d, cg_op op, uint64_t step) {
    const float before = cg_ef_ratio_(&op, d->n), after = cg_warmup_ratio_(&d->warmup, before, step);
    if (after != before) cg_op_ratio_(&op, after);
    return op;
}
static cg_op cg_ef_op_(const cg_ef_desc *d, const cg_tag *tag) {
    const cg_tag none = CG_ZERO;
    cg_op op = d->op;
    if (!tag) tag = &none;
    if (d->n < d->small || tag->step < d->dense_steps) return cg_dense();
    for (size_t i = 0; i < d->rule_count; i++)
        if (tag->tensor >= d->rules[i].first && tag->tensor <= d->rules[i].last && d->n >= d->rules[i].n_from) { op = d->rules[i].op; break; }
    if (d->policy) op = d->policy(d->policy_user, tag, d->n, op);
    op = cg_ef_warmed_(d, op, tag->step - d->dense_steps);
    if (op.sample.id && d->kind != CG_EF_DIANA && d->kind != CG_EF_SIGNUM) op = cg_unscaled(op);
    return op;
}

/* ---- >>plan ---------------------------------------------------------------------------------------------- */

/* Must a stage see all of p at once, with no scratch of its own for it? */
static int cg_ef_needs_all_(const cg_op *op) {
    if (cg_is_matrix_(op)) return 1;
    return !op->sample.id && !op->transform.id && (op->select.id ? op->select.id != CG_SELECT_TOPK : cg_is_user_(&op->quantize));
}
typedef struct cg_ef_needs_ { uint64_t scratch, packet; size_t warm; int whole; } cg_ef_needs_;
static cg_status cg_ef_need_(const cg_ef_desc *d, cg_op op, cg_ef_needs_ *needs) {
    const uint64_t bytes = cg_op_check_(&op) == CG_OK ? cg_scratch_bytes_(&op, d->n) : 0;
    const uint64_t most = cg_is_user_(&op.quantize) ? 1 : cg_bound_(&op, NULL, d->n);    /* a user's codec is not at hand here */
    const cg_op dense = cg_dense();
    if (cg_op_check_(&op) != CG_OK || !most) return CG_E_ARG;
    if (op.select.id == CG_SELECT_ADACOMP && (d->clip != 0.0f || (d->rate != 0.0f && d->rate != 1.0f))) return CG_E_UNSUPPORTED;
    if ((op.select.id == CG_SELECT_VARIANCE) != (d->kind == CG_EF_VARIANCE) && !cg_same_op_(&op, &dense)) return CG_E_UNSUPPORTED;
    if (bytes > needs->scratch) needs->scratch = bytes;
    if (most > needs->packet) needs->packet = most;
    if (cg_ef_needs_all_(&op) && !cg_ef_in_place_(d)) needs->whole = 1;
    if (op.transform.id == CG_TRANSFORM_LOWRANK && cg_cols_(&op) * cg_matrix_rank_(&op) > needs->warm) needs->warm = cg_cols_(&op) * cg_matrix_rank_(&op);
    return CG_OK;
}
/* An operator, at all ratios that warm-up gives it. */
static cg_status cg_ef_need_all_(const cg_ef_desc *d, const cg_op *op, cg_ef_needs_ *needs) {
    cg_status s = cg_ef_need_(d, *op, needs);
    for (uint32_t i = 0; i < d->warmup.stages && s == CG_OK && d->warmup.kind; i++)
        s = cg_ef_need_(d, cg_ef_warmed_(d, *op, i * (d->warmup.period ? d->warmup.period : 1)), needs);
    return s;
}
static int cg_ef_share_(float f) { return f >= 0.0f && f <= 1.0f; }
static cg_status cg_ef_check_(const cg_ef_desc *d, cg_ef_needs_ *needs) {
    cg_status s;
    memset(needs, 0, sizeof *needs);
    if (!d || d->kind > CG_EF_ONEBIT_ADAM || d->workers < 0 || d->clip_by > CG_CLIP_VALUE || d->warmup.kind > CG_WARMUP_TABLE) return CG_E_ARG;
    if (!cg_ef_share_(d->momentum) || d->momentum == 1.0f || !cg_ef_share_(d->decay) || !cg_ef_share_(d->alpha)) return CG_E_ARG;
    if (!(d->clip >= 0.0f && d->clip <= CG_FLT_MAX_) || !cg_is_finite_(d->rate) || !(d->laq_step >= 0.0f && d->laq_step <= CG_FLT_MAX_)) return CG_E_ARG;
    if (!(d->laq_weight >= 0.0f && d->laq_weight <= CG_FLT_MAX_)) return CG_E_ARG;
    if ((d->rule_count && !d->rules) || d->warmup.stages > CG_EF_STAGES_) return CG_E_ARG;
    if (d->warmup.kind == CG_WARMUP_TABLE && d->warmup.stages && !d->warmup.table) return CG_E_ARG;
    if (d->momentum != 0.0f && !cg_ef_is_(d, CG_EF_WANTS_) && d->kind != CG_EF_EF21) return CG_E_UNSUPPORTED;
    if ((d->nesterov && d->kind != CG_EF_MOMENTUM) || (d->bytes && !cg_ef_is_(d, CG_EF_BYTES_))) return CG_E_UNSUPPORTED;
    if (d->reset && (cg_ef_is_(d, CG_EF_DIFFERS_) || d->kind == CG_EF_SIGNUM)) return CG_E_UNSUPPORTED;      /* that is no error */
    if (d->kind == CG_EF_LAQ && d->laq_step == 0.0f) return CG_E_ARG;
    s = cg_ef_need_all_(d, &d->op, needs);
    for (size_t i = 0; i < d->rule_count && s == CG_OK; i++) s = cg_ef_need_all_(d, &d->rules[i].op, needs);
    if (s == CG_OK && (d->dense_steps || d->n < d->small)) s = cg_ef_need_(d, cg_dense(), needs);
    return s;
}
/* Places, and the sum of them. */
static uint64_t cg_ef_plan_(cg_ef *ef, const cg_ef_desc *d, const cg_ef_needs_ *needs, uint8_t *base) {
    const uint64_t vector = cg_mul_(4, d->n);
    cg_carve_ c;
    c.base = base;
    c.bytes = 0;
    ef->vector[0] = d->bytes ? NULL : (float *)(void *)cg_carve_take_(&c, vector);
    ef->bytes = d->bytes ? cg_carve_take_(&c, cg_add_(d->n, cg_mul_(2, cg_add_(d->n, CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_))) : NULL;
    ef->vector[1] = cg_ef_has_speed_(d) ? (float *)(void *)cg_carve_take_(&c, vector) : NULL;
    ef->vector[2] = cg_ef_is_(d, CG_EF_GETS_) ? (float *)(void *)cg_carve_take_(&c, vector) : NULL;
    ef->warm = needs->warm ? (float *)(void *)cg_carve_take_(&c, cg_mul_(4, needs->warm)) : NULL;
    ef->carry = d->carry ? (float *)(void *)cg_carve_take_(&c, cg_mul_(4, d->carry)) : NULL;
    ef->whole = needs->whole ? (float *)(void *)cg_carve_take_(&c, vector) : NULL;
    ef->scratch = needs->scratch ? cg_carve_take_(&c, needs->scratch) : NULL;
    ef->warm_count = needs->warm;
    ef->scratch_bytes = cg_size_(needs->scratch);
    return c.bytes;
}
CG_API_ size_t cg_ef_memory(const cg_ef_desc *desc) {
    const cg_env_ env = cg_env_enter_();
    cg_ef_needs_ needs;
    cg_ef ef;
    size_t bytes = 0;
    if (cg_ef_check_(desc, &needs) == CG_OK) bytes = cg_size_(cg_add_(cg_ef_plan_(&ef, desc, &needs, NULL), 64));
    cg_env_leave_(env);
    return bytes;
}
CG_API_ size_t cg_ef_bound(const cg_ef_desc *desc) {
    const cg_env_ env = cg_env_enter_();
    cg_ef_needs_ needs;
    const size_t bytes = cg_ef_check_(desc, &needs) == CG_OK ? cg_size_(needs.packet) : 0;
    cg_env_leave_(env);
    return bytes;
}
CG_API_ void cg_ef_reset(cg_ef *ef) {
    const size_t n = ef->desc.n;
    for (int i = 0; i < 3; i++) if (ef->vector[i]) memset(ef->vector[i], 0, 4 * n);
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
    const cg_env_ env = cg_env_enter_();
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
        cg_ef_plan_(ef, desc, &needs, need ? (uint8_t *)mem + skip : (uint8_t *)ef->moved);     /* vectors of no values are somewhere, too */
        cg_ef_reset(ef);
    }
    cg_env_leave_(env);
    return s;
}
CG_API_ float cg_ef_scale(const cg_ef *ef) { return ef->scale; }
CG_API_ cg_ef_stats cg_ef_last(const cg_ef *ef) { return ef->stats; }
CG_API_ const float *cg_ef_residual(const cg_ef *ef) { return ef->vector[0]; }
CG_API_ cg_op cg_ef_op(const cg_ef *ef, const cg_tag *tag) {
    const cg_env_ env = cg_env_enter_();
    const cg_op op = cg_ef_op_(&ef->desc, tag);
    cg_env_leave_(env);
    return op;
}

/* ---- >>bytes in memory: 64 values share a scale, the upper half of a float, rounded up -------------------------------- */

static const cg_stage cg_ef_octets_ = { CG_QUANTIZE_ABSMAX, CG_FLAG_NEAREST, 8, CG_EF_BUCKET_, 0.0f };
static uint8_t *cg_ef_scale_at_(const cg_ef *ef, size_t bucket) { return ef->bytes + ef->desc.n + 2 * bucket; }
static float cg_ef_scale_get_(const uint8_t *at) { return cg_float_((uint32_t)at[0] << 16 | (uint32_t)at[1] << 24); }
static void cg_bytes_get_(const cg_kernels_ *kernels, const cg_ef *ef, size_t bucket, float *out) {
    const size_t first = bucket * CG_EF_BUCKET_, many = cg_min_(CG_EF_BUCKET_, ef->desc.n - first);
    const float scale = cg_ef_scale_get_(cg_ef_scale_at_(ef, bucket));
    cg_quantizer_of_(&cg_ef_octets_)->decode(kernels, &cg_ef_octets_, &scale, ef->bytes + first, many, out, 0);
}
static void cg_bytes_put_(const cg_kernels_ *kernels, const cg_ef *ef, size_t bucket, const float *v) {
    const size_t first = bucket * CG_EF_BUCKET_, many = cg_min_(CG_EF_BUCKET_, ef->desc.n - first);
    const cg_key_ none = cg_block_key_(0, 0);
    uint8_t *at = cg_ef_scale_at_(ef, bucket);
    const uint32_t top = (kernels->top(v, many) + 0xffffu) >> 16, half = top > 0x7f7fu ? 0x7f7fu : top;
    const float scale = cg_float_(half << 16);
    at[0] = (uint8_t)half;
    at[1] = (uint8_t)(half >> 8);
    cg_quantizer_of_(&cg_ef_octets_)->encode(kernels, &cg_ef_octets_, &scale, none, 0, v, many, ef->bytes + first, NULL);
}
/* e = by v + keep e, for [first, first + many) of it; any stretch. */
static void cg_bytes_add_(const cg_ef *ef, size_t first, size_t many, float by, const float *v, float keep) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    float e[CG_EF_BUCKET_];
    for (size_t i = first, some; i < first + many; i += some) {
        const size_t bucket = i / CG_EF_BUCKET_, at = i % CG_EF_BUCKET_;
        some = cg_min_(CG_EF_BUCKET_ - at, first + many - i);
        cg_bytes_get_(kernels, ef, bucket, e);
        kernels->accrue(cg_at_(v, i - first), some, by, keep, e + at, CG_ACCRUE_NONE_, NULL);
        for (size_t j = at; j < at + some; j++) e[j] = cg_saturate_(e[j]);
        cg_bytes_put_(kernels, ef, bucket, e);
    }
}
/* e = e + by v at ascending places: what lies in one bucket is rounded once. */
static void cg_bytes_take_(const cg_ef *ef, size_t base, const uint64_t *at, size_t many, float by, const float *v) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    float e[CG_EF_BUCKET_];
    for (size_t i = 0; i < many;) {
        const size_t bucket = (base + (size_t)at[i]) / CG_EF_BUCKET_;
        cg_bytes_get_(kernels, ef, bucket, e);
        for (; i < many && (base + (size_t)at[i]) / CG_EF_BUCKET_ == bucket; i++) {
            float *to = e + (base + (size_t)at[i]) % CG_EF_BUCKET_;
            *to = cg_saturate_(cg_plus_(*to, cg_times_(by, v[i])));
        }
        cg_bytes_put_(kernels, ef, bucket, e);
    }
}
static void cg_bytes_read_(const cg_ef *ef, size_t first, size_t many, float *out) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    float e[CG_EF_BUCKET_];
    for (size_t i = first, some; i < first + many; i += some) {
        const size_t at = i % CG_EF_BUCKET_;
        some = cg_min_(CG_EF_BUCKET_ - at, first + many - i);
        if (some == CG_EF_BUCKET_) { cg_bytes_get_(kernels, ef, i / CG_EF_BUCKET_, cg_at_mut_(out, i - first)); continue; }
        cg_bytes_get_(kernels, ef, i / CG_EF_BUCKET_, e);
        memcpy(cg_at_mut_(out, i - first), e + at, 4 * some);
    }
}
CG_API_ cg_status cg_ef_read(const cg_ef *ef, int which, float *out, size_t n) {
    cg_env_ env;
    if (!ef || (!out && n) || which < 0 || which > 2) return CG_E_ARG;
    if (n != ef->desc.n) return CG_E_MISMATCH;
    if (!ef->vector[which] && (which || !ef->bytes)) return CG_E_UNSUPPORTED;
    env = cg_env_enter_();
    if (!n) {}
    else if (ef->vector[which]) memcpy(out, ef->vector[which], 4 * n);
    else cg_bytes_read_(ef, 0, n, out);
    cg_env_leave_(env);
    return CG_OK;
}

/* ---- >>step: from the gradient to p ----------------------------------------------------------------------------- */

typedef struct cg_ef_step_ {
    const cg_kernels_ *kernels;
    const cg_ef *ef;
    cg_op op;
    cg_side side;
    const float *g, *variance;
    float a, limit;                                  /* g is multiplied by a; before that cut at +-limit, if that is not 0 */
    float pa, pb, qa, qb;                            /* p = pa g + pb e; then e = qa g + qb e, unless p takes its place */
    int large;                                       /* a sum may be too large */
    float range[2];                                  /* LAQ */
} cg_ef_step_;

/* A pass over the vector: by blocks, over threads; returns the sum of what run returns. */
static double cg_ef_pass_by_(double (*run)(const void *, size_t, size_t, float *), const void *user, float *x, size_t n, size_t unit) {
    cg_fill_ fill = CG_ZERO;
    cg_source_ src = CG_ZERO;
    fill.run = run;
    fill.user = user;
    fill.n = n;
    fill.unit = unit;
    src.fill = &fill;
    src.x = x;
    if (n) cg_fill_here_(&src);
    return fill.energy;
}
static double cg_ef_pass_(double (*run)(const void *, size_t, size_t, float *), const void *user, float *x, size_t n) {
    return cg_ef_pass_by_(run, user, x, n, CG_CHUNK_);
}
static double cg_ef_squares_(const void *user, size_t first, size_t many, float *x) {
    (void)first;
    return cg_total_of_(((const cg_ef_step_ *)user)->kernels, x, many, CG_TOTAL_SQUARES_);
}
static double cg_ef_look_(const void *user, size_t first, size_t many, float *x) {      /* 1 for a block with something huge, much more if it is not finite */
    const uint32_t top = ((const cg_ef_step_ *)user)->kernels->top(x, many);
    (void)first;
    return top >= CG_NONFINITE_ ? 1e100 : top >= cg_bits_(CG_EF_HUGE_) ? 1.0 : 0.0;
}
static void cg_ef_hold_(const cg_ef_step_ *st, float *v, size_t many) {
    if (st->large) for (size_t i = 0; i < many; i++) cg_store_(v, i, cg_saturate_(cg_load_(v, i)));
}
static const float *cg_ef_cut_(const cg_ef_step_ *st, const float *g, size_t many, float *buf) {
    for (size_t i = 0; i < many; i++) {
        const float f = cg_load_(g, i);
        buf[i] = f > st->limit ? st->limit : f < -st->limit ? -st->limit : f;
    }
    return buf;
}
/* Kinds whose p takes the place of the error: one chunk of it. */
static double cg_ef_accrue_(const cg_ef_step_ *st, const float *d, size_t many, float alpha, float beta, float *y) {
    double lanes[16] = { 0.0 };
    st->kernels->accrue(d, many, alpha, beta, y, st->large ? CG_ACCRUE_NONE_ : CG_ACCRUE_Y_, lanes);
    if (!st->large) return cg_fold_(lanes);
    cg_ef_hold_(st, y, many);
    return cg_total_of_(st->kernels, y, many, CG_TOTAL_SQUARES_);
}
static double cg_ef_recall_(const cg_kernels_ *k, const float *m, size_t many, float by, float *e) {         /* e = e + by m, for memory m; |e|^2 */
    double lanes[16] = { 0.0 };
    k->accrue(m, many, by, 1.0f, e, CG_ACCRUE_RECALL_, lanes);
    return cg_fold_(lanes);
}
static double cg_ef_place_(const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    const cg_ef *ef = st->ef;
    const cg_ef_desc *d = &ef->desc;
    const cg_kernels_ *k = st->kernels;
    const float m = d->momentum, a = st->a;
    float *u = ef->vector[1] ? cg_at_mut_(ef->vector[1], first) : NULL;
    double energy;
    switch (d->kind) {
        case CG_EF_MOMENTUM:
            k->accrue(g, many, d->nesterov ? cg_times_(m, a) : a, m, u, CG_ACCRUE_NONE_, NULL);
            if (d->nesterov) k->accrue(u, many, 1.0f, 1.0f, e, CG_ACCRUE_NONE_, NULL);
            energy = d->nesterov ? cg_ef_accrue_(st, g, many, a, 1.0f, e) : cg_ef_accrue_(st, u, many, 1.0f, 1.0f, e);
            cg_ef_hold_(st, u, many);
            return energy;
        case CG_EF_SIGNUM: return cg_ef_accrue_(st, g, many, cg_times_(a, 1.0f - m), m, e);
        case CG_EF_VARIANCE:
            if (st->variance) k->accrue(cg_at_(st->variance, first), many, cg_times_(a, a), 1.0f, u, CG_ACCRUE_NONE_, NULL);
            cg_ef_hold_(st, u, many);
            return cg_ef_accrue_(st, g, many, a, 1.0f, e);
        case CG_EF_ONEBIT_ADAM:
            k->accrue(g, many, cg_times_(a, 1.0f - m), 1.0f, e, CG_ACCRUE_NONE_, NULL);
            energy = cg_ef_recall_(k, cg_at_(ef->vector[2], first), many, cg_times_(ef->scale, m), e);
            cg_ef_hold_(st, e, many);
            return st->large ? cg_total_of_(k, e, many, CG_TOTAL_SQUARES_) : energy;
        default: return cg_ef_accrue_(st, g, many, a, cg_ef_decay_(d), e);
    }
}
CG_NOINLINE_ double cg_ef_place_cut_(const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    float buf[CG_CHUNK_];
    return cg_ef_place_(st, first, many, cg_ef_cut_(st, g, many, buf), e);
}
static double cg_ef_fill_(const void *user, size_t first, size_t many, float *out) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    double energy = 0.0;
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        some = cg_min_(CG_CHUNK_, many - i);
        energy += st->limit != 0.0f ? cg_ef_place_cut_(st, first + i, some, g, cg_at_mut_(out, i)) : cg_ef_place_(st, first + i, some, g, cg_at_mut_(out, i));
    }
    return energy;
}
/* The others: out = p, memory as it is. */
CG_NOINLINE_ double cg_ef_make_(const void *user, size_t first, size_t many, float *out) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    const cg_ef *ef = st->ef;
    float buf[CG_CHUNK_];
    double energy = 0.0;
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        float *p = cg_at_mut_(out, i);
        some = cg_min_(CG_CHUNK_, many - i);
        if (ef->bytes) cg_bytes_read_(ef, first + i, some, p);
        else memcpy(p, cg_at_(ef->vector[0], first + i), 4 * some);
        if (st->limit != 0.0f) g = cg_ef_cut_(st, g, some, buf);
        if (cg_ef_is_(&ef->desc, CG_EF_DIFFERS_)) st->kernels->emit(g, some, st->pa, st->pb, p, 0);      /* h does not fade */
        else st->kernels->accrue(g, some, st->pa, st->pb, p, CG_ACCRUE_NONE_, NULL);
        cg_ef_hold_(st, p, some);
        energy += cg_total_of_(st->kernels, p, some, CG_TOTAL_SQUARES_);
    }
    return energy;
}
/* |p|^2, before it is asked for. */
CG_NOINLINE_ double cg_ef_scan_(const void *user, size_t first, size_t many, float *none) {
    float p[CG_CHUNK_];
    double energy = 0.0;
    (void)none;
    for (size_t i = 0, some; i < many; i += some) {
        some = cg_min_(CG_CHUNK_, many - i);
        energy += cg_ef_make_(user, first + i, some, p);
    }
    return energy;
}
static float cg_ef_range_(const cg_ef_step_ *st, size_t n) {
    float p[CG_CHUNK_];
    uint32_t top = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        cg_ef_make_(st, i, cg_min_(CG_CHUNK_, n - i), p);
        top = cg_max32_(top, st->kernels->top(p, cg_min_(CG_CHUNK_, n - i)));
    }
    return cg_float_(top);
}
/* ... and what stays of it: e = qa g + qb e. */
CG_NOINLINE_ double cg_ef_stay_(const void *user, size_t first, size_t many, float *e) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    float buf[CG_CHUNK_];
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        some = cg_min_(CG_CHUNK_, many - i);
        if (st->limit != 0.0f) g = cg_ef_cut_(st, g, some, buf);
        if (st->ef->bytes) cg_bytes_add_(st->ef, first + i, some, st->qa, g, st->qb);
        else {
            st->kernels->accrue(g, some, st->qa, st->qb, cg_at_mut_(e, i), CG_ACCRUE_NONE_, NULL);
            cg_ef_hold_(st, cg_at_mut_(e, i), some);
        }
    }
    return 0.0;
}
/* EF21 with momentum: a running mean of g. */
static double cg_ef_average_(const void *user, size_t first, size_t many, float *v) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    float buf[64];
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        some = cg_min_(64, many - i);
        if (st->limit != 0.0f) g = cg_ef_cut_(st, g, some, buf);
        st->kernels->accrue(g, some, cg_times_(st->a, 1.0f - st->ef->desc.momentum), st->ef->desc.momentum, cg_at_mut_(v, i), CG_ACCRUE_NONE_, NULL);
        cg_ef_hold_(st, cg_at_mut_(v, i), some);
    }
    return 0.0;
}
static float *cg_ef_base_(const cg_ef *ef) {         /* for passes: the error, or if it is in bytes something that is not looked at */
    return ef->vector[0] ? ef->vector[0] : (float *)(void *)ef->bytes;
}
typedef struct cg_ef_by_ { const cg_kernels_ *kernels; const cg_ef *ef; float by; } cg_ef_by_;
static double cg_ef_times_(const void *user, size_t first, size_t many, float *e) {
    const cg_ef_by_ *b = (const cg_ef_by_ *)user;
    static const float zero[CG_EF_BUCKET_] = { 0.0f };
    if (!b->ef || !b->ef->bytes) b->kernels->accrue(e, many, 0.0f, b->by, e, CG_ACCRUE_NONE_, NULL);
    else for (size_t i = 0; i < many; i += CG_EF_BUCKET_) cg_bytes_add_(b->ef, first + i, cg_min_(CG_EF_BUCKET_, many - i), 1.0f, zero, b->by);
    for (size_t i = 0; (!b->ef || !b->ef->bytes) && i < many; i++) cg_store_(e, i, cg_saturate_(cg_load_(e, i)));
    return 0.0;
}
/* A vector times `by`; which 0: the error, in whatever form. */
static void cg_ef_multiply_(cg_ef *ef, int which, float by) {
    cg_ef_by_ b;
    b.kernels = cg_kernels_now_();
    b.ef = which ? NULL : ef;
    b.by = by;
    if (which ? ef->vector[which] != NULL : 1) cg_ef_pass_(cg_ef_times_, &b, which ? ef->vector[which] : cg_ef_base_(ef), ef->desc.n);
}
static float cg_ef_alpha_(const cg_ef_desc *d, const cg_op *op) {    /* by which D goes into h and H */
    if (d->kind != CG_EF_DIANA) return 1.0f;
    return d->alpha != 0.0f ? d->alpha : (float)(1.0 / (1.0 + cg_omega_(op, d->n)));
}
static void cg_ef_weights_(cg_ef_step_ *st, float scale) {
    const cg_ef_desc *d = &st->ef->desc;
    const float decay = cg_ef_decay_(d), a = st->a;
    const float by = d->kind == CG_EF_LOCO ? 1.0f - decay : decay;
    st->pa = a;
    st->pb = 1.0f;
    st->qa = cg_times_(by, a);
    st->qb = 1.0f;
    if (d->kind == CG_EF_CLASSIC) { st->pb = st->qb = decay; st->qa = a; }
    if (d->kind == CG_EF_ECQ) { st->pb = d->alpha != 0.0f ? d->alpha : 0.2f; st->qa = a; st->qb = decay; }
    if (cg_ef_is_(d, CG_EF_DIFFERS_)) { st->pa = cg_times_(a, scale); st->pb = -scale; st->qa = 0.0f; }      /* h is not divided */
}
/* By which D is taken from the error. */
static float cg_ef_less_(const cg_ef *ef) {
    const cg_ef_desc *d = &ef->desc;
    if (d->kind == CG_EF_SIGNUM) return 0.0f;
    if (cg_ef_is_(d, CG_EF_DIFFERS_)) return -ef->received_by;
    if (d->kind == CG_EF_LOCO) return cg_times_(1.0f - cg_ef_decay_(d), ef->scale);
    return d->kind == CG_EF_SCALECOM ? cg_times_(cg_ef_decay_(d), ef->scale) : ef->scale;
}
/* Everything that can be wrong, before memory changes; and the gradient's norm, if somebody asks. */
static cg_status cg_ef_look_at_(cg_ef *ef, const cg_tag *tag, const cg_side *side, const float *grad, int norm, cg_ef_step_ *st, double *squares) {
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
    s = cg_ef_need_(d, st->op, &needs);
    if (s != CG_OK) return s;
    if (needs.scratch > ef->scratch_bytes || (cg_ef_needs_all_(&st->op) && !cg_ef_in_place_(d) && !ef->whole)) return CG_E_MEMORY;
    if (needs.warm > ef->warm_count) return CG_E_MEMORY;
    if (d->kind == CG_EF_VARIANCE) {
        if (!st->side.aux && d->n) return CG_E_ARG;
        st->variance = st->side.aux;
        st->side.aux = st->op.select.id == CG_SELECT_VARIANCE ? ef->vector[1] : NULL;
        if (d->n && cg_ef_pass_by_(cg_ef_look_, st, (float *)(uintptr_t)st->variance, d->n, CG_BLOCK_) > 0.0) return CG_E_NONFINITE;
    } else if (st->op.select.id == CG_SELECT_ADACOMP && !st->side.aux) st->side.aux = grad;
    if (cg_side_check_(&st->op, &st->side) != CG_OK) return cg_side_check_(&st->op, &st->side);
    if (norm || (d->clip != 0.0f && d->clip_by == CG_CLIP_NORM)) {   /* one pass for both: squares of floats do not overflow a double */
        *squares = cg_ef_pass_(cg_ef_squares_, st, (float *)(uintptr_t)grad, d->n);
        seen = !cg_is_finite64_(*squares) ? 1e100 : cg_sqrt_(*squares) >= (double)CG_EF_HUGE_ ? 1.0 : 0.0;
    } else if (!d->finite) {
        seen = cg_ef_pass_by_(cg_ef_look_, st, (float *)(uintptr_t)grad, d->n, CG_BLOCK_);
    }
    if (seen >= 1e100) return CG_E_NONFINITE;
    if (d->clip != 0.0f) {
        const double most = (double)d->clip / cg_sqrt_(workers), have = cg_sqrt_(*squares);
        if (d->clip_by == CG_CLIP_VALUE) st->limit = (float)most;
        else if (have > most) clip = (float)(most / have);
    }
    ef->stats.clipped = clip;
    st->a = cg_times_(d->rate != 0.0f ? d->rate : 1.0f, clip);
    st->large = seen > 0.0 || ef->reach >= (double)CG_EF_HUGE_ || (cg_bits_(st->a) & CG_MAGNITUDE_) > cg_bits_(4.0f);
    return CG_OK;
}
/* From here on memory changes: to this step's scale, and for EF21 the mean of gradients. */
static void cg_ef_enter_(cg_ef *ef, cg_ef_step_ *st) {
    const cg_ef_desc *d = &ef->desc;
    const float scale = cg_ef_scale_(d, &st->op);
    if (!cg_ef_is_(d, CG_EF_DIFFERS_) && scale != ef->scale) {
        cg_ef_multiply_(ef, 0, (float)((double)scale / (double)ef->scale));
        if (d->kind == CG_EF_MOMENTUM) cg_ef_multiply_(ef, 1, (float)((double)scale / (double)ef->scale));
        if (d->kind == CG_EF_VARIANCE) cg_ef_multiply_(ef, 1, (float)((double)scale * (double)scale / ((double)ef->scale * (double)ef->scale)));
    }
    ef->scale = scale;
    ef->received_by = cg_ef_alpha_(d, &st->op);
    if (!cg_ef_is_(d, CG_EF_DIFFERS_)) st->a = cg_times_(st->a, scale);
    if (d->kind == CG_EF_EF21 && d->momentum != 0.0f) {
        cg_ef_pass_(cg_ef_average_, st, ef->vector[1], d->n);
        st->g = ef->vector[1];
        st->a = 1.0f;
        st->limit = 0.0f;
    }
    cg_ef_weights_(st, scale);
}
static void cg_ef_put_(cg_ef *ef, double energy) {   /* p is there */
    const double size = cg_sqrt_(energy);
    ef->reach = (cg_ef_in_place_(&ef->desc) ? ef->size : ef->reach) + size;        /* the velocity is the difference of two */
    ef->size = size;
    ef->stats.put = energy / ((double)ef->scale * (double)ef->scale);
    ef->stats.kept = 1;
}
/* Where the k-th largest will be in the next step, and a little below: a quarter more than k are to pass. */
static void cg_ef_learn_(cg_ef *ef, const cg_op *op, const cg_fill_ *fill, float threshold) {
    const size_t k = (size_t)cg_most_(op, ef->desc.n);
    const float last = cg_float_(fill->hint);
    float next = cg_times_(threshold, 0.97f);
    if (op->select.id != CG_SELECT_TOPK || op->sample.id || op->transform.id) return;
    if (fill->hint && fill->found > k && last < threshold)      /* they lie evenly below the threshold, about */
        next = cg_plus_(threshold, -cg_times_(cg_plus_(threshold, -last), (float)(0.25 * (double)k / (double)(fill->found - k))));
    if (next < cg_times_(threshold, 0.8f)) next = cg_times_(threshold, 0.8f);
    if (ef->threshold > 0.0f) {                      /* it moves on as it moved */
        float drift = threshold / ef->threshold;
        if (drift > 0.9f && drift < 1.0f) next = cg_times_(next, drift);
    }
    ef->hint = next;
    ef->threshold = threshold;
}
static cg_fill_ cg_ef_filler_(const cg_ef *ef, const cg_ef_step_ *st) {
    cg_fill_ fill = CG_ZERO;
    fill.user = st;
    fill.n = ef->desc.n;
    fill.unit = CG_CHUNK_;
    fill.run = cg_ef_in_place_(&ef->desc) ? cg_ef_fill_ : cg_ef_make_;
    fill.lazy = !cg_ef_in_place_(&ef->desc);
    if (ef->hint > 0.0f) fill.hint = cg_bits_(ef->hint);
    return fill;
}

/* ---- >>lazy: LAQ sends only what is worth it ----------------------------------------------------------------------- */

static double cg_ef_energy_(const void *user, size_t first, size_t many, const float *v) {
    (void)first;
    return cg_total_of_(((const cg_ef_step_ *)user)->kernels, v, many, CG_TOTAL_SQUARES_);
}
static double cg_ef_energy_of_(const void *user, const uint64_t *at, size_t many, const float *v) {
    (void)at;
    return cg_ef_energy_(user, 0, many, v);
}
CG_NOINLINE_ double cg_ef_error_(const void *user, size_t first, size_t many, const float *v) {      /* |p - v|^2 - |p|^2 */
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    float p[CG_CHUNK_];
    double sum = 0.0;
    for (size_t i = 0, some; i < many; i += some) {
        some = cg_min_(CG_CHUNK_, many - i);
        cg_ef_make_(st, first + i, some, p);
        sum -= cg_total_of_(st->kernels, p, some, CG_TOTAL_SQUARES_);
        st->kernels->emit(cg_at_(v, i), some, -1.0f, 1.0f, p, 0);
        sum += cg_total_of_(st->kernels, p, some, CG_TOTAL_SQUARES_);
    }
    return sum;
}
static double cg_ef_error_of_(const void *user, const uint64_t *at, size_t many, const float *v) {
    double sum = 0.0;
    for (size_t i = 0; i < many; i++) sum += cg_ef_error_(user, (size_t)at[i], 1, v + i);
    return sum;
}
static double cg_ef_measure_(const cg_ef_step_ *st, const void *packet, size_t len, double (*dense)(const void *, size_t, size_t, const float *),
                             double (*sparse)(const void *, const uint64_t *, size_t, const float *)) {
    cg_sink_ sink;
    sink.dense = dense;
    sink.sparse = sparse;
    sink.user = st;
    sink.energy = 0.0;
    return cg_decode_to_(&st->side, packet, len, 1.0f, 1.0f, NULL, &sink, st->ef->desc.n, 1) == CG_OK ? sink.energy : 0.0;
}
/* Is it? Also: what the packet would leave, in ef->error. */
static int cg_ef_pays_(cg_ef *ef, const cg_ef_step_ *st, double put, const void *packet, size_t len) {
    const cg_ef_desc *d = &ef->desc;
    const double weight = d->laq_weight != 0.0f ? (double)d->laq_weight : 0.8, step = (double)d->laq_step;
    const double sent = cg_ef_measure_(st, packet, len, cg_ef_energy_, cg_ef_energy_of_);
    double moved = 0.0, left = put + cg_ef_measure_(st, packet, len, cg_ef_error_, cg_ef_error_of_);
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

/* ---- >>ends of a step ------------------------------------------------------------------------------------------------ */

static void cg_ef_close_(cg_ef *ef) {                /* a step is over */
    ef->pending = 0;
    ef->steps++;
    if (ef->desc.reset && ef->steps % ef->desc.reset == 0) cg_ef_multiply_(ef, 0, 0.0f);
}
static double cg_ef_less_mean_(const void *user, size_t first, size_t many, float *e) {
    const cg_ef_by_ *b = (const cg_ef_by_ *)user;
    cg_ef_recall_(b->kernels, cg_at_(b->ef->vector[2], first), many, b->by, e);
    for (size_t i = 0; i < many; i++) cg_store_(e, i, cg_saturate_(cg_load_(e, i)));
    return 0.0;
}
/* Nothing was sent: only what the kind would add again must go. */
static void cg_ef_rollback_now_(cg_ef *ef) {
    if (ef->desc.kind == CG_EF_VARIANCE) cg_ef_multiply_(ef, 1, cg_ef_decay_(&ef->desc));
    if (ef->desc.kind == CG_EF_ONEBIT_ADAM) {
        cg_ef_by_ b;
        b.kernels = cg_kernels_now_();
        b.ef = ef;
        b.by = -cg_times_(ef->scale, ef->desc.momentum);
        cg_ef_pass_(cg_ef_less_mean_, &b, ef->vector[0], ef->desc.n);
    }
    ef->stats.sent = 0.0;
    ef->stats.gain = 0.0f;
    cg_ef_close_(ef);
}

/* ---- >>compress ------------------------------------------------------------------------------------------------- */

/* The packet, and p's squares; memory changes only in place. */
static cg_status cg_ef_pack_(cg_ef *ef, cg_ef_step_ *st, cg_fill_ *fill, const cg_tag *tag, void *packet, size_t cap, size_t *len) {
    const cg_ef_desc *d = &ef->desc;
    const float *x = cg_ef_in_place_(d) ? ef->vector[0] : st->g;
    cg_fill_ *by = fill;
    const int whole = fill->lazy && cg_ef_needs_all_(&st->op);
    if (fill->lazy && !whole) fill->energy = cg_ef_pass_(cg_ef_scan_, st, cg_ef_base_(ef), d->n);
    if (d->kind == CG_EF_LAQ && st->op.quantize.id == CG_QUANTIZE_MINMAX && !st->op.select.id && !st->op.sample.id && !st->op.transform.id &&
        st->op.quantize.size >= d->n) {
        st->range[1] = cg_ef_range_(st, d->n);
        st->range[0] = -st->range[1];
        st->side.scale = st->range;
    }
    if (whole) {
        fill->energy = cg_ef_pass_(cg_ef_make_, st, ef->whole, d->n);
        x = ef->whole;
        by = NULL;
    }
    return cg_compress_checked_(&st->op, tag, &st->side, x, by, d->n, packet, cap, len, ef->scratch, ef->scratch_bytes);
}
static float cg_packet_threshold_(const void *packet) { return cg_float_(cg_get32_((const uint8_t *)packet + 144)); }
static cg_status cg_ef_compress_(cg_ef *ef, const cg_tag *tag, const cg_side *side, const float *grad, void *packet, size_t cap, size_t *len) {
    const cg_tag none = CG_ZERO;
    cg_ef_step_ st;
    cg_fill_ fill;
    double squares;
    cg_status s;
    if (!len) return CG_E_ARG;
    *len = 0;
    if (!ef || !packet) return CG_E_ARG;
    if (!tag) tag = &none;
    s = cg_ef_look_at_(ef, tag, side, grad, 0, &st, &squares);
    if (s != CG_OK) return s;
    if (!cg_bound_(&st.op, &st.side, ef->desc.n)) return CG_E_ARG;
    if (cap < cg_bound_(&st.op, &st.side, ef->desc.n) || cap < CG_HEADER_BYTES) return CG_E_CAPACITY;
    if (st.op.sample.id == CG_SAMPLE_PERMK && tag->rank >= st.op.sample.size) return CG_E_ARG;
    if (st.op.select.id == CG_SELECT_GIVEN) {
        cg_decoder_ set;
        s = cg_support_open_(&set, &st.side, ef->desc.n);
        if (s != CG_OK) return s;
    }
    cg_ef_enter_(ef, &st);
    fill = cg_ef_filler_(ef, &st);
    s = cg_ef_pack_(ef, &st, &fill, tag, packet, cap, len);
    if (s == CG_OK && !fill.lazy) cg_ef_learn_(ef, &st.op, &fill, cg_packet_threshold_(packet));
    if (s == CG_OK) cg_ef_put_(ef, fill.energy);
    if (s == CG_OK && ef->desc.kind == CG_EF_LAQ && !cg_ef_pays_(ef, &st, fill.energy, packet, *len)) {
        ef->stats.silent = 1;
        *len = cg_pack_nothing_(tag, ef->desc.n, (uint8_t *)packet);
    }
    if (s == CG_OK && fill.lazy && !cg_ef_is_(&ef->desc, CG_EF_DIFFERS_)) cg_ef_pass_(cg_ef_stay_, &st, cg_ef_base_(ef), ef->desc.n);
    ef->pending = s == CG_OK;
    if (s != CG_OK && (fill.begun || st.g != grad)) {            /* a codec of the user's */
        cg_ef_put_(ef, fill.energy);
        cg_ef_rollback_now_(ef);
    }
    return s;
}
CG_API_ cg_status cg_ef_compress_with(cg_ef *ef, const cg_tag *tag, const cg_side *side, const float *grad, void *packet, size_t cap, size_t *len) {
    const cg_env_ env = cg_env_enter_();
    const cg_status s = cg_ef_compress_(ef, tag, side, grad, packet, cap, len);
    cg_env_leave_(env);
    return s;
}
CG_API_ cg_status cg_ef_compress(cg_ef *ef, const cg_tag *tag, const float *grad, void *packet, size_t cap, size_t *len) {
    return cg_ef_compress_with(ef, tag, NULL, grad, packet, cap, len);
}

/* ---- >>commit --------------------------------------------------------------------------------------------------- */

typedef struct cg_ef_commit_ { const cg_kernels_ *kernels; const cg_ef *ef; size_t base; float less; int large; } cg_ef_commit_;
static double cg_ef_take_(const void *user, size_t first, size_t many, const float *v) {
    const cg_ef_commit_ *c = (const cg_ef_commit_ *)user;
    const size_t at = c->base + first;
    if (c->ef->desc.kind == CG_EF_VARIANCE) memset(cg_at_mut_(c->ef->vector[1], at), 0, 4 * many);
    if (c->ef->bytes) cg_bytes_add_(c->ef, at, many, -c->less, v, 1.0f);
    else {
        float *e = cg_at_mut_(c->ef->vector[0], at);
        double lanes[16] = { 0.0 };
        c->kernels->accrue(v, many, -c->less, 1.0f, e, CG_ACCRUE_D_, lanes);
        for (size_t i = 0; c->large && i < many; i++) cg_store_(e, i, cg_saturate_(cg_load_(e, i)));
        return cg_fold_(lanes);
    }
    return cg_total_of_(c->kernels, v, many, CG_TOTAL_SQUARES_);
}
static double cg_ef_take_from_(const void *user, const uint64_t *at, size_t many, const float *v) {
    const cg_ef_commit_ *c = (const cg_ef_commit_ *)user;
    const int masks = c->ef->desc.kind == CG_EF_MOMENTUM || c->ef->desc.kind == CG_EF_VARIANCE;
    float *e = c->ef->vector[0], *u = masks ? c->ef->vector[1] : NULL;
    for (size_t i = 0; e && i < many; i++) CG_PREFETCH_(cg_at_(e, c->base + (size_t)at[i]));
    for (size_t i = 0; u && i < many; i++) CG_PREFETCH_(cg_at_(u, c->base + (size_t)at[i]));
    if (c->ef->bytes) cg_bytes_take_(c->ef, c->base, at, many, -c->less, v);
    for (size_t i = 0; e && i < many; i++) {
        const size_t j = c->base + (size_t)at[i];
        cg_store_(e, j, cg_saturate_(cg_plus_(cg_load_(e, j), cg_times_(-c->less, v[i]))));
        if (u) cg_store_(u, j, 0.0f);
    }
    return cg_total_of_(c->kernels, v, many, CG_TOTAL_SQUARES_);
}
/* One packet, or several that cover the vector one after the other. What is done with each depends on sink; NULL: it is verified. */
static cg_status cg_ef_each_(const cg_ef *ef, const cg_side *side, const uint8_t *used, size_t len, cg_ef_commit_ *c, cg_sink_ *sink) {
    size_t at = 0, done = 0;
    cg_status s = used ? CG_OK : CG_E_ARG;
    cg_info info;
    for (; at < len && s == CG_OK; at += info.packet_bytes, done += (size_t)info.n) {
        s = cg_header_get_(used + at, len - at, &info);
        if (s == CG_OK && info.n > ef->desc.n - done) s = CG_E_MISMATCH;
        if (s == CG_OK && info.packet_bytes > len - at) s = CG_E_CORRUPT;
        c->base = done;
        if (s == CG_OK) s = sink ? cg_decode_to_(side, used + at, info.packet_bytes, 1.0f, 1.0f, NULL, sink, (size_t)info.n, 1)
                                 : cg_check_(side, used + at, info.packet_bytes, (size_t)info.n);
    }
    return s == CG_OK && (done != ef->desc.n || len == 0) ? CG_E_MISMATCH : s;
}
typedef struct cg_ef_mean_ { const cg_ef *ef; float *mean; int large; } cg_ef_mean_;
static double cg_ef_receive_(const void *user, size_t first, size_t many, float *h) {
    const cg_ef_mean_ *r = (const cg_ef_mean_ *)user;
    const cg_kernels_ *kernels = cg_kernels_now_();
    float *mean = cg_at_mut_(r->mean, first), buf[CG_EF_BUCKET_];
    if (r->ef->received_by == 1.0f || !cg_ef_is_(&r->ef->desc, CG_EF_DIFFERS_)) {
        if (cg_ef_is_(&r->ef->desc, CG_EF_DIFFERS_)) kernels->emit(h, many, 1.0f, 1.0f, mean, 0);
        for (size_t i = 0; r->large && i < many; i++) cg_store_(mean, i, cg_saturate_(cg_load_(mean, i)));
        memcpy(h, mean, 4 * many);
        return 0.0;
    }
    for (size_t i = 0, some; i < many; i += some) {
        some = cg_min_(CG_EF_BUCKET_, many - i);
        memcpy(buf, cg_at_(mean, i), 4 * some);
        kernels->emit(cg_at_(h, i), some, 1.0f, 1.0f, cg_at_mut_(mean, i), 0);
        kernels->emit(buf, some, r->ef->received_by, 1.0f, cg_at_mut_(h, i), 0);
        for (size_t j = i; r->large && j < i + some; j++) {
            cg_store_(mean, j, cg_saturate_(cg_load_(mean, j)));
            cg_store_(h, j, cg_saturate_(cg_load_(h, j)));
        }
    }
    return 0.0;
}
static cg_status cg_ef_commit_now_(cg_ef *ef, const cg_side *side, const void *used, size_t len, float *mean, int verified) {
    const cg_ef_desc *d = &ef->desc;
    cg_ef_step_ st;
    cg_ef_commit_ c;
    cg_sink_ sink;
    double huge = 0.0;
    cg_status s = CG_OK;
    memset(&st, 0, sizeof st);
    st.kernels = c.kernels = cg_kernels_now_();
    c.ef = ef;
    c.less = cg_ef_less_(ef);
    c.large = ef->reach >= (double)CG_EF_HUGE_;
    sink.dense = cg_ef_take_;
    sink.sparse = cg_ef_take_from_;
    sink.user = &c;
    sink.energy = 0.0;
    if (cg_ef_is_(d, CG_EF_GETS_) && d->n) {
        if (!mean) return CG_E_ARG;
        huge = cg_ef_pass_by_(cg_ef_look_, &st, mean, d->n, CG_BLOCK_);
        if (huge >= 1e100) return CG_E_NONFINITE;
    }
    if (!verified) s = cg_ef_each_(ef, side, (const uint8_t *)used, len, &c, NULL);
    if (s != CG_OK) return s;
    if (d->kind == CG_EF_VARIANCE) cg_ef_multiply_(ef, 1, cg_ef_decay_(d));
    if (c.less == 0.0f) {                            /* nothing to take, only to measure */
        sink.dense = cg_ef_energy_;
        sink.sparse = cg_ef_energy_of_;
        sink.user = &st;
    }
    s = cg_ef_each_(ef, side, (const uint8_t *)used, len, &c, &sink);
    if (s == CG_OK && cg_ef_is_(d, CG_EF_GETS_)) {
        cg_ef_mean_ r;
        r.ef = ef;
        r.mean = mean;
        r.large = c.large || huge > 0.0;
        cg_ef_pass_(cg_ef_receive_, &r, ef->vector[2], d->n);
    }
    ef->stats.sent = sink.energy;
    ef->stats.gain = ef->stats.put > 0.0 ? (float)(sink.energy / ef->stats.put) : 0.0f;
    ef->reach += cg_sqrt_(sink.energy);
    if (d->kind == CG_EF_LAQ) {
        ef->silent = ef->stats.silent ? ef->silent + 1 : 0;
        if (!ef->stats.silent) ef->error_sent = ef->error;
    }
    cg_ef_close_(ef);
    return s;
}
CG_API_ cg_status cg_ef_commit_with(cg_ef *ef, const cg_side *side, const void *used, size_t used_len, float *mean) {
    const cg_env_ env = cg_env_enter_();
    const cg_status s = !ef ? CG_E_ARG : !ef->pending ? CG_E_STATE : cg_ef_commit_now_(ef, side, used, used_len, mean, 0);
    cg_env_leave_(env);
    return s;
}
CG_API_ cg_status cg_ef_commit(cg_ef *ef, const void *used, size_t used_len, float *mean) { return cg_ef_commit_with(ef, NULL, used, used_len, mean); }

CG_API_ cg_status cg_ef_rollback(cg_ef *ef, const void *packet, size_t len) {
    cg_env_ env;
    (void)packet;
    (void)len;
    if (!ef) return CG_E_ARG;
    if (!ef->pending) return CG_E_STATE;
    env = cg_env_enter_();
    cg_ef_rollback_now_(ef);
    cg_env_leave_(env);
    return CG_OK;
}

/* ---- >>exchange --------------------------------------------------------------------------------------------------- */

/* desc as ef has it, for that step. */
static cg_exchange_desc cg_ef_road_(const cg_ef *ef, const cg_exchange_desc *desc) {
    const cg_op dense = cg_dense();                  /* of dense steps, which some routes do not take */
    cg_exchange_desc x = *desc;
    x.op = cg_ef_op_(&ef->desc, &desc->tag);
    x.into = NULL;
    x.warm = x.op.transform.id == CG_TRANSFORM_LOWRANK ? ef->warm : NULL;
    x.carry = ef->carry;
    if (x.side && x.side->aux && x.op.select.id != CG_SELECT_ADACOMP && x.op.select.id != CG_SELECT_VARIANCE) x.side = NULL;     /* a dense step of VARIANCE */
    if (ef->desc.kind == CG_EF_LAQ && x.route == CG_ROUTE_AUTO) x.route = CG_ROUTE_ALLGATHER;
    if (cg_same_op_(&x.op, &dense) && (x.route == CG_ROUTE_MERGE || x.route == CG_ROUTE_SHARED || x.route == CG_ROUTE_REGION)) x.route = CG_ROUTE_AUTO;
    return x;
}
typedef struct cg_ef_rooms_ { uint64_t p, packet, exchange; } cg_ef_rooms_;
static uint64_t cg_ef_rooms_of_(const cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, cg_ef_rooms_ *r) {
    const cg_exchange_desc x = cg_ef_road_(ef, desc);
    const uint64_t up = 63;
    memset(r, 0, sizeof *r);
    r->exchange = cg_exchange_memory(&x, transport, ef->desc.n);
    if (!r->exchange) return 0;
    if (!cg_ef_in_place_(&ef->desc)) r->p = cg_add_(cg_mul_(4, ef->desc.n), up) & ~up;
    if (ef->desc.kind == CG_EF_LAQ) r->packet = cg_add_(cg_add_(cg_bound_(&x.op, NULL, ef->desc.n), CG_HEADER_BYTES), up) & ~up;
    return cg_add_(cg_add_(cg_add_(r->p, r->packet), r->exchange), 64);
}
CG_API_ size_t cg_ef_exchange_memory(const cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_env_ env;
    cg_ef_rooms_ r;
    size_t bytes;
    if (!ef || !desc || !transport) return 0;
    env = cg_env_enter_();
    bytes = cg_size_(cg_ef_rooms_of_(ef, desc, transport, &r));
    cg_env_leave_(env);
    return bytes;
}
/* LAQ: would it be sent? */
static cg_status cg_ef_silence_(cg_ef *ef, cg_ef_step_ *st, const cg_tag *tag, uint8_t *packet, size_t cap) {
    cg_fill_ fill = cg_ef_filler_(ef, st);
    size_t len;
    const cg_status s = cg_ef_pack_(ef, st, &fill, tag, packet, cap, &len);
    cg_ef_put_(ef, fill.energy);
    if (s == CG_OK) ef->stats.silent = !cg_ef_pays_(ef, st, fill.energy, packet, len);
    return s;
}
typedef struct cg_ef_run_ { cg_ef_step_ st; cg_exchange_desc road, given; cg_ef_rooms_ rooms; cg_fill_ fill; float *p, *grad; double squares; } cg_ef_run_;

/* Everything that can be refused, with memory as it is. */
static cg_status cg_ef_aim_(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, const float *grad, cg_ef_run_ *r) {
    const int scored = desc->leader == CG_LEADER_BY_SCORE && desc->score == 0.0f;
    cg_status s;
    memset(r, 0, sizeof *r);
    r->given = *desc;
    r->road = cg_ef_road_(ef, desc);
    cg_ef_rooms_of_(ef, desc, transport, &r->rooms);
    s = cg_ef_look_at_(ef, &desc->tag, desc->side, grad, scored, &r->st, &r->squares);
    r->road.side = &r->st.side;
    if (s == CG_OK && ef->carry && cg_exchange_carry(&r->road, transport, ef->desc.n) > ef->desc.carry) s = CG_E_MEMORY;
    if (s == CG_OK && !cg_rate_ok_(desc)) s = CG_E_ARG;
    if (s == CG_OK && r->st.op.sample.id == CG_SAMPLE_PERMK && (uint32_t)transport->rank >= r->st.op.sample.size) s = CG_E_ARG;
    return s;
}
/* p is made, or will be by r->fill; room: for p and for a packet of LAQ's. */
static cg_status cg_ef_load_up_(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, float *grad, uint8_t *room, cg_ef_run_ *r) {
    const size_t n = ef->desc.n;
    cg_status s = CG_OK;
    cg_ef_enter_(ef, &r->st);
    r->road.into = grad;
    if (cg_ef_is_(&ef->desc, CG_EF_GETS_)) r->road.model = NULL;     /* their result is made of the mean */
    r->p = n ? ef->vector[0] : grad;
    if (desc->leader == CG_LEADER_BY_SCORE && desc->score == 0.0f) {
        const double norm = cg_sqrt_(r->squares);
        ef->score = ef->score > 0.0 ? cg_times64_(0.9, ef->score) + cg_times64_(0.1, norm) : norm;
        r->road.score = cg_narrow_(ef->score);
    }
    if (cg_ef_in_place_(&ef->desc)) {
        r->fill = cg_ef_filler_(ef, &r->st);
        return CG_OK;
    }
    r->p = n ? (float *)(void *)room : grad;
    if (ef->desc.kind == CG_EF_LAQ) {
        cg_tag tag = desc->tag;
        tag.rank = (uint32_t)transport->rank;
        s = cg_ef_silence_(ef, &r->st, &tag, room + (size_t)r->rooms.p, (size_t)r->rooms.packet);
        if (ef->stats.silent) r->road.flags |= CG_ABSTAIN;
    }
    cg_ef_put_(ef, cg_ef_pass_(cg_ef_make_, &r->st, r->p, n));
    if (!cg_ef_is_(&ef->desc, CG_EF_DIFFERS_)) cg_ef_pass_(cg_ef_stay_, &r->st, cg_ef_base_(ef), n);
    return s;
}
static cg_status cg_ef_land_(cg_ef *ef, const cg_ef_run_ *r, cg_status s, cg_report *report, float *grad) {
    if (s == CG_OK) {
        s = cg_ef_commit_now_(ef, &r->st.side, report->used, report->used_len, grad, 1);
        if (s == CG_OK) {
            if (!r->road.model) cg_step_(&r->given, grad, ef->desc.n);
            return CG_OK;
        }
        report->why = "the result is not finite: the sum over ranks is too large";        /* all that can be wrong with it */
        report->used = NULL;
        report->used_len = 0;
    }
    if (ef->stats.kept) cg_ef_rollback_now_(ef);
    return s;
}
static cg_status cg_ef_exchange_(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, float *grad, void *mem, size_t bytes, cg_report *report) {
    const size_t n = ef->desc.n, skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    uint8_t *at = mem ? (uint8_t *)mem + skip : NULL;
    cg_exchange_state *x;
    cg_ef_run_ r;
    cg_status s = cg_ef_aim_(ef, desc, transport, grad, &r);
    const uint64_t need = cg_add_(cg_add_(r.rooms.p, r.rooms.packet), r.rooms.exchange);
    if (s == CG_OK && r.rooms.exchange && (!mem || bytes < skip || bytes - skip < need)) s = CG_E_MEMORY;
    if (s != CG_OK || !r.rooms.exchange) return cg_exchange_or_(&r.road, transport, grad, n, mem, bytes, s, report);      /* the others must hear of it */
    s = cg_ef_load_up_(ef, desc, transport, grad, at, &r);
    at += (size_t)(r.rooms.p + r.rooms.packet);
    x = (cg_exchange_state *)(void *)at;
    s = cg_exchange_by_(x, &r.road, transport, r.p, r.fill.run ? &r.fill : NULL, n, at + CG_STATE_ROOM_, (size_t)(r.rooms.exchange - CG_STATE_ROOM_), s, report);
    if (r.fill.begun) cg_ef_put_(ef, r.fill.energy);
    if (x->route == CG_ROUTE_SCATTER) ef->carry_first = cg_part_start_(x, transport->rank);
    if (s == CG_OK && r.fill.begun && x->parts == 1 && cg_packs_first_(x)) cg_ef_learn_(ef, &r.st.op, &r.fill, cg_packet_threshold_(x->own));
    return cg_ef_land_(ef, &r, s, report, grad);
}
CG_API_ cg_status cg_ef_exchange(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, float *grad, void *mem, size_t bytes,
    cg_report *report) {
    cg_report own;
    cg_env_ env;
    cg_status s;
    if (!report) report = &own;
    memset(report, 0, sizeof *report);
    report->rank = -1;
    report->why = cg_status_str(CG_E_ARG);
    if (!ef || !desc || !transport) return CG_E_ARG;
    env = cg_env_enter_();
    s = cg_ef_exchange_(ef, desc, transport, grad, mem, bytes, report);
    cg_env_leave_(env);
    return s;
}

/* Layers: as one by one, but that all exchanges are opened together. */
static void cg_ef_layer_road_(const cg_ef *ef, cg_layer *layer) {
    layer->desc = cg_ef_road_(ef, &layer->desc);
    layer->n = ef->desc.n;
}
static uint64_t cg_ef_layer_room_(const cg_ef *ef, const cg_layer *layer, const cg_transport *t) {
    cg_ef_rooms_ rooms;
    cg_ef_rooms_of_(ef, &layer->desc, t, &rooms);
    return cg_add_(rooms.p, rooms.packet);
}
static uint64_t cg_ef_layers_room_(cg_ef *const *efs, const cg_layer *layers, size_t count, const cg_transport *t) {
    uint64_t bytes = (cg_mul_(count, sizeof(cg_ef_run_)) + 63) & ~(uint64_t)63;
    for (size_t i = 0; i < count; i++) bytes = cg_add_(bytes, cg_ef_layer_room_(efs[i], &layers[i], t));
    return bytes;
}
CG_API_ size_t cg_ef_layers_memory(cg_ef *const *efs, cg_layer *layers, size_t count, size_t small, const cg_transport *transport) {
    cg_env_ env;
    size_t bytes;
    if ((count && (!efs || !layers)) || !transport) return 0;
    env = cg_env_enter_();
    for (size_t i = 0; i < count; i++) cg_ef_layer_road_(efs[i], &layers[i]);
    bytes = cg_exchange_layers_memory(layers, count, small, transport);
    if (bytes) bytes = cg_size_(cg_add_(cg_add_(cg_ef_layers_room_(efs, layers, count, transport), bytes), 64));
    cg_env_leave_(env);
    return bytes;
}
static cg_status cg_ef_exchange_layers_(cg_ef *const *efs, cg_layer *layers, size_t count, size_t small, const cg_transport *t, void *mem, size_t bytes, cg_report *report) {
    const size_t skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    cg_ef_run_ *runs = (cg_ef_run_ *)(void *)((uint8_t *)mem + skip);
    uint8_t *at = (uint8_t *)mem + skip + ((count * sizeof(cg_ef_run_) + 63) & ~(size_t)63);
    cg_status failed = CG_OK, s;
    size_t who = count, room;
    for (size_t i = 0; i < count; i++) {             /* all of them, before any memory changes */
        s = cg_ef_aim_(efs[i], &layers[i].desc, t, layers[i].x, &runs[i]);
        for (size_t j = 0; j < i && s == CG_OK; j++) if (efs[j] == efs[i]) s = CG_E_ARG;
        if (s != CG_OK && failed == CG_OK) { failed = s; who = i; }
    }
    for (size_t i = 0; i < count; i++) {
        cg_ef_run_ *r = &runs[i];
        r->grad = layers[i].x;
        layers[i].desc = r->road;
        if (failed != CG_OK || !r->rooms.exchange) { layers[i].x = i == who ? NULL : layers[i].x; continue; }
        s = cg_ef_load_up_(efs[i], &r->given, t, r->grad, at, r);
        if (r->fill.run) cg_ef_put_(efs[i], cg_ef_pass_(cg_ef_fill_, &r->st, r->p, efs[i]->desc.n));
        layers[i].desc = r->road;
        layers[i].x = s == CG_OK ? r->p : NULL;
        at += (size_t)(r->rooms.p + r->rooms.packet);
    }
    room = bytes - (size_t)(at - (uint8_t *)mem);
    s = cg_exchange_layers(layers, count, small, t, at, room, report);
    for (size_t i = 0; i < count; i++) {
        if (efs[i]->carry && layers[i].report.route == CG_ROUTE_SCATTER) efs[i]->carry_first = cg_stripe_(layers[i].n, (size_t)t->size, (size_t)t->rank);
        layers[i].x = runs[i].grad;
        layers[i].desc = runs[i].given;
        if (failed == CG_OK && efs[i]->stats.kept) layers[i].status = cg_ef_land_(efs[i], &runs[i], layers[i].status, &layers[i].report, runs[i].grad);
        if (layers[i].status != CG_OK && s == CG_OK) s = layers[i].status;
    }
    if (failed == CG_OK) return s;
    if (report && s == CG_E_ARG) report->why = cg_status_str(failed);
    for (size_t i = 0; i < count; i++) layers[i].status = failed;
    return failed;
}
CG_API_ cg_status cg_ef_exchange_layers(cg_ef *const *efs, cg_layer *layers, size_t count, size_t small, const cg_transport *transport, void *mem, size_t bytes,
    cg_report *report) {
    const size_t need = cg_ef_layers_memory(efs, layers, count, small, transport);
    cg_env_ env;
    cg_status s;
    if (report) memset(report, 0, sizeof *report);
    if ((count && (!efs || !layers)) || !transport) return CG_E_ARG;
    if (!need || !mem || bytes < need) return cg_exchange_layers(layers, count, small, transport, NULL, 0, report);     /* tells the others */
    env = cg_env_enter_();
    s = cg_ef_exchange_layers_(efs, layers, count, small, transport, mem, bytes, report);
    cg_env_leave_(env);
    return s;
}

/* ---- >>changes ----------------------------------------------------------------------------------------------------- */

CG_API_ cg_status cg_ef_rescale(cg_ef *ef, float factor) {
    cg_env_ env;
    if (!ef || !cg_is_finite_(factor)) return CG_E_ARG;
    if (ef->pending) return CG_E_STATE;
    if (cg_ef_is_(&ef->desc, CG_EF_DIFFERS_) || ef->desc.kind == CG_EF_SIGNUM) return CG_E_UNSUPPORTED;
    env = cg_env_enter_();
    cg_ef_multiply_(ef, 0, factor);
    for (size_t i = 0; ef->carry && i < ef->desc.carry; i++) {
        const float v = cg_times_(ef->carry[i], factor);
        ef->carry[i] = cg_saturate_(factor == 1.0f ? v : cg_faded_(v));
    }
    ef->reach *= factor < 0.0f ? -(double)factor : (double)factor;
    ef->hint = ef->threshold = 0.0f;
    cg_env_leave_(env);
    return CG_OK;
}
CG_API_ cg_status cg_ef_set_rate(cg_ef *ef, float rate) {
    if (!ef || !cg_is_finite_(rate) || rate == 0.0f) return CG_E_ARG;
    if (ef->pending) return CG_E_STATE;
    ef->desc.rate = rate;
    return CG_OK;
}
CG_API_ cg_status cg_ef_set_ratio(cg_ef *ef, float ratio) {
    const cg_env_ env = cg_env_enter_();
    cg_status s = CG_OK;
    cg_ef_needs_ needs;
    cg_ef_desc d;
    if (!ef) s = CG_E_ARG;
    else if (ef->pending) s = CG_E_STATE;
    else {
        d = ef->desc;
        cg_op_ratio_(&d.op, ratio);
        if (!cg_ratio_of_(&d.op)) s = CG_E_UNSUPPORTED;
        else s = cg_ef_check_(&d, &needs);
        if (s == CG_OK && needs.scratch > ef->scratch_bytes) s = CG_E_MEMORY;
        if (s == CG_OK) ef->desc.op = d.op;
    }
    cg_env_leave_(env);
    return s;
}
CG_API_ double cg_ef_precondition(const float *momentum, const float *variance, float epsilon, float *out, size_t n) {
    const cg_env_ env = cg_env_enter_();
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double v = (double)cg_load_(variance, i), by = v > 0.0 ? 1.0 / (cg_sqrt_(v) + (double)epsilon) : 0.0;
        const float u = cg_saturate_((float)((double)cg_load_(momentum, i) * by));
        cg_store_(out, i, u);
        sum += cg_times64_((double)u, (double)u);
    }
    sum = cg_sqrt_(sum);
    cg_env_leave_(env);
    return sum;
}

/* ---- >>blobs: little-endian, every part in whole words --------------------------------------------------------------

   byte 0  "cgef"  4 version  8 kind  12 parts present (bit 0 error, 1 velocity, 2 received, 3 error in bytes)
       16 n  24 steps  32 silent  40 moves  48 first of carry  56 floats of carry  64 floats of warm
       72 moved, ten doubles  152 error  160 error when sent  168 score  176 reach  184 size (doubles)
       192 scale  196 hint  200 threshold (floats)  204 zeros to 240  240 checksum of everything else, as of a packet
   256 error, velocity, received (floats; or n codes and the scales of 64, filled to a word), carry, warm */

static void cg_put_double_(uint8_t *p, double v) { uint64_t u; memcpy(&u, &v, 8); cg_put64_(p, u); }
static double cg_get_double_(const uint8_t *p) { const uint64_t u = cg_get64_(p); double v; memcpy(&v, &u, 8); return v; }
static uint64_t cg_ef_codes_(size_t n) { return (cg_add_(n, cg_mul_(2, cg_add_(n, CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_)) + 3) & ~(uint64_t)3; }
static uint32_t cg_ef_parts_(const cg_ef *ef) {
    return (ef->vector[0] ? 1u : 0u) | (ef->vector[1] ? 2u : 0u) | (ef->vector[2] ? 4u : 0u) | (ef->bytes ? 8u : 0u);
}
static uint64_t cg_ef_blob_(const cg_ef *ef) {
    uint64_t bytes = CG_EF_HEAD_;
    for (int i = 0; i < 3; i++) if (ef->vector[i]) bytes = cg_add_(bytes, cg_mul_(4, ef->desc.n));
    if (ef->bytes) bytes = cg_add_(bytes, cg_ef_codes_(ef->desc.n));
    return cg_add_(bytes, cg_mul_(4, cg_add_(ef->carry ? ef->desc.carry : 0, ef->warm_count)));
}
CG_API_ size_t cg_ef_save_bytes(const cg_ef *ef) { return ef ? cg_size_(cg_ef_blob_(ef)) : 0; }

static uint8_t *cg_ef_write_(uint8_t *p, const float *v, size_t n) {
    for (size_t i = 0; v && i < n; i++, p += 4) cg_put32_(p, cg_bits_(v[i]));
    return p;
}
static cg_sum_ cg_ef_sum_(const uint8_t *p, size_t len) {
    static const uint8_t zeros[16] = { 0 };
    const cg_kernels_ *kernels = cg_kernels_now_();
    cg_sum_ sum = cg_sum_of_(kernels, p, 240);
    sum = cg_sum_join_(sum, cg_sum_of_(kernels, zeros, 16));
    return cg_sum_join_(sum, cg_sum_of_(kernels, p + CG_EF_HEAD_, len - CG_EF_HEAD_));
}
static cg_status cg_ef_save_(const cg_ef *ef, uint8_t *buf, size_t cap, size_t *len) {
    const size_t n = ef->desc.n, bytes = cg_size_(cg_ef_blob_(ef)), codes = cg_size_(cg_ef_codes_(n)), have = n + 2 * ((n + CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_);
    uint8_t *p = buf + CG_EF_HEAD_;
    cg_sum_ sum;
    if (ef->pending) return CG_E_STATE;
    if (cap < bytes) return CG_E_CAPACITY;
    memset(buf, 0, CG_EF_HEAD_);
    cg_put32_(buf, CG_EF_MAGIC_);
    cg_put32_(buf + 4, CG_EF_VERSION_);
    cg_put32_(buf + 8, ef->desc.kind);
    cg_put32_(buf + 12, cg_ef_parts_(ef));
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
    cg_put32_(buf + 192, cg_bits_(ef->scale));
    cg_put32_(buf + 196, cg_bits_(ef->hint));
    cg_put32_(buf + 200, cg_bits_(ef->threshold));
    p = cg_ef_write_(p, ef->vector[0], n);
    if (ef->bytes) {
        memcpy(p, ef->bytes, have);
        memset(p + have, 0, codes - have);
        p += codes;
    }
    p = cg_ef_write_(p, ef->vector[1], n);
    p = cg_ef_write_(p, ef->vector[2], n);
    p = cg_ef_write_(p, ef->carry, ef->desc.carry);
    cg_ef_write_(p, ef->warm, ef->warm_count);
    sum = cg_ef_sum_(buf, bytes);
    cg_put64_(buf + 240, sum.a);
    cg_put64_(buf + 248, sum.b);
    *len = bytes;
    return CG_OK;
}
CG_API_ cg_status cg_ef_save(const cg_ef *ef, void *buf, size_t cap, size_t *len) {
    cg_env_ env;
    cg_status s;
    if (len) *len = 0;
    if (!ef || !buf || !len) return CG_E_ARG;
    env = cg_env_enter_();
    s = cg_ef_save_(ef, (uint8_t *)buf, cap, len);
    cg_env_leave_(env);
    return s;
}
static int cg_ef_positive_(double v) { return v >= 0.0 && v <= 1.7976931348623157e308; }
static int cg_floats_finite_(const uint8_t *p, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) if (!cg_is_finite_(cg_float_(cg_get32_(p + 4 * (size_t)i)))) return 0;
    return 1;
}
/* Everything that can be wrong with a blob. alone: it is taken as it is, and its carry must fit. */
static cg_status cg_ef_blob_check_(const cg_ef *ef, const uint8_t *p, size_t len, int alone) {
    const size_t n = ef->desc.n;
    uint64_t carry, first, warm, floats;
    cg_sum_ sum;
    if (!p) return CG_E_ARG;
    if (len < CG_EF_HEAD_ || len % 4 || cg_get32_(p) != CG_EF_MAGIC_) return CG_E_CORRUPT;
    sum = cg_ef_sum_(p, len);
    if (sum.a != cg_get64_(p + 240) || sum.b != cg_get64_(p + 248)) return CG_E_CORRUPT;
    if (cg_get32_(p + 4) != CG_EF_VERSION_) return CG_E_VERSION;
    first = cg_get64_(p + 48);
    carry = cg_get64_(p + 56);
    warm = cg_get64_(p + 64);
    if (cg_get32_(p + 8) != ef->desc.kind || cg_get32_(p + 12) != cg_ef_parts_(ef) || cg_get64_(p + 16) != n || warm != ef->warm_count) return CG_E_MISMATCH;
    if (alone ? carry != (ef->carry ? ef->desc.carry : 0) : carry && (carry > n || first > n - (size_t)carry)) return CG_E_MISMATCH;
    floats = cg_add_(carry, warm);
    for (int i = 0; i < 3; i++) if (ef->vector[i]) floats = cg_add_(floats, n);
    if (cg_add_(CG_EF_HEAD_ + (ef->bytes ? cg_ef_codes_(n) : 0), cg_mul_(4, floats)) != len) return CG_E_CORRUPT;
    for (int i = 0; i < 15; i++) if (!cg_ef_positive_(cg_get_double_(p + 72 + 8 * i))) return CG_E_CORRUPT;
    if (!(cg_float_(cg_get32_(p + 192)) > 0.0f && cg_float_(cg_get32_(p + 192)) <= 1.0f) || !cg_floats_finite_(p + 196, 2)) return CG_E_CORRUPT;
    for (size_t i = 204; i < 240; i++) if (p[i]) return CG_E_CORRUPT;
    if (ef->bytes) {
        for (size_t b = 0; b < (n + CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_; b++) if ((p[CG_EF_HEAD_ + n + 2 * b + 1] << 8 | p[CG_EF_HEAD_ + n + 2 * b]) > 0x7f7f) return CG_E_CORRUPT;
        p += cg_size_(cg_ef_codes_(n));
    }
    return cg_floats_finite_(p + CG_EF_HEAD_, floats) ? CG_OK : CG_E_CORRUPT;
}
static void cg_ef_take_head_(cg_ef *ef, const uint8_t *p) {
    ef->steps = cg_get64_(p + 24);
    ef->silent = cg_get64_(p + 32);
    ef->moves = cg_get64_(p + 40);
    ef->carry_first = cg_size_(cg_get64_(p + 48));
    for (int i = 0; i < 10; i++) ef->moved[i] = cg_get_double_(p + 72 + 8 * i);
    ef->error = cg_get_double_(p + 152);
    ef->error_sent = cg_get_double_(p + 160);
    ef->score = cg_get_double_(p + 168);
    ef->reach = cg_get_double_(p + 176);
    ef->size = cg_get_double_(p + 184);
    ef->scale = cg_float_(cg_get32_(p + 192));
    ef->hint = cg_float_(cg_get32_(p + 196));
    ef->threshold = cg_float_(cg_get32_(p + 200));
}
static const uint8_t *cg_ef_read_floats_(const uint8_t *p, float *v, size_t n) {
    for (size_t i = 0; v && i < n; i++, p += 4) v[i] = cg_float_(cg_get32_(p));
    return p;
}
static void cg_ef_load_one_(cg_ef *ef, const uint8_t *blob) {
    const size_t n = ef->desc.n;
    const uint8_t *p = blob + CG_EF_HEAD_;
    p = cg_ef_read_floats_(p, ef->vector[0], n);
    if (ef->bytes) {
        memcpy(ef->bytes, p, n + 2 * ((n + CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_));
        p += cg_size_(cg_ef_codes_(n));
    }
    p = cg_ef_read_floats_(p, ef->vector[1], n);
    p = cg_ef_read_floats_(p, ef->vector[2], n);
    if (cg_get64_(blob + 56) == ef->desc.carry) cg_ef_read_floats_(p, ef->carry, ef->desc.carry);
    p += 4 * cg_size_(cg_get64_(blob + 56));
    cg_ef_read_floats_(p, ef->warm, ef->warm_count);
    cg_ef_take_head_(ef, blob);
}
/* What blob q says of value i of part w (0 error, 1 velocity, 2 received): in units that do not depend on its scale. */
static double cg_ef_saved_(const cg_ef *ef, const uint8_t *p, int w, size_t i) {
    const size_t n = ef->desc.n, codes = ef->bytes ? cg_size_(cg_ef_codes_(n)) : 0;
    double scale = w == 2 || cg_ef_is_(&ef->desc, CG_EF_DIFFERS_) ? 1.0 : (double)cg_float_(cg_get32_(p + 192));
    if (w == 1 && ef->desc.kind == CG_EF_VARIANCE) scale *= scale;
    p += CG_EF_HEAD_;
    if (w == 0 && ef->bytes) {
        const float by = cg_ef_scale_get_(p + n + 2 * (i / CG_EF_BUCKET_));
        float f;
        cg_quantizer_of_(&cg_ef_octets_)->decode(cg_kernels_now_(), &cg_ef_octets_, &by, p + i, 1, &f, 0);
        return (double)f / scale;
    }
    p += codes;
    for (int v = 0; v < w; v++) if (ef->vector[v]) p += 4 * n;
    return (double)cg_float_(cg_get32_(p + 4 * i)) / scale;
}
/* Second legs end here: what one has kept of a mean, every rank gets. */
static double cg_ef_carried_(const cg_ef *ef, const uint8_t *p, size_t i) {
    const uint64_t first = cg_get64_(p + 48), many = cg_get64_(p + 56), warm = cg_get64_(p + 64);
    const size_t len = cg_size_(cg_ef_blob_(ef)) - 4 * (ef->carry ? ef->desc.carry : 0) + 4 * (size_t)many;
    if (i < first || i - first >= many) return 0.0;
    return (double)cg_float_(cg_get32_(p + len - 4 * (size_t)(warm + many) + 4 * (i - (size_t)first)));
}
static float cg_ef_mean_of_(const cg_ef *ef, const void *const *bufs, size_t count, int w, size_t i) {
    const int differs = cg_ef_is_(&ef->desc, CG_EF_DIFFERS_);
    double sum = 0.0;
    for (size_t q = 0; q < count; q++) {
        sum += cg_ef_saved_(ef, (const uint8_t *)bufs[q], differs && w == 0 ? 2 : w, i);     /* the mean of all h is H, but for a carry */
        if (w == 0 && !differs) sum += cg_times64_((double)count, cg_ef_carried_(ef, (const uint8_t *)bufs[q], i));
    }
    return cg_saturate_((float)(sum / (double)count));
}
static void cg_ef_load_many_(cg_ef *ef, const void *const *bufs, size_t count) {
    const size_t n = ef->desc.n;
    float e[CG_EF_BUCKET_];
    double reach = 0.0;
    cg_ef_load_one_(ef, (const uint8_t *)bufs[0]);
    for (int w = 0; w < 3; w++)
        for (size_t i = 0; ef->vector[w] && i < n; i++) ef->vector[w][i] = cg_ef_mean_of_(ef, bufs, count, w, i);
    for (size_t i = 0; ef->bytes && i < n; i++) {
        e[i % CG_EF_BUCKET_] = cg_ef_mean_of_(ef, bufs, count, 0, i);
        if (i % CG_EF_BUCKET_ == CG_EF_BUCKET_ - 1 || i == n - 1) cg_bytes_put_(cg_kernels_now_(), ef, i / CG_EF_BUCKET_, e);
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
    cg_env_ env;
    cg_status s = CG_OK;
    if (!ef || !bufs || !lens || !count) return CG_E_ARG;
    if (ef->pending) return CG_E_STATE;
    env = cg_env_enter_();
    for (size_t q = 0; q < count && s == CG_OK; q++) s = cg_ef_blob_check_(ef, (const uint8_t *)bufs[q], lens[q], alone);
    if (s == CG_OK && alone) cg_ef_load_one_(ef, (const uint8_t *)bufs[0]);
    else if (s == CG_OK) cg_ef_load_many_(ef, bufs, count);
    cg_env_leave_(env);
    return s;
}
CG_API_ cg_status cg_ef_load(cg_ef *ef, const void *buf, size_t len) { return cg_ef_load_(ef, &buf, &len, 1, 1); }
CG_API_ cg_status cg_ef_load_mean(cg_ef *ef, const void *const *bufs, const size_t *lens, size_t count) { return cg_ef_load_(ef, bufs, lens, count, 0); }

#if defined(__clang__)
#  pragma STDC FP_CONTRACT DEFAULT
#  if defined(__x86_64__) || defined(__i386__)
#    pragma float_control(pop)
#  endif
#elif defined(__GNUC__)
#  pragma GCC pop_options
#endif

#endif /* COMPGRAD_IMPLEMENTATION */
