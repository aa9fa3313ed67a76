/* Every route against its formula, written here in the plainest C from packets that cg_compress makes: N ranks in
   one thread (sim.h). What is trusted is cg_compress and cg_decode of one vector; what is tested is who adds what,
   in which order, and what is reported. */
#define COMPGRAD_IMPLEMENTATION
#include "sim.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"
#define TIER_SPARED
#include "tier.h"

static int quick; /* not CG_TEST=long */
static char note[320];

enum { MOST = 16, GUARD = 64, N_OPS_MATRIX = 2000 };
/* allgather, ring, tree, scatter, server, merge, shared, region, linear */
static const char ROUTES[] = "-grtcsmhol";
static const char *const ROUTE_NAMES[] = { "auto", "allgather", "ring", "tree", "scatter", "server", "merge", "shared",
    "region", "linear" };

#define TRY(call)              \
  do {                         \
    const char *why_ = (call); \
    if (why_) FAILm(why_);     \
  } while (0)

/* ---- an operator of the user's own: bytes, in units of stage->value ---- */

static size_t bytes_bound(const cg_codec *self, const cg_stage *stage, size_t n) {
    (void)self;
    return stage->value > 0.0f ? n + 1 : 0;
}

static cg_status bytes_compress(const cg_codec *self, const cg_stage *stage, const cg_tag *tag, const float *x,
    size_t n, void *out, size_t cap, size_t *len) {
    signed char *p = (signed char *)out;
    size_t i;
    (void)self;
    (void)tag;
    if (cap < n) return CG_E_CAPACITY;
    for (i = 0; i < n; i++) {
        float v, q;
        memcpy(&v, (const char *)x + 4 * i, 4);
        q = nearbyintf(ref_div(v, stage->value));
        p[i] = (signed char)(q > 127 ? 127 : q < -127 ? -127 : q);
    }
    *len = n;
    return CG_OK;
}

static cg_status bytes_decode(const cg_codec *self, const cg_stage *stage, const void *in, size_t len, size_t n,
    size_t first, size_t count, float *out) {
    size_t i;
    (void)self;
    if (len < n || !(stage->value > 0.0f && stage->value < 1e30f)) return CG_E_CORRUPT;
    for (i = 0; i < count; i++) {
        float v = ref_mul((float)((const signed char *)in)[first + i], stage->value);
        memcpy((char *)out + 4 * i, &v, 4);
    }
    return CG_OK;
}

static const cg_codec BYTES = { 140, bytes_bound, bytes_compress, bytes_decode, NULL };
static const cg_codec *const CODECS[] = { &BYTES };

/* ---- operators, and the routes that take them ---- */

/* free: without carry; kept: with it as well. As the header's manual says: f32 values and unbiased operators may
   be encoded again, a server's answer is exact, merge and region keep the k largest, shared the leader's, linear
   adds what has one place. */
typedef struct row {
    const char *op, *free, *kept;
} row;
static const row ROWS[] = {
    { "dense", "grtcsl", "" },
    { "topk:0.05", "grtcsmho", "" },
    { "topk:0.05|golomb", "grtcsmho", "" },
    { "dgc:0.1", "grtcsmho", "" },
    { "mstopk:0.05", "grtcsmho", "" },
    { "sidco:0.1", "grtcsmho", "" },
    { "chunked:100:0.1", "grtcsh", "" },
    { "threshold:1", "grtcs", "" },
    { "blocks:16", "grtcs", "" },
    { "wangni:0.1", "grtcs", "" },
    { "randk:0.2", "grtcsl", "" },
    { "randk:0.2:unscaled", "grtcsl", "" },
    { "permk:8", "gs", "" },
    { "clip:1", "gs", "rtc" },
    { "clip:2.5|terngrad", "gs", "rtc" },
    { "topk:0.1|clip:1|absmax:4:64", "gs", "rtc" },
    { "cyclic:3", "grtcsl", "" },
    { "cyclic:3:unscaled", "grtcsl", "" },
    { "cyclic:2|topk:0.1", "grtcs", "" },
    { "rotate:2", "grtcsl", "" },
    { "rotate:1|topk:0.1", "grtcs", "" },
    { "randk:0.5|topk:0.1", "grtcs", "" },
    { "demo:0.1", "grtcs", "" },
    { "dense|huffman", "grtcs", "" },
    { "f16", "gs", "rtc" },
    { "bf16|huffman", "gs", "rtc" },
    { "absmax:4:512", "grtcs", "" },
    { "absmax:8:128:nearest", "gs", "rtc" },
    { "minmax:4:256", "grtcs", "" },
    { "terngrad", "grtcs", "" },
    { "terngrad|quartic", "grtcs", "" },
    { "qsgd:4", "grtcs", "" },
    { "natural", "grtcs", "" },
    { "eden:2", "grtcs", "" },
    { "rate:1", "gs", "rtc" },
    { "rate:2:unbiased", "grtcs", "" },
    { "topk:0.1|rate:4", "gs", "rtc" },
    { "efsign", "gs", "rtc" },
    { "sign", "gs", "rtc" },
    { "onebit:64", "gs", "rtc" },
    { "threelc:1.5", "gs", "rtc" },
    { "stc:0.1", "gs", "rtc" },
    { "topk:0.1|absmax:4:64", "gs", "rtc" },
    { "topk:0.1|f16", "gs", "rtc" },
    { "user", "gs", "rtc" },
    { "topk:0.2|user", "gs", "rtc" },
    { "variance:1", "grtcs", "" },
    { "adacomp:50", "gs", "rt" },
    { "lowrank:2:40:50", "gsl", "" },
    { "atomo:2:40:50", "gs", "" },
};
enum { N_ROWS = sizeof ROWS / sizeof *ROWS };

static cg_op parsed(const char *text) {
    cg_op op = cg_dense();
    if (!strcmp(text, "user")) return cg_user(140, 0, 0, 0.03125f);
    if (!strcmp(text, "topk:0.2|user")) return cg_then(cg_topk(0.2f), cg_user(140, 0, 0, 0.03125f));
    if (cg_op_parse(&op, text) != CG_OK) {
        fprintf(stderr, "does not parse: %s\n", text);
        exit(2);
    }
    return op;
}

/* ---- a world of ranks ---- */

typedef struct world {
    sim s;
    cg_exchange_desc desc;
    cg_extra side[MOST];
    const char *text;
    int ranks, which, agrees, off, carries;
    size_t n;
    float *in[MOST];                                   /* what a rank puts in */
    float *out, *used[MOST], *carry[MOST], *was[MOST]; /* what comes out, what counted, carries after and before */
    float weight[MOST], score[MOST];
    float *warm[MOST], *aux[MOST];
    /* mem, x and carry as the library sees them, at odd addresses if off */
    unsigned char *mem[MOST], *mine[MOST], *kept[MOST];
    size_t bytes[MOST];
    cg_status status;
    void (*before)(int rank);
} world;
static world W;

static const char *say(const world *w, const char *what) {
    snprintf(note, sizeof note, "%s: %s by %s, %d ranks, n = %lu, callbacks %d, carry %d, fold %d, flags %d: %s", what,
        w->text, ROUTE_NAMES[w->desc.route], w->ranks, (unsigned long)w->n, w->which, w->carries, (int)w->desc.fold,
        (int)w->desc.flags, w->s.rank[0].report.why ? w->s.rank[0].report.why : "");
    return note;
}

static float *floats(size_t n) { return (float *)ref_alloc(4 * n); }

static void build(world *w, const char *text, uint32_t route, int ranks, size_t n) {
    int r;
    memset(w, 0, sizeof *w);
    w->text = text;
    w->ranks = ranks;
    w->n = n;
    w->which = SIM_ALL;
    w->desc.op = parsed(text);
    w->desc.route = route;
    w->desc.tag.seed = 7;
    w->desc.tag.step = 3;
    w->desc.tag.tensor = 1;
    w->out = floats(n);
    for (r = 0; r < ranks; r++) {
        if (strstr(text, "user")) {
            w->side[r].codecs = CODECS;
            w->side[r].codec_count = 1;
        }
        w->aux[r] = floats(n);
        if (w->desc.op.select.id == CG_SELECT_BINS || w->desc.op.select.id == CG_SELECT_VARIANCE)
            w->side[r].aux = w->aux[r];
        w->in[r] = floats(n);
        w->used[r] = floats(n);
        w->carry[r] = floats(n);
        w->was[r] = floats(n);
        w->mine[r] = (unsigned char *)ref_alloc(4 * n + GUARD);
        w->kept[r] = (unsigned char *)ref_alloc(4 * n + GUARD);
    }
}

static void wreck(world *w) {
    int r;
    free(w->out);
    for (r = 0; r < w->ranks; r++) {
        free(w->in[r]);
        free(w->used[r]);
        free(w->carry[r]);
        free(w->was[r]);
        free(w->mine[r]);
        free(w->kept[r]);
        free(w->mem[r]);
        free(w->aux[r]);
    }
    memset(w, 0, sizeof *w);
}

static uint64_t dice = 1;
static double roll(void) /* [0, 1) */
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(dice >> 11) / 9007199254740992.0;
}
static double bell(void) {
    double u = 0.0;
    int i;
    for (i = 0; i < 12; i++) u += roll();
    return u - 6.0;
}

/* WILD: twelve decades, and ranks that nearly cancel. DYADIC: sums of them are exact. */
enum { WILD, BELL, DYADIC };
static void fill(world *w, int kind, uint64_t seed) {
    size_t i;
    int r;
    dice = ref_mix64(seed + 1);
    for (r = 0; r < w->ranks; r++)
        for (i = 0; i < w->n; i++) {
            double v = bell();
            if (kind == WILD) {
                v = (roll() < 0.5 ? -1.0 : 1.0) * pow(10.0, 12.0 * roll() - 6.0);
                if (r % 2 && roll() < 0.5) v = -(double)w->in[r - 1][i] * (1.0 + 1e-3 * roll());
            }
            if (kind == DYADIC) v = floor(v * v * v * 64.0) / 256.0;
            w->in[r][i] = (float)v;
            w->aux[r][i] = (float)(fabs(v) * roll());
        }
}

static int guards_hold(const unsigned char *p) {
    int i;
    for (i = 0; i < GUARD / 2; i++)
        if (p[i] != 0x5c) return 0;
    return 1;
}

static void place_rank(world *w, int r) {
    sim_rank *k = &w->s.rank[r];
    const size_t off = w->off ? (size_t)(1 + r % 3) : 0;
    k->desc.weight = w->weight[r];
    k->desc.score = w->score[r];
    k->desc.warm = w->warm[r];
    k->desc.side = &w->side[r];
    memset(w->mine[r], 0x5c, 4 * w->n + GUARD);
    memset(w->kept[r], 0x5c, 4 * w->n + GUARD);
    memcpy(w->mine[r] + off, w->in[r], 4 * w->n);
    if (w->carries) memcpy(w->kept[r] + off, w->carry[r], 4 * cg_exchange_carry(&k->desc, &k->transport, w->n));
    memcpy(w->was[r], w->carry[r], 4 * w->n);
    k->x = (float *)(void *)(w->mine[r] + off);
    /* where no carry is needed: NULL, or one of no floats */
    if (w->carries && (off || cg_exchange_carry(&k->desc, &k->transport, w->n)))
        k->desc.carry = (float *)(void *)(w->kept[r] + off);
    k->bytes = cg_exchange_memory(&k->desc, &k->transport, w->n);
    /* where cg_exchange would keep it; start has its own */
    if (k->bytes) k->bytes -= (sizeof(cg_exchange_state) + 63) / 64 * 64;
    if (k->bytes > w->bytes[r] || !w->mem[r]) { /* else the last step's, as that left it */
        free(w->mem[r]);
        w->mem[r] = (unsigned char *)ref_alloc(k->bytes + GUARD);
        memset(w->mem[r], 0xa5, k->bytes + GUARD);
        w->bytes[r] = k->bytes;
    }
    memset(w->mem[r] + off + k->bytes, 0x5c, GUARD / 2);
    k->mem = w->mem[r] + off;
}

/* What rank r got; NULL, or what is wrong with it. */
static const char *take_rank(world *w, int r) {
    sim_rank *k = &w->s.rank[r];
    const size_t off = w->off ? (size_t)(1 + r % 3) : 0,
                 floats_kept = w->carries ? cg_exchange_carry(&k->desc, &k->transport, w->n) : 0;
    const unsigned char *x = w->mine[r] + off, *carry = w->kept[r] + off;
    k->mem = NULL;
    if (k->status != w->status) return say(w, "statuses differ");
    if (!guards_hold(x + 4 * w->n) || !guards_hold(carry + 4 * floats_kept) || !guards_hold(w->mem[r] + off + k->bytes))
        return say(w, "wrote beyond an end");
    if (w->status != CG_OK) {
        if (!k->report.why || !*k->report.why) return say(w, "no reason given");
        if (memcmp(x, w->in[r], 4 * w->n) || memcmp(carry, w->carry[r], 4 * floats_kept))
            return say(w, "changed x or carry, though it failed");
        return k->report.used || k->report.used_len ? say(w, "used of a failure") : NULL;
    }
    if (r == 0) memcpy(w->out, x, 4 * w->n);
    if (memcmp(w->out, x, 4 * w->n)) return say(w, "ranks have different bits");
    if (w->desc.route != CG_ROUTE_AUTO && k->report.route != w->desc.route) return say(w, "another route");
    memcpy(w->carry[r], carry, 4 * floats_kept);
    if (cg_used_decode(&w->side[r], k->report.used, k->report.used_len, 1.0f, 0.0f, w->used[r], w->n) != CG_OK)
        return say(w, "used does not decode");
    return NULL;
}

static const char *run(world *w) {
    float *x[MOST] = { NULL };
    const char *why = NULL;
    int r;
    sim_open(&w->s, w->ranks, w->which, w->agrees, &w->desc, x, w->n);
    w->s.before = w->before;
    for (r = 0; r < w->ranks; r++) place_rank(w, r);
    sim_run(&w->s);
    w->status = w->s.rank[0].status;
    for (r = 0; r < w->ranks && !why; r++) why = take_rank(w, r);
    for (r = 0; r < w->ranks; r++) w->s.rank[r].mem = NULL; /* ours */
    sim_close(&w->s);
    if (!why && w->s.stuck) why = say(w, "ranks wait for ever");
    w->desc.tag.step++;
    return why;
}

static const char *run_ok(world *w) {
    const char *why = run(w);
    return why ? why : w->status == CG_OK ? NULL : say(w, "failed");
}

static cg_tag tag_of(const world *w, int r) /* of the step that has run */
{
    cg_tag tag = w->desc.tag;
    tag.step--;
    tag.rank = (uint32_t)r;
    return tag;
}
static double weight_of(const world *w, int r) { return w->weight[r] != 0.0f ? (double)w->weight[r] : 1.0; }
static double weights(const world *w) {
    double all = 0.0;
    int r;
    for (r = 0; r < w->ranks; r++) all += weight_of(w, r);
    return all;
}
static float alpha_of(const world *w, int r) {
    return w->desc.fold == CG_FOLD_SUM ? (float)weight_of(w, r) : (float)(weight_of(w, r) / weights(w));
}

