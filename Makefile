# SPDX-License-Identifier: Apache-2.0
#
# make demo      a bridge that falls apart under plain JAX and stands under pydag; draws it in out/, also in motion
# make demo EXAMPLE=train   another one: tied_autoencoder, tied_transformer, stateful, einsum_graph, derivatives,
#                one_step, doctor
# make dev       build what has changed; what is edited in Python counts at once
# make dev TEST=tests/core/test_values.py   and run these tests; options of pytest, too
# make test      linters, type checks and tests
# make test-all  the same with other libraries, the examples and the site, which take half a GB more
# make test-core the core's tests alone, which need nothing of JAX
# make test-torch  the tests with PyTorch, which takes 5 GB; make test does without it
# make sanitize  the core's tests under AddressSanitizer and UndefinedBehaviorSanitizer
# make test-threads PYTHON=python3.14t   the core's tests without the GIL, and a minute of stress
# make fuzz      random campaigns against the core, under the sanitizers, a minute long
# make fuzz SECONDS=600 SEED=1   longer ones; a seed that found something finds it again
# make coverage  which lines and branches, of Python and of the core, no test reaches
# make bench     measure pydag beside others: docs/benchmarks.md, the figures in the README
# make bench QUICK=1           in two minutes, roughly, to out/benchmarks/
# make bench-instructions      count the instructions for a node, by valgrind
# make test-lowest    all tests, with the lowest versions of optree, JAX, ... that pydag allows
# make wheels    build sdist and wheels, for PYTHONS="python3.12 python3.13", check them: out/wheels/
# make upstream  measure what upstream/ tells other projects, and write its tables; PyTorch takes 5 GB
# make known-ties  write pydag/doctor/known_ties.json, what the models of transformers tie; takes 5 GB
# make docs      write the guide and the reference, made from the docstrings, to out/docs/
# make lock      write .ci/locked.txt anew, the versions that the workflow installs; needs uv
# make format    let ruff and clang-format rewrite the sources
# make clean     remove the virtual environments and whatever was built
# make help      this list; so does make alone
#
# Each of those that run something has a virtual environment of its own, one per version of Python
# (`make test PYTHON=python3.13`), in which the package is installed as a user would have it; that of
# `make dev` has the sources themselves. The build directory is kept there, so that only what has
# changed is compiled again.

PYTHON ?= python3
EXAMPLE ?= object_graph

# "3.13 True": the version, and whether it is new enough. The program is one for any Python.
about := $(shell "$(PYTHON)" -c 'import sys; print("%d.%d%s %s" % (sys.version_info[:2] \
    + (getattr(sys, "abiflags", ""), sys.version_info >= (3, 11))))' 2>/dev/null)
version := $(word 1,$(about))

ifneq ($(filter-out help clean,$(MAKECMDGOALS)),)
ifneq ($(word 2,$(about)),True)
newer := $(shell for python in python3.14 python3.13 python3.12 python3.11; do \
    "$$python" -c "" 2>/dev/null && echo "$$python" && break; done)
problem := $(if $(version),"$(PYTHON)" is Python $(version),"$(PYTHON)" does not run)
$(error pydag needs Python 3.11 or newer, and $(problem). \
    Name another one: make $(MAKECMDGOALS) PYTHON=$(or $(newer),/path/to/python3.13))
endif
endif

demo := .venv/demo-$(version)
dev := .venv/dev-$(version)
core := .venv/core-$(version)
test := .venv/test-$(version)
all := .venv/test-all-$(version)
bench := .venv/bench-$(version)
lowest := .venv/lowest-$(version)
torch := .venv/torch-$(version)
sanitized := .venv/sanitize-$(version)
docs := .venv/docs-$(version)
upstream := .venv/upstream-$(version)
known_ties := .venv/known-ties-$(version)
covered := .venv/coverage-$(version)

core_files := $(shell find pydag/core benchmarks -name '*.h' -o -name '*.cpp')
# With the directories, whose time changes when a file is removed.
sources := pyproject.toml README.md $(shell find pydag -name __pycache__ -prune -o -not -name '*.so' -print)

.PHONY: help demo dev test test-all test-core test-threads test-lowest test-torch wheels lint types pytest \
    sanitize fuzz coverage bench bench-instructions upstream known-ties docs lock format clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: $(demo)/installed
	$(demo)/bin/python examples/$(EXAMPLE).py

