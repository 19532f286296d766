"""The web side of test mode: the endpoints of the operations and of the control actions."""

from collections.abc import Sequence
from contextlib import AsyncExitStack

from merchant_wallet.api.dependencies import Dependencies
from merchant_wallet.api.endpoint import Endpoint
from merchant_wallet.api.operation import Operation
from merchant_wallet.sandbox.actions import ACTIONS
from merchant_wallet.sandbox.context import SandboxContext
from merchant_wallet.sandbox.control import build_control_endpoints
from merchant_wallet.sandbox.listening import NAME, CallbackListeners, ListenEndpoint
from merchant_wallet.sandbox.play import SandboxEndpoint


def build_sandbox_endpoints(
    operations: Sequence[Operation],
    dependencies: Dependencies,
    context: SandboxContext,
    quick: SandboxContext,
    stack: AsyncExitStack,
) -> dict[str, Endpoint]:
    """All endpoints of a sandbox by their paths. The streams end with the stack.

    `quick` has connections that no action waits with.
    """
    listeners = CallbackListeners(quick)
    stack.push_async_callback(listeners.close)
    played = {operation.path: SandboxEndpoint(operation, dependencies, quick) for operation in operations}
    listen = ListenEndpoint(dependencies, context, listeners)
    return {
        **played,
        **build_control_endpoints(ACTIONS, dependencies, context),
        f"/sandbox/{NAME}": listen,
    }
