"""A page for each code, from `base/codes` and from the causes and remedies in `docs/site/codes.toml`.

Rules: which operations refuse with a code is read from the reference ("Refused with …"). The texts have both
languages; a test holds that every code has all of them.
"""

import re
import tomllib
from functools import cache
from typing import Final, NamedTuple

from scripts.site.plan import OPERATIONS, Language
from scripts.site.reference import find, split
from scripts.site.texts import DOCS, read, read_block

from merchant_wallet.base.codes import CODES, Retry

CHINESE_RETRIES: Final[dict[Retry, str]] = {
    "no retry": "无需重试",
    "never": "不可，同样的请求不会成功",
    "later": "稍后",
    "new timestamp": "换新的 timestamp",
    "new nonceStr": "换新的 nonceStr",
    "after the sub-user acts": "等子用户操作之后",
    "after funding": "等余额补足之后",
    "after Retry-After": "等待 Retry-After 之后",
    "same mcOrderId": "用相同的 mcOrderId",
}


class CodeText(NamedTuple):
    """What `codes.toml` says of a code."""

    code: int
    meaning_zh: str
    causes_en: list[str]
    causes_zh: list[str]
    todo_en: str
    todo_zh: str


@cache
def list_codes() -> tuple[CodeText, ...]:
    """The texts of every code, in the order of the code table. Raises KeyError."""
    texts = tomllib.loads((DOCS / "site" / "codes.toml").read_text(encoding="utf-8"))
    return tuple(CodeText(code=code, **texts[str(code)]) for code in CODES)


@cache
def find_operations(code: int) -> tuple[str, ...]:
    """The operations whose section says that they refuse with a code."""
    sections = split(read("docs/integrating.md"))
    found = []
    for name, _, _ in OPERATIONS:
        text = "".join(section.body for section in find(sections, name.lower()))
        said = " ".join(re.findall(r"Refused\s+with(?:.|\n)*?\.(?:\s|$)", text))
        if str(code) in said:
            found.append(name)
    return tuple(found)


def find_example(code: int) -> str:
    """A printed refusal with a code, or an empty text."""
    answers = re.findall(r"```json\n.*?\n```", read_block("refusals"), re.DOTALL)
    return next((answer for answer in answers if f'"code":{code},' in answer), "")


def write_page(text: CodeText, language: Language) -> str:
    """The page of one code."""
    row = CODES[text.code]
    zh = language == "zh"
    words = _CHINESE if zh else _ENGLISH
    operations = find_operations(row.code)
    linked = "、".join if zh else ", ".join
    lines = [
        f"# {row.code}",
        "",
        f"**{text.meaning_zh}。**" if zh else f"**{_begin(row.meaning)}.**",
        "",
        f"| {words['name']} | {words['retry']} | {words['status']} |",
        "| --- | --- | --- |",
        f"| `{row.name}` | {CHINESE_RETRIES[row.retry] if zh else row.retry} | {row.http_status} |",
        "",
    ]
    if causes := text.causes_zh if zh else text.causes_en:
        lines += [f"## {words['causes']} {{#causes}}", "", *(f"- {cause}" for cause in causes), ""]
    lines += [f"## {words['todo']} {{#what-to-do}}", "", text.todo_zh if zh else text.todo_en, ""]
    if operations:
        names = linked(f"[{name}](../operations/{name}.md)" for name in operations)
        lines += [f"## {words['operations']} {{#operations}}", "", names, ""]
    if example := find_example(row.code):
        lines += [f"## {words['example']} {{#example}}", "", example, ""]
    return "\n".join([*lines, words["back"]])


def _begin(meaning: str) -> str:
    """A meaning as a sentence. A field's name at its beginning stays as it is."""
    first, _, rest = meaning.partition(" ")
    return f"`{first}` {rest}" if first in ("sign", "timestamp") else meaning[0].upper() + meaning[1:]


_ENGLISH: Final = {
    "name": "Name",
    "retry": "Ask again",
    "status": "HTTP status",
    "causes": "Usual causes",
    "todo": "What to do",
    "operations": "Operations that refuse with it",
    "example": "Example",
    "back": "[All codes](index.md) · [Idempotency and retries](../reliability/idempotency.md)",
}
_CHINESE: Final = {
    "name": "名称",
    "retry": "能否重试",
    "status": "HTTP 状态",
    "causes": "常见原因",
    "todo": "如何处理",
    "operations": "会返回此码的接口",
    "example": "示例",
    "back": "[全部返回码](index.md) · [幂等与重试](../reliability/idempotency.md)",
}
