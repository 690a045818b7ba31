"""Figures: colours that tell methods apart, ticks that do not overlap, legends that fit."""

from itertools import combinations

import numpy as np
import pytest

from jorth.bench.core.figures import (
    LINES,
    handles_of,
    legend_below,
    line_style,
    log_axis,
    new_figure,
)
from jorth.bench.graphs.cells import GRAPH_METHODS
from jorth.bench.matrices.figures import MOST_CURVES, _rows_of_panels
from jorth.bench.matrices.methods import METHOD_NAMES, METHODS_OF_PROBLEM

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB
VISION = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def lab(colour, vision="normal"):
    """CIELAB of a colour as it is seen."""
    rgb = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    white = np.array([0.95047, 1.0, 1.08883])
    x = XYZ @ np.clip(VISION[vision] @ linear, 0, 1) / white
    f = np.where(x > (6 / 29) ** 3, np.cbrt(x), x / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(first, second):
    """The smallest distance in CIELAB over all kinds of vision; 2.3 can just be noticed."""
    return min(np.linalg.norm(lab(first, v) - lab(second, v)) for v in VISION)


def panels_of(problem):
    curves = dict.fromkeys(METHODS_OF_PROBLEM[problem])
    return [list(part) for part in _rows_of_panels(curves, {})]


PANELS = [part for problem in METHODS_OF_PROBLEM for part in panels_of(problem)]


def test_every_method_has_a_line_of_its_own():
    assert list(LINES) == list(METHOD_NAMES)
    for position, what in ((0, "colour"), (2, "marker")):
        assert len({line[position] for line in LINES.values()}) == len(LINES), what


def test_three_methods_have_three_clearly_different_colours():
    """J-JOBCD and VR-J-JOBCD had the same colour."""
    for first, second in combinations(GRAPH_METHODS, 2):
        assert distance(LINES[first][0], LINES[second][0]) > 30


@pytest.mark.parametrize("methods", PANELS)
def test_methods_of_one_panel_differ(methods):
    for first, second in combinations(methods, 2):
        (one, style, _), (other, other_style, _) = LINES[first], LINES[second]
        assert np.linalg.norm(lab(one) - lab(other)) > 20, (first, second)
        assert distance(one, other) > 14 or style != other_style, (first, second)


def test_at_most_one_method_is_grey_or_black():
    grey = [name for name, line in LINES.items() if np.linalg.norm(lab(line[0])[1:]) < 15]
    assert len(grey) <= 1


def test_colours_can_be_seen_on_white():
    for name, (colour, *_) in LINES.items():
        assert lab(colour)[0] < 75, name


def test_no_panel_is_crowded():
    assert max(map(len, PANELS)) <= MOST_CURVES
    first, second = _rows_of_panels(dict.fromkeys(METHODS_OF_PROBLEM["procrustes"]), {"auto": 1})
    assert "auto" in first  # the winner is in both
    assert "auto" in second


def boxes(figure, texts):
    figure.canvas.draw()
    return [text.get_window_extent() for text in texts if text.get_text() and text.get_visible()]


@pytest.fixture
def drawn():
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    def make():
        figure = new_figure()
        FigureCanvasAgg(figure)
        return figure

    return make


@pytest.mark.parametrize(
    ("low", "high"),
    [(1.3, 43.0), (0.9, 1.1), (3.0, 9.0), (0.01, 5.0), (1e-6, 1e3), (2e-4, 3e-3), (1.0, 1e12)],
)
def test_labels_of_a_logarithmic_axis_do_not_overlap(drawn, low, high):
    figure = drawn()
    left, _ = figure.subplots(1, 2)
    left.plot([low, high], [low, high])
    log_axis(left, "x")
    log_axis(left, "y")
    figure.canvas.draw()
    for axis, side in ((left.xaxis, 0), (left.yaxis, 1)):
        shown = [
            text for text in axis.get_ticklabels(which="both") if low <= _value(text, side) <= high
        ]
        found = boxes(figure, shown)
        assert len(found) >= 2
        assert not any(one.overlaps(other) for one, other in combinations(found, 2))


def _value(text, side):
    return text.get_position()[side]


def test_a_legend_stays_inside_its_figure(drawn):
    figure = drawn()
    panel = figure.subplots()
    for name in LINES:
        panel.plot([1, 2], [1, 2], label=f"{name}, without a preconditioner", **line_style(name))
    legend_below(figure, handles_of([panel]))
    figure.canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    assert len(legend.get_texts()) == len(LINES)
