"""Objectives: functions that cannot be differentiated, and data that do not fit."""

from tests.mistakes.case import mistake

TITLE = "Objectives"
CASES = [
    mistake(
        "A NumPy function",
        "jorth.minimize(lambda Y: np.sum(Y**2), signature=signature)",
        "objective must be a torch function of a tensor",
        "jorth.Objective(value=..., gradient=...)",
    ),
    mistake(
        "A NumPy function",
        "jorth.minimize(lambda Y: np.linalg.norm(Y) ** 2, signature=signature)",
        "objective must be a torch function of a tensor",
        "jorth.Objective(value=..., gradient=...)",
    ),
    mistake(
        "NumPy data in a torch function",
        "jorth.minimize(lambda Y: torch.trace(A @ Y), signature=signature)",
        "objective must be a torch function of a tensor",
        "write it with torch",
    ),
    mistake(
        "Data in single precision",
        "jorth.minimize(lambda Y: (torch.ones(5, 5) @ Y).sum(), signature=signature)",
        "objective must accept X, a torch.float64 tensor",
        "give an x0 of their dtype",
    ),
    mistake(
        "Data of another size",
        "jorth.minimize(lambda Y: (torch.eye(4).double() @ Y).sum(), signature=signature)",
        "objective must accept X, a torch.float64 tensor of shape (5, 5)",
    ),
    mistake(
        "A number for a tensor",
        "jorth.minimize(lambda Y: 1.0, signature=signature)",
        "objective must return a scalar tensor",
        "float",
    ),
    mistake(
        "A value that is cut off from X",
        "jorth.minimize(lambda Y: Y.detach().sum(), signature=signature)",
        "objective must return a tensor that depends on X",
        "without a gradient",
    ),
    mistake(
        "A matrix for a number",
        "jorth.minimize(lambda Y: Y @ Y, signature=signature)",
        "objective must return a scalar tensor",
        "(5, 5)",
    ),
    mistake(
        "Nothing is returned",
        "jorth.minimize(lambda Y: None, signature=signature)",
        "objective must return a scalar tensor",
        "NoneType",
    ),
    mistake(
        "An array for an objective",
        "jorth.minimize(A, signature=signature)",
        "objective must be a jorth objective or a function",
        "(5, 5)",
    ),
    mistake(
        "The class for an objective",
        "jorth.minimize(jorth.Quadratic, signature=signature)",
        "objective must be a Quadratic(...)",
        "class Quadratic",
    ),
    mistake(
        "The signature for an objective",
        "jorth.HyperbolicEigenvalue(A, signature)",
        "HyperbolicEigenvalue takes A by position",
        "jorth.minimize: signature=",
    ),
    mistake(
        "The signature beside the data",
        "jorth.Procrustes(source, target, signature)",
        "Procrustes takes source, target by position",
        "jorth.minimize: signature=",
    ),
    mistake(
        "The class for a solver",
        "jorth.minimize(objective, signature=signature, method=jorth.RiemannianCG)",
        "method must be",
        "write RiemannianCG()",
    ),
    mistake("No gradient", "jorth.Objective(lambda Y: np.sum(Y**2))", "Objective needs gradient"),
    mistake(
        "The name in SciPy",
        "jorth.Objective(fun=np.sum, jac=np.ones_like)",
        "Objective has no argument 'fun'",
        "did you mean 'value'?",
    ),
    mistake(
        "A value for a function",
        "jorth.Objective(value=1.0, gradient=np.ones_like)",
        "value must be a function of X",
        "float",
    ),
    mistake(
        "A gradient of another shape",
        "own = jorth.Objective(value=np.sum, gradient=lambda Y: Y[:, :2])\n"
        "jorth.minimize(own, signature=signature)",
        "gradient must return shape (5, 5)",
        "(5, 2)",
    ),
    mistake(
        "A matrix for the products with the Hessian",
        "jorth.Objective(value=np.sum, gradient=np.ones_like, hessian=np.eye(5))",
        "hessian must be a function of X and V",
        "(5, 5)",
    ),
    mistake(
        "Products with the Hessian of another shape",
        "own = jorth.Objective(np.sum, np.ones_like, hessian=lambda Y, V: V[:, :2])\n"
        'jorth.minimize(own, signature=signature, method="riemannian-newton")',
        "hessian must return shape (5, 5)",
        "(5, 2)",
    ),
    mistake(
        "A value that is a vector",
        "own = jorth.Objective(value=lambda Y: Y[0], gradient=lambda Y: Y)\n"
        "jorth.minimize(own, signature=signature)",
        "value must return a number",
        "(5,)",
    ),
    mistake(
        "A torch function for a NumPy one",
        "own = jorth.Objective(value=torch.sum, gradient=torch.ones_like)\n"
        "jorth.minimize(own, signature=signature)",
        "must be a NumPy function of an array",
        "jorth.minimize",
    ),
    mistake(
        "Text from a function",
        "jorth.minimize(jorth.Objective(value=str, gradient=lambda Y: Y), signature=signature)",
        "value must return a number",
        "str",
    ),
    mistake("Neither a matrix nor data", "jorth.HyperbolicEigenvalue()", "A", "data"),
    mistake(
        "A sense that does not exist",
        'jorth.HyperbolicEigenvalue(A, sense="largest")',
        "sense must be one of",
        '"max"',
    ),
    mistake(
        "A negative ridge",
        "jorth.StructuralProbe(points, signature=lorentz, ridge=-1.0)",
        "ridge must be",
        "-1.0",
    ),
    mistake(
        "Distances that are not square",
        "jorth.StructuralProbe(points, np.ones((6, 5)), signature=lorentz)",
        "distances must",
        "(6, 5)",
    ),
    mistake(
        "Distances of other points",
        "jorth.StructuralProbe(points, np.ones((4, 4)), signature=lorentz)",
        "distances must",
        "(4, 4)",
    ),
    mistake("No signature", "jorth.StructuralProbe(points)", "StructuralProbe needs signature"),
    mistake("No function", "jorth.FiniteSum(5, source)", "fn must be a function", "int"),
    mistake(
        "No samples",
        "jorth.FiniteSum(lambda Y, rows: (rows @ Y).sum(), torch.ones(0, 5))",
        "data must",
        "at least 1",
    ),
    mistake(
        "Not an objective", "jorth.Sharded(lambda Y: Y.sum())", "objective must be", "function"
    ),
    mistake(
        "A matrix for an objective",
        "jorth.hessian_check(A, X, signature)",
        "objective must be a jorth objective or a function",
        "(5, 5)",
    ),
    mistake(
        "A matrix for an objective",
        "jorth.block_stationarity(A, X, signature)",
        "objective must be a jorth objective or a function",
        "(5, 5)",
    ),
]
