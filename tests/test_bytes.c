/* What an exchange costs, to the byte: bytes that each rank sends and receives and callbacks that it calls, on
   every route, for every set of callbacks, against what the manual of compgrad_exchange.h says of them, written
   down here a second time. Packet lengths come from the drawing of a packet in compgrad.h, or are those of
   cg_compress where a code decides; messages from the rules of trees, rings and Bruck. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_exchange.h"
#include "ref.h"
#include "sim.h"
#include "greatest.h"
#define TIER_SPARED
#include "tier.h"

enum { RECORD = 64, NOTE = 24, HEADER = 168, TALLY = 1024, MOST_N = 40000 };
/* where collectives are made of others: floats in pieces of at most this many bytes */
enum { OPENING_ROOM = 1024, ROOM_EACH = 65536 };

static char note[400];
static float data[SIM_MOST][MOST_N], given[SIM_MOST][MOST_N], carry[SIM_MOST][MOST_N];
static sim s;

/* ---- the bill: what is due so far, rank by rank ---- */

/* crossed: the part by sendrecv */
typedef struct bill {
    uint64_t out, in, rounds, crossed_out, crossed_in;
} bill;
static bill due[SIM_MOST];
static int N, which, agrees, confirm;
static uint32_t way; /* to sum floats: desc.sum */
static size_t room;  /* of a collective made of another, in bytes */

static void swap(int rank, uint64_t out, uint64_t in) /* one sendrecv */
{
    due[rank].out += out;
    due[rank].in += in;
    due[rank].crossed_out += out;
    due[rank].crossed_in += in;
    due[rank].rounds++;
}

/* One callback on all ranks, and what it must move at least. */
static void by_collective(int kind, uint64_t bytes, int root) {
    const uint64_t others = (uint64_t)(N - 1);
    int r;
    for (r = 0; r < N; r++) {
        if (kind == SIM_ALLREDUCE)
            due[r].out += 2 * others * bytes / (uint64_t)N, due[r].in += 2 * others * bytes / (uint64_t)N;
        else if (kind == SIM_ALLGATHER) due[r].out += others * bytes, due[r].in += others * bytes;
        else if (r == root) due[r].out += others * bytes;
        else due[r].in += bytes;
        due[r].rounds++;
    }
}

static uint64_t piece(uint64_t left, uint64_t each) { return left < each ? left : each; }

/* Bytes as exact sums: three to a float. */
static void string_by_sum(uint64_t bytes) {
    uint64_t left, many;
    for (left = bytes; left; left -= many) {
        many = piece(left, room / 4 * 3);
        by_collective(SIM_ALLREDUCE, (many + 2) / 3 * 4, 0);
    }
}

static void gather_by_bruck(const uint64_t *sizes) {
    int r, d, i;
    for (r = 0; r < N; r++) /* what I have, to the rank d below: as many blocks as it still lacks, at most d */
        for (d = 1; d < N; d *= 2) {
            const int many = d < N - d ? d : N - d;
            uint64_t out = 0, in = 0;
            for (i = 0; i < many; i++) out += sizes[(r + i) % N], in += sizes[(r + d + i) % N];
            swap(r, out, in);
        }
}

/* sizes[rank] bytes from each to all. */
static void gather(const uint64_t *sizes) {
    uint64_t all = 0, longest = 0;
    int r, callback;
    if (N == 1) return;
    for (r = 0; r < N; r++) all += sizes[r], longest = sizes[r] > longest ? sizes[r] : longest;
    /* a quarter in vain at most */
    callback = (which & SIM_ALLGATHER) && (!(which & SIM_SENDRECV) || 4 * longest * (uint64_t)N <= 5 * all);
    if (callback) by_collective(SIM_ALLGATHER, longest, 0);
    else if (which & SIM_SENDRECV) gather_by_bruck(sizes);
    else if (which & SIM_BROADCAST)
        for (r = 0; r < N; r++) by_collective(SIM_BROADCAST, sizes[r], r);
    else string_by_sum(all);
}

static void gather_equal(uint64_t bytes) {
    uint64_t sizes[SIM_MOST];
    int r;
    for (r = 0; r < SIM_MOST; r++) sizes[r] = bytes;
    gather(sizes);
}

/* Who is well? A note of every rank. */
static void verdict(void) { gather_equal(NOTE); }

/* Messages that the rank at distance v from the root of a binomial tree sends downwards, or gets from below. */
static int children(int v) {
    int bit, count = 0;
    for (bit = 1; bit < N && !(v & bit); bit *= 2) count += v + bit < N;
    return count;
}

static void cast(uint64_t bytes, int root) {
    uint64_t left, many;
    int r, i;
    if (N == 1) return;
    if (which & SIM_BROADCAST) {
        by_collective(SIM_BROADCAST, bytes, root);
        return;
    }
    for (r = 0; r < N && (which & SIM_SENDRECV); r++) {
        if (r != root) swap(r, 0, bytes);
        for (i = 0; i < children((r - root + N) % N); i++) swap(r, bytes, 0);
    }
    if (which & SIM_SENDRECV) return;
    if (!(which & SIM_ALLGATHER)) {
        string_by_sum(bytes);
        return;
    }
    for (left = bytes; left; left -= many) {
        many = piece(left, room / (size_t)N);
        by_collective(SIM_ALLGATHER, many, 0);
    }
}

