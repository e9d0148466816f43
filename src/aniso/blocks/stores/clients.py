"""Clients of object stores: their options, which are not printed, retries, and errors in words."""

from __future__ import annotations

import os
import re
import time
from datetime import timedelta
from functools import lru_cache
from typing import Any

from aniso.blocks.stores.places import ExplainedError

#: Schemes of URLs that can only be read.
READ_ONLY = ("https", "http")
# Options of connections, which obstore takes apart from those of a store.
_CLIENT = (
    "allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_only",
    "proxy_ca_certificate", "proxy_excludes", "proxy_url", "read_timeout", "timeout", "user_agent",
)  # fmt: skip
# Retries of a request: their number, and for how many seconds they begin. Before a run, answers come soon.
RETRIES, FIRST_RETRIES = (10, 60.0), (2, 4.0)
# Seconds before a request is repeated that obstore does not repeat.
PAUSE = 0.2
_DENIED = re.compile(
    r"AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken|ExpiredToken|TokenRefreshRequired"
    r"|AuthenticationFailed|AuthorizationFailure|status code: 40[13]"
)
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist", re.IGNORECASE)
_CODES = re.compile(r"<Code>(\w+)</Code>"), re.compile(r"status code: (\d+ [A-Za-z ]+)")
_WHY = re.compile(
    r"Connection refused|Connection reset|timed out|dns error|certificate|incomplete message|"
    r"connection closed|IncompleteBody|unexpected end",
    re.IGNORECASE,
)


class PlaceDenied(ExplainedError, PermissionError):
    """The store does not accept the credentials, or does not allow what was tried."""


class PlaceAway(ExplainedError, ConnectionError):
    """The store does not answer."""


class PlaceMissing(ExplainedError, FileNotFoundError):
    """The bucket does not exist."""


class PlaceTaken(ExplainedError, FileExistsError):
    """There is something already, or another run is writing."""


class HiddenOptions(tuple[tuple[str, Any], ...]):
    """Options of a store, some of which are secrets: they are not printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{len(self)} options>"


def explain(error: Exception, root: str) -> ExplainedError | None:
    """Return an error of obstore in words; None if it says that something exists, or does not.

    Messages of servers and of obstore are not repeated: they may contain parts of requests.
    """
    import obstore

    text = str(error)
    if isinstance(error, obstore.exceptions.AlreadyExistsError | obstore.exceptions.PreconditionError):
        return None
    if _NO_BUCKET.search(text):
        return PlaceMissing(f"the bucket {root} does not exist. Check its name, the region and the endpoint.")
    if isinstance(error, FileNotFoundError):
        return None
    code = next((found[1] for pattern in _CODES if (found := pattern.search(text))), "")
    if isinstance(
        error, obstore.exceptions.PermissionDeniedError | obstore.exceptions.UnauthenticatedError
    ) or _DENIED.search(text):
        return PlaceDenied(
            f"{root} denied access{f' ({code})' if code else ''}. Check the credentials, and what they "
            "allow: they are taken from environment variables and storage options."
        )
    if re.search(r"169\.254\.|metadata\.google|credentials", text):
        return PlaceDenied(
            f"credentials for {root} are missing. Set environment variables such as AWS_ACCESS_KEY_ID, or "
            "give storage options (skip_signature=true for public data)."
        )
    why = (_WHY.search(text) or _NOTHING)[0].lower() or code.lower() or "no answer"
    return PlaceAway(
        f"{root} does not answer: {why}. Complete blocks are kept. Repeat the call to continue when the "
        "server is back; check the endpoint if it never answered."
    )


_NOTHING: Any = re.match(r"()", "")


def raise_final(error: Exception, root: str, end: float) -> None:
    """Raise an error of obstore, in words, unless the request can be repeated until this time."""
    known = explain(error, root)
    if known is None:
        raise error
    if not isinstance(known, PlaceAway) or time.monotonic() > end:
        raise known from None


def client_of(root: str, options: HiddenOptions, retries: tuple[int, float]) -> Any:
    """Return obstore's client of a bucket or server, another one if the environment has changed."""
    names = ("AWS_", "AZURE_", "GOOGLE_")
    environment = frozenset(pair for pair in os.environ.items() if pair[0].startswith(names))
    return _client_of(root, options, retries, hash(environment))


@lru_cache(maxsize=16)
def _client_of(root: str, options: HiddenOptions, retries: tuple[int, float], environment: int) -> Any:
    import obstore

    given = dict(options)
    scheme = root.partition("://")[0]
    endpoint = given.get("endpoint") or given.get("aws_endpoint") or given.get("endpoint_url") or ""
    if scheme == "s3" and not endpoint:
        endpoint = next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), "")
    most, seconds = _retries(options, retries)
    for name in ("max_retries", "retry_timeout"):
        given.pop(name, None)
    client: Any = {name: given.pop(name) for name in _CLIENT if name in given}
    if scheme == "http" or (scheme == "s3" and str(endpoint).startswith("http://")):
        client.setdefault("allow_http", True)
    client.setdefault("connect_timeout", "5s")
    retry: Any = {"max_retries": most, "retry_timeout": timedelta(seconds=seconds)}
    config = {name: str(value).lower() if isinstance(value, bool) else value for name, value in given.items()}
    try:
        if scheme in READ_ONLY:
            return obstore.store.HTTPStore.from_url(root, client_options=client, retry_config=retry)
        settings: Any = {"client_options": client, "retry_config": retry, "config": config or None}
        return obstore.store.from_url(root, **settings)
    except obstore.exceptions.UnknownConfigurationKeyError as error:
        name = (re.search(r"'(\w+)'", str(error)) or _NOTHING)[0]
        raise ValueError(f"storage option {name} is unknown for {scheme}:// URLs.") from None
    except obstore.exceptions.BaseError:
        raise ValueError(
            f"{root} cannot be opened with these storage options and environment variables. Check the "
            "endpoint, the account and the region."
        ) from None


def _retries(options: HiddenOptions, most: tuple[int, float]) -> tuple[int, float]:
    """Return how often, and for how many seconds, a request is repeated: as the options say, or less."""
    given = dict(options)
    try:
        wanted = int(given.get("max_retries", most[0])), float(given.get("retry_timeout", most[1]))
    except (TypeError, ValueError):
        raise ValueError("storage options max_retries and retry_timeout (in seconds) are numbers.") from None
    return min(wanted[0], most[0]), min(wanted[1], most[1])


def patience(options: HiddenOptions, most: tuple[int, float] = RETRIES) -> float:
    """Return for how many seconds requests are repeated."""
    return _retries(options, most)[1]


_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
