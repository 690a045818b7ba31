"""`benchmarks/roofline.py` and `growth.py` on small sizes: rows, roofs, failures, pictures."""

import json
import math

import pytest

from benchmarks import growth, kernels, roofline, work

MACHINE = {
    "device": "cpu",
    "name": "a machine",
    "copy": [(100, 50.0), (1000, 20.0), (10000, 10.0)],
    "product": {"float64": 200.0, "float32": 400.0},
}


def kernel(counted, measure=lambda: 4.0):
    return kernels.Kernel("kernel", "3", counted, measure)


def test_the_roof_is_that_of_the_memory_the_matrices_fit_in():
    """40 bytes at 50, 20, 10 bytes a second, beyond all sizes as for the largest; 100 operations
    at 200 a second."""
    for held, moving in ((100, 0.8), (101, 2.0), (10000, 4.0), (10**6, 4.0)):
        row = roofline.measured(kernel(work.Work(100, 40, held)), MACHINE)
        assert row["share"] == pytest.approx(moving / 4)
        assert row["bound"] == "bytes"
    row = roofline.measured(kernel(work.Work(400, 40, 100)), MACHINE)
    assert row["share"] == pytest.approx(0.5)
    assert row["bound"] == "flops"


def test_a_kernel_that_fails_is_a_row():
    def broken():
        raise RuntimeError("no such device")

    row = roofline.measured(kernel(work.Work(1, 1, 1), broken), MACHINE)
    assert row["error"] == "RuntimeError: no such device"
    assert "no such device" in roofline.line(row)


def test_a_run_and_its_picture(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(roofline.COPIED, "cpu", (2**16, 2**20))
    monkeypatch.setitem(roofline.MULTIPLIED, "cpu", 64)
    monkeypatch.setattr(kernels, "ENTITIES", 40)
    monkeypatch.setattr(kernels, "QUERIES", 3)
    machine = roofline.measure("cpu", kernels.cpu_kernels(sizes=(200,), m=60))
    assert [row.get("error") for row in machine["rows"]] == [None] * 11
    assert all(0 < row["share"] < 2 and row["seconds"] > 0 for row in machine["rows"])
    assert len(capsys.readouterr().out.splitlines()) == 4 + 1 + 11
    machine["rows"].append({"kernel": "broken", "error": "RuntimeError"})
    roofline.draw(json.loads(json.dumps(machine)), tmp_path / "roof.png")
    assert (tmp_path / "roof.png").stat().st_size > 10_000


def test_the_list_for_cuda_counts_without_a_device():
    rows = list(kernels.cuda_kernels(sizes=(64,)))
    assert {row.name for row in rows} >= {
        "Jacobi round, replayed",
        "batch tournament, launch",
        "UltraE scores",
    }
    assert all(math.isfinite(row.work.flops / row.work.bytes) for row in rows)
    doubles = {
        (row.name, row.size): row.work.bytes for row in rows if str(row.dtype) == "torch.float64"
    }
    for row in rows:
        if str(row.dtype) == "torch.float32":
            assert 2 * row.work.bytes == doubles[row.name, row.size]


def test_exponents_and_the_picture_of_growth(tmp_path):
    assert growth.exponent([(n, 3e-9 * n**2.5) for n in (50, 100, 200)]) == pytest.approx(2.5)
    found = growth.measure({"gradient": growth.sum_gradient, "nothing": lambda n: None}, (100, 200))
    assert list(found) == ["gradient"]
    assert [size for size, _ in found["gradient"]] == [100, 200]
    growth.draw({"n": found, "N": found}, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 10_000
