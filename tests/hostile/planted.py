"""Bugs on purpose: each makes the test that is there to find it fail, or this program does.

    tools/with-interpreter 3.11 python tests/hostile/planted.py [NAME...]

A planted bug is a change of a few words in one source file. It is made in a copy of the sources below build/, which is
built there and used for nothing else; so the product never has any of this in it. The words must occur exactly once: a
bug that no longer fits is a failure too, and so is a test that fails in the same copy without the bug. Bugs that need a
newer interpreter than this one are left out, and said so.
"""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VERSION = sysconfig.get_python_version()
COPY = ROOT / "build" / f"planted-{VERSION}"
BUILD, STAGE = COPY / "build", COPY / "build" / "stage"
TIMEOUT = {"stress": 60}  # seconds; a hang is a bug that was found. The others have 600.
ATTEMPTS = 3  # with other seeds: some bugs show by chance


@dataclasses.dataclass
class Bug:
    family: str  # what must find it
    what: str
    file: str
    old: str
    new: str
    kind: str = "stress"  # stress, failing, memcheck, record (bugs on record), api, or the name of a test of the core
    test: str = ""  # of kind api: "file.py -k expression"
    oldest: tuple = (3, 11)
    newest: tuple = (3, 15)


BUGS = [
    Bug(
        "raw_threads",
        "threads without the GIL go in without the lock",
        "src/core/gate.h",
        "    if (!hl_lock_take_unless_forking(&gate->lock))\n",
        "    if (favoured && !hl_lock_take_unless_forking(&gate->lock))\n",
    ),
    Bug(
        "raw_threads",
        "a block leaves the ledger after it was freed",
        "src/cpython/hook_path.h",
        "        leave_unfavoured(attached, block);\n    original->free(original->ctx, block);\n",
        "        original->free(original->ctx, block);\n    leave_unfavoured(attached, block);\n",
    ),
    Bug(
        "forks",
        "the child keeps its parent's name, so that what both hold counts twice",
        "src/cpython/hooks.c",
        "        hl_ledger_inherit(&hl_hooks_ledger);",
        "        (void)hl_ledger_inherit;",
    ),
    Bug(
        "interpreters",
        "an interpreter with a GIL of its own goes in by the main one's side",
        "src/cpython/frames_here.h",
        "return thread != NULL && thread->interp == main_interpreter;",
        "return thread != NULL;",
        oldest=(3, 12),
    ),
    Bug(
        "interpreters",
        "a sub-interpreter's blocks are attributed to the frames of whoever called it",
        "src/cpython/frames_311.c",
        "*thread = attached || holder == hl_frames_detached() ? holder : NULL;",
        "*thread = attached ? hl_frames_detached() : holder == hl_frames_detached() ? holder : NULL;",
    ),
    Bug(
        "signals",
        "a sleep that a signal has ended early is taken for the lock",
        "src/core/lock.c",
        "            hl_os_sleep_while(&lock->word, HL_LOCK_CONTENDED);\n",
        "            hl_os_sleep_while(&lock->word, HL_LOCK_CONTENDED);\n            return true;\n",
    ),
    Bug(
        "finalizers",
        "whatever a thread allocates while it is in one of our functions is taken for ours",
        "src/cpython/hook_path.h",
        "HL_UNLIKELY(frame == hl_this_thread.own_frame)",
        "HL_UNLIKELY(hl_this_thread.own_frame != NULL)",
    ),
    Bug(
        "codes",
        "what was learnt of a code object outlives it",
        "src/core/codes.c",
        "    if (id != 0)\n        forget(codes, names, id);\n",
        "    (void)names;\n",
    ),
    Bug(
        "codes",
        "spots outlive the code that they are in",
        "src/core/ledger.c",
        "        hl_spots_void(&ledger->spots);\n",
        "        (void)hl_spots_void;\n",
    ),
    Bug(
        "stacks",
        "a caller that has moved on leaves what it calls in its old context",
        "src/cpython/shadow_sync.h",
        "    find_contexts(shadow, ledger, moved - 1);",
        "    find_contexts(shadow, ledger, found.top - 1);",
    ),
    Bug(
        "recursion",
        "callers below the newest frame are not checked",
        "src/cpython/shadow_sync.h",
        "check(shadow, top, shadow->window - fresh, &last);",
        "check(shadow, top, fresh == 0 ? 1 : shadow->window - fresh, &last);",
    ),
    Bug(
        "generators",
        "frames of generators are passed over",
        "src/cpython/frames_walk.h",
        "    while (f != NULL && !is_complete(f))",
        "    while (f != NULL && (!is_complete(f) || f->owner == FRAME_OWNED_BY_GENERATOR))",
    ),
    Bug(
        "exits",
        "the interpreter's end closes the ledger, but hooks go on",
        "src/cpython/tracer.c",
        "    atomic_store(&hl_hooks_tracing, false);\n",
        "",
    ),
    Bug(
        "limits",
        "no memory for the map's pages is not noticed",
        "src/core/os.c",
        "    if (pages == MAP_FAILED)\n        pages = NULL;\n    else\n",
        "    if (pages != MAP_FAILED)\n",
    ),
    Bug(
        "observers",
        "a block goes back to the allocator of another domain",
        "src/cpython/hook_path.h",
        "    const PyMemAllocatorEx *original = &hl_layers_originals[layer][which];\n"
        "    bool attached = which != PYMEM_DOMAIN_RAW;\n    if (HL_UNLIKELY(hl_frames_at_once",
        "    const PyMemAllocatorEx *original = &hl_layers_originals[layer][PYMEM_DOMAIN_RAW];\n"
        "    bool attached = which != PYMEM_DOMAIN_RAW;\n    if (HL_UNLIKELY(hl_frames_at_once",
    ),
    Bug(
        "failing",
        "a start without memory for the shadow goes on",
        "src/cpython/tracer.c",
        "        status = hl_shadow_open(&fresh->shadow, nframe);\n",
        "        (void)hl_shadow_open(&fresh->shadow, nframe);\n",
        "failing",
    ),
    Bug(
        "asan",
        "a snapshot has room for one row less than it says",
        "src/core/snapshot.c",
        "hl_os_alloc(rows, sizeof *made->rows);",
        "hl_os_alloc(rows - (rows > 0), sizeof *made->rows);",
        "filter_address_undefined",
    ),
    Bug(
        "memcheck",
        "a snapshot has room for half of its rows",
        "src/core/snapshot.c",
        "hl_os_alloc(rows, sizeof *made->rows);",
        "hl_os_alloc(rows / 2, sizeof *made->rows);",
        "memcheck",
    ),
    Bug(
        "tsan",
        "threads without the GIL go in without the lock",
        "src/core/gate.h",
        "    if (!hl_lock_take_unless_forking(&gate->lock))\n",
        "    if (favoured && !hl_lock_take_unless_forking(&gate->lock))\n",
        "threads_thread",
    ),
    Bug(
        "fuzz_linetable",
        "a number at the end of the table is read past it",
        "src/core/linetable.c",
        "at < end && shift < 36",
        "shift < 36",
        "fuzz_linetable",
    ),
    Bug(
        "fuzz_filter",
        "a row of another domain is tried as well",
        "src/core/filter.c",
        "        if (!of->any_domain && of->domain != row->domain)\n            continue;\n",
        "        (void)of;\n",
        "fuzz_filter",
    ),
    Bug(
        "fuzz_ledger",
        "a block that takes another's address leaves that one in the totals",
        "src/core/ledger.c",
        "    if (HL_UNLIKELY(stale.site != 0))\n        count_out(ledger, stale.address, stale.site);\n",
        "",
        "fuzz_ledger",
    ),
    Bug(
        "fuzz_hlsnap",
        "a row may name a stack that does not exist",
        "src/core/hlsnap_read.c",
        "    if (stack >= r->stacks.count)\n",
        "    if (false)\n",
        "fuzz_hlsnap",
    ),
    # For the tests of bugs on record that no standard library here is shown to fail.
    Bug(
        "gh_130093_nobody_traces",
        "a report takes the GIL",
        "src/cpython/domains.c",
        "    int ours = hl_domains_track(domain, address, size);\n",
        "    PyGILState_Release(PyGILState_Ensure());\n    int ours = hl_domains_track(domain, address, size);\n",
        "record",
    ),
    Bug(
        "gh_144763",
        "whoever finds the ledger's lock taken gives up the GIL",
        "src/cpython/hook_path.h",
        "    hl_passage passage = hl_hooks_enter(favoured);\n    if (HL_UNLIKELY",
        "    if (favoured)\n        PyEval_RestoreThread(PyEval_SaveThread());\n"
        "    hl_passage passage = hl_hooks_enter(favoured);\n    if (HL_UNLIKELY",
        "record",
    ),
    Bug(
        "gh_126314",
        "a snapshot does not hold the name table that it names things of",
        "src/core/snapshot.c",
        "    made->names = hl_names_hold(names);\n",
        "    made->names = names;\n",
        "record",
    ),
    Bug(
        "gh_126315",
        "stop() keeps its lock when there is nothing to stop",
        "src/cpython/tracer.c",
        "    hl_tracer_stop_tracing();\n    hl_tracer_give_control();\n    hl_tracer_finish();\n}",
        "    if (!hl_tracer_is_tracing())\n        return;\n"
        "    hl_tracer_stop_tracing();\n    hl_tracer_give_control();\n    hl_tracer_finish();\n}",
        "record",
    ),
    Bug(
        "gh_125703",
        "a block that is freed stays in the totals",
        "src/core/ledger.h",
        "    hl_ledger_count_out(ledger, site);\n    return true;\n",
        "    site->freed++;\n    return true;\n",
        "record",
    ),
    Bug(
        "gh_96612",
        "frames that have not begun are in tracebacks",
        "src/cpython/frames_walk.h",
        "    return instruction_of(f) >= (uintptr_t)(_PyCode_CODE(code) + code->_co_firsttraceable);\n",
        "    return code != NULL;\n",
        "record",
    ),
    Bug(
        "gh_79234",
        "freelists stay on",
        "src/cpython/tracer.c",
        "        hl_freelists_turn_off(atomic_load(&numbers));\n",
        "        (void)atomic_load(&numbers);\n",
        "record",
    ),
    Bug(
        "gh_143057",
        "a report takes the lock though nobody traces, and lets others wait for it",
        "src/cpython/domains.c",
        "    int ours = hl_domains_track(domain, address, size);\n",
        "    hl_hooks_lock();\n    hl_os_yield();\n    hl_hooks_unlock();\n"
        "    int ours = hl_domains_track(domain, address, size);\n",
        "record",
    ),
    Bug(
        "freelists",
        "a type that inherits keeps our destructor, which the trashcan does not know",
        "src/cpython/freelists_mortal.h",
        "        type->tp_dealloc = kind->original;\n",
        "        (void)type;\n",
        "api",
        "test_freelists.py -k inherits",
        newest=(3, 12),
    ),
    Bug(
        "freelists",
        "a full collection turns the list of floats on again",
        "src/cpython/freelists_floats.h",
        "        turn_off_floats(PyInterpreterState_Get());\n",
        "        (void)PyInterpreterState_Get();\n",
        "api",
        "test_freelists.py -k test_numbers",
        newest=(3, 13),
    ),
    # What an attack from outside has found: see docs/reliability.md.
    Bug(
        "attack_fork",
        "a hook waits for a fork for as long as it takes",
        "src/core/lock.c",
        "enum { PATIENCE = 100 /* milliseconds */ };",
        "enum { PATIENCE = 100000000 };",
        "api",
        "test_processes.py -k gives_up_the_gil and before-allocates",
    ),
    Bug(
        "attack_circle",
        "there is one layer of hooks, whatever it is put over",
        "src/cpython/layers.c",
        "    int layer = choose_layer(which, top, reached);\n",
        "    int layer = choose_layer(which, top, reached) * 0;\n",
        "api",
        "test_other_hooks.py -k does_not_pass_all_on",
    ),
    Bug(
        "attack_full",
        "a full table makes no room",
        "src/cpython/hooks.c",
        "    return hl_ledger_make_room(&hl_hooks_ledger) ? find_site(frame, size, domain) : 0;\n",
        "    (void)frame, (void)size, (void)domain;\n    return 0;\n",
        "api",
        "test_soak.py -k makes_room",
    ),
    Bug(
        "attack_brackets",
        "a bracket around our own work does not end",
        "src/cpython/own_work.c",
        "        if (open[place].id == work->id) {",
        "        if (open[place].id == 0) {",
        "api",
        "test_own_work.py",
    ),
    Bug(
        "attack_phantoms",
        "what was freed while the hooks were gone stays in the ledger",
        "src/cpython/tracer.c",
        "        is_stale = true;\n",
        "        is_stale = false;\n",
        "api",
        "test_other_hooks.py -k phantoms",
    ),
    Bug(
        "attack_sleepers",
        "nobody is woken after a fork",
        "src/core/lock.c",
        "    atomic_store(&lock->word, HL_LOCK_FREE);\n    hl_os_wake_all(&lock->word);\n",
        "    atomic_store(&lock->word, HL_LOCK_FREE);\n",
        "gate_address_undefined",
    ),
    Bug(
        "attack_real_time",
        "a real-time thread only yields",
        "src/core/os.c",
        "    if (attempt < YIELDS) {\n",
        "    if (attempt < UINT32_MAX) {\n",
        "gate_address_undefined",
    ),
    Bug(
        "attack_libc",
        "the C library's allocator is called while the ledger is held",
        "src/core/ledger_snapshots.c",
        "    snapshot->nframe = ledger->nframe;\n    snapshot->origins = ledger->origins;\n    snapshot->rows[0]",
        "    hl_os_free(hl_os_alloc(1, 1));\n"
        "    snapshot->nframe = ledger->nframe;\n    snapshot->origins = ledger->origins;\n    snapshot->rows[0]",
        "api",
        "test_other_hooks.py -k allocates_python_memory",
    ),
    Bug(
        "attack_cliff",
        "the bound of reclaiming stays where it is",
        "src/core/sites.c",
        "        sites->bound *= 2;\n",
        "        sites->bound *= 1;\n",
        "reclaim_address_undefined",
    ),
    Bug(
        "attack_memory",
        "spans without ids keep their memory",
        "src/core/index.c",
        "table->warm_count >= MOST_WARM && may_become_cold",
        "table->warm_count >= UINT32_MAX && may_become_cold",
        "spans_address_undefined",
    ),
]


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(STAGE), **more}


