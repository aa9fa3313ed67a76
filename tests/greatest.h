/* greatest.h - a small test runner with the API of greatest (github.com/silentbicycle/greatest),
   written for compgrad: upstream's file works in its place, unchanged.

       #include "greatest.h"
       TEST adds(void)   { ASSERT_EQ_FMT(4, 2 + 2, "%d"); PASS(); }
       SUITE(arithmetic) { RUN_TEST(adds); }
       GREATEST_MAIN_DEFS();
       int main(int argc, char **argv)
       {
           GREATEST_MAIN_BEGIN();
           RUN_SUITE(arithmetic);
           GREATEST_MAIN_END();
       }

   An assertion that fails returns from the test; every test ends in PASS, FAIL or SKIP. Helpers that
   assert are TESTs themselves, called through CHECK_CALL. In ASSERT_GT(a, b) and its kin the relation
   reads left to right. The program takes -h. */

#ifndef GREATEST_H
#define GREATEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum greatest_test_res {
    GREATEST_TEST_RES_PASS = 0,
    GREATEST_TEST_RES_FAIL = -1,
    GREATEST_TEST_RES_SKIP = 1
} greatest_test_res;

typedef void greatest_setup_cb(void *udata);
typedef void greatest_teardown_cb(void *udata);
typedef const char *greatest_enum_str_fun(int value);

typedef struct greatest_run_info {
    unsigned tests, passed, failed, skipped, assertions; /* of all suites */
    unsigned suite_tests, suite_passed, suite_failed, suite_skipped;
    int verbosity, list_only, first_fail, exact, column;
    const char *suite_filter, *test_filter;
    const char *msg, *fail_file; /* of the test that runs */
    unsigned fail_line;
    greatest_setup_cb *setup;
    greatest_teardown_cb *teardown;
    void *setup_udata, *teardown_udata;
    clock_t begin, suite_begin;
} greatest_run_info;

extern greatest_run_info greatest_info;

#define GREATEST_MAIN_DEFS() greatest_run_info greatest_info

/* ---- tests and suites ---- */

#define TEST static greatest_test_res
#define SUITE(NAME) \
  void NAME(void);  \
  void NAME(void)
#define SUITE_EXTERN(NAME) void NAME(void)

