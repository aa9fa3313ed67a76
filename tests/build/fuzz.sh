# A short run of the fuzzer's harness, without libFuzzer: the same mutations every time.
built "fuzz_decode" $CC -std=c99 -O2 $WARN -DFUZZ_MAIN -I. -Itests tests/fuzz/fuzz_decode.c -o "$tmp/fuzz" &&
    check "20000 mutated packets with a right checksum, and sums of them" "$tmp/fuzz" 20000
