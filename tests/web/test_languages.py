"""A visitor's language, and the texts in both languages."""

import pytest
from markupsafe import Markup
from tests.rows import each_row

from merchant_wallet.web import languages
from merchant_wallet.web.languages import Language, choose, find_language, translate


@each_row(
    ("header", "expected"),
    [
        ("", Language.EN),
        ("zh-CN,zh;q=0.9,en;q=0.8", Language.ZH),
        ("en-GB,en;q=0.9,zh;q=0.8", Language.EN),
        ("zh", Language.ZH),
        ("zh-Hant-TW", Language.ZH),
        ("ZH-cn", Language.ZH),
        ("de-DE,fr;q=0.9", Language.EN),
        ("de,zh;q=0.5,en;q=0.3", Language.ZH),
        ("en;q=0.2, zh;q=0.7", Language.ZH),
        ("zh;q=0", Language.EN),
        ("zh;q=nonsense", Language.EN),
        ("zh;level=1", Language.EN),
        (",,;;q=,", Language.EN),
        ("x" * 10_000 + ",zh", Language.EN),
    ],
)
def test_the_browsers_first_wish_that_there_is_wins(header: str, expected: Language) -> None:
    assert choose(header) == expected


def test_markup_stays_markup_within_a_text_and_other_values_stay_text() -> None:
    when = Markup("<time>14:05</time>")
    text = "Before {moment} nobody may act on it. Then {name} may."
    said = translate(Language.EN, text, moment=when, name="<b>ann</b>")
    assert said == "Before <time>14:05</time> nobody may act on it. Then &lt;b&gt;ann&lt;/b&gt; may."
    assert hasattr(said, "__html__")
    assert not hasattr(translate(Language.EN, "{name}", name="<b>"), "__html__")


def test_what_was_chosen_goes_before_the_browsers_wish() -> None:
    assert choose("en", "zh-CN") == Language.ZH
    assert choose("zh", "en") == Language.EN


@each_row("kept", ["", "zh", "EN", "../en", "klingon", None])
def test_a_choice_that_is_none_counts_as_nothing(kept: str | None) -> None:
    assert find_language(kept) is None
    assert choose("zh", kept) == Language.ZH


def test_a_text_without_chinese_is_shown_in_english() -> None:
    assert translate(Language.ZH, "No such words anywhere {n}", n=3) == "No such words anywhere 3"


def test_values_that_look_like_placeholders_stay_unchanged() -> None:
    assert translate(Language.EN, "Hello {name}", name="{0.__class__}") == "Hello {0.__class__}"


def test_two_files_must_agree_about_a_text(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    (folder / "a.toml").write_text('"Save" = "保存"\n', encoding="utf-8")
    (folder / "b.toml").write_text('"Save" = "储存"\n', encoding="utf-8")
    monkeypatch.setattr(languages, "WORDS_DIR", folder)
    with pytest.raises(ValueError, match=r"b\.toml"):
        languages.read_words.__wrapped__()
