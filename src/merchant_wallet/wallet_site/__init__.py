"""The wallet page: what a sub-user sees and changes, opened by the link that the merchant gets.

Rules: a session shows only its own wallet, whatever ids a request names.
"""

from merchant_wallet.wallet_site.routes import build_site

__all__ = ["build_site"]
