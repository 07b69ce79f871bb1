"""``lookback generate``: let a model go on from a text."""

from __future__ import annotations

import sys

import typer

from lookback.cli.language import say
from lookback.cli.output import console, print_json

HELP = "Go on from a prompt (or several), streaming to the terminal."
EXAMPLE = 'lookback generate runs/tang "床前明月光" --max-new-tokens 24 --temperature 0'


def command(
    model: str = typer.Argument(..., metavar="MODEL", help=say("A model folder.")),
    prompts: list[str] = typer.Argument(..., metavar="PROMPT", help=say("What to go on from.")),
    max_new_tokens: int = typer.Option(100, "--max-new-tokens", help=say("The most tokens to write.")),
    temperature: float = typer.Option(1.0, "--temperature", help=say("0 always takes the likeliest token.")),
    top_k: int = typer.Option(None, "--top-k", help=say("Sample from the k likeliest tokens.")),
    top_p: float = typer.Option(None, "--top-p", help=say("Sample from the likeliest tokens that reach p together.")),
    min_p: float = typer.Option(None, "--min-p", help=say("Leave out tokens below p times the likeliest.")),
    repetition_penalty: float = typer.Option(1.0, "--repetition-penalty", help=say("Above 1 avoids what was said.")),
    stop: list[str] = typer.Option([], "--stop", help=say("End before this text (may be given several times).")),
    seed: int = typer.Option(0, "--seed", help=say("Seed of the sampling.")),
    samples: int = typer.Option(1, "--samples", help=say("How many texts to write for each prompt.")),
    cache: bool = typer.Option(True, "--cache/--no-cache", help=say("Keep the state, or recompute everything.")),
    slide: bool = typer.Option(False, "--slide", help=say("At the context's end drop the oldest and recompute.")),
    anyway: bool = typer.Option(False, "--anyway", help=say("Make a BERT write all the same.")),
    device: str = typer.Option("auto", "--device", help=say("cpu, cuda, mps or auto.")),
    as_json: bool = typer.Option(False, "--json", help=say("End with one JSON object on standard output.")),
) -> None:
    from lookback.session import load

    session = load(model, device=device)
    streams = not as_json and len(prompts) * samples == 1

    begun: list[str] = []

    def write(row: int, piece: str) -> None:
        """Show a piece, the first one behind the prompt: what is refused shows nothing."""
        sys.stdout.write(piece if begun else prompts[0] + piece)
        sys.stdout.flush()
        begun.append(piece)

    made = session.generate(
        prompts,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
        stop=stop,
        seed=seed,
        samples=samples,
        use_cache=cache,
        slide=slide,
        anyway=anyway,
        on_text=write if streams else None,
    )
    if as_json:
        texts = [{"text": s.text, "token_ids": s.token_ids, "reason": s.reason} for s in made.samples]
        print_json({"samples": texts, "tokens_per_second": made.tokens_per_second, "state_bytes": made.state_bytes})
        return
    if streams:
        write(0, "\n")
    else:
        for row, sample in enumerate(made.samples):
            sys.stdout.write(f"— {row + 1} —\n{prompts[row // samples]}{sample.text}\n")
    console(error=True).print(
        say(
            "{reason} · {speed} tokens/s · state of {bytes} bytes",
            reason=", ".join(sorted({_reason(sample.reason) for sample in made.samples})),
            speed=f"{made.tokens_per_second:,.0f}",
            bytes=f"{made.state_bytes:,}",
        ),
        style="dim",
    )


def _reason(reason: str) -> str:
    if reason == "stop":
        return say("ended at a stop text")
    return say("ended where the text ends") if reason == "end" else say("ended at the limit of length")
