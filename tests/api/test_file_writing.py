"""A file is there as a whole or not at all, and where a plain open() would have put it."""

import errno
import os
import random
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time

import heapledger
import pytest
from children import run

FORMATS = ("hlsnap", "tracemalloc")
SNAPSHOT = heapledger.Snapshot([(0, size, (("a.py", size),), 1) for size in range(3000)], 1)


@pytest.fixture(params=FORMATS)
def format(request):
    return request.param


@pytest.fixture(params=["nameless", "named"])
def kind(request, monkeypatch):
    """Not every file system has files without a name: both ways are tried."""
    if request.param == "named":
        monkeypatch.setattr("heapledger._files._fill_nameless", lambda *arguments: False)
    return request.param


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_permissions(tmp_path, format, kind):
    """Those that open() gives a new file; an old one keeps its own."""
    file = tmp_path / "file"
    for mask in (0o022, 0o077, 0o002, 0o000):
        before = os.umask(mask)
        try:
            SNAPSHOT.dump(file, format)
            assert mode(file) == 0o666 & ~mask
            file.unlink()
            file.touch()
            file.chmod(0o640)
            SNAPSHOT.dump(file, format)
            assert mode(file) == 0o640
            file.unlink()
        finally:
            os.umask(before)
    assert os.listdir(tmp_path) == []


def test_links_stay(tmp_path, format, kind):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    target, link, second = folder / "target", tmp_path / "link", tmp_path / "second"
    link.symlink_to("elsewhere/target")
    second.symlink_to(link)
    for there in (False, True):
        if there:
            target.write_bytes(b"old")
            target.chmod(0o600)
        SNAPSHOT.dump(second, format)
        assert second.is_symlink() and link.is_symlink() and not target.is_symlink()
        assert heapledger.Snapshot.load(target).traces == SNAPSHOT.traces
    assert mode(target) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "link", "second"] and os.listdir(folder) == ["target"]
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError) as caught:
        SNAPSHOT.dump(loop, format)
    assert caught.value.filename == str(loop)


def test_pipes_and_devices(tmp_path, format):
    """What is not a regular file is written to, not replaced."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    SNAPSHOT.dump(pipe, format)
    reader.join()
    file = tmp_path / "file"
    file.write_bytes(received[0])
    assert heapledger.Snapshot.load(file).traces == SNAPSHOT.traces
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    SNAPSHOT.dump("/dev/null", format)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(OSError, match="No space left"):
        SNAPSHOT.dump("/dev/full", format)


def test_standard_output(tmp_path, format):
    """/dev/stdout stays what it is, though it may lead to a regular file."""
    file = tmp_path / "file"
    with open(file, "wb") as output:
        source = f"""
            import heapledger
            heapledger.Snapshot([(0, 5, (("a.py", 1),), 1)], 1).dump("/dev/stdout", {format!r})
        """
        inode = os.stat(file).st_ino
        command = [sys.executable, "-c", textwrap.dedent(source)]
        subprocess.run(command, stdout=output, check=True, cwd=tmp_path)
    assert os.stat(file).st_ino == inode
    assert len(heapledger.Snapshot.load(file).traces) == 1


@pytest.mark.parametrize("folder", ["/proc/self/fd", "/dev/fd"])
def test_descriptors_by_name(tmp_path, format, folder):
    """They need not have a name any more."""
    file = tmp_path / "file"
    with open(file, "w+b") as stream:
        file.unlink()
        SNAPSHOT.dump(f"{folder}/{stream.fileno()}", format)
        assert heapledger.Snapshot.load(f"{folder}/{stream.fileno()}").traces == SNAPSHOT.traces
    assert os.listdir(tmp_path) == []


def test_errors_are_those_of_open(tmp_path, format, kind):
    for name, error in [
        (tmp_path, IsADirectoryError),
        (tmp_path / "no" / "file", FileNotFoundError),
        (tmp_path / ("x" * 256), OSError),
        ("", FileNotFoundError),
    ]:
        with pytest.raises(error) as caught:
            SNAPSHOT.dump(name, format)
        with pytest.raises(error) as expected:
            open(name, "wb")
        assert str(caught.value) == str(expected.value)
    with pytest.raises(ValueError, match="embedded null"):
        SNAPSHOT.dump("a\0b", format)
    assert os.listdir(tmp_path) == []


RESTRICTED = """
    import os, sys, heapledger
    os.chdir(sys.argv[1])
    if os.getuid() == 0:
        os.setgroups([]), os.setgid(65534), os.setuid(65534)
    snapshot = heapledger.Snapshot([], 1)
    for name, allowed in (("closed/mine", True), ("closed/new", False), ("open/theirs", False), ("open/new", True)):
        try:
            snapshot.dump(name, sys.argv[2])
        except PermissionError as error:
            assert not allowed and error.filename == name, error
        else:
            assert allowed, name
            heapledger.Snapshot.load(name)
    assert sorted(os.listdir("open")) == ["new", "theirs"], os.listdir("open")
    assert os.listdir("closed") == ["mine"]
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs files of two users")
def test_rights(tmp_path, format):
    """Who may write the file may save, and nobody else, whatever the folder allows."""
    for path, right in ((tmp_path, 0o755), (tmp_path / "closed", 0o755), (tmp_path / "open", 0o777)):
        path.mkdir(exist_ok=True)
        path.chmod(right)
    (tmp_path / "closed" / "mine").touch()
    (tmp_path / "closed" / "mine").chmod(0o666)
    (tmp_path / "open" / "theirs").touch()
    (tmp_path / "open" / "theirs").chmod(0o644)
    open_to_others(tmp_path)
    run(RESTRICTED, tmp_path, format)


