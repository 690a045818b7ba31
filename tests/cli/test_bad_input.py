"""Wrong calls: one line that names what is wrong, the right exit code, and no file touched."""

import os

import numpy as np
import pytest
from click.testing import CliRunner

from jorth.cli import main
from jorth.kge import NamedModel, UltraE, save_model
from jorth.signature import Signature
from tests.cli.conftest import N

OUT = "-s 5,3 -o out.npy"
SAME = "--signature must have 8 signs, one per column of A.npy"
WRONG = {
    # exit code 1: a file, or matrices that do not fit
    f"solve eigen complex.npy {OUT}": (1, "complex.npy must hold a real matrix"),
    f"solve procrustes S.npy nan.npy {OUT}": (1, "nan.npy must be finite, got 320 NaN or infinite entries, the first in row 1"),
    f"solve eigen words.csv {OUT}": (1, "words.csv, line 2, column 2: expected a number, got 'four'"),
    f"solve eigen A.xls {OUT}": (1, "A.xls must end in .npy, .csv, .tsv, .txt, .npz, got '.xls'"),
    f"solve eigen D.npy {OUT}": (1, "A must be square, got 30 rows and 8 columns; `jorth solve svd` takes data"),
    f"solve eigen tilted.npy {OUT}": (1, "A must be symmetric"),
    f"solve eigen indefinite.npy {OUT}": (1, "A must form a definite pencil"),
    f"solve procrustes S.npy short.npy {OUT}": (1, "target must have shape"),
    f"solve procrustes S.npy T.npy --start far.npy {OUT}": (1, "x0 must be J-orthogonal"),
    f"solve procrustes twice.csv ids.csv {OUT}": (1, "twice.csv must have distinct ids, got 'a' more than once"),
    "solve lstsq D.npy D.npy -s 5,25 -o out.npy": (1, "A must have shape (..., 30, k) with 1 <= k <= p = 5"),
    "solve qr D.npy -s 15,15 -o out.npy": (1, "A^T J A must be positive definite"),
    "apply A.npy words3.csv -o out.csv": (1, "words3.csv must have 8 columns, one for each row of A.npy, got 3"),
    "kge evaluate -m empty": (1, "must hold model.safetensors and model.json"),
    "kge train --data empty -o out": (1, "must hold train.txt, train.tsv, train.csv or train.nt"),
    "kge train --data words.csv -o out": (1, "words.csv must have lines of head, relation, tail separated by commas"),
    "kge draw -m model -o out.xyz": (1, "path must end in .png, .pdf or .svg"),
    # exit code 2: an option, or a name
    "solve eigen none.npy -s 5,3 -o out.npy": (2, "File 'none.npy' does not exist"),
    "solve eigen A.npy -s 5,3 -o out.xls": (2, "--output must end in .npy, .csv, .tsv, .txt, got out.xls"),
    "solve procrustes S.npy T.npy -s 5,3 -o out.npy --plot out.xls": (2, "--plot must end in .png, .svg, .pdf"),
    "solve procrustes S.npy T.npy -s 5,3 -o out.npy --aligned out.npy": (2, "--output, --aligned and --plot must be different files"),
    "solve eigen A.npy -o out.npy": (2, "Missing option '--signature'"),
    "solve eigen A.npy -s 5,2 -o out.npy": (2, f"{SAME}, got 7"),
    f"solve eigen A.npy -s {'+' * 300} -o out.npy": (2, f"{SAME}, got 300"),
    f"solve eigen A.npy -s {'1,' * 300} -o out.npy": (2, "--signature must be p,q"),
    "solve lstsq D.npy D.npy -s 5,3 -o out.npy": (2, "must have 30 signs, one per row of D.npy"),
    f"solve eigen two.npz {OUT}": (2, "--key must name one variable of two.npz; it holds A, B"),
    f"solve eigen two.npz --key C {OUT}": (2, "--key must name one variable of two.npz; it holds A, B"),
    f"solve procrustes S.npy T.npy --method newton {OUT}": (2, "--method: method must be one of auto"),
    f"solve procrustes S.npy T.npy --checkpoint c {OUT}": (2, "--checkpoint must be given with --method"),
    f"solve eigen A.npy --max-iterations 0 {OUT}": (2, "No such option"),
    f"solve quadratic A.npy --max-time -1 {OUT}": (2, "not in the range x>=0"),
    "solve eigen A.npy -s 5,3 -o A.npy": (2, "--output must not replace an input: A.npy is A.npy"),
    "solve eigen A.npy -s 5,3 -o link.npy": (2, "--output must not replace an input: link.npy is A.npy"),
    "solve egien A.npy": (2, "No such command 'egien'"),
    "kge train --data none": (2, "Path 'none' does not exist"),
    "kge train --set epoch=3": (2, "there is no setting 'epoch'; did you mean 'epochs'"),
    "kge train --set epochs": (2, "a setting must be KEY=VALUE, got 'epochs'"),
    "kge train --set lr=high": (2, "lr must be a number"),
    "kge train --set method=jobcd": (2, "method must be one of"),
    "kge train --set relation_options=3": (2, "relation_options must be a dictionary"),
    "kge train --device tpu": (2, "Invalid value for '--device'"),
    "kge predict pandas imports -m model": (2, "there is no entity 'pandas'; did you mean 'python3-pandas'?"),
    "kge predict python3-numpy importz -m model": (2, "there is no relation 'importz'; did you mean 'imports'?"),
    "kge predict ? ? -m model": (2, "one of HEAD, RELATION and TAIL may be '?'"),
    "kge nearest nump -m model": (2, "there is no entity 'nump'; did you mean 'python3-numpy'?"),
    "kge explain import -m model": (2, "there is no relation 'import'; did you mean 'imports'?"),
    "kge draw -m model --label zlib": (2, "there is no entity 'zlib'"),
    "kge draw -m model --depth imports --colours words.csv": (2, "--colours and --depth exclude each other"),
}  # fmt: skip


