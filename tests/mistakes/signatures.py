"""The signature: missing, at the wrong place, of the wrong kind or size."""

from tests.mistakes.case import mistake

TITLE = "The signature"
CASES = [
    mistake(
        "A list of signs for the two numbers",
        "jorth.Signature([1, 1, -1])",
        "p and q",
        "Signature.of",
    ),
    mistake("One number for two", "jorth.Signature(5)", "p and q", "two numbers"),
    mistake("A fraction", "jorth.Signature(2.5, 1)", "p must be an integer", "float"),
    mistake("A negative number", "jorth.Signature(3, -2)", "q must be at least 0", "-2"),
    mistake("No signs at all", "jorth.Signature(0, 0)", "p + q must be at least 1"),
    mistake(
        "A zero among the signs",
        "jorth.Signature.of([1, 0, -1])",
        "signs must each be +1 or -1",
        "position 1",
    ),
    mistake(
        "Time at no known end",
        'jorth.Signature.lorentz(4, time="start")',
        "time must be",
        '"first" or "last"',
    ),
    mistake(
        "No signature for an objective without one",
        "jorth.minimize(objective)",
        "signature must be given",
        "p + q = 5",
    ),
    mistake(
        "The signature at the place of the start",
        "jorth.minimize(objective, signature)",
        "x0 must be a matrix",
        "signature=Signature(3, 2)",
    ),
    mistake(
        "The signature by position",
        "jorth.minimize(objective, X, signature)",
        "signature by name",
        "signature=...",
    ),
    mistake(
        "The name on the command line",
        'jorth.procrustes(source, target, "lorentz")',
        "signature must be a jorth.Signature",
        "jorth.Signature.lorentz(n)",
    ),
    mistake(
        "Two numbers in a tuple",
        "jorth.minimize(objective, signature=(3, 2))",
        "signature must be a jorth.Signature",
        "jorth.Signature(3, 2)",
    ),
    mistake(
        "Signs in a list",
        "jorth.minimize(objective, signature=[1, 1, 1, -1, -1])",
        "signature must be a jorth.Signature",
        "Signature.of",
    ),
    mistake(
        "A signature that is too large for the data",
        "jorth.minimize(objective, signature=jorth.Signature(4, 2))",
        "signature must have 5 signs",
        "Signature(4, 2)",
    ),
    mistake(
        "Two numbers for a signature",
        "jorth.procrustes(source, target, 3, 2)",
        "source, target, signature",
        "jorth.Signature(3, 2)",
    ),
    mistake(
        "No signature", "jorth.procrustes(source, target)", "signature", "jorth.Signature(3, 2)"
    ),
    mistake(
        "A signature that does not fit the columns",
        "jorth.procrustes(source, target, jorth.Signature(3, 3))",
        "signature must have one sign per column of source",
        "(20, 5)",
    ),
    mistake(
        "Two numbers for a signature",
        "jorth.eigh(A, 3, 2)",
        "A, signature",
        "jorth.Signature(3, 2)",
    ),
    mistake("No signature", "jorth.random_point()", "signature", "jorth.Signature(3, 2)"),
    mistake(
        "The size for a signature",
        "jorth.random_point(5)",
        "signature must be a jorth.Signature",
        "int 5",
    ),
    mistake(
        "Arguments in the wrong order",
        "jorth.inverse(signature, X)",
        "X must not be a signature",
        "X, signature in this order",
    ),
    mistake(
        "A name for a signature",
        'jorth.random_point("lorentz")',
        "signature must be a jorth.Signature",
        "'lorentz'",
    ),
    mistake(
        "A signature other than the objective's",
        """
probe = jorth.StructuralProbe(points, signature=lorentz)
jorth.minimize(probe, signature=jorth.Signature(2, 1))
""",
        "signature must be the objective's",
        "Signature.of([-1, 1, 1])",
    ),
    mistake(
        "A signature without minus signs, where points need one",
        "ultrahyperbolic.origin(jorth.Signature(3, 0))",
        "signature must",
        "q",
    ),
]
