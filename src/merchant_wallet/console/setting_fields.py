"""A merchant's settings as fields of a form: labels, hints, parsing. Pure.

Rules: every setting of `settings.SETTINGS` has a field here; a test checks that. A setting without one would
be shown as a line of text under its own name. The typed values become the texts that `settings` parses: an
empty optional field is `none`, a list has one item per line, and a share is typed as a percentage.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from merchant_wallet.console.form_state import FormState
from merchant_wallet.merchants.records import OPERATIONS, Merchant
from merchant_wallet.merchants.settings import SETTINGS, show_settings
from merchant_wallet.web.forms import Form
from merchant_wallet.web.languages import N_
from merchant_wallet.web.typed_values import TypedWrong, read_percent, show_percent

LINE: Final = "line"
AREA: Final = "area"
CHOICE: Final = "choice"
SWITCH: Final = "switch"
CHECKS: Final = "checks"
PERCENT: Final = "percent"
COLOUR: Final = "colour"
LOGO: Final = "logo"
_NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class SettingField:
    """One field. `may_be_empty`: an empty value means `none`. `after` is shown behind the input."""

    name: str
    label: str
    hint: str = ""
    kind: str = LINE
    options: tuple[tuple[str, str], ...] = ()
    may_be_empty: bool = False
    after: str = ""
    inputmode: str = "text"


@dataclass(frozen=True, slots=True)
class FieldGroup:
    """Fields under one heading with a sentence about them."""

    key: str
    title: str
    text: str
    fields: tuple[SettingField, ...]


PERCENT_HINT: Final = N_("With the percent sign: 0.5% is half a percent.")

GROUPS: Final = (
    FieldGroup(
        "identity",
        N_("Merchant"),
        N_("The merchant's name, and the currencies of its book."),
        (
            SettingField("name", N_("Name"), N_("1 to 128 characters, not digits alone.")),
            SettingField(
                "currency-mode",
                N_("Currencies"),
                N_("Can be changed only until the book has its first entry."),
                CHOICE,
                (("KFB", N_("USDT and KFB")), ("USDT", N_("USDT alone"))),
            ),
        ),
    ),
    FieldGroup(
        "fees",
        N_("Fees"),
        N_("What the platform earns from each call. Try amounts out under Fees and rates."),
        (
            SettingField("transfer-fee-rate", N_("Transfer fee"), PERCENT_HINT, PERCENT, inputmode="decimal"),
            SettingField(
                "withdraw-fee-rate", N_("Withdrawal fee"), PERCENT_HINT, PERCENT, inputmode="decimal"
            ),
            SettingField(
                "withdraw-fee-min",
                N_("Smallest withdrawal fee"),
                N_("Charged if the percentage comes to less than this."),
                after="USDT",
                inputmode="decimal",
            ),
        ),
    ),
    FieldGroup(
        "limits",
        N_("Withdrawals"),
        N_("How much may be withdrawn, where to, and who must approve."),
        (
            SettingField(
                "approval-limit",
                N_("Approval above"),
                N_("A larger withdrawal waits for an operator."),
                after="USDT",
                inputmode="decimal",
            ),
            SettingField(
                "second-approval-limit",
                N_("Second approval above"),
                N_("A larger withdrawal waits for two different operators."),
                after="USDT",
                inputmode="decimal",
            ),
            SettingField(
                "daily-limit",
                N_("Limit of orders a day"),
                N_(
                    "For the sum of a UTC day's orders, also of those that wait. An order that fails or is"
                    " cancelled on its day does not count. Empty: no limit."
                ),
                may_be_empty=True,
                after="USDT",
                inputmode="decimal",
            ),
            SettingField(
                "allowed-addresses",
                N_("Where withdrawals may go"),
                N_("Addresses of wallets, one a line. Empty: anywhere."),
                AREA,
                may_be_empty=True,
            ),
        ),
    ),
    FieldGroup(
        "payout-rules",
        N_("Payout rules"),
        N_("What is above a limit is held until a person has looked. It is never refused."),
        (
            SettingField(
                "payout-limit",
                N_("Hold payouts above"),
                N_("All payouts within the window together. Empty: no limit."),
                may_be_empty=True,
                after="USDT",
                inputmode="decimal",
            ),
            SettingField(
                "payout-limit-count",
                N_("Hold payouts after"),
                N_("So many payouts within the window. Empty: no limit."),
                may_be_empty=True,
                inputmode="numeric",
            ),
            SettingField(
                "payout-window",
                N_("Window"),
                N_("From 1 to 168 hours, counted back from each payout."),
                after="h",
                inputmode="numeric",
            ),
            SettingField(
                "first-payout-limit",
                N_("Hold a first payout above"),
                N_("To an address that was never paid before. 0: each. Empty: none."),
                may_be_empty=True,
                after="USDT",
                inputmode="decimal",
            ),
            SettingField(
                "payout-hours",
                N_("Payout hours"),
                N_("Such as Mon-Fri 09:00-18:00 Asia/Shanghai. Outside them payouts wait. Empty: always."),
                may_be_empty=True,
            ),
        ),
    ),
    FieldGroup(
        "access",
        N_("API access"),
        N_("Who may call, how it is signed, how often."),
        (
            SettingField(
                "sign-method",
                N_("Signature"),
                N_("MD5 is weak: only for a client that can't do better."),
                CHOICE,
                (("HMAC", "HMAC-SHA256"), ("MD5", "MD5")),
            ),
            SettingField(
                "networks",
                N_("Networks that requests may come from"),
                N_("Such as 192.0.2.0/24, one a line. Empty: anywhere."),
                AREA,
                may_be_empty=True,
            ),
            SettingField(
                "rate-limit",
                N_("Requests a second"),
                N_("0: no limit. Empty: the platform's."),
                may_be_empty=True,
                inputmode="numeric",
            ),
            SettingField(
                "disabled-operations",
                N_("Operations switched off"),
                N_("A call of one that is ticked is refused."),
                CHECKS,
                tuple((name, name) for name in OPERATIONS),
                may_be_empty=True,
            ),
        ),
    ),
    FieldGroup(
        "sub-users",
        N_("Sub-users"),
        N_("How wallets are opened, and what their owners must do."),
        (
            SettingField(
                "auto-register",
                N_("Open wallets by themselves"),
                N_("An unknown extUserId gets a wallet when it is looked up."),
                SWITCH,
            ),
            SettingField(
                "require-pin",
                N_("Require a PIN"),
                N_("Debits are refused until the sub-user has set one."),
                SWITCH,
            ),
            SettingField(
                "frame-origins",
                N_("Sites that may frame the wallet page"),
                N_("Origins such as https://shop.example, one a line. Empty: none."),
                AREA,
                may_be_empty=True,
            ),
        ),
    ),
    FieldGroup(
        "brand",
        N_("Look of the wallet"),
        N_("What customers see on their wallet pages and receipts. Texts stay readable with any colour."),
        (
            SettingField(
                "brand-colour",
                N_("Colour"),
                N_("Such as #8a1538. Empty: the platform's."),
                COLOUR,
                may_be_empty=True,
            ),
            SettingField("brand-logo", N_("Logo"), "", LOGO, may_be_empty=True),
            SettingField(
                "customer-url",
                N_("Where customers open their wallets"),
                N_("Your page with their wallet link. A wallet whose session has ended leads there."),
                may_be_empty=True,
                inputmode="url",
            ),
        ),
    ),
    FieldGroup(
        "invoices",
        N_("Invoices"),
        N_("What invoices of fees say of the merchant, from the next one on."),
        (
            SettingField(
                "billing-address",
                N_("Billing address"),
                N_("At most 300 characters. A semicolon begins a new line."),
                may_be_empty=True,
            ),
            SettingField(
                "tax-id",
                N_("Tax ID"),
                N_("At most 64 characters."),
                may_be_empty=True,
            ),
        ),
    ),
    FieldGroup(
        "callbacks",
        N_("Callbacks"),
        N_("Withdrawals name their own URL. Deposits are sent to this one."),
        (
            SettingField(
                "deposit-notify-url",
                N_("URL for deposits"),
                N_("At most 100 characters. Empty: no callbacks for deposits."),
                may_be_empty=True,
                inputmode="url",
            ),
        ),
    ),
)


def list_groups() -> tuple[FieldGroup, ...]:
    """The fields of all settings."""
    known = {one.name for group in GROUPS for one in group.fields}
    further = tuple(SettingField(name, name, kind=LINE) for name in SETTINGS if name not in known)
    present = tuple(
        FieldGroup(g.key, g.title, g.text, tuple(one for one in g.fields if one.name in SETTINGS))
        for g in GROUPS
    )
    other = FieldGroup("other", N_("Other"), "", further)
    return (*present, other) if further else present


def list_fields() -> tuple[SettingField, ...]:
    """The fields of all groups."""
    return tuple(one for group in list_groups() for one in group.fields)


def show_fields(merchant: Merchant) -> dict[str, str]:
    """The present value of each field."""
    shown = show_settings(merchant)
    return {one.name: _show(one, shown[one.name]) for one in list_fields()}


def show_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Stored texts as they are typed."""
    return {one.name: _show(one, texts[one.name]) for one in list_fields() if one.name in texts}


