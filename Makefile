# make demo       build heapledger, trace a small program with it
# make test       lint, types, core unit tests, API tests, tests with whole programs and the interpreter's own
#                 test_tracemalloc, on one interpreter
# make test-browser   the HTML report in a real browser (chromium, which is installed where possible)
# make test-all   API tests, whole programs and test_tracemalloc on every supported interpreter (tools/interpreters
#                 finds or makes them)
# make regrtest   the interpreter's own regression suite, untraced and traced, compared; SELECTION=quick|soak|all (all)
# make test-once  what need not run on every interpreter: wheel and source distribution, documentation, recipes, linters
#                 of workflow files and of the report's script, completion in zsh and fish
# make test-suites    the test suites of real packages, with heapledger; on one interpreter, too
# make docs       build the documentation into build/site
# make bench      measure, and write bench/RESULTS.md
# make bench-snapshots   the same for snapshots and their analyses (ten minutes)
# make bench-peers       heapledger beside tracemalloc, memray, Fil and Scalene, and under pyperformance, into
#                        docs/benchmarks.md (an hour)
# make asan, tsan, memcheck, failing   the extension and the core under hostile conditions (tools/hostile); test-all
#                 does so too, once
# make bench-commands    the same for the command line on a big snapshot, and for the report's page in chromium (a few
#                        minutes)
# make planted    bugs made on purpose, in a copy: each must be found by the test that is there for it
# make soak       stress programs, fuzz targets (each for SECONDS=60), tests of the standard library with both engines
#                 on, hostile builds in their long form, planted bugs, and half an hour of regrtest
# make fuzz       fuzz the reader of .hlsnap files, the filters, the line-table decoder and the ledger, each for
#                 SECONDS=60 (needs clang)
# make callgrind-check   compare the instruction counts of the hook path with the recorded ones (needs valgrind)
# make real-programs     the interpreter's own tests, pip, black and pytest, with and without `heapledger run`; PROGRAMS
#                        selects some
# make picture    make docs/report.png anew (needs chromium)
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
c_files = $(wildcard src/*/*.[ch] python/heapledger/include/*.h tests/core/*.[ch] tests/api/*.[ch] \
    tests/fuzz/*.[ch] tests/stress/*.[ch] bench/*.[ch])
python_files = $(wildcard python tests bench tools/*.py)

.PHONY: demo test lint test-core test-api test-programs test-suites test-all asan tsan memcheck failing fuzz bench \
    bench-snapshots callgrind-check real-programs format clean bench-commands test-browser picture regrtest \
    test-types test-notebooks test-once docs planted soak bench-peers

demo:
	$(with) $(PYTHON) python tools/demo.py

# Two at a time, those that take longest first. Each shows its output when it is done.
test:
	$(with) $(PYTHON) true
	$(MAKE) --jobs=2 --output-sync=target test-programs test-api test-types test-core test-notebooks lint

lint:
	$(with) $(PYTHON) ruff check --quiet $(python_files)
	$(with) $(PYTHON) ruff format --check --quiet $(python_files)
	$(if $(c_files),$(with) $(PYTHON) clang-format --dry-run -Werror $(c_files))
	$(with) $(PYTHON) python tools/check_tree.py

test-types:
	$(with) $(PYTHON) tools/check-types

test-notebooks:
	$(with) $(PYTHON) tools/check-notebooks

test-core:
	$(with) $(PYTHON) tools/run-tests core

test-api:
	$(with) $(PYTHON) tools/run-tests api

test-programs:
	$(with) $(PYTHON) tools/run-tests programs

test-browser:
	$(with) $(PYTHON) tools/run-tests browser

test-once:
	$(with) $(PYTHON) tools/run-tests once

test-suites:
	$(with) $(PYTHON) tools/run-tests suites

docs:
	$(with) $(PYTHON) tools/with-packages python tools/docs.py

test-all:
	tools/test-all

asan tsan memcheck failing:
	$(with) $(PYTHON) tools/hostile $@

picture:
	$(with) $(PYTHON) tools/browser
	$(with) $(PYTHON) python -P tools/picture.py

regrtest:
	$(with) $(PYTHON) python tests/regrtest/run.py $(SELECTION)

planted:
	$(with) $(PYTHON) python tests/hostile/planted.py

soak:
	$(with) $(PYTHON) tools/soak $(SECONDS)
	$(with) $(PYTHON) python tests/regrtest/run.py soak --again

fuzz:
	tools/fuzz $(SECONDS)

bench:
	$(with) $(PYTHON) python bench/run.py

bench-snapshots:
	$(with) $(PYTHON) python bench/snapshots.py

bench-peers:
	$(with) $(PYTHON) python bench/peers.py
	$(with) $(PYTHON) python bench/suite.py
	$(with) $(PYTHON) python bench/inside.py

real-programs:
	$(with) $(PYTHON) python tests/programs/run.py $(PROGRAMS)

bench-commands:
	$(with) $(PYTHON) python bench/commands.py --out bench/RESULTS.md
	$(with) $(PYTHON) tools/browser
	$(with) $(PYTHON) python bench/page.py --out bench/RESULTS.md

callgrind-check:
	$(with) $(PYTHON) python bench/callgrind.py

format:
	$(with) $(PYTHON) ruff check --fix --quiet $(python_files)
	$(with) $(PYTHON) ruff format --quiet $(python_files)
	$(if $(c_files),$(with) $(PYTHON) clang-format -i $(c_files))

clean:
	rm -rf build
