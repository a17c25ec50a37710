"""
Where a judge that is asked over plain HTTP lives, and which key goes there.

| the judge                                    | address                                   | key                      |
|----------------------------------------------|-------------------------------------------|--------------------------|
| `params={"api_base": ...}`, given in code    | that one                                  | `params["api_key"]`      |
| none, with `OPENAI_BASE_URL` (or `_API_BASE`)| that one                                  | `OPENAI_API_KEY`         |
| none                                         | OpenAI's, for `openai/...` and bare names | `OPENAI_API_KEY`         |

A key in `params` goes wherever the judge goes. To an address from `params` the environment's key goes only where the
name begins with `openai/`: other names are those of other vendors, whom it is no business of. No file can name an
address, a key, a header, or this way of asking.
"""

from __future__ import annotations

import os
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from attrs import field, frozen

from rubric.errors import ModelError
from rubric.exchanges import Failure
from rubric.secrets import redact, values_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rubric.judges import Judge

__all__ = ["ADDRESSING", "Endpoint", "endpoint_of", "exposure_of", "proxy_for"]

ADDRESSING = frozenset({"api_base", "base_url", "api_key", "organization", "extra_headers", "extra_body"})
"""The parameters of a judge that do not go into the request's body as they are."""

_OPENAI = "https://api.openai.com/v1"
_PREFIX = "openai/"
_CALL = "/chat/completions"
_PORTS = {"http": 80, "https": 443}
_PROXIES = [spelt for name in ("http", "https", "all", "no") for spelt in (f"{name}_proxy", f"{name.upper()}_PROXY")]
_PROXIES += ["REQUEST_METHOD"]  # set for CGI, where HTTP_PROXY may be what a stranger's header says


@frozen
class Endpoint:
    """
    Where a request goes.

    Args:
        url: Of the call itself.
        model: The model's name there.
        headers: What goes with each request; the key is in it.
        secrets: What must not be shown.
        is_openai: Whether it is OpenAI's own.
    """

    url: str = field(repr=redact)
    model: str
    headers: dict[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    is_openai: bool


def endpoint_of(judge: Judge, environ: Mapping[str, str] = os.environ) -> Endpoint:
    """
    Return where *judge* is to be asked.

    Raises:
        ModelError: It has no address (bad_request), or needs a key that nobody gave (auth).
    """
    given = judge.params.get("api_base") or judge.params.get("base_url")
    named = environ.get("OPENAI_BASE_URL") or environ.get("OPENAI_API_BASE")
    base = str(given or named or _own(judge.name)).rstrip("/")
    is_openai = base == _OPENAI
    ambient = environ if not given or judge.name.startswith(_PREFIX) else {}
    headers, key = _headers(judge, ambient)
    if is_openai and not key:
        raise ModelError(Failure("auth", "OpenAI wants a key: set OPENAI_API_KEY, or give params={'api_key': ...}"))
    extra = {str(name): str(value) for name, value in (judge.params.get("extra_headers") or {}).items()}
    secrets = tuple(filter(None, (key, *extra.values(), *values_of(judge.params))))
    model = judge.name.removeprefix(_PREFIX)
    return Endpoint(_url(base), model, headers | extra, secrets, is_openai)


def _own(name: str) -> str:
    if name.startswith(_PREFIX) or "/" not in name:
        return _OPENAI
    message = (
        f"via='http' goes to OpenAI, or to an address of yours: {name!r} needs params={{'api_base': ...}} or "
        "OPENAI_BASE_URL"
    )
    raise ModelError(Failure("bad_request", message))


def _headers(judge: Judge, ambient: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Return the headers of a request, and the key in them; who pays is taken from where the key is."""
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
    key = str(judge.params.get("api_key") or "")
    organization, project = judge.params.get("organization"), None
    if not key and (key := ambient.get("OPENAI_API_KEY", "")):
        organization = organization or ambient.get("OPENAI_ORGANIZATION") or ambient.get("OPENAI_ORG_ID")
        project = ambient.get("OPENAI_PROJECT_ID")
    if key:
        headers["Authorization"] = f"Bearer {key}"
    payer = {"OpenAI-Organization": organization, "OpenAI-Project": project}
    return headers | {name: str(value) for name, value in payer.items() if value}, key


@lru_cache(maxsize=256)
def _url(base: str) -> str:
    path, mark, query = base.partition("?")
    if not _is_reachable(path):
        raise ModelError(Failure("bad_request", "the judge's address is none that http:// or https:// can reach"))
    path = path.rstrip("/")
    return f"{path if path.endswith(_CALL) else path + _CALL}{mark}{query}"


def _is_reachable(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in _PORTS and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def proxy_for(url: str) -> str | None:
    """
    Return the proxy that the environment names for *url*; None for none.

    `HTTPS_PROXY` or `HTTP_PROXY` goes before `ALL_PROXY`, small letters before capital ones; `NO_PROXY` lists hosts,
    which stand for those below them too, with or without a port, networks such as 10.0.0.0/8, or is `*`.

    Raises:
        ModelError: It is a SOCKS proxy, or none that http:// or https:// can reach (bad_request).
    """
    return _proxy(url, tuple(map(os.environ.get, _PROXIES)))


@lru_cache(maxsize=256)
def _proxy(url: str, _: tuple[str | None, ...]) -> str | None:
    parts, named = urlsplit(url), getproxies()
    proxy = named.get(parts.scheme) or named.get("all")
    if not proxy or not parts.hostname or _is_excepted(parts.hostname, parts.port or _PORTS[parts.scheme], named):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    scheme = proxy.partition("://")[0].lower()
    name = f"{parts.scheme.upper()}_PROXY" if named.get(parts.scheme) else "ALL_PROXY"
    cure = f"name an http:// proxy in {parts.scheme.upper()}_PROXY, or {parts.hostname} in NO_PROXY to go without one"
    if scheme.startswith("socks"):
        raise ModelError(Failure("bad_request", f"{name} names a SOCKS proxy, which is not spoken here: {cure}"))
    if not _is_reachable(proxy):
        raise ModelError(Failure("bad_request", f"{name} names no http:// or https:// address: {cure}"))
    return proxy


def _is_excepted(host: str, port: int, named: Mapping[str, str]) -> bool:
    if proxy_bypass(f"{host}:{port}"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return any(address in network for name in named.get("no", "").split(",") for network in _networks(name.strip()))


def _networks(name: str) -> list[IPv4Network | IPv6Network]:
    try:
        return [ip_network(name.strip("[]"), strict=False)]
    except ValueError:
        return []


def exposure_of(endpoint: Endpoint) -> tuple[str, ...]:
    """Return that key and prompt go to *endpoint* in the clear, in words, where they do and leave this machine."""
    return _exposure(endpoint.url, proxy_for(endpoint.url)) if endpoint.secrets else ()


@lru_cache(maxsize=256)
def _exposure(url: str, proxy: str | None) -> tuple[str, ...]:
    parts, way = urlsplit(url), urlsplit(proxy or "")
    if parts.scheme != "http" or (_is_loopback(parts.hostname) and (not proxy or _is_loopback(way.hostname))):
        return ()
    through = f" through the proxy {way.hostname}, which can read both," if proxy else ""
    return (f"key and prompt went{through} to http://{parts.hostname} unencrypted: use https:// where it is to be had",)


def _is_loopback(host: str | None) -> bool:
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return host == "localhost" or str(host).endswith(".localhost")
