"""Files as people have them: twenty pairs of clouds, and what is read, printed and written."""

import json
import re

import numpy as np
import pytest
import scipy.sparse
from click.testing import CliRunner

import jorth
from jorth.cli import main
from jorth.cli.files import WRITABLE, Dialect, Table, read, write

HARD = np.array([[1 / 3, -0.0, 5e-324], [np.finfo(float).max, -np.pi * 1e-200, 1 + 2**-52]])
M = 12
LORENTZ = jorth.Signature.lorentz(3)
GERMAN = dict(mark=";", decimal=",")
EXCEL = dict(mark="\t", decimal=",", encoding="utf-16")


def clouds():
    """Points of the hyperboloid, and the same moved, with an error of 0.01."""
    rng = np.random.default_rng(0)
    space = rng.standard_normal((M, 2))
    source = np.column_stack([np.sqrt(1 + np.square(space).sum(axis=1)), space])
    X = jorth.random_point(LORENTZ, cond=5.0, component=(-1, 1), seed=1)
    return source, source @ X + 0.01 * rng.standard_normal((M, 3)), X


def text_of(
    points, *, ids=None, names="t x y", mark=",", decimal=".", encoding="utf-8", rows=None,
    columns=(0, 1, 2), gaps=(), above="", heading=None,
):  # fmt: skip
    """Write points as somebody would have; ``rows`` gives their order."""
    lines = []
    if names is not None:
        own = [names.split()[j] for j in columns] if len(names.split()) == 3 else names.split()
        lines.append(own if ids is None else [heading if heading is not None else "id", *own])
    for i in range(M) if rows is None else rows:
        cells = ["" if (i, j) in gaps else f"{points[i, j]:.9f}" for j in columns]
        cells = [cell.replace(".", decimal) for cell in cells]
        lines.append(cells if ids is None else [ids.format(i), *cells])
    content = above + "".join(mark.join(line) + "\r\n" for line in lines)
    return content.encode(encoding)


def shuffled(seed=5):
    return np.random.default_rng(seed).permutation(M)


FITS = r"R\^2 +0\.999"
CERTIFIED = "certified: no X is better"
CASES = {
    # the two files, options, and what must be printed
    "plain": ({}, {}, "", [FITS, CERTIFIED, f"procrustes, {M} rows"]),
    "semicolons and decimal commas": (GERMAN, GERMAN, "", [FITS]),
    "Unicode text of Excel": (EXCEL, {}, "", [FITS]),
    "white space, no names": ({"mark": "  ", "names": None}, {"names": None}, "", [FITS]),
    "comments and blank lines": ({"above": "# by hand\n\n"}, {}, "", [FITS]),
    "Latin-1 names": ({"names": "größe x y", "encoding": "latin-1"}, {}, "", [FITS, "names differ: größe"]),
    "pandas, with its index": ({"ids": "{}", "heading": ""}, {"ids": "{}", "heading": ""}, "", [FITS]),
    "shuffled, with ids": ({"ids": "p{}"}, {"ids": "p{}", "rows": shuffled()}, "", [FITS, "rows were matched by ids, 12 in both files"]),
    "ids, some in one file only": ({"ids": "p{}"}, {"ids": "p{}", "rows": shuffled()[:9]}, "", [FITS, "9 in both files, and 3 and 0 rows of source.csv and target.csv were left out"]),
    "other ids": ({"ids": "p{}"}, {"ids": "q{}"}, "", [FITS, "Warning: source.csv and target.csv have no ids in common: rows are paired by position"]),
    "ids in one file": ({"ids": "p{}"}, {}, "", [FITS, "Warning: only one of source.csv and target.csv has ids"]),
    "shuffled, without ids": ({}, {"rows": shuffled()}, "", [r"R\^2 +-?0?\.?", "Warning: both clouds have the same shape, so their rows may be in different orders"]),
    "columns in another order": ({}, {"columns": (1, 2, 0)}, "", [FITS, "columns of target.csv were matched by names: t, x, y"]),
    "the time is last": ({"columns": (1, 2, 0)}, {"columns": (1, 2, 0)}, "", ["Warning: the signature has its time first, but all points are timelike with the time last"]),
    "a gap": ({"gaps": [(4, 1)]}, {"gaps": [(7, 2)]}, "--missing drop", [FITS, "2 of 12 rows were left out, as they have gaps", "procrustes, 10 rows"]),
    "counted rows": ({"ids": "{}", "names": None}, {"ids": "{}", "names": None}, "", ["Warning: the first column of source.csv counts the rows and was taken as a coordinate"]),
    "shifted clouds": ({"shift": 5.0}, {"shift": -5.0}, "-s 3,0", [r"Warning: R\^2 would be 1 if the column means of both files were subtracted"]),
    "not on a hyperboloid": ({"noise": True}, {"noise": True}, "", [r"Warning: the rows are not points of a hyperboloid: x\^T J x is from"]),
}  # fmt: skip


