/* compgrad_sketch.h - a linear count sketch, heavy hitters, Sketched-SGD and FetchSGD.   part of compgrad, MIT licence

       #define COMPGRAD_IMPLEMENTATION                  // in exactly one .c or .cpp file
       #include "compgrad_sketch.h"                     // includes compgrad_exchange.h and compgrad.h

       cg_sketch_desc d = CG_ZERO;
       d.rows = 5; d.cols = n / 50; d.n = n; d.seed = 42;       // 10 times smaller than the gradient
       cg_sketch s;
       void *mem = malloc(cg_sketch_memory(&d));
       cg_status status = cg_sketch_init(&s, &d, mem, cg_sketch_memory(&d));

       status = cg_sketch_add(&s, grad, n, 1.0f);       // each worker sketches its own gradient;
       status = cg_sketch_merge(&s, &other);            // the sum of two sketches is the sketch of the sum
       status = cg_sketch_heavy(&s, k, index, value, scratch, cg_sketch_heavy_scratch(&s, k));  // its k largest values

   A whole training step of many ranks is one call; sgd and fetch live in memory that you give to their init functions:

       status = cg_sketched_exchange(&sgd, &x, &transport, grad, mem, bytes, &report);     // Sketched-SGD, ARC-Top-k
       status = cg_fetched_exchange(&fetch, &x, &transport, grad, mem, bytes, &report);    // FetchSGD

   WORDS
     coordinate     an element of the vector x, 0 to n-1
     cell           a float of the sketch; there are rows * cols of them, and more with groups
     line           256 consecutive coordinates, which are hashed together
     slot           256 consecutive cells of a row; a line is added to one slot in every row
     heavy hitter   a coordinate whose estimate is large compared with |x|
     group          256, 65536, ... consecutive coordinates, for a search that need not estimate every coordinate

   ESTIMATES. In each row r, coordinate i is added to the cell h_r(i) with the sign s_r(i). Its estimate is the median
   over the rows of s_r(i) times that cell; with an even number of rows, the mean of the two in the middle. With
   cols >= 3/eps^2 and rows >= 8 ln(1/delta) + 1, an estimate is wrong by more than eps |x| with probability at most
   delta (pairwise independence, Charikar 02).

   HASHING. Whole lines move, so that adding a line to a row is one addition of two short vectors. For each row and line
   a 64-bit hash of the seed gives the slot, eight bits that are XORed with the position in the line, and 256 signs.
   Hence in one row
     two coordinates of one line never collide;
     two coordinates of different lines collide with probability 1/cols, whatever their positions: their lines share one
     of cols/256 slots, and in it the two share one of 256 cells;
     each sign is + or - with equal probability, independent of the other signs and of the cells as far as the hash is
     random; cg_sketch_norm relies on this for any four signs.
   cols is rounded up to a multiple of 256; cg_sketch.desc has the rounded value. Since 256 coordinates collide
   together, estimates of a vector whose large values are adjacent are as good on average as with one hash per
   coordinate, but vary more from seed to seed.

   GROUPS. With desc.groups > 0 the heavy hitters of a vector of billions of coordinates are found without estimating
   each of them. For every group of 256, 65536, ... coordinates a sum with random signs and random weights is sketched,
   in `groups` further cells per row and level. A random sum reflects the energy of its group, where a plain sum could
   cancel. The search looks only into groups with enough energy. cg_sketch_heavy searches this way if that is
   cheaper; when fewer than k coordinates are heavy enough it estimates all of them. For a vector that is too long for
   that, call cg_sketch_heavy_above. Both searches find the same coordinates and values as long as the values are above
   about 4 |x| / sqrt(min(cols, groups)).

   MEMORY. You own every buffer, with any alignment; nothing allocates. A sketch needs 4 bytes per cell.

   ERRORS. Arguments are checked before a cell changes: NaN and Inf in x (CG_E_NONFINITE), an index beyond n (CG_E_ARG),
   a sketch or packet of another description (CG_E_MISMATCH). A sum in a cell may become too large for a float: then
   packing the cells returns CG_E_NONFINITE, and so does a search for heavy hitters that meets an estimate or a norm
   that is not finite.

   RESULTS AND THREADS. Cells are f32 sums, added line by line in the given order. A fixed order gives the same bits on
   every machine and at any number of threads; another order of merging may change the last bits, except for small
   integers, whose sums are exact. Every function is re-entrant; use one sketch from one thread at a time. With
   COMPGRAD_OPENMP, adding and estimating use all threads.

   SAVING. cg_sketch_save and cg_sketch_load keep a sketch as an exact packet. cg_sketched and cg_fetched have no
   functions of their own for this: save the arrays error and velocity of a cg_sketched (n floats each), and the
   sketches momentum and error of a cg_fetched.

   FORMAT. A sketch travels as an ordinary packet (compgrad.h) whose vector is its cells: rows * cols cells, row by row,
   then for each level rows * groups cells. The seed in the tag of the packet is a hash of seed, rows, cols, n and
   groups. */
