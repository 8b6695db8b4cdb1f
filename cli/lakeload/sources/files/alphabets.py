"""Encodings of text, ranked by how usual the characters are that they make of the same bytes.

Each character has a cost, the higher the less usual it is in a language where it stands. An
encoding costs what it costs in the language of it that fits best. Costs are those of a logarithm:
a difference of 5 is one of 1 : 150.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import log

_SAMPLE = 1 << 14
_MOST_WORDS = 400
_WORD = re.compile(rb"[A-Za-z\x80-\xff]*[\x80-\xff][A-Za-z\x80-\xff]*")

_LATIN = {
    # Letters beyond ASCII, the most frequent ones first.
    "German": "üäöß",
    "French": "éèêàçâîôûùïœëüÿæ",
    "Spanish": "óíáéñúü",
    "Portuguese": "ãáçéíóêõúâàô",
    "Italian": "àèùòéì",
    "Catalan": "àèéíòóúçïü",
    "Danish": "øåæé",
    "Swedish": "äöåé",
    "Icelandic": "íáéðöúóþæý",
    "Dutch": "ëéïèöü",
}
_CENTRAL = {
    "Polish": "łęóąśżćńź",
    "Czech": "íáéěýřšžčůúťďňó",
    "Slovak": "áíýčžéšúľťôňäďóĺŕ",
    "Hungarian": "áéöőóüíűú",
    "Romanian": "ăîşţâ",
    "Croatian": "čšžćđ",
    "German": "üäöß",
}
_CYRILLIC = {
    "Russian": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё",
    "Ukrainian": "оаинвіертслкмдпуягзьбчйхжшїюєцщґф",
    "Bulgarian": "аоиентрсвлдкпмзяъубгчйжщцхшюфь",
    "Serbian": "аоиенрсјтувкдпмлзгбчшцжхњћђљфџ",
    "Belarusian": "анiоіерстлкдвыумпязьгбчйўхшжцюёэф",
}
_OTHERS = {
    "Turkish": {"Turkish": "ıüşöçğİâî"},
    "Baltic": {
        "Lithuanian": "ėšžųįąūčę",
        "Latvian": "āīēšūņļžčķģ",
        "Estonian": "äõüöšž",
    },
    "Greek": {"Greek": "αοιετσνηυρπκμλωςάέήίόύώγδχθφβξζψϊϋΐΰ"},
    "Hebrew": {"Hebrew": "יוהלאתמשברנחפקעדטכצגסזםןךףץ"},
    "Arabic": {
        "Arabic": "اليمنرتبوهعدفسكقحجشطخصضةأئإغثزذىظءآؤ",
        "Persian": "ایرندمهوتسبشلکزفگعخقجحپصطچضغثذظژ",
    },
    "Thai": {"Thai": "านรอกเงมยลวดทสตะปบคหแจพชขใัิ่้ีึืุู์็ไโธผภณศษซญถฐฟฉฎ"},
}
_CHINESE = (
    "的一是不了在人有我他中来上大为和国地到以说时要就出会可也你对生能年发后作里用道行所家成方多经去"
    "法学如都同现当没动面起看定天分还进好小部其主样本前开只从想实日路市区县省号公司名称编数量价格期客户订单姓"
    "址电话北京海东西南山州江河湖门广限王李张刘陈明华文化产品备注类型状态"
)
_TAIWANESE = (
    "的一是不了在人有我他中來上大為和國地到以說時要就出會可也你對生能年發後作裡用道行所家成方多經去"
    "法學如都同現當沒動面起看定天分還進好小部其主樣本前開只從想實日路市區縣省號公司名稱編數量價格期客戶訂單姓"
    "址電話臺台灣北高雄中南新竹門限王李張劉陳林黃明華文產品備註類型狀態"
)
_JAPANESE = (
    "のにるたとはしいをでてがなれからさっりすあもこまうくよきんめおけそつだ"
    "ーンスルトリイアラックドシレジタフロカテマィグバムプオコデニウメサビナ"
    "日年大月人一本中会社市東京都区町村名前山田川本木林番号氏住所電話株式県府北海道"
    "様客商品価格数量国高橋鈴木佐藤二三四五六七八九十丸内外場学校駅・"
)
_KOREAN = (
    "이다에의는로하을가고지서한은기으년대사시를리도인스일자호구동명번주문소김박최전부산울특별광역"
    "상품객군면읍길수량가격화"
)


@dataclass(frozen=True)
class Alphabet:
    """An encoding and the languages that are written in it. `prior` is what it costs by itself,
    the more the rarer it is. Of ideographs `standard` has the common ones alone, in `leads` of
    it."""

    name: str
    languages: Mapping[str, str]
    prior: float = 0.0
    standard: str = ""
    leads: tuple[int, int] = (0, 0)


_ALPHABETS = (
    Alphabet("windows-1252", _LATIN),
    Alphabet("windows-1250", _CENTRAL, 1),
    Alphabet("cp850", _LATIN, 2),
    Alphabet("mac-roman", _LATIN, 3),
    Alphabet("iso-8859-15", _LATIN, 3.5),
    Alphabet("cp437", _LATIN, 3.5),
    Alphabet("iso-8859-2", _CENTRAL, 2.5),
    Alphabet("cp852", _CENTRAL, 3),
    Alphabet("mac-latin2", _CENTRAL, 4.5),
    Alphabet("windows-1254", _OTHERS["Turkish"], 1.5),
    Alphabet("cp857", _OTHERS["Turkish"], 3.5),
    Alphabet("windows-1257", _OTHERS["Baltic"], 1.5),
    Alphabet("cp775", _OTHERS["Baltic"], 3.5),
    Alphabet("windows-1251", _CYRILLIC, 0.5),
    Alphabet("koi8-r", _CYRILLIC, 1.5),
    Alphabet("cp866", _CYRILLIC, 1.5),
    Alphabet("koi8-u", _CYRILLIC, 2),
    Alphabet("iso-8859-5", _CYRILLIC, 3.5),
    Alphabet("mac-cyrillic", _CYRILLIC, 3),
    Alphabet("windows-1253", _OTHERS["Greek"], 1.5),
    Alphabet("iso-8859-7", _OTHERS["Greek"], 2.5),
    Alphabet("cp737", _OTHERS["Greek"], 3.5),
    Alphabet("windows-1255", _OTHERS["Hebrew"]),
    Alphabet("cp862", _OTHERS["Hebrew"], 2.5),
    Alphabet("windows-1256", _OTHERS["Arabic"], 0.5),
    Alphabet("iso-8859-6", _OTHERS["Arabic"], 2),
    Alphabet("cp874", _OTHERS["Thai"], 0.5),
    Alphabet("gb18030", {"Chinese": _CHINESE}, 0.5, "gb2312", (0xB0, 0xD7)),
    Alphabet("cp932", {"Japanese": _JAPANESE}, 0.5, "shift_jis", (0x88, 0x97)),
    Alphabet("euc_jp", {"Japanese": _JAPANESE}, 1.5, "euc_jp", (0xB0, 0xCF)),
    Alphabet("cp949", {"Korean": _KOREAN}, 0.5, "euc_kr", (0xB0, 0xC8)),
    Alphabet("big5", {"Chinese": _TAIWANESE}, 0.5, "big5", (0xA4, 0xC6)),
)
UTF8 = "utf-8"

_LETTER, _RARE_LETTER = 0.01, 0.003
"""How usual a letter is that the language does not have."""
_SIGN, _SIGN_WITHIN, _ODD_SIGN = 0.1, 0.01, 0.0005
_SIGNS = frozenset("“”„‚’‘–—…€£§°«»·´`¿¡½¼¾¹²³±÷¢¥µ×©®™ºª•\xa0‑")
_WITHIN_WORDS = frozenset("’‘'–—-·´`")
_LINES = re.compile("[\u2500-\u259f]+")
_OF_IDEOGRAPHS = re.compile("[\u3000-\u303f\uff01-\uff5e]")
_BROKEN = 0.0005
_FIRST_OF_OTHERS = "\u0250"
"""Letters before it are Latin."""


@dataclass(frozen=True)
class Reading:
    """What an encoding makes of bytes. `words` are those with characters beyond ASCII, and `cost`
    is their sum; `mean` is that of a character."""

    name: str
    words: tuple[str, ...]
    cost: float
    mean: float


def readings(data: bytes) -> list[Reading]:
    """Return what the encodings make of bytes that are not UTF-8, the most usual text first. Of
    those that make the same text the most frequent one is returned."""
    lines = list(dict.fromkeys(line for line in data.splitlines() if not line.isascii()))
    sample = b"\n".join(lines)[:_SAMPLE]
    words = list(dict.fromkeys(_WORD.findall(sample)))[:_MOST_WORDS]
    found: dict[tuple[str, ...], Reading] = {}
    for alphabet in (*_ALPHABETS, Alphabet(UTF8, _LATIN)):
        texts = _words(sample, words, alphabet)
        if texts is None:
            continue
        if alphabet.name == UTF8:
            cost, count = _cost_of_utf8(texts)
        else:
            contexts, drawn = _contexts(texts)
            languages = [_known_costs(alphabet.name, name) for name in alphabet.languages]
            cost = min(sum(map(known.__getitem__, contexts)) for known in languages)
            cost, count = cost - drawn * log(_SIGN), drawn + len(contexts)
        total = cost + alphabet.prior
        reading = Reading(alphabet.name, texts, total, cost / max(count, 1))
        known = found.get(texts)
        if known is None or total < known.cost:
            found[texts] = reading
    return sorted(found.values(), key=lambda one: one.cost)


def _words(sample: bytes, words: Sequence[bytes], alphabet: Alphabet) -> tuple[str, ...] | None:
    """Return the words in an encoding, None where some bytes are none of its characters."""
    try:
        if alphabet.name == UTF8:
            return tuple(word.decode(errors="replace") for word in words)
        if not alphabet.standard:
            return tuple(word.decode(alphabet.name) for word in words)
        # A character may end with a byte of ASCII. The last one may be cut.
        text = codecs.getincrementaldecoder(alphabet.name)().decode(sample)
    except UnicodeDecodeError:
        return None
    found = re.findall(r"[^\x00-@\[-`{-\x7f]*[^\x00-\x7f][^\x00-@\[-`{-\x7f]*", text)
    return tuple(dict.fromkeys(found)) or None


def _cost_of_utf8(texts: Sequence[str]) -> tuple[float, int]:
    """Return the cost of text with some bytes that are not UTF-8: all others are."""
    broken = sum(text.count("\ufffd") for text in texts)
    count = sum(not char.isascii() for text in texts for char in text)
    good = count - broken
    # Letters of other encodings make no character of several bytes by chance.
    return (broken * -log(_BROKEN) - good * log(2), count)


def _contexts(texts: Sequence[str]) -> tuple[list[str], int]:
    """Return each character beyond ASCII with what its cost depends on, but for those of words that
    are lines, which are counted.

    A context is a character of the kind of the one before it, itself, one of the kind of the one
    behind it, and a fourth character where all three are the same.
    """
    contexts, lines = [], 0
    for text in texts:
        if _LINES.fullmatch(text):
            lines += len(text)
            continue
        around = [" ", *map(_alike, text), " "]
        for place, char in enumerate(text):
            if char > "\x7f":
                same = text[place - 1 : place + 2] == char * 3
                contexts.append(f"{around[place]}{char}{around[place + 2]}{'=' if same else ''}")
    return contexts, lines


@lru_cache(1 << 14)
def _alike(char: str) -> str:
    """Return one and the same character for all that make no difference beside another one."""
    of_its_kind = (char.isalpha(), char.isascii(), char.islower(), char.isupper())
    return _KINDS.setdefault(of_its_kind, char)


_KINDS: dict[tuple[bool, bool, bool, bool], str] = {}


class _KnownCosts(dict[str, float]):
    """What the contexts of characters cost in a language: many words have the same ones."""

    def __init__(self, letters: str, alphabet: Alphabet) -> None:
        # The first letter is the most usual one, the last one some less.
        self._usual = {c: 1 - 0.7 * place / len(letters) for place, c in enumerate(letters)}
        self._alphabet = alphabet

    def __missing__(self, context: str) -> float:
        if self._alphabet.standard:
            # Two bytes say as much as two characters.
            share = _of_ideograph(context, self._usual, self._alphabet)
            cost = -(2 if context[1] not in _HALF_WIDTH else 1) * log(share)
        else:
            cost = -log(_share(context, self._usual, self._alphabet))
        if len(self) >= _MOST_KNOWN:
            self.clear()
        self[context] = cost
        return cost


_MOST_KNOWN = 4000
"""As many costs of a language are kept."""


@cache
def _known_costs(alphabet: str, language: str) -> _KnownCosts:
    """Return the costs of a language in an alphabet, both by their names."""
    [found] = (one for one in _ALPHABETS if one.name == alphabet)
    return _KnownCosts(found.languages[language], found)


_HALF_WIDTH = frozenset(map(chr, range(0xFF61, 0xFFA0)))


def _share(context: str, usual: Mapping[str, float], alphabet: Alphabet) -> float:
    """Return how usual a character is in a language, and where it stands."""
    before, char, behind = context[0], context[1], context[2]
    is_latin = next(iter(usual)) < _FIRST_OF_OTHERS
    beside = before.isalpha() + behind.isalpha()
    if not char.isalpha() and not unicodedata.combining(char) and char not in usual:
        if char not in _SIGNS:
            return _ODD_SIGN
        if beside == 2 or (beside and char in "½²³©®™§€£µ×"):
            return _SIGN if char in _WITHIN_WORDS else _SIGN_WITHIN
        return _SIGN
    lower = char.lower() if char not in usual else char
    share = usual.get(lower, 0.0)
    if not share:
        share = (
            _LETTER if any(lower in own for own in alphabet.languages.values()) else _RARE_LETTER
        )
    if len(context) > 3 or not beside:
        share *= 0.2
    if char.isupper() and before.islower():
        share *= 0.02
    if char.islower() and before.isupper() and behind.isupper():
        share *= 0.05
    if is_latin:
        if char == "ß" and not before.isalpha():
            share *= 0.05
        if not before.isascii() and before.isalpha():
            share *= 0.3
    elif (before.isascii() and before.isalpha()) or (behind.isascii() and behind.isalpha()):
        # No word has letters of two alphabets.
        share *= 0.02
    return share


def _of_ideograph(context: str, usual: Mapping[str, float], alphabet: Alphabet) -> float:
    """Return how usual a character is in a standard that has the common ones first."""
    before, char, behind = context[0], context[1], context[2]
    share = 0.03
    if char in usual:
        share = 0.5 + 0.5 * usual[char]
    elif _OF_IDEOGRAPHS.match(char):
        share = 0.3
    elif char in _HALF_WIDTH:
        share = 0.1 if before.isalpha() or behind.isalpha() else 0.02
    elif char.isalpha():
        try:
            encoded = char.encode(alphabet.standard)
        except UnicodeEncodeError:
            encoded = b""
        if len(encoded) == 2 and alphabet.leads[0] <= encoded[0] <= alphabet.leads[1]:
            share = 0.4
    beside = [one for one in (before, behind) if one.isascii() and one.isalpha()]
    if any(one.islower() or char in _HALF_WIDTH for one in beside):
        share *= 0.1
    return share
