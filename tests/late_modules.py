"""Modules of other projects that few tests need and that take long to import.

Each worker imports every file of tests to collect them, so what is imported there is paid for three times.
"""

from importlib import import_module
from typing import Any


class LateModule:
    """A module that is imported when something of it is first used.

    pytest asks every object of a file for private names and marks, to see whether it is a test. This is no
    use of the module. A `LazyLoader` takes it for one.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_") or attribute == "pytestmark":
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)


eth_account = LateModule("eth_account")
eth_keyfile = LateModule("eth_keyfile")
openapi_spec_validator = LateModule("openapi_spec_validator")
pypdf = LateModule("pypdf")
web3 = LateModule("web3")
