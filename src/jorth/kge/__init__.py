"""Ultrahyperbolic knowledge graph embedding: entities on a pseudo-hyperboloid, relations as J-orthogonal matrices."""

from jorth.kge.config import Config, read_config
from jorth.kge.export import NamedModel, load_model, save_model
from jorth.kge.generated import hierarchy_with_cycles
from jorth.kge.logs import CSVLog, TensorBoardLog
from jorth.kge.model import UltraE
from jorth.kge.ranking import Ranking, evaluate
from jorth.kge.training import Training, train
from jorth.kge.triples import Triples, hold_out, load_triples

__all__ = [
    "CSVLog",
    "Config",
    "NamedModel",
    "Ranking",
    "TensorBoardLog",
    "Training",
    "Triples",
    "UltraE",
    "evaluate",
    "hierarchy_with_cycles",
    "hold_out",
    "load_model",
    "load_triples",
    "read_config",
    "save_model",
    "train",
]
