"""Whatever colour a merchant chooses, every text of the wallet page can be read, in both themes."""

import itertools
import re
from pathlib import Path

import pytest

from merchant_wallet.web import brand_colours as colours
from merchant_wallet.web.brand_colours import DARK_SURFACES, LIGHT_SURFACES, OUTLINE, TEXT, contrast
from merchant_wallet.web.static import STATIC_DIR

ALL = ["#" + "".join(parts) for parts in itertools.product(("00", "40", "80", "c0", "ff"), repeat=3)]
BASE = Path(STATIC_DIR / "base.css").read_text()


def check_card(made: dict[str, str]) -> None:
    """The texts on the balance's card."""
    for ground in (made["hero"], made["hero-2"]):
        for text in (made["on-hero"], made["on-hero-2"], colours.LATE):
            assert contrast(text, ground) >= TEXT
        for share in (0.16, 0.24):
            assert contrast(made["on-hero"], colours.lay_over(ground, share)) >= TEXT
    for ground in (made["on-hero"], made["hero-press"]):
        assert contrast(made["hero-ink"], ground) >= TEXT


@pytest.mark.parametrize(
    ("make", "surfaces"), [(colours.make_light, LIGHT_SURFACES), (colours.make_dark, DARK_SURFACES)]
)
def test_every_text_has_its_contrast_with_any_colour(make: object, surfaces: tuple[str, ...]) -> None:
    assert callable(make)
    for colour in ALL:
        made = make(colour)
        for ground in (*surfaces, made["accent-soft"]):
            assert contrast(made["accent"], ground) >= TEXT, colour
            assert contrast(made["accent-strong"], ground) >= TEXT, colour
            assert contrast(made["focus"], ground) >= OUTLINE, colour
        for ground in (made["accent"], made["accent-strong"]):
            assert contrast(made["on-accent"], ground) >= TEXT, colour
        check_card(made)


def test_a_colour_that_can_be_read_stays_as_it_is() -> None:
    assert colours.make_light("#8a1538")["accent"] == "#8a1538"
    assert colours.make_light("#ffcc00")["accent"] != "#ffcc00"


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


def test_the_surfaces_are_those_of_the_pages() -> None:
    found = re.findall(r"--(bg|surface|surface-2|surface-3): (#[0-9a-f]{6});", BASE)
    assert tuple(value for _, value in found[:4]) == LIGHT_SURFACES
    assert (
        tuple(value for _, value in found[4:8]) == DARK_SURFACES == tuple(value for _, value in found[8:12])
    )


def test_the_stylesheet_names_nothing_that_the_pages_do_not_have() -> None:
    names = set(re.findall(r"--([a-z0-9-]+):", colours.make_styles("#8a1538")))
    wallet = (STATIC_DIR / "wallet.css").read_text()
    assert {name for name in names if f"--{name}:" not in BASE and f"var(--{name})" not in wallet} == set()
