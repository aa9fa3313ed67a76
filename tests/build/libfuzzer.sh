# The fuzzers for 20 seconds. Pieces: decode, exchange.
longest=8192
[ $piece = exchange ] && longest=4096
mkdir "$tmp/corpus"                     # the fuzzer fills it
sanitize="-g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all"
built "fuzz_$piece" $clang $sanitize -I. -Itests tests/fuzz/fuzz_$piece.c -o "$tmp/fuzz" &&
    check "fuzz_$piece" "$tmp/fuzz" -max_total_time=20 -max_len=$longest -artifact_prefix="$tmp/" "$tmp/corpus"
grep -E 'Done|stat' "$tmp/log"
