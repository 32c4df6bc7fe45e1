"""Compile patterns and keep matches, groups and scanners."""

import re


def main():
    re.purge()
    patterns = [re.compile(rf"(?P<first>[a-{chr(98 + index)}]+)(\d{{{index}}})?|x{index}") for index in range(20)]
    text = "abc12 def345 x7 " * 20
    matches = [match for pattern in patterns for match in pattern.finditer(text)]
    groups = [match.groupdict() for match in matches] + [match.groups() for match in matches]
    replaced = [pattern.sub(lambda match: match.group().upper() * 2, text) for pattern in patterns]
    failures = []
    for source in ("(", "[a", "*", "(?P<a>x)(?P<a>y)", "a{9,1}"):
        try:
            re.compile(source)
        except re.error as error:
            failures.append(error)
    return matches, groups, replaced, failures, re.split(r"\s+", text), patterns
