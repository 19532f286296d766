"""Where the texts of the settings come from: the environment, files that it names, and the settings file.

Rules:
- `WALLET_NAME` is in the environment, or `name` in the TOML file that `WALLET_CONFIG` names. The environment
  wins. An empty value counts as not set.
- A secret may be in a file of its own: `WALLET_NAME_FILE` or `name_file` names the file. systemd may pass it
  as a credential, whose name is `WALLET_NAME`. What the environment says wins over a credential, and a
  credential wins over the settings file.
- A name that is unknown, or said twice at one place, is refused. A misspelt limit that is ignored would be
  worse than a service that does not start.
- Only its owner and its group may read a file with a secret. What a container engine or Kubernetes mounts for
  one container is taken as it is.
- Kubernetes puts the address of each Service into every pod. For a Service `wallet` these variables begin
  like our settings, and `WALLET_PORT` is one. They are recognised by their values, and ignored.
- Nothing here reads `os.environ` or parses a value.
"""

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from merchant_wallet.base.mounted_secrets import MODE_ADVICE, is_mounted_secret
from merchant_wallet.base.settings import SETTINGS

PREFIX: Final = "WALLET_"
FILE_SETTING: Final = "WALLET_CONFIG"
CREDENTIALS: Final = "CREDENTIALS_DIRECTORY"
"""Set by systemd for a service with `LoadCredential=`."""
FILE_SUFFIX: Final = "_file"
MAX_BYTES: Final = 65_536
LINKS_ADVICE: Final = "set enableServiceLinks: false for the pod"
_ADDRESS: Final = r"(?:[0-9.]+|\[?[0-9a-fA-F:.]+\]?)"
_is_service_link: Final = re.compile(
    rf"{PREFIX}(?:[A-Z0-9_]+_)?(?:SERVICE_HOST={_ADDRESS}|SERVICE_PORT(?:_[A-Z0-9_]+)?=[0-9]+"
    rf"|PORT(?:_[0-9]+_[A-Z]+)?=[a-z]+://{_ADDRESS}:[0-9]+"
    rf"|PORT_[0-9]+_[A-Z]+_(?:PROTO=[a-z]+|PORT=[0-9]+|ADDR={_ADDRESS}))"
).fullmatch
"""A variable that Kubernetes makes of a Service, with its value."""


class ConfigError(Exception):
    """A setting, or the master key's file, breaks its rule. The text names both."""


class Given(NamedTuple):
    """The text of one setting, and where it is from, for a sentence."""

    text: str
    source: str


def read_given(env: Mapping[str, str], toml_path: Path | None = None) -> dict[str, Given]:
    """Every setting that is given anywhere, by its name. Raises ConfigError."""
    path = toml_path or (Path(env[FILE_SETTING]).expanduser() if env.get(FILE_SETTING) else None)
    return {**_read_toml(path), **_read_credentials(env), **_read_environment(env)}


def put_into_environment(env: Mapping[str, str], *, with_file: bool) -> dict[str, str]:
    """The same environment with the secrets of files and credentials as values, for a child process.

    `with_file` adds the settings file's values, for a process that can't read that file. Raises ConfigError.
    """
    told = read_given(env) if with_file else {**_read_credentials(env), **_read_environment(env)}
    dropped = {CREDENTIALS, *list_service_links(env)} | ({FILE_SETTING} if with_file else set())
    spelt = {PREFIX + name.upper(): given.text for name, given in told.items()}
    kept = {
        name: text
        for name, text in env.items()
        if name not in dropped and not (name.startswith(PREFIX) and _names_file(_lower(name)))
    }
    return {**kept, **spelt}


def list_service_links(env: Mapping[str, str]) -> list[str]:
    """The variables that look like settings, but are addresses of Kubernetes' Services. They are ignored."""
    return sorted(name for name, text in env.items() if _is_service_link(f"{name}={text}"))


def _lower(variable: str) -> str:
    return variable.removeprefix(PREFIX).lower()


def _names_file(name: str) -> bool:
    """Whether this is not a setting, but names the file of one."""
    base = name.removesuffix(FILE_SUFFIX)
    return name not in SETTINGS and base != name and base in SETTINGS and SETTINGS[base].secret


