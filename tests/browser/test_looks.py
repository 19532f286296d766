"""What judges the looks of a page finds a fault that only one look has."""

import pytest
from tests.browser.conftest import DESKTOP, NARROW, Visits
from tests.browser.looks import changing, list_faults, show

PAGE = """<!doctype html><html lang="{language}"><head><title>Tea</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
body {{ background: #fff; color: #000 }}
@media {when} {{ {style} }}
</style></head><body><main><h1>Tea</h1><p>One cup</p></main></body></html>"""
PALE = "p { background: #777; color: #888 }"


@pytest.mark.parametrize(
    ("language", "when", "style", "told"),
    [
        ("en", "(prefers-color-scheme: light)", PALE, "(desktop, light): serious color-contrast"),
        ("en", "(prefers-color-scheme: dark)", PALE, "(desktop, dark): serious color-contrast"),
        ("zh-CN", "(prefers-color-scheme: light)", PALE, "(phone, light): serious color-contrast"),
        ("zh-CN", "(prefers-color-scheme: dark)", PALE, "(phone, dark): serious color-contrast"),
        ("en", "(pointer: fine)", "p { width: 1500px }", "(desktop, light): sticks out to"),
        (
            "en",
            "(pointer: coarse) and (min-width: 330px)",
            "p { width: 500px }",
            "(phone, light): sticks out to",
        ),
        ("en", "(max-width: 330px)", "p { width: 350px }", "(narrow, light): sticks out to"),
        ("en", "(pointer: coarse)", "h1 { display: none }", "(phone, light): moderate page-has-heading-one"),
    ],
)
def test_a_fault_of_one_look_is_found_there(
    visits: Visits, language: str, when: str, style: str, told: str
) -> None:
    page = visits.open(DESKTOP)
    page.set_content(PAGE.format(language=language, when=when, style=style))
    faults = list_faults(page, NARROW)
    assert any(told in fault for fault in faults), faults


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_without_colours_everything_else_is_judged(visits: Visits, theme: str) -> None:
    page = visits.open(DESKTOP)
    style = PALE + " h1 { display: none }"
    page.set_content(PAGE.format(language="en", when=f"(prefers-color-scheme: {theme})", style=style))
    faults = list_faults(page, NARROW, colours=False)
    headings = ["desktop", "phone"] if theme == "light" else []
    assert len(faults) == len(headings), faults
    for screen, fault in zip(headings, faults, strict=True):
        assert f"({screen}, light): moderate page-has-heading-one" in fault


def test_a_page_without_a_fault_has_its_own_screen_again(visits: Visits) -> None:
    page = visits.open(DESKTOP)
    page.set_content(PAGE.format(language="en", when="print", style=PALE))
    assert list_faults(page, NARROW) == []
    with changing(page) as device:
        show(page, device, NARROW, "dark")
        assert page.evaluate("innerWidth") == NARROW.width
    page.wait_for_function("width => innerWidth === width", arg=DESKTOP.width)


def test_a_sound_colour_is_judged_again_upon_another_ground_and_a_fault_wherever_it_is(
    visits: Visits,
) -> None:
    page = visits.open(DESKTOP)
    text = PAGE.format(language="en", when="all", style="h1, p { color: #999 }")
    page.set_content(text.replace("background: #fff", "background: #111"))
    assert list_faults(page) == []
    for _ in range(2):
        page.set_content(text.replace("background: #fff", "background: #555"))
        assert "color-contrast" in list_faults(page)[0]
    page.set_content(text.replace("background: #fff", "background: #111").replace("#999", "#444"))
    assert "color-contrast" in list_faults(page)[0]
