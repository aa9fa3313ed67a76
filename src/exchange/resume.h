/* ---- >>routines: a route reads as one after the other, and comes back to where it waited ---- */

/* A mark is where a routine goes on: 1, 2, 3 ... in the order of its text, so that it does not depend on line numbers.
   What moves two messages waits for the first at mark and for the second at -mark. */
#define CG_CO_BEGIN_(x)       \
  switch ((x)->line) {        \
  default: return CG_E_STATE; \
  case 0:
#define CG_CO_YIELD_(x, ask, mark) \
  do {                             \
    ask;                           \
    (x)->line = (mark);            \
    return CG_AGAIN;               \
  case (mark):;                    \
  } while (0)
#define CG_CO_AWAIT_(x, mark, ask) CG_CO_YIELD_(x, ask, mark)
#define CG_CO_END_ }
/* One packet out and one in; a note goes before them where their lengths are not known. */
#define CG_CO_HOP_(x, mark, known, out, out_len, to, in, in_len, cap, from) \
  do {                                                                      \
    cg_hop_set_(x, out, out_len, to, in, in_len, cap, from);                \
    if (!(known)) CG_CO_YIELD_(x, cg_hop_preamble_begin_(x), mark);         \
    CG_CO_YIELD_(x, cg_hop_packet_begin_(x, known), -(mark));               \
  } while (0)
/* x->result from its root to everybody; known: its length, or 0. */
#define CG_CO_BROADCAST_(x, mark, known, from)                                                           \
  do {                                                                                                   \
    cg_preamble_put_(x, (x)->note[0], (x)->result_len);                                                  \
    if (!(known)) CG_CO_YIELD_(x, cg_broadcast_begin_(x, (x)->note[0], CG_PREAMBLE_BYTES_, from), mark); \
    CG_CO_YIELD_(x, cg_broadcast_packet_begin_(x, known, from), -(mark));                                \
  } while (0)
/* Everybody's x->result, `into`; x->sizes becomes their lengths. */
#define CG_CO_ALLGATHER_(x, mark, known, into)                                                                       \
  do {                                                                                                               \
    cg_preamble_put_(x, (x)->note[0], (x)->result_len);                                                              \
    if (!(known)) CG_CO_YIELD_(x, cg_allgather_equal_begin_(x, (x)->note[0], CG_PREAMBLE_BYTES_, (x)->notes), mark); \
    CG_CO_YIELD_(x, cg_allgather_packets_begin_(x, known, into), -(mark));                                           \
  } while (0)

static void cg_hop_set_(
    cg_ex_ *x, const uint8_t *out, size_t out_len, int to, uint8_t *in, size_t in_len, size_t cap, int from) {
    x->move.out = out;
    x->move.out_len = out_len;
    x->move.to = to;
    x->move.in = in;
    x->move.in_len = in_len;
    x->move.cap = cap;
    x->move.from = from;
}
static void cg_hop_preamble_begin_(cg_ex_ *x) {
    cg_preamble_put_(x, x->note[0], x->move.out_len);
    cg_sendrecv_begin_(x, x->note[0], CG_PREAMBLE_BYTES_, x->move.to, x->note[1], CG_PREAMBLE_BYTES_, x->move.from);
}
static void cg_hop_packet_begin_(cg_ex_ *x, int known) {
    if (known) {
        if (x->status != CG_OK) x->move.out = x->buf[0];
        if (x->move.to >= 0) cg_failure_put_(x, x->buf[0], x->move.out_len);
        /* what was promised must be sent, whatever has come to light since */
    } else {
        x->move.out_len = (size_t)cg_get64_(x->note[0]);
        x->move.in_len = x->move.from < 0 ? 0 : cg_preamble_get_(x, x->note[1], x->move.cap, x->move.from);
    }
    cg_sendrecv_begin_(x, x->move.out, x->move.out_len, x->move.to, x->move.in, x->move.in_len, x->move.from);
}
static void cg_broadcast_packet_begin_(cg_ex_ *x, size_t known, int from) {
    if (known) {
        x->result_len = known;
        if (x->transport.rank == from) cg_failure_put_(x, x->result, known);
    } else {
        x->result_len = cg_preamble_get_(x, x->note[0], x->result_cap, from);
    }
    cg_broadcast_begin_(x, x->result, x->result_len, from);
}
/* whose sum a rank has in the end */
static int cg_stripe_of_rank_(const cg_ex_ *x, int rank) {
    return x->route == CG_ROUTE_RING ? cg_wrap_(x, rank + 1) : rank;
}
static size_t cg_reduced_fixed_len_(const cg_ex_ *x, size_t n) { /* length of a result of n values */
    if (x->desc.fold == CG_FOLD_VOTE) return cg_bound_(&x->desc.op, NULL, n);
    if (!x->closed_fixed) return 0;
    return x->exact ? (size_t)cg_dense_bound_(cg_transformed_n_(&x->desc.op, cg_sampled_n_(&x->desc.op, n, NULL)))
                    : cg_bound_(&x->back, NULL, n);
}
static void cg_allgather_packets_begin_(cg_ex_ *x, int known, uint8_t *into) {
    for (size_t q = 0; q < cg_ranks_(x); q++)
        x->len[q] = known ? cg_reduced_fixed_len_(x, cg_stripe_n_(x, cg_stripe_of_rank_(x, (int)q)))
                          : cg_preamble_get_(x, cg_gathered_(x, q), x->result_cap, (int)q);
    for (size_t q = 0; q < cg_ranks_(x); q++) x->sizes[q] = x->len[q];
    if (known) cg_failure_put_(x, x->result, x->len[x->transport.rank]);
    cg_allgather_begin_(x, x->result, x->sizes, into);
}
static void cg_inputs_from_gather_(cg_ex_ *x) { /* after a gather */
    for (size_t q = 0; q < cg_ranks_(x); q++) {
        x->packet[q] = cg_gathered_(x, q);
        x->len[q] = (size_t)x->c.sizes[q];
    }
}
