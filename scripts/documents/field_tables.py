"""The tables of fields in the merchants' guide, from the description of the interface."""

from collections.abc import Iterable, Sequence

from merchant_wallet.api.reference.callbacks import DEPOSITED, ORDER
from merchant_wallet.api.reference.fields import Field
from merchant_wallet.api.reference.operations import COMMON_FIELDS, REFERENCES


def make_field_tables() -> dict[str, str]:
    """The blocks with tables of fields."""
    requests = {f"request {each.name}": show_request(each.request) for each in REFERENCES if each.request}
    answers = {f"answer {each.name}": _show_answer(each.answer) for each in REFERENCES}
    return {
        "common fields": show_request(COMMON_FIELDS),
        **requests,
        **answers,
        "callback fields": _show_callback(ORDER.fields),
        "deposit fields": _show_callback(DEPOSITED.fields),
    }


def show_request(fields: Sequence[Field]) -> str:
    """The table of a request's fields."""
    rows = (
        (field.name, field.kind, "yes" if field.is_required else "no", _show_length(field), field.meaning)
        for field in fields
    )
    return show_table(("Name", "Type", "Required", "At most", "Meaning"), rows)


def _show_answer(fields: Sequence[Field]) -> str:
    rows = ((field.name, field.kind, _show_length(field), field.meaning) for field in fields)
    return show_table(("Answer", "Type", "At most", "Meaning"), rows)


def _show_callback(fields: Sequence[Field]) -> str:
    return show_table(("Field", "Type", ""), ((field.name, field.kind, field.meaning) for field in fields))


def _show_length(field: Field) -> str:
    return "" if field.at_most is None else str(field.at_most)


def show_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
