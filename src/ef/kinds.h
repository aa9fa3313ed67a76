/* ---- >>kinds: a row each ---- */

enum {
    CG_EF_IN_PLACE_ = 1 /* p takes the error's place */,
    CG_EF_HAS_VELOCITY_ = 2 /* a second vector */,
    CG_EF_KEEPS_RECEIVED_ = 4 /* remembers results */,
    CG_EF_DIFFERENCE_ = 8 /* p = g - h */,
    CG_EF_ALLOWS_8BIT_ = 16 /* may be kept in 8 bits */,
    CG_EF_TAKES_MOMENTUM_ = 32 /* a momentum */
};
typedef struct cg_ef_row_ {
    uint8_t flags;
    float decay;
} cg_ef_row_;
static const cg_ef_row_ cg_ef_rows_[] = {
    /* by cg_ef_kind */
    { CG_EF_IN_PLACE_ | CG_EF_ALLOWS_8BIT_, 1.0f },
    { CG_EF_ALLOWS_8BIT_, 0.8f },
    { CG_EF_ALLOWS_8BIT_, 0.1f },
    { CG_EF_ALLOWS_8BIT_, 0.9f },
    { CG_EF_IN_PLACE_ | CG_EF_HAS_VELOCITY_ | CG_EF_TAKES_MOMENTUM_, 1.0f },
    { CG_EF_IN_PLACE_ | CG_EF_TAKES_MOMENTUM_, 1.0f },
    { CG_EF_IN_PLACE_ | CG_EF_HAS_VELOCITY_, 0.999f },
    { CG_EF_DIFFERENCE_ | CG_EF_KEEPS_RECEIVED_, 1.0f },
    { CG_EF_DIFFERENCE_ | CG_EF_KEEPS_RECEIVED_, 1.0f },
    { CG_EF_DIFFERENCE_ | CG_EF_KEEPS_RECEIVED_, 1.0f },
    { CG_EF_IN_PLACE_ | CG_EF_KEEPS_RECEIVED_ | CG_EF_TAKES_MOMENTUM_, 1.0f },
};
#define CG_EF_MAGIC_ 0x66656763u /* "cgef" */
#define CG_EF_HUGE_ 1e37f        /* from here on sums are watched */
enum {
    CG_EF_BUCKET_ = 64,
    CG_EF_MAX_STAGES_ = 4096,
    CG_EF_HEADER_BYTES_ = 256,
    CG_EF_SEAL_OFFSET_ = 240,
    CG_EF_VERSION_ = 1
};

static const cg_ef_row_ *cg_ef_row_of_(const cg_ef_desc *d) { return &cg_ef_rows_[d->kind]; }
static int cg_ef_has_trait_(const cg_ef_desc *d, int what) { return (cg_ef_row_of_(d)->flags & what) != 0; }
static int cg_ef_has_velocity_(const cg_ef_desc *d) {
    return cg_ef_has_trait_(d, CG_EF_HAS_VELOCITY_) || (d->kind == CG_EF_EF21 && d->momentum != 0.0f);
}
static int cg_ef_in_place_(const cg_ef_desc *d) { return cg_ef_has_trait_(d, CG_EF_IN_PLACE_) && !d->bytes; }
static float cg_ef_decay_(const cg_ef_desc *d) { return d->decay != 0.0f ? d->decay : cg_ef_row_of_(d)->decay; }
