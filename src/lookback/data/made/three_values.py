"""Three values that one position has to report: amid distractors of one vocabulary, or each of its own."""

from __future__ import annotations

from lookback.data.made.made import SYMBOLS, Made, Question, check_range, random_for

_MARKS = "甲乙丙"
_FRUITS = ("苹果", "梨", "西瓜", "桃子", "葡萄", "香蕉", "橘子", "草莓")
_PROPERTIES = tuple("甜酸脆鲜软硬红大")
_PEOPLE = ("我", "他", "她", "妈妈", "哥哥", "老王")
_TIMES = ("昨天", "今天", "前天", "早上", "刚才")
_ACTIONS = tuple("买卖吃摘送洗收称")
_QUANTITIES = tuple("一两三四五六七八")


def three_values(*, seed: int, count: int, length: int = 24, size: int = 64) -> Made:
    """``count`` texts of ``length`` symbols out of ``size`` (64 or more), three of them marked 甲, 乙 and 丙; then ？.

    The marked places are the same in all texts. All three symbols are asked for at the one position of ？, separately:
    cut the text there where a model can read to its right. The answers follow it in order, so that ordinary training
    on the text asks for them too, one after another.
    """
    check_range("size", size, 64, len(SYMBOLS))
    check_range("length", length, least=6)
    check_range("count", count)
    vocabulary = SYMBOLS[:size]
    random = random_for(f"three_values {length} {size}", seed)
    places = (length // 6, length // 2, 5 * length // 6)
    documents, questions = [], []
    for _ in range(count):
        drawn = random.choices(vocabulary, k=length)
        answers = [drawn[place] for place in places]
        for mark, place in zip(_MARKS, places, strict=True):
            drawn[place] = mark + drawn[place]
        documents.append("".join(drawn) + "？" + "".join(answers))
        sources = [place + marks for marks, place in enumerate(places, start=1)]
        questions.append(_questions(length + 3, answers, sources))
    return Made(tuple(documents), tuple(questions), (tuple(vocabulary),) * 3, chance=1 / size)


def three_roles(*, seed: int, count: int) -> Made:
    """The same with a vocabulary of its own for each role: ``苹果很甜，我昨天买了三斤。？甜买三``.

    A property, an action and a quantity are asked for at ？; each is one of 8 characters that stand for nothing else.
    """
    check_range("count", count)
    random = random_for("three_roles", seed)
    roles = (_PROPERTIES, _ACTIONS, _QUANTITIES)
    documents, questions = [], []
    for _ in range(count):
        fruit, person, time = map(random.choice, (_FRUITS, _PEOPLE, _TIMES))
        answers = [random.choice(role) for role in roles]
        quality, action, quantity = answers
        text = f"{fruit}很{quality}，{person}{time}{action}了{quantity}斤。"
        documents.append(text + "？" + "".join(answers))
        questions.append(_questions(len(text), answers, [text.index(answer) for answer in answers]))
    return Made(tuple(documents), tuple(questions), roles, chance=1 / 8)


def _questions(position: int, answers: list[str], sources: list[int]) -> tuple[Question, ...]:
    return tuple(Question(position, answer, source) for answer, source in zip(answers, sources, strict=True))
