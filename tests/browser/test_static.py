"""Static files, checked without a browser: third-party scripts, styles, icons, templates."""

import hashlib
import re
from pathlib import Path

import pytest

import merchant_wallet
from merchant_wallet.web.static import STATIC_DIR

PACKAGE = Path(merchant_wallet.__file__).parent
VENDOR = STATIC_DIR / "vendor"
TEMPLATES = sorted(path for path in PACKAGE.rglob("templates/**/*.html"))
OWN = sorted(path for path in STATIC_DIR.iterdir() if path.suffix in (".css", ".js"))
ICONS = set(re.findall(r'<symbol id="([a-z-]+)"', (STATIC_DIR / "icons.svg").read_text()))
# Where a template certainly names an icon. A name that is passed to another macro looks like any other text.
NAMED_ICON = re.compile(r'\bicon\(\s*"([a-z-]+)"|icons\.svg\'\) ?}}#([a-z-]+)"')
MAX_STYLE_BYTES = 64_000


def test_scripts_of_others_are_what_their_authors_published() -> None:
    rows = re.findall(r"^\| `(.+?)` .*`([0-9a-f]{64})` \|$", (VENDOR / "README.md").read_text(), re.MULTILINE)
    published = dict(rows)
    kept = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "README.md"
    }
    assert kept == published


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_template_holds_a_script_a_style_or_an_address_of_elsewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|\shx-on|javascript:", text)
    assert all(found.startswith(' src="{{ static(') for found in re.findall(r"<script([^>]*)>", text))
    assert not re.search(r"""(src|href|action)=["'](https?:)?//""", text)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_every_icon_named_in_a_template_is_in_the_set(path: Path) -> None:
    named = {one or other for one, other in NAMED_ICON.findall(path.read_text(encoding="utf-8"))}
    assert named <= ICONS


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_what_is_our_own_is_small_and_calls_nobody(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < MAX_STYLE_BYTES
    assert not re.search(r"https?://|@import|\beval\(|new Function|\.innerHTML|document\.write", text)


def test_the_dark_colours_are_the_same_whether_chosen_or_the_devices() -> None:
    text = (STATIC_DIR / "base.css").read_text(encoding="utf-8")
    device = re.search(r':root:not\(\[data-theme="light"\]\) \{(.*?)\}', text, re.DOTALL)
    chosen = re.search(r':root\[data-theme="dark"\] \{(.*?)\}', text, re.DOTALL)
    assert device
    assert chosen
    assert device[1].split() == chosen[1].split()


def test_every_colour_used_has_a_name_that_is_defined() -> None:
    styles = "\n".join(path.read_text(encoding="utf-8") for path in OWN if path.suffix == ".css")
    defined = set(re.findall(r"(--[a-z0-9-]+):", styles))
    used = set(re.findall(r"var\((--[a-z0-9-]+)", styles))
    assert used <= defined
    assert defined <= used | {"--r-sm", "--s16"}
