"""The wallet page: what a sub-user sees and decides, opened by the link that the merchant was given.

Rules: nobody sees more than the wallet his session was opened for, whatever ids he types.
"""

from merchant_wallet.wallet_site.routes import build_site

__all__ = ["build_site"]