/* y = D(C(x)). */
static void squeezed(const cg_op *op, cg_tag tag, const cg_extra *side, const float *x, size_t n, float *y) {
    ops_packet pk = ops_pack_cap(op, &tag, side, x, n, cg_bound_with(op, side, n));
    if (pk.status != CG_OK || cg_decode(side, pk.p, pk.len, 1.0f, 0.0f, y, n) != CG_OK) {
        fprintf(stderr, "%s does not compress\n", ops_text(op));
        exit(2);
    }
    free(pk.p);
}

static int same_values(const float *a, const float *b, size_t n) /* zeros of either sign are one */
{
    size_t i;
    for (i = 0; i < n; i++)
        if (!(a[i] == b[i])) return 0;
    return 1;
}

/* Where stripe p begins: the carries of a scatter are its stripes. */
static size_t stripe(const world *w, int p) {
    cg_exchange_desc d = CG_ZERO;
    size_t at = 0;
    int r;
    d.op = cg_efsign();
    d.route = CG_ROUTE_SCATTER;
    for (r = 0; r < p; r++) {
        cg_transport t = sim_transport(r, w->ranks, SIM_ALL, 0);
        at += cg_exchange_carry(&d, &t, w->n);
    }
    return at;
}

/* ---- the identity: sum of w D(used) + W (carries before - after) = W mean ---- */

/* Each rank rounds a handful of times, on the way and in what it reports, and nothing it rounds exceeds `size`:
   what went in, came out, counted or was carried there. A transform mixes its block, and the owner of an answer
   rounds sums of all packets: there the largest of the vector stands for it. */
static const char *identity(const world *w) {
    const double all = w->desc.fold == CG_FOLD_SUM ? 1.0 : weights(w), eps = 0x1p-24 * 8.0 * (w->ranks + 2);
    const cg_op *op = &w->desc.op;
    const int mixed = op->transform.id || w->desc.back ||
        ((w->desc.route == CG_ROUTE_SCATTER || w->desc.route == CG_ROUTE_SERVER) && op->quantize.id);
    double largest = 0.0, squares = 0.0, *sum = (double *)ref_alloc(8 * w->n), *size = (double *)ref_alloc(8 * w->n);
    const char *why = NULL;
    size_t i;
    int r;
    for (r = 0; r < w->ranks; r++) {
        const size_t start = w->s.rank[0].report.route == CG_ROUTE_SCATTER ? stripe(w, r) : 0;
        const size_t many = w->carries ? cg_exchange_carry(&w->s.rank[r].desc, &w->s.rank[r].transport, w->n) : 0;
        for (i = 0; i < w->n; i++) {
            sum[i] += weight_of(w, r) * (double)w->used[r][i];
            size[i] += weight_of(w, r) * (fabs((double)w->used[r][i]) + fabs((double)w->in[r][i]));
            squares += (double)w->in[r][i] * (double)w->in[r][i];
        }
        for (i = 0; i < many; i++) {
            sum[start + i] += all * ((double)w->was[r][i] - (double)w->carry[r][i]);
            size[start + i] += all * (fabs((double)w->was[r][i]) + fabs((double)w->carry[r][i]));
        }
    }
    for (i = 0; i < w->n; i++) largest = size[i] > largest ? size[i] : largest;
    if (mixed) largest = 4.0 * (largest + sqrt(squares));
    for (i = 0; i < w->n && !why; i++) {
        const double most = eps * ((mixed ? largest : size[i]) + all * fabs((double)w->out[i]));
        if (!(fabs(sum[i] - all * (double)w->out[i]) <= most + 1e-40)) {
            why = say(w, "the identity does not hold");
            snprintf(note + strlen(note), sizeof note - strlen(note), " [%lu]: %g, not %g", (unsigned long)i,
                all * (double)w->out[i], sum[i]);
        }
    }
    free(sum);
    free(size);
    return why;
}

static int dyadic_identity(const world *w) /* with nothing to round: exactly */
{
    const double all = w->desc.fold == CG_FOLD_SUM ? 1.0 : (double)w->ranks;
    size_t i;
    int r;
    for (i = 0; i < w->n; i++) {
        double sum = 0.0;
        for (r = 0; r < w->ranks; r++) sum += (double)w->used[r][i];
        if (sum != all * (double)w->out[i]) return 0;
    }
    return 1;
}

/* ---- what a rank says counted is what cg_compress makes of its x, part by part ---- */

static const char *used_is_packed(const world *w, int r) {
    const unsigned char *p = (const unsigned char *)w->s.rank[r].report.used;
    size_t len = w->s.rank[r].report.used_len, start = 0, parts = 0;
    uint64_t seeds[MOST];
    cg_extra side = w->side[r];
    if (w->desc.route == CG_ROUTE_LINEAR && !strcmp(w->text, "dense") && !(w->desc.flags & CG_FEEDS_BACK))
        return memcmp(w->used[r], w->in[r], 4 * w->n) ? say(w, "used is not x") : NULL; /* and no packet */
    while (len) {
        cg_info info;
        ops_packet pk;
        size_t i;
        int same;
        if (cg_inspect(p, len, &info) != CG_OK) return say(w, "used is no packet");
        if (info.tag.rank != (uint32_t)r || info.tag.step != tag_of(w, r).step || info.tag.tensor != w->desc.tag.tensor)
            return say(w, "used has another tag");
        if (side.aux) side.aux = w->aux[r] + start;
        pk = ops_pack_cap(&w->desc.op, &info.tag, &side, w->in[r] + start, (size_t)info.n,
            cg_bound_with(&w->desc.op, &side, (size_t)info.n));
        same = pk.status == CG_OK && pk.len == info.packet_bytes && !memcmp(pk.p, p, pk.len);
        free(pk.p);
        if (!same) return say(w, "used is not what cg_compress makes of x");
        if (parts == MOST) return say(w, "too many parts");
        for (i = 0; i < parts; i++)
            if (seeds[i] == info.tag.seed) return say(w, "two stripes with the same randomness");
        seeds[parts++] = info.tag.seed;
        start += (size_t)info.n;
        p += info.packet_bytes;
        len -= info.packet_bytes;
    }
    if (parts == 1 && seeds[0] != w->desc.tag.seed) return say(w, "used has another seed");
    if (parts != (w->desc.route == CG_ROUTE_RING || w->desc.route == CG_ROUTE_SCATTER ? (size_t)w->ranks : 1))
        return say(w, "used has another number of parts");
    return start == w->n ? NULL : say(w, "used covers another n");
}

/* ---- formulas ---- */

/* y = a_0 d_0, then y = y + (a_r d_r), ranks ascending: bit for bit. */
static const char *is_sum_in_order(const world *w) {
    float *y = floats(w->n), *d = floats(w->n);
    const char *why;
    size_t i;
    int r;
    for (r = 0; r < w->ranks; r++) {
        squeezed(&w->desc.op, tag_of(w, r), &w->side[r], w->in[r], w->n, d);
        for (i = 0; i < w->n; i++)
            y[i] = r ? ref_add(y[i], ref_mul(alpha_of(w, r), d[i])) : ref_mul(alpha_of(w, r), d[i]);
    }
    why = same_values(y, w->out, w->n) ? NULL : say(w, "not the sum in rank order");
    free(y);
    free(d);
    return why;
}

static int carried(const char *routes, uint32_t route) { return strchr(routes, ROUTES[route]) != NULL; }
static int is_exact(const world *w) /* f32 values add without another encoding */
{
    const cg_op *op = &w->desc.op;
    return !op->quantize.id && !op->clip.id && op->transform.id != CG_TRANSFORM_LOWRANK &&
        op->transform.id != CG_TRANSFORM_ATOMO && w->weight[0] == 0.0f && !w->desc.back;
}

/* Everything that holds for this operator on this route, whatever the input. */
static const char *step(world *w) {
    const uint32_t route = w->desc.route;
    const char *why = run_ok(w);
    const int lists = route == CG_ROUTE_MERGE || route == CG_ROUTE_REGION || route == CG_ROUTE_SHARED;
    const int whole = route == CG_ROUTE_ALLGATHER || (route == CG_ROUTE_SERVER && !w->desc.back) ||
        (is_exact(w) && !lists);
    int r;
    if (!why && w->desc.fold <= CG_FOLD_SUM) why = identity(w);
    if (!why && route == CG_ROUTE_ALLGATHER && w->desc.fold <= CG_FOLD_SUM) why = is_sum_in_order(w);
    for (r = 0; r < w->ranks && whole && !why; r++) why = used_is_packed(w, r);
    return why;
}

static const int RANKS[] = { 1, 2, 3, 4, 5, 8 };
enum { N_RANKS = sizeof RANKS / sizeof *RANKS };

/* One operator on one route: with and without carry, several steps on the same memory. */
TEST formula(int which, uint32_t route) {
    static unsigned turn;
    const row *o = &ROWS[which];
    int i, kind, carry, t;
    for (i = 0; i < N_RANKS; i++)
        for (carry = 0; carry < 2; carry++) {
            const int takes = carried(o->free, route) || (carry && carried(o->kept, route));
            if (takes && spared(&turn, 7)) continue;
            build(&W, o->op, route, RANKS[i], N_OPS_MATRIX);
            W.carries = carry;
            if (carry) W.desc.flags |= CG_FEEDS_BACK;
            for (kind = WILD; kind <= DYADIC; kind++) {
                fill(&W, kind, (uint64_t)(which * 10 + kind));
                if (!takes) {
                    TRY(run(&W));
                    ASSERT_EQm(say(&W, "not refused"), CG_E_UNSUPPORTED, W.status);
                    break;
                }
                for (t = 0; t < (carry ? 3 : 1); t++) {
                    TRY(step(&W));
                    if (kind == DYADIC && !carry && is_exact(&W) && !W.desc.op.transform.id && !W.desc.op.sample.id &&
                        W.desc.op.select.id != CG_SELECT_WANGNI && (RANKS[i] & (RANKS[i] - 1)) == 0)
                        ASSERTm(say(&W, "not exact"), dyadic_identity(&W));
                }
            }
            wreck(&W);
        }
    PASS();
}

/* Results do not depend on which callbacks there are; a sum by allreduce is exact here, so that it may not either. */
TEST callbacks(int which, uint32_t route) {
    static unsigned turn;
    const row *o = &ROWS[which];
    float *first = floats(N_OPS_MATRIX);
    int i, mask, carry = !carried(o->free, route), r;
    for (i = 1; i < N_RANKS; i++) {
        if (spared(&turn, 7)) continue;
        build(&W, o->op, route, RANKS[i], N_OPS_MATRIX);
        W.carries = carry;
        fill(&W, DYADIC, (uint64_t)which);
        W.desc.fold = route == CG_ROUTE_LINEAR || route == CG_ROUTE_SHARED ? CG_FOLD_SUM : CG_FOLD_MEAN;
        /* one that agrees, too */
        for (mask = SIM_ALL; mask; W.agrees ^= mask & SIM_ALLREDUCE, mask -= !W.agrees) {
            W.which = mask;
            W.desc.tag.step = 3;
            for (r = 0; r < RANKS[i]; r++) memset(W.carry[r], 0, 4 * W.n);
            if (!(mask & SIM_SENDRECV) && strchr("rtcmo", ROUTES[route])) {
                TRY(run(&W));
                ASSERT_EQm(say(&W, "went without sendrecv"), CG_E_UNSUPPORTED, W.status);
                for (r = 0; r < RANKS[i]; r++)
                    ASSERTm(say(&W, "does not name sendrecv"), strstr(W.s.rank[r].report.why, "sendrecv") != NULL);
                continue;
            }
            TRY(run_ok(&W));
            if (mask == SIM_ALL && !W.agrees) memcpy(first, W.out, 4 * W.n);
            else if (W.desc.op.transform.id == CG_TRANSFORM_LOWRANK ||
                (W.desc.op.transform.id && route == CG_ROUTE_LINEAR))
                TRY(identity(&W));
            else ASSERTm(say(&W, "callbacks change the result"), !memcmp(first, W.out, 4 * W.n));
        }
        wreck(&W);
    }
    free(first);
    PASS();
}

static void mixed_machines(int rank) {
    if (cg_isa_force(rank % 2 ? CG_ISA_SCALAR : CG_ISA_AUTO) != CG_OK) abort();
}

TEST mixed(int which, uint32_t route) {
    const row *o = &ROWS[which];
    float *first = floats(N_OPS_MATRIX);
    int i, ranks;
    for (i = 0; i < 2; i++) {
        if (quick && i != which % 2) continue;
        ranks = i ? 5 : 2;
        build(&W, o->op, route, ranks, N_OPS_MATRIX);
        W.carries = !carried(o->free, route);
        W.which = SIM_SENDRECV;
        fill(&W, WILD, (uint64_t)which);
        TRY(run_ok(&W));
        memcpy(first, W.out, 4 * W.n);
        wreck(&W);
        build(&W, o->op, route, ranks, N_OPS_MATRIX);
        W.carries = !carried(o->free, route);
        W.which = SIM_SENDRECV;
        W.before = mixed_machines;
        fill(&W, WILD, (uint64_t)which);
        TRY(run_ok(&W));
        ASSERT_EQ(CG_OK, cg_isa_force(CG_ISA_AUTO));
        ASSERTm(say(&W, "machines change the result"), !memcmp(first, W.out, 4 * W.n));
        wreck(&W);
    }
    free(first);
    PASS();
}

/* Lengths around the stripes' runs of 64, at odd addresses, memory kept from step to step. */
TEST lengths(int which, uint32_t route) {
    static const size_t sizes[] = { 4097, 0, 1, 63, 64, 65, 1000 };
    static const int ranks[] = { 1, 3, 4 };
    static unsigned turn;
    const row *o = &ROWS[which];
    size_t i;
    int j, off, t;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (j = 0; j < 3; j++)
            for (off = 0; off < 2; off++) {
                if (spared(&turn, 5)) continue;
                build(&W, o->op, route, ranks[j], sizes[i]);
                W.off = off;
                if ((i + (size_t)j) % 2) W.desc.flags |= CG_FEEDS_BACK;
                W.carries = !carried(o->free, route);
                for (t = 0; t < 2; t++) {
                    fill(&W, t ? DYADIC : BELL, (uint64_t)(which + t));
                    TRY(step(&W));
                }
                wreck(&W);
            }
    PASS();
}

/* Several blocks of 65536. */
TEST large(int which, uint32_t route) {
    build(&W, ROWS[which].op, route, 3, 200003);
    W.carries = !carried(ROWS[which].free, route);
    fill(&W, WILD, 1);
    TRY(step(&W));
    wreck(&W);
    PASS();
}

