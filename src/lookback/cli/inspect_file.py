"""``lookback inspect-file``: what a model file or folder holds, without loading its weights."""

from __future__ import annotations

from typing import Any

import typer

from lookback.cli.language import say
from lookback.cli.output import console, print_json

HELP = "Print what a model file or folder holds, without loading the weights."
EXAMPLE = "lookback inspect-file runs/tang"


def command(
    path: str = typer.Argument(..., metavar="PATH", help=say("A model folder, or a GGUF file.")),
    as_json: bool = typer.Option(False, "--json", help=say("End with one JSON object on standard output.")),
) -> None:
    from pathlib import Path

    from lookback.weights import describe, open_model

    record = describe(open_model(Path(path)))
    if as_json:
        print_json(record)
        return
    screen = console()
    screen.print(f"[bold]{record['family']}[/bold] · {record['format']} · {record['path']}")
    screen.print(
        say(
            "{parameters} parameters in {tensors} tensors",
            parameters=f"{record['parameters']:,}",
            tensors=record["tensors"],
        )
    )
    screen.print(say("numbers: {kinds}", kinds=_listed(record["dtypes"], "")))
    screen.print(say("memory: {sizes}", sizes=_listed(record["memory_bytes"])))
    if sizes := record.get("kv_cache_bytes_per_1000_tokens"):
        screen.print(say("KV cache per 1,000 tokens: {sizes}", sizes=_listed(sizes)))
    if sizes := record.get("state_bytes"):
        screen.print(say("state, at any length: {sizes}", sizes=_listed(sizes)))
    for name, value in record["config"].items():
        screen.print(f"  {name}: {value}", style="dim", markup=False)


def _listed(sizes: dict[str, Any], unit: str = " B") -> str:
    return ", ".join(f"{name} {value:,}{unit}" for name, value in sizes.items())