def files(folder, source, target):
    points = list(clouds()[:2])
    for name, cloud, settings in zip(("source", "target"), points, (source, target), strict=True):
        settings = dict(settings)
        if "shift" in settings:  # one cloud, shifted two ways
            cloud = points[0] * [0.2, 1, 1] + settings.pop("shift")
        if settings.pop("noise", False):
            cloud = np.random.default_rng(len(name) + ord(name[0])).standard_normal((M, 3))
        (folder / f"{name}.csv").write_bytes(text_of(cloud, **settings))


def jorth_command(line):
    result = CliRunner().invoke(main, line.split())
    assert result.exit_code == 0, result.output
    assert max(map(len, result.output.splitlines())) <= 80
    return " ".join(result.output.split())


@pytest.mark.parametrize(("source", "target", "options", "said"), CASES.values(), ids=CASES)
def test_twenty_pairs_of_files(tmp_path, monkeypatch, source, target, options, said):
    monkeypatch.chdir(tmp_path)
    files(tmp_path, source, target)
    signature = "" if "-s" in options else "-s lorentz"
    line = f"solve procrustes source.csv target.csv -o X.csv {signature} {options}"
    output = jorth_command(line)
    for text in said:
        assert re.search(text, output), output
    warned = any(text.startswith("Warning") for text in said) or "differ" in "".join(said)
    record = json.loads((tmp_path / "X.json").read_text())
    assert ("Warning" in output) == warned == bool(record["warnings"])
    if FITS in said:  # X itself is right, read back from the dialect of the source
        found, settings = read(tmp_path / "X.csv"), dict(source)
        assert np.abs(found.values - clouds()[2]).max() < 0.05
        raw = (tmp_path / "X.csv").read_bytes().decode(settings.get("encoding", "utf-8"))
        assert (";" in raw) == (settings.get("mark") == ";")
        assert ("\t" in raw) == (settings.get("mark") == "\t")
        if settings.get("decimal") == ",":
            assert "." not in raw
        assert f"{M} rows" in output or "left out" in output


