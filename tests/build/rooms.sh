# The source tree: headers are what make headers gives; rooms are short, narrow and formatted, stand on the map, open
# with a door, and use of another header only what its doors list. Sourced by tests/job.sh.

# The rooms of src/headers.sh, in their order.
rooms() {
    sed -e ':a' -e '/\\$/{' -e 'N' -e 's/\\\n//' -e 'ta' -e '}' src/headers.sh |
        awk '$1 == "header" { for (i = 3; i <= NF; i++) if (!seen[$i]++) print "src/" $i }'
}
same_headers() {
    made=build/test/headers
    rm -rf $made && mkdir -p $made && sh src/headers.sh $made || return 1
    for h in compgrad*.h; do cmp "$h" $made/"$h" || { echo "run make headers, and commit $h with src/"; return 1; }; done
    for h in $made/*; do [ -f "${h##*/}" ] || { echo "no ${h##*/}"; return 1; }; done
}
all_listed() { # every file is a room of some header, and on the map
    rooms | sort >"$tmp/listed"
    find src -name '*.h' | sort >"$tmp/files"
    diff "$tmp/listed" "$tmp/files" || { echo "src/headers.sh and the files in src/ differ"; return 1; }
    sed 's,^src/,,' "$tmp/files" | while read -r room; do
        grep -q -F "\`$room\`" src/README.md || { echo "src/README.md does not name $room"; return 1; }
    done
}
short() { find src -name '*.h' -exec awk 'FNR == 701 { print FILENAME " is longer"; bad = 1 } END { exit bad }' {} +; }
narrow() { # characters, not bytes: what continues one in UTF-8 does not count
    find src tests bench examples -name '*.[ch]' -o -name '*.cc' |
        LC_ALL=C xargs awk '{ gsub(/[\200-\277]/, "") } length > 120 { print FILENAME ":" FNR ": " length; bad = 1 } END { exit bad }'
}
doors() { rooms | xargs awk -f tests/build/rooms.awk; }
# Lines of code of some rooms of src/core/kernels/: no comments, no empty lines.
code_lines() {
    [ $# -gt 0 ] || { echo 0; return; }
    (cd src/core/kernels && cat "$@") | awk '{
            for (code = "";;) {
                if (inside) { if (!(i = index($0, "*/"))) break; $0 = substr($0, i + 2); inside = 0 }
                if (!(i = index($0, "/*"))) { code = code $0; break }
                code = code substr($0, 1, i - 1); $0 = substr($0, i + 2); inside = 1
            }
            n += code ~ /[^ \\]/
        } END { print n + 0 }'
}
# The vector layer, the kernels that 0.1 had, and those that came after it, each with a limit of its own. A new kernel
# has a room of its own, of at most 250 lines. Neither the list of contracts nor the dispatch is a kernel.
layer="avx2.h halves.h lanes.h neon.h vectors.h wasm.h"
kernels="axpby.h dct.h decode.h dynamic8.h filter.h floats.h formats.h fp8.h index.h levels.h lines.h lookup.h matrix.h
    natural.h pack.h rotate.h sums.h vote.h"
kernel_lines() {
    code_lines $kernels >"$tmp/old" && code_lines $layer >"$tmp/layer" || return 1
    echo "kernels that 0.1 had: $(cat "$tmp/old") lines, at most 2600"
    echo "the vector layer: $(cat "$tmp/layer") lines, at most 950"
    [ "$(cat "$tmp/old")" -gt 1000 ] && [ "$(cat "$tmp/old")" -le 2600 ] || return 1
    [ "$(cat "$tmp/layer")" -gt 500 ] && [ "$(cat "$tmp/layer")" -le 950 ] || return 1
    for room in $(ls src/core/kernels); do
        case " "$(echo table.h dispatch.h $layer $kernels)" " in *" $room "*) continue ;; esac
        lines=$(code_lines "$room")
        echo "kernels after 0.1, $room: $lines lines"
        [ "$lines" -le 250 ] || { echo "$room has more than 250 lines"; return 1; }
    done
}
# Every kernel of the table is written twice, cg_..._scalar_ and cg_..._simd_; an ISA is named by its own room, by the
# rooms that choose, and by nobody else.
kernels_once() {
    sed -n 's/^ *X([a-z0-9_]*, \([a-z0-9_]*\),.*/\1/p' src/core/kernels/table.h >"$tmp/kernels"
    [ "$(wc -l <"$tmp/kernels")" -gt 40 ] || { echo "too few kernels in table.h"; return 1; }
    while read -r kernel; do
        for kind in scalar simd; do
            many=$(cat src/core/kernels/*.h | grep -c "^[A-Za-z].* cg_${kernel}_${kind}_(")
            [ "$many" = 1 ] || { echo "$many definitions of cg_${kernel}_${kind}_"; return 1; }
        done
    done <"$tmp/kernels"
    ! grep -r -n -E 'CG_(AVX2|AVX512|NEON|WASM)_|CG_ISA_[A-Z]|cg_[a-z0-9_]*_(avx2|avx512|neon|wasm)_' src |
        grep -v -e '^src/core/base/' -e '^src/core/api\.h' \
            -e '^src/core/kernels/\(lanes\|avx2\|neon\|wasm\|halves\|dispatch\)\.h'
}
formatted() { find src tests bench examples \( -name '*.[ch]' -o -name '*.cc' \) -exec $1 --dry-run --Werror {} +; }

check "compgrad*.h are what src/ gives" same_headers
check "every file of src/ is in a header and on the map" all_listed
check "no room is longer than 700 lines" short
check "no line is longer than 120 columns" narrow
check "rooms open with doors, and headers use of each other what those offer" doors && grep 'private names' "$tmp/log"
check "kernels are few lines" kernel_lines && grep ' lines' "$tmp/log"
check "every kernel is written once for scalars and once for vectors, and no code asks for an ISA" kernels_once
format=clang-format-14
has $format || format=clang-format
case $($format --version 2>/dev/null) in
*"version 14."*) check "the tree is formatted" formatted $format ;;
*) skip "no clang-format 14: the tree's format" ;;
esac
