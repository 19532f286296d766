"""What a browser calls itself, in the few words by which people know their own. Pure."""

from typing import Final

_BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
"""Marks in the order in which they tell: many a browser names those that it wants to be taken for, too."""
_SYSTEMS: Final = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
_MAX_SHOWN: Final = 60


def name_browser(user_agent: str) -> str:
    """Such as `Firefox · Windows`; the beginning of what it says when it is none of the common ones."""
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), "")
    return " · ".join(filter(None, (browser, system))) if browser else user_agent[:_MAX_SHOWN]