@pytest.mark.parametrize("settings", [{}, GERMAN, EXCEL], ids=["plain", "German", "Excel"])
def test_apply_moves_points_as_the_fit_did(tmp_path, monkeypatch, settings):
    """The product of NumPy, with the ids, the names and the dialect of the points."""
    monkeypatch.chdir(tmp_path)
    files(tmp_path, {"ids": "p{}"} | settings, {"ids": "p{}"})
    line = "solve procrustes source.csv target.csv -s lorentz -o X.csv --aligned aligned.csv"
    assert "X.csv, aligned.csv, fit.png, X.json" in jorth_command(f"{line} --plot fit.png")
    assert (tmp_path / "fit.png").read_bytes().startswith(b"\x89PNG")
    swapped = text_of(clouds()[0], ids="p{}", columns=(2, 0, 1), rows=shuffled(), **settings)
    (tmp_path / "points.csv").write_bytes(swapped)
    output = jorth_command("apply X.csv points.csv -o moved.csv")
    assert "columns of points.csv were matched by names: t, x, y" in output
    moved, aligned = read(tmp_path / "moved.csv"), read(tmp_path / "aligned.csv")
    expected = read(tmp_path / "source.csv").values @ read(tmp_path / "X.csv").values
    np.testing.assert_allclose(aligned.values, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(moved.values, expected[shuffled()], rtol=0, atol=1e-12)
    assert moved.ids == tuple(f"p{i}" for i in shuffled())
    assert moved.names == aligned.names == ("t", "x", "y")
    assert moved.dialect == read(tmp_path / "points.csv").dialect


# -- what is read


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("ending", WRITABLE)
def test_round_trip_bit_for_bit(tmp_path, ending, decimal):
    path = tmp_path / f"X{ending}"
    dialect = Dialect("," if decimal == "." else ";", decimal)
    like = Table(path, HARD, ("a", "b", "c"), ("one", "two"), dialect)
    write(path, HARD, like, named=True)
    back = read(path)
    assert back.values.tobytes() == HARD.tobytes()
    if ending != ".npy":
        assert (back.names, back.ids) == (like.names, like.ids)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


TEXTS = {
    "commas and blanks": " 1, 2.5 \n-3 , 4.0",
    "white space": "1 2.5\n -3\t4\n".replace("\t", " "),
    "quoted names": '"a;b";"b"\n1;2.5\n-3;4\n',
    "mark of byte order": "\ufeff1,2.5\r\n-3,4e0\r\n",
    "text ids without names": "p1,1,2.5\np2,-3,4\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("ending", [".csv", ".txt", ".CSV"])
def test_text(tmp_path, text, ending):
    path = tmp_path / f"A{ending}"
    path.write_bytes(text.encode())
    assert read(path).values.tolist() == [[1, 2.5], [-3, 4]]


@pytest.mark.parametrize(("text", "shape"), [("1\n2\n3\n", (3, 1)), ("1 2 3\n", (1, 3))])
def test_one_column_and_one_row(tmp_path, text, shape):
    (tmp_path / "A.txt").write_text(text)
    assert read(tmp_path / "A.txt").values.shape == shape


BAD_TEXTS = {
    "a word": ("1,2\n3,four\n", "A.csv, line 2, column 2: expected a number, got 'four'"),
    "a second header": ("a,b\n\nc,d\n1,2", "line 3, column 1: expected a number, got 'c'"),
    "two kinds of decimals": ("x;y\n1,5;2.5", "line 2, column 2: expected a number, got '2.5'"),
    "a long line": ("1,2\n4,5,6\n7,8,9", "line 2: expected 2 fields, as in the first line, got 3"),
    "text in the last column": ("1,2,a\n3,4,b", "line 2, column 3: expected a number, got 'b'"),
    "an underscore": ("1,2_0\n", "A.csv must hold numbers"),
    "empty": ("", "A.csv must hold numbers, got none"),
    "only names": ("a,b\n", "A.csv must hold numbers, got none"),
    "an open quote": ('1,"2\n3,4', "A.csv cannot be read"),
}


@pytest.mark.parametrize(("text", "message"), BAD_TEXTS.values(), ids=BAD_TEXTS)
def test_bad_text(tmp_path, text, message):
    (tmp_path / "A.csv").write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)):
        read(tmp_path / "A.csv")


BAD_ARRAYS = {
    "complex": np.eye(2) * 1j,
    "three dimensions": np.ones((2, 2, 2)),
    "one dimension": np.ones(3),
    "empty": np.ones((0, 3)),
    "object": np.array([[None]]),
}


@pytest.mark.parametrize("array", BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_bad_arrays(tmp_path, array):
    np.save(tmp_path / "A.npy", array)
    with pytest.raises(ValueError, match=r"A.npy (must|cannot)"):
        read(tmp_path / "A.npy")


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse(tmp_path, form):
    X = scipy.sparse.csr_array(np.diag([1.0, 0, 3]))
    scipy.sparse.save_npz(tmp_path / "X.npz", X.asformat(form))
    np.testing.assert_array_equal(read(tmp_path / "X.npz").dense, X.toarray())


def test_indices_that_lead_out_of_the_matrix(tmp_path):
    places = dict(indices=np.int32([0, 1, 500_000_000]), indptr=np.int32([0, 1, 2, 3]))
    about = dict(format=np.array(b"csr"), shape=(3, 3), data=np.ones(3))
    np.savez(tmp_path / "A.npz", **about, **places)
    with pytest.raises(ValueError, match=r"A.npz cannot be read \("):
        read(tmp_path / "A.npz")


@pytest.mark.parametrize("name", ["A.npy", "A.npz", "A.csv", "A.xls", "none.npy"])
def test_broken_files(tmp_path, name):
    if name != "none.npy":
        (tmp_path / name).write_bytes(b"\x93NUMPY\xff\xff nonsense")
    with pytest.raises(ValueError, match=rf"{name} (cannot be read|must)"):
        read(tmp_path / name)
