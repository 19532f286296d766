"""What a page of the console gets: the request of a signed-in user, and the answers it can give.

Rules:
- A page names the right that it needs, and the pool of its connections.
- A merchant's user never learns that other merchants exist: what is not in its own book is not found.
- A change is recorded in the audit log in the same transaction, by the act that makes it. There the user's
  rights are read again under a lock.
- A page that keeps a processor busy takes a connection only while it reads or writes (`Work`).
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from psycopg import AsyncConnection
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from merchant_wallet.approvals.decisions import Person
from merchant_wallet.approvals.standing import hold_of
from merchant_wallet.audit.records import Author
from merchant_wallet.base.fair_queue import Owner
from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.console import flash, kept_forms
from merchant_wallet.console.fact_words import say_fact, say_fact_name
from merchant_wallet.console.menu import list_entries
from merchant_wallet.console.missing_rights import explain_missing
from merchant_wallet.console.notices import Banner
from merchant_wallet.operators.roles import Operator, Right, may
from merchant_wallet.operators.sessions import Session
from merchant_wallet.reporting.inbox import Count
from merchant_wallet.web.cells import PageCells
from merchant_wallet.web.client import Client
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.forbidden import Forbidden
from merchant_wallet.web.forms import Form
from merchant_wallet.web.languages import translate
from merchant_wallet.web.turns import person_of_merchant, person_of_platform

Connection = AsyncConnection[Any]

OWN_PASSWORD: Final = "/console/account/password"
SIGN_OUT: Final = "/console/sign-out"
MENU: Final = "menu"
"""Among its values every whole page has a menu, and no part of a page."""
GET: Final = "GET"
POST: Final = "POST"
_MAX_SOURCE: Final = 64


@dataclass(frozen=True, slots=True)
class ConsoleRequest:
    """A request of a signed-in user.

    `http` is Starlette's request. `form` is empty unless it is a POST.
    """

    http: Request
    context: PageContext
    operator: Operator
    session: Session
    client: Client
    token: str = field(repr=False)
    csrf: str = field(repr=False)
    request_id: str
    at_ms: int
    form: Form
    url: str
    cells: PageCells
    flash_message: flash.FlashMessage | None = None

    @property
    def actor(self) -> str:
        """The user's name in the journal and the audit log."""
        return self.operator.actor

    @property
    def person(self) -> Person:
        """The person who acts, with the rights that were checked."""
        operator, session_id = self.operator, self.session.session_id
        return Person(
            self.actor, self.source, operator.eligible_ms, session_id, operator.role, operator.merchant_id
        )

    @property
    def author(self) -> Author:
        """Who makes a change, for the audit log, with the rights that were checked."""
        hold = hold_of(self.person, self.at_ms)
        return Author(self.actor, self.source, self.at_ms, hold=hold, clock=self.context.clock)

    @property
    def merchant_id(self) -> int | None:
        """The only merchant that this user sees; None for the platform's staff, who see all."""
        return self.operator.merchant_id

    @property
    def owner(self) -> Owner:
        """Whose turn this request waits for."""
        return find_owner(self.operator)

    @property
    def source(self) -> str:
        """The client's address, for the audit log."""
        return self.client.source[:_MAX_SOURCE] or "unknown"

    def may(self, right: Right, merchant_id: int | None = None) -> bool:
        """Whether the user has a right, for a merchant's book or (None) for the whole platform."""
        return may(self.operator, right, merchant_id)

    def require(self, right: Right, merchant_id: int | None = None) -> None:
        """Raise HTTPException: 404 if a merchant's user may not know of it, else 403 with its cause."""
        if self.may(right, merchant_id):
            return
        if self.merchant_id is not None and merchant_id != self.merchant_id:
            raise HTTPException(404)
        raise Forbidden(explain_missing(self.operator, right, self.translate))

    def translate(self, text: str, **values: object) -> str:
        """A text in the user's language."""
        return translate(self.client.language, text, **values)

    @property
    def archive(self) -> ArchiveFolder:
        """The folder of archived months."""
        return ArchiveFolder(self.context.settings.archive_folder)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[tuple["ConsoleRequest", Connection]]:
        """A connection to home for a part of the work of a `Work`, and the request with its cells."""
        async with self.context.take_with_cells(self.owner) as (conn, cells):
            yield replace(self, cells=cells), conn

    def explorer_url(self, chain: str, tx_hash: str) -> str | None:
        """The URL of a transaction in a block explorer; None if the settings name none."""
        link = self.context.settings.chains[chain].explorer
        return None if link is None else link.replace("{tx}", quote(tx_hash, safe=""))

    def page(self, name: str, *, active: str = "", status: int = 200, **values: object) -> Response:
        """A whole page from a template, with menu and banner, which are completed later (`frame`).

        `active` is its entry of the menu.
        """
        shown = {
            **self._common(),
            "active": active,
            **self.missing_cells,
            "brings_count": False,
            "flash_message": self.flash_message,
            **values,
            **self.frame(active, Banner(), Count()),
        }
        kept = kept_forms.read(self.http, self.context.keyring, self.at_ms)
        shown["kept_form"] = kept_forms.give(kept, self.operator)
        response = self.context.responses.page(name, self.client.language, shown, status=status)
        kept_forms.clear_shown(response, kept, self.operator)
        if self.flash_message is not None:
            flash.clear(response)
        return response

    @property
    def missing_cells(self) -> dict[str, object]:
        """The cells whose merchants are missing on the page, and those of them that are slow."""
        return {"away": self.cells.away, "slow": self.cells.slow}

    def frame(self, active: str, banner: Banner, waiting: Count) -> dict[str, object]:
        """What stands around the content of a whole page."""
        return {
            MENU: list_entries(self.operator, waiting),
            "inbox_count": waiting,
            "banner": banner.for_page(active),
        }

    def part(
        self, name: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **values: object
    ) -> Response:
        """A part of a page, for htmx."""
        shown = {**self._common(), **self.missing_cells, **values}
        return self.context.responses.page(name, self.client.language, shown, status=status, headers=headers)

    def redirect(self, url: str, text: str = "", *, tone: str = flash.GOOD, **values: object) -> Response:
        """Redirect to a page of the console, which shows `text` (translated) once.

        `tone` is one of flash.TONES. `values` fill the text's placeholders.
        """
        response = self.context.responses.redirect(url)
        if text:
            key = self.context.keyring.derive(flash.KEY)
            flash.write(
                response,
                flash.FlashMessage(tone, text, values),
                key,
                self.token,
                self.context.responses.secure,
            )
        return response

    def _common(self) -> dict[str, object]:
        return {
            "request": self,
            "operator": self.operator,
            "may": self.may,
            "Right": Right,
            "theme": self.client.theme,
            "csrf": self.csrf,
            "request_id": self.request_id,
            "here": self.url,
            "two_people": self.context.settings.needs_two_people,
            "say_fact_name": partial(say_fact_name, translate=self.translate),
            "say_fact": partial(say_fact, translate=self.translate),
        }


