"""Build the documentation as a site, strictly: make docs.

The pages are the Markdown files of docs/, README.md and the others in PAGES. In the checkout a link is a path, so it
works wherever the checkout is shown. On the site README.md is index.md, and so on. So this script copies the pages to
build/docs, adapts their links, and lets Sphinx build the site in build/site from the copies. Links to other files of
the checkout (a folder, a script) become plain text. The page of the commands' options is the output of their --help.

docs/contents.txt is the navigation. It sorts the pages by what a reader wants: tutorial, how-to guides, reference,
explanation (https://diataxis.fr). A page that it does not list appears below "More".
"""

import os
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys

import heapledger.command

ROOT = pathlib.Path(__file__).resolve().parent.parent
STAGE = ROOT / "build" / "docs"
SITE = ROOT / "build" / "site"
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "bench/RESULTS.md": "results.md",
}
LINK = re.compile(r"\[([^\]\n]*(?:\n[^\]\n]*)?)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")
CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def place_on_site(path):
    """Where a file of the checkout is on the site; None if it is not there."""
    if path in PAGES:
        return PAGES[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else None


def rewrite(markdown, path):
    """The text of the checkout's file `path` with links as they are on the site."""
    here = posixpath.dirname(place_on_site(path))

    def link(match):
        text, target, anchor = match.groups()
        there = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        place = place_on_site(there)
        if place is None and (ROOT / there).exists():
            return text
        return f"[{text}]({posixpath.relpath(place or there, here or '.')}{anchor or ''})"

    parts = CODE.split(markdown)
    parts[::2] = [LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts)


def help_of_commands():
    """A page with what each command's --help says."""

    def said(*arguments):
        environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
        command = [sys.executable, "-m", "heapledger", *arguments, "--help"]
        return subprocess.check_output(command, cwd="/", env=environment, text=True)

    parts = ["# Options of the commands\n", f"```text\n{said()}```\n"]
    parts += [f"## {name}\n\n```text\n{said(name)}```\n" for name in heapledger.command.SUMMARIES]
    return "\n".join(parts)


def stage():
    """Fill build/docs."""
    shutil.rmtree(STAGE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", STAGE)
    documents = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")]
    for path in [*PAGES, *documents]:
        (STAGE / place_on_site(path)).write_text(rewrite((ROOT / path).read_text(), path))
    (STAGE / "options.md").write_text(help_of_commands())
    contents = (ROOT / "docs" / "contents.txt").read_text()
    placed = set(re.findall(r"^[\w/-]+$", contents, re.MULTILINE))
    others = sorted({path.removeprefix("docs/").removesuffix(".md") for path in documents} - placed)
    if others:
        contents += "\n".join(["", "```{toctree}", ":hidden:", ":caption: More", "", *others, "```", ""])
    index = STAGE / "index.md"
    index.write_text(index.read_text() + contents)


def main():
    stage()
    shutil.rmtree(SITE, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "--builder=html", "--quiet", "--fail-on-warning", "--keep-going"]
    status = subprocess.call([*command, "--nitpicky", "--doctree-dir", ROOT / "build" / "doctrees", STAGE, SITE])
    if status == 0:
        print(f"{SITE.relative_to(ROOT)}/index.html")
    return status


if __name__ == "__main__":
    sys.exit(main())
