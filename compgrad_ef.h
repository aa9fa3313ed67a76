/* compgrad_ef.h: made of the files in src/ by "make headers"; change those, not this one. */

/* src/ef/manual.h */
/* compgrad_ef.h - a compressed mean with memory: error feedback between steps.   part of compgrad, MIT licence

       #define COMPGRAD_IMPLEMENTATION                  // in exactly one .c or .cpp file
       #include "compgrad_ef.h"                         // includes compgrad_exchange.h and compgrad.h

       size_t bytes = cg_mean_memory("topk:0.01", sizes, tensors, &net, why, sizeof why);  // 0: why says what is wrong
       void *mem = malloc(bytes);                       // sizes[i]: values of tensor i; net: a cg_transport
       cg_mean *mean;
       if (cg_mean_open(&mean, "topk:0.01", sizes, tensors, &net, mem, bytes) != CG_OK) puts(cg_mean_why(mean));
       if (cg_mean_step(mean, grads) != CG_OK) puts(cg_mean_why(mean));          // each grads[i] := its mean over ranks

   These five lines, the last in every step, are all that a training loop needs. A cg_mean is one object in one block
   of your memory; it compresses every tensor, averages it over all ranks by your transport, keeps what was not sent,
   and adds it to the next gradient. The step stands between the backward pass and the optimizer
   (examples/training_loop.c, with SGD and with AdamW).
     - A step is all or nothing: after an error gradients, memory and the number of steps are as before, on all ranks,
       and the same call is a good next one. If only the last message was lost, and some ranks have taken the step, the
       next one is CG_E_MISMATCH on all of them, until all have called cg_mean_agree.
     - cg_mean_open sends nothing. What it accepts can step; what could not is refused there, with a sentence that says
       what, where and what to do. A configuration that differs between ranks is named in the first step.
     - cg_mean_describe prints what happens to every tensor, and a line that opens the same mean again.
     - cg_mean_save and cg_mean_load; for another number of ranks cg_mean_load_mean; for other buckets
       cg_mean_load_moved.

   CONFIGURATIONS. One line: an operator as in compgrad.h, then name=value in any order; '#' begins a comment. NULL or
   "" is the default, eden:4 small=1024: 8 times fewer bits, unbiased, and in no measurement with SGD, momentum or Adam
   worse than dense gradients; README has the figures.
       topk:0.01|absmax:4:512 memory=momentum:0.9 route=scatter seed=42 dense=100 warmup=power:4:468 clip=1 small=4096
     memory=KIND       one of the kinds below in small letters, with its parameters: classic (the default), loco:0.8,
                       momentum:0.9:nesterov, ef21, laq:0.1:patience=50, filtered:0.9, difference:sqrt, none, ...; of
                       classic, loco, scalecom and ecq also 8bit and reset=1000, as in classic:8bit
     optimizer=NAME    chooses memory= for sgd, momentum:0.9 or adam, where the line has none. With adam it is
                       difference, and cg_mean_step then takes models in place of gradients. cg_mean_describe says what
                       was chosen
     route=  fold=     the routes and folds of compgrad_exchange.h in small letters; auto and mean if they are left out
     seed=42           of everything random; the same on all ranks, as the whole line must be
     dense=100         the first 100 steps send f32
     warmup=KIND:S:P   the ratio of the operator falls in S stages of P steps: power, quarters or linear; or
                       table:0.25,0.1,0.03:468, its ratios one by one
     clip=1            each rank's gradient of a tensor is clipped at 1 / sqrt(ranks), by its norm; clip=value:1 by
                       value
     small=1024        tensors with fewer values are exact: they travel together, as f32
     pack=each         all tensors travel in one packet, each with scales, selection and random numbers of its own: the
                       floats of one packet for each, with some 12 bytes for each in place of a header and rounds of its
                       own. pack=global: a selection is from all of them together. For up to 512 tensors, by allgather
                       or server. Clipping by norm, the scale of operators that expand, and the silence of laq are then
                       those of all tensors
     overlap=yes       room for cg_mean_start and cg_mean_next, which name a step's messages one by one, as those of an
                       exchange, so that you can compute while they travel
   Matrix operators take rows and columns from the tensors, as in lowrank:4, if cg_mean_open_of is given them; vectors,
   and matrices that two factors would not shorten, are then exact. Memory: for each tensor its state (see MEMORY)
   twice, as it is copied before a step, the n floats of a result with kinds that keep what they received, and an
   exchange.

   What lies below, for those who need more of it. A state and an exchange by themselves:

       cg_ef_desc d = CG_ZERO;                          // zero means classic error feedback
       d.op = cg_topk(0.01f);
       d.n = n;
       void *state = malloc(cg_ef_memory(&d));          // keep it for the whole training
       cg_ef ef;
       cg_status s = cg_ef_init(&ef, &d, state, cg_ef_memory(&d));

       cg_exchange_desc x = CG_ZERO;                    // route, fold and tag; the operator is that of ef
       x.tag.seed = 42; x.tag.step = step;
       size_t bytes = cg_ef_exchange_memory(&ef, &x, &transport);
       s = cg_ef_exchange(&ef, &x, &transport, grad, mem, bytes, &report);      // grad := the vector for the optimizer

   An operator that keeps 1 % of a gradient loses the rest, and training with it stalls. Error feedback keeps the part
   that was not sent, the residual, and adds it to the next gradient. If you move packets yourself, call the two halves
   of a step; nothing is subtracted from the residual before you say what became of the packet:

       s = cg_ef_compress(&ef, &tag, grad, packet, cap, &len);                  // cap: cg_ef_bound(&d)
       // ... send the packet; then call exactly one of these two:
       s = cg_ef_commit(&ef, packet, len, NULL);        // the packet was used; pass cg_report.used if only a part was
       s = cg_ef_rollback(&ef, packet, len);            // it was not used: the residual keeps the whole gradient,
                                                        // unless you take it out again by cg_ef_withdraw

   WORDS
     residual       the part of earlier gradients that has not been sent
     contribution   the part of the compressed vector that is in the result (report.used); often the whole packet
     pending        the time between cg_ef_compress and the commit or rollback that ends the step
     expands        said of an unbiased operator whose squared error may be above |x|^2: w |x|^2 on average, w >= 1

   OPERATORS THAT EXPAND (random-k scaled by n/k, QSGD with few levels, TernGrad) would let the residual grow without
   bound. cg_ef therefore takes random-k and PermK without their scaling, and divides other operators by 1 + w, unless
   the error of each value is below the largest of its bucket anyway (absmax of 3 bits and more). Residuals and momenta
   are then stored multiplied by cg_ef_scale() = 1/(1 + w). DIANA and SIGNUM use every operator as it is.

   MEMORY. You own the buffer of cg_ef_memory() bytes; nothing allocates. It holds, for n elements,
     nothing       NONE
     4 n bytes     CLASSIC, LOCO, SCALECOM, ECQ, SIGNUM, DIFFERENCE
     8 n bytes     MOMENTUM, VARIANCE, EF21, DIANA, LAQ, ONEBIT_ADAM, FILTERED; 12 n for EF21 with momentum
     n + n/32      CLASSIC, LOCO, SCALECOM and ECQ with desc.bytes: the residual in 8 bits
   and the scratch of the operator, for a selection of k values a list of about 2 k. LOCO, SCALECOM, ECQ, EF21, DIANA,
   LAQ and every kind with desc.bytes compute p (see KINDS) chunk by chunk and do not store it; a matrix operator, a
   codec of yours and any selection other than top-k need 4 n bytes more there. In 8 bits, compress and commit each
   round the residual by at most 1/250 of the largest of 64 neighbours; commit of a selection by at most twice that.

   ERRORS
     cg_ef_compress   The state is as it was, and the gradient is not in it. Only if a codec of yours fails is the
                      gradient in the state, as after a rollback.
     cg_ef_commit     The state is as it was, and the step is still pending: commit or roll back.
     cg_ef_exchange   grad is as it was. cg_ef_stats.kept tells whether the gradient is in the state; if it is, do not
                      give it again. One exception: if the sum over ranks is too large for a float, EF21, DIANA, LAQ and
                      ONEBIT_ADAM leave it, with Inf, in grad.
   cg_ef_report tells of the last call: what was wrong, which buffer and how many bytes it needs, which value is not
   finite; cg_report_print makes a sentence of it.
   NaN and Inf in grad are refused (CG_E_NONFINITE). Set desc.finite if you have checked grad yourself and no magnitude
   is above 1e37; this saves a pass over it. Sums in the state that are too large for a float become the largest float.

   FALLING BACK. After a cg_ef_exchange that failed, the state usually has the gradient, and the next step sends it. If
   you average the same gradient in another way instead, take it out of the state first, or it is counted twice:

       s = cg_ef_exchange(&ef, &x, &transport, grad, mem, bytes, &report);
       if (s != CG_OK && cg_ef_stats_of(&ef).kept) s = cg_ef_withdraw(&ef, grad);       // then your own dense mean

   The same call comes before a step that is repeated with the same gradient. The state is then as it was, but for
   rounding (see cg_ef_withdraw). A rank decides by its own status: set CG_CONFIRM, so that a step fails on all ranks or
   on none, and all of them fall back.

   DELAY. cg_ef_stats.delay says how much of the gradients waits in the residual, as Adam sees it. Above 3 an Adam
   behind the mean suffers, above 20 it stalls: send more, or exchange models (DIFFERENCE). For SGD it is no measure.

   RANKS THAT DISAGREE. If only the last message of a step is lost, some ranks commit it and others do not. Residuals do
   not mind: they are a rank's own. But H of EF21, DIANA and LAQ and M of ONEBIT_ADAM must be equal on all ranks, and
   would differ for ever. So exchanges of these kinds are confirmed (CG_CONFIRM), which leaves only a message lost in
   the closing round; a model that is to stay equal on all ranks deserves the same flag with other kinds. And these
   kinds keep a mark of what they have received (cg_ef_mark); the next exchange compares
   it, and is CG_E_MISMATCH on all ranks. There are three ways back, each to be taken by all ranks: cg_ef_agree, which
   makes H anew from every rank's h; cg_ef_load of states that were saved after the same step; cg_ef_reset. The model
   is yours: where some ranks have taken a step that others have not, make it equal, too. U of FILTERED and the base of
   DIFFERENCE are received, too, and cg_ef_agree copies those of the rank that has seen most steps. With wires of your
   own there is no opening record: compare cg_ef_mark yourself.

   THREADS. Every function is re-entrant; use one cg_ef from one thread at a time. With COMPGRAD_OPENMP the results have
   the same bits at any number of threads.

   SAVING. cg_ef_save writes everything that the next step depends on except desc, as the same bytes on every machine;
   cg_ef_load restores it. To continue with another number of ranks, give every new rank the states of all old ranks by
   cg_ef_load_mean: it takes their mean and adds the carries to the residual, so that the mean over ranks of what has
   not been sent stays the same. (With CG_FOLD_SUM, call cg_ef_agree before the next step of EF21, DIANA or LAQ.)

   SMALL VALUES. Where state is multiplied by a factor other than 1 (momentum, decay, alpha of ECQ, a change of scale),
   products below 2^-100 in magnitude become 0; otherwise values that only shrink would end as denormals, which are
   slow. A factor of 1 drops nothing, nor does p = g - h. The residuals of LOCO and SCALECOM and the h of DIANA do not
   decay: they shrink only by what is sent. (s of VARIANCE holds squares: gradients below 2^-50 are dropped there.)

   KINDS. g is the gradient after clipping, times desc.rate; p the vector that is compressed; D the decoded contribution
   of this rank, and mean D its mean over ranks; e the residual; u a momentum; s a sum of variances; h the estimate of
   this rank's gradient that its packets improve, H the mean of all ranks' h, which every rank keeps; M the last result.
   "holds" is true after every step; its sums run over all steps so far. A rollback is a step with D = 0 (ONEBIT_ADAM:
   e := e + (1 - momentum) g), so that nothing is lost. EF21, DIANA, LAQ and ONEBIT_ADAM need mean D at commit; the
   first three turn it into the result. Numbers after the formulas are the defaults, taken where a field of desc is 0;
   b bits, r ratio, a, C and B are parameters of operators as in compgrad.h.

     CLASSIC      p = g + decay e              e := p - D                     decay 1
                  holds for decay 1: e + sum of D = sum of g
                  EF-SGD, EF-signSGD (Karimireddy 19); MEM-SGD (Stich 18: desc.rate is the learning rate); PowerSGD
                  (Vogels 19: a low-rank operator; in an exchange D is the mean, so e is the error against the mean);
                  SparseLoCo (decay .95, chunked:C:r|absmax:4:64:nearest: the quantizer leaves .97 to .99 of the
                  energy that chunked selects; with 2 bits, whose levels are -s, 0 and s, it would be .26 to .42);
                  DeMo (decay .999, demo_dct:r)
     LOCO         p = g + e                    e := e + (1 - decay) (g - D)   decay .8
                  holds: e = (1 - decay) sum of (g - D) since the last reset (desc.reset)       (Xie 25)
     SCALECOM     p = g + e                    e := e + decay (g - D)         decay .1
                  holds: e = decay sum of (g - D)                                               (Chen 20)
     ECQ          p = g + alpha e              e := decay e + g - D           alpha .2, decay .9
                  holds: e = sum of decay^age (g - D)                                           (Wu 18)
     MOMENTUM     u := momentum u + g          e := p - D, and u := 0 at the coordinates of a sparse D
                  p = e + u                    holds: e + sum of D = sum of all u that were added to p
                  DGC (Lin 18); desc.nesterov: u := momentum (u + g), p = e + u + g
     SIGNUM       u := momentum u + (1 - momentum) g                          nothing is subtracted
                  p = u                                                                         (Bernstein 18)
     VARIANCE     s := s + side.aux            e := p - D; s := 0 where sent, elsewhere decay s; decay .999
                  p = e + g                    holds: e + sum of D = sum of g   (Tsuzuku 18; operator variance:a)
     EF21         p = g - h                    h := h + D; result H := H + mean D
                  holds: h = sum of D; mean of all h = H   (Richtarik 21); with momentum g is replaced by its running
                  mean u := momentum u + (1 - momentum) g, which starts at the first g (EF21-SGDM, Fatkhullin 23,
                  where h starts there too: that is desc.dense_steps = 1)
     DIANA        p = g - h                    h := h + alpha D; result H + mean D, then H := H + alpha mean D
                  holds: mean of all h = H     alpha 1/(1 + w)                                  (Mishchenko 19)
     LAQ          as EF21, on a grid of +-max|p| (operator minmax:b:n:nearest, one bucket); except in the first step it
                  sends an empty packet while sending does not pay (desc.laq_step, cg_ef_moved) (Sun 19)
     ONEBIT_ADAM  p = e + momentum M + (1 - momentum) g     e := p - D        result M := mean D
                  1-bit Adam and 1-bit LAMB (Tang 21) after their warm-up, with the variance frozen; update the model by
                  cg_ef_precondition
     NONE         p = g                        keeps nothing; result mean D
     FILTERED     u := momentum u + g          U' := mean D; result U' - momentum U; U := U'
                  p = u                        holds: the buffer of an SGD with that momentum is U
     DIFFERENCE   p = x - base, of models x    base := base + lambda mean D, which is the result; lambda 1
                  holds: base has the same bits on all ranks; its expected move is lambda times the mean of all p

   WITHOUT A RESIDUAL. What NONE, FILTERED and DIFFERENCE do not send is not sent later, so they take unbiased
   operators alone (desc.biased lets NONE take others, and its reports say what that does) and use them as they are:
   random-k times n/k, nothing divided by 1 + w. Every rank draws samples and rotations for itself (:private), as errors
   of common draws would add up; only routes that sum packets, as linear, have common ones. A step that fails leaves
   nothing in the state of NONE and DIFFERENCE: repeat it, or go on.
     Error feedback is the wrong tool under Adam: what it delays is small in the gradient's norm and huge in Adam's,
   where it is divided by the root of the variance. DIFFERENCE compresses after the optimizer instead: every rank's own
   Adam, AdamW or any other optimizer takes its step (or H of them) on its own model with its own gradient, and then

       s = cg_ef_exchange(&ef, &x, &transport, model, mem, bytes, &report);     // model: common now, on all ranks

   The first exchange sends all of every model, and makes their mean the base; cg_ef_set_received before it saves that
   where all ranks begin at the same model. CG_ABSTAIN (route allgather) says that this rank has not moved. A rank that
   joins gets the base by cg_ef_agree, which all ranks call, and reads its model by cg_ef_read(CG_EF_RECEIVED). lambda
   above 1 is a multiplier of the learning rate: every rank's own variance holds the noise of one rank, not of the
   mean, so that up to the square root of the number of ranks may pay (CG_LAMBDA_SQRT), and a tuned rate may need none.
   Moments of optimizers stay with their rank: save them there, and take their mean where the number of ranks changes.
   Where the route has a second leg the mean is compressed again, by an unbiased operator. Differences that Adam has
   made are about as large everywhere, so that random-k with EDEN at 1 bit has a quarter of the error of rate or wangni
   at the same bytes; of gradients their errors are within a factor of two.
     FILTERED is for SGD with momentum, left as it is in your optimizer: every rank keeps the momentum u of its own
   gradients, and sends that, where the gradient's own noise is averaged already; U, the mean of what was received, is
   what your optimizer has. Not with Nesterov, which amplifies the noise, nor with Adam. A gradient whose step failed
   is in u, as the stats say (kept).

   THE SAVED STATE, little-endian, every section filled to a multiple of 4 bytes:
     byte 0   "cgef"    4 version u32    8 kind u32    12 sections that follow u32: bits 0, 1, 2 and 3
     byte 16  n u64    24 steps u64    32 silent steps in a row (LAQ) u64    40 calls of cg_ef_moved u64
     byte 48  first element of carry u64    56 floats of carry u64    64 floats of warm u64
     byte 72  last ten values of cg_ef_moved f64    152 error now f64    160 error when last sent f64 (LAQ)
     byte 168 score f64    176 bound of all magnitudes f64    184 |p| of the last step f64
     byte 192 scale f32    196 and 200 thresholds that speed up the next top-k f32    204 zeros
     byte 208 mark u64 in version 2, which is that of kinds with H or M; zeros in version 1, of all others and of H or M
              as 0.1 saved them: then the mark begins anew, with what was received    216 zeros
     byte 240 checksum of everything else, as in a packet
     byte 256 the sections: bit 0 e, u of SIGNUM and FILTERED or h, or in its place bit 3 e in 8 bits; bit 1 u or s;
              bit 2 H, M, U of FILTERED or the base.
              Then carry and warm. All are f32, but e in 8 bits is n codes and then a u16 for every 64 of them, the
              upper half of their f32 scale */

/* src/ef/api.h */
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

/* src/ef/mean_api.h */
/* mean_api: the public declarations of the front door, a mean with memory in five lines and one line of text

   Offers   cg_mean and the calls on it; cg_tensor
   Needs    api
   Touches  nothing */

#ifndef COMPGRAD_EF_MEAN_H
#define COMPGRAD_EF_MEAN_H

/* A compressed mean over ranks of a list of tensors, with its memory. It lives in your memory, in one block. */
typedef struct cg_mean cg_mean;

/* A tensor of the list, for cg_mean_open_of: all that is 0 is not known. */
typedef struct cg_tensor {
    const char *name; /* in sentences and saved states; NULL: its index. It is copied */
    size_t n;         /* values; 0: the tensor takes part in nothing */
    size_t rows;      /* of a matrix of n / rows columns, row by row; 0 or 1: a vector */
} cg_tensor;

/* Bytes of mem that cg_mean_open needs on this rank, for any step; 0: refused, and why[0..cap) has a sentence that says
   what is wrong and where. config: one line, see CONFIGURATIONS above; NULL or "": the default. n: values of every
   tensor. It sends nothing. why may be NULL. */
CG_API_ size_t cg_mean_memory(
    const char *config, const size_t *n, size_t tensors, const cg_transport *transport, char *why, size_t cap);
/* Makes a mean in mem, which may have any alignment and must stay in place; config, n and transport are copied. It
   sends nothing, and whatever it accepts can step: a configuration that no step could take is refused here (CG_E_ARG
   or CG_E_UNSUPPORTED). *mean is set also after an error, if mem has room for a sentence (1 KB): then cg_mean_why has
   it, and a step returns CG_E_STATE. Of memory from malloc *mean
   is the address, so that either may be freed. */
CG_API_ CG_CHECKED_ cg_status cg_mean_open(cg_mean **mean, const char *config, const size_t *n, size_t tensors,
    const cg_transport *transport, void *mem, size_t bytes);
/* The same with names and shapes of the tensors, which matrix operators like lowrank:4 need. */
CG_API_ size_t cg_mean_memory_of(
    const char *config, const cg_tensor *list, size_t tensors, const cg_transport *transport, char *why, size_t cap);
CG_API_ CG_CHECKED_ cg_status cg_mean_open_of(cg_mean **mean, const char *config, const cg_tensor *list, size_t tensors,
    const cg_transport *transport, void *mem, size_t bytes);

/* grads[i][0..n[i]) := the mean over ranks of tensor i (or whatever fold= says), and the memory keeps what was not
   sent. Every rank calls it. All or nothing: after an error gradients, memory and the number of steps are as before
   the call, on this rank, and the same call, also with newer gradients, is a good next one. All ranks get an error, or
   none does, unless a message of the closing round is lost; then the next step is CG_E_MISMATCH on all ranks, until
   all have called cg_mean_agree. grads[i] of a tensor without values may be NULL. */
CG_API_ CG_CHECKED_ cg_status cg_mean_step(cg_mean *mean, float *const *grads);
/* The same where the tensors lie one behind the other in one vector. */
CG_API_ CG_CHECKED_ cg_status cg_mean_step_flat(cg_mean *mean, float *grads);
/* The same with the variances of memory=variance: variances[i] is n[i] floats. */
CG_API_ CG_CHECKED_ cg_status cg_mean_step_with(cg_mean *mean, float *const *grads, const float *const *variances);

/* A step message by message, to compute while messages travel: for a mean that was opened with overlap=yes, which
   takes n floats more for each tensor. cg_mean_start moves no message and reads no gradient; then call cg_mean_next
   until it returns something other than CG_AGAIN, and move the message *io after each CG_AGAIN, as for
   cg_exchange_next. Tensors have their turn in the order of the list, and grads[i] is read when its turn comes, which
   is after the messages of all before it: it may be written until then. Results appear when the last of them is in.
   All or nothing, and the floats, are as of cg_mean_step; all ranks must take the same of the two. The blocking form:
   while ((s = cg_mean_next(m, code, &io)) == CG_AGAIN) code = cg_io_run(&net, &io); */
CG_API_ CG_CHECKED_ cg_status cg_mean_start(cg_mean *mean, float *const *grads);
CG_API_ CG_CHECKED_ cg_status cg_mean_next(cg_mean *mean, int last_code, cg_io *io);

/* After CG_E_MISMATCH because a step was committed on some ranks only: makes the numbers of steps equal, that of the
   rank that has most, and H and M of kinds that have them, as cg_ef_agree does. Every rank must call it. Residuals
   stay each rank's own. The model is yours: copy it from a rank that has taken the step. After an error call it again.
   */
CG_API_ CG_CHECKED_ cg_status cg_mean_agree(cg_mean *mean);

/* The last call that failed, as a sentence with what, where and what to do; "ok" after one that did not. It lives in
   the object, until the next call. mean may be NULL. */
CG_API_ const char *cg_mean_why(const cg_mean *mean);
/* How the last step went: status, bytes and rounds, the route if all tensors took one; used is NULL. */
CG_API_ void cg_mean_report(const cg_mean *mean, cg_report *report);
/* Steps that have succeeded, also before the state was saved. */
CG_API_ uint64_t cg_mean_steps(const cg_mean *mean);
/* Writes, with a final 0, a configuration that opens the same mean again, and then, in lines that begin with '#', what
   happens to every tensor; all of it may be given to cg_mean_open. CG_E_CAPACITY: it was cut off; 400 bytes and 200 for
   each tensor suffice. */
CG_API_ CG_CHECKED_ cg_status cg_mean_describe(const cg_mean *mean, char *text, size_t cap);
/* The state of tensor i, to look at; NULL: it has no values, or mean is not open. */
CG_API_ const cg_ef *cg_mean_state(const cg_mean *mean, size_t tensor);
/* memory=laq, after every update of the model: squared = |tensor after - tensor before|^2. */
CG_API_ CG_CHECKED_ cg_status cg_mean_moved(cg_mean *mean, size_t tensor, double squared);

/* Bytes that cg_mean_save writes; 0: mean is not open. */
CG_API_ size_t cg_mean_save_bytes(const cg_mean *mean);
/* Writes the state of this rank, with configuration, steps and the names of all tensors, to buf[0..*len). */
CG_API_ CG_CHECKED_ cg_status cg_mean_save(const cg_mean *mean, void *buf, size_t cap, size_t *len);
/* Restores a state that this rank has saved, into a mean that was opened in the same way; buf may be any bytes.
   CG_E_MISMATCH: tensors, their names, memory or number of ranks are others. After an error nothing has changed. */
CG_API_ CG_CHECKED_ cg_status cg_mean_load(cg_mean *mean, const void *buf, size_t len);
/* The same for another number of ranks: every rank loads the mean of the states of all ranks that saved, so that what
   has not been sent stays the same in the mean over ranks. */
CG_API_ CG_CHECKED_ cg_status cg_mean_load_mean(
    cg_mean *mean, const void *const *bufs, const size_t *lens, size_t count);
/* The same for other tensors, of as many values in all (say, other buckets of one model): the states of all tensors,
   one behind the other, are cut anew, and what has not been sent stays in its place. count is 1, for the state of this
   rank, or that of all ranks that saved. The start of low-rank iterations and thresholds are forgotten. */
CG_API_ CG_CHECKED_ cg_status cg_mean_load_moved(
    cg_mean *mean, const void *const *bufs, const size_t *lens, size_t count);

#endif /* COMPGRAD_EF_MEAN_H */

/* src/ef/begin.h */
/* begin: opens the implementation of error feedback, for the one file that defines COMPGRAD_IMPLEMENTATION

   Offers   nothing
   Needs    compgrad_exchange.h, whose implementation comes first
   Touches  nothing */
#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_EF_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_EF_IMPLEMENTED_

/* src/core/base/fp_begin.h */
/* fp_begin: strict floating point from here to fp_end, whatever flags the includer compiles with

   Offers   pragmas: no contraction, no reassociation, no fast math
   Needs    nothing
   Touches  the compiler's floating-point state, which fp_end gives back; every header has both once
   All code whose results are part of a packet stands between the two. */
#if defined(COMPGRAD_ONLY) && defined(__GNUC__) /* functions that only rows name which were left out */
#  pragma GCC diagnostic push
#  pragma GCC diagnostic ignored "-Wunused-function"
#endif
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
/* kinds: what a row of the table of kinds holds, and the constants of the header

   Offers   cg_ef_has_trait_ and the traits, cg_ef_begins_, cg_ef_has_velocity_, cg_ef_in_place_, cg_ef_decay_;
            constants
   Needs    api; the table itself is in ef/rows.h, behind the functions that its rows name
   Touches  nothing
   Other headers may use: cg_ef_row_at_
   All of them need a description whose kind is in range (cg_ef_check_). */

enum {
    CG_EF_IN_PLACE_ = 1 << 0,            /* p is stored over the residual e; the others make p chunk by chunk */
    CG_EF_HAS_VELOCITY_ = 1 << 1,        /* keeps a second vector: u, or the variance v */
    CG_EF_KEEPS_RECEIVED_ = 1 << 2,      /* keeps the mean that all ranks received: H, or M */
    CG_EF_HAS_SHIFT_ = 1 << 3,           /* p = g - h: vector[0] is a shift h, no residual, and not divided by 1 + w */
    CG_EF_ALLOWS_8BIT_ = 1 << 4,         /* the residual may be kept in 8 bits (desc.bytes) */
    CG_EF_TAKES_MOMENTUM_ = 1 << 5,      /* desc.momentum may be set */
    CG_EF_TAKES_NESTEROV_ = 1 << 6,      /* desc.nesterov may be set */
    CG_EF_HAS_NO_RESIDUAL_ = 1 << 7,     /* vector[0] is a shift or a momentum: nothing to be forgotten or rescaled */
    CG_EF_TAKES_OP_AS_IS_ = 1 << 8,      /* p is not divided by 1 + w, and a sample stays scaled */
    CG_EF_ADDS_VELOCITY_ = 1 << 9,       /* p has u in it */
    CG_EF_ADDS_RECEIVED_ = 1 << 10,      /* p has momentum times M in it */
    CG_EF_MASKS_VELOCITY_ = 1 << 11,     /* where a selection was sent, the velocity starts anew */
    CG_EF_TAKES_VARIANCE_ = 1 << 12,     /* the velocity is a variance: cg_extra.aux gives that of every gradient, it
                                           decays in every step, and starts anew wherever values were sent */
    CG_EF_AVERAGES_GRADIENTS_ = 1 << 13, /* with momentum, the velocity is a running mean of gradients in place of g */
    CG_EF_SHIFTS_BY_ALPHA_ = 1 << 14,    /* a contribution enters h and H times desc.alpha, or 1 / (1 + w) */
    CG_EF_MAY_BE_SILENT_ = 1 << 15,      /* sends a packet only where it moves the model enough (LAQ) */
    CG_EF_KEEPS_NOTHING_ = 1 << 16,      /* has no vector[0]: p is made of the gradient and of what was received */
    CG_EF_UNBIASED_ONLY_ = 1 << 17,      /* nothing would send later what a biased operator drops */
    CG_EF_NEEDS_MOMENTUM_ = 1 << 18,     /* desc.momentum must be set */
    CG_EF_TAKES_MODELS_ = 1 << 19,       /* the vector is a model: it is neither scaled nor clipped, and as long as no
                                            model is known to be common, a step sends all of it */
    CG_EF_COPIES_RECEIVED_ = 1 << 20     /* what was received is equal on all ranks that have any: others copy it */
};
struct cg_ef_step_;
/* Everything of a kind. st has the step's scales; g, e and u are what ef/step.h says. */
typedef struct cg_ef_row_ {
    uint32_t id;
    /* in text, and its parameters there: names of ef/mean_words.h, joined by ':'. The first is also given without its
       name, and must be given if '!' follows it */
    const char *name, *params;
    uint32_t traits;
    float decay;                /* where desc.decay is 0 */
    int velocity_power;         /* the velocity is stored times 1 / (1 + w) to this power */
    float (*sent)(float decay); /* what is taken out of the residual for a contribution, as a part of it */
    /* Sets of p_from_g, p_from_e, e_from_g and e_from_e what differs from g, 1, sent times g, 1; NULL: nothing. Of
       kinds that work in place only e_from_g and e_from_e mean something: e after a rollback (beside u, if p has it).
       */
    void (*coefficients)(struct cg_ef_step_ *st, float decay);
    /* One chunk of a kind that works in place: e becomes p, and u what the kind makes of it; returns |p|^2. first is
       the chunk's place in the vector, g and e point at the chunk itself. NULL: of the other kinds. */
    double (*compensate)(const struct cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e);
    void (*withdraw_velocity)(cg_ef *ef, struct cg_ef_step_ *st); /* as it was before the step; NULL: there is none */
    /* Some values of what was received, up to CG_CHUNK_, and of the mean of contributions: the one becomes what it
       is after the step, the other the result. NULL: the kind keeps nothing that it has received. */
    void (*receive)(const cg_ef *ef, size_t many, float *received, float *mean);
} cg_ef_row_;
static const cg_ef_row_ *cg_ef_row_at_(uint32_t kind); /* in ef/rows.h; NULL: there is no such kind */
#define CG_EF_MAGIC_ 0x66656763u                       /* "cgef", the first bytes of saved state */
#define CG_EF_HUGE_ 1e37f /* from this magnitude on a sum of two values may leave the float range */
enum {
    CG_EF_BUCKET_ = 64,        /* values that share a scale in an 8-bit residual */
    CG_EF_MAX_STAGES_ = 4096,  /* of a warm-up */
    CG_EF_HEADER_BYTES_ = 256, /* of saved state */
    CG_EF_SEAL_OFFSET_ = 240,  /* byte of the checksum in it */
    CG_EF_VERSION_ = 1,        /* of saved state */
    CG_EF_VERSION_MARKED_ = 2, /* with a mark: of kinds that keep what they received */
    CG_EF_MARK_OFFSET_ = 208   /* byte of the mark in it */
};

static const cg_ef_row_ *cg_ef_row_of_(const cg_ef_desc *d) { return cg_ef_row_at_(d->kind); }
static int cg_ef_has_trait_(const cg_ef_desc *d, uint32_t trait) { return (cg_ef_row_of_(d)->traits & trait) != 0; }
/* A step of a model that no rank knows yet: the whole of it is sent. */
static int cg_ef_begins_(const cg_ef *ef) { return cg_ef_has_trait_(&ef->desc, CG_EF_TAKES_MODELS_) && !ef->mark; }
static int cg_ef_has_velocity_(const cg_ef_desc *d) {
    return cg_ef_has_trait_(d, CG_EF_HAS_VELOCITY_) ||
        (cg_ef_has_trait_(d, CG_EF_AVERAGES_GRADIENTS_) && d->momentum != 0.0f);
}
/* Whether p is stored over the residual. An 8-bit residual has no room for p. */
static int cg_ef_in_place_(const cg_ef_desc *d) { return cg_ef_has_trait_(d, CG_EF_IN_PLACE_) && !d->bytes; }
/* CG_E_STATE while a step is pending, and of a state that cg_ef_init has not made: that has no values at all. */
static int cg_ef_is_unready_(const cg_ef *ef) { return ef->pending || !ef->desc.n; }
static float cg_ef_decay_(const cg_ef_desc *d) { return d->decay != 0.0f ? d->decay : cg_ef_row_of_(d)->decay; }

/* src/ef/omega.h */
/* omega: the variance w of an unbiased operator, E|C(x) - x|^2 <= w |x|^2, and the scale that bounds a residual

   Offers   cg_omega_, cg_ef_scale_
   Needs    kinds; error and resolve of core
   Touches  nothing
   The operator must be legal. w is 0 for biased operators. The residual of an operator with w >= 1
   would grow without bound, so p is divided by 1 + w, which makes the operator contractive. */

static double cg_omega_(const cg_op *op, const cg_resolved_ *r) {
    return (r->segments_hash ? r->inflation[0] : cg_inflation_(op, &r->plan, 0)) - 1.0;
}
/* The factor of p and of the residual for this operator, in (0, 1]: 1 / (1 + w) where w >= 1, else 1. DIANA and SIGNUM
   take operators as they are. */
static float cg_ef_scale_(const cg_ef_desc *d, const cg_op *op, const cg_resolved_ *r) {
    double w;
    if (cg_ef_has_trait_(d, CG_EF_TAKES_OP_AS_IS_)) return 1.0f;
    w = (r->segments_hash ? r->inflation[1] : cg_inflation_(op, &r->plan, 1)) - 1.0;
    return w < 1.0 ? 1.0f : (float)(1.0 / (1.0 + w));
}

/* src/ef/schedule.h */
/* schedule: the operator of a step, from rules, policy, dense steps and warm-up

   Offers   cg_ef_op_, cg_ef_warmup_op_, cg_op_ratio_stage_, cg_op_set_ratio_; the table of warm-ups
   Needs    kinds; math of core/base
   Touches  nothing but its arguments; calls the user's policy
   The operator depends on the description, the tag and n alone, so that all ranks arrive at the same one. */

/* e^x for x <= 0, the same bits everywhere: x is halved until a series of 18 terms is exact enough, and the sum is
   squared as often. */
static double cg_exp_(double x) {
    double sum = 1.0, term = 1.0;
    int halvings = 0;
    if (x < -700.0) return 0.0;
    for (; x < -0.5; x *= 0.5) halvings++;
    for (int i = 1; i <= 18; i++) {
        term *= x / (double)i;
        CG_NO_FMA_(term);
        sum += term;
    }
    for (; halvings > 0; halvings--) sum *= sum;
    return sum;
}
static float cg_warmup_power_(const cg_warmup *w, float ratio, uint64_t stage) {
    return (float)cg_exp_((double)(stage + 1) / ((double)w->stages + 1.0) * cg_ln_((double)ratio));
}
static float cg_warmup_quarters_(const cg_warmup *w, float ratio, uint64_t stage) {
    double quarter = 1.0;
    (void)w;
    for (uint64_t i = 0; i <= stage && quarter > (double)ratio; i++) quarter *= 0.25;
    return quarter > (double)ratio ? (float)quarter : ratio;
}
static float cg_warmup_linear_(const cg_warmup *w, float ratio, uint64_t stage) {
    return (float)(1.0 - cg_times64_((double)(stage + 1) / ((double)w->stages + 1.0), 1.0 - (double)ratio));
}
static float cg_warmup_table_(const cg_warmup *w, float ratio, uint64_t stage) {
    (void)ratio;
    return w->table[stage];
}
/* A kind of warm-up: its name in text, and the ratio of a stage below w->stages. Rows stand at their ids. */
typedef struct cg_warmup_row_ {
    uint32_t id;
    const char *name;
    int has_table; /* the ratios are given one by one */
    float (*ratio)(const cg_warmup *w, float ratio, uint64_t stage);
} cg_warmup_row_;
static const cg_warmup_row_ cg_warmup_rows_[] = { { CG_WARMUP_NONE, "none", 0, NULL },
    { CG_WARMUP_POWER, "power", 0, cg_warmup_power_ }, { CG_WARMUP_QUARTERS, "quarters", 0, cg_warmup_quarters_ },
    { CG_WARMUP_LINEAR, "linear", 0, cg_warmup_linear_ }, { CG_WARMUP_TABLE, "table", 1, cg_warmup_table_ } };
