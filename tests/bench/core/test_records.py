"""Rows on disk."""

import json
import math

import pytest

from jorth.bench.core.records import append_row, read_rows, remaining
from jorth.bench.matrices.cells import MatrixCell

CELLS = [
    MatrixCell(problem="race", data="randn", m=4, n=4, p=2, method=name, max_evaluations=3)
    for name in ("UMCM", "ADMM")
]


def row(cell, outcome="done", **more):
    return {"key": cell.key, "cell": cell.__dict__, "outcome": outcome, **more}


def cell_of(found):
    return MatrixCell.from_json(found["cell"])


def test_round_trip(tmp_path):
    path = tmp_path / "new" / "runs.jsonl"
    append_row(
        path, row(CELLS[0], value=1.2345678901234567e-300, text="ü\n2", numbers=[1, 2.5, None])
    )
    append_row(path, row(CELLS[1]))
    first, second = read_rows(path)
    assert first["value"] == 1.2345678901234567e-300
    assert first["text"] == "ü\n2"
    assert cell_of(first) == CELLS[0]
    assert cell_of(second) == CELLS[1]
    assert read_rows(path.parent) == [first, second]


def test_what_json_has_not_becomes_null(tmp_path):
    path = tmp_path / "runs.jsonl"
    append_row(path, row(CELLS[0], value=math.nan, history={"value": [1.0, -math.inf]}))

    def refuse(text):
        raise AssertionError(text)

    found = json.loads(path.read_text(), parse_constant=refuse)
    assert found["value"] is None
    assert found["history"]["value"] == [1.0, None]


def test_a_torn_last_line_is_passed_over_and_then_cut_off(tmp_path):
    path = tmp_path / "runs.jsonl"
    append_row(path, row(CELLS[0]))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"key": "half of a r')
    assert [cell_of(r) for r in read_rows(path)] == CELLS[:1]
    append_row(path, row(CELLS[1]))
    assert [cell_of(r) for r in read_rows(path)] == CELLS
    assert path.read_bytes().startswith(whole)


def test_a_torn_character(tmp_path):
    path = tmp_path / "runs.jsonl"
    append_row(path, row(CELLS[0]))
    path.write_bytes(path.read_bytes() + '{"text": "ü'.encode()[:-1])
    assert len(read_rows(path)) == 1


def test_a_broken_line_inside_is_an_error_with_its_number(tmp_path):
    path = tmp_path / "runs.jsonl"
    append_row(path, row(CELLS[0]))
    path.write_text(path.read_text() + "[1, 2]\n" + path.read_text())
    with pytest.raises(ValueError, match=r"runs.jsonl, line 2: not a row"):
        read_rows(path)


def test_no_run(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no run at .*nowhere"):
        read_rows(tmp_path / "nowhere")


def test_the_last_row_of_a_cell_counts(tmp_path):
    path = tmp_path / "runs.jsonl"
    append_row(path, row(CELLS[0], "missing"))
    append_row(path, row(CELLS[1], "failed"))
    assert remaining(CELLS, path) == CELLS[:1]
    assert remaining(CELLS * 2, path, retry_failed=True) == CELLS
    append_row(path, row(CELLS[0]))
    assert remaining(CELLS, path) == []
    assert [r["outcome"] for r in read_rows(path)] == ["failed", "done"]
