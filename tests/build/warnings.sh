# No compiler warns in any standard and configuration. Pieces: compilers.
standards="c99 c11" language=c
case $piece in *++*) standards="c++11 c++20" language=c++ ;; esac
for std in $standards; do
    has $piece || { skip "no $piece: warnings as $std"; continue; }
    for config in "" -DCOMPGRAD_NO_SIMD -DCOMPGRAD_STATIC "-fopenmp -DCOMPGRAD_OPENMP"; do
        case "$std$config" in c11?* | c++20?*) continue ;; esac      # configurations once per language
        case $config in -fopenmp*)
            openmp $piece -x $language || { skip "$piece has no OpenMP: warnings as $std"; continue; } ;;
        esac
        check "$piece $std $config" \
            $piece -x $language -std=$std -O2 $WARN $config -I. -c tests/build/impl.c -o "$tmp/impl.o"
    done
done
