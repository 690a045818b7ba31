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
    assert about["component"] == list(component)
    assert about["m"] == 40
    assert about["r_squared"] == pytest.approx(r_squared(target, source @ found), abs=1e-12)
    assert about["identity_r_squared"] == pytest.approx(r_squared(target, source), rel=1e-12)
    identity_value = np.square(source - target).sum() / 80
    assert about["identity_value"] == pytest.approx(identity_value, rel=1e-12)
    signature = SIGNATURES[text]
    assert f"40 rows, X {N} x {N}, p = {signature.p}, q = {signature.q}" in output
    assert f"R^2 {about['r_squared']:.6g} (" in output
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
    where = f"component {short((1, minus))}, det X[+,+] > 0"
    assert where in output
    assert "only this component was searched" in output
    assert "Warning" not in output  # that is the reason, and not the files


# -- eigen


def test_the_eigenvalues_are_printed_with_their_types(folder):
    output = shown(solve("eigen A.npy -s +-+-++-+ -o X.npy"))
    values = [f"{value:.8g}" for value in np.load("X_eigenvalues.npy")]
    for sign, own in (("+", [0, 2, 4, 5, 7]), ("-", [1, 3, 6])):
        found = ", ".join(values[j] for j in own)
        columns = ", ".join(str(j + 1) for j in own)
        line = f"lambda {sign} {found} (x^T J x = {sign}1, columns {columns} of X)"
        assert line in output


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
    names = {"first": "lorentz", "last": "lorentz-last"}
    output = shown(solve(*arguments, "-s", names[takes], code=None))
    assert f"pass a Lorentz signature with the time {has}" in output
    assert output.count("Warning") == 1
    assert record()["r_squared"] < 0.99
    solve(*arguments, "-s", names[has])
    assert record()["r_squared"] > 0.999
