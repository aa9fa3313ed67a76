# sh tests/net/tcp.sh, or sourced by tests/run.sh: examples/transport_tcp.h between processes on the loopback, one of which is killed.
tcp_alone=
if ! command -v built >/dev/null 2>&1; then
    cd "$(dirname "$0")/../.." || exit 1
    . tests/build/lib.sh
    tcp_alone=1
fi
tcp_limit() { if has timeout; then timeout 90 "$@"; else "$@"; fi; }

if built "tcp_peer" $CC -std=c99 -O2 $WARN -I. tests/net/tcp_peer.c -o "$tmp/tcp_peer" -pthread; then
    check "tcp: 2 processes, 300 rounds" tcp_limit "$tmp/tcp_peer" 2 300 20000
    check "tcp: 5 processes, 100 rounds" tcp_limit "$tmp/tcp_peer" 5 100 20000
    for victim in 0 1 2 3; do
        check "tcp: rank $victim of 4 is killed, the others end with an error at once" tcp_limit "$tmp/tcp_peer" 4 1000000000 20000 kill $victim
    done
    check "tcp: one of 8 is killed" tcp_limit "$tmp/tcp_peer" 8 1000000000 20000 kill 5
    check "tcp: one of 4 is silent, the others end with an error after the timeout" tcp_limit "$tmp/tcp_peer" 4 1000000000 1500 stop 2
fi
if [ -n "$tcp_alone" ]; then closing; fi
