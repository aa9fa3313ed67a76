# What tables are for: rooms ask for traits, and name single stages, codes, routes, folds and kinds in few places beside
# the tables. Sourced by tests/job.sh.

few_comparisons() { # few_comparisons LIMIT HEADER...
    comparisons=$1; shift
    find "$@" -name '*.h' ! -name manual.h | sort | xargs awk -v limit=$comparisons -f tests/build/counts.awk
}
# exchange, memory and sketch name no stage.
none_of_stages() {
    ! find src/exchange src/ef src/sketch -name '*.h' ! -name manual.h | sort |
        xargs awk -v places=1 -f tests/build/counts.awk | grep -E 'CG_(SAMPLE|TRANSFORM|SELECT|QUANTIZE|CODE)_'
}
counter_counts() { # a room with one comparison of each sort, and what does not count
    mkdir -p "$tmp/src/core" || return 1
    printf '%s\n' 'if (a == CG_ROUTE_RING || b != CG_EF_LAQ) x = 1 << CG_SELECT_TOPK;' 'case CG_QUANTIZE_F16: /* == CG_CODE_AUTO */' \
        'f(CG_FOLD_SUM < b, "== CG_FOLD_SUM");' '    { CG_ROUTE_RING, a == CG_ROUTE_RING },' '    CG_ROW_(b == CG_EF_LAQ)' \
        'if (a & CG_ROUTE_SENDS_ && b == CG_EF_HUGE_ && id == CG_ROUTE_COUNT_) f(CG_SAMPLE_RANDK);' >"$tmp/src/core/counted.h"
    (cd "$tmp" && awk -v limit=5 -f "$top/tests/build/counts.awk" src/core/counted.h) || return 1
    ! (cd "$tmp" && awk -v limit=4 -f "$top/tests/build/counts.awk" src/core/counted.h)
}
top=$PWD
check "comparisons are counted" counter_counts
check "comparisons with one stage, code, route, fold or kind outside of tables" \
    few_comparisons 120 src/core src/exchange src/ef src/sketch && grep comparisons "$tmp/log"
for header in sync; do
    check "the same of $header" few_comparisons 15 src/$header && grep comparisons "$tmp/log"
done
check "exchange, error feedback and sketch name no stage" none_of_stages

# One step of cg_ef_exchange on two ranks resolves its operator once, and parses each packet's header once.
if takes $CC -std=c99 -finstrument-functions -pthread; then
    built "calls.c" $CC -std=c99 -O0 -finstrument-functions -I. tests/build/calls.c -o "$tmp/calls" -pthread &&
        for op in 'topk:0.01|absmax:4:512' topk:0.1 absmax:4:512; do
            check "a step resolves its operator once, $op" limit 60 "$tmp/calls" "$op" 0 1 2 1 && cat "$tmp/log"
        done
else
    skip "$CC does not take -finstrument-functions: how often a step resolves its operator"
fi
