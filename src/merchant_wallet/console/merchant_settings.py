"""A merchant's settings: one form for all.

Rules:
- All or none are changed, under the book's lock. Before and after are in the audit log.
- If two people are needed, what loosens a safeguard is proposed and the rest is changed.
- An error is shown beside its field, and typed values stay.
- The form carries the values that it showed. Only fields that the user changed are saved, so nothing that
  somebody else changed meanwhile is undone.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from merchant_wallet.approvals.changes import ProposedChange
from merchant_wallet.audit.records import Author
from merchant_wallet.base.user_input import InvalidInput
from merchant_wallet.console import flash, proposal_forms, setting_fields
from merchant_wallet.console.callbacks import find_closed
from merchant_wallet.console.form_state import FormState
from merchant_wallet.console.merchants import ONE, load, url_of
from merchant_wallet.console.proposal_forms import Unproposed
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page
from merchant_wallet.merchants import acts, store, two_person_changes
from merchant_wallet.merchants.audit_facts import list_changed_facts
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.merchants.settings import SettingRefused, find_insecure
from merchant_wallet.merchants.store import Change
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting.lookalikes import NewAddress, find_lookalikes
from merchant_wallet.web.languages import N_, Language

_REFUSED: Final = N_("Not a value that can be set: {why}")
_NO_VALUE: Final = N_("Not a value that can be set.")
_REQUIRED: Final = N_("This can't be empty.")
_HTTPS: Final = N_("It begins with https:// outside the sandbox.")
_MODE_STAYS: Final = N_("The currencies stay as they are: the book has entries.")
_ONE_WRONG: Final = N_("Nothing was changed. One field must be corrected.")
_SOME_WRONG: Final = N_("Nothing was changed. {count} fields must be corrected.")
_MOVED: Final = N_(
    "Somebody else has changed this meanwhile. Your value is not saved yet. The present value is: {now}"
)
_SAVED: Final = N_("Saved. It takes effect from the next request on.")
_SAVED_ALIKE: Final = N_(
    "Saved. {address} looks like the known address {known}, but is another: compare both whole."
)
_SAVED_CLOSED: Final = N_(
    "Saved. Callbacks to {address} will fail: it is no public address. Give a URL with a public one."
)
_SAME: Final = N_("Nothing was changed.")
_SAVED_AND_PROPOSED: Final = N_("The rest was saved. This takes effect when another person accepts it.")
_MARK_LENGTH: Final = 12


class Changed(NamedTuple):
    """The changes of a form that were saved, as facts, and its proposal."""

    after: dict[str, Any]
    proposed: ProposedChange | None


class ChangedMeanwhile(Exception):
    """Somebody else has changed the same settings. `moved` has their present values by name.

    `marks` goes into the form when it is shown again. Saving it once more then overwrites.
    """

    def __init__(self, moved: Mapping[str, str], marks: str) -> None:
        super().__init__(", ".join(moved))
        self.moved = moved
        self.marks = marks


async def show_settings_form(request: ConsoleRequest, conn: Connection) -> Response:
    """The form with the present values."""
    merchant = await load(request, conn)
    return await _show(request, conn, merchant, FormState(setting_fields.show_fields(merchant)))


async def change_settings(request: ConsoleRequest, conn: Connection) -> Response:
    """Save the changed fields."""
    merchant = await load(request, conn)
    typed = setting_fields.read_typed(request.form)
    texts = setting_fields.to_texts(typed)
    if errors := find_errors(request, texts, typed):
        problem = request.translate(_SOME_WRONG if len(errors) > 1 else _ONE_WRONG, count=len(errors))
        return await _show(
            request, conn, merchant, FormState(typed, errors, problem), request.form.text("marks")
        )
    typed |= {proposal_forms.REASON: request.form.text(proposal_forms.REASON)}
    try:
        changed = await change(request, conn, merchant.merchant_id, texts)
    except ChangedMeanwhile as changed_meanwhile:
        return await _show(
            request,
            conn,
            merchant,
            FormState(typed, explain(request, changed_meanwhile)),
            changed_meanwhile.marks,
        )
    except Unproposed as unproposed:
        refused = FormState(typed, unproposed.errors, unproposed.problem)
        return await _show(request, conn, merchant, refused, request.form.text("marks"))
    except SettingRefused:
        # Every value was checked above. Only this rule needs the book.
        refused = FormState(typed, {"currency-mode": request.translate(_MODE_STAYS)})
        return await _show(request, conn, merchant, refused, request.form.text("marks"))
    url = f"{url_of(merchant.merchant_id)}/settings"
    if changed.proposed is None and (alike := await _find_alike(request, conn, merchant, texts)):
        address, known = alike
        return request.redirect(url, _SAVED_ALIKE, tone=flash.WARN, address=address, known=known)
    if changed.proposed is None and (closed := _find_closed(request, merchant, texts)) is not None:
        return request.redirect(url, _SAVED_CLOSED, tone=flash.WARN, address=closed)
    return redirect_after_change(request, url, changed)


def _find_closed(request: ConsoleRequest, before: Merchant, texts: Mapping[str, str]) -> str | None:
    """The address of a new URL for deposits that no callback may go to. The URL is accepted all the same."""
    after = texts.get("deposit-notify-url")
    if after is None or after == before.deposit_notify_url:
        return None
    return find_closed(request, after)


async def _find_alike(
    request: ConsoleRequest, conn: Connection, before: Merchant, texts: Mapping[str, str]
) -> tuple[str, str] | None:
    """An address that one person has added to the allow-list, and a known one that it looks like.

    That is a first list: a further address is proposed, and the proposal shows it.
    """
    after = two_person_changes.with_settings(before, texts).allowed_addresses
    new = [NewAddress(before.merchant_id, one) for one in sorted(after - before.allowed_addresses)]
    found = await find_lookalikes(conn, request.cells, new, request.merchant_id)
    return next(((one.address, alikes[0].address) for one, alikes in found.items()), None)


def redirect_after_change(request: ConsoleRequest, url: str, changed: Changed) -> Response:
    """Redirect to a page with a message about what was saved and proposed."""
    if changed.proposed is not None:
        told = _SAVED_AND_PROPOSED if changed.after else proposal_forms.PROPOSED
        # A merchant's user does not see the pages of proposals.
        to = proposal_forms.url_of(changed.proposed) if request.may(Right.READ) else url
        return request.redirect(to, told)
    return request.redirect(url, _SAVED if changed.after else _SAME)


async def change(
    request: ConsoleRequest, conn: Connection, merchant_id: int, texts: Mapping[str, str]
) -> Changed:
    """Save the changed fields with a record in the audit log. Returns what is different now.

    If two people are needed, what loosens a safeguard is proposed instead. Raises ChangedMeanwhile,
    SettingRefused, Unproposed.
    """
    marks = _read_marks(request.form.text("marks"))
    typed = {name: text for name, text in texts.items() if marks.get(name) not in (None, _mark(text))}
    async with conn.transaction():
        # Locks the book, so that the compared values are still the present ones.
        held = await store.change_settings(conn, request.context.keyring, merchant_id, {})
        now = setting_fields.to_texts(setting_fields.show_fields(held.before))
        if moved := {name: now[name] for name in typed if _mark(now[name]) != marks[name]}:
            raise ChangedMeanwhile(moved, _join(marks | {name: _mark(text) for name, text in moved.items()}))
        proposed = await _propose_loosened(request, conn, held.before, typed)
        if proposed is not None:
            typed = {name: text for name, text in typed.items() if name not in proposed.after}
        author = request.author.with_facts(proposal_forms.read_reason(request))
        changed = await _make_change(request, conn, author, merchant_id, typed)
        _, after = list_changed_facts(changed.before, changed.after)
    await request.cells.carry(merchant_id)
    return Changed(after, proposed)


async def _propose_loosened(
    request: ConsoleRequest, conn: Connection, before: Merchant, typed: Mapping[str, str]
) -> ProposedChange | None:
    """Propose the values that loosen a safeguard. None if there are none. Raises Unproposed."""
    settings = request.context.settings
    if not settings.needs_two_people:
        return None
    wanted = two_person_changes.with_settings(before, typed)
    anchors = await two_person_changes.read_day_old_fees(conn, before.merchant_id, request.at_ms)
    loosened = two_person_changes.list_loosened(before, wanted, anchors, settings.rate_band)
    if not loosened:
        return None
    async with conn.transaction(force_rollback=True):
        # A change that would be refused is not proposed.
        await _make_change(request, conn, request.author, before.merchant_id, typed)
    was, becomes = (
        two_person_changes.describe(before, loosened),
        two_person_changes.describe(wanted, loosened),
    )
    subject = acts.format_subject(before.merchant_id)
    return await proposal_forms.propose(request, conn, acts.SET, subject, was, becomes, before.merchant_id)


async def _make_change(
    request: ConsoleRequest, conn: Connection, author: Author, merchant_id: int, typed: Mapping[str, str]
) -> Change:
    context = request.context
    return await acts.change_settings(
        conn, context.keyring, author, merchant_id, typed, sandbox=context.settings.sandbox
    )


def explain(request: ConsoleRequest, changed_meanwhile: ChangedMeanwhile) -> dict[str, str]:
    """The message beside each field that somebody else has changed."""
    shown = setting_fields.show_texts(changed_meanwhile.moved)
    return {name: request.translate(_MOVED, now=now) for name, now in shown.items()}


def mark_texts(merchant: Merchant) -> str:
    """The values that the form shows, to be sent back with it. Pure."""
    texts = setting_fields.to_texts(setting_fields.show_fields(merchant))
    return _join({name: _mark(text) for name, text in texts.items()})


def _join(marks: Mapping[str, str]) -> str:
    return " ".join(f"{name}={mark}" for name, mark in marks.items())


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_MARK_LENGTH]


def _read_marks(text: str) -> dict[str, str]:
    return {name: mark for name, _, mark in (pair.partition("=") for pair in text.split())}


def find_errors(
    request: ConsoleRequest, texts: Mapping[str, str], typed: Mapping[str, str]
) -> dict[str, str]:
    """The error of each field, in the user's language."""
    mistyped = setting_fields.find_mistyped(typed)
    errors = {name: request.translate(one.text, **one.values) for name, one in mistyped.items()}
    for name, error in setting_fields.find_errors(texts).items():
        if name in errors:
            continue
        errors[name] = _describe_error(request, error) if texts[name] else request.translate(_REQUIRED)
    if not request.context.settings.sandbox:
        errors = {name: request.translate(_HTTPS) for name in find_insecure(texts)} | errors
    return errors


def _describe_error(request: ConsoleRequest, error: ValueError) -> str:
    """The error of a value: in English the parser's own words, in other languages which part is wrong."""
    if request.client.language is Language.EN:
        return request.translate(_REFUSED, why=error)
    if isinstance(error, InvalidInput):
        return request.translate(_REFUSED, why=repr(error.part)[1:-1])
    return request.translate(_NO_VALUE)


async def _show(
    request: ConsoleRequest, conn: Connection, merchant: Merchant, form_state: FormState, marks: str = ""
) -> Response:
    return request.page(
        "console/merchant_settings.html",
        active="merchants",
        status=200 if form_state.ok else 422,
        merchant=merchant,
        tab="settings",
        form_state=form_state,
        marks=marks or mark_texts(merchant),
        groups=setting_fields.list_groups(),
        proposed=await proposal_forms.list_about(request, conn, acts.format_subject(merchant.merchant_id)),
    )


ROUTES: Final = (
    Page(f"{ONE}/settings", show_settings_form, Right.READ),
    Page(f"{ONE}/settings", change_settings, Right.CHANGE_MERCHANT, POST),
)
