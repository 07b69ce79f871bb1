"""把-sentences whose closing verb an early word alone decides, at any distance: 我把借的旧杯子、帽子和灯笼都还了。"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from random import Random

from lookback.data.made.made import Made, Question, balanced, check_range, random_for, words

# What was done to the things first, and what it makes one do with them in the end. All of it can be done to all things.
VERBS = {"借": "还", "捡": "交", "挑": "买", "存": "取", "偷": "藏", "收": "送", "赢": "分", "做": "卖"}

_SUBJECTS = ("我", "他", "她", "我们", "哥哥", "姐姐", "小王", "老李", "同学")
_TIMES = ("", "昨天", "前天", "上周", "早上", "刚才")
_THINGS = words(
    """
    碗 伞 灯 鞋 帽 笛 扇 桶 琴 球 笔 壶 杯子 帽子 扇子 篮子 灯笼 风筝 围巾 手套 钱包 书包 玩具 木箱 花瓶 面具
    镜子 梳子 毯子 枕头 剪刀 陶罐 茶壶 算盘 毛笔 竹筐 布鞋 雨伞 笛子 二胡 铃铛 棋盘 皮球 木马 板凳 笔记本 不倒翁
    万花筒 手推车 木偶人 望远镜 音乐盒 布娃娃 首饰盒 拨浪鼓
    """
)
_KINDS = words(
    """
    旧 新 大 小 红 蓝 白 黑 门口的 桌上的 墙上的 很旧的 好看的 结实的 架子上的 箱子里的 很好看的 放在门口的
    挂在墙上的 妈妈喜欢的 刻着名字的 包在布里的 摆在窗台上的 朋友很想要的
    """
)
_ADVERBS = (
    ("在天黑以前", "趁着天气好", "赶在下雨之前", "在第二天一早"),
    ("和弟弟一起", "在朋友的帮助下", "当着大家的面"),
    ("一声不响地", "高高兴兴地", "慢慢地"),
)


def _by_length(texts: Iterable[str]) -> dict[int, tuple[str, ...]]:
    lengths: dict[int, list[str]] = {}
    for text in texts:
        lengths.setdefault(len(text), []).append(text)
    return {length: tuple(of_length) for length, of_length in sorted(lengths.items())}


_ITEMS = _by_length((*_THINGS, *(kind + thing for kind, thing in product(_KINDS, _THINGS))))


def ba_sentences(distance: int, *, seed: int, count: int) -> Made:
    """``count`` sentences in which the closing verb stands ``distance`` characters after the word that decides it.

    Both are single characters. What stands between is drawn without regard to them: one thing, described, when it is
    near; a list with adverbial clauses when it is far. ``distance`` is 2 to 256; else InputError.
    """
    check_range("distance", distance, 2, 256)
    check_range("count", count)
    random = random_for(f"ba_sentences {distance}", seed)
    documents, questions = [], []
    for first in balanced(tuple(VERBS), count, random):
        opening = random.choice(_SUBJECTS) + "把" + random.choice(_TIMES)
        source = len(opening)
        documents.append(f"{opening}{first}的{_objects(distance - 2, random)}{VERBS[first]}了。")
        questions.append((Question(source + distance - 1, VERBS[first], source),))
    return Made(tuple(documents), tuple(questions), (tuple(VERBS.values()),), chance=1 / len(VERBS))


def _objects(length: int, random: Random) -> str:
    """What the verb is done to, in exactly ``length`` characters: nothing more, one thing, or a list with 都."""
    if length == 0:
        return ""
    if length in _ITEMS:
        return random.choice(_ITEMS[length])
    adverbs = _adverbs(length - 20, random)
    *items, last = _list(length - len(adverbs), random)
    return "、".join(items) + "和" + last + adverbs + "都"


def _adverbs(room: int, random: Random) -> str:
    """Adverbials of time, company and manner, in this order, each there or not, in at most ``room`` characters."""
    text = ""
    for group in _ADVERBS:
        adverb = random.choice(("", *group))
        text += adverb if len(text + adverb) <= room else ""
    return text


def _list(total: int, random: Random) -> list[str]:
    """Different things, two or more, whose lengths and one character after each come to ``total``."""
    items: list[str] = []
    while total:
        # Nothing or at least 3 must be left, because that many different things of one character there are not.
        lengths = [n for n in _ITEMS if total - n - 1 >= 3 or (total == n + 1 and items)]
        item = random.choice(_ITEMS[random.choice(lengths)])
        if item not in items:
            items.append(item)
            total -= len(item) + 1
    return items
