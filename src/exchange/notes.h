/* notes: what ranks tell each other beside packets, and how all of them learn of a failure

   Offers   cg_note_put_, cg_note_get_, verdicts (cg_verdict_begin_, cg_verdict_read_,
            cg_verdict_hear_)
   Needs    collectives, opening (records and hashes)
   Touches  ex->note, ex->mem.sizes; ex->status where a note did not arrive whole, or tells of a failure
   A note has 24 bytes: a number u64, the status u32 of its sender, the rank u32 that the sender blames, and a hash u64
   of these, of the table that stands before the note (scales, lengths, bounds, counts: a multiple of 8 bytes, or none),
   of its sender, and of the round and the exchange that it belongs to. So a note that is damaged, or is another one, is
   not taken for this one.

   One damaged message may neither let a rank wait nor pass for another one. So the length of a message follows from n
   and N, or from records or notes of which every rank has told all others that they arrived whole. That is a verdict:
   an allgather of notes with the status of every rank. Ranks stop only where all see the same reason, after the opening
   (cg_records_check_) and after a verdict; otherwise a rank that has failed takes part, with a failure in place of what
   it would have sent. A verdict that is not whole counts as a yes: if one message is damaged, and that is the one, then
   all that it would speak of is whole. */

/* Rounds that notes belong to; some are followed by a verdict. CG_ROUND_COUNTS_ plus 0 to 3: byte of the threshold. */
enum {
    CG_ROUND_OPENING_ = 1,
    CG_ROUND_SCALES_,
    CG_ROUND_BOUNDS_,
    CG_ROUND_LENGTHS_,
    CG_ROUND_HOP_,
    CG_ROUND_RECEIPT_,
    CG_ROUND_REDUCED_,
    CG_ROUND_CLOSING_,
    CG_ROUND_COUNTS_ = 16,
    CG_ROUND_VERDICT_ = 32
};

static uint64_t cg_note_hash_(const cg_ex_ *ex, const uint8_t *p, size_t table_bytes, uint32_t round, int sender) {
    uint64_t h = cg_hash_bytes_(p, table_bytes + 16);
    h = cg_mix64_(h ^ cg_get64_(ex->opening.record + 16)); /* what all ranks have agreed on */
    h = cg_mix64_(h ^ cg_get64_(ex->opening.record + 24));
    return cg_mix64_(h ^ ((uint64_t)round << 32 | (uint32_t)sender));
}
/* The note behind a table at p. status, blamed: what it tells, 0 and anything if all is well. */
static void cg_note_write_(const cg_ex_ *ex, uint8_t *p, size_t table_bytes, uint64_t number, cg_status status,
    uint32_t blamed, uint32_t round) {
    cg_put64_(p + table_bytes, number);
    cg_put32_(p + table_bytes + 8, (uint32_t)status);
    cg_put32_(p + table_bytes + 12, status == CG_OK ? 0 : blamed);
    cg_put64_(p + table_bytes + 16, cg_note_hash_(ex, p, table_bytes, round, ex->transport.rank));
}
/* The same with this rank's status. If it has failed, number is 0 and the table is zeros. */
static void cg_note_put_(const cg_ex_ *ex, uint8_t *p, size_t table_bytes, uint64_t number, uint32_t round) {
    const int failed = ex->status != CG_OK;
    if (failed) memset(p, 0, table_bytes);
    cg_note_write_(ex, p, table_bytes, failed ? 0 : number, ex->status,
        (uint32_t)(ex->report.rank < 0 ? ex->transport.rank : ex->report.rank), round);
}
static int cg_note_is_whole_(const cg_ex_ *ex, const uint8_t *p, size_t table_bytes, uint32_t round, int from) {
    return cg_get64_(p + table_bytes + 16) == cg_note_hash_(ex, p, table_bytes, round, from);
}
/* Fails ex if the note, which is whole, tells of a failure. */
static void cg_note_hear_(cg_ex_ *ex, const uint8_t *p, size_t table_bytes, int from) {
    const uint32_t status = cg_get32_(p + table_bytes + 8), blamed = cg_get32_(p + table_bytes + 12);
    if (status != CG_OK)
        cg_ex_fail_(ex, CG_E_PEER, blamed < (uint32_t)ex->transport.size ? (int)blamed : from,
            cg_status_str((cg_status)status));
}
/* Returns 1 if the note of rank `from` is whole. Fails ex if it is not, or tells of a failure. */
static int cg_note_get_(cg_ex_ *ex, const uint8_t *p, size_t table_bytes, uint32_t round, int from) {
    if (!cg_note_is_whole_(ex, p, table_bytes, round, from)) {
        cg_ex_fail_(ex, CG_E_CORRUPT, from, "its note did not arrive intact");
        return 0;
    }
    cg_note_hear_(ex, p, table_bytes, from);
    return 1;
}
static uint64_t cg_note_number_(const uint8_t *p) { return cg_get64_(p); }

/* The status of every rank to all ranks; overwrites mem.sizes. */
static void cg_verdict_begin_(cg_ex_ *ex, uint32_t round) {
    cg_note_put_(ex, ex->note.out, 0, 0, round | CG_ROUND_VERDICT_);
    cg_allgather_equal_begin_(ex, ex->note.out, CG_NOTE_BYTES_, ex->note.all);
}
/* Fails ex if the note of rank q says so. */
static void cg_verdict_hear_(cg_ex_ *ex, const uint8_t *note, uint32_t round, int q) {
    if (cg_note_is_whole_(ex, note, 0, round | CG_ROUND_VERDICT_, q)) cg_note_hear_(ex, note, 0, q);
}
/* Returns CG_OK, or a status that is another than CG_OK on all ranks. */
static cg_status cg_verdict_read_(cg_ex_ *ex, uint32_t round) {
    for (int q = 0; q < ex->transport.size; q++) cg_verdict_hear_(ex, cg_gathered_(ex, (size_t)q), round, q);
    return ex->status;
}