def read_typed(form: Form) -> dict[str, str]:
    """The typed value of each field, as it can be shown again."""
    return {one.name: _read(form, one) for one in list_fields()}


def to_texts(typed: Mapping[str, str]) -> dict[str, str]:
    """The typed values as the texts that `settings.parse_setting` parses."""
    return {one.name: _to_text(one, typed[one.name]) for one in list_fields() if one.name in typed}


def find_mistyped(typed: Mapping[str, str]) -> dict[str, TypedWrong]:
    """The values that can't be read as they were typed, each with its error."""
    errors = {}
    for one in list_fields():
        if one.kind == PERCENT and typed.get(one.name, "").strip():
            try:
                read_percent(typed[one.name])
            except TypedWrong as error:
                errors[one.name] = error
    return errors


def find_errors(texts: Mapping[str, str]) -> dict[str, ValueError]:
    """All invalid texts, each with its error."""
    errors = {}
    for name, text in texts.items():
        try:
            SETTINGS[name].parse(text.strip())
        except ValueError as error:
            errors[name] = error
    return errors


def fill(typed: Mapping[str, str], errors: Mapping[str, str], problem: str = "") -> FormState:
    """The form again with the typed values."""
    return FormState(typed, errors, problem)


def _show(one: SettingField, text: str) -> str:
    if one.kind == PERCENT:
        return show_percent(text)
    if one.kind == CHECKS:
        return "" if text == _NONE else text
    if one.kind == AREA:
        return "" if text == _NONE else text.replace(" ", "\n")
    return "" if one.may_be_empty and text == _NONE else text


def _read(form: Form, one: SettingField) -> str:
    if one.kind == CHECKS:
        return " ".join(form.all(one.name))
    if one.kind == SWITCH:
        return "on" if one.name in form else "off"
    return form.raw(one.name)


def _to_text(one: SettingField, typed: str) -> str:
    text = " ".join(typed.split()) if one.kind in (AREA, CHECKS) else typed.strip()
    if one.kind == PERCENT and text:
        try:
            return read_percent(text)
        except TypedWrong:
            return text
    return text or (_NONE if one.may_be_empty else "")
