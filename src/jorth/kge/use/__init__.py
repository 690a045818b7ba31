"""Uses of a trained model: answers, neighbours, explained relations, and pictures."""

from jorth.kge.use.depths import depths
from jorth.kge.use.disc import Disc, project_to_disc
from jorth.kge.use.entity_picture import draw_entities
from jorth.kge.use.explaining import Explanation, explain
from jorth.kge.use.neighbours import Neighbour, nearest
from jorth.kge.use.predicting import Answer, predict
from jorth.kge.use.relation_picture import draw_relations

__all__ = [
    "Answer",
    "Disc",
    "Explanation",
    "Neighbour",
    "depths",
    "draw_entities",
    "draw_relations",
    "explain",
    "nearest",
    "predict",
    "project_to_disc",
]
