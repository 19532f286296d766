"""Whom a command calls as: a profile of a file, or the environment.

Rules:
- The file has secrets, so only its owner may read it. No repr and no message has a secret.
- What nobody sees at the ends of a value, such as a line break or a no-break space, is left out. Inside a
  value it is named.
"""

import os
import stat
import tomllib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merchant_wallet_client.calls import Retries
from merchant_wallet_client.cli.terminal import Failure
from merchant_wallet_client.signing import HMAC, MD5, Method

if TYPE_CHECKING:
    from merchant_wallet_client.client import MerchantWallet

PREFIX: Final = "MERCHANT_WALLET_"
OLD_SECRET: Final = "MERCHANT_APP_SECRET"
"""The variable of `merchant-wallet sign`."""
DEFAULT: Final = "default"
MARGINS: Final = " \t\r\n\u00a0\u200b\u2060\ufeff"
"""What copying from pages and editors may add to a value."""
LIVE_PREFIX: Final = "mk_live_"
KEYS: Final = ("base_url", "app_key", "secret", "callback_secret", "sign_method")
VARIABLES: Final = ("URL", "APP_KEY", "SECRET", "CALLBACK_SECRET", "SIGN_METHOD")


@dataclass(frozen=True)
class Profile:
    """A merchant's keys and the service's address. Any of them may be missing."""

    name: str
    base_url: str = ""
    app_key: str = ""
    secret: str = field(default="", repr=False)
    callback_secret: str = field(default="", repr=False)
    sign_method: Method = HMAC

    @property
    def is_live(self) -> bool:
        """Whether real money moves. Keys without a prefix do not tell."""
        return self.app_key.startswith(LIVE_PREFIX)

    @property
    def callback_secrets(self) -> list[str]:
        """What callbacks are checked with. Raises Failure."""
        found = [secret for secret in (self.callback_secret, self.secret) if secret]
        if not found:
            raise Failure(f"{self.name} has no callback_secret and no secret to check callbacks with.")
        return found

    def require(self, *keys: str) -> None:
        """Check that these are there. Raises Failure."""
        for key in keys:
            if not getattr(self, key):
                raise Failure(f"{self.name} has no {key}. {_explain_ways()}")

    def open(self, retries: Retries | None = None) -> "AbstractContextManager[MerchantWallet]":
        """The client. Raises Failure."""
        from merchant_wallet_client.client import MerchantWallet

        self.require("base_url", "app_key", "secret")
        return MerchantWallet(
            self.base_url, self.app_key, self.secret, sign_method=self.sign_method, retries=retries
        )


def find_profile(name: str | None, environment: Mapping[str, str] | None = None) -> Profile:
    """The profile with this name; without a name the environment's, else `default`. Raises Failure."""
    environment = os.environ if environment is None else environment
    if name is None and (found := _read_environment(environment)) is not None:
        return found
    path = find_path(environment)
    if not path.exists():
        raise Failure(f"There is no {path}. {_explain_ways()}")
    return _read_profile(path, name or DEFAULT)


def find_path(environment: Mapping[str, str]) -> Path:
    """The file of profiles."""
    if named := environment.get(f"{PREFIX}PROFILES"):
        return Path(named)
    home = environment.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "merchant-wallet" / "profiles.toml"


def _read_environment(environment: Mapping[str, str]) -> Profile | None:
    told = {
        key: environment[PREFIX + name]
        for key, name in zip(KEYS, VARIABLES, strict=True)
        if environment.get(PREFIX + name)
    }
    if OLD_SECRET in environment:
        told.setdefault("secret", environment[OLD_SECRET])
    return _make_profile("The environment", told) if told else None


def _read_profile(path: Path, name: str) -> Profile:
    mode = path.stat().st_mode
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise Failure(f"Others may read {path}, which has secrets. Type: chmod 600 '{path}'")
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, OSError) as error:
        raise Failure(f"{path} can't be read: {error}") from None
    if not isinstance(told.get(name), dict):
        raise Failure(f"{path} has no profile [{name}]; there are: {', '.join(told) or 'none'}.")
    for key in told[name]:
        if key not in KEYS:
            raise Failure(f"{path}, [{name}]: there is no {key!r}; there are {', '.join(KEYS)}.")
    return _make_profile(f"The profile {name}", told[name])


def _make_profile(name: str, told: Mapping[str, Any]) -> Profile:
    method: Method = told.get("sign_method", HMAC)
    if method not in (HMAC, MD5):
        raise Failure(f"{name}: sign_method must be HMAC or MD5.")
    texts = {key: _clean(name, key, str(value)) for key, value in told.items() if key != "sign_method"}
    return Profile(name, **texts, sign_method=method)


def _clean(name: str, key: str, text: str) -> str:
    text = text.strip(MARGINS)
    for place, character in enumerate(text, start=1):
        if not character.isprintable():
            odd = f"U+{ord(character):04X} at character {place}"
            raise Failure(f"{name}: {key} has a character that nobody sees, {odd}. Type it anew.")
    return text


def _explain_ways() -> str:
    variables = ", ".join(PREFIX + name for name in VARIABLES[:3])
    return (
        f"Set {variables}, or write a file (mode 600) with\n[default]\n"
        'base_url = "https://wallet.example"\napp_key = "mk_test_..."\nsecret = "..."'
    )
