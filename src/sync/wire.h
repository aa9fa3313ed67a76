/* wire: messages between a server and its workers

   Offers   cg_msg_ and kinds, cg_msg_put_, cg_msg_get_, cg_sync_job_, cg_chain_bytes_
   Needs    base
   Touches  nothing
   A message is a header of 64 bytes and, behind it, a packet, or indices and values:

     byte 0        4        8        16       24        32       40       48       52       56       64
         +---------+--------+--------+--------+---------+--------+--------+--------+--------+--------+--------
         | "cgs1"  | kind   | job    | clock  | version | mark   | number | weight | status | hash   | payload
         +---------+--------+--------+--------+---------+--------+--------+--------+--------+--------+--------

     hello    up    clock: of the pending push or the next one; version and mark: of the model, or number 1: none
     push     up    clock, version of the model, weight; a packet
     leave    up
     welcome  down  clock: that the next push must have; version and mark: where updates will lead
     verdict  down  clock: of the push; number: clock of the next; status: kind of verdict, and cg_status << 8
     update   down  a packet that leads from version - 1 to version; number: the mark before, mark: after
     touched  down  values as they are at version: number of them, status 1 if more come; u32 indices, then f32 values
     dense    down  a packet of the values from number on, at version; the last ends with n
     ask      down  say hello: something that the worker sent could not be read, or its seat was freed
    go       down  clock: the step that may be made now, with the model of version and mark
   The hash is over the 56 bytes before it and, where the payload is no packet, over that. Little-endian. */

#define CG_SYNC_MAGIC_ 0x31736763u /* "cgs1" */
enum {
    CG_MSG_HELLO_ = 1,
    CG_MSG_PUSH_,
    CG_MSG_LEAVE_,
    CG_MSG_WELCOME_ = 16,
    CG_MSG_VERDICT_,
    CG_MSG_UPDATE_,
    CG_MSG_TOUCHED_,
    CG_MSG_DENSE_,
    CG_MSG_GO_,
    CG_MSG_ASK_
};
enum { CG_MSG_BYTES_ = 64, CG_DENSE_PIECE_ = 65536, CG_TOUCHED_PIECE_ = 16384 };
typedef struct cg_msg_ {
    uint32_t kind, status;
    uint64_t clock, version, mark, number;
    float weight;
    const uint8_t *payload;
    size_t payload_len;
} cg_msg_;

/* A hash of bytes[0..len), going on from h. */
static uint64_t cg_chain_bytes_(uint64_t h, const uint8_t *bytes, size_t len) {
    size_t i = 0;
    for (; i + 8 <= len; i += 8) h = cg_mix64_(h + cg_get64_(bytes + i) + CG_GOLDEN_);
    for (; i < len; i++) h = cg_mix64_(h + bytes[i] + 2 * CG_GOLDEN_);
    return h;
}
/* What a server and its workers must have in common. */
static uint64_t cg_sync_job_(uint64_t seed, size_t n) { return cg_mix64_(cg_mix64_(seed + CG_GOLDEN_) ^ n); }
static uint64_t cg_msg_hash_(const uint8_t *bytes, size_t payload_len) {
    const int is_raw = cg_get32_(bytes + 4) == CG_MSG_TOUCHED_;
    return cg_chain_bytes_(cg_chain_bytes_(CG_GOLDEN_, bytes, 56), bytes + CG_MSG_BYTES_, is_raw ? payload_len : 0);
}
/* Writes the header; the payload is there already. */
static size_t cg_msg_put_(uint8_t *out, uint64_t job, const cg_msg_ *m) {
    cg_put32_(out, CG_SYNC_MAGIC_);
    cg_put32_(out + 4, m->kind);
    cg_put64_(out + 8, job);
    cg_put64_(out + 16, m->clock);
    cg_put64_(out + 24, m->version);
    cg_put64_(out + 32, m->mark);
    cg_put64_(out + 40, m->number);
    cg_put32_(out + 48, cg_as_bits_(m->weight));
    cg_put32_(out + 52, m->status);
    cg_put64_(out + 56, cg_msg_hash_(out, m->payload_len));
    return CG_MSG_BYTES_ + m->payload_len;
}
/* NULL, or what is wrong with bytes[0..len); *s becomes the status that goes with it. */
static const char *cg_msg_get_(const void *bytes, size_t len, uint64_t job, cg_msg_ *m, cg_status *s) {
    const uint8_t *p = (const uint8_t *)bytes;
    *s = CG_E_CORRUPT;
    if (!p || len < CG_MSG_BYTES_) return "the message is shorter than a header";
    if (cg_get32_(p) >> 24 != CG_SYNC_MAGIC_ >> 24 && (cg_get32_(p) & 0xffffff) == (CG_SYNC_MAGIC_ & 0xffffff)) {
        *s = CG_E_VERSION;
        return "the message is of another version of this protocol";
    }
    if (cg_get32_(p) != CG_SYNC_MAGIC_) return "the message is none of a server or its workers";
    m->payload = p + CG_MSG_BYTES_;
    m->payload_len = len - CG_MSG_BYTES_;
    if (cg_get64_(p + 56) != cg_msg_hash_(p, m->payload_len)) return "the message did not arrive intact";
    *s = CG_E_MISMATCH;
    if (cg_get64_(p + 8) != job) return "the message is of another job: seed or n differ";
    m->kind = cg_get32_(p + 4);
    m->clock = cg_get64_(p + 16);
    m->version = cg_get64_(p + 24);
    m->mark = cg_get64_(p + 32);
    m->number = cg_get64_(p + 40);
    m->weight = cg_as_float_(cg_get32_(p + 48));
    m->status = cg_get32_(p + 52);
    *s = CG_OK;
    return NULL;
}
