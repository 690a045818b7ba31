"""Values and types that a function cannot use."""

from tests.mistakes.case import mistake

TITLE = "Values and types"
CASES = [
    mistake("Text for a matrix", 'jorth.inverse("X", signature)', "X must be", "str 'X'"),
    mistake(
        "Complex numbers",
        "jorth.eigh(A.astype(complex), signature)",
        "A must hold real numbers",
        "complex128",
    ),
    mistake(
        "A dictionary of columns",
        'jorth.procrustes({"x": source}, target, signature)',
        "source must be",
        "dict",
    ),
    mistake(
        "Missing values in the data",
        "jorth.procrustes(source + np.nan, target, signature)",
        "source must be finite",
        "100 NaN",
    ),
    mistake(
        "Missing values in a matrix",
        "jorth.component(X * np.nan, signature)",
        "X must be finite",
        "25 NaN",
    ),
    mistake(
        "A matrix that is not J-orthogonal",
        "jorth.cs_decomposition(2 * X, signature)",
        "X must be J-orthogonal",
        "Signature(3, 2)",
    ),
    mistake(
        "A logarithm in another component",
        "jorth.log(np.diag([1.0, 1.0, -1.0, 1.0, 1.0]), signature)",
        "X must be in the identity component (1, 1) to have a logarithm",
        "got component (-1, 1)",
    ),
    mistake(
        "The logarithm of a half turn",
        "jorth.log(np.diag([-1.0, -1.0, 1.0, 1.0, 1.0]), signature)",
        "X must have no eigenvalue on the negative real axis",
        "got -1 (a half turn)",
    ),
    mistake(
        "The distance between two components",
        "jorth.distance(np.eye(5), np.diag([1.0, 1.0, -1.0, 1.0, 1.0]), signature)",
        "Y must be in the component of X",
    ),
    mistake(
        "A direction that is not tangent",
        "jorth.transport(X, X, np.eye(5), signature)",
        "V must be tangent at X",
    ),
    mistake(
        "A mean with negative weights",
        "jorth.mean(np.stack([X, X]), signature, weights=[2, -1])",
        "weights must be at least 0",
        "1 negative of 2",
    ),
    mistake(
        "A mean of points on two sheets",
        "ultrahyperbolic.frechet_mean([points[0], -points[0]], lorentz)",
        "points must be on one sheet",
    ),
    mistake(
        "A start that is not J-orthogonal",
        "jorth.minimize(objective, X + 0.1, signature=signature)",
        "x0 must be J-orthogonal",
        "jorth.polish",
    ),
    mistake(
        "A point that is not J-orthogonal",
        "jorth.hessian_check(objective, 2 * X, signature)",
        "X must be J-orthogonal",
        "residual",
    ),
    mistake(
        "A start in another precision",
        "jorth.minimize(objective, X.astype(np.float32), signature=signature)",
        "x0 must have the dtype",
        "float32",
    ),
    mistake(
        "Too far from J-orthogonal to polish", "jorth.polish(np.zeros((5, 5)), signature)", "X"
    ),
    mistake(
        "A singular diagonal block",
        "jorth.exchange(np.zeros((5, 5)), signature)",
        "X has no exchange",
        "singular",
    ),
    mistake(
        "A matrix that is not symmetric",
        "jorth.Quadratic(np.triu(np.ones((5, 5))))",
        "A must be symmetric",
        "max |A - A^T|",
    ),
    mistake(
        "A matrix that is not symmetric",
        "jorth.eigh(np.triu(np.ones((5, 5))), signature)",
        "A must be symmetric",
        "max |A - A^T|",
    ),
    mistake(
        "An indefinite pencil", "jorth.eigh(np.diag([1.0, 1, -9, 1, -9]), signature)", "A must"
    ),
    mistake(
        "A semidefinite pencil that cannot be diagonalised",
        "jorth.eigh(np.outer([1.0, 0, 0, 1, 0], [1.0, 0, 0, 1, 0]), signature)",
        "A - mu J",
    ),
    mistake(
        "A shift outside of the gap",
        "jorth.eigh(A, signature, shift=3.5)",
        "shift must be",
        "eigenvalues from",
    ),
    mistake(
        "A tolerance below zero",
        "jorth.trace_infimum(A, signature, tolerance=-1)",
        "tolerance must be",
    ),
    mistake(
        "Eigenvalues and vectors in the wrong order",
        "jorth.eigh_errors(A, *jorth.eigh(A, signature)[::-1], signature)",
        "X must have shape",
    ),
    mistake(
        "Eigenvectors as rows",
        "jorth.eigh_errors(A, np.ones(2), X[:2], signature)",
        "X must have shape",
        "(..., 5, k)",
    ),
    mistake(
        "The infimum of a batch",
        "jorth.trace_infimum(np.stack([A, A]), signature)",
        "A must be one matrix",
    ),
    mistake("No positive columns", "jorth.hyperbolic_qr(np.eye(5)[:, 3:], signature)", "A"),
    mistake(
        "No least squares solution",
        "jorth.indefinite_lstsq(np.eye(5)[:, 3:], np.ones(5), signature)",
        "A",
    ),
    mistake(
        "Dependent columns",
        "jorth.total_least_squares(np.ones((5, 2)), np.arange(5.0))",
        "A and b must have a solution",
        "dependent columns",
    ),
    mistake(
        "More data taken out than there are",
        "jorth.total_least_squares(np.eye(5)[:, 3:], np.ones(5), signature)",
        "no negative eigenvalue",
    ),
    mistake(
        "A row that was never added",
        "jorth.cholesky_update(np.eye(5), drop=np.ones(5))",
        "drop must be rows that leave",
        "positive definite",
    ),
    mistake(
        "A lower triangle for an upper one",
        "jorth.cholesky_update(np.linalg.cholesky(np.eye(5) + 1), add=np.ones(5))",
        "R must be upper triangular",
        "lower=True",
    ),
    mistake("A singular matrix", "jorth.polar(np.zeros((5, 5)), signature)", "A"),
    mistake(
        "A null vector on the light cone",
        "jorth.hsvd(np.eye(5)[:1] + np.eye(5)[4:], signature)",
        "G must have a null space",
        "nondegenerate",
    ),
    mistake(
        "A condition number below one",
        "jorth.random_point(signature, cond=0.5)",
        "cond must be",
        "at least 1",
    ),
    mistake(
        "Signs that are zero",
        "jorth.random_point(signature, component=(1, 0))",
        "component must be two signs",
        "(1, 0)",
    ),
    mistake(
        "More columns than signs",
        "jorth.random_point(signature, columns=(4, 0))",
        "columns must be",
        "p = 3",
    ),
    mistake(
        "No seed", "jorth.random_point(signature, seed=None)", "seed must be an integer", "None"
    ),
    mistake(
        "A precision that jorth does not compute in",
        "jorth.random_point(signature, dtype=np.int64)",
        "dtype must be float64 or float32",
    ),
    mistake(
        "A device that is not there",
        'jorth.random_point(signature, dtype=torch.float64, device="gpu")',
        "device must be",
        "did you mean 'cuda'?",
    ),
    mistake(
        "A radius of zero",
        "ultrahyperbolic.distance(points, points, lorentz, alpha=0.0)",
        "alpha must be",
        "0.0",
    ),
    mistake(
        "A negative radius", "ultrahyperbolic.origin(lorentz, alpha=-1.0)", "alpha must be", "-1.0"
    ),
    mistake(
        "Text for a radius",
        'ultrahyperbolic.membership(points, lorentz, alpha="1")',
        "alpha must be",
        "'1'",
    ),
    mistake(
        "Points with nothing at the minus signs",
        "ultrahyperbolic.lift(np.array([[0.0, 1.0, 2.0]]), lorentz)",
        "x",
    ),
    mistake(
        "Points without a geodesic between them",
        "ultrahyperbolic.log(np.array([1.0, 0, 0]), np.array([-1.0, 0, 0]), lorentz)",
        "y",
    ),
    mistake(
        "A surrogate that is not symmetric",
        "plane.solve_plane(np.ones((2, 2)), np.triu(np.ones((4, 4))), np.ones(2))",
        "Q must be symmetric",
        "max |Q - Q^T|",
    ),
    mistake(
        "Signs that are zero",
        "plane.solve_plane(np.ones((2, 2)), 1.0, np.zeros(2))",
        "signs must each be +1 or -1",
    ),
    mistake(
        "An index twice in one round",
        "plane.apply_rows(X, np.array([[0, 1], [1, 2]]), np.stack([np.eye(2)] * 2))",
        "pairs must",
        "disjoint",
    ),
    mistake(
        "A row that does not exist",
        "plane.apply_rows(X, np.array([[0, 9]]), np.eye(2)[None])",
        "pairs must",
        "9",
    ),
    mistake("A single index", "plane.random_matching(1, seed=0)", "n must be at least 2", "got 1"),
    mistake("A negative number of pairs", "plane.random_pairs(4, -1, seed=0)", "count must", "-1"),
    mistake("A fraction of an index", "plane.all_pairs(2.5)", "n must be an integer", "2.5"),
    mistake("A negative number", "plane.tournament(-4)", "n must be at least 2", "-4"),
    mistake("Text for a number", 'datasets.randn("20", 5)', "m must be an integer", "'20'"),
    mistake("No rows", "datasets.graded(0, 5)", "m must be at least 1", "got 0"),
    mistake(
        "A condition number below one",
        "datasets.positive_definite(5, cond=0.1)",
        "cond must be",
        "0.1",
    ),
    mistake(
        "Negative noise",
        "datasets.planted_procrustes(20, signature, noise=-1.0)",
        "noise must be",
        "-1.0",
    ),
    mistake("Fewer signs than pixels", "datasets.digits_trace(signature)", "signature must", "64"),
]