/* Stripes are whole runs of 64 values, as equal as that allows. */
static size_t stripe_at(size_t n, int p) {
    const size_t runs = (n + 63) / 64, parts = (size_t)N,
                 at = 64 * (runs / parts * (size_t)p + runs % parts * (size_t)p / parts);
    return at < n ? at : n;
}
static size_t stripe(size_t n, int p) { return stripe_at(n, p % N + 1) - stripe_at(n, p % N); }

/* A rank hands on its own stripe and every one it has added to, then every sum; nothing is not sent. */
static void sum_by_ring(size_t floats) {
    int r, t;
    for (r = 0; r < N; r++)
        for (t = 0; t < 2 * (N - 1); t++) {
            const int first = t < N - 1 ? r - t : r + N - t; /* after N - 1 steps r + 1 is whole */
            const size_t out = stripe(floats, first + 2 * N), in = stripe(floats, first + 2 * N - 1);
            if (out || in) swap(r, 4 * out, 4 * in);
        }
}

static int power(void) { /* the largest power of two up to N */
    int p = 1;
    while (2 * p <= N) p *= 2;
    return p;
}

/* Those beyond the power of two have a partner: one of a pair hands the whole over, waits, and gets the sum. */
static void sum_by_doubling(size_t floats) {
    const int pairs = N - power();
    const uint64_t bytes = 4 * (uint64_t)floats;
    int r, d;
    for (r = 0; r < N; r++) {
        const int even = r < 2 * pairs && r % 2 == 0, odd = r < 2 * pairs && r % 2;
        if (even) swap(r, bytes, 0);
        if (odd) swap(r, 0, bytes);
        for (d = 1; d < power() && !even; d *= 2) swap(r, bytes, bytes);
        if (even) swap(r, 0, bytes);
        if (odd) swap(r, bytes, 0);
    }
}

static size_t runs_at(size_t length, int parts, int p) { /* stripe_at for any number of parts */
    const size_t runs = (length + 63) / 64, many = (size_t)parts,
                 at = 64 * (runs / many * (size_t)p + runs % many * (size_t)p / many);
    return at < length ? at : length;
}

/* At distance d two participants share 2d parts; each keeps the d that its own is among. The same back. A pair first
   shares its two halves, and has to do with one of them. */
static void sum_by_halving(size_t floats) {
    const int P = power(), pairs = N - P;
    const size_t middle = runs_at(floats, 2, 1);
    int r, d, h, back;
    for (r = 0; r < N; r++) {
        const int paired = r < 2 * pairs, id = paired ? r / 2 : r - pairs;
        const size_t own = r % 2 ? floats - middle : middle, other = floats - own;
        if (paired) swap(r, 4 * other, 4 * own);
        for (back = 0; back < 2; back++)
            for (d = 1; d < P; d *= 2)
                for (h = 0; h < (pairs ? 2 : 1); h++) {
                    const size_t len = !pairs ? floats : h ? floats - middle : middle;
                    const int keep = id / d * d, give = keep ^ d;
                    const size_t kept = runs_at(len, P, keep + d) - runs_at(len, P, keep),
                                 given_up = runs_at(len, P, give + d) - runs_at(len, P, give);
                    if (paired && h != r % 2) continue;
                    if (kept || given_up) swap(r, 4 * (back ? kept : given_up), 4 * (back ? given_up : kept));
                }
        if (paired) swap(r, 4 * own, 4 * other);
    }
}

/* Seconds as the manual has them: 40 us a message, 2 ns a byte. */
static int doubling_is_cheaper(size_t floats) {
    const int P = power(), pairs = N - P;
    const double bytes = 4.0 * (double)floats;
    int log = 0;
    double doubling, halving;
    while (1 << (log + 1) <= N) log++;
    doubling = (log + (pairs ? 2 : 0)) * (4e-5 + 2e-9 * bytes);
    halving = log * (pairs ? 4 : 2) * 4e-5 + 2e-9 * bytes * (2.0 - (pairs ? 1.0 : 2.0) / P);
    return doubling <= halving;
}

static void sum_by_tree(size_t floats) {
    if (way == CG_SUM_RING) sum_by_ring(floats);
    else if (way == CG_SUM_DOUBLING || (way != CG_SUM_HALVING && doubling_is_cheaper(floats))) sum_by_doubling(floats);
    else sum_by_halving(floats);
}

static void sum(size_t floats) {
    const int itself = (which & SIM_ALLREDUCE) && (agrees || which == SIM_ALLREDUCE) && !way;
    uint64_t left = 4 * (uint64_t)floats, many;
    int r;
    if (N == 1 || !floats) return;
    if (itself) {
        by_collective(SIM_ALLREDUCE, left, 0);
        if (!agrees) string_by_sum(left); /* rank 0's, to all */
    } else if (which & SIM_SENDRECV) {
        sum_by_tree(floats);
    } else
        for (; left; left -= many) { /* everybody's, a piece at a time */
            many = piece(left, room / (size_t)N);
            if (which & SIM_ALLGATHER) by_collective(SIM_ALLGATHER, many, 0);
            else
                for (r = 0; r < N; r++) by_collective(SIM_BROADCAST, many, r);
        }
}

