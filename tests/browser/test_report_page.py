"""The report in headless Chromium: no complaint, nothing outside, all there, nothing wider than a telephone."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from evaluation.sample_report import sample_report

from primexmc.evaluation.report import write_report

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
]
PHONE = """<!doctype html><body style="margin:0"><iframe src="report.html" style="width:390px;height:3000px;border:0"
onload="const page = this.contentDocument.documentElement; document.title = page.scrollWidth + ' ' + page.clientWidth">
</iframe></body>"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (apt-get install chromium)"),
]


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "report.html"
    write_report(path, sample_report())
    return path


def browse(path, *flags):
    """What the browser prints, and what it complains of in the page's console."""
    profile = f"--user-data-dir={path.parent / 'profile'}"
    command = [CHROMIUM, *FLAGS, "--enable-logging=stderr", profile, *flags, path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def width_on_a_phone(page):
    (page.parent / "phone.html").write_text(PHONE, encoding="utf-8")
    dom, _ = browse(page.parent / "phone.html", "--allow-file-access-from-files", "--dump-dom")
    return [int(number) for number in re.search(r"<title>(\d+) (\d+)</title>", dom).groups()]


def test_the_page_renders_without_complaint(page):
    dom, complaints = browse(page, "--dump-dom")
    assert complaints == []
    for words in (
        "A report",
        "Results on the test part",
        "Frequent and rare labels",
        "Learning",
        "Predictions",
        "75.3",
    ):
        assert words in dom, words


def test_a_request_to_the_outside_would_be_seen(page):
    """The guard guards: the page's own policy refuses and reports what is fetched."""
    html = page.read_text(encoding="utf-8").replace("</main>", '<img src="http://outside.invalid/x.png"></main>')
    page.write_text(html, encoding="utf-8")
    _, complaints = browse(page, "--dump-dom")
    assert any("outside.invalid" in line for line in complaints)


def test_nothing_is_wider_than_a_phone(page):
    assert width_on_a_phone(page) == [390, 390]
    html = page.read_text(encoding="utf-8").replace("</main>", '<div style="width:900px">wide</div></main>')
    page.write_text(html, encoding="utf-8")
    assert width_on_a_phone(page)[0] > 800, "the measure sees what is too wide"


@pytest.mark.parametrize("scheme", ["0", "1"])  # dark, light
def test_the_page_draws_in_dark_and_light(page, scheme):
    picture = page.parent / "page.png"
    browse(
        page, f"--blink-settings=preferredColorScheme={scheme}", "--window-size=1280,2000", f"--screenshot={picture}"
    )
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 30_000
