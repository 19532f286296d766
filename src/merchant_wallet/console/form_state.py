"""The state of a submitted form: typed values and errors. Pure.

Rules: typed values are shown again, but never a password or a code.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from merchant_wallet.web.forms import Form


@dataclass(frozen=True, slots=True)
class FormState:
    """Values and errors by field. `problem` is an error of the whole form."""

    values: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return not self.errors and not self.problem

    def value(self, name: str, default: str = "") -> str:
        """The typed value, or the present one."""
        return self.values.get(name, default)

    def error(self, name: str) -> str:
        """The error of a field; empty if there is none."""
        return self.errors.get(name, "")


EMPTY_FORM = FormState()


def refill(
    form: Form, names: Iterable[str], errors: Mapping[str, str] | None = None, problem: str = ""
) -> FormState:
    """The form again, with the typed values of the given fields."""
    return FormState({name: form.raw(name) for name in names}, errors or {}, problem)