Handler = Callable[[ConsoleRequest, Connection], Awaitable[Response]]
PublicHandler = Callable[[Request, PageContext], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Work:
    """A handler that keeps a processor busy. It takes a connection with `request.connect` when it needs one,
    and has none while it works.
    """

    handler: Callable[[ConsoleRequest], Awaitable[Response]]


class PoolName(StrEnum):
    """The connections that a page uses.

    SAFETY: an act that stops or limits something. Only a person who is known as one of the platform's people
    takes them; anybody else uses the connections of PAGES. No other page keeps such an act waiting.
    PASSWORDS: passwords are hashed meanwhile. There are few connections, and no other page uses them.
    """

    PAGES = "pages"
    SAFETY = "safety"
    PASSWORDS = "passwords"


@dataclass(frozen=True, slots=True)
class Page:
    """One URL for signed-in users.

    `right` is the right it needs; None: none. With `{merchant_id:int}` in the path the right is checked for
    that merchant, otherwise for the platform. With `own_book` a merchant's user may open it too, for its own
    book: the handler then shows only `request.merchant_id`. `extends_session` is False for requests that an
    open page makes by itself: they do not keep the session alive. `keeps_form` is False for forms with
    secrets: they are not given back after a session has ended. With `max_file_bytes` a form may have a file.
    No merchant's user has the right for a page of the pool SAFETY.
    """

    path: str
    handler: Handler | Work
    right: Right | None
    method: str = GET
    own_book: bool = False
    extends_session: bool = True
    keeps_form: bool = True
    max_file_bytes: int = 0
    pool: PoolName = PoolName.PAGES


@dataclass(frozen=True, slots=True)
class PublicPage:
    """One URL for users who are not signed in yet. Nothing is checked before its handler runs, which uses the
    connections of PASSWORDS.
    """

    path: str
    handler: PublicHandler
    method: str = GET


def read_id(request: ConsoleRequest, name: str) -> int:
    """A number in the path. Raises HTTPException 404 if no id can have this value."""
    number = int(request.http.path_params[name])
    if number > MAX_BIGINT:
        raise HTTPException(404)
    return number


def find_owner(operator: Operator) -> Owner:
    """Whose turn an operator's requests wait for."""
    if operator.merchant_id is None:
        return person_of_platform(operator.operator_id)
    return person_of_merchant(operator.merchant_id, operator.operator_id)
