"""Sitemaps of every form: bytes in, rows and problems out (pure).

Read by local name, whatever the namespace (sitemaps.org 0.9 and its relatives, none, prefixed, undeclared, upper case).
`decode` peels the compression off, `sitemap_text` settles the encoding and reads plain lists, `sitemap_tree` finds the
row elements of XML, whole or damaged, and `sitemap_rows` turns them into values.
"""

from __future__ import annotations

from monitor.core.decode import CAP, decode
from monitor.core.sitemap_rows import Reader
from monitor.core.sitemap_text import is_text_list, read_text, to_utf8
from monitor.core.sitemap_tree import read_tree
from monitor.model import NotASitemap, Problem, Row, Sitemap, SitemapKind

MAX_ROWS = 1_000_000
PROTOCOL_ROWS = 50_000
"""URLs that a file may hold (sitemaps.org)."""

PROTOCOL_NEWS = 1_000
"""`news:news` blocks that Google reads of a file."""


def parse_sitemap(data: bytes, url: str, *, max_rows: int = MAX_ROWS, cap: int = CAP, whole: bool = True) -> Sitemap:
    """Read a sitemap: urlset, index, text list, RSS, Atom or RDF; gzip is peeled off.

    `url` is the document's own address, against which relative ones are resolved. At most `max_rows` rows and `cap`
    uncompressed bytes are read; a document that has more is not complete. `whole` False says that the transfer was cut
    short, or that `decode` found so: nothing is complete then, and the last line of a text list, which shows no end, is
    left out. Of damaged documents the rows that are
    undamaged themselves are returned, with `complete` False; white space, forbidden characters, unknown entities and
    namespace errors are problems that cost no row and leave a document complete. Raises only NotASitemap, for HTML,
    JSON, error documents, an empty body, anything else that is no sitemap, and damage that leaves not a single row.
    """
    peeled = decode(data, cap=cap)
    problems = list(peeled.problems)
    body = peeled.data
    complete = peeled.complete and whole
    if len(body) > cap:
        problems.append(Problem("size.cap", f"byte {cap}", f"larger than {cap} bytes; read up to there"))
        body, complete = body[:cap], False
    elif len(body) > CAP:
        problems.append(Problem("size.protocol", "document", f"{len(body)} bytes; the protocol allows {CAP}"))
    text = to_utf8(body, problems)
    if not text or text.isspace():
        raise NotASitemap("the body is empty" if complete else "nothing could be read of the compressed data")
    if is_text_list(text.lstrip()):
        rows, complete = read_text(text, url, problems, max_rows=max_rows, whole=complete)
        _note_size(problems, len(rows), 0)
        return Sitemap("text", url, tuple(rows), complete, problems=tuple(problems))
    return _read_xml(text, url, complete, problems, max_rows)


def _read_xml(text: bytes, url: str, complete: bool, problems: list[Problem], max_rows: int) -> Sitemap:
    tree = read_tree(text, problems)
    reader = Reader(url, problems, feed=tree.form == "feed", entities=tree.entities)
    rows: list[Row] = []
    if tree.plain is not None:
        rows = reader.plain(tree.plain[: max_rows + 1], child=tree.form == "index")
    for element in tree.rows:
        rows += reader.row(element)
        if len(rows) > max_rows:
            break
    if reader.count == 0 and tree.plain is None and not tree.whole:
        raise NotASitemap(f"the document is damaged, and no row of it can be read: {problems[-1].message}")
    if len(rows) > max_rows:
        del rows[max_rows:]
        problems.append(Problem("rows.cap", f"row {max_rows}", f"more than {max_rows} rows; read up to there"))
        complete = False
    _note_size(problems, len(rows), reader.news)
    kind: SitemapKind = tree.form
    children = reader.children
    if kind != "feed" and rows:
        mixed = children not in (0, len(rows))
        if mixed or (children > 0) != (kind == "index"):
            problems.append(
                Problem("rows.mixed", "document", f"the root is that of the form '{kind}', but not all rows are")
            )
        if not mixed:
            kind = "index" if children else "urlset"
    whole = complete and tree.whole and not reader.damaged
    return Sitemap(kind, url, tuple(rows), whole, is_news=reader.news > 0, problems=tuple(problems))


def _note_size(problems: list[Problem], rows: int, news: int) -> None:
    if rows > PROTOCOL_ROWS:
        problems.append(Problem("rows.protocol", "document", f"{rows} rows; the protocol allows {PROTOCOL_ROWS}"))
    if news > PROTOCOL_NEWS:
        problems.append(Problem("news.protocol", "document", f"{news} news entries; Google reads {PROTOCOL_NEWS}"))
