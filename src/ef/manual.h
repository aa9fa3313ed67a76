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
