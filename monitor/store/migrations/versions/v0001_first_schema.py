"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables of `monitor.store.schema` as they were at this revision."""
    op.create_table(
        "endpoint",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("disabled_at", sa.Float(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("memory", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_endpoint")),
    )
    op.create_table(
        "cursor",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("moved_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_cursor")),
    )
    op.create_table(
        "event",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("time_at", sa.Float(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_event")),
        sa.UniqueConstraint("id", name=op.f("uq_event_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_event_time_at"), "event", ["time_at"], unique=False)
    op.create_table(
        "site",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("watching_since_at", sa.Float(), nullable=True),
        sa.Column("discovered_at", sa.Float(), nullable=True),
        sa.Column("discovery_next_at", sa.Float(), nullable=True),
        sa.Column("discovery_error", sa.Text(), nullable=True),
        sa.Column("announced", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_site")),
        sa.UniqueConstraint("name", name=op.f("uq_site_name")),
    )
    op.create_table(
        "delivery",
        sa.Column("event_seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("endpoint", sa.Text(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_at", sa.Float(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["event_seq"], ["event.seq"], name=op.f("fk_delivery_event_seq")),
        sa.PrimaryKeyConstraint("event_seq", "endpoint", name=op.f("pk_delivery")),
    )
    op.create_index("ix_delivery_endpoint", "delivery", ["endpoint", "state", "event_seq"], unique=False)
    op.create_table(
        "page",
        sa.Column("site_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("first_at", sa.Float(), nullable=False),
        sa.Column("announced", sa.Boolean(), nullable=False),
        sa.Column("changed_at", sa.Float(), nullable=True),
        sa.Column("changed", sa.Text(), nullable=True),
        sa.Column("missing_at", sa.Float(), nullable=True),
        sa.Column("missing_reason", sa.Text(), nullable=True),
        sa.Column("etag", sa.Text(), nullable=True),
        sa.Column("last_modified", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("checked_at", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["site_id"], ["site.id"], name=op.f("fk_page_site_id")),
        sa.PrimaryKeyConstraint("site_id", "id", name=op.f("pk_page")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "page_check",
        sa.Column("site_id", sa.Integer(), nullable=False),
        sa.Column("page_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Integer(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("asked_at", sa.Float(), nullable=False),
        sa.Column("due_at", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("tries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("put_off_at", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["site_id"], ["site.id"], name=op.f("fk_page_check_site_id")),
        sa.PrimaryKeyConstraint("site_id", "page_id", "why", name=op.f("pk_page_check")),
    )
    op.create_table(
        "promise",
        sa.Column("site_id", sa.Integer(), nullable=False),
        sa.Column("page_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Float(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("broken_at", sa.Float(), nullable=True),
        sa.Column("looked", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["site_id"], ["site.id"], name=op.f("fk_promise_site_id")),
        sa.PrimaryKeyConstraint("site_id", "page_id", "rule", name=op.f("pk_promise")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_promise_state", "promise", ["state", "due_at"], unique=False)
    op.create_index("ix_promise_looked", "promise", ["site_id", "kind", "state", "looked"], unique=False)
    op.create_index(
        "ix_promise_due",
        "promise",
        ["site_id", "kind", "due_at"],
        unique=False,
        sqlite_where=sa.text("looked IS NULL"),
        postgresql_where=sa.text("looked IS NULL"),
    )
    op.create_table(
        "source",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("site_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("baseline_at", sa.Float(), nullable=True),
        sa.Column("next_at", sa.Float(), nullable=False),
        sa.Column("retry_at", sa.Float(), nullable=True),
        sa.Column("last_at", sa.Float(), nullable=True),
        sa.Column("last_result", sa.Text(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("last_status", sa.Integer(), nullable=True),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failing_since_at", sa.Float(), nullable=True),
        sa.Column("schedule", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("counts", sa.Text(), nullable=True),
        sa.Column("most_new", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("passes", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("moves", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("stirred", sa.Text(), nullable=True),
        sa.Column("woken", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("woken_news", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["site_id"], ["site.id"], name=op.f("fk_source_site_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_source")),
        sa.UniqueConstraint("site_id", "url", name=op.f("uq_source_site_id_url")),
    )
    op.create_index(
        "ix_source_due",
        "source",
        ["next_at"],
        unique=False,
        sqlite_where=sa.text("active"),
        postgresql_where=sa.text("active"),
    )
    op.create_table(
        "sibling",
        sa.Column("source_a", sa.Integer(), nullable=False),
        sa.Column("source_b", sa.Integer(), nullable=False),
        sa.Column("trials", sa.Float(), nullable=False),
        sa.Column("hits", sa.Float(), nullable=False),
        sa.Column("chance", sa.Float(), nullable=False),
        sa.Column("lag", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["source_a"], ["source.id"], name=op.f("fk_sibling_source_a")),
        sa.ForeignKeyConstraint(["source_b"], ["source.id"], name=op.f("fk_sibling_source_b")),
        sa.PrimaryKeyConstraint("source_a", "source_b", name=op.f("pk_sibling")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "poll",
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("since_at", sa.Float(), nullable=True),
        sa.Column("polls", sa.Integer(), nullable=False),
        sa.Column("new", sa.Integer(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("ages", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_poll_source_id")),
        sa.PrimaryKeyConstraint("source_id", "at", name=op.f("pk_poll")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "document",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("parent", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("validators_url", sa.Text(), nullable=True),
        sa.Column("etag", sa.Text(), nullable=True),
        sa.Column("last_modified", sa.Text(), nullable=True),
        sa.Column("body_hash", sa.Text(), nullable=True),
        sa.Column("read_at", sa.Float(), nullable=True),
        sa.Column("complete_at", sa.Float(), nullable=True),
        sa.Column("full_at", sa.Float(), nullable=True),
        sa.Column("baseline_at", sa.Float(), nullable=True),
        sa.Column("quiet", sa.Boolean(), nullable=False),
        sa.Column("partials", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("unlisted", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("absent", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("still", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("index_lastmod", sa.Text(), nullable=True),
        sa.Column("read_lastmod", sa.Text(), nullable=True),
        sa.Column("pending", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("counts", sa.Text(), nullable=True),
        sa.Column("suspect", sa.Integer(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_document_source_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_document")),
        sa.UniqueConstraint("source_id", "url", name=op.f("uq_document_source_id_url")),
    )
    op.create_table(
        "entry",
        sa.Column("document_id", sa.Integer(), nullable=False),
        sa.Column("entry_id", sa.Text(), nullable=False),
        sa.Column("page_id", sa.BigInteger(), nullable=False),
        sa.Column("page_key", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("previous_hash", sa.Text(), nullable=True),
        sa.Column("flips", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("published_at", sa.Float(), nullable=True),
        sa.Column("updated_at", sa.Float(), nullable=True),
        sa.Column("first_at", sa.Float(), nullable=False),
        sa.Column("listed", sa.Boolean(), nullable=False),
        sa.Column("absent", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["document_id"], ["document.id"], name=op.f("fk_entry_document_id")),
        sa.PrimaryKeyConstraint("document_id", "entry_id", name=op.f("pk_entry")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_entry_page", "entry", ["document_id", "page_id"], unique=False)
    op.create_index(
        "ix_page_missing",
        "page",
        ["site_id"],
        unique=False,
        sqlite_where=sa.text("missing_at IS NOT NULL"),
        postgresql_where=sa.text("missing_at IS NOT NULL"),
    )
    op.create_table(
        "listing",
        sa.Column("document_id", sa.Integer(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("bits", sa.Integer(), nullable=False),
        sa.Column("text", sa.LargeBinary(), nullable=False),
        sa.Column("changed_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["document_id"], ["document.id"], name=op.f("fk_listing_document_id")),
        sa.PrimaryKeyConstraint("document_id", name=op.f("pk_listing")),
    )
    op.create_table(
        "listed",
        sa.Column("site_id", sa.Integer(), nullable=False),
        sa.Column("bucket", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("document_id", sa.Integer(), nullable=False),
        sa.Column("ids", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["document_id"], ["document.id"], name=op.f("fk_listed_document_id")),
        sa.ForeignKeyConstraint(["site_id"], ["site.id"], name=op.f("fk_listed_site_id")),
        sa.PrimaryKeyConstraint("site_id", "bucket", "document_id", name=op.f("pk_listed")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_listed_document_id", "listed", ["document_id"], unique=False)
    op.create_table(
        "listing_change",
        sa.Column("document_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("added", sa.LargeBinary(), nullable=False),
        sa.Column("removed", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["document_id"], ["document.id"], name=op.f("fk_listing_change_document_id")),
        sa.PrimaryKeyConstraint("document_id", "at", name=op.f("pk_listing_change")),
    )
    op.create_table(
        "sighting",
        sa.Column("document_id", sa.Integer(), nullable=False),
        sa.Column("page_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("first_at", sa.Float(), nullable=False),
        sa.Column("last_at", sa.Float(), nullable=True),
        sa.Column("absent", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("lastmod", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("title_at", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["document_id"], ["document.id"], name=op.f("fk_sighting_document_id")),
        sa.PrimaryKeyConstraint("document_id", "page_id", name=op.f("pk_sighting")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_sighting_page_id", "sighting", ["page_id"], unique=False)
    op.create_index(
        "ix_sighting_pending",
        "sighting",
        ["document_id"],
        unique=False,
        sqlite_where=sa.text("last_at IS NOT NULL"),
        postgresql_where=sa.text("last_at IS NOT NULL"),
    )
