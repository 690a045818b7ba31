"""Knowledge graphs: settings, triples, models and what is asked of them."""

from tests.mistakes.case import mistake

TITLE = "Knowledge graphs"
CASES = [
    mistake(
        "A preset with a wrong setting",
        'kge.Config.preset("WN18RR", scaling="big")',
        "preset 'WN18RR'",
        "scaling must be one of",
    ),
    mistake("No negative sign", "kge.Config(q=0)", "q must be at least 1", "got 0"),
    mistake("A negative rate", "kge.Config(lr=-0.1)", "lr must be", "-0.1"),
    mistake("A share above one", "kge.Config(dropout=1.5)", "dropout must be in [0, 1)", "1.5"),
    mistake(
        "A loss of another library", 'kge.Config(loss="margin")', "loss must be one of", '"softmax"'
    ),
    mistake(
        "A list for a dictionary",
        "kge.Config(relation_options=[0.9])",
        "relation_options must be a dictionary",
        "list",
    ),
    mistake(
        "A folder for the graph",
        'kge.train("small")',
        "triples must be a jorth.kge.Triples",
        "kge.load_triples",
    ),
    mistake(
        "A dictionary for the settings",
        'kge.train(graph, {"epochs": 3})',
        "config must be a jorth.kge.Config",
        "dict",
    ),
    mistake(
        "Settings as arguments",
        "kge.train(graph, epochs=3)",
        "train has no argument 'epochs'",
        "jorth.kge.Config",
    ),
    mistake(
        "The class of a callback",
        "kge.train(graph, callback=kge.CSVLog)",
        "callback must be a function",
        "the class CSVLog",
    ),
    mistake(
        "A device that is not there",
        'kge.train(graph, kge.Config(device="gpu", epochs=1))',
        "device must be",
        "did you mean 'cuda'",
    ),
    mistake(
        "An option that the optimiser does not have",
        'kge.train(graph, kge.Config(epochs=1, relation_options={"beta": 0.9}))',
        "relation_options of j-jobcd",
        "'momentum'",
    ),
    mistake(
        "Text for triples",
        'kge.Triples(("a", "b"), ("r",), "a r b", [], [])',
        "train must be",
        "'a r b'",
    ),
    mistake(
        "The same name twice",
        'kge.Triples(("a", "a"), ("r",), *[torch.zeros(1, 3, dtype=torch.long)] * 3)',
        "entities must have distinct names",
        "'a'",
    ),
    mistake(
        "An entity that does not exist",
        'kge.Triples(("a", "b"), ("r",), *[torch.tensor([[0, 0, 7]])] * 3)',
        "train",
        "7",
    ),
    mistake("All triples held out", "kge.hold_out(graph.train, share=1.0)", "share must be", "1.0"),
    mistake(
        "A tree without branches",
        "kge.hierarchy_with_cycles(branching=0)",
        "branching must be at least",
        "0",
    ),
    mistake("No entities", "kge.UltraE(0, 2)", "entities must be at least 2", "0"),
    mistake(
        "A signature without minus signs",
        "kge.UltraE(4, 2, signature=jorth.Signature(4, 0))",
        "signature must",
        "q",
    ),
    mistake(
        "Neither head nor tail",
        'kge.predict(named, relation="capital_of")',
        "one of head and tail must be given",
        "neither",
    ),
    mistake(
        "A name for a model without names",
        'kge.predict(model, "Rome", 0)',
        "head must be a number",
        "jorth.kge.NamedModel",
    ),
    mistake(
        "A folder for the model",
        'kge.predict("model", "Rome", "capital_of")',
        "model must be",
        "jorth.kge.load_model",
    ),
    mistake(
        "A number of answers below one",
        'kge.predict(named, "Rome", "capital_of", k=0)',
        "k must be at least 1",
        "0",
    ),
    mistake(
        "An entity beyond the last one", "kge.nearest(named, 9)", "entity must be from 0 to 3", "9"
    ),
    mistake(
        "A fraction for a relation",
        "kge.explain(named, 0.5)",
        "relation must be the name or the number",
        "0.5",
    ),
    mistake(
        "The graph for the triples", "kge.evaluate(model, graph)", "triples must be", "graph.test"
    ),
    mistake("Triples of another graph", "kge.evaluate(model, [[0, 0, 9]])", "triples", "3"),
    mistake(
        "A rule for ties that does not exist",
        "ranks = np.ones((1, 2), dtype=int)\n"
        'kge.Ranking(np.zeros((1, 3), dtype=int), ranks, ranks).metrics(ties="mean")',
        "ties must be one of",
        '"realistic"',
    ),
    mistake(
        "A relation that is not in the graph",
        'kge.depths(graph, "capital_of")',
        "relation",
        "capital_of",
    ),
    mistake(
        "The model for the graph",
        "kge.depths(named, 0)",
        "graph must be a jorth.kge.Triples",
        "NamedModel",
    ),
    mistake(
        "A picture without an ending",
        'kge.draw_entities(named, "picture")',
        "path must end in",
        "picture",
    ),
    mistake(
        "Colours for entities that do not exist",
        'kge.draw_entities(named, "picture.png", colours={"Paris": 1})',
        "colours",
        "'Paris'",
    ),
    mistake(
        "A picture in a format that it does not write",
        'kge.draw_relations(named, "picture.docx")',
        "path must end in",
        ".docx",
    ),
    mistake("The graph for the model", "kge.project_to_disc(graph)", "model must be", "Triples"),
    mistake(
        "A model without names", 'kge.save_model("copy", model)', "named must be", "NamedModel"
    ),
    mistake(
        "Too few names",
        'kge.save_model("copy", kge.NamedModel(model, ["Rome"], ["in", "of"]))',
        "entities",
        "4",
    ),
]
