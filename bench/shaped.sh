#!/bin/sh
# sh bench/shaped.sh [PROGRAM [OPTION...]]: PROGRAM (build/exchange) as four ranks over TCP, each behind a link of 1 Gbit/s both ways.
# The ranks are network namespaces on a bridge in a fifth one, all of them made here and removed at the end. RATE: the links' rate.
program=${1:-build/exchange}
[ $# -gt 0 ] && shift
rate=${RATE:-1gbit}
hub=cgshape$$ ranks="0 1 2 3" pids=

skip() { echo "shaped: skipped, $*"; exit 0; }
[ "$(id -u)" = 0 ] || skip "it takes root to make network namespaces"
for tool in ip tc; do command -v $tool >/dev/null 2>&1 || skip "there is no $tool here (iproute2)"; done
[ -x "$program" ] || skip "$program is not there: make $program"

clean() {
    for p in $pids; do kill "$p" 2>/dev/null; done
    for r in $ranks; do ip netns del "$hub-$r" 2>/dev/null; done
    ip netns del "$hub" 2>/dev/null               # takes the bridge and its ports along
}
trap clean EXIT
trap 'exit 130' INT TERM

# The burst is what a link that was idle lets through at once: just more than the 64 KiB that a packet may be before it is cut up.
shape() { ip netns exec "$1" tc qdisc add dev "$2" root tbf rate "$rate" burst 72kb latency 50ms 2>/dev/null; }

ip netns add "$hub" 2>/dev/null || skip "network namespaces are not allowed here"
ip -n "$hub" link add hub type bridge 2>/dev/null || skip "this kernel has no bridges"
ip -n "$hub" link set hub up
for r in $ranks; do
    ip netns add "$hub-$r" && ip -n "$hub" link add "port$r" type veth peer name net netns "$hub-$r" 2>/dev/null || skip "this kernel has no veth"
    ip -n "$hub" link set "port$r" master hub up
    ip -n "$hub-$r" addr add "10.77.0.$((r + 1))/24" dev net
    ip -n "$hub-$r" link set net up
    ip -n "$hub-$r" link set lo up
    shape "$hub" "port$r" && shape "$hub-$r" net || skip "this kernel has no tbf"
done

addresses=10.77.0.1:4000,10.77.0.2:4000,10.77.0.3:4000,10.77.0.4:4000
for r in 1 2 3; do
    ip netns exec "$hub-$r" "$program" "$@" --tcp $r $addresses &
    pids="$pids $!"
done
echo "four ranks, links of $rate:"
ip netns exec "$hub-0" "$program" "$@" --tcp 0 $addresses || exit 1
for p in $pids; do wait "$p" || exit 1; done
pids=
