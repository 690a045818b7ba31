"""Write the page of mistakes."""

from tests.mistakes.page import PAGE, page

PAGE.parent.mkdir(exist_ok=True)
PAGE.write_text(page())
print(PAGE)
