"""`predict`: the best answers to queries, with scores and probabilities."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from jorth.arrays import check_indices, whole_number
from jorth.kge.graph import Known, to_triples
from jorth.kge.model import UltraE
from jorth.kge.ranking import SCORES_AT_ONCE_ON_CPU
from jorth.kge.use.naming import Key, is_single, parts_of
from jorth.suggestions import explained


class Answer(NamedTuple):
    """An entity with its score and its probability; a list of them makes a DataFrame."""

    entity: Key
    score: float
    probability: float


@explained
def predict(
    model: Any,
    head: Any = None,
    relation: Any = None,
    tail: Any = None,
    *,
    k: int = 10,
    known: Tensor | None = None,
) -> Any:
    """The best tails of (head, relation, ?), or the best heads of (?, relation, tail).

    The probability is the softmax of the scores over all entities, which is what the loss "softmax"
    trains: how likely a triple, drawn from those with this head and relation, is to have this tail.
    Several true answers share it. Nothing calibrates it on triples that were not trained on.
    Answers that are left out because they are ``known`` keep their share, so that those of the
    others do not change.

    Training does not know ``reverse_weight``: with it the scores are no longer those that the loss
    has seen, and the probabilities not what it has optimised. They still sort the answers.

    The logistic losses judge every triple by itself: there the sigmoid of a score is the chance of
    a triple against random false ones, and the softmax only compares the answers to one query.

    Args:
        model: A `NamedModel`, or an `UltraE`, which has numbers only.
        head: The name or the number of an entity, or a sequence of them; None asks for heads.
        relation: The name or the number of a relation, or a sequence of them.
        tail: As ``head``; None asks for tails.
        k: The number of answers per query.
        known: Triples (M, 3) whose answers are left out, such as ``graph.train``.

    Returns:
        A list of `Answer`, the best first; for a sequence of queries a list of such lists. There
        are fewer than k answers where fewer are left. One relation goes with all entities of a
        sequence, and one entity with all relations.
    """
    plain, entities, relations = parts_of(model)
    if (head is None) == (tail is None):
        given = "both" if tail is not None else "neither"
        raise ValueError(f"one of head and tail must be given, the other is asked for; got {given}")
    given, side = (head, "head") if tail is None else (tail, "tail")
    k = whole_number(k, "k", 1)
    anchors = entities.numbers(given, side)
    codes = relations.numbers(relation, "relation")
    queries = _queries(anchors, codes, side).to(plain.points.device)
    index = None if known is None else _index(known, plain)
    at_once = max(1, SCORES_AT_ONCE_ON_CPU // plain.n_entities)
    found: list[list[Answer]] = []
    for part in torch.split(queries, at_once, dim=1):
        scores, left_out = _scores(plain, part, side == "head", index)
        for row in _best(scores, left_out, k):
            found.append([Answer(entities.key(number), *numbers) for number, *numbers in row])
    return found[0] if is_single(given) and is_single(relation) else found


def _queries(anchors: list[int], codes: list[int], side: str) -> Tensor:
    """Anchors and relations (2, B); one of them goes with all of the other."""
    count = max(len(anchors), len(codes)) if anchors and codes else 0
    if {len(anchors), len(codes)} - {1, count}:
        found = f"{len(anchors)} and {len(codes)}"
        raise ValueError(f"{side} and relation must be equally many, or one; got {found}")
    rows = [part * count if len(part) == 1 else part for part in (anchors, codes)]
    return torch.tensor(rows, dtype=torch.int64)


def _index(known: Tensor, model: UltraE) -> Known:
    known = to_triples(known, "known")
    check_indices(known[:, ::2], "entities of known", model.n_entities, known.device)
    check_indices(known[:, 1], "relations of known", model.n_relations, known.device)
    return Known(known.to(model.points.device), model.n_entities, model.n_relations)


def _scores(
    model: UltraE, queries: Tensor, tails: bool, known: Known | None
) -> tuple[Tensor, Tensor]:
    """Scores (B, entities) in float64, and which of them are left out."""
    anchor, relation = queries
    with torch.no_grad():
        score = (
            model.score_tails(anchor, relation) if tails else model.score_heads(relation, anchor)
        )
    undefined = int(score.isnan().sum())
    if undefined:
        raise ValueError(f"model must have scores that are numbers, got {undefined} NaN")
    left_out = torch.zeros_like(score, dtype=torch.bool)
    if known is not None:
        left_out[known.answers(anchor, relation + (0 if tails else model.n_relations))] = True
    return score.double(), left_out


def _best(scores: Tensor, left_out: Tensor, k: int) -> list[list[tuple[int, float, float]]]:
    """For every row the k best that are not left out: number, score, probability."""
    probability = torch.softmax(scores, dim=-1)
    order = scores.masked_fill(left_out, -torch.inf).topk(min(k, scores.shape[-1])).indices
    columns = (order, *(table.gather(1, order) for table in (scores, probability, left_out)))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        [(number, score, p) for number, score, p, out in zip(*row, strict=True) if not out]
        for row in rows
    ]
