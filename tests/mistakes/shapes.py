"""Sizes that do not go together."""

from tests.mistakes.case import mistake

TITLE = "Shapes"
CASES = [
    mistake(
        "A matrix of another size",
        "jorth.inverse(np.eye(4), signature)",
        "X must have shape (..., 5, 5)",
        "(4, 4)",
    ),
    mistake(
        "A vector for a matrix",
        "jorth.component(np.ones(5), signature)",
        "X must have shape (..., 5, 5)",
        "(5,)",
    ),
    mistake(
        "Other numbers of rows",
        "jorth.residual(np.ones((4, 2)), signature)",
        "X must have shape (..., 5, k)",
        "(4, 2)",
    ),
    mistake(
        "A Gram matrix of another size",
        "jorth.residual(X, signature, gram=np.eye(3))",
        "gram must have shape (..., 5, 5)",
        "(3, 3)",
    ),
    mistake(
        "A matrix of another size",
        "jorth.exchange(np.eye(6), signature)",
        "X must have shape (..., 5, 5)",
        "(6, 6)",
    ),
    mistake(
        "A matrix of another size",
        "jorth.polish(np.eye(3), signature)",
        "X must have shape (..., 5",
        "(3, 3)",
    ),
    mistake(
        "A matrix of another size",
        "jorth.exp(np.zeros((2, 2)), signature)",
        "K must have shape (..., 5, 5)",
        "(2, 2)",
    ),
    mistake(
        "A matrix of another size",
        "jorth.cayley(np.zeros((2, 2)), signature)",
        "K must have shape (..., 5, 5)",
        "(2, 2)",
    ),
    mistake(
        "A matrix of another size",
        "jorth.log(np.eye(2), signature)",
        "X must have shape (..., 5, 5)",
        "(2, 2)",
    ),
    mistake(
        "One matrix for several",
        "jorth.mean(X, signature)",
        "Xs must have shape (m, 5, 5)",
        "(5, 5)",
    ),
    mistake(
        "A tangent vector of another size",
        "jorth.transport(X, X, np.eye(2), signature)",
        "V must have shape (..., 5, 5)",
        "(2, 2)",
    ),
    mistake(
        "A gradient of another shape",
        "jorth.riemannian_gradient(X, np.ones((5, 3)), signature)",
        "G must have",
        "(5, 3)",
    ),
    mistake(
        "A gradient of another shape",
        "jorth.multiplier(X, np.ones((3, 3)), signature)",
        "G must have",
        "(3, 3)",
    ),
    mistake(
        "A matrix that is not square",
        "jorth.cs_decomposition(np.ones((5, 3)), signature)",
        "X must have shape (..., 5, 5)",
        "(5, 3)",
    ),
    mistake(
        "The transposed matrix", "jorth.hsvd(np.ones((5, 20)), signature)", "G must have", "(5, 20)"
    ),
    mistake(
        "Other numbers of rows",
        "jorth.hyperbolic_qr(np.ones((4, 2)), signature)",
        "A must have",
        "(4, 2)",
    ),
    mistake(
        "More unknowns than rows",
        "jorth.total_least_squares(np.ones((2, 5)), np.ones(2))",
        "A must have shape (..., m, n) with 1 <= n <= m",
        "(2, 5)",
    ),
    mistake(
        "A row of another length",
        "jorth.cholesky_update(np.eye(5), add=np.ones(4))",
        "add must have shape (k, 5) or (5,)",
        "(4,)",
    ),
    mistake(
        "A right-hand side of another length",
        "jorth.indefinite_lstsq(np.eye(5)[:, :2], np.ones(4), signature)",
        "b must have",
        "(4,)",
    ),
    mistake(
        "A matrix of another size",
        "jorth.eigh(np.eye(4), signature)",
        "A must have shape (..., 5, 5)",
        "(4, 4)",
    ),
    mistake(
        "One number of eigenpairs", "jorth.eigh(A, signature, subset=2)", "subset must be two", "2"
    ),
    mistake(
        "More eigenpairs than there are",
        "jorth.eigh(A, signature, subset=(2, 5))",
        "q = 2 negative",
        "2 and 5",
    ),
    mistake(
        "No eigenpairs", "jorth.Subset(0, 0)", "positive + negative must be at least 1", "0 and 0"
    ),
    mistake(
        "A tolerance by another name",
        "jorth.Subset(2, 2, tol=1e-8)",
        "no argument 'tol'",
        "tolerance",
    ),
    mistake(
        "A matrix of another size",
        "jorth.polar(np.eye(4), signature)",
        "A must have shape (..., 5, 5)",
        "(4, 4)",
    ),
    mistake(
        "Factors of other sizes",
        "jorth.CS(np.eye(2), np.eye(2), np.ones(2), np.eye(3), np.eye(2), signature).compose()",
        "U1 must have",
        "(2, 2)",
    ),
    mistake(
        "Factors of other sizes",
        "jorth.HSVD(U=np.eye(5), S=np.ones(4), X=X, signature=signature).compose()",
        "S must have",
        "(4,)",
    ),
    mistake(
        "Clouds of different lengths",
        "jorth.procrustes(source, target[:-1], signature)",
        "target must have",
        "(19, 5)",
    ),
    mistake(
        "Clouds of different lengths",
        "jorth.Procrustes(source, target[:-1])",
        "target must have",
        "(19, 5)",
    ),
    mistake(
        "A linear term of another size",
        "jorth.Quadratic(A, C=np.ones((4, 4)))",
        "C must have",
        "(4, 4)",
    ),
    mistake("A matrix that is not square", "jorth.Quadratic(np.ones((5, 4)))", "A must", "(5, 4)"),
    mistake(
        "A vector for data", "jorth.HyperbolicEigenvalue(data=np.ones(5))", "data must", "(5,)"
    ),
    mistake(
        "Data with other columns than signs",
        "jorth.StructuralProbe(np.ones((6, 4)), signature=lorentz)",
        "data must have",
        "(6, 4)",
    ),
    mistake(
        "A start of another size",
        "jorth.minimize(objective, np.eye(4), signature=signature)",
        "x0 must have shape",
        "(4, 4)",
    ),
    mistake(
        "A point of another size",
        "jorth.hessian_check(objective, np.eye(4), signature)",
        "X must have",
        "(4, 4)",
    ),
    mistake(
        "A point of another size",
        "jorth.block_stationarity(objective, np.eye(4), signature)",
        "X must have",
        "(4, 4)",
    ),
    mistake(
        "Points of another dimension",
        "ultrahyperbolic.distance(points, points[:, :2], lorentz)",
        "y must have",
        "(6, 2)",
    ),
    mistake(
        "Points of another dimension",
        "ultrahyperbolic.lift(np.ones((6, 4)), lorentz)",
        "x must have",
        "(6, 4)",
    ),
    mistake(
        "A tangent vector of another dimension",
        "ultrahyperbolic.exp(points, np.ones((6, 2)), lorentz)",
        "v must have",
        "(6, 2)",
    ),
    mistake(
        "Points of another dimension",
        "ultrahyperbolic.log(points[:, :2], points, lorentz)",
        "x must have",
        "(6, 2)",
    ),
    mistake(
        "A tangent vector of another dimension",
        "ultrahyperbolic.project_tangent(points, np.ones(2), lorentz)",
        "v must have",
        "(2,)",
    ),
    mistake(
        "A tangent vector of another dimension",
        "ultrahyperbolic.transport(points, points, np.ones(2), lorentz)",
        "v must have",
        "(2,)",
    ),
    mistake(
        "Points of another dimension",
        "ultrahyperbolic.inner(points, np.ones(4), lorentz)",
        "y must have",
        "(4,)",
    ),
    mistake(
        "Weights of another length",
        "ultrahyperbolic.frechet_mean(points, lorentz, weights=np.ones(5))",
        "weights must have shape (..., 6)",
        "(5,)",
    ),
    mistake(
        "Weights of another length",
        "ultrahyperbolic.centroid(points, lorentz, weights=np.ones(5))",
        "weights must have",
        "(5,)",
    ),
    mistake(
        "Matrices that are not 2 by 2",
        "plane.solve_plane(np.ones((7, 3)), np.ones(7), np.ones((7, 2)))",
        "P must have shape (..., 2, 2)",
        "(7, 3)",
    ),
    mistake(
        "Another number of signs",
        "jorth.solve_plane(np.ones((7, 2, 2)), np.ones(7), np.ones((6, 2)))",
        "signs must have shape (7, 2)",
        "(6, 2)",
    ),
    mistake(
        "Other numbers of columns",
        "plane.solve_rows(np.ones((7, 2, 5)), np.ones((7, 2, 4)), np.ones(7), np.ones((7, 2)))",
        "must have",
        "(7, 2, 5)",
    ),
    mistake(
        "One index per step for two",
        "plane.apply_rows(X, np.arange(4), np.ones((2, 2, 2)))",
        "pairs must",
        "(4,)",
    ),
    mistake(
        "Another number of steps than of pairs",
        "plane.apply_columns(X, np.array([[0, 1], [2, 3]]), np.ones((3, 2, 2)))",
        "V must have",
        "(3, 2, 2)",
    ),
    mistake(
        "Weights that are not square",
        "plane.greedy_matching(np.ones((4, 5)), seed=0)",
        "weights must",
        "(4, 5)",
    ),
    mistake(
        "Sizes that do not broadcast",
        "plane.minimize_circle(np.ones(2), np.ones(3), 1.0, 1.0, 1.0)",
        "shapes must broadcast",
        "b (3,)",
    ),
    mistake(
        "Sizes that do not broadcast",
        "plane.minimize_lightcone(np.ones(2), np.ones(3), 1.0, 1.0)",
        "shapes must broadcast",
        "B (3,)",
    ),
]
