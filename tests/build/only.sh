# COMPGRAD_ONLY: a build has the stages that it names, with the same packets as a whole build, and refuses others by name.
# Sourced by tests/job.sh.
texts='randk:0.1 permk:4 cyclic:3 clip:2 nvfp4 geometric:2
    rotate:2 dct lowrank:2:20:50 atomo:2:20:50 topk:0.05 threshold:100 dgc:0.05
    mstopk:0.05
    sidco:0.05 wangni:0.1 wangnivar:0.5 bins:50 sides:0.05 side:0.05 chunked:64:0.1 blocks:8 given:0 variance:1
    f16 bf16 sign efsign absmax:4:64 minmax:4:64 terngrad levels:4:64 flexpoint:4:64 trits:1 strom:100 onebit:64
    side:0.05|mean natural dither:4:64 dynamic8:64 e4m3:64 e5m2:64 mxfp4 mxe4m3 mxe5m2 nf4:64 rotate:3|lloyd:2
    flex16:64 rate:2 step:0.5 topk:0.05|golomb topk:0.05|eliasfano topk:0.05|bitmap levels:4:64|gamma levels:4:64|delta
    levels:4:64|omega huffman terngrad|quartic randk:0.5|dct|topk:0.1|absmax:4:64|golomb|omega'
small="-std=c99 -Os -DCOMPGRAD_STATIC -DCOMPGRAD_NO_SIMD"

# names TEXT: the stages of an operator that a build may lack, one a line, in capitals
names() { echo "$1" | tr '|' '\n' | sed 's/:.*//' | grep -v -x -e eliasfano -e bitmap | tr a-z A-Z; }
# have NAME...: sets $with to the macros, and $args to all texts, those that this lacks with a '-' before them
have() {
    with=-DCOMPGRAD_ONLY args= has=" $* "
    for n in $*; do with="$with -DCOMPGRAD_WITH_$n"; done
    for t in $texts; do
        lacks=
        for n in $(names "$t"); do case $has in *" $n "*) ;; *) lacks=- ;; esac; done
        args="$args $lacks$t"
    done
}
only() { $CC -std=c99 -O0 -DCOMPGRAD_NO_SIMD -DCOMPGRAD_STATIC -I. tests/build/only.c "$@"; }
# as_whole EXE: it says of all that it has what the whole build says
as_whole() {
    $1 $args >"$tmp/said" || { cat "$tmp/said"; return 1; }
    ! grep -v -x -F -f "$tmp/whole" "$tmp/said" && [ "$(wc -l <"$tmp/said")" -gt $2 ]
}
few() { # at most so many bytes of code and constants
    size "$1" | awk -v most="$2" 'NR == 2 { print $1 " bytes of text, at most " most; exit !($1 > 10000 && $1 <= most) }'
}

all=$(for t in $texts; do names "$t"; done | sort -u)
rows() { # the rows of all tables that may be left out have a text above
    cat src/core/rows.h src/core/stages.h | tr -s '\n ' ' ' | sed 's/( /(/g' |
        grep -oE '(CG_ROW_|CG_PLAIN_|CG_IF_|X)\((COMPGRAD_WITH_)?[A-Z0-9]+,' |
        sed 's/.*[(_]//; s/,//' | sort -u >"$tmp/rows"
    [ "$(wc -l <"$tmp/rows")" -gt 40 ] && echo $all | tr ' ' '\n' | diff "$tmp/rows" -
}
check "every row has its macro" rows
have $all
built "whole" only -o "$tmp/whole.exe" && { "$tmp/whole.exe" $args >"$tmp/whole"; }
check "a build with all macros" [ "$(wc -l <"$tmp/whole")" -gt 40 ]
have TOPK F16
built "topk and f16" only $with $WARN -DOTHERS='"tests/golden/topk-0.3+absmax-4-64.n1001.cgp"' -DWITH_EF -o "$tmp/two" &&
    check "topk and f16 and nothing else" as_whole "$tmp/two" 3
odd=$(echo $all | tr ' ' '\n' | awk 'NR % 2'); even=$(echo $all | tr ' ' '\n' | awk 'NR % 2 == 0')
have $odd
built "every other row" only $with -o "$tmp/odd" && check "every other row" as_whole "$tmp/odd" 12
if long; then
    have $even
    built "the other rows" only $with -o "$tmp/even" && check "the other rows" as_whole "$tmp/even" 12
    for n in $all; do
        have $n
        built "$n alone" only $with -o "$tmp/one" && check "$n alone" as_whole "$tmp/one" -1
    done
fi
if takes $CC -Wl,--gc-sections -fno-asynchronous-unwind-tables && has size; then
    have TOPK F16
    # a device has nothing that reads unwind tables
    built "a small device" $CC $small $with -DSMALL -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables \
        -Wl,--gc-sections -I. tests/build/only.c -o "$tmp/small" && check "a small device runs" "$tmp/small" &&
        check "topk and f16 are small" few "$tmp/small" 40960 && cat "$tmp/log"
else
    skip "no --gc-sections or size: the size of topk and f16"
fi
