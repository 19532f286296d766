"""A running console, and operators who use it: each has a browser's cookies, a password and an
authenticator.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from itertools import count
from typing import Any

import httpx
import pytest
from tests.journeys.conftest import Clock, Platform, clock, platform, shop

from merchant_wallet.base.units import DAY_MS, HOUR_MS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.console.session_cookie import COOKIE, CSRF_KEY
from merchant_wallet.operators import records, sessions, totp
from merchant_wallet.operators.roles import Operator
from merchant_wallet.web import csrf

__all__ = ["clock", "platform", "shop"]

PASSWORD = "seven grey herons wade"
SIGN_IN = "/console/sign-in"
_names = count(1)


@dataclass
class ConsoleUser:
    """One browser at the console. It keeps cookies, fills in forms, and follows redirects only with
    `follow`.
    """

    platform: Platform
    operator: Operator | None = None
    password: str = PASSWORD
    secret: str = ""
    codes: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        url = f"http://127.0.0.1:{self.platform.port}"
        # Without TLS there is nothing to verify, and reading the certificates takes longer than a page.
        self.http = httpx.Client(
            base_url=url, headers=self.headers, trust_env=False, verify=False, timeout=30
        )

    @property
    def name(self) -> str:
        assert self.operator is not None
        return self.operator.name

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.http.get(path, **more)

    def page(self, path: str, **more: Any) -> str:
        """The text of a page that must answer 200."""
        answer = self.get(path, **more)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {read_text(answer.text)}"
        return answer.text

    def follow(self, answer: httpx.Response) -> httpx.Response:
        """Follow a redirect."""
        assert answer.status_code == 303, f"{answer.status_code} {read_text(answer.text)}"
        return self.get(answer.headers["location"])

    def post(
        self, path: str, form: dict[str, Any] | None = None, *, seen: str = "", **more: Any
    ) -> httpx.Response:
        """Send a form as the console's own page would. The CSRF token comes from the page `seen`, or else
        from the session.
        """
        token = csrf_of(self.page(seen)) if seen else self.token()
        return self.http.post(path, data={"csrf": token, **(form or {})}, **more)

    def token(self) -> str:
        """The CSRF token of this visitor's session."""
        session = self.http.cookies.get(COOKIE)
        key = self.platform.base.keyring.derive(CSRF_KEY)
        return "" if session is None else csrf.mask(csrf.make_token(key, session))

    def show_password(self, back: str = "") -> httpx.Response:
        """The first step of signing in: name and password."""
        form = {"name": self.name, "password": self.password, "back": back}
        return self.post(SIGN_IN, form, seen=SIGN_IN)

    def code(self, away: int = 0) -> str:
        """The authenticator's code, `away` steps of 30 seconds from now."""
        return totp.make_code(self.secret, self.platform.clock() // totp.STEP_MS + away)

    def enrol(self) -> httpx.Response:
        """Sign in for the first time, and set up the authenticator."""
        page = self.follow(self.show_password()).text
        self.secret = secret_of(page)
        return self.http.post(f"{SIGN_IN}/enrol", data={"csrf": csrf_of(page), "code": self.code()})

    def sign_in(self, away: int = 0) -> httpx.Response:
        """Sign in with both factors."""
        page = self.follow(self.show_password()).text
        return self.http.post(f"{SIGN_IN}/code", data={"csrf": csrf_of(page), "code": self.code(away)})


def csrf_of(page: str) -> str:
    """The CSRF token in a page's forms."""
    found = re.search(r'name="csrf" (?:content|value)="([0-9a-f]{32,64})"', page)
    assert found is not None, read_text(page)
    return found[1]


def secret_of(page: str) -> str:
    """The authenticator's secret on the page that sets it up."""
    found = re.search(r"data-secret>([A-Z2-7]{32})<", page)
    assert found is not None, read_text(page)
    return found[1]


def read_text(page: str) -> str:
    """A page's text without its markup."""
    body = re.sub(r"(?s)<(script|style|svg|head)\b.*?</\1>", " ", page)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


class People:
    """Creates operators, and a visitor of the console for each."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.made: list[ConsoleUser] = []

    def stranger(self, **headers: str) -> ConsoleUser:
        """A visitor who is not signed in."""
        return self._keep(ConsoleUser(self.platform, headers=headers))

    def newcomer(self, role: str = "operator", merchant_id: int | None = None, name: str = "") -> ConsoleUser:
        """An operator who has never signed in."""
        name = name or f"{role}{next(_names)}"
        at_ms = self.platform.clock()
        made = self.platform.operate(
            lambda conn: records.create(
                conn, name, role, password=PASSWORD, merchant_id=merchant_id, at_ms=at_ms
            )
        )
        return self._keep(ConsoleUser(self.platform, made.operator))

    def signed_in(self, role: str, merchant_id: int | None = None, name: str = "") -> ConsoleUser:
        """A signed-in operator. The session is opened directly, without the pages of signing in."""
        person = self.newcomer(role, merchant_id, name)
        return self.give_session(person)

    def meet(self, operator: Operator, *, has_own_password: bool = True) -> ConsoleUser:
        """A visitor for an operator that another operator created; not signed in yet.

        `has_own_password`: has chosen one since the first one was handed over.
        """
        if has_own_password:
            self.platform.rows(
                "update operator set must_change_password = false where operator_id = %s",
                operator.operator_id,
            )
        return self._keep(ConsoleUser(self.platform, operator))

    def again(self, known: ConsoleUser) -> ConsoleUser:
        """The same operator in another browser, signed in there too."""
        return self.give_session(self._keep(ConsoleUser(self.platform, known.operator)))

    def give_session(self, person: ConsoleUser) -> ConsoleUser:
        """Open a session for a visitor."""
        at_ms, operator = self.platform.clock(), person.operator
        assert operator is not None
        token = self.platform.operate(
            lambda conn: sessions.open_session(
                conn,
                operator.operator_id,
                totp_passed=True,
                source="192.0.2.7",
                user_agent="a test",
                at_ms=at_ms,
            )
        )
        person.http.cookies.set(COOKIE, token, domain="127.0.0.1", path="/console")
        return person

    def _keep(self, person: ConsoleUser) -> ConsoleUser:
        self.made.append(person)
        return person

    def leave(self) -> None:
        for person in self.made:
            person.http.close()


@pytest.fixture
def people(platform: Platform) -> Iterator[People]:
    """Creates operators, and closes their browsers at the end."""
    made = People(platform)
    yield made
    made.leave()


@pytest.fixture
def time_passes(platform: Platform, clock: Clock) -> None:
    """Move the clock on, so that failed attempts of earlier tests no longer count."""
    clock.advance(2 * HOUR_MS)
    platform.operate(lambda conn: ensure_nonce_partitions(conn, clock() // DAY_MS))
