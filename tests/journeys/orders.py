"""Valid fields of requests, for tests that change one of them."""

from typing import Any

from tests.journeys.client import Client

ERC20_ADDRESS = "0x742d35Cc6634C0532925a3b844Bc454e4438f44e"
TRC20_ADDRESS = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"
ADDRESSES = {"ERC20": ERC20_ADDRESS, "TRC20": TRC20_ADDRESS}
FAILING = {
    "ERC20": "0x000000000000000000000000000000000000dEaD",
    "TRC20": "T9yD14Nj9j7xAB4dbGeiX9h8upfCg3PBbY",
}
ZERO = {
    "ERC20": "0x0000000000000000000000000000000000000000",
    "TRC20": "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb",
}
USDT_CONTRACTS = {
    "ERC20": "0xdAC17F958D2ee523a2206206994597C13D831ec7",
    "TRC20": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
}
NOTIFY_URL = "https://example.com/notify"
OPERATIONS = (
    "transferFromUserToMerchant",
    "transferFromMerchantToUser",
    "createMerchantWithdrawOrder",
    "queryOrder",
    "getMerchantCustomer",
    "getMerchantBalance",
    "exchange",
    "getWithdrawFee",
)


def debit(mc_order_id: str, amount: Any = "10", ext_user_id: str = "alice") -> dict[str, Any]:
    """From a sub-user's wallet to the merchant's balance."""
    return {"extUserId": ext_user_id, "currency": "KFB", "amount": amount, "mcOrderId": mc_order_id}


def credit(mc_order_id: str, address: str, amount: Any = "10") -> dict[str, Any]:
    """From the merchant's balance to a sub-user's wallet."""
    return {"currency": "KFB", "amount": amount, "mcOrderId": mc_order_id, "address": address}


def withdrawal(mc_order_id: str, amount: Any = "10", chain: str = "TRC20", **changes: Any) -> dict[str, Any]:
    """A withdrawal to an outside address."""
    return {
        "amount": amount,
        "chainType": chain,
        "currency": "USDT",
        "mcOrderId": mc_order_id,
        "address": ADDRESSES.get(chain, TRC20_ADDRESS),
        "notifyUrl": NOTIFY_URL,
        **changes,
    }


def exchange(amount: Any = "10", send: str = "USDT", receive: str = "KFB", **changes: Any) -> dict[str, Any]:
    """An exchange of one currency for the other."""
    return {"amount": amount, "sendCurrency": send, "receiveCurrency": receive, **changes}


def quote(amount: Any = "10") -> dict[str, Any]:
    """The quote of a withdrawal's fee."""
    return {"amount": amount, "currency": "USDT"}


def all_fields(client: Client) -> dict[str, dict[str, Any]]:
    """Fields with which each operation succeeds, for a merchant with money and a sub-user `alice` with
    money.
    """
    alice = client.do("getMerchantCustomer", extUserId="alice")
    order = client.do("createMerchantWithdrawOrder", **withdrawal("ready"))
    return {
        "transferFromUserToMerchant": debit("first"),
        "transferFromMerchantToUser": credit("first", alice["address"]),
        "createMerchantWithdrawOrder": withdrawal("first"),
        "queryOrder": {"orderId": order["orderId"], "mcOrderId": "ready"},
        "getMerchantCustomer": {"extUserId": "alice"},
        "getMerchantBalance": {},
        "exchange": exchange(),
        "getWithdrawFee": quote(),
    }
