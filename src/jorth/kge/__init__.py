"""Ultrahyperbolic knowledge graph embedding.

Entities are points on a pseudo-hyperboloid, relations are J-orthogonal matrices.
"""

from jorth.kge.answers import Answer as Answer
from jorth.kge.answers import Explanation as Explanation
from jorth.kge.answers import Fact as Fact
from jorth.kge.answers import Link as Link
from jorth.kge.answers import Neighbour as Neighbour
from jorth.kge.answers import depths, explain, nearest, predict
from jorth.kge.config import Config
from jorth.kge.graph import Triples, hierarchy_with_cycles, load_triples
from jorth.kge.model import NamedModel, UltraE, load_model, save_model
from jorth.kge.pictures import Disc as Disc
from jorth.kge.pictures import draw_entities
from jorth.kge.ranking import Frequencies, evaluate
from jorth.kge.ranking import Ranking as Ranking
from jorth.kge.training import Training as Training
from jorth.kge.training import train

__all__ = [
    "Config",
    "Frequencies",
    "NamedModel",
    "Triples",
    "UltraE",
    "depths",
    "draw_entities",
    "evaluate",
    "explain",
    "hierarchy_with_cycles",
    "load_model",
    "load_triples",
    "nearest",
    "predict",
    "save_model",
    "train",
]
