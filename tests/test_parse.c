/* What cg_op_parse_why says of a text, word for word, and that no bytes and no buffer harm it. */
#undef COMPGRAD_LINKED /* it looks at private names */
#define COMPGRAD_STATIC
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"
#include "tier.h"

typedef struct pair {
    const char *text, *other;
} pair;

/* Text that is not as cg_op_print writes it, but clear: the operator that it means. */
static const pair CLEAR[] = { { "topK:0.01", "topk:0.01" },
    { "TOPK:0.01|ABSMAX:4:512:NEAREST|GOLOMB", "topk:0.01|absmax:4:512:nearest|golomb" }, { "topk:1%", "topk:0.01" },
    { "topk:1 %", "topk:0.01" }, { "topk:12.5%", "topk:0.125" }, { "topk:0.1e1%", "topk:0.01" },
    { "topk:100%", "topk:1" }, { "randk:10%:unscaled|topk:1%", "randk:0.1:unscaled|topk:0.01" },
    { "chunked:64:10%", "chunked:64:0.1" }, { "stc:1%", "topk:0.01|efsign|golomb" },
    { "cocktail:10%:1%:4", "randk:0.1:unscaled|topk:0.01|absmax:4:512:nearest" },
    { "topk:0.01 | f16", "topk:0.01|f16" }, { " \ttopk : 0.01\r\n|\nf16 ", "topk:0.01|f16" },
    { "absmax : 4 : 512 : nearest", "absmax:4:512:nearest" }, { "topk:K=100", "topk:k=100" },
    { "topk : k=100", "topk:k=100" }, { "topk:1E-2", "topk:0.01" }, { "levels:4:max:nearest", "levels:4:nearest:max" },
    { "topk:k=18446744073709551615", "topk:k=18446744073709551615" }, { "user:130:0:0:-1.5", "user:130:0:0:-1.5" } };

TEST means(const pair *c) {
    cg_op op;
    char text[160], why[256] = "old";
    ASSERT_EQm(c->text, CG_OK, cg_op_parse_why(&op, c->text, why, sizeof why));
    ASSERT_STR_EQ("", why);
    ASSERT_EQm(c->text, CG_OK, cg_op_print(&op, text, sizeof text));
    ASSERT_STR_EQ(c->other, text);
    PASS();
}

