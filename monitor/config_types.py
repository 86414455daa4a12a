"""The types of single values in `sites.yaml`: durations, URLs, host names, patterns, secrets.

Checks raise ValueError with a sentence for the reader, in which ``{value}`` stands for the value as the file has it
(quoted) and ``{raw}`` for the same without quotes: the value itself may come from the environment and is never shown.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import re
import warnings
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import ada_url
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema

from monitor.config_load import Expanded, nearest, printable
from monitor.core import template
from monitor.core.url import host_of
from monitor.event_schema import EVENT_TYPES

T = TypeVar("T")

DETAIL = "\0"
"""Stands before what a message tells of the inside of a value; left out where the value is not to be shown."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)([smhd])", re.ASCII)
_LONGEST = 3650 * 86400.0
_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\]", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:", re.ASCII)


class Model(BaseModel):
    """A mapping of the file: no key but its own, no silent conversion."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=False)


class KeyValueError(ValueError):
    """An error about one key of a mapping that only the mapping as a whole shows to be wrong."""

    def __init__(self, key: str, message: str, other: str | None = None) -> None:
        """`other` is a second key, whose value as written stands for ``{other}``."""
        super().__init__(message)
        self.key = key
        self.other = other


def parse_duration(text: str) -> float:
    """Seconds of a duration such as ``90s``, ``15m``, ``6h``, ``2d``, ``1.5h``.

    Raises ValueError with a sentence that says what is wrong.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        if text.startswith("-") and _DURATION.fullmatch(text[1:]):
            raise ValueError("{value} is negative; a duration is 0s or more")
        raise ValueError("{value} is no duration; write a number and a unit: 90s, 15m, 6h or 2d")
    seconds = float(match[1]) * _UNITS[match[2]]
    if seconds > _LONGEST:
        raise ValueError("{value} is more than ten years")
    return seconds


def format_duration(seconds: float) -> str:
    """The shortest text that `parse_duration` reads back as `seconds`, to the millisecond: ``90s``, ``15m``, ``0s``."""
    for unit in ("d", "h", "m"):
        if seconds and seconds % _UNITS[unit] == 0:
            return f"{seconds / _UNITS[unit]:.0f}{unit}"
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"


def _duration(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"must be a duration such as 15m, not {what(value)}")
    if isinstance(value, str):
        return parse_duration(value)
    raise ValueError("{value} needs a unit: {raw}s, {raw}m, {raw}h or {raw}d")


def _positive_duration(value: Any) -> float:
    seconds = _duration(value)
    if seconds <= 0:
        raise ValueError("must be more than 0s")
    return seconds


