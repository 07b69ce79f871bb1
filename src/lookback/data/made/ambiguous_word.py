"""Sentences with an ambiguous word whose sense only what follows decides: 听说苹果很贵，内存大，充电很快。"""

from __future__ import annotations

from lookback.data.made.made import Made, Question, check_range, random_for, words
from lookback.errors import InputError

_PHONE = words(
    """
    内存大 屏幕很清楚 系统更新了 充电很快 拍照好看 信号不好 电池不耐用 开机很慢 又出新型号了 死机好几回
    玩游戏发烫 能录像
    """
)
SENSES = {
    "苹果": {
        "水果": words(
            """
            很甜 很脆 汁水多 刚从树上摘下来 削了皮就能吃 熟透了 适合榨汁 掉在果园里 酸得很 有点烂了 被虫咬过
            切成两半
            """
        ),
        "手机": _PHONE,
    },
    "小米": {
        "粮食": words(
            """
            煮粥很香 颗粒饱满 种在山坡上 磨成了粉 秋天才收割 要泡一夜 喂鸡正好 熬得很稠 晒在场院里 装了一麻袋
            旱地也能长 蒸着吃
            """
        ),
        "手机": _PHONE,
    },
    "杜鹃": {
        "鸟": words(
            """
            叫个不停 飞到树上 翅膀受伤了 下了一个蛋 在林子里啼 羽毛是灰的 嘴里叼着虫 春天从南方飞回 占了别人的窝
            胆子很小 一拍手就飞走 会捉毛虫
            """
        ),
        "花": words(
            """
            开得正红 开满了山坡 该浇水了 花瓣落了一地 种在院子里 叶子发黄 剪一枝插瓶 花苞很多 喜欢酸性的土
            要搬到阴凉处 谢得很早 香味很淡
            """
        ),
    },
    "黄牛": {
        "牲口": words(
            """
            在田里吃草 拉着犁 生了小牛 角很长 该喂草了 甩着尾巴 趴在树下反刍 力气很大 身上有牛虻 跟着牧童回家
            拴在木桩上 蹄子陷进泥里
            """
        ),
        "票贩": words(
            """
            手里有票 加价很多 在车站转悠 被警察带走了 专抢好座位 要先付定金 卖演唱会门票 用软件抢号 跟保安很熟
            收现金 骗了不少人 在医院倒号
            """
        ),
    },
}
_BEFORE = words(
    """
    听说 他说 我看 大家都知道 昨天才发现 没想到 你看这 老师提到 电视里说 我觉得 谁都看见 不知为什么
    """
)
_BETWEEN = ("", "很贵，", "真不错，", "很有名，", "不一样，", "很多，", "还可以，")


def ambiguous_word(*, seed: int, count: int, among: tuple[str, ...] = tuple(SENSES)) -> Made:
    """``count`` sentences, in pairs that are the same up to and past an ambiguous word but take it in two senses.

    So whoever reads only up to the word is right exactly half the time. The sense is asked for twice: at the word's
    last character and at the sentence's end. The words are ``among``; InputError if one of them is not in SENSES.
    """
    check_range("count", count)
    for word in among:
        if word not in SENSES:
            raise InputError("{word} is not among the ambiguous words: {words}", word=word, words=", ".join(SENSES))
    random = random_for("ambiguous_word", seed)
    made = []
    for number in range(count):
        if number % 2 == 0:
            word = among[number // 2 % len(among)]
            before, between = random.choice(_BEFORE), random.choice(_BETWEEN)
            senses = random.sample(sorted(SENSES[word]), 2)
        sense = senses[number % 2]
        text = f"{before}{word}{between}{'，'.join(random.sample(SENSES[word][sense], 2))}。"
        at_word, source = len(before + word) - 1, len(before + word + between)
        made.append((text, (Question(at_word, sense, source), Question(len(text) - 1, sense, source))))
    random.shuffle(made)
    documents, questions = zip(*made, strict=True)
    senses_of_all = tuple(dict.fromkeys(sense for word in among for sense in SENSES[word]))
    return Made(documents, questions, (senses_of_all, senses_of_all), chance=1 / 2)
