"""Every URL of the wallet page, one line each."""

from dataclasses import replace
from typing import Final

from merchant_wallet.wallet_site import (
    arrivals,
    brand,
    events,
    home,
    home_screen,
    login,
    profile,
    receipts,
    receive,
    security,
    statements,
)
from merchant_wallet.wallet_site.request import ANYONE, COOKIE, HOME, POST, Page, make_route
from merchant_wallet.web.connections import Connections
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.site import Site

PAGES = (
    Page("/wallet", home.show_home),
    Page("/wallet/activity", home.show_activity),
    Page("/wallet/activity/{entry_id:int}", home.show_entry),
    Page("/wallet/arrivals", arrivals.show_arrivals, extends_session=False),
    Page("/wallet/deposits", home.show_deposits, extends_session=False),
    Page("/wallet/receive", receive.show_receive),
    Page("/wallet/security", security.show_security),
    Page("/wallet/security/pin", security.set_pin, POST, checks_pin=True),
    Page("/wallet/security/debits", security.set_debits, POST, checks_pin=True),
    Page("/wallet/security/limits", security.set_limits, POST, checks_pin=True),
    Page("/wallet/profile", profile.show_profile),
    Page("/wallet/profile/name", profile.set_name, POST),
    Page("/wallet/profile/language", profile.set_language, POST),
    Page("/wallet/manifest.webmanifest", home_screen.show_manifest, extends_session=False),
    Page("/wallet/statements", statements.show_statements),
    Page("/wallet/statements/{month}.pdf", statements.download_statement),
    Page("/wallet/leave", login.sign_out, POST),
)

PIN_CONNECTIONS: Final = 2
"""The number of PINs that are compared at the same time."""


def build_site(context: PageContext) -> Site:
    """The wallet site as a part of the web application.

    PINs are compared over separate connections: whoever tries many takes none from the pages.
    """
    context.responses.prepare("web/", "wallet/")
    for_pins = replace(context, connections=Connections(context.database_url, PIN_CONNECTIONS))
    hub = events.make_hub(context)
    routes = [
        login.make_link_route(context),
        login.make_signed_out_route(context),
        *receipts.make_receipt_routes(context),
        events.make_events_route(context, hub),
        home_screen.make_start_route(context),
        *brand.make_routes(context),
        *(make_route(for_pins if page.checks_pin else context, page) for page in PAGES),
    ]
    return Site(
        context,
        ("/w", HOME),
        HOME,
        routes,
        [hub.close, for_pins.connections.close],
        frame_ancestors=ANYONE,
        cookie=COOKIE,
    )
