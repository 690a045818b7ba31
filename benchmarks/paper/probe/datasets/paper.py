"""The data sets of the paper, from files in the folder JORTH_DATA."""

from benchmark_utils import Size, of_the_paper


class Dataset(Size):
    name = "paper"
    parameters = {"size": ["w1a-2477-100-90"]}  # data-m-n-p
    rows = staticmethod(of_the_paper)
