# What the header leaves behind: symbols, data, macros, names that belong to the compiler.
none() { ! grep . "$1"; }       # passes if the file is empty, else shows it

if ! has nm; then skip "no nm: symbols of the implementation"
else
    # $object has the public functions; in a static copy that nobody calls nothing is left
    config cc
    nm -g $object | awk 'NF == 3 { print $3 }' | grep -v '^cg_' >"$tmp/list"
    check "global symbols all begin with cg_" none "$tmp/list"
    nm -u $object | awk '{ print $NF }' | grep -v -e memcpy -e memset -e memmove -e __stack_chk -e _GLOBAL_OFFSET_TABLE_ >"$tmp/list"
    check "nothing from outside but memcpy, memset and memmove" none "$tmp/list"
    built "symbols, static" $CC -std=c99 -O1 -DCOMPGRAD_STATIC -c -I. tests/build/impl.c -o "$tmp/impl.o" &&
        nm -g "$tmp/impl.o" | awk 'NF == 3 { print $3 }' >"$tmp/list" && check "no global symbols of a static copy" none "$tmp/list"
fi

# Macros: ours against those of the standard headers (and the intrinsics, for the implementation).
macros() { $CC -std=c99 -dM -E -I. -x c - | awk '{ sub(/\(.*/, "", $2); print $2 }' | sort -u; }
if $CC -dM -E -x c /dev/null 2>/dev/null | grep -q define; then
    base='#include <stddef.h>
#include <stdint.h>
#include <string.h>
'
    simd='#if (defined(__x86_64__) || defined(__i386__)) && !defined(__TINYC__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif
'
    for part in "" "#define COMPGRAD_IMPLEMENTATION
"; do
        [ -n "$part" ] && base=$base$simd
        printf '%s' "$base" | macros >"$tmp/before"
        printf '%s#include "compgrad_ef.h"\n#include "compgrad_sketch.h"\n#include "compgrad_sync.h"\n' "$base$part" | macros >"$tmp/after"
        comm -13 "$tmp/before" "$tmp/after" | grep -v -e '^CG_' -e '^COMPGRAD_' >"$tmp/list"
        grep -q '^CG_' "$tmp/after" || echo "not even CG_ macros: preprocessing failed" >"$tmp/list"
        check "macros all begin with CG_ or COMPGRAD_${part:+, implementation}" none "$tmp/list"
    done
else
    skip "$CC has no -dM: macros of the header"
fi

# _x belongs to the compiler and cg__x too, in C++. Comments and strings aside, only its own may appear.
awk '{
    while (1) {
        if (inside) { if (!(i = index($0, "*/"))) next; $0 = substr($0, i + 2); inside = 0 }
        gsub(/"([^"\\]|\\.)*"/, "\"\"")
        sub(/\/\/.*/, "")
        gsub(/##_[A-Za-z0-9_]*/, "")        # the end of a name that begins with ours
        if (!(i = index($0, "/*"))) break
        printf "%s ", substr($0, 1, i - 1); $0 = substr($0, i + 2); inside = 1
    }
    print
}' compgrad*.h | tr -c 'A-Za-z0-9_' '\n' | grep -e '^_' -e '^cg__' | sort -u |
    grep -v -x -e '_mm[0-9]*_.*' -e '__m[0-9]*[id]*' -e '_MM_.*' -e '_CMP_.*' -e '_Pragma' -e '_OPENMP' -e '_MSC_VER' -e '_M_.*' \
        -e '__[A-Za-z0-9_]*__' -e '__cplusplus' -e '__asm' -e '__STDC.*' -e '__builtin_.*' -e '__cpuid.*' -e '__volatile' \
        -e '_' -e '__int128' -e '__riscv.*' -e '__ARM.*' -e '__ATOMIC.*' -e '__atomic.*' -e '__has_.*' -e '__restrict' -e '__inline' -e '_xgetbv' >"$tmp/list"
check "no name of ours begins with an underscore" none "$tmp/list"
