"""The shared corpus of real documents: where it lies, what its archives hold. None of it is in this repository."""

from __future__ import annotations

import functools
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def corpus_path() -> Path:
    """The corpus directory; skips the calling test, saying why, where there is none."""
    named = os.environ.get("MONITOR_CORPUS")
    path = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "corpus"
    if not path.is_dir():
        pytest.skip("no corpus: set MONITOR_CORPUS to its directory")
    return path


def members(archive: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file in an archive of the corpus, such as ``series/feed-lemonde.tar.xz``."""
    with tarfile.open(corpus_path() / archive) as opened:
        for member in opened:
            if member.isfile() and (file := opened.extractfile(member)) is not None:
                yield member.name, file.read()


@functools.cache
def expectations(*kinds: str) -> tuple[dict[str, Any], ...]:
    """What the origins of files state of them: the lines of ``expected.jsonl`` of the given kinds."""
    lines = (corpus_path() / "expected.jsonl").read_text("utf-8").splitlines()
    return tuple(line for text in lines if text and (line := json.loads(text))["kind"] in kinds)