enum { CG_WARMUP_COUNT_ = sizeof cg_warmup_rows_ / sizeof cg_warmup_rows_[0] };
CG_API_ const char *cg_warmup_name(uint32_t kind) {
    return kind < CG_WARMUP_COUNT_ ? cg_warmup_rows_[kind].name : NULL;
}
CG_API_ cg_status cg_warmup_parse(uint32_t *kind, const char *text) {
    return cg_name_parse_(kind, text, cg_warmup_name);
}
/* The ratio of a step, counted from the start of the warm-up. A CG_WARMUP_TABLE must have its table. */
static float cg_warmup_ratio_(const cg_warmup *w, float ratio, uint64_t step) {
    const uint64_t stage = step / (w->period ? w->period : 1);
    if (!w->kind || w->kind >= CG_WARMUP_COUNT_ || stage >= w->stages || !(ratio > 0.0f)) return ratio;
    return cg_warmup_rows_[w->kind].ratio(w, ratio, stage);
}
CG_API_ float cg_warmup_ratio(const cg_warmup *warmup, float ratio, uint64_t step) {
    const cg_fenv_ env = cg_fenv_enter_();
    const float r =
        !warmup || (warmup->kind == CG_WARMUP_TABLE && !warmup->table) ? ratio : cg_warmup_ratio_(warmup, ratio, step);
    cg_fenv_leave_(env);
    return r;
}
/* The stage whose value is the ratio of values kept, or NULL if the operator has none. */
static cg_stage *cg_op_ratio_stage_(cg_op *op) {
    const uint32_t traits = cg_op_traits_(op);
    return traits & CG_HAS_RATIO_ ? &op->select : traits & CG_SAMPLES_RATIO_ ? &op->sample : NULL;
}
/* Sets the ratio, in place of a count in op->k; nothing happens to an operator without a ratio. */
static void cg_op_set_ratio_(cg_op *op, float ratio) {
    cg_stage *s = cg_op_ratio_stage_(op);
    if (!s) return;
    s->value = ratio;
    op->k = 0;
}
/* The ratio kept of n values, be it given as a ratio or as op->k; 1 for an operator without a ratio. */
static float cg_op_effective_ratio_(const cg_op *op, size_t n) {
    cg_op copy = *op;
    const cg_stage *s = cg_op_ratio_stage_(&copy);
    return !s ? 1.0f : op->k && n ? (float)((double)(op->k < n ? op->k : n) / (double)n) : s->value;
}
/* op with the warm-up's ratio at this step, counted from the first that is not dense. */
static cg_op cg_ef_warmup_op_(const cg_ef_desc *d, cg_op op, uint64_t step) {
    const float before = cg_op_effective_ratio_(&op, d->n), after = cg_warmup_ratio_(&d->warmup, before, step);
    if (after != before) cg_op_set_ratio_(&op, after);
    return op;
}
/* op with samples and rotations of each rank's own, if it has any. */
static cg_op cg_ef_drawn_by_rank_(cg_op op) {
    const cg_op own = cg_private(op);
    return cg_op_check_(&own) == CG_OK ? own : op;
}
/* op as all ranks draw it, for routes that sum packets in their domain. */
static cg_op cg_ef_drawn_in_common_(cg_op op) {
    if (!(cg_op_traits_(&op) & CG_IS_PRIVATE_)) return op;
    op.sample.flags &= (uint8_t)~CG_FLAG_PRIVATE;
    op.transform.flags &= (uint8_t)~CG_FLAG_PRIVATE;
    return op;
}
/* The operator of the step in tag (NULL: zeros). It may be illegal, if the policy gave it. A random sample is used
   unscaled, as its n/k would make the residual grow; only kinds without a residual take it scaled. Of kinds that keep
   nothing every rank draws for itself. */
static cg_op cg_ef_op_(const cg_ef *ef, const cg_tag *tag) {
    const cg_ef_desc *d = &ef->desc;
    const cg_tag none = CG_ZERO;
    cg_op op = d->op;
    if (!tag) tag = &none;
    if (cg_ef_begins_(ef) || d->n < d->small || tag->step < d->dense_steps) return cg_dense();
    for (size_t i = 0; i < d->rule_count; i++)
        if (tag->tensor >= d->rules[i].first && tag->tensor <= d->rules[i].last && d->n >= d->rules[i].n_from) {
            op = d->rules[i].op;
            break;
        }
    if (d->policy) op = d->policy(d->policy_user, tag, d->n, op);
    op = cg_ef_warmup_op_(d, op, tag->step - d->dense_steps);
    if (op.sample.id && !cg_ef_has_trait_(d, CG_EF_TAKES_OP_AS_IS_)) op = cg_unscaled(op);
    return cg_ef_has_trait_(d, CG_EF_UNBIASED_ONLY_) ? cg_ef_drawn_by_rank_(op) : op;
}

/* src/ef/report.h */
/* report: how the last call on a state went

   Offers   cg_ef_fail_, cg_ef_done_, cg_ef_op_why_, cg_ef_unready_why_; the public cg_ef_report
   Needs    cg_op_refusal_ of exchange
   Touches  the state's report
   Calls find out that something is wrong first, and look for the words only then. */

/* Returns s, which the report then has, too. */
static cg_status cg_ef_fail_(cg_ef *ef, cg_status s, const char *why, uint64_t need, uint64_t at) {
    cg_report_set_(&ef->report, s, why, need, at);
    return s;
}
static cg_status cg_ef_done_(cg_ef *ef) { return cg_ef_fail_(ef, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX); }
static const char *cg_ef_unready_why_(const cg_ef *ef) {
    return ef->pending ? "a step is pending: end it by cg_ef_commit or cg_ef_rollback first"
                       : "cg_ef_init has not been called, or was refused: desc.n is the number of values";
}
/* Is op what is wrong? Then the report says why, with the n that it takes. A codec of the user's is not known here. */
static int cg_ef_op_why_(cg_ef *ef, const cg_op *op, size_t n) {
    cg_report refusal;
    if (cg_op_traits_(op) & CG_IS_USER_CODEC_ && cg_op_check_(op) == CG_OK) return 0;
    refusal = cg_op_refusal_(op, NULL, n);
    if (refusal.status == CG_OK) return 0;
    cg_ef_fail_(ef, refusal.status == CG_E_VERSION ? CG_E_VERSION : CG_E_ARG, refusal.why, refusal.need, CG_NO_INDEX);
    return 1;
}
CG_API_ void cg_ef_report(const cg_ef *ef, cg_report *report) {
    if (ef && report) *report = ef->report;
}

/* src/ef/residual8.h */
/* residual8: the residual in 8 bits, for desc.bytes

   Offers   cg_residual8_encode_, _read_, _axpby_, _add_sparse_, _scale_get_, cg_residual8_stage_; the public cg_ef_read
   Needs    kinds; quantize and kernels of core
   Touches  ef->bytes
   ef->bytes holds n codes, then a little-endian u16 for each of ceil(n / 64) buckets: its scale, the upper half of a
   float, rounded up so that no value is cut off. Every write of a bucket rounds all of it once. */

static const cg_stage cg_residual8_stage_ = { CG_QUANTIZE_ABSMAX, CG_FLAG_NEAREST, 8, CG_EF_BUCKET_, 0.0f };
static uint8_t *cg_residual8_scale_at_(const cg_ef *ef, size_t bucket) { return ef->bytes + ef->desc.n + 2 * bucket; }
static float cg_residual8_scale_get_(const uint8_t *at) {
    return cg_as_float_((uint32_t)at[0] << 16 | (uint32_t)at[1] << 24);
}
/* out gets the values of a bucket: 64, of the last bucket what there is. */
static void cg_residual8_decode_(const cg_kernels_ *kernels, const cg_ef *ef, size_t bucket, float *out) {
    const size_t first = bucket * CG_EF_BUCKET_, many = cg_min_(CG_EF_BUCKET_, ef->desc.n - first);
    const float scale = cg_residual8_scale_get_(cg_residual8_scale_at_(ef, bucket));
    cg_bucket_dequantize_(kernels, &cg_residual8_stage_, scale, ef->bytes + first, many, out);
}
/* The values of v, which must be finite, become a bucket: its scale and its codes are written. */
static void cg_residual8_encode_(const cg_kernels_ *kernels, const cg_ef *ef, size_t bucket, const float *v) {
    const size_t first = bucket * CG_EF_BUCKET_, many = cg_min_(CG_EF_BUCKET_, ef->desc.n - first);
    uint8_t *at = cg_residual8_scale_at_(ef, bucket);
    /* 0x7f7f is the upper half of the largest float */
    const uint32_t scale_up16 = (CG_KERNEL_(kernels, absmax_bits(v, many)) + 0xffffu) >> 16,
                   scale16 = scale_up16 > 0x7f7fu ? 0x7f7fu : scale_up16;
    const float scale = cg_as_float_(scale16 << 16);
    at[0] = (uint8_t)scale16;
    at[1] = (uint8_t)(scale16 >> 8);
    cg_bucket_quantize_(kernels, &cg_residual8_stage_, scale, v, many, ef->bytes + first);
}
/* e = alpha v + beta e for coordinates [first, first + many), which may begin and end inside a bucket. v holds `many`
   values. beta e fades as in cg_axpby_fading_, and sums too large for a float become the largest. */
static void cg_residual8_axpby_(const cg_ef *ef, size_t first, size_t many, float alpha, const float *v, float beta) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    float e[CG_EF_BUCKET_];
    for (size_t i = first, some; i < first + many; i += some) {
        const size_t bucket = i / CG_EF_BUCKET_, at = i % CG_EF_BUCKET_;
        some = cg_min_(CG_EF_BUCKET_ - at, first + many - i);
        cg_residual8_decode_(kernels, ef, bucket, e);
        cg_axpby_fading_(kernels, cg_at_(v, i - first), some, alpha, beta, e + at);
        for (size_t j = at; j < at + some; j++) e[j] = cg_saturate_(e[j]);
        cg_residual8_encode_(kernels, ef, bucket, e);
    }
}
/* e = e + factor v at the coordinates base + index[i], which must ascend: so all that lie in one bucket are rounded
   once. */
static void cg_residual8_add_sparse_(
    const cg_ef *ef, size_t base, const uint64_t *index, size_t many, float factor, const float *v) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    float e[CG_EF_BUCKET_];
    for (size_t i = 0; i < many;) {
        const size_t bucket = (base + (size_t)index[i]) / CG_EF_BUCKET_;
        cg_residual8_decode_(kernels, ef, bucket, e);
        for (; i < many && (base + (size_t)index[i]) / CG_EF_BUCKET_ == bucket; i++) {
            float *to = e + (base + (size_t)index[i]) % CG_EF_BUCKET_;
            *to = cg_saturate_(cg_plus_(*to, cg_times_(factor, v[i])));
        }
        cg_residual8_encode_(kernels, ef, bucket, e);
    }
}
/* The values of coordinates [first, first + many), any stretch, in out. */
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

/* src/ef/delay.h */
/* delay: how much of the gradients waits in the residual, in the metric of an optimizer that divides by their size

   Offers   cg_ef_delay_count_, cg_ef_delay_forget_, cg_ef_delay_gradient_, cg_ef_delay_residual_
   Needs    kinds, residual8
   Touches  ef->second, ef->given, ef->delayed and stats.delay
   The residual is small beside the gradient, and may be huge where gradients are: under Adam a value counts divided by
   the root of the running mean v of its squared gradients. The number is the sum of |e| / sqrt(v) over that of
   |g| / sqrt(v), both running sums over steps, in a sample of lines of 8 values: one in 256, at least one line and at
   most 128. The mean begins at 0, so that v is divided by 1 - .999^steps. */

enum { CG_EF_DELAY_LINE_ = 8, CG_EF_DELAY_LINES_ = 128 };
static size_t cg_ef_delay_lines_(size_t n) {
    const size_t lines = n / 2048;
    return lines < 1 ? 1 : cg_min_(lines, CG_EF_DELAY_LINES_);
}
/* Floats of ef->second. */
static size_t cg_ef_delay_count_(const cg_ef_desc *d) {
    return cg_ef_has_trait_(d, CG_EF_HAS_NO_RESIDUAL_) ? 0
                                                       : cg_min_(d->n, CG_EF_DELAY_LINE_ * cg_ef_delay_lines_(d->n));
}
/* Where a line begins: anywhere in its part of the vector. *many: its values. */
static size_t cg_ef_delay_at_(size_t n, size_t line, size_t *many) {
    const size_t part = n / cg_ef_delay_lines_(n);
    *many = cg_min_(n, CG_EF_DELAY_LINE_);
    return line * part + (part > *many ? (size_t)(cg_mix64_(line + 1) % (part - *many + 1)) : 0);
}
/* About 1 / sqrt(v), within .2 %, and 0 where v is nearly 0. */
static float cg_ef_inverse_root_(float v) {
    float r;
    if (!(v > 1e-36f)) return 0.0f;
    r = cg_as_float_(0x5f3759dfu - (cg_as_bits_(v) >> 1));
    return cg_times_(r, cg_plus_(1.5f, -cg_times_(cg_times_(cg_times_(0.5f, v), r), r)));
}
static float cg_ef_abs_(float v) { return v < 0.0f ? -v : v; }
static void cg_ef_delay_forget_(cg_ef *ef) {
    if (ef->second) memset(ef->second, 0, 4 * cg_ef_delay_count_(&ef->desc));
    ef->given = ef->delayed = ef->second_weight = 0.0;
}
/* The gradient of a step, times scale as it enters the state. */
static void cg_ef_delay_gradient_(cg_ef *ef, const float *g, float scale) {
    const size_t n = ef->desc.n;
    double sum = 0.0;
    if (!ef->second) return;
    for (size_t line = 0, many; line < cg_ef_delay_lines_(n); line++) {
        const size_t at = cg_ef_delay_at_(n, line, &many);
        float *v = ef->second + line * CG_EF_DELAY_LINE_;
        for (size_t i = 0; i < many; i++) {
            const float value = cg_ef_abs_(cg_times_(scale, cg_load_(g, at + i)));
            if (!(value < 1e17f)) continue; /* its square is no float */
            v[i] = cg_plus_(cg_times_(0.999f, v[i]), cg_times_(0.001f, cg_times_(value, value)));
            sum += (double)cg_times_(value, cg_ef_inverse_root_(v[i]));
        }
    }
    ef->second_weight = cg_times64_(0.999, ef->second_weight) + 0.001;
    ef->given = cg_times64_(0.98, ef->given) + cg_times64_(sum, cg_sqrt_(ef->second_weight));
}
/* What the step has left in the residual. */
static void cg_ef_delay_residual_(cg_ef *ef) {
    const size_t n = ef->desc.n;
    double sum = 0.0;
    if (!ef->second) return;
    for (size_t line = 0, many; line < cg_ef_delay_lines_(n); line++) {
        const size_t at = cg_ef_delay_at_(n, line, &many);
        const float *v = ef->second + line * CG_EF_DELAY_LINE_;
        float e[CG_EF_DELAY_LINE_];
        if (ef->bytes) cg_residual8_read_(ef, at, many, e);
        else memcpy(e, cg_at_(ef->vector[0], at), 4 * many);
        for (size_t i = 0; i < many; i++) sum += (double)cg_times_(cg_ef_abs_(e[i]), cg_ef_inverse_root_(v[i]));
    }
    ef->delayed = cg_times64_(0.98, ef->delayed) + cg_times64_(sum, cg_sqrt_(ef->second_weight));
    ef->stats.delay = ef->given > 0.0 ? (float)(ef->delayed / ef->given) : 0.0f;
}

/* src/ef/plan.h */
/* plan: checks a description, and lays out the memory of its state

   Offers   cg_ef_check_, cg_ef_needs_of_op_, cg_ef_needs_; the public init, reset, sizes and simple queries
   Needs    kinds, schedule; resolve of core; the arena of exchange
   Touches  the state and the memory it is given
   The caller's memory holds, each from a multiple of 64 bytes on: residual (floats, or codes and scales), velocity,
   received, warm, carry, whole, scratch. */

/* Must a stage see all of p at once, where the operator has no scratch to hold it? */
static int cg_ef_needs_whole_vector_(const cg_op *op, uint32_t traits) {
    if (traits & CG_IS_MATRIX_) return 1;
    return !op->sample.id && !op->transform.id &&
        (op->select.id ? !(traits & CG_TAKES_PRODUCER_) : traits & CG_IS_USER_CODEC_);
}
/* Why a kind without a memory refuses an operator that resolves to r, or NULL. */
static const char *cg_ef_biased_why_(const cg_ef_desc *d, const cg_resolved_ *r) {
    if (!cg_ef_has_trait_(d, CG_EF_UNBIASED_ONLY_) || d->biased || r->is_unbiased || r->is_nearly_unbiased) return NULL;
    return "this kind keeps no residual, so that what a biased operator drops or rounds away is lost for good: take an "
           "unbiased one, as rate:0.1:unbiased, wangni:0.01|efsign|golomb, randk:0.03:private|eden:1 or absmax:4:512";
}
/* What else of a description does not go with its kind, as a sentence, or NULL. */
static const char *cg_ef_kind_why_(const cg_ef_desc *d) {
    if (cg_ef_has_trait_(d, CG_EF_NEEDS_MOMENTUM_) && d->momentum == 0.0f)
        return "this kind needs desc.momentum, the momentum of your optimizer: without one take CG_EF_NONE";
    if (cg_ef_has_trait_(d, CG_EF_NEEDS_MOMENTUM_) && d->nesterov)
        return "Nesterov momentum amplifies the noise of this kind: leave desc.nesterov 0 and give your optimizer "
               "plain "
               "momentum";
    if (cg_ef_has_trait_(d, CG_EF_TAKES_MODELS_) && (d->clip != 0.0f || (d->rate != 0.0f && d->rate != 1.0f)))
        return "this kind takes models, which are not clipped or scaled: do that to the gradient, before the optimizer";
    if (d->lambda != 0.0f && !cg_ef_has_trait_(d, CG_EF_TAKES_MODELS_)) return "desc.lambda is for CG_EF_DIFFERENCE";
    if (d->biased && (!cg_ef_has_trait_(d, CG_EF_UNBIASED_ONLY_) || cg_ef_has_trait_(d, CG_EF_KEEPS_RECEIVED_)))
        return "desc.biased is for CG_EF_NONE";
    if (d->carry && cg_ef_has_trait_(d, CG_EF_UNBIASED_ONLY_))
        return "this kind keeps nothing back, and has no carry: take an unbiased operator for the second leg";
    return NULL;
}
/* The segments of a step by op: none if it is dense, unless desc.op is. */
static const cg_segments *cg_ef_segments_(const cg_ef_desc *d, const cg_op *op, const cg_extra *side) {
    const cg_op dense = cg_dense();
    if (side && side->segments) return side->segments;
    return cg_same_op_(op, &dense) && !cg_same_op_(&d->op, &dense) ? NULL : d->segments;
}
/* The most that any operator of a description needs. */
typedef struct cg_ef_needs_ {
    uint64_t scratch_bytes, packet_bytes; /* packet_bytes: 1 for a codec of the user's, whose bound is not known here */
    size_t warm_count;                    /* floats of a low-rank operator's right factor */
    int whole_vector;                     /* p is stored nowhere, and must be in ef->whole to be compressed */
} cg_ef_needs_;
/* Raises *needs to what op needs. CG_E_ARG: op is illegal or too large. CG_E_VERSION: this build was made without it.
   CG_E_UNSUPPORTED: it does not go with the kind, the clipping or the rate. *needs is changed only on success. *r
   becomes what op resolves to, with the codecs of side. */
static cg_status cg_ef_needs_of_op_(
    const cg_ef_desc *d, cg_op op, const cg_extra *side, cg_ef_needs_ *needs, cg_resolved_ *r) {
    const cg_op dense = cg_dense();
    cg_extra with = CG_ZERO;
    uint32_t traits;
    uint64_t packet_bytes;
    int takes_variance;
    cg_status s;
    if (side) with = *side;
    with.segments = cg_ef_segments_(d, &op, side);
    s = cg_resolve_(&op, &with, d->n, r);
    if (s != CG_OK) return CG_MAY_LEAVE_OUT_ && s == CG_E_VERSION ? s : CG_E_ARG; /* left out of this build */
    traits = r->plan.traits;
    takes_variance = (traits & CG_AUX_IS_VARIANCE_) != 0;
    packet_bytes = traits & CG_IS_USER_CODEC_ ? 1 : r->bound;
    if (!packet_bytes) return CG_E_ARG;
    /* aux is the gradient, and p must be a sum of such */
    if (traits & CG_NEEDS_AUX_ && !takes_variance && (d->clip != 0.0f || (d->rate != 0.0f && d->rate != 1.0f)))
        return CG_E_UNSUPPORTED;
    if (takes_variance != cg_ef_has_trait_(d, CG_EF_TAKES_VARIANCE_) && !cg_same_op_(&op, &dense))
        return CG_E_UNSUPPORTED;
    if (cg_ef_biased_why_(d, r)) return CG_E_UNSUPPORTED;
    if (r->scratch_bytes > needs->scratch_bytes) needs->scratch_bytes = r->scratch_bytes;
    if (packet_bytes > needs->packet_bytes) needs->packet_bytes = packet_bytes;
    if ((r->segments_hash || cg_ef_needs_whole_vector_(&op, traits)) && !cg_ef_in_place_(d)) needs->whole_vector = 1;
    if (traits & CG_IS_LINEAR_MATRIX_ && r->cols * r->r > needs->warm_count) needs->warm_count = r->cols * r->r;
    return CG_OK;
}
/* The same for an operator at all ratios that the warm-up gives it. */
static cg_status cg_ef_needs_of_schedule_(const cg_ef_desc *d, const cg_op *op, cg_ef_needs_ *needs) {
    cg_resolved_ r;
    cg_status s = cg_ef_needs_of_op_(d, *op, NULL, needs, &r);
    for (uint32_t i = 0; i < d->warmup.stages && s == CG_OK && d->warmup.kind; i++)
        s = cg_ef_needs_of_op_(
            d, cg_ef_warmup_op_(d, *op, i * (d->warmup.period ? d->warmup.period : 1)), NULL, needs, &r);
    return s;
}
static int cg_ef_is_fraction_(float f) { return f >= 0.0f && f <= 1.0f; }
/* Checks everything in a description, which may be NULL, but what only a policy can tell; fills *needs in. */
static cg_status cg_ef_check_(const cg_ef_desc *d, cg_ef_needs_ *needs) {
    cg_resolved_ r;
    cg_status s;
    memset(needs, 0, sizeof *needs);
    if (!d || !d->n || !cg_ef_row_at_(d->kind) || d->workers < 0 || d->clip_by > CG_CLIP_VALUE ||
        d->warmup.kind > CG_WARMUP_TABLE || !CG_RESERVE_IS_ZERO_(d->reserved))
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
    if (d->momentum != 0.0f && !cg_ef_has_trait_(d, CG_EF_TAKES_MOMENTUM_)) return CG_E_UNSUPPORTED;
    if (!(d->lambda >= 0.0f && d->lambda <= CG_FLT_MAX_) && d->lambda != CG_LAMBDA_SQRT) return CG_E_ARG;
    if (cg_ef_kind_why_(d)) return CG_E_UNSUPPORTED;
    if ((d->nesterov && !cg_ef_has_trait_(d, CG_EF_TAKES_NESTEROV_)) ||
        (d->bytes && !cg_ef_has_trait_(d, CG_EF_ALLOWS_8BIT_)))
        return CG_E_UNSUPPORTED;
    /* a shift or a momentum is no residual that could be forgotten */
    if (d->reset && cg_ef_has_trait_(d, CG_EF_HAS_NO_RESIDUAL_)) return CG_E_UNSUPPORTED;
    if (cg_ef_has_trait_(d, CG_EF_MAY_BE_SILENT_) && d->laq_step == 0.0f) return CG_E_ARG;
    s = cg_ef_needs_of_schedule_(d, &d->op, needs);
    for (size_t i = 0; i < d->rule_count && s == CG_OK; i++) s = cg_ef_needs_of_schedule_(d, &d->rules[i].op, needs);
    if (s == CG_OK && (d->dense_steps || d->n < d->small || cg_ef_has_trait_(d, CG_EF_TAKES_MODELS_)))
        s = cg_ef_needs_of_op_(d, cg_dense(), NULL, needs, &r);
    return s;
}
/* Sets the pointers of ef into the memory from base on (a multiple of 64, or NULL to measure). Returns the bytes
   needed; the number saturates and does not wrap around. */
static uint64_t cg_ef_plan_(cg_ef *ef, const cg_ef_desc *d, const cg_ef_needs_ *needs, uint8_t *base) {
    const uint64_t vector = cg_mul_sat_(4, d->n);
    cg_arena_ arena;
    arena.base = base;
    arena.bytes = 0;
    ef->vector[0] =
        d->bytes || cg_ef_has_trait_(d, CG_EF_KEEPS_NOTHING_) ? NULL : (float *)(void *)cg_arena_take_(&arena, vector);
    ef->bytes = d->bytes ? cg_arena_take_(&arena,
                               cg_add_sat_(d->n, cg_mul_sat_(2, cg_add_sat_(d->n, CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_)))
                         : NULL;
    ef->vector[1] = cg_ef_has_velocity_(d) ? (float *)(void *)cg_arena_take_(&arena, vector) : NULL;
    ef->vector[2] = cg_ef_has_trait_(d, CG_EF_KEEPS_RECEIVED_) ? (float *)(void *)cg_arena_take_(&arena, vector) : NULL;
    ef->warm = needs->warm_count ? (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, needs->warm_count)) : NULL;
    ef->carry = d->carry ? (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, d->carry)) : NULL;
    ef->second = cg_ef_delay_count_(d) ? (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, cg_ef_delay_count_(d)))
                                       : NULL;
    ef->whole = needs->whole_vector ? (float *)(void *)cg_arena_take_(&arena, vector) : NULL;
    ef->scratch = needs->scratch_bytes ? cg_arena_take_(&arena, needs->scratch_bytes) : NULL;
    ef->warm_count = needs->warm_count;
    ef->scratch_bytes = cg_size_or_zero_(needs->scratch_bytes);
    return arena.bytes;
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
    cg_ef_delay_forget_(ef);
    memset(&ef->stats, 0, sizeof ef->stats);
    memset(ef->moved, 0, sizeof ef->moved);
    ef->steps = ef->silent = ef->moves = 0;
    ef->pending = 0;
    ef->scale = 1.0f;
    ef->hint = ef->threshold = 0.0f;
    ef->reach = ef->size = ef->error = ef->error_sent = ef->score = 0.0;
    ef->carry_first = 0;
    ef->mark = 0;
    ef->may_withdraw = 0;
}
/* Why the kind refuses the operator, or that of a rule; NULL: it does not. */
static const char *cg_ef_refuses_op_(const cg_ef_desc *d) {
    cg_resolved_ r;
    const char *why = cg_resolve_(&d->op, NULL, d->n, &r) == CG_OK ? cg_ef_biased_why_(d, &r) : NULL;
    for (size_t i = 0; !why && i < d->rule_count; i++)
        if (cg_resolve_(&d->rules[i].op, NULL, d->n, &r) == CG_OK) why = cg_ef_biased_why_(d, &r);
    return why;
}
/* *ef becomes zero but for its report. need: the bytes of the state, if s is CG_E_MEMORY. */
static void cg_ef_init_refused_(cg_ef *ef, const cg_ef_desc *d, cg_status s, uint64_t need) {
    memset(ef, 0, sizeof *ef);
    cg_ef_fail_(ef, s, "a field of desc is out of range: see cg_ef_desc", 0, CG_NO_INDEX);
    if (s == CG_E_MEMORY)
        cg_ef_fail_(ef, s, "mem is too small: cg_ef_memory gives its bytes", cg_add_sat_(need, 64), CG_NO_INDEX);
    if (s == CG_E_UNSUPPORTED && (cg_ef_kind_why_(d) || cg_ef_refuses_op_(d))) {
        cg_ef_fail_(ef, s, cg_ef_kind_why_(d) ? cg_ef_kind_why_(d) : cg_ef_refuses_op_(d), 0, CG_NO_INDEX);
        return;
    }
    if (s == CG_E_UNSUPPORTED)
        cg_ef_fail_(ef, s, "desc has a field or an operator that this kind cannot use: see cg_ef_desc", 0, CG_NO_INDEX);
    if (s != CG_E_ARG && s != CG_E_VERSION) return;
    if (!d) ef->report.why = "desc is NULL";
    else if (!CG_RESERVE_IS_ZERO_(d->reserved)) ef->report.why = "desc.reserved must be 0: start from CG_ZERO";
    else if (!d->n) ef->report.why = "desc.n is 0: it is the number of values in every gradient";
    else if (!cg_ef_op_why_(ef, &d->op, d->n))
        for (size_t i = 0; d->rules && i < d->rule_count; i++)
            if (cg_ef_op_why_(ef, &d->rules[i].op, d->n)) return;
}
CG_API_ cg_status cg_ef_init(cg_ef *ef, const cg_ef_desc *desc, void *mem, size_t bytes) {
    const cg_fenv_ env = cg_fenv_enter_();
    const size_t align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    cg_ef_needs_ needs;
    uint64_t need = 0;
    cg_status s = !ef ? CG_E_ARG : cg_ef_check_(desc, &needs);
    if (s == CG_OK) {
        memset(ef, 0, sizeof *ef);
        need = cg_ef_plan_(ef, desc, &needs, NULL);
        if (need > SIZE_MAX / 2) s = CG_E_ARG;
        else if (need && (!mem || bytes < align_pad || bytes - align_pad < need)) s = CG_E_MEMORY;
    }
    if (ef && s != CG_OK) cg_ef_init_refused_(ef, desc, s, need);
    if (s == CG_OK) {
        ef->desc = *desc;
        ef->segments.segments = desc->segments;
        /* vectors of no values need a pointer that is not NULL: it is never followed */
        cg_ef_plan_(ef, desc, &needs, need ? (uint8_t *)mem + align_pad : (uint8_t *)ef->moved);
        cg_ef_reset(ef);
        s = cg_ef_done_(ef);
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
    const cg_op op = cg_ef_op_(ef, tag);
    cg_fenv_leave_(env);
    return op;
}

/* src/ef/step.h */
/* step: from the gradient to p, the compensated gradient that is compressed

   Offers   cg_ef_step_ and its life: cg_ef_step_check_, cg_ef_step_begin_, then p by cg_ef_producer_ or by the passes
            cg_ef_compensate_ and cg_ef_residual_accumulate_, then cg_ef_record_energy_; cg_ef_step_why_ for a step
            that is refused; cg_ef_forget_last_, cg_ef_scale_vector_
   Needs    plan, omega, residual8; producers, passes, kernels of core
   Touches  the vectors of the state, and its scale, hint and stats; cg_ef_step_check_ only the stats
   g is the gradient, e the residual (vector[0]; of kinds with p = g - h the shift h, of kinds that keep
   nothing what was received, vector[2]), u the velocity (vector[1]). In
   kinds that work in place p is stored over e. The others make p chunk by chunk, as often as it is asked for, and
   e changes afterwards, by a pass of its own. */

typedef struct cg_ef_step_ {
    const cg_kernels_ *kernels;
    const cg_ef *ef;
    cg_op op;                 /* of this step */
    cg_resolved_ resolved;    /* what it resolves to */
    cg_extra side;            /* what the operator may know beside p */
    const float *g;           /* the gradient; of EF21 with momentum its running mean */
    const float *variance;    /* VARIANCE: n variances of this step's gradient, or NULL */
    float grad_scale;         /* g is multiplied by it: rate, norm clipping, 1 / (1 + w) */
    float clip_limit;         /* before that values of g are cut off at +-clip_limit; 0: they are not */
    float p_from_g, p_from_e; /* p = p_from_g g + p_from_e e */
    float e_from_g, e_from_e; /* then e = e_from_g g + e_from_e e, unless p takes its place */
    int may_overflow;         /* a sum may leave the float range: it is then set to the largest float */
    int whole_vector;         /* p must be materialized in ef->whole before it is compressed */
    float laq_range[2];       /* LAQ: its quantizer's range, -max|p| and max|p| */
} cg_ef_step_;

/* A pass over x by chunks; see cg_vector_pass_. Functions for passes have the signature of a producer's make. */
static double cg_ef_pass_(double (*make)(const void *, size_t, size_t, float *), const void *user, float *x, size_t n) {
    return cg_vector_pass_(make, user, x, n, CG_CHUNK_);
}
static double cg_ef_pass_energy_(const void *user, size_t first, size_t many, float *x) {
    (void)first;
    return cg_energy_(((const cg_ef_step_ *)user)->kernels, x, many);
}
/* Of a block: 1 if a magnitude reaches CG_EF_HUGE_, 1e100 if a value is not finite, else 0. */
static double cg_ef_pass_count_huge_(const void *user, size_t first, size_t many, float *x) {
    const uint32_t absmax_bits = CG_KERNEL_(((const cg_ef_step_ *)user)->kernels, absmax_bits(x, many));
    (void)first;
    return absmax_bits >= CG_INF_BITS_ ? 1e100 : absmax_bits >= cg_as_bits_(CG_EF_HUGE_) ? 1.0 : 0.0;
}
static void cg_ef_saturate_(const cg_ef_step_ *st, float *v, size_t many) {
    if (st->may_overflow)
        for (size_t i = 0; i < many; i++) cg_store_(v, i, cg_saturate_(cg_load_(v, i)));
}
/* The gradient's values cut off at +-clip_limit, in buf, which has room for `many`. */
static const float *cg_ef_clip_values_(const cg_ef_step_ *st, const float *g, size_t many, float *buf) {
    for (size_t i = 0; i < many; i++) {
        const float f = cg_load_(g, i);
        buf[i] = f > st->clip_limit ? st->clip_limit : f < -st->clip_limit ? -st->clip_limit : f;
    }
    return buf;
}
/* y = beta y + alpha x, saturated where sums may overflow; returns |y|^2. */
static double cg_ef_axpby_fading_(
    const cg_ef_step_ *st, const float *x, size_t many, float alpha, float beta, float *y) {
    if (!st->may_overflow) return cg_axpby_fading_energy_y_(st->kernels, x, many, alpha, beta, y);
    cg_axpby_fading_(st->kernels, x, many, alpha, beta, y);
    cg_ef_saturate_(st, y, many);
    return cg_energy_(st->kernels, y, many);
}
/* A function of its own, so that its buffer is on the stack only where values are clipped. */
CG_NOINLINE_ double cg_ef_compensate_chunk_clipped_(
    const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    float buf[CG_CHUNK_];
    return cg_ef_row_of_(&st->ef->desc)->compensate(st, first, many, cg_ef_clip_values_(st, g, many, buf), e);
}
/* make of kinds that work in place: out must be e itself from `first` on, and becomes p. Once per value and step. */
static double cg_ef_compensate_in_place_(const void *user, size_t first, size_t many, float *out) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    const cg_ef_row_ *row = cg_ef_row_of_(&st->ef->desc);
    double energy = 0.0;
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        some = cg_min_(CG_CHUNK_, many - i);
        energy += st->clip_limit != 0.0f ? cg_ef_compensate_chunk_clipped_(st, first + i, some, g, cg_at_mut_(out, i))
                                         : row->compensate(st, first + i, some, g, cg_at_mut_(out, i));
    }
    return energy;
}
/* make of the other kinds: out = p, and the state stays as it is, so that any stretch may be asked for at any time. */
CG_NOINLINE_ double cg_ef_compensate_(const void *user, size_t first, size_t many, float *out) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    const cg_ef *ef = st->ef;
    const float *kept = ef->vector[0] ? ef->vector[0] : ef->vector[2];
    float buf[CG_CHUNK_];
    double energy = 0.0;
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        float *p = cg_at_mut_(out, i);
        some = cg_min_(CG_CHUNK_, many - i);
        if (ef->bytes) cg_residual8_read_(ef, first + i, some, p);
        else if (kept && st->p_from_e != 0.0f) memcpy(p, cg_at_(kept, first + i), 4 * some);
        else memset(p, 0, 4 * some);
        if (st->clip_limit != 0.0f) g = cg_ef_clip_values_(st, g, some, buf);
        /* a shift does not fade, nor does what was received */
        if (cg_ef_has_trait_(&ef->desc, CG_EF_HAS_SHIFT_ | CG_EF_KEEPS_NOTHING_))
            CG_KERNEL_(st->kernels, axpby(g, some, st->p_from_g, st->p_from_e, p, 0));
        else cg_axpby_fading_(st->kernels, g, some, st->p_from_g, st->p_from_e, p);
        cg_ef_saturate_(st, p, some);
        energy += cg_energy_(st->kernels, p, some);
    }
    return energy;
}
/* The same for |p|^2 alone: p is made and thrown away. The pass needs some pointer, which is not looked at. */
CG_NOINLINE_ double cg_ef_compensated_energy_(const void *user, size_t first, size_t many, float *unused) {
    float p[CG_CHUNK_];
    double energy = 0.0;
    (void)unused;
    for (size_t i = 0, some; i < many; i += some) {
        some = cg_min_(CG_CHUNK_, many - i);
        energy += cg_ef_compensate_(user, first + i, some, p);
    }
    return energy;
}
/* max|p| */
static float cg_ef_compensated_absmax_(const cg_ef_step_ *st, size_t n) {
    float p[CG_CHUNK_];
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        cg_ef_compensate_(st, i, cg_min_(CG_CHUNK_, n - i), p);
        absmax_bits = cg_max32_(absmax_bits, CG_KERNEL_(st->kernels, absmax_bits(p, cg_min_(CG_CHUNK_, n - i))));
    }
    return cg_as_float_(absmax_bits);
}
/* Pass of kinds that do not work in place, once a step, when p is not needed any more: e = e_from_g g + e_from_e e. An
   8-bit residual is written in ef->bytes, and the argument e not looked at. */
CG_NOINLINE_ double cg_ef_residual_accumulate_(const void *user, size_t first, size_t many, float *e) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    float buf[CG_CHUNK_];
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        some = cg_min_(CG_CHUNK_, many - i);
        if (st->clip_limit != 0.0f) g = cg_ef_clip_values_(st, g, some, buf);
        if (st->ef->bytes) cg_residual8_axpby_(st->ef, first + i, some, st->e_from_g, g, st->e_from_e);
        else {
            cg_axpby_fading_(st->kernels, g, some, st->e_from_g, st->e_from_e, cg_at_mut_(e, i));
            cg_ef_saturate_(st, cg_at_mut_(e, i), some);
        }
    }
    return 0.0;
}
/* Pass of EF21 with momentum: v = momentum v + (1 - momentum) g, a running mean of gradients that begins with the
   first one. */
static double cg_ef_grad_running_mean_(const void *user, size_t first, size_t many, float *v) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    const float m = st->ef->steps ? st->ef->desc.momentum : 0.0f;
    float buf[64];
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        some = cg_min_(64, many - i);
        if (st->clip_limit != 0.0f) g = cg_ef_clip_values_(st, g, some, buf);
        cg_axpby_fading_(st->kernels, g, some, cg_times_(st->grad_scale, 1.0f - m), m, cg_at_mut_(v, i));
        cg_ef_saturate_(st, cg_at_mut_(v, i), some);
    }
    return 0.0;
}
/* What passes over the residual get as their vector: its floats, or of an 8-bit residual a pointer that they must not
   look at. */
