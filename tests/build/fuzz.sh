# A short run of the fuzzer's harness, without libFuzzer: the same mutations every time.
set -- "$GOLDEN"/*.cgp
if [ -f "$1" ]; then
    built "fuzz_decode" $CC -std=c99 -O2 $WARN -DFUZZ_MAIN -I. tests/fuzz/fuzz_decode.c -o "$tmp/fuzz" &&
        check "20000 mutated packets with a right checksum" "$tmp/fuzz" 20000 "$@"
else
    check "golden packets to mutate are in $GOLDEN" false
fi
