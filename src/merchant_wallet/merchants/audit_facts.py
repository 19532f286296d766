"""A merchant's settings as facts of the audit log: written and read. Pure.

A fact is called as in `merchant show`: `approvalLimit`. The guard of fees reads the fee of a day ago in the
log, so a fact is read by the function beside the one that writes it.
"""

from typing import Any, Final

from merchant_wallet.audit.records import Facts
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.merchants.settings import SETTINGS, Setting, Value

_OTHER_NAMES: Final = {"networks": "allowedNetworks"}
"""Settings whose facts have another name."""


def list_settings_facts(merchant: Merchant) -> dict[str, Any]:
    """Every setting, by the name of its fact."""
    return {
        format_fact_name(name): _write_value(setting, getattr(merchant, setting.column))
        for name, setting in SETTINGS.items()
    }


def list_changed_facts(before: Merchant, after: Merchant) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings that differ: their old and their new values."""
    return pick_changed(list_settings_facts(before), list_settings_facts(after))


def pick_changed(was: Facts, became: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """The facts that differ: their old and their new values."""
    changed = [name for name in became if became[name] != was[name]]
    return {name: was[name] for name in changed}, {name: became[name] for name in changed}


def format_fact_name(setting: str) -> str:
    """The name of a setting's fact."""
    first, *further = setting.split("-")
    return _OTHER_NAMES.get(setting, first + "".join(map(str.title, further)))


def read_value(name: str, fact: Any) -> Value:
    """The value of a setting, from its fact."""
    setting = SETTINGS[name]
    return setting.parse(fact) if _is_scaled(setting) and fact is not None else fact


def _write_value(setting: Setting, value: Any) -> str | int | bool | list[str] | None:
    if isinstance(value, frozenset | tuple):
        return sorted(map(str, value))
    return setting.show(value) if _is_scaled(setting) and value is not None else value


def _is_scaled(setting: Setting) -> bool:
    """Whether a value is a count of small parts, which people write with a decimal point."""
    return setting.column.endswith(("_e8", "_units"))