def what(value: Any) -> str:
    """The type of a value in the words of someone who writes YAML."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    names: dict[type, str] = {str: "text", int: "a number", float: "a number", list: "a list", dict: "a mapping"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "that")


def _from_environment(value: Any) -> Any:
    """A number or a truth value given as `${NAME}` arrives as text."""
    if not isinstance(value, Expanded):
        return value
    if value.isascii() and value.isdecimal() and len(value) < 19:
        return int(value)
    return {"true": True, "false": False}.get(value, value)


def _text(check: Callable[[str], T]) -> Callable[[Any], T]:
    def validate(value: Any) -> T:
        if not isinstance(value, str):
            raise ValueError(f"must be text, not {what(value)}")
        if not value.strip():
            raise ValueError("is empty")
        return check(str(value).strip())

    return validate


def web_url(text: str) -> str:
    """`text`, when it is an absolute http or https URL with a host; else raises ValueError."""
    if not _SCHEME.match(text) and "." in text.partition("/")[0]:
        raise ValueError("{value} has no scheme; did you mean 'https://{raw}'?")
    try:
        url = ada_url.URL(text)
    except ValueError:
        raise ValueError("{value} is no URL") from None
    if url.protocol not in ("http:", "https:"):
        raise ValueError("{value} is no http or https URL")
    if any(c.isspace() or not c.isprintable() for c in text) or not re.match(r"https?://[^/?#]", text, re.I):
        raise ValueError("{value} is no URL")
    return text


def _host(text: str) -> str:
    bare = text.lower()
    if "://" in bare:
        raise ValueError("{value} is a URL; give the host name alone")
    host = host_of(f"https://{bare}/")
    if _HOST.fullmatch(host) is None or (bare.isascii() and host != bare):
        raise ValueError("{value} is no host name such as amp.example.com")
    return host


def _name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise ValueError("{value} is no name; use up to 100 letters, digits, '.', '_' and '-', a letter or digit first")
    return text


def _glob(text: str) -> str:
    if not text.startswith(("/", "*", "http://", "https://")):
        start = "https://" if "." in text.partition("/")[0] and "/" in text else "/"
        raise ValueError(f"{{value}} is no page pattern; did you mean '{start}{{raw}}'?")
    return text


def _section(text: str) -> str:
    if not text.startswith(("/", "http://", "https://")):
        raise ValueError("{value} is no section; did you mean '/{raw}'?")
    return text


def _database(text: str) -> str:
    scheme, found, rest = text.partition("://")
    if not found or scheme.partition("+")[0] not in ("sqlite", "postgresql"):
        raise ValueError("is no database URL; write sqlite:///monitor.db or postgresql://user@host/name")
    if scheme.startswith("sqlite") and rest and not rest.startswith("/"):
        raise ValueError("a SQLite URL has three slashes before a path: sqlite:///monitor.db")
    return text


def _event_pattern(text: str) -> str:
    if not any(fnmatch.fnmatchcase(known, text) for known in EVENT_TYPES):
        near = nearest(text, (*EVENT_TYPES, "url.*", "source.*"))
        hint = f"did you mean {near!r}?" if near else "types are " + ", ".join(EVENT_TYPES)
        raise ValueError("{value} matches no type of event; " + hint)
    return text


def _regex(text: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        detail = printable(str(error).partition(" at position")[0])
        raise ValueError("{value} is no regular expression" + DETAIL + detail) from None
    return text


def _notify_url(text: str) -> str:
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s]", text):
        raise ValueError("is no Apprise URL such as slack://tokenA/tokenB/tokenC")
    return text


def _secret(text: str) -> str:
    if not text.startswith("whsec_"):
        raise ValueError("a webhook secret starts with 'whsec_', followed by base64")
    try:
        if len(base64.b64decode(text.removeprefix("whsec_"), validate=True)) == 0:
            raise ValueError("a webhook secret needs base64 after 'whsec_'")
    except binascii.Error:
        raise ValueError("what follows 'whsec_' is not base64") from None
    return text


_SIZES = {"B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3}
_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) ?([KMG]?B)", re.ASCII)


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None or (size := int(float(match[1]) * _SIZES[match[2]])) < 1:
        raise ValueError("{value} is no size; write a number and a unit: 500KB, 10MB, 1GB")
    return size


_HOURS = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])-(?:([01]?[0-9]|2[0-3]):([0-5][0-9])|24:00)", re.ASCII)


def _hours(text: str) -> tuple[int, int]:
    """Minutes after midnight, (from, to)."""
    match = _HOURS.fullmatch(text)
    if match is None:
        raise ValueError("{value} is no span of hours; write it as 22:00-07:00")
    start = int(match[1]) * 60 + int(match[2])
    end = 24 * 60 if match[3] is None else int(match[3]) * 60 + int(match[4])
    if start == end:
        raise ValueError("{value} is no span: it ends when it begins")
    return start, end


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        near = nearest(text, available_timezones())
        hint = f"; did you mean {near!r}?" if near else " such as Europe/Berlin"
        raise ValueError("{value} is no time zone" + hint) from None
    return text


_LIMIT = re.compile(r"([0-9]{1,4}) ?/ ?([0-9.]+[smhd])", re.ASCII)


def _limit(text: str) -> tuple[int, float]:
    """(messages, seconds)."""
    match = _LIMIT.fullmatch(text)
    if match is None or int(match[1]) < 1:
        raise ValueError("{value} is no limit; write messages and a time: 20/1h")
    return int(match[1]), _positive_duration(match[2])


def _digest(text: str) -> float | str:
    if text in ("never", "surge"):
        return text
    try:
        return _positive_duration(text)
    except ValueError:
        raise ValueError("{value} is neither a duration such as 15m nor surge nor never") from None


def _template(text: str) -> str:
    found = template.problem(text)
    if found is not None:
        part, sentence = found
        near = nearest(part, template.NAMES)
        hint = f"; did you mean {{{near}}}?" if near else ""
        raise ValueError("is no template" + DETAIL + printable(f"{part!r} is {sentence}{hint}", 200))
    return text


def listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _string(**more: Any) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", **more})


_DURATION_SCHEMA = {
    "type": "string",
    "pattern": r"^[0-9]+(\.[0-9]+)?[smhd]$|\$\{",
    "examples": ["90s", "15m", "6h", "2d"],
}
URL_SCHEMA = {"type": "string", "pattern": r"^https?://|\$\{", "examples": ["https://www.example.com/"]}
AnyDuration = Annotated[float, PlainValidator(_duration), WithJsonSchema(_DURATION_SCHEMA)]
Duration = Annotated[float, PlainValidator(_positive_duration), WithJsonSchema(_DURATION_SCHEMA)]
Count = Annotated[int, Field(ge=1), BeforeValidator(_from_environment)]
Whole = Annotated[int, Field(ge=0), BeforeValidator(_from_environment)]
Flag = Annotated[bool, BeforeValidator(_from_environment)]
Text = Annotated[str, PlainValidator(_text(str)), _string(minLength=1)]
Url = Annotated[str, PlainValidator(_text(web_url)), WithJsonSchema(URL_SCHEMA)]
Host = Annotated[str, PlainValidator(_text(_host)), _string(examples=["amp.example.com"])]
Name = Annotated[str, PlainValidator(_text(_name)), _string(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$|\$\{")]
Glob = Annotated[str, PlainValidator(_text(_glob)), _string(examples=["/news/**"])]
Section = Annotated[str, PlainValidator(_text(_section)), _string(examples=["/news/"])]
Database = Annotated[str, PlainValidator(_text(_database)), _string(pattern=r"^(sqlite|postgresql)[+a-z0-9]*://|\$\{")]
EventPattern = Annotated[str, PlainValidator(_text(_event_pattern)), _string(examples=["*", "url.*", *EVENT_TYPES])]
REGEX_SCHEMA = {"type": "string", "format": "regex"}
Regex = Annotated[str, PlainValidator(_text(_regex)), WithJsonSchema(REGEX_SCHEMA)]
Size = Annotated[int, PlainValidator(_text(_size)), _string(examples=["10MB", "1GB"])]
Hours = Annotated[tuple[int, int], PlainValidator(_text(_hours)), _string(examples=["22:00-07:00"])]
Zone = Annotated[str, PlainValidator(_text(_zone)), _string(examples=["Europe/Berlin"])]
Limit = Annotated[tuple[int, float], PlainValidator(_text(_limit)), _string(examples=["20/1h"])]
Digest = Annotated[float | str, PlainValidator(_text(_digest)), _string(examples=["15m", "surge", "never"])]
Template = Annotated[str, PlainValidator(_text(_template)), _string(examples=["{mark} {title}\n{url}"])]
NotifyUrl = Annotated[str, PlainValidator(_text(_notify_url)), _string(examples=["slack://tokenA/tokenB/tokenC"])]
Secret = Annotated[str, PlainValidator(_text(_secret)), _string(pattern=r"^whsec_|\$\{")]
Kind = Literal["feed", "sitemap", "news_sitemap", "crawl"]
