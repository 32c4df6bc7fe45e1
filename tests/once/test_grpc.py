"""gRPC's fork handlers give up the GIL: nobody may sleep for ever in our lock then. With the real packages."""

import pathlib
import subprocess
import sys
import textwrap

import pytest

BUILD = pathlib.Path(__file__).resolve().parent.parent.parent / "build"

SERVER = """
    import sys
    sys.path.insert(0, sys.argv[1])
    import grpc
    from concurrent import futures

    class Echo(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.unary_unary_rpc_method_handler(lambda request, context: request)

    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Echo(),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    sys.stdin.read()        # until the test is over
    server.stop(0)
"""

CLIENT = '''
    import os, signal, sys, threading, time
    sys.path.insert(0, sys.argv[1])
    import grpc
    channel = grpc.insecure_channel(f"127.0.0.1:{sys.argv[2]}")
    call = channel.unary_unary("/test/echo")
    assert call(b"before", timeout=20) == b"before"
    import heapledger       # so that our handler runs before gRPC's
    heapledger.start(5)
    stop = threading.Event()
    old = [bytearray(1500) for _ in range(2000)]

    def work():
        kept = []
        while not stop.is_set():
            kept.append([bytearray(500), {"a": 1.5}])
            if len(kept) > 50:
                kept.clear()
                old and old.pop()

    def await_child(child):
        """Whether the child got as far as Python's code, which went well then.

        Without heapledger, too, gRPC 1.54 sometimes hangs in the child, or ends it with EX_USAGE because it cannot shut
        down. Both happen before Python goes on there.
        """
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                assert code in (0, os.EX_USAGE), code
                return code == 0
            time.sleep(0.01)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return False

    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    arrived = 0
    for _ in range(10):
        assert call(b"parent", timeout=20) == b"parent"
        child = os.fork()
        if child == 0:
            block = bytes(8888)
            known = heapledger.get_object_traceback(block) is not None
            os._exit(0 if known and heapledger._validate() is None else 1)
        arrived += await_child(child)
    assert arrived >= 5, arrived
    stop.set()
    for thread in threads:
        thread.join()
    assert heapledger._validate() is None
    left = [trace for trace in heapledger.take_snapshot().traces if trace.size == 1501]
    assert len(left) == len(old), (len(left), len(old))
    print("done", flush=True)
    os._exit(0)
'''


@pytest.fixture(scope="module", params=["1.54.3", "1.85.1"])
def packages(request):
    """A folder with this version of grpcio."""
    folder = BUILD / f"grpcio-{request.param}-{sys.version_info[0]}.{sys.version_info[1]}"
    if not (folder / "complete").exists():
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        only = ["--only-binary", ":all:", "--upgrade", "--target", str(folder), f"grpcio=={request.param}"]
        if subprocess.run([*install, *only], check=False).returncode != 0:
            pytest.skip(f"there is no wheel of grpcio {request.param} for this interpreter")
        (folder / "complete").touch()
    return folder


def test_fork(packages, tmp_path):
    programs = {}
    for name, source in (("server", SERVER), ("client", CLIENT)):
        programs[name] = tmp_path / f"{name}.py"
        programs[name].write_text(textwrap.dedent(source))
    python = [sys.executable, "-W", "ignore", "-X", "faulthandler"]
    server = [*python, str(programs["server"]), str(packages)]
    with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = process.stdout.readline().strip()
            environment = {"GRPC_ENABLE_FORK_SUPPORT": "1", "GRPC_VERBOSITY": "NONE"}
            client = subprocess.run(
                [*python, str(programs["client"]), str(packages), port],
                env=environment,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert (client.returncode, client.stdout) == (0, "done\n"), client.stderr
        finally:
            process.kill()
