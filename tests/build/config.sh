# Every configuration, optimisation and thread count gives the same bits.
golden "-O0" $CC -std=c99 -O0
golden "COMPGRAD_NO_SIMD" $CC -std=c99 -O2 $WARN -DCOMPGRAD_NO_SIMD
golden "COMPGRAD_STATIC" $CC -std=c99 -O2 $WARN -DCOMPGRAD_STATIC
golden "COMPGRAD_ASSERT" $CC -std=c99 -O2 -include stdlib.h "-DCOMPGRAD_ASSERT(c)=((c)?(void)0:abort())"

# Contraction to FMA, other vector widths and -ffast-math in our own file; and in another object, where
# it also makes the linker add start code that turns denormals off for the whole program.
for o in "-O3 -march=native" "-O3 -march=native -std=gnu99" "-O2 -ffast-math" "-O3 -ffast-math -march=native"; do
    if takes $CC $o; then golden "$o" $CC $o; else skip "$CC does not take $o"; fi
done
if takes $CC -ffast-math; then
    built "fast-math link" $CC -std=c99 -O2 -I. -Itests -c tests/golden.c -o "$tmp/golden.o" &&
        built "fast-math link" $CC -ffast-math "$tmp/golden.o" -o "$tmp/golden" &&
        count "golden, another object with -ffast-math" "$tmp/golden" "$GOLDEN"
fi

if openmp $CC; then
    built "threads" $CC -std=c99 -O2 -I. -Itests tests/build/threads.c -o "$tmp/serial" &&
        built "threads with OpenMP" $CC -std=c99 -O2 $WARN -fopenmp -DCOMPGRAD_OPENMP -I. -Itests tests/build/threads.c -o "$tmp/threads" &&
        check "large vectors without threads" "$tmp/serial" && cp "$tmp/log" "$tmp/serial.txt" &&
        for t in 1 2 3 5; do
            check "$t OpenMP threads give the same bits" sh -c "OMP_NUM_THREADS=$t '$tmp/threads' >'$tmp/threads.txt' && cmp '$tmp/serial.txt' '$tmp/threads.txt'"
        done
    OMP_NUM_THREADS=3 golden "OpenMP, 3 threads" $CC -std=c99 -O2 $WARN -fopenmp -DCOMPGRAD_OPENMP
    has nm && [ -f "$tmp/threads" ] && check "OpenMP is in use" sh -c "nm -u '$tmp/threads' | grep -q -e GOMP_parallel -e __kmpc_fork"
else
    skip "$CC has no -fopenmp: the same bits with threads"
fi
