"""The paper's table and the comparison of orders."""

import pytest

from jorth.bench.matrices.paper import PAPER_METHODS, PRINTED, compare_orders, impossible

MNIST = ("mnist", 1000, 780, 390)


def test_the_table():
    assert len(PRINTED) == 10
    assert all(list(entries) == list(PAPER_METHODS) for entries in PRINTED.values())
    assert PRINTED["w1a", 2470, 290, 145]["J-JOBCD"].value == -9.32e6
    assert PRINTED["w1a", 2470, 290, 145]["J-JOBCD"].violation == 1.1e-4
    assert PRINTED["cifar", 1000, 100, 50]["CSDM+GS-JOBCD"].value == -1.24e5
    assert PRINTED["randn", 1000, 1000, 500]["CSDM"].violation == 5.0e-10
    # UMCM and ADMM did not move
    assert all(entries["UMCM"].value == entries["ADMM"].value for entries in PRINTED.values())
    assert [size for size in PRINTED if impossible(size)] == [("randn", 10, 10, 5)]


def test_the_papers_own_order_agrees_with_itself():
    for size, entries in PRINTED.items():
        found = compare_orders({name: entry.value for name, entry in entries.items()}, size)
        assert found.ours == found.papers
        assert found.reversed == 0
        assert found.alike == 14  # fifteen pairs, and UMCM equals ADMM


def test_the_reverse_order_disagrees_everywhere():
    found = compare_orders({name: -entry.value for name, entry in PRINTED[MNIST].items()}, MNIST)
    assert (found.alike, found.reversed) == (0, 14)
    assert found.papers == ("J-JOBCD", "GS-JOBCD", "CSDM+GS-JOBCD", "CSDM", "UMCM", "ADMM")


def test_ties_count_for_neither_and_strangers_are_left_out():
    scores = {
        "GS-JOBCD": -float("inf"),
        "J-JOBCD": -float("inf"),
        "CSDM": -2.0,
        "Riemannian L-BFGS": -9.0,
    }
    found = compare_orders(scores, MNIST)
    assert (found.alike, found.reversed) == (2, 0)
    assert set(found.ours) == {"GS-JOBCD", "J-JOBCD", "CSDM"}
    one_swap = compare_orders({"GS-JOBCD": -1.0, "J-JOBCD": -5.0, "CSDM": -2.0}, MNIST)
    assert (one_swap.alike, one_swap.reversed) == (2, 1)


@pytest.mark.parametrize("scores", [{}, {"UMCM": 1.0}])
def test_too_few(scores):
    found = compare_orders(scores, MNIST)
    assert (found.alike, found.reversed) == (0, 0)
