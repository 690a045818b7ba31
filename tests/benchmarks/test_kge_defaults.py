"""The budgets of the comparison of methods, and the page from its records."""

from pathlib import Path

import pytest

from benchmarks.kge_defaults import METHODS, RATES, Seeds, trials
from benchmarks.kge_defaults import tests as jobs_of
from benchmarks.kge_defaults_page import FIRST, page, read

DOCS = Path(__file__).resolve().parents[2] / "docs"


def trial(method, rate, valid, queries):
    job = {"graph": "g", "stage": "trial of methods", "method": method, "seed": 1000}
    job["changes"] = {"relation_lr": rate}
    return {"job": job, "epochs": 100, "queries": queries, "valid": valid}


def records():
    seconds = {"j-jobcd": 0.1, "vr-j-jobcd": 0.2, "csdm": 0.4}
    timed = {"job": {"graph": "g", "stage": "timing", "method": "j-jobcd"}, "epochs": 100}
    rates = [("j-jobcd", 1, 0.6, 1000), ("j-jobcd", 2, 0.7, 1000)]
    rates += [("vr-j-jobcd", 3, 0.5, 4000), ("csdm", 4, 0.8, 1000), ("csdm", 5, 0.1, 1000)]
    tested = trial("j-jobcd", 6, 0.9, 1000)  # its validation MRR chooses nothing
    tested["job"]["stage"] = "defaults"
    return [timed | {"seconds_per_epoch": seconds}, *(trial(*rate) for rate in rates), tested]


def test_trials_of_every_method_have_the_same_number_and_time():
    jobs = [job for job in trials("g", records(), 0) if job.stage == "trial of methods"]
    for method, epochs in zip(METHODS, (100, 50, 25), strict=True):
        own = [job for job in jobs if job.method == method]
        assert [job.changes["relation_lr"] for job in own] == list(RATES)
        assert {job.epochs for job in own} == {epochs}


@pytest.mark.parametrize(
    ("method", "passes", "seconds"), [("vr-j-jobcd", 25, 50), ("csdm", 100, 25)]
)
def test_budgets_are_those_of_jjobcd(method, passes, seconds):
    jobs = list(jobs_of("g", records(), Seeds(1, 1, 2), 0))
    own = [job for job in jobs if job.stage.startswith("equal") and job.method == "j-jobcd"]
    assert [(job.epochs, job.changes) for job in own] == 2 * [(100, {"relation_lr": 2})]
    found = {job.stage: job.epochs for job in jobs if job.method == method}
    assert found == {"equal passes": passes, "equal time": seconds}


def test_the_best_preset_is_chosen_among_trials_of_jjobcd():
    (best,) = (j for j in jobs_of("g", records(), Seeds(1, 0, 0), 0) if j.stage == "best preset")
    assert best.changes == {"relation_lr": 2}


def test_a_method_has_its_best_rate():
    jobs = jobs_of("g", records(), Seeds(0, 0, 1), 0)
    assert {job.method: job.changes["relation_lr"] for job in jobs} == {
        "j-jobcd": 2,
        "vr-j-jobcd": 3,
        "csdm": 4,
    }


def test_the_page_is_that_of_the_records():
    made = page(read(DOCS / "report" / "kge_defaults.jsonl"), read(DOCS / FIRST))
    assert (DOCS / "results" / "kge_defaults.md").read_text() == made + "\n"
