"""Gaussian matrices."""

from benchmark_utils import Size, generated


class Dataset(Size):
    name = "randn"
    parameters = {"size": ["randn-500-20-18"]}  # data-m-n-p
    rows = staticmethod(generated)
