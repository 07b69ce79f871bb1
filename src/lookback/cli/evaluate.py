"""``lookback evaluate``: how well a model predicts a text."""

from __future__ import annotations

import typer

from lookback.cli.language import say
from lookback.cli.output import console, count, print_json

HELP = "Score a text: nats a token, perplexity, bits a byte; for BERT masked accuracy and pseudo-perplexity."
EXAMPLE = "lookback evaluate runs/tang tang --split held-out --stride window"


def command(
    model: str = typer.Argument(..., metavar="MODEL", help=say("A model folder.")),
    source: str = typer.Argument(..., metavar="TEXT", help=say("A file, a folder, or a bundled corpus.")),
    split: str = typer.Option("all", "--split", help=say("all, held-out or train, as training split it.")),
    window: int = typer.Option(None, "--window", help=say("Tokens read at once."), show_default="the context"),
    stride: str = typer.Option(
        None, "--stride", help=say("Tokens between windows, or: window (side by side)."), show_default="half a window"
    ),
    batch_size: int = typer.Option(16, "--batch-size", help=say("Windows at a time; changes speed only.")),
    limit: str = typer.Option(None, "--limit", help=say("Score the first so many tokens only.")),
    cross_documents: bool = typer.Option(
        None, "--cross-documents", help=say("Let a window read across documents."), show_default="as trained"
    ),
    encoding: str = typer.Option("utf-8", "--encoding", help=say("The text's encoding.")),
    text_field: str = typer.Option("text", "--field", help=say("The field of .jsonl lines.")),
    device: str = typer.Option("auto", "--device", help=say("cpu, cuda, mps or auto.")),
    as_json: bool = typer.Option(False, "--json", help=say("End with one JSON object on standard output.")),
) -> None:
    from rich.progress import Progress

    from lookback.session import load

    session = load(model, device=device)
    screen = console(error=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task(say("scoring"), total=1.0)
        score = session.evaluate(
            source,
            split=split,
            window=window,
            stride=int(stride) if stride is not None and stride.isdecimal() else stride,
            batch_size=batch_size,
            cross_documents=cross_documents,
            limit=count(limit),
            encoding=encoding,
            text_field=text_field,
            progress=lambda fraction: bar.update(task, completed=fraction),
        )
    record: dict[str, float | int] = {
        "nats_per_token": score.nats_per_token,
        "perplexity": score.perplexity,
        "bits_per_byte": score.bits_per_byte,
        "tokens": score.tokens,
        "bytes": score.bytes,
    }
    masked = score.accuracy is not None
    if score.accuracy is not None:
        record |= {"masked_accuracy": score.accuracy, "pseudo_perplexity": score.perplexity}
    if as_json:
        print_json(record)
        return
    names = {
        "nats_per_token": say("nats a token"),
        "perplexity": say("pseudo-perplexity (each token masked alone)") if masked else say("perplexity"),
        "bits_per_byte": say("bits a byte"),
        "tokens": say("tokens"),
        "bytes": say("bytes"),
        "masked_accuracy": say("masked accuracy"),
    }
    for name, title in names.items():
        if name in record:
            value = record[name]
            console().print(f"{value:>14,}  {title}" if isinstance(value, int) else f"{value:>14.4f}  {title}")
