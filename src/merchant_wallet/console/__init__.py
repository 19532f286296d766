"""The console: a site for operators, auditors and merchants' own users.

Rules: `operators.roles` decides what a user may do, for every request. Every change is in the audit log.
"""

from merchant_wallet.console.routes import build_site

__all__ = ["build_site"]
