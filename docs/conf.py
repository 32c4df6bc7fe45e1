"""Configuration of Sphinx, which tools/docs.py runs.

Sphinx because the documentation of Python, pytest and memray is made with it, and because Material for MkDocs, the
other candidate, has announced its end. The pages are Markdown, which is read where the checkout is shown as well.
"""

project = "heapledger"
author = "heapledger contributors"
extensions = ["myst_parser"]
exclude_patterns = ["examples"]
html_theme = "furo"
html_title = "heapledger"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
myst_heading_anchors = 4


def setup(app):
    from pygments.lexers.special import TextLexer

    app.add_lexer("hex", TextLexer)  # as the bytes in format.md are marked
