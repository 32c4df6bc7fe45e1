"""Your code first: imports in one group, libraries' memory at the line that called them, cut stacks in their place."""

import gzip
import json

import heapledger
import pytest
from heapledger import _files

MAIN, MODELS = "/srv/shop/main.py", "/srv/shop/models.py"
LIBRARY, STDLIB = "/srv/venv/lib/python3.11/site-packages/orm/query.py", "/usr/lib/python3.11/json/decoder.py"
IMPORT = "<frozen importlib._bootstrap>"
# Stacks, the oldest frame first, and the bytes of their one block.
STACKS = [
    ([(MAIN, 9), (LIBRARY, 5), (STDLIB, 3)], 1000),  # of main.py:9
    ([(MAIN, 9), (LIBRARY, 6)], 200),  # of main.py:9
    ([(MAIN, 9), (LIBRARY, 6), (MODELS, 7)], 50),  # of models.py:7
    ([(MAIN, 1), (IMPORT, 2), (LIBRARY, 1), (STDLIB, 3)], 3000),  # an import
    ([(MAIN, 1), (IMPORT, 2), (MODELS, 2), (LIBRARY, 6)], 400),  # of models.py:2, though it is being imported
    ([(MAIN, 1), (IMPORT, 2), (MODELS, 1), (IMPORT, 2)], 600),  # an import
    ([(MAIN, 9), ("<string>", 1)], 30),  # of main.py:9
    ([(STDLIB, 8), (LIBRARY, 4)], 7),  # of no line
]
MINE = {(MAIN, 9): 1230, (MODELS, 7): 50, (MODELS, 2): 400, "imports": 3600, "elsewhere": 7}
WHOLE = sum(size for _, size in STACKS)


def write(path, stacks, limit=25):
    """A file with these stacks, cut to this many frames."""
    traces = [(0, size, tuple(frames[: -limit - 1 : -1]), len(frames)) for frames, size in stacks]
    heapledger.Snapshot(traces, limit).dump(path, format="hlsnap")
    return path


@pytest.fixture
def capture(tmp_path):
    return write(tmp_path / "shop.hlsnap", STACKS)


def by_line(answer, value="size"):
    return {one["folded"] if "folded" in one else (one["file"], one["line"]): one[value] for one in answer["groups"]}


def test_mine_charges_libraries_to_the_line_that_called_them(fine, capture):
    for words in (["--mine"], ["--fold", "libraries"]):
        answer = json.loads(fine("top", capture, *words, "--json"))
        assert by_line(answer) == MINE
        assert (answer["total"]["size"], answer["fold"]) == (WHOLE, "libraries")
    text = fine("top", capture, "--mine")
    assert f"{MAIN}:9" in text and "[imports]" in text and "[no line of your code]" in text and "orm" not in text


@pytest.mark.parametrize("by", ["file", "function", "package"])
def test_mine_by_every_key(fine, capture, by):
    answer = json.loads(fine("top", capture, "--mine", "--by", by, "--json"))
    assert sum(one["size"] for one in answer["groups"]) == WHOLE
    if by == "file":
        wanted = {MAIN: 1230, MODELS: 450, "imports": 3600, "elsewhere": 7}
        assert {one.get("file", one.get("folded")): one["size"] for one in answer["groups"]} == wanted


def test_imports_are_one_group_unless_told_otherwise(fine, capture):
    answer = json.loads(fine("top", capture, "--json"))
    assert by_line(answer) == {
        "imports": 3600, (STDLIB, 3): 1000, (LIBRARY, 6): 600, (MODELS, 7): 50, ("<string>", 1): 30, (LIBRARY, 4): 7,
    }  # fmt: skip
    answer = json.loads(fine("top", capture, "--fold", "nothing", "--json"))
    assert by_line(answer)[STDLIB, 3] == 4000 and by_line(answer)[IMPORT, 2] == 600


