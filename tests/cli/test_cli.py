import re

from click.testing import CliRunner
from PIL import Image

import jorth
from jorth.cli import COMMANDS, main


def test_help_lists_the_commands():
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert all(f"\n  {name} " in result.output for name in COMMANDS)


def test_version():
    assert jorth.__version__ in CliRunner().invoke(main, ["--version"]).output


def test_demo_prints_and_draws(tmp_path):
    result = CliRunner().invoke(main, ["demo", "--output", str(tmp_path / "pictures")])
    assert result.exit_code == 0, result.output
    # six rows: value, relative gap, gradient norm, ...; a slow machine may reach a time limit
    rows = re.findall(
        r"^ *(?:gs|j|vr-j)-jobcd +\S+ +(\S+) .* (\w+) *$", result.output, re.MULTILINE
    )
    assert len(rows) == 6
    assert all(float(gap) < (1e-9 if ended == "converged" else 1) for gap, ended in rows)
    assert "converged" in [ended for _, ended in rows]
    with Image.open(tmp_path / "pictures" / "convergence.png") as picture:
        assert min(picture.size) >= 500


def test_unknown_option():
    result = CliRunner().invoke(main, ["demo", "--sed", "1"])
    assert result.exit_code == 2
    assert "--seed" in result.output


def test_every_command_has_its_help():
    for name in COMMANDS:
        result = CliRunner().invoke(main, [name, "--help"])
        assert result.exit_code == 0, result.output
    assert CliRunner().invoke(main, ["nothing"]).exit_code == 2
