/* compgrad.h: made of the files in src/ by "make headers"; change those, not this one. */

/* src/core/manual.h */
/* compgrad.h - gradient compression in one header.                                        version 0.1.0, MIT licence
   Turns a vector of n floats into a small packet, and a packet back into n floats.

       #define COMPGRAD_IMPLEMENTATION                  // in exactly one .c or .cpp file
       #include "compgrad.h"

       cg_op  op  = cg_then(cg_topk(0.01f), cg_f16());  // keep the largest 1 % of the values, each as a half float
       cg_tag tag = { 42, step, layer, rank };          // seed, step, tensor, rank
       size_t cap = cg_bound(&op, n), len;
       void  *packet = malloc(cap), *scratch = malloc(cg_scratch(&op, n));

       cg_status s = cg_compress(&op, &tag, grad, n, packet, cap, &len, scratch, cg_scratch(&op, n));
       if (s != CG_OK) { puts(cg_status_str(s)); return 1; }
       // ... send the len bytes of the packet; whoever receives them adds a quarter of the gradient to a sum:
       s = cg_decompress_add(packet, len, 0.25f, sum, n);

   THE IDEA. An operator is a row of stages. Every published method is one choice for each stage:

       x --> sample --> transform --> select --> (clip) --> quantize --> code --> packet

     sample     keeps a random subset. Every rank computes it from the tag, so no indices are sent.
     transform  rotates the vector at random, takes frequencies, or factors a matrix.
     select     keeps some of the values, and sends their indices.
     clip       cuts large values off, where that is wanted.
     quantize   writes each value in a few bits, often with a scale for each bucket of neighbouring values.
     code       writes indices or values in another, lossless way.

   Each stage sees the output of the stage before it as a dense vector. A stage that is left out passes values on as
   they are: an operator of zeros sends 32-bit floats.

   COMPOSING. cg_then(a, b) takes the stages of a and of b. The same operator as text, for files and command lines, is
   cg_op_parse(&op, "randk:0.1:unscaled|topk:0.01|absmax:4:512|huffman"); cg_op_parse_why also says what is wrong with
   a text, and where. Any sample, transform, selection, clip, quantizer and code go together, in this order, except that
     - no stage may be given twice; indices and values can have one code each;
     - lowrank and atomo are complete operators: no stage can be added to them;
     - given, bins and variance take neither a sample nor a transform; lloyd needs rotate, and takes no selection;
     - mean needs side: values of both signs have no mean worth sending;
     - a code for indices needs a selection that sends indices;
     - a code for values fits every quantizer but f16, flex16, natural, sign, efsign, lloyd, mean and your own; with
       dense and bf16 it must be huffman, which codes their exponents; quartic needs a quantizer of three levels
       (terngrad, trits, strom, absmax:2, flexpoint:2 or levels:1).
   If an operator breaks these rules, cg_bound returns 0, and cg_compress, cg_op_parse and cg_op_print return CG_E_ARG.

   MEMORY. The caller owns every buffer, and no function allocates. There are no globals, except one word that caches
   which SIMD instructions the CPU has. cg_bound(op, n) bytes always suffice for a packet, and cg_scratch(op, n) bytes
   for the scratch of cg_compress; decoding needs no scratch. cg_scratch is 0 unless the operator has a selection, a
   matrix, or a sample or transform before a codec of your own. Buffers may have any alignment, and n may be any
   number, 0 included. Nothing beyond a stated capacity is read or written. Functions use at most 40 KiB of stack if
   the compiler optimises.

   ERRORS. Every function that can fail returns a cg_status; CG_OK is 0, and cg_status_str says what to do about the
   others. A cg_report says more: which buffer is too small and how many bytes it needs, which value is not finite,
   which n the operator takes. Exchanges fill one in, and cg_compress_with does if cg_extra.report points to one;
   cg_report_print makes a sentence of it. cg_compress refuses NaN and Inf with CG_E_NONFINITE. (An operator with a
   sample, or with given, checks only the values that it would send.) A decoder accepts any bytes at all: it returns an
   error or a result, never reads or writes out of range, and changes y only if it returns CG_OK; CG_DECODE_DIRECT
   gives up the last of these. The checksum finds accidents; the decoder's safety does not depend on it. But a packet is
   read twice, to check it and to decode it: copy one that somebody else can still write to (shared memory, RDMA) first.

   THREADS. Every function is re-entrant. With COMPGRAD_OPENMP (and -fopenmp) several threads share the work on large
   vectors; no bit of any result depends on their number.

   DETERMINISM. The same input, operator and tag give the same packet, and the same packet gives the same floats, on
   every CPU, compiler, number of threads and byte order. Results do not depend on the caller's rounding mode,
   flush-to-zero setting or -ffast-math; the caller's settings are restored. (Clang can undo -ffast-math for x86 only.
   For other CPUs, such as AArch64 and WebAssembly, the implementation does not compile with both; declarations do.)
   Random numbers are a function of the tag and the index.

   SEGMENTS. Tensors that lie one behind the other in x can share a packet: cg_extra.segments says how long they are,
   which of them have an operator of their own, and which are exact (norms, biases). Each keeps its own scales,
   selection and random numbers: the floats are those of a call for each tensor, with tag.tensor + i. A packet of 200
   tensors of 300 values takes 4 to 10 bytes for each of them beside their values, in place of a header of 168.
   CG_SEGMENTS_GLOBAL selects from all of them together.

       cg_segments seg = CG_ZERO;
       cg_extra side = CG_ZERO;
       seg.n = lengths, seg.count = tensors;            // of all tensors in x, one behind the other
       seg.op = numbers;                                // CG_SEGMENT_OP, or CG_SEGMENT_EXACT for norms and biases
       side.segments = &seg;                            // cap: cg_bound_with; scratch: cg_scratch_with
       s = cg_compress_with(&op, &tag, &side, x, n, packet, cap, &len, scratch, cg_scratch_with(&op, &side, n));

   Whatever takes a packet takes one with segments; version 0.1 refuses it with CG_E_VERSION. cg_segment_inspect looks
   at one segment, and cg_segment_copy makes a packet of it.

   ERROR FEEDBACK. A biased operator drops a part of the gradient. Error feedback (compgrad_ef.h) keeps that part, the
   residual, and adds it to the next gradient; without it training stalls. An unbiased operator with omega > 1 would
   make the residual grow without bound: use it :unscaled, or divide its result by 1 + omega, as compgrad_ef.h does.

   CONFIGURATION, defined before the include:
     COMPGRAD_IMPLEMENTATION   compile the functions here, in one file of the program
     COMPGRAD_STATIC           ... as static functions, private to that file
     COMPGRAD_LINKED           another object of the program has the functions: COMPGRAD_IMPLEMENTATION has no effect
     COMPGRAD_NO_SIMD          plain C, without SIMD instructions
     COMPGRAD_NO_AVX512        AVX2 at most
     COMPGRAD_ONLY             only the stages and codes that have a COMPGRAD_WITH_..., below
     COMPGRAD_OPENMP           use OpenMP, if the compiler has it switched on
     COMPGRAD_ASSERT(c)        how to check a condition inside the library; default: not at all
   The functions need memcpy, memset and memmove from outside (with tcc also its runtime); -ffreestanding works.

   LEAVING OUT. A small device carries what it uses: define COMPGRAD_ONLY, and for each name in the table of operators
   below COMPGRAD_WITH_ and the name in capitals, as in COMPGRAD_WITH_TOPK and COMPGRAD_WITH_F16; presets need the
   stages that they are made of. Dense f32 values, packed symbols and the codes eliasfano and bitmap are always there.
   COMPGRAD_WITH_SEGMENTS keeps packets with segments. An operator or packet with a stage that was left out, or with
   segments that were, is CG_E_VERSION, and the sentence names the stage: that of cg_op_parse_why, of cg_op_about, or
   of a report. With gcc -Os, COMPGRAD_NO_SIMD,
   -ffunction-sections, -fno-asynchronous-unwind-tables and -Wl,--gc-sections, topk and f16 take less than 40 KB.

   CHOOSING. cg_op_about(&op, n, &about) says, without a vector, whether an operator is unbiased, how large its error is
   at most, how many bits it takes, whether it needs error feedback and whether all its packets have one length; or why
   it does not take n, and which n it takes. The table below says the same of vectors of any length, by the bounds of
   the papers, of which about.omega is often the smaller one.

   OPERATORS. The text of an operator is its name and its parameters. In C it is a function with cg_ before the name
   and the same parameters in the same order: topk:0.01 is cg_topk(0.01f). Text and C differ in these places:

     text                            C
     a|b                             cg_then(a, b)
     a|golomb (or another code)      cg_coded(a, CG_CODE_GOLOMB)
     absmax:4:512:nearest            cg_nearest(cg_absmax(4, 512)): to nearest (biased); by default rounding is random
     bf16:stochastic                 cg_stochastic(cg_bf16()): at random (unbiased), where rounding is to nearest by
                                     default: f16, bf16, e4m3, e5m2, mxfp4, mxe4m3, mxe5m2, nf4
     rate:0.5:unbiased               cg_unbiased(cg_rate(0.5f)): at random; likewise step
     levels:7:512:max                cg_maxnorm(cg_levels(7, 0), 512); likewise dither
     minmax:4:512:norm               cg_minmax(4, 512) with quantize.flags = CG_FLAG_NORM: the range is sqrt(2) |x|
     terngrad:clip                   cg_clipped(cg_terngrad())
     randk:0.01:unscaled             cg_unscaled(cg_randk(0.01f)); likewise permk, cyclic
     randk:0.1:private               cg_private(cg_randk(0.1f)); likewise rotate, and both in one operator
     topk:k=100                      cg_topk(1) with k = 100 in the cg_op; likewise mstopk and randk
     chunked:64:0.1                  cg_chunked(0.1f, 64)
     lowrank:4:512:256               cg_lowrank(512, 256, 4); likewise atomo
     levels:7  dither:4  onebit      cg_levels(7, 0), cg_dither(4, 0), cg_onebit(0): the vector is one bucket
     e4m3  e5m2                      cg_e4m3(512), cg_e5m2(512), which are also cg_fp8() and cg_fp8_e5m2()
     dynamic8:256  nf4:32            cg_dynamic8(), cg_nf4() with quantize.size = 256 or 32
     side:r  mean                    no function: they are parts of cg_sbc

   The columns of the table:
     text      [..] may be left out
     bits      per element of x, without the header, which adds 8*CG_HEADER_BYTES/n
     bias      "unbiased" means that the expected decoded vector D(x) is x; "nearly", that it is off by less than
               .004 |x| at 1 bit, .002 |x| at 2 and .001 |x| at 4, on a few equal spikes with a small rest, which are
               the worst vectors known (rotate:2 in place of rotate:3: up to .04 |x|)
     omega     of an unbiased operator: the expectation of |D(x) - x|^2 is at most omega |x|^2
     delta     of a biased operator: |D(x) - x|^2 is at most (1 - delta) |x|^2
     *         for a vector of normally distributed values; without the star, for any vector
   The mean of f16:stochastic and bf16:stochastic is x wherever the format reaches: magnitudes above 65504, or above
   the largest bf16, 3.39e38, become that one. Formats with scales reach every value of their bucket; MX takes the next
   power of two for its scale where the one of the standard would cut the largest value off.
   and the names in it: bits = bits per value, bucket = number of values that share a scale, L = 2^(bits-1) - 1, s =
   levels on either side of zero, r = fraction of values kept, p = fraction sampled, k = number of values kept, n =
   elements of x, mult = multiplier of the largest magnitude, tau = threshold, sigma = standard deviation.

     text                    bits              bias      omega or delta             use (source)
   quantizers
     dense                   32                exact                                the default; dense|huffman takes 26
                                                                                    to 28 bits and is exact, too
     f16  bf16               16                biased    > 1-2^-22  > 1-2^-18       no convergence risk; bf16 where
                                                                                    range matters more than precision
     absmax:bits:bucket      bits + 32/bucket  unbiased  <= bucket/(4 L^2); 1 bit:  the workhorse: 8 bits need no error
                                                         <= bucket                  feedback, 4 bits hardly any
     minmax:bits:bucket      bits + 64/bucket  unbiased  <= bucket/(2 (2^bits-1)^2) values far from symmetric about 0
                                                                                    (Suresh 17)
     klevel:bits:bucket      about 2           unbiased  <= bucket/(2 (2^bits-1)^2) minmax with a range of sqrt(2) |x|,
                                                                                    Huffman coded (Suresh 17)
     flexpoint:bits:bucket   bits + 32/bucket  biased    > .9998* at 8 bits         integers times a power of two, for
                                                                                    hardware and for sums (Koester 17)
     flex16:bucket           16 + 32/bucket    biased                               the same with 16 bits
     levels:s[:bucket]       ceil(log2(2s+1))  unbiased  <= min(bucket/s^2,         QSGD levels of the L2 norm (Alistarh
                             + 32/bucket                        sqrt(bucket)/s)     17); :max of the largest magnitude
                                                                                    (QSGDinf, CGX)
     qsgd:s                  varies            unbiased  as levels:s                levels:s of the whole vector in the
                                                                                    Elias omega code
     terngrad                2                 unbiased  <= (sqrt(n)-1)/2           layer by layer, with one scale for
                                                                                    all ranks in cg_extra.scale (Wen
                                                                                    17); fewer bits with |quartic
     terngrad:clip           2                 biased                               clips at 2.5 standard deviations
                                                                                    (Wen 17)
     trits:mult              2; threelc <= 1.6 biased    .05* at mult = 1           3LC (Lim 19), 1 <= mult < 2; threelc
     threelc:mult                                                                   is trits in the quartic code
     strom:tau               2                 biased    .65* at tau = sigma        fixed threshold (Strom 15, MXNet
                                                                                    2-bit)
     sign                    1                 biased    none: it has no magnitude  majority vote, see cg_vote
                                                                                    (Bernstein 18)
     efsign                  1                 biased    |x|_1^2/(n |x|_2^2)        with error feedback the best of one
                                                                                    bit (Karimireddy 19)
     onebit[:column]         1 + 64/column     biased    >= that of efsign; .63*    1-bit SGD: two means per column
                                                                                    (Seide 14)
     natural                 9                 unbiased  1/8                        powers of two: no scale, so no pass
                                                                                    to find one (Horvath 19)
     dither:bits[:bucket]    bits + 32/bucket  unbiased  1/8 + sqrt(bucket)         natural dithering: fine steps near
                                                               / 2^(2^(bits-1)-2)   zero (Horvath 19); also with :max
     dynamic8[:bucket]       8 + 32/bucket     biased    > .999*                    seven decades in a byte (Dettmers
                                                                                    16)
     e4m3[:bucket]           8 + 32/bucket     biased    > .998*                    fp8 with a scale per bucket (512 if
                                                                                    left out); also called fp8
     e5m2[:bucket]           8 + 32/bucket     biased    > .99*                     the same with more range; also
                                                                                    called fp8_e5m2
     mxe4m3  mxe5m2  mxfp4   8.25  8.25  4.25  biased    > .998*  > .995*  > .98*   OCP microscaling (MX) numbers and
                                                                                    scales, as other tools read them
     nf4[:bucket]            4 + 32/bucket     biased    > .99*                     16 normal quantiles, 64 to a bucket
                                                                                    if left out (QLoRA)
     nvfp4                   4.5 + 32/n        biased    > .98*                     NVIDIA's 4 bits: as mxfp4, but 16
                                                                                    values share a scale in E4M3, and
                                                                                    all values one float
     nvfp4:stochastic        4.5 + 32/n        unbiased  .0725                      the same, rounded at random
     geometric:bits[:bucket] bits + 64/bucket  biased    data decides               behind a selection: a sign, and
                                                                                    2^(bits-1) levels on a logarithmic
                                                                                    scale; 1 to 4 bits. In topk:0.01|
                                                                                    geometric:2 it leaves .11 to .14 of
                                                                                    the energy as error, absmax .8 to .9
                                                                                    in as many bits; with 3 bits or more
                                                                                    rate is better: .001 to .003 in
                                                                                    topk:0.01|rate:4, not .006
     f16:stochastic          16                unbiased  2^-22                      floats rounded at random to one of
     bf16:stochastic         16                unbiased  2^-16                      their neighbours: small parts of a
     e4m3:512:stochastic     8 + 32/bucket     unbiased  .0035                      gradient are kept on average, so no
     mxfp4:stochastic        4.25              unbiased  .22; .027*                 error feedback is needed. Also e5m2,
     nf4:stochastic          4 + 32/bucket     unbiased  .12; .017*                 mxe4m3, mxe5m2
     rate:b                  b                 biased    the most there is at b     one step for all values, found for
                                                         bits: .63* at 1, .90*      just b bits, a dead zone, and an
                                                         at 2 bits                  entropy code; .005 <= b <= 8. With
                                                                                    error feedback the best there is.
                                                                                    The packet is never longer than
                                                                                    that (or 24 bytes), and shorter
                                                                                    by up to 5 % + .006 bits, or by
                                                                                    more where x has fewer bits in it
     rate:b:unbiased         b                 unbiased  data decides               the same, rounded at random
     step:s                  varies            biased    >= 1 - s^2                 as rate, with a step of s times the
                                                                                    root mean square: the error is
                                                                                    given, and the size follows
     step:s:unbiased         varies            unbiased  s^2/4                      the same, rounded at random
     lloyd:bits              bits + 32/1024    nearly    as eden                    Lloyd-Max levels; only after rotate,
                                                                                    without a selection
     mean                    0                 biased    mean^2/mean square         one value for all; only after side,
                                                                                    as in sbc
     user:id:arg:size:value  as the codec says                                      your own quantizer, see cg_codec
   rotations and frequencies: a random rotation makes any vector look normal, so few bits suffice for all of them
     rotate:rounds           (transform)                                            orthonormal, in blocks of 1024;
                                                                                    before any quantizer; 1 to 3 rounds,
                                                                                    3 where no bias is wanted
     srq:bits                bits + 64/1024    unbiased  <= (2 ln 1024 + 2)         stochastic rotated quantization
                                                            / (2^bits-1)^2          (Suresh 17)
     eden:bits               bits + 32/1024    nearly    .571* .133* .0358* .0096*  best error per bit, needs no error
                                                         for 1 2 3 4 bits           feedback (Vargaftik 22); 0 < bits <=
                                                                                    4, rounded to 1/32; below 1 bit of a
                                                                                    random sample; rotate:3|lloyd:bits
     drive                   1 + 32/1024       nearly    .571*                      eden:1 (Vargaftik 21)
     dct                     (transform)                                            orthonormal DCT-II in blocks of 64,
                                                                                    before chunked
   selections: values are sent with their indices; delta is the share of |x|^2 that is sent
     topk:r                  r (34 - log2 r)   biased    >= r                       the standard (Aji 17, Stich 18);
                                                                                    exact; of equal magnitudes the
                                                                                    lowest index is kept
     threshold:tau           as topk           biased                               values with |x| > tau; for a known
                                                                                    scale
     dgc:r  sidco:r          as topk           biased    >= 0.8 r                   threshold from a sample (Lin 18) or
                                                                                    a fit (Abdelmoniem 21); they keep
                                                                                    0.8 r to 1.3 r
     mstopk:r                as topk           biased    >= r                       threshold by 30 bisections (Shi 21)
     chunked:chunk:r         as topk           biased    >= r                       the largest of every chunk
                                                                                    (SparseLoCo, DeMo)
     sides:r  side:r         as topk           biased                               the largest on each side of zero (as
                                                                                    in adaq), or on the side with the
                                                                                    larger mean (as in sbc)
     wangni:r                as topk           unbiased  <= 1/r - 1                 keeps a value with a probability by
                                                                                    its magnitude, r of them on average
                                                                                    (Wangni 18)
     wangnivar:epsilon       as topk           unbiased  epsilon                    the fewest values for that omega
                                                                                    (Wangni 18)
     bins:bin                varies            biased                               the selection of adacomp (Chen 18);
                                                                                    cg_extra.aux is the gradient. Unlike
                                                                                    other selections it also replaces
                                                                                    values: each becomes + or - the mean
                                                                                    of the bins' largest magnitudes
     variance:alpha          varies            biased                               values with x^2 > alpha v;
                                                                                    cg_extra.aux is the variance v
                                                                                    (Tsuzuku 18)
     blocks:block            varies            exact                                drops blocks of that many values
                                                                                    that are all zero (OmniReduce 21)
     given                   32 k/n            biased                               the indices of the packet
                                                                                    cg_extra.support (AR-Top-k, Tyagi
                                                                                    23)
   samples: a subset that every rank computes from the tag, so that no indices are sent
     randk:r                 32 r              unbiased  n/k - 1                    one value of each of k strata, times
                                                                                    n/k (Konecny 16); all ranks keep the
                                                                                    same indices, so their packets add
                                                                                    up
     randk:r:unscaled        32 r              biased    r                          without the factor n/k, for error
                                                                                    feedback
     randk:r:private         32 r              unbiased  n/k - 1                    every rank draws its own: where
                                                                                    gradients are alike, the error of
                                                                                    the mean of W ranks is W times
                                                                                    smaller than with a common sample.
                                                                                    Packets add up decoded; also
                                                                                    rotate:rounds:private
     permk:workers           32/workers        unbiased  workers - 1                every rank keeps another value of
                                                                                    each group of `workers` neighbours
                                                                                    (Szlendak 21); also :unscaled
     cyclic:blocks           32/blocks         unbiased  blocks - 1                 block number tag.step mod blocks of
                                                         over `blocks` steps        the vector (coordinate descent block
                                                                                    by block); all ranks keep the same;
                                                                                    also :unscaled
   clips, behind a selection and before any quantizer
     clip:s                  0                 biased    >= 1 - (1 - s/sqrt(n))^2   magnitudes beyond s times the root
                                                                                    mean square of the values are cut to
                                                                                    it, as in clip:2.5|terngrad (Wen
                                                                                    17): finer levels for the rest
   named compositions; share: what the quantizer leaves of the selected energy, on a heavy-tailed vector, at r = .01
     stc:r                   9.1 r at r = .01  biased    share .83                  topk:r|efsign|golomb (Sattler 19)
     sbc:r                   8.1 r at r = .01  biased    share .78                  side:r|mean|golomb (Sattler 18)
     adaq:r                  9.6 r at r = .01  biased    share .83                  sides:r|onebit (Dryden 16)
     adacomp:bin             varies            biased    share 1                    bins:bin|efsign (Chen 18)
     qsparse:r:s             varies            biased    share .97 at s = 127;      topk:r|levels:s (Basu 19)
                                                         below 0 if s < sqrt(k)
     cocktail:p:r:bits       varies            biased    share .92 at .1:.1:4       randk:p:unscaled|topk:r|
                                                                                    absmax:bits:512:nearest (Wang 23);
                                                                                    rate in place of quantizers, as in
                                                                                    topk:0.01|rate:4, has a tenth of the
                                                                                    error at as many bits (qsparse too)
     demo_dct:r              varies            biased                               dct|chunked:64:r (DeMo, Peng 24)
   matrices, row-major, n = rows*cols: no other stage may be added
     lowrank:rank:rows:cols  32 rank           biased                               two factors by one power iteration
                             (1/rows + 1/cols)                                      (PowerSGD, Vogels 19); rank <= 64
     atomo:budget:rows:cols  32 budget         unbiased  <= m/budget - 1            budget singular triples, chosen at
                             (1/rows + 1/cols)                                      random by size (Wang 18); takes m^3
                                                                                    steps, m = min(rows, cols): 0.3 s
                                                                                    for m = 512, 3 s for 1024

   Codes for indices are eliasfano, bitmap and golomb; the default is the shorter of the first two. Codes for values
   are gamma, delta and omega (Elias), huffman and quartic; the default is packed bits. Every selection but wangni,
   wangnivar and blocks needs error feedback, and so do trits, strom, rate, step, efsign, onebit, lowrank and
   randk:r:unscaled.

   THE PACKET. Little-endian; every section is a multiple of 4 bytes long, and all padding is zeros.

     byte 0        4  5  6    8                              80       88      96      104
         +---------+--+--+----+------------------------------+--------+--------+--------+
         | "cgpk"  |v |ix| 0  | six stages of 12 bytes each  | n      | drawn  | k      |
         +---------+--+--+----+------------------------------+--------+--------+--------+
        104       112      120    124    128         136         144         148  152        168
         +--------+--------+------+------+-----------+-----------+-----------+----+----------+
         | seed   | step   |tensor| rank | val. bytes| ix. bytes | threshold | 0  | checksum |
         +--------+--------+------+------+-----------+-----------+-----------+----+----------+
        168
         +----------------+---------------------+----------------------------+
         | scales         | codes               | indices                    |
         +----------------+---------------------+----------------------------+
          <------------- value bytes ----------> <------ index bytes ------->

     v          version of the format: 1; 2 of a packet with segments, see below
     ix         code of the indices: 0 none, 1 Elias-Fano, 2 bitmap, 3 Golomb-Rice
     stage      id u8, flags u8, arg u16, size u32, value f32. The stages are sample, transform, select, quantize, code
                (id is the code of the indices, arg the code of the values), clip (which decoders do not need)
     n          length of x
     drawn      sampled length: how many of the n values the sample kept; n without a sample
     k          how many values were quantized: without a selection the transformed length. That is `drawn`, rounded up
                to whole blocks of 1024 (rotate) or 64 (dct); for a matrix it is rank*(rows + cols): the left factor as
                `rows` rows of `rank` values, then the right factor as `rank` rows of `cols` values, where `rank` is at
                most min(rows, cols)
     threshold  the smallest magnitude kept by topk, mstopk, dgc or sidco; otherwise 0
     scales     f32 for each bucket (minmax and onebit: two; rate and step: two, see src/core/quantize/rate.h); for MX
                formats a byte for each bucket
     codes      packed: value j takes the `bits` bits from bit j*bits on, least significant bit first.
                natural: for every 2048 values the exponents, a byte each, then the signs, a bit each.
                lloyd: for every 1024 values, first the values that have one bit more, then the others.
                With a code for values: a u32 for every piece of 8192 values (2048 for dense and bf16), then the pieces,
                each in whole u32 words. The u32 has the form of its piece in bits 30..31 (0 packed as above, 1 dense,
                2 sparse) and the exact length of the piece in bits below them. The comments at src/core/codes/ in this
                file describe the forms. Of rate and step: a u16 for every piece of 65536 values, the u32 words that it
                has, then the pieces (src/core/codes/rans.h)
     indices    Elias-Fano: k indices below N (the transformed length; with `blocks`, indices and N count blocks). Let
                l = floor(log2(N/k)): the l low bits of each index, padded to 4 bytes; then a bit string in which bit
                (index>>l) + i is set for the i-th index, padded to 4 bytes.
                Bitmap: bit i is set if value i is in the packet.
                Golomb-Rice: for each index the number g of values skipped before it, as g>>c zeros, a one, and the c
                low bits of g; padded to 4 bytes. c is the least number with (1 - k/N)^(2^c) < (sqrt(5)-1)/2
     checksum   two 64-bit sums over the packet as u32 words w[0..M), with the checksum itself taken as zeros:
                the sum of w[i] and the sum of (M-i)*w[i], modulo 2^64. They reveal any change within two words less
                than 16 GiB apart (d1 + d2 = 0 and (i-j)*d1 = 0 mod 2^64 force d1 = 0), and so every one- and two-bit
                error and every burst of up to 33 bits.

   THE PACKET WITH SEGMENTS has the same header with version 2, so that 168 bytes tell its length. Its checksum covers
   all of it. A segment is a packet of its own without its header: that is made again from its entry in the table.

     byte 0        4  5  6    8                              80       88      96      104              128
         +---------+--+--+----+------------------------------+--------+--------+--------+----------------+
         | "cgpk"  | 2|fl| 0  | six stages of 12 bytes each  | n      | drawn  | k      | seed .. rank   |
         +---------+--+--+----+------------------------------+--------+--------+--------+----------------+
        128      136         144         148         152        168
         +--------+-----------+-----------+-----------+----------+
         | bodies | table     | threshold | segments  | checksum |
         +--------+-----------+-----------+-----------+----------+
        168
         +-----------------+-----------------+---------+-----------------+
         | body of the 1st | body of the 2nd | ...     | table           |
         +-----------------+-----------------+---------+-----------------+
          <--------------- bodies --------------------> <---- table ---->

     fl         1: a selection of all segments together (CG_SEGMENTS_GLOBAL). 2: the table names operators. 4: the table
                names tensors
     stages     of segments that name no other operator
     n drawn k  sums over all segments
     tensor     of the first segment, unless the table names tensors
     bodies     bytes of all bodies; table: bytes of the table. Both are multiples of 4
     threshold  with fl & 1 that of the selection; otherwise 0
     segments   how many, u32, at least 1
     body       value bytes, then index bytes of the segment, as above
     table      Numbers are varints: 7 bits a byte, the lowest first, with bit 7 set in all bytes but the last, as short
                as can be. If fl & 2, first the number of operators, then each as six stages of 12 bytes. Then
                an entry for each segment:
                  skip         if fl & 4; otherwise 0. The tensor is that of the segment before, plus 1 + skip, modulo
                               2^32; of the first segment that of the header plus skip
                  n            length of the segment
                  operator     if fl & 2; otherwise 0. 0: that of the header, 1: dense f32, 2 + j: j of the table
                  drawn        if its sample is randk
                  k            if it has a selection
                  support      u32, if its selection is given: the size of that stage
                  threshold    f32, if its selection is topk, mstopk, dgc or sidco, but not with fl & 1 and operator 0
                  value words  value bytes / 4, if it has a code for values or a codec of the user's
                  index words  index bytes / 4, if its indices are Golomb coded
                What an entry does not have follows from the rest: drawn and k as the header's text says, value bytes of
                packed codes, and the code of the indices, which is the one that the operator names, or the shorter one
                of Elias-Fano and bitmap, or Elias-Fano if k is 0 or both are as long. Zeros fill the table up to a
                multiple of 4 bytes. Of a selection of all segments k may be any number up to n. */

/* src/core/api.h */
/* api: the public declarations of compgrad.h

   Offers   operators, packets, compress and decode, reduction, and the macros that declare functions
   Needs    stddef.h and stdint.h
   Touches  nothing */

#ifndef COMPGRAD_H
#define COMPGRAD_H

#include <stddef.h>
#include <stdint.h>

#define CG_VERSION_MAJOR 0
#define CG_VERSION_MINOR 1
#define CG_VERSION_PATCH 0
#define CG_VERSION_STRING "0.1.0"
#define CG_HEADER_BYTES 168

#ifdef COMPGRAD_STATIC
#  if defined(__GNUC__)
#    define CG_API_ static __attribute__((unused))
#  else
#    define CG_API_ static
#  endif
#elif defined(__cplusplus)
#  define CG_API_ extern "C"
#else
#  define CG_API_ extern
#endif
#if defined(__GNUC__)
#  define CG_CHECKED_ __attribute__((warn_unused_result))
#else
#  define CG_CHECKED_
#endif
#ifdef __cplusplus
#  define CG_ZERO \
    {} /* initialises a struct to zeros, as in cg_extra e = CG_ZERO, without a warning in C or C++ */
#else
#  define CG_ZERO \
    { 0 }
#endif

/* ---- status: 0 is success. The numbers are part of the interface and stay as they are. ---- */

#define CG_STATUS_LIST_(X)                                                                                             \
  X(CG_OK, 0, "ok")                                                                                                    \
  X(CG_AGAIN, 1, "no error: move the message in cg_io, then call cg_exchange_next again")                              \
  X(CG_E_ARG, 10,                                                                                                      \
      "bad argument: a null pointer, a number out of range, or an operator that is not valid or not for this n; "      \
      "cg_op_parse_why and the call's report say which")                                                               \
  X(CG_E_CAPACITY, 11,                                                                                                 \
      "an output or its scratch is too small: the header names beside the call what gives the bytes, and a report, "   \
      "where the call has one, has them")                                                                              \
  X(CG_E_CORRUPT, 20, "these bytes are not as they were written: send or read them again")                             \
  X(CG_E_VERSION, 21,                                                                                                  \
      "made with a format version, stage or codec that this build does not know: update compgrad, take the stage in "  \
      "(COMPGRAD_WITH_...), or pass the codec in cg_extra.codecs")                                                     \
  X(CG_E_MISMATCH, 22,                                                                                                 \
      "intact, but of something else: compare n, operator, kind, tensor, step and seed on both sides")                 \
  X(CG_E_NONFINITE, 30, "NaN or Inf in the values or in their sum: skip this step, or lower the loss scale")           \
  X(CG_E_TRANSPORT, 40, "a transport callback failed: see its code in the report")                                     \
  X(CG_E_PEER, 41, "another rank failed in this step: see its rank in the report")                                     \
  X(CG_E_MEMORY, 50,                                                                                                   \
      "not enough memory given: the _memory function beside the call gives the bytes for this description, and a "     \
      "report, where the call has one, has them")                                                                      \
  X(CG_E_STATE, 51,                                                                                                    \
      "call out of order: one that begins or ends something is missing before it, or what it would undo is not there") \
  X(CG_E_UNSUPPORTED, 60,                                                                                              \
      "not supported in this combination: the manual's tables say what goes together, and the call's report what "     \
      "does not")

typedef enum cg_status {
#define CG_STATUS_ENUM_(name, number, text) name = number,
    CG_STATUS_LIST_(CG_STATUS_ENUM_)
#undef CG_STATUS_ENUM_
        CG_STATUS_FORCE_INT_ = 0x7fffffff
} cg_status;

/* One sentence that says what happened and what to do. Any value is allowed; the result is never NULL. */
CG_API_ const char *cg_status_str(cg_status status);
#define CG_NO_INDEX UINT64_MAX /* cg_report.at: there is none */
/* How a call went: in detail, and of an exchange also what it moved. */
typedef struct cg_report {
    int rank;        /* the rank that caused the error, or -1 if that is unknown or there was none */
    int code;        /* what the failed callback returned, else 0 */
    const char *why; /* a sentence, constant text; after CG_OK "ok", perhaps with a warning */
    /* Bytes sent and received by this rank. Exact for sendrecv. For your own collectives the least that they can move:
       allgather (N-1) bytes_each in both directions, broadcast N-1 times the buffer out of the root and once into every
       other rank, allreduce 2 (N-1)/N of its bytes in both directions */
    uint64_t bytes_out, bytes_in;
    uint32_t rounds;  /* callbacks that succeeded */
    uint32_t route;   /* the route taken, which CG_ROUTE_AUTO chose; of several layers 0 if they took several */
    const void *used; /* this rank's contribution, in mem until mem is used again; NULL after an error */
    size_t used_len;
    uint32_t status; /* cg_status: what the call returned */
    /* CG_E_CAPACITY, CG_E_MEMORY: bytes that suffice for the buffer that why names. CG_E_ARG: the n that the operator
       takes. 0: neither is the trouble */
    uint64_t need;
    uint64_t
        at; /* CG_E_NONFINITE: index of the first value that is not finite; CG_NO_INDEX: of no value in particular */
    uint32_t sum; /* cg_sum: how f32 values were summed; 0: no sum of f32 values went over the network */
    /* CG_ROUTE_AUTO: why it took route, as a sentence, and the name of the route that would have come next; NULL:
       another route was asked for, or no other one was weighed. What both take by desc.alpha and beta, the opening left
       out; 0: not computed */
    const char *choice, *instead;
    double seconds, instead_seconds;
    uint64_t reserved[8]; /* zeros */
} cg_report;
/* Writes the whole sentence, with its final 0: why, and before and after it whatever else says where and how much, as
   in "rank 2: NaN or Inf in the values ...; value 17 is the first". 400 bytes always suffice; what does not fit is cut
   off, and the status is CG_E_CAPACITY. CG_E_ARG: report or text is NULL. */
CG_API_ cg_status cg_report_print(const cg_report *report, char *text, size_t cap);
/* CG_VERSION_STRING of the compiled implementation. */
CG_API_ const char *cg_version(void);

/* ---- operators ----
   An operator is plain data: copy it, compare it, fill it in yourself or with the functions below. All zeros send
   32-bit floats. */

typedef struct cg_stage {
    uint8_t id;    /* one of CG_SAMPLE_*, CG_TRANSFORM_*, CG_SELECT_*, CG_QUANTIZE_*, CG_CLIP_*; 0: no stage */
    uint8_t flags; /* CG_FLAG_* */
    uint16_t arg;  /* number of bits, levels or rounds; rank of a matrix */
    uint32_t size; /* values in a bucket, chunk, bin or block; ranks of PermK; rows of a matrix */
    float value;   /* fraction kept, threshold or another real parameter; columns of a matrix */
} cg_stage;

typedef struct cg_op {
    cg_stage sample, transform, select, quantize, code, clip; /* clip is done before quantize */
    /* Number of values kept, in place of a fraction: by topk or mstopk if the operator has one of them, otherwise by
       randk. Larger than the vector: all values. 0: the fraction decides. */
    uint64_t k;
    uint64_t reserved; /* must be 0 */
} cg_op;

enum { CG_SAMPLE_RANDK = 1, CG_SAMPLE_PERMK = 2, CG_SAMPLE_CYCLIC = 3 };
enum { CG_CLIP_RMS = 1 };
enum { CG_TRANSFORM_ROTATE = 1, CG_TRANSFORM_DCT, CG_TRANSFORM_LOWRANK, CG_TRANSFORM_ATOMO };
enum {
    CG_SELECT_TOPK = 1,
    CG_SELECT_THRESHOLD = 2,
    CG_SELECT_DGC,
    CG_SELECT_MSTOPK,
    CG_SELECT_SIDCO,
    CG_SELECT_WANGNI,
    CG_SELECT_WANGNIVAR,
    CG_SELECT_BINS,
    CG_SELECT_SIDES,
    CG_SELECT_SIDE,
    CG_SELECT_CHUNKED,
    CG_SELECT_BLOCKS,
    CG_SELECT_GIVEN,
    CG_SELECT_VARIANCE
};
enum {
    CG_QUANTIZE_F16 = 1,
    CG_QUANTIZE_BF16,
    CG_QUANTIZE_SIGN,
    CG_QUANTIZE_EFSIGN,
    CG_QUANTIZE_ABSMAX,
    CG_QUANTIZE_MINMAX,
    CG_QUANTIZE_TERNGRAD,
    CG_QUANTIZE_LEVELS,
    CG_QUANTIZE_FLEXPOINT,
    CG_QUANTIZE_TRITS,
    CG_QUANTIZE_STROM,
    CG_QUANTIZE_ONEBIT,
    CG_QUANTIZE_MEAN,
    CG_QUANTIZE_NATURAL,
    CG_QUANTIZE_DITHER,
    CG_QUANTIZE_DYNAMIC8,
    CG_QUANTIZE_E4M3,
    CG_QUANTIZE_E5M2,
    CG_QUANTIZE_MXFP4,
    CG_QUANTIZE_MXE4M3,
    CG_QUANTIZE_MXE5M2,
    CG_QUANTIZE_NF4,
    CG_QUANTIZE_LLOYD,
    CG_QUANTIZE_FLEX16,
    CG_QUANTIZE_RATE,
    CG_QUANTIZE_STEP,
    CG_QUANTIZE_NVFP4,
    CG_QUANTIZE_GEOMETRIC,
    CG_QUANTIZE_USER = 128 /* 128 to 255: the id of a cg_codec */
};
enum { /* names of version 0.1 */
    CG_SELECT_WANGNI_VARIANCE = CG_SELECT_WANGNIVAR,
    CG_SELECT_ADACOMP = CG_SELECT_BINS,
    CG_QUANTIZE_TERNARY = CG_QUANTIZE_TERNGRAD,
    CG_QUANTIZE_QSGD = CG_QUANTIZE_LEVELS,
    CG_QUANTIZE_STEPS = CG_QUANTIZE_FLEXPOINT,
    CG_QUANTIZE_STEPS16 = CG_QUANTIZE_FLEX16,
    CG_QUANTIZE_THREELC = CG_QUANTIZE_TRITS
};
enum { /* flags of a stage; what a bit means depends on the stage */
    CG_FLAG_UNSCALED = 1 /* samples: without the factor that makes them unbiased */,
    CG_FLAG_PRIVATE = 2 /* randk, rotate: every rank draws its own, so that errors of ranks are independent */,
    CG_FLAG_NEAREST = 1 /* quantizers: round to nearest instead of at random */,
    CG_FLAG_STOCHASTIC = 1 /* f16, bf16, e4m3, e5m2, MX, NVFP4, NF4: round at random instead of to nearest */,
    CG_FLAG_UNBIASED = 1 /* rate, step: round at random instead of with a dead zone */,
    CG_FLAG_MAX = 2 /* levels, dither: relative to the largest magnitude instead of the L2 norm */,
    CG_FLAG_CLIP = 2 /* terngrad: clip at 2.5 standard deviations */,
    CG_FLAG_NORM = 2 /* minmax: a range of sqrt(2) times the L2 norm */
};
typedef enum cg_coding {
    /* codes for indices; CG_CODE_AUTO is the shorter of Elias-Fano and bitmap */
    CG_CODE_AUTO = 0,
    CG_CODE_ELIAS_FANO = 1,
    CG_CODE_BITMAP = 2,
    CG_CODE_GOLOMB = 3,
    /* codes for values */
    CG_CODE_PACKED = 16,
    CG_CODE_GAMMA,
    CG_CODE_DELTA,
    CG_CODE_OMEGA,
    CG_CODE_HUFFMAN,
    CG_CODE_QUARTIC
} cg_coding;

/* Functions that make operators. They accept any argument: if one is out of range, the operator is refused later, by
   cg_bound (0) and cg_compress (CG_E_ARG). A bucket is the number of consecutive values that share a scale. "At random"
   means unbiased, by random numbers that follow from the tag. */

/* quantizers */
CG_API_ cg_op cg_dense(void); /* 32-bit floats */
CG_API_ cg_op cg_f16(void);   /* IEEE half precision */
CG_API_ cg_op cg_bf16(void);  /* the upper 16 bits of a float, rounded to nearest */
/* 1 to 8 bits: evenly spaced levels between - and + the largest magnitude of the bucket, rounded at random */
CG_API_ cg_op cg_absmax(int bits, uint32_t bucket);
/* 1 to 8 bits: evenly spaced levels from the minimum to the maximum of the bucket, rounded at random */
CG_API_ cg_op cg_minmax(int bits, uint32_t bucket);
/* cg_minmax with a range of sqrt(2) times the L2 norm of the bucket, Huffman coded */
CG_API_ cg_op cg_klevel(int bits, uint32_t bucket);
/* integers of 2 to 8 or 16 bits times a power of two per bucket, rounded to nearest */
CG_API_ cg_op cg_flexpoint(int bits, uint32_t bucket);
/* The least error at so many bits per value, 0.005 to 8: one step for all values, found for just that size, a dead
   zone, and an entropy code. Values and scales take no more than was asked (or 24 bytes), and as a rule no less than
   95 % of it less .006 bits; they take less where the values have not so many bits in them. */
CG_API_ cg_op cg_rate(float bits);
/* The same with a step of share * root mean square: the error is given, and the size follows. */
CG_API_ cg_op cg_step(float share);
/* cg_flexpoint with 16 bits */
CG_API_ cg_op cg_flex16(uint32_t bucket);
/* 1 to 127 levels from 0 to the L2 norm of the bucket, with a sign, rounded at random; bucket 0: the whole vector */
CG_API_ cg_op cg_levels(int levels, uint32_t bucket);
/* cg_levels of the whole vector, in the Elias omega code */
CG_API_ cg_op cg_qsgd(int levels);
CG_API_ cg_op cg_sign(void);   /* +1 or -1; zero becomes +1 */
CG_API_ cg_op cg_efsign(void); /* the sign times the mean magnitude of the vector */
/* each value becomes the mean of the negative or of the other values of its column; column 0: the whole vector */
CG_API_ cg_op cg_onebit(uint32_t column);
/* -max, 0 or max, at random, where max is the largest magnitude of the vector */
CG_API_ cg_op cg_terngrad(void);
/* the nearest of -m, 0 and m, where m is s times the largest magnitude, 1 <= s < 2 */
CG_API_ cg_op cg_trits(float s);
CG_API_ cg_op cg_threelc(float s); /* cg_trits in the quartic code */
CG_API_ cg_op cg_strom(float tau); /* -tau or tau where |x| > tau, otherwise 0 */
CG_API_ cg_op cg_natural(void);    /* powers of two, rounded at random */
/* 2 to 8 bits: the L2 norm of the bucket times powers of two, rounded at random; bucket 0: the whole vector */
CG_API_ cg_op cg_dither(int bits, uint32_t bucket);
/* Dettmers' dynamic 8-bit numbers, relative to the largest magnitude of the vector */
CG_API_ cg_op cg_dynamic8(void);
CG_API_ cg_op cg_e4m3(uint32_t bucket); /* fp8 E4M3 with a scale for each bucket */
CG_API_ cg_op cg_e5m2(uint32_t bucket); /* fp8 E5M2 with a scale for each bucket */
CG_API_ cg_op cg_fp8(void);             /* cg_e4m3(512) */
CG_API_ cg_op cg_fp8_e5m2(void);        /* cg_e5m2(512) */
/* OCP microscaling formats: 32 values share a power of two */
CG_API_ cg_op cg_mxfp4(void);
CG_API_ cg_op cg_mxe4m3(void);
CG_API_ cg_op cg_mxe5m2(void);
/* 4-bit floats like those of mxfp4; 16 values share a scale in E4M3, and all values one float */
CG_API_ cg_op cg_nvfp4(void);
/* for values that a selection has left: a sign and 2^(bits-1) levels, 1 to 4 bits, evenly spaced on a logarithmic scale
   between the smallest and the largest magnitude of the bucket (1 bit: their mean), to nearest; bucket 0: all values */
CG_API_ cg_op cg_geometric(int bits, uint32_t bucket);
CG_API_ cg_op cg_nf4(void); /* 4-bit normal quantiles; 64 values share a scale */
/* Lloyd-Max levels of the normal distribution, 1 to 4 bits in steps of 1/32; needs cg_rotate before it */
CG_API_ cg_op cg_lloyd(float bits);
/* the cg_codec with this id, 128 to 255; arg (0 to 65535), size and value are passed on to it */
CG_API_ cg_op cg_user(int id, int arg, uint32_t size, float value);

/* before any quantizer, behind a selection: magnitudes beyond s times the root mean square of the values that are left
   are cut to it (biased); s > 0 */
CG_API_ cg_op cg_clip(float s);

/* selections; ratio is the fraction of the values to keep, 0 < ratio <= 1, rounded to at least one value */
CG_API_ cg_op cg_topk(float ratio);          /* the largest magnitudes; of equal ones those with the lowest indices */
CG_API_ cg_op cg_threshold(float magnitude); /* all values with |x| > magnitude */
/* |x| above a threshold that is estimated from a sample; keeps 0.8 to 1.3 times the ratio */
CG_API_ cg_op cg_dgc(float ratio);
/* |x| above a threshold found by bisection, filled up to exactly the ratio */
CG_API_ cg_op cg_mstopk(float ratio);
/* |x| above a threshold from fitted exponential distributions; keeps 0.8 to 1.3 times the ratio */
CG_API_ cg_op cg_sidco(float ratio);
/* unbiased: each value with a probability that grows with its magnitude; keeps the ratio on average */
CG_API_ cg_op cg_wangni(float ratio);
/* the same with the fewest values whose expected squared error is at most epsilon |x|^2 */
CG_API_ cg_op cg_wangnivar(float epsilon);
/* AdaComp's selection: values that, with the gradient cg_extra.aux added once more, reach the largest magnitude of
   their bin. It also replaces them, which no other selection does: each becomes + or - one magnitude, the mean over all
   bins of their largest. */
CG_API_ cg_op cg_bins(uint32_t bin);
/* the largest of the positive and the largest of the negative values, the ratio of each */
CG_API_ cg_op cg_sides(float ratio);
CG_API_ cg_op cg_chunked(float ratio, uint32_t chunk); /* cg_topk within every chunk */
CG_API_ cg_op cg_blocks(uint32_t block);               /* blocks that are not all zero */
/* the indices of the packet cg_extra.support; sends no indices of its own */
CG_API_ cg_op cg_given(void);
CG_API_ cg_op cg_variance(float alpha); /* values with x^2 > alpha times their variance, cg_extra.aux */

/* samples: all ranks compute them from the tag, so no indices are sent */
CG_API_ cg_op cg_randk(float ratio); /* a random value of each of k strata, times n/k; k is ratio*n, rounded */
/* rank i, below workers, keeps its own random one of every group of `workers` neighbours, times workers */
CG_API_ cg_op cg_permk(uint32_t workers);
/* all values of block number tag.step mod `blocks`, times `blocks`; blocks are equally long, and neighbours share a
   value where they have to, which is then times half as much */
CG_API_ cg_op cg_cyclic(uint32_t blocks);

/* transforms */
CG_API_ cg_op cg_rotate(int rounds); /* 1 to 3 rounds of random signs and a Hadamard matrix, in blocks of 1024 */
CG_API_ cg_op cg_dct(void);          /* DCT-II in blocks of 64 */
/* x is a row-major matrix of rows*cols = n values; sends two factors of rank 1 to 64, from one power iteration */
CG_API_ cg_op cg_lowrank(uint32_t rows, uint32_t cols, int rank);
/* x as before; sends at most `budget` (1 to 64) singular triples, chosen at random so that the result is unbiased */
CG_API_ cg_op cg_atomo(uint32_t rows, uint32_t cols, int budget);

/* named compositions */
CG_API_ cg_op cg_srq(int bits); /* cg_rotate(1), then cg_minmax */
CG_API_ cg_op cg_drive(void);   /* cg_eden(1) */
/* cg_rotate(3), then cg_lloyd; 0 < bits <= 4, rounded to 1/32; below 1 bit, cg_randk(bits) comes first */
CG_API_ cg_op cg_eden(float bits);
CG_API_ cg_op cg_demo_dct(float ratio); /* cg_dct, then cg_chunked by 64 */
CG_API_ cg_op cg_stc(float ratio);      /* cg_topk, then cg_efsign, Golomb coded */
/* the largest positive or the largest negative values, whichever have the larger mean, as that mean; Golomb coded */
CG_API_ cg_op cg_sbc(float ratio);
CG_API_ cg_op cg_adaq(float ratio); /* cg_sides, then cg_onebit(0) */
/* cg_bins, then cg_efsign; x is the residual with the gradient added, cg_extra.aux the gradient alone */
CG_API_ cg_op cg_adacomp(uint32_t bin);
CG_API_ cg_op cg_qsparse(float ratio, int levels); /* cg_topk, then cg_levels of the kept values */
/* cg_randk(sampled) unscaled, then cg_topk, then cg_absmax(bits, 512) to nearest */
CG_API_ cg_op cg_cocktail(float sampled, float ratio, int bits);

/* names of version 0.1 */
CG_API_ cg_op cg_mxfp8(void);                    /* cg_mxe4m3 */
CG_API_ cg_op cg_mxfp8_e5m2(void);               /* cg_mxe5m2 */
CG_API_ cg_op cg_wangni_variance(float epsilon); /* cg_wangnivar */
CG_API_ cg_op cg_demo(float ratio);              /* cg_demo_dct */

/* Functions that change an operator. */
/* rounding to nearest: absmax, minmax, terngrad, levels, natural, dither */
CG_API_ cg_op cg_nearest(cg_op op);
/* rounding at random, so that the mean is kept: f16, bf16, e4m3, e5m2, mxfp4, mxe4m3, mxe5m2, nvfp4, nf4 */
CG_API_ cg_op cg_stochastic(cg_op op);
CG_API_ cg_op cg_unbiased(cg_op op); /* rate, step: rounding at random, so that the mean is kept */
/* levels (and qsgd), dither: relative to the largest magnitude of each bucket instead of the L2 norm */
CG_API_ cg_op cg_maxnorm(cg_op op, uint32_t bucket);
CG_API_ cg_op cg_clipped(cg_op op);  /* terngrad: values are clipped at 2.5 standard deviations */
CG_API_ cg_op cg_unscaled(cg_op op); /* samples: without the factor that makes them unbiased */
/* randk, rotate, or both: drawn by every rank for itself. The error of the mean of W ranks is then W times smaller than
   that of one, where common samples and rotations make errors that add up; such packets are added decoded */
CG_API_ cg_op cg_private(cg_op op);
CG_API_ cg_op cg_coded(cg_op op, cg_coding coding); /* the same values in another code */
/* The stages of both. If both have the same stage, the result is refused by cg_bound and cg_compress. */
CG_API_ cg_op cg_then(cg_op first, cg_op second);

/* Reads an operator from text such as "topk:0.01|absmax:4:512|golomb". Letters may be of either case, blanks may stand
   around '|' and ':', and a ratio may be in percent ("topk:1%"). On CG_E_ARG *op is all zeros. */
CG_API_ CG_CHECKED_ cg_status cg_op_parse(cg_op *op, const char *text);
/* The same, and writes what is wrong into why[0..cap): the byte of the text where it is, what it is and what to write,
   for example "at 0: no operator 'tpok'; did you mean 'topk'?". 256 bytes always suffice; what does not fit is cut off,
   and why always ends with a 0, unless cap is 0. After CG_OK it is empty. why may be NULL if cap is 0. */
CG_API_ CG_CHECKED_ cg_status cg_op_parse_why(cg_op *op, const char *text, char *why, size_t cap);
/* Writes the text of an operator, with its final 0; 160 bytes always suffice. cg_op_parse reads the same operator back;
   only a ratio that k overrides is left out, and becomes 1. The text "bins:50" does not show that cg_bins also replaces
   values. CG_E_CAPACITY: cap is too small. CG_E_ARG: the operator is not valid. After an error the text is empty. */
CG_API_ CG_CHECKED_ cg_status cg_op_print(const cg_op *op, char *text, size_t cap);

/* What an operator does to vectors of n values, before it does it. */
typedef struct cg_about {
    int unbiased;     /* 1: the expected decoded vector D is x ("nearly", as the manual's table has it, for lloyd) */
    int needs_memory; /* 1: biased, so that training stalls without error feedback (compgrad_ef.h) */
    int fixed_size;   /* 1: all packets have the same length */
    /* The least bound that is known for all x: the expectation of |D - x|^2 is at most omega |x|^2, beside rounding to
       32-bit floats, and values too small or too large for a format (f16, denormals in natural). For lloyd it is that
       of normally distributed values, which is what a rotation makes of any.
       -1: none is known (sign, bins, lloyd after fewer than three rounds, codecs of yours) */
    double omega;
    /* 1 - omega, the contraction of error feedback; 0: omega is not below 1. -1: the data decides how much of x is sent
       (lowrank, threshold, variance, given, strom), or omega is not known */
    double delta;
    /* Expected bits per value of x, without the header, which adds 8*CG_HEADER_BYTES/n. With a code for values, whose
       length the data decides, the most. -1: the data decides how many values are sent, or a codec of yours does */
    double bits;
    char why[200]; /* a sentence: "ok", perhaps with a warning; after CG_E_ARG what is wrong, and what would do */
} cg_about;
/* CG_E_ARG: the operator is not valid, or does not take n (cg_bound is 0); about->why says why, and what would do. Then
   omega, delta and bits are -1, and all else is 0. A codec of yours is not asked whether it takes n. */
CG_API_ cg_status cg_op_about(const cg_op *op, size_t n, cg_about *about);

/* ---- compress and decode ---- */

/* Says which vector this is. It travels in the packet; a NULL pointer to a tag means zeros. Random numbers that all
   ranks share (sample, rotation) follow from seed, step and tensor; those of one rank (rounding) also from rank. Let
   every vector of a step have its own tensor, and change step with every step. */
typedef struct cg_tag {
    uint64_t seed, step;
    uint32_t tensor, rank;
} cg_tag;

/* Your own quantizer: constant data, passed in cg_extra.codecs, used by cg_user(id, ...). It sees the output of sample,
   transform and selection as a dense vector of n values. x, in and out may have any alignment. */
typedef struct cg_codec {
    uint8_t id; /* 128 to 255 */
    /* Bytes that compress needs at most for n values; must not decrease as n grows. 0: bad parameters. */
    size_t (*bound)(const struct cg_codec *self, const cg_stage *stage, size_t n);
    /* Writes x[0..n), which are finite, to out, at most cap bytes, and their number to *len. */
    cg_status (*compress)(const struct cg_codec *self, const cg_stage *stage, const cg_tag *tag, const float *x,
        size_t n, void *out, size_t cap, size_t *len);
    /* Writes values [first, first + count) of n to out; first is a multiple of 2048, count at most 2048. len is the
       length from compress, rounded up to a multiple of 4 with zeros. Calls come in any order, more than once, and with
       OpenMP from several threads. Must accept any bytes, and return CG_OK with finite values, or CG_E_CORRUPT. */
    cg_status (*decode)(const struct cg_codec *self, const cg_stage *stage, const void *in, size_t len, size_t n,
        size_t first, size_t count, float *out);
    const void *user; /* for your use */
} cg_codec;

/* One packet of several tensors that lie one behind the other in x: they keep their own statistics, scales, selection
   and random numbers, as if each were compressed by a call of its own, but share one header and one checksum. What they
   decode to is the same, bit for bit, as that of such calls. */
enum { CG_SEGMENT_OP = 0, CG_SEGMENT_EXACT = 1, CG_SEGMENT_OPS = 2 }; /* cg_segments.op[i] */
enum {
    /* A selection of the call's operator selects from all segments together that have this operator, as if they were
       one vector: topk:0.01 keeps 1 % of all of them, most where the largest values are. Scales stay those of each
       segment. For selections of single values that need neither aux nor a support, without a sample, transform or
       codec of yours, and for less than 2^32 values. */
    CG_SEGMENTS_GLOBAL = 1
};
typedef struct cg_segments {
    const size_t *n; /* their lengths, which add up to the n of the call; 0 is allowed */
    size_t count;    /* at least 1, less than 2^32 */
    /* What compresses segment i. CG_SEGMENT_OP: the operator of the call; CG_SEGMENT_EXACT: 32-bit floats, for norms
       and biases; CG_SEGMENT_OPS + j: ops[j]. NULL: the operator of the call, all of them */
    const uint32_t *op;
    const cg_op *ops;
    size_t op_count;
    const uint32_t *tensor; /* cg_tag.tensor of segment i; NULL: that of the call plus i */
    uint32_t flags;         /* CG_SEGMENTS_GLOBAL or 0 */
} cg_segments;

/* cg_extra.flags: decode dense packets in one pass, while the checksum is computed. If the packet turns out to be
   corrupt, y has been written to: it is then unspecified. */
enum { CG_DECODE_DIRECT = 1 };

/* Optional inputs of encoding and decoding. A NULL pointer to it, or zeros, means none. Encoding returns
   CG_E_UNSUPPORTED for an input that the operator cannot use, and CG_E_ARG if one that it needs is missing. */
typedef struct cg_extra {
    /* n floats for cg_bins and cg_adacomp (the gradient that is part of x) or cg_variance (the variance of x) */
    const float *aux;
    /* Scales that all ranks agreed on, in place of the vector's own, in the order of the packet. */
    const float *scale;
    /* cg_given: a packet with indices of its own. Decoding needs the same packet as encoding. */
    const void *support;
    size_t support_len;
    const cg_codec *const *codecs; /* pointers to your own quantizers */
    size_t codec_count;
    uint32_t flags; /* CG_DECODE_DIRECT */
    /* cg_compress_with, cg_decode and cg_ef_compress_with write here how they went: status, why, need and at. NULL:
       they do not */
    cg_report *report;
    /* N > 0: stochastic rounding as rank tag.rank % N of N, whose noise is the same but for a shift of rank/N, so that
       much of their errors cancels in the mean of all N; each by itself is as unbiased as before. 0: noise of the
       rank's own. Only for encoding, and for packets that are added once: not for sums that are encoded again */
    uint32_t correlated;
    uint32_t reserved32; /* must be 0 */
    /* Encoding: x consists of these segments. Each is given its part of aux, scale and support, if its operator uses
       them; such a support has the same segments. Decoding does not look at it. NULL: x is one vector */
    const cg_segments *segments;
} cg_extra;
typedef cg_extra cg_side; /* the name of version 0.1 */

/* Contents of a packet's header. */
typedef struct cg_info {
    cg_op op;
    cg_tag tag;
    /* length of the vector; sampled length, that is, how many values the sample kept; number of values in the packet */
    uint64_t n, drawn, k;
    uint32_t index_code; /* CG_CODE_ELIAS_FANO, CG_CODE_BITMAP or CG_CODE_GOLOMB; 0: no indices */
    float threshold;     /* smallest magnitude that topk, mstopk, dgc or sidco kept; otherwise 0 */
    size_t value_bytes, index_bytes, packet_bytes; /* packet_bytes: the whole packet */
    /* A packet with segments: how many, and CG_SEGMENTS_GLOBAL or 0 beside bits of no concern. Then drawn and k are
       those of all segments, value_bytes their values and indices, index_bytes the table of segments, op the operator
       of those that have no other, tag.tensor that of the first unless the table names another. 0: it has none */
    uint32_t segments, segment_flags;
} cg_info;

/* The most bytes that a packet of n values can take. 0: the operator is not valid, does not fit n (a matrix), or the
   size overflows. */
CG_API_ size_t cg_bound(const cg_op *op, size_t n);
/* The same with cg_extra, which an operator with a codec of your own needs. */
CG_API_ size_t cg_bound_with(const cg_op *op, const cg_extra *side, size_t n);
/* Bytes of scratch that cg_compress needs for n values; 0: none, or the operator is not valid (then cg_bound is 0). */
CG_API_ size_t cg_scratch(const cg_op *op, size_t n);
/* The same with cg_extra, which segments need. */
CG_API_ size_t cg_scratch_with(const cg_op *op, const cg_extra *side, size_t n);

/* Writes x[0..n) as a packet, and its length to *len.
   Requires: x may be NULL only if n is 0. scratch may be NULL only if scratch_bytes is 0. x, packet and scratch must
   not overlap.
   Guarantees: succeeds if op is valid, cap >= cg_bound(op, n), scratch_bytes >= cg_scratch(op, n) and all values are
   finite. Writes nothing beyond cap and scratch_bytes, and does not change x. On error *len is 0, and the contents
   of packet are unspecified.
   Returns: CG_E_ARG, CG_E_CAPACITY (cap or scratch too small), CG_E_NONFINITE; with PermK, CG_E_ARG if tag->rank is
   not below the number of workers. cg_compress_with says more in cg_extra.report. */
CG_API_ CG_CHECKED_ cg_status cg_compress(const cg_op *op, const cg_tag *tag, const float *x, size_t n, void *packet,
    size_t cap, size_t *len, void *scratch, size_t scratch_bytes);
/* The same with cg_extra; then cg_bound_with gives the capacity. */
CG_API_ CG_CHECKED_ cg_status cg_compress_with(const cg_op *op, const cg_tag *tag, const cg_extra *side, const float *x,
    size_t n, void *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes);

/* y = beta*y + alpha*D, where D is the vector that the packet decodes to.
   Requires: alpha and beta finite; n as it was when the packet was made; len the exact length of the packet. If beta
   is 0, y is not read and may be uninitialised.
   Guarantees: packet may hold any bytes. Nothing is read beyond len or written beyond n, and y changes only if the
   result is CG_OK (see CG_DECODE_DIRECT).
   Returns: CG_E_ARG; CG_E_CORRUPT; CG_E_VERSION (unknown format, stage or codec); CG_E_MISMATCH (other n or
   support). */
CG_API_ CG_CHECKED_ cg_status cg_decode(
    const cg_extra *side, const void *packet, size_t len, float alpha, float beta, float *y, size_t n);
/* y = D: cg_decode with alpha 1 and beta 0 */
CG_API_ CG_CHECKED_ cg_status cg_decompress(const void *packet, size_t len, float *y, size_t n);
/* y = y + weight*D: cg_decode with alpha = weight and beta 1 */
CG_API_ CG_CHECKED_ cg_status cg_decompress_add(const void *packet, size_t len, float weight, float *y, size_t n);
/* Sets y[i] to 0 for every index i that the packet has a value for; all of y if the packet is dense. Same contract as
   cg_decode. CG_E_UNSUPPORTED for a packet of cg_given: pass its support instead. */
CG_API_ CG_CHECKED_ cg_status cg_clear(const void *packet, size_t len, float *y, size_t n);
/* Reads and checks the header alone, neither the checksum nor the values. len may be as short as CG_HEADER_BYTES, so
   that a receiver can learn packet_bytes before it has the rest. */
CG_API_ CG_CHECKED_ cg_status cg_inspect(const void *packet, size_t len, cg_info *info);

/* Segment i of a whole packet with segments, which is checked up to that segment, but for its checksum and values: what
   cg_inspect would say of a packet of this segment alone, and *first (NULL: not wanted), its first value in x. With
   CG_SEGMENTS_GLOBAL info->k may be any number. CG_E_ARG: there is no such segment. */
CG_API_ CG_CHECKED_ cg_status cg_segment_inspect(
    const void *packet, size_t len, size_t i, cg_info *info, uint64_t *first);
/* Segment i of a packet with segments as a packet of its own: what cg_compress would have made of it (of a selection
   from all segments, a packet of threshold:0). info->packet_bytes of cg_segment_inspect suffices for cap. The packet is
   verified. After an error *out_len is 0. */
CG_API_ CG_CHECKED_ cg_status cg_segment_copy(
    const cg_extra *side, const void *packet, size_t len, size_t i, void *out, size_t cap, size_t *out_len);

/* All segments of a packet as packets of their own, one behind the other; cg_inspect tells where each ends. The length
   of the packet plus CG_HEADER_BYTES for every segment suffices for cap. */
CG_API_ CG_CHECKED_ cg_status cg_segments_split(
    const cg_extra *side, const void *packet, size_t len, void *out, size_t cap, size_t *out_len);

/* ---- adding packets without decoding them ----
   The packets must belong to one vector (equal n, seed, step and tensor) and have equal samples and transforms, and all
   or none of them a selection; otherwise CG_E_MISMATCH. The sum is again a packet:
     - packets with a selection are merged by index, into 32-bit floats;
     - packed levels around zero (absmax, levels, terngrad, trits, flexpoint, flex16) of equal steps are added as
       integers, if 16 bits hold the sum; cg_extra.scale makes steps equal;
     - all others are added as 32-bit floats, in the order given, and transformed back only when the sum is decoded.
   If the sample or rotation of any of them is private, all are decoded instead, and the sum is a dense packet: only n
   and tag need to be equal then.
   Packets with segments are added segment by segment, up to 256 of them, if they have the same segments.
   CG_E_UNSUPPORTED: PermK and matrices; packets of cg_given beside private ones. On error *len is 0. */

/* Bytes that cg_reduce needs for the sum of these packets, and for scratch. */
CG_API_ CG_CHECKED_ cg_status cg_reduce_plan(
    const void *const *packets, const size_t *lens, size_t count, size_t *bound, size_t *scratch);
/* Writes the sum of the packets. Succeeds if cap and scratch_bytes are at least what cg_reduce_plan says and no
   packet is corrupt. */
CG_API_ CG_CHECKED_ cg_status cg_reduce(const void *const *packets, const size_t *lens, size_t count, void *out,
    size_t cap, size_t *len, void *scratch, size_t scratch_bytes);
/* Writes the majority of up to 1024 cg_sign packets without indices, as a cg_sign packet; a tie gives +. The
   length of one of them suffices for cap. */
CG_API_ CG_CHECKED_ cg_status cg_vote(
    const void *const *packets, const size_t *lens, size_t count, void *out, size_t cap, size_t *len);

/* ---- 16-bit floats, as uint16_t in the byte order of the machine ----
   Conversion to 16 bits rounds to nearest, ties to even. Finite values that are too large become the largest finite
   value; Inf and NaN stay Inf and NaN. */

CG_API_ void cg_f16_from_f32(const float *x, size_t n, uint16_t *half);
CG_API_ void cg_f16_to_f32(const uint16_t *half, size_t n, float *x);
CG_API_ void cg_bf16_from_f32(const float *x, size_t n, uint16_t *half);
CG_API_ void cg_bf16_to_f32(const uint16_t *half, size_t n, float *x);

/* ---- SIMD, for tests: the best instructions are found at run time, and all of them give the same bits ---- */

typedef enum cg_isa {
    CG_ISA_AUTO = 0,
    CG_ISA_SCALAR = 1,
    CG_ISA_AVX2 = 2,
    CG_ISA_NEON = 3,
    CG_ISA_AVX512 = 4, /* F, BW, DQ and VL; in vectors of 32 bytes */
    CG_ISA_WASM = 5    /* WebAssembly SIMD128 */
} cg_isa;
CG_API_ int cg_isa_found(cg_isa isa); /* 1 if this build and this CPU have it, otherwise 0 */
CG_API_ cg_isa cg_isa_used(void);     /* the one in use; never CG_ISA_AUTO */
/* Uses this one from now on, in all threads; CG_ISA_AUTO: the best again. CG_E_UNSUPPORTED: it was not found. */
CG_API_ CG_CHECKED_ cg_status cg_isa_force(cg_isa isa);
CG_API_ const char *cg_isa_name(cg_isa isa); /* "avx2", for example */

#endif /* COMPGRAD_H */

/* src/core/begin.h */
/* begin: opens the implementation, which one file of the program compiles

   Offers   nothing; base/end closes what this room opens
   Needs    the options COMPGRAD_IMPLEMENTATION and COMPGRAD_LINKED
   Touches  nothing */

#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_IMPLEMENTED_ /* a second include with COMPGRAD_IMPLEMENTATION still defined does no harm */

/* src/core/base/platform.h */
/* platform: what the implementation asks of the compiler, the C library and the CPU family

   Offers   memcpy, memset and memmove, also freestanding; COMPGRAD_ASSERT; CG_BIG_ENDIAN_; which SIMD code is compiled
            (CG_AVX2_ and with it CG_AVX512_, CG_NEON_, CG_WASM_; CG_VECTOR_: any); attributes of functions; hints for
            branches, loops and prefetching
   Needs    nothing
   Touches  nothing
   Every header may use all of it, as all of base. It refuses to compile where bits would differ: x87 arithmetic, and
   fast math that clang cannot undo. */

#if defined(__STDC_HOSTED__) && __STDC_HOSTED__ == 0
#  ifdef __cplusplus
extern "C" {
#  endif
void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
#  ifdef __cplusplus
}
#  endif
#else
#  include <string.h>
#endif

#ifndef COMPGRAD_ASSERT
#  define COMPGRAD_ASSERT(condition) ((void)0)
#endif

#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ == 2
#  error "compgrad: x87 arithmetic rounds differently; compile with -msse2 -mfpmath=sse"
#endif
#if defined(__clang__) && defined(__FAST_MATH__) && !defined(__x86_64__) && !defined(__i386__)
#  error "compgrad: here clang's -ffast-math cannot be undone; compile this file without it"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#  define CG_BIG_ENDIAN_ 1
#else
#  define CG_BIG_ENDIAN_ 0
#endif

/* A build has one family of vector code at most. */
#define CG_AVX2_ 0
#define CG_AVX512_ 0
#define CG_NEON_ 0
#define CG_WASM_ 0
#if defined(COMPGRAD_NO_SIMD) || !defined(__GNUC__)
#elif defined(__x86_64__) || defined(__i386__)
#  undef CG_AVX2_
#  define CG_AVX2_ 1
#  if !defined(COMPGRAD_NO_AVX512) && (defined(__clang__) ? defined(__SSE2__) : __GNUC__ >= 7)
#    undef CG_AVX512_
#    define CG_AVX512_ 1
#  endif
#elif defined(__aarch64__) && defined(__ARM_NEON) && !CG_BIG_ENDIAN_
#  undef CG_NEON_
#  define CG_NEON_ 1
#elif defined(__wasm_simd128__)
#  undef CG_WASM_
#  define CG_WASM_ 1
#endif
#define CG_VECTOR_ (CG_AVX2_ || CG_NEON_ || CG_WASM_)

#if defined(__GNUC__) || defined(__clang__)
#  define CG_INLINE_ static inline __attribute__((always_inline, unused))
#  define CG_NOINLINE_ static __attribute__((noinline)) /* keeps the function's large arrays off its callers' stack */
#  define CG_OFFERED_ static __attribute__((unused))    /* for other headers: a build without them never calls it */
#  define CG_LIKELY_(c) __builtin_expect(!!(c), 1)
#  define CG_PREFETCH_(p) __builtin_prefetch(p)
#  define CG_PREFETCH_L2_(p) __builtin_prefetch(p, 0, 2)
#  define CG_PREFETCH_WRITE_(p) __builtin_prefetch(p, 1)
#else
#  define CG_INLINE_ static inline
#  define CG_NOINLINE_ static
#  define CG_OFFERED_ static
#  define CG_LIKELY_(c) (c)
#  define CG_PREFETCH_(p) ((void)(p))
#  define CG_PREFETCH_L2_(p) ((void)(p))
#  define CG_PREFETCH_WRITE_(p) ((void)(p))
#endif

/* Before a loop of at most eight steps: gcc -O2 would keep the loop, and arrays of vectors in memory. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#  define CG_UNROLL_ _Pragma("GCC unroll 8")
#elif defined(__clang__)
#  define CG_UNROLL_ _Pragma("clang loop unroll(full)")
#else
#  define CG_UNROLL_
#endif

/* src/core/base/with.h */
/* with: which rows of the tables this build has

   Offers   CG_IF_, CG_OR_BUILT_, CG_MAY_LEAVE_OUT_, CG_KERNEL_, CG_HAS_KERNEL_TABLE_, CG_LEFT_OUT_WHY_
   Needs    the caller's COMPGRAD_ONLY and COMPGRAD_WITH_..., each empty or 1
   Touches  nothing
   A row of a table asks for the macro that has its name, so that there is no list beside the tables. A function that
   only rows name which were left out is not in the object. */

#define CG_BARE_(...) __VA_ARGS__
#ifdef COMPGRAD_ONLY
#  define CG_MAY_LEAVE_OUT_ 1
/* CG_IF_(COMPGRAD_WITH_X, (tokens), (others)): the tokens if the macro is empty or 1, else the others. An empty macro
   or a 1 makes CG_DEFINED_... a word with a comma, behind which the tokens come second. */
#  define CG_IF_(with, in, out) CG_IF_PASTE_(with, in, out)
#  define CG_IF_PASTE_(with, in, out) CG_IF_SECOND_(CG_DEFINED_##with, in, out)
#  define CG_IF_SECOND_(word, in, out) CG_IF_TAKE_(word in, out, )
#  define CG_IF_TAKE_(first, second, ...) CG_BARE_ second
#  define CG_DEFINED_ 0,
#  define CG_DEFINED_1 0,
#else
#  define CG_MAY_LEAVE_OUT_ 0
#  define CG_IF_(with, in, out) CG_BARE_ in
#endif
/* Of each row of a list, "| 1" if it is in the build. */
#define CG_OR_BUILT_(id, ...) CG_IF_(COMPGRAD_WITH_##id, (| 1), (| 0))
/* Calls a kernel of an ISA's table: CG_KERNEL_(kernels, axpby(...)). A build that leaves rows out and has no SIMD calls
   its only kernels by their names, so that those which only such rows call are not in the object. */
#if CG_MAY_LEAVE_OUT_ && !CG_VECTOR_
#  define CG_HAS_KERNEL_TABLE_ 0
#  define CG_KERNEL_(kernels, call) ((void)(kernels), cg_only_##call)
#else
#  define CG_HAS_KERNEL_TABLE_ 1
#  define CG_KERNEL_(kernels, call) (kernels)->call
#endif
/* Of a row that was left out, what its stage is called, and its macro. */
#define CG_LEFT_OUT_WHY_(name, macro) name " was left out (COMPGRAD_WITH_" macro ")"

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

/* src/core/base/bits.h */
/* bits: byte order, bit patterns of floats, and integer arithmetic that sticks at its maximum

   Offers   sizes of chunk, block and wave; loads and stores of the little-endian wire and of unaligned floats;
            log2, ctz and popcount; the 64-bit mixing step of hashes; sums and products of sizes that saturate
   Needs    platform
   Touches  nothing but its arguments
   Every header may use all of it, as all of base. The intrinsics are included here, after fp_begin: their inline
   functions then have its floating-point flags, unless the includer has read them before. */

#if CG_AVX2_
#  include <immintrin.h>
#endif
#if CG_NEON_
#  include <arm_neon.h>
#endif
#if CG_WASM_
#  include <wasm_simd128.h>
#endif

#define CG_CHUNK_ 2048u        /* values that are worked on while they stay in L1 */
#define CG_BLOCK_ 65536u       /* values per block: the granularity of random keys, of summation order and of threads */
#define CG_ROTATE_BLOCK_ 1024u /* values that are rotated together */
#define CG_DCT_BLOCK_ 64u      /* values of one DCT */
#define CG_SKETCH_LINE_ 256u   /* values that a sketch hashes together */
#define CG_SKETCH_MAX_ROWS_ 15
#define CG_WAVE_ 64u             /* blocks whose partial results are held at once */
#define CG_INF_BITS_ 0x7f800000u /* magnitude bits of Inf; those of a NaN are larger */
#define CG_ABS_MASK_ 0x7fffffffu
#define CG_SIGN_BIT_ 0x80000000u
#define CG_FLT_MAX_ 3.402823466e+38f

/* Is the reserve of a public struct as it must be? */
CG_OFFERED_ int cg_all_zero_(const uint64_t *words, size_t count) {
    uint64_t any = 0;
    for (size_t i = 0; i < count; i++) any |= words[i];
    return !any;
}
#define CG_RESERVE_IS_ZERO_(r) cg_all_zero_((r), sizeof(r) / sizeof *(r))
/* The wire is little-endian, and p may be any address. */
CG_INLINE_ uint16_t cg_get16_(const uint8_t *p) { return (uint16_t)(p[0] | (unsigned)p[1] << 8); }
CG_INLINE_ uint32_t cg_get32_(const uint8_t *p) {
#if CG_BIG_ENDIAN_
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
#else
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
#endif
}
CG_INLINE_ uint64_t cg_get64_(const uint8_t *p) { return cg_get32_(p) | (uint64_t)cg_get32_(p + 4) << 32; }
CG_INLINE_ void cg_put16_(uint8_t *p, uint32_t v) { /* the low 16 bits of v */
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}
CG_INLINE_ void cg_put32_(uint8_t *p, uint32_t v) {
#if CG_BIG_ENDIAN_
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
    p[3] = (uint8_t)(v >> 24);
#else
    memcpy(p, &v, 4);
#endif
}
CG_INLINE_ void cg_put64_(uint8_t *p, uint64_t v) {
    cg_put32_(p, (uint32_t)v);
    cg_put32_(p + 4, (uint32_t)(v >> 32));
}

CG_INLINE_ uint32_t cg_as_bits_(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
CG_INLINE_ float cg_as_float_(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}

/* v with its sign flipped if sign is CG_SIGN_BIT_, not if it is 0. */
CG_INLINE_ float cg_xor_sign_(float v, uint32_t sign) { return cg_as_float_(cg_as_bits_(v) ^ sign); }

/* Value i of an array of floats of the machine's byte order, which may lie at any address: the caller's vectors are
   never accessed as float lvalues. */
CG_INLINE_ float cg_load_(const float *v, size_t i) {
    float f;
    memcpy(&f, (const uint8_t *)v + 4 * i, 4);
    return f;
}
CG_INLINE_ uint32_t cg_load_bits_(const float *v, size_t i) {
    uint32_t u;
    memcpy(&u, (const uint8_t *)v + 4 * i, 4);
    return u;
}
CG_INLINE_ void cg_store_(float *v, size_t i, float f) { memcpy((uint8_t *)v + 4 * i, &f, 4); }
/* v + i, computed in bytes: on a pointer that is not aligned for float the C operator would be undefined. */
CG_INLINE_ const float *cg_at_(const float *v, size_t i) {
    return (const float *)(const void *)((const uint8_t *)v + 4 * i);
}
CG_INLINE_ float *cg_at_mut_(float *v, size_t i) { return (float *)(void *)((uint8_t *)v + 4 * i); }

CG_INLINE_ size_t cg_min_(size_t a, size_t b) { return a < b ? a : b; }
CG_INLINE_ uint64_t cg_max64_(uint64_t a, uint64_t b) { return a > b ? a : b; }
CG_INLINE_ uint32_t cg_max32_(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* a/b, rounded down or up, without the division where there is less than one b: it would be seen on short vectors. */
CG_INLINE_ size_t cg_quotient_(size_t a, size_t b) { return a < b ? 0 : a / b; }
CG_INLINE_ uint64_t cg_quotient_up_(uint64_t a, uint64_t b) { return a <= b ? a != 0 : a / b + (a % b != 0); }
CG_INLINE_ unsigned cg_log2_(uint64_t v) { /* rounded down; v > 0 */
#if defined(__GNUC__)
    return 63u - (unsigned)__builtin_clzll(v);
#else
    unsigned l = 0;
    while (v >>= 1) l++;
    return l;
#endif
}
CG_INLINE_ unsigned cg_ctz_(uint64_t v) { /* zeros below the lowest 1; v > 0 */
#if defined(__GNUC__)
    return (unsigned)__builtin_ctzll(v);
#else
    unsigned c = 0;
    while (!(v & 1)) {
        v >>= 1;
        c++;
    }
    return c;
#endif
}
CG_INLINE_ unsigned cg_popcount_(uint64_t v) {
    v = v - (v >> 1 & 0x5555555555555555u);
    v = (v & 0x3333333333333333u) + (v >> 2 & 0x3333333333333333u);
    v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (unsigned)(v * 0x0101010101010101u >> 56);
}

/* The mixing step of every hash and random key (SplitMix64's finalizer and increment): a bijection of 64 bits. */
#define CG_GOLDEN_ 0x9E3779B97F4A7C15u
CG_INLINE_ uint64_t cg_mix64_(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Sizes: sums and products that overflow become CG_TOO_LARGE_ and stay there: one check at the end is enough. */
#define CG_TOO_LARGE_ UINT64_MAX
CG_INLINE_ uint64_t cg_add_sat_(uint64_t a, uint64_t b) { return a > CG_TOO_LARGE_ - b ? CG_TOO_LARGE_ : a + b; }
CG_INLINE_ uint64_t cg_mul_sat_(uint64_t a, uint64_t b) {
    if (CG_LIKELY_(!((a | b) >> 32))) return a * b; /* a division takes longer */
    return b && a > CG_TOO_LARGE_ / b ? CG_TOO_LARGE_ : a * b;
}
CG_INLINE_ uint64_t cg_word_bytes_(uint64_t bits) { /* bytes of the whole u32 words that hold so many bits */
    return bits == CG_TOO_LARGE_ ? bits : (bits / 32 + (bits % 32 != 0)) * 4;
}
/* A number of bytes as public functions return it: 0 for one that no array can have. */
CG_INLINE_ size_t cg_size_or_zero_(uint64_t bytes) { return bytes > SIZE_MAX / 2 ? 0 : (size_t)bytes; }

/* src/core/base/math.h */
/* math: float and double arithmetic with one rounding per operation, the same bits on every machine; no libm

   Offers   sums and products of floats, finite checks, saturation to finite values, fading, square root, logarithm
   Needs    platform, bits
   Touches  nothing but its arguments
   Every header may use all of it, as all of base. Finite checks look at bits: an includer's fast math would take
   comparisons with Inf or NaN for constants. */

/* clang's back end fuses a product with a sum under -ffp-contract=fast, whatever the pragmas of fp_begin say. An empty
   asm statement hides the product from it. AVX-512 has the instruction, and what its kernels call is inlined there. */
#if defined(__clang__) && (defined(__FMA__) || CG_AVX512_)
#  define CG_NO_FMA_(product) __asm__("" : "+x"(product))
#elif defined(__clang__) && defined(__aarch64__)
#  define CG_NO_FMA_(product) __asm__("" : "+w"(product))
#else
#  define CG_NO_FMA_(product) ((void)0)
#endif

/* One rounding each, also where the compiler evaluates float expressions in double (FLT_EVAL_METHOD 1). */
CG_INLINE_ float cg_plus_(float a, float b) { return (float)(a + b); }
CG_INLINE_ float cg_minus_(float a, float b) { return (float)(a - b); }
CG_INLINE_ float cg_times_(float a, float b) {
    float p = a * b;
    CG_NO_FMA_(p);
    return p;
}
CG_INLINE_ double cg_times64_(double a, double b) {
    double p = a * b;
    CG_NO_FMA_(p);
    return p;
}

CG_INLINE_ uint64_t cg_as_bits64_(double d) {
    uint64_t u;
    memcpy(&u, &d, 8);
    return u;
}
CG_INLINE_ double cg_as_double_(uint64_t u) {
    double d;
    memcpy(&d, &u, 8);
    return d;
}
CG_INLINE_ int cg_is_finite_(float f) { return (cg_as_bits_(f) & CG_ABS_MASK_) < CG_INF_BITS_; }
CG_INLINE_ int cg_is_finite64_(double d) { return (cg_as_bits64_(d) >> 52 & 0x7ff) != 0x7ff; }

/* Inf becomes the largest finite value of its sign; all else, NaN too, stays. */
CG_INLINE_ float cg_saturate_(float v) {
    uint32_t u = cg_as_bits_(v);
    return cg_as_float_(u - ((u & CG_ABS_MASK_) == CG_INF_BITS_));
}
/* To f32: what is beyond its range becomes the largest finite value of its sign; a NaN stays. */
CG_INLINE_ float cg_saturate64_(double d) {
    return d > (double)CG_FLT_MAX_ ? CG_FLT_MAX_ : d < -(double)CG_FLT_MAX_ ? -CG_FLT_MAX_ : (float)d;
}

/* Fading: magnitudes below 2^-100 become +0. Rounding would otherwise keep a decaying value among the denormals,
   which are slow, for ever. */
#define CG_FADE_BITS_ 0x0d800000u /* the bits of 2^-100 */
CG_INLINE_ float cg_faded_(float v) { return (cg_as_bits_(v) & CG_ABS_MASK_) < CG_FADE_BITS_ ? 0.0f : v; }

/* Square root, correctly rounded; x is finite and not negative. */
#if CG_AVX2_ && defined(__SSE2__)
CG_INLINE_ double cg_sqrt_(double x) { return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(x))); }
#elif CG_NEON_
CG_INLINE_ double cg_sqrt_(double x) {
    double r;
    __asm__("fsqrt %d0, %d1" : "=w"(r) : "w"(x));
    return r;
}
#else
static double cg_sqrt_(double x) { /* a bit of the root at a time */
    uint64_t u = cg_as_bits64_(x), remainder = u & (((uint64_t)1 << 52) - 1), root = 0, sum = 0;
    int exponent = (int)(u >> 52);
    if (u == 0 || u >> 63) return 0.0;
    if (exponent) {
        remainder |= (uint64_t)1 << 52;
    } else { /* a denormal: its leading bit to bit 52 */
        int shift = 52 - (int)cg_log2_(remainder);
        remainder <<= shift;
        exponent = 1 - shift;
    }
    exponent -= 1023;
    remainder <<= 1 + (exponent & 1); /* an even exponent is left, and room for the bit that rounds */
    exponent -= exponent & 1;
    for (uint64_t bit = (uint64_t)1 << 53; bit; bit >>= 1, remainder <<= 1) {
        uint64_t t = sum + bit;
        if (t <= remainder) {
            sum = t + bit;
            remainder -= t;
            root += bit;
        }
    }
    root = (root + (root & 1)) >> 1; /* there are no ties: the root of one would square to more bits than x has */
    return cg_as_double_(root + ((uint64_t)(exponent / 2 + 1022) << 52));
}
#endif

/* Natural logarithm of a positive finite x (others would loop for ever): x = m*2^e, then the series of artanh for m.
   The error is below 1e-15. */
static double cg_ln_(double x) {
    double s, s2, t = 0.0, e = 0.0;
    while (x < 0.7071067811865476) {
        x *= 2.0;
        e -= 0.6931471805599453;
    }
    while (x > 1.4142135623730951) {
        x *= 0.5;
        e += 0.6931471805599453;
    }
    s = (x - 1.0) / (x + 1.0);
    s2 = s * s;
    for (int i = 25; i >= 1; i -= 2) {
        t *= s2;
        CG_NO_FMA_(t);
        t += 1.0 / (double)i;
    }
    t *= 2.0 * s;
    CG_NO_FMA_(t);
    return t + e;
}

/* src/core/base/report.h */
/* report: how a call went, and where a vector is not finite

   Offers   cg_report_set_, cg_report_copy_outcome_, cg_first_nonfinite_
   Needs    bits
   Touches  the caller's report
   why is constant text: sentences with numbers are made by cg_report_print, in the caller's buffer. */

/* All other fields become 0, and rank -1. */
static void cg_report_set_(cg_report *r, cg_status status, const char *why, uint64_t need, uint64_t at) {
    memset(r, 0, sizeof *r);
    r->rank = -1;
    r->status = (uint32_t)status;
    r->why = why;
    r->need = need;
    r->at = at;
}
/* All that says how a call went, but not what it moved. */
CG_OFFERED_ void cg_report_copy_outcome_(cg_report *to, const cg_report *from) {
    to->rank = from->rank;
    to->code = from->code;
    to->why = from->why;
    to->status = from->status;
    to->need = from->need;
    to->at = from->at;
}
/* Index of the first NaN or Inf of x, or CG_NO_INDEX. For errors only: it goes from value to value. */
static uint64_t cg_first_nonfinite_(const float *x, size_t n) {
    for (size_t i = 0; x && i < n; i++)
        if (!cg_is_finite_(cg_load_(x, i))) return i;
    return CG_NO_INDEX;
}

/* src/core/base/environment.h */
/* environment: the caller's rounding mode, flush-to-zero and traps change no bit of a result

   Offers   cg_fenv_enter_ and cg_fenv_leave_, in pairs around all floating-point work of a thread;
            cg_fenv_enter_thread_ and cg_fenv_leave_thread_
   Needs    platform
   Touches  the control word of the calling thread's floating-point unit
   Every header may use all of it, as all of base. On machines without a case below the control word is left alone. */

typedef struct cg_fenv_ {
    uint64_t saved; /* the caller's control word */
} cg_fenv_;

/* Sets round to nearest, denormals kept, no traps. The result goes to cg_fenv_leave_ on the same thread, on every way
   out. Pairs may be nested. */
CG_INLINE_ cg_fenv_ cg_fenv_enter_(void) {
    cg_fenv_ env = { 0 };
#if (defined(__x86_64__) || defined(__SSE2_MATH__)) && (defined(__GNUC__) || defined(__TINYC__))
    uint32_t now = 0, clean = 0x1f80; /* nearest, no FTZ or DAZ, all traps masked */
    /* stmxcsr (%rax) and ldmxcsr (%rax) as bytes, as tcc does not know their names */
    __asm__ __volatile__(".byte 0x0f, 0xae, 0x18" : : "a"(&now) : "memory");
    env.saved = now;
    /* loading it takes longer than all of this; the low six bits are flags of what has happened, and change nothing */
    if ((now ^ clean) & 0xffc0) __asm__ __volatile__(".byte 0x0f, 0xae, 0x10" : : "a"(&clean) : "memory");
#elif defined(__aarch64__) && defined(__GNUC__)
    uint64_t now, clean = 0;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(now) : : "memory");
    env.saved = now;
    if (now) __asm__ __volatile__("msr fpcr, %0" : : "r"(clean) : "memory");
#elif defined(__s390x__) && defined(__GNUC__)
    uint32_t now, clean = 0;
    __asm__ __volatile__("efpc %0" : "=r"(now) : : "memory");
    env.saved = now;
    __asm__ __volatile__("sfpc %0" : : "r"(clean) : "memory");
#elif defined(__riscv_flen) && defined(__GNUC__)
    unsigned long now, clean = 0;
    __asm__ __volatile__("fsrm %0, %1" : "=r"(now) : "r"(clean) : "memory");
    env.saved = now;
#endif
    return env;
}
CG_INLINE_ void cg_fenv_leave_(cg_fenv_ env) {
#if (defined(__x86_64__) || defined(__SSE2_MATH__)) && (defined(__GNUC__) || defined(__TINYC__))
    uint32_t now = 0, saved = (uint32_t)env.saved;
    __asm__ __volatile__(".byte 0x0f, 0xae, 0x18" : : "a"(&now) : "memory");
    if (now != saved) __asm__ __volatile__(".byte 0x0f, 0xae, 0x10" : : "a"(&saved) : "memory");
#elif defined(__aarch64__) && defined(__GNUC__)
    if (env.saved) __asm__ __volatile__("msr fpcr, %0" : : "r"(env.saved) : "memory");
#elif defined(__s390x__) && defined(__GNUC__)
    uint32_t saved = (uint32_t)env.saved;
    __asm__ __volatile__("sfpc %0" : : "r"(saved) : "memory");
#elif defined(__riscv_flen) && defined(__GNUC__)
    unsigned long saved = (unsigned long)env.saved, unused;
    __asm__ __volatile__("fsrm %0, %1" : "=r"(unused) : "r"(saved) : "memory");
    (void)unused;
#else
    (void)env;
#endif
}
/* The same around the work of a thread that CG_PARALLEL_ may have started: threads have their own environment. Without
   threads the caller has entered. */
#if defined(COMPGRAD_OPENMP) && defined(_OPENMP)
CG_INLINE_ cg_fenv_ cg_fenv_enter_thread_(void) { return cg_fenv_enter_(); }
CG_INLINE_ void cg_fenv_leave_thread_(cg_fenv_ env) { cg_fenv_leave_(env); }
#else
CG_INLINE_ cg_fenv_ cg_fenv_enter_thread_(void) {
    const cg_fenv_ env = { 0 };
    return env;
}
CG_INLINE_ void cg_fenv_leave_thread_(cg_fenv_ env) { (void)env; }
#endif

/* src/core/base/words.h */
/* words: text read and written without libc and locale: words, numbers, pieces of sentences, and which name is near

   Offers   cg_text_, which sentences are written to; cg_parser_ and cg_word_; cg_decimal_read_,
            cg_float_from_decimal_, cg_text_float_; cg_why_at_, cg_why_, cg_why_quote_; cg_name_distance_, cg_same_text_
   Needs    math
   Touches  the caller's text
   Every header may use all of it, as all of base. What does not fit into a text is dropped. */

typedef struct cg_text_ {
    char *at, *end; /* next character, end of the buffer; at == end: full, and text may have been lost */
} cg_text_;

/* What no longer fits is dropped; cg_op_print_ sees it by at == end. */
static void cg_text_char_(cg_text_ *t, char c) {
    if (t->at < t->end) *t->at++ = c;
}
static void cg_text_str_(cg_text_ *t, const char *s) {
    while (*s) cg_text_char_(t, *s++);
}
static void cg_text_uint_(cg_text_ *t, uint64_t v) {
    char digits[20];
    int count = 0;
    do {
        digits[count++] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    while (count) cg_text_char_(t, digits[--count]);
}
static double cg_power10_(int e) {
    double p = 1.0;
    while (e-- > 0) p *= 10.0;
    return p;
}
/* digits * 10^exponent as a float, at most CG_FLT_MAX_. Nearly always the nearest; printing and parsing agree
   because both call this function. */
static float cg_float_from_decimal_(uint64_t digits, int exponent) {
    double d = (double)digits;
    if (!digits || exponent < -80) return 0.0f;
    if (exponent > 60) return CG_FLT_MAX_;
    d = exponent < 0 ? d / cg_power10_(-exponent) : d * cg_power10_(exponent);
    return d >= (double)CG_FLT_MAX_ ? CG_FLT_MAX_ : (float)d;
}
/* The shortest decimal that reads back as the same float. f >= 0 and finite. */
static void cg_text_float_(cg_text_ *t, float f) {
    uint64_t digits = 0;
    int exponent = 0, point;
    double d = (double)f;
    if (f > 0.0f) {
        while (d >= 1.0) {
            d /= 10.0;
            exponent++;
        }
        while (d < 0.1) {
            d *= 10.0;
            exponent--;
        }
        /* now d is in [0.1, 1), and f = d*10^exponent */
        for (int many = 1; many <= 17; many++) {
            digits = (uint64_t)(d * cg_power10_(many) + 0.5);
            if (cg_float_from_decimal_(digits, exponent - many) == f || many == 17) {
                exponent -= many;
                break;
            }
        }
    }
    for (; digits && digits % 10 == 0; digits /= 10) exponent++;
    /* point: how many digits stand before the last */
    for (point = 0; point < 9 && digits >= (uint64_t)cg_power10_(point + 1); point++) {}
    if (exponent >= 0 && exponent + point <= 8) {
        cg_text_uint_(t, digits * (uint64_t)cg_power10_(exponent));
    } else if (exponent < 0 && exponent >= -9) {
        uint64_t pow10 = (uint64_t)cg_power10_(-exponent);
        cg_text_uint_(t, digits / pow10);
        cg_text_char_(t, '.');
        for (digits %= pow10, pow10 /= 10; pow10; digits %= pow10, pow10 /= 10)
            cg_text_char_(t, (char)('0' + digits / pow10));
    } else {
        cg_text_uint_(t, digits);
        cg_text_char_(t, 'e');
        if (exponent < 0) cg_text_char_(t, '-');
        cg_text_uint_(t, (uint64_t)(exponent < 0 ? -exponent : exponent));
    }
}

static int cg_same_text_(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

typedef struct cg_parser_ {
    const char *text, *p; /* all of it, and the next byte */
    cg_text_ why;         /* the sentence; what does not fit is dropped */
} cg_parser_;
/* A word of the text: up to the next ':', '|', blank or end. */
typedef struct cg_word_ {
    const char *p;
    size_t len;
} cg_word_;

static int cg_is_blank_(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static char cg_lower_(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }
static void cg_skip_blanks_(cg_parser_ *s) {
    while (cg_is_blank_(*s->p)) s->p++;
}
/* Skips blanks, then c; 0: c is not there, and nothing has been skipped. */
static int cg_take_(cg_parser_ *s, char c) {
    const char *before = s->p;
    cg_skip_blanks_(s);
    if (*s->p == c) {
        s->p++;
        return 1;
    }
    s->p = before;
    return 0;
}
/* The word after blanks; it stays to be read. */
static cg_word_ cg_word_next_(cg_parser_ *s) {
    cg_word_ w;
    cg_skip_blanks_(s);
    w.p = s->p;
    for (w.len = 0; w.p[w.len] && w.p[w.len] != ':' && w.p[w.len] != '|' && !cg_is_blank_(w.p[w.len]);) w.len++;
    return w;
}
/* Is the word this name, in letters of either case? Names are in small letters. */
static int cg_word_is_(cg_word_ w, const char *name) {
    size_t i = 0;
    for (; i < w.len && name[i]; i++)
        if (cg_lower_(w.p[i]) != name[i]) return 0;
    return i == w.len && !name[i];
}

/* *id = the number of the name that text is, in letters of either case; name_of gives the names, and NULL behind the
   last. CG_E_ARG: it is none of them. */
/* Characters before the final 0. Volatile, as compilers make a call of strlen of such a loop otherwise, and the
   implementation is for machines without a C library, too. */
CG_OFFERED_ size_t cg_text_len_(const char *text) {
    size_t len = 0;
    while (((const volatile char *)text)[len]) len++;
    return len;
}
CG_OFFERED_ cg_status cg_name_parse_(uint32_t *id, const char *text, const char *(*name_of)(uint32_t)) {
    cg_word_ w;
    if (!id || !text) return CG_E_ARG;
    w.p = text;
    w.len = cg_text_len_(text);
    for (uint32_t i = 0; name_of(i); i++)
        if (cg_word_is_(w, name_of(i))) return *id = i, CG_OK;
    return CG_E_ARG;
}

/* ---- pieces of sentences ---- */

static void cg_why_at_(cg_parser_ *s, const char *where) {
    cg_text_str_(&s->why, "at ");
    cg_text_uint_(&s->why, (uint64_t)(where - s->text));
    cg_text_str_(&s->why, ": ");
}
static int cg_why_(cg_parser_ *s, const char *where, const char *sentence) {
    cg_why_at_(s, where);
    cg_text_str_(&s->why, sentence);
    return 0;
}
/* The word in quotes, cut to 24 bytes. */
static void cg_why_quote_(cg_parser_ *s, cg_word_ w) {
    cg_text_char_(&s->why, '\'');
    for (size_t i = 0; i < w.len && i < 24; i++)
        cg_text_char_(&s->why, w.p[i] >= ' ' && w.p[i] <= '~' && w.p[i] != '\'' ? w.p[i] : '?');
    cg_text_str_(&s->why, w.len > 24 ? "...'" : "'");
}
enum { CG_NEAR_LETTERS_ = 24 };
/* The letters of a word that count in comparisons, small and without '-' and '_'; returns how many, at most
   CG_NEAR_LETTERS_. */
static int cg_letters_(const char *p, size_t len, char *out) {
    int count = 0;
    for (size_t i = 0; i < len && p[i] && count < CG_NEAR_LETTERS_; i++)
        if (p[i] != '-' && p[i] != '_') out[count++] = cg_lower_(p[i]);
    return count;
}
/* How many letters must be changed, added, left out or swapped with their neighbour to make b of a. */
static int cg_edit_distance_(const char *a, int a_len, const char *b, int b_len) {
    int row[3][CG_NEAR_LETTERS_ + 1]; /* of the letters i - 2, i - 1 and i of a */
    for (int j = 0; j <= b_len; j++) row[1][j] = j, row[0][j] = 0;
    for (int i = 1; i <= a_len; i++) {
        int *const now = row[(i + 1) % 3], *const last = row[i % 3], *const before = row[(i + 2) % 3];
        now[0] = i;
        for (int j = 1; j <= b_len; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (best > last[j] + 1) best = last[j] + 1;
            if (best > now[j - 1] + 1) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && best > before[j - 2] + 1)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[(a_len + 1) % 3][b_len];
}
/* How far a word is from a name; 99: too far to be meant. The first letters of a name are near it. */
static int cg_name_distance_(cg_word_ w, const char *name) {
    char a[CG_NEAR_LETTERS_], b[CG_NEAR_LETTERS_];
    const int a_len = cg_letters_(w.p, w.len, a), b_len = cg_letters_(name, CG_NEAR_LETTERS_, b);
    const int limit = a_len < 2 ? 0 : a_len < 6 ? 1 : a_len < 10 ? 2 : 3;
    int d = cg_edit_distance_(a, a_len, b, b_len), same = 0;
    while (same < a_len && same < b_len && a[same] == b[same]) same++;
    if (a_len > 2 && same == a_len && d > 1) return 1;
    return w.len > CG_NEAR_LETTERS_ || d > limit ? 99 : d;
}
/* A decimal number: [-] digits with at most one point, then perhaps an exponent. */
typedef struct cg_decimal_ {
    uint64_t digits; /* at most 18 of them */
    int exponent, minus;
    int has_point;  /* or an exponent */
    uint64_t whole; /* without one: the number, unless it overflows */
    int overflows;
} cg_decimal_;
static int cg_decimal_read_(cg_word_ w, cg_decimal_ *d) {
    size_t i = w.len && w.p[0] == '-';
    int any = 0, point = 0, minus, e = 0;
    d->digits = d->whole = 0;
    d->exponent = d->has_point = d->overflows = 0;
    d->minus = i != 0;
    for (; i < w.len && ((w.p[i] >= '0' && w.p[i] <= '9') || (w.p[i] == '.' && !point)); i++) {
        if (w.p[i] == '.') {
            point = d->has_point = 1;
            continue;
        }
        any = 1;
        d->overflows |= d->whole > (UINT64_MAX - (uint64_t)(w.p[i] - '0')) / 10;
        d->whole = d->whole * 10 + (uint64_t)(w.p[i] - '0');
        if (d->digits < 100000000000000000u) {
            d->digits = d->digits * 10 + (uint64_t)(w.p[i] - '0');
            d->exponent -= point;
        } else d->exponent += !point;
        if (d->exponent > 100000) d->exponent = 100000;
        if (d->exponent < -100000) d->exponent = -100000;
    }
    if (!any || i == w.len) return any;
    if (cg_lower_(w.p[i]) != 'e') return 0;
    d->has_point = 1;
    minus = ++i < w.len && w.p[i] == '-';
    if (i < w.len && (w.p[i] == '-' || w.p[i] == '+')) i++;
    if (i == w.len) return 0;
    for (; i < w.len; i++) {
        if (w.p[i] < '0' || w.p[i] > '9') return 0;
        if (e < 100000) e = e * 10 + (w.p[i] - '0');
    }
    d->exponent += minus ? -e : e;
    return 1;
}

/* src/core/random.h */
/* random: random numbers as a pure function of (tag, position), which is part of the wire format

   Offers   shared and per-rank keys of a tag, keys of blocks, 32 hash bits per counter, rounding noise, PermK's draw
   Needs    base
   Touches  nothing but its arguments
   Other headers may use: cg_block_key_, cg_shared_key_
   There is no generator state: any thread and any ISA can make the number of any position by itself. */

/* The key of a tag that all ranks agree on (rank is left out): samples, rotations, permutations. */
static uint64_t cg_shared_key_(const cg_tag *tag) {
    uint64_t z = cg_mix64_(tag->seed + CG_GOLDEN_);
    z = cg_mix64_(z ^ (tag->step + 2 * CG_GOLDEN_));
    return cg_mix64_(z ^ (tag->tensor + 3 * CG_GOLDEN_));
}
/* The key that differs by rank: rounding and selection by chance. */
static uint64_t cg_rank_key_(const cg_tag *tag) {
    return cg_mix64_(cg_shared_key_(tag) ^ (tag->rank + 4 * CG_GOLDEN_));
}

/* For ranks that round together: what keeps their noise apart from samples and rotations. */
#define CG_TOGETHER_KEY_ 0x746F676574686572u

/* The key of one block of 65536 positions. With one word instead of two, the hashes of two blocks would overlap too
   often. */
typedef struct cg_key_ {
    uint32_t a, b;  /* a: xor with the counter; b: added between the two multiplications */
    uint32_t shift; /* added to rounding noise: ranks that round together share a and b, and differ here */
} cg_key_;
/* key: of cg_shared_key_ or cg_rank_key_, perhaps xor a constant of the purpose; block: any number. */
CG_INLINE_ cg_key_ cg_block_key_(uint64_t key, uint64_t block) {
    uint64_t s = cg_mix64_(key + (block + 1) * CG_GOLDEN_);
    cg_key_ k;
    k.a = (uint32_t)s;
    k.b = (uint32_t)(s >> 32);
    k.shift = 0;
    return k;
}
/* 32 uniform bits; for one key a bijection of the counter. cg_vu_hash_ makes eight at once. */
CG_INLINE_ uint32_t cg_hash32_(cg_key_ key, uint32_t counter) {
    uint32_t h = counter ^ key.a;
    h = (h ^ h >> 16) * 0x7FEB352Du;
    h = ((h ^ h >> 15) + key.b) * 0x846CA68Bu;
    return h ^ h >> 16;
}
/* The bits that the value at a position within its block rounds with. Positions p and p + 8 of 16 share one hash: the
   second sees its halves swapped, so that the high bits of the two are independent. */
CG_INLINE_ uint32_t cg_noise_bits_(cg_key_ key, uint32_t position) {
    const uint32_t h = cg_hash32_(key, (position >> 4) << 3 | (position & 7));
    return (position & 8 ? h << 16 | h >> 16 : h) + key.shift;
}
/* The same as a fraction in [-0.5, 0.5]. */
CG_INLINE_ float cg_noise_(cg_key_ key, uint32_t position) {
    return (float)(int32_t)cg_noise_bits_(key, position) * 2.3283064365386963e-10f;
}
/* The shift of one of `ranks` ranks that round together: their noise is spread evenly over all of its range. */
static uint32_t cg_noise_shift_(uint32_t rank, uint32_t ranks) {
    return (uint32_t)(((uint64_t)(rank % ranks) << 32) / ranks);
}
/* PermK: which of the group_size neighbours of a group this rank takes. rank < group_size; over all ranks the result
   is a cyclic shift of 0..group_size-1, chosen by (key, group), so no two ranks take the same. */
CG_INLINE_ uint64_t cg_permk_index_(uint64_t key, uint64_t group, uint32_t group_size, uint32_t rank) {
    uint64_t shift = (uint64_t)cg_hash32_(cg_block_key_(key, group >> 16), (uint32_t)(group & 0xffff)) * group_size >>
        32;
    return shift + rank < group_size ? shift + rank : shift + rank - group_size;
}

/* src/core/kernels/table.h */
/* table: the kernels' contracts, and the structs they take

   Offers   cg_kernels_, the table of all kernels of one ISA; cg_checksum_, cg_levels_, cg_bucketizer_, cg_rate_grid_,
            cg_dither_, cg_bernoulli_, cg_index_bits_, cg_line_target_
   Needs    base, random
   Touches  nothing but its arguments
   Other headers may use: cg_checksum_, cg_kernels_, cg_line_target_, kernels->absmax_bits, kernels->axpby,
   kernels->checksum, kernels->line_add, kernels->line_estimate, kernels->line_project
   A kernel cg_..._scalar_ is the specification; cg_..._simd_ below it is written once over the vector layer, is
   compiled for every ISA of the build (dispatch), and returns the same bits, but for the sign and payload of a NaN.
   Kernels run between cg_fenv_enter_ and cg_fenv_leave_. */

/* Fletcher's checksum over consecutive little-endian u32 words, modulo 2^64. Checksums of neighbouring runs can be
   joined, see cg_checksum_concat_. */
typedef struct cg_checksum_ {
    uint64_t a;     /* sum of the words */
    uint64_t b;     /* sum of a after each word */
    uint64_t words; /* how many words */
} cg_checksum_;

/* The uniform grid of a bucket; made by cg_levels_make_, but for inv_step, which encoders set. */
typedef struct cg_levels_ {
    /* encode: symbol = round((v*prescale - encode_offset)*inv_step) + zero_symbol, within [0, max_symbol] */
    float prescale;      /* a power of two, 1 but for huge or tiny values */
    float encode_offset; /* equals decode_offset, but 0 for a range of 0 */
    float inv_step;      /* levels per (prescaled) value; 0 gives the symbol of level 0 to all values */
    int32_t zero_symbol; /* the symbol of level 0: 0 if the grid begins at decode_offset, else max_symbol/2 */
    int32_t max_symbol;  /* 1..255 */
    /* decode: value = (decode_offset + (symbol - zero_symbol)*step)*postscale, kept finite */
    float decode_offset; /* the (prescaled) value of level 0 */
    float step;          /* (prescaled) value per level */
    float postscale;     /* 1/prescale */
    float range;         /* (prescaled) value of the levels 0..max_symbol or 0..zero_symbol: inv_step is taken of it */
    int stochastic;      /* adds cg_noise_ before it rounds */
} cg_levels_;

/* Symbols by thresholds on the magnitude. */
typedef struct cg_bucketizer_ {
    float inv_scale;     /* multiplies |v| before the comparisons */
    int32_t limit_count; /* 0..7; symbols without the sign are 0..limit_count */
    float limit[7];      /* ascending; those from limit_count on are not looked at */
    uint8_t sign_bit;    /* is set in the symbol of a negative value; 0: no signs */
} cg_bucketizer_;

/* A grid with a dead zone for all values, of levels of 16 bits. */
typedef struct cg_rate_grid_ {
    float lift; /* 1, 2^100 or 2^-100: values are multiplied by it first */
    float step; /* of values that were */
    float inv;  /* 1/step */
    float dead; /* added to |v|/step before it is cut to a level; stochastic: not used */
    int stochastic;
    uint32_t keep; /* of 2^32 values of level 1 so many are kept, others become 0; UINT32_MAX: all */
} cg_rate_grid_;

/* Natural dithering: levels are powers of two. */
typedef struct cg_dither_ {
    float inv_scale; /* multiplies v: magnitudes up to the scale become at most 1 */
    unsigned bits;   /* per symbol, 2..8: a sign and the level */
    int stochastic;  /* else to nearest */
} cg_dither_;

/* Selection of values by chance: one of magnitude m is selected with probability (m*prescale)*inv_threshold. */
typedef struct cg_bernoulli_ {
    cg_key_ key;         /* of the block of 65536 positions */
    float threshold;     /* from this magnitude on a value is certain, and sent as it is; below as +-threshold */
    float prescale;      /* a power of two that keeps inv_threshold finite */
    float inv_threshold; /* 1/(threshold*prescale) */
} cg_bernoulli_;

/* Reads an index section of Elias-Fano code or a bitmap. */
typedef struct cg_index_bits_ {
    const uint8_t *low_part;  /* Elias-Fano: where the low parts begin; they end where the high bits begin */
    const uint8_t *next_high; /* next unread word of the high bits, or of the bitmap */
    const uint8_t *end;       /* of the section */
    uint64_t word;            /* unread bits of the current 64-bit word */
    uint64_t bit_base;        /* the number of its first bit; 2^64 - 64 before the first word */
    uint64_t read_count;      /* indices read */
    unsigned low_bits;        /* Elias-Fano: bits of a low part */
    int bitmap;               /* else Elias-Fano */
} cg_index_bits_;

/* Where a row of a sketch takes a line. */
typedef struct cg_line_target_ {
    float *cells;          /* the first of CG_SKETCH_LINE_ */
    uint32_t xor_mask;     /* 8 bits, XORed to the offset in the line */
    cg_key_ sign_key;      /* of the line's signs, and of its weights in groups */
    const float *prefetch; /* as many cells that will be needed next, or these */
} cg_line_target_;

/* All kernels, as X(type of the result, name, parameters, arguments). The table, its values for each ISA and the test
   of every kernel are made of this one list. Common to them:
     - v, x, y and out are arrays of floats at any address, in and symbols bytes at any address;
     - n may be 0, and n values are read and written, no more, unless said otherwise;
     - non_temporal (decoders): out begins at a multiple of 16 bytes and is larger than the caches, so that stores
       may bypass them; stream_fence() ends such a run;
     - lanes: 16 f64 partial sums, to lane i % 16 goes the term of value i of this call; the caller sets them before;
     - absmax bits: the largest magnitude as f32 bits, 0 for n == 0. From CG_INF_BITS_ on some value is Inf or NaN:
       the finite check. Unless said otherwise an encoder writes symbols for such values too, of no meaning;
     - position: of v[0] within its block of 65536, for the noise of stochastic rounding. */
/* clang-format off */
#define CG_KERNEL_LIST_(X)                                                                                            \
  /* Encoding. Those that return absmax bits make the finite check on the way. */                                     \
  /* absmax bits of n values */                                                                                       \
  X(uint32_t, absmax_bits, (const float *v, size_t n), (v, n))                                                        \
  /* lowers *lo and raises *hi to the values (meaningless after a NaN; a zero has any sign); returns absmax bits */   \
  X(uint32_t, range, (const float *v, size_t n, float *lo, float *hi), (v, n, lo, hi))                                \
  /* f32 to the wire, 4 bytes each; returns absmax bits */                                                            \
  X(uint32_t, copy, (const float *v, size_t n, uint8_t *out), (v, n, out))                                            \
  /* f16 to the wire, 2 bytes each, to nearest even, at most +-65504; returns absmax bits */                          \
  X(uint32_t, f16_encode, (const float *v, size_t n, uint8_t *out), (v, n, out))                                      \
  /* bf16 to the wire, 2 bytes each, to nearest even, finite values stay finite; returns absmax bits */               \
  X(uint32_t, bf16_encode, (const float *v, size_t n, uint8_t *out), (v, n, out))                                     \
  /* a bit each, 1 where v < 0, to (n + 7)/8 bytes; adds |v| to lanes unless NULL. Returns absmax bits; with lanes,   \
       only whether they are below CG_INF_BITS_ is specified */                                                       \
  X(uint32_t, sign_encode, (const float *v, size_t n, uint8_t *out, double *lanes), (v, n, out, lanes))               \
  /* values of one bucket to symbols 0..q->max_symbol, a byte each */                                                 \
  X(void, levels_encode, (const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t      \
      *symbols), (q, key, position, v, n, symbols))                                                                   \
  /* symbols of 1..7 bits, each below 2^bits, to (n*bits + 7)/8 bytes, LSB first */                                   \
  X(void, pack, (const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out), (symbols, n, bits, out))             \
  /* index (v[0] has first_index) and value of all whose magnitude bits are at least threshold_bits <= 2^31; returns  \
       how many. n <= CG_CHUNK_; index and value have room for n + CG_SLACK_, which may be scribbled on */            \
  X(size_t, filter, (const float *v, size_t n, uint32_t threshold_bits, uint32_t first_index, uint32_t *index,        \
      float *value), (v, n, threshold_bits, first_index, index, value))                                               \
  /* index and value of what is selected by chance; returns how many. Room as for filter */                           \
  X(size_t, bernoulli, (const cg_bernoulli_ *c, const float *v, size_t n, uint32_t first_index, uint32_t *index,      \
      float *value), (c, v, n, first_index, index, value))                                                            \
  /* adds to *above how many magnitude bits are larger than pivot < 2^31; returns absmax bits */                      \
  X(uint32_t, count_above, (const float *v, size_t n, uint32_t pivot, size_t *above), (v, n, pivot, above))           \
  /* values to levels of 16 bits, integers of this machine */                                                         \
  X(void, rate_encode, (const cg_rate_grid_ *g, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t     \
      *out), (g, key, position, v, n, out))                                                                           \
  /* Decoding. Any bytes are legal input; finite scales give finite values, but for f16 and bf16. */                  \
  /* the reverse of pack: reads (n*bits + 7)/8 bytes */                                                               \
  X(void, unpack, (const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols), (in, n, bits, symbols))             \
  /* symbols of one bucket to values; a symbol above q->max_symbol counts as that */                                  \
  X(void, levels_decode, (const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int non_temporal),       \
      (q, symbols, n, out, non_temporal))                                                                             \
  /* levels of rate_encode to values, by the step, the value of level 1, an offset above it and a power of two; in may\
       be the end of out */                                                                                           \
  X(void, rate_decode, (const float *value, const uint8_t *in, size_t n, float *out), (value, in, n, out))            \
  /* bits to -scale (1) or scale (0) */                                                                               \
  X(void, sign_decode, (const uint8_t *in, size_t n, float scale, float *out, int non_temporal), (in, n, scale,       \
      out, non_temporal))                                                                                             \
  X(void, f16_decode, (const uint8_t *in, size_t n, float *out, int non_temporal), (in, n, out, non_temporal))        \
  X(void, bf16_decode, (const uint8_t *in, size_t n, float *out, int non_temporal), (in, n, out, non_temporal))       \
  /* the largest magnitude of n 16-bit floats of the wire, as their bits: the finite check of a packet */             \
  X(uint32_t, absmax16_bits, (const uint8_t *in, size_t n), (in, n))                                                  \
  /* y = beta*y + alpha*x; y is not read if beta is 0, and non_temporal counts only then */                           \
  X(void, axpby, (const float *x, size_t n, float alpha, float beta, float *y, int non_temporal), (x, n, alpha,       \
      beta, y, non_temporal))                                                                                         \
  /* y = from, then from = 0 */                                                                                       \
  X(void, move_zero, (float *from, size_t n, float *y, int non_temporal), (from, n, y, non_temporal))                 \
  /* orders non-temporal stores before all later stores of this thread */                                             \
  X(void, stream_fence, (void), ())                                                                                   \
  /* continues *sum over word_count words of 4 bytes */                                                               \
  X(void, checksum, (cg_checksum_ *sum, const uint8_t *words, size_t word_count), (sum, words, word_count))           \
  /* Transforms and sums. */                                                                                          \
  /* randomized Hadamard transform of CG_ROTATE_BLOCK_ values, or its inverse, to v; from may be v. rounds is 1 to 3, \
       flips has 32 words for each */                                                                                 \
  X(void, rotate_from, (const float *from, float *v, const uint32_t *flips, int rounds, int inverse), (from, v,       \
      flips, rounds, inverse))                                                                                        \
  /* orthonormal DCT-II of CG_DCT_BLOCK_ values in place, or its inverse */                                           \
  X(void, dct, (float *v, int inverse), (v, inverse))                                                                 \
  /* adds a term (CG_SUM_*) of each value to lanes */                                                                 \
  X(void, lane_sum, (const float *v, size_t n, int term, double *lanes), (v, n, term, lanes))                         \
  /* y = beta*y + alpha*x, where one of the products fades, and adds squares of x or y to lanes, by mode              \
       (CG_AXPBY_*). x may be y */                                                                                    \
  X(void, axpby_fading, (const float *x, size_t n, float alpha, float beta, float *y, int mode, double *lanes),       \
      (x, n, alpha, beta, y, mode, lanes))                                                                            \
  /* More formats. */                                                                                                 \
  /* symbols by g's thresholds; adds centroid[symbol without sign]*|v| to lanes unless NULL (then centroid may be) */ \
  X(void, bucketize, (const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols, const float *centroid,     \
      double *lanes), (g, v, n, symbols, centroid, lanes))                                                            \
  /* symbol: how many of 15 ascending limits are below v*inv_scale; 0 for a NaN */                                    \
  X(void, nf4_search, (const float *limit, float inv_scale, const float *v, size_t n, uint8_t *symbols), (limit,      \
      inv_scale, v, n, symbols))                                                                                      \
  /* values table[symbol % 16] of 16 floats at any address */                                                         \
  X(void, table_decode, (const float *table, const uint8_t *symbols, size_t n, float *out, int non_temporal),         \
      (table, symbols, n, out, non_temporal))                                                                         \
  /* v*inv_scale to E4M3 or E5M2, a byte each, to nearest even, at most +-448 or +-57344 */                           \
  X(void, fp8_encode, (const float *v, size_t n, float inv_scale, int is_e5m2, uint8_t *out), (v, n, inv_scale,       \
      is_e5m2, out))                                                                                                  \
  X(void, fp8_decode, (const uint8_t *in, size_t n, float scale, int is_e5m2, float *out, int non_temporal), (in,     \
      n, scale, is_e5m2, out, non_temporal))                                                                          \
  /* f16 or bf16 to the wire, 2 bytes each, rounded at random; what is too large becomes the largest. Returns absmax  \
       bits */                                                                                                        \
  X(uint32_t, half_stochastic, (const float *v, size_t n, cg_key_ key, uint32_t position, int is_bf16, uint8_t *out), \
      (v, n, key, position, is_bf16, out))                                                                            \
  /* v*inv_scale to a format CG_SMALL_E4M3_, _E5M2_ or _E2M1_, a byte each, rounded at random; likewise */            \
  X(void, fp8_stochastic, (const float *v, size_t n, float inv_scale, int format, cg_key_ key, uint32_t position,     \
      uint8_t *out), (v, n, inv_scale, format, key, position, out))                                                   \
  /* symbol: one of the two neighbours of v*inv_scale among 16 ascending values, at random; 0 for a NaN */            \
  X(void, nf4_stochastic, (const float *value, float inv_scale, cg_key_ key, uint32_t position, const float *v, size_t\
      n, uint8_t *symbols), (value, inv_scale, key, position, v, n, symbols))                                         \
  /* magnitudes of at most the float with these bits; out may be v */                                                 \
  X(void, cut, (const float *v, size_t n, uint32_t limit_bits, float *out), (v, n, limit_bits, out))                 \
  /* powers of two: n bytes of exponents, then (n + 7)/8 bytes of signs; returns absmax bits */                       \
  X(uint32_t, natural_encode, (const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t      \
      *out), (v, n, key, position, stochastic, out))                                                                  \
  X(void, natural_decode, (const uint8_t *in, size_t n, float *out, int non_temporal), (in, n, out, non_temporal))    \
  /* v*inv_scale to 0 or +-2^-j, as symbols of q->bits bits */                                                        \
  X(void, dither_encode, (const cg_dither_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t      \
      *symbols), (q, key, position, v, n, symbols))                                                                   \
  /* bits above the low `bits` of a symbol are ignored */                                                             \
  X(void, dither_decode, (unsigned bits, float scale, const uint8_t *symbols, size_t n, float *out, int               \
      non_temporal), (bits, scale, symbols, n, out, non_temporal))                                                    \
  /* v*inv_scale, magnitudes up to 1, to the nearest dynamic8 value */                                                \
  X(void, dynamic8_encode, (const float *v, size_t n, float inv_scale, uint8_t *symbols), (v, n, inv_scale, symbols)) \
  X(void, dynamic8_decode, (const uint8_t *symbols, size_t n, float scale, float *out, int non_temporal),             \
      (symbols, n, scale, out, non_temporal))                                                                         \
  /* symbol 2 above tau, 0 below -tau, 1 between and for a NaN; tau >= 0 */                                           \
  X(void, strom_encode, (const float *v, size_t n, float tau, uint8_t *symbols), (v, n, tau, symbols))                \
  /* bitwise majority of `count` strings of `bytes` bytes: 1 where more than half have 1. count <= 65535 */           \
  X(void, vote, (const uint8_t *const *in, size_t count, size_t bytes, uint8_t *out), (in, count, bytes, out))        \
  /* Matrices: m has rows of cols floats, stride floats apart. prefetch: rows*cols floats that are needed next, or    \
       NULL; they are not accessed. */                                                                                \
  /* p[a][i] += sum over j of m[i][j]*q[a][j], a < r, in f64; rows of q and p are q_stride and p_stride doubles       \
       apart, the values of q are f32's, cols <= CG_TILE_COLS_ */                                                     \
  X(void, project, (const float *m, size_t stride, size_t rows, size_t cols, const double *q, size_t q_stride,        \
      unsigned r, double *p, size_t p_stride, const float *prefetch), (m, stride, rows, cols, q, q_stride, r, p,      \
      p_stride, prefetch))                                                                                            \
  /* q[a][j] += sum over i of p[i][a]*m[i][j], a < r, in f32 for CG_TILE_ROWS_ rows at a time, then in f64 */         \
  X(void, project_t, (const float *m, size_t stride, size_t rows, size_t cols, const float *p, size_t p_stride,       \
      unsigned r, double *q, size_t q_stride, const float *prefetch), (m, stride, rows, cols, p, p_stride, r, q,      \
      q_stride, prefetch))                                                                                            \
  /* out[i][j] = sum over a < r of p[i][a]*q[a][j], j < count, in f32 and kept finite; p has r floats per row.        \
       non_temporal: every row of out begins at a multiple of 16 bytes */                                             \
  X(void, lowrank_tile, (const float *p, const float *q, size_t q_stride, unsigned r, size_t rows, size_t count,      \
      float *out, size_t out_stride, int non_temporal), (p, q, q_stride, r, rows, count, out, out_stride,             \
      non_temporal))                                                                                                  \
  /* Floats taken apart for entropy coding: values of 4 (f32) or 2 (bf16) bytes on the wire. */                       \
  /* the exponents, a byte each */                                                                                    \
  X(void, exponents, (unsigned width, const uint8_t *in, size_t n, uint8_t *exponents), (width, in, n, exponents))    \
  /* the rest of each value, width - 1 bytes */                                                                       \
  X(void, sign_mantissas, (unsigned width, const uint8_t *in, size_t n, uint8_t *sign_mantissas),                     \
      (width, in, n, sign_mantissas))                                                                                 \
  /* both together again */                                                                                           \
  X(void, floats_join, (unsigned width, const uint8_t *exponents, const uint8_t *sign_mantissas, size_t n,            \
      uint8_t *out), (width, exponents, sign_mantissas, n, out))                                                      \
  /* Index sets. Any bytes are legal. */                                                                              \
  /* up to `count` more indices; returns how many, fewer only where the bits run out */                               \
  X(size_t, index_get, (cg_index_bits_ *r, uint64_t *index, size_t count), (r, index, count))                         \
  /* whether r, which has not read yet, holds k ascending indices below universe, and no more; *next: the last + 1 */ \
  X(int, index_check, (cg_index_bits_ *r, uint64_t k, uint64_t universe, uint64_t *next), (r, k, universe, next))     \
  /* Sketches: many values of a line, at most CG_SKETCH_LINE_; p: the targets of the line, one per row. */            \
  /* adds weight times the line to its cells in all rows */                                                           \
  X(void, line_add, (const cg_line_target_ *p, int rows, const float *x, size_t many, float weight),                  \
      (p, rows, x, many, weight))                                                                                     \
  /* the line's part of the sum of its groups in one row */                                                           \
  X(float, line_project, (const cg_line_target_ *p, const float *x, size_t many, float weight), (p, x, many, weight)) \
  /* estimates of the first `many` coordinates of the line; rows <= CG_SKETCH_MAX_ROWS_ */                            \
  X(void, line_estimate, (const cg_line_target_ *p, int rows, size_t many, float *out), (p, rows, many, out))
/* clang-format on */
#define CG_KERNEL_MEMBER_(result, name, parameters, arguments) result(*name) parameters;
typedef struct cg_kernels_ { /* see CG_KERNEL_ */
    cg_isa isa;
#if CG_HAS_KERNEL_TABLE_
    CG_KERNEL_LIST_(CG_KERNEL_MEMBER_)
#endif
} cg_kernels_;
#if !CG_HAS_KERNEL_TABLE_
#  define CG_KERNEL_ONLY_(result, name, parameters, arguments) CG_INLINE_ result cg_only_##name parameters;
CG_KERNEL_LIST_(CG_KERNEL_ONLY_)
#  undef CG_KERNEL_ONLY_
#endif

/* src/core/kernels/lanes.h */
/* lanes: vectors of eight lanes, and the operations that work on each lane alone

   Offers   cg_vf_ (eight f32), cg_vu_ (eight u32, or 32 bytes), cg_vd_ (four f64), cg_vq_ (four u64); arithmetic,
            comparisons and shifts of them; CG_VECTOR_FN_, which every function of vectors begins with
   Needs    base
   Touches  nothing but its arguments
   The vector layer is this room, one room per ISA (avx2, neon, wasm) and vectors. A vector is one part of 32 bytes, or
   two of 16 where registers are that short. What all ISAs can say by an operator of the compiler stands here; it also
   keeps the floating-point flags of fp_begin, which intrinsics lose if the includer has read their header before.
   Comparisons give all ones where they hold, else 0. */

#if CG_VECTOR_
#  if CG_AVX2_
#    define CG_PART_BYTES_ 32
#    define CG_ISA_NATIVE_ CG_ISA_AVX2
#    define CG_TARGET_NATIVE_ __attribute__((target("avx2,f16c,popcnt,bmi,bmi2")))
#  else
#    define CG_PART_BYTES_ 16
#    define CG_ISA_NATIVE_ (CG_NEON_ ? CG_ISA_NEON : CG_ISA_WASM)
#    define CG_TARGET_NATIVE_
#  endif
#  define CG_VECTOR_FN_ static inline __attribute__((always_inline, unused)) CG_TARGET_NATIVE_
typedef float cg_pf_ __attribute__((vector_size(CG_PART_BYTES_)));
typedef double cg_pd_ __attribute__((vector_size(CG_PART_BYTES_)));
typedef int32_t cg_pi_ __attribute__((vector_size(CG_PART_BYTES_)));
typedef uint8_t cg_pb_ __attribute__((vector_size(CG_PART_BYTES_)));
typedef uint16_t cg_ph_ __attribute__((vector_size(CG_PART_BYTES_)));
typedef uint32_t cg_pu_ __attribute__((vector_size(CG_PART_BYTES_)));
typedef uint64_t cg_pq_ __attribute__((vector_size(CG_PART_BYTES_)));

/* CG_EACH1_ and so on: a function of vectors by the expression of its result's part in parts x and y of the arguments.
   r, a and b are the types' letters (f, d, u or q); CG_EACHN_ has a number n beside x. */
#  if CG_PART_BYTES_ == 32
typedef cg_pf_ cg_vf_;
typedef cg_pd_ cg_vd_;
typedef cg_pu_ cg_vu_;
typedef cg_pq_ cg_vq_;
#    define CG_EACH1_(r, name, a, expression) \
      CG_VECTOR_FN_ cg_p##r##_ name(cg_p##a##_ x) { return (cg_p##r##_)(expression); }
#    define CG_EACHN_(r, name, a, expression) \
      CG_VECTOR_FN_ cg_p##r##_ name(cg_p##a##_ x, unsigned n) { return (cg_p##r##_)(expression); }
#    define CG_EACH2_(r, name, a, b, expression) \
      CG_VECTOR_FN_ cg_p##r##_ name(cg_p##a##_ x, cg_p##b##_ y) { return (cg_p##r##_)(expression); }
#  else
#    define CG_PAIR_(t)                                                      \
      typedef struct cg_v##t##_ {                                            \
        cg_p##t##_ a, b;                                                     \
      } cg_v##t##_;                                                          \
      CG_VECTOR_FN_ cg_v##t##_ cg_v##t##_join_(cg_p##t##_ a, cg_p##t##_ b) { \
        const cg_v##t##_ v = { a, b };                                       \
        return v;                                                            \
      }
CG_PAIR_(f)
CG_PAIR_(d)
CG_PAIR_(u)
CG_PAIR_(q)
#    define CG_EACH1_(r, name, a_, expression)                                                 \
      CG_VECTOR_FN_ cg_p##r##_ name##part_(cg_p##a_##_ x) { return (cg_p##r##_)(expression); } \
      CG_VECTOR_FN_ cg_v##r##_ name(cg_v##a_##_ x) { return cg_v##r##_join_(name##part_(x.a), name##part_(x.b)); }
#    define CG_EACHN_(r, name, a_, expression)                                                             \
      CG_VECTOR_FN_ cg_p##r##_ name##part_(cg_p##a_##_ x, unsigned n) { return (cg_p##r##_)(expression); } \
      CG_VECTOR_FN_ cg_v##r##_ name(cg_v##a_##_ x, unsigned n) {                                           \
        return cg_v##r##_join_(name##part_(x.a, n), name##part_(x.b, n));                                  \
      }
#    define CG_EACH2_(r, name, a_, b_, expression)                                                            \
      CG_VECTOR_FN_ cg_p##r##_ name##part_(cg_p##a_##_ x, cg_p##b_##_ y) { return (cg_p##r##_)(expression); } \
      CG_VECTOR_FN_ cg_v##r##_ name(cg_v##a_##_ x, cg_v##b_##_ y) {                                           \
        return cg_v##r##_join_(name##part_(x.a, y.a), name##part_(x.b, y.b));                                 \
      }
#  endif

CG_EACH1_(f, cg_vf_of_, u, x) /* the same bits */
CG_EACH1_(u, cg_vu_of_, f, x)
CG_EACH2_(u, cg_vu_and_, u, u, x &y)
CG_EACH2_(u, cg_vu_or_, u, u, x | y)
CG_EACH2_(u, cg_vu_xor_, u, u, x ^ y)
CG_EACH2_(u, cg_vu_andnot_, u, u, ~x &y)
CG_EACH2_(u, cg_vu_add_, u, u, x + y)
CG_EACH2_(u, cg_vu_sub_, u, u, x - y)
CG_EACH2_(u, cg_vu_mul_, u, u, x *y)
CG_EACH2_(u, cg_vu_gt_, u, u, (cg_pi_)x > (cg_pi_)y) /* as signed */
CG_EACHN_(u, cg_vu_shl_, u, x << n)
CG_EACHN_(u, cg_vu_shr_, u, x >> n)
CG_EACHN_(u, cg_vu_sar_, u, (cg_pi_)x >> (int)n)
CG_EACHN_(u, cg_vu_shl16_, u, (cg_ph_)x << (uint16_t)n) /* of u16 */
CG_EACHN_(u, cg_vu_shr16_, u, (cg_ph_)x >> (uint16_t)n)
CG_EACH2_(u, cg_vb_add_, u, u, (cg_pb_)x + (cg_pb_)y) /* of bytes */
CG_EACH2_(u, cg_vb_sub_, u, u, (cg_pb_)x - (cg_pb_)y)
CG_EACH1_(u, cg_vb_is_zero_, u, (cg_pb_)x == (cg_pb_)(x ^ x))
CG_EACH2_(q, cg_vq_add_, q, q, x + y)

CG_VECTOR_FN_ cg_pf_ cg_pf_mul_(cg_pf_ x, cg_pf_ y) { /* never fused with a sum */
    cg_pf_ p = x * y;
    CG_NO_FMA_(p);
    return p;
}
CG_EACH2_(f, cg_vf_mul_, f, f, cg_pf_mul_(x, y))
CG_EACH2_(f, cg_vf_add_, f, f, x + y)
CG_EACH2_(f, cg_vf_sub_, f, f, x - y)
/* Products in f64 are exact here, of two f32: fused or not, the sum is the same. */
CG_EACH2_(d, cg_vd_add_, d, d, x + y)
CG_EACH2_(d, cg_vd_mul_, d, d, x *y)
#  define CG_ZERO_D_ ((cg_pd_)((cg_pq_)x ^ (cg_pq_)x))
CG_EACH1_(d, cg_vd_abs_, d, (cg_pq_)x << 1 >> 1)
CG_EACH1_(d, cg_vd_negative_, d, (cg_pq_)x &(cg_pq_)(x < CG_ZERO_D_)) /* x where it is below 0, else +0 */
CG_EACH1_(d, cg_vd_nonnegative_, d, (cg_pq_)x &(cg_pq_)(x >= CG_ZERO_D_))
#endif

/* src/core/kernels/avx2.h */
/* avx2: the operations of the vector layer for AVX2

   Offers   loads, stores, conversions, permutations and the like of cg_vf_, cg_vu_ and cg_vd_, as neon and wasm do
   Needs    base, lanes
   Touches  nothing but its arguments */

#if CG_AVX2_
#  define CG_M_(x) ((__m256i)(x))
CG_VECTOR_FN_ cg_vf_ cg_vf_set_(float f) { return (cg_vf_)_mm256_set1_ps(f); }
/* cg_vf_set_(*p) that stays a load: of a value just stored in a vector gcc makes several shuffles. */
CG_VECTOR_FN_ cg_vf_ cg_vf_broadcast_(const float *p) { return (cg_vf_)_mm256_broadcast_ss(p); }
CG_VECTOR_FN_ cg_vu_ cg_vu_set_(uint32_t u) { return (cg_vu_)_mm256_set1_epi32((int)u); }
CG_VECTOR_FN_ cg_vu_ cg_vb_set_(unsigned byte) { return (cg_vu_)_mm256_set1_epi8((char)byte); }
CG_VECTOR_FN_ cg_vd_ cg_vd_zero_(void) { return (cg_vd_)_mm256_setzero_pd(); }
CG_VECTOR_FN_ cg_vf_ cg_vf_make_(float a, float b, float c, float d, float e, float f, float g, float h) {
    return (cg_vf_)_mm256_setr_ps(a, b, c, d, e, f, g, h);
}
CG_VECTOR_FN_ cg_vu_ cg_vu_load_(const void *p) { return (cg_vu_)_mm256_loadu_si256((const __m256i *)p); }
CG_VECTOR_FN_ void cg_vu_store_(void *p, cg_vu_ x) { _mm256_storeu_si256((__m256i *)p, CG_M_(x)); }
CG_VECTOR_FN_ cg_vd_ cg_vd_load_(const double *p) { return (cg_vd_)_mm256_loadu_pd(p); }
CG_VECTOR_FN_ void cg_vd_store_(double *p, cg_vd_ x) { _mm256_storeu_pd(p, (__m256d)x); }
CG_VECTOR_FN_ __m128i cg_load16_(const void *p) { return _mm_loadu_si128((const __m128i *)p); }
CG_VECTOR_FN_ void cg_store16_(void *p, __m128i x) { _mm_storeu_si128((__m128i *)p, x); }
CG_VECTOR_FN_ __m256i cg_load2x16_(const void *p, const void *q) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(cg_load16_(p)), cg_load16_(q), 1);
}
/* Eight values to y + i, non-temporal stores by 16 bytes: that is what malloc aligns to. i % 4 == 0 then. */
CG_VECTOR_FN_ void cg_vf_stream_(float *y, size_t i, cg_vf_ x, int non_temporal) {
    if (non_temporal) {
        _mm_stream_si128((__m128i *)(void *)(y + i), _mm256_castsi256_si128(CG_M_(x)));
        _mm_stream_si128((__m128i *)(void *)(y + i + 4), _mm256_extracti128_si256(CG_M_(x), 1));
    } else {
        cg_vu_store_(cg_at_mut_(y, i), (cg_vu_)x);
    }
}
CG_VECTOR_FN_ void cg_stream_end_(void) { _mm_sfence(); }
/* After the last operation of a kernel: gcc leaves the instruction out before a tail call. */
CG_VECTOR_FN_ void cg_vector_end_(void) { _mm256_zeroupper(); }

CG_EACH2_(u, cg_vu_max_, u, u, _mm256_max_epu32(CG_M_(x), CG_M_(y)))
CG_EACH2_(u, cg_vu_min_, u, u, _mm256_min_epu32(CG_M_(x), CG_M_(y)))
CG_EACH2_(u, cg_vu_max16_, u, u, _mm256_max_epu16(CG_M_(x), CG_M_(y)))
CG_EACH2_(u, cg_vb_min_, u, u, _mm256_min_epu8(CG_M_(x), CG_M_(y)))
CG_EACH2_(u, cg_vb_sub_sat_, u, u, _mm256_subs_epu8(CG_M_(x), CG_M_(y)))
CG_EACH2_(f, cg_vf_min_, f, f, _mm256_min_ps((__m256)x, (__m256)y)) /* x < y ? x : y */
CG_EACH2_(f, cg_vf_max_, f, f, _mm256_max_ps((__m256)x, (__m256)y)) /* x > y ? x : y */
CG_EACH2_(u, cg_vf_gt_, f, f, _mm256_cmp_ps((__m256)x, (__m256)y, _CMP_GT_OQ))
CG_EACH1_(f, cg_vf_int_, u, _mm256_cvtepi32_ps(CG_M_(x)))
/* To the nearest even integer; what is above 1024 may become that: the instruction gives the smallest integer for what
   is too large. */
CG_EACH1_(u, cg_vu_round_, f, _mm256_cvtps_epi32(_mm256_min_ps((__m256)x, _mm256_set1_ps(1024.0f))))
CG_EACH1_(u, cg_vu_trunc_, f, _mm256_cvttps_epi32((__m256)x))
CG_VECTOR_FN_ cg_vf_ cg_vf_finite_(cg_vf_ x) { /* Inf becomes the largest finite value */
    return cg_vf_max_(cg_vf_min_(x, cg_vf_set_(CG_FLT_MAX_)), cg_vf_set_(-CG_FLT_MAX_));
}
CG_VECTOR_FN_ uint32_t cg_vu_hmax_(cg_vu_ x) { /* the largest of eight */
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(CG_M_(x)), _mm256_extracti128_si256(CG_M_(x), 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}
CG_VECTOR_FN_ int cg_vu_any_(cg_vu_ x) { return !_mm256_testz_si256(CG_M_(x), CG_M_(x)); } /* some bit is 1 */
CG_VECTOR_FN_ cg_vu_ cg_vu_swap_halves_(cg_vu_ x) { /* the 16-bit halves of each u32 */
    return (cg_vu_)_mm256_shuffle_epi8(CG_M_(x),
        _mm256_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14,
            15, 12, 13));
}
/* The sign bit in lane i where bit from + i of each lane of w is 1, else 0. */
CG_VECTOR_FN_ cg_vu_ cg_vu_signs_(cg_vu_ w, int from) {
    const __m256i up = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    return (cg_vu_)_mm256_sllv_epi32(CG_M_(w), _mm256_sub_epi32(up, _mm256_set1_epi32(from))) & CG_SIGN_BIT_;
}

/* Four vectors of i32 to 32 bytes. The pack instructions work on halves of 16 bytes: until cg_vb_put_ or cg_vb_mask_
   the bytes are in the order 0..3 of a, b, c, d, then 4..7 of each. */
CG_VECTOR_FN_ __m256i cg_packs_(cg_vu_ a, cg_vu_ b) { return _mm256_packs_epi32(CG_M_(a), CG_M_(b)); }
/* saturated to i16, plus a number, saturated to 0..255 */
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_add_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d, int plus) {
    const __m256i p = _mm256_set1_epi16((short)plus);
    return (cg_vu_)_mm256_packus_epi16(_mm256_add_epi16(cg_packs_(a, b), p), _mm256_add_epi16(cg_packs_(c, d), p));
}
/* of 0..255 */
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    return (cg_vu_)_mm256_packus_epi16(cg_packs_(a, b), cg_packs_(c, d));
}
/* of -128..127 */
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_signed_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    return (cg_vu_)_mm256_packs_epi16(cg_packs_(a, b), cg_packs_(c, d));
}
/* the top bits as top bits of bytes, the other bits 0: saturation keeps the sign */
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_tops_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    return cg_vb_narrow_signed_(a, b, c, d) & 0x80808080u;
}
CG_VECTOR_FN_ __m256i cg_pack_order_(cg_vu_ bytes) {
    return _mm256_permutevar8x32_epi32(CG_M_(bytes), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
CG_VECTOR_FN_ void cg_vb_put_(uint8_t *p, cg_vu_ bytes) { cg_vu_store_(p, (cg_vu_)cg_pack_order_(bytes)); }
/* the top bit of each byte, the first lowest; cg_vb_mask_in_order_: of bytes as they were loaded */
CG_VECTOR_FN_ uint32_t cg_vb_mask_(cg_vu_ bytes) { return (uint32_t)_mm256_movemask_epi8(cg_pack_order_(bytes)); }
CG_VECTOR_FN_ uint32_t cg_vb_mask_in_order_(cg_vu_ bytes) { return (uint32_t)_mm256_movemask_epi8(CG_M_(bytes)); }
/* Of four comparisons, a bit for each lane, the first lowest: sooner known than by cg_vb_mask_. */
CG_VECTOR_FN_ uint32_t cg_vu_mask_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    return (uint32_t)(_mm256_movemask_ps((__m256)a) | _mm256_movemask_ps((__m256)b) << 8) |
        (uint32_t)(_mm256_movemask_ps((__m256)c) | _mm256_movemask_ps((__m256)d) << 8) << 16;
}
/* The low 16 bits of each, 16 of them to p; values below 2^16. cg_vb_put16_: 32 u16 below 256 as bytes. */
CG_VECTOR_FN_ void cg_vu_put16_(uint8_t *p, cg_vu_ a, cg_vu_ b) {
    cg_vu_store_(p, (cg_vu_)_mm256_permute4x64_epi64(_mm256_packus_epi32(CG_M_(a), CG_M_(b)), 0xd8));
}
CG_VECTOR_FN_ void cg_vb_put16_(uint8_t *p, cg_vu_ a, cg_vu_ b) {
    cg_vu_store_(p, (cg_vu_)_mm256_permute4x64_epi64(_mm256_packus_epi16(CG_M_(a), CG_M_(b)), 0xd8));
}
/* Eight bytes, or eight u16, as u32; 16 bytes as u16. */
CG_VECTOR_FN_ cg_vu_ cg_vu_bytes_(const uint8_t *p) {
    return (cg_vu_)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
CG_VECTOR_FN_ cg_vu_ cg_vu_u16_(const uint8_t *p) { return (cg_vu_)_mm256_cvtepu16_epi32(cg_load16_(p)); }
CG_VECTOR_FN_ cg_vu_ cg_vu_bytes16_(const uint8_t *p) { return (cg_vu_)_mm256_cvtepu8_epi16(cg_load16_(p)); }
/* Eight u32 from 3 bytes each, and their low 3 bytes. Both access 28 bytes; the top bytes of what is loaded are 0. */
CG_VECTOR_FN_ cg_vu_ cg_vu_load24_(const uint8_t *p) {
    const __m128i spread = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
    return (cg_vu_)_mm256_shuffle_epi8(cg_load2x16_(p, p + 12), _mm256_broadcastsi128_si256(spread));
}
CG_VECTOR_FN_ void cg_vu_store24_(uint8_t *p, cg_vu_ x) {
    const __m128i squeeze = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    const __m256i w = _mm256_shuffle_epi8(CG_M_(x), _mm256_broadcastsi128_si256(squeeze));
    cg_store16_(p, _mm256_castsi256_si128(w));
    cg_store16_(p + 12, _mm256_extracti128_si256(w, 1));
}
/* Eight f16, to nearest even; what is too large becomes Inf. */
CG_VECTOR_FN_ cg_vf_ cg_vf_f16_(const uint8_t *p) { return (cg_vf_)_mm256_cvtph_ps(cg_load16_(p)); }
CG_VECTOR_FN_ void cg_vf_put_f16_(uint8_t *p, cg_vf_ x) {
    cg_store16_(p, _mm256_cvtps_ph((__m256)x, 0));
} /* 16 bytes of E5M2 or E4M3, where Inf and NaN count as the largest value. Both are f16 with fewer mantissa bits; as
   E4M3 has one exponent bit less, too, its values appear there times 2^-8. */
CG_VECTOR_FN_ void cg_vf_fp8_(const uint8_t *p, int is_e5m2, cg_vf_ *x, cg_vf_ *y) {
    const __m128i top = _mm_set1_epi8(is_e5m2 ? 0x7b : 0x7e), bottom = _mm_set1_epi8((char)(is_e5m2 ? 0xfb : 0xfe));
    const __m128i b = _mm_min_epi8(_mm_min_epu8(cg_load16_(p), bottom), top), keep = _mm_set1_epi16((short)0xbfff);
    __m128i low = _mm_unpacklo_epi8(_mm_setzero_si128(), b), high = _mm_unpackhi_epi8(_mm_setzero_si128(), b);
    if (!is_e5m2) { /* the sign stays where it is */
        low = _mm_and_si128(_mm_srai_epi16(low, 1), keep);
        high = _mm_and_si128(_mm_srai_epi16(high, 1), keep);
    }
    *x = (cg_vf_)_mm256_cvtph_ps(low) * (is_e5m2 ? 1.0f : 256.0f);
    *y = (cg_vf_)_mm256_cvtph_ps(high) * (is_e5m2 ? 1.0f : 256.0f);
}

/* Four f64: of four floats at v + i, of the first four lanes, of the last. */
CG_VECTOR_FN_ cg_vd_ cg_vd_floats_(const float *v, size_t i) {
    return (cg_vd_)_mm256_cvtps_pd(_mm_castsi128_ps(cg_load16_(cg_at_(v, i))));
}
CG_VECTOR_FN_ cg_vd_ cg_vd_low_(cg_vf_ x) { return (cg_vd_)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)x)); }
CG_VECTOR_FN_ cg_vd_ cg_vd_high_(cg_vf_ x) { return (cg_vd_)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)x, 1)); }

/* table[index] of a table of 4 (in both halves), 8 or 16 (low, high); higher bits of the index are ignored. */
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup4_(cg_vf_ table, cg_vu_ index) {
    return (cg_vf_)_mm256_permutevar_ps((__m256)table, CG_M_(index));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup8_(cg_vf_ table, cg_vu_ index) {
    return (cg_vf_)_mm256_permutevar8x32_ps((__m256)table, CG_M_(index));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup16_(cg_vf_ low, cg_vf_ high, cg_vu_ index) {
    return (cg_vf_)_mm256_blendv_ps((__m256)cg_vf_lookup8_(low, index), (__m256)cg_vf_lookup8_(high, index),
        _mm256_castsi256_ps(_mm256_slli_epi32(CG_M_(index), 28)));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_reverse_(cg_vf_ x) {
    return (cg_vf_)_mm256_permutevar8x32_ps((__m256)x, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_next_(cg_vf_ x, cg_vf_ next) { /* lanes 1..7 of x, then lane 0 of next */
    return (cg_vf_)_mm256_permutevar8x32_ps(
        _mm256_blend_ps((__m256)x, (__m256)next, 1), _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 0));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_prev_(cg_vf_ x, cg_vf_ last) { /* lane 7 of last, then lanes 0..6 of x */
    return (cg_vf_)_mm256_permutevar8x32_ps(
        _mm256_blend_ps((__m256)x, (__m256)last, 128), _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6));
}
/* a[0], b[0], a[1], ... to x and y; then the reverse */
CG_VECTOR_FN_ void cg_vf_interleave_(cg_vf_ a, cg_vf_ b, cg_vf_ *x, cg_vf_ *y) {
    const __m256 low = _mm256_unpacklo_ps((__m256)a, (__m256)b), high = _mm256_unpackhi_ps((__m256)a, (__m256)b);
    *x = (cg_vf_)_mm256_permute2f128_ps(low, high, 0x20);
    *y = (cg_vf_)_mm256_permute2f128_ps(low, high, 0x31);
}
CG_VECTOR_FN_ void cg_vf_deinterleave_(cg_vf_ x, cg_vf_ y, cg_vf_ *a, cg_vf_ *b) {
    const __m256 even = _mm256_shuffle_ps((__m256)x, (__m256)y, 0x88),
                 odd = _mm256_shuffle_ps((__m256)x, (__m256)y, 0xdd);
    *a = (cg_vf_)_mm256_permute4x64_pd(_mm256_castps_pd(even), 0xd8);
    *b = (cg_vf_)_mm256_permute4x64_pd(_mm256_castps_pd(odd), 0xd8);
}
/* *s becomes the sum of three bits; returns the carry. */
CG_VECTOR_FN_ cg_vu_ cg_vu_full_adder_(cg_vu_ *s, cg_vu_ a, cg_vu_ b) {
    const cg_vu_ x = *s ^ a, carry = (*s & a) | (x & b);
    *s = x ^ b;
    return carry;
}
/* Adds eight u32 to the u64 lanes of s[2]; lane j gets word CG_WORD_OF_LANE_(j). */
#  define CG_WORD_OF_LANE_(j) ((j) < 4 ? 2 * (j) : 2 * ((j)-4) + 1)
CG_VECTOR_FN_ void cg_vq_add_words_(cg_vq_ *s, const uint8_t *words) {
    const cg_vq_ w = (cg_vq_)cg_vu_load_(words);
    s[0] += w & 0xffffffffu;
    s[1] += w >> 32;
}

/* Signs for the Hadamard transform. Row b holds the sign masks of the four bits of b twice, and then their opposites: a
   vector of eight from 0 on has the signs twice, one from 4 on the signs and their opposites. A load and one xor are
   cheaper than three shifts and shuffles, which compete with the additions. */
#  define CG_FLIP_ROW_(a, b, c, d) \
    { a, b, c, d, a, b, c, d, a ^ CG_SIGN_BIT_, b ^ CG_SIGN_BIT_, c ^ CG_SIGN_BIT_, d ^ CG_SIGN_BIT_, 0, 0, 0, 0 }
#  define CG_FLIP_ROWS_(c, d)                                                                               \
    CG_FLIP_ROW_(0u, 0u, c, d), CG_FLIP_ROW_(CG_SIGN_BIT_, 0u, c, d), CG_FLIP_ROW_(0u, CG_SIGN_BIT_, c, d), \
        CG_FLIP_ROW_(CG_SIGN_BIT_, CG_SIGN_BIT_, c, d)
static const uint32_t cg_flip_rows_[16][16] = { CG_FLIP_ROWS_(0u, 0u), CG_FLIP_ROWS_(CG_SIGN_BIT_, 0u),
    CG_FLIP_ROWS_(0u, CG_SIGN_BIT_), CG_FLIP_ROWS_(CG_SIGN_BIT_, CG_SIGN_BIT_) };
/* negates lane i where bit i of byte is 1 */
CG_VECTOR_FN_ cg_vf_ cg_vf_flip_(cg_vf_ x, uint32_t byte) {
    return (cg_vf_)((cg_vu_)x ^ (cg_vu_)cg_load2x16_(cg_flip_rows_[byte & 15u], cg_flip_rows_[byte >> 4]));
}
/* The Hadamard butterfly of the eight values at v + i, strides 4, 1, 2: each lane gets its pair's other value, plus or
   minus its own. For stride 4 the loads repeat a half, which needs no shuffle. flip: whether the bits of flips negate
   values before. */
CG_VECTOR_FN_ cg_vf_ cg_vf_hadamard_(const float *v, size_t i, const uint8_t *flips, int flip) {
    const cg_vu_ odd = { 0, CG_SIGN_BIT_, 0, CG_SIGN_BIT_, 0, CG_SIGN_BIT_, 0, CG_SIGN_BIT_ };
    const cg_vu_ pair = { 0, 0, CG_SIGN_BIT_, CG_SIGN_BIT_, 0, 0, CG_SIGN_BIT_, CG_SIGN_BIT_ };
    const cg_vu_ half = { 0, 0, 0, 0, CG_SIGN_BIT_, CG_SIGN_BIT_, CG_SIGN_BIT_, CG_SIGN_BIT_ };
    cg_vu_ x = (cg_vu_)_mm256_broadcastsi128_si256(cg_load16_(cg_at_(v, i)));
    cg_vu_ y = (cg_vu_)_mm256_broadcastsi128_si256(cg_load16_(cg_at_(v, i + 4)));
    cg_vf_ z;
    if (flip) {
        x ^= cg_vu_load_(cg_flip_rows_[flips[i / 8] & 15u]);
        y ^= cg_vu_load_(cg_flip_rows_[flips[i / 8] >> 4] + 4);
    } else {
        y ^= half;
    }
    z = (cg_vf_)x + (cg_vf_)y;
    z = (cg_vf_)_mm256_permute_ps((__m256)z, 0xb1) + (cg_vf_)((cg_vu_)z ^ odd);
    return (cg_vf_)_mm256_permute_ps((__m256)z, 0x4e) + (cg_vf_)((cg_vu_)z ^ pair);
}

/* Symbols of 2..7 bits to a string of bits, and back; both return how many they have done, a multiple of eight. */
CG_VECTOR_FN_ size_t cg_pack_most_(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out) {
    const __m256i pair = _mm256_set1_epi16((short)(1 | 1 << (8 + bits))), low = _mm256_set1_epi64x(0xffffffff),
                  quad = _mm256_set1_epi32(1 | 1 << (16 + 2 * bits)), nibbles = _mm256_set1_epi16(0x1001);
    const __m128i up = _mm_cvtsi32_si128((int)(32 - 4 * bits));
    uint8_t bytes[16];
    __m256i squeeze;
    size_t i = 0;
    for (; bits == 4 && i + 64 <= n; i += 64)
        cg_vb_put16_(out + i / 2, (cg_vu_)_mm256_maddubs_epi16(CG_M_(cg_vu_load_(symbols + i)), nibbles),
            (cg_vu_)_mm256_maddubs_epi16(CG_M_(cg_vu_load_(symbols + i + 32)), nibbles));
    if (bits == 4) return i;
    /* join 2 symbols in 16 bits, 4 in 32, 8 in 64, then move the bytes in use side by side */
    for (unsigned j = 0; j < 16; j++) bytes[j] = (uint8_t)(j < bits ? j : j < 2 * bits ? 8 + j - bits : 0x80);
    squeeze = _mm256_broadcastsi128_si256(cg_load16_(bytes));
    /* stores are of 16 bytes, of which 2*bits count: they stay within the bytes of whole groups of eight */
    for (; i + 32 <= n && i / 8 * bits + 2 * bits + 16 <= n / 8 * bits; i += 32) {
        uint8_t *to = out + i / 8 * bits;
        __m256i w = _mm256_madd_epi16(_mm256_maddubs_epi16(pair, CG_M_(cg_vu_load_(symbols + i))), quad);
        w = _mm256_or_si256(_mm256_and_si256(w, low), _mm256_srl_epi64(_mm256_andnot_si256(low, w), up));
        w = _mm256_shuffle_epi8(w, squeeze);
        cg_store16_(to, _mm256_castsi256_si128(w));
        cg_store16_(to + 2 * bits, _mm256_extracti128_si256(w, 1));
    }
    return i;
}
CG_VECTOR_FN_ size_t cg_unpack_most_(const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols) {
    const __m128i by4 = _mm_cvtsi32_si128((int)(4 * bits)), by2 = _mm_cvtsi32_si128((int)(2 * bits)),
                  by1 = _mm_cvtsi32_si128((int)bits);
    const __m256i low4 = _mm256_set1_epi64x((long long)(((uint64_t)1 << 4 * bits) - 1)),
                  low2 = _mm256_set1_epi32((int)((1u << 2 * bits) - 1u)),
                  low1 = _mm256_set1_epi16((short)((1u << bits) - 1u));
    uint8_t bytes[16];
    __m256i spread;
    size_t i = 0;
    for (; bits == 4 && i + 32 <= n; i += 32) {
        const cg_vu_ w = cg_vu_bytes16_(in + i / 2);
        cg_vu_store_(symbols + i, (w | cg_vu_shl16_(w, 4)) & 0x0f0f0f0fu);
    }
    for (unsigned j = 0; j < 16; j++) bytes[j] = (uint8_t)(j % 8 < bits ? j / 8 * bits + j % 8 : 0x80);
    spread = _mm256_broadcastsi128_si256(cg_load16_(bytes));
    for (; i + 32 <= n && i / 8 * bits + 2 * bits + 16 <= n / 8 * bits; i += 32) {
        const uint8_t *p = in + i / 8 * bits;
        __m256i w = _mm256_shuffle_epi8(cg_load2x16_(p, p + 2 * bits), spread);
        w = _mm256_or_si256(
            _mm256_and_si256(w, low4), _mm256_slli_epi64(_mm256_and_si256(_mm256_srl_epi64(w, by4), low4), 32));
        w = _mm256_or_si256(
            _mm256_and_si256(w, low2), _mm256_slli_epi32(_mm256_and_si256(_mm256_srl_epi32(w, by2), low2), 16));
        w = _mm256_or_si256(
            _mm256_and_si256(w, low1), _mm256_slli_epi16(_mm256_and_si256(_mm256_srl_epi16(w, by1), low1), 8));
        cg_vu_store_(symbols + i, (cg_vu_)w);
    }
    return i;
}
#endif

/* src/core/kernels/neon.h */
/* neon: the operations of the vector layer for NEON that halves does not have

   Offers   conversions, lookups, narrowing and widening of cg_vf_, cg_vu_ and cg_vd_
   Needs    base, lanes
   Touches  nothing but its arguments
   avx2 says what each operation does. */

#if CG_NEON_
#  define CG_B_(x) ((uint8x16_t)(x))
CG_EACH2_(u, cg_vu_max_, u, u, vmaxq_u32((uint32x4_t)x, (uint32x4_t)y))
CG_EACH2_(u, cg_vu_min_, u, u, vminq_u32((uint32x4_t)x, (uint32x4_t)y))
CG_EACH2_(u, cg_vu_max16_, u, u, vmaxq_u16((uint16x8_t)x, (uint16x8_t)y))
CG_EACH2_(u, cg_vb_min_, u, u, vminq_u8(CG_B_(x), CG_B_(y)))
CG_EACH2_(u, cg_vb_sub_sat_, u, u, vqsubq_u8(CG_B_(x), CG_B_(y)))
CG_EACH2_(f, cg_vf_min_, f, f, vbslq_u8(CG_B_(x < y), CG_B_(x), CG_B_(y)))
CG_EACH2_(f, cg_vf_max_, f, f, vbslq_u8(CG_B_(x > y), CG_B_(x), CG_B_(y)))
CG_EACH1_(f, cg_vf_int_, u, vcvtq_f32_s32((int32x4_t)x))
CG_EACH1_(u, cg_vu_round_, f, vcvtnq_s32_f32((float32x4_t)x))
CG_EACH1_(u, cg_vu_trunc_, f, vcvtq_s32_f32((float32x4_t)x))
CG_EACH1_(
    f, cg_vf_finite_, f, vmaxq_f32(vminq_f32((float32x4_t)x, vdupq_n_f32(CG_FLT_MAX_)), vdupq_n_f32(-CG_FLT_MAX_)))
CG_EACH1_(u, cg_vu_swap_halves_, u, vrev32q_u16((uint16x8_t)x))
CG_VECTOR_FN_ uint32_t cg_vu_hmax_(cg_vu_ x) { return vmaxvq_u32(vmaxq_u32((uint32x4_t)x.a, (uint32x4_t)x.b)); }
CG_VECTOR_FN_ int cg_vu_any_(cg_vu_ x) { return cg_vu_hmax_(x) != 0; }
CG_VECTOR_FN_ cg_vu_ cg_vu_signs_(cg_vu_ w, int from) {
    const int32x4_t low = { 31, 30, 29, 28 }, high = { 27, 26, 25, 24 };
    w.a = (cg_pu_)vshlq_u32((uint32x4_t)w.a, low - vdupq_n_s32(from)) & CG_SIGN_BIT_;
    w.b = (cg_pu_)vshlq_u32((uint32x4_t)w.b, high - vdupq_n_s32(from)) & CG_SIGN_BIT_;
    return w;
}
/* the low halves, or the low bytes, of two parts; the low bytes of four */
CG_VECTOR_FN_ cg_pu_ cg_low16_(cg_pu_ a, cg_pu_ b) { return (cg_pu_)vuzp1q_u16((uint16x8_t)a, (uint16x8_t)b); }
CG_VECTOR_FN_ cg_pu_ cg_low8_(cg_pu_ a, cg_pu_ b) { return (cg_pu_)vuzp1q_u8(CG_B_(a), CG_B_(b)); }
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    return cg_vu_join_(
        cg_low8_(cg_low16_(a.a, a.b), cg_low16_(b.a, b.b)), cg_low8_(cg_low16_(c.a, c.b), cg_low16_(d.a, d.b)));
}
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_signed_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) { return cg_vb_narrow_(a, b, c, d); }
CG_VECTOR_FN_ cg_pu_ cg_tops_(cg_vu_ a, cg_vu_ b) {
    const uint16x8_t x = vuzp2q_u16((uint16x8_t)a.a, (uint16x8_t)a.b), y = vuzp2q_u16((uint16x8_t)b.a, (uint16x8_t)b.b);
    return (cg_pu_)vandq_u8(vuzp2q_u8(CG_B_(x), CG_B_(y)), vdupq_n_u8(0x80));
}
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_tops_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    return cg_vu_join_(cg_tops_(a, b), cg_tops_(c, d));
}
CG_VECTOR_FN_ uint8x8_t cg_saturate8_(cg_vu_ a, int16x8_t plus) {
    return vqmovun_s16(vqaddq_s16(vqmovn_high_s32(vqmovn_s32((int32x4_t)a.a), (int32x4_t)a.b), plus));
}
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_add_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d, int plus) {
    const int16x8_t p = vdupq_n_s16((int16_t)plus);
    return cg_vu_join_((cg_pu_)vcombine_u8(cg_saturate8_(a, p), cg_saturate8_(b, p)),
        (cg_pu_)vcombine_u8(cg_saturate8_(c, p), cg_saturate8_(d, p)));
}
CG_VECTOR_FN_ uint32_t cg_vb_mask_(cg_vu_ bytes) {
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    uint8x16_t t = vpaddq_u8(
        vandq_u8(vcltzq_s8((int8x16_t)bytes.a), bit), vandq_u8(vcltzq_s8((int8x16_t)bytes.b), bit));
    t = vpaddq_u8(t, t);
    return vgetq_lane_u32(vreinterpretq_u32_u8(vpaddq_u8(t, t)), 0);
}
CG_VECTOR_FN_ void cg_vu_put16_(uint8_t *p, cg_vu_ a, cg_vu_ b) {
    vst1q_u8(p, CG_B_(cg_low16_(a.a, a.b)));
    vst1q_u8(p + 16, CG_B_(cg_low16_(b.a, b.b)));
}
CG_VECTOR_FN_ void cg_vb_put16_(uint8_t *p, cg_vu_ a, cg_vu_ b) {
    vst1q_u8(p, CG_B_(cg_low8_(a.a, a.b)));
    vst1q_u8(p + 16, CG_B_(cg_low8_(b.a, b.b)));
}
CG_VECTOR_FN_ cg_vu_ cg_widen16_(uint16x8_t w) {
    return cg_vu_join_((cg_pu_)vmovl_u16(vget_low_u16(w)), (cg_pu_)vmovl_high_u16(w));
}
CG_VECTOR_FN_ cg_vu_ cg_vu_bytes_(const uint8_t *p) { return cg_widen16_(vmovl_u8(vld1_u8(p))); }
CG_VECTOR_FN_ cg_vu_ cg_vu_u16_(const uint8_t *p) { return cg_widen16_(vreinterpretq_u16_u8(vld1q_u8(p))); }
CG_VECTOR_FN_ cg_vu_ cg_vu_bytes16_(const uint8_t *p) {
    return cg_vu_join_((cg_pu_)vmovl_u8(vld1_u8(p)), (cg_pu_)vmovl_u8(vld1_u8(p + 8)));
}
CG_VECTOR_FN_ cg_vu_ cg_vu_load24_(const uint8_t *p) {
    const uint8x16_t spread = { 0, 1, 2, 255, 3, 4, 5, 255, 6, 7, 8, 255, 9, 10, 11, 255 };
    return cg_vu_join_((cg_pu_)vqtbl1q_u8(vld1q_u8(p), spread), (cg_pu_)vqtbl1q_u8(vld1q_u8(p + 12), spread));
}
CG_VECTOR_FN_ void cg_vu_store24_(uint8_t *p, cg_vu_ x) {
    const uint8x16_t squeeze = { 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 255, 255, 255, 255 };
    vst1q_u8(p, vqtbl1q_u8(CG_B_(x.a), squeeze));
    vst1q_u8(p + 12, vqtbl1q_u8(CG_B_(x.b), squeeze));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_f16_(const uint8_t *p) {
    const float16x8_t h = vreinterpretq_f16_u8(vld1q_u8(p));
    return cg_vf_join_((cg_pf_)vcvt_f32_f16(vget_low_f16(h)), (cg_pf_)vcvt_high_f32_f16(h));
}
CG_VECTOR_FN_ void cg_vf_put_f16_(uint8_t *p, cg_vf_ x) {
    vst1q_u8(p, vreinterpretq_u8_f16(vcvt_high_f16_f32(vcvt_f16_f32((float32x4_t)x.a), (float32x4_t)x.b)));
}
CG_VECTOR_FN_ cg_vf_ cg_fp8_half_(uint8x8_t b, int is_e5m2) {
    int16x8_t h = vreinterpretq_s16_u16(vshll_n_u8(b, 8));
    cg_vf_ v;
    if (!is_e5m2) h = vandq_s16(vshrq_n_s16(h, 1), vdupq_n_s16((int16_t)-0x4001));
    v.a = (cg_pf_)vcvt_f32_f16(vget_low_f16(vreinterpretq_f16_s16(h))) * (is_e5m2 ? 1.0f : 256.0f);
    v.b = (cg_pf_)vcvt_high_f32_f16(vreinterpretq_f16_s16(h)) * (is_e5m2 ? 1.0f : 256.0f);
    return v;
}
CG_VECTOR_FN_ void cg_vf_fp8_(const uint8_t *p, int is_e5m2, cg_vf_ *x, cg_vf_ *y) {
    const uint8x16_t low = vminq_u8(vld1q_u8(p), vdupq_n_u8(is_e5m2 ? 0xfb : 0xfe));
    const uint8x16_t b = CG_B_(vminq_s8((int8x16_t)low, vdupq_n_s8(is_e5m2 ? 0x7b : 0x7e)));
    *x = cg_fp8_half_(vget_low_u8(b), is_e5m2);
    *y = cg_fp8_half_(vget_high_u8(b), is_e5m2);
}
CG_VECTOR_FN_ cg_vd_ cg_widen64_(float32x4_t f) {
    return cg_vd_join_((cg_pd_)vcvt_f64_f32(vget_low_f32(f)), (cg_pd_)vcvt_high_f64_f32(f));
}
CG_VECTOR_FN_ cg_vd_ cg_vd_floats_(const float *v, size_t i) {
    return cg_widen64_(vreinterpretq_f32_u8(vld1q_u8((const uint8_t *)v + 4 * i)));
}
CG_VECTOR_FN_ cg_vd_ cg_vd_low_(cg_vf_ x) { return cg_widen64_((float32x4_t)x.a); }
CG_VECTOR_FN_ cg_vd_ cg_vd_high_(cg_vf_ x) { return cg_widen64_((float32x4_t)x.b); }
/* The bytes of a table of floats at an index: four numbers each. */
CG_EACHN_(u, cg_byte_numbers_, u, (x & n) * 0x04040404u + 0x03020100u)
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup4_(cg_vf_ table, cg_vu_ index) {
    const cg_vu_ at = cg_byte_numbers_(index, 3);
    table.b = (cg_pf_)vqtbl1q_u8(CG_B_(table.a), CG_B_(at.b));
    table.a = (cg_pf_)vqtbl1q_u8(CG_B_(table.a), CG_B_(at.a));
    return table;
}
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup8_(cg_vf_ table, cg_vu_ index) {
    const cg_vu_ at = cg_byte_numbers_(index, 7);
    const uint8x16x2_t t = { { CG_B_(table.a), CG_B_(table.b) } };
    table.a = (cg_pf_)vqtbl2q_u8(t, CG_B_(at.a));
    table.b = (cg_pf_)vqtbl2q_u8(t, CG_B_(at.b));
    return table;
}
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup16_(cg_vf_ low, cg_vf_ high, cg_vu_ index) {
    const cg_vu_ at = cg_byte_numbers_(index, 15);
    const uint8x16x4_t t = { { CG_B_(low.a), CG_B_(low.b), CG_B_(high.a), CG_B_(high.b) } };
    low.a = (cg_pf_)vqtbl4q_u8(t, CG_B_(at.a));
    low.b = (cg_pf_)vqtbl4q_u8(t, CG_B_(at.b));
    return low;
}
#  define CG_WORD_OF_LANE_(j) (j)
CG_VECTOR_FN_ void cg_vq_add_words_(cg_vq_ *s, const uint8_t *words) {
    const uint32x4_t v = vreinterpretq_u32_u8(vld1q_u8(words)), w = vreinterpretq_u32_u8(vld1q_u8(words + 16));
    s[0].a = (cg_pq_)vaddw_u32((uint64x2_t)s[0].a, vget_low_u32(v));
    s[0].b = (cg_pq_)vaddw_high_u32((uint64x2_t)s[0].b, v);
    s[1].a = (cg_pq_)vaddw_u32((uint64x2_t)s[1].a, vget_low_u32(w));
    s[1].b = (cg_pq_)vaddw_high_u32((uint64x2_t)s[1].b, w);
}
/* Packing of 2 or 4 bits, which loads and stores that interleave do; returns how many. */
CG_VECTOR_FN_ size_t cg_pack_fast_(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out) {
    size_t i = 0;
    for (; bits == 2 && i + 64 <= n; i += 64) {
        uint8x16x4_t s = vld4q_u8(symbols + i);
        vst1q_u8(out + i / 4, vsliq_n_u8(vsliq_n_u8(s.val[0], s.val[1], 2), vsliq_n_u8(s.val[2], s.val[3], 2), 4));
    }
    for (; bits == 4 && i + 32 <= n; i += 32) {
        uint8x16x2_t s = vld2q_u8(symbols + i);
        vst1q_u8(out + i / 2, vsliq_n_u8(s.val[0], s.val[1], 4));
    }
    return i;
}
CG_VECTOR_FN_ size_t cg_unpack_fast_(const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols) {
    const uint8x16_t low = vdupq_n_u8((uint8_t)((1u << bits) - 1u));
    size_t i = 0;
    for (; bits == 2 && i + 64 <= n; i += 64) {
        const uint8x16_t w = vld1q_u8(in + i / 4);
        uint8x16x4_t s;
        s.val[0] = vandq_u8(w, low);
        s.val[1] = vandq_u8(vshrq_n_u8(w, 2), low);
        s.val[2] = vandq_u8(vshrq_n_u8(w, 4), low);
        s.val[3] = vshrq_n_u8(w, 6);
        vst4q_u8(symbols + i, s);
    }
    for (; bits == 4 && i + 32 <= n; i += 32) {
        const uint8x16_t w = vld1q_u8(in + i / 2);
        uint8x16x2_t s;
        s.val[0] = vandq_u8(w, low);
        s.val[1] = vshrq_n_u8(w, 4);
        vst2q_u8(symbols + i, s);
    }
    return i;
}
#endif

/* src/core/kernels/wasm.h */
/* wasm: the operations of the vector layer for WebAssembly SIMD128 that halves does not have

   Offers   conversions, lookups, narrowing and widening of cg_vf_, cg_vu_ and cg_vd_
   Needs    base, lanes
   Touches  nothing but its arguments
   avx2 says what each operation does. There is no instruction for f16: it is computed. */

#if CG_WASM_
#  define CG_W_(x) ((v128_t)(x))
CG_EACH2_(u, cg_vu_max_, u, u, wasm_u32x4_max(CG_W_(x), CG_W_(y)))
CG_EACH2_(u, cg_vu_min_, u, u, wasm_u32x4_min(CG_W_(x), CG_W_(y)))
CG_EACH2_(u, cg_vu_max16_, u, u, wasm_u16x8_max(CG_W_(x), CG_W_(y)))
CG_EACH2_(u, cg_vb_min_, u, u, wasm_u8x16_min(CG_W_(x), CG_W_(y)))
CG_EACH2_(u, cg_vb_sub_sat_, u, u, wasm_u8x16_sub_sat(CG_W_(x), CG_W_(y)))
CG_EACH2_(f, cg_vf_min_, f, f, wasm_f32x4_pmin(CG_W_(y), CG_W_(x)))
CG_EACH2_(f, cg_vf_max_, f, f, wasm_f32x4_pmax(CG_W_(y), CG_W_(x)))
CG_EACH1_(f, cg_vf_int_, u, wasm_f32x4_convert_i32x4(CG_W_(x)))
CG_EACH1_(u, cg_vu_round_, f, wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(CG_W_(x))))
CG_EACH1_(u, cg_vu_trunc_, f, wasm_i32x4_trunc_sat_f32x4(CG_W_(x)))
CG_EACH1_(f, cg_vf_finite_, f,
    wasm_f32x4_pmax(wasm_f32x4_pmin(CG_W_(x), wasm_f32x4_splat(CG_FLT_MAX_)), wasm_f32x4_splat(-CG_FLT_MAX_)))
CG_EACH1_(u, cg_vu_swap_halves_, u, x << 16 | x >> 16)
CG_VECTOR_FN_ uint32_t cg_vu_hmax_(cg_vu_ x) {
    const cg_pu_ m = (cg_pu_)wasm_u32x4_max(CG_W_(x.a), CG_W_(x.b));
    return cg_max32_(cg_max32_(m[0], m[1]), cg_max32_(m[2], m[3]));
}
CG_VECTOR_FN_ int cg_vu_any_(cg_vu_ x) { return wasm_v128_any_true(CG_W_(x.a | x.b)); }
CG_VECTOR_FN_ cg_vu_ cg_vu_signs_(cg_vu_ w, int from) { /* shifts by a number for each lane are products */
    const cg_pu_ low = { 1u << 31, 1u << 30, 1u << 29, 1u << 28 }, high = { 1u << 27, 1u << 26, 1u << 25, 1u << 24 };
    w.a = (w.a >> (unsigned)from) * low & CG_SIGN_BIT_;
    w.b = (w.b >> (unsigned)from) * high & CG_SIGN_BIT_;
    return w;
}
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_add_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d, int plus) {
    const v128_t p = wasm_i16x8_splat((int16_t)plus);
    return cg_vu_join_(
        (cg_pu_)wasm_u8x16_narrow_i16x8(wasm_i16x8_add_sat(wasm_i16x8_narrow_i32x4(CG_W_(a.a), CG_W_(a.b)), p),
            wasm_i16x8_add_sat(wasm_i16x8_narrow_i32x4(CG_W_(b.a), CG_W_(b.b)), p)),
        (cg_pu_)wasm_u8x16_narrow_i16x8(wasm_i16x8_add_sat(wasm_i16x8_narrow_i32x4(CG_W_(c.a), CG_W_(c.b)), p),
            wasm_i16x8_add_sat(wasm_i16x8_narrow_i32x4(CG_W_(d.a), CG_W_(d.b)), p)));
}
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) { return cg_vb_narrow_add_(a, b, c, d, 0); }
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_signed_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    return cg_vu_join_((cg_pu_)wasm_i8x16_narrow_i16x8(wasm_i16x8_narrow_i32x4(CG_W_(a.a), CG_W_(a.b)),
                           wasm_i16x8_narrow_i32x4(CG_W_(b.a), CG_W_(b.b))),
        (cg_pu_)wasm_i8x16_narrow_i16x8(
            wasm_i16x8_narrow_i32x4(CG_W_(c.a), CG_W_(c.b)), wasm_i16x8_narrow_i32x4(CG_W_(d.a), CG_W_(d.b))));
}
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_tops_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    cg_vu_ v = cg_vb_narrow_signed_(a, b, c, d);
    v.a &= 0x80808080u;
    v.b &= 0x80808080u;
    return v;
}
CG_VECTOR_FN_ uint32_t cg_vb_mask_(cg_vu_ bytes) {
    return (uint32_t)wasm_i8x16_bitmask(CG_W_(bytes.a)) | (uint32_t)wasm_i8x16_bitmask(CG_W_(bytes.b)) << 16;
}
CG_VECTOR_FN_ void cg_vu_put16_(uint8_t *p, cg_vu_ a, cg_vu_ b) {
    wasm_v128_store(p, wasm_u16x8_narrow_i32x4(CG_W_(a.a), CG_W_(a.b)));
    wasm_v128_store(p + 16, wasm_u16x8_narrow_i32x4(CG_W_(b.a), CG_W_(b.b)));
}
CG_VECTOR_FN_ void cg_vb_put16_(uint8_t *p, cg_vu_ a, cg_vu_ b) {
    wasm_v128_store(p, wasm_u8x16_narrow_i16x8(CG_W_(a.a), CG_W_(a.b)));
    wasm_v128_store(p + 16, wasm_u8x16_narrow_i16x8(CG_W_(b.a), CG_W_(b.b)));
}
CG_VECTOR_FN_ cg_vu_ cg_widen16_(v128_t w) {
    return cg_vu_join_((cg_pu_)wasm_u32x4_extend_low_u16x8(w), (cg_pu_)wasm_u32x4_extend_high_u16x8(w));
}
CG_VECTOR_FN_ cg_vu_ cg_vu_bytes_(const uint8_t *p) { return cg_widen16_(wasm_u16x8_load8x8(p)); }
CG_VECTOR_FN_ cg_vu_ cg_vu_u16_(const uint8_t *p) { return cg_widen16_(wasm_v128_load(p)); }
CG_VECTOR_FN_ cg_vu_ cg_vu_bytes16_(const uint8_t *p) {
    return cg_vu_join_((cg_pu_)wasm_u16x8_load8x8(p), (cg_pu_)wasm_u16x8_load8x8(p + 8));
}
CG_VECTOR_FN_ cg_vu_ cg_vu_load24_(const uint8_t *p) {
    const v128_t spread = wasm_i8x16_make(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
    return cg_vu_join_((cg_pu_)wasm_i8x16_swizzle(wasm_v128_load(p), spread),
        (cg_pu_)wasm_i8x16_swizzle(wasm_v128_load(p + 12), spread));
}
CG_VECTOR_FN_ void cg_vu_store24_(uint8_t *p, cg_vu_ x) {
    const v128_t squeeze = wasm_i8x16_make(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    wasm_v128_store(p, wasm_i8x16_swizzle(CG_W_(x.a), squeeze));
    wasm_v128_store(p + 12, wasm_i8x16_swizzle(CG_W_(x.b), squeeze));
}
/* Small floats shifted to the place of f32's mantissa, m, plus the difference of the exponents' biases, are normal
   values; with a bias larger by 1, less the smallest normal value, denormal ones. The lesser of the two is right. */
CG_VECTOR_FN_ cg_pf_ cg_small_float_(cg_pu_ m, cg_pu_ sign, uint32_t bias) {
    const cg_pf_ denormal = (cg_pf_)(m + (bias + (1u << 23))) - cg_as_float_(bias + (1u << 23));
    return (cg_pf_)((cg_pu_)wasm_u32x4_min(CG_W_(m + bias), CG_W_(denormal)) | sign);
}
CG_VECTOR_FN_ cg_pf_ cg_f16_part_(cg_pu_ h) {
    const cg_pu_ m = (h & 0x7fff) << 13, special = (cg_pu_)(m >= 0x0f800000u), nan = (cg_pu_)(m > 0x0f800000u);
    const cg_pu_ f = (cg_pu_)cg_small_float_(m, (h & 0x8000) << 16, 112u << 23);
    return (cg_pf_)(f | (special & CG_INF_BITS_) | (nan & 0x400000u));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_f16_(const uint8_t *p) {
    const cg_vu_ h = cg_vu_u16_(p);
    return cg_vf_join_(cg_f16_part_(h.a), cg_f16_part_(h.b));
}
/* To nearest even: a normal value by the bits that are dropped; a denormal by adding 0.5, which drops those below
   2^-24. */
CG_VECTOR_FN_ cg_pu_ cg_put_f16_part_(cg_pu_ u) {
    const cg_pu_ m = u & CG_ABS_MASK_, normal = (m + (0xc8000fffu + (m >> 13 & 1))) >> 13,
                 denormal = (cg_pu_)((cg_pf_)m + 0.5f) - 0x3f000000u, small = (cg_pu_)(m < 0x38800000u),
                 large = (cg_pu_)(m >= 0x47800000u);
    return (((small & denormal) | (~small & normal)) & ~large) | (large & 0x7c00) | (u >> 16 & 0x8000);
}
CG_VECTOR_FN_ void cg_vf_put_f16_(uint8_t *p, cg_vf_ x) {
    wasm_v128_store(
        p, wasm_u16x8_narrow_i32x4(CG_W_(cg_put_f16_part_((cg_pu_)x.a)), CG_W_(cg_put_f16_part_((cg_pu_)x.b))));
}
CG_VECTOR_FN_ cg_vf_ cg_fp8_half_(const uint8_t *p, int is_e5m2) {
    const uint32_t bias = is_e5m2 ? 112u << 23 : 120u << 23;
    const v128_t most = wasm_u32x4_splat(is_e5m2 ? 0x7b : 0x7e);
    const cg_vu_ b = cg_vu_bytes_(p);
    const unsigned up = is_e5m2 ? 21 : 20;
    return cg_vf_join_(cg_small_float_((cg_pu_)wasm_u32x4_min(CG_W_(b.a & 0x7f), most) << up, (b.a & 0x80) << 24, bias),
        cg_small_float_((cg_pu_)wasm_u32x4_min(CG_W_(b.b & 0x7f), most) << up, (b.b & 0x80) << 24, bias));
}
CG_VECTOR_FN_ void cg_vf_fp8_(const uint8_t *p, int is_e5m2, cg_vf_ *x, cg_vf_ *y) {
    *x = cg_fp8_half_(p, is_e5m2);
    *y = cg_fp8_half_(p + 8, is_e5m2);
}
CG_VECTOR_FN_ cg_vd_ cg_widen64_(v128_t f) {
    return cg_vd_join_(
        (cg_pd_)wasm_f64x2_promote_low_f32x4(f), (cg_pd_)wasm_f64x2_promote_low_f32x4(wasm_i64x2_shuffle(f, f, 1, 1)));
}
CG_VECTOR_FN_ cg_vd_ cg_vd_floats_(const float *v, size_t i) { return cg_widen64_(wasm_v128_load(cg_at_(v, i))); }
CG_VECTOR_FN_ cg_vd_ cg_vd_low_(cg_vf_ x) { return cg_widen64_(CG_W_(x.a)); }
CG_VECTOR_FN_ cg_vd_ cg_vd_high_(cg_vf_ x) { return cg_widen64_(CG_W_(x.b)); }
/* Of a table of up to 16 floats in parts: a swizzle gives 0 for a number beyond its part, and the others are or-ed. */
CG_VECTOR_FN_ cg_pf_ cg_lookup_part_(cg_pf_ part, cg_pu_ index, unsigned first, unsigned mask) {
    const cg_pu_ at = (index & mask) * 0x04040404u + 0x03020100u;
    return (cg_pf_)wasm_i8x16_swizzle(CG_W_(part), wasm_i8x16_sub(CG_W_(at), wasm_i8x16_splat((int8_t)(4 * first))));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup4_(cg_vf_ table, cg_vu_ index) {
    table.b = cg_lookup_part_(table.a, index.b, 0, 3);
    table.a = cg_lookup_part_(table.a, index.a, 0, 3);
    return table;
}
CG_VECTOR_FN_ cg_pf_ cg_lookup8_part_(cg_vf_ table, cg_pu_ index, unsigned first, unsigned mask) {
    return (cg_pf_)((cg_pu_)cg_lookup_part_(table.a, index, first, mask) |
        (cg_pu_)cg_lookup_part_(table.b, index, first + 4, mask));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup8_(cg_vf_ table, cg_vu_ index) {
    return cg_vf_join_(cg_lookup8_part_(table, index.a, 0, 7), cg_lookup8_part_(table, index.b, 0, 7));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup16_(cg_vf_ low, cg_vf_ high, cg_vu_ index) {
    return cg_vf_join_(
        (cg_pf_)((cg_pu_)cg_lookup8_part_(low, index.a, 0, 15) | (cg_pu_)cg_lookup8_part_(high, index.a, 8, 15)),
        (cg_pf_)((cg_pu_)cg_lookup8_part_(low, index.b, 0, 15) | (cg_pu_)cg_lookup8_part_(high, index.b, 8, 15)));
}
#  define CG_WORD_OF_LANE_(j) (j)
CG_VECTOR_FN_ void cg_vq_add_words_(cg_vq_ *s, const uint8_t *words) {
    const v128_t v = wasm_v128_load(words), w = wasm_v128_load(words + 16);
    s[0].a += (cg_pq_)wasm_u64x2_extend_low_u32x4(v);
    s[0].b += (cg_pq_)wasm_u64x2_extend_high_u32x4(v);
    s[1].a += (cg_pq_)wasm_u64x2_extend_low_u32x4(w);
    s[1].b += (cg_pq_)wasm_u64x2_extend_high_u32x4(w);
}
CG_VECTOR_FN_ size_t cg_pack_fast_(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out) {
    (void)symbols, (void)n, (void)bits, (void)out;
    return 0;
}
CG_VECTOR_FN_ size_t cg_unpack_fast_(const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols) {
    (void)in, (void)n, (void)bits, (void)symbols;
    return 0;
}
#endif

/* src/core/kernels/halves.h */
/* halves: operations of the vector layer that ISAs with registers of 16 bytes share

   Offers   loads, stores, permutations, packing and the like of cg_vf_, cg_vu_ and cg_vd_ as two parts each
   Needs    base, lanes
   Touches  nothing but its arguments
   avx2 says what each operation does; what differs between NEON and WebAssembly stands in neon and wasm. */

#if CG_NEON_ || CG_WASM_
#  if defined(__clang__)
#    define CG_SHUFFLE_(x, y, a, b, c, d) __builtin_shufflevector(x, y, a, b, c, d)
#  else
#    define CG_SHUFFLE_(x, y, a, b, c, d) __builtin_shuffle(x, y, __extension__(cg_pi_){ a, b, c, d })
#  endif
CG_VECTOR_FN_ cg_vf_ cg_vf_make_(float a, float b, float c, float d, float e, float f, float g, float h) {
    const cg_vf_ v = { { a, b, c, d }, { e, f, g, h } };
    return v;
}
CG_VECTOR_FN_ cg_vf_ cg_vf_set_(float f) { return cg_vf_make_(f, f, f, f, f, f, f, f); }
CG_VECTOR_FN_ cg_vf_ cg_vf_broadcast_(const float *p) { return cg_vf_set_(*p); }
CG_VECTOR_FN_ cg_vu_ cg_vu_set_(uint32_t u) {
    const cg_vu_ v = { { u, u, u, u }, { u, u, u, u } };
    return v;
}
CG_VECTOR_FN_ cg_vu_ cg_vb_set_(unsigned byte) { return cg_vu_set_((byte & 255u) * 0x01010101u); }
CG_VECTOR_FN_ cg_vd_ cg_vd_zero_(void) {
    const cg_vd_ v = { { 0.0, 0.0 }, { 0.0, 0.0 } };
    return v;
}
CG_VECTOR_FN_ cg_vu_ cg_vu_load_(const void *p) {
    cg_vu_ v;
    memcpy(&v.a, p, 16);
    memcpy(&v.b, (const uint8_t *)p + 16, 16);
    return v;
}
CG_VECTOR_FN_ void cg_vu_store_(void *p, cg_vu_ x) {
    memcpy(p, &x.a, 16);
    memcpy((uint8_t *)p + 16, &x.b, 16);
}
CG_VECTOR_FN_ cg_vd_ cg_vd_load_(const double *p) {
    cg_vd_ v;
    memcpy(&v.a, p, 16);
    memcpy(&v.b, p + 2, 16);
    return v;
}
CG_VECTOR_FN_ void cg_vd_store_(double *p, cg_vd_ x) {
    memcpy(p, &x.a, 16);
    memcpy(p + 2, &x.b, 16);
}
CG_VECTOR_FN_ void cg_vf_stream_(float *y, size_t i, cg_vf_ x, int non_temporal) {
    (void)non_temporal;
    cg_vu_store_(cg_at_mut_(y, i), cg_vu_of_(x));
}
CG_VECTOR_FN_ void cg_stream_end_(void) {}
CG_VECTOR_FN_ void cg_vector_end_(void) {}
CG_EACH2_(u, cg_vf_gt_, f, f, x > y)

/* Bytes are in order here, and narrow what is in their range alike. */
CG_VECTOR_FN_ void cg_vb_put_(uint8_t *p, cg_vu_ bytes) { cg_vu_store_(p, bytes); }
CG_VECTOR_FN_ uint32_t cg_vb_mask_in_order_(cg_vu_ bytes) { return cg_vb_mask_(bytes); }
CG_VECTOR_FN_ uint32_t cg_vu_mask_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    return cg_vb_mask_(cg_vb_narrow_signed_(a, b, c, d));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_reverse_(cg_vf_ x) {
    return cg_vf_join_(CG_SHUFFLE_(x.b, x.b, 3, 2, 1, 0), CG_SHUFFLE_(x.a, x.a, 3, 2, 1, 0));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_next_(cg_vf_ x, cg_vf_ next) {
    return cg_vf_join_(CG_SHUFFLE_(x.a, x.b, 1, 2, 3, 4), CG_SHUFFLE_(x.b, next.a, 1, 2, 3, 4));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_prev_(cg_vf_ x, cg_vf_ last) {
    return cg_vf_join_(CG_SHUFFLE_(last.b, x.a, 3, 4, 5, 6), CG_SHUFFLE_(x.a, x.b, 3, 4, 5, 6));
}
CG_VECTOR_FN_ void cg_vf_interleave_(cg_vf_ a, cg_vf_ b, cg_vf_ *x, cg_vf_ *y) {
    x->a = CG_SHUFFLE_(a.a, b.a, 0, 4, 1, 5);
    x->b = CG_SHUFFLE_(a.a, b.a, 2, 6, 3, 7);
    y->a = CG_SHUFFLE_(a.b, b.b, 0, 4, 1, 5);
    y->b = CG_SHUFFLE_(a.b, b.b, 2, 6, 3, 7);
}
CG_VECTOR_FN_ void cg_vf_deinterleave_(cg_vf_ x, cg_vf_ y, cg_vf_ *a, cg_vf_ *b) {
    a->a = CG_SHUFFLE_(x.a, x.b, 0, 2, 4, 6);
    a->b = CG_SHUFFLE_(y.a, y.b, 0, 2, 4, 6);
    b->a = CG_SHUFFLE_(x.a, x.b, 1, 3, 5, 7);
    b->b = CG_SHUFFLE_(y.a, y.b, 1, 3, 5, 7);
}
CG_VECTOR_FN_ cg_pu_ cg_pu_select_(cg_pu_ mask, cg_pu_ x, cg_pu_ y) { return (mask & x) | (~mask & y); }
CG_VECTOR_FN_ cg_vu_ cg_vu_full_adder_(cg_vu_ *s, cg_vu_ a, cg_vu_ b) {
    const cg_vu_ x = cg_vu_xor_(*s, a);
    cg_vu_ carry;
    carry.a = cg_pu_select_(x.a, b.a, a.a);
    carry.b = cg_pu_select_(x.b, b.b, a.b);
    *s = cg_vu_xor_(x, b);
    return carry;
}
CG_VECTOR_FN_ cg_vf_ cg_vf_flip_(cg_vf_ x, uint32_t byte) {
    return cg_vf_of_(cg_vu_xor_(cg_vu_of_(x), cg_vu_signs_(cg_vu_set_(byte), 0)));
}
CG_VECTOR_FN_ cg_pf_ cg_pf_hadamard_(cg_pf_ x) { /* strides 1, 2 */
    const cg_pu_ odd = { 0, CG_SIGN_BIT_, 0, CG_SIGN_BIT_ }, pair = { 0, 0, CG_SIGN_BIT_, CG_SIGN_BIT_ };
    x = CG_SHUFFLE_(x, x, 1, 0, 3, 2) + (cg_pf_)((cg_pu_)x ^ odd);
    return CG_SHUFFLE_(x, x, 2, 3, 0, 1) + (cg_pf_)((cg_pu_)x ^ pair);
}
CG_VECTOR_FN_ cg_vf_ cg_vf_hadamard_(const float *v, size_t i, const uint8_t *flips, int flip) {
    cg_vf_ x = cg_vf_of_(cg_vu_load_(cg_at_(v, i))), y;
    if (flip) x = cg_vf_flip_(x, flips[i / 8]);
    y.a = cg_pf_hadamard_(x.a + x.b);
    y.b = cg_pf_hadamard_(x.a - x.b);
    return y;
}
/* Two symbols are joined in 16 bits, 4 in 32, 8 in 64: the upper of two moves down to the lower one's end. Unpacking
   does the same in reverse order. */
CG_VECTOR_FN_ size_t cg_pack_most_(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out) {
    const uint32_t ones = (1u << bits) - 1u;
    const cg_pu_ low2 = cg_vu_set_(ones * 0x10001u).a, low4 = cg_vu_set_((1u << 2 * bits) - 1u).a;
    const cg_pq_ low8 = { ((uint64_t)1 << 4 * bits) - 1, ((uint64_t)1 << 4 * bits) - 1 };
    size_t i = cg_pack_fast_(symbols, n, bits, out);
    /* stores are of 8 bytes, of which `bits` count: the one after it overwrites the others */
    for (; i + 16 <= n && i / 8 * bits + bits + 8 <= n / 8 * bits; i += 16) {
        cg_pu_ w;
        memcpy(&w, symbols + i, 16);
        w = cg_pu_select_(low2, w, (cg_pu_)((cg_ph_)w >> (uint16_t)(8 - bits)));
        w = cg_pu_select_(low4, w, w >> (16 - 2 * bits));
        w = cg_pu_select_((cg_pu_)low8, w, (cg_pu_)((cg_pq_)w >> (uint64_t)(32 - 4 * bits)));
        cg_put64_(out + i / 8 * bits, ((cg_pq_)w)[0]);
        cg_put64_(out + i / 8 * bits + bits, ((cg_pq_)w)[1]);
    }
    return i;
}
CG_VECTOR_FN_ size_t cg_unpack_most_(const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols) {
    const cg_pu_ low8 = { ~0u, 0, ~0u, 0 }, low4 = cg_vu_set_(0xffff).a, low2 = cg_vu_set_(0xff00ff).a,
                 low1 = cg_vb_set_((1u << bits) - 1u).a;
    size_t i = cg_unpack_fast_(in, n, bits, symbols);
    for (; i + 16 <= n && i / 8 * bits + bits + 8 <= n / 8 * bits; i += 16) {
        const cg_pq_ v = { cg_get64_(in + i / 8 * bits), cg_get64_(in + i / 8 * bits + bits) };
        cg_pu_ w = cg_pu_select_(low8, (cg_pu_)v, (cg_pu_)(v << (uint64_t)(32 - 4 * bits)));
        w = cg_pu_select_(low4, w, w << (16 - 2 * bits));
        w = cg_pu_select_(low2, w, (cg_pu_)((cg_ph_)w << (uint16_t)(8 - bits))) & low1;
        memcpy(symbols + i, &w, 16);
    }
    return i;
}
#endif

/* src/core/kernels/vectors.h */
/* vectors: what several kernels make of the operations of the vector layer

   Offers   loads of floats, magnitudes, hashes and rounding noise of eight positions, 16 lanes of sums, prefetching
   Needs    base, random, lanes, the ISA's room
   Touches  nothing but its arguments */

#define CG_PREFETCH_DISTANCE_ 512u /* values (2 KB) from the one that is used to the one that is prefetched */
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_vu_floats_(const float *v, size_t i) { return cg_vu_load_(cg_at_(v, i)); }
CG_VECTOR_FN_ cg_vf_ cg_vf_load_(const float *v, size_t i) { return cg_vf_of_(cg_vu_floats_(v, i)); }
CG_VECTOR_FN_ void cg_vf_store_(float *v, size_t i, cg_vf_ x) { cg_vu_store_(cg_at_mut_(v, i), cg_vu_of_(x)); }
CG_VECTOR_FN_ cg_vu_ cg_vu_abs_(cg_vu_ x) { return cg_vu_and_(x, cg_vu_set_(CG_ABS_MASK_)); }
CG_VECTOR_FN_ cg_vf_ cg_vf_abs_(cg_vf_ x) { return cg_vf_of_(cg_vu_abs_(cg_vu_of_(x))); }
CG_VECTOR_FN_ cg_vu_ cg_vu_negative_(cg_vu_ x) { return cg_vf_gt_(cg_vf_set_(0.0f), cg_vf_of_(x)); } /* as a float */
/* the larger of x and the magnitudes of v */
CG_VECTOR_FN_ cg_vu_ cg_vu_absmax_(cg_vu_ x, cg_vu_ v) { return cg_vu_max_(x, cg_vu_abs_(v)); }

/* Called for each 32 values of a chunk: prefetches two cache lines that follow, `ahead` values on, so that memory stays
   busy while the chunk is packed and summed. */
CG_VECTOR_FN_ void cg_prefetch32_(const float *v, size_t i, size_t ahead) {
    CG_PREFETCH_(cg_at_(v, i + ahead));
    CG_PREFETCH_(cg_at_(v, i + ahead + 16));
}
#  define CG_AHEAD_ 1536u

/* cg_hash32_ of eight counters from this one on */
CG_VECTOR_FN_ cg_vu_ cg_vu_hash_(cg_key_ key, uint32_t counter) {
    static const uint32_t lane[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    cg_vu_ h = cg_vu_xor_(cg_vu_add_(cg_vu_set_(counter), cg_vu_load_(lane)), cg_vu_set_(key.a));
    h = cg_vu_mul_(cg_vu_xor_(h, cg_vu_shr_(h, 16)), cg_vu_set_(0x7FEB352Du));
    h = cg_vu_add_(cg_vu_xor_(h, cg_vu_shr_(h, 15)), cg_vu_set_(key.b));
    h = cg_vu_mul_(h, cg_vu_set_(0x846CA68Bu));
    return cg_vu_xor_(h, cg_vu_shr_(h, 16));
}
/* cg_noise_bits_ of 32 positions; position % 16 == 0. One hash serves positions p and p + 8 of 16. */
CG_VECTOR_FN_ void cg_vu_noise_(cg_key_ key, uint32_t position, cg_vu_ *noise) {
    noise[0] = cg_vu_hash_(key, position >> 1);
    noise[1] = cg_vu_swap_halves_(noise[0]);
    noise[2] = cg_vu_hash_(key, (position >> 1) + 8);
    noise[3] = cg_vu_swap_halves_(noise[2]);
    if (key.shift) { /* a branch that is foreseen costs less than four additions of 0 */
        const cg_vu_ shift = cg_vu_set_(key.shift);
        for (int i = 0; i < 4; i++) noise[i] = cg_vu_add_(noise[i], shift);
    }
}
/* How many values come before the first whose position is a multiple of 16, at most n. */
CG_INLINE_ size_t cg_noise_head_(int stochastic, uint32_t position, size_t n) {
    return stochastic ? cg_min_(n, (16 - (position & 15)) & 15) : 0;
}
/* the 24 high bits of h as a fraction of 2^24 */
CG_VECTOR_FN_ cg_vf_ cg_vf_uniform_(cg_vu_ h) {
    return cg_vf_mul_(cg_vf_int_(cg_vu_shr_(h, 8)), cg_vf_set_(5.9604644775390625e-8f));
}

/* 16 lanes of sums in four vectors */
CG_VECTOR_FN_ void cg_lanes_load_(cg_vd_ *s, const double *lanes) {
    s[0] = cg_vd_load_(lanes);
    s[1] = cg_vd_load_(lanes + 4);
    s[2] = cg_vd_load_(lanes + 8);
    s[3] = cg_vd_load_(lanes + 12);
}
CG_VECTOR_FN_ void cg_lanes_store_(double *lanes, const cg_vd_ *s) {
    cg_vd_store_(lanes, s[0]);
    cg_vd_store_(lanes + 4, s[1]);
    cg_vd_store_(lanes + 8, s[2]);
    cg_vd_store_(lanes + 12, s[3]);
}
CG_VECTOR_FN_ void cg_lanes_add_(cg_vd_ *s, cg_vf_ x) { /* eight terms to eight lanes */
    s[0] = cg_vd_add_(s[0], cg_vd_low_(x));
    s[1] = cg_vd_add_(s[1], cg_vd_high_(x));
}
#endif

/* src/core/kernels/formats.h */
/* formats: kernels that measure values, and that write them as f32, f16 and bf16

   Offers   absmax_bits, range, copy, f16_encode, bf16_encode; cg_f16_encode_ and cg_bf16_encode_ of one value
   Needs    base, table, the vector layer
   Touches  nothing but its arguments */

/* absmax_bits: the largest magnitude as bits, with the sign cleared. As integers, bits are ordered as magnitudes are,
   with Inf and then NaN above all finite ones. 0 if n is 0. */
static uint32_t cg_absmax_bits_scalar_(const float *v, size_t n) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) absmax_bits = cg_max32_(absmax_bits, cg_load_bits_(v, i) & CG_ABS_MASK_);
    return absmax_bits;
}
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_absmax16_(cg_vu_ absmax, const float *v, size_t i) { /* and 16 values at v + i */
    CG_PREFETCH_(cg_at_(v, i + CG_PREFETCH_DISTANCE_));
    return cg_vu_absmax_(cg_vu_absmax_(absmax, cg_vu_floats_(v, i)), cg_vu_floats_(v, i + 8));
}
CG_VECTOR_FN_ uint32_t cg_absmax_bits_simd_(const float *v, size_t n) {
    cg_vu_ t0 = cg_vu_set_(0), t1 = t0, t2 = t0, t3 = t0;
    size_t i = 0;
    /* a long vector at four places at once: one stream of reads does not keep memory busy */
    if (n >= 16384) {
        const size_t quarter = n / 64 * 16;
        for (; i < quarter; i += 16) {
            t0 = cg_absmax16_(t0, v, i);
            t1 = cg_absmax16_(t1, v, i + quarter);
            t2 = cg_absmax16_(t2, v, i + 2 * quarter);
            t3 = cg_absmax16_(t3, v, i + 3 * quarter);
        }
        i = 4 * quarter;
    }
    for (; i + 32 <= n; i += 32) {
        cg_prefetch32_(v, i, CG_PREFETCH_DISTANCE_);
        t0 = cg_vu_absmax_(t0, cg_vu_floats_(v, i));
        t1 = cg_vu_absmax_(t1, cg_vu_floats_(v, i + 8));
        t2 = cg_vu_absmax_(t2, cg_vu_floats_(v, i + 16));
        t3 = cg_vu_absmax_(t3, cg_vu_floats_(v, i + 24));
    }
    t0 = cg_vu_max_(cg_vu_max_(t0, t1), cg_vu_max_(t2, t3));
    return cg_max32_(cg_vu_hmax_(t0), cg_absmax_bits_scalar_(cg_at_(v, i), n - i));
}
#endif

/* range: lowers *lo to the smallest value and raises *hi to the largest; the caller sets both before. If some value is
   a NaN they have no meaning, which the returned absmax bits show. Of a zero, the sign is unspecified. */
static uint32_t cg_range_scalar_(const float *v, size_t n, float *lo, float *hi) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        absmax_bits = cg_max32_(absmax_bits, cg_as_bits_(f) & CG_ABS_MASK_);
        *lo = f < *lo ? f : *lo;
        *hi = f > *hi ? f : *hi;
    }
    return absmax_bits;
}
#if CG_VECTOR_
CG_VECTOR_FN_ uint32_t cg_range_simd_(const float *v, size_t n, float *lo, float *hi) {
    cg_vu_ t0 = cg_vu_set_(0), t1 = t0;
    cg_vf_ l0 = cg_vf_set_(*lo), l1 = l0, h0 = cg_vf_set_(*hi), h1 = h0;
    float lows[8], highs[8];
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const cg_vu_ a = cg_vu_floats_(v, i), b = cg_vu_floats_(v, i + 8);
        t0 = cg_vu_absmax_(t0, a);
        t1 = cg_vu_absmax_(t1, b);
        l0 = cg_vf_min_(l0, cg_vf_of_(a));
        l1 = cg_vf_min_(l1, cg_vf_of_(b));
        h0 = cg_vf_max_(h0, cg_vf_of_(a));
        h1 = cg_vf_max_(h1, cg_vf_of_(b));
    }
    cg_vf_store_(lows, 0, cg_vf_min_(l0, l1));
    cg_vf_store_(highs, 0, cg_vf_max_(h0, h1));
    for (int j = 0; j < 8; j++) {
        *lo = lows[j] < *lo ? lows[j] : *lo;
        *hi = highs[j] > *hi ? highs[j] : *hi;
    }
    return cg_max32_(cg_vu_hmax_(cg_vu_max_(t0, t1)), cg_range_scalar_(cg_at_(v, i), n - i, lo, hi));
}
#endif

/* copy: f32 to the wire, bits unchanged.
   f16_encode: to nearest even. Finite values that would round to Inf become +-65504; Inf stays, a NaN becomes a quiet
   one without payload.
   bf16_encode: to nearest even. Finite values that would round to Inf become the largest, 0x7f7f; Inf stays, a NaN
   becomes quiet and keeps the rest of its upper bits.
   All return absmax bits. */
#define CG_F16_LIMIT_ 0x477fefffu  /* magnitude bits of the largest value that rounds to 65504 */
#define CG_BF16_LIMIT_ 0x7f7f7fffu /* magnitude bits of the largest value that rounds to 0x7f7f */
/* f32 bits to f16 bits */
CG_INLINE_ uint32_t cg_f16_encode_(uint32_t u) {
    uint32_t sign = u >> 16 & 0x8000u, m = u & CG_ABS_MASK_, shift, rest, h;
    if (m > CG_F16_LIMIT_) {
        if (m < CG_INF_BITS_) return sign | 0x7bffu;
        return sign | (m == CG_INF_BITS_ ? 0x7c00u : 0x7e00u);
    }
    if (m < 0x33000000u) return sign; /* below half of the smallest denormal */
    if (m < 0x38800000u) {            /* becomes denormal */
        shift = 126u - (m >> 23);
        m = (m & 0x7fffffu) | 0x800000u;
    } else {
        shift = 13;
        m -= 0x38000000u;
    }
    h = m >> shift;
    rest = m & ((1u << shift) - 1u);
    h += rest > 1u << (shift - 1) || (rest == 1u << (shift - 1) && (h & 1u));
    return sign | h;
}
CG_INLINE_ uint32_t cg_bf16_encode_(uint32_t u) {
    uint32_t m = u & CG_ABS_MASK_;
    if (m > CG_BF16_LIMIT_) {
        if (m < CG_INF_BITS_) return (u >> 16 & 0x8000u) | 0x7f7fu;
        return u >> 16 | (m > CG_INF_BITS_ ? 0x40u : 0u);
    }
    return (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
}
enum { CG_TO_F32_, CG_TO_F16_, CG_TO_BF16_ };
CG_INLINE_ uint32_t cg_floats_put_scalar_(const float *v, size_t n, uint8_t *out, int to) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = cg_load_bits_(v, i);
        absmax_bits = cg_max32_(absmax_bits, u & CG_ABS_MASK_);
        if (to == CG_TO_F32_) cg_put32_(out + 4 * i, u);
        else cg_put16_(out + 2 * i, to == CG_TO_F16_ ? cg_f16_encode_(u) : cg_bf16_encode_(u));
    }
    return absmax_bits;
}
static uint32_t cg_copy_scalar_(const float *v, size_t n, uint8_t *out) {
    return cg_floats_put_scalar_(v, n, out, CG_TO_F32_);
}
static uint32_t cg_f16_encode_scalar_(const float *v, size_t n, uint8_t *out) {
    return cg_floats_put_scalar_(v, n, out, CG_TO_F16_);
}
static uint32_t cg_bf16_encode_scalar_(const float *v, size_t n, uint8_t *out) {
    return cg_floats_put_scalar_(v, n, out, CG_TO_BF16_);
}
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_bf16_encode8_(cg_vu_ u) { /* wrong above CG_BF16_LIMIT_ */
    const cg_vu_ odd = cg_vu_and_(cg_vu_shr_(u, 16), cg_vu_set_(1));
    return cg_vu_shr_(cg_vu_add_(cg_vu_add_(u, cg_vu_set_(0x7fff)), odd), 16);
}
/* What the operations do wrong above the limit is rare, and the scalar kernel does it again. */
CG_VECTOR_FN_ uint32_t cg_floats_put_simd_(const float *v, size_t n, uint8_t *out, int to) {
    const uint32_t limit = to == CG_TO_F32_ ? CG_ABS_MASK_ : to == CG_TO_F16_ ? CG_F16_LIMIT_ : CG_BF16_LIMIT_;
    const size_t width = to == CG_TO_F32_ ? 4 : 2;
    cg_vu_ t0 = cg_vu_set_(0), t1 = t0;
    uint32_t absmax_bits;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const cg_vu_ a = cg_vu_floats_(v, i), b = cg_vu_floats_(v, i + 8);
        if (width < 4) CG_PREFETCH_(cg_at_(v, i + CG_AHEAD_));
        if (to == CG_TO_F32_) cg_vu_store_(out + 4 * i, a), cg_vu_store_(out + 4 * i + 32, b);
        if (to == CG_TO_F16_) cg_vf_put_f16_(out + 2 * i, cg_vf_of_(a)), cg_vf_put_f16_(out + 2 * i + 16, cg_vf_of_(b));
        if (to == CG_TO_BF16_) cg_vu_put16_(out + 2 * i, cg_bf16_encode8_(a), cg_bf16_encode8_(b));
        t0 = cg_vu_absmax_(t0, a);
        t1 = cg_vu_absmax_(t1, b);
    }
    absmax_bits = cg_max32_(
        cg_vu_hmax_(cg_vu_max_(t0, t1)), cg_floats_put_scalar_(cg_at_(v, i), n - i, out + width * i, to));
    if (absmax_bits > limit) cg_floats_put_scalar_(v, i, out, to);
    return absmax_bits;
}
CG_VECTOR_FN_ uint32_t cg_copy_simd_(const float *v, size_t n, uint8_t *out) {
    return cg_floats_put_simd_(v, n, out, CG_TO_F32_);
}
CG_VECTOR_FN_ uint32_t cg_f16_encode_simd_(const float *v, size_t n, uint8_t *out) {
    return cg_floats_put_simd_(v, n, out, CG_TO_F16_);
}
CG_VECTOR_FN_ uint32_t cg_bf16_encode_simd_(const float *v, size_t n, uint8_t *out) {
    return cg_floats_put_simd_(v, n, out, CG_TO_BF16_);
}
#endif

/* src/core/kernels/levels.h */
/* levels: kernels that write sign bits and the symbols of a uniform grid

   Offers   sign_encode, levels_encode
   Needs    base, random, table, the vector layer
   Touches  nothing but its arguments */

/* sign_encode: bit i % 8 of out[i / 8] is 1 where v[i] < 0 (so 0 for -0 and NaN), bits after the last are 0. Adds
   |v[i]| to lanes[i % 16] unless lanes is NULL; to sum up a longer vector, all calls but the last have n % 16 == 0.
   Returns absmax bits; with lanes, SIMD versions may return less, but CG_INF_BITS_ or more just where they should. */
static uint32_t cg_sign_encode_scalar_(const float *v, size_t n, uint8_t *out, double *lanes) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        uint32_t m = cg_as_bits_(f) & CG_ABS_MASK_;
        absmax_bits = cg_max32_(absmax_bits, m);
        if (lanes) lanes[i % 16] += (double)cg_as_float_(m);
        if (i % 8 == 0) out[i / 8] = 0;
        out[i / 8] = (uint8_t)(out[i / 8] | (unsigned)(f < 0.0f) << i % 8);
    }
    return absmax_bits;
}
#if CG_VECTOR_
/* The first n / 32 * 32 values; returns how many. sums: adds to s, and leaves *absmax 0: a NaN or Inf shows in the sum
   of magnitudes, so that no maximum is needed beside it. */
CG_VECTOR_FN_ size_t cg_sign_encode32_(const float *v, size_t n, uint8_t *out, cg_vu_ *absmax, cg_vd_ *s, int sums) {
    cg_vu_ t0 = cg_vu_set_(0), t1 = t0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        cg_vu_ a = cg_vu_floats_(v, i), b = cg_vu_floats_(v, i + 8), c = cg_vu_floats_(v, i + 16),
               d = cg_vu_floats_(v, i + 24);
        cg_prefetch32_(v, i, CG_AHEAD_);
        cg_put32_(out + i / 8,
            cg_vb_mask_(
                cg_vb_narrow_signed_(cg_vu_negative_(a), cg_vu_negative_(b), cg_vu_negative_(c), cg_vu_negative_(d))));
        a = cg_vu_abs_(a);
        b = cg_vu_abs_(b);
        c = cg_vu_abs_(c);
        d = cg_vu_abs_(d);
        if (sums) {
            cg_lanes_add_(s, cg_vf_of_(a));
            cg_lanes_add_(s + 2, cg_vf_of_(b));
            cg_lanes_add_(s, cg_vf_of_(c));
            cg_lanes_add_(s + 2, cg_vf_of_(d));
        } else {
            t0 = cg_vu_max_(t0, cg_vu_max_(a, b));
            t1 = cg_vu_max_(t1, cg_vu_max_(c, d));
        }
    }
    *absmax = cg_vu_max_(t0, t1);
    return i;
}
CG_VECTOR_FN_ uint32_t cg_sign_encode_simd_(const float *v, size_t n, uint8_t *out, double *lanes) {
    cg_vu_ absmax;
    cg_vd_ s[4];
    uint32_t absmax_bits;
    size_t i;
    if (lanes) {
        double lane_total = 0.0;
        cg_lanes_load_(s, lanes);
        i = cg_sign_encode32_(v, n, out, &absmax, s, 1);
        cg_lanes_store_(lanes, s);
        for (int j = 0; j < 16; j++) lane_total += lanes[j];
        absmax_bits = lane_total < 1.7e308 ? 0 : CG_INF_BITS_; /* false for NaN as well */
    } else {
        i = cg_sign_encode32_(v, n, out, &absmax, NULL, 0);
        absmax_bits = cg_vu_hmax_(absmax);
    }
    return i < n ? cg_max32_(absmax_bits, cg_sign_encode_scalar_(cg_at_(v, i), n - i, out + i / 8, lanes))
                 : absmax_bits;
}
#endif

/* levels_encode: symbol = t rounded to nearest even + zero_symbol, kept within [0, max_symbol], where
   t = (v*prescale - encode_offset)*inv_step, each operation rounded, plus cg_noise_ if stochastic. Values of the grid
   keep |t| below 2^9, so that adding 1.5*2^23 rounds; others are clamped. An Inf or NaN gives any symbol. */
CG_INLINE_ uint8_t cg_level_encode_(const cg_levels_ *q, float v, float noise) {
    float t = cg_times_(cg_minus_(cg_times_(v, q->prescale), q->encode_offset), q->inv_step);
    int32_t level;
    if (q->stochastic) t = cg_plus_(t, noise);
    t = t < -1024.0f ? -1024.0f : t > 1024.0f ? 1024.0f : t;
    level = (int32_t)(cg_as_bits_(cg_plus_(t, 12582912.0f)) - 0x4b400000u) + q->zero_symbol;
    return (uint8_t)(level < 0 ? 0 : level > q->max_symbol ? q->max_symbol : level);
}
static void cg_levels_encode_scalar_(
    const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    for (size_t i = 0; i < n; i++)
        symbols[i] = cg_level_encode_(q, cg_load_(v, i), q->stochastic ? cg_noise_(key, position + (uint32_t)i) : 0.0f);
}
#if CG_VECTOR_
/* Levels of eight values with hashes h. prescale, subtract: whether these steps change anything. */
CG_VECTOR_FN_ cg_vu_ cg_levels_encode8_(
    cg_vf_ t, cg_vu_ h, const cg_levels_ *q, int stochastic, int prescale, int subtract) {
    if (prescale) t = cg_vf_mul_(t, cg_vf_set_(q->prescale));
    if (subtract) t = cg_vf_sub_(t, cg_vf_set_(q->encode_offset));
    t = cg_vf_mul_(t, cg_vf_set_(q->inv_step));
    if (stochastic) t = cg_vf_add_(t, cg_vf_mul_(cg_vf_int_(h), cg_vf_set_(2.3283064365386963e-10f)));
    return cg_vu_round_(t);
}
CG_VECTOR_FN_ size_t cg_levels_encode32_(const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n,
    uint8_t *symbols, int stochastic, int prescale, int subtract) {
    const cg_vu_ max_symbol = cg_vb_set_((unsigned)q->max_symbol);
    const int zero_symbol = q->zero_symbol;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        cg_vu_ h[4], a, b, c, d;
        h[0] = h[1] = h[2] = h[3] = cg_vu_set_(0);
        cg_prefetch32_(v, i, CG_CHUNK_); /* this chunk was measured before and is in L1; the next one is not */
        if (stochastic) cg_vu_noise_(key, position + (uint32_t)i, h);
        a = cg_levels_encode8_(cg_vf_load_(v, i), h[0], q, stochastic, prescale, subtract);
        b = cg_levels_encode8_(cg_vf_load_(v, i + 8), h[1], q, stochastic, prescale, subtract);
        c = cg_levels_encode8_(cg_vf_load_(v, i + 16), h[2], q, stochastic, prescale, subtract);
        d = cg_levels_encode8_(cg_vf_load_(v, i + 24), h[3], q, stochastic, prescale, subtract);
        cg_vb_put_(symbols + i, cg_vb_min_(cg_vb_narrow_add_(a, b, c, d, zero_symbol), max_symbol));
    }
    return i;
}
CG_VECTOR_FN_ void cg_levels_encode_simd_(
    const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    const int mode = (q->stochastic ? 3 : 0) + (q->prescale != 1.0f ? 2 : q->encode_offset != 0.0f ? 1 : 0);
    size_t head = cg_noise_head_(q->stochastic, position, n), i = 0;
    if (head) cg_levels_encode_scalar_(q, key, position, v, head, symbols);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    symbols += head;
    n -= head;
    switch (mode) {
    case 0: i = cg_levels_encode32_(q, key, position, v, n, symbols, 0, 0, 0); break;
    case 1: i = cg_levels_encode32_(q, key, position, v, n, symbols, 0, 0, 1); break;
    case 2: i = cg_levels_encode32_(q, key, position, v, n, symbols, 0, 1, 1); break;
    case 3: i = cg_levels_encode32_(q, key, position, v, n, symbols, 1, 0, 0); break;
    case 4: i = cg_levels_encode32_(q, key, position, v, n, symbols, 1, 0, 1); break;
    default: i = cg_levels_encode32_(q, key, position, v, n, symbols, 1, 1, 1);
    }
    if (i < n) cg_levels_encode_scalar_(q, key, position + (uint32_t)i, cg_at_(v, i), n - i, symbols + i);
}
#endif

/* src/core/kernels/pack.h */
/* pack: kernels that pack symbols of 1..7 bits, and unpack them

   Offers   pack, unpack
   Needs    base, table, the vector layer
   Touches  nothing but its arguments */

/* pack: symbols below 2^bits, bits = 1..7, as one string of bits, LSB first: eight of them fill `bits` bytes. Writes
   (n*bits + 7)/8 bytes; bits after the last symbol are 0. */
static void cg_pack_scalar_(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out) {
    for (size_t i = 0; i < n; i += 8) {
        uint64_t w = 0;
        unsigned many = (unsigned)cg_min_(8, n - i);
        for (unsigned j = 0; j < many; j++) w |= (uint64_t)symbols[i + j] << j * bits;
        for (unsigned j = 0; j < (many * bits + 7) / 8; j++) *out++ = (uint8_t)(w >> 8 * j);
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_pack_simd_(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out) {
    size_t i = 0;
    if (bits == 1)
        for (; i + 32 <= n; i += 32)
            cg_put32_(out + i / 8, cg_vb_mask_in_order_(cg_vu_shl_(cg_vu_load_(symbols + i), 7)));
    else i = cg_pack_most_(symbols, n, bits, out);
    if (i < n) cg_pack_scalar_(symbols + i, n - i, bits, out + i / 8 * bits);
}
#endif

/* unpack: the reverse of pack. Reads (n*bits + 7)/8 bytes, writes n symbols below 2^bits. */
static void cg_unpack_scalar_(const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols) {
    for (size_t i = 0; i < n; i += 8) {
        uint64_t w = 0;
        unsigned many = (unsigned)cg_min_(8, n - i);
        for (unsigned j = 0; j < (many * bits + 7) / 8; j++) w |= (uint64_t)*in++ << 8 * j;
        for (unsigned j = 0; j < many; j++) symbols[i + j] = (uint8_t)(w >> j * bits & ((1u << bits) - 1u));
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_unpack_simd_(const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols) {
    const size_t i = cg_unpack_most_(in, n, bits, symbols);
    if (i < n) cg_unpack_scalar_(in + i / 8 * bits, n - i, bits, symbols + i);
}
#endif

/* src/core/kernels/filter.h */
/* filter: kernels that select values by magnitude or by chance, and that count them

   Offers   filter, bernoulli, count_above; CG_SLACK_
   Needs    base, random, table, the vector layer, levels
   Touches  nothing but its arguments */

#define CG_SLACK_ 16u /* values beyond those selected that filter and bernoulli may write */

/* filter: in order, index first_index + i (modulo 2^32) and value of every v[i] whose magnitude bits reach
   threshold_bits, which is at most 2^31 (nothing reaches that); a NaN reaches every finite threshold. Returns how many.
   index and value have room for n + CG_SLACK_, and what follows the result is undefined. n <= CG_CHUNK_. */
static size_t cg_filter_scalar_(
    const float *v, size_t n, uint32_t threshold_bits, uint32_t first_index, uint32_t *index, float *value) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = cg_load_bits_(v, i);
        index[count] = first_index + (uint32_t)i;
        value[count] = cg_as_float_(u);
        count += (u & CG_ABS_MASK_) >= threshold_bits;
    }
    return count;
}
#if CG_VECTOR_
/* Which of 32 values (a bit each) have magnitude bits above threshold_minus_1, compared as signed. */
CG_VECTOR_FN_ uint64_t cg_filter_mask32_(const float *v, size_t i, cg_vu_ threshold_minus_1) {
    return cg_vb_mask_(cg_vb_narrow_signed_(cg_vu_gt_(cg_vu_abs_(cg_vu_floats_(v, i)), threshold_minus_1),
        cg_vu_gt_(cg_vu_abs_(cg_vu_floats_(v, i + 8)), threshold_minus_1),
        cg_vu_gt_(cg_vu_abs_(cg_vu_floats_(v, i + 16)), threshold_minus_1),
        cg_vu_gt_(cg_vu_abs_(cg_vu_floats_(v, i + 24)), threshold_minus_1)));
}
CG_VECTOR_FN_ size_t cg_filter_simd_(
    const float *v, size_t n, uint32_t threshold_bits, uint32_t first_index, uint32_t *index, float *value) {
    const cg_vu_ threshold_minus_1 = cg_vu_set_(threshold_bits - 1u);
    const uint64_t guard_bit = (uint64_t)1 << 63; /* keeps ctz defined for an empty mask */
    size_t count = 0, i = 0;
    for (; i + 64 <= n; i += 64) {
        const uintptr_t ahead = (uintptr_t)v + 4 * i + 8192; /* hardware prefetching stops at every page */
        uint64_t m;
        size_t many, j;
        for (unsigned line = 0; line < 256; line += 64) CG_PREFETCH_L2_((const void *)(ahead + line));
        m = cg_filter_mask32_(v, i, threshold_minus_1) | cg_filter_mask32_(v, i + 32, threshold_minus_1) << 32;
        many = (size_t)__builtin_popcountll(m);
        /* two are written without a branch: whether there are 0, 1 or 2 cannot be predicted */
        j = i + cg_ctz_(m | guard_bit);
        index[count] = first_index + (uint32_t)j;
        value[count] = cg_load_(v, j);
        m &= m - 1;
        j = i + cg_ctz_(m | guard_bit);
        index[count + 1] = first_index + (uint32_t)j;
        value[count + 1] = cg_load_(v, j);
        if (many > 2) {
            for (size_t c = 2; c < many; c++) {
                m &= m - 1;
                j = i + cg_ctz_(m);
                index[count + c] = first_index + (uint32_t)j;
                value[count + c] = cg_load_(v, j);
            }
        }
        count += many;
    }
    return count +
        cg_filter_scalar_(cg_at_(v, i), n - i, threshold_bits, first_index + (uint32_t)i, index + count, value + count);
}
#endif

/* The value that is sent for f, if it is selected. */
CG_INLINE_ float cg_bernoulli_value_(const cg_bernoulli_ *c, float f) {
    const uint32_t u = cg_as_bits_(f);
    return cg_as_float_(u & CG_ABS_MASK_) >= c->threshold
        ? f
        : cg_as_float_(cg_as_bits_(c->threshold) | (u & CG_SIGN_BIT_));
}
/* One value of bernoulli: writes at `count`, and returns count + 1 if v[i] is selected, else count. */
CG_INLINE_ size_t cg_bernoulli_one_(const cg_bernoulli_ *c, const float *v, size_t i, uint32_t first_index,
    uint32_t *index, float *value, size_t count) {
    const float f = cg_load_(v, i), magnitude = cg_as_float_(cg_as_bits_(f) & CG_ABS_MASK_);
    const float u = (float)(cg_hash32_(c->key, (first_index + (uint32_t)i) & 0xffffu) >> 8) * 5.9604644775390625e-8f;
    index[count] = first_index + (uint32_t)i;
    value[count] = cg_bernoulli_value_(c, f);
    return count + (u < cg_times_(cg_times_(magnitude, c->prescale), c->inv_threshold));
}
/* bernoulli: selects v[i] where u < (|v[i]|*prescale)*inv_threshold, each product rounded, with u = the 24 high bits of
   cg_hash32_(key, (first_index + i) % 2^16) over 2^24. The value is v[i] if its magnitude is at least threshold, else
   +-threshold with the sign of v[i]. A NaN is never selected. All n indices belong to the block of the key. Order,
   result and room as for filter. */
static size_t cg_bernoulli_scalar_(
    const cg_bernoulli_ *c, const float *v, size_t n, uint32_t first_index, uint32_t *index, float *value) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count = cg_bernoulli_one_(c, v, i, first_index, index, value, count);
    return count;
}
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_bernoulli8_(const cg_bernoulli_ *c, const float *v, size_t i, uint32_t first_index) {
    const cg_vf_ u = cg_vf_uniform_(cg_vu_hash_(c->key, (first_index + (uint32_t)i) & 0xffffu)),
                 probability = cg_vf_mul_(
                     cg_vf_mul_(cg_vf_abs_(cg_vf_load_(v, i)), cg_vf_set_(c->prescale)), cg_vf_set_(c->inv_threshold));
    return cg_vf_gt_(probability, u);
}
CG_VECTOR_FN_ size_t cg_bernoulli_simd_(
    const cg_bernoulli_ *c, const float *v, size_t n, uint32_t first_index, uint32_t *index, float *value) {
    size_t count = 0, i = 0;
    for (; i + 32 <= n && first_index % 8 == 0; i += 32) { /* eight positions do not cross the end of a block */
        uint32_t m = cg_vu_mask_(cg_bernoulli8_(c, v, i, first_index), cg_bernoulli8_(c, v, i + 8, first_index),
            cg_bernoulli8_(c, v, i + 16, first_index), cg_bernoulli8_(c, v, i + 24, first_index));
        for (; m; m &= m - 1) {
            const size_t j = i + cg_ctz_(m);
            index[count] = first_index + (uint32_t)j;
            value[count++] = cg_bernoulli_value_(c, cg_load_(v, j));
        }
    }
    for (; i < n; i++) count = cg_bernoulli_one_(c, v, i, first_index, index, value, count);
    return count;
}
#endif

/* count_above: adds to *above how many magnitude bits are larger than pivot, pivot < 2^31. Returns absmax bits. */
static uint32_t cg_count_above_scalar_(const float *v, size_t n, uint32_t pivot, size_t *above) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t m = cg_load_bits_(v, i) & CG_ABS_MASK_;
        absmax_bits = cg_max32_(absmax_bits, m);
        *above += m > pivot;
    }
    return absmax_bits;
}
#if CG_VECTOR_
CG_VECTOR_FN_ uint32_t cg_count_above_simd_(const float *v, size_t n, uint32_t pivot, size_t *above) {
    const cg_vu_ p = cg_vu_set_(pivot);
    cg_vu_ absmax = cg_vu_set_(0), gt = absmax;
    uint32_t g[8];
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const cg_vu_ a = cg_vu_abs_(cg_vu_floats_(v, i)), b = cg_vu_abs_(cg_vu_floats_(v, i + 8));
        absmax = cg_vu_max_(absmax, cg_vu_max_(a, b));
        gt = cg_vu_sub_(cg_vu_sub_(gt, cg_vu_gt_(a, p)), cg_vu_gt_(b, p));
    }
    cg_vu_store_(g, gt);
    for (int j = 0; j < 8; j++) *above += g[j];
    return cg_max32_(cg_vu_hmax_(absmax), cg_count_above_scalar_(cg_at_(v, i), n - i, pivot, above));
}
#endif

/* src/core/kernels/decode.h */
/* decode: kernels that turn levels, signs, f16 and bf16 into values

   Offers   levels_decode, sign_decode, f16_decode, bf16_decode, absmax16_bits; cg_f16_decode_ of one value
   Needs    base, table, the vector layer
   Touches  nothing but its arguments */

/* levels_decode: (decode_offset + (symbol - zero_symbol)*step)*postscale, each operation rounded, Inf made finite. A
   symbol above max_symbol counts as max_symbol. */
static void cg_levels_decode_scalar_(
    const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) {
        int32_t level = symbols[i] < q->max_symbol ? symbols[i] : q->max_symbol;
        cg_store_(out, i,
            cg_saturate_(cg_times_(
                cg_plus_(q->decode_offset, cg_times_((float)(level - q->zero_symbol), q->step)), q->postscale)));
    }
}
#if CG_VECTOR_
/* usual: postscale is 1, nothing can overflow then. symmetric: zero_symbol is not 0, decode_offset is 0 then. */
CG_VECTOR_FN_ size_t cg_levels_decode16_(
    const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int non_temporal, int usual, int symmetric) {
    const cg_vf_ decode_offset = cg_vf_set_(q->decode_offset), step = cg_vf_set_(q->step),
                 postscale = cg_vf_set_(q->postscale);
    const cg_vu_ max_symbol = cg_vu_set_((uint32_t)q->max_symbol), zero_symbol = cg_vu_set_((uint32_t)q->zero_symbol);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        CG_UNROLL_
        for (size_t j = 0; j < 16; j += 8) {
            const cg_vu_ s = cg_vu_min_(cg_vu_bytes_(symbols + i + j), max_symbol);
            cg_vf_ f = cg_vf_mul_(cg_vf_int_(symmetric ? cg_vu_sub_(s, zero_symbol) : s), step);
            if (!usual || !symmetric) f = cg_vf_add_(decode_offset, f);
            if (!usual) f = cg_vf_finite_(cg_vf_mul_(f, postscale));
            cg_vf_stream_(out, i + j, f, non_temporal);
        }
    }
    return i;
}
CG_VECTOR_FN_ void cg_levels_decode_simd_(
    const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    size_t i = q->zero_symbol  ? q->postscale == 1.0f ? cg_levels_decode16_(q, symbols, n, out, non_temporal, 1, 1)
                                                      : cg_levels_decode16_(q, symbols, n, out, non_temporal, 0, 1)
         : q->postscale == 1.0f ? cg_levels_decode16_(q, symbols, n, out, non_temporal, 1, 0)
                               : cg_levels_decode16_(q, symbols, n, out, non_temporal, 0, 0);
    if (i < n) cg_levels_decode_scalar_(q, symbols + i, n - i, cg_at_mut_(out, i), 0);
}
#endif

/* sign_decode: -scale where bit i % 8 of in[i / 8] is 1, else scale. */
static void cg_sign_decode_scalar_(const uint8_t *in, size_t n, float scale, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, in[i / 8] >> i % 8 & 1 ? -scale : scale);
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_sign_decode_simd_(const uint8_t *in, size_t n, float scale, float *out, int non_temporal) {
    const cg_vu_ plus = cg_vu_set_(cg_as_bits_(scale));
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const cg_vu_ w = cg_vu_set_(cg_get32_(in + i / 8));
        cg_vf_stream_(out, i, cg_vf_of_(cg_vu_xor_(cg_vu_signs_(w, 0), plus)), non_temporal);
        cg_vf_stream_(out, i + 8, cg_vf_of_(cg_vu_xor_(cg_vu_signs_(w, 8), plus)), non_temporal);
        cg_vf_stream_(out, i + 16, cg_vf_of_(cg_vu_xor_(cg_vu_signs_(w, 16), plus)), non_temporal);
        cg_vf_stream_(out, i + 24, cg_vf_of_(cg_vu_xor_(cg_vu_signs_(w, 24), plus)), non_temporal);
    }
    if (i < n) cg_sign_decode_scalar_(in + i / 8, n - i, scale, cg_at_mut_(out, i), 0);
}
#endif

/* f16_decode: exact; Inf stays, a NaN becomes quiet. */
CG_INLINE_ float cg_f16_decode_(uint32_t h) {
    uint32_t sign = (h & 0x8000u) << 16, m = h & 0x7fffu;
    if (m >= 0x7c00u) return cg_as_float_(sign | (m << 13) | 0x7f800000u | (m > 0x7c00u ? 0x400000u : 0u));
    if (m < 0x400u) return cg_as_float_(sign | cg_as_bits_((float)m * 5.9604644775390625e-8f));
    return cg_as_float_(sign | ((m << 13) + 0x38000000u));
}
static void cg_f16_decode_scalar_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, cg_f16_decode_(cg_get16_(in + 2 * i)));
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_f16_decode_simd_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        cg_vf_stream_(out, i, cg_vf_f16_(in + 2 * i), non_temporal);
        cg_vf_stream_(out, i + 8, cg_vf_f16_(in + 2 * i + 16), non_temporal);
    }
    if (i < n) cg_f16_decode_scalar_(in + 2 * i, n - i, cg_at_mut_(out, i), 0);
}
#endif

/* bf16_decode: exact; the 16 bits are the upper half of an f32. */
static void cg_bf16_decode_scalar_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, cg_as_float_((uint32_t)cg_get16_(in + 2 * i) << 16));
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_bf16_decode_simd_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        cg_vf_stream_(out, i, cg_vf_of_(cg_vu_shl_(cg_vu_u16_(in + 2 * i), 16)), non_temporal);
        cg_vf_stream_(out, i + 8, cg_vf_of_(cg_vu_shl_(cg_vu_u16_(in + 2 * i + 16), 16)), non_temporal);
    }
    if (i < n) cg_bf16_decode_scalar_(in + 2 * i, n - i, cg_at_mut_(out, i), 0);
}
#endif

/* absmax16_bits: the largest of n 16-bit words of the wire with the top bit cleared: the largest magnitude of 16-bit
   floats as bits, for the finite check of a packet. */
static uint32_t cg_absmax16_bits_scalar_(const uint8_t *in, size_t n) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) absmax_bits = cg_max32_(absmax_bits, cg_get16_(in + 2 * i) & 0x7fffu);
    return absmax_bits;
}
#if CG_VECTOR_
CG_VECTOR_FN_ uint32_t cg_absmax16_bits_simd_(const uint8_t *in, size_t n) {
    const cg_vu_ low = cg_vu_set_(0x7fff7fffu);
    cg_vu_ t0 = cg_vu_set_(0), t1 = t0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        t0 = cg_vu_max16_(t0, cg_vu_and_(cg_vu_load_(in + 2 * i), low));
        t1 = cg_vu_max16_(t1, cg_vu_and_(cg_vu_load_(in + 2 * i + 32), low));
    }
    t0 = cg_vu_max16_(t0, t1);
    t0 = cg_vu_max_(cg_vu_shr_(t0, 16), cg_vu_and_(t0, cg_vu_set_(0xffff)));
    return cg_max32_(cg_vu_hmax_(t0), cg_absmax16_bits_scalar_(in + 2 * i, n - i));
}
#endif

/* src/core/kernels/axpby.h */
/* axpby: kernels that add a vector to another, that move one, and the packet checksum

   Offers   axpby, move_zero, stream_fence, checksum
   Needs    base, table, the vector layer
   Touches  nothing but its arguments */

/* axpby: y = beta*y + alpha*x, each product and the sum rounded. y is not read if beta is 0; beta 1 is no product, and
   alpha 1 with beta 0 copies bits. non_temporal counts only if beta is 0. */
static void cg_axpby_scalar_(const float *x, size_t n, float alpha, float beta, float *y, int non_temporal) {
    (void)non_temporal;
    if (beta == 0.0f && alpha == 1.0f) memcpy(y, x, 4 * n);
    else if (beta == 0.0f)
        for (size_t i = 0; i < n; i++) cg_store_(y, i, cg_times_(alpha, cg_load_(x, i)));
    else if (beta == 1.0f)
        for (size_t i = 0; i < n; i++) cg_store_(y, i, cg_plus_(cg_load_(y, i), cg_times_(alpha, cg_load_(x, i))));
    else
        for (size_t i = 0; i < n; i++)
            cg_store_(y, i, cg_plus_(cg_times_(beta, cg_load_(y, i)), cg_times_(alpha, cg_load_(x, i))));
}
#if CG_VECTOR_
/* The first n / 16 * 16 values; returns how many. beta is 0 (y is not read), 1 or any other, told by which. */
CG_VECTOR_FN_ size_t cg_axpby16_(
    const float *x, size_t n, float alpha, float beta, float *y, int non_temporal, int which) {
    const cg_vf_ a = cg_vf_set_(alpha), b = cg_vf_set_(beta);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        CG_UNROLL_
        for (size_t l = 0; l < 16; l += 8) {
            const size_t j = i + l;
            cg_vf_ f = cg_vf_mul_(a, cg_vf_load_(x, j));
            if (which == 1) f = cg_vf_add_(cg_vf_load_(y, j), f);
            if (which == 2) f = cg_vf_add_(cg_vf_mul_(b, cg_vf_load_(y, j)), f);
            cg_vf_stream_(y, j, f, non_temporal);
        }
    }
    return i;
}
CG_VECTOR_FN_ void cg_axpby_simd_(const float *x, size_t n, float alpha, float beta, float *y, int non_temporal) {
    size_t i = 0;
    if (non_temporal && beta == 0.0f) i = cg_axpby16_(x, n, alpha, beta, y, 1, 0);
    else if (beta == 1.0f) i = cg_axpby16_(x, n, alpha, beta, y, 0, 1);
    else if (beta != 0.0f) i = cg_axpby16_(x, n, alpha, beta, y, 0, 2);
    else if (alpha != 1.0f) i = cg_axpby16_(x, n, alpha, beta, y, 0, 0);
    if (i < n) cg_axpby_scalar_(cg_at_(x, i), n - i, alpha, beta, cg_at_mut_(y, i), 0);
}
#endif

/* move_zero: y = from, then from = 0; they do not overlap. In one pass the zeros cost nothing, as the core waits for
   the non-temporal stores anyway; a memset afterwards would cost its own time. */
static void cg_move_zero_scalar_(float *from, size_t n, float *y, int non_temporal) {
    (void)non_temporal;
    memcpy(y, from, 4 * n);
    memset(from, 0, 4 * n);
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_move_zero_simd_(float *from, size_t n, float *y, int non_temporal) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const cg_vf_ a = cg_vf_load_(from, i), b = cg_vf_load_(from, i + 8);
        cg_vf_store_(from, i, cg_vf_set_(0.0f));
        cg_vf_store_(from, i + 8, cg_vf_set_(0.0f));
        cg_vf_stream_(y, i, a, non_temporal);
        cg_vf_stream_(y, i + 8, b, non_temporal);
    }
    cg_move_zero_scalar_(cg_at_mut_(from, i), n - i, cg_at_mut_(y, i), 0);
}
#endif

/* stream_fence: after the last kernel with non_temporal, before another thread may read the output. */
static void cg_stream_fence_scalar_(void) {}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_stream_fence_simd_(void) { cg_stream_end_(); }
#endif

/* checksum: for each little-endian u32 word, a += word, b += a, modulo 2^64; counts the words. */
static void cg_checksum_scalar_(cg_checksum_ *sum, const uint8_t *words, size_t word_count) {
    uint64_t a = sum->a, b = sum->b;
    for (size_t i = 0; i < word_count; i++) {
        a += cg_get32_(words + 4 * i);
        b += a;
    }
    sum->a = a;
    sum->b = b;
    sum->words += word_count;
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_checksum_simd_(cg_checksum_ *sum, const uint8_t *words, size_t word_count) {
    cg_vq_ s[2], t[2];
    uint64_t a[8] = { 0 }, b[8], sa = 0, sb = 0;
    const size_t rows = word_count / 8;
    memcpy(&s[0], a, 32);
    s[1] = t[0] = t[1] = s[0];
    for (size_t i = 0; i < rows; i += 4) {
        const size_t many = cg_min_(4, rows - i);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) {
            if (j >= many) break;
            cg_vq_add_words_(s, words + 32 * (i + j));
            t[0] = cg_vq_add_(t[0], s[0]);
            t[1] = cg_vq_add_(t[1], s[1]);
        }
    }
    memcpy(a, &s[0], 32);
    memcpy(a + 4, &s[1], 32);
    memcpy(b, &t[0], 32);
    memcpy(b + 4, &t[1], 32);
    for (unsigned j = 0; j < 8; j++) { /* of each row of eight words a lane holds one */
        sa += a[j];
        sb += 8 * b[j] - CG_WORD_OF_LANE_(j) * a[j];
    }
    sum->b += 8 * (uint64_t)rows * sum->a + sb;
    sum->a += sa;
    sum->words += 8 * (uint64_t)rows;
    cg_checksum_scalar_(sum, words + 32 * rows, word_count - 8 * rows);
}
#endif

/* src/core/kernels/rotate.h */
/* rotate: the kernel of the randomized Hadamard transform of 1024 values

   Offers   rotate_from
   Needs    base, table, the vector layer
   Touches  nothing but its arguments */

/* rotate_from: `rounds` (1 to 3) times random sign flips, then the Hadamard butterfly, over CG_ROTATE_BLOCK_ values;
   the inverse runs backwards. Bit i % 32 of flips[32*round + i/32] negates v[i] in that round. One multiplication by a
   power of two at the end makes it orthonormal. Within a butterfly the strides come in the order 4, 1, 2, 8, 16, ...,
   512, which suits vectors of eight and of four; as it decides roundings, it is part of the wire format. What overflows
   on the way may end as a NaN of any sign and payload: callers scale down before. from may be v, else they do not
   overlap. */
CG_INLINE_ float cg_rotate_scale_(int rounds) {
    return rounds == 1 ? 0.03125f : rounds == 2 ? 0.0009765625f : 0.000030517578125f; /* 2^-5, 2^-10, 2^-15 */
}
static void cg_flip_scalar_(float *v, const uint32_t *flips) {
    for (size_t i = 0; i < CG_ROTATE_BLOCK_; i++)
        cg_store_(v, i, cg_as_float_(cg_load_bits_(v, i) ^ (flips[i / 32] >> i % 32 & 1u) << 31));
}
CG_INLINE_ void cg_butterfly4_(
    float *v, size_t i, size_t s) { /* strides s, then 2s, of the four values i, i + s, ... */
    float a = cg_load_(v, i), b = cg_load_(v, i + s), c = cg_load_(v, i + 2 * s), d = cg_load_(v, i + 3 * s);
    float ab = cg_plus_(a, b), ba = cg_minus_(a, b), cd = cg_plus_(c, d), dc = cg_minus_(c, d);
    cg_store_(v, i, cg_plus_(ab, cd));
    cg_store_(v, i + s, cg_plus_(ba, dc));
    cg_store_(v, i + 2 * s, cg_minus_(ab, cd));
    cg_store_(v, i + 3 * s, cg_minus_(ba, dc));
}
static void cg_hadamard_scalar_(float *v) {
    for (size_t i = 0; i < CG_ROTATE_BLOCK_; i += 8) {
        for (size_t j = i; j < i + 4; j++) {
            float a = cg_load_(v, j), b = cg_load_(v, j + 4);
            cg_store_(v, j, cg_plus_(a, b));
            cg_store_(v, j + 4, cg_minus_(a, b));
        }
        cg_butterfly4_(v, i, 1);
        cg_butterfly4_(v, i + 4, 1);
    }
    for (size_t s = 8; s < 512; s *= 4)
        for (size_t i = 0; i < CG_ROTATE_BLOCK_; i += 4 * s)
            for (size_t j = i; j < i + s; j++) cg_butterfly4_(v, j, s);
    for (size_t i = 0; i < 512; i++) {
        float a = cg_load_(v, i), b = cg_load_(v, i + 512);
        cg_store_(v, i, cg_plus_(a, b));
        cg_store_(v, i + 512, cg_minus_(a, b));
    }
}
static void cg_rotate_from_scalar_(const float *from, float *v, const uint32_t *flips, int rounds, int inverse) {
    const float scale = cg_rotate_scale_(rounds);
    if (from != v) memcpy(v, from, 4 * CG_ROTATE_BLOCK_);
    for (int r = 0; r < rounds; r++) {
        if (!inverse) cg_flip_scalar_(v, flips + 32 * r);
        cg_hadamard_scalar_(v);
        if (inverse) cg_flip_scalar_(v, flips + 32 * (rounds - 1 - r));
    }
    for (size_t i = 0; i < CG_ROTATE_BLOCK_; i++) cg_store_(v, i, cg_times_(cg_load_(v, i), scale));
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_butterfly_(cg_vf_ *a, cg_vf_ *b) {
    const cg_vf_ d = cg_vf_sub_(*a, *b);
    *a = cg_vf_add_(*a, *b);
    *b = d;
}
CG_VECTOR_FN_ void cg_butterfly8_(cg_vf_ *x) { /* three strides between eight vectors */
    cg_butterfly_(x, x + 1);
    cg_butterfly_(x + 2, x + 3);
    cg_butterfly_(x + 4, x + 5);
    cg_butterfly_(x + 6, x + 7);
    cg_butterfly_(x, x + 2);
    cg_butterfly_(x + 1, x + 3);
    cg_butterfly_(x + 4, x + 6);
    cg_butterfly_(x + 5, x + 7);
    cg_butterfly_(x, x + 4);
    cg_butterfly_(x + 1, x + 5);
    cg_butterfly_(x + 2, x + 6);
    cg_butterfly_(x + 3, x + 7);
}
/* Strides up to 32 of the whole block, 64 values at a time, from `from` to v; prefetches 512 values. */
CG_VECTOR_FN_ void cg_hadamard_short_(
    const float *from, float *v, const uint8_t *flips, const float *prefetch, int flip) {
    for (size_t i = 0; i < CG_ROTATE_BLOCK_; i += 64) {
        cg_vf_ x[8];
        cg_prefetch32_(prefetch, i / 2, 0);
        CG_UNROLL_
        for (size_t j = 0; j < 8; j++) x[j] = cg_vf_hadamard_(from, i + 8 * j, flips, flip);
        cg_butterfly8_(x);
        CG_UNROLL_
        for (size_t j = 0; j < 8; j++) cg_vf_store_(v, i + 8 * j, x[j]);
    }
}
/* strides 64, 128, 256: eight vectors, 64 values apart */
CG_VECTOR_FN_ void cg_hadamard_rows_(const float *v, size_t i, cg_vf_ *x) {
    CG_UNROLL_
    for (size_t j = 0; j < 8; j++) x[j] = cg_vf_load_(v, i + 64 * j);
    cg_butterfly8_(x);
}
/* Strides 64 to 512, then flips and scaling where asked for. Sixteen vectors and a spare do not fit the registers of
   AVX2: the first eight are stored meanwhile. */
CG_VECTOR_FN_ void cg_hadamard_long_(
    float *v, const uint8_t *flips, float scale_factor, const float *prefetch, int flip, int rescale) {
    const cg_vf_ scale = cg_vf_set_(scale_factor);
    for (size_t i = 0; i < 64; i += 8) {
        cg_vf_ x[8];
        cg_prefetch32_(prefetch, 8 * i, 0);
        cg_prefetch32_(prefetch, 8 * i, 32);
        cg_hadamard_rows_(v, i, x);
        CG_UNROLL_
        for (size_t j = 0; j < 8; j++) cg_vf_store_(v, i + 64 * j, x[j]);
        cg_hadamard_rows_(v, i + 512, x);
        CG_UNROLL_
        for (size_t j = 0; j < 8; j++) {
            const size_t at = i + 64 * j;
            cg_vf_ a = cg_vf_load_(v, at), b = x[j];
            cg_butterfly_(&a, &b);
            if (flip) {
                a = cg_vf_flip_(a, flips[at / 8]);
                b = cg_vf_flip_(b, flips[at / 8 + 64]);
            }
            cg_vf_store_(v, at, rescale ? cg_vf_mul_(a, scale) : a);
            cg_vf_store_(v, at + 512, rescale ? cg_vf_mul_(b, scale) : b);
        }
    }
}
/* While a block is rotated the next one (the 1024 values after `from`) is prefetched, half of it in each pass of the
   first round. */
CG_VECTOR_FN_ void cg_rotate_from_simd_(const float *from, float *v, const uint32_t *flips, int rounds, int inverse) {
    const float scale = cg_rotate_scale_(rounds), *prefetch = from == v ? v : cg_at_(from, CG_ROTATE_BLOCK_);
    const uint8_t *bits = (const uint8_t *)flips;
    if (inverse) cg_hadamard_short_(from, v, NULL, prefetch, 0);
    else cg_hadamard_short_(from, v, bits, prefetch, 1);
    prefetch = cg_at_(prefetch, 512);
    for (int r = 1; r < rounds; r++) {
        cg_hadamard_long_(v, NULL, 1.0f, prefetch, 0, 0);
        cg_hadamard_short_(v, v, bits + 128 * (inverse ? rounds - r : r), v, 1);
        prefetch = v;
    }
    if (inverse) cg_hadamard_long_(v, bits, scale, prefetch, 1, 1);
    else cg_hadamard_long_(v, NULL, scale, prefetch, 0, 1);
}
#endif

/* src/core/kernels/sums.h */
/* sums: kernels that sum in f64 in an order that all ISAs share, and the axpby of error feedback

   Offers   lane_sum with CG_SUM_*, axpby_fading with CG_AXPBY_*; cg_lanes_reduce_
   Needs    base, table, the vector layer, axpby
   Touches  nothing but its arguments
   Other headers may use: cg_axpby_fading_, cg_axpby_fading_energy_x_, cg_axpby_fading_energy_y_,
   cg_axpy_faded_energy_y_ */

/* The term of a value in lane_sum. */
enum {
    CG_SUM_ABS_,         /* its magnitude */
    CG_SUM_SQUARES_,     /* its square */
    CG_SUM_NEGATIVE_,    /* itself if it is below 0, else +0 */
    CG_SUM_NONNEGATIVE_, /* itself if it is at least 0 (-0 is), else +0; a NaN is +0 in both */
    CG_SUM_VALUES_       /* itself */
};
/* One number of 16 lanes, which are overwritten: halves are added until one lane is left. Not inlined: of two of them
   side by side clang 14 makes wrong code for WebAssembly. */
CG_NOINLINE_ double cg_lanes_reduce_(double *lanes) {
    for (int w = 8; w; w /= 2)
        for (int i = 0; i < w; i++) lanes[i] += lanes[i + w];
    return lanes[0];
}
/* lane_sum: adds the term of v[i] to lanes[i % 16] in f64; to sum up a longer vector, all calls but the last have
   n % 16 == 0. */
static void cg_lane_sum_scalar_(const float *v, size_t n, int term, double *lanes) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = cg_load_bits_(v, i);
        const double d = (double)cg_as_float_(u);
        double *lane = lanes + i % 16;
        switch (term) {
        case CG_SUM_ABS_: *lane += (double)cg_as_float_(u & CG_ABS_MASK_); break;
        /* the product is exact: fused or not, the sum is the same */
        case CG_SUM_SQUARES_: *lane += d * d; break;
        /* f < 0 and f >= 0 by bits: of comparisons clang makes a minimum (AArch64), which differs for -0 and NaN */
        case CG_SUM_NEGATIVE_: *lane += (double)cg_as_float_(u - 0x80000001u < CG_INF_BITS_ ? u : 0u); break;
        case CG_SUM_NONNEGATIVE_: *lane += (double)cg_as_float_(u <= CG_INF_BITS_ || u == CG_SIGN_BIT_ ? u : 0u); break;
        default: *lane += d;
        }
    }
}
#if CG_VECTOR_
/* terms of four values */
CG_VECTOR_FN_ cg_vd_ cg_lane_sum_term_(const float *v, size_t i, int term) {
    const cg_vd_ d = cg_vd_floats_(v, i);
    switch (term) {
    case CG_SUM_ABS_: return cg_vd_abs_(d);
    case CG_SUM_SQUARES_: return cg_vd_mul_(d, d);
    case CG_SUM_NEGATIVE_: return cg_vd_negative_(d);
    case CG_SUM_NONNEGATIVE_: return cg_vd_nonnegative_(d);
    default: return d;
    }
}
CG_VECTOR_FN_ void cg_lane_sum_terms_(cg_vd_ *s, const float *v, size_t i, int term) { /* of 16 values */
    s[0] = cg_vd_add_(s[0], cg_lane_sum_term_(v, i, term));
    s[1] = cg_vd_add_(s[1], cg_lane_sum_term_(v, i + 4, term));
    s[2] = cg_vd_add_(s[2], cg_lane_sum_term_(v, i + 8, term));
    s[3] = cg_vd_add_(s[3], cg_lane_sum_term_(v, i + 12, term));
}
CG_VECTOR_FN_ size_t cg_lane_sum16_(const float *v, size_t n, double *lanes, int term) {
    cg_vd_ s[4];
    size_t i = 0;
    cg_lanes_load_(s, lanes);
    for (; i + 16 <= n; i += 16) {
        CG_PREFETCH_(cg_at_(v, i + CG_AHEAD_));
        cg_lane_sum_terms_(s, v, i, term);
    }
    cg_lanes_store_(lanes, s);
    return i;
}
CG_VECTOR_FN_ void cg_lane_sum_simd_(const float *v, size_t n, int term, double *lanes) {
    size_t i;
    switch (term) {
    case CG_SUM_ABS_: i = cg_lane_sum16_(v, n, lanes, CG_SUM_ABS_); break;
    case CG_SUM_SQUARES_: i = cg_lane_sum16_(v, n, lanes, CG_SUM_SQUARES_); break;
    case CG_SUM_NEGATIVE_: i = cg_lane_sum16_(v, n, lanes, CG_SUM_NEGATIVE_); break;
    case CG_SUM_NONNEGATIVE_: i = cg_lane_sum16_(v, n, lanes, CG_SUM_NONNEGATIVE_); break;
    default: i = cg_lane_sum16_(v, n, lanes, CG_SUM_VALUES_);
    }
    if (i < n) cg_lane_sum_scalar_(cg_at_(v, i), n - i, term, lanes);
}
#endif

/* Modes of axpby_fading: which product fades (cg_faded_: below 2^-100 it is 0), and which squares are summed. */
enum {
    CG_AXPBY_NO_SQUARES_, /* beta*y fades unless beta is 1; lanes may be NULL */
    CG_AXPBY_SQUARES_Y_,  /* the same, and adds squares of the new y to lanes, as lane_sum does */
    CG_AXPBY_SQUARES_X_,  /* the same, with squares of x; x has just been made, and is not prefetched */
    CG_AXPBY_FADE_X_      /* beta counts as 1, alpha*x fades, and squares of the new y are added to lanes */
};
/* axpby_fading: y = beta*y + alpha*x as axpby has it, but that one product fades: rounding would keep decaying memory
   in denormals, which are slow, for ever. x may be y. */
static void cg_axpby_fading_scalar_(
    const float *x, size_t n, float alpha, float beta, float *y, int mode, double *lanes) {
    if (mode == CG_AXPBY_FADE_X_)
        for (size_t i = 0; i < n; i++)
            cg_store_(y, i, cg_plus_(cg_load_(y, i), cg_faded_(cg_times_(alpha, cg_load_(x, i)))));
    else if (beta == 0.0f || beta == 1.0f) cg_axpby_scalar_(x, n, alpha, beta, y, 0);
    else
        for (size_t i = 0; i < n; i++)
            cg_store_(y, i, cg_plus_(cg_faded_(cg_times_(beta, cg_load_(y, i))), cg_times_(alpha, cg_load_(x, i))));
    if (mode) cg_lane_sum_scalar_(mode == CG_AXPBY_SQUARES_X_ ? x : y, n, CG_SUM_SQUARES_, lanes);
}
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vf_ cg_fade8_(cg_vf_ v) {
    const cg_vu_ u = cg_vu_of_(v);
    return cg_vf_of_(cg_vu_and_(u, cg_vu_gt_(cg_vu_abs_(u), cg_vu_set_(CG_FADE_BITS_ - 1))));
}
CG_VECTOR_FN_ cg_vf_ cg_axpby_fading8_(cg_vf_ x, cg_vf_ a, cg_vf_ b, cg_vf_ y, int mode, int beta_is_one) {
    const cg_vf_ ax = cg_vf_mul_(a, x);
    return cg_vf_add_(beta_is_one ? y : cg_fade8_(cg_vf_mul_(b, y)), mode == CG_AXPBY_FADE_X_ ? cg_fade8_(ax) : ax);
}
CG_VECTOR_FN_ size_t cg_axpby_fading16_(
    const float *x, size_t n, float alpha, float beta, float *y, double *lanes, int mode, int beta_is_one) {
    const cg_vf_ a = cg_vf_set_(alpha), b = cg_vf_set_(beta);
    cg_vd_ s[4];
    size_t i = 0;
    if (mode) cg_lanes_load_(s, lanes);
    for (; i + 16 <= n; i += 16) {
        const cg_vf_ x0 = cg_vf_load_(x, i), x1 = cg_vf_load_(x, i + 8);
        if (mode != CG_AXPBY_SQUARES_X_) CG_PREFETCH_(cg_at_(x, i + CG_PREFETCH_DISTANCE_));
        CG_PREFETCH_WRITE_(cg_at_(y, i + CG_PREFETCH_DISTANCE_));
        cg_vf_store_(y, i, cg_axpby_fading8_(x0, a, b, cg_vf_load_(y, i), mode, beta_is_one));
        cg_vf_store_(y, i + 8, cg_axpby_fading8_(x1, a, b, cg_vf_load_(y, i + 8), mode, beta_is_one));
        if (mode) cg_lane_sum_terms_(s, mode == CG_AXPBY_SQUARES_X_ ? x : y, i, CG_SUM_SQUARES_);
    }
    if (mode) cg_lanes_store_(lanes, s);
    return i;
}
CG_VECTOR_FN_ void cg_axpby_fading_simd_(
    const float *x, size_t n, float alpha, float beta, float *y, int mode, double *lanes) {
    size_t i = 0;
    if (mode != CG_AXPBY_FADE_X_ && beta == 0.0f) { /* y is not read: 0*y + -0 would be +0 */
        cg_axpby_simd_(x, n, alpha, beta, y, 0);
        if (mode) cg_lane_sum_simd_(mode == CG_AXPBY_SQUARES_X_ ? x : y, n, CG_SUM_SQUARES_, lanes);
        return;
    }
#  define CG_CASE_(mode, one) \
  case 2 * (mode) + (one): i = cg_axpby_fading16_(x, n, alpha, beta, y, lanes, mode, one); break;
    switch (2 * mode + (mode == CG_AXPBY_FADE_X_ || beta == 1.0f)) {
        CG_CASE_(CG_AXPBY_NO_SQUARES_, 0)
        CG_CASE_(CG_AXPBY_NO_SQUARES_, 1)
        CG_CASE_(CG_AXPBY_SQUARES_Y_, 0)
        CG_CASE_(CG_AXPBY_SQUARES_Y_, 1)
        CG_CASE_(CG_AXPBY_SQUARES_X_, 0)
        CG_CASE_(CG_AXPBY_SQUARES_X_, 1)
        CG_CASE_(CG_AXPBY_FADE_X_, 1)
    }
#  undef CG_CASE_
    if (i < n) cg_axpby_fading_scalar_(cg_at_(x, i), n - i, alpha, beta, cg_at_mut_(y, i), mode, lanes);
}
#endif

/* axpby_fading for other headers; x and y may have any alignment. Without squares y may be x itself. */
CG_OFFERED_ void cg_axpby_fading_(
    const cg_kernels_ *kernels, const float *x, size_t n, float alpha, float beta, float *y) {
    CG_KERNEL_(kernels, axpby_fading(x, n, alpha, beta, y, CG_AXPBY_NO_SQUARES_, NULL));
}
/* The same; returns the sum of squares of the new y. */
CG_OFFERED_ double cg_axpby_fading_energy_y_(
    const cg_kernels_ *kernels, const float *x, size_t n, float alpha, float beta, float *y) {
    double lanes[16] = { 0.0 };
    CG_KERNEL_(kernels, axpby_fading(x, n, alpha, beta, y, CG_AXPBY_SQUARES_Y_, lanes));
    return cg_lanes_reduce_(lanes);
}
/* The same; returns the sum of squares of x, which should be in the cache: it is not prefetched. */
CG_OFFERED_ double cg_axpby_fading_energy_x_(
    const cg_kernels_ *kernels, const float *x, size_t n, float alpha, float beta, float *y) {
    double lanes[16] = { 0.0 };
    CG_KERNEL_(kernels, axpby_fading(x, n, alpha, beta, y, CG_AXPBY_SQUARES_X_, lanes));
    return cg_lanes_reduce_(lanes);
}
/* y = y + alpha*x, where alpha*x counts as 0 below 2^-100; returns the sum of squares of the new y. */
CG_OFFERED_ double cg_axpy_faded_energy_y_(
    const cg_kernels_ *kernels, const float *x, size_t n, float alpha, float *y) {
    double lanes[16] = { 0.0 };
    CG_KERNEL_(kernels, axpby_fading(x, n, alpha, 1.0f, y, CG_AXPBY_FADE_X_, lanes));
    return cg_lanes_reduce_(lanes);
}

/* src/core/kernels/lookup.h */
/* lookup: kernels that find the symbol of a value by thresholds, and the value of a symbol in a table

   Offers   bucketize, nf4_search, table_decode
   Needs    base, table, the vector layer, levels, sums
   Touches  nothing but its arguments */

/* bucketize: the symbol is how many of the limit_count ascending limits t = |v|*inv_scale is above (so a tie goes to
   the lower symbol, and a NaN to 0), with sign_bit set where v < 0. With lanes, centroid[symbol without sign]*|v| is
   added to lanes[i % 16]; the product of two f32 is exact in f64. */
static void cg_bucketize_scalar_(
    const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols, const float *centroid, double *lanes) {
    const cg_bucketizer_ q = *g; /* a copy: symbols cannot alias it */
    for (size_t i = 0; i < n; i++) {
        const float f = cg_load_(v, i), magnitude = cg_as_float_(cg_as_bits_(f) & CG_ABS_MASK_),
                    t = cg_times_(magnitude, q.inv_scale);
        unsigned symbol = 0;
        for (int32_t j = 0; j < q.limit_count; j++) symbol += t > q.limit[j];
        symbols[i] = (uint8_t)(symbol | (f < 0.0f ? q.sign_bit : 0u));
        if (lanes) lanes[i % 16] += (double)centroid[symbol] * (double)magnitude;
    }
}
/* Depth of a search tree for so many limits, 0..7. */
CG_INLINE_ int cg_search_tree_depth_(int32_t count) { return count < 1 ? 0 : count < 2 ? 1 : count < 4 ? 2 : 3; }
/* limit[7]: those of g, then Inf, above which nothing is. */
CG_INLINE_ void cg_limits_pad_(const cg_bucketizer_ *g, float *limit) {
    const int32_t all = (1 << cg_search_tree_depth_(g->limit_count)) - 1;
    for (int32_t j = 0; j < 7; j++) limit[j] = j < g->limit_count && j < all ? g->limit[j] : cg_as_float_(CG_INF_BITS_);
}
#if CG_VECTOR_
/* A tree search: the index of the node so far, among those of its depth, chooses the next limit from a table.
   Comparisons give 0 or -1, so that what is accumulated is minus the index; its low bits are looked at. */
typedef struct cg_search_tree_ {
    cg_vf_ limits[4]; /* to choose from at each depth */
} cg_search_tree_;
/* value[first + index*stride], index < many (a power of 2), over and over, for lookups by minus the index */
CG_VECTOR_FN_ cg_vf_ cg_lookup_table_(const float *value, size_t first, size_t stride, size_t many) {
    float table[8];
    CG_UNROLL_
    for (size_t j = 0; j < 8; j++) table[(8 - j) % 8] = value[first + (j & (many - 1)) * stride];
    return cg_vf_load_(table, 0);
}
/* A tree of 2^depth - 1 ascending limits, depth 0..4. */
CG_VECTOR_FN_ cg_search_tree_ cg_search_tree_make_(const float *limit, int depth) {
    cg_search_tree_ t;
    t.limits[0] = t.limits[1] = t.limits[2] = t.limits[3] = cg_vf_set_(0.0f);
    CG_UNROLL_
    for (int j = 0; j < depth; j++)
        t.limits[j] = cg_lookup_table_(
            limit, ((size_t)1 << (depth - 1 - j)) - 1, (size_t)1 << (depth - j), (size_t)1 << j);
    return t;
}
/* minus how many limits t is above */
CG_VECTOR_FN_ cg_vu_ cg_search_(cg_vf_ t, const cg_search_tree_ *tree, int depth) {
    cg_vu_ index = cg_vu_set_(0);
    if (depth > 0) index = cg_vf_gt_(t, tree->limits[0]);
    if (depth > 1) index = cg_vu_add_(cg_vu_add_(index, index), cg_vf_gt_(t, cg_vf_lookup4_(tree->limits[1], index)));
    if (depth > 2) index = cg_vu_add_(cg_vu_add_(index, index), cg_vf_gt_(t, cg_vf_lookup4_(tree->limits[2], index)));
    if (depth > 3) index = cg_vu_add_(cg_vu_add_(index, index), cg_vf_gt_(t, cg_vf_lookup8_(tree->limits[3], index)));
    return index;
}
/* Minus the symbols of eight values, without signs; sums: adds to the lanes s[0], s[1]. */
CG_VECTOR_FN_ cg_vu_ cg_bucketize8_(const float *v, size_t i, cg_vf_ inv, const cg_search_tree_ *tree, cg_vf_ centroid,
    cg_vd_ *s, int depth, int sums) {
    const cg_vu_ index = cg_search_(cg_vf_mul_(cg_vf_abs_(cg_vf_load_(v, i)), inv), tree, depth);
    if (sums) {
        const cg_vf_ c = depth < 3 ? cg_vf_lookup4_(centroid, index) : cg_vf_lookup8_(centroid, index);
        s[0] = cg_vd_add_(s[0], cg_vd_mul_(cg_vd_low_(c), cg_lane_sum_term_(v, i, CG_SUM_ABS_)));
        s[1] = cg_vd_add_(s[1], cg_vd_mul_(cg_vd_high_(c), cg_lane_sum_term_(v, i + 4, CG_SUM_ABS_)));
    }
    return index;
}
/* The first n / 32 * 32 values; returns how many. depth and sums are constants, so that each case is compiled alone. */
CG_VECTOR_FN_ size_t cg_bucketize32_(const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols,
    const float *centroid, double *lanes, int depth, int sums) {
    const cg_vf_ inv = cg_vf_set_(g->inv_scale);
    const cg_vu_ sign = cg_vb_set_(g->sign_bit);
    cg_vf_ centroids = inv;
    cg_vd_ s[4];
    cg_search_tree_ tree;
    float limit[7];
    size_t i = 0;
    cg_limits_pad_(g, limit);
    tree = cg_search_tree_make_(limit, depth);
    if (sums) {
        float c[8];
        CG_UNROLL_
        for (int32_t j = 0; j < 8; j++) c[j] = centroid[j <= g->limit_count ? j : 0];
        centroids = cg_lookup_table_(c, 0, 1, depth < 3 ? 4 : 8);
        cg_lanes_load_(s, lanes);
    }
    for (; i + 32 <= n; i += 32) {
        const cg_vu_ a = cg_bucketize8_(v, i, inv, &tree, centroids, s, depth, sums),
                     b = cg_bucketize8_(v, i + 8, inv, &tree, centroids, s + 2, depth, sums),
                     c = cg_bucketize8_(v, i + 16, inv, &tree, centroids, s, depth, sums),
                     d = cg_bucketize8_(v, i + 24, inv, &tree, centroids, s + 2, depth, sums);
        const cg_vu_ negative = cg_vb_narrow_signed_(cg_vu_negative_(cg_vu_floats_(v, i)),
            cg_vu_negative_(cg_vu_floats_(v, i + 8)), cg_vu_negative_(cg_vu_floats_(v, i + 16)),
            cg_vu_negative_(cg_vu_floats_(v, i + 24)));
        cg_vb_put_(symbols + i,
            cg_vu_or_(cg_vb_sub_(cg_vu_set_(0), cg_vb_narrow_signed_(a, b, c, d)), cg_vu_and_(negative, sign)));
    }
    if (sums) cg_lanes_store_(lanes, s);
    return i;
}
CG_VECTOR_FN_ void cg_bucketize_simd_(
    const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols, const float *centroid, double *lanes) {
    size_t i;
    switch (cg_search_tree_depth_(g->limit_count) + (lanes ? 4 : 0)) {
    case 0: i = cg_bucketize32_(g, v, n, symbols, centroid, lanes, 0, 0); break;
    case 1: i = cg_bucketize32_(g, v, n, symbols, centroid, lanes, 1, 0); break;
    case 2: i = cg_bucketize32_(g, v, n, symbols, centroid, lanes, 2, 0); break;
    case 3: i = cg_bucketize32_(g, v, n, symbols, centroid, lanes, 3, 0); break;
    case 4: i = cg_bucketize32_(g, v, n, symbols, centroid, lanes, 0, 1); break;
    case 5: i = cg_bucketize32_(g, v, n, symbols, centroid, lanes, 1, 1); break;
    case 6: i = cg_bucketize32_(g, v, n, symbols, centroid, lanes, 2, 1); break;
    default: i = cg_bucketize32_(g, v, n, symbols, centroid, lanes, 3, 1);
    }
    if (i < n) cg_bucketize_scalar_(g, cg_at_(v, i), n - i, symbols + i, centroid, lanes);
}
#endif

/* table_decode: table[symbol % 16], bits unchanged; the caller has scaled the 16 values. */
static void cg_table_decode_scalar_(
    const float *table, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, cg_load_(table, symbols[i] & 15u));
}
#if CG_VECTOR_
CG_VECTOR_FN_ size_t cg_table_decode16_(
    const float *table, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    const cg_vf_ low = cg_vf_load_(table, 0), high = cg_vf_load_(table, 8);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        cg_vf_stream_(out, i, cg_vf_lookup16_(low, high, cg_vu_bytes_(symbols + i)), non_temporal);
        cg_vf_stream_(out, i + 8, cg_vf_lookup16_(low, high, cg_vu_bytes_(symbols + i + 8)), non_temporal);
    }
    return i;
}
CG_VECTOR_FN_ void cg_table_decode_simd_(
    const float *table, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    const size_t i = non_temporal ? cg_table_decode16_(table, symbols, n, out, 1)
                                  : cg_table_decode16_(table, symbols, n, out, 0);
    if (i < n) cg_table_decode_scalar_(table, symbols + i, n - i, cg_at_mut_(out, i), 0);
}
#endif

/* nf4_search: the symbol is how many of 15 ascending limits v*inv_scale, rounded, is above: ties go to the lower
   symbol, a NaN to 0. */
static void cg_nf4_search_scalar_(const float *limit, float inv_scale, const float *v, size_t n, uint8_t *symbols) {
    float l[15]; /* a copy: symbols cannot alias it */
    memcpy(l, limit, sizeof l);
    for (size_t i = 0; i < n; i++) {
        const float t = cg_times_(cg_load_(v, i), inv_scale);
        unsigned index = t > l[7] ? 8u : 0u;
        index += t > l[index + 3] ? 4u : 0u;
        index += t > l[index + 1] ? 2u : 0u;
        index += t > l[index] ? 1u : 0u;
        symbols[i] = (uint8_t)index;
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_nf4_search8_(const float *v, size_t i, cg_vf_ inv, const cg_search_tree_ *tree) {
    return cg_search_(cg_vf_mul_(cg_vf_load_(v, i), inv), tree, 4);
}
CG_VECTOR_FN_ void cg_nf4_search_simd_(
    const float *limit, float inv_scale, const float *v, size_t n, uint8_t *symbols) {
    const cg_vf_ inv = cg_vf_set_(inv_scale);
    cg_search_tree_ tree;
    float l[15];
    size_t i = 0;
    memcpy(l, limit, sizeof l);
    tree = cg_search_tree_make_(l, 4);
    for (; i + 32 <= n; i += 32) {
        const cg_vu_ a = cg_nf4_search8_(v, i, inv, &tree), b = cg_nf4_search8_(v, i + 8, inv, &tree),
                     c = cg_nf4_search8_(v, i + 16, inv, &tree), d = cg_nf4_search8_(v, i + 24, inv, &tree);
        cg_prefetch32_(v, i, CG_AHEAD_);
        cg_vb_put_(symbols + i, cg_vb_sub_(cg_vu_set_(0), cg_vb_narrow_signed_(a, b, c, d)));
    }
    if (i < n) cg_nf4_search_scalar_(limit, inv_scale, cg_at_(v, i), n - i, symbols + i);
}
#endif

/* src/core/kernels/dct.h */
/* dct: the kernel of the DCT of 64 values

   Offers   dct
   Needs    base, table, the vector layer
   Touches  nothing but its arguments
   A fold (sums and differences of x[i] and x[2n-1-i]) turns a DCT-II of 2n values into a DCT-II and a DCT-IV of n.
   Givens rotations of pairs by the angles (2i+1)pi/(4N) turn a DCT-IV of N values into two DCT-II of N/2. After three
   such steps eight products with 8*8 matrices are left. The matrices hold the scaling too: each step leaves out a
   factor of sqrt(1/2), and every value takes three. */

/* clang-format off */
/* DCT-II of 8 over sqrt(8): two lines per input */
static const float cg_dct2_matrix_[64] = {
            0.125f,   0.173379987f,   0.163320377f,   0.146984443f,
            0.125f,  0.0982118696f,  0.0676495135f,  0.0344874226f,
            0.125f,   0.146984443f,  0.0676495135f, -0.0344874226f,
           -0.125f,  -0.173379987f,  -0.163320377f, -0.0982118696f,
            0.125f,  0.0982118696f, -0.0676495135f,  -0.173379987f,
           -0.125f,  0.0344874226f,   0.163320377f,   0.146984443f,
            0.125f,  0.0344874226f,  -0.163320377f, -0.0982118696f,
            0.125f,   0.146984443f, -0.0676495135f,  -0.173379987f,
            0.125f, -0.0344874226f,  -0.163320377f,  0.0982118696f,
            0.125f,  -0.146984443f, -0.0676495135f,   0.173379987f,
            0.125f, -0.0982118696f, -0.0676495135f,   0.173379987f,
           -0.125f, -0.0344874226f,   0.163320377f,  -0.146984443f,
            0.125f,  -0.146984443f,  0.0676495135f,  0.0344874226f,
           -0.125f,   0.173379987f,  -0.163320377f,  0.0982118696f,
            0.125f,  -0.173379987f,   0.163320377f,  -0.146984443f,
            0.125f, -0.0982118696f,  0.0676495135f, -0.0344874226f,
};
/* DCT-III: its transpose */
static const float cg_dct3_matrix_[64] = {
            0.125f,         0.125f,         0.125f,         0.125f,
            0.125f,         0.125f,         0.125f,         0.125f,
      0.173379987f,   0.146984443f,  0.0982118696f,  0.0344874226f,
    -0.0344874226f, -0.0982118696f,  -0.146984443f,  -0.173379987f,
      0.163320377f,  0.0676495135f, -0.0676495135f,  -0.163320377f,
     -0.163320377f, -0.0676495135f,  0.0676495135f,   0.163320377f,
      0.146984443f, -0.0344874226f,  -0.173379987f, -0.0982118696f,
     0.0982118696f,   0.173379987f,  0.0344874226f,  -0.146984443f,
            0.125f,        -0.125f,        -0.125f,         0.125f,
            0.125f,        -0.125f,        -0.125f,         0.125f,
     0.0982118696f,  -0.173379987f,  0.0344874226f,   0.146984443f,
     -0.146984443f, -0.0344874226f,   0.173379987f, -0.0982118696f,
     0.0676495135f,  -0.163320377f,   0.163320377f, -0.0676495135f,
    -0.0676495135f,   0.163320377f,  -0.163320377f,  0.0676495135f,
     0.0344874226f, -0.0982118696f,   0.146984443f,  -0.173379987f,
      0.173379987f,  -0.146984443f,  0.0982118696f, -0.0344874226f,
};
/* DCT-IV, its own inverse */
static const float cg_dct4_matrix_[64] = {
      0.175925463f,   0.169164747f,   0.155903131f,   0.136650234f,
      0.112145945f,  0.0833319575f,  0.0513155647f,  0.0173271466f,
      0.169164747f,   0.112145945f,  0.0173271466f, -0.0833319575f,
     -0.155903131f,  -0.175925463f,  -0.136650234f, -0.0513155647f,
      0.155903131f,  0.0173271466f,  -0.136650234f,  -0.169164747f,
    -0.0513155647f,   0.112145945f,   0.175925463f,  0.0833319575f,
      0.136650234f, -0.0833319575f,  -0.169164747f,  0.0173271466f,
      0.175925463f,  0.0513155647f,  -0.155903131f,  -0.112145945f,
      0.112145945f,  -0.155903131f, -0.0513155647f,   0.175925463f,
    -0.0173271466f,  -0.169164747f,  0.0833319575f,   0.136650234f,
     0.0833319575f,  -0.175925463f,   0.112145945f,  0.0513155647f,
     -0.169164747f,   0.136650234f,  0.0173271466f,  -0.155903131f,
     0.0513155647f,  -0.136650234f,   0.175925463f,  -0.155903131f,
     0.0833319575f,  0.0173271466f,  -0.112145945f,   0.169164747f,
     0.0173271466f, -0.0513155647f,  0.0833319575f,  -0.112145945f,
      0.136650234f,  -0.155903131f,   0.169164747f,  -0.175925463f,
};
/* cos of (2i+1)pi/128, i < 16, then of (2i+1)pi/64, i < 8 */
static const float cg_dct_cos_[24] = {
    0.999698818f, 0.997290432f, 0.992479563f, 0.985277653f,
    0.975702107f, 0.963776052f, 0.949528158f, 0.932992816f,
    0.914209783f, 0.893224299f, 0.870086968f,  0.84485358f,
    0.817584813f,  0.78834641f, 0.757208824f, 0.724247098f,
     0.99879545f, 0.989176512f, 0.970031261f, 0.941544056f,
    0.903989315f, 0.857728601f, 0.803207517f, 0.740951121f,
};
/* sin of the same */
static const float cg_dct_sin_[24] = {
     0.024541229f, 0.0735645667f,  0.122410677f,  0.170961887f,
     0.219101235f,  0.266712755f,  0.313681751f,  0.359895051f,
     0.405241311f,  0.449611336f,  0.492898196f,  0.534997642f,
     0.575808167f,  0.615231574f,  0.653172851f,  0.689540565f,
    0.0490676761f,  0.146730468f,  0.242980182f,  0.336889863f,
     0.427555084f,  0.514102757f,   0.59569931f,  0.671558976f,
};
/* clang-format on */
/* x[2n] to its sums and differences, even[n] and odd[n]; then the reverse, but for a factor of 2 */
CG_INLINE_ void cg_dct_fold_(const float *x, size_t n, float *even, float *odd) {
    for (size_t i = 0; i < n; i++) {
        const float a = x[i], b = x[2 * n - 1 - i];
        even[i] = cg_plus_(a, b);
        odd[i] = cg_minus_(a, b);
    }
}
CG_INLINE_ void cg_dct_unfold_(const float *even, const float *odd, size_t n, float *x) {
    for (size_t i = 0; i < n; i++) {
        const float a = even[i], b = odd[i];
        x[i] = cg_plus_(a, b);
        x[2 * n - 1 - i] = cg_minus_(a, b);
    }
}
CG_INLINE_ float cg_negate_odd_(float f, size_t i) { return cg_as_float_(cg_as_bits_(f) ^ (uint32_t)(i & 1) << 31); }
/* x[2n] to p[n] and q[n], which are inputs of two DCT-II; every other q is negated. n is 16 or 8. Then the inverse. */
CG_INLINE_ void cg_dct_givens_(const float *x, size_t n, float *p, float *q) {
    const float *c = cg_dct_cos_ + (n == 8 ? 16 : 0), *s = cg_dct_sin_ + (n == 8 ? 16 : 0);
    for (size_t i = 0; i < n; i++) {
        const float a = x[i], b = x[2 * n - 1 - i];
        p[i] = cg_plus_(cg_times_(a, c[i]), cg_times_(b, s[i]));
        q[i] = cg_negate_odd_(cg_minus_(cg_times_(b, c[i]), cg_times_(a, s[i])), i);
    }
}
CG_INLINE_ void cg_dct_givens_inv_(const float *p, const float *q, size_t n, float *x) {
    const float *c = cg_dct_cos_ + (n == 8 ? 16 : 0), *s = cg_dct_sin_ + (n == 8 ? 16 : 0);
    for (size_t i = 0; i < n; i++) {
        const float a = p[i], b = cg_negate_odd_(q[i], i);
        x[i] = cg_minus_(cg_times_(a, c[i]), cg_times_(b, s[i]));
        x[2 * n - 1 - i] = cg_plus_(cg_times_(a, s[i]), cg_times_(b, c[i]));
    }
}
/* The outputs p[n] and q[n] of two DCT-II, both as if followed by a 0, to the even and the odd outputs of a DCT-IV of
   2n, `stride` values apart; then the transpose. */
CG_INLINE_ void cg_dct4_from_dct2_(const float *p, const float *q, size_t n, float *even, float *odd, size_t stride) {
    const float sqrt2 = 1.41421354f;
    for (size_t i = 0; i < n; i++) {
        const float a = i ? p[i] : cg_times_(p[0], sqrt2), b = i + 1 < n ? q[n - 1 - i] : cg_times_(q[0], sqrt2);
        even[i * stride] = cg_plus_(a, i ? q[n - i] : 0.0f);
        odd[i * stride] = cg_minus_(i + 1 < n ? p[i + 1] : 0.0f, b);
    }
}
CG_INLINE_ void cg_dct4_to_dct2_(const float *even, const float *odd, size_t stride, size_t n, float *p, float *q) {
    const float sqrt2 = 1.41421354f;
    for (size_t i = 0; i < n; i++) {
        p[i] = cg_plus_(even[i * stride], i ? odd[(i - 1) * stride] : 0.0f);
        q[n - 1 - i] = cg_minus_(i + 1 < n ? even[(i + 1) * stride] : 0.0f, odd[i * stride]);
    }
    p[0] = cg_times_(p[0], sqrt2);
    q[0] = cg_times_(q[0], sqrt2);
}
CG_INLINE_ void cg_interleave_(const float *a, const float *b, size_t n, float *x) {
    for (size_t i = 0; i < n; i++) {
        x[2 * i] = a[i];
        x[2 * i + 1] = b[i];
    }
}
CG_INLINE_ void cg_deinterleave_(const float *x, size_t n, float *a, float *b) {
    for (size_t i = 0; i < n; i++) {
        a[i] = x[2 * i];
        b[i] = x[2 * i + 1];
    }
}
/* v[64] to the inputs t of eight transforms of 8 values: a DCT-II, a DCT-IV, two DCT-II, then a DCT-II and a DCT-IV
   twice. cg_dct_merge_ makes the DCT's outputs of theirs; cg_idct_split_ and cg_idct_merge_ are the same for the
   inverse, with DCT-III in the place of DCT-II. */
static void cg_dct_split_(const float *v, float *t) {
    float u[64], w[32];
    cg_dct_fold_(v, 32, u, u + 32);
    cg_dct_fold_(u, 16, w, w + 16);
    cg_dct_fold_(w, 8, t, t + 8);
    cg_dct_givens_(w + 16, 8, t + 16, t + 24);
    cg_dct_givens_(u + 32, 16, w, w + 16);
    cg_dct_fold_(w, 8, t + 32, t + 40);
    cg_dct_fold_(w + 16, 8, t + 48, t + 56);
}
static void cg_dct_merge_(const float *t, float *v) {
    float p[16], q[16];
    for (size_t i = 0; i < 8; i++) {
        v[8 * i] = t[i];
        v[8 * i + 4] = t[8 + i];
    }
    cg_dct4_from_dct2_(t + 16, t + 24, 8, v + 2, v + 6, 8);
    cg_interleave_(t + 32, t + 40, 8, p);
    cg_interleave_(t + 48, t + 56, 8, q);
    cg_dct4_from_dct2_(p, q, 16, v + 1, v + 3, 4);
}
static void cg_idct_split_(const float *v, float *t) {
    float p[16], q[16];
    for (size_t i = 0; i < 8; i++) {
        t[i] = v[8 * i];
        t[8 + i] = v[8 * i + 4];
    }
    cg_dct4_to_dct2_(v + 2, v + 6, 8, 8, t + 16, t + 24);
    cg_dct4_to_dct2_(v + 1, v + 3, 4, 16, p, q);
    cg_deinterleave_(p, 8, t + 32, t + 40);
    cg_deinterleave_(q, 8, t + 48, t + 56);
}
static void cg_idct_merge_(const float *t, float *v) {
    float u[64], w[32];
    cg_dct_unfold_(t + 32, t + 40, 8, w);
    cg_dct_unfold_(t + 48, t + 56, 8, w + 16);
    cg_dct_givens_inv_(w, w + 16, 16, u + 32);
    cg_dct_givens_inv_(t + 16, t + 24, 8, w + 16);
    cg_dct_unfold_(t, t + 8, 8, w);
    cg_dct_unfold_(w, w + 16, 16, u);
    cg_dct_unfold_(u, u + 32, 32, v);
}
/* of the group-th transform of 8 values */
CG_INLINE_ const float *cg_dct_matrix_of_(size_t group, int inverse) {
    return group == 1 || group == 5 || group == 7 ? cg_dct4_matrix_ : inverse ? cg_dct3_matrix_ : cg_dct2_matrix_;
}
/* dct: in place, in the order of operations above: it decides roundings, and is part of the wire format. A matrix
   product adds its terms in the order of the inputs. */
static void cg_dct_scalar_(float *v, int inverse) {
    float x[64], t[64], y[64];
    memcpy(x, v, sizeof x);
    if (inverse) cg_idct_split_(x, t);
    else cg_dct_split_(x, t);
    for (size_t g = 0; g < 8; g++) {
        const float *m = cg_dct_matrix_of_(g, inverse);
        for (size_t j = 0; j < 8; j++) {
            float s = cg_times_(m[j], t[8 * g]);
            for (size_t i = 1; i < 8; i++) s = cg_plus_(s, cg_times_(m[8 * i + j], t[8 * g + i]));
            y[8 * g + j] = s;
        }
    }
    if (inverse) cg_idct_merge_(y, x);
    else cg_dct_merge_(y, x);
    memcpy(v, x, sizeof x);
}
#if CG_VECTOR_
/* As the scalar functions of the same names, for eight pairs; b holds the second values in reverse order. */
CG_VECTOR_FN_ void cg_dct_fold8_(cg_vf_ a, cg_vf_ b, cg_vf_ *even, cg_vf_ *odd) {
    b = cg_vf_reverse_(b);
    *even = cg_vf_add_(a, b);
    *odd = cg_vf_sub_(a, b);
}
CG_VECTOR_FN_ void cg_dct_unfold8_(cg_vf_ even, cg_vf_ odd, cg_vf_ *a, cg_vf_ *b) {
    *a = cg_vf_add_(even, odd);
    *b = cg_vf_reverse_(cg_vf_sub_(even, odd));
}
CG_VECTOR_FN_ cg_vf_ cg_negate_odd8_(cg_vf_ x) {
    static const uint32_t odd[8] = { 0, CG_SIGN_BIT_, 0, CG_SIGN_BIT_, 0, CG_SIGN_BIT_, 0, CG_SIGN_BIT_ };
    return cg_vf_of_(cg_vu_xor_(cg_vu_of_(x), cg_vu_load_(odd)));
}
CG_VECTOR_FN_ void cg_dct_givens8_(cg_vf_ a, cg_vf_ b, size_t angle, cg_vf_ *p, cg_vf_ *q) {
    const cg_vf_ c = cg_vf_load_(cg_dct_cos_, angle), s = cg_vf_load_(cg_dct_sin_, angle);
    b = cg_vf_reverse_(b);
    *p = cg_vf_add_(cg_vf_mul_(a, c), cg_vf_mul_(b, s));
    *q = cg_negate_odd8_(cg_vf_sub_(cg_vf_mul_(b, c), cg_vf_mul_(a, s)));
}
CG_VECTOR_FN_ void cg_dct_givens_inv8_(cg_vf_ p, cg_vf_ q, size_t angle, cg_vf_ *a, cg_vf_ *b) {
    const cg_vf_ c = cg_vf_load_(cg_dct_cos_, angle), s = cg_vf_load_(cg_dct_sin_, angle);
    q = cg_negate_odd8_(q);
    *a = cg_vf_sub_(cg_vf_mul_(p, c), cg_vf_mul_(q, s));
    *b = cg_vf_reverse_(cg_vf_add_(cg_vf_mul_(p, s), cg_vf_mul_(q, c)));
}
/* value 0 times sqrt(2) */
CG_VECTOR_FN_ cg_vf_ cg_sqrt2_first_(cg_vf_ x) {
    return cg_vf_mul_(x, cg_vf_make_(1.41421354f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f));
}
/* The eight matrix products. Inputs go through memory: a load broadcasts a single value for free. */
CG_VECTOR_FN_ void cg_dct_matvecs_(cg_vf_ *x, int inverse) {
    float t[64];
    CG_UNROLL_
    for (size_t g = 0; g < 8; g++) cg_vf_store_(t, 8 * g, x[g]);
    CG_UNROLL_
    for (size_t g = 0; g < 8; g++) {
        const float *m = cg_dct_matrix_of_(g, inverse);
        cg_vf_ s = cg_vf_mul_(cg_vf_load_(m, 0), cg_vf_broadcast_(t + 8 * g));
        CG_UNROLL_
        for (size_t i = 1; i < 8; i++)
            s = cg_vf_add_(s, cg_vf_mul_(cg_vf_load_(m, 8 * i), cg_vf_broadcast_(t + 8 * g + i)));
        x[g] = s;
    }
}
CG_VECTOR_FN_ void cg_dct_forward_(float *v) {
    const cg_vf_ none = cg_vf_set_(0.0f);
    cg_vf_ x[8], u0, u1, u2, u3, w0, w1, w2, w3, e0, e1, o0, o1, p0, p1, q0, q1;
    cg_dct_fold8_(cg_vf_load_(v, 0), cg_vf_load_(v, 56), &u0, &w0);
    cg_dct_fold8_(cg_vf_load_(v, 8), cg_vf_load_(v, 48), &u1, &w1);
    cg_dct_fold8_(cg_vf_load_(v, 16), cg_vf_load_(v, 40), &u2, &w2);
    cg_dct_fold8_(cg_vf_load_(v, 24), cg_vf_load_(v, 32), &u3, &w3);
    cg_dct_fold8_(u0, u3, &e0, &o0);
    cg_dct_fold8_(u1, u2, &e1, &o1);
    cg_dct_fold8_(e0, e1, x, x + 1);
    cg_dct_givens8_(o0, o1, 16, x + 2, x + 3);
    cg_dct_givens8_(w0, w3, 0, &p0, &q0);
    cg_dct_givens8_(w1, w2, 8, &p1, &q1);
    cg_dct_fold8_(p0, p1, x + 4, x + 5);
    cg_dct_fold8_(q0, q1, x + 6, x + 7);
    cg_dct_matvecs_(x, 0);
    p0 = cg_sqrt2_first_(x[2]);
    q0 = cg_sqrt2_first_(x[3]);
    e0 = cg_vf_add_(p0, cg_vf_reverse_(cg_vf_next_(q0, none)));
    o0 = cg_vf_sub_(cg_vf_next_(p0, none), cg_vf_reverse_(q0));
    cg_vf_interleave_(e0, o0, &e0, &e1);     /* 2, 6, 10, ... */
    cg_vf_interleave_(x[0], x[1], &o0, &o1); /* 0, 4, 8, ... */
    cg_vf_interleave_(o0, e0, &u0, &u1);
    cg_vf_interleave_(o1, e1, &u2, &u3);
    cg_vf_interleave_(x[4], x[5], &p0, &p1);
    cg_vf_interleave_(x[6], x[7], &q0, &q1);
    p0 = cg_sqrt2_first_(p0);
    q0 = cg_sqrt2_first_(q0);
    e0 = cg_vf_add_(p0, cg_vf_reverse_(cg_vf_next_(q1, none)));
    e1 = cg_vf_add_(p1, cg_vf_reverse_(cg_vf_next_(q0, q1)));
    o0 = cg_vf_sub_(cg_vf_next_(p0, p1), cg_vf_reverse_(q1));
    o1 = cg_vf_sub_(cg_vf_next_(p1, none), cg_vf_reverse_(q0));
    cg_vf_interleave_(e0, o0, &w0, &w1);
    cg_vf_interleave_(e1, o1, &w2, &w3);
    cg_vf_interleave_(u0, w0, x, x + 1);
    cg_vf_interleave_(u1, w1, x + 2, x + 3);
    cg_vf_interleave_(u2, w2, x + 4, x + 5);
    cg_vf_interleave_(u3, w3, x + 6, x + 7);
    CG_UNROLL_
    for (size_t i = 0; i < 8; i++) cg_vf_store_(v, 8 * i, x[i]);
}
CG_VECTOR_FN_ void cg_dct_inverse_(float *v) {
    const cg_vf_ none = cg_vf_set_(0.0f);
    cg_vf_ x[8], u0, u1, u2, u3, w0, w1, w2, w3, e0, e1, o0, o1, p0, p1, q0, q1;
    cg_vf_deinterleave_(cg_vf_load_(v, 0), cg_vf_load_(v, 8), &u0, &w0);
    cg_vf_deinterleave_(cg_vf_load_(v, 16), cg_vf_load_(v, 24), &u1, &w1);
    cg_vf_deinterleave_(cg_vf_load_(v, 32), cg_vf_load_(v, 40), &u2, &w2);
    cg_vf_deinterleave_(cg_vf_load_(v, 48), cg_vf_load_(v, 56), &u3, &w3);
    cg_vf_deinterleave_(w0, w1, &e0, &o0);
    cg_vf_deinterleave_(w2, w3, &e1, &o1);
    p0 = cg_sqrt2_first_(cg_vf_add_(e0, cg_vf_prev_(o0, none)));
    p1 = cg_vf_add_(e1, cg_vf_prev_(o1, o0));
    q1 = cg_vf_reverse_(cg_vf_sub_(cg_vf_next_(e0, e1), o0));
    q0 = cg_sqrt2_first_(cg_vf_reverse_(cg_vf_sub_(cg_vf_next_(e1, none), o1)));
    cg_vf_deinterleave_(p0, p1, x + 4, x + 5);
    cg_vf_deinterleave_(q0, q1, x + 6, x + 7);
    cg_vf_deinterleave_(u0, u1, &p0, &q0);
    cg_vf_deinterleave_(u2, u3, &p1, &q1);
    cg_vf_deinterleave_(p0, p1, x, x + 1);
    cg_vf_deinterleave_(q0, q1, &e0, &o0);
    x[2] = cg_sqrt2_first_(cg_vf_add_(e0, cg_vf_prev_(o0, none)));
    x[3] = cg_sqrt2_first_(cg_vf_reverse_(cg_vf_sub_(cg_vf_next_(e0, none), o0)));
    cg_dct_matvecs_(x, 1);
    cg_dct_unfold8_(x[4], x[5], &p0, &p1);
    cg_dct_unfold8_(x[6], x[7], &q0, &q1);
    cg_dct_givens_inv8_(p0, q0, 0, &w0, &w3);
    cg_dct_givens_inv8_(p1, q1, 8, &w1, &w2);
    cg_dct_unfold8_(x[0], x[1], &e0, &e1);
    cg_dct_givens_inv8_(x[2], x[3], 16, &o0, &o1);
    cg_dct_unfold8_(e0, o0, &u0, &u3);
    cg_dct_unfold8_(e1, o1, &u1, &u2);
    cg_dct_unfold8_(u0, w0, x, x + 7);
    cg_dct_unfold8_(u1, w1, x + 1, x + 6);
    cg_dct_unfold8_(u2, w2, x + 2, x + 5);
    cg_dct_unfold8_(u3, w3, x + 3, x + 4);
    CG_UNROLL_
    for (size_t i = 0; i < 8; i++) cg_vf_store_(v, 8 * i, x[i]);
}
CG_VECTOR_FN_ void cg_dct_simd_(float *v, int inverse) {
    if (inverse) cg_dct_inverse_(v);
    else cg_dct_forward_(v);
}
#endif

/* src/core/kernels/fp8.h */
/* fp8: kernels of the formats E4M3 and E5M2, the values of E2M1, and E8M0 scales

   Offers   fp8_encode, fp8_decode; cg_e2m1_values_, cg_e2m1_limits_, cg_e8m0_encode_, cg_e8m0_decode_
   Needs    base, random, table, the vector layer, decode
   Touches  nothing but its arguments */

typedef struct cg_fp8_format_ {
    uint32_t dropped_bits;    /* mantissa bits that f32 has more */
    uint32_t min_normal_bits; /* the smallest normal value, as f32 bits */
    uint32_t max_bits;        /* the largest value, as f32 bits */
    uint32_t code_bias;       /* min_normal_bits >> dropped_bits */
} cg_fp8_format_;
CG_INLINE_ cg_fp8_format_ cg_fp8_format_of_(int is_e5m2) {
    const cg_fp8_format_ e4m3 = { 20, 0x3c800000u, 0x43e00000u, 0x3c8 }, e5m2 = { 21, 0x38800000u, 0x47600000u, 0x1c4 };
    return is_e5m2 ? e5m2 : e4m3;
}
/* fp8_encode: v*inv_scale, rounded, to nearest even as E5M2 or E4M3. Magnitudes beyond the largest value (57344, 448),
   Inf and NaN become it; every value keeps its sign, zeros too. The rounding is done by the addition of a power of
   two so large that the last bit of the sum is the last bit of the code. */
static void cg_fp8_encode_scalar_(const float *v, size_t n, float inv_scale, int is_e5m2, uint8_t *out) {
    const cg_fp8_format_ q = cg_fp8_format_of_(is_e5m2);
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        uint32_t m = cg_as_bits_(cg_times_(f, inv_scale)) & CG_ABS_MASK_, e, large, sum;
        m = m < q.max_bits ? m : q.max_bits;
        e = cg_max32_(m & 0x7f800000u, q.min_normal_bits);
        large = e + (q.dropped_bits << 23);
        sum = cg_as_bits_(cg_plus_(cg_as_float_(m), cg_as_float_(large)));
        out[i] = (uint8_t)((cg_as_bits_(f) >> 24 & 0x80u) | (sum - large + (e >> q.dropped_bits) - q.code_bias));
    }
}
#if CG_VECTOR_
/* code of the magnitude, plus q.code_bias */
CG_VECTOR_FN_ cg_vu_ cg_fp8_encode8_(cg_vu_ v, cg_vf_ inv, cg_fp8_format_ q) {
    const cg_vu_ m = cg_vu_min_(cg_vu_abs_(cg_vu_of_(cg_vf_mul_(cg_vf_of_(v), inv))), cg_vu_set_(q.max_bits)),
                 e = cg_vu_max_(cg_vu_and_(m, cg_vu_set_(0x7f800000u)), cg_vu_set_(q.min_normal_bits)),
                 large = cg_vu_add_(e, cg_vu_set_(q.dropped_bits << 23)),
                 sum = cg_vu_of_(cg_vf_add_(cg_vf_of_(m), cg_vf_of_(large)));
    /* sum - large, as the mantissa of large is 0: gcc would reorder the terms of a difference */
    return cg_vu_add_(cg_vu_xor_(sum, large), cg_vu_shr_(e, q.dropped_bits));
}
CG_VECTOR_FN_ size_t cg_fp8_encode32_(const float *v, size_t n, float inv_scale, cg_fp8_format_ q, uint8_t *out) {
    const cg_vf_ inv = cg_vf_set_(inv_scale);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const cg_vu_ a = cg_vu_floats_(v, i), b = cg_vu_floats_(v, i + 8), c = cg_vu_floats_(v, i + 16),
                     d = cg_vu_floats_(v, i + 24);
        const cg_vu_ p = cg_fp8_encode8_(a, inv, q), r = cg_fp8_encode8_(b, inv, q), s = cg_fp8_encode8_(c, inv, q),
                     t = cg_fp8_encode8_(d, inv, q), codes = cg_vb_narrow_add_(p, r, s, t, -(int)q.code_bias);
        cg_prefetch32_(v, i, CG_CHUNK_);
        cg_vb_put_(out + i, cg_vu_or_(codes, cg_vb_narrow_tops_(a, b, c, d)));
    }
    return i;
}
CG_VECTOR_FN_ void cg_fp8_encode_simd_(const float *v, size_t n, float inv_scale, int is_e5m2, uint8_t *out) {
    const size_t i = is_e5m2 ? cg_fp8_encode32_(v, n, inv_scale, cg_fp8_format_of_(1), out)
                             : cg_fp8_encode32_(v, n, inv_scale, cg_fp8_format_of_(0), out);
    if (i < n) cg_fp8_encode_scalar_(cg_at_(v, i), n - i, inv_scale, is_e5m2, out + i);
}
#endif

/* fp8_decode: the value of the code times scale, rounded, Inf made finite. Codes of NaN and Inf count as the largest
   value of their sign, so that any byte is legal. Both formats are f16 with fewer mantissa bits; as E4M3 has one
   exponent bit less, too, its values appear there times 2^-8. */
static void cg_fp8_decode_scalar_(const uint8_t *in, size_t n, float scale, int is_e5m2, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) {
        uint32_t m = in[i] & 0x7fu, max_code = is_e5m2 ? 0x7bu : 0x7eu;
        float f = cg_f16_decode_((in[i] & 0x80u) << 8 | (m < max_code ? m : max_code) << (is_e5m2 ? 8 : 7));
        cg_store_(out, i, cg_saturate_(cg_times_(cg_times_(f, is_e5m2 ? 1.0f : 256.0f), scale)));
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ size_t cg_fp8_decode16_(
    const uint8_t *in, size_t n, float scale, int is_e5m2, float *out, int non_temporal) {
    const cg_vf_ scale_v = cg_vf_set_(scale);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        cg_vf_ x, y;
        cg_vf_fp8_(in + i, is_e5m2, &x, &y);
        cg_vf_stream_(out, i, cg_vf_finite_(cg_vf_mul_(x, scale_v)), non_temporal);
        cg_vf_stream_(out, i + 8, cg_vf_finite_(cg_vf_mul_(y, scale_v)), non_temporal);
    }
    return i;
}
CG_VECTOR_FN_ void cg_fp8_decode_simd_(
    const uint8_t *in, size_t n, float scale, int is_e5m2, float *out, int non_temporal) {
    const size_t i = is_e5m2
        ? non_temporal ? cg_fp8_decode16_(in, n, scale, 1, out, 1) : cg_fp8_decode16_(in, n, scale, 1, out, 0)
        : non_temporal ? cg_fp8_decode16_(in, n, scale, 0, out, 1)
                       : cg_fp8_decode16_(in, n, scale, 0, out, 0);
    if (i < n) cg_fp8_decode_scalar_(in + i, n - i, scale, is_e5m2, cg_at_mut_(out, i), 0);
}
#endif

/* E2M1 by bucketize: the code is above i where t > limits[i]. To nearest, ties to the even code: where a tie goes up,
   the limit is the float below it. */
static const float cg_e2m1_values_[8] = { 0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f };
static const float cg_e2m1_limits_[7] = { 0.25f, 0.749999940f, 1.25f, 1.74999988f, 2.5f, 3.49999976f, 5.0f };

/* E8M0: the byte b stands for 2^(b-127). Encodes the power of two of the magnitude, rounded down, over 2^emax, within
   0..254; a magnitude of 0 gives 0. */
static unsigned cg_e8m0_encode_(uint32_t absmax_bits, int emax) {
    int e;
    if (!absmax_bits) return 0;
    e = (absmax_bits >> 23 ? (int)(absmax_bits >> 23) : (int)cg_log2_(absmax_bits) - 22) - emax;
    return (unsigned)(e < 0 ? 0 : e > 254 ? 254 : e);
}
/* 255, which is NaN, counts as 254. */
static float cg_e8m0_decode_(unsigned byte) {
    return cg_as_float_(!byte ? 0x00400000u : byte < 254 ? (uint32_t)byte << 23 : 254u << 23);
}

/* src/core/kernels/natural.h */
/* natural: kernels that round to powers of two: natural compression and natural dithering

   Offers   natural_encode, natural_decode, dither_encode, dither_decode
   Needs    base, random, table, the vector layer, levels
   Touches  nothing but its arguments */

/* natural_encode: n exponent bytes (that of the f32, at most 254; 0: zero), then n sign bits as sign_encode has them (0
   for a zero). Stochastic: adding 23 random bits below the exponent carries into it with the probability of rounding
   up, and the mean is kept. Nearest: adds half, so that ties go away from zero. Denormals round to 0 or 2^-126
   likewise; what would round above 2^127 becomes that. Returns absmax bits. */
CG_INLINE_ uint32_t cg_natural_encode_split_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *exponents, uint8_t *signs) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = cg_load_bits_(v, i), m = u & CG_ABS_MASK_;
        uint32_t e = (m + (stochastic ? cg_noise_bits_(key, position + (uint32_t)i) >> 9 : 0x400000u)) >> 23;
        absmax_bits = cg_max32_(absmax_bits, m);
        exponents[i] = (uint8_t)(e < 254 ? e : 254);
        if (i % 8 == 0) signs[i / 8] = 0;
        signs[i / 8] = (uint8_t)(signs[i / 8] | (e ? u >> 31 : 0) << i % 8);
    }
    return absmax_bits;
}
static uint32_t cg_natural_encode_scalar_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *out) {
    return cg_natural_encode_split_(v, n, key, position, stochastic, out, out + n);
}
#if CG_VECTOR_
/* The first n / 32 * 32 values; returns how many. position % 16 == 0 if stochastic. */
CG_VECTOR_FN_ size_t cg_natural_encode32_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *out, cg_vu_ *absmax) {
    cg_vu_ t0 = cg_vu_set_(0), t1 = t0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        cg_vu_ x[4], noise[4], s, e;
        cg_prefetch32_(v, i, CG_AHEAD_);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) x[j] = cg_vu_floats_(v, i + 8 * j);
        s = cg_vb_narrow_tops_(x[0], x[1], x[2], x[3]);
        if (stochastic) cg_vu_noise_(key, position + (uint32_t)i, noise);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) {
            x[j] = cg_vu_abs_(x[j]);
            if (j < 2) t0 = cg_vu_max_(t0, x[j]);
            else t1 = cg_vu_max_(t1, x[j]);
            x[j] = cg_vu_add_(x[j], stochastic ? cg_vu_shr_(noise[j], 9) : cg_vu_set_(0x400000));
            x[j] = cg_vu_shr_(x[j], 23);
        }
        e = cg_vb_min_(cg_vb_narrow_add_(x[0], x[1], x[2], x[3], 0), cg_vb_set_(254));
        cg_vb_put_(out + i, e);
        cg_put32_(out + n + i / 8, cg_vb_mask_(cg_vu_andnot_(cg_vb_is_zero_(e), s)));
    }
    *absmax = cg_vu_max_(t0, t1);
    return i;
}
CG_VECTOR_FN_ uint32_t cg_natural_encode_simd_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *out) {
    cg_vu_ absmax;
    uint32_t absmax_bits;
    size_t i;
    if (stochastic && (position & 15)) return cg_natural_encode_scalar_(v, n, key, position, stochastic, out);
    i = stochastic ? cg_natural_encode32_(v, n, key, position, 1, out, &absmax)
                   : cg_natural_encode32_(v, n, key, position, 0, out, &absmax);
    absmax_bits = cg_vu_hmax_(absmax);
    return i < n ? cg_max32_(absmax_bits,
                       cg_natural_encode_split_(
                           cg_at_(v, i), n - i, key, position + (uint32_t)i, stochastic, out + i, out + n + i / 8))
                 : absmax_bits;
}
#endif

/* natural_decode: 255 counts as 254, and exponent 0 is +0, so that any bytes are legal and finite. */
CG_INLINE_ void cg_natural_decode_split_(const uint8_t *exponents, const uint8_t *signs, size_t n, float *out) {
    for (size_t i = 0; i < n; i++) {
        uint32_t e = exponents[i] < 254 ? exponents[i] : 254u;
        cg_store_(out, i, cg_as_float_(e << 23 | (e ? (uint32_t)(signs[i / 8] >> i % 8 & 1) << 31 : 0u)));
    }
}
static void cg_natural_decode_scalar_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    (void)non_temporal;
    cg_natural_decode_split_(in, in + n, n, out);
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_natural_decode_simd_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const uint32_t zeros = cg_vb_mask_in_order_(cg_vb_is_zero_(cg_vu_load_(in + i)));
        const cg_vu_ w = cg_vu_set_(cg_get32_(in + n + i / 8) & ~zeros);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) {
            const cg_vu_ e = cg_vu_min_(cg_vu_bytes_(in + i + 8 * j), cg_vu_set_(254));
            cg_vf_stream_(
                out, i + 8 * j, cg_vf_of_(cg_vu_or_(cg_vu_signs_(w, 8 * (int)j), cg_vu_shl_(e, 23))), non_temporal);
        }
    }
    if (i < n) cg_natural_decode_split_(in + i, in + n + i / 8, n - i, cg_at_mut_(out, i));
}
#endif

/* dither_encode: of t = |v|*inv_scale, rounded, at most 1 (as is a NaN), level 0 or m = 1..s for 2^(m-s), where
   s = 2^(bits-1) - 1; bit bits-1 of the symbol is the sign, 0 for level 0. From the lowest power 2^(1-s) on, t rounds
   as natural_encode does. Below it, t becomes that power with probability t/2^(1-s), or, to nearest, if it is more
   than half of it. bits = 2..8. */
/* s: the largest level */
CG_INLINE_ unsigned cg_dither_levels_(unsigned bits) { return (1u << (bits - 1)) - 1u; }
static void cg_dither_encode_scalar_(
    const cg_dither_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    const unsigned max_level = cg_dither_levels_(q->bits);
    const uint32_t min_level_bits = (uint32_t)(128 - max_level) << 23;
    const float inv_min_level = cg_as_float_((uint32_t)(126 + max_level) << 23); /* 2^(s-1) */
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i), u = 0.5f;
        uint32_t t = cg_as_bits_(cg_times_(f, q->inv_scale)) & CG_ABS_MASK_, rounding = 0x400000u, m = 0;
        if (q->stochastic) {
            uint32_t h = cg_noise_bits_(key, position + (uint32_t)i);
            rounding = h >> 9;
            u = cg_times_((float)(int32_t)(h >> 8), 5.9604644775390625e-8f);
        }
        t = t < 0x3f800000u ? t : 0x3f800000u;
        /* always so, if t >= 2^(1-s) */
        if (u < cg_times_(cg_as_float_(t), inv_min_level))
            m = ((cg_max32_(t, min_level_bits) + rounding) >> 23) - (127 - max_level);
        symbols[i] = (uint8_t)(m | (m ? cg_as_bits_(f) >> 31 : 0) << (q->bits - 1));
    }
}
#if CG_VECTOR_
/* levels of eight values plus 127 - s, or 0 */
CG_VECTOR_FN_ cg_vu_ cg_dither_encode8_(
    cg_vu_ v, cg_vu_ h, cg_vf_ inv, cg_vu_ min_level_bits, cg_vf_ inv_min_level, int stochastic) {
    const cg_vu_ t = cg_vu_min_(cg_vu_abs_(cg_vu_of_(cg_vf_mul_(cg_vf_of_(v), inv))), cg_vu_set_(0x3f800000u)),
                 rounding = stochastic ? cg_vu_shr_(h, 9) : cg_vu_set_(0x400000);
    const cg_vf_ u = stochastic ? cg_vf_uniform_(h) : cg_vf_set_(0.5f);
    return cg_vu_and_(cg_vu_shr_(cg_vu_add_(cg_vu_max_(t, min_level_bits), rounding), 23),
        cg_vf_gt_(cg_vf_mul_(cg_vf_of_(t), inv_min_level), u));
}
CG_VECTOR_FN_ size_t cg_dither_encode32_(
    const cg_dither_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols, int stochastic) {
    const unsigned max_level = cg_dither_levels_(q->bits), down = 8 - q->bits;
    const cg_vf_ inv = cg_vf_set_(q->inv_scale),
                 inv_min_level = cg_vf_of_(cg_vu_set_((uint32_t)(126 + max_level) << 23));
    const cg_vu_ min_level_bits = cg_vu_set_((uint32_t)(128 - max_level) << 23), bias = cg_vb_set_(127 - max_level);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const cg_vu_ a = cg_vu_floats_(v, i), b = cg_vu_floats_(v, i + 8), c = cg_vu_floats_(v, i + 16),
                     d = cg_vu_floats_(v, i + 24);
        const cg_vu_ sign = cg_vu_shr_(cg_vb_narrow_tops_(a, b, c, d), down); /* within each byte: no others are set */
        cg_vu_ h[4], m;
        cg_prefetch32_(v, i, CG_CHUNK_);
        h[0] = h[1] = h[2] = h[3] = a;
        if (stochastic) cg_vu_noise_(key, position + (uint32_t)i, h);
        m = cg_vb_narrow_(cg_dither_encode8_(a, h[0], inv, min_level_bits, inv_min_level, stochastic),
            cg_dither_encode8_(b, h[1], inv, min_level_bits, inv_min_level, stochastic),
            cg_dither_encode8_(c, h[2], inv, min_level_bits, inv_min_level, stochastic),
            cg_dither_encode8_(d, h[3], inv, min_level_bits, inv_min_level, stochastic));
        m = cg_vb_sub_sat_(m, bias);
        cg_vb_put_(symbols + i, cg_vu_or_(m, cg_vu_andnot_(cg_vb_is_zero_(m), sign)));
    }
    return i;
}
CG_VECTOR_FN_ void cg_dither_encode_simd_(
    const cg_dither_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    size_t head = cg_noise_head_(q->stochastic, position, n), i;
    if (head) cg_dither_encode_scalar_(q, key, position, v, head, symbols);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    symbols += head;
    n -= head;
    i = q->stochastic ? cg_dither_encode32_(q, key, position, v, n, symbols, 1)
                      : cg_dither_encode32_(q, key, position, v, n, symbols, 0);
    if (i < n) cg_dither_encode_scalar_(q, key, position + (uint32_t)i, cg_at_(v, i), n - i, symbols + i);
}
#endif

/* dither_decode: the level as a power of two, times scale, rounded; bits of a symbol above the low `bits` are
   ignored. */
static void cg_dither_decode_scalar_(
    unsigned bits, float scale, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    const unsigned max_level = cg_dither_levels_(bits);
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) {
        uint32_t m = symbols[i] & max_level, sign = (uint32_t)(symbols[i] >> (bits - 1) & 1) << 31;
        cg_store_(out, i, cg_times_(cg_as_float_(m ? sign | (m + 127 - max_level) << 23 : 0u), scale));
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_dither_decode_simd_(
    unsigned bits, float scale, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    const unsigned max_level = cg_dither_levels_(bits);
    const cg_vf_ scale_v = cg_vf_set_(scale);
    const cg_vu_ level_mask = cg_vu_set_(max_level), bias = cg_vu_set_(127 - max_level), none = cg_vu_set_(0),
                 sign_bit = cg_vu_set_(CG_SIGN_BIT_);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const cg_vu_ b = cg_vu_bytes_(symbols + i), m = cg_vu_and_(b, level_mask),
                     sign = cg_vu_and_(cg_vu_shl_(b, 32 - bits), sign_bit),
                     f = cg_vu_or_(cg_vu_shl_(cg_vu_add_(m, bias), 23), sign);
        cg_vf_stream_(out, i, cg_vf_mul_(cg_vf_of_(cg_vu_and_(f, cg_vu_gt_(m, none))), scale_v), non_temporal);
    }
    if (i < n) cg_dither_decode_scalar_(bits, scale, symbols + i, n - i, cg_at_mut_(out, i), 0);
}
#endif

/* src/core/kernels/stochastic.h */
/* stochastic: kernels that round to small floats and to the values of a table at random, so that the mean is kept

   Offers   half_stochastic, fp8_stochastic, nf4_stochastic
   Needs    base, random, table, the vector layer
   Touches  nothing but its arguments */

/* A format of floats with fewer bits than f32, as cg_fp8_format_ has it. */
typedef struct cg_minifloat_ {
    uint32_t dropped_bits;    /* mantissa bits that f32 has more */
    uint32_t min_normal_bits; /* the smallest normal value, as f32 bits */
    uint32_t max_code;        /* of the largest value */
    float inv_denormal;       /* 1 over the smallest denormal; 0: denormals of f32 are those of the format */
} cg_minifloat_;
enum { CG_SMALL_F16_, CG_SMALL_BF16_, CG_SMALL_E4M3_, CG_SMALL_E5M2_, CG_SMALL_E2M1_ };
CG_INLINE_ cg_minifloat_ cg_small_float_of_(int format) {
    static const cg_minifloat_ formats[] = { { 13, 0x38800000u, 0x7bff, 16777216.0f }, { 16, 0, 0x7f7f, 0.0f },
        { 20, 0x3c800000u, 0x7e, 512.0f }, { 21, 0x38800000u, 0x7b, 65536.0f }, { 22, 0x3f800000u, 7, 2.0f } };
    return formats[format];
}
/* The code of the magnitude with these bits, which rounds up if the hash h is small. A normal value: the bits that go
   are compared with as many of h, by a carry. Below, a number of steps k + part, which is exact: part is compared with
   24 bits of h. The one part of the code is 0 or the same for all where the other one counts. Magnitudes beyond the
   largest value become it. */
static uint32_t cg_small_float_round_(uint32_t m, uint32_t h, cg_minifloat_ q) {
    const uint32_t step_code = 0x800000u >> q.dropped_bits; /* of the smallest normal value */
    uint32_t code, normal;
    if (q.inv_denormal == 0.0f) code = (m + (h >> (32 - q.dropped_bits))) >> q.dropped_bits;
    else {
        const float steps = cg_times_(cg_as_float_(m < q.min_normal_bits ? m : q.min_normal_bits), q.inv_denormal),
                    part = cg_times_((float)(int32_t)(h >> 8), 5.9604644775390625e-8f);
        float whole = cg_minus_(cg_plus_(steps, 8388608.0f), 8388608.0f);
        whole = cg_minus_(whole, whole > steps ? 1.0f : 0.0f);
        normal = cg_max32_(m, q.min_normal_bits) - q.min_normal_bits + 0x800000u;
        normal = (normal + (h >> (32 - q.dropped_bits))) >> q.dropped_bits;
        code = (cg_as_bits_(cg_plus_(whole, 8388608.0f)) - 0x4b000000u) + (part < cg_minus_(steps, whole)) + normal -
            step_code;
    }
    return code < q.max_code ? code : q.max_code;
}
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_small_float_round8_(cg_vu_ m, cg_vu_ h, cg_minifloat_ q) {
    const cg_vu_ noise = cg_vu_shr_(h, 32 - q.dropped_bits);
    cg_vu_ code;
    if (q.inv_denormal == 0.0f) code = cg_vu_shr_(cg_vu_add_(m, noise), q.dropped_bits);
    else {
        const cg_vu_ least = cg_vu_set_(q.min_normal_bits);
        const cg_vf_ big = cg_vf_set_(8388608.0f),
                     steps = cg_vf_mul_(cg_vf_of_(cg_vu_min_(m, least)), cg_vf_set_(q.inv_denormal)),
                     rounded = cg_vf_sub_(cg_vf_add_(steps, big), big),
                     whole = cg_vf_sub_(
                         rounded, cg_vf_of_(cg_vu_and_(cg_vf_gt_(rounded, steps), cg_vu_of_(cg_vf_set_(1.0f)))));
        const cg_vu_ normal = cg_vu_add_(cg_vu_max_(m, least), cg_vu_set_(0x800000u - q.min_normal_bits));
        code = cg_vu_add_(cg_vu_shr_(cg_vu_add_(normal, noise), q.dropped_bits),
            cg_vu_add_(
                cg_vu_of_(cg_vf_add_(whole, big)), cg_vu_set_(0u - 0x4b000000u - (0x800000u >> q.dropped_bits))));
        /* comparisons are -1 where they hold */
        code = cg_vu_sub_(code, cg_vf_gt_(cg_vf_sub_(steps, whole), cg_vf_uniform_(h)));
    }
    return cg_vu_min_(code, cg_vu_set_(q.max_code));
}
#endif

/* half_stochastic: f16 or bf16 to the wire, 2 bytes each; returns absmax bits. */
static uint32_t cg_half_stochastic_scalar_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int is_bf16, uint8_t *out) {
    const cg_minifloat_ q = cg_small_float_of_(is_bf16 ? CG_SMALL_BF16_ : CG_SMALL_F16_);
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = cg_load_bits_(v, i), m = u & CG_ABS_MASK_;
        absmax_bits = cg_max32_(absmax_bits, m);
        cg_put16_(out + 2 * i,
            (u >> 16 & 0x8000u) | cg_small_float_round_(m, cg_noise_bits_(key, position + (uint32_t)i), q));
    }
    return absmax_bits;
}
#if CG_VECTOR_
CG_VECTOR_FN_ size_t cg_half_stochastic32_(
    const float *v, size_t n, cg_key_ key, uint32_t position, cg_minifloat_ q, uint8_t *out, cg_vu_ *absmax) {
    cg_vu_ t0 = cg_vu_set_(0), t1 = t0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        cg_vu_ x[4], noise[4];
        cg_prefetch32_(v, i, CG_AHEAD_);
        cg_vu_noise_(key, position + (uint32_t)i, noise);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) {
            const cg_vu_ u = cg_vu_floats_(v, i + 8 * j), m = cg_vu_abs_(u);
            if (j < 2) t0 = cg_vu_max_(t0, m);
            else t1 = cg_vu_max_(t1, m);
            x[j] = cg_vu_or_(
                cg_vu_and_(cg_vu_shr_(u, 16), cg_vu_set_(0x8000u)), cg_small_float_round8_(m, noise[j], q));
        }
        cg_vu_put16_(out + 2 * i, x[0], x[1]);
        cg_vu_put16_(out + 2 * i + 32, x[2], x[3]);
    }
    *absmax = cg_vu_max_(t0, t1);
    return i;
}
CG_VECTOR_FN_ uint32_t cg_half_stochastic_simd_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int is_bf16, uint8_t *out) {
    const size_t head = cg_noise_head_(1, position, n);
    uint32_t absmax_bits = cg_half_stochastic_scalar_(v, head, key, position, is_bf16, out);
    cg_vu_ absmax;
    size_t i;
    v = cg_at_(v, head);
    position += (uint32_t)head;
    out += 2 * head;
    n -= head;
    i = is_bf16 ? cg_half_stochastic32_(v, n, key, position, cg_small_float_of_(CG_SMALL_BF16_), out, &absmax)
                : cg_half_stochastic32_(v, n, key, position, cg_small_float_of_(CG_SMALL_F16_), out, &absmax);
    absmax_bits = cg_max32_(absmax_bits, cg_vu_hmax_(absmax));
    return cg_max32_(absmax_bits,
        cg_half_stochastic_scalar_(cg_at_(v, i), n - i, key, position + (uint32_t)i, is_bf16, out + 2 * i));
}
#endif

/* fp8_stochastic: v*inv_scale, rounded to f32 first, as E4M3, E5M2 or E2M1, a byte each with the sign in front. */
CG_INLINE_ uint32_t cg_small_sign_(int format, uint32_t u) {
    return format == CG_SMALL_E2M1_ ? u >> 28 & 8u : u >> 24 & 0x80u;
}
static void cg_fp8_stochastic_scalar_(
    const float *v, size_t n, float inv_scale, int format, cg_key_ key, uint32_t position, uint8_t *out) {
    const cg_minifloat_ q = cg_small_float_of_(format);
    for (size_t i = 0; i < n; i++) {
        const float f = cg_load_(v, i);
        const uint32_t m = cg_as_bits_(cg_times_(f, inv_scale)) & CG_ABS_MASK_,
                       code = cg_small_float_round_(m, cg_noise_bits_(key, position + (uint32_t)i), q);
        out[i] = (uint8_t)(cg_small_sign_(format, cg_as_bits_(f)) | code);
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ size_t cg_fp8_stochastic32_(
    const float *v, size_t n, float inv_scale, int format, cg_key_ key, uint32_t position, uint8_t *out) {
    const cg_minifloat_ q = cg_small_float_of_(format);
    const cg_vf_ inv = cg_vf_set_(inv_scale);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        cg_vu_ u[4], x[4], noise[4], signs;
        cg_prefetch32_(v, i, CG_AHEAD_);
        cg_vu_noise_(key, position + (uint32_t)i, noise);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) {
            u[j] = cg_vu_floats_(v, i + 8 * j);
            x[j] = cg_small_float_round8_(cg_vu_abs_(cg_vu_of_(cg_vf_mul_(cg_vf_of_(u[j]), inv))), noise[j], q);
        }
        signs = cg_vb_narrow_tops_(u[0], u[1], u[2], u[3]);
        if (format == CG_SMALL_E2M1_) signs = cg_vu_shr_(signs, 4); /* within each byte: no others are set */
        cg_vb_put_(out + i, cg_vu_or_(cg_vb_narrow_add_(x[0], x[1], x[2], x[3], 0), signs));
    }
    return i;
}
CG_VECTOR_FN_ void cg_fp8_stochastic_simd_(
    const float *v, size_t n, float inv_scale, int format, cg_key_ key, uint32_t position, uint8_t *out) {
    const size_t head = cg_noise_head_(1, position, n);
    size_t i;
    cg_fp8_stochastic_scalar_(v, head, inv_scale, format, key, position, out);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    out += head;
    n -= head;
    i = format == CG_SMALL_E4M3_   ? cg_fp8_stochastic32_(v, n, inv_scale, CG_SMALL_E4M3_, key, position, out)
        : format == CG_SMALL_E5M2_ ? cg_fp8_stochastic32_(v, n, inv_scale, CG_SMALL_E5M2_, key, position, out)
                                   : cg_fp8_stochastic32_(v, n, inv_scale, CG_SMALL_E2M1_, key, position, out);
    cg_fp8_stochastic_scalar_(cg_at_(v, i), n - i, inv_scale, format, key, position + (uint32_t)i, out + i);
}
#endif

/* nf4_stochastic: t = v*inv_scale, rounded, lies above value[i] and up to value[i + 1] of 16 ascending values; the
   symbol is i, or i + 1 with probability (t - value[i])/(value[i + 1] - value[i]). Below value[0] it is 0, above
   value[15] 15; a NaN gives 0. */
static void cg_nf4_stochastic_scalar_(
    const float *value, float inv_scale, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    float l[16]; /* a copy: symbols cannot alias it */
    memcpy(l, value, sizeof l);
    for (size_t i = 0; i < n; i++) {
        const float t = cg_times_(cg_load_(v, i), inv_scale),
                    u = cg_times_(
                        (float)(int32_t)(cg_noise_bits_(key, position + (uint32_t)i) >> 8), 5.9604644775390625e-8f);
        unsigned at = t > l[8] ? 8u : 0u; /* how many of l[1..14] t is above */
        at += t > l[at + 4] ? 4u : 0u;
        at += t > l[at + 2] ? 2u : 0u;
        at += at < 14 && t > l[at + 1] ? 1u : 0u;
        symbols[i] = (uint8_t)(at + (cg_times_(u, cg_minus_(l[at + 1], l[at])) < cg_minus_(t, l[at])));
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_nf4_stochastic_simd_(
    const float *value, float inv_scale, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    const size_t head = cg_noise_head_(1, position, n);
    const cg_vf_ inv = cg_vf_set_(inv_scale);
    cg_vf_ low, high, low_width, high_width;
    cg_search_tree_ tree;
    float limit[15], width[16];
    size_t i = 0;
    for (size_t j = 0; j < 15; j++) {
        limit[j] = j < 14 ? cg_load_(value, j + 1) : cg_as_float_(CG_INF_BITS_);
        width[j] = cg_minus_(cg_load_(value, j + 1), cg_load_(value, j));
    }
    width[15] = 0.0f;
    tree = cg_search_tree_make_(limit, 4);
    low = cg_vf_load_(value, 0);
    high = cg_vf_load_(value, 8);
    low_width = cg_vf_load_(width, 0);
    high_width = cg_vf_load_(width, 8);
    cg_nf4_stochastic_scalar_(value, inv_scale, key, position, v, head, symbols);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    symbols += head;
    n -= head;
    for (; i + 32 <= n; i += 32) {
        cg_vu_ x[4], noise[4];
        cg_prefetch32_(v, i, CG_AHEAD_);
        cg_vu_noise_(key, position + (uint32_t)i, noise);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) {
            const cg_vf_ t = cg_vf_mul_(cg_vf_load_(v, i + 8 * j), inv);
            const cg_vu_ at = cg_vu_sub_(cg_vu_set_(0), cg_search_(t, &tree, 4));
            const cg_vf_ part = cg_vf_mul_(cg_vf_uniform_(noise[j]), cg_vf_lookup16_(low_width, high_width, at));
            x[j] = cg_vu_sub_(at, cg_vf_gt_(cg_vf_sub_(t, cg_vf_lookup16_(low, high, at)), part));
        }
        cg_vb_put_(symbols + i, cg_vb_narrow_(x[0], x[1], x[2], x[3]));
    }
    cg_nf4_stochastic_scalar_(value, inv_scale, key, position + (uint32_t)i, cg_at_(v, i), n - i, symbols + i);
}
#endif

/* src/core/kernels/clip.h */
/* clip: the kernel that cuts values to a magnitude

   Offers   cut
   Needs    base, table, the vector layer
   Touches  nothing but its arguments */

/* cut: the sign of v with the smaller one of its magnitude and the limit, whose bits are limit_bits; a NaN counts as
   larger than any limit. out may be v. */
static void cg_cut_scalar_(const float *v, size_t n, uint32_t limit_bits, float *out) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = cg_load_bits_(v, i), m = u & CG_ABS_MASK_;
        cg_store_(out, i, cg_as_float_((u ^ m) | (m < limit_bits ? m : limit_bits)));
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_cut_simd_(const float *v, size_t n, uint32_t limit_bits, float *out) {
    const cg_vu_ limit = cg_vu_set_(limit_bits), sign = cg_vu_set_(CG_SIGN_BIT_);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        cg_prefetch32_(v, i, CG_AHEAD_);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) {
            const cg_vu_ u = cg_vu_floats_(v, i + 8 * j);
            cg_vf_store_(out, i + 8 * j, cg_vf_of_(cg_vu_or_(cg_vu_and_(u, sign), cg_vu_min_(cg_vu_abs_(u), limit))));
        }
    }
    cg_cut_scalar_(cg_at_(v, i), n - i, limit_bits, cg_at_mut_(out, i));
}
#endif

/* src/core/kernels/rate.h */
/* rate: kernels that turn values into levels of 16 bits and back, on one grid with a dead zone

   Offers   rate_encode, rate_decode
   Needs    base, random, table, the vector layer
   Touches  nothing but its arguments */

/* rate_encode: t = |v|*lift*inv, rounded twice; the level is t + dead cut to a whole number of at most 32767, or, if
   stochastic, t, at most 32766, rounded up with the probability of its fraction, which is compared with 31 bits of
   noise. A level of 1 becomes 0 where the noise is above keep, unless stochastic. Levels are integers of 16 bits of
   this machine. A NaN gives any level. */
CG_INLINE_ int32_t cg_rate_level_(const cg_rate_grid_ *g, float t, uint32_t noise) {
    int32_t level;
    if (!g->stochastic) {
        t = cg_plus_(t, g->dead);
        level = (int32_t)(t < 32767.0f ? t : 32767.0f);
        return level == 1 && noise > g->keep ? 0 : level;
    }
    t = t < 32766.0f ? t : 32766.0f;
    level = (int32_t)t;
    return level +
        (cg_times_((float)(int32_t)(noise >> 1), 4.656612873077393e-10f) < cg_minus_(t, (float)level)); /* 2^-31 */
}
static void cg_rate_encode_scalar_(
    const cg_rate_grid_ *g, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *out) {
    const int noisy = g->stochastic || g->keep != UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = cg_load_bits_(v, i);
        const float t = cg_times_(cg_times_(cg_as_float_(u & CG_ABS_MASK_), g->lift), g->inv);
        const int32_t m = cg_rate_level_(g, t, noisy ? cg_noise_bits_(key, position + (uint32_t)i) : 0);
        const int16_t level = (int16_t)(u >> 31 ? -m : m);
        memcpy(out + 2 * i, &level, 2);
    }
}
#if CG_VECTOR_
/* The low 16 bits of the levels of eight values with these hashes. */
CG_VECTOR_FN_ cg_vu_ cg_rate_encode8_(cg_vu_ u, cg_vu_ noise, const cg_rate_grid_ *g, int stochastic, int lift) {
    const cg_vu_ negative = cg_vu_sar_(u, 31);
    cg_vf_ t = cg_vf_of_(cg_vu_abs_(u));
    cg_vu_ m;
    if (lift) t = cg_vf_mul_(t, cg_vf_set_(g->lift));
    t = cg_vf_mul_(t, cg_vf_set_(g->inv));
    if (stochastic) {
        t = cg_vf_min_(t, cg_vf_set_(32766.0f));
        m = cg_vu_trunc_(t);
        t = cg_vf_sub_(t, cg_vf_int_(m));
        m = cg_vu_sub_(
            m, cg_vf_gt_(t, cg_vf_mul_(cg_vf_int_(cg_vu_shr_(noise, 1)), cg_vf_set_(4.656612873077393e-10f))));
    } else m = cg_vu_trunc_(cg_vf_min_(cg_vf_add_(t, cg_vf_set_(g->dead)), cg_vf_set_(32767.0f)));
    return cg_vu_and_(cg_vu_sub_(cg_vu_xor_(m, negative), negative), cg_vu_set_(0xffff));
}
CG_VECTOR_FN_ size_t cg_rate_encode32_(const cg_rate_grid_ *g, cg_key_ key, uint32_t position, const float *v, size_t n,
    uint8_t *out, int stochastic, int lift) {
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        cg_vu_ h[4], x[4];
        h[0] = h[1] = h[2] = h[3] = cg_vu_set_(0);
        cg_prefetch32_(v, i, CG_CHUNK_);
        if (stochastic) cg_vu_noise_(key, position + (uint32_t)i, h);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) x[j] = cg_rate_encode8_(cg_vu_floats_(v, i + 8 * j), h[j], g, stochastic, lift);
        cg_vu_put16_(out + 2 * i, x[0], x[1]);
        cg_vu_put16_(out + 2 * i + 32, x[2], x[3]);
    }
    return i;
}
CG_VECTOR_FN_ void cg_rate_encode_simd_(
    const cg_rate_grid_ *g, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *out) {
    const size_t head = cg_noise_head_(g->stochastic, position, n);
    size_t i = 0;
    if (head) cg_rate_encode_scalar_(g, key, position, v, head, out);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    out += 2 * head;
    n -= head;
    if (!g->stochastic && g->keep != UINT32_MAX) {
    } else if (g->lift != 1.0f) {
        i = g->stochastic ? cg_rate_encode32_(g, key, position, v, n, out, 1, 1)
                          : cg_rate_encode32_(g, key, position, v, n, out, 0, 1);
    } else
        i = g->stochastic ? cg_rate_encode32_(g, key, position, v, n, out, 1, 0)
                          : cg_rate_encode32_(g, key, position, v, n, out, 0, 0);
    if (i < n) cg_rate_encode_scalar_(g, key, position + (uint32_t)i, cg_at_(v, i), n - i, out + 2 * i);
}
#endif

/* rate_decode: level 1 is value[1], m > 1 is m*value[0] + value[2], rounded twice, and all are multiplied by value[3];
   finite after each step. Levels may end where out does, in the same bytes: they are read before these are written. */
static void cg_rate_decode_scalar_(const float *value, const uint8_t *in, size_t n, float *out) {
    for (size_t i = 0; i < n; i++) {
        int16_t level;
        int32_t m;
        float f = 0.0f;
        memcpy(&level, in + 2 * i, 2);
        m = level < 0 ? -level : level;
        if (m == 1) f = value[1];
        else if (m) f = cg_plus_(cg_times_(value[0], (float)m), value[2]);
        f = cg_saturate_(cg_times_(cg_saturate_(f), value[3]));
        cg_store_(out, i, level < 0 ? -f : f);
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_rate_decode_simd_(const float *value, const uint8_t *in, size_t n, float *out) {
    const cg_vf_ step = cg_vf_set_(value[0]), one = cg_vf_set_(value[1]), offset = cg_vf_set_(value[2]),
                 drop = cg_vf_set_(value[3]);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        cg_vu_ x[4];
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) x[j] = cg_vu_u16_(in + 2 * (i + 8 * j));
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) {
            const cg_vu_ wide = cg_vu_shl_(x[j], 16), negative = cg_vu_sar_(wide, 31),
                         m = cg_vu_sub_(cg_vu_xor_(cg_vu_sar_(wide, 16), negative), negative);
            const cg_vf_ f = cg_vf_int_(m), far = cg_vf_add_(cg_vf_mul_(f, step), offset);
            const cg_vu_ some = cg_vf_gt_(f, cg_vf_set_(0.5f)), more = cg_vf_gt_(f, cg_vf_set_(1.5f));
            cg_vu_ r = cg_vu_xor_(cg_vu_of_(one), cg_vu_and_(cg_vu_xor_(cg_vu_of_(one), cg_vu_of_(far)), more));
            r = cg_vu_and_(cg_vu_of_(cg_vf_finite_(cg_vf_mul_(cg_vf_finite_(cg_vf_of_(r)), drop))), some);
            cg_vf_store_(out, i + 8 * j, cg_vf_of_(cg_vu_xor_(r, cg_vu_shl_(negative, 31))));
        }
    }
    if (i < n) cg_rate_decode_scalar_(value, in + 2 * i, n - i, cg_at_mut_(out, i));
}
#endif

/* src/core/kernels/dynamic8.h */
/* dynamic8: kernels of the 8-bit dynamic tree format, and of Strom's fixed threshold

   Offers   dynamic8_encode, dynamic8_decode, strom_encode; cg_dynamic8_limits_
   Needs    base, table, the vector layer
   Touches  nothing but its arguments
   Dettmers' tree: a sign, then 7 bits that are z zeros, a 1 and 6-z bits f, for 10^-z*(0.1 + 0.9*(f + 0.5)/2^(6-z));
   no 1 at all is 0. So far it is the positive half of bitsandbytes' map, which has 1.0 in addition, on that side
   alone. Here code 127 is 1.0 (not 0.99297), so that the largest magnitude is exact on both sides. As numbers the
   7-bit codes are in the order of the magnitudes. Code 0 has no sign. */

/* the magnitude of each code */
static const float cg_dynamic8_values_[128] = { .0f, 5.49999982e-7f, 3.24999996e-6f, 7.7499999e-6f, 2.12499999e-5f,
    4.37499984e-5f, 6.62500024e-5f, 8.87499991e-5f, .000156249997f, .000268750009f, .000381249993f, .000493749976f,
    .000606250018f, .000718750001f, .000831249985f, .000943750027f, .00128125004f, .00184375001f, .00240624999f,
    .00296874996f, .00353124994f, .00409374991f, .00465625012f, .00521874987f, .00578125007f, .00634374982f,
    .00690625003f, .00746874977f, .00803124998f, .00859375019f, .00915625039f, .00971874967f, .0114062503f,
    .0142187504f, .0170312505f, .0198437497f, .0226562507f, .0254687499f, .0282812491f, .0310937501f, .0339062512f,
    .0367187485f, .0395312496f, .0423437506f, .0451562516f, .047968749f, .05078125f, .053593751f, .0564062484f,
    .0592187494f, .0620312504f, .0648437515f, .0676562488f, .0704687536f, .0732812509f, .0760937482f, .078906253f,
    .0817187503f, .0845312476f, .0873437524f, .0901562497f, .092968747f, .0957812518f, .0985937491f, .107031249f,
    .12109375f, .135156244f, .149218753f, .163281247f, .177343756f, .19140625f, .205468744f, .219531253f, .233593747f,
    .247656256f, .26171875f, .275781244f, .289843738f, .303906262f, .317968756f, .33203125f, .346093744f, .360156238f,
    .374218762f, .388281256f, .40234375f, .416406244f, .430468738f, .444531262f, .458593756f, .47265625f, .486718744f,
    .500781238f, .514843762f, .528906226f, .54296875f, .557031274f, .571093738f, .585156262f, .599218726f, .61328125f,
    .627343774f, .641406238f, .655468762f, .669531226f, .68359375f, .697656274f, .711718738f, .725781262f, .739843726f,
    .75390625f, .767968774f, .782031238f, .796093762f, .810156226f, .82421875f, .838281274f, .852343738f, .866406262f,
    .880468726f, .89453125f, .908593774f, .922656238f, .936718762f, .950781226f, .96484375f, .978906274f, 1.0f };
/* The code is above i where t > limits[i]: the midpoint of values i and i+1, rounded down. */
static const float cg_dynamic8_limits_[128] = { 2.74999991e-7f, 1.89999992e-6f, 5.49999959e-6f, 1.44999995e-5f,
    3.24999965e-5f, 5.50000004e-5f, 7.75000008e-5f, .000122499987f, .000212500003f, .000325000001f, .000437499984f,
    .000549999997f, .000662499981f, .000774999964f, .000887500006f, .00111249997f, .00156250002f, .00212499988f,
    .00268749986f, .00324999983f, .00381249981f, .00437500002f, .00493749976f, .00549999997f, .00606249971f,
    .00662499992f, .00718749966f, .00774999987f, .00831250008f, .00887500029f, .00943749957f, .0105625f, .0128124999f,
    .015625f, .0184374992f, .0212500002f, .0240624994f, .0268749986f, .0296874996f, .0324999988f, .0353124999f,
    .0381249972f, .0409374982f, .0437499993f, .0465625003f, .0493749976f, .0521874987f, .0549999997f, .057812497f,
    .0606249981f, .0634374991f, .0662499964f, .0690625012f, .0718749985f, .0746874958f, .0775000006f, .0803124979f,
    .0831249952f, .0859375f, .0887499973f, .0915624946f, .0943749994f, .0971874967f, .102812499f, .114062496f,
    .128124997f, .142187491f, .15625f, .170312494f, .184375003f, .198437497f, .212499991f, .2265625f, .240624994f,
    .254687488f, .268749982f, .282812476f, .296875f, .310937494f, .324999988f, .339062482f, .353124976f, .3671875f,
    .381249994f, .395312488f, .409374982f, .423437476f, .4375f, .451562494f, .465624988f, .479687482f, .493749976f,
    .5078125f, .521874964f, .535937488f, .550000012f, .564062476f, .578125f, .592187464f, .606249988f, .620312512f,
    .634374976f, .6484375f, .662499964f, .676562488f, .690625012f, .704687476f, .71875f, .732812464f, .746874988f,
    .760937512f, .774999976f, .7890625f, .803124964f, .817187488f, .831250012f, .845312476f, .859375f, .873437464f,
    .887499988f, .901562512f, .915624976f, .9296875f, .943749964f, .957812488f, .971875012f, .989453137f, CG_FLT_MAX_ };
/* dynamic8_encode: t = |v*inv_scale|, rounded, at most 1 (as is a NaN), to the nearest value, ties to the lower. */
static void cg_dynamic8_encode_scalar_(const float *v, size_t n, float inv_scale, uint8_t *symbols) {
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        uint32_t u = cg_as_bits_(cg_times_(f, inv_scale)) & CG_ABS_MASK_, code = 0;
        float t = cg_as_float_(u < 0x3f800000u ? u : 0x3f800000u);
        for (uint32_t step = 64; step; step /= 2) code += t > cg_dynamic8_limits_[code + step - 1] ? step : 0;
        symbols[i] = (uint8_t)(code | (code ? cg_as_bits_(f) >> 24 & 0x80u : 0u));
    }
}
/* As a function of t the code is close to seven straight lines, one per decade, each the lowest of them in its decade.
   These lines, drawn 0.6 too low and rounded down, give the code or one less (with 0.2 to spare, so that rounding does
   no harm); a comparison with one limit decides. */
#if CG_VECTOR_
static const float cg_dynamic8_slope_[8] = { 1111111.11f, 222222.222f, 44444.4444f, 8888.88889f, 1777.77778f,
    355.555556f, 71.1111111f, 0.0f };
static const float cg_dynamic8_intercept_[8] = { .288888889f, 1.17777778f, 2.95555556f, 6.51111111f, 13.6222222f,
    27.8444444f, 56.2888889f, 0.0f };
/* -1 where u, as the bits of a float that is not negative, is above limit */
CG_VECTOR_FN_ cg_vu_ cg_above8_(cg_vu_ u, float limit) { return cg_vu_gt_(u, cg_vu_set_(cg_as_bits_(limit))); }
CG_VECTOR_FN_ cg_vu_ cg_dynamic8_encode8_(cg_vu_ v, cg_vf_ inv, cg_vf_ slope, cg_vf_ intercept) {
    const float *limit = cg_dynamic8_limits_;
    const cg_vu_ u = cg_vu_min_(cg_vu_abs_(cg_vu_of_(cg_vf_mul_(cg_vf_of_(v), inv))), cg_vu_set_(0x3f800000u));
    const cg_vu_ a = cg_vu_add_(cg_above8_(u, 1e-1f), cg_above8_(u, 1e-2f)),
                 b = cg_vu_add_(cg_above8_(u, 1e-3f), cg_above8_(u, 1e-4f)),
                 c = cg_vu_add_(cg_above8_(u, 1e-5f), cg_above8_(u, 1e-6f));
    const cg_vu_ decade = cg_vu_sub_(cg_vu_set_(0), cg_vu_add_(cg_vu_add_(a, b), c));
    const cg_vf_ t = cg_vf_of_(u), x = cg_vf_mul_(t, cg_vf_lookup8_(slope, decade));
    const cg_vu_ code = cg_vu_trunc_(cg_vf_add_(x, cg_vf_lookup8_(intercept, decade)));
    uint32_t at[8];
    cg_vu_store_(at, code);
    /* eight loads: no slower than a gather instruction, and faster where microcode slows those down */
    return cg_vu_sub_(code,
        cg_vf_gt_(t,
            cg_vf_make_(limit[at[0]], limit[at[1]], limit[at[2]], limit[at[3]], limit[at[4]], limit[at[5]],
                limit[at[6]], limit[at[7]])));
}
CG_VECTOR_FN_ void cg_dynamic8_encode_simd_(const float *v, size_t n, float inv_scale, uint8_t *symbols) {
    const cg_vf_ inv = cg_vf_set_(inv_scale), slope = cg_vf_load_(cg_dynamic8_slope_, 0),
                 intercept = cg_vf_load_(cg_dynamic8_intercept_, 0);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const cg_vu_ a = cg_vu_floats_(v, i), b = cg_vu_floats_(v, i + 8), c = cg_vu_floats_(v, i + 16),
                     d = cg_vu_floats_(v, i + 24);
        const cg_vu_ code = cg_vb_narrow_(cg_dynamic8_encode8_(a, inv, slope, intercept),
            cg_dynamic8_encode8_(b, inv, slope, intercept), cg_dynamic8_encode8_(c, inv, slope, intercept),
            cg_dynamic8_encode8_(d, inv, slope, intercept));
        cg_prefetch32_(v, i, CG_CHUNK_);
        cg_vb_put_(symbols + i, cg_vu_or_(code, cg_vu_andnot_(cg_vb_is_zero_(code), cg_vb_narrow_tops_(a, b, c, d))));
    }
    if (i < n) cg_dynamic8_encode_scalar_(cg_at_(v, i), n - i, inv_scale, symbols + i);
}
#endif

/* dynamic8_decode: the value of the code times scale, rounded; -0 (0x80) counts as +0. */
static void cg_dynamic8_decode_scalar_(const uint8_t *symbols, size_t n, float scale, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) {
        float f = cg_dynamic8_values_[symbols[i] & 0x7f];
        cg_store_(out, i, cg_times_(symbols[i] > 0x80 ? -f : f, scale));
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_dynamic8_decode_simd_(
    const uint8_t *symbols, size_t n, float scale, float *out, int non_temporal) {
    const float *value = cg_dynamic8_values_;
    const cg_vf_ scale_v = cg_vf_set_(scale);
    const cg_vu_ minus_zero = cg_vu_set_(0x80), sign_bit = cg_vu_set_(CG_SIGN_BIT_);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint8_t *p = symbols + i;
        const cg_vf_ f = cg_vf_make_(value[p[0] & 0x7f], value[p[1] & 0x7f], value[p[2] & 0x7f], value[p[3] & 0x7f],
            value[p[4] & 0x7f], value[p[5] & 0x7f], value[p[6] & 0x7f], value[p[7] & 0x7f]);
        const cg_vu_ sign = cg_vu_and_(cg_vu_gt_(cg_vu_bytes_(p), minus_zero), sign_bit);
        cg_vf_stream_(out, i, cg_vf_mul_(cg_vf_of_(cg_vu_or_(cg_vu_of_(f), sign)), scale_v), non_temporal);
    }
    if (i < n) cg_dynamic8_decode_scalar_(symbols + i, n - i, scale, cg_at_mut_(out, i), 0);
}
#endif

/* strom_encode: symbol 2 where v > tau, 0 where v < -tau, else (a NaN, too) 1; tau >= 0. */
static void cg_strom_encode_scalar_(const float *v, size_t n, float tau, uint8_t *symbols) {
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        symbols[i] = (uint8_t)(1 + (f > tau) - (f < -tau));
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_strom_encode8_(const float *v, size_t i, cg_vf_ tau, cg_vf_ minus) {
    const cg_vf_ f = cg_vf_load_(v, i);
    return cg_vu_sub_(cg_vf_gt_(minus, f), cg_vf_gt_(f, tau));
}
CG_VECTOR_FN_ void cg_strom_encode_simd_(const float *v, size_t n, float tau, uint8_t *symbols) {
    const cg_vf_ t = cg_vf_set_(tau), m = cg_vf_set_(-tau);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const cg_vu_ s = cg_vb_narrow_signed_(cg_strom_encode8_(v, i, t, m), cg_strom_encode8_(v, i + 8, t, m),
            cg_strom_encode8_(v, i + 16, t, m), cg_strom_encode8_(v, i + 24, t, m));
        cg_prefetch32_(v, i, CG_AHEAD_);
        cg_vb_put_(symbols + i, cg_vb_add_(s, cg_vb_set_(1)));
    }
    if (i < n) cg_strom_encode_scalar_(cg_at_(v, i), n - i, tau, symbols + i);
}
#endif

/* src/core/kernels/vote.h */
/* vote: the kernel of the majority vote over strings of bits

   Offers   vote
   Needs    base, table, the vector layer
   Touches  nothing but its arguments
   Counters are bit planes: bit j of plane p is bit p of the counter of bit j. Eight strings are added at a time by full
   adders. Counters start from 2^P - 1 - count/2 instead of 0: then plane P says whether more than half have a 1. */

#define CG_VOTE_PLANES_ 16u /* enough for 65535 strings */
/* P: at least 3, as eight strings add to three planes before they carry */
CG_INLINE_ unsigned cg_vote_result_plane_(size_t count) { return count < 16 ? 3 : cg_log2_(count / 2) + 1; }
CG_INLINE_ uint32_t cg_vote_start_(size_t count) {
    return (1u << cg_vote_result_plane_(count)) - 1u - (uint32_t)(count / 2);
}
CG_INLINE_ uint64_t cg_full_adder_(
    uint64_t *s, uint64_t a, uint64_t b) { /* *s becomes the sum of three bits; returns the carry */
    uint64_t x = *s ^ a, carry = (*s & a) | (x & b);
    *s = x ^ b;
    return carry;
}
/* vote: each bit of out is 1 where more than half of the strings in[0..count) have a 1; a tie is 0. count <= 65535.
   Here from byte `from` to `bytes`. out may not overlap the strings. */
static void cg_vote_from_(const uint8_t *const *in, size_t count, size_t from, size_t bytes, uint8_t *out) {
    const unsigned result_plane = cg_vote_result_plane_(count);
    const uint32_t start_count = cg_vote_start_(count);
    for (; from < bytes; from += 64) { /* a cache line of each string at a time */
        const size_t many = cg_min_(64, bytes - from);
        uint64_t planes[8][CG_VOTE_PLANES_];
        for (unsigned j = 0; j < 8; j++)
            for (unsigned p = 0; p <= result_plane; p++) planes[j][p] = start_count >> p & 1 ? ~(uint64_t)0 : 0;
        for (size_t i = 0; i < count; i += 8) {
            for (size_t j = 0; 8 * j < many; j++) {
                uint64_t w[8], *s = planes[j], a, b, c, d;
                const size_t left = cg_min_(8, many - 8 * j);
                for (size_t k = 0; k < 8; k++) {
                    w[k] = 0;
                    if (i + k >= count) continue;
                    if (left == 8) memcpy(&w[k], in[i + k] + from + 8 * j, 8);
                    else memcpy(&w[k], in[i + k] + from + 8 * j, left);
                }
                a = cg_full_adder_(&s[0], w[0], w[1]);
                b = cg_full_adder_(&s[0], w[2], w[3]);
                c = cg_full_adder_(&s[1], a, b);
                a = cg_full_adder_(&s[0], w[4], w[5]);
                b = cg_full_adder_(&s[0], w[6], w[7]);
                d = cg_full_adder_(&s[1], a, b);
                c = cg_full_adder_(&s[2], c, d);
                for (unsigned p = 3; p <= result_plane; p++) {
                    d = s[p] & c;
                    s[p] ^= c;
                    c = d;
                }
            }
        }
        for (size_t j = 0; 8 * j < many; j++)
            memcpy(out + from + 8 * j, &planes[j][result_plane], cg_min_(8, many - 8 * j));
    }
}
static void cg_vote_scalar_(const uint8_t *const *in, size_t count, size_t bytes, uint8_t *out) {
    cg_vote_from_(in, count, 0, bytes, out);
}
#if CG_VECTOR_
/* Adds 32 bytes of up to eight strings to the planes s[0..2]; returns the carry to plane 3. */
CG_VECTOR_FN_ cg_vu_ cg_vote8_(const uint8_t *const *in, size_t many, size_t at, cg_vu_ *s) {
    cg_vu_ w[8], a, b, c, d;
    CG_UNROLL_
    for (size_t k = 0; k < 8; k++) w[k] = k < many ? cg_vu_load_(in[k] + at) : cg_vu_set_(0);
    a = cg_vu_full_adder_(&s[0], w[0], w[1]);
    b = cg_vu_full_adder_(&s[0], w[2], w[3]);
    c = cg_vu_full_adder_(&s[1], a, b);
    a = cg_vu_full_adder_(&s[0], w[4], w[5]);
    b = cg_vu_full_adder_(&s[0], w[6], w[7]);
    d = cg_vu_full_adder_(&s[1], a, b);
    return cg_vu_full_adder_(&s[2], c, d);
}
CG_VECTOR_FN_ cg_vu_ cg_broadcast_bit_(uint32_t start_count, unsigned p) {
    return cg_vu_set_(start_count >> p & 1 ? ~0u : 0u);
}
/* Up to eight strings: the carry to plane 3 is the result. Returns the number of bytes done. */
CG_VECTOR_FN_ size_t cg_vote_few_(const uint8_t *const *in, size_t count, size_t bytes, uint8_t *out) {
    const uint32_t start_count = cg_vote_start_(count);
    const cg_vu_ s0 = cg_broadcast_bit_(start_count, 0), s1 = cg_broadcast_bit_(start_count, 1),
                 s2 = cg_broadcast_bit_(start_count, 2);
    const uint8_t *from[8]; /* copies: out cannot alias them */
    size_t at = 0;
    for (size_t k = 0; k < 8; k++) from[k] = in[k < count ? k : 0];
    for (; at + 32 <= bytes; at += 32) {
        cg_vu_ s[3];
        s[0] = s0;
        s[1] = s1;
        s[2] = s2;
        cg_vu_store_(out + at, cg_vote8_(from, count, at, s));
    }
    return at;
}
/* More strings, 512 bytes of each at a time: long enough runs for memory, and the planes stay in L1. */
CG_VECTOR_FN_ size_t cg_vote_many_(const uint8_t *const *in, size_t count, size_t bytes, uint8_t *out) {
    const unsigned result_plane = cg_vote_result_plane_(count);
    const uint32_t start_count = cg_vote_start_(count);
    cg_vu_ planes[16][CG_VOTE_PLANES_];
    size_t at = 0;
    for (; at + 32 <= bytes;) {
        const size_t rows = cg_min_(16, (bytes - at) / 32);
        for (size_t j = 0; j < rows; j++)
            for (unsigned p = 0; p <= result_plane; p++) planes[j][p] = cg_broadcast_bit_(start_count, p);
        for (size_t i = 0; i < count; i += 8) {
            const size_t many = cg_min_(8, count - i);
            /* prefetches the next run of each string: two rows are a cache line, so half of the strings at each */
            for (size_t j = 0; j < rows; j++) {
                cg_vu_ *s = planes[j], c, d;
                for (size_t k = j % 2 * 4; k < cg_min_(many, j % 2 * 4 + 4); k++)
                    CG_PREFETCH_(in[i + k] + at + 512 + 32 * j);
                c = many == 8 ? cg_vote8_(in + i, 8, at + 32 * j, s) : cg_vote8_(in + i, many, at + 32 * j, s);
                for (unsigned p = 3; p <= result_plane; p++) {
                    d = cg_vu_and_(s[p], c);
                    s[p] = cg_vu_xor_(s[p], c);
                    c = d;
                }
            }
        }
        for (size_t j = 0; j < rows; j++, at += 32) cg_vu_store_(out + at, planes[j][result_plane]);
    }
    return at;
}
CG_VECTOR_FN_ void cg_vote_simd_(const uint8_t *const *in, size_t count, size_t bytes, uint8_t *out) {
    size_t at;
    switch (count) {
    case 0: at = 0; break;
    case 1: at = cg_vote_few_(in, 1, bytes, out); break;
    case 2: at = cg_vote_few_(in, 2, bytes, out); break;
    case 3: at = cg_vote_few_(in, 3, bytes, out); break;
    case 4: at = cg_vote_few_(in, 4, bytes, out); break;
    case 5: at = cg_vote_few_(in, 5, bytes, out); break;
    case 6: at = cg_vote_few_(in, 6, bytes, out); break;
    case 7: at = cg_vote_few_(in, 7, bytes, out); break;
    case 8: at = cg_vote_few_(in, 8, bytes, out); break;
    default: at = cg_vote_many_(in, count, bytes, out);
    }
    if (at < bytes) cg_vote_from_(in, count, at, bytes, out);
}
#endif

/* src/core/kernels/matrix.h */
/* matrix: kernels that multiply a matrix by a few vectors, and that expand a product of factors

   Offers   project, project_t, lowrank_tile; CG_TILE_COLS_, CG_TILE_ROWS_, CG_PANEL_, CG_POW2_64_
   Needs    base, table, the vector layer
   Touches  nothing but its arguments
   project multiplies two f32 values in f64: the product has 48 bits, so it neither rounds nor overflows nor loses a
   denormal, and fusing it with an addition changes nothing. project_t and lowrank_tile multiply in f32, for speed. */

#define CG_TILE_COLS_ 512u                 /* columns that project sums before it adds up its lanes */
#define CG_POW2_64_ 18446744073709551616.0 /* 2^64: brings what f32 cannot hold into its range */
#define CG_TILE_ROWS_ 8u                   /* rows that project_t sums in f32, and the height of a tile */
#define CG_PANEL_ 32u                      /* vectors that are multiplied with a matrix at once */

/* project: p[a][i] += sum over j of m[i][j]*q[a][j], for a < r: r columns of the product of M and q^T. The sum has four
   lanes by j % 4, added as (0 + 2) + (1 + 3). Rows of m, q and p are stride, q_stride and p_stride values apart; the
   values of q are representable in f32; cols <= CG_TILE_COLS_. prefetch: NULL, or rows*cols floats that come next. */
static void cg_project_scalar_(const float *m, size_t stride, size_t rows, size_t cols, const double *q,
    size_t q_stride, unsigned r, double *p, size_t p_stride, const float *prefetch) {
    (void)prefetch;
    for (size_t i = 0; i < rows; i++) {
        const float *v = cg_at_(m, i * stride);
        for (unsigned a = 0; a < r; a++) {
            const double *w = q + a * q_stride;
            double s[4] = { 0.0, 0.0, 0.0, 0.0 };
            size_t j = 0;
            for (; j + 4 <= cols; j += 4)
                for (size_t l = 0; l < 4; l++) s[l] += (double)cg_load_(v, j + l) * w[j + l];
            for (; j < cols; j++) s[j & 3] += (double)cg_load_(v, j) * w[j];
            p[a * p_stride + i] += (s[0] + s[2]) + (s[1] + s[3]);
        }
    }
}
#if CG_VECTOR_
/* The columns j..cols-1 that fill no vector, then the sum of the lanes s to *p. */
CG_INLINE_ void cg_project_rest_(double *s, const float *v, const double *w, size_t j, size_t cols, double *p) {
    for (; j < cols; j++) s[j & 3] += (double)cg_load_(v, j) * w[j];
    *p += (s[0] + s[2]) + (s[1] + s[3]);
}
/* four values of two rows, times one to four vectors */
CG_VECTOR_FN_ void cg_project4_(
    const float *v, const float *u, size_t j, const double *q, size_t q_stride, int vectors, cg_vd_ *s, cg_vd_ *t) {
    const cg_vd_ x = cg_vd_floats_(v, j), y = cg_vd_floats_(u, j);
    CG_UNROLL_
    for (int a = 0; a < vectors; a++) {
        const cg_vd_ w = cg_vd_load_(q + (size_t)a * q_stride + j);
        s[a] = cg_vd_add_(s[a], cg_vd_mul_(x, w));
        t[a] = cg_vd_add_(t[a], cg_vd_mul_(y, w));
    }
}
/* Rows v and u (only v if next is 0), times `vectors` (1..4, a constant) rows of q. */
CG_VECTOR_FN_ void cg_project2_(const float *v, const float *u, size_t cols, const double *q, size_t q_stride,
    int vectors, double *p, size_t p_stride, size_t next, const float *prefetch) {
    cg_vd_ s[4], t[4];
    size_t j = 0;
    CG_UNROLL_
    for (int a = 0; a < 4; a++) s[a] = t[a] = cg_vd_zero_();
    for (; j + 16 <= cols; j += 16) {
        if (prefetch) { /* rows of a matrix are pages apart, where hardware prefetching does not look */
            CG_PREFETCH_L2_(cg_at_(prefetch, 2 * j));
            CG_PREFETCH_L2_(cg_at_(prefetch, 2 * j + 16));
        }
        cg_project4_(v, u, j, q, q_stride, vectors, s, t);
        cg_project4_(v, u, j + 4, q, q_stride, vectors, s, t);
        cg_project4_(v, u, j + 8, q, q_stride, vectors, s, t);
        cg_project4_(v, u, j + 12, q, q_stride, vectors, s, t);
    }
    for (; j + 4 <= cols; j += 4) cg_project4_(v, u, j, q, q_stride, vectors, s, t);
    CG_UNROLL_
    for (int a = 0; a < vectors; a++, q += q_stride, p += p_stride) {
        double lanes[4];
        cg_vd_store_(lanes, s[a]);
        cg_project_rest_(lanes, v, q, j, cols, p);
        cg_vd_store_(lanes, t[a]);
        if (next) cg_project_rest_(lanes, u, q, j, cols, p + 1);
    }
}
CG_VECTOR_FN_ void cg_project_simd_(const float *m, size_t stride, size_t rows, size_t cols, const double *q,
    size_t q_stride, unsigned r, double *p, size_t p_stride, const float *prefetch) {
    for (size_t i = 0; i < rows; i += 2) {
        const size_t next = i + 1 < rows;
        const float *v = cg_at_(m, i * stride), *u = cg_at_(v, next * stride),
                    *prefetch_row = prefetch ? cg_at_(prefetch, i * cols) : NULL;
        const double *w = q;
        double *t = p + i;
        unsigned left = r;
        for (; left >= 4; left -= 4, w += 4 * q_stride, t += 4 * p_stride, prefetch_row = NULL)
            cg_project2_(v, u, cols, w, q_stride, 4, t, p_stride, next, prefetch_row);
        if (left == 3) cg_project2_(v, u, cols, w, q_stride, 3, t, p_stride, next, prefetch_row);
        if (left == 2) cg_project2_(v, u, cols, w, q_stride, 2, t, p_stride, next, prefetch_row);
        if (left == 1) cg_project2_(v, u, cols, w, q_stride, 1, t, p_stride, next, prefetch_row);
    }
}
#endif

/* project_t: q[a][j] += sum over i of p[i][a]*m[i][j], for a < r: the product of p^T and M. Products and sums are
   f32, in the order of the rows, over CG_TILE_ROWS_ rows at a time; those sums are added in f64. They may overflow.
   Strides and prefetch as for project. */
static void cg_project_t_scalar_(const float *m, size_t stride, size_t rows, size_t cols, const float *p,
    size_t p_stride, unsigned r, double *q, size_t q_stride, const float *prefetch) {
    (void)prefetch;
    for (size_t i = 0; i < rows; i += CG_TILE_ROWS_)
        for (unsigned a = 0; a < r; a++)
            for (size_t j = 0; j < cols; j++) {
                float s = 0.0f;
                for (size_t l = i; l < rows && l < i + CG_TILE_ROWS_; l++)
                    s = cg_plus_(s, cg_times_(cg_load_(p, l * p_stride + a), cg_load_(m, l * stride + j)));
                q[a * q_stride + j] += (double)s;
            }
}
#if CG_VECTOR_
/* q[0..7] += s */
CG_VECTOR_FN_ void cg_vd_add8_(double *q, cg_vf_ s) {
    cg_vd_store_(q, cg_vd_add_(cg_vd_load_(q), cg_vd_low_(s)));
    cg_vd_store_(q + 4, cg_vd_add_(cg_vd_load_(q + 4), cg_vd_high_(s)));
}
/* Up to CG_TILE_ROWS_ rows, `vectors` (1..4, a constant) columns of p; cols % 16 == 0. */
CG_VECTOR_FN_ void cg_project_t8_(const float *m, size_t stride, size_t rows, size_t cols, const float *p,
    size_t p_stride, int vectors, double *q, size_t q_stride, const float *prefetch) {
    for (size_t j = 0; j + 16 <= cols; j += 16) {
        cg_vf_ s[4], t[4];
        const float *v = cg_at_(m, j);
        CG_UNROLL_
        for (int a = 0; a < 4; a++) s[a] = t[a] = cg_vf_set_(0.0f);
        for (size_t i = 0; i < rows; i++, v = cg_at_(v, stride)) {
            const cg_vf_ x = cg_vf_load_(v, 0), y = cg_vf_load_(v, 8);
            if (prefetch) CG_PREFETCH_L2_(cg_at_(prefetch, rows * j + 16 * i));
            CG_UNROLL_
            for (int a = 0; a < vectors; a++) {
                const cg_vf_ w = cg_vf_set_(cg_load_(p, i * p_stride + (size_t)a));
                s[a] = cg_vf_add_(s[a], cg_vf_mul_(w, x));
                t[a] = cg_vf_add_(t[a], cg_vf_mul_(w, y));
            }
        }
        CG_UNROLL_
        for (int a = 0; a < vectors; a++) {
            cg_vd_add8_(q + (size_t)a * q_stride + j, s[a]);
            cg_vd_add8_(q + (size_t)a * q_stride + j + 8, t[a]);
        }
    }
}
CG_VECTOR_FN_ void cg_project_t_simd_(const float *m, size_t stride, size_t rows, size_t cols, const float *p,
    size_t p_stride, unsigned r, double *q, size_t q_stride, const float *prefetch) {
    const size_t vector_cols = cols & ~(size_t)15;
    for (size_t i = 0; i < rows && vector_cols; i += CG_TILE_ROWS_) {
        const size_t many = cg_min_(CG_TILE_ROWS_, rows - i);
        const float *v = cg_at_(m, i * stride), *w = cg_at_(p, i * p_stride),
                    *prefetch_row = prefetch ? cg_at_(prefetch, i * cols) : NULL;
        double *t = q;
        unsigned left = r;
        for (; left >= 4; left -= 4, w = cg_at_(w, 4), t += 4 * q_stride, prefetch_row = NULL)
            cg_project_t8_(v, stride, many, vector_cols, w, p_stride, 4, t, q_stride, prefetch_row);
        if (left == 3) cg_project_t8_(v, stride, many, vector_cols, w, p_stride, 3, t, q_stride, prefetch_row);
        if (left == 2) cg_project_t8_(v, stride, many, vector_cols, w, p_stride, 2, t, q_stride, prefetch_row);
        if (left == 1) cg_project_t8_(v, stride, many, vector_cols, w, p_stride, 1, t, q_stride, prefetch_row);
    }
    if (vector_cols < cols)
        cg_project_t_scalar_(
            cg_at_(m, vector_cols), stride, rows, cols - vector_cols, p, p_stride, r, q + vector_cols, q_stride, NULL);
}
#endif

/* lowrank_tile: out[i][j] = p[i][0]*q[0][j] + p[i][1]*q[1][j] + ..., j < count, products and sums rounded to f32 in
   this order; where that is not finite, summed in f64 and kept within the range of f32. p has r values per row, rows of
   q and out are q_stride and out_stride floats apart. Finite factors give finite values. non_temporal: every row of out
   begins at a multiple of 16 bytes. */
CG_INLINE_ float cg_lowrank_one_(const float *p, const float *q, size_t q_stride, unsigned r, size_t j) {
    float s = 0.0f;
    for (unsigned a = 0; a < r; a++) {
        float t = cg_times_(cg_load_(p, a), cg_load_(q, a * q_stride + j));
        s = a ? cg_plus_(s, t) : t;
    }
    if ((cg_as_bits_(s) & CG_ABS_MASK_) >= CG_INF_BITS_) {
        double d = 0.0;
        for (unsigned a = 0; a < r; a++) d += (double)cg_load_(p, a) * (double)cg_load_(q, a * q_stride + j);
        s = cg_saturate64_(d);
    }
    return s;
}
static void cg_lowrank_tile_scalar_(const float *p, const float *q, size_t q_stride, unsigned r, size_t rows,
    size_t count, float *out, size_t out_stride, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < count; j++)
            cg_store_(out, i * out_stride + j, cg_lowrank_one_(cg_at_(p, i * r), q, q_stride, r, j));
}
#if CG_VECTOR_
/* rows is 1 or 4, a constant; count % 16 == 0, r > 0 */
CG_VECTOR_FN_ void cg_lowrank16_(const float *p, const float *q, size_t q_stride, unsigned r, size_t count, float *out,
    size_t out_stride, size_t rows, int non_temporal) {
    for (size_t j = 0; j + 16 <= count; j += 16) {
        cg_vf_ s[4], t[4];
        cg_vu_ absmax = cg_vu_set_(0);
        const float *v = cg_at_(q, j);
        CG_UNROLL_
        for (size_t i = 0; i < rows; i++) {
            const cg_vf_ w = cg_vf_set_(cg_load_(p, i * r));
            s[i] = cg_vf_mul_(w, cg_vf_load_(v, 0));
            t[i] = cg_vf_mul_(w, cg_vf_load_(v, 8));
        }
        for (size_t a = 1; a < r; a++) {
            const cg_vf_ x = cg_vf_load_(v = cg_at_(v, q_stride), 0), y = cg_vf_load_(v, 8);
            CG_UNROLL_
            for (size_t i = 0; i < rows; i++) {
                const cg_vf_ w = cg_vf_set_(cg_load_(p, a + i * r));
                s[i] = cg_vf_add_(s[i], cg_vf_mul_(w, x));
                t[i] = cg_vf_add_(t[i], cg_vf_mul_(w, y));
            }
        }
        CG_UNROLL_
        for (size_t i = 0; i < rows; i++)
            absmax = cg_vu_absmax_(cg_vu_absmax_(absmax, cg_vu_of_(s[i])), cg_vu_of_(t[i]));
        if (CG_LIKELY_(!cg_vu_any_(cg_vu_gt_(absmax, cg_vu_set_(CG_INF_BITS_ - 1))))) {
            CG_UNROLL_
            for (size_t i = 0; i < rows; i++) {
                cg_vf_stream_(out, j + i * out_stride, s[i], non_temporal);
                cg_vf_stream_(out, j + i * out_stride + 8, t[i], non_temporal);
            }
        } else {
            cg_lowrank_tile_scalar_(p, cg_at_(q, j), q_stride, r, rows, 16, cg_at_mut_(out, j), out_stride, 0);
        }
    }
}
CG_VECTOR_FN_ void cg_lowrank_tile_simd_(const float *p, const float *q, size_t q_stride, unsigned r, size_t rows,
    size_t count, float *out, size_t out_stride, int non_temporal) {
    const size_t vector_cols = r ? count & ~(size_t)15 : 0;
    /* a q of few rows is read faster than four rows of out are written at once */
    const size_t step = r > 6 ? 4 : 1;
    for (size_t i = 0, many; i < rows; i += many) {
        const float *u = cg_at_(p, i * r);
        float *to = cg_at_mut_(out, i * out_stride);
        many = i + step <= rows ? step : 1;
        if (many == 4 && non_temporal) cg_lowrank16_(u, q, q_stride, r, vector_cols, to, out_stride, 4, 1);
        else if (many == 4) cg_lowrank16_(u, q, q_stride, r, vector_cols, to, out_stride, 4, 0);
        else if (non_temporal) cg_lowrank16_(u, q, q_stride, r, vector_cols, to, out_stride, 1, 1);
        else cg_lowrank16_(u, q, q_stride, r, vector_cols, to, out_stride, 1, 0);
    }
    if (vector_cols < count)
        cg_lowrank_tile_scalar_(p, cg_at_(q, vector_cols), q_stride, r, rows, count - vector_cols,
            cg_at_mut_(out, vector_cols), out_stride, 0);
}
#endif

/* src/core/kernels/floats.h */
/* floats: kernels that take f32 and bf16 values apart into exponents and the rest, and put them together

   Offers   exponents, sign_mantissas, floats_join
   Needs    base, table, the vector layer
   Touches  nothing but its arguments
   width: bytes of a value, 4 (f32) or 2 (bf16), as they are on the wire. The rest of a value is 3 bytes, or 1, with the
   sign on top. */

/* exponents: one byte each. */
static void cg_exponents_scalar_(unsigned width, const uint8_t *in, size_t n, uint8_t *exponents) {
    if (width == 4)
        for (size_t i = 0; i < n; i++) exponents[i] = (uint8_t)(cg_get32_(in + 4 * i) >> 23);
    else
        for (size_t i = 0; i < n; i++) exponents[i] = (uint8_t)(cg_get16_(in + 2 * i) >> 7);
}
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_exponent8_(const uint8_t *in) { return cg_vu_shr_(cg_vu_shl_(cg_vu_load_(in), 1), 24); }
CG_VECTOR_FN_ cg_vu_ cg_exponent16_(const uint8_t *in) { return cg_vu_shr16_(cg_vu_shl16_(cg_vu_load_(in), 1), 8); }
CG_VECTOR_FN_ void cg_exponents_simd_(unsigned width, const uint8_t *in, size_t n, uint8_t *exponents) {
    size_t i = 0;
    if (width == 4)
        for (; i + 32 <= n; i += 32) {
            const uint8_t *p = in + 4 * i;
            cg_vb_put_(exponents + i,
                cg_vb_narrow_(cg_exponent8_(p), cg_exponent8_(p + 32), cg_exponent8_(p + 64), cg_exponent8_(p + 96)));
        }
    else
        for (; i + 32 <= n; i += 32)
            cg_vb_put16_(exponents + i, cg_exponent16_(in + 2 * i), cg_exponent16_(in + 2 * i + 32));
    cg_exponents_scalar_(width, in + width * i, n - i, exponents + i);
}
#endif

/* sign_mantissas: what else there is of each value. */
static void cg_sign_mantissas_scalar_(unsigned width, const uint8_t *in, size_t n, uint8_t *sign_mantissas) {
    if (width == 4) {
        for (size_t i = 0; i < n; i++) {
            uint32_t u = cg_get32_(in + 4 * i);
            cg_put16_(sign_mantissas + 3 * i, u);
            sign_mantissas[3 * i + 2] = (uint8_t)((u >> 16 & 0x7f) | (u >> 24 & 0x80));
        }
    } else {
        for (size_t i = 0; i < n; i++) sign_mantissas[i] = (uint8_t)((in[2 * i] & 0x7f) | (in[2 * i + 1] & 0x80));
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_sign_mantissa16_(const uint8_t *in) { /* of 16 bf16, as u16 */
    const cg_vu_ v = cg_vu_load_(in);
    return cg_vu_or_(cg_vu_and_(v, cg_vu_set_(0x7f007fu)), cg_vu_and_(cg_vu_shr16_(v, 8), cg_vu_set_(0x800080u)));
}
CG_VECTOR_FN_ void cg_sign_mantissas_simd_(unsigned width, const uint8_t *in, size_t n, uint8_t *sign_mantissas) {
    const cg_vu_ low = cg_vu_set_(0x7fffff), sign = cg_vu_set_(0x800000);
    size_t i = 0;
    if (width == 4)
        for (; i + 10 <= n; i += 8) { /* the store writes 4 bytes more than its values */
            const cg_vu_ v = cg_vu_load_(in + 4 * i);
            cg_vu_store24_(sign_mantissas + 3 * i, cg_vu_or_(cg_vu_and_(v, low), cg_vu_and_(cg_vu_shr_(v, 8), sign)));
        }
    else
        for (; i + 32 <= n; i += 32)
            cg_vb_put16_(sign_mantissas + i, cg_sign_mantissa16_(in + 2 * i), cg_sign_mantissa16_(in + 2 * i + 32));
    cg_sign_mantissas_scalar_(width, in + width * i, n - i, sign_mantissas + (width - 1) * i);
}
#endif

/* floats_join: the values of n exponents and as many rests. */
static void cg_floats_join_scalar_(
    unsigned width, const uint8_t *exponents, const uint8_t *sign_mantissas, size_t n, uint8_t *out) {
    if (width == 4) {
        for (size_t i = 0; i < n; i++) {
            uint32_t r = cg_get16_(sign_mantissas + 3 * i) | (uint32_t)sign_mantissas[3 * i + 2] << 16;
            cg_put32_(out + 4 * i, (r & 0x7fffff) | (r & 0x800000) << 8 | (uint32_t)exponents[i] << 23);
        }
    } else {
        for (size_t i = 0; i < n; i++)
            cg_put16_(out + 2 * i,
                (sign_mantissas[i] & 0x7fu) | (sign_mantissas[i] & 0x80u) << 8 | (uint32_t)exponents[i] << 7);
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_floats_join_simd_(
    unsigned width, const uint8_t *exponents, const uint8_t *sign_mantissas, size_t n, uint8_t *out) {
    const cg_vu_ low = cg_vu_set_(width == 4 ? 0x7fffffu : 0x7f007fu),
                 sign = cg_vu_set_(width == 4 ? 0x800000u : 0x800080u);
    size_t i = 0;
    if (width == 4)
        for (; i + 10 <= n; i += 8) { /* the load reads 4 bytes more than its values */
            const cg_vu_ r = cg_vu_load24_(sign_mantissas + 3 * i),
                         v = cg_vu_or_(cg_vu_and_(r, low), cg_vu_shl_(cg_vu_and_(r, sign), 8));
            cg_vu_store_(out + 4 * i, cg_vu_or_(v, cg_vu_shl_(cg_vu_bytes_(exponents + i), 23)));
        }
    else
        for (; i + 16 <= n; i += 16) {
            const cg_vu_ r = cg_vu_bytes16_(sign_mantissas + i),
                         v = cg_vu_or_(cg_vu_and_(r, low), cg_vu_shl16_(cg_vu_and_(r, sign), 8));
            cg_vu_store_(out + 2 * i, cg_vu_or_(v, cg_vu_shl16_(cg_vu_bytes16_(exponents + i), 7)));
        }
    cg_floats_join_scalar_(width, exponents + i, sign_mantissas + (width - 1) * i, n - i, out + width * i);
}
#endif

/* src/core/kernels/index.h */
/* index: kernels that read and check index sets as Elias-Fano codes and bitmaps

   Offers   index_get, index_check
   Needs    base, table
   Touches  the reader
   There is no vector in them: what an ISA adds are instructions that count and find bits. */

/* index_get: up to `count` more indices; returns how many, fewer only where the bits run out. */
CG_INLINE_ size_t cg_index_get_any_(cg_index_bits_ *r, uint64_t *index, size_t count) {
    uint64_t word = r->word, base = r->bit_base, i = r->read_count, at = r->read_count * r->low_bits;
    const uint64_t mask = ((uint64_t)1 << r->low_bits) - 1;
    const uint8_t *next = r->next_high;
    size_t done = 0;
    /* Elias-Fano, while a low part can be loaded as 8 bytes and high bits as whole words */
    while (!r->bitmap && r->low_bits <= 56 && done < count &&
        (uint64_t)(r->end - r->low_part) > (at + 64 * r->low_bits) / 8 + 8) {
        if (!word) {
            if (r->end - next < 8) break;
            word = cg_get64_(next);
            next += 8;
            base += 64;
        }
        for (; word && done < count; word &= word - 1, at += r->low_bits, i++)
            index[done++] = (base + cg_ctz_(word) - i) << r->low_bits |
                (cg_get64_(r->low_part + (size_t)(at >> 3)) >> (at & 7) & mask);
    }
    while (done < count) {
        while (!word) {
            if (next >= r->end) goto out;
            if (r->end - next >= 8) word = cg_get64_(next);
            else word = cg_get32_(next); /* sections are whole u32 words */
            next += r->end - next >= 8 ? 8 : 4;
            base += 64;
        }
        {
            uint64_t h = base + cg_ctz_(word);
            word &= word - 1;
            if (!r->bitmap) h -= i;
            if (r->low_bits) {
                const uint8_t *p = r->low_part + (size_t)(at >> 3);
                unsigned shift = (unsigned)(at & 7);
                uint64_t low;
                if (CG_LIKELY_(r->end - p > 8)) {
                    low = cg_get64_(p) >> shift;
                    if (r->low_bits + shift > 64) low |= (uint64_t)p[8] << (64 - shift);
                } else { /* among the last 8 bytes of at least 8: high bits are words that follow those of low parts */
                    const unsigned beyond = (unsigned)(8 - (r->end - p)) * 8;
                    low = beyond < 64 && r->end - r->low_part >= 8 ? cg_get64_(r->end - 8) >> beyond >> shift : 0;
                }
                h = h << r->low_bits | (low & mask);
                at += r->low_bits;
            }
            index[done++] = h;
            i++;
        }
    }
out:
    r->word = word;
    r->bit_base = base;
    r->read_count = i;
    r->next_high = next;
    return done;
}
static size_t cg_index_get_scalar_(cg_index_bits_ *r, uint64_t *index, size_t count) {
    return cg_index_get_any_(r, index, count);
}
#if CG_VECTOR_
CG_VECTOR_FN_ size_t cg_index_get_simd_(cg_index_bits_ *r, uint64_t *index, size_t count) {
    return cg_index_get_any_(r, index, count);
}
#endif

/* index_check: whether a reader that has not read yet holds k ascending indices below universe, and no more. *next: the
   last plus 1, 0 if k is 0; unspecified if they are not. */
static int cg_index_check_scalar_(cg_index_bits_ *r, uint64_t k, uint64_t universe, uint64_t *next) {
    uint64_t index[512], seen = 0, extra;
    for (*next = 0; seen < k;) {
        size_t want = (size_t)(k - seen < 512 ? k - seen : 512);
        int bad = 0;
        if (cg_index_get_any_(r, index, want) < want) return 0;
        for (size_t i = 0; i < want; i++) {
            bad |= index[i] < *next;
            *next = index[i] + 1;
        }
        if (bad || *next > universe || *next == 0) return 0;
        seen += want;
    }
    return cg_index_get_any_(r, &extra, 1) == 0;
}
#if CG_VECTOR_
/* Elias-Fano without building the indices: where a high bit directly follows another, the high parts are equal, and the
   low parts must ascend. Requires k > 0; low_bits <= 28, so that two low parts are within one load; and at least 8
   bytes of high bits, so that no load ends beyond them. */
CG_VECTOR_FN_ int cg_index_check_simd_(cg_index_bits_ *r, uint64_t k, uint64_t universe, uint64_t *next) {
    const uint64_t mask = ((uint64_t)1 << r->low_bits) - 1;
    uint64_t i = 0, carry = 0, high = 0, at, low_parts;
    int bad = 0;
    if (!k || r->bitmap || r->low_bits > 28 || r->end - r->next_high < 8)
        return cg_index_check_scalar_(r, k, universe, next);
    for (size_t byte = 0, bytes = (size_t)(r->end - r->next_high); byte < bytes; byte += 8) {
        const uint64_t word = bytes - byte >= 8 ? cg_get64_(r->next_high + byte) : cg_get32_(r->next_high + byte),
                       many = (uint64_t)__builtin_popcountll(word);
        if (many > k - i) return 0;
        for (uint64_t adjacent = word & (word << 1 | carry); adjacent; adjacent &= adjacent - 1) {
            at = (i + (uint64_t)__builtin_popcountll(word & ~adjacent & (adjacent - 1)) - 1) * r->low_bits;
            low_parts = cg_get64_(r->low_part + (size_t)(at >> 3)) >> (at & 7);
            bad |= (low_parts & mask) >= (low_parts >> r->low_bits & mask);
        }
        if (word) high = 8 * (uint64_t)byte + cg_log2_(word);
        carry = word >> 63;
        i += many;
    }
    if (bad || i < k || high - (k - 1) > universe >> r->low_bits) return 0;
    at = (k - 1) * r->low_bits;
    low_parts = 0;
    for (unsigned b = 0; b < 5; b++) low_parts |= (uint64_t)r->low_part[(size_t)(at >> 3) + b] << 8 * b;
    *next = ((high - (k - 1)) << r->low_bits | (low_parts >> (at & 7) & mask)) + 1;
    return *next <= universe;
}
#endif

/* src/core/kernels/lines.h */
/* lines: kernels of sketches: adding a line to cells, projecting it to a number, estimating it from cells

   Offers   line_add, line_project, line_estimate; cg_sign_bit_, cg_group_weight_ and cg_coordinate_estimate_ of one
   Needs    base, random, table, the vector layer
   Touches  the cells of its targets, or its out
   Other headers may use: cg_coordinate_estimate_, cg_group_weight_, cg_sign_bit_
   The vector kernels are for whole lines of CG_SKETCH_LINE_ values. x and out may have any alignment, cells are aligned
   to floats. */

/* Word i of a line's random bits. One multiplication more than noise for rounding gets, where products of four bits do
   not matter; the norm's estimate needs them. */
CG_INLINE_ uint32_t cg_sign_word_(cg_key_ key, unsigned i) {
    const uint32_t h = cg_hash32_(key, i) * 0x31848BABu;
    return h ^ h >> 15;
}
/* The random bit of an offset in the line, as a sign bit: bit offset / 8 (from the top) of word offset % 8, so that
   eight neighbours have theirs in eight words. word_set: 0 signs, 1 and 2 weights. */
CG_INLINE_ uint32_t cg_line_bit_(cg_key_ key, unsigned offset, unsigned word_set) {
    return cg_sign_word_(key, 8 * word_set + (offset & 7u)) << (offset >> 3) & CG_SIGN_BIT_;
}
CG_INLINE_ uint32_t cg_sign_bit_(cg_key_ key, unsigned offset) { return cg_line_bit_(key, offset, 0); }
/* In the sum of a group a value is multiplied by 1/2, 1, 3/2 or 2: with signs alone, two equal values would cancel in
   all rows once in 2^rows. */
CG_INLINE_ float cg_group_weight_(cg_key_ key, unsigned offset) {
    return (cg_line_bit_(key, offset, 1) ? 1.0f : 0.5f) + (cg_line_bit_(key, offset, 2) ? 1.0f : 0.0f);
}

/* line_add: each value times weight, with the sign of its offset, is added to its cell, row by row. */
static void cg_line_add_scalar_(const cg_line_target_ *p, int rows, const float *x, size_t many, float weight) {
    for (int r = 0; r < rows; r++, p++)
        for (unsigned offset = 0; offset < many; offset++) {
            float *cell = p->cells + (offset ^ p->xor_mask);
            *cell = cg_plus_(
                *cell, cg_xor_sign_(cg_times_(cg_load_(x, offset), weight), cg_sign_bit_(p->sign_key, offset)));
        }
}
#if CG_VECTOR_
/* The permutation that takes lane i of eight to lane i ^ (xor_mask & 7). */
CG_VECTOR_FN_ cg_vu_ cg_xor_permutation_(uint32_t xor_mask) {
    static const uint32_t lane[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    return cg_vu_xor_(cg_vu_load_(lane), cg_vu_set_(xor_mask & 7u));
}
/* v with each lane's sign flipped where the top bit of its word is set. */
CG_VECTOR_FN_ cg_vf_ cg_xor_sign8_(cg_vf_ v, cg_vu_ words) {
    return cg_vf_of_(cg_vu_xor_(cg_vu_of_(v), cg_vu_and_(words, cg_vu_set_(CG_SIGN_BIT_))));
}
/* cg_sign_word_ of eight words. The top bits are those of offsets 0 to 7; each doubling of the words brings the next
   eight offsets to the top. */
CG_VECTOR_FN_ cg_vu_ cg_sign_words8_(cg_key_ key, unsigned word_set) {
    const cg_vu_ h = cg_vu_mul_(cg_vu_hash_(key, 8 * word_set), cg_vu_set_(0x31848BABu));
    return cg_vu_xor_(h, cg_vu_shr_(h, 15));
}
/* Adds a line to at most five rows, so that words and permutations stay in registers. */
CG_VECTOR_FN_ void cg_line_add5_(const cg_line_target_ *p, int rows, const float *x, float weight) {
    cg_vu_ words[5], permute[5];
    float *cells[5];
    const float *prefetch[5];
    unsigned block_xor[5];
    CG_UNROLL_
    for (int r = 0; r < rows; r++) {
        words[r] = cg_sign_words8_(p[r].sign_key, 0);
        permute[r] = cg_xor_permutation_(p[r].xor_mask);
        cells[r] = p[r].cells;
        prefetch[r] = p[r].prefetch;
        block_xor[r] = p[r].xor_mask >> 3;
    }
    for (unsigned pair = 0; pair < CG_SKETCH_LINE_ / 8; pair += 2) { /* two vectors: a cache line */
        CG_PREFETCH_(cg_at_(x, 8 * (size_t)pair + 512));
        CG_UNROLL_
        for (int r = 0; r < rows; r++) CG_PREFETCH_WRITE_(prefetch[r] + 8 * pair);
        CG_UNROLL_
        for (unsigned vec = pair; vec < pair + 2; vec++) {
            const cg_vf_ v = cg_vf_mul_(cg_vf_load_(x, 8 * (size_t)vec), cg_vf_set_(weight));
            CG_UNROLL_
            for (int r = 0; r < rows; r++) {
                float *to = cells[r] + 8 * (vec ^ block_xor[r]);
                cg_vf_store_(
                    to, 0, cg_vf_add_(cg_vf_load_(to, 0), cg_vf_lookup8_(cg_xor_sign8_(v, words[r]), permute[r])));
                words[r] = cg_vu_add_(words[r], words[r]);
            }
        }
    }
}
CG_VECTOR_FN_ void cg_line_add_simd_(const cg_line_target_ *p, int rows, const float *x, size_t many, float weight) {
    if (many != CG_SKETCH_LINE_) cg_line_add_scalar_(p, rows, x, many, weight);
    else
        for (; rows > 0; rows -= 5, p += 5) switch (rows) { /* constants, so that loops over rows unroll */
            case 1: cg_line_add5_(p, 1, x, weight); break;
            case 2: cg_line_add5_(p, 2, x, weight); break;
            case 3: cg_line_add5_(p, 3, x, weight); break;
            case 4: cg_line_add5_(p, 4, x, weight); break;
            default: cg_line_add5_(p, 5, x, weight); break; /* all that fits into registers */
            }
}
#endif

/* line_project: the line as a part of groups: the sum of its values, each with its sign and weight. The order of
   additions is fixed: eight lanes, then lanes 4 apart, 2 apart, and neighbours. */
CG_INLINE_ float cg_line_sum_(float *lane) {
    for (unsigned step = 4; step; step /= 2)
        for (unsigned i = 0; i < step; i++) lane[i] = cg_plus_(lane[i], lane[i + step]);
    return lane[0];
}
static float cg_line_project_scalar_(const cg_line_target_ *p, const float *x, size_t many, float weight) {
    float lane[8] = { 0.0f };
    for (unsigned offset = 0; offset < many; offset++)
        lane[offset & 7] = cg_plus_(lane[offset & 7],
            cg_times_(cg_xor_sign_(cg_times_(cg_load_(x, offset), weight), cg_sign_bit_(p->sign_key, offset)),
                cg_group_weight_(p->sign_key, offset)));
    return cg_line_sum_(lane);
}
#if CG_VECTOR_
/* value where the top bit of the word is set, else 0. */
CG_VECTOR_FN_ cg_vf_ cg_value_if_top8_(cg_vu_ words, float value) {
    return cg_vf_of_(cg_vu_and_(cg_vu_sar_(words, 31), cg_vu_of_(cg_vf_set_(value))));
}
CG_VECTOR_FN_ float cg_line_project_simd_(const cg_line_target_ *p, const float *x, size_t many, float weight) {
    cg_vu_ words = cg_sign_words8_(p->sign_key, 0), weight_half = cg_sign_words8_(p->sign_key, 1),
           weight_one = cg_sign_words8_(p->sign_key, 2);
    const cg_vf_ w = cg_vf_set_(weight);
    cg_vf_ sum = cg_vf_set_(0.0f);
    float lane[8];
    if (many != CG_SKETCH_LINE_) return cg_line_project_scalar_(p, x, many, weight);
    for (size_t i = 0; i < CG_SKETCH_LINE_; i += 8) {
        const cg_vf_ group_weight = cg_vf_add_(
            cg_vf_add_(cg_vf_set_(0.5f), cg_value_if_top8_(weight_half, 0.5f)), cg_value_if_top8_(weight_one, 1.0f));
        sum = cg_vf_add_(sum, cg_vf_mul_(cg_xor_sign8_(cg_vf_mul_(cg_vf_load_(x, i), w), words), group_weight));
        words = cg_vu_add_(words, words);
        weight_half = cg_vu_add_(weight_half, weight_half);
        weight_one = cg_vu_add_(weight_one, weight_one);
    }
    cg_vf_store_(lane, 0, sum);
    return cg_line_sum_(lane);
}
#endif

/* line_estimate: of every coordinate the median over rows of its cells, with their signs. */
CG_INLINE_ float cg_min_f32_(float a, float b) { return a < b ? a : b; }
CG_INLINE_ float cg_max_f32_(float a, float b) { return a > b ? a : b; }
CG_INLINE_ float cg_median3_(float a, float b, float c) {
    return cg_max_f32_(cg_min_f32_(a, b), cg_min_f32_(cg_max_f32_(a, b), c));
}
/* (a + b) / 2, also where the sum is too large for a float. */
static float cg_mean2_(float a, float b) {
    const float sum = cg_plus_(a, b);
    return cg_is_finite_(sum) ? cg_times_(sum, 0.5f) : cg_plus_(cg_times_(a, 0.5f), cg_times_(b, 0.5f));
}
/* The median of v[0, rows), which may be reordered; of an even number the mean of the two in the middle. */
static float cg_median_(float *v, int rows) {
    if (rows == 3) return cg_median3_(v[0], v[1], v[2]);
    if (rows == 5)
        return cg_median3_(cg_max_f32_(cg_min_f32_(v[0], v[1]), cg_min_f32_(v[2], v[3])),
            cg_min_f32_(cg_max_f32_(v[0], v[1]), cg_max_f32_(v[2], v[3])), v[4]);
    for (int i = 0; i < rows; i++)
        for (int j = i & 1; j + 1 < rows; j += 2) {
            const float a = v[j], b = v[j + 1];
            v[j] = cg_min_f32_(a, b);
            v[j + 1] = cg_max_f32_(a, b);
        }
    return rows & 1 ? v[rows / 2] : cg_mean2_(v[rows / 2 - 1], v[rows / 2]);
}
/* The estimate of one coordinate from the targets of its line in all rows. */
static float cg_coordinate_estimate_(const cg_line_target_ *p, int rows, unsigned offset) {
    float v[CG_SKETCH_MAX_ROWS_];
    for (int r = 0; r < rows; r++)
        v[r] = cg_xor_sign_(p[r].cells[offset ^ p[r].xor_mask], cg_sign_bit_(p[r].sign_key, offset));
    return cg_median_(v, rows);
}
static void cg_line_estimate_scalar_(const cg_line_target_ *p, int rows, size_t many, float *out) {
    for (unsigned offset = 0; offset < many; offset++) cg_store_(out, offset, cg_coordinate_estimate_(p, rows, offset));
}
#if CG_VECTOR_
/* For loops over rows, up to 7. */
#  if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#    define CG_UNROLL_ROWS_ _Pragma("GCC unroll 7")
#  else
#    define CG_UNROLL_ROWS_
#  endif
CG_VECTOR_FN_ cg_vf_ cg_median3x8_(cg_vf_ a, cg_vf_ b, cg_vf_ c) {
    return cg_vf_max_(cg_vf_min_(a, b), cg_vf_min_(cg_vf_max_(a, b), c));
}
CG_VECTOR_FN_ cg_vf_ cg_mean2x8_(cg_vf_ a, cg_vf_ b) {
    const cg_vf_ half = cg_vf_set_(0.5f), sum = cg_vf_add_(a, b);
    const cg_vu_ finite = cg_vu_gt_(cg_vu_set_(CG_INF_BITS_), cg_vu_abs_(cg_vu_of_(sum)));
    return cg_vf_of_(cg_vu_or_(cg_vu_and_(finite, cg_vu_of_(cg_vf_mul_(sum, half))),
        cg_vu_andnot_(finite, cg_vu_of_(cg_vf_add_(cg_vf_mul_(a, half), cg_vf_mul_(b, half))))));
}
CG_VECTOR_FN_ cg_vf_ cg_median8_(cg_vf_ *v, int rows) {
    if (rows == 3) return cg_median3x8_(v[0], v[1], v[2]);
    if (rows == 5)
        return cg_median3x8_(cg_vf_max_(cg_vf_min_(v[0], v[1]), cg_vf_min_(v[2], v[3])),
            cg_vf_min_(cg_vf_max_(v[0], v[1]), cg_vf_max_(v[2], v[3])), v[4]);
    CG_UNROLL_ROWS_
    for (int i = 0; i < rows; i++) {
        CG_UNROLL_ROWS_
        for (int j = i & 1; j + 1 < rows; j += 2) {
            const cg_vf_ a = v[j], b = v[j + 1];
            v[j] = cg_vf_min_(a, b);
            v[j + 1] = cg_vf_max_(a, b);
        }
    }
    return rows & 1 ? v[rows / 2] : cg_mean2x8_(v[rows / 2 - 1], v[rows / 2]);
}
CG_VECTOR_FN_ void cg_line_estimate8_(const cg_line_target_ *p, int rows, float *out) {
    cg_vu_ words[CG_SKETCH_MAX_ROWS_], permute[CG_SKETCH_MAX_ROWS_];
    CG_UNROLL_ROWS_
    for (int r = 0; r < rows; r++) {
        words[r] = cg_sign_words8_(p[r].sign_key, 0);
        permute[r] = cg_xor_permutation_(p[r].xor_mask);
    }
    for (unsigned vec = 0; vec < CG_SKETCH_LINE_ / 8; vec++) {
        cg_vf_ v[CG_SKETCH_MAX_ROWS_];
        CG_UNROLL_ROWS_
        for (int r = 0; r < rows; r++) {
            v[r] = cg_xor_sign8_(
                cg_vf_lookup8_(cg_vf_load_(p[r].cells, 8 * (size_t)(vec ^ p[r].xor_mask >> 3)), permute[r]), words[r]);
            words[r] = cg_vu_add_(words[r], words[r]);
            if (!(vec & 1)) CG_PREFETCH_(p[r].prefetch + 8 * vec);
        }
        cg_vf_store_(out, 8 * (size_t)vec, cg_median8_(v, rows));
    }
}
CG_VECTOR_FN_ void cg_line_estimate_simd_(const cg_line_target_ *p, int rows, size_t many, float *out) {
    if (many != CG_SKETCH_LINE_) cg_line_estimate_scalar_(p, rows, many, out);
    else switch (rows) { /* constants, so that loops over rows unroll */
        case 1: cg_line_estimate8_(p, 1, out); break;
        case 3: cg_line_estimate8_(p, 3, out); break;
        case 4: cg_line_estimate8_(p, 4, out); break;
        case 5: cg_line_estimate8_(p, 5, out); break;
        case 7: cg_line_estimate8_(p, 7, out); break;
        default: cg_line_estimate8_(p, rows, out); break;
        }
}
#endif

/* src/core/kernels/dispatch.h */
/* dispatch: the kernels' tables, one per ISA, and the choice between them

   Offers   cg_kernels_now_, cg_kernels_scalar_; of the public functions cg_isa_found, _used, _force, _name
   Needs    base, all rooms of kernels
   Touches  cg_isa_cached_, the only variable of the library; 0 until the CPU has been asked
   Other headers may use: cg_absmax_bits_, cg_axpby_, cg_kernels_now_, cg_move_zero_, cg_scale_checked_ */

/* The list that makes the members makes their values too: C++11 has no designated initialisers, but the order cannot
   get out of step. */
#define CG_KERNEL_SCALAR_(result, name, parameters, arguments) cg_##name##_scalar_,
#if CG_HAS_KERNEL_TABLE_
static const cg_kernels_ cg_kernels_scalar_ = { CG_ISA_SCALAR, CG_KERNEL_LIST_(CG_KERNEL_SCALAR_) };
#else /* see CG_KERNEL_ */
static const cg_kernels_ cg_kernels_scalar_ = { CG_ISA_SCALAR };
#  define CG_RETURN_void_
#  define CG_RETURN_int_ return
#  define CG_RETURN_float_ return
#  define CG_RETURN_size_t_ return
#  define CG_RETURN_uint32_t_ return
#  define CG_KERNEL_ONLY_(result, name, parameters, arguments) \
    CG_INLINE_ result cg_only_##name parameters { CG_RETURN_##result##_ cg_##name##_scalar_ arguments; }
CG_KERNEL_LIST_(CG_KERNEL_ONLY_)
#endif

/* A vector kernel is inlined into a function of each ISA, and compiled for that. The build's own (cg_..._native_) is
   AVX2, NEON or WebAssembly SIMD128. */
#define CG_BODY_(type, call) \
  const type result = call;  \
  cg_vector_end_();          \
  return result
#define CG_BODY_void_(call) call, cg_vector_end_()
#define CG_BODY_int_(call) CG_BODY_(int, call)
#define CG_BODY_float_(call) CG_BODY_(float, call)
#define CG_BODY_size_t_(call) CG_BODY_(size_t, call)
#define CG_BODY_uint32_t_(call) CG_BODY_(uint32_t, call)
#if CG_VECTOR_
#  define CG_KERNEL_NATIVE_(result, name, parameters, arguments) \
    CG_TARGET_NATIVE_ static result cg_##name##_native_ parameters { CG_BODY_##result##_(cg_##name##_simd_ arguments); }
#  define CG_KERNEL_OF_NATIVE_(result, name, parameters, arguments) cg_##name##_native_,
CG_KERNEL_LIST_(CG_KERNEL_NATIVE_)
static const cg_kernels_ cg_kernels_native_ = { CG_ISA_NATIVE_, CG_KERNEL_LIST_(CG_KERNEL_OF_NATIVE_) };
#endif
#if CG_AVX512_
#  define CG_TARGET_AVX512_ __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c,popcnt,bmi,bmi2")))
#  define CG_KERNEL_AVX512_(result, name, parameters, arguments) \
    CG_TARGET_AVX512_ static result cg_##name##_avx512_ parameters { CG_BODY_##result##_(cg_##name##_simd_ arguments); }
#  define CG_KERNEL_OF_AVX512_(result, name, parameters, arguments) cg_##name##_avx512_,
CG_KERNEL_LIST_(CG_KERNEL_AVX512_)
static const cg_kernels_ cg_kernels_avx512_ = { CG_ISA_AVX512, CG_KERNEL_LIST_(CG_KERNEL_OF_AVX512_) };
#endif

/* A cg_isa, 0 (CG_ISA_AUTO) until it is known. Threads that find it 0 all write the same; only cg_isa_force writes
   another. */
static int cg_isa_cached_;

#if defined(__GNUC__)
CG_INLINE_ int cg_isa_load_(void) { return __atomic_load_n(&cg_isa_cached_, __ATOMIC_RELAXED); }
CG_INLINE_ void cg_isa_save_(int isa) { __atomic_store_n(&cg_isa_cached_, isa, __ATOMIC_RELAXED); }
#else
CG_INLINE_ int cg_isa_load_(void) { return cg_isa_cached_; }
CG_INLINE_ void cg_isa_save_(int isa) { cg_isa_cached_ = isa; }
#endif

#if CG_AVX2_
/* out[0..3]: eax, ebx, ecx, edx of the leaf, subleaf 0 */
static void cg_cpuid_(uint32_t leaf, uint32_t *out) {
    uint32_t a = leaf, b, c = 0, d;
#  if defined(__i386__) /* ebx may hold the GOT pointer */
    __asm__ __volatile__("xchgl %%ebx, %1\n\tcpuid\n\txchgl %%ebx, %1" : "+a"(a), "=&r"(b), "+c"(c), "=d"(d));
#  else
    __asm__ __volatile__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
#  endif
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}
/* Whether the CPU has all that the targets name, and an operating system that saves its registers. */
static int cg_has_avx_(int avx512) {
    const uint32_t features = avx512 ? 0xc0030128u : 0x128u; /* bmi1, avx2, bmi2; avx512 f, dq, bw, vl */
    const uint32_t registers = avx512 ? 0xe6 : 6;            /* xmm, ymm; opmask, zmm */
    uint32_t r[4], lo, hi;
    cg_cpuid_(0, r);
    if (r[0] < 7) return 0;
    cg_cpuid_(1, r); /* popcnt, xsave, avx, f16c */
    if ((r[2] & 0x38800000u) != 0x38800000u) return 0;
    __asm__ __volatile__(".byte 0x0f, 0x01, 0xd0" : "=a"(lo), "=d"(hi) : "c"(0)); /* xgetbv */
    if ((lo & registers) != registers) return 0;
    cg_cpuid_(7, r);
    return (r[1] & features) == features;
}
#endif
/* The table of an ISA; NULL if this build does not have it. */
static const cg_kernels_ *cg_kernels_of_(cg_isa isa) {
    if (isa == CG_ISA_SCALAR) return &cg_kernels_scalar_;
#if CG_VECTOR_
    if (isa == CG_ISA_NATIVE_) return &cg_kernels_native_;
#endif
#if CG_AVX512_
    if (isa == CG_ISA_AVX512) return &cg_kernels_avx512_;
#endif
    return NULL;
}
CG_API_ int cg_isa_found(cg_isa isa) {
    if (isa == CG_ISA_AUTO) return 1;
#if CG_AVX2_
    if (isa == CG_ISA_AVX2 || isa == CG_ISA_AVX512) return cg_kernels_of_(isa) && cg_has_avx_(isa == CG_ISA_AVX512);
#endif
    return cg_kernels_of_(isa) != NULL;
}
CG_API_ cg_isa cg_isa_used(void) {
    static const uint8_t best[] = { CG_ISA_AVX512, CG_ISA_AVX2, CG_ISA_NEON, CG_ISA_WASM, CG_ISA_SCALAR };
    int isa = cg_isa_load_();
    if (isa == CG_ISA_AUTO) {
        const uint8_t *p = best;
        while (!cg_isa_found((cg_isa)*p)) p++;
        cg_isa_save_(isa = *p);
    }
    return (cg_isa)isa;
}
CG_API_ cg_status cg_isa_force(cg_isa isa) {
    if (!cg_isa_found(isa)) return CG_E_UNSUPPORTED;
    cg_isa_save_((int)isa);
    return CG_OK;
}
CG_API_ const char *cg_isa_name(cg_isa isa) {
    static const char *const name[] = { "auto", "scalar", "avx2", "neon", "avx512", "wasm" };
    return (unsigned)isa < sizeof name / sizeof *name ? name[isa] : "?";
}
/* The table to be used, for one whole call: a cg_isa_force of another thread may come between two. */
static const cg_kernels_ *cg_kernels_now_(void) { return cg_kernels_of_(cg_isa_used()); }

/* For other headers, which do not see the kernel table. y may be at any address; v and y are one vector or apart. */
CG_OFFERED_ void cg_axpby_(const float *v, size_t n, float alpha, float beta, float *y) { /* y = alpha v + beta y */
    CG_KERNEL_(cg_kernels_now_(), axpby(v, n, alpha, beta, y, 0));
}
/* The largest magnitude as bits; CG_INF_BITS_ or more if some value is not finite. */
CG_OFFERED_ uint32_t cg_absmax_bits_(const float *v, size_t n) {
    return CG_KERNEL_(cg_kernels_now_(), absmax_bits(v, n));
}
/* y = alpha v, which may be y, and the largest magnitude of v as bits: both in one pass over memory. stream: past the
   caches, y at a multiple of 16 bytes. */
CG_OFFERED_ uint32_t cg_scale_checked_(const float *v, size_t n, float alpha, float *y, int stream) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    uint32_t absmax_bits = 0;
    for (size_t i = 0, many; i < n; i += many) {
        many = cg_min_(CG_CHUNK_, n - i);
        absmax_bits = cg_max32_(absmax_bits, CG_KERNEL_(kernels, absmax_bits(cg_at_(v, i), many)));
        if (v != y || alpha != 1.0f)
            CG_KERNEL_(kernels, axpby(cg_at_(v, i), many, alpha, 0.0f, cg_at_mut_(y, i), stream));
    }
    if (stream) CG_KERNEL_(kernels, stream_fence());
    return absmax_bits;
}
/* y = v, v = 0. stream: past the caches, y at a multiple of 16 bytes; last: no other call follows, so that the stores
   are made visible. */
CG_OFFERED_ void cg_move_zero_(float *v, size_t n, float *y, int stream, int last) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    CG_KERNEL_(kernels, move_zero(v, n, y, stream));
    if (stream && last) CG_KERNEL_(kernels, stream_fence());
}

/* src/core/codes/bits.h */
/* bits: strings of bits, LSB first, and the frame of a coded piece

   Offers   CG_VALUE_CODE_*, cg_alphabet_, entries of pieces, cg_bitstream_ (writer), cg_bits_peek_ (reader),
            cg_histogram4_ and cg_quarter_size_
   Needs    base
   Touches  nothing but its arguments
   A piece is up to CG_PIECE_SYMBOLS_ symbols, or CG_CHUNK_ floats, that are coded by themselves. It fills whole u32
   words; its u32 entry in the piece table holds the mode in bits 30..31 and the exact length in bits below. A piece
   is coded only where that is shorter than packed or raw; the bits of its last word beyond its length are 0. */

#define CG_PIECE_SYMBOLS_ 8192u /* symbols of a piece, at most */
#define CG_RICE_MAX_PARAMETER_ 40u
/* How a piece is written. */
enum {
    CG_PIECE_PACKED_ = 0, /* packed symbols, or raw floats */
    CG_PIECE_CODED_ = 1,  /* by the value code; Elias codes: a codeword per symbol (dense) */
    CG_PIECE_SPARSE_ = 2  /* Elias codes: gaps and levels of what is not zero */
};
/* The entropy code of values; part of the wire format. */
enum {
    CG_VALUE_CODE_PACKED_ = 0,
    CG_VALUE_CODE_GAMMA_ = 1,
    CG_VALUE_CODE_DELTA_ = 2,
    CG_VALUE_CODE_OMEGA_ = 3,
    CG_VALUE_CODE_HUFFMAN_ = 4,
    CG_VALUE_CODE_QUARTIC_ = 5,
    CG_VALUE_CODE_RANS_ = 6
};

typedef struct cg_alphabet_ {
    unsigned bits;       /* of a packed symbol, 1..8 */
    uint8_t max_symbol;  /* symbols are 0..max_symbol */
    uint8_t zero_symbol; /* the symbol of level 0; 0: there are no negative levels */
} cg_alphabet_;

CG_INLINE_ uint32_t cg_piece_entry_(unsigned mode, size_t bits) { return (uint32_t)mode << 30 | (uint32_t)bits; }
CG_INLINE_ size_t cg_piece_entry_bits_(uint32_t entry) { return entry & 0x3fffffffu; }
/* Clears the bytes of the last word that the piece of `bits` bits at out does not touch, and returns the entry. */
static uint32_t cg_piece_close_(unsigned mode, size_t bits, uint8_t *out) {
    for (size_t i = (bits + 7) / 8; i % 4; i++) out[i] = 0;
    return cg_piece_entry_(mode, bits);
}
/* Whether an entry can belong to the `bytes` bytes at in: packed has exactly `packed` bits, coded fewer; the words
   are as many as the bits need, and what follows the bits is 0. */
static int cg_piece_entry_check_(uint32_t entry, size_t packed, const uint8_t *in, size_t bytes) {
    size_t bits = cg_piece_entry_bits_(entry);
    if (entry >> 30 ? bits >= packed : bits != packed) return 0;
    return bytes == (size_t)cg_word_bytes_(bits) && (bits % 32 == 0 || cg_get32_(in + bytes - 4) >> bits % 32 == 0);
}

/* At least 57 bits from bit `at` on, of a string of `bits` bits; what follows its end reads as 0, and is not
   accessed. */
static uint64_t cg_bits_peek_tail_(const uint8_t *in, size_t bits, size_t at) {
    uint64_t w = 0;
    size_t from = at >> 3, left;
    if (at >= bits) return 0;
    left = bits - at;
    for (unsigned j = 0; j < 8 && from + j < (bits + 7) / 8; j++) w |= (uint64_t)in[from + j] << 8 * j;
    w >>= at & 7;
    return left < 64 ? w & (((uint64_t)1 << left) - 1) : w;
}
CG_INLINE_ uint64_t cg_bits_peek_(const uint8_t *in, size_t bits, size_t at) {
    if (CG_LIKELY_(at + 64 <= bits)) return cg_get64_(in + (at >> 3)) >> (at & 7);
    return cg_bits_peek_tail_(in, bits, at);
}

/* A string of bits that is being written. */
typedef struct cg_bitstream_ {
    uint8_t *next;   /* the byte that the next bit goes to */
    uint8_t *end;    /* bytes from here on are not written */
    uint64_t word;   /* bits of *next that are there already */
    unsigned filled; /* how many: 0..7 between calls */
} cg_bitstream_;

/* Appends the low `bits` <= 56 bits of v, which has no others. Writes up to 8 bytes from next on: what follows the
   string is scribbled on, up to end. Bits beyond end are lost. */
CG_INLINE_ void cg_bitstream_put_(cg_bitstream_ *w, uint64_t v, unsigned bits) {
    w->word |= v << w->filled;
    w->filled += bits;
    if (CG_LIKELY_(w->end - w->next >= 8)) cg_put64_(w->next, w->word);
    else
        for (unsigned j = 0; j < 8 && w->next + j < w->end; j++) w->next[j] = (uint8_t)(w->word >> 8 * j);
    w->next += w->filled >> 3;
    w->word >>= w->filled & 56;
    w->filled &= 7;
}
/* Appends the codewords of n symbols. table[symbol] is codeword << 8 | length; `group` (3 or 5) codewords have at
   most 56 bits together. */
CG_INLINE_ void cg_bitstream_put_symbols_(
    cg_bitstream_ *out, const uint32_t *table, const uint8_t *symbols, size_t n, size_t group) {
    cg_bitstream_ w = *out;
    size_t i = 0;
    for (; i + group <= n; i += group) {
        uint32_t e = table[symbols[i]], total = e; /* only its low byte counts: the sum of lengths */
        uint64_t v = e >> 8;
#define CG_JOIN_(j)                        \
  e = table[symbols[i + j]];               \
  v |= (uint64_t)(e >> 8) << (total & 63); \
  total += e;
        CG_JOIN_(1)
        CG_JOIN_(2)
        if (group == 5) { CG_JOIN_(3) CG_JOIN_(4) }
#undef CG_JOIN_
        cg_bitstream_put_(&w, v, total & 63);
    }
    for (; i < n; i++) cg_bitstream_put_(&w, table[symbols[i]] >> 8, table[symbols[i]] & 63);
    *out = w;
}
CG_INLINE_ cg_bitstream_ cg_bitstream_open_(uint8_t *at, uint8_t *end) {
    cg_bitstream_ w;
    w.next = at;
    w.end = end;
    w.word = 0;
    w.filled = 0;
    return w;
}

/* Symbols in quarter s (0..3) of n: (n + 3)/4 each, the last ones have what is left. */
CG_INLINE_ size_t cg_quarter_size_(size_t n, unsigned s) {
    size_t q = (n + 3) / 4;
    return n <= q * s ? 0 : cg_min_(q, n - q * s);
}

/* count[256*s + symbol]: how often a symbol occurs in quarter s. With one table for all, equal neighbours would wait
   for each other. */
static void cg_histogram4_(const uint8_t *symbols, size_t n, uint32_t *count /* 4 of 256 */) {
    const size_t q = (n + 3) / 4, all = cg_quarter_size_(n, 3);
    memset(count, 0, 1024 * sizeof *count);
    for (size_t i = 0; i < all; i++) {
        count[symbols[i]]++;
        count[256 + symbols[q + i]]++;
        count[512 + symbols[2 * q + i]]++;
        count[768 + symbols[3 * q + i]]++;
    }
    for (unsigned s = 0; s < 3; s++)
        for (size_t i = all; i < cg_quarter_size_(n, s); i++) count[256 * s + symbols[q * s + i]]++;
}

/* src/core/codes/huffman.h */
/* huffman: canonical Huffman codes of at most 11 bits, for pieces of up to CG_PIECE_SYMBOLS_ symbols

   Offers   cg_huffman_plan_, cg_huffman_put_ (in this order); cg_huffman_header_get_, cg_huffman_get_ (in this order)
   Needs    base, bits
   Touches  nothing but its arguments
   A piece is
     min, max           u8 each, the least and the greatest symbol in use; where they are equal, nothing follows
     lengths            4 bits for each of min..max, the even ones low; 0: not in use; filled up to a byte
     size[3]            u16: bytes of the first three strings
     4 strings          codewords of (n+3)/4 symbols each, the last has what is left; filled up to a byte
   A string that is too short reads on into what follows it, and 0 after the piece: every input decodes to something. */

#define CG_HUFFMAN_MAX_BITS_ 11u
#define CG_HUFFMAN_TABLE_SIZE_ 2048u /* 1 << CG_HUFFMAN_MAX_BITS_ */

typedef struct cg_huffman_ {
    unsigned min_symbol, max_symbol; /* in use */
    uint8_t length[256];             /* bits of the codeword of each symbol min..max; 0: not in use */
    size_t stream_start[5];          /* bytes from the start of the piece to the four strings, and to its end */
} cg_huffman_;

/* length[symbol] of `used` >= 2 symbols, given as key = count << 8 | symbol, which are sorted on the way; counts add
   up to less than 2^16. Moffat and Katajainen's method in place, then the tree is cut at 11: a leaf that is too deep
   becomes the brother of a leaf that goes one down, which frees one place of the last row each time. */
static void cg_huffman_lengths_(uint32_t *key, unsigned used, uint8_t *length) {
    static const uint8_t gaps[5] = { 57, 23, 10, 4, 1 };
    uint16_t a[256];
    uint32_t num[CG_HUFFMAN_MAX_BITS_ + 1] = { 0 }, kraft = 0;
    unsigned root = 0, leaf = 2, depth = 0, open = 1, at = 0;
    for (unsigned g = 0; g < 5; g++)
        for (unsigned i = gaps[g]; i < used; i++) {
            uint32_t k = key[i];
            unsigned j = i;
            for (; j >= gaps[g] && key[j - gaps[g]] > k; j -= gaps[g]) key[j] = key[j - gaps[g]];
            key[j] = k;
        }
    for (unsigned i = 0; i < used; i++) a[i] = (uint16_t)(key[i] >> 8);
    a[0] = (uint16_t)(a[0] + a[1]);
    for (unsigned next = 1; next + 1 < used; next++) {
        uint32_t sum = 0;
        for (unsigned twice = 0; twice < 2; twice++) {
            if (root < next && (leaf >= used || a[root] < a[leaf])) {
                sum += a[root];
                a[root++] = (uint16_t)next;
            } else sum += a[leaf++];
        }
        a[next] = (uint16_t)sum;
    }
    a[used - 2] = 0;
    for (unsigned i = used - 2; i-- > 0;) a[i] = (uint16_t)(a[a[i]] + 1); /* depth of the inner nodes */
    for (root = used - 1; open; depth++) {
        unsigned inner = 0;
        while (root && a[root - 1] == depth) {
            inner++;
            root--;
        }
        num[depth < CG_HUFFMAN_MAX_BITS_ ? depth : CG_HUFFMAN_MAX_BITS_] += open - inner;
        open = 2 * inner;
    }
    for (unsigned l = 1; l <= CG_HUFFMAN_MAX_BITS_; l++) kraft += num[l] << (CG_HUFFMAN_MAX_BITS_ - l);
    for (; kraft > CG_HUFFMAN_TABLE_SIZE_; kraft--) {
        unsigned l = CG_HUFFMAN_MAX_BITS_ - 1;
        while (!num[l]) l--;
        num[l]--;
        num[l + 1] += 2;
        num[CG_HUFFMAN_MAX_BITS_]--;
    }
    for (unsigned l = CG_HUFFMAN_MAX_BITS_; l; l--)
        for (; num[l]; num[l]--) length[key[at++] & 255] = (uint8_t)l;
}
/* The codeword of l bits that follows in canonical order. The first bit of a codeword is its lowest: so this is an
   addition of 1 whose carry goes down. */
CG_INLINE_ unsigned cg_huffman_next_code_(unsigned code, unsigned l) {
    unsigned bit = 1u << (l - 1);
    while (code & bit) bit >>= 1;
    return bit ? (code & (bit - 1)) | bit : 0;
}
/* num[l]: codewords of l bits, l = 0..11; order: the symbols in use by length, then by symbol. */
static void cg_huffman_canonical_order_(const cg_huffman_ *h, unsigned *num, uint8_t *order) {
    unsigned at[CG_HUFFMAN_MAX_BITS_ + 1];
    for (unsigned l = 0; l <= CG_HUFFMAN_MAX_BITS_; l++) num[l] = 0;
    for (unsigned s = h->min_symbol; s <= h->max_symbol; s++) num[h->length[s]]++;
    at[0] = 0;
    at[1] = 0;
    for (unsigned l = 2; l <= CG_HUFFMAN_MAX_BITS_; l++) at[l] = at[l - 1] + num[l - 1];
    for (unsigned s = h->min_symbol; s <= h->max_symbol; s++)
        if (h->length[s]) order[at[h->length[s]]++] = (uint8_t)s;
}
/* Chooses the code of n > 0 symbols; returns the bytes that cg_huffman_put_ will write. */
CG_NOINLINE_ size_t cg_huffman_plan_(cg_huffman_ *h, const uint8_t *symbols, size_t n) {
    uint32_t count[1024];
    uint32_t key[256];
    unsigned used = 0;
    cg_histogram4_(symbols, n, count);
    h->min_symbol = 256;
    h->max_symbol = 0;
    memset(h->length, 0, sizeof h->length);
    for (unsigned s = 0; s < 256; s++) {
        uint32_t c = count[s] + count[256 + s] + count[512 + s] + count[768 + s];
        if (!c) continue;
        if (h->min_symbol > s) h->min_symbol = s;
        h->max_symbol = s;
        key[used++] = c << 8 | s;
    }
    if (used < 2) return 2;
    cg_huffman_lengths_(key, used, h->length);
    h->stream_start[0] = 2 + (h->max_symbol - h->min_symbol + 2) / 2 + 6;
    for (unsigned q = 0; q < 4; q++) {
        size_t bits = 0;
        for (unsigned s = h->min_symbol; s <= h->max_symbol; s++) bits += (size_t)count[256 * q + s] * h->length[s];
        h->stream_start[q + 1] = h->stream_start[q] + (bits + 7) / 8;
    }
    return h->stream_start[4];
}
/* Writes the piece that h was planned for; bytes between its end and `end` may be scribbled on. */
static void cg_huffman_put_(const cg_huffman_ *h, const uint8_t *symbols, size_t n, uint8_t *out, uint8_t *end) {
    uint32_t table[256];
    uint8_t order[256];
    unsigned num[CG_HUFFMAN_MAX_BITS_ + 1], code = 0, at = 0;
    out[0] = (uint8_t)h->min_symbol;
    out[1] = (uint8_t)h->max_symbol;
    if (h->min_symbol == h->max_symbol) return;
    cg_huffman_canonical_order_(h, num, order);
    for (unsigned l = 1; l <= CG_HUFFMAN_MAX_BITS_; l++)
        for (unsigned j = 0; j < num[l]; j++, code = cg_huffman_next_code_(code, l)) table[order[at++]] = code << 8 | l;
    for (unsigned s = h->min_symbol; s <= h->max_symbol; s += 2)
        out[2 + (s - h->min_symbol) / 2] =
            (uint8_t)(h->length[s] | (s < h->max_symbol ? (unsigned)h->length[s + 1] << 4 : 0u));
    for (unsigned q = 0; q < 3; q++)
        cg_put16_(out + h->stream_start[0] - 6 + 2 * q, (uint32_t)(h->stream_start[q + 1] - h->stream_start[q]));
    for (unsigned q = 0; q < 4; q++) {
        cg_bitstream_ w = cg_bitstream_open_(out + h->stream_start[q], end);
        cg_bitstream_put_symbols_(&w, table, symbols, cg_quarter_size_(n, q), 5);
        symbols += cg_quarter_size_(n, q);
    }
}
/* Reads and checks the header of a piece of `bytes` bytes with n symbols, all of them at most max_symbol. Returns 0
   if no encoder writes such: the code must be complete, and each string have a possible length. */
static int cg_huffman_header_get_(cg_huffman_ *h, unsigned max_symbol, const uint8_t *in, size_t bytes, size_t n) {
    unsigned many, kraft = 0;
    if (bytes < 2) return 0;
    h->min_symbol = in[0];
    h->max_symbol = in[1];
    if (h->min_symbol > h->max_symbol || h->max_symbol > max_symbol) return 0;
    if (h->min_symbol == h->max_symbol) return bytes == 2;
    many = h->max_symbol - h->min_symbol + 1;
    h->stream_start[0] = 2 + (many + 1) / 2 + 6;
    if (bytes < h->stream_start[0]) return 0;
    for (unsigned i = 0; i < many; i++) {
        unsigned l = (unsigned)in[2 + i / 2] >> i % 2 * 4 & 15;
        if (l > CG_HUFFMAN_MAX_BITS_) return 0;
        if (l) kraft += CG_HUFFMAN_TABLE_SIZE_ >> l;
        h->length[h->min_symbol + i] = (uint8_t)l;
    }
    if (kraft != CG_HUFFMAN_TABLE_SIZE_ || !h->length[h->min_symbol] || !h->length[h->max_symbol] ||
        (many % 2 && in[1 + (many + 1) / 2] >> 4))
        return 0;
    for (unsigned q = 0; q < 3; q++)
        h->stream_start[q + 1] = h->stream_start[q] + cg_get16_(in + h->stream_start[0] - 6 + 2 * q);
    h->stream_start[4] = bytes;
    for (unsigned q = 0; q < 4; q++) {
        size_t symbols = cg_quarter_size_(n, q), size = h->stream_start[q + 1] - h->stream_start[q];
        if (h->stream_start[q] > h->stream_start[q + 1] || 8 * size < symbols ||
            size > (CG_HUFFMAN_MAX_BITS_ * symbols + 7) / 8)
            return 0;
    }
    return 1;
}
/* n symbols of a piece whose header was checked for the same n. Whatever the strings hold, the symbols are in use. */
CG_NOINLINE_ void cg_huffman_get_(const cg_huffman_ *h, const uint8_t *in, size_t n, uint8_t *symbols) {
    /* symbol << 8 | length of the code that the next 11 bits begin with */
    uint16_t table[CG_HUFFMAN_TABLE_SIZE_];
    uint8_t order[256];
    unsigned num[CG_HUFFMAN_MAX_BITS_ + 1], code = 0, at = 0;
    const size_t q = (n + 3) / 4, all = cg_quarter_size_(n, 3);
    size_t i = 0, p[4], bits;
    if (h->min_symbol == h->max_symbol) {
        memset(symbols, (int)h->min_symbol, n);
        return;
    }
    cg_huffman_canonical_order_(h, num, order);
    table[0] = 0;
    /* doubled for each length; the code is complete, so that every entry is set */
    for (unsigned l = 1; l <= CG_HUFFMAN_MAX_BITS_; l++) {
        memcpy(table + (1u << (l - 1)), table, sizeof *table << (l - 1));
        for (unsigned j = 0; j < num[l]; j++, code = cg_huffman_next_code_(code, l))
            table[code] = (uint16_t)((unsigned)order[at++] << 8 | l);
    }
    for (unsigned s = 0; s < 4; s++) p[s] = 8 * h->stream_start[s];
    bits = 8 * h->stream_start[4];
    {
        size_t p0 = p[0], p1 = p[1], p2 = p[2], p3 = p[3];
        uint8_t *o0 = symbols, *o1 = symbols + q, *o2 = symbols + 2 * q, *o3 = symbols + 3 * q;
        for (; i + 5 <= all && p0 + 64 <= bits && p1 + 64 <= bits && p2 + 64 <= bits && p3 + 64 <= bits; i += 5) {
            uint64_t w0 = cg_get64_(in + (p0 >> 3)) >> (p0 & 7), w1 = cg_get64_(in + (p1 >> 3)) >> (p1 & 7);
            uint64_t w2 = cg_get64_(in + (p2 >> 3)) >> (p2 & 7), w3 = cg_get64_(in + (p3 >> 3)) >> (p3 & 7);
            uint32_t t0 = 0, t1 = 0, t2 = 0, t3 = 0, e; /* their low bytes are sums of lengths */
#define CG_HUFFMAN_STEP_(s, j)                    \
  e = table[w##s & (CG_HUFFMAN_TABLE_SIZE_ - 1)]; \
  w##s >>= e & 63;                                \
  t##s += e;                                      \
  o##s[i + j] = (uint8_t)(e >> 8);
#define CG_HUFFMAN_STEP4_(j) CG_HUFFMAN_STEP_(0, j) CG_HUFFMAN_STEP_(1, j) CG_HUFFMAN_STEP_(2, j) CG_HUFFMAN_STEP_(3, j)
            CG_HUFFMAN_STEP4_(0)
            CG_HUFFMAN_STEP4_(1)
            CG_HUFFMAN_STEP4_(2)
            CG_HUFFMAN_STEP4_(3)
            CG_HUFFMAN_STEP4_(4)
#undef CG_HUFFMAN_STEP4_
#undef CG_HUFFMAN_STEP_
            p0 += t0 & 255;
            p1 += t1 & 255;
            p2 += t2 & 255;
            p3 += t3 & 255;
        }
        p[0] = p0;
        p[1] = p1;
        p[2] = p2;
        p[3] = p3;
    }
    for (unsigned s = 0; s < 4; s++)
        for (size_t j = i; j < cg_quarter_size_(n, s); j++) {
            unsigned e = table[cg_bits_peek_(in, bits, p[s]) & (CG_HUFFMAN_TABLE_SIZE_ - 1)];
            p[s] += e & 255;
            symbols[q * s + j] = (uint8_t)(e >> 8);
        }
}

/* src/core/codes/elias.h */
/* elias: Elias gamma, delta and omega codes of levels, dense or as gaps between levels that are not zero

   Offers   cg_elias_codeword_, cg_symbol_magnitude_; dense: cg_elias_dense_table_, cg_elias_dense_get_; sparse:
            cg_elias_sparse_put_, cg_elias_sparse_get_
   Needs    base, bits
   Touches  nothing but its arguments
   Codewords of v >= 1 with L = floor(log2 v), first bits first:
     gamma   L zeros, a 1, the L low bits of v
     delta   gamma(L + 1), the L low bits of v
     omega   the groups of v, L, floor(log2 L), ... down to 2 or 3, the last one first, then a 0; a group of a number is
             a 1 and its bits below the leading one
   A decoder meets numbers that no encoder wrote: L counts as at most 16, the gamma within delta has at most 4 zeros,
   and an omega ends once it is above 16. So no codeword takes more than 33 bits. */

/* The codeword of 0 < v < 2^16, its first bit lowest, and its length. */
static uint64_t cg_elias_codeword_(uint32_t value_code, uint32_t v, unsigned *bits) {
    unsigned l = cg_log2_(v);
    uint64_t low = v - (1u << l), w;
    unsigned length;
    if (value_code == CG_VALUE_CODE_GAMMA_) {
        *bits = 2 * l + 1;
        return (low << 1 | 1) << l;
    }
    if (value_code == CG_VALUE_CODE_DELTA_) {
        w = cg_elias_codeword_(CG_VALUE_CODE_GAMMA_, l + 1, &length);
        *bits = length + l;
        return w | low << length;
    }
    for (w = 0, length = 1; v > 1; v = l) {
        l = cg_log2_(v);
        w = w << (l + 1) | (uint64_t)(v - (1u << l)) << 1 | 1;
        length += l + 1;
    }
    *bits = length;
    return w;
}
/* Reads one codeword from w, at least 34 bits of the string (0 after its end), and adds its length to *at. */
CG_INLINE_ uint32_t cg_elias_get_(uint32_t value_code, uint64_t w, size_t *at) {
    if (value_code == CG_VALUE_CODE_OMEGA_) {
        uint32_t v = 1;
        while (w & 1) {
            if (v > 16) break;
            *at += v + 1;
            w >>= 1;
            {
                uint32_t next = (1u << v) + ((uint32_t)w & ((1u << v) - 1));
                w >>= v;
                v = next;
            }
        }
        *at += 1;
        return v;
    } else {
        unsigned l = cg_ctz_(w | (uint64_t)1 << (value_code == CG_VALUE_CODE_GAMMA_ ? 16 : 4));
        uint32_t v;
        w >>= l + 1;
        v = (1u << l) + ((uint32_t)w & ((1u << l) - 1));
        *at += 2 * l + 1;
        if (value_code == CG_VALUE_CODE_GAMMA_) return v;
        w >>= l;
        l = v - 1 < 16 ? v - 1 : 16;
        *at += l;
        return (1u << l) + ((uint32_t)w & ((1u << l) - 1));
    }
}
/* The symbol of a level, which is clamped to the alphabet. */
CG_INLINE_ uint8_t cg_symbol_from_level_(const cg_alphabet_ *a, unsigned negative, uint32_t level) {
    unsigned max_level = negative ? a->zero_symbol : (unsigned)a->max_symbol - a->zero_symbol;
    if (level > max_level) level = max_level;
    return (uint8_t)(negative ? a->zero_symbol - level : a->zero_symbol + level);
}
/* |level| of a symbol */
CG_INLINE_ uint32_t cg_symbol_magnitude_(const cg_alphabet_ *a, unsigned s) {
    return s < a->zero_symbol ? a->zero_symbol - s : s - a->zero_symbol;
}

/* Dense: for each symbol a sign bit if there are signs (1: negative), then the codeword of |level| + 1. table[symbol]
   is as cg_bitstream_put_symbols_ takes it; three entries have at most 56 bits. */
static void cg_elias_dense_table_(uint32_t value_code, const cg_alphabet_ *a, uint32_t *table) {
    for (unsigned s = 0; s <= a->max_symbol; s++) {
        unsigned bits;
        uint32_t w = (uint32_t)cg_elias_codeword_(value_code, cg_symbol_magnitude_(a, s) + 1, &bits);
        table[s] = a->zero_symbol ? (w << 1 | (s < a->zero_symbol)) << 8 | (bits + 1) : w << 8 | bits;
    }
}
/* Sparse: for each symbol that is not zero the codeword of its distance from the last such one (the first: from -1),
   the sign bit if there are signs, the codeword of |level|. Entries of both tables are bits << 8 | length:
   value[symbol] of sign and level, gaps[1..63] of distances. */
static void cg_elias_sparse_table_(uint32_t value_code, const cg_alphabet_ *a, uint32_t *value, uint32_t *gaps) {
    unsigned bits;
    for (unsigned g = 1; g < 64; g++) {
        gaps[g] = (uint32_t)cg_elias_codeword_(value_code, g, &bits) << 8;
        gaps[g] |= bits;
    }
    for (unsigned s = 0; s <= a->max_symbol; s++) {
        uint32_t v;
        if (s == a->zero_symbol) {
            value[s] = 0;
            continue;
        }
        v = (uint32_t)cg_elias_codeword_(value_code, cg_symbol_magnitude_(a, s), &bits);
        value[s] = a->zero_symbol ? (v << 1 | (s < a->zero_symbol)) << 8 | (bits + 1) : v << 8 | bits;
    }
}
/* Writes n <= CG_PIECE_SYMBOLS_ symbols; returns the bits written, or `limit` if they would be as many or more. Bytes
   up to end may be scribbled on. */
static size_t cg_elias_sparse_put_(uint32_t value_code, const cg_alphabet_ *a, const uint8_t *symbols, size_t n,
    uint8_t *out, uint8_t *end, size_t limit) {
    uint32_t value[256], gaps[64];
    uint16_t position[1024];
    const uint64_t zeros = a->zero_symbol * (uint64_t)0x0101010101010101u;
    cg_bitstream_ w = cg_bitstream_open_(out, end);
    size_t next = 0, total = 0;
    cg_elias_sparse_table_(value_code, a, value, gaps);
    for (size_t from = 0; from < n; from += 1024) {
        const size_t to = cg_min_(from + 1024, n);
        size_t i = from, many = 0;
        for (; i + 8 <= to; i += 8) {
            if (cg_get64_(symbols + i) == zeros) continue;
            for (size_t j = i; j < i + 8; j++) {
                position[many] = (uint16_t)j;
                many += symbols[j] != a->zero_symbol;
            }
        }
        for (; i < to; i++)
            if (symbols[i] != a->zero_symbol) position[many++] = (uint16_t)i;
        for (i = 0; i < many; i++) {
            const size_t gap = position[i] + 1u - next;
            const uint32_t v = value[symbols[position[i]]];
            uint64_t g;
            unsigned bits;
            if (CG_LIKELY_(gap < 64)) {
                g = gaps[gap] >> 8;
                bits = gaps[gap] & 63;
            } else g = cg_elias_codeword_(value_code, (uint32_t)gap, &bits);
            g |= (uint64_t)(v >> 8) << bits;
            bits += v & 63;
            total += bits;
            if (total >= limit) return limit;
            cg_bitstream_put_(&w, g, bits);
            next = position[i] + 1u;
        }
    }
    return total;
}
#define CG_ELIAS_SPARSE_TABLE_BITS_ 10u
#define CG_ELIAS_SPARSE_TABLE_SIZE_ 1024u
/* n symbols from `bits` bits; whatever they hold, symbols are those of the alphabet. What the bits do not reach is
   zero. */
CG_NOINLINE_ void cg_elias_sparse_get_(
    uint32_t value_code, const cg_alphabet_ *a, const uint8_t *in, size_t bits, size_t n, uint8_t *symbols) {
    /* table[next 10 bits]: symbol, gap << 8, length of both << 24; 0: longer than 10 bits */
    uint32_t value[256], gaps[64], table[CG_ELIAS_SPARSE_TABLE_SIZE_];
    const int use_table = bits >= 4096; /* else the table costs more than it saves */
    size_t at = 0, position = (size_t)0 - 1;
    memset(symbols, a->zero_symbol, n);
    if (use_table) {
        memset(table, 0, sizeof table);
        cg_elias_sparse_table_(value_code, a, value, gaps);
        for (unsigned g = 1; g < 64; g++)
            for (unsigned s = 0, l; s <= a->max_symbol; s++) {
                if (s == a->zero_symbol || (l = (gaps[g] & 63) + (value[s] & 63)) > CG_ELIAS_SPARSE_TABLE_BITS_)
                    continue;
                for (uint32_t w = gaps[g] >> 8 | value[s] >> 8 << (gaps[g] & 63); w < CG_ELIAS_SPARSE_TABLE_SIZE_;
                     w += 1u << l)
                    table[w] = s | g << 8 | l << 24;
            }
    }
    while (at < bits) {
        unsigned negative = 0;
        uint64_t w;
        while (use_table && at + 64 <= bits) {
            uint32_t e = 0;
            w = cg_get64_(in + (at >> 3)) >> (at & 7);
            for (unsigned j = 0; j < 5; j++) {
                e = table[w & (CG_ELIAS_SPARSE_TABLE_SIZE_ - 1)];
                if (!e) break;
                position += e >> 8 & 255;
                if (position >= n) return;
                symbols[position] = (uint8_t)e;
                w >>= e >> 24;
                at += e >> 24;
            }
            if (!e) break;
        }
        position += cg_elias_get_(value_code, cg_bits_peek_(in, bits, at), &at);
        if (position >= n) return;
        w = cg_bits_peek_(in, bits, at);
        if (a->zero_symbol) {
            negative = w & 1;
            w >>= 1;
            at++;
        }
        symbols[position] = cg_symbol_from_level_(a, negative, cg_elias_get_(value_code, w, &at));
    }
}
/* One symbol from w, as cg_elias_get_. */
CG_INLINE_ uint8_t cg_elias_dense_get_one_(uint32_t value_code, const cg_alphabet_ *a, uint64_t w, size_t *at) {
    unsigned negative = 0;
    if (a->zero_symbol) {
        negative = w & 1;
        w >>= 1;
        ++*at;
    }
    return cg_symbol_from_level_(a, negative, cg_elias_get_(value_code, w, at) - 1);
}
#define CG_ELIAS_DENSE_TABLE_BITS_ 10u
#define CG_ELIAS_DENSE_TABLE_SIZE_ 1024u
/* n symbols from `bits` bits; whatever they hold, symbols are those of the alphabet. What the bits do not reach is
   zero. */
CG_NOINLINE_ void cg_elias_dense_get_(
    uint32_t value_code, const cg_alphabet_ *a, const uint8_t *in, size_t bits, size_t n, uint8_t *symbols) {
    /* table[next 10 bits]: one or two symbols in the low bytes, how many << 16, their length << 24; 0: longer than 10
       */
    uint32_t one[256], table[CG_ELIAS_DENSE_TABLE_SIZE_];
    size_t at = 0, i = 0;
    if (n >= 1024) {
        memset(table, 0, sizeof table);
        cg_elias_dense_table_(value_code, a, one);
        for (unsigned s = 0; s <= a->max_symbol; s++)
            if ((one[s] & 255) <= CG_ELIAS_DENSE_TABLE_BITS_)
                for (uint32_t w = one[s] >> 8; w < CG_ELIAS_DENSE_TABLE_SIZE_; w += 1u << (one[s] & 255))
                    table[w] = s | 1u << 16 | (one[s] & 255) << 24;
        /* downwards, as the entry of the second symbol lies lower, and must still be of a single one */
        for (uint32_t w = CG_ELIAS_DENSE_TABLE_SIZE_; w-- > 0;) {
            uint32_t e = table[w], f = table[w >> (e >> 24)];
            if (e && f && (e >> 24) + (f >> 24) <= CG_ELIAS_DENSE_TABLE_BITS_)
                table[w] = e + ((f & 255) << 8) + (1u << 16) + (f & 0xff000000u);
        }
        while (n - i >= 10 && at + 64 <= bits) {
            uint64_t w = cg_get64_(in + (at >> 3)) >> (at & 7);
            for (unsigned j = 0; j < 5; j++) {
                uint32_t e = table[w & (CG_ELIAS_DENSE_TABLE_SIZE_ - 1)];
                if (!e) {
                    symbols[i++] = cg_elias_dense_get_one_(value_code, a, cg_bits_peek_(in, bits, at), &at);
                    break;
                }
                cg_put16_(symbols + i, e & 0xffff);
                i += e >> 16 & 255;
                w >>= e >> 24;
                at += e >> 24;
            }
        }
    }
    for (; i < n && at < bits; i++)
        symbols[i] = cg_elias_dense_get_one_(value_code, a, cg_bits_peek_(in, bits, at), &at);
    memset(symbols + i, a->zero_symbol, n - i);
}

/* src/core/codes/quartic.h */
/* quartic: ternary symbols, five to a byte, with runs of zeros shortened (3LC)

   Offers   cg_quartic_put_, cg_quartic_check_, cg_quartic_get_
   Needs    base, bits
   Touches  nothing but its arguments
   A byte is the sum of t_i*3^i over five symbols 0..2; the last group is filled up with zero_symbol. Five symbols 1,
   which is the zero of ternary alphabets, are the byte 121. A run of 2..14 such bytes becomes the one byte 241 + its
   length. */

/* Writes n symbols; returns the bytes written, at most limit, or limit + 1 if they do not fit. */
static size_t cg_quartic_put_(const cg_alphabet_ *a, const uint8_t *symbols, size_t n, uint8_t *out, size_t limit) {
    const uint64_t times = (uint64_t)1 << 32 | 3u << 24 | 9u << 16 | 27u << 8 | 81u,
                   zeros = a->zero_symbol * (uint64_t)0x0101010101u;
    size_t bytes = 0;
    unsigned run_length = 0;
    for (size_t i = 0; i < n; i += 5) {
        uint64_t x = zeros;
        uint8_t q;
        if (n - i >= 8) x = cg_get64_(symbols + i) & 0xffffffffffu;
        else
            for (size_t j = 0; j < 5 && j < n - i; j++)
                x = (x & ~((uint64_t)255 << 8 * j)) | (uint64_t)symbols[i + j] << 8 * j;
        q = (uint8_t)(x * times >> 32);
        run_length = q == 121 && run_length < 14 ? run_length + 1 : q == 121;
        if (run_length < 2) {
            if (bytes == limit) return limit + 1;
            out[bytes++] = q;
        } else {
            out[bytes - 1] = (uint8_t)(241 + run_length);
        }
    }
    return bytes;
}
/* Whether these bytes hold just n symbols. */
static int cg_quartic_check_(const uint8_t *in, size_t bytes, size_t n) {
    size_t groups = 0;
    for (size_t i = 0; i < bytes; i++) groups += in[i] < 243 ? 1u : in[i] - 241u;
    return groups == (n + 4) / 5;
}
/* n symbols 0..2, whatever the bytes are; zeros where they end early. */
static void cg_quartic_get_(const uint8_t *in, size_t bytes, size_t n, uint8_t *symbols) {
    uint64_t table[243]; /* the five symbols of a byte, a byte each */
    size_t i = 0, j = 0;
    unsigned repeat = 0;
    table[0] = 0;
    for (unsigned t = 0, many = 1; t < 5; t++, many *= 3)
        for (unsigned q = 0; q < 2 * many; q++) table[many + q] = table[q] + ((uint64_t)1 << 8 * t);
    for (; i < n; i += 5) {
        unsigned q = 121;
        if (repeat) repeat--;
        else if (j < bytes) {
            q = in[j++];
            if (q >= 243) {
                repeat = q - 242;
                q = 121;
            }
        }
        if (n - i >= 8) cg_put64_(symbols + i, table[q]);
        else
            for (size_t t = 0; t < 5 && t < n - i; t++) symbols[i + t] = (uint8_t)(table[q] >> 8 * t);
    }
}

/* src/core/codes/symbols.h */
/* symbols: pieces of symbols, written by the value code or packed, whichever is shorter

   Offers   cg_code_fits_alphabet_, cg_piece_put_, cg_piece_check_, cg_piece_get_
   Needs    base, kernels, bits, huffman, elias, quartic
   Touches  nothing but its arguments */

/* Whether the alphabet is a possible one, and this code can write it. */

static int cg_code_fits_alphabet_(uint32_t value_code, const cg_alphabet_ *a) {
    if (value_code > CG_VALUE_CODE_QUARTIC_ || a->bits < 1 || a->bits > 8 || a->max_symbol >> (a->bits - 1) > 1 ||
        a->zero_symbol > a->max_symbol)
        return 0;
    return value_code != CG_VALUE_CODE_QUARTIC_ || a->max_symbol == 2;
}
/* Writes n <= CG_PIECE_SYMBOLS_ symbols, all at most max_symbol, and returns the entry. cap: bytes at out, at least
   those of the packed words; all of them may be scribbled on. Of two modes with equal lengths, the lower is taken. */
CG_NOINLINE_ uint32_t cg_piece_put_(const cg_kernels_ *kernels, uint32_t value_code, const cg_alphabet_ *a,
    const uint8_t *symbols, size_t n, uint8_t *out, size_t cap) {
    const size_t packed = n * a->bits;
    if (n && value_code == CG_VALUE_CODE_HUFFMAN_) {
        cg_huffman_ h;
        size_t bytes = cg_huffman_plan_(&h, symbols, n);
        if (8 * bytes < packed) {
            cg_huffman_put_(&h, symbols, n, out, out + cap);
            return cg_piece_close_(CG_PIECE_CODED_, 8 * bytes, out);
        }
    } else if (n && value_code == CG_VALUE_CODE_QUARTIC_) {
        size_t limit = (packed - 1) / 8, bytes = cg_quartic_put_(a, symbols, n, out, limit);
        if (bytes <= limit) return cg_piece_close_(CG_PIECE_CODED_, 8 * bytes, out);
    } else if (n && value_code) {
        uint32_t count[1024];
        uint32_t table[256];
        size_t dense = 0, min_sparse = 0, best, sparse;
        cg_histogram4_(symbols, n, count);
        cg_elias_dense_table_(value_code, a, table);
        for (unsigned s = 0; s <= a->max_symbol; s++) {
            size_t c = (size_t)count[s] + count[256 + s] + count[512 + s] + count[768 + s];
            unsigned bits;
            dense += c * (table[s] & 255);
            if (c && s != a->zero_symbol) {
                (void)cg_elias_codeword_(value_code, cg_symbol_magnitude_(a, s), &bits);
                min_sparse += c * (bits + 1 + (a->zero_symbol > 0));
            }
        }
        best = cg_min_(packed, dense);
        if (min_sparse < best) { /* the length if all gaps were 1 */
            sparse = cg_elias_sparse_put_(value_code, a, symbols, n, out, out + cap, best);
            if (sparse < best) return cg_piece_close_(CG_PIECE_SPARSE_, sparse, out);
        }
        if (dense < packed) {
            cg_bitstream_ w = cg_bitstream_open_(out, out + cap);
            cg_bitstream_put_symbols_(&w, table, symbols, n, 3);
            return cg_piece_close_(CG_PIECE_CODED_, dense, out);
        }
    }
    if (a->bits < 8) CG_KERNEL_(kernels, pack(symbols, n, a->bits, out));
    else if (n) memcpy(out, symbols, n);
    return cg_piece_close_(CG_PIECE_PACKED_, packed, out);
}
/* Whether an encoder can have written this piece, as far as its frame and header show: cg_piece_get_ of it is
   defined. */
static int cg_piece_check_(const cg_kernels_ *kernels, uint32_t value_code, const cg_alphabet_ *a, uint32_t entry,
    const uint8_t *in, size_t bytes, size_t n) {
    const unsigned mode = entry >> 30;
    const size_t bits = cg_piece_entry_bits_(entry);
    (void)kernels;
    if (n > CG_PIECE_SYMBOLS_ || !cg_code_fits_alphabet_(value_code, a) ||
        !cg_piece_entry_check_(entry, n * a->bits, in, bytes))
        return 0;
    if (mode == CG_PIECE_PACKED_) return 1;
    if (value_code == CG_VALUE_CODE_PACKED_ ||
        mode > (value_code <= CG_VALUE_CODE_OMEGA_ ? (unsigned)CG_PIECE_SPARSE_ : (unsigned)CG_PIECE_CODED_))
        return 0;
    if (value_code <= CG_VALUE_CODE_OMEGA_) return mode == CG_PIECE_SPARSE_ || bits >= n * (a->zero_symbol ? 2u : 1u);
    if (bits % 8) return 0;
    if (value_code == CG_VALUE_CODE_HUFFMAN_) {
        cg_huffman_ h;
        return cg_huffman_header_get_(&h, a->max_symbol, in, bits / 8, n);
    }
    return cg_quartic_check_(in, bits / 8, n);
}
/* n symbols at most max_symbol, whatever the entry and the `bytes` bytes at in are; what cannot be decoded is zeros.
   symbols has room for n. */
CG_NOINLINE_ void cg_piece_get_(const cg_kernels_ *kernels, uint32_t value_code, const cg_alphabet_ *a, uint32_t entry,
    const uint8_t *in, size_t bytes, size_t n, uint8_t *symbols) {
    const unsigned mode = entry >> 30;
    const size_t bits = cg_min_(cg_piece_entry_bits_(entry), 8 * bytes);
    if (!n) return;
    if (mode == CG_PIECE_PACKED_ && bits >= n * a->bits) {
        if (a->bits < 8) CG_KERNEL_(kernels, unpack(in, n, a->bits, symbols));
        else memcpy(symbols, in, n);
        if (a->max_symbol < (1u << a->bits) - 1)
            for (size_t i = 0; i < n; i++) symbols[i] = symbols[i] < a->max_symbol ? symbols[i] : a->max_symbol;
    } else if (mode == CG_PIECE_CODED_ && value_code == CG_VALUE_CODE_HUFFMAN_) {
        cg_huffman_ h;
        if (cg_huffman_header_get_(&h, a->max_symbol, in, bits / 8, n)) cg_huffman_get_(&h, in, n, symbols);
        else memset(symbols, a->zero_symbol, n);
    } else if (mode == CG_PIECE_CODED_ && value_code == CG_VALUE_CODE_QUARTIC_) {
        cg_quartic_get_(in, bits / 8, n, symbols);
    } else if (mode == CG_PIECE_CODED_ && value_code && value_code <= CG_VALUE_CODE_OMEGA_) {
        cg_elias_dense_get_(value_code, a, in, bits, n, symbols);
    } else if (mode == CG_PIECE_SPARSE_ && value_code && value_code <= CG_VALUE_CODE_OMEGA_) {
        cg_elias_sparse_get_(value_code, a, in, bits, n, symbols);
    } else {
        memset(symbols, a->zero_symbol, n);
    }
}

/* src/core/codes/floats.h */
/* floats: pieces of f32 or bf16 values with their exponents entropy coded

   Offers   cg_floats_put_, cg_floats_check_, cg_floats_get_
   Needs    base, kernels, bits, huffman
   Touches  nothing but its arguments
   A coded piece is the exponents as a Huffman piece, then the rest of each value, the sign on top: 3 bytes, or 1
   (bf16). width: bytes of a value, 4 (f32) or 2 (bf16), as they are on the wire. n is at most CG_CHUNK_. */

/* Writes n <= CG_CHUNK_ values and returns the entry. cap: bytes at out, at least n*width in whole words; all of them
   may be scribbled on. */
CG_NOINLINE_ uint32_t cg_floats_put_(
    const cg_kernels_ *kernels, unsigned width, const uint8_t *in, size_t n, uint8_t *out, size_t cap) {
    if (n) {
        uint8_t exponents[CG_CHUNK_];
        cg_huffman_ h;
        size_t coded;
        CG_KERNEL_(kernels, exponents(width, in, n, exponents));
        coded = cg_huffman_plan_(&h, exponents, n);
        if (coded < n) {
            cg_huffman_put_(&h, exponents, n, out, out + cap);
            CG_KERNEL_(kernels, sign_mantissas(width, in, n, out + coded));
            return cg_piece_close_(CG_PIECE_CODED_, 8 * (coded + n * (width - 1)), out);
        }
        memcpy(out, in, n * width);
    }
    return cg_piece_close_(CG_PIECE_PACKED_, 8 * n * width, out);
}
/* Whether an encoder can have written this piece. Coded values are finite then; raw ones are not looked at. */
CG_NOINLINE_ int cg_floats_check_(
    const cg_kernels_ *kernels, unsigned width, uint32_t entry, const uint8_t *in, size_t bytes, size_t n) {
    cg_huffman_ h;
    const size_t size = cg_piece_entry_bits_(entry) / 8;
    (void)kernels;
    if (n > CG_CHUNK_ || cg_piece_entry_bits_(entry) % 8 || !cg_piece_entry_check_(entry, 8 * n * width, in, bytes))
        return 0;
    if (entry >> 30 == CG_PIECE_PACKED_) return 1;
    /* an exponent of 255 would be Inf or NaN */
    return entry >> 30 == CG_PIECE_CODED_ && size >= n * (width - 1) &&
        cg_huffman_header_get_(&h, 254, in, size - n * (width - 1), n);
}
/* n values, whatever the entry and the `bytes` bytes at in are; what cannot be decoded is zeros. */
CG_NOINLINE_ void cg_floats_get_(const cg_kernels_ *kernels, unsigned width, uint32_t entry, const uint8_t *in,
    size_t bytes, size_t n, uint8_t *out) {
    uint8_t exponents[CG_CHUNK_];
    cg_huffman_ h;
    const size_t size = cg_min_(cg_piece_entry_bits_(entry) / 8, bytes), sign_mantissas = n * (width - 1);
    if (!n) return;
    if (entry >> 30 == CG_PIECE_PACKED_ && size >= n * width) {
        memcpy(out, in, n * width);
    } else if (entry >> 30 == CG_PIECE_CODED_ && n <= CG_CHUNK_ && size >= sign_mantissas &&
        cg_huffman_header_get_(&h, 255, in, size - sign_mantissas, n)) {
        cg_huffman_get_(&h, in, n, exponents);
        CG_KERNEL_(kernels, floats_join(width, exponents, in + (size - sign_mantissas), n, out));
    } else {
        memset(out, 0, n * width);
    }
}

/* src/core/codes/golomb.h */
/* golomb: ascending indices as Golomb-Rice codes of their gaps

   Offers   cg_rice_parameter_, cg_rice_bound_, cg_rice_writer_, cg_rice_reader_
   Needs    base, bits
   Touches  nothing but its arguments
   An index is the number g of those skipped before it: g >> b zeros, a 1, the b low bits of g. The parameter b follows
   from (universe, k), and is not stored. */

/* The b that is best where each of `universe` is an index with probability k/universe; at most
   CG_RICE_MAX_PARAMETER_. */
static unsigned cg_rice_parameter_(uint64_t universe, uint64_t k) {
    double miss = universe ? 1.0 - (double)k / (double)universe : 0.0;
    unsigned b = 0;
    while (!(miss < 0.6180339887498949) && b < CG_RICE_MAX_PARAMETER_) {
        miss *= miss;
        b++;
    }
    return b;
}
static uint64_t cg_rice_bound_(uint64_t universe, uint64_t k) { /* bytes that suffice for any k <= universe indices */
    unsigned b = cg_rice_parameter_(universe, k);
    return k ? cg_word_bytes_(cg_add_sat_(cg_mul_sat_(k, b + 1), (universe - k) >> b)) : 0;
}

typedef struct cg_rice_writer_ {
    uint8_t *start, *next_byte;
    uint64_t word;       /* bits that are not yet written */
    uint64_t next_index; /* the least that may come */
    unsigned filled;     /* bits of word: 0..31 between calls */
    unsigned parameter;  /* b */
} cg_rice_writer_;

/* out has room for cg_rice_bound_ bytes: only whole words of 4 are written, and none beyond it. */

static void cg_rice_writer_open_(cg_rice_writer_ *w, uint8_t *out, unsigned b) {
    w->start = w->next_byte = out;
    w->word = w->next_index = 0;
    w->filled = 0;
    w->parameter = b;
}
CG_INLINE_ void cg_rice_writer_flush_(cg_rice_writer_ *w) {
    if (w->filled >= 32) {
        cg_put32_(w->next_byte, (uint32_t)w->word);
        w->next_byte += 4;
        w->word >>= 32;
        w->filled -= 32;
    }
}
/* index is larger than all before. */
CG_INLINE_ void cg_rice_writer_put_(cg_rice_writer_ *w, uint64_t index) {
    const uint64_t skipped = index - w->next_index, low = skipped & (((uint64_t)1 << w->parameter) - 1);
    uint64_t q = skipped >> w->parameter;
    w->next_index = index + 1;
    for (; q >= 32; q -= 32) {
        w->filled += 32;
        cg_rice_writer_flush_(w);
    }
    w->filled += (unsigned)q;
    cg_rice_writer_flush_(w);
    if (CG_LIKELY_(w->parameter < 32)) {
        w->word |= (low << 1 | 1) << w->filled;
        w->filled += w->parameter + 1;
    } else {
        w->word |= ((low & 0x7fffffffu) << 1 | 1) << w->filled;
        w->filled += 32;
        cg_rice_writer_flush_(w);
        w->word |= low >> 31 << w->filled;
        w->filled += w->parameter - 31;
    }
    cg_rice_writer_flush_(w);
}
/* Writes the last word, filled up with zeros; returns the bytes written in all. */
static size_t cg_rice_writer_close_(cg_rice_writer_ *w) {
    if (w->filled) {
        cg_put32_(w->next_byte, (uint32_t)w->word);
        w->next_byte += 4;
    }
    return (size_t)(w->next_byte - w->start);
}

typedef struct cg_rice_reader_ {
    const uint8_t *bytes;
    size_t total_bits, bit_pos;
    uint64_t next_index; /* the least that may come; UINT64_MAX once there is none */
    unsigned parameter;  /* b */
} cg_rice_reader_;

static void cg_rice_reader_open_(cg_rice_reader_ *r, const uint8_t *in, size_t bytes, unsigned b) {
    r->bytes = in;
    r->total_bits = bytes > SIZE_MAX / 8 ? SIZE_MAX / 8 * 8 : 8 * bytes;
    r->bit_pos = 0;
    r->next_index = 0;
    r->parameter = b < CG_RICE_MAX_PARAMETER_ ? b : CG_RICE_MAX_PARAMETER_;
}
/* Reads up to `count` more indices, fewer only where the bits end, and returns how many. An index beyond 2^64 - 2 reads
   as UINT64_MAX, as do all after it. */
static size_t cg_rice_reader_get_(cg_rice_reader_ *r, uint64_t *index, size_t count) {
    const unsigned b = r->parameter;
    const uint64_t mask = ((uint64_t)1 << b) - 1;
    uint64_t next = r->next_index;
    size_t at = r->bit_pos, done = 0;
    while (done < count && at < r->total_bits) {
        uint64_t w = cg_bits_peek_(r->bytes, r->total_bits, at), q = 0;
        unsigned left = (unsigned)cg_min_(57, r->total_bits - at), z;
        const size_t before = done;
        while (done < count && w) {
            unsigned need = (z = cg_ctz_(w)) + 1 + b;
            if (need > left) break;
            next = cg_add_sat_(next, (uint64_t)z << b | (w >> 1 >> z & mask));
            index[done++] = next;
            next += next != UINT64_MAX;
            w = w >> 1 >> (need - 1);
            left -= need;
            at += need;
        }
        if (done > before) continue;
        while (!(w & (((uint64_t)1 << 57) - 1))) { /* a gap longer than the bits in w */
            if (r->total_bits - at <= 57) goto out;
            q += 57;
            at += 57;
            w = cg_bits_peek_(r->bytes, r->total_bits, at);
        }
        z = cg_ctz_(w);
        q += z;
        if (r->total_bits - at < (size_t)z + 1 + b) goto out;
        at += z + 1;
        next = cg_add_sat_(
            next, cg_add_sat_(cg_mul_sat_(q, mask + 1), cg_bits_peek_(r->bytes, r->total_bits, at) & mask));
        index[done++] = next;
        next += next != UINT64_MAX;
        at += b;
    }
out:
    r->next_index = next;
    r->bit_pos = at;
    return done;
}

/* Whether nothing but the zeros of the last word is left. */
static int cg_rice_reader_at_end_(const cg_rice_reader_ *r) {
    if (r->bit_pos > r->total_bits || r->total_bits - r->bit_pos >= 32) return 0;
    for (size_t i = r->bit_pos; i < r->total_bits; i++)
        if (r->bytes[i / 8] >> i % 8 & 1) return 0;
    return 1;
}

/* src/core/codes/rans.h */
/* rans: pieces of up to 65536 levels in asymmetric numeral systems: what a piece is, and how it is read

   Offers   tokens, cg_rans_table_, cg_rans_reader_, cg_rans_open_, cg_rans_next_, cg_rans_skip_, cg_rans_check_
   Needs    base, bits
   Touches  nothing but its arguments
   A piece is whole u32 words; one without words is all zeros. Two streams run towards each other: a string of bits
   upwards from its first byte (LSB first), and u16 words (little-endian) downwards from its end:

     bits 0-1    form: 0 Rice, 1 sparse, 2 dense, 3 plain
     Rice        4 bits: k; 1 bit: magnitudes are 0: unary, 1: gamma; 13 bits: how many levels are not zero; then of
                 each the zeros before it: q = zeros >> k in unary (q times 0, then 1; 16 times 0: zeros follow in 16
                 bits), the low k bits; its sign; its magnitude - 1 in unary, from 15 zeros on gamma of what is left
     sparse      2 bits: lanes (0: 1, 1: 4, 2: 16); 1 bit: a word of padding is at the end; 2 bits: signs (0: a bit
                 each, 1: no level is negative, 2: all are); 1 bit each: zeros, magnitudes have three contexts; 12
                 bits: levels that are not zero, less 1; 7 bits twice, if there are contexts: their limits; 1 or 3
                 tables of zeros, 1 or 3 of magnitudes less 1; then of each level the extra bits of its zeros, its
                 sign, the extra bits of its magnitude less 1
     dense       2 bits: lanes; 1 bit: padding; 2 bits: signs; 3 bits: tables less 1 (up to 5), which are classes; the
                 tables; with several 1 bit: the class of a block depends on that of the block before it (0 before
                 the first), and 1 table of classes or one for each class; then of each block of 64 levels the signs
                 of those that are not zero, then their extra bits
     plain       zeros up to bit 32, then each level as it is packed (16 bits: two's complement)

   A table is 6 bits: symbols less 1; 1 bit: the last one is an escape; of all but the last its frequency: 4 bits: its
   length, its bits below the highest one; the last has what is left of 1024. A table of classes has no such head.
   A number is a token and extra bits: numbers below 2^direct are tokens, above them there are two tokens an octave.
   direct is 4 for magnitudes, 2 for zeros. An escape says that the token is not in the table: the gamma code of the
   number, less the least one that is not, plus 1, is among the extra bits.
   Words: one of padding if there is; the class state if there are several tables; one state for each lane, the high
   half first; then what the states take. A state x holds symbol s with first[s] <= x % 1024 < first[s] + freq[s], goes
   on as freq[s]*(x / 1024) + x % 1024 - first[s], and where that is below 2^16 takes a word as its low half. An encoder
   begins with 2^16, where the decoder ends. The class of a block is read before its levels. Symbol j of a sparse piece
   (zeros, magnitude, zeros ...) is in lane j mod lanes, and so is level j of a block of 64. The context of a sparse
   piece is the number of its limits that are at most a; a begins at 0 and becomes a - a/4 + symbol of each number of
   zeros. That of zeros is the one before them, that of a magnitude the one after its zeros.
   Any bytes are read without harm: bits and words that are missing are 0, and levels beyond the piece are dropped. */

#define CG_RANS_PIECE_ 65536u /* levels of a piece, at most */
#define CG_RANS_TOTAL_ 1024u  /* of the frequencies of a table */
#define CG_RANS_TOKENS_ 40u   /* symbols of a table, at most */
#define CG_RANS_TABLES_ 6u
#define CG_RANS_LANES_ 16u
#define CG_RANS_LIST_ 4096u /* levels of a sparse or Rice piece that are not zero, at most */
#define CG_RANS_LOW_ 65536u /* states are at least this */
enum { CG_RANS_RICE_, CG_RANS_SPARSE_, CG_RANS_DENSE_, CG_RANS_PLAIN_ };
enum { CG_RANS_MAGNITUDES_ = 4, CG_RANS_ZEROS_ = 2 }; /* direct */
enum { CG_RANS_BLOCK_ = 64 };

CG_INLINE_ unsigned cg_rans_token_(uint32_t v, unsigned direct) {
    unsigned e;
    if (v < 1u << direct) return v;
    e = cg_log2_(v);
    return (1u << direct) + 2 * (e - direct) + (v >> (e - 1) & 1u);
}
/* How many extra bits a token has. */
CG_INLINE_ unsigned cg_rans_extra_(unsigned token, unsigned direct) {
    return token < 1u << direct ? 0 : direct + (token - (1u << direct)) / 2 - 1;
}
/* The least number with that token. */
CG_INLINE_ uint32_t cg_rans_base_(unsigned token, unsigned direct) {
    return token < 1u << direct ? token : (2u + (token & 1u)) << cg_rans_extra_(token, direct);
}

typedef struct cg_rans_table_ {
    uint8_t slot[CG_RANS_TOTAL_]; /* whose symbol each number below the total is */
    uint16_t freq[CG_RANS_TOKENS_], first[CG_RANS_TOKENS_];
    unsigned symbols;
    int escapes; /* the last symbol is an escape */
} cg_rans_table_;

/* A piece that is being read. */
typedef struct cg_rans_reader_ {
    const uint8_t *in;     /* the piece */
    const uint8_t *word;   /* the next word is below this */
    size_t bits, at;       /* of the string of bits: its end, the next bit */
    size_t position, n;    /* the next level, and how many there are */
    size_t nonzero, found; /* Rice and sparse: how many are not zero, where the next of them is (n: nowhere) */
    int32_t found_level;
    unsigned form, width, signs;                /* width: of plain levels, in bits */
    unsigned lanes, lane, context, limit[2];    /* sparse: context is a of above */
    unsigned zero_contexts, magnitude_contexts; /* sparse: 1 or 3 */
    unsigned tables, classes, k;                /* dense: classes is 1 or tables; Rice: k, and gamma in classes */
    uint32_t state[CG_RANS_LANES_], class_state, last_class;
    uint16_t class_freq[CG_RANS_TABLES_][CG_RANS_TABLES_];
    cg_rans_table_ table[CG_RANS_TABLES_];
} cg_rans_reader_;

CG_INLINE_ uint64_t cg_rans_peek_(const cg_rans_reader_ *r) { return cg_bits_peek_(r->in, r->bits, r->at); }
CG_INLINE_ uint32_t cg_rans_get_(cg_rans_reader_ *r, unsigned bits) { /* at most 32 */
    const uint32_t v = (uint32_t)(cg_rans_peek_(r) & (((uint64_t)1 << bits) - 1));
    r->at += bits;
    return v;
}
/* A number from 1 on: the zeros before its bits are one fewer than they. More than 16 count as 16. */
static uint32_t cg_rans_gamma_get_(cg_rans_reader_ *r) {
    const uint64_t w = cg_rans_peek_(r);
    const unsigned zeros = cg_ctz_(w | (uint64_t)1 << 16);
    const uint32_t low = (uint32_t)(w >> (zeros + 1)) & ((1u << zeros) - 1);
    r->at += 2 * zeros + 1;
    return 1u << zeros | low;
}
CG_INLINE_ uint32_t cg_rans_word_(cg_rans_reader_ *r) {
    if (CG_LIKELY_(r->word - r->in >= 2)) {
        r->word -= 2;
        return cg_get16_(r->word);
    }
    return 0;
}
CG_INLINE_ uint32_t cg_rans_renew_(cg_rans_reader_ *r, uint32_t state) {
    return state < CG_RANS_LOW_ ? state << 16 | cg_rans_word_(r) : state;
}
/* The symbol that a state holds; the state goes on. */
CG_INLINE_ unsigned cg_rans_symbol_(cg_rans_reader_ *r, uint32_t *state, const cg_rans_table_ *t) {
    const uint32_t x = *state, low = x & (CG_RANS_TOTAL_ - 1);
    const unsigned s = t->slot[low];
    *state = cg_rans_renew_(r, t->freq[s] * (x >> 10) + low - t->first[s]);
    return s;
}
/* The frequency of one symbol of a table. */
static uint32_t cg_rans_freq_get_(cg_rans_reader_ *r) {
    const unsigned length = cg_rans_get_(r, 4);
    return length ? 1u << (length - 1) | cg_rans_get_(r, length - 1) : 0;
}
/* 0: no table that an encoder writes; tokens: how many there are. */
static int cg_rans_table_get_(cg_rans_reader_ *r, unsigned tokens, cg_rans_table_ *t) {
    uint32_t left = CG_RANS_TOTAL_;
    unsigned at = 0;
    t->symbols = cg_rans_get_(r, 6) + 1;
    t->escapes = (int)cg_rans_get_(r, 1);
    if (t->symbols > tokens || (t->escapes && t->symbols < 2)) return 0;
    for (unsigned s = 0; s < t->symbols; s++) {
        const uint32_t f = s + 1 < t->symbols ? cg_rans_freq_get_(r) : left;
        if (f > left || (s + 1 == t->symbols && !f)) return 0;
        t->freq[s] = (uint16_t)f;
        t->first[s] = (uint16_t)at;
        memset(t->slot + at, (int)s, f);
        at += f;
        left -= f;
    }
    return 1;
}
/* The frequencies of as many classes as there are tables. */
static int cg_rans_classes_get_(cg_rans_reader_ *r, uint16_t *freq) {
    uint32_t left = CG_RANS_TOTAL_;
    for (unsigned s = 0; s < r->tables; s++) {
        const uint32_t f = s + 1 < r->tables ? cg_rans_freq_get_(r) : left;
        if (f > left) return 0;
        freq[s] = (uint16_t)f;
        left -= f;
    }
    return 1;
}
static uint32_t cg_rans_state_get_(cg_rans_reader_ *r) {
    const uint32_t high = cg_rans_word_(r);
    return high << 16 | cg_rans_word_(r);
}
/* The number of a token that has been read; escaped: the token of the first number that is not in the table. */
CG_INLINE_ uint32_t cg_rans_number_(cg_rans_reader_ *r, const cg_rans_table_ *t, unsigned symbol, unsigned direct) {
    const uint32_t base = cg_rans_base_(symbol, direct);
    if (t->escapes && symbol + 1 == t->symbols) return base + cg_rans_gamma_get_(r) - 1;
    return base + cg_rans_get_(r, cg_rans_extra_(symbol, direct));
}
static unsigned cg_rans_context_(const cg_rans_reader_ *r, unsigned contexts) {
    return contexts < 2 ? 0 : (unsigned)(r->context >= r->limit[0]) + (unsigned)(r->context >= r->limit[1]);
}
/* Finds the next level that is not zero; found becomes n if there is none. */
static void cg_rans_find_(cg_rans_reader_ *r) {
    size_t at = r->found;
    uint32_t zeros, magnitude, negative;
    r->found = r->n;
    if (!r->nonzero) return;
    r->nonzero--;
    if (r->form == CG_RANS_SPARSE_) {
        const cg_rans_table_ *t = &r->table[cg_rans_context_(r, r->zero_contexts)];
        unsigned symbol = cg_rans_symbol_(r, &r->state[r->lane], t);
        zeros = cg_rans_number_(r, t, symbol, CG_RANS_ZEROS_);
        r->lane = (r->lane + 1) & (r->lanes - 1);
        r->context += symbol - r->context / 4;
        t = &r->table[r->zero_contexts + cg_rans_context_(r, r->magnitude_contexts)];
        negative = r->signs ? r->signs - 1 : cg_rans_get_(r, 1);
        symbol = cg_rans_symbol_(r, &r->state[r->lane], t);
        magnitude = 1 + cg_rans_number_(r, t, symbol, CG_RANS_MAGNITUDES_);
        r->lane = (r->lane + 1) & (r->lanes - 1);
    } else {
        unsigned q = cg_ctz_(cg_rans_peek_(r) | 1u << 16);
        r->at += q < 16 ? q + 1 : 16;
        zeros = q < 16 ? q << r->k | cg_rans_get_(r, r->k) : cg_rans_get_(r, 16);
        negative = cg_rans_get_(r, 1);
        if (r->classes) magnitude = cg_rans_gamma_get_(r);
        else {
            q = cg_ctz_(cg_rans_peek_(r) | 1u << 15);
            r->at += q < 15 ? q + 1 : 15;
            magnitude = q < 15 ? q + 1 : 15 + cg_rans_gamma_get_(r);
        }
    }
    if (magnitude > 32767) magnitude = 32767;
    r->found_level = negative ? -(int32_t)magnitude : (int32_t)magnitude;
    if (zeros < r->n - at) r->found = at + zeros;
    else r->nonzero = 0;
}
/* Begins to read a piece of n levels in `bytes` bytes, a multiple of 4. width: of plain levels. Returns 0 if no encoder
   writes such; its levels are then zeros. */
static int cg_rans_open_(cg_rans_reader_ *r, const uint8_t *in, size_t bytes, size_t n, unsigned width) {
    unsigned padded;
    r->in = in;
    r->word = in + bytes;
    r->bits = 8 * bytes;
    r->at = 2;
    r->position = r->nonzero = r->found = 0;
    r->n = n;
    r->width = width;
    r->form = CG_RANS_RICE_;
    r->found = n;
    if (!bytes) return 1;
    r->form = in[0] & 3u;
    if (r->form == CG_RANS_PLAIN_) {
        r->at = 32;
        if (cg_get32_(in) == CG_RANS_PLAIN_ && bytes == 4 + (size_t)cg_word_bytes_((uint64_t)n * width)) return 1;
    } else if (r->form == CG_RANS_RICE_) {
        r->k = cg_rans_get_(r, 4);
        r->classes = cg_rans_get_(r, 1);
        r->nonzero = cg_rans_get_(r, 13);
        r->found = 0;
        if (r->nonzero <= n) {
            cg_rans_find_(r);
            return 1;
        }
    } else {
        int ok = 1;
        r->lanes = 1u << 2 * cg_rans_get_(r, 2);
        padded = cg_rans_get_(r, 1);
        r->signs = cg_rans_get_(r, 2);
        ok = r->lanes <= CG_RANS_LANES_ && r->signs < 3;
        if (r->form == CG_RANS_SPARSE_) {
            r->zero_contexts = cg_rans_get_(r, 1) ? 3 : 1;
            r->magnitude_contexts = cg_rans_get_(r, 1) ? 3 : 1;
            r->nonzero = cg_rans_get_(r, 12) + 1;
            ok &= r->nonzero <= n;
            r->limit[0] = r->limit[1] = 0;
            if (r->zero_contexts + r->magnitude_contexts > 2) {
                r->limit[0] = cg_rans_get_(r, 7);
                r->limit[1] = cg_rans_get_(r, 7);
            }
            for (unsigned i = 0; ok && i < r->zero_contexts + r->magnitude_contexts; i++)
                ok = cg_rans_table_get_(r, i < r->zero_contexts ? 32 : 39, &r->table[i]);
        } else {
            r->tables = cg_rans_get_(r, 3) + 1;
            ok &= r->tables <= CG_RANS_TABLES_;
            for (unsigned i = 0; ok && i < r->tables; i++) ok = cg_rans_table_get_(r, 39, &r->table[i]);
            r->classes = 1;
            if (ok && r->tables > 1) {
                if (cg_rans_get_(r, 1)) r->classes = r->tables;
                for (unsigned i = 0; ok && i < r->classes; i++) ok = cg_rans_classes_get_(r, r->class_freq[i]);
            }
        }
        if (padded) ok &= !cg_rans_word_(r);
        if (ok) {
            r->class_state = r->form == CG_RANS_DENSE_ && r->tables > 1 ? cg_rans_state_get_(r) : 0;
            for (unsigned i = 0; i < r->lanes; i++) r->state[i] = cg_rans_state_get_(r);
            r->last_class = r->lane = r->context = 0;
            r->found = 0;
            if (r->form == CG_RANS_SPARSE_) cg_rans_find_(r);
            if (r->at <= r->bits) return 1;
        }
    }
    r->form = CG_RANS_RICE_;
    r->nonzero = 0;
    r->found = n;
    return 0;
}
/* Whether an encoder may have written this piece, as far as its head shows. */
CG_NOINLINE_ int cg_rans_check_(const uint8_t *in, size_t bytes, size_t n, unsigned width) {
    cg_rans_reader_ r;
    return cg_rans_open_(&r, in, bytes, n, width);
}
/* The class of the next block of a dense piece. */
static unsigned cg_rans_class_(cg_rans_reader_ *r) {
    const uint16_t *freq = r->class_freq[r->classes > 1 ? r->last_class : 0];
    const uint32_t low = r->class_state & (CG_RANS_TOTAL_ - 1);
    uint32_t first = 0;
    unsigned s = 0;
    for (; s + 1 < r->tables && low >= first + freq[s]; s++) first += freq[s];
    r->class_state = cg_rans_renew_(r, freq[s] * (r->class_state >> 10) + low - first);
    return r->last_class = s;
}
/* The symbols of a block, where all words that they can take are there; *most is the largest, *nonzero counts. */
CG_INLINE_ void cg_rans_block_get_(cg_rans_reader_ *r, const cg_rans_table_ *t, size_t many, unsigned lane_mask,
    int16_t *out, unsigned *most, unsigned *nonzero) {
    const uint8_t *word = r->word;
    unsigned largest = 0, some = 0;
    for (size_t i = 0; i < many; i++) {
        const uint32_t x = r->state[i & lane_mask], low = x & (CG_RANS_TOTAL_ - 1);
        const unsigned s = t->slot[low];
        const uint32_t next = t->freq[s] * (x >> 10) + low - t->first[s], empty = next < CG_RANS_LOW_;
        r->state[i & lane_mask] = empty ? next << 16 | cg_get16_(word - 2) : next;
        word -= 2 * empty;
        out[i] = (int16_t)s;
        largest = s > largest ? s : largest;
        some += s != 0;
    }
    r->word = word;
    *most = largest;
    *nonzero = some;
}
/* A block of a dense piece, of at most 64 levels. */
static void cg_rans_block_(cg_rans_reader_ *r, size_t many, uint8_t *to) {
    const cg_rans_table_ *t = &r->table[r->tables > 1 ? cg_rans_class_(r) : 0];
    const unsigned lane_mask = r->lanes - 1;
    unsigned most = 0, nonzero = 0;
    uint64_t signs = r->signs == 2 ? UINT64_MAX : 0;
    int16_t out[CG_RANS_BLOCK_];
    if (t->symbols == 1) { /* all are zero */
        memset(to, 0, 2 * many);
        return;
    }
    if (r->word - r->in < 2 * CG_RANS_BLOCK_)
        for (size_t i = 0; i < many; i++) {
            const unsigned s = cg_rans_symbol_(r, &r->state[i & lane_mask], t);
            out[i] = (int16_t)s;
            most = s > most ? s : most;
            nonzero += s != 0;
        }
    else if (lane_mask == 15) cg_rans_block_get_(r, t, many, 15, out, &most, &nonzero);
    else cg_rans_block_get_(r, t, many, lane_mask, out, &most, &nonzero);
    if (!r->signs) { /* two reads for up to 64 of them */
        signs = cg_rans_get_(r, nonzero < 32 ? nonzero : 32);
        if (nonzero > 32) signs |= (uint64_t)cg_rans_get_(r, nonzero - 32) << 32;
    }
    if (most < 1u << CG_RANS_MAGNITUDES_ && !(t->escapes && most + 1 == t->symbols)) {
        for (size_t i = 0; i < many; i++) {
            const int32_t v = out[i], sign = -(int32_t)(signs & (uint64_t)(v != 0));
            out[i] = (int16_t)((v ^ sign) - sign);
            signs >>= v != 0;
        }
    } else
        for (size_t i = 0; i < many; i++) {
            uint32_t v;
            if (!out[i]) continue;
            v = cg_rans_number_(r, t, (unsigned)out[i], CG_RANS_MAGNITUDES_);
            if (v > 32767) v = 32767;
            out[i] = (int16_t)(signs & 1 ? -(int32_t)v : (int32_t)v);
            signs >>= 1;
        }
    memcpy(to, out, 2 * many);
}
static void cg_rans_level_put_(uint8_t *out, int32_t level) {
    const int16_t v = (int16_t)level;
    memcpy(out, &v, 2);
}
/* The next `many` levels as integers of 16 bits of this machine, at any address; many is a multiple of 64, or all that
   are left. */
CG_NOINLINE_ void cg_rans_next_(cg_rans_reader_ *r, size_t many, uint8_t *out) {
    const size_t begin = r->position, end = begin + many;
    r->position = end;
    if (r->form == CG_RANS_DENSE_) {
        for (size_t i = 0; i < many; i += CG_RANS_BLOCK_)
            cg_rans_block_(r, cg_min_(CG_RANS_BLOCK_, many - i), out + 2 * i);
    } else if (r->form == CG_RANS_PLAIN_) {
        for (size_t i = 0; i < many; i++) {
            const int32_t v = (int32_t)cg_rans_get_(r, r->width);
            cg_rans_level_put_(out + 2 * i, r->width < 16 || v < 32768 ? v : v == 32768 ? -32767 : v - 65536);
        }
    } else {
        memset(out, 0, 2 * many);
        while (r->found < end) {
            cg_rans_level_put_(out + 2 * (r->found - begin), r->found_level);
            r->found++;
            cg_rans_find_(r);
        }
    }
}
/* Leaves a chunk out, or what is left if that is less. */
CG_NOINLINE_ void cg_rans_skip_(cg_rans_reader_ *r) {
    uint8_t unused[2 * CG_CHUNK_];
    cg_rans_next_(r, cg_min_(CG_CHUNK_, r->n - r->position), unused);
}

/* src/core/codes/rans_plan.h */
/* rans_plan: how a piece of levels is going to be written, chosen by what each form would cost

   Offers   cg_rans_levels_, cg_rans_plan_, cg_rans_plan_make_, cg_rans_list_make_
   Needs    base, bits, rans
   Touches  nothing but its arguments
   Costs are counted in 65536ths of a bit, in integers: every machine chooses the same. They are estimates, a little too
   large as a rule; cg_rans_put_ says how many bytes it has written. */

/* Makes levels [first, first + many) of a piece, many <= CG_CHUNK_, first a multiple of CG_CHUNK_. */
typedef struct cg_rans_levels_ {
    void (*make)(const struct cg_rans_levels_ *self, size_t first, size_t many, int16_t *out);
    void *user;
} cg_rans_levels_;

typedef struct cg_rans_code_ { /* a table as it is written */
    uint16_t freq[CG_RANS_TOKENS_];
    uint8_t symbols, escapes;
    uint32_t word_bits; /* what its symbols cost, without extra bits */
} cg_rans_code_;
typedef struct cg_rans_plan_ {
    uint32_t bytes; /* about how many, a multiple of 4; of a plain piece exactly */
    uint32_t nonzero;
    uint8_t form, lanes, signs, k, gamma; /* k and gamma: Rice */
    uint8_t zero_contexts, magnitude_contexts, limit[2];
    uint8_t tables, classes;
    uint8_t table_of[48]; /* the table of a class by sum, see cg_rans_sum_class_ */
    uint16_t class_freq[CG_RANS_TABLES_][CG_RANS_TABLES_];
    cg_rans_code_ table[CG_RANS_TABLES_];
} cg_rans_plan_;
/* The levels of a piece that are not zero, if they are at most CG_RANS_LIST_. */
typedef struct cg_rans_list_ {
    uint32_t count;
    uint16_t zeros[CG_RANS_LIST_]; /* before each */
    int16_t level[CG_RANS_LIST_];
} cg_rans_list_;

#define CG_RANS_BIT_ 65536u
/* log2(v) * 65536, v > 0. */
static uint32_t cg_rans_log2_(uint32_t v) {
    /* log2(1 + i/128) * 65536 */
    static const uint32_t table[129] = { 0, 736, 1466, 2190, 2909, 3623, 4331, 5034, 5732, 6425, 7112, 7795, 8473, 9146,
        9814, 10477, 11136, 11791, 12440, 13086, 13727, 14363, 14996, 15624, 16248, 16868, 17484, 18096, 18704, 19308,
        19909, 20505, 21098, 21687, 22272, 22854, 23433, 24007, 24579, 25146, 25711, 26272, 26830, 27384, 27936, 28484,
        29029, 29571, 30109, 30645, 31178, 31707, 32234, 32758, 33279, 33797, 34312, 34825, 35334, 35841, 36346, 36847,
        37346, 37842, 38336, 38827, 39316, 39802, 40286, 40767, 41246, 41722, 42196, 42667, 43137, 43603, 44068, 44530,
        44990, 45448, 45904, 46357, 46809, 47258, 47705, 48150, 48593, 49034, 49472, 49909, 50344, 50776, 51207, 51636,
        52063, 52488, 52911, 53332, 53751, 54169, 54584, 54998, 55410, 55820, 56229, 56635, 57040, 57443, 57845, 58245,
        58643, 59039, 59434, 59827, 60219, 60609, 60997, 61384, 61769, 62152, 62534, 62915, 63294, 63671, 64047, 64421,
        64794, 65166, 65536 };
    const unsigned e = cg_log2_(v);
    const uint32_t m = v << (31 - e), i = m >> 24 & 127u, part = m >> 8 & 0xffffu;
    return (e << 16) + table[i] + ((table[i + 1] - table[i]) * part >> 16);
}
/* What counts cost in their own frequencies: sum of c*log2(total/c). */
static uint64_t cg_rans_entropy_(const uint32_t *count, unsigned tokens) {
    uint64_t total = 0, bits = 0;
    for (unsigned i = 0; i < tokens; i++)
        if (count[i]) {
            total += count[i];
            bits += (uint64_t)count[i] * cg_rans_log2_(count[i]);
        }
    return total ? total * cg_rans_log2_((uint32_t)total) - bits : 0;
}
/* Bits of a gamma code. */
CG_INLINE_ unsigned cg_rans_gamma_bits_(uint32_t v) { return 2 * cg_log2_(v) + 1; }
CG_INLINE_ unsigned cg_rans_freq_bits_(uint32_t f) { return f ? 4 + cg_log2_(f) : 4; }
/* Frequencies of `symbols` counts, of which one at least is not 0; together they are CG_RANS_TOTAL_, and none is 0
   whose count is not. Returns the cost of the counts in them. */
static uint64_t cg_rans_normalize_(const uint32_t *count, unsigned symbols, uint16_t *freq) {
    uint64_t total = 0, cost = 0;
    uint32_t sum = 0;
    for (unsigned i = 0; i < symbols; i++) total += count[i];
    for (unsigned i = 0; i < symbols; i++) {
        uint64_t f = ((uint64_t)count[i] * (2 * CG_RANS_TOTAL_) + total) / (2 * total);
        f = count[i] && !f ? 1 : f;
        freq[i] = (uint16_t)f;
        sum += (uint32_t)f;
    }
    while (sum != CG_RANS_TOTAL_) { /* one more where that gains most, or one fewer where that costs least */
        const int more = sum < CG_RANS_TOTAL_;
        unsigned best = symbols;
        uint64_t of_best = 0, to_best = 1;
        for (unsigned i = 0; i < symbols; i++) {
            const uint64_t of = count[i], to = more ? 2u * freq[i] + 1u : 2u * freq[i] - 1u;
            if (!count[i] || (!more && freq[i] < 2)) continue;
            if (best == symbols || (more ? of * to_best > of_best * to : of * to_best < of_best * to)) {
                best = i;
                of_best = of;
                to_best = to;
            }
        }
        freq[best] = (uint16_t)(more ? freq[best] + 1u : freq[best] - 1u);
        sum = more ? sum + 1 : sum - 1;
    }
    for (unsigned i = 0; i < symbols; i++)
        if (count[i]) cost += (uint64_t)count[i] * (10 * CG_RANS_BIT_ - cg_rans_log2_(freq[i]));
    return cost;
}
/* The table of counts, of which one at least is not 0; may_escape: rare numbers may share a symbol. Returns what table,
   symbols and extra bits cost. */
static uint64_t cg_rans_code_make_(
    const uint32_t *count, unsigned tokens, unsigned direct, int may_escape, cg_rans_code_ *code) {
    uint32_t own[CG_RANS_TOKENS_];
    uint64_t total = 0, cost, rare = 0;
    unsigned symbols = tokens, last;
    while (!count[symbols - 1]) symbols--;
    for (unsigned i = 0; i < symbols; i++) {
        own[i] = count[i];
        total += count[i];
    }
    code->escapes = 0;
    for (last = symbols; may_escape && last > 1 && (rare + count[last - 1]) * CG_RANS_TOTAL_ < 2 * total; last--)
        rare += count[last - 1];
    cost = 0;
    if (last + 1 < symbols && rare) {
        const uint32_t base = cg_rans_base_(last, direct);
        code->escapes = 1;
        for (unsigned i = last; i < symbols; i++)
            cost += (uint64_t)count[i] * cg_rans_gamma_bits_(cg_rans_base_(i, direct) - base + 1);
        own[last] = (uint32_t)rare;
        symbols = last + 1;
    }
    for (unsigned i = 0; i < symbols - (unsigned)code->escapes; i++)
        cost += (uint64_t)count[i] * cg_rans_extra_(i, direct);
    code->symbols = (uint8_t)symbols;
    total = cg_rans_normalize_(own, symbols, code->freq);
    code->word_bits = (uint32_t)(total / CG_RANS_BIT_);
    cost = cost * CG_RANS_BIT_ + total + 7 * CG_RANS_BIT_;
    for (unsigned i = 0; i + 1 < symbols; i++) cost += cg_rans_freq_bits_(code->freq[i]) * CG_RANS_BIT_;
    return cost;
}
/* The class of a block by the sum of its magnitudes: two an octave. */
CG_INLINE_ unsigned cg_rans_sum_class_(uint32_t sum) {
    unsigned e;
    if (sum < 2) return sum;
    e = cg_log2_(sum);
    return 2 * e + (sum >> (e - 1) & 1u);
}
CG_INLINE_ uint32_t cg_rans_sum_(const int16_t *v, size_t n) {
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        const int32_t level = v[i];
        sum += level < 0 ? (uint32_t)-level : (uint32_t)level;
    }
    return sum;
}

/* A bit for each of at most 64 levels: whether it is not zero. */
CG_INLINE_ uint64_t cg_rans_nonzero_(const int16_t *v, size_t n) {
    uint64_t bits = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint64_t w;
        memcpy(&w, v + i, 8);
        if (w)
            bits |= (uint64_t)((unsigned)(v[i] != 0) | (unsigned)(v[i + 1] != 0) << 1 | (unsigned)(v[i + 2] != 0) << 2 |
                        (unsigned)(v[i + 3] != 0) << 3)
                << i;
    }
    for (; i < n; i++) bits |= (uint64_t)(v[i] != 0) << i;
    return bits;
}

enum { CG_RANS_SUMS_ = 44, CG_RANS_MOST_ = 38 }; /* classes by sum; tokens of magnitudes */
/* What is counted of a piece. */
typedef struct cg_rans_counts_ {
    uint32_t token[CG_RANS_SUMS_][CG_RANS_MOST_]; /* magnitudes, by class */
    uint32_t blocks[CG_RANS_SUMS_];
    uint8_t sum_class[CG_RANS_PIECE_ / CG_RANS_BLOCK_]; /* of each block */
    uint32_t nonzero, negative;
} cg_rans_counts_;
/* Counts n levels, and lists those that are not zero if they are few. */
CG_NOINLINE_ void cg_rans_count_(const cg_rans_levels_ *levels, size_t n, cg_rans_counts_ *c, cg_rans_list_ *list) {
    int16_t v[CG_CHUNK_];
    size_t next = 0; /* after the last that is not zero */
    memset(c->token, 0, sizeof c->token);
    memset(c->blocks, 0, sizeof c->blocks);
    c->nonzero = c->negative = list->count = 0;
    for (size_t first = 0, many; first < n; first += many) {
        many = cg_min_(CG_CHUNK_, n - first);
        levels->make(levels, first, many, v);
        for (size_t b = 0, in_block; b < many; b += in_block) {
            uint32_t sum, *token;
            uint64_t some; /* which are not zero */
            unsigned sum_class;
            in_block = cg_min_(CG_RANS_BLOCK_, many - b);
            some = cg_rans_nonzero_(v + b, in_block);
            sum = some ? cg_rans_sum_(v + b, in_block) : 0;
            sum_class = cg_rans_sum_class_(sum);
            c->sum_class[(first + b) / CG_RANS_BLOCK_] = (uint8_t)sum_class;
            c->blocks[sum_class]++;
            token = c->token[sum_class];
            token[0] += (uint32_t)in_block - cg_popcount_(some);
            for (; some; some &= some - 1) {
                const size_t i = b + cg_ctz_(some);
                const int32_t level = v[i];
                token[cg_rans_token_((uint32_t)(level < 0 ? -level : level), CG_RANS_MAGNITUDES_)]++;
                c->negative += level < 0;
                if (c->nonzero++ < CG_RANS_LIST_) {
                    list->zeros[list->count] = (uint16_t)(first + i - next);
                    list->level[list->count++] = v[i];
                    next = first + i + 1;
                }
            }
        }
    }
}
/* Lists the levels that are not zero; there are at most CG_RANS_LIST_. */
CG_NOINLINE_ void cg_rans_list_make_(const cg_rans_levels_ *levels, size_t n, cg_rans_list_ *list) {
    int16_t v[CG_CHUNK_];
    size_t next = 0;
    list->count = 0;
    for (size_t first = 0, many; first < n; first += many) {
        many = cg_min_(CG_CHUNK_, n - first);
        levels->make(levels, first, many, v);
        for (size_t b = 0; b < many; b += CG_RANS_BLOCK_) {
            uint64_t some = cg_rans_nonzero_(v + b, cg_min_(CG_RANS_BLOCK_, many - b));
            for (; some && list->count < CG_RANS_LIST_; some &= some - 1) {
                const size_t i = b + cg_ctz_(some);
                list->zeros[list->count] = (uint16_t)(first + i - next);
                list->level[list->count++] = v[i];
                next = first + i + 1;
            }
        }
    }
}
/* A class of blocks on its own: what its levels cost, about, and its table. */
static uint64_t cg_rans_class_cost_(const uint32_t *token) {
    uint64_t cost = cg_rans_entropy_(token, CG_RANS_MOST_) + 11 * CG_RANS_BIT_;
    unsigned used = 0;
    for (unsigned i = 0; i < CG_RANS_MOST_; i++)
        if (token[i]) used++;
    return cost + 8 * CG_RANS_BIT_ * (uint64_t)used;
}
/* Joins neighbouring classes as long as that makes the piece shorter or there are too many; c->token and c->blocks of
   the first class of each group become those of the group. Returns the groups, table_of says which class is where. */
CG_NOINLINE_ unsigned cg_rans_join_(cg_rans_counts_ *c, uint8_t *table_of) {
    uint8_t head[CG_RANS_SUMS_];                        /* first classes of the groups */
    uint64_t own[CG_RANS_SUMS_], joined[CG_RANS_SUMS_]; /* joined: with the group after it */
    uint32_t both[CG_RANS_MOST_];
    uint32_t all = 0;
    unsigned groups = 0;
    for (unsigned i = 0; i < CG_RANS_SUMS_; i++)
        if (c->blocks[i]) {
            own[groups] = cg_rans_class_cost_(c->token[i]);
            all += c->blocks[i];
            head[groups++] = (uint8_t)i;
        }
    for (unsigned g = 0; g < groups; g++) joined[g] = 0; /* unknown */
    while (groups > 1) {
        unsigned best = 0;
        uint64_t gain_of_best = 0, loss_of_best = UINT64_MAX;
        for (unsigned g = 0; g + 1 < groups; g++) {
            const uint32_t a = c->blocks[head[g]], b = c->blocks[head[g + 1]];
            uint64_t apart, together;
            if (!joined[g]) {
                for (unsigned t = 0; t < CG_RANS_MOST_; t++) both[t] = c->token[head[g]][t] + c->token[head[g + 1]][t];
                joined[g] = cg_rans_class_cost_(both);
            }
            apart = own[g] + own[g + 1] + (uint64_t)a * (cg_rans_log2_(all) - cg_rans_log2_(a)) +
                (uint64_t)b * (cg_rans_log2_(all) - cg_rans_log2_(b)) + 12 * CG_RANS_BIT_;
            together = joined[g] + (uint64_t)(a + b) * (cg_rans_log2_(all) - cg_rans_log2_(a + b));
            if (together <= apart ? apart - together >= gain_of_best
                                  : !gain_of_best && together - apart < loss_of_best) {
                best = g;
                gain_of_best = together <= apart ? apart - together : 0;
                loss_of_best = together <= apart ? 0 : together - apart;
            }
        }
        if (loss_of_best && groups <= CG_RANS_TABLES_) break;
        for (unsigned t = 0; t < CG_RANS_MOST_; t++) c->token[head[best]][t] += c->token[head[best + 1]][t];
        c->blocks[head[best]] += c->blocks[head[best + 1]];
        own[best] = joined[best];
        joined[best] = 0;
        if (best) joined[best - 1] = 0;
        groups--;
        for (unsigned g = best + 1; g < groups; g++) {
            head[g] = head[g + 1];
            own[g] = own[g + 1];
            joined[g] = joined[g + 1];
        }
    }
    for (unsigned i = 0, g = 0; i < CG_RANS_SUMS_; i++) {
        while (g + 1 < groups && i >= head[g + 1]) g++;
        table_of[i] = (uint8_t)g;
    }
    for (unsigned g = 0; g < groups; g++) { /* groups to the front: group g is not behind class g */
        if (head[g] == g) continue;
        memcpy(c->token[g], c->token[head[g]], sizeof c->token[g]);
        c->blocks[g] = c->blocks[head[g]];
    }
    return groups;
}
/* What the classes of the blocks cost, and their frequencies: of all blocks, or by the class before. */
static uint64_t cg_rans_classes_plan_(const cg_rans_counts_ *c, size_t blocks, cg_rans_plan_ *plan) {
    uint32_t count[CG_RANS_TABLES_][CG_RANS_TABLES_], all[CG_RANS_TABLES_];
    uint16_t freq[CG_RANS_TABLES_];
    uint64_t alone, chained = 0;
    unsigned last = 0;
    memset(count, 0, sizeof count);
    memset(all, 0, sizeof all);
    for (size_t b = 0; b < blocks; b++) {
        const unsigned s = plan->table_of[c->sum_class[b]];
        count[last][s]++;
        all[s]++;
        last = s;
    }
    alone = cg_rans_normalize_(all, plan->tables, freq);
    for (unsigned s = 0; s + 1 < plan->tables; s++) alone += cg_rans_freq_bits_(freq[s]) * CG_RANS_BIT_;
    for (unsigned t = 0; t < plan->tables; t++) {
        uint32_t any = 0;
        for (unsigned s = 0; s < plan->tables; s++) any |= count[t][s];
        if (!any) count[t][plan->tables - 1] = 1;
        chained += cg_rans_normalize_(count[t], plan->tables, plan->class_freq[t]);
        for (unsigned s = 0; s + 1 < plan->tables; s++)
            chained += cg_rans_freq_bits_(plan->class_freq[t][s]) * CG_RANS_BIT_;
    }
    plan->classes = plan->tables;
    if (chained < alone) return chained + CG_RANS_BIT_;
    plan->classes = 1;
    memcpy(plan->class_freq[0], freq, sizeof freq);
    return alone + CG_RANS_BIT_;
}
/* What the states of a piece cost beside its symbols, which take so many bits; sets the lanes. */
static uint64_t cg_rans_states_plan_(uint64_t word_bits, unsigned lanes_most, cg_rans_plan_ *plan) {
    const unsigned lanes = word_bits < 1024 ? 1 : word_bits < 8192 || lanes_most < 16 ? 4 : 16;
    plan->lanes = (uint8_t)lanes;
    return (uint64_t)(word_bits < 64 * lanes ? 32 : 28) * lanes * CG_RANS_BIT_;
}
/* Cost of a dense piece, and its tables. */
CG_NOINLINE_ uint64_t cg_rans_dense_plan_(cg_rans_counts_ *c, size_t n, cg_rans_plan_ *plan) {
    uint64_t cost = (plan->signs ? 0 : (uint64_t)c->nonzero * CG_RANS_BIT_) + 10 * CG_RANS_BIT_, word_bits = 0;
    plan->tables = (uint8_t)cg_rans_join_(c, plan->table_of);
    for (unsigned g = 0; g < plan->tables; g++) {
        cost += cg_rans_code_make_(c->token[g], CG_RANS_MOST_, CG_RANS_MAGNITUDES_, 1, &plan->table[g]);
        word_bits += plan->table[g].word_bits;
    }
    plan->classes = 1;
    if (plan->tables > 1) cost += 32 * CG_RANS_BIT_ + cg_rans_classes_plan_(c, (n + 63) / 64, plan);
    return cost + cg_rans_states_plan_(word_bits, 16, plan);
}
/* Cost of a sparse piece, and its tables. */
CG_NOINLINE_ uint64_t cg_rans_sparse_plan_(const cg_rans_list_ *list, cg_rans_plan_ *plan) {
    uint32_t zeros[4][CG_RANS_TOKENS_], magnitudes[4][CG_RANS_TOKENS_], context[128], sum = 0;
    uint64_t cost = (plan->signs ? 0 : (uint64_t)list->count * CG_RANS_BIT_) + 22 * CG_RANS_BIT_, one, three,
             word_bits = 0;
    cg_rans_code_ code[4];
    unsigned a = 0;
    memset(zeros, 0, sizeof zeros);
    memset(magnitudes, 0, sizeof magnitudes);
    memset(context, 0, sizeof context);
    for (uint32_t i = 0; i < list->count; i++) {
        a += cg_rans_token_(list->zeros[i], CG_RANS_ZEROS_) - a / 4;
        context[a]++;
    }
    plan->limit[0] = plan->limit[1] = 127;
    for (unsigned i = 0; i < 128; i++) { /* thirds */
        if (3 * sum < list->count) plan->limit[0] = (uint8_t)i;
        if (3 * sum < 2 * list->count) plan->limit[1] = (uint8_t)i;
        sum += context[i];
    }
    a = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const unsigned t = cg_rans_token_(list->zeros[i], CG_RANS_ZEROS_);
        const int32_t level = list->level[i];
        const unsigned m = cg_rans_token_((uint32_t)(level < 0 ? -level : level) - 1, CG_RANS_MAGNITUDES_);
        zeros[(unsigned)(a >= plan->limit[0]) + (unsigned)(a >= plan->limit[1])][t]++;
        zeros[3][t]++;
        a += t - a / 4;
        magnitudes[(unsigned)(a >= plan->limit[0]) + (unsigned)(a >= plan->limit[1])][m]++;
        magnitudes[3][m]++;
    }
    for (unsigned which = 0, at = 0; which < 2; which++) {
        uint32_t(*count)[CG_RANS_TOKENS_] = which ? magnitudes : zeros;
        const unsigned tokens = which ? CG_RANS_MOST_ : 32, direct = which ? CG_RANS_MAGNITUDES_ : CG_RANS_ZEROS_;
        one = cg_rans_code_make_(count[3], tokens, direct, (int)which, &code[3]);
        word_bits += code[3].word_bits;
        three = 7 * CG_RANS_BIT_;
        for (unsigned i = 0; i < 3; i++) {
            uint32_t any = 0;
            for (unsigned t = 0; t < tokens; t++) any |= count[i][t];
            if (!any) count[i][0] = 1;
            three += cg_rans_code_make_(count[i], tokens, direct, (int)which, &code[i]);
        }
        for (unsigned i = 0; three < one && i < 3; i++) plan->table[at++] = code[i];
        if (one <= three) plan->table[at++] = code[3];
        cost += three < one ? three : one;
        if (which) plan->magnitude_contexts = three < one ? 3 : 1;
        else plan->zero_contexts = three < one ? 3 : 1;
    }
    return cost + cg_rans_states_plan_(word_bits, 4, plan);
}
/* Bits of a Rice piece, and its parameters. */
static uint64_t cg_rans_rice_plan_(const cg_rans_list_ *list, cg_rans_plan_ *plan) {
    uint64_t unary = 0, gamma = 0, best = UINT64_MAX, bits;
    plan->k = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t m = (uint32_t)(list->level[i] < 0 ? -list->level[i] : list->level[i]);
        unary += m < 16 ? m : 15 + cg_rans_gamma_bits_(m - 15);
        gamma += cg_rans_gamma_bits_(m);
    }
    for (unsigned k = 0; k < 16; k++) {
        bits = 0;
        for (uint32_t i = 0; i < list->count; i++) {
            const uint32_t q = (uint32_t)list->zeros[i] >> k;
            bits += q < 16 ? q + 1 + k : 32;
        }
        if (bits < best) {
            best = bits;
            plan->k = (uint8_t)k;
        }
    }
    plan->gamma = (uint8_t)(gamma < unary);
    return (best + (gamma < unary ? gamma : unary) + list->count + 20) * CG_RANS_BIT_;
}
/* Chooses how n levels of at most `width` bits are written. *list and *c are the caller's room for them; *list is
   of use to cg_rans_put_ unless the form is dense. */
CG_NOINLINE_ void cg_rans_plan_make_(const cg_rans_levels_ *levels, size_t n, unsigned width, cg_rans_counts_ *c,
    cg_rans_list_ *list, cg_rans_plan_ *plan) {
    cg_rans_plan_ other;
    uint64_t best = (32 + 8 * cg_word_bytes_((uint64_t)n * width)) * CG_RANS_BIT_, cost;
    cg_rans_count_(levels, n, c, list);
    plan->nonzero = c->nonzero;
    plan->signs = (uint8_t)(!c->negative ? 1 : c->negative == c->nonzero ? 2 : 0);
    plan->form = CG_RANS_PLAIN_;
    plan->bytes = 0;
    if (!c->nonzero) {
        plan->form = CG_RANS_RICE_;
        return;
    }
    if (c->nonzero <= CG_RANS_LIST_) {
        cost = cg_rans_rice_plan_(list, plan);
        if (cost < best) {
            plan->form = CG_RANS_RICE_;
            best = cost;
        }
        other = *plan;
        cost = cg_rans_sparse_plan_(list, &other);
        if (cost < best) {
            *plan = other;
            plan->form = CG_RANS_SPARSE_;
            best = cost;
        }
    }
    if (c->nonzero > 256) {
        other = *plan;
        cost = cg_rans_dense_plan_(c, n, &other);
        /* a sparse piece takes less time, which is worth a little */
        if (cost < best - (plan->form == CG_RANS_SPARSE_ ? best / 32 : 0)) {
            *plan = other;
            plan->form = CG_RANS_DENSE_;
            best = cost;
        }
    }
    if (plan->form == CG_RANS_SPARSE_ || plan->form == CG_RANS_DENSE_) best += best >> 9;
    plan->bytes = (uint32_t)(cg_word_bytes_((best + CG_RANS_BIT_ - 1) / CG_RANS_BIT_ +
        (plan->form == CG_RANS_SPARSE_ || plan->form == CG_RANS_DENSE_ ? 24 : 0)));
}

/* src/core/codes/rans_put.h */
/* rans_put: a planned piece of levels is written

   Offers   cg_rans_put_, cg_rans_plain_put_
   Needs    base, bits, rans, rans_plan
   Touches  nothing but its arguments
   The string of bits is written forwards; then the levels are coded from the last to the first, and their words follow
   upwards, so that the reader finds them downwards from the end. */

typedef struct cg_rans_words_ {
    uint8_t *at, *end;
    int is_full; /* a word did not fit */
} cg_rans_words_;
CG_INLINE_ void cg_rans_word_put_(cg_rans_words_ *w, uint32_t word) {
    if (CG_LIKELY_(w->end - w->at >= 2)) {
        cg_put16_(w->at, word);
        w->at += 2;
    } else w->is_full = 1;
}
static void cg_rans_state_put_(cg_rans_words_ *w, uint32_t state) {
    cg_rans_word_put_(w, state);
    cg_rans_word_put_(w, state >> 16);
}
/* How a symbol is put. */
typedef struct cg_rans_step_ {
    uint64_t inv; /* 2^42/freq, rounded up: x*inv >> 42 is x/freq for all x < freq << 22 */
    uint32_t freq, first;
} cg_rans_step_;
CG_INLINE_ uint32_t cg_rans_put_into_(uint32_t x, const cg_rans_step_ *s) {
    const uint32_t q = (uint32_t)(x * s->inv >> 42);
    return (q << 10) + (x - q * s->freq) + s->first;
}
CG_INLINE_ void cg_rans_symbol_put_(cg_rans_words_ *w, uint32_t *state, const cg_rans_step_ *s) {
    uint32_t x = *state;
    if (x >> 22 >= s->freq) {
        cg_rans_word_put_(w, x);
        x >>= 16;
    }
    *state = cg_rans_put_into_(x, s);
}
static void cg_rans_gamma_put_(cg_bitstream_ *b, uint32_t v) {
    const unsigned zeros = cg_log2_(v);
    cg_bitstream_put_(b, ((uint64_t)(v - (1u << zeros)) << 1 | 1u) << zeros, 2 * zeros + 1);
}
static void cg_rans_freq_put_(cg_bitstream_ *b, uint32_t f) {
    const unsigned length = f ? cg_log2_(f) + 1 : 0;
    cg_bitstream_put_(b, length, 4);
    if (length > 1) cg_bitstream_put_(b, f - (1u << (length - 1)), length - 1);
}
static void cg_rans_table_put_(cg_bitstream_ *b, const cg_rans_code_ *code) {
    cg_bitstream_put_(b, code->symbols - 1u, 6);
    cg_bitstream_put_(b, code->escapes, 1);
    for (unsigned s = 0; s + 1 < code->symbols; s++) cg_rans_freq_put_(b, code->freq[s]);
}
/* The extra bits of a number. */
CG_INLINE_ void cg_rans_extra_put_(
    cg_bitstream_ *b, const cg_rans_code_ *code, uint32_t v, unsigned token, unsigned direct) {
    if (code->escapes && token + 1u >= code->symbols)
        cg_rans_gamma_put_(b, v - cg_rans_base_(code->symbols - 1u, direct) + 1);
    else {
        const unsigned extra = cg_rans_extra_(token, direct);
        if (extra) cg_bitstream_put_(b, v - cg_rans_base_(token, direct), extra);
    }
}
static void cg_rans_steps_(const uint16_t *freq, unsigned symbols, cg_rans_step_ *step) {
    unsigned sum = 0;
    for (unsigned s = 0; s < symbols; s++) {
        const uint64_t f = freq[s] ? freq[s] : 1;
        step[s].inv = (((uint64_t)1 << 42) + f - 1) / f;
        step[s].freq = freq[s];
        step[s].first = sum;
        sum += freq[s];
    }
}
/* The same of a table, for each token. */
static void cg_rans_token_steps_(const cg_rans_code_ *code, cg_rans_step_ *step) {
    cg_rans_steps_(code->freq, code->symbols, step);
    for (unsigned t = code->symbols; t < CG_RANS_TOKENS_; t++) step[t] = step[code->symbols - 1];
}
static uint32_t cg_rans_magnitude_(int16_t level) { return (uint32_t)(level < 0 ? -(int32_t)level : (int32_t)level); }

static void cg_rans_rice_put_(cg_bitstream_ *b, const cg_rans_plan_ *plan, const cg_rans_list_ *list) {
    cg_bitstream_put_(b, (uint64_t)plan->k << 2 | CG_RANS_RICE_, 6);
    cg_bitstream_put_(b, plan->gamma, 1);
    cg_bitstream_put_(b, list->count, 13);
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t zeros = list->zeros[i], q = zeros >> plan->k, m = cg_rans_magnitude_(list->level[i]);
        if (q < 16) {
            cg_bitstream_put_(b, (uint64_t)1 << q, q + 1);
            cg_bitstream_put_(b, zeros & ((1u << plan->k) - 1), plan->k);
        } else cg_bitstream_put_(b, (uint64_t)zeros << 16, 32);
        cg_bitstream_put_(b, list->level[i] < 0, 1);
        if (plan->gamma) cg_rans_gamma_put_(b, m);
        else if (m < 16) cg_bitstream_put_(b, (uint64_t)1 << (m - 1), m);
        else {
            cg_bitstream_put_(b, 0, 15);
            cg_rans_gamma_put_(b, m - 15);
        }
    }
}
/* The context of a number of zeros or a magnitude. */
CG_INLINE_ unsigned cg_rans_plan_context_(const cg_rans_plan_ *plan, unsigned contexts, unsigned a) {
    return contexts < 2 ? 0 : (unsigned)(a >= plan->limit[0]) + (unsigned)(a >= plan->limit[1]);
}
/* Bits of a sparse piece; table[i] becomes the two tables of level i, 4 bits each. */
CG_NOINLINE_ void cg_rans_sparse_bits_(
    cg_bitstream_ *b, const cg_rans_plan_ *plan, const cg_rans_list_ *list, uint8_t *table) {
    unsigned a = 0;
    cg_bitstream_put_(b, list->count - 1u, 12);
    if (plan->zero_contexts + plan->magnitude_contexts > 2) {
        cg_bitstream_put_(b, plan->limit[0], 7);
        cg_bitstream_put_(b, plan->limit[1], 7);
    }
    for (unsigned i = 0; i < (unsigned)plan->zero_contexts + plan->magnitude_contexts; i++)
        cg_rans_table_put_(b, &plan->table[i]);
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t zeros = list->zeros[i], m = cg_rans_magnitude_(list->level[i]) - 1;
        const unsigned token = cg_rans_token_(zeros, CG_RANS_ZEROS_),
                       of_zeros = cg_rans_plan_context_(plan, plan->zero_contexts, a);
        unsigned of_magnitude;
        cg_rans_extra_put_(b, &plan->table[of_zeros], zeros, token, CG_RANS_ZEROS_);
        a += token - a / 4;
        of_magnitude = plan->zero_contexts + cg_rans_plan_context_(plan, plan->magnitude_contexts, a);
        if (!plan->signs) cg_bitstream_put_(b, list->level[i] < 0, 1);
        cg_rans_extra_put_(
            b, &plan->table[of_magnitude], m, cg_rans_token_(m, CG_RANS_MAGNITUDES_), CG_RANS_MAGNITUDES_);
        table[i] = (uint8_t)(of_zeros | of_magnitude << 4);
    }
}
CG_NOINLINE_ void cg_rans_sparse_words_(
    cg_rans_words_ *w, const cg_rans_plan_ *plan, const cg_rans_list_ *list, const uint8_t *table, uint32_t *state) {
    cg_rans_step_ step[CG_RANS_TABLES_][CG_RANS_TOKENS_];
    const unsigned lane_mask = plan->lanes - 1u;
    for (unsigned t = 0; t < (unsigned)plan->zero_contexts + plan->magnitude_contexts; t++)
        cg_rans_token_steps_(&plan->table[t], step[t]);
    for (uint32_t i = list->count; i-- > 0;) {
        const unsigned m = cg_rans_token_(cg_rans_magnitude_(list->level[i]) - 1, CG_RANS_MAGNITUDES_),
                       zeros = cg_rans_token_(list->zeros[i], CG_RANS_ZEROS_);
        cg_rans_symbol_put_(w, &state[(2 * i + 1) & lane_mask], &step[table[i] >> 4][m]);
        cg_rans_symbol_put_(w, &state[2 * i & lane_mask], &step[table[i] & 15][zeros]);
    }
}
/* Bits of a dense piece; class_of becomes the classes of its blocks. */
CG_NOINLINE_ void cg_rans_dense_bits_(
    cg_bitstream_ *b, const cg_rans_plan_ *plan, const cg_rans_levels_ *levels, size_t n, uint8_t *class_of) {
    int16_t v[CG_CHUNK_];
    for (unsigned t = 0; t < plan->tables; t++) cg_rans_table_put_(b, &plan->table[t]);
    if (plan->tables > 1) {
        cg_bitstream_put_(b, plan->classes > 1, 1);
        for (unsigned t = 0; t < plan->classes; t++)
            for (unsigned s = 0; s + 1 < plan->tables; s++) cg_rans_freq_put_(b, plan->class_freq[t][s]);
    }
    for (size_t first = 0, many; first < n; first += many) {
        many = cg_min_(CG_CHUNK_, n - first);
        levels->make(levels, first, many, v);
        for (size_t block = 0, in_block; block < many; block += in_block) {
            const int16_t *at = v + block;
            const cg_rans_code_ *code;
            const unsigned t =
                plan->table_of[cg_rans_sum_class_(cg_rans_sum_(at, in_block = cg_min_(CG_RANS_BLOCK_, many - block)))];
            uint64_t signs = 0;
            unsigned nonzero = 0;
            uint32_t most = 0;
            class_of[(first + block) / CG_RANS_BLOCK_] = (uint8_t)t;
            code = &plan->table[t];
            for (size_t i = 0; i < in_block; i++) {
                const uint32_t m = cg_rans_magnitude_(at[i]);
                signs |= (uint64_t)(at[i] < 0) << nonzero;
                nonzero += m != 0;
                most = m > most ? m : most;
            }
            if (!plan->signs && nonzero) cg_bitstream_put_(b, signs & 0xffffffffu, nonzero < 32 ? nonzero : 32);
            if (!plan->signs && nonzero > 32) cg_bitstream_put_(b, signs >> 32, nonzero - 32);
            if (most < 1u << CG_RANS_MAGNITUDES_ && !(code->escapes && most + 1 >= code->symbols)) continue;
            for (size_t i = 0; i < in_block; i++) {
                const uint32_t m = cg_rans_magnitude_(at[i]);
                if (m) cg_rans_extra_put_(b, code, m, cg_rans_token_(m, CG_RANS_MAGNITUDES_), CG_RANS_MAGNITUDES_);
            }
        }
    }
}
/* The levels of a block, where there is room for all words that they can take and one more; returns where they end. */
CG_INLINE_ uint8_t *cg_rans_block_put_(
    uint8_t *at, uint32_t *state, const cg_rans_step_ *step, const int16_t *v, size_t n, unsigned lane_mask) {
    for (size_t i = n; i-- > 0;) {
        const cg_rans_step_ *s = &step[cg_rans_token_(cg_rans_magnitude_(v[i]), CG_RANS_MAGNITUDES_)];
        const uint32_t x = state[i & lane_mask], full = x >> 22 >= s->freq;
        cg_put16_(at, x);
        at += 2 * full;
        state[i & lane_mask] = cg_rans_put_into_(x >> 16 * full, s);
    }
    return at;
}
CG_NOINLINE_ void cg_rans_dense_words_(cg_rans_words_ *w, const cg_rans_plan_ *plan, const cg_rans_levels_ *levels,
    size_t n, const uint8_t *class_of, uint32_t *states, uint32_t *class_state) {
    cg_rans_step_ step[CG_RANS_TABLES_][CG_RANS_TOKENS_], class_step[CG_RANS_TABLES_][CG_RANS_TABLES_];
    int16_t v[CG_CHUNK_];
    uint32_t state[CG_RANS_LANES_];
    const unsigned lane_mask = plan->lanes - 1u;
    memcpy(state, states, sizeof state);
    for (unsigned t = 0; t < plan->tables; t++) cg_rans_token_steps_(&plan->table[t], step[t]);
    for (unsigned t = 0; plan->tables > 1 && t < plan->classes; t++)
        cg_rans_steps_(plan->class_freq[t], plan->tables, class_step[t]);
    for (size_t chunk = (n + CG_CHUNK_ - 1) / CG_CHUNK_; chunk-- > 0;) {
        const size_t begin = chunk * CG_CHUNK_, many = cg_min_(CG_CHUNK_, n - begin);
        levels->make(levels, begin, many, v);
        for (size_t block = (many + CG_RANS_BLOCK_ - 1) / CG_RANS_BLOCK_; block-- > 0;) {
            const size_t at = begin / CG_RANS_BLOCK_ + block, in_block = cg_min_(CG_RANS_BLOCK_, many - 64 * block);
            const unsigned t = class_of[at];
            const int16_t *level = v + 64 * block;
            if (plan->table[t].symbols > 1) {
                if (w->end - w->at < 2 * CG_RANS_BLOCK_ + 2)
                    for (size_t i = in_block; i-- > 0;)
                        cg_rans_symbol_put_(w, &state[i & lane_mask],
                            &step[t][cg_rans_token_(cg_rans_magnitude_(level[i]), CG_RANS_MAGNITUDES_)]);
                else if (lane_mask == 15) w->at = cg_rans_block_put_(w->at, state, step[t], level, in_block, 15);
                else w->at = cg_rans_block_put_(w->at, state, step[t], level, in_block, lane_mask);
            }
            if (plan->tables > 1) {
                const unsigned before = plan->classes > 1 && at ? class_of[at - 1] : 0;
                cg_rans_symbol_put_(w, class_state, &class_step[before][t]);
            }
        }
    }
    memcpy(states, state, sizeof state);
}
/* The same without a plan. */
static size_t cg_rans_plain_put_(const cg_rans_levels_ *levels, size_t n, unsigned width, uint8_t *out, size_t cap) {
    const size_t bytes = 4 + (size_t)cg_word_bytes_((uint64_t)n * width);
    int16_t v[CG_CHUNK_];
    cg_bitstream_ b;
    if (bytes > cap) return SIZE_MAX;
    memset(out + bytes - 4, 0, 4);
    cg_put32_(out, CG_RANS_PLAIN_);
    b = cg_bitstream_open_(out + 4, out + bytes);
    for (size_t first = 0, many; first < n; first += many) {
        many = cg_min_(CG_CHUNK_, n - first);
        levels->make(levels, first, many, v);
        for (size_t i = 0; i < many; i++)
            cg_bitstream_put_(&b, (uint64_t)(uint16_t)v[i] & (((uint64_t)1 << width) - 1), width);
    }
    return bytes;
}
/* Writes n levels as planned, list being what cg_rans_plan_make_ has made of them; returns the bytes, a multiple of 4,
   or SIZE_MAX if they are more than cap. What follows the piece up to cap may be scribbled on. */
CG_NOINLINE_ size_t cg_rans_put_(const cg_rans_plan_ *plan, const cg_rans_levels_ *levels, const cg_rans_list_ *list,
    size_t n, unsigned width, uint8_t *out, size_t cap) {
    uint8_t work[CG_RANS_LIST_]; /* tables of levels, or classes of blocks */
    uint32_t state[CG_RANS_LANES_], class_state = CG_RANS_LOW_;
    cg_bitstream_ b = cg_bitstream_open_(out, out + cap);
    cg_rans_words_ w;
    size_t bytes;
    if (!plan->nonzero) return 0;
    if (plan->form == CG_RANS_PLAIN_) return cg_rans_plain_put_(levels, n, width, out, cap);
    if (plan->form == CG_RANS_RICE_) {
        cg_rans_rice_put_(&b, plan, list);
        bytes = (size_t)(b.next - out) + (b.filled != 0);
        if (bytes > cap) return SIZE_MAX;
        for (; bytes % 4; bytes++) {
            if (bytes == cap) return SIZE_MAX;
            out[bytes] = 0;
        }
        return bytes;
    }
    cg_bitstream_put_(&b, plan->form | (plan->lanes == 16 ? 2u : plan->lanes == 4 ? 1u : 0u) << 2, 5);
    cg_bitstream_put_(&b, plan->signs, 2);
    for (unsigned i = 0; i < plan->lanes; i++) state[i] = CG_RANS_LOW_;
    if (plan->form == CG_RANS_SPARSE_) {
        cg_bitstream_put_(&b, plan->zero_contexts > 1, 1);
        cg_bitstream_put_(&b, plan->magnitude_contexts > 1, 1);
        cg_rans_sparse_bits_(&b, plan, list, work);
    } else {
        cg_bitstream_put_(&b, plan->tables - 1u, 3);
        cg_rans_dense_bits_(&b, plan, levels, n, work);
    }
    bytes = (size_t)(b.next - out) + (b.filled != 0);
    if (bytes > cap) return SIZE_MAX;
    w.at = out + bytes;
    w.end = out + cap;
    w.is_full = 0;
    if (bytes % 2) {
        if (w.at == w.end) return SIZE_MAX;
        *w.at++ = 0;
    }
    if (plan->form == CG_RANS_SPARSE_) cg_rans_sparse_words_(&w, plan, list, work, state);
    else cg_rans_dense_words_(&w, plan, levels, n, work, state, &class_state);
    for (unsigned i = plan->lanes; i-- > 0;) cg_rans_state_put_(&w, state[i]);
    if (plan->form == CG_RANS_DENSE_ && plan->tables > 1) cg_rans_state_put_(&w, class_state);
    if ((size_t)(w.at - out) % 4) {
        out[0] = (uint8_t)(out[0] | 16u);
        cg_rans_word_put_(&w, 0);
    }
    return w.is_full ? SIZE_MAX : (size_t)(w.at - out);
}

/* src/core/lowrank.h */
/* lowrank: factors P and Q of a matrix M by one step of the power method, P*Q = P*(P^T*M) with orthonormal P (PowerSGD)

   Offers   f64 vectors (cg_dot_, cg_axpy_, cg_zero64_); cg_matrix_times_, cg_gram_schmidt_, cg_matrix_r_clamp_; the
            encoder cg_lowrank_encode_ and its steps
   Needs    base, random, kernels
   Touches  the factors and the work space, both the caller's
   Other headers may use: cg_axpy_, cg_dot_
   M is row-major, rows*cols floats at any address. In f64 a factor is a set of r rows, each a vector, one after the
   other: p[r][rows], q[r][cols]; in a packet p is [rows][r]. r, the rank of the product, is at most min(rows, cols). */

/* x*y; the sum has four lanes by i % 4, so that it vectorizes with the same bits everywhere. */
static double cg_dot_(const double *x, const double *y, size_t n) {
    double s[4] = { 0.0, 0.0, 0.0, 0.0 };
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t l = 0; l < 4; l++) s[l] += cg_times64_(x[i + l], y[i + l]);
    for (; i < n; i++) s[i & 3] += cg_times64_(x[i], y[i]);
    return (s[0] + s[2]) + (s[1] + s[3]);
}
/* y += a*x */
static void cg_axpy_(double a, const double *x, double *y, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] += cg_times64_(a, x[i]);
}
static void cg_zero64_(double *x, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = 0.0;
}

#define CG_STRIP_COLS_ (CG_TILE_ROWS_ * CG_TILE_COLS_) /* columns */
/* A matrix is walked in strips of up to CG_STRIP_COLS_ columns, a strip in blocks of CG_TILE_ROWS_ rows, a block in
   tiles of up to CG_TILE_COLS_ columns. While one block is worked on the next one below is prefetched, a share with
   each tile: as many values as the tile has, consecutive ones. Here: where the share of the tile at row i, column j
   of the strip begins; NULL at the last blocks and in a narrow last strip. */
static const float *cg_matrix_prefetch_addr_(
    const float *m, size_t rows, size_t cols, size_t strip, size_t i, size_t j) {
    const size_t width = cg_min_(CG_STRIP_COLS_, cols - strip);
    if (i + 2 * CG_TILE_ROWS_ > rows || (width < cols && width < CG_STRIP_COLS_)) return NULL;
    return width == cols ? cg_at_(m, (i + CG_TILE_ROWS_) * cols + CG_TILE_ROWS_ * j)
                         : cg_at_(m, (i + CG_TILE_ROWS_ + (j - strip) / CG_TILE_COLS_) * cols + strip);
}
/* p[r][rows] = (M*q^T)^T for q[r][cols], whose values are representable in f32. */
static void cg_matrix_times_(
    const cg_kernels_ *kernels, const float *m, size_t rows, size_t cols, const double *q, unsigned r, double *p) {
    cg_zero64_(p, r * rows);
    for (size_t strip = 0; strip < cols; strip += CG_STRIP_COLS_)
        for (size_t i = 0; i < rows; i += CG_TILE_ROWS_)
            for (size_t j = strip; j < cols && j < strip + CG_STRIP_COLS_; j += CG_TILE_COLS_)
                CG_KERNEL_(kernels,
                    project(cg_at_(m, i * cols + j), cols, cg_min_(CG_TILE_ROWS_, rows - i),
                        cg_min_(CG_TILE_COLS_, cols - j), q + j, cols, r, p + i, rows,
                        cg_matrix_prefetch_addr_(m, rows, cols, strip, i, j)));
}

/* Makes the r vectors of p[r][rows] orthonormal, each orthogonalized twice against those before it; one that depends on
   them becomes 0. Raises *norm to the largest squared length before. Returns 0 if some length is not finite; p is then
   half done. */
static int cg_gram_schmidt_(double *p, size_t rows, unsigned r, double *norm) {
    for (unsigned a = 0; a < r; a++) {
        double *x = p + a * rows, before = cg_dot_(x, x, rows), after;
        if (!cg_is_finite64_(before)) return 0;
        *norm = before > *norm ? before : *norm;
        for (int twice = 0; twice < 2; twice++)
            for (unsigned b = 0; b < a; b++) cg_axpy_(-cg_dot_(p + b * rows, x, rows), p + b * rows, x, rows);
        after = cg_dot_(x, x, rows);
        after = after > cg_times64_(before, 1e-18) ? 1.0 / cg_sqrt_(after) : 0.0;
        for (size_t i = 0; i < rows; i++) x[i] *= after;
    }
    return 1;
}
/* The r that a matrix of this shape can have: at most min(rows, cols). */
static unsigned cg_matrix_r_clamp_(size_t rows, size_t cols, unsigned r) {
    return (unsigned)cg_min_(r, cg_min_(rows, cols));
}
/* Bytes of work space of cg_lowrank_encode_, aligned for double; saturates. */
static uint64_t cg_lowrank_work_bytes_(size_t rows, size_t cols, unsigned r) {
    return cg_mul_sat_(cg_mul_sat_(8, cg_matrix_r_clamp_(rows, cols, r)), cg_add_sat_(rows, cols));
}
/* The random start q[r][cols], uniform over odd multiples of 2^-16 in (-1, 1). Of signs alone, two vectors would
   often be equal where cols is small. One hash serves two vectors; vectors a and a + 1, a even, share block keys. */
static void cg_lowrank_init_q_(uint64_t key, size_t cols, unsigned r, double *q) {
    cg_key_ block_key = { 0, 0, 0 };
    for (unsigned a = 0; a < r; a += 2)
        for (size_t j = 0; j < cols; j++) {
            uint64_t at = (uint64_t)(a / 2) * cols + j;
            uint32_t h;
            if (j == 0 || at % CG_BLOCK_ == 0) block_key = cg_block_key_(key, at / CG_BLOCK_);
            h = cg_hash32_(block_key, (uint32_t)(at % CG_BLOCK_));
            q[a * cols + j] = ((double)(h & 0xffff) - 32767.5) * (1.0 / 32768);
            if (a + 1 < r) q[(a + 1) * cols + j] = ((double)(h >> 16) - 32767.5) * (1.0 / 32768);
        }
}
/* p[rows][r_max], as packets have it, from w[r][rows]: rounded to f32, times factor, a power of two; what is beyond r
   is 0. */
static void cg_lowrank_store_p_(const double *w, size_t rows, unsigned r, double factor, float *p, unsigned r_max) {
    for (size_t i = 0; i < rows; i++)
        for (unsigned a = 0; a < r_max; a++)
            cg_store_(p, i * r_max + a, a < r ? (float)((double)(float)w[a * rows + i] * factor) : 0.0f);
}
/* q[r][cols] = p^T*M, of the first r columns of p[rows][r_max]. Returns the largest magnitude, Inf or NaN if some sum
   overflowed. */
static double cg_lowrank_compute_q_(const cg_kernels_ *kernels, const float *m, size_t rows, size_t cols,
    const float *p, unsigned r_max, unsigned r, double *q) {
    double absmax = 0.0;
    cg_zero64_(q, r * cols);
    for (size_t strip = 0; strip < cols; strip += CG_STRIP_COLS_)
        for (size_t i = 0; i < rows; i += CG_TILE_ROWS_)
            for (size_t j = strip; j < cols && j < strip + CG_STRIP_COLS_; j += CG_TILE_COLS_)
                CG_KERNEL_(kernels,
                    project_t(cg_at_(m, i * cols + j), cols, cg_min_(CG_TILE_ROWS_, rows - i),
                        cg_min_(CG_TILE_COLS_, cols - j), cg_at_(p, i * r_max), r_max, r, q + j, cols,
                        cg_matrix_prefetch_addr_(m, rows, cols, strip, i, j)));
    for (size_t i = 0; i < r * cols; i++) {
        double v = cg_as_double_(cg_as_bits64_(q[i]) & (CG_TOO_LARGE_ >> 1));
        if (!cg_is_finite64_(v)) return v;
        absmax = v > absmax ? v : absmax;
    }
    return absmax;
}
/* Writes the factors p[rows][r_max] and q[r_max][cols] of m; columns and rows beyond cg_matrix_r_clamp_ are 0. key
   seeds the start, and is shared by all ranks. work: cg_lowrank_work_bytes_, aligned for double. CG_E_NONFINITE if m
   has an Inf or NaN. Sums in f32 are kept in range by powers of two: p is stored 2^64 larger while m is tiny, 2^64
   smaller if q overflows, and for good 2^64 larger where q would not fit f32. */
static cg_status cg_lowrank_encode_(const cg_kernels_ *kernels, uint64_t key, const float *m, size_t rows, size_t cols,
    unsigned r_max, float *p, float *q, void *work) {
    const unsigned r = cg_matrix_r_clamp_(rows, cols, r_max);
    double *pw = (double *)work, *qw = pw + r * rows, norm = 0.0, factor = 1.0, p_scale = 1.0, absmax;
    cg_lowrank_init_q_(key, cols, r, qw);
    cg_matrix_times_(kernels, m, rows, cols, qw, r, pw);
    if (!cg_gram_schmidt_(pw, rows, r, &norm)) return CG_E_NONFINITE;
    if (norm < 1e-24) factor = CG_POW2_64_; /* products of p and tiny values would be denormal */
    cg_lowrank_store_p_(pw, rows, r, factor, p, r_max);
    absmax = cg_lowrank_compute_q_(kernels, m, rows, cols, p, r_max, r, qw);
    if (!cg_is_finite64_(absmax)) {
        factor = 1.0 / CG_POW2_64_;
        cg_lowrank_store_p_(pw, rows, r, factor, p, r_max);
        absmax = cg_lowrank_compute_q_(kernels, m, rows, cols, p, r_max, r, qw);
    }
    factor = 1.0 / factor;
    if (absmax * factor > (double)CG_FLT_MAX_) { /* q may be larger than every value of m */
        p_scale = CG_POW2_64_;
        factor *= 1.0 / CG_POW2_64_;
    }
    cg_lowrank_store_p_(pw, rows, r, p_scale, p, r_max);
    for (size_t i = 0; i < r * cols; i++) cg_store_(q, i, (float)(qw[i] * factor));
    for (size_t i = r * cols; i < r_max * cols; i++) cg_store_(q, i, 0.0f);
    return CG_OK;
}

/* src/core/atomo.h */
/* atomo: factors of a matrix from its singular vectors, sampled with probabilities that keep the mean (ATOMO)

   Offers   cg_atomo_encode_, cg_matrix_work_bytes_
   Needs    base, kernels, lowrank
   Touches  the factors and the work space, both the caller's
   Other headers may use: cg_tridiagonal_, cg_tridiagonal_ql_
   Singular vectors are eigenvectors of the smaller Gram matrix: reflections make it tridiagonal, implicit QL finds its
   eigenvectors. Whatever their accuracy, the factors sent are unbiased, as the product of an orthonormal set of
   vectors with M restores M. */

/* Length of (a, b), also where squares would underflow: a rotation made with it keeps lengths. */
static double cg_hypot_(double a, double b) {
    a = a < 0.0 ? -a : a;
    b = b < 0.0 ? -b : b;
    if (a < b) {
        double c = a;
        a = b;
        b = c;
    }
    if (b == 0.0) return a;
    b /= a;
    return a * cg_sqrt_(1.0 + cg_times64_(b, b));
}
/* g[k][k] = Q*T*Q^T by reflections, g symmetric with magnitudes about 1: the diagonal of T to d[k], the one beside it
   to e[k] (e[k-1] is 0), Q^T to z[k][k]. g is overwritten, y is room for k values. */
static void cg_tridiagonal_(double *g, size_t k, double *z, double *d, double *e, double *y) {
    for (size_t t = 0; t < k; t++) {
        double *v = g + t * k + t + 1, rest, length, dot;
        const size_t n = k - t - 1;
        d[t] = g[t * k + t];
        e[t] = n ? v[0] : 0.0;
        rest = n > 1 ? cg_dot_(v + 1, v + 1, n - 1) : 0.0;
        if (rest < 1e-200) { /* nothing, as g is about 1: no reflection */
            cg_zero64_(v, n);
            continue;
        }
        length = cg_sqrt_(cg_times64_(v[0], v[0]) + rest);
        e[t] = v[0] > 0.0 ? -length : length;
        v[0] -= e[t];
        length = 1.0 / cg_sqrt_(cg_times64_(v[0], v[0]) + rest);
        for (size_t i = 0; i < n; i++) v[i] *= length;
        cg_zero64_(y, n);
        for (size_t i = 0; i < n; i++) cg_axpy_(2.0 * v[i], v + (i + 1) * k, y, n);
        dot = cg_dot_(v, y, n);
        cg_axpy_(-dot, v, y, n);
        for (size_t i = 0; i < n; i++) {
            cg_axpy_(-v[i], y, v + (i + 1) * k, n);
            cg_axpy_(-y[i], v, v + (i + 1) * k, n);
        }
    }
    cg_zero64_(z, k * k);
    for (size_t i = 0; i < k; i++) z[i * k + i] = 1.0;
    for (size_t t = k; t-- > 0;) {
        const double *v = g + t * k + t + 1;
        double *x = z + (t + 1) * k + t + 1;
        const size_t n = k - t - 1;
        cg_zero64_(y, n);
        for (size_t i = 0; i < n; i++) cg_axpy_(2.0 * v[i], x + i * k, y, n);
        for (size_t i = 0; i < n; i++) cg_axpy_(-v[i], y, x + i * k, n);
    }
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < i; j++) {
            double c = z[i * k + j];
            z[i * k + j] = z[j * k + i];
            z[j * k + i] = c;
        }
}
/* Implicit QL on the tridiagonal matrix (d, e): d becomes the eigenvalues, and the rows of z, Q^T before,
   eigenvectors. It stops after 64 sweeps per eigenvalue, converged or not; the rows of z stay orthonormal in any
   case. */
static void cg_tridiagonal_ql_(double *d, double *e, size_t k, double *z) {
    for (size_t l = 0; l < k; l++)
        for (int tries = 0; tries < 64; tries++) {
            size_t m = l, i;
            double shift, s = 1.0, c = 1.0, p = 0.0, r;
            for (; m + 1 < k; m++) {
                double scale = (d[m] < 0.0 ? -d[m] : d[m]) + (d[m + 1] < 0.0 ? -d[m + 1] : d[m + 1]),
                       off = e[m] < 0.0 ? -e[m] : e[m];
                if (off <= scale * 1.1102230246251565e-16 || off < 1e-60) break;
            }
            if (m == l) break;
            shift = (d[l + 1] - d[l]) / (2.0 * e[l]);
            r = cg_hypot_(shift, 1.0);
            shift = d[m] - d[l] + e[l] / (shift + (shift < 0.0 ? -r : r));
            for (i = m; i-- > l;) {
                double f = s * e[i], b = c * e[i], *x = z + i * k, *y = x + k;
                r = cg_hypot_(f, shift);
                e[i + 1] = r;
                if (r == 0.0) {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    break;
                }
                s = f / r;
                c = shift / r;
                shift = d[i + 1] - p;
                r = cg_times64_(d[i] - shift, s) + 2.0 * cg_times64_(c, b);
                p = cg_times64_(s, r);
                d[i + 1] = shift + p;
                shift = cg_times64_(c, r) - b;
                for (size_t j = 0; j < k; j++) {
                    double u = x[j], v = y[j];
                    y[j] = cg_times64_(s, u) + cg_times64_(c, v);
                    x[j] = cg_times64_(c, u) - cg_times64_(s, v);
                }
            }
            if (i + 1 > l) continue; /* stopped at r == 0 */
            d[l] -= p;
            e[l] = shift;
            e[m] = 0.0;
        }
}

/* How many singular vectors a packet holds at most. */
static unsigned cg_atomo_r_(size_t rows, size_t cols, unsigned budget) {
    return cg_matrix_r_clamp_(rows, cols, budget);
}
/* Bytes of work space of cg_atomo_encode_, aligned for double; saturates. */
static uint64_t cg_atomo_work_bytes_(size_t rows, size_t cols) {
    const uint64_t k = cg_min_(rows, cols), n = rows < cols ? cols : rows;
    uint64_t doubles = cg_add_sat_(cg_mul_sat_(2, cg_mul_sat_(k, k)), cg_mul_sat_(5, k));
    doubles = cg_add_sat_(doubles, cg_mul_sat_(CG_PANEL_, cg_add_sat_(n, k < CG_TILE_COLS_ ? CG_TILE_COLS_ : k)));
    return cg_add_sat_(cg_mul_sat_(8, doubles), cg_mul_sat_(4, cg_add_sat_(k, cg_mul_sat_(rows, cols))));
}
/* panel[many][k] = rows order[0..many) of z, rounded to f32; w[many][n] = (b*panel^T)^T for b[n][k]. many <=
   CG_PANEL_. */
static void cg_atomo_panel_(const cg_kernels_ *kernels, const float *b, size_t n, size_t k, const double *z,
    const uint32_t *order, unsigned many, double *panel, double *w) {
    for (unsigned a = 0; a < many; a++)
        for (size_t j = 0; j < k; j++) panel[a * k + j] = (double)(float)z[order[a] * k + j];
    cg_matrix_times_(kernels, b, n, k, panel, many, w);
}
/* Writes the factors p[rows][r] and q[r][cols] of m, r = cg_atomo_r_: *atoms pairs of singular vectors, then zeros. A
   pair is sent with a probability proportional to its singular value, at most 1, and is divided by it; the number sent
   is at most r. key decides the draw. work: cg_atomo_work_bytes_, aligned for double. CG_E_NONFINITE if m has an Inf or
   NaN; the factors are then zeros. */
static cg_status cg_atomo_encode_(const cg_kernels_ *kernels, uint64_t key, const float *m, size_t rows, size_t cols,
    unsigned budget, float *p, float *q, unsigned *atoms, void *work) {
    const int tall = cols <= rows;
    const size_t k = cg_min_(rows, cols), n = tall ? rows : cols;
    const unsigned r = cg_atomo_r_(rows, cols, budget);
    double *g = (double *)work, *z = g + k * k, *d = z + k * k, *e = d + k, *sigma = e + k, *tail = sigma + k,
           *probability = tail + k;
    double *panel = probability + k, *w = panel + CG_PANEL_ * (k < CG_TILE_COLS_ ? (size_t)CG_TILE_COLS_ : k),
           absmax = 0.0, scale, u, total = 0.0, cumulative = 0.0, rank_left, unit_scale = 1.0;
    uint32_t *order = (uint32_t *)(void *)(w + CG_PANEL_ * n);
    float *transposed = (float *)(void *)(order + k);
    const float *a = tall ? transposed : m, *b = tall ? m : transposed; /* [k][n], and its transpose: n >= k */
    size_t count = 0, certain_n = 0;
    unsigned sent_n = 0;
    *atoms = 0;
    for (size_t i = 0; i < r * rows; i++) cg_store_(p, i, 0.0f);
    for (size_t i = 0; i < r * cols; i++) cg_store_(q, i, 0.0f);
    if (!k) return CG_OK;
    for (size_t i = 0; i < rows; i += 16) /* in squares of 16, for the caches */
        for (size_t j = 0; j < cols; j += 16)
            for (size_t x = i; x < rows && x < i + 16; x++)
                for (size_t y = j; y < cols && y < j + 16; y++) transposed[y * rows + x] = cg_load_(m, x * cols + y);
    /* the upper half of the Gram matrix; an Inf or NaN of m shows in its diagonal */
    cg_zero64_(g, k * k);
    for (size_t i = 0; i < k; i += CG_PANEL_) {
        const unsigned many = (unsigned)cg_min_(CG_PANEL_, k - i);
        for (size_t j = 0; j < n; j += CG_TILE_COLS_) {
            const size_t run_length = cg_min_(CG_TILE_COLS_, n - j);
            for (unsigned x = 0; x < many; x++)
                for (size_t y = 0; y < run_length; y++)
                    panel[x * CG_TILE_COLS_ + y] = (double)cg_load_(a, (i + x) * n + j + y);
            CG_KERNEL_(kernels,
                project(
                    cg_at_(a, i * n + j), n, k - i, run_length, panel, CG_TILE_COLS_, many, g + i * k + i, k, NULL));
        }
    }
    for (size_t i = 0; i < k; i++) {
        if (!cg_is_finite64_(g[i * k + i])) return CG_E_NONFINITE;
        absmax = g[i * k + i] > absmax ? g[i * k + i] : absmax;
        for (size_t j = 0; j < i; j++) g[i * k + j] = g[j * k + i];
    }
    if (absmax == 0.0) return CG_OK;
    scale = cg_as_double_((2046 - (cg_as_bits64_(absmax) >> 52)) << 52); /* a power of two, brings absmax near 1 */
    for (size_t i = 0; i < k * k; i++) g[i] *= scale;
    cg_tridiagonal_(g, k, z, d, e, tail);
    cg_tridiagonal_ql_(d, e, k, z);
    /* singular values, as lengths of what will be sent; then sorted, the largest first */
    for (size_t i = 0; i < k; i++) order[i] = (uint32_t)i;
    for (size_t i = 0; i < k; i += CG_PANEL_) {
        const unsigned many = (unsigned)cg_min_(CG_PANEL_, k - i);
        cg_atomo_panel_(kernels, b, n, k, z, order + i, many, panel, w);
        for (unsigned x = 0; x < many; x++) sigma[i + x] = cg_sqrt_(cg_dot_(w + x * n, w + x * n, n));
    }
    for (size_t i = 1; i < k; i++) {
        const double s = sigma[i];
        const uint32_t o = order[i];
        size_t j = i;
        for (; j > 0 && sigma[j - 1] < s; j--) {
            sigma[j] = sigma[j - 1];
            order[j] = order[j - 1];
        }
        sigma[j] = s;
        order[j] = o;
    }
    /* smaller ones are 0 but for rounding */
    while (count < k && sigma[count] > sigma[0] * 1.1920928955078125e-7) count++;
    for (size_t i = count; i-- > 0;) tail[i] = sigma[i] + (i + 1 < count ? tail[i + 1] : 0.0);
    /* First those whose probability is 1. For the others one uniform number u in [0, 1): one is sent where the
       running sum of probabilities, from u on, passes an integer. */
    rank_left = (double)r;
    for (; certain_n < count && rank_left > 0.0 &&
         (rank_left >= (double)(count - certain_n) || cg_times64_(rank_left, sigma[certain_n]) >= tail[certain_n]);
         rank_left -= 1.0)
        probability[certain_n++] = 1.0;
    sent_n = (unsigned)certain_n;
    for (size_t i = certain_n; i < count; i++) total += sigma[i];
    u = (double)(cg_mix64_(key + CG_GOLDEN_) >> 24) * (1.0 / 1099511627776.0);
    for (size_t i = certain_n; i < count && sent_n < r; i++) {
        const double before = u + cg_times64_(rank_left, cumulative / total);
        cumulative += sigma[i];
        if ((uint64_t)(u + cg_times64_(rank_left, cumulative / total)) > (uint64_t)before) {
            const double c = rank_left * (sigma[i] / total);
            sigma[sent_n] = sigma[i];
            order[sent_n] = order[i];
            probability[sent_n++] = c < 1.0 ? c : 1.0;
        }
    }
    /* the factor that holds sigma is kept in the range of f32 at the expense of the unit vectors */
    for (unsigned i = 0; i < sent_n; i++)
        if (sigma[i] / probability[i] > (double)CG_FLT_MAX_) unit_scale = CG_POW2_64_;
    for (unsigned i = 0; i < sent_n; i += CG_PANEL_) {
        const unsigned many = (unsigned)cg_min_(CG_PANEL_, sent_n - i);
        cg_atomo_panel_(kernels, b, n, k, z, order + i, many, panel, w);
        for (unsigned x = 0; x < many; x++) {
            const double *v = tall ? w + x * n : panel + x * k, *h = tall ? panel + x * k : w + x * n;
            const double inv_unit_scale = 1.0 / unit_scale;
            for (size_t y = 0; y < rows; y++)
                cg_store_(
                    p, y * r + i + x, (float)(tall ? v[y] / probability[i + x] * inv_unit_scale : v[y] * unit_scale));
            for (size_t y = 0; y < cols; y++)
                cg_store_(q, (i + x) * cols + y,
                    (float)(tall ? h[y] * unit_scale : h[y] / probability[i + x] * inv_unit_scale));
        }
    }
    *atoms = sent_n;
    return CG_OK;
}

/* src/core/stages.h */
/* stages: what a row of the table of stages holds, and the checks of stages and operators

   Offers   slots, traits, cg_stage_row_, cg_error_, the lookup of rows, cg_op_traits_, cg_stage_key_, cg_op_check_,
            cg_op_check_new_ and cg_op_only_old_
   Needs    base, random; the table itself is in core/rows.h, behind the functions that its rows name
   Touches  nothing but its arguments
   Other headers may use: cg_op_check_, cg_op_traits_
   A row says everything of a stage: its text, its parameters and their ranges, its traits and its functions. Parsing,
   printing, checking, planning and encoding read it. cg_op_check_ is the only judge of operators: those of the caller
   and those in packet headers pass it before any other function of the implementation sees them. cg_op_check_new_
   refuses a caller what only old packets may have. */

enum {
    CG_SLOT_SAMPLE_,
    CG_SLOT_TRANSFORM_,
    CG_SLOT_SELECT_,
    CG_SLOT_QUANTIZE_,
    CG_SLOT_CODE_,
    CG_SLOT_CLIP_, /* was empty in 0.1, and stands last in headers; its stage is done before the quantizer */
    CG_SLOT_COUNT_
};
/* The slots in the order in which their stages are done, and stand in text; and the place of each slot in it. */
static const uint8_t cg_slot_order_[] = { CG_SLOT_SAMPLE_, CG_SLOT_TRANSFORM_, CG_SLOT_SELECT_, CG_SLOT_CLIP_,
    CG_SLOT_QUANTIZE_, CG_SLOT_CODE_ };
static unsigned cg_slot_place_(unsigned slot) {
    unsigned place = 0;
    while (cg_slot_order_[place] != slot) place++;
    return place;
}

/* What stages are like, whatever their parameters. The traits of an operator are those of all its stages
   (cg_op_traits_): where code depends on a stage it asks for a trait, so that a new stage is a row and nothing else. */
enum {
    CG_IS_PER_RANK_ = 1 << 0, /* sample: every rank keeps other values, so that packets of ranks do not add up */
    CG_SAMPLES_RATIO_ =
        1 << 1, /* sample: stage.value is the fraction to keep, or cg_op.k values are, if no selection takes k */
    CG_IS_MATRIX_ = 1 << 2, /* transform: x is a matrix, and two factors take its place */
    CG_IS_LINEAR_MATRIX_ =
        1 << 3,                 /* transform: ranks can find factors of the sum of their matrices together (PowerSGD) */
    CG_IS_ROTATION_ = 1 << 4,   /* transform: values come out about normally distributed */
    CG_IS_SELECTION_ = 1 << 5,  /* every selection */
    CG_TAKES_K_ = 1 << 6,       /* selection: cg_op.k replaces its ratio */
    CG_HAS_RATIO_ = 1 << 7,     /* selection: stage.value is the fraction to keep, which a warm-up may change */
    CG_KEEPS_EXACTLY_ = 1 << 8, /* selection: keeps just as many values as max_selected says */
    CG_KEEPS_ABOUT_ = 1 << 9,   /* selection: keeps about the fraction that it was given */
    CG_KEEPS_LARGEST_ = 1 << 10,     /* selection: of the whole vector; info.threshold is the smallest that was kept */
    CG_TAKES_PRODUCER_ = 1 << 25,    /* selection: can make x while it reads it (cg_producer_) */
    CG_KEEPS_ONE_SIDE_ = 1 << 11,    /* selection: values of one sign */
    CG_KEEPS_BLOCKS_ = 1 << 12,      /* selection: one index stands for stage.size values */
    CG_NEEDS_AUX_ = 1 << 13,         /* selection: reads cg_extra.aux */
    CG_NEEDS_SUPPORT_ = 1 << 14,     /* selection: takes the indices of cg_extra.support, and sends none */
    CG_IS_USER_CODEC_ = 1 << 15,     /* quantizer: a cg_codec of the caller's */
    CG_IS_F32_ = 1 << 16,            /* quantizer: values are sent as they are */
    CG_IS_SIGN_ = 1 << 17,           /* quantizer: a sign without a scale, which can be voted on */
    CG_HAS_GRID_ = 1 << 18,          /* quantizer: symbols are levels around zero, which add as integers */
    CG_SCALE_IS_STEP_ = 1 << 23,     /* quantizer with levels: the scale is one level, not the largest */
    CG_ROUNDS_TO_NEAREST_ = 1 << 24, /* quantizer with levels: never at random */
    CG_OWNS_SCALES_ = 1 << 19,       /* quantizer: cg_extra.scale cannot take the place of its scales */
    CG_CODES_EXPONENTS_ = 1 << 20,   /* quantizer: stores floats whose exponents huffman can code */
    CG_WANTS_ROTATION_ = 1 << 21,    /* quantizer: stands only behind a rotation, whose blocks are its buckets */
    CG_ROUNDS_AT_RANDOM_ = 1 << 26,  /* quantizer: may draw noise; a flag nearest or stochastic says whether it does */
    CG_AUX_IS_VARIANCE_ = 1 << 30,   /* selection: aux has variances of x; otherwise the gradient, where x is a sum */
    CG_SCALES_ARE_ENDS_ = 1 << 27,   /* quantizer: its two scales are the ends of a range */
    CG_INDEX_LENGTH_VARIES_ = 1 << 28, /* code of indices: not their number alone says how long the section is */
    CG_IS_PRIVATE_ =
        1 << 29,            /* of an operator: its sample or rotation differs by rank (CG_FLAG_PRIVATE), so that packets
                                 of ranks add up decoded, and not in their domain */
    CG_IS_BIASED_ = 1 << 22 /* the mean of what is decoded differs from x, but with an unbiasing flag */
};
#define CG_LENGTH_VARIES_ 0x80000000u /* a trait: quantizer whose levels are entropy coded: so is their section */
/* What a stage does to the values v that it sees, whatever they are; see core/error.h. */
typedef struct cg_error_ {
    double bound;       /* E|C(v) - v|^2 <= bound |v|^2, the least that is known; -1: none is */
    double least, most; /* a biased stage that leaves some values as they are, and no others: their share of |v|^2 */
    double total;       /* values that the quantizer sees in all; set before */
    double count;       /* a selection: how many values it keeps, in expectation; -1: data decides */
    double inflation;   /* E|C(v)|^2 <= inflation |v|^2 by the papers, for error feedback; 1 if the stage is biased */
    double step;        /* a grid around zero: its step as a share of the largest magnitude of a bucket; 0: unknown */
    int is_biased;
    int data_decides; /* 1: the error of most vectors is far below the bound */
} cg_error_;
typedef struct cg_stage_row_ {
    uint8_t slot, id;
    const char *name;          /* as text, a stage is name:arg:size:value:flag */
    const char *params;        /* for messages: name=example of each parameter, in the order of the text */
    const char *warning;       /* what a report says of the stage without error feedback, if it is biased; or NULL */
                               /* of a stage that was left out, that it was; it has no params and no flag_names */
    const char *flag_names[2]; /* of the flags 1 and 2; "": there is no such flag */
    uint8_t biasing_flags;     /* those with which the mean of what is decoded differs from x */
    uint8_t unbiasing_flags;   /* those with which it is x, although the stage has CG_IS_BIASED_ */
    uint32_t traits;
    /* ranges of the three parameters; where an upper end is 0, the stage has no such parameter */
    uint16_t arg_lo, arg_hi;
    uint32_t size_lo, size_hi;
    uint32_t size_default; /* text may leave the size out if this is in its range */
    float value_lo, value_hi;
    uint8_t value_lo_exclusive; /* 1: value_lo itself is too small */
    /* n: values that the stage sees, for a quantizer those of a bucket. *e is zeros, but for count, which is n, most
       and inflation, which are 1, and is_biased, which is set */
    void (*error)(const cg_op *op, uint64_t n, cg_error_ *e);
} cg_stage_row_;
#define CG_PRIVATE_KEY_ 0xBB67AE8584CAA73Bu /* of samples and rotations that differ by rank */
#define CG_SIZE_MAX_ 0xffffffffu            /* of stage.size */
/* A row that this build was made without: it has a name, and in place of a warning the sentence that says so. */
CG_INLINE_ int cg_is_left_out_(const cg_stage_row_ *row) { return CG_MAY_LEAVE_OUT_ && !row->error; }
/* The code slot holds two codes: its id is the code of the indices, its arg the code of the values. */
typedef struct cg_value_code_ {
    const char *name;
    const char *left_out; /* NULL, or that it was */
} cg_value_code_;
#define CG_VALUE_CODE_LIST_(X) \
  X(GAMMA, "gamma") X(DELTA, "delta") X(OMEGA, "omega") X(HUFFMAN, "huffman") X(QUARTIC, "quartic")
#define CG_ROW_(id, name) { name, CG_IF_(COMPGRAD_WITH_##id, (NULL), (CG_LEFT_OUT_WHY_(name, #id))) },
static const cg_value_code_ cg_value_codes_[] = { { "", NULL }, CG_VALUE_CODE_LIST_(CG_ROW_) };
#undef CG_ROW_
enum { CG_VALUE_CODE_COUNT_ = sizeof cg_value_codes_ / sizeof cg_value_codes_[0] };
/* Whether this build has any code of values, sample and transform: code for them that asks is not in the object if it
   has none. */
/* Quantizers whose levels are always coded. */
CG_INLINE_ int cg_builds_levels_(void) { return 0 CG_OR_BUILT_(RATE, ) CG_OR_BUILT_(STEP, ); }
CG_INLINE_ int cg_builds_value_codes_(void) { return cg_builds_levels_() CG_VALUE_CODE_LIST_(CG_OR_BUILT_); }
CG_INLINE_ int cg_builds_samples_(void); /* in core/rows.h, as the next */
CG_INLINE_ int cg_builds_transforms_(void);
CG_INLINE_ int cg_builds_clips_(void);
static int cg_is_sampled_(const cg_op *op) { return cg_builds_samples_() && op->sample.id != 0; }
static int cg_is_clipped_(const cg_op *op) { return cg_builds_clips_() && op->clip.id != 0; }
static int cg_is_transformed_(const cg_op *op) { return cg_builds_transforms_() && op->transform.id != 0; }
struct cg_list_;
struct cg_index_reader_;
/* A code of indices: how long a section it makes of k > 0 indices below universe, and how it writes and reads one. */
typedef struct cg_index_coder_ {
    uint8_t id;
    const char *name;
    const char *left_out; /* NULL, or that it was */
    uint32_t traits;
    uint64_t (*bytes)(uint64_t universe, uint64_t k); /* at most, if CG_INDEX_LENGTH_VARIES_; a multiple of 4 */
    uint64_t (*bound)(uint64_t universe, uint64_t k); /* of any number of indices up to k */
    size_t (*put)(uint64_t universe, const struct cg_list_ *list, uint8_t *out, size_t bytes); /* returns the bytes */
    void (*open)(struct cg_index_reader_ *r, uint64_t k);                     /* what cg_index_open_ has not set */
    size_t (*get)(struct cg_index_reader_ *r, uint64_t *index, size_t count); /* see cg_index_get_ */
    int (*padding_ok)(const struct cg_index_reader_ *r, uint64_t k); /* of a reader at the first of k indices */
    /* k ascending indices below the universe, and no more? *next: the last + 1, 0 if k is 0 */
    int (*check)(struct cg_index_reader_ *r, uint64_t k, uint64_t *next);
} cg_index_coder_;
/* From 0, which chooses, on; NULL: there are no more. */
static const cg_index_coder_ *cg_index_coder_at_(unsigned id); /* in core/rows.h */

/* The stage of op in that slot; slot < CG_SLOT_COUNT_. Stages lie one behind the other, as in a packet's header. */
CG_INLINE_ const cg_stage *cg_op_stage_const_(const cg_op *op, unsigned slot) {
    return (const cg_stage *)(const void *)((const uint8_t *)op + slot * sizeof(cg_stage));
}
static cg_stage *cg_op_stage_(cg_op *op, unsigned slot) { return (cg_stage *)(uintptr_t)cg_op_stage_const_(op, slot); }
/* Row number `id` of a slot, from 0, the empty stage, on; NULL: there are no more (or the slot is that of codes). */
static const cg_stage_row_ *cg_row_at_(unsigned slot, unsigned id); /* in core/rows.h, as those below */
/* The row of a stage that cg_stage_check_ accepts; the row of the empty stage for one that this build does not know. */
static const cg_stage_row_ *cg_stage_row_of_(unsigned slot, const cg_stage *s);
/* All traits of the stages of an operator; of any, but stages that this build does not know have none. */
static uint32_t cg_op_traits_(const cg_op *op);
/* The key of a sample or transform: that of all ranks, or this rank's own, which is not the key of its rounding. */
static uint64_t cg_stage_key_(const cg_stage *s, const cg_tag *tag) {
    return s->flags & CG_FLAG_PRIVATE ? cg_rank_key_(tag) ^ CG_PRIVATE_KEY_ : cg_shared_key_(tag);
}
static int cg_has_(const cg_op *op, uint32_t traits) { return (cg_op_traits_(op) & traits) != 0; }
/* s is a quantize stage. */
static int cg_is_user_codec_(const cg_stage *s) { return s->id >= CG_QUANTIZE_USER; }
CG_INLINE_ int cg_stage_is_empty_(const cg_stage *s) {
    uint64_t id_to_size;
    memcpy(&id_to_size, s, 8);
    return !(id_to_size | cg_as_bits_(s->value));
}
static int cg_value_code_fits_(const cg_op *op); /* in quantize/rows.h */
/* Does the mean of what is decoded differ from what this stage sees? */
static int cg_stage_is_biased_(unsigned slot, const cg_stage *s) {
    const cg_stage_row_ *row = cg_stage_row_of_(slot, s);
    if (s->flags & row->unbiasing_flags) return 0;
    return (row->traits & CG_IS_BIASED_) != 0 || (s->flags & row->biasing_flags) != 0;
}

/* Why this build does not have a code whose numbers are good: the sentence that says so; NULL: it has it. */
static const char *cg_code_left_out_(const cg_stage *s) {
    if (!CG_MAY_LEAVE_OUT_) return NULL;
    return cg_index_coder_at_(s->id)->left_out ? cg_index_coder_at_(s->id)->left_out : cg_value_codes_[s->arg].left_out;
}
/* The sentence of the first stage or code of op that this build was made without; NULL: it was not. */
static const char *cg_op_left_out_(const cg_op *op) {
    for (unsigned slot = 0; CG_MAY_LEAVE_OUT_ && slot < CG_SLOT_COUNT_; slot++) {
        const cg_stage_row_ *row = cg_row_at_(slot, cg_op_stage_const_(op, slot)->id);
        if (row && cg_is_left_out_(row)) return row->warning;
    }
    return cg_index_coder_at_(op->code.id) && op->code.arg < CG_VALUE_CODE_COUNT_ ? cg_code_left_out_(&op->code) : NULL;
}
/* One stage by itself. CG_E_VERSION: a stage, code or flag that this build does not know. CG_E_ARG: a known stage
   with parameters out of range. */
static cg_status cg_stage_check_(unsigned slot, const cg_stage *s) {
    const cg_stage_row_ *row;
    if (cg_stage_is_empty_(s)) return CG_OK;
    if (slot == CG_SLOT_CODE_) {
        if (!cg_index_coder_at_(s->id) || s->arg >= CG_VALUE_CODE_COUNT_ || cg_code_left_out_(s)) return CG_E_VERSION;
        return s->flags || s->size || cg_as_bits_(s->value) ? CG_E_ARG : CG_OK;
    }
    if (s->id == 0) return CG_E_ARG;
    if (slot == CG_SLOT_QUANTIZE_ && cg_is_user_codec_(s))
        return s->flags || !cg_is_finite_(s->value) ? CG_E_ARG : CG_OK;
    row = cg_row_at_(slot, s->id);
    if (!row || cg_is_left_out_(row) ||
        s->flags & ~(unsigned)((row->flag_names[0][0] != 0) | (row->flag_names[1][0] != 0) << 1))
        return CG_E_VERSION;
    if (row->arg_hi ? s->arg < row->arg_lo || s->arg > row->arg_hi : s->arg != 0) return CG_E_ARG;
    if (row->size_hi ? s->size < row->size_lo : s->size != 0) return CG_E_ARG;
    if (row->value_hi == 0.0f) return cg_as_bits_(s->value) ? CG_E_ARG : CG_OK;
    if (!(s->value >= row->value_lo && s->value <= row->value_hi) ||
        (row->value_lo_exclusive && s->value == row->value_lo))
        return CG_E_ARG;
    return CG_OK;
}
/* A sentence why stages that are each good do not go together, and the slot of the one that does not fit; NULL: they do
   go together. */
static const char *cg_op_conflict_(const cg_op *op, uint32_t traits, unsigned *slot) {
    if (!(op->sample.id | op->transform.id | op->select.id | op->code.id | op->code.arg | op->k) &&
        !(traits & CG_WANTS_ROTATION_))
        return NULL; /* a quantizer by itself */
    *slot = CG_SLOT_CODE_;
    if (op->code.id && (!(traits & CG_IS_SELECTION_) || traits & CG_NEEDS_SUPPORT_))
        return "a code for indices needs a selection that sends indices before it, as in 'topk:0.01|golomb'";
    if (op->code.arg && !cg_value_code_fits_(op)) {
        if (op->code.arg == CG_CODE_QUARTIC - CG_CODE_PACKED)
            return "quartic needs a quantizer of three levels before it (terngrad, trits, strom, absmax:2, flexpoint:2 "
                   "or levels:1), as in 'terngrad|quartic'";
        if (traits & CG_CODES_EXPONENTS_)
            return "f32 and bf16 values take no code but huffman; other codes need a quantizer with levels before "
                   "them, as in 'absmax:4:512|omega'";
        return "the values of this quantizer have no code; those of absmax, minmax, levels and terngrad do, as in "
               "'absmax:4:512|huffman'";
    }
    *slot = CG_SLOT_TRANSFORM_;
    if (traits & CG_IS_MATRIX_) {
        if (op->sample.id || op->select.id || op->clip.id || op->quantize.id || op->code.arg)
            return "lowrank and atomo are complete operators: no other stage goes with them";
        if (op->transform.value != (float)(uint32_t)op->transform.value) return "cols must be a whole number";
    }
    *slot = CG_SLOT_SELECT_;
    if (op->sample.id || op->transform.id) {
        if (traits & CG_NEEDS_SUPPORT_)
            return "given takes neither a sample nor a transform: indices of a support are those of x itself";
        if (traits & CG_NEEDS_AUX_)
            return "bins and variance take neither a sample nor a transform: cg_extra.aux belongs to x itself";
    }
    *slot = CG_SLOT_QUANTIZE_;
    if (traits & CG_WANTS_ROTATION_) { /* buckets are the rotation's blocks; bits in steps of 1/32 */
        const float steps = op->quantize.value * 32.0f;
        if (!(traits & CG_IS_ROTATION_) || op->select.id)
            return "lloyd needs rotate before it and takes no selection, as in 'rotate:3|lloyd:2'";
        if (steps != (float)(int)steps) return "bits of lloyd go in steps of 1/32, as in 'rotate:3|lloyd:2.5'";
    }
    /* a count that no stage takes */
    if (op->k && !(traits & (CG_TAKES_K_ | CG_SAMPLES_RATIO_)))
        return "k needs topk, mstopk or randk, as in 'topk:k=100'";
    return NULL;
}
/* Is everything but the quantizer zero? Six stages of 12 bytes lie one behind the other, then k. */
static int cg_is_quantizer_alone_(const cg_op *op) {
    uint64_t before[4], behind[3];
    uint32_t last;
    memcpy(before, op, 32);
    memcpy(&last, (const uint8_t *)op + 32, 4);
    memcpy(behind, (const uint8_t *)op + 48, 24);
    return !(before[0] | before[1] | before[2] | before[3] | last | behind[0] | behind[1] | behind[2] | op->k |
        op->reserved);
}
/* All stages of op, each by itself and together. Any bytes may be in *op. CG_OK is what the rest of the
   implementation relies on; errors as those of cg_stage_check_. */
static cg_status cg_op_resolve_(const cg_op *op, uint32_t *traits) {
    unsigned at;
    if (cg_is_quantizer_alone_(op)) { /* the operators of which small tensors have most */
        const cg_status s = cg_stage_is_empty_(&op->quantize) ? CG_OK
                                                              : cg_stage_check_(CG_SLOT_QUANTIZE_, &op->quantize);
        if (s != CG_OK) return s;
        *traits = cg_stage_row_of_(CG_SLOT_QUANTIZE_, &op->quantize)->traits;
        if (!(*traits & CG_WANTS_ROTATION_)) return CG_OK;
    }
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        const cg_stage *stage = cg_op_stage_const_(op, slot);
        cg_status s = cg_stage_is_empty_(stage) ? CG_OK : cg_stage_check_(slot, stage);
        if (s != CG_OK) return s;
    }
    *traits = cg_op_traits_(op);
    return op->reserved || cg_op_conflict_(op, *traits, &at) ? CG_E_ARG : CG_OK;
}
static cg_status cg_op_check_(const cg_op *op) {
    uint32_t traits;
    return cg_op_resolve_(op, &traits);
}
/* What only old packets may have, as a sentence, or NULL: mean after a selection of both sides. The mean of values of
   both signs is about nothing, and training with it would stand still. Packets of 0.1 may have it, and the route shared
   sends indices with it, whose values nobody reads. */
static const char *cg_op_only_old_(const cg_op *op) {
    return op->quantize.id == CG_QUANTIZE_MEAN && op->select.id != CG_SELECT_SIDE
        ? "mean needs side before it, as in 'side:0.01|mean': values of both signs have no mean worth sending"
        : NULL;
}
/* An operator that the caller wants to use. */
static cg_status cg_op_check_new_(const cg_op *op) { return cg_op_only_old_(op) ? CG_E_ARG : cg_op_check_(op); }

/* src/core/plan.h */
/* plan: how many values each slot of an operator leaves of n, resolved once and passed on

   Offers   cg_plan_, cg_plan_of_, cg_k_from_ratio_, sizes of matrices, and how many values a stage leaves
   Needs    base, random, stages, the clamp of r from lowrank
   Touches  nothing
   The vector has n values, sampled_n after the sample, transformed_n after the transform, and at most max_selected
   after the selection. All operators here have passed cg_op_check_. */

/* Of an operator on matrices only: columns of the left factor, rows and columns of the matrix. */
static unsigned cg_matrix_r_(const cg_op *op) {
    return cg_matrix_r_clamp_(op->transform.size, (size_t)op->transform.value, op->transform.arg);
}
static size_t cg_matrix_rows_(const cg_op *op) { return op->transform.size; }
static size_t cg_matrix_cols_(const cg_op *op) { return (size_t)op->transform.value; }

/* k = clamp(floor(ratio*n + 0.5), 1, n), or with fixed_k > 0 the clamp of that; 0 if n is 0. */
static uint64_t cg_k_from_ratio_(float ratio, uint64_t fixed_k, uint64_t n) {
    double exact_k = (double)ratio * (double)n;
    uint64_t k;
    CG_NO_FMA_(exact_k);
    exact_k += 0.5;
    k = fixed_k ? fixed_k : exact_k >= (double)n ? n : (uint64_t)exact_k;
    return n == 0 ? 0 : k < 1 ? 1 : k > n ? n : k;
}
/* v up to a multiple of `to`; CG_TOO_LARGE_ if that overflows. */
static uint64_t cg_round_up_(uint64_t v, uint64_t to) { return cg_mul_sat_(v / to + (v % to != 0), to); }

/* The functions of samples: how many of n values are left. tag NULL: the maximum over all ranks. */
static uint64_t cg_sampled_all_(const cg_op *op, uint64_t n, const cg_tag *tag) {
    (void)op;
    (void)tag;
    return n;
}
static uint64_t cg_sampled_randk_(const cg_op *op, uint64_t n, const cg_tag *tag) {
    (void)tag;
    return cg_k_from_ratio_(op->sample.value, op->k && !cg_has_(op, CG_TAKES_K_) ? op->k : 0, n);
}
/* One of each group of `size`, and perhaps one of the short last group. */
static uint64_t cg_sampled_permk_(const cg_op *op, uint64_t n, const cg_tag *tag) {
    const uint64_t groups = n / op->sample.size, remainder = n % op->sample.size;
    return groups +
        (remainder && (!tag || cg_permk_index_(cg_shared_key_(tag), groups, op->sample.size, tag->rank) < remainder));
}
/* One block of so many, all equally long. */
static uint64_t cg_sampled_cyclic_(const cg_op *op, uint64_t n, const cg_tag *tag) {
    (void)tag;
    return n / op->sample.size + (n % op->sample.size != 0);
}
/* The functions of transforms: how many values they make of sampled_n; CG_TOO_LARGE_ on overflow. */
static uint64_t cg_transformed_same_(const cg_op *op, uint64_t sampled_n) {
    (void)op;
    return sampled_n;
}
static uint64_t cg_transformed_rotate_(const cg_op *op, uint64_t sampled_n) {
    (void)op;
    return cg_round_up_(sampled_n, CG_ROTATE_BLOCK_);
}
static uint64_t cg_transformed_dct_(const cg_op *op, uint64_t sampled_n) {
    (void)op;
    return cg_round_up_(sampled_n, CG_DCT_BLOCK_);
}
static uint64_t cg_transformed_matrix_(const cg_op *op, uint64_t sampled_n) { /* the two factors */
    (void)sampled_n;
    return cg_mul_sat_((uint64_t)op->transform.size + (uint64_t)op->transform.value, cg_matrix_r_(op));
}
/* The functions of selections: how many of n values are kept at most. */
static uint64_t cg_selected_all_(const cg_op *op, uint64_t n) {
    (void)op;
    return n;
}
static uint64_t cg_selected_k_(const cg_op *op, uint64_t n) {
    return cg_k_from_ratio_(op->select.value, op->k && cg_has_(op, CG_TAKES_K_) ? op->k : 0, n);
}
static uint64_t cg_selected_estimate_(const cg_op *op, uint64_t n) { /* 1.3 k */
    const uint64_t k = cg_k_from_ratio_(op->select.value, 0, n), more = k + k / 10 * 3 + k % 10 * 3 / 10;
    return more < n ? more : n;
}
static uint64_t cg_selected_chunked_(const cg_op *op, uint64_t n) {
    const uint64_t chunk = op->select.size;
    return n / chunk * cg_k_from_ratio_(op->select.value, 0, chunk) + cg_k_from_ratio_(op->select.value, 0, n % chunk);
}

/* What follows from an operator and n. */
typedef struct cg_plan_ {
    uint32_t traits;
    uint64_t n, sampled_n, transformed_n;
    uint64_t max_selected;     /* just so many if CG_KEEPS_EXACTLY_ */
    uint64_t values_per_index; /* 1, but the block size where one index selects a whole block */
    uint64_t universe;         /* indices are below it */
} cg_plan_;
/* 0: an operator on matrices whose rows times columns are not n. */
static int cg_matrix_shape_fits_(const cg_op *op, uint64_t n) {
    return !cg_has_(op, CG_IS_MATRIX_) || (uint64_t)op->transform.size * (uint64_t)op->transform.value == n;
}
/* Indices for so many values, which are whole blocks but for the last. */
CG_INLINE_ uint64_t cg_index_count_(const cg_plan_ *plan, uint64_t values) {
    return plan->values_per_index == 1 ? values
                                       : values / plan->values_per_index + (values % plan->values_per_index != 0);
}
/* Does a packet have indices of its own? */
static int cg_has_indices_(const cg_plan_ *plan) {
    return (plan->traits & (CG_IS_SELECTION_ | CG_NEEDS_SUPPORT_)) == CG_IS_SELECTION_;
}
/* How many of n values the sample leaves. */
static uint64_t cg_sampled_n_(const cg_op *op, uint64_t n, const cg_tag *tag); /* in core/rows.h, as those below */
/* Sets all but traits, n and sampled_n, which are set. */
static void cg_plan_resume_(cg_plan_ *plan, const cg_op *op);
/* All but traits, which are set. tag: of the rank whose plan this is; NULL: of the rank whose sample leaves most. */
static void cg_plan_set_(cg_plan_ *plan, const cg_op *op, uint64_t n, const cg_tag *tag);
static cg_plan_ cg_plan_of_(const cg_op *op, uint64_t n) {
    cg_plan_ plan;
    plan.traits = cg_op_traits_(op);
    cg_plan_set_(&plan, op, n, NULL);
    return plan;
}

/* src/core/presets.h */
/* presets: functions of the public interface that make operators

   Offers   every cg_op constructor and modifier, cg_then
   Needs    base, stages
   Touches  nothing
   A preset never fails: parameters out of range give an operator that cg_op_check_ refuses, so cg_bound is 0. */

/* An operator of one stage. An arg that is no u16 becomes 65535, which no stage but a user codec accepts. */
static cg_op cg_op_one_stage_(unsigned slot, int id, int arg, uint32_t size, float value) {
    cg_op op = CG_ZERO;
    cg_stage *s = cg_op_stage_(&op, slot);
    s->id = (uint8_t)id;
    s->arg = (uint16_t)(arg < 0 || arg > 65535 ? 65535 : arg);
    s->size = size;
    s->value = value;
    return op;
}
/* An operator that cg_op_check_ refuses: there is no such clip. */
static cg_op cg_op_invalid_(void) {
    cg_op op = CG_ZERO;
    op.clip.id = 255;
    return op;
}
static cg_op cg_op_quantize_(int id, int arg, uint32_t size, float value) {
    return cg_op_one_stage_(CG_SLOT_QUANTIZE_, id, arg, size, value);
}
static cg_op cg_op_select_(int id, uint32_t size, float value) {
    return cg_op_one_stage_(CG_SLOT_SELECT_, id, 0, size, value);
}

CG_API_ cg_op cg_dense(void) { return cg_op_quantize_(0, 0, 0, 0.0f); }
CG_API_ cg_op cg_f16(void) { return cg_op_quantize_(CG_QUANTIZE_F16, 0, 0, 0.0f); }
CG_API_ cg_op cg_bf16(void) { return cg_op_quantize_(CG_QUANTIZE_BF16, 0, 0, 0.0f); }
CG_API_ cg_op cg_absmax(int bits, uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_ABSMAX, bits, bucket, 0.0f); }
CG_API_ cg_op cg_minmax(int bits, uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_MINMAX, bits, bucket, 0.0f); }
CG_API_ cg_op cg_sign(void) { return cg_op_quantize_(CG_QUANTIZE_SIGN, 0, 0, 0.0f); }
CG_API_ cg_op cg_efsign(void) { return cg_op_quantize_(CG_QUANTIZE_EFSIGN, 0, 0, 0.0f); }
CG_API_ cg_op cg_onebit(uint32_t column) { return cg_op_quantize_(CG_QUANTIZE_ONEBIT, 0, column, 0.0f); }
CG_API_ cg_op cg_terngrad(void) { return cg_op_quantize_(CG_QUANTIZE_TERNGRAD, 0, 0, 0.0f); }
CG_API_ cg_op cg_levels(int levels, uint32_t bucket) {
    return cg_op_quantize_(CG_QUANTIZE_LEVELS, levels, bucket, 0.0f);
}
CG_API_ cg_op cg_qsgd(int levels) { return cg_coded(cg_levels(levels, 0), CG_CODE_OMEGA); }
CG_API_ cg_op cg_trits(float s) { return cg_op_quantize_(CG_QUANTIZE_TRITS, 0, 0, s); }
CG_API_ cg_op cg_threelc(float s) { return cg_coded(cg_trits(s), CG_CODE_QUARTIC); }
CG_API_ cg_op cg_strom(float tau) { return cg_op_quantize_(CG_QUANTIZE_STROM, 0, 0, tau); }
CG_API_ cg_op cg_flex16(uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_FLEX16, 0, bucket, 0.0f); }
CG_API_ cg_op cg_flexpoint(int bits, uint32_t bucket) {
    return bits == 16 ? cg_flex16(bucket) : cg_op_quantize_(CG_QUANTIZE_FLEXPOINT, bits, bucket, 0.0f);
}
CG_API_ cg_op cg_rate(float bits) { return cg_op_quantize_(CG_QUANTIZE_RATE, 0, 0, bits); }
CG_API_ cg_op cg_step(float share) { return cg_op_quantize_(CG_QUANTIZE_STEP, 0, 0, share); }
CG_API_ cg_op cg_natural(void) { return cg_op_quantize_(CG_QUANTIZE_NATURAL, 0, 0, 0.0f); }
CG_API_ cg_op cg_dither(int bits, uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_DITHER, bits, bucket, 0.0f); }
CG_API_ cg_op cg_dynamic8(void) { return cg_op_quantize_(CG_QUANTIZE_DYNAMIC8, 0, 0, 0.0f); }
CG_API_ cg_op cg_e4m3(uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_E4M3, 0, bucket, 0.0f); }
CG_API_ cg_op cg_e5m2(uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_E5M2, 0, bucket, 0.0f); }
CG_API_ cg_op cg_fp8(void) { return cg_e4m3(512); }
CG_API_ cg_op cg_fp8_e5m2(void) { return cg_e5m2(512); }
CG_API_ cg_op cg_mxfp4(void) { return cg_op_quantize_(CG_QUANTIZE_MXFP4, 0, 0, 0.0f); }
CG_API_ cg_op cg_mxe4m3(void) { return cg_op_quantize_(CG_QUANTIZE_MXE4M3, 0, 0, 0.0f); }
CG_API_ cg_op cg_mxe5m2(void) { return cg_op_quantize_(CG_QUANTIZE_MXE5M2, 0, 0, 0.0f); }
CG_API_ cg_op cg_nvfp4(void) { return cg_op_quantize_(CG_QUANTIZE_NVFP4, 0, 0, 0.0f); }
CG_API_ cg_op cg_geometric(int bits, uint32_t bucket) {
    return cg_op_quantize_(CG_QUANTIZE_GEOMETRIC, bits, bucket, 0.0f);
}
CG_API_ cg_op cg_nf4(void) { return cg_op_quantize_(CG_QUANTIZE_NF4, 0, 64, 0.0f); }
CG_API_ cg_op cg_klevel(int bits, uint32_t bucket) {
    cg_op op = cg_coded(cg_minmax(bits, bucket), CG_CODE_HUFFMAN);
    op.quantize.flags = CG_FLAG_NORM;
    return op;
}

CG_API_ cg_op cg_clip(float s) { return cg_op_one_stage_(CG_SLOT_CLIP_, CG_CLIP_RMS, 0, 0, s); }

CG_API_ cg_op cg_topk(float ratio) { return cg_op_select_(CG_SELECT_TOPK, 0, ratio); }
CG_API_ cg_op cg_threshold(float magnitude) { return cg_op_select_(CG_SELECT_THRESHOLD, 0, magnitude); }
CG_API_ cg_op cg_dgc(float ratio) { return cg_op_select_(CG_SELECT_DGC, 0, ratio); }
CG_API_ cg_op cg_mstopk(float ratio) { return cg_op_select_(CG_SELECT_MSTOPK, 0, ratio); }
CG_API_ cg_op cg_sidco(float ratio) { return cg_op_select_(CG_SELECT_SIDCO, 0, ratio); }
CG_API_ cg_op cg_wangni(float ratio) { return cg_op_select_(CG_SELECT_WANGNI, 0, ratio); }
CG_API_ cg_op cg_wangnivar(float epsilon) { return cg_op_select_(CG_SELECT_WANGNIVAR, 0, epsilon); }
CG_API_ cg_op cg_chunked(float ratio, uint32_t chunk) { return cg_op_select_(CG_SELECT_CHUNKED, chunk, ratio); }
CG_API_ cg_op cg_blocks(uint32_t block) { return cg_op_select_(CG_SELECT_BLOCKS, block, 0.0f); }
CG_API_ cg_op cg_given(void) { return cg_op_select_(CG_SELECT_GIVEN, 0, 0.0f); }
CG_API_ cg_op cg_variance(float alpha) { return cg_op_select_(CG_SELECT_VARIANCE, 0, alpha); }
CG_API_ cg_op cg_bins(uint32_t bin) { return cg_op_select_(CG_SELECT_BINS, bin, 0.0f); }
CG_API_ cg_op cg_sides(float ratio) { return cg_op_select_(CG_SELECT_SIDES, 0, ratio); }
CG_API_ cg_op cg_adacomp(uint32_t bin) { return cg_then(cg_bins(bin), cg_efsign()); }
CG_API_ cg_op cg_adaq(float ratio) { return cg_then(cg_sides(ratio), cg_onebit(0)); }
CG_API_ cg_op cg_sbc(float ratio) {
    return cg_coded(cg_then(cg_op_select_(CG_SELECT_SIDE, 0, ratio), cg_op_quantize_(CG_QUANTIZE_MEAN, 0, 0, 0.0f)),
        CG_CODE_GOLOMB);
}
CG_API_ cg_op cg_stc(float ratio) { return cg_coded(cg_then(cg_topk(ratio), cg_efsign()), CG_CODE_GOLOMB); }
CG_API_ cg_op cg_qsparse(float ratio, int levels) { return cg_then(cg_topk(ratio), cg_levels(levels, 0)); }
CG_API_ cg_op cg_cocktail(float sampled, float ratio, int bits) {
    return cg_then(cg_then(cg_unscaled(cg_randk(sampled)), cg_topk(ratio)), cg_nearest(cg_absmax(bits, 512)));
}

CG_API_ cg_op cg_randk(float ratio) { return cg_op_one_stage_(CG_SLOT_SAMPLE_, CG_SAMPLE_RANDK, 0, 0, ratio); }
CG_API_ cg_op cg_permk(uint32_t workers) {
    return cg_op_one_stage_(CG_SLOT_SAMPLE_, CG_SAMPLE_PERMK, 0, workers, 0.0f);
}
CG_API_ cg_op cg_cyclic(uint32_t blocks) {
    return cg_op_one_stage_(CG_SLOT_SAMPLE_, CG_SAMPLE_CYCLIC, 0, blocks, 0.0f);
}
CG_API_ cg_op cg_rotate(int rounds) {
    return cg_op_one_stage_(CG_SLOT_TRANSFORM_, CG_TRANSFORM_ROTATE, rounds, 0, 0.0f);
}
CG_API_ cg_op cg_dct(void) { return cg_op_one_stage_(CG_SLOT_TRANSFORM_, CG_TRANSFORM_DCT, 0, 0, 0.0f); }
CG_API_ cg_op cg_srq(int bits) { return cg_then(cg_rotate(1), cg_minmax(bits, CG_ROTATE_BLOCK_)); }
CG_API_ cg_op cg_lloyd(float bits) { return cg_op_quantize_(CG_QUANTIZE_LLOYD, 0, 0, bits); }
/* bits are rounded to 1/32; below one bit a random sample comes first. Two rounds would leave a bias, see README. */
CG_API_ cg_op cg_eden(float bits) {
    float steps = (float)(int)(bits > 0.0f && bits <= 4.0f ? bits * 32.0f + 0.5f : 0.0f) / 32.0f;
    cg_op op = cg_then(cg_rotate(3), cg_lloyd(bits < 1.0f ? 1.0f : steps));
    if (!(bits > 0.0f && bits <= 4.0f)) return cg_op_invalid_();
    return bits < 1.0f ? cg_then(cg_randk(bits), op) : op;
}
CG_API_ cg_op cg_drive(void) { return cg_eden(1.0f); }
CG_API_ cg_op cg_demo_dct(float ratio) { return cg_then(cg_dct(), cg_chunked(ratio, 64)); }
/* cols is stored as a float, which holds integers up to 2^24 exactly. */
static cg_op cg_op_matrix_(int id, uint32_t rows, uint32_t cols, int r) {
    return cols > 16777216u ? cg_op_invalid_() : cg_op_one_stage_(CG_SLOT_TRANSFORM_, id, r, rows, (float)cols);
}
CG_API_ cg_op cg_lowrank(uint32_t rows, uint32_t cols, int rank) {
    return cg_op_matrix_(CG_TRANSFORM_LOWRANK, rows, cols, rank);
}
CG_API_ cg_op cg_atomo(uint32_t rows, uint32_t cols, int budget) {
    return cg_op_matrix_(CG_TRANSFORM_ATOMO, rows, cols, budget);
}

CG_API_ cg_op cg_mxfp8(void) { return cg_mxe4m3(); }
CG_API_ cg_op cg_mxfp8_e5m2(void) { return cg_mxe5m2(); }
CG_API_ cg_op cg_wangni_variance(float epsilon) { return cg_wangnivar(epsilon); }
CG_API_ cg_op cg_demo(float ratio) { return cg_demo_dct(ratio); }

CG_API_ cg_op cg_user(int id, int arg, uint32_t size, float value) {
    return id < CG_QUANTIZE_USER || id > 255 || arg < 0 || arg > 65535 ? cg_op_invalid_()
                                                                       : cg_op_quantize_(id, arg, size, value);
}
/* op with a flag of its stage in `slot`, by the name that the stage's row has for it; invalid if it has none. */
static cg_op cg_op_flagged_(cg_op op, unsigned slot, const char *name) {
    cg_stage *s = cg_op_stage_(&op, slot);
    const cg_stage_row_ *row = cg_stage_row_of_(slot, s);
    for (unsigned f = 0; f < 2; f++) {
        if (cg_is_left_out_(row) || !cg_same_text_(row->flag_names[f], name)) continue;
        s->flags = (uint8_t)(s->flags | 1u << f);
        return op;
    }
    return cg_op_invalid_();
}
CG_API_ cg_op cg_nearest(cg_op op) { return cg_op_flagged_(op, CG_SLOT_QUANTIZE_, "nearest"); }
CG_API_ cg_op cg_unbiased(cg_op op) { return cg_op_flagged_(op, CG_SLOT_QUANTIZE_, "unbiased"); }
CG_API_ cg_op cg_stochastic(cg_op op) { return cg_op_flagged_(op, CG_SLOT_QUANTIZE_, "stochastic"); }
CG_API_ cg_op cg_clipped(cg_op op) { return cg_op_flagged_(op, CG_SLOT_QUANTIZE_, "clip"); }
CG_API_ cg_op cg_maxnorm(cg_op op, uint32_t bucket) {
    op.quantize.size = bucket;
    return cg_op_flagged_(op, CG_SLOT_QUANTIZE_, "max");
}
CG_API_ cg_op cg_unscaled(cg_op op) { return cg_op_flagged_(op, CG_SLOT_SAMPLE_, "unscaled"); }
CG_API_ cg_op cg_private(cg_op op) {
    if (!op.transform.id || op.sample.id) op = cg_op_flagged_(op, CG_SLOT_SAMPLE_, "private");
    return op.transform.id ? cg_op_flagged_(op, CG_SLOT_TRANSFORM_, "private") : op;
}
CG_API_ cg_op cg_coded(cg_op op, cg_coding coding) {
    unsigned c = (unsigned)coding;
    if (c < CG_CODE_PACKED) op.code.id = (uint8_t)c;
    else op.code.arg = (uint16_t)(c > 255 ? 255 : c - CG_CODE_PACKED);
    return op;
}

CG_API_ cg_op cg_then(cg_op first, cg_op second) {
    const uint64_t k = first.k | second.k;
    const int is_of_selection = cg_has_(first.k ? &first : &second, CG_TAKES_K_);
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        cg_stage *a = cg_op_stage_(&first, slot);
        const cg_stage *b = cg_op_stage_const_(&second, slot);
        if (slot == CG_SLOT_CODE_) { /* holds two codes: either may come from either operator */
            if ((a->id && b->id) || (a->arg && b->arg)) return cg_op_invalid_();
            a->id = (uint8_t)(a->id | b->id);
            a->arg = (uint16_t)(a->arg | b->arg);
            continue;
        }
        /* a slot filled twice, or flags without a stage: cg_nearest() of what does not round */
        if (b->id ? a->id || a->flags : b->flags) return cg_op_invalid_();
        if (b->id) *a = *b;
    }
    /* two counts, or one that would pass from the sample to the selection or back */
    if ((first.k && second.k) || (k && is_of_selection != cg_has_(&first, CG_TAKES_K_))) return cg_op_invalid_();
    first.k = k;
    first.reserved |= second.reserved;
    return first;
}

/* src/core/text.h */
/* text: operators to text

   Offers   cg_op_print
   Needs    base (words), stages
   Touches  the caller's text
   Text is written without libc and locale. A stage is name:arg:size:value:flag, stages are joined by '|', and what a
   row of the stage table does not have is left out. */

/* The stage in that slot, which is not empty. */
static void cg_text_stage_(cg_text_ *t, const cg_op *op, unsigned slot) {
    const cg_stage *s = cg_op_stage_const_(op, slot);
    const cg_stage_row_ *row = cg_row_at_(slot, s->id);
    int has_count = op->k && slot == (cg_has_(op, CG_TAKES_K_) ? CG_SLOT_SELECT_ : CG_SLOT_SAMPLE_);
    if (slot == CG_SLOT_CODE_) {
        cg_text_str_(t, cg_index_coder_at_(s->id)->name);
        if (s->id && s->arg) cg_text_char_(t, '|');
        cg_text_str_(t, cg_value_codes_[s->arg].name);
        return;
    }
    if (!row) {
        cg_text_str_(t, "user:");
        cg_text_uint_(t, s->id);
        cg_text_char_(t, ':');
        cg_text_uint_(t, s->arg);
        cg_text_char_(t, ':');
        cg_text_uint_(t, s->size);
        cg_text_char_(t, ':');
        if (s->value < 0.0f) cg_text_char_(t, '-');
        cg_text_float_(t, s->value < 0.0f ? -s->value : s->value);
        return;
    }
    cg_text_str_(t, row->name);
    if (row->arg_hi) {
        cg_text_char_(t, ':');
        cg_text_uint_(t, s->arg);
    }
    if (row->size_hi && (s->size != row->size_default || row->size_default < row->size_lo)) {
        cg_text_char_(t, ':');
        cg_text_uint_(t, s->size);
    }
    if (has_count) {
        cg_text_str_(t, ":k=");
        cg_text_uint_(t, op->k);
    } else if (row->value_hi > 0.0f) {
        cg_text_char_(t, ':');
        cg_text_float_(t, s->value);
    }
    for (unsigned f = 0; f < 2; f++)
        if (s->flags >> f & 1) {
            cg_text_char_(t, ':');
            cg_text_str_(t, row->flag_names[f]);
        }
}
/* CG_E_ARG and CG_E_CAPACITY leave an empty text. */
static cg_status cg_op_print_(const cg_op *op, char *text, size_t cap) {
    cg_text_ t;
    int first = 1;
    if (!op || !text) return CG_E_ARG;
    if (cap) text[0] = 0;
    if (cg_op_check_new_(op) != CG_OK) return CG_E_ARG;
    t.at = text;
    t.end = text + cap;
    for (unsigned i = 0; i < CG_SLOT_COUNT_; i++) {
        const unsigned slot = cg_slot_order_[i];
        if (cg_stage_is_empty_(cg_op_stage_const_(op, slot))) continue;
        if (!first) cg_text_char_(&t, '|');
        first = 0;
        cg_text_stage_(&t, op, slot);
    }
    if (first) cg_text_str_(&t, "dense");
    if (t.at == t.end) {
        if (cap) text[0] = 0;
        return CG_E_CAPACITY;
    }
    *t.at = 0;
    return CG_OK;
}

CG_API_ cg_status cg_op_print(const cg_op *op, char *text, size_t cap) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_op_print_(op, text, cap);
    cg_fenv_leave_(env);
    return s;
}

/* src/core/parse.h */
/* parse: text to operators, and a sentence that says what is wrong with the text, where, and what to write

   Offers   cg_op_parse, cg_op_parse_why
   Needs    base (words), stages, presets
   Touches  the caller's operator and sentence
   Any bytes may be in the text, and any number of them: what a sentence quotes of it is printable and short. Functions
   that read return 1; or 0, and then the sentence has been written. No libc, no locale. */

/* params, a list of name=example, goes on behind the next ':'; "" at its end. */
static const char *cg_params_skip_(const char *params) {
    while (*params && *params != ':') params++;
    return *params ? params + 1 : params;
}
static void cg_why_param_name_(cg_parser_ *s, const char *params) {
    while (*params && *params != '=') cg_text_char_(&s->why, *params++);
}
/* name:example:example, quoted */
static void cg_why_example_(cg_parser_ *s, const char *name, const char *params) {
    cg_text_char_(&s->why, '\'');
    cg_text_str_(&s->why, name);
    for (; *params; params = cg_params_skip_(params)) {
        while (*params != '=') params++;
        cg_text_char_(&s->why, ':');
        for (params++; *params && *params != ':'; params++) cg_text_char_(&s->why, *params);
    }
    cg_text_char_(&s->why, '\'');
}

/* ---- names, and those that are near ---- */

/* Presets by name that are more than one stage, and other names of single stages: name, parameters as in a row of the
   stage table, their ranges (a letter each, see cg_param_of_), operator. a[i] is the i-th parameter, in its range. */
#define CG_PRESET_LIST_(X)                                                                               \
  X("qsgd", "levels=4", "l", cg_qsgd((int)a[0]))                                                         \
  X("threelc", "multiplier=1", "m", cg_threelc((float)a[0]))                                             \
  X("adacomp", "bin=50", "s", cg_adacomp((uint32_t)a[0]))                                                \
  X("adaq", "ratio=0.01", "r", cg_adaq((float)a[0]))                                                     \
  X("sbc", "ratio=0.01", "r", cg_sbc((float)a[0]))                                                       \
  X("stc", "ratio=0.01", "r", cg_stc((float)a[0]))                                                       \
  X("eden", "bits=1", "e", cg_eden((float)a[0]))                                                         \
  X("drive", "", "", cg_drive())                                                                         \
  X("srq", "bits=4", "b", cg_srq((int)a[0]))                                                             \
  X("demo_dct", "ratio=0.1", "r", cg_demo_dct((float)a[0]))                                              \
  X("demo", "ratio=0.1", "r", cg_demo_dct((float)a[0]))                                                  \
  X("qsparse", "ratio=0.01:levels=4", "rl", cg_qsparse((float)a[0], (int)a[1]))                          \
  X("cocktail", "sampled=0.1:ratio=0.1:bits=4", "rrb", cg_cocktail((float)a[0], (float)a[1], (int)a[2])) \
  X("klevel", "bits=4:bucket=512", "bs", cg_klevel((int)a[0], (uint32_t)a[1]))                           \
  X("fp8", "", "", cg_fp8())                                                                             \
  X("fp8_e5m2", "", "", cg_fp8_e5m2())                                                                   \
  X("mxfp8", "", "", cg_mxe4m3())                                                                        \
  X("mxfp8_e5m2", "", "", cg_mxe5m2())                                                                   \
  X("wangni_variance", "epsilon=0.5", "p", cg_wangnivar((float)a[0]))

typedef struct cg_preset_row_ {
    const char *name, *params, *ranges;
} cg_preset_row_;
static const cg_preset_row_ cg_preset_rows_[] = {
#define CG_PRESET_(name, params, ranges, op) { name, params, ranges },
    CG_PRESET_LIST_(CG_PRESET_)
#undef CG_PRESET_
};
#define CG_PRESET_ROWS_ (sizeof cg_preset_rows_ / sizeof cg_preset_rows_[0])
#define CG_USER_PARAMS_ "id=128:arg=0:size=0:value=0"

/* The row of the stage number *i of all slots; NULL behind the last, and *i is then how far behind. */
static const cg_stage_row_ *cg_row_number_(size_t *i) {
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++)
        for (unsigned id = 1; cg_row_at_(slot, id); id++)
            if ((*i)-- == 0) return cg_row_at_(slot, id);
    return NULL;
}
/* The i-th of all names that a stage can have, with its parameters; NULL behind the last. */
static const char *cg_stage_name_(size_t i, const char **params) {
    const cg_stage_row_ *row = cg_row_number_(&i);
    *params = row && !cg_is_left_out_(row) ? row->params : "";
    if (row) return row->name;
    if (i < CG_PRESET_ROWS_) {
        *params = cg_preset_rows_[i].params;
        return cg_preset_rows_[i].name;
    }
    i -= CG_PRESET_ROWS_;
    if (i == 0) return "dense";
    if (i == 1) {
        *params = CG_USER_PARAMS_;
        return "user";
    }
    i -= 2;
    for (unsigned id = 1; cg_index_coder_at_(id); id++, i--)
        if (i == 0) return cg_index_coder_at_(id)->name;
    return i + 1 < CG_VALUE_CODE_COUNT_ ? cg_value_codes_[i + 1].name : NULL;
}
/* What people call things elsewhere, without '-' and '_', and what it is here. */
static const char *const cg_other_names_[][2] = { { "powersgd", "lowrank:4:512:256" }, { "svd", "atomo:4:512:256" },
    { "int8", "absmax:8:512" }, { "int4", "absmax:4:512" }, { "q8", "absmax:8:512" }, { "q4", "absmax:4:512" },
    { "8bit", "absmax:8:512" }, { "4bit", "absmax:4:512" }, { "quantize", "absmax:8:512" }, { "fp16", "f16" },
    { "float16", "f16" }, { "half", "f16" }, { "bfloat16", "bf16" }, { "fp4", "mxfp4" }, { "f32", "dense" },
    { "fp32", "dense" }, { "float32", "dense" }, { "float", "dense" }, { "none", "dense" }, { "identity", "dense" },
    { "random", "randk:0.01" }, { "randomk", "randk:0.01" }, { "signsgd", "sign" }, { "efsignsgd", "efsign" },
    { "1bit", "onebit" }, { "1bitsgd", "onebit" }, { "ternary", "terngrad" }, { "3lc", "threelc:1" },
    { "hadamard", "rotate:2" }, { "rice", "golomb" }, { "elias", "omega" }, { "entropy", "huffman" } };

static int cg_unknown_name_(cg_parser_ *s, cg_word_ w) {
    const char *nearest = NULL, *nearest_params = "", *name, *params;
    char letters[CG_NEAR_LETTERS_ + 1];
    int nearest_distance = 99;
    cg_why_at_(s, w.p);
    cg_text_str_(&s->why, "no operator ");
    cg_why_quote_(s, w);
    cg_text_str_(&s->why, "; ");
    letters[cg_letters_(w.p, w.len, letters)] = 0;
    for (size_t i = 0; i < sizeof cg_other_names_ / sizeof *cg_other_names_; i++)
        if (cg_same_text_(letters, cg_other_names_[i][0])) nearest = cg_other_names_[i][1];
    if (nearest) {
        cg_text_str_(&s->why, "did you mean '");
        cg_text_str_(&s->why, nearest);
        cg_text_str_(&s->why, "'?");
        return 0;
    }
    for (size_t i = 0; (name = cg_stage_name_(i, &params)) != NULL; i++) {
        size_t len = 0;
        const int d = cg_name_distance_(w, name);
        if (d < nearest_distance) {
            nearest_distance = d;
            nearest = name;
            nearest_params = "";
        }
        /* a name, and its parameter without the ':' */
        while (len < w.len && name[len] && cg_lower_(w.p[len]) == name[len]) len++;
        if (*params && !name[len] && len < w.len && (cg_lower_(w.p[len]) < 'a' || cg_lower_(w.p[len]) > 'z') &&
            w.p[len] != '-' && w.p[len] != '_' && nearest_distance > 0) {
            nearest_distance = 0;
            nearest = name;
            nearest_params = params;
        }
    }
    if (!nearest) {
        cg_text_str_(&s->why, "the operators are in the table of compgrad.h; one is 'topk:0.01|absmax:4:512'");
        return 0;
    }
    cg_text_str_(&s->why, "did you mean ");
    cg_why_example_(s, nearest, nearest_params);
    cg_text_char_(&s->why, '?');
    return 0;
}

/* ---- numbers ---- */

typedef struct cg_param_ {
    const char *stage, *stage_params; /* whose parameter it is, and all of its parameters */
    const char *name;                 /* up to '=' */
    double lo, hi;
    int lo_exclusive; /* lo itself is too small */
    int is_whole;
    int is_ratio; /* may be given in percent */
} cg_param_;
static cg_param_ cg_param_make_(const char *stage, const char *stage_params, const char *name, double lo, double hi) {
    cg_param_ p;
    p.stage = stage;
    p.stage_params = stage_params;
    p.name = name;
    p.lo = lo;
    p.hi = hi;
    p.lo_exclusive = p.is_ratio = 0;
    p.is_whole = 1;
    return p;
}
/* What follows of a sentence about a parameter: its range, and an example. */
static int cg_why_range_(cg_parser_ *s, const cg_param_ *p) {
    cg_text_str_(&s->why, ": ");
    if (p->is_whole) cg_text_str_(&s->why, "a whole number ");
    if (p->lo >= 0.0) {
        cg_text_str_(&s->why, p->lo_exclusive ? "above " : "from ");
        cg_text_float_(&s->why, (float)p->lo);
        if (p->hi < 1e9) {
            cg_text_str_(&s->why, p->lo_exclusive ? ", at most " : " to ");
            cg_text_float_(&s->why, (float)p->hi);
        } else if (!p->lo_exclusive) cg_text_str_(&s->why, " on");
        cg_text_str_(&s->why, ", ");
    }
    cg_text_str_(&s->why, "as in ");
    cg_why_example_(s, p->stage, p->stage_params);
    return 0;
}
/* "at 5: '2' <problem> ratio of topk: <range>, <example>" */
static int cg_why_param_(cg_parser_ *s, cg_word_ w, const char *problem, const cg_param_ *p) {
    cg_why_at_(s, w.p);
    cg_why_quote_(s, w);
    cg_text_str_(&s->why, problem);
    cg_why_param_name_(s, p->name);
    cg_text_str_(&s->why, " of ");
    cg_text_str_(&s->why, p->stage);
    return cg_why_range_(s, p);
}
static int cg_why_missing_(cg_parser_ *s, const cg_param_ *p) {
    cg_why_at_(s, s->p);
    cg_text_str_(&s->why, p->stage);
    cg_text_str_(&s->why, " lacks its ");
    cg_why_param_name_(s, p->name);
    return cg_why_range_(s, p);
}
/* The number of the next parameter, as *value and as *d. */
static int cg_parse_number_(cg_parser_ *s, const cg_param_ *p, double *value, cg_decimal_ *d) {
    cg_word_ w = cg_word_next_(s), all = w;
    int is_percent = w.len && w.p[w.len - 1] == '%', has_comma = 0;
    float f;
    if (!w.len) return cg_why_missing_(s, p);
    s->p += w.len;
    if (is_percent) w.len--;
    for (size_t i = 0; i < w.len; i++) has_comma |= w.p[i] == ',';
    if (!cg_decimal_read_(w, d))
        return cg_why_param_(s, all,
            has_comma ? " is not a number (decimals follow a '.'), but should be the "
                      : " is not a number, but should be the ",
            p);
    is_percent |= cg_take_(s, '%');
    if (is_percent && !p->is_ratio) return cg_why_param_(s, all, " is a percentage, but should be the ", p);
    if (p->is_whole && d->has_point) return cg_why_param_(s, all, " is not a whole number, but should be the ", p);
    if (is_percent) d->exponent -= 2;
    f = cg_float_from_decimal_(d->digits, d->exponent);
    *value = p->is_whole ? (double)d->whole : (double)f;
    /* CG_FLT_MAX_ itself, or a number beyond the range that was cut to it? */
    if (p->is_whole ? d->overflows
                    : f >= CG_FLT_MAX_ && cg_float_from_decimal_(d->digits, d->exponent - 1) >= CG_FLT_MAX_ / 9.9f)
        *value = 1e300;
    if (d->minus) *value = -*value;
    if (!(*value >= p->lo && *value <= p->hi) || (p->lo_exclusive && *value == p->lo))
        return cg_why_param_(s, all, " is out of range for the ", p);
    return 1;
}
/* ':' and the number behind it */
static int cg_parse_param_(cg_parser_ *s, const cg_param_ *p, double *value) {
    cg_decimal_ d;
    return cg_take_(s, ':') ? cg_parse_number_(s, p, value, &d) : cg_why_missing_(s, p);
}

/* ---- stages ---- */

/* The parameter of a preset by the letter of its range. */
static cg_param_ cg_param_of_(const cg_preset_row_ *row, const char *name, char range) {
    cg_param_ p = cg_param_make_(row->name, row->params, name, 1.0, 8.0); /* b: bits */
    switch (range) {
    case 'l': p.hi = 127.0; break;                /* levels */
    case 's': p.hi = (double)CG_SIZE_MAX_; break; /* values in a bucket or bin */
    case 'm': p.hi = (double)1.99999988f; break;  /* multiplier */
    case 'r': p.hi = 1.0; break;                  /* ratio */
    case 'e': p.hi = 4.0; break;                  /* bits of eden */
    case 'p': p.hi = (double)CG_FLT_MAX_; break;  /* any positive number */
    default: break;
    }
    p.is_ratio = range == 'r';
    p.is_whole = range == 'b' || range == 'l' || range == 's';
    if (range == 'r' || range == 'e' || range == 'p') {
        p.lo = 0.0;
        p.lo_exclusive = 1;
    }
    return p;
}
static int cg_parse_preset_(cg_parser_ *s, size_t which, cg_op *op) {
    const cg_preset_row_ *row = &cg_preset_rows_[which];
    const char *name = row->params;
    double a[3] = { 0.0, 0.0, 0.0 };
    size_t i = 0;
    for (int j = 0; row->ranges[j]; j++, name = cg_params_skip_(name)) {
        const cg_param_ p = cg_param_of_(row, name, row->ranges[j]);
        if (!cg_parse_param_(s, &p, &a[j])) return 0;
    }
#define CG_PRESET_(name_, params, ranges, preset) \
  if (i++ == which) *op = preset;
    CG_PRESET_LIST_(CG_PRESET_)
#undef CG_PRESET_
    return 1;
}
/* What follows "user". */
static int cg_parse_user_(cg_parser_ *s, cg_op *op) {
    static const double hi[4] = { 255.0, 65535.0, (double)CG_SIZE_MAX_, (double)CG_FLT_MAX_ };
    const char *name = CG_USER_PARAMS_;
    double a[4];
    for (int i = 0; i < 4; i++, name = cg_params_skip_(name)) {
        cg_param_ p = cg_param_make_("user", CG_USER_PARAMS_, name, i == 0 ? 128.0 : i == 3 ? -hi[3] : 0.0, hi[i]);
        p.is_whole = i < 3;
        if (!cg_parse_param_(s, &p, &a[i])) return 0;
    }
    *op = cg_user((int)a[0], (int)a[1], (uint32_t)a[2], (float)a[3]);
    return 1;
}
/* The ratio of a stage, or k= and a number in its place: the ratio may then be any legal one, as k decides. */
static int cg_parse_ratio_(cg_parser_ *s, const cg_stage_row_ *row, const cg_param_ *p, cg_op *op, double *ratio) {
    const char *before = s->p;
    const cg_param_ k = cg_param_make_(p->stage, "k=k=100", "k=", 1.0, (double)UINT64_MAX);
    cg_decimal_ d;
    cg_word_ w;
    double count;
    if (!cg_take_(s, ':')) return cg_why_missing_(s, p);
    w = cg_word_next_(s);
    if (w.len < 2 || cg_lower_(w.p[0]) != 'k' || w.p[1] != '=') {
        s->p = before;
        return cg_parse_param_(s, p, ratio);
    }
    if (!(row->traits & (CG_TAKES_K_ | CG_SAMPLES_RATIO_)))
        return cg_why_param_(s, w, " is a count, which only topk, mstopk and randk take; give the ", p);
    s->p = w.p + 2;
    if (!cg_parse_number_(s, &k, &count, &d)) return 0;
    op->k = d.whole;
    *ratio = 1.0;
    return 1;
}
/* A ':' stands behind a stage that is complete without it; flags is a list of two, or NULL. */
static int cg_why_too_many_(cg_parser_ *s, cg_word_ w, const char *name, const char *params, const char *const *flags) {
    cg_decimal_ d;
    const char *nearest = NULL;
    cg_why_at_(s, w.p);
    if (!w.len || cg_decimal_read_(w, &d)) {
        cg_why_quote_(s, w);
        cg_text_str_(&s->why, " is one parameter too many: ");
        cg_why_example_(s, name, params);
        cg_text_str_(&s->why, " is complete");
        return 0;
    }
    cg_text_str_(&s->why, name);
    cg_text_str_(&s->why, " has no flag ");
    cg_why_quote_(s, w);
    for (int i = 0; flags && i < 2; i++)
        if (flags[i][0] && cg_name_distance_(w, flags[i]) < 99) nearest = flags[i];
    if (nearest) {
        cg_text_str_(&s->why, "; did you mean '");
        cg_text_str_(&s->why, nearest);
        cg_text_str_(&s->why, "'?");
    } else if (flags && flags[0][0]) {
        cg_text_str_(&s->why, "; it has ");
        cg_text_str_(&s->why, flags[0]);
        cg_text_str_(&s->why, flags[1][0] ? " and " : "");
        cg_text_str_(&s->why, flags[1]);
    } else {
        cg_text_str_(&s->why, "; ");
        cg_why_example_(s, name, params);
        cg_text_str_(&s->why, " is complete");
    }
    return 0;
}
/* The flags of a stage, in any order. */
static int cg_parse_flags_(cg_parser_ *s, const cg_stage_row_ *row, cg_stage *stage) {
    while (cg_take_(s, ':')) {
        const cg_word_ w = cg_word_next_(s);
        unsigned f = 0;
        while (f < 2 && !(row->flag_names[f][0] && cg_word_is_(w, row->flag_names[f]))) f++;
        if (f == 2) return cg_why_too_many_(s, w, row->name, row->params, row->flag_names);
        if (stage->flags >> f & 1) return cg_why_(s, w.p, "this flag stands twice: once is enough");
        stage->flags = (uint8_t)(stage->flags | 1u << f);
        s->p += w.len;
    }
    return 1;
}
static int cg_parse_row_(cg_parser_ *s, const cg_stage_row_ *row, cg_op *op) {
    const char *name = row->params;
    cg_stage stage = CG_ZERO;
    double v;
    stage.id = row->id;
    if (row->arg_hi) {
        const cg_param_ p = cg_param_make_(row->name, row->params, name, row->arg_lo, row->arg_hi);
        if (!cg_parse_param_(s, &p, &v)) return 0;
        stage.arg = (uint16_t)v;
        name = cg_params_skip_(name);
    }
    if (row->size_hi) {
        const cg_param_ p = cg_param_make_(row->name, row->params, name, row->size_lo, row->size_hi);
        const char *before = s->p;
        int is_there = cg_take_(s, ':');
        const cg_word_ w = cg_word_next_(s);
        is_there = is_there && w.len && ((w.p[0] >= '0' && w.p[0] <= '9') || w.p[0] == '-' || w.p[0] == '.');
        s->p = before;
        stage.size = row->size_default;
        if (is_there || row->size_default < row->size_lo) {
            if (!cg_parse_param_(s, &p, &v)) return 0;
            stage.size = (uint32_t)v;
        }
        name = cg_params_skip_(name);
    }
    if (row->value_hi > 0.0f) {
        cg_param_ p = cg_param_make_(row->name, row->params, name, (double)row->value_lo, (double)row->value_hi);
        p.lo_exclusive = row->value_lo_exclusive;
        p.is_ratio = row->value_hi == 1.0f;
        p.is_whole = row->value_hi == 16777216.0f; /* columns of a matrix */
        if (!(p.is_ratio ? cg_parse_ratio_(s, row, &p, op, &v) : cg_parse_param_(s, &p, &v))) return 0;
        stage.value = (float)v;
    }
    *cg_op_stage_(op, row->slot) = stage;
    return cg_parse_flags_(s, row, cg_op_stage_(op, row->slot));
}
/* One stage, code or preset that has the name w; *op has nothing else. */
static int cg_parse_stage_(cg_parser_ *s, cg_word_ w, cg_op *op) {
    *op = cg_dense();
    s->p = w.p + w.len;
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++)
        for (unsigned id = 1; cg_row_at_(slot, id); id++)
            if (cg_word_is_(w, cg_row_at_(slot, id)->name)) {
                if (!cg_is_left_out_(cg_row_at_(slot, id))) return cg_parse_row_(s, cg_row_at_(slot, id), op);
                cg_op_stage_(op, slot)->id = (uint8_t)id; /* cg_parse_all_ says it */
                return 1;
            }
    for (size_t i = 0; i < CG_PRESET_ROWS_; i++)
        if (cg_word_is_(w, cg_preset_rows_[i].name)) return cg_parse_preset_(s, i, op);
    for (unsigned i = 1; cg_index_coder_at_(i); i++)
        if (cg_word_is_(w, cg_index_coder_at_(i)->name)) return op->code.id = (uint8_t)i, 1;
    for (unsigned i = 1; i < CG_VALUE_CODE_COUNT_; i++)
        if (cg_word_is_(w, cg_value_codes_[i].name)) return op->code.arg = (uint16_t)i, 1;
    if (cg_word_is_(w, "dense")) return 1;
    return cg_word_is_(w, "user") ? cg_parse_user_(s, op) : cg_unknown_name_(s, w);
}

/* ---- rows of stages ---- */

typedef struct cg_stages_read_ {
    cg_op op;                      /* of all stages so far */
    cg_word_ name[CG_SLOT_COUNT_]; /* of the stage that fills each slot; p NULL: none does */
    cg_word_ last;                 /* the stage that was read last; p NULL: none was */
    unsigned reached;              /* the last slot that is filled */
    int left_out;                  /* the sentence names a stage that this build was made without */
} cg_stages_read_;
static const char *const cg_slot_names_[] = { "sample", "transform", "selection", "quantizer", "code", "clip" };

/* Another stage, w, must come behind the others, in a slot that is free: it would be done in another order than the
   text says. */
static int cg_stage_fits_in_(cg_parser_ *s, const cg_stages_read_ *read, cg_word_ w, const cg_op *one) {
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        const int has_code = slot == CG_SLOT_CODE_ &&
            !((one->code.id && read->op.code.id) || (one->code.arg && read->op.code.arg)); /* two kinds of codes */
        if (cg_stage_is_empty_(cg_op_stage_const_(one, slot)) || has_code) continue;
        if (!read->name[slot].p && cg_slot_place_(slot) >= cg_slot_place_(read->reached)) continue;
        cg_why_at_(s, w.p);
        if (read->name[slot].p) {
            cg_why_quote_(s, w);
            cg_text_str_(&s->why, " is a second ");
            cg_text_str_(&s->why, cg_slot_names_[slot]);
            cg_text_str_(&s->why, " after ");
            cg_why_quote_(s, read->name[slot]);
            cg_text_str_(
                &s->why, slot == CG_SLOT_CODE_ ? ": indices and values have one code each" : ": only one fits");
            return 0;
        }
        cg_why_quote_(s, w);
        cg_text_str_(&s->why, " is a ");
        cg_text_str_(&s->why, cg_slot_names_[slot]);
        cg_text_str_(&s->why, " and must stand before ");
        cg_why_quote_(s, read->name[read->reached]);
        cg_text_str_(&s->why, "; the order is sample|transform|selection|clip|quantizer|code");
        return 0;
    }
    if (read->op.k && one->k) return cg_why_(s, w.p, "k stands twice: give this stage a ratio, as in 'topk:0.01'");
    if ((read->op.k || one->k) && read->op.sample.id && cg_has_(one, CG_TAKES_K_) && !one->k)
        return cg_why_(s, w.p, "with topk or mstopk, k is their count: give randk a ratio, as in 'randk:0.1'");
    return 1;
}
/* What stands behind the stage of this name is neither '|' nor the end. */
static int cg_why_trailing_(cg_parser_ *s, cg_word_ stage) {
    const int is_param = cg_take_(s, ':');
    const cg_word_ w = cg_word_next_(s);
    const char *name, *params;
    size_t i = 0;
    while ((name = cg_stage_name_(i, &params)) != NULL && !cg_word_is_(is_param ? stage : w, name)) i++;
    if (is_param && name) return cg_why_too_many_(s, w, name, params, NULL);
    cg_why_at_(s, w.p);
    cg_why_quote_(s, w);
    cg_text_str_(&s->why, " follows a stage without ");
    cg_text_str_(&s->why, name ? "'|'" : "':' or '|'");
    cg_text_str_(&s->why, "; parameters are joined by ':' and stages by '|', as in 'topk:0.01|absmax:4:512'");
    return 0;
}
/* The operator of all stages, which is good by itself, in read->op. */
static int cg_parse_all_(cg_parser_ *s, cg_stages_read_ *read) {
    const char *why;
    unsigned conflict;
    do {
        const cg_word_ w = cg_word_next_(s);
        cg_op one;
        if (!w.len) {
            if (*s->p == ':') return cg_why_(s, s->p, "a name is missing before ':', as in 'topk:0.01'");
            if (*s->p == '|' || (w.p > s->text && read->last.p))
                return cg_why_(s, s->p, "a stage is missing beside '|', as in 'topk:0.01|absmax:4:512'");
            return cg_why_(
                s, s->p, "the text is empty: write an operator, as in 'topk:0.01' or 'topk:0.01|absmax:4:512'");
        }
        if (!cg_parse_stage_(s, w, &one)) return 0;
        why = cg_op_left_out_(&one);
        if (why) return read->left_out = 1, cg_why_(s, w.p, why);
        if (!cg_stage_fits_in_(s, read, w, &one)) return 0;
        for (unsigned i = 0; i < CG_SLOT_COUNT_; i++) {
            const unsigned slot = cg_slot_order_[i];
            if (cg_stage_is_empty_(cg_op_stage_const_(&one, slot))) continue;
            read->reached = slot;
            read->name[slot] = w;
        }
        read->last = w;
        read->op = cg_then(read->op, one);
    } while (cg_take_(s, '|'));
    cg_skip_blanks_(s);
    if (*s->p) return cg_why_trailing_(s, read->last);
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++)
        if (cg_stage_check_(slot, cg_op_stage_const_(&read->op, slot)) != CG_OK)
            return cg_why_(s, s->text, "a stage has a parameter out of range");
    why = cg_op_conflict_(&read->op, cg_op_traits_(&read->op), &conflict);
    if (why) return cg_why_(s, read->name[conflict].p ? read->name[conflict].p : s->text, why);
    if (cg_op_check_(&read->op) != CG_OK) return cg_why_(s, s->text, "these stages do not go together");
    why = cg_op_only_old_(&read->op);
    return !why || cg_why_(s, read->name[CG_SLOT_QUANTIZE_].p, why);
}
/* *op is zero, which is dense, unless CG_OK is returned. */
static cg_status cg_op_parse_(cg_op *op, const char *text, char *why, size_t cap) {
    cg_parser_ s;
    cg_stages_read_ read;
    cg_status status = CG_E_ARG;
    memset(&read, 0, sizeof read);
    s.text = s.p = text;
    s.why.at = why;
    s.why.end = why && cap ? why + (cap - 1) : why; /* the 0 at the end always fits */
    if (op) *op = read.op;
    if (!op) cg_text_str_(&s.why, "op is NULL: give the address of a cg_op");
    else if (!text) cg_text_str_(&s.why, "text is NULL: give an operator, as in 'topk:0.01'");
    else if (cg_parse_all_(&s, &read)) {
        *op = read.op;
        status = CG_OK;
    } else if (read.left_out) status = CG_E_VERSION;
    if (why && cap) *s.why.at = 0;
    return status;
}
CG_API_ cg_status cg_op_parse_why(cg_op *op, const char *text, char *why, size_t cap) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_op_parse_(op, text, why, cap);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_op_parse(cg_op *op, const char *text) { return cg_op_parse_why(op, text, NULL, 0); }

/* src/core/packet.h */
/* packet: header and checksum of a packet, and the sizes of its index section

   Offers   checksums of several parts, cg_header_put_, cg_header_get_, cg_counts_check_, cg_packet_finalize_,
            cg_index_code_ and sizes, whether there are segments
   Needs    base, kernels (checksum), stages, plan; the codes of indices by their rows
   Touches  the packet that is written
   Other headers may use: cg_packet_rank_put_, cg_packet_seal_, cg_seal_is_intact_, cg_seal_put_
   The manual draws the header byte by byte. cg_header_get_ accepts any bytes: what it returns with CG_OK is
   consistent in itself, so that no later size computation overflows or leaves the packet. */

/* The checksum of the words of s followed by those of t. */
static cg_checksum_ cg_checksum_concat_(cg_checksum_ s, cg_checksum_ t) {
    s.b += t.words * s.a + t.b;
    s.a += t.a;
    s.words += t.words;
    return s;
}
/* bytes is a multiple of 4; p may have any alignment. */
static cg_checksum_ cg_checksum_of_(const cg_kernels_ *kernels, const uint8_t *p, size_t bytes) {
    cg_checksum_ s = { 0, 0, 0 };
    if (bytes) CG_KERNEL_(kernels, checksum(&s, p, bytes / 4));
    return s;
}
/* The checksum of so many words of zeros. */
static cg_checksum_ cg_checksum_zeros_(uint64_t words) {
    cg_checksum_ s = { 0, 0, 0 };
    s.words = words;
    return s;
}

#define CG_CHECKSUM_OFFSET_ (CG_HEADER_BYTES - 16)
static const uint8_t cg_magic_[5] = { 'c', 'g', 'p', 'k', 1 }; /* four letters and the version */
enum { CG_FORMAT_SEGMENTS_ = 2 /* the version of packets with segments */ };
/* Does this build have them? */
CG_INLINE_ int cg_builds_segments_(void) { return 0 CG_OR_BUILT_(SEGMENTS, ); }
CG_INLINE_ int cg_has_segments_(const cg_info *info) { return cg_builds_segments_() && info->segments; }
static const cg_segments *cg_segments_of_(const cg_extra *extra) {
    return cg_builds_segments_() && extra ? extra->segments : NULL;
}
/* In byte 5 of such a packet beside CG_SEGMENTS_GLOBAL: the table names operators, or tensors, of the segments. */
enum { CG_SEGMENTS_MIXED_ = 2, CG_SEGMENTS_TENSORS_ = 4, CG_SEGMENTS_KNOWN_ = 7 };

/* A stage as 12 bytes of a packet, and back. */
static void cg_stage_put_(uint8_t *q, const cg_stage *s) {
    if (CG_BIG_ENDIAN_) {
        q[0] = s->id;
        q[1] = s->flags;
        cg_put16_(q + 2, s->arg);
        cg_put32_(q + 4, s->size);
        cg_put32_(q + 8, cg_as_bits_(s->value));
    } else memcpy(q, s, 12); /* a stage lies in memory as in the header */
}
static void cg_stage_get_(const uint8_t *q, cg_stage *stage) {
    if (CG_BIG_ENDIAN_) {
        stage->id = q[0];
        stage->flags = q[1];
        stage->arg = cg_get16_(q + 2);
        stage->size = cg_get32_(q + 4);
        stage->value = cg_as_float_(cg_get32_(q + 8));
    } else memcpy(stage, q, 12);
}
/* CG_HEADER_BYTES at p, with a checksum of zeros. All of info but packet_bytes is stored, op.k only as drawn or k. */
static void cg_header_put_(uint8_t *p, const cg_info *info) {
    memcpy(p, cg_magic_, 5);
    p[5] = (uint8_t)(cg_has_segments_(info) ? info->segment_flags : info->index_code);
    p[6] = p[7] = 0;
    if (cg_has_segments_(info)) p[4] = CG_FORMAT_SEGMENTS_;
    if (!CG_BIG_ENDIAN_) memcpy(p + 8, &info->op, 12 * CG_SLOT_COUNT_); /* stages lie in memory as in the header */
    for (unsigned slot = 0; CG_BIG_ENDIAN_ && slot < CG_SLOT_COUNT_; slot++)
        cg_stage_put_(p + 8 + 12 * slot, cg_op_stage_const_(&info->op, slot));
    cg_put64_(p + 80, info->n);
    cg_put64_(p + 88, info->drawn);
    cg_put64_(p + 96, info->k);
    cg_put64_(p + 104, info->tag.seed);
    cg_put64_(p + 112, info->tag.step);
    cg_put32_(p + 120, info->tag.tensor);
    cg_put32_(p + 124, info->tag.rank);
    cg_put64_(p + 128, info->value_bytes);
    cg_put64_(p + 136, info->index_bytes);
    cg_put32_(p + 144, cg_as_bits_(info->threshold));
    cg_put32_(p + 148, cg_has_segments_(info) ? info->segments : 0);
    memset(p + CG_CHECKSUM_OFFSET_, 0, 16);
}

/* Bytes of k indices below universe; the maximum where a code's length varies; 0 for CG_CODE_AUTO, which means no
   indices here. */
static uint64_t cg_index_bytes_(uint32_t code, uint64_t universe, uint64_t k) {
    return code && k ? cg_index_coder_at_(code)->bytes(universe, k) : 0;
}
/* The index code that the encoder takes for k indices, as it stands in the header; the decoder demands the same. */
static uint32_t cg_index_code_(const cg_op *op, const cg_plan_ *plan, uint64_t k) {
    if (!cg_has_indices_(plan)) return CG_CODE_AUTO; /* none */
    if (k == 0) return CG_CODE_ELIAS_FANO;
    if (op->code.id) return op->code.id;
    return cg_index_bytes_(CG_CODE_BITMAP, plan->universe, k) < cg_index_bytes_(CG_CODE_ELIAS_FANO, plan->universe, k)
        ? CG_CODE_BITMAP
        : CG_CODE_ELIAS_FANO;
}
/* Bytes for any number of indices up to k, in the code that cg_index_code_ takes for each. */
static uint64_t cg_index_bound_(const cg_op *op, uint64_t universe, uint64_t k) {
    return cg_index_coder_at_(op->code.id)->bound(universe, k);
}

/* All fields of all stages equal, values as bits. */
static int cg_same_stages_(const cg_op *a, const cg_op *b) {
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        const cg_stage *s = cg_op_stage_const_(a, slot), *t = cg_op_stage_const_(b, slot);
        if (s->id != t->id || s->flags != t->flags || s->arg != t->arg || s->size != t->size ||
            cg_as_bits_(s->value) != cg_as_bits_(t->value))
            return 0;
    }
    return 1;
}
/* The second half of the check of a header: info->op has passed cg_op_check_, and its counts must be such as its stages
   can leave; *plan is that of them. Sets op.k where it was set, and the sizes of the sections. any_k: the packet has
   chosen k of all its segments together, so that it may be any number of these values. */
static cg_status cg_counts_check_(
    cg_info *info, cg_plan_ *plan, uint64_t value_bytes, uint64_t index_bytes, int any_k) {
    uint64_t indices, most;
    const uint64_t sampled_n = cg_sampled_n_(&info->op, info->n, &info->tag);
    if (!cg_is_finite_(info->threshold) || cg_as_bits_(info->threshold) >> 31) return CG_E_CORRUPT;
    if (!(plan->traits & CG_KEEPS_LARGEST_) && cg_as_bits_(info->threshold)) return CG_E_CORRUPT;
    /* n, drawn and k must be what the stages can leave; drawn or k may have been fixed by op.k */
    if (plan->traits & CG_IS_PER_RANK_ && info->tag.rank >= info->op.sample.size) return CG_E_CORRUPT;
    if (info->drawn != sampled_n) {
        if (!(plan->traits & CG_SAMPLES_RATIO_) || plan->traits & CG_TAKES_K_ || info->drawn > info->n || !info->drawn)
            return CG_E_CORRUPT;
        info->op.k = info->drawn;
    }
    if (plan->traits & CG_IS_MATRIX_ && !cg_matrix_shape_fits_(&info->op, info->n)) return CG_E_CORRUPT;
    if (!(plan->traits & CG_IS_SELECTION_) && info->k != plan->transformed_n) return CG_E_CORRUPT;
    if (any_k) {
        if (info->k > plan->transformed_n) return CG_E_CORRUPT;
    } else if (plan->traits & CG_TAKES_K_ && info->k != plan->max_selected) {
        if (info->k > plan->transformed_n || !info->k) return CG_E_CORRUPT;
        info->op.k = plan->max_selected = info->k;
    }
    if (!any_k && (plan->traits & CG_KEEPS_EXACTLY_ ? info->k != plan->max_selected : info->k > plan->max_selected))
        return CG_E_CORRUPT;
    indices = cg_index_count_(plan, info->k);
    if (info->index_code != cg_index_code_(&info->op, plan, indices)) return CG_E_CORRUPT;
    most = cg_index_bytes_(info->index_code, plan->universe, indices);
    if (plan->traits & CG_INDEX_LENGTH_VARIES_ ? index_bytes % 4 || index_bytes > most : index_bytes != most)
        return CG_E_CORRUPT;
    if (value_bytes % 4 || cg_add_sat_(cg_add_sat_(value_bytes, index_bytes), CG_HEADER_BYTES) > SIZE_MAX / 2)
        return CG_E_CORRUPT;
    info->value_bytes = (size_t)value_bytes;
    info->index_bytes = (size_t)index_bytes;
    info->packet_bytes = CG_HEADER_BYTES + info->value_bytes + info->index_bytes;
    return CG_OK;
}
/* The rest of the check of a header of version 2, whose stages and tag have been read: its counts are those of all
   segments together, which core/segments/table.h checks when it has their table. */
static cg_status cg_header_segments_get_(const uint8_t *p, cg_info *info, cg_plan_ *plan) {
    const uint64_t bodies = cg_get64_(p + 128), table = cg_get64_(p + 136);
    info->index_code = 0;
    info->segment_flags = p[5];
    info->segments = cg_get32_(p + 148);
    if (info->segment_flags & ~(uint32_t)CG_SEGMENTS_KNOWN_) return CG_E_VERSION;
    if (cg_get16_(p + 6) || !info->segments || info->drawn > info->n) return CG_E_CORRUPT;
    if (!cg_is_finite_(info->threshold) || cg_as_bits_(info->threshold) >> 31) return CG_E_CORRUPT;
    if (cg_as_bits_(info->threshold) &&
        (!(plan->traits & CG_KEEPS_LARGEST_) || !(info->segment_flags & CG_SEGMENTS_GLOBAL)))
        return CG_E_CORRUPT;
    if (bodies % 4 || table % 4 || table < info->segments ||
        cg_add_sat_(cg_add_sat_(bodies, table), CG_HEADER_BYTES) > SIZE_MAX / 2)
        return CG_E_CORRUPT;
    plan->n = info->n;
    plan->sampled_n = info->drawn;
    plan->transformed_n = plan->max_selected = plan->universe = info->k;
    plan->values_per_index = 1;
    info->value_bytes = (size_t)bodies;
    info->index_bytes = (size_t)table;
    info->packet_bytes = CG_HEADER_BYTES + info->value_bytes + info->index_bytes;
    return CG_OK;
}
/* Reads and checks the header of any len bytes at p. CG_OK: op has passed cg_op_check_, *plan is that of the packet,
   all counts are what its stages can leave, section sizes are multiples of 4 and fit a size_t together; op.k is
   restored where it was set. packet_bytes may still differ from len, and value_bytes from what the quantizer writes:
   cg_decoder_open_ checks. On an error *info and *plan are partly filled. op: one that has passed cg_op_check_, and
   known its plan, which a header of the same operator and n need not be checked and planned for again; or NULL. */
static cg_status cg_header_get_like_(
    const uint8_t *p, size_t len, const cg_op *op, const cg_plan_ *known, cg_info *info, cg_plan_ *plan) {
    int is_known, segmented;
    cg_status s;
    if (len < CG_HEADER_BYTES) return CG_E_CORRUPT;
    for (int i = 0; i < 4; i++)
        if (p[i] != cg_magic_[i]) return CG_E_CORRUPT;
    segmented = cg_builds_segments_() && p[4] == CG_FORMAT_SEGMENTS_;
    if (p[4] != cg_magic_[4] && !segmented) return CG_E_VERSION;
    info->index_code = p[5];
    info->segments = info->segment_flags = 0;
    if (!CG_BIG_ENDIAN_) memcpy(&info->op, p + 8, 12 * CG_SLOT_COUNT_);
    for (unsigned slot = 0; CG_BIG_ENDIAN_ && slot < CG_SLOT_COUNT_; slot++)
        cg_stage_get_(p + 8 + 12 * slot, cg_op_stage_(&info->op, slot));
    info->op.k = info->op.reserved = 0;
    is_known = known && !segmented && !op->k && cg_same_stages_(&info->op, op);
    if (is_known) plan->traits = known->traits;
    s = is_known ? CG_OK : cg_op_resolve_(&info->op, &plan->traits);
    if (s != CG_OK) return s == CG_E_ARG ? CG_E_CORRUPT : s;
    info->n = cg_get64_(p + 80);
    info->drawn = cg_get64_(p + 88);
    info->k = cg_get64_(p + 96);
    info->tag.seed = cg_get64_(p + 104);
    info->tag.step = cg_get64_(p + 112);
    info->tag.tensor = cg_get32_(p + 120);
    info->tag.rank = cg_get32_(p + 124);
    info->threshold = cg_as_float_(cg_get32_(p + 144));
    if (segmented) return cg_header_segments_get_(p, info, plan);
    if (cg_get16_(p + 6) || cg_get32_(p + 148)) return CG_E_CORRUPT;
    plan->n = info->n;
    plan->sampled_n = info->drawn;
    if (is_known && known->n == info->n && known->sampled_n == info->drawn) *plan = *known;
    else cg_plan_resume_(plan, &info->op);
    return cg_counts_check_(info, plan, cg_get64_(p + 128), cg_get64_(p + 136), 0);
}
static cg_status cg_header_get_(const uint8_t *p, size_t len, cg_info *info, cg_plan_ *plan) {
    return cg_header_get_like_(p, len, NULL, NULL, info, plan);
}
/* A packet of at most so many bytes is in the cache, and its checksum is made at once, not section by section. */
enum { CG_SMALL_PACKET_ = 8192 };
/* The checksum of a whole packet of len bytes, with zeros where the header has it. */
static cg_checksum_ cg_packet_checksum_(const cg_kernels_ *kernels, const uint8_t *packet, size_t len) {
    cg_checksum_ s = cg_checksum_of_(kernels, packet, len);
    for (size_t at = CG_CHECKSUM_OFFSET_; at < CG_HEADER_BYTES; at += 4) {
        const uint64_t word = cg_get32_(packet + at);
        s.a -= word;
        s.b -= word * (uint64_t)((len - at) / 4);
    }
    return s;
}
/* Writes header and checksum in front of a body of value_bytes + index_bytes, which has been written and has this
   checksum (of a small packet it is not read); returns the length of the packet in bytes. */
static size_t cg_packet_finalize_(const cg_kernels_ *kernels, const cg_info *info, uint8_t *packet, cg_checksum_ body) {
    const size_t len = CG_HEADER_BYTES + info->value_bytes + info->index_bytes;
    cg_checksum_ sum;
    cg_header_put_(packet, info);
    if (len <= CG_SMALL_PACKET_) sum = cg_checksum_of_(kernels, packet, len);
    else {
        sum = cg_checksum_concat_(cg_checksum_of_(kernels, packet, CG_CHECKSUM_OFFSET_), cg_checksum_zeros_(4));
        sum = cg_checksum_concat_(sum, body);
    }
    cg_put64_(packet + CG_CHECKSUM_OFFSET_, sum.a);
    cg_put64_(packet + CG_CHECKSUM_OFFSET_ + 8, sum.b);
    return len;
}
/* Another rank into the tag of a packet of len bytes. A word counts once in the first half of the checksum, and in the
   second once for itself and every word behind it, so that no pass over the body is needed. */
CG_OFFERED_ void cg_packet_rank_put_(uint8_t *packet, size_t len, uint32_t rank) {
    const uint64_t change = (uint64_t)rank - cg_get32_(packet + 124);
    uint8_t *sum = packet + CG_CHECKSUM_OFFSET_;
    cg_put32_(packet + 124, rank);
    cg_put64_(sum, cg_get64_(sum) + change);
    cg_put64_(sum + 8, cg_get64_(sum + 8) + ((uint64_t)len / 4 - 31) * change);
}
/* A seal: the checksum of p[0, len), 16 bytes at `offset` that count as zeros while it is computed, for other headers
   that save state. len and offset are multiples of 4, and offset + 16 <= len. */
CG_OFFERED_ cg_checksum_ cg_seal_of_(const uint8_t *p, size_t len, size_t offset) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    cg_checksum_ sum = cg_checksum_concat_(cg_checksum_of_(kernels, p, offset), cg_checksum_zeros_(4));
    return cg_checksum_concat_(sum, cg_checksum_of_(kernels, p + offset + 16, len - offset - 16));
}
CG_OFFERED_ void cg_seal_put_(uint8_t *p, size_t len, size_t offset) {
    const cg_checksum_ sum = cg_seal_of_(p, len, offset);
    cg_put64_(p + offset, sum.a);
    cg_put64_(p + offset + 8, sum.b);
}
CG_OFFERED_ int cg_seal_is_intact_(const uint8_t *p, size_t len, size_t offset) {
    const cg_checksum_ sum = cg_seal_of_(p, len, offset);
    return sum.a == cg_get64_(p + offset) && sum.b == cg_get64_(p + offset + 8);
}
/* The same where the whole body (info->value_bytes and info->index_bytes) stands in the packet already, with a checksum
   that is still to be made. */
CG_OFFERED_ size_t cg_packet_seal_(const cg_info *info, uint8_t *packet) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    return cg_packet_finalize_(kernels, info, packet,
        cg_checksum_of_(kernels, packet + CG_HEADER_BYTES, info->value_bytes + info->index_bytes));
}

/* src/core/quantize/scales.h */
/* scales: what a quantizer's row holds, and statistics and scales of a bucket

   Offers   cg_quantizer_, cg_bucket_stats_, cg_levels_make_, and the measure, set_scales and legal functions of rows
   Needs    base, kernels, codes (symbols)
   Touches  nothing but its arguments
   Other headers may use: cg_energy_
   A bucket is a run of values that share one set of scales. A row says what must be known of a bucket before its
   values can be coded; the loop in encode.h does the rest: blocks, chunks, buckets, the finite check, packing and
   the checksum. Sums over a bucket are in f64, 16 lanes over each run between multiples of 2048, folded by halves;
   runs are added in order within blocks of 65536, and blocks in order. */

/* What encode needs: nothing; the statistics of the bucket first; or nothing first, but the sum of its lanes gives
   the one scale of the whole vector afterwards. */
enum { CG_NEEDS_NOTHING_, CG_NEEDS_BUCKET_STATS_, CG_NEEDS_SUM_AFTERWARDS_ };
/* What encode writes: bits as they stand in the packet, or a byte per value, still to be packed or entropy coded.
   Levels of 16 bits are always entropy coded, by core/rate.h, which does not call encode. */
enum { CG_OUTPUT_PACKED_, CG_OUTPUT_SYMBOLS_, CG_OUTPUT_LEVELS_ };

/* What is known of a bucket. A measure function fills the fields that its set_scales function reads; absmax_bits
   reaches CG_INF_BITS_ if and only if a value is not finite. */
typedef struct cg_bucket_stats_ {
    uint32_t absmax_bits;
    float lo, hi;       /* smallest and largest value: range */
    double sums[2];     /* norm, range: squares; ternary: squares, values; signed_sums: negative values, the others */
    uint64_t negatives; /* values below zero: signed_sums */
    uint64_t count;     /* values; set by the loop, not by measure */
} cg_bucket_stats_;

/* How a scale is stored in a byte, perhaps times a float that all values share, which then stands before the bytes. */
typedef struct cg_byte_scale_ {
    uint8_t largest;                     /* larger bytes are no scales */
    float (*vector_scale)(float absmax); /* of all values; NULL: there is none */
    /* of what set_scales has made of a bucket */
    unsigned (*put)(const cg_stage *stage, float scale, float vector_scale);
    float (*get)(unsigned byte, float vector_scale);
} cg_byte_scale_;
/* A row of the table of quantizers, in core/rows.h. The functions may be called from several threads at once. */
typedef struct cg_quantizer_ {
    cg_stage_row_ stage;
    uint8_t needs;                    /* CG_NEEDS_* */
    uint8_t scale_count, scale_width; /* stored per bucket: how many, of so many bytes */
    const cg_byte_scale_ *byte_scale; /* NULL: scales are floats */
    /* adds n values, at most CG_CHUNK_, to *stat */
    void (*measure)(
        const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat);
    /* scale_count scales of a bucket; all its values are finite */
    void (*set_scales)(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales);
    int (*legal)(const float *scales); /* are these scales that an encoder can have stored? */
    uint8_t output;                    /* CG_OUTPUT_* */
    uint8_t bits;                      /* per value; 0: as many as 2*levels + 1 symbols take, or stage.arg */
    uint32_t fixed_bucket;             /* values; 0: the stage's size */
    float full_scale;                  /* encode wants values on a grid where the scale is this large; 0: as they are */
    /* NULL, or the number of levels on either side of zero; 0: symbols have no middle. With CG_HAS_GRID_ symbols are
       such levels times the scale, or steps of it (CG_SCALE_IS_STEP_). */
    int32_t (*levels)(const cg_stage *stage);
    unsigned (*bits_x32)(const cg_stage *stage); /* NULL, or the bits per value, times 32 */
    /* n values of one bucket, at most CG_CHUNK_, to out. position: of v[0] in its block, whose key this is. lanes: 16
       sums to add to, if rescale or CG_NEEDS_SUM_AFTERWARDS_ wants them. Returns the largest magnitude as bits where
       no measure has seen the values, else 0. */
    uint32_t (*encode)(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, cg_key_ key,
        uint32_t position, const float *v, size_t n, uint8_t *out, double *lanes);
    /* the reverse of encode: any bytes that stored_absmax_bits accepts give n finite floats. stream: out is larger than
       the caches, and aligned to 16 bytes */
    void (*decode)(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, const uint8_t *in, size_t n,
        float *out, int stream);
    /* NULL, or replaces the scales after encode has added `total` of the bucket to its lanes */
    void (*rescale)(const cg_bucket_stats_ *stat, double total, float *scales);
    /* NULL, or the largest magnitude of n stored values, as bits; from stored_limit on it is Inf or NaN */
    uint32_t (*stored_absmax_bits)(const cg_kernels_ *kernels, const uint8_t *in, size_t n);
    uint32_t stored_limit;
    uint64_t (*promise)(const cg_stage *stage, uint64_t k); /* levels: bytes of k values at most; 0: as the code's */
} cg_quantizer_;
/* The row of a quantize stage; NULL for a user codec or an unknown id. */
static const cg_quantizer_ *cg_quantizer_of_(const cg_stage *q); /* in core/rows.h */
/* Bits per value, times 32. */
static unsigned cg_bits_x32_of_(const cg_quantizer_ *row, const cg_stage *q) {
    const int32_t levels = row->levels ? row->levels(q) : 0;
    unsigned bits = row->bits;
    if (row->bits_x32) return row->bits_x32(q);
    if (bits || !levels) return 32u * (bits ? bits : q->arg);
    return 32 * (cg_log2_(2u * (uint64_t)levels) + 1); /* for 2 levels + 1 symbols */
}
/* The number of levels of quantizers with a grid. */
static int32_t cg_levels_one_(const cg_stage *stage) {
    (void)stage;
    return 1;
}
static int32_t cg_levels_of_bits_(const cg_stage *stage) { return (1 << (stage->arg - 1)) - 1; } /* 0 for 1 bit */
static int32_t cg_levels_of_arg_(const cg_stage *stage) { return stage->arg; }
static int32_t cg_levels_16_bits_(const cg_stage *stage) {
    (void)stage;
    return 32767;
}
static int32_t cg_levels_none_(const cg_stage *stage) {
    (void)stage;
    return 0;
}

/* Magnitudes below 2^-80 are multiplied by 2^100 before anything is divided by them, as their inverse may overflow. */
CG_INLINE_ int cg_is_tiny_(float scale) { return (cg_as_bits_(scale) & CG_ABS_MASK_) < 0x17800000u; }
#define CG_POW2_100_ 1.2676506002282294e30f       /* 2^100 */
#define CG_POW2_MINUS_100_ 7.888609052210118e-31f /* 2^-100 */

/* The grid of a bucket for encode and decode; inv_step is 0 until cg_encode_levels_ sets it. Tiny magnitudes are scaled
   up so that neither the step nor its inverse leaves the normal range, huge ones down so that a range cannot overflow,
   both by powers of two. */
static cg_levels_ cg_levels_make_(const cg_stage *stage, const float *scales) {
    const cg_quantizer_ *row = cg_quantizer_of_(stage);
    const int32_t levels = row->levels(stage);
    const int is_step = (row->stage.traits & CG_SCALE_IS_STEP_) != 0, is_range = row->scale_count == 2;
    float hi = is_range ? scales[1] : is_step ? cg_saturate_(cg_times_(scales[0], (float)levels)) : scales[0];
    float lo = is_range ? scales[0] : -hi;
    const uint32_t absmax_bits = cg_max32_(cg_as_bits_(lo) & CG_ABS_MASK_, cg_as_bits_(hi) & CG_ABS_MASK_);
    cg_levels_ q;
    q.prescale = absmax_bits >= 0x7e800000u ? 0.5f : absmax_bits < 0x17800000u ? CG_POW2_100_ : 1.0f; /* 2^126, 2^-80 */
    q.postscale = absmax_bits >= 0x7e800000u ? 2.0f : absmax_bits < 0x17800000u ? CG_POW2_MINUS_100_ : 1.0f;
    q.stochastic = !(stage->flags & CG_FLAG_NEAREST) && !(row->stage.traits & CG_ROUNDS_TO_NEAREST_);
    q.inv_step = 0.0f;
    lo *= q.prescale;
    hi *= q.prescale;
    if (levels) { /* so many on either side of the symbol for 0 */
        q.zero_symbol = levels;
        q.max_symbol = 2 * levels;
        q.encode_offset = q.decode_offset = 0.0f;
        q.range = hi;
        q.step = hi / (float)levels;
        if (is_step) {
            q.step = cg_times_(scales[0], q.prescale);
            q.range = cg_times_(q.step, (float)levels);
        }
    } else { /* symbols from the lowest value up, without one for 0 */
        float width = hi - lo;
        q.zero_symbol = 0;
        q.max_symbol = (1 << stage->arg) - 1;
        q.encode_offset = q.decode_offset = lo;
        q.range = width;
        q.step = width / (float)q.max_symbol;
    }
    return q;
}
/* what: CG_SUM_*. The sum is a part of the wire format, in the order of additions that kernels->lane_sum gives it. */
static double cg_lane_sum_of_(const cg_kernels_ *kernels, const float *v, size_t n, int what) {
    double lanes[16] = { 0.0 };
    CG_KERNEL_(kernels, lane_sum(v, n, what, lanes));
    return cg_lanes_reduce_(lanes);
}
/* The measure functions: each also sees whether a value is not finite, see cg_bucket_stats_. */
static void cg_measure_absmax_(
    const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat) {
    (void)stage;
    stat->absmax_bits = cg_max32_(stat->absmax_bits, CG_KERNEL_(kernels, absmax_bits(v, n)));
}
static void cg_measure_norm_(
    const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat) {
    if (stage->flags & CG_FLAG_MAX) {
        stat->absmax_bits = cg_max32_(stat->absmax_bits, CG_KERNEL_(kernels, absmax_bits(v, n)));
    } else { /* squares of finite floats do not overflow a double: Inf or NaN in the sum was Inf or NaN in v */
        double squares = cg_lane_sum_of_(kernels, v, n, CG_SUM_SQUARES_);
        stat->sums[0] += squares;
        if (!cg_is_finite64_(squares)) stat->absmax_bits = CG_INF_BITS_;
    }
}
static void cg_measure_ternary_(
    const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat) {
    stat->absmax_bits = cg_max32_(stat->absmax_bits, CG_KERNEL_(kernels, absmax_bits(v, n)));
    if (!(stage->flags & CG_FLAG_CLIP)) return;
    stat->sums[0] += cg_lane_sum_of_(kernels, v, n, CG_SUM_SQUARES_);
    stat->sums[1] += cg_lane_sum_of_(kernels, v, n, CG_SUM_VALUES_);
}
static void cg_measure_range_(
    const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat) {
    stat->absmax_bits = cg_max32_(stat->absmax_bits, CG_KERNEL_(kernels, range(v, n, &stat->lo, &stat->hi)));
    if (stage->flags & CG_FLAG_NORM) stat->sums[0] += cg_lane_sum_of_(kernels, v, n, CG_SUM_SQUARES_);
}
static void cg_measure_signed_sums_(
    const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat) {
    uint8_t signs[CG_CHUNK_ / 8]; /* n <= CG_CHUNK_ */
    (void)stage;
    stat->absmax_bits = cg_max32_(stat->absmax_bits, CG_KERNEL_(kernels, sign_encode(v, n, signs, NULL)));
    stat->sums[0] += cg_lane_sum_of_(kernels, v, n, CG_SUM_NEGATIVE_);
    stat->sums[1] += cg_lane_sum_of_(kernels, v, n, CG_SUM_NONNEGATIVE_);
    for (size_t i = 0; i < (n + 7) / 8; i++) stat->negatives += cg_popcount_(signs[i]);
}

/* +0 for -0: a scale must not depend on which zero was seen first. */
static float cg_canonical_zero_(float v) { return cg_as_float_(cg_as_bits_(v) & CG_ABS_MASK_ ? cg_as_bits_(v) : 0u); }
static void cg_set_scales_absmax_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    (void)stage;
    scales[0] = cg_as_float_(stat->absmax_bits);
}
static void cg_set_scales_norm_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    scales[0] = stage->flags & CG_FLAG_MAX ? cg_as_float_(stat->absmax_bits) : cg_saturate64_(cg_sqrt_(stat->sums[0]));
}
static void cg_set_scales_ternary_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    scales[0] = cg_as_float_(stat->absmax_bits);
    /* clipped at 2.5 standard deviations */
    if (stage->flags & CG_FLAG_CLIP && stat->count) {
        double mean = stat->sums[1] / (double)stat->count, mean_square = mean * mean, limit;
        CG_NO_FMA_(mean_square);
        limit = stat->sums[0] / (double)stat->count - mean_square;
        limit = 2.5 * cg_sqrt_(limit > 0.0 ? limit : 0.0);
        if (limit < (double)scales[0]) scales[0] = (float)limit;
    }
}
static void cg_set_scales_range_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    scales[0] = cg_canonical_zero_(stat->lo);
    scales[1] = cg_canonical_zero_(stat->hi);
    if (stage->flags & CG_FLAG_NORM) { /* Suresh: the range is sqrt(2)*norm, which is never too short */
        double width = 1.4142135623730951 * cg_sqrt_(stat->sums[0]), hi;
        CG_NO_FMA_(width);
        hi = (double)scales[0] + width;
        if (hi > (double)scales[1]) scales[1] = cg_saturate64_(hi);
    }
}
static void cg_set_scales_threelc_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    scales[0] = cg_saturate_(cg_times_(cg_as_float_(stat->absmax_bits), stage->value));
}
/* The step: the least power of two of which `levels` steps reach the largest magnitude. */
static void cg_set_scales_pow2_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    const cg_quantizer_ *row = cg_quantizer_of_(stage);
    const unsigned bits = cg_bits_x32_of_(row, stage) / 32;
    const double levels = (double)row->levels(stage), absmax = (double)cg_as_float_(stat->absmax_bits),
                 min_step = 1.401298464324817e-45;                  /* 2^-149 */
    double step = cg_as_double_(cg_as_bits64_(absmax) >> 52 << 52); /* the power of two at or below absmax */
    scales[0] = 0.0f;
    if (!stat->absmax_bits) return;
    for (unsigned i = 0; i < bits && step > min_step; i++) step *= 0.5;
    while (step * levels < absmax && step < 1.7014118346046923e38) step *= 2.0; /* 2^127 */
    scales[0] = (float)step;
}
static void cg_set_scales_signed_means_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    uint64_t others = stat->count - stat->negatives;
    (void)stage;
    scales[0] = stat->negatives ? cg_saturate64_(stat->sums[0] / (double)stat->negatives) : 0.0f;
    scales[1] = others ? cg_saturate64_(stat->sums[1] / (double)others) : 0.0f;
}
static void cg_set_scales_mean_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    (void)stage;
    scales[0] = stat->count ? cg_canonical_zero_(cg_saturate64_((stat->sums[0] + stat->sums[1]) / (double)stat->count))
                            : 0.0f;
}
/* The exponent is that of the largest value of the element format, so that values may be cut off by up to a quarter.
   At random that would be a bias: then the exponent is one more where the largest value would be. */
#define CG_SET_SCALES_MX_(name, max_exponent, max_value)                                                              \
  static void name(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {                              \
    const unsigned byte = cg_e8m0_encode_(stat->absmax_bits, max_exponent);                                           \
    scales[0] = cg_e8m0_decode_(byte);                                                                                \
    if (stage->flags & CG_FLAG_STOCHASTIC && (double)cg_as_float_(stat->absmax_bits) > max_value * (double)scales[0]) \
      scales[0] = cg_e8m0_decode_(byte + 1);                                                                          \
  }
CG_SET_SCALES_MX_(cg_set_scales_mx_e2m1_, 2, 6.0)
CG_SET_SCALES_MX_(cg_set_scales_mx_e4m3_, 8, 448.0)
CG_SET_SCALES_MX_(cg_set_scales_mx_e5m2_, 15, 57344.0)
#undef CG_SET_SCALES_MX_
/* E8M0, which set_scales has already rounded to. */
static unsigned cg_e8m0_put_(const cg_stage *stage, float scale, float vector_scale) {
    (void)stage;
    (void)vector_scale;
    return cg_as_bits_(scale) >> 23;
}
static float cg_e8m0_get_(unsigned byte, float vector_scale) {
    (void)vector_scale;
    return cg_e8m0_decode_(byte);
}
static const cg_byte_scale_ cg_byte_e8m0_ = { 254, NULL, cg_e8m0_put_, cg_e8m0_get_ };
/* NVFP4: the value 6 of E2M1 stands for the largest magnitude of the bucket, times a scale in E4M3, of which the
   largest, 448, stands for the largest of all. The float of all values is rounded up, so that no scale is larger. The
   scale of a bucket is to nearest; at random it must not cut off the largest value, and is rounded up, too. */
static float cg_nvfp4_vector_scale_(float absmax) {
    float scale = (float)((double)absmax / 2688.0);
    if ((double)scale * 2688.0 < (double)absmax) scale = cg_as_float_(cg_as_bits_(scale) + 1);
    return scale;
}
static double cg_e4m3_value_(unsigned byte) { return 256.0 * (double)cg_f16_decode_((byte & 0x7fu) << 7); }
static float cg_nvfp4_get_(unsigned byte, float vector_scale) {
    return (float)(cg_e4m3_value_(byte) * (double)vector_scale);
}
static unsigned cg_nvfp4_put_(const cg_stage *stage, float absmax, float vector_scale) {
    const double scale = vector_scale > 0.0f ? (double)absmax / (6.0 * (double)vector_scale) : 0.0;
    const float nearest = (float)scale;
    uint8_t byte;
    cg_fp8_encode_scalar_(&nearest, 1, 1.0f, 0, &byte);
    if (stage->flags & CG_FLAG_STOCHASTIC && cg_e4m3_value_(byte) < scale && byte < 0x7e) byte++;
    return byte;
}
static const cg_byte_scale_ cg_byte_e4m3_ = { 0x7e, cg_nvfp4_vector_scale_, cg_nvfp4_put_, cg_nvfp4_get_ };
/* geometric: the smallest magnitude but 0, and the largest; for one level their mean. */
static void cg_measure_magnitudes_(
    const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat) {
    uint32_t least = cg_as_bits_(stat->lo) - 1; /* 0 becomes the largest number */
    stat->absmax_bits = cg_max32_(stat->absmax_bits, CG_KERNEL_(kernels, absmax_bits(v, n)));
    if (stage->arg == 1) {
        stat->sums[0] += cg_lane_sum_of_(kernels, v, n, CG_SUM_ABS_);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t m = (cg_load_bits_(v, i) & CG_ABS_MASK_) - 1;
        least = m < least ? m : least;
    }
    stat->lo = cg_as_float_(least + 1);
}
static void cg_set_scales_magnitudes_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    scales[0] = stat->lo;
    scales[1] = cg_as_float_(stat->absmax_bits);
    if (stage->arg == 1) scales[0] = scales[1] = cg_saturate64_(stat->sums[0] / (double)stat->count);
    if (!stat->absmax_bits) scales[0] = scales[1] = 0.0f;
}
static int cg_legal_magnitudes_(const float *scales) {
    return cg_as_bits_(scales[0]) < CG_INF_BITS_ && cg_as_bits_(scales[1]) < CG_INF_BITS_ && scales[0] <= scales[1];
}
static int cg_legal_magnitude_(const float *scales) { return cg_as_bits_(scales[0]) < CG_INF_BITS_; }
static int cg_legal_finite_(const float *scales) { return cg_is_finite_(scales[0]); }
static int cg_legal_range_(const float *scales) {
    return cg_is_finite_(scales[0]) && cg_is_finite_(scales[1]) && scales[0] <= scales[1];
}
static int cg_legal_finite2_(const float *scales) { return cg_is_finite_(scales[0]) && cg_is_finite_(scales[1]); }
/* Sum of squares of n values, in the order of sums of this library (16 lanes, folded by halves); Inf or NaN if one of
   them is. */
CG_OFFERED_ double cg_energy_(const cg_kernels_ *kernels, const float *v, size_t n) {
    return cg_lane_sum_of_(kernels, v, n, CG_SUM_SQUARES_);
}

/* src/core/quantize/formats.h */
/* formats: encode and decode functions of quantizers with levels, small floats or a table of values

   Offers   CG_ENCODE_FN_ and CG_DECODE_FN_, the heads of such functions, and the functions that quantize/rows.h names
   Needs    base, kernels, quantize/scales
   Touches  nothing but its arguments
   What encode and decode require stands at cg_quantizer_. Symbols are a byte per value. */

#define CG_ENCODE_FN_(name)                                                                                 \
  static uint32_t name(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, cg_key_ key, \
      uint32_t position, const float *v, size_t n, uint8_t *out, double *lanes)
#define CG_DECODE_FN_(name)                                                                                   \
  static void name(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, const uint8_t *in, \
      size_t n, float *out, int stream)
#define CG_UNUSED_(a) (void)(a)

CG_ENCODE_FN_(cg_encode_levels_) {
    cg_levels_ q = cg_levels_make_(stage, scales);
    CG_UNUSED_(lanes);
    if (q.range > 0.0f) {
        q.inv_step = (float)(q.zero_symbol ? q.zero_symbol : q.max_symbol) / q.range;
    } else { /* cg_extra.scale may give a scale of 0 to any values: all become level 0 */
        q.prescale = 1.0f;
        q.encode_offset = 0.0f;
    }
    CG_KERNEL_(kernels, levels_encode(&q, key, position, v, n, out));
    return 0; /* the values have been measured */
}
CG_DECODE_FN_(cg_decode_levels_) {
    cg_levels_ q = cg_levels_make_(stage, scales);
    CG_KERNEL_(kernels, levels_decode(&q, in, n, out, stream));
}

/* flex16: integers of 16 bits times the scale, which cg_reduce needs for sums of levels. */
CG_ENCODE_FN_(cg_encode_steps16_) {
    const int tiny = cg_is_tiny_(scales[0]) && scales[0] > 0.0f;
    const float lift = tiny ? CG_POW2_100_ : 1.0f, inv = scales[0] > 0.0f ? 1.0f / cg_times_(scales[0], lift) : 0.0f;
    CG_UNUSED_(kernels);
    CG_UNUSED_(stage);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(lanes);
    for (size_t i = 0; i < n; i++) {
        float t = cg_times_(cg_times_(cg_load_(v, i), lift), inv);
        t = t < -32767.0f ? -32767.0f : t > 32767.0f ? 32767.0f : t;
        /* adding 1.5 * 2^23 rounds to the nearest integer, which then stands in the low bits */
        cg_put16_(out + 2 * i, cg_as_bits_(cg_plus_(t, 12582912.0f)) - 0x4b400000u + 32767u);
    }
    return 0;
}
CG_DECODE_FN_(cg_decode_steps16_) {
    CG_UNUSED_(kernels);
    CG_UNUSED_(stage);
    CG_UNUSED_(stream);
    for (size_t i = 0; i < n; i++)
        cg_store_(out, i, cg_saturate_(cg_times_((float)((int32_t)cg_get16_(in + 2 * i) - 32767), scales[0])));
}

/* Quantizers with a full scale: encode's scales[0] is not the bucket's scale but the factor that brings a value of
   that size to the full scale. The loop multiplies short buckets itself, a chunk of them at once, and passes a factor
   of 1. */
#define CG_E4M3_MAX_ 448.0f
#define CG_E5M2_MAX_ 57344.0f
/* of / scale, and 0 for a scale of 0. */
CG_INLINE_ float cg_ratio_or_zero_(float of, float scale) { return scale > 0.0f ? of / scale : 0.0f; }

/* A tiny scale is multiplied by 2^100, and the values by 2^-100, so that scale / 448 keeps its bits. */
static void cg_decode_fp8_(
    const cg_kernels_ *kernels, float full_scale, float scale, const uint8_t *in, size_t n, float *out, int stream) {
    const int tiny = cg_is_tiny_(scale);
    if (tiny) scale = cg_times_(scale, CG_POW2_100_);
    CG_KERNEL_(kernels, fp8_decode(in, n, scale / full_scale, full_scale > CG_E4M3_MAX_, out, stream && !tiny));
    for (size_t i = 0; tiny && i < n; i++) cg_store_(out, i, cg_times_(cg_load_(out, i), CG_POW2_MINUS_100_));
}
#define CG_FP8_(format, max)                                                                                        \
  CG_ENCODE_FN_(cg_encode_##format##_) {                                                                            \
    const int is_e5m2 = max > CG_E4M3_MAX_;                                                                         \
    CG_UNUSED_(lanes);                                                                                              \
    if (stage->flags & CG_FLAG_STOCHASTIC)                                                                          \
      CG_KERNEL_(                                                                                                   \
          kernels, fp8_stochastic(v, n, scales[0], is_e5m2 ? CG_SMALL_E5M2_ : CG_SMALL_E4M3_, key, position, out)); \
    else CG_KERNEL_(kernels, fp8_encode(v, n, scales[0], is_e5m2, out));                                            \
    return 0;                                                                                                       \
  }                                                                                                                 \
  CG_DECODE_FN_(cg_decode_##format##_) {                                                                            \
    CG_UNUSED_(stage);                                                                                              \
    cg_decode_fp8_(kernels, max, scales[0], in, n, out, stream);                                                    \
  }                                                                                                                 \
  CG_DECODE_FN_(cg_decode_mx_##format##_) {                                                                         \
    CG_UNUSED_(stage);                                                                                              \
    CG_KERNEL_(kernels, fp8_decode(in, n, scales[0], max > CG_E4M3_MAX_, out, stream));                             \
  }
CG_FP8_(e4m3, CG_E4M3_MAX_)
CG_FP8_(e5m2, CG_E5M2_MAX_)
#undef CG_FP8_
CG_ENCODE_FN_(cg_encode_mx4_) {
    cg_bucketizer_ thresholds;
    CG_UNUSED_(lanes);
    if (stage->flags & CG_FLAG_STOCHASTIC) {
        CG_KERNEL_(kernels, fp8_stochastic(v, n, scales[0], CG_SMALL_E2M1_, key, position, out));
        return 0;
    }
    thresholds.inv_scale = scales[0];
    thresholds.limit_count = 7;
    thresholds.sign_bit = 8;
    memcpy(thresholds.limit, cg_e2m1_limits_, sizeof thresholds.limit);
    CG_KERNEL_(kernels, bucketize(&thresholds, v, n, out, NULL, NULL));
    return 0;
}
CG_DECODE_FN_(cg_decode_mx4_) {
    float table[16];
    CG_UNUSED_(stage);
    for (int i = 0; i < 8; i++) {
        table[i] = cg_saturate_(cg_times_(cg_e2m1_values_[i], scales[0]));
        table[i + 8] = -table[i];
    }
    CG_KERNEL_(kernels, table_decode(table, in, n, out, stream));
}
/* NF4: quantiles of a normal distribution (QLoRA), and the limits between them, halfway. */
static const float cg_nf4_values_[16] = { -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
    -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f, 0.07958029955625534f,
    0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f,
    0.7229568362236023f, 1.0f };
static const float cg_nf4_limits_[15] = { -0.848096371f, -0.610632896f, -0.45999527f, -0.33967942f, -0.234607399f,
    -0.137911737f, -0.0455250181f, 0.0397901498f, 0.120255247f, 0.203521252f, 0.292013764f, 0.389312536f, 0.501663446f,
    0.64278692f, 0.861478448f };
CG_ENCODE_FN_(cg_encode_nf4_) {
    CG_UNUSED_(lanes);
    if (stage->flags & CG_FLAG_STOCHASTIC)
        CG_KERNEL_(kernels, nf4_stochastic(cg_nf4_values_, scales[0], key, position, v, n, out));
    else CG_KERNEL_(kernels, nf4_search(cg_nf4_limits_, scales[0], v, n, out));
    return 0;
}
CG_DECODE_FN_(cg_decode_nf4_) {
    float table[16];
    CG_UNUSED_(stage);
    for (int i = 0; i < 16; i++) table[i] = cg_times_(cg_nf4_values_[i], scales[0]);
    CG_KERNEL_(kernels, table_decode(table, in, n, out, stream));
}
/* geometric: 2^(bits-1) levels from lo to hi, each in the middle of its part of the logarithmic scale; bits 1..4. The
   roots are correctly rounded, so that the levels are the same everywhere. */
static int cg_geometric_levels_(const cg_stage *stage, const float *scales, float *level) {
    const int count = 1 << (stage->arg - 1);
    double ratio = scales[0] > 0.0f ? (double)scales[1] / (double)scales[0] : 1.0, at = (double)scales[0];
    for (int i = 1; i < count; i *= 2) ratio = cg_sqrt_(ratio); /* the count-th root */
    at *= cg_sqrt_(ratio);
    for (int i = 0; i < count; i++) {
        level[i] = cg_saturate64_(at);
        at *= ratio;
    }
    return count;
}
CG_ENCODE_FN_(cg_encode_geometric_) {
    cg_bucketizer_ thresholds;
    float level[8];
    const int count = cg_geometric_levels_(stage, scales, level);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(lanes);
    thresholds.inv_scale = 1.0f;
    thresholds.limit_count = count - 1;
    thresholds.sign_bit = (uint8_t)count;
    for (int i = 0; i + 1 < count; i++) thresholds.limit[i] = (float)(((double)level[i] + (double)level[i + 1]) * 0.5);
    CG_KERNEL_(kernels, bucketize(&thresholds, v, n, out, NULL, NULL));
    return 0;
}
CG_DECODE_FN_(cg_decode_geometric_) {
    float table[16] = { 0.0f }, level[8];
    const int count = cg_geometric_levels_(stage, scales, level);
    for (int i = 0; i < count; i++) {
        table[i] = level[i];
        table[count + i] = -level[i];
    }
    CG_KERNEL_(kernels, table_decode(table, in, n, out, stream));
}
CG_ENCODE_FN_(cg_encode_dynamic_) {
    CG_UNUSED_(stage);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(lanes);
    CG_KERNEL_(kernels, dynamic8_encode(v, n, scales[0], out));
    return 0;
}
CG_DECODE_FN_(cg_decode_dynamic_) {
    CG_UNUSED_(stage);
    CG_KERNEL_(kernels, dynamic8_decode(in, n, scales[0], out, stream));
}
CG_ENCODE_FN_(cg_encode_dither_) {
    cg_dither_ q;
    CG_UNUSED_(lanes);
    q.inv_scale = scales[0];
    q.bits = stage->arg;
    q.stochastic = !(stage->flags & CG_FLAG_NEAREST);
    CG_KERNEL_(kernels, dither_encode(&q, key, position, v, n, out));
    return 0;
}
CG_DECODE_FN_(cg_decode_dither_) { CG_KERNEL_(kernels, dither_decode(stage->arg, scales[0], in, n, out, stream)); }
CG_ENCODE_FN_(cg_encode_strom_) {
    CG_UNUSED_(scales);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(lanes);
    CG_KERNEL_(kernels, strom_encode(v, n, stage->value, out));
    return CG_KERNEL_(kernels, absmax_bits(v, n));
}
CG_DECODE_FN_(cg_decode_strom_) {
    float table[16] = { 0.0f };
    CG_UNUSED_(scales);
    table[0] = -stage->value;
    table[2] = stage->value;
    CG_KERNEL_(kernels, table_decode(table, in, n, out, stream));
}
CG_ENCODE_FN_(cg_encode_natural_) {
    CG_UNUSED_(scales);
    CG_UNUSED_(lanes);
    return CG_KERNEL_(kernels, natural_encode(v, n, key, position, !(stage->flags & CG_FLAG_NEAREST), out));
}
CG_DECODE_FN_(cg_decode_natural_) {
    CG_UNUSED_(stage);
    CG_UNUSED_(scales);
    CG_KERNEL_(kernels, natural_decode(in, n, out, stream));
}
/* mean: no codes at all, only the scale. */
CG_ENCODE_FN_(cg_encode_none_) {
    CG_UNUSED_(kernels);
    CG_UNUSED_(stage);
    CG_UNUSED_(scales);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(v);
    CG_UNUSED_(n);
    CG_UNUSED_(out);
    CG_UNUSED_(lanes);
    return 0;
}
CG_DECODE_FN_(cg_decode_mean_) {
    CG_UNUSED_(kernels);
    CG_UNUSED_(stage);
    CG_UNUSED_(in);
    CG_UNUSED_(stream);
    for (size_t i = 0; i < n; i++) cg_store_(out, i, scales[0]);
}
/* A bucket may start at any bit, so the signs are symbols, which the loop packs. */
CG_ENCODE_FN_(cg_encode_onebit_) {
    static const cg_bucketizer_ signs = { 0.0f, 0, { 0.0f }, 1 };
    CG_UNUSED_(stage);
    CG_UNUSED_(scales);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(lanes);
    CG_KERNEL_(kernels, bucketize(&signs, v, n, out, NULL, NULL));
    return 0;
}
CG_DECODE_FN_(cg_decode_onebit_) {
    float table[16] = { 0.0f };
    CG_UNUSED_(stage);
    table[0] = scales[1];
    table[1] = scales[0];
    CG_KERNEL_(kernels, table_decode(table, in, n, out, stream));
}

/* src/core/quantize/lloyd.h */
/* lloyd: Lloyd-Max levels of a normal distribution, for rotated blocks (DRIVE, EDEN)

   Offers   cg_encode_lloyd_, cg_decode_lloyd_, cg_set_scales_l2norm_, cg_rescale_lloyd_
   Needs    base, kernels, quantize/scales, quantize/formats
   Touches  nothing but its arguments
   A bucket is one rotated block of 1024 values, whose scale first is its norm, and after encoding what makes the result
   unbiased. With a fraction of a bit, the first values of a block have one bit more than the others. */

/* Magnitudes of the levels for 1, 2, 3 and 4 bits, of which one is the sign. */
static const float cg_lloyd_centroids_[4][8] = {
    { 0.797884561f },
    { 0.452780035f, 1.51041762f },
    { 0.245094183f, 0.756005281f, 1.34390925f, 2.15194571f },
    { 0.128394938f, 0.388048258f, 0.656759118f, 0.942340345f, 1.25623121f, 1.61804638f, 2.06901694f, 2.73258957f },
};
/* The limits halfway between the centroids; inv_scale is left to the caller. */
static cg_bucketizer_ cg_lloyd_thresholds_(unsigned bits) {
    cg_bucketizer_ thresholds;
    thresholds.inv_scale = 0.0f;
    thresholds.limit_count = (1 << (bits - 1)) - 1;
    thresholds.sign_bit = (uint8_t)(1u << (bits - 1));
    for (int i = 0; i < thresholds.limit_count; i++)
        thresholds.limit[i] =
            (float)(((double)cg_lloyd_centroids_[bits - 1][i] + (double)cg_lloyd_centroids_[bits - 1][i + 1]) * 0.5);
    return thresholds;
}
/* How many values of a block have one bit more than the others: the first ones, as the rotation has mixed them. */
static size_t cg_lloyd_extra_bit_n_(const cg_stage *stage) { return (size_t)((int)(stage->value * 32.0f) % 32) * 32; }

/* n is CG_ROTATE_BLOCK_, scales[0] the norm of the values; lanes += <centroids, values>. */
CG_ENCODE_FN_(cg_encode_lloyd_) {
    const size_t extra_bit_n = cg_lloyd_extra_bit_n_(stage), split[3] = { 0, extra_bit_n, n };
    const unsigned whole_bits = (unsigned)stage->value;
    uint8_t symbols[CG_ROTATE_BLOCK_];
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    if (whole_bits == 1 && !extra_bit_n) { /* one centroid: the product is a multiple of the sum of magnitudes */
        CG_KERNEL_(kernels, sign_encode(v, n, out, lanes));
        for (int i = 0; i < 16; i++)
            lanes[i] *= (double)cg_lloyd_centroids_[0][0] * (cg_is_tiny_(scales[0]) ? (double)CG_POW2_100_ : 1.0);
        return 0;
    }
    for (int group = 0; group < 2; group++) {
        const unsigned bits = group == 0 ? whole_bits + 1 : whole_bits;
        const size_t from = split[group], many = split[group + 1] - from;
        cg_bucketizer_ thresholds;
        if (!many) continue;
        thresholds = cg_lloyd_thresholds_(bits);
        {
            const float *w = cg_at_(v, from);
            const float norm = scales[0];
            float lifted[256];
            for (size_t at = 0, sub_n; at < many; at += sub_n) {
                const float *u = cg_at_(w, at);
                float scale = norm;
                sub_n = many - at;
                if (cg_is_tiny_(norm)) {
                    sub_n = cg_min_(sub_n, 256);
                    scale = cg_times_(norm, CG_POW2_100_);
                    for (size_t i = 0; i < sub_n; i++) lifted[i] = cg_times_(cg_load_(u, i), CG_POW2_100_);
                    u = lifted;
                }
                thresholds.inv_scale = cg_ratio_or_zero_(32.0f, scale);
                CG_KERNEL_(kernels,
                    bucketize(&thresholds, u, sub_n, symbols + from + at, cg_lloyd_centroids_[bits - 1], lanes));
            }
        }
        CG_KERNEL_(kernels, pack(symbols + from, many, bits, out));
        out += many / 8 * bits;
    }
    return 0;
}
static unsigned cg_bits_x32_lloyd_(const cg_stage *stage) { return (unsigned)(stage->value * 32.0f); }
static void cg_set_scales_l2norm_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    (void)stage;
    scales[0] = cg_saturate64_(cg_sqrt_(stat->sums[0]));
}
/* The scale |z|^2 / <centroids, z> makes the result unbiased. With a tiny norm the product is 2^100 too large. */
static void cg_rescale_lloyd_(const cg_bucket_stats_ *stat, double total, float *scales) {
    if (cg_is_tiny_(scales[0])) total *= (double)CG_POW2_MINUS_100_;
    scales[0] = total > 0.0 ? cg_saturate64_(stat->sums[0] / total) : 0.0f;
}
CG_DECODE_FN_(cg_decode_lloyd_) {
    const size_t extra_bit_n = cg_lloyd_extra_bit_n_(stage), split[3] = { 0, extra_bit_n, n };
    const unsigned whole_bits = (unsigned)stage->value;
    uint8_t symbols[CG_ROTATE_BLOCK_];
    if (whole_bits == 1 && !extra_bit_n) {
        CG_KERNEL_(
            kernels, sign_decode(in, n, cg_saturate_(cg_times_(scales[0], cg_lloyd_centroids_[0][0])), out, stream));
        return;
    }
    for (int group = 0; group < 2; group++) {
        const unsigned bits = group == 0 ? whole_bits + 1 : whole_bits, half = 1u << (bits - 1);
        const size_t from = split[group], many = split[group + 1] - from;
        float table[16] = { 0.0f };
        if (!many) continue;
        for (unsigned i = 0; i < half; i++) {
            table[i] = cg_saturate_(cg_times_(scales[0], cg_lloyd_centroids_[bits - 1][i]));
            table[i + half] = -table[i];
        }
        CG_KERNEL_(kernels, unpack(in, many, bits, symbols));
        CG_KERNEL_(kernels, table_decode(table, symbols, many, cg_at_mut_(out, from), stream));
        in += many / 8 * bits;
    }
}

/* src/core/quantize/plain.h */
/* plain: the plain formats f32, f16, bf16 and signs, and what a value code sees of a quantizer

   Offers   the functions of plain formats, cg_alphabet_of_, cg_float_width_, cg_value_code_fits_
   Needs    base, kernels, codes (symbols), stages, quantize/scales
   Touches  nothing
   Other headers may use: cg_bucket_dequantize_, cg_bucket_quantize_ */

/* Functions that only call a kernel. */
#define CG_ENCODE_PLAIN_(name, kernel)                                                                      \
  static uint32_t name(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, cg_key_ key, \
      uint32_t position, const float *v, size_t n, uint8_t *out, double *lanes) {                           \
    (void)stage;                                                                                            \
    (void)scales;                                                                                           \
    (void)key;                                                                                              \
    (void)position;                                                                                         \
    (void)lanes;                                                                                            \
    return CG_KERNEL_(kernels, kernel);                                                                     \
  }
CG_ENCODE_PLAIN_(cg_encode_f32_, copy(v, n, out))
CG_ENCODE_PLAIN_(cg_encode_sign_, sign_encode(v, n, out, NULL))
CG_ENCODE_PLAIN_(cg_encode_efsign_, sign_encode(v, n, out, lanes))
#undef CG_ENCODE_PLAIN_
static uint32_t cg_encode_f16_(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, cg_key_ key,
    uint32_t position, const float *v, size_t n, uint8_t *out, double *lanes) {
    (void)scales;
    (void)lanes;
    return stage->flags & CG_FLAG_STOCHASTIC ? CG_KERNEL_(kernels, half_stochastic(v, n, key, position, 0, out))
                                             : CG_KERNEL_(kernels, f16_encode(v, n, out));
}
static uint32_t cg_encode_bf16_(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, cg_key_ key,
    uint32_t position, const float *v, size_t n, uint8_t *out, double *lanes) {
    (void)scales;
    (void)lanes;
    return stage->flags & CG_FLAG_STOCHASTIC ? CG_KERNEL_(kernels, half_stochastic(v, n, key, position, 1, out))
                                             : CG_KERNEL_(kernels, bf16_encode(v, n, out));
}

#define CG_DECODE_PLAIN_(name, statement)                                                                     \
  static void name(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, const uint8_t *in, \
      size_t n, float *out, int stream) {                                                                     \
    (void)kernels;                                                                                            \
    (void)stage;                                                                                              \
    (void)scales;                                                                                             \
    (void)stream;                                                                                             \
    statement;                                                                                                \
  }
CG_DECODE_PLAIN_(cg_decode_f32_, for (size_t i = 0; i < n; i++) cg_store_(out, i, cg_as_float_(cg_get32_(in + 4 * i))))
CG_DECODE_PLAIN_(cg_decode_f16_, CG_KERNEL_(kernels, f16_decode(in, n, out, stream)))
CG_DECODE_PLAIN_(cg_decode_bf16_, CG_KERNEL_(kernels, bf16_decode(in, n, out, stream)))
CG_DECODE_PLAIN_(cg_decode_sign_, CG_KERNEL_(kernels, sign_decode(in, n, 1.0f, out, stream)))
CG_DECODE_PLAIN_(cg_decode_efsign_, CG_KERNEL_(kernels, sign_decode(in, n, scales[0], out, stream)))
#undef CG_DECODE_PLAIN_

/* The largest magnitude of n floats as they are stored in a packet, as bits. */
static uint32_t cg_stored_absmax_bits_f32_(const cg_kernels_ *kernels, const uint8_t *in, size_t n) {
#if CG_BIG_ENDIAN_
    uint32_t largest = 0;
    (void)kernels;
    for (size_t i = 0; i < n; i++) largest = cg_max32_(largest, cg_get32_(in + 4 * i) & CG_ABS_MASK_);
    return largest;
#else
    return CG_KERNEL_(kernels, absmax_bits((const float *)(const void *)in, n));
#endif
}
static uint32_t cg_stored_absmax_bits_16_(const cg_kernels_ *kernels, const uint8_t *in, size_t n) {
    return CG_KERNEL_(kernels, absmax16_bits(in, n));
}

/* The symbols that an entropy code sees of a quantizer; 0: it writes no symbols. max_symbol may be smaller than the
   bits allow, zero_symbol is the symbol of the value 0, or 0 if symbols have no middle. */
static int cg_alphabet_of_(const cg_stage *q, cg_alphabet_ *a) {
    const cg_quantizer_ *row = cg_quantizer_of_(q);
    int32_t levels;
    if (!row || row->output != CG_OUTPUT_SYMBOLS_) return 0;
    levels = row->levels ? row->levels(q) : 0;
    a->bits = cg_bits_x32_of_(row, q) / 32;
    a->max_symbol = (uint8_t)(levels ? 2u * (unsigned)levels : (1u << a->bits) - 1u);
    a->zero_symbol = (uint8_t)levels;
    return 1;
}
/* Bytes of a stored float whose exponents huffman can code; 0: another format. */
static unsigned cg_float_width_(const cg_stage *q) {
    const cg_quantizer_ *row = cg_quantizer_of_(q);
    return row && row->stage.traits & CG_CODES_EXPONENTS_ ? row->bits / 8u : 0;
}
/* Can the value code of op carry what its quantizer writes? */
static int cg_value_code_fits_(const cg_op *op) {
    cg_alphabet_ a;
    if (op->code.arg == CG_CODE_HUFFMAN - CG_CODE_PACKED && cg_float_width_(&op->quantize)) return 1;
    return cg_alphabet_of_(&op->quantize, &a) && cg_code_fits_alphabet_(op->code.arg, &a);
}
/* One bucket by itself, for other headers that store values as codes. The stage must round to nearest, have one scale
   and leave a byte per value (absmax:8:B:nearest): codes has n bytes. Values must be finite; a magnitude above the
   scale is stored as the scale. */
CG_OFFERED_ void cg_bucket_quantize_(
    const cg_kernels_ *kernels, const cg_stage *stage, float scale, const float *v, size_t n, uint8_t *codes) {
    const cg_key_ unused = { 0, 0, 0 }; /* no noise where rounding is to nearest */
    cg_quantizer_of_(stage)->encode(kernels, stage, &scale, unused, 0, v, n, codes, NULL);
}
CG_OFFERED_ void cg_bucket_dequantize_(
    const cg_kernels_ *kernels, const cg_stage *stage, float scale, const uint8_t *codes, size_t n, float *out) {
    cg_quantizer_of_(stage)->decode(kernels, stage, &scale, codes, n, out, 0);
}

/* src/core/quantize/rate.h */
/* rate: one step for all values, a dead zone, and levels of 16 bits that are entropy coded: rate and step

   Offers   cg_rate_counts_, cg_rate_count_, the functions that rows of such quantizers name, cg_rate_bound_
   Needs    base, random, codes (rans, rans_plan), quantize/formats
   Touches  nothing but its arguments
   The scales of a packet are two floats. The first is the step; with a sign, values were multiplied by 2^100 before
   they were divided by it. The second is a whole number 4096*c + o: level 1 stands for c/2048 steps, level m > 1
   for m + (o - 2048)/4096 steps; with a sign, values were multiplied by 2^-100. */

#define CG_RATE_LEVELS_MAX_ 32767
#define CG_RATE_PLAIN_ (4096.0f * 2048.0f + 2048.0f) /* level m stands for m steps */
#define CG_RATE_LEAST_ 24u /* bytes that a section of values may have, however few are asked for */

/* What is counted of values on the way to levels, in integers, so that no order matters. */
typedef struct cg_rate_counts_ {
    uint64_t ones, more; /* levels 1, and above */
    uint64_t ones_sum;   /* |v|/step of those, in 65536ths */
    int64_t more_sum;    /* |v|/step - level of those, in 65536ths */
} cg_rate_counts_;

/* Counts n values with their levels. */
CG_NOINLINE_ void cg_rate_count_(
    const cg_rate_grid_ *g, const float *v, const int16_t *level, size_t n, cg_rate_counts_ *c) {
    for (size_t b = 0; b < n; b += CG_RANS_BLOCK_) {
        uint64_t some = cg_rans_nonzero_(level + b, cg_min_(CG_RANS_BLOCK_, n - b));
        for (; some; some &= some - 1) {
            const size_t i = b + cg_ctz_(some);
            const int32_t m = level[i] < 0 ? -level[i] : level[i];
            const float t = cg_times_(cg_times_(cg_as_float_(cg_load_bits_(v, i) & CG_ABS_MASK_), g->lift), g->inv);
            const uint32_t t16 = (uint32_t)(cg_times_(t < 32767.0f ? t : 32767.0f, 65536.0f));
            if (m == 1) {
                c->ones++;
                c->ones_sum += t16;
            } else {
                c->more++;
                c->more_sum += (int64_t)t16 - (int64_t)m * 65536;
            }
        }
    }
}
static void cg_rate_counts_add_(cg_rate_counts_ *s, const cg_rate_counts_ *t) {
    s->ones += t->ones;
    s->more += t->more;
    s->ones_sum += t->ones_sum;
    s->more_sum += t->more_sum;
}
/* The two scales of a grid, of whose values this was counted. */
static void cg_rate_scales_(const cg_rate_grid_ *g, const cg_rate_counts_ *counts, float *scales) {
    scales[0] = g->lift > 1.0f ? -g->step : g->step;
    scales[1] = CG_RATE_PLAIN_;
    if (!g->stochastic) { /* centroids, rounded */
        uint64_t c = counts->ones ? (counts->ones_sum + 16 * counts->ones) / (32 * counts->ones) : 2048;
        int64_t o = counts->more ? (counts->more_sum + (int64_t)(8 * counts->more)) / (int64_t)(16 * counts->more) : 0;
        c = c < 4095 ? c : 4095;
        o = o < -2048 ? -2048 : o > 2047 ? 2047 : o;
        scales[1] = (float)(int32_t)(4096 * (int64_t)c + o + 2048);
    }
    if (g->lift < 1.0f) scales[1] = -scales[1];
}
static int cg_legal_rate_(const float *scales) {
    const float v = cg_as_float_(cg_as_bits_(scales[1]) & CG_ABS_MASK_);
    return cg_is_finite_(scales[0]) && v < 16777216.0f && v == (float)(int32_t)v &&
        !(cg_as_bits_(scales[0]) >> 31 && cg_as_bits_(scales[1]) >> 31);
}
/* in: levels as integers of 16 bits of this machine, at any address. */
CG_DECODE_FN_(cg_decode_rate_) {
    const int32_t pair = (int32_t)cg_as_float_(cg_as_bits_(scales[1]) & CG_ABS_MASK_);
    const float step = cg_as_float_(cg_as_bits_(scales[0]) & CG_ABS_MASK_),
                one = cg_times_(step, (float)(pair / 4096) * 0.00048828125f),
                offset = cg_times_(step, (float)(pair % 4096 - 2048) * 0.000244140625f);
    const float drop = cg_as_bits_(scales[0]) >> 31 ? CG_POW2_MINUS_100_
        : cg_as_bits_(scales[1]) >> 31              ? CG_POW2_100_
                                                    : 1.0f;
    const float value[4] = { step, one, offset, drop };
    CG_UNUSED_(stage);
    CG_UNUSED_(stream);
    CG_KERNEL_(kernels, rate_decode(value, in, n, out));
}
/* Never called: core/rate.h makes the whole section. */
CG_ENCODE_FN_(cg_encode_rate_) {
    CG_UNUSED_(kernels);
    CG_UNUSED_(stage);
    CG_UNUSED_(scales);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(v);
    CG_UNUSED_(n);
    CG_UNUSED_(out);
    CG_UNUSED_(lanes);
    return 0;
}
/* Pieces of k levels, and bytes of the table of their lengths, which has 16 bits of each: words of 32 bits. */
CG_INLINE_ uint64_t cg_rans_pieces_(uint64_t k) { return k / CG_RANS_PIECE_ + (k % CG_RANS_PIECE_ != 0); }
/* Bytes of the codes of k levels at most, if nothing limits them: plain pieces. */
static uint64_t cg_rans_codes_bound_(uint64_t k, unsigned width) {
    return cg_add_sat_(4 * cg_rans_pieces_(k),
        cg_add_sat_(
            cg_mul_sat_(k / CG_RANS_PIECE_, CG_RANS_PIECE_ / 8 * width), cg_word_bytes_(k % CG_RANS_PIECE_ * width)));
}
/* The bytes of a section of k values at most, whatever they are; 0: the quantizer promises nothing. */
static uint64_t cg_rate_promise_(const cg_stage *q, uint64_t k) {
    const double asked = (double)k * (double)q->value / 8.0; /* one rounding: the product is exact below 2^29 values */
    uint64_t bytes = asked < 4.0e18 ? (uint64_t)asked & ~(uint64_t)3 : CG_TOO_LARGE_;
    return k && bytes < CG_RATE_LEAST_ ? CG_RATE_LEAST_ : bytes;
}
static uint64_t cg_step_promise_(const cg_stage *q, uint64_t k) {
    (void)q;
    (void)k;
    return 0;
}
enum { CG_RATE_BINS_ = 2048, CG_RATE_ABOVE_BYTES_ = 4 * (CG_RATE_BINS_ + 16) /* of the histogram */ };
/* A histogram, and a plan for each piece: bytes of scratch, at an address that is aligned to 4. */
static uint64_t cg_rans_scratch_(const cg_stage *q, uint64_t k) {
    const cg_quantizer_ *row = cg_quantizer_of_(q);
    if (!row || !row->promise) return 0;
    return cg_add_sat_(CG_RATE_ABOVE_BYTES_, cg_mul_sat_(cg_rans_pieces_(k), (sizeof(cg_rans_plan_) + 63) / 64 * 64));
}

/* src/core/layout.h */
/* layout: how the values of a packet are laid out, and the check of cg_extra

   Offers   cg_layout_, cg_layout_make_, offsets of codes, cg_extra_check_
   Needs    base, codes (symbols), stages, quantize
   Touches  nothing but its arguments
   Other headers may use: cg_extra_check_
   The value section is scales, piece table, codes. Without a value code, codes have a fixed number of bits per value,
   so that every chunk has its place. */

typedef struct cg_layout_ {
    const cg_quantizer_ *quantizer; /* NULL: a user codec, and then all below but k is 0 */
    const cg_codec *codec;          /* NULL: no user codec */
    unsigned bits_x32;              /* bits per value, times 32 */
    unsigned value_code;            /* CG_VALUE_CODE_*; 0: packed, else pieces of variable size */
    cg_alphabet_ alphabet;          /* with a value code, unless floats are coded */
    size_t piece_values;            /* values in one piece; the last may have fewer */
    uint64_t k;                     /* values */
    uint64_t bucket_size;           /* values that share scales; at least 1 */
    uint64_t bucket_count;          /* 0 if the quantizer needs nothing of a bucket */
    uint64_t scale_bytes, piece_table_bytes;
    uint64_t vector_bytes; /* of the scales: a float that all values share, before them */
    uint64_t codes_bytes;  /* of the codes; with a value code, their maximum */
} cg_layout_;
static int cg_is_coded_(const cg_layout_ *lay) { return cg_builds_value_codes_() && lay->value_code; }

/* Bytes from the start of the codes to value `first`, a multiple of 1024; packed only. */
CG_INLINE_ size_t cg_codes_offset_(const cg_layout_ *lay, size_t first) { return first / 256 * lay->bits_x32; }
/* u32 words of `many` packed values. */
CG_INLINE_ size_t cg_codes_words_(const cg_layout_ *lay, size_t many) {
    return (size_t)cg_word_bytes_((uint64_t)many * lay->bits_x32 / 32) / 4;
}

/* Does the operator know what to do with what the caller passed beside? op NULL: only what holds for any operator. */
static cg_status cg_extra_check_(const cg_op *op, const cg_extra *extra) {
    if (!extra) return CG_OK;
    if (extra->flags & ~(uint32_t)CG_DECODE_DIRECT) return CG_E_ARG; /* also what the library sets for itself */
    if ((extra->support_len && !extra->support) || extra->reserved32) return CG_E_ARG;
    if (!cg_builds_segments_() && extra->segments) return CG_E_VERSION;
    if (!op) return CG_OK;
    if ((extra->aux && !cg_has_(op, CG_NEEDS_AUX_)) || (extra->support && !cg_has_(op, CG_NEEDS_SUPPORT_)))
        return CG_E_UNSUPPORTED;
    if (extra->scale &&
        (cg_has_(op, CG_IS_USER_CODEC_ | CG_OWNS_SCALES_) || !cg_quantizer_of_(&op->quantize)->scale_count))
        return CG_E_UNSUPPORTED;
    return CG_OK;
}
/* The layout of k values. op has passed cg_op_check_. CG_E_VERSION: extra does not have the user codec. Sizes that
   overflow are CG_TOO_LARGE_. */
static cg_status cg_layout_make_(const cg_op *op, const cg_extra *extra, uint64_t k, cg_layout_ *lay) {
    const cg_stage *q = &op->quantize;
    memset(lay, 0, sizeof *lay);
    lay->k = k;
    if (cg_is_user_codec_(q)) {
        for (size_t i = 0; extra && extra->codecs && i < extra->codec_count; i++)
            if (extra->codecs[i] && extra->codecs[i]->id == q->id) lay->codec = extra->codecs[i];
        return lay->codec ? CG_OK : CG_E_VERSION;
    }
    lay->quantizer = cg_quantizer_of_(q);
    if (!lay->quantizer) return CG_E_VERSION;
    lay->bits_x32 = cg_bits_x32_of_(lay->quantizer, q);
    /* a size of 0 means one bucket of all values */
    lay->bucket_size = lay->quantizer->fixed_bucket ? lay->quantizer->fixed_bucket
        : q->size && q->size < k                    ? q->size
        : k                                         ? k
                                                    : 1;
    lay->bucket_count = lay->quantizer->needs == CG_NEEDS_NOTHING_ ? 0 : cg_quotient_up_(k, lay->bucket_size);
    lay->scale_bytes = cg_mul_sat_(
        lay->bucket_count, (uint64_t)lay->quantizer->scale_count * lay->quantizer->scale_width);
    if (k && lay->quantizer->byte_scale && lay->quantizer->byte_scale->vector_scale) lay->vector_bytes = 4;
    lay->scale_bytes = cg_add_sat_(lay->scale_bytes, lay->vector_bytes);
    lay->scale_bytes = cg_add_sat_(lay->scale_bytes, 3) & ~(uint64_t)3;
    lay->codes_bytes = cg_word_bytes_(cg_add_sat_(cg_mul_sat_(k / 32, lay->bits_x32), k % 32 * lay->bits_x32 / 32));
    lay->value_code = op->code.arg;
    if (lay->quantizer->output == CG_OUTPUT_LEVELS_) {
        const uint64_t promise = lay->quantizer->promise(q, k);
        lay->value_code = CG_VALUE_CODE_RANS_;
        lay->piece_values = CG_RANS_PIECE_;
        lay->piece_table_bytes = cg_word_bytes_(cg_mul_sat_(16, cg_rans_pieces_(k)));
        lay->codes_bytes = promise
            ? cg_max64_(promise, lay->scale_bytes + lay->piece_table_bytes) - lay->scale_bytes - lay->piece_table_bytes
            : cg_rans_codes_bound_(k, lay->bits_x32 / 32);
    } else if (lay->value_code) {
        lay->piece_values = cg_float_width_(q) ? CG_CHUNK_ : CG_PIECE_SYMBOLS_;
        if (!cg_float_width_(q)) cg_alphabet_of_(q, &lay->alphabet);
        lay->piece_table_bytes = 4 * (k / lay->piece_values + (k % lay->piece_values != 0));
    }
    return CG_OK;
}

/* src/core/segments/table.h */
/* table: the table of a packet with segments, which says what each of them is

   Offers   cg_segment_cursor_ with cg_segments_open_, cg_segment_next_ and cg_segments_end_; cg_segment_put_,
            cg_segment_room_, cg_varint_put_
   Needs    base, stages, plan, packet, layout
   Touches  the table that is written; the cursor
   A cursor reads the entries of any bytes in order: what cg_segment_next_ returns with CG_OK is a header as that of a
   packet of this segment alone, with a body that lies in the packet. The manual draws the table. */

/* 7 bits a byte, the lowest first; all bytes but the last have the eighth. */
static size_t cg_varint_bytes_(uint64_t v) {
    size_t bytes = 1;
    for (; v >= 128; v >>= 7) bytes++;
    return bytes;
}
static uint8_t *cg_varint_put_(uint8_t *p, uint64_t v) {
    for (; v >= 128; v >>= 7) *p++ = (uint8_t)(v | 128);
    *p++ = (uint8_t)v;
    return p;
}
/* Moves *p behind the number; 0: it does not end before `end`, is larger than `most`, or could be shorter. */
static int cg_varint_get_(const uint8_t **p, const uint8_t *end, uint64_t most, uint64_t *v) {
    *v = 0;
    for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
        const uint8_t byte = *(*p)++;
        if (shift == 63 && byte > 1) return 0;
        *v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return (byte || !shift) && *v <= most;
    }
    return 0;
}

/* Stands before one of the segments. */
typedef struct cg_segment_cursor_ {
    const cg_info *whole; /* of the packet */
    uint32_t traits;      /* of its operator */
    const uint8_t *ops;   /* the operators of the table */
    uint64_t op_count;
    const uint8_t *at, *end;         /* of the table */
    const uint8_t *next_body, *body; /* body: of the segment read last */
    uint64_t body_left, n_left, drawn_left, k_left;
    uint32_t left;   /* segments */
    uint32_t tensor; /* of the next, unless the table names another */
    uint64_t first;  /* of the segment read last: its first value, ... */
    uint32_t number; /* ... and which operator it has: CG_SEGMENT_OP, ... */
    uint64_t hash;   /* of what all ranks have in common: lengths, operators, tensors */
} cg_segment_cursor_;

enum { CG_SEGMENT_OP_BYTES_ = 12 * CG_SLOT_COUNT_ }; /* an operator in the table: its stages */

/* Can op select from all segments together? */
static int cg_can_be_global_(const cg_op *op, uint32_t traits) {
    return traits & CG_IS_SELECTION_ && !cg_is_sampled_(op) && !cg_is_transformed_(op) &&
        !(traits & (CG_NEEDS_SUPPORT_ | CG_NEEDS_AUX_ | CG_KEEPS_BLOCKS_ | CG_IS_USER_CODEC_));
}
/* The entry of a segment has these fields beside n. */
static int cg_segment_has_drawn_(uint32_t traits) { return (traits & CG_SAMPLES_RATIO_) != 0; }
static int cg_segment_has_k_(uint32_t traits) { return (traits & CG_IS_SELECTION_) != 0; }
static int cg_segment_has_threshold_(uint32_t traits, int is_global) {
    return traits & CG_KEEPS_LARGEST_ && !is_global;
}
static int cg_segment_has_value_bytes_(const cg_op *op, uint32_t traits) {
    return op->code.arg || traits & (CG_IS_USER_CODEC_ | CG_LENGTH_VARIES_);
}
static uint64_t cg_segments_hash_(uint32_t flags) { return cg_mix64_(flags + CG_GOLDEN_); }
/* tensor_skip: of the first segment its tensor, if the table names tensors. */
static uint64_t cg_segment_hash_(uint64_t h, uint64_t n, uint32_t number, uint32_t tensor_skip) {
    return cg_mix64_(cg_mix64_(h ^ n) + ((uint64_t)number << 32 | tensor_skip));
}
static uint64_t cg_segment_op_hash_(uint64_t h, const uint8_t *stages) {
    for (unsigned i = 0; i < CG_SEGMENT_OP_BYTES_; i += 4) h = cg_mix64_(h ^ cg_get32_(stages + i));
    return h;
}
/* Bytes of an entry at most. */
static uint64_t cg_segment_room_(
    const cg_op *op, const cg_plan_ *plan, uint32_t number, uint32_t flags, int is_global) {
    uint64_t bytes = cg_varint_bytes_(plan->n);
    if (flags & CG_SEGMENTS_TENSORS_) bytes += 5;
    if (flags & CG_SEGMENTS_MIXED_) bytes += cg_varint_bytes_(number);
    if (cg_segment_has_drawn_(plan->traits)) bytes += cg_varint_bytes_(plan->n);
    if (cg_segment_has_k_(plan->traits))
        bytes += cg_varint_bytes_(is_global ? plan->transformed_n : plan->max_selected);
    if (plan->traits & CG_NEEDS_SUPPORT_) bytes += 4;
    if (cg_segment_has_threshold_(plan->traits, is_global)) bytes += 4;
    if (cg_segment_has_value_bytes_(op, plan->traits)) bytes += 10;
    if (plan->traits & CG_INDEX_LENGTH_VARIES_) bytes += 10;
    return bytes;
}
/* Writes the entry of a segment whose header is info; returns where it ends. */
static uint8_t *cg_segment_put_(uint8_t *p, const cg_info *info, uint32_t traits, uint32_t number, uint32_t tensor_skip,
    uint32_t flags, int is_global) {
    if (flags & CG_SEGMENTS_TENSORS_) p = cg_varint_put_(p, tensor_skip);
    p = cg_varint_put_(p, info->n);
    if (flags & CG_SEGMENTS_MIXED_) p = cg_varint_put_(p, number);
    if (cg_segment_has_drawn_(traits)) p = cg_varint_put_(p, info->drawn);
    if (cg_segment_has_k_(traits)) p = cg_varint_put_(p, info->k);
    if (traits & CG_NEEDS_SUPPORT_) {
        cg_put32_(p, info->op.select.size);
        p += 4;
    }
    if (cg_segment_has_threshold_(traits, is_global)) {
        cg_put32_(p, cg_as_bits_(info->threshold));
        p += 4;
    }
    if (cg_segment_has_value_bytes_(&info->op, traits)) p = cg_varint_put_(p, info->value_bytes / 4);
    if (traits & CG_INDEX_LENGTH_VARIES_) p = cg_varint_put_(p, info->index_bytes / 4);
    return p;
}

/* Before the first segment of a packet whose header is *info, which must stay, and traits those of its operator. All of
   the packet is there. */
static cg_status cg_segments_open_(cg_segment_cursor_ *c, const cg_info *info, uint32_t traits, const uint8_t *packet) {
    c->whole = info;
    c->traits = traits;
    c->next_body = packet + CG_HEADER_BYTES;
    c->body = NULL;
    c->at = c->next_body + info->value_bytes;
    c->end = c->at + info->index_bytes;
    c->body_left = info->value_bytes;
    c->n_left = info->n;
    c->drawn_left = info->drawn;
    c->k_left = info->k;
    c->left = info->segments;
    c->tensor = info->tag.tensor;
    c->first = c->number = 0;
    c->ops = NULL;
    c->op_count = 0;
    c->hash = cg_segments_hash_(info->segment_flags);
    if (info->segment_flags & CG_SEGMENTS_GLOBAL && !cg_can_be_global_(&info->op, traits)) return CG_E_CORRUPT;
    if (!(info->segment_flags & CG_SEGMENTS_MIXED_)) return CG_OK;
    if (!cg_varint_get_(&c->at, c->end, info->index_bytes / CG_SEGMENT_OP_BYTES_, &c->op_count)) return CG_E_CORRUPT;
    if (c->op_count * CG_SEGMENT_OP_BYTES_ > (uint64_t)(c->end - c->at)) return CG_E_CORRUPT;
    c->ops = c->at;
    for (uint64_t i = 0; i < c->op_count; i++, c->at += CG_SEGMENT_OP_BYTES_)
        c->hash = cg_segment_op_hash_(c->hash, c->at);
    return CG_OK;
}
/* Operator `number` of the table into *op, and its traits. */
static cg_status cg_segment_op_get_(const cg_segment_cursor_ *c, uint64_t number, cg_op *op, uint32_t *traits) {
    cg_status s;
    memset(op, 0, sizeof *op);
    if (number >= CG_SEGMENT_OPS)
        for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++)
            cg_stage_get_(
                c->ops + (size_t)(number - CG_SEGMENT_OPS) * CG_SEGMENT_OP_BYTES_ + 12 * slot, cg_op_stage_(op, slot));
    s = cg_op_resolve_(op, traits);
    return s == CG_E_ARG ? CG_E_CORRUPT : s;
}
/* The next segment: *info becomes its header, *plan its plan and c->body its values. c->left must not be 0. */
static cg_status cg_segment_next_(cg_segment_cursor_ *c, cg_info *info, cg_plan_ *plan) {
    const cg_info *whole = c->whole;
    const uint32_t flags = whole->segment_flags;
    const cg_info zero = CG_ZERO;
    uint64_t number = 0, skip = 0, values = 0, indices = 0;
    uint32_t traits = c->traits;
    int is_global;
    cg_layout_ lay;
    cg_status s;
    *info = zero;
    info->tag = whole->tag;
    if (flags & CG_SEGMENTS_TENSORS_ && !cg_varint_get_(&c->at, c->end, 0xffffffffu, &skip)) return CG_E_CORRUPT;
    if (!cg_varint_get_(&c->at, c->end, c->n_left, &info->n)) return CG_E_CORRUPT;
    if (flags & CG_SEGMENTS_MIXED_ && !cg_varint_get_(&c->at, c->end, c->op_count + CG_SEGMENT_OPS - 1, &number))
        return CG_E_CORRUPT;
    info->tag.tensor = c->tensor + (uint32_t)skip;
    info->op = whole->op;
    if (number != CG_SEGMENT_OP) {
        s = cg_segment_op_get_(c, number, &info->op, &traits);
        if (s != CG_OK) return s;
    }
    is_global = flags & CG_SEGMENTS_GLOBAL && number == CG_SEGMENT_OP;
    if (traits & CG_IS_PER_RANK_ && info->tag.rank >= info->op.sample.size) return CG_E_CORRUPT;
    if (!cg_segment_has_drawn_(traits)) info->drawn = cg_sampled_n_(&info->op, info->n, &info->tag);
    else if (!cg_varint_get_(&c->at, c->end, c->drawn_left, &info->drawn)) return CG_E_CORRUPT;
    plan->traits = traits;
    plan->n = info->n;
    plan->sampled_n = info->drawn;
    cg_plan_resume_(plan, &info->op);
    info->k = plan->transformed_n;
    if (cg_segment_has_k_(traits) && !cg_varint_get_(&c->at, c->end, c->k_left, &info->k)) return CG_E_CORRUPT;
    if (traits & CG_NEEDS_SUPPORT_) {
        if (c->end - c->at < 4) return CG_E_CORRUPT;
        info->op.select.size = cg_get32_(c->at);
        c->at += 4;
    }
    if (cg_segment_has_threshold_(traits, is_global)) {
        if (c->end - c->at < 4) return CG_E_CORRUPT;
        info->threshold = cg_as_float_(cg_get32_(c->at));
        c->at += 4;
    }
    if (cg_segment_has_value_bytes_(&info->op, traits)) {
        if (!cg_varint_get_(&c->at, c->end, c->body_left / 4, &values)) return CG_E_CORRUPT;
        values *= 4;
    } else {
        s = cg_layout_make_(&info->op, NULL, info->k, &lay);
        if (s != CG_OK) return s;
        values = cg_add_sat_(lay.scale_bytes, lay.codes_bytes);
    }
    indices = cg_index_count_(plan, info->k);
    info->index_code = cg_index_code_(&info->op, plan, indices);
    indices = cg_index_bytes_(info->index_code, plan->universe, indices);
    if (traits & CG_INDEX_LENGTH_VARIES_) {
        if (!cg_varint_get_(&c->at, c->end, c->body_left / 4, &indices)) return CG_E_CORRUPT;
        indices *= 4;
    }
    if (cg_add_sat_(values, indices) > c->body_left || info->drawn > c->drawn_left || info->k > c->k_left)
        return CG_E_CORRUPT;
    s = cg_counts_check_(info, plan, values, indices, is_global);
    if (s != CG_OK) return s;
    if (is_global) plan->max_selected = plan->transformed_n;
    c->first = whole->n - c->n_left;
    c->number = (uint32_t)number;
    c->body = c->next_body;
    c->next_body += (size_t)(values + indices);
    c->body_left -= values + indices;
    c->n_left -= info->n;
    c->drawn_left -= info->drawn;
    c->k_left -= info->k;
    if (c->left == whole->segments && flags & CG_SEGMENTS_TENSORS_) skip = info->tag.tensor;
    c->hash = cg_segment_hash_(c->hash, info->n, (uint32_t)number, (uint32_t)skip);
    c->tensor = info->tag.tensor + 1;
    c->left--;
    return CG_OK;
}
/* After the last segment: is nothing left over? */
static int cg_segments_end_(const cg_segment_cursor_ *c) {
    const uint8_t *p = c->at;
    if (c->left || c->body_left || c->n_left || c->drawn_left || c->k_left || c->end - p > 3) return 0;
    for (; p < c->end; p++)
        if (*p) return 0;
    return 1;
}

/* src/core/sample.h */
/* sample: which coordinates random-k and PermK take, one from each stratum, and the block that is cyclic's turn

   Offers   cg_strata_ with open, seek, next, sample and factor; cg_mulhi64_
   Needs    base, random, stages
   Touches  nothing but its arguments
   Random-k cuts n coordinates into k strata [floor(jn/k), floor((j+1)n/k)) and takes one of each at random; PermK's
   strata are groups of as many neighbours as there are workers. Cyclic takes all values of one block, which are
   its strata. Coordinates ascend; any stratum can be had alone. */

/* floor(j*n/k) without overflow; j <= k <= n. */
static uint64_t cg_stratum_start_(uint64_t n, uint64_t k, uint64_t j) {
    uint64_t r, q, quotient = 0;
    if ((n | j) >> 32 == 0) return j * n / k;
    q = n / k;
    r = n % k;
    /* j*r/k bit by bit; remainder < k throughout */
    for (uint64_t bit = (uint64_t)1 << 63, remainder = 0; bit; bit >>= 1) {
        quotient <<= 1;
        if (remainder >= k - remainder) {
            remainder -= k - remainder;
            quotient++;
        } else remainder += remainder;
        if (j & bit) {
            if (remainder >= k - r) {
                remainder -= k - r;
                quotient++;
            } else remainder += r;
        }
    }
    return j * q + quotient;
}
/* The upper half of a*b. */
static uint64_t cg_mulhi64_(uint64_t a, uint64_t b) {
    uint64_t al = a & 0xffffffffu, ah = a >> 32, bl = b & 0xffffffffu, bh = b >> 32;
    uint64_t mid = ah * bl + (al * bl >> 32), mid2 = al * bh + (mid & 0xffffffffu);
    return ah * bh + (mid >> 32) + (mid2 >> 32);
}
/* How a sample's coordinates go on: one of each stratum at random, one of each group of equal length, or neighbours. */
enum { CG_WALK_STRATA_, CG_WALK_GROUPS_, CG_WALK_BLOCK_ };
static int cg_sample_walk_(const cg_op *op); /* in core/rows.h */

/* Cyclic, n values in B blocks of k = ceil(n/B): where the block whose turn it is begins. Blocks begin at equal
   distances, and the last one ends at n, so that neighbours share a value at most. More blocks than values: blocks of
   one value each, over and over. */
static uint64_t cg_cyclic_start_(uint64_t n, uint64_t k, uint64_t blocks, uint64_t turn) {
    if (blocks >= n) return turn % n;
    if (blocks == 1) return 0;
    return cg_stratum_start_(n - k, blocks - 1, turn);
}
/* The current stratum. */
typedef struct cg_strata_ {
    uint64_t n, k;                  /* coordinates, strata */
    uint64_t base_length, longer_n; /* n = base_length*k + longer_n: so many strata are longer by one */
    uint64_t stratum;               /* its number */
    uint64_t start;                 /* its coordinates are [start, start + length) */
    uint64_t remainder;             /* stratum*n mod k */
    uint64_t length;
    uint64_t key;                 /* shared by all ranks */
    cg_key_ block_key;            /* of the 65536 strata around the current one */
    uint32_t permk_workers, rank; /* PermK: the length of every stratum, and whose coordinate */
    uint32_t stride;              /* from each start to the next, if they are all alike; 0: random-k */
    uint64_t first;               /* and the first of them */
    uint64_t blocks, turn;        /* cyclic: how many there are, and which; 0: another sample */
} cg_strata_;

/* Goes to stratum j < k. */
static void cg_strata_seek_(cg_strata_ *s, uint64_t j) {
    s->stratum = j;
    if (s->stride) {
        s->start = s->first + j * s->stride;
        return;
    }
    s->start = cg_stratum_start_(s->n, s->k, j);
    s->remainder = j * s->n - s->start * s->k; /* less than k, so wrapping products cancel */
    s->length = s->base_length + (s->longer_n >= s->k - s->remainder);
    s->block_key = cg_block_key_(s->key, j >> 16);
}
/* At stratum j of the packet's sample; info has n, drawn > 0, op.sample and tag. */
static void cg_strata_open_(cg_strata_ *s, const cg_info *info, uint64_t j) {
    s->n = info->n;
    s->k = info->drawn;
    s->key = cg_stage_key_(&info->op.sample, &info->tag);
    s->rank = info->tag.rank;
    s->permk_workers = 0;
    s->stride = 0;
    s->first = s->blocks = s->turn = 0;
    s->base_length = s->n / s->k;
    s->longer_n = s->n % s->k;
    s->length = 0;
    switch (cg_sample_walk_(&info->op)) {
    case CG_WALK_GROUPS_: s->length = s->stride = s->permk_workers = info->op.sample.size; break;
    case CG_WALK_BLOCK_:
        s->stride = 1;
        s->blocks = info->op.sample.size;
        s->turn = info->tag.step % s->blocks;
        s->first = cg_cyclic_start_(s->n, s->k, s->blocks, s->turn);
        break;
    default: break;
    }
    cg_strata_seek_(s, j);
}
CG_INLINE_ void cg_strata_next_(cg_strata_ *s) {
    if (s->stride) {
        s->stratum++;
        s->start += s->stride;
        return;
    }
    s->start += s->length;
    s->remainder = s->longer_n >= s->k - s->remainder ? s->remainder - (s->k - s->longer_n)
                                                      : s->remainder + s->longer_n;
    s->length = s->base_length + (s->longer_n >= s->k - s->remainder);
    if ((++s->stratum & 0xffff) == 0) s->block_key = cg_block_key_(s->key, s->stratum >> 16);
}
/* The coordinate that is taken from the current stratum. */
CG_INLINE_ uint64_t cg_strata_sample_(const cg_strata_ *s) {
    uint32_t c = (uint32_t)(s->stratum & 0xffff), h;
    cg_key_ swapped;
    if (s->permk_workers) return s->start + cg_permk_index_(s->key, s->stratum, s->permk_workers, s->rank);
    if (s->stride) return s->start;
    h = cg_hash32_(s->block_key, c);
    if (CG_LIKELY_(s->length >> 32 == 0)) return s->start + ((uint64_t)h * s->length >> 32);
    swapped.a = s->block_key.b;
    swapped.b = s->block_key.a;
    return s->start + cg_mulhi64_((uint64_t)h << 32 | cg_hash32_(swapped, c), s->length);
}
/* One over the share of steps in which the coordinate's turn comes; cyclic only. */
CG_NOINLINE_ float cg_cyclic_factor_(const cg_strata_ *s) {
    uint64_t turns = 1;
    if (s->blocks >= s->n) turns = s->blocks / s->n + (s->start < s->blocks % s->n);
    else if (s->k > 1) {
        const uint64_t block = s->turn;
        turns += s->stratum == 0 && block > 0 &&
            cg_stratum_start_(s->n - s->k, s->blocks - 1, block - 1) + s->k > s->start;
        turns += s->stratum == s->k - 1 && block + 1 < s->blocks &&
            cg_stratum_start_(s->n - s->k, s->blocks - 1, block + 1) <= s->start;
    }
    return (float)((double)s->blocks / (double)turns);
}
/* What makes the sample unbiased. */
CG_INLINE_ float cg_strata_factor_(const cg_strata_ *s) { return s->blocks ? cg_cyclic_factor_(s) : (float)s->length; }

/* src/core/transform.h */
/* transform: one block of values rotated or transformed to frequencies, and back

   Offers   cg_transformer_, a row of the table of transforms, with its functions for rotations and the DCT
   Needs    base, random, kernels (rotate, dct), stages
   Touches  nothing but its arguments */

#define CG_ROTATE_SIGN_KEY_ 0x6A09E667F3BCC909u /* so that the signs of a rotation differ from the hashes of a sample */

/* A row of the table of transforms, in core/rows.h. */
typedef struct cg_transformer_ {
    cg_stage_row_ stage;
    uint64_t (*transformed_n)(const cg_op *op, uint64_t sampled_n); /* see core/plan.h */
    size_t block; /* values that are transformed together; 0: none (no transform, or a matrix) */
    void (*apply)(const cg_kernels_ *kernels, const cg_stage *stage, uint64_t key, uint64_t block, const float *from,
        float *v, int inverse);
    /* matrices: writes the factors of x to scratch, and how many bytes of work space that takes behind them */
    cg_status (*factor)(const cg_kernels_ *kernels, const cg_info *info, const float *x, float *scratch);
    uint64_t (*work_bytes)(const cg_op *op);
} cg_transformer_;
static const cg_transformer_ *cg_transformer_of_(const cg_op *op); /* in core/rows.h */

static void cg_apply_rotation_(const cg_kernels_ *kernels, const cg_stage *stage, uint64_t key, uint64_t block,
    const float *from, float *v, int inverse) {
    uint32_t flips[96];
    const cg_key_ block_key = cg_block_key_(key ^ CG_ROTATE_SIGN_KEY_, block);
    for (uint32_t i = 0; i < 32u * stage->arg; i++) flips[i] = cg_hash32_(block_key, i);
    CG_KERNEL_(kernels, rotate_from(from, v, flips, stage->arg, inverse));
}
static void cg_apply_dct_(const cg_kernels_ *kernels, const cg_stage *stage, uint64_t key, uint64_t block,
    const float *from, float *v, int inverse) {
    (void)stage;
    (void)key;
    (void)block;
    if (v != from) memcpy(v, from, 4 * CG_DCT_BLOCK_);
    CG_KERNEL_(kernels, dct(v, inverse));
}
/* Transforms block number `block` from `from`, of any alignment, to v, aligned, which may be the same address. The
   result is finite if the values are: a round multiplies the norm by 2^5, and the norm is at most 2^5 times the largest
   value, so that three rounds make at most 2^20 of it; values from 2^107 on are scaled down first. */
static void cg_transform_block_(const cg_kernels_ *kernels, const cg_op *op, uint64_t key, uint64_t block,
    const float *from, float *v, int inverse) {
    const cg_transformer_ *row = cg_transformer_of_(op);
    const size_t block_size = row->block;
    const uint32_t absmax_bits = CG_KERNEL_(kernels, absmax_bits(from, block_size));
    const int huge = absmax_bits >= 0x75000000u && absmax_bits < CG_INF_BITS_; /* 2^107 */
    const float lift = op->transform.arg == 3 ? 1073741824.0f : 1048576.0f;    /* 2^30 for three rounds, 2^20 */
    if (huge)
        for (size_t i = 0; i < block_size; i++) v[i] = cg_times_(cg_load_(from, i), 1.0f / lift);
    row->apply(kernels, &op->transform, key, block, huge ? v : from, v, inverse);
    if (huge)
        for (size_t i = 0; i < block_size; i++) v[i] = cg_saturate_(cg_times_(v[i], lift));
}

/* src/core/source.h */
/* source: the values that a selection or quantizer sees, as a dense vector, chunk by chunk

   Offers   cg_producer_, cg_source_, cg_source_fetch_, cg_values_view_, cg_producer_make_
   Needs    base, random, sample, transform
   Touches  the caller's x, if a producer makes its values; buffers of the callers
   Other headers may use: cg_producer_
   A source hides whether values lie in memory, are still to be sampled or transformed, or are made by a callback only
   when they are needed, while they are in the cache. */

/* A callback that makes values, so that they are in the cache when they are read. */
typedef struct cg_producer_ {
    /* Makes values [first, first + many) in out and returns the sum of their squares; called from several threads. */
    double (*make)(const void *user, size_t first, size_t many, float *out);
    const void *user;
    size_t n; /* values in all */
    /* CG_CHUNK_ or CG_BLOCK_: unless lazy, make is called once for every step of so many, with out their place in x */
    size_t step;
    int lazy; /* 1: values have no place; any range within a chunk is asked for, at any time, into any buffer */
    uint32_t threshold_hint; /* top-k: a magnitude, as bits, that more than k values are expected to reach, or 0 */
    int started;             /* result, unless lazy: 1 if some or all values have been made */
    double energy;           /* result, unless lazy: the sum of their squares */
    size_t reached_hint;     /* result: how many values reached the hint, or more than the list holds */
} cg_producer_;

typedef struct cg_source_ {
    cg_producer_ *producer; /* NULL: the values have been made */
    const cg_kernels_ *kernels;
    const cg_info *info;         /* n, drawn, op and tag are set */
    const float *x;              /* the values, or what the sample takes them from; any alignment */
    uint64_t count;              /* values before the transform */
    int to_sample, to_transform; /* what is still to be done with x */
    uint32_t clip_bits;          /* the largest magnitude that is left, as bits; CG_INF_BITS_: nothing is cut */
} cg_source_;

static int cg_source_samples_(const cg_source_ *src) { return cg_builds_samples_() && src->to_sample; }
static int cg_source_transforms_(const cg_source_ *src) { return cg_builds_transforms_() && src->to_transform; }
static int cg_source_is_lazy_(const cg_source_ *src) { return src->producer && src->producer->lazy; }
/* Values [first, first + many): where they lie in x, or with x NULL what the lazy producer makes of them in buf. */
static const float *cg_values_view_(const float *x, const cg_producer_ *lazy, size_t first, size_t many, float *buf) {
    if (x) return cg_at_(x, first);
    lazy->make(lazy->user, first, many, buf);
    return buf;
}
/* Makes the step of values from `first` on in x, where x[0] is value 0; returns the sum of their squares. */
static double cg_producer_make_(const cg_producer_ *producer, size_t first, size_t step, float *x) {
    return first < producer->n
        ? producer->make(producer->user, first, cg_min_(step, producer->n - first), cg_at_mut_(x, first))
        : 0.0;
}

/* Values [first, first + count) before the transform, at most CG_CHUNK_: where they lie, or in buf. A sampled value
   that is not finite stays so, and others are scaled without overflow. */
static const float *cg_source_gather_(const cg_source_ *src, size_t first, size_t count, float *buf) {
    size_t index[64];
    cg_strata_ strata;
    const int scaled = !(src->info->op.sample.flags & CG_FLAG_UNSCALED);
    if (cg_source_is_lazy_(src) && !cg_source_samples_(src))
        src->producer->make(src->producer->user, first, count, buf);
    if (!cg_source_samples_(src)) return cg_source_is_lazy_(src) ? buf : cg_at_(src->x, first);
    cg_strata_open_(&strata, src->info, first);
    for (size_t i = 0; i < count; i += 64) { /* ask for 64 cache lines before waiting for the first */
        size_t many = cg_min_(64, count - i);
        for (size_t j = 0; j < many; j++, cg_strata_next_(&strata)) {
            index[j] = (size_t)cg_strata_sample_(&strata);
            if (!cg_source_is_lazy_(src)) CG_PREFETCH_(cg_at_(src->x, index[j]));
            buf[i + j] = scaled ? cg_strata_factor_(&strata) : 1.0f;
        }
        for (size_t j = 0; j < many; j++) {
            float f;
            if (cg_source_is_lazy_(src)) src->producer->make(src->producer->user, index[j], 1, &f);
            else f = cg_load_(src->x, index[j]);
            buf[i + j] = cg_is_finite_(f) ? cg_saturate_(cg_times_(f, buf[i + j])) : f;
        }
    }
    return buf;
}
/* Values [first, first + count) after the transform, which must lie in one chunk: where they lie, or in buf, which has
   room for CG_CHUNK_. Whole blocks are transformed, so buf may hold more around them. */
static const float *cg_source_fetch_whole_(const cg_source_ *src, size_t first, size_t count, float *buf) {
    const int in_buf = cg_source_samples_(src) || cg_source_is_lazy_(src);
    size_t block_size, base, end, available;
    uint64_t key;
    if (!in_buf && !cg_source_transforms_(src)) return cg_at_(src->x, first);
    if (!cg_source_transforms_(src)) return cg_source_gather_(src, first, count, buf);
    key = cg_stage_key_(&src->info->op.transform, &src->info->tag);
    block_size = cg_transformer_of_(&src->info->op)->block;
    base = first / block_size * block_size;
    end = (first + count + block_size - 1) / block_size * block_size;
    available = cg_min_(end, (size_t)src->count) - base;
    if (in_buf) cg_source_gather_(src, base, available, buf);
    for (size_t b = base; b < end; b += block_size) {
        float *v = buf + (b - base);
        const float *from = in_buf ? v : cg_at_(src->x, b);
        if (b - base + block_size > available) { /* the last block is filled with zeros */
            size_t in_block = available - (b - base);
            if (!in_buf) memcpy(v, from, 4 * in_block);
            memset(v + in_block, 0, 4 * (block_size - in_block));
            from = v;
        }
        cg_transform_block_(src->kernels, &src->info->op, key, b / block_size, from, v, 0);
    }
    return buf + (first - base);
}
/* The same, cut to the largest magnitude that is left. */
static const float *cg_source_fetch_(const cg_source_ *src, size_t first, size_t count, float *buf) {
    const float *v = cg_source_fetch_whole_(src, first, count, buf);
    const int in_buf = cg_source_samples_(src) || cg_source_transforms_(src) || cg_source_is_lazy_(src);
    float *out = in_buf ? buf + (v - buf) : buf;
    if (!cg_builds_clips_() || src->clip_bits == CG_INF_BITS_) return v;
    CG_KERNEL_(src->kernels, cut(v, count, src->clip_bits, out));
    return out;
}

/* src/core/select/list.h */
/* list: lists of selected (index, value) pairs in scratch, and their k-th largest magnitude

   Offers   cg_list_ with its operations and its place in scratch, cg_scratch_bytes_, cg_sign_filter_, cg_kth_
   Needs    base, kernels (CG_SLACK_), stages, plan, transform (bytes of work)
   Touches  the caller's scratch
   Other headers may use: cg_list_, cg_list_add_, cg_list_open_
   Magnitudes are compared as bits: those of a float without its sign, as an integer. Every finite float is below
   CG_INF_BITS_, and NaN is above, so that whatever selects the largest finds what is not finite. */

typedef struct cg_list_ {
    uint32_t *index_low; /* indices modulo 2^32, ascending */
    float *value;
    uint64_t *segment_start; /* [s]: how many entries have an index below s*2^32; segment_count + 1 of them */
    uint64_t segment_count;
    size_t count, capacity; /* entries; arrays are longer than capacity, see cg_list_allocated_n_ */
    int has_all_ties;       /* 0: entries with the smallest magnitude in the list have equals that are not in it */
    int sum_magnitudes;     /* 1: cg_filter_vector_ sums the magnitudes of all values, selected or not */
    double magnitude_sum;   /* that sum, in f64 by chunks and blocks */
    double block_sum;       /* the part of the current block */
    void *work;             /* before the list: of the quantizer, if cg_rans_scratch_ says that it needs some */
    float *materialized;    /* behind the list: the whole transformed vector, if cg_needs_materialized_; factors */
} cg_list_;

/* Entries that a list needs while op selects. Exact top-k and its relatives look for k among
   up to twice as many candidates and a block, and fall back to counting passes where those do not fit. */
static size_t cg_list_capacity_(const cg_op *op, const cg_plan_ *plan) {
    uint64_t capacity = plan->transformed_n;
    if (plan->traits & CG_KEEPS_LARGEST_) capacity = cg_add_sat_(cg_mul_sat_(plan->max_selected, 2), CG_BLOCK_);
    /* by chunks: the candidates of one beside what the chunks before have kept */
    else if (plan->traits & CG_KEEPS_EXACTLY_) capacity = cg_add_sat_(plan->max_selected, op->select.size);
    return (size_t)(capacity < plan->transformed_n ? capacity : plan->transformed_n);
}
/* Entries to allocate: filters check the capacity after each chunk, and write CG_SLACK_ entries beyond their result.
   Never fewer for a longer vector: PermK leaves some ranks a value less than others, with the same scratch. */
static uint64_t cg_list_allocated_n_(uint64_t capacity, uint64_t transformed_n) {
    const uint64_t filled = cg_add_sat_(capacity, CG_CHUNK_);
    return cg_add_sat_(filled < transformed_n ? filled : transformed_n, CG_SLACK_);
}
/* Must the sampled or transformed vector be stored as a whole, for a selection or a user codec? */
static int cg_needs_materialized_(const cg_op *op, const cg_plan_ *plan) {
    if (cg_is_clipped_(op) && plan->traits & CG_IS_USER_CODEC_ && !(plan->traits & CG_IS_SELECTION_)) return 1;
    return !(plan->traits & CG_IS_MATRIX_) && (op->sample.id || op->transform.id) &&
        plan->traits & (CG_IS_SELECTION_ | CG_IS_USER_CODEC_);
}
/* Bytes of scratch at any alignment that compressing takes; 0: none; CG_TOO_LARGE_ on overflow. */
static uint64_t cg_scratch_bytes_(const cg_op *op, const cg_plan_ *plan) {
    const uint64_t transformed_n = plan->transformed_n;
    uint64_t bytes = cg_rans_scratch_(&op->quantize, plan->max_selected);
    if (plan->traits & CG_IS_SELECTION_) {
        bytes = cg_add_sat_(bytes, cg_mul_sat_(8, cg_list_allocated_n_(cg_list_capacity_(op, plan), transformed_n)));
        bytes = cg_add_sat_(bytes, 8 * ((transformed_n >> 32) + 2));
    }
    if (cg_needs_materialized_(op, plan)) bytes = cg_add_sat_(bytes, cg_mul_sat_(4, transformed_n));
    if (plan->traits & CG_IS_MATRIX_)
        bytes = cg_add_sat_(cg_mul_sat_(4, cg_add_sat_(transformed_n, 2)), cg_transformer_of_(op)->work_bytes(op));
    return bytes ? cg_add_sat_(bytes, 64) : 0;
}
/* An empty list in scratch, which has cg_scratch_bytes_ or is NULL if that is 0. The entries are not initialised. */
static void cg_list_in_scratch_(cg_list_ *list, const cg_op *op, const cg_plan_ *plan, void *scratch) {
    const uint64_t transformed_n = plan->transformed_n;
    uint8_t *p;
    memset(list, 0, sizeof *list);
    if (!scratch) return;
    p = (uint8_t *)scratch + (64 - ((uintptr_t)scratch & 63)) % 64;
    list->work = p;
    p += (size_t)cg_rans_scratch_(&op->quantize, plan->max_selected);
    if (plan->traits & CG_IS_SELECTION_) {
        size_t allocated_n;
        list->capacity = cg_list_capacity_(op, plan);
        list->segment_count = transformed_n ? ((transformed_n - 1) >> 32) + 1 : 1;
        allocated_n = (size_t)cg_list_allocated_n_(list->capacity, transformed_n);
        list->segment_start = (uint64_t *)(void *)p;
        p += 8 * (size_t)(list->segment_count + 1);
        list->index_low = (uint32_t *)(void *)p;
        p += 4 * allocated_n;
        list->value = (float *)(void *)p;
        p += 4 * allocated_n;
    }
    list->materialized = (float *)(void *)p;
}
/* The same for n values, for other headers. */
CG_OFFERED_ void cg_list_open_(cg_list_ *list, const cg_op *op, uint64_t n, void *scratch) {
    const cg_plan_ plan = cg_plan_of_(op, n);
    cg_list_in_scratch_(list, op, &plan, scratch);
}

/* To be called before values from index i on are listed, at least for every multiple of CG_CHUNK_. */
CG_INLINE_ void cg_list_begin_segment_(cg_list_ *list, size_t i) {
    if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
}
/* Appends an entry; the caller has checked the capacity, and marks segments itself. */
CG_INLINE_ void cg_list_add_(cg_list_ *list, size_t i, float value) {
    list->index_low[list->count] = (uint32_t)i;
    list->value[list->count++] = value;
}
/* After the last entry. */
static void cg_list_close_(cg_list_ *list) { list->segment_start[list->segment_count] = list->count; }

/* Whose magnitudes count: those of all values, or only of the positive or of the negative ones. The key of a value is
   (bits ^ sign_flip) & keep_mask: its magnitude, or with the wrong sign at least 2^31, which is above every bound. */
typedef struct cg_sign_filter_ {
    uint32_t sign_flip, keep_mask;
} cg_sign_filter_;
static const cg_sign_filter_ cg_both_signs_ = { 0, CG_ABS_MASK_ };
CG_INLINE_ uint32_t cg_magnitude_key_(float v, cg_sign_filter_ filter) {
    return (cg_as_bits_(v) ^ filter.sign_flip) & filter.keep_mask;
}

enum { CG_FEW_ = 16, CG_FEW_AMONG_ = 1024 };
/* cg_kth_ for a kth of at most CG_FEW_: keeps the largest in order. v may have any alignment. */
static uint32_t cg_kth_of_few_(
    const float *v, size_t n, size_t *kth, uint32_t lo, uint32_t hi, cg_sign_filter_ filter) {
    uint32_t largest[CG_FEW_], least = lo; /* keys below `least` are not among them */
    size_t count = 0, above = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t m = cg_magnitude_key_(cg_load_(v, i), filter);
        if (m >= least && m <= hi) {
            size_t j = count < *kth ? count++ : count - 1;
            for (; j > 0 && largest[j - 1] < m; j--) largest[j] = largest[j - 1];
            largest[j] = m;
            if (count == *kth) least = largest[count - 1] + 1;
        }
    }
    while (largest[above] != largest[*kth - 1]) above++;
    lo = largest[*kth - 1];
    *kth -= above;
    return lo;
}
/* The kth largest key (kth from 1) among those in [lo, hi], of which there are at least *kth. Histograms of 2048 bins
   narrow the range until a few are left to sort. *kth becomes the position among its equals: so many of them, in the
   order of their indices, are needed beside all larger ones. v is aligned. */
static uint32_t cg_kth_(const float *v, size_t n, size_t *kth, uint32_t lo, uint32_t hi, cg_sign_filter_ filter) {
    enum { FEW = 64 };
    const unsigned bin_bits = n < 2048 ? 8 : 11; /* clearing the bins should not take longer than filling them */
    size_t bins[2048];
    uint32_t few[FEW];
    if (*kth <= CG_FEW_ && n <= CG_FEW_AMONG_) return cg_kth_of_few_(v, n, kth, lo, hi, filter);
    for (;;) {
        uint32_t width = hi - lo, shift = width >> bin_bits ? cg_log2_(width) - (bin_bits - 1) : 0,
                 bin = width >> shift;
        size_t count = 0;
        memset(bins, 0, sizeof bins[0] * (bin + 1));
        for (size_t i = 0; i < n; i++) {
            uint32_t m = cg_magnitude_key_(v[i], filter) - lo;
            if (m <= width) bins[m >> shift]++;
        }
        for (; bin > 0 && bins[bin] < *kth; bin--) *kth -= bins[bin];
        lo += bin << shift;
        if (hi - lo >= 1u << shift) hi = lo + ((1u << shift) - 1u);
        if (lo == hi) return lo;
        if (bins[bin] > FEW) continue;
        for (size_t i = 0; i < n; i++) { /* insertion sort, largest first */
            uint32_t m = cg_magnitude_key_(v[i], filter);
            if (m - lo <= hi - lo) {
                size_t j = count++;
                for (; j > 0 && few[j - 1] < m; j--) few[j] = few[j - 1];
                few[j] = m;
            }
        }
        lo = few[*kth - 1];
        for (count = 0; few[count] != lo; count++) {}
        *kth -= count; /* those above it */
        return lo;
    }
}
/* Moves entries [from, to) whose magnitude is above kth_bits, and the first *ties_left that equal it, to *kept on.
   *kept <= from; both counts are updated. */
static void cg_list_compact_(
    cg_list_ *list, size_t from, size_t to, size_t *kept, uint32_t kth_bits, size_t *ties_left) {
    size_t kept_n = *kept, ties = *ties_left, i = from;
    for (; i < to && ties; i++) { /* while equals are taken */
        uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
        list->index_low[kept_n] = list->index_low[i];
        list->value[kept_n] = list->value[i];
        kept_n += m >= kth_bits;
        ties -= m == kth_bits;
    }
    for (; i < to; i++) { /* all have been taken */
        uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
        list->index_low[kept_n] = list->index_low[i];
        list->value[kept_n] = list->value[i];
        kept_n += m > kth_bits;
    }
    *kept = kept_n;
    *ties_left = ties;
}

/* src/core/select/filter.h */
/* filter: one pass over the values that lists those whose magnitude reaches a threshold

   Offers   filters of a vector, of values that a producer makes, of ties; cg_count_above_all_; threads
   Needs    base, kernels (filter, count_above), source, select/list
   Touches  the list; x, if a producer makes it
   Other headers may use: CG_PARALLEL_, cg_filter_lazy_, cg_thread_count_
   Every filter empties the list first, and leaves it ascending, with its segments. NaN reaches every threshold. */

/* Makes x, chunk by chunk, and filters it on the way. All of x is made in any case; 0: the list did not hold all. */
static int cg_filter_producing_(const cg_kernels_ *kernels, const float *x, size_t n, uint32_t threshold_bits,
    cg_list_ *list, cg_producer_ *producer) {
    double energy = 0.0;
    int fits = 1;
    producer->started = 1;
    list->count = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        if (i % CG_BLOCK_ == 0) {
            producer->energy += energy;
            energy = 0.0;
        }
        energy += cg_producer_make_(producer, i, CG_CHUNK_, (float *)(uintptr_t)x);
        if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
        if (fits)
            list->count += CG_KERNEL_(kernels,
                filter(cg_at_(x, i), cg_min_(CG_CHUNK_, n - i), threshold_bits, (uint32_t)i,
                    list->index_low + list->count, list->value + list->count));
        fits = list->count <= list->capacity;
    }
    producer->energy += energy;
    producer->reached_hint = list->count;
    list->segment_start[list->segment_count] = list->count;
    return fits;
}
/* Filters a vector in memory, of any alignment. 0: the list did not hold all, and sums and segments are incomplete. */
static int cg_filter_vector_(
    const cg_kernels_ *kernels, const float *x, size_t n, uint32_t threshold_bits, cg_list_ *list) {
    list->count = 0;
    list->magnitude_sum = list->block_sum = 0.0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
        if (list->sum_magnitudes) {
            if (i % CG_BLOCK_ == 0) {
                list->magnitude_sum += list->block_sum;
                list->block_sum = 0.0;
            }
            list->block_sum += cg_lane_sum_of_(kernels, cg_at_(x, i), cg_min_(CG_CHUNK_, n - i), CG_SUM_ABS_);
        }
        list->count += CG_KERNEL_(kernels,
            filter(cg_at_(x, i), cg_min_(CG_CHUNK_, n - i), threshold_bits, (uint32_t)i, list->index_low + list->count,
                list->value + list->count));
        if (list->count > list->capacity) return 0;
    }
    list->segment_start[list->segment_count] = list->count;
    list->magnitude_sum += list->block_sum;
    return 1;
}
/* Threads, at most 64. CG_PARALLEL_ stands before a for loop over i < many, whose rounds are independent: `many` is a
   part of its text. CG_CODED_WAVE_: blocks that are entropy coded at once; without threads each block is written where
   it stays. */
#if defined(COMPGRAD_OPENMP) && defined(_OPENMP)
#  include <omp.h>
static int cg_thread_count_(void) {
    const int many = omp_get_max_threads();
    return many < 1 ? 1 : many > 64 ? 64 : many;
}
#  define CG_PARALLEL_ _Pragma("omp parallel for schedule(static, 1) if (many > 1)")
#  define CG_CODED_WAVE_ CG_WAVE_
#else
CG_INLINE_ int cg_thread_count_(void) { return 1; }
#  define CG_PARALLEL_
#  define CG_CODED_WAVE_ 1u
#endif

/* Filters values [first, end) of a lazy producer into entries [offset, offset + capacity) of the list, with indices
   modulo 2^32; returns how many, or SIZE_MAX if they did not fit. One thread's slice of the vector and of the list. */
CG_NOINLINE_ size_t cg_filter_slice_(const cg_kernels_ *kernels, const cg_producer_ *lazy, size_t first, size_t end,
    uint32_t threshold_bits, const cg_list_ *list, size_t offset, size_t capacity) {
    float buf[CG_CHUNK_];
    size_t count = 0;
    cg_fenv_ env = cg_fenv_enter_();
    for (size_t i = first; i < end && count + CG_CHUNK_ + CG_SLACK_ <= capacity; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, end - i);
        count += CG_KERNEL_(kernels,
            filter(cg_values_view_(NULL, lazy, i, many, buf), many, threshold_bits, (uint32_t)i,
                list->index_low + offset + count, list->value + offset + count));
    }
    cg_fenv_leave_(env);
    return count + CG_CHUNK_ + CG_SLACK_ <= capacity ? count : SIZE_MAX;
}
/* Slices of a lazy producer's values by threads, put together in order. 0: a slice did not fit, there is one thread, or
   the vector is too short or has several segments; then the list is unusable, and cg_filter_serial_ has to do it. */
static int cg_filter_threaded_(
    const cg_kernels_ *kernels, const cg_producer_ *lazy, size_t n, uint32_t threshold_bits, cg_list_ *list) {
    const int many = cg_thread_count_();
    const size_t capacity = list->capacity / (size_t)many, slice_n = (n / (size_t)many / CG_CHUNK_ + 1) * CG_CHUNK_;
    size_t count[64];
    if (many < 2 || n < CG_BLOCK_ * (size_t)many || list->segment_count > 1) return 0;
    CG_PARALLEL_
    for (int i = 0; i < many; i++)
        count[i] = cg_filter_slice_(kernels, lazy, cg_min_(n, slice_n * (size_t)i),
            cg_min_(n, slice_n * (size_t)(i + 1)), threshold_bits, list, capacity * (size_t)i, capacity);
    for (int i = 0; i < many; i++)
        if (count[i] == SIZE_MAX) return 0;
    list->count = 0;
    for (int i = 0; i < many; i++) {
        memmove(list->index_low + list->count, list->index_low + capacity * (size_t)i, 4 * count[i]);
        memmove(list->value + list->count, list->value + capacity * (size_t)i, 4 * count[i]);
        list->count += count[i];
    }
    list->segment_start[0] = 0;
    list->segment_start[1] = list->count;
    return 1;
}
CG_NOINLINE_ int cg_filter_serial_(
    const cg_kernels_ *kernels, const cg_producer_ *lazy, size_t n, uint32_t threshold_bits, cg_list_ *list) {
    float buf[CG_CHUNK_];
    list->count = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, n - i);
        if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
        list->count += CG_KERNEL_(kernels,
            filter(cg_values_view_(NULL, lazy, i, many, buf), many, threshold_bits, (uint32_t)i,
                list->index_low + list->count, list->value + list->count));
        if (list->count > list->capacity) return 0;
    }
    list->segment_start[list->segment_count] = list->count;
    return 1;
}
/* Filters the n values of a lazy producer. 0: the list did not hold all. */
static int cg_filter_lazy_(
    const cg_kernels_ *kernels, const cg_producer_ *lazy, size_t n, uint32_t threshold_bits, cg_list_ *list) {
    return cg_filter_threaded_(kernels, lazy, n, threshold_bits, list) ||
        cg_filter_serial_(kernels, lazy, n, threshold_bits, list);
}
/* Lists the k largest, of which kth_bits is the smallest magnitude and `above` are larger: those, and the first that
   equal kth_bits. x, or with x NULL the lazy producer, has no NaN. k <= capacity. */
CG_NOINLINE_ void cg_filter_with_ties_(const cg_kernels_ *kernels, const float *x, const cg_producer_ *lazy, size_t n,
    uint32_t kth_bits, size_t above, size_t k, cg_list_ *list) {
    size_t ties_left = k - above, from, found;
    float buf[CG_CHUNK_];
    list->count = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, n - i);
        if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
        if (list->count == k && (uint64_t)(n - 1) >> 32 == 0) break;
        from = list->count;
        found = CG_KERNEL_(kernels,
            filter(cg_values_view_(x, lazy, i, many, buf), many, ties_left ? kth_bits : kth_bits + 1, (uint32_t)i,
                list->index_low + from, list->value + from));
        cg_list_compact_(list, from, from + found, &list->count, kth_bits, &ties_left);
    }
    list->segment_start[list->segment_count] = list->count;
}
/* *above: how many magnitudes are above threshold_bits. Returns the largest magnitude as bits. */
CG_NOINLINE_ uint32_t cg_count_above_all_(const cg_kernels_ *kernels, const float *x, const cg_producer_ *lazy,
    size_t n, uint32_t threshold_bits, size_t *above) {
    float buf[CG_CHUNK_];
    uint32_t absmax_bits = 0;
    *above = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, n - i);
        absmax_bits = cg_max32_(absmax_bits,
            CG_KERNEL_(kernels, count_above(cg_values_view_(x, lazy, i, many, buf), many, threshold_bits, above)));
    }
    return absmax_bits;
}

/* src/core/select/topk.h */
/* topk: candidates for the k largest magnitudes

   Offers   cg_topk_candidates_, cg_threshold_estimate_
   Needs    base, random, source, select/list, select/filter
   Touches  the list; x, if a producer makes it
   Other headers may use: cg_kth_magnitude_
   A threshold from a random sample, a little too low, is followed by one filter pass; the exact selection among what
   passed is left to cg_list_keep_topk_. Where the candidates do not fit (ties, or an unlucky sample), passes that
   count narrow the interval of the k-th magnitude. */

/* A key in [lo, hi) that a few more than target_n of n values are expected to reach, from a random sample of the keys
   in [lo, hi). inside_n: how many of n keys are in [lo, hi), 0: not known. salt: another one gives another sample.
   sample: room for min(n, 16384) floats; n >= 1024. */
static uint32_t cg_threshold_estimate_(const float *x, const cg_producer_ *lazy, size_t n, uint64_t target_n,
    uint64_t inside_n, uint32_t lo, uint32_t hi, uint32_t salt, float *sample, cg_sign_filter_ filter) {
    size_t sample_n = n / 64 < 1024 ? 1024 : n / 64 > 16384 ? 16384 : n / 64, count = 0, kth;
    size_t stride = n / sample_n, index[64], many;
    cg_key_ key = cg_block_key_(salt, n);
    double expected, spread = 1.0;
    for (size_t i = 0; i < sample_n; i += many) { /* prefetch 64 cache lines before the first is used */
        many = cg_min_(64, sample_n - i);
        for (size_t j = 0; j < many; j++) {
            index[j] = (i + j) * stride +
                (size_t)((uint64_t)cg_hash32_(key, (uint32_t)(i + j)) * (stride < 0xffffffffu ? stride : 0xffffffffu) >>
                    32);
            if (x) CG_PREFETCH_(cg_at_(x, index[j]));
        }
        for (size_t j = 0; j < many; j++) {
            float one;
            float f = cg_load_(cg_values_view_(x, lazy, index[j], 1, &one), 0);
            uint32_t m = cg_magnitude_key_(f, filter);
            sample[count] = f;
            count += (m >= lo) & (m < hi);
        }
    }
    if (!count) return lo + (hi - lo) / 2;
    expected = (inside_n ? (double)count / (double)inside_n : (double)sample_n / (double)n) * (double)target_n;
    while (spread * spread < expected) spread += 1.0; /* a square root, roughly */
    expected += 3.0 * spread + 4.0;
    if (expected >= (double)count) return lo;
    kth = (size_t)expected;
    return cg_kth_(sample, count, &kth, lo, hi - 1, filter);
}

/* Lists all values that reach *threshold_bits, at least k; or, with has_all_ties 0, exactly the k largest, where
   *threshold_bits is the k-th magnitude itself. 1 <= k <= n. producer: NULL; or it makes x, and its hint replaces the
   first estimate; or it is lazy, and x is NULL. CG_E_NONFINITE: Inf or NaN among the values. */
static cg_status cg_topk_candidates_(const cg_kernels_ *kernels, const float *x, size_t n, size_t k, cg_list_ *list,
    cg_producer_ *producer, uint32_t *threshold_bits) {
    uint32_t lo = 0, hi = 0x80000000u; /* the k-th key is in [lo, hi) */
    size_t at_least_lo = n, at_least_hi = 0;
    const cg_producer_ *lazy = producer && producer->lazy ? producer : NULL;
    if (x && !producer && n <= CG_FEW_AMONG_ && k <= CG_FEW_) { /* a look at each value costs less than a list of all */
        const uint32_t largest = CG_KERNEL_(kernels, absmax_bits(x, n));
        size_t ties = k;
        if (largest >= CG_INF_BITS_) return CG_E_NONFINITE;
        *threshold_bits = k == 1 ? largest : cg_kth_of_few_(x, n, &ties, 0, largest, cg_both_signs_);
        cg_filter_with_ties_(kernels, x, NULL, n, *threshold_bits, k - ties, k, list);
        list->has_all_ties = 0;
        return CG_OK;
    }
    if (lazy) producer = NULL;
    list->has_all_ties = 1;
    for (uint32_t tries = 0;; tries++) {
        *threshold_bits = lo;
        if (producer) *threshold_bits = producer->threshold_hint;
        else if (n > CG_CHUNK_) {
            if (tries < 8)
                *threshold_bits = cg_threshold_estimate_(
                    x, lazy, n, k - at_least_hi, at_least_lo - at_least_hi, lo, hi, tries, list->value, cg_both_signs_);
            else *threshold_bits = lo + (hi - lo) / 2;
            if (*threshold_bits == 0 && hi > 1) *threshold_bits = 1; /* zeros may be many, and need no sorting */
        }
        if (producer   ? cg_filter_producing_(kernels, x, n, *threshold_bits, list, producer)
                : lazy ? cg_filter_lazy_(kernels, lazy, n, *threshold_bits, list)
                       : cg_filter_vector_(kernels, x, n, *threshold_bits, list)) {
            producer = NULL;
            if (list->count >= k) break;
            hi = *threshold_bits;
            at_least_hi = list->count;
            if (hi == 1) { /* all that are not zero are in the list, so the k-th is zero */
                if (CG_KERNEL_(kernels, absmax_bits(list->value, list->count)) >= CG_INF_BITS_) return CG_E_NONFINITE;
                cg_filter_with_ties_(kernels, x, lazy, n, 0, list->count, k, list);
                list->has_all_ties = 0;
                *threshold_bits = 0;
                return CG_OK;
            }
        } else {
            size_t above;
            producer = NULL;
            if (cg_count_above_all_(kernels, x, lazy, n, *threshold_bits, &above) >= CG_INF_BITS_)
                return CG_E_NONFINITE;
            if (above < k) { /* at least k reach it, and fewer are above: it is the k-th itself */
                cg_filter_with_ties_(kernels, x, lazy, n, *threshold_bits, above, k, list);
                list->has_all_ties = 0;
                COMPGRAD_ASSERT(list->count == k);
                return CG_OK;
            }
            lo = *threshold_bits + 1;
            at_least_lo = above;
        }
    }
    return CG_KERNEL_(kernels, absmax_bits(list->value, list->count)) >= CG_INF_BITS_ ? CG_E_NONFINITE : CG_OK;
}
/* The rank-th largest magnitude of n values (rank from 1 to n), as bits. *rank becomes its place among its equals:
   so many of them belong to the *rank largest. */
CG_OFFERED_ uint32_t cg_kth_magnitude_(const float *v, size_t n, size_t *rank) {
    return cg_kth_(v, n, rank, 0, CG_ABS_MASK_, cg_both_signs_);
}

/* src/core/select/thresholds.h */
/* thresholds: top-k and selections that estimate its threshold: DGC, SIDCo, MSTop-k

   Offers   cg_selector_, cg_list_keep_topk_, cg_select_topk_, cg_below_sums_of_ and a selection each
   Needs    base, random, kernels, plan, sample (cg_mulhi64_), select/list, select/filter, select/topk
   Touches  the list; k and threshold in info; x, if a producer makes it
   Other headers may use: cg_list_keep_topk_, cg_select_topk_, cg_selector_
   Each selection fills the list, ascending by index, and refuses values that are not finite. */

/* What a selection works on. */
struct cg_selector_;
/* A row of the table of selections, in core/rows.h. */
typedef struct cg_selection_ {
    cg_stage_row_ stage;
    uint64_t (*max_selected)(const cg_op *op, uint64_t n); /* see core/plan.h */
    /* Fills list, ascending by index, and info->threshold; info->k becomes the length of the list, unless the stage
       keeps blocks or takes the indices of a support, where the function sets it. The list is undefined on an error. */
    cg_status (*pick)(const struct cg_selector_ *p);
} cg_selection_;
static const cg_selection_ *cg_selection_of_(const cg_op *op); /* in core/rows.h */

typedef struct cg_selector_ {
    const cg_kernels_ *kernels;
    const cg_extra *side;   /* of the caller: aux and support; may be NULL */
    const float *x;         /* n values of any alignment; NULL: those of a lazy producer, top-k only */
    cg_producer_ *producer; /* top-k: makes x, or is lazy; NULL: x has been made */
    size_t n;
    size_t max_selected;           /* values to keep, at most */
    uint64_t shared_key, rank_key; /* for random numbers that are equal on all ranks, and different */
    cg_list_ *list;                /* result */
    cg_info *info;                 /* op and tag; k and threshold are results */
} cg_selector_;

/* Cuts the list, whose at least k entries all reach threshold_bits, down to the k largest magnitudes, of equal ones
   those with the lowest indices; returns the k-th magnitude as bits. */
static uint32_t cg_list_keep_topk_(const cg_selector_ *p, size_t k, uint32_t threshold_bits) {
    cg_list_ *list = p->list;
    size_t ties_left = k;
    uint32_t kth_bits = cg_kth_(list->value, list->count, &ties_left, threshold_bits,
        CG_KERNEL_(p->kernels, absmax_bits(list->value, list->count)), cg_both_signs_);
    list->count = 0;
    for (uint64_t s = 0, from = 0, to; s < list->segment_count; s++, from = to) {
        to = list->segment_start[s + 1];
        list->segment_start[s] = list->count;
        cg_list_compact_(list, (size_t)from, (size_t)to, &list->count, kth_bits, &ties_left);
    }
    cg_list_close_(list);
    COMPGRAD_ASSERT(list->count == k);
    return kth_bits;
}
/* The k largest of n magnitudes, k <= n; of p it needs neither side nor keys, and of info only threshold. */
static cg_status cg_select_topk_(const cg_selector_ *p, size_t k) {
    uint32_t threshold_bits;
    cg_status s;
    if (!k) {
        p->list->count = 0;
        return CG_OK;
    }
    s = cg_topk_candidates_(p->kernels, p->x, p->n, k, p->list, p->producer, &threshold_bits);
    if (s == CG_OK) p->info->threshold = cg_as_float_(cg_list_keep_topk_(p, k, threshold_bits));
    return s;
}

static cg_status cg_select_topk_by_ratio_(const cg_selector_ *p) { return cg_select_topk_(p, p->max_selected); }
/* All magnitudes above a fixed one. */
static cg_status cg_select_threshold_(const cg_selector_ *p) {
    const uint32_t least = (cg_as_bits_(p->info->op.select.value) & CG_ABS_MASK_) + 1;
    cg_filter_vector_(p->kernels, p->x, p->n, least, p->list);
    return CG_KERNEL_(p->kernels, absmax_bits(p->list->value, p->list->count)) >= CG_INF_BITS_ ? CG_E_NONFINITE : CG_OK;
}

/* sample_n magnitudes, one of every `stride` values, at random places that are the same on all ranks.
   sample_n * stride <= n. */
static void cg_strided_sample_(const cg_selector_ *p, size_t stride, size_t sample_n, float *sample) {
    const cg_key_ key = cg_block_key_(p->shared_key, 0x73616D70u);
    const uint64_t range = stride < 0xffffffffu ? stride : 0xffffffffu;
    size_t index[64];
    for (size_t i = 0; i < sample_n; i += 64) { /* prefetch 64 cache lines before the first is used */
        const size_t many = cg_min_(64, sample_n - i);
        for (size_t j = 0; j < many; j++) {
            index[j] = (i + j) * stride + (size_t)(cg_hash32_(key, (uint32_t)(i + j)) * range >> 32);
            CG_PREFETCH_(cg_at_(p->x, index[j]));
        }
        for (size_t j = 0; j < many; j++) sample[i + j] = cg_as_float_(cg_load_bits_(p->x, index[j]) & CG_ABS_MASK_);
    }
}
/* Selects by an estimated threshold. Too many values (above max_selected) are cut to the k largest, fewer than 80 %
   of k lower the threshold and filter again, up to ten times; then, or if the list overflows, exact top-k decides. */
static cg_status cg_select_by_estimate_(const cg_selector_ *p, size_t k, float threshold) {
    cg_list_ *list = p->list;
    for (int tries = 0; tries < 10; tries++, threshold = cg_times_(threshold, 0.8f)) {
        const uint32_t threshold_bits = cg_as_bits_(threshold) & CG_ABS_MASK_;
        if (!cg_filter_vector_(p->kernels, p->x, p->n, threshold_bits, list)) break;
        if (CG_KERNEL_(p->kernels, absmax_bits(list->value, list->count)) >= CG_INF_BITS_) return CG_E_NONFINITE;
        p->info->threshold = threshold;
        if (list->count > p->max_selected) p->info->threshold = cg_as_float_(cg_list_keep_topk_(p, k, threshold_bits));
        if (list->count >= k - k / 5) return CG_OK;
    }
    return cg_select_topk_(p, k);
}
/* DGC: the threshold is that of a sample of 0.5 % of the values, more of short vectors. */
static cg_status cg_select_dgc_(const cg_selector_ *p) {
    const float ratio = p->info->op.select.value;
    const size_t stride = p->n / 4096 < 1 ? 1 : cg_min_(200, p->n / 4096),
                 sample_n = cg_min_(p->n / stride, p->list->capacity);
    size_t kth = (size_t)cg_k_from_ratio_(ratio, 0, sample_n);
    cg_strided_sample_(p, stride, sample_n, p->list->value);
    return cg_select_by_estimate_(p, (size_t)cg_k_from_ratio_(ratio, 0, p->n),
        cg_as_float_(cg_kth_(p->list->value, sample_n, &kth, 0, CG_ABS_MASK_, cg_both_signs_)));
}
/* SIDCo: fits an exponential distribution to the magnitudes of a sample, in stages: each fits what is above the
   threshold of the stage before, and keeps a quarter of it, the last what is left of the ratio. */
static cg_status cg_select_sidco_(const cg_selector_ *p) {
    const size_t k = (size_t)cg_k_from_ratio_(p->info->op.select.value, 0, p->n);
    const size_t target = p->n / 256 < 8192 ? 8192 : cg_min_(p->n / 256, 65536),
                 stride = p->n / target < 1 ? 1 : p->n / target;
    size_t sample_n = cg_min_(p->n / stride, p->list->capacity);
    double ratio = (double)k / (double)p->n, threshold = 0.0;
    float *sample = p->list->value;
    cg_strided_sample_(p, stride, sample_n, sample);
    if (CG_KERNEL_(p->kernels, absmax_bits(sample, sample_n)) >= CG_INF_BITS_) return CG_E_NONFINITE;
    while (ratio < 1.0) {
        double sum = 0.0, step = -cg_ln_(ratio < 0.25 ? 0.25 : ratio);
        size_t above = 0;
        for (size_t i = 0; i < sample_n; i++) { /* keep those above for the next stage */
            double d = (double)sample[i] - threshold;
            sample[above] = sample[i];
            above += d > 0.0;
            sum += d > 0.0 ? d : 0.0;
        }
        sample_n = above;
        if (!above) break;
        step *= sum / (double)above;
        CG_NO_FMA_(step);
        threshold += step;
        ratio = ratio < 0.25 ? ratio * 4.0 : 1.0;
    }
    return cg_select_by_estimate_(p, k, cg_saturate64_(threshold));
}

/* Sums over the magnitudes below a limit. */
typedef struct cg_below_sums_ {
    double sum, squares;
    uint64_t count;
    uint32_t absmax_bits; /* of all values, below the limit or not */
} cg_below_sums_;
/* limit: as bits. Of each chunk, the sums over all values less those over values that reach the limit; where these are
   so large that rounding would eat the difference, the others are added one by one. The list's entries are overwritten
   unless no value reaches the limit. */
static cg_below_sums_ cg_below_sums_of_(const cg_selector_ *p, uint32_t limit) {
    cg_below_sums_ below = { 0.0, 0.0, 0, 0 };
    for (size_t i = 0; i < p->n; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, p->n - i);
        const float *v = cg_at_(p->x, i);
        const uint32_t absmax_bits = CG_KERNEL_(p->kernels, absmax_bits(v, many));
        double sum = 0.0, squares = 0.0;
        below.absmax_bits = cg_max32_(below.absmax_bits, absmax_bits);
        if (absmax_bits < limit || absmax_bits - limit < 10u << 23) { /* 2^10 times the limit */
            const size_t above = absmax_bits < limit
                ? 0
                : CG_KERNEL_(p->kernels, filter(v, many, limit, 0, p->list->index_low, p->list->value));
            sum = cg_lane_sum_of_(p->kernels, v, many, CG_SUM_ABS_);
            squares = cg_lane_sum_of_(p->kernels, v, many, CG_SUM_SQUARES_);
            if (above) {
                sum -= cg_lane_sum_of_(p->kernels, p->list->value, above, CG_SUM_ABS_);
                squares -= cg_lane_sum_of_(p->kernels, p->list->value, above, CG_SUM_SQUARES_);
            }
            below.count += many - above;
        } else {
            for (size_t j = 0; j < many; j++) {
                uint32_t m = cg_load_bits_(v, j) & CG_ABS_MASK_;
                double d = m < limit ? (double)cg_as_float_(m) : 0.0, square = d * d;
                CG_NO_FMA_(square);
                below.count += m < limit;
                sum += d;
                squares += square;
            }
        }
        below.sum += sum > 0.0 ? sum : 0.0;
        below.squares += squares > 0.0 ? squares : 0.0;
    }
    return below;
}
#define CG_BERNOULLI_KEY_ 0xBB67AE8584CAA73Bu /* so that the random numbers of a selection differ from a quantizer's */

/* MSTop-k: 30 bisections between the mean and the largest magnitude find high_bits, which at most k values reach, and
   low_bits, which more than k reach. All of the former are taken, and what is missing is taken from the values between
   the two: consecutive ones, from a random place on. */
static cg_status cg_select_mstopk_(const cg_selector_ *p) {
    cg_list_ *list = p->list;
    const size_t k = p->max_selected;
    uint32_t threshold_bits, next_bits, absmax_bits, low_bits = 0, high_bits = CG_INF_BITS_;
    double mean, lo = 0.0, hi = 1.0;
    size_t kth = k + 1, certain_n = 0, between_n = 0, start, seen = 0;
    cg_status s;
    if (k >= p->n) return cg_select_topk_(p, k);
    list->sum_magnitudes = 1;
    s = cg_topk_candidates_(p->kernels, p->x, p->n, k + 1, list, NULL, &threshold_bits);
    list->sum_magnitudes = 0;
    if (s != CG_OK) return s;
    absmax_bits = CG_KERNEL_(p->kernels, absmax_bits(list->value, list->count));
    /* more than k values reach a threshold if and only if the (k+1)-th magnitude does: bisecting needs no counting */
    next_bits = cg_kth_(list->value, list->count, &kth, threshold_bits, absmax_bits, cg_both_signs_);
    /* no value reaches Inf, so cg_below_sums_of_ does not touch the list */
    mean = (list->has_all_ties ? list->magnitude_sum : cg_below_sums_of_(p, CG_INF_BITS_).sum) / (double)p->n;
    for (int i = 0; i < 30; i++) {
        double r = (lo + hi) * 0.5, t = r * ((double)cg_as_float_(absmax_bits) - mean);
        uint32_t bits;
        CG_NO_FMA_(t);
        bits = cg_as_bits_(cg_saturate64_(mean + t));
        if (bits > next_bits) {
            high_bits = bits;
            hi = r;
        } else {
            low_bits = bits;
            lo = r;
        }
    }
    if (!list->has_all_ties) threshold_bits = CG_INF_BITS_;
    if (low_bits < threshold_bits) { /* the candidates do not reach down to low_bits: count in another pass */
        size_t above = 0;
        for (size_t i = 0; low_bits && i < p->n; i += CG_CHUNK_)
            CG_KERNEL_(p->kernels, count_above(cg_at_(p->x, i), cg_min_(CG_CHUNK_, p->n - i), low_bits - 1, &above));
        between_n = low_bits ? above : p->n;
    }
    for (size_t i = 0; i < list->count; i++) {
        uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
        certain_n += m >= high_bits;
        if (low_bits >= threshold_bits) between_n += m >= low_bits;
    }
    between_n -= certain_n;
    start = (size_t)cg_mulhi64_(
        cg_mix64_(p->rank_key ^ CG_BERNOULLI_KEY_), (uint64_t)(between_n - (k - certain_n)) + 1);
    p->info->threshold = cg_as_float_(low_bits);
    list->count = 0;
    if (low_bits >= threshold_bits) {
        for (uint64_t g = 0, from = 0, to; g < list->segment_count; g++, from = to) {
            to = list->segment_start[g + 1];
            list->segment_start[g] = list->count;
            for (uint64_t i = from; i < to; i++) {
                uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
                int take = m >= high_bits;
                if (!take && m >= low_bits) {
                    take = seen >= start && seen < start + (k - certain_n);
                    seen++;
                }
                list->index_low[list->count] = list->index_low[i];
                list->value[list->count] = list->value[i];
                list->count += (size_t)take;
            }
        }
    } else {
        for (size_t i = 0; i < p->n; i++) {
            float f = cg_load_(p->x, i);
            uint32_t m = cg_as_bits_(f) & CG_ABS_MASK_;
            int take = m >= high_bits;
            cg_list_begin_segment_(list, i);
            if (!take && m >= low_bits) {
                take = seen >= start && seen < start + (k - certain_n);
                seen++;
            }
            if (take) cg_list_add_(list, i, f);
        }
    }
    cg_list_close_(list);
    COMPGRAD_ASSERT(list->count == k);
    return CG_OK;
}

/* src/core/select/wangni.h */
/* wangni: values kept at random, with probabilities by magnitude (Wangni)

   Offers   cg_select_wangni_, cg_select_wangni_variance_
   Needs    base, random, kernels (bernoulli), quantize/scales (tiny scales), select/thresholds
   Touches  the list
   Magnitudes from a threshold on are certain; a smaller x becomes +-threshold with probability |x|/threshold, which
   is unbiased. The two selections differ in how they find the threshold. */

/* threshold > 0; all values are finite. */
static cg_status cg_select_bernoulli_(const cg_selector_ *p, float threshold) {
    cg_list_ *list = p->list;
    cg_bernoulli_ bernoulli;
    bernoulli.threshold = threshold;
    bernoulli.prescale = cg_is_tiny_(threshold) ? CG_POW2_100_ : 1.0f;
    bernoulli.inv_threshold = 1.0f / cg_times_(threshold, bernoulli.prescale);
    list->count = 0;
    for (size_t i = 0; i < p->n; i += CG_CHUNK_) {
        cg_list_begin_segment_(list, i);
        bernoulli.key = cg_block_key_(p->rank_key ^ CG_BERNOULLI_KEY_, (uint64_t)i >> 16);
        list->count += CG_KERNEL_(p->kernels,
            bernoulli(&bernoulli, cg_at_(p->x, i), cg_min_(CG_CHUNK_, p->n - i), (uint32_t)i,
                list->index_low + list->count, list->value + list->count));
    }
    cg_list_close_(list);
    return CG_OK;
}
/* As many values as the ratio says, in expectation, with probabilities lambda*|x|; two rounds give what values with
   probability 1 leave over to the others. */
static cg_status cg_select_wangni_(const cg_selector_ *p) {
    const double target = (double)p->info->op.select.value * (double)p->n;
    cg_below_sums_ below = cg_below_sums_of_(p, CG_INF_BITS_);
    double lambda;
    float threshold;
    if (below.absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
    if (below.sum == 0.0) return cg_select_bernoulli_(p, CG_FLT_MAX_);
    lambda = target / below.sum;
    threshold = cg_saturate64_(1.0 / lambda);
    for (int i = 0; i < 2; i++) {
        double remaining, kappa;
        below = cg_below_sums_of_(p, cg_as_bits_(threshold));
        remaining = target - (double)(p->n - below.count);
        kappa = lambda * below.sum > 0.0 ? remaining / (lambda * below.sum) : 0.0;
        if (!(kappa > 1.0)) break;
        lambda *= kappa;
        threshold = cg_saturate64_(1.0 / lambda);
    }
    return cg_select_bernoulli_(p, threshold);
}
/* The fewest values in expectation with sum x^2/p <= (1 + epsilon) sum x^2. */
static cg_status cg_select_wangni_variance_(const cg_selector_ *p) {
    cg_below_sums_ below = cg_below_sums_of_(p, CG_INF_BITS_);
    const double extra_variance = (double)p->info->op.select.value * below.squares;
    float threshold = CG_FLT_MAX_;
    if (below.absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
    for (int i = 0; i < 100 && below.sum > 0.0; i++) {
        const double exact = (extra_variance + below.squares) / below.sum;
        float next = cg_saturate64_(exact);
        /* rounded down, as a larger threshold has more variance */
        if ((double)next > exact) next = cg_as_float_(cg_as_bits_(next) - 1u);
        if (next >= threshold || !(next > 0.0f)) break;
        threshold = next;
        below = cg_below_sums_of_(p, cg_as_bits_(threshold));
    }
    return cg_select_bernoulli_(p, threshold);
}

/* src/core/select/sides.h */
/* sides: the largest positive and the largest negative values, each side by its own count (AdaQ, SBC)

   Offers   cg_select_sides_
   Needs    base, kernels, plan, select/list, select/filter, select/topk, select/thresholds
   Touches  the list */

/* Side 0 is positive, side 1 negative. sides: the ratio of each side; side: k of each, of which only
   the side with the larger mean magnitude stays. The list has room for all n. */
static cg_status cg_select_sides_(const cg_selector_ *p) {
    static const cg_sign_filter_ filters[2] = { { 0, 0xffffffffu }, { 0x80000000u, 0xffffffffu } };
    const cg_stage *stage = &p->info->op.select;
    const int one_side = cg_has_(&p->info->op, CG_KEEPS_ONE_SIDE_);
    cg_list_ *list = p->list;
    uint32_t kth_bits[2] = { 0, 0 }, threshold_bits = 1;
    size_t available[2] = { 0, 0 }, quota[2], ties_left[2] = { 0, 0 }, k, n = p->n;
    double mean[2] = { 0.0, 0.0 };
    available[0] = available[1] = n;
    if (!one_side) {
        available[0] = available[1] = 0;
        for (size_t i = 0; i < n; i += CG_CHUNK_) {
            const size_t many = cg_min_(CG_CHUNK_, n - i);
            uint8_t signs[CG_CHUNK_ / 8];
            size_t nonzero = 0, negative = 0;
            CG_KERNEL_(p->kernels, sign_encode(cg_at_(p->x, i), many, signs, NULL));
            CG_KERNEL_(p->kernels, count_above(cg_at_(p->x, i), many, 0, &nonzero));
            for (size_t j = 0; j < (many + 7) / 8; j++) negative += cg_popcount_(signs[j]);
            available[0] += nonzero - negative;
            available[1] += negative;
        }
    }
    k = (size_t)cg_k_from_ratio_(stage->value, 0, n);
    for (int side = 0; side < 2; side++)
        quota[side] = one_side ? cg_min_(k, available[side])
                               : (size_t)cg_k_from_ratio_(stage->value, 0, available[side]);
    if (n > CG_CHUNK_) { /* a threshold that enough values of both sides should reach */
        uint32_t positive_bits = quota[0]
            ? cg_threshold_estimate_(p->x, NULL, n, quota[0], 0, 1, CG_INF_BITS_, 0, list->value, filters[0])
            : CG_INF_BITS_;
        uint32_t negative_bits = quota[1]
            ? cg_threshold_estimate_(p->x, NULL, n, quota[1], 0, 1, CG_INF_BITS_, 1, list->value, filters[1])
            : CG_INF_BITS_;
        threshold_bits = cg_max32_(1, positive_bits < negative_bits ? positive_bits : negative_bits);
    }
    for (;; threshold_bits = 1) { /* a second time only after an estimate that was too high */
        available[0] = available[1] = 0;
        cg_filter_vector_(p->kernels, p->x, n, threshold_bits, list);
        if (CG_KERNEL_(p->kernels, absmax_bits(list->value, list->count)) >= CG_INF_BITS_) return CG_E_NONFINITE;
        for (size_t i = 0; i < list->count; i++) available[list->value[i] < 0.0f]++;
        if (threshold_bits == 1 || (available[0] >= quota[0] && available[1] >= quota[1])) break;
    }
    for (int side = 0; side < 2; side++) quota[side] = cg_min_(quota[side], available[side]);
    for (int side = 0; side < 2; side++) {
        ties_left[side] = quota[side];
        if (quota[side])
            kth_bits[side] = cg_kth_(
                list->value, list->count, &ties_left[side], threshold_bits, CG_INF_BITS_ - 1, filters[side]);
    }
    if (one_side) {
        size_t ties[2];
        ties[0] = ties_left[0];
        ties[1] = ties_left[1];
        for (size_t i = 0; i < list->count; i++) {
            int side = list->value[i] < 0.0f;
            uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
            int equal = m == kth_bits[side] && ties[side] > 0;
            if (quota[side] && (m > kth_bits[side] || equal)) mean[side] += (double)cg_as_float_(m);
            ties[side] -= (size_t)equal;
        }
        for (int side = 0; side < 2; side++) mean[side] = quota[side] ? mean[side] / (double)quota[side] : 0.0;
        quota[mean[0] >= mean[1]] = 0;
    }
    list->count = 0;
    for (uint64_t g = 0, from = 0, to; g < list->segment_count; g++, from = to) {
        to = list->segment_start[g + 1];
        list->segment_start[g] = list->count;
        for (uint64_t i = from; i < to; i++) {
            int side = list->value[i] < 0.0f;
            uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
            int equal = m == kth_bits[side] && ties_left[side] > 0, take = quota[side] && (m > kth_bits[side] || equal);
            list->index_low[list->count] = list->index_low[i];
            list->value[list->count] = list->value[i];
            if (take && m == kth_bits[side]) ties_left[side]--;
            list->count += (size_t)take;
        }
    }
    cg_list_close_(list);
    return CG_OK;
}

/* src/core/select/with_aux.h */
/* with_aux: selections that need a second vector, cg_extra.aux: AdaComp and variance

   Offers   cg_select_adacomp_, cg_select_variance_
   Needs    base, kernels, select/thresholds
   Touches  the list
   aux has n floats of any alignment; without it both return CG_E_ARG. */

/* AdaComp. x: the residual, with the latest gradient in it; aux: that gradient. A value is selected if one more such
   gradient would bring it up to the largest magnitude of its bin. All are sent as +- the mean of these largest
   magnitudes. */
static cg_status cg_select_adacomp_(const cg_selector_ *p) {
    const size_t bin = p->info->op.select.size;
    const float *aux = p->side ? p->side->aux : NULL;
    cg_list_ *list = p->list;
    double absmax_sum = 0.0;
    uint64_t bins = 0;
    float scale;
    if (!aux) return CG_E_ARG;
    if (p->n &&
        (CG_KERNEL_(p->kernels, absmax_bits(p->x, p->n)) >= CG_INF_BITS_ ||
            CG_KERNEL_(p->kernels, absmax_bits(aux, p->n)) >= CG_INF_BITS_))
        return CG_E_NONFINITE;
    for (size_t i = 0; i < p->n; i += cg_min_(bin, p->n - i), bins++)
        absmax_sum += (double)cg_as_float_(
            CG_KERNEL_(p->kernels, absmax_bits(cg_at_(p->x, i), cg_min_(bin, p->n - i))));
    scale = bins ? cg_saturate64_(absmax_sum / (double)bins) : 0.0f;
    list->count = 0;
    for (size_t i = 0, many; i < p->n; i += many) {
        uint32_t absmax_bits;
        many = cg_min_(bin, p->n - i);
        absmax_bits = CG_KERNEL_(p->kernels, absmax_bits(cg_at_(p->x, i), many));
        for (size_t j = i; j < i + many; j++) {
            float f = cg_load_(p->x, j);
            uint32_t m = cg_as_bits_(cg_plus_(f, cg_load_(aux, j))) & CG_ABS_MASK_;
            cg_list_begin_segment_(list, j);
            if (absmax_bits && m >= absmax_bits) cg_list_add_(list, j, f < 0.0f ? -scale : scale);
        }
    }
    cg_list_close_(list);
    return CG_OK;
}
/* Tsuzuku: values whose square exceeds alpha times their variance, aux. */
static cg_status cg_select_variance_(const cg_selector_ *p) {
    const double alpha = (double)p->info->op.select.value;
    const float *aux = p->side ? p->side->aux : NULL;
    cg_list_ *list = p->list;
    if (!aux) return CG_E_ARG;
    list->count = 0;
    for (size_t i = 0; i < p->n; i++) {
        float f = cg_load_(p->x, i), v = cg_load_(aux, i);
        if (!cg_is_finite_(f) || !cg_is_finite_(v)) return CG_E_NONFINITE;
        cg_list_begin_segment_(list, i);
        if ((double)f * (double)f > alpha * (double)v) cg_list_add_(list, i, f);
    }
    cg_list_close_(list);
    return CG_OK;
}

/* src/core/select/chunked.h */
/* chunked: the largest values of every chunk, and blocks that are not zero

   Offers   cg_select_chunked_, cg_select_blocks_
   Needs    base, kernels, shape, select/list, select/thresholds
   Touches  the list; k in info, for blocks */

/* The k-th largest of n magnitudes, as bits, which are all in [lo, hi]; hi is below Inf. Bisection, as SIMD counts
   fast. *above: how many are larger. 1 <= k <= n; v is aligned. */
static uint32_t cg_kth_bisect_(
    const cg_kernels_ *kernels, const float *v, size_t n, size_t k, uint32_t lo, uint32_t hi, size_t *above) {
    size_t larger = 0, next = 0; /* larger: how many are above hi */
    while (lo < hi) {            /* look for the smallest that fewer than k are above */
        uint32_t pivot = lo + (hi - lo) / 2;
        size_t count = 0;
        if (n <= 128) { /* of a few, a pivot that is one of them takes fewer steps */
            while (next < n && (cg_as_bits_(v[next]) & CG_ABS_MASK_) - lo >= hi - lo) next++;
            if (next == n) {
                lo = hi;
                break;
            }
            pivot = cg_as_bits_(v[next]) & CG_ABS_MASK_;
        }
        CG_KERNEL_(kernels, count_above(v, n, pivot, &count));
        if (count < k) {
            hi = pivot;
            larger = count;
        } else lo = pivot + 1;
    }
    *above = larger;
    return lo;
}
/* The largest of every chunk of stage->size values. Neighbouring chunks are alike: candidates are first those that
   reach a little less than the k-th magnitude of the chunk before. */
static cg_status cg_select_chunked_(const cg_selector_ *p) {
    const cg_stage *stage = &p->info->op.select;
    cg_list_ *list = p->list;
    uint32_t guess_bits = 0;
    list->count = 0;
    for (size_t i = 0, many; i < p->n; i += many) {
        const size_t from = list->count, segment_last = (size_t)((uint64_t)i | 0xffffffffu);
        size_t k, found = 0, above, ties_left;
        uint32_t kth_bits;
        many = cg_min_(stage->size, p->n - i);
        k = (size_t)cg_k_from_ratio_(stage->value, 0, many);
        for (;; guess_bits = 0) { /* a second time only after a guess that was too high */
            list->count = from;
            for (size_t j = i, sub_n; j < i + many; j += sub_n) { /* in steps that end where a segment may begin */
                sub_n = cg_min_(i + many - j, CG_CHUNK_ - j % CG_CHUNK_);
                cg_list_begin_segment_(list, j);
                list->count += CG_KERNEL_(p->kernels,
                    filter(cg_at_(p->x, j), sub_n, guess_bits, (uint32_t)j, list->index_low + list->count,
                        list->value + list->count));
            }
            found = list->count - from;
            if (found >= k || !guess_bits) break;
        }
        kth_bits = CG_KERNEL_(p->kernels, absmax_bits(list->value + from, found));
        if (kth_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
        kth_bits = cg_kth_bisect_(p->kernels, list->value + from, found, k, guess_bits, kth_bits, &above);
        ties_left = k - above;
        list->count = from;
        if (i + many - 1 <= segment_last) {
            cg_list_compact_(list, from, from + found, &list->count, kth_bits, &ties_left);
        } else { /* a segment begins in this chunk: its start moves with what is cut before it */
            const size_t boundary = (size_t)list->segment_start[(uint64_t)(i + many - 1) >> 32];
            cg_list_compact_(list, from, boundary, &list->count, kth_bits, &ties_left);
            list->segment_start[(uint64_t)(i + many - 1) >> 32] = list->count;
            cg_list_compact_(list, boundary, from + found, &list->count, kth_bits, &ties_left);
        }
        guess_bits = kth_bits < 0x400000u ? 0 : kth_bits - 0x400000u; /* about half the magnitude */
    }
    cg_list_close_(list);
    return CG_OK;
}
/* Blocks that are not all zero: one index in the list for each, and all their values; info->k counts values. */
static cg_status cg_select_blocks_(const cg_selector_ *p) {
    const size_t size = p->info->op.select.size;
    cg_list_ *list = p->list;
    list->count = 0;
    p->info->k = 0;
    for (size_t i = 0, block = 0, many; i < p->n; i += many, block++) {
        uint32_t absmax_bits;
        many = cg_min_(size, p->n - i);
        absmax_bits = CG_KERNEL_(p->kernels, absmax_bits(cg_at_(p->x, i), many));
        if (absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
        cg_list_begin_segment_(list, block);
        if (!absmax_bits) continue;
        list->index_low[list->count++] = (uint32_t)block;
        memcpy(list->value + p->info->k, cg_at_(p->x, i), 4 * many);
        p->info->k += many;
    }
    list->segment_count = p->n ? ((uint64_t)(p->n - 1) / size >> 32) + 1 : 1;
    cg_list_close_(list);
    return CG_OK;
}

/* src/core/matrix.h */
/* matrix: from an operator to the encoders of low-rank factors

   Offers   cg_factor_lowrank_, cg_factor_atomo_ and their work space; cg_matrix_decode_ is in decode_into
   Needs    base, random, lowrank, atomo, plan
   Touches  the caller's scratch
   Other headers may use: cg_lowrank_left_, cg_lowrank_right_ */

/* Both write the factors p (rows of r values), then q (r rows of cols values), to the start of scratch, which has
   cg_scratch_bytes_ and is aligned for floats; the rest of it is work space. */
static uint8_t *cg_matrix_work_(float *behind_factors) {
    uint8_t *work = (uint8_t *)behind_factors;
    return work + (8 - ((uintptr_t)work & 7)) % 8;
}
static cg_status cg_factor_lowrank_(const cg_kernels_ *kernels, const cg_info *info, const float *x, float *scratch) {
    const size_t rows = cg_matrix_rows_(&info->op), cols = cg_matrix_cols_(&info->op);
    const unsigned r = cg_matrix_r_(&info->op);
    float *q = scratch + rows * r;
    return cg_lowrank_encode_(
        kernels, cg_shared_key_(&info->tag), x, rows, cols, r, scratch, q, cg_matrix_work_(q + r * cols));
}
static cg_status cg_factor_atomo_(const cg_kernels_ *kernels, const cg_info *info, const float *x, float *scratch) {
    const size_t rows = cg_matrix_rows_(&info->op), cols = cg_matrix_cols_(&info->op);
    const unsigned r = cg_matrix_r_(&info->op);
    float *q = scratch + rows * r;
    unsigned atoms;
    return cg_atomo_encode_(kernels, cg_rank_key_(&info->tag), x, rows, cols, info->op.transform.arg, scratch, q,
        &atoms, cg_matrix_work_(q + r * cols));
}
static uint64_t cg_work_bytes_lowrank_(const cg_op *op) {
    return cg_lowrank_work_bytes_(cg_matrix_rows_(op), cg_matrix_cols_(op), op->transform.arg);
}
static uint64_t cg_work_bytes_atomo_(const cg_op *op) {
    return cg_atomo_work_bytes_(cg_matrix_rows_(op), cg_matrix_cols_(op));
}

/* A step of PowerSGD in two halves, so that factors of several ranks can be summed in between. op is low-rank, m its
   matrix, work has room for r (rows + cols) doubles and keeps nothing between the halves. */

/* Left factor p[rows][r] = alpha M Q. Q is warm[r][cols], or where that is NULL or all zero the random start of tag. */
CG_OFFERED_ void cg_lowrank_left_(
    const cg_op *op, const cg_tag *tag, const float *warm, const float *m, float alpha, float *p, double *work) {
    const size_t rows = cg_matrix_rows_(op), cols = cg_matrix_cols_(op);
    const unsigned r = cg_matrix_r_(op);
    double *p64 = work, *q64 = p64 + r * rows;
    int is_warm = 0;
    for (size_t i = 0; warm && i < r * cols; i++) {
        q64[i] = (double)cg_load_(warm, i);
        is_warm |= (cg_load_bits_(warm, i) & CG_ABS_MASK_) != 0;
    }
    if (!is_warm) cg_lowrank_init_q_(cg_shared_key_(tag), cols, r, q64);
    cg_matrix_times_(cg_kernels_now_(), m, rows, cols, q64, r, p64);
    for (size_t i = 0; i < rows * r; i++) p[i] = (float)(p64[i % r * rows + i / r] * (double)alpha);
}
/* Makes the columns of p orthonormal, in place, and the right factor q[r][cols] = alpha P^T M of them.
   CG_E_NONFINITE: p is too large; q is not written. */
CG_OFFERED_ cg_status cg_lowrank_right_(
    const cg_op *op, const float *m, float alpha, float *p, float *q, double *work) {
    const size_t rows = cg_matrix_rows_(op), cols = cg_matrix_cols_(op);
    const unsigned r = cg_matrix_r_(op);
    double *p64 = work, *q64 = p64 + r * rows, norm = 0.0;
    for (size_t i = 0; i < rows * r; i++) p64[i % r * rows + i / r] = (double)p[i];
    if (!cg_gram_schmidt_(p64, rows, r, &norm)) return CG_E_NONFINITE;
    cg_lowrank_store_p_(p64, rows, r, 1.0, p, r);
    cg_lowrank_compute_q_(cg_kernels_now_(), m, rows, cols, p, r, r, q64);
    for (size_t i = 0; i < cols * r; i++) q[i] = (float)(q64[i] * (double)alpha);
    return CG_OK;
}

/* src/core/error.h */
/* error: how large the error of each stage is, for any vector, and of stages one after the other

   Offers   the error functions of all rows, cg_op_error_, cg_inflation_
   Needs    base, stages, plan, quantize (levels, tables of values)
   Touches  nothing but its arguments
   Other headers may use: cg_inflation_
   A bound is the least w that is known with E|C(v) - v|^2 <= w |v|^2 for all v; what f32 arithmetic rounds comes on
   top, and values must be normal numbers of the format that they are written in. Most bounds follow from one argument:
   the worst vector has one value T, which fixes the scale, and makes all others alike, so that error - w value^2 of
   each is as large as possible. Inflations are the bounds of the papers: error feedback divides by them, so that better
   ones would change the results of trainings. */

static void cg_error_unknown_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    (void)n;
    e->bound = e->count = -1.0;
}
static void cg_error_none_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    (void)n;
    e->bound = 0.0;
}
/* The error is a part of v itself, between nothing and all of it. */
static void cg_error_by_data_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    (void)n;
    e->bound = 1.0;
    e->count = -1.0;
    e->data_decides = 1;
}
static double cg_min_f64_(double a, double b) { return a < b ? a : b; }
static double cg_max_f64_(double a, double b) { return a > b ? a : b; }
/* A stage that keeps some values as they are, and so at least and at most these shares of |v|^2. */
static void cg_error_keep_(cg_error_ *e, double least, double most) {
    e->least = least;
    e->most = most;
    e->bound = 1.0 - least;
}

/* ---- samples ---- */

/* One value of each stratum, times its length: E|C(v)|^2 = sum of length*v^2. */
static void cg_error_randk_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const uint64_t k = cg_sampled_randk_(op, n, NULL), longest = n / k + (n % k != 0);
    if (e->is_biased) {
        cg_error_keep_(e, 1.0 / (double)longest, 1.0 / (double)(n / k));
        return;
    }
    e->bound = (double)longest - 1.0;
    e->inflation = (double)n / (double)k;
}
static void cg_error_permk_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double workers = (double)op->sample.size;
    (void)n;
    if (e->is_biased) {
        cg_error_keep_(e, 1.0 / workers, 1.0 / workers);
        return;
    }
    e->bound = workers - 1.0;
    e->inflation = workers;
}

/* One block of a few, in turn; a value at their edges has its turn in two of them. Over all turns. */
static void cg_error_cyclic_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const uint64_t blocks = op->sample.size, least = blocks > n ? blocks / n : 1,
                   most = blocks > n ? least + 1
        : n % blocks                 ? 2
                                     : 1;
    if (e->is_biased) {
        cg_error_keep_(e, (double)least / (double)blocks, (double)most / (double)blocks);
        return;
    }
    e->inflation = (double)blocks / (double)least;
    e->bound = e->inflation - 1.0;
}

/* ---- transforms ---- */

/* Probabilities in the order of the singular values do no worse than equal ones. */
static void cg_error_atomo_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double rank_ratio = cg_min_f64_((double)cg_matrix_rows_(op), (double)cg_matrix_cols_(op)) /
        (double)cg_matrix_r_(op);
    (void)n;
    e->inflation = rank_ratio > 1.0 ? rank_ratio : 1.0;
    e->bound = e->inflation - 1.0;
}

/* ---- selections ---- */

/* The k largest of n have at least the share k/n. Dropped values of MSTop-k may be larger than kept ones only where
   all of them are below the mean magnitude, and then those kept are above it on average. */
static void cg_error_largest_(const cg_op *op, uint64_t n, cg_error_ *e) {
    e->count = (double)cg_selected_k_(op, n);
    cg_error_keep_(e, e->count / (double)n, 1.0);
}
/* The largest, but perhaps a fifth too few. */
static void cg_error_estimated_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const uint64_t k = cg_k_from_ratio_(op->select.value, 0, n);
    e->count = (double)k;
    cg_error_keep_(e, (double)(k - k / 5) / (double)n, 1.0);
}
static void cg_error_chunked_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const uint64_t chunk = op->select.size, last = n % chunk;
    double least = 1.0;
    if (n >= chunk) least = (double)cg_k_from_ratio_(op->select.value, 0, chunk) / (double)chunk;
    if (last) least = cg_min_f64_(least, (double)cg_k_from_ratio_(op->select.value, 0, last) / (double)last);
    e->count = (double)cg_selected_chunked_(op, n);
    cg_error_keep_(e, least, 1.0);
}
/* The largest of each side: k of m, where k is ratio*m rounded, which is least to m where 1.49 becomes 1. */
static void cg_error_sides_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double ratio = (double)op->select.value;
    e->count = (double)cg_k_from_ratio_(op->select.value, 0, n);
    cg_error_keep_(e, ratio < 1.0 ? cg_max_f64_(1.0 / (double)n, ratio / 1.5) : 1.0, 1.0);
}
/* The side whose k largest have the larger mean m. Those of the other side have a sum of at most k*m, which may be one
   value: at worst a single value m stands against n - 1 of the same size, or against one of k*m. */
static void cg_error_side_(const cg_op *op, uint64_t n, cg_error_ *e) {
    e->count = (double)cg_selected_k_(op, n);
    cg_error_keep_(e, 1.0 / cg_max_f64_((double)n, 1.0 + e->count * e->count), 1.0);
}
/* Probabilities by magnitude do no worse than equal ones. */
static void cg_error_wangni_(const cg_op *op, uint64_t n, cg_error_ *e) {
    e->inflation = 1.0 / (double)op->select.value;
    e->bound = e->inflation - 1.0;
    e->count = (double)op->select.value * (double)n;
}
static void cg_error_wangnivar_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)n;
    e->inflation = 1.0 + (double)op->select.value;
    e->bound = (double)op->select.value;
    e->count = -1.0;
}
static void cg_error_blocks_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    (void)n;
    e->count = -1.0; /* drops zeros */
}

/* Cut to s times their root mean square: at worst one value is all of v, and keeps the share s^2/n of its square. */
static void cg_error_clip_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double left = (double)op->clip.value / cg_sqrt_((double)n);
    e->bound = left < 1.0 ? (1.0 - left) * (1.0 - left) : 0.0;
    e->is_biased = left < 1.0;
}

/* ---- quantizers; n values have one scale ---- */

/* To nearest, with 0 among the levels, so that no value errs by more than itself. The error of T, or of any value
   relative to it, is at most c; that of others may also be h*T, and at worst they are h*T. */
static double cg_error_to_nearest_(double c, double h, uint64_t n) {
    const double others = ((double)n - 1.0) * h * h;
    return (c + others) / (1.0 + others);
}
/* To the nearest of these magnitudes, from 0 to 1, as shares of T: at worst all others lie in the middle of one gap. */
static double cg_error_to_table_(const float *values, int count, int sign, uint64_t n) {
    const double others = (double)n - 1.0;
    double worst = 0.0;
    for (int i = 0; i + 1 < count; i++) {
        const double a = (double)values[i], b = (double)values[i + 1], middle = (a + b) * 0.5, half = (b - a) * 0.5;
        if (middle * (double)sign < 0.0) continue;
        worst = cg_max_f64_(worst, others * half * half / (1.0 + others * middle * middle));
    }
    return worst;
}
/* n times the expected square of the largest magnitude, as a share of |v|^2: at most n; after a rotation, whose values
   are sums with random signs, at most 2 ln(tails*n) + 2 (tails: 1 for the largest value, 2 for the largest magnitude).
   A bucket that is not a part of one rotated block may have the largest values of its neighbours. */
static double cg_peak_(const cg_op *op, uint64_t n, double tails) {
    double peak;
    if ((cg_op_traits_(op) & (CG_IS_ROTATION_ | CG_IS_SELECTION_)) != CG_IS_ROTATION_) return (double)n;
    peak = 2.0 * cg_ln_(tails * (double)n) + 2.0;
    if (CG_ROTATE_BLOCK_ % n) peak *= 1.0 + 2.0 * (double)n / (double)CG_ROTATE_BLOCK_;
    return cg_min_f64_(peak, (double)n);
}
/* levels on either side of 0, the last of them T; 0 levels: only -T and T. At random, a value v between two levels has
   the variance (v - lower)*(upper - v); at worst the others are below the first level, where they sum up to
   (sqrt(1 + (n-1)/levels^2) - 1)/2. */
static void cg_error_levels_of_max_(const cg_op *op, uint64_t n, int32_t levels, cg_error_ *e) {
    const double b = (double)n, l = (double)levels;
    e->step = levels ? 1.0 / l : 2.0;
    if (!levels) {
        e->bound = cg_min_f64_(b, cg_peak_(op, n, 2.0)) - 1.0;
        if (e->bound < 0.0) e->bound = b - 1.0;
        if (!e->is_biased) e->inflation = 1.0 + b;
        return;
    }
    e->bound = e->is_biased ? cg_error_to_nearest_(0.0, 0.5 / l, n) : (cg_sqrt_(1.0 + (b - 1.0) / (l * l)) - 1.0) / 2.0;
    if (n > 1) e->bound = cg_min_f64_(e->bound, cg_peak_(op, n, 2.0) / (4.0 * l * l));
    if (!e->is_biased) e->inflation = 1.0 + (levels == 1 ? (cg_sqrt_(b) - 1.0) / 2.0 : b / (4.0 * l * l));
}
static void cg_error_grid_(const cg_op *op, uint64_t n, cg_error_ *e) {
    cg_error_levels_of_max_(op, n, cg_quantizer_of_(&op->quantize)->levels(&op->quantize), e);
}
/* Clipped at c <= 2.5 |v|/sqrt(n): what is cut off is less than the values themselves, and the variance of the rest u
   is at most 2.5 |v| |u| - |u|^2, so that both are at most (1 + 2.5 y - 2 y^2) |v|^2, where y = |u|/|v|. */
static void cg_error_terngrad_(const cg_op *op, uint64_t n, cg_error_ *e) {
    if (!(op->quantize.flags & CG_FLAG_CLIP)) cg_error_levels_of_max_(op, n, 1, e);
    else e->bound = op->quantize.flags & CG_FLAG_NEAREST ? 1.0 : 1.78125;
}
/* The range is at most sqrt(2) |v|, and errors are half a step; the ends of the range are exact. */
static void cg_error_minmax_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double b = (double)n, steps = (double)((1 << (op->quantize.arg & 15)) - 1),
                 exact = op->quantize.flags & CG_FLAG_NORM ? 1.0 : 2.0;
    e->bound = b > exact ? (b - exact) / (2.0 * steps * steps) : 0.0;
    if (!(op->quantize.flags & CG_FLAG_NORM)) {
        e->bound = cg_min_f64_(e->bound, cg_peak_(op, n, 1.0) / (steps * steps));
        e->step = 2.0 / steps;
    }
    if (!e->is_biased) e->inflation = 1.0 + b / (2.0 * steps * steps);
}
/* Of the norm: with a = sqrt(n)/levels and a share y^2 of |v|^2 below the first level, the variance is at most
   (a y - y^2) |v|^2, and n/4 squares of a step. */
static void cg_error_levels_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double b = (double)n, root = cg_sqrt_(b), s = (double)op->quantize.arg, a = root / s;
    if (op->quantize.flags & CG_FLAG_MAX) {
        cg_error_levels_of_max_(op, n, op->quantize.arg, e);
        return;
    }
    if (n > 1) e->bound = e->is_biased ? cg_min_f64_(1.0, a * a / 4.0) : a <= 2.0 ? a * a / 4.0 : a - 1.0;
    if (!e->is_biased) e->inflation = 1.0 + cg_min_f64_(b / (s * s), root / s);
}
/* The step is below 2 T/levels. */
static void cg_error_flexpoint_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double h = 1.0 / (double)cg_quantizer_of_(&op->quantize)->levels(&op->quantize);
    e->bound = cg_error_to_nearest_(h * h, h, n);
}
static void cg_error_trits_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double m = (double)op->quantize.value;
    e->bound = cg_error_to_nearest_((m - 1.0) * (m - 1.0), m / 2.0, n);
}
/* One mean, or one for each sign: (sum of |v|)^2 >= |v|^2. */
static void cg_error_mean_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    e->bound = 1.0 - 1.0 / (double)n;
}
/* Floats with a mantissa of which the last bit is `unit` times the first. To nearest: half a unit. At random, between 1
   and 1 + unit the variance is (v - 1)*(1 + unit - v). */
static void cg_error_half_(double unit, cg_error_ *e) {
    e->bound = unit * unit / 4.0;
    e->step = unit;
    if (!e->is_biased) e->bound /= 1.0 + unit;
    if (!e->is_biased) e->inflation = 1.0 + e->bound;
}
static void cg_error_f16_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    (void)n;
    cg_error_half_(0.0009765625, e); /* 2^-10 */
}
static void cg_error_bf16_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    (void)n;
    cg_error_half_(0.0078125, e); /* 2^-7 */
}
/* Powers of two: between 1 and 2 the variance is (v - 1)*(2 - v), and the error to nearest at most 1/3 of v. */
static void cg_error_natural_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    (void)n;
    e->bound = e->is_biased ? 1.0 / 9.0 : 0.125;
    if (!e->is_biased) e->inflation = 1.0 + 0.125;
}
/* Powers of two times the norm down to a lowest one, u, and 0. At random, with a = u sqrt(n) and a share y^2 of |v|^2
   below u: (1 - y^2)/8 + a y - y^2. */
static void cg_error_dither_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double b = (double)n, root = cg_sqrt_(b);
    double lowest_level = 1.0, a; /* a power of 1/2 */
    for (int i = 2; i < 1 << (op->quantize.arg - 1); i++) lowest_level *= 0.5;
    a = root * lowest_level;
    if (e->is_biased)
        e->bound = op->quantize.flags & CG_FLAG_MAX ? cg_error_to_nearest_(1.0 / 9.0, lowest_level / 2.0, n)
                                                    : (1.0 + 8.0 * cg_min_f64_(1.0, a * a / 4.0)) / 9.0;
    else e->bound = a <= 2.25 ? 0.125 + a * a * (2.0 / 9.0) : a - 1.0;
    if (n == 1) e->bound = 0.0;
    if (!e->is_biased) e->inflation = 1.0 + (0.125 + root * lowest_level);
}
static void cg_error_dynamic8_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    e->bound = cg_error_to_table_(cg_dynamic8_values_, 128, 1, n);
}
/* At random to neighbours among magnitudes, of which T has a variance of c T^2 at most, as have all values but those
   between a and b, as shares of T: at worst all others are there. w is the bound if no v makes
   c + (n-1)*(v - a)*(b - v) > w + w*(n-1)*v^2. */
static double cg_error_between_(double c, double a, double b, uint64_t n) {
    const double others = (double)n - 1.0, p = 1.0 - c + others * a * b;
    return (cg_sqrt_(p * p + 4.0 * c + others * ((b - a) * (b - a))) - p) / 2.0;
}
static void cg_error_nf4_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    if (!e->is_biased) {
        for (int i = 0; i < 15; i++)
            e->bound = cg_max_f64_(
                e->bound, cg_error_between_(0.0, (double)cg_nf4_values_[i], (double)cg_nf4_values_[i + 1], n));
        e->inflation = 1.0 + e->bound;
        e->step = 0.3038071990013123; /* from -1 to the next */
        return;
    }
    e->bound = cg_max_f64_(cg_error_to_table_(cg_nf4_values_, 16, 1, n), cg_error_to_table_(cg_nf4_values_, 16, -1, n));
}
/* Small floats: half a unit in the last place of normal numbers, or, for MX, what lies above the largest number, which
   is an eighth or a quarter of it; and half a step of denormals, as a share of the least T. At random: as halves, and
   at worst others are below the smallest denormal; `top` is the largest unit, as a share of T. */
static void cg_error_small_(const cg_op *op, uint64_t n, double relative, double half_step, double unit, double lowest,
    double top, cg_error_ *e) {
    (void)op;
    if (e->is_biased) {
        e->bound = cg_error_to_nearest_(relative, half_step, n);
        return;
    }
    e->bound = cg_error_between_(unit * unit / (4.0 * (1.0 + unit)), 0.0, lowest, n);
    e->step = top;
    e->inflation = 1.0 + e->bound;
}
#define CG_ERROR_FLOAT_(format, relative, half_step, unit, lowest, top)         \
  static void cg_error_##format##_(const cg_op *op, uint64_t n, cg_error_ *e) { \
    cg_error_small_(op, n, relative, half_step, unit, lowest, top, e);          \
  }
CG_ERROR_FLOAT_(e4m3, 1.0 / 256.0, 1.0 / (1024.0 * 448.0), 0.125, 1.0 / (512.0 * 448.0), 32.0 / 448.0)
CG_ERROR_FLOAT_(e5m2, 1.0 / 64.0, 1.0 / (131072.0 * 57344.0), 0.25, 1.0 / (65536.0 * 57344.0), 8192.0 / 57344.0)
CG_ERROR_FLOAT_(mxe4m3, 1.0 / 64.0, 1.0 / (1024.0 * 256.0), 0.125, 1.0 / (512.0 * 224.0), 0.125)
CG_ERROR_FLOAT_(mxe5m2, 1.0 / 64.0, 1.0 / (131072.0 * 32768.0), 0.25, 1.0 / (65536.0 * 28672.0), 0.25)
CG_ERROR_FLOAT_(mxfp4, 1.0 / 16.0, 1.0 / 16.0, 0.5, 1.0 / 6.0, 0.5)
#undef CG_ERROR_FLOAT_
/* rate: the step is as large as the bits are few. step: at random each value has a variance of step^2/4 at most, and
   the step is s root mean squares, or the largest magnitude over 32766. To nearest a value in the dead zone is lost. */
static void cg_error_rate_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    (void)n;
    e->bound = e->is_biased ? 1.0 : -1.0;
    e->data_decides = e->is_biased;
}
static void cg_error_step_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double s = (double)op->quantize.value, w = cg_max_f64_(s * s, (double)n / 1073610756.0);
    e->bound = e->is_biased ? cg_min_f64_(1.0, w) : w / 4.0;
    if (!e->is_biased) e->inflation = 1.0 + e->bound;
}
/* NVFP4: the scale of a bucket is rounded to E4M3, so that its largest value T, which should become 6, lies between
   6/(1 + 1/16) and 6/(1 - 1/16); at random between 6/(1 + 1/8) and 6. Scales below 2^-6 are denormals and less exact:
   their values are below T of all values times 6*2^-6/2688, and to nearest they may be lost. */
static void cg_error_nvfp4_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double tiny = 6.0 / 64.0 / 2688.0, all = e->total > 16.0 ? e->total - 16.0 : 0.0;
    (void)op;
    if (e->is_biased) {
        const double share = all * tiny * tiny;
        e->bound = cg_error_to_nearest_(0.04, 0.25 / (6.0 / 1.0625), n);
        e->bound = (e->bound + share) / (1.0 + share);
        return;
    }
    e->bound = cg_error_between_(1.0 / 24.0, 0.0, 0.5 / (6.0 / 1.125), n) + all * (tiny / 12.0) * (tiny / 12.0) / 4.0;
    e->step = 0.375;
    e->inflation = 1.0 + e->bound;
}
/* geometric: one mean magnitude; more levels lie between the least and the largest magnitude, wherever those are. */
static void cg_error_geometric_(const cg_op *op, uint64_t n, cg_error_ *e) {
    e->bound = op->quantize.arg == 1 ? 1.0 - 1.0 / (double)n : -1.0;
}
/* D/(1 - D), where D is the distortion of Lloyd-Max levels for the normal distribution, which rotated values have to
   within 2 %. After fewer than three rounds distribution and bias depend on the data: two equal spikes have an error of
   1 after one round at 1 bit, and one of 1.03 D/(1 - D) after two at 4 bits. */
static void cg_error_lloyd_(const cg_op *op, uint64_t n, cg_error_ *e) {
    static const double distortion[] = { 1.0, 0.3634, 0.1175, 0.03454, 0.009501, 0.009501 };
    const float bits = op->quantize.value;
    const int whole = (int)bits;
    const double more = (double)bits - (double)whole,
                 d = distortion[whole] + more * (distortion[whole + 1] - distortion[whole]);
    (void)n;
    e->bound = op->transform.arg < 3 ? -1.0 : 1.02 * d / (1.0 - d);
    e->is_biased = op->transform.arg < 3;
    e->inflation = 1.0 + (bits < 2.0f ? 0.571 : bits < 3.0f ? 0.133 : 0.036);
}

/* ---- operators ---- */

/* The error of op's stage in that slot; plan is op's, with n > 0. */
static void cg_stage_error_(const cg_op *op, const cg_plan_ *plan, unsigned slot, cg_error_ *e) {
    const cg_stage *s = cg_op_stage_const_(op, slot);
    const cg_quantizer_ *quantizer = cg_quantizer_of_(&op->quantize);
    uint64_t seen[CG_SLOT_COUNT_],
        bucket = quantizer && quantizer->fixed_bucket ? quantizer->fixed_bucket : op->quantize.size;
    seen[CG_SLOT_SAMPLE_] = plan->n;
    seen[CG_SLOT_TRANSFORM_] = plan->sampled_n;
    seen[CG_SLOT_SELECT_] = plan->transformed_n;
    seen[CG_SLOT_QUANTIZE_] = bucket && bucket < plan->max_selected ? bucket : plan->max_selected;
    seen[CG_SLOT_CODE_] = seen[CG_SLOT_CLIP_] = plan->max_selected;
    memset(e, 0, sizeof *e);
    e->most = e->inflation = 1.0;
    e->count = (double)seen[slot];
    e->total = (double)plan->max_selected;
    e->is_biased = cg_stage_is_biased_(slot, s);
    cg_stage_row_of_(slot, s)->error(op, seen[slot], e);
}
/* The error w of a quantizer, *all, with that of a clip before it, b. Values u are left of v, each of its sign and
   nearer to 0, so that |v - u|^2 <= |v|^2 - |u|^2. Its error is orthogonal to v - u if it is unbiased; else it may
   add up: sqrt(w) |u| + |v - u| is largest where |v - u|^2 is b |v|^2, or where |v|^2 = (1 + w) |v - u|^2. */
static void cg_clip_error_(const cg_op *op, const cg_plan_ *plan, cg_error_ *all) {
    const double w = all->bound;
    cg_error_ e;
    if (!cg_is_clipped_(op)) return;
    cg_stage_error_(op, plan, CG_SLOT_CLIP_, &e);
    if (w >= 0.0 && e.bound > 0.0) {
        const double sum = cg_sqrt_(w * (1.0 - e.bound)) + cg_sqrt_(e.bound);
        if (!all->is_biased) all->bound = w < 1.0 ? 1.0 - (1.0 - e.bound) * (1.0 - w) : w;
        else all->bound = w / (1.0 + w) > 1.0 - e.bound ? 1.0 + w : sum * sum;
    }
    all->is_biased |= e.is_biased;
}
/* The error of all stages, and how many values are kept. A stage that is unbiased makes |v|^2 at most 1 + bound times
   as large in expectation, and if the stage behind it is unbiased, too, their errors are orthogonal; otherwise they may
   add up. One that keeps some values as they are leaves the others' energy and the error of what it keeps. */
static void cg_op_error_(const cg_op *op, const cg_plan_ *plan, cg_error_ *all) {
    cg_stage_error_(op, plan, CG_SLOT_QUANTIZE_, all);
    cg_clip_error_(op, plan, all);
    for (unsigned slot = CG_SLOT_QUANTIZE_; slot--;) {
        cg_error_ e;
        const double w = all->bound;
        cg_stage_error_(op, plan, slot, &e);
        if (slot == CG_SLOT_SELECT_) all->count = e.count;
        all->data_decides |= e.data_decides;
        if (w < 0.0 || e.bound < 0.0) all->bound = -1.0;
        else if (e.is_biased) all->bound = w <= 1.0 ? 1.0 - e.least * (1.0 - w) : 1.0 + e.most * (w - 1.0);
        else if (!all->is_biased) all->bound = (1.0 + e.bound) * (1.0 + w) - 1.0;
        else if (e.bound > 0.0) {
            const double sum = cg_sqrt_(w * (1.0 + e.bound)) + cg_sqrt_(e.bound);
            all->bound = sum * sum;
        }
        all->is_biased |= e.is_biased;
    }
}
/* E|C(x)|^2 <= inflation |x|^2 for an unbiased operator, by the bounds of the papers; 1 for biased stages. residual:
   without a quantizer whose values all stay closer to themselves than the largest magnitude of their bucket, as a
   residual cannot grow by it, however large its inflation is; after a transform that has to hold for the mean of
   squares. */
CG_OFFERED_ double cg_inflation_(const cg_op *op, const cg_plan_ *plan, int residual) {
    double inflation = 1.0;
    if (!plan->n || !plan->transformed_n) return 1.0;
    for (unsigned slot = CG_SLOT_SAMPLE_; slot <= CG_SLOT_QUANTIZE_; slot++) {
        cg_error_ e;
        if (cg_stage_is_biased_(slot, cg_op_stage_const_(op, slot))) continue;
        cg_stage_error_(op, plan, slot, &e);
        if (residual && e.step > 0.0 && (op->transform.id ? e.step <= 0.5 : e.step < 1.0)) continue;
        inflation *= e.inflation;
    }
    return inflation;
}

/* src/core/indices.h */
/* indices: index sets as Elias-Fano, bitmap or Golomb-Rice codes, written from a list and read in batches

   Offers   cg_index_put_, cg_index_reader_ with cg_index_open_, cg_index_get_ and cg_index_get_per_value_; what
            the rows of the codes in core/rows.h name; cg_padding_zero_
   Needs    base, kernels/dispatch, codes/golomb, plan, packet (cg_index_bytes_), select/list
   Touches  the index section that is written; the reader
   Reading is safe on any bytes: a reader never leaves the section, and returns fewer indices where the bits run out.
   Whether indices ascend and are in range is cg_index_check_'s business. */

/* Are the bits from number `bits` to the end of its u32 word zero? */
static int cg_padding_zero_(const uint8_t *p, uint64_t bits) {
    return bits % 32 == 0 || cg_get32_(p + (size_t)(bits / 32 * 4)) >> bits % 32 == 0;
}
/* Appends bits, the lowest first, as u32 words. */
typedef struct cg_bit_writer_ {
    uint8_t *next;   /* byte after the last word written */
    uint64_t word;   /* bits that wait for a whole word */
    unsigned filled; /* how many, below 32 */
} cg_bit_writer_;

/* bits <= 32, v < 2^bits */
static void cg_bit_writer_put_(cg_bit_writer_ *w, uint64_t v, unsigned bits) {
    w->word |= v << w->filled;
    w->filled += bits;
    if (w->filled >= 32) {
        cg_put32_(w->next, (uint32_t)w->word);
        w->next += 4;
        w->word >>= 32;
        w->filled -= 32;
    }
}
/* The last word, filled with zeros. */
static void cg_bit_writer_flush_(cg_bit_writer_ *w) {
    if (w->filled) cg_put32_(w->next, (uint32_t)w->word);
}
/* Sets single bits of zeroed words in ascending order. Every call stores the word, without a branch on whether it is a
   new one, which no CPU could predict. */
typedef struct cg_bit_setter_ {
    uint8_t *out;
    uint64_t word_index; /* of the current word */
    uint32_t word;       /* its bits so far */
} cg_bit_setter_;

static void cg_bit_setter_set_(cg_bit_setter_ *w, uint64_t bit) {
    const uint64_t at = bit >> 5;
    w->word = (w->word & ((uint32_t)(at != w->word_index) - 1u)) | 1u << (bit & 31);
    w->word_index = at;
    cg_put32_(w->out + 4 * (size_t)at, w->word);
}
/* Lengths. Elias-Fano stores the low bits of each index, then a bit string of k ones and as many zeros as there are
   different high parts. */
static unsigned cg_elias_fano_low_bits_(uint64_t universe, uint64_t k) { /* of universe/k, without the division */
    unsigned bits;
    if (!k || universe < k) return 0;
    bits = cg_log2_(universe) - cg_log2_(k);
    return bits - (k << bits > universe);
}
static uint64_t cg_elias_fano_low_bytes_(uint64_t universe, uint64_t k) {
    return cg_word_bytes_(cg_mul_sat_(k, cg_elias_fano_low_bits_(universe, k)));
}
static uint64_t cg_elias_fano_high_bits_(uint64_t universe, uint64_t k) {
    return k ? cg_add_sat_(k, ((universe - 1) >> cg_elias_fano_low_bits_(universe, k)) + 1) : 0;
}
static uint64_t cg_index_bytes_elias_fano_(uint64_t universe, uint64_t k) {
    return cg_add_sat_(cg_elias_fano_low_bytes_(universe, k), cg_word_bytes_(cg_elias_fano_high_bits_(universe, k)));
}
static uint64_t cg_index_bound_elias_fano_(uint64_t universe, uint64_t k) {
    return cg_add_sat_(k ? cg_index_bytes_elias_fano_(universe, k) : 0, 8);
}
static uint64_t cg_index_bytes_bitmap_(uint64_t universe, uint64_t k) {
    (void)k;
    return cg_word_bytes_(universe);
}
static uint64_t cg_index_bound_bitmap_(uint64_t universe, uint64_t k) { return cg_index_bytes_bitmap_(universe, k); }
static uint64_t cg_index_bytes_golomb_(uint64_t universe, uint64_t k) { return cg_rice_bound_(universe, k); }
/* At worst 1.08 bits for each of the universe; fewer than k indices take no more than k, but for the steps of the Rice
   parameter, which the eighth covers. */
static uint64_t cg_index_bound_golomb_(uint64_t universe, uint64_t k) {
    const uint64_t most = cg_rice_bound_(universe, k),
                   sparse = cg_add_sat_(most, cg_add_sat_(most / 8, 16)) & ~(uint64_t)3,
                   dense = cg_add_sat_(cg_word_bytes_(cg_add_sat_(universe, universe / 8)), 8);
    return sparse < dense ? sparse : dense;
}
/* The shorter of Elias-Fano and bitmap. */
static uint64_t cg_index_bound_auto_(uint64_t universe, uint64_t k) {
    const uint64_t sparse = cg_index_bound_elias_fano_(universe, k), bitmap = cg_index_bytes_bitmap_(universe, k);
    return sparse < bitmap ? sparse : bitmap;
}

static size_t cg_index_put_golomb_(uint64_t universe, const cg_list_ *list, uint8_t *out, size_t bytes) {
    cg_rice_writer_ rice;
    (void)bytes;
    cg_rice_writer_open_(&rice, out, cg_rice_parameter_(universe, list->count));
    for (uint64_t s = 0; s < list->segment_count; s++)
        for (uint64_t i = list->segment_start[s]; i < list->segment_start[s + 1]; i++)
            cg_rice_writer_put_(&rice, s << 32 | list->index_low[i]);
    return cg_rice_writer_close_(&rice);
}
static size_t cg_index_put_bitmap_(uint64_t universe, const cg_list_ *list, uint8_t *out, size_t bytes) {
    cg_bit_setter_ set = { NULL, 0, 0 };
    (void)universe;
    set.out = out;
    memset(out, 0, bytes);
    for (uint64_t s = 0; s < list->segment_count; s++)
        for (uint64_t i = list->segment_start[s]; i < list->segment_start[s + 1]; i++)
            cg_bit_setter_set_(&set, s << 32 | list->index_low[i]);
    return bytes;
}
static size_t cg_index_put_elias_fano_(uint64_t universe, const cg_list_ *list, uint8_t *out, size_t bytes) {
    const unsigned low_bits = cg_elias_fano_low_bits_(universe, list->count);
    const size_t low_bytes = (size_t)cg_elias_fano_low_bytes_(universe, list->count);
    cg_bit_writer_ low = { NULL, 0, 0 };
    cg_bit_setter_ set = { NULL, 0, 0 };
    low.next = out;
    set.out = out + low_bytes;
    memset(set.out, 0, bytes - low_bytes);
    for (uint64_t s = 0; s < list->segment_count; s++) {
        for (uint64_t i = list->segment_start[s]; i < list->segment_start[s + 1]; i++) {
            const uint64_t index = s << 32 | list->index_low[i];
            if (low_bits > 32) {
                cg_bit_writer_put_(&low, index & 0xffffffffu, 32);
                cg_bit_writer_put_(&low, index >> 32 & ((1u << (low_bits - 32)) - 1u), low_bits - 32);
            } else {
                cg_bit_writer_put_(&low, index & (((uint64_t)1 << low_bits) - 1), low_bits);
            }
            cg_bit_setter_set_(&set, (index >> low_bits) + i);
        }
    }
    cg_bit_writer_flush_(&low);
    return bytes;
}
/* Writes the index section of a list of indices below universe; out has room for cg_index_bytes_. Returns its bytes. */
static size_t cg_index_put_(uint32_t code, uint64_t universe, const cg_list_ *list, uint8_t *out) {
    const size_t bytes = (size_t)cg_index_bytes_(code, universe, list->count);
    return bytes ? cg_index_coder_at_(code)->put(universe, list, out, bytes) : 0;
}

typedef struct cg_index_reader_ {
    const cg_kernels_ *kernels;
    const cg_index_coder_ *coder;
    cg_index_bits_ bits;  /* Elias-Fano or bitmap */
    cg_rice_reader_ rice; /* golomb: takes the place of bits */
    uint64_t universe, values_per_index, transformed_n;
    uint64_t block, block_pos; /* cg_index_get_per_value_: the current block, and how many of its values were read */
} cg_index_reader_;

/* At the first index of a packet whose header is info and whose index section is at p. */
static cg_index_reader_ cg_index_open_(
    const cg_kernels_ *kernels, const cg_info *info, const cg_plan_ *plan, const uint8_t *p) {
    cg_index_reader_ r;
    const uint64_t k = cg_index_count_(plan, info->k);
    r.transformed_n = plan->transformed_n;
    r.values_per_index = plan->values_per_index;
    r.universe = plan->universe;
    r.kernels = kernels;
    r.coder = cg_index_coder_at_(info->index_code);
    r.bits.bitmap = 0;
    r.bits.low_bits = 0;
    r.bits.low_part = r.bits.next_high = p;
    r.bits.end = p + info->index_bytes;
    r.bits.word = 0;
    r.bits.bit_base = (uint64_t)0 - 64;
    r.bits.read_count = 0;
    r.block = r.block_pos = 0;
    if (r.coder->open) r.coder->open(&r, k);
    return r;
}
static size_t cg_index_get_bits_(cg_index_reader_ *r, uint64_t *index, size_t count) {
    return CG_KERNEL_(r->kernels, index_get(&r->bits, index, count));
}
static size_t cg_index_get_golomb_(cg_index_reader_ *r, uint64_t *index, size_t count) {
    return cg_rice_reader_get_(&r->rice, index, count);
}
/* Up to `count` more indices, which count blocks if values_per_index is above 1; returns how many, fewer only where the
   bits run out. */
static size_t cg_index_get_(cg_index_reader_ *r, uint64_t *index, size_t count) {
    return r->coder->get(r, index, count);
}
/* What differs between codes when a section is opened, ... */
static void cg_index_open_elias_fano_(cg_index_reader_ *r, uint64_t k) {
    r->bits.low_bits = cg_elias_fano_low_bits_(r->universe, k);
    r->bits.next_high += (size_t)cg_elias_fano_low_bytes_(r->universe, k);
}
static void cg_index_open_bitmap_(cg_index_reader_ *r, uint64_t k) {
    (void)k;
    r->bits.bitmap = 1;
}
static void cg_index_open_golomb_(cg_index_reader_ *r, uint64_t k) {
    cg_rice_reader_open_(
        &r->rice, r->bits.low_part, (size_t)(r->bits.end - r->bits.low_part), cg_rice_parameter_(r->universe, k));
}
/* ... whether the bits that fill its words are zero, ... */
static int cg_index_padding_elias_fano_(const cg_index_reader_ *r, uint64_t k) {
    return cg_padding_zero_(r->bits.next_high, cg_elias_fano_high_bits_(r->universe, k)) &&
        cg_padding_zero_(r->bits.low_part, k * r->bits.low_bits);
}
static int cg_index_padding_bitmap_(const cg_index_reader_ *r, uint64_t k) {
    (void)k;
    return cg_padding_zero_(r->bits.next_high, r->universe);
}
static int cg_index_padding_golomb_(const cg_index_reader_ *r, uint64_t k) { /* cg_rice_reader_at_end_ looks at it */
    (void)r;
    (void)k;
    return 1;
}
/* ... and whether it holds k ascending indices below the universe, and no more. *next: the last + 1, 0 if k is 0. */
static int cg_index_check_bits_(cg_index_reader_ *r, uint64_t k, uint64_t *next) {
    return CG_KERNEL_(r->kernels, index_check(&r->bits, k, r->universe, next));
}
static int cg_index_check_golomb_(cg_index_reader_ *r, uint64_t k, uint64_t *next) {
    uint64_t index[512], seen = 0;
    for (*next = 0; seen < k;) {
        size_t want = (size_t)(k - seen < 512 ? k - seen : 512);
        int bad = 0;
        if (cg_index_get_(r, index, want) < want) return 0;
        for (size_t i = 0; i < want; i++) {
            bad |= index[i] < *next;
            *next = index[i] + 1;
        }
        if (bad || *next > r->universe || *next == 0) return 0;
        seen += want;
    }
    return cg_rice_reader_at_end_(&r->rice);
}
/* As cg_index_get_, but indices of values: each of a block's values has its own. */
static size_t cg_index_get_per_value_(cg_index_reader_ *r, uint64_t *index, size_t count) {
    if (r->values_per_index == 1) return cg_index_get_(r, index, count);
    for (size_t i = 0; i < count; i++) {
        if (!r->block_pos && cg_index_get_(r, &r->block, 1) == 0) return i;
        index[i] = r->block * r->values_per_index + r->block_pos;
        if (++r->block_pos == r->values_per_index || index[i] + 1 == r->transformed_n) r->block_pos = 0;
    }
    return count;
}

/* src/core/rows.h */
/* rows: the tables of samples, transforms, selections and quantizers, and what follows from an operator's rows

   Offers   cg_stage_row_, cg_stage_row_of_, cg_transformer_of_, cg_selection_of_, cg_quantizer_of_, cg_sampled_n_,
            cg_plan_resume_, cg_plan_set_
   Needs    all functions of stages: plan, transform, matrix, quantize, select, error; cg_select_given_ is in decode.h
   Touches  nothing
   A row stands at the place of its id. A new stage is a row here, beside its id and preset and what it computes. */

static cg_status cg_select_given_(const cg_selector_ *p);

/* The parts of a row that all tables have, in the order of cg_stage_row_. */
#define CG_STALLS_(name) "ok; " name " is biased: without compgrad_ef.h training stalls"
#define CG_NO_FLAGS_ { "", "" }, 0, 0
#define CG_FLAG_(first) { first, "" }, 1, 0
#define CG_FLAGS_(first, second, biasing) { first, second }, biasing, 0
#define CG_UNBIASED_ { "unbiased", "" }, 0, CG_FLAG_UNBIASED
#define CG_STOCHASTIC_ { "stochastic", "" }, 0, CG_FLAG_STOCHASTIC
#define CG_NO_ARG_ 0, 0
#define CG_ARG_(lo, hi) lo, hi
#define CG_NO_SIZE_ 0, 0, 0
#define CG_SIZE_(lo) lo, CG_SIZE_MAX_, 0 /* a size, which text must give unless it may be 0 */
#define CG_SIZE_OR_(usual) 1, CG_SIZE_MAX_, usual
#define CG_NO_VALUE_ 0.0f, 0.0f, 0
#define CG_VALUE_(lo, hi) lo, hi, 0
#define CG_RATIO_ 0.0f, 1.0f, 1
#define CG_NOT_NEGATIVE_ 0.0f, CG_FLT_MAX_, 0
#define CG_POSITIVE_ 0.0f, CG_FLT_MAX_, 1

/* The part of a stage that was left out (core/base/with.h). */
#define CG_LEFT_OUT_(slot, id, name, macro)                                                                \
  {                                                                                                        \
    slot, id, name, NULL, CG_LEFT_OUT_WHY_(name, macro), { NULL, NULL }, 0, 0, 0, CG_NO_ARG_, CG_NO_SIZE_, \
        CG_NO_VALUE_, NULL                                                                                 \
  }

/* ---- samples ---- */

typedef struct cg_sampler_ {
    cg_stage_row_ stage;
    uint64_t (*sampled_n)(const cg_op *op, uint64_t n, const cg_tag *tag); /* see core/plan.h */
    uint8_t walk;                                                          /* CG_WALK_* */
} cg_sampler_;
#define CG_ROW_(id, name, params, warning, flags, traits, size, value, sampled_n, walk, error)             \
  CG_IF_(COMPGRAD_WITH_##id,                                                                               \
      ({ { CG_SLOT_SAMPLE_, CG_SAMPLE_##id, name, params, warning, flags, traits, CG_NO_ARG_, size, value, \
             cg_error_##error##_ },                                                                        \
          cg_sampled_##sampled_n##_, CG_WALK_##walk##_ }),                                                 \
      ({ CG_LEFT_OUT_(CG_SLOT_SAMPLE_, CG_SAMPLE_##id, name, #id), cg_sampled_all_, CG_WALK_STRATA_ })),
/* clang-format off */
#define CG_SAMPLE_LIST_(X)                                                                                            \
  X(RANDK, "randk", "ratio=0.01", CG_STALLS_("randk:unscaled"), CG_FLAGS_("unscaled", "private", 1),                  \
      CG_SAMPLES_RATIO_, CG_NO_SIZE_, CG_RATIO_, randk, STRATA, randk)                                                \
  X(PERMK, "permk", "workers=8", CG_STALLS_("permk:unscaled"), CG_FLAG_("unscaled"), CG_IS_PER_RANK_,                 \
      CG_SIZE_(1), CG_NO_VALUE_, permk, GROUPS, permk)                                                                \
  X(CYCLIC, "cyclic", "blocks=8", CG_STALLS_("cyclic:unscaled"), CG_FLAG_("unscaled"), 0, CG_SIZE_(1),                \
      CG_NO_VALUE_, cyclic, BLOCK, cyclic)
/* clang-format on */
static const cg_sampler_ cg_samplers_[] = {
    { { CG_SLOT_SAMPLE_, 0, "", "", NULL, CG_NO_FLAGS_, 0, CG_NO_ARG_, CG_NO_SIZE_, CG_NO_VALUE_, cg_error_none_ },
        cg_sampled_all_, CG_WALK_STRATA_ },
    CG_SAMPLE_LIST_(CG_ROW_)
};
#undef CG_ROW_

/* ---- transforms ---- */

#define CG_ROW_(id, name, params, warning, flags, traits, arg, size, value, transformed_n, block, apply, factor, \
    work_bytes, error)                                                                                           \
  CG_IF_(COMPGRAD_WITH_##id,                                                                                     \
      ({ { CG_SLOT_TRANSFORM_, CG_TRANSFORM_##id, name, params, warning, flags, traits, arg, size, value,        \
             cg_error_##error##_ },                                                                              \
          cg_transformed_##transformed_n##_, block, apply, factor, work_bytes }),                                \
      ({ CG_LEFT_OUT_(CG_SLOT_TRANSFORM_, CG_TRANSFORM_##id, name, #id), cg_transformed_same_, 0, NULL, NULL,    \
          NULL })),
/* clang-format off */
#define CG_TRANSFORM_LIST_(X)                                                                                         \
  X(ROTATE, "rotate", "rounds=3", NULL, CG_FLAGS_("", "private", 0), CG_IS_ROTATION_, CG_ARG_(1, 3), CG_NO_SIZE_,     \
      CG_NO_VALUE_, rotate, CG_ROTATE_BLOCK_, cg_apply_rotation_, NULL, NULL, none)                                   \
  X(DCT, "dct", "", NULL, CG_NO_FLAGS_, 0, CG_NO_ARG_, CG_NO_SIZE_, CG_NO_VALUE_, dct, CG_DCT_BLOCK_,                 \
      cg_apply_dct_, NULL, NULL, none)                                                                                \
  X(LOWRANK, "lowrank", "rank=4:rows=512:cols=256", CG_STALLS_("lowrank"), CG_NO_FLAGS_, CG_IS_MATRIX_ |              \
      CG_IS_LINEAR_MATRIX_ | CG_IS_BIASED_, CG_ARG_(1, 64), CG_SIZE_(1), CG_VALUE_(1.0f, 16777216.0f), matrix, 0,     \
      NULL, cg_factor_lowrank_, cg_work_bytes_lowrank_, by_data)                                                      \
  X(ATOMO, "atomo", "budget=4:rows=512:cols=256", NULL, CG_NO_FLAGS_, CG_IS_MATRIX_, CG_ARG_(1, 64), CG_SIZE_(1),     \
      CG_VALUE_(1.0f, 16777216.0f), matrix, 0, NULL, cg_factor_atomo_, cg_work_bytes_atomo_, atomo)
/* clang-format on */
static const cg_transformer_ cg_transformers_[] = {
    { { CG_SLOT_TRANSFORM_, 0, "", "", NULL, CG_NO_FLAGS_, 0, CG_NO_ARG_, CG_NO_SIZE_, CG_NO_VALUE_, cg_error_none_ },
        cg_transformed_same_, 0, NULL, NULL, NULL },
    CG_TRANSFORM_LIST_(CG_ROW_)
};
#undef CG_ROW_

/* ---- clips ---- */

#define CG_ROW_(id, number, name, params, traits, value, error)                                           \
  CG_IF_(COMPGRAD_WITH_##id,                                                                              \
      ({ CG_SLOT_CLIP_, number, name, params, NULL, CG_NO_FLAGS_, traits, CG_NO_ARG_, CG_NO_SIZE_, value, \
          cg_error_##error##_ }),                                                                         \
      (CG_LEFT_OUT_(CG_SLOT_CLIP_, number, name, #id))),
/* clang-format off */
#define CG_CLIP_LIST_(X)                                                                                              \
  X(CLIP, CG_CLIP_RMS, "clip", "rms=2.5", CG_IS_BIASED_, CG_POSITIVE_, clip)
/* clang-format on */
static const cg_stage_row_ cg_clips_[] = { { CG_SLOT_CLIP_, 0, "", "", NULL, CG_NO_FLAGS_, 0, CG_NO_ARG_, CG_NO_SIZE_,
                                               CG_NO_VALUE_, cg_error_none_ },
    CG_CLIP_LIST_(CG_ROW_) };
#undef CG_ROW_

/* ---- selections ---- */

#define CG_ROW_(id, name, params, warning, traits, size, value, max_selected, pick, error)                    \
  CG_IF_(COMPGRAD_WITH_##id,                                                                                  \
      ({ { CG_SLOT_SELECT_, CG_SELECT_##id, name, params, warning, CG_NO_FLAGS_, CG_IS_SELECTION_ | (traits), \
             CG_NO_ARG_, size, value, cg_error_##error##_ },                                                  \
          cg_selected_##max_selected##_, cg_select_##pick##_ }),                                              \
      ({ CG_LEFT_OUT_(CG_SLOT_SELECT_, CG_SELECT_##id, name, #id), cg_selected_all_, NULL }))
#define CG_TOPK_TRAITS_ CG_IS_BIASED_ | CG_HAS_RATIO_ | CG_KEEPS_ABOUT_ | CG_KEEPS_LARGEST_
static const cg_selection_ cg_selections_[] = {
    { { CG_SLOT_SELECT_, 0, "", "", NULL, CG_NO_FLAGS_, 0, CG_NO_ARG_, CG_NO_SIZE_, CG_NO_VALUE_, cg_error_none_ },
        cg_selected_all_, NULL },
    CG_ROW_(TOPK, "topk", "ratio=0.01", CG_STALLS_("topk"),
        CG_TOPK_TRAITS_ | CG_TAKES_K_ | CG_KEEPS_EXACTLY_ | CG_TAKES_PRODUCER_, CG_NO_SIZE_, CG_RATIO_, k,
        topk_by_ratio, largest),
    CG_ROW_(THRESHOLD, "threshold", "magnitude=0.001", CG_STALLS_("threshold"), CG_IS_BIASED_, CG_NO_SIZE_,
        CG_NOT_NEGATIVE_, all, threshold, by_data),
    CG_ROW_(
        DGC, "dgc", "ratio=0.01", CG_STALLS_("dgc"), CG_TOPK_TRAITS_, CG_NO_SIZE_, CG_RATIO_, estimate, dgc, estimated),
    CG_ROW_(MSTOPK, "mstopk", "ratio=0.01", CG_STALLS_("mstopk"), CG_TOPK_TRAITS_ | CG_TAKES_K_ | CG_KEEPS_EXACTLY_,
        CG_NO_SIZE_, CG_RATIO_, k, mstopk, largest),
    CG_ROW_(SIDCO, "sidco", "ratio=0.01", CG_STALLS_("sidco"), CG_TOPK_TRAITS_, CG_NO_SIZE_, CG_RATIO_, estimate, sidco,
        estimated),
    CG_ROW_(WANGNI, "wangni", "ratio=0.01", NULL, CG_HAS_RATIO_, CG_NO_SIZE_, CG_RATIO_, all, wangni, wangni),
    CG_ROW_(WANGNIVAR, "wangnivar", "epsilon=0.5", NULL, 0, CG_NO_SIZE_, CG_POSITIVE_, all, wangni_variance, wangnivar),
    CG_ROW_(BINS, "bins", "bin=50", CG_STALLS_("bins"), CG_IS_BIASED_ | CG_NEEDS_AUX_, CG_SIZE_(1), CG_NO_VALUE_, all,
        adacomp, unknown),
    CG_ROW_(SIDES, "sides", "ratio=0.01", CG_STALLS_("sides"), CG_IS_BIASED_ | CG_HAS_RATIO_, CG_NO_SIZE_, CG_RATIO_,
        all, sides, sides),
    CG_ROW_(SIDE, "side", "ratio=0.01", CG_STALLS_("side"), CG_IS_BIASED_ | CG_HAS_RATIO_ | CG_KEEPS_ONE_SIDE_,
        CG_NO_SIZE_, CG_RATIO_, k, sides, side),
    CG_ROW_(CHUNKED, "chunked", "chunk=64:ratio=0.1", CG_STALLS_("chunked"),
        CG_IS_BIASED_ | CG_HAS_RATIO_ | CG_KEEPS_ABOUT_ | CG_KEEPS_EXACTLY_, CG_SIZE_(1), CG_RATIO_, chunked, chunked,
        chunked),
    CG_ROW_(BLOCKS, "blocks", "block=256", NULL, CG_KEEPS_BLOCKS_, CG_SIZE_(1), CG_NO_VALUE_, all, blocks, blocks),
    CG_ROW_(GIVEN, "given", "support=0", CG_STALLS_("given"), CG_IS_BIASED_ | CG_NEEDS_SUPPORT_, CG_SIZE_(0),
        CG_NO_VALUE_, all, given, by_data),
    CG_ROW_(VARIANCE, "variance", "alpha=1", CG_STALLS_("variance"),
        CG_IS_BIASED_ | CG_NEEDS_AUX_ | CG_AUX_IS_VARIANCE_, CG_NO_SIZE_, CG_NOT_NEGATIVE_, all, variance, by_data),
};
#undef CG_ROW_

/* ---- quantizers ---- */

/* needs, scale_count, scale_width, byte_scale, measure, set_scales, legal */
#define CG_NO_SCALES_ CG_NEEDS_NOTHING_, 0, 4, NULL, NULL, NULL, NULL
#define CG_MEAN_AFTERWARDS_ CG_NEEDS_SUM_AFTERWARDS_, 1, 4, NULL, NULL, NULL, cg_legal_magnitude_
#define CG_SCALES_(count, measure, set, legal) \
  CG_NEEDS_BUCKET_STATS_, count, 4, NULL, cg_measure_##measure##_, cg_set_scales_##set##_, cg_legal_##legal##_
#define CG_E8M0_(element) /* one byte */ \
  CG_NEEDS_BUCKET_STATS_, 1, 1, &cg_byte_e8m0_, cg_measure_absmax_, cg_set_scales_mx_##element##_, cg_legal_magnitude_
#define CG_E4M3_SCALES_ /* one byte, and one float for all */ \
  CG_NEEDS_BUCKET_STATS_, 1, 1, &cg_byte_e4m3_, cg_measure_absmax_, cg_set_scales_absmax_, cg_legal_magnitude_
/* output, bits, fixed_bucket, full_scale, levels, bits_x32 */
#define CG_PACKED_(bits) CG_OUTPUT_PACKED_, bits, 0, 0.0f, NULL, NULL
#define CG_GRID_(levels) CG_OUTPUT_SYMBOLS_, 0, 0, 0.0f, cg_levels_##levels##_, NULL
#define CG_PACKED_GRID_(bits, levels) CG_OUTPUT_PACKED_, bits, 0, 0.0f, cg_levels_##levels##_, NULL
#define CG_LEVELS16_ CG_OUTPUT_LEVELS_, 16, 0, 0.0f, NULL, NULL
#define CG_RATE_SCALES_ CG_NEEDS_BUCKET_STATS_, 2, 4, NULL, NULL, NULL, cg_legal_rate_
#define CG_RATE_TRAITS_ CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_ | CG_OWNS_SCALES_ | CG_LENGTH_VARIES_
#define CG_TABLE_(bits, bucket, full_scale) CG_OUTPUT_SYMBOLS_, bits, bucket, full_scale, NULL, NULL
/* rescale, stored_absmax_bits, stored_limit, promise */
#define CG_TOTAL_ NULL, NULL, 0, NULL
#define CG_ENTROPY_CODED_(promise) NULL, NULL, 0, cg_##promise##_promise_
#define CG_STORED_(width, limit) NULL, cg_stored_absmax_bits_##width##_, limit, NULL
#define CG_ROW_(                                                                                             \
    id, name, params, warning, flags, traits, arg, size, value, scales, output, encode, decode, rest, error) \
  CG_IF_(COMPGRAD_WITH_##id,                                                                                 \
      ({ { CG_SLOT_QUANTIZE_, CG_QUANTIZE_##id, name, params, warning, flags, traits, arg, size, value,      \
             cg_error_##error##_ },                                                                          \
          scales, output, cg_encode_##encode##_, cg_decode_##decode##_, rest }),                             \
      ({ CG_LEFT_OUT_(CG_SLOT_QUANTIZE_, CG_QUANTIZE_##id, name, #id), CG_LEFT_OUT_QUANTIZER_ }))
#define CG_LEFT_OUT_QUANTIZER_ CG_NO_SCALES_, CG_PACKED_(0), NULL, NULL, CG_TOTAL_
/* the same of a format without parameters */
#define CG_PLAIN_(id, name, params, warning, traits, scales, output, function, rest, error)                           \
  CG_IF_(COMPGRAD_WITH_##id,                                                                                          \
      ({ { CG_SLOT_QUANTIZE_, CG_QUANTIZE_##id, name, params, warning, CG_NO_FLAGS_, traits, CG_NO_ARG_, CG_NO_SIZE_, \
             CG_NO_VALUE_, cg_error_##error##_ },                                                                     \
          scales, output, cg_encode_##function##_, cg_decode_##function##_, rest }),                                  \
      ({ CG_LEFT_OUT_(CG_SLOT_QUANTIZE_, CG_QUANTIZE_##id, name, #id), CG_LEFT_OUT_QUANTIZER_ }))
static const cg_quantizer_ cg_quantizers_[] = {
    { { CG_SLOT_QUANTIZE_, 0, "", "", NULL, CG_NO_FLAGS_, CG_IS_F32_ | CG_CODES_EXPONENTS_, CG_NO_ARG_, CG_NO_SIZE_,
          CG_NO_VALUE_, cg_error_none_ },
        CG_NO_SCALES_, CG_PACKED_(32), cg_encode_f32_, cg_decode_f32_, CG_STORED_(f32, CG_INF_BITS_) },
    CG_ROW_(F16, "f16", "", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_, CG_NO_ARG_, CG_NO_SIZE_,
        CG_NO_VALUE_, CG_NO_SCALES_, CG_PACKED_(16), f16, f16, CG_STORED_(16, 0x7c00), f16),
    CG_ROW_(BF16, "bf16", "", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_ | CG_CODES_EXPONENTS_,
        CG_NO_ARG_, CG_NO_SIZE_, CG_NO_VALUE_, CG_NO_SCALES_, CG_PACKED_(16), bf16, bf16, CG_STORED_(16, 0x7f80), bf16),
    CG_PLAIN_(SIGN, "sign", "", CG_STALLS_("sign"), CG_IS_BIASED_ | CG_IS_SIGN_, CG_NO_SCALES_, CG_PACKED_(1), sign,
        CG_TOTAL_, unknown),
    CG_PLAIN_(EFSIGN, "efsign", "", CG_STALLS_("efsign"), CG_IS_BIASED_, CG_MEAN_AFTERWARDS_, CG_PACKED_(1), efsign,
        CG_TOTAL_, mean),
    CG_ROW_(ABSMAX, "absmax", "bits=4:bucket=512", NULL, CG_FLAG_("nearest"), CG_HAS_GRID_ | CG_ROUNDS_AT_RANDOM_,
        CG_ARG_(1, 8), CG_SIZE_(1), CG_NO_VALUE_, CG_SCALES_(1, absmax, absmax, magnitude), CG_GRID_(of_bits), levels,
        levels, CG_TOTAL_, grid),
    CG_ROW_(MINMAX, "minmax", "bits=4:bucket=512", NULL, CG_FLAGS_("nearest", "norm", 1),
        CG_HAS_GRID_ | CG_ROUNDS_AT_RANDOM_ | CG_SCALES_ARE_ENDS_, CG_ARG_(1, 8), CG_SIZE_(1), CG_NO_VALUE_,
        CG_SCALES_(2, range, range, range), CG_GRID_(none), levels, levels, CG_TOTAL_, minmax),
    CG_ROW_(TERNGRAD, "terngrad", "", NULL, CG_FLAGS_("nearest", "clip", 3), CG_HAS_GRID_ | CG_ROUNDS_AT_RANDOM_,
        CG_NO_ARG_, CG_NO_SIZE_, CG_NO_VALUE_, CG_SCALES_(1, ternary, ternary, magnitude), CG_GRID_(one), levels,
        levels, CG_TOTAL_, terngrad),
    CG_ROW_(LEVELS, "levels", "levels=4:bucket=512", NULL, CG_FLAGS_("nearest", "max", 1),
        CG_HAS_GRID_ | CG_ROUNDS_AT_RANDOM_, CG_ARG_(1, 127), CG_SIZE_(0), CG_NO_VALUE_,
        CG_SCALES_(1, norm, norm, magnitude), CG_GRID_(of_arg), levels, levels, CG_TOTAL_, levels),
    CG_ROW_(FLEXPOINT, "flexpoint", "bits=8:bucket=512", NULL, CG_NO_FLAGS_,
        CG_IS_BIASED_ | CG_HAS_GRID_ | CG_SCALE_IS_STEP_ | CG_ROUNDS_TO_NEAREST_, CG_ARG_(2, 8), CG_SIZE_(1),
        CG_NO_VALUE_, CG_SCALES_(1, absmax, pow2, magnitude), CG_GRID_(of_bits), levels, levels, CG_TOTAL_, flexpoint),
    CG_ROW_(TRITS, "trits", "multiplier=1", CG_STALLS_("trits"), CG_NO_FLAGS_,
        CG_IS_BIASED_ | CG_HAS_GRID_ | CG_ROUNDS_TO_NEAREST_, CG_NO_ARG_, CG_NO_SIZE_, CG_VALUE_(1.0f, 1.99999988f),
        CG_SCALES_(1, absmax, threelc, magnitude), CG_GRID_(one), levels, levels, CG_TOTAL_, trits),
    CG_ROW_(STROM, "strom", "tau=0.001", CG_STALLS_("strom"), CG_NO_FLAGS_, CG_IS_BIASED_, CG_NO_ARG_, CG_NO_SIZE_,
        CG_POSITIVE_, CG_NO_SCALES_, CG_GRID_(one), strom, strom, CG_TOTAL_, by_data),
    CG_ROW_(ONEBIT, "onebit", "column=1024", CG_STALLS_("onebit"), CG_NO_FLAGS_, CG_IS_BIASED_, CG_NO_ARG_, CG_SIZE_(0),
        CG_NO_VALUE_, CG_SCALES_(2, signed_sums, signed_means, finite2), CG_TABLE_(1, 0, 0.0f), onebit, onebit,
        CG_TOTAL_, mean),
    CG_ROW_(MEAN, "mean", "", CG_STALLS_("mean"), CG_NO_FLAGS_, CG_IS_BIASED_, CG_NO_ARG_, CG_NO_SIZE_, CG_NO_VALUE_,
        CG_SCALES_(1, signed_sums, mean, finite), CG_PACKED_(0), none, mean, CG_TOTAL_, mean),
    CG_ROW_(NATURAL, "natural", "", NULL, CG_FLAG_("nearest"), CG_ROUNDS_AT_RANDOM_, CG_NO_ARG_, CG_NO_SIZE_,
        CG_NO_VALUE_, CG_NO_SCALES_, CG_PACKED_(9), natural, natural, CG_TOTAL_, natural),
    CG_ROW_(DITHER, "dither", "bits=4:bucket=512", NULL, CG_FLAGS_("nearest", "max", 1), CG_ROUNDS_AT_RANDOM_,
        CG_ARG_(2, 8), CG_SIZE_(0), CG_NO_VALUE_, CG_SCALES_(1, norm, norm, magnitude), CG_TABLE_(0, 0, 1.0f), dither,
        dither, CG_TOTAL_, dither),
    CG_ROW_(DYNAMIC8, "dynamic8", "bucket=256", NULL, CG_NO_FLAGS_, CG_IS_BIASED_, CG_NO_ARG_, CG_SIZE_(0),
        CG_NO_VALUE_, CG_SCALES_(1, absmax, absmax, magnitude), CG_TABLE_(8, 0, 1.0f), dynamic, dynamic, CG_TOTAL_,
        dynamic8),
    CG_ROW_(E4M3, "e4m3", "bucket=512", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_, CG_NO_ARG_,
        CG_SIZE_OR_(512), CG_NO_VALUE_, CG_SCALES_(1, absmax, absmax, magnitude), CG_TABLE_(8, 0, CG_E4M3_MAX_), e4m3,
        e4m3, CG_TOTAL_, e4m3),
    CG_ROW_(E5M2, "e5m2", "bucket=512", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_, CG_NO_ARG_,
        CG_SIZE_OR_(512), CG_NO_VALUE_, CG_SCALES_(1, absmax, absmax, magnitude), CG_TABLE_(8, 0, CG_E5M2_MAX_), e5m2,
        e5m2, CG_TOTAL_, e5m2),
    CG_ROW_(MXFP4, "mxfp4", "", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_, CG_NO_ARG_, CG_NO_SIZE_,
        CG_NO_VALUE_, CG_E8M0_(e2m1), CG_TABLE_(4, 32, 1.0f), mx4, mx4, CG_TOTAL_, mxfp4),
    CG_ROW_(MXE4M3, "mxe4m3", "", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_, CG_NO_ARG_, CG_NO_SIZE_,
        CG_NO_VALUE_, CG_E8M0_(e4m3), CG_TABLE_(8, 32, 1.0f), e4m3, mx_e4m3, CG_TOTAL_, mxe4m3),
    CG_ROW_(MXE5M2, "mxe5m2", "", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_, CG_NO_ARG_, CG_NO_SIZE_,
        CG_NO_VALUE_, CG_E8M0_(e5m2), CG_TABLE_(8, 32, 1.0f), e5m2, mx_e5m2, CG_TOTAL_, mxe5m2),
    CG_ROW_(NF4, "nf4", "bucket=64", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_, CG_NO_ARG_,
        CG_SIZE_OR_(64), CG_NO_VALUE_, CG_SCALES_(1, absmax, absmax, magnitude), CG_TABLE_(4, 0, 1.0f), nf4, nf4,
        CG_TOTAL_, nf4),
    CG_IF_(COMPGRAD_WITH_LLOYD,
        ({ { CG_SLOT_QUANTIZE_, CG_QUANTIZE_LLOYD, "lloyd", "bits=2", NULL, CG_NO_FLAGS_,
               CG_WANTS_ROTATION_ | CG_OWNS_SCALES_, CG_NO_ARG_, CG_NO_SIZE_, CG_VALUE_(1.0f, 4.0f), cg_error_lloyd_ },
            CG_SCALES_(1, norm, l2norm, magnitude), CG_OUTPUT_PACKED_, 0, CG_ROTATE_BLOCK_, 0.0f, NULL,
            cg_bits_x32_lloyd_, cg_encode_lloyd_, cg_decode_lloyd_, cg_rescale_lloyd_, NULL, 0, NULL }),
        ({ CG_LEFT_OUT_(CG_SLOT_QUANTIZE_, CG_QUANTIZE_LLOYD, "lloyd", "LLOYD"), CG_LEFT_OUT_QUANTIZER_ })),
    CG_ROW_(FLEX16, "flex16", "bucket=512", NULL, CG_NO_FLAGS_,
        CG_IS_BIASED_ | CG_HAS_GRID_ | CG_SCALE_IS_STEP_ | CG_ROUNDS_TO_NEAREST_, CG_NO_ARG_, CG_SIZE_(1), CG_NO_VALUE_,
        CG_SCALES_(1, absmax, pow2, magnitude), CG_PACKED_GRID_(16, 16_bits), steps16, steps16, CG_TOTAL_, flexpoint),
    CG_ROW_(RATE, "rate", "bits=0.5", CG_STALLS_("rate"), CG_UNBIASED_, CG_RATE_TRAITS_, CG_NO_ARG_, CG_NO_SIZE_,
        CG_VALUE_(0.005f, 8.0f), CG_RATE_SCALES_, CG_LEVELS16_, rate, rate, CG_ENTROPY_CODED_(rate), rate),
    CG_ROW_(STEP, "step", "share=0.5", CG_STALLS_("step"), CG_UNBIASED_, CG_RATE_TRAITS_, CG_NO_ARG_, CG_NO_SIZE_,
        CG_VALUE_(0.001f, 1024.0f), CG_RATE_SCALES_, CG_LEVELS16_, rate, rate, CG_ENTROPY_CODED_(step), step),
    CG_ROW_(NVFP4, "nvfp4", "", NULL, CG_STOCHASTIC_, CG_IS_BIASED_ | CG_ROUNDS_AT_RANDOM_ | CG_OWNS_SCALES_,
        CG_NO_ARG_, CG_NO_SIZE_, CG_NO_VALUE_, CG_E4M3_SCALES_, CG_TABLE_(4, 16, 1.0f), mx4, mx4, CG_TOTAL_, nvfp4),
    CG_ROW_(GEOMETRIC, "geometric", "bits=2:bucket=512", CG_STALLS_("geometric"), CG_NO_FLAGS_,
        CG_IS_BIASED_ | CG_OWNS_SCALES_, CG_ARG_(1, 4), CG_SIZE_(0), CG_NO_VALUE_,
        CG_SCALES_(2, magnitudes, magnitudes, magnitudes), CG_TABLE_(0, 0, 0.0f), geometric, geometric, CG_TOTAL_,
        geometric),
};
#undef CG_ROW_
#undef CG_PLAIN_
/* of every cg_codec */
static const cg_stage_row_ cg_user_row_ = { CG_SLOT_QUANTIZE_, CG_QUANTIZE_USER, "user", "", NULL, CG_NO_FLAGS_,
    CG_IS_USER_CODEC_ | CG_IS_BIASED_, CG_ARG_(0, 65535), CG_SIZE_(0), CG_NOT_NEGATIVE_, cg_error_unknown_ };

/* ---- codes of indices ---- */

#define CG_CODER_(id, name, traits, bytes, bound, code, reader)                                                   \
  {                                                                                                               \
    id, name, NULL, traits, cg_index_bytes_##bytes##_, cg_index_bound_##bound##_, cg_index_put_##code##_,         \
        cg_index_open_##code##_, cg_index_get_##reader##_, cg_index_padding_##code##_, cg_index_check_##reader##_ \
  }
#define CG_ROW_(id, name, traits, bytes, bound, code, reader)                                     \
  CG_IF_(COMPGRAD_WITH_##id, (CG_CODER_(CG_CODE_##id, name, traits, bytes, bound, code, reader)), \
      ({ CG_CODE_##id, name, CG_LEFT_OUT_WHY_(name, #id), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL }))
static const cg_index_coder_ cg_index_coders_[] = {
    /* chooses; in a header: there are no indices */
    { CG_CODE_AUTO, "", NULL, 0, NULL, cg_index_bound_auto_, NULL, NULL, cg_index_get_bits_, NULL, NULL },
    CG_CODER_(CG_CODE_ELIAS_FANO, "eliasfano", 0, elias_fano, elias_fano, elias_fano, bits),
    CG_CODER_(CG_CODE_BITMAP, "bitmap", 0, bitmap, bitmap, bitmap, bits),
    CG_ROW_(GOLOMB, "golomb", CG_INDEX_LENGTH_VARIES_, golomb, golomb, golomb, golomb),
};
#undef CG_ROW_
#undef CG_CODER_

#define CG_LENGTH_OF_(table) (sizeof(table) / sizeof(table)[0])
static const cg_index_coder_ *cg_index_coder_at_(unsigned id) {
    return id < CG_LENGTH_OF_(cg_index_coders_) ? &cg_index_coders_[id] : NULL;
}
static const cg_stage_row_ *cg_row_at_(unsigned slot, unsigned id) {
    switch (slot) {
    case CG_SLOT_SAMPLE_: return id < CG_LENGTH_OF_(cg_samplers_) ? &cg_samplers_[id].stage : NULL;
    case CG_SLOT_TRANSFORM_: return id < CG_LENGTH_OF_(cg_transformers_) ? &cg_transformers_[id].stage : NULL;
    case CG_SLOT_SELECT_: return id < CG_LENGTH_OF_(cg_selections_) ? &cg_selections_[id].stage : NULL;
    case CG_SLOT_QUANTIZE_: return id < CG_LENGTH_OF_(cg_quantizers_) ? &cg_quantizers_[id].stage : NULL;
    case CG_SLOT_CLIP_: return id < CG_LENGTH_OF_(cg_clips_) ? &cg_clips_[id] : NULL;
    default: return NULL;
    }
}
static const cg_stage_row_ *cg_stage_row_of_(unsigned slot, const cg_stage *s) {
    const cg_stage_row_ *row = cg_row_at_(slot, s->id);
    if (row) return row;
    return slot == CG_SLOT_QUANTIZE_ && cg_is_user_codec_(s) ? &cg_user_row_ : &cg_samplers_[0].stage;
}
static uint32_t cg_op_traits_(const cg_op *op) {
    uint32_t traits = 0;
    if (op->sample.id < CG_LENGTH_OF_(cg_samplers_)) traits |= cg_samplers_[op->sample.id].stage.traits;
    if (op->transform.id < CG_LENGTH_OF_(cg_transformers_)) traits |= cg_transformers_[op->transform.id].stage.traits;
    if (op->select.id < CG_LENGTH_OF_(cg_selections_)) traits |= cg_selections_[op->select.id].stage.traits;
    if (op->quantize.id < CG_LENGTH_OF_(cg_quantizers_)) traits |= cg_quantizers_[op->quantize.id].stage.traits;
    else if (cg_is_user_codec_(&op->quantize)) traits |= cg_user_row_.traits;
    if (op->clip.id && op->clip.id < CG_LENGTH_OF_(cg_clips_)) {
        traits |= cg_clips_[op->clip.id].traits;
        traits &= ~(uint32_t)CG_IS_F32_; /* values are not sent as they are */
    }
    if ((op->sample.flags | op->transform.flags) & CG_FLAG_PRIVATE) traits |= CG_IS_PRIVATE_;
    if (op->code.id < CG_LENGTH_OF_(cg_index_coders_)) traits |= cg_index_coders_[op->code.id].traits;
    return traits;
}
CG_INLINE_ int cg_builds_samples_(void) { return 0 CG_SAMPLE_LIST_(CG_OR_BUILT_); }
CG_INLINE_ int cg_builds_clips_(void) { return 0 CG_CLIP_LIST_(CG_OR_BUILT_); }
CG_INLINE_ int cg_builds_transforms_(void) { return 0 CG_TRANSFORM_LIST_(CG_OR_BUILT_); }
static const cg_transformer_ *cg_transformer_of_(const cg_op *op) { return &cg_transformers_[op->transform.id]; }
static const cg_selection_ *cg_selection_of_(const cg_op *op) { return &cg_selections_[op->select.id]; }
static const cg_quantizer_ *cg_quantizer_of_(const cg_stage *q) {
    return q->id < CG_LENGTH_OF_(cg_quantizers_) ? &cg_quantizers_[q->id] : NULL;
}

static int cg_sample_walk_(const cg_op *op) { return cg_samplers_[op->sample.id].walk; }
static uint64_t cg_sampled_n_(const cg_op *op, uint64_t n, const cg_tag *tag) {
    return cg_samplers_[op->sample.id].sampled_n(op, n, tag);
}
static void cg_plan_resume_(cg_plan_ *plan, const cg_op *op) {
    plan->transformed_n = cg_transformer_of_(op)->transformed_n(op, plan->sampled_n);
    plan->max_selected = cg_selection_of_(op)->max_selected(op, plan->transformed_n);
    plan->values_per_index = plan->traits & CG_KEEPS_BLOCKS_ ? op->select.size : 1;
    plan->universe = cg_index_count_(plan, plan->transformed_n);
}
static void cg_plan_set_(cg_plan_ *plan, const cg_op *op, uint64_t n, const cg_tag *tag) {
    plan->n = n;
    plan->sampled_n = cg_sampled_n_(op, n, tag);
    cg_plan_resume_(plan, op);
}

/* src/core/encode.h */
/* encode: the loop that turns values into scales and codes

   Offers   cg_encoder_, cg_encode_values_, cg_source_clip_, cg_scales_put_, cg_scales_get_, cg_bucket_end_,
            cg_producer_make_all_
   Needs    base, random, kernels, codes (symbols, floats), packet (checksums), quantize, layout, source, select/filter
   Touches  the packet's value section; x, if a producer makes it
   Other headers may use: cg_producer_run_, cg_vector_pass_
   Blocks of 65536 values are encoded independently, by threads if there are any, 64 blocks (a wave) at a time; the
   results of a wave are put together in order, so that no bit depends on the number of threads. Within a block, chunks
   of 2048 values are fetched, measured, quantized, packed and summed while they stay in L1. */

/* What all blocks share. */
typedef struct cg_encoder_ {
    const cg_kernels_ *kernels;
    const cg_stage *stage; /* quantize */
    const cg_layout_ *lay;
    const cg_source_ *src;
    const float *given_scales;       /* scales that the caller gave, of any alignment, or NULL */
    uint64_t key;                    /* of rounding noise */
    uint32_t noise_shift;            /* cg_key_.shift of all blocks */
    uint8_t *scales, *table, *codes; /* sections of the packet; table: entries of pieces */
    size_t producer_step;            /* values that the producer makes at a time */
    int to_sum;                      /* checksums are wanted: the packet is not small */
} cg_encoder_;

/* What one block leaves for the end of the wave. */
typedef struct cg_block_result_ {
    cg_checksum_ checksum; /* of its codes, if packed */
    uint32_t absmax_bits;  /* the finite check */
    double lane_total;     /* the sum of encode's lanes */
    double energy;         /* the sum of squares that the producer returned */
    size_t bytes;          /* of its codes, with a value code */
} cg_block_result_;

static const cg_bucket_stats_ cg_bucket_stats_none_ = { 0, CG_FLT_MAX_, -CG_FLT_MAX_, { 0.0, 0.0 }, 0, 0 };

static void cg_bucket_stats_merge_(cg_bucket_stats_ *s, const cg_bucket_stats_ *t) {
    s->absmax_bits = cg_max32_(s->absmax_bits, t->absmax_bits);
    s->lo = t->lo < s->lo ? t->lo : s->lo;
    s->hi = t->hi > s->hi ? t->hi : s->hi;
    s->sums[0] += t->sums[0];
    s->sums[1] += t->sums[1];
    s->negatives += t->negatives;
    s->count += t->count;
}
/* One past the last value of bucket b, which is not empty. */
static size_t cg_bucket_end_(const cg_layout_ *lay, size_t b) {
    size_t k = (size_t)lay->k, size = (size_t)lay->bucket_size, start = b * size;
    return size > k - start ? k : start + size;
}
/* Statistics of values [first, last), summed by runs between multiples of 2048 and by blocks. v holds values [v_first,
   v_end), which begin and end at multiples of 2048 or the last value; others are fetched. */
static cg_bucket_stats_ cg_measure_(
    const cg_encoder_ *e, size_t first, size_t last, const float *v, size_t v_first, size_t v_end) {
    cg_bucket_stats_ stat = cg_bucket_stats_none_, block_stats = cg_bucket_stats_none_;
    float buf[CG_CHUNK_];
    for (size_t i = first, many; i < last; i += many) {
        many = cg_min_(last - i, CG_CHUNK_ - i % CG_CHUNK_);
        block_stats.count += many;
        e->lay->quantizer->measure(e->kernels, e->stage,
            i >= v_first && i < v_end ? cg_at_(v, i - v_first) : cg_source_fetch_(e->src, i, many, buf), many,
            &block_stats);
        if ((i + many) % CG_BLOCK_ == 0 || i + many == last) {
            cg_bucket_stats_merge_(&stat, &block_stats);
            block_stats = cg_bucket_stats_none_;
        }
    }
    return stat;
}
/* Stores the scales of a bucket in the packet. */
static void cg_scales_put_(const cg_encoder_ *e, size_t bucket, const float *scales) {
    const cg_byte_scale_ *byte_scale = e->lay->quantizer->byte_scale;
    unsigned per = e->lay->quantizer->scale_count;
    if (byte_scale) {
        e->scales[(size_t)e->lay->vector_bytes + bucket] = (uint8_t)byte_scale->put(
            e->stage, scales[0], e->lay->vector_bytes ? cg_as_float_(cg_get32_(e->scales)) : 1.0f);
        return;
    }
    for (unsigned i = 0; i < per; i++) cg_put32_(e->scales + 4 * (bucket * per + i), cg_as_bits_(scales[i]));
}
/* The scales of a bucket, scale_count of them, from the scale section at p. */
static void cg_scales_get_(const cg_layout_ *lay, const uint8_t *p, size_t bucket, float *scales) {
    const cg_byte_scale_ *byte_scale = lay->quantizer->byte_scale;
    unsigned per = lay->quantizer->scale_count;
    if (byte_scale) {
        scales[0] = byte_scale->get(
            p[(size_t)lay->vector_bytes + bucket], lay->vector_bytes ? cg_as_float_(cg_get32_(p)) : 1.0f);
        return;
    }
    for (unsigned i = 0; i < per; i++) scales[i] = cg_as_float_(cg_get32_(p + 4 * (bucket * per + i)));
}

/* The state of one block, whose chunks are encoded one after the other, each in buckets. A bucket is measured when the
   block comes to its first value, or to the first within the block; the block in which it starts stores its scales.
   Buckets longer than a block have been measured before, by cg_measure_long_buckets_. */
typedef struct cg_block_encoder_ {
    size_t block_begin;  /* first value of the block */
    size_t bucket_index; /* whose scales these are; SIZE_MAX: none yet */
    cg_key_ key;
    float scales[2];
    double lanes[16];              /* sums that encode adds to */
    uint32_t absmax_bits;          /* the finite check: the largest magnitude so far, or 0 where sums show it */
    cg_bucket_stats_ bucket_stats; /* of the current bucket */
} cg_block_encoder_;

static void cg_block_encoder_open_(cg_block_encoder_ *enc, const cg_encoder_ *e, size_t block) {
    enc->block_begin = block * CG_BLOCK_;
    enc->bucket_index = SIZE_MAX;
    enc->key = cg_block_key_(e->key, block);
    enc->key.shift = e->noise_shift;
    enc->absmax_bits = 0;
    if (e->lay->quantizer->needs == CG_NEEDS_SUM_AFTERWARDS_) memset(enc->lanes, 0, sizeof enc->lanes);
}
/* The sum of the lanes, of quantizers that need it after all blocks. */
static double cg_block_encoder_total_(cg_block_encoder_ *enc, const cg_encoder_ *e) {
    return e->lay->quantizer->needs == CG_NEEDS_SUM_AFTERWARDS_ ? cg_lanes_reduce_(enc->lanes) : 0.0;
}
/* Sets the scales of bucket b, of which v, values [first, end), has at least one; 0: a value of it is not finite. */
static int cg_block_encoder_bucket_(
    const cg_encoder_ *e, cg_block_encoder_ *enc, size_t b, const float *v, size_t first, size_t end) {
    const cg_layout_ *lay = e->lay;
    const cg_quantizer_ *quantizer = lay->quantizer;
    const size_t start = b * (size_t)lay->bucket_size, stop = cg_bucket_end_(lay, b);
    enc->bucket_index = b;
    if (lay->bucket_size > CG_BLOCK_ || e->given_scales) {
        cg_scales_get_(lay, e->scales, b, enc->scales);
        return 1;
    }
    if (start >= first && stop <= end) { /* all of it is here */
        enc->bucket_stats = cg_bucket_stats_none_;
        enc->bucket_stats.count = stop - start;
        quantizer->measure(e->kernels, e->stage, cg_at_(v, start - first), stop - start, &enc->bucket_stats);
    } else {
        enc->bucket_stats = cg_measure_(e, start, stop, v, first, end);
    }
    enc->absmax_bits = cg_max32_(enc->absmax_bits, enc->bucket_stats.absmax_bits);
    if (enc->bucket_stats.absmax_bits >= CG_INF_BITS_) return 0;
    quantizer->set_scales(e->stage, &enc->bucket_stats, enc->scales);
    if (start >= enc->block_begin && !quantizer->rescale) cg_scales_put_(e, b, enc->scales);
    if (lay->vector_bytes) cg_scales_get_(lay, e->scales, b, enc->scales); /* as rounded; such buckets lie in blocks */
    return 1;
}
/* out = v * full_scale / scale, 0 for a scale of 0. With a tiny scale both are multiplied by 2^100 first. */
static void cg_bucket_normalize_(
    const cg_kernels_ *kernels, float full_scale, float scale, const float *v, size_t n, float *out) {
    if (!cg_is_tiny_(scale) || scale == 0.0f) {
        for (size_t i = 0; i < n; i += 16) CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_));
        CG_KERNEL_(kernels, axpby(v, n, cg_ratio_or_zero_(full_scale, scale), 0.0f, out, 0));
        return;
    }
    scale = cg_times_(scale, CG_POW2_100_);
    for (size_t i = 0; i < n; i++)
        cg_store_(out, i, cg_times_(cg_times_(cg_load_(v, i), CG_POW2_100_), cg_ratio_or_zero_(full_scale, scale)));
}
/* Values [first, first + many) of one chunk to out, as the quantizer's output says: packed bits or a byte each; 0: one
   was not finite. buf has CG_CHUNK_ floats. */
static int cg_encode_chunk_(
    const cg_encoder_ *e, cg_block_encoder_ *enc, size_t first, size_t many, float *buf, uint8_t *out) {
    const cg_layout_ *lay = e->lay;
    const cg_quantizer_ *quantizer = lay->quantizer;
    const size_t bucket_size = (size_t)lay->bucket_size, end = first + many;
    const float *v = cg_source_fetch_(e->src, first, many, buf), unit_scale = 1.0f;
    const int short_buckets = quantizer->full_scale != 0.0f &&
        bucket_size < 256; /* calls for each would cost more than a pass */
    if (quantizer->needs != CG_NEEDS_BUCKET_STATS_) {
        enc->absmax_bits = cg_max32_(enc->absmax_bits,
            quantizer->encode(
                e->kernels, e->stage, NULL, enc->key, (uint32_t)(first - enc->block_begin), v, many, out, enc->lanes));
        return enc->absmax_bits < CG_INF_BITS_;
    }
    if (e->given_scales) { /* these values have not been measured */
        enc->absmax_bits = cg_max32_(enc->absmax_bits, CG_KERNEL_(e->kernels, absmax_bits(v, many)));
        if (enc->absmax_bits >= CG_INF_BITS_) return 0;
    }
    for (size_t i = first, b = cg_quotient_(first, bucket_size), stop; i < end; i = stop, b++) {
        stop = cg_min_(end, cg_bucket_end_(lay, b));
        if (b != enc->bucket_index && !cg_block_encoder_bucket_(e, enc, b, v, first, end)) return 0;
        if (quantizer->full_scale != 0.0f) {
            float factor = cg_ratio_or_zero_(quantizer->full_scale, enc->scales[0]);
            const float *w = cg_at_(v, i - first);
            if (short_buckets || cg_is_tiny_(enc->scales[0])) {
                cg_bucket_normalize_(e->kernels, quantizer->full_scale, enc->scales[0], w, stop - i, buf + (i - first));
                w = buf + (i - first);
                factor = 1.0f;
            }
            if (!short_buckets)
                quantizer->encode(e->kernels, e->stage, &factor, enc->key, (uint32_t)(i - enc->block_begin), w,
                    stop - i, out + (i - first), NULL);
            continue;
        }
        if (quantizer->rescale) memset(enc->lanes, 0, sizeof enc->lanes);
        quantizer->encode(e->kernels, e->stage, enc->scales, enc->key, (uint32_t)(i - enc->block_begin),
            cg_at_(v, i - first), stop - i,
            out + (quantizer->output == CG_OUTPUT_SYMBOLS_ ? i - first : (i - first) * lay->bits_x32 / 256),
            enc->lanes);
        if (quantizer->rescale) { /* such a bucket never crosses a chunk */
            quantizer->rescale(&enc->bucket_stats, cg_lanes_reduce_(enc->lanes), enc->scales);
            cg_scales_put_(e, b, enc->scales);
        }
    }
    if (short_buckets)
        quantizer->encode(
            e->kernels, e->stage, &unit_scale, enc->key, (uint32_t)(first - enc->block_begin), buf, many, out, NULL);
    return 1;
}
/* Encodes a block without a value code: every chunk has its place in the codes. Stops at a value that is not finite,
   which result->absmax_bits shows. A producer makes the values on the way. */
CG_NOINLINE_ void cg_encode_block_(const cg_encoder_ *e, size_t block, cg_block_result_ *result) {
    const cg_layout_ *lay = e->lay;
    const size_t begin = block * CG_BLOCK_, end = cg_min_((size_t)lay->k, begin + CG_BLOCK_);
    const int pack = lay->quantizer->output == CG_OUTPUT_SYMBOLS_ && lay->bits_x32 < 8 * 32;
    float buf[CG_CHUNK_];
    uint8_t symbols[CG_CHUNK_];
    cg_block_encoder_ enc;
    cg_fenv_ env = cg_fenv_enter_thread_();
    const cg_producer_ *producer = cg_source_is_lazy_(e->src) ? NULL : e->src->producer;
    cg_block_encoder_open_(&enc, e, block);
    result->checksum.a = result->checksum.b = result->checksum.words = 0;
    result->energy = 0.0;
    for (size_t first = begin, many; first < end; first += many) {
        uint8_t *out = e->codes + cg_codes_offset_(lay, first);
        size_t bytes;
        many = cg_min_(CG_CHUNK_, end - first);
        if (producer && first % e->producer_step == 0)
            result->energy += cg_producer_make_(producer, first, e->producer_step, (float *)(uintptr_t)e->src->x);
        if (!cg_encode_chunk_(e, &enc, first, many, buf, pack ? symbols : out)) break;
        if (pack) CG_KERNEL_(e->kernels, pack(symbols, many, lay->bits_x32 / 32, out));
        bytes = (size_t)(((uint64_t)many * lay->bits_x32 / 32 + 7) / 8);
        while (bytes % 4) out[bytes++] = 0; /* only at the end of the section */
        if (e->to_sum) CG_KERNEL_(e->kernels, checksum(&result->checksum, out, bytes / 4));
    }
    result->absmax_bits = enc.absmax_bits;
    result->lane_total = cg_block_encoder_total_(&enc, e);
    cg_fenv_leave_thread_(env);
}
/* Encodes a block with a value code to out, and its entries to the piece table. Pieces follow each other without gaps;
   none is larger than if it were packed, which is the room they need. */
CG_NOINLINE_ void cg_encode_block_coded_(const cg_encoder_ *e, size_t block, uint8_t *out, cg_block_result_ *result) {
    const cg_layout_ *lay = e->lay;
    const size_t begin = block * CG_BLOCK_, end = cg_min_((size_t)lay->k, begin + CG_BLOCK_);
    const unsigned width = cg_float_width_(e->stage);
    uint8_t *at = out;
    float buf[CG_CHUNK_];
    uint8_t symbols[CG_PIECE_SYMBOLS_];
    cg_block_encoder_ enc;
    int ok = 1;
    cg_fenv_ env = cg_fenv_enter_thread_();
    cg_block_encoder_open_(&enc, e, block);
    for (size_t piece = begin, many; piece < end && ok; piece += many) {
        const uint8_t *in = symbols;
        size_t cap;
        uint32_t entry;
        many = cg_min_(lay->piece_values, end - piece);
        if (width == 4 && !CG_BIG_ENDIAN_) { /* floats are coded as they are */
            in = (const uint8_t *)cg_source_fetch_(e->src, piece, many, buf);
            enc.absmax_bits = cg_max32_(
                enc.absmax_bits, CG_KERNEL_(e->kernels, absmax_bits((const float *)(const void *)in, many)));
            ok = enc.absmax_bits < CG_INF_BITS_;
        } else
            for (size_t first = piece, sub_n; first < piece + many && ok; first += sub_n) {
                sub_n = cg_min_(CG_CHUNK_, piece + many - first);
                ok = cg_encode_chunk_(e, &enc, first, sub_n, buf, symbols + (first - piece));
            }
        if (!ok) break;
        cap = 4 * cg_codes_words_(lay, many);
        entry = width ? cg_floats_put_(e->kernels, width, in, many, at, cap)
                      : cg_piece_put_(e->kernels, lay->value_code, &lay->alphabet, symbols, many, at, cap);
        cg_put32_(e->table + piece / lay->piece_values * 4, entry);
        at += (size_t)cg_word_bytes_(entry & 0x3fffffffu);
    }
    result->bytes = (size_t)(at - out);
    result->absmax_bits = enc.absmax_bits;
    result->lane_total = cg_block_encoder_total_(&enc, e);
    cg_fenv_leave_thread_(env);
}
/* Statistics of values [first, last), which lie in one block. */
CG_NOINLINE_ void cg_measure_block_(const cg_encoder_ *e, size_t first, size_t last, cg_bucket_stats_ *stats) {
    cg_fenv_ env = cg_fenv_enter_thread_();
    *stats = cg_measure_(e, first, last, NULL, 0, 0);
    cg_fenv_leave_thread_(env);
}
/* Blocks of the next wave, of so many that are left. */
static int cg_wave_size_(size_t items) { return (int)cg_min_(CG_WAVE_, items); }

/* Makes a block of x; returns the sum of its squares. */
static double cg_producer_make_block_(const cg_producer_ *producer, size_t block, float *x) {
    const size_t begin = block * CG_BLOCK_;
    double energy = 0.0;
    cg_fenv_ env = cg_fenv_enter_thread_();
    for (size_t i = 0; i < CG_BLOCK_; i += producer->step)
        energy += cg_producer_make_(producer, begin + i, producer->step, x);
    cg_fenv_leave_thread_(env);
    return energy;
}
/* Makes all of x now, unless there is no producer or it is lazy; then the source has none any more. */
CG_NOINLINE_ void cg_producer_make_all_(cg_source_ *src) {
    cg_producer_ *producer = src->producer;
    const size_t n = producer && !producer->lazy ? producer->n : 0, blocks = n / CG_BLOCK_ + (n % CG_BLOCK_ != 0);
    double energy[CG_WAVE_];
    if (producer && !producer->lazy) producer->started = 1;
    for (size_t block = 0; block < blocks; block += CG_WAVE_) {
        int many = cg_wave_size_(blocks - block);
        CG_PARALLEL_
        for (int i = 0; i < many; i++)
            energy[i] = cg_producer_make_block_(producer, block + (size_t)i, (float *)(uintptr_t)src->x);
        for (int i = 0; i < many; i++) producer->energy += energy[i];
    }
    if (n) src->producer = NULL;
}

/* The sum of squares of values of one block. */
CG_NOINLINE_ double cg_source_block_energy_(const cg_source_ *src, size_t first, size_t last) {
    double energy = 0.0;
    float buf[CG_CHUNK_];
    cg_fenv_ env = cg_fenv_enter_thread_();
    for (size_t i = first, many; i < last; i += many) {
        many = cg_min_(CG_CHUNK_, last - i);
        energy += cg_lane_sum_of_(src->kernels, cg_source_fetch_(src, i, many, buf), many, CG_SUM_SQUARES_);
    }
    cg_fenv_leave_thread_(env);
    return energy;
}
/* A pass over the k values that the quantizer will see: they are cut to so many times their root mean square. */
CG_NOINLINE_ cg_status cg_source_clip_(cg_source_ *src, const cg_stage *clip, size_t k) {
    const size_t blocks = k / CG_BLOCK_ + (k % CG_BLOCK_ != 0);
    double energy[CG_WAVE_], total = 0.0;
    for (size_t block = 0; block < blocks; block += CG_WAVE_) {
        int many = cg_wave_size_(blocks - block);
        CG_PARALLEL_
        for (int i = 0; i < many; i++) {
            const size_t from = (block + (size_t)i) * CG_BLOCK_;
            energy[i] = cg_source_block_energy_(src, from, cg_min_(k, from + CG_BLOCK_));
        }
        for (int i = 0; i < many; i++) total += energy[i];
    }
    if (!cg_is_finite64_(total)) return CG_E_NONFINITE; /* squares of finite floats do not overflow */
    if (k) {
        double limit = (double)clip->value * cg_sqrt_(total / (double)k);
        CG_NO_FMA_(limit);
        src->clip_bits = cg_as_bits_(cg_saturate64_(limit));
    }
    return CG_OK;
}
/* Statistics of values [start, last); CG_E_NONFINITE: one is not finite. */
CG_NOINLINE_ cg_status cg_measure_waves_(const cg_encoder_ *e, size_t start, size_t last, cg_bucket_stats_ *stat) {
    cg_bucket_stats_ stats[CG_WAVE_];
    *stat = cg_bucket_stats_none_;
    for (size_t block = start / CG_BLOCK_; block * CG_BLOCK_ < last; block += CG_WAVE_) {
        int many = cg_wave_size_((last - 1) / CG_BLOCK_ - block + 1);
        CG_PARALLEL_
        for (int i = 0; i < many; i++) {
            size_t from = (block + (size_t)i) * CG_BLOCK_, to = cg_min_(CG_BLOCK_, last - from) + from;
            cg_measure_block_(e, from < start ? start : from, to, &stats[i]);
        }
        for (int i = 0; i < many; i++) cg_bucket_stats_merge_(stat, &stats[i]);
        if (stat->absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
    }
    return CG_OK;
}
/* A pass before all others: stores the float that all values share. */
static cg_status cg_measure_vector_(const cg_encoder_ *e) {
    cg_bucket_stats_ stat;
    const cg_status s = cg_measure_waves_(e, 0, (size_t)e->lay->k, &stat);
    cg_put32_(e->scales, cg_as_bits_(e->lay->quantizer->byte_scale->vector_scale(cg_as_float_(stat.absmax_bits))));
    return s;
}
/* A pass before all others: measures buckets longer than a block, and stores their scales. */
CG_NOINLINE_ cg_status cg_measure_long_buckets_(const cg_encoder_ *e) {
    const size_t k = (size_t)e->lay->k, bucket_size = (size_t)e->lay->bucket_size;
    for (size_t b = 0; b * bucket_size < k; b++) {
        cg_bucket_stats_ stat;
        float scales[2];
        if (cg_measure_waves_(e, b * bucket_size, cg_bucket_end_(e->lay, b), &stat) != CG_OK) return CG_E_NONFINITE;
        e->lay->quantizer->set_scales(e->stage, &stat, scales);
        cg_scales_put_(e, b, scales);
    }
    return CG_OK;
}
/* Stores the scales that the caller gave; CG_E_ARG: one that no encoder makes. */
static cg_status cg_scales_put_given_(const cg_encoder_ *e) {
    const unsigned per = e->lay->quantizer->scale_count;
    for (size_t b = 0; b < (size_t)e->lay->bucket_count; b++) {
        float scales[2] = { 0.0f, 0.0f };
        for (unsigned i = 0; i < per; i++) scales[i] = cg_load_(e->given_scales, b * per + i);
        if (!e->lay->quantizer->legal(scales)) return CG_E_ARG;
        cg_scales_put_(e, b, scales);
    }
    return CG_OK;
}
/* All blocks, in waves: *codes becomes the checksum of their codes, *total the sum of their lanes; returns where the
   codes end, or NULL if a value is not finite. */
CG_NOINLINE_ uint8_t *cg_encode_waves_(const cg_encoder_ *e, size_t blocks, cg_checksum_ *codes, double *total) {
    const cg_layout_ *lay = e->lay;
    cg_block_result_ results[CG_WAVE_];
    uint8_t *end = e->codes;
    for (size_t block = 0, wave; block < blocks; block += wave) {
        uint8_t *start = end;
        int many = cg_wave_size_(cg_is_coded_(lay) ? cg_min_(CG_CODED_WAVE_, blocks - block) : blocks - block);
        wave = (size_t)many;
        CG_PARALLEL_
        for (int i = 0; i < many; i++) {
            if (cg_is_coded_(lay))
                cg_encode_block_coded_(
                    e, block + (size_t)i, start + cg_codes_offset_(lay, (size_t)i * CG_BLOCK_), &results[i]);
            else cg_encode_block_(e, block + (size_t)i, &results[i]);
        }
        for (int i = 0; i < many; i++) {
            if (results[i].absmax_bits >= CG_INF_BITS_) return NULL;
            *total += results[i].lane_total;
            if (e->src->producer && !cg_is_coded_(lay)) e->src->producer->energy += results[i].energy;
            if (!cg_is_coded_(lay)) {
                *codes = cg_checksum_concat_(*codes, results[i].checksum);
                continue;
            }
            if (i) memmove(end, start + cg_codes_offset_(lay, (size_t)i * CG_BLOCK_), results[i].bytes);
            *codes = cg_checksum_concat_(*codes, cg_checksum_of_(e->kernels, end, results[i].bytes));
            end += results[i].bytes;
        }
    }
    return cg_is_coded_(lay) ? end : e->codes + (size_t)lay->codes_bytes;
}
/* One block by itself, without a value code: the same as a wave of it. */
static uint8_t *cg_encode_one_block_(const cg_encoder_ *e, cg_checksum_ *codes, double *total) {
    cg_block_result_ result;
    cg_encode_block_(e, 0, &result);
    if (result.absmax_bits >= CG_INF_BITS_) return NULL;
    *codes = result.checksum;
    *total = result.lane_total;
    if (e->src->producer) e->src->producer->energy += result.energy;
    return e->codes + (size_t)e->lay->codes_bytes;
}
/* The whole value section: scales, piece table and codes. *sum becomes its checksum if to_sum is set, *bytes its
   length. Errors: CG_E_NONFINITE, and CG_E_ARG for given scales; the section is undefined then. */
static cg_status cg_encode_values_(const cg_encoder_ *e, cg_checksum_ *sum, size_t *bytes) {
    const cg_layout_ *lay = e->lay;
    const size_t k = (size_t)lay->k, blocks = k / CG_BLOCK_ + (k % CG_BLOCK_ != 0);
    const uint8_t *end;
    cg_checksum_ codes = { 0, 0, 0 };
    double total = 0.0;
    if (e->src->producer) e->src->producer->started = 1;
    /* zeros that fill the scales up to a word */
    if (lay->scale_bytes) memset(e->codes - (size_t)lay->piece_table_bytes - 4, 0, 4);
    if (e->given_scales) {
        cg_status s = cg_scales_put_given_(e);
        if (s != CG_OK) return s;
    } else if (lay->quantizer->needs == CG_NEEDS_BUCKET_STATS_ && lay->bucket_size > CG_BLOCK_ &&
        cg_measure_long_buckets_(e) != CG_OK) {
        return CG_E_NONFINITE;
    }
    if (lay->vector_bytes && cg_measure_vector_(e) != CG_OK) return CG_E_NONFINITE;
    end = blocks == 1 && !cg_is_coded_(lay) ? cg_encode_one_block_(e, &codes, &total)
                                            : cg_encode_waves_(e, blocks, &codes, &total);
    if (!end) return CG_E_NONFINITE;
    if (lay->quantizer->needs == CG_NEEDS_SUM_AFTERWARDS_ && k && !e->given_scales) {
        float mean = (float)(total / (double)k);
        cg_scales_put_(e, 0, &mean);
    }
    *bytes = (size_t)(end - e->scales);
    *sum = codes;
    if (e->to_sum && e->codes != e->scales)
        *sum = cg_checksum_concat_(cg_checksum_of_(e->kernels, e->scales, (size_t)(e->codes - e->scales)), codes);
    return CG_OK;
}
/* A pass over x for other headers: calls make(user, first, many, x + first) for all of [0, n), `step` values at a time
   (a chunk or a block), blocks spread over threads; returns the sum of what make returns, in the order of blocks.
   make may read x, write it, or both; calls for different blocks must not depend on each other. */
CG_OFFERED_ double cg_vector_pass_(
    double (*make)(const void *, size_t, size_t, float *), const void *user, float *x, size_t n, size_t step) {
    cg_producer_ producer = CG_ZERO;
    cg_source_ source = CG_ZERO;
    producer.make = make;
    producer.user = user;
    producer.n = n;
    producer.step = step;
    source.producer = &producer;
    source.x = x;
    cg_producer_make_all_(&source);
    return producer.energy;
}
/* Makes all values of a producer that is not lazy, where they belong: x. */
CG_OFFERED_ void cg_producer_run_(cg_producer_ *producer, float *x) {
    cg_source_ src = CG_ZERO;
    src.producer = producer;
    src.x = x;
    cg_producer_make_all_(&src);
}

/* src/core/rate.h */
/* rate: the search for a step whose packet has the bytes that were asked for, and the section of values it makes

   Offers   cg_rate_encode_
   Needs    base, random, codes (rans, rans_plan, rans_put), quantize (rate), layout, source, encode (waves)
   Touches  the packet's value section; scratch
   A histogram of some of the values says which step may fit; all pieces are planned with it, and the bytes that their
   plans have together say in which direction to go on. Then the pieces are written as planned. Everything that decides
   is an integer, so that every machine finds the same step. */

typedef struct cg_rate_ {
    const cg_encoder_ *e;
    cg_rans_plan_ *plans; /* of all pieces */
    cg_rate_grid_ grid;
} cg_rate_;
/* One piece, as cg_rans_levels_ sees it. */
typedef struct cg_rate_piece_ {
    const cg_rate_ *rate;
    size_t begin, n;
    cg_key_ key;
    cg_rate_counts_ counts; /* of the first look at the levels, in order, if `counted` began at 0 */
    size_t counted;
} cg_rate_piece_;
enum { CG_RATE_STEP_ = 1024 /* values that are fetched at a time: a rotated block, at least */ };

static void cg_rate_make_(const cg_rans_levels_ *self, size_t first, size_t many, int16_t *out) {
    cg_rate_piece_ *p = (cg_rate_piece_ *)self->user;
    const cg_rate_grid_ *grid = &p->rate->grid;
    float buf[CG_RATE_STEP_];
    for (size_t i = 0, sub; i < many; i += sub) {
        const float *v;
        sub = cg_min_(CG_RATE_STEP_, many - i);
        v = cg_source_fetch_(p->rate->e->src, p->begin + first + i, sub, buf);
        CG_KERNEL_(p->rate->e->kernels,
            rate_encode(grid, p->key, (uint32_t)(first + i), v, sub, (uint8_t *)(void *)(out + i)));
        if (p->counted == first + i && !grid->stochastic) {
            cg_rate_count_(grid, v, out + i, sub, &p->counts);
            p->counted += sub;
        }
    }
}
static cg_rate_piece_ cg_rate_piece_of_(const cg_rate_ *rate, size_t piece) {
    cg_rate_piece_ p;
    p.rate = rate;
    p.begin = piece * CG_RANS_PIECE_;
    p.n = cg_min_(CG_RANS_PIECE_, (size_t)rate->e->lay->k - p.begin);
    p.key = cg_block_key_(rate->e->key, piece);
    p.key.shift = rate->e->noise_shift;
    memset(&p.counts, 0, sizeof p.counts);
    p.counted = SIZE_MAX;
    return p;
}
CG_NOINLINE_ void cg_rate_plan_piece_(const cg_rate_ *rate, size_t piece) {
    cg_fenv_ env = cg_fenv_enter_thread_();
    cg_rate_piece_ p = cg_rate_piece_of_(rate, piece);
    cg_rans_levels_ levels;
    cg_rans_counts_ c;
    cg_rans_list_ list;
    levels.make = cg_rate_make_;
    levels.user = &p;
    cg_rans_plan_make_(&levels, p.n, 16, &c, &list, &rate->plans[piece]);
    cg_fenv_leave_thread_(env);
}
/* Plans all pieces with a step; returns the bytes of their codes. */
CG_NOINLINE_ uint64_t cg_rate_plan_(cg_rate_ *rate, float step) {
    const size_t pieces = (size_t)cg_rans_pieces_(rate->e->lay->k);
    uint64_t bytes = 0;
    rate->grid.step = step;
    rate->grid.inv = 1.0f / step;
    for (size_t piece = 0; piece < pieces; piece += CG_WAVE_) {
        const int many = cg_wave_size_(pieces - piece);
        CG_PARALLEL_
        for (int i = 0; i < many; i++) cg_rate_plan_piece_(rate, piece + (size_t)i);
        for (int i = 0; i < many; i++) bytes += rate->plans[piece + (size_t)i].bytes;
    }
    return bytes;
}
/* Writes a piece to out, which has room for cap bytes; returns how many it has, or SIZE_MAX if it does not fit. */
CG_NOINLINE_ size_t cg_rate_put_piece_(
    const cg_rate_ *rate, size_t piece, uint8_t *out, size_t cap, cg_rate_counts_ *counts) {
    cg_fenv_ env = cg_fenv_enter_thread_();
    cg_rate_piece_ p = cg_rate_piece_of_(rate, piece);
    const cg_rans_plan_ *plan = &rate->plans[piece];
    cg_rans_levels_ levels;
    cg_rans_list_ list;
    size_t bytes;
    levels.make = cg_rate_make_;
    levels.user = &p;
    p.counted = 0;
    list.count = 0;
    if (plan->nonzero && plan->form <= CG_RANS_SPARSE_) cg_rans_list_make_(&levels, p.n, &list);
    bytes = cg_rans_put_(plan, &levels, &list, p.n, 16, out, cap);
    if (bytes == SIZE_MAX) bytes = cg_rans_plain_put_(&levels, p.n, 16, out, cap);
    *counts = p.counts;
    cg_fenv_leave_thread_(env);
    return bytes;
}
/* Writes all pieces as planned, each into a room of as many bytes as were planned, or as any piece has if the code may
   be as long as that, and then close together. Returns their end; NULL: one did not fit its room. */
CG_NOINLINE_ uint8_t *cg_rate_put_(const cg_rate_ *rate, int any_length, cg_rate_counts_ *all) {
    const cg_layout_ *lay = rate->e->lay;
    const size_t pieces = (size_t)cg_rans_pieces_(lay->k);
    uint8_t *end = rate->e->codes, *room[CG_WAVE_ + 1];
    size_t bytes[CG_WAVE_];
    cg_rate_counts_ counts[CG_WAVE_];
    memset(all, 0, sizeof *all);
    room[0] = end;
    for (size_t piece = 0; piece < pieces; piece += CG_WAVE_) {
        const int many = cg_wave_size_(pieces - piece);
        for (int i = 0; i < many; i++)
            room[i + 1] = room[i] +
                (any_length ? (size_t)cg_rans_codes_bound_(
                                  cg_min_(CG_RANS_PIECE_, (size_t)lay->k - (piece + (size_t)i) * CG_RANS_PIECE_), 16)
                            : rate->plans[piece + (size_t)i].bytes);
        CG_PARALLEL_
        for (int i = 0; i < many; i++)
            bytes[i] = cg_rate_put_piece_(
                rate, piece + (size_t)i, room[i], (size_t)(room[i + 1] - room[i]), &counts[i]);
        for (int i = 0; i < many; i++) {
            if (bytes[i] == SIZE_MAX) return NULL;
            cg_rate_counts_add_(all, &counts[i]);
            if (end != room[i]) memmove(end, room[i], bytes[i]);
            cg_put16_(rate->e->table + 2 * (piece + (size_t)i), (uint32_t)(bytes[i] / 4));
            end += bytes[i];
        }
        room[0] = room[many];
    }
    return end;
}

/* The largest magnitude of all values as bits. above[i]: how many of them, or of those in every 16th chunk of many
   values, have at least the bits i << 20 after they were multiplied by lift. */
CG_NOINLINE_ uint32_t cg_rate_histogram_(const cg_encoder_ *e, int all, float lift, uint32_t *above) {
    const size_t k = (size_t)e->lay->k, apart = k <= 8 * CG_BLOCK_ || all ? 1 : 16;
    uint32_t absmax_bits = 0;
    float buf[CG_CHUNK_];
    memset(above, 0, (CG_RATE_BINS_ + 1) * sizeof *above);
    for (size_t first = 0, chunk = 0, many; first < k; first += many, chunk++) {
        const float *v;
        many = cg_min_(CG_CHUNK_, k - first);
        v = cg_source_fetch_(e->src, first, many, buf);
        absmax_bits = cg_max32_(absmax_bits, CG_KERNEL_(e->kernels, absmax_bits(v, many)));
        if (chunk % apart == 0)
            for (size_t i = 0; i < many; i++)
                above[(cg_as_bits_(cg_times_(cg_load_(v, i), lift)) & CG_ABS_MASK_) >> 20]++;
    }
    for (unsigned i = CG_RATE_BINS_; i-- > 0;) above[i] += above[i + 1];
    return absmax_bits;
}
/* How many values of a histogram are above `level` steps, about. */
static uint32_t cg_rate_above_(const cg_rate_grid_ *g, const uint32_t *above, float level) {
    const uint32_t u = cg_as_bits_(cg_times_(level, g->step)), i = u >> 20;
    if (u >= CG_INF_BITS_) return 0;
    return above[i] - (uint32_t)((uint64_t)(above[i] - above[i + 1]) * (u & 0xfffffu) >> 20);
}
/* About how many 65536ths of a bit the values of a histogram cost with a grid. */
static uint64_t cg_rate_model_(const cg_rate_grid_ *g, const uint32_t *above) {
    uint32_t token[CG_RANS_MOST_], before = above[0];
    uint64_t cost;
    for (unsigned t = 0; t < CG_RANS_MOST_; t++) {
        const uint32_t next = t + 1 < CG_RANS_MOST_ ? cg_rans_base_(t + 1, CG_RANS_MAGNITUDES_) : 65536;
        uint32_t n = cg_rate_above_(g, above, (float)(int32_t)next - (g->stochastic ? 0.5f : g->dead));
        if (g->stochastic && !t) { /* below a step by chance */
            const float inv = 1.0f / g->step;
            uint64_t sum = 0; /* of |v|/step, in 2^-24ths */
            n = cg_rate_above_(g, above, 1.0f);
            for (uint32_t i = 0; i < CG_RATE_BINS_ && above[i] > n; i++) {
                const uint32_t in = above[i] - cg_max32_(above[i + 1], n);
                const float part = cg_times_(cg_as_float_(i << 20 | 0x80000u), inv);
                if (i && in) sum += (uint64_t)in * (uint32_t)cg_times_(part < 1.0f ? part : 1.0f, 16777216.0f);
            }
            n += (uint32_t)(sum >> 24);
        }
        n = n < before ? n : before;
        token[t] = before - n;
        before = n;
    }
    cost = cg_rans_entropy_(token, CG_RANS_MOST_);
    for (unsigned i = 1; i < CG_RANS_MOST_; i++)
        cost += (uint64_t)token[i] * (1 + cg_rans_extra_(i, CG_RANS_MAGNITUDES_)) * CG_RANS_BIT_;
    return cost;
}
/* Where the model says so many 65536ths, between two steps: as bits. */
static uint32_t cg_rate_guess_(cg_rate_grid_ g, const uint32_t *above, uint32_t low, uint32_t high, uint64_t cost) {
    while (high - low > 1u << 13) {
        const uint32_t mid = low + (high - low) / 2;
        g.step = cg_as_float_(mid);
        if (cg_rate_model_(&g, above) > cost) low = mid;
        else high = mid;
    }
    return high;
}
/* The dead zone for so many bits per value. */
static float cg_rate_dead_(float bits) {
    return bits < 0.75f ? 0.25f : bits < 1.5f ? 0.3f : bits < 3.0f ? 0.35f : bits < 6.0f ? 0.45f : 0.48f;
}
/* The least magnitude but 0, as bits, if it may be the largest one, too; else 0. */
CG_NOINLINE_ uint32_t cg_rate_least_bits_(
    const cg_encoder_ *e, const uint32_t *above, float lift, uint32_t absmax_bits) {
    const size_t k = (size_t)e->lay->k;
    float buf[CG_CHUNK_];
    if (above[1] != above[cg_as_bits_(cg_times_(cg_as_float_(absmax_bits), lift)) >> 20])
        return 0; /* others were seen */
    for (size_t first = 0, many; first < k; first += many) {
        const float *v;
        many = cg_min_(CG_CHUNK_, k - first);
        v = cg_source_fetch_(e->src, first, many, buf);
        for (size_t i = 0; i < many; i++) {
            const uint32_t m = cg_load_bits_(v, i) & CG_ABS_MASK_;
            if (m && m != absmax_bits) return 0;
        }
    }
    return absmax_bits;
}
/* Searches the step of a section of at most `most` bytes, and hardly fewer if a step has that; plans all pieces. */
CG_NOINLINE_ void cg_rate_search_(cg_rate_ *rate, const uint32_t *above, uint32_t absmax_bits, uint64_t most) {
    const uint64_t k = rate->e->lay->k, sampled = above[0],
                   frame = rate->e->lay->scale_bytes + rate->e->lay->piece_table_bytes,
                   room = most > frame ? most - frame : 0, slack = most / 40 + (k / 2667 < 16 ? k / 2667 : 16),
                   enough = room > slack ? room - slack : 0;
    const float absmax = cg_times_(cg_as_float_(absmax_bits), rate->grid.lift);
    const uint32_t least = cg_as_bits_(absmax / 32766.0f) + 1; /* no value is beyond the levels from here on */
    /* steps as bits: with low there are too many bytes, or it is least - 1; with high there are not, or it is most */
    uint32_t low = least - 1, at, apart = 1u << 17,
             high = rate->grid.stochastic ? cg_as_bits_(absmax) + (40u << 23) : cg_as_bits_(cg_times_(absmax, 4.0f));
    uint64_t bytes = 0, ratio = 1024; /* ratio: what the model says over what it is, in 1024ths */
    rate->grid.keep = UINT32_MAX;
    if (absmax_bits ==
        cg_rate_least_bits_(rate->e, above, rate->grid.lift, absmax_bits)) { /* one magnitude, and perhaps zeros */
        if (cg_rate_plan_(rate, absmax) <= room) return;
    }
    for (unsigned attempt = 0; attempt < 48; attempt++) {
        const uint64_t bits = (room + enough) * 4 * ratio / 1024;
        at = cg_rate_guess_(rate->grid, above, low, high, (bits * CG_RANS_BIT_ / k + 1) * sampled);
        if (attempt > 12) at = low + (high - low) / 2;
        else if (at <= low + (1u << 13) && low < least) at = least;
        else if (at >= high || at <= low + (1u << 13)) { /* out of what is known: a little into it, then further */
            const uint32_t inside = high - low > 2 * apart ? apart : (high - low) / 2;
            at = at >= high ? high - inside : low + inside;
            if (apart < 1u << 26) apart *= 4;
        }
        if (high - low <= 1u << 11) at = least; /* only while low is below it */
        bytes = cg_rate_plan_(rate, cg_as_float_(at));
        if (bytes <= room && (bytes >= enough || at == least)) return; /* or these values have no more bits */
        if (bytes > room) low = at;
        else high = at;
        if (high - low <= 1u << 11 && low >= least) break;
        if (bytes) ratio = cg_rate_model_(&rate->grid, above) / sampled * k / (512 * bytes);
        ratio = ratio < 64 ? 64 : ratio > 65536 ? 65536 : ratio;
    }
    if (!rate->grid.stochastic && low >= least) {
        /* a step that is a little larger makes many levels of 1 zeros at once: of those some are kept */
        uint32_t keep = 0;
        for (uint32_t bit = 1u << 31; bit >= 1u << 20; bit >>= 1) {
            rate->grid.keep = keep | bit;
            bytes = cg_rate_plan_(rate, cg_as_float_(low));
            if (bytes <= room) keep |= bit;
            if (bytes <= room && bytes >= enough) return;
        }
        rate->grid.keep = keep;
        if (keep && cg_rate_plan_(rate, cg_as_float_(low)) <= room) return;
        rate->grid.keep = UINT32_MAX;
    }
    (void)cg_rate_plan_(rate, cg_as_float_(high));
}
/* The sum of the squares of all values over their number, in the order of sums of this library. */
CG_NOINLINE_ double cg_rate_mean_square_(const cg_encoder_ *e) {
    const size_t k = (size_t)e->lay->k;
    double all = 0.0;
    float buf[CG_CHUNK_];
    for (size_t block = 0; block < k; block += CG_BLOCK_) {
        double sum = 0.0;
        for (size_t i = block, many; i < cg_min_(k, block + CG_BLOCK_); i += many) {
            many = cg_min_(CG_CHUNK_, k - i);
            sum += cg_lane_sum_of_(e->kernels, cg_source_fetch_(e->src, i, many, buf), many, CG_SUM_SQUARES_);
        }
        all += sum;
    }
    return all / (double)k;
}
/* The step of `step:s`: s root mean squares, or as many as the largest level takes. */
static void cg_rate_fix_(cg_rate_ *rate, uint32_t absmax_bits) {
    const float s = rate->e->stage->value, absmax = cg_times_(cg_as_float_(absmax_bits), rate->grid.lift),
                least = cg_as_float_(cg_as_bits_(absmax / 32766.0f) + 1);
    double step = cg_times64_(cg_sqrt_(cg_rate_mean_square_(rate->e)), (double)s);
    step = cg_times64_(step, (double)rate->grid.lift);
    rate->grid.step = step > 1.0e37 ? 1.0e37f : (float)step;
    if (!(rate->grid.step > least)) rate->grid.step = least;
    rate->grid.dead = s >= 2.5f ? 0.25f : s >= 1.4f ? 0.3f : s >= 0.6f ? 0.35f : s >= 0.06f ? 0.45f : 0.48f;
    rate->grid.keep = UINT32_MAX;
}
/* The whole value section of a quantizer whose levels are entropy coded. scratch: cg_rans_scratch_ bytes. *sum becomes
   its checksum, *bytes its length. */
CG_NOINLINE_ cg_status cg_rate_encode_(const cg_encoder_ *e, uint8_t *scratch, cg_checksum_ *sum, size_t *bytes) {
    const cg_layout_ *lay = e->lay;
    const uint64_t promise = lay->quantizer->promise(e->stage, lay->k);
    uint32_t *above = (uint32_t *)(void *)scratch, absmax_bits;
    uint8_t *end = e->codes;
    cg_rate_counts_ counts;
    cg_rate_ rate;
    float scales[2];
    *bytes = 0;
    if (!lay->k) return CG_OK;
    if (e->src->producer) e->src->producer->started = 1;
    absmax_bits = cg_rate_histogram_(e, 0, 1.0f, above);
    if (absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
    memset(e->scales, 0, (size_t)(lay->scale_bytes + lay->piece_table_bytes));
    rate.e = e;
    rate.plans = (cg_rans_plan_ *)(void *)(scratch + CG_RATE_ABOVE_BYTES_);
    rate.grid.lift = absmax_bits < 0x17800000u ? CG_POW2_100_       /* 2^-80 */
        : absmax_bits >= 0x67800000u           ? CG_POW2_MINUS_100_ /* 2^80 */
                                               : 1.0f;
    rate.grid.stochastic = (e->stage->flags & CG_FLAG_UNBIASED) != 0;
    rate.grid.dead = cg_rate_dead_(e->stage->value);
    rate.grid.step = rate.grid.inv = 0.0f;
    rate.grid.keep = UINT32_MAX;
    memset(&counts, 0, sizeof counts);
    if (absmax_bits && !promise) {
        cg_rate_fix_(&rate, absmax_bits);
        (void)cg_rate_plan_(&rate, rate.grid.step);
        end = cg_rate_put_(&rate, 1, &counts);
    } else if (absmax_bits) {
        uint64_t most = promise;
        /* all that was seen is 0, or nearly; or magnitudes are not those of the search */
        if (!above[1] || rate.grid.lift != 1.0f) (void)cg_rate_histogram_(e, !above[1], rate.grid.lift, above);
        do {
            cg_rate_search_(&rate, above, absmax_bits, most);
            end = cg_rate_put_(&rate, 0, &counts);
            most -= most / 256; /* if a piece was longer than planned */
        } while (!end && most > lay->k / 2048 + CG_RATE_LEAST_);
    }
    if (!end) return CG_E_CAPACITY;
    cg_rate_scales_(&rate.grid, &counts, scales);
    cg_scales_put_(e, 0, scales);
    *bytes = (size_t)(end - e->scales);
    *sum = cg_checksum_of_(e->kernels, e->scales, *bytes);
    return CG_OK;
}

/* src/core/compress.h */
/* compress: from x to a packet: sizes, sample, transform, selection, values, indices, header

   Offers   cg_bound_, cg_compress_checked_, cg_layout_sizes_
   Needs    base, kernels/dispatch, random, stages, plan, packet, layout, source, select, indices, matrix, encode
   Touches  the caller's packet, *len and scratch; x, if a producer makes it
   Other headers may use: cg_compress_checked_
   A packet is written in the order values, indices, header, as the header has their lengths and the checksum. */

/* The layout of k values, and the bytes of their section; with a value code or a user codec, their maximum. */
static cg_status cg_layout_sizes_(
    const cg_op *op, const cg_extra *extra, uint64_t k, cg_layout_ *lay, uint64_t *value_bytes) {
    cg_status s = cg_layout_make_(op, extra, k, lay);
    if (s != CG_OK) return s;
    *value_bytes = cg_add_sat_(cg_add_sat_(lay->scale_bytes, lay->piece_table_bytes), lay->codes_bytes);
    if (lay->codec) {
        size_t max_bytes = lay->codec->bound(lay->codec, &op->quantize, (size_t)k);
        if (!max_bytes && k) return CG_E_ARG;
        *value_bytes = cg_add_sat_(max_bytes, 3) & ~(uint64_t)3;
    }
    return CG_OK;
}
/* Bytes that any packet of this plan fits; 0: op refuses, or they overflow. */
static size_t cg_plan_bound_(const cg_plan_ *plan, const cg_op *op, const cg_extra *extra) {
    cg_layout_ lay;
    const uint64_t k = plan->max_selected;
    uint64_t values, indices = 0;
    if (plan->transformed_n == CG_TOO_LARGE_) return 0;
    if (cg_layout_sizes_(op, extra, k, &lay, &values) != CG_OK) return 0;
    if (plan->traits & CG_KEEPS_EXACTLY_) indices = cg_index_bytes_(cg_index_code_(op, plan, k), plan->universe, k);
    else if (cg_has_indices_(plan)) indices = cg_index_bound_(op, plan->universe, cg_index_count_(plan, k));
    return cg_size_or_zero_(cg_add_sat_(cg_add_sat_(values, indices), CG_HEADER_BYTES));
}
/* Bytes that any packet of op fits, whose plan this is; 0: op refuses, or they overflow. PermK leaves some ranks one
   value fewer, and Elias-Fano may need a bit more for each index then. */
static size_t cg_op_bound_(const cg_op *op, const cg_extra *extra, const cg_plan_ *plan) {
    const size_t most = cg_plan_bound_(plan, op, extra);
    cg_plan_ fewer = *plan;
    size_t bytes;
    if (!most || !(plan->traits & CG_IS_PER_RANK_) || !plan->sampled_n) return most;
    fewer.sampled_n--;
    cg_plan_resume_(&fewer, op);
    bytes = cg_plan_bound_(&fewer, op, extra);
    return bytes > most ? bytes : most;
}
static size_t cg_segments_bound_(const cg_op *op, const cg_extra *extra, size_t n); /* in core/segments/compress.h */
/* The same for n values; 0 also if op is illegal or does not fit n. */
static size_t cg_bound_(const cg_op *op, const cg_extra *extra, size_t n) {
    cg_plan_ plan;
    if (cg_segments_of_(extra)) return cg_segments_bound_(op, extra, n);
    if (!op || cg_op_resolve_(op, &plan.traits) != CG_OK || !cg_matrix_shape_fits_(op, n)) return 0;
    cg_plan_set_(&plan, op, n, NULL);
    return cg_op_bound_(op, extra, &plan);
}
CG_API_ size_t cg_bound_with(const cg_op *op, const cg_extra *extra, size_t n) {
    cg_fenv_ env = cg_fenv_enter_();
    size_t bytes = !op || cg_op_only_old_(op) ? 0 : cg_bound_(op, extra, n);
    cg_fenv_leave_(env);
    return bytes;
}
CG_API_ size_t cg_bound(const cg_op *op, size_t n) { return cg_bound_with(op, NULL, n); }

static uint64_t cg_segments_scratch_(const cg_op *op, const cg_extra *extra, size_t n); /* as the bound */
CG_API_ size_t cg_scratch_with(const cg_op *op, const cg_extra *extra, size_t n) {
    cg_fenv_ env = cg_fenv_enter_();
    size_t bytes = 0;
    if (op && cg_segments_of_(extra)) bytes = cg_size_or_zero_(cg_segments_scratch_(op, extra, n));
    else if (op && cg_op_check_new_(op) == CG_OK) {
        const cg_plan_ plan = cg_plan_of_(op, n);
        bytes = cg_size_or_zero_(cg_scratch_bytes_(op, &plan));
    }
    cg_fenv_leave_(env);
    return bytes;
}
CG_API_ size_t cg_scratch(const cg_op *op, size_t n) { return cg_scratch_with(op, NULL, n); }

/* Sample, transform and selection: sets info->k, and the source to what the quantizer sees. Without a selection, user
   codec or matrix, sample and transform are left to be done chunk by chunk. list is in scratch; info has op, n, drawn
   and tag. */
CG_NOINLINE_ cg_status cg_source_prepare_(const cg_kernels_ *kernels, const cg_plan_ *plan, cg_info *info,
    const cg_extra *extra, cg_source_ *src, cg_list_ *list) {
    const cg_op *op = &info->op;
    const size_t transformed_n = (size_t)plan->transformed_n;
    cg_status s = CG_OK;
    info->k = transformed_n;
    if (plan->traits & CG_IS_MATRIX_) {
        s = cg_transformer_of_(op)->factor(kernels, info, src->x, list->materialized);
        src->x = list->materialized;
        src->to_transform = 0;
        src->count = transformed_n;
        return s;
    }
    if (cg_needs_materialized_(op, plan) && transformed_n) {
        for (size_t i = 0, many; i < transformed_n; i += many) {
            const float *v;
            many = cg_min_(CG_CHUNK_, transformed_n - i);
            v = cg_source_fetch_(src, i, many, list->materialized + i); /* writes `many` floats: whole blocks */
            if (v != list->materialized + i) memcpy(list->materialized + i, v, 4 * many);
        }
        if (CG_KERNEL_(kernels, absmax_bits(list->materialized, transformed_n)) >= CG_INF_BITS_) return CG_E_NONFINITE;
        src->x = list->materialized;
        src->to_sample = src->to_transform = 0;
        src->count = transformed_n;
        src->producer = NULL;
    }
    if (plan->traits & CG_IS_SELECTION_) {
        cg_selector_ selector;
        selector.kernels = kernels;
        selector.side = extra;
        selector.x = cg_source_is_lazy_(src) ? NULL : src->x;
        selector.producer = src->producer;
        selector.n = transformed_n;
        selector.max_selected = (size_t)plan->max_selected;
        selector.shared_key = cg_shared_key_(&info->tag);
        selector.rank_key = cg_rank_key_(&info->tag);
        selector.list = list;
        selector.info = info;
        info->k = list->count = 0;
        if (transformed_n || plan->traits & CG_NEEDS_SUPPORT_) s = cg_selection_of_(op)->pick(&selector);
        if (!(plan->traits & (CG_KEEPS_BLOCKS_ | CG_NEEDS_SUPPORT_))) info->k = list->count;
        src->producer = NULL;
        src->x = list->value;
        src->count = info->k;
    }
    return s;
}
/* The value section of a user codec: out has cap bytes, *bytes becomes a multiple of 4, *sum absorbs the section. */
static cg_status cg_encode_user_(const cg_layout_ *lay, const cg_info *info, const cg_source_ *src,
    const cg_kernels_ *kernels, uint8_t *out, size_t cap, size_t *bytes, cg_checksum_ *sum) {
    cg_status s;
    for (size_t i = 0; i < lay->k; i += CG_CHUNK_)
        if (CG_KERNEL_(kernels, absmax_bits(cg_at_(src->x, i), cg_min_(CG_CHUNK_, (size_t)lay->k - i))) >= CG_INF_BITS_)
            return CG_E_NONFINITE;
    *bytes = 0;
    s = lay->codec->compress(lay->codec, &info->op.quantize, &info->tag, src->x, (size_t)lay->k, out, cap, bytes);
    if (s != CG_OK) return s;
    if (*bytes > cap) return CG_E_CAPACITY;
    if (cap - *bytes < (4 - *bytes % 4) % 4) return CG_E_CAPACITY;
    while (*bytes % 4) out[(*bytes)++] = 0;
    *sum = cg_checksum_concat_(*sum, cg_checksum_of_(kernels, out, *bytes));
    return CG_OK;
}

/* Will a later stage call the producer where it needs values? If not, cg_producer_make_all_ has to make x first. */
static int cg_producer_is_fused_(const cg_op *op, uint32_t traits, const cg_producer_ *producer) {
    if (op->sample.id || op->code.arg || traits & (CG_IS_MATRIX_ | CG_IS_USER_CODEC_)) return 0;
    if (traits & CG_LENGTH_VARIES_ && !op->select.id) return 0; /* a quantizer that looks at its values several times */
    if (cg_is_clipped_(op) && !op->select.id) return 0;         /* all values are looked at before they are encoded */
    return !op->select.id || (traits & CG_TAKES_PRODUCER_ && !op->transform.id && producer->threshold_hint);
}
/* x as the quantizer is to see it, in *src, and in *list what a selection keeps of it. info has op, n and tag, all
   checked, and plan is theirs; scratch has cg_scratch_bytes_. info->drawn, k and threshold are set. */
static cg_status cg_source_open_(cg_info *info, const cg_plan_ *plan, const cg_extra *extra, cg_producer_ *producer,
    const float *x, void *scratch, cg_source_ *src, cg_list_ *list) {
    info->drawn = plan->sampled_n;
    src->kernels = cg_kernels_now_();
    src->info = info;
    src->x = x;
    src->count = info->drawn;
    src->to_sample = cg_is_sampled_(&info->op);
    src->to_transform = cg_is_transformed_(&info->op);
    src->producer = producer;
    src->clip_bits = CG_INF_BITS_;
    if (producer && !cg_producer_is_fused_(&info->op, plan->traits, producer)) cg_producer_make_all_(src);
    cg_list_in_scratch_(list, &info->op, plan, scratch);
    return cg_source_prepare_(src->kernels, plan, info, extra, src, list);
}
/* Writes values and indices of an open source to out, at most cap bytes, and sets the sizes of both sections. *body
   absorbs them, unless they are few and sums_few is 0. */
static cg_status cg_body_put_(cg_info *info, const cg_plan_ *plan, const cg_extra *extra, cg_source_ *src,
    const cg_list_ *list, uint8_t *out, size_t cap, int sums_few, cg_checksum_ *body) {
    const cg_kernels_ *kernels = src->kernels;
    cg_layout_ lay;
    uint64_t value_bytes, index_bytes, indices, need;
    int to_sum;
    cg_status s = cg_is_clipped_(&info->op) ? cg_source_clip_(src, &info->op.clip, (size_t)info->k) : CG_OK;
    if (s == CG_OK) s = cg_layout_sizes_(&info->op, extra, info->k, &lay, &value_bytes);
    if (s != CG_OK) return s;
    /* buckets that cross blocks are measured before all their values would have been made */
    if (lay.vector_bytes ||
        (lay.k > CG_BLOCK_ && lay.quantizer && lay.quantizer->needs == CG_NEEDS_BUCKET_STATS_ &&
            CG_BLOCK_ % lay.bucket_size))
        cg_producer_make_all_(src);
    indices = cg_index_count_(plan, info->k);
    info->index_code = cg_index_code_(&info->op, plan, indices);
    index_bytes = cg_index_bytes_(info->index_code, plan->universe, indices);
    need = cg_add_sat_(lay.codec ? 0 : value_bytes, index_bytes);
    if (need > cap) return CG_E_CAPACITY;
    to_sum = sums_few || need > CG_SMALL_PACKET_ - CG_HEADER_BYTES;
    if (lay.codec) {
        if (src->clip_bits != CG_INF_BITS_) /* what a clip leaves is in scratch */
            CG_KERNEL_(kernels, cut(src->x, (size_t)info->k, src->clip_bits, (float *)(uintptr_t)src->x));
        s = cg_encode_user_(&lay, info, src, kernels, out, cap - (size_t)need, &info->value_bytes, body);
    } else {
        cg_encoder_ e;
        e.kernels = kernels;
        e.stage = &info->op.quantize;
        e.lay = &lay;
        e.src = src;
        e.given_scales = extra ? extra->scale : NULL;
        e.key = plan->traits & CG_ROUNDS_AT_RANDOM_ ? cg_rank_key_(&info->tag) : 0;
        e.noise_shift = 0;
        if (plan->traits & CG_ROUNDS_AT_RANDOM_ && extra && extra->correlated) {
            e.key = cg_mix64_(cg_shared_key_(&info->tag) ^ CG_TOGETHER_KEY_);
            e.noise_shift = cg_noise_shift_(info->tag.rank, extra->correlated);
        }
        e.scales = out;
        e.table = e.scales + (size_t)lay.scale_bytes;
        e.codes = e.table + (size_t)lay.piece_table_bytes;
        e.to_sum = to_sum;
        e.producer_step = src->producer && src->producer->step == CG_CHUNK_ &&
                (lay.quantizer->needs != CG_NEEDS_BUCKET_STATS_ || CG_CHUNK_ % lay.bucket_size == 0)
            ? CG_CHUNK_
            : CG_BLOCK_;
        s = cg_builds_levels_() && lay.quantizer->output == CG_OUTPUT_LEVELS_
            ? cg_rate_encode_(&e, (uint8_t *)list->work, body, &info->value_bytes)
            : cg_encode_values_(&e, body, &info->value_bytes);
    }
    if (s != CG_OK) return s;
    if (index_bytes) {
        out += info->value_bytes;
        info->index_bytes = cg_index_put_(info->index_code, plan->universe, list, out);
        if (lay.codec || to_sum) *body = cg_checksum_concat_(*body, cg_checksum_of_(kernels, out, info->index_bytes));
    }
    return CG_OK;
}
/* As cg_source_open_. CG_OK: the packet has *len bytes. On an error the packet's bytes are undefined, and *len is as it
   was. */
static cg_status cg_compress_packet_(cg_info *info, const cg_plan_ *plan, const cg_extra *extra, cg_producer_ *producer,
    const float *x, uint8_t *packet, size_t cap, size_t *len, void *scratch) {
    cg_list_ list;
    cg_source_ src;
    cg_checksum_ body = { 0, 0, 0 };
    cg_status s = cg_source_open_(info, plan, extra, producer, x, scratch, &src, &list);
    if (s != CG_OK) return s;
    if (cap < CG_HEADER_BYTES) return CG_E_CAPACITY;
    s = cg_body_put_(info, plan, extra, &src, &list, packet + CG_HEADER_BYTES, cap - CG_HEADER_BYTES, 0, &body);
    if (s == CG_OK) *len = cg_packet_finalize_(src.kernels, info, packet, body);
    return s;
}
/* Why cg_bound_ is 0, in a sentence; NULL: it is not. *need: the n that op takes, if it takes only one. */
static const char *cg_segments_why_(const cg_op *op, const cg_extra *extra, size_t n); /* as the bound */
static const char *cg_bound_why_(const cg_op *op, const cg_extra *extra, size_t n, uint64_t *need) {
    static const char *const slot_why[] = {
        "the sample of the operator is not valid, or has a parameter out of range: as text cg_op_parse_why says which",
        "the transform of the operator is not valid, or has a parameter out of range: as text cg_op_parse_why says "
        "which",
        "the selection of the operator is not valid, or has a parameter out of range: as text cg_op_parse_why says "
        "which",
        "the quantizer of the operator is not valid, or has a parameter out of range: as text cg_op_parse_why says "
        "which",
        "the code of the operator is not valid",
        "the operator is not valid: cg_then filled a slot twice, a modifier does not go with its stage, or a parameter "
        "is out of range"
    };
    const char *why;
    unsigned slot;
    uint64_t bytes;
    cg_layout_ lay;
    *need = 0;
    if (!op) return "op is NULL";
    if (cg_bound_(op, extra, n)) return NULL;
    why = cg_op_left_out_(op);
    if (why) return why;
    if (cg_segments_of_(extra) && cg_op_check_(op) == CG_OK) return cg_segments_why_(op, extra, n);
    for (slot = CG_SLOT_COUNT_; slot--;)
        if (cg_stage_check_(slot, cg_op_stage_const_(op, slot)) != CG_OK)
            return slot == CG_SLOT_CLIP_ && cg_row_at_(slot, op->clip.id)
                ? "the clip of the operator has a parameter out of range: as text cg_op_parse_why says which"
                : slot_why[slot];
    if (op->reserved) return "the operator is not valid: reserved must be 0";
    why = cg_op_conflict_(op, cg_op_traits_(op), &slot);
    if (why) return why;
    if (!cg_matrix_shape_fits_(op, n)) {
        *need = (uint64_t)op->transform.size * (uint64_t)op->transform.value;
        return "the operator is for a matrix of rows * cols values, and n is another number";
    }
    switch (cg_layout_sizes_(op, extra, 0, &lay, &bytes)) {
    case CG_OK: break;
    case CG_E_VERSION: return "the codec of the operator is not in cg_extra.codecs";
    default: return "a codec of yours refuses its parameters: its bound is 0";
    }
    return lay.codec ? "a codec of yours refuses its parameters, or the bytes for n values overflow"
                     : "n is too large: the bytes of a packet overflow";
}
/* Why compressing has failed, and in *need and *at by how much and where; the arguments as in cg_compress_checked_,
   but that extra is not NULL. */
static const char *cg_compress_why_(cg_status s, const cg_op *op, const cg_tag *tag, const cg_extra *extra,
    const float *x, size_t n, const void *packet, const size_t *len, const void *scratch, size_t scratch_bytes,
    uint64_t *need, uint64_t *at) {
    const char *why = cg_bound_why_(op, extra, n, need);
    const uint32_t traits = op ? cg_op_traits_(op) : 0;
    *at = CG_NO_INDEX;
    if (why) return why;
    if (!packet) return "packet is NULL";
    if (!len) return "len is NULL";
    if (!x && n) return "x is NULL, and n is not 0";
    if (cg_extra_check_(op, extra) == CG_E_UNSUPPORTED)
        return "cg_extra has an aux, a support or scales that this operator has no use for: leave them NULL";
    if (s == CG_E_CAPACITY) {
        const cg_plan_ plan = cg_plan_of_(op, n);
        *need = cg_segments_of_(extra) ? cg_segments_scratch_(op, extra, n) : cg_scratch_bytes_(op, &plan);
        if (*need > scratch_bytes) return "scratch is too small: cg_scratch gives its bytes";
        *need = cg_bound_(op, extra, n);
        return "packet is too small: cg_bound gives its bytes";
    }
    if (s == CG_E_NONFINITE) {
        *at = cg_first_nonfinite_(x, n);
        if (*at != CG_NO_INDEX || !extra->aux) return cg_status_str(s);
        *at = cg_first_nonfinite_(extra->aux, n);
        return "NaN or Inf in cg_extra.aux";
    }
    if (traits & CG_NEEDS_SUPPORT_)
        return extra->support ? "the packet cg_extra.support is damaged, of another n, or has no indices of its own"
                              : "the operator given needs the packet cg_extra.support";
    if (s != CG_E_ARG) return cg_status_str(s);
    if (scratch_bytes && !scratch) return "scratch is NULL, and scratch_bytes is not 0";
    if (cg_extra_check_(op, extra) != CG_OK) return "cg_extra has an unknown flag, or support_len without a support";
    if (traits & CG_IS_PER_RANK_ && (tag ? tag->rank : 0) >= op->sample.size)
        return "tag.rank is not below the workers of permk";
    if (traits & CG_NEEDS_AUX_ && !extra->aux) return "the operator needs the n floats cg_extra.aux";
    return extra->scale ? "a scale in cg_extra.scale is negative or not finite" : cg_status_str(s);
}
/* No packet of so many values overflows a size_t. */
#define CG_MANY_ ((size_t)1 << 24)
/* cg_compress_unreported_ with extra->segments, once its pointers have been checked. */
static cg_status cg_compress_segments_(const cg_op *op, const cg_tag *tag, const cg_extra *extra, const float *x,
    cg_producer_ *producer, size_t n, uint8_t *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes);
/* cg_compress_checked_ but for the report. */
static cg_status cg_compress_unreported_(const cg_op *op, const cg_plan_ *known, const cg_tag *tag,
    const cg_extra *extra, const float *x, cg_producer_ *producer, size_t n, void *packet, size_t cap, size_t *len,
    void *scratch, size_t scratch_bytes) {
    cg_info info = CG_ZERO;
    cg_plan_ plan;
    const float empty_x = 0.0f; /* x if there are no values, as NULL + 0 is undefined */
    cg_status s;
    if (len) *len = 0;
    if (!op || !len || !packet || (!x && n)) return CG_E_ARG;
    if (cg_segments_of_(extra))
        return cg_compress_segments_(
            op, tag, extra, x, producer, n, (uint8_t *)packet, cap, len, scratch, scratch_bytes);
    if (known) plan = *known;
    else if (cg_op_resolve_(op, &plan.traits) != CG_OK) return cg_op_left_out_(op) ? CG_E_VERSION : CG_E_ARG;
    if (plan.traits & CG_IS_MATRIX_ && !cg_matrix_shape_fits_(op, n)) return CG_E_ARG;
    info.op = *op;
    info.n = n;
    if (tag) info.tag = *tag;
    if (plan.traits & CG_IS_PER_RANK_ && info.tag.rank >= op->sample.size) return CG_E_ARG;
    if (!known) cg_plan_set_(&plan, op, n, NULL);
    /* x must not be read where the bound is 0: that is, where a codec refuses or so many values overflow */
    if ((plan.traits & CG_IS_USER_CODEC_ || n > CG_MANY_) && !cg_plan_bound_(&plan, op, extra)) return CG_E_ARG;
    s = cg_extra_check_(op, extra);
    if (s != CG_OK) return s;
    if (cg_scratch_bytes_(op, &plan) > scratch_bytes) return CG_E_CAPACITY;
    if (plan.traits & CG_IS_PER_RANK_) cg_plan_set_(&plan, op, n, &info.tag);
    if (scratch_bytes && !scratch) return CG_E_ARG;
    return cg_compress_packet_(&info, &plan, extra, producer, x ? x : &empty_x, (uint8_t *)packet, cap, len, scratch);
}
/* cg_compress_with, inside cg_fenv_enter_; all arguments are checked but for the producer. known: the plan of op and n,
   which cg_resolve_ has accepted, or NULL. producer: NULL; or it makes
   x, which is written; or it is lazy, and x is not read but must not be NULL. Lazy values suit no operator on
   matrices, and without sample and transform no selection but top-k and no user codec. */
static cg_status cg_compress_checked_(const cg_op *op, const cg_plan_ *known, const cg_tag *tag, const cg_extra *extra,
    const float *x, cg_producer_ *producer, size_t n, void *packet, size_t cap, size_t *len, void *scratch,
    size_t scratch_bytes) {
    const cg_status s = cg_compress_unreported_(
        op, known, tag, extra, x, producer, n, packet, cap, len, scratch, scratch_bytes);
    uint64_t need = 0, at = CG_NO_INDEX;
    const char *why;
    if (!extra || !extra->report) return s;
    why = cg_status_str(s);
    if (s != CG_OK) why = cg_compress_why_(s, op, tag, extra, x, n, packet, len, scratch, scratch_bytes, &need, &at);
    cg_report_set_(extra->report, s, why, need, at);
    return s;
}
CG_API_ cg_status cg_compress_with(const cg_op *op, const cg_tag *tag, const cg_extra *extra, const float *x, size_t n,
    void *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes) {
    cg_fenv_ env = cg_fenv_enter_();
    const char *only_old = op ? cg_op_only_old_(op) : NULL;
    cg_status s = CG_E_ARG;
    if (len) *len = 0;
    if (!only_old) s = cg_compress_checked_(op, NULL, tag, extra, x, NULL, n, packet, cap, len, scratch, scratch_bytes);
    else if (extra && extra->report) cg_report_set_(extra->report, s, only_old, 0, CG_NO_INDEX);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_compress(const cg_op *op, const cg_tag *tag, const float *x, size_t n, void *packet, size_t cap,
    size_t *len, void *scratch, size_t scratch_bytes) {
    return cg_compress_with(op, tag, NULL, x, n, packet, cap, len, scratch, scratch_bytes);
}

/* src/core/decoder.h */
/* decoder: an opened packet, and the decoding of one chunk of its values

   Offers   cg_decoder_, cg_sink_, cg_piece_cursor_, cg_decode_chunk_
   Needs    base, kernels, codes (symbols, floats), packet, quantize, layout, encode (scales and ends of buckets)
   Touches  nothing but its arguments
   Other headers may use: cg_decoder_, cg_sink_
   All of it is safe on any bytes that cg_decoder_open_ accepts, and gives finite floats once cg_verify_ has accepted
   them. */

/* Takes decoded values in place of y. Both functions return the sum of the squares of v, which may have any alignment.
   Sparse values have been multiplied by alpha, dense ones not; beta is not used. */
typedef struct cg_sink_ {
    double (*take_dense)(const void *user, size_t first, size_t many, const float *v); /* [first, first + many) of n */
    double (*take_sparse)(const void *user, const uint64_t *at, size_t many, const float *v); /* at ascending indices */
    const void *user;
    double energy; /* result: the sum of what they returned is added */
} cg_sink_;

/* An opened packet. cg_decoder_open_ sets all but alpha, beta and non_temporal, with support and sink NULL. */
typedef struct cg_decoder_ {
    const cg_kernels_ *kernels;
    const uint8_t *packet, *scales, *piece_table, *codes, *index; /* the sections */
    const struct cg_decoder_ *support;                            /* whose indices these values have, or NULL */
    cg_info info;
    cg_layout_ lay;
    cg_plan_ plan;
    float alpha, beta; /* y = alpha*decoded + beta*y */
    float *y;          /* n floats of any alignment */
    float empty_y;     /* y points here if there are no values, as NULL + 0 is undefined */
    cg_sink_ *sink;    /* takes the values in place of y, or NULL */
    int non_temporal;  /* 1: y is larger than the caches, and aligned to 16 bytes */
    /* of a packet with segments, whose lay and sections are not used */
    int need_codec;                /* 0: only its indices are wanted */
    uint64_t coordinates;          /* for how many values of x it has some */
    uint64_t segments_hash;        /* of what their packets have in common on all ranks; 0: no segments */
    struct cg_segment_walk_ *walk; /* of a support: where its reader stands */
} cg_decoder_;

/* Where a reader of pieces stands, and the last piece it has decoded; only with a value code. */
typedef struct cg_piece_cursor_ {
    size_t piece;  /* its number */
    size_t offset; /* bytes from the start of the codes to it */
    int decoded;   /* 1: symbols has it, or levels is open */
    union {
        uint8_t symbols[CG_PIECE_SYMBOLS_]; /* or floats as they are stored */
        cg_rans_reader_ levels;             /* at the next chunk */
    } of;
} cg_piece_cursor_;

/* Pieces of a packet with a value code. */
static size_t cg_piece_count_(const cg_layout_ *lay) {
    return (size_t)(lay->k / lay->piece_values + (lay->k % lay->piece_values != 0));
}
/* Bytes of a piece, which may be more than the section has until cg_pieces_check_ has seen the table. */
static size_t cg_piece_bytes_(const cg_decoder_ *d, size_t piece) {
    if (d->lay.value_code == CG_VALUE_CODE_RANS_) return 4 * (size_t)cg_get16_(d->piece_table + 2 * piece);
    return (size_t)cg_word_bytes_(cg_get32_(d->piece_table + 4 * piece) & 0x3fffffffu);
}
/* At a piece whose offset the caller knows. */
static void cg_piece_cursor_open_(cg_piece_cursor_ *c, size_t piece, size_t offset) {
    c->piece = piece;
    c->offset = offset;
    c->decoded = 0;
}
/* Symbols, or floats as they are stored, from value `first` to the end of its piece, or levels to the end of its chunk,
   which are put in levels; `first` never decreases, and for levels is a multiple of CG_CHUNK_. */
CG_NOINLINE_ const uint8_t *cg_piece_cursor_get_(
    cg_piece_cursor_ *c, const cg_decoder_ *d, size_t first, uint8_t *levels) {
    const cg_layout_ *lay = &d->lay;
    const size_t piece = first / lay->piece_values,
                 many = cg_min_(lay->piece_values, (size_t)lay->k - piece * lay->piece_values);
    const unsigned width = cg_float_width_(&d->info.op.quantize);
    for (; c->piece < piece; c->piece++, c->decoded = 0) c->offset += cg_piece_bytes_(d, c->piece);
    if (lay->value_code == CG_VALUE_CODE_RANS_) { /* chunk by chunk */
        cg_rans_reader_ *r = &c->of.levels;
        if (!c->decoded)
            (void)cg_rans_open_(r, d->codes + c->offset, cg_piece_bytes_(d, piece), many, lay->bits_x32 / 32);
        c->decoded = 1;
        while (r->position < first - piece * lay->piece_values) cg_rans_skip_(r);
        cg_rans_next_(r, cg_min_(CG_CHUNK_, many - r->position), levels);
        return levels;
    }
    if (!c->decoded) {
        const uint32_t entry = cg_get32_(d->piece_table + 4 * piece);
        const size_t bytes = cg_piece_bytes_(d, piece);
        if (width) cg_floats_get_(d->kernels, width, entry, d->codes + c->offset, bytes, many, c->of.symbols);
        else
            cg_piece_get_(
                d->kernels, lay->value_code, &lay->alphabet, entry, d->codes + c->offset, bytes, many, c->of.symbols);
        c->decoded = 1;
    }
    return c->of.symbols + (first - piece * lay->piece_values) * (width ? width : 1);
}
/* Values [first, first + many) from symbols, or from packed bits if that is the quantizer's output, by buckets. */
static void cg_decode_buckets_(
    const cg_decoder_ *d, const uint8_t *in, size_t first, size_t many, float *out, int stream) {
    const cg_layout_ *lay = &d->lay;
    const cg_quantizer_ *quantizer = lay->quantizer;
    float scales[2];
    if (quantizer->needs != CG_NEEDS_BUCKET_STATS_) {
        if (quantizer->scale_count) cg_scales_get_(lay, d->scales, 0, scales);
        quantizer->decode(d->kernels, &d->info.op.quantize, scales, in, many, out, stream);
        return;
    }
    for (size_t i = first, b = cg_quotient_(first, (size_t)lay->bucket_size), stop; i < first + many; i = stop, b++) {
        stop = cg_min_(first + many, cg_bucket_end_(lay, b));
        cg_scales_get_(lay, d->scales, b, scales);
        quantizer->decode(d->kernels, &d->info.op.quantize, scales,
            in + (quantizer->output == CG_OUTPUT_SYMBOLS_ ? i - first : (i - first) * lay->bits_x32 / 256), stop - i,
            cg_at_mut_(out, i - first), stream && (i - first) % 4 == 0);
    }
}
/* Values [first, first + many), at most CG_CHUNK_, from packed symbols. */
CG_NOINLINE_ void cg_decode_packed_(
    const cg_decoder_ *d, const uint8_t *in, size_t first, size_t many, float *out, int stream) {
    uint8_t symbols[CG_CHUNK_];
    CG_KERNEL_(d->kernels, unpack(in, many, d->lay.bits_x32 / 32, symbols));
    cg_decode_buckets_(d, symbols, first, many, out, stream);
}
/* Values [first, first + many) as floats: in out, or where they lie, at any alignment; NULL: the user codec refused, or
   made a value that is not finite. first is a multiple of CG_CHUNK_, many at most that; cursor: NULL without a value
   code. */
static const float *cg_decode_chunk_(
    const cg_decoder_ *d, cg_piece_cursor_ *cursor, size_t first, size_t many, float *out, int stream) {
    const cg_layout_ *lay = &d->lay;
    const uint8_t *in;
    if (lay->codec) {
        cg_status s = lay->codec->decode(
            lay->codec, &d->info.op.quantize, d->codes, d->info.value_bytes, (size_t)lay->k, first, many, out);
        return s == CG_OK && CG_KERNEL_(d->kernels, absmax_bits(out, many)) < CG_INF_BITS_ ? out : NULL;
    }
    /* levels are put into the end of out, where floats, which are twice as wide, reach them one by one */
    in = cg_is_coded_(lay) ? cg_piece_cursor_get_(cursor, d, first, (uint8_t *)out + 2 * many)
                           : d->codes + cg_codes_offset_(lay, first);
#if !CG_BIG_ENDIAN_
    if (lay->bits_x32 == 32 * 32) return (const float *)(const void *)in; /* f32 as it is */
#endif
    if (lay->quantizer->output == CG_OUTPUT_SYMBOLS_ && lay->bits_x32 < 8 * 32 && !cg_is_coded_(lay))
        cg_decode_packed_(d, in, first, many, out, stream);
    else cg_decode_buckets_(d, in, first, many, out, stream);
    return out;
}

/* src/core/verify.h */
/* verify: everything that can be wrong with the values and indices of a packet

   Offers   cg_verify_, cg_scales_legal_, cg_codes_check_, cg_checksum_ok_, cg_codes_prefetch_
   Needs    base, kernels, codes, packet, layout, indices, decoder
   Touches  nothing
   A packet is canonical: bits that fill sections are zero, indices ascend, and nothing is left over. After
   cg_decoder_open_ and cg_verify_ nothing can fail any more but a user codec. */

/* Are all scales such as an encoder can have stored? */
static int cg_scales_legal_(const cg_decoder_ *d) {
    const cg_quantizer_ *quantizer = d->lay.quantizer;
    float scales[2];
    if (!quantizer || !quantizer->scale_count) return 1;
    for (size_t b = 0; b < (size_t)d->lay.bucket_count; b++) {
        if (quantizer->byte_scale && d->scales[(size_t)d->lay.vector_bytes + b] > quantizer->byte_scale->largest)
            return 0;
        cg_scales_get_(&d->lay, d->scales, b, scales);
        if (!quantizer->legal(scales)) return 0;
    }
    return cg_padding_zero_(
        d->scales, (d->lay.vector_bytes + d->lay.bucket_count * quantizer->scale_count * quantizer->scale_width) * 8);
}
/* Prefetches the first half of the next chunk's codes, which makes the hardware fetch the rest; all of it is slower. */
static void cg_codes_prefetch_(const cg_decoder_ *d, size_t first) {
    const size_t bytes = cg_codes_offset_(&d->lay, CG_CHUNK_);
    const uint8_t *next = d->codes + cg_codes_offset_(&d->lay, first) + bytes;
    if (!cg_is_coded_(&d->lay) && first + CG_CHUNK_ < d->lay.k)
        for (size_t i = 0; i < bytes / 2; i += 64) CG_PREFETCH_(next + i);
}
/* Packed codes of values [first, first + many), a whole chunk or the last: *sum absorbs them, unless the packet is
   small; returns whether all stored floats are finite. */
static int cg_codes_check_(const cg_decoder_ *d, size_t first, size_t many, cg_checksum_ *sum) {
    const uint8_t *in = d->codes + cg_codes_offset_(&d->lay, first);
    const cg_quantizer_ *quantizer = d->lay.quantizer;
    if (d->info.packet_bytes > CG_SMALL_PACKET_)
        CG_KERNEL_(d->kernels, checksum(sum, in, cg_codes_words_(&d->lay, many)));
    return !quantizer->stored_absmax_bits ||
        quantizer->stored_absmax_bits(d->kernels, in, many) < quantizer->stored_limit;
}
/* Do the entries add up to the section, and is each piece one that can be decoded, its floats finite? */
CG_NOINLINE_ int cg_pieces_check_(const cg_decoder_ *d) {
    const cg_layout_ *lay = &d->lay;
    const size_t k = (size_t)lay->k, pieces = cg_piece_count_(lay);
    const size_t codes_bytes = d->info.value_bytes - (size_t)(lay->scale_bytes + lay->piece_table_bytes);
    const unsigned width = cg_float_width_(&d->info.op.quantize);
    size_t offset = 0;
    for (size_t i = 0; i < pieces; i++) {
        const size_t bytes = cg_piece_bytes_(d, i), many = cg_min_(lay->piece_values, k - i * lay->piece_values);
        uint32_t entry;
        if (bytes > codes_bytes - offset) return 0;
        if (lay->value_code == CG_VALUE_CODE_RANS_) {
            if (!cg_rans_check_(d->codes + offset, bytes, many, lay->bits_x32 / 32)) return 0;
            offset += bytes;
            continue;
        }
        entry = cg_get32_(d->piece_table + 4 * i);
        if (!width &&
            !cg_piece_check_(d->kernels, lay->value_code, &lay->alphabet, entry, d->codes + offset, bytes, many))
            return 0;
        if (width) {
            if (!cg_floats_check_(d->kernels, width, entry, d->codes + offset, bytes, many)) return 0;
            if (entry >> 30 == 0 &&
                lay->quantizer->stored_absmax_bits(d->kernels, d->codes + offset, many) >= lay->quantizer->stored_limit)
                return 0;
        }
        offset += bytes;
    }
    return offset == codes_bytes &&
        (lay->value_code != CG_VALUE_CODE_RANS_ || cg_padding_zero_(d->piece_table, 16 * (uint64_t)pieces));
}
/* The whole index section: padding, indices, and the length of the last block. */
CG_NOINLINE_ int cg_index_check_(const cg_decoder_ *d) {
    const cg_info *info = &d->info;
    const uint64_t k = cg_index_count_(&d->plan, info->k);
    cg_index_reader_ r;
    uint64_t next;
    int ok;
    if (!info->index_bytes) return k == 0 || !cg_has_indices_(&d->plan);
    r = cg_index_open_(d->kernels, info, &d->plan, d->index);
    if (!r.coder->padding_ok(&r, k)) return 0;
    ok = r.coder->check(&r, k, &next);
    if (!ok) return 0;
    /* only the last block of the vector may be short, and k must say so */
    return r.values_per_index == 1 ||
        (info->k % r.values_per_index
                ? next == r.universe && info->k % r.values_per_index == r.transformed_n % r.values_per_index
                : next != r.universe || !(r.transformed_n % r.values_per_index));
}
/* Is the packet's checksum right, if its codes have this one? For a user codec, codes are all of the value section.
   Of a small packet codes is not read. */
static int cg_checksum_ok_(const cg_decoder_ *d, cg_checksum_ codes) {
    cg_checksum_ s;
    if (d->info.packet_bytes <= CG_SMALL_PACKET_) s = cg_packet_checksum_(d->kernels, d->packet, d->info.packet_bytes);
    else {
        s = cg_checksum_of_(d->kernels, d->packet, CG_CHECKSUM_OFFSET_);
        s = cg_checksum_concat_(s, cg_checksum_zeros_(4));
        s = cg_checksum_concat_(s, cg_checksum_of_(d->kernels, d->scales, (size_t)(d->codes - d->scales)));
        s = cg_checksum_concat_(s, codes);
        s = cg_checksum_concat_(s, cg_checksum_of_(d->kernels, d->index, d->info.index_bytes));
    }
    return s.a == cg_get64_(d->packet + CG_CHECKSUM_OFFSET_) && s.b == cg_get64_(d->packet + CG_CHECKSUM_OFFSET_ + 8);
}
/* The same of all bytes of a packet. */
static int cg_checksum_whole_ok_(const cg_decoder_ *d) {
    const cg_checksum_ s = cg_packet_checksum_(d->kernels, d->packet, d->info.packet_bytes);
    return s.a == cg_get64_(d->packet + CG_CHECKSUM_OFFSET_) && s.b == cg_get64_(d->packet + CG_CHECKSUM_OFFSET_ + 8);
}
static cg_status cg_verify_segments_(const cg_decoder_ *d, const cg_extra *extra); /* in core/segments/decode.h */
/* Values and indices of a packet that cg_decoder_open_ has opened: CG_OK or CG_E_CORRUPT. A user codec decodes all its
   values once. Of a segment, whose packet_bytes are 0, the checksum is left to cg_verify_segments_. */
CG_NOINLINE_ cg_status cg_verify_(const cg_decoder_ *d, const cg_extra *extra) {
    const size_t k = (size_t)d->lay.k;
    cg_checksum_ sum = { 0, 0, 0 };
    float out[CG_CHUNK_];
    int finite = 1;
    if (cg_has_segments_(&d->info)) return cg_verify_segments_(d, extra);
    if (d->info.packet_bytes && (!d->lay.quantizer || cg_is_coded_(&d->lay)))
        sum = cg_checksum_of_(d->kernels, d->codes, (size_t)(d->index - d->codes));
    if (d->lay.quantizer && !cg_is_coded_(&d->lay))
        for (size_t i = 0; i < k; i += CG_CHUNK_) {
            cg_codes_prefetch_(d, i);
            finite &= cg_codes_check_(d, i, cg_min_(CG_CHUNK_, k - i), &sum);
        }
    if ((d->info.packet_bytes && !cg_checksum_ok_(d, sum)) || !finite || !cg_index_check_(d)) return CG_E_CORRUPT;
    if (cg_is_coded_(&d->lay) && !cg_pieces_check_(d)) return CG_E_CORRUPT;
    for (size_t i = 0; d->lay.codec && i < k; i += CG_CHUNK_)
        if (!cg_decode_chunk_(d, NULL, i, cg_min_(CG_CHUNK_, k - i), out, 0)) return CG_E_CORRUPT;
    return CG_OK;
}

/* src/core/decode_into.h */
/* decode_into: decoded values into y or a sink: dense, sparse or a product of factors

   Offers   cg_decode_dense_, cg_decode_sparse_, cg_decode_sparse_coded_, cg_decode_few_, cg_matrix_decode_,
            cg_coordinates_get_, cg_selection_reader_
   Needs    base, random, kernels, plan, sample, transform, indices, encode (waves), decoder, verify
   Touches  y, or what the sink writes
   A dense result is decoded by blocks, by threads if there are any. A sparse one is read in batches of values with
   their coordinates. Inputs have been opened and verified, but for CG_DECODE_DIRECT; all but a user codec succeeds. */

enum { CG_SPARSE_BATCH_ = 128 }; /* values; divides CG_CHUNK_ */

/* Reads the values of a selection in order, with their indices in the transformed vector. */
typedef struct cg_selection_reader_ {
    cg_index_reader_ reader;
    cg_piece_cursor_ *cursor;         /* NULL without a value code */
    uint64_t index[CG_SPARSE_BATCH_]; /* of the current batch */
    const float *values;              /* the current chunk, decoded: in buf, or where it lies */
    float buf[CG_CHUNK_];
    size_t batch_first, batch_n; /* the current batch is values [batch_first, batch_first + batch_n) */
    size_t next_unused;          /* the first value that has not been used */
} cg_selection_reader_;

/* Before the first value. cursor: uninitialised, or NULL without a value code. The owner of the indices is the support,
   if there is one. */
static void cg_selection_reader_open_(cg_selection_reader_ *sel, const cg_decoder_ *d, cg_piece_cursor_ *cursor) {
    const cg_decoder_ *owner = d->support ? d->support : d;
    if (!cg_has_segments_(&owner->info))
        sel->reader = cg_index_open_(owner->kernels, &owner->info, &owner->plan, owner->index);
    else sel->reader.values_per_index = 1;
    sel->cursor = cursor;
    if (cursor) cg_piece_cursor_open_(cursor, 0, 0);
    sel->values = NULL;
    sel->batch_first = sel->batch_n = sel->next_unused = 0;
}
/* Decodes the chunk of the batch that begins at value `first`, a multiple of CG_SPARSE_BATCH_; batches must be loaded
   in order. Returns the number of values in the batch; 0: a user codec refused what it had accepted in cg_verify_. */
static size_t cg_selection_reader_load_(cg_selection_reader_ *sel, const cg_decoder_ *d, size_t first) {
    const size_t k = (size_t)d->lay.k, many = cg_min_(CG_SPARSE_BATCH_, k - first);
    if (first % CG_CHUNK_ == 0)
        sel->values = cg_decode_chunk_(d, sel->cursor, first, cg_min_(CG_CHUNK_, k - first), sel->buf, 0);
    return sel->values ? many : 0;
}

/* The chunk from value `first` on, after the inverse transform, in out (CG_CHUNK_ floats); NULL: a user codec refused.
   With a selection sel is needed, and chunks must be asked for in order; cursor only with a value code. */
static const float *cg_inverse_transform_chunk_(
    const cg_decoder_ *d, cg_selection_reader_ *sel, cg_piece_cursor_ *cursor, size_t first, float *out) {
    const size_t block_size = cg_transformer_of_(&d->info.op)->block,
                 end = cg_min_((size_t)d->plan.transformed_n, first + CG_CHUNK_);
    const uint64_t key = cg_stage_key_(&d->info.op.transform, &d->info.tag);
    const float *v = out;
    if (!d->info.op.select.id) {
        v = cg_decode_chunk_(d, cursor, first, end - first, out, 0);
        if (!v) return NULL;
    } else {
        memset(out, 0, 4 * (end - first));
        for (;;) {
            if (sel->next_unused == sel->batch_first + sel->batch_n) {
                if (sel->next_unused == (size_t)d->lay.k) break;
                sel->batch_first = sel->next_unused;
                sel->batch_n = cg_selection_reader_load_(sel, d, sel->batch_first);
                if (!sel->batch_n) return NULL;
                cg_index_get_per_value_(&sel->reader, sel->index, sel->batch_n);
            }
            if (sel->index[sel->next_unused - sel->batch_first] >= end) break;
            out[(size_t)sel->index[sel->next_unused - sel->batch_first] - first] = cg_load_(
                sel->values, sel->next_unused % CG_CHUNK_);
            sel->next_unused++;
        }
    }
    for (size_t b = first; b < end; b += block_size)
        cg_transform_block_(d->kernels, &d->info.op, key, b / block_size, cg_at_(v, b - first), out + (b - first), 1);
    return out;
}

/* One block of a dense result. sel: with a selection and a transform; cursor: with a value code, at the block's first
   piece. check_codes: the packet has not been verified; *sum becomes the checksum of the block's codes, and a stored
   float that is not finite ends the block. *energy: what the sink returned. 0: corrupt, y is partly written. */
CG_NOINLINE_ int cg_decode_block_(const cg_decoder_ *d, cg_selection_reader_ *sel, cg_piece_cursor_ *cursor,
    size_t block, int check_codes, cg_checksum_ *sum, double *energy) {
    const size_t n = (size_t)d->info.drawn, end = cg_min_(n, (block + 1) * CG_BLOCK_);
    const int transformed = cg_is_transformed_(&d->info.op),
              in_place = d->alpha == 1.0f && d->beta == 0.0f && !d->lay.codec && !transformed && !d->sink;
    float out[CG_CHUNK_];
    int ok = 1;
    cg_fenv_ env = cg_fenv_enter_thread_();
    sum->a = sum->b = sum->words = 0;
    *energy = 0.0;
    for (size_t first = block * CG_BLOCK_, many; first < end && ok; first += many) {
        many = cg_min_(CG_CHUNK_, end - first);
        if (check_codes) ok = cg_codes_check_(d, first, cg_min_(CG_CHUNK_, (size_t)d->lay.k - first), sum);
        if (ok) {
            float *y = d->sink ? d->y : cg_at_mut_(d->y, first);
            const float *v;
            cg_codes_prefetch_(d, first);
            if (transformed) v = cg_inverse_transform_chunk_(d, sel, cursor, first, out);
            else v = cg_decode_chunk_(d, cursor, first, many, in_place ? y : out, in_place && d->non_temporal);
            if (v && d->sink) *energy += d->sink->take_dense(d->sink->user, first, many, v);
            else if (v && v != y) CG_KERNEL_(d->kernels, axpby(v, many, d->alpha, d->beta, y, d->non_temporal));
            ok = v != NULL;
        }
    }
    if (d->non_temporal) CG_KERNEL_(d->kernels, stream_fence());
    cg_fenv_leave_thread_(env);
    return ok;
}
/* The same with a value code. offset: of the block's first piece in the codes. */
CG_NOINLINE_ int cg_decode_block_coded_(
    const cg_decoder_ *d, size_t block, size_t offset, cg_checksum_ *sum, double *energy) {
    cg_piece_cursor_ cursor;
    cg_piece_cursor_open_(&cursor, block * CG_BLOCK_ / d->lay.piece_values, offset);
    return cg_decode_block_(d, NULL, &cursor, block, 0, sum, energy);
}
/* All blocks of a dense result without a selection, in waves; *sum becomes the checksum of their codes. 0: corrupt. */
CG_NOINLINE_ int cg_decode_waves_(const cg_decoder_ *d, size_t blocks, int check_codes, cg_checksum_ *sum) {
    cg_checksum_ block_sums[CG_WAVE_];
    size_t offset[CG_WAVE_ + 1]; /* of blocks, with a value code */
    double energy[CG_WAVE_];
    int ok[CG_WAVE_];
    offset[0] = 0;
    for (size_t block = 0; block < blocks; block += CG_WAVE_) {
        int many = cg_wave_size_(blocks - block);
        for (int i = 0; cg_is_coded_(&d->lay) && i < many; i++) {
            const size_t block_pieces = CG_BLOCK_ / d->lay.piece_values, pieces = cg_piece_count_(&d->lay),
                         first = (block + (size_t)i) * block_pieces;
            offset[i + 1] = offset[i];
            for (size_t p = first; p < cg_min_(pieces, first + block_pieces); p++)
                offset[i + 1] += cg_piece_bytes_(d, p);
        }
        CG_PARALLEL_
        for (int i = 0; i < many; i++)
            ok[i] = cg_is_coded_(&d->lay)
                ? cg_decode_block_coded_(d, block + (size_t)i, offset[i], &block_sums[i], &energy[i])
                : cg_decode_block_(d, NULL, NULL, block + (size_t)i, check_codes, &block_sums[i], &energy[i]);
        if (cg_is_coded_(&d->lay)) offset[0] = offset[many];
        for (int i = 0; i < many; i++) {
            if (!ok[i]) return 0;
            if (d->sink) d->sink->energy += energy[i];
            *sum = cg_checksum_concat_(*sum, block_sums[i]);
        }
    }
    return 1;
}
/* All of a dense result without a selection. check_codes: verifies the packet on the way (CG_DECODE_DIRECT). */
static cg_status cg_decode_dense_(const cg_decoder_ *d, int check_codes) {
    const size_t n = (size_t)d->info.drawn;
    cg_checksum_ sum = { 0, 0, 0 };
    double energy = 0.0;
    int ok;
    if (n - 1 < CG_BLOCK_ && !cg_is_coded_(&d->lay)) { /* one block */
        ok = cg_decode_block_(d, NULL, NULL, 0, check_codes, &sum, &energy);
        if (d->sink) d->sink->energy += energy;
    } else ok = cg_decode_waves_(d, n / CG_BLOCK_ + (n % CG_BLOCK_ != 0), check_codes, &sum);
    return ok && (!check_codes || cg_checksum_ok_(d, sum)) ? CG_OK : CG_E_CORRUPT;
}
/* All of a dense result that is the inverse transform of a selection: its values come in order, so blocks do, too. */
CG_NOINLINE_ cg_status cg_decode_sequential_(const cg_decoder_ *d, cg_piece_cursor_ *cursor) {
    const size_t n = (size_t)d->info.drawn;
    cg_selection_reader_ sel;
    cg_checksum_ unused;
    double energy;
    cg_selection_reader_open_(&sel, d, cursor);
    for (size_t block = 0; block * CG_BLOCK_ < n; block++) {
        if (!cg_decode_block_(d, &sel, cursor, block, 0, &unused, &energy)) return CG_E_CORRUPT;
        if (d->sink) d->sink->energy += energy;
    }
    return CG_OK;
}

/* Where the reader of a support with segments stands. */
typedef struct cg_segment_walk_ {
    cg_segment_cursor_ cursor;
    cg_decoder_ segment;
    cg_index_reader_ reader; /* of the segment */
    size_t next, count;      /* of its coordinates */
    uint64_t base;           /* its first value */
} cg_segment_walk_;
/* The next coordinates of a verified support with segments; start: from the first on. In core/segments/decode.h */
static void cg_segment_walk_get_(const cg_decoder_ *support, int start, size_t many, uint64_t *index);
/* The coordinates in x of values [first, first + many), ascending. With indices r is the reader of d or of its support,
   and stands at value `first`; behind a transform all sampled coordinates count as values. */
static void cg_coordinates_get_(const cg_decoder_ *d, cg_index_reader_ *r, size_t first, size_t many, uint64_t *index) {
    const cg_decoder_ *owner = d->support ? d->support : d;
    const int indexed = owner->info.op.select.id && !cg_is_transformed_(&owner->info.op);
    cg_strata_ strata;
    if (cg_has_segments_(&owner->info)) {
        cg_segment_walk_get_(owner, first == 0, many, index);
        return;
    }
    if (indexed) cg_index_get_per_value_(r, index, many);
    if (!cg_is_sampled_(&owner->info.op)) {
        for (size_t i = 0; !indexed && i < many; i++) index[i] = first + i;
        return;
    }
    cg_strata_open_(&strata, &owner->info, first);
    for (size_t i = 0; i < many; i++, cg_strata_next_(&strata)) {
        if (indexed) cg_strata_seek_(&strata, index[i]);
        index[i] = cg_strata_sample_(&strata);
    }
}
/* y = beta*y, for coordinates where the packet has no value; 0 even of NaN if beta is 0. */
static void cg_scale_y_(float *y, size_t n, float beta) {
    if (beta == 0.0f) memset(y, 0, 4 * n);
    else if (beta != 1.0f)
        for (size_t i = 0; i < n; i++) cg_store_(y, i, cg_times_(beta, cg_load_(y, i)));
}
/* How many coordinates of x the packet has values for: behind a transform, all that the sample left. */
static size_t cg_coordinate_count_(const cg_decoder_ *d) {
    if (cg_has_segments_(&d->info)) return (size_t)d->coordinates;
    return cg_is_transformed_(&d->info.op) ? (size_t)d->info.drawn : (size_t)d->lay.k;
}
/* The batch of a sparse result from value `first` on, times alpha; cg_coordinates_get_ gives its coordinates. buf:
   CG_CHUNK_ floats if there are both a selection and a transform, else NULL. Returns how many; 0: a user codec
   refused. */
static size_t cg_selection_reader_next_(
    cg_selection_reader_ *sel, const cg_decoder_ *d, size_t first, float *value, float *buf) {
    const size_t many = cg_min_(CG_SPARSE_BATCH_, cg_coordinate_count_(d) - first);
    if (!buf) buf = sel->buf;
    if (cg_is_transformed_(&d->info.op)) {
        if (first % CG_CHUNK_ == 0 && !cg_inverse_transform_chunk_(d, sel, sel->cursor, first, buf)) return 0;
        memcpy(value, buf + first % CG_CHUNK_, 4 * many);
    } else {
        if (!cg_selection_reader_load_(sel, d, first)) return 0;
        memcpy(value, cg_at_(sel->values, first % CG_CHUNK_), 4 * many);
    }
    if (d->alpha != 1.0f)
        for (size_t i = 0; i < many; i++) value[i] = cg_times_(d->alpha, value[i]);
    return many;
}
/* A sparse result into a y that is in the cache or is added to, or into a sink: for each batch, y is scaled up to its
   last coordinate, then values are added. buf as for cg_selection_reader_next_. */
static cg_status cg_scatter_into_(const cg_decoder_ *d, cg_piece_cursor_ *cursor, float *buf) {
    const size_t k = cg_coordinate_count_(d), n = (size_t)d->info.n;
    uint64_t index[CG_SPARSE_BATCH_];
    float value[CG_SPARSE_BATCH_];
    size_t scaled_n = 0;
    cg_selection_reader_ sel;
    cg_selection_reader_open_(&sel, d, cursor);
    for (size_t first = 0, many; first < k; first += many) {
        many = cg_selection_reader_next_(&sel, d, first, value, buf);
        if (!many) return CG_E_CORRUPT;
        cg_coordinates_get_(d, &sel.reader, first, many, index);
        if (d->sink) {
            d->sink->energy += d->sink->take_sparse(d->sink->user, index, many, value);
            continue;
        }
        cg_scale_y_(cg_at_mut_(d->y, scaled_n), (size_t)index[many - 1] + 1 - scaled_n, d->beta);
        scaled_n = (size_t)index[many - 1] + 1;
        if (sel.reader.values_per_index > 1 && !cg_is_sampled_(&d->info.op) && !d->support) { /* block by block */
            for (size_t i = 0, in_block; i < many; i += in_block) {
                in_block = cg_min_(
                    many - i, (size_t)(sel.reader.values_per_index - index[i] % sel.reader.values_per_index));
                CG_KERNEL_(d->kernels,
                    axpby(value + i, in_block, 1.0f, d->beta == 0.0f ? 0.0f : 1.0f, cg_at_mut_(d->y, (size_t)index[i]),
                        0));
            }
        } else if (d->beta == 0.0f)
            for (size_t i = 0; i < many; i++) cg_store_(d->y, (size_t)index[i], value[i]);
        else
            for (size_t i = 0; i < many; i++)
                cg_store_(d->y, (size_t)index[i], cg_plus_(cg_load_(d->y, (size_t)index[i]), value[i]));
    }
    if (!d->sink) cg_scale_y_(cg_at_mut_(d->y, scaled_n), n - scaled_n, d->beta);
    return CG_OK;
}
CG_NOINLINE_ cg_status cg_scatter_transformed_(const cg_decoder_ *d, cg_piece_cursor_ *cursor) {
    float buf[CG_CHUNK_];
    return cg_scatter_into_(d, cursor, buf);
}
CG_NOINLINE_ cg_status cg_scatter_plain_(const cg_decoder_ *d, cg_piece_cursor_ *cursor) {
    return cg_scatter_into_(d, cursor, NULL);
}
/* A sparse result into a y that is larger than the caches, with beta 0: chunks are put together in L1, mostly zeros,
   and written around the caches. */
CG_NOINLINE_ cg_status cg_scatter_stream_(const cg_decoder_ *d) {
    const size_t k = (size_t)d->lay.k, n = (size_t)d->info.n;
    uint64_t index[CG_SPARSE_BATCH_];
    float value[CG_SPARSE_BATCH_];
    float chunk[CG_CHUNK_];
    uint16_t touched[CG_CHUNK_];
    size_t base = 0, touched_n = 0;
    cg_selection_reader_ sel;
    cg_selection_reader_open_(&sel, d, NULL);
    memset(chunk, 0, sizeof chunk);
    for (size_t first = 0, many; first < k; first += many) {
        many = cg_selection_reader_next_(&sel, d, first, value, NULL);
        if (!many) return CG_E_CORRUPT;
        cg_coordinates_get_(d, &sel.reader, first, many, index);
        for (size_t i = 0; i < many; i++) {
            while ((size_t)index[i] - base >= CG_CHUNK_) {
                CG_KERNEL_(d->kernels, axpby(chunk, CG_CHUNK_, 1.0f, 0.0f, cg_at_mut_(d->y, base), 1));
                while (touched_n) chunk[touched[--touched_n]] = 0.0f;
                base += CG_CHUNK_;
            }
            touched[touched_n] = (uint16_t)((size_t)index[i] - base);
            chunk[touched[touched_n++]] = value[i];
        }
    }
    for (; base < n; base += CG_CHUNK_) {
        CG_KERNEL_(d->kernels, axpby(chunk, cg_min_(CG_CHUNK_, n - base), 1.0f, 0.0f, cg_at_mut_(d->y, base), 1));
        while (touched_n) chunk[touched[--touched_n]] = 0.0f;
    }
    CG_KERNEL_(d->kernels, stream_fence());
    return CG_OK;
}
/* A result that is sparse, or that is dense but has to be decoded in order. cursor: uninitialised, NULL without a value
   code. The functions it calls are not inlined, so that each has its own stack only. */
static cg_status cg_decode_sparse_(const cg_decoder_ *d, int dense, cg_piece_cursor_ *cursor) {
    if (dense) return cg_decode_sequential_(d, cursor);
    if (cg_is_transformed_(&d->info.op) && d->info.op.select.id) return cg_scatter_transformed_(d, cursor);
    return d->non_temporal && !cursor && !cg_is_transformed_(&d->info.op) && d->plan.values_per_index == 1
        ? cg_scatter_stream_(d)
        : cg_scatter_plain_(d, cursor);
}
CG_NOINLINE_ cg_status cg_decode_sparse_coded_(const cg_decoder_ *d, int dense) {
    cg_piece_cursor_ cursor;
    return cg_decode_sparse_(d, dense, &cursor);
}

/* Few values at places of their own, whose packet has not been verified: do they go in one batch? */
static int cg_is_few_(const cg_decoder_ *d) {
    const uint32_t others = CG_NEEDS_SUPPORT_ | CG_KEEPS_BLOCKS_ | CG_INDEX_LENGTH_VARIES_ | CG_IS_USER_CODEC_;
    return (d->plan.traits & (CG_IS_SELECTION_ | others)) == CG_IS_SELECTION_ && d->lay.k - 1 < CG_SPARSE_BATCH_ &&
        !cg_is_sampled_(&d->info.op) && !cg_is_transformed_(&d->info.op) && !cg_is_coded_(&d->lay) && !d->non_temporal;
}
/* Verifies and decodes such a packet with one look at its indices; the same as cg_verify_ and cg_decode_sparse_. */
CG_NOINLINE_ cg_status cg_decode_few_(const cg_decoder_ *d) {
    const size_t k = (size_t)d->lay.k, n = (size_t)d->info.n;
    uint64_t index[CG_SPARSE_BATCH_], one_more;
    float buf[CG_SPARSE_BATCH_], value[CG_SPARSE_BATCH_];
    cg_checksum_ sum = { 0, 0, 0 };
    cg_index_reader_ r;
    int bad;
    if (!cg_codes_check_(d, 0, k, &sum) || !cg_checksum_ok_(d, sum)) return CG_E_CORRUPT;
    r = cg_index_open_(d->kernels, &d->info, &d->plan, d->index);
    if (!r.coder->padding_ok(&r, k) || cg_index_get_(&r, index, k) < k || cg_index_get_(&r, &one_more, 1))
        return CG_E_CORRUPT;
    bad = index[k - 1] >= r.universe;
    for (size_t i = 1; i < k; i++) bad |= index[i] <= index[i - 1];
    if (bad) return CG_E_CORRUPT;
    memcpy(value, cg_decode_chunk_(d, NULL, 0, k, buf, 0), 4 * k);
    if (d->alpha != 1.0f)
        for (size_t i = 0; i < k; i++) value[i] = cg_times_(d->alpha, value[i]);
    if (d->sink) {
        d->sink->energy += d->sink->take_sparse(d->sink->user, index, k, value);
        return CG_OK;
    }
    cg_scale_y_(d->y, n, d->beta);
    for (size_t i = 0; i < k; i++)
        cg_store_(
            d->y, (size_t)index[i], d->beta == 0.0f ? value[i] : cg_plus_(cg_load_(d->y, (size_t)index[i]), value[i]));
    return CG_OK;
}

/* The product of the factors p and q, in tiles whose part of q stays in L1. */
CG_NOINLINE_ void cg_matrix_decode_(const cg_decoder_ *d) {
    const size_t rows = cg_matrix_rows_(&d->info.op), cols = cg_matrix_cols_(&d->info.op);
    const unsigned r = cg_matrix_r_(&d->info.op);
    const uint8_t *p = d->codes, *q = p + 4 * rows * r;
    const int in_place = d->alpha == 1.0f && d->beta == 0.0f && !d->sink;
    enum { TALL = 8, FLOATS = 3072 }; /* rows of a tile; values of its part of q, or of its result */
    const size_t wide = FLOATS / (r > TALL ? r : (unsigned)TALL) / 16 * 16;
    float q_tile[FLOATS], out[FLOATS], p_tile[TALL * 64];
    for (size_t j = 0; j < cols; j += wide) {
        const size_t many = cg_min_(wide, cols - j);
        for (unsigned a = 0; a < r; a++)
            for (size_t c = 0; c < many; c++)
                q_tile[a * many + c] = cg_as_float_(cg_get32_(q + 4 * (a * cols + j + c)));
        for (size_t i = 0; i < rows; i += TALL) {
            const size_t tall = cg_min_(TALL, rows - i);
            float *y = d->sink ? d->y : cg_at_mut_(d->y, i * cols + j);
            for (size_t c = 0; c < tall * r; c++) p_tile[c] = cg_as_float_(cg_get32_(p + 4 * (i * r + c)));
            if (in_place) {
                CG_KERNEL_(d->kernels,
                    lowrank_tile(p_tile, q_tile, many, r, tall, many, y, cols, d->non_temporal && cols % 4 == 0));
            } else {
                CG_KERNEL_(d->kernels, lowrank_tile(p_tile, q_tile, many, r, tall, many, out, many, 0));
                for (size_t row = 0; row < tall; row++) {
                    if (d->sink)
                        d->sink->energy += d->sink->take_dense(
                            d->sink->user, (i + row) * cols + j, many, out + row * many);
                    else
                        CG_KERNEL_(
                            d->kernels, axpby(out + row * many, many, d->alpha, d->beta, cg_at_mut_(y, row * cols), 0));
                }
            }
        }
    }
    if (d->non_temporal) CG_KERNEL_(d->kernels, stream_fence());
}

/* src/core/decode.h */
/* decode: opens packets, decodes them into y or a sink, and selects by the indices of another packet

   Offers   cg_decoder_open_, cg_support_open_, cg_packet_decode_, cg_decode_to_, cg_select_given_; packets
            opened in two steps
   Needs    base, kernels, packet, layout, select/thresholds, indices, decoder, verify, decode_into
   Touches  the caller's y; the list and info of cg_select_given_
   Other headers may use: cg_decoder_add_block_, cg_decoder_by_blocks_, cg_packet_check_,
   cg_packet_decode_, cg_packet_header_, cg_packet_open_, cg_support_check_
   y is written only after the whole packet has been verified, unless CG_DECODE_DIRECT allows otherwise. */

static cg_status cg_decoder_open_segments_(cg_decoder_ *d); /* in core/segments/decode.h */
/* cg_decoder_open_ once the header has been read, into d->info and d->plan, and n compared. Values begin at body. */
static cg_status cg_decoder_open_body_(
    cg_decoder_ *d, const cg_extra *extra, const uint8_t *body, float *y, int need_codec) {
    uint64_t value_bytes;
    cg_status s = cg_layout_make_(&d->info.op, extra, d->info.k, &d->lay);
    if (s != CG_OK && (need_codec || !cg_is_user_codec_(&d->info.op.quantize))) return s;
    value_bytes = cg_add_sat_(cg_add_sat_(d->lay.scale_bytes, d->lay.piece_table_bytes), d->lay.codes_bytes);
    if (d->lay.quantizer &&
        (cg_is_coded_(&d->lay) ? d->info.value_bytes > value_bytes ||
                    d->info.value_bytes < d->lay.scale_bytes + d->lay.piece_table_bytes
                               : d->info.value_bytes != value_bytes))
        return CG_E_CORRUPT;
    d->kernels = cg_kernels_now_();
    d->support = NULL;
    d->sink = NULL;
    d->walk = NULL;
    d->segments_hash = 0;
    d->scales = body;
    d->piece_table = d->scales + (size_t)d->lay.scale_bytes;
    d->codes = d->piece_table + (size_t)d->lay.piece_table_bytes;
    d->index = d->scales + d->info.value_bytes;
    d->y = y ? y : &d->empty_y;
    if (d->lay.quantizer && !cg_is_coded_(&d->lay) &&
        !cg_padding_zero_(d->codes, (uint64_t)d->lay.k * d->lay.bits_x32 / 32))
        return CG_E_CORRUPT;
    return cg_scales_legal_(d) ? CG_OK : CG_E_CORRUPT;
}
static cg_status cg_decoder_open_rest_(
    cg_decoder_ *d, const cg_extra *extra, const void *packet, size_t len, float *y, int need_codec) {
    if (d->info.packet_bytes != len) return CG_E_CORRUPT;
    d->packet = (const uint8_t *)packet;
    if (!cg_has_segments_(&d->info)) return cg_decoder_open_body_(d, extra, d->packet + CG_HEADER_BYTES, y, need_codec);
    d->y = y ? y : &d->empty_y;
    d->need_codec = need_codec;
    return cg_decoder_open_segments_(d);
}
/* Opens a packet of any len bytes, up to the first look at values and indices: the header agrees with itself, with len
   and with n, sections have the right lengths, scales are legal. y may be NULL only if n is 0; it is not touched.
   need_codec: 0 opens a packet of a user codec without the codec, for its indices. On an error *d is undefined. */
static cg_status cg_decoder_open_(
    cg_decoder_ *d, const cg_extra *extra, const void *packet, size_t len, float *y, size_t n, int need_codec) {
    cg_status s;
    if (!packet || (!y && n)) return CG_E_ARG;
    s = cg_extra_check_(NULL, extra);
    if (s == CG_OK) s = cg_header_get_((const uint8_t *)packet, len, &d->info, &d->plan);
    if (s != CG_OK) return s;
    if (d->info.n != n) return CG_E_MISMATCH;
    return cg_decoder_open_rest_(d, extra, packet, len, y, need_codec);
}
/* Of an extra that the library makes for a segment: support is a cg_segment_cursor_ that stands before the segment of a
   verified support. cg_extra_check_ refuses it of callers. */
#define CG_SUPPORT_IS_SEGMENT_ 0x80000000u
/* in core/segments/decode.h: */
static cg_status cg_support_open_segment_(cg_decoder_ *support, const cg_segment_cursor_ *at, size_t n);
static uint32_t cg_support_fingerprint_segments_(const cg_decoder_ *support);
static cg_status cg_decode_segments_(
    const cg_decoder_ *d, const cg_extra *extra, float alpha, float beta, float *y, cg_sink_ *sink);
static cg_status cg_clear_segments_(cg_decoder_ *d);
/* Opens and verifies extra->support, a packet that says by itself where its values are; *support is only good for that,
   as its y is NULL. CG_E_ARG: there is none. CG_E_UNSUPPORTED: its own selection is `given`. */
CG_NOINLINE_ cg_status cg_support_open_(cg_decoder_ *support, const cg_extra *extra, size_t n) {
    cg_status s;
    float dummy_y = 0.0f;
    if (!extra || !extra->support) return CG_E_ARG;
    if (extra->flags & CG_SUPPORT_IS_SEGMENT_)
        return cg_support_open_segment_(support, (const cg_segment_cursor_ *)extra->support, n);
    s = cg_decoder_open_(support, NULL, extra->support, extra->support_len, &dummy_y, n, 0);
    if (s == CG_OK && support->plan.traits & CG_NEEDS_SUPPORT_) return CG_E_UNSUPPORTED;
    if (s == CG_OK) s = cg_verify_(support, NULL);
    support->y = NULL;
    return s;
}
/* A hash, never 0, of everything that says where the support's values are; packets that were made with it carry it in
   op.select.size. */
static uint32_t cg_support_fingerprint_(const cg_decoder_ *support) {
    const cg_op *op = &support->info.op;
    const int indexed = op->select.id && !cg_is_transformed_(op);
    uint64_t h = cg_mix64_(cg_coordinate_count_(support) + CG_GOLDEN_);
    if (cg_has_segments_(&support->info)) return cg_support_fingerprint_segments_(support);
    if (cg_is_sampled_(op)) { /* random-k is the same for all ranks, unless it is private */
        h = cg_mix64_(h ^ (support->info.drawn + op->sample.id * CG_GOLDEN_));
        h = cg_mix64_(h ^ cg_stage_key_(&op->sample, &support->info.tag));
        if (support->plan.traits & CG_IS_PER_RANK_)
            h = cg_mix64_(h ^ ((uint64_t)op->sample.size << 32 | support->info.tag.rank));
        else if (op->sample.size) h = cg_mix64_(h ^ op->sample.size);
    }
    if (indexed) {
        cg_checksum_ sum = cg_checksum_of_(support->kernels, support->index, support->info.index_bytes);
        h = cg_mix64_(h ^ (sum.a + support->info.index_code * CG_GOLDEN_));
        h = cg_mix64_(h ^ (sum.b + support->plan.values_per_index * CG_GOLDEN_));
    }
    return (uint32_t)h | 1u;
}
/* The values of p->x where the support has values, to the list without indices; sets info->k and the fingerprint. */
static cg_status cg_select_given_(const cg_selector_ *p) {
    cg_decoder_ support;
    cg_segment_walk_ walk;
    cg_index_reader_ r;
    uint64_t index[CG_SPARSE_BATCH_], k;
    cg_status s = cg_support_open_(&support, p->side, p->n);
    if (s != CG_OK) return s;
    support.walk = &walk;
    k = cg_coordinate_count_(&support);
    if (!cg_has_segments_(&support.info))
        r = cg_index_open_(support.kernels, &support.info, &support.plan, support.index);
    else memset(&r, 0, sizeof r);
    for (size_t first = 0, many; first < (size_t)k; first += many) {
        many = cg_min_(CG_SPARSE_BATCH_, (size_t)k - first);
        cg_coordinates_get_(&support, &r, first, many, index);
        for (size_t i = 0; i < many; i++) p->list->value[first + i] = cg_load_(p->x, (size_t)index[i]);
    }
    if (CG_KERNEL_(p->kernels, absmax_bits(p->list->value, (size_t)k)) >= CG_INF_BITS_) return CG_E_NONFINITE;
    p->list->count = 0;
    p->info->k = k;
    p->info->op.select.size = cg_support_fingerprint_(&support);
    return CG_OK;
}
/* Opens the support of a packet whose selection is `given`, which must be the one that the packet was made with. */
CG_NOINLINE_ cg_status cg_given_open_(cg_decoder_ *d, cg_decoder_ *support, const cg_extra *extra, size_t n) {
    const cg_status s = cg_support_open_(support, extra, n);
    if (s != CG_OK) return s;
    d->support = support;
    return d->info.k == cg_coordinate_count_(support) && d->info.op.select.size == cg_support_fingerprint_(support)
        ? CG_OK
        : CG_E_MISMATCH;
}
/* Whether the support of an opened packet whose selection is `given` is the one that it was made with. */
CG_NOINLINE_ cg_status cg_given_check_(cg_decoder_ *d, const cg_extra *extra) {
    cg_decoder_ support;
    const cg_status s = cg_given_open_(d, &support, extra, (size_t)d->info.n);
    d->support = NULL;
    return s;
}
/* An opened packet: y = alpha*decoded + beta*y, or with a sink the decoded values to that, and y may be NULL.
   verified: 1 if these very bytes have passed cg_verify_. cg_fenv_enter_ has been called. y is as it was unless CG_OK
   is returned, or CG_DECODE_DIRECT is set, or a user codec refuses what it accepted before. */
static cg_status cg_packet_decode_(
    cg_decoder_ *d, const cg_extra *extra, float alpha, float beta, float *y, cg_sink_ *sink, int verified) {
    const size_t n = (size_t)d->info.n;
    const int selected = d->info.op.select.id != 0,
              dense = !cg_is_sampled_(&d->info.op) && (!selected || cg_is_transformed_(&d->info.op));
    const int direct = dense && !selected && !cg_is_coded_(&d->lay) && !d->lay.codec &&
        !(d->plan.traits & CG_IS_MATRIX_) && extra && (extra->flags & CG_DECODE_DIRECT);
    cg_decoder_ support;
    cg_segment_walk_ walk;
    cg_status s = CG_OK;
    if (cg_has_segments_(&d->info)) {
        if (!verified) s = cg_verify_(d, extra);
        return s == CG_OK ? cg_decode_segments_(d, extra, alpha, beta, y, sink) : s;
    }
    if (d->plan.traits & CG_NEEDS_SUPPORT_) {
        s = cg_given_open_(d, &support, extra, n);
        if (s != CG_OK) return s;
        support.walk = &walk;
    }
    d->y = y ? y : &d->empty_y;
    d->alpha = alpha;
    d->beta = beta;
    d->sink = sink;
    d->non_temporal = !sink && beta == 0.0f && n >= (size_t)1 << 22 && (uintptr_t)y % 16 == 0;
    if (!verified && cg_is_few_(d)) return cg_decode_few_(d);
    if (!direct && !verified) s = cg_verify_(d, extra);
    if (s != CG_OK) {
    } else if (cg_is_transformed_(&d->info.op) && d->plan.traits & CG_IS_MATRIX_) cg_matrix_decode_(d);
    else if (dense && !selected) s = cg_decode_dense_(d, direct && !verified);
    else s = cg_is_coded_(&d->lay) ? cg_decode_sparse_coded_(d, dense) : cg_decode_sparse_(d, dense, NULL);
    d->support = NULL; /* it ends here */
    return s;
}
/* The same of a packet that has not been opened; verified: these bytes have passed cg_decoder_open_, too. */
static cg_status cg_decode_to_(const cg_extra *extra, const void *packet, size_t len, float alpha, float beta, float *y,
    cg_sink_ *sink, size_t n, int verified) {
    cg_decoder_ d;
    const cg_status s = cg_is_finite_(alpha) && cg_is_finite_(beta)
        ? cg_decoder_open_(&d, extra, packet, len, sink ? &d.empty_y : y, n, 1)
        : CG_E_ARG;
    return s == CG_OK ? cg_packet_decode_(&d, extra, alpha, beta, y, sink, verified) : s;
}
/* Of a packet that this build does not know: the sentence of the stage that was left out; NULL: none was. */
static const char *cg_packet_left_out_(const void *packet, size_t len) {
    cg_info info = CG_ZERO;
    cg_plan_ plan;
    const cg_status s = cg_header_get_((const uint8_t *)packet, len, &info, &plan);
    return s == CG_E_VERSION ? cg_op_left_out_(&info.op) : NULL;
}
CG_API_ cg_status cg_decode(
    const cg_extra *extra, const void *packet, size_t len, float alpha, float beta, float *y, size_t n) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_decode_to_(extra, packet, len, alpha, beta, y, NULL, n, 0);
    if (extra && extra->report) {
        const char *why = s == CG_E_VERSION ? cg_packet_left_out_(packet, len) : NULL;
        cg_report_set_(extra->report, s, why ? why : cg_status_str(s), 0, CG_NO_INDEX);
    }
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_decompress(const void *packet, size_t len, float *y, size_t n) {
    return cg_decode(NULL, packet, len, 1.0f, 0.0f, y, n);
}
CG_API_ cg_status cg_decompress_add(const void *packet, size_t len, float weight, float *y, size_t n) {
    return cg_decode(NULL, packet, len, weight, 1.0f, y, n);
}
/* d->y = 0 where an opened and verified packet has values; it has no segments, and is not of `given`. */
static void cg_clear_opened_(cg_decoder_ *d) {
    if (!cg_is_sampled_(&d->info.op) && (!d->info.op.select.id || cg_is_transformed_(&d->info.op))) {
        memset(d->y, 0, 4 * (size_t)d->info.n);
    } else {
        cg_index_reader_ r = cg_index_open_(d->kernels, &d->info, &d->plan, d->index);
        uint64_t index[CG_SPARSE_BATCH_];
        for (size_t first = 0, many; first < cg_coordinate_count_(d); first += many) {
            many = cg_min_(CG_SPARSE_BATCH_, cg_coordinate_count_(d) - first);
            cg_coordinates_get_(d, &r, first, many, index);
            for (size_t i = 0; i < many; i++) cg_store_(d->y, (size_t)index[i], 0.0f);
        }
    }
}
/* y = 0 where the packet has values. */
static cg_status cg_clear_(const void *packet, size_t len, float *y, size_t n) {
    cg_decoder_ d;
    cg_status s = cg_decoder_open_(&d, NULL, packet, len, y, n, 0);
    if (s == CG_OK && cg_has_segments_(&d.info) && d.plan.traits & CG_NEEDS_SUPPORT_) s = CG_E_UNSUPPORTED;
    if (s == CG_OK) s = cg_verify_(&d, NULL);
    if (s == CG_OK && d.plan.traits & CG_NEEDS_SUPPORT_) s = CG_E_UNSUPPORTED; /* clear with the support itself */
    if (s != CG_OK) return s;
    if (cg_has_segments_(&d.info)) return cg_clear_segments_(&d);
    cg_clear_opened_(&d);
    return CG_OK;
}
CG_API_ cg_status cg_clear(const void *packet, size_t len, float *y, size_t n) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_clear_(packet, len, y, n);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_inspect(const void *packet, size_t len, cg_info *info) {
    cg_fenv_ env = cg_fenv_enter_();
    const cg_info zero = CG_ZERO;
    cg_plan_ plan;
    cg_status s = CG_E_ARG;
    if (info) *info = zero;
    if (packet && info) s = cg_header_get_((const uint8_t *)packet, len, info, &plan);
    cg_fenv_leave_(env);
    return s;
}
/* Whether side->support can be the support of n values: CG_OK, or what cg_compress_with would return for it. */
CG_OFFERED_ cg_status cg_support_check_(const cg_extra *side, size_t n) {
    cg_decoder_ set;
    return cg_support_open_(&set, side, n);
}
/* Everything that cg_decode would find wrong with a packet of n values, without decoding it. */
CG_OFFERED_ cg_status cg_packet_check_(const cg_extra *side, const void *packet, size_t len, size_t n) {
    cg_decoder_ d;
    float no_output = 0.0f;
    cg_status s = cg_decoder_open_(&d, side, packet, len, &no_output, n, 1);
    if (s == CG_OK && d.plan.traits & CG_NEEDS_SUPPORT_ && !cg_has_segments_(&d.info)) s = cg_given_check_(&d, side);
    return s == CG_OK ? cg_verify_(&d, side) : s;
}
/* In two steps, for callers who look at the header in between. First: the header of len bytes, to d->info and d->plan.
   op and known: as in cg_header_get_like_. */
CG_OFFERED_ cg_status cg_packet_header_(
    cg_decoder_ *d, const void *packet, size_t len, const cg_op *op, const cg_plan_ *known) {
    return packet ? cg_header_get_like_((const uint8_t *)packet, len, op, known, &d->info, &d->plan) : CG_E_ARG;
}
/* Then, with the same packet: all that cg_decode would find wrong with it if verify is 1, otherwise only with its
   sections, for one that has been verified before. After CG_OK the packet is open, as long as it stays where it is. */
CG_OFFERED_ cg_status cg_packet_open_(
    cg_decoder_ *d, const cg_extra *side, const void *packet, size_t len, int verify) {
    cg_status s = cg_extra_check_(NULL, side);
    if (s == CG_OK) s = cg_decoder_open_rest_(d, side, packet, len, NULL, 1);
    if (s == CG_OK && verify && d->plan.traits & CG_NEEDS_SUPPORT_ && !cg_has_segments_(&d->info))
        s = cg_given_check_(d, side);
    return s == CG_OK && verify ? cg_verify_(d, side) : s;
}
/* y = alpha D + beta y of an opened packet, by blocks of CG_BLOCK_ values with cg_decoder_add_block_, unless that
   cannot be (a selection, a sample, a code, a matrix): then 0 is returned, and d->alpha and d->beta are set
   nevertheless. */
CG_OFFERED_ int cg_decoder_by_blocks_(cg_decoder_ *d, float alpha, float beta, float *y) {
    d->y = y ? y : &d->empty_y;
    d->sink = NULL;
    d->alpha = alpha;
    d->beta = beta;
    d->non_temporal = 0;
    return !cg_has_segments_(&d->info) && !d->info.op.select.id && !cg_is_sampled_(&d->info.op) &&
        !cg_is_coded_(&d->lay) && !d->lay.codec && !(d->plan.traits & CG_IS_MATRIX_);
}
CG_OFFERED_ void cg_decoder_add_block_(const cg_decoder_ *d, size_t block) {
    cg_checksum_ sum;
    double energy;
    cg_decode_block_(d, NULL, NULL, block, 0, &sum, &energy);
}

/* src/core/segments/decode.h */
/* decode: packets with segments opened, verified and decoded, each segment as a packet without them

   Offers   cg_decoder_open_segments_, cg_verify_segments_, cg_decode_segments_, cg_clear_segments_, supports with
            segments, cg_segment_decoder_open_; the public cg_segment_inspect, cg_segment_copy and
            cg_segments_split
   Needs    base, packet, segments/table, decoder, verify, decode_into, decode
   Touches  the caller's y, or what the sink writes
   All segments are checked before y is written. */

/* The next segment, opened into *d up to the first look at its values; it has no y. Its packet_bytes are 0, as its
   checksum is that of the whole packet. */
static cg_status cg_segment_decoder_open_(
    cg_segment_cursor_ *c, const cg_extra *extra, int need_codec, cg_decoder_ *d) {
    cg_status s = cg_segment_next_(c, &d->info, &d->plan);
    if (s != CG_OK) return s;
    d->packet = NULL;
    d->info.packet_bytes = 0;
    return cg_decoder_open_body_(d, extra, c->body, NULL, need_codec);
}
/* A cursor before the first segment of a packet that cg_decoder_open_segments_ has accepted. */
static void cg_segment_cursor_of_(const cg_decoder_ *d, cg_segment_cursor_ *c) {
    const cg_status s = cg_segments_open_(c, &d->info, cg_op_traits_(&d->info.op), d->packet);
    (void)s; /* it was CG_OK before */
}
/* The whole table, once d->info, d->plan, d->packet and d->y are set. plan.traits are then those of all segments. */
static cg_status cg_decoder_open_segments_(cg_decoder_ *d) {
    cg_segment_cursor_ c;
    cg_info info;
    cg_plan_ plan;
    cg_status s = cg_segments_open_(&c, &d->info, d->plan.traits, d->packet);
    memset(&d->lay, 0, sizeof d->lay);
    d->kernels = cg_kernels_now_();
    d->support = NULL;
    d->sink = NULL;
    d->walk = NULL;
    d->coordinates = 0;
    d->scales = d->piece_table = d->codes = d->index = NULL;
    while (s == CG_OK && c.left) {
        s = cg_segment_next_(&c, &info, &plan);
        if (s != CG_OK) return s;
        d->plan.traits |= plan.traits;
        d->coordinates += cg_is_transformed_(&info.op) ? info.drawn : info.k;
    }
    d->segments_hash = c.hash ? c.hash : 1;
    return s != CG_OK ? s : cg_segments_end_(&c) ? CG_OK : CG_E_CORRUPT;
}
static cg_status cg_support_open_segment_(cg_decoder_ *support, const cg_segment_cursor_ *at, size_t n) {
    cg_segment_cursor_ c = *at;
    const cg_status s = c.left ? cg_segment_decoder_open_(&c, NULL, 0, support) : CG_E_MISMATCH;
    support->y = NULL;
    return s == CG_OK && support->info.n != n ? CG_E_MISMATCH : s;
}
/* What extra is to a segment: its support, if it needs one, is the same segment of extra->support. */
typedef struct cg_segment_extra_ {
    cg_extra extra;
    cg_decoder_ support;
    cg_segment_cursor_ at;
} cg_segment_extra_;
/* needs: traits of all segments. CG_OK: out->extra is that of the first segment; out must stay where it is. */
static cg_status cg_segment_extra_open_(cg_segment_extra_ *out, const cg_extra *extra, uint32_t needs, size_t n) {
    const cg_extra none = CG_ZERO;
    cg_status s;
    out->extra = extra ? *extra : none;
    out->extra.report = NULL;
    out->extra.segments = NULL;
    if (!(needs & CG_NEEDS_SUPPORT_)) return CG_OK;
    s = cg_support_open_(&out->support, extra, n);
    if (s != CG_OK) return s;
    if (!cg_has_segments_(&out->support.info)) return CG_E_MISMATCH;
    cg_segment_cursor_of_(&out->support, &out->at);
    out->extra.support = &out->at;
    out->extra.support_len = sizeof out->at;
    out->extra.flags |= CG_SUPPORT_IS_SEGMENT_;
    return CG_OK;
}
/* On to the next segment. */
static cg_status cg_segment_extra_next_(cg_segment_extra_ *e) {
    cg_info info;
    cg_plan_ plan;
    if (!(e->extra.flags & CG_SUPPORT_IS_SEGMENT_)) return CG_OK;
    return e->at.left ? cg_segment_next_(&e->at, &info, &plan) : CG_E_MISMATCH;
}
static cg_status cg_verify_segments_(const cg_decoder_ *d, const cg_extra *extra) {
    cg_segment_extra_ sub;
    cg_segment_cursor_ c;
    cg_decoder_ segment;
    cg_status s = cg_checksum_whole_ok_(d) ? CG_OK : CG_E_CORRUPT;
    if (s == CG_OK) s = cg_segment_extra_open_(&sub, extra, d->plan.traits, (size_t)d->info.n);
    cg_segment_cursor_of_(d, &c);
    while (s == CG_OK && c.left) {
        s = cg_segment_decoder_open_(&c, &sub.extra, d->need_codec, &segment);
        if (s == CG_OK && d->plan.traits & segment.plan.traits & CG_NEEDS_SUPPORT_)
            s = cg_given_check_(&segment, &sub.extra);
        if (s == CG_OK) s = cg_verify_(&segment, &sub.extra);
        if (s == CG_OK) s = cg_segment_extra_next_(&sub);
    }
    return s;
}
/* A sink for the values of a segment that hands them on with their places in the whole vector. */
typedef struct cg_segment_sink_ {
    cg_sink_ sink;
    const cg_sink_ *outer;
    uint64_t first;
} cg_segment_sink_;
static double cg_segment_take_dense_(const void *user, size_t first, size_t many, const float *v) {
    const cg_segment_sink_ *s = (const cg_segment_sink_ *)user;
    return s->outer->take_dense(s->outer->user, (size_t)s->first + first, many, v);
}
static double cg_segment_take_sparse_(const void *user, const uint64_t *at, size_t many, const float *v) {
    const cg_segment_sink_ *s = (const cg_segment_sink_ *)user;
    uint64_t index[CG_SPARSE_BATCH_];
    double energy = 0.0;
    for (size_t i = 0, batch; i < many; i += batch) {
        batch = cg_min_(CG_SPARSE_BATCH_, many - i);
        for (size_t j = 0; j < batch; j++) index[j] = s->first + at[i + j];
        energy += s->outer->take_sparse(s->outer->user, index, batch, cg_at_(v, i));
    }
    return energy;
}
/* Of a verified packet; as cg_packet_decode_. */
CG_NOINLINE_ cg_status cg_decode_segments_(
    const cg_decoder_ *d, const cg_extra *extra, float alpha, float beta, float *y, cg_sink_ *sink) {
    cg_segment_extra_ sub;
    cg_segment_sink_ part;
    cg_segment_cursor_ c;
    cg_decoder_ segment;
    cg_status s = cg_segment_extra_open_(&sub, extra, d->plan.traits, (size_t)d->info.n);
    part.sink.take_dense = cg_segment_take_dense_;
    part.sink.take_sparse = cg_segment_take_sparse_;
    part.sink.user = &part;
    part.outer = sink;
    cg_segment_cursor_of_(d, &c);
    while (s == CG_OK && c.left) {
        s = cg_segment_decoder_open_(&c, &sub.extra, 1, &segment);
        part.first = c.first;
        part.sink.energy = 0.0;
        if (s == CG_OK)
            s = cg_packet_decode_(&segment, &sub.extra, alpha, beta, y ? cg_at_mut_(y, (size_t)c.first) : NULL,
                sink ? &part.sink : NULL, 1);
        if (sink) sink->energy += part.sink.energy;
        if (s == CG_OK) s = cg_segment_extra_next_(&sub);
    }
    return s;
}
static cg_status cg_clear_segments_(cg_decoder_ *d) {
    cg_segment_cursor_ c;
    cg_decoder_ segment;
    cg_status s = CG_OK;
    cg_segment_cursor_of_(d, &c);
    while (s == CG_OK && c.left) {
        s = cg_segment_decoder_open_(&c, NULL, 0, &segment);
        if (s != CG_OK) break;
        segment.y = cg_at_mut_(d->y, (size_t)c.first);
        cg_clear_opened_(&segment);
    }
    return s;
}
/* A hash, never 0, of where a support with segments has values. */
static uint32_t cg_support_fingerprint_segments_(const cg_decoder_ *support) {
    cg_segment_cursor_ c;
    cg_decoder_ segment;
    uint64_t h = cg_mix64_(support->info.segments + CG_GOLDEN_);
    cg_segment_cursor_of_(support, &c);
    while (c.left && cg_segment_decoder_open_(&c, NULL, 0, &segment) == CG_OK)
        h = cg_mix64_(cg_mix64_(h ^ segment.info.n) ^ cg_support_fingerprint_(&segment));
    return (uint32_t)h | 1u;
}
static void cg_segment_walk_get_(const cg_decoder_ *support, int start, size_t many, uint64_t *index) {
    cg_segment_walk_ *w = support->walk;
    if (start) {
        cg_segment_cursor_of_(support, &w->cursor);
        w->next = w->count = 0;
    }
    for (size_t i = 0, take; i < many; i += take) {
        while (w->next == w->count) {
            if (!w->cursor.left || cg_segment_decoder_open_(&w->cursor, NULL, 0, &w->segment) != CG_OK) {
                memset(index + i, 0, 8 * (many - i)); /* cannot be: the support was verified */
                return;
            }
            w->reader = cg_index_open_(w->segment.kernels, &w->segment.info, &w->segment.plan, w->segment.index);
            w->base = w->cursor.first;
            w->next = 0;
            w->count = cg_coordinate_count_(&w->segment);
        }
        take = cg_min_(many - i, w->count - w->next);
        cg_coordinates_get_(&w->segment, &w->reader, w->next, take, index + i);
        for (size_t j = 0; j < take; j++) index[i + j] += w->base;
        w->next += take;
    }
}

/* Segment i of a packet whose header has been read into *whole: *info becomes its header, c->body its values. */
static cg_status cg_segment_find_(
    const uint8_t *packet, size_t len, size_t i, cg_info *whole, cg_info *info, cg_segment_cursor_ *c) {
    cg_plan_ plan;
    cg_status s = cg_header_get_(packet, len, whole, &plan);
    if (s != CG_OK) return s;
    if (whole->packet_bytes != len) return CG_E_CORRUPT;
    if (i >= whole->segments) return CG_E_ARG;
    s = cg_segments_open_(c, whole, plan.traits, packet);
    for (size_t j = 0; s == CG_OK && j <= i; j++) s = cg_segment_next_(c, info, &plan);
    return s;
}
CG_API_ cg_status cg_segment_inspect(const void *packet, size_t len, size_t i, cg_info *info, uint64_t *first) {
    const cg_fenv_ env = cg_fenv_enter_();
    const cg_info zero = CG_ZERO;
    cg_segment_cursor_ c;
    cg_info whole;
    cg_status s = CG_E_ARG;
    if (info) *info = zero;
    if (first) *first = 0;
    if (packet && info && !cg_builds_segments_()) s = CG_E_VERSION;
    else if (packet && info) {
        s = cg_segment_find_((const uint8_t *)packet, len, i, &whole, info, &c);
        if (s != CG_OK) *info = zero;
        else if (first) *first = c.first;
    }
    cg_fenv_leave_(env);
    return s;
}
/* Segment info, whose body is where c stands, as a packet. */
static cg_status cg_segment_put_alone_(
    cg_info *info, const cg_segment_cursor_ *c, uint8_t *out, size_t cap, size_t *out_len) {
    if (info->packet_bytes > cap) return CG_E_CAPACITY;
    if (c->whole->segment_flags & CG_SEGMENTS_GLOBAL && c->number == CG_SEGMENT_OP) { /* any index set fits these */
        const cg_stage any_magnitude = cg_threshold(0.0f).select;
        if (cg_op_traits_(&info->op) & CG_KEEPS_ONE_SIDE_) info->op.select.value = 1.0f;
        else info->op.select = any_magnitude;
    }
    memcpy(out + CG_HEADER_BYTES, c->body, info->packet_bytes - CG_HEADER_BYTES);
    *out_len = cg_packet_seal_(info, out);
    return CG_OK;
}
static cg_status cg_segment_copy_(
    const cg_extra *extra, const uint8_t *packet, size_t len, size_t i, uint8_t *out, size_t cap, size_t *out_len) {
    cg_segment_cursor_ c;
    cg_info whole, info;
    cg_status s = cg_segment_find_(packet, len, i, &whole, &info, &c);
    if (s == CG_OK && whole.n > SIZE_MAX / 4) s = CG_E_UNSUPPORTED;
    if (s == CG_OK) s = cg_packet_check_(extra, packet, len, (size_t)whole.n);
    if (s != CG_OK) return s;
    return cg_segment_put_alone_(&info, &c, out, cap, out_len);
}
CG_API_ cg_status cg_segment_copy(
    const cg_extra *extra, const void *packet, size_t len, size_t i, void *out, size_t cap, size_t *out_len) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_status s = CG_E_ARG;
    if (out_len) *out_len = 0;
    if (packet && out && out_len)
        s = cg_segment_copy_(extra, (const uint8_t *)packet, len, i, (uint8_t *)out, cap, out_len);
    cg_fenv_leave_(env);
    return s;
}
static cg_status cg_segments_split_(
    const cg_extra *extra, const uint8_t *packet, size_t len, uint8_t *out, size_t cap, size_t *out_len) {
    cg_segment_cursor_ c;
    cg_info whole, info;
    cg_plan_ plan;
    size_t done = 0, one;
    cg_status s = cg_header_get_(packet, len, &whole, &plan);
    if (s == CG_OK && (!cg_has_segments_(&whole) || whole.n > SIZE_MAX / 4)) s = CG_E_UNSUPPORTED;
    if (s == CG_OK) s = cg_packet_check_(extra, packet, len, (size_t)whole.n);
    if (s == CG_OK) s = cg_segments_open_(&c, &whole, plan.traits, packet);
    while (s == CG_OK && c.left) {
        s = cg_segment_next_(&c, &info, &plan);
        if (s == CG_OK) s = cg_segment_put_alone_(&info, &c, out + done, cap - done, &one);
        if (s == CG_OK) done += one;
    }
    if (s == CG_OK) *out_len = done;
    return s;
}
CG_API_ cg_status cg_segments_split(
    const cg_extra *extra, const void *packet, size_t len, void *out, size_t cap, size_t *out_len) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_status s = CG_E_ARG;
    if (out_len) *out_len = 0;
    if (packet && out && out_len)
        s = cg_segments_split_(extra, (const uint8_t *)packet, len, (uint8_t *)out, cap, out_len);
    cg_fenv_leave_(env);
    return s;
}

/* src/core/segments/compress.h */
/* compress: tensors that lie one behind the other in x, as the segments of one packet

   Offers   cg_compress_segments_, cg_segments_bound_, cg_segments_scratch_, cg_segments_why_, cg_segments_hash_of_
   Needs    base, plan, packet, layout, segments/table, source, select/list, indices, compress, segments/decode
   Touches  the caller's packet, *len and scratch; x, if a producer makes it
   Every segment is compressed as by a call of its own, but for its header, which becomes an entry of the table. The
   table is written at the end of the caller's room while bodies are written from the front, and then moved behind them.
   A selection from all segments is made first; its list is cut where segments end. */

static const cg_op cg_exact_op_ = CG_ZERO;
static uint32_t cg_segments_flags_(const cg_segments *g) {
    uint32_t flags = g->flags & CG_SEGMENTS_GLOBAL;
    if (g->op) flags |= CG_SEGMENTS_MIXED_;
    if (g->tensor) flags |= CG_SEGMENTS_TENSORS_;
    return flags;
}
static uint32_t cg_segment_number_(const cg_segments *g, size_t i) {
    return g->op ? g->op[i] : (uint32_t)CG_SEGMENT_OP;
}
static const cg_op *cg_segment_op_(const cg_segments *g, const cg_op *op, size_t i) {
    const uint32_t number = cg_segment_number_(g, i);
    return number == CG_SEGMENT_OP ? op : number == CG_SEGMENT_EXACT ? &cg_exact_op_ : &g->ops[number - CG_SEGMENT_OPS];
}
static int cg_segment_is_global_(const cg_segments *g, size_t i) {
    return g->flags & CG_SEGMENTS_GLOBAL && cg_segment_number_(g, i) == CG_SEGMENT_OP;
}
/* All values that a selection of all segments sees. */
static size_t cg_segments_global_n_(const cg_segments *g) {
    size_t n = 0;
    for (size_t i = 0; i < g->count; i++) n += cg_segment_is_global_(g, i) ? g->n[i] : 0;
    return n;
}
/* Why segments are refused; NULL: they are not. op has passed cg_op_check_. */
static const char *cg_segments_refusal_(const cg_op *op, const cg_segments *g, size_t n) {
    uint64_t left = n;
    if (!g->count || !g->n) return "segments.count is 0, or segments.n is NULL: without tensors leave segments NULL";
    if ((uint64_t)g->count > 0xffffffffu) return "segments.count is 2^32 or more";
    if (g->flags & ~(uint32_t)CG_SEGMENTS_GLOBAL) return "segments.flags has an unknown flag";
    if (!g->ops && g->op_count) return "segments.ops is NULL, and segments.op_count is not 0";
    if (g->flags & CG_SEGMENTS_GLOBAL) {
        if (!cg_can_be_global_(op, cg_op_traits_(op)))
            return "CG_SEGMENTS_GLOBAL is for operators that begin with a selection of single values, such as topk";
        if ((uint64_t)n > 0xffffffffu) return "CG_SEGMENTS_GLOBAL is for less than 2^32 values";
    }
    for (size_t j = 0; j < g->op_count; j++)
        if (cg_op_check_new_(&g->ops[j]) != CG_OK)
            return "an operator in segments.ops is not valid: as text cg_op_parse_why says why";
    for (size_t i = 0; i < g->count; i++) {
        if (g->op && g->op[i] >= CG_SEGMENT_OPS && g->op[i] - CG_SEGMENT_OPS >= g->op_count)
            return "segments.op names an operator that is not in segments.ops";
        if (!cg_matrix_shape_fits_(cg_segment_op_(g, op, i), g->n[i]))
            return "the operator of a segment is for a matrix of rows * cols values, and its n is another number";
        if (g->n[i] > left) break;
        left -= g->n[i];
        if (i + 1 == g->count && !left) return NULL;
    }
    return "the lengths in segments.n do not add up to n";
}
/* Bytes of the table at most, a multiple of 4. */
static uint64_t cg_segments_table_room_(const cg_op *op, const cg_segments *g) {
    const uint32_t flags = cg_segments_flags_(g);
    uint64_t bytes = flags & CG_SEGMENTS_MIXED_ ? 10 + (uint64_t)CG_SEGMENT_OP_BYTES_ * g->op_count : 0;
    for (size_t i = 0; i < g->count; i++) {
        const cg_op *one = cg_segment_op_(g, op, i);
        const cg_plan_ plan = cg_plan_of_(one, g->n[i]);
        bytes += cg_segment_room_(one, &plan, cg_segment_number_(g, i), flags, cg_segment_is_global_(g, i));
    }
    return cg_add_sat_(bytes, 3) & ~(uint64_t)3;
}
/* Bodies of the `count` segments, of n values in all, from which the selection of op is made together; CG_TOO_LARGE_ if
   they overflow. An index section of a cut list is hardly longer: Elias-Fano's length is concave in (n, k), and
   homogeneous, so that only what fills it up to words comes on top. */
static uint64_t cg_segments_global_bound_(const cg_op *op, const cg_segments *g, size_t n) {
    const cg_plan_ plan = cg_plan_of_(op, n);
    const uint64_t k = plan.max_selected;
    const int cut = !(plan.traits & CG_INDEX_LENGTH_VARIES_) && op->code.id != CG_CODE_BITMAP;
    uint64_t bytes, one, count = 0, indices = 0;
    cg_layout_ lay;
    if (cg_layout_sizes_(op, NULL, k, &lay, &bytes) != CG_OK || cg_layout_sizes_(op, NULL, 1, &lay, &one) != CG_OK)
        return CG_TOO_LARGE_;
    for (size_t i = 0; i < g->count; i++) {
        if (!cg_segment_is_global_(g, i)) continue;
        count++;
        if (!cut) indices = cg_add_sat_(indices, cg_index_bound_(op, g->n[i], k < g->n[i] ? k : g->n[i]));
    }
    if (cut) indices = cg_index_bound_(op, plan.universe, k);
    return cg_add_sat_(cg_add_sat_(bytes, indices), cg_mul_sat_(count, one + 24));
}
static size_t cg_segments_bound_(const cg_op *op, const cg_extra *extra, size_t n) {
    const cg_segments *g = extra->segments;
    cg_extra sub = *extra;
    uint64_t bytes;
    sub.segments = NULL;
    if (!op || cg_op_check_(op) != CG_OK || cg_segments_refusal_(op, g, n)) return 0;
    bytes = cg_add_sat_(CG_HEADER_BYTES, cg_segments_table_room_(op, g));
    for (size_t i = 0; i < g->count; i++) {
        const size_t one = cg_segment_is_global_(g, i) ? CG_HEADER_BYTES
                                                       : cg_bound_(cg_segment_op_(g, op, i), &sub, g->n[i]);
        if (!one) return 0;
        bytes = cg_add_sat_(bytes, one - CG_HEADER_BYTES);
    }
    if (g->flags & CG_SEGMENTS_GLOBAL)
        bytes = cg_add_sat_(bytes, cg_segments_global_bound_(op, g, cg_segments_global_n_(g)));
    return cg_size_or_zero_(bytes);
}
/* Scratch of a selection from all segments of op: first the values, unless they lie in x one behind the other. */
static uint64_t cg_segments_gathered_bytes_(const cg_segments *g, size_t n, size_t global_n) {
    return g->flags & CG_SEGMENTS_GLOBAL && global_n != n ? cg_add_sat_(cg_mul_sat_(4, global_n), 64) : 0;
}
static uint64_t cg_segments_global_scratch_(const cg_op *op, const cg_segments *g, size_t n) {
    const size_t global_n = cg_segments_global_n_(g);
    const cg_plan_ plan = cg_plan_of_(op, global_n);
    if (!(g->flags & CG_SEGMENTS_GLOBAL)) return 0;
    return cg_add_sat_(cg_segments_gathered_bytes_(g, n, global_n), cg_scratch_bytes_(op, &plan));
}
static uint64_t cg_segments_scratch_(const cg_op *op, const cg_extra *extra, size_t n) {
    const cg_segments *g = extra->segments;
    uint64_t bytes = 0;
    if (cg_op_check_new_(op) != CG_OK || cg_segments_refusal_(op, g, n)) return 0;
    for (size_t i = 0; i < g->count; i++) {
        const cg_op *one = cg_segment_op_(g, op, i);
        const cg_plan_ plan = cg_plan_of_(one, g->n[i]);
        const uint64_t need = cg_segment_is_global_(g, i) ? 0 : cg_scratch_bytes_(one, &plan);
        if (need > bytes) bytes = need;
    }
    return cg_add_sat_(bytes, cg_segments_global_scratch_(op, g, n));
}
static const char *cg_segments_why_(const cg_op *op, const cg_extra *extra, size_t n) {
    const char *why = cg_segments_refusal_(op, extra->segments, n);
    return why ? why
               : "the bytes of a packet overflow, or the operator of a segment has a codec that is not in "
                 "cg_extra.codecs or refuses its parameters";
}
/* What cg_decoder_.segments_hash is of packets of these segments. */
static uint64_t cg_segments_hash_of_(const cg_segments *g) {
    uint8_t stages[CG_SEGMENT_OP_BYTES_];
    uint64_t h = cg_segments_hash_(cg_segments_flags_(g));
    for (size_t j = 0; g->op && j < g->op_count; j++) {
        for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++)
            cg_stage_put_(stages + 12 * slot, cg_op_stage_const_(&g->ops[j], slot));
        h = cg_segment_op_hash_(h, stages);
    }
    for (size_t i = 0; i < g->count; i++) {
        const uint32_t skip = !g->tensor ? 0u : i ? g->tensor[i] - (g->tensor[i - 1] + 1) : g->tensor[0];
        h = cg_segment_hash_(h, g->n[i], cg_segment_number_(g, i), skip);
    }
    return h ? h : 1;
}

/* What compressing segments shares. */
typedef struct cg_segments_job_ {
    const cg_op *op;
    const cg_segments *segments;
    cg_segment_extra_ sub; /* of the segment that is next */
    const float *scale;    /* of that segment, or NULL */
    const float *x;
    size_t first;
    uint8_t *body, *table, *limit; /* where the next body, entry and the last entry of the table go */
    cg_checksum_ sum;              /* of the bodies */
    cg_info whole;
    cg_list_ all;  /* what a selection of all segments has kept, ... */
    size_t listed; /* ... and how many of that are in segments before */
    size_t global_first;
    void *scratch; /* of a segment */
} cg_segments_job_;

/* Selects from all segments of the call's operator together. */
static cg_status cg_segments_select_(cg_segments_job_ *job, const cg_extra *extra, uint8_t *scratch) {
    const cg_segments *g = job->segments;
    const size_t global_n = cg_segments_global_n_(g);
    const cg_plan_ plan = cg_plan_of_(job->op, global_n);
    const float *x = job->x;
    cg_info info = CG_ZERO;
    cg_extra sub = *extra;
    cg_source_ src;
    cg_status s;
    sub.segments = NULL;
    if (cg_segments_gathered_bytes_(g, (size_t)job->whole.n, global_n)) {
        float *gathered = (float *)(void *)(scratch + (64 - ((uintptr_t)scratch & 63)) % 64);
        size_t at = 0, first = 0;
        for (size_t i = 0; i < g->count; first += g->n[i++]) {
            if (!cg_segment_is_global_(g, i)) continue;
            memcpy(gathered + at, cg_at_(job->x, first), 4 * g->n[i]);
            at += g->n[i];
        }
        x = gathered;
        scratch += (size_t)cg_segments_gathered_bytes_(g, (size_t)job->whole.n, global_n);
    }
    info.op = *job->op;
    info.n = global_n;
    info.tag = job->whole.tag;
    s = cg_source_open_(&info, &plan, &sub, NULL, x, scratch, &src, &job->all);
    job->whole.threshold = info.threshold;
    return s;
}
/* A segment of n values without a selection of all. */
static cg_status cg_segment_body_(
    cg_segments_job_ *job, cg_info *info, const cg_plan_ *plan, cg_extra *extra, cg_checksum_ *sum) {
    const float empty_x = 0.0f;
    cg_list_ list;
    cg_source_ src;
    cg_layout_ lay;
    cg_status s = cg_source_open_(
        info, plan, extra, NULL, info->n ? cg_at_(job->x, job->first) : &empty_x, job->scratch, &src, &list);
    if (s == CG_OK)
        s = cg_body_put_(info, plan, extra, &src, &list, job->body, (size_t)(job->limit - job->body), 1, sum);
    if (s == CG_OK && extra->scale && cg_layout_make_(&info->op, extra, info->k, &lay) == CG_OK)
        job->scale = cg_at_(job->scale, (size_t)lay.bucket_count * lay.quantizer->scale_count);
    return s;
}
/* The part of the list of all that lies in this segment. */
static cg_status cg_segment_body_listed_(
    cg_segments_job_ *job, cg_info *info, const cg_plan_ *plan, const cg_extra *extra, cg_checksum_ *sum) {
    uint64_t start[2] = { 0, 0 };
    const uint64_t end = job->global_first + info->n;
    cg_list_ list = job->all;
    cg_source_ src;
    list.index_low += job->listed;
    list.value += job->listed;
    for (list.count = 0; job->listed < job->all.count && job->all.index_low[job->listed] < end; job->listed++)
        list.index_low[list.count++] -= (uint32_t)job->global_first;
    job->global_first = (size_t)end;
    start[1] = list.count;
    list.segment_start = start;
    list.segment_count = 1;
    info->drawn = info->n;
    info->k = list.count;
    memset(&src, 0, sizeof src);
    src.kernels = cg_kernels_now_();
    src.info = info;
    src.x = list.value;
    src.count = list.count;
    src.clip_bits = CG_INF_BITS_;
    return cg_body_put_(info, plan, extra, &src, &list, job->body, (size_t)(job->limit - job->body), 1, sum);
}
/* Does a quantizer take scales of the caller's? */
static int cg_takes_scales_(const cg_op *op) {
    return !cg_has_(op, CG_IS_USER_CODEC_ | CG_OWNS_SCALES_) && cg_quantizer_of_(&op->quantize)->scale_count;
}
/* Segment i, with its entry. tensor: of the segment if segments.tensor does not say so. */
static cg_status cg_segment_compress_(cg_segments_job_ *job, const cg_extra *given, size_t i, uint32_t tensor) {
    const cg_segments *g = job->segments;
    const uint32_t flags = job->whole.segment_flags, skip = g->tensor ? g->tensor[i] - tensor : 0;
    const int is_global = cg_segment_is_global_(g, i);
    cg_info info = CG_ZERO;
    cg_checksum_ sum = { 0, 0, 0 };
    cg_extra *extra = &job->sub.extra;
    cg_plan_ plan;
    cg_status s;
    info.op = *cg_segment_op_(g, job->op, i);
    info.n = g->n[i];
    info.tag = job->whole.tag;
    info.tag.tensor = tensor + skip;
    plan.traits = cg_op_traits_(&info.op);
    if (plan.traits & CG_IS_PER_RANK_ && info.tag.rank >= info.op.sample.size) return CG_E_ARG;
    cg_plan_set_(&plan, &info.op, info.n, &info.tag);
    extra->aux = given->aux && plan.traits & CG_NEEDS_AUX_ ? cg_at_(given->aux, job->first) : NULL;
    extra->scale = job->scale && cg_takes_scales_(&info.op) ? job->scale : NULL;
    s = is_global ? cg_segment_body_listed_(job, &info, &plan, extra, &sum)
                  : cg_segment_body_(job, &info, &plan, extra, &sum);
    if (s == CG_OK) s = cg_segment_extra_next_(&job->sub);
    if (s != CG_OK) return s;
    job->table = cg_segment_put_(job->table, &info, plan.traits, cg_segment_number_(g, i), skip, flags, is_global);
    job->sum = cg_checksum_concat_(job->sum, sum);
    job->body += info.value_bytes + info.index_bytes;
    job->first += g->n[i];
    job->whole.drawn += info.drawn;
    job->whole.k += info.k;
    job->whole.tag.tensor = info.tag.tensor; /* of the last segment, until the header is written */
    return CG_OK;
}
/* The header of the table: operators beside that of the call. */
static void cg_segments_ops_put_(cg_segments_job_ *job) {
    const cg_segments *g = job->segments;
    if (!(job->whole.segment_flags & CG_SEGMENTS_MIXED_)) return;
    job->table = cg_varint_put_(job->table, g->op_count);
    for (size_t j = 0; j < g->op_count; j++, job->table += CG_SEGMENT_OP_BYTES_)
        for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++)
            cg_stage_put_(job->table + 12 * slot, cg_op_stage_const_(&g->ops[j], slot));
}
CG_NOINLINE_ cg_status cg_compress_segments_(const cg_op *op, const cg_tag *tag, const cg_extra *extra, const float *x,
    cg_producer_ *producer, size_t n, uint8_t *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes) {
    const cg_segments *g = extra->segments;
    const cg_tag none = CG_ZERO;
    const cg_kernels_ *kernels = cg_kernels_now_();
    cg_segments_job_ job;
    uint32_t tensor, needs = 0;
    uint64_t room, global_scratch;
    uint8_t *table;
    cg_status s;
    if (cg_op_check_(op) != CG_OK || cg_segments_refusal_(op, g, n)) return CG_E_ARG;
    s = cg_extra_check_(op, extra);
    if (s != CG_OK) return s;
    for (size_t i = 0; i < g->count; i++) needs |= cg_op_traits_(cg_segment_op_(g, op, i));
    if (((needs & CG_IS_USER_CODEC_) || n > CG_MANY_) && !cg_segments_bound_(op, extra, n)) return CG_E_ARG;
    if (producer && producer->lazy) return CG_E_UNSUPPORTED;
    if (cg_segments_scratch_(op, extra, n) > scratch_bytes) return CG_E_CAPACITY;
    if (scratch_bytes && !scratch) return CG_E_ARG;
    room = cg_segments_table_room_(op, g);
    if (cap < CG_HEADER_BYTES || room > cap - CG_HEADER_BYTES) return CG_E_CAPACITY;
    if (producer) cg_producer_run_(producer, (float *)(uintptr_t)x);
    memset(&job, 0, sizeof job);
    job.op = op;
    job.segments = g;
    job.scale = extra->scale;
    job.x = x;
    job.body = packet + CG_HEADER_BYTES;
    job.limit = job.table = table = packet + (cap - (size_t)room);
    job.whole.op = *op;
    job.whole.n = n;
    job.whole.tag = tag ? *tag : none;
    job.whole.segments = (uint32_t)g->count;
    job.whole.segment_flags = cg_segments_flags_(g);
    s = cg_segment_extra_open_(&job.sub, extra, needs, n);
    if (s != CG_OK) return s;
    if (!(needs & CG_NEEDS_SUPPORT_)) job.sub.extra.support = NULL;
    global_scratch = cg_segments_global_scratch_(op, g, n);
    job.scratch = scratch ? (uint8_t *)scratch + (size_t)global_scratch : NULL;
    if (g->flags & CG_SEGMENTS_GLOBAL) s = cg_segments_select_(&job, extra, (uint8_t *)scratch);
    cg_segments_ops_put_(&job);
    tensor = job.whole.tag.tensor;
    for (size_t i = 0; i < g->count && s == CG_OK; i++) {
        s = cg_segment_compress_(&job, extra, i, tensor);
        tensor = job.whole.tag.tensor + 1;
    }
    if (s != CG_OK) return s;
    job.whole.tag.tensor = tag ? tag->tensor : 0;
    while ((size_t)(job.table - table) % 4) *job.table++ = 0;
    job.whole.value_bytes = (size_t)(job.body - packet) - CG_HEADER_BYTES;
    job.whole.index_bytes = (size_t)(job.table - table);
    memmove(job.body, table, job.whole.index_bytes);
    job.sum = cg_checksum_concat_(job.sum, cg_checksum_of_(kernels, job.body, job.whole.index_bytes));
    *len = cg_packet_finalize_(kernels, &job.whole, packet, job.sum);
    return CG_OK;
}

/* src/core/reduce.h */
/* reduce: packets added or voted on without leaving their domain

   Offers   cg_reduce_, cg_vote_, cg_packet_from_list_, grids of levels, cg_same_stage_
   Needs    base, kernels, packet, quantize, layout, select/list, indices, decoder, verify, decode_into, decode
   Touches  the caller's output and scratch
   Other headers may use: cg_reduce_, cg_same_grid_
   Packets of one vector, sample and transform add by one of three modes: sparse packets merge into a list of f32;
   dense ones whose levels are on one grid add as integers, if 16 bits hold the sum; all others add as f32. Where a
   sample or rotation is private, all packets add decoded, as a dense vector. */

/* All fields equal, values as bits. */
static int cg_same_stage_(const cg_stage *a, const cg_stage *b) {
    return a->id == b->id && a->flags == b->flags && a->arg == b->arg && a->size == b->size &&
        cg_as_bits_(a->value) == cg_as_bits_(b->value);
}
/* What the result is: sparse f32, integers on the grid of all packets, dense f32 of their domain, or of x itself. */
enum { CG_REDUCE_SPARSE_, CG_REDUCE_LEVELS_, CG_REDUCE_FLOATS_, CG_REDUCE_DECODED_ };
typedef struct cg_reducer_ {
    const void *const *packets;
    const size_t *lens;
    const cg_segment_cursor_ *segments; /* of packets with segments: each before the one that is added, or NULL */
    size_t count, transformed_n;        /* packets; values of their domain */
    int mode;                           /* CG_REDUCE_* */
    uint64_t zero_sum;                  /* levels: the sum of the zero symbols of all packets */
    int32_t out_zero;                   /* levels: the zero symbol of the result */
    cg_info info;                       /* of the result */
    cg_layout_ out_lay;                 /* of the result; sparse: with max_values */
    cg_layout_ in_lay;                  /* of the first packet; levels: all have its buckets */
    uint64_t max_values;                /* sparse: values of all packets together, at most transformed_n */
} cg_reducer_;

/* Opens packet i into *d, which has no y. */

static cg_status cg_reducer_packet_open_(const cg_reducer_ *reducer, size_t i, cg_decoder_ *d) {
    const uint8_t *packet = (const uint8_t *)reducer->packets[i];
    float dummy_y = 0.0f;
    cg_status s;
    if (!packet) return CG_E_ARG;
    if (cg_builds_segments_() && reducer->segments) {
        cg_segment_cursor_ c = reducer->segments[i];
        s = cg_segment_decoder_open_(&c, NULL, 1, d);
        d->y = NULL;
        return s;
    }
    s = cg_header_get_(packet, reducer->lens[i], &d->info, &d->plan);
    if (s == CG_OK && cg_has_segments_(&d->info)) return CG_E_MISMATCH; /* others, or the call, have none */
    if (s == CG_OK) s = cg_decoder_open_rest_(d, NULL, packet, reducer->lens[i], &dummy_y, 1);
    d->y = NULL;
    return s;
}
/* CG_OK: both packets are of the same vector, sample and transform, so that their values add index by index; packets
   with a `given` selection must have the same support. Else CG_E_MISMATCH. */
static cg_status cg_reducer_match_(const cg_reducer_ *reducer, const cg_info *a, const cg_info *b) {
    if (a->n != b->n || a->tag.seed != b->tag.seed || a->tag.step != b->tag.step || a->tag.tensor != b->tag.tensor)
        return CG_E_MISMATCH;
    if (reducer->mode == CG_REDUCE_DECODED_) return CG_OK;
    if (a->drawn != b->drawn) return CG_E_MISMATCH;
    if (!cg_same_stage_(&a->op.sample, &b->op.sample) || !cg_same_stage_(&a->op.transform, &b->op.transform))
        return CG_E_MISMATCH;
    if (cg_has_(&a->op, CG_NEEDS_SUPPORT_) || cg_has_(&b->op, CG_NEEDS_SUPPORT_))
        return cg_same_stage_(&a->op.select, &b->op.select) && a->k == b->k ? CG_OK : CG_E_MISMATCH;
    return (a->op.select.id != 0) == (b->op.select.id != 0) ? CG_OK : CG_E_MISMATCH;
}
/* What one level of a bucket is worth to a decoder; d's quantizer has a zero symbol, see below. */
static float cg_grid_step_(const cg_decoder_ *d, size_t bucket) {
    float scale[2];
    cg_levels_ q;
    cg_scales_get_(&d->lay, d->scales, bucket, scale);
    if (d->lay.quantizer->stage.traits & CG_SCALE_IS_STEP_) return scale[0];
    q = cg_levels_make_(&d->info.op.quantize, scale);
    return cg_saturate_(cg_times_(q.step, q.postscale));
}
/* The symbol of 0, and *bits per symbol, of a quantizer whose symbols are integers around that one; 0: of another. */
static int32_t cg_grid_zero_symbol_(const cg_stage *q, unsigned *bits) {
    const cg_quantizer_ *quantizer = cg_quantizer_of_(q);
    *bits = 0;
    if (!quantizer || !(quantizer->stage.traits & CG_HAS_GRID_)) return 0;
    *bits = cg_bits_x32_of_(quantizer, q) / 32;
    return quantizer->levels(q);
}

/* Opens every packet once and decides the mode. max_level_sum: the largest magnitude that a sum of levels can have, if
   the caller knows it to be smaller than what the packets allow; 0: not known. CG_E_UNSUPPORTED: operators on matrices,
   PermK. Values and indices are not verified here. */
CG_NOINLINE_ cg_status cg_reducer_open_(cg_reducer_ *reducer, const void *const *packets, const size_t *lens,
    size_t count, uint64_t max_level_sum, const cg_segment_cursor_ *segments) {
    cg_decoder_ d, first;
    unsigned bits;
    int32_t zero;
    int on_one_grid = 1;
    memset(reducer, 0, sizeof *reducer);
    memset(&first, 0, sizeof first);
    reducer->packets = packets;
    reducer->lens = lens;
    reducer->count = count;
    reducer->segments = segments;
    if (!packets || !lens || !count) return CG_E_ARG;
    for (size_t i = 0; i < count; i++) {
        cg_status s = cg_reducer_packet_open_(reducer, i, &d);
        if (s != CG_OK) return s;
        if (d.plan.traits & CG_IS_PRIVATE_) reducer->mode = CG_REDUCE_DECODED_;
    }
    for (size_t i = 0; i < count; i++) {
        cg_status s = cg_reducer_packet_open_(reducer, i, &d);
        if (s != CG_OK) return s;
        zero = cg_grid_zero_symbol_(&d.info.op.quantize, &bits);
        if (i == 0) first = d;
        if (d.plan.traits & (CG_IS_MATRIX_ | CG_IS_PER_RANK_) ||
            (reducer->mode == CG_REDUCE_DECODED_ && d.plan.traits & CG_NEEDS_SUPPORT_))
            return CG_E_UNSUPPORTED;
        s = cg_reducer_match_(reducer, &first.info, &d.info);
        if (s != CG_OK) return s;
        on_one_grid = on_one_grid && zero && !d.lay.value_code && d.lay.bucket_count == first.lay.bucket_count &&
            d.lay.bucket_size == first.lay.bucket_size;
        for (size_t j = 0; on_one_grid && j < (size_t)d.lay.bucket_count; j++)
            on_one_grid = cg_grid_step_(&d, j) == cg_grid_step_(&first, j);
        for (size_t j = 0; on_one_grid && j < (size_t)d.lay.bucket_count;
             j++) { /* sums of levels times a denormal step would round */
            float scale = cg_as_float_(cg_get32_(d.scales + 4 * j));
            on_one_grid = scale == 0.0f || !cg_is_tiny_(scale);
        }
        reducer->zero_sum = cg_add_sat_(reducer->zero_sum, (uint64_t)zero);
        reducer->max_values = cg_add_sat_(reducer->max_values, d.info.k);
    }
    reducer->info = first.info;
    reducer->in_lay = first.lay;
    reducer->transformed_n = (size_t)first.plan.transformed_n;
    if (reducer->mode == CG_REDUCE_DECODED_) {
        memset(&reducer->info.op, 0, sizeof reducer->info.op);
        reducer->info.drawn = reducer->info.k = reducer->info.n;
        reducer->info.index_code = CG_CODE_AUTO;
        reducer->info.threshold = 0.0f;
        return cg_layout_make_(&reducer->info.op, NULL, reducer->info.k, &reducer->out_lay);
    }
    reducer->mode = cg_has_indices_(&first.plan) ? CG_REDUCE_SPARSE_ : CG_REDUCE_FLOATS_;
    memset(&reducer->info.op.quantize, 0, sizeof reducer->info.op.quantize);
    memset(&reducer->info.op.code, 0, sizeof reducer->info.op.code);
    memset(&reducer->info.op.clip, 0, sizeof reducer->info.op.clip);
    if (reducer->mode == CG_REDUCE_SPARSE_) { /* threshold:0 is a selection that any index set fits */
        memset(&reducer->info.op.select, 0, sizeof reducer->info.op.select);
        reducer->info.op.select.id = CG_SELECT_THRESHOLD;
        reducer->info.threshold = 0.0f;
        reducer->info.op.k = first.plan.traits & CG_SAMPLES_RATIO_ &&
                first.info.drawn != cg_k_from_ratio_(first.info.op.sample.value, 0, first.info.n)
            ? first.info.drawn
            : 0;
        if (reducer->max_values > reducer->transformed_n) reducer->max_values = reducer->transformed_n;
    } else if (on_one_grid) {
        if (!max_level_sum) max_level_sum = reducer->zero_sum;
        for (bits = 2; bits <= 16 && (uint64_t)((1 << (bits - 1)) - 1) < max_level_sum;) bits++;
        if (bits > 8 && bits < 16) bits = 16;
        if (bits <= 16 && first.lay.bucket_size <= 0xffffffffu) { /* the symbols have headroom for all sums */
            reducer->mode = CG_REDUCE_LEVELS_;
            reducer->out_zero = (1 << (bits - 1)) - 1;
            reducer->info.op.quantize.id = bits <= 8 ? CG_QUANTIZE_FLEXPOINT : CG_QUANTIZE_FLEX16;
            reducer->info.op.quantize.arg = (uint16_t)(bits <= 8 ? bits : 0);
            reducer->info.op.quantize.size = (uint32_t)first.lay.bucket_size;
            if (segments && first.lay.bucket_count <= 1) reducer->info.op.quantize.size = CG_SIZE_MAX_; /* of any n */
        }
    }
    return cg_layout_make_(&reducer->info.op, NULL,
        reducer->mode == CG_REDUCE_SPARSE_ ? reducer->max_values : reducer->info.k, &reducer->out_lay);
}

/* Bytes of one list, 0 on overflow; merging needs two. */
static size_t cg_reducer_list_bytes_(const cg_reducer_ *reducer) {
    return cg_size_or_zero_(cg_add_sat_(cg_mul_sat_(8, cg_add_sat_(reducer->max_values, CG_SLACK_)),
        8 * (((uint64_t)reducer->transformed_n >> 32) + 2)));
}
/* A list in cg_reducer_list_bytes_ at p, aligned to 8; its segments are not initialised. */
static void cg_reducer_list_init_(const cg_reducer_ *reducer, cg_list_ *list, uint8_t *p) {
    memset(list, 0, sizeof *list);
    list->segment_count = reducer->transformed_n ? (((uint64_t)reducer->transformed_n - 1) >> 32) + 1 : 1;
    list->segment_start = (uint64_t *)(void *)p;
    p += 8 * (size_t)(list->segment_count + 1);
    list->index_low = (uint32_t *)(void *)p;
    list->value = (float *)(void *)(p + 4 * ((size_t)reducer->max_values + CG_SLACK_));
}
/* *into = *list + packet, by index; sums saturate. *into has room for both. CG_E_CORRUPT: a user codec refused. */
CG_NOINLINE_ cg_status cg_list_merge_packet_(const cg_decoder_ *d, const cg_list_ *list, cg_list_ *into) {
    const size_t k = (size_t)d->lay.k;
    cg_selection_reader_ sel;
    cg_piece_cursor_ cursor;
    size_t i = 0;
    uint64_t segment = 0, open_segment = 0;
    cg_selection_reader_open_(&sel, d, &cursor);
    into->count = 0;
    into->segment_start[0] = 0;
    for (size_t j = 0;;) {
        uint64_t list_index = UINT64_MAX, packet_index = UINT64_MAX, index;
        float v = 0.0f;
        if (j < k && j == sel.batch_first + sel.batch_n) {
            sel.batch_first = j;
            sel.batch_n = cg_selection_reader_load_(&sel, d, j);
            if (!sel.batch_n) return CG_E_CORRUPT;
            cg_index_get_per_value_(&sel.reader, sel.index, sel.batch_n);
        }
        if (i < list->count) {
            while (i >= list->segment_start[segment + 1]) segment++;
            list_index = segment << 32 | list->index_low[i];
        }
        if (j < k) packet_index = sel.index[j - sel.batch_first];
        index = list_index < packet_index ? list_index : packet_index;
        if (index == UINT64_MAX) break;
        if (list_index == index) v = list->value[i++];
        if (packet_index == index) {
            float u = cg_load_(sel.values, j++ % CG_CHUNK_);
            v = list_index == index ? cg_saturate_(cg_plus_(v, u)) : u;
        }
        while (open_segment < index >> 32) into->segment_start[++open_segment] = into->count;
        cg_list_add_(into, (size_t)index, v);
    }
    while (open_segment < into->segment_count) into->segment_start[++open_segment] = into->count;
    return CG_OK;
}
/* Writes the list's values as f32 and its indices, one for each, to out. info has op, without quantizer, tag, n,
   drawn and threshold; the rest of it is set here. */
static cg_status cg_body_from_list_(cg_info *info, const cg_list_ *list, uint8_t *out, size_t cap) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    cg_plan_ plan;
    uint64_t index_bytes;
    plan.n = info->n;
    plan.sampled_n = info->drawn;
    plan.traits = cg_op_traits_(&info->op);
    cg_plan_resume_(&plan, &info->op);
    info->k = list->count;
    info->index_code = cg_index_code_(&info->op, &plan, list->count);
    index_bytes = cg_index_bytes_(info->index_code, plan.universe, list->count);
    info->value_bytes = 4 * list->count;
    if (cg_add_sat_(index_bytes, 4 * (uint64_t)list->count) > cap) return CG_E_CAPACITY;
    CG_KERNEL_(kernels, copy(list->value, list->count, out));
    info->index_bytes = index_bytes ? cg_index_put_(info->index_code, plan.universe, list, out + info->value_bytes) : 0;
    return CG_OK;
}
/* The same as a packet. */
static cg_status cg_packet_from_list_(cg_info *info, const cg_list_ *list, uint8_t *out, size_t cap, size_t *len) {
    const cg_status s = cap < CG_HEADER_BYTES
        ? CG_E_CAPACITY
        : cg_body_from_list_(info, list, out + CG_HEADER_BYTES, cap - CG_HEADER_BYTES);
    if (s == CG_OK) *len = cg_packet_seal_(info, out);
    return s;
}
/* Merges the packets one by one. scratch: two lists, aligned to 8. */
CG_NOINLINE_ cg_status cg_reduce_sparse_(cg_reducer_ *reducer, uint8_t *out, size_t cap, uint8_t *scratch) {
    cg_list_ lists[2];
    cg_decoder_ d;
    cg_reducer_list_init_(reducer, &lists[0], scratch);
    cg_reducer_list_init_(reducer, &lists[1], scratch + cg_reducer_list_bytes_(reducer));
    memset(lists[0].segment_start, 0, 8 * (size_t)(lists[0].segment_count + 1));
    memset(lists[1].segment_start, 0, 8 * (size_t)(lists[1].segment_count + 1));
    for (size_t i = 0; i < reducer->count; i++) {
        cg_status s = cg_reducer_packet_open_(reducer, i, &d);
        if (s == CG_OK) s = cg_list_merge_packet_(&d, &lists[i % 2], &lists[(i + 1) % 2]);
        if (s != CG_OK) return s;
    }
    return cg_body_from_list_(&reducer->info, &lists[reducer->count % 2], out, cap);
}
/* The codes of packet i, whose levels have been found to be on one grid, and its quantizer. */
static const uint8_t *cg_reducer_codes_(const cg_reducer_ *reducer, size_t i, cg_stage *stage) {
    const uint8_t *body = (const uint8_t *)reducer->packets[i] + CG_HEADER_BYTES;
    if (cg_builds_segments_() && reducer->segments) {
        cg_segment_cursor_ c = reducer->segments[i];
        cg_info info;
        cg_plan_ plan;
        const cg_status s = cg_segment_next_(&c, &info, &plan);
        (void)s; /* it was read before */
        *stage = info.op.quantize;
        body = c.body;
    } else cg_stage_get_(body - CG_HEADER_BYTES + 8 + 12 * CG_SLOT_QUANTIZE_, stage);
    return body + (size_t)reducer->in_lay.scale_bytes;
}
/* Adds values [first, first + many) of one chunk of all packets as integers, and writes the symbols of the sums. */
static void cg_reduce_levels_(
    const cg_kernels_ *kernels, const cg_reducer_ *reducer, uint8_t *codes, size_t first, size_t many) {
    uint16_t sums[CG_CHUNK_];
    uint8_t symbols[CG_CHUNK_];
    memset(sums, 0, sizeof sums);
    for (size_t i = 0; i < reducer->count; i++) {
        cg_stage stage;
        const uint8_t *in = cg_reducer_codes_(reducer, i, &stage);
        unsigned bits;
        const uint16_t max_symbol = (uint16_t)(2 * cg_grid_zero_symbol_(&stage, &bits));
        in += first / 8 * bits;
        if (bits < 8) CG_KERNEL_(kernels, unpack(in, many, bits, symbols));
        else if (bits == 8) memcpy(symbols, in, many);
        if (bits <= 8)
            for (size_t j = 0; j < many; j++)
                sums[j] = (uint16_t)(sums[j] + (symbols[j] < max_symbol ? symbols[j] : max_symbol));
        else
            for (size_t j = 0; j < many; j++) sums[j] = (uint16_t)(sums[j] + cg_get16_(in + 2 * j));
    }
    for (size_t j = 0; j < many; j++) { /* sums of symbols may wrap: the sum of levels fits 16 bits */
        int32_t sum = (int32_t)(((uint32_t)sums[j] + 32768u - (uint32_t)reducer->zero_sum) & 0xffffu) - 32768 +
            reducer->out_zero;
        sum = sum < 0 ? 0 : sum > 2 * reducer->out_zero ? 2 * reducer->out_zero : sum;
        symbols[j] = (uint8_t)sum;
        if (reducer->out_lay.bits_x32 > 8 * 32) cg_put16_(codes + 2 * j, (uint32_t)sum);
    }
    if (reducer->out_lay.bits_x32 > 8 * 32) return;
    if (reducer->out_lay.bits_x32 < 8 * 32)
        CG_KERNEL_(kernels, pack(symbols, many, reducer->out_lay.bits_x32 / 32, codes));
    else memcpy(codes, symbols, many);
}
/* The sum of decoded packets as little-endian floats at sum, of any alignment; packets have been verified. */
CG_NOINLINE_ cg_status cg_reduce_decoded_(const cg_kernels_ *kernels, const cg_reducer_ *reducer, float *sum) {
    const size_t n = (size_t)reducer->info.n;
    cg_status s = CG_OK;
    for (size_t i = 0; i < reducer->count && s == CG_OK; i++) {
        cg_decoder_ d;
        s = cg_reducer_packet_open_(reducer, i, &d);
        if (s == CG_OK) s = cg_packet_decode_(&d, NULL, 1.0f, i ? 1.0f : 0.0f, sum, NULL, 1);
        if (s == CG_OK && i && CG_KERNEL_(kernels, absmax_bits(sum, n)) >= CG_INF_BITS_)
            for (size_t j = 0; j < n; j++) cg_store_(sum, j, cg_saturate_(cg_load_(sum, j)));
    }
    for (size_t j = 0; CG_BIG_ENDIAN_ && j < n; j++)
        cg_put32_((uint8_t *)(void *)cg_at_mut_(sum, j), cg_load_bits_(sum, j));
    return s;
}
/* The body of a dense result. */
CG_NOINLINE_ cg_status cg_reduce_dense_(cg_reducer_ *reducer, uint8_t *out, size_t cap) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const size_t k = (size_t)reducer->info.k;
    uint8_t *scales = out, *codes = scales + (size_t)reducer->out_lay.scale_bytes;
    cg_decoder_ d;
    reducer->info.value_bytes = (size_t)(reducer->out_lay.scale_bytes + reducer->out_lay.codes_bytes);
    reducer->info.index_bytes = 0;
    if (reducer->info.value_bytes > cap) return CG_E_CAPACITY;
    if (reducer->mode == CG_REDUCE_DECODED_) {
        const cg_status s = cg_reduce_decoded_(kernels, reducer, (float *)(void *)codes);
        if (s != CG_OK) return s;
    } else if (reducer->mode == CG_REDUCE_LEVELS_) {
        cg_status s = cg_reducer_packet_open_(reducer, 0, &d);
        if (s != CG_OK) return s;
        for (size_t b = 0; b < (size_t)d.lay.bucket_count; b++)
            cg_put32_(scales + 4 * b, cg_as_bits_(cg_grid_step_(&d, b)));
        for (size_t first = 0; first < k; first += CG_CHUNK_)
            cg_reduce_levels_(kernels, reducer, codes + cg_codes_offset_(&reducer->out_lay, first), first,
                cg_min_(CG_CHUNK_, k - first));
        for (size_t bytes = (size_t)(((uint64_t)k * reducer->out_lay.bits_x32 / 32 + 7) / 8); bytes % 4; bytes++)
            codes[bytes] = 0;
    } else {
        for (size_t i = 0; i < reducer->count; i++) {
            cg_piece_cursor_ cursor;
            float v[CG_CHUNK_], sum[CG_CHUNK_];
            cg_status s = cg_reducer_packet_open_(reducer, i, &d);
            if (s != CG_OK) return s;
            cg_piece_cursor_open_(&cursor, 0, 0);
            for (size_t first = 0, many; first < k; first += many) {
                const float *w;
                many = cg_min_(CG_CHUNK_, k - first);
                w = cg_decode_chunk_(&d, &cursor, first, many, v, 0);
                if (!w) return CG_E_CORRUPT;
                for (size_t j = 0; i && j < many; j++)
                    sum[j] = cg_saturate_(cg_plus_(cg_as_float_(cg_get32_(codes + 4 * (first + j))), cg_load_(w, j)));
                CG_KERNEL_(kernels, copy(i ? sum : w, many, codes + 4 * first));
            }
        }
    }
    return CG_OK;
}
/* The sum of verified packets without its header. scratch: 64 bytes more than two lists, at any alignment. */
static cg_status cg_reduce_body_(cg_reducer_ *reducer, uint8_t *out, size_t cap, uint8_t *scratch) {
    return reducer->mode == CG_REDUCE_SPARSE_
        ? cg_reduce_sparse_(reducer, out, cap, scratch + (64 - ((uintptr_t)scratch & 63)) % 64)
        : cg_reduce_dense_(reducer, out, cap);
}
/* Has the first of the packets segments? Then the sum has some, too. */
static int cg_packets_have_segments_(const void *const *packets, const size_t *lens, size_t count) {
    const uint8_t *p = packets && lens && count ? (const uint8_t *)packets[0] : NULL;
    return cg_builds_segments_() && p && lens[0] >= CG_HEADER_BYTES && p[4] == CG_FORMAT_SEGMENTS_;
}
/* in core/segments/reduce.h: */
static cg_status cg_reduce_segments_plan_(
    const void *const *packets, const size_t *lens, size_t count, size_t *bound, size_t *scratch);
static cg_status cg_vote_segments_(
    const void *const *packets, const size_t *lens, size_t count, uint8_t *out, size_t cap, size_t *len);
static cg_status cg_reduce_segments_(const void *const *packets, const size_t *lens, size_t count, uint8_t *out,
    size_t cap, size_t *len, uint8_t *scratch, size_t scratch_bytes);
/* Can the packets be added? *bound: bytes of the result; *scratch: bytes of scratch at any alignment. */
static cg_status cg_reduce_plan_(const void *const *packets, const size_t *lens, size_t count, uint64_t max_level_sum,
    cg_reducer_ *reducer, size_t *bound, size_t *scratch) {
    cg_status s = cg_reducer_open_(reducer, packets, lens, count, max_level_sum, NULL);
    uint64_t bytes;
    *bound = *scratch = 0;
    if (s != CG_OK) return s;
    bytes = cg_add_sat_(cg_add_sat_(reducer->out_lay.scale_bytes, reducer->out_lay.codes_bytes), CG_HEADER_BYTES);
    if (reducer->mode == CG_REDUCE_SPARSE_) {
        bytes = cg_add_sat_(bytes, cg_index_bound_(&reducer->info.op, reducer->transformed_n, reducer->max_values));
        if (!cg_reducer_list_bytes_(reducer)) return CG_E_ARG;
        *scratch = cg_size_or_zero_(cg_add_sat_(cg_mul_sat_(2, cg_reducer_list_bytes_(reducer)), 64));
    }
    *bound = cg_size_or_zero_(bytes);
    return *bound ? CG_OK : CG_E_ARG;
}
CG_API_ cg_status cg_reduce_plan(
    const void *const *packets, const size_t *lens, size_t count, size_t *bound, size_t *scratch) {
    cg_reducer_ reducer;
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = CG_E_ARG;
    if (bound && scratch)
        s = cg_packets_have_segments_(packets, lens, count)
            ? cg_reduce_segments_plan_(packets, lens, count, bound, scratch)
            : cg_reduce_plan_(packets, lens, count, 0, &reducer, bound, scratch);
    cg_fenv_leave_(env);
    return s;
}
CG_NOINLINE_ cg_status cg_verify_all_(const cg_reducer_ *reducer) {
    for (size_t i = 0; i < reducer->count; i++) {
        cg_decoder_ d;
        cg_status s = cg_reducer_packet_open_(reducer, i, &d);
        if (s == CG_OK) s = cg_verify_(&d, NULL);
        if (s != CG_OK) return s;
    }
    return CG_OK;
}
/* cg_reduce, inside cg_fenv_enter_; max_level_sum as for cg_reducer_open_. */
static cg_status cg_reduce_(const void *const *packets, const size_t *lens, size_t count, uint64_t max_level_sum,
    void *out, size_t cap, size_t *len, void *scratch, size_t scratch_bytes) {
    cg_reducer_ reducer;
    size_t bound = 0, need = 0;
    const int valid = out && len && (scratch || !scratch_bytes);
    cg_status s;
    if (len) *len = 0;
    if (valid && cg_packets_have_segments_(packets, lens, count))
        return cg_reduce_segments_(packets, lens, count, (uint8_t *)out, cap, len, (uint8_t *)scratch, scratch_bytes);
    s = valid ? cg_reduce_plan_(packets, lens, count, max_level_sum, &reducer, &bound, &need) : CG_E_ARG;
    if (s == CG_OK && (cap < CG_HEADER_BYTES || need > scratch_bytes)) s = CG_E_CAPACITY;
    if (s == CG_OK) s = cg_verify_all_(&reducer);
    if (s == CG_OK)
        s = cg_reduce_body_(&reducer, (uint8_t *)out + CG_HEADER_BYTES, cap - CG_HEADER_BYTES, (uint8_t *)scratch);
    if (s == CG_OK) *len = cg_packet_seal_(&reducer.info, (uint8_t *)out);
    return s;
}
CG_API_ cg_status cg_reduce(const void *const *packets, const size_t *lens, size_t count, void *out, size_t cap,
    size_t *len, void *scratch, size_t scratch_bytes) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_reduce_(packets, lens, count, 0, out, cap, len, scratch, scratch_bytes);
    cg_fenv_leave_(env);
    return s;
}
/* cg_vote, inside cg_fenv_enter_: out, cap and len are not NULL. Up to FUSED_MAX packets are read once: a tile of
   each is counted, and its checksum taken while it is in the cache; more are verified first. */
CG_NOINLINE_ cg_status cg_vote_(
    const void *const *packets, const size_t *lens, size_t count, uint8_t *out, size_t cap, size_t *len) {
    enum { MAX_PACKETS = 1024, FUSED_MAX = 64, TILE = 4096 };
    const cg_kernels_ *kernels = cg_kernels_now_();
    const uint8_t *in[MAX_PACKETS];
    cg_checksum_ sums[FUSED_MAX];
    cg_reducer_ reducer;
    cg_decoder_ d;
    size_t bytes;
    cg_status s;
    if (cg_packets_have_segments_(packets, lens, count)) return cg_vote_segments_(packets, lens, count, out, cap, len);
    s = cg_reducer_open_(&reducer, packets, lens, count, 0, NULL);
    if (s != CG_OK) return s;
    if (count > MAX_PACKETS) return CG_E_UNSUPPORTED;
    for (size_t i = 0; i < count; i++) {
        s = cg_reducer_packet_open_(&reducer, i, &d);
        if (s != CG_OK) return s;
        if (!(d.plan.traits & CG_IS_SIGN_) || reducer.mode != CG_REDUCE_FLOATS_) return CG_E_UNSUPPORTED;
        in[i] = d.codes;
    }
    if (count > FUSED_MAX) s = cg_verify_all_(&reducer);
    if (s != CG_OK) return s;
    reducer.info.op.quantize.id = CG_QUANTIZE_SIGN;
    bytes = (size_t)cg_word_bytes_(reducer.info.k);
    if (cap < CG_HEADER_BYTES || bytes > cap - CG_HEADER_BYTES) return CG_E_CAPACITY;
    memset(sums, 0, sizeof sums);
    for (size_t at = 0, many; at < bytes; at += many) {
        many = cg_min_(TILE, bytes - at);
        CG_KERNEL_(kernels, vote(in, count, many, out + CG_HEADER_BYTES + at));
        for (size_t i = 0; count <= FUSED_MAX && i < count; i++)
            CG_KERNEL_(kernels, checksum(&sums[i], in[i], many / 4));
        for (size_t i = 0; i < count; i++) in[i] += many;
    }
    for (size_t i = 0; count <= FUSED_MAX && i < count; i++) {
        s = cg_reducer_packet_open_(&reducer, i, &d);
        if (s != CG_OK || !cg_checksum_ok_(&d, sums[i])) return CG_E_CORRUPT;
    }
    reducer.info.value_bytes = bytes;
    reducer.info.index_bytes = 0;
    *len = cg_packet_finalize_(kernels, &reducer.info, out, cg_checksum_of_(kernels, out + CG_HEADER_BYTES, bytes));
    return CG_OK;
}
CG_API_ cg_status cg_vote(
    const void *const *packets, const size_t *lens, size_t count, void *out, size_t cap, size_t *len) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s;
    if (len) *len = 0;
    s = out && len ? cg_vote_(packets, lens, count, (uint8_t *)out, cap, len) : CG_E_ARG;
    cg_fenv_leave_(env);
    return s;
}
/* CG_E_MISMATCH: both are packets of n levels, but on different grids. A packet without levels (a sum that was too
   large for them) is on any grid. */
CG_OFFERED_ cg_status cg_same_grid_(const void *a, size_t a_len, const void *b, size_t b_len, size_t n) {
    cg_decoder_ d, e;
    float no_output = 0.0f;
    unsigned bits;
    cg_status s = cg_decoder_open_(&d, NULL, a, a_len, &no_output, n, 1);
    if (s == CG_OK) s = cg_decoder_open_(&e, NULL, b, b_len, &no_output, n, 1);
    if (s != CG_OK || !cg_grid_zero_symbol_(&d.info.op.quantize, &bits)) return s;
    if (d.lay.bucket_count != e.lay.bucket_count) return CG_E_MISMATCH;
    for (size_t i = 0; i < (size_t)d.lay.bucket_count; i++)
        if (cg_grid_step_(&d, i) != cg_grid_step_(&e, i)) return CG_E_MISMATCH;
    return CG_OK;
}

/* src/core/segments/reduce.h */
/* reduce: packets with the same segments added segment by segment, or voted on

   Offers   cg_reduce_segments_plan_, cg_reduce_segments_, cg_vote_segments_
   Needs    base, kernels (vote), packet, segments (table, decode), reduce
   Touches  the caller's output and scratch
   Every segment is added as packets without segments are; scratch has a cursor for each packet. Operators of sums are
   put down in scratch, as those of different segments are seldom different. */

enum { CG_REDUCE_MAX_ = 256 };

typedef struct cg_segments_sum_ {
    cg_info *info; /* count of each */
    cg_segment_cursor_ *cursor;
    cg_op *op; /* of sums: the first is that of the header */
    uint64_t op_cap, op_count;
    uint8_t *lists;
    uint64_t room;        /* of the table */
    uint64_t bound, most; /* bytes of the sum; values of the largest list */
} cg_segments_sum_;

/* Bytes of scratch, at any alignment; p NULL: only these. */
static uint64_t cg_segments_sum_layout_(cg_segments_sum_ *sum, size_t count, uint8_t *p) {
    const uint64_t infos = 8 * ((sizeof(cg_info) + 7) / 8) * (uint64_t)count,
                   cursors = 8 * ((sizeof(cg_segment_cursor_) + 7) / 8) * (uint64_t)count,
                   ops = cg_mul_sat_(8 * ((sizeof(cg_op) + 7) / 8), sum->op_cap),
                   list = cg_add_sat_(cg_mul_sat_(8, cg_add_sat_(sum->most, CG_SLACK_)), 8 * ((sum->most >> 32) + 2));
    if (p) {
        p += (64 - ((uintptr_t)p & 63)) % 64;
        sum->info = (cg_info *)(void *)p;
        p += (size_t)infos;
        sum->cursor = (cg_segment_cursor_ *)(void *)p;
        p += (size_t)cursors;
        sum->op = (cg_op *)(void *)p;
        sum->lists = p + (size_t)ops;
    }
    return cg_add_sat_(cg_add_sat_(infos + cursors + 192, ops), cg_mul_sat_(2, list));
}
/* Opens the table of a packet of `len` bytes; its header to *info. */
static cg_status cg_segments_summand_open_(const void *packet, size_t len, cg_info *info, cg_segment_cursor_ *c) {
    cg_plan_ plan;
    cg_status s = packet ? cg_header_get_((const uint8_t *)packet, len, info, &plan) : CG_E_ARG;
    if (s != CG_OK) return s;
    if (info->packet_bytes != len) return CG_E_CORRUPT;
    if (!info->segments) return CG_E_MISMATCH;
    return cg_segments_open_(c, info, plan.traits, (const uint8_t *)packet);
}
/* Reads all tables, each beside the first: can the packets be added, and what does their sum take? */
static cg_status cg_segments_sum_plan_(
    const void *const *packets, const size_t *lens, size_t count, cg_segments_sum_ *sum) {
    uint64_t kept = 0, universe = 0, dense = 0, n = 0, sparse_segments = 0, segments = 0;
    int any_private = 0;
    cg_reducer_ pair;
    const cg_op any = cg_threshold(0.0f);
    memset(sum, 0, sizeof *sum);
    if (count > CG_REDUCE_MAX_) return CG_E_UNSUPPORTED;
    for (size_t j = 0; j < count; j++) {
        cg_info first_info, info, a, b;
        cg_plan_ first_plan, plan;
        cg_segment_cursor_ first, c;
        cg_status s = cg_segments_summand_open_(packets[0], lens[0], &first_info, &first);
        if (s == CG_OK) s = cg_segments_summand_open_(packets[j], lens[j], &info, &c);
        if (s != CG_OK) return s;
        if (info.segments != first_info.segments || info.n != first_info.n) return CG_E_MISMATCH;
        segments = info.segments;
        n = info.n;
        if (j == 0) {
            sum->op_cap = segments <= 16 ? 16 : 4 * (first.op_count + 2);
            sum->room = 10 + (uint64_t)CG_SEGMENT_OP_BYTES_ * sum->op_cap;
        }
        while (c.left) {
            s = cg_segment_next_(&first, &a, &first_plan);
            if (s == CG_OK) s = cg_segment_next_(&c, &b, &plan);
            if (s == CG_OK && plan.traits & (CG_IS_MATRIX_ | CG_IS_PER_RANK_)) s = CG_E_UNSUPPORTED;
            /* privately sampled or rotated values are decoded before they are added */
            pair.mode = (first_plan.traits | plan.traits) & CG_IS_PRIVATE_ ? CG_REDUCE_DECODED_ : CG_REDUCE_FLOATS_;
            if (s == CG_OK && pair.mode == CG_REDUCE_DECODED_) {
                any_private = 1;
                if ((first_plan.traits | plan.traits) & CG_NEEDS_SUPPORT_) s = CG_E_UNSUPPORTED;
            }
            if (s == CG_OK) s = cg_reducer_match_(&pair, &a, &b);
            if (s != CG_OK) return s;
            if (plan.traits & CG_IS_USER_CODEC_) return CG_E_VERSION;
            if (cg_has_indices_(&plan)) kept = cg_add_sat_(kept, b.k);
            if (j) continue;
            sum->room = cg_add_sat_(sum->room, 5 + 3 * cg_varint_bytes_(plan.transformed_n | plan.n) + 5 + 8);
            if (cg_has_indices_(&plan)) {
                sparse_segments++;
                universe = cg_add_sat_(universe, plan.transformed_n);
                if (plan.transformed_n > sum->most) sum->most = plan.transformed_n;
            } else dense = cg_add_sat_(dense, cg_add_sat_(cg_mul_sat_(6, b.k), 16));
        }
        if (!cg_segments_end_(&first) || !cg_segments_end_(&c)) return CG_E_CORRUPT;
    }
    if (kept > universe) kept = universe;
    sum->room = cg_add_sat_(sum->room, 3) & ~(uint64_t)3;
    sum->bound = cg_add_sat_(cg_add_sat_(CG_HEADER_BYTES, sum->room), cg_add_sat_(dense, cg_mul_sat_(4, kept)));
    /* as in cg_segments_global_bound_, a section that is cut takes hardly more */
    sum->bound = cg_add_sat_(sum->bound,
        cg_add_sat_(universe ? cg_index_bound_(&any, universe, kept) : 0, cg_mul_sat_(16, sparse_segments)));
    if (any_private && count)
        sum->bound = cg_add_sat_(sum->bound, cg_add_sat_(cg_mul_sat_(4, n), cg_mul_sat_(16, segments)));
    return CG_OK;
}
static cg_status cg_reduce_segments_plan_(
    const void *const *packets, const size_t *lens, size_t count, size_t *bound, size_t *scratch) {
    cg_segments_sum_ sum;
    const cg_status s = cg_segments_sum_plan_(packets, lens, count, &sum);
    *bound = *scratch = 0;
    if (s != CG_OK) return s;
    *bound = cg_size_or_zero_(sum.bound);
    *scratch = cg_size_or_zero_(cg_segments_sum_layout_(&sum, count, NULL));
    return *bound && *scratch ? CG_OK : CG_E_ARG;
}
/* The number of op among the operators of sums, where it is put if it is new; sum->op_cap: there is no room. */
static uint64_t cg_segments_sum_op_(cg_segments_sum_ *sum, const cg_op *op) {
    cg_op same = *op;
    uint64_t j = 0;
    if (cg_has_(op, CG_NEEDS_SUPPORT_)) same.select.size = 0; /* the entry says which support */
    while (j < sum->op_count && !cg_same_stages_(&sum->op[j], &same)) j++;
    if (j == sum->op_count && j < sum->op_cap) sum->op[sum->op_count++] = same;
    return j;
}
static cg_status cg_reduce_segments_(const void *const *packets, const size_t *lens, size_t count, uint8_t *out,
    size_t cap, size_t *len, uint8_t *scratch, size_t scratch_bytes) {
    cg_segments_sum_ sum;
    cg_info whole;
    uint8_t *body = out + CG_HEADER_BYTES, *table, *entries, *at;
    cg_reducer_ reducer;
    cg_plan_ plan;
    uint32_t flags, tensor;
    size_t ops_bytes;
    cg_status s = cg_segments_sum_plan_(packets, lens, count, &sum);
    if (s != CG_OK) return s;
    if (cg_segments_sum_layout_(&sum, count, NULL) > scratch_bytes || cap < CG_HEADER_BYTES ||
        sum.room > cap - CG_HEADER_BYTES)
        return CG_E_CAPACITY;
    cg_segments_sum_layout_(&sum, count, scratch);
    for (size_t j = 0; j < count && s == CG_OK; j++) {
        cg_decoder_ d;
        s = cg_header_get_((const uint8_t *)packets[j], lens[j], &d.info, &d.plan);
        if (s == CG_OK) s = cg_decoder_open_rest_(&d, NULL, packets[j], lens[j], NULL, 1);
        d.plan.traits &= ~(uint32_t)CG_NEEDS_SUPPORT_; /* packets of one support add without it */
        if (s == CG_OK) s = cg_verify_(&d, NULL);
        if (s == CG_OK) s = cg_segments_summand_open_(packets[j], lens[j], &sum.info[j], &sum.cursor[j]);
    }
    if (s != CG_OK) return s;
    whole = sum.info[0];
    flags = (whole.segment_flags & CG_SEGMENTS_TENSORS_) | CG_SEGMENTS_MIXED_;
    tensor = whole.tag.tensor;
    whole.drawn = whole.k = 0;
    whole.threshold = 0.0f;
    table = at = entries = out + (cap - (size_t)sum.room) + 10 + CG_SEGMENT_OP_BYTES_ * (size_t)sum.op_cap;
    for (uint32_t i = 0; i < whole.segments; i++) {
        uint64_t number;
        s = cg_reducer_open_(&reducer, packets, lens, count, 0, sum.cursor);
        if (s == CG_OK) s = cg_reduce_body_(&reducer, body, (size_t)(out + (cap - (size_t)sum.room) - body), sum.lists);
        if (s != CG_OK) return s;
        if (reducer.mode != CG_REDUCE_SPARSE_) reducer.info.index_code = 0;
        number = cg_segments_sum_op_(&sum, &reducer.info.op);
        if (number == sum.op_cap) return CG_E_UNSUPPORTED;
        at = cg_segment_put_(at, &reducer.info, cg_op_traits_(&reducer.info.op),
            number ? (uint32_t)number + CG_SEGMENT_OPS - 1 : (uint32_t)CG_SEGMENT_OP, reducer.info.tag.tensor - tensor,
            flags, 0);
        tensor = reducer.info.tag.tensor + 1;
        body += reducer.info.value_bytes + reducer.info.index_bytes;
        whole.drawn += reducer.info.drawn;
        whole.k += reducer.info.k;
        for (size_t j = 0; j < count; j++) {
            cg_info unused;
            s = cg_segment_next_(&sum.cursor[j], &unused, &plan);
            if (s != CG_OK) return s;
        }
    }
    /* the operators go before the entries, which end where there is room for all */
    ops_bytes = cg_varint_bytes_(sum.op_count - 1) + CG_SEGMENT_OP_BYTES_ * (size_t)(sum.op_count - 1);
    table -= ops_bytes;
    entries = cg_varint_put_(table, sum.op_count - 1);
    for (uint64_t j = 1; j < sum.op_count; j++, entries += CG_SEGMENT_OP_BYTES_)
        for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++)
            cg_stage_put_(entries + 12 * slot, cg_op_stage_const_(&sum.op[j], slot));
    while ((size_t)(at - table) % 4) *at++ = 0;
    memmove(body, table, (size_t)(at - table));
    whole.op = sum.op[0];
    whole.op.k = 0;
    whole.segment_flags = flags;
    whole.value_bytes = (size_t)(body - out) - CG_HEADER_BYTES;
    whole.index_bytes = (size_t)(at - table);
    *len = cg_packet_seal_(&whole, out);
    return CG_OK;
}
static int cg_same_bytes_(const uint8_t *a, const uint8_t *b, size_t bytes) {
    size_t i = 0;
    while (i < bytes && a[i] == b[i]) i++;
    return i == bytes;
}
/* Signs alone: then bodies of equal tables are bits at equal places, and those that fill words are zeros in all. */
static cg_status cg_vote_segments_(
    const void *const *packets, const size_t *lens, size_t count, uint8_t *out, size_t cap, size_t *len) {
    enum { MAX_PACKETS = 1024, TILE = 4096 };
    const cg_kernels_ *kernels = cg_kernels_now_();
    const uint8_t *in[MAX_PACKETS];
    cg_info whole, info;
    cg_plan_ plan;
    cg_segment_cursor_ c;
    cg_status s = CG_OK;
    if (count > MAX_PACKETS) return CG_E_UNSUPPORTED;
    for (size_t j = 0; j < count; j++) {
        const uint8_t *p = (const uint8_t *)packets[j], *first = (const uint8_t *)packets[0];
        cg_decoder_ d;
        s = cg_segments_summand_open_(p, lens[j], &info, &c);
        if (s != CG_OK) return s;
        if (j == 0) whole = info;
        if (info.packet_bytes != whole.packet_bytes || info.value_bytes != whole.value_bytes ||
            info.segment_flags != whole.segment_flags || info.tag.seed != whole.tag.seed ||
            info.tag.step != whole.tag.step || info.tag.tensor != whole.tag.tensor ||
            !cg_same_stages_(&info.op, &whole.op) ||
            !cg_same_bytes_(
                p + CG_HEADER_BYTES + info.value_bytes, first + CG_HEADER_BYTES + info.value_bytes, info.index_bytes))
            return CG_E_MISMATCH;
        while (c.left) {
            cg_info one;
            s = cg_segment_next_(&c, &one, &plan);
            if (s != CG_OK) return s;
            if (!(plan.traits & CG_IS_SIGN_) || plan.traits & (CG_IS_SELECTION_ | CG_IS_PER_RANK_ | CG_IS_MATRIX_))
                return CG_E_UNSUPPORTED;
        }
        s = cg_header_get_(p, lens[j], &d.info, &d.plan);
        if (s == CG_OK) s = cg_decoder_open_rest_(&d, NULL, p, lens[j], NULL, 1);
        if (s == CG_OK) s = cg_verify_(&d, NULL);
        if (s != CG_OK) return s;
        in[j] = p + CG_HEADER_BYTES;
    }
    if (cap < whole.packet_bytes) return CG_E_CAPACITY;
    memcpy(out + CG_HEADER_BYTES + whole.value_bytes, in[0] + whole.value_bytes, whole.index_bytes);
    for (size_t at = 0, many; at < whole.value_bytes; at += many) {
        many = cg_min_(TILE, whole.value_bytes - at);
        CG_KERNEL_(kernels, vote(in, count, many, out + CG_HEADER_BYTES + at));
        for (size_t j = 0; j < count; j++) in[j] += many;
    }
    *len = cg_packet_seal_(&whole, out);
    return CG_OK;
}

/* src/core/sparse.h */
/* sparse: sparse f32 packets as rows of (index, value) pairs, written and read pair by pair

   Offers   a list of pairs in the caller's memory, the packet made of it, and a reader of packets
   Needs    select (cg_list_), indices, packet, decode
   Touches  nothing but its arguments
   Other headers may use: cg_list_append_, cg_list_in_mem_, cg_list_kth_, cg_sparse_packet_bound_,
   cg_sparse_packet_put_, cg_sparse_reader_, cg_sparse_reader_fill_, cg_sparse_reader_open_
   Core has no use for these itself: its selections fill lists by the vector, and its decoders read by the chunk. */

/* Returns the bytes of a list of `capacity` pairs with indices below n, which saturate. mem: an empty list in so many
   bytes (or as many as for a larger n), aligned to 8; NULL: only counts. */
CG_OFFERED_ uint64_t cg_list_in_mem_(cg_list_ *list, void *mem, uint64_t n, uint64_t capacity) {
    const uint64_t bytes = cg_add_sat_(cg_mul_sat_(8, cg_add_sat_(capacity, CG_SLACK_)), 8 * ((n >> 32) + 2));
    if (!mem) return bytes;
    memset(list, 0, sizeof *list);
    list->capacity = (size_t)capacity;
    list->segment_count = n ? ((n - 1) >> 32) + 1 : 1;
    list->segment_start = (uint64_t *)mem;
    memset(list->segment_start, 0, 8 * (size_t)(list->segment_count + 1));
    list->index_low = (uint32_t *)(void *)(list->segment_start + list->segment_count + 1);
    list->value = (float *)(void *)(list->index_low + (size_t)capacity + CG_SLACK_);
    return bytes;
}
/* Indices must ascend; the caller sees to the capacity. */
CG_OFFERED_ void cg_list_append_(cg_list_ *list, uint64_t index, float value) {
    for (uint64_t s = (index >> 32) + 1; s <= list->segment_count; s++) list->segment_start[s] = list->count + 1;
    cg_list_add_(list, (size_t)index, value);
}
/* Magnitude bits of the kth largest value, kth from 1 to list->count; *kth becomes its rank among its equals, the
   number of them that belong to the kth largest. */
CG_OFFERED_ uint32_t cg_list_kth_(const cg_list_ *list, size_t *kth) {
    return cg_kth_(list->value, list->count, kth, 0, CG_INF_BITS_ - 1, cg_both_signs_);
}

/* Bytes of a packet of at most `most` of n values; saturates. */
CG_OFFERED_ uint64_t cg_sparse_packet_bound_(uint64_t n, uint64_t most) {
    const cg_op any = cg_threshold(0.0f);
    if (most > n) most = n;
    return cg_add_sat_(CG_HEADER_BYTES, cg_add_sat_(cg_mul_sat_(4, most), cg_index_bound_(&any, n, most)));
}
/* The list (NULL: nothing) as a packet of cg_threshold(threshold) over n values. CG_E_CAPACITY: cap is too small. */
CG_OFFERED_ cg_status cg_sparse_packet_put_(
    float threshold, const cg_tag *tag, size_t n, const cg_list_ *list, uint8_t *out, size_t cap, size_t *len) {
    cg_info info = CG_ZERO;
    cg_list_ empty = CG_ZERO;
    float no_value = 0.0f;
    empty.value = &no_value;
    info.op = cg_threshold(threshold);
    info.tag = *tag;
    info.n = info.drawn = n;
    return cg_packet_from_list_(&info, list ? list : &empty, out, cap, len);
}

/* Where a reader stands in a packet whose selection has indices of its own. */
typedef struct cg_sparse_reader_ {
    cg_index_reader_ indices;
    const uint8_t *values;        /* f32 packets without a code: little-endian, of the next pair; moved by the caller */
    size_t unread;                /* indices that have not been in the window */
    size_t window_next, window_n; /* the caller's place in the window, and its length */
    uint64_t window[CG_SPARSE_BATCH_]; /* the next indices, one for every value */
} cg_sparse_reader_;

/* At the first pair of an opened packet that has been verified; d->info.k is the number of pairs. */
CG_OFFERED_ void cg_sparse_reader_open_(cg_sparse_reader_ *r, const cg_decoder_ *d) {
    r->indices = cg_index_open_(d->kernels, &d->info, &d->plan, d->index);
    r->values = d->codes;
    r->unread = (size_t)d->info.k;
    r->window_next = r->window_n = 0;
}
/* The next indices into the window; returns how many, 0 at the end. */
CG_OFFERED_ size_t cg_sparse_reader_fill_(cg_sparse_reader_ *r) {
    r->window_next = 0;
    r->window_n = cg_min_(CG_SPARSE_BATCH_, r->unread);
    r->unread -= r->window_n;
    if (r->window_n) cg_index_get_per_value_(&r->indices, r->window, r->window_n);
    return r->window_n;
}

/* src/core/resolve.h */
/* resolve: an operator on n values, resolved once: all that other headers ask of it

   Offers   cg_resolve_
   Needs    stages, plan, rows, compress (bounds), select (cg_scratch_bytes_), layout, reduce (cg_grid_zero_symbol_)
   Touches  nothing
   Other headers may use: cg_resolve_, cg_resolved_
   Traits say what stages are like (CG_IS_F32_ and on, in core/stages.h), the rest what follows from them and n. */

typedef struct cg_resolved_ {
    cg_plan_ plan;
    size_t bound;           /* bytes of any packet; 0: op does not fit n, its codec is not in extra, or they overflow */
    uint64_t scratch_bytes; /* of cg_compress; saturates */
    uint64_t target_k;      /* values that the selection aims at, by its ratio or op.k */
    uint64_t scale_count;   /* without a selection: scales of a packet */
    uint32_t max_level;     /* largest level of a grid around zero, on which packets can be added; 0: there is none */
    int is_unbiased;        /* D(C(x)) is x in expectation */
    int is_nearly_unbiased; /* a selection by chance, and one magnitude for what it has left about equal */
    cg_status extra_status; /* of cg_extra_check_ for op and extra */
    const char *warning;    /* what a report says without error feedback; NULL: nothing is lost for good */
    size_t rows, cols;      /* of the matrix; 0 for other operators and with segments, and so is r */
    unsigned r;             /* columns of the left factor */
    /* With segments: cg_decoder_.segments_hash of their packets; without: 0. The rest is then that of all segments:
       plan.traits those of any, but plan's numbers are those of op on n values; max_level and scale_count are 0 */
    uint64_t segments_hash;
    double inflation[2]; /* with segments: the largest of cg_inflation_ */
} cg_resolved_;

/* What a report says of an operator with a stage that loses a part of the vector for good; NULL: nothing in op needs
   error feedback. */
static const char *cg_biased_why_(const cg_op *op) {
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        const cg_stage *s = cg_op_stage_const_(op, slot);
        const cg_stage_row_ *row = cg_stage_row_of_(slot, s);
        if (row->warning && cg_stage_is_biased_(slot, s)) return row->warning;
    }
    return NULL;
}
/* Is D(C(x)) x in expectation? Levels of a normal distribution are nearly so, after two rounds of rotation. */
static int cg_is_unbiased_(const cg_op *op) {
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++)
        if (cg_stage_is_biased_(slot, cg_op_stage_const_(op, slot))) return 0;
    return !cg_has_(op, CG_WANTS_ROTATION_) || op->transform.arg >= 2;
}
/* A selection by chance leaves magnitudes that are equal, but for the largest: their mean in place of all is nearly
   unbiased, as far as few values are certain to be kept. */
static int cg_is_nearly_unbiased_(const cg_op *op) {
    const cg_stage_row_ *selection = cg_stage_row_of_(CG_SLOT_SELECT_, &op->select);
    const cg_quantizer_ *quantizer = cg_quantizer_of_(&op->quantize);
    cg_op rest = *op;
    rest.quantize = cg_dense().quantize;
    return (selection->traits & (CG_HAS_RATIO_ | CG_IS_BIASED_)) == CG_HAS_RATIO_ && quantizer &&
        quantizer->needs == CG_NEEDS_SUM_AFTERWARDS_ && cg_is_unbiased_(&rest);
}
/* What segments change of *r, which is that of op on n values. */
static void cg_resolve_segments_(const cg_op *op, const cg_extra *extra, size_t n, cg_resolved_ *r) {
    const cg_segments *g = extra->segments;
    r->bound = cg_segments_bound_(op, extra, n);
    r->scratch_bytes = cg_segments_scratch_(op, extra, n);
    r->scale_count = r->max_level = 0;
    r->inflation[0] = r->inflation[1] = 1.0;
    if (!r->bound) return; /* they are refused */
    r->segments_hash = cg_segments_hash_of_(g);
    for (size_t i = 0; i < g->count; i++) {
        const cg_op *one = cg_segment_op_(g, op, i);
        const int is_first = !i || cg_segment_number_(g, i) != cg_segment_number_(g, i - 1);
        const cg_plan_ plan = cg_plan_of_(one, g->n[i]);
        r->plan.traits |= plan.traits;
        for (int residual = 0; residual < 2; residual++)
            r->inflation[residual] = cg_max_f64_(r->inflation[residual], cg_inflation_(one, &plan, residual));
        if (!is_first || one == op) continue;
        r->is_nearly_unbiased = (r->is_nearly_unbiased || r->is_unbiased) &&
            (cg_is_nearly_unbiased_(one) || cg_is_unbiased_(one));
        r->is_unbiased = r->is_unbiased && cg_is_unbiased_(one);
        if (!r->warning) r->warning = cg_biased_why_(one);
    }
}
/* Checks op as one that a caller wants to use, and fills *r in. extra may be NULL. On an error *r is undefined. */
CG_OFFERED_ cg_status cg_resolve_(const cg_op *op, const cg_extra *extra, size_t n, cg_resolved_ *r) {
    const cg_status s = cg_op_check_new_(op);
    cg_layout_ lay;
    unsigned bits;
    memset(r, 0, sizeof *r);
    if (s != CG_OK) return s;
    r->plan = cg_plan_of_(op, n);
    if (!cg_segments_of_(extra) && cg_matrix_shape_fits_(op, n)) r->bound = cg_op_bound_(op, extra, &r->plan);
    r->scratch_bytes = cg_scratch_bytes_(op, &r->plan);
    r->target_k = cg_k_from_ratio_(op->select.value, op->k, n);
    if (cg_layout_make_(op, NULL, r->plan.transformed_n, &lay) == CG_OK) r->scale_count = lay.bucket_count;
    r->max_level = (uint32_t)cg_grid_zero_symbol_(&op->quantize, &bits);
    r->is_unbiased = cg_is_unbiased_(op);
    r->is_nearly_unbiased = cg_is_nearly_unbiased_(op);
    r->extra_status = cg_extra_check_(op, extra);
    r->warning = cg_biased_why_(op);
    if (cg_segments_of_(extra)) {
        cg_resolve_segments_(op, extra, n, r);
        return CG_OK;
    }
    if (!(r->plan.traits & CG_IS_MATRIX_)) return CG_OK;
    r->rows = cg_matrix_rows_(op);
    r->cols = cg_matrix_cols_(op);
    r->r = cg_matrix_r_(op);
    return CG_OK;
}

/* src/core/about.h */
/* about: what an operator does to a vector of n values, before it does it

   Offers   cg_op_about
   Needs    base, stages, plan, packet, compress (sizes, refusals), error, text, traits (cg_biased_why_)
   Touches  *about */

/* Bits of the values and indices of a packet in which count values are kept; for a code of values the most. Of Golomb
   codes the expectation, if each of the universe is an index with the same probability. */
static double cg_body_bits_(const cg_op *op, const cg_plan_ *plan, uint64_t count) {
    cg_layout_ lay;
    uint64_t bytes = 0;
    const uint64_t indices = cg_index_count_(plan, count);
    const uint32_t code = cg_index_code_(op, plan, indices);
    if (cg_layout_sizes_(op, NULL, count, &lay, &bytes) != CG_OK) return -1.0;
    if (code == CG_CODE_GOLOMB && indices) {
        const double share = (double)indices / (double)plan->universe;
        const unsigned b = cg_rice_parameter_(plan->universe, indices);
        double miss = 1.0 - share; /* 2^b times in a row: one more bit. It may be rounded to 1 */
        for (unsigned i = 0; i < b; i++) miss *= miss;
        bytes += cg_word_bytes_((uint64_t)cg_min_f64_(
            (double)indices * ((double)b + 1.0 / (1.0 - miss)), 8.0 * (double)cg_rice_bound_(plan->universe, indices)));
    } else bytes += cg_index_bytes_(code, plan->universe, indices);
    return 8.0 * (double)bytes;
}
/* Values in a packet, of which a selection keeps about so many. */
static uint64_t cg_about_count_(const cg_plan_ *plan, double count) {
    if (!(plan->traits & CG_IS_SELECTION_) || plan->traits & CG_KEEPS_EXACTLY_) return plan->max_selected;
    return (uint64_t)(cg_min_f64_(count, (double)plan->max_selected) + 0.5);
}
/* Bits per value of x, and whether all packets are equally long; count: values that the selection keeps, or -1. */
static void cg_about_size_(const cg_op *op, const cg_plan_ *plan, double count, cg_about *about) {
    const int exact = !cg_has_indices_(plan) || plan->traits & CG_KEEPS_EXACTLY_;
    const uint64_t n = plan->n;
    double bits;
    about->fixed_size = exact && !op->code.arg &&
        !(plan->traits & (CG_IS_USER_CODEC_ | CG_NEEDS_SUPPORT_ | CG_INDEX_LENGTH_VARIES_ | CG_LENGTH_VARIES_));
    about->bits = -1.0;
    if (count < 0.0 || plan->traits & CG_IS_USER_CODEC_) return;
    bits = cg_body_bits_(op, plan, cg_about_count_(plan, count));
    if (plan->traits & CG_IS_PER_RANK_ && n % op->sample.size) { /* a rank may have one value fewer */
        const double share = (double)(n % op->sample.size) / (double)op->sample.size;
        cg_plan_ fewer = *plan;
        double bits_of_fewer;
        fewer.sampled_n--;
        cg_plan_resume_(&fewer, op);
        bits_of_fewer = cg_body_bits_(op, &fewer, cg_about_count_(&fewer, count));
        about->fixed_size = about->fixed_size && bits == bits_of_fewer;
        bits = share * bits + (1.0 - share) * bits_of_fewer;
    }
    about->bits = bits / (double)n;
}
/* Why op cannot have n values, into why; 0: it can. A codec of the caller's is not asked. */
static int cg_about_refusal_(const cg_op *op, size_t n, cg_text_ *why) {
    cg_op known;
    uint64_t need = 0;
    const char *reason;
    memset(&known, 0, sizeof known);
    if (op) known = *op;
    if (op && cg_is_user_codec_(&op->quantize) && cg_op_check_(op) == CG_OK)
        memset(&known.quantize, 0, sizeof known.quantize);
    reason = cg_bound_why_(op ? &known : NULL, NULL, n, &need);
    if (!reason && op) reason = cg_op_only_old_(op);
    if (!reason) return 0;
    cg_text_str_(why, reason);
    if (need) {
        cg_text_str_(why, ": this one takes n = ");
        cg_text_uint_(why, need);
    }
    return 1;
}
static cg_status cg_op_about_(const cg_op *op, size_t n, cg_about *about) {
    cg_plan_ plan;
    cg_error_ e;
    cg_text_ why;
    const char *stalls;
    memset(about, 0, sizeof *about);
    about->omega = about->delta = about->bits = -1.0;
    why.at = about->why;
    why.end = about->why + sizeof about->why - 1;
    if (cg_about_refusal_(op, n, &why)) return op && cg_op_left_out_(op) ? CG_E_VERSION : CG_E_ARG;
    plan = cg_plan_of_(op, n);
    memset(&e, 0, sizeof e);
    if (n) {
        cg_op_error_(op, &plan, &e);
        cg_about_size_(op, &plan, e.count, about);
    } else {
        about->fixed_size = !(plan.traits & CG_IS_USER_CODEC_);
        about->bits = about->fixed_size ? 0.0 : -1.0;
    }
    stalls = e.bound == 0.0 ? NULL : cg_biased_why_(op);
    about->unbiased = !e.is_biased || e.bound == 0.0;
    about->needs_memory = stalls != NULL;
    about->omega = e.bound;
    about->delta = e.bound < 0.0 || e.data_decides ? -1.0 : e.bound < 1.0 ? 1.0 - e.bound : 0.0;
    cg_text_str_(&why,
        stalls ? stalls
            : plan.traits & CG_IS_USER_CODEC_
            ? "ok; a codec of yours makes the values: only you know its error and size"
            : e.bound < 0.0 ? "ok; how large the error is depends on the data"
                            : "ok");
    return CG_OK;
}
CG_API_ cg_status cg_op_about(const cg_op *op, size_t n, cg_about *about) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = about ? cg_op_about_(op, n, about) : CG_E_ARG;
    cg_fenv_leave_(env);
    return s;
}

/* src/core/f16.h */
/* f16: vectors of f16 and bf16 to f32 and back, for callers

   Offers   cg_f16_from_f32, cg_f16_to_f32, cg_bf16_from_f32, cg_bf16_to_f32
   Needs    base, kernels
   Touches  the caller's output
   Kernels read and write halves as the packet has them, little-endian; these functions as the machine has them. */

/* Between little-endian and the byte order of the machine, in place; half may have any alignment. */
static void cg_swap16_(uint16_t *half, size_t n) {
    for (size_t i = 0; CG_BIG_ENDIAN_ && i < n; i++) {
        uint16_t h = cg_get16_((const uint8_t *)half + 2 * i);
        memcpy((uint8_t *)half + 2 * i, &h, 2);
    }
}
CG_API_ void cg_f16_from_f32(const float *x, size_t n, uint16_t *half) {
    cg_fenv_ env = cg_fenv_enter_();
    if (n) CG_KERNEL_(cg_kernels_now_(), f16_encode(x, n, (uint8_t *)half));
    cg_swap16_(half, n);
    cg_fenv_leave_(env);
}
CG_API_ void cg_bf16_from_f32(const float *x, size_t n, uint16_t *half) {
    if (n) CG_KERNEL_(cg_kernels_now_(), bf16_encode(x, n, (uint8_t *)half));
    cg_swap16_(half, n);
}
/* By chunks, as a big-endian machine needs a little-endian copy. */
static void cg_widen_(int is_bf16, const uint16_t *half, size_t n, float *x) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    uint16_t wire[CG_CHUNK_];
    cg_fenv_ env = cg_fenv_enter_();
    for (size_t i = 0, many; i < n; i += many) {
        const uint8_t *in = (const uint8_t *)half + 2 * i;
        many = cg_min_(CG_CHUNK_, n - i);
        if (CG_BIG_ENDIAN_) {
            memcpy(wire, in, 2 * many);
            cg_swap16_(wire, many);
            in = (const uint8_t *)wire;
        }
        if (is_bf16) CG_KERNEL_(kernels, bf16_decode(in, many, cg_at_mut_(x, i), 0));
        else CG_KERNEL_(kernels, f16_decode(in, many, cg_at_mut_(x, i), 0));
    }
    cg_fenv_leave_(env);
}
CG_API_ void cg_f16_to_f32(const uint16_t *half, size_t n, float *x) { cg_widen_(0, half, n, x); }
CG_API_ void cg_bf16_to_f32(const uint16_t *half, size_t n, float *x) { cg_widen_(1, half, n, x); }

/* src/core/status.h */
/* status: what a status code and a report mean, in words, and the version

   Offers   cg_status_str, cg_report_print, cg_version
   Needs    the list of codes in api.h, text
   Touches  the caller's text */

CG_API_ const char *cg_status_str(cg_status status) {
    switch (status) {
#define CG_STATUS_CASE_(name, number, text) \
  case name: return text;
        CG_STATUS_LIST_(CG_STATUS_CASE_)
#undef CG_STATUS_CASE_
    case CG_STATUS_FORCE_INT_: break;
    }
    return "not a cg_status: is it uninitialised?";
}
CG_API_ const char *cg_version(void) { return CG_VERSION_STRING; }

/* Microseconds, if there are any. */
static void cg_text_seconds_(cg_text_ *t, const char *before, double seconds) {
    if (!(seconds > 0.0 && seconds < 1e9)) return;
    cg_text_str_(t, before);
    cg_text_uint_(t, (uint64_t)(seconds * 1e6 + 0.5));
    cg_text_str_(t, " us");
}
/* cap is not 0. */
static cg_status cg_report_print_(const cg_report *r, char *text, size_t cap) {
    const cg_status status = (cg_status)r->status;
    cg_text_ t;
    t.at = text;
    t.end = text + cap;
    if (r->rank >= 0 && status != CG_OK) {
        cg_text_str_(&t, "rank ");
        cg_text_uint_(&t, (uint64_t)r->rank);
        cg_text_str_(&t, ": ");
    }
    cg_text_str_(&t, r->why ? r->why : cg_status_str(status));
    if (r->need && (status == CG_E_CAPACITY || status == CG_E_MEMORY)) {
        cg_text_str_(&t, "; ");
        cg_text_uint_(&t, r->need);
        cg_text_str_(&t, " bytes suffice");
    }
    if (r->need && status == CG_E_ARG) {
        cg_text_str_(&t, "; n must be ");
        cg_text_uint_(&t, r->need);
    }
    if (r->at != CG_NO_INDEX && status == CG_E_NONFINITE) {
        cg_text_str_(&t, "; value ");
        cg_text_uint_(&t, r->at);
        cg_text_str_(&t, " is the first");
    }
    if (r->code) {
        cg_text_str_(&t, "; code ");
        if (r->code < 0) cg_text_char_(&t, '-');
        cg_text_uint_(&t, r->code < 0 ? (uint64_t) - (int64_t)r->code : (uint64_t)r->code);
    }
    if (status == CG_OK && r->choice) {
        cg_text_str_(&t, "; ");
        cg_text_str_(&t, r->choice);
        cg_text_seconds_(&t, ", ", r->seconds);
        if (r->instead) cg_text_str_(&t, "; next ");
        if (r->instead) cg_text_str_(&t, r->instead);
        if (r->instead) cg_text_seconds_(&t, ", ", r->instead_seconds);
    }
    if (t.at < t.end) {
        *t.at = 0;
        return CG_OK;
    }
    text[cap - 1] = 0;
    return CG_E_CAPACITY;
}
CG_API_ cg_status cg_report_print(const cg_report *report, char *text, size_t cap) {
    cg_fenv_ env;
    cg_status s;
    if (text && cap) text[0] = 0;
    if (!report || !text) return CG_E_ARG;
    if (!cap) return CG_E_CAPACITY;
    env = cg_fenv_enter_();
    s = cg_report_print_(report, text, cap);
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
