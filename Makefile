# make demo       build heapledger, trace a small program with it
# make test       lint, core unit tests, API tests and the interpreter's own test_tracemalloc, on one interpreter
# make test-all   the last two on every supported interpreter (tools/interpreters finds or makes them)
# make regrtest   the interpreter's own regression suite, untraced and traced, compared; SELECTION=quick|soak|all (all)
# make soak       the half-hour part of it
# make bench      measure, and write bench/RESULTS.md
# make bench-snapshots   the same for snapshots and their analyses (ten minutes)
# make asan, tsan, memcheck, failing   the extension and the core under hostile conditions (tools/hostile); test-all
#                 does so too, once
# make fuzz       fuzz the reader of .hlsnap files for SECONDS=60 (needs clang)
# make callgrind-check   compare the instruction counts of the hook path with the recorded ones (needs valgrind)
# make format     format C and Python in place
# make clean      forget build/
#
# PYTHON selects the interpreter of demo, test, regrtest and bench: a command, or a version such as 3.15. With CI=true
# compiler warnings are errors and a missing interpreter fails. Environments and builds live in build/ and are made as
# needed.

PYTHON ?= python3
SECONDS ?= 60
SELECTION ?= all
with = tools/with-interpreter
c_files = $(wildcard src/*/*.[ch] heapledger/include/*.h tests/core/*.[ch] tests/api/*.[ch] tests/fuzz/*.[ch] bench/*.[ch])
python_files = $(wildcard heapledger startup tests bench tools/*.py)

.PHONY: demo test lint test-core test-api test-all asan tsan memcheck failing regrtest soak fuzz bench \
    bench-snapshots callgrind-check format clean

demo:
	$(with) $(PYTHON) python tools/demo.py

test: lint test-core test-api

lint:
	$(with) $(PYTHON) ruff check --quiet $(python_files)
	$(with) $(PYTHON) ruff format --check --quiet $(python_files)
	$(if $(c_files),$(with) $(PYTHON) clang-format --dry-run -Werror $(c_files))
	$(with) $(PYTHON) python tools/check_tree.py

test-core:
	$(with) $(PYTHON) tools/run-tests core

test-api:
	$(with) $(PYTHON) tools/run-tests api

test-all:
	tools/test-all

asan tsan memcheck failing:
	$(with) $(PYTHON) tools/hostile $@

regrtest:
	$(with) $(PYTHON) python tests/regrtest/run.py $(SELECTION)

soak:
	$(with) $(PYTHON) python tests/regrtest/run.py soak

fuzz:
	tools/fuzz $(SECONDS)

bench:
	$(with) $(PYTHON) python bench/run.py

bench-snapshots:
	$(with) $(PYTHON) python bench/snapshots.py

callgrind-check:
	$(with) $(PYTHON) python bench/callgrind.py

format:
	$(with) $(PYTHON) ruff check --fix --quiet $(python_files)
	$(with) $(PYTHON) ruff format --quiet $(python_files)
	$(if $(c_files),$(with) $(PYTHON) clang-format -i $(c_files))

clean:
	rm -rf build