SUITE(every_route) {
    static unsigned turn;
    uint32_t route;
    int i;
    for (i = 0; i < N_ROWS; i++)
        for (route = CG_ROUTE_ALLGATHER; route <= CG_ROUTE_LINEAR; route++) {
            const int takes = carried(ROWS[i].free, route) || carried(ROWS[i].kept, route);
            RUN_TESTp(formula, i, route);
            if (!takes) continue;
            RUN_TESTp(callbacks, i, route);
            RUN_TESTp(mixed, i, route);
            if (strstr(ROWS[i].op, ":40:50")) continue;
            RUN_TESTp(lengths, i, route);
            if ((route == CG_ROUTE_ALLGATHER || (i + (int)route) % 4 == 0) && !spared(&turn, 11))
                RUN_TESTp(large, i, route);
        }
}

/* ---- sums that are encoded again, recomputed hop by hop ---- */

static cg_tag part_tag(const world *w, int r, int part) /* used carries it */
{
    const unsigned char *p = (const unsigned char *)w->s.rank[r].report.used;
    size_t len = w->s.rank[r].report.used_len;
    cg_info info;
    memset(&info, 0, sizeof info);
    for (;; part--, p += info.packet_bytes, len -= info.packet_bytes)
        if (cg_inspect(p, len, &info) != CG_OK || part == 0) return info.tag;
}

/* w x + W carry, what rank r brings to a stripe. */
static void brings(const world *w, int r, size_t start, size_t n, float *sum) {
    const float share = w->desc.fold == CG_FOLD_SUM ? 1.0f : (float)weights(w);
    size_t i;
    for (i = 0; i < n; i++) {
        sum[i] = ref_mul((float)weight_of(w, r), w->in[r][start + i]);
        if (w->carries) sum[i] = ref_add(sum[i], ref_mul(share, w->was[r][start + i]));
    }
}

static void ring_chain(const world *w, int part, float *y) {
    const size_t start = stripe(w, part), n = stripe(w, part + 1) - start;
    float *sum = floats(n);
    size_t i;
    int t;
    for (t = 0; t < w->ranks; t++) { /* it begins at the rank of its number and goes up */
        const int r = (part + t) % w->ranks;
        brings(w, r, start, n, sum);
        for (i = 0; t && i < n; i++) sum[i] = ref_add(sum[i], y[start + i]);
        squeezed(&w->desc.op, part_tag(w, r, part), &w->side[r], sum, n, y + start);
    }
    free(sum);
}

static void tree_chain(const world *w, int r, float *y) {
    float *sum = floats(w->n);
    size_t i;
    int t;
    brings(w, r, 0, w->n, sum);
    for (t = 1; t < w->ranks && !(r & t); t *= 2)
        if (r + t < w->ranks) {
            tree_chain(w, r + t, y);
            for (i = 0; i < w->n; i++) sum[i] = ref_add(sum[i], y[i]);
        }
    squeezed(&w->desc.op, tag_of(w, r), &w->side[r], sum, w->n, y);
    free(sum);
}

TEST hops(const char *op, uint32_t route, int ranks, size_t n, int carry, uint32_t fold, int weighted) {
    float *y = floats(n), over;
    size_t i;
    int r, t;
    build(&W, op, route, ranks, n);
    W.carries = carry;
    W.desc.fold = fold;
    for (r = 0; weighted && r < ranks; r++) W.weight[r] = 1.0f + 0.75f * (float)r;
    for (t = 0; t < 3; t++) {
        fill(&W, BELL, (uint64_t)t);
        TRY(run_ok(&W));
        TRY(identity(&W));
        over = fold == CG_FOLD_SUM ? 1.0f : (float)(1.0 / weights(&W));
        if (route == CG_ROUTE_TREE) tree_chain(&W, 0, y);
        else
            for (r = 0; r < ranks; r++) ring_chain(&W, r, y);
        for (i = 0; i < W.n; i++) y[i] = ref_mul(over, y[i]);
        ASSERTm(say(&W, "not the chain of hops"), same_values(y, W.out, W.n));
        for (r = 0; carry && r < ranks; r++)
            ASSERTm(say(&W, "with carry everything counts"), same_values(W.in[r], W.used[r], W.n));
    }
    wreck(&W);
    free(y);
    PASS();
}

/* An owner's answer: the mean in rank order, plus its carry, encoded by an operator that is not random; carry
   keeps the rest. */
TEST answers(
    const char *op, const char *back, uint32_t route, int ranks, size_t length, int carry, int leader, int weighted) {
    const cg_op second = parsed(back);
    float *d = floats(length), *sum = floats(length), *y = floats(length);
    size_t i;
    int r, t, p;
    build(&W, op, route, ranks, length);
    W.carries = carry;
    W.desc.back = &second;
    W.desc.leader = leader + 1;
    for (r = 0; weighted && r < ranks; r++) W.weight[r] = 1.0f + 0.75f * (float)r;
    for (t = 0; t < 3; t++) {
        fill(&W, BELL, (uint64_t)t);
        TRY(run_ok(&W));
        TRY(identity(&W));
        for (p = 0; p < (route == CG_ROUTE_SERVER ? 1 : ranks); p++) {
            const size_t start = route == CG_ROUTE_SERVER ? 0 : stripe(&W, p),
                         n = route == CG_ROUTE_SERVER ? W.n : stripe(&W, p + 1) - start;
            const int owner = route == CG_ROUTE_SERVER ? leader : p;
            for (r = 0; r < ranks; r++) {
                squeezed(&W.desc.op, part_tag(&W, r, p), NULL, W.in[r] + start, n, d);
                for (i = 0; i < n; i++)
                    sum[i] = r ? ref_add(sum[i], ref_mul(alpha_of(&W, r), d[i])) : ref_mul(alpha_of(&W, r), d[i]);
            }
            for (i = 0; carry && i < n; i++) sum[i] = ref_add(sum[i], W.was[owner][i]);
            squeezed(&second, tag_of(&W, 0), NULL, sum, n, y + start);
            for (i = 0; carry && i < n; i++) sum[i] = ref_sub(sum[i], y[start + i]);
            if (carry) ASSERTm(say(&W, "carry is not what the answer lost"), same_values(sum, W.carry[owner], n));
        }
        ASSERTm(say(&W, "not the answer to the mean"), same_values(y, W.out, W.n));
    }
    wreck(&W);
    free(d);
    free(sum);
    free(y);
    PASS();
}

/* A random answer is within one level of the mean. */
TEST random_answer(uint32_t route, int ranks) {
    const cg_op second = cg_absmax(4, 64);
    float *d = floats(960), *sum = floats(960);
    size_t i, j;
    int r, p;
    build(&W, "absmax:4:64", route, ranks, 960);
    W.desc.back = route == CG_ROUTE_SERVER ? &second : NULL;
    fill(&W, BELL, 1);
    TRY(run_ok(&W));
    for (p = 0; p < (route == CG_ROUTE_SERVER ? 1 : ranks); p++) {
        const size_t start = route == CG_ROUTE_SERVER ? 0 : stripe(&W, p),
                     n = route == CG_ROUTE_SERVER ? W.n : stripe(&W, p + 1) - start;
        for (r = 0; r < ranks; r++) {
            squeezed(&second, part_tag(&W, r, p), NULL, W.in[r] + start, n, d);
            for (i = 0; i < n; i++) sum[start + i] += alpha_of(&W, r) * d[i];
        }
    }
    for (i = 0; i < W.n; i += 64) {
        double most = 0.0;
        for (j = i; j < i + 64; j++) most = fmax(most, fabs((double)sum[j]));
        for (j = i; j < i + 64; j++)
            ASSERTm(
                say(&W, "more than one level off"), fabs((double)W.out[j] - (double)sum[j]) <= most / 7.0 * 1.00001);
    }
    wreck(&W);
    free(d);
    free(sum);
    PASS();
}

/* DoubleSqueeze: over many steps the means arrive, but for what the carries hold at the end. */
TEST telescope(const char *op, const char *back, uint32_t route, int ranks) {
    enum { T = 30, NT = 500 };
    const cg_op second = parsed(back);
    double want[NT] = { 0 }, got[NT] = { 0 }, size = 0.0, held = 0.0;
    size_t i;
    int r, t;
    build(&W, op, route, ranks, NT);
    W.carries = 1;
    if (route == CG_ROUTE_SERVER) W.desc.back = &second;
    for (t = 0; t < T; t++) {
        fill(&W, BELL, (uint64_t)t);
        TRY(run_ok(&W));
        for (i = 0; i < NT; i++) {
            for (r = 0; r < ranks; r++) want[i] += (double)W.used[r][i] / ranks;
            for (r = 0; r < ranks; r++) size += (double)W.in[r][i] * (double)W.in[r][i];
            got[i] += (double)W.out[i];
        }
    }
    for (r = 0; r < ranks; r++) {
        const size_t start = route == CG_ROUTE_SCATTER ? stripe(&W, r) : 0,
                     many = cg_exchange_carry(&W.s.rank[r].desc, &W.s.rank[r].transport, NT);
        for (i = 0; i < many; i++) {
            want[start + i] -= (double)W.carry[r][i];
            held += (double)W.carry[r][i] * (double)W.carry[r][i];
        }
    }
    ASSERTm(say(&W, "carries hold nothing"), held > 0.0);
    ASSERTm(say(&W, "carries grow"), held < 10.0 * size);
    for (i = 0; i < NT; i++)
        ASSERTm(say(&W, "steps do not add up"), fabs(want[i] - got[i]) <= 0x1p-24 * 8 * T * sqrt(size / T));
    wreck(&W);
    PASS();
}

/* The mean over seeds of what comes out is what went in: random signs over every 64 elements, and over all, within
   5.5 standard errors. */
TEST unbiased(const char *op, uint32_t route, int ranks) {
    enum { NU = 192, P = 8, ALL = P * (NU / 64 + 1) };
    const int seeds = quick ? 100 : 300;
    const cg_op second = parsed(op);
    double mean[ALL] = { 0 }, square[ALL] = { 0 }, true_mean[NU] = { 0 };
    size_t i;
    int r, t, j;
    build(&W, op, route, ranks, NU);
    if (route == CG_ROUTE_SERVER) W.desc.back = &second;
    fill(&W, BELL, 5);
    for (i = 0; i < NU; i++)
        for (r = 0; r < ranks; r++) true_mean[i] += (double)W.in[r][i] / ranks;
    for (t = 0; t < seeds; t++) {
        double err[ALL] = { 0 };
        W.desc.tag.seed = (uint64_t)t;
        TRY(run_ok(&W));
        for (i = 0; i < NU; i++)
            for (j = 0; j < P; j++) {
                const double e = (ref_mix64(i * P + (uint64_t)j) & 1 ? 1.0 : -1.0) * ((double)W.out[i] - true_mean[i]);
                err[j] += e;
                err[P * (i / 64 + 1) + (size_t)j] += e;
            }
        for (i = 0; i < ALL; i++) {
            mean[i] += err[i] / seeds;
            square[i] += err[i] * err[i] / seeds;
        }
    }
    for (i = 0; i < ALL; i++) {
        const double variance = square[i] - mean[i] * mean[i];
        ASSERTm(say(&W, "not random"), variance > 0.0);
        ASSERTm(say(&W, "biased"), fabs(mean[i]) <= 5.5 * sqrt(variance / (seeds - 1)));
    }
    wreck(&W);
    PASS();
}

/* An answer's rounding must know nothing of the first one's: halves of rank 0 alone, rounded to 0 or 1, halved,
   and rounded again. */
TEST independent_legs(uint32_t route) {
    enum { NI = 8192 };
    const cg_op op = cg_absmax(2, 64);
    double sum = 0.0;
    size_t i;
    build(&W, "absmax:2:64", route, 2, NI);
    W.desc.back = &op;
    for (i = 0; i < NI; i++) {
        W.in[0][i] = i % 64 ? 0.5f : 1.0f;
        W.in[1][i] = i % 64 ? 0.0f : 1.0f;
    }
    TRY(run_ok(&W));
    for (i = 0; i < NI; i++)
        if (i % 64) sum += (double)W.out[i];
    ASSERT_IN_RANGE(0.25, sum / (NI - NI / 64), 5.5 * 0.4331 / sqrt(NI));
    wreck(&W);
    PASS();
}

SUITE(encoded_again) {
    static const char *const biased[] = { "efsign", "rate:1", "topk:0.1|absmax:4:64", "f16", "stc:0.1" };
    static const char *const random[] = { "absmax:4:64", "step:0.5:unbiased", "qsgd:4", "terngrad", "natural",
        "minmax:2:64" };
    static const char *const backs[] = { "efsign", "topk:0.1", "f16", "absmax:8:128:nearest",
        "topk:0.1|absmax:4:64:nearest", "dense" };
    static const uint32_t routes[] = { CG_ROUTE_RING, CG_ROUTE_TREE, CG_ROUTE_SCATTER, CG_ROUTE_SERVER };
    const size_t n = 1000, large = 140001; /* three blocks of 65536, if in one piece */
    int i, j, k;
    for (j = 0; j < 2; j++) {
        RUN_TESTp(hops, "topk:0.1|absmax:4:64", routes[j], 2, large, 1, CG_FOLD_MEAN, 1);
        RUN_TESTp(hops, "absmax:4:64", routes[j], 2, large, 0, CG_FOLD_MEAN, 0);
        RUN_TESTp(answers, "absmax:4:64", "efsign", routes[2 + j], 1, large, 1, 0, 1);
        RUN_TESTp(answers, "eden:2", "topk:0.1", routes[2 + j], 2, large, 1, 0, 1);
        RUN_TESTp(answers, "natural", "f16", routes[2 + j], 2, large, 1, 0, 0);
    }
    for (i = 0; i < N_RANKS; i++)
        for (j = 0; j < 2; j++) {
            for (k = 0; k < 4; k++)
                RUN_TESTp(hops, biased[k], routes[j], RANKS[i], n, 1, k == 1 ? CG_FOLD_SUM : CG_FOLD_MEAN, k == 2);
            for (k = 0; k < 5; k++)
                RUN_TESTp(hops, random[k], routes[j], RANKS[i], n, k == 4, k == 1 ? CG_FOLD_SUM : CG_FOLD_MEAN, k == 2);
            /* weights: no longer exact sums */
            RUN_TESTp(hops, "dense", routes[j], RANKS[i], n, 0, CG_FOLD_MEAN, 1);
            RUN_TESTp(hops, "topk:0.1", routes[j], RANKS[i], n, 1, CG_FOLD_MEAN, 1);
            for (k = 0; k < 6; k++) {
                RUN_TESTp(answers, "absmax:4:64", backs[k], routes[2 + j], RANKS[i], n, 1, RANKS[i] / 2, k % 2);
                RUN_TESTp(answers, "topk:0.2", backs[k], routes[2 + j], RANKS[i], n, 1, 0, 0);
            }
            RUN_TESTp(answers, "qsgd:4", "dense", routes[2 + j], RANKS[i], n, 0, 0, 0);
            RUN_TESTp(random_answer, routes[2 + j], RANKS[i]);
        }
    for (j = 0; j < 4; j++) {
        for (k = 0; k < 3; k++) RUN_TESTp(telescope, biased[k], biased[k], routes[j], 3);
        RUN_TESTp(telescope, "topk:0.1|f16", "topk:0.05|f16", routes[j], 4);
        for (k = 0; k < 5; k++) RUN_TESTp(unbiased, random[k], routes[j], 3);
        RUN_TESTp(unbiased, "randk:0.25", routes[j], 3);
        RUN_TESTp(unbiased, "wangni:0.3", routes[j], 3);
    }
    RUN_TESTp(unbiased, "permk:4", (uint32_t)CG_ROUTE_ALLGATHER, 4);
    RUN_TESTp(independent_legs, (uint32_t)CG_ROUTE_SCATTER);
    RUN_TESTp(independent_legs, (uint32_t)CG_ROUTE_SERVER);
}