def _read_environment(env: Mapping[str, str]) -> dict[str, Given]:
    left_out = {FILE_SETTING, *list_service_links(env)}
    texts = {
        variable: env[variable]
        for variable in sorted(env)
        if variable.startswith(PREFIX) and variable not in left_out
    }
    return dict(_resolve(texts, "{name}", upper=True))


def _resolve(texts: Mapping[str, str], shown: str, *, upper: bool) -> Iterator[tuple[str, Given]]:
    """Settings by their names, from spelt names with texts. Files of secrets are read."""
    seen: dict[str, str] = {}
    for spelt, text in texts.items():
        name, source = _lower(spelt) if upper else spelt, shown.format(name=spelt)
        is_file = _names_file(name)
        name = name.removesuffix(FILE_SUFFIX) if is_file else _known(name, source)
        if not text:
            continue
        if name in seen:
            raise ConfigError(f"{seen[name]} and {source} are both set: set one of them.")
        seen[name] = source
        if is_file:
            yield name, Given(_read_secret(Path(text).expanduser(), source), source)
        else:
            yield name, Given(text, source)


def _read_credentials(env: Mapping[str, str]) -> dict[str, Given]:
    """The credentials whose names are those of secrets. Others may be for somebody else."""
    if not env.get(CREDENTIALS):
        return {}
    folder = Path(env[CREDENTIALS])
    found: dict[str, Given] = {}
    for name, setting in SETTINGS.items():
        variable = PREFIX + name.upper()
        if setting.secret and (folder / variable).is_file():
            source = f"the credential {variable}"
            found[name] = Given(_read_secret(folder / variable, source), source)
    return {name: given for name, given in found.items() if given.text}


def _read_secret(path: Path, source: str) -> str:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(MAX_BYTES + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        advice = f" ({MODE_ADVICE})" if isinstance(error, PermissionError) else ""
        raise ConfigError(
            f"{source} names {path}, which cannot be read: {error.strerror}{advice}."
        ) from error
    except UnicodeDecodeError:
        raise ConfigError(f"{source} names {path}, which is not UTF-8 text.") from None
    if mode & stat.S_IROTH and not is_mounted_secret(path):
        raise ConfigError(
            f"{path}, which {source} names, can be read by everybody: chmod 640 it ({MODE_ADVICE})."
        )
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{path}, which {source} names, has more than {MAX_BYTES} bytes.")
    return text.rstrip("\r\n")


def _known(name: str, shown: str) -> str:
    if name in SETTINGS:
        return name
    near = difflib.get_close_matches(name, SETTINGS, n=1)
    hint = f" Did you mean {PREFIX}{near[0].upper()}?" if near else ""
    raise ConfigError(f"{shown} is not a setting of this service.{hint}")


def _read_toml(path: Path | None) -> dict[str, Given]:
    """The file's settings as texts, for the same parsers as the environment's. Decimals stay as written."""
    if path is None:
        return {}
    try:
        with path.open("rb") as file:
            readable_by_all = bool(os.fstat(file.fileno()).st_mode & stat.S_IROTH)
            # Some editors write a byte order mark before UTF-8.
            content = tomllib.loads(file.read().decode("utf-8-sig"), parse_float=str)
    except OSError as error:
        raise ConfigError(f"the settings file {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the settings file {path} is not TOML: {error}.") from error
    texts = {name: _as_text(value, f"{name} in {path}") for name, value in content.items()}
    given = dict(_resolve(texts, f"{{name}} in {path}", upper=False))
    for name in given:
        if not SETTINGS[name].in_file:
            raise ConfigError(f"{name} must not be set in {path}, since all processes read that file.")
    secret = [name for name in given if SETTINGS[name].secret and texts.get(name)]
    if secret and readable_by_all and not is_mounted_secret(path):
        raise ConfigError(
            f"{path} holds {secret[0]} and can be read by everybody: chmod 640 it ({MODE_ADVICE})."
        )
    return given


def _as_text(value: object, shown: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ",".join(value)
    raise ConfigError(f"{shown} must be text, a number, true, false or a list of texts.")
