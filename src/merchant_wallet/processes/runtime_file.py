"""Runtime file of a running `up`: tells commands that know only the data folder how to reach its database.

Rules:
- The file exists only while an `up` runs that the data folder does not describe: its database or its
  checkpoints' folder was set from outside, it pays real money, or it needs two people.
- It may contain the database's password. Only its owner may read it, and it is replaced atomically.
- It never contains the master key.
"""

from pathlib import Path
from typing import Any, Final

import msgspec

from merchant_wallet.base.atomic_files import replace_file
from merchant_wallet.base.config import DATA_DIR_MODE, ConfigError
from merchant_wallet.base.settings import Settings

RUNTIME_FILE: Final = "service.json"
SHARED: Final = (
    "sandbox",
    "sandbox_two_people",
    "operator_wait_s",
    "secret_wait_s",
    "approval_day_limit",
    "proposal_deadline_s",
    "rate_band",
)
"""Settings that decide who may change what. Commands take them from the running service."""


class RuntimeInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The database's URL and the checkpoints' folder; None means "the data folder's own".

    The rest are settings that the service and its commands must share; None means "not set".
    """

    database_url: str | None = None
    checkpoint_dir: str | None = None
    sandbox: bool | None = None
    sandbox_two_people: bool | None = None
    operator_wait_s: int | None = None
    secret_wait_s: int | None = None
    approval_day_limit: int | None = None
    proposal_deadline_s: int | None = None
    rate_band: int | None = None

    def list_shared(self) -> dict[str, Any]:
        """The shared settings in the file, by name."""
        told = {name: getattr(self, name) for name in SHARED}
        return {name: value for name, value in told.items() if value is not None}


def write_runtime_file(settings: Settings) -> bool:
    """Write what was set from outside, or remove an old file if nothing was. Raises OSError.

    Returns whether there is a file now.
    """
    alone = settings.database_url is None and settings.checkpoint_dir is None
    if alone and not settings.needs_two_people:
        remove_runtime_file(settings.data)
        return False
    folder = settings.checkpoint_dir
    found = RuntimeInfo(
        settings.database_url,
        None if folder is None else str(folder.absolute()),
        **{name: getattr(settings, name) for name in SHARED},
    )
    settings.data.mkdir(mode=DATA_DIR_MODE, parents=True, exist_ok=True)
    replace_file(settings.data / RUNTIME_FILE, msgspec.json.encode(found) + b"\n")
    return True


def remove_runtime_file(data_dir: Path) -> None:
    """Remove the file, if there is one. Raises OSError."""
    (data_dir / RUNTIME_FILE).unlink(missing_ok=True)


def read_runtime_file(data_dir: Path) -> RuntimeInfo:
    """The content of the file; empty if there is none. Raises OSError, and ConfigError if it is malformed."""
    path = data_dir / RUNTIME_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=RuntimeInfo)
    except FileNotFoundError:
        return RuntimeInfo()
    except msgspec.DecodeError:
        # The cause is left out: it may contain the password.
        raise ConfigError(f"{path} is malformed; start `up` again, or remove it.") from None