static float *cg_ef_pass_vector_(const cg_ef *ef) { return ef->vector[0] ? ef->vector[0] : (float *)(void *)ef->bytes; }
typedef struct cg_ef_factor_ctx_ {
    const cg_kernels_ *kernels;
    const cg_ef *ef; /* in cg_ef_scale_chunk_ NULL, unless the vector is the residual */
    float factor;
} cg_ef_factor_ctx_;
/* Pass: e = factor e, which fades below 2^-100 unless factor is 1. */
static double cg_ef_scale_chunk_(const void *user, size_t first, size_t many, float *e) {
    const cg_ef_factor_ctx_ *b = (const cg_ef_factor_ctx_ *)user;
    static const float zero[CG_EF_BUCKET_] = { 0.0f };
    if (!b->ef || !b->ef->bytes) cg_axpby_fading_(b->kernels, e, many, 0.0f, b->factor, e);
    else
        for (size_t i = 0; i < many; i += CG_EF_BUCKET_)
            cg_residual8_axpby_(b->ef, first + i, cg_min_(CG_EF_BUCKET_, many - i), 1.0f, zero, b->factor);
    for (size_t i = 0; (!b->ef || !b->ef->bytes) && i < many; i++) cg_store_(e, i, cg_saturate_(cg_load_(e, i)));
    return 0.0;
}
/* Multiplies vector[which], if there is one, by factor; which 0: the residual, as floats or in 8 bits. */
static void cg_ef_scale_vector_(cg_ef *ef, int which, float factor) {
    cg_ef_factor_ctx_ b;
    b.kernels = cg_kernels_now_();
    b.ef = which ? NULL : ef;
    b.factor = factor;
    if (which ? ef->vector[which] != NULL : 1)
        cg_ef_pass_(cg_ef_scale_chunk_, &b, which ? ef->vector[which] : cg_ef_pass_vector_(ef), ef->desc.n);
}
/* The factor by which a contribution D enters the shift h and the received H, or a mean of them the base. */
static float cg_ef_shift_rate_(const cg_ef_desc *d, const cg_ef_step_ *st) {
    if (cg_ef_has_trait_(d, CG_EF_TAKES_MODELS_) && d->lambda == CG_LAMBDA_SQRT)
        return (float)cg_sqrt_(d->workers > 1 ? (double)d->workers : 1.0);
    if (cg_ef_has_trait_(d, CG_EF_TAKES_MODELS_)) return d->lambda != 0.0f ? d->lambda : 1.0f;
    if (!cg_ef_has_trait_(d, CG_EF_SHIFTS_BY_ALPHA_)) return 1.0f;
    return d->alpha != 0.0f ? d->alpha : (float)(1.0 / (1.0 + cg_omega_(&st->op, &st->resolved)));
}
/* p_from_g and the other three; scale: the operator's 1 / (1 + w). */
static void cg_ef_set_coefficients_(cg_ef_step_ *st, float scale) {
    const cg_ef_desc *d = &st->ef->desc;
    const cg_ef_row_ *row = cg_ef_row_of_(d);
    const float decay = cg_ef_decay_(d);
    st->p_from_g = st->grad_scale;
    st->p_from_e = 1.0f;
    st->e_from_g = cg_times_(row->sent(decay), st->grad_scale);
    st->e_from_e = 1.0f;
    if (row->coefficients) row->coefficients(st, decay);
    /* h itself is not divided by 1 + w, the difference is */
    if (row->traits & CG_EF_HAS_SHIFT_) {
        st->p_from_g = cg_times_(st->grad_scale, scale);
        st->p_from_e = -scale;
        st->e_from_g = 0.0f;
    }
}
/* The factor by which a contribution D is subtracted from e at commit; negative where it is added to a shift. */
static float cg_ef_subtract_factor_(const cg_ef *ef) {
    const cg_ef_row_ *row = cg_ef_row_of_(&ef->desc);
    return row->traits & CG_EF_HAS_SHIFT_ ? -ef->received_by : cg_times_(row->sent(cg_ef_decay_(&ef->desc)), ef->scale);
}
/* 1 / (1 + w) in what the velocity is stored with. */
static double cg_ef_velocity_scale_(const cg_ef_desc *d, double scale) {
    const int power = cg_ef_row_of_(d)->velocity_power;
    return power == 2 ? scale * scale : power == 1 ? scale : 1.0;
}
/* The norm or the magnitude at which gradients are clipped; 0: they are not. */
static double cg_ef_clip_at_(const cg_ef_desc *d) {
    return (double)d->clip / cg_sqrt_(d->workers > 1 ? (double)d->workers : 1.0);
}
/* A step is tried: what is told of the last one would mislead about this one, should it be refused. While a step is
   pending, that is the last one. */
static void cg_ef_forget_last_(cg_ef *ef) {
    if (cg_ef_is_unready_(ef)) return;
    memset(&ef->stats, 0, sizeof ef->stats);
    ef->stats.clipped = 1.0f;
    ef->may_withdraw = 0;
}
/* Finds everything that can be wrong with a step before a vector changes, and prepares *st. want_norm: *grad_energy
   becomes |grad|^2, which is 0 otherwise unless clipping needs it. cg_ef_forget_last_ must have been
   called; the stats get the clipping. */
static cg_status cg_ef_step_check_(cg_ef *ef, const cg_tag *tag, const cg_extra *side, const float *grad, int want_norm,
    cg_ef_step_ *st, double *grad_energy) {
    const cg_ef_desc *d = &ef->desc;
    double huge = 0.0; /* how many blocks have huge values; 1e100 or more: some value is not finite */
    float clip = 1.0f;
    cg_ef_needs_ needs;
    cg_status s;
    memset(st, 0, sizeof *st);
    memset(&needs, 0, sizeof needs);
    *grad_energy = 0.0;
    st->op = cg_ef_op_(ef, tag);
    if (cg_ef_is_unready_(ef)) return CG_E_STATE;
    if (!grad && d->n) return CG_E_ARG;
    st->kernels = cg_kernels_now_();
    st->ef = ef;
    if (side) st->side = *side;
    st->side.segments = cg_ef_segments_(d, &st->op, side);
    st->g = grad;
    s = cg_ef_needs_of_op_(d, st->op, &st->side, &needs, &st->resolved);
    if (s != CG_OK) return s;
    if (needs.scratch_bytes > ef->scratch_bytes || (needs.whole_vector && !ef->whole) ||
        needs.warm_count > ef->warm_count)
        return CG_E_MEMORY; /* an operator of the policy's that init did not see */
    st->whole_vector = needs.whole_vector;
    if (cg_ef_has_trait_(d, CG_EF_TAKES_VARIANCE_)) {
        if (!st->side.aux && d->n) return CG_E_ARG;
        st->variance = st->side.aux;
        /* the caller gives the variance of this gradient, the operator sees that of p */
        st->side.aux = st->resolved.plan.traits & CG_AUX_IS_VARIANCE_ ? ef->vector[1] : NULL;
        if (d->n &&
            cg_vector_pass_(cg_ef_pass_count_huge_, st, (float *)(uintptr_t)st->variance, d->n, CG_BLOCK_) > 0.0)
            return CG_E_NONFINITE;
    } else if (st->resolved.plan.traits & CG_NEEDS_AUX_ && !st->side.aux) st->side.aux = grad;
    s = cg_extra_check_(&st->op, &st->side);
    if (s != CG_OK) return s;
    st->resolved.extra_status = CG_OK; /* aux may have been given since */
    /* one pass for norm and finite check: squares of floats do not overflow a double */
    if (want_norm || (d->clip != 0.0f && d->clip_by == CG_CLIP_NORM)) {
        *grad_energy = cg_ef_pass_(cg_ef_pass_energy_, st, (float *)(uintptr_t)grad, d->n);
        huge = !cg_is_finite64_(*grad_energy) ? 1e100 : cg_sqrt_(*grad_energy) >= (double)CG_EF_HUGE_ ? 1.0 : 0.0;
    } else if (!d->finite) {
        huge = cg_vector_pass_(cg_ef_pass_count_huge_, st, (float *)(uintptr_t)grad, d->n, CG_BLOCK_);
    }
    if (huge >= 1e100) return CG_E_NONFINITE;
    if (d->clip != 0.0f) {
        const double limit = cg_ef_clip_at_(d), grad_norm = cg_sqrt_(*grad_energy);
        if (d->clip_by == CG_CLIP_VALUE) st->clip_limit = (float)limit;
        else if (grad_norm > limit) clip = (float)(limit / grad_norm);
    }
    ef->stats.clipped = clip;
    st->grad_scale = cg_times_(d->rate != 0.0f ? d->rate : 1.0f, clip);
    st->may_overflow = huge > 0.0 || ef->reach >= (double)CG_EF_HUGE_ ||
        (cg_as_bits_(st->grad_scale) & CG_ABS_MASK_) > cg_as_bits_(4.0f);
    return CG_OK;
}
/* Begins a step that cg_ef_step_check_ found good: vectors are brought to this operator's scale, EF21 with momentum
   takes the gradient into its running mean, and *st gets its coefficients. From here on the step must end in a commit
   or a rollback, unless nothing was put into the state yet. */
static void cg_ef_step_begin_(cg_ef *ef, cg_ef_step_ *st) {
    const cg_ef_desc *d = &ef->desc;
    const float scale = cg_ef_scale_(d, &st->op, &st->resolved);
    if (!cg_ef_has_trait_(d, CG_EF_HAS_SHIFT_) && scale != ef->scale) {
        /* a state that was loaded may say anything above 0 */
        cg_ef_scale_vector_(ef, 0, cg_saturate64_((double)scale / (double)ef->scale));
        if (cg_ef_row_of_(d)->velocity_power)
            cg_ef_scale_vector_(ef, 1,
                cg_saturate64_(cg_ef_velocity_scale_(d, (double)scale) / cg_ef_velocity_scale_(d, (double)ef->scale)));
    }
    ef->scale = scale;
    ef->received_by = cg_ef_shift_rate_(d, st);
    if (!cg_ef_has_trait_(d, CG_EF_HAS_SHIFT_)) st->grad_scale = cg_times_(st->grad_scale, scale);
    ef->given_by = st->grad_scale;
    if (cg_ef_has_trait_(d, CG_EF_AVERAGES_GRADIENTS_) && ef->vector[1]) {
        cg_ef_pass_(cg_ef_grad_running_mean_, st, ef->vector[1], d->n);
        st->g = ef->vector[1];
        st->grad_scale = 1.0f;
        st->clip_limit = 0.0f;
    }
    cg_ef_delay_gradient_(ef, st->g, st->grad_scale);
    cg_ef_set_coefficients_(st, scale);
}
/* p has been made, with |p|^2 = energy: the gradient is in the state, or will be. */
static void cg_ef_record_energy_(cg_ef *ef, double energy) {
    const double norm = cg_sqrt_(energy);
    /* in place, e is p, and u the difference of p and what was left of the last p */
    ef->reach = (cg_ef_in_place_(&ef->desc) ? ef->size : ef->reach) + norm;
    ef->size = norm;
    ef->stats.put = energy / ((double)ef->scale * (double)ef->scale);
    ef->stats.kept = 1;
}
/* After a top-k of p whose k-th magnitude was `threshold`: ef->hint becomes a magnitude that about 5/4 k values should
   reach in the next step, so that one filter pass finds them all. Other operators leave the hint as it is. */
static void cg_ef_update_hint_(cg_ef *ef, const cg_ef_step_ *st, const cg_producer_ *fill, float threshold) {
    const size_t k = (size_t)st->resolved.plan.max_selected;
    const float last_hint = cg_as_float_(fill->threshold_hint);
    float next_hint = cg_times_(threshold, 0.97f);
    if (!(st->resolved.plan.traits & CG_TAKES_PRODUCER_) || st->op.sample.id || st->op.transform.id) return;
    /* magnitudes between hint and threshold are taken to lie evenly */
    if (fill->threshold_hint && fill->reached_hint > k && last_hint < threshold)
        next_hint = cg_plus_(threshold,
            -cg_times_(cg_plus_(threshold, -last_hint), (float)(0.25 * (double)k / (double)(fill->reached_hint - k))));
    if (next_hint < cg_times_(threshold, 0.8f)) next_hint = cg_times_(threshold, 0.8f);
    if (ef->threshold > 0.0f) { /* a threshold that falls is expected to fall as much again */
        float drift = threshold / ef->threshold;
        if (drift > 0.9f && drift < 1.0f) next_hint = cg_times_(next_hint, drift);
    }
    ef->hint = next_hint;
    ef->threshold = threshold;
}
/* What makes p for a compressor. It refers to *st, which must live as long. */
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
/* Bytes of a state that could take op, too. */
static uint64_t cg_ef_memory_with_op_(const cg_ef_desc *d, const cg_op *op) {
    cg_ef_needs_ needs;
    cg_resolved_ r;
    cg_ef measured;
    if (cg_ef_check_(d, &needs) != CG_OK || cg_ef_needs_of_op_(d, *op, NULL, &needs, &r) != CG_OK) return 0;
    return cg_add_sat_(cg_ef_plan_(&measured, d, &needs, NULL), 64);
}
/* Says in the report why cg_ef_step_check_ has returned s, and returns it. op: of the step. */
static cg_status cg_ef_step_why_(cg_ef *ef, cg_status s, const cg_extra *side, const float *grad, const cg_op *op) {
    const cg_ef_desc *d = &ef->desc;
    const float *aux = side ? side->aux : NULL;
    cg_resolved_ r;
    uint64_t at;
    if (cg_ef_is_unready_(ef)) return cg_ef_fail_(ef, s, cg_ef_unready_why_(ef), 0, CG_NO_INDEX);
    if (!grad) return cg_ef_fail_(ef, s, "grad is NULL", 0, CG_NO_INDEX);
    if (s == CG_E_MEMORY)
        return cg_ef_fail_(ef, s,
            "the mem of cg_ef_init is too small for the operator that desc.policy chose: name it in a rule, too",
            cg_ef_memory_with_op_(d, op), CG_NO_INDEX);
    if (s == CG_E_NONFINITE) {
        at = cg_first_nonfinite_(grad, d->n);
        if (at != CG_NO_INDEX || !aux) return cg_ef_fail_(ef, s, cg_status_str(s), 0, at);
        return cg_ef_fail_(
            ef, s, "a variance in side->aux is NaN, Inf or above 1e37", 0, cg_first_nonfinite_(aux, d->n));
    }
    if (s == CG_E_ARG && cg_ef_has_trait_(d, CG_EF_TAKES_VARIANCE_) && !aux)
        return cg_ef_fail_(ef, s, "VARIANCE needs the variances of this step in side->aux", 0, CG_NO_INDEX);
    if ((s == CG_E_ARG || s == CG_E_VERSION) && cg_ef_op_why_(ef, op, d->n)) return s;
    if (s == CG_E_UNSUPPORTED && cg_resolve_(op, side, d->n, &r) == CG_OK && cg_ef_biased_why_(d, &r))
        return cg_ef_fail_(ef, s, cg_ef_biased_why_(d, &r), 0, CG_NO_INDEX);
    if (s == CG_E_UNSUPPORTED)
        return cg_ef_fail_(ef, s,
            "side has an aux, a support or scales that the operator of this step has no use for, or the operator does "
            "not go with the kind",
            0, CG_NO_INDEX);
    return cg_ef_fail_(ef, s, cg_status_str(s), 0, CG_NO_INDEX);
}

/* src/ef/mark.h */
/* mark: a hash of everything that a rank has received, so that ranks find out whether they have received the same

   Offers   cg_ef_received_hash_, cg_ef_mark_next_, cg_ef_mark_restart_; the public cg_ef_mark
   Needs    kinds, step (cg_ef_pass_); the checksum of core
   Touches  ef->mark
   Kinds that keep what they received (H, M) need it equal on all ranks, but a step may fail on some of them only. The
   mark goes on with every commit, and exchanges compare it. It is the same on every machine. */

/* Pass over vector[2]: a hash of one chunk and its place, an integer below 2^32. The sum over chunks does not depend on
   their order, so that threads may have it. */
static double cg_ef_received_hash_(const void *user, size_t first, size_t many, float *received) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    cg_checksum_ sum = { 0, 0, 0 };
    uint8_t word[4];
    (void)user;
    if (!CG_BIG_ENDIAN_) CG_KERNEL_(kernels, checksum(&sum, (const uint8_t *)(const void *)received, many));
    for (size_t i = 0; CG_BIG_ENDIAN_ && i < many; i++) {
        cg_put32_(word, cg_load_bits_(received, i));
        CG_KERNEL_(kernels, checksum(&sum, word, 1));
    }
    return (double)(cg_mix64_(cg_mix64_(sum.a + first) ^ sum.b) >> 32);
}
/* The mark after a commit. hash: the sum of cg_ef_received_hash_ over what is now received. */
static void cg_ef_mark_next_(cg_ef *ef, double hash) { ef->mark = cg_mix64_(ef->mark + (uint64_t)hash + CG_GOLDEN_); }
/* The mark of a state whose history is not known: that of the received vector alone. 0 for kinds that have none. */
static void cg_ef_mark_restart_(cg_ef *ef) {
    ef->mark = 0;
    if (ef->vector[2]) cg_ef_mark_next_(ef, cg_ef_pass_(cg_ef_received_hash_, NULL, ef->vector[2], ef->desc.n));
}
CG_API_ uint64_t cg_ef_mark(const cg_ef *ef) { return ef->mark; }

/* src/ef/laq.h */
/* laq: LAQ sends a packet only where it moves the model enough

   Offers   cg_ef_laq_should_send_; cg_ef_packet_open_; the sinks cg_ef_energy_dense_ and cg_ef_energy_sparse_; the
            public cg_ef_moved
   Needs    step; decoding into a sink of core
   Touches  ef->error; cg_ef_moved the ring of the last ten moves */

/* Sinks for decoded values; user is a cg_ef_step_. The first two return |v|^2. */
static double cg_ef_energy_dense_(const void *user, size_t first, size_t many, const float *v) {
    (void)first;
    return cg_energy_(((const cg_ef_step_ *)user)->kernels, v, many);
}
static double cg_ef_energy_sparse_(const void *user, const uint64_t *index, size_t many, const float *v) {
    (void)index;
    return cg_ef_energy_dense_(user, 0, many, v);
}
/* |p - v|^2 - |p|^2 over these coordinates: added to |p|^2 it gives the error of a packet, dense or sparse. */
CG_NOINLINE_ double cg_ef_error_dense_(const void *user, size_t first, size_t many, const float *v) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    float p[CG_CHUNK_];
    double sum = 0.0;
    for (size_t i = 0, some; i < many; i += some) {
        some = cg_min_(CG_CHUNK_, many - i);
        cg_ef_compensate_(st, first + i, some, p);
        sum -= cg_energy_(st->kernels, p, some);
        CG_KERNEL_(st->kernels, axpby(cg_at_(v, i), some, -1.0f, 1.0f, p, 0));
        sum += cg_energy_(st->kernels, p, some);
    }
    return sum;
}
static double cg_ef_error_sparse_(const void *user, const uint64_t *index, size_t many, const float *v) {
    double sum = 0.0;
    for (size_t i = 0; i < many; i++) sum += cg_ef_error_dense_(user, (size_t)index[i], 1, v + i);
    return sum;
}
/* Opens the packet at the beginning of p[0, len), which has at most n values; verify: 0 if it has been verified. */
static cg_status cg_ef_packet_open_(
    cg_decoder_ *d, const cg_extra *side, const uint8_t *p, size_t len, size_t n, int verify) {
    const cg_status s = cg_packet_header_(d, p, len, NULL, NULL);
    if (s != CG_OK) return s;
    if (d->info.n > n) return CG_E_MISMATCH;
    if (d->info.packet_bytes > len) return CG_E_CORRUPT;
    return cg_packet_open_(d, side, p, d->info.packet_bytes, verify);
}
/* The sum of what a pair of sinks returns for the values of a packet that this step has made. */
static double cg_ef_packet_reduce_(const cg_ef_step_ *st, const void *packet, size_t len,
    double (*dense)(const void *, size_t, size_t, const float *),
    double (*sparse)(const void *, const uint64_t *, size_t, const float *)) {
    cg_decoder_ d;
    cg_sink_ sink;
    cg_status s = cg_ef_packet_open_(&d, &st->side, (const uint8_t *)packet, len, st->ef->desc.n, 0);
    sink.take_dense = dense;
    sink.take_sparse = sparse;
    sink.user = st;
    sink.energy = 0.0;
    if (s == CG_OK) s = cg_packet_decode_(&d, &st->side, 1.0f, 1.0f, NULL, &sink, 1);
    return s == CG_OK ? sink.energy : 0.0;
}
/* Whether a packet is worth sending (Sun 19): |D|^2 >= weight/10 sum of |moved|^2 / step^2 + 3 (its error + the
   error when last sent), or nothing was sent for too long. put: |p|^2. ef->error becomes the packet's, |p - D|^2. */
static int cg_ef_laq_should_send_(cg_ef *ef, const cg_ef_step_ *st, double put, const void *packet, size_t len) {
    const cg_ef_desc *d = &ef->desc;
    const double weight = d->laq_weight != 0.0f ? (double)d->laq_weight : 0.8, step = (double)d->laq_step;
    const double sent = cg_ef_packet_reduce_(st, packet, len, cg_ef_energy_dense_, cg_ef_energy_sparse_);
    double model_moves = 0.0,
           error = put + cg_ef_packet_reduce_(st, packet, len, cg_ef_error_dense_, cg_ef_error_sparse_);
    ef->error = error > 0.0 ? error : 0.0;
    for (int i = 0; i < 10; i++) model_moves += ef->moved[i];
    if (ef->silent >= (d->laq_patience ? d->laq_patience : 100) || ef->steps == 0) return 1;
    return sent >= weight / 10.0 * model_moves / (step * step) + 3.0 * (ef->error + ef->error_sent);
}
CG_API_ cg_status cg_ef_moved(cg_ef *ef, double squared) {
    if (!ef || !(squared >= 0.0 && squared <= 1.7976931348623157e308)) return CG_E_ARG;
    ef->moved[ef->moves++ % 10] = squared;
    return CG_OK;
}

/* src/ef/rollback.h */
/* rollback: how a step ends, and how it ends when its packet was not used

   Offers   cg_ef_step_end_, cg_ef_rollback_now_
   Needs    step
   Touches  the residual, the velocity, the counters and the stats of the state
   When a step has begun the gradient is in the residual already, so a rollback has little to do. */

/* Counts a step, committed or rolled back; every desc.reset steps the residual is forgotten. */
static void cg_ef_step_end_(cg_ef *ef) {
    ef->pending = 0;
    ef->steps++;
    cg_ef_delay_residual_(ef);
    if (ef->desc.reset && ef->steps % ef->desc.reset == 0) cg_ef_scale_vector_(ef, 0, 0.0f);
}
/* Pass: e = e + factor M, saturated; user is a cg_ef_factor_ctx_. */
static double cg_ef_subtract_mean_(const void *user, size_t first, size_t many, float *e) {
    const cg_ef_factor_ctx_ *b = (const cg_ef_factor_ctx_ *)user;
    cg_axpy_faded_energy_y_(b->kernels, cg_at_(b->ef->vector[2], first), many, b->factor, e);
    for (size_t i = 0; i < many; i++) cg_store_(e, i, cg_saturate_(cg_load_(e, i)));
    return 0.0;
}
/* Ends a step with D = 0. The residual keeps p; only what the kind would add a second time in the next step is taken
   back: the momentum M of ONEBIT_ADAM. The variance decays as in a step. */
static void cg_ef_rollback_now_(cg_ef *ef) {
    if (cg_ef_has_trait_(&ef->desc, CG_EF_TAKES_VARIANCE_)) cg_ef_scale_vector_(ef, 1, cg_ef_decay_(&ef->desc));
    if (cg_ef_has_trait_(&ef->desc, CG_EF_ADDS_RECEIVED_)) {
        cg_ef_factor_ctx_ b;
        b.kernels = cg_kernels_now_();
        b.ef = ef;
        b.factor = -cg_times_(ef->scale, ef->desc.momentum);
        cg_ef_pass_(cg_ef_subtract_mean_, &b, ef->vector[0], ef->desc.n);
    }
    ef->stats.sent = 0.0;
    ef->stats.gain = 0.0f;
    cg_ef_step_end_(ef);
    if (cg_ef_has_trait_(&ef->desc, CG_EF_KEEPS_NOTHING_)) ef->stats.kept = 0;
    ef->may_withdraw = 1;
}

/* src/ef/compress.h */
/* compress: a step's packet, for callers who send packets themselves

   Offers   cg_ef_pack_, cg_packet_threshold_; the public cg_ef_compress and cg_ef_compress_with
   Needs    step, laq, rollback; cg_compress_checked_ of core
   Touches  the state, the packet, and ef->scratch and ef->whole */

/* Compresses p into packet. *fill is what makes p; fill->energy becomes |p|^2. Kinds that work in place have p in the
   residual afterwards (fill->started says whether some of it is there, if this fails); the others leave e as it is. */
static cg_status cg_ef_pack_(
    cg_ef *ef, cg_ef_step_ *st, cg_producer_ *fill, const cg_tag *tag, void *packet, size_t cap, size_t *len) {
    const cg_ef_desc *d = &ef->desc;
    const float *x = cg_ef_in_place_(d) ? ef->vector[0] : st->g;
    cg_producer_ *source = fill;
    const int whole = fill->lazy && st->whole_vector;
    if (fill->lazy && !whole)
        fill->energy = cg_ef_pass_(cg_ef_compensated_energy_, st, (float *)(uintptr_t)st->g, d->n);
    /* LAQ's grid is symmetric: its one bucket gets the scales +-max|p| */
    if (cg_ef_has_trait_(d, CG_EF_MAY_BE_SILENT_) && st->resolved.plan.traits & CG_SCALES_ARE_ENDS_ &&
        !st->op.select.id && !st->op.sample.id && !st->op.transform.id && st->op.quantize.size >= d->n) {
        st->laq_range[1] = cg_ef_compensated_absmax_(st, d->n);
        st->laq_range[0] = -st->laq_range[1];
        st->side.scale = st->laq_range;
    }
    if (whole) {
        fill->energy = cg_ef_pass_(cg_ef_compensate_, st, ef->whole, d->n);
        x = ef->whole;
        source = NULL;
    }
    return cg_compress_checked_(
        &st->op, &st->resolved.plan, tag, &st->side, x, source, d->n, packet, cap, len, ef->scratch, ef->scratch_bytes);
}
/* The field of a packet's header that holds the k-th magnitude of its top-k. */
static float cg_packet_threshold_(const void *packet) { return cg_as_float_(cg_get32_((const uint8_t *)packet + 144)); }
/* On an error the state means what it did before, unless a codec of the user's failed after p had been made: then the
   step is rolled back, and the gradient stays in the residual. */
static cg_status cg_ef_compress_(
    cg_ef *ef, const cg_tag *tag, const cg_extra *side, const float *grad, void *packet, size_t cap, size_t *len) {
    const cg_tag none = CG_ZERO;
    cg_ef_step_ st;
    cg_producer_ fill;
    cg_report packet_report;
    double grad_energy;
    size_t bound;
    cg_status s;
    if (cg_ef_is_unready_(ef)) return cg_ef_fail_(ef, CG_E_STATE, cg_ef_unready_why_(ef), 0, CG_NO_INDEX);
    if (len) *len = 0;
    cg_ef_forget_last_(ef);
    if (!tag) tag = &none;
    s = cg_ef_step_check_(ef, tag, side, grad, 0, &st, &grad_energy);
    if (s != CG_OK) return cg_ef_step_why_(ef, s, side, grad, &st.op);
    if (!len || !packet) return cg_ef_fail_(ef, CG_E_ARG, len ? "packet is NULL" : "len is NULL", 0, CG_NO_INDEX);
    bound = st.resolved.bound;
    if (!bound) {
        packet_report = cg_op_refusal_(&st.op, &st.side, ef->desc.n);
        return cg_ef_fail_(ef, CG_E_ARG, packet_report.why, packet_report.need, CG_NO_INDEX);
    }
    if (cap < bound || cap < CG_HEADER_BYTES) {
        const size_t enough = cg_ef_bound(&ef->desc);
        return cg_ef_fail_(ef, CG_E_CAPACITY, "packet is too small: cg_ef_bound gives its bytes",
            enough > bound ? enough : bound, CG_NO_INDEX);
    }
    if (st.resolved.plan.traits & CG_IS_PER_RANK_ && tag->rank >= st.op.sample.size)
        return cg_ef_fail_(ef, CG_E_ARG, "tag.rank is not below the workers of permk", 0, CG_NO_INDEX);
    if (st.resolved.plan.traits & CG_NEEDS_SUPPORT_) s = cg_support_check_(&st.side, ef->desc.n);
    if (s != CG_OK)
        return cg_ef_fail_(
            ef, s, "side->support is missing, damaged, of another n, or has no indices of its own", 0, CG_NO_INDEX);
    st.side.report = &packet_report;
    cg_ef_step_begin_(ef, &st);
    fill = cg_ef_producer_(ef, &st);
    s = cg_ef_pack_(ef, &st, &fill, tag, packet, cap, len);
    if (s == CG_OK && !fill.lazy) cg_ef_update_hint_(ef, &st, &fill, cg_packet_threshold_(packet));
    if (s == CG_OK) cg_ef_record_energy_(ef, fill.energy);
    if (s == CG_OK && cg_ef_has_trait_(&ef->desc, CG_EF_MAY_BE_SILENT_) &&
        !cg_ef_laq_should_send_(ef, &st, fill.energy, packet, *len)) {
        ef->stats.silent = 1;
        *len = cg_empty_packet_put_(tag, ef->desc.n, (uint8_t *)packet);
    }
    if (s == CG_OK && fill.lazy && !cg_ef_has_trait_(&ef->desc, CG_EF_HAS_SHIFT_ | CG_EF_KEEPS_NOTHING_))
        cg_ef_pass_(cg_ef_residual_accumulate_, &st, cg_ef_pass_vector_(ef), ef->desc.n);
    ef->pending = s == CG_OK;
    cg_ef_fail_(ef, s, packet_report.why, packet_report.need, packet_report.at);
    /* a codec of the user's failed, with p in the residual or the gradient in EF21's running mean */
    if (s != CG_OK && (fill.started || st.g != grad)) {
        cg_ef_record_energy_(ef, fill.energy);
        cg_ef_rollback_now_(ef);
    }
    return s;
}
CG_API_ cg_status cg_ef_compress_with(
    cg_ef *ef, const cg_tag *tag, const cg_extra *side, const float *grad, void *packet, size_t cap, size_t *len) {
    cg_fenv_ env;
    cg_status s;
    if (!ef && len) *len = 0;
    if (!ef) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_ef_compress_(ef, tag, side, grad, packet, cap, len);
    if (side && side->report) *side->report = ef->report;
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_ef_compress(
    cg_ef *ef, const cg_tag *tag, const float *grad, void *packet, size_t cap, size_t *len) {
    return cg_ef_compress_with(ef, tag, NULL, grad, packet, cap, len);
}

/* src/ef/commit.h */
/* commit: takes what was used of a step out of the residual

   Offers   cg_ef_commit_now_; the public cg_ef_commit, cg_ef_commit_with and cg_ef_rollback
   Needs    step, mark, laq, rollback; decoding into a sink of core
   Touches  all vectors of the state, its counters and stats, and the caller's mean
   The contribution D of a rank is what its packet, or the packet that was used in its place, decodes to. Nothing
   changes before the packet has been verified. */

typedef struct cg_ef_commit_ctx_ {
    const cg_kernels_ *kernels;
    const cg_ef *ef;
    size_t packet_start;   /* coordinate where the packet being decoded begins */
    float subtract_factor; /* e = e - subtract_factor D */
    int may_overflow;      /* sums may leave the float range: they are set to the largest float */
} cg_ef_commit_ctx_;
/* Sinks: subtract decoded values from e, and return the sum of their squares. Where values were sent the variance
   starts anew; the velocity of MOMENTUM does so only where a selection was sent (momentum factor masking of DGC). */
static double cg_ef_subtract_dense_(const void *user, size_t first, size_t many, const float *v) {
    const cg_ef_commit_ctx_ *c = (const cg_ef_commit_ctx_ *)user;
    const size_t start = c->packet_start + first;
    if (cg_ef_has_trait_(&c->ef->desc, CG_EF_TAKES_VARIANCE_)) memset(cg_at_mut_(c->ef->vector[1], start), 0, 4 * many);
    if (c->ef->bytes) cg_residual8_axpby_(c->ef, start, many, -c->subtract_factor, v, 1.0f);
    else {
        float *e = cg_at_mut_(c->ef->vector[0], start);
        const double energy = cg_axpby_fading_energy_x_(c->kernels, v, many, -c->subtract_factor, 1.0f, e);
        for (size_t i = 0; c->may_overflow && i < many; i++) cg_store_(e, i, cg_saturate_(cg_load_(e, i)));
        return energy;
    }
    return cg_energy_(c->kernels, v, many);
}
static double cg_ef_subtract_sparse_(const void *user, const uint64_t *index, size_t many, const float *v) {
    const cg_ef_commit_ctx_ *c = (const cg_ef_commit_ctx_ *)user;
    const int clears_velocity = cg_ef_has_trait_(&c->ef->desc, CG_EF_MASKS_VELOCITY_);
    float *e = c->ef->vector[0], *velocity = clears_velocity ? c->ef->vector[1] : NULL;
    for (size_t i = 0; e && i < many; i++) CG_PREFETCH_(cg_at_(e, c->packet_start + (size_t)index[i]));
    for (size_t i = 0; velocity && i < many; i++) CG_PREFETCH_(cg_at_(velocity, c->packet_start + (size_t)index[i]));
    if (c->ef->bytes) cg_residual8_add_sparse_(c->ef, c->packet_start, index, many, -c->subtract_factor, v);
    for (size_t i = 0; e && i < many; i++) {
        const size_t j = c->packet_start + (size_t)index[i];
        cg_store_(e, j, cg_saturate_(cg_plus_(cg_load_(e, j), cg_times_(-c->subtract_factor, v[i]))));
        if (velocity) cg_store_(velocity, j, 0.0f);
    }
    return cg_energy_(c->kernels, v, many);
}
/* Goes over used[0, len): one packet of n values, or several, one after the other, that cover the vector in order (as
   stripes do). With a sink each is decoded into it, and must have been verified; without, each is verified. c says to
   sinks where a packet begins. CG_E_MISMATCH: the packets do not cover exactly n values. */
static cg_status cg_ef_for_each_packet_(
    const cg_ef *ef, const cg_extra *side, const uint8_t *used, size_t len, cg_ef_commit_ctx_ *c, cg_sink_ *sink) {
    size_t offset = 0, values_done = 0;
    cg_status s = used ? CG_OK : CG_E_ARG;
    cg_decoder_ d;
    while (offset < len && s == CG_OK) {
        s = cg_ef_packet_open_(&d, side, used + offset, len - offset, ef->desc.n - values_done, !sink);
        c->packet_start = values_done;
        if (s == CG_OK && sink) s = cg_packet_decode_(&d, side, 1.0f, 1.0f, NULL, sink, 1);
        if (s != CG_OK) return s;
        offset += d.info.packet_bytes;
        values_done += (size_t)d.info.n;
    }
    return s == CG_OK && (values_done != ef->desc.n || len == 0) ? CG_E_MISMATCH : s;
}
typedef struct cg_ef_apply_mean_ctx_ {
    const cg_ef *ef;
    float *mean; /* n floats: in, the mean of contributions; out, the result */
    int may_overflow;
} cg_ef_apply_mean_ctx_;
/* Pass over received, which becomes what it is after the step, and mean, which becomes the result. Returns the hash of
   what is now received. */
static double cg_ef_apply_mean_(const void *user, size_t first, size_t many, float *received) {
    const cg_ef_apply_mean_ctx_ *r = (const cg_ef_apply_mean_ctx_ *)user;
    cg_ef_row_of_(&r->ef->desc)->receive(r->ef, many, received, cg_at_mut_(r->mean, first));
    for (size_t i = 0; r->may_overflow && i < many; i++) {
        cg_store_(r->mean, first + i, cg_saturate_(cg_load_(r->mean, first + i)));
        cg_store_(received, i, cg_saturate_(cg_load_(received, i)));
    }
    return cg_ef_received_hash_(NULL, first, many, received);
}
/* Commits the step with used[0, len) as its contribution. opened: that packet, if it is one and open, or NULL. mean:
   what kinds that keep what they received need, n floats, and for some becomes the result; other kinds do not look at
   it. verified: the packets have been. On an error from the mean or from verification nothing has changed, and the
   step is still open. */
static cg_status cg_ef_commit_now_(
    cg_ef *ef, const cg_extra *side, const void *used, size_t len, cg_decoder_ *opened, float *mean, int verified) {
    const cg_ef_desc *d = &ef->desc;
    cg_ef_step_ st;
    cg_ef_commit_ctx_ c;
    cg_sink_ sink;
    /* nothing is subtracted from a residual that is not there, so that the packet may be missing */
    const int measured = used || opened || !cg_ef_has_trait_(d, CG_EF_KEEPS_NOTHING_);
    double huge_blocks = 0.0; /* of the mean; see cg_ef_pass_count_huge_ */
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
        huge_blocks = cg_vector_pass_(cg_ef_pass_count_huge_, &st, mean, d->n, CG_BLOCK_);
        if (huge_blocks >= 1e100) return CG_E_NONFINITE;
    }
    if (!verified && measured) s = cg_ef_for_each_packet_(ef, side, (const uint8_t *)used, len, &c, NULL);
    if (s != CG_OK) return s;
    if (cg_ef_has_trait_(d, CG_EF_TAKES_VARIANCE_)) cg_ef_scale_vector_(ef, 1, cg_ef_decay_(d));
    if (c.subtract_factor == 0.0f) { /* nothing to subtract, only |D|^2 to measure */
        sink.take_dense = cg_ef_energy_dense_;
        sink.take_sparse = cg_ef_energy_sparse_;
        sink.user = &st;
    }
    c.packet_start = 0;
    if (opened) s = cg_packet_decode_(opened, side, 1.0f, 1.0f, NULL, &sink, 1);
    else if (measured) s = cg_ef_for_each_packet_(ef, side, (const uint8_t *)used, len, &c, &sink);
    if (s == CG_OK && cg_ef_has_trait_(d, CG_EF_KEEPS_RECEIVED_)) {
        cg_ef_apply_mean_ctx_ r;
        r.ef = ef;
        r.mean = mean;
        r.may_overflow = c.may_overflow || huge_blocks > 0.0;
        cg_ef_mark_next_(ef, cg_ef_pass_(cg_ef_apply_mean_, &r, ef->vector[2], d->n));
    }
    ef->stats.sent = sink.energy;
    ef->stats.gain = ef->stats.put > 0.0 ? (float)(sink.energy / ef->stats.put) : 0.0f;
    ef->reach += cg_sqrt_(sink.energy);
    if (cg_ef_has_trait_(d, CG_EF_MAY_BE_SILENT_)) {
        ef->silent = ef->stats.silent ? ef->silent + 1 : 0;
        if (!ef->stats.silent) ef->error_sent = ef->error;
    }
    cg_ef_step_end_(ef);
    return s;
}
static cg_status cg_ef_not_pending_(cg_ef *ef) {
    return cg_ef_fail_(ef, CG_E_STATE,
        ef->desc.n ? "no step is pending: cg_ef_compress begins one" : cg_ef_unready_why_(ef), 0, CG_NO_INDEX);
}
/* Says in the report why a commit has returned s. */
static void cg_ef_commit_why_(cg_ef *ef, cg_status s, const void *used, const float *mean) {
    const char *why = cg_status_str(s);
    uint64_t at = CG_NO_INDEX;
    if (s == CG_E_NONFINITE) {
        why = "NaN or Inf in mean";
        at = cg_first_nonfinite_(mean, ef->desc.n);
    } else if (!mean && cg_ef_has_trait_(&ef->desc, CG_EF_KEEPS_RECEIVED_))
        why = "mean is NULL, and this kind needs the mean over ranks";
    else if (!used && !cg_ef_has_trait_(&ef->desc, CG_EF_KEEPS_NOTHING_))
        why = "used is NULL: give the packet of cg_ef_compress, or what of it was used";
    else if (s == CG_E_MISMATCH) why = "used does not cover the n values of this state, or has another support";
    else if (s == CG_E_CORRUPT) why = "used has a packet that is not intact";
    cg_ef_fail_(ef, s, why, 0, at);
}
CG_API_ cg_status cg_ef_commit_with(cg_ef *ef, const cg_extra *side, const void *used, size_t used_len, float *mean) {
    cg_fenv_ env;
    cg_status s;
    if (!ef) return CG_E_ARG;
    if (!ef->pending) return cg_ef_not_pending_(ef);
    env = cg_fenv_enter_();
    s = cg_ef_commit_now_(ef, side, used, used_len, NULL, mean, 0);
    if (s == CG_OK) cg_ef_done_(ef);
    else cg_ef_commit_why_(ef, s, used, mean);
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
    if (!ef->pending) return cg_ef_not_pending_(ef);
    env = cg_fenv_enter_();
    cg_ef_rollback_now_(ef);
    cg_fenv_leave_(env);
    return cg_ef_done_(ef);
}

