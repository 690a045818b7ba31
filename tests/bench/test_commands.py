"""`jorth bench` and `jorth report` from the command line."""

import json

import pytest
from click.testing import CliRunner

from jorth.bench import read_rows
from jorth.bench.matrices import runner as runner_module
from jorth.cli import main


def jorth(*arguments, **options):
    return CliRunner().invoke(main, list(map(str, arguments)), **options)


def cells_of(folder):
    return [row["cell"] for row in read_rows(folder)]


def test_hevp_crosses_and_resumes(tmp_path):
    arguments = (
        "bench",
        "hevp",
        "--data",
        "randn",
        "--size",
        "9x6",
        "--size",
        "8x4",
        "--p-share",
        0.5,
        "--solver",
        "umcm",
        "--solver",
        "gs-jobcd",
        "--seed",
        0,
        "--seed",
        3,
        "--theta",
        1,
        "--theta",
        4,
        "--max-evaluations",
        3,
        "-o",
        tmp_path,
    )
    result = jorth(*arguments)
    assert result.exit_code == 0, result.output
    cells = cells_of(tmp_path)
    assert len(cells) == 2 * 2 * (3 + 2)
    assert {(c["m"], c["n"], c["p"]) for c in cells} == {(9, 6, 3), (8, 4, 2)}
    assert {c["seed"] for c in cells} == {0, 3}
    assert {c["max_time"] for c in cells} == {None}
    assert "20 of 20 runs" in result.output
    assert "randn(9-6-3)" in result.output
    content = (tmp_path / "runs.jsonl").read_text()
    again = jorth(*arguments)
    assert "20 of 20 runs" in again.output
    assert "randn(9-6-3)" not in again.output
    assert (tmp_path / "runs.jsonl").read_text() == content


def test_the_papers_protocol_lists_what_is_missing(tmp_path):
    result = jorth(
        "bench",
        "hevp",
        "--protocol",
        "paper",
        "--data",
        "sector",
        "--data",
        "cnncaltech",
        "--solver",
        "CSDM",
        "--appendix",
        "--data-dir",
        tmp_path / "empty",
        "-o",
        tmp_path,
    )
    assert result.exit_code == 1, result.output
    assert "none of the 12 runs has a result: data set cnncaltech" in result.output
    rows = read_rows(tmp_path)
    assert [row["outcome"] for row in rows] == ["missing"] * 12
    assert {row["cell"]["max_time"] for row in rows} == {90.0}
    assert {row["cell"]["p"] for row in rows} == {500, 700, 900}
    assert " ".join(result.output.split()).count("data set sector is not at hand") == 1


def test_quick_and_report(tmp_path):
    result = jorth(
        "bench",
        "hevp",
        "--quick",
        "--solver",
        "CSDM",
        "--solver",
        "J-JOBCD",
        "--problem",
        "race",
        "-o",
        tmp_path,
    )
    assert result.exit_code == 0, result.output
    assert f"jorth report {tmp_path}" in result.output
    assert len(cells_of(tmp_path)) == 4
    written = jorth("report", tmp_path)
    assert written.exit_code == 0, written.output
    assert (tmp_path / "report" / "index.html").exists()
    elsewhere = jorth("report", tmp_path / "runs.jsonl", "-o", tmp_path / "there")
    assert elsewhere.output.strip() == str(tmp_path / "there" / "index.html")
    assert len(list((tmp_path / "there").glob("*.png"))) == 2


def test_procrustes(tmp_path):
    arguments = (
        "--n",
        4,
        "--condition",
        2,
        "--condition",
        9,
        "--solver",
        "ADMM",
        "--time-limit",
        0.05,
    )
    result = jorth("bench", "procrustes", *arguments, "-o", tmp_path)
    assert result.exit_code == 0, result.output
    assert [(c["n"], c["condition"], c["max_time"]) for c in cells_of(tmp_path)] == [
        (4, 2.0, 0.05),
        (4, 9.0, 0.05),
    ]


def test_probe_crosses_and_resumes(tmp_path):
    arguments = (
        "bench",
        "probe",
        "--data",
        "randn",
        "--size",
        "14x6",
        "--size",
        "12x5",
        "--solver",
        "umcm",
        "--solver",
        "vr-j-jobcd",
        "--seed",
        0,
        "--seed",
        3,
        "--alpha",
        2,
        "--scale",
        "fit",
        "--ridge",
        0.1,
        "--max-evaluations",
        2,
        "-o",
        tmp_path,
    )
    result = jorth(*arguments)
    assert result.exit_code == 0, result.output
    cells = cells_of(tmp_path)
    assert len(cells) == 2 * 2 * 2
    assert {(c["m"], c["n"], c["p"]) for c in cells} == {(14, 6, 5), (12, 5, 4)}
    assert {(c["problem"], c["alpha"], c["scale"], c["ridge"]) for c in cells} == {
        ("probe", 2.0, "fit", 0.1)
    }
    content = (tmp_path / "runs.jsonl").read_text()
    assert "8 of 8 runs" in jorth(*arguments).output
    assert (tmp_path / "runs.jsonl").read_text() == content


