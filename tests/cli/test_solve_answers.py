"""`jorth solve` finds the answer wherever it lies, or says what it did not search."""

import json
from itertools import product

import numpy as np
import pytest

import jorth
from tests.cli.conftest import N, solve

COMPONENTS = list(product((1, -1), repeat=2))
SIGNATURES = {
    "5,3": jorth.Signature(5, 3),
    "lorentz": jorth.Signature.lorentz(N),
    "+-+-++-+": jorth.Signature.of([1, -1, 1, -1, 1, 1, -1, 1]),
}
NOISE = 0.01
WIDTH = 80


def record(name="X.json"):
    with open(name) as stream:
        return json.load(stream)


def plant(signature, component, columns=N):
    rng = np.random.default_rng(3)
    X = jorth.random_point(signature, cond=5.0, component=component, seed=1)[:, :columns]
    source = rng.standard_normal((40, N))
    target = source @ X + NOISE * rng.standard_normal((40, columns))
    np.save("source.npy", source)
    np.save("target.npy", target)
    return source, target, X


def shown(result):
    assert max(map(len, result.output.splitlines())) <= WIDTH
    return " ".join(result.output.split())


def r_squared(target, moved):
    return 1 - np.square(target - moved).sum() / np.square(target - target.mean(axis=0)).sum()


# -- procrustes


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("text", SIGNATURES)
def test_the_best_alignment_is_found_in_every_component(folder, text, component):
    """One run from the identity stays in its component: the misfit is above 1 in the others."""
    source, target, X = plant(SIGNATURES[text], component)
    output = shown(solve("procrustes", "source.npy", "target.npy", "-s", text, "-o", "X.npy"))
    found, about = np.load("X.npy"), record()
    assert np.abs(found - X).max() < 10 * NOISE
    assert about["value"] < NOISE**2 * N
    assert about["method"] == "every-component"
    assert about["component"] == list(component)
    assert about["m"] == 40
    assert about["r_squared"] == pytest.approx(r_squared(target, source @ found), abs=1e-12)
    assert about["identity_r_squared"] == pytest.approx(r_squared(target, source), rel=1e-12)
    identity_value = np.square(source - target).sum() / 80
    assert about["identity_value"] == pytest.approx(identity_value, rel=1e-12)
    signature = SIGNATURES[text]
    assert f"40 rows, X {N} x {N}, p = {signature.p}, q = {signature.q}" in output
    assert f"R^2 {about['r_squared']:.6g}; the identity has" in output
    assert f"component {short(component)}" in output
    assert "ruled out by a bound" in output
    assert 0 <= about["bound"] <= about["value"]
    assert about["gap"] <= 1e-6
    assert f"gap {about['gap']:.2g}; no X has a value below {about['bound']:.8g}" in output
    assert "certified: no X is better" in output


def short(component):
    return f"({','.join('+' if sign > 0 else '-' for sign in component)})"


@pytest.mark.parametrize("extra", [["--method", "auto"], ["--start", "start.npy"]])
def test_one_run_says_which_component_it_searched(folder, extra):
    plant(SIGNATURES["5,3"], (-1, -1))
    np.save("start.npy", np.diag([1.0, 1, 1, 1, 1, 1, 1, -1]))
    arguments = ["procrustes", "source.npy", "target.npy", "-s", "5,3", "-o", "X.npy"]
    output = shown(solve(*arguments, *extra))
    minus = -1 if "--start" in extra else 1
    about = record()
    assert about["value"] > 0.05  # converged, and wrong: 0.6 and more over seeds
    assert about["component"] == [1, minus]
    assert about["components"]["searched"] == [[1, minus]]
    assert len(about["components"]["unknown"]) == 3
    where = f"component {short((1, minus))}, det X[+,+] > 0"
    assert where in output
    advice = "only this component was searched, without --method and --start all are"
    assert advice in output