/* ---- lists: merge, region, shared ---- */

/* The k largest stay, of equals the lowest; what goes is added to lost. */
static void keep_largest(float *v, size_t n, size_t k, float *lost) {
    float *all = floats(n);
    size_t i, j;
    memcpy(all, v, 4 * n);
    for (i = 0; i < n; i++) {
        size_t above = 0;
        for (j = 0; j < n; j++) above += fabsf(all[j]) > fabsf(all[i]) || (j < i && fabsf(all[j]) == fabsf(all[i]));
        if (above < k) continue;
        if (lost) lost[i] += all[i];
        v[i] = 0.0f;
    }
    free(all);
}

static size_t count_of(double ratio, size_t n) {
    const double k = floor((double)(float)ratio * (double)n + 0.5);
    return k < 1.0 ? (n ? 1 : 0) : k > (double)n ? n : (size_t)k;
}

static void fill_ties(world *w, uint64_t seed) /* few different magnitudes, many zeros */
{
    size_t i;
    int r;
    fill(w, BELL, seed);
    for (r = 0; r < w->ranks; r++)
        for (i = 0; i < w->n; i++)
            w->in[r][i] = fabsf(w->in[r][i]) < 1.0f ? 0.0f : (float)floor((double)w->in[r][i]) * 0.5f;
}

TEST merged(const char *op, double ratio, uint32_t route, int ranks, size_t n, int ties, uint32_t fold) {
    const size_t k = count_of(ratio, n);
    const float over = fold == CG_FOLD_SUM ? 1.0f : (float)(1.0 / ranks);
    float *v[MOST], *d[MOST], *lost[MOST];
    size_t i;
    int r, t, again;
    build(&W, op, route, ranks, n);
    W.desc.fold = fold;
    for (r = 0; r < ranks; r++) {
        v[r] = floats(n);
        d[r] = floats(n);
        lost[r] = floats(n);
    }
    for (again = 0; again < 2; again++) {
        if (ties) fill_ties(&W, n + (uint64_t)again);
        else fill(&W, DYADIC, n + (uint64_t)again);
        TRY(run_ok(&W));
        for (r = 0; r < ranks; r++) {
            squeezed(&W.desc.op, tag_of(&W, r), NULL, W.in[r], n, d[r]);
            memcpy(v[r], d[r], 4 * n);
            memset(lost[r], 0, 4 * n);
        }
        for (t = 1; t < ranks; t *= route == CG_ROUTE_MERGE ? 2 : 1 + ranks)
            for (r = 0; r < ranks; r += 2 * t) {
                int q;
                if (route == CG_ROUTE_REGION && r) break; /* all at once */
                for (q = r + t; q < ranks && q < (route == CG_ROUTE_MERGE ? r + t + 1 : ranks); q++)
                    for (i = 0; i < n; i++) v[r][i] += v[q][i];
                if (r + t < ranks) keep_largest(v[r], n, k, lost[r]);
            }
        if (ranks == 1 && route == CG_ROUTE_REGION) keep_largest(v[0], n, k, lost[0]);
        for (i = 0; i < n; i++) v[0][i] = ref_mul(v[0][i], over);
        ASSERTm(say(&W, "not the k largest"), same_values(v[0], W.out, n));
        for (r = 0; r < ranks && route == CG_ROUTE_MERGE; r++) {
            for (i = 0; i < n; i++) d[r][i] -= lost[r][i];
            ASSERTm(say(&W, "used is not what was sent less what was dropped"), same_values(d[r], W.used[r], n));
        }
        if ((ranks & (ranks - 1)) == 0 || fold == CG_FOLD_SUM) ASSERTm(say(&W, "mass is lost"), dyadic_identity(&W));
    }
    for (r = 0; r < ranks; r++) {
        free(v[r]);
        free(d[r]);
        free(lost[r]);
    }
    wreck(&W);
    PASS();
}

/* Rank 0 drops index 1 of rank 1; ranks 2 and 3 bring it back. As published, rank 1 would believe that its 3 had
   arrived. */
TEST a_dropped_index_survives(void) {
    static const float in[4][4] = { { 4, 0, 0, 0 }, { 0, 3, 0, 0 }, { 0, 5, 0, 0 }, { 0, 1, 0, 0 } };
    static const float used[4][4] = { { 0, -3, 0, 0 }, { 0, 3, 0, 0 }, { 0, 5, 0, 0 }, { 0, 1, 0, 0 } },
                       out[4] = { 0, 1.5f, 0, 0 };
    int r;
    build(&W, "topk:0.25", CG_ROUTE_MERGE, 4, 4);
    for (r = 0; r < 4; r++) memcpy(W.in[r], in[r], sizeof in[r]);
    TRY(run_ok(&W));
    ASSERT(same_values(out, W.out, 4));
    for (r = 0; r < 4; r++) ASSERT(same_values(used[r], W.used[r], 4));
    wreck(&W);
    PASS();
}

static void index_set(const world *w, int r, unsigned char *has) {
    cg_tag tag = tag_of(w, r);
    ops_packet pk = ops_pack(&w->desc.op, &tag, w->in[r], w->n);
    float *y = floats(w->n);
    size_t i;
    for (i = 0; i < w->n; i++) y[i] = 1.0f;
    if (pk.status != CG_OK || cg_clear(pk.p, pk.len, y, w->n) != CG_OK) exit(2);
    for (i = 0; i < w->n; i++) has[i] = y[i] == 0.0f;
    free(y);
    free(pk.p);
}

/* STAR: the layers of one step, which have the numbers 0, 1, 2 ..., have leaders one after the other. */
static int star(uint64_t step, uint32_t tensor, int ranks) {
    int r = (int)(step % (uint64_t)ranks);
    for (uint32_t i = tensor % (uint32_t)ranks; i; i--) r = r + 1 < ranks ? r + 1 : 0;
    return r;
}
TEST shared(const char *op, int ranks, int leader, uint64_t tag_step, uint32_t tensor, int mask) {
    static const float scores[MOST] = { 1.0f, 2.5f, 2.5f, 0.5f, 2.0f, -1.0f, 0.0f, 2.25f };
    float *want = floats(700);
    unsigned char has[700];
    int r, who = leader > 0 ? leader - 1 : leader == 0 ? star(tag_step, tensor, ranks) : ranks > 1 ? 1 : 0;
    size_t i;
    build(&W, op, CG_ROUTE_SHARED, ranks, 700);
    W.desc.leader = leader;
    W.desc.tag.step = tag_step;
    W.desc.tag.tensor = tensor;
    W.desc.fold = ranks & (ranks - 1) ? CG_FOLD_SUM : CG_FOLD_MEAN; /* nothing to round */
    W.which = mask;
    for (r = 0; r < ranks; r++) W.score[r] = scores[r];
    fill(&W, DYADIC, tag_step + (uint64_t)ranks);
    TRY(run_ok(&W));
    index_set(&W, who, has);
    for (i = 0; i < W.n; i++) {
        double sum = 0.0;
        for (r = 0; r < ranks; r++) sum += (double)W.in[r][i];
        want[i] = has[i] ? (float)(W.desc.fold == CG_FOLD_SUM ? sum : sum / ranks) : 0.0f;
        for (r = 0; r < ranks; r++)
            ASSERTm(say(&W, "used is not x at the leader's indices"), W.used[r][i] == (has[i] ? W.in[r][i] : 0.0f));
    }
    ASSERTm(say(&W, "not the mean at the leader's indices"), same_values(want, W.out, W.n));
    free(want);
    wreck(&W);
    PASS();
}

SUITE(lists) {
    static const size_t sizes[] = { 1, 40, 65, 600 };
    static const char *const ops[] = { "topk:0.1", "dgc:0.1", "mstopk:0.1", "sidco:0.1", "topk:0.9" };
    static const uint32_t routes[] = { CG_ROUTE_MERGE, CG_ROUTE_REGION };
    int i, j, k, ties;
    size_t s;
    for (i = 0; i < N_RANKS; i++)
        for (j = 0; j < 2; j++)
            for (k = 0; k < 5; k++)
                for (s = quick ? 1 : 0; s < 4; s++)
                    for (ties = 0; ties < 2; ties++) {
                        if (quick && (s == 3) && k) continue;
                        RUN_TESTp(merged, ops[k], k == 4 ? 0.9 : 0.1, routes[j], RANKS[i], sizes[s], ties,
                            (k + (int)s) % 2 ? CG_FOLD_SUM : CG_FOLD_MEAN);
                    }
    RUN_TEST(a_dropped_index_survives);
    for (i = 0; i < N_RANKS; i++)
        for (j = CG_LEADER_BY_SCORE; j <= RANKS[i]; j++) {
            RUN_TESTp(shared, "topk:0.05", RANKS[i], j, 3 + (uint64_t)i, (uint32_t)i, SIM_ALL);
            RUN_TESTp(shared, "topk:0.05", RANKS[i], j, 8, 0, SIM_ALLREDUCE);
            RUN_TESTp(shared, "chunked:50:0.1", RANKS[i], j, UINT64_MAX, UINT32_MAX, SIM_SENDRECV);
            RUN_TESTp(shared, "dgc:0.1", RANKS[i], j, 1, 2, SIM_ALLGATHER);
        }
}

/* ---- linear: values, and PowerSGD ---- */

enum { ROWS_M = 40, COLS_M = 50, RANK_M = 2 };

/* P = mean of M Q, orthonormal; Q = mean of M' P; the result P Q'. q: RANK_M rows of COLS_M. */
static void power_step(const world *w, double *q, double *result) {
    double p[RANK_M][ROWS_M] = { { 0 } };
    int a, b, i, j, r;
    for (a = 0; a < RANK_M; a++)
        for (i = 0; i < ROWS_M; i++)
            for (r = 0; r < w->ranks; r++)
                for (j = 0; j < COLS_M; j++) p[a][i] += (double)w->in[r][i * COLS_M + j] * q[a * COLS_M + j] / w->ranks;
    for (a = 0; a < RANK_M; a++) {
        double norm = 0.0;
        for (b = 0; b < a; b++) {
            double dot = 0.0;
            for (i = 0; i < ROWS_M; i++) dot += p[a][i] * p[b][i];
            for (i = 0; i < ROWS_M; i++) p[a][i] -= dot * p[b][i];
        }
        for (i = 0; i < ROWS_M; i++) norm += p[a][i] * p[a][i];
        for (i = 0; i < ROWS_M; i++) p[a][i] /= sqrt(norm);
    }
    memset(q, 0, RANK_M * COLS_M * sizeof *q);
    for (a = 0; a < RANK_M; a++)
        for (j = 0; j < COLS_M; j++)
            for (r = 0; r < w->ranks; r++)
                for (i = 0; i < ROWS_M; i++) q[a * COLS_M + j] += (double)w->in[r][i * COLS_M + j] * p[a][i] / w->ranks;
    for (i = 0; i < ROWS_M; i++)
        for (j = 0; j < COLS_M; j++) {
            result[i * COLS_M + j] = 0.0;
            for (a = 0; a < RANK_M; a++) result[i * COLS_M + j] += p[a][i] * q[a * COLS_M + j];
        }
}

TEST power_iterations(int ranks, int mask, uint32_t fold) {
    double q[RANK_M * COLS_M], want[ROWS_M * COLS_M];
    float warm[MOST][RANK_M * COLS_M];
    const double times = fold == CG_FOLD_SUM ? ranks : 1.0;
    size_t i;
    int r, t;
    build(&W, "lowrank:2:40:50", CG_ROUTE_LINEAR, ranks, ROWS_M * COLS_M);
    W.which = mask;
    W.desc.fold = fold;
    fill(&W, BELL, 11);
    for (i = 0; i < RANK_M * COLS_M; i++) {
        q[i] = (double)(float)bell();
        for (r = 0; r < ranks; r++) warm[r][i] = (float)q[i];
    }
    for (r = 0; r < ranks; r++) W.warm[r] = warm[r];
    for (t = 0; t < 3; t++) {
        double top = 0.0;
        TRY(run_ok(&W));
        TRY(identity(&W));
        power_step(&W, q, want);
        for (i = 0; i < W.n; i++) top = fmax(top, fabs(want[i]));
        for (i = 0; i < W.n; i++)
            ASSERTm(say(&W, "not a power iteration"), fabs((double)W.out[i] - times * want[i]) <= 2e-5 * times * top);
        for (r = 0; r < ranks; r++) {
            ASSERTm(say(&W, "warm starts differ"), !memcmp(warm[r], warm[0], sizeof warm[0]));
            if (fold == CG_FOLD_MEAN)
                ASSERTm(say(&W, "every rank counts the mean"), same_values(W.used[r], W.out, W.n));
        }
    }
    wreck(&W);
    PASS();
}

/* Ranks whose mean has rank 2: found exactly, from the start that the tag gives. */
TEST power_finds_it(int ranks) {
    float warm[MOST][RANK_M * COLS_M];
    double mean[ROWS_M * COLS_M] = { 0 };
    size_t i;
    int r, t;
    build(&W, "lowrank:2:40:50", CG_ROUTE_LINEAR, ranks, ROWS_M * COLS_M);
    memset(warm, 0, sizeof warm);
    for (r = 0; r < ranks; r++) {
        W.warm[r] = warm[r];
        for (i = 0; i < W.n; i++) {
            const double a = (double)(i / COLS_M), b = (double)(i % COLS_M);
            W.in[r][i] = (float)((1 + r) * sin(a) * cos(b) + cos(3 * a) * (b - 20.0) * 0.1 * (r % 2 ? -0.5 : 1.0));
            mean[i] += (double)W.in[r][i] / ranks;
        }
    }
    for (t = 0; t < 2; t++) TRY(run_ok(&W));
    for (i = 0; i < W.n; i++) ASSERTm(say(&W, "not found"), fabs((double)W.out[i] - mean[i]) < 1e-4);
    wreck(&W);
    PASS();
}

