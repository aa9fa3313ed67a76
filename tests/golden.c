/* cc -O2 -I. -Itests tests/golden.c -o golden && ./golden tests/golden

   Golden packets: the format, and every bit of every stage, as it was when it was declared final.
   For each case of golden.h and each ISA here: compress gives the bytes of DIR/<case>.cgp, decode
   gives floats with the hashes in DIR/decoded*.txt (plain; and y = 0.75 y - 0.5 D over the input). Packets whose text
   means something else now still decode.

   golden --write DIR makes the packets that are not there yet, and adds their hashes to DIR/decoded2.txt. That is
   done by hand, when a version of the format is declared final; what is there is never written again. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "golden.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"

/* Packets of 0.1 whose text means something else now, or is refused: they decode as ever, and where an operator still
   makes them, `now` is its text. */
typedef struct old_case {
    golden_case was;
    const char *now;
} old_case;
static const old_case olds[] = { { { "eden:0.5", GOLDEN_N }, "randk:0.5|rotate:2|lloyd:1" },
    { { "mean", GOLDEN_N }, NULL }, { { "mean", GOLDEN_AGREED }, NULL }, { { "mean", GOLDEN_MILD }, NULL } };
enum { OLDS = (int)(sizeof olds / sizeof olds[0]) };

static const cg_tag tag = { 0x0123456789abcdefu, 1000000007u, 42, 3 };
static float x[GOLDEN_MAX], y[GOLDEN_MAX], y_direct[GOLDEN_MAX];

typedef struct result {
    unsigned char *packet;
    size_t len;
    uint64_t plain, mixed;
} result;

static void name_of(const golden_case *c, char *name, size_t cap) { /* topk:0.1|f16 -> topk-0.1+f16 */
    if (c->n == GOLDEN_N) snprintf(name, cap, "%s.cgp", c->op);
    else snprintf(name, cap, "%s.n%lu.cgp", c->op, (unsigned long)c->n);
    for (; *name; name++) *name = (char)(*name == '|' ? '+' : *name == ':' || *name == '=' ? '-' : *name);
}

static const char *decode(const golden_case *c, cg_extra *side, result *r) {
    cg_status s = side->support ? cg_decode(side, r->packet, r->len, 1, 0, y, c->n)
                                : cg_decompress(r->packet, r->len, y, c->n);
    if (s != CG_OK) return cg_status_str(s);
    r->plain = golden_hash_floats(y, c->n);
    side->flags = CG_DECODE_DIRECT;
    s = cg_decode(side, r->packet, r->len, 1, 0, y_direct, c->n);
    if (s != CG_OK || memcmp(y, y_direct, c->n * sizeof *y)) return "CG_DECODE_DIRECT gives something else";
    side->flags = 0;
    s = cg_decode(side, r->packet, r->len, -0.5f, 0.75f, x, c->n);
    if (s != CG_OK) return cg_status_str(s);
    r->mixed = golden_hash_floats(x, c->n);
    return NULL;
}

/* Compresses by the operator `text` and decodes; NULL, or what went wrong. The caller frees r->packet. */
static const char *run(const golden_case *c, const char *text, result *r) {
    cg_op op;
    cg_extra side, cut_side = CG_ZERO;
    golden_cut cut;
    cg_status s = cg_op_parse(&op, golden_text(text, c->n, &cut, &cut_side));
    const char *why;
    r->packet = NULL;
    if (s != CG_OK) return "cg_op_parse";
    size_t cap = cg_bound_with(&op, &cut_side, c->n), scratch_bytes = cg_scratch_with(&op, &cut_side, c->n);
    void *scratch = malloc(scratch_bytes + 1);
    r->packet = (unsigned char *)malloc(cap + 1);
    if (cap == 0 || !scratch || !r->packet) {
        free(scratch);
        return "cg_bound or malloc";
    }
    golden_fill(x, c->n);
    s = golden_side(&op, &tag, x, c->n, &side) ? CG_E_MEMORY : CG_OK;
    side.segments = cut_side.segments;
    if (s == CG_OK) s = cg_compress_with(&op, &tag, &side, x, c->n, r->packet, cap, &r->len, scratch, scratch_bytes);
    free(scratch);
    why = s != CG_OK ? cg_status_str(s) : decode(c, &side, r);
    golden_side_done(&side);
    return why;
}

static FILE *open_in(const char *dir, const char *name, const char *mode) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return fopen(path, mode);
}

static int listed(const char *dir, const char *name, uint64_t *plain, uint64_t *mixed) {
    static const char *const lists[] = { "decoded.txt", "decoded2.txt" };
    char entry[128];
    int found = 0;
    for (int i = 0; i < 2 && !found; i++) {
        FILE *f = open_in(dir, lists[i], "r");
        while (f && !found && fscanf(f, "%127s %" SCNx64 " %" SCNx64, entry, plain, mixed) == 3)
            found = !strcmp(entry, name);
        if (f) fclose(f);
    }
    return found;
}

