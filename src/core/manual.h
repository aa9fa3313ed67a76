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
