# The two commands of the README are `make table` and `make test`; see CONTRIBUTING.md for the rest.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PEERS  := .venv-peers
JOBS   ?= logical
OUTPUT ?= table_output
GOLD   ?= $(sort $(wildcard gold/*/spec.toml))

CORE     := $(wildcard csrc/python/*.c csrc/*.c csrc/*.h csrc/*.cdef) csrc/build_ffi.py csrc/build_names.py pyproject.toml setup.py \
    pyengine/_support/lazy.py
KERNELS  := $(wildcard csrc/*.c)
EXTREMES := $(wildcard tests/c/extremes/*.c)
OTHERS   := $(wildcard tests/c/doors/*.c tests/c/bits/*.c tests/c/environment/*.c tests/c/machines/*.c)
COUNTED  := $(wildcard tests/icount/c/*.c tests/icount/c/kernels/*.c)
COUNT    := -D_GNU_SOURCE -Itests/icount/c
FUZZER   := $(wildcard tests/c/fuzz/*.c)
THREADED := $(wildcard tests/c/threads/*.c)
# The tables of csrc/ncx2_nodes.h are written by a tool.
C_STYLED := $(filter-out csrc/ncx2_nodes.h,$(wildcard csrc/*.[ch] csrc/*/*.[ch] tests/c/*.[ch] \
    tests/c/*/*.[ch] tests/icount/c/*.[ch] tests/icount/c/*/*.[ch]))
FLAGS    := -std=c11 -ffp-contract=off -fno-math-errno -fno-trapping-math -Icsrc
SANITIZE := -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined,float-cast-overflow \
    -fno-sanitize-recover=all -DPE_CHECK_DOMAINS
RACES    := -O1 -g1 -fsanitize=thread
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror

.NOTPARALLEL: # one pip at a time
# Tests and benchmarks start hundreds of processes: none shall compile again what it imports.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: gold table test coverage peers accuracy bits campaign lint format types cwarnings cross sanitize fuzz threads icount icount-record docs bench-check bench bench-compare bench-history package clean

table: $(VENV)/core.stamp $(VENV)/table.stamp
	$(BIN)/pyengine table -o $(OUTPUT)

# Lines and branches that the tests reach, those of commands and of workers included.
LEAST ?= 95
coverage: $(VENV)/core.stamp $(VENV)/test.stamp
	rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --randomly-seed=1 --progress --cov --cov-report= $(PYTEST_ARGS)
	$(BIN)/python -m coverage report --fail-under $(LEAST)

# Says what it will take, and prints a line a minute where nobody watches a terminal.
# The same order and the same random examples every time; another order: ORDER=2, other examples:
# PYENGINE_EXAMPLES=fresh.
ORDER ?= 1
test: $(VENV)/core.stamp $(VENV)/test.stamp
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --randomly-seed=$(ORDER) --progress $(PYTEST_ARGS)

# Against the real accountants, in an environment of their own: they bring PyTorch.
peers: $(PEERS)/core.stamp $(PEERS)/peers.stamp
	PYENGINE_PEERS=1 $(PEERS)/bin/python -m pytest -p no:randomly tests/test_interop_peers.py \
	    tests/test_drop_in_peers.py tests/test_host_suites.py tests/test_arrays.py $(PYTEST_ARGS)

# The gold-standard tables; an interrupted one goes on where it was.
gold: $(VENV)/core.stamp $(VENV)/test.stamp
	@set -e; for spec in $(GOLD); do \
	    echo "$$spec"; \
	    $(BIN)/pyengine table $$spec -o $$(dirname $$spec) >/dev/null; \
	done

# All random points, and truths that are kept in tests/data/slow_truths.json computed anew.
# tests/data/thorough_limits.toml bounds what each test and all together may take.
THOROUGH := $(shell grep -lE '^(import thorough|from (thorough import .*(ALL|some|sampled|stored)|error_budget import))' tests/test_*.py)
accuracy: $(VENV)/core.stamp $(VENV)/test.stamp
	@mkdir -p build && rm -f build/measured.jsonl
	PYENGINE_ALL_POINTS=1 PYENGINE_MEASURED=build/measured.jsonl $(BIN)/python -m pytest \
	    -n $(JOBS) --dist worksteal --randomly-seed=1 --progress \
	    --processor-limits --limits-list tests/data/thorough_limits.toml \
	    $(sort $(THOROUGH) $(wildcard tests/test_special_*.py)) $(PYTEST_ARGS)
	$(BIN)/python tests/error_budget.py build/measured.jsonl