/* src/ef/exchange.h */
/* exchange: one call from the gradient to the result, for one vector or for many layers

   Offers   the public cg_ef_exchange, cg_ef_exchange_layers and their memory
   Needs    compress, commit; the state, stripes, rules and layers of exchange
   Touches  the state, grad, the caller's memory, the report
   prepare finds what can be refused before the state changes, begin puts the gradient into the state, the exchange
   runs, finish commits or rolls back. A rank that refuses still takes part in the exchange, with its status, so that
   the others hear of it. */

/* The caller's description as changed for this step: operator (op), warm and carry are ef's, common has its mark, into
   is left to cg_ef_exchange_begin_, and the route is one that takes the operator. Kinds that keep what all ranks
   received are confirmed: otherwise a message that is damaged on one rank would let their states differ. */
static cg_exchange_desc cg_ef_step_desc_(const cg_ef *ef, const cg_exchange_desc *desc, const cg_op *op) {
    const cg_op dense = cg_dense();
    cg_exchange_desc step_desc = *desc;
    step_desc.op = *op;
    step_desc.into = NULL;
    step_desc.warm = cg_op_traits_(&step_desc.op) & CG_IS_LINEAR_MATRIX_ ? ef->warm : NULL;
    step_desc.carry = ef->carry;
    step_desc.common ^= ef->mark; /* ranks that have received something else are told so */
    /* a dense step of VARIANCE has no use for aux */
    if (step_desc.side && step_desc.side->aux && !(cg_op_traits_(&step_desc.op) & CG_NEEDS_AUX_)) step_desc.side = NULL;
    if (!step_desc.side && cg_ef_segments_(&ef->desc, op, NULL)) step_desc.side = &ef->segments;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_KEEPS_RECEIVED_)) step_desc.flags |= CG_CONFIRM;
    /* a rank that has not moved has the model that it began with, which is part of the first mean */
    if (cg_ef_begins_(ef)) step_desc.flags &= ~(uint32_t)CG_ABSTAIN;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_MAY_BE_SILENT_)) {
        step_desc.flags |= CG_MAY_ABSTAIN;
        if (!step_desc.route) step_desc.route = CG_ROUTE_ALLGATHER;
    }
    /* a second leg would add the noise of one rank's operator to the mean of all ranks' */
    if (cg_ef_has_trait_(&ef->desc, CG_EF_UNBIASED_ONLY_) && !step_desc.route && !cg_same_op_(&step_desc.op, &dense))
        step_desc.route = CG_ROUTE_ALLGATHER;
    if (cg_route_row_of_(step_desc.route)->traits & CG_ROUTE_ALLREDUCES_ &&
        cg_ef_has_trait_(&ef->desc, CG_EF_UNBIASED_ONLY_) && !(cg_op_traits_(&ef->desc.op) & CG_IS_PRIVATE_))
        step_desc.op = cg_ef_drawn_in_common_(step_desc.op);
    /* routes that need indices refuse a dense step */
    if (cg_same_op_(&step_desc.op, &dense) && cg_route_row_of_(step_desc.route)->traits & CG_ROUTE_NEEDS_INDICES_)
        step_desc.route = CG_ROUTE_AUTO;
    return step_desc;
}
/* Parts of the caller's memory, in bytes; each but the last a multiple of 64. */
typedef struct cg_ef_buffer_bytes_ {
    uint64_t vector_bytes;   /* p, of kinds that do not work in place */
    uint64_t packet_bytes;   /* LAQ's trial packet */
    uint64_t exchange_bytes; /* what cg_exchange_memory says; 0: the exchange is refused */
} cg_ef_buffer_bytes_;
/* Fills *b in for an exchange that takes so many bytes, by an operator with this bound; returns their sum with room to
   align it, or 0 if the exchange is refused. */
static uint64_t cg_ef_buffer_bytes_set_(
    const cg_ef *ef, uint64_t exchange_bytes, uint64_t bound, cg_ef_buffer_bytes_ *b) {
    const uint64_t align = 63;
    memset(b, 0, sizeof *b);
    b->exchange_bytes = cg_size_or_zero_(exchange_bytes);
    if (!cg_ef_in_place_(&ef->desc)) b->vector_bytes = cg_add_sat_(cg_mul_sat_(4, ef->desc.n), align) & ~align;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_MAY_BE_SILENT_))
        b->packet_bytes = cg_add_sat_(cg_add_sat_(bound, CG_HEADER_BYTES), align) & ~align;
    if (!b->exchange_bytes) return 0; /* a small layer needs the other two all the same */
    return cg_add_sat_(cg_add_sat_(cg_add_sat_(b->vector_bytes, b->packet_bytes), b->exchange_bytes), 64);
}
/* The same ahead of a step. */
static uint64_t cg_ef_buffer_bytes_of_(
    const cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, cg_ef_buffer_bytes_ *b) {
    const cg_op op = cg_ef_op_(ef, &desc->tag);
    cg_exchange_desc step_desc = cg_ef_step_desc_(ef, desc, &op);
    cg_extra side = CG_ZERO;
    if (step_desc.side) side = *step_desc.side;
    side.segments = cg_ef_segments_(&ef->desc, &op, step_desc.side);
    if (step_desc.side) step_desc.side = &side;
    return cg_ef_buffer_bytes_set_(
        ef, cg_exchange_memory(&step_desc, transport, ef->desc.n), cg_bound_with(&op, &side, ef->desc.n), b);
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
/* LAQ: compresses p on trial into packet; ef->stats.silent says whether the real one is to be withheld. */
static cg_status cg_ef_laq_decide_(cg_ef *ef, cg_ef_step_ *st, const cg_tag *tag, uint8_t *packet, size_t cap) {
    cg_producer_ fill = cg_ef_producer_(ef, st);
    size_t len;
    const cg_status s = cg_ef_pack_(ef, st, &fill, tag, packet, cap, &len);
    cg_ef_record_energy_(ef, fill.energy);
    if (s == CG_OK) ef->stats.silent = !cg_ef_laq_should_send_(ef, st, fill.energy, packet, len);
    return s;
}
/* One exchange under way. It refers to itself (desc.side), so it must not be moved. */
typedef struct cg_ef_exchange_ctx_ {
    cg_ef_step_ step;
    cg_exchange_desc desc;        /* as changed for this step */
    cg_exchange_desc caller_desc; /* as the caller gave it */
    cg_ef_buffer_bytes_ buffers;
    cg_producer_ fill;  /* makes p in place during the exchange; fill.make NULL: p has been made */
    float *p, *grad;    /* grad: of layers, the caller's */
    double grad_energy; /* |grad|^2, where the score asks for it */
} cg_ef_exchange_ctx_;

/* Resolves the exchange, in *x: ctx->buffers; returns the floats that it needs as a carry. */
static size_t cg_ef_exchange_resolve_(
    const cg_ef *ef, const cg_transport *transport, cg_ef_exchange_ctx_ *ctx, cg_exchange_state *x) {
    cg_resolved_ *resolved = &ctx->step.resolved;
    cg_ef_buffer_bytes_set_(
        ef, cg_exchange_resolve_(x, &ctx->desc, transport, ef->desc.n, resolved, 1), resolved->bound, &ctx->buffers);
    return ctx->buffers.exchange_bytes && x->status == CG_OK ? cg_carry_floats_(x) : 0;
}
/* The same in a state that is not kept. */
CG_NOINLINE_ size_t cg_ef_exchange_resolve_apart_(
    const cg_ef *ef, const cg_transport *transport, cg_ef_exchange_ctx_ *ctx) {
    cg_exchange_state x;
    return cg_ef_exchange_resolve_(ef, transport, ctx, &x);
}
/* What of an exchange's description does not go with the kind, as a sentence, or NULL. */
static const char *cg_ef_desc_why_(const cg_ef *ef, const cg_exchange_desc *desc) {
    cg_resolved_ back;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_COPIES_RECEIVED_) &&
        cg_fold_row_of_(desc->fold)->traits != (CG_FOLD_IS_LINEAR_ | CG_FOLD_DIVIDES_))
        return "this kind keeps the mean over ranks: take CG_FOLD_MEAN";
    if (cg_route_row_of_(desc->route)->traits & CG_ROUTE_BEGINS_AT_OWNER_)
        return "all_gather sends parameters, which are not summed: call cg_all_gather, whose carry is their residual";
    if (cg_route_row_of_(desc->route)->traits & CG_ROUTE_ENDS_AT_OWNER_ &&
        cg_ef_has_trait_(
            &ef->desc, CG_EF_KEEPS_RECEIVED_ | CG_EF_COPIES_RECEIVED_ | CG_EF_TAKES_MODELS_ | CG_EF_MAY_BE_SILENT_))
        return "this kind needs the mean of all values, and reduce_scatter gives that of a stripe: take scatter";
    if (cg_ef_has_trait_(&ef->desc, CG_EF_TAKES_MODELS_) && desc->model)
        return "this kind takes a model and makes it common: there is no other model to be stepped";
    if (cg_ef_has_trait_(&ef->desc, CG_EF_UNBIASED_ONLY_) && desc->back && !ef->desc.biased &&
        cg_resolve_(desc->back, NULL, ef->desc.n, &back) == CG_OK && !back.is_unbiased)
        return "this kind keeps no residual: the operator of the second leg, back, must be unbiased, too";
    return NULL;
}
/* Finds everything that can be refused on this rank, and prepares *ctx, whose desc is valid even on an error. Of the
   state only stats and report change. x: where the exchange is resolved, or NULL. */
static cg_status cg_ef_exchange_prepare_(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport,
    const float *grad, cg_ef_exchange_ctx_ *ctx, cg_exchange_state *x) {
    const int scored = desc->leader == CG_LEADER_BY_SCORE && desc->score == 0.0f;
    uint64_t carry;
    cg_status s;
    memset(ctx, 0, sizeof *ctx);
    ctx->caller_desc = *desc;
    s = cg_ef_step_check_(ef, &desc->tag, desc->side, grad, scored, &ctx->step, &ctx->grad_energy);
    ctx->desc = cg_ef_step_desc_(ef, desc, &ctx->step.op);
    ctx->step.side.report = NULL;
    ctx->desc.side = &ctx->step.side;
    ctx->desc.flags |= CG_MAKES_PACKET_;
    if (!ef->desc.biased) ctx->desc.flags |= CG_FEEDS_BACK; /* or the report says what a biased operator does */
    if (s != CG_OK) return cg_ef_step_why_(ef, s, desc->side, grad, &ctx->step.op);
    if (!cg_same_op_(&ctx->desc.op, &ctx->step.op)) { /* drawn in common, for this route */
        ctx->step.op = ctx->desc.op;
        s = cg_resolve_(&ctx->step.op, &ctx->step.side, ef->desc.n, &ctx->step.resolved);
        if (s != CG_OK) return cg_ef_step_why_(ef, s, desc->side, grad, &ctx->step.op);
    }
    carry = x ? cg_ef_exchange_resolve_(ef, transport, ctx, x) : cg_ef_exchange_resolve_apart_(ef, transport, ctx);
    if (ef->carry && carry > ef->desc.carry)
        return cg_ef_fail_(ef, CG_E_MEMORY, "cg_ef_desc.carry is too small: cg_exchange_carry gives its floats",
            cg_mul_sat_(4, carry), CG_NO_INDEX);
    if (cg_ef_desc_why_(ef, desc)) return cg_ef_fail_(ef, CG_E_UNSUPPORTED, cg_ef_desc_why_(ef, desc), 0, CG_NO_INDEX);
    if (!cg_rate_ok_(desc)) return cg_ef_fail_(ef, CG_E_ARG, "rate must be finite", 0, CG_NO_INDEX);
    if (ctx->step.resolved.plan.traits & CG_IS_PER_RANK_ && (uint32_t)transport->rank >= ctx->step.op.sample.size)
        return cg_ef_fail_(ef, CG_E_ARG, "there are more ranks than workers of permk", 0, CG_NO_INDEX);
    return cg_ef_done_(ef);
}
/* Begins the step: from here on the state changes. p is made in ctx->p, or will be by ctx->fill. buffer has
   vector_bytes and packet_bytes of ctx->buffers. An error (of LAQ's trial) is for the exchange to tell the others. */
static cg_status cg_ef_exchange_begin_(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport,
    float *grad, uint8_t *buffer, cg_ef_exchange_ctx_ *ctx) {
    const size_t n = ef->desc.n;
    cg_status s = CG_OK;
    cg_ef_step_begin_(ef, &ctx->step);
    ctx->desc.into = grad;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_KEEPS_RECEIVED_))
        ctx->desc.model = NULL; /* finish makes their result of the mean */
    ctx->p = n ? ef->vector[0] : grad;
    if (desc->leader == CG_LEADER_BY_SCORE && desc->score == 0.0f) {
        const double norm = cg_sqrt_(ctx->grad_energy);
        ef->score = ef->score > 0.0 ? cg_times64_(0.9, ef->score) + cg_times64_(0.1, norm) : norm;
        ctx->desc.score = cg_saturate64_(ef->score);
    }
    if (cg_ef_in_place_(&ef->desc)) {
        ctx->fill = cg_ef_producer_(ef, &ctx->step);
        return CG_OK;
    }
    ctx->p = n ? (float *)(void *)buffer : grad;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_MAY_BE_SILENT_)) {
        cg_tag tag = desc->tag;
        tag.rank = (uint32_t)transport->rank;
        s = cg_ef_laq_decide_(
            ef, &ctx->step, &tag, buffer + (size_t)ctx->buffers.vector_bytes, (size_t)ctx->buffers.packet_bytes);
        if (ef->stats.silent) ctx->desc.flags |= CG_ABSTAIN;
    }
    cg_ef_record_energy_(ef, cg_ef_pass_(cg_ef_compensate_, &ctx->step, ctx->p, n));
    if (!cg_ef_has_trait_(&ef->desc, CG_EF_HAS_SHIFT_ | CG_EF_KEEPS_NOTHING_))
        cg_ef_pass_(cg_ef_residual_accumulate_, &ctx->step, cg_ef_pass_vector_(ef), n);
    return s;
}
/* Commits if the exchange succeeded, and rolls back otherwise. opened: as in cg_ef_commit_now_. grad holds the mean,
   for the kinds that need it, and becomes the result. */
static cg_status cg_ef_exchange_finish_(
    cg_ef *ef, const cg_ef_exchange_ctx_ *ctx, cg_status s, cg_report *report, cg_decoder_ *opened, float *grad) {
    if (s == CG_OK) {
        s = cg_ef_commit_now_(ef, &ctx->step.side, report->used, report->used_len, opened, grad, 1);
        if (s == CG_OK) {
            if (!ctx->desc.model) cg_model_step_(&ctx->caller_desc, grad, ef->desc.n);
            return CG_OK;
        }
        /* packets are verified and the mean is there: that is all that can be wrong */
        report->why = "the result is not finite: the sum over ranks is too large";
        report->status = (uint32_t)s;
        report->used = NULL;
        report->used_len = 0;
    }
    if (ef->stats.kept) cg_ef_rollback_now_(ef);
    return s;
}
/* What this rank has found wrong, in place of what the exchange knows of it. */
static void cg_ef_copy_refusal_(const cg_ef *ef, cg_report *report) {
    report->status = ef->report.status;
    report->why = ef->report.why;
    report->need = ef->report.need;
    report->at = ef->report.at;
}
/* The exchange's report is also what cg_ef_report gives. */
static void cg_ef_keep_report_(cg_ef *ef, const cg_report *report) {
    ef->report = *report;
    ef->report.used = NULL; /* in memory that is not the state's */
    ef->report.used_len = 0;
}
/* Ends a step whose exchange in *x has ended with s. */
static cg_status cg_ef_exchange_moved_(
    cg_ef *ef, cg_ef_exchange_ctx_ *r, cg_exchange_state *x, cg_status s, cg_report *report, float *grad) {
    if (r->fill.started) cg_ef_record_energy_(ef, r->fill.energy);
    if (s == CG_OK) cg_carry_first_(x->plan.route, &x->transport, ef->desc.n, &ef->carry_first);
    if (s == CG_OK && r->fill.started && x->plan.stripes == 1 && cg_is_compressed_first_(x))
        cg_ef_update_hint_(ef, &r->step, &r->fill, cg_packet_threshold_(x->own.packets));
    return cg_ef_exchange_finish_(ef, r, s, report, s == CG_OK ? cg_used_decoder_(x) : NULL, grad);
}
static cg_status cg_ef_exchange_(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, float *grad,
    void *mem, size_t bytes, cg_report *report) {
    const size_t n = ef->desc.n, align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    uint8_t *at = mem ? (uint8_t *)mem + align_pad : NULL;
    cg_exchange_state *x = mem && bytes >= align_pad + CG_STATE_ROOM_ ? (cg_exchange_state *)(void *)at : NULL;
    cg_ef_exchange_ctx_ r;
    cg_status s = cg_ef_exchange_prepare_(ef, desc, transport, grad, &r, x);
    const uint64_t need = cg_add_sat_(
        cg_add_sat_(r.buffers.vector_bytes, r.buffers.packet_bytes), r.buffers.exchange_bytes);
    if (s == CG_OK && r.buffers.exchange_bytes && (!mem || bytes < align_pad || bytes - align_pad < need))
        s = cg_ef_fail_(ef, CG_E_MEMORY, "mem is too small: cg_ef_exchange_memory gives its bytes",
            cg_add_sat_(need, 64), CG_NO_INDEX);
    /* refused: the others must hear of it */
    if (s != CG_OK || !r.buffers.exchange_bytes) {
        const cg_status refused = s;
        s = cg_exchange_or_fail_(&r.desc, transport, grad, n, mem, bytes, refused, report);
        if (refused != CG_OK && s == refused) cg_ef_copy_refusal_(ef, report);
        return s;
    }
    at += CG_STATE_ROOM_; /* behind x, which need covers */
    s = cg_ef_exchange_begin_(ef, desc, transport, grad, at, &r);
    at += (size_t)(r.buffers.vector_bytes + r.buffers.packet_bytes);
    s = cg_exchange_in_state_(x, &r.desc, transport, r.p, r.fill.make ? &r.fill : NULL, n, at,
        (size_t)(r.buffers.exchange_bytes - CG_STATE_ROOM_), x->status == CG_OK, s, report);
    return cg_ef_exchange_moved_(ef, &r, x, s, report, grad);
}
CG_API_ cg_status cg_ef_exchange(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, float *grad,
    void *mem, size_t bytes, cg_report *report) {
    cg_report own;
    cg_fenv_ env;
    cg_status s;
    if (!report) report = &own;
    cg_report_set_(report, CG_E_ARG, "ef, desc or transport is NULL", 0, CG_NO_INDEX);
    if (ef) cg_ef_forget_last_(ef);
    if (ef) cg_ef_keep_report_(ef, report);
    if (!ef || !desc || !transport) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_ef_exchange_(ef, desc, transport, grad, mem, bytes, report);
    cg_ef_keep_report_(ef, report);
    cg_fenv_leave_(env);
    return s;
}

/* Layers: as one by one, but that all exchanges are opened together. */

/* layer->desc becomes that of this step, for as long as its memory is computed. Meanwhile layer->report, which every
   exchange writes anew, holds what the caller has set and must find again: route, flags, side and common. */
static void cg_ef_layer_step_desc_(const cg_ef *ef, cg_layer *layer) {
    const cg_op op = cg_ef_op_(ef, &layer->desc.tag);
    layer->report.route = layer->desc.route;
    layer->report.rounds = layer->desc.flags;
    layer->report.used = layer->desc.side;
    layer->report.bytes_out = layer->desc.common;
    layer->desc = cg_ef_step_desc_(ef, &layer->desc, &op);
    layer->n = ef->desc.n;
}
static void cg_ef_layer_caller_desc_(cg_layer *layer) {
    layer->desc.route = layer->report.route;
    layer->desc.flags = layer->report.rounds;
    layer->desc.side = (const cg_extra *)layer->report.used;
    layer->desc.common = layer->report.bytes_out;
    memset(&layer->report, 0, sizeof layer->report);
}
/* Bytes of a layer beside its exchange. */
static uint64_t cg_ef_layer_buffer_bytes_(const cg_ef *ef, const cg_layer *layer, const cg_transport *t) {
    cg_ef_buffer_bytes_ buffers;
    cg_ef_buffer_bytes_of_(ef, &layer->desc, t, &buffers);
    return cg_add_sat_(buffers.vector_bytes, buffers.packet_bytes);
}
/* Bytes of all layers beside their exchanges: an array of contexts, then each layer's buffers. */
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
    for (size_t i = 0; i < count; i++) cg_ef_layer_caller_desc_(&layers[i]);
    cg_fenv_leave_(env);
    return bytes;
}
/* mem has what cg_ef_layers_memory asks for. If a layer is refused here, no gradient enters a state: the exchange of
   layers only tells the others, and all layers have that status. */
static cg_status cg_ef_exchange_layers_(cg_ef *const *efs, cg_layer *layers, size_t count, size_t small,
    const cg_transport *t, void *mem, size_t bytes, cg_report *report) {
    const size_t align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    cg_ef_exchange_ctx_ *ctxs = (cg_ef_exchange_ctx_ *)(void *)((uint8_t *)mem + align_pad);
    uint8_t *buffer = (uint8_t *)mem + align_pad + ((count * sizeof(cg_ef_exchange_ctx_) + 63) & ~(size_t)63);
    cg_status failed = CG_OK, s;
    size_t refused_layer = count, bytes_left;
    int own;
    for (size_t i = 0; i < count; i++) { /* all of them, before any state changes */
        s = cg_ef_exchange_prepare_(efs[i], &layers[i].desc, t, layers[i].x, &ctxs[i], NULL);
        for (size_t j = 0; j < i && s == CG_OK; j++)
            if (efs[j] == efs[i]) s = cg_ef_fail_(efs[i], CG_E_ARG, "a cg_ef stands twice in the list", 0, CG_NO_INDEX);
        if (s != CG_OK && failed == CG_OK) {
            failed = s;
            refused_layer = i;
        }
    }
    for (size_t i = 0; i < count; i++) {
        cg_ef_exchange_ctx_ *ctx = &ctxs[i];
        ctx->grad = layers[i].x;
        layers[i].desc = ctx->desc;
        /* small layers travel as f32, even those whose operator is refused here */
        if (failed != CG_OK || (!ctx->buffers.exchange_bytes && layers[i].n >= small)) {
            layers[i].x = i == refused_layer ? NULL : layers[i].x;
            continue;
        }
        s = cg_ef_exchange_begin_(efs[i], &ctx->caller_desc, t, ctx->grad, buffer, ctx);
        if (ctx->fill.make)
            cg_ef_record_energy_(efs[i], cg_ef_pass_(cg_ef_compensate_in_place_, &ctx->step, ctx->p, efs[i]->desc.n));
        layers[i].desc = ctx->desc;
        layers[i].x = s == CG_OK ? ctx->p : NULL;
        buffer += (size_t)(ctx->buffers.vector_bytes + ctx->buffers.packet_bytes);
    }
    bytes_left = bytes - (size_t)(buffer - (uint8_t *)mem);
    s = cg_exchange_layers(layers, count, small, t, buffer, bytes_left, report);
    for (size_t i = 0; i < count; i++) {
        if (efs[i]->carry && layers[i].status == CG_OK)
            cg_carry_first_(layers[i].report.route, t, layers[i].n, &efs[i]->carry_first);
        layers[i].x = ctxs[i].grad;
        layers[i].desc = ctxs[i].caller_desc;
        if (failed == CG_OK && efs[i]->stats.kept)
            layers[i].status = cg_ef_exchange_finish_(
                efs[i], &ctxs[i], layers[i].status, &layers[i].report, NULL, ctxs[i].grad);
        if (failed == CG_OK) cg_ef_keep_report_(efs[i], &layers[i].report);
        if (layers[i].status == CG_OK || s != CG_OK) continue;
        s = layers[i].status;
        cg_report_copy_outcome_(report, &layers[i].report);
    }
    if (failed == CG_OK) return s;
    /* what all ranks have heard of is the missing x of the refused layer, unless something else was told first */
    own = s == CG_E_ARG && report->rank == t->rank;
    if (own) s = failed;
    if (own) cg_ef_copy_refusal_(efs[refused_layer], report);
    for (size_t i = 0; i < count; i++) {
        layers[i].status = s;
        if (own) cg_report_copy_outcome_(&layers[i].report, report);
        if (efs[i]->report.status != CG_OK) cg_ef_copy_refusal_(efs[i], &layers[i].report);
        else {
            layers[i].report.need = 0;
            layers[i].report.at = CG_NO_INDEX;
            cg_ef_keep_report_(efs[i], &layers[i].report);
        }
    }
    return s;
}
static void cg_ef_layers_memory_why_(cg_report *report, size_t need) {
    report->why = "mem is too small: cg_ef_layers_memory gives its bytes";
    report->need = need;
}
CG_API_ cg_status cg_ef_exchange_layers(cg_ef *const *efs, cg_layer *layers, size_t count, size_t small,
    const cg_transport *transport, void *mem, size_t bytes, cg_report *report) {
    const size_t need = cg_ef_layers_memory(efs, layers, count, small, transport);
    cg_report own;
    cg_fenv_ env;
    cg_status s;
    if (!report) report = &own;
    cg_report_set_(report, CG_E_ARG, "efs, layers or transport is NULL", 0, CG_NO_INDEX);
    if ((count && (!efs || !layers)) || !transport) return CG_E_ARG;
    for (size_t i = 0; i < count; i++) cg_ef_forget_last_(efs[i]);
    if (!need || !mem || bytes < need) {
        /* with no memory the exchange of layers refuses, and tells the others */
        s = cg_exchange_layers(layers, count, small, transport, NULL, 0, report);
        if (need && s == CG_E_MEMORY) cg_ef_layers_memory_why_(report, need);
        for (size_t i = 0; i < count; i++) {
            if (need && s == CG_E_MEMORY) cg_ef_layers_memory_why_(&layers[i].report, need);
            cg_ef_keep_report_(efs[i], &layers[i].report);
        }
        return s;
    }
    env = cg_fenv_enter_();
    s = cg_ef_exchange_layers_(efs, layers, count, small, transport, mem, bytes, report);
    cg_fenv_leave_(env);
    return s;
}

/* src/ef/agree.h */
/* agree: ranks that have received different vectors come to the same one again

   Offers   the public cg_ef_agree and cg_ef_agree_memory
   Needs    mark, exchange; cg_exchange_or_fail_ of exchange
   Touches  vector[2], the mark, the report, and the carry where it is part of what was agreed on
   Of what a rank keeps only H and M must be equal everywhere. H is the mean of all h, which every rank has its own of
   and keeps; M is made of nothing else, so that the mean of what ranks have in its place is taken. U and bases are
   copied from the rank that has received most. */

static void cg_ef_agreed_(cg_ef *ef) {
    cg_ef_step_ st;
    double norm;
    memset(&st, 0, sizeof st);
    st.kernels = cg_kernels_now_();
    norm = cg_sqrt_(cg_ef_pass_(cg_ef_pass_energy_, &st, ef->vector[2], ef->desc.n));
    if (norm > ef->reach) ef->reach = norm; /* another rank may have had larger values */
    /* H has what carries held back */
    if (ef->carry && cg_ef_has_trait_(&ef->desc, CG_EF_HAS_SHIFT_)) memset(ef->carry, 0, 4 * ef->desc.carry);
    cg_ef_mark_restart_(ef);
}
/* Of kinds whose ranks copy what was received, the rank that has seen most steps gives it to all. Parts of mem. */
typedef struct cg_ef_copy_bytes_ {
    uint64_t vector_bytes, table_bytes, exchange_bytes;
} cg_ef_copy_bytes_;
static cg_exchange_desc cg_ef_copy_desc_(const cg_exchange_desc *desc, uint64_t round) {
    cg_exchange_desc d = CG_ZERO;
    d.tag = desc->tag;
    d.fold = CG_FOLD_SUM;
    d.common = desc->common ^ (CG_EF_MAGIC_ + round);
    d.flags = CG_CONFIRM;
    return d;
}
/* Returns their sum with room to align it; 0: refused. */
static uint64_t cg_ef_copy_bytes_of_(
    const cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *t, cg_ef_copy_bytes_ *b) {
    const cg_exchange_desc first = cg_ef_copy_desc_(desc, 1), second = cg_ef_copy_desc_(desc, 2);
    const size_t ranks = t->size > 0 ? (size_t)t->size : 0, one = cg_exchange_memory(&first, t, ranks),
                 other = cg_exchange_memory(&second, t, ef->desc.n);
    b->vector_bytes = cg_add_sat_(cg_mul_sat_(4, ef->desc.n), 63) & ~(uint64_t)63;
    b->table_bytes = cg_add_sat_(cg_mul_sat_(4, ranks), 63) & ~(uint64_t)63;
    b->exchange_bytes = one > other ? one : other;
    if (!one || !other) return 0;
    return cg_add_sat_(cg_add_sat_(cg_add_sat_(b->vector_bytes, b->table_bytes), b->exchange_bytes), 64);
}
/* A rank without a mark has received nothing. Sums of zeros and the one vector are that vector, on all ranks. */
static cg_status cg_ef_copy_(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *t, void *mem, size_t bytes,
    cg_status own, cg_report *report) {
    const size_t n = ef->desc.n, align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    cg_exchange_desc d = cg_ef_copy_desc_(desc, 1);
    cg_ef_copy_bytes_ b;
    const uint64_t need = cg_ef_copy_bytes_of_(ef, desc, t, &b);
    uint8_t *at = (uint8_t *)mem + align_pad;
    float *v = (float *)(void *)at, *seen = (float *)(void *)(at + (size_t)b.vector_bytes);
    size_t ranks = (size_t)t->size, leader = 0;
    cg_status s;
    if (!need || !mem || bytes < need)
        return cg_exchange_or_fail_(&d, t, NULL, ranks, NULL, 0, own != CG_OK ? own : CG_E_MEMORY, report);
    at += (size_t)(b.vector_bytes + b.table_bytes);
    memset(seen, 0, 4 * ranks);
    if (ef->mark) seen[t->rank] = ef->steps < 8388608 ? (float)(ef->steps + 1) : 8388608.0f;
    s = cg_exchange_or_fail_(&d, t, seen, ranks, at, (size_t)b.exchange_bytes, own, report);
    if (s != CG_OK) return s;
    for (size_t r = 1; r < ranks; r++)
        if (seen[r] > seen[leader]) leader = r;
    if (seen[leader] == 0.0f) return CG_OK;
    if (leader == (size_t)t->rank) memcpy(v, ef->vector[2], 4 * n);
    else memset(v, 0, 4 * n);
    d = cg_ef_copy_desc_(desc, 2);
    s = cg_exchange_or_fail_(&d, t, v, n, at, (size_t)b.exchange_bytes, CG_OK, report);
    if (s != CG_OK) return s;
    memcpy(ef->vector[2], v, 4 * n);
    cg_ef_agreed_(ef);
    return CG_OK;
}
static int cg_ef_has_to_agree_(const cg_ef *ef) { return ef->vector[2] != NULL; }
/* The exchange of the vector whose mean is received: uncompressed, with the caller's tag and weights. Not even a dense
   step has the same common, so that no rank takes one for the other. */
