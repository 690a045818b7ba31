"""A hook of mkdocs: the reference of the command line, made from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from jorth.cli import main

PAGE = "reference/commands.md"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page of the commands: its own text, then a section for each command."""
    if page.file.src_uri != PAGE:
        return markdown
    context = click.Context(main, info_name="jorth", **main.context_settings)
    return "\n\n".join([markdown, *sections(main, context)])


def sections(command: click.Command, context: click.Context) -> Iterator[str]:
    """What a command does, takes and accepts, and the same for its subcommands."""
    yield f"## {context.command_path}\n\n{paragraphs(command.help or '')}"
    usage = command.get_usage(context).removeprefix("Usage: ")
    yield "```text\n" + " ".join(usage.split()) + "\n```"
    records = [option.get_help_record(context) for option in command.params]
    rows = [f"| `{record[0]}` | {cell(record[1])} |" for record in records if record]
    if rows:
        yield "\n".join(["| option | about |", "|---|---|", *rows])
    if command.epilog:
        yield paragraphs(command.epilog)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            part = command.get_command(context, name)
            assert part is not None
            yield from sections(part, click.Context(part, info_name=name, parent=context))


def paragraphs(text: str) -> str:
    """The help text of a command; a block that click keeps as it is becomes a block of code."""
    blocks = []
    for block in inspect.cleandoc(text).replace("\f", "").split("\n\n"):
        kept = block.startswith("\b\n")
        blocks.append("```text\n" + block.removeprefix("\b\n") + "\n```" if kept else block)
    return "\n\n".join(blocks)


def cell(text: str) -> str:
    """Text that stays in its cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