/* Mistakes, and the whole sentence about each. */
static const pair WRONG[] = {
    /* names */
    { "tpok", "at 0: no operator 'tpok'; did you mean 'topk'?" },
    { "top-k", "at 0: no operator 'top-k'; did you mean 'topk'?" },
    { "top-k:0.01", "at 0: no operator 'top-k'; did you mean 'topk'?" },
    { "sgin", "at 0: no operator 'sgin'; did you mean 'sign'?" },
    { "topk:0.01|absmx:4:512", "at 10: no operator 'absmx'; did you mean 'absmax'?" },
    { "thresh:0.1", "at 0: no operator 'thresh'; did you mean 'threshold'?" },
    { "topk:0.01|Elias-Fano", "at 10: no operator 'Elias-Fano'; did you mean 'eliasfano'?" },
    { "powersgd:4", "at 0: no operator 'powersgd'; did you mean 'lowrank:4:512:256'?" },
    { "PowerSGD", "at 0: no operator 'PowerSGD'; did you mean 'lowrank:4:512:256'?" },
    { "int8", "at 0: no operator 'int8'; did you mean 'absmax:8:512'?" },
    { "fp16", "at 0: no operator 'fp16'; did you mean 'f16'?" },
    { "random-k:0.1", "at 0: no operator 'random-k'; did you mean 'randk:0.01'?" },
    { "topk0.01", "at 0: no operator 'topk0.01'; did you mean 'topk:0.01'?" },
    { "topk=0.01", "at 0: no operator 'topk=0.01'; did you mean 'topk:0.01'?" },
    { "absmax(4,512)", "at 0: no operator 'absmax(4,512)'; did you mean 'absmax:4:512'?" },
    { "frobnicate",
        "at 0: no operator 'frobnicate'; the operators are in the table of compgrad.h; one is "
        "'topk:0.01|absmax:4:512'" },
    { "x'\001\377y",
        "at 0: no operator 'x???y'; the operators are in the table of compgrad.h; one is "
        "'topk:0.01|absmax:4:512'" },
    { "abcdefghijklmnopqrstuvwxyz",
        "at 0: no operator 'abcdefghijklmnopqrstuvwx...'; the operators are in the table "
        "of compgrad.h; one is 'topk:0.01|absmax:4:512'" },
    /* nothing where something should be */
    { "", "at 0: the text is empty: write an operator, as in 'topk:0.01' or 'topk:0.01|absmax:4:512'" },
    { "  ", "at 2: the text is empty: write an operator, as in 'topk:0.01' or 'topk:0.01|absmax:4:512'" },
    { "topk:0.01|", "at 10: a stage is missing beside '|', as in 'topk:0.01|absmax:4:512'" },
    { "topk:0.01||f16", "at 10: a stage is missing beside '|', as in 'topk:0.01|absmax:4:512'" },
    { "|topk:0.01", "at 0: a stage is missing beside '|', as in 'topk:0.01|absmax:4:512'" },
    { ":0.01", "at 0: a name is missing before ':', as in 'topk:0.01'" },
    /* parameters that are missing */
    { "topk", "at 4: topk lacks its ratio: above 0, at most 1, as in 'topk:0.01'" },
    { "topk:", "at 5: topk lacks its ratio: above 0, at most 1, as in 'topk:0.01'" },
    { "topk 0.01", "at 4: topk lacks its ratio: above 0, at most 1, as in 'topk:0.01'" },
    { "topk|f16", "at 4: topk lacks its ratio: above 0, at most 1, as in 'topk:0.01'" },
    { "absmax", "at 6: absmax lacks its bits: a whole number from 1 to 8, as in 'absmax:4:512'" },
    { "absmax:4", "at 8: absmax lacks its bucket: a whole number from 1 on, as in 'absmax:4:512'" },
    { "eden", "at 4: eden lacks its bits: above 0, at most 4, as in 'eden:1'" },
    { "lowrank:4", "at 9: lowrank lacks its rows: a whole number from 1 on, as in 'lowrank:4:512:256'" },
    { "lowrank:4:512", "at 13: lowrank lacks its cols: a whole number from 1 to 16777216, as in 'lowrank:4:512:256'" },
    { "cocktail:0.1:0.01", "at 17: cocktail lacks its bits: a whole number from 1 to 8, as in 'cocktail:0.1:0.1:4'" },
    { "user:130", "at 8: user lacks its arg: a whole number from 0 to 65535, as in 'user:128:0:0:0'" },
    /* numbers */
    { "topk:0", "at 5: '0' is out of range for the ratio of topk: above 0, at most 1, as in 'topk:0.01'" },
    { "topk:1.5", "at 5: '1.5' is out of range for the ratio of topk: above 0, at most 1, as in 'topk:0.01'" },
    { "topk:101%", "at 5: '101%' is out of range for the ratio of topk: above 0, at most 1, as in 'topk:0.01'" },
    { "topk:-0.1", "at 5: '-0.1' is out of range for the ratio of topk: above 0, at most 1, as in 'topk:0.01'" },
    { "eden:5", "at 5: '5' is out of range for the bits of eden: above 0, at most 4, as in 'eden:1'" },
    { "absmax:9:512",
        "at 7: '9' is out of range for the bits of absmax: a whole number from 1 to 8, as in 'absmax:4:512'" },
    { "absmax:4:0",
        "at 9: '0' is out of range for the bucket of absmax: a whole number from 1 on, as in 'absmax:4:512'" },
    { "absmax:4:4294967296",
        "at 9: '4294967296' is out of range for the bucket of absmax: a whole number from 1 on, as in 'absmax:4:512'" },
    { "absmax:99999999999999999999:512",
        "at 7: '99999999999999999999' is out of range for the bits of absmax: a whole "
        "number from 1 to 8, as in 'absmax:4:512'" },
    { "qsgd:300", "at 5: '300' is out of range for the levels of qsgd: a whole number from 1 to 127, as in 'qsgd:4'" },
    { "threshold:1e60",
        "at 10: '1e60' is out of range for the magnitude of threshold: from 0 on, as in 'threshold:0.001'" },
    { "wangnivar:0", "at 10: '0' is out of range for the epsilon of wangnivar: above 0, as in 'wangnivar:0.5'" },
    { "user:5:0:0:0",
        "at 5: '5' is out of range for the id of user: a whole number from 128 to 255, as in 'user:128:0:0:0'" },
    { "topk:abc",
        "at 5: 'abc' is not a number, but should be the ratio of topk: above 0, at most 1, as in 'topk:0.01'" },
    { "topk:nan",
        "at 5: 'nan' is not a number, but should be the ratio of topk: above 0, at most 1, as in 'topk:0.01'" },
    { "topk:0.01x",
        "at 5: '0.01x' is not a number, but should be the ratio of topk: above 0, at most 1, as in 'topk:0.01'" },
    { "topk:1e", "at 5: '1e' is not a number, but should be the ratio of topk: above 0, at most 1, as in 'topk:0.01'" },
    { "topk:0,01",
        "at 5: '0,01' is not a number (decimals follow a '.'), but should be the ratio of topk: above 0, at "
        "most 1, as in 'topk:0.01'" },
    { "absmax:4.5:512",
        "at 7: '4.5' is not a whole number, but should be the bits of absmax: a whole number from 1 to "
        "8, as in 'absmax:4:512'" },
    { "lowrank:4:10:10.5",
        "at 13: '10.5' is not a whole number, but should be the cols of lowrank: a whole number from "
        "1 to 16777216, as in 'lowrank:4:512:256'" },
    { "absmax:4%:512",
        "at 7: '4%' is a percentage, but should be the bits of absmax: a whole number from 1 to 8, as in "
        "'absmax:4:512'" },
    { "threshold:1%",
        "at 10: '1%' is a percentage, but should be the magnitude of threshold: from 0 on, as in 'threshold:0.001'" },
    /* counts */
    { "topk:k=0", "at 7: '0' is out of range for the k of topk: a whole number from 1 on, as in 'topk:k=100'" },
    { "topk:k=", "at 7: topk lacks its k: a whole number from 1 on, as in 'topk:k=100'" },
    { "topk:k=18446744073709551616",
        "at 7: '18446744073709551616' is out of range for the k of topk: a whole number "
        "from 1 on, as in 'topk:k=100'" },
    { "dgc:k=5",
        "at 4: 'k=5' is a count, which only topk, mstopk and randk take; give the ratio of dgc: above 0, at "
        "most 1, as in 'dgc:0.01'" },
    { "randk:k=5|topk:k=5", "at 10: k stands twice: give this stage a ratio, as in 'topk:0.01'" },
    { "randk:k=5|topk:0.5", "at 10: with topk or mstopk, k is their count: give randk a ratio, as in 'randk:0.1'" },
    /* too much */
    { "topk:0.01:0.02", "at 10: '0.02' is one parameter too many: 'topk:0.01' is complete" },
    { "f16:3", "at 4: '3' is one parameter too many: 'f16' is complete" },
    { "eden:1:2", "at 7: '2' is one parameter too many: 'eden:1' is complete" },
    { "golomb:3", "at 7: '3' is one parameter too many: 'golomb' is complete" },
    { "topk:0.01:", "at 10: '' is one parameter too many: 'topk:0.01' is complete" },
    { "topk:0.01:nearest", "at 10: topk has no flag 'nearest'; 'topk:0.01' is complete" },
    { "absmax:4:512:near", "at 13: absmax has no flag 'near'; did you mean 'nearest'?" },
    { "absmax:4:512:clip", "at 13: absmax has no flag 'clip'; it has nearest" },
    { "bf16:nearest", "at 5: bf16 has no flag 'nearest'; it has stochastic" },
    { "nf4:64:stoch", "at 7: nf4 has no flag 'stoch'; did you mean 'stochastic'?" },
    { "levels:4:biggest", "at 9: levels has no flag 'biggest'; it has nearest and max" },
    { "absmax:4:512:nearest:nearest", "at 21: this flag stands twice: once is enough" },
    { "topk:0.01 x",
        "at 10: 'x' follows a stage without ':' or '|'; parameters are joined by ':' and stages by '|', "
        "as in 'topk:0.01|absmax:4:512'" },
    { "topk:0.01 f16",
        "at 10: 'f16' follows a stage without '|'; parameters are joined by ':' and stages by '|', as "
        "in 'topk:0.01|absmax:4:512'" },
    /* stages that do not go together */
    { "topk:0.01|mstopk:0.1", "at 10: 'mstopk' is a second selection after 'topk': only one fits" },
    { "stc:0.01|f16", "at 9: 'f16' is a second quantizer after 'stc': only one fits" },
    { "topk:0.01|golomb|eliasfano",
        "at 17: 'eliasfano' is a second code after 'golomb': indices and values have one code each" },
    { "topk:0.01|randk:0.1",
        "at 10: 'randk' is a sample and must stand before 'topk'; the order is "
        "sample|transform|selection|clip|quantizer|code" },
    { "f16|topk:0.01",
        "at 4: 'topk' is a selection and must stand before 'f16'; the order is "
        "sample|transform|selection|clip|quantizer|code" },
    { "golomb | Topk:0.01",
        "at 9: 'Topk' is a selection and must stand before 'golomb'; the order is "
        "sample|transform|selection|clip|quantizer|code" },
    { "absmax:4:512|golomb",
        "at 13: a code for indices needs a selection that sends indices before it, as in 'topk:0.01|golomb'" },
    { "absmax:4:512|quartic",
        "at 13: quartic needs a quantizer of three levels before it (terngrad, trits, strom, "
        "absmax:2, flexpoint:2 or levels:1), as in 'terngrad|quartic'" },
    { "topk:0.01|gamma",
        "at 10: f32 and bf16 values take no code but huffman; other codes need a quantizer with "
        "levels before them, as in 'absmax:4:512|omega'" },
    { "f16|huffman",
        "at 4: the values of this quantizer have no code; those of absmax, minmax, levels and terngrad "
        "do, as in 'absmax:4:512|huffman'" },
    { "lloyd:2", "at 0: lloyd needs rotate before it and takes no selection, as in 'rotate:3|lloyd:2'" },
    { "rotate:3|lloyd:2.01", "at 9: bits of lloyd go in steps of 1/32, as in 'rotate:3|lloyd:2.5'" },
    { "lowrank:4:10:10|f16", "at 0: lowrank and atomo are complete operators: no other stage goes with them" },
    { "randk:0.1|given",
        "at 10: given takes neither a sample nor a transform: indices of a support are those of x itself" },
    { "rotate:2|bins:50",
        "at 9: bins and variance take neither a sample nor a transform: cg_extra.aux belongs to x itself" }
};

