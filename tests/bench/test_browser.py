"""The page in a real browser, headless: it renders, every figure is visible, nothing is fetched,
no error is logged."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest
from PIL import Image

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
EXAMPLE = Path(__file__).parents[2] / "docs" / "report" / "index.html"
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="needs Chromium, as Debian's package chromium"
)

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--virtual-time-budget=5000",
    "--enable-logging=stderr",
    "--v=0",
]

# put behind the page by the test: what the browser made of it, written where --dump-dom shows it
PROBE = """
<pre id="probe"></pre><script>
window.addEventListener("load", () => {
  const box = element => element.getBoundingClientRect();
  const seen = JSON.stringify({
    images: [...document.images].map(
      i => [i.complete, i.naturalWidth, i.naturalHeight, box(i).width, box(i).height]),
    tables: document.querySelectorAll("table tbody tr").length,
    fetched: performance.getEntriesByType("resource").map(entry => entry.name)
      .filter(n => !n.startsWith("data:")),
    width: document.documentElement.scrollWidth, window: window.innerWidth,
    heading: box(document.querySelector("h1")).height,
    winners: [...document.querySelectorAll("td.winner")].map(cell => box(cell).right),
    outside: [...document.querySelectorAll("main *")].filter(
      e => box(e).width && box(e).right > window.innerWidth + 1 && !e.closest(".scroll, .picture"))
      .map(e => e.outerHTML.slice(0, 80)),
    captions: [...document.querySelectorAll("caption")].map(e => box(e).right),
    smallest: Math.min(...[...document.querySelectorAll("p, li, td, th, figcaption")]
      .map(e => parseFloat(getComputedStyle(e).fontSize))),
    dead: [...document.querySelectorAll("a[href]")]
      .filter(a => !document.querySelector(a.getAttribute("href"))).map(a => a.outerHTML),
    background: getComputedStyle(document.body).backgroundColor,
  });
  document.getElementById("probe").textContent = seen;
  parent.postMessage(seen, "*");
});
</script>"""
# a window can not be narrower than 500 pixels, a frame can
FRAME = """<!DOCTYPE html><html><body><pre id="probe"></pre><script>
window.addEventListener("message",
  event => { document.getElementById("probe").textContent = event.data; });
</script><iframe src="probed.html" style="border:0;width:%dpx;height:900px"></iframe></body></html>
"""


def browse(folder, *arguments):
    """The browser's output and log, with no way to reach any host."""
    command = [
        BROWSER,
        *FLAGS,
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={folder / 'profile'}",
    ]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout, done.stderr


def probe(written, folder, width):
    """What the browser sees of a page in a window of this width, and its log."""
    copy = folder / "probed.html"
    copy.write_text(
        written.read_text(encoding="utf-8").replace("</body>", PROBE + "</body>"), encoding="utf-8"
    )
    frame = folder / "frame.html"
    frame.write_text(FRAME % width, encoding="utf-8")
    dom, log = browse(folder, "--window-size=1500,1000", "--dump-dom", frame.as_uri())
    found = re.search(r'<pre id="probe">(.+?)</pre>', dom, re.DOTALL)
    assert found, log[-2000:]
    return json.loads(unescape(found[1])), log


@pytest.fixture(scope="module", params=[1280, 390])
def probed(request, written, tmp_path_factory):
    seen, log = probe(written, tmp_path_factory.mktemp("browser"), request.param)
    assert seen["window"] == request.param
    return written, seen, log


def test_every_figure_is_visible(probed):
    page, seen, _ = probed
    assert len(seen["images"]) == len(list(page.parent.glob("*.png"))) == 7
    for complete, width, height, shown_width, shown_height in seen["images"]:
        assert complete
        assert width > 300 < height
        assert shown_width > 200 < shown_height


def test_the_page_renders(probed):
    _, seen, _ = probed
    assert seen["heading"] > 20
    assert seen["tables"] > 20
    assert seen["width"] <= seen["window"], "wide tables must scroll by themselves"
    assert seen["outside"] == []
    assert seen["background"] == "rgb(255, 255, 255)"


def test_winners_are_seen_without_scrolling_sideways(probed):
    """They stood in the last column of a table wider than the window."""
    _, seen, _ = probed
    assert len(seen["winners"]) > 8
    assert max(seen["winners"]) <= seen["window"]


def test_text_can_be_read_and_links_lead_somewhere(probed):
    _, seen, _ = probed
    assert seen["smallest"] >= 12
    assert seen["dead"] == []
    assert max(seen["captions"]) <= seen["window"]


@pytest.mark.parametrize("width", [1280, 390])
def test_the_example_in_the_docs(width, tmp_path):
    seen, _ = probe(EXAMPLE, tmp_path, width)
    assert seen["width"] <= seen["window"] == width
    assert len(seen["winners"]) > 12
    assert max(seen["winners"]) <= width
    assert seen["outside"] == seen["dead"] == []


def test_nothing_is_fetched_and_no_error_is_logged(probed):
    _, seen, log = probed
    assert seen["fetched"] == []
    assert "CONSOLE" not in log, log


def test_the_probe_would_see_trouble(tmp_path):
    """The same eyes on a page with a broken figure, a fetch and an error."""
    bad = tmp_path / "bad.html"
    bad.write_text(
        '<!DOCTYPE html><html><body><h1>x</h1><img src="data:image/png;base64,AAAA"><img src="http://example.org/a.png">'
        f"<script>console.error('trouble')</script>{PROBE}</body></html>"
    )
    dom, log = browse(tmp_path, "--dump-dom", bad.as_uri())
    seen = json.loads(re.search(r'<pre id="probe">(.+?)</pre>', dom, re.DOTALL)[1])
    assert [image[1] for image in seen["images"]] == [0, 0]
    assert seen["fetched"] == ["http://example.org/a.png"]
    assert "CONSOLE" in log


def test_a_picture_of_it_is_not_blank(probed, tmp_path):
    page, _, _ = probed
    shot = tmp_path / "page.png"
    browse(tmp_path, "--window-size=1300,2000", f"--screenshot={shot}", page.as_uri())
    with Image.open(shot) as picture:
        assert picture.size == (1300, 2000)
        assert len(picture.convert("RGB").getcolors(1 << 24)) > 50
