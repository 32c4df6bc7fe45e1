"""Write a script that completes commands, options and their values in bash, zsh or fish."""

from __future__ import annotations

import argparse

from heapledger.command import SUMMARIES, _table, make_command_parser, make_parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EXAMPLE = """\
  source <(heapledger completion bash)                                        # in ~/.bashrc
  heapledger completion zsh > ~/.zfunc/_heapledger                            # a folder of $fpath
  heapledger completion fish > ~/.config/fish/completions/heapledger.fish"""

FILES = ("FILE", "OLD", "NEW", "OUT", "PAGE", "SCRIPT")  # what argparse calls arguments that are names of files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=list(SHELLS), help="the shell that the script is for")


class Option:
    """An option of a command, or one of its arguments, which has no names."""

    def __init__(self, action: argparse.Action) -> None:
        self.names: Sequence[str] = action.option_strings
        self.choices: list[str] | None = None if action.choices is None else list(map(str, action.choices))
        self.takes_value: bool = action.nargs != 0
        self.is_file: bool = action.metavar in FILES
        self.repeats: bool = isinstance(action, argparse._AppendAction) or action.nargs in (
            "+",
            "*",
            argparse.REMAINDER,
        )
        self.title: str | tuple[str, ...] = action.metavar or action.dest
        self.help: str = " ".join((action.help or "").replace("%%", "%").split())


def commands() -> list[tuple[str, str, list[Option]]]:
    """[(name, summary, [Option, ...]), ...]"""
    found = []
    for name, summary in SUMMARIES.items():
        _, parser = make_command_parser(name)
        found.append((name, summary, [Option(action) for action in parser._actions]))
    return found


def own_options() -> list[Option]:
    """[Option, ...] of heapledger without a command."""
    return [option for option in map(Option, make_parser()._actions) if option.names]


# bash


def _bash_command(name: str, options: list[Option]) -> list[str]:
    lines = [f"    {name})", "        case $previous in"]
    for option in options:
        if option.names and option.takes_value:
            if option.choices is not None:
                what = f"words='{' '.join(option.choices)}'"
            else:
                what = "files=yes" if option.is_file else "return 0"
            lines.append(f"        {'|'.join(option.names)}) {what} ;;")
    names = " ".join(name for option in options for name in option.names)
    values = " ".join(choice for option in options if not option.names for choice in option.choices or ())
    lines.append("        *)")
    lines.append(f"            if [[ $current == -* ]]; then words='{names}'; else words='{values}'; fi")
    if any(option.is_file and not option.names for option in options):
        lines.append("            [[ $current == -* ]] || files=yes")
    lines += ["            ;;", "        esac", "        ;;"]
    return lines


def bash() -> str:
    names = " ".join([*SUMMARIES, *(name for option in own_options() for name in option.names)])
    lines = [
        "# Completion of heapledger for bash: source <(heapledger completion bash)",
        "_heapledger() {",
        "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words='' files='' found",
        "    # --option=value is three words here",
        "    [[ $current == = ]] && current=''",
        "    [[ $previous == = ]] && previous=${COMP_WORDS[COMP_CWORD-2]}",
        "    COMPREPLY=()",
        "    if ((COMP_CWORD == 1)); then",
        f"        words='{names}'",
        "    else",
        "    case ${COMP_WORDS[1]} in",
    ]
    for name, _, options in commands():
        lines += _bash_command(name, options)
    lines += [
        "    esac",
        "    fi",
        '    [[ -z $words ]] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")',
        "    if [[ -n $files ]]; then",
        "        compopt -o filenames",
        '        while IFS= read -r found; do COMPREPLY+=("$found"); done < <(compgen -f -- "$current")',
        "    fi",
        "    return 0",
        "}",
        "complete -F _heapledger heapledger",
    ]
    return "\n".join(lines)


# zsh


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _zsh_text(text: str) -> str:
    """A description inside an argument of _arguments, where brackets and colons mean something."""
    return "".join(f"\\{character}" if character in "[]:\\" else character for character in text)


def _zsh_value(option: Option) -> str:
    if option.choices is not None:
        return f"{option.title}:({' '.join(option.choices)})"
    return f"{option.title}:{'_files' if option.is_file else ' '}"


def _zsh_option(option: Option) -> Iterator[str]:
    if not option.names:
        yield _quote(f"{'*' if option.repeats else ''}:{_zsh_value(option)}")
        return
    others = "" if option.repeats else f"({' '.join(option.names)})"
    for name in option.names:
        value = f":{_zsh_value(option)}" if option.takes_value else ""
        joint = "=" if option.takes_value and name.startswith("--") else ""  # the value may follow both ways
        yield _quote(f"{'*' if option.repeats else others}{name}{joint}[{_zsh_text(option.help)}]{value}")


def zsh() -> str:
    own = {name: option.help for option in own_options() for name in option.names}
    lines = ["#compdef heapledger", "# Completion of heapledger for zsh.", "_heapledger() {"]
    lines.append("    local -a commands options")
    for array, described in (("commands", SUMMARIES), ("options", own)):
        lines.append(f"    {array}=(")
        lines += [f"        {_quote(f'{name}:{_zsh_text(text)}')}" for name, text in described.items()]
        lines.append("    )")
    lines += [
        "    if ((CURRENT == 2)); then",
        "        if [[ $PREFIX == -* ]]; then _describe -o option options; else _describe command commands; fi",
        "        return",
        "    fi",
    ]
    lines += ["    local command=$words[2]", "    shift words", "    ((CURRENT--))", "    case $command in"]
    for name, _, options in commands():
        specifications = [text for option in options for text in _zsh_option(option)]
        lines.append(f"    {name})")
        lines.append("        _arguments -s " + " \\\n            ".join(specifications))
        lines.append("        ;;")
    lines += ["    esac", "}", 'if [[ $funcstack[1] == _heapledger ]]; then _heapledger "$@"']
    lines += ["else compdef _heapledger heapledger", "fi"]
    return "\n".join(lines)


# fish


def _fish_option(condition: str, option: Option) -> str:
    line = f"complete -c heapledger -n {condition}"
    for name in option.names:
        line += f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}"
    if option.takes_value and option.names:
        line += " -r" if option.is_file else " -x"
    if option.choices is not None:
        line += f" -a {_quote(' '.join(option.choices))}"
    elif option.is_file:
        line += " -F"
    return line + f" -d {_quote(option.help)}"


def fish() -> str:
    lines = ["# Completion of heapledger for fish.", "complete -c heapledger -f"]
    lines += [_fish_option("__fish_use_subcommand", option) for option in own_options()]
    for name, summary, options in commands():
        lines.append(f"complete -c heapledger -n __fish_use_subcommand -a {name} -d {_quote(summary)}")
        lines += [_fish_option(f"'__fish_seen_subcommand_from {name}'", option) for option in options]
    return "\n".join(lines)


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}


def run(options: argparse.Namespace) -> int:
    _table.show(SHELLS[options.shell]())
    return 0
