"""``lookback demo``: the whole story in about three minutes.

Four models of equal size learn from the same text for the same time; then each finishes a line, and what the theory
says of them is measured: the cache is exact and saves work, and no later token reaches an earlier one.
"""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lookback.cli.language import say
from lookback.cli.output import console, print_json

if TYPE_CHECKING:
    from lookback.session import Session

HELP = "Train an RNN, an LSTM, a GPT and a BERT of equal size, compare them, and prove what is said of them."
EXAMPLE = "lookback demo --corpus my.txt"

_FAMILIES = ("rnn", "lstm", "gpt", "bert")
_CONTEXT = 256
# What each learns most with in half a minute, found by trying: the longest window, tokens a step, learning rate.
_RECIPES = {"rnn": (32, 256, 3e-3), "lstm": (32, 256, 1e-2), "gpt": (256, 1024, 3e-3), "bert": (256, 1024, 3e-3)}
_STATE_TOKENS = 200
_VERSE = "床前明月光"


@dataclass(frozen=True)
class Trained:
    """One model of the demo and what was measured of it."""

    session: Session
    training_speed: float
    generation_speed: float | None
    state_bytes: int | None

    @property
    def row(self) -> dict[str, Any]:
        record = self.session.record
        return {
            "family": record["family"],
            "parameters": record["parameters"],
            "tokens_seen": record["tokens_seen"],
            "bits_per_byte": record["held_out"]["bits_per_byte"],
            "training_tokens_per_second": round(self.training_speed),
            "generation_tokens_per_second": self.generation_speed and round(self.generation_speed),
            "state_bytes": self.state_bytes,
        }


def command(
    corpus: str = typer.Option("tang", "--corpus", help=say("A file, a folder, or a bundled corpus.")),
    minutes: float = typer.Option(2.0, "--minutes", help=say("Training time of all four together.")),
    parameters: str = typer.Option("1M", "--parameters", help=say("Size of each model.")),
    seed: int = typer.Option(1, "--seed", help=say("Seed of everything random.")),
    encoding: str = typer.Option("utf-8", "--encoding", help=say("The text's encoding.")),
    out: str = typer.Option(
        "runs/demo", "--out", help=say("Where the four models go; an earlier demo there is replaced.")
    ),
    as_json: bool = typer.Option(False, "--json", help=say("End with one JSON object on standard output.")),
) -> None:
    from lookback.cli.output import count
    from lookback.files import write_folder_aside

    began = time.monotonic()
    folder = Path(out)
    budget = count(parameters)
    line = _opening(corpus, encoding)
    _check_place(folder)
    with write_folder_aside(folder) as aside:  # An earlier demo goes when this one is there.
        models = [
            _train(family, corpus, aside / family, minutes / len(_FAMILIES), budget, seed, encoding)
            for family in _FAMILIES
        ]
    causal = [model.session for model in models if model.session.model.config.causal]
    proofs = [_proof(session, line) for session in causal]
    if as_json:
        print_json(
            {
                "models": [model.row for model in models],
                "proofs": proofs,
                "seconds": round(time.monotonic() - began, 1),
            }
        )
        return
    screen = console()
    screen.print(_table(models))
    screen.print(
        say(
            "learns/s, writes/s: tokens a second in training and in generation; state: bytes after {tokens} tokens",
            tokens=_STATE_TOKENS,
        ),
        style="dim",
    )
    screen.print(
        say("* BERT sees both sides, and only its masked tokens count: not to be compared with the others."),
        style="dim",
    )
    _show_writing(causal, line)
    _show_filling(models[-1].session, line)
    _show_proofs(proofs)
    screen.print(
        "\n"
        + say(
            "{seconds} s. The models are in {folder}; go on with:",
            seconds=round(time.monotonic() - began),
            folder=folder,
        ),
        markup=False,
    )
    gpt = shlex.quote(str(folder / "gpt"))
    screen.print(f"  lookback generate {gpt} {shlex.quote(line)} --temperature 0.8", markup=False)
    screen.print(f"  lookback train {shlex.quote(corpus)} --model gpt --minutes 10 --out runs/mine", markup=False)


def _check_place(folder: Path) -> None:
    """Refuse to replace anything but an earlier demo."""
    from lookback.errors import InputError

    if folder.exists() and not (folder.is_dir() and {path.name for path in folder.iterdir()} <= set(_FAMILIES)):
        raise InputError("{path} holds something else than a demo; choose another --out", path=folder)


def _train(
    family: str, corpus: str, folder: Path, minutes: float, parameters: int | None, seed: int, encoding: str
) -> Trained:
    from lookback.cli.progress import TrainingDisplay
    from lookback.session import train

    longest, tokens, rate = _RECIPES[family]
    length = min(longest, _window(corpus, encoding))
    with TrainingDisplay(family.upper(), samples=False) as display:
        display.console.print(say("training: {family}", family=family.upper()))
        session = train(
            corpus,
            out=folder,
            model=family,
            parameters=parameters,
            context=_CONTEXT if family in ("gpt", "bert") else None,
            minutes=minutes,
            evaluate_every=10**6,
            evaluate_tokens=20_000 if family == "bert" else 2_000,  # of a BERT's only the masked ones count
            length=length,
            batch=tokens // length,
            rate=rate,
            unknown=True,
            seed=seed,
            encoding=encoding,
            report=display,
            notify=display.preparing,
        )
    if session.record["end"] == "interrupted":
        raise KeyboardInterrupt
    speed = session.record["tokens_seen"] / session.record["seconds"]
    if not session.model.config.causal:
        return Trained(session, speed, None, None)
    _write(session, [session.tokenizer.divider], 8)  # the first call is slower than those that follow
    made = _write(session, [session.tokenizer.divider], _STATE_TOKENS)
    return Trained(session, speed, made.tokens_per_second, made.state_bytes)