TEST says(const pair *c) {
    cg_op op = cg_f16(), zero = CG_ZERO;
    char why[256];
    ASSERT_EQm(c->text, CG_E_ARG, cg_op_parse_why(&op, c->text, why, sizeof why));
    ASSERT_STR_EQ(c->other, why);
    ASSERT_EQm(c->text, CG_E_ARG, cg_op_parse(&op, c->text));
    ASSERTm(c->text, !memcmp(&op, &zero, sizeof op));
    PASS();
}

TEST null_arguments(void) {
    cg_op op;
    char why[256];
    ASSERT_EQ(CG_E_ARG, cg_op_parse_why(NULL, "f16", why, sizeof why));
    ASSERT_STR_EQ("op is NULL: give the address of a cg_op", why);
    ASSERT_EQ(CG_E_ARG, cg_op_parse_why(&op, NULL, why, sizeof why));
    ASSERT_STR_EQ("text is NULL: give an operator, as in 'topk:0.01'", why);
    ASSERT_EQ(CG_E_ARG, cg_op_parse_why(&op, "tpok", NULL, 0));
    ASSERT_EQ(CG_OK, cg_op_parse_why(&op, "topk:0.5", NULL, 0));
    PASS();
}

/* Any length of the buffer: the sentence as far as it fits, a 0, and not a byte behind it. */
TEST any_capacity(const char *text, const char *sentence) {
    cg_op op;
    char why[300];
    for (size_t cap = 0; cap < 260; cap++) {
        const size_t fits = cap == 0 ? 0 : strlen(sentence) < cap ? strlen(sentence) : cap - 1;
        memset(why, '#', sizeof why);
        ASSERT_EQm(text, CG_E_ARG, cg_op_parse_why(&op, text, why, cap));
        ASSERTm(text, !memcmp(why, sentence, fits) && (cap == 0 || why[fits] == 0));
        for (size_t i = cap; i < sizeof why; i++) ASSERT_EQm(text, '#', why[i]);
    }
    PASS();
}

