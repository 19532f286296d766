"""Where the running `up` of a data folder keeps its books, for commands that are given that folder alone.

Rules:
- The note exists only while an `up` runs that the data folder does not describe: it was given its database
  or its checkpoints' folder, it pays real money, or it asks for two people.
- It may hold the database's password. Only its owner may read it, and it is replaced whole.
- The master key is never written there.
"""

from pathlib import Path
from typing import Any, Final

import msgspec

from merchant_wallet.base.config import DATA_DIR_MODE, ConfigError
from merchant_wallet.base.disk import replace_file
from merchant_wallet.base.settings import Settings

RUNTIME_FILE: Final = "service.json"
SHARED: Final = ("sandbox", "sandbox_two_people", "operator_wait_s", "proposal_deadline_s", "rate_band")
"""Settings that decide who may change what. A command takes them from the running service."""


class RuntimeInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The database's URL and the checkpoints' folder; None is "the data folder's own".

    The rest are settings that the service and its commands must share; None is "not told".
    """

    database_url: str | None = None
    checkpoint_dir: str | None = None
    sandbox: bool | None = None
    sandbox_two_people: bool | None = None
    operator_wait_s: int | None = None
    proposal_deadline_s: int | None = None
    rate_band: int | None = None

    def list_shared(self) -> dict[str, Any]:
        """The shared settings that the note tells, by name."""
        told = {name: getattr(self, name) for name in SHARED}
        return {name: value for name, value in told.items() if value is not None}


def write_runtime_file(settings: Settings) -> bool:
    """Write down what was told from outside; with nothing to tell, remove an old note. Raises OSError.

    Gives whether there is a note now.
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
    """Remove the note, if there is one. Raises OSError."""
    (data_dir / RUNTIME_FILE).unlink(missing_ok=True)


def read_runtime_file(data_dir: Path) -> RuntimeInfo:
    """What the note says, nothing when there is none. Raises ConfigError when it is malformed, OSError."""
    path = data_dir / RUNTIME_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=RuntimeInfo)
    except FileNotFoundError:
        return RuntimeInfo()
    except msgspec.DecodeError:
        # The cause is left out: it may hold the password.
        raise ConfigError(f"{path} is malformed; start `up` again, or remove it.") from None
