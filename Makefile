# compgrad is header-only: nothing has to be built to use it. This is for its tests, demo and measurements.

CC      ?= cc
CFLAGS  ?= -O2
PREFIX  ?= /usr/local
MPICC   ?= mpicc
# for Open MPI as root in a container, and with fewer cores than ranks; other MPIs ignore it
MPIRUN  ?= OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 mpirun
PYTHON  ?= /usr/bin/python3
BENCH   ?=
BEFORE  ?= HEAD
KERNELS ?=
TRAIN   ?=

HEADERS  := $(wildcard compgrad*.h)
EXAMPLES := $(patsubst examples/%.c,build/examples/%,$(filter-out %_mpi.c,$(wildcard examples/*.c)))   # those need mpicc: see their first line

help:
	@echo 'make demo       train a small network dense and with a dozen methods, in a minute: table, and plots in bench/out/demo.html'
	@echo 'make train      the same with a LeNet on Fashion-MNIST, in half an hour  (TRAIN="--method dgc --epochs 2"; TRAIN=--help: all options)'
	@echo 'make results    what bench/results holds: every method, three seeds'
	@echo 'make curves     draw error over bits: every operator, theory and other compressors, on made vectors and real gradients'
	@echo 'make operators  compress a realistic gradient with every operator: bits, error, GB/s'
	@echo 'make test       every test once, in three minutes         (T=topk: those with that in their name; GREATEST=path: with that greatest.h)'
	@echo 'make test-long  more repetitions and sizes, other compilers, sanitizers, fuzzers, other machines under qemu; half an hour'
	@echo 'make bench      speed against the memory, plain C, dense exchanges, e += g, textbook sketches and gossip  (BENCH=--quick: a short one);'
	@echo '                on real gradients too, after make train TRAIN="--method dense --dump-gradients bench/out/gradients"'
	@echo 'make kernels    speed of every kernel beside that of another commit, in one run  (BEFORE=commit; KERNELS="--isa avx2 --only pack")'
	@echo 'make small      what a call costs where vectors are short, beside another commit and a naive heap  (BEFORE=commit)'
	@echo 'make examples   build and run examples/'
	@echo 'make headers    make compgrad*.h of the files in src/, which is where to change them: see src/README.md'
	@echo 'make install    copy the headers to PREFIX/include            (PREFIX=$(PREFIX), DESTDIR)'
	@echo 'make clean      remove what was built'
	@echo 'CC and CFLAGS are $(CC) and $(CFLAGS).'

test:
	@CC='$(CC)' GREATEST='$(GREATEST)' MAKE='$(MAKE)' sh tests/run.sh '$(T)'

test-long:
	@CG_TEST=long CC='$(CC)' GREATEST='$(GREATEST)' MAKE='$(MAKE)' sh tests/run.sh '$(T)'

demo: build/train
	@mkdir -p bench/out
	@build/train --data glyphs --net mlp --workers 4 --epochs 6 --batch 8 --checkpoint bench/out/demo --csv bench/out/demo.csv --plot bench/out/demo.html

train: build/train
	@mkdir -p bench/out
	@build/train --csv bench/out/train.csv --plot bench/out/train.html $(TRAIN)

# A checkpoint knows the code that made it, so that old numbers are never taken for those of new code.
CODE := $(sort $(HEADERS)) bench/train.c bench/net.h bench/methods.h bench/data.h
build/train build/train_mpi: MARK = -DTRAIN_BUILD='"$(firstword $(shell cat $(CODE) | cksum))"'

# What is in bench/results: three seeds of each, an hour on two cores; stopped, it goes on where it was;
# after a change of the code it refuses to: remove bench/out/lenet then.
RESULTS = build/train --seeds 3 --resume
results: build/train
	@mkdir -p bench/results
	$(RESULTS) --checkpoint bench/out/lenet --csv bench/results/lenet.csv --plot bench/results/lenet.html
	$(RESULTS) --checkpoint bench/out/lenet --method dense,topk,dgc,stc,efsign,eden,terngrad --layerwise --whole --csv bench/results/layers.csv --plot bench/results/layers.html

# Of a LeNet on Fashion-MNIST, where that is installed, and of a small network on glyphs; kept until make clean.
DUMP = build/train --method dense --workers 4 --checkpoint bench/out/gradients/run --dump-gradients bench/out/gradients
FASHION := $(firstword $(wildcard /usr/share/datasets/fashion-mnist))
bench/out/gradients/mlp-epoch5.f32: | build/train
	@mkdir -p bench/out/gradients
	@$(DUMP) --data $(if $(FASHION),fashion,glyphs) --net lenet --epochs 3 --batch 32 >bench/out/gradients/lenet.txt
	@$(DUMP) --data glyphs --net mlp --epochs 6 --batch 8 >bench/out/gradients/mlp.txt

# zfp is asked, too, if $(CC) finds it
ZFP := $(shell echo '\#include <zfp.h>' | $(CC) -E - >/dev/null 2>&1 && echo zfp)
build/curves: MARK = $(if $(ZFP),-DCURVES_ZFP)
build/curves: LDFLAGS += $(if $(ZFP),-lzfp)
curves: build/curves bench/out/gradients/mlp-epoch5.f32
	@build/curves --gradients bench/out/gradients $(CURVES)

operators: build/operators
	@build/operators

bench: build/bench build/exchange build/ef build/sketch build/sync
	@mkdir -p bench/out
	@build/bench $(if $(wildcard bench/out/gradients/*.f32),--gradients bench/out/gradients) $(BENCH)
	@build/exchange $(BENCH)
	@sh bench/shaped.sh build/exchange $(BENCH)
	@if $(MAKE) -s build/exchange_mpi 2>/dev/null; then $(MPIRUN) -np 2 build/exchange_mpi $(BENCH); else echo 'MPI: skipped, $(MPICC) did not compile it'; fi
	@build/ef $(BENCH)
	@build/sketch $(BENCH)
	@build/sync $(BENCH)
	@if $(MAKE) -s build/sketch_threads 2>/dev/null; then build/sketch_threads $(BENCH); else echo 'sketch: two threads SKIPPED, $(CC) has no OpenMP'; fi
	@$(PYTHON) bench/torch_bench.py 2>/dev/null || echo 'torch: skipped, $(PYTHON) did not run it'

# Both builds in one program, each with its own headers; the earlier ones come from git.
kernels: bench/kernels.c $(HEADERS) | build/examples
	@rm -rf build/before && mkdir -p build/before && git archive '$(BEFORE)' $$(git ls-tree --name-only '$(BEFORE)' | grep '^compgrad.*\.h$$') | tar -x -f - -C build/before
	@$(CC) -std=c99 $(CFLAGS) -DSIDE=kernels_before -Ibuild/before -c $< -o build/before/kernels.o
	@$(CC) -std=c99 $(CFLAGS) -DSIDE=kernels_after -I. -c $< -o build/kernels.o
	@$(CC) -std=c99 $(CFLAGS) $< build/kernels.o build/before/kernels.o -o build/kernels $(LDFLAGS)
	@build/kernels $(KERNELS)

small: bench/small.c $(HEADERS) | build/examples
	@rm -rf build/before && mkdir -p build/before && git archive '$(BEFORE)' compgrad.h | tar -x -f - -C build/before
	@$(CC) -std=c99 $(CFLAGS) -DSIDE=small_before -Ibuild/before -c $< -o build/before/small.o
	@$(CC) -std=c99 $(CFLAGS) -DSIDE=small_after -I. -c $< -o build/small.o
	@$(CC) -std=c99 $(CFLAGS) $< build/small.o build/before/small.o -o build/small $(LDFLAGS)
	@build/small

examples: $(EXAMPLES)
	@set -e; for e in $(EXAMPLES); do echo "== $$e"; $$e; done

# The implementation is compiled once for each set of flags; the programs link it.
object = build/compgrad-$(firstword $(shell echo '$(CC) $(CFLAGS) $(1)' | cksum)).o
OBJECT  := $(call object)
THREADS := $(call object,-fopenmp -DCOMPGRAD_OPENMP)
LINKED   = -std=c99 $(CFLAGS) -DCOMPGRAD_LINKED $(MARK) -I.

$(OBJECT): tests/build/impl.c $(HEADERS) | build/examples
	$(CC) -std=c99 $(CFLAGS) -I. -c $< -o $@

$(THREADS): tests/build/impl.c $(HEADERS) | build/examples
	$(CC) -std=c99 $(CFLAGS) -fopenmp -DCOMPGRAD_OPENMP -I. -c $< -o $@

build/%: bench/%.c $(OBJECT) $(wildcard examples/*.h bench/*.h) | build/examples
	$(CC) $(LINKED) $< $(OBJECT) -o $@ $(LDFLAGS) -pthread -lm

build/train_mpi: bench/train.c $(OBJECT) $(wildcard examples/*.h bench/*.h) | build/examples
	$(MPICC) $(LINKED) -DTRAIN_MPI $< $(OBJECT) -o $@ $(LDFLAGS) -pthread -lm

build/exchange_mpi: bench/exchange.c $(OBJECT) $(wildcard examples/*.h bench/*.h) | build/examples
	$(MPICC) $(LINKED) -DEXCHANGE_MPI $< $(OBJECT) -o $@ $(LDFLAGS) -pthread -lm

build/sketch_threads: bench/sketch.c $(THREADS) | build/examples
	$(CC) $(LINKED) -fopenmp -DCOMPGRAD_OPENMP $< $(THREADS) -o $@ $(LDFLAGS) -lm

build/examples/%: examples/%.c $(OBJECT) $(wildcard examples/*.h) | build/examples
	$(CC) $(LINKED) $< $(OBJECT) -o $@ $(LDFLAGS) -pthread

build/examples:
	@mkdir -p build/examples

headers:
	sh src/headers.sh

install:
	mkdir -p '$(DESTDIR)$(PREFIX)/include'
	cp $(HEADERS) '$(DESTDIR)$(PREFIX)/include/'

clean:
	rm -rf build bench/out

.PHONY: help test test-long demo train results curves operators bench kernels small examples headers install clean
