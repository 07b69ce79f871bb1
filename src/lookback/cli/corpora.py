"""``lookback corpora``: the texts that come with the package, and what is kept of others."""

from __future__ import annotations

import typer

from lookback.cli.language import is_chinese, say
from lookback.cli.output import console, print_json

HELP = "List the bundled corpora, and the prepared token files kept for faster starts."
EXAMPLE = "lookback corpora"


def command(
    clear: bool = typer.Option(False, "--clear", help=say("Delete the prepared token files (made again when needed).")),
    as_json: bool = typer.Option(False, "--json", help=say("End with one JSON object on standard output.")),
) -> None:
    import shutil

    from lookback.assets import BUNDLED
    from lookback.session import cache

    kept = cache.root() / "tokens"
    if clear:
        shutil.rmtree(kept, ignore_errors=True)
    size = sum(path.stat().st_size for path in kept.rglob("*") if path.is_file()) if kept.is_dir() else 0
    if as_json:
        listed = [
            {
                "name": corpus.name,
                "title": corpus.title,
                "language": corpus.language,
                "documents": corpus.documents,
                "characters": corpus.characters,
                "source": corpus.source,
                "licence": corpus.licence,
            }
            for corpus in BUNDLED.values()
        ]
        print_json({"corpora": listed, "prepared": {"folder": str(kept), "bytes": size}})
        return
    for corpus in BUNDLED.values():
        title = corpus.title_zh if is_chinese() else corpus.title
        counts = say(
            "{documents} documents, {characters} characters",
            documents=f"{corpus.documents:,}",
            characters=f"{corpus.characters:,}",
        )
        console().print(f"[bold]{corpus.name}[/bold]  {title} · {counts} · {corpus.licence}")
    console().print(
        say("prepared token files: {size} MB in {folder}", size=f"{size / 1e6:.1f}", folder=kept),
        style="dim",
        markup=False,
    )
