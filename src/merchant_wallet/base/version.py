"""The version of this program. `pyproject.toml` alone names it; an installation carries it as metadata."""

from importlib.metadata import version


def read_version() -> str:
    """Such as `0.1.0`."""
    return version("merchant-wallet")
