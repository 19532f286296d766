"""A live service has nothing of test mode: it does not even load its code."""

import subprocess
import sys

from merchant_wallet.base.settings import Settings
from merchant_wallet.callbacks.sender import CallbackSender
from merchant_wallet.processes import worker
from merchant_wallet.sandbox.callback_sender import SandboxCallbackSender

LOADED = """
import sys
from merchant_wallet.base.settings import Settings
from merchant_wallet.processes import app, up, web, worker
worker.find_sender(Settings(sandbox=SANDBOX))
print(sorted(name for name in sys.modules if "merchant_wallet.sandbox" in name or "test_mode" in name)[:1])
"""


def list_loaded(*, sandbox: bool) -> str:
    program = LOADED.replace("SANDBOX", str(sandbox))
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_live_service_does_not_load_test_mode() -> None:
    assert list_loaded(sandbox=False) == "[]"
    assert list_loaded(sandbox=True) == "['merchant_wallet.processes.test_mode']"


def test_callbacks_of_a_live_service_are_sent_by_the_plain_sender() -> None:
    assert worker.find_sender(Settings(sandbox=False)) is CallbackSender
    assert worker.find_sender(Settings(sandbox=True)) is SandboxCallbackSender
