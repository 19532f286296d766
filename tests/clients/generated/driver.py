"""Calls the service with both clients in Python. The requests are signed with the page's Python code."""

import os
import secrets
import time
from typing import Any

# The test generates both clients, and puts the page's code beside this file.
import generated_client  # type: ignore[import-not-found]
import merchant_wallet_api  # type: ignore[import-not-found]
import wallet  # type: ignore[import-not-found]
from generated_client.api.accounts import get_merchant_customer  # type: ignore[import-not-found]
from generated_client.models import GetMerchantCustomerRequest  # type: ignore[import-not-found]

Fields = dict[str, object]
URL = os.environ["MERCHANT_WALLET_URL"]


def make(timestamp: int) -> Fields:
    fields = {
        "appKey": os.environ["MERCHANT_WALLET_APP_KEY"],
        "timestamp": timestamp,
        "nonceStr": secrets.token_hex(16),
        "extUserId": "alice",
    }
    signed = wallet.sign(os.environ["MERCHANT_WALLET_SECRET"], "/merchant/getMerchantCustomer", fields)
    return {**fields, "sign": signed}


def call_generator(fields: Fields) -> Any:
    with merchant_wallet_api.ApiClient(merchant_wallet_api.Configuration(host=URL)) as client:
        request = merchant_wallet_api.GetMerchantCustomerRequest.from_dict(fields)
        return merchant_wallet_api.AccountsApi(client).get_merchant_customer(request)


def call_client(fields: Fields) -> Any:
    with generated_client.Client(base_url=URL) as client:
        return get_merchant_customer.sync(client=client, body=GetMerchantCustomerRequest.from_dict(fields))


for name, call in (("python", call_generator), ("openapi-python-client", call_client)):
    request = make(time.time_ns() // 1_000_000)
    for each in (request, request, make(1)):
        answer = call(each)
        ext_user_id, has_time = "", False
        if answer.data is not None:
            ext_user_id, has_time = answer.data.ext_user_id or "", bool(answer.data.server_time)
        print(name, answer.code.value, ext_user_id, str(has_time).lower())