SUITE(matrices) {
    static const int masks[] = { SIM_ALL, SIM_SENDRECV, SIM_ALLGATHER, SIM_BROADCAST, SIM_ALLREDUCE };
    int i, j;
    for (i = 0; i < N_RANKS; i++) {
        for (j = 0; j < 5; j++) RUN_TESTp(power_iterations, RANKS[i], masks[j], j == 1 ? CG_FOLD_SUM : CG_FOLD_MEAN);
        RUN_TEST1(power_finds_it, RANKS[i]);
    }
}

/* ---- folds ---- */

TEST majority(uint32_t route, int ranks, size_t n, int mask) {
    size_t i;
    int r;
    build(&W, "sign", route, ranks, n);
    W.desc.fold = CG_FOLD_VOTE;
    W.which = mask;
    fill_ties(&W, n);
    TRY(run_ok(&W));
    for (i = 0; i < n; i++) {
        int votes = 0;
        for (r = 0; r < ranks; r++) votes += W.in[r][i] >= 0.0f ? 1 : -1;
        ASSERTm(say(&W, "not the majority"), W.out[i] == (votes >= 0 ? 1.0f : -1.0f));
        for (r = 0; r < ranks; r++)
            ASSERTm(say(&W, "used is not the sign"), W.used[r][i] == (W.in[r][i] >= 0.0f ? 1.0f : -1.0f));
    }
    wreck(&W);
    PASS();
}

/* The sum in rank order, divided by how many sent a value there. */
TEST contributors(const char *op, int ranks, int mask) {
    enum { NC = 900 };
    float y[NC] = { 0 }, d[NC];
    int count[NC] = { 0 };
    unsigned char has[NC];
    size_t i;
    int r;
    build(&W, op, CG_ROUTE_ALLGATHER, ranks, NC);
    W.desc.fold = CG_FOLD_CONTRIBUTORS;
    W.which = mask;
    fill(&W, WILD, (uint64_t)ranks);
    /* so that some meet */
    for (r = 1; r < ranks; r++)
        for (i = 0; i < NC; i += 3) W.in[r][i] = W.in[0][i] * 1.5f;
    /* and some blocks are zero */
    for (r = 0; r < ranks; r++) memset(W.in[r] + 32 * r, 0, 100 * 4);
    TRY(run_ok(&W));
    for (r = 0; r < ranks; r++) {
        index_set(&W, r, has);
        squeezed(&W.desc.op, tag_of(&W, r), NULL, W.in[r], NC, d);
        for (i = 0; i < NC; i++)
            if (has[i]) {
                y[i] = count[i] ? ref_add(y[i], d[i]) : d[i];
                count[i]++;
            }
    }
    for (i = 0; i < NC; i++)
        if (count[i]) y[i] = ref_div(y[i], (float)count[i]);
    ASSERTm(say(&W, "not the mean over contributors"), same_values(y, W.out, NC));
    wreck(&W);
    PASS();
}

/* In the domain of the transform: rank r sends one frequency per block of 64, and those that send the same share it. */
TEST contributed_frequencies(int ranks) {
    enum { NF = 640 };
    double want[NF];
    size_t b, i;
    int r, q;
    build(&W, "demo:0.015625", CG_ROUTE_ALLGATHER, ranks, NF);
    W.desc.fold = CG_FOLD_CONTRIBUTORS;
    memset(want, 0, sizeof want);
    for (b = 0; b < NF / 64; b++)
        for (r = 0; r < ranks; r++) {
            const size_t f = 1 + (b * (size_t)r) % 3;
            int others = 0;
            for (q = 0; q < ranks; q++) others += (b * (size_t)q) % 3 == (b * (size_t)r) % 3;
            for (i = 0; i < 64; i++) {
                W.in[r][64 * b + i] =
                    (float)((1.0 + r) * cos(3.14159265358979323846 * (double)f * ((double)i + 0.5) / 64.0));
                want[64 * b + i] += (double)W.in[r][64 * b + i] / others;
            }
        }
    TRY(run_ok(&W));
    for (i = 0; i < NF; i++)
        ASSERTm(say(&W, "not the mean of each frequency"), fabs((double)W.out[i] - want[i]) < 1e-4);
    wreck(&W);
    PASS();
}

TEST weighted(const char *op, uint32_t route, int ranks, int carry, uint32_t fold) {
    static const float w[MOST] = { 1.0f, 2.0f, 3.5f, 0.25f, 7.0f, 1.5f, 0.125f, 100.0f };
    int r, kind;
    build(&W, op, route, ranks, strstr(op, ":40:50") ? N_OPS_MATRIX : 1000);
    W.carries = carry;
    W.desc.fold = fold;
    for (r = 0; r < ranks; r++) W.weight[r] = w[r];
    for (kind = WILD; kind <= DYADIC; kind++) {
        fill(&W, kind, 3);
        TRY(step(&W));
    }
    wreck(&W);
    PASS();
}

/* Weighted values at the leader's indices, and weighted dense sums. */
TEST weighted_linear(const char *op, uint32_t route, int ranks, uint32_t fold) {
    static const float w[MOST] = { 1.0f, 2.0f, 3.5f, 0.25f, 7.0f, 1.5f, 0.125f, 100.0f };
    size_t i;
    int r;
    build(&W, op, route, ranks, 700);
    W.desc.fold = fold;
    for (r = 0; r < ranks; r++) W.weight[r] = w[r];
    fill(&W, BELL, 8);
    TRY(run_ok(&W));
    TRY(identity(&W));
    for (i = 0; i < W.n; i++) {
        double sum = 0.0, size = 0.0;
        for (r = 0; r < ranks; r++) {
            sum += (double)w[r] * (double)W.used[r][i] / (fold == CG_FOLD_SUM ? 1.0 : weights(&W));
            size += fabs((double)w[r] * (double)W.in[r][i]);
        }
        ASSERTm(say(&W, "not the weighted sum"), fabs(sum - (double)W.out[i]) <= 0x1p-22 * size);
        if (route == CG_ROUTE_LINEAR)
            for (r = 0; r < ranks; r++) ASSERT(W.used[r][i] == W.in[r][i]);
    }
    wreck(&W);
    PASS();
}

SUITE(folds) {
    static const uint32_t voting[] = { CG_ROUTE_ALLGATHER, CG_ROUTE_SERVER, CG_ROUTE_SCATTER };
    static const size_t sizes[] = { 0, 1, 64, 1000 };
    static const char *const ops[] = { "topk:0.1", "topk:0.1|absmax:4:64", "chunked:30:0.1", "topk:0.1|golomb",
        "threshold:1000", "topk:0.2|efsign", "wangni:0.2", "blocks:16", "randk:0.5|topk:0.2", "topk:0.1|f16", "dgc:0.1",
        "sides:0.1|onebit" };
    uint32_t fold;
    int i, j;
    size_t s;
    for (i = 0; i < N_RANKS; i++) {
        for (j = 0; j < 3; j++)
            for (s = 0; s < 4; s++) RUN_TESTp(majority, voting[j], RANKS[i], sizes[s], s % 2 ? SIM_SENDRECV : SIM_ALL);
        RUN_TESTp(majority, (uint32_t)CG_ROUTE_SERVER, RANKS[i], (size_t)500, SIM_BROADCAST);
        for (j = 0; j < 12; j++) RUN_TESTp(contributors, ops[j], RANKS[i], j % 2 ? SIM_SENDRECV : SIM_ALL);
        RUN_TEST1(contributed_frequencies, RANKS[i]);
        for (fold = CG_FOLD_MEAN; fold <= CG_FOLD_SUM; fold++) {
            uint32_t route;
            for (route = CG_ROUTE_ALLGATHER; route <= CG_ROUTE_SERVER; route++) {
                RUN_TESTp(weighted, "dense", route, RANKS[i], 0, fold);
                RUN_TESTp(weighted, "absmax:4:64", route, RANKS[i], 0, fold);
                RUN_TESTp(weighted, "topk:0.1", route, RANKS[i], 1, fold);
                RUN_TESTp(weighted, "efsign", route, RANKS[i], 1, fold);
                RUN_TESTp(weighted, "rotate:2", route, RANKS[i], 0, fold);
            }
            RUN_TESTp(weighted, "lowrank:2:40:50", (uint32_t)CG_ROUTE_LINEAR, RANKS[i], 0, fold);
            RUN_TESTp(weighted, "atomo:2:40:50", (uint32_t)CG_ROUTE_SERVER, RANKS[i], 0, fold);
            RUN_TESTp(weighted, "permk:8", (uint32_t)CG_ROUTE_SERVER, RANKS[i], 0, fold);
            RUN_TESTp(weighted_linear, "dense", (uint32_t)CG_ROUTE_LINEAR, RANKS[i], fold);
            RUN_TESTp(weighted_linear, "topk:0.1", (uint32_t)CG_ROUTE_SHARED, RANKS[i], fold);
        }
    }
}

/* ---- agreed scales ---- */

/* used is x packed with the largest scale of all ranks, and the result the sum of the integer levels, times the
   step, over N. levels 0: a transform hides them. */
TEST agreed(const char *op, double levels, size_t bucket, uint32_t route, int ranks, int mask) {
    enum { NA = 640, HEAD = CG_HEADER_BYTES };
    const int parts = route == CG_ROUTE_RING || route == CG_ROUTE_SCATTER ? ranks : 1;
    float *d = floats(NA), *scales = floats(2048);
    double sums[NA], sizes[NA];
    int p, r;
    size_t i, b;
    build(&W, op, route, ranks, NA);
    W.which = mask;
    W.desc.flags = CG_AGREE_SCALES;
    fill(&W, BELL, (uint64_t)ranks);
    /* who is largest differs by bucket */
    for (r = 0; r < ranks; r++)
        for (i = 0; i < NA; i++) W.in[r][i] *= (float)(1 + (r * 7 + (int)(i / 64)) % 5);
    TRY(run_ok(&W));
    TRY(identity(&W));
    for (p = 0; p < parts; p++) {
        const size_t start = parts > 1 ? stripe(&W, p) : 0, n = parts > 1 ? stripe(&W, p + 1) - start : NA;
        const size_t turned = W.desc.op.transform.id ? (n + 1023) / 1024 * 1024 : n,
                     buckets = n == 0 ? 0
            : bucket                  ? (turned + bucket - 1) / bucket
                                      : 1;
        cg_extra side = CG_ZERO;
        memset(scales, 0, 2048 * 4);
        for (i = start; i < start + n; i++) sums[i] = sizes[i] = 0.0;
        for (r = 0; r < ranks; r++) {
            const cg_tag tag = part_tag(&W, r, p);
            ops_packet pk = ops_pack(&W.desc.op, &tag, W.in[r] + start, n);
            for (b = 0; b < buckets; b++) {
                const float s = ref_float((uint32_t)ref_get(pk.p + HEAD + 4 * b, 4));
                if (s > scales[b]) scales[b] = s;
            }
            free(pk.p);
        }
        side.scale = scales;
        for (r = 0; r < ranks; r++) {
            squeezed(&W.desc.op, part_tag(&W, r, p), &side, W.in[r] + start, n, d);
            ASSERTm(say(&W, "used is not x on the agreed scales"), same_values(d, W.used[r] + start, n));
            for (i = 0; i < n && levels > 0.0; i++) {
                sums[start + i] += floor((double)d[i] / ((double)scales[bucket ? i / bucket : 0] / levels) + 0.5);
                sizes[start + i] += fabs((double)d[i]);
            }
        }
        for (i = 0; i < n && levels > 0.0; i++) {
            const double want = sums[start + i] * ((double)scales[bucket ? i / bucket : 0] / levels) / ranks,
                         got = (double)W.out[start + i];
            const double most = route == CG_ROUTE_ALLGATHER ? 0x1p-22 * sizes[start + i] : 0x1p-22 * fabs(want);
            ASSERTm(say(&W, "not the sum of levels"), fabs(got - want) <= most);
        }
    }
    wreck(&W);
    free(d);
    free(scales);
    PASS();
}

/* TernGrad's answer: the sum of N trits takes ceil(log2(2N + 1)) bits. */
TEST trits_of_the_answer(int ranks) {
    enum { NT = 6400 };
    uint64_t bits = 0, least, got;
    build(&W, "terngrad", CG_ROUTE_SERVER, ranks, NT);
    W.desc.flags = CG_AGREE_SCALES;
    fill(&W, BELL, 1);
    TRY(run_ok(&W));
    while ((UINT64_C(1) << bits) < 2 * (uint64_t)ranks + 1) bits++;
    least = CG_HEADER_BYTES + NT * bits / 8;
    /* less the opening records, a preamble and a verdict */
    got = W.s.rank[1].report.bytes_in - (64 + 24) * ((uint64_t)ranks - 1) - 24;
    ASSERTm(say(&W, "the answer has another size"), got >= least && got <= least + 8);
    wreck(&W);
    PASS();
}

SUITE(agreement) {
    static const uint32_t routes[] = { CG_ROUTE_ALLGATHER, CG_ROUTE_SERVER, CG_ROUTE_SCATTER, CG_ROUTE_RING,
        CG_ROUTE_TREE };
    int i, j;
    for (i = 0; i < N_RANKS; i++) {
        for (j = 0; j < 5; j++) {
            const int few = routes[j] == CG_ROUTE_ALLGATHER || routes[j] == CG_ROUTE_SERVER ? SIM_ALLREDUCE
                                                                                            : SIM_SENDRECV;
            RUN_TESTp(agreed, "terngrad", 1.0, (size_t)0, routes[j], RANKS[i], SIM_ALL);
            RUN_TESTp(agreed, "absmax:4:64", 7.0, (size_t)64, routes[j], RANKS[i], few);
            RUN_TESTp(agreed, "absmax:8:64", 127.0, (size_t)64, routes[j], RANKS[i], SIM_ALL);
            RUN_TESTp(agreed, "absmax:8:1024", 127.0, (size_t)1024, routes[j], RANKS[i], SIM_SENDRECV);
            RUN_TESTp(agreed, "levels:7:64:max", 7.0, (size_t)64, routes[j], RANKS[i], SIM_ALL);
            RUN_TESTp(agreed, "trits:1.5", 1.0, (size_t)0, routes[j], RANKS[i], few);
            RUN_TESTp(agreed, "rotate:2|absmax:4:64", 0.0, (size_t)64, routes[j], RANKS[i], SIM_ALL);
        }
        if (RANKS[i] > 1) RUN_TEST1(trits_of_the_answer, RANKS[i]);
    }
}

/* ---- what is refused, and who is told ---- */

