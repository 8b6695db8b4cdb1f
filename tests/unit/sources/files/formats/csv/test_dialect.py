"""What is detected of CSV files: separator, quotes, header, lines before it, marks, nulls."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakeload.sources.files.formats.base import OptionValue
from lakeload.sources.files.formats.csv.dialect import detect_dialect
from lakeload_jobs.sources.files.formats.csv.options import read_csv_options
from lakeload_jobs.sources.paths.local_listing import local_files
from tests.environments import many
from tests.hints import follow, follows
from tests.text_tables import csv_table
from tests.unit.sources.files.formats.csv.test_table import here

CASES: dict[str, tuple[str, dict[str, OptionValue]]] = {
    "titles of a spreadsheet": (
        "Sales 2024;;;\n;;;\nid;amount;name;city\n1;2,5;x;A\n2;3,5;y;B\n3;4,0;z;C\n",
        {"separator": ";", "skip_rows": 2, "header": True, "decimal_mark": ","},
    ),
    "separators alone above the header": (
        ";;;;;\n;;\nid;amount;name\n1;2;x\n;;;;;\n2;3;y\n",
        {"separator": ";", "skip_rows": 2, "header": True},
    ),
    "separators alone between titles and a sparse header": (
        "Election;;;\n;;;\nNo;Area;;\n1;A;5;6\n;;\n2;B;7;8\n",
        {"separator": ";", "skip_rows": 2, "header": True},
    ),
    "separators alone below a title of two columns": (
        "Sales;\n;\na;b\n1;x\n2;y\n",
        {"separator": ";", "skip_rows": 2, "header": True},
    ),
    "separators alone in front of rows": (",,\n5.1,3.5,x\n4.9,3.0,y\n", {}),
    "separators alone among rows": ("a,b\n1,x\n,,,\n2,y\n,\n3,z\n,,,\n,,,\n", {"header": True}),
    "comments of a spreadsheet": (
        "# made by x;;\n# ;;\n#;;\nid;v;t\n1;2;a\n2;3;b\n",
        {"separator": ";", "comment": "#", "header": True},
    ),
    "sparse first rows": ("b,,\nc,,\na,1,\nd,2,3\ne,4,5\n", {}),
    "widths that differ": (
        "\nOne,two,three\n1,2,3,4\n1,2,3\n\n1,2,3,4,5\n1,2,3,4,5\n",
        {"header": True},
    ),
    "widths that grow": ("10,100,1000\n10,100,1000,10000\n10\n10,100\n1,2,3,4,5\n", {}),
    "codes": (
        "Nord 262,ND2,N262\nSud Se.210,CRV,S210\nSN.601,NDC,S60\nA B C,310,A310-2\n",
        {},
    ),
    "plain": ("id,name\n1,a\n2,b\n3,c\n", {"header": True}),
    "euro": (
        "Datum;Betrag;Kunde\n2024-01-01;1.234,50;Müller, Hans\n2024-01-02;5,5;Maier, X\n",
        {"separator": ";", "header": True, "decimal_mark": ",", "thousands_mark": "."},
    ),
    "tsv": ("id\tt\n1\thello, world\n2\tfoo; bar\n", {"separator": "\\t", "header": True}),
    "pipe": ("id|t\n1|a\n2|b\n", {"separator": "|", "header": True}),
    "pandas": (",a,b\n0,1,x\n1,2,y\n", {"header": True}),
    "noheader": ("5.1,3.5,setosa\n4.9,3.0,setosa\n4.7,3.2,virginica\n", {}),
    "sep=": ("sep=;\na;b\n1;2\n3;4\n", {"separator": ";", "skip_rows": 1, "header": True}),
    "preamble": (
        "Sales report\nproduced 2024\n\nid,amount,name\n1,2.5,x\n2,3.5,y\n3,4,z\n",
        {"skip_rows": 3, "header": True},
    ),
    "trailing": ("id,t,\n1,x,\n2,y,\n", {"trailing_separator": True, "header": True}),
    "trailing2": ("id,t\n1,x,\n2,y,\n3,z,\n", {"trailing_separator": True, "header": True}),
    "blanks": (
        "39, State-gov, 77516\n50, Self-emp, 83311\n38, Private, 215646\n",
        {"trim_left": True},
    ),
    "blankquote": ('id, name\n1, "a, b"\n2, "c"\n3, "d"\n', {"trim_left": True, "header": True}),
    "na": ("x,y,sex\n1,NA,M\n2,3.5,F\nNA,4,NA\n", {"header": True, "null_values": ("NA",)}),
    "namibia": ("code,pop\nDE,83\nNA,NA\nFR,67\n", {"header": True}),
    "apos": ("id,t\n1,'a, b'\n2,'c'\n3,'d, e'\n", {"quote": "'", "header": True}),
    "stray": ('id,t\n1,5" pipe\n2,"6"" pipe"\n3,x\n', {"header": True}),
    "commainname": ('n,c\n"A, Mr B",1st\n"C, Mrs D",2nd\n"E, Mr F",3rd\n', {"header": True}),
    "badq": ('id,t\n1,"5\n2,"6\n3,x\n', {"quote": "", "header": True}),
    "esc": ('id,t\n1,"a \\"b\\", c"\n2,"d"\n3,e\n', {"escape": "\\", "header": True}),
    "onecol": ("name\nanna\nbert\n", {"header": True}),
    "years": ("country,1990,1991,1992\nA,1,2,3\nB,4,5,6\n", {"header": True}),
    "012": ("0,1,2\n5.1,3.5,1.4\n4.9,3.0,1.4\n", {"header": True}),
    "thousands": (
        'city,pop\nX,"1,234,567"\nY,"12,345"\nZ,"999"\n',
        {"header": True, "thousands_mark": ","},
    ),
    "movielens": (
        "1::1193::5::978300760\n1::661::3::978302109\n1::914::3::978301968\n",
        {"separator": "::"},
    ),
    "times": ("a,t\n1,10:30\n2,11:45\n", {"header": True}),
    "semi-desc": ("id;t\n1;a,b,c\n2;d,e,f\n3;g,h,i\n", {"separator": ";", "header": True}),
    "multiline": ('key,comment\nk1,"Dear Sir,\nthank you, really"\nk2,plain\n', {"header": True}),
    "comments": ("# made by x\n# at y\nid,v\n1,2\n3,4\n", {"comment": "#", "header": True}),
    "hashhead": ("#chrom\tstart\nchr1\t5\nchr2\t6\n", {"separator": "\\t", "header": True}),
    "vcf": (
        "##fileformat=VCF\n##x=y,z\n#CHROM\tPOS\n1\t5\n2\t6\n",
        {"separator": "\\t", "comment": "##", "header": True},
    ),
    "empty": ("", {}),
    "hashes": ("a/b,v1,h1:aGk=\nb/c,v2-x,h1:eGk=\nc,v3,h1:eWo=\nd,v4,h1:aaa=\n", {}),
    "globs": (
        "# made by x\n80:text/html:*.html\n50:text/css:*.css\n50:text/x:*.x\n",
        {"separator": ":", "comment": "#"},
    ),
    "clock": ("13:30:00\n14:00:00\n", {}),
    "lines of comments": ("# one\n# two\nanna\nbert\n", {"comment": "#", "header": True}),
    "ragged": ("a,b,c\n1,2,3\n1,2\n4,5,6\n7,8,9\n", {"header": True}),
    "headeronly": ("id,name,when\n", {"header": True}),
    "quotednum": ('"id","zip"\n"1","01234"\n"2","99999"\n', {"header": True}),
    "bool": ("a,b\ntrue,x\nfalse,y\n", {"header": True}),
    "unload": (
        "1|a\\|b|2.5\n2|c|3.5\n3||4.5\n4|two\\\nlines|5\n",
        {"separator": "|", "backslash_escapes": True, "null_values": ("",)},
    ),
    "unload with an escape in each row": (
        "1|a\\|b|\\N\n2|c\\|d|5\n3|e\\|f|6\n",
        {"separator": "|", "backslash_escapes": True},
    ),
    "unload with nulls": (
        "1|a\\|b|2.5\n2|\\N|3.5\n3||4.5\n",
        {"separator": "|", "backslash_escapes": True},
    ),
    "outfile": (
        "1\ttwo\\\nlines\t\\N\n2\ta\\\tb\t5\n3\tx\t6\n",
        {"separator": "\\t", "backslash_escapes": True},
    ),
    "outfile in quotes": (
        '1,"a \\"b\\", c",\\N\n2,"d",5\n3,\\N,6\n',
        {"backslash_escapes": True, "quote": '"'},
    ),
    "outfile with \\r\\n": (
        "1,a\\,b,5\r\n2,c,\\N\r\n3,d,6\r\n",
        {"backslash_escapes": True, "line_break": "\\r\\n"},
    ),
    "outfile that begins with a carriage return in a value": (
        "1,a\\,b,c\r\n2,c,\\N\n3,d,6\n4,e,f\n",
        {"backslash_escapes": True, "line_break": "\\n"},
    ),
    "copy": (
        "1\ttwo\\nlines\t\\N\n2\t\t5\n\\.\n",
        {"separator": "\\t", "backslash_escapes": True},
    ),
    "copy with nulls alone": (
        "1\ta\t\\N\n2\tb\t5\n",
        {"separator": "\\t", "backslash_escapes": True},
    ),
    "rare escapes": (
        "".join(f"{n}|text {n}|2024-01-01\n" for n in range(1500)) + "1|a\\|b|2024-01-01\n",
        {"separator": "|", "backslash_escapes": True},
    ),
    "hive": ("1\x01a\x02b\x01\\N\n2\x01c\x012.5\n", {"separator": "\x01", "null_values": ("\\N",)}),
    "hive with escapes": (
        "1\x01a\\\x01b\x01\\N\n2\x01c\x012.5\n",
        {"separator": "\x01", "backslash_escapes": True},
    ),
    "nulls of a dump in text": (
        "id\tname\tkind\n1\tanna\t\\N\n2\t\\N\tx\n",
        {"separator": "\\t", "header": True, "null_values": ("\\N",)},
    ),
    "paths": ("id,path\n1,C:\\new\\\n2,D:\\\n3,C:\\N\n", {"header": True}),
    "paths in front": ("C:\\,5\nD:\\,6\nE:\\,7\n", {}),
    "doubled": ("id,name,name,NAME\n1,a,b,c\n2,d,e,f\n", {"header": True}),
    "dot9": ("a;b\n1,234;5\n2,345;6\n3,456;7\n", {"separator": ";", "header": True}),
}


@pytest.mark.parametrize("name", CASES)
def test_detect_dialect_returns_the_options_a_file_needs(name: str) -> None:
    text, options = CASES[name]

    assert detect_dialect(text.encode(), whole=True).options == options


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("header", [True, False])
def test_detect_dialect_of_what_python_writes_is_exact(separator: str, header: bool) -> None:
    """Text holds all separators, quotes and line breaks."""
    chance = random.Random(7)  # noqa: S311
    for _ in range(many(40)):
        written = io.StringIO()
        writer = csv.writer(written, delimiter=separator, lineterminator="\n")
        if header:
            writer.writerow(["id", "note", "price", "day"])
        for number in range(chance.randint(4, 30)):
            pieces = [
                chance.choice(["a", "b;c", "d,e", "f\tg", "h|i", '"', "\n", " "]) for _ in range(4)
            ]
            note = "".join(pieces)
            writer.writerow([number, note, f"{chance.random() * 99:.2f}", "2024-02-29"])
        expected: dict[str, OptionValue] = (
            {} if separator == "," else {"separator": separator.replace("\t", "\\t")}
        )
        if header:
            expected["header"] = True
        data = written.getvalue().encode()
        assert detect_dialect(data, whole=True).options == expected, written.getvalue()


def test_detect_dialect_ignores_a_record_that_is_cut_off() -> None:
    text = "id,name\n" + "".join(f"{number},abc\n" for number in range(50)) + '51,"cut'

    assert detect_dialect(text.encode(), whole=False).options == {"header": True}


def test_numbers_that_may_be_fractions_or_thousands_are_a_warning() -> None:
    found = detect_dialect(b"a;b\n1,234;5\n2,345;6\n3,456;7\n", whole=True)

    assert "decimal_mark" not in found.options
    assert "`1,234` may be a fraction or thousands" in found.warnings[0]


def test_marks_of_numbers_are_set_as_the_warning_says(tmp_path: Path) -> None:
    text = b"a;b\n1,234;5\n2,345;6\n3,456;7\n"
    (tmp_path / "a.csv").write_bytes(text)
    found = detect_dialect(text, whole=True)
    [warning] = found.warnings
    follows(__file__, "a comma that may be either", warning)
    source = {"type": "FILES", "format": "CSV"}
    document = {"source": source, "tables": [{"path": "a.csv", "options": dict(found.options)}]}

    def kind(changed: dict[str, Any]) -> str:
        files = tuple(local_files([str(tmp_path / "a.csv")]))
        options = {name: str(value) for name, value in changed["tables"][0]["options"].items()}
        return str(csv_table(files, options).split(here).schema.field("a").type)

    assert kind(document) == "string"
    for clause, expected in (
        ("set `decimal_mark: ','`", "double"),
        ("or `thousands_mark: ','`", "int64"),
    ):
        assert clause in warning
        assert kind(follow(document, clause, "tables[0].options.header")) == expected


def test_a_header_without_a_name_for_the_row_names_is_skipped_with_a_warning() -> None:
    text = b'"mpg" "cyl"\n"Mazda RX4" 21 6\n"Datsun 710" 22.8 4\n"Hornet" 21.4 6\n'

    found = detect_dialect(text, whole=True)

    assert found.options == {"separator": " ", "skip_rows": 1}
    assert "as R writes row names" in found.warnings[0]
    assert found.names == ("row_name", "mpg", "cyl")


@pytest.mark.parametrize(
    ("text", "option", "confidence"),
    [
        ("id,name\n1,a\n2,b\n3,c\n", "header", "HIGH"),
        ("name\nanna\nbert\n", "header", "LOW"),
        ("a,b,c\n1,2,3\n1,2\n4,5,6\n", "separator", "MEDIUM"),
        ("a;b\n1;2\n3;4\n5;6\n", "separator", "HIGH"),
    ],
)
def test_detect_dialect_guess_has_its_certainty(text: str, option: str, confidence: str) -> None:
    guesses = detect_dialect(text.encode(), whole=True).guesses

    assert [guess.confidence for guess in guesses if guess.option == option] == [confidence]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("id,v\n1,a,\n2,b\n3,c\n4,d\n", {"header": True}),
        ("a,b,c\n1,2\n4,5,6\n7,8,9\n", {"header": True}),
        ("a,b\n1,2,3\n4,5,6\n4,8,9\n", {"header": True}),
        ("1,a\n2,b,\n3,c\n4,d\n", {}),
        ("1,1.5\n2,2.5,x\n3,3.5,y\n4,4.5,z\n", {}),
        ("Sales\nid,v\n1,a,\n2,b\n3,c\n4,d\n", {"skip_rows": 1, "header": True}),
        ("Value\n68,527.00\n1,234.00\n", {"header": True}),
        ("Value\n68,527.00\n", {"header": True}),
        ("who\nAbrahamsson,Bertil\n", {"header": True}),
        ("a,b\nc,d,e\n", {"header": True}),
        ("name,city\nanna,rome,x\nberta,paris\nconrad,oslo\n", {"header": True}),
    ],
)
def test_a_record_of_another_width_behind_the_header_hides_neither(
    text: str, options: dict[str, OptionValue]
) -> None:
    """Whoever loads the file is told of the record."""
    assert detect_dialect(text.encode(), whole=True).options == options


@pytest.mark.parametrize(
    ("preamble", "option", "value"),
    [
        ("Sales report", "skip_rows", 1),
        ("Report", "skip_rows", 1),
        ('"Sales of March"', "skip_rows", 1),
        ("# made by x", "comment", "#"),
    ],
)
@pytest.mark.parametrize(
    "rows", ["id,amount\n1,2.5\n2,3.5\n3,4\n", "name,colour\nanna,red\nberta,blue\nconrad,green\n"]
)
def test_a_line_above_two_columns_is_no_header_without_a_name(
    preamble: str, option: str, value: OptionValue, rows: str
) -> None:
    found = detect_dialect(f"{preamble}\n{rows}".encode(), whole=True)

    assert found.options == {option: value, "header": True}
    assert found.names == ()


def test_lines_of_separators_alone_are_skipped_with_a_guess() -> None:
    found = detect_dialect(b";;\nid;name;v\n1;x;2\n2;y;3\n", whole=True)

    (guess,) = [one for one in found.guesses if one.option == "skip_rows"]
    assert (guess.value, guess.confidence) == (1, "MEDIUM")
    assert guess.reason == "the lines before have nothing but separators"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x\n1,5\n2,7\n3,9\n", ("row_name", "x")),
        ("mpg\nMazda RX4,NA\nDatsun,22.8\nHornet,21.4\n", ("row_name", "mpg")),
        ("a,b\nr1,x,y\nr2,z,w\nr3,u,v\n", ("row_name", "a", "b")),
    ],
)
def test_row_names_of_r_are_those_of_a_column_of_different_values(
    text: str, names: tuple[str, ...]
) -> None:
    found = detect_dialect(text.encode(), whole=True)

    assert found.options["skip_rows"] == 1
    assert "header" not in found.options
    assert found.names == names


@pytest.mark.parametrize(
    ("text", "is_header", "confidence"),
    [
        ("region;2019;2020\nnorth;5;6\nsouth;7;8\n", True, "MEDIUM"),
        ("north;2019;2020\nsouth;2018;2019\neast;2010;2011\n", False, "HIGH"),
        ("region;2019\nnorth;5\nsouth;7\n", False, "LOW"),
        ("anna\x01rome\nberta\x01paris\nconrad\x01oslo\n", False, "MEDIUM"),
        ("name\x01age\nberta\x015\nconrad\x016\n", True, "HIGH"),
        ("time,speed\ns,m/s\n" + "".join(f"{n},{n}\n" for n in range(12)), True, "LOW"),
    ],
)
def test_a_header_is_told_from_the_values_below_it(
    text: str, is_header: bool, confidence: str
) -> None:
    (guess,) = [
        g for g in detect_dialect(text.encode(), whole=True).guesses if g.option == "header"
    ]

    assert (guess.value, guess.confidence) == (is_header, confidence)


def test_a_second_header_is_named_with_its_line() -> None:
    text = "ERP; x\nPage 1\n\nid;v\n1;1.5\n2;2.5\n3;3.5\n"

    (guess,) = [
        g for g in detect_dialect(text.encode(), whole=True).guesses if g.option == "header"
    ]

    assert (guess.confidence, guess.instead) == ("LOW", "skip_rows: 3")
    assert detect_dialect(text.encode(), whole=True).options == {"separator": ";", "header": True}


def test_quotes_that_were_needed_have_a_meaning_in_spite_of_a_bad_record() -> None:
    text = 'id,note\n1,"a ""b"", c"\n2,"d" e\n3,"f, g\n'

    assert "quote" not in detect_dialect(text.encode(), whole=True).options


def test_one_bad_record_does_not_end_the_meaning_of_quotes() -> None:
    rows = [
        f'{number},"word {number}",x' if number % 2 else f"{number},w,y" for number in range(60)
    ]
    rows[31] = '31,"word 31,x'

    found = detect_dialect("\n".join(["id,t,z", *rows, ""]).encode(), whole=True)

    assert found.options == {"header": True}


@pytest.mark.parametrize("name", CASES)
def test_each_guess_names_an_option_that_makes_the_reader_do_otherwise(name: str) -> None:
    text, options = CASES[name]

    for guess in detect_dialect(text.encode(), whole=True).guesses:
        if guess.confidence == "HIGH":
            continue
        otherwise = yaml.safe_load(guess.instead)
        # This option has a meaning beside the other one alone.
        beside = options if guess.option == "line_break" else {}
        _, problems = read_csv_options({**beside, **otherwise})
        assert problems == []
        assert otherwise != {guess.option: guess.value}


@pytest.mark.parametrize(("text", "sure"), [("name\nanna\nbert\n", "HIGH"), ("a;b\nc\nd\n", "LOW")])
def test_a_single_column_is_certain_where_nothing_could_separate(text: str, sure: str) -> None:
    found = detect_dialect(text.encode(), whole=True)

    (separator,) = (guess for guess in found.guesses if guess.option == "separator")
    assert (separator.value, separator.confidence) == (",", sure)