static cg_exchange_desc cg_ef_agree_desc_(const cg_ef *ef, const cg_exchange_desc *desc) {
    cg_exchange_desc d = CG_ZERO;
    d.tag = desc->tag;
    d.weight = desc->weight;
    /* an H that is a sum of h stays one; a mean of M is taken in any case */
    if (cg_ef_has_trait_(&ef->desc, CG_EF_HAS_SHIFT_) &&
        (cg_fold_row_of_(desc->fold)->traits & (CG_FOLD_IS_LINEAR_ | CG_FOLD_DIVIDES_)) == CG_FOLD_IS_LINEAR_)
        d.fold = CG_FOLD_SUM;
    d.common = desc->common ^ CG_EF_MAGIC_;
    d.into = ef->vector[2];
    d.flags = CG_CONFIRM | CG_FEEDS_BACK; /* after an error the state is as it was */
    return d;
}
CG_API_ size_t cg_ef_agree_memory(const cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_exchange_desc d;
    if (!ef || !desc || !transport || !cg_ef_has_to_agree_(ef)) return 0;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_COPIES_RECEIVED_)) {
        cg_ef_copy_bytes_ b;
        return cg_size_or_zero_(cg_ef_copy_bytes_of_(ef, desc, transport, &b));
    }
    d = cg_ef_agree_desc_(ef, desc);
    return cg_exchange_memory(&d, transport, ef->desc.n);
}
CG_API_ cg_status cg_ef_agree(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, void *mem,
    size_t bytes, cg_report *report) {
    cg_exchange_desc d;
    cg_report own;
    cg_fenv_ env;
    cg_status s;
    const char *unready;
    if (!report) report = &own;
    cg_report_set_(report, CG_E_ARG, "ef, desc or transport is NULL", 0, CG_NO_INDEX);
    if (!ef || !desc || !transport) return CG_E_ARG;
    unready = cg_ef_is_unready_(ef) ? cg_ef_unready_why_(ef) : NULL;
    cg_report_set_(report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    if (ef->desc.n && !cg_ef_has_to_agree_(ef)) return cg_ef_done_(ef);
    env = cg_fenv_enter_();
    d = cg_ef_agree_desc_(ef, desc);
    s = ef->desc.n && cg_ef_has_trait_(&ef->desc, CG_EF_COPIES_RECEIVED_)
        ? cg_ef_copy_(ef, desc, transport, mem, bytes, unready ? CG_E_STATE : CG_OK, report)
        : cg_exchange_or_fail_(&d, transport, ef->vector[cg_ef_has_trait_(&ef->desc, CG_EF_HAS_SHIFT_) ? 0 : 2],
              ef->desc.n, mem, bytes, unready ? CG_E_STATE : CG_OK, report);
    if (s == CG_OK && !cg_ef_has_trait_(&ef->desc, CG_EF_COPIES_RECEIVED_)) cg_ef_agreed_(ef);
    if (unready && s == CG_E_STATE) report->why = unready;
    if (s == CG_E_MEMORY) report->why = "mem is too small: cg_ef_agree_memory gives its bytes";
    cg_ef_keep_report_(ef, report);
    report->used = NULL;
    report->used_len = 0;
    cg_fenv_leave_(env);
    return s;
}

/* src/ef/withdraw.h */
/* withdraw: takes the gradient of a step that failed out of the state again

   Offers   cg_ef_solve_; the public cg_ef_withdraw and cg_ef_withdraw_with
   Needs    step, rollback, report
   Touches  residual and velocity, the counter of steps, the stats, the report
   After a rollback e and u are sums of the gradient and of what was there before, with the coefficients of the step.
   These are solved for what was there before. */

/* vector[which] had become v_from_g g + v_from_v v, where g is st->g: makes it v again. First g is taken out, so that
   no product is too large for a float that the sum was not. v_from_v 0: nothing of v had stayed, and nothing would in
   the next step, so that it becomes 0. */
static void cg_ef_solve_(cg_ef *ef, cg_ef_step_ *st, int which, float v_from_g, float v_from_v) {
    const float inverse = v_from_v > 0.0f ? 1.0f / v_from_v : 0.0f;
    st->e_from_g = -v_from_g;
    st->e_from_e = 1.0f;
    cg_ef_pass_(cg_ef_residual_accumulate_, st, which ? ef->vector[which] : cg_ef_pass_vector_(ef), ef->desc.n);
    if (inverse != 1.0f) cg_ef_scale_vector_(ef, which, cg_is_finite_(inverse) ? inverse : 0.0f);
}
/* Pass: e = e - u, saturated; user is a cg_ef_step_. */
static double cg_ef_subtract_velocity_(const void *user, size_t first, size_t many, float *e) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    CG_KERNEL_(st->kernels, axpby(cg_at_(st->ef->vector[1], first), many, -1.0f, 1.0f, e, 0));
    cg_ef_saturate_(st, e, many);
    return 0.0;
}
/* The bound of all magnitudes: reach is that of the step, and u may have been larger before it. */
static void cg_ef_rebound_(cg_ef *ef, const cg_ef_step_ *st) {
    double bound = 0.0;
    for (int i = 0; i < 2; i++)
        if (ef->vector[i]) bound += cg_sqrt_(cg_ef_pass_(cg_ef_pass_energy_, st, ef->vector[i], ef->desc.n));
    if (bound > ef->reach) ef->reach = bound;
    ef->size = ef->reach;
}
/* Can the last step be withdrawn, and by this? *st becomes what later functions need of it. */
static cg_status cg_ef_withdraw_check_(cg_ef *ef, const cg_extra *side, const float *grad, cg_ef_step_ *st) {
    const int needs_aux = cg_ef_has_trait_(&ef->desc, CG_EF_TAKES_VARIANCE_);
    if (cg_ef_is_unready_(ef)) return cg_ef_fail_(ef, CG_E_STATE, cg_ef_unready_why_(ef), 0, CG_NO_INDEX);
    if (!ef->may_withdraw)
        return cg_ef_fail_(ef, CG_E_STATE,
            "nothing to withdraw: the last step was committed or withdrawn, or its gradient refused (stats.kept is 0), "
            "or the state was rescaled, loaded or reset since",
            0, CG_NO_INDEX);
    if (!grad) return cg_ef_fail_(ef, CG_E_ARG, "grad is NULL", 0, CG_NO_INDEX);
    if (needs_aux && !(side && side->aux))
        return cg_ef_fail_(ef, CG_E_ARG,
            "VARIANCE needs the variances of that step in side->aux: call cg_ef_withdraw_with", 0, CG_NO_INDEX);
    memset(st, 0, sizeof *st);
    st->kernels = cg_kernels_now_();
    st->ef = ef;
    st->g = grad;
    st->variance = needs_aux ? side->aux : NULL;
    if (cg_vector_pass_(cg_ef_pass_count_huge_, st, (float *)(uintptr_t)grad, ef->desc.n, CG_BLOCK_) >= 1e100)
        return cg_ef_fail_(ef, CG_E_NONFINITE, "grad is not what the step was given: it has NaN or Inf", 0,
            cg_first_nonfinite_(grad, ef->desc.n));
    if (needs_aux &&
        cg_vector_pass_(cg_ef_pass_count_huge_, st, (float *)(uintptr_t)side->aux, ef->desc.n, CG_BLOCK_) > 0.0)
        return cg_ef_fail_(ef, CG_E_NONFINITE,
            "side->aux is not what the step was given: it has NaN, Inf or a value above 1e37", 0,
            cg_first_nonfinite_(side->aux, ef->desc.n));
    return CG_OK;
}
static cg_status cg_ef_withdraw_(cg_ef *ef, const cg_extra *side, const float *grad) {
    const cg_ef_desc *d = &ef->desc;
    cg_ef_step_ st;
    const cg_status s = cg_ef_withdraw_check_(ef, side, grad, &st);
    if (s != CG_OK) return s;
    st.grad_scale = ef->given_by;
    if (d->clip_by == CG_CLIP_VALUE) st.clip_limit = (float)cg_ef_clip_at_(d);
    st.may_overflow = 1;
    cg_ef_set_coefficients_(&st, ef->scale);
    /* a residual that the end of the step has forgotten has nothing of the gradient, nor has h ever */
    if (!(d->reset && ef->steps % d->reset == 0) && !cg_ef_has_trait_(d, CG_EF_HAS_SHIFT_ | CG_EF_KEEPS_NOTHING_)) {
        if (cg_ef_has_trait_(d, CG_EF_ADDS_VELOCITY_)) cg_ef_pass_(cg_ef_subtract_velocity_, &st, ef->vector[0], d->n);
        cg_ef_solve_(ef, &st, 0, st.e_from_g, st.e_from_e);
    }
    if (ef->vector[1]) cg_ef_row_of_(d)->withdraw_velocity(ef, &st);
    ef->steps--;
    cg_ef_rebound_(ef, &st);
    ef->stats.kept = 0;
    ef->may_withdraw = 0;
    return cg_ef_done_(ef);
}
CG_API_ cg_status cg_ef_withdraw_with(cg_ef *ef, const cg_extra *side, const float *grad) {
    cg_fenv_ env;
    cg_status s;
    if (!ef) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_ef_withdraw_(ef, side, grad);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_ef_withdraw(cg_ef *ef, const float *grad) { return cg_ef_withdraw_with(ef, NULL, grad); }

/* src/ef/rows.h */
/* rows: the kinds of error feedback: what each computes, and the table of them

   Offers   cg_ef_row_at_; the public names of kinds
   Needs    kinds (what a row holds), step, withdraw (cg_ef_solve_)
   Touches  chunks of the vectors of a state, in the functions that rows name
   A row stands at the place of its id. A new kind is a row here with its functions, beside its id. */

/* What is taken out of the residual for a contribution. */
static float cg_ef_sent_all_(float decay) {
    (void)decay;
    return 1.0f;
}
static float cg_ef_sent_none_(float decay) {
    (void)decay;
    return 0.0f;
}
static float cg_ef_sent_decay_(float decay) { return decay; }
static float cg_ef_sent_rest_(float decay) { return 1.0f - decay; }

static void cg_ef_coefficients_classic_(cg_ef_step_ *st, float decay) { st->p_from_e = st->e_from_e = decay; }
static void cg_ef_coefficients_ecq_(cg_ef_step_ *st, float decay) {
    const float alpha = st->ef->desc.alpha;
    st->p_from_e = alpha != 0.0f ? alpha : 0.2f;
    st->e_from_e = decay;
}
static void cg_ef_coefficients_momentum_(cg_ef_step_ *st, float decay) {
    (void)decay;
    st->e_from_g = st->ef->desc.nesterov ? st->grad_scale : 0.0f;
}
static void cg_ef_coefficients_onebit_adam_(cg_ef_step_ *st, float decay) {
    (void)decay;
    st->e_from_g = cg_times_(st->grad_scale, 1.0f - st->ef->desc.momentum);
}
static void cg_ef_coefficients_signum_(cg_ef_step_ *st, float decay) {
    cg_ef_coefficients_onebit_adam_(st, decay);
    st->e_from_e = st->ef->desc.momentum;
}
static void cg_ef_coefficients_none_(cg_ef_step_ *st, float decay) {
    (void)decay;
    st->p_from_e = 0.0f;
}
static void cg_ef_coefficients_filtered_(cg_ef_step_ *st, float decay) {
    (void)decay;
    st->e_from_g = st->grad_scale;
    st->e_from_e = st->ef->desc.momentum;
}
/* What was received takes the place of e. */
static void cg_ef_coefficients_models_(cg_ef_step_ *st, float decay) {
    (void)decay;
    st->p_from_e = cg_ef_begins_(st->ef) ? 0.0f : -1.0f;
}

/* The result is H + mean, and H becomes H + received_by mean. */
static void cg_ef_receive_difference_(const cg_ef *ef, size_t many, float *received, float *mean) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    float buf[CG_CHUNK_];
    if (ef->received_by == 1.0f) {
        CG_KERNEL_(kernels, axpby(received, many, 1.0f, 1.0f, mean, 0));
        memcpy(received, mean, 4 * many);
        return;
    }
    memcpy(buf, mean, 4 * many);
    CG_KERNEL_(kernels, axpby(received, many, 1.0f, 1.0f, mean, 0));
    CG_KERNEL_(kernels, axpby(buf, many, ef->received_by, 1.0f, received, 0));
}
static void cg_ef_receive_mean_(const cg_ef *ef, size_t many, float *received, float *mean) {
    (void)ef;
    memcpy(received, mean, 4 * many);
}
/* The mean is U', and the result U' - momentum U: what makes U' of U in the optimizer. */
static void cg_ef_receive_filtered_(const cg_ef *ef, size_t many, float *received, float *mean) {
    float buf[CG_CHUNK_];
    memcpy(buf, mean, 4 * many);
    CG_KERNEL_(cg_kernels_now_(), axpby(received, many, -ef->desc.momentum, 1.0f, mean, 0));
    memcpy(received, buf, 4 * many);
}
/* base = base + lambda mean, which is the result. */
static void cg_ef_receive_models_(const cg_ef *ef, size_t many, float *received, float *mean) {
    if (!cg_ef_begins_(ef)) CG_KERNEL_(cg_kernels_now_(), axpby(received, many, 1.0f, ef->received_by, mean, 0));
    memcpy(received, mean, 4 * many);
}

static double cg_ef_compensate_classic_(const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    (void)first;
    return cg_ef_axpby_fading_(st, g, many, st->grad_scale, cg_ef_decay_(&st->ef->desc), e);
}
static double cg_ef_compensate_momentum_(const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    const cg_ef_desc *d = &st->ef->desc;
    const float m = d->momentum, a = st->grad_scale;
    float *u = cg_at_mut_(st->ef->vector[1], first);
    double energy;
    cg_axpby_fading_(st->kernels, g, many, d->nesterov ? cg_times_(m, a) : a, m, u);
    if (d->nesterov) cg_axpby_fading_(st->kernels, u, many, 1.0f, 1.0f, e);
    energy = d->nesterov ? cg_ef_axpby_fading_(st, g, many, a, 1.0f, e)
                         : cg_ef_axpby_fading_(st, u, many, 1.0f, 1.0f, e);
    cg_ef_saturate_(st, u, many);
    return energy;
}
static double cg_ef_compensate_signum_(const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    const float m = st->ef->desc.momentum;
    (void)first;
    return cg_ef_axpby_fading_(st, g, many, cg_times_(st->grad_scale, 1.0f - m), m, e);
}
static double cg_ef_compensate_filtered_(const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    (void)first;
    return cg_ef_axpby_fading_(st, g, many, st->grad_scale, st->ef->desc.momentum, e);
}
static double cg_ef_compensate_variance_(const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    const float a = st->grad_scale;
    float *v = cg_at_mut_(st->ef->vector[1], first);
    if (st->variance) cg_axpby_fading_(st->kernels, cg_at_(st->variance, first), many, cg_times_(a, a), 1.0f, v);
    cg_ef_saturate_(st, v, many);
    return cg_ef_axpby_fading_(st, g, many, a, 1.0f, e);
}
static double cg_ef_compensate_onebit_adam_(
    const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    const cg_ef *ef = st->ef;
    const float m = ef->desc.momentum;
    double energy;
    cg_axpby_fading_(st->kernels, g, many, cg_times_(st->grad_scale, 1.0f - m), 1.0f, e);
    energy = cg_axpy_faded_energy_y_(st->kernels, cg_at_(ef->vector[2], first), many, cg_times_(ef->scale, m), e);
    cg_ef_saturate_(st, e, many);
    return st->may_overflow ? cg_energy_(st->kernels, e, many) : energy;
}

static void cg_ef_withdraw_momentum_(cg_ef *ef, cg_ef_step_ *st) {
    const float m = ef->desc.momentum, a = st->grad_scale;
    cg_ef_solve_(ef, st, 1, ef->desc.nesterov ? cg_times_(m, a) : a, m);
}
/* A running mean that began with this gradient begins with the next one. */
static void cg_ef_withdraw_running_mean_(cg_ef *ef, cg_ef_step_ *st) {
    const float m = ef->desc.momentum;
    cg_ef_solve_(ef, st, 1, cg_times_(st->grad_scale, 1.0f - m), ef->steps == 1 ? 0.0f : m);
}
static void cg_ef_withdraw_variance_(cg_ef *ef, cg_ef_step_ *st) {
    const float a = st->grad_scale, decay = cg_ef_decay_(&ef->desc);
    st->g = st->variance;
    st->clip_limit = 0.0f;
    cg_ef_solve_(ef, st, 1, cg_times_(decay, cg_times_(a, a)), decay);
    for (size_t i = 0; i < ef->desc.n; i++) /* by rounding */
        if (ef->vector[1][i] < 0.0f) ef->vector[1][i] = 0.0f;
}

/* kind, name, parameters, traits, decay, velocity_power, sent, coefficients, compensate, withdraw_velocity,
   receive */
static const cg_ef_row_ cg_ef_rows_[] = {
    { CG_EF_CLASSIC, "classic", "decay:8bit:reset", CG_EF_IN_PLACE_ | CG_EF_ALLOWS_8BIT_, 1.0f, 0, cg_ef_sent_all_,
        cg_ef_coefficients_classic_, cg_ef_compensate_classic_, NULL, NULL },
    { CG_EF_LOCO, "loco", "decay:8bit:reset", CG_EF_ALLOWS_8BIT_, 0.8f, 0, cg_ef_sent_rest_, NULL, NULL, NULL, NULL },
    { CG_EF_SCALECOM, "scalecom", "decay:8bit:reset", CG_EF_ALLOWS_8BIT_, 0.1f, 0, cg_ef_sent_decay_, NULL, NULL, NULL,
        NULL },
    { CG_EF_ECQ, "ecq", "alpha:decay:8bit:reset", CG_EF_ALLOWS_8BIT_, 0.9f, 0, cg_ef_sent_all_, cg_ef_coefficients_ecq_,
        NULL, NULL, NULL },
    { CG_EF_MOMENTUM, "momentum", "momentum!:nesterov:reset",
        CG_EF_IN_PLACE_ | CG_EF_HAS_VELOCITY_ | CG_EF_TAKES_MOMENTUM_ | CG_EF_TAKES_NESTEROV_ | CG_EF_ADDS_VELOCITY_ |
            CG_EF_MASKS_VELOCITY_,
        1.0f, 1, cg_ef_sent_all_, cg_ef_coefficients_momentum_, cg_ef_compensate_momentum_, cg_ef_withdraw_momentum_,
        NULL },
    { CG_EF_SIGNUM, "signum", "momentum!",
        CG_EF_IN_PLACE_ | CG_EF_TAKES_MOMENTUM_ | CG_EF_HAS_NO_RESIDUAL_ | CG_EF_TAKES_OP_AS_IS_, 1.0f, 0,
        cg_ef_sent_none_, cg_ef_coefficients_signum_, cg_ef_compensate_signum_, NULL, NULL },
    { CG_EF_VARIANCE, "variance", "decay:reset",
        CG_EF_IN_PLACE_ | CG_EF_HAS_VELOCITY_ | CG_EF_MASKS_VELOCITY_ | CG_EF_TAKES_VARIANCE_, 0.999f, 2,
        cg_ef_sent_all_, NULL, cg_ef_compensate_variance_, cg_ef_withdraw_variance_, NULL },
    { CG_EF_EF21, "ef21", "momentum",
        CG_EF_HAS_SHIFT_ | CG_EF_HAS_NO_RESIDUAL_ | CG_EF_KEEPS_RECEIVED_ | CG_EF_TAKES_MOMENTUM_ |
            CG_EF_AVERAGES_GRADIENTS_,
        1.0f, 0, cg_ef_sent_all_, NULL, NULL, cg_ef_withdraw_running_mean_, cg_ef_receive_difference_ },
    { CG_EF_DIANA, "diana", "alpha",
        CG_EF_HAS_SHIFT_ | CG_EF_HAS_NO_RESIDUAL_ | CG_EF_KEEPS_RECEIVED_ | CG_EF_TAKES_OP_AS_IS_ |
            CG_EF_SHIFTS_BY_ALPHA_,
        1.0f, 0, cg_ef_sent_all_, NULL, NULL, NULL, cg_ef_receive_difference_ },
    { CG_EF_LAQ, "laq", "step!:weight:patience",
        CG_EF_HAS_SHIFT_ | CG_EF_HAS_NO_RESIDUAL_ | CG_EF_KEEPS_RECEIVED_ | CG_EF_MAY_BE_SILENT_, 1.0f, 0,
        cg_ef_sent_all_, NULL, NULL, NULL, cg_ef_receive_difference_ },
    { CG_EF_ONEBIT_ADAM, "onebit_adam", "momentum!:reset",
        CG_EF_IN_PLACE_ | CG_EF_KEEPS_RECEIVED_ | CG_EF_TAKES_MOMENTUM_ | CG_EF_ADDS_RECEIVED_, 1.0f, 0,
        cg_ef_sent_all_, cg_ef_coefficients_onebit_adam_, cg_ef_compensate_onebit_adam_, NULL, cg_ef_receive_mean_ },
    { CG_EF_NONE, "none", "biased",
        CG_EF_KEEPS_NOTHING_ | CG_EF_HAS_NO_RESIDUAL_ | CG_EF_TAKES_OP_AS_IS_ | CG_EF_UNBIASED_ONLY_, 1.0f, 0,
        cg_ef_sent_none_, cg_ef_coefficients_none_, NULL, NULL, NULL },
    { CG_EF_FILTERED, "filtered", "momentum!",
        CG_EF_IN_PLACE_ | CG_EF_HAS_NO_RESIDUAL_ | CG_EF_TAKES_OP_AS_IS_ | CG_EF_UNBIASED_ONLY_ |
            CG_EF_KEEPS_RECEIVED_ | CG_EF_COPIES_RECEIVED_ | CG_EF_TAKES_MOMENTUM_ | CG_EF_NEEDS_MOMENTUM_,
        1.0f, 0, cg_ef_sent_none_, cg_ef_coefficients_filtered_, cg_ef_compensate_filtered_, NULL,
        cg_ef_receive_filtered_ },
    { CG_EF_DIFFERENCE, "difference", "lambda",
        CG_EF_KEEPS_NOTHING_ | CG_EF_HAS_NO_RESIDUAL_ | CG_EF_TAKES_OP_AS_IS_ | CG_EF_UNBIASED_ONLY_ |
            CG_EF_KEEPS_RECEIVED_ | CG_EF_COPIES_RECEIVED_ | CG_EF_TAKES_MODELS_,
        1.0f, 0, cg_ef_sent_none_, cg_ef_coefficients_models_, NULL, NULL, cg_ef_receive_models_ },
};
static const cg_ef_row_ *cg_ef_row_at_(uint32_t kind) {
    return kind < sizeof cg_ef_rows_ / sizeof cg_ef_rows_[0] ? &cg_ef_rows_[kind] : NULL;
}
CG_API_ const char *cg_ef_kind_name(uint32_t kind) { return cg_ef_row_at_(kind) ? cg_ef_row_at_(kind)->name : NULL; }
CG_API_ cg_status cg_ef_kind_parse(uint32_t *kind, const char *text) {
    return cg_name_parse_(kind, text, cg_ef_kind_name);
}

/* src/ef/adjust.h */
/* adjust: what may be changed between two steps, and the update of 1-bit Adam

   Offers   the public cg_ef_rescale, cg_ef_set_rate, cg_ef_set_ratio and cg_ef_precondition
   Needs    plan, schedule, step
   Touches  the residual and the carry (cg_ef_rescale), the description in the state, the caller's out */

CG_API_ cg_status cg_ef_rescale(cg_ef *ef, float factor) {
    cg_fenv_ env;
    if (!ef || !cg_is_finite_(factor)) return CG_E_ARG;
    if (cg_ef_is_unready_(ef)) return CG_E_STATE;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_HAS_NO_RESIDUAL_)) return CG_E_UNSUPPORTED;
    env = cg_fenv_enter_();
    cg_ef_scale_vector_(ef, 0, factor);
    for (size_t i = 0; ef->carry && i < ef->desc.carry; i++) {
        const float v = cg_times_(ef->carry[i], factor);
        ef->carry[i] = cg_saturate_(factor == 1.0f ? v : cg_faded_(v));
    }
    ef->reach *= factor < 0.0f ? -(double)factor : (double)factor;
    ef->hint = ef->threshold = 0.0f; /* magnitudes of p will be others */
    ef->may_withdraw = 0;
    cg_fenv_leave_(env);
    return CG_OK;
}
CG_API_ cg_status cg_ef_set_rate(cg_ef *ef, float rate) {
    if (!ef || !cg_is_finite_(rate) || rate == 0.0f) return CG_E_ARG;
    if (cg_ef_is_unready_(ef)) return CG_E_STATE;
    ef->desc.rate = rate;
    return CG_OK;
}
CG_API_ cg_status cg_ef_set_ratio(cg_ef *ef, float ratio) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_status s = CG_OK;
    cg_ef_needs_ needs;
    cg_ef_desc d;
    if (!ef) s = CG_E_ARG;
    else if (cg_ef_is_unready_(ef)) s = CG_E_STATE;
    else {
        d = ef->desc;
        cg_op_set_ratio_(&d.op, ratio);
        if (!cg_op_ratio_stage_(&d.op)) s = CG_E_UNSUPPORTED;
        else s = cg_ef_check_(&d, &needs);
        if (s == CG_OK && needs.scratch_bytes > ef->scratch_bytes) s = CG_E_MEMORY;
        if (s == CG_OK) ef->desc.op = d.op;
    }
    if (ef)
        cg_ef_fail_(ef, s,
            s == CG_E_STATE             ? cg_ef_unready_why_(ef)
                : s == CG_E_UNSUPPORTED ? "the operator has no ratio"
                : s == CG_E_MEMORY ? "the mem of cg_ef_init is too small for this ratio: cg_ef_memory gives its bytes"
                : s == CG_E_ARG    ? "ratio must be above 0 and at most 1"
                                   : cg_status_str(s),
            s == CG_E_MEMORY ? cg_ef_memory(&d) : 0, CG_NO_INDEX);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ double cg_ef_precondition(const float *momentum, const float *variance, float epsilon, float *out, size_t n) {
    const cg_fenv_ env = cg_fenv_enter_();
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double v = (double)cg_load_(variance, i),
                     inv_root = v > 0.0 ? 1.0 / (cg_sqrt_(v) + (double)epsilon) : 0.0;
        const float u = cg_saturate_((float)((double)cg_load_(momentum, i) * inv_root));
        cg_store_(out, i, u);
        sum += cg_times64_((double)u, (double)u);
    }
    sum = cg_sqrt_(sum);
    cg_fenv_leave_(env);
    return sum;
}

