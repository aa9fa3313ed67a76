/* The one line of text that opens a mean: what it says, word for word; what is refused; that a description opens the
   same mean again; and that no bytes of a line or of a saved state harm it. */
#undef COMPGRAD_LINKED /* it looks at private names */
#define COMPGRAD_STATIC
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include "greatest.h"
#include "tier.h"

static const size_t sizes[2] = { 3000, 40 };
static cg_transport alone(void) {
    cg_transport t = CG_ZERO;
    t.size = 1;
    return t;
}
/* The line that a mean of that line describes itself by, in text; its sentence if it is refused. */
static const char *line_of(const char *config, char *text, size_t cap) {
    const cg_transport t = alone();
    const size_t bytes = cg_mean_memory(config, sizes, 2, &t, text, cap);
    void *mem;
    cg_mean *m;
    if (!bytes) return text;
    mem = malloc(bytes);
    if (cg_mean_open(&m, config, sizes, 2, &t, mem, bytes) != CG_OK) strcpy(text, "opened and did not");
    else if (cg_mean_describe(m, text, cap) != CG_OK) strcpy(text, "too long");
    else *strchr(text, '\n') = 0;
    free(mem);
    return text;
}
TEST lines_are_read(void) {
    static const struct {
        const char *config, *is;
    } line[] = {
        { NULL, "rotate:3|lloyd:4 memory=classic small=1024" },
        { "", "rotate:3|lloyd:4 memory=classic small=1024" },
        { " \n# nothing but a comment", "rotate:3|lloyd:4 memory=classic small=1024" },
        { "seed=7", "rotate:3|lloyd:4 memory=classic seed=7 small=1024" },
        { "small=0", "rotate:3|lloyd:4 memory=classic" },
        { "topk:0.01|absmax:4:512 memory=momentum:0.9 route=scatter seed=42 dense=100 warmup=power:4:468 clip=1 "
          "small=4096",
            "topk:0.01|absmax:4:512 memory=momentum:0.9 route=scatter seed=42 dense=100 warmup=power:4:468 clip=1 "
            "small=4096" },
        { "  TopK:1%\tsmall=16\nROUTE=Ring FOLD=Sum", "topk:0.01 memory=classic route=ring fold=sum small=16" },
        { "topk:k=9 seed=18446744073709551615", "topk:k=9 memory=classic seed=18446744073709551615" },
        { "topk : 0.01 | f16 seed=1", "topk:0.01|f16 memory=classic seed=1" },
        { "topk:0.01 memory=momentum:momentum=0.5:nesterov", "topk:0.01 memory=momentum:0.5:nesterov" },
        { "topk:0.01 memory=ecq:decay=0.5:0.1",
            "at 31: memory=ecq has no '0.1'; it takes :alpha=, :decay=, :8bit, :reset=" },
        { "topk:0.01 memory=ecq:0.1:decay=0.5:8bit", "topk:0.01 memory=ecq:0.1:decay=0.5:8bit" },
        { "topk:0.01 memory=laq:0.1:patience=7", "topk:0.01 memory=laq:0.1:patience=7" },
        { "topk:0.01 warmup=table:0.25,0.1:10 clip=value:0.5",
            "topk:0.01 memory=classic warmup=table:0.25,0.1:10 clip=value:0.5" },
        { "eden:2 memory=difference:sqrt", "rotate:3:private|lloyd:2 memory=difference:sqrt" },
        { "topk:0.01 optimizer=momentum:0.9", "topk:0.01 memory=momentum:0.9 optimizer=momentum:0.9" },
        { "topk:0.01 optimizer=sgd # and why", "topk:0.01 memory=classic optimizer=sgd" },
        /* what is wrong, where, and what to write */
        { "tpok:0.01", "at 0: no operator 'tpok'; did you mean 'topk'?" },
        { "topk", "at 4: topk lacks its ratio: above 0, at most 1, as in 'topk:0.01'" },
        { "topk=0.01",
            "at 0: no setting 'topk': it is an operator, which stands first and has ':' before its parameters" },
        { "topk:0.01 rout=ring",
            "at 10: no setting 'rout'; did you mean 'route='? There are memory=, route=, fold=, seed=, "
            "dense=, warmup=, clip=, small=, pack=, overlap=, optimizer=" },
        { "topk:0.01 seed=1 route=ring seed=2", "at 28: seed= stands twice, first at 10: leave one of them out" },
        { "topk:0.01 seed=1 f16",
            "at 17: 'f16' is not name=value; the operator stands first, and behind it only settings, "
            "as in 'topk:0.01 route=scatter seed=42'" },
        { "topk:0.01 seed=-1", "at 15: '-1' stands in seed= for the seed, which is a whole number, as in 'seed=42'" },
        { "topk:0.01 clip=0,5",
            "at 15: '0,5' stands in clip= for the limit, which is a number above 0, as in clip=value:1 for every value "
            "or clip=1 for the norm (decimals follow a '.'), as in 'clip=1'" },
        { "topk:0.01 memory=momentum",
            "at 25: memory=momentum lacks its momentum: a number from 0 to below 1, as in 'memory=momentum:0.9'" },
        { "topk:0.01 memory=momentun:0.9", NULL },
        { "topk:0.01 memory=momentum:1",
            "at 26: '1' stands in memory= for momentum, which is a number from 0 to below 1, as "
            "in 'memory=momentum:0.9'" },
        { "topk:0.01 warmup=power",
            "at 22: nothing stands in warmup= for the stages, which is a whole number from 1 to 4096, "
            "as in 'warmup=power:4:468'" },
        { "topk:0.01 memory=none", NULL },
        { "lowrank:2",
            "at 0: this operator takes rows and columns of tensors, and none has them: open with cg_mean_open_of "
            "and give rows, or write them, as in 'lowrank:4:512:256'" },
        { "topk:0.01 route=reduce_scatter",
            "tensor 0: this route is one leg of scatter, and leaves each rank with a stripe: take route=scatter, or "
            "cg_reduce_scatter and cg_all_gather" },
        { "topk:0.01 route=all_gather", NULL },
        { "given",
            "tensor 0: the operator given needs the packet of another vector: take cg_ef_exchange, or route=shared" },
    };
    char text[4000], again[4000];
    for (size_t i = 0; i < sizeof line / sizeof *line; i++) {
        line_of(line[i].config, text, sizeof text);
        if (line[i].is) ASSERT_STR_EQ(line[i].is, text);
        else ASSERT(strlen(text) > 30);
        if (line[i].config && strncmp(text, "at ", 3) && strncmp(text, "tensor ", 7))
            ASSERT_STR_EQ(text, line_of(text, again, sizeof again)); /* it opens the same again */
    }
    line_of("topk:0.01 memory=momentun:0.9", text, sizeof text);
    ASSERT(!strncmp(text, "at 17: no memory 'momentun'; did you mean 'momentum'? There are classic, loco,", 70));
    PASS();
}
TEST names_are_those_of_the_tables(void) {
    char config[200], text[4000];
    uint32_t id, kinds = 0;
    for (uint32_t i = 0; cg_ef_kind_name(i); i++, kinds++) {
        ASSERT_EQ(CG_OK, cg_ef_kind_parse(&id, cg_ef_kind_name(i)));
        ASSERT_EQ(i, id);
        sprintf(config, "absmax:4:512 memory=%s:0.5", cg_ef_kind_name(i));
        line_of(config, text, sizeof text);
        if (strncmp(text, "at ", 3) && strncmp(text, "tensor ", 7)) ASSERT(strstr(text, config + 13));
    }
    ASSERT(kinds > 10);
    for (uint32_t i = 0; cg_warmup_name(i); i++) {
        ASSERT_EQ(CG_OK, cg_warmup_parse(&id, cg_warmup_name(i)));
        ASSERT_EQ(i, id);
    }
    for (uint32_t i = 1; cg_route_name(i); i++) {
        ASSERT_EQ(CG_OK, cg_route_parse(&id, cg_route_name(i)));
        ASSERT_EQ(i, id);
        sprintf(config, "topk:0.01 memory=classic route=%s", cg_route_name(i));
        line_of(config, text, sizeof text);
        if (strncmp(text, "tensor ", 7)) ASSERT_STR_EQ(config, text);
    }
    for (uint32_t i = 1; cg_fold_name(i); i++) {
        ASSERT_EQ(CG_OK, cg_fold_parse(&id, cg_fold_name(i)));
        ASSERT_EQ(i, id);
    }
    id = 77;
    ASSERT_EQ(CG_E_ARG, cg_route_parse(&id, "rign"));
    ASSERT_EQ(77, id);
    PASS();
}
TEST memory_is_what_it_needs(void) {
    const cg_transport t = alone();
    const char *config = "topk:0.01 dense=2 warmup=power:2:3";
    const size_t bytes = cg_mean_memory(config, sizes, 2, &t, NULL, 0), many = 64;
    unsigned char *mem = (unsigned char *)malloc(bytes + 128);
    float a[3000] = { 1.0f }, b[40] = { 2.0f }, *x[2] = { a, b };
    char why[16], text[60];
    cg_report report;
    cg_mean *m = NULL;
    ASSERT(bytes);
    ASSERT_EQ(0, cg_mean_memory("tpok", sizes, 2, &t, why, sizeof why));
    ASSERT_EQ(15, strlen(why));         /* cut off */
    for (size_t i = 0; i < many; i++) { /* any alignment, and nothing behind its end */
        memset(mem, 0xa5, bytes + 128);
        ASSERT_EQ(CG_OK, cg_mean_open(&m, config, sizes, 2, &t, mem + i, bytes));
        ASSERT_EQ(0xa5, mem[i + bytes]);
        for (int step = 0; step < 10; step++) ASSERT_EQ(CG_OK, cg_mean_step(m, x));
        ASSERT_EQ(0xa5, mem[i + bytes]);
    }
    ASSERT_EQ(CG_E_CAPACITY, cg_mean_describe(m, text, sizeof text));
    ASSERT_EQ(59, strlen(text));
    ASSERT_EQ(CG_E_MEMORY, cg_mean_open(&m, config, sizes, 2, &t, mem, bytes / 2));
    ASSERT(m && strstr(cg_mean_why(m), "bytes suffice"));
    ASSERT_EQ(CG_E_STATE, cg_mean_step(m, x));
    ASSERT(strstr(cg_mean_why(m), "bytes suffice")); /* what the open found stays */
    cg_mean_report(m, &report);
    ASSERT_EQ(CG_E_MEMORY, report.status);
    ASSERT(report.need && report.need <= bytes);
    ASSERT_EQ(CG_E_ARG, cg_mean_open(&m, "topk:2", sizes, 2, &t, mem, bytes));
    ASSERT(m && strstr(cg_mean_why(m), "out of range"));
    ASSERT_EQ(CG_E_MEMORY, cg_mean_open(&m, config, sizes, 2, &t, mem, 100));
    ASSERT(!m && strstr(cg_mean_why(m), "no memory"));
    ASSERT_EQ(CG_E_ARG, cg_mean_open(&m, config, sizes, 2, NULL, mem, bytes));
    ASSERT_STR_EQ("transport is NULL", cg_mean_why(m));
    ASSERT_EQ(CG_E_ARG, cg_mean_open(&m, config, NULL, 2, &t, mem, bytes));
    ASSERT_EQ(CG_E_ARG, cg_mean_open(&m, config, sizes, 0, &t, mem, bytes));
    ASSERT_EQ(0, cg_mean_memory(config, (const size_t[]){ SIZE_MAX / 2, 5 }, 2, &t, NULL, 0));
    ASSERT_EQ(CG_E_ARG, cg_mean_step(NULL, x));
    free(mem);
    PASS();
}
TEST shapes_are_taken(void) {
    static const cg_tensor list[4] = { { "w", 1200, 30 }, { "bias", 300, 0 }, { "narrow", 90, 30 }, { "none", 0, 0 } };
    static float w[1200], b[300], c[90];
    float *x[4] = { w, b, c, NULL };
    const cg_transport t = alone();
    const size_t bytes = cg_mean_memory_of("lowrank:4", list, 4, &t, NULL, 0);
    void *mem = malloc(bytes);
    char text[2000];
    cg_mean *m;
    ASSERT(bytes);
    ASSERT_EQ(CG_OK, cg_mean_open_of(&m, "lowrank:4", list, 4, &t, mem, bytes));
    ASSERT_EQ(CG_OK, cg_mean_describe(m, text, sizeof text));
    ASSERT(!strncmp(text, "lowrank:4 memory=classic\n", 25));
    ASSERT(strstr(text, "tensor 0 (w): 30 x 40 = 1200 values as lowrank:4:30:40"));
    ASSERT(strstr(text, "tensor 1 (bias): 300 values as exact f32"));
    ASSERT(strstr(text, "tensor 2 (narrow): 30 x 3 = 90 values as exact f32"));
    ASSERT(strstr(text, "tensor 3 (none): no values"));
    for (int i = 0; i < 300; i++) b[i] = (float)i;
    w[0] = 3.0f;
    ASSERT_EQ(CG_OK, cg_mean_step(m, x));
    ASSERT_EQ(299.0f, b[299]);
    free(mem);
    PASS();
}

