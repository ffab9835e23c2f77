"""The page in a real browser: keys, buttons, what a screen reader is told, 400 and 1,200 pixels."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.flows.teaching.conftest import ANSWERS, TOKEN, School, page_of

pytestmark = pytest.mark.slow


@pytest.fixture
def errors() -> list[str]:
    return []


@pytest.fixture
def texts() -> tuple[str, ...]:
    """What the engine writes."""
    return ANSWERS


@pytest.fixture
def page(browser: Any, school: School, errors: list[str], texts: tuple[str, ...]) -> Iterator[Any]:
    with page_of(school.open(texts=texts)) as here:
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.set_default_timeout(20_000)
        page.on("console", lambda message: errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{here}/#t={TOKEN}")
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
    page.locator("#status", has_text="learned in").wait_for()


def teach(page: Any, key: str, count: int) -> None:
    """Press a key, and wait until there are so many lessons and the last one is learned."""
    page.keyboard.press(key)
    lessons(page, count)
    learned(page)


def kinds(school: School) -> list[str]:
    return [entry.kind for entry in school.lines]


def test_a_lesson_by_keys_and_its_undoing(page: Any, school: School, errors: list[str]) -> None:
    assert "t=" not in page.url  # the token is not left in the address
    assert page.locator("#welcome").is_visible()
    ask(page)
    assert page.locator("#welcome").is_hidden()
    shown = page.locator("#answers .text").all_text_contents()
    assert sorted(shown) == sorted(ANSWERS)
    teach(page, "2", 1)
    assert page.locator(".answer.picked .text").text_content() == shown[1]
    expect(page.locator(".answer.picked .top")).to_have_text("Answer 2by the champion")  # nothing was taught before
    assert shown[1] in page.locator("#lessons li").text_content()
    page.keyboard.press("r")
    page.locator("#answers[aria-busy=false] .answer >> nth=4").wait_for()
    page.keyboard.press("z")
    page.locator("#no-lessons").wait_for()
    expect(page.locator("#status")).to_have_text("Undone")
    assert (kinds(school), errors) == ([], [])


@pytest.mark.parametrize("texts", [("12", "12", "75", "7", "5 + 7", "9")])
def test_where_equal_answers_were_merged_each_key_picks_the_answer_of_its_number(page: Any, school: School) -> None:
    ask(page)
    assert page.locator("#answers .number").all_text_contents() == [f"Answer {number}" for number in range(1, 6)]
    assert page.locator("#answers .main kbd").all_text_contents() == ["1", "2", "3", "4", "5"]
    last = page.locator("#answers .text").all_text_contents()[4]
    page.keyboard.press("5")
    lessons(page, 1)
    assert page.locator(".answer.picked .text").text_content() == last


def test_the_other_lessons_by_keys(page: Any, school: School) -> None:
    ask(page)
    for count, key in enumerate("+-0", 1):
        teach(page, key, count)
    page.keyboard.press("x")
    page.locator(".word >> nth=0").press("Enter")
    lessons(page, 4)
    learned(page)
    shown = page.locator("#answers .text").all_text_contents()
    page.keyboard.press("e")
    page.locator(".answer textarea").fill("It is 12.")
    page.get_by_role("button", name="Teach this", exact=True).click()
    lessons(page, 5)
    page.get_by_text("Give it a text to read").click()
    page.fill("#text", "7 + 5 = 12, and 5 + 7 = 12 too")
    page.get_by_role("button", name="Teach this text").click()
    lessons(page, 6)
    assert kinds(school) == ["feedback"] * (2 + len(ANSWERS) + 1) + ["correction", "words"]
    assert "It is 12." in page.locator("#answers .text").all_text_contents()
    page.get_by_role("button", name="Undo: Corrected It is 12.").click()
    lessons(page, 5)
    expect(page.locator("#answers .text")).to_have_text(shown)
    assert page.locator(".answer.picked").count() == 0


def test_a_whole_conversation(page: Any, school: School) -> None:
    ask(page)
    assert page.locator("#talk").is_hidden()
    teach(page, "1", 1)
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
    assert school.lines[-1].messages[-1].content == picked


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


def say(page: Any, text: str, turns: int) -> None:
    page.fill("#prompt", text)
    page.keyboard.press("Enter")
    page.locator(f"#turns[aria-busy=false] li >> nth={turns - 1}").wait_for()


def turns(page: Any) -> list[str]:
    return [text.strip() for text in page.locator("#turns .said, #turns .text").all_text_contents()]


def test_a_chat_goes_on_after_a_reload_and_learns_a_proposed_correction(page: Any, school: School) -> None:
    page.get_by_label("Chat", exact=True).check()
    say(page, "7 + 5?", 2)
    say(page, "No, it is 13", 4)
    assert page.locator("#proposed").text_content() == "It is 13"
    page.locator("#prompt").press("Escape")
    teach(page, "t", 1)
    page.locator("#turns .text >> nth=0", has_text="It is 13").wait_for()
    page.reload()
    page.locator("#turns li >> nth=3").wait_for()
    assert turns(page) == ["7 + 5?", "It is 13", "No, it is 13", ANSWERS[1]]
    assert page.locator("#conversations li").count() == 1
    for _ in range(2):  # five others for the last answer, and then five other ones
        with page.expect_response("**/api/ask") as response:
            page.keyboard.press("r")
        assert response.value.status == 200
        page.locator("#answers[aria-busy=false] .answer >> nth=4").wait_for()
    better = page.locator("#answers .text >> nth=2").text_content().strip()
    page.keyboard.press("3")
    lessons(page, 2)
    page.locator("#turns .text >> nth=1", has_text=better).wait_for()
    page.keyboard.press("b")
    page.locator("#before-after:not([hidden])").wait_for()
    page.keyboard.press("w")
    page.locator(".why", has_text="by your lesson").wait_for()
    page.keyboard.press("z")  # the pick, and with it what the chat went on from
    page.locator("#turns .text >> nth=1", has_text=ANSWERS[1]).wait_for()
    assert (report := Axe().run(page)).violations_count == 0, report.generate_report()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete: 7 + 5?").click()
    page.locator("#no-conversations").wait_for()
    page.locator("#no-lessons").wait_for()
    assert school.lines == []


def test_what_is_said_while_an_answer_is_written_goes_where_it_belongs(page: Any, school: School) -> None:
    page.get_by_label("Chat", exact=True).check()
    say(page, "7 + 5?", 2)
    school.engine.pause = 0.5
    for text in ("And 1 more?", "And then?"):  # the second one stops the first one's answer
        page.fill("#prompt", text)
        page.locator("#prompt").press("Enter")
        page.locator("#turns li .text >> nth=-1", has_text="1").wait_for()
    expect(page.locator("#turns .said")).to_have_text(["7 + 5?", "And 1 more?", "And then?"])
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator("#turns li")).to_have_count(0)
    assert page.locator("#stop").is_hidden()
    say(page, "Another?", 2)
    assert page.locator("#conversations li").count() == 2


SLOW = """const real = window.fetch, seconds = { "api/conversations": 0.2, "api/stop": 0.5 };
window.fetch = async (path, ...how) => {
  const response = await real(path, ...how);
  await new Promise((done) => setTimeout(done, 1000 * (seconds[path] ?? 0)));
  return response;
}"""


def test_what_is_said_just_when_an_answer_ends_is_sent(page: Any) -> None:
    page.get_by_label("Chat", exact=True).check()
    page.evaluate(SLOW)  # the answer's last request ends while the page waits for the stop
    for number in range(3):
        say(page, f"{number} + 1?", 2 * number + 2)


def test_a_second_click_teaches_nothing_twice(page: Any, school: School) -> None:
    ask(page)
    page.locator("#answers .answer >> nth=0").get_by_role("button", name="Type a better answer").click()
    page.locator(".answer textarea").fill("It is 12.")
    page.get_by_role("button", name="Teach this", exact=True).dblclick()
    lessons(page, 1)
    learned(page)
    page.get_by_text("Give it a text to read").click()
    page.fill("#text", "7 + 5 = 12")
    page.get_by_role("button", name="Teach this text").dblclick()
    lessons(page, 2)
    page.get_by_label("Chat", exact=True).check()
    school.engine.pause = 0.1
    page.fill("#prompt", "7 + 5?")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.locator("#turns[aria-busy=false] li >> nth=1").wait_for()
    assert page.locator("#turns li").count() == 2
    assert kinds(school) == ["correction", "words", "conversation"]


def test_answers_still_being_written_do_not_follow_into_the_chat(page: Any, school: School) -> None:
    say_chat, school.engine.pause = page.get_by_label("Chat", exact=True), 0.2
    page.fill("#prompt", "7 + 5?")
    page.keyboard.press("Enter")
    page.locator("#answers .answer >> nth=0").wait_for()
    say_chat.check()
    page.locator("#talks:not([hidden])").wait_for()
    page.locator("#prompt").press("Escape")
    page.keyboard.press("1")
    say(page, "7 + 5?", 2)
    assert kinds(school) == ["conversation"]


def test_an_example_a_changed_pick_and_the_models_card(page: Any, school: School) -> None:
    page.get_by_role("button", name="Give me one reason").click()
    page.locator("#answers[aria-busy=false] .answer >> nth=4").wait_for()
    shown = page.locator("#answers .text").all_text_contents()
    for key, count in (("1", 1), ("3", 1)):
        page.keyboard.press(key)
        page.locator("#lessons li", has_text=shown[int(key) - 1]).wait_for()
        lessons(page, count)
        learned(page)
    page.keyboard.press("3")
    page.locator("#hint", has_text="you have said so already").wait_for()
    expect(page.locator(".answer.picked")).to_have_text(re.compile(re.escape(shown[2])))
    page.get_by_text("The model", exact=True).click()
    page.locator("#card dd", has_text=school.champion.name).wait_for()
    assert Axe().run(page).violations_count == 0


@pytest.mark.parametrize("how", ["reload", "link"])
def test_the_question_is_there_after_a_reload(page: Any, how: str) -> None:
    ask(page)
    shown = page.locator("#answers .text").all_text_contents()
    if how == "reload":
        page.reload()
    else:  # after a restart, the owner opens the new link in the same tab
        page.context.clear_cookies()
        page.goto(f"{page.url}#t={TOKEN}")
        page.wait_for_url(lambda url: TOKEN not in url)
    page.locator("#answers .answer >> nth=4").wait_for()
    assert page.locator("#answers .text").all_text_contents() == shown


INJECTIONS = [
    "<script>window.hit = 1</script>",
    "<img src=x onerror='window.hit = 1'>",
    "<a href='javascript:alert(1)'>here</a>",
    "[here](javascript:alert(1))",
    "[here](http://127.0.0.1:9/)",
    "![](http://127.0.0.1:9/a.png)",
    "![x][1]\n\n[1]: http://127.0.0.1:9/b.png",
    "<http://127.0.0.1:9/c>",
    "http://127.0.0.1:9/d",
    "```html\n<script>window.hit = 1</script>\n```",
    "`<img src=x onerror=alert(1)>`",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\\<script>alert(1)</script>",
    "| a |\n|---|\n| <img src=x onerror=alert(1)> |",
    "data:text/html,<script>alert(1)</script>",
    "{{7*7}} ${alert(1)} <%= 7 %>",
    "$\\text{<img src=x onerror=alert(1)>}$",
    "$\\href{javascript:alert(1)}{x}$ $\\url{http://127.0.0.1:9/l}$",
    "$$\\text{&lt;script&gt;alert(1)&lt;/script&gt;}$$",
    "$<script>alert(1)</script>$",
    "$$x$$ (prompt)",
]


@pytest.mark.parametrize("texts", [tuple(f"{number} {text}" for number, text in enumerate(INJECTIONS))])
def test_no_answer_can_run_or_load_anything(page: Any, errors: list[str], texts: tuple[str, ...]) -> None:
    requests, dialogs = list[str](), list[str]()
    page.on("request", lambda request: requests.append(request.url))
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    page.get_by_label("Chat", exact=True).check()
    for number in range(len(texts)):
        say(page, f"<b>{number}</b>", 2 * number + 2)
    page.reload()
    page.locator(f"#turns li >> nth={2 * len(texts) - 1}").wait_for()
    assert page.locator("#turns").locator("a, img, script, iframe, b, style, form").count() == 0
    assert page.evaluate("window.hit") is None
    here = page.url.split("#")[0]
    assert [url for url in requests if not url.startswith(here)] == []
    assert (dialogs, errors) == ([], [])


def test_stop(page: Any, school: School) -> None:
    school.engine.pause = 3.0  # so that all words would take longer than the page is waited for
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
    expect(page.locator("#announcer")).to_contain_text("5 answers.")
    teach(page, "1", 1)
    expect(page.locator("#announcer")).to_contain_text("earned")
    page.keyboard.press("x")
    report = Axe().run(page)
    assert report.violations_count == 0, report.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
