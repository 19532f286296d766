"""The pictures of a transfer, a withdrawal and a deposit, for those who run or change the service. Pure.

Rules:
- Arrows between states are those of the program's own tables. A step without an arrow, or an arrow without a
  step, ends the build.
- The site shows them in its pages. `docs/images` has the same pictures as files, which a forge shows.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from scripts.site.svg import Arrow, Box, Picture, Text

from merchant_wallet.book.rules.withdrawals import LEGAL_STEPS
from merchant_wallet.callbacks import callback_states
from merchant_wallet.deposits import deposit_states
from merchant_wallet.withdrawals import payment_states
from merchant_wallet.withdrawals.payment_states import Action

FINAL: Final = "d-final"
GOOD: Final = "d-good"
BAD: Final = "d-bad"
ON_LINE: Final = "d-small d-on-line"
Step = tuple[str, str]


class StepNotDrawn(LookupError):
    """The tables have a step that a picture lacks, or the other way round. The text names them."""


def _compare(drawn: Iterable[Step], steps: Iterable[Step]) -> None:
    differing = set(drawn) ^ {step for step in steps if step[0] != step[1]}
    if differing:
        raise StepNotDrawn(", ".join(f"{one} to {other}" for one, other in sorted(differing)))


def draw_transfer() -> Picture:
    """A transfer between a merchant and a sub-user, from the request to the answer."""
    shop, web, database = 80, 320, 560
    parts: list[Box | Arrow | Text] = [
        Box(20, 10, 120, 44, ("Merchant",)),
        Box(240, 10, 160, 44, ("Web process",)),
        Box(500, 10, 120, 44, ("PostgreSQL",), "d-soft"),
        *(Arrow(((x, 56), (x, 400)), kind="d-life") for x in (shop, web, database)),
        Arrow(((shop, 86), (web, 86)), "signed request", (200, 74)),
        Text(web, 112, "gate: key, source, time, signature, rate", ON_LINE),
        Text(web, 136, "queue of the merchant's book", ON_LINE),
        Arrow(((web, 174), (database, 174)), "read what is not cached", (440, 162)),
        Text(web, 204, "rules judge each command on a draft, without I/O", ON_LINE),
        Arrow(((web, 248), (database, 248)), "BEGIN, claim, write, COMMIT", (440, 236)),
        Text(632, 274, "only books that have not changed", ON_LINE, "end"),
        Arrow(((database, 304), (web, 304)), "committed", (440, 292)),
        Text(web, 330, "a book that has changed: read and judge again", ON_LINE),
        Arrow(((web, 372), (shop, 372)), "signed answer", (200, 360)),
    ]
    return Picture(
        "flow-transfer",
        "A transfer: judged in memory, written with other books in one transaction, answered after commit",
        "The merchant sends a signed request. The web process checks it, queues it, judges it, and writes it "
        "together with commands of other books. After the commit it sends the signed answer.",
        640,
        412,
        parts,
    )


_ORDER: Final[Mapping[int, Box]] = {
    0: Box(24, 48, 110, 40, ("0 accepted",)),
    1: Box(208, 48, 110, 40, ("1 being paid",)),
    2: Box(208, 112, 110, 40, ("2 paid",), GOOD),
    3: Box(378, 48, 104, 40, ("3 failed",), BAD),
    4: Box(20, 108, 84, 46, ("4", "cancelled"), FINAL),
    5: Box(112, 108, 76, 46, ("5", "expired"), FINAL),
    6: Box(508, 48, 110, 40, ("6 refunded",), FINAL),
}
_ORDER_STEPS: Final = {
    (0, 1): Arrow(((134, 68), (206, 68)), "approved", (170, 58)),
    (0, 4): Arrow(((58, 88), (58, 106))),
    (0, 5): Arrow(((124, 88), (124, 106))),
    (1, 2): Arrow(((263, 88), (263, 110)), "final on the chain", (272, 100), GOOD, "start"),
    (1, 3): Arrow(((318, 68), (376, 68)), "proof", (347, 58), BAD),
    (3, 6): Arrow(((482, 68), (506, 68))),
}
_ACTIONS: Final[Mapping[str, Box]] = {
    "check": Box(24, 224, 84, 42, ("check",)),
    "reserve": Box(126, 224, 84, 42, ("reserve",)),
    "sign": Box(228, 224, 84, 42, ("sign",)),
    "store": Box(330, 224, 84, 42, ("store",)),
    "send": Box(432, 224, 84, 42, ("send",)),
    "judge": Box(534, 224, 84, 42, ("judge",)),
    "release": Box(126, 300, 84, 42, ("release",)),
    "check again": Box(322, 300, 100, 42, ("check again",)),
}
_ACTION_NAMES: Final = {
    Action.CHECK_PAYABLE: "check",
    Action.RESERVE: "reserve",
    Action.SIGN: "sign",
    Action.STORE: "store",
    Action.SEND: "send",
    Action.JUDGE: "judge",
    Action.RELEASE: "release",
    Action.CHECK_STOPS: "check again",
    Action.CHECK_REBUILD: "check again",
}
_ACTION_STEPS: Final[Mapping[Step, Arrow]] = {
    ("check", "reserve"): Arrow(((108, 245), (124, 245))),
    ("reserve", "sign"): Arrow(((210, 245), (226, 245))),
    ("sign", "store"): Arrow(((312, 245), (328, 245))),
    ("store", "send"): Arrow(((414, 245), (430, 245))),
    ("send", "judge"): Arrow(((516, 245), (532, 245))),
    ("judge", "send"): Arrow(((560, 224), (560, 208), (490, 208), (490, 222)), "again", (525, 198)),
    ("check", "sign"): Arrow(((66, 224), (66, 208), (262, 208), (262, 222)), "already reserved", (164, 198)),
    ("check", "release"): Arrow(((66, 266), (66, 321), (124, 321)), "other wallet", (72, 287), "", "start"),
    ("release", "reserve"): Arrow(((168, 300), (168, 268))),
    ("sign", "release"): Arrow(((250, 266), (250, 321), (212, 321))),
    ("send", "check again"): Arrow(
        ((474, 266), (474, 312), (424, 312)), "refused, stuck", (468, 288), "", "end"
    ),
    ("judge", "check again"): Arrow(((576, 266), (576, 330), (424, 330)), "stuck, expired", (500, 342)),
    ("check again", "sign"): Arrow(((322, 312), (290, 312), (290, 268)), "replace", (296, 290), "", "start"),
    ("check again", "check"): Arrow(
        ((372, 342), (372, 360), (40, 360), (40, 268)), "all that was signed is void", (180, 350)
    ),
}
_ENDS: Final = (
    Box(24, 402, 136, 50, ("paid", "order to 2"), GOOD),
    Box(177, 402, 136, 50, ("proven unpaid", "order to 3"), BAD),
    Box(330, 402, 136, 50, ("obstacle, error", "order stays in 1"), FINAL),
    Box(483, 402, 136, 50, ("not the order", "frozen"), BAD),
)
_CALLBACK: Final[Mapping[str, Box]] = {
    "due": Box(254, 520, 120, 42, ("due",)),
    "delivered": Box(24, 520, 120, 42, ("delivered",), GOOD),
    "dead_letter": Box(484, 520, 134, 42, ("dead letter",), BAD),
    "paused": Box(254, 602, 120, 42, ("paused",), FINAL),
}
_CALLBACK_STEPS: Final[Mapping[Step, Arrow]] = {
    ("due", "delivered"): Arrow(((254, 532), (146, 532)), "success", (200, 521)),
    ("delivered", "due"): Arrow(((144, 550), (252, 550)), "sent again", (198, 562)),
    ("due", "dead_letter"): Arrow(((374, 532), (482, 532)), "last retry failed", (428, 521)),
    ("dead_letter", "due"): Arrow(((484, 550), (376, 550)), "sent again", (430, 562)),
    ("due", "paused"): Arrow(((300, 562), (300, 600)), "paused", (292, 581), "", "end"),
    ("paused", "due"): Arrow(((328, 602), (328, 564)), "resumed", (336, 581), "", "start"),
    ("paused", "delivered"): Arrow(((254, 632), (60, 632), (60, 564)), "late success", (150, 621)),
    ("dead_letter", "delivered"): Arrow(
        ((550, 562), (550, 654), (40, 654), (40, 564)), "late success", (450, 643)
    ),
}


def draw_withdrawal() -> Picture:
    """The three state machines of a withdrawal, in one picture."""
    _compare(
        ((str(one), str(other)) for one, other in _ORDER_STEPS),
        ((str(one), str(other)) for one, other in LEGAL_STEPS),
    )
    _compare(_ACTION_STEPS, _list_action_steps())
    _compare(_CALLBACK_STEPS, _list_steps(callback_states.STEPS))
    parts: list[Box | Arrow | Text] = [
        Box(10, 10, 620, 152, (), "d-frame"),
        Text(24, 30, "The order, in the merchant's book", "d-label", "start"),
        *_ORDER.values(),
        *_ORDER_STEPS.values(),
        Arrow(
            ((320, 162), (320, 180)), "in status 1: attempts, one after the other", (330, 171), "", "start"
        ),
        Box(10, 182, 620, 282, (), "d-frame"),
        Text(24, 388, "An attempt to pay, by the payer, and how it ends", "d-label", "start"),
        *_ACTIONS.values(),
        *_ACTION_STEPS.values(),
        *_ENDS,
        Arrow(((320, 464), (320, 482)), "each status from 2 on: its callback", (330, 473), "", "start"),
        Box(10, 484, 620, 182, (), "d-frame"),
        Text(24, 504, "A callback, by its sender", "d-label", "start"),
        *_CALLBACK.values(),
        *_CALLBACK_STEPS.values(),
    ]
    return Picture(
        "flow-withdrawal",
        "A withdrawal: the order, an attempt to pay it, and the callback of each status",
        "Above the statuses of an order, in the middle the actions of an attempt to pay it with its four "
        "ends, below the states of a callback.",
        640,
        676,
        parts,
    )


_DEPOSIT: Final[Mapping[str, Box]] = {
    "seen": Box(36, 196, 110, 42, ("seen",)),
    "undone": Box(36, 310, 110, 42, ("undone",)),
    "pending": Box(270, 196, 110, 42, ("pending",)),
    "dust": Box(270, 262, 110, 42, ("dust",), FINAL),
    "held": Box(270, 328, 110, 42, ("held",), BAD),
    "credited": Box(500, 196, 110, 42, ("credited",), GOOD),
    "dropped": Box(500, 328, 110, 42, ("dropped",), FINAL),
}
_UNSETTLED: Final = "unsettled"
_DEPOSIT_STEPS: Final[Mapping[Step, Arrow]] = {
    ("seen", "undone"): Arrow(((46, 238), (46, 308)), "reorganised", (91, 274)),
    ("undone", "seen"): Arrow(((138, 310), (138, 240))),
    (_UNSETTLED, "pending"): Arrow(((166, 217), (268, 217)), "final", (217, 206)),
    (_UNSETTLED, "dust"): Arrow(((166, 283), (268, 283)), "too small", (217, 272)),
    (_UNSETTLED, "held"): Arrow(((166, 349), (268, 349)), "in doubt", (217, 338)),
    ("dust", "pending"): Arrow(((325, 262), (325, 240)), "adds up", (333, 251), "", "start"),
    ("dust", "held"): Arrow(((325, 304), (325, 326))),
    ("pending", "held"): Arrow(
        ((380, 230), (412, 230), (412, 340), (382, 340)), "screening", (406, 316), "", "end"
    ),
    ("held", "pending"): Arrow(
        ((380, 354), (446, 354), (446, 218), (382, 218)), "released", (454, 290), "", "start"
    ),
    ("held", "dropped"): Arrow(((380, 365), (498, 365)), "a person drops it", (440, 384)),
    ("pending", "credited"): Arrow(((380, 205), (498, 205)), "credited", (440, 194), GOOD),
}


def draw_deposit() -> Picture:
    """A deposit: the four commits on its way, and its states."""
    _compare(_DEPOSIT_STEPS, _list_deposit_steps())
    commits = (
        ("Watcher", "home: cursor,", "transfer"),
        ("Intake", "cell: position,", "deposit"),
        ("Crediting", "screening, then", "home: its block"),
        ("Book", "entry, credit,", "callback"),
    )
    places = (16, 174, 332, 490)
    parts: list[Box | Arrow | Text] = [
        *(Box(x, 12, 134, 84, lines, "d-soft") for x, lines in zip(places, commits, strict=True)),
        *(Arrow(((x + 134, 54), (x + 156, 54))) for x in places[:-1]),
        Text(320, 116, "Each is a commit of its own, and may be repeated.", "d-small"),
        Box(10, 136, 620, 260, (), "d-frame"),
        Text(24, 156, "The deposit", "d-label", "start"),
        Box(20, 178, 146, 196, (), "d-soft"),
        *_DEPOSIT.values(),
        *_DEPOSIT_STEPS.values(),
    ]
    return Picture(
        "flow-deposit",
        "A deposit: seen in new blocks, settled by final ones, credited once",
        "The watcher records a transfer in home, the intake worker the deposit in its cell, the crediting "
        "worker screens it and names its block in home, and the book credits it. A deposit that is seen or "
        "undone becomes pending, dust or held with a final block. Pending ones are credited.",
        640,
        408,
        parts,
    )


def _list_steps(table: Mapping[Any, Mapping[Any, Any]]) -> set[Step]:
    return {(str(one), str(other)) for one, events in table.items() for other in events.values()}


def _list_action_steps() -> set[Step]:
    """Which action follows which. States that end an attempt have none."""
    names = {state: _ACTION_NAMES[action] for state, action in payment_states.ACTIONS.items()}
    return {
        (names[one], names[other])
        for one, events in payment_states.STEPS.items()
        for other in events.values()
        if other in names
    }


def _list_deposit_steps() -> set[Step]:
    """What is new, seen or undone has the same three ways on, so they are drawn once."""
    unsettled = {None, *deposit_states.UNSETTLED}
    return {
        (_UNSETTLED if one in unsettled and other not in unsettled else str(one), str(other))
        for one, events in deposit_states.STEPS.items()
        for other in events.values()
        if one is not None or other not in unsettled
    }


FLOWS: Final[Mapping[str, Callable[[], Picture]]] = {
    "flow-transfer": draw_transfer,
    "flow-withdrawal": draw_withdrawal,
    "flow-deposit": draw_deposit,
}