/* Noise, and right texts with a few bytes changed, are read or get a sentence: at a place in the text, in plain
   letters, in 256 bytes, and only if they are refused. */
TEST noise(void) {
    static const char letters[] = "topkrandabsmxefg:|0123456789.%-= \tTOPK\377";
    const size_t rounds = long_test() ? 2000000 : 100000;
    uint64_t seed = 7;
    size_t refused = 0;
    for (size_t i = 0; i < rounds; i++) {
        char text[200], why[1000], *exact;
        size_t len = 0;
        cg_op op;
        cg_status s;
        if (i % 2) {
            const char *from = i % 4 == 1 ? CLEAR[i / 4 % (sizeof CLEAR / sizeof *CLEAR)].text
                                          : WRONG[i / 4 % (sizeof WRONG / sizeof *WRONG)].text;
            strcpy(text, from);
            len = strlen(text);
            for (int j = 0; j < 2 && len; j++) {
                const size_t at = ref_mix64(seed++) % len;
                text[at] = letters[ref_mix64(seed++) % (sizeof letters - 1)];
            }
        } else {
            len = ref_mix64(seed++) % 40;
            for (size_t j = 0; j < len; j++)
                text[j] = i % 8 ? letters[ref_mix64(seed++) % (sizeof letters - 1)]
                                : (char)(1 + ref_mix64(seed++) % 255);
            text[len] = 0;
        }
        exact = (char *)malloc(len + 1); /* so that a sanitizer sees reads beyond it */
        memcpy(exact, text, len + 1);
        memset(why, '#', sizeof why);
        s = cg_op_parse_why(&op, exact, why, sizeof why);
        ASSERTm(text, s == CG_OK || s == CG_E_ARG);
        ASSERTm(text, (s == CG_OK) == (why[0] == 0) && memchr(why, 0, 256));
        if (s != CG_OK) {
            unsigned long at;
            refused++;
            ASSERTm(text, sscanf(why, "at %lu: ", &at) == 1 && at <= len);
            for (size_t j = 0; why[j]; j++) ASSERTm(text, why[j] >= ' ' && why[j] <= '~');
        }
        free(exact);
    }
    ASSERT(refused > rounds / 2 && refused < rounds);
    PASS();
}
TEST a_very_long_text(char fill) {
    const size_t len = 3000000;
    char *text = (char *)malloc(len + 1), why[256];
    cg_op op;
    memset(text, fill, len);
    text[len] = 0;
    ASSERT_EQ(CG_E_ARG, cg_op_parse_why(&op, text, why, sizeof why));
    memcpy(text, "topk:", 5);
    ASSERT_EQ(CG_E_ARG, cg_op_parse_why(&op, text, why, sizeof why));
    free(text);
    PASS();
}

