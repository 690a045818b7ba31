"""Gaussian matrices."""

from benchmark_utils import Size, generated


class Dataset(Size):
    name = "randn"
    parameters = {"size": ["randn-10-10-5", "randn-100-100-50"]}  # data-m-n-p
    rows = staticmethod(generated)
