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
