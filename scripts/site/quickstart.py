"""The quick-start page of each language: the client's own example, cut at its `docs:begin` marks.

Rules: nothing here is code that only the page has. The programs are the clients' examples, which the
clients' tests run against a real service; how to install is what the client's README says. Until a client
is there, its page has the printed code of the reference.
"""

import re
from typing import Final, NamedTuple

from scripts.site.plan import Language
from scripts.site.texts import ROOT, read, read_code


class Client(NamedTuple):
    """A client: its folder, its example, the name of its language in a code block, the printed code, and how
    the example is run in its folder.
    """

    page: str
    name: str
    folder: str
    example: str
    fence: str
    printed: str
    run: tuple[str, ...]


CLIENTS: Final = (
    Client(
        "python",
        "Python",
        "client",
        "examples/quickstart.py",
        "python",
        "wallet.py",
        ("python3 -m venv .venv", ".venv/bin/pip install .", ".venv/bin/python examples/quickstart.py"),
    ),
    Client(
        "typescript",
        "TypeScript",
        "clients/typescript",
        "examples/quickstart.mjs",
        "javascript",
        "wallet.mjs",
        ("npm ci", "npm run build", "node examples/quickstart.mjs"),
    ),
    Client(
        "php",
        "PHP",
        "clients/php",
        "examples/quickstart.php",
        "php",
        "wallet.php",
        ("php examples/quickstart.php",),
    ),
    Client(
        "go",
        "Go",
        "clients/go",
        "examples/quickstart/main.go",
        "go",
        "wallet.go",
        ("go run ./examples/quickstart",),
    ),
    Client(
        "java",
        "Java",
        "clients/java",
        "examples/Quickstart.java",
        "java",
        "Wallet.java",
        (
            "javac -encoding UTF-8 -d build/client src/main/java/merchantwallet/*.java",
            "java -cp build/client examples/Quickstart.java",
        ),
    ),
)
PARTS: Final = {
    "connect": (
        "Connect",
        "建立连接",
        "The client signs each request and verifies each answer. Keep one for the whole program.",
        "客户端会为每个请求签名，并验证每个响应。整个程序用一个实例即可。",
    ),
    "payment": (
        "Take a payment",
        "收款",
        "Look the user up, then debit the wallet. `mcOrderId` is your own id: store it before you send.",
        "先查询子用户，再从其钱包扣款。`mcOrderId` 是商户自己的编号，发送前先存入数据库。",
    ),
    "refusal": (
        "Handle a refusal",
        "处理拒绝",
        "A refusal has a [code](../codes/index.md) and a sentence. Nothing has moved. What to do "
        "after a timeout is in "
        "[idempotency](../reliability/idempotency.md).",
        "被拒绝时会得到[返回码](../codes/index.md)和一句说明，资金没有变动。超时之后怎么办，见[幂等与重试](../reliability/idempotency.md)。",
    ),
    "payout": (
        "Pay out",
        "提现",
        "The amount is on hold at once. What became of it comes as a callback.",
        "金额立即冻结，结果通过回调通知。",
    ),
    "callback": (
        "Receive the callback",
        "接收回调",
        "Verify, store `eventId` once, then answer `success`. The same event may come again: see "
        "[order and duplicates](../reliability/callback-order.md).",
        "先验签，再把 `eventId` 存一次，然后回复 `success`。同一事件可能再次到达，"
        "见[回调的顺序与重复](../reliability/callback-order.md)。",
    ),
}
"""The parts of an example, in the order of the page."""


def find_client(path: str) -> Client | None:
    """The client whose page has a path."""
    return next((client for client in CLIENTS if path == f"quick-start/{client.page}"), None)


