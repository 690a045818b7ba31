"""The kinds of mistakes, in the order of the page."""

from tests.mistakes import (
    commands,
    files,
    graphs,
    layers,
    names,
    objectives,
    options,
    shapes,
    signatures,
    values,
)

KINDS = (
    signatures, shapes, values, names, options, objectives, layers, graphs, files, commands
)  # fmt: skip
