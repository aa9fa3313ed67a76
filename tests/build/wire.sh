# A second decoder, in plain Python, written from docs/wire.md, decodes golden packets of both versions to the same floats and refuses
# damaged ones. Sourced by tests/job.sh.
python=
for p in python3 python; do
    if [ -z "$python" ] && has $p && $p -c 'import sys; sys.exit(sys.version_info < (3, 6))' 2>/dev/null; then python=$p; fi
done
if [ -n "$python" ]; then count "a decoder in Python" limit 300 $python tests/wire_decoder.py "$GOLDEN"
else skip "no python3: the decoder that is written from docs/wire.md"; fi