/* ---- packets ---- */

static uint64_t words(uint64_t bits) { return (bits + 31) / 32 * 4; }

static uint64_t index_bytes(size_t n, size_t k) /* Elias-Fano or a bitmap */
{
    uint64_t low = 0, elias;
    if (!k) return 0;
    while (n / k >> (low + 1)) low++;
    elias = words(k * low) + words(k + ((n - 1) >> low) + 1);
    return words(n) < elias ? words(n) : elias;
}
static uint64_t sparse_len(size_t n, size_t k) { return HEADER + 4 * (uint64_t)k + index_bytes(n, k); }
static uint64_t dense_len(size_t n) { return HEADER + 4 * (uint64_t)n; }
/* buckets of 64 */
static uint64_t levels_len(size_t n, int bits) {
    return HEADER + 4 * (uint64_t)((n + 63) / 64) + words(n * (uint64_t)bits);
}

/* A rank's packet of x, n values; and what is in it. */
static uint64_t packed(const cg_op *op, int rank, const float *x, size_t n, float *y) {
    const size_t cap = cg_bound(op, n), need = cg_scratch(op, n);
    unsigned char *p = (unsigned char *)ref_alloc(cap), *scratch = (unsigned char *)ref_alloc(need);
    cg_tag tag = { 11, 5, 0, 0 };
    size_t len = 0;
    cg_status status;
    tag.rank = (uint32_t)rank;
    status = cg_compress(op, &tag, x, n, p, cap, &len, scratch, need);
    if (status == CG_OK && y) status = cg_decompress(p, len, y, n);
    if (status != CG_OK) {
        printf("packed: %s\n", cg_status_str(status));
        exit(2);
    }
    free(p);
    free(scratch);
    return len;
}

/* what of data a rank's packet has; 0: nothing, no value of data is */
static float held[SIM_MOST][MOST_N];

static size_t united(int first, int many, size_t start, size_t n) /* indices that any of these ranks has */
{
    size_t i, k = 0;
    int q, any;
    for (i = start; i < start + n; i++) {
        for (any = 0, q = 0; q < many; q++) any |= held[(first + q) % N][i] != 0.0f;
        k += (size_t)any;
    }
    return k;
}

/* ---- cases ---- */

/* how sums are sent on; CODED: variable and biased, so it needs a carry */
enum { FIXED, EXACT, SPARSE, LEVELS, CODED, VOTES };
typedef struct trial {
    const char *op;
    uint32_t route;
    int kind;
    const char *back;
} trial;

static const trial trials[] = { { "absmax:4:64", CG_ROUTE_ALLGATHER, FIXED, NULL },
    { "threshold:2", CG_ROUTE_ALLGATHER, SPARSE, NULL }, { "qsgd:4", CG_ROUTE_ALLGATHER, FIXED, NULL },
    { "absmax:4:64", CG_ROUTE_ALLGATHER, LEVELS, NULL }, { "sign", CG_ROUTE_ALLGATHER, VOTES, NULL },
    { "dense", CG_ROUTE_ALLGATHER, EXACT, NULL }, { "dense", CG_ROUTE_RING, EXACT, NULL },
    { "absmax:4:64", CG_ROUTE_RING, FIXED, NULL }, { "threshold:2", CG_ROUTE_RING, SPARSE, NULL },
    { "absmax:4:64:nearest|huffman", CG_ROUTE_RING, CODED, NULL }, { "absmax:4:64", CG_ROUTE_RING, LEVELS, NULL },
    { "dense", CG_ROUTE_TREE, EXACT, NULL }, { "absmax:4:64", CG_ROUTE_TREE, FIXED, NULL },
    { "threshold:2", CG_ROUTE_TREE, SPARSE, NULL }, { "absmax:4:64:nearest|huffman", CG_ROUTE_TREE, CODED, NULL },
    { "absmax:4:64", CG_ROUTE_TREE, LEVELS, NULL }, { "dense", CG_ROUTE_SCATTER, EXACT, NULL },
    { "absmax:4:64", CG_ROUTE_SCATTER, FIXED, NULL }, { "topk:0.05", CG_ROUTE_SCATTER, SPARSE, NULL },
    { "threshold:2", CG_ROUTE_SCATTER, SPARSE, NULL }, { "absmax:4:64:nearest|huffman", CG_ROUTE_SCATTER, CODED, NULL },
    { "absmax:4:64", CG_ROUTE_SCATTER, LEVELS, NULL }, { "sign", CG_ROUTE_SCATTER, VOTES, NULL },
    { "absmax:4:64", CG_ROUTE_SCATTER, FIXED, "natural" }, { "dense", CG_ROUTE_SERVER, EXACT, NULL },
    { "absmax:4:64", CG_ROUTE_SERVER, FIXED, NULL }, { "threshold:2", CG_ROUTE_SERVER, SPARSE, NULL },
    { "absmax:4:64:nearest|huffman", CG_ROUTE_SERVER, FIXED, NULL }, { "absmax:4:64", CG_ROUTE_SERVER, LEVELS, NULL },
    { "sign", CG_ROUTE_SERVER, VOTES, NULL }, { "absmax:4:64", CG_ROUTE_SERVER, FIXED, "natural" },
    { "threshold:2", CG_ROUTE_SERVER, FIXED, "absmax:4:64" }, { "topk:0.05", CG_ROUTE_MERGE, SPARSE, NULL },
    { "dgc:0.05", CG_ROUTE_MERGE, SPARSE, NULL }, { "topk:0.05", CG_ROUTE_SHARED, SPARSE, NULL },
    { "dgc:0.05", CG_ROUTE_SHARED, SPARSE, NULL }, { "topk:0.05", CG_ROUTE_REGION, SPARSE, NULL },
    { "dgc:0.05", CG_ROUTE_REGION, SPARSE, NULL }, { "dense", CG_ROUTE_LINEAR, EXACT, NULL },
    { "randk:0.1", CG_ROUTE_LINEAR, EXACT, NULL }, { "rotate:2", CG_ROUTE_LINEAR, EXACT, NULL },
    { "lowrank:2", CG_ROUTE_LINEAR, EXACT, NULL } };
