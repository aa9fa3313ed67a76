# Transports have no data race.
object tsan && linked tsan tests/test_transport.c build/test/tsan/test_transport -pthread -lm &&
    count "test_transport, thread sanitizer" limit 300 build/test/tsan/test_transport
