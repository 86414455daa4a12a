"""The tables, one schema for SQLite and PostgreSQL.

Instants are seconds since the epoch in a float column named `*_at`; texts in JSON are named for what they hold.
A page's id is a 63-bit hash of its key (`monitor.core.identity.page_id`), so rows about a page can be written without
first asking the database for its number; it is unique within a site.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

site = Table(
    "site",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("url", Text, nullable=False),
    Column("watching_since_at", Float),  # when the first source of the site had its baseline
    Column("discovered_at", Float),
    Column("discovery_next_at", Float),
    Column("discovery_error", Text),
    Column("announced", Text),  # JSON: host -> [when asked, 1 where its robots.txt names a sitemap of the site]
)

source = Table(
    "source",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("site_id", ForeignKey("site.id"), nullable=False),
    Column("kind", Text, nullable=False),  # feed, sitemap, news_sitemap, crawl
    Column("url", Text, nullable=False),
    Column("origin", Text, nullable=False),  # config, or how discovery found it
    Column("active", Boolean, nullable=False),  # False: left the configuration, moved or gone
    Column("state", Text, nullable=False),  # new, ok, failing, gone, moved
    Column("baseline_at", Float),
    Column("next_at", Float, nullable=False),
    Column("retry_at", Float),  # Retry-After: obeyed also under --all
    Column("last_at", Float),
    Column("last_result", Text),
    Column("last_error", Text),
    Column("last_status", Integer),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    Column("failing_since_at", Float),
    Column("schedule", Text),  # JSON of schedule.State
    Column("reason", Text),  # why next_at is what it is
    Column("counts", Text),  # JSON: rows of the last complete reads of the whole tree, newest last
    Column("most_new", Integer, nullable=False, server_default=text("0")),
    Column("passes", Integer, nullable=False, server_default=text("0")),  # finished reads of the root
    Column("moves", Integer, nullable=False, server_default=text("0")),  # polls in a row that were redirected for good
    Column("moved_to", Text),  # and where to
    Column("stirred", Text),  # JSON of siblings.Stirred: news of other sources of the site since the last poll
    Column("woken", Integer, nullable=False, server_default=text("0")),  # polls that such news brought forward
    Column("woken_news", Integer, nullable=False, server_default=text("0")),  # those of them that found news
    UniqueConstraint("site_id", "url"),
)
Index("ix_source_due", source.c.next_at, sqlite_where=source.c.active, postgresql_where=source.c.active)

sibling = Table(
    "sibling",
    metadata,
    Column("source_a", ForeignKey("source.id"), primary_key=True),  # had news
    Column("source_b", ForeignKey("source.id"), primary_key=True),  # was then polled
    Column("trials", Float, nullable=False),  # these four: siblings.Pair
    Column("hits", Float, nullable=False),
    Column("chance", Float, nullable=False),
    Column("lag", Float, nullable=False),
    sqlite_with_rowid=False,
)

poll = Table(
    "poll",
    metadata,
    Column("source_id", ForeignKey("source.id"), primary_key=True),
    Column("at", Float, primary_key=True),
    Column("since_at", Float),  # these five: simulate.NewsPoll
    Column("polls", Integer, nullable=False),
    Column("new", Integer, nullable=False),
    Column("size", Integer, nullable=False),
    Column("ages", Text, nullable=False),  # JSON
    sqlite_with_rowid=False,
)

document = Table(
    "document",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source_id", ForeignKey("source.id"), nullable=False),
    Column("url", Text, nullable=False),
    Column("parent", Text),  # URL of the index that lists it; None for a root
    Column("kind", Text, nullable=False),  # feed, index, sitemap, news_sitemap
    Column("validators_url", Text),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("body_hash", Text),
    Column("read_at", Float),  # last read or confirmation
    Column("complete_at", Float),  # last complete read or confirmation
    Column("full_at", Float),  # last unconditional read
    Column("baseline_at", Float),
    Column("quiet", Boolean, nullable=False),  # listed before its source had a baseline: its first read is quiet, too
    Column("partials", Integer, nullable=False, server_default=text("0")),  # partial reads before the baseline
    Column("unlisted", Boolean, nullable=False, server_default=false()),  # the index lists it no more
    Column("absent", Integer, nullable=False, server_default=text("0")),  # complete reads of the tree since it left
    Column("watched", Float, nullable=False, server_default=text("0")),  # these three: file_turns.Watched
    Column("changes", Float, nullable=False, server_default=text("0")),
    Column("turn", Integer),
    Column("index_lastmod", Text),  # what its index says of it
    Column("read_lastmod", Text),  # what its index said of it when it was last read
    Column("pending", Integer, nullable=False, server_default=text("0")),  # rows absent and not yet confirmed
    Column("counts", Text),  # JSON: rows of the last complete reads, newest last
    Column("suspect", Integer),  # rows of a suspiciously short read that awaits confirmation
    Column("error", Text),
    Column("state", Text),  # JSON of what the reconciler remembers of the document
    Column("marks", LargeBinary),  # feed_marks.pack of the entries last read
    UniqueConstraint("source_id", "url"),
)

page = Table(
    "page",
    metadata,
    Column("site_id", ForeignKey("site.id"), primary_key=True),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),
    Column("url", Text, nullable=False),  # as first published
    Column("title", Text),
    Column("first_at", Float, nullable=False),
    Column("published_at", Float),  # its date, as the first source that had one gave it
    Column("announced", Boolean, nullable=False),  # False: absorbed by a baseline, never alerted
    Column("changed_at", Float),  # last url.changed
    Column("changed", Text),  # its evidence
    Column("missing_at", Float),
    Column("missing_reason", Text),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("fingerprint", Text),
    Column("checked_at", Float),
    sqlite_with_rowid=False,
)

Index(
    "ix_page_missing",
    page.c.site_id,
    sqlite_where=page.c.missing_at.is_not(None),
    postgresql_where=page.c.missing_at.is_not(None),
)

listing = Table(
    "listing",
    metadata,
    Column("document_id", ForeignKey("document.id"), primary_key=True),
    Column("rows", Integer, nullable=False),
    Column("bits", Integer, nullable=False),  # its ids stand in 2 ** bits buckets
    Column("text", LargeBinary, nullable=False),  # listing.pack_lines: a line a page
    Column("changed_at", Float, nullable=False),
)

listed = Table(
    "listed",
    metadata,
    Column("site_id", ForeignKey("site.id"), primary_key=True),
    Column("bucket", Integer, primary_key=True, autoincrement=False),
    Column("document_id", ForeignKey("document.id"), primary_key=True),
    Column("ids", LargeBinary, nullable=False),  # listing.pack_ids of the pages whose ids begin with the bucket's bits
    sqlite_with_rowid=False,
)
Index("ix_listed_document_id", listed.c.document_id)

listing_change = Table(
    "listing_change",
    metadata,
    Column("document_id", ForeignKey("document.id"), primary_key=True),
    Column("at", Float, primary_key=True),
    Column("added", LargeBinary, nullable=False),  # lines that came, packed
    Column("removed", LargeBinary, nullable=False),  # lines that went
)

crawled = Table(
    "crawled",
    metadata,
    Column("document_id", ForeignKey("document.id"), primary_key=True),
    Column("page_id", BigInteger, primary_key=True, autoincrement=False),
    Column("url", Text, nullable=False),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("links", LargeBinary, nullable=False),  # packed like a listing
    Column("title", Text),
    Column("published_at", Float),
    Column("canonical", Text),
    Column("noindex", Boolean, nullable=False),
    Column("read_at", Float, nullable=False),
    sqlite_with_rowid=False,
)

sighting = Table(
    "sighting",
    metadata,
    Column("document_id", ForeignKey("document.id"), primary_key=True),
    Column("page_id", BigInteger, primary_key=True, autoincrement=False),
    Column("url", Text),  # as published here, None where it is the page's own
    Column("first_at", Float, nullable=False),
    Column("last_at", Float),  # None while listed; else when the document last listed it
    Column("absent", Integer, nullable=False, server_default=text("0")),  # complete reads of the tree without it
    Column("lastmod", Text),
    Column("title", Text),
    Column("title_at", Float),  # when the title here last changed
    sqlite_with_rowid=False,
)
Index("ix_sighting_page_id", sighting.c.page_id)
Index(
    "ix_sighting_pending",
    sighting.c.document_id,
    sqlite_where=sighting.c.last_at.is_not(None),
    postgresql_where=sighting.c.last_at.is_not(None),
)

entry = Table(
    "entry",
    metadata,
    Column("document_id", ForeignKey("document.id"), primary_key=True),
    Column("entry_id", Text, primary_key=True),
    Column("page_id", BigInteger, nullable=False),
    Column("page_key", Text, nullable=False),
    Column("title", Text),
    Column("content_hash", Text, nullable=False),
    Column("previous_hash", Text),
    Column("flips", Integer, nullable=False, server_default=text("0")),
    Column("published_at", Float),
    Column("updated_at", Float),
    Column("first_at", Float, nullable=False),
    Column("listed", Boolean, nullable=False),
    Column("absent", Integer, nullable=False, server_default=text("0")),  # reads without it while older entries stay
    sqlite_with_rowid=False,
)
Index("ix_entry_page", entry.c.document_id, entry.c.page_id)

page_check = Table(
    "page_check",
    metadata,
    Column("site_id", ForeignKey("site.id"), primary_key=True),
    Column("page_id", BigInteger, primary_key=True, autoincrement=False),
    Column("why", Text, primary_key=True),  # changed, missing
    Column("document_id", Integer, nullable=False),
    Column("detail", Text, nullable=False),  # JSON of reconcile.Check
    Column("asked_at", Float, nullable=False),
    Column("due_at", Float, nullable=False, server_default=text("0")),  # asked again from then on
    Column("tries", Integer, nullable=False, server_default=text("0")),  # askings that got no answer
    Column("put_off_at", Float),  # when it was put off first
)

promise = Table(
    "promise",
    metadata,
    Column("site_id", ForeignKey("site.id"), primary_key=True),
    Column("page_id", BigInteger, primary_key=True, autoincrement=False),
    Column("rule", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("due_at", Float, nullable=False),
    Column("state", Text, nullable=False),  # open, kept, broken, mended, expired
    Column("broken_at", Float),
    Column("looked", BigInteger),  # promises.Reading.stamp when it was last looked at; None: not since it fell due
    sqlite_with_rowid=False,
)
Index("ix_promise_state", promise.c.state, promise.c.due_at)
Index("ix_promise_looked", promise.c.site_id, promise.c.kind, promise.c.state, promise.c.looked)
Index(
    "ix_promise_due",
    promise.c.site_id,
    promise.c.kind,
    promise.c.due_at,
    sqlite_where=promise.c.looked.is_(None),
    postgresql_where=promise.c.looked.is_(None),
)

event = Table(
    "event",
    metadata,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("type", Text, nullable=False),
    Column("site", Text, nullable=False),
    Column("time_at", Float, nullable=False, index=True),
    Column("body", Text, nullable=False),  # the CloudEvents object
    sqlite_autoincrement=True,
)

delivery = Table(
    "delivery",
    metadata,
    Column("event_seq", ForeignKey("event.seq"), primary_key=True),
    Column("endpoint", Text, primary_key=True),
    Column("site", Text, nullable=False),
    Column("state", Text, nullable=False),  # pending, parked
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("next_at", Float, nullable=False),
    Column("error", Text),
)
Index("ix_delivery_endpoint", delivery.c.endpoint, delivery.c.state, delivery.c.event_seq)

endpoint = Table(
    "endpoint",
    metadata,
    Column("name", Text, primary_key=True),
    Column("disabled_at", Float),  # answered 410
    Column("reason", Text),
    Column("address", Text),  # a hash of where it sends to: the address may hold a secret
    Column("memory", Text),  # what it must remember over a restart: the times of messages under a rate limit
)

cursor = Table(
    "cursor",
    metadata,
    Column("name", Text, primary_key=True),
    Column("seq", BigInteger, nullable=False),  # the last event its reader has had
    Column("moved_at", Float, nullable=False),
)
