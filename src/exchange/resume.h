/* ---- >>routines: a route reads as one after the other, and comes back to where it waited ---- */

/* A mark is where a routine goes on: 1, 2, 3 ... in the order of its text, so that it does not depend on line numbers.
   What moves two messages waits for the first at mark and for the second at -mark. */
#define CG_ROUTINE_(x)        \
  switch ((x)->line) {        \
  default: return CG_E_STATE; \
  case 0:
#define CG_WAIT_(x, ask, mark) \
  do {                         \
    ask;                       \
    (x)->line = (mark);        \
    return CG_AGAIN;           \
  case (mark):;                \
  } while (0)
#define CG_DO_(x, mark, ask) CG_WAIT_(x, ask, mark)
#define CG_ENDS_ }
/* One packet out and one in; a note goes before them where their lengths are not known. */
#define CG_MOVE_(x, mark, known, out, out_len, to, in, in_len, cap, from) \
  do {                                                                    \
    cg_move_(x, out, out_len, to, in, in_len, cap, from);                 \
    if (!(known)) CG_WAIT_(x, cg_move_note_(x), mark);                    \
    CG_WAIT_(x, cg_move_packet_(x, known), -(mark));                      \
  } while (0)
/* x->result from its root to everybody; known: its length, or 0. */
#define CG_CAST_(x, mark, known, from)                                              \
  do {                                                                              \
    cg_note_put_(x, (x)->note[0], (x)->result_len);                                 \
    if (!(known)) CG_WAIT_(x, cg_ask_cast_(x, (x)->note[0], CG_NOTE_, from), mark); \
    CG_WAIT_(x, cg_cast_packet_(x, known, from), -(mark));                          \
  } while (0)
/* Everybody's x->result, `into`; x->sizes becomes their lengths. */
#define CG_SHARE_(x, mark, known, into)                                                    \
  do {                                                                                     \
    cg_note_put_(x, (x)->note[0], (x)->result_len);                                        \
    if (!(known)) CG_WAIT_(x, cg_ask_equal_(x, (x)->note[0], CG_NOTE_, (x)->notes), mark); \
    CG_WAIT_(x, cg_share_packets_(x, known, into), -(mark));                               \
  } while (0)

static void cg_move_(
    cg_x_ *x, const uint8_t *out, size_t out_len, int to, uint8_t *in, size_t in_len, size_t cap, int from) {
    x->move.out = out;
    x->move.out_len = out_len;
    x->move.to = to;
    x->move.in = in;
    x->move.in_len = in_len;
    x->move.cap = cap;
    x->move.from = from;
}
static void cg_move_note_(cg_x_ *x) {
    cg_note_put_(x, x->note[0], x->move.out_len);
    cg_ask_hop_(x, x->note[0], CG_NOTE_, x->move.to, x->note[1], CG_NOTE_, x->move.from);
}
static void cg_move_packet_(cg_x_ *x, int known) {
    if (known) {
        if (x->status != CG_OK) x->move.out = x->buf[0];
        if (x->move.to >= 0) cg_poison_(x, x->buf[0], x->move.out_len);
        /* what was promised must be sent, whatever has come to light since */
    } else {
        x->move.out_len = (size_t)cg_get64_(x->note[0]);
        x->move.in_len = x->move.from < 0 ? 0 : cg_note_get_(x, x->note[1], x->move.cap, x->move.from);
    }
    cg_ask_hop_(x, x->move.out, x->move.out_len, x->move.to, x->move.in, x->move.in_len, x->move.from);
}
static void cg_cast_packet_(cg_x_ *x, size_t known, int from) {
    if (known) {
        x->result_len = known;
        if (x->transport.rank == from) cg_poison_(x, x->result, known);
    } else {
        x->result_len = cg_note_get_(x, x->note[0], x->result_cap, from);
    }
    cg_ask_cast_(x, x->result, x->result_len, from);
}
/* whose sum a rank has in the end */
static int cg_part_of_(const cg_x_ *x, int rank) { return x->route == CG_ROUTE_RING ? cg_wrap_(x, rank + 1) : rank; }
static size_t cg_known_(const cg_x_ *x, size_t n) { /* length of a result of n values */
    if (x->desc.fold == CG_FOLD_VOTE) return cg_bound_(&x->desc.op, NULL, n);
    if (!x->closed_fixed) return 0;
    return x->exact ? (size_t)cg_dense_bound_(cg_turned_(&x->desc.op, cg_drawn_(&x->desc.op, n, NULL)))
                    : cg_bound_(&x->back, NULL, n);
}
static void cg_share_packets_(cg_x_ *x, int known, uint8_t *into) {
    for (size_t q = 0; q < cg_ranks_(x); q++)
        x->len[q] = known ? cg_known_(x, cg_part_n_(x, cg_part_of_(x, (int)q)))
                          : cg_note_get_(x, cg_gathered_(x, q), x->result_cap, (int)q);
    for (size_t q = 0; q < cg_ranks_(x); q++) x->sizes[q] = x->len[q];
    if (known) cg_poison_(x, x->result, x->len[x->transport.rank]);
    cg_ask_gather_(x, x->result, x->sizes, into);
}
static void cg_find_packets_(cg_x_ *x) { /* after a gather */
    for (size_t q = 0; q < cg_ranks_(x); q++) {
        x->packet[q] = cg_gathered_(x, q);
        x->len[q] = (size_t)x->c.sizes[q];
    }
}
