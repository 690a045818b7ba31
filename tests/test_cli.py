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
    assert "1e+15" in result.output
    # plane steps approach the target: the last row is far below the first
    values = [float(value) for value in re.findall(r"│ +\+\d+ +│ +([\d.e+-]+)", result.output)]
    assert len(values) == 3
    assert values[2] < 1e-2 < values[0]
    with Image.open(tmp_path / "pictures" / "plane.png") as picture:
        assert min(picture.size) >= 500


def test_unknown_option():
    result = CliRunner().invoke(main, ["demo", "--sed", "1"])
    assert result.exit_code == 2
    assert "--seed" in result.output
