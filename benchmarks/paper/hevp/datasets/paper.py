"""The data sets of the paper, from files in the folder JORTH_DATA."""

from benchmark_utils import Size, of_the_paper


class Dataset(Size):
    name = "paper"
    parameters = {"size": ["w1a-2470-290-145"]}  # data-m-n-p
    rows = staticmethod(of_the_paper)
