"""Amounts, times and ids, as the pages show them."""

import re

import pytest
from jinja2 import UndefinedError, meta
from tests.rows import each_row

from merchant_wallet.web.languages import Language
from merchant_wallet.web.templates import (
    SHARED_MACROS,
    Templates,
    group_digits,
    shorten,
    show_day,
    show_moment,
    show_money,
)


@each_row(
    ("units", "shown"),
    [
        (0, "0.00"),
        (1, "0.000001"),
        (500_000, "0.50"),
        (1_234_500_000, "1,234.50"),
        (12_345_678, "12.345678"),
        (10**18, "1,000,000,000,000.00"),
        (-1_500_000, "\u22121.50"),
    ],
)
def test_an_amount_has_two_decimals_or_all_it_needs(units: int, shown: str) -> None:
    assert show_money(units) == shown


def test_a_sign_is_shown_where_it_matters() -> None:
    assert [show_money(units, signed=True) for units in (1_000_000, 0, -1_000_000)] == [
        "+1.00",
        "0.00",
        "\u22121.00",
    ]
    assert show_money(5_000_000, decimals=0) == "5"


def test_a_plain_decimal_is_grouped() -> None:
    assert group_digits("-1234567.5") == "\u22121,234,567.5"


def test_a_time_is_written_for_machines_and_people() -> None:
    assert show_moment(1_763_712_000_123) == (
        '<time datetime="2025-11-21T08:00:00.123Z" data-moment>2025-11-21 08:00:00 UTC</time>'
    )
    assert show_moment(None) == "&mdash;"
    assert show_day(1_763_712_000_123) == "2025-11-21"


def test_a_long_text_loses_its_middle_and_no_character_escapes() -> None:
    assert shorten("0123456789") == "0123456789"
    assert shorten('<b>"' + "x" * 40) == (
        f'<span title="&lt;b&gt;&#34;{"x" * 40}" class="short">&lt;b&gt;&#34;xxxx\u2026xxxxxx</span>'
    )


def test_whatever_a_template_is_given_is_escaped_and_what_it_is_not_given_is_a_fault() -> None:
    environment = Templates().environment
    shown = environment.from_string("{{ name }}").render(name='<script>alert("1")</script>')
    assert shown == "&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;"
    with pytest.raises(UndefinedError):
        environment.from_string("{{ nobody_gave_this }}").render()


def test_a_template_speaks_the_language_asked_for() -> None:
    templates = Templates()
    text = templates.environment.from_string("{{ lang }}").render(lang=str(Language.ZH))
    assert text == "zh-CN"


def test_prepared_templates_are_compiled_before_anybody_asks() -> None:
    templates = Templates()
    templates.prepare("wallet/", "web/error")
    assert templates.environment.cache is not None
    ready = {str(key[1]) for key in list(templates.environment.cache)}
    assert {"wallet/home.html", "web/error.html"} <= ready
    assert not any(name.startswith("console/") for name in ready)


def test_the_macros_see_only_what_is_the_same_on_a_whole_page() -> None:
    # They are made once per page, with what the first template sees that imports them.
    environment = Templates().environment
    assert environment.loader is not None
    texts = {
        name: environment.loader.get_source(environment, name)[0] for name in environment.list_templates()
    }
    names = [name for name in texts if name.rpartition("/")[2] in SHARED_MACROS]
    assert sorted(names) == ["console/parts.html", "web/macros.html"]
    seen = {one for name in names for one in meta.find_undeclared_variables(environment.parse(texts[name]))}
    assert seen == {"_", "lang", "csrf", "theme", "Right", "may", "request"}
    words = "|".join(seen)
    assigned = re.compile(rf"{{%-?\s*(?:set|with|for)\s[^%]*?\b({words})\s*(?:=|,|\bin\b)")
    assert [name for name, text in texts.items() if assigned.search(text)] == []


def test_each_page_has_macros_with_its_own_values() -> None:
    templates = Templates()
    values = {"name": "ann", "problem": "", "back": "", "ended": "", "here": "", "theme": "auto"}
    shown = [
        templates.render("console/sign_in.html", language, **values, csrf=csrf)
        for language, csrf in ((Language.EN, "first"), (Language.ZH, "second"), (Language.EN, "third"))
    ]
    for text, csrf, lang in zip(shown, ("first", "second", "third"), ("en", "zh-CN", "en"), strict=True):
        assert set(re.findall('name="csrf" value="([^"]*)"', text)) == {csrf}
        assert f'lang="{lang}"' in text


def test_in_the_sandbox_every_whole_page_says_so_and_elsewhere_none_does() -> None:
    values = {
        "title": "Nothing here",
        "text": "There is no such page.",
        "status": 404,
        "home": "",
        "theme": "auto",
        "csrf": "",
        "request_id": "",
    }
    shown = {
        (sandbox, language): Templates(sandbox=sandbox).render("web/error.html", language, **values)
        for sandbox in (True, False)
        for language in Language
    }
    assert "No real money moves here" in shown[True, Language.EN]
    assert "此处没有真实资金" in shown[True, Language.ZH]
    for language in Language:
        assert "sandbox" not in shown[False, language]