def test_searched_components_have_a_row_each(folder):
    """Much noise: bounds rule out few components."""
    source, _, _ = plant(SIGNATURES["5,3"], (1, 1))
    arguments = ["procrustes", "source.npy", "target.npy", "-s", "5,3", "-o", "X.npy"]
    for seed in range(10):  # for some targets a bound leaves one component
        np.save("target.npy", np.random.default_rng(seed).standard_normal(source.shape))
        output = solve(*arguments).output
        about = record()
        searched = about["components"]["searched"]
        if len(searched) > 1:
            break
    assert len(searched) == len(about["runs"]) > 1
    assert about["value"] == min(run["value"] for run in about["runs"])
    for which in searched:
        assert f"\n {short(which)[1:-1]}  riemannian-newton" in output
    total = sum(len(about["components"][name]) for name in ("searched", "left_out", "unknown"))
    assert total == 4


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("columns", [2, N - 1])
def test_thin_alignments_need_no_start(folder, columns, component):
    plant(SIGNATURES["5,3"], component, columns)
    arguments = ["procrustes", "source.npy", "target.npy", "-s", "5,3", "-o", "X.npy"]
    output = shown(solve(*arguments))
    assert np.load("X.npy").shape == (N, columns)
    assert record()["value"] < NOISE**2 * N
    assert "X is thin: there was one start, and others may end lower" in output
    assert "component" not in record()


def test_the_identity_may_be_better(folder):
    source = plant(SIGNATURES["5,3"], (1, 1))[0]
    np.save("target.npy", source + NOISE)
    np.save("start.npy", np.diag([-1.0] + [1] * (N - 1)))
    arguments = ["procrustes", "source.npy", "target.npy", "-s", "5,3", "-o", "X.npy"]
    output = shown(solve(*arguments, "--start", "start.npy"))
    assert "the identity fits better than this X" in output
    assert "the identity fits better" not in solve(*arguments).output


def test_a_constant_target_has_no_r_squared(folder):
    plant(SIGNATURES["5,3"], (1, 1))
    np.save("target.npy", np.ones((40, N)))
    arguments = ["procrustes", "source.npy", "target.npy", "-s", "5,3", "-o", "X.npy"]
    assert "R^2 undefined, as all rows of TARGET are the same" in shown(solve(*arguments))
    assert record()["r_squared"] is None


# -- quadratic


def test_a_quadratic_that_starts_at_a_saddle_says_so(folder):
    """The identity is critical: f is the least sum of a_i d_j / 2 with large d at small a."""
    np.save("A.npy", np.diag([1.0, 2.0, 3.0, 4.0]))
    output = shown(solve("quadratic", "A.npy", "-", "A.npy", "-s", "3,1", "-o", "X.npy"))
    assert record()["value"] == 15
    assert "jorth.hessian_check" in output


@pytest.mark.parametrize("component", COMPONENTS)
def test_quadratics_are_searched_in_every_component(folder, component):
    """C = -A X is what a source and a target make of it: the planted X is the minimum."""
    X = jorth.random_point(SIGNATURES["5,3"], cond=3.0, component=component, seed=2)
    A = np.load("A.npy")
    np.save("C.npy", -A @ X)
    output = shown(solve("quadratic", "A.npy", "C.npy", "-s", "5,3", "-o", "X.npy"))
    about = record()
    assert np.abs(np.load("X.npy") - X).max() < 1e-4
    assert about["component"] == list(component)
    assert len(about["runs"]) == 4
    assert "searched: (+,+) (+,-) (-,+) (-,-)" in output
    assert "other starts may end lower" in output
    output = shown(
        solve("quadratic", "A.npy", "C.npy", "-s", "5,3", "-o", "X.npy", "--method", "auto")
    )
    assert "only this component was searched" in output
    assert record()["component"] == [1, 1]


@pytest.mark.parametrize("others", [[], ["-", "weights.npy"]])
def test_one_run_where_all_components_are_alike(folder, others):
    """Columns may change their signs as long as f has no linear term and D is diagonal."""
    solve("quadratic", "A.npy", *others, "-s", "5,3", "-o", "X.npy")
    assert record()["runs"] == []
    assert "components" not in record()


def test_the_search_ends_where_nothing_is_lower(folder):
    np.save("concave.npy", -np.load("A.npy"))
    arguments = ["quadratic", "concave.npy", "C.npy", "-s", "5,3", "-o", "X.npy"]
    output = shown(solve(*arguments, code=3))
    assert record()["status"] == "UNBOUNDED"
    assert len(record()["runs"]) == 1
    assert "not searched: (+,-) (-,+) (-,-)" in output


