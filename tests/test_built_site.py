"""The site as `make docs` builds it: signatures, examples, formulas, and pages in a browser."""

import functools
import html
import http.server
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import threading

import pytest

from tests.test_site import ROOT, described, examples, thing

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
PROBE = """<body><pre id="found">{}</pre><script>
const pages = PAGES, found = {}
const frame = document.createElement("iframe")
frame.style = "width: 390px; height: 800px; border: 0"
function look(page) {
  const inside = frame.contentDocument
  const formulas = [...inside.querySelectorAll("math")]
  const broken = [...inside.querySelectorAll("td code")].filter(
    each => !each.textContent.includes(" ") && each.getClientRects().length > 1)
  found[page] = {
    width: inside.documentElement.scrollWidth,
    formulas: formulas.map(each => each.getBoundingClientRect().height),
    broken: broken.map(each => each.textContent)}
}
function next() {
  const page = pages.shift()
  frame.onload = () => { look(page); next() }
  if (page) frame.src = page
  else document.getElementById("found").textContent = JSON.stringify(found)
}
document.body.append(frame); next()
</script>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material", reason="comes with `make docs`")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    subprocess.run(command, cwd=ROOT, check=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    return folder


def test_every_entry_of_the_reference_has_its_signature_and_example(site):
    text = "".join(page.read_text() for page in sorted((site / "reference").glob("*.html")))
    parts = re.split(r'<h2 id="(jorth[^"]*)"', text)
    entries = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert set(described()) <= set(entries)
    for name in examples():
        plain = html.unescape(re.sub(r"<[^>]+>", "", entries[name]))
        text, _, example = plain.partition("Examples:")
        assert ">>> " in example, name
        if inspect.isroutine(thing(name)) or "__init__" in vars(thing(name)):
            assert re.search(rf"\b{thing(name).__name__}\(", text), name


def test_formulas_are_typeset(site):
    blocks = "\n".join(page.read_text() for page in (ROOT / "docs").rglob("*.md")).count("```math")
    shown = 0
    for page in site.rglob("*.html"):
        article = page.read_text().partition("<article")[2].partition("</article>")[0]
        shown += article.count("<math")
        prose = re.sub(r"<(pre|code|math)\b.*?</\1>", "", article, flags=re.DOTALL)
        if "sources" not in page.parts:
            assert "^" not in re.sub(r"<[^>]+>", "", prose), page.name
    assert shown == blocks > 0


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
def test_pages_fit_into_a_telephone(site):
    pages = [page.relative_to(site).as_posix() for page in site.rglob("*.html")]
    pages = [page for page in pages if not page.startswith("sources/") and page != "404.html"]
    (site / "probe.html").write_text(PROBE.replace("PAGES", json.dumps(pages)))
    handler = functools.partial(Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/probe.html"
        options = "--headless --no-sandbox --disable-gpu --virtual-time-budget=600000 --dump-dom"
        command = [BROWSER, *options.split(), "--window-size=800,900", address]
        dump = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
        server.shutdown()
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', dump.stdout)[1]))
    assert set(found) == set(pages)
    assert {page: seen["width"] for page, seen in found.items() if seen["width"] > 390} == {}
    assert {page: seen["broken"] for page, seen in found.items() if seen["broken"]} == {}
    assert min(size for seen in found.values() for size in seen["formulas"]) > 10