def open_to_others(above):
    while above != above.parent:  # pytest's folders are closed to others
        above.chmod(above.stat().st_mode | 0o055)
        above = above.parent
        if above.name == "tmp":
            break


GROUPS = """
    import os, sys, heapledger
    os.chdir(sys.argv[1])
    os.setgroups([65533]), os.setgid(65532), os.setuid(65534)
    for name in ("ours", "theirs"):
        heapledger.Snapshot([], 1).dump(name, sys.argv[2])
        heapledger.Snapshot.load(name)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs files of two users")
def test_groups(tmp_path, format):
    """A file keeps its group where we may give it, and else our own group gets no rights to it."""
    open_to_others(tmp_path)
    tmp_path.chmod(0o777)
    for name, group in (("ours", 65533), ("theirs", 65531)):
        (tmp_path / name).touch()
        os.chown(tmp_path / name, 1001, group)
        (tmp_path / name).chmod(0o666)
    run(GROUPS, tmp_path, format)
    found = {name: os.stat(tmp_path / name) for name in ("ours", "theirs")}
    assert (found["ours"].st_uid, found["ours"].st_gid, mode(tmp_path / "ours")) == (65534, 65533, 0o666)
    assert (found["theirs"].st_gid, mode(tmp_path / "theirs")) == (65532, 0o606)


def test_rights_that_only_the_old_content_has(tmp_path, format, kind):
    file = tmp_path / "file"
    file.touch()
    file.chmod(0o6755)
    SNAPSHOT.dump(file, format)
    assert mode(file) == 0o755


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EXDEV, errno.EPERM])
def test_files_that_cannot_be_replaced(tmp_path, format, kind, number, monkeypatch):
    """They are written in place: a file that is mounted there, for one."""
    file = tmp_path / "file"

    def fail(*arguments, **named):
        raise OSError(number, "no")

    for old in (b"", b"old" * 100_000):
        file.write_bytes(old)
        before = file.stat().st_ino
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", fail)
            SNAPSHOT.dump(file, format)
        assert heapledger.Snapshot.load(file).traces == SNAPSHOT.traces
        assert file.stat().st_ino == before and os.listdir(tmp_path) == ["file"]


def test_a_file_that_is_mounted(tmp_path, format):
    file, source = tmp_path / "file", tmp_path / "source"
    file.touch(), source.touch()
    if subprocess.run(["mount", "--bind", source, file], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs the right to mount")
    try:
        SNAPSHOT.dump(file, format)
    finally:
        subprocess.run(["umount", file], check=True)
    assert heapledger.Snapshot.load(source).traces == SNAPSHOT.traces


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_folders_that_cannot_be_brought_to_the_disk(tmp_path, format, kind, number, monkeypatch):
    """Not on every file system they can: only a true failure is one."""
    real = os.fsync

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, "no")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    if number == errno.EIO:
        with pytest.raises(OSError, match="no"):
            SNAPSHOT.dump(tmp_path / "file", format)
    else:
        SNAPSHOT.dump(tmp_path / "file", format)


FULL = """
    import os, resource, signal, sys, heapledger
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if sys.argv[3] == "named":
        heapledger._files._fill_nameless = lambda *arguments: False
    if sys.argv[3] == "in place":
        def forbid(*arguments):
            raise PermissionError(13, "Permission denied")
        heapledger._files._replace = forbid
    file = sys.argv[1]
    snapshot = heapledger.Snapshot([(0, size, (("a.py", size),), 1) for size in range(20000)], 1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
    try:
        snapshot.dump(file, sys.argv[2])
    except OSError as error:
        assert error.filename == file, error
    else:
        sys.exit("there was room")
"""


@pytest.mark.parametrize("way", ["nameless", "named"])
def test_no_room(tmp_path, format, way):
    """When the file cannot be written to its end, the old one is as it was, and nothing else is left behind."""
    file = tmp_path / "file"
    run(FULL, file, format, way)
    assert os.listdir(tmp_path) == []
    SNAPSHOT.dump(file, format)
    before = file.read_bytes()
    run(FULL, file, format, way)
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == ["file"]


def test_no_room_in_place(tmp_path, format):
    """The same where the file can only be written in place."""
    file = tmp_path / "file"
    SNAPSHOT.dump(file, format)
    before = file.read_bytes()[:5000]
    file.write_bytes(before)
    run(FULL, file, format, "in place")
    assert file.read_bytes() == before and os.listdir(tmp_path) == ["file"]


def test_disk_full(tmp_path, format):
    """The same on a file system that is really full."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs the right to mount")
    try:
        file = disk / "file"
        heapledger.Snapshot([], 1).dump(file, format)
        before = file.read_bytes()
        with pytest.raises(OSError, match="No space left") as caught:
            heapledger.Snapshot([(0, n, ((f"{n}.py", n),), 1) for n in range(20000)], 1).dump(file, format)
        assert caught.value.filename == str(file)
        assert file.read_bytes() == before and os.listdir(disk) == ["file"]
    finally:
        subprocess.run(["umount", disk], check=True)


