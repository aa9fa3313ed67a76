/* compgrad_sketch.h - a linear count sketch, heavy hitters, Sketched-SGD and FetchSGD.    part of compgrad, MIT licence

       #define COMPGRAD_IMPLEMENTATION                  // in exactly one .c or .cpp file
       #include "compgrad_sketch.h"                     // brings compgrad_exchange.h and compgrad.h with it

       cg_sketch_desc d = CG_ZERO;
       d.rows = 5; d.cols = n / 50; d.n = n; d.seed = 42;       // 10 times smaller than the gradient
       cg_sketch s;
       void *mem = malloc(cg_sketch_memory(&d));
       cg_status status = cg_sketch_init(&s, &d, mem, cg_sketch_memory(&d));

       status = cg_sketch_add(&s, grad, n, 1.0f);       // sketches of one description add: workers sketch, sums of sketches are
       status = cg_sketch_merge(&s, &other);            // sketches of sums
       status = cg_sketch_heavy(&s, k, index, value, scratch, cg_sketch_heavy_scratch(&s, k));      // its k largest coordinates

   One call for a training step of many ranks, each with all its memory in what you give it:

       status = cg_sketched_exchange(&sgd, &x, &transport, grad, mem, bytes, &report);     // Sketched-SGD, or agreed indices (ARC-Top-k)
       status = cg_fetched_exchange(&fetch, &x, &transport, grad, mem, bytes, &report);    // FetchSGD

   WHAT IT DOES. Every row r has cols cells. Coordinate i is added to cell h_r(i) with sign s_r(i); its estimate is the median over
   rows of s_r(i) times that cell (of an even number of rows, the mean of the two in the middle).

   HASHING. Neighbours move together, in lines of 256, so that a row costs no more than an addition: row and line give (by a 64-bit
   hash of the seed) a line of cells, eight bits that are XORed to the place in the line, and 256 signs. So in a row
     two coordinates of one line never collide;
     two of different lines do with probability 1/cols (cols/256 lines, 256 places), wherever they stand in theirs;
     signs are + or - with equal probability, and independent of each other and of the cells, as far as the hash is random; the
     norm below needs that of four at a time.
   cols is rounded up to a multiple of 256 (see cg_sketch.desc). Collisions come 256 at a time: on vectors whose large values stand together
   estimates are as good in the mean as with a hash per coordinate, but vary more from seed to seed.
   With cols >= 3/e^2 and rows >= 8 ln(1/d) + 1 an estimate is off by more than e |x| with probability d at most (two-wise; Charikar 02).

   GROUPS. desc.groups cells per row and level (0: none) find heavy hitters without looking at every coordinate, for vectors of
   billions: a sum of every 256, 65536, ... coordinates, with random signs and sizes, is sketched too, in a cell of its own (a plain sum
   could cancel, a random one has the group's energy), and only groups with enough energy are looked into. cg_sketch_heavy does so
   by itself where that is cheaper (if fewer than k are that heavy it looks at all: of vectors that are too long for it ask
   cg_sketch_heavy_above). What it finds are the same coordinates and values, as long as those are above about
   4 |x| / sqrt(min(cols, groups)).

   NUMBERS. Sums are f32, line after line in the order given: small integers add exactly, in any order of merging; otherwise the order
   decides the last bits, and a fixed order gives the same bits on every machine and at any number of threads. NaN and Inf are
   refused; if a cell's sum becomes too large for a float, heavy and pack return CG_E_NONFINITE. With COMPGRAD_OPENMP adding and estimating use all threads. MEMORY is the caller's, any alignment; nothing allocates. */
