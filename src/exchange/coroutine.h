/* coroutine: routes as straight code that returns at every message and goes on where it waited

   Offers   CG_CO_BEGIN_ ... CG_CO_END_, CG_CO_AWAIT_, CG_CO_VERDICT_, CG_CO_HOP_, CG_CO_BROADCAST_, CG_CO_ALLGATHER_
   Needs    collectives, packets, notes
   Touches  ex->co.line, ex->hop, ex->note, ex->inputs, ex->reduced.len, ex->mem.sizes
   A coroutine is a function of ex that returns CG_AGAIN while a collective is under way and is called again when that
   is complete. Locals do not outlast a wait, except those computed before CG_CO_BEGIN_, which are computed anew. */

/* resume_line is where the coroutine goes on: 1, 2, 3 ... in the order of its text, not a line of the file. A macro
   that moves a preamble and a packet waits for the packet at -resume_line, and in between at 100 + resume_line. */
#define CG_CO_BEGIN_(ex)      \
  switch ((ex)->co.line) {    \
  default: return CG_E_STATE; \
  case 0:
#define CG_CO_YIELD_(ex, begin_call, resume_line) \
  do {                                            \
    begin_call;                                   \
    (ex)->co.line = (resume_line);                \
    return CG_AGAIN;                              \
  case (resume_line):;                            \
  } while (0)
#define CG_CO_AWAIT_(ex, resume_line, begin_call) CG_CO_YIELD_(ex, begin_call, resume_line)
#define CG_CO_END_ }
/* Returns from the coroutine unless all ranks are well. */
#define CG_CO_VERDICT_(ex, resume_line, round)                     \
  do {                                                             \
    CG_CO_YIELD_(ex, cg_verdict_begin_(ex, round), resume_line);   \
    if (cg_verdict_read_(ex, round) != CG_OK) return (ex)->status; \
  } while (0)
/* One packet out and one in by sendrecv, then ex->hop.in_len is the length of what came. Preambles go before them
   unless len_fixed: both lengths are known to both sides. A preamble is answered by a receipt: if it did not arrive
   whole, its packet is not sent. */
#define CG_CO_HOP_(ex, resume_line, len_fixed, out, out_len, to, in, in_len, cap, from) \
  do {                                                                                  \
    cg_hop_set_(ex, out, out_len, to, in, in_len, cap, from);                           \
    if (!(len_fixed)) {                                                                 \
      CG_CO_YIELD_(ex, cg_hop_preamble_begin_(ex), resume_line);                        \
      CG_CO_YIELD_(ex, cg_hop_receipt_begin_(ex), 100 + (resume_line));                 \
    }                                                                                   \
    CG_CO_YIELD_(ex, cg_hop_packet_begin_(ex, len_fixed), -(resume_line));              \
  } while (0)
/* ex->reduced.packet and its length from rank `from` to everybody. fixed_len: its length, or 0: a preamble and a
   verdict go before it. */
#define CG_CO_BROADCAST_(ex, resume_line, fixed_len, from)                             \
  do {                                                                                 \
    if (!(fixed_len)) {                                                                \
      CG_CO_YIELD_(ex, cg_broadcast_preamble_begin_(ex, from), resume_line);           \
      cg_broadcast_preamble_read_(ex, from);                                           \
      CG_CO_VERDICT_(ex, 100 + (resume_line), CG_ROUND_REDUCED_);                      \
    }                                                                                  \
    CG_CO_YIELD_(ex, cg_broadcast_packet_begin_(ex, fixed_len, from), -(resume_line)); \
  } while (0)
/* Everybody's ex->reduced.packet to everybody, `into` as cg_allgather_begin_ has it; ex->inputs.len and ex->mem.sizes
   become their lengths. len_fixed: all know them (cg_reduced_fixed_len_); otherwise preambles and a verdict go
   before. */
#define CG_CO_ALLGATHER_(ex, resume_line, len_fixed, into)                              \
  do {                                                                                  \
    if (!(len_fixed)) {                                                                 \
      CG_CO_YIELD_(ex, cg_allgather_preambles_begin_(ex), resume_line);                 \
      cg_allgather_preambles_read_(ex);                                                 \
      CG_CO_VERDICT_(ex, 100 + (resume_line), CG_ROUND_REDUCED_);                       \
    }                                                                                   \
    CG_CO_YIELD_(ex, cg_allgather_packets_begin_(ex, len_fixed, into), -(resume_line)); \
  } while (0)

static void cg_hop_set_(
    cg_ex_ *ex, const uint8_t *out, size_t out_len, int to, uint8_t *in, size_t in_len, size_t cap, int from) {
    ex->hop.out = out;
    ex->hop.out_len = out_len;
    ex->hop.to = to;
    ex->hop.in = in;
    ex->hop.in_len = in_len;
    ex->hop.in_cap = cap;
    ex->hop.from = from;
}
/* A rank sends one packet of a stripe, so that its preambles differ by co.i if at all. */
static uint32_t cg_hop_round_(const cg_ex_ *ex, uint32_t round) {
    return ex->plan.stripes > 1 ? round | (uint32_t)ex->co.i << 8 : round;
}
static void cg_hop_preamble_begin_(cg_ex_ *ex) {
    if (ex->status != CG_OK) ex->hop.out_len = 0;
    cg_note_put_(ex, ex->note.out, 0, ex->hop.out_len, cg_hop_round_(ex, CG_ROUND_HOP_));
    cg_sendrecv_begin_(ex, ex->note.out, CG_NOTE_BYTES_, ex->hop.to, ex->note.in, CG_NOTE_BYTES_, ex->hop.from);
}
/* Reads the preamble of hop.from and answers it. */
static void cg_hop_receipt_begin_(cg_ex_ *ex) {
    int whole = 1;
    ex->hop.in_len = 0;
    if (ex->hop.from >= 0) {
        whole = cg_note_get_(ex, ex->note.in, 0, cg_hop_round_(ex, CG_ROUND_HOP_), ex->hop.from) &&
            cg_note_number_(ex->note.in) <= ex->hop.in_cap;
        if (whole) ex->hop.in_len = (size_t)cg_note_number_(ex->note.in);
    }
    cg_note_write_(ex, ex->note.receipt_out, 0, (uint64_t)whole, CG_OK, 0, cg_hop_round_(ex, CG_ROUND_RECEIPT_));
    cg_sendrecv_begin_(
        ex, ex->note.receipt_out, CG_NOTE_BYTES_, ex->hop.from, ex->note.receipt_in, CG_NOTE_BYTES_, ex->hop.to);
}
/* len_fixed: a failed rank sends a failure packet, from partial.buf[0], which has room for it. Otherwise a packet is
   sent as announced, whatever this rank has found out since, unless the receipt says that its preamble was lost. */
static void cg_hop_packet_begin_(cg_ex_ *ex, int len_fixed) {
    if (len_fixed) {
        if (ex->status != CG_OK) ex->hop.out = ex->partial.buf[0];
        if (ex->hop.to >= 0) cg_failure_put_(ex, ex->partial.buf[0], ex->hop.out_len);
    } else if (ex->hop.to >= 0 && !cg_note_number_(ex->note.receipt_in) &&
        cg_note_is_whole_(ex, ex->note.receipt_in, 0, cg_hop_round_(ex, CG_ROUND_RECEIPT_), ex->hop.to)) {
        cg_ex_fail_(ex, CG_E_PEER, ex->hop.to, "a note of this rank did not arrive intact there");
        ex->hop.out_len = 0;
    }
    cg_sendrecv_begin_(ex, ex->hop.out, ex->hop.out_len, ex->hop.to, ex->hop.in, ex->hop.in_len, ex->hop.from);
}
static void cg_broadcast_preamble_begin_(cg_ex_ *ex, int from) {
    if (ex->transport.rank == from) cg_note_put_(ex, ex->note.in, 0, ex->reduced.len, CG_ROUND_REDUCED_);
    cg_broadcast_begin_(ex, ex->note.in, CG_NOTE_BYTES_, from);
}
/* ex->reduced.len = length of the packet that rank `from` or q announces; ex fails if it has failed, or announces more
   than reduced.cap bytes. */
static size_t cg_preamble_read_(cg_ex_ *ex, const uint8_t *note, int from) {
    if (!cg_note_get_(ex, note, 0, CG_ROUND_REDUCED_, from)) return 0;
    if (cg_note_number_(note) <= ex->reduced.cap) return (size_t)cg_note_number_(note);
    cg_ex_fail_(ex, CG_E_CORRUPT, from, "it announces a packet that is too long");
    return 0;
}
static void cg_broadcast_preamble_read_(cg_ex_ *ex, int from) {
    ex->reduced.len = cg_preamble_read_(ex, ex->note.in, from);
}
static void cg_broadcast_packet_begin_(cg_ex_ *ex, size_t fixed_len, int from) {
    if (fixed_len) {
        ex->reduced.len = fixed_len;
        if (ex->transport.rank == from) cg_failure_put_(ex, ex->reduced.packet, fixed_len);
    }
    cg_broadcast_begin_(ex, ex->reduced.packet, ex->reduced.len, from);
}
static void cg_allgather_preambles_begin_(cg_ex_ *ex) {
    cg_note_put_(ex, ex->note.out, 0, ex->reduced.len, CG_ROUND_REDUCED_);
    cg_allgather_equal_begin_(ex, ex->note.out, CG_NOTE_BYTES_, ex->note.all);
}
static void cg_allgather_preambles_read_(cg_ex_ *ex) {
    for (int q = 0; q < ex->transport.size; q++)
        ex->inputs.len[q] = cg_preamble_read_(ex, cg_gathered_(ex, (size_t)q), q);
}
/* The stripe whose sum a rank reduces, or has complete at the end of the ring. */
static int cg_stripe_of_rank_(const cg_ex_ *ex, int rank) {
    return cg_route_has_(ex, CG_ROUTE_HOPS_) ? cg_wrap_(ex, rank + 1) : rank;
}
/* Length of a reduced packet of n values; 0: not known beforehand. */
static size_t cg_reduced_fixed_len_(const cg_ex_ *ex, size_t n) {
    if (cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_)) return cg_bound(&ex->desc.op, n);
    if (!ex->plan.reduced_len_fixed) return 0;
    if (ex->plan.exact && !ex->desc.op.sample.id && !ex->desc.op.transform.id) return (size_t)cg_dense_bound_(n);
    return cg_bound(ex->plan.exact ? &ex->desc.op : &ex->plan.back, n);
}
/* Not len_fixed: ex->inputs.len has the lengths. */
static void cg_allgather_packets_begin_(cg_ex_ *ex, int len_fixed, uint8_t *into) {
    for (int q = 0; len_fixed && q < ex->transport.size; q++)
        ex->inputs.len[q] = cg_reduced_fixed_len_(ex, cg_stripe_n_(ex, cg_stripe_of_rank_(ex, q)));
    for (size_t q = 0; q < cg_ranks_(ex); q++) ex->mem.sizes[q] = ex->inputs.len[q];
    if (len_fixed) cg_failure_put_(ex, ex->reduced.packet, ex->inputs.len[ex->transport.rank]);
    cg_allgather_begin_(ex, ex->reduced.packet, ex->mem.sizes, into);
}
/* The packets of the last allgather become ex->inputs. */
static void cg_inputs_from_gather_(cg_ex_ *ex) {
    for (size_t q = 0; q < cg_ranks_(ex); q++) {
        ex->inputs.packet[q] = cg_gathered_(ex, q);
        ex->inputs.len[q] = (size_t)ex->collective.sizes[q];
    }
}
