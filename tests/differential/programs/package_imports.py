"""Import large packages afresh: the import system, compiled files, classes by the hundred."""

import importlib
import sys

PACKAGES = ("email", "xml", "unittest", "logging", "concurrent", "argparse")


def main():
    for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
        del sys.modules[name]
    names = (
        "email.message",
        "xml.dom.minidom",
        "xml.etree.ElementTree",
        "unittest.case",
        "logging.config",
        "concurrent.futures",
        "argparse",
    )
    return [importlib.import_module(name) for name in names]
