/* robust: folds that a minority of ranks cannot spoil, whatever it sends: median, trimmed mean, mean of clipped norms

   Offers   cg_robust_fold_, cg_robust_plan_, the folds' functions cg_fold_median_, cg_fold_trimmed_, cg_fold_clipped_
            and refusals
   Needs    ranks, routes, memory, packets, core's decode
   Touches  ex->mem.rows and norms
   Other headers may use: cg_rows_trim_
   All packets are decoded, a row of n floats for each rank, and the result takes the place of the first row. A sum in
   double over the ranks, in an order that values or ranks fix, so that all ranks have the same bits. */

/* Columns that are sorted together, so that a compare-exchange is a loop over neighbours. */
enum { CG_COLUMNS_ = 64 };

/* How many ranks the trimmed mean leaves out at each end. */
static size_t cg_trim_count_(const cg_ex_ *ex) {
    const double share = ex->desc.fold_limit != 0.0f ? (double)ex->desc.fold_limit : 0.25;
    const size_t ranks = cg_ranks_(ex), cut = (size_t)cg_times64_(share, (double)ranks);
    return cut || ranks < 3 ? cut : 1;
}
static void cg_robust_plan_(cg_ex_ *ex, cg_arena_ *arena) {
    const uint64_t size = (uint64_t)ex->transport.size;
    if (!cg_fold_row_of_(ex->desc.fold)->combine) return;
    ex->mem.rows = (float *)(void *)cg_arena_take_(arena, cg_mul_sat_(size, cg_mul_sat_(4, ex->n)));
    ex->mem.norms = (double *)(void *)cg_arena_take_(arena, cg_mul_sat_(size, 2 * sizeof(double)));
}
/* Sorts the columns of `many` <= CG_COLUMNS_ neighbours, beginning at first: row 0 gets the smallest. Batcher's merge
   exchange, which compares the same pairs whatever the values are. */
static void cg_columns_sort_(float *rows, size_t n, size_t ranks, size_t first, size_t many) {
    size_t top = 1;
    while (top < ranks) top *= 2;
    for (size_t p = top / 2; p; p /= 2)
        for (size_t q = top / 2, r = 0, d = p;; d = q - p, q /= 2, r = p) {
            for (size_t i = 0; i + d < ranks; i++)
                if ((i & p) == r) {
                    float *a = rows + i * n + first, *b = a + d * n;
                    for (size_t j = 0; j < many; j++) {
                        const float x = a[j], y = b[j];
                        a[j] = y < x ? y : x;
                        b[j] = y < x ? x : y;
                    }
                }
            if (q == p) break;
        }
}
/* row 0 = the mean of ranks [cut, ranks - cut) of the sorted columns. */
static void cg_rows_trim_(float *rows, size_t n, size_t ranks, size_t cut) {
    for (size_t first = 0, many; first < n; first += many) {
        double sum[CG_COLUMNS_] = { 0.0 };
        many = cg_min_(CG_COLUMNS_, n - first);
        cg_columns_sort_(rows, n, ranks, first, many);
        for (size_t r = cut; r < ranks - cut; r++)
            for (size_t j = 0; j < many; j++) sum[j] += (double)rows[r * n + first + j];
        for (size_t j = 0; j < many; j++) rows[first + j] = (float)(sum[j] / (double)(ranks - 2 * cut));
    }
}
static void cg_fold_median_(cg_ex_ *ex, size_t n) {
    cg_rows_trim_(ex->mem.rows, n, cg_ranks_(ex), (cg_ranks_(ex) - 1) / 2);
}
static void cg_fold_trimmed_(cg_ex_ *ex, size_t n) {
    cg_rows_trim_(ex->mem.rows, n, cg_ranks_(ex), cg_trim_count_(ex));
}
/* |v|, summed in 16 lanes. */
static double cg_row_norm_(const float *v, size_t n) {
    double lanes[16] = { 0.0 }, sum = 0.0;
    for (size_t i = 0; i < n; i++) lanes[i % 16] += cg_times64_((double)v[i], (double)v[i]);
    for (size_t l = 0; l < 16; l++) sum += lanes[l];
    return cg_sqrt_(sum);
}
/* norms[r] = the factor that brings row r to at most fold_limit times the median of the norms, of an even number of
   them the smaller one in the middle. */