def _write(session: Session, ids: list[int], tokens: int, cache: bool = True) -> Any:
    """Exactly ``tokens`` tokens, the likeliest each time, past any end of text."""
    from lookback.generation import Sampling, generate

    return generate(
        session.model, session.tokenizer, [ids], max_new_tokens=tokens, sampling=Sampling(0.0), end=None, cache=cache
    )


def _window(corpus: str, encoding: str) -> int:
    """The longest window, a power of two, of which the tenth that is held out has room for four."""
    from itertools import islice

    from lookback.data import open_corpus

    most, least = _CONTEXT, 8
    characters = sum(map(len, islice(open_corpus(corpus, encoding=encoding).documents(), 40 * most)))
    return max(least, 1 << min(most.bit_length() - 1, max(characters // 40, 1).bit_length() - 1))


def _opening(corpus: str, encoding: str) -> str:
    """The line that every model finishes: a known verse, or the first characters of the person's own text."""
    if corpus == "tang":
        return _VERSE
    from lookback.data import open_corpus

    return next(iter(open_corpus(corpus, encoding=encoding).documents())).lstrip()[:12]


def _proof(session: Session, line: str) -> dict[str, Any]:
    """Cached against uncached logits, the work each takes, and what a later token changes before it."""
    import torch

    ids = session.ids(line)
    with_cache = _write(session, ids, _STATE_TOKENS)
    without = _write(session, ids, _STATE_TOKENS, cache=False)
    text = torch.tensor([[*ids, *with_cache.samples[0].token_ids]], device=session.model.device)
    with torch.inference_mode():
        whole, _ = session.model(text)
        state = session.model.start(1)
        steps = [session.model(text[:, i : i + 1], state=state)[0] for i in range(text.shape[1])]
        other = text.clone()
        other[0, -1] = (other[0, -1] + 1) % session.model.config.vocabulary
        changed, _ = session.model(other)
    return {
        "family": session.record["family"],
        "cached_minus_uncached": float((torch.cat(steps, 1) - whole).abs().max()),
        "same_tokens": with_cache.samples[0].token_ids == without.samples[0].token_ids,
        "work_with_cache": with_cache.work,
        "work_without_cache": without.work,
        "speedup": with_cache.tokens_per_second / without.tokens_per_second,
        "leak": float((changed[:, :-1] - whole[:, :-1]).abs().max()),
    }


def _table(models: list[Trained]) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    titles = (
        say("model"),
        say("parameters"),
        say("tokens seen"),
        say("bits/byte"),
        say("learns/s"),
        say("writes/s"),
        say("state"),
    )
    for number, title in enumerate(titles):
        table.add_column(title, justify="right" if number else "left")
    for model in models:
        row = model.row
        writes = row["generation_tokens_per_second"] is not None
        table.add_row(
            row["family"].upper(),
            f"{row['parameters']:,}",
            f"{row['tokens_seen']:,}",
            f"{row['bits_per_byte']:.3f}" + ("" if writes else "*"),
            f"{row['training_tokens_per_second']:,}",
            f"{row['generation_tokens_per_second']:,}" if writes else "–",
            f"{row['state_bytes']:,} B" if writes else "–",
        )
    return table


def _show_writing(sessions: list[Session], line: str) -> None:
    console().print("\n" + say("Each goes on from: {line}", line=line), style="bold", markup=False)
    for session in sessions:
        made = session.generate(line, max_new_tokens=36, temperature=0.7, top_k=40, seed=1)
        text = (line + made.samples[0].text).replace("\n", " / ")
        console().print(f"  {session.record['family'].upper():<5}{text}", markup=False)


def _show_filling(session: Session, line: str) -> None:
    at = max(1, len(line) * 3 // 5)
    masked = line[:at] + "[MASK]" + line[at + 1 :]
    fills = session.fill(masked, best=5)[0]
    found = "  ".join(f"{fill.text} {fill.probability:.1%}" for fill in fills)
    console().print("\n" + say("BERT fills in: {line}", line=masked), style="bold", markup=False)
    console().print("  " + found, markup=False)


def _show_proofs(proofs: list[dict[str, Any]]) -> None:
    screen = console()
    screen.print("\n" + say("Checked just now:"), style="bold")
    for proof in proofs:
        screen.print(
            "  "
            + say(
                "{family}: cached and uncached logits differ by at most {difference}; the state cut {without} "
                "positions computed to {work} ({speedup}× as fast); changing the last token moves earlier logits by "
                "{leak}",
                family=proof["family"].upper(),
                difference=f"{proof['cached_minus_uncached']:.1e}",
                without=f"{proof['work_without_cache']:,}",
                work=f"{proof['work_with_cache']:,}",
                speedup=f"{proof['speedup']:.1f}",
                leak=f"{proof['leak']:g}",
            ),
            markup=False,
        )
