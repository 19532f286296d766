"""Every cause that payouts, deposits and screening record has a row, so a Chinese page says it in Chinese.

The causes are read from the modules' own code: texts that are given to the classes and functions named
below, with 7 for each value.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import merchant_wallet
from merchant_wallet.deposits.crediting import WAITS
from merchant_wallet.screening.verdicts import RULES, Reason, Source, Verdict, describe
from merchant_wallet.web.causes import CAUSES, find_row, say_cause
from merchant_wallet.web.languages import Language, translate

SOURCE = Path(merchant_wallet.__file__).parent
PLACES = (
    "withdrawals",
    "screening",
    "processes/screening.py",
    "chains/issuer.py",
    "chains/sandbox",
    "chains/evm",
)
MORE_PLACES = ("chains/tron", "book/rules/approvals.py", "deposits/settlement.py")
TAKERS = {
    "Obstacle": 1,
    **dict.fromkeys(("Unpayable", "ProvenUnpaid", "Expired", "WalletMoved", "PayoutsStopped"), 0),
    **dict.fromkeys(("Held", "Refused", "_NoAnswer", "_give_up", "_freeze"), 0),
}
"""Classes and functions with the place of the cause among their arguments."""
KEYWORDS = ("alert", "wallet_fault")
SPEAKERS = (
    "find_journal_mismatch",
    "find_transfer_mismatch",
    "find_approval_violation",
    "_find_fault",
    "_take_note",
)
"""Functions whose texts are causes."""
OF_SWEEPS = ("sweeps.py", "unsigned.py")
VALUE = "7"


Function = ast.FunctionDef | ast.AsyncFunctionDef


class Scope:
    """The texts that names of a function stand for at a line of it: those of the last assignment before."""

    def __init__(self, functions: Sequence[Function], *roots: ast.AST) -> None:
        nodes = [node for root in roots for node in ast.walk(root)]
        plain = [(one.targets[0], one.value) for one in nodes if isinstance(one, ast.Assign)]
        typed = [(one.target, one.value) for one in nodes if isinstance(one, ast.AnnAssign)]
        found = [
            (name.id, value)
            for name, value in (*plain, *typed)
            if isinstance(name, ast.Name) and value is not None
        ]
        self._found = sorted(found, key=lambda each: each[1].lineno)
        self._functions = functions

    def read(self, node: ast.expr, line: int) -> list[str]:
        """All texts that an expression may be."""
        match node:
            case ast.Constant(value=str() as text):
                return [text]
            case ast.JoinedStr(values=parts):
                return ["".join(each) for each in product(*[self._read_part(part, line) for part in parts])]
            case ast.IfExp(body=body, orelse=other):
                return [*self.read(body, line), *self.read(other, line)]
            case ast.Call(func=ast.Name(id=called)):
                said = [one for each in self._functions if each.name == called for one in ast.walk(each)]
                returned = [
                    one.value for one in said if isinstance(one, ast.Return) and one.value is not None
                ]
                return [text for one in returned for text in self.read(one, one.lineno)] or [VALUE]
            case ast.Name(id=name):
                before = [value for known, value in self._found if known == name and value.lineno < line]
                if before:
                    return self.read(before[-1], before[-1].lineno)
        return [VALUE]

    def _read_part(self, part: ast.expr, line: int) -> list[str]:
        return self.read(part.value if isinstance(part, ast.FormattedValue) else part, line)


def list_files() -> Iterator[Path]:
    for place in (*PLACES, *MORE_PLACES):
        path = SOURCE / place
        yield from [path] if path.suffix else sorted(path.glob("*.py"))


def list_causes() -> Mapping[str, str]:
    """Each cause that the code records, with its place."""
    found: dict[str, str] = {}
    for path in list_files():
        module = ast.parse(path.read_text(encoding="utf-8"))
        functions = [one for one in ast.walk(module) if isinstance(one, Function)]
        names = [one for one in module.body if isinstance(one, ast.Assign | ast.AnnAssign)]
        for function in functions if path.name not in OF_SWEEPS else ():
            scope = Scope(functions, *names, function)
            for node in ast.walk(function):
                for given in find_given(function.name, node):
                    texts = scope.read(given, given.lineno + 1)
                    found.update(dict.fromkeys(texts, f"{path.name}:{given.lineno}"))
    return {text: place for text, place in found.items() if text.strip("7;: ")}


def find_given(function: str, node: ast.AST) -> Iterator[ast.expr]:
    """The expressions of causes in a node."""
    if isinstance(node, ast.Return) and node.value is not None and function in SPEAKERS:
        yield node.value
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        place = TAKERS.get(name)
        if place is not None and len(node.args) > place:
            yield node.args[place]
        yield from [one.value for one in node.keywords if one.arg in KEYWORDS]


def test_each_recorded_cause_has_a_row() -> None:
    causes = list_causes()
    assert len(causes) > 60
    lacking = [f"{place}: {text}" for text, place in causes.items() if find_row(text) is None]
    lacking += [text for text in WAITS.values() if find_row(text) is None]
    assert not lacking, "\n".join(lacking)


def test_a_cause_is_said_in_both_languages_with_its_values() -> None:
    chinese, english = partial(translate, Language.ZH), partial(translate, Language.EN)
    for row in CAUSES:
        names = {name: f"v{place}" for place, name in enumerate(_list_names(row))}
        cause = row.format(**names)
        assert say_cause(cause, english) == cause
        said = say_cause(cause, chinese)
        assert said != cause, row
        assert all(value in said for value in names.values()), row


def _list_names(row: str) -> list[str]:
    return [piece.partition("}")[0] for piece in row.split("{")[1:]]


def test_causes_within_causes_are_said_too_and_foreign_words_stay() -> None:
    say = partial(say_cause, translate=partial(translate, Language.ZH))
    assert say(
        "3 transfers in a row came to nothing: 0xab expired and is in none of the blocks that could hold it"
    ) == ("连续 3 笔转账未生效：0xab 已过期，且不在任何可能包含它的区块中")
    assert say("the hot wallet holds 5 sun, and 2 transactions on the way may burn 9") == (
        "热钱包持有 5 sun，在途的2 笔交易最多可能燃烧 9"
    )
    assert (
        say("the nodes call different blocks final; node one is away")
        == "各节点认定的最终区块不同; node one is away"
    )
    reasons = [Reason(source, Verdict.HOLD, "because") for source in (Source.LIST, Source.HOOK, *RULES)]
    said = say(f"screening 7: {describe(reasons)}")
    assert said.startswith("筛查 7：名单：because; 筛查服务：because; 付款规则")
    assert not any(str(one.source) in said for one in reasons)
    for foreign in ("looks odd to the provider", "", "合规部要求"):
        assert say(foreign) == foreign