static void cg_clip_factors_(cg_ex_ *ex, size_t n) {
    const size_t ranks = cg_ranks_(ex);
    double *norms = ex->mem.norms, *sorted = norms + ranks, longest;
    for (size_t r = 0; r < ranks; r++) {
        size_t i = r;
        norms[r] = cg_row_norm_(ex->mem.rows + r * n, n);
        for (; i && sorted[i - 1] > norms[r]; i--) sorted[i] = sorted[i - 1];
        sorted[i] = norms[r];
    }
    longest = cg_times64_(ex->desc.fold_limit != 0.0f ? (double)ex->desc.fold_limit : 1.0, sorted[(ranks - 1) / 2]);
    for (size_t r = 0; r < ranks; r++) norms[r] = norms[r] > longest ? longest / norms[r] : 1.0;
}
static void cg_fold_clipped_(cg_ex_ *ex, size_t n) {
    const size_t ranks = cg_ranks_(ex);
    float *rows = ex->mem.rows;
    cg_clip_factors_(ex, n);
    for (size_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (size_t r = 0; r < ranks; r++) sum += cg_times64_(ex->mem.norms[r], (double)rows[r * n + i]);
        rows[i] = cg_saturate64_(sum / (double)ranks);
    }
}
/* ex->mem.rows = the fold of ex->inputs, n floats: the inputs have been verified, and are opened if ex says so. */
static cg_status cg_robust_fold_(cg_ex_ *ex, size_t n) {
    const cg_extra side = cg_decode_extra_(ex);
    cg_status s = CG_OK;
    for (size_t q = 0; q < cg_ranks_(ex) && s == CG_OK; q++) {
        float *row = n ? ex->mem.rows + q * n : NULL;
        if (!ex->inputs.opened) s = cg_ex_decode_(ex, ex->inputs.packet[q], ex->inputs.len[q], 1.0f, 0.0f, row, n);
        else s = cg_packet_decode_(&ex->inputs.decoder[q], &side, 1.0f, 0.0f, row, NULL, 1);
    }
    if (s == CG_OK && n) cg_fold_row_of_(ex->desc.fold)->combine(ex, n);
    return s;
}
/* What all robust folds refuse, as a sentence; limit: what fold_limit has to stay below. */
static const char *cg_refuse_robust_(const cg_ex_ *ex, float limit, const char *range) {
    if (!cg_route_has_(ex, CG_ROUTE_PACKETS_MEET_) || cg_route_has_(ex, CG_ROUTE_STRIPES_))
        return "a robust fold compares whole vectors of all ranks on one rank: take allgather or server";
    if (ex->desc.weight != 0.0f) return "a robust fold has no weights: a rank that lies would choose a large one";
    if (!(ex->desc.fold_limit >= 0.0f) || !(ex->desc.fold_limit < limit)) return range;
    return NULL;
}
/* Columns are compared, so every rank has to have sent something in each of them. */
static const char *cg_refuse_sorted_(const cg_ex_ *ex, float limit, const char *range) {
    if (ex->plan.traits & (CG_IS_SELECTION_ | CG_IS_PER_RANK_) ||
        (ex->plan.traits & CG_IS_PRIVATE_ && ex->desc.op.sample.id))
        return "where most ranks have sent nothing, the median and the trimmed mean are 0: take an operator that sends "
               "the same places on all ranks, or the fold clipped";
    return cg_refuse_robust_(ex, limit, range);
}
static const char *cg_refuse_median_(const cg_ex_ *ex) {
    return cg_refuse_sorted_(ex, 1e-45f, "the median has no limit: fold_limit must be 0");
}
static const char *cg_refuse_trimmed_(const cg_ex_ *ex) {
    if (ex->transport.size < 3) return "a trimmed mean needs 3 ranks or more: the largest and the smallest value go";
    return cg_refuse_sorted_(ex, 0.5f, "fold_limit of a trimmed mean, the share cut at each end, must be below 0.5");
}
static const char *cg_refuse_clipped_(const cg_ex_ *ex) {
    return cg_refuse_robust_(ex, CG_FLT_MAX_,
        "fold_limit, the multiple of the median norm, must be finite, and not "
        "negative");
}
