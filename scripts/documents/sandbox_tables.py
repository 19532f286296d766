"""The tables of test mode: what a test can ask for, as the code itself knows it."""

from collections.abc import Iterator

from scripts.documents.field_tables import show_table

from merchant_wallet.base.addresses import to_eip55, to_tron
from merchant_wallet.chains.sandbox.recipients import RECIPIENTS
from merchant_wallet.sandbox.actions import ACTIONS
from merchant_wallet.sandbox.listening import FIELDS, NAME, SUMMARY
from merchant_wallet.sandbox.test_values import ANSWER_WORDS, CALLBACK_WORDS, PLAYED_CODES, PREFIX, Word


def make_sandbox_tables() -> dict[str, str]:
    """The blocks about test mode, by name."""
    return {
        "sandbox addresses": _show_recipients(),
        "sandbox answers": show_table(("Test value", "What happens"), _list_answers()),
        "sandbox callbacks": show_table(("Test value", "What happens"), map(_show_word, CALLBACK_WORDS)),
        "sandbox actions": show_table(("Action", "Fields", "What it does"), _list_actions()),
    }


def _show_recipients() -> str:
    rows = [
        (f"`{to_eip55(each.address)}`", f"`{to_tron(each.address)}`", str(each.status), each.effect)
        for each in RECIPIENTS
    ]
    return show_table(("On ERC20 and BEP20", "On TRC20", "txnStatus", "What happens"), rows)


def _list_answers() -> Iterator[tuple[str, str]]:
    codes = ", ".join(map(str, PLAYED_CODES))
    yield f"`{PREFIX}CODE:…`", f"the code, and nothing is carried out. CODE is one of {codes}"
    yield (
        f"`{PREFIX}CODE.N:…`",
        "the same for the first N requests (1 to 9) with this id; the next is carried out",
    )
    yield from map(_show_word, ANSWER_WORDS)


def _show_word(word: Word) -> tuple[str, str]:
    return f"`{PREFIX}{word.text}:…`", word.effect


def _list_actions() -> Iterator[tuple[str, str, str]]:
    for action in ACTIONS:
        yield f"`{action.name}`", _show_fields(action.fields), action.summary
    yield f"`{NAME}`", _show_fields(FIELDS), SUMMARY


def _show_fields(fields: tuple[tuple[str, str], ...]) -> str:
    return "; ".join(f"`{name}` ({meaning})" for name, meaning in fields)