enum { TRIALS = sizeof trials / sizeof trials[0] };

static const trial *now;
static cg_op op, back;
static size_t n;
static size_t share(double ratio) {
    return (size_t)(ratio * (double)n + 0.5) > 1 ? (size_t)(ratio * (double)n + 0.5) : n > 0;
}
static int starts_with(const char *text) { return !strncmp(now->op, text, strlen(text)); }

static int sum_bits(void) /* of N levels from -7 to 7 each */
{
    int bits = 2;
    while ((1 << (bits - 1)) - 1 < 7 * N) bits++;
    return bits <= 8 ? bits : 16;
}

/* Does the length of a packet depend on its values? Otherwise nobody need announce it. */
static int varies(void) { return op.code.arg || starts_with("threshold") || starts_with("dgc"); }

/* ---- routes ---- */

/* The length of part [start, start + n) as this rank packs it before anything is added. */
static uint64_t own_len(int rank, size_t start, size_t many) {
    if (op.code.arg) return packed(&op, rank, data[rank] + start, many, NULL);
    if (op.select.id) return sparse_len(many, united(rank, 1, start, many));
    return op.quantize.id == CG_QUANTIZE_ABSMAX ? levels_len(many, 4)
        : op.quantize.id                        ? HEADER + words(many)
                                                : dense_len(many);
}

/* The sum of `many` ranks from `first` on, in a part, as it is sent on by a ring or a tree. */
static uint64_t hop_len(int first, int many, size_t start, size_t length) {
    if (now->kind == SPARSE) return sparse_len(length, united(first, many, start, length));
    return now->kind == LEVELS ? levels_len(length, sum_bits())
        : now->kind == EXACT   ? dense_len(length)
                               : levels_len(length, 4);
}

/* CODED: each hop is decoded, added to the next rank's values, and encoded again. sum: in, what this rank has;
   out, what is in the packet. */
static uint64_t recoded(int rank, float *values, size_t length) { return packed(&op, rank, values, length, values); }
static void add_to(float *y, const float *x, size_t length) {
    size_t i;
    for (i = 0; i < length; i++) y[i] = ref_add(x[i], y[i]);
}

static void bill_ring(void) {
    static float v[MOST_N];
    uint64_t len[SIM_MOST][SIM_MOST], last[SIM_MOST]; /* [p][i]: stripe p after i + 1 ranks */
    const int notes = now->kind == SPARSE || now->kind == CODED || now->kind == LEVELS;
    int r, p, i;
    for (p = 0; p < N; p++) {
        const size_t start = stripe_at(n, p), length = stripe(n, p);
        memset(v, 0, sizeof v);
        for (i = 0; i < N; i++) {
            if (now->kind == CODED && i == 0) memcpy(v, data[p] + start, 4 * length);
            else if (now->kind == CODED) add_to(v, data[(p + i) % N] + start, length);
            len[p][i] = now->kind == CODED ? recoded((p + i) % N, v, length) : hop_len(p, i + 1, start, length);
        }
        last[(p + N - 1) % N] = len[p][N - 1]; /* who has its sum in the end */
    }
    for (r = 0; r < N; r++)
        for (i = 0; i < N - 1; i++) {                            /* stripe r - i goes on, stripe r - 1 - i comes */
            if (notes) swap(r, NOTE, NOTE), swap(r, NOTE, NOTE); /* preambles, and receipts the other way */
            swap(r, len[(r - i + N) % N][i], len[(r - 1 - i + 2 * N) % N][i]);
        }
    if (notes) gather_equal(NOTE), verdict();
    gather(last);
}

