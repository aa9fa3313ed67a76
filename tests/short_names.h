/* Short names of routes, folds and flags, for tables of tests that list many exchanges. */
#ifndef SHORT_NAMES_H
#define SHORT_NAMES_H

enum {
    AUTO = CG_ROUTE_AUTO,
    AG = CG_ROUTE_ALLGATHER,
    RING = CG_ROUTE_RING,
    TREE = CG_ROUTE_TREE,
    SCATTER = CG_ROUTE_SCATTER,
    SERVER = CG_ROUTE_SERVER,
    MERGE = CG_ROUTE_MERGE,
    SHARED = CG_ROUTE_SHARED,
    REGION = CG_ROUTE_REGION,
    LINEAR = CG_ROUTE_LINEAR
};
enum {
    SUM = CG_FOLD_SUM,
    VOTE = CG_FOLD_VOTE,
    SOME = CG_FOLD_CONTRIBUTORS,
    AGREE = CG_AGREE_SCALES,
    SCORE = CG_LEADER_BY_SCORE
};

#endif