# Stamps keep the second run quick.  The editable install builds the extension in place, so the core
# is repeated when C sources or metadata change; the extras only when pyproject.toml does.
#
# uv takes seconds where pip takes minutes.  It reads none of pip's settings, so where only pip knows
# the index, or has no uv, pip does it.  $(call install,ENVIRONMENT,FOR UV,FOR PIP)
pip     = $(1)/bin/python -m pip --disable-pip-version-check install --quiet
install = echo "install $(3)"; { test -x $(1)/bin/uv || $(call pip,$(1)) --only-binary :all: uv; } \
    && $(1)/bin/uv pip install --quiet --python $(1)/bin/python $(2) \
    || $(call pip,$(1)) --no-compile $(3)
core    = $(call install,$(1),--reinstall-package pyengine-dp -e .,-e .)
extra   = $(call install,$(1),-r pyproject.toml --extra $(2),-e '.[$(2)]')

%/bin/python:
	$(PYTHON) -m venv $*

$(VENV)/core.stamp $(PEERS)/core.stamp: %/core.stamp: $(CORE) | %/bin/python
	@$(call core,$*)
	touch $@

$(VENV)/%.stamp: pyproject.toml | $(VENV)/core.stamp
	@$(call extra,$(VENV),$*)
	touch $@

# PyTorch first and by pip: PIP_EXTRA_INDEX_URL can name PyTorch's own index of builds without CUDA,
# which pip prefers to the equal version elsewhere, and which spares gigabytes.
$(PEERS)/peers.stamp: pyproject.toml | $(PEERS)/core.stamp
	@$(call pip,$(PEERS)) --no-compile torch==2.13.0 || $(call pip,$(PEERS)) --no-compile torch
	@$(call extra,$(PEERS),peers)
	@$(call extra,$(PEERS),test)
	touch $@

# The bits of 5,000 answers, from two threads.
bits: $(VENV)/core.stamp
	$(BIN)/python tools/answer_digest.py check --threads 2 $(BITS_ARGS)

# Random questions against independent truth, see docs/campaign.md; goes on where it was.
COUNT ?= 2000
SEED ?= $(shell date +%Y%m%d)
campaign: $(VENV)/core.stamp $(VENV)/test.stamp
	PYTHONPATH=tests $(BIN)/python -m campaign run --count $(COUNT) --seed $(SEED) \
	    --row docs/campaign.md $(CAMPAIGN_ARGS)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(C_STYLED)

format: $(VENV)/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $(C_STYLED)

types: $(VENV)/core.stamp $(VENV)/dev.stamp
	$(BIN)/mypy --strict pyengine tests/typed
	$(BIN)/pyright --pythonpath $(BIN)/python

