/* cc -O2 -I. -Itests tests/golden.c -o golden && ./golden tests/golden

   Golden packets: the format, and every bit of every stage, as it was when it was declared final.
   For each case of golden.h and each ISA here: compress gives the bytes of DIR/<case>.cgp, decode
   gives floats with the hashes in DIR/decoded.txt (plain; and y = 0.75 y - 0.5 D over the input).

   golden --write DIR makes the files. That is done by hand, once per version of the format. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "golden.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"

static const cg_tag tag = { 0x0123456789abcdefu, 1000000007u, 42, 3 };
static float x[GOLDEN_MAX], y[GOLDEN_MAX], y_direct[GOLDEN_MAX];

typedef struct result { unsigned char *packet; size_t len; uint64_t plain, mixed; } result;

static void name_of(const golden_case *c, char *name, size_t cap) {     /* topk:0.1|f16 -> topk-0.1+f16 */
    if (c->n == GOLDEN_N) snprintf(name, cap, "%s.cgp", c->op);
    else snprintf(name, cap, "%s.n%lu.cgp", c->op, (unsigned long)c->n);
    for (; *name; name++) *name = (char)(*name == '|' ? '+' : *name == ':' || *name == '=' ? '-' : *name);
}

/* Compresses and decodes; NULL, or what went wrong. The caller frees r->packet. */
static const char *run(const golden_case *c, result *r) {
    cg_op op;
    cg_side direct = CG_ZERO;
    cg_status s = cg_op_parse(&op, c->op);
    r->packet = NULL;
    if (s != CG_OK) return "cg_op_parse";
    size_t cap = cg_bound(&op, c->n), scratch_bytes = cg_scratch(&op, c->n);
    void *scratch = malloc(scratch_bytes + 1);
    r->packet = (unsigned char *)malloc(cap + 1);
    if (cap == 0 || !scratch || !r->packet) { free(scratch); return "cg_bound or malloc"; }
    golden_fill(x, c->n);
    s = cg_compress(&op, &tag, x, c->n, r->packet, cap, &r->len, scratch, scratch_bytes);
    free(scratch);
    if (s != CG_OK) return cg_status_str(s);

    s = cg_decompress(r->packet, r->len, y, c->n);
    if (s != CG_OK) return cg_status_str(s);
    r->plain = golden_hash_floats(y, c->n);
    direct.flags = CG_DECODE_DIRECT;
    s = cg_decode(&direct, r->packet, r->len, 1, 0, y_direct, c->n);
    if (s != CG_OK || memcmp(y, y_direct, c->n * sizeof *y)) return "CG_DECODE_DIRECT gives something else";
    s = cg_decode(NULL, r->packet, r->len, -0.5f, 0.75f, x, c->n);
    if (s != CG_OK) return cg_status_str(s);
    r->mixed = golden_hash_floats(x, c->n);
    return NULL;
}

static int write_all(const char *dir) {
    char path[512], name[128];
    snprintf(path, sizeof path, "%s/decoded.txt", dir);
    FILE *list = fopen(path, "w");
    if (!list) { perror(path); return 1; }
    for (int i = 0; i < GOLDEN_CASES; i++) {
        result r;
        const char *why = run(&golden_cases[i], &r);
        name_of(&golden_cases[i], name, sizeof name);
        snprintf(path, sizeof path, "%s/%s", dir, name);
        FILE *f = why ? NULL : fopen(path, "wb");
        if (!f || fwrite(r.packet, 1, r.len, f) != r.len || fclose(f)) { fprintf(stderr, "%s: %s\n", path, why ? why : "write"); return 1; }
        fprintf(list, "%s %016" PRIx64 " %016" PRIx64 "\n", name, r.plain, r.mixed);
        free(r.packet);
    }
    return fclose(list) != 0;
}

static const char *check(const char *dir, FILE *list, const golden_case *c, const result *r) {
    static unsigned char want[1 << 20];
    char path[512], name[128], listed[128] = "";
    uint64_t plain, mixed;
    name_of(c, name, sizeof name);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    if (!f) return "no such file";
    size_t len = fread(want, 1, sizeof want, f);
    fclose(f);
    if (len != r->len) return "the packet has another length";
    if (memcmp(want, r->packet, len)) return "the packet differs";
    for (rewind(list); strcmp(listed, name);)
        if (fscanf(list, "%127s %" SCNx64 " %" SCNx64, listed, &plain, &mixed) != 3) return "not in decoded.txt";
    if (plain != r->plain) return "decoded floats differ";
    if (mixed != r->mixed) return "decoded floats differ (0.75 y - 0.5 D)";
    return NULL;
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "--write")) return write_all(argv[2]);
    if (argc != 2) { fprintf(stderr, "usage: golden DIR | golden --write DIR\n"); return 2; }
    char path[512];
    int pass = 0, fail = 0;
    snprintf(path, sizeof path, "%s/decoded.txt", argv[1]);
    FILE *list = fopen(path, "r");
    if (!list) { perror(path); return 1; }
    for (int isa = CG_ISA_SCALAR; isa <= CG_ISA_NEON; isa++) {
        if (cg_isa_force((cg_isa)isa) != CG_OK) continue;
        for (int i = 0; i < GOLDEN_CASES; i++) {
            result r;
            const char *why = run(&golden_cases[i], &r);
            if (!why) why = check(argv[1], list, &golden_cases[i], &r);
            free(r.packet);
            if (why) printf("FAIL: golden %s n=%lu %s: %s\n", golden_cases[i].op, (unsigned long)golden_cases[i].n, cg_isa_name((cg_isa)isa), why);
            why ? fail++ : pass++;
        }
    }
    fclose(list);
    printf("Pass: %d, fail: %d, skip: 0.\n", pass, fail);
    return fail != 0;
}