/* src/ef/save.h */
/* save: the state as bytes, the same on every machine, and back

   Offers   the public cg_ef_save_bytes, cg_ef_save, cg_ef_load and cg_ef_load_mean
   Needs    residual8, mark; seals of core
   Touches  the caller's buffer; loading all of the state but its description
   Other headers may use: cg_ef_blob_check_
   A blob is little-endian, every part in whole words. Nothing is loaded before all blobs have been checked.

   byte 0  "cgef"  4 version  8 kind  12 parts present (bit 0 residual, 1 velocity, 2 received, 3 residual in 8 bits)
       16 n  24 steps  32 silent  40 moves  48 first of carry  56 floats of carry  64 floats of warm
       72 moved, ten doubles  152 error  160 error when sent  168 score  176 reach  184 size (doubles)
       192 scale  196 hint  200 threshold (floats)  204 zeros  208 mark  216 zeros  240 checksum of everything else, as
       of a packet. Version 2 has a mark, and is that of kinds which keep what they received; version 1 has zeros there.
   256 residual, velocity, received (floats; or n codes and the scales of 64, filled to a word), carry, warm */

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
/* Bytes of an 8-bit residual of n values in a blob: codes and scales, filled to a word. */
static uint64_t cg_residual8_saved_bytes_(size_t n) {
    return (cg_add_sat_(n, cg_mul_sat_(2, cg_add_sat_(n, CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_)) + 3) & ~(uint64_t)3;
}
/* The word at byte 12: which sections this state has. */
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

/* Writes n floats at p, nothing if v is NULL; returns where the next section begins. */
static uint8_t *cg_ef_write_floats_(uint8_t *p, const float *v, size_t n) {
    for (size_t i = 0; v && i < n; i++, p += 4) cg_put32_(p, cg_as_bits_(v[i]));
    return p;
}
static cg_status cg_ef_save_(const cg_ef *ef, uint8_t *buf, size_t cap, size_t *len) {
    const size_t n = ef->desc.n, bytes = cg_size_or_zero_(cg_ef_blob_bytes_(ef)),
                 padded_bytes = cg_size_or_zero_(cg_residual8_saved_bytes_(n)),
                 used_bytes = n + 2 * ((n + CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_); /* both of the 8-bit residual */
    uint8_t *p = buf + CG_EF_HEADER_BYTES_;
    if (cg_ef_is_unready_(ef)) return CG_E_STATE;
    if (cap < bytes) return CG_E_CAPACITY;
    memset(buf, 0, CG_EF_HEADER_BYTES_);
    cg_put32_(buf, CG_EF_MAGIC_);
    cg_put32_(buf + 4, cg_ef_has_trait_(&ef->desc, CG_EF_KEEPS_RECEIVED_) ? CG_EF_VERSION_MARKED_ : CG_EF_VERSION_);
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
    cg_put64_(buf + CG_EF_MARK_OFFSET_, ef->mark);
    p = cg_ef_write_floats_(p, ef->vector[0], n);
    if (ef->bytes) {
        memcpy(p, ef->bytes, used_bytes);
        memset(p + used_bytes, 0, padded_bytes - used_bytes);
        p += padded_bytes;
    }
    p = cg_ef_write_floats_(p, ef->vector[1], n);
    p = cg_ef_write_floats_(p, ef->vector[2], n);
    p = cg_ef_write_floats_(p, ef->carry, ef->desc.carry);
    cg_ef_write_floats_(p, ef->warm, ef->warm_count);
    cg_seal_put_(buf, bytes, CG_EF_SEAL_OFFSET_);
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
/* Whether `count` little-endian floats at p are finite. */
static int cg_floats_finite_(const uint8_t *p, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        if (!cg_is_finite_(cg_as_float_(cg_get32_(p + 4 * (size_t)i)))) return 0;
    return 1;
}
/* Finds everything that can be wrong with a blob for this state; p may be NULL. exact: it is loaded as it is, so its
   carry must be as long as this state's. Otherwise it is one of several to be averaged, which may come from ranks with
   carries of other lengths. */
static cg_status cg_ef_blob_check_(const cg_ef *ef, const uint8_t *p, size_t len, int exact) {
    const size_t n = ef->desc.n;
    uint64_t carry, first, warm, floats;
    int marked;
    if (!p) return CG_E_ARG;
    if (len < CG_EF_HEADER_BYTES_ || len % 4 || cg_get32_(p) != CG_EF_MAGIC_) return CG_E_CORRUPT;
    if (!cg_seal_is_intact_(p, len, CG_EF_SEAL_OFFSET_)) return CG_E_CORRUPT;
    marked = cg_get32_(p + 4) == CG_EF_VERSION_MARKED_;
    if (cg_get32_(p + 4) != CG_EF_VERSION_ && !marked) return CG_E_VERSION;
    first = cg_get64_(p + 48);
    carry = cg_get64_(p + 56);
    warm = cg_get64_(p + 64);
    if (cg_get32_(p + 8) != ef->desc.kind || cg_get32_(p + 12) != cg_ef_section_mask_(ef) || cg_get64_(p + 16) != n ||
        warm != ef->warm_count)
        return CG_E_MISMATCH;
    if (marked && !ef->vector[2]) return CG_E_VERSION;
    /* a carry may be longer than the rank's stripe, and reach beyond the vector */
    if ((exact && carry != (ef->carry ? ef->desc.carry : 0)) || first > n) return CG_E_MISMATCH;
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
    for (size_t i = 204; i < CG_EF_SEAL_OFFSET_; i++)
        if (p[i] && !(marked && i - CG_EF_MARK_OFFSET_ < 8)) return CG_E_CORRUPT;
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
    ef->mark = cg_get64_(p + CG_EF_MARK_OFFSET_);
    ef->may_withdraw = 0;
    cg_ef_delay_forget_(ef); /* it is made anew by the next steps */
}
/* Reads n floats from p, nothing if v is NULL; returns where the next section begins. */
static const uint8_t *cg_ef_read_floats_(const uint8_t *p, float *v, size_t n) {
    for (size_t i = 0; v && i < n; i++, p += 4) v[i] = cg_as_float_(cg_get32_(p));
    return p;
}
/* Loads a blob that has been checked. A carry of another length is skipped. */
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
    /* version 1 has no mark: what ranks have received must be the same, and they find out whether it is */
    if (cg_get32_(blob + 4) == CG_EF_VERSION_ && ef->steps) cg_ef_mark_restart_(ef);
}
/* Value i of a vector in a blob (which: 0 residual, 1 velocity, 2 received), divided by the blob's scale: vectors are
   stored times 1 / (1 + w) of the last operator, a variance times its square; shifts and received are not. */
static double cg_ef_blob_value_(const cg_ef *ef, const uint8_t *p, int which, size_t i) {
    const size_t n = ef->desc.n, padded_bytes = ef->bytes ? cg_size_or_zero_(cg_residual8_saved_bytes_(n)) : 0;
    double scale =
        which == 2 || cg_ef_has_trait_(&ef->desc, CG_EF_HAS_SHIFT_) ? 1.0 : (double)cg_as_float_(cg_get32_(p + 192));
    if (which == 1) scale = cg_ef_velocity_scale_(&ef->desc, scale);
    p += CG_EF_HEADER_BYTES_;
    if (which == 0 && ef->bytes) {
        const float bucket_scale = cg_residual8_scale_get_(p + n + 2 * (i / CG_EF_BUCKET_));
        float f;
        cg_bucket_dequantize_(cg_kernels_now_(), &cg_residual8_stage_, bucket_scale, p + i, 1, &f);
        return (double)f / scale;
    }
    p += padded_bytes;
    for (int v = 0; v < which; v++)
        if (ef->vector[v]) p += 4 * n;
    return (double)cg_as_float_(cg_get32_(p + 4 * i)) / scale;
}
/* Value i of a blob's carry, which is 0 outside of the rank's stripe. */
static double cg_ef_blob_carry_(const cg_ef *ef, const uint8_t *p, size_t i) {
    const uint64_t first = cg_get64_(p + 48), many = cg_get64_(p + 56), warm = cg_get64_(p + 64);
    const size_t len = cg_size_or_zero_(cg_ef_blob_bytes_(ef)) - 4 * (ef->carry ? ef->desc.carry : 0) +
        4 * (size_t)many;
    if (i < first || i - first >= many) return 0.0;
    return (double)cg_as_float_(cg_get32_(p + len - 4 * (size_t)(warm + many) + 4 * (i - (size_t)first)));
}
/* The mean over blobs of value i of a vector. A carry is what one rank withheld of a mean: `count` times it is added to
   the sum, so that every rank has it in its residual. */
static float cg_ef_blobs_mean_(const cg_ef *ef, const void *const *bufs, size_t count, int which, size_t i) {
    const int differs = cg_ef_has_trait_(&ef->desc, CG_EF_HAS_SHIFT_);
    double sum = 0.0;
    for (size_t blob = 0; blob < count; blob++) {
        /* the mean of all shifts h is H, but for carries */
        sum += cg_ef_blob_value_(ef, (const uint8_t *)bufs[blob], differs && which == 0 ? 2 : which, i);
        if (which == 0 && !differs)
            sum += cg_times64_((double)count, cg_ef_blob_carry_(ef, (const uint8_t *)bufs[blob], i));
    }
    return cg_saturate_((float)(sum / (double)count));
}
/* Loads the mean of blobs that have been checked: counters and warm from the first, vectors averaged at scale 1, and no
   carry is left. */
static void cg_ef_load_mean_(cg_ef *ef, const void *const *bufs, size_t count) {
    const size_t n = ef->desc.n;
    float e[CG_EF_BUCKET_];
    double reach = 0.0;
    cg_ef_load_one_(ef, (const uint8_t *)bufs[0]);
    for (int which = 0; which < 3; which++)
        for (size_t i = 0; ef->vector[which] && i < n; i++)
            ef->vector[which][i] = cg_ef_blobs_mean_(ef, bufs, count, which, i);
    for (size_t i = 0; ef->bytes && i < n; i++) {
        e[i % CG_EF_BUCKET_] = cg_ef_blobs_mean_(ef, bufs, count, 0, i);
        if (i % CG_EF_BUCKET_ == CG_EF_BUCKET_ - 1 || i == n - 1)
            cg_residual8_encode_(cg_kernels_now_(), ef, i / CG_EF_BUCKET_, e);
    }
    for (size_t blob = 0; blob < count; blob++) {
        const double one = cg_get_double_((const uint8_t *)bufs[blob] + 176);
        reach = one > reach ? one : reach;
    }
    if (ef->carry) memset(ef->carry, 0, 4 * ef->desc.carry);
    ef->scale = 1.0f;
    ef->reach = 2.0 * reach;
    if (!cg_ef_has_trait_(&ef->desc, CG_EF_COPIES_RECEIVED_))
        cg_ef_mark_restart_(ef); /* or all have that of the first */
}
static cg_status cg_ef_load_(cg_ef *ef, const void *const *bufs, const size_t *lens, size_t count, int exact) {
    cg_fenv_ env;
    cg_status s = CG_OK;
    if (!ef || !bufs || !lens || !count) return CG_E_ARG;
    if (cg_ef_is_unready_(ef)) return CG_E_STATE;
    env = cg_fenv_enter_();
    for (size_t blob = 0; blob < count && s == CG_OK; blob++)
        s = cg_ef_blob_check_(ef, (const uint8_t *)bufs[blob], lens[blob], exact);
    /* what was received must have been the same */
    for (size_t blob = 1; blob < count && s == CG_OK && cg_ef_has_trait_(&ef->desc, CG_EF_COPIES_RECEIVED_); blob++)
        if (cg_get64_((const uint8_t *)bufs[blob] + CG_EF_MARK_OFFSET_) !=
            cg_get64_((const uint8_t *)bufs[0] + CG_EF_MARK_OFFSET_))
            s = CG_E_MISMATCH;
    if (s == CG_OK && exact) cg_ef_load_one_(ef, (const uint8_t *)bufs[0]);
    else if (s == CG_OK) cg_ef_load_mean_(ef, bufs, count);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_ef_load(cg_ef *ef, const void *buf, size_t len) { return cg_ef_load_(ef, &buf, &len, 1, 1); }
CG_API_ cg_status cg_ef_load_mean(cg_ef *ef, const void *const *bufs, const size_t *lens, size_t count) {
    return cg_ef_load_(ef, bufs, lens, count, 0);
}

/* src/ef/diff.h */
/* diff: differences of models for callers with a wire of their own, and received vectors that are set

   Offers   the public cg_diff functions and cg_ef_set_received
   Needs    plan, mark, compress, commit, rollback, save
   Touches  vector[2] and the mark
   A cg_diff is a cg_ef of the kind DIFFERENCE whose base is known from the start. */

CG_API_ cg_status cg_ef_set_received(cg_ef *ef, const float *v, size_t n) {
    cg_fenv_ env;
    cg_status s = CG_OK;
    if (!ef) return CG_E_ARG;
    if (cg_ef_is_unready_(ef)) return cg_ef_fail_(ef, CG_E_STATE, cg_ef_unready_why_(ef), 0, CG_NO_INDEX);
    if (!cg_ef_has_trait_(&ef->desc, CG_EF_COPIES_RECEIVED_))
        return cg_ef_fail_(ef, CG_E_UNSUPPORTED, "only DIFFERENCE and FILTERED have a received vector that may be set",
            0, CG_NO_INDEX);
    if (!v) return cg_ef_fail_(ef, CG_E_ARG, "v is NULL", 0, CG_NO_INDEX);
    if (n != ef->desc.n)
        return cg_ef_fail_(ef, CG_E_MISMATCH, "n is not desc.n, the length of this state", 0, CG_NO_INDEX);
    env = cg_fenv_enter_();
    if (cg_first_nonfinite_(v, n) != CG_NO_INDEX)
        s = cg_ef_fail_(ef, CG_E_NONFINITE, "NaN or Inf in v", 0, cg_first_nonfinite_(v, n));
    else {
        memcpy(ef->vector[2], v, 4 * n);
        cg_ef_agreed_(ef);
        ef->may_withdraw = 0;
        s = cg_ef_done_(ef);
    }
    cg_fenv_leave_(env);
    return s;
}
static cg_ef_desc cg_diff_desc_(const cg_op *op, size_t n, float lambda, int workers) {
    cg_ef_desc d = CG_ZERO;
    if (op) d.op = *op;
    d.n = n;
    d.kind = CG_EF_DIFFERENCE;
    d.lambda = lambda;
    d.workers = workers;
    return d;
}
CG_API_ size_t cg_diff_memory(const cg_op *op, size_t n) {
    const cg_ef_desc d = cg_diff_desc_(op, n, 0.0f, 0);
    return op ? cg_ef_memory(&d) : 0;
}
CG_API_ cg_status cg_diff_init(
    cg_diff *diff, const cg_op *op, size_t n, float lambda, int workers, const float *base, void *mem, size_t bytes) {
    const cg_ef_desc d = cg_diff_desc_(op, n, lambda, workers);
    cg_status s;
    if (!diff || !op) return CG_E_ARG;
    s = cg_ef_init(&diff->ef, &d, mem, bytes);
    if (s == CG_OK) s = cg_ef_set_received(&diff->ef, base, n);
    if (s != CG_OK) diff->ef.desc.n = 0; /* without a base there is no difference */
    return s;
}
CG_API_ cg_status cg_diff_compress(
    cg_diff *diff, const cg_tag *tag, const float *model, void *packet, size_t cap, size_t *len) {
    if (!diff && len) *len = 0;
    return diff ? cg_ef_compress(&diff->ef, tag, model, packet, cap, len) : CG_E_ARG;
}
CG_API_ cg_status cg_diff_apply(cg_diff *diff, float *mean, size_t n) {
    cg_fenv_ env;
    cg_status s;
    if (!diff || !mean) return CG_E_ARG;
    if (!diff->ef.desc.n) return CG_E_STATE;
    if (n != diff->ef.desc.n) return CG_E_MISMATCH;
    env = cg_fenv_enter_();
    diff->ef.received_by = cg_ef_shift_rate_(&diff->ef.desc, NULL); /* of a rank that has compressed nothing, too */
    s = cg_ef_commit_now_(&diff->ef, NULL, NULL, 0, NULL, mean, 0);
    if (s == CG_OK) cg_ef_done_(&diff->ef);
    else cg_ef_commit_why_(&diff->ef, s, NULL, mean);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ void cg_diff_cancel(cg_diff *diff) {
    if (diff && diff->ef.pending) cg_ef_rollback_now_(&diff->ef);
}
CG_API_ const float *cg_diff_base(const cg_diff *diff) { return diff ? diff->ef.vector[2] : NULL; }
CG_API_ uint64_t cg_diff_mark(const cg_diff *diff) { return diff ? diff->ef.mark : 0; }
CG_API_ size_t cg_diff_save_bytes(const cg_diff *diff) { return diff ? cg_ef_save_bytes(&diff->ef) : 0; }
CG_API_ cg_status cg_diff_save(const cg_diff *diff, void *buf, size_t cap, size_t *len) {
    return diff ? cg_ef_save(&diff->ef, buf, cap, len) : CG_E_ARG;
}
CG_API_ cg_status cg_diff_load(cg_diff *diff, const void *buf, size_t len) {
    return diff ? cg_ef_load(&diff->ef, buf, len) : CG_E_ARG;
}

/* src/ef/mean_words.h */
/* mean_words: the one line of text that configures a mean, read and printed

   Offers   cg_mean_config_, cg_mean_config_read_, cg_mean_config_print_; the tables of settings, of parameters of kinds
            and of optimizers
   Needs    schedule, kinds, rows; words of core/base; operators as text
   Touches  the caller's configuration and sentence
   An operator, then words name=value in any order. A setting is a row of a table, and so is a parameter of a kind: rows
   of kinds name theirs. */

enum {
    CG_MEAN_OP_TEXT_ = 256, /* bytes of an operator's text, with a final 0 */
    CG_MEAN_TABLE_ = 32     /* ratios of warmup=table */
};
typedef struct cg_mean_config_ {
    cg_op op;
    int by_shape; /* op is a matrix operator, and rows and columns are those of each tensor */
    uint32_t route, fold;
    uint64_t seed;
    cg_ef_desc ef;               /* all but n, op, workers and carry, which are a tensor's */
    uint32_t overlap;            /* 1: yes */
    uint32_t packing;            /* CG_PACK_*_ */
    uint32_t optimizer;          /* row of cg_mean_optimizers_ */
    float momentum;              /* of the optimizer */
    float table[CG_MEAN_TABLE_]; /* of warmup=table */
    const char *given[16];       /* where each setting stands in the text; NULL: it does not */
    int has_op;                  /* the text has an operator */
} cg_mean_config_;

enum { CG_PACK_NONE_, CG_PACK_EACH_, CG_PACK_GLOBAL_ };
static const char *cg_mean_pack_name_(uint32_t i) {
    static const char *const names[] = { "none", "each", "global" };
    return i < sizeof names / sizeof *names ? names[i] : NULL;
}

/* ---- parameters of kinds ---- */

enum { CG_MEAN_REAL_, CG_MEAN_WHOLE_, CG_MEAN_FLAG_ };
typedef struct cg_mean_param_ {
    const char *name, *legal; /* legal: what values are, in a sentence */
    int type;
    size_t at; /* in cg_ef_desc: a float, uint64_t or int */
    float lo, hi;
    int above_lo, below_hi; /* lo or hi itself is out of range */
    const char *word;       /* a value that is a word, or NULL */
    float word_value;
} cg_mean_param_;
static const cg_mean_param_ cg_mean_params_[] = {
    { "momentum", "a number from 0 to below 1", CG_MEAN_REAL_, offsetof(cg_ef_desc, momentum), 0.0f, 1.0f, 0, 1, NULL,
        0.0f },
    { "decay", "a number above 0, at most 1", CG_MEAN_REAL_, offsetof(cg_ef_desc, decay), 0.0f, 1.0f, 1, 0, NULL,
        0.0f },
    { "alpha", "a number above 0, at most 1", CG_MEAN_REAL_, offsetof(cg_ef_desc, alpha), 0.0f, 1.0f, 1, 0, NULL,
        0.0f },
    { "step", "the learning rate, above 0", CG_MEAN_REAL_, offsetof(cg_ef_desc, laq_step), 0.0f, 1e30f, 1, 0, NULL,
        0.0f },
    { "weight", "a number above 0", CG_MEAN_REAL_, offsetof(cg_ef_desc, laq_weight), 0.0f, 1e30f, 1, 0, NULL, 0.0f },
    { "patience", "a whole number of steps, from 1 on", CG_MEAN_WHOLE_, offsetof(cg_ef_desc, laq_patience), 1.0f, 0.0f,
        0, 0, NULL, 0.0f },
    { "reset", "a whole number of steps, from 1 on", CG_MEAN_WHOLE_, offsetof(cg_ef_desc, reset), 1.0f, 0.0f, 0, 0,
        NULL, 0.0f },
    { "lambda", "a number above 0, or sqrt for the square root of the number of ranks", CG_MEAN_REAL_,
        offsetof(cg_ef_desc, lambda), 0.0f, 1e30f, 1, 0, "sqrt", CG_LAMBDA_SQRT },
    { "biased", "", CG_MEAN_FLAG_, offsetof(cg_ef_desc, biased), 0.0f, 0.0f, 0, 0, NULL, 0.0f },
    { "nesterov", "", CG_MEAN_FLAG_, offsetof(cg_ef_desc, nesterov), 0.0f, 0.0f, 0, 0, NULL, 0.0f },
    { "8bit", "", CG_MEAN_FLAG_, offsetof(cg_ef_desc, bytes), 0.0f, 0.0f, 0, 0, NULL, 0.0f },
};
enum { CG_MEAN_PARAM_COUNT_ = sizeof cg_mean_params_ / sizeof cg_mean_params_[0] };
/* The parameter that stands first in a list like "momentum!:nesterov"; *next: the rest of the list. NULL at its end. */
static const cg_mean_param_ *cg_mean_param_next_(const char *list, const char **next) {
    cg_word_ w;
    w.p = list;
    for (w.len = 0; list[w.len] && list[w.len] != ':' && list[w.len] != '!';) w.len++;
    list += w.len;
    while (*list == '!' || *list == ':') list++;
    *next = list;
    for (size_t i = 0; w.len && i < CG_MEAN_PARAM_COUNT_; i++)
        if (cg_word_is_(w, cg_mean_params_[i].name)) return &cg_mean_params_[i];
    return NULL;
}
static uint8_t *cg_mean_field_(const cg_ef_desc *d, const cg_mean_param_ *p) { return (uint8_t *)(uintptr_t)d + p->at; }

/* ---- optimizers ---- */

/* What a user's optimizer asks of the memory, where the text has no memory= of its own. */
typedef struct cg_mean_optimizer_ {
    const char *name;
    int has_momentum; /* its momentum follows, as in momentum:0.9 */
    int divides;      /* by the root of a variance, in which a delay counts (cg_ef_stats.delay) */
    void (*choose)(cg_mean_config_ *c);
    const char *says; /* what was chosen and what is left to the user, in cg_mean_describe */
} cg_mean_optimizer_;
static const cg_mean_optimizer_ *cg_mean_optimizer_at_(uint32_t i);
static const char *cg_mean_optimizer_name_(uint32_t i) {
    return cg_mean_optimizer_at_(i) ? cg_mean_optimizer_at_(i)->name : NULL;
}

/* ---- sentences ---- */

typedef struct cg_setting_ {
    const char *name, *example;
    int (*read)(cg_parser_ *s, const struct cg_setting_ *row, cg_mean_config_ *c); /* what follows name= */
    int (*print)(cg_text_ *t, const cg_mean_config_ *c); /* the same; 0: it is the default, and nothing was written */
} cg_setting_;
static const cg_setting_ *cg_setting_at_(uint32_t i); /* NULL: there are no more */
static const char *cg_setting_name_(uint32_t i) { return cg_setting_at_(i) ? cg_setting_at_(i)->name : NULL; }

/* The nearest of the names, or NULL. */
static const char *cg_mean_nearest_(cg_word_ w, const char *(*name_of)(uint32_t)) {
    const char *nearest = NULL;
    int nearest_distance = 99;
    for (uint32_t i = 0; name_of(i); i++) {
        const int d = cg_name_distance_(w, name_of(i));
        if (d >= nearest_distance) continue;
        nearest_distance = d;
        nearest = name_of(i);
    }
    return nearest;
}
/* ": did you mean 'x'? There are a, b, c" */
static void cg_mean_suggest_(cg_parser_ *s, const char *nearest, const char *(*name_of)(uint32_t), const char *after) {
    if (nearest) {
        cg_text_str_(&s->why, "; did you mean '");
        cg_text_str_(&s->why, nearest);
        cg_text_str_(&s->why, after);
        cg_text_char_(&s->why, '\'');
        cg_text_char_(&s->why, '?');
    }
    cg_text_str_(&s->why, nearest ? " There are" : "; there are");
    for (uint32_t i = 0; name_of(i); i++) {
        cg_text_str_(&s->why, i ? ", " : " ");
        cg_text_str_(&s->why, name_of(i));
        cg_text_str_(&s->why, after);
    }
}
static void cg_mean_example_(cg_parser_ *s, const cg_setting_ *row) {
    cg_text_str_(&s->why, ", as in '");
    cg_text_str_(&s->why, row->example);
    cg_text_char_(&s->why, '\'');
}
/* "at 9: 'x' of seed= should be a whole number, as in 'seed=42'" */
static int cg_mean_bad_(cg_parser_ *s, cg_word_ w, const cg_setting_ *row, const char *what, const char *range) {
    cg_why_at_(s, w.p);
    if (w.len) cg_why_quote_(s, w);
    else cg_text_str_(&s->why, "nothing");
    cg_text_str_(&s->why, " stands in ");
    cg_text_str_(&s->why, row->name);
    cg_text_str_(&s->why, "= for ");
    cg_text_str_(&s->why, what);
    cg_text_str_(&s->why, ", which is ");
    cg_text_str_(&s->why, range);
    for (size_t i = 0; i < w.len; i++)
        if (w.p[i] == ',') {
            cg_text_str_(&s->why, " (decimals follow a '.')");
            break;
        }
    cg_mean_example_(s, row);
    return 0;
}

/* ---- parts of values ---- */

/* The part of a value up to ':', `other` or a blank; s->p moves behind it. */
static cg_word_ cg_mean_part_to_(cg_parser_ *s, char other) {
    cg_word_ w;
    w.p = s->p;
    for (w.len = 0; w.p[w.len] && w.p[w.len] != ':' && w.p[w.len] != other && !cg_is_blank_(w.p[w.len]);) w.len++;
    s->p += w.len;
    return w;
}
static cg_word_ cg_mean_part_(cg_parser_ *s) { return cg_mean_part_to_(s, ':'); }
static int cg_mean_colon_(cg_parser_ *s) { return *s->p == ':' ? (s->p++, 1) : 0; }
static int cg_mean_read_real_(cg_parser_ *s, cg_word_ w, const cg_setting_ *row, const char *what, const char *range,
    const float *limits, float *v) {
    cg_decimal_ d;
    float f;
    if (!cg_decimal_read_(w, &d) || d.minus) return cg_mean_bad_(s, w, row, what, range);
    f = cg_float_from_decimal_(d.digits, d.exponent);
    if (f >= CG_FLT_MAX_ || f < limits[0] || f > limits[1] || (f == limits[0] && limits[2] != 0.0f) ||
        (f == limits[1] && limits[3] != 0.0f))
        return cg_mean_bad_(s, w, row, what, range);
    *v = f;
    return 1;
}
static int cg_mean_read_whole_(cg_parser_ *s, cg_word_ w, const cg_setting_ *row, const char *what, const char *range,
    uint64_t lo, uint64_t hi, uint64_t *v) {
    cg_decimal_ d;
    if (!cg_decimal_read_(w, &d) || d.minus || d.has_point || d.overflows || d.whole < lo || d.whole > hi)
        return cg_mean_bad_(s, w, row, what, range);
    *v = d.whole;
    return 1;
}
/* The name of one of a table, as a number. */
static int cg_mean_read_name_(
    cg_parser_ *s, cg_word_ w, const cg_setting_ *row, const char *(*name_of)(uint32_t), uint32_t *id) {
    for (uint32_t i = 0; name_of(i); i++)
        if (cg_word_is_(w, name_of(i))) return *id = i, 1;
    cg_why_at_(s, w.p);
    cg_text_str_(&s->why, "no ");
    cg_text_str_(&s->why, row->name);
    cg_text_char_(&s->why, ' ');
    cg_why_quote_(s, w);
    cg_mean_suggest_(s, cg_mean_nearest_(w, name_of), name_of, "");
    return 0;
}

/* ---- memory= ---- */

static int cg_mean_read_param_(
    cg_parser_ *s, cg_word_ w, const cg_setting_ *row, const cg_mean_param_ *p, cg_ef_desc *d) {
    const float limits[4] = { p->lo, p->hi, (float)p->above_lo, (float)p->below_hi };
    const int one = 1;
    uint64_t whole = 0;
    float real = 0.0f;
    if (p->type == CG_MEAN_FLAG_) memcpy(cg_mean_field_(d, p), &one, sizeof one);
    else if (p->type == CG_MEAN_WHOLE_) {
        if (!cg_mean_read_whole_(s, w, row, p->name, p->legal, 1, UINT64_MAX, &whole)) return 0;
        memcpy(cg_mean_field_(d, p), &whole, sizeof whole);
    } else {
        if (p->word && cg_word_is_(w, p->word)) real = p->word_value;
        else if (!cg_mean_read_real_(s, w, row, p->name, p->legal, limits, &real)) return 0;
        memcpy(cg_mean_field_(d, p), &real, sizeof real);
    }
    return 1;
}
/* One part behind the kind's name: a number, which is the first parameter, a flag, or name=number. */
static int cg_mean_read_memory_part_(
    cg_parser_ *s, const cg_setting_ *row, const cg_ef_row_ *kind, int is_first, uint32_t *seen, cg_ef_desc *d) {
    const cg_word_ all = cg_mean_part_(s);
    cg_word_ name = all, value = all;
    cg_decimal_ number;
    const char *list = kind->params;
    const cg_mean_param_ *p, *found = NULL;
    uint32_t bit;
    size_t equals = 0;
    while (equals < all.len && all.p[equals] != '=') equals++;
    name.len = equals;
    if (equals < all.len) {
        value.p += equals + 1;
        value.len -= equals + 1;
    }
    for (const char *next; (p = cg_mean_param_next_(list, &next)) != NULL && !found; list = next)
        if ((is_first && list == kind->params && equals == all.len && p->type != CG_MEAN_FLAG_ &&
                (!all.len || cg_decimal_read_(all, &number) || (p->word && cg_word_is_(all, p->word)))) ||
            (cg_word_is_(name, p->name) && (equals < all.len) == (p->type != CG_MEAN_FLAG_)))
            found = p;
    if (!found) {
        cg_why_at_(s, all.p);
        cg_text_str_(&s->why, "memory=");
        cg_text_str_(&s->why, kind->name);
        cg_text_str_(&s->why, " has no ");
        cg_why_quote_(s, name);
        cg_text_str_(&s->why, *kind->params ? "; it takes" : "; it takes nothing");
        list = kind->params;
        for (const char *next; (p = cg_mean_param_next_(list, &next)) != NULL; list = next) {
            cg_text_str_(&s->why, list == kind->params ? " :" : ", :");
            cg_text_str_(&s->why, p->name);
            if (p->type != CG_MEAN_FLAG_) cg_text_char_(&s->why, '=');
        }
        return 0;
    }
    bit = 1u << (unsigned)(found - cg_mean_params_);
    if (*seen & bit) {
        cg_why_at_(s, all.p);
        cg_text_str_(&s->why, found->name);
        cg_text_str_(&s->why, " stands twice in memory=");
        return 0;
    }
    *seen |= bit;
    return cg_mean_read_param_(s, value, row, found, d);
}
/* Must the first parameter of a kind be given? */
static int cg_mean_is_required_(const char *list) {
    while (*list && *list != ':' && *list != '!') list++;
    return *list == '!';
}
static int cg_mean_read_memory_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    const cg_ef_row_ *kind;
    const cg_mean_param_ *first;
    const char *next;
    uint32_t seen = 0;
    if (!cg_mean_read_name_(s, cg_mean_part_(s), row, cg_ef_kind_name, &c->ef.kind)) return 0;
    kind = cg_ef_row_at_(c->ef.kind);
    for (int is_first = 1; cg_mean_colon_(s); is_first = 0)
        if (!cg_mean_read_memory_part_(s, row, kind, is_first, &seen, &c->ef)) return 0;
    first = cg_mean_param_next_(kind->params, &next);
    if (!first || !cg_mean_is_required_(kind->params) || seen & 1u << (unsigned)(first - cg_mean_params_)) return 1;
    cg_why_at_(s, s->p);
    cg_text_str_(&s->why, "memory=");
    cg_text_str_(&s->why, kind->name);
    cg_text_str_(&s->why, " lacks its ");
    cg_text_str_(&s->why, first->name);
    cg_text_str_(&s->why, ": ");
    cg_text_str_(&s->why, first->legal);
    cg_text_str_(&s->why, ", as in 'memory=");
    cg_text_str_(&s->why, kind->name);
    cg_text_str_(&s->why, ":0.9'");
    return 0;
}
static int cg_mean_print_memory_(cg_text_ *t, const cg_mean_config_ *c) {
    const char *list = cg_ef_row_at_(c->ef.kind)->params, *next;
    const cg_mean_param_ *p;
    cg_text_str_(t, cg_ef_kind_name(c->ef.kind));
    for (int is_first = 1; (p = cg_mean_param_next_(list, &next)) != NULL; list = next, is_first = 0) {
        uint64_t whole = 0;
        float real = 0.0f;
        int flag = 0;
        if (p->type == CG_MEAN_FLAG_) memcpy(&flag, cg_mean_field_(&c->ef, p), sizeof flag);
        else if (p->type == CG_MEAN_WHOLE_) memcpy(&whole, cg_mean_field_(&c->ef, p), sizeof whole);
        else memcpy(&real, cg_mean_field_(&c->ef, p), sizeof real);
        if (!flag && !whole && real == 0.0f && !(is_first && cg_mean_is_required_(list))) continue;
        cg_text_char_(t, ':');
        if (flag || !is_first) cg_text_str_(t, p->name);
        if (flag) continue;
        if (!is_first) cg_text_char_(t, '=');
        if (p->type == CG_MEAN_WHOLE_) cg_text_uint_(t, whole);
        else if (p->word && real == p->word_value) cg_text_str_(t, p->word);
        else cg_text_float_(t, real);
    }
    return 1;
}

/* ---- the other settings ---- */

static int cg_mean_read_route_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    return cg_mean_read_name_(s, cg_mean_part_(s), row, cg_route_name, &c->route);
}
static int cg_mean_print_route_(cg_text_ *t, const cg_mean_config_ *c) {
    cg_text_str_(t, cg_route_name(c->route));
    return c->route != 0;
}
static int cg_mean_read_fold_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    return cg_mean_read_name_(s, cg_mean_part_(s), row, cg_fold_name, &c->fold);
}
static int cg_mean_print_fold_(cg_text_ *t, const cg_mean_config_ *c) {
    cg_text_str_(t, cg_fold_name(c->fold));
    return c->fold != 0;
}
static int cg_mean_print_whole_(cg_text_ *t, uint64_t v) {
    cg_text_uint_(t, v);
    return v != 0;
}
static int cg_mean_read_seed_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    return cg_mean_read_whole_(s, cg_mean_part_(s), row, "the seed", "a whole number", 0, UINT64_MAX, &c->seed);
}
static int cg_mean_print_seed_(cg_text_ *t, const cg_mean_config_ *c) { return cg_mean_print_whole_(t, c->seed); }
static int cg_mean_read_dense_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    return cg_mean_read_whole_(s, cg_mean_part_(s), row, "the first steps, which are dense",
        "a whole number below 2^62", 0, UINT64_MAX / 4, &c->ef.dense_steps);
}
static int cg_mean_print_dense_(cg_text_ *t, const cg_mean_config_ *c) {
    return cg_mean_print_whole_(t, c->ef.dense_steps);
}
static int cg_mean_read_small_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    uint64_t small;
    if (!cg_mean_read_whole_(s, cg_mean_part_(s), row, "the values below which a tensor is dense", "a whole number", 0,
            SIZE_MAX, &small))
        return 0;
    c->ef.small = (size_t)small;
    return 1;
}
static int cg_mean_print_small_(cg_text_ *t, const cg_mean_config_ *c) { return cg_mean_print_whole_(t, c->ef.small); }
static const char *cg_mean_yes_name_(uint32_t i) { return i == 0 ? "no" : i == 1 ? "yes" : NULL; }
static int cg_mean_read_overlap_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    return cg_mean_read_name_(s, cg_mean_part_(s), row, cg_mean_yes_name_, &c->overlap);
}
static int cg_mean_print_overlap_(cg_text_ *t, const cg_mean_config_ *c) {
    cg_text_str_(t, "yes");
    return c->overlap != 0;
}
static int cg_mean_read_pack_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    return cg_mean_read_name_(s, cg_mean_part_(s), row, cg_mean_pack_name_, &c->packing);
}
static int cg_mean_print_pack_(cg_text_ *t, const cg_mean_config_ *c) {
    cg_text_str_(t, cg_mean_pack_name_(c->packing));
    return c->packing != CG_PACK_NONE_;
}
static int cg_mean_read_clip_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    static const float limits[4] = { 0.0f, CG_FLT_MAX_, 1.0f, 0.0f };
    cg_word_ w = cg_mean_part_(s);
    if (cg_word_is_(w, "value") && cg_mean_colon_(s)) {
        c->ef.clip_by = CG_CLIP_VALUE;
        w = cg_mean_part_(s);
    }
    return cg_mean_read_real_(s, w, row, "the limit",
        "a number above 0, as in clip=value:1 for every value or clip=1 for the norm", limits, &c->ef.clip);
}
static int cg_mean_print_clip_(cg_text_ *t, const cg_mean_config_ *c) {
    if (c->ef.clip_by) cg_text_str_(t, "value:");
    cg_text_float_(t, c->ef.clip);
    return c->ef.clip != 0.0f;
}
/* power:4:468: kind, stages, steps in a stage; table:0.25,0.1,0.03:468: the ratios of the stages in place of their
   number */
static int cg_mean_read_warmup_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    static const float limits[4] = { 0.0f, 1.0f, 1.0f, 0.0f };
    cg_warmup *w = &c->ef.warmup;
    uint64_t stages = 0;
    if (!cg_mean_read_name_(s, cg_mean_part_(s), row, cg_warmup_name, &w->kind)) return 0;
    if (!w->kind) return 1;
    if (!cg_mean_colon_(s))
        return cg_mean_bad_(s, cg_mean_part_(s), row, "the stages", "a whole number from 1 to 4096");
    if (cg_warmup_rows_[w->kind].has_table) {
        do {
            if (stages == CG_MEAN_TABLE_)
                return cg_mean_bad_(s, cg_mean_part_(s), row, "one ratio more", "one too many: at most 32 fit");
            if (!cg_mean_read_real_(
                    s, cg_mean_part_to_(s, ','), row, "a ratio", "above 0, at most 1", limits, &c->table[stages]))
                return 0;
            stages++;
        } while (*s->p == ',' && *s->p++);
    } else if (!cg_mean_read_whole_(s, cg_mean_part_(s), row, "the stages", "a whole number from 1 to 4096", 1,
                   CG_EF_MAX_STAGES_, &stages))
        return 0;
    w->stages = (uint32_t)stages;
    return !cg_mean_colon_(s) ||
        cg_mean_read_whole_(s, cg_mean_part_(s), row, "the steps in a stage", "a whole number from 1 to 2^48", 1,
            (uint64_t)1 << 48, &w->period);
}
static int cg_mean_print_warmup_(cg_text_ *t, const cg_mean_config_ *c) {
    const cg_warmup *w = &c->ef.warmup;
    cg_text_str_(t, cg_warmup_name(w->kind));
    cg_text_char_(t, ':');
    if (!cg_warmup_rows_[w->kind].has_table) cg_text_uint_(t, w->stages);
    for (uint32_t i = 0; cg_warmup_rows_[w->kind].has_table && i < w->stages; i++) {
        if (i) cg_text_char_(t, ',');
        cg_text_float_(t, c->table[i]);
    }
    if (w->period) cg_text_char_(t, ':');
    if (w->period) cg_text_uint_(t, w->period);
    return w->kind != 0;
}
static int cg_mean_read_optimizer_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    static const float limits[4] = { 0.0f, 1.0f, 0.0f, 1.0f };
    if (!cg_mean_read_name_(s, cg_mean_part_(s), row, cg_mean_optimizer_name_, &c->optimizer)) return 0;
    if (!cg_mean_optimizer_at_(c->optimizer)->has_momentum) return 1;
    if (!cg_mean_colon_(s)) return cg_mean_bad_(s, cg_mean_part_(s), row, "its momentum", "a number from 0 to below 1");
    return cg_mean_read_real_(
        s, cg_mean_part_(s), row, "its momentum", "a number from 0 to below 1", limits, &c->momentum);
}
static int cg_mean_print_optimizer_(cg_text_ *t, const cg_mean_config_ *c) {
    const cg_mean_optimizer_ *o = cg_mean_optimizer_at_(c->optimizer);
    cg_text_str_(t, o->name);
    if (o->has_momentum) cg_text_char_(t, ':');
    if (o->has_momentum) cg_text_float_(t, c->momentum);
    return c->optimizer != 0;
}
/* In the order in which they are printed. */
static const cg_setting_ cg_settings_[] = {
    { "memory", "memory=momentum:0.9", cg_mean_read_memory_, cg_mean_print_memory_ },
    { "route", "route=scatter", cg_mean_read_route_, cg_mean_print_route_ },
    { "fold", "fold=mean", cg_mean_read_fold_, cg_mean_print_fold_ },
    { "seed", "seed=42", cg_mean_read_seed_, cg_mean_print_seed_ },
    { "dense", "dense=100", cg_mean_read_dense_, cg_mean_print_dense_ },
    { "warmup", "warmup=power:4:468", cg_mean_read_warmup_, cg_mean_print_warmup_ },
    { "clip", "clip=1", cg_mean_read_clip_, cg_mean_print_clip_ },
    { "small", "small=1024", cg_mean_read_small_, cg_mean_print_small_ },
    { "pack", "pack=each", cg_mean_read_pack_, cg_mean_print_pack_ },
    { "overlap", "overlap=yes", cg_mean_read_overlap_, cg_mean_print_overlap_ },
    { "optimizer", "optimizer=momentum:0.9", cg_mean_read_optimizer_, cg_mean_print_optimizer_ },
};
enum {
    CG_SETTING_COUNT_ = sizeof cg_settings_ / sizeof cg_settings_[0],
    CG_SETTING_MEMORY_ = 0,
    CG_SETTING_SMALL_ = 7
};
static const cg_setting_ *cg_setting_at_(uint32_t i) { return i < CG_SETTING_COUNT_ ? &cg_settings_[i] : NULL; }

/* ---- what optimizers ask for ---- */

/* What kinds without a residual are given where the text has no operator: 80 times fewer bits. */
static cg_op cg_mean_unbiased_op_(void) { return cg_unbiased(cg_rate(0.4f)); }
/* As the state will draw, so that what is printed is what is sent. */
static void cg_mean_draw_privately_(cg_mean_config_ *c) {
    if (cg_ef_has_trait_(&c->ef, CG_EF_UNBIASED_ONLY_) && !c->by_shape &&
        !(cg_route_row_of_(c->route)->traits & CG_ROUTE_ALLREDUCES_))
        c->op = cg_ef_drawn_by_rank_(c->op);
}

static void cg_mean_choose_classic_(cg_mean_config_ *c) { c->ef.kind = CG_EF_CLASSIC; }
/* Of unbiased operators the filter comes first, and the optimizer stays as it is. A biased one delays part of the
   gradient, and a momentum behind the mean amplifies what is delayed: then it goes into the memory. */
static void cg_mean_choose_momentum_(cg_mean_config_ *c) {
    cg_resolved_ r;
    if (c->by_shape || c->momentum == 0.0f) {
        c->ef.kind = CG_EF_CLASSIC;
        return;
    }
    c->ef.kind = CG_EF_FILTERED;
    if (cg_resolve_(&c->op, NULL, 65536, &r) == CG_OK && cg_ef_biased_why_(&c->ef, &r)) c->ef.kind = CG_EF_MOMENTUM;
    c->ef.momentum = c->momentum;
}
/* Models in place of gradients, so that nothing is delayed; the state refuses biased operators. */
static void cg_mean_choose_models_(cg_mean_config_ *c) { c->ef.kind = CG_EF_DIFFERENCE; }
static const cg_mean_optimizer_ cg_mean_optimizers_[] = {
    { "any", 0, 0, cg_mean_choose_classic_, "" },
    { "sgd", 0, 0, cg_mean_choose_classic_,
        "for SGD without momentum: classic memory, which delays and loses nothing" },
    { "momentum", 1, 0, cg_mean_choose_momentum_,
        "for SGD with momentum: with memory=filtered or classic your optimizer keeps it; with memory=momentum it is in "
        "the memory, so set that of your optimizer to 0" },
    { "adam", 0, 1, cg_mean_choose_models_,
        "for Adam: with memory=difference every rank's Adam steps its own model, and cg_mean_step takes the models; "
        "with any other memory it takes gradients, and what waits in a residual spoils the variances" },
};
static const cg_mean_optimizer_ *cg_mean_optimizer_at_(uint32_t i) {
    return i < sizeof cg_mean_optimizers_ / sizeof cg_mean_optimizers_[0] ? &cg_mean_optimizers_[i] : NULL;
}

/* ---- the whole line ---- */

/* Skips blanks and comments, from '#' to the end of a line. */
static void cg_mean_skip_(cg_parser_ *s) {
    for (;; s->p++) {
        if (*s->p == '#')
            while (s->p[1] && s->p[1] != '\n') s->p++;
        else if (!cg_is_blank_(*s->p)) return;
    }
}
/* The name before the '=' of the setting that begins here; len 0: none begins here. */
static cg_word_ cg_setting_word_(const char *p) {
    cg_word_ w;
    w.p = p;
    for (w.len = 0;; w.len++) {
        const char c = cg_lower_(p[w.len]);
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-')) break;
    }
    if (p[w.len] != '=') w.len = 0;
    return w;
}
/* Is "name:value" an operator, where name=value stands? */
static int cg_setting_is_operator_(cg_word_ name) {
    char text[CG_MEAN_OP_TEXT_];
    size_t len = 0;
    cg_op op;
    for (; len + 1 < sizeof text && name.p[len] && !cg_is_blank_(name.p[len]); len++) text[len] = name.p[len];
    text[len] = 0;
    text[name.len] = ':';
    return len + 1 < sizeof text && cg_op_parse(&op, text) == CG_OK;
}
static int cg_mean_unknown_(cg_parser_ *s, cg_word_ name) {
    cg_why_at_(s, name.p);
    cg_text_str_(&s->why, "no setting ");
    cg_why_quote_(s, name);
    if (!cg_setting_is_operator_(name))
        return cg_mean_suggest_(s, cg_mean_nearest_(name, cg_setting_name_), cg_setting_name_, "="), 0;
    cg_text_str_(&s->why, ": it is an operator, which stands first and has ':' before its parameters");
    return 0;
}
/* The operator, which ends before the first setting. */
static int cg_mean_read_op_(cg_parser_ *s, cg_mean_config_ *config) {
    char text[CG_MEAN_OP_TEXT_ + 8];
    char why[320];
    const char *end = s->text;
    size_t len = 0, last = 0;
    int at_word = 1, in_comment = 0;
    for (; *end; end++, len++) {
        char c = *end;
        in_comment = c != '\n' && (in_comment || (at_word && c == '#'));
        if (in_comment) c = ' ';
        else if (at_word && cg_setting_word_(end).len) break;
        at_word = cg_is_blank_(c);
        if (!at_word) last = len + 1;
        if (last > CG_MEAN_OP_TEXT_)
            return cg_why_(s, s->text, "the operator, with what stands before it, takes more than 256 bytes");
        if (len < CG_MEAN_OP_TEXT_) text[len] = c;
    }
    s->p = end;
    text[last] = 0;
    config->has_op = last != 0;
    config->op = cg_eden(4.0f);
    if (!config->has_op && !cg_bound(&config->op, 1024))
        return cg_why_(s, s->text,
            "there is no operator, and this build left out the stages of the default, eden:4: "
            "write one, as in 'topk:0.01'");
    if (!config->has_op || cg_op_parse_why(&config->op, text, why, sizeof why) == CG_OK) return 1;
    memcpy(text + last, ":1:1", 5);
    if (cg_op_parse(&config->op, text) == CG_OK && cg_op_traits_(&config->op) & CG_IS_MATRIX_)
        return config->by_shape = 1;
    cg_text_str_(&s->why, why);
    return 0;
}
static int cg_mean_read_settings_(cg_parser_ *s, cg_mean_config_ *c) {
    for (cg_mean_skip_(s); *s->p; cg_mean_skip_(s)) {
        const cg_word_ name = cg_setting_word_(s->p);
        uint32_t i = 0;
        if (!name.len) {
            cg_word_ w = cg_mean_part_(s);
            cg_why_at_(s, w.p);
            cg_why_quote_(s, w);
            cg_text_str_(&s->why,
                " is not name=value; the operator stands first, and behind it only settings, as in "
                "'topk:0.01 route=scatter seed=42'");
            return 0;
        }
        while (i < CG_SETTING_COUNT_ && !cg_word_is_(name, cg_settings_[i].name)) i++;
        if (i == CG_SETTING_COUNT_) return cg_mean_unknown_(s, name);
        if (c->given[i]) {
            cg_why_at_(s, name.p);
            cg_text_str_(&s->why, cg_settings_[i].name);
            cg_text_str_(&s->why, "= stands twice, first at ");
            cg_text_uint_(&s->why, (uint64_t)(c->given[i] - s->text));
            cg_text_str_(&s->why, ": leave one of them out");
            return 0;
        }
        c->given[i] = name.p;
        s->p = name.p + name.len + 1;
        if (!cg_settings_[i].read(s, &cg_settings_[i], c)) return 0;
        if (*s->p && !cg_is_blank_(*s->p)) {
            cg_why_at_(s, s->p);
            cg_why_quote_(s, cg_mean_part_(s));
            cg_text_str_(&s->why, " is too much behind ");
            cg_text_str_(&s->why, cg_settings_[i].name);
            cg_text_char_(&s->why, '=');
            cg_mean_example_(s, &cg_settings_[i]);
            return 0;
        }
    }
    return 1;
}
/* Reads config, which may be NULL; 0: why has a sentence. *c refers to itself, and to the text only while this runs. */
static int cg_mean_config_read_(cg_mean_config_ *c, const char *config, cg_text_ *why) {
    cg_parser_ s;
    int ok;
    memset(c, 0, sizeof *c);
    s.text = s.p = config ? config : "";
    s.why = *why;
    ok = cg_mean_read_op_(&s, c) && cg_mean_read_settings_(&s, c);
    *why = s.why;
    if (!ok) return 0;
    /* the operator that measurements recommend is for vectors that fill the blocks of its rotation */
    if (!c->has_op && !c->given[CG_SETTING_SMALL_]) c->ef.small = 1024;
    if (!c->given[CG_SETTING_MEMORY_]) cg_mean_optimizer_at_(c->optimizer)->choose(c);
    if (!c->has_op && cg_ef_has_trait_(&c->ef, CG_EF_UNBIASED_ONLY_)) c->op = cg_mean_unbiased_op_();
    cg_mean_draw_privately_(c);
    if (cg_warmup_rows_[c->ef.warmup.kind].has_table) c->ef.warmup.table = c->table;
    memset(c->given, 0, sizeof c->given); /* the text is not kept */
    return 1;
}
/* Writes it on one line, with everything that is not the default. */
static void cg_mean_config_print_(const cg_mean_config_ *c, cg_text_ *t) {
    char op[CG_MEAN_OP_TEXT_ + 64];
    if (cg_op_print(&c->op, op, sizeof op) != CG_OK) op[0] = 0;
    if (c->by_shape) op[cg_text_len_(op) - 4] = 0; /* the :1:1 in the place of rows and columns */
    cg_text_str_(t, op);
    for (uint32_t i = 0; i < CG_SETTING_COUNT_; i++) {
        char *before = t->at;
        cg_text_char_(t, ' ');
        cg_text_str_(t, cg_settings_[i].name);
        cg_text_char_(t, '=');
        if (!cg_settings_[i].print(t, c)) t->at = before;
    }
}

/* src/ef/mean.h */
/* mean: a mean with memory, opened in one block of the caller's memory

   Offers   struct cg_mean; the public cg_mean_memory, cg_mean_open and their forms with shapes; cg_mean_say_,
            cg_mean_list_, cg_mean_tag_
   Needs    mean_words, plan, exchange; cg_exchange_resolve_ of exchange
   Touches  the caller's mem and sentence
   Whatever is accepted here can step: every operator that a step may have, the dense ones and those of the warm-up, is
   resolved on every tensor, as this rank and as rank 0, which may be a leader. */

enum { CG_MEAN_WHY_ = 512, CG_MEAN_MAGIC_ = 0x6e61656d /* "mean" */ };
/* The list of a caller: sizes, or tensors. */
typedef struct cg_mean_list_ {
    const size_t *n;
    const cg_tensor *tensor;
    size_t count;
} cg_mean_list_;
/* What is kept of a tensor. */
typedef struct cg_mean_tensor_ {
    size_t n, rows;
    const char *name; /* in the mean's memory; NULL: none */
    cg_ef *ef;        /* NULL: it has no values */
    cg_ef *before;    /* its state before the step that is tried */
    uint8_t *kept;    /* where the vectors of the state begin: what a step changes */
    uint8_t *backup;  /* and its vectors: kept_bytes from `kept` on */
    size_t kept_bytes;
    float *result; /* where the mean waits, of kinds whose commit may fail when it is there; else NULL */
} cg_mean_tensor_;
struct cg_mean {
    uint32_t magic; /* CG_MEAN_MAGIC_: open */
    int pending;
    cg_transport transport;
    cg_mean_config_ config;
    uint64_t common; /* hash of configuration and tensors */
    uint64_t steps;
    size_t tensors; /* of the list */
    size_t active;  /* of these, with values */
    cg_mean_tensor_ *tensor;
    float **flat; /* where tensors are in the vector of cg_mean_step_flat */
    cg_ef **efs;  /* of the active ones */
    cg_layer *layers;
    /* pack=: tensors are segments of one vector, with one state, which is that of the first tensor with values */
    size_t *pack_n;
    uint32_t *pack_op;
    cg_segments segments;
    float *packed;
    cg_extra *sides; /* of kinds that take variances, else NULL */
    /* overlap=yes: the step under way: of the caller, the state whose turn it is, and its exchange in mem */
    float *const *grads;
    cg_ef_exchange_ctx_ *ctx;
    cg_exchange_state *exchange; /* NULL: it has not begun */
    size_t turn;
    void *mem; /* for an exchange */
    size_t mem_bytes;
    cg_report report;
    char why[CG_MEAN_WHY_];
};

