"""What a made corpus is: documents, and questions whose answers are known."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

from lookback.errors import InputError
from lookback.files import write_aside


class Question(NamedTuple):
    """One thing to ask of a document; places count characters from 0.

    The model that has read up to and including ``position`` is asked, there; ``source`` is the character that fixes the
    answer. Where the task is to predict the next character, ``answer`` stands at ``position`` + 1.
    """

    position: int
    answer: str
    source: int


@dataclass(frozen=True)
class Made:
    """A made corpus.

    ``questions`` are those of each document, the same number for all; ``candidates`` are the possible answers to the
    first, second, … question. ``chance`` is how often the best guess is right that does not read the source.
    """

    documents: tuple[str, ...]
    questions: tuple[tuple[Question, ...], ...]
    candidates: tuple[tuple[str, ...], ...]
    chance: float

    def write(self, folder: Path) -> Path:
        """Write ``made.jsonl``, a document and its questions a line; ``folder`` is then a corpus like any other."""
        with write_aside(folder / "made.jsonl") as aside, aside.open("w", encoding="utf-8", newline="\n") as file:
            for text, questions in zip(self.documents, self.questions, strict=True):
                line = {"text": text, "questions": [question._asdict() for question in questions]}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        return folder


# The beginning of the Thousand Character Classic, in which hardly a character comes twice; those few are left out.
SYMBOLS = (
    "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏闰余成岁律吕调阳云腾致雨露结为霜金生丽水玉出昆冈剑号巨阙珠称夜光"
    "果珍李柰菜重芥姜海咸河淡鳞潜羽翔龙师火帝鸟官人皇始制文字乃服衣裳推位让国有虞陶唐吊民伐罪周发殷汤坐朝问道垂拱平章"
    "爱育黎首臣伏戎羌遐迩一体率宾归王鸣凤在竹白驹食场化被草木赖及万方"
)


def random_for(task: str, seed: int) -> Random:
    """Random numbers of a task's own, so that one seed in two tasks, or settings of one, means nothing in common."""
    return Random(f"{task} {seed}")


def balanced(options: tuple[str, ...], count: int, random: Random) -> list[str]:
    """``count`` of ``options`` in random order, each as often as the others (or once more)."""
    drawn = [options[number % len(options)] for number in range(count)]
    random.shuffle(drawn)
    return drawn


def words(text: str) -> tuple[str, ...]:
    """What white space divides in ``text``."""
    return tuple(text.split())


def check_range(name: str, number: int, least: int = 1, most: int = 10**6) -> None:
    """Raises InputError unless the argument ``name`` is ``least`` to ``most``."""
    if not least <= number <= most:
        raise InputError(
            "{name} = {number} is not possible; it may be {least} to {most}",
            name=name,
            number=number,
            least=least,
            most=most,
        )
