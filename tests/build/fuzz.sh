# Short runs of the fuzzers' harnesses, without libFuzzer: the same mutations every time.
built "fuzz_decode" $CC -std=c99 -O2 $WARN -DFUZZ_MAIN -I. -Itests tests/fuzz/fuzz_decode.c -o "$tmp/fuzz" &&
    check "20000 mutated packets with a right checksum, and sums of them" "$tmp/fuzz" 20000
built "fuzz_exchange" $CC -std=c99 -O2 $WARN -DFUZZ_MAIN -I. -Itests tests/fuzz/fuzz_exchange.c -o "$tmp/fuzz" &&
    check "50000 exchanges with changed messages" "$tmp/fuzz" 50000
