# Short runs of the fuzzers' harnesses, without libFuzzer: the same mutations every time.
packets=2000 exchanges=5000
if long; then packets=20000 exchanges=50000; fi
linked cc tests/fuzz/fuzz_decode.c build/test/cc/fuzz_decode -DFUZZ_MAIN &&
    check "$packets mutated packets with a right checksum, and sums of them" build/test/cc/fuzz_decode $packets
linked cc tests/fuzz/fuzz_exchange.c build/test/cc/fuzz_exchange -DFUZZ_MAIN &&
    check "$exchanges exchanges with changed messages" build/test/cc/fuzz_exchange $exchanges
