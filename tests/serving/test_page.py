"""The page in headless Chromium, as somebody meets it who has never seen it: wide and narrow, light and dark."""

from __future__ import annotations

import dataclasses
import re
import shutil

import pytest
from fusion.test_judge import made_judge
from serving.served import serving

from primexmc.fusion.blend import DEFAULTS, Blend
from primexmc.model import fair_length
from primexmc.serving.current import Current
from primexmc.serving.keys import Keys

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
WIDE, NARROW = (1280, 900), (390, 844)
TEXT = "Red kettle and saucepan with a guitar"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (apt-get install chromium)"),
]
expect = playwright.expect


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Opens the page; at the end nothing may have been complained of, or asked for from elsewhere."""
    opened, complaints, asked = [], [], set()

    def open_page(served, size=WIDE, scheme="light", path="/"):
        width, height = size
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.add(re.match(r"[a-z]+:(//[^/]*)?", request.url).group()))
        page.goto(f"http://127.0.0.1:{served.port}{path}")
        opened.append((context, f"http://127.0.0.1:{served.port}"))
        return page

    open_page.complaints = complaints
    yield open_page
    assert asked <= {origin for _, origin in opened}, "nothing comes from outside"
    for context, _ in opened:
        context.close()
    assert complaints == []


def labels(page):
    return page.locator("#results .row .name")


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_type_a_text_and_see_labels_and_why(shop, visit, size):
    page = visit(shop, size)
    expect(page.locator("#state")).to_have_text("connected")
    expect(page.locator("#try-lede")).to_contain_text("12 labels")
    page.locator("#text").press_sequentially(TEXT, delay=5)
    expect(labels(page)).to_have_count(10)
    names = [label["label"] for label in shop.predict(TEXT, top=10)[0]]
    expect(labels(page)).to_have_text(names)
    expect(page.locator("#results .row").first).to_contain_text(re.compile(r"\d+ %.*(head|torso|tail).*training text"))
    if size == NARROW:
        expect(page.locator("#why")).to_be_hidden()
    page.locator("#results .row").nth(1).click()
    why = page.locator("#why")
    expect(why.locator("h2")).to_have_text(f"Why {names[1]}")
    expect(why.locator(".words .word")).to_have_text(TEXT.split())
    expect(why.locator(".parts.made li")).to_have_count(3)
    expect(why.locator(".near").first.locator("li")).to_have_count(4)
    if size == NARROW:
        below, row = why.bounding_box(), page.locator("#results .row").nth(1).bounding_box()
        assert abs(below["y"] - row["y"] - row["height"]) < 30, "just below the label that was chosen"
    page.locator("#top").select_option("5")
    expect(labels(page)).to_have_count(5)
    page.locator("#text").fill("  ")
    expect(labels(page)).to_have_count(0)


def test_what_memory_and_words_add_is_told(model_path, visit):
    current = Current(model_path, "cpu")
    model = current.generation.model
    model.blend = Blend(DEFAULTS, "all")
    with serving(current) as served:
        page = visit(served)
        page.locator("#text").fill(TEXT)
        best = served.predict(TEXT, top=1)[0][0]
        voices = page.locator("#why .voices")
        expect(voices.locator("li")).to_have_count(3)
        expect(voices).to_contain_text(f"Together they make the score, {best['score']:.2f}")
        why = served.post("/explain", text=TEXT, uid=best["uid"])[1]
        for at, voice in enumerate(why["voices"]):
            shown = f"{voice['share']:+.2f}".replace("-", "−")
            expect(voices.locator("li").nth(at).locator(".score")).to_have_text(shown)
        expect(voices.locator("li").nth(2)).to_contain_text(why["lexical"]["words"][0]["word"])
        expect(page.locator("#why .near").first).to_contain_text(f"+{why['nearest_with_label'][0]['adds']:.2f}")
        page.close()


def test_the_judge_has_a_name_and_a_colour(model_path, visit):
    current = Current(model_path, "cpu")
    model = current.generation.model
    model.classifier_LD = model.prototypes_LD
    model.blend = Blend({"all": dataclasses.replace(DEFAULTS["all"], judge=made_judge())}, "all")
    with serving(current) as served:
        page = visit(served)
        page.locator("#text").fill(TEXT)
        judge = page.locator("#why .voices .parts li").nth(4)
        expect(judge).to_contain_text("How it all fits together")
        assert judge.locator(".swatch").evaluate("element => getComputedStyle(element).backgroundColor") != (
            "rgba(0, 0, 0, 0)"
        )
        page.close()


def test_an_example_is_one_click(shop, visit):
    page = visit(shop)
    chip = page.locator(".chip").first
    text = chip.text_content()
    chip.click()
    expect(page.locator("#text")).to_have_value(text)
    expect(labels(page)).to_have_count(10)


def test_the_latest_question_is_answered_whatever_comes_late(shop, visit):
    page = visit(shop)
    late = []

    def hold_the_first(route):
        if not late:
            late.append(route)
        else:
            route.continue_()

    page.route("**/predict", hold_the_first)
    page.locator("#text").fill("usb adapter")
    page.wait_for_timeout(400)
    assert len(late) == 1
    page.locator("#text").fill("guitar and violin")
    expected = [label["label"] for label in shop.predict("guitar and violin", top=10)[0]]
    expect(labels(page)).to_have_text(expected)
    late[0].continue_()
    page.wait_for_timeout(300)
    expect(labels(page)).to_have_text(expected)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_server_is_killed_in_the_middle(model_path, visit, size):
    with serving(Current(model_path, "cpu")) as served:
        page, port = visit(served, size), served.port
        page.locator("#text").fill("usb adapter")
        expect(labels(page)).to_have_count(10)
    page.locator("#text").fill("guitar and violin")
    expect(page.locator("#notice")).to_contain_text("The server does not answer")
    expect(page.locator("#state")).to_have_text("no connection")
    expect(page.locator("#text")).to_have_value("guitar and violin")
    with serving(Current(model_path, "cpu"), port=port) as served:
        expected = [label["label"] for label in served.predict("guitar and violin", top=10)[0]]
        expect(labels(page)).to_have_text(expected)
        expect(page.locator("#notice")).to_be_hidden()
        expect(page.locator("#state")).to_have_text("connected")
        page.close()
    refused = [line for line in visit.complaints if "ERR_CONNECTION_REFUSED" in line or "ERR_EMPTY" in line]
    visit.complaints[:] = [line for line in visit.complaints if line not in refused]  # the browser's own lines


def test_a_busy_server_is_asked_again(shop, visit):
    page, asked = visit(shop), []

    def busy_once(route):
        asked.append(1)
        if len(asked) == 1:
            route.fulfill(status=429, json={"error": "too many."}, headers={"Retry-After": "1"})
        else:
            route.continue_()

    page.route("**/predict", busy_once)
    page.locator("#text").fill("usb adapter")
    expect(page.locator("#answer-state")).to_contain_text("Many are asking")
    expect(labels(page)).to_have_count(10)
    visit.complaints[:] = [line for line in visit.complaints if "429" not in line]


def test_with_the_keyboard_alone(shop, visit):
    page = visit(shop)
    page.keyboard.type("usb adapter")
    expect(labels(page)).to_have_count(10)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    second = page.locator("#results .row").nth(1)
    expect(second).to_be_focused()
    expect(second).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#why h2")).to_contain_text(second.locator(".name").text_content())
    page.keyboard.press("/")
    expect(page.locator("#text")).to_be_focused()


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_labels_are_searched_and_walked(shop, visit, size):
    page = visit(shop, size)
    page.get_by_role("link", name="Labels").click()
    rows = page.locator("#label-list .row")
    expect(rows).to_have_count(12)
    page.locator("#find").fill("garden")
    expect(rows).to_have_count(1)
    rows.first.click()
    expect(page.locator("#label h2")).to_have_text("Garden, patio")
    neighbour = page.locator("#label .row").first
    name = neighbour.locator(".name").text_content()
    neighbour.click()
    expect(page.locator("#label h2")).to_have_text(name)
    page.go_back()
    expect(page.locator("#label h2")).to_have_text("Garden, patio")
    page.locator("#find").fill("nothing like it")
    expect(page.locator("#found")).to_contain_text("No label")
    page.locator("#find").fill("")
    page.locator("#buckets").get_by_text("tail", exact=True).click()
    tail = shop.ask("GET", "/labels?bucket=tail")[1]["total"]
    expect(rows).to_have_count(tail)


def test_the_model_in_numbers(shop, visit):
    page = visit(shop, path="/#/model")
    expect(page.locator(".facts")).to_contain_text("Labels12")
    expect(page.locator(".metric")).to_have_count(6)
    expect(page.locator("#model svg")).to_have_count(2)
    expect(page.locator(".rarity li")).to_have_count(3)


def test_a_label_is_added_predicted_and_removed(own_model, visit, monkeypatch):
    monkeypatch.setattr(fair_length, "PLACES", 100)  # as in test_changes
    with serving(Current(own_model, "cpu")) as served:
        page = visit(served, path="/#/labels")
        page.get_by_role("button", name="Add a label").click()
        page.locator("#add-name").fill("Bags, luggage")
        page.get_by_role("button", name="Add it").click()
        expect(page.locator("#add-problem")).to_contain_text("already")
        name = "Gnomes <img src=x onerror=alert(1)>"
        page.locator("#add-name").fill(name)
        page.locator("#add-queries").fill("a painted gnome\ngnome on the lawn")
        page.get_by_role("button", name="Add it").click()
        expect(page.locator("#text")).to_have_value("a painted gnome")
        expect(page.locator("#results .row", has_text=name)).to_contain_text("new")
        expect(page.locator("#why h2")).to_have_text(f"Why {name}")
        page.get_by_role("link", name="This label and its neighbours").click()
        page.get_by_role("button", name="Remove …").click()
        page.get_by_role("button", name="Really remove").click()
        expect(page.locator("#label")).to_contain_text("is removed")
        assert served.ask("GET", "/labels?q=gnomes")[1]["total"] == 0
        page.close()
    visit.complaints[:] = [line for line in visit.complaints if "400" not in line]  # the browser's own line


def test_where_labels_cannot_be_changed_nothing_offers_it(model_path, visit):
    with serving(Current(model_path, "cpu"), Keys(None, "0.0.0.0")) as served:
        page = visit(served, path="/#/labels")
        expect(page.locator("#label-list .row")).to_have_count(12)
        expect(page.locator("#add-open")).to_be_hidden()
        page.close()


def test_the_key_is_asked_for_once(model_path, visit):
    with serving(Current(model_path, "cpu"), Keys("a-long-key")) as served:
        page = visit(served)
        page.locator("#key").fill("wrong-key")
        page.keyboard.press("Enter")
        expect(page.locator("#key")).to_be_visible()
        page.locator("#key").fill("a-long-key")
        page.keyboard.press("Enter")
        page.locator("#text").fill("usb adapter")
        expect(labels(page)).to_have_count(10)
        expect(page.locator("#key")).to_be_hidden()
        page.close()
    visit.complaints[:] = [line for line in visit.complaints if "401" not in line]


CONTRAST = """selectors => selectors.flatMap(selector => {
  const seen = color => { const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number); return {rgb: [r, g, b], a}; };
  const linear = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = rgb => { const [r, g, b] = rgb.map(v => linear(v / 255));
    return .2126 * r + .7152 * g + .0722 * b; };
  return [...document.querySelectorAll(selector)].filter(node => node.offsetParent).slice(0, 3).map(node => {
    let behind = node;
    while (behind && seen(getComputedStyle(behind).backgroundColor).a < 1) behind = behind.parentElement;
    const one = light(seen(getComputedStyle(node).color).rgb);
    const two = light(seen(getComputedStyle(behind ?? document.body).backgroundColor).rgb);
    return [selector, (Math.max(one, two) + .05) / (Math.min(one, two) + .05)];
  });
})"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_everything_fits_and_can_be_read(shop, visit, size, scheme):
    page = visit(shop, size, scheme)
    page.locator("#text").fill(TEXT + " " + "x" * 300)
    page.locator("#results .row").first.click()
    expect(page.locator("#why .parts.made li")).to_have_count(3)
    page.wait_for_timeout(500)
    for view in ("try", "labels", "model"):
        page.evaluate(f"location.hash = '#/{view}'")
        page.locator(f"#view-{view}").wait_for()
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0], view
        read = [
            ".lede",
            ".quiet",
            ".hint",
            ".score",
            ".about",
            "nav a",
            ".badge",
            "a",
            "h1",
            ".name",
            "small",
            ".state",
        ]
        for selector, contrast in page.evaluate(CONTRAST, read):
            assert contrast >= 4.5, (view, selector, contrast)
    page.goto(f"http://127.0.0.1:{shop.port}/docs")
    expect(page.locator("#paths pre").first).to_contain_text("/predict")
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
