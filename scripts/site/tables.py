"""The tables that pages include by name, made from the code's own tables and from `docs/site/codes.toml`."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from scripts.site.codes import CHINESE_RETRIES, list_codes
from scripts.site.links_between import link
from scripts.site.plan import OPERATIONS, Language
from scripts.site.texts import read_block

from merchant_wallet.base.codes import CODES


def make(name: str, language: Language, path: str) -> str:
    """A table as Markdown. Raises LookupError for an unknown name."""
    makers: dict[str, Callable[[Language, str], str]] = {
        "codes": _show_codes,
        "operations": _show_operations,
        "sandbox addresses": _show_sandbox_addresses,
    }
    if name not in makers:
        raise LookupError(f"there is no table {name}; there are {', '.join(makers)}")
    return makers[name](language, path)


def write_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _show_codes(language: Language, path: str) -> str:
    zh = language == "zh"
    heads = ("返回码", "含义", "能否重试") if zh else ("Code", "Meaning", "Ask again")
    rows = []
    for text in list_codes():
        row = CODES[text.code]
        retry = CHINESE_RETRIES[row.retry] if zh else row.retry
        target = link(path, f"codes/{row.code}")
        rows.append((f"[{row.code}]({target})", text.meaning_zh if zh else row.meaning, retry))
    return write_table(heads, rows)


def _show_operations(language: Language, path: str) -> str:
    zh = language == "zh"
    heads = ("接口", "作用") if zh else ("Operation", "What it does")
    rows = [
        (f"[{name}]({link(path, f'operations/{name}')})", chinese if zh else english)
        for name, english, chinese in OPERATIONS
    ]
    return write_table(heads, rows)


_CHINESE_BEHAVIOUR: Final = {
    "the transfer fails for good: the order goes 1, 3, 6 and the money is back": "转账彻底失败："
    "订单依次为 1、3、6，资金退回",
    "the transfer takes a minute to become final": "转账一分钟后才最终确认",
}
_CHINESE_HEADS: Final = {"On ERC20": "ERC20 地址", "On TRC20": "TRC20 地址", "What happens": "效果"}


def _show_sandbox_addresses(language: Language, path: str) -> str:
    table = read_block("sandbox addresses")
    if language == "zh":
        for english, chinese in {**_CHINESE_BEHAVIOUR, **_CHINESE_HEADS}.items():
            table = re.sub(rf"\| {re.escape(english)} (?=\|)", f"| {chinese} ", table)
    return table