static void bill_tree(void) {
    static float v[SIM_MOST][MOST_N];
    const int notes = now->kind == SPARSE || now->kind == CODED || now->kind == LEVELS;
    uint64_t len[SIM_MOST];
    int r, bit;
    for (r = N - 1; r >= 0; r--) { /* children are done before their parents */
        for (bit = 1; bit < N && !(r & bit); bit *= 2) {
            if (r + bit >= N) continue;
            if (notes) swap(r, 0, NOTE), swap(r, NOTE, 0);
            swap(r, 0, len[r + bit]);
        }
        len[r] = now->kind == CODED ? 0 : hop_len(r, bit < N - r ? bit : N - r, 0, n);
        if (now->kind == CODED) {
            memcpy(v[r], data[r], 4 * n);
            for (bit = 1; bit < N && !(r & bit); bit *= 2)
                if (r + bit < N) add_to(v[r], v[r + bit], n);
            len[r] = recoded(r, v[r], n);
        }
        if (r && notes) swap(r, NOTE, 0), swap(r, 0, NOTE);
        if (r) swap(r, len[r], 0);
    }
    if (notes) cast(NOTE, 0), verdict();
    cast(len[0], 0);
}

/* An owner's answer for a part: the sum of all. */
static uint64_t answer_len(int rank, size_t start, size_t length) {
    static float v[MOST_N], w[MOST_N];
    size_t i;
    int q;
    if (now->back)
        return !strcmp(now->back, "natural") ? HEADER + words(8 * (uint64_t)(length + (length + 7) / 8))
                                             : levels_len(length, 4);
    if (now->kind == VOTES) return HEADER + words(length);
    if (now->kind == FIXED && now->route == CG_ROUTE_SERVER) return dense_len(length);
    if (now->kind != CODED) return hop_len(0, N, start, length);
    memset(v, 0, sizeof v);
    for (q = 0; q < N; q++) { /* the mean, in rank order */
        packed(&op, q, data[q] + start, length, w);
        for (i = 0; i < length; i++) v[i] = ref_add(v[i], ref_mul((float)(1.0 / N), w[i]));
    }
    return packed(&op, rank, v, length, NULL);
}

static void bill_scatter(void) {
    const int known = now->kind == FIXED || now->kind == EXACT || now->kind == VOTES;
    uint64_t own[SIM_MOST][SIM_MOST], answer[SIM_MOST];
    int r, p, i;
    for (r = 0; r < N; r++) {
        for (p = 0; p < N; p++) own[r][p] = own_len(r, stripe_at(n, p), stripe(n, p));
        answer[r] = answer_len(r, stripe_at(n, r), stripe(n, r));
    }
    /* the length of every part */
    if (varies()) gather_equal(8 * (uint64_t)N + NOTE), verdict();
    for (r = 0; r < N; r++)
        for (i = 1; i < N; i++) swap(r, own[r][(r + i) % N], own[(r - i + N) % N][r]);
    if (!known) gather_equal(NOTE), verdict();
    gather(answer);
}

static void bill_server(void) {
    const int known = now->kind == FIXED || now->kind == EXACT || now->kind == VOTES;
    uint64_t len[SIM_MOST];
    int r;
    for (r = 0; r < N; r++) len[r] = own_len(r, 0, n);
    if (!(which & SIM_SENDRECV)) gather(len);
    for (r = 1; r < N && (which & SIM_SENDRECV); r++) swap(r, len[r], 0), swap(0, 0, len[r]);
    if (!known) cast(NOTE, 0), verdict();
    cast(answer_len(0, 0, n), 0);
}

