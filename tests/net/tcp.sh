# examples/transport_tcp.h between processes on the loopback, one of which is killed.
peers() { limit 90 build/test/cc/tcp_peer "$@"; }
peers_with_a_secret() {
    COMPGRAD_TCP_SECRET="too short" peers 2 1 2000 && return 1
    COMPGRAD_TCP_SECRET="a secret of sixteen bytes or more" peers "$@"
}

if linked cc tests/net/tcp_peer.c build/test/cc/tcp_peer $threads; then
    check "tcp: 2 processes, 300 rounds" peers 2 300 20000
    check "tcp: 5 processes, 100 rounds" peers 5 100 20000
    check "tcp: 5 processes with a secret in the environment" peers_with_a_secret 5 20 20000
    for victim in 0 1 2 3; do
        if [ $victim -ne 2 ] && ! long; then continue; fi
        check "tcp: rank $victim of 4 is killed, the others end with an error at once" peers 4 1000000000 20000 kill $victim
    done
    check "tcp: one of 8 is killed" peers 8 1000000000 20000 kill 5
    check "tcp: one of 4 is silent, the others end with an error after the timeout" peers 4 1000000000 1500 stop 2
fi
