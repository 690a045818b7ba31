"""The help: every option has a text, every command an example that its options accept."""

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from jorth.cli import main

NAMES = {"signature": ["-s", "--signature"], "output": ["-o", "--output"]}
"""Options that are called the same everywhere, with their short names."""


def walk(command, context):
    yield command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            part = command.get_command(context, name)
            yield from walk(part, click.Context(part, info_name=name, parent=context))


ALL = {
    context.command_path: command
    for command, context in walk(main, click.Context(main, info_name="jorth"))
}


def lines_of(command):
    block = re.search(r"Examples:\n((?:  .*\n?)+)", command.epilog or "")
    return [] if block is None else [line.strip() for line in block[1].splitlines()]


def shown(path):
    result = CliRunner().invoke(main, [*path.split()[1:], "--help"], prog_name="jorth")
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("path", ALL)
def test_every_option_has_a_help_text(path):
    for option in ALL[path].params:
        if isinstance(option, click.Option):
            assert option.help, option.name
            assert re.match(r"[A-Za-z$]", option.help), option.help
            assert option.help.rstrip().endswith((".", "]")), option.help
            for name, spellings in NAMES.items():
                if f"--{name}" in option.opts:
                    assert sorted(option.opts) == sorted(spellings)


@pytest.mark.parametrize("path", ALL)
def test_every_command_has_an_example_that_parses(path, tmp_path, monkeypatch):
    command = ALL[path]
    examples = lines_of(command)
    assert examples
    assert all(f"  {line}\n" in shown(path) for line in examples)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jorth._inputs.check_device", lambda device: None)
    names = "A.npy C.npy D.npy G.npy S.npz T.npz S.csv T.csv b.csv rows.csv source.csv target.csv"
    for name in f"{names} A.csv X.csv points.csv my-graph WN18RR".split():
        (tmp_path / name).touch()
    for line in examples:
        words = shlex.split(line)
        assert words[0] == "jorth"
        if words[1] == "COMMAND":
            continue
        context, part = click.Context(main, info_name="jorth"), main
        rest = words[1:]
        while isinstance(part, click.Group):
            part = part.get_command(context, rest.pop(0))
            assert part is not None, line
        part.make_context(part.name, rest)  # raises what a wrong option would
        assert path == "jorth" or line.startswith(path)


@pytest.mark.parametrize("path", ALL)
def test_it_fits_80_columns_and_nothing_is_cut_off(path):
    text = shown(path)
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r"\w\.\.\.$", text, re.MULTILINE), "the first sentence is too long"