# Objects of their own, so that ccache keeps them, also for a checkout in another folder, which those
# with debugging information name; fuzz and sanitize share those of the core.
export CCACHE_NOHASHDIR := 1
HEADERS := $(wildcard csrc/*.h tests/c/*.h tests/c/*/*.h tests/icount/c/*.h) Makefile
objects  = $(patsubst %.c,build/$(1)/%.o,$(2))
WARNED  := $(call objects,warnings,$(KERNELS) $(EXTREMES) $(FUZZER) $(THREADED) $(OTHERS) $(COUNTED))

# With optimisation, because some warnings need the data flow.
build/warnings/%.o: %.c $(HEADERS)
	@mkdir -p $(@D)
	@echo "cc $<"
	@$(CC) $(FLAGS) $(COUNT) -O0 $(WARNINGS) -fsyntax-only $<
	@$(CC) $(FLAGS) $(COUNT) -O3 $(WARNINGS) -c $< -o $@

cwarnings: $(WARNED)

# The core compiled for seven systems, and its answers on two other machines; where ziglang or qemu
# cannot be had, it says what it leaves out.
cross: $(VENV)/core.stamp
	@$(BIN)/python -c "import ziglang" 2>/dev/null || { $(call extra,$(VENV),cross); } || true
	$(BIN)/python tools/cross.py

build/sanitize/%.o: %.c $(HEADERS)
	@mkdir -p $(@D)
	@echo "cc $<"
	@$(CC) $(FLAGS) $(SANITIZE) -c $< -o $@

build/sanitize/extremes: $(call objects,sanitize,$(KERNELS) $(EXTREMES))
build/sanitize/inputs: $(call objects,sanitize,$(KERNELS) $(FUZZER))
build/sanitize/extremes build/sanitize/inputs:
	@$(CC) $(SANITIZE) $^ -o $@ -lm

sanitize: build/sanitize/extremes
	ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 build/sanitize/extremes

# Instructions that kernels and questions take, against tests/data/instructions.toml; needs valgrind.
icount: $(VENV)/core.stamp
	PYTHONPATH=tests $(BIN)/python -m icount $(ICOUNT_ARGS)

# Entries come down; those named in RAISE may go up.
icount-record: $(VENV)/core.stamp
	PYTHONPATH=tests $(BIN)/python -m icount --record --raise $(RAISE)

# INPUTS random inputs to the kernels under the same sanitizers; another FUZZ_SEED draws others.
INPUTS    ?= 100000
FUZZ_SEED ?= 1
fuzz: build/sanitize/inputs
	build/sanitize/inputs $(INPUTS) $(FUZZ_SEED)

# What threads share: the kernels under ThreadSanitizer (which needs addresses that are not random),
# the caches in Python's development mode.
build/threads/%.o: %.c $(HEADERS)
	@mkdir -p $(@D)
	@echo "cc $<"
	@$(CC) $(FLAGS) $(RACES) -c $< -o $@

build/threads/shared: $(call objects,threads,$(KERNELS) $(THREADED))
	@$(CC) $(RACES) $^ -o $@ -lm -pthread

threads: $(VENV)/core.stamp $(VENV)/test.stamp build/threads/shared
	setarch -R build/threads/shared
	$(BIN)/python -X dev -m pytest -k "thread or fork" tests/test_caches.py tests/test_forks.py tests/test_api.py \
	    tests/test_special_ufuncs.py tests/test_scalars.py $(PYTEST_ARGS)

docs: $(VENV)/core.stamp $(VENV)/docs.stamp
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

bench-check: $(VENV)/core.stamp $(VENV)/dev.stamp $(VENV)/test.stamp
	cd asv_bench && ../$(BIN)/asv machine --yes >/dev/null && ../$(BIN)/asv check --python=same

# A benchmark that fails makes asv exit with 2.  Forked, each spares its imports, most of the time.
bench: bench-check
	cd asv_bench && ../$(BIN)/asv run --python=same --quick --launch-method forkserver --show-stderr \
	    --set-commit-hash $$(git rev-parse HEAD) $(ASV_ARGS)

# The committed HEAD beside another commit: make bench-compare BASE=v0.1 [BENCH=regex]
bench-compare: bench-check
	cd asv_bench && ../$(BIN)/asv continuous --interleave-rounds --factor $(or $(FACTOR),1.3) --no-only-changed \
	    --split --show-stderr --bench '$(or $(BENCH),.)' $(or $(BASE),$(error BASE: which commit?)) HEAD

# Counts and errors of $(COMMITS) commits, every $(EVERY)th that changed the package, as asv's pages and
# as docs/developer/instruction_history.*.  A commit that lacks what is measured makes asv exit with 2.
COMMITS ?= 12
EVERY   ?= 5
HISTORY ?= instructions|track_error
bench-history: bench-check
	cd asv_bench && { git rev-list --first-parent HEAD -- ../csrc ../pyengine | \
	    awk '(NR - 1) % $(EVERY) == 0' | head -n $(COMMITS) | ../$(BIN)/asv run --quick --skip-existing-successful \
	    --bench '$(HISTORY)' HASHFILE:- || test $$? -eq 2; }
	cd asv_bench && ../$(BIN)/asv publish
	$(BIN)/python tools/bench_history.py

# The archive and the wheel, and what can be checked of them without a network; needs the committed tree.
# The wheel is built from the archive and from the tree: both must have the same bytes.
package: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct)
package: export PATH := $(CURDIR)/$(BIN):$(PATH)
package: $(VENV)/core.stamp $(VENV)/package.stamp
	rm -rf build/dist build/again build/repaired build/archive
	validate-pyproject pyproject.toml
	cffconvert --validate
	reuse --no-multiprocessing lint --lines
	check-manifest --no-build-isolation
	pyroma --min 7 .
	python -m build --no-isolation --outdir build/dist .
	python -m build --no-isolation --wheel --outdir build/again .
	cmp build/dist/*.whl build/again/*.whl
	python -m build --no-isolation --sdist --outdir build/archive .
	cmp build/dist/*.tar.gz build/archive/*.tar.gz
	twine check --strict build/dist/*
	check-wheel-contents build/dist/*.whl
	auditwheel show build/dist/*.whl
	abi3audit --strict --verbose build/dist/*.whl
	auditwheel repair --plat manylinux_2_28_$$(uname -m) --wheel-dir build/repaired build/dist/*.whl
	.ci/install build/repaired/*.whl

clean:
	rm -rf $(VENV) $(PEERS) build dist *.egg-info $(OUTPUT) docs/_build docs/_gallery docs/_schemes docs/api/generated \
	    asv_bench/results asv_bench/env asv_bench/html .pytest_cache .mypy_cache .ruff_cache \
	    .hypothesis pyengine/_core.c pyengine/_core*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
