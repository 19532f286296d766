"""Every text of the pages has a Chinese translation with the same placeholders, and no translation is
unused.

Texts are what templates translate with `_`, what Python marks with `N_`, and the constants in capitals of the
modules named below.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from jinja2 import Environment
from jinja2.ext import extract_from_ast

import merchant_wallet
from merchant_wallet.web.languages import read_words

SOURCE = Path(merchant_wallet.__file__).parent
SITES = ("web", "wallet_site", "console", "notifications")
TRANSLATED_MODULES = ("pins", "pin_rules", "profile", "controls")
"""Modules of `sub_users` whose sentences the wallet page translates."""

has_marks = re.compile(r"\bN?_\(").search
"""Whether a module marks texts. Others are not parsed."""
find_placeholders = re.compile(r"\{(\w*)\}").findall


def texts_of_template(path: Path) -> Iterator[str]:
    """What a template translates."""
    tree = Environment().parse(path.read_text(encoding="utf-8"))
    for _, _, texts in extract_from_ast(tree, ["_"], babel_style=False):
        assert isinstance(texts, tuple)
        yield str(texts[0])


def nodes_of(code: str) -> Iterator[ast.AST]:
    """Every syntax node of a module."""
    return ast.walk(ast.parse(code))


def texts_of_module(path: Path) -> Iterator[str]:
    """The texts that a module marks with `N_`."""
    code = path.read_text(encoding="utf-8")
    for node in nodes_of(code) if has_marks(code) else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("N_", "_"):
            yield ast.literal_eval(node.args[0])


def sentences_of_module(path: Path) -> Iterator[str]:
    """A module's constants that are sentences."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str) and text.endswith("."):
                yield text


@cache
def list_texts() -> dict[str, str]:
    """Each text that pages show, with its file."""
    found: dict[str, str] = {}
    for site in SITES:
        for path in sorted((SOURCE / site / "templates").rglob("*.html")):
            found.update(dict.fromkeys(texts_of_template(path), f"{site}/{path.name}"))
        for path in sorted((SOURCE / site).rglob("*.py")):
            found.update(dict.fromkeys(texts_of_module(path), f"{site}/{path.name}"))
    for name in TRANSLATED_MODULES:
        sentences = sentences_of_module(SOURCE / "sub_users" / f"{name}.py")
        found.update(dict.fromkeys(sentences, f"sub_users/{name}.py"))
    return found


def test_every_text_has_its_chinese() -> None:
    lacking = [f"{where}: {text}" for text, where in list_texts().items() if text not in read_words()]
    assert len(list_texts()) > 1000
    assert not lacking, "\n".join(lacking)


def test_no_chinese_is_left_over() -> None:
    unmarked = [text for text in read_words() if text not in list_texts()]
    # Reading the syntax of every module would take seconds.
    beginnings = {f'"{text[:20]}' + '"' * (len(text) < 20) for text in unmarked}
    modules = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    said = {
        node.value
        for path, code in modules.items()
        if any(beginning in code for beginning in beginnings)
        for node in nodes_of(code)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    left = [text for text in unmarked if text not in said]
    assert not left, "\n".join(left)


def is_alike(english: str, chinese: str) -> bool:
    """Whether a translation exists and has the placeholders of its text."""
    same = sorted(find_placeholders(chinese)) == sorted(find_placeholders(english))
    return same and chinese.strip() == chinese != ""


def test_both_languages_have_the_same_placeholders() -> None:
    different = [english for english, chinese in read_words().items() if not is_alike(english, chinese)]
    assert not different, "\n".join(different)


TERMS = {
    r"hot wallets?": "热钱包",
    r"cold wallets?": "冷钱包",
    r"withdrawals?": "提现",
    r"deposits?": "充值",
    r"reconciliation": "对账",
    r"adjustments?": "调账",
    r"callbacks?": "回调",
    r"sub-users?": "子用户",
    r"merchants?": "商户",
    r"frozen": "冻结",
    r"thaw(?:ed)?": "解冻",
    r"sweeps?": "归集",
    r"screening": "筛查",
    r"payouts?": "付款",
    r"proposals?": "提议",
    r"PINs?": "安全密码",
    r"second factor": "第二重验证",
    r"recovery codes?": "恢复码",
    r"invoices?": "账单",
    r"statements?": "对账单",
    r"signer": "签名器",
    r"refund(?:ed|s)?": "退款",
    r"allow-list": "白名单",
    r"sandbox": "沙盒",
    r"audit log": "审计日志",
}
"""The field's terms, as patterns of English words, and the only Chinese of each."""
OTHER_WORDS = (
    "账本",
    "私密值",
    "暂扣",
    "暂缓",
    "出款",
    "第二因素",
    "签名程序",
    "主币",
    "禁用",
    "冷资金",
    "矿工费",
    "应答",
)
"""Words that were once beside those of the table, or beside 账簿, 签名密钥, 暂挂, 原生币, 停用, 网络费,
响应.
"""
strip_code = re.compile(r"`[^`]*`|\{\w*\}|\(#[^)]*\)|merchant-wallet [a-z ]+").sub


def list_other_terms(english: str, chinese: str) -> list[str]:
    """The terms of a text that its Chinese calls otherwise."""
    text = strip_code("", english)
    return [
        term for name, term in TERMS.items() if re.search(rf"(?i)\b{name}\b", text) and term not in chinese
    ]


def test_a_term_has_one_chinese_word_in_all_texts() -> None:
    wrong = [
        f"{english}: {chinese} ({', '.join(terms)})"
        for english, chinese in read_words().items()
        if (terms := list_other_terms(english, chinese) + [one for one in OTHER_WORDS if one in chinese])
    ]
    assert not wrong, "\n".join(wrong)
    assert list_other_terms("Thaw the payout of `withdrawal`", "恢复出款") == ["解冻", "付款"]


def test_different_placeholders_would_be_found() -> None:
    assert is_alike("{a} of {b}", "{b}之{a}")
    assert not is_alike("{a} of {b}", "{a}")
    assert not is_alike("{a}", "{a} ")
    assert not is_alike("Nothing", "")


def test_a_text_without_chinese_would_be_found(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('{{ _("Nobody translated {this}", this=1) }}{% if _("Nor that") %}{% endif %}', "utf-8")
    module = tmp_path / "page.py"
    module.write_text('SAID = {1: N_("Nor "\n "this")}\nRULE: Final = "Nor this one."\n', "utf-8")
    assert list(texts_of_template(page)) == ["Nobody translated {this}", "Nor that"]
    assert list(texts_of_module(module)) == ["Nor this"]
    assert list(sentences_of_module(module)) == ["Nor this one."]
