# Gossip and DiLoCo between processes: a node that is killed with -9 and comes back, averages that are lost. Training
# goes on, and ends as near to the optimum as undisturbed runs do: within three of their standard deviations.

# near DISTURBED PLAIN...: how many standard deviations it is away. Few runs measure the deviation badly: the limit is
# that of Student's t with the same probability, .0027.
near() {
    echo "$@" | awk '{
        k = NF - 1
        for (i = 2; i <= NF; i++) mean += $i / k
        for (i = 2; i <= NF; i++) square += ($i - mean) ^ 2
        split("0 235.8 19.21 9.219 6.620 5.507 4.904 4.530 4.277 4.094 3.957 3.850 3.764", limit, " ")
        deviation = sqrt(square / (k - 1) * (1 + 1 / k))
        away = ($1 - mean) / deviation
        printf "%s is %+.1f deviations from the mean %.4g of %d runs, limit %s\n", $1, away, mean, k, limit[k]
        exit !(deviation > 0 && away < limit[k] && away > -limit[k])
    }'
}
seeds="1 2 3 4 5"
long && seeds="1 2 3 4 5 6 7 8 9 10 11 12"

with="$CC -std=c99 -O1 $WARN -D_DEFAULT_SOURCE -DCOMPGRAD_LINKED -I. -Itests"
config cc
if built "gossip_peers" $with tests/net/gossip_peers.c $object -o "$tmp/gossip_peers" -lm; then
    plain=
    for seed in $seeds; do
        limit 60 "$tmp/gossip_peers" $seed 600 >"$tmp/said"
        check "gossip: 8 processes, seed $seed" [ $? -eq 0 ]
        plain="$plain $(cut -d' ' -f1 "$tmp/said")"
    done
    limit 60 "$tmp/gossip_peers" 99 600 kill >"$tmp/killed"
    check "gossip: one of 8 is killed with -9 and comes back, the others go on" [ $? -eq 0 ]
    check "gossip: neighbours missed it" [ "$(cut -d' ' -f3 "$tmp/killed")" -gt 5 ]
    check "gossip: the loss is that of undisturbed runs" near $(cut -d' ' -f1 "$tmp/killed") $plain && cat "$tmp/log"
fi
if ! has mpicc || ! has mpirun; then skip "no MPI: DiLoCo between 4 ranks"
else
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    if built "local_mpi" mpicc -std=c99 -O1 $WARN -DCOMPGRAD_LINKED -I. -Itests tests/net/local_mpi.c $object -o "$tmp/local_mpi" -lm; then
        plain=
        for seed in $seeds; do
            limit 60 mpirun -np 4 "$tmp/local_mpi" $seed >"$tmp/said"
            check "DiLoCo: 4 MPI ranks, seed $seed" [ $? -eq 0 ]
            plain="$plain $(cut -d' ' -f1 "$tmp/said")"
        done
        limit 60 mpirun -np 4 "$tmp/local_mpi" 99 lose >"$tmp/lost"
        check "DiLoCo: 11 of the first 60 averages are lost, and training goes on" [ $? -eq 0 ]
        check "DiLoCo: that many were" [ "$(cut -d' ' -f2 "$tmp/lost")" -eq 11 ]
        check "DiLoCo: the loss is that of undisturbed runs" near $(cut -d' ' -f1 "$tmp/lost") $plain && cat "$tmp/log"
    fi
fi