def test_interrupted(tmp_path, format, kind, monkeypatch):
    """Whatever is raised at whatever step."""
    file = tmp_path / "file"
    file.write_bytes(b"old")
    for name in ("fsync", "fchmod", "replace", "link"):
        if name == "link" and kind == "named":
            continue

        def interrupt(*arguments, **named):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(os, name, interrupt)
            with pytest.raises(KeyboardInterrupt):
                SNAPSHOT.dump(file, format)
        assert file.read_bytes() == b"old" and os.listdir(tmp_path) == ["file"]


SAVING = """
    import sys, heapledger
    snapshots = [heapledger.Snapshot([(0, kind, ((f"{n}.py", n),), 1) for n in range(3000)], kind) for kind in (1, 2)]
    if sys.argv[3] == "named":
        heapledger._files._fill_nameless = lambda *arguments: False
    print("ready", flush=True)
    while True:
        for snapshot in snapshots:
            snapshot.dump(sys.argv[1], sys.argv[2])
"""


@pytest.mark.parametrize("way", ["nameless", "named"])
def test_killed(tmp_path, format, way):
    """A process that is killed while it saves leaves the old file or the new one."""
    file = tmp_path / "file"
    SNAPSHOT.dump(file, format)
    source, kills = random.Random(7), 12
    command = [sys.executable, "-c", textwrap.dedent(SAVING), str(file), format, way]
    for _ in range(kills):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=tmp_path)
        try:
            assert child.stdout.readline() == b"ready\n"
            time.sleep(source.random() * 0.05)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()
            child.stdout.close()
        back = heapledger.Snapshot.load(file)
        assert len(back.traces) == 3000
        assert {trace.size for trace in back.traces} == {back.traceback_limit} or back.traces == SNAPSHOT.traces
    if way == "nameless":
        assert len(os.listdir(tmp_path)) <= 1 + kills // 2  # a name is given an instant before it is changed
