# Every configuration, optimisation, compiler and machine gives the golden packets' bits. Pieces: builds.
assert="-DCOMPGRAD_ASSERT(c)=((c)?(void)0:abort())"
native() {      # native OPTION...: contraction to FMA, other vector widths, -ffast-math in our own file
    if takes $CC "$@"; then golden "$*" $CC "$@"; else skip "$CC does not take $*"; fi
}
# clang's pragma that undoes -ffast-math works for x86 only; for other machines the implementation refuses the option
preprocessed() {        # preprocessed TARGET OPTION...: no C library needed
    preprocessed_for=$1; shift
    echo '#include "compgrad.h"' | $clang --target=$preprocessed_for -ffast-math -ffreestanding "$@" -I. -E -x c - 2>&1 >/dev/null
}
undone() { preprocessed $1 -DCOMPGRAD_IMPLEMENTATION; }
cannot_undo() {
    said=$(preprocessed $1 -DCOMPGRAD_IMPLEMENTATION) && return 1
    echo "$said"
    case $said in *"compgrad: "*"-ffast-math cannot be undone"*) ;; *) return 1 ;; esac
}
declared() { preprocessed $1; }
by() { if has "$1"; then golden "$1" $1; else skip "no ${1%% *}: golden packets"; fi; }
case $piece in
plain)          # with -ffast-math in another object, where it makes the linker add start code that turns denormals off
    linked cc tests/golden.c build/test/cc/golden && count "golden, $CC -O2" build/test/cc/golden "$GOLDEN"
    if takes $CC -ffast-math; then
        built "fast-math link" $CC -std=c99 -O1 -DCOMPGRAD_LINKED -I. -Itests -c tests/golden.c -o "$tmp/golden.o" &&
            built "fast-math link" $CC -ffast-math "$tmp/golden.o" $object -o "$tmp/golden" &&
            count "golden, another object with -ffast-math" "$tmp/golden" "$GOLDEN"
    fi ;;
fast)
    native -O2 -ffast-math -march=native -std=gnu99
    if has $clang; then
        check "$clang -ffast-math for x86-64 is taken" undone x86_64-linux-gnu
        for t in aarch64-linux-gnu wasm32; do
            check "$clang -ffast-math for $t is refused, and says so" cannot_undo $t
            check "... not where only declarations are included" declared $t
        done
    else skip "no $clang: what it refuses with -ffast-math"; fi ;;
assert) golden "-O0, COMPGRAD_ASSERT" $CC -std=c99 -O0 -include stdlib.h "$assert" ;;
static) golden "COMPGRAD_STATIC and NO_SIMD" $CC -std=c99 -O1 $WARN -DCOMPGRAD_STATIC -DCOMPGRAD_NO_SIMD ;;
each)
    golden "-O0" $CC -std=c99 -O0
    golden "COMPGRAD_NO_SIMD" $CC -std=c99 -O2 $WARN -DCOMPGRAD_NO_SIMD
    golden "COMPGRAD_STATIC" $CC -std=c99 -O2 $WARN -DCOMPGRAD_STATIC
    golden "COMPGRAD_ASSERT" $CC -std=c99 -O2 -include stdlib.h "$assert" ;;
native)
    native -O3 -march=native
    native -O3 -march=native -std=gnu99
    native -O2 -ffast-math
    native -O3 -ffast-math -march=native ;;
asan)
    linked asan tests/golden.c build/test/asan/golden && count "golden, sanitizers" build/test/asan/golden "$GOLDEN"
    golden "sanitizers, NO_SIMD" $compiler -O1 -DCOMPGRAD_NO_SIMD ;;
aarch64 | s390x)
    linked $piece tests/golden.c build/test/$piece/golden &&
        count "golden, $piece" $run build/test/$piece/golden "$GOLDEN"
    RUN=$run golden "$piece, -O3 -std=gnu11 -ffast-math" $compiler -O3 -std=gnu11 -ffast-math ;;
wasm)
    linked wasm tests/golden.c build/test/wasm/golden && count "golden, wasm" $run build/test/wasm/golden "$GOLDEN"
    golden_flags=$(echo "$compiler" | sed 's/ -msimd128//')
    RUN=$run golden "wasm without SIMD" $golden_flags -O2 ;;
qemu64)
    if has qemu-x86_64 && [ "$(uname -m)" = x86_64 ]; then
        RUN="qemu-x86_64 -cpu qemu64" golden "x86-64 without AVX2" gcc -O2 -static
    else skip "no qemu-x86_64: a CPU without AVX2"; fi ;;
tcc)
    by "tcc"
    by "tcc -DCOMPGRAD_NO_SIMD" ;;
clang | clang-*)
    for o in "-O2" "-O2 -DCOMPGRAD_NO_SIMD" "-O2 -ffast-math" "-O3 -march=native" "-O3 -ffast-math -march=native"; do
        by "$piece $o"
    done ;;
clang++*) by "$piece -x c++ -O2" ;;
g++) by "g++ -x c++ -O3 -march=native" ;;
esac
