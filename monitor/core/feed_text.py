"""What a reader sees of an entry's markup, and a hash of it that only a real edit moves."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from hashlib import blake2b

MAX_NOISY = 300_000
"""Characters of a text in which noise is looked for; longer ones are no article."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_INVISIBLE = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style|template)\b.*?(?:</\1\s*>|\Z)", re.I | re.S)
_INLINE = re.compile(
    r"</?(?:a|abbr|b|bdi|bdo|big|cite|code|del|dfn|em|font|i|ins|kbd|mark|q|s|samp|small|span|strong|sub|sup|tt|u|var|wbr)"
    r"(?:\s[^<>]*)?/?>",
    re.I,
)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<[!?][^<>]*>")
_SHORT = re.compile(r"(?<=>)[^<>]{1,30}(?=<)")
_LONE_NUMBER = re.compile(r"[\s(\[#]*\d[\d.,]*\s*[kKmM]?[\s)\]]*")

_UNIT = (
    r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?|[smhdw]"
    r"|secondes?|heures?|jours?|semaines?|mois|ans?|Sekunden?|Minuten?|Stunden?|Tage?n?|Wochen?|Monate?n?|Jahre?n?"
    r"|segundos?|minutos?|horas?|d[ií]as?|semanas?|mes(?:es)?|años?)"
)
_AGO = re.compile(
    rf"(?:\b(?:about|over|almost|less than|updated)\s+)?\b(?:\d+|an?|one)\s*{_UNIT}\s+ago\b"
    rf"|\b(?:vor|il y a|hace|há)\s+(?:\d+|une?r?|einem|einer)\s+{_UNIT}\b|\bjust now\b",
    re.I,
)
_AGO_WORDS = (" ago", "vor ", "Vor ", "l y a ", "hace ", "Hace ", "há ", "Há ", "ust now")
_COUNTED = (
    r"(?:comments?|repl(?:y|ies)|views?|reads|stars?|points?|likes?|votes?|upvotes?|shares?|forks?|clicks?|downloads?"
    r"|reactions?|retweets?|boosts?|favou?rites?|claps?|plays?|followers?|hits|score|ratings?"
    r"|Kommentare?|Aufrufe|commentaires?|vues|comentarios?|visitas|visualizações|коммента\w+|просмотр\w*|评论|阅读|コメント)"
)
# Both begin with what is cheap to look for; what stands before or after decides.
_COUNT = re.compile(rf"\d[\d.,]{{0,20}}+\s?[km]?\s?(?:new )?{_COUNTED}\b(?:\s+(?:today|this week|this month))?", re.I)
_LABELLED = re.compile(r"[:(★⭐👍❤♥💬👁]\ufe0f?\s?\d[\d.,]{0,20}+\s?(?:[kKmM]\b)?")
_LABEL = re.compile(rf"\b{_COUNTED}\s*\Z", re.I)
_CLOCK = re.compile(r"\d:\d\d")
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_STAMP = re.compile(
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:\s?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
    r"|\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?\s+)?"
    rf"\d\d? {_MONTH} \d{{4}},? \d\d?:\d\d(?::\d\d)?(?:\s?(?:Z|UTC|GMT|[+-]\d{{4}}))?"
)
_EPOCH = re.compile(r"1[5-9]\d{8}(?:\d{3})?(?!\d)")
_QUERY = re.compile(r"(https?://[^\s?#]{1,300}+)[?#]\S*")


def storable(text: str) -> str:
    """`text` without NUL and lone surrogates, which base64 and JSON may bring and no database takes."""
    return _UNSTORABLE.sub("", text)


def reader_text(value: str, markup: bool) -> str:
    """`value` as a reader sees it: tags gone, character references decoded once (where it is `markup`), white space
    folded to single spaces. Elements of a line vanish, all others part words."""
    if markup:
        value = html.unescape(_stripped(value))
    return " ".join(value.split())


def _stripped(value: str) -> str:
    if "<" not in value:
        return value
    return _TAG.sub(" ", _INLINE.sub("", _INVISIBLE.sub(" ", value)))


def steady_text(value: str, markup: bool) -> str:
    """`reader_text` without what changes by itself: times ago, time stamps, counts of comments, views and stars,
    numbers that are an element's whole text, queries of URLs."""
    if markup and "<" in value:
        value = _SHORT.sub(_unless_number, _INVISIBLE.sub(" ", value))
    text = reader_text(value, markup)
    if len(text) > MAX_NOISY:
        return text
    if _CLOCK.search(text):
        text = _STAMP.sub(" ", text)
    if any(word in text for word in _AGO_WORDS):
        text = _AGO.sub(" ", text)
    text = _EPOCH.sub(" ", _LABELLED.sub(_unlabelled, _COUNT.sub(" ", text)))
    if "://" in text:
        text = _QUERY.sub(r"\1", text)
    return " ".join(text.split())


def _unless_number(found: re.Match[str]) -> str:
    return " " if _LONE_NUMBER.fullmatch(found[0]) else found[0]


def _unlabelled(found: re.Match[str]) -> str:
    """A number after a colon or bracket stays unless the word before says that it is a count."""
    if found[0][0] in ":(":
        before = _LABEL.search(found.string, max(0, found.start() - 20), found.start())
        if before is None:
            return found[0]
    return " "


def content_hash(title: str | None, bodies: Iterable[tuple[str, bool]]) -> str:
    """Hash of a title (as the reader sees it) and of bodies with whether each is markup; 128 bits in hex.

    A body that repeats another counts once: feeds that put the same text in summary and content now and then stop.
    """
    texts = dict.fromkeys([title or "", *(steady_text(value, markup) for value, markup in bodies)])
    return blake2b("\n".join(text for text in texts if text).encode("utf-8", "replace"), digest_size=16).hexdigest()