def test_the_papers_probes_list_what_is_missing(tmp_path):
    result = jorth(
        "bench",
        "probe",
        "--protocol",
        "paper",
        "--data",
        "news20",
        "--data",
        "mnist",
        "--data-dir",
        tmp_path / "no",
        "--solver",
        "CSDM",
        "-o",
        tmp_path,
    )
    assert result.exit_code == 1, result.output
    assert [row["outcome"] for row in read_rows(tmp_path)] == ["missing"] * 2
    assert [(c["data"], c["m"], c["n"], c["p"], c["scale"]) for c in cells_of(tmp_path)] == [
        ("mnist", 6000, 92, 85, 1.0),
        ("news20", 7967, 50, 45, 1.0),
    ]


def test_quick_probe(tmp_path):
    result = jorth(
        "bench",
        "probe",
        "--quick",
        "--scale",
        "0.5",
        "--solver",
        "J-JOBCD",
        "--max-evaluations",
        3,
        "-o",
        tmp_path,
    )
    assert result.exit_code == 0, result.output
    assert [(c["data"], c["scale"]) for c in cells_of(tmp_path)] == [
        ("randn", 0.5),
        ("digits", 0.5),
    ]


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path, monkeypatch, no_warm_up):
    real, calls = runner_module.minimize, []

    def third_is_interrupted(*arguments, **options):
        calls.append(options)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(runner_module, "minimize", third_is_interrupted)
    arguments = ("bench", "hevp", "--quick", "--problem", "race", "-o", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["/somewhere/bin/jorth", *arguments])
    result = jorth(*arguments)
    assert result.exit_code == 130
    assert "2 of 12 runs" in result.output
    assert (
        f"the same command continues:\n    jorth bench hevp --quick --problem race -o {tmp_path}"
        in result.output
    )
    assert len(cells_of(tmp_path)) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bench", "hevp", "--data", "fashion"], "--data must be one of randn, digits, cifar"),
        (["bench", "hevp", "--data", "news20"], "--size is needed for news20"),
        (["bench", "hevp", "--size", "10"], "must be rows x columns, as 1000x780; got '10'"),
        (["bench", "hevp", "--appendix"], "--appendix needs --protocol paper"),
        (
            ["bench", "hevp", "--protocol", "paper", "--size", "9x9"],
            "--protocol paper fixes --size",
        ),
        (["bench", "hevp", "--solver", "sgd"], "solver must be one of UMCM"),
        (["bench", "hevp", "--p-share", "1"], "--p-share"),
        (["bench", "procrustes", "--time-limit", "0"], "--time-limit"),
        (
            ["bench", "probe", "--data", "tdt2"],
            "--size is needed for tdt2: the paper has no structural probe with it",
        ),
        (
            ["bench", "probe", "--protocol", "paper", "--p-share", "0.5"],
            "--protocol paper fixes --size",
        ),
        (["bench", "probe", "--scale", "best"], "must be a positive number or fit; got 'best'"),
        (["bench", "probe", "--scale", "0"], "must be a positive number or fit; got '0'"),
        (["bench", "probe", "--ridge", "-1"], "--ridge"),
        (["bench", "probe", "--alpha", "0"], "--alpha"),
        (["bench", "speed", "--threads", "0"], "--threads"),
        (["bench", "speed", "--solver", "ADMM"], "'ADMM' is not one of 'gs-jobcd', 'j-jobcd'"),
    ],
)
def test_usage_errors(arguments, message):
    result = jorth(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_report_of_nothing_is_one_line(tmp_path):
    for run, message in ((tmp_path / "no", "no run at"), (tmp_path, "nothing to report yet")):
        result = jorth("report", run)
        assert result.exit_code == 1
        assert message in result.output
        assert result.output.count("\n") == 1
    (tmp_path / "runs.jsonl").write_text(json.dumps([1]) + "\n")
    assert "runs.jsonl, line 1: not a row" in jorth("report", tmp_path).output


@pytest.mark.parametrize("name", ["hevp", "probe", "procrustes", "speed"])
def test_help(name):
    result = jorth("bench", name, "--help")
    assert result.exit_code == 0
    assert "--time-limit" in result.output
