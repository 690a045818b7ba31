"""Names that are nearly right: arguments, methods, choices, data sets."""

from tests.mistakes.case import mistake

TITLE = "Names"
CASES = [
    mistake(
        "The name in SciPy",
        "jorth.minimize(objective, signature=signature, max_iter=50)",
        "'max_iter'",
        "did you mean 'max_iterations'?",
    ),
    mistake(
        "The name in SciPy",
        "jorth.minimize(objective, signature=signature, tol=1e-9)",
        "'tol'",
        "did you mean 'gradient_tolerance'?",
    ),
    mistake(
        "The name in scikit-learn",
        "jorth.minimize(objective, signature=signature, random_state=1)",
        "'random_state'",
        "did you mean 'seed'?",
    ),
    mistake(
        "The name in pymanopt",
        "jorth.minimize(objective, signature=signature, verbosity=2)",
        "'verbosity'",
        "did you mean 'progress'?",
    ),
    mistake(
        "A slip of the pen",
        "jorth.minimize(objective, signature=signature, max_iteratoins=50)",
        "'max_iteratoins'",
        "did you mean 'max_iterations'?",
    ),
    mistake(
        "A name that is like no other",
        "jorth.minimize(objective, signature=signature, zeal=3)",
        "'zeal'",
        "max_iterations",
    ),
    mistake(
        "An option without its method",
        "jorth.minimize(objective, signature=signature, theta=0.1)",
        "'theta'",
        "needs a method",
    ),
    mistake(
        "Another method's option",
        'jorth.minimize(objective, signature=signature, method="umcm", memory=5)',
        "umcm has no option 'memory'",
        "beta",
    ),
    mistake(
        "The name in torch",
        'jorth.minimize(objective, signature=signature, method="csdm", lr=0.1)',
        "csdm has no option 'lr'",
        "did you mean 'learning_rate'?",
    ),
    mistake(
        "A method by its short name",
        'jorth.minimize(objective, signature=signature, method="lbfgs")',
        "method must be one of",
        "did you mean 'riemannian-lbfgs'?",
    ),
    mistake(
        "A method of SciPy",
        'jorth.minimize(objective, signature=signature, method="CG")',
        "method must be one of",
        "did you mean 'riemannian-cg'?",
    ),
    mistake(
        "A limit, given to the solver",
        "jorth.GaussSeidel(max_iter=50)",
        "GaussSeidel has no argument 'max_iter'",
        "jorth.minimize",
    ),
    mistake(
        "The name in torch",
        "jorth.CSDM(lr=0.1)",
        "CSDM has no argument 'lr'",
        "did you mean 'learning_rate'?",
    ),
    mistake(
        "The name in torch",
        "jorth.RiemannianLBFGS(history_size=5)",
        "RiemannianLBFGS has no argument 'history_size'",
        "did you mean 'memory'?",
    ),
    mistake(
        "The name in scikit-learn",
        "jorth.random_point(signature, random_state=0)",
        "random_point has no argument 'random_state'",
        "did you mean 'seed'?",
    ),
    mistake(
        "A short name",
        "jorth.random_point(signature, condition=3.0)",
        "random_point has no argument 'condition'",
        "did you mean 'cond'?",
    ),
    mistake(
        "The name in SciPy",
        "jorth.procrustes(source, target, signature, maxiter=5)",
        "'maxiter'",
        "did you mean 'max_iterations'?",
    ),
    mistake(
        "A choice that does not exist",
        'jorth.procrustes(source, target, signature, components="every")',
        "components must be one of",
        '"all"',
    ),
    mistake(
        "A choice where yes or no is expected",
        'jorth.procrustes(source, target, signature, certify="yes")',
        "certify must be True or False",
        "'yes'",
    ),
    mistake(
        "Less than none",
        "jorth.procrustes(source, target, signature, starts=-1)",
        "starts must be",
        "-1",
    ),
    mistake(
        "A preset with a slip of the pen",
        'kge.Config.preset("papper")',
        "preset must be one of",
        "did you mean 'paper'?",
    ),
    mistake(
        "The name in PyKEEN",
        "kge.Config(embedding_dim=32)",
        "Config has no argument 'embedding_dim'",
        "did you mean 'p'?",
    ),
    mistake(
        "American spelling",
        "kge.Config(regularization=0.1)",
        "Config has no argument 'regularization'",
        "did you mean 'regularisation'?",
    ),
    mistake(
        "A dtype of torch for its name",
        "kge.Config(dtype=torch.float32)",
        "dtype must be one of",
        "did you mean 'float32'?",
    ),
    mistake(
        "The name of a dtype",
        'kge.UltraE(4, 2, dtype="float32")',
        "dtype must be",
        "write torch.float32",
    ),
    mistake(
        "The long name",
        "optim.JOBCD([layer.weight], signature, learning_rate=0.1)",
        "JOBCD has no argument 'learning_rate'",
        "did you mean 'lr'?",
    ),
    mistake(
        "An option of Adam",
        "optim.VRJOBCD([layer.weight], signature, betas=(0.9, 0.99))",
        "VRJOBCD has no argument 'betas'",
        "did you mean 'momentum'?",
    ),
    mistake(
        "An optimiser of torch by name",
        'optim.make("adam", layer)',
        "method must be one of",
        '"csdm"',
    ),
    mistake(
        "The long name",
        'optim.make("csdm", nn.JOrthogonalLinear(signature), learning_rate=0.9)',
        "'learning_rate'",
        "did you mean 'lr'?",
    ),
    mistake(
        "The name in torch",
        "nn.LorentzAttention(lorentz, num_heads=2)",
        "LorentzAttention has no argument 'num_heads'",
        "did you mean 'heads'?",
    ),
    mistake(
        "The name in torch",
        "nn.HyperbolicMLR(lorentz, num_classes=3)",
        "HyperbolicMLR has no argument 'num_classes'",
        "did you mean 'classes'?",
    ),
    mistake(
        "A data set with a slip of the pen",
        'datasets.load("cifra")',
        "name must be one of",
        "did you mean 'cifar'?",
    ),
    mistake(
        "A data set that jorth does not know",
        'datasets.fetch("imagenet")',
        "name must be one of",
        "imagenet",
    ),
    mistake(
        "The name in scikit-learn",
        'datasets.load("cifar", data_home="data")',
        "load has no argument 'data_home'",
        "did you mean 'folder'?",
    ),
    mistake(
        "A number of results",
        'kge.predict(named, "Rome", "capital_of", top_k=3)',
        "predict has no argument 'top_k'",
        "did you mean 'k'?",
    ),
    mistake(
        "An entity with a slip of the pen", 'kge.nearest(named, "Norwya")', "entity", "'Norway'"
    ),
    mistake(
        "A relation that is not in the graph",
        'kge.explain(named, "capitalof")',
        "relation",
        "'capital_of'",
    ),
    mistake(
        "A name that jorth does not have", "jorth.minimise", "minimise", "did you mean 'minimize'?"
    ),
]
