"""A merchant's settings as facts of the audit log. Pure.

A fact has the name and form that the command line prints: `approvalLimit`, `"1000"`.
"""

from typing import Any, Final

from merchant_wallet.merchants.records import Merchant
from merchant_wallet.merchants.settings import SETTINGS, Setting

_OTHER_NAMES: Final = {"networks": "allowedNetworks"}
"""Settings whose facts have another name."""


def list_settings_facts(merchant: Merchant) -> dict[str, Any]:
    """Every setting, by the name of its fact."""
    return {format_fact_name(name): _fact_of(setting, merchant) for name, setting in SETTINGS.items()}


def list_changed_facts(before: Merchant, after: Merchant) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings that differ: their old and their new values."""
    was, became = list_settings_facts(before), list_settings_facts(after)
    changed = [name for name in became if became[name] != was[name]]
    return {name: was[name] for name in changed}, {name: became[name] for name in changed}


def format_fact_name(setting: str) -> str:
    """The name of a setting's fact."""
    first, *further = setting.split("-")
    return _OTHER_NAMES.get(setting, first + "".join(map(str.title, further)))


def _fact_of(setting: Setting, merchant: Merchant) -> str | int | bool | list[str] | None:
    value = getattr(merchant, setting.column)
    if isinstance(value, frozenset | tuple):
        return sorted(map(str, value))
    is_scaled = setting.column.endswith(("_e8", "_units"))
    return setting.show(value) if is_scaled and value is not None else value