/* Both files of a case are there, or neither is: then they are written. Else this would hide that one got lost. */
static const char *write_one(const char *dir, const golden_case *c, const char *name, int *wrote) {
    uint64_t plain, mixed;
    result r = { NULL, 0, 0, 0 };
    const char *why = NULL;
    FILE *f = open_in(dir, name, "rb");
    int known = listed(dir, name, &plain, &mixed), ok;
    if (f) fclose(f);
    if (!f != !known) return f ? "there, but its hashes are not" : "lost, though its hashes are there";
    if (f) return NULL;
    for (int isa = CG_ISA_WASM; isa >= CG_ISA_SCALAR && !why; isa--) { /* what differs is not worth keeping */
        result other = r;
        if (cg_isa_force((cg_isa)isa) != CG_OK) continue;
        why = run(c, c->op, &r);
        if (!why && other.packet &&
            (r.len != other.len || memcmp(r.packet, other.packet, r.len) || r.plain != other.plain ||
                r.mixed != other.mixed))
            why = "differs from one instruction set to the other";
        free(other.packet);
    }
    if (!why) {
        f = open_in(dir, name, "wb");
        ok = f && fwrite(r.packet, 1, r.len, f) == r.len;
        ok = f && !fclose(f) && ok;
        f = open_in(dir, "decoded2.txt", "a");
        ok = f && fprintf(f, "%s %016" PRIx64 " %016" PRIx64 "\n", name, r.plain, r.mixed) > 0 && ok;
        ok = f && !fclose(f) && ok;
        if (!ok) why = "cannot be written";
        else ++*wrote;
    }
    free(r.packet);
    return why;
}

static const golden_case *case_at(int i) {
    return i < GOLDEN_CASES ? &golden_cases[i] : &golden_segmented[i - GOLDEN_CASES];
}
static int write_missing(const char *dir) {
    char name[128];
    int wrote = 0, bad = 0;
    for (int i = 0; i < GOLDEN_CASES + GOLDEN_SEGMENTED; i++) {
        const char *why;
        name_of(case_at(i), name, sizeof name);
        why = write_one(dir, case_at(i), name, &wrote);
        if (why) bad++, fprintf(stderr, "%s: %s\n", name, why);
    }
    printf("%d of %d packets written\n", wrote, (int)GOLDEN_CASES + GOLDEN_SEGMENTED);
    return bad != 0;
}

static const char *check(const char *dir, const golden_case *c, const result *r) {
    static unsigned char want[1 << 20];
    char name[128];
    uint64_t plain, mixed;
    name_of(c, name, sizeof name);
    FILE *f = open_in(dir, name, "rb");
    if (!f) return "no such file";
    size_t len = fread(want, 1, sizeof want, f);
    fclose(f);
    if (len != r->len) return "the packet has another length";
    if (memcmp(want, r->packet, len)) return "the packet differs";
    if (!listed(dir, name, &plain, &mixed)) return "not in decoded*.txt";
    if (plain != r->plain) return "decoded floats differ";
    if (mixed != r->mixed) return "decoded floats differ (0.75 y - 0.5 D)";
    return NULL;
}

/* An old packet decodes as it did; what still makes it makes the same bytes. */
static const char *check_old(const char *dir, const old_case *old) {
    static unsigned char packet[1 << 20];
    char name[128];
    result r = { NULL, 0, 0, 0 };
    cg_op op;
    cg_extra side = CG_ZERO;
    const char *why;
    name_of(&old->was, name, sizeof name);
    if (old->now) {
        why = run(&old->was, old->now, &r);
        if (!why) why = check(dir, &old->was, &r);
        free(r.packet);
        if (why) return why;
    } else if (cg_op_parse(&op, old->was.op) == CG_OK) return "is accepted again: it belongs to golden_cases";
    FILE *f = open_in(dir, name, "rb");
    if (!f) return "no such file";
    r.packet = packet;
    r.len = fread(packet, 1, sizeof packet, f);
    fclose(f);
    golden_fill(x, old->was.n);
    why = decode(&old->was, &side, &r);
    return why ? why : check(dir, &old->was, &r);
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "--write")) return write_missing(argv[2]);
    if (argc != 2) {
        fprintf(stderr, "usage: golden DIR | golden --write DIR\n");
        return 2;
    }
    int pass = 0, fail = 0;
    for (int isa = CG_ISA_SCALAR; isa <= CG_ISA_WASM; isa++) {
        if (cg_isa_force((cg_isa)isa) != CG_OK) continue;
        for (int i = 0; i < GOLDEN_CASES + GOLDEN_SEGMENTED; i++) {
            const golden_case *c = case_at(i);
            result r;
            const char *why = run(c, c->op, &r);
            if (!why) why = check(argv[1], c, &r);
            free(r.packet);
            if (why)
                printf("FAIL: golden %s n=%lu %s: %s\n", c->op, (unsigned long)c->n, cg_isa_name((cg_isa)isa), why);
            why ? fail++ : pass++;
        }
        for (int i = 0; i < OLDS; i++) {
            const char *why = check_old(argv[1], &olds[i]);
            if (why)
                printf("FAIL: golden, the old %s n=%lu %s: %s\n", olds[i].was.op, (unsigned long)olds[i].was.n,
                    cg_isa_name((cg_isa)isa), why);
            why ? fail++ : pass++;
        }
    }
    printf("Pass: %d, fail: %d, skip: 0.\n", pass, fail);
    return fail != 0;
}