static int by_magnitude(const void *a, const void *b) /* largest first */
{
    const float x = fabsf(*(const float *)a), y = fabsf(*(const float *)b);
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Leaves the `keep` largest; returns how many there are then. */
static size_t cut(float *v, size_t keep) {
    static float sorted[MOST_N];
    size_t i, k = 0;
    for (i = 0; i < n; i++)
        if (v[i] != 0.0f) sorted[k++] = v[i];
    if (k <= keep) return k;
    qsort(sorted, k, sizeof *sorted, by_magnitude);
    for (i = 0; i < n; i++)
        if (fabsf(v[i]) < fabsf(sorted[keep - 1])) v[i] = 0.0f;
    return keep;
}

static void bill_merge(void) {
    static float v[SIM_MOST][MOST_N];
    uint64_t len[SIM_MOST];
    int r, bit;
    for (r = N - 1; r >= 0; r--) {
        memcpy(v[r], held[r], 4 * n);
        len[r] = own_len(r, 0, n);
        for (bit = 1; bit < N && !(r & bit); bit *= 2) {
            if (r + bit >= N) continue;
            swap(r, 0, NOTE), swap(r, NOTE, 0);
            swap(r, 0, len[r + bit]);
            add_to(v[r], v[r + bit], n);
            len[r] = sparse_len(n, cut(v[r], share(0.05)));
        }
        if (r) swap(r, NOTE, 0), swap(r, 0, NOTE), swap(r, len[r], 0);
    }
    cast(NOTE, 0), verdict();
    cast(len[0], 0);
}

/* the leader's indices under one mean; then room for as many values as it might have sent */
static void bill_shared(void) {
    const int leader = 5 % N; /* the step is 5 */
    const size_t k = share(0.05);
    if (varies()) cast(NOTE, leader), verdict();
    cast(HEADER + (n ? 4u : 0u) + index_bytes(n, united(leader, 1, 0, n)), leader);
    sum(starts_with("dgc") ? k + k * 3 / 10 : k);
}

/* Where a region begins: the mean over ranks of the index at which each has sent j/N of its values. */
static size_t region_at(int j) {
    size_t total = 0, i, seen;
    int q;
    for (q = 0; q < N; q++) {
        const size_t k = united(q, 1, 0, n), before = (k * (size_t)j + (size_t)N - 1) / (size_t)N;
        for (seen = 0, i = 0; i < n && (held[q][i] == 0.0f || seen++ < before);) i++;
        total += i;
    }
    return j == 0 ? 0 : j == N ? n : total / (size_t)N;
}

static void bill_region(void) {
    static float v[MOST_N];
    size_t at[SIM_MOST + 1], i, k;
    uint64_t last[SIM_MOST];
    int r, d, q;
    for (r = 0; r <= N; r++) at[r] = region_at(r);
    gather_equal(8 * (uint64_t)N + NOTE); /* where each would cut; then the lengths of its pieces */
    gather_equal(8 * (uint64_t)N + NOTE);
    verdict();
    for (r = 0; r < N; r++)
        for (d = 1; d < N; d++) {
            const int to = (r + d) % N, from = (r - d + N) % N;
            swap(r, sparse_len(at[to + 1] - at[to], united(r, 1, at[to], at[to + 1] - at[to])),
                sparse_len(at[r + 1] - at[r], united(from, 1, at[r], at[r + 1] - at[r])));
        }
    for (i = 0; i < 4; i++) gather_equal(TALLY + NOTE); /* the k-th largest, a byte at a time */
    memcpy(v, held[0], sizeof v);
    for (q = 1; q < N; q++)
        for (i = 0; i < n; i++) v[i] = ref_add(v[i], held[q][i]);
    cut(v, share(0.05));
    for (r = 0; r < N; r++) {
        for (k = 0, i = at[r]; i < at[r + 1]; i++) k += v[i] != 0.0f;
        last[r] = sparse_len(at[r + 1] - at[r], k);
    }
    gather_equal(NOTE), verdict();
    gather(last);
}

static void bill_linear(void) {
    if (starts_with("lowrank")) sum(2 * 10), sum(2 * n / 10); /* both factors */
    else sum(starts_with("randk") ? share(0.1) : starts_with("rotate") ? (n + 1023) / 1024 * 1024 : n);
}

static void bill_all(void) {
    uint64_t len[SIM_MOST];
    int r, p;
    size_t scales = 0;
    memset(due, 0, sizeof due);
    room = OPENING_ROOM;
    gather_equal(RECORD);
    /* everybody's scales, of all parts; one alone fits the record */
    if (now->kind == LEVELS) {
        const int striped = now->route == CG_ROUTE_RING || now->route == CG_ROUTE_SCATTER;
        for (p = 0; p < N; p++) scales += (stripe(n, p) + 63) / 64;
        if (!striped) scales = (n + 63) / 64;
        if (scales > 1) gather_equal((4 * (uint64_t)scales + 7) / 8 * 8 + NOTE);
    }
    /* lengths stand in the records: has everybody seen all of them? */
    if (varies() && (now->route == CG_ROUTE_ALLGATHER || now->route == CG_ROUTE_SERVER)) verdict();
    room = (size_t)N * ROOM_EACH;
    switch (now->route) {
    case CG_ROUTE_ALLGATHER:
        for (r = 0; r < N; r++) len[r] = own_len(r, 0, n);
        gather(len);
        break;
    case CG_ROUTE_RING: bill_ring(); break;
    case CG_ROUTE_TREE: bill_tree(); break;
    case CG_ROUTE_SCATTER: bill_scatter(); break;
    case CG_ROUTE_SERVER: bill_server(); break;
    case CG_ROUTE_MERGE: bill_merge(); break;
    case CG_ROUTE_SHARED: bill_shared(); break;
    case CG_ROUTE_REGION: bill_region(); break;
    default: bill_linear();
    }
    if (confirm) verdict();
}

/* ---- the exchange itself ---- */

static void fill(void) {
    uint64_t state = 7;
    int r;
    size_t i;
    for (r = 0; r < SIM_MOST; r++) /* heavy tails, never 0; more of rank 0, and more of the left */
        for (i = 0; i < MOST_N; i++) {
            double u, v;
            state = state * 6364136223846793005u + 1442695040888963407u;
            u = ((double)(state >> 40) + 0.5) / 16777216.0 - 0.5;
            state = state * 6364136223846793005u + 1442695040888963407u;
            v = ((double)(state >> 40) + 0.5) / 16777216.0;
            data[r][i] = (float)(u * exp(3.0 * v * v) * (r ? 1.0 : 2.0) * (1.0 + (double)(MOST_N - i) / MOST_N));
        }
}

/* op, and what it keeps of everybody's, in the stripes of the route */
static void prepare(void) {
    char text[64];
    int r, p;
    if (starts_with("lowrank")) sprintf(text, "lowrank:2:10:%lu", (unsigned long)(n / 10));
    else strcpy(text, now->op);
    if (cg_op_parse(&op, text) != CG_OK || (now->back && cg_op_parse(&back, now->back) != CG_OK)) {
        printf("does not parse: %s\n", text);
        exit(2);
    }
    for (r = 0; r < N && op.select.id; r++) {
        const int parts = now->route == CG_ROUTE_RING || now->route == CG_ROUTE_SCATTER ? N : 1;
        for (p = 0; p < parts; p++) {
            const size_t start = parts > 1 ? stripe_at(n, p) : 0, many = parts > 1 ? stripe(n, p) : n;
            packed(&op, r, data[r] + start, many, held[r] + start);
        }
    }
}

static void run(void) {
    cg_exchange_desc d = CG_ZERO;
    float *x[SIM_MOST];
    int r;
    memset(carry, 0, sizeof carry);
    for (r = 0; r < N; r++) x[r] = (float *)memcpy(given[r], data[r], 4 * n);
    d.op = op;
    d.route = now->route;
    d.tag.seed = 11;
    d.tag.step = 5;
    d.sum = way;
    if (now->kind == LEVELS) d.flags = CG_AGREE_SCALES;
    if (confirm) d.flags |= CG_CONFIRM;
    if (now->kind == VOTES) d.fold = CG_FOLD_VOTE;
    if (now->back) d.back = &back;
    sim_open(&s, N, which, agrees, &d, x, n);
    for (r = 0; r < N && (now->kind == CODED || (now->back && now->kind == FIXED)); r++)
        s.rank[r].desc.carry = carry[r];
    sim_run(&s);
}

static const char *differs(const char *what, int rank, uint64_t is, uint64_t ought) {
    snprintf(note, sizeof note,
        "%s, route %u, kind %d, %s: N = %d, n = %lu, callbacks %d%s%s: rank %d: %s: %lu, not %lu", now->op,
        (unsigned)now->route, now->kind, now->back ? now->back : "", N, (unsigned long)n, which,
        agrees ? " that agree" : "", confirm ? ", confirmed" : "", rank, what, (unsigned long)is, (unsigned long)ought);
    return note;
}

/* NULL, or what is not as it should be. */
static const char *audit(void) {
    int r;
    for (r = 0; r < N; r++) {
        const sim_rank *k = &s.rank[r];
        if (k->status != CG_OK) return differs(k->report.why, r, (uint64_t)k->status, 0);
        if (k->report.bytes_out != due[r].out) return differs("bytes out", r, k->report.bytes_out, due[r].out);
        if (k->report.bytes_in != due[r].in) return differs("bytes in", r, k->report.bytes_in, due[r].in);
        if (k->report.rounds != due[r].rounds) return differs("rounds", r, k->report.rounds, due[r].rounds);
        if ((uint64_t)k->ios != due[r].rounds) return differs("callbacks", r, (uint64_t)k->ios, due[r].rounds);
        if (k->out != due[r].crossed_out) return differs("bytes that left", r, k->out, due[r].crossed_out);
        if (k->in != due[r].crossed_in) return differs("bytes that came", r, k->in, due[r].crossed_in);
    }
    return NULL;
}

static int works(void) /* point to point, or not? */
{
    return (which & SIM_SENDRECV) || N == 1 || now->route == CG_ROUTE_ALLGATHER || now->route == CG_ROUTE_SERVER ||
        now->route == CG_ROUTE_SHARED || now->route == CG_ROUTE_LINEAR;
}

static int sums_floats(void) { return now->route == CG_ROUTE_SHARED || now->route == CG_ROUTE_LINEAR; }

TEST every_byte(uint32_t route) {
    static const int ranks[] = { 1, 2, 3, 4, 5, 7, 8, 16 },
                     callbacks[] = { SIM_SENDRECV, SIM_ALL, SIM_ALLGATHER, SIM_BROADCAST, SIM_ALLREDUCE };
    static const size_t lengths[] = { 0, 50, 100, 3000, MOST_N };
    static unsigned turn;
    static uint32_t ways;
    int t, i, j, l;
    for (t = 0; t < TRIALS; t++)
        for (i = 0; i < 8 && trials[t].route == route; i++)
            for (l = 0; l < 5; l++) {
                if (spared(&turn, 7)) continue;
                now = &trials[t], N = ranks[i], n = lengths[l];
                if (!n && starts_with("lowrank")) continue;
                prepare();
                for (j = 0; j < 10; j++) {
                    const char *wrong;
                    which = callbacks[j / 2], agrees = j % 2;
                    if (!works() || (agrees && !(which & SIM_ALLREDUCE))) continue;
                    confirm = (i + l + j) % 3 == 0;
                    way = (which & SIM_SENDRECV) && sums_floats() ? ways++ % (CG_SUM_HALVING + 1) : 0;
                    bill_all();
                    run();
                    wrong = audit();
                    sim_close(&s);
                    if (wrong) FAILm(wrong);
                }
            }
    PASS();
}

/* ---- the leading terms of the usual cost models: M bytes of x, c of them kept ---- */

static int rounds_of(int ranks) {
    int log = 0;
    while (1 << log < ranks) log++;
    return log;
}

/* All ranks of one exchange. */
static const sim_rank *once_of(const char *text, uint32_t route, int size, size_t values) /* over sendrecv */
{
    static trial one;
    one.op = text;
    one.route = route;
    now = &one, N = size, n = values, which = SIM_SENDRECV, agrees = confirm = 0;
    prepare();
    run();
    sim_close(&s);
    return s.rank;
}

static const sim_rank *once(const char *text, uint32_t route, int size) { return once_of(text, route, size, MOST_N); }

static int near_to(uint64_t bytes, double model, uint64_t headers) {
    return fabs((double)bytes - model) <= (double)headers;
}

TEST models(int ranks) {
    const double M = 4.0 * MOST_N, N1 = ranks - 1, part = 2.0 * N1 / ranks;
    /* a run more or less in a stripe, too */
    const uint64_t few = (uint64_t)ranks * (RECORD + 2 * NOTE + 2 * HEADER + 4 * 64);
    const int log = rounds_of(ranks);
    const sim_rank *rank;
    int r;
    for (r = 0; r < ranks; r++) {
        rank = once("dense", CG_ROUTE_RING, ranks);
        ASSERT(near_to(rank[r].out, part * M, few) && near_to(rank[r].in, part * M, few));
        ASSERT_EQ_FMT(ranks - 1 + 2 * log, rank[r].ios, "%d"); /* the sums are handed out by Bruck */
        way = CG_SUM_RING;
        rank = once("dense", CG_ROUTE_LINEAR, ranks);
        ASSERT(near_to(rank[r].out, part * M, few) && near_to(rank[r].in, part * M, few));
        ASSERT_EQ_FMT(2 * (ranks - 1) + log, rank[r].ios, "%d");
        way = CG_SUM_HALVING;
        rank = once("dense", CG_ROUTE_LINEAR, ranks);
        if (ranks == power()) {
            ASSERT(near_to(rank[r].out, part * M, few) && near_to(rank[r].in, part * M, few));
            ASSERT_EQ_FMT(3 * log, rank[r].ios, "%d");
        } else {
            ASSERT(rank[r].out <= (uint64_t)(2 * M) + few && rank[r].in <= (uint64_t)(2 * M) + few);
            ASSERT(rank[r].ios <= 4 * (log - 1) + log);
        }
        way = CG_SUM_DOUBLING;
        rank = once("dense", CG_ROUTE_LINEAR, ranks);
        ASSERT(rank[r].ios <= log + (ranks == power() ? log : log + 1));
        way = 0;
        rank = once("absmax:4:64", CG_ROUTE_SCATTER, ranks);
        ASSERT(near_to(rank[r].out, part * M * (4 + 0.5) / 32, few) &&
            near_to(rank[r].in, part * M * (4 + 0.5) / 32, few));
        rank = once("topk:0.01", CG_ROUTE_ALLGATHER, ranks);
        ASSERT(near_to(rank[r].out, N1 * M * 0.01 * (34 + log2(100.0)) / 32, few) &&
            (double)rank[r].out < N1 * M * 0.01 * 2);
        ASSERT_EQ_FMT(2 * log, rank[r].ios, "%d");
    }
    rank = once("dense", CG_ROUTE_TREE, ranks); /* the root is on the longest way */
    ASSERT(near_to(rank[0].in, log * M, few) && near_to(rank[0].out, log * M, few));
    ASSERT_EQ_FMT(3 * log, rank[0].ios, "%d");
    rank = once("dense", CG_ROUTE_SERVER, ranks);
    ASSERT(near_to(rank[0].in, N1 * M, few) && near_to(rank[0].out, log * M, few));
    rank = once("topk:0.01", CG_ROUTE_SHARED, ranks); /* the leader of step 5 */
    ASSERT(near_to(rank[5 % ranks].out, M * 0.01 * (part + log * (2 + log2(100.0)) / 32), few));
    rank = once("topk:0.01", CG_ROUTE_MERGE, ranks);
    ASSERT(near_to(rank[0].in, log * M * 0.01 * (34 + log2(100.0)) / 32, few) &&
        near_to(rank[0].out, log * M * 0.01 * (34 + log2(100.0)) / 32, few));
    PASS();
}

/* Rounds of small sums, opening included, and which way they went. */
TEST few_rounds(void) {
    const sim_rank *rank = once_of("dense", CG_ROUTE_LINEAR, 8, 256);
    int r;
    for (r = 0; r < 8; r++) ASSERT_EQ_FMT(3 + 3, rank[r].ios, "%d");
    ASSERT_EQ_FMT((unsigned)CG_SUM_DOUBLING, (unsigned)rank[0].report.sum, "%u");
    rank = once_of("topk:0.05", CG_ROUTE_SHARED, 16, 3000);
    for (r = 0; r < 16; r++) ASSERT(rank[r].ios <= 16 && rank[r].report.sum == CG_SUM_DOUBLING);
    rank = once_of("topk:1", CG_ROUTE_SHARED, 16, MOST_N);
    for (r = 0; r < 16; r++) ASSERT(rank[r].ios <= 16 && rank[r].report.sum == CG_SUM_HALVING);
    PASS();
}

SUITE(bytes) {
    uint32_t route;
    for (route = CG_ROUTE_ALLGATHER; route <= CG_ROUTE_LINEAR; route++) RUN_TEST1(every_byte, route);
}

SUITE(leading_terms) {
    int size;
    for (size = 2; size <= 9; size++) RUN_TEST1(models, size);
    RUN_TEST1(models, 16);
    RUN_TEST(few_rounds);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    fill();
    RUN_SUITE(bytes);
    RUN_SUITE(leading_terms);
    GREATEST_MAIN_END();
}
