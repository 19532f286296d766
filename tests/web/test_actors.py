"""Who did or proposes something, in words, and every kind of proposal in the inbox."""

from functools import partial

from tests.rows import each_row

from merchant_wallet.web.actors import name_actors, say_actor
from merchant_wallet.web.inbox_sources import BY_KIND
from merchant_wallet.web.languages import Language, translate
from merchant_wallet.web.proposal_rights import RIGHTS

ENGLISH = partial(translate, Language.EN)
CHINESE = partial(translate, Language.ZH)


@each_row(
    ("actor", "english", "chinese"),
    [
        ("operator:ann", "ann", "ann"),
        ("cli:root", "root, on the command line", "root（命令行）"),
        ("merchant:shop-desk", "shop-desk, of the merchant", "shop-desk（商户）"),
        ("operator:ann: the node lies", "ann: the node lies", "ann: the node lies"),
        ("reconciliation", "reconciliation", "对账"),
        ("worker", "a worker", "工作进程"),
        ("payer-7", "payer-7", "payer-7"),
    ],
)
def test_people_are_named_without_a_prefix(actor: str, english: str, chinese: str) -> None:
    assert (say_actor(actor, ENGLISH), say_actor(actor, CHINESE)) == (english, chinese)


def test_only_the_actor_of_a_text_is_put_into_words() -> None:
    values = {"who": "operator:ann", "subject": "operator:ben"}
    assert name_actors(values, ENGLISH) == {"who": "ann", "subject": "operator:ben"}


def test_the_inbox_says_of_each_kind_of_proposal_what_it_would_do() -> None:
    texts = BY_KIND["proposal"].texts
    assert set(texts) == {"", "alike", *RIGHTS}
    assert len(set(texts.values())) == len(texts)


@each_row(
    ("kind", "subject", "english", "chinese"),
    [
        ("wallet.thaw", "ERC20", "ann proposes to resume payouts on ERC20", "ann 提议恢复 ERC20 的付款"),
        ("month.close", "2026-10", "ann proposes to close the month 2026-10", "ann 提议为 2026-10 结账"),
        ("operator.create", "ben", "ann proposes a new operator: ben", "ann 提议新增操作员：ben"),
        (
            "cold.transfer",
            "TRC20",
            "ann proposes a cold transfer on TRC20",
            "ann 提议在 TRC20 上转移冷钱包资金",
        ),
    ],
)
def test_a_proposal_is_a_sentence_in_both_languages(
    kind: str, subject: str, english: str, chinese: str
) -> None:
    text = BY_KIND["proposal"].texts[kind]
    values = {"who": "ann", "subject": subject}
    assert (ENGLISH(text, **values), CHINESE(text, **values)) == (english, chinese)


def test_the_most_urgent_kinds_come_first_and_a_month_can_wait() -> None:
    order = list(BY_KIND)
    assert order.index("stop") < order.index("proposal") < order.index("approval") < order.index("month")