def test_cumulative_counts_imports_for_the_lines_that_import(fine, capture):
    answer = json.loads(fine("top", capture, "--mine", "--cumulative", "--json"))
    assert by_line(answer) == MINE | {(MAIN, 9): 1280, (MAIN, 1): 4000, (MODELS, 1): 600}


def test_the_limit_counts_what_is_folded(fine, capture):
    answer = json.loads(fine("top", capture, "-n", "1", "--json"))
    assert by_line(answer) == {"imports": 3600} and answer["number_of_groups"] == 6


def test_excluding_libraries_says_what_it_loses(run, capture):
    for command in (["top", capture], ["tree", capture], ["diff", capture, capture]):
        done = run(*command, "--exclude", "*/site-packages/*")
        assert done.status == 0 and done.errors.count("--mine charges it to your lines") == 1
        assert run(*command, "--exclude", "*/site-packages/*", "--mine").errors == ""


def test_tracebacks_are_whole(fine, run, capture):
    answer = json.loads(fine("top", capture, "--by", "traceback", "--json"))
    assert len(answer["groups"]) == len(STACKS) and answer["fold"] == "nothing"
    done = run("top", capture, "--by", "traceback", "--mine")
    assert done.status == 2 and "--mine cannot be used with --by traceback" in done.errors


def test_differences_of_mine(fine, tmp_path, capture):
    grown = [*STACKS, ([(MAIN, 9), (LIBRARY, 8)], 5000), ([(MAIN, 1), (IMPORT, 2)], 10)]
    later = write(tmp_path / "later.hlsnap", grown)
    answer = json.loads(fine("diff", capture, later, "--mine", "--json"))
    assert by_line(answer, "size_diff") == {(MAIN, 9): 5000, "imports": 10}
    answer = json.loads(fine("diff", capture, later, "--json"))
    assert by_line(answer, "size_diff") == {(LIBRARY, 8): 5000, "imports": 10}
    answer = json.loads(fine("diff", capture, later, "--fold", "nothing", "--json"))
    assert by_line(answer, "size_diff") == {(LIBRARY, 8): 5000, (IMPORT, 2): 10}
    assert "no difference" in fine("diff", capture, capture, "--mine")


def branches(node):
    """{path of (file, line): size} of a tree as JSON."""
    found = {}
    for child in node["children"]:
        name = "imports" if child.get("imports") else (child["file"], child["line"])
        found[(name,)] = child["size"]
        found |= {(name, *path): size for path, size in branches(child).items()}
    return found


def test_the_tree_of_mine(fine, capture):
    answer = json.loads(fine("tree", capture, "--mine", "--threshold", "0", "--json"))
    assert answer["root"]["size"] == WHOLE
    assert branches(answer["root"]) == {
        ((MAIN, 9),): 1280,
        ((MAIN, 9), (MODELS, 7)): 50,
        ((MAIN, 1),): 400,
        ((MAIN, 1), (MODELS, 2)): 400,
        ("imports",): 3600,
    }
    text = fine("tree", capture, "--mine", "--threshold", "0")
    assert "[imports]" in text and "orm" not in text


def test_the_tree_with_imports_in_one_line(fine, capture):
    answer = json.loads(fine("tree", capture, "--threshold", "0", "--json"))
    found = branches(answer["root"])
    assert found["imports",] == 3600 and found[(MAIN, 1), (MODELS, 2), (LIBRARY, 6)] == 400
    assert not any((IMPORT, 2) in path for path in found)
    answer = json.loads(fine("tree", capture, "--threshold", "0", "--fold", "nothing", "--json"))
    found = branches(answer["root"])
    assert found[(MAIN, 1), (IMPORT, 2)] == 4000 and ("imports",) not in found


def test_the_summary_says_where_to_begin(fine, capture):
    text = fine("summary", capture)
    assert text.index("Lines of your code that hold most") < text.index(f"{MAIN}:9") < text.index(f"{MODELS}:2")
    assert "3 blocks, 410 B on average" in text and "[imports]: 3.5 KiB" in text
    assert f"more: heapledger tree --mine {capture}" in text
    lines = json.loads(fine("summary", capture, "--json"))["lines"]["live"]
    assert [(one["file"], one["line"], one["size"]) for one in lines["lines"]] == [
        (MAIN, 9, 1230), (MODELS, 2, 400), (MODELS, 7, 50),
    ]  # fmt: skip
    assert lines["imports"]["size"] == 3600 and lines["elsewhere"]["size"] == 7


