"""Ultrahyperbolic knowledge graph embedding.

Entities are points on a pseudo-hyperboloid, relations are J-orthogonal matrices.
"""

from jorth.kge.config import Config, read_config
from jorth.kge.export import NamedModel, load_model, save_model
from jorth.kge.graph import Triples, hierarchy_with_cycles, hold_out, load_triples
from jorth.kge.logs import CSVLog, TensorBoardLog
from jorth.kge.model import UltraE
from jorth.kge.ranking import Ranking, evaluate
from jorth.kge.training import Training, train

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