TEST a_selection_may_be_of_all_tensors(void) {
    static float a[3000], b[40];
    float *x[2] = { a, b };
    const cg_transport t = alone();
    const char *config = "topk:0.01 pack=global";
    const size_t bytes = cg_mean_memory(config, sizes, 2, &t, NULL, 0);
    void *mem = malloc(bytes);
    char text[2000];
    cg_mean *m;
    int of_a = 0, of_b = 0;
    ASSERT_EQ(CG_OK, cg_mean_open(&m, config, sizes, 2, &t, mem, bytes));
    for (int i = 0; i < 3000; i++) a[i] = (float)(i % 100);
    for (int i = 0; i < 40; i++) b[i] = 1000.0f + (float)i;
    ASSERT_EQ(CG_OK, cg_mean_step(m, x));
    for (int i = 0; i < 3000; i++) of_a += a[i] > 0.0f;
    for (int i = 0; i < 40; i++) of_b += b[i] > 0.0f;
    ASSERT_EQ(0, of_a);
    ASSERT_EQ(30, of_b);
    ASSERT_EQ(CG_OK, cg_mean_describe(m, text, sizeof text));
    ASSERT(strstr(text, "tensor 1: 40 values as topk:0.01") && strstr(text, "in one packet with the others"));
    free(mem);
    PASS();
}

