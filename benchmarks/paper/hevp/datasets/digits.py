"""The handwritten digits that come with scikit-learn."""

from benchmark_utils import Size, handwritten


class Dataset(Size):
    name = "digits"
    parameters = {"size": ["digits-1000-60-30"]}  # data-m-n-p
    rows = staticmethod(handwritten)
