"""The page in a real browser: keys, buttons, what a screen reader is told, 400 and 1,200 pixels."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from conf.storage.journal_file import read_file
from flows.commands.serve import listener
from flows.serving.proxy import listening
from flows.teaching.app import make_app
from flows.web.address import HERE, free_port
from tests.flows.teaching.conftest import ANSWERS, School

TOKEN = "secret"
CHROMIUM = shutil.which("chromium")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def errors() -> list[str]:
    return []


@pytest.fixture
def page(browser: Any, school: School, errors: list[str]) -> Iterator[Any]:
    port = free_port()
    room = school.open()
    with listener(HERE, port) as taken, listening(make_app(room, port, TOKEN), HERE, taken):
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.set_default_timeout(20_000)
        page.on("console", lambda message: errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{HERE.url(port)}/#t={TOKEN}")
        page.locator("#ask-button:enabled").wait_for()
        yield page
        page.close()


def ask(page: Any, question: str = "7 + 5?") -> None:
    page.fill("#prompt", question)
    page.keyboard.press("Enter")
    page.locator("#answers[aria-busy=false] .answer >> nth=4").wait_for()


def lessons(page: Any, count: int) -> None:
    page.locator(f"#lessons:has(> li:nth-child({count})):not(:has(> li:nth-child({count + 1})))").wait_for()


def learned(page: Any) -> None:
    page.locator("#status", has_text="learned").wait_for()


def school_lines(school: School) -> list[Any]:
    return [entry for file in school.home.journal.glob("*") for _, entry in read_file(file)[0]]


def kinds(school: School) -> list[str]:
    return [entry.kind for entry in school_lines(school)]


def test_a_lesson_by_keys_and_its_undoing(page: Any, school: School, errors: list[str]) -> None:
    assert "t=" not in page.url  # the token is not left in the address
    assert page.locator("#welcome").is_visible()
    ask(page)
    assert page.locator("#welcome").is_hidden()
    shown = page.locator("#answers .text").all_text_contents()
    assert sorted(shown) == sorted(ANSWERS)
    page.keyboard.press("2")
    lessons(page, 1)
    learned(page)
    assert page.locator(".answer.picked .text").text_content() == shown[1]
    assert shown[1] in page.locator("#lessons li").text_content()
    page.keyboard.press("r")
    page.locator("#answers[aria-busy=false] .answer >> nth=4").wait_for()
    page.keyboard.press("z")
    page.locator("#no-lessons").wait_for()
    assert (kinds(school), errors) == ([], [])


def test_the_other_lessons_by_keys(page: Any, school: School) -> None:
    ask(page)
    for count, key in enumerate("+-0", 1):
        page.keyboard.press(key)
        lessons(page, count)
        learned(page)
    page.keyboard.press("x")
    page.locator(".word >> nth=0").press("Enter")
    lessons(page, 4)
    learned(page)
    page.keyboard.press("e")
    page.locator(".answer textarea").fill("It is 12.")
    page.get_by_role("button", name="Teach this", exact=True).click()
    lessons(page, 5)
    page.get_by_text("Give it a text to read").click()
    page.fill("#text", "7 + 5 = 12, and 5 + 7 = 12 too")
    page.get_by_role("button", name="Teach this text").click()
    lessons(page, 6)
    assert kinds(school) == ["feedback"] * (2 + len(ANSWERS) + 1) + ["correction", "words"]
    undo = page.get_by_role("button", name="Undo: Corrected It is 12.")
    undo.click()
    lessons(page, 5)


def test_a_whole_conversation(page: Any, school: School) -> None:
    ask(page)
    assert page.locator("#talk").is_hidden()
    page.keyboard.press("1")
    lessons(page, 1)
    learned(page)
    first = page.locator(".answer.picked .text").text_content()
    page.fill("#prompt", "And 1 more?")
    page.get_by_label("as a follow-up").check()
    page.locator("#prompt").press("Enter")
    page.locator("#earlier li >> nth=1").wait_for()  # until then the first question's answers stand there
    page.locator("#answers[aria-busy=false] .answer >> nth=4").wait_for()
    assert page.locator("#earlier li").all_text_contents() == ["You 7 + 5?", f"Model {first}"]
    assert page.locator("#talk").is_hidden()  # until it is known which answer the conversation ends with
    page.keyboard.press("3")
    lessons(page, 2)
    picked = page.locator(".answer.picked .text").text_content()
    page.locator("#good-talk").click()
    lessons(page, 3)
    page.locator("#lessons li >> nth=0", has_text="Good conversation").wait_for()
    assert kinds(school) == ["preference", "preference", "conversation"]
    assert school_lines(school)[-1].messages[-1].content == picked


def test_keys_can_be_switched_off_and_are_no_shortcuts_while_typing(page: Any, school: School) -> None:
    ask(page)
    page.keyboard.press("/")
    page.keyboard.type("1 + 1 = 0?")
    assert page.input_value("#prompt") == "1 + 1 = 0?"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.get_by_label("Use these keys").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("1")
    page.get_by_role("button", name="Pick answer 3").click()
    lessons(page, 1)
    assert kinds(school) == ["preference"]


def test_stop(page: Any, school: School) -> None:
    school.engine.pause = 0.5
    page.fill("#prompt", "Count!")
    page.keyboard.press("Enter")
    page.locator("#stop").wait_for()
    page.keyboard.press("Escape")
    page.locator("#answers[aria-busy=false]").wait_for()
    assert page.locator("#stop").is_hidden()


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible_and_fits(page: Any, width: int, scheme: str) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    assert Axe().run(page).violations_count == 0
    ask(page)
    page.keyboard.press("1")
    lessons(page, 1)
    learned(page)
    page.keyboard.press("x")
    report = Axe().run(page)
    assert report.violations_count == 0, report.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert (
        "5 answers." in page.locator("#announcer").text_content()
        or "learned" in page.locator("#announcer").text_content()
    )
