"""Every refusal of the interface is shown in Chinese on the pages, whatever field or number it names."""

import ast
from collections.abc import Iterator
from pathlib import Path

import merchant_wallet
from merchant_wallet.web.languages import Language
from merchant_wallet.web.refusals import translate_refusal

SOURCE = Path(merchant_wallet.__file__).parent
WITHOUT_MERCHANT = ("connection.py", "routes.py", "codes.py")
"""Refusals in these modules belong to no merchant's request, so no page shows them."""


def list_refusals() -> Iterator[str]:
    """Every refusal's text, with an example for each placeholder."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path.name in WITHOUT_MERCHANT or not ("refuse(" in text or "Refusal(" in text):
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call):
                continue
            if getattr(node.func, "id", "") in ("refuse", "Refusal") and len(node.args) > 1:
                yield from _read(node.args[1])


def _read(sentence: ast.expr) -> Iterator[str]:
    if isinstance(sentence, ast.Constant):
        yield str(sentence.value)
    elif isinstance(sentence, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X7" for part in sentence.values)


def is_translated(msg: str) -> bool:
    """Whether the Chinese page translates it with the same placeholders, and the English page leaves it as
    it is.
    """
    told = translate_refusal(Language.ZH, msg)
    is_chinese = any("\u4e00" <= letter <= "\u9fff" for letter in told)
    return is_chinese and told.count("X7") == msg.count("X7") and translate_refusal(Language.EN, msg) == msg


def test_every_refusal_has_its_chinese() -> None:
    refusals = set(list_refusals())
    assert len(refusals) > 70
    assert {"amount: more than the available balance", "X7 must have at most X7 decimals"} <= refusals
    lacking = sorted(msg for msg in refusals if not is_translated(msg))
    assert not lacking, "\n".join(lacking)


def test_a_refusal_without_chinese_would_be_found() -> None:
    assert not is_translated("nobody translated X7")


def test_a_named_character_is_translated_with_its_refusal() -> None:
    msg = "amount must have at most 2 decimals (it has U+00A0 no-break space at character 3)"
    told = "amount 最多 2 位小数（第 3 个字符为 U+00A0 no-break space）"
    assert translate_refusal(Language.ZH, msg) == told


def test_what_the_request_said_is_not_translated() -> None:
    msg = "amount must have at most 2 decimals"
    assert translate_refusal(Language.ZH, msg) == "amount 最多 2 位小数"
    assert translate_refusal(Language.ZH, "{field} is {odd") == "{field} is {odd"
    assert translate_refusal(Language.ZH, "of an older version") == "of an older version"