/* Bytes before the first multiple of 64 behind a cg_mean that stands at the first multiple of 16 of any memory:
   malloc's own address, so that either may be freed. */
enum { CG_MEAN_HEAD_ = sizeof(cg_mean) + 16 + 64 };

/* ---- sentences ---- */

static cg_text_ cg_mean_text_(char *text, size_t cap) {
    cg_text_ t;
    t.at = text;
    t.end = text && cap ? text + (cap - 1) : text; /* the 0 at the end always fits */
    return t;
}
static void cg_mean_tensor_name_(cg_text_ *t, size_t i, const char *name) {
    cg_text_str_(t, "tensor ");
    cg_text_uint_(t, i);
    if (!name) return;
    cg_text_str_(t, " (");
    for (size_t j = 0; name[j] && j < 40; j++) cg_text_char_(t, name[j] >= ' ' && name[j] <= '~' ? name[j] : '?');
    cg_text_char_(t, ')');
}
/* The sentence and the report of a call that ends so, and its status. */
static cg_status cg_mean_say_(cg_mean *m, cg_status s, const char *why) {
    cg_text_ t = cg_mean_text_(m->why, sizeof m->why);
    cg_report_set_(&m->report, s, why, 0, CG_NO_INDEX);
    cg_text_str_(&t, why);
    *t.at = 0;
    return s;
}

/* ---- what a tensor needs ---- */

static size_t cg_mean_list_n_(const cg_mean_list_ *list, size_t i) {
    return list->tensor ? list->tensor[i].n : list->n[i];
}
static size_t cg_mean_list_rows_(const cg_mean_list_ *list, size_t i) {
    return list->tensor ? list->tensor[i].rows : 0;
}
static const char *cg_mean_list_name_(const cg_mean_list_ *list, size_t i) {
    return list->tensor ? list->tensor[i].name : NULL;
}
/* The description of a tensor's state, but for carry. A matrix operator takes the shape of the tensor, if its factors
   are smaller than that. */
static cg_ef_desc cg_mean_desc_(const cg_mean *m, size_t n, size_t rows) {
    const cg_mean_config_ *c = &m->config;
    cg_ef_desc d = c->ef;
    const uint64_t cols = rows ? n / rows : 0, r = c->op.transform.arg;
    d.op = c->op;
    d.n = n;
    d.workers = m->transport.size;
    if (!c->by_shape) return d;
    if (rows < 2 || cols < 2 || rows > UINT32_MAX || cols > 16777216 || cg_mul_sat_(r, cg_add_sat_(rows, cols)) >= n) {
        d.op = cg_dense();
        return d;
    }
    d.op.transform.size = (uint32_t)rows;
    d.op.transform.value = (float)cols;
    return d;
}
static cg_tag cg_mean_tag_(const cg_mean *m, uint64_t step, size_t tensor) {
    cg_tag tag = CG_ZERO;
    tag.seed = m->config.seed;
    tag.step = step;
    tag.tensor = (uint32_t)tensor;
    return tag;
}
static cg_exchange_desc cg_mean_exchange_desc_(const cg_mean *m, uint64_t step, size_t tensor) {
    cg_exchange_desc d = CG_ZERO;
    d.route = m->config.route;
    d.fold = m->config.fold;
    d.tag = cg_mean_tag_(m, step, tensor);
    d.flags = CG_CONFIRM | CG_TOGETHER;
    d.common = m->common;
    return d;
}
/* The i-th of the steps whose operators differ: the first of kinds that begin dense, those that are dense in any case,
   every stage of the warm-up, what follows. 0: there are no more. */
static int cg_mean_step_at_(const cg_mean *m, uint32_t i, uint64_t *step, int *begins) {
    const cg_ef_desc *d = &m->config.ef;
    const uint64_t period = d->warmup.period ? d->warmup.period : 1;
    *step = 0;
    *begins = 0;
    if (cg_ef_has_trait_(d, CG_EF_TAKES_MODELS_) && i-- == 0) return *begins = 1;
    if (d->dense_steps && i-- == 0) return 1;
    if (i > d->warmup.stages) return 0;
    *step = d->dense_steps + i * period;
    return 1;
}
/* A state that is not kept, for questions about the exchange of its steps. */
static void cg_mean_trial_(cg_ef *ef, const cg_ef_desc *d) {
    memset(ef, 0, sizeof *ef);
    ef->desc = *d;
    ef->scale = 1.0f;
    ef->mark = 1;
    ef->segments.segments = d->segments;
    if (d->carry) ef->carry = &ef->scale;
}
/* What the exchange of this step resolves to, on that rank, in *x. */
CG_NOINLINE_ uint64_t cg_mean_resolve_(
    const cg_mean *m, cg_ef *ef, uint64_t step, size_t tensor, int rank, int carry, cg_exchange_state *x) {
    const cg_exchange_desc desc = cg_mean_exchange_desc_(m, step, tensor);
    const cg_op op = cg_ef_op_(ef, &desc.tag);
    cg_exchange_desc d = cg_ef_step_desc_(ef, &desc, &op);
    cg_transport t = m->transport;
    cg_resolved_ resolved;
    cg_extra side = CG_ZERO;
    const float unread = 0.0f;
    t.rank = rank;
    d.flags |= CG_FEEDS_BACK;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_MAY_BE_SILENT_)) d.flags |= CG_ABSTAIN;
    if (cg_op_traits_(&op) & CG_NEEDS_AUX_) {
        side.aux = &unread;
        d.side = &side;
    }
    if (carry) d.carry = &ef->scale;
    return cg_exchange_resolve_(x, &d, &t, ef->desc.n, &resolved, 0);
}
/* How that went: a function of its own, so that the state is not on the stack of what follows. */
CG_NOINLINE_ cg_report cg_mean_resolved_(const cg_mean *m, cg_ef *ef, uint64_t step, size_t tensor, int rank) {
    cg_exchange_state x;
    cg_report report;
    cg_mean_resolve_(m, ef, step, tensor, rank, 0, &x);
    report = x.report;
    report.status = (uint32_t)x.status;
    return report;
}
/* Floats of the second leg's residual, on this rank. A rank without a stripe gets one, because CG_ROUTE_AUTO asks
   whether all ranks or none have some. */
static size_t cg_mean_carry_(const cg_mean *m, const cg_ef_desc *d, size_t tensor) {
    cg_exchange_state x;
    cg_ef ef;
    uint64_t step;
    size_t most = 0;
    int begins;
    if (cg_ef_has_trait_(d, CG_EF_UNBIASED_ONLY_)) return 0; /* they keep nothing back */
    cg_mean_trial_(&ef, d);
    for (uint32_t i = 0; cg_mean_step_at_(m, i, &step, &begins); i++)
        for (int as_first = 0; as_first < 2; as_first++) {
            size_t floats;
            cg_mean_resolve_(m, &ef, step, tensor, as_first ? 0 : m->transport.rank, 1, &x);
            floats = x.status == CG_OK ? cg_carry_floats_(&x) : 0;
            if (as_first && floats) floats = 1;
            if (floats > most) most = floats;
        }
    return most;
}
/* "tensor 1 (w) in step 0: why" */
static cg_status cg_mean_refuse_(
    cg_text_ *t, const cg_mean_list_ *list, size_t i, uint64_t step, cg_status s, const char *why, uint64_t n) {
    if (i < list->count) cg_mean_tensor_name_(t, i, cg_mean_list_name_(list, i));
    else cg_text_str_(t, "all tensors in one packet (pack=)");
    if (step) cg_text_str_(t, " in step ");
    if (step) cg_text_uint_(t, step);
    cg_text_str_(t, ": ");
    cg_text_str_(t, why);
    if (!n) return s;
    cg_text_str_(t, "; n must be ");
    cg_text_uint_(t, n);
    return s;
}
/* Finds what would refuse any step of a tensor; *mem_bytes becomes what its exchanges need. */
static cg_status cg_mean_check_(
    const cg_mean *m, const cg_mean_list_ *list, const cg_ef_desc *d, size_t i, uint64_t *mem_bytes, cg_text_ *t) {
    cg_ef ef;
    cg_ef *efs[1];
    cg_layer layer;
    uint64_t step, alone, listed;
    int begins;
    const size_t none = cg_exchange_layers_memory(NULL, 0, 0, &m->transport);
    const cg_status s = cg_ef_init(&ef, d, NULL, 0);
    *mem_bytes = 0;
    if (s != CG_E_MEMORY && s != CG_OK) return cg_mean_refuse_(t, list, i, 0, s, ef.report.why, ef.report.need);
    cg_mean_trial_(&ef, d);
    efs[0] = &ef;
    memset(&layer, 0, sizeof layer);
    layer.desc = cg_mean_exchange_desc_(m, 0, i);
    if (cg_route_row_of_(layer.desc.route)->traits & (CG_ROUTE_ENDS_AT_OWNER_ | CG_ROUTE_BEGINS_AT_OWNER_))
        return cg_mean_refuse_(t, list, i, 0, CG_E_UNSUPPORTED,
            "this route is one leg of scatter, and leaves each rank with a stripe: take route=scatter, or "
            "cg_reduce_scatter and cg_all_gather",
            0);
    if (cg_ef_desc_why_(&ef, &layer.desc))
        return cg_mean_refuse_(t, list, i, 0, CG_E_UNSUPPORTED, cg_ef_desc_why_(&ef, &layer.desc), 0);
    for (uint32_t j = 0; cg_mean_step_at_(m, j, &step, &begins); j++) {
        const cg_tag tag = cg_mean_tag_(m, step, i);
        cg_op op;
        ef.mark = !begins;
        op = cg_ef_op_(&ef, &tag);
        if (cg_op_traits_(&op) & CG_IS_PER_RANK_ && (uint32_t)m->transport.size > op.sample.size)
            return cg_mean_refuse_(t, list, i, step, CG_E_ARG, "there are more ranks than workers of permk", 0);
        if (cg_op_traits_(&op) & CG_IS_USER_CODEC_)
            return cg_mean_refuse_(t, list, i, step, CG_E_UNSUPPORTED,
                "a codec of yours needs cg_ef_exchange, which can be told of it", 0);
        if (cg_op_traits_(&op) & CG_NEEDS_SUPPORT_)
            return cg_mean_refuse_(t, list, i, step, CG_E_UNSUPPORTED,
                "the operator given needs the packet of another vector: take cg_ef_exchange, or route=shared", 0);
        for (int as_first = 0; as_first < 2; as_first++) {
            const cg_report r = cg_mean_resolved_(m, &ef, step, i, as_first ? 0 : m->transport.rank);
            if (r.status != CG_OK)
                return cg_mean_refuse_(t, list, i, step, (cg_status)r.status, r.why, r.status == CG_E_ARG ? r.need : 0);
        }
        memset(&layer, 0, sizeof layer);
        layer.desc = cg_mean_exchange_desc_(m, step, i);
        alone = cg_ef_exchange_memory(&ef, &layer.desc, &m->transport);
        listed = cg_ef_layers_memory(efs, &layer, 1, d->small, &m->transport);
        if (alone > *mem_bytes) *mem_bytes = alone;
        if (listed > *mem_bytes) *mem_bytes = listed;
    }
    ef.vector[2] = cg_ef_has_trait_(d, CG_EF_KEEPS_RECEIVED_) ? &ef.scale : NULL;
    alone = cg_ef_agree_memory(&ef, &layer.desc, &m->transport);
    if (alone > *mem_bytes) *mem_bytes = alone;
    if (!*mem_bytes) return cg_mean_refuse_(t, list, i, 0, CG_E_ARG, "its sizes overflow", 0);
    *mem_bytes = *mem_bytes > none ? *mem_bytes - none : 0;
    return CG_OK;
}
/* Bytes of a state that must be as before after a step that failed: its vectors, warm and carry, which stand first. */
static uint64_t cg_mean_kept_bytes_(const cg_ef_desc *d) {
    cg_ef_needs_ needs;
    cg_ef ef;
    if (cg_ef_check_(d, &needs) != CG_OK) return 0;
    needs.whole_vector = 0;
    needs.scratch_bytes = 0;
    return cg_ef_plan_(&ef, d, &needs, NULL);
}

static uint64_t cg_mean_agree_bytes_(const cg_mean *m); /* in ef/mean_agree.h */

/* ---- opening ---- */

/* The layout that is under way. */
typedef struct cg_mean_layout_ {
    cg_arena_ arena;
    uint64_t exchange; /* bytes for exchanges */
    size_t units;      /* states so far */
    cg_text_ *why;
} cg_mean_layout_;
/* Checks a state that the mean has, lays it out, and makes it if there is memory. i: the tensor, or list->count. */
static cg_status cg_mean_unit_(
    cg_mean *m, const cg_mean_list_ *list, size_t i, cg_ef_desc *d, cg_mean_tensor_ *tensor, cg_mean_layout_ *at) {
    uint64_t one, state;
    uint8_t *state_mem;
    cg_status s;
    d->carry = cg_mean_carry_(m, d, i);
    s = cg_mean_check_(m, list, d, i, &one, at->why);
    if (s != CG_OK) return s;
    at->exchange = cg_add_sat_(at->exchange, one);
    state = cg_ef_memory(d);
    tensor->ef = (cg_ef *)(void *)cg_arena_take_(&at->arena, sizeof(cg_ef));
    tensor->before = (cg_ef *)(void *)cg_arena_take_(&at->arena, sizeof(cg_ef));
    state_mem = cg_arena_take_(&at->arena, state);
    tensor->kept_bytes = cg_size_or_zero_(cg_mean_kept_bytes_(d));
    tensor->backup = cg_arena_take_(&at->arena, tensor->kept_bytes);
    tensor->result = NULL;
    if (!d->segments && (m->config.overlap || cg_ef_has_trait_(d, CG_EF_KEEPS_RECEIVED_)))
        tensor->result = (float *)(void *)cg_arena_take_(&at->arena, cg_mul_sat_(4, d->n));
    if (!at->arena.base) return CG_OK;
    s = cg_ef_init(tensor->ef, d, state_mem, (size_t)state);
    if (s != CG_OK) return cg_mean_refuse_(at->why, list, i, 0, s, tensor->ef->report.why, 0);
    tensor->kept = state_mem; /* it is aligned, so that the state begins there */
    m->efs[at->units++] = tensor->ef;
    return CG_OK;
}
/* The one state of all tensors, by pack=. Without memory the list of segments is on the stack, which bounds it. */
enum { CG_MEAN_PACK_ = 512 };
CG_NOINLINE_ cg_status cg_mean_plan_packed_(cg_mean *m, const cg_mean_list_ *list, cg_mean_layout_ *at) {
    size_t n_here[CG_MEAN_PACK_], *n = n_here, first = list->count;
    uint32_t op_here[CG_MEAN_PACK_], *op = op_here;
    cg_mean_tensor_ measured;
    cg_ef_desc d = m->config.ef;
    uint64_t total = 0;
    if (list->count > CG_MEAN_PACK_) {
        cg_text_str_(at->why, "pack= takes at most 512 tensors: open several means");
        return CG_E_ARG;
    }
    if (m->config.by_shape || cg_ef_has_trait_(&d, CG_EF_TAKES_VARIANCE_)) {
        cg_text_str_(at->why, "pack= is neither for matrices by shape nor for memory=variance: leave it out");
        return CG_E_UNSUPPORTED;
    }
    m->pack_n = (size_t *)(void *)cg_arena_take_(&at->arena, list->count * sizeof(size_t));
    m->pack_op = (uint32_t *)(void *)cg_arena_take_(&at->arena, list->count * sizeof(uint32_t));
    if (at->arena.base) n = m->pack_n, op = m->pack_op;
    for (size_t i = 0; i < list->count; i++) {
        n[i] = cg_mean_list_n_(list, i);
        op[i] = n[i] < d.small ? CG_SEGMENT_EXACT : CG_SEGMENT_OP;
        if (n[i] && first == list->count) first = i;
        total = cg_add_sat_(total, n[i]);
    }
    m->segments.n = n;
    m->segments.count = list->count;
    m->segments.op = op;
    m->segments.flags = m->config.packing == CG_PACK_GLOBAL_ ? CG_SEGMENTS_GLOBAL : 0;
    m->active = total != 0;
    m->packed = (float *)(void *)cg_arena_take_(&at->arena, cg_mul_sat_(4, total));
    d.op = m->config.op;
    d.n = cg_size_or_zero_(total);
    d.small = 0;
    d.workers = m->transport.size;
    d.segments = &m->segments;
    if (!total) return CG_OK;
    if (!d.n) return cg_mean_refuse_(at->why, list, list->count, 0, CG_E_ARG, "the sizes overflow", 0);
    return cg_mean_unit_(m, list, list->count, &d, at->arena.base ? &m->tensor[first] : &measured, at);
}
/* Checks everything and lays out the memory from base on, a multiple of 64 bytes behind *m; NULL: only measures.
   *bytes: what is needed in all. */