typedef struct refusal {
    const char *op;
    uint32_t route, fold;
    int carry, which, weighted;
    uint32_t flags;
    const char *back;
    int k, scale;
    const char *names;
} refusal;
static const refusal REFUSALS[] = {
    /* biased operators that would be encoded again */
    { "efsign", CG_ROUTE_RING, CG_FOLD_MEAN, 0, SIM_ALL, 0, 0, NULL, 0, 0, "carry" },
    { "efsign", CG_ROUTE_SCATTER, CG_FOLD_SUM, 0, SIM_ALL, 0, 0, NULL, 0, 0, "carry" },
    { "topk:0.1", CG_ROUTE_TREE, CG_FOLD_MEAN, 0, SIM_ALL, 1, 0, NULL, 0, 0, "carry" },
    { "dense", CG_ROUTE_SCATTER, CG_FOLD_MEAN, 0, SIM_ALL, 0, 0, "topk:0.1", 0, 0, "carry" },
    { "randk:0.1:unscaled", CG_ROUTE_RING, CG_FOLD_MEAN, 0, SIM_ALL, 1, 0, NULL, 0, 0, "carry" },
    /* without sendrecv */
    { "dense", CG_ROUTE_RING, CG_FOLD_MEAN, 0, SIM_ALLREDUCE | SIM_ALLGATHER | SIM_BROADCAST, 0, 0, NULL, 0, 0,
        "sendrecv" },
    { "dense", CG_ROUTE_TREE, CG_FOLD_MEAN, 0, SIM_ALLGATHER, 0, 0, NULL, 0, 0, "sendrecv" },
    { "sign", CG_ROUTE_SCATTER, CG_FOLD_VOTE, 0, SIM_BROADCAST, 0, 0, NULL, 0, 0, "sendrecv" },
    { "topk:0.1", CG_ROUTE_MERGE, CG_FOLD_MEAN, 0, SIM_ALLREDUCE, 0, 0, NULL, 0, 0, "sendrecv" },
    { "topk:0.1", CG_ROUTE_REGION, CG_FOLD_MEAN, 0, SIM_ALLREDUCE | SIM_ALLGATHER, 0, 0, NULL, 0, 0, "sendrecv" },
    /* operators that a route cannot take */
    { "absmax:4:64", CG_ROUTE_MERGE, CG_FOLD_MEAN, 1, SIM_ALL, 0, 0, NULL, 0, 0, "topk" },
    { "chunked:10:0.1", CG_ROUTE_REGION, CG_FOLD_MEAN, 1, SIM_ALL, 0, 0, NULL, 0, 0, "topk" },
    { "topk:0.1|huffman", CG_ROUTE_MERGE, CG_FOLD_MEAN, 1, SIM_ALL, 0, 0, NULL, 0, 0, "topk" },
    { "topk:0.1|f16", CG_ROUTE_SHARED, CG_FOLD_MEAN, 1, SIM_ALL, 0, 0, NULL, 0, 0, "f32" },
    { "threshold:1", CG_ROUTE_SHARED, CG_FOLD_MEAN, 1, SIM_ALL, 0, 0, NULL, 0, 0, "topk" },
    { "rotate:1|topk:0.1", CG_ROUTE_SHARED, CG_FOLD_MEAN, 1, SIM_ALL, 0, 0, NULL, 0, 0, "topk" },
    { "permk:4", CG_ROUTE_RING, CG_FOLD_MEAN, 1, SIM_ALL, 0, 0, NULL, 0, 0, "PermK" },
    { "topk:0.1", CG_ROUTE_LINEAR, CG_FOLD_MEAN, 1, SIM_ALL, 0, 0, NULL, 0, 0, "random-k" },
    { "f16", CG_ROUTE_LINEAR, CG_FOLD_MEAN, 1, SIM_ALL, 0, 0, NULL, 0, 0, "f32" },
    { "dense|huffman", CG_ROUTE_LINEAR, CG_FOLD_MEAN, 1, SIM_ALL, 0, 0, NULL, 0, 0, "f32" },
    { "topk:0.1", CG_ROUTE_MERGE, CG_FOLD_MEAN, 0, SIM_ALL, 1, 0, NULL, 0, 0, "weights" },
    { "topk:0.1", CG_ROUTE_REGION, CG_FOLD_SUM, 0, SIM_ALL, 1, 0, NULL, 0, 0, "weights" },
    { "topk:0.1", CG_ROUTE_SCATTER, CG_FOLD_MEAN, 0, SIM_ALL, 0, 0, NULL, 7, 0, "ratio" },
    { "topk:0.1", CG_ROUTE_RING, CG_FOLD_MEAN, 1, SIM_ALL, 0, 0, NULL, 7, 0, "ratio" },
    { "absmax:8:1024", CG_ROUTE_SCATTER, CG_FOLD_MEAN, 0, SIM_ALL, 0, 0, NULL, 0, 1, "CG_AGREE_SCALES" },
    { "dense", CG_ROUTE_SERVER, CG_FOLD_MEAN, 1, SIM_ALL, 0, 0, "permk:4", 0, 0, "second" },
    /* folds */
    { "efsign", CG_ROUTE_ALLGATHER, CG_FOLD_VOTE, 0, SIM_ALL, 0, 0, NULL, 0, 0, "cg_sign" },
    { "topk:0.1|sign", CG_ROUTE_ALLGATHER, CG_FOLD_VOTE, 0, SIM_ALL, 0, 0, NULL, 0, 0, "cg_sign" },
    { "sign", CG_ROUTE_RING, CG_FOLD_VOTE, 1, SIM_ALL, 0, 0, NULL, 0, 0, "votes" },
    { "sign", CG_ROUTE_TREE, CG_FOLD_VOTE, 1, SIM_ALL, 0, 0, NULL, 0, 0, "votes" },
    { "sign", CG_ROUTE_SERVER, CG_FOLD_VOTE, 0, SIM_ALL, 1, 0, NULL, 0, 0, "weights" },
    { "sign", CG_ROUTE_SERVER, CG_FOLD_VOTE, 0, SIM_ALL, 0, 0, "f16", 0, 0, "second" },
    { "topk:0.1", CG_ROUTE_SCATTER, CG_FOLD_CONTRIBUTORS, 0, SIM_ALL, 0, 0, NULL, 0, 0, "allgather" },
    { "topk:0.1", CG_ROUTE_MERGE, CG_FOLD_CONTRIBUTORS, 0, SIM_ALL, 0, 0, NULL, 0, 0, "allgather" },
    { "topk:0.1", CG_ROUTE_ALLGATHER, CG_FOLD_CONTRIBUTORS, 0, SIM_ALL, 1, 0, NULL, 0, 0, "weights" },
    /* scales */
    { "efsign", CG_ROUTE_ALLGATHER, CG_FOLD_MEAN, 0, SIM_ALL, 0, CG_AGREE_SCALES, NULL, 0, 0, "scales" },
    { "dense", CG_ROUTE_LINEAR, CG_FOLD_MEAN, 0, SIM_ALL, 0, CG_AGREE_SCALES, NULL, 0, 0, "scales" },
    { "topk:0.1|absmax:4:64", CG_ROUTE_ALLGATHER, CG_FOLD_MEAN, 0, SIM_ALL, 0, CG_AGREE_SCALES, NULL, 0, 0, "scales" },
    { "terngrad|quartic", CG_ROUTE_SERVER, CG_FOLD_MEAN, 0, SIM_ALL, 0, CG_AGREE_SCALES, NULL, 0, 0, "scales" },
    { "absmax:8:1024", CG_ROUTE_SERVER, CG_FOLD_MEAN, 0, SIM_ALL, 0, CG_AGREE_SCALES, NULL, 0, 1, "scales" },
};

TEST refused(size_t i, int ranks) {
    static const float one = 9.0f;
    const refusal *f = &REFUSALS[i];
    const cg_op back = f->back ? parsed(f->back) : cg_dense();
    cg_transport t = sim_transport(ranks - 1, ranks, f->which, 0);
    int r;
    build(&W, f->op, f->route, ranks, 300);
    W.desc.fold = f->fold;
    W.desc.flags = f->flags;
    W.carries = f->carry;
    W.which = f->which;
    W.desc.op.k = (uint64_t)f->k;
    if (f->back) W.desc.back = &back;
    for (r = 0; r < ranks; r++) {
        W.weight[r] = f->weighted ? 1.5f : 0.0f;
        if (f->scale) W.side[r].scale = &one;
    }
    fill(&W, BELL, 1);
    TRY(run(&W));
    ASSERTm(say(&W, "not refused"), W.status == CG_E_UNSUPPORTED);
    for (r = 0; r < ranks; r++)
        ASSERTm(say(&W, "the reason does not name it"), strstr(W.s.rank[r].report.why, f->names) != NULL);
    W.s.rank[ranks - 1].desc.side = &W.side[ranks - 1];
    ASSERT_EQm(
        say(&W, "memory for what is refused"), (size_t)0, cg_exchange_memory(&W.s.rank[ranks - 1].desc, &t, 300));
    wreck(&W);
    PASS();
}

/* Somebody else's indices: everybody's values there, by allgather alone. */
TEST given(int ranks) {
    const cg_op op = cg_topk(0.1f);
    cg_tag tag = { 1, 2, 3, 4 };
    ops_packet pk;
    uint32_t route;
    int r;
    for (route = CG_ROUTE_ALLGATHER; route <= CG_ROUTE_LINEAR; route++) {
        build(&W, "given", route, ranks, 500);
        fill(&W, WILD, 1);
        pk = ops_pack(&op, &tag, W.in[0], W.n);
        for (r = 0; r < ranks; r++) {
            W.side[r].support = pk.p;
            W.side[r].support_len = pk.len;
        }
        W.carries = 1;
        if (route == CG_ROUTE_ALLGATHER) TRY(step(&W));
        else {
            TRY(run(&W));
            ASSERT_EQm(say(&W, "not refused"), CG_E_UNSUPPORTED, W.status);
        }
        W.desc.fold = CG_FOLD_CONTRIBUTORS;
        TRY(run(&W));
        ASSERT_EQm(say(&W, "contributors not refused"), CG_E_UNSUPPORTED, W.status);
        free(pk.p);
        wreck(&W);
    }
    PASS();
}

TEST no_callbacks(void) {
    cg_exchange_desc d = CG_ZERO;
    cg_transport t = CG_ZERO;
    cg_report report;
    float x[3] = { 1, 2, 3 };
    char mem[64];
    t.size = 3;
    ASSERT_EQ((size_t)0, cg_exchange_memory(&d, &t, 3));
    ASSERT_EQ(CG_E_ARG, cg_exchange(&d, &t, x, 3, mem, sizeof mem, &report));
    ASSERT(report.why && strstr(report.why, "callback") && strstr(report.why, "sendrecv"));
    t.rank = 3;
    ASSERT_EQ(CG_E_ARG, cg_exchange(&d, &t, x, 3, mem, sizeof mem, &report));
    ASSERT(report.why && strstr(report.why, "rank"));
    ASSERT(x[0] == 1.0f && x[1] == 2.0f && x[2] == 3.0f);
    PASS();
}

/* ---- cg_exchange, the blocking driver ---- */

/* One rank alone: nobody is called (these callbacks would fail), and x becomes D(C(x)). */
TEST alone(int which, uint32_t route) {
    const row *o = &ROWS[which];
    cg_transport t = sim_transport(0, 1, SIM_ALL, 0);
    float *carry = floats(N_OPS_MATRIX), *x = floats(N_OPS_MATRIX), *d = floats(N_OPS_MATRIX);
    cg_report report;
    void *mem;
    size_t bytes;
    build(&W, o->op, route, 1, N_OPS_MATRIX);
    fill(&W, BELL, 4);
    W.desc.side = &W.side[0];
    W.desc.carry = carry;
    memcpy(x, W.in[0], 4 * W.n);
    bytes = cg_exchange_memory(&W.desc, &t, W.n);
    mem = ref_alloc(bytes);
    ASSERT_ENUM_EQm(o->op, CG_OK, cg_exchange(&W.desc, &t, x, W.n, mem, bytes, &report), ops_status);
    ASSERT(
        report.rounds == 0 && report.bytes_in == 0 && report.bytes_out == 0 && report.rank == -1 && report.code == 0);
    W.desc.tag.step++;
    squeezed(&W.desc.op, tag_of(&W, 0), &W.side[0], W.in[0], W.n, d);
    if (is_exact(&W) && route != CG_ROUTE_SHARED && route != CG_ROUTE_REGION)
        ASSERTm(say(&W, "not D(C(x))"), same_values(d, x, W.n));
    ASSERT_EQ(CG_E_MEMORY, cg_exchange(&W.desc, &t, x, W.n, mem, bytes - 64 - 1, NULL)); /* 64: to align it */
    wreck(&W);
    free(carry);
    free(x);
    free(d);
    free(mem);
    PASS();
}

/* A mirror: whatever is sent comes back as if the other rank had sent it. Its records are not of rank 1. */
typedef struct mirror {
    int calls, fail_at, code;
} mirror;
static int mirror_allgather(void *user, const void *mine, void *all, size_t bytes) {
    mirror *m = (mirror *)user;
    if (m->calls++ == m->fail_at) return m->code;
    memcpy(all, mine, bytes);
    memcpy((char *)all + bytes, mine, bytes);
    return 0;
}
TEST mirrored(int fail_at) {
    cg_exchange_desc d = CG_ZERO;
    cg_transport t = CG_ZERO;
    cg_report report;
    mirror m = { 0, 0, 7 };
    float x[100];
    void *mem;
    size_t bytes;
    int i;
    m.fail_at = fail_at;
    t.size = 2;
    t.user = &m;
    t.allgather = mirror_allgather;
    d.op = cg_topk(0.1f);
    d.route = CG_ROUTE_ALLGATHER;
    for (i = 0; i < 100; i++) x[i] = (float)i;
    bytes = cg_exchange_memory(&d, &t, 100);
    mem = ref_alloc(bytes);
    ASSERT_ENUM_EQ(
        fail_at < 0 ? CG_E_CORRUPT : CG_E_TRANSPORT, cg_exchange(&d, &t, x, 100, mem, bytes, &report), ops_status);
    free(mem);
    ASSERT_EQ_FMT(fail_at < 0 ? 0 : 7, report.code, "%d");
    if (fail_at < 0) ASSERT_EQ_FMT(1, report.rank, "%d");
    ASSERT_EQ_FMT(fail_at < 0 ? 2 : fail_at + 1, m.calls, "%d");
    ASSERT(report.why && *report.why && !report.used && report.used_len == 0);
    for (i = 0; i < 100; i++) ASSERT(x[i] == (float)i);
    PASS();
}

/* ---- a packet that arrives damaged is never taken ---- */

