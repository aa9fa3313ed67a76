# For tests/run.sh: the jobs in parallel, in their order; before them, what they link. make looks at a job again only
# after all others if what it needs is not yet there, so run.sh names first what needs nothing.

cc      := $(filter test_% net/% build/golden.plain build/openmp build/pollution build/stack build/snippets \
               build/examples build/fuzz build/benches,$(JOBS))
train   := $(filter net/train.%,$(JOBS))
fuzz    := $(filter build/libfuzzer.%,$(JOBS))
asan    := $(filter asan/% build/golden.asan,$(JOBS))
aarch64 := $(filter aarch64/% build/golden.aarch64,$(JOBS))
s390x   := $(filter s390x/% build/golden.s390x,$(JOBS))
wasm    := $(filter wasm/% build/golden.wasm,$(JOBS))
objects := $(foreach o,cc train asan fuzz aarch64 s390x wasm,$(if $($(o)),object/$(o)))

jobs: $(objects) $(JOBS)
$(cc): object/cc
$(train): object/train
$(asan): object/asan
$(fuzz): object/fuzz
$(aarch64): object/aarch64
$(s390x): object/s390x
$(wasm): object/wasm

$(JOBS) object/cc object/train object/asan object/fuzz object/aarch64 object/s390x object/wasm:
	@sh tests/job.sh $@

.PHONY: jobs $(JOBS) object/cc object/train object/asan object/fuzz object/aarch64 object/s390x object/wasm
