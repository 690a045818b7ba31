"""Every mistake of the registry gets a message that names its cause; the page shows them all."""

import re
from types import ModuleType

import click
import pytest

import jorth
from jorth.cli import main
from tests.fuzz.rooms import ROOMS
from tests.fuzz.test_fuzz import public_names
from tests.mistakes.kinds import KINDS
from tests.mistakes.page import PAGE, page_of
from tests.mistakes.running import PACKAGE, make, workplace

LONGEST = 500
CASES = [case for kind in KINDS for case in kind.CASES]
ERRORS = (ValueError, TypeError, OSError, ImportError, AttributeError)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """All mistakes, made once and in their order, by their cases."""
    with workplace(tmp_path_factory.mktemp("mistakes")) as names:
        yield {case: make(case, names) for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code.splitlines()[-1][:90])
def test_the_message_names_the_cause(case, made):
    found = made[case]
    if case.is_command:
        assert found.kind in ("exit 1", "exit 2"), found
    else:
        assert isinstance(found.error, ERRORS), found
    missing = [needle for needle in case.needles if needle not in found.message]
    assert not missing, f"{missing} not in: {found.message}"
    assert found.place.startswith(str(PACKAGE)), f"raised in {found.place}: {found.message}"
    assert len(found.message) <= LONGEST
    assert "Traceback" not in found.message
    assert "array(" not in found.message
    assert "tensor(" not in found.message


def test_there_are_many_and_no_two_are_the_same():
    assert len(CASES) >= 120
    assert len({case.code for case in CASES}) == len(CASES)


def test_every_public_callable_is_called_wrongly():
    codes = "\n".join(case.code for case in CASES if not case.is_command)
    called = set(re.findall(r"[\w.]+(?=\()", codes))
    called |= {f"jorth.{name}" for name in called}
    excused = {name for module, _ in ROOMS.values() for name in module.WITHOUT}
    names = [name for name in public_names() if callable(_public(name))]
    missing = [name for name in names if name not in called | excused]
    assert not missing


def _public(name):
    value = jorth
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return None if isinstance(value, ModuleType) else value


def commands(group, name):
    """All commands below a group, by the words that call them."""
    context = click.Context(group)
    for part in group.list_commands(context):
        command = group.get_command(context, part)
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {part}")
        else:
            yield f"{name} {part}"


def test_every_command_is_called_wrongly():
    lines = [case.code for case in CASES if case.is_command]
    missing = [
        name for name in commands(main, "jorth") if not any(f"{name} " in line for line in lines)
    ]
    assert not missing


def test_the_page_is_up_to_date(made):
    assert PAGE.read_text() == page_of(made), "run python -m tests.mistakes"
