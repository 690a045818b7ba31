"""The paper's data sets by name: contents, addresses and terms."""

from __future__ import annotations

from dataclasses import dataclass

from jorth._inputs import describe

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"


@dataclass(frozen=True)
class DataSet:
    """One data set of the paper.

    Attributes:
        name: Its name in `load` and `fetch`.
        description: What the rows, the columns and the entries are.
        shape: Rows and columns of the complete set, None where unknown.
        terms: Terms of use as far as known; check them before you publish.
        url: A public address, or None.
        scale: `load` divides by it if the file holds whole numbers from 0 to ``scale``, some above
            1. Only mnist has one.
    """

    name: str
    description: str
    shape: tuple[int, int] | None
    terms: str
    url: str | None = None
    scale: float | None = None


# fmt: off
_SETS = (
    DataSet(
        "cifar", "CIFAR-10 training images, 32 x 32 pixels in three colours", (50000, 3072),
        "no explicit licence (Krizhevsky 2009)", f"{LIBSVM}/multiclass/cifar10.bz2",
    ),
    DataSet(
        "mnist", "MNIST training images, pixels 0 to 255; LIBSVM omits the last 4, always 0",
        (60000, 780), "often listed as CC BY-SA 3.0 (LeCun, Cortes, Burges)",
        f"{LIBSVM}/multiclass/mnist.bz2", scale=255.0,
    ),
    DataSet(
        "w1a", "Web pages by key words, 0 and 1; 10 of the columns are all zero", (2477, 300),
        "no explicit licence (Platt 1998)", f"{LIBSVM}/binary/w1a",
    ),
    DataSet(
        "gisette", "Handwritten 4 and 9 with distractor features, in [-1, 1] (NIPS 2003)",
        (6000, 5000), "no explicit licence (Guyon et al. 2004)",
        f"{LIBSVM}/binary/gisette_scale.bz2",
    ),
    DataSet(
        "sector", "Company web pages by industry sector, training part, sparse term weights",
        (6412, 55197), "no explicit licence (McCallum and Nigam 1998)",
        f"{LIBSVM}/multiclass/sector/sector.bz2",
    ),
    DataSet(
        "tdt2", "TDT2 news stories in 30 topics, sparse counts of terms (D. Cai's matrix)",
        (9394, 36771), "research use; the texts are an LDC corpus under LDC terms",
    ),
    DataSet(
        "20news", "20 Newsgroups, by date, sparse counts of terms (D. Cai's matrix)",
        (18846, 26214), "research use; no explicit licence (Lang 1995)",
    ),
    DataSet(
        "news20", "20 Newsgroups, training part, sparse counts of terms (LIBSVM's matrix)",
        (15935, 62061), "no explicit licence (Lang 1995)", f"{LIBSVM}/multiclass/news20.bz2",
    ),
    DataSet(
        "e2006", "Annual company reports (10-K) of E2006-tfidf, training part, sparse weights",
        (16087, 150360), "no explicit licence (Kogan et al. 2009)",
        f"{LIBSVM}/regression/E2006.train.bz2",
    ),
    DataSet(
        "cnncaltech", "Features of Caltech images from a convolutional network, 4096 of them",
        None, "unknown",
    ),
)
# fmt: on

REGISTRY = {entry.name: entry for entry in _SETS}
"""The data sets of the paper by name."""


def lookup(name: str) -> DataSet:
    """Return the data set of a name in any case; a ValueError lists the names."""
    if not isinstance(name, str) or name.lower() not in REGISTRY:
        raise ValueError(f"name must be one of {', '.join(REGISTRY)}; got {describe(name)}")
    return REGISTRY[name.lower()]
