/* make test runs every test function, on as little as shows that it would fail; make test-long, which has CG_TEST=long
   in the environment, all repetitions and sizes. */
#ifndef TIER_H
#define TIER_H

#include <stdlib.h>
#include <string.h>

static int long_test(void) {
    static int known; /* 1: short, 2: long */
    const char *tier = known ? NULL : getenv("CG_TEST");
    if (!known) known = tier && !strcmp(tier, "long") ? 2 : 1;
    return known == 2;
}

#ifdef TIER_SPARED
/* Of cases that are alike a short test takes one in so many, a number that has no factor in common with the loops
   around it, so that every value of every loop has its turn. 1: leave this one out. */
static int spared(unsigned *turn, unsigned one_in) { return !long_test() && (*turn)++ % one_in; }
#endif

#endif
