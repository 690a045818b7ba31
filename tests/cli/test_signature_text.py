"""Signatures as people write them: what is read as what, and what is refused."""

import numpy as np
import pytest

from jorth.cli.solving import OptionError, file_of, signature_from

READ = {
    "3,2": [1, 1, 1, -1, -1],
    " 3 , 2\t": [1, 1, 1, -1, -1],
    "5,0": [1, 1, 1, 1, 1],
    "0,1": [-1],
    "+": [1],
    "-": [-1],
    "-+": [-1, 1],
    " ++--+ ": [1, 1, -1, -1, 1],
    "lorentz": [-1, 1, 1, 1],
    "lorentz-first": [-1, 1, 1, 1],
    "lorentz-last": [1, 1, 1, -1],
}
REFUSED = [
    "", " ", ",", "3", "3,", ",2", "3,2,1", "3;2", "-3,2", "3.0,2", "3 2", "+3,2", "+1", "+-x",
    "x+-", "+ -", "+\n-",
    "3,2x", "Lorentz", "lorentz-", "lorentz-middle", "p,q", "±", "\uff0b",
]  # fmt: skip


@pytest.mark.parametrize("text", READ)
def test_what_a_text_stands_for(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert file_of(text) is None
    assert signature_from(text, len(READ[text])).signs.tolist() == READ[text]


@pytest.mark.parametrize("text", REFUSED, ids=repr)
def test_what_stands_for_nothing(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for read in (file_of, lambda text: signature_from(text, 5)):
        with pytest.raises(OptionError, match=r"--signature must be p,q .* there is no such file"):
            read(text)


@pytest.mark.parametrize(
    "text", [text for text in REFUSED if text.strip() and "\n" not in text], ids=repr
)
def test_all_other_words_are_names_of_files(text, tmp_path, monkeypatch):
    """Also those that look much like a signature."""
    monkeypatch.chdir(tmp_path)
    name = f"{text}.npy"
    np.save(tmp_path / name, np.array([1, -1, 1]))
    assert str(file_of(name)) == name.strip()
    assert signature_from(name, 3).signs.tolist() == [1, -1, 1]


@pytest.mark.parametrize("text", READ)
def test_a_file_of_that_name_does_not_matter(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / text.strip()).touch()
    assert file_of(text) is None


@pytest.mark.parametrize("text", ["3,2", "++--+", "lorentz"])
def test_the_number_of_signs_is_that_of_the_data(text):
    if text == "lorentz":
        assert signature_from(text, 7).signs.tolist() == [-1, 1, 1, 1, 1, 1, 1]
        return
    with pytest.raises(
        OptionError, match=r"must have 4 signs, one per column of the data, got .* with 5"
    ):
        signature_from(text, 4)
