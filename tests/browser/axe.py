"""axe-core in a page: what it finds there, described.

Rules:
- Colours are judged once for each style of text that the browser has shown: its colour, its size and all that
  lies behind it. Where no text has a new style, axe isn't asked, for that takes most of its time.
- A style with a finding is judged again wherever it is.
"""

import functools
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

from playwright.sync_api import Browser, Page

FILE: Final = Path(__file__).parents[2] / "devnet/node_modules/axe-core/axe.min.js"
COLOURS: Final = ("color-contrast", "link-in-text-block")
"""axe's rules about colours."""
# `preload` is needed for rules about audio only, and no page plays audio.
_JUDGE: Final = """async ([within, but, rules]) => {
    const choices = {resultTypes: ["violations"], preload: false};
    if (rules.length) choices.runOnly = rules;
    choices.rules = Object.fromEntries(but.map(rule => [rule, {enabled: false}]));
    return (await axe.run({include: [[within]]}, choices)).violations;
}"""
# Where a part lies tells what it may lie upon. axe leaves out what is disabled, and single characters.
_LIST_STYLES: Final = """within => {
    const behind = new Map();
    const listBehind = one => {
        if (!one) return "";
        if (behind.has(one)) return behind.get(one);
        const style = getComputedStyle(one);
        const own = [];
        if (style.backgroundColor !== "rgba(0, 0, 0, 0)") own.push(style.backgroundColor);
        for (const [name, usual] of [["backgroundImage", "none"], ["opacity", "1"], ["filter", "none"],
            ["mixBlendMode", "normal"], ["clip", "auto"], ["clipPath", "none"]])
            if (style[name] !== usual) own.push(style[name]);
        if (!["static", "relative"].includes(style.position)) own.push(style.position, style.zIndex);
        const told = listBehind(one.parentElement) + (own.length ? ` > ${own.join(" ")}` : "");
        behind.set(one, told);
        return told;
    };
    const listInk = one => {
        const style = getComputedStyle(one);
        return [style.color, style.fontWeight, style.textShadow, style.textDecorationLine].join(" ");
    };
    window.styled = new Map();
    const root = document.querySelector(within);
    for (const one of [root, ...root.querySelectorAll("*")]) {
        const text = [...one.childNodes].filter(part => part.nodeType === Node.TEXT_NODE)
            .map(part => part.nodeValue).join("").trim();
        if (!text && !["INPUT", "SELECT", "TEXTAREA"].includes(one.tagName)) continue;
        if (!one.checkVisibility({visibilityProperty: true})) continue;
        const isDisabled = Boolean(
            one.closest(":disabled, [aria-disabled=true]") || one.closest("label")?.control?.disabled);
        const style = [listInk(one), getComputedStyle(one).fontSize, isDisabled, text.length > 1,
            one.tagName === "A" ? listInk(one.parentElement) : "", listBehind(one)].join("; ");
        if (!window.styled.has(style)) window.styled.set(style, []);
        window.styled.get(style).push(one);
    }
    return [...window.styled.keys()];
}"""
_JUDGE_STYLES: Final = """async ([styles, rules]) => {
    const include = styles.flatMap(style => window.styled.get(style));
    const choices = {resultTypes: ["violations"], preload: false, runOnly: rules};
    return (await axe.run({include}, choices)).violations;
}"""
_sound_styles: Final[WeakKeyDictionary[Browser, set[str]]] = WeakKeyDictionary()


def find_barriers(
    page: Page, within: str = "html", *, but: Collection[str] = (), rules: Collection[str] = ()
) -> list[str]:
    """What axe finds in a page or a part of it, described. If there are `rules`, they are the only ones."""
    if page.evaluate("() => !window.axe"):
        page.evaluate(_read_axe())
        # What the page loads next has it from the beginning. The browser keeps it compiled.
        page.add_init_script(_read_axe())
    found: list[str] = []
    if not set(COLOURS).issuperset(rules or ["all"]):
        violations = page.evaluate(_JUDGE, [within, [*but, *COLOURS], list(rules)])
        found += map(_describe, violations)
    if set(COLOURS).issubset(rules or COLOURS) and not set(COLOURS) & set(but):
        found += _find_pale_texts(page, within)
    return found


def _find_pale_texts(page: Page, within: str) -> list[str]:
    browser = page.context.browser
    assert browser is not None, "the tests' pages are opened by a browser"
    sound = _sound_styles.setdefault(browser, set())
    new = [style for style in page.evaluate(_LIST_STYLES, within) if style not in sound]
    found = page.evaluate(_JUDGE_STYLES, [new, COLOURS]) if new else []
    if not found:
        sound.update(new)
    return [_describe(violation) for violation in found]


@functools.cache
def _read_axe() -> str:
    assert FILE.exists(), "axe-core is missing: `python -m devnet --install` fetches it"
    return FILE.read_text(encoding="utf-8")


def _describe(violation: Mapping[str, Any]) -> str:
    nodes = [
        f"    {' '.join(map(str, node['target']))}\n      {node['html'][:160]}" for node in violation["nodes"]
    ]
    reasons = violation["nodes"][0]["failureSummary"].replace("\n", " ")
    return f"{violation['impact']} {violation['id']}: {violation['help']}. {reasons}\n" + "\n".join(nodes[:6])
