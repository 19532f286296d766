"""Why a user may not do something: which role has the right. Pure."""

from collections.abc import Callable, Mapping
from typing import Final

from merchant_wallet.operators.roles import Operator, Right, Role, list_roles
from merchant_wallet.web.languages import N_

ROLE_NAMES: Final[Mapping[str, str]] = {
    Role.OWNER: N_("Owner"),
    Role.OPERATOR: N_("Operator"),
    Role.AUDITOR: N_("Auditor"),
    Role.MERCHANT: N_("Merchant user"),
}
_NO_RIGHT: Final = N_("Your role ({role}) does not have this right. These roles have it: {roles}.")


def explain_missing(operator: Operator, right: Right, translate: Callable[..., str]) -> str:
    """The user's role, and the roles that have the right, in the user's language."""
    able = [translate(ROLE_NAMES[role]) for role in list_roles(right)]
    return translate(_NO_RIGHT, role=translate(ROLE_NAMES[operator.role]), roles=", ".join(able))