# A stale precompiled header must go: ccache would take it for a part of what the new one is made of.
dev: $(dev)/installed
	@find $(dev)/build -name '*.gch' ! -newer pydag/core/base/capi.h -delete
	$(if $(BUILD),$(dev)/bin/cmake -DCMAKE_BUILD_TYPE=$(BUILD) $(dev)/build >/dev/null)
	@$(dev)/bin/cmake --build $(dev)/build
	@ln -sf $(dev)/build/compile_commands.json .
	$(if $(TEST),$(dev)/bin/pytest -n 0 $(TEST))

# What one of the three finds doesn't keep the others from running; the last line names what failed.
test: $(test)/installed
	@failed=; for part in lint types pytest; do \
	    $(MAKE) --no-print-directory $$part || failed="$$failed $$part"; \
	done; test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }

test-all:
	@$(MAKE) --no-print-directory test test=$(all)

test-core: $(core)/installed
	$(core)/bin/pytest -n auto --dist worksteal $(or $(PYTEST_ARGS),tests/core)

test-lowest: $(lowest)/installed
	$(lowest)/bin/pytest -n auto --dist worksteal -m "not once" $(or $(PYTEST_ARGS),tests/core tests/api tests/jax)

# What else needs PyTorch, too: pages, docstrings, and those of the tests that take any library.
test-torch: $(torch)/installed
	$(torch)/bin/pytest -n 2 -k torch $(or $(PYTEST_ARGS),tests/torch tests/api tests/docs)

wheels:
	$(PYTHON) .ci/wheels.py out/wheels $(or $(PYTHONS),$(PYTHON))

lint: $(test)/installed
	$(test)/bin/ruff check
	$(test)/bin/ruff format --check
	@echo "clang-format --dry-run -Werror $(words $(core_files)) files"
	@$(test)/bin/clang-format --dry-run -Werror $(core_files)
	$(test)/bin/codespell pydag docs examples benchmarks tests upstream .ci Makefile $(wildcard *.md)
	$(test)/bin/zizmor --offline --no-progress --quiet --min-severity medium .github
	@if command -v actionlint; then actionlint; else echo "actionlint isn't installed: left out"; fi

types: $(test)/installed
	$(test)/bin/mypy

# Through the script, not `python -m pytest`: that would put the source tree before the package.
pytest: $(test)/installed
	$(test)/bin/pytest -n auto --dist worksteal $(PYTEST_ARGS)

format: $(test)/installed
	$(test)/bin/ruff check --fix-only
	$(test)/bin/ruff format
	$(test)/bin/clang-format -i $(core_files)

# In another directory, for the same reason.
# Python itself is not sanitized, so the library must come first. Leaks of the interpreter's own,
# at its exit, are not ours; and how much time or memory something takes says nothing here.
# Pictures are made of a structure's listing, in Python: to the core they add nothing.
sanitize: $(sanitized)/installed
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	PYTHONMALLOC=malloc \
	    $(sanitized)/bin/pytest -n auto --dist worksteal -m "not measures" --hypothesis-profile=few \
	    --ignore=tests/docs --ignore=tests/jax --ignore-glob='tests/api/test_view*' $(PYTEST_ARGS)

# A build with the GIL runs them, too: there threads take turns.
test-threads: SECONDS ?= 60
test-threads: no_gil := $(if $(filter %t,$(version)),PYTHON_GIL=0)
test-threads: $(core)/installed
	$(no_gil) $(core)/bin/pytest -n 0 $(or $(PYTEST_ARGS),tests/core)
	$(no_gil) PYDAG_STRESS_SECONDS=$(SECONDS) $(core)/bin/pytest -n 0 tests/core/test_free_threading.py \
	    tests/core/test_threads.py

fuzz: SECONDS ?= 60
fuzz: $(sanitized)/installed
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	PYTHONMALLOC=malloc \
	    $(sanitized)/bin/python tests/fuzz/campaign.py --seconds $(SECONDS) \
	    $(if $(SEED),--seed $(SEED)) $(FUZZ_ARGS)