/* ---- any bytes ---- */

static uint32_t state = 12345;
static uint32_t dice(uint32_t sides) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % sides;
}
TEST any_line_is_safe(void) {
    static const char *const word[] = { "topk:0.01", "|", "absmax:4:512", "memory=", "momentum:0.9",
        "route=", "scatter", "=", ":", "seed=42", " ", " ", " ", "\n", "#", "dense=100", "warmup=power:4:468", "clip=1",
        "small=4096", "optimizer=", "adam", "fold=", "sum", ",", "0.5", "99999999999999999999", "-1", "8bit", "k=9",
        "lowrank:4", "\x80", "nan", "1e400", "laq:0.1", "table:0.5,0.25", "memory=classic", "decay=0.5" };
    char config[700], text[4000], again[4000];
    int opened = 0, refused = 0;
    for (int i = 0; i < (long_test() ? 300000 : 6000); i++) {
        size_t len = 0, words = dice(14);
        for (size_t j = 0; j < words; j++) {
            const char *w = word[dice(sizeof word / sizeof *word)];
            if (j && dice(3)) config[len++] = ' ';
            memcpy(config + len, w, strlen(w));
            len += strlen(w);
        }
        for (uint32_t j = dice(8); len && j > 5; j--) config[dice((uint32_t)len)] = (char)dice(256);
        config[len] = 0;
        line_of(config, text, sizeof text);
        if (!strncmp(text, "at ", 3) || !strncmp(text, "tensor ", 7)) {
            const char *c = text;
            while (*c >= ' ' && *c <= '~') c++;
            if (*c || strlen(text) < 15) printf("'%s': '%s'\n", config, text);
            ASSERT(!*c && strlen(text) >= 15);
            refused++;
        } else {
            ASSERT_STR_EQ(text, line_of(text, again, sizeof again));
            opened++;
        }
    }
    ASSERT(opened > 100 && refused > 100);
    PASS();
}
TEST any_saved_bytes_are_safe(void) {
    static const char *const config[] = { "topk:0.05 memory=momentum:0.9", "efsign memory=classic:8bit",
        "qsgd:2 memory=ef21" };
    static float a[3000], b[40];
    float *x[2] = { a, b };
    const cg_transport t = alone();
    for (size_t c = 0; c < sizeof config / sizeof *config; c++) {
        const size_t bytes = cg_mean_memory(config[c], sizes, 2, &t, NULL, 0);
        void *mem = malloc(bytes);
        cg_mean *m;
        unsigned char *blob, *bad, *now;
        size_t len, n;
        int loaded = 0;
        ASSERT_EQ(CG_OK, cg_mean_open(&m, config[c], sizes, 2, &t, mem, bytes));
        for (int step = 0; step < 3; step++) {
            for (int i = 0; i < 3000; i++) a[i] = (float)dice(1000) - 500.0f;
            for (int i = 0; i < 40; i++) b[i] = (float)dice(1000) - 500.0f;
            ASSERT_EQ(CG_OK, cg_mean_step(m, x));
        }
        n = cg_mean_save_bytes(m);
        blob = (unsigned char *)malloc(n);
        bad = (unsigned char *)malloc(n);
        now = (unsigned char *)malloc(n);
        ASSERT_EQ(CG_OK, cg_mean_save(m, blob, n, &len));
        for (int i = 0; i < (long_test() ? 20000 : 600); i++) {
            const void *bufs[1] = { bad };
            size_t cut = dice(4) ? n : dice((uint32_t)n);
            const int sealed = (int)dice(2);
            cg_status s;
            memcpy(bad, blob, n);
            for (uint32_t j = 1 + dice(3); j; j--) {
                const uint32_t at = dice(3) ? dice(400) : dice((uint32_t)n);
                bad[at] = (unsigned char)(dice(2) ? bad[at] ^ 1u << dice(8) : dice(256));
            }
            if (sealed && cut >= CG_MEAN_HEADER_BYTES_) { /* checksums do not find it */
                cut &= ~(size_t)3;
                if (dice(2)) cg_put64_(bad + 8, cut);
                cg_seal_put_(bad, cut, CG_MEAN_SEAL_OFFSET_);
            }
            s = dice(2) ? cg_mean_load(m, bad, cut) : cg_mean_load_moved(m, bufs, &cut, 1);
            if (s == CG_OK) {
                ASSERT(sealed || !memcmp(bad, blob, n));
                loaded++;
                ASSERT_EQ(CG_OK, cg_mean_load(m, blob, n));
                continue;
            }
            ASSERT(strlen(cg_mean_why(m)) > 20);
            ASSERT_EQ(CG_OK, cg_mean_save(m, now, n, &len));
            ASSERT(!memcmp(now, blob, n)); /* as it was */
        }
        ASSERT(loaded > 0);
        ASSERT_EQ(CG_OK, cg_mean_step(m, x));
        free(blob);
        free(bad);
        free(now);
        free(mem);
    }
    PASS();
}
TEST saved_tensors_are_compared(void) {
    static const cg_tensor is[2] = { { "w", 1200, 30 }, { "b", 40, 0 } };
    static const struct {
        cg_tensor list[2];
        size_t count;
        const char *why;
    } other[] = {
        { { { "w", 1200, 30 }, { "b", 40, 0 } }, 1,
            "the saved state has 2 tensors, and this mean 1; cg_mean_load_moved takes "
            "other tensors of as many values" },
        { { { "w", 1200, 30 }, { "c", 40, 0 } }, 2,
            "tensor 1 of the saved state is 'b' of 40 values, and of this mean 'c' of 40 values" },
        { { { "w", 1200, 40 }, { "b", 40, 0 } }, 2,
            "tensor 0 of the saved state is 'w' of 1200 values in 30 rows, and of this "
            "mean 'w' of 1200 values in 40 rows" },
        { { { "w", 1200, 30 }, { NULL, 40, 0 } }, 2,
            "tensor 1 of the saved state is 'b' of 40 values, and of this mean nameless of 40 values" },
    };
    const cg_transport t = alone();
    const size_t bytes = cg_mean_memory_of("topk:0.1", is, 2, &t, NULL, 0);
    void *mem = malloc(bytes);
    unsigned char blob[20000];
    size_t len;
    cg_mean *m;
    ASSERT_EQ(CG_OK, cg_mean_open_of(&m, "topk:0.1", is, 2, &t, mem, bytes));
    ASSERT_EQ(CG_OK, cg_mean_save(m, blob, sizeof blob, &len));
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        ASSERT_EQ(CG_OK, cg_mean_open_of(&m, "topk:0.1", other[i].list, other[i].count, &t, mem, bytes));
        ASSERT_EQ(CG_E_MISMATCH, cg_mean_load(m, blob, len));
        ASSERT_STR_EQ(other[i].why, cg_mean_why(m));
    }
    free(mem);
    PASS();
}

SUITE(all) {
    RUN_TEST(lines_are_read);
    RUN_TEST(names_are_those_of_the_tables);
    RUN_TEST(memory_is_what_it_needs);
    RUN_TEST(shapes_are_taken);
    RUN_TEST(a_selection_may_be_of_all_tensors);
    RUN_TEST(any_line_is_safe);
    RUN_TEST(any_saved_bytes_are_safe);
    RUN_TEST(saved_tensors_are_compared);
}
GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(all);
    GREATEST_MAIN_END();
}
