"""What the scripts under scripts/ make of their sources, on small examples of everything they must cope with."""

from __future__ import annotations

import importlib.util
import json
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

from lookback.assets import documents

SCRIPTS = Path(__file__).parents[2] / "scripts"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tang = script("make_tang")
shakespeare = script("make_shakespeare")


def whole(*paragraphs: str, title: str = "題") -> list[str]:
    return [line for line in tang.lines_of(title, list(paragraphs)) if tang.WHOLE.fullmatch(line)]


@pytest.mark.parametrize(
    ("paragraphs", "lines"),
    [
        (["水急客舟（一作「行」）疾，山花拂面香。"], ["水急客舟疾，山花拂面香。"]),
        (["甲乙。", "（見《英華》卷三。", "又見《紀事》）。", "丙丁。"], ["甲乙。", "丙丁。"]),
        (["甲乙（見《英華》〖卷三（上）〗，一作丙）丁。"], ["甲乙丁。"]),
        (["甲乙〖1〗丙丁。", "（〖1〗《紀事》云。", "〗）。"], ["甲乙丙丁。"]),
        (["甲乙丙。", "（見《英華》〖卷三，", "未完）丁戊。"], ["甲乙丙。", "丁戊。"]),
        (["甲乙丙。", "（見《英華》（按：此詩。", "又見）。"], ["甲乙丙。"]),
        (["聞道（）風）雨來。"], ["聞道風雨來。"]),
        (["影令羣木外，香滿一輪[中]（木）。"], ["影令羣木外，香滿一輪中。"]),
        (["好僊復寵戰[一]，莫救茂陵隈[十二]。"], ["好僊復寵戰，莫救茂陵隈。"]),
        (["童子解吟《長恨曲》，「胡兒」能唱『琵琶』。"], ["童子解吟長恨曲，胡兒能唱琵琶。"]),
        (["「借問女郎何處來？", "」含嚬欲語聲先咽。"], ["借問女郎何處來？", "含嚬欲語聲先咽。"]),
        (["愁殺人！（見《英華》）。"], ["愁殺人！"]),
        (["甲乙，（一作丙）。", "丁戊"], ["甲乙。", "丁戊。"]),
        (["拭淚聽猿嗁/。"], ["拭淚聽猿嗁。"]),
        (["良弓摧折久，誰識是龍韜。", "按：《全唐詩》卷一○九收此二句。", "今重錄。"], ["良弓摧折久，誰識是龍韜。"]),
        (["閒雲：自去、自來；"], ["閒雲：自去、自來；"]),
    ],
)
def test_notes_and_marks_go_and_the_verse_stays(paragraphs: list[str], lines: list[str]) -> None:
    assert whole(*paragraphs) == lines


@pytest.mark.parametrize(
    "gap",
    [
        "東□門外多離別。",
        "●鼓不勝。",
        "岸蘆{艹/糓}蓛。",
        "村響{姊女=臼}香秔。",
        "⿰亻丸香坐處。",
        "身思\ue829狡兔。",
        "白日○山盡。",
        "連階（下缺）。",
        "（上缺）如。",
        "（缺二十字）徹曉紗窗下。",
        "縱百年活（此句缺一字），須臾一向子。",
        "力迥中秋出（下泐十二字）彩分。",
        "晴（闕）雨。",
    ],
)
def test_a_line_with_a_gap_goes_and_the_others_stay(gap: str) -> None:
    assert whole("甲乙丙丁。", gap, "戊己庚辛。") == ["甲乙丙丁。", "戊己庚辛。"]
    assert len(tang.lines_of("題", [gap])) == 1  # it counts as a line lost


def test_a_note_of_a_gap_that_nothing_closes_is_one_too() -> None:
    assert whole("甲乙丙丁。", "庭蕪白（下缺") == ["甲乙丙丁。"]
    assert whole("甲乙丙丁。", "庭蕪白（下缺", "見同書。") == ["甲乙丙丁。"]


@pytest.mark.parametrize("note", ["（缺字據《大典》補）", "（闕名）", "（缺文據吉逾條補）", "（原卷缺題）"])
def test_notes_that_only_speak_of_gaps_leave_none(note: str) -> None:
    assert whole(f"甲乙{note}丙丁。") == ["甲乙丙丁。"]


@pytest.mark.parametrize(
    ("title", "paragraphs"),
    [
        ("", ["。"]),
        ("", []),
        ("挽歌五首", ["（見同書）。"]),
        ("登樓", ["空（《全唐詩》卷三作王宏詩。", "）。"]),
        ("贈樊川長老", ["贈樊川長老。"]),
        ("前言", ["唐詩體制繁複。", "前承樂府。"]),
    ],
)
def test_records_without_a_text_are_no_poems(title: str, paragraphs: list[str]) -> None:
    assert tang.lines_of(title, paragraphs) == []


def test_variants_are_folded_and_words_kept_that_simplifying_would_change() -> None:
    def convert(text: str) -> str:
        return text.translate(str.maketrans("劍乾徵蘋約後雲", "剑干征苹约后云"))

    assert tang.simplify("劒後雲，乾坤乾。宮徵徵君白蘋", convert) == "剑后云，乾坤干。宮徵征君白蘋"
    assert tang.simplify("沈沙沈約沈。", convert) == "沉沙沈约沉。"


def test_a_conversion_that_changes_the_length_is_refused() -> None:
    with pytest.raises(ValueError, match="length"):
        tang.simplify("甲乙", lambda text: text + "丙")


def test_no_variant_leads_to_another() -> None:
    assert not {chr(old) for old in tang.VARIANTS} & set(tang.VARIANTS.values())


def test_poems_are_made_in_the_order_of_the_source_from_tarball_and_folder(tmp_path: Path) -> None:
    folder = tmp_path / "package/dist/quantangshi"
    folder.mkdir(parents=True)
    for number, text in ((0, "甲"), (2000, "乙"), (10000, "丙")):
        poems = [{"title": "題", "paragraphs": [f"{text}。"]}, {"title": "", "paragraphs": ["。"]}]
        (folder / f"poet.tang.{number}.json").write_text(json.dumps(poems), "utf-8")
    (folder / "poet.song.0.json").write_text("[]", "utf-8")
    with tarfile.open(tmp_path / "source.tgz", "w:gz") as tarball:
        tarball.add(tmp_path / "package", "package")
    for source in (tmp_path / "source.tgz", tmp_path / "package"):
        made, counts = tang.make(tang.read_poems(source), str)
        assert made == ["甲。", "乙。", "丙。"]
        assert counts["records"] == 6
        assert counts["records without a text"] == 3


PLAY = """# A Play

## ACT I

### SCENE I. A room. HAMLET
asleep.

_Enter HAMLET, and
others_

**HAMLET**$
To be,\\--or not _[Aside]_$
to be.

_Exit_

**ROSENCRANTZ & GUILDENSTERN**$
__\\[Sings]_$
Hey, & c.

SCENE II: Belmont. A room.

**Nobody**$
_Dies_

### EPILOGUE

**PROSPERO**$
Now—go.
""".replace("$\n", "  \n")  # a line break of Markdown


def test_a_play_becomes_scenes_of_speeches() -> None:
    assert list(shakespeare.scenes(PLAY)) == [
        "HAMLET:\nTo be,--or not\nto be.\n\nROSENCRANTZ and GUILDENSTERN:\nHey, &c.",
        "PROSPERO:\nNow--go.",
    ]


def test_the_scripts_write_where_the_package_reads() -> None:
    for made in (tang, shakespeare):
        assert made.TARGET.is_file()
        assert documents(made.TARGET.name.removesuffix(".txt.xz"))
