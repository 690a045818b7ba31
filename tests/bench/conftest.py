"""Quick runs that the tests of the report and of the browser share."""

import pytest

from jorth.bench import run_cells, write_report
from jorth.bench.matrices.cells import Crossing, MatrixCell, hevp_cells, quick_cells


@pytest.fixture
def no_warm_up(monkeypatch):
    monkeypatch.setattr("jorth.bench.core.runs.warm_up", lambda kind, cells: None)


@pytest.fixture(scope="session")
def quick_run(tmp_path_factory):
    """The quick grids, a second theta, a cell that fails and a data set that is not there."""
    folder = tmp_path_factory.mktemp("quick")
    crossing = Crossing(max_evaluations=5, thetas=(1.0, 20.0))
    cells = [*quick_cells("hevp", crossing), *quick_cells("procrustes", crossing)]
    cells += hevp_cells([("gisette", 3000, 1000, 500)], Crossing(max_evaluations=5))
    # more columns than the digits have: an error, not missing data
    cells.append(
        MatrixCell(
            problem="trace",
            data="digits",
            m=20,
            n=70,
            p=35,
            method="UMCM",
            ridge=0.1,
            max_evaluations=5,
        )
    )
    summary = run_cells(cells, folder, data_dir=folder / "nothing")
    assert summary.finished == len(cells)
    return folder


@pytest.fixture(scope="session")
def written(quick_run, tmp_path_factory):
    """The page of the quick run."""
    return write_report(quick_run, tmp_path_factory.mktemp("page"))
