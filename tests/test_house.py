"""The shape of the code: short functions, nothing written twice, few files on the way to a step."""

import ast
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import torch

import jorth

PACKAGE = Path(jorth.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES = 60
MOST_ARGUMENTS = 8
REPEATED = 10
"""So many lines of code that stand in two places are a function that is missing."""


def name_of(path):
    return path.relative_to(PACKAGE).as_posix()


def code_lines(source, tree):
    """The lines that are neither blank nor a comment nor a docstring nor an import, by number."""
    passed = set()
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, (ast.Import, ast.ImportFrom)):
            passed |= set(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(source.splitlines(), 1)
    return [
        (number, line.strip())
        for number, line in lines
        if number not in passed and line.strip() and not line.lstrip().startswith("#")
    ]


def has_reason(node, source):
    """Whether a comment stands above the function, or beside its first line.

    Kernels need none: Triton has no records, so that they take their numbers one by one.
    """
    lines = source.splitlines()
    if any("triton.jit" in ast.unparse(decorator) for decorator in node.decorator_list):
        return True
    top = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return lines[top - 2].lstrip().startswith("#") or "  # " in lines[node.lineno - 1]


def large_functions():
    for path in MODULES:
        source = path.read_text()
        tree = ast.parse(source)
        numbers = [number for number, _ in code_lines(source, tree)]
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef):
                continue
            length = sum(node.lineno <= number <= node.end_lineno for number in numbers)
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            count = sum(argument.arg not in ("self", "cls") for argument in arguments)
            if length > MOST_LINES or count > MOST_ARGUMENTS:
                yield path, node, source


def test_large_functions_have_a_reason_beside_them():
    missing = [
        f"{name_of(path)}: {node.name}"
        for path, node, source in large_functions()
        if not has_reason(node, source)
    ]
    assert not missing


def test_nothing_is_written_twice():
    places = defaultdict(list)
    for path in MODULES:
        source = path.read_text()
        lines = [
            (number, line)
            for number, line in code_lines(source, ast.parse(source))
            if any(letter.isalnum() for letter in line)
        ]
        for at in range(len(lines) - REPEATED + 1):
            block = tuple(line for _, line in lines[at : at + REPEATED])
            places[block].append(f"{name_of(path)}:{lines[at][0]}")
    assert not [found for found in places.values() if len(found) > 1]


def files_run_through(action):
    """The modules whose functions are called by an action that has been done once before."""
    action()
    seen = set()

    def note(frame, event, argument):
        if event == "call" and frame.f_code.co_name != "<module>":
            seen.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return sorted(name_of(Path(name)) for name in seen if name.startswith(f"{PACKAGE}/"))


def walks():
    """The calls that somebody new reads first, with their defaults."""
    sig = jorth.Signature(5, 3)
    source, target, _ = jorth.datasets.planted_procrustes(40, sig, noise=0.01, seed=1)
    objective = jorth.Procrustes(source, target)
    S, T = torch.from_numpy(source), torch.from_numpy(target)
    layer = jorth.nn.JOrthogonalLinear(sig, dtype=torch.float64)
    optimizer = jorth.optim.JOBCD([layer.weight], sig)
    layer.weight.square().sum().backward()
    return {
        "minimize(Procrustes)": lambda: jorth.minimize(objective, signature=sig),
        "minimize(function)": lambda: jorth.minimize(
            lambda X: (S @ X - T).square().sum(), torch.eye(8).double(), signature=sig
        ),
        "procrustes": lambda: jorth.procrustes(source, target, sig),
        "JOBCD.step": optimizer.step,
    }


@pytest.mark.parametrize(
    ("call", "most"),
    [
        ("minimize(Procrustes)", 11),
        ("minimize(function)", 17),
        ("procrustes", 21),
        ("JOBCD.step", 4),
    ],
)
def test_few_files_on_the_way(call, most):
    """As many as there are today, or fewer: a step through more files needs a reason."""
    found = files_run_through(walks()[call])
    assert len(found) <= most, found