#define RUN_TEST(T)                                          \
  do {                                                       \
    if (greatest_test_begin(#T)) greatest_test_end(#T, T()); \
  } while (0)
#define RUN_TEST1(T, ARG)                                       \
  do {                                                          \
    if (greatest_test_begin(#T)) greatest_test_end(#T, T(ARG)); \
  } while (0)
#define RUN_TESTp(T, ...)                                               \
  do {                                                                  \
    if (greatest_test_begin(#T)) greatest_test_end(#T, T(__VA_ARGS__)); \
  } while (0)
#define RUN_SUITE(S)                \
  do {                              \
    if (greatest_suite_begin(#S)) { \
      S();                          \
      greatest_suite_end();         \
    }                               \
  } while (0)

#define SET_SETUP(CB, UDATA) greatest_set_setup(CB, UDATA)
#define SET_TEARDOWN(CB, UDATA) greatest_set_teardown(CB, UDATA)

/* ---- how a test ends ---- */

#define PASSm(MSG)                 \
  do {                             \
    greatest_info.msg = (MSG);     \
    return GREATEST_TEST_RES_PASS; \
  } while (0)
#define SKIPm(MSG)                 \
  do {                             \
    greatest_info.msg = (MSG);     \
    return GREATEST_TEST_RES_SKIP; \
  } while (0)
#define FAILm(MSG)                                \
  do {                                            \
    greatest_info.fail_file = __FILE__;           \
    greatest_info.fail_line = (unsigned)__LINE__; \
    greatest_info.msg = (MSG);                    \
    return GREATEST_TEST_RES_FAIL;                \
  } while (0)
#define PASS() PASSm(NULL)
#define SKIP() SKIPm(NULL)
#define FAIL() FAILm(NULL)

#define CHECK_CALL(RES)                                                \
  do {                                                                 \
    greatest_test_res greatest_res_ = (RES);                           \
    if (greatest_res_ != GREATEST_TEST_RES_PASS) return greatest_res_; \
  } while (0)

/* ---- assertions: each form with a message, and the plain form whose message is its own text ---- */

#define ASSERTm(MSG, COND)      \
  do {                          \
    greatest_info.assertions++; \
    if (!(COND)) FAILm(MSG);    \
  } while (0)
#define ASSERT_FALSEm(MSG, COND) \
  do {                           \
    greatest_info.assertions++;  \
    if (COND) FAILm(MSG);        \
  } while (0)
#define ASSERT_EQm(MSG, EXP, GOT) ASSERTm(MSG, (EXP) == (GOT))
#define ASSERT_NEQm(MSG, EXP, GOT) ASSERTm(MSG, (EXP) != (GOT))
#define ASSERT_GTm(MSG, A, B) ASSERTm(MSG, (A) > (B))
#define ASSERT_GTEm(MSG, A, B) ASSERTm(MSG, (A) >= (B))
#define ASSERT_LTm(MSG, A, B) ASSERTm(MSG, (A) < (B))
#define ASSERT_LTEm(MSG, A, B) ASSERTm(MSG, (A) <= (B))

#define ASSERT_EQ_FMTm(MSG, EXP, GOT, FMT)                              \
  do {                                                                  \
    greatest_info.assertions++;                                         \
    if ((EXP) != (GOT)) {                                               \
      printf("\nExpected: " FMT "\n     Got: " FMT "\n", (EXP), (GOT)); \
      FAILm(MSG);                                                       \
    }                                                                   \
  } while (0)
#define ASSERT_IN_RANGEm(MSG, EXP, GOT, TOL)                                                                   \
  do {                                                                                                         \
    double greatest_exp_ = (double)(EXP), greatest_got_ = (double)(GOT);                                       \
    double greatest_tol_ = (double)(TOL);                                                                      \
    greatest_info.assertions++;                                                                                \
    if (!(greatest_exp_ - greatest_got_ <= greatest_tol_ && greatest_got_ - greatest_exp_ <= greatest_tol_)) { \
      printf("\nExpected: %g +/- %g\n     Got: %g\n", greatest_exp_, greatest_tol_, greatest_got_);            \
      FAILm(MSG);                                                                                              \
    }                                                                                                          \
  } while (0)
#define ASSERT_STR_EQm(MSG, EXP, GOT)                 \
  do {                                                \
    greatest_info.assertions++;                       \
    if (!greatest_same_str((EXP), (GOT))) FAILm(MSG); \
  } while (0)
#define ASSERT_STRN_EQm(MSG, EXP, GOT, SIZE)                           \
  do {                                                                 \
    greatest_info.assertions++;                                        \
    if (!greatest_same_strn((EXP), (GOT), (size_t)(SIZE))) FAILm(MSG); \
  } while (0)
#define ASSERT_MEM_EQm(MSG, EXP, GOT, SIZE)                           \
  do {                                                                \
    greatest_info.assertions++;                                       \
    if (!greatest_same_mem((EXP), (GOT), (size_t)(SIZE))) FAILm(MSG); \
  } while (0)
#define ASSERT_ENUM_EQm(MSG, EXP, GOT, ENUM_STR)                                                            \
  do {                                                                                                      \
    int greatest_exp_ = (int)(EXP), greatest_got_ = (int)(GOT);                                             \
    greatest_enum_str_fun *greatest_str_ = ENUM_STR;                                                        \
    greatest_info.assertions++;                                                                             \
    if (greatest_exp_ != greatest_got_) {                                                                   \
      printf("\nExpected: %s\n     Got: %s\n", greatest_str_(greatest_exp_), greatest_str_(greatest_got_)); \
      FAILm(MSG);                                                                                           \
    }                                                                                                       \
  } while (0)

#define ASSERT(COND) ASSERTm(#COND, COND)
#define ASSERT_FALSE(COND) ASSERT_FALSEm("not " #COND, COND)
#define ASSERT_EQ(EXP, GOT) ASSERT_EQm(#EXP " == " #GOT, EXP, GOT)
#define ASSERT_NEQ(EXP, GOT) ASSERT_NEQm(#EXP " != " #GOT, EXP, GOT)
#define ASSERT_GT(A, B) ASSERT_GTm(#A " > " #B, A, B)
#define ASSERT_GTE(A, B) ASSERT_GTEm(#A " >= " #B, A, B)
#define ASSERT_LT(A, B) ASSERT_LTm(#A " < " #B, A, B)
#define ASSERT_LTE(A, B) ASSERT_LTEm(#A " <= " #B, A, B)
#define ASSERT_EQ_FMT(EXP, GOT, FMT) ASSERT_EQ_FMTm(#EXP " == " #GOT, EXP, GOT, FMT)
#define ASSERT_IN_RANGE(EXP, GOT, TOL) ASSERT_IN_RANGEm(#EXP " = " #GOT " +/- " #TOL, EXP, GOT, TOL)
#define ASSERT_STR_EQ(EXP, GOT) ASSERT_STR_EQm(#EXP " == " #GOT, EXP, GOT)
#define ASSERT_STRN_EQ(EXP, GOT, SIZE) ASSERT_STRN_EQm(#EXP " == " #GOT, EXP, GOT, SIZE)
#define ASSERT_MEM_EQ(EXP, GOT, SIZE) ASSERT_MEM_EQm(#EXP " == " #GOT, EXP, GOT, SIZE)
#define ASSERT_ENUM_EQ(EXP, GOT, FN) ASSERT_ENUM_EQm(#EXP " == " #GOT, EXP, GOT, FN)

/* ---- main ---- */

#define GREATEST_MAIN_BEGIN() greatest_main_begin(argc, argv)
#define GREATEST_PRINT_REPORT() greatest_print_report()
#define GREATEST_MAIN_END()                                    \
  do {                                                         \
    GREATEST_PRINT_REPORT();                                   \
    return greatest_info.failed ? EXIT_FAILURE : EXIT_SUCCESS; \
  } while (0)

/* ---- the runner ---- */

static inline void greatest_set_setup(greatest_setup_cb *cb, void *udata) {
    greatest_info.setup = cb;
    greatest_info.setup_udata = udata;
}

static inline void greatest_set_teardown(greatest_teardown_cb *cb, void *udata) {
    greatest_info.teardown = cb;
    greatest_info.teardown_udata = udata;
}

static inline int greatest_same_str(const char *exp, const char *got) {
    if (strcmp(exp, got) == 0) return 1;
    printf("\nExpected: \"%s\"\n     Got: \"%s\"\n", exp, got);
    return 0;
}

static inline int greatest_same_strn(const char *exp, const char *got, size_t size) {
    if (strncmp(exp, got, size) == 0) return 1;
    printf("\nExpected: \"%.*s\"\n     Got: \"%.*s\"\n", (int)size, exp, (int)size, got);
    return 0;
}

static inline int greatest_same_mem(const void *exp, const void *got, size_t size) {
    const unsigned char *e = (const unsigned char *)exp, *g = (const unsigned char *)got;
    size_t i = 0, j;
    while (i < size && e[i] == g[i]) i++;
    if (i == size) return 1;
    printf("\nFirst difference at byte %lu of %lu\nExpected:", (unsigned long)i, (unsigned long)size);
    for (j = i; j < size && j < i + 16; j++) printf(" %02x", e[j]);
    printf("\n     Got:");
    for (j = i; j < size && j < i + 16; j++) printf(" %02x", g[j]);
    printf("\n");
    return 0;
}

static inline int greatest_wanted(const char *filter, const char *name) {
    if (!filter) return 1;
    return greatest_info.exact ? strcmp(name, filter) == 0 : strstr(name, filter) != NULL;
}

static inline int greatest_stopped(void) { return greatest_info.first_fail && greatest_info.failed > 0; }

static inline int greatest_test_begin(const char *name) {
    if (!greatest_wanted(greatest_info.test_filter, name) || greatest_stopped()) return 0;
    if (greatest_info.list_only) {
        printf("    %s\n", name);
        return 0;
    }
    greatest_info.msg = NULL;
    if (greatest_info.setup) greatest_info.setup(greatest_info.setup_udata);
    return 1;
}

static inline void greatest_test_end(const char *name, greatest_test_res res) {
    static const char dot[] = { 'F', '.' };
    static const char *const word[] = { "FAIL", "PASS", "SKIP" };
    const char *msg = greatest_info.msg ? greatest_info.msg : "";
    if (greatest_info.teardown) greatest_info.teardown(greatest_info.teardown_udata);
    greatest_info.tests++;
    greatest_info.suite_tests++;
    if (res == GREATEST_TEST_RES_FAIL) {
        greatest_info.failed++;
        greatest_info.suite_failed++;
        printf("\nFAIL %s: %s (%s:%u)\n", name, msg, greatest_info.fail_file, greatest_info.fail_line);
        greatest_info.column = 0;
    } else {
        if (res == GREATEST_TEST_RES_PASS) {
            greatest_info.passed++;
            greatest_info.suite_passed++;
        } else {
            greatest_info.skipped++;
            greatest_info.suite_skipped++;
        }
        if (greatest_info.verbosity > 0) {
            printf("%s %s%s%s\n", word[(int)res + 1], name, *msg ? ": " : "", msg);
        } else if (res == GREATEST_TEST_RES_SKIP) { /* what was not tested is said, and why */
            printf("\nSKIP %s%s%s\n", name, *msg ? ": " : "", msg);
            greatest_info.column = 0;
        } else if (greatest_info.verbosity == 0) {
            printf("%c", dot[(int)res + 1]);
            if (++greatest_info.column % 79 == 0) printf("\n");
        }
    }
    fflush(stdout);
}

static inline int greatest_suite_begin(const char *name) {
    if (!greatest_wanted(greatest_info.suite_filter, name) || greatest_stopped()) return 0;
    if (greatest_info.verbosity >= 0 || greatest_info.list_only) printf("\n* Suite %s:\n", name);
    greatest_info.suite_tests = greatest_info.suite_passed = 0;
    greatest_info.suite_failed = greatest_info.suite_skipped = 0;
    greatest_info.setup = NULL;
    greatest_info.teardown = NULL;
    greatest_info.column = 0;
    greatest_info.suite_begin = clock();
    return 1;
}

static inline void greatest_suite_end(void) {
    if (greatest_info.suite_tests > 0 && greatest_info.verbosity >= 0)
        printf("\n%u test%s - %u passed, %u failed, %u skipped (%.3f sec)\n", greatest_info.suite_tests,
            greatest_info.suite_tests == 1 ? "" : "s", greatest_info.suite_passed, greatest_info.suite_failed,
            greatest_info.suite_skipped, (double)(clock() - greatest_info.suite_begin) / (double)CLOCKS_PER_SEC);
    greatest_info.setup = NULL;
    greatest_info.teardown = NULL;
}

static inline void greatest_print_report(void) {
    clock_t ticks = clock() - greatest_info.begin;
    if (greatest_info.list_only) return;
    printf("\nTotal: %u test%s (%lu ticks, %.3f sec), %u assertion%s\n", greatest_info.tests,
        greatest_info.tests == 1 ? "" : "s", (unsigned long)ticks, (double)ticks / (double)CLOCKS_PER_SEC,
        greatest_info.assertions, greatest_info.assertions == 1 ? "" : "s");
    printf("Pass: %u, fail: %u, skip: %u.\n", greatest_info.passed, greatest_info.failed, greatest_info.skipped);
}

static inline void greatest_usage(const char *program, int status) {
    printf("Usage: %s [-hlfeqv] [-s SUITE] [-t TEST]\n"
           "  -h        this help\n"
           "  -l        list the tests, run none\n"
           "  -f        stop after the first failure\n"
           "  -e        SUITE and TEST are whole names, not parts of them\n"
           "  -q        print only failures and the totals\n"
           "  -v        print the name of every test\n"
           "  -s SUITE  run only suites with SUITE in their name\n"
           "  -t TEST   run only tests with TEST in their name\n",
        program);
    exit(status);
}

static inline void greatest_main_begin(int argc, char **argv) {
    int i;
    memset(&greatest_info, 0, sizeof greatest_info);
    greatest_info.begin = clock();
    for (i = 1; i < argc; i++) {
        const char *arg = argv[i];
        char flag = arg[0] == '-' ? arg[1] : '?';
        if ((flag == 't' || flag == 's') && arg[2] == '\0' && i + 1 < argc) {
            if (flag == 't') greatest_info.test_filter = argv[++i];
            else greatest_info.suite_filter = argv[++i];
            continue;
        }
        if (strcmp(arg, "--help") == 0) greatest_usage(argv[0], EXIT_SUCCESS);
        if (flag == '\0') flag = '?';
        for (arg++;; flag = *arg) { /* -fv is -f -v */
            switch (flag) {
            case 'v': greatest_info.verbosity++; break;
            case 'q': greatest_info.verbosity = -1; break;
            case 'l': greatest_info.list_only = 1; break;
            case 'f': greatest_info.first_fail = 1; break;
            case 'e': greatest_info.exact = 1; break;
            case 'h': greatest_usage(argv[0], EXIT_SUCCESS); break;
            default: printf("%s: unknown option %s\n", argv[0], argv[i]); greatest_usage(argv[0], EXIT_FAILURE);
            }
            if (*++arg == '\0') break;
        }
    }
}

#endif /* GREATEST_H */
