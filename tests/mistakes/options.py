"""Options of solvers, limits and stopping criteria."""

from tests.mistakes.case import mistake

TITLE = "Options of solvers"
CASES = [
    mistake(
        "Text for a number",
        'jorth.minimize(objective, signature=signature, max_iterations="50")',
        "max_iterations must be",
        "'50'",
    ),
    mistake(
        "A fraction of an iteration",
        "jorth.minimize(objective, signature=signature, max_iterations=1e3)",
        "max_iterations must be",
        "1000.0",
    ),
    mistake(
        "A negative time",
        "jorth.minimize(objective, signature=signature, max_time=-1)",
        "max_time must be",
        "-1",
    ),
    mistake(
        "A negative tolerance",
        "jorth.minimize(objective, signature=signature, gradient_tolerance=-1e-6)",
        "gradient_tolerance must be",
        "-1e-06",
    ),
    mistake(
        "A number as a criterion",
        "jorth.minimize(objective, signature=signature, stop=1e-6)",
        "stop must be a criterion from jorth.stopping",
        "1e-06",
    ),
    mistake(
        "Text for a function",
        'jorth.minimize(objective, signature=signature, callback="print")',
        "callback must be a function",
        "'print'",
    ),
    mistake(
        "A number for a folder",
        "jorth.minimize(objective, signature=signature, checkpoint=1)",
        "checkpoint must be a path",
        "1",
    ),
    mistake(
        "A choice that does not exist",
        'jorth.minimize(objective, signature=signature, on_unbounded="raise")',
        "on_unbounded must be one of",
        '"stop"',
    ),
    mistake(
        "A choice that does not exist",
        'jorth.minimize(objective, signature=signature, saddles="avoid")',
        "saddles must be one of",
        '"leave"',
    ),
    mistake(
        "Options beside a solver",
        "jorth.minimize(objective, signature=signature, method=jorth.GaussSeidel(), theta=0.1)",
        "options must be given to the solver itself",
        "theta",
    ),
    mistake(
        "Another solver for a thin start",
        'jorth.minimize(lambda Y: Y.square().sum(), X[:, :2], signature=signature, method="csdm")',
        "x0 must be square for csdm",
        "(5, 2)",
    ),
    mistake(
        "An objective without samples",
        'jorth.minimize(objective, signature=signature, method="vr-j-jobcd")',
        "vr-j-jobcd",
    ),
    mistake("A step of no size", "jorth.Jacobi(theta=-1.0)", "theta must be", "-1.0"),
    mistake(
        "A side that does not exist",
        'jorth.GaussSeidel(side="top")',
        "side must be one of",
        '"left"',
    ),
    mistake(
        "Text for a number",
        'jorth.AcceleratedGaussSeidel(block_size="large")',
        "block_size must be",
        "'large'",
    ),
    mistake("A negative memory", "jorth.AcceleratedJacobi(memory=-1)", "memory must be", "-1"),
    mistake("A batch of no samples", "jorth.VarianceReduced(batch=0)", "batch must be", "0"),
    mistake("A negative penalty", "jorth.ADMM(penalty=-1.0)", "penalty must be", "-1.0"),
    mistake("Text for a number", 'jorth.UMCM(beta="large")', "beta must be", "'large'"),
    mistake(
        "An optimiser that it does not have",
        'jorth.Exponential(optimizer="sgd")',
        "optimizer must be one of",
        '"lbfgs"',
    ),
    mistake(
        "A preconditioner that does not exist",
        'jorth.RiemannianCG(preconditioner="jacobi")',
        "preconditioner must be one of",
        '"none"',
    ),
    mistake(
        "A preconditioner that does not exist",
        "jorth.RiemannianNewton(preconditioner=True)",
        "preconditioner must be one of",
        "True",
    ),
    mistake(
        "A preconditioner that does not exist",
        "jorth.RiemannianSD(preconditioner=None)",
        "preconditioner must be one of",
        "None",
    ),
    mistake("A stage without a method", "jorth.Stage(None)", "method must be", "None"),
    mistake(
        "A limit below zero",
        'jorth.Stage("csdm", max_iterations=-3)',
        "max_iterations must be",
        "-3",
    ),
    mistake("A negative tolerance", "stopping.GradientNorm(-1.0)", "tolerance must be", "-1.0"),
    mistake(
        "Text for a tolerance", 'stopping.RelativeGradient("small")', "tolerance must be", "'small'"
    ),
    mistake(
        "A window of nothing", "stopping.RelativeDecrease(1e-6, window=0)", "window must be", "0"
    ),
    mistake("A fraction of an iteration", "stopping.MaxIterations(2.5)", "limit must be", "2.5"),
    mistake("Not a number", 'stopping.ValueBelow(float("nan"))', "target must be", "nan"),
    mistake("A negative norm", "stopping.NormAbove(-1.0)", "limit must be", "-1.0"),
    mistake("A negative tolerance", "stopping.BlockStationary(-1.0)", "tolerance must be", "-1.0"),
    mistake(
        "A number among criteria",
        "stopping.GradientNorm(1e-6) & 5",
        "stop must have a criterion",
        "5",
    ),
    mistake(
        "A checkpoint of other data",
        """
options = {"signature": signature, "method": "umcm", "checkpoint": "run"}
jorth.minimize(objective, max_iterations=1, **options)
jorth.minimize(jorth.Quadratic(2 * A), **options)
""",
        "checkpoint run belongs to another run",
        "of another objective",
    ),
    mistake(
        "A checkpoint of another method",
        """
options = {"signature": signature, "checkpoint": "run2"}
jorth.minimize(objective, method="umcm", max_iterations=1, **options)
jorth.minimize(objective, method="csdm", **options)
""",
        "checkpoint run2 belongs to another run",
        "method",
    ),
    mistake(
        "A file for a folder",
        'jorth.minimize(objective, signature=signature, checkpoint="a_file")',
        "checkpoint must be a folder",
        "a_file",
    ),
    mistake(
        "A list of problems, and a callback",
        "jorth.minimize(jorth.Quadratic(np.stack([A, A])), signature=signature, callback=print)",
        "callback must be omitted for a batch",
        "(2, 5, 5)",
    ),
]
