"""README, quickstart and tutorials, pasted line by line where only their own extras are."""

import zipfile

import pytest

from tests import fresh_install
from tests.pages import pictures
from tests.rooms import ROOT
from tests.test_package import built as built  # a fixture

TUTORIALS = [path for path in sorted(ROOT.glob("docs/tutorials/*.md")) if path.stem != "index"]
PAGES = [ROOT / "README.md", ROOT / "docs" / "quickstart.md", *TUTORIALS]


@pytest.fixture(scope="module")
def environment(built, tmp_path_factory):
    """Return a folder that has an environment with these extras, the same each time."""
    unpacked = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(next(built.glob("*.whl"))) as archive:
        archive.extractall(unpacked)
    places = {}

    def place(extras):
        if extras not in places:
            places[extras] = tmp_path_factory.mktemp("_".join(["fresh", *sorted(extras)]))
            fresh_install.link_environment(places[extras], unpacked, extras)
        return places[extras]

    return place


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_in_an_environment_of_its_own(page, environment):
    place = environment(fresh_install.extras_of(page))
    before = {*place.iterdir()}
    fresh_install.call(place, ["python", "-i", "-q"], lines="\n".join(fresh_install.typed(page)))
    drawn = {path.name for path in {*place.iterdir()} - before}
    assert drawn >= set(pictures(page)), "a tutorial draws the pictures that it shows"


def test_what_an_environment_does_not_have(environment):
    """The check itself: a package of another extra is missing there."""
    place = environment(frozenset())
    fresh_install.call(place, ["python", "-c", "import jorth, torch, scipy"])
    with pytest.raises(RuntimeError, match="No module named 'sklearn'"):
        fresh_install.call(place, ["python", "-c", "import sklearn"])
