"""The pictures of the concepts: a book, an entry's postings, an order's life, a payment and a retry.

Rules: the steps of an order are those of `LEGAL_STEPS`, so a new step without a place here fails the build.
A picture is at most 640 wide, so that its text can be read on a phone, where it scrolls sideways.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from scripts.site.flows import FLOWS
from scripts.site.plan import Language
from scripts.site.svg import Arrow, Box, Text, picture

from merchant_wallet.book.rules.withdrawals import LEGAL_STEPS

IMAGES: Final = Path(__file__).parents[2] / "docs" / "images"
FINAL: Final = "d-final"
GOOD: Final = "d-good"
BAD: Final = "d-bad"


def draw(name: str, language: Language) -> str:
    """A picture by its name. Raises LookupError."""
    makers: dict[str, Callable[[bool], str]] = {
        "book": _draw_book,
        "postings": _draw_postings,
        "order": _draw_order,
        "payment": _draw_payment,
        "retry": _draw_retry,
        **{flow: partial(_draw_flow, flow) for flow in FLOWS},
    }
    if name not in makers:
        raise LookupError(f"there is no drawing {name}; there are {', '.join(makers)}")
    return makers[name](language == "zh")


def write_flows() -> dict[Path, str]:
    """The pictures that documents show as files, by their paths."""
    return {IMAGES / f"{name}.svg": make().show_file() for name, make in FLOWS.items()}


def _draw_flow(name: str, _zh: bool) -> str:
    """One of the pictures for operators, whose pages are English alone."""
    return FLOWS[name]().show_figure()


def _draw_book(zh: bool) -> str:
    say = _choose(zh)
    parts: list[Box | Arrow | Text] = [
        Box(10, 10, 620, 300, (), "d-frame"),
        Text(
            28,
            36,
            say("Your book: one lock, one journal", "商户账簿：一把锁，一份日记账"),
            "d-label",
            "start",
        ),
        Box(40, 60, 170, 62, (say("Sub-users", "子用户"), say("a wallet each", "每人一个钱包"))),
        Box(40, 210, 170, 62, ("KFB", say("your balance", "商户余额"))),
        Box(250, 210, 150, 62, ("USDT", say("your balance", "商户余额"))),
        Box(440, 210, 165, 62, (say("Hold", "冻结"), say("of unfinished orders", "未完成的订单")), "d-soft"),
        Box(440, 60, 165, 62, (say("Fees", "手续费"), say("the platform's", "归平台所有")), "d-soft"),
        Arrow(((95, 122), (95, 208)), say("debit", "扣款"), (88, 168), anchor="end"),
        Arrow(((155, 210), (155, 124)), say("credit", "付给"), (163, 168), anchor="start"),
        Arrow(((210, 236), (248, 236)), "", (0, 0)),
        Arrow(((250, 250), (212, 250)), "", (0, 0)),
        Text(230, 292, say("exchange", "兑换")),
        Arrow(((400, 234), (438, 234))),
        Arrow(((440, 250), (402, 250))),
        Text(420, 292, say("withdraw, return", "提现，退回")),
        Arrow(((210, 91), (438, 91)), say("fee", "手续费"), (324, 79)),
        Arrow(((522, 210), (522, 124)), say("fee", "手续费"), (530, 176), anchor="start"),
        Arrow(((540, 272), (540, 346)), say("paid on the chain", "链上付款"), (530, 334), GOOD, "end"),
    ]
    title = say("The accounts of one merchant's book", "一个商户账簿中的账户")
    text = say(
        "Debits move money from a sub-user to your KFB balance, exchanges between KFB and USDT, "
        "withdrawals from USDT "
        "to the hold, and from there to the chain.",
        "扣款把钱从子用户转到商户的 KFB 余额；兑换在 KFB 与 USDT 之间进行；提现先从 USDT 转入冻结，"
        "再付到链上。",
    )
    return picture("book", title, text, 640, 356, parts)


def _draw_postings(zh: bool) -> str:
    say = _choose(zh)
    parts: list[Box | Arrow | Text] = [
        Box(10, 10, 620, 232, (), "d-frame"),
        Text(
            28,
            36,
            say("Entry: transferFromUserToMerchant, 40.5 KFB", "分录：transferFromUserToMerchant，40.5 KFB"),
            "d-label",
            "start",
        ),
        Box(40, 100, 150, 70, (say("alice's wallet", "alice 的钱包"), "100 → 59.5")),
        Box(430, 56, 175, 66, (say("your KFB balance", "商户 KFB 余额"), "900 → 940.2975"), GOOD),
        Box(430, 150, 175, 66, (say("fees", "手续费"), "0 → 0.2025"), "d-soft"),
        Arrow(((190, 120), (428, 92)), say("posting 1: 40.2975", "过账 1：40.2975"), (310, 90)),
        Arrow(((190, 150), (428, 180)), say("posting 2: 0.2025", "过账 2：0.2025"), (310, 190)),
    ]
    title = say(
        "One entry with two postings: what leaves one account arrives in another",
        "一笔分录、两笔过账：一个账户转出多少，另一个账户就转入多少",
    )
    text = say(
        "Of 40.5 KFB from alice's wallet, 40.2975 go to your balance and 0.2025 to the fees.",
        "alice 钱包中的 40.5 KFB，40.2975 进入商户余额，0.2025 进入手续费。",
    )
    return picture("postings", title, text, 640, 252, parts)


_PLACES: Final = {
    0: (24, 128),
    1: (246, 128),
    2: (468, 128),
    3: (246, 256),
    4: (24, 12),
    5: (24, 256),
    6: (468, 256),
}
_SIZE: Final = (150, 62)
_STATUSES: Final = {
    0: ("accepted", "on hold", "已受理", "金额已冻结", ""),
    1: ("being paid", "", "付款中", "", ""),
    2: ("paid", "final", "已付款", "终态", GOOD),
    3: ("failed", "still on hold", "已失败", "金额仍冻结", BAD),
    4: ("cancelled", "returned", "已取消", "金额已退回", FINAL),
    5: ("expired", "returned", "已过期", "金额已退回", FINAL),
    6: ("refunded", "returned", "已退款", "金额已退回", FINAL),
}
_STEPS: Final = {
    (0, 1): ("approved", "批准", (209, 147)),
    (0, 4): ("cancelled", "取消", (130, 104)),
    (0, 5): ("not approved in time", "逾期未批准", (106, 228)),
    (1, 2): ("on chain", "链上确认", (432, 147)),
    (1, 3): ("proven: never", "证明无法支付", (328, 228)),
    (3, 6): ("at once", "随即", (432, 275)),
}


def _draw_order(zh: bool) -> str:
    say = _choose(zh)
    parts: list[Box | Arrow | Text] = []
    for step in sorted(LEGAL_STEPS):
        english, chinese, at = _STEPS[step]
        across = step in ((0, 1), (1, 2), (3, 6))
        parts.append(Arrow(_join(*step), say(english, chinese), at, anchor="middle" if across else "start"))
    for status, (x, y) in _PLACES.items():
        english, english_more, chinese, chinese_more, kind = _STATUSES[status]
        lines = (f"{status} · {say(english, chinese)}", say(english_more, chinese_more))
        parts.append(Box(x, y, *_SIZE, tuple(line for line in lines if line), kind))
    title = say(
        "The life of a withdrawal: each status from 2 on has its callback",
        "提现订单的生命周期：从状态 2 起，每个状态都有一次回调",
    )
    text = say(
        "0 goes to 1, 4 or 5; 1 goes to 2 or 3; 3 goes to 6. 2, 4, 5 and 6 are final.",
        "0 可变为 1、4、5；1 可变为 2、3；3 变为 6。2、4、5、6 为终态。",
    )
    return picture("order", title, text, 640, 330, parts)


def _join(one: int, other: int) -> tuple[tuple[float, float], ...]:
    """From the edge of one status' box to the edge of the other's."""
    (x1, y1), (x2, y2), (width, height) = _PLACES[one], _PLACES[other], _SIZE
    if y1 == y2:
        middle = y1 + height / 2
        return ((x1 + width, middle), (x2 - 2, middle))
    side = x1 + width / 2
    return ((side, y1 + height), (side, y2 - 2)) if y2 > y1 else ((side, y1), (side, y2 + height + 2))


def _draw_payment(zh: bool) -> str:
    say = _choose(zh)
    shop, service, chain = 90, 340, 570
    parts: list[Box | Arrow | Text] = [
        Box(20, 10, 140, 44, (say("Your server", "商户服务器"),)),
        Box(260, 10, 160, 44, (say("The wallet service", "钱包服务"),)),
        Box(510, 10, 120, 44, (say("Chain", "区块链"),), "d-soft"),
        *(Arrow(((x, 56), (x, 372)), kind="d-life") for x in (shop, service, chain)),
        *_exchange(
            shop,
            service,
            96,
            "createMerchantWithdrawOrder",
            say("code 200, txnStatus 0", "code 200，txnStatus 0"),
        ),
        Arrow(((service, 186), (chain, 186)), say("transfer", "转账"), (455, 174)),
        Arrow(((chain, 226), (service, 226)), say("final", "最终确认"), (455, 214)),
        *_exchange(
            service,
            shop,
            276,
            say("callback, txnStatus 2", "回调，txnStatus 2"),
            say("HTTP 200, success", "HTTP 200，success"),
        ),
    ]
    title = say("A payout, from the request to the callback", "一笔提现：从请求到回调")
    text = say(
        "You create the order and get status 0. The service pays on the chain. When the payment is "
        "final, it sends the "
        "callback, and you answer success.",
        "创建订单得到状态 0；服务在链上付款；付款最终确认后发送回调，商户回复 success。",
    )
    return picture("payment", title, text, 640, 384, parts)


def _exchange(one: float, other: float, y: float, request: str, answer: str) -> list[Arrow]:
    middle = (one + other) / 2
    return [
        Arrow(((one, y), (other, y)), request, (middle, y - 12)),
        Arrow(((other, y + 40), (one, y + 40)), answer, (middle, y + 28), "d-dashed"),
    ]


def _draw_retry(zh: bool) -> str:
    say = _choose(zh)
    shop, service = 110, 470
    parts: list[Box | Arrow | Text] = [
        Box(30, 10, 160, 44, (say("Your server", "商户服务器"),)),
        Box(380, 10, 180, 44, (say("The wallet service", "钱包服务"),)),
        *(Arrow(((x, 56), (x, 306)), kind="d-life") for x in (shop, service)),
        Arrow(((shop, 96), (service, 96)), "mcOrderId=cart-7, nonceStr=a1…", (290, 84)),
        Arrow(((service, 136), (270, 136)), say("answer is lost", "响应丢失"), (360, 124), BAD),
        Text(250, 141, "✕", "d-cross"),
        Text(shop + 12, 176, say("timeout: outcome unknown", "超时：结果未知"), "d-small", "start"),
        Arrow(((shop, 216), (service, 216)), "mcOrderId=cart-7, nonceStr=b2…", (290, 204)),
        Arrow(
            ((service, 262), (shop, 262)),
            say("the first outcome, moved once", "第一次的结果，资金只动一次"),
            (290, 250),
            GOOD,
        ),
    ]
    title = say("After a timeout: the same order, a new request", "超时之后：同一订单，新的请求")
    text = say(
        "The answer to the first request is lost. The second request has the same mcOrderId and a "
        "new nonceStr, and gets "
        "the first outcome.",
        "第一次请求的响应丢失。第二次请求使用相同的 mcOrderId 和新的 nonceStr，得到第一次的结果。",
    )
    return picture("retry", title, text, 640, 316, parts)


def _choose(zh: bool) -> Callable[[str, str], str]:
    return lambda english, chinese: chinese if zh else english
