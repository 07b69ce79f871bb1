"""What training shows while it runs: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from lookback.cli.language import say
from lookback.cli.output import console
from lookback.training import Evaluation, Event, Step, Warned


class TrainingDisplay:
    """Loss, held-out bits a byte, tokens a second and time left; a sample of text at each evaluation."""

    def __init__(self, label: str = "", *, samples: bool = True) -> None:
        self.console: Any = console(error=True)
        self.samples = samples
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:>3.0f}% {task.fields[line]}"),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task(label, total=1.0, line="")
        self.held_out = ""
        self._first: Step | None = None
        self.tokens_per_second = 0.0

    def __enter__(self) -> TrainingDisplay:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def preparing(self, what: str, fraction: float) -> None:
        """Progress of learning a vocabulary, or of turning the text into tokens."""
        line = say("learning the vocabulary") if what == "vocabulary" else say("turning the text into tokens")
        self.bar.update(self.task, completed=fraction, line=line)

    def __call__(self, event: Event) -> None:
        """What `Trainer` reports."""
        if isinstance(event, Step):
            self._step(event)
        elif isinstance(event, Evaluation):
            self._evaluation(event)
        elif isinstance(event, Warned):
            self.console.print("[yellow]" + escape(say(event.template, **event.values)) + "[/yellow]")

    def _step(self, event: Step) -> None:
        first = self._first = self._first or event
        seconds = event.seconds - first.seconds
        if seconds > 0:
            self.tokens_per_second = (event.tokens - first.tokens) / seconds
            left = seconds * (1 - event.fraction) / max(event.fraction - first.fraction, 1e-9)
            line = say(
                "loss {loss}{held_out} · {speed} tokens/s · {left} left",
                loss=f"{event.loss:.3f}",
                held_out=self.held_out,
                speed=f"{self.tokens_per_second:,.0f}",
                left=duration(left),
            )
            self.bar.update(self.task, completed=event.fraction, line=line)

    def _evaluation(self, event: Evaluation) -> None:
        if event.held_out is None:
            line = say("step {step}: loss {loss}", step=event.step, loss=f"{event.loss:.3f}")
        else:
            self.held_out = " · " + say("held-out {bits} bits/byte", bits=f"{event.held_out.bits_per_byte:.3f}")
            line = say(
                "step {step}: loss {loss}, held-out {nats} nats a token, {bits} bits a byte",
                step=event.step,
                loss=f"{event.loss:.3f}",
                nats=f"{event.held_out.nats_per_token:.3f}",
                bits=f"{event.held_out.bits_per_byte:.3f}",
            )
        self.console.print(escape(line))
        if self.samples and event.sample:
            self.console.print("[dim]" + escape("  │ " + event.sample.replace("\n", "\n  │ ")) + "[/dim]")


def duration(seconds: float) -> str:
    """1:05 or 2:03:00."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
