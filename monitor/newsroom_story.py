"""What the simulated newsroom writes, and the story it tells: headlines, texts, and a plan of events.

Everything here is decided by a seed, so that a demo or a failing test can be played again exactly.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from monitor.newsroom import Newsroom

ActionKind = Literal["publish", "edit", "withdraw", "restore", "fail", "mend"]

_PLACES = ("Ellery", "Port Maren", "St. Aubin", "Northgate", "Kestrel Bay", "Hollin", "Dunmoor", "Brückstadt", "Calder")
_PATTERNS: dict[str, tuple[str, ...]] = {
    "news": (
        "{place} council {approves} {plan} after {time} of debate",
        "{body} {warns} of {trouble} in {place}",
        "{trouble_cap} {hits} {place} as {body_low} reviews {plan}",
        "Inquiry into {trouble} in {place} to hear from {person}",
        "{person}: “We were not told about the {plan}”",
        "Why {place} is still waiting for its {plan}",
        "Talks on {plan} break down over {place}’s share of the bill",
    ),
    "sport": (
        "{team} {beat} {rival} {score} to go {rank}",
        "{athlete} {signs} at {team} until 2029",
        "{team} await scan on {athlete}’s {injury}",
        "{athlete} breaks {record} record in {place}",
        "“It hurts”: {athlete} on {team}’s {score} defeat by {rival}",
        "{rival} part with coach after {time} without a win",
    ),
    "culture": (
        "{work_cap} opens in {place} after {time} in the making",
        "{artist} wins {prize} for {work}",
        "Review: {artist}’s {work} is {verdict}",
        "{place} museum returns {artefact} to its owners",
        "{artist} & friends: how {work} found its audience",
        "Lost {artefact} turns up in an attic in {place}",
    ),
}
_WORDS: dict[str, tuple[str, ...]] = {
    "place": _PLACES,
    "approves": ("approves", "rejects", "delays", "backs", "withdraws"),
    "plan": ("harbour tunnel", "night bus network", "school meals scheme", "flood wall", "rent cap", "R&D park"),
    "time": ("three weeks", "two years", "a decade", "five months", "nine days"),
    "body": ("Water board", "Hospital trust", "Rail regulator", "Teachers’ union", "Coastguard", "Grid operator"),
    "warns": ("warns", "finds early signs", "denies reports", "speaks for the first time"),
    "trouble": ("staff shortages", "rising water bills", "power cuts", "ferry delays", "floods", "grain shortages"),
    "hits": ("spread to", "worsen across", "ease in", "return to"),
    "person": ("Mayor Ines Okafor", "Minister Lund", "Judge Adeyemi", "Professor Castellane", "Chief Constable Ray"),
    "team": ("Ellery Athletic", "Maren Rovers", "Calder Women", "Dunmoor Harriers"),
    "rival": ("Northgate United", "Kestrel Town", "Hollin Wanderers", "Real Aubin"),
    "beat": ("beat", "outlast", "stun", "edge past", "fight back against"),
    "score": ("2-1", "3-0", "4-3", "1-0", "5-2"),
    "rank": ("top", "second", "clear of the drop", "level on points with the leaders"),
    "athlete": ("Mateo Lindqvist", "Aisha Brandt", "Joana Pereira", "Tom Ashdown", "Yuki Marchetti", "Siân Rhodes"),
    "signs": ("signs on", "agrees to stay", "takes over as captain", "starts again"),
    "injury": ("knee", "hamstring", "shoulder", "ankle"),
    "record": ("10,000 m", "high jump", "scoring", "400 m medley"),
    "artist": ("Café Lumière", "Nadia Voss", "The Low Tide", "Henrik Sólberg", "Amara Quayle", "Ko Tanaka"),
    "work": ("“The Glass Orchard”", "“Salt & Smoke”", "“Letters to Maren”", "“Quiet Engine”", "“Nine Winters”"),
    "prize": ("the Aubin prize", "best debut", "a lifetime award", "the critics’ choice"),
    "verdict": ("a triumph", "too long by half", "the best yet", "brave but cold", "worth the wait"),
    "artefact": ("bronze bell", "ship’s log", "film reel", "portrait", "ivory chess set"),
}
_SENTENCES = (
    "Officials confirmed the outline on {day} and said details would follow.",
    "“Nobody expected it to move this quickly,” said one person familiar with the matter.",
    "Figures published last quarter had already pointed in this direction.",
    "Residents of {place} have been divided since the first announcement.",
    "A spokesperson declined to give a date, but said work had begun.",
    "Similar cases in {place} took more than a year to settle.",
    "The decision is expected to be reviewed before the end of the season.",
    "Supporters gathered in {place} from the early morning.",
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_TAILS = (": what we know", " – latest", " (updated)", ", and what comes next")
_AUTHORS = ("Ruth Adair", "Samir Köhler", "Lena Mbeki", "Paul Tregear", "Ottilie Grant")


def headline(random: Random, section: str) -> str:
    """A headline for `section`; a section without patterns of its own gets those of ``news``.

    Holds what trips careless writers of XML and URLs: ampersands, curly quotes, letters beyond ASCII.
    """
    words = {name: random.choice(choices) for name, choices in _WORDS.items()}
    capital = {f"{name}_cap": words[name][:1].upper() + words[name][1:] for name in ("trouble", "work")}
    return random.choice(_PATTERNS.get(section, _PATTERNS["news"])).format(
        **words, **capital, body_low=words["body"][:1].lower() + words["body"][1:]
    )


def story_text(random: Random, title: str) -> str:
    """An article's text: paragraphs of plain text parted by blank lines. The first one repeats the headline."""
    chosen = random.sample(_SENTENCES, 5)
    said = [text.format(place=random.choice(_PLACES), day=random.choice(_DAYS)) for text in chosen]
    return f"{title}. {said[0]}\n\n{said[1]} {said[2]}\n\n{said[3]} {said[4]}"


