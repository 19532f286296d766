"""A live service has nothing of test mode: it does not even load its code. Nor that of traces, without a
collector for them.
"""

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
for sandbox in (False, True):
    worker.find_sender(Settings(sandbox=sandbox))
    words = "merchant_wallet.sandbox", "test_mode", "opentelemetry"
    print(sorted(name for name in sys.modules if any(word in name for word in words))[:1])
"""


def test_a_live_service_loads_neither_test_mode_nor_traces() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True).stdout
    assert loaded.splitlines() == ["[]", "['merchant_wallet.processes.test_mode']"]


def test_callbacks_of_a_live_service_are_sent_by_the_plain_sender() -> None:
    assert worker.find_sender(Settings(sandbox=False)) is CallbackSender
    assert worker.find_sender(Settings(sandbox=True)) is SandboxCallbackSender
