# The golden packets as built plainly.
golden "$CC -O2" $CC -std=c99 -O2 $WARN