/* What people write who have read one line of the manual: accepted where it is clear; otherwise told where it is wrong,
   and what to write instead. 0.1 had one sentence for 23 of the 27. */
static const struct {
    const char *text;
    int at;           /* where it is wrong; -1: it is clear */
    const char *says; /* what is expected, or the nearest name */
} MISTAKES[] = { { "topK:0.01", -1, "" }, { "topk:1%", -1, "" }, { "topk:0.01 | f16", -1, "" },
    { "topk : 0.01", -1, "" }, { "top-k", 0, "did you mean 'topk'?" }, { "topk", 4, "as in 'topk:0.01'" },
    { "topk:", 5, "as in 'topk:0.01'" }, { "topk:10", 5, "above 0, at most 1, as in 'topk:0.01'" },
    { "topk:0,01", 5, "decimals follow a '.'" }, { "topk(0.01)", 0, "did you mean 'topk:0.01'?" },
    { "topk=0.01", 0, "did you mean 'topk:0.01'?" }, { "absmax:4", 8, "lacks its bucket" },
    { "absmax:16:512", 7, "from 1 to 8, as in 'absmax:4:512'" }, { "eden", 4, "as in 'eden:1'" },
    { "eden:5", 5, "at most 4, as in 'eden:1'" }, { "lowrank:4", 9, "lacks its rows" },
    { "powersgd:4", 0, "did you mean 'lowrank:4:512:256'?" }, { "sgin", 0, "did you mean 'sign'?" },
    { "signsgd", 0, "did you mean 'sign'?" }, { "qsgd", 4, "as in 'qsgd:4'" }, { "fp16", 0, "did you mean 'f16'?" },
    { "int8", 0, "did you mean 'absmax:8:512'?" }, { "", 0, "write an operator, as in 'topk:0.01'" },
    { "topk:0.01|", 10, "a stage is missing" }, { "topk:0.01|randk:0.1", 10, "must stand before 'topk'" },
    { "topk:0.01|topk:0.1", 10, "a second selection" }, { "topk:0.01|zstd", 10, "table of compgrad.h" } };
enum { MISTAKE_COUNT = sizeof MISTAKES / sizeof *MISTAKES };

