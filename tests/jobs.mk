# For tests/run.sh: the jobs in parallel; before some of them, what they link.

jobs: $(JOBS)

$(filter test_% net/% build/golden.plain build/openmp build/pollution build/stack build/snippets build/examples build/fuzz,$(JOBS)): object/cc
$(filter asan/% build/golden.asan,$(JOBS)): object/asan
$(filter aarch64/% build/golden.aarch64,$(JOBS)): object/aarch64
$(filter s390x/% build/golden.s390x,$(JOBS)): object/s390x
$(filter net/train.%,$(JOBS)): object/train
object/train: object/cc

$(JOBS) object/cc object/train object/asan object/aarch64 object/s390x:
	@sh tests/job.sh $@

.PHONY: jobs $(JOBS) object/cc object/train object/asan object/aarch64 object/s390x