def write_page(client: Client, language: Language) -> str:
    """The page of a client."""
    zh = language == "zh"
    example = find_example(client)
    if example is None:
        note = (
            "这种语言暂时没有客户端，可以使用下面这段代码。"
            if zh
            else "There is no client for this language yet. This code needs none."
        )
        return f"# {client.name}\n\n{note}\n\n{read_code(client.printed)}\n"
    text = read(example)
    lines = [f"# {client.name}", "", _INTRO[language].format(name=client.name), ""]
    lines += _show_running(client, zh)
    for part, (english, chinese, words, chinese_words) in PARTS.items():
        found = re.search(
            rf"^[^\n]*docs:begin {part}\b[^\n]*\n(.*?)^[^\n]*docs:end {part}\b", text, re.S | re.M
        )
        if found is not None:
            lines += [f"## {chinese if zh else english} {{#{part}}}", "", chinese_words if zh else words, ""]
            lines += [_fence(client.fence, _dedent(found[1])), ""]
    lines += [
        f"## {'完整程序' if zh else 'The whole program'} {{#program}}",
        "",
        _WHOLE[language].format(path=example),
        "",
    ]
    clean = re.sub(r"^[^\n]*docs:(?:begin|end)[^\n]*\n", "", text, flags=re.M)
    lines += [_fence(client.fence, clean.strip("\n")), "", *_show_installing(client, zh), _NEXT[language]]
    return "\n".join(lines)


def find_example(client: Client) -> str | None:
    """The example's path in the repository, or None while there is none."""
    path = f"{client.folder}/{client.example}"
    if (ROOT / path).exists():
        return path
    named = sorted((ROOT / client.folder).glob("examples/**/[Qq]uick[Ss]tart*"))
    files = [each for each in named if each.is_file()]
    return str(files[0].relative_to(ROOT)) if files else None


def _show_running(client: Client, zh: bool) -> list[str]:
    """How to run the example in a clone, with the environment of the quick start."""
    head = "运行示例" if zh else "Run the example"
    where = (
        "在代码仓库的副本中，先按[快速开始](index.md)设置环境变量："
        if zh
        else "In a clone of the repository, with the environment of the [quick start](index.md):"
    )
    commands = "\n".join((f"cd {client.folder}", *client.run))
    return [f"## {head} {{#run}}", "", where, "", _fence("sh", commands), ""]


def _show_installing(client: Client, zh: bool) -> list[str]:
    """What the client's README has in its section about installing, without its sentences."""
    readme = ROOT / client.folder / "README.md"
    if not readme.exists():
        return []
    text = readme.read_text(encoding="utf-8")
    found = re.search(r"^## (?:Install|Installing|Installation|Set-up)\n(.*?)^## ", text, re.S | re.M)
    blocks = (
        re.findall(r"^```(?:sh|bash|console|text|xml|json)\n.*?^```$", found[1], re.S | re.M) if found else []
    )
    if not blocks:
        return []
    head = "装进自己的项目" if zh else "Install it into your project"
    more = "更多见客户端的 `README.md`。" if zh else "The client's `README.md` says more."
    return [f"## {head} {{#install}}", "", "\n\n".join(blocks), "", more, ""]


def _fence(language: str, code: str) -> str:
    return f"```{language}\n{code.rstrip()}\n```"


def _dedent(code: str) -> str:
    lines = code.splitlines()
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    cut = min(indents, default=0)
    return "\n".join(line[cut:] for line in lines)


_INTRO: Final[dict[Language, str]] = {
    "en": "Take a payment, handle a refusal, pay out and receive the callback with the {name} client. "
    "You need a sandbox key: see [quick start](index.md).",
    "zh": "用 {name} 客户端完成收款、处理拒绝、提现并接收回调。需要一个沙盒密钥，见[快速开始](index.md)。",
}
_WHOLE: Final[dict[Language, str]] = {
    "en": "`{path}`. The tests run it against a real service.",
    "zh": "`{path}`，测试会用真实服务运行它。",
}
_NEXT: Final[dict[Language, str]] = {
    "en": "**Next:** play failures in the [sandbox](../sandbox.md), read [what to do after a timeout]"
    "(../reliability/idempotency.md), then the [check list](../going-live.md).",
    "zh": "**下一步：**在[沙盒](../sandbox.md)中演练失败，"
    "阅读[超时之后怎么办](../reliability/idempotency.md)，再过一遍[上线检查清单](../going-live.md)。",
}
