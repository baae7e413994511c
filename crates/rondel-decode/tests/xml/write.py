#!/usr/bin/env python3
"""Write random XML documents with their values as xml.etree reads them: write.py > documents.jsonl.

Each line is {"xml": document, "json": value}; the value is null if xml.etree refuses the document.
"""

import json
import math
import random
import re
import sys
import xml.etree.ElementTree as ET

NIL = "{http://www.w3.org/2001/XMLSchema-instance}nil"
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
SPACE = " \t\r\n"
NAMES = ["a", "b", "pos", "flight-plan", "text", "fx:b", "fx:c", "Größe", "x.y", "_z"]
TEXTS = [
    "1", "-2.5", "007", "1e3", "1e999", "+4", "true", "false", "TRUE", "", " ", "AAL123", " 12 ", "a &amp; b", "&lt;&gt;",
    "&#65;&#x1F600;", "&quot;&apos;", "12345678901234567890123", "line\r\none\rtwo", "tab\tend", "Zürich", "2026-11-22T10:00:00Z",
]
BETWEEN = ["", "", "", " ", "\n  ", "<!-- a comment - here -->", "<?work now?>"]
REFUSED = [
    "", " ", "<a>", "<a></b>", "<a/><b/>", "x<a/>", "<a/>x", "<a>&nbsp;</a>", "<a>&</a>", "<a>& b</a>", "<a>]]></a>", "<a b/>", "<a b=c/>",
    '<a b="1" b="2"/>', '<a b="<"/>', '<a b="&x;"/>', '<a b="&"/>', "<a><!-- a -- b --></a>", "<1a/>", "< a/>", "<a>\x01</a>", "<a>&#0;</a>",
    "<a>&#xD800;</a>", "</a>", "<a><![CDATA[x</a>", "<a b='1></a>", " <?xml version='1.0'?><a/>", "<a><b></a></b>", "<a/></a>", "<a><!-- x</a>",
    "<a><?x</a>", "<![CDATA[x]]><a/>", "<a/>&amp;", "<a>&#65</a>", "<a", "<", "<a/", "<a></a", "{}", "<a><b/></a><c/>",
]


def text(chance):
    one = chance.choice(TEXTS)
    return f"<![CDATA[{one}]]>" if chance.random() < 0.15 and "]]>" not in one else one


def attribute(chance):
    quote = chance.choice("\"'")
    return quote + chance.choice(TEXTS).replace(quote, "") + quote


def element(chance, depth, is_root=False):
    name = chance.choice(NAMES)
    names = chance.sample(NAMES, chance.choice([0, 0, 0, 1, 2, 3]))
    attributes = "".join(f"{chance.choice([' ', '  ', chr(10)])}{key}{chance.choice(['=', ' = '])}{attribute(chance)}" for key in names)
    if chance.random() < 0.03:
        attributes += f' xsi:nil="{chance.choice(["true", "false", "1", "0"])}"'
    if is_root:
        attributes += ' xmlns:fx="urn:fx" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    if chance.random() < 0.1 and not is_root:
        return f"<{name}{attributes}{chance.choice(['', ' '])}/>"
    content = ""
    if depth == 0 or chance.random() < 0.4:
        content = chance.choice(BETWEEN[:3]) + text(chance)
        if chance.random() < 0.2:
            content += chance.choice(BETWEEN) + text(chance)
    else:
        for _ in range(chance.randrange(5)):
            content += chance.choice(BETWEEN) + element(chance, depth - 1)
        if chance.random() < 0.1:
            content += text(chance)
        content += chance.choice(BETWEEN)
    return f"<{name}{attributes}>{content}</{name}{chance.choice(['', '', ' '])}>"


def document(chance):
    begin = chance.choice(["", "", "<?xml version='1.0'?>", '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\r\n', "\ufeff", "<!-- x -->"])
    return begin + element(chance, chance.randrange(5), True) + chance.choice(["", "\n", "<!-- end -->"])


def local(name):
    return name.rpartition("}")[2]


def scalar(own):
    trimmed = own.strip(SPACE)
    if trimmed in ("true", "false"):
        return trimmed
    if NUMBER.fullmatch(trimmed) and math.isfinite(float(trimmed)):
        return trimmed
    return json.dumps(own, ensure_ascii=False)


def value(of):
    """The JSON of an element."""
    if of.get(NIL) in ("true", "1"):
        return "null"
    members = {}
    for key, own in of.items():
        if key != NIL:
            members.setdefault(local(key), []).append(scalar(own))
    for child in of:
        members.setdefault(local(child.tag), []).append(value(child))
    own = (of.text or "") + "".join(child.tail or "" for child in of)
    if not members:
        return scalar(own)
    if own.strip(SPACE) and "text" not in members:
        members["text"] = [scalar(own)]
    listed = (f"{json.dumps(key, ensure_ascii=False)}:{of[0] if len(of) == 1 else '[' + ','.join(of) + ']'}" for key, of in members.items())
    return "{" + ",".join(listed) + "}"


def main():
    chance = random.Random(7)
    for one in REFUSED + [document(chance) for _ in range(400)]:
        try:
            expected = value(ET.fromstring(one.encode()))
            assert one not in REFUSED, one
        except ET.ParseError:
            assert one in REFUSED, one
            expected = "null"
        is_there = "true" if one not in REFUSED else "false"
        sys.stdout.write(f'{{"xml":{json.dumps(one, ensure_ascii=False)},"is_read":{is_there},"json":{expected}}}\n')


if __name__ == "__main__":
    main()
