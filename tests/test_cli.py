import re

from click.testing import CliRunner
from PIL import Image

import jorth
from jorth.cli import main


def test_help_lists_the_commands():
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.output


def test_version():
    assert jorth.__version__ in CliRunner().invoke(main, ["--version"]).output


def test_demo_prints_and_draws(tmp_path):
    result = CliRunner().invoke(main, ["demo", "--output", str(tmp_path / "pictures")])
    assert result.exit_code == 0, result.output
    # six rows: value, relative gap, gradient norm, ...
    rows = re.findall(r"^ *(?:gs|j|vr-j)-jobcd +(\S+) +(\S+) ", result.output, re.MULTILINE)
    assert len(rows) == 6
    assert all(float(gap) < 1e-3 for _, gap in rows)
    assert sum(float(gap) < 1e-9 for _, gap in rows) >= 3
    with Image.open(tmp_path / "pictures" / "convergence.png") as picture:
        assert min(picture.size) >= 500


def test_unknown_option():
    result = CliRunner().invoke(main, ["demo", "--sed", "1"])
    assert result.exit_code == 2
    assert "--seed" in result.output
