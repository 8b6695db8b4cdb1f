"""Encodings that are suggested for bytes that are not UTF-8."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import pytest

from lakeload.sources.files.encoding import suggest_encoding
from lakeload.sources.files.formats.base import Guess

GERMAN = "Nördlingen Straße Größe Müller „Zitat“ 5 € kostet’s"
POLISH = "Łódź żółty Kraków święto gęś"
RUSSIAN = "Привет мир, как дела сегодня"


def rows(text: str) -> str:
    return "id,text\n" + "\n".join(f"{n},{word}" for n, word in enumerate(text.split() * 3))


@pytest.mark.parametrize(
    ("text", "written", "suggested"),
    [
        (GERMAN, "cp1252", "windows-1252"),
        (GERMAN, "cp850", "cp850"),
        ("Nördlingen Straße Größe", "latin-1", "windows-1252"),
        ("Øster smørrebrød", "latin-1", "windows-1252"),
        ("élève français Noël", "cp1252", "windows-1252"),
        (POLISH, "cp1250", "windows-1250"),
        (RUSSIAN, "cp1251", "windows-1251"),
        (RUSSIAN, "koi8-r", "koi8-r"),
        (GERMAN, "utf-16-le", "utf-16-le"),
    ],
)
def test_suggest_encoding_returns_the_encoding_of_readable_words(
    text: str, written: str, suggested: str
) -> None:
    guess = suggest_encoding(rows(text).encode(written, "ignore"))

    assert guess is not None
    assert guess.value == suggested


@pytest.mark.parametrize("written", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "ascii"])
def test_suggest_encoding_of_utf_8_is_none(written: str) -> None:
    assert suggest_encoding(rows(GERMAN).encode(written, "ignore")) is None


def test_a_character_that_is_cut_off_is_utf_8() -> None:
    assert suggest_encoding("a,Größe".encode()[:-2]) is None


def test_the_reason_shows_a_word_that_tells_the_encodings_apart() -> None:
    guess = suggest_encoding(rows("Østby Århus").encode("cp1252"))

    assert guess is not None
    assert guess.confidence == "LOW"
    assert guess.reason.startswith("the bytes do not say which encoding it is")
    assert "`Østby`, windows-1250 `Řstby`" in guess.reason
    assert guess.instead == "encoding: windows-1250"


SHORT = [
    ("cp932", "cp932", "id,名前\n1,東京\n"),
    ("cp932", "cp932", "id,name\n1,山田\n2,鈴木\n"),
    ("cp932", "cp932", "コード,値\n1,2\n"),
    ("cp932", "cp932", "氏名,住所\n山田太郎,東京都千代田区\n"),
    ("euc_jp", "euc_jp", "番号,名前\n1,東京\n"),
    ("euc_jp", "euc_jp", "id,name\n1,山田\n"),
    ("gb18030", "gb18030", "编号,名称\n1,北京\n"),
    ("gb18030", "gb18030", "id,name\n1,张三\n2,李四\n"),
    ("gb18030", "gb18030", "城市,人口\n上海,24\n广州,15\n"),
    ("euc_kr", "cp949", "번호,이름\n1,김철수\n"),
    ("euc_kr", "cp949", "id,city\n1,서울\n2,부산\n"),
    ("cp1255", "windows-1255", "id,שם\n1,דוד\n"),
    ("cp1255", "windows-1255", "id,name\n1,שלום\n2,תודה\n"),
    ("cp1255", "windows-1255", "עיר,מספר\nירושלים,1\nתל אביב,2\n"),
    ("cp1256", "windows-1256", "id,name\n1,محمد\n2,علي\n"),
    ("cp1251", "windows-1251", "id,имя\n1,Иван\n"),
    ("cp1251", "windows-1251", "id,name\n1,Москва\n2,Омск\n"),
    ("koi8-r", "koi8-r", "id,имя\n1,Иван\n2,Мария\n"),
    ("cp866", "cp866", "id,name\n1,Москва\n2,Омск\n"),
    ("cp1253", "windows-1253", "id,όνομα\n1,Αθήνα\n"),
    ("cp874", "cp874", "id,name\n1,กรุงเทพ\n2,เชียงใหม่\n"),
]


@pytest.mark.parametrize(("written", "suggested", "text"), SHORT)
def test_a_few_words_of_another_alphabet_suggest_its_encoding(
    written: str, suggested: str, text: str
) -> None:
    guess = suggest_encoding(text.encode(written))

    assert guess is not None
    assert guess.value == suggested
    assert any(f"`{word[:2]}" in guess.reason for word in re.findall(r"\w+", text))


@pytest.mark.parametrize(
    ("written", "text"), [("cp932", "a,b\n1,ｶﾅ\n"), ("big5", "id,city\n1,高雄\n")]
)
def test_what_too_few_letters_suggest_is_no_more_than_perhaps(written: str, text: str) -> None:
    guess = suggest_encoding(text.encode(written))

    assert guess is not None
    assert guess.confidence == "LOW"
    assert guess.instead.startswith("encoding: ")
    assert guess.instead != f"encoding: {guess.value}"


@pytest.mark.parametrize("word", ["Müller", "Łódź", "Øster smørrebrød", "élève", "Ångström"])
@pytest.mark.parametrize("written", ["cp1252", "cp1250", "cp850"])
def test_latin_letters_suggest_no_other_alphabet(word: str, written: str) -> None:
    try:
        data = rows(word).encode(written)
    except UnicodeEncodeError:
        return
    guess = suggest_encoding(data)

    assert guess is not None
    assert guess.value in ("windows-1252", "windows-1250", "cp850")


# Texts that no threshold and no table of letters was set with.
LETTERS = [
    (
        "German",
        "cp1252 latin-1 cp850 cp437 mac-roman",
        "Für die Kündigung genügt ein formloses Schreiben; bitte fügen Sie den "
        "Mietvertrag bei. Schöne Grüße aus Düsseldorf und Lübeck, Ihre Frau Böhm. Später "
        "wäre auch möglich, außer sonntags. Wärmepumpe, Heizöl, Kälteanlage",
    ),
    (
        "French",
        "cp1252 latin-1 cp850 cp437 mac-roman",
        "Le propriétaire du café a déménagé à Orléans après les fêtes; les clients "
        "préfèrent désormais la brasserie à côté du théâtre. Quantité réservée, "
        "référence périmée, délai dépassé, modèle épuisé, reçu à Besançon",
    ),
    (
        "Spanish",
        "cp1252 latin-1 cp850 cp437 mac-roman",
        "La compañía envió la notificación el miércoles y aún espera la contestación de "
        "los señores Muñoz y Peña. Número de artículo, descripción, categoría, Málaga, "
        "Cádiz, León, jamón ibérico, días hábiles",
    ),
    (
        "Danish",
        "cp1252 latin-1 cp850 mac-roman",
        "Søren kører på arbejde i Sønderborg hver mandag; båden ligger ved åen når "
        "vejret er dårligt. Kære kunde, på grund af højvande er færgen til Læsø aflyst. "
        "Værløse, Nørrebro, Grønland",
    ),
    (
        "Portuguese",
        "cp1252 latin-1 cp850 mac-roman",
        "A reunião começará às nove horas e não haverá tradução. As condições de "
        "pagamento estão no contrato anexo; o preço é válido até março. Endereço, "
        "município, Brasília, Goiânia, Maranhão, açúcar, limões",
    ),
    (
        "Polish",
        "cp1250 iso-8859-2 cp852",
        "Uprzejmie prosimy o dokonanie wpłaty w ciągu siedmiu dni; późniejsze zgłoszenia "
        "nie będą rozpatrywane. Sprzedaż, usługi, książki, Wrocław, Rzeszów, "
        "Częstochowa, Białystok, Zielona Góra, ilość, wartość",
    ),
    (
        "Czech",
        "cp1250 iso-8859-2 cp852",
        "Vážený zákazníku, děkujeme za objednávku; zboží bude odesláno během tří "
        "pracovních dnů. Množství, částka, příjmení, ulice Na Příkopě, Hradec Králové, "
        "Olomouc, Děčín, Břeclav, dodací lhůta",
    ),
    (
        "Hungarian",
        "cp1250 iso-8859-2 cp852",
        "Tisztelt ügyfelünk, köszönjük a megrendelését; a csomag két napon belül "
        "megérkezik. Mennyiség, összeg, vezetéknév, Kőszeg, Hódmezővásárhely, "
        "Nyíregyháza, gyűjtemény, üzlet, szőlő, erdő",
    ),
    (
        "Turkish",
        "cp1254 cp857",
        "Sayın müşterimiz, siparişiniz kargoya verilmiştir; teslimat üç gün içinde "
        "yapılacaktır. Ürün adı, açıklama, fiyatı, Eskişehir, Diyarbakır, Şanlıurfa, "
        "Çanakkale, küçük, büyük, soğuk, sıcak",
    ),
    (
        "Russian",
        "cp1251 koi8-r cp866 iso-8859-5",
        "Уважаемый покупатель, ваш заказ передан в службу доставки и поступит в пункт "
        "выдачи завтра. Наименование товара, количество, цена, Новосибирск, Ярославль, "
        "Пенза, хлеб, молоко",
    ),
    (
        "Ukrainian",
        "cp1251 koi8-u iso-8859-5",
        "Шановний покупцю, ваше замовлення передано до служби доставки і надійде завтра. "
        "Найменування, кількість, ціна, Житомир, Вінниця, Івано-Франківськ, хліб, їжа, "
        "ґудзик",
    ),
    (
        "Greek",
        "cp1253 iso-8859-7 cp737",
        "Αγαπητέ πελάτη, η παραγγελία σας θα παραδοθεί αύριο το πρωί. Περιγραφή, "
        "ποσότητα, τιμή, Ηράκλειο, Βόλος, Ιωάννινα, ψωμί, γάλα, τυρί",
    ),
    (
        "Hebrew",
        "cp1255 cp862",
        "לקוח יקר, ההזמנה שלך תגיע מחר בבוקר. תיאור, כמות, מחיר, נתניה, אשדוד, באר שבע, "
        "לחם, חלב, גבינה",
    ),
    (
        "Arabic",
        "cp1256 iso-8859-6",
        "عزيزي العميل سيصل طلبك غدا صباحا الوصف الكمية السعر طنطا أسوان المنصورة خبز حليب جبن",
    ),
    (
        "Japanese",
        "cp932 euc_jp",
        "ご注文の商品は明日お届けします。商品名、数量、単価、横浜市、名古屋市、福岡県、パ"
        "ン、牛乳、チーズ、担当者、備考欄",
    ),
    (
        "Chinese",
        "gb18030",
        "尊敬的客户，您的订单将于明天送达。商品描述，单价，杭州市，成都，武汉，面包，牛奶"
        "，奶酪，联系人，发货地址",
    ),
    (
        "Taiwanese",
        "big5",
        "親愛的顧客，您的訂單將於明天送達。商品描述，單價，桃園，臺中，嘉義，麵包，牛奶，"
        "起司，聯絡人，出貨地址",
    ),
    (
        "Korean",
        "cp949",
        "고객님께서 주문하신 상품은 내일 도착합니다. 설명, 단가, 인천, 대전, 광주, 빵, "
        "우유, 치즈, 담당자, 배송지",
    ),
]


@dataclass(frozen=True)
class Written:
    """A file and what is written in it."""

    data: bytes
    text: str

    def is_read_by(self, guess: Guess | None) -> bool:
        """Whether the encoding that is suggested makes the text of the bytes."""
        return guess is not None and self.data.decode(str(guess.value), "replace") == self.text


def written(text: str, encoding: str) -> Written:
    data = text.encode(encoding, "ignore")
    return Written(data, data.decode(encoding))


CASES = [(name, encoding, text) for name, several, text in LETTERS for encoding in several.split()]
each_text = pytest.mark.parametrize(
    ("encoding", "text"), [case[1:] for case in CASES], ids=[" ".join(case[:2]) for case in CASES]
)


@each_text
def test_text_of_some_sentences_suggests_its_encoding(encoding: str, text: str) -> None:
    lines = enumerate(re.split("[;.。] ?", text))
    file = written("".join(f"{n};{line}\n" for n, line in lines), encoding)

    assert file.is_read_by(suggest_encoding(file.data))


@each_text
def test_few_letters_among_much_english_suggest_their_encoding(encoding: str, text: str) -> None:
    plain = "".join(f"{n},nothing but plain letters\n" for n in range(500))
    rows = "".join(f"{n},{word}\n" for n, word in enumerate(words_of(text)))
    file = written(f"id,name\n{plain}{rows}", encoding)

    assert file.is_read_by(suggest_encoding(file.data))


def words_of(text: str) -> list[str]:
    return [word for word in re.findall(r"[^\s.,;，。、]+", text) if not word.isascii()]


@pytest.mark.parametrize("number", [1, 2, 3, 5, 8])
@each_text
def test_no_few_words_make_a_wrong_encoding_probable(encoding: str, text: str, number: int) -> None:
    chance = random.Random(number)  # noqa: S311
    for _ in range(4):
        rows = chance.sample(words_of(text), number)
        file = written(
            "id,name\n" + "".join(f"{n},{row}\n" for n, row in enumerate(rows)), encoding
        )
        guess = suggest_encoding(file.data)

        if file.data.isascii() or file.is_read_by(guess):
            continue
        assert guess is not None
        assert guess.confidence == "LOW"
        assert guess.reason.startswith("the bytes do not say which encoding it is")


@pytest.mark.parametrize(
    "data",
    [
        "id,t\n1,├── a\n2,│ └── b\n3,═══\n".encode("cp850"),
        "┌─────┐\n│ a,b │\n└─────┘\n".encode("cp437"),
        "id,v\n1,25 °C\n2,±3\n".encode("cp850"),
        "Það er gott veður í dag þegar við förum".encode("cp861"),
        b"id,t\n" + bytes(random.Random(1).choices(range(128, 256), k=80)),  # noqa: S311
    ],
)
def test_lines_signs_and_encodings_that_are_not_known_make_none_probable(data: bytes) -> None:
    guess = suggest_encoding(data)

    assert guess is not None
    assert guess.confidence == "LOW"
    assert guess.reason.startswith("the bytes do not say which encoding it is")


@pytest.mark.parametrize("text", ["25 °C", "50 €", "1\xa0234", "± 3", "½", "a – b"])
def test_signs_alone_suggest_windows_1252(text: str) -> None:
    guess = suggest_encoding(f"id,v\n1,{text}\n".encode("cp1252"))

    assert guess is not None
    assert (guess.value, guess.confidence) == ("windows-1252", "LOW")
    assert "\xa0" not in guess.reason


def test_utf_8_with_a_record_of_another_encoding_is_utf_8() -> None:
    """A load names the record with its line, in place of making wrong text of all others."""
    rows = "".join(f"{n},Müller\n" for n in range(20)).encode()

    assert suggest_encoding(rows + "21,Müller\n".encode("cp1252")) is None
