"""Mistakes that users make, and the messages they get; `python -m tests.mistakes` writes a page.

One file per kind of mistake has plain cases; `running` makes them, `page` shows them.
"""
