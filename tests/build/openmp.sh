# Every number of threads gives the same bits.
if openmp $CC; then
    object openmp && linked cc tests/build/threads.c build/test/cc/threads &&
        linked openmp tests/build/threads.c build/test/openmp/threads &&
        check "large vectors without threads" build/test/cc/threads && cp "$tmp/log" "$tmp/serial.txt" &&
        for t in 1 2 3 5; do
            if [ $t -ne 3 ] && ! long; then continue; fi
            check "$t OpenMP threads give the same bits" sh -c "
                OMP_NUM_THREADS=$t build/test/openmp/threads >'$tmp/threads.txt' && cmp '$tmp/serial.txt' '$tmp/threads.txt'"
        done
    linked openmp tests/golden.c build/test/openmp/golden &&
        OMP_NUM_THREADS=3 count "golden, OpenMP, 3 threads" build/test/openmp/golden "$GOLDEN"
    has nm && check "OpenMP is in use" sh -c "nm -u $object | grep -q -e GOMP_parallel -e __kmpc_fork"
else
    skip "$CC has no -fopenmp: the same bits with threads"
fi
