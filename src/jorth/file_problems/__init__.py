"""Problems whose matrices are in files: read, solve, write. What `jorth solve` does."""

from jorth.file_problems.errors import OptionError
from jorth.file_problems.request import Request
from jorth.file_problems.solve import Outcome, solve
from jorth.file_problems.write import table, write

__all__ = ["OptionError", "Outcome", "Request", "solve", "table", "write"]
