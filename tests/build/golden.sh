# Every configuration, optimisation, compiler and machine gives the golden packets' bits. Pieces: builds.
assert="-DCOMPGRAD_ASSERT(c)=((c)?(void)0:abort())"
native() {      # native OPTION...: contraction to FMA, other vector widths, -ffast-math in our own file
    if takes $CC "$@"; then golden "$*" $CC "$@"; else skip "$CC does not take $*"; fi
}
by() { if has "$1"; then golden "$1" $1; else skip "no ${1%% *}: golden packets"; fi; }
case $piece in
plain)          # with -ffast-math in another object, where it makes the linker add start code that turns denormals off
    linked cc tests/golden.c build/test/cc/golden && count "golden, $CC -O2" build/test/cc/golden "$GOLDEN"
    if takes $CC -ffast-math; then
        built "fast-math link" $CC -std=c99 -O1 -DCOMPGRAD_LINKED -I. -Itests -c tests/golden.c -o "$tmp/golden.o" &&
            built "fast-math link" $CC -ffast-math "$tmp/golden.o" $object -o "$tmp/golden" &&
            count "golden, another object with -ffast-math" "$tmp/golden" "$GOLDEN"
    fi ;;
fast) native -O2 -ffast-math -march=native -std=gnu99 ;;
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
