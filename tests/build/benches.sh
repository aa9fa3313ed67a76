# The programs of bench/ that measure: they come to their end, and their tables have their lines. (bench/bench.c: net/train)
benches() {             # benches NAME OPTION...: in its first line too, it has to say on which machine
    benches_name=$1; shift
    limit 300 "$@" --quick --n 65536 --csv "$tmp/$benches_name.csv" >"$tmp/said" || { cat "$tmp/said"; return 1; }
    cat "$tmp/said"
    [ -s "$tmp/$benches_name.csv" ]
}
says() { grep -q "$1" "$tmp/said"; }
config cc
for b in exchange ef sketch sync; do
    linked cc bench/$b.c "$tmp/$b" $threads -lm || continue
    check "bench/$b.c" benches $b "$tmp/$b"
    [ $b = sketch ] || check "bench/$b.c names the machine and its memory" says '^.*[.] One thread, 65536 floats: reads [0-9.]* GB/s, fills'
    if [ $b = exchange ]; then
        check "bench/$b.c has the callback alone beside its exchanges" [ "$(grep -c '^allreduce  *callback alone' "$tmp/said")" -eq 3 ]
    fi
done
if has mpicc && has mpirun; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    built "exchange, MPI" mpicc -std=c99 -O1 $WARN -DEXCHANGE_MPI -DCOMPGRAD_LINKED -I. bench/exchange.c $object -o "$tmp/exchange" -pthread -lm && {
        check "bench/exchange.c between MPI ranks" benches mpi mpirun -np 2 "$tmp/exchange"
        check "bench/exchange.c has MPI_Allreduce beside them" says '^MPI_Allreduce  *callback alone'
    }
else skip "no mpicc: bench/exchange.c between MPI ranks"; fi
