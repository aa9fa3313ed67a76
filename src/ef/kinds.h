/* kinds: the kinds of error feedback, one row of traits each, and the constants of the header

   Offers   cg_ef_has_trait_ and the traits, cg_ef_has_velocity_, cg_ef_in_place_, cg_ef_decay_; constants
   Needs    api
   Touches  nothing
   All of them need a description whose kind is in range (cg_ef_check_). */

enum {
    CG_EF_IN_PLACE_ = 1,       /* p is stored over the residual e; the others make p chunk by chunk */
    CG_EF_HAS_VELOCITY_ = 2,   /* keeps a second vector: u, or the variance v */
    CG_EF_KEEPS_RECEIVED_ = 4, /* keeps the mean that all ranks received: H, or M */
    CG_EF_DIFFERENCE_ = 8,     /* p = g - h: vector[0] is a shift h, no residual, and not divided by 1 + w */
    CG_EF_ALLOWS_8BIT_ = 16,   /* the residual may be kept in 8 bits (desc.bytes) */
    CG_EF_TAKES_MOMENTUM_ = 32 /* desc.momentum may be set; EF21 takes one as well, and then has a velocity */
};
typedef struct cg_ef_row_ {
    uint8_t flags; /* traits, CG_EF_IN_PLACE_ and on */
    float decay;   /* where desc.decay is 0 */
} cg_ef_row_;
/* clang-format off */
static const cg_ef_row_ cg_ef_rows_[] = { /* by cg_ef_kind */
    /* CLASSIC     */ { CG_EF_IN_PLACE_ | CG_EF_ALLOWS_8BIT_, 1.0f },
    /* LOCO        */ { CG_EF_ALLOWS_8BIT_, 0.8f },
    /* SCALECOM    */ { CG_EF_ALLOWS_8BIT_, 0.1f },
    /* ECQ         */ { CG_EF_ALLOWS_8BIT_, 0.9f },
    /* MOMENTUM    */ { CG_EF_IN_PLACE_ | CG_EF_HAS_VELOCITY_ | CG_EF_TAKES_MOMENTUM_, 1.0f },
    /* SIGNUM      */ { CG_EF_IN_PLACE_ | CG_EF_TAKES_MOMENTUM_, 1.0f },
    /* VARIANCE    */ { CG_EF_IN_PLACE_ | CG_EF_HAS_VELOCITY_, 0.999f },
    /* EF21        */ { CG_EF_DIFFERENCE_ | CG_EF_KEEPS_RECEIVED_, 1.0f },
    /* DIANA       */ { CG_EF_DIFFERENCE_ | CG_EF_KEEPS_RECEIVED_, 1.0f },
    /* LAQ         */ { CG_EF_DIFFERENCE_ | CG_EF_KEEPS_RECEIVED_, 1.0f },
    /* ONEBIT_ADAM */ { CG_EF_IN_PLACE_ | CG_EF_KEEPS_RECEIVED_ | CG_EF_TAKES_MOMENTUM_, 1.0f },
};
/* clang-format on */
#define CG_EF_MAGIC_ 0x66656763u /* "cgef", the first bytes of saved state */
#define CG_EF_HUGE_ 1e37f        /* from this magnitude on a sum of two values may leave the float range */
enum {
    CG_EF_BUCKET_ = 64,        /* values that share a scale in an 8-bit residual */
    CG_EF_MAX_STAGES_ = 4096,  /* of a warm-up */
    CG_EF_HEADER_BYTES_ = 256, /* of saved state */
    CG_EF_SEAL_OFFSET_ = 240,  /* byte of the checksum in it */
    CG_EF_VERSION_ = 1,        /* of saved state */
    CG_EF_VERSION_MARKED_ = 2, /* with a mark: of kinds that keep what they received */
    CG_EF_MARK_OFFSET_ = 208   /* byte of the mark in it */
};

static const cg_ef_row_ *cg_ef_row_of_(const cg_ef_desc *d) { return &cg_ef_rows_[d->kind]; }
static int cg_ef_has_trait_(const cg_ef_desc *d, int trait) { return (cg_ef_row_of_(d)->flags & trait) != 0; }
static int cg_ef_has_velocity_(const cg_ef_desc *d) {
    return cg_ef_has_trait_(d, CG_EF_HAS_VELOCITY_) || (d->kind == CG_EF_EF21 && d->momentum != 0.0f);
}
/* Whether p is stored over the residual. An 8-bit residual has no room for p. */
static int cg_ef_in_place_(const cg_ef_desc *d) { return cg_ef_has_trait_(d, CG_EF_IN_PLACE_) && !d->bytes; }
/* CG_E_STATE while a step is pending, and of a state that cg_ef_init has not made: that has no values at all. */
static int cg_ef_is_unready_(const cg_ef *ef) { return ef->pending || !ef->desc.n; }
static float cg_ef_decay_(const cg_ef_desc *d) { return d->decay != 0.0f ? d->decay : cg_ef_row_of_(d)->decay; }
