"""The pages of each client: the quick start, which is its own example cut at its `docs:begin` marks, and its
README.

Rules: nothing here is code that only the page has. The programs are the clients' examples, how to install
is what the client's README says. A test types every command of these pages in an empty folder.
"""

import re
from typing import Final, NamedTuple

from scripts.site.links_between import link_readme
from scripts.site.packages import check_names, clean
from scripts.site.plan import Language
from scripts.site.reference import find, split
from scripts.site.texts import WRITTEN, read

_OF_THE_REPOSITORY: Final = ("tests", "developing")
"""Sections of a README for those who change the client."""
_BLOCK: Final = re.compile(r"^```\w+\n.*?^```$", re.S | re.M)


class Client(NamedTuple):
    """A client: its folder, its example, and the name of its language in a code block."""

    page: str
    name: str
    folder: str
    example: str
    fence: str

    @property
    def readme(self) -> str:
        """The client's README, which says how to install it and how to run the example."""
        return f"{self.folder}/README.md"


CLIENTS: Final = (
    Client("python", "Python", "client", "examples/quickstart.py", "python"),
    Client("typescript", "TypeScript", "clients/typescript", "examples/quickstart.mjs", "javascript"),
    Client("php", "PHP", "clients/php", "examples/quickstart.php", "php"),
    Client("go", "Go", "clients/go", "examples/quickstart/main.go", "go"),
    Client("java", "Java", "clients/java", "examples/Quickstart.java", "java"),
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
        "Look the user up, then debit the wallet. `mcOrderId` is your own id: store it before you send. "
        "It has at most 64 characters. `extUserId` has at most 20, so a UUID is too long for it.",
        "先查询子用户，再从其钱包扣款。`mcOrderId` 是商户自己的编号，发送前先存入数据库，最长 64 个字符。"
        "`extUserId` 最长 20 个字符，放不下 UUID。",
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
        "The amount is on hold at once. What became of it comes as a callback. Here `mcOrderId` has at most "
        "20 characters, so a UUID is too long.\n\n"
        "`127.0.0.1` works only if the sandbox runs on the same machine. Otherwise give any `https://` "
        "address of yours and let the [command line](../command-line.md#callbacks-on-your-own-machine) "
        "bring the callbacks to this program.",
        "金额立即冻结，结果通过回调通知。这里的 `mcOrderId` 最长 20 个字符，放不下 UUID。\n\n"
        "只有沙盒运行在同一台机器上时，`127.0.0.1` 才能收到回调。否则请填写自己的任意 `https://` 地址，"
        "再用[命令行工具](../command-line.md#callbacks-on-your-own-machine)把回调带到这个程序。",
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
    text = read(f"{client.folder}/{client.example}")
    lines = [f"# {client.name}", "", _INTRO[language].format(name=client.name, page=client.page), ""]
    lines += [f"## {'安装' if zh else 'Install'} {{#install}}", "", show_installing(client, language), ""]
    lines += _show_running(client, zh)
    for part, (english, chinese, words, chinese_words) in PARTS.items():
        found = re.search(
            rf"^[^\n]*docs:begin {part}\b[^\n]*\n(.*?)^[^\n]*docs:end {part}\b", text, re.S | re.M
        )
        if found is None:
            raise LookupError(f"{client.folder}/{client.example} has no part {part}")
        lines += [f"## {chinese if zh else english} {{#{part}}}", "", chinese_words if zh else words, ""]
        lines += [_fence(client.fence, _dedent(found[1])), ""]
    head = "完整程序" if zh else "The whole program"
    lines += [f"## {head} {{#program}}", "", _WHOLE[language], ""]
    lines += [_fence(client.fence, clean(text).strip("\n")), "", _NEXT[language].format(page=client.page)]
    page = "\n".join(lines)
    check_names(page, f"quick-start/{client.page}")
    return page


def find_shown(path: str) -> Client | None:
    """The client whose README a path shows."""
    return next((client for client in CLIENTS if path == f"clients/{client.page}"), None)


def write_client(client: Client) -> str:
    """The page about everything that a client does: its README, with the program left to the quick start."""
    page, program = f"clients/{client.page}", f"../quick-start/{client.page}.md"
    parts = []
    for section in split(read(client.readme)):
        body = section.body
        if section.anchor == "quick-start":
            body = f"\n[The quick start]({program}) shows and runs a whole program.\n\n"
        elif section.anchor not in _OF_THE_REPOSITORY:
            body = link_readme(re.sub(r"^<!-- .*-->\n", "", body, flags=re.M), page, client.folder)
        else:
            continue
        parts.append(section._replace(body=body).write())
    text = "".join(parts)
    check_names(text, page)
    return text


def show_installing(client: Client, language: Language) -> str:
    """The README's section about installing; in Chinese its blocks between Chinese sentences."""
    [section, *_] = find(split(read(client.readme)), "installing")
    if language == "en":
        return link_readme(section.body, f"quick-start/{client.page}", client.folder).strip("\n")
    blocks = _BLOCK.findall(section.body)
    words = (WRITTEN / "zh" / "install" / f"{client.page}.md").read_text(encoding="utf-8").strip("\n")
    places = words.split("<!-- block -->")
    if len(places) != len(blocks) + 1:
        raise LookupError(
            f"docs/site/zh/install/{client.page}.md has {len(places) - 1} blocks, "
            f"and {client.readme} has {len(blocks)}"
        )
    return "".join(place + block for place, block in zip(places, [*blocks, ""], strict=True))


def _show_running(client: Client, zh: bool) -> list[str]:
    """How to run the example where the client was installed, with the environment of the quick start."""
    [section, *_] = find(split(read(client.readme)), "quick-start")
    found = re.search(r"^```sh\n.*?^```$", section.body, re.S | re.M)
    if found is None:
        raise LookupError(f"{client.readme} does not say how to run its quick start")
    head = "运行示例" if zh else "Run the example"
    return [f"## {head} {{#run}}", "", _RUN["zh" if zh else "en"], "", found[0], ""]


def _fence(language: str, code: str) -> str:
    return f"```{language}\n{code.rstrip()}\n```"


def _dedent(code: str) -> str:
    lines = code.splitlines()
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    cut = min(indents, default=0)
    return "\n".join(line[cut:] for line in lines)


_INTRO: Final[dict[Language, str]] = {
    "en": "Take a payment, handle a refusal, pay out and receive the callback with the {name} client. "
    "You need a sandbox key, and its values in the environment: see [quick start](index.md). "
    "Everything else that the client does is on [its own page](../clients/{page}.md).",
    "zh": "用 {name} 客户端完成收款、处理拒绝、提现并接收回调。需要一个沙盒密钥，并把它的几个值放进环境变量，"
    "见[快速开始](index.md)。客户端的其他功能见[它自己的页面](../clients/{page}.md)。",
}
_RUN: Final[dict[Language, str]] = {
    "en": "In the same folder, with the environment of the [quick start](index.md):",
    "zh": "在同一个文件夹中，先按[快速开始](index.md)设置环境变量：",
}
_WHOLE: Final[dict[Language, str]] = {
    "en": "This is the file that you loaded above. The tests run it against a real service.",
    "zh": "就是上面下载的文件，测试会用真实服务运行它。",
}
_NEXT: Final[dict[Language, str]] = {
    "en": "**Next:** read [what the client does after a lost answer, and its options](../clients/{page}.md), "
    "play failures in the [sandbox](../sandbox.md), read [what to do after a timeout]"
    "(../reliability/idempotency.md), then the [check list](../going-live.md).",
    "zh": "**下一步：**了解[丢失响应之后客户端会做什么，以及其他选项](../clients/{page}.md)，"
    "在[沙盒](../sandbox.md)中演练失败，阅读[超时之后怎么办](../reliability/idempotency.md)，再过一遍[上线检查清单](../going-live.md)。",
}
