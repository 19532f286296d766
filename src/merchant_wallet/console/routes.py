"""Every URL of the console: one line for each module's list."""

from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Final

from merchant_wallet.console import (
    account,
    adjustments,
    audit_log,
    banner,
    book_export,
    book_verification,
    books,
    callbacks,
    cold,
    debugger,
    deposit_decisions,
    deposits,
    escalation,
    finance,
    finance_months,
    inbox,
    merchant_endpoints,
    merchant_keys,
    merchant_list,
    merchant_look,
    merchant_rates,
    merchant_refusals,
    merchant_requests,
    merchant_sandbox,
    merchant_settings,
    merchants,
    notifications,
    operators,
    overview,
    payouts,
    proposals,
    rates,
    reconciliation,
    rescues,
    safety,
    safety_acts,
    screening,
    search,
    sign_in,
    sub_users,
    withdrawal_decisions,
    withdrawal_order,
    withdrawal_results,
    withdrawals,
)
from merchant_wallet.console.inbox_cache import close_cache
from merchant_wallet.console.page_routes import make_public_route, make_route
from merchant_wallet.console.request import Page, PoolName, PublicPage
from merchant_wallet.console.session_cookie import COOKIE
from merchant_wallet.console.verifier import close_verifier
from merchant_wallet.web.cells import CellPools
from merchant_wallet.web.connections import Connections
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.site import Site

MODULES: Final[tuple[ModuleType, ...]] = (
    sign_in,
    banner,
    overview,
    inbox,
    merchant_list,
    merchants,
    merchant_settings,
    merchant_look,
    merchant_keys,
    merchant_endpoints,
    merchant_rates,
    merchant_refusals,
    merchant_requests,
    merchant_sandbox,
    sub_users,
    escalation,
    notifications,
    operators,
    audit_log,
    debugger,
    account,
    withdrawals,
    withdrawal_decisions,
    withdrawal_order,
    withdrawal_results,
    payouts,
    cold,
    rescues,
    books,
    book_export,
    book_verification,
    deposit_decisions,
    deposits,
    finance,
    finance_months,
    screening,
    callbacks,
    reconciliation,
    safety,
    safety_acts,
    rates,
    adjustments,
    proposals,
    search,
)
"""The modules with pages. Each has its `ROUTES`."""
PASSWORD_CONNECTIONS: Final = 3
"""Two for the passwords that are compared at the same time. One group never holds all."""
SAFETY_CONNECTIONS: Final = 2


def list_pages() -> list[Page | PublicPage]:
    """All pages."""
    return [page for module in MODULES for page in module.ROUTES]


def build_site(context: PageContext) -> Site:
    """The console as a part of the web application.

    Passwords and acts of safety have connections of their own. A flood of either takes none from the pages,
    and nobody's pages take one from an act of safety.
    """
    pools = {
        PoolName.PAGES: context.connections,
        PoolName.SAFETY: Connections(context.database_url, SAFETY_CONNECTIONS),
        PoolName.PASSWORDS: Connections(context.database_url, PASSWORD_CONNECTIONS),
    }
    contexts = {name: replace(context, connections=pool) for name, pool in pools.items()}
    safety_cells = CellPools(context.cells.directory, SAFETY_CONNECTIONS)
    contexts[PoolName.SAFETY] = replace(contexts[PoolName.SAFETY], cells=safety_cells)
    for_signing_in = replace(contexts[PoolName.PASSWORDS], strangers=pools[PoolName.PASSWORDS])
    routes = [
        make_public_route(for_signing_in, page)
        if isinstance(page, PublicPage)
        else make_route(contexts, page)
        for page in list_pages()
    ]
    closers = (
        partial(close_verifier, context),
        partial(close_cache, context),
        pools[PoolName.SAFETY].close,
        safety_cells.close,
        pools[PoolName.PASSWORDS].close,
    )
    return Site(context, ("/console",), "/console", routes, closers, cookie=COOKIE)
