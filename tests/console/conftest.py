"""A running console and people in front of it: each with a browser's cookies, password and authenticator."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from itertools import count
from typing import Any

import httpx
import pytest
from tests.journeys.conftest import Platform, clock, platform, shop

from merchant_wallet.console.request import COOKIE, CSRF_KEY
from merchant_wallet.operators import records, sessions, totp
from merchant_wallet.operators.roles import Operator
from merchant_wallet.web import csrf

__all__ = ["clock", "platform", "shop"]

PASSWORD = "seven grey herons wade"
SIGN_IN = "/console/sign-in"
_names = count(1)


@dataclass
class Visitor:
    """Somebody in front of the console: follows no redirect by itself, keeps cookies, fills forms in."""

    platform: Platform
    operator: Operator | None = None
    password: str = PASSWORD
    secret: str = ""
    codes: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        url = f"http://127.0.0.1:{self.platform.port}"
        self.http = httpx.Client(base_url=url, headers=self.headers, trust_env=False, timeout=30)

    @property
    def name(self) -> str:
        assert self.operator is not None
        return self.operator.name

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.http.get(path, **more)

    def page(self, path: str) -> str:
        """A page that is there."""
        answer = self.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {tell(answer.text)}"
        return answer.text

    def follow(self, answer: httpx.Response) -> httpx.Response:
        """Go where an answer leads."""
        assert answer.status_code == 303, f"{answer.status_code} {tell(answer.text)}"
        return self.get(answer.headers["location"])

    def post(
        self, path: str, form: dict[str, Any] | None = None, *, seen: str = "", **more: Any
    ) -> httpx.Response:
        """Send a form as our own page would; its token is that of the page `seen`, or the session's own."""
        token = csrf_of(self.page(seen)) if seen else self.token()
        return self.http.post(path, data={"csrf": token, **(form or {})}, **more)

    def token(self) -> str:
        """The token that this visitor's forms carry."""
        session = self.http.cookies.get(COOKIE)
        key = self.platform.base.keyring.derive(CSRF_KEY)
        return "" if session is None else csrf.mask(csrf.make_token(key, session))

    def show_password(self, back: str = "") -> httpx.Response:
        """The first step of signing in."""
        form = {"name": self.name, "password": self.password, "back": back}
        return self.post(SIGN_IN, form, seen=SIGN_IN)

    def code(self, away: int = 0) -> str:
        """What the authenticator shows, `away` steps of 30 seconds from now."""
        return totp.make_code(self.secret, self.platform.clock() // totp.STEP_MS + away)

    def enrol(self) -> httpx.Response:
        """Sign in for the first time."""
        page = self.follow(self.show_password()).text
        self.secret = secret_of(page)
        return self.post(f"{SIGN_IN}/enrol", {"code": self.code()}, seen=f"{SIGN_IN}/enrol")

    def sign_in(self, away: int = 0) -> httpx.Response:
        """Sign in with both factors."""
        self.follow(self.show_password())
        return self.post(f"{SIGN_IN}/code", {"code": self.code(away)}, seen=f"{SIGN_IN}/code")


def csrf_of(page: str) -> str:
    """The token in a page's forms."""
    found = re.search(r'name="csrf" (?:content|value)="([0-9a-f]{32,64})"', page)
    assert found is not None, tell(page)
    return found[1]


def secret_of(page: str) -> str:
    """The authenticator's key on the page that sets it up."""
    found = re.search(r"data-secret>([A-Z2-7]{32})<", page)
    assert found is not None, tell(page)
    return found[1]


def tell(page: str) -> str:
    """What a page says, without its markup."""
    body = re.sub(r"(?s)<(script|style|svg|head)\b.*?</\1>", " ", page)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


class People:
    """Makes operators and puts them in front of the console."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.made: list[Visitor] = []

    def stranger(self, **headers: str) -> Visitor:
        """Somebody who is not signed in."""
        return self._keep(Visitor(self.platform, headers=headers))

    def newcomer(self, role: str = "operator", merchant_id: int | None = None, name: str = "") -> Visitor:
        """An operator who has never signed in."""
        name = name or f"{role}{next(_names)}"
        at_ms = self.platform.clock()
        made = self.platform.operate(
            lambda conn: records.create(
                conn, name, role, password=PASSWORD, merchant_id=merchant_id, at_ms=at_ms
            )
        )
        return self._keep(Visitor(self.platform, made.operator))

    def seat(self, role: str, merchant_id: int | None = None, name: str = "") -> Visitor:
        """An operator who is signed in: the session is made as signing in makes it, without the steps."""
        visitor = self.newcomer(role, merchant_id, name)
        return self.give_session(visitor)

    def meet(self, operator: Operator) -> Visitor:
        """Somebody whom others have made an operator, not signed in yet."""
        return self._keep(Visitor(self.platform, operator))

    def again(self, known: Visitor) -> Visitor:
        """The same operator in another browser, signed in as well."""
        return self.give_session(self._keep(Visitor(self.platform, known.operator)))

    def give_session(self, visitor: Visitor) -> Visitor:
        """Have somebody be signed in, with a session of its own."""
        at_ms, operator = self.platform.clock(), visitor.operator
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
        visitor.http.cookies.set(COOKIE, token, domain="127.0.0.1", path="/console")
        return visitor

    def _keep(self, visitor: Visitor) -> Visitor:
        self.made.append(visitor)
        return visitor

    def leave(self) -> None:
        for visitor in self.made:
            visitor.http.close()


@pytest.fixture
def people(platform: Platform) -> Iterator[People]:
    """Whoever comes to the console."""
    made = People(platform)
    yield made
    made.leave()
