"""The console: where operators, auditors and merchants' own people look and decide.

Rules: what someone may do is asked of `operators.roles` for every request; what changes something is in the
audit log.
"""

from merchant_wallet.console.routes import build_site

__all__ = ["build_site"]