TEST typical_mistakes(void) {
    static char whys[MISTAKE_COUNT][256];
    ASSERT_EQ_FMT(27, (int)MISTAKE_COUNT, "%d");
    for (int i = 0; i < MISTAKE_COUNT; i++) {
        char at[20];
        cg_op op;
        const cg_status s = cg_op_parse_why(&op, MISTAKES[i].text, whys[i], sizeof whys[i]);
        ASSERT_EQm(MISTAKES[i].text, MISTAKES[i].at < 0 ? CG_OK : CG_E_ARG, s);
        if (s == CG_OK) continue;
        snprintf(at, sizeof at, "at %d: ", MISTAKES[i].at);
        ASSERTm(whys[i], !strncmp(whys[i], at, strlen(at)) && strstr(whys[i], MISTAKES[i].says));
        for (int j = 0; j < i; j++) ASSERTm(whys[i], strcmp(whys[i], whys[j])); /* each has its own */
    }
    PASS();
}

/* Every example in the tables is an operator, but those that need another stage. */
TEST examples_parse(void) {
    const char *name, *params;
    int past_user = 0;
    for (size_t i = 0; (name = cg_stage_name_(i, &params)) != NULL; i++) {
        char example[100];
        cg_parser_ s;
        cg_op op;
        cg_status got;
        memset(&s, 0, sizeof s);
        s.why.at = example;
        s.why.end = example + sizeof example - 1;
        cg_why_example_(&s, name, params);
        s.why.at[-1] = 0; /* the quotes */
        got = cg_op_parse(&op, example + 1);
        if (!strcmp(name, "lloyd") || !strcmp(name, "mean")) ASSERT_EQm(name, CG_E_ARG, got);
        else if (past_user && strcmp(name, "huffman")) ASSERT_EQm(name, CG_E_ARG, got);
        else ASSERT_EQm(example, CG_OK, got);
        past_user |= !strcmp(name, "user"); /* codes come last */
    }
    for (size_t i = 0; i < sizeof cg_other_names_ / sizeof *cg_other_names_; i++) {
        cg_op op;
        char text[100] = "topk:0.1|absmax:4:64|";
        const char *other = cg_other_names_[i][1];
        const int is_code = !strcmp(other, "golomb") || !strcmp(other, "omega") || !strcmp(other, "huffman");
        ASSERT_EQm(other, CG_OK, cg_op_parse(&op, is_code ? strcat(text, other) : other));
        ASSERT_EQm(cg_other_names_[i][0], CG_E_ARG, cg_op_parse(&op, cg_other_names_[i][0]));
    }
    PASS();
}

/* The distance against the plain recursion of its definition. */
static int distance(const char *a, int m, const char *b, int n) {
    int best, d;
    if (!m || !n) return m + n;
    best = distance(a, m - 1, b, n - 1) + (a[m - 1] != b[n - 1]);
    if ((d = distance(a, m - 1, b, n) + 1) < best) best = d;
    if ((d = distance(a, m, b, n - 1) + 1) < best) best = d;
    if (m > 1 && n > 1 && a[m - 1] == b[n - 2] && a[m - 2] == b[n - 1] && (d = distance(a, m - 2, b, n - 2) + 1) < best)
        best = d;
    return best;
}
TEST distances(void) {
    for (uint64_t i = 0; i < 3000; i++) {
        char a[8], b[8];
        const int m = (int)(ref_mix64(9 * i) % 7), n = (int)(ref_mix64(9 * i + 1) % 7);
        for (int j = 0; j < 8; j++) {
            a[j] = (char)('a' + ref_mix64(i * 31 + (uint64_t)j) % 3);
            b[j] = (char)('a' + ref_mix64(i * 37 + (uint64_t)j + 8) % 3);
        }
        ASSERT_EQ_FMT(distance(a, m, b, n), cg_edit_distance_(a, m, b, n), "%d");
    }
    PASS();
}

SUITE(sentences) {
    for (size_t i = 0; i < sizeof CLEAR / sizeof *CLEAR; i++) RUN_TEST1(means, &CLEAR[i]);
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) RUN_TEST1(says, &WRONG[i]);
    RUN_TEST(typical_mistakes);
    RUN_TEST(null_arguments);
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) RUN_TESTp(any_capacity, WRONG[i].text, WRONG[i].other);
    RUN_TEST(noise);
    for (int i = 0; i < 6; i++) RUN_TEST1(a_very_long_text, "a: |0%"[i]);
    RUN_TEST(examples_parse);
    RUN_TEST(distances);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(sentences);
    GREATEST_MAIN_END();
}