def test_a_program_without_code_of_its_own(fine, tmp_path):
    _files.from_rows([(((LIBRARY, 3, "f"),), 10, 4)], "live", 1, {}).dump(tmp_path / "m.hlsnap", format="hlsnap")
    text = fine("summary", tmp_path / "m.hlsnap")
    assert "Lines of any code that hold most" in text and f"{LIBRARY}:3\n" in text
    assert f"more: heapledger tree {tmp_path}" in text


def test_the_source_of_the_lines_is_there(fine, tmp_path):
    (tmp_path / "app.py").write_text("import this\nkept.append(make(12))\n")
    written = write(tmp_path / "app.hlsnap", [([(str(tmp_path / "app.py"), 2), (LIBRARY, 3)], 10)])
    assert "kept.append(make(12))" in fine("summary", written)


# --- cut stacks ---

DEEP = [(MAIN, 1), (MAIN, 2), (LIBRARY, 3), (LIBRARY, 4), (MODELS, 5), (MODELS, 6)]
JOINED = "[cut stacks, joined by a guess]"


@pytest.fixture
def cut(tmp_path):
    """Four frames kept of six; a whole stack tells who has called the oldest."""
    stacks = [(DEEP[:3], 100), (DEEP, 1000), ([(STDLIB, line) for line in range(1, 7)], 10)]
    return write(tmp_path / "cut.hlsnap", stacks, limit=4)


def test_the_tree_joins_cut_stacks_and_says_so(fine, cut):
    text = fine("tree", cut, "--threshold", "0")
    assert JOINED in text and "[cut stacks, callers not kept]" in text and "<cut>" not in text
    found = branches(json.loads(fine("tree", cut, "--threshold", "0", "--json"))["root"])
    assert found[(*DEEP[:2], ("<cut>", 0), *DEEP[2:])] == 1000
    assert found[DEEP[0],] == 1100
    assert [path for path in found if len(path) == 1] == [(DEEP[0],), (("<cut>", 0),)]


def test_exports_join_cut_stacks_and_say_so(fine, process, cut):
    names = [f"{filename}:{line}" for filename, line in DEEP]
    joined = [*names[:2], f"{JOINED} (<cut>:0)", *names[2:]]
    assert f"{';'.join(joined)} 1000\n" in fine("export", cut, "--format", "collapsed")
    speedscope = json.loads(fine("export", cut, "--format", "speedscope"))
    frames = [one["name"] for one in speedscope["shared"]["frames"]]
    samples = [[frames[place] for place in one] for one in speedscope["profiles"][0]["samples"]]
    assert [*names[:2], JOINED, *names[2:]] in samples
    pprof = gzip.decompress(process("export", cut, "--format", "pprof", "-o", "-", capture_output=True).stdout)
    assert JOINED.encode() in pprof


def test_tables_have_stacks_as_they_are(fine, cut):
    for form in ("csv", "json"):
        assert JOINED not in fine("export", cut, "--format", form)
    (first, *_) = json.loads(fine("top", cut, "--by", "traceback", "--json"))["groups"]
    assert len(first["frames"]) == 4
    assert "4 frames" in fine("show", cut, first["id"])
    # Nobody knows which line has called the part that was kept, so no line is charged for a guess.
    assert by_line(json.loads(fine("top", cut, "--mine", "--json"))) == {
        DEEP[5]: 1000, DEEP[1]: 100, "elsewhere": 10,
    }  # fmt: skip


def test_one_frame_is_not_joined(fine, tmp_path):
    text = fine("tree", write(tmp_path / "one.hlsnap", [(DEEP, 10), (DEEP[:3], 20)], limit=1))
    assert "cut" not in text
