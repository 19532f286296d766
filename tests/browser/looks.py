"""Looks: one loaded page on each screen and in both themes.

Rules:
- A page is loaded once, on a desktop in the light theme. Then the screen and the theme change under it, as a
  turned phone or the evening changes them.
- axe judges everything on a desktop and on a phone, in each language. On further screens it judges what
  depends on the layout. Nothing else differs there.
- In the dark theme axe judges the colours: nothing else differs from the light one.
- Of a page in both languages, axe judges the colours in English alone: they don't differ. What it
  found sound once, it does not judge again (`axe.py`).
- No look is wider than its screen.
- Screens for fingers come last: the mouse is back when the next page is loaded.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from playwright.sync_api import CDPSession, Page
from tests.browser.axe import COLOURS, find_barriers
from tests.browser.conftest import DESKTOP, LANGUAGES, PHONE, Screen

LAYOUT: Final = ("scrollable-region-focusable",)
"""axe's rules about the size of parts."""
WIDTH: Final = "() => document.documentElement.scrollWidth"
IS_SHOWN: Final = """([width, touch, theme]) => matchMedia(`(width: ${width}px)`).matches
    && (!touch || matchMedia("(pointer: coarse)").matches)
    && matchMedia(`(prefers-color-scheme: ${theme})`).matches"""

each_language = pytest.mark.parametrize("language", LANGUAGES)


def require_looks(
    page: Page, *more: Screen, within: str = "html", but: Collection[str] = (), colours: bool = True
) -> None:
    """Fail if the page, or the part of it that `within` selects, keeps people out in any look."""
    faults = list_faults(page, *more, within=within, but=but, colours=colours)
    assert not faults, "\n".join(faults)


def list_faults(
    page: Page, *more: Screen, within: str = "html", but: Collection[str] = (), colours: bool = True
) -> list[str]:
    """What keeps people out of a page in any look.

    `more`: further screens, in the light theme. `but`: rules of axe that are left out. Without `colours` they
    are not judged: the page is judged in another language, too.
    """
    left_out = but if colours else (*but, *COLOURS)
    faults: list[str] = []

    def judge(screen: Screen, theme: str, **how: Collection[str]) -> None:
        show(page, device, screen, theme)
        found = find_barriers(page, within, **how) + list_excess(page, screen)
        faults.extend(f"{page.url} ({screen.name}, {theme}): {one}" for one in found)

    with changing(page) as device:
        for screen in sorted((DESKTOP, PHONE, *more), key=lambda screen: screen.touch):
            if screen in more:
                judge(screen, "light", rules=LAYOUT)
                continue
            judge(screen, "light", but=left_out)
            if colours:
                judge(screen, "dark", rules=COLOURS)
    return faults


@contextmanager
def changing(page: Page) -> Iterator[CDPSession]:
    """While one changes the screen and the theme of a page. Afterwards it has its own screen again."""
    device = page.context.new_cdp_session(page)
    yield device
    page.emulate_media(color_scheme="light")
    device.detach()


def show(page: Page, device: CDPSession, screen: Screen, theme: str) -> None:
    """Show the page on this screen in this theme. It is not loaded again."""
    shown = [screen.width, screen.touch, theme]
    if not screen.touch and page.evaluate(IS_SHOWN, shown):
        return
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    size = {"width": screen.width, "height": screen.height}
    kind = {"deviceScaleFactor": screen.scale, "mobile": screen.touch}
    device.send("Emulation.setDeviceMetricsOverride", {**size, **kind})
    if screen.touch:
        device.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    page.wait_for_function(IS_SHOWN, arg=shown)


def list_excess(page: Page, screen: Screen) -> list[str]:
    """A fault if the page is wider than the screen."""
    width = page.evaluate(WIDTH)
    return [f"sticks out to {width} px"] if width > screen.width else []
