"""What a PDF that Chromium has made shows: the text and the pictures of each page."""

import re
import zlib
from collections.abc import Iterator
from typing import NamedTuple

OBJECT = re.compile(rb"(?m)^(\d+) 0 obj\n(.*?)\nendobj$", re.DOTALL)
STREAM = re.compile(rb"stream\r?\n(.*)\r?\nendstream", re.DOTALL)
USED = re.compile(rb"/([FX]\d+) (\d+) 0 R")  # a page's fonts and pictures
DRAWN = re.compile(rb"/(F\d+) [\d.]+ Tf|<([0-9A-F]+)> Tj|/(X\d+) Do")
MAPPED = re.compile(rb"<([0-9A-F]+)> (?:<([0-9A-F]+)> )?<([0-9A-F]+)>\n")


class Sheet(NamedTuple):
    """A page. Chromium does not draw what the page cuts, such as the end of a long line."""

    text: str  # in the order in which it is drawn, without spaces
    pictures: int


def sheets(data: bytes) -> Iterator[Sheet]:
    objects = {int(number): content for number, content in OBJECT.findall(data)}
    for page in objects.values():
        if not re.search(rb"/Type /Page\b", page):
            continue
        used = {name: int(at) for name, at in USED.findall(page)}
        (at,) = re.findall(rb"/Contents (\d+) 0 R", page)
        text, pictures, size = "", 0, 2
        letter_of: dict[int, str] = {}
        for font, codes, other in DRAWN.findall(stream(objects[int(at)])):
            if font:
                size, letter_of = letters(objects, used[font])
            elif other:
                pictures += b"/Subtype /Image" in objects[used[other]]
            else:
                every = [int(codes[k : k + size], 16) for k in range(0, len(codes), size)]
                text += "".join(letter_of.get(code, "") for code in every)
        yield Sheet("".join(text.split()), pictures)


def letters(objects: dict[int, bytes], font: int) -> tuple[int, dict[int, str]]:
    """Return how many hexadecimal digits a font's codes have, and the letters of each code."""
    found, size = {}, 2
    for at in re.findall(rb"/ToUnicode (\d+) 0 R", objects[font]):
        table = stream(objects[int(at)]).partition(b"endcodespacerange")[2]
        for first, last, to in MAPPED.findall(table):
            size = len(first)
            letter = bytes.fromhex(to.decode()).decode("utf-16-be")
            for step in range(int(last or first, 16) - int(first, 16) + 1):
                found[int(first, 16) + step] = letter[:-1] + chr(ord(letter[-1]) + step)
    return size, found


def stream(content: bytes) -> bytes:
    (data,) = STREAM.findall(content)
    return zlib.decompress(data) if b"/FlateDecode" in content.split(b"stream")[0] else data
