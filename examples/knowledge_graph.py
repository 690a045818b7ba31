"""A knowledge graph from end to end: train, rank, predict, look at neighbours and relations, draw.

The graph is a tree whose levels are cycles. Some of its "ancestor" and "second_next" triples are
held out; they follow from "parent" and "next". The picture goes to the folder out.

    python examples/knowledge_graph.py
"""

from pathlib import Path

from jorth.kge import (
    Config,
    depths,
    draw_entities,
    evaluate,
    explain,
    hierarchy_with_cycles,
    nearest,
    predict,
    train,
)

OUTPUT = Path("out")

graph = hierarchy_with_cycles(branching=3, depth=3)
config = Config(p=12, epochs=60)  # hyperbolic space; everything else by default
model = train(graph, config)
ranking = evaluate(model, graph.train, graph.known)
print(f"{graph}\nMRR {ranking.mrr:.2f} in training, epoch {model.best_epoch}\n")

print("the parent of 0.1.2:")
for answer in predict(model, "0.1.2", "parent", k=3):
    print(f"  {answer.entity:8} score {answer.score:6.2f}, probability {answer.probability:.2f}")

head, relation, tail = (
    names[number]
    for names, number in zip(
        (graph.entities, graph.relations, graph.entities), graph.test[0].tolist(), strict=True
    )
)
print(f"a triple that was held out, ({head}, {relation}, {tail}); answers of training left out:")
for answer in predict(model, head, relation, k=3, known=graph.train):
    print(f"  {answer.entity:8} score {answer.score:6.2f}, probability {answer.probability:.2f}")

print("nearest to 0.1.2:")
for neighbour in nearest(model, "0.1.2", k=3):
    print(f"  {neighbour.entity:8} distance {neighbour.distance:.2f}")

print("relations:")
for found in explain(model):
    angles = ", ".join(f"{angle:.2f}" for angle in found.angles[:3])
    print(f"  {found.relation:12} boost {found.rapidities[0]:.2f}, largest angles {angles}")

OUTPUT.mkdir(exist_ok=True)
parents = graph.train[graph.train[:, 1] == graph.relations.index("parent")]
disc = draw_entities(
    model,
    OUTPUT / "entities.png",
    colours=depths(graph, "parent"),
    lines=parents,
    title="entities by depth, with lines to their parents",
)
print(f"picture in {OUTPUT}; rank correlation of distances in the disc {disc.agreement:.2f}")

assert ranking.mrr > 0.3
assert (OUTPUT / "entities.png").exists()