static cg_status cg_mean_plan_(cg_mean *m, const cg_mean_list_ *list, uint8_t *base, uint64_t *bytes, cg_text_ *why) {
    cg_mean_layout_ at;
    uint64_t name_bytes = 0;
    char *names;
    const int takes_variance = cg_ef_has_trait_(&m->config.ef, CG_EF_TAKES_VARIANCE_);
    cg_status s = CG_OK;
    memset(&at, 0, sizeof at);
    at.arena.base = base;
    at.exchange = 64;
    at.why = why;
    m->tensors = list->count;
    m->active = 0;
    for (size_t i = 0; i < list->count; i++) {
        const char *name = cg_mean_list_name_(list, i);
        name_bytes = cg_add_sat_(name_bytes, name ? cg_text_len_(name) + 1 : 0);
        m->active += cg_mean_list_n_(list, i) != 0;
    }
    m->tensor = (cg_mean_tensor_ *)(void *)cg_arena_take_(&at.arena, cg_mul_sat_(list->count, sizeof(cg_mean_tensor_)));
    m->flat = (float **)(void *)cg_arena_take_(&at.arena, cg_mul_sat_(list->count, sizeof(float *)));
    m->efs = (cg_ef **)(void *)cg_arena_take_(&at.arena, cg_mul_sat_(m->active, sizeof(cg_ef *)));
    m->layers = (cg_layer *)(void *)cg_arena_take_(&at.arena, cg_mul_sat_(m->active, sizeof(cg_layer)));
    m->sides = NULL;
    if (takes_variance)
        m->sides = (cg_extra *)(void *)cg_arena_take_(&at.arena, cg_mul_sat_(m->active, sizeof(cg_extra)));
    m->ctx = m->config.overlap ? (cg_ef_exchange_ctx_ *)(void *)cg_arena_take_(&at.arena, sizeof *m->ctx) : NULL;
    names = (char *)cg_arena_take_(&at.arena, name_bytes);
    for (size_t i = 0; i < list->count && s == CG_OK; i++) {
        const size_t n = cg_mean_list_n_(list, i), rows = cg_mean_list_rows_(list, i);
        const char *name = cg_mean_list_name_(list, i);
        cg_mean_tensor_ *tensor = base ? &m->tensor[i] : NULL, measured;
        cg_ef_desc d = cg_mean_desc_(m, n, rows);
        if (!tensor) tensor = &measured;
        memset(tensor, 0, sizeof *tensor);
        tensor->n = n;
        tensor->rows = rows;
        if (name && base) {
            tensor->name = names;
            do *names++ = *name;
            while (*name++);
        }
        if (rows > 1 && n % rows) return cg_mean_refuse_(why, list, i, 0, CG_E_ARG, "rows does not divide n", 0);
        if (n && !m->config.packing) s = cg_mean_unit_(m, list, i, &d, tensor, &at);
    }
    if (s == CG_OK && m->config.packing) s = cg_mean_plan_packed_(m, list, &at);
    if (s != CG_OK) return s;
    at.exchange = cg_add_sat_(at.exchange, cg_exchange_layers_memory(NULL, 0, 0, &m->transport));
    if (at.exchange < cg_mean_agree_bytes_(m)) at.exchange = cg_mean_agree_bytes_(m);
    m->mem = cg_arena_take_(&at.arena, at.exchange);
    m->mem_bytes = cg_size_or_zero_(at.exchange);
    *bytes = cg_add_sat_(at.arena.bytes, CG_MEAN_HEAD_);
    return CG_OK;
}
/* What must be the same on all ranks: configuration, sizes, names and shapes. */
static uint64_t cg_mean_hash_(const cg_mean *m, const cg_mean_list_ *list) {
    char text[CG_MEAN_OP_TEXT_ + 1024];
    cg_text_ t = cg_mean_text_(text, sizeof text);
    uint64_t h = CG_MEAN_MAGIC_;
    cg_mean_config_print_(&m->config, &t);
    for (const char *p = text; p < t.at; p++) h = cg_mix64_(h + (uint8_t)*p + CG_GOLDEN_);
    for (size_t i = 0; i < list->count; i++) {
        const char *name = cg_mean_list_name_(list, i);
        h = cg_mix64_(h ^ cg_mean_list_n_(list, i));
        h = cg_mix64_(h ^ cg_mean_list_rows_(list, i));
        for (; name && *name; name++) h = cg_mix64_(h + (uint8_t)*name + CG_GOLDEN_);
    }
    return h ? h : 1;
}
/* Everything that does not need mem. */
static cg_status cg_mean_begin_(cg_mean *m, const char *config, const cg_mean_list_ *list,
    const cg_transport *transport, uint64_t *bytes, cg_text_ *why) {
    const char *error;
    *bytes = 0;
    if (!transport || (!list->n && !list->tensor && list->count)) {
        cg_text_str_(why, transport ? "n is NULL: give the number of values of every tensor" : "transport is NULL");
        return CG_E_ARG;
    }
    if (!list->count || list->count > UINT32_MAX) {
        cg_text_str_(why, "there is no tensor: give at least one, and at most 2^32 - 1");
        return CG_E_ARG;
    }
    error = cg_transport_error_(transport);
    if (error) {
        cg_text_str_(why, "transport: ");
        cg_text_str_(why, error);
        return CG_E_ARG;
    }
    m->transport = *transport;
    if (!cg_mean_config_read_(&m->config, config, why)) return CG_E_ARG;
    for (size_t i = 0, any = !m->config.by_shape; i < list->count && !any; i++) {
        any = cg_mean_list_rows_(list, i) > 1;
        if (any || i + 1 < list->count) continue;
        cg_text_str_(why,
            "at 0: this operator takes rows and columns of tensors, and none has them: open with "
            "cg_mean_open_of and give rows, or write them, as in 'lowrank:4:512:256'");
        return CG_E_ARG;
    }
    m->common = cg_mean_hash_(m, list);
    return cg_mean_plan_(m, list, NULL, bytes, why);
}
static size_t cg_mean_memory_(
    const char *config, const cg_mean_list_ *list, const cg_transport *transport, char *why, size_t cap) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_text_ t = cg_mean_text_(why, cap);
    cg_mean m;
    uint64_t bytes;
    cg_status s;
    memset(&m, 0, sizeof m);
    s = cg_mean_begin_(&m, config, list, transport, &bytes, &t);
    if (s == CG_OK && !cg_size_or_zero_(bytes)) cg_text_str_(&t, "the sizes of all tensors together overflow");
    if (why && cap) *t.at = 0;
    cg_fenv_leave_(env);
    return s == CG_OK ? cg_size_or_zero_(bytes) : 0;
}
CG_API_ size_t cg_mean_memory(
    const char *config, const size_t *n, size_t tensors, const cg_transport *transport, char *why, size_t cap) {
    const cg_mean_list_ list = { n, NULL, tensors };
    return cg_mean_memory_(config, &list, transport, why, cap);
}
CG_API_ size_t cg_mean_memory_of(
    const char *config, const cg_tensor *tensor, size_t tensors, const cg_transport *transport, char *why, size_t cap) {
    const cg_mean_list_ list = { NULL, tensor, tensors };
    return cg_mean_memory_(config, &list, transport, why, cap);
}
static cg_status cg_mean_open_(cg_mean **mean, const char *config, const cg_mean_list_ *list,
    const cg_transport *transport, void *mem, size_t bytes) {
    const size_t skip = mem ? (16 - ((uintptr_t)mem & 15)) % 16 : 0;
    cg_mean *m;
    uint8_t *base;
    cg_fenv_ env;
    cg_text_ t;
    uint64_t need;
    cg_status s;
    if (!mean) return CG_E_ARG;
    *mean = NULL;
    if (!mem || bytes < skip || bytes - skip < sizeof *m) return CG_E_MEMORY;
    *mean = m = (cg_mean *)(void *)((uint8_t *)mem + skip);
    env = cg_fenv_enter_();
    memset(m, 0, sizeof *m);
    t = cg_mean_text_(m->why, sizeof m->why);
    s = cg_mean_begin_(m, config, list, transport, &need, &t);
    if (s == CG_OK && need > SIZE_MAX / 2) {
        s = CG_E_ARG;
        cg_text_str_(&t, "the sizes of all tensors together overflow");
    } else if (s == CG_OK && bytes < need) {
        s = CG_E_MEMORY;
        cg_text_str_(&t, "mem is too small: cg_mean_memory gives its bytes; ");
        cg_text_uint_(&t, need);
        cg_text_str_(&t, " bytes suffice");
    }
    base = (uint8_t *)(m + 1);
    base += (64 - ((uintptr_t)base & 63)) % 64;
    if (s == CG_OK) s = cg_mean_plan_(m, list, base, &need, &t);
    *t.at = 0;
    if (s == CG_OK) {
        m->magic = CG_MEAN_MAGIC_;
        cg_mean_say_(m, CG_OK, cg_status_str(CG_OK));
    } else
        cg_report_set_(
            &m->report, s, "the mean is not open: cg_mean_why says why", s == CG_E_MEMORY ? need : 0, CG_NO_INDEX);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_mean_open(cg_mean **mean, const char *config, const size_t *n, size_t tensors,
    const cg_transport *transport, void *mem, size_t bytes) {
    const cg_mean_list_ list = { n, NULL, tensors };
    return cg_mean_open_(mean, config, &list, transport, mem, bytes);
}
CG_API_ cg_status cg_mean_open_of(cg_mean **mean, const char *config, const cg_tensor *tensor, size_t tensors,
    const cg_transport *transport, void *mem, size_t bytes) {
    const cg_mean_list_ list = { NULL, tensor, tensors };
    return cg_mean_open_(mean, config, &list, transport, mem, bytes);
}
CG_API_ const char *cg_mean_why(const cg_mean *mean) {
    return mean ? mean->why : "mean is NULL: cg_mean_open was given no memory, or fewer than 1 KB";
}
CG_API_ void cg_mean_report(const cg_mean *mean, cg_report *report) {
    if (!report) return;
    if (mean) *report = mean->report;
    else cg_report_set_(report, CG_E_ARG, cg_mean_why(NULL), 0, CG_NO_INDEX);
}
CG_API_ uint64_t cg_mean_steps(const cg_mean *mean) { return mean ? mean->steps : 0; }
/* The state that has this tensor, or NULL. */
static cg_ef *cg_mean_state_of_(const cg_mean *m, size_t tensor) {
    if (!m || m->magic != CG_MEAN_MAGIC_ || tensor >= m->tensors) return NULL;
    return m->config.packing && m->tensor[tensor].n ? m->efs[0] : m->tensor[tensor].ef;
}
CG_API_ const cg_ef *cg_mean_state(const cg_mean *mean, size_t tensor) { return cg_mean_state_of_(mean, tensor); }
CG_API_ cg_status cg_mean_moved(cg_mean *mean, size_t tensor, double squared) {
    if (!mean || mean->magic != CG_MEAN_MAGIC_ || tensor >= mean->tensors) return CG_E_ARG;
    return cg_mean_state_of_(mean, tensor) ? cg_ef_moved(cg_mean_state_of_(mean, tensor), squared) : CG_OK;
}

/* src/ef/mean_step.h */
/* mean_step: a step of a mean, all or nothing

   Offers   the public cg_mean_step, cg_mean_step_flat, cg_mean_step_with
   Needs    mean, exchange
   Touches  the mean, the gradients
   The exchanges of all tensors fail together (CG_TOGETHER) and are confirmed before anything is written. States are
   copied before the step, as p takes the residual's place, and copied back if it fails. */

static void cg_mean_backup_(cg_mean *m) {
    for (size_t i = 0; i < m->tensors; i++) {
        cg_mean_tensor_ *t = &m->tensor[i];
        if (!t->ef) continue;
        *t->before = *t->ef;
        memcpy(t->backup, t->kept, t->kept_bytes);
    }
}
static void cg_mean_restore_(cg_mean *m) {
    for (size_t i = 0; i < m->tensors; i++) {
        cg_mean_tensor_ *t = &m->tensor[i];
        if (!t->ef) continue;
        *t->ef = *t->before;
        memcpy(t->kept, t->backup, t->kept_bytes);
    }
}
/* The sentence of a step that has failed: the tensor, then what the report says of it, and what to do. */
CG_NOINLINE_ void cg_mean_step_why_(cg_mean *m, size_t tensor) {
    char text[400];
    cg_text_ t = cg_mean_text_(m->why, sizeof m->why);
    cg_status printed;
    if (m->report.status == CG_E_MISMATCH) {
        if (m->report.rank >= 0) cg_text_str_(&t, "rank ");
        if (m->report.rank >= 0) cg_text_uint_(&t, (uint64_t)m->report.rank);
        cg_text_str_(
            &t, m->report.rank >= 0 ? " was opened with another configuration" : "ranks were opened with others");
        cg_text_str_(&t, " or other tensors, or has made other steps: this rank has ");
        cg_text_uint_(&t, m->steps);
        cg_text_str_(&t, " steps, ");
        cg_text_uint_(&t, m->tensors);
        cg_text_str_(&t, " tensors and '");
        cg_mean_config_print_(&m->config, &t);
        cg_text_str_(&t, "'; if a step failed on some ranks only, call cg_mean_agree on all");
        *t.at = 0;
        return;
    }
    printed = cg_report_print(&m->report, text, sizeof text);
    (void)printed; /* what is cut off is cut off */
    if (tensor < m->tensors && m->tensors > 1) {
        cg_mean_tensor_name_(&t, tensor, m->tensor[tensor].name);
        cg_text_str_(&t, ": ");
    }
    cg_text_str_(&t, text);
    *t.at = 0;
}
/* Which tensor a report blames: the first whose exchange ended so. */
static size_t cg_mean_blamed_(const cg_mean *m, cg_status s) {
    for (size_t i = 0, j = 0; i < m->tensors; i++) {
        if (!m->tensor[i].ef) continue;
        if (m->layers[j].report.status == (uint32_t)s && m->layers[j].report.why == m->report.why &&
            m->layers[j].report.at == m->report.at)
            return i;
        j++;
    }
    return m->tensors;
}
/* After a step for an optimizer that divides by the root of a variance: says so where too much waits in a residual. */
static void cg_mean_delay_why_(cg_mean *m) {
    cg_text_ t = cg_mean_text_(m->why, sizeof m->why);
    size_t most = m->tensors;
    float delay = 3.0f;
    for (size_t i = 0; i < m->tensors; i++)
        if (m->tensor[i].ef && m->tensor[i].ef->stats.delay > delay) {
            most = i;
            delay = m->tensor[i].ef->stats.delay;
        }
    if (most == m->tensors) return;
    cg_text_str_(&t, "ok, but ");
    cg_mean_tensor_name_(&t, most, m->tensor[most].name);
    cg_text_str_(&t, " has ");
    cg_text_uint_(&t, delay < 1e6f ? (uint64_t)delay : 1000000);
    cg_text_str_(&t,
        " gradients waiting in its residual, as Adam counts them: above 3 it suffers, above 20 it stalls. Send more, "
        "or "
        "take memory=difference and an unbiased operator, as in 'wangni:0.01|efsign|golomb optimizer=adam'");
    *t.at = 0;
}
/* pack=: all gradients in m->packed, one behind the other; NULL: one is missing. */
static float *cg_mean_pack_(cg_mean *m, float *const *grads) {
    size_t at = 0;
    for (size_t i = 0; i < m->tensors; at += m->tensor[i++].n) {
        if (!m->tensor[i].n) continue;
        if (!grads || !grads[i]) return NULL;
        memcpy(m->packed + at, grads[i], 4 * m->tensor[i].n);
    }
    return m->packed;
}
static void cg_mean_unpack_(const cg_mean *m, float *const *grads) {
    size_t at = 0;
    for (size_t i = 0; i < m->tensors; at += m->tensor[i++].n)
        if (m->tensor[i].n) memcpy(grads[i], m->packed + at, 4 * m->tensor[i].n);
}
/* The tensor that report.at is in, which becomes the index there; m->tensors: it is in none. */
static size_t cg_mean_unpack_at_(cg_mean *m) {
    size_t i = 0;
    if (m->report.at == CG_NO_INDEX) return m->tensors;
    for (; i < m->tensors && m->report.at >= m->tensor[i].n; i++) m->report.at -= m->tensor[i].n;
    return i;
}
static cg_status cg_mean_step_(cg_mean *m, float *const *grads, const float *const *variances) {
    size_t active = 0, blamed = m->tensors;
    cg_status s;
    cg_mean_backup_(m);
    for (size_t i = 0; i < m->tensors; i++) {
        cg_mean_tensor_ *t = &m->tensor[i];
        cg_layer *layer = &m->layers[active];
        float *grad = grads ? grads[i] : NULL;
        if (!t->ef) continue;
        memset(layer, 0, sizeof *layer);
        layer->desc = cg_mean_exchange_desc_(m, m->steps, i);
        layer->n = t->ef->desc.n;
        if (t->result && grad) memcpy(t->result, grad, 4 * t->n);
        layer->x = t->result && grad ? t->result : grad;
        if (m->config.packing) layer->x = cg_mean_pack_(m, grads);
        if (m->sides) {
            memset(&m->sides[active], 0, sizeof m->sides[active]);
            m->sides[active].aux = variances ? variances[i] : NULL;
            layer->desc.side = &m->sides[active];
        }
        active++;
    }
    if (active == 1) {
        s = cg_ef_exchange(
            m->efs[0], &m->layers[0].desc, &m->transport, m->layers[0].x, m->mem, m->mem_bytes, &m->report);
        for (size_t i = 0; i < m->tensors; i++)
            if (m->tensor[i].ef) blamed = i;
        if (m->config.packing) blamed = s == CG_OK ? m->tensors : cg_mean_unpack_at_(m);
    } else {
        s = cg_ef_exchange_layers(
            m->efs, m->layers, active, m->config.ef.small, &m->transport, m->mem, m->mem_bytes, &m->report);
        if (s != CG_OK) blamed = cg_mean_blamed_(m, s);
    }
    m->report.used = NULL;
    m->report.used_len = 0;
    if (s != CG_OK) {
        cg_mean_restore_(m);
        cg_mean_step_why_(m, blamed);
        return s;
    }
    for (size_t i = 0; i < m->tensors; i++)
        if (m->tensor[i].ef && m->tensor[i].result) memcpy(grads[i], m->tensor[i].result, 4 * m->tensor[i].n);
    if (m->config.packing) cg_mean_unpack_(m, grads);
    m->steps++;
    memcpy(m->why, "ok", 3);
    if (cg_mean_optimizer_at_(m->config.optimizer)->divides) cg_mean_delay_why_(m);
    return CG_OK;
}
CG_API_ cg_status cg_mean_step_with(cg_mean *mean, float *const *grads, const float *const *variances) {
    cg_fenv_ env;
    cg_status s;
    if (!mean) return CG_E_ARG;
    if (mean->magic != CG_MEAN_MAGIC_) return CG_E_STATE; /* why says what the open found */
    if (mean->pending) return CG_E_STATE;
    env = cg_fenv_enter_();
    s = cg_mean_step_(mean, grads, variances);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_mean_step(cg_mean *mean, float *const *grads) { return cg_mean_step_with(mean, grads, NULL); }
CG_API_ cg_status cg_mean_step_flat(cg_mean *mean, float *grads) {
    size_t at = 0;
    if (!mean || mean->magic != CG_MEAN_MAGIC_ || mean->pending) return mean ? CG_E_STATE : CG_E_ARG;
    for (size_t i = 0; i < mean->tensors; i++) {
        mean->flat[i] = grads ? cg_at_mut_(grads, at) : NULL;
        at += mean->tensor[i].n;
    }
    return cg_mean_step_with(mean, mean->flat, NULL);
}

/* src/ef/mean_next.h */
/* mean_next: a step of a mean, message by message

   Offers   the public cg_mean_start and cg_mean_next
   Needs    mean_step, exchange; cg_exchange_begin_in_state_ of exchange
   Touches  the mean, the gradients
   One state after the other has its exchange, in the order of the list. Results wait until the last of them is in, and
   states that have been committed are put back if a later one fails. */

/* The tensor whose state is the one of that turn. */
static size_t cg_mean_turn_tensor_(const cg_mean *m) {
    size_t i = 0;
    while (m->tensor[i].ef != m->efs[m->turn]) i++;
    return i;
}
/* Where the gradient of this turn has been copied to, and its result waits; NULL: it is missing. */
static float *cg_mean_turn_grad_(cg_mean *m, size_t tensor) {
    const cg_mean_tensor_ *t = &m->tensor[tensor];
    if (m->config.packing) return cg_mean_pack_(m, m->grads);
    if (!m->grads || !m->grads[tensor]) return NULL;
    memcpy(t->result, m->grads[tensor], 4 * t->n);
    return t->result;
}
/* Begins the exchange of this turn. What this rank refuses is told to the others by it. */
static cg_status cg_mean_turn_begin_(cg_mean *m) {
    const size_t i = cg_mean_turn_tensor_(m);
    const cg_exchange_desc desc = cg_mean_exchange_desc_(m, m->steps, i);
    cg_ef *ef = m->efs[m->turn];
    float *grad = cg_mean_turn_grad_(m, i);
    uint8_t *at = (uint8_t *)m->mem + CG_STATE_ROOM_;
    cg_exchange_state *x = (cg_exchange_state *)m->mem;
    cg_ef_exchange_ctx_ *r = m->ctx;
    cg_status s;
    cg_ef_forget_last_(ef);
    s = cg_ef_exchange_prepare_(ef, &desc, &m->transport, grad, r, x);
    m->exchange = x;
    if (s != CG_OK || !r->buffers.exchange_bytes)
        return cg_exchange_begin_in_state_(
            x, &r->desc, &m->transport, grad, NULL, ef->desc.n, at, m->mem_bytes - CG_STATE_ROOM_, 0, s);
    s = cg_ef_exchange_begin_(ef, &desc, &m->transport, grad, at, r);
    at += (size_t)(r->buffers.vector_bytes + r->buffers.packet_bytes);
    return cg_exchange_begin_in_state_(x, &r->desc, &m->transport, r->p, r->fill.make ? &r->fill : NULL, ef->desc.n, at,
        (size_t)(r->buffers.exchange_bytes - CG_STATE_ROOM_), x->status == CG_OK, s);
}
/* Ends the exchange of this turn, which has ended with s. */
static cg_status cg_mean_turn_end_(cg_mean *m, cg_status s) {
    const size_t i = cg_mean_turn_tensor_(m);
    const cg_report before = m->report;
    cg_ef *ef = m->efs[m->turn];
    const int refused = ef->report.status != CG_OK;
    cg_exchange_report(m->exchange, &m->report);
    if (refused) {
        if (s == (cg_status)ef->report.status) cg_ef_copy_refusal_(ef, &m->report);
    } else
        s = cg_ef_exchange_moved_(
            ef, m->ctx, m->exchange, s, &m->report, m->config.packing ? m->packed : m->tensor[i].result);
    cg_ef_keep_report_(ef, &m->report);
    m->report.bytes_out += before.bytes_out;
    m->report.bytes_in += before.bytes_in;
    m->report.rounds += before.rounds;
    if (m->turn && m->report.route != before.route) m->report.route = 0;
    m->exchange = NULL;
    m->turn++;
    return s;
}
static cg_status cg_mean_next_(cg_mean *m, int code, cg_io *io) {
    cg_status s = CG_OK;
    size_t blamed = m->tensors;
    while (s == CG_OK && m->turn < m->active) {
        if (!m->exchange) {
            s = cg_mean_turn_begin_(m);
            code = 0;
        }
        if (s == CG_OK) s = cg_exchange_next(m->exchange, code, io);
        if (s == CG_AGAIN) return s;
        blamed = cg_mean_turn_tensor_(m);
        s = cg_mean_turn_end_(m, s);
    }
    m->pending = 0;
    m->report.used = NULL;
    m->report.used_len = 0;
    if (s != CG_OK) {
        if (m->config.packing) blamed = cg_mean_unpack_at_(m);
        cg_mean_restore_(m);
        cg_mean_step_why_(m, blamed);
        return s;
    }
    for (size_t i = 0; i < m->tensors; i++)
        if (m->tensor[i].ef && m->tensor[i].result) memcpy(m->grads[i], m->tensor[i].result, 4 * m->tensor[i].n);
    if (m->config.packing) cg_mean_unpack_(m, m->grads);
    m->steps++;
    memcpy(m->why, "ok", 3);
    return CG_OK;
}
CG_API_ cg_status cg_mean_start(cg_mean *mean, float *const *grads) {
    if (!mean) return CG_E_ARG;
    if (mean->magic != CG_MEAN_MAGIC_ || mean->pending) return CG_E_STATE;
    if (!mean->config.overlap)
        return cg_mean_say_(
            mean, CG_E_STATE, "this mean has no room for results that wait: open it with overlap=yes, on all ranks");
    if (cg_ef_has_trait_(&mean->config.ef, CG_EF_TAKES_VARIANCE_))
        return cg_mean_say_(mean, CG_E_UNSUPPORTED, "memory=variance takes cg_mean_step_with");
    cg_mean_backup_(mean);
    cg_report_set_(&mean->report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    mean->grads = grads;
    mean->turn = 0;
    mean->exchange = NULL;
    mean->pending = 1;
    return CG_OK;
}
CG_API_ cg_status cg_mean_next(cg_mean *mean, int last_code, cg_io *io) {
    cg_fenv_ env;
    cg_status s;
    if (!mean || !io) return CG_E_ARG;
    if (mean->magic != CG_MEAN_MAGIC_ || !mean->pending) return CG_E_STATE;
    env = cg_fenv_enter_();
    s = cg_mean_next_(mean, last_code, io);
    cg_fenv_leave_(env);
    return s;
}

/* src/ef/mean_agree.h */
/* mean_agree: memories and step counts are common to all ranks again

   Offers   cg_mean_agree_bytes_; the public cg_mean_agree
   Needs    mean, agree
   Touches  the mean's number of steps, and H and M of its states
   Every rank puts its number of steps, in quarters of 16 bits that floats hold exactly, into a vector of zeros; the sum
   over ranks has all of them. */

static cg_exchange_desc cg_mean_counts_desc_(const cg_mean *m) {
    cg_exchange_desc d = CG_ZERO;
    d.fold = CG_FOLD_SUM;
    d.flags = CG_CONFIRM;
    d.tag = cg_mean_tag_(m, UINT64_MAX, 0);
    d.common = m->common ^ CG_MEAN_MAGIC_;
    return d;
}
static uint64_t cg_mean_counts_bytes_(const cg_mean *m) {
    return cg_add_sat_(cg_mul_sat_(16, (uint64_t)m->transport.size), 63) & ~(uint64_t)63;
}
/* Bytes of m->mem that cg_mean_agree needs for the numbers of steps. */
static uint64_t cg_mean_agree_bytes_(const cg_mean *m) {
    const cg_exchange_desc d = cg_mean_counts_desc_(m);
    return cg_add_sat_(cg_mean_counts_bytes_(m), cg_exchange_memory(&d, &m->transport, 4 * (size_t)m->transport.size));
}
static cg_status cg_mean_agree_counts_(cg_mean *m, uint64_t *most) {
    const cg_exchange_desc d = cg_mean_counts_desc_(m);
    const size_t ranks = (size_t)m->transport.size, bytes = (size_t)cg_mean_counts_bytes_(m);
    float *counts = (float *)m->mem;
    cg_status s;
    memset(counts, 0, 16 * ranks);
    for (size_t i = 0; i < 4; i++) counts[4 * (size_t)m->transport.rank + i] = (float)(m->steps >> (16 * i) & 0xffff);
    s = cg_exchange(&d, &m->transport, counts, 4 * ranks, (uint8_t *)m->mem + bytes, m->mem_bytes - bytes, &m->report);
    *most = 0;
    for (size_t rank = 0; s == CG_OK && rank < ranks; rank++) {
        uint64_t count = 0;
        for (size_t i = 0; i < 4; i++) count |= (uint64_t)counts[4 * rank + i] << (16 * i);
        if (count > *most) *most = count;
    }
    return s;
}
CG_API_ cg_status cg_mean_agree(cg_mean *mean) {
    cg_fenv_ env;
    uint64_t most = 0;
    size_t i = 0;
    cg_status s;
    if (!mean) return CG_E_ARG;
    if (mean->magic != CG_MEAN_MAGIC_ || mean->pending) return CG_E_STATE;
    env = cg_fenv_enter_();
    s = cg_mean_agree_counts_(mean, &most);
    for (; i < mean->tensors && s == CG_OK; i++) {
        const cg_exchange_desc d = cg_mean_exchange_desc_(mean, most, i);
        if (!mean->tensor[i].ef || !mean->tensor[i].ef->vector[2]) continue;
        s = cg_ef_agree(mean->tensor[i].ef, &d, &mean->transport, mean->mem, mean->mem_bytes, &mean->report);
    }
    mean->report.used = NULL;
    mean->report.used_len = 0;
    if (s == CG_OK) {
        mean->steps = most;
        memcpy(mean->why, "ok", 3);
    } else cg_mean_step_why_(mean, i ? i - 1 : mean->tensors);
    cg_fenv_leave_(env);
    return s;
}

/* src/ef/mean_describe.h */
/* mean_describe: what a mean does, in words

   Offers   the public cg_mean_describe
   Needs    mean, mean_words
   Touches  the caller's text
   The first line is a configuration, and the others are comments of one, so that all of it opens the same mean. */

static void cg_mean_describe_factor_(cg_text_ *t, double factor) {
    cg_text_uint_(t, (uint64_t)factor);
    if (factor < 100.0) cg_text_char_(t, '.');
    if (factor < 100.0) cg_text_uint_(t, (uint64_t)(factor * 10.0) % 10);
}
/* " as topk:0.01, 78.0 times fewer bits than f32" */
static void cg_mean_describe_op_(cg_text_ *t, const cg_op *op, size_t n) {
    char text[CG_MEAN_OP_TEXT_ + 64];
    cg_about about;
    if (cg_op_print(op, text, sizeof text) != CG_OK) return;
    cg_text_str_(t, " as ");
    cg_text_str_(t, text);
    if (cg_op_about(op, n, &about) != CG_OK || !(about.bits > 0.0)) return;
    cg_text_str_(t, ", ");
    cg_mean_describe_factor_(t, 32.0 / about.bits);
    cg_text_str_(t, " times fewer bits than f32");
    cg_text_str_(t, about.unbiased ? ", unbiased" : ", biased");
}
static void cg_mean_describe_tensor_(const cg_mean *m, size_t i, cg_text_ *t) {
    const cg_mean_tensor_ *tensor = &m->tensor[i];
    cg_ef *ef = cg_mean_state_of_(m, i);
    const cg_ef_desc *d = ef ? &ef->desc : NULL;
    const int is_small = ef && (m->config.packing ? m->pack_op[i] == CG_SEGMENT_EXACT : tensor->n < d->small);
    const cg_op dense = cg_dense();
    cg_exchange_state x;
    cg_op op;
    cg_text_str_(t, "\n# ");
    cg_mean_tensor_name_(t, i, tensor->name);
    if (!d) {
        cg_text_str_(t, ": no values, so it takes no part");
        return;
    }
    cg_text_str_(t, ": ");
    if (tensor->rows > 1) {
        cg_text_uint_(t, tensor->rows);
        cg_text_str_(t, " x ");
        cg_text_uint_(t, tensor->n / tensor->rows);
        cg_text_str_(t, " = ");
    }
    cg_text_uint_(t, tensor->n);
    cg_text_str_(t, " values");
    op = d->op;
    if (is_small || cg_same_op_(&op, &dense)) {
        cg_text_str_(t, is_small ? " as exact f32, because it is small" : " as exact f32");
        return;
    }
    cg_mean_describe_op_(t, &op, tensor->n);
    cg_mean_resolve_(m, ef, d->dense_steps + d->warmup.stages * (d->warmup.period ? d->warmup.period : 1), i,
        m->transport.rank, 0, &x);
    cg_text_str_(t, "; by ");
    cg_text_str_(t, cg_route_name(x.plan.route));
    if (m->config.packing) cg_text_str_(t, ", in one packet with the others");
    if (ef->carry) cg_text_str_(t, ", whose second leg has a memory of its own");
}
CG_API_ cg_status cg_mean_describe(const cg_mean *mean, char *text, size_t cap) {
    cg_fenv_ env;
    cg_text_ t = cg_mean_text_(text, cap);
    int is_cut;
    if (text && cap) text[0] = 0;
    if (!mean || !text) return CG_E_ARG;
    if (mean->magic != CG_MEAN_MAGIC_) return CG_E_STATE;
    if (!cap) return CG_E_CAPACITY;
    env = cg_fenv_enter_();
    cg_mean_config_print_(&mean->config, &t);
    cg_text_str_(&t, "\n# rank ");
    cg_text_uint_(&t, (uint64_t)mean->transport.rank);
    cg_text_str_(&t, " of ");
    cg_text_uint_(&t, (uint64_t)mean->transport.size);
    cg_text_str_(&t, ", ");
    cg_text_uint_(&t, mean->steps);
    cg_text_str_(&t, " steps made");
    if (mean->config.optimizer) {
        cg_text_str_(&t, "\n# ");
        cg_text_str_(&t, cg_mean_optimizer_at_(mean->config.optimizer)->says);
    }
    if (mean->config.ef.dense_steps) {
        cg_text_str_(&t, "\n# the first ");
        cg_text_uint_(&t, mean->config.ef.dense_steps);
        cg_text_str_(&t, " steps are dense");
    }
    for (size_t i = 0; i < mean->tensors; i++) cg_mean_describe_tensor_(mean, i, &t);
    cg_text_char_(&t, '\n');
    is_cut = t.at == t.end;
    *t.at = 0;
    cg_fenv_leave_(env);
    return is_cut ? CG_E_CAPACITY : CG_OK;
}

/* src/ef/mean_save.h */
/* mean_save: the state of a mean as bytes, and back: as it was, for another number of ranks, for other tensors

   Offers   the public cg_mean_save_bytes, cg_mean_save, cg_mean_load, cg_mean_load_mean, cg_mean_load_moved
   Needs    mean, save
   Touches  the caller's buffer; loading all of the states, and the number of steps
   A blob is little-endian, every part in whole words; nothing is loaded before all blobs have been checked.

   byte 0  "cgmn"  4 version  8 bytes of all  16 steps  24 tensors  32 ranks  36 rank  40 bytes of the configuration
       44 1: one state has all tensors (pack=), that of the first with values  48 zeros
       112 checksum of everything else, as of a packet
   128 the configuration; then of every tensor n, rows, bytes of its name, bytes of its state (u64 each), its name and
       its state as cg_ef_save has it (none if n is 0); all but the states filled to a word with zeros */

enum {
    CG_MEAN_HEADER_BYTES_ = 128,
    CG_MEAN_SEAL_OFFSET_ = 112,
    CG_MEAN_VERSION_ = 1,
    CG_MEAN_RECORD_BYTES_ = 32,
    CG_MEAN_BLOB_MAGIC_ = 0x6e6d6763 /* "cgmn" */
};
static uint64_t cg_mean_words_(uint64_t bytes) { return cg_add_sat_(bytes, 3) & ~(uint64_t)3; }
static size_t cg_mean_text_len_(const char *text) { return text ? cg_text_len_(text) : 0; }
/* The configuration in text, which has room for CG_MEAN_LINE_ bytes; returns its length. */
enum { CG_MEAN_LINE_ = CG_MEAN_OP_TEXT_ + 1024 };
static size_t cg_mean_line_(const cg_mean *m, char *text) {
    cg_text_ t = cg_mean_text_(text, CG_MEAN_LINE_);
    cg_mean_config_print_(&m->config, &t);
    *t.at = 0;
    return (size_t)(t.at - text);
}
static uint64_t cg_mean_blob_bytes_(const cg_mean *m) {
    char line[CG_MEAN_LINE_];
    uint64_t bytes = CG_MEAN_HEADER_BYTES_ + cg_mean_words_(cg_mean_line_(m, line));
    for (size_t i = 0; i < m->tensors; i++) {
        const cg_mean_tensor_ *t = &m->tensor[i];
        bytes = cg_add_sat_(bytes, CG_MEAN_RECORD_BYTES_ + cg_mean_words_(cg_mean_text_len_(t->name)));
        if (t->ef) bytes = cg_add_sat_(bytes, cg_ef_save_bytes(t->ef));
    }
    return bytes;
}
CG_API_ size_t cg_mean_save_bytes(const cg_mean *mean) {
    return mean && mean->magic == CG_MEAN_MAGIC_ ? cg_size_or_zero_(cg_mean_blob_bytes_(mean)) : 0;
}
static uint8_t *cg_mean_put_text_(uint8_t *p, const char *text, size_t len) {
    if (len) memcpy(p, text, len);
    for (; len % 4; len++) p[len] = 0;
    return p + len;
}
CG_API_ cg_status cg_mean_save(const cg_mean *mean, void *buf, size_t cap, size_t *len) {
    char line[CG_MEAN_LINE_];
    uint8_t *p = (uint8_t *)buf;
    cg_status s = CG_OK;
    size_t line_len, bytes;
    if (len) *len = 0;
    if (!mean || !buf || !len) return CG_E_ARG;
    if (mean->magic != CG_MEAN_MAGIC_ || mean->pending) return CG_E_STATE;
    bytes = cg_mean_save_bytes(mean);
    if (!bytes || cap < bytes) return CG_E_CAPACITY;
    line_len = cg_mean_line_(mean, line);
    memset(p, 0, CG_MEAN_HEADER_BYTES_);
    cg_put32_(p, CG_MEAN_BLOB_MAGIC_);
    cg_put32_(p + 4, CG_MEAN_VERSION_);
    cg_put64_(p + 8, bytes);
    cg_put64_(p + 16, mean->steps);
    cg_put64_(p + 24, mean->tensors);
    cg_put32_(p + 32, (uint32_t)mean->transport.size);
    cg_put32_(p + 36, (uint32_t)mean->transport.rank);
    cg_put32_(p + 40, (uint32_t)line_len);
    cg_put32_(p + 44, mean->config.packing != CG_PACK_NONE_);
    p = cg_mean_put_text_(p + CG_MEAN_HEADER_BYTES_, line, line_len);
    for (size_t i = 0; i < mean->tensors && s == CG_OK; i++) {
        const cg_mean_tensor_ *t = &mean->tensor[i];
        const size_t name_len = cg_mean_text_len_(t->name), state = t->ef ? cg_ef_save_bytes(t->ef) : 0;
        size_t saved = 0;
        cg_put64_(p, t->n);
        cg_put64_(p + 8, t->rows);
        cg_put64_(p + 16, name_len);
        cg_put64_(p + 24, state);
        p = cg_mean_put_text_(p + CG_MEAN_RECORD_BYTES_, t->name, name_len);
        if (t->ef) s = cg_ef_save(t->ef, p, state, &saved);
        p += state;
    }
    if (s != CG_OK) return s;
    cg_seal_put_((uint8_t *)buf, bytes, CG_MEAN_SEAL_OFFSET_);
    *len = bytes;
    return CG_OK;
}

/* ---- blobs that are read ---- */

/* A tensor of a blob. */
typedef struct cg_mean_record_ {
    const uint8_t *blob, *end;
    const uint8_t *at; /* of the record */
    size_t index;
    size_t n, rows, name_len, state_bytes;
    const char *name;
    const uint8_t *state;
} cg_mean_record_;
/* Reads the record at r->at; 0: it does not fit in, or says what cannot be. */
static int cg_mean_record_read_(cg_mean_record_ *r) {
    uint64_t room = (uint64_t)(r->end - r->at), name, state;
    if (room < CG_MEAN_RECORD_BYTES_) return 0;
    r->n = cg_size_or_zero_(cg_get64_(r->at));
    r->rows = cg_size_or_zero_(cg_get64_(r->at + 8));
    name = cg_get64_(r->at + 16);
    state = cg_get64_(r->at + 24);
    if (cg_get64_(r->at) > SIZE_MAX / 8 || cg_get64_(r->at + 8) > SIZE_MAX / 8) return 0;
    room -= CG_MEAN_RECORD_BYTES_;
    if (name > room || cg_mean_words_(name) > room || state > room - cg_mean_words_(name)) return 0;
    r->name_len = (size_t)name;
    r->state_bytes = (size_t)state;
    r->name = (const char *)(const void *)(r->at + CG_MEAN_RECORD_BYTES_);
    r->state = r->at + CG_MEAN_RECORD_BYTES_ + (size_t)cg_mean_words_(name);
    return 1;
}
/* The record of that index; *r has been opened, and its records have been checked. */
static void cg_mean_record_seek_(cg_mean_record_ *r, size_t index) {
    if (index < r->index) {
        r->index = 0;
        r->at = r->blob + CG_MEAN_HEADER_BYTES_ + (size_t)cg_mean_words_(cg_get32_(r->blob + 40));
    }
    cg_mean_record_read_(r);
    for (; r->index < index; r->index++) {
        r->at = r->state + r->state_bytes;
        cg_mean_record_read_(r);
    }
}
/* Checks the frame of a blob and opens it at its first record. *values: those of all tensors. */
static cg_status cg_mean_blob_open_(cg_mean *m, cg_mean_record_ *r, const void *buf, size_t len, uint64_t *values) {
    const uint8_t *p = (const uint8_t *)buf;
    uint64_t tensors;
    *values = 0;
    if (!p) return cg_mean_say_(m, CG_E_ARG, "the saved state is NULL");
    if (len < CG_MEAN_HEADER_BYTES_ || cg_get32_(p) != CG_MEAN_BLOB_MAGIC_)
        return cg_mean_say_(m, CG_E_CORRUPT, "these bytes are not a state that cg_mean_save has written");
    if (cg_get32_(p + 4) != CG_MEAN_VERSION_)
        return cg_mean_say_(m, CG_E_VERSION, "a later version of compgrad has written this state");
    if (cg_get64_(p + 8) != len || len % 4 || !cg_seal_is_intact_(p, len, CG_MEAN_SEAL_OFFSET_))
        return cg_mean_say_(m, CG_E_CORRUPT, "the saved state is cut off or damaged: its length or checksum is wrong");
    tensors = cg_get64_(p + 24);
    r->blob = p;
    r->end = p + len;
    r->index = 0;
    if (cg_mean_words_(cg_get32_(p + 40)) > len - CG_MEAN_HEADER_BYTES_ || cg_get32_(p + 32) > 0x7fffffffu ||
        cg_get32_(p + 44) > 1 || !cg_get32_(p + 32) || cg_get32_(p + 36) >= cg_get32_(p + 32))
        return cg_mean_say_(m, CG_E_CORRUPT, "the header of the saved state says what cannot be");
    r->at = p + CG_MEAN_HEADER_BYTES_ + (size_t)cg_mean_words_(cg_get32_(p + 40));
    for (uint64_t i = 0; i < tensors; i++) {
        if (!cg_mean_record_read_(r) || (r->state_bytes != 0) != (r->n && !(cg_get32_(p + 44) && *values)))
            return cg_mean_say_(m, CG_E_CORRUPT, "a tensor of the saved state is damaged");
        *values = cg_add_sat_(*values, r->n);
        r->at = r->state + r->state_bytes;
    }
    if (r->at != r->end) return cg_mean_say_(m, CG_E_CORRUPT, "the saved state has more bytes than its tensors");
    r->at = p + CG_MEAN_HEADER_BYTES_ + (size_t)cg_mean_words_(cg_get32_(p + 40));
    cg_mean_record_seek_(r, 0);
    return CG_OK;
}
static int cg_mean_same_name_(const cg_mean_record_ *r, const char *name) {
    size_t i = 0;
    if (r->name_len != cg_mean_text_len_(name)) return 0;
    while (i < r->name_len && r->name[i] == name[i]) i++;
    return i == r->name_len;
}
static void cg_mean_say_tensor_(cg_text_ *t, uint64_t n, uint64_t rows, const char *name, size_t name_len) {
    cg_text_str_(t, name_len ? "'" : "");
    for (size_t j = 0; j < name_len && j < 40; j++) cg_text_char_(t, name[j] >= ' ' && name[j] <= '~' ? name[j] : '?');
    cg_text_str_(t, name_len ? "' of " : "nameless of ");
    cg_text_uint_(t, n);
    cg_text_str_(t, " values");
    if (rows < 2) return;
    cg_text_str_(t, " in ");
    cg_text_uint_(t, rows);
    cg_text_str_(t, " rows");
}
/* Has it one state for all tensors, as this mean has, or as it has not? */
static cg_status cg_mean_blob_packed_(cg_mean *m, const cg_mean_record_ *r) {
    if (cg_get32_(r->blob + 44) == (m->config.packing != CG_PACK_NONE_)) return CG_OK;
    return cg_mean_say_(m, CG_E_MISMATCH,
        m->config.packing ? "the saved state was opened without pack=, and this mean with it"
                          : "the saved state was opened with pack=, and this mean without");
}
/* Are its tensors those of this mean, by number, name and shape? */
static cg_status cg_mean_blob_same_(cg_mean *m, cg_mean_record_ *r) {
    const uint64_t tensors = cg_get64_(r->blob + 24);
    cg_text_ t = cg_mean_text_(m->why, sizeof m->why);
    for (size_t i = 0; i < m->tensors && tensors == m->tensors; i++) {
        const cg_mean_tensor_ *mine = &m->tensor[i];
        cg_mean_record_seek_(r, i);
        if (r->n == mine->n && r->rows == mine->rows && cg_mean_same_name_(r, mine->name)) continue;
        cg_mean_say_(m, CG_E_MISMATCH, "the saved state is of other tensors");
        cg_text_str_(&t, "tensor ");
        cg_text_uint_(&t, i);
        cg_text_str_(&t, " of the saved state is ");
        cg_mean_say_tensor_(&t, r->n, r->rows, r->name, r->name_len);
        cg_text_str_(&t, ", and of this mean ");
        cg_mean_say_tensor_(&t, mine->n, mine->rows, mine->name, cg_mean_text_len_(mine->name));
        *t.at = 0;
        return CG_E_MISMATCH;
    }
    if (tensors == m->tensors) return CG_OK;
    cg_mean_say_(m, CG_E_MISMATCH, "the saved state is of other tensors");
    cg_text_str_(&t, "the saved state has ");
    cg_text_uint_(&t, tensors);
    cg_text_str_(&t, " tensors, and this mean ");
    cg_text_uint_(&t, m->tensors);
    cg_text_str_(&t, "; cg_mean_load_moved takes other tensors of as many values");
    *t.at = 0;
    return CG_E_MISMATCH;
}
/* A state that takes the blob of a tensor as its own, to read it: that of any active tensor, with another n. */
static void cg_mean_reader_(const cg_mean *m, const cg_mean_record_ *r, cg_ef *reader) {
    *reader = *m->efs[0];
    reader->desc.n = r->n;
    reader->warm_count = r->state_bytes >= CG_EF_HEADER_BYTES_ ? cg_size_or_zero_(cg_get64_(r->state + 64)) : 0;
}
static cg_status cg_mean_state_why_(cg_mean *m, size_t tensor, const char *name, cg_status s) {
    cg_text_ t = cg_mean_text_(m->why, sizeof m->why);
    cg_mean_say_(m, s, "the saved state of a tensor does not fit");
    cg_mean_tensor_name_(&t, tensor, name);
    cg_text_str_(&t,
        s == CG_E_MISMATCH ? ": its saved state is of another kind of memory, operator or second leg: open the mean as "
                             "it was opened, with '"
            : s == CG_E_VERSION ? ": a later version of compgrad has written its state; it was opened with '"
                                : ": its saved state is damaged; the mean was opened with '");
    cg_mean_config_print_(&m->config, &t);
    cg_text_char_(&t, '\'');
    *t.at = 0;
    return s;
}

/* ---- loading ---- */

/* The blobs of all ranks that saved: one each, of the same step. */
static cg_status cg_mean_blobs_all_(cg_mean *m, const cg_mean_record_ *r, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (cg_get32_(r[i].blob + 32) != count)
            return cg_mean_say_(m, CG_E_ARG, "give the states of all ranks that were saved, each once");
        for (size_t j = 0; j < i; j++)
            if (cg_get32_(r[j].blob + 36) == cg_get32_(r[i].blob + 36))
                return cg_mean_say_(m, CG_E_ARG, "the state of a rank is given twice: give each once");
        if (cg_get64_(r[i].blob + 16) != cg_get64_(r[0].blob + 16))
            return cg_mean_say_(
                m, CG_E_MISMATCH, "the states were saved after different steps: take those of one step");
    }
    return CG_OK;
}
/* Room for `count` records and pointers in the memory of exchanges, which is not in use now. */
static cg_status cg_mean_load_room_(cg_mean *m, size_t count) {
    if (!count) return cg_mean_say_(m, CG_E_ARG, "no saved state is given");
    if (count > m->mem_bytes / (sizeof(cg_mean_record_) + sizeof(void *) + sizeof(size_t)))
        return cg_mean_say_(m, CG_E_MEMORY, "so many saved states at once do not fit into the memory of this mean");
    return CG_OK;
}
static cg_status cg_mean_blobs_open_(
    cg_mean *m, cg_mean_record_ *r, const void *const *bufs, const size_t *lens, size_t count, uint64_t *values) {
    cg_status s = CG_OK;
    for (size_t i = 0; i < count && s == CG_OK; i++) {
        uint64_t more;
        s = cg_mean_blob_open_(m, &r[i], bufs[i], lens[i], &more);
        if (s == CG_OK && i && more != *values)
            s = cg_mean_say_(m, CG_E_MISMATCH, "the saved states have different numbers of values");
        *values = more;
    }
    return s;
}
/* cg_mean_load and cg_mean_load_mean. exact: one blob, of as many ranks. */
static cg_status cg_mean_load_(cg_mean *m, const void *const *bufs, const size_t *lens, size_t count, int exact) {
    cg_mean_record_ *r = (cg_mean_record_ *)m->mem;
    const void **state = (const void **)(void *)(r + count);
    size_t *state_bytes = (size_t *)(void *)(state + count);
    uint64_t values;
    cg_status s = cg_mean_load_room_(m, count);
    if (s == CG_OK) s = cg_mean_blobs_open_(m, r, bufs, lens, count, &values);
    for (size_t i = 0; i < count && s == CG_OK; i++) s = cg_mean_blob_packed_(m, &r[i]);
    for (size_t i = 0; i < count && s == CG_OK; i++) s = cg_mean_blob_same_(m, &r[i]);
    if (s == CG_OK && !exact) s = cg_mean_blobs_all_(m, r, count);
    if (s == CG_OK && exact && cg_get32_(r->blob + 32) != (uint32_t)m->transport.size)
        s = cg_mean_say_(m, CG_E_MISMATCH,
            "this state was saved by another number of ranks: give those of all of them to cg_mean_load_mean");
    for (int load = 0; load < 2; load++) /* all are checked before any is loaded */
        for (size_t i = 0; i < m->tensors && s == CG_OK; i++) {
            cg_ef *ef = m->tensor[i].ef;
            for (size_t j = 0; ef && j < count && s == CG_OK; j++) {
                cg_mean_record_seek_(&r[j], i);
                state[j] = r[j].state;
                state_bytes[j] = r[j].state_bytes;
                if (!load) s = cg_ef_blob_check_(ef, r[j].state, r[j].state_bytes, exact);
            }
            if (ef && load) s = cg_ef_load_(ef, state, state_bytes, count, exact);
            if (s != CG_OK) cg_mean_state_why_(m, i, m->tensor[i].name, s);
        }
    if (s != CG_OK) return s;
    m->steps = cg_get64_(r->blob + 16);
    return cg_mean_say_(m, CG_OK, cg_status_str(CG_OK));
}
static cg_status cg_mean_load_ready_(cg_mean *m, const void *const *bufs, const size_t *lens) {
    if (!m) return CG_E_ARG;
    if (m->magic != CG_MEAN_MAGIC_ || m->pending) return CG_E_STATE;
    return bufs && lens ? CG_OK : cg_mean_say_(m, CG_E_ARG, "no saved state is given: bufs or lens is NULL");
}
CG_API_ cg_status cg_mean_load(cg_mean *mean, const void *buf, size_t len) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_mean_load_ready_(mean, &buf, &len);
    if (s == CG_OK) s = cg_mean_load_(mean, &buf, &len, 1, 1);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_mean_load_mean(cg_mean *mean, const void *const *bufs, const size_t *lens, size_t count) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_mean_load_ready_(mean, bufs, lens);
    if (s == CG_OK) s = cg_mean_load_(mean, bufs, lens, count, 0);
    cg_fenv_leave_(env);
    return s;
}

/* ---- other boundaries ---- */

/* Value i of a vector of the tensor at which the records stand: the mean over blobs, at scale 1. A carry is what one
   rank withheld of a mean: as many times as there are ranks, it belongs to the sum of their residuals. Of several ranks
   the mean of all h is H. */
static double cg_mean_moved_value_(const cg_ef *reader, const cg_mean_record_ *r, size_t count, int which, size_t i) {
    const int has_shift = cg_ef_has_trait_(&reader->desc, CG_EF_HAS_SHIFT_);
    double sum = 0.0;
    for (size_t j = 0; j < count; j++) {
        sum += cg_ef_blob_value_(reader, r[j].state, has_shift && which == 0 && count > 1 ? 2 : which, i);
        if (which == 0 && !has_shift)
            sum += cg_times64_((double)cg_get32_(r[j].blob + 32), cg_ef_blob_carry_(reader, r[j].state, i));
    }
    return sum / (double)count;
}
/* Fills one vector of the state of a tensor from value `from` on of all values of the blobs. */
static void cg_mean_move_vector_(cg_mean *m, cg_ef *ef, cg_mean_record_ *r, size_t count, int which, uint64_t from) {
    float e[CG_EF_BUCKET_];
    cg_ef reader;
    uint64_t first = 0; /* of the tensor at which the records stand */
    size_t index = 0;
    for (size_t j = 0; j < count; j++) cg_mean_record_seek_(&r[j], 0);
    cg_mean_reader_(m, r, &reader);
    for (size_t i = 0; i < ef->desc.n; i++) {
        float v;
        while (from + i - first >= r->n) {
            first += r->n;
            index++;
            for (size_t j = 0; j < count; j++) cg_mean_record_seek_(&r[j], index);
            cg_mean_reader_(m, r, &reader);
        }
        v = cg_saturate_((float)cg_mean_moved_value_(&reader, r, count, which, (size_t)(from + i - first)));
        if (which || !ef->bytes) {
            ef->vector[which][i] = v;
            continue;
        }
        e[i % CG_EF_BUCKET_] = v;
        if (i % CG_EF_BUCKET_ == CG_EF_BUCKET_ - 1 || i == ef->desc.n - 1)
            cg_residual8_encode_(cg_kernels_now_(), ef, i / CG_EF_BUCKET_, e);
    }
}
/* Checks every state of every blob, and adds up the bounds of their magnitudes. *begun: none has yet to begin. */
static cg_status cg_mean_moved_check_(cg_mean *m, cg_mean_record_ *r, size_t count, double *reach, int *begun) {
    const size_t tensors = cg_size_or_zero_(cg_get64_(r->blob + 24));
    cg_ef reader;
    *reach = 0.0;
    *begun = 1;
    for (size_t j = 0; j < count; j++)
        for (size_t i = 0; i < tensors; i++) {
            cg_status s;
            cg_mean_record_seek_(&r[j], i);
            if (cg_get64_(r[j].blob + 24) != tensors || (j && (cg_mean_record_seek_(r, i), r->n != r[j].n)))
                return cg_mean_say_(m, CG_E_MISMATCH, "the saved states are of different tensors");
            if (!r[j].n) continue;
            cg_mean_reader_(m, &r[j], &reader);
            s = cg_ef_blob_check_(&reader, r[j].state, r[j].state_bytes, 0);
            if (s != CG_OK) return cg_mean_state_why_(m, i, NULL, s);
            *reach += 2.0 * cg_get_double_(r[j].state + 176) / (double)cg_as_float_(cg_get32_(r[j].state + 192));
            *begun &= cg_get64_(r[j].state + CG_EF_MARK_OFFSET_) != 0;
        }
    return CG_OK;
}
/* The one state of all tensors, whose boundaries it does not know. */
static cg_status cg_mean_load_packed_(cg_mean *m, cg_mean_record_ *r, size_t count) {
    const void **state = (const void **)(void *)(r + count);
    size_t *state_bytes = (size_t *)(void *)(state + count);
    cg_status s = CG_OK;
    for (size_t j = 0; j < count && m->active; j++) {
        cg_mean_record_seek_(&r[j], 0);
        while (!r[j].n) cg_mean_record_seek_(&r[j], r[j].index + 1);
        state[j] = r[j].state;
        state_bytes[j] = r[j].state_bytes;
    }
    if (m->active) s = cg_ef_load_(m->efs[0], state, state_bytes, count, count == 1);
    if (s != CG_OK) return cg_mean_state_why_(m, 0, NULL, s);
    m->steps = cg_get64_(r->blob + 16);
    return cg_mean_say_(m, CG_OK, cg_status_str(CG_OK));
}
static cg_status cg_mean_load_moved_(cg_mean *m, const void *const *bufs, const size_t *lens, size_t count) {
    cg_mean_record_ *r = (cg_mean_record_ *)m->mem;
    uint64_t values = 0, mine = 0, from = 0, ef_steps;
    double reach;
    int begun;
    cg_status s = cg_mean_load_room_(m, count);
    if (s == CG_OK) s = cg_mean_blobs_open_(m, r, bufs, lens, count, &values);
    if (s != CG_OK) return s;
    for (size_t i = 0; i < m->tensors; i++) mine = cg_add_sat_(mine, m->tensor[i].n);
    if (mine != values)
        return cg_mean_say_(
            m, CG_E_MISMATCH, "the saved state has another number of values in all its tensors together");
    if (count > 1) s = cg_mean_blobs_all_(m, r, count);
    else if (cg_get32_(r->blob + 32) != (uint32_t)m->transport.size)
        s = cg_mean_say_(
            m, CG_E_MISMATCH, "this state was saved by another number of ranks: give those of all of them");
    for (size_t i = 0; i < count && s == CG_OK; i++) s = cg_mean_blob_packed_(m, &r[i]);
    if (s == CG_OK && m->config.packing) return cg_mean_load_packed_(m, r, count);
    if (s == CG_OK && m->active) s = cg_mean_moved_check_(m, r, count, &reach, &begun);
    if (s != CG_OK) return s;
    m->steps = cg_get64_(r->blob + 16);
    for (size_t i = 0; i < m->tensors; from += m->tensor[i++].n) {
        cg_ef *ef = m->tensor[i].ef;
        if (!ef) continue;
        cg_mean_record_seek_(r, 0);
        while (!r->n) cg_mean_record_seek_(r, r->index + 1);
        ef_steps = cg_get64_(r->state + 24);
        cg_ef_reset(ef);
        for (int which = 0; which < 3; which++)
            if (ef->vector[which] || (!which && ef->bytes)) cg_mean_move_vector_(m, ef, r, count, which, from);
        ef->steps = ef_steps;
        ef->reach = ef->size = reach < 1e300 ? reach : 1e300;
        if (begun) cg_ef_mark_restart_(ef);
    }
    return cg_mean_say_(m, CG_OK, cg_status_str(CG_OK));
}
CG_API_ cg_status cg_mean_load_moved(cg_mean *mean, const void *const *bufs, const size_t *lens, size_t count) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_mean_load_ready_(mean, bufs, lens);
    if (s == CG_OK) s = cg_mean_load_moved_(mean, bufs, lens, count);
    cg_fenv_leave_(env);
    return s;
}

/* src/core/base/fp_end.h */
/* fp_end: gives the floating-point flags back to the includer

   Offers   the end of what fp_begin began
   Needs    fp_begin
   Touches  the compiler's floating-point state */
#if defined(__clang__)
#  pragma STDC FP_CONTRACT DEFAULT
#  if defined(__x86_64__) || defined(__i386__)
#    pragma float_control(pop)
#  endif
#elif defined(__GNUC__)
#  pragma GCC pop_options
#endif
#if defined(COMPGRAD_ONLY) && defined(__GNUC__)
#  pragma GCC diagnostic pop
#endif

/* src/core/base/end.h */
/* end: closes the implementation that begin.h of the same header opened

   Offers   the #endif
   Needs    begin
   Touches  nothing */
#endif /* COMPGRAD_IMPLEMENTATION */
