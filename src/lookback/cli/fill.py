"""``lookback fill``: what a BERT puts where [MASK] stands."""

from __future__ import annotations

import typer

from lookback.cli.language import say
from lookback.cli.output import console, print_json

HELP = "Fill in each [MASK] of a text, by what stands on both sides of it."
EXAMPLE = 'lookback fill runs/tang-bert "床前明[MASK]光"'


def command(
    model: str = typer.Argument(..., metavar="MODEL", help=say("A model folder.")),
    text: str = typer.Argument(..., metavar="TEXT", help=say("A text with one or more [MASK].")),
    best: int = typer.Option(5, "--best", help=say("How many fills to show for each.")),
    one_by_one: bool = typer.Option(
        False, "--one-by-one", help=say("Fill the surest first, then look again, instead of all together.")
    ),
    device: str = typer.Option("auto", "--device", help=say("cpu, cuda, mps or auto.")),
    as_json: bool = typer.Option(False, "--json", help=say("End with one JSON object on standard output.")),
) -> None:
    from lookback.session import load

    fills = load(model, device=device).fill(text, best=best, one_by_one=one_by_one)
    if as_json:
        print_json({"fills": [[{"text": f.text, "probability": f.probability} for f in place] for place in fills]})
        return
    for number, place in enumerate(fills, 1):
        if len(fills) > 1:
            console().print(f"[MASK] {number}", markup=False)
        for choice in place:
            console().print(f"{choice.probability:>8.2%}  {choice.text}", markup=False)
