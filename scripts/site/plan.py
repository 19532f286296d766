"""The pages of the site, in the order of its navigation. Pure.

Rules:
- A page is the file `docs/site/LANGUAGE/PATH.md`. Without such a file, an English page is what `sections`
  of the document `source` say, a client's page is its README, and the build makes the rest.
- Both languages have the same paths. A page without a Chinese title is English alone: the operators' pages.
"""

from typing import Final, Literal, NamedTuple

Language = Literal["en", "zh"]
LANGUAGES: Final[tuple[Language, ...]] = ("en", "zh")
INTEGRATING: Final = "integrating.md"


class Page(NamedTuple):
    """One page: its path without `.md`, its title in the navigation, and what it is cut from."""

    path: str
    en: str
    zh: str
    sections: tuple[str, ...] = ()
    source: str = INTEGRATING

    def title(self, language: Language) -> str:
        """The title in the navigation."""
        return self.zh if language == "zh" else self.en


class Part(NamedTuple):
    """A part of the navigation."""

    en: str
    zh: str
    pages: tuple[Page, ...]

    def title(self, language: Language) -> str:
        """The title in the navigation."""
        return self.zh if language == "zh" else self.en

    def list_pages(self, language: Language) -> list[Page]:
        """The pages that a language has."""
        return [page for page in self.pages if page.title(language)]


OPERATIONS: Final = (
    ("transferFromUserToMerchant", "Take from a sub-user", "子用户付给商户"),
    ("transferFromMerchantToUser", "Give to a sub-user", "商户付给子用户"),
    ("createMerchantWithdrawOrder", "Create a withdrawal", "创建提现订单"),
    ("queryOrder", "Query a withdrawal", "查询提现订单"),
    ("getMerchantCustomer", "Look a sub-user up", "查询子用户"),
    ("getMerchantBalance", "Query your balance", "查询商户余额"),
    ("exchange", "Exchange", "兑换"),
    ("getWithdrawFee", "Quote a withdrawal's fee", "查询提现手续费"),
)
"""The operations, in the order of the interface, each with what it does."""

START: Final = Part(
    "Start",
    "开始",
    (
        Page("index", "Overview", "概览"),
        Page("quick-start/index", "Quick start", "快速开始"),
        Page("quick-start/python", "Python", "Python"),
        Page("quick-start/typescript", "TypeScript", "TypeScript"),
        Page("quick-start/php", "PHP", "PHP"),
        Page("quick-start/go", "Go", "Go"),
        Page("quick-start/java", "Java", "Java"),
        Page("sandbox", "Sandbox", "沙盒", ("sandbox",)),
        Page("command-line", "Command line", "命令行工具"),
        Page("going-live", "Going live", "上线检查清单"),
    ),
)
CLIENTS: Final = Part(
    "Clients",
    "客户端",
    (
        Page("clients/index", "The clients", "客户端与下载"),
        Page("clients/python", "Python", "Python"),
        Page("clients/typescript", "TypeScript", "TypeScript"),
        Page("clients/php", "PHP", "PHP"),
        Page("clients/go", "Go", "Go"),
        Page("clients/java", "Java", "Java"),
    ),
)
CONCEPTS: Final = Part(
    "Concepts",
    "概念",
    (
        Page("concepts/book", "Book and postings", "账簿与过账"),
        Page("concepts/orders", "The life of a withdrawal", "提现订单的生命周期"),
        Page("concepts/sub-users", "Sub-users and deposits", "子用户与充值"),
        Page("concepts/wallet-page", "The wallet page", "钱包页面", ("the-wallet-page",)),
    ),
)
REFERENCE: Final = Part(
    "Reference",
    "接口参考",
    (
        Page("reference/transport", "Transport and values", "传输与取值"),
        Page("reference/signing", "Signing", "签名"),
        Page("reference/keys", "Several keys", "多个密钥", ("several-keys",)),
        Page(
            "reference/code", "Signing in five languages", "五种语言的签名代码", ("code-for-five-languages",)
        ),
        Page("operations/index", "Operations", "接口一览"),
        *(Page(f"operations/{name}", name, name, (name.lower(),)) for name, _, _ in OPERATIONS),
        Page("callbacks", "Callbacks", "回调通知", ("callbacks",)),
        Page("reference/deviations", "Deviations", "与规范的差异"),
    ),
)
CODES: Final = Part("Codes", "返回码", (Page("codes/index", "All codes", "全部返回码"),))
"""The build adds a page for each code."""
RELIABILITY: Final = Part(
    "Reliability",
    "可靠性",
    (
        Page("reliability/idempotency", "Idempotency and retries", "幂等与重试"),
        Page("reliability/rate-limits", "Rate limits", "请求频率限制"),
        Page("reliability/limits", "Limits of each operation", "各接口的限额"),
        Page("reliability/callback-order", "Callbacks: order and duplicates", "回调的顺序与重复"),
        Page(
            "reliability/screening",
            "Held payouts and deposits",
            "暂挂的付款与充值",
            ("held-payouts-and-deposits",),
        ),
        Page(
            "reliability/reconciliation",
            "Statements and reconciliation",
            "报表与对账",
            ("statements-and-reconciliation",),
        ),
        Page("reliability/security", "Security", "安全"),
    ),
)
PROMISES: Final = Part(
    "Promises",
    "承诺",
    (
        Page("promises/versioning", "Versions and deprecation", "版本与弃用"),
        Page("promises/codes", "Stability of codes and statuses", "返回码与状态的稳定性"),
        Page("promises/changelog", "Changelog", "更新日志"),
    ),
)
OPERATING: Final = Part(
    "Operating",
    "运维",
    (
        Page("operating/index", "For operators", "给运营方"),
        Page("operating/install", "Install", "", ("install",), "operating.md"),
        Page("operating/first-day", "First day", "", ("first-day",), "operating.md"),
        Page("operating/every-day", "Every day", "", ("every-day",), "operating.md"),
        Page("operating/watch", "Watch", "", ("watch",), "operating.md"),
        Page("operating/upgrade", "Upgrade", "", ("upgrade",), "operating.md"),
        Page("operating/trouble", "Trouble", "", ("trouble",), "operating.md"),
        Page("operating/debugging", "Debugging", "", ("*",), "debugging.md"),
        Page("operating/disaster", "Disaster", "", ("disaster",), "operating.md"),
        Page("operating/growth", "Growth", "", ("growth",), "operating.md"),
        Page("operating/limits", "Limits", "", ("limits-of-this-version",), "operating.md"),
        Page("operating/settings", "Settings", "", ("*",), "settings.md"),
        Page("operating/chains", "Chains", "", ("*",), "chains.md"),
        Page("operating/scaling", "Scaling", "", ("*",), "scaling.md"),
    ),
)
PARTS: Final = (START, CLIENTS, CONCEPTS, REFERENCE, CODES, RELIABILITY, PROMISES, OPERATING)
INTEGRATING_PAGE: Final = Page("integrating", "The whole reference", "旧版参考文档")
"""Where links to `docs/integrating.md` and its headings lead. It is not in the navigation."""


def list_pages(language: Language) -> list[Page]:
    """The pages of a language, without the codes'."""
    return [page for part in PARTS for page in part.list_pages(language)] + [INTEGRATING_PAGE]
