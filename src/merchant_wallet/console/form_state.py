"""A form as it was filled in: what was typed, what is wrong with it. Pure.

Rules: what was typed is kept for the next try, but never a password or a code.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from merchant_wallet.web.forms import Form


@dataclass(frozen=True, slots=True)
class FormState:
    """Texts and errors by the names of fields; `problem` is what is wrong with the form as a whole."""

    values: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.errors and not self.problem

    def value(self, name: str, default: str = "") -> str:
        """What was typed, or what stood there before."""
        return self.values.get(name, default)

    def error(self, name: str) -> str:
        """What is wrong with a field; empty when nothing is."""
        return self.errors.get(name, "")


EMPTY_FORM = FormState()


def refill(
    form: Form, names: Iterable[str], errors: Mapping[str, str] | None = None, problem: str = ""
) -> FormState:
    """The form again, with what was typed into the fields named."""
    return FormState({name: form.raw(name) for name in names}, errors or {}, problem)
