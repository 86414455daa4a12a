"""What of an item is the entry's own."""

from __future__ import annotations

from monitor.core.feed import parse_feed


def test_captions_are_no_text_of_an_entry_that_has_its_own() -> None:
    def read(text: str, caption: str) -> tuple[str, str | None]:
        media = (
            f'<media:content url="https://x.org/i.jpg"><media:description>{caption}</media:description></media:content>'
        )
        item = f"<item><guid>g</guid><title>T</title>{text}{media}</item>"
        feed = f'<rss version="2.0" xmlns:media="http://search.yahoo.com/mrss/"><channel>{item}</channel></rss>'
        (entry,) = parse_feed(feed.encode(), "https://x.org/f").entries
        return entry.content_hash, entry.summary

    assert read("<description>d</description>", "A cat.") == read("<description>d</description>", "A dog.")
    assert read("<description>d</description>", "A cat.")[1] == "d"
    assert read("", "A cat.")[1] == "A cat."  # all the text that a video has
    assert read("", "A cat.") != read("", "A dog.")
