/* compgrad.h - gradient compression in one header.                    version 0.1.0, MIT licence

   One vector, one moment: turn n floats into a small packet and back.

       #define COMPGRAD_IMPLEMENTATION                  // in exactly one .c or .cpp file
       #include "compgrad.h"

       cg_op  op  = cg_then(cg_topk(0.01f), cg_f16());  // the 1 % largest, each as a half float
       cg_tag tag = { 42, step, layer, rank };          // seed, step, tensor, rank
       size_t cap = cg_bound(&op, n), len;
       void  *packet = malloc(cap), *scratch = malloc(cg_scratch(&op, n));

       cg_status s = cg_compress(&op, &tag, grad, n, packet, cap, &len, scratch, cg_scratch(&op, n));
       if (s != CG_OK) { puts(cg_status_str(s)); return 1; }
       // ... send len bytes, receive somebody's packet, add a quarter of what is in it:
       s = cg_decompress_add(packet, len, 0.25f, sum, n);

   THE IDEA. An operator is a row of stages; every named method is a choice in each slot.

       x --> sample --> transform --> select --> quantize --> code --> packet

   cg_then(a, b) fills from b the slots that a left empty, so any sample, any transform, any selection, any
   quantizer and any code combine. The same thing as text: cg_op_parse(&op, "randk:0.1|topk:0.01|absmax:4:512|huffman").

   OPERATORS, as text; as C the same with cg_ in front, e.g. cg_topk(0.01f). In each line: bits per element; U unbiased with
   variance w|x|^2, or B biased with error (1-d)|x|^2 (w, d as known: * for a normal vector, else for any); paper; when to use it.
   B = values to a scale, r = fraction kept, s = levels, n = elements. Add 8*CG_HEADER_BYTES/n bits for the header.

   quantizers
     dense                32             exact                          the default; |huffman: 26 to 28, exact all the same
     f16  bf16            16             B d > 1-2^-22, 1-2^-18         no convergence risk; bf16 if the range matters more
     absmax:b:B           b + 32/B       U w <= B/(4L^2), L = 2^(b-1)-1 (b = 1: w <= B) the workhorse: 8 bits need no memory, 4 bits little
     minmax:b:B           b + 64/B       U w <= B/(2(2^b-1)^2)          values far from symmetric (Suresh 17)
     klevel:b:B           ~2             U w <= B/(2(2^b-1)^2)          the same over sqrt(2)|x|, Huffman coded (Suresh 17)
     flexpoint:b:B flex16 b + 32/B       B d > .9998* at 8 bits         integers that hardware or sums like (Koester 17)
     levels:s[:B] qsgd:s  log2(2s+1)+32/B U w <= min(B/s^2, sqrt(B)/s)  QSGD (Alistarh 17); qsgd: whole vector, Elias omega;
                                                                        :max for max-norm buckets (QSGDinf, CGX)
     terngrad[:clip]      2; |quartic .. U w <= (sqrt(n)-1)/2; clip: B  layer by layer, with cg_extra.scale shared (Wen 17)
     trits:s  threelc:s   <= 1.6         B d = .05* at s = 1            3LC (Lim 19), quartic and zero-run code; with memory
     strom:tau            2              B d by tau, .65* at sigma      fixed threshold (Strom 15, MXNet 2-bit); with memory
     sign                 1              B no magnitude                 majority vote, cg_vote (Bernstein 18)
     efsign               1              B d = |x|_1^2/(n |x|_2^2)      with memory: the best of one bit (Karimireddy 19)
     onebit[:B]           1 + 64/B       B d >= efsign's, .63*          1-bit SGD, two means per column (Seide 14); with memory
     natural              9              U w = 1/8                      no scale, no pass before: exponents (Horvath 19)
     dither:b[:B][:max]   b + 32/B       U w = 1/8 + below the least    natural dithering: fine near zero (Horvath 19)
     dynamic8[:B]         8 + 32/B       B d > .999*                    7 decades in a byte (Dettmers 16)
     e4m3[:B] e5m2[:B]    8 + 32/B       B d > 0.998*, 0.99*            fp8 with a scale; cg_fp8()
     mxe4m3 mxe5m2 mxfp4  8.25, 4.25     B d > .998* .995* .98*         OCP microscaling, as other tools read it
     nf4[:B]              4 + 32/B       B d > 0.99*                    normal quantiles (QLoRA)
     mean                 0              B d = mean^2/mean square       what sbc sends
   rotated: a random rotation makes any vector look normal, so few bits serve all of them
     rotate:1 or 2        (transform)    orthonormal                    before any quantizer; 2 rounds where U is promised
     srq:b                b + 64/1024    U w <= (2 ln 1024 + 2)/(2^b-1)^2 stochastic rotated (Suresh 17)
     drive  eden:b        b + 32/1024    nearly U, w = .571 .133 .0358 .0096* best error per bit, no memory needed (Vargaftik 21, 22);
                                         for b = 1 2 3 4                b in steps of 1/32; b < 1 of a random sample
     dct                  (transform)    orthonormal                    64 neighbours to frequencies, before chunked
   selections: all but wangni are B and need memory; d = share of |x|^2 kept: >= r for topk, mstopk, chunked, >= 0.8 r for dgc, sidco
     topk:r               r(34 - log2 r) B                              the standard (Aji 17, Stich 18); exact, ties to the lowest
     threshold:v          as top-k       B                              you know the scale
     dgc:r  sidco:r       as top-k       B; 0.8 r to 1.3 r are kept     threshold from a sample / from a fit (Lin 18, Abdelmoniem 21)
     mstopk:r             as top-k       B                              30 bisections (Shi 21)
     chunked:C:r          as top-k       B                              the largest of every C (SparseLoCo, DeMo)
     sides:r  side:r      as top-k       B                              above and below zero apart; what adaq and sbc select
     wangni:r wangnivar:e as top-k       U, U w = e                     probabilities by magnitude (Wangni 18)
     bins:B               ..             B; cg_extra.aux: gradient       what adacomp selects (Chen 18)
     variance:a           ..             B; cg_extra.aux: variance       where x^2 > a v (Tsuzuku 18)
     blocks:B             ..             exact                          B values at once, if not all zero (OmniReduce 21)
     given                32 k/n         B; cg_extra.support             somebody else's indices (AR-Top-k, Tyagi 23)
   samples: no indices travel, packets of one key add
     randk:r              32 r           U w = n/k - 1                  (Konecny 16); :unscaled is B with d = r, for memory
     permk:N              32/N           U w = N - 1                    N ranks cover the vector (Szlendak 21)
   compositions that have a name
     stc:r                r(9.1 at 1 %)  B  top-k, one magnitude, Golomb (Sattler 19)
     sbc:r                r(8.1 at 1 %)  B  one side, one mean, Golomb (Sattler 18)
     adaq:r               r(9.6 at 1 %)  B  two sides, two means (Dryden 16)
     adacomp:B            ..             B  bins, one magnitude (Chen 18)
     qsparse:r:s          ..             B  top-k, then QSGD levels (Basu 19)
     cocktail:p:r:b       ..             B  random sample, top-k, levels (Wang 23)
     demo:r               ..             B  frequencies of 64, the largest of them (Peng 24)
   matrices, row-major
     lowrank:k:rows:cols  32k(1/rows+1/cols)  B  one power iteration (PowerSGD, Vogels 19); with memory
     atomo:k:rows:cols    the same            U  k singular triples, drawn by size (Wang 18); takes m^3 steps, m the smaller
                                                 side: 0.3 s for 512, 3 s for 1024
   codes: eliasfano bitmap golomb for indices (default: the shorter of the first two); gamma delta omega huffman quartic for values
   flags: nearest (not at random: B), unscaled, max, clip, norm as above.
   Memory means error feedback: what was not sent is added to the next gradient. A biased operator loses it otherwise. An
   unbiased one with w > 1 expands, and must not be used with memory as it is: take unscaled, or divide by 1 + w.

   MEMORY. The caller owns every buffer; nothing here allocates, and there are no globals but one
   word that caches which SIMD instructions the CPU has. cg_bound(op, n) bytes always suffice for
   a packet and cg_scratch(op, n) bytes for scratch (0 without a selection, a matrix or a codec of yours). Any
   alignment and any n is fine, 0 included. Nothing beyond a stated capacity is ever touched.
   At most 40 KiB of stack, if the compiler optimises.

   ERRORS. Every function that can fail returns a cg_status; 0 is success, and cg_status_str says
   what to do. NaN or Inf in x is refused (CG_E_NONFINITE) before anything can remember it; a
   sampling operator, or `given`, looks only at the values it would send. A packet may be any bytes at all:
   decoding returns an error or a result, never reads or writes out of range, and leaves y as it
   was unless it returns CG_OK (or CG_DECODE_DIRECT allowed otherwise). The checksum finds accidents; it is not what makes decoding safe.

   THREADS. Every function is re-entrant. With COMPGRAD_OPENMP (and -fopenmp) large vectors are
   split by blocks over threads; that changes no bit of any result.

   DETERMINISM. Same input, operator and tag give the same packet and the same floats on every
   CPU, compiler, thread count and byte order. The rounding mode, flush-to-zero and -ffast-math
   of the caller do not matter, and are restored. Random numbers are a function of (tag, index).

   CONFIGURATION, before the include:
     COMPGRAD_IMPLEMENTATION   compile the code here (one file of the program)
     COMPGRAD_STATIC           ... as static functions, private to that file
     COMPGRAD_LINKED           the implementation is in another object of the program: COMPGRAD_IMPLEMENTATION has no effect
     COMPGRAD_NO_SIMD          plain C only
     COMPGRAD_OPENMP           use OpenMP, where the compiler has it on
     COMPGRAD_ASSERT(c)        checks inside the library; default: none
   Needs memcpy, memset and memmove from outside (tcc also its own runtime); works with -ffreestanding.

   THE PACKET, little-endian, no padding but zeros, every section a multiple of 4 bytes:

     byte 0        4  5  6    8                              80       88      96      104
         +---------+--+--+----+------------------------------+--------+--------+--------+
         | "cgpk"  |v |ix| 0  | six stages of 12 bytes each  | n      | drawn  | k      |
         +---------+--+--+----+------------------------------+--------+--------+--------+
        104       112      120    124    128         136         144         148  152        168
         +--------+--------+------+------+-----------+-----------+-----------+----+----------+
         | seed   | step   |tensor| rank | v. bytes  | ix. bytes | threshold | 0  | checksum |
         +--------+--------+------+------+-----------+-----------+-----------+----+----------+
        168
         +----------------+---------------------+----------------------------+
         | scales         | codes               | indices                    |
         +----------------+---------------------+----------------------------+
          <------------- value bytes ----------> <------ index bytes ------->

     v          1, the version of the format
     ix         how indices are written: 0 none, 1 Elias-Fano, 2 bitmap, 3 Golomb-Rice
     stage      id u8, flags u8, arg u16, size u32, value f32: sample, transform, select, quantize,
                code (id: of indices, arg: of values), and one that must be zero
     n          values in x; drawn: what the sample left of them; k: how many were coded. A transform makes `turned` of
                drawn: whole blocks of 1024 or 64, or the factors of a matrix (rows of rank values, then rank rows)
     threshold  smallest magnitude that top-k and its kin kept, else 0
     scales     per bucket f32, or for MX a byte; filled to 4 bytes
     codes      packed: value j at bits [j*b, j*b+b), least significant bit first. natural: per 2048 values the exponents,
                a byte each, then the signs, a bit each. lloyd: per 1024 values first those with the bit more
                with a code: a u32 for every piece of 8192 values (of f32 and bf16: 2048), its form in bits 30..31 (0 packed
                as above, 1 dense, 2 sparse) and its exact length in bits, then the pieces, each in whole u32 words; what
                the forms look like stands at >>codes
     Elias-Fano of k indices below `turned` (or its blocks), l = floor(log2(turned/k)): the k low parts of l bits each, filled
                to 4 bytes; then a bit string with bit (index>>l)+i set for the i-th index, filled to 4 bytes
     bitmap     bit i set if value i is coded
     Golomb     each index as the number of those skipped before it, g: g>>b zeros, a one, the b low bits of g; filled to 4
                bytes; b the least with (1 - k/turned)^(2^b) < (sqrt(5)-1)/2
     checksum   two 64-bit sums over the packet as u32 words w[0..M), the checksum itself as zeros:
                A = sum w[i], B = sum (M-i)*w[i], modulo 2^64. A change within any two words less
                than 16 GiB apart shows (d1+d2 = 0 and (i-j)*d1 = 0 mod 2^64 force d1 = 0), so
                every one- and two-bit error and every burst of up to 33 bits does. */
