"""Where the first JSON value of a text ends: against Python's parser, cut anywhere."""

from __future__ import annotations

import json
import random

import pytest

from lakeload_jobs.sources.files.json_values import line_of_second_value


def cut(text: str, size: int) -> list[bytes]:
    data = text.encode()
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"id": 1}\n{"id": 2}\n', 2),
        ('{"id": 1}{"id": 2}', 1),
        ('[{"id": 1}]\n\n[{"id": 2}]', 3),
        ("1 2", 1),
        ('"a" "b"', 1),
        ('{"a": "}{"}\n}', 2),
        ("{'a': '\"}'} {}", 1),
        ("[1, 2]]", 1),
        ('{"a": "\\\\"} x', 1),
        ('  {"a": "\\"}{", "b": [{}, []]} \r\n\t', None),
        ("{'a': '}', \"b\": \"'\"}\n", None),
        ("", None),
        (" \n", None),
        ('{"a": [1', None),
        ('{"a": "never closed} {}', None),
        ("id,name\n1,x\n", None),
    ],
)
def test_what_follows_the_first_value_is_found(text: str, line: int | None, size: int) -> None:
    assert line_of_second_value(cut(text, size)) == line


def test_without_single_quotes_an_apostrophe_is_a_sign_like_others() -> None:
    assert line_of_second_value([b"{' : 1} {}"], single_quotes=False) == 1
    assert line_of_second_value([b"{' : 1} {}"], single_quotes=True) is None


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_comments_are_white_space_where_they_are_allowed(size: int) -> None:
    text = '// {\n{"a": "/* { */", /* } \n */ "b": 1} // {"c": 2}\n/* the end */ // really'

    assert line_of_second_value(cut(text, size), comments=True) is None
    assert line_of_second_value(cut(text + "\n{}", size), comments=True) == 5


def test_deep_and_wide_values_end_where_they_end() -> None:
    deep = "[" * 5000 + "]" * 5000

    assert line_of_second_value(cut(deep, 777)) is None
    assert line_of_second_value(cut(deep + "\n]", 777)) == 2


@pytest.mark.parametrize("seed", range(4))
def test_random_values_end_where_pythons_parser_says(seed: int) -> None:
    rnd = random.Random(seed)  # noqa: S311
    for _ in range(500):
        first = _spaces(rnd) + _text(rnd) + rnd.choice(["", *" \n\t"])
        rest = rnd.choice(["", "", _text(rnd), "x", "}"]) + _spaces(rnd)
        if not first.endswith(("}", "]", '"')):
            first += "\n"  # else a number goes on
        _, end = json.JSONDecoder().raw_decode(first.lstrip())
        assert first.lstrip()[end:].strip() == ""
        expected = first.count("\n") + 1 if rest.strip() else None
        text = first + rest
        assert line_of_second_value(cut(text, rnd.choice([1, 2, 3, 50]))) == expected, text
        assert line_of_second_value(cut(text, 9), comments=True) == expected, text


def _spaces(rnd: random.Random) -> str:
    return "".join(rnd.choices(" \n\t\r", k=rnd.randint(0, 3)))


def _text(rnd: random.Random) -> str:
    value = _value(rnd, 0)
    return json.dumps(value, indent=rnd.choice([None, 1]), ensure_ascii=rnd.random() < 0.5)


def _value(rnd: random.Random, depth: int) -> object:
    def name() -> str:
        return "".join(rnd.choices("ab{}[]\"\\'\n/*é,:", k=rnd.randint(0, 6)))

    kind = rnd.randint(0, 7 if depth < 4 else 3)
    if kind > 5:
        return [_value(rnd, depth + 1) for _ in range(rnd.randint(0, 3))]
    if kind > 3:
        return {name(): _value(rnd, depth + 1) for _ in range(rnd.randint(0, 3))}
    return [name(), rnd.randint(-5, 5), None, 1.5][kind]
