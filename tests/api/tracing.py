"""What tests ask of the running ledger."""

import sys

import heapledger


def traces_of(size):
    return [trace for trace in heapledger._get_traces() if trace[1] == size]


def frames_of_size(size):
    found = traces_of(size)
    assert len(found) == 1, found
    return found[0][2]


def line():
    return sys._getframe(1).f_lineno