# -- eigen


def test_the_eigenvalues_are_printed_with_their_types(folder):
    output = solve("eigen", "A.npy", "-s", "+-+-++-+", "-o", "X.npy").output
    values = np.load("X_eigenvalues.npy")
    assert max(map(len, output.splitlines())) <= WIDTH
    assert "5 with x^T J x = +1" in output
    assert "3 with x^T J x = -1" in output
    rows = [line.split() for line in output.splitlines()]
    positive, negative = [0, 2, 4, 5, 7], [1, 3, 6]
    for plus, minus in zip(positive, negative, strict=False):
        row = [str(plus + 1), f"{values[plus]:.8g}", str(minus + 1), f"{values[minus]:.8g}"]
        assert row in rows
    for plus in positive[3:]:
        assert [str(plus + 1), f"{values[plus]:.8g}"] in rows


def test_many_eigenvalues_are_shortened(folder):
    np.save("big.npy", np.diag(np.arange(1.0, 61)))
    output = solve("eigen", "big.npy", "-s", "40,20", "-o", "X.npy").output
    assert len(output.splitlines()) < 35
    for shown_value in (1, 5, 36, 40, 41, 45, 56, 60):
        assert f" {shown_value} " in output
    assert "..." in output
    assert "40 with x^T J x = +1" in output


def test_iterations_say_that_they_give_no_eigenvalues(folder):
    arguments = ["eigen", "A.npy", "-s", "5,3", "-o", "X.npy", "--method", "gs-jobcd"]
    assert "iterations give no eigenvalues; --method direct does" in shown(solve(*arguments))


def test_data_and_matrix_are_told_apart(folder):
    """D given for A, and A given for D."""
    result = solve("eigen", "D.npy", "-s", "5,3", "-o", "X.npy", code=1)
    assert "--data" in result.output
    np.save("few.npy", np.load("D.npy")[:5])
    result = solve("eigen", "few.npy", "--data", "-s", "5,3", "-o", "X.npy", code=1)
    assert "at least as many rows as columns" in result.output
    result = solve("eigen", "A.npy", "--data", "-s", "5,3", "-o", "X.npy")
    assert "A.npy is symmetric" in result.stderr
    assert "leave --data out" in result.stderr
    assert solve("eigen", "D.npy", "--data", "-s", "5,3", "-o", "X.npy").stderr == ""


# -- files


def test_the_identity_is_not_better_by_rounding(folder):
    np.savetxt("one.csv", np.random.default_rng(0).standard_normal(60))
    result = solve("procrustes", "one.csv", "one.csv", "-s", "lorentz", "-o", "X.npy")
    assert "the identity fits better" not in result.output


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_squares_out_of_range_are_refused(folder, size):
    """With squares of zero every X would look like a perfect answer."""
    source, target, _ = plant(SIGNATURES["5,3"], (1, 1))
    np.save("S.npy", size * source)
    np.save("T.npy", size * target)
    result = solve("procrustes", "S.npy", "T.npy", "-s", "5,3", "-o", "X.npy", code=1)
    assert "must have squares in the range of torch.float64" in result.output


@pytest.mark.parametrize("method", [[], ["--method", "auto"]])
@pytest.mark.parametrize(("has", "takes"), [("last", "first"), ("first", "last")])
def test_points_with_the_other_time_are_told(folder, has, takes, method):
    space = np.random.default_rng(0).standard_normal((30, N - 1))
    points = np.column_stack([np.sqrt(1 + np.square(space).sum(axis=1)), space])
    points = points if has == "first" else np.roll(points, -1, axis=1)
    X = jorth.random_point(jorth.Signature.lorentz(N, has), cond=5.0, seed=1)
    np.save("source.npy", points)
    np.save("target.npy", points @ X)
    arguments = ["procrustes", "source.npy", "target.npy", "-o", "X.npy", *method]
    result = solve(*arguments, "-s", f"lorentz-{takes}", code=None)
    assert result.stderr.count("\n") == 1
    assert f"pass -s lorentz-{has}" in result.stderr
    assert record()["r_squared"] < 0.99
    assert solve(*arguments, "-s", f"lorentz-{has}").stderr == ""
    assert record()["r_squared"] > 0.999
