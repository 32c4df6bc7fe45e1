"""The HTML report: one page with a flame graph, a table and, for a series, a timeline. It needs no network.

    _subject.py   what a report is about: one capture, the difference of two, or a series
    _names.py     pseudonyms, for confidential reports
    _data.py      the call tree of the subject, encoded for the page
    _page.py      the sources in page/ and the data, joined to one page
    _server.py    the same page, with data that a server on this machine sends in pieces

``heapledger report`` and ``heapledger open`` are the commands. Nothing here is imported unless one of them runs.
"""
