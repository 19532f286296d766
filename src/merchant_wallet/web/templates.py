"""Templates, and what every template may use: translated texts, amounts, times, icons, static URLs.

Rules: everything is escaped. An undefined name is an error, not an empty text. Amounts are whole units of
10**-6. Times are milliseconds since the epoch, shown in UTC until the page's script changes them to local
time.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from jinja2 import Environment, PackageLoader, PrefixLoader, StrictUndefined, Template, pass_context
from jinja2.environment import TemplateModule
from jinja2.runtime import Context
from markupsafe import Markup, escape

from merchant_wallet.base.money import format_rate, format_units
from merchant_wallet.web.actors import say_actor
from merchant_wallet.web.brand_colours import list_samples
from merchant_wallet.web.browsers import describe_browser
from merchant_wallet.web.causes import say_cause
from merchant_wallet.web.languages import Language, read_words, translate
from merchant_wallet.web.live import BEAT_S
from merchant_wallet.web.own_audit import say_person
from merchant_wallet.web.qr import draw_address, draw_qr
from merchant_wallet.web.refusals import translate_refusal
from merchant_wallet.web.static import find_url
from merchant_wallet.web.typed_values import show_percent, show_time

_SHORT_HEAD: Final = 8
_SHORT_TAIL: Final = 6
MINUS: Final = "\u2212"
SHARED_MACROS: Final = frozenset({"macros.html", "parts.html"})
"""Files of macros that each page makes once. `PrefixLoader` names a template without its prefix."""
_MODULES: Final = "_modules_of_page"
"""The name under which a page keeps the modules of these macros, by file, once it has them."""


class PageTemplate(Template):
    """A template of the pages. Most templates of a page import the same macros, which are made once per page.

    They see values of the whole page alone, none that a template sets.
    """

    def make_module(
        self,
        vars: dict[str, Any] | None = None,
        shared: bool = False,
        locals: Mapping[str, Any] | None = None,
    ) -> TemplateModule:
        """The macros of this template, with the values that they see."""
        modules: dict[str, TemplateModule] | None = (vars or {}).get(_MODULES)
        if modules is None or self.name not in SHARED_MACROS:
            return super().make_module(vars, shared, locals)
        if self.name not in modules:
            modules[self.name] = super().make_module(vars, shared, locals)
        return modules[self.name]


class Templates:
    """All templates of the pages: `web/…`, `wallet/…` and `console/…`.

    With `sandbox` every whole page says that its money is not real.
    """

    def __init__(self, *, sandbox: bool = False) -> None:
        packages = {"web": "web", "wallet": "wallet_site", "console": "console"}
        loaders = {
            prefix: PackageLoader(f"merchant_wallet.{package}") for prefix, package in packages.items()
        }
        self._environment = Environment(
            loader=PrefixLoader(loaders),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.template_class = PageTemplate
        self._environment.filters.update(
            money=show_money,
            rate=format_rate,
            moment=show_moment,
            day=show_day,
            short=shorten,
            group=group_digits,
            percent=show_percent,
            span=show_time,
            actor=show_actor,
            person=show_person,
            cause=show_cause,
        )
        self._environment.filters.update(refusal=show_refusal, browser=describe_browser)
        self._environment.filters.update(qr=draw_qr, address_qr=draw_address)
        self._environment.globals["static"] = find_url
        self._environment.globals["brand_samples"] = list_samples
        self._environment.globals["sandbox"] = sandbox
        self._environment.globals["live_beat_s"] = f"{BEAT_S:g}"
        self._translators = {language: partial(translate, language) for language in Language}

    @property
    def environment(self) -> Environment:
        """The Jinja environment, for tests that read all templates."""
        return self._environment

    def prepare(self, *prefixes: str) -> None:
        """Compile the templates with these prefixes and read the translations, so that the first page does
        not wait.
        """
        read_words()
        for name in self._environment.list_templates():
            if name.startswith(prefixes):
                self._environment.get_template(name)

    def render(self, name: str, language: Language, /, **values: object) -> str:
        """A template's text. `_` and `lang` are available besides the given values."""
        template = self._environment.get_template(name)
        own = {"_": self._translators[language], "lang": str(language), _MODULES: dict[str, TemplateModule]()}
        return template.render({**own, **values})


def group_digits(text: str) -> str:
    """A plain decimal with thousands separators and a true minus sign."""
    whole, point, fraction = text.removeprefix("-").partition(".")
    sign = MINUS if text.startswith("-") else ""
    return f"{sign}{int(whole):,}{point}{fraction}"


def show_money(amount_units: int, *, signed: bool = False, decimals: int = 2) -> str:
    """An amount for people: thousands separators, at least `decimals` decimals, and never fewer than it
    has.
    """
    whole, _, fraction = format_units(abs(amount_units)).partition(".")
    sign = MINUS if amount_units < 0 else "+" if signed and amount_units > 0 else ""
    shown = fraction.ljust(decimals, "0")
    return f"{sign}{int(whole):,}.{shown}" if shown else f"{sign}{int(whole):,}"


def show_moment(at_ms: int | None) -> Markup:
    """A time as a `time` element, to the second."""
    if at_ms is None:
        return Markup("&mdash;")
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    stamp, text = at.isoformat(timespec="milliseconds").replace("+00:00", "Z"), f"{at:%Y-%m-%d %H:%M:%S} UTC"
    return Markup('<time datetime="{}" data-moment>{}</time>').format(stamp, text)


def show_day(at_ms: int) -> str:
    """The UTC day of a time."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d}"


def show_refusal(msg: str, lang: str) -> str:
    """A refusal of the interface in the page's language."""
    return translate_refusal(Language(lang), msg)


@pass_context
def show_actor(context: Context, actor: str) -> str:
    """An actor in words of the page's language: "ann" for `operator:ann`."""
    return say_actor(actor, context["_"])


@pass_context
def show_person(context: Context, actor: str) -> str:
    """The same for a page that a merchant's people see too: to them staff has no names."""
    say = say_actor if context["request"].merchant_id is None else say_person
    return say(actor, context["_"])


@pass_context
def show_cause(context: Context, cause: str | None) -> str:
    """A recorded cause in the page's language. Not everything that waits has one."""
    return say_cause(cause, context["_"]) if cause else ""


def shorten(text: str, head: int = _SHORT_HEAD, tail: int = _SHORT_TAIL) -> Markup:
    """A long id or address without its middle. The title has the whole text."""
    if len(text) <= head + tail + 1:
        return escape(text)
    return Markup('<span title="{}" class="short">{}\u2026{}</span>').format(text, text[:head], text[-tail:])