static int hurts;
static void hurt_packet(void *user, void *bytes, size_t len, int from) {
    unsigned char *p = (unsigned char *)bytes;
    (void)user;
    (void)from;
    if (len < CG_HEADER_BYTES || memcmp(p, "cgpk", 4)) return;
    p[len / 2] = (unsigned char)(p[len / 2] ^ 0x10);
    hurts++;
}
TEST damaged(const char *op, uint32_t route, int ranks) {
    static unsigned turn;
    float *x[MOST];
    int io, who, r, total = 0;
    build(&W, op, route, ranks, 2000);
    for (who = 0; who < ranks; who++)
        for (io = 0; io < 40; io++) {
            if (total && spared(&turn, 5)) continue;
            W.which = SIM_SENDRECV;
            fill(&W, BELL, 1);
            for (r = 0; r < ranks; r++) x[r] = floats(W.n), memcpy(x[r], W.in[r], 4 * W.n);
            sim_open(&W.s, ranks, SIM_SENDRECV, 0, &W.desc, x, W.n);
            W.s.hurt = hurt_packet;
            W.s.hurt_rank = who;
            W.s.hurt_io = io;
            hurts = 0;
            sim_run(&W.s);
            total += hurts;
            for (r = 0; r < ranks && hurts; r++) {
                const cg_status got = W.s.rank[r].status;
                if (r == who)
                    ASSERTm(say(&W, "a damaged packet was taken"),
                        got == CG_E_CORRUPT || got == CG_E_MISMATCH || got == CG_E_VERSION);
                if (got != CG_OK) ASSERTm(say(&W, "x changed"), !memcmp(x[r], W.in[r], 4 * W.n));
            }
            ASSERTm(say(&W, "ranks wait for ever"), W.s.stuck == 0);
            sim_close(&W.s);
            for (r = 0; r < ranks; r++) free(x[r]);
        }
    ASSERTm(say(&W, "nothing was damaged"), total > 0);
    wreck(&W);
    PASS();
}

/* ---- the order of sums ---- */

/* Of what each rank brings, by the manual: pairs beyond the power of two first, then distance P/2, P/4 ... 1. */
static float summed(const float *brought, int ranks) {
    float a[MOST];
    int p = 1, i, d;
    while (2 * p <= ranks) p *= 2;
    for (i = 0; i < p; i++) a[i] = i < ranks - p ? ref_add(brought[2 * i], brought[2 * i + 1]) : brought[i + ranks - p];
    for (d = p / 2; d; d /= 2)
        for (i = 0; i < d; i++) a[i] = ref_add(a[i], a[i + d]);
    return a[0];
}
/* Round a ring: the stripe with the number of a rank starts there. */
static float summed_on_ring(const float *brought, int ranks, int part) {
    float sum = brought[part];
    int t;
    for (t = 1; t < ranks; t++) sum = ref_add(sum, brought[(part + t) % ranks]);
    return sum;
}

TEST order_of_sums(int ranks, uint32_t way, size_t n, int weighted) {
    float brought[MOST];
    size_t i;
    int r, part = 0;
    build(&W, "dense", CG_ROUTE_LINEAR, ranks, n);
    W.which = way ? SIM_ALL : SIM_SENDRECV; /* a way that is asked for goes before a callback that agrees */
    W.agrees = 1;
    W.desc.sum = way;
    for (r = 0; weighted && r < ranks; r++) W.weight[r] = 1.0f + 0.75f * (float)r;
    fill(&W, WILD, n + (size_t)ranks);
    TRY(run_ok(&W));
    for (i = 0; i < n; i++) {
        float sum;
        for (r = 0; r < ranks; r++) brought[r] = ref_mul((float)weight_of(&W, r), W.in[r][i]);
        while (i >= stripe(&W, part + 1)) part++;
        sum = way == CG_SUM_RING ? summed_on_ring(brought, ranks, part) : summed(brought, ranks);
        sum = ref_mul((float)(1.0 / weights(&W)), sum); /* a dense vector is divided behind the sum */
        ASSERTm(say(&W, "another order"), ref_bits(W.out[i]) == ref_bits(sum));
    }
    for (r = 0; r < ranks; r++) {
        const uint32_t went = W.s.rank[r].report.sum;
        ASSERTm(say(&W, "another way"),
            ranks == 1    ? went == CG_SUM_AUTO
                : way % 2 ? went == CG_SUM_RING || went == CG_SUM_DOUBLING
                          : went == CG_SUM_HALVING || (went == CG_SUM_DOUBLING && way != CG_SUM_HALVING));
        ASSERTm(say(&W, "another way"), ranks == 1 || way == CG_SUM_AUTO || way == CG_SUM_TREE || way == went);
    }
    wreck(&W);
    PASS();
}

static int used_is_packet(const void *used, size_t len, size_t n) {
    cg_info info;
    return cg_inspect(used, len, &info) == CG_OK && info.n == n && info.packet_bytes == len;
}
/* A dense sum is made in x, in into or, at odd addresses, beside them. Wherever: the same bits, all of x counts, x is
   as it was if there is an into, and after an error, whichever message that is lost with. */
enum { INTO = 1, HERE = 2, FED_BACK = 4, ODD = 8, STEPS = 16, WEIGHED = 32, TOTAL = 64 };
TEST dense_ways(int ranks, int how) {
    enum { LONG = 700 };
    static unsigned char block[4][MOST][4 * LONG + 16];
    static float start[LONG];
    const size_t n = LONG, off = how & ODD ? 1 : 0;
    const int in_place = (how & (HERE | INTO | FED_BACK)) == HERE && !off;
    float brought[MOST];
    float *x[MOST];
    size_t i;
    int r, io, failing, t, tries = 0;
    build(&W, "dense", CG_ROUTE_LINEAR, ranks, n);
    W.desc.fold = how & TOTAL ? CG_FOLD_SUM : CG_FOLD_MEAN;
    W.desc.flags = (how & HERE ? CG_IN_PLACE : 0) | (how & FED_BACK ? CG_FEEDS_BACK : 0);
    fill(&W, WILD, (uint64_t)how);
    for (i = 0; i < n; i++) start[i] = (float)i / 8.0f;
    for (t = -1; t < tries; t++) { /* as it is, then without each message of each rank */
        failing = t < 0 ? -1 : t % ranks;
        io = t < 0 ? -1 : t / ranks;
        for (r = 0; r < ranks; r++) {
            W.weight[r] = how & WEIGHED ? 1.0f + 0.75f * (float)r : 0.0f;
            x[r] = (float *)(void *)(block[0][r] + off);
            memcpy(x[r], W.in[r], 4 * n);
            memset(block[1][r], 0x33, sizeof block[1][r]);
            memcpy(block[2][r] + off, start, 4 * n);
        }
        sim_open(&W.s, ranks, SIM_SENDRECV, 0, &W.desc, x, n);
        for (r = 0; r < ranks; r++) {
            W.s.rank[r].desc.weight = W.weight[r];
            if (how & INTO) W.s.rank[r].desc.into = (float *)(void *)(block[1][r] + off);
            if (how & STEPS)
                W.s.rank[r].desc.model = (float *)(void *)(block[2][r] + off), W.s.rank[r].desc.rate = 0.5f;
        }
        W.s.fail_rank = failing;
        W.s.fail_io = io;
        W.s.fail_code = 5;
        sim_run(&W.s);
        if (failing >= 0 && W.s.rank[failing].status != CG_OK) { /* it may have fewer messages than others */
            if (!in_place) ASSERTm(say(&W, "x is not as it was"), !memcmp(x[failing], W.in[failing], 4 * n));
            if (!(how & INTO)) ASSERTm(say(&W, "into"), block[1][failing][off] == 0x33);
            ASSERTm(say(&W, "model changed"), !memcmp(block[2][failing] + off, start, 4 * n));
        }
        for (r = 0; r < ranks && failing < 0; r++) {
            const sim_rank *k = &W.s.rank[r];
            const unsigned char *result = how & INTO ? block[1][r] + off : block[0][r] + off;
            float *used = W.used[r];
            ASSERT_EQ(CG_OK, k->status);
            if (how & INTO) ASSERTm(say(&W, "x changed"), !memcmp(x[r], W.in[r], 4 * n));
            for (i = 0; i < n; i++) {
                float sum, is;
                int q;
                for (q = 0; q < ranks; q++) brought[q] = ref_mul((float)weight_of(&W, q), W.in[q][i]);
                sum = summed(brought, ranks);
                if (!(how & TOTAL)) sum = ref_mul((float)(1.0 / weights(&W)), sum);
                memcpy(&is, (how & STEPS ? block[2][r] + off : result) + 4 * i, 4);
                if (how & STEPS) sum = ref_add(start[i], ref_mul(-0.5f, sum));
                ASSERTm(say(&W, "another sum"), ref_bits(is) == ref_bits(sum));
            }
            if (in_place) {
                ASSERT(!k->report.used && !k->report.used_len);
                continue;
            }
            ASSERT_EQ(CG_OK, cg_used_decode(NULL, k->report.used, k->report.used_len, 1.0f, 0.0f, used, n));
            ASSERTm(say(&W, "not all of x counts"), !memcmp(used, W.in[r], 4 * n));
            if (how & FED_BACK) ASSERTm(say(&W, "no packet"), used_is_packet(k->report.used, k->report.used_len, n));
        }
        for (r = 0; r < ranks && t < 0; r++)
            if ((int)W.s.rank[r].report.rounds * ranks > tries) tries = (int)W.s.rank[r].report.rounds * ranks;
        sim_close(&W.s);
    }
    wreck(&W);
    PASS();
}
/* What report.used refers to is found at its own place only. */
TEST reference_elsewhere(void) {
    unsigned char copy[64];
    float y[8] = { 0 };
    const sim_rank *k = &W.s.rank[0];
    build(&W, "dense", CG_ROUTE_LINEAR, 2, 8);
    fill(&W, BELL, 1);
    TRY(run_ok(&W));
    ASSERT(k->report.used_len <= sizeof copy);
    memcpy(copy, k->report.used, k->report.used_len);
    ASSERT_EQ(CG_OK, cg_used_decode(NULL, k->report.used, k->report.used_len, 2.0f, 0.0f, y, 8));
    ASSERT(y[7] == 2.0f * W.in[0][7]);
    ASSERT_EQ(CG_E_CORRUPT, cg_used_decode(NULL, copy, k->report.used_len, 1.0f, 0.0f, y, 8));
    ASSERT(cg_used_decode(NULL, k->report.used, k->report.used_len, 1.0f, 0.0f, y, 7) != CG_OK);
    ASSERT(y[7] == 2.0f * W.in[0][7]);
    wreck(&W);
    PASS();
}

/* The values at the leader's indices, in the same order. */
TEST order_of_shared(int ranks, uint32_t way) {
    float brought[MOST];
    size_t i;
    int r;
    build(&W, "topk:0.3", CG_ROUTE_SHARED, ranks, 3000);
    W.which = SIM_SENDRECV;
    W.desc.sum = way;
    fill(&W, WILD, (uint64_t)ranks);
    TRY(run_ok(&W));
    for (i = 0; i < W.n; i++) {
        for (r = 0; r < ranks; r++) brought[r] = ref_mul(alpha_of(&W, r), W.used[r][i]);
        ASSERTm(say(&W, "another order"), same_values(&W.out[i], (brought[0] = summed(brought, ranks), brought), 1));
    }
    wreck(&W);
    PASS();
}

/* Ranks that would exchange other messages are told, and nobody waits. */
TEST another_way(int what) {
    int r;
    float *x[MOST];
    build(&W, "dense", CG_ROUTE_LINEAR, 3, 3000);
    fill(&W, BELL, 3);
    for (r = 0; r < 3; r++) {
        x[r] = floats(W.n);
        memcpy(x[r], W.in[r], 4 * W.n);
    }
    sim_open(&W.s, 3, SIM_SENDRECV | SIM_ALLREDUCE, 0, &W.desc, x, W.n);
    if (what == 0) W.s.rank[1].desc.sum = CG_SUM_RING;
    if (what == 1) W.s.rank[1].transport.flags = CG_ALLREDUCE_AGREES;
    if (what == 2) W.s.rank[1].desc.alpha = 1.0;
    if (what == 3) W.s.rank[1].desc.beta = 1.0;
    sim_run(&W.s);
    for (r = 0; r < 3; r++) {
        ASSERT_EQ(CG_E_MISMATCH, W.s.rank[r].status);
        ASSERT(!memcmp(x[r], W.in[r], 4 * W.n));
        free(x[r]);
    }
    ASSERT_EQ(0, W.s.stuck);
    sim_close(&W.s);
    wreck(&W);
    PASS();
}

SUITE(sums) {
    static const int ranks[] = { 1, 2, 3, 4, 5, 7, 8, 16 };
    static const size_t sizes[] = { 1, 63, 65, 700, 5000, 100000 };
    static unsigned turn;
    uint32_t way;
    int i, j;
    for (i = 0; i < 8; i++)
        for (way = CG_SUM_AUTO; way <= CG_SUM_HALVING; way++) {
            for (j = 0; j < 6; j++)
                if (j < 5 || !spared(&turn, 5)) RUN_TESTp(order_of_sums, ranks[i], way, sizes[j], (i + j) % 2);
            if (way != CG_SUM_RING) RUN_TESTp(order_of_shared, ranks[i], way);
        }
    for (i = 0; i < 4; i++) RUN_TEST1(another_way, i);
    for (i = 0; i < 5; i++)
        for (j = 0; j < 128; j++)
            if (!spared(&turn, 5)) RUN_TESTp(dense_ways, ranks[i], j);
    RUN_TEST(reference_elsewhere);
}

/* ---- reports ---- */

/* Over sendrecv alone, what is reported is what crossed; dense packets of L bytes cost what the manual says. */
TEST traffic(uint32_t route) {
    const uint64_t n = 4096, l = CG_HEADER_BYTES + 4 * n, part = CG_HEADER_BYTES + n, opening = 3 * 64;
    int r;
    build(&W, "dense", route, 4, (size_t)n);
    W.which = SIM_SENDRECV;
    fill(&W, BELL, 1);
    TRY(run_ok(&W));
    for (r = 0; r < 4; r++) {
        const sim_rank *k = &W.s.rank[r];
        ASSERT_EQ(k->out, k->report.bytes_out);
        ASSERT_EQ(k->in, k->report.bytes_in);
        ASSERT_EQ((uint32_t)k->ios, k->report.rounds);
        if (route == CG_ROUTE_ALLGATHER) ASSERT_EQ(3 * l + opening, k->out);
        if (route == CG_ROUTE_RING || route == CG_ROUTE_SCATTER) ASSERT_EQ(6 * part + opening, k->out);
        if (route == CG_ROUTE_LINEAR) ASSERT_EQ(8 * n + opening, k->out); /* the whole vector twice */
        /* a tree back */
        if (route == CG_ROUTE_SERVER) ASSERT_EQ((r == 0 ? 2 * l : r == 2 ? 2 * l : l) + opening, k->out);
        if (route == CG_ROUTE_TREE) ASSERT_EQ((r == 0 ? 2 * l : r == 2 ? 2 * l : l) + opening, k->out);
    }
    wreck(&W);
    PASS();
}

TEST chosen(const char *op, int ranks, size_t n, int which, int carry, uint32_t want) {
    build(&W, op, CG_ROUTE_AUTO, ranks, n);
    W.which = which;
    W.carries = carry;
    fill(&W, BELL, 1);
    TRY(run_ok(&W));
    ASSERT_EQm(say(&W, "auto took another route"), want, W.s.rank[ranks - 1].report.route);
    ASSERTm(say(&W, "auto does not say why"), W.s.rank[0].report.choice && W.s.rank[ranks - 1].report.choice);
    W.desc.route = want;
    TRY(identity(&W));
    wreck(&W);
    PASS();
}

