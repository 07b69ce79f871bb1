"""``lookback export``: a model as a folder that other tools open."""

from __future__ import annotations

import typer

from lookback.cli.language import say
from lookback.cli.output import console, print_json

HELP = "Write a model as a folder that Hugging Face and vLLM open; the result is opened again and compared."
EXAMPLE = "lookback export runs/tang --to huggingface exported"


def command(
    model: str = typer.Argument(..., metavar="MODEL", help=say("A model folder, a GGUF file, or hf:owner/name.")),
    out: str = typer.Argument(..., metavar="OUT", help=say("The folder to write; it must not hold anything yet.")),
    to: str = typer.Option("huggingface", "--to", help=say("huggingface, or lookback (every family).")),
    as_json: bool = typer.Option(False, "--json", help=say("End with one JSON object on standard output.")),
) -> None:
    from pathlib import Path

    from lookback.session import export, load

    report = export(load(model, device="cpu"), Path(out), to=to)
    if as_json:
        print_json(report)
        return
    console().print(
        say(
            "{out}: {architecture}; opened again, its logits differ by at most {difference}",
            out=out,
            architecture=report["architecture"],
            difference=f"{report['largest_difference']:.1e}",
        )
    )