def revise(random: Random, title: str) -> str:
    """The headline after an edit: the same but for what an editor hangs on it; never equal to `title`."""
    plain = next((title.removesuffix(tail) for tail in _TAILS if title.endswith(tail)), title)
    return plain + random.choice([tail for tail in _TAILS if plain + tail != title])


def byline(random: Random) -> str:
    """The name of one of the newsroom's writers."""
    return random.choice(_AUTHORS)


def slug_of(title: str) -> str:
    """The part of an article's path that is made from its title: ASCII letters, digits and hyphens, at most 60."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:60].strip("-") or "story"


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that happens in the newsroom. `pick`, from 0 up to 1, decides among what the newsroom has then."""

    kind: ActionKind
    pick: float


_PAIRS: tuple[tuple[ActionKind, ActionKind], ...] = (("withdraw", "restore"), ("fail", "mend"))
_DECK: tuple[ActionKind, ...] = (*("publish",) * 6, *("edit",) * 2, *_PAIRS[0], *_PAIRS[1])


def _deal(random: Random) -> list[ActionKind]:
    """One shuffled deck that opens with a new article, withdraws before it restores and fails before it mends."""
    cards = list(_DECK[1:])
    random.shuffle(cards)
    for first, then in _PAIRS:
        earlier, later = (place for place, card in enumerate(cards) if card in (first, then))
        cards[earlier], cards[later] = first, then
    return [_DECK[0], *cards]


def plan(seed: int, seconds: float, pace: float = 3.0) -> list[tuple[float, Action]]:
    """What happens in the first `seconds` of a demo: (second, action) in order, the first one publishing.

    `pace` is the mean number of seconds between two actions; gaps run from half to one and a half of it. Every
    twelve actions in a row from the start hold each kind at least once, so a story of twelve paces shows them all.
    A longer plan of one seed and pace begins with the shorter one.
    """
    if pace <= 0:
        raise ValueError("pace must be above zero")
    random = Random(seed)  # noqa: S311 - a story, not a secret
    story: list[tuple[float, Action]] = []
    at = pace * random.uniform(0.5, 1.0)
    while True:
        for kind in _deal(random):
            if at >= seconds:
                return story
            story.append((round(at, 3), Action(kind, random.random())))
            at += pace * random.uniform(0.5, 1.5)


def perform(room: Newsroom, action: Action) -> str:
    """Do `action` in `room` and say in one line what was done, as a narrator would.

    One article in six stays out of the news sitemap, one in six out of the feeds, one in six carries trackers in
    its feed link. One edit in three changes the text and not the headline. Edits and withdrawals choose among the
    newest articles, as many as half of what the feed shows, so that they are seen.
    A withdrawn article answers 404 or 410. An action for which there is no article does nothing and says so.
    """
    match action.kind:
        case "publish":
            said = _publish(room, action.pick)
        case "edit" | "withdraw":
            said = _change(room, action)
        case "restore":
            gone = room.withdrawn
            said = "nothing to restore"
            if gone:
                said = f"restored “{room.restore(gone[int(action.pick * len(gone))]).title}”"
        case "fail":
            path = f"/sitemaps/pages-{1 + int(action.pick * room.children)}.xml.gz"
            room.fail(path, (500, "html", "truncate", "empty")[int(action.pick * 1000) % 4])
            said = f"broke {path}"
        case "mend":
            broken = sorted(room.failures)
            for path in broken:
                room.mend(path)
            said = f"mended {', '.join(broken)}" if broken else "nothing to mend"
    return said


def _publish(room: Newsroom, pick: float) -> str:
    section = room.sections[int(pick * 1000) % len(room.sections)]
    lot = int(pick * 6)
    article = room.publish(section=section, in_news=lot != 3, in_feed=lot != 4, utm=lot == 5)
    without = {3: ", not in the news sitemap", 4: ", not in the feeds"}.get(lot, "")
    return f"published “{article.title}” in {section}{without}"


def _change(room: Newsroom, action: Action) -> str:
    shown = [article for article in room.live if "feed" in article.listed][: max(1, room.window // 2)]
    if not shown:
        return f"nothing to {action.kind}"
    article = shown[int(action.pick * len(shown))]
    if action.kind == "edit":
        random = Random(action.pick)  # noqa: S311 - a story, not a secret
        if random.random() < 1 / 3:
            room.edit(article, body=story_text(random, article.title))
            return f"rewrote the text of “{article.title}”"
        edited = room.edit(article, title=revise(random, article.title))
        return f"edited “{article.title}” to “{edited.title}”"
    status = 404 if int(action.pick * 1000) % 2 else 410
    room.withdraw(article, status)
    return f"withdrew “{article.title}” ({status})"
