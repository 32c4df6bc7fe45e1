"""Several interpreters in a process: one ledger for all of them."""

from children import with_interpreters


def test_interpreter_created_and_destroyed_while_tracing():
    """With the stdlib, stop() after this hangs on 3.11.7 and aborts on 3.12.1."""
    with_interpreters("""
        for _ in range(3):
            heapledger.start(3)
            interpreter = create()
            execute(interpreter, "kept = [bytes(n) for n in range(1000)]")
            mine = bytes(9876)
            assert heapledger.get_object_traceback(mine)[-1].filename == __file__
            assert len(heapledger._get_traces()) > 900
            heapledger.take_snapshot().statistics("lineno")
            _interpreters.destroy(interpreter)
            assert heapledger._validate() is None
            heapledger.stop()
    """)


def test_start_before_and_after():
    with_interpreters("""
        before = create()
        execute(before, "old = [bytes(n) for n in range(100)]")
        heapledger.start(2)
        execute(before, "new = [bytes(n) for n in range(5000, 5100)]; del old")
        assert len([t for t in heapledger._get_traces() if 5000 <= t[1] < 5200]) == 100
        heapledger.stop()
        execute(before, "del new")
        _interpreters.destroy(before)
        heapledger.start(2)
        after = create()
        execute(after, "new = [bytes(n) for n in range(5000, 5100)]")
        _interpreters.destroy(after)
        assert len([t for t in heapledger._get_traces() if 5000 <= t[1] < 5200]) == 0
        assert heapledger._validate() is None
    """)


def test_imported_inside():
    """One ledger for the process; each interpreter has objects of its own."""
    with_interpreters("""
        inside = '''
        import heapledger
        assert heapledger.is_tracing() and heapledger.get_traceback_limit() == 4
        def make():
            return bytes(6666)
        block = make()
        assert heapledger.get_object_traceback(block)[-1].name.endswith("make")
        snapshot = heapledger.take_snapshot()
        assert snapshot.statistics("traceback") and snapshot.filter_traces([heapledger.Filter(True, "*")]).traces
        assert heapledger._validate() is None
        '''
        heapledger.start(4)
        interpreters = [create() for _ in range(3)]
        for interpreter in interpreters:
            execute(interpreter, inside)
        size = sys.getsizeof(bytes(6666))
        assert len([t for t in heapledger._get_traces() if t[1] == size]) == 3
        for interpreter in interpreters:
            _interpreters.destroy(interpreter)
        assert len([t for t in heapledger._get_traces() if t[1] == size]) == 0
        assert heapledger.take_snapshot().statistics("lineno")
        execute(last := create(), "import heapledger; heapledger.stop()")
        assert not heapledger.is_tracing()
        _interpreters.destroy(last)
    """)


def test_all_at_once():
    """Where interpreters have a GIL each, the hooks really run at the same time."""
    with_interpreters("""
        inside = '''
        kept = []
        for number in range(20000):
            kept.append([bytes(number % 700), {"k": number * 1.5}])
            if number % 50 == 0:
                del kept[::2]
                exec(compile(f"x = bytes({number})", f"<{number}>", "exec"), {})
        '''
        heapledger.start(3)
        interpreters = [create() for _ in range(3)]
        failures = []
        def work(interpreter):
            try:
                execute(interpreter, inside)
            except BaseException as error:
                failures.append(error)
        threads = [threading.Thread(target=work, args=(interpreter,)) for interpreter in interpreters]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            heapledger.take_snapshot().statistics("traceback")
            heapledger.clear_traces()
        for thread in threads:
            thread.join()
        assert not failures, failures
        assert heapledger._validate() is None and heapledger.lost_records() == 0
        for interpreter in interpreters:
            _interpreters.destroy(interpreter)
        assert heapledger._validate() is None
        heapledger.stop()
    """)


def test_exit_with_an_interpreter_left():
    with_interpreters("""
        heapledger.start(3)
        interpreter = create()
        execute(interpreter, "import heapledger; kept = [bytes(n) for n in range(1000)]")
    """)