/* What AUTO takes is what costs least, or nearly: by the rounds and bytes that crossed on every route that it may take.
   Routes that drop values it takes only if that saves. */
static double crossed(uint32_t route, int carries, double alpha, uint32_t *went) {
    double most_rounds = 0, most_bytes = 0;
    int r;
    W.desc.route = route;
    W.carries = carries;
    W.desc.alpha = alpha;
    W.desc.beta = 1e-9;
    if (run(&W) || W.status != CG_OK) return 0;
    for (r = 0; r < W.ranks; r++) {
        const sim_rank *k = &W.s.rank[r];
        most_rounds = fmax(most_rounds, (double)k->report.rounds);
        most_bytes = fmax(most_bytes, fmax((double)k->out, (double)k->in));
    }
    *went = W.s.rank[0].report.route;
    return most_rounds * alpha + most_bytes * 1e-9;
}
TEST cheapest(const char *op, int ranks, size_t n, int carries, double alpha) {
    double chosen_cost, cost, keeps = 0;
    uint32_t route, taken = 0, went;
    build(&W, op, CG_ROUTE_AUTO, ranks, n);
    W.which = SIM_SENDRECV;
    fill(&W, BELL, 1);
    chosen_cost = crossed(CG_ROUTE_AUTO, carries, alpha, &taken);
    ASSERTm(say(&W, "auto is refused"), chosen_cost > 0);
    for (route = CG_ROUTE_ALLGATHER; route <= CG_ROUTE_LINEAR; route++) {
        const int drops = route == CG_ROUTE_MERGE || route == CG_ROUTE_SHARED || route == CG_ROUTE_REGION;
        if (drops || ((route == CG_ROUTE_RING || route == CG_ROUTE_TREE) && W.desc.op.quantize.id)) continue;
        cost = crossed(route, carries, alpha, &went);
        if (cost > 0 && (keeps == 0 || cost < keeps)) keeps = cost;
    }
    ASSERTm(say(&W, "auto took a dear route"), chosen_cost <= 1.05 * keeps);
    wreck(&W);
    PASS();
}
/* As the issue of 16 ranks: top-k 1 % costs 801 KB by allgather. */
TEST fewer_bytes(void) {
    uint32_t went;
    double all, least;
    build(&W, "topk:0.01", CG_ROUTE_AUTO, 16, 1 << 20);
    W.which = SIM_SENDRECV;
    fill(&W, BELL, 1);
    least = crossed(CG_ROUTE_AUTO, 0, 0, &went);
    ASSERTm(say(&W, "more bytes"), W.s.rank[0].out < 215000 && W.s.rank[0].in < 215000);
    ASSERT(W.s.rank[0].report.instead && W.s.rank[0].report.seconds < 0.75 * W.s.rank[0].report.instead_seconds);
    all = crossed(CG_ROUTE_ALLGATHER, 0, 0, &went);
    ASSERT(W.s.rank[0].out > 800000 && all > 3 * least && !W.s.rank[0].report.choice);
    wreck(&W);
    PASS();
}

/* A server elsewhere; its answer is the same. Then one that forgets, and keeps what it forgot. */
TEST led(int leader) {
    const cg_op back = cg_efsign();
    int r, who = leader > 0 ? leader - 1 : leader < 0 ? 2 : 0, most = 0;
    build(&W, "topk:0.2|absmax:4:64", CG_ROUTE_SERVER, 4, 1000);
    W.desc.leader = leader;
    W.which = SIM_ALL;
    for (r = 0; r < 4; r++) W.score[r] = r == 2 ? 5.0f : (float)r;
    fill(&W, BELL, 1);
    TRY(run_ok(&W));
    TRY(is_sum_in_order(&W));
    for (r = 0; r < 4; r++)
        if (W.s.rank[r].report.bytes_out > W.s.rank[most].report.bytes_out) most = r;
    ASSERT_EQ_FMT(who, most, "%d");
    W.desc.back = &back;
    W.carries = W.off = 1;
    for (r = 0; r < 3; r++) TRY(step(&W));
    wreck(&W);
    PASS();
}

/* Packets that cover x one after the other; anything else is refused, and y kept. */
/* The result can go elsewhere: the same, and x stays. */
TEST elsewhere(const char *op, uint32_t route, uint32_t fold) {
    enum { LENGTH = 2000 };
    static float given[3][LENGTH], x[3][LENGTH], here[3][LENGTH], there[3][LENGTH];
    float *in_place[3] = { here[0], here[1], here[2] }, *kept[3] = { x[0], x[1], x[2] };
    cg_exchange_desc desc = CG_ZERO;
    sim *s = (sim *)calloc(1, sizeof *s);
    int r, ok = 1;
    ASSERT_EQ(CG_OK, cg_op_parse(&desc.op, op));
    desc.route = route;
    desc.fold = fold;
    for (r = 0; r < 3; r++)
        for (size_t i = 0; i < LENGTH; i++)
            given[r][i] = (float)((int)((i + 7) * (size_t)(r + 3) * 7919 % 2001) - 1000) / 64.0f;
    memcpy(here, given, sizeof given);
    memcpy(x, given, sizeof given);
    memset(there, 0xff, sizeof there);
    for (int into = 0; into < 2; into++) {
        sim_open(s, 3, SIM_ALL, 1, &desc, into ? kept : in_place, LENGTH);
        for (r = 0; r < 3 && into; r++) s->rank[r].desc.into = there[r];
        sim_run(s);
        for (r = 0; r < 3; r++) ok &= s->rank[r].status == CG_OK;
        sim_close(s);
    }
    free(s);
    ASSERTm(op, ok);
    ASSERT_EQm(op, 0, memcmp(here, there, sizeof here));
    ASSERT_EQm(op, 0, memcmp(x, given, sizeof x));
    ASSERT(memcmp(here, given, sizeof here) != 0);
    PASS();
}
TEST decoding_used(void) {
    float y[400], want[400], x[400];
    unsigned char both[8192];
    cg_op op = cg_topk(0.1f);
    cg_tag tag = { 1, 2, 3, 4 };
    ops_packet a, b;
    size_t i;
    for (i = 0; i < 400; i++) x[i] = (float)((int)(i * 7919 % 801) - 400);
    a = ops_pack(&op, &tag, x, 100);
    b = ops_pack(&op, &tag, x + 100, 300);
    memcpy(both, a.p, a.len);
    memcpy(both + a.len, b.p, b.len);
    squeezed(&op, tag, NULL, x, 100, want);
    squeezed(&op, tag, NULL, x + 100, 300, want + 100);
    ASSERT_EQ(CG_OK, cg_used_decode(NULL, both, a.len + b.len, 1.0f, 0.0f, y, 400));
    ASSERT(same_values(y, want, 400));
    ASSERT_EQ(CG_OK, cg_used_decode(NULL, both, a.len + b.len, -1.0f, 1.0f, y, 400));
    for (i = 0; i < 400; i++) ASSERT(y[i] == 0.0f);
    for (i = 0; i < 400; i++) y[i] = want[i] = 3.0f;
    ASSERT_EQ(CG_E_MISMATCH, cg_used_decode(NULL, both, a.len, 1.0f, 0.0f, y, 400));
    ASSERT_EQ(CG_E_MISMATCH, cg_used_decode(NULL, both, a.len + b.len, 1.0f, 0.0f, y, 399));
    ASSERT_EQ(CG_E_MISMATCH, cg_used_decode(NULL, both, a.len + b.len, 1.0f, 0.0f, y, 401));
    ASSERT(cg_used_decode(NULL, both, a.len + b.len - 1, 1.0f, 0.0f, y, 400) != CG_OK);
    both[a.len + b.len - 5] ^= 1;
    ASSERT_EQ(CG_E_CORRUPT, cg_used_decode(NULL, both, a.len + b.len, 1.0f, 0.0f, y, 400));
    ASSERT_EQ(CG_E_ARG, cg_used_decode(NULL, NULL, 5, 1.0f, 0.0f, y, 400));
    ASSERT(same_values(y, want, 400));
    ASSERT_EQ(CG_OK, cg_used_decode(NULL, NULL, 0, 1.0f, 0.0f, NULL, 0));
    free(a.p);
    free(b.p);
    PASS();
}

SUITE(edges) {
    static const char *const packets[] = { "dense", "topk:0.1", "absmax:4:64" };
    size_t f;
    uint32_t route;
    int i;
    for (f = 0; f < sizeof REFUSALS / sizeof *REFUSALS; f++) {
        RUN_TESTp(refused, f, 2);
        RUN_TESTp(refused, f, 5);
    }
    RUN_TEST1(given, 3);
    RUN_TEST(no_callbacks);
    RUN_TEST(decoding_used);
    for (route = CG_ROUTE_ALLGATHER; route <= CG_ROUTE_LINEAR; route++)
        RUN_TESTp(elsewhere, route == CG_ROUTE_LINEAR ? "randk:0.3" : "topk:0.1", route, (uint32_t)CG_FOLD_MEAN);
    for (route = CG_ROUTE_RING; route <= CG_ROUTE_SERVER; route++)
        RUN_TESTp(elsewhere, "absmax:8:64", route, (uint32_t)CG_FOLD_MEAN);
    RUN_TESTp(elsewhere, "sign", (uint32_t)CG_ROUTE_ALLGATHER, (uint32_t)CG_FOLD_VOTE);
    RUN_TESTp(elsewhere, "topk:0.1", (uint32_t)CG_ROUTE_ALLGATHER, (uint32_t)CG_FOLD_CONTRIBUTORS);
    RUN_TESTp(elsewhere, "absmax:8:64", (uint32_t)CG_ROUTE_ALLGATHER, (uint32_t)CG_FOLD_MEAN);
    RUN_TESTp(elsewhere, "lowrank:2:50:40", (uint32_t)CG_ROUTE_LINEAR, (uint32_t)CG_FOLD_MEAN);
    for (i = -1; i < 2; i++) RUN_TEST1(mirrored, i);
    for (i = 0; i < N_ROWS; i++)
        for (route = CG_ROUTE_ALLGATHER; route <= CG_ROUTE_LINEAR; route++)
            if (carried(ROWS[i].free, route) || carried(ROWS[i].kept, route)) RUN_TESTp(alone, i, route);
    for (i = 0; i < 3; i++)
        for (route = CG_ROUTE_ALLGATHER; route <= CG_ROUTE_SERVER; route++) {
            RUN_TESTp(damaged, packets[i], route, 2);
            RUN_TESTp(damaged, packets[i], route, 3);
        }
    for (route = CG_ROUTE_MERGE; route <= CG_ROUTE_REGION; route++) {
        RUN_TESTp(damaged, "topk:0.1", route, 2);
        RUN_TESTp(damaged, "topk:0.1", route, 5);
    }
    for (route = CG_ROUTE_ALLGATHER; route <= CG_ROUTE_SERVER; route++) RUN_TEST1(traffic, route);
    RUN_TEST1(traffic, (uint32_t)CG_ROUTE_LINEAR);
    for (i = CG_LEADER_BY_SCORE; i <= 4; i++) RUN_TEST1(led, i);
    RUN_TESTp(chosen, "dense", 4, (size_t)1000, SIM_ALL, 0, (uint32_t)CG_ROUTE_LINEAR);
    RUN_TESTp(chosen, "rotate:2", 3, (size_t)3000, SIM_ALLREDUCE, 0, (uint32_t)CG_ROUTE_LINEAR);
    RUN_TESTp(chosen, "randk:0.1", 4, (size_t)1000, SIM_SENDRECV, 0, (uint32_t)CG_ROUTE_LINEAR);
    RUN_TESTp(chosen, "lowrank:2:40:50", 4, (size_t)2000, SIM_ALL, 0, (uint32_t)CG_ROUTE_LINEAR);
    RUN_TESTp(chosen, "topk:0.01", 4, (size_t)100000, SIM_ALL, 0, (uint32_t)CG_ROUTE_ALLGATHER);
    RUN_TESTp(chosen, "topk:0.6", 8, (size_t)20000, SIM_ALL, 0, (uint32_t)CG_ROUTE_SHARED);
    RUN_TESTp(chosen, "threshold:0.1", 8, (size_t)200000, SIM_ALL, 0, (uint32_t)CG_ROUTE_SCATTER);
    RUN_TESTp(chosen, "topk:0.6", 8, (size_t)20000, SIM_ALLGATHER, 0, (uint32_t)CG_ROUTE_ALLGATHER);
    RUN_TESTp(chosen, "absmax:8:512", 4, (size_t)40000, SIM_ALL, 0, (uint32_t)CG_ROUTE_SCATTER);
    RUN_TESTp(chosen, "absmax:8:512", 2, (size_t)80000, SIM_ALL, 0, (uint32_t)CG_ROUTE_ALLGATHER);
    RUN_TESTp(chosen, "absmax:8:512", 4, (size_t)10000, SIM_ALL, 0, (uint32_t)CG_ROUTE_ALLGATHER);
    RUN_TESTp(chosen, "absmax:8:512", 4, (size_t)40000, SIM_BROADCAST, 0, (uint32_t)CG_ROUTE_ALLGATHER);
    RUN_TESTp(chosen, "efsign", 4, (size_t)200000, SIM_ALL, 0, (uint32_t)CG_ROUTE_ALLGATHER);
    RUN_TESTp(chosen, "efsign", 4, (size_t)400000, SIM_ALL, 1, (uint32_t)CG_ROUTE_SCATTER);
    for (i = 0; i < 3; i++) {
        static const double alphas[] = { 1e-7, 3e-6, 1e-4 };
        static const int sizes[] = { 3, 4, 8, 16 };
        int j;
        for (j = 0; j < 4; j++) {
            RUN_TESTp(cheapest, "topk:0.01", sizes[j], (size_t)40000, 0, alphas[i]);
            RUN_TESTp(cheapest, "topk:0.2|golomb", sizes[j], (size_t)40000, 0, alphas[i]);
            RUN_TESTp(cheapest, "absmax:4:512", sizes[j], (size_t)40000, 0, alphas[i]);
            RUN_TESTp(cheapest, "efsign", sizes[j], (size_t)40000, 1, alphas[i]);
            RUN_TESTp(cheapest, "topk:0.05|absmax:4:64", sizes[j], (size_t)40000, 0, alphas[i]);
        }
    }
    RUN_TEST(fewer_bytes);
    RUN_TESTp(chosen, "atomo:2:40:50", 8, (size_t)2000, SIM_ALL, 0, (uint32_t)CG_ROUTE_ALLGATHER);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    quick = !long_test();
    RUN_SUITE(encoded_again);
    RUN_SUITE(lists);
    RUN_SUITE(matrices);
    RUN_SUITE(folds);
    RUN_SUITE(agreement);
    RUN_SUITE(edges);
    RUN_SUITE(every_route);
    RUN_SUITE(sums);
    GREATEST_MAIN_END();
}
