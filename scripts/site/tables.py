"""The tables that pages include by name, made from the code's own tables and from `docs/site/codes.toml`."""

from collections.abc import Callable, Sequence
from typing import Final

from scripts.site.codes import CHINESE_RETRIES, list_codes
from scripts.site.links_between import link
from scripts.site.packages import hash_of, packages
from scripts.site.plan import OPERATIONS, Language
from scripts.site.texts import read_block

from merchant_wallet.base.codes import CODES


def make(name: str, language: Language, path: str) -> str:
    """A table as Markdown. Raises LookupError for an unknown name."""
    makers: dict[str, Callable[[Language, str], str]] = {
        "codes": _show_codes,
        "operations": _show_operations,
        "packages": _show_packages,
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


def _show_packages(language: Language, path: str) -> str:
    """The files below `/docs/clients`, which are there once for both languages."""
    zh = language == "zh"
    heads = ("文件", "字节数", "SHA-256") if zh else ("File", "Bytes", "SHA-256")
    folder = "../../clients/" if zh else ""
    rows = [
        (f'<a href="{folder}{name}" download>{name}</a>', f"{len(data):,}", f"`{hash_of(data)}`")
        for name, data in packages().items()
    ]
    return write_table(heads, rows)


_CHINESE_BEHAVIOUR: Final = {
    "the order waits for approval, whatever its amount, and then for its transfer: `advance` leads it on": (
        "无论金额大小，订单都等待审批，之后等待转账：由 `advance` 推进"
    ),
    "the transfer never becomes final: the order stays in 1 until `advance` or `fail`": (
        "转账始终不会最终确认：订单停在 1，直到 `advance` 或 `fail`"
    ),
    "screening holds the order, and nothing is signed: it stays in 1 until `advance` or `fail`": (
        "风险筛查扣住订单，什么都不签名：订单停在 1，直到 `advance` 或 `fail`"
    ),
    "screening refuses the order before anything is signed: it goes 1, 3, 6 and the money is back": (
        "风险筛查在签名之前拒绝订单：订单依次为 1、3、6，资金退回"
    ),
    "the order is paid, like one to any other address": "正常付款，与其他地址相同",
    "the transfer fails for good, and the order stays in 3 until `advance` lets it be refunded": (
        "转账彻底失败，订单停在 3，直到 `advance` 使其退款"
    ),
    "the order is cancelled at once; its answer still says 0": "订单立即取消；创建响应仍为 0",
    "nobody approves the order: it expires after about a second": "无人批准，约一秒后过期",
    "the transfer fails for good: the order goes 1, 3, 6 and the money is back": (
        "转账彻底失败：订单依次为 1、3、6，资金退回"
    ),
    "the same": "同上",
    "the transfer takes a minute to become final": "转账一分钟后才最终确认",
}
_CHINESE_HEADS: Final = ("ERC20 与 BEP20 地址", "TRC20 地址", "txnStatus", "效果")


def _show_sandbox_addresses(language: Language, path: str) -> str:
    """The recipients. Raises KeyError for a behaviour that has no Chinese yet."""
    table = read_block("sandbox addresses")
    if language == "en":
        return table
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]
    return write_table(_CHINESE_HEADS, [(*row[:-1], _CHINESE_BEHAVIOUR[row[-1]]) for row in rows])
