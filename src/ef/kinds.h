/* kinds: what a row of the table of kinds holds, and the constants of the header

   Offers   cg_ef_has_trait_ and the traits, cg_ef_begins_, cg_ef_has_velocity_, cg_ef_in_place_, cg_ef_decay_;
            constants
   Needs    api; the table itself is in ef/rows.h, behind the functions that its rows name
   Touches  nothing
   Other headers may use: cg_ef_row_at_
   All of them need a description whose kind is in range (cg_ef_check_). */

enum {
    CG_EF_IN_PLACE_ = 1 << 0,            /* p is stored over the residual e; the others make p chunk by chunk */
    CG_EF_HAS_VELOCITY_ = 1 << 1,        /* keeps a second vector: u, or the variance v */
    CG_EF_KEEPS_RECEIVED_ = 1 << 2,      /* keeps the mean that all ranks received: H, or M */
    CG_EF_HAS_SHIFT_ = 1 << 3,           /* p = g - h: vector[0] is a shift h, no residual, and not divided by 1 + w */
    CG_EF_ALLOWS_8BIT_ = 1 << 4,         /* the residual may be kept in 8 bits (desc.bytes) */
    CG_EF_TAKES_MOMENTUM_ = 1 << 5,      /* desc.momentum may be set */
    CG_EF_TAKES_NESTEROV_ = 1 << 6,      /* desc.nesterov may be set */
    CG_EF_HAS_NO_RESIDUAL_ = 1 << 7,     /* vector[0] is a shift or a momentum: nothing to be forgotten or rescaled */
    CG_EF_TAKES_OP_AS_IS_ = 1 << 8,      /* p is not divided by 1 + w, and a sample stays scaled */
    CG_EF_ADDS_VELOCITY_ = 1 << 9,       /* p has u in it */
    CG_EF_ADDS_RECEIVED_ = 1 << 10,      /* p has momentum times M in it */
    CG_EF_MASKS_VELOCITY_ = 1 << 11,     /* where a selection was sent, the velocity starts anew */
    CG_EF_TAKES_VARIANCE_ = 1 << 12,     /* the velocity is a variance: cg_extra.aux gives that of every gradient, it
                                           decays in every step, and starts anew wherever values were sent */
    CG_EF_AVERAGES_GRADIENTS_ = 1 << 13, /* with momentum, the velocity is a running mean of gradients in place of g */
    CG_EF_SHIFTS_BY_ALPHA_ = 1 << 14,    /* a contribution enters h and H times desc.alpha, or 1 / (1 + w) */
    CG_EF_MAY_BE_SILENT_ = 1 << 15,      /* sends a packet only where it moves the model enough (LAQ) */
    CG_EF_KEEPS_NOTHING_ = 1 << 16,      /* has no vector[0]: p is made of the gradient and of what was received */
    CG_EF_UNBIASED_ONLY_ = 1 << 17,      /* nothing would send later what a biased operator drops */
    CG_EF_NEEDS_MOMENTUM_ = 1 << 18,     /* desc.momentum must be set */
    CG_EF_TAKES_MODELS_ = 1 << 19,       /* the vector is a model: it is neither scaled nor clipped, and as long as no
                                            model is known to be common, a step sends all of it */
    CG_EF_COPIES_RECEIVED_ = 1 << 20     /* what was received is equal on all ranks that have any: others copy it */
};
struct cg_ef_step_;
/* Everything of a kind. st has the step's scales; g, e and u are what ef/step.h says. */
typedef struct cg_ef_row_ {
    uint32_t id;
    /* in text, and its parameters there: names of ef/mean_words.h, joined by ':'. The first is also given without its
       name, and must be given if '!' follows it */
    const char *name, *params;
    uint32_t traits;
    float decay;                /* where desc.decay is 0 */
    int velocity_power;         /* the velocity is stored times 1 / (1 + w) to this power */
    float (*sent)(float decay); /* what is taken out of the residual for a contribution, as a part of it */
    /* Sets of p_from_g, p_from_e, e_from_g and e_from_e what differs from g, 1, sent times g, 1; NULL: nothing. Of
       kinds that work in place only e_from_g and e_from_e mean something: e after a rollback (beside u, if p has it).
       */
    void (*coefficients)(struct cg_ef_step_ *st, float decay);
    /* One chunk of a kind that works in place: e becomes p, and u what the kind makes of it; returns |p|^2. first is
       the chunk's place in the vector, g and e point at the chunk itself. NULL: of the other kinds. */
    double (*compensate)(const struct cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e);
    void (*withdraw_velocity)(cg_ef *ef, struct cg_ef_step_ *st); /* as it was before the step; NULL: there is none */
    /* Some values of what was received, up to CG_CHUNK_, and of the mean of contributions: the one becomes what it
       is after the step, the other the result. NULL: the kind keeps nothing that it has received. */
    void (*receive)(const cg_ef *ef, size_t many, float *received, float *mean);
} cg_ef_row_;
static const cg_ef_row_ *cg_ef_row_at_(uint32_t kind); /* in ef/rows.h; NULL: there is no such kind */
#define CG_EF_MAGIC_ 0x66656763u                       /* "cgef", the first bytes of saved state */
#define CG_EF_HUGE_ 1e37f /* from this magnitude on a sum of two values may leave the float range */
enum {
    CG_EF_BUCKET_ = 64,        /* values that share a scale in an 8-bit residual */
    CG_EF_MAX_STAGES_ = 4096,  /* of a warm-up */
    CG_EF_HEADER_BYTES_ = 256, /* of saved state */
    CG_EF_SEAL_OFFSET_ = 240,  /* byte of the checksum in it */
    CG_EF_VERSION_ = 1,        /* of saved state */
    CG_EF_VERSION_MARKED_ = 2, /* with a mark: of kinds that keep what they received */
    CG_EF_MARK_OFFSET_ = 208   /* byte of the mark in it */
};

static const cg_ef_row_ *cg_ef_row_of_(const cg_ef_desc *d) { return cg_ef_row_at_(d->kind); }
static int cg_ef_has_trait_(const cg_ef_desc *d, uint32_t trait) { return (cg_ef_row_of_(d)->traits & trait) != 0; }
/* A step of a model that no rank knows yet: the whole of it is sent. */
static int cg_ef_begins_(const cg_ef *ef) { return cg_ef_has_trait_(&ef->desc, CG_EF_TAKES_MODELS_) && !ef->mark; }
static int cg_ef_has_velocity_(const cg_ef_desc *d) {
    return cg_ef_has_trait_(d, CG_EF_HAS_VELOCITY_) ||
        (cg_ef_has_trait_(d, CG_EF_AVERAGES_GRADIENTS_) && d->momentum != 0.0f);
}
/* Whether p is stored over the residual. An 8-bit residual has no room for p. */
static int cg_ef_in_place_(const cg_ef_desc *d) { return cg_ef_has_trait_(d, CG_EF_IN_PLACE_) && !d->bytes; }
/* CG_E_STATE while a step is pending, and of a state that cg_ef_init has not made: that has no values at all. */
static int cg_ef_is_unready_(const cg_ef *ef) { return ef->pending || !ef->desc.n; }
static float cg_ef_decay_(const cg_ef_desc *d) { return d->decay != 0.0f ? d->decay : cg_ef_row_of_(d)->decay; }