# Two processes, each of which counts on its own, as do those that tests start. At its end each writes
# what Python ran to a file of its own, and adds what the core ran to the common counts, which it locks
# meanwhile. (pytest-xdist kills a worker that takes long to end, and what it counted would be lost.)
# PYTEST_ARGS=tests/core runs these alone. Few examples reach what many do. pyproject.toml says what is
# left out, and why. It fails where more of Python's statements, or of the core's lines, are left than here:
coverage: most_statements := 100
coverage: most_lines := 60
# $(call limited,FIELDS,MOST): prints a report, and fails if the line TOTAL leaves more than that.
coverage: limited = awk '{ print } $$1 == "TOTAL" { left = $(1) } END { $(if $(PYTEST_ARGS),, \
    if (left == "" || left > $(2)) { print left " unrun, at most $(2) may be"; exit 1 }) }'
coverage: export COVERAGE_FILE := $(abspath $(covered))/data
coverage: counted = $(covered)/bin/coverage run $(covered)/bin/pytest -n 0 -m "not measures" \
    --hypothesis-profile=few
coverage: $(covered)/installed
	@find $(covered)/build -name '*.gcda' -delete
	@rm -f $(COVERAGE_FILE)*
	$(if $(PYTEST_ARGS),$(counted) $(PYTEST_ARGS),$(counted) tests/jax & \
	    $(counted) tests/core tests/api tests/fuzz; code=$$?; wait $$! && exit $$code)
	$(covered)/bin/coverage combine --quiet
	@$(covered)/bin/coverage report --skip-covered --show-missing | $(call limited,$$3,$(most_statements)); code=$$?; \
	$(covered)/bin/gcovr --txt-metric line --txt --print-summary $(covered)/build \
	    | $(call limited,$$2 - $$3,$(most_lines)) && exit $$code

bench: $(bench)/installed
	$(bench)/bin/python benchmarks $(if $(QUICK),--quick) $(BENCH_ARGS)

bench-instructions: $(bench)/installed
	$(bench)/bin/python benchmarks/instructions.py

upstream: $(upstream)/installed
	for script in jax_refs jax_threads nnx_graph torch_ties safetensors_aliases; do \
	    $(upstream)/bin/python upstream/$$script.py || exit 1; done

known-ties: $(known_ties)/installed
	cd .ci && ../$(known_ties)/bin/python -m known_ties

# A warning is an error. Nothing of the package is run: its sources are read.
docs: $(docs)/installed
	NO_MKDOCS_2_WARNING=1 $(docs)/bin/mkdocs build --strict --quiet
	@echo "out/docs/index.html"

lock:
	$(PYTHON) .ci/lock.py

clean:
	rm -rf .venv build dist out compile_commands.json pydag/_core*.so

$(demo)/installed: group := demo
$(core)/installed: group := test-core
$(dev)/installed: group := test-all
$(dev)/installed: settings := --editable --config-settings cmake.build-type=Debug --config-settings cmake.define.PYDAG_WERROR=ON --config-settings cmake.define.CMAKE_EXPORT_COMPILE_COMMANDS=ON
$(bench)/installed: group := bench
$(lowest)/installed: group := lowest
$(torch)/installed: group := test-torch
$(docs)/installed: group := docs
$(docs)/installed: settings := --requirements-only
$(upstream)/installed: group := upstream
$(upstream)/installed: settings := --requirements-only
$(known_ties)/installed: group := known-ties
$(known_ties)/installed: settings := --requirements-only
$(test)/installed: group := test
$(test)/installed: settings := --config-settings cmake.define.PYDAG_WERROR=ON
# In `make test-all` this is the environment of the lines before.
$(all)/installed: group := test-all
$(sanitized)/installed: group := test-api
$(sanitized)/installed: settings := --config-settings cmake.define.PYDAG_SANITIZE=ON --config-settings cmake.build-type=Debug
$(covered)/installed: group := coverage
# Without the precompiled header, so that somebody notices a file that lacks an include.
$(covered)/installed: settings := --config-settings cmake.define.PYDAG_COVERAGE=ON --config-settings cmake.build-type=Debug \
    --config-settings cmake.define.CMAKE_DISABLE_PRECOMPILE_HEADERS=ON

# What is edited later, the environment has already; the core's own build knows what to compile.
$(dev)/installed: pyproject.toml
	@$(PYTHON) .ci/environment.py $(@D) $(group) $(settings)
	@touch $@

# Without build isolation: a build directory is only good for the nanobind that it was made with.
.venv/%/installed: $(sources)
	@$(PYTHON) .ci/environment.py $(@D) $(group) $(settings)
	@touch $@
