# A fuzz target for a minute, under the sanitizers. Pieces: the names of tests/fuzz/fuzz_*.c without fuzz_.
longest=4096 private=
case $piece in
decode) longest=8192 ;;
sketch | memory) longest=256 ;;
exchange) longest=64 private="-UCOMPGRAD_LINKED -DCOMPGRAD_STATIC" ;;   # has the implementation in it
esac
mkdir "$tmp/corpus"                     # the target fills it with inputs to start from
linked fuzz tests/fuzz/fuzz_$piece.c build/test/fuzz/fuzz_$piece -fsanitize=fuzzer $threads $private &&
    check "fuzz_$piece" build/test/fuzz/fuzz_$piece -max_total_time=60 -max_len=$longest -len_control=0 \
        -artifact_prefix="$tmp/" "$tmp/corpus"
grep -E 'Done|stat' "$tmp/log"
