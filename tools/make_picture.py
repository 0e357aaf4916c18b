"""docs/page.png: the page of `primexmc serve`, as README.md shows it, from headless Chromium.

    python tools/make_picture.py my-model

The model is the one of README.md's ten lines. Needs the extra [serve], playwright and Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import sync_playwright

PLACE = Path(__file__).resolve().parents[1] / "docs" / "page.png"
TEXT = "A ship in a storm. Oil on canvas"
WIDTH, HEIGHT = 1180, 760


def main(arguments: Sequence[str]) -> int:
    command = [sys.executable, "-m", "primexmc", "serve", arguments[0], "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        try:
            take(server.stdout.readline().strip().rpartition(" ")[2])
        finally:
            server.terminate()
    return 0


def take(address: str) -> None:
    """Once the labels and the reasons for the first of them are there."""
    with sync_playwright() as started:
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(address)
        page.locator("#text").fill(TEXT)
        page.locator("#why .near").first.wait_for()
        page.wait_for_timeout(500)
        page.screenshot(path=PLACE)
        browser.close()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