@pytest.fixture
def wrong(folder):
    """The files that the calls above name."""
    np.save("complex.npy", np.eye(N) * 1j)
    np.save("tilted.npy", np.load("A.npy") + np.triu(np.ones((N, N)), 1))
    np.save("indefinite.npy", np.diag([-1.0] * 4 + [1.0, -2.0, -2.0, 3.0]))
    np.save("short.npy", np.load("T.npy")[:-1])
    np.save("nan.npy", np.load("T.npy") * np.nan)
    np.save("far.npy", 2 * np.eye(N))
    np.savez("two.npz", A=np.eye(N), B=np.eye(N))
    (folder / "words.csv").write_text("1,2\n3,four\n")
    (folder / "words3.csv").write_text("1,2,3\n4,5,6\n")
    (folder / "ids.csv").write_text("a,1,2\nb,3,4\nc,5,6")
    (folder / "twice.csv").write_text("a,1,2\na,3,4\nb,5,6")
    (folder / "A.xls").write_text("1")
    (folder / "empty").mkdir()
    os.link("A.npy", "link.npy")
    names = [f"python3-{name}" for name in ("numpy", "scipy", "pandas")]
    model = UltraE(3, 1, signature=Signature(2, 1))
    save_model(folder / "model", NamedModel(model, names, ["imports"]))
    return folder


@pytest.mark.parametrize("call", WRONG, ids=lambda call: call[:50])
def test_wrong_calls(wrong, call):
    code, message = WRONG[call]
    before = {path: path.is_file() and path.read_bytes() for path in wrong.rglob("*")}
    result = CliRunner().invoke(main, call.split())
    assert result.exit_code == code, result.output
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert len(result.output) < 1000
    if code == 1:
        assert result.output.startswith("Error: ")
        assert result.output.count("\n") == 1
    assert {path: path.is_file() and path.read_bytes() for path in wrong.rglob("*")} == before
