/* What a build with COMPGRAD_ONLY has and has not; tests/build/only.sh builds it in three ways.
   SMALL: a program of a small device, whose size is measured. Else: takes the texts of operators, those with a '-'
   before them left out. OTHERS: has topk and f16 and not absmax, and this is a packet with absmax. */
#define COMPGRAD_IMPLEMENTATION
#include <stdio.h>
#include <string.h>
#ifdef WITH_EF
#  include "compgrad_ef.h"
#else
#  include "compgrad.h"
#endif

#define N 1000
static float x[N], y[N], z[N];
static unsigned char packet[8192], scratch[1 << 17];
static int failed;

static void check(int ok, const char *what) {
    if (!ok) printf("FAIL: %s\n", what);
    failed += !ok;
}
static uint64_t hash(const unsigned char *p, size_t n) {
    uint64_t h = 14695981039346656037u;
    while (n--) h = (h ^ *p++) * 1099511628211u;
    return h;
}

#ifdef SMALL /* what a device does: its size is measured */
int main(void) {
    const cg_op op = cg_then(cg_topk(0.05f), cg_f16());
    size_t len;
    for (int i = 0; i < N; i++) x[i] = (float)(i * 7919 % N) - 500.0f;
    check(cg_bound(&op, N) <= sizeof packet && cg_scratch(&op, N) <= sizeof scratch, "it fits");
    check(cg_compress(&op, NULL, x, N, packet, sizeof packet, &len, scratch, sizeof scratch) == CG_OK, "compress");
    check(cg_decompress(packet, len, y, N) == CG_OK, "decompress");
    for (int i = 0; i < N; i++) check(y[i] == 0.0f || y[i] == x[i], "values");
    printf("%d bytes\n", (int)len);
    return failed;
}
#else
/* The texts of operators, each refused by name if the build leaves it out: prints its packet's hash, or "left out". */
static void try_operator(const char *text, int built) {
    static const char said[] = " was left out (COMPGRAD_WITH_";
    char why[300] = "", name[32] = "";
    cg_extra extra;
    cg_report report;
    cg_about about;
    cg_op op;
    size_t len = 0;
    cg_status s = cg_op_parse_why(&op, text, why, sizeof why);
    check(s == (built ? CG_OK : CG_E_VERSION), text);
    if (!built) {
        check(strstr(why, said) != NULL && !strncmp(why, "at ", 3), why);
        check(op.select.id == 0 && op.quantize.id == 0, "no operator is left");
        return;
    }
    if (strstr(text, "given")) return; /* needs a support */
    memset(&extra, 0, sizeof extra);
    extra.report = &report;
    extra.aux = strstr(text, "bins") || strstr(text, "adacomp") || strstr(text, "variance") ? z : NULL;
    check(cg_op_about(&op, N, &about) == CG_OK, "about");
    s = cg_compress_with(&op, NULL, &extra, x, N, packet, sizeof packet, &len, scratch, sizeof scratch);
    check(s == CG_OK, report.why);
    check(cg_decode(NULL, packet, len, 1.0f, 0.0f, y, N) == CG_OK, "decode");
    check(cg_op_print(&op, name, sizeof name) == CG_OK, "print");
    printf("%s: %d bytes, %08lx %08lx\n", text, (int)len, (unsigned long)(hash(packet, len) & 0xffffffffu),
        (unsigned long)(hash((const unsigned char *)y, sizeof y) & 0xffffffffu));
}
int main(int argc, char **argv) {
    for (int i = 0; i < N; i++) x[i] = (float)(i * 7919 % N) * 0.37f - 185.0f, z[i] = 1.0f + (float)(i % 7);
    for (int i = 1; i < argc; i++) try_operator(argv[i] + (argv[i][0] == '-'), argv[i][0] != '-');
#  ifdef OTHERS
    {
        cg_op op = cg_then(cg_topk(0.05f), cg_absmax(4, 64));
        cg_extra extra;
        cg_report report;
        cg_about about;
        size_t len = 77;
        FILE *f = fopen(OTHERS, "rb");
        memset(&extra, 0, sizeof extra);
        extra.report = &report;
        check(cg_bound(&op, N) == 0, "bound is 0");
        check(cg_compress_with(&op, NULL, &extra, x, N, packet, sizeof packet, &len, scratch, sizeof scratch) ==
                CG_E_VERSION,
            "compress is CG_E_VERSION");
        check(report.status == CG_E_VERSION && !strncmp(report.why, "absmax was left out", 19), report.why);
        check(cg_op_about(&op, N, &about) == CG_E_VERSION && !strncmp(about.why, "absmax was left out", 19), about.why);
        len = f ? fread(packet, 1, sizeof packet, f) : 0;
        if (f) fclose(f);
        check(len > 100, OTHERS);
        check(cg_decode(&extra, packet, len, 1.0f, 0.0f, y, N) == CG_E_VERSION, "decode is CG_E_VERSION");
        check(!strncmp(report.why, "absmax was left out", 19), report.why);
        check(cg_decompress(packet, len, y, N) == CG_E_VERSION, "decompress is CG_E_VERSION");
#    ifdef WITH_EF
        {
            cg_ef ef;
            cg_ef_desc desc;
            static float mem[65536];
            memset(&desc, 0, sizeof desc);
            desc.op = op;
            desc.n = N;
            check(cg_ef_init(&ef, &desc, mem, sizeof mem) == CG_E_VERSION, "cg_ef_init is CG_E_VERSION");
            cg_ef_report(&ef, &report);
            check(!strncmp(report.why, "absmax was left out", 19), report.why);
        }
#    endif
    }
#  endif
    return failed != 0;
}
#endif