def run(kind, *command, **more):
    """Whether the command ended well within the time."""
    command, seconds = list(map(str, command)), TIMEOUT.get(kind, 600)
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds, env=environment(**more), cwd=COPY)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def must(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")


def passes(bug, seed):
    """Does the test that should find the bug pass?"""
    if bug.kind == "stress":
        program = ROOT / "tests" / "stress" / f"{bug.family}.py"
        return run(bug.kind, sys.executable, "-W", "ignore", program, "3", seed)
    if bug.kind == "record":
        tests = ROOT / "tests" / "api" / "test_bugs_on_record.py"
        return run(bug.kind, "pytest", "-q", "-p", "no:cacheprovider", tests, "-k", bug.family)
    if bug.kind == "api":
        file, *selection = bug.test.split(" ", 2)
        tests = ROOT / "tests" / "api" / file
        return run(bug.kind, "pytest", "-q", "-p", "no:cacheprovider", tests, *selection)
    if bug.kind == "failing":
        return run(bug.kind, sys.executable, ROOT / "tests" / "hostile" / "failing.py")
    if bug.kind == "memcheck":
        suppressions = f"--suppressions={ROOT / 'tests' / 'hostile' / 'memcheck.supp'}"
        program = ROOT / "tests" / "hostile" / "everything.py"
        command = ["valgrind", "--quiet", "--error-exitcode=9", suppressions, sys.executable, program]
        return run(bug.kind, *command, PYTHONMALLOC="malloc")
    return run(bug.kind, "meson", "test", "-C", BUILD, bug.kind)


def copy_sources():
    """Only what has changed, so that only that is compiled again."""
    COPY.mkdir(parents=True, exist_ok=True)
    tops = [top for top in ROOT.iterdir() if not top.name.startswith((".", "build"))]
    for top in tops:
        for source in [top, *top.rglob("*")]:
            target = COPY / source.relative_to(ROOT)
            if source.is_dir():
                target.mkdir(parents=True, exist_ok=True)
            elif not target.exists() or target.read_bytes() != source.read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
    if not (BUILD / "build.ninja").exists():
        options = [f"-Dpython.{kind}libdir={STAGE}" for kind in ("pure", "plat")]
        options += ["-Db_lto=false", "-Db_ndebug=false", "-Dbuildtype=debugoptimized", "-Dc_args=-DHL_FAULTS"]
        must("meson", "setup", BUILD, COPY, f"--prefix={STAGE}", *options)


def plant(bug):
    path = COPY / bug.file
    text = path.read_text()
    if text.count(bug.old) != 1:
        sys.exit(f"{bug.family}: the place for '{bug.what}' is not in {bug.file} exactly once any more")
    path.write_text(text.replace(bug.old, bug.new))


def fits(bug):
    if bug.file.endswith("frames_311.c"):
        return VERSION == "3.11"
    return bug.oldest <= sys.version_info[:2] <= bug.newest


def main():
    wanted = [bug for bug in BUGS if len(sys.argv) == 1 or bug.family in sys.argv[1:]]
    unseen = []
    for bug in wanted:
        if not fits(bug):
            print(f"{bug.family:15} left out on {VERSION}: {bug.what}", flush=True)
            continue
        start = time.monotonic()
        copy_sources()
        must("meson", "install", "-C", BUILD, "--quiet")
        if not passes(bug, 1):
            sys.exit(f"{bug.family}: the test fails without the bug, so that it fails with it says nothing")
        plant(bug)
        must("meson", "install", "-C", BUILD, "--quiet")
        attempts = ATTEMPTS if bug.kind == "stress" else 1
        found = not all(passes(bug, seed) for seed in range(1, attempts + 1))
        seconds = time.monotonic() - start
        print(f"{bug.family:15} {'found' if found else 'NOT FOUND'} in {seconds:.0f} s: {bug.what}", flush=True)
        if not found:
            unseen.append(bug.family)
    copy_sources()
    if unseen:
        sys.exit(f"bugs that no test has found: {', '.join(unseen)}")


if __name__ == "__main__":
    main()
