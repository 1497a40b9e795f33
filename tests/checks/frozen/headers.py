"""headers.py - what a folder of public headers declares: structs with their members, enumerators, numbers, functions.

The headers are regular: one typedef per struct or enum, without nested braces. What is not found is missed by the check
that compares two versions, so the numbers of things found are checked there.
"""
import pathlib
import re


def read(folder):
    text = "".join(path.read_text() for path in sorted(pathlib.Path(folder, "stoker").glob("*.h")))
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def words(text):
    return " ".join(text.split())


def split(text, separator):
    """At separators outside of parentheses and brackets."""
    parts, depth, part = [], 0, ""
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char == separator and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += char
    return [words(p) for p in parts + [part] if p.strip()]


def members(body):
    """[(name, type and all)] of a struct's body."""
    found = []
    for declaration in split(body, ";"):
        pointer = re.search(r"\(\*(\w+)\)\(", declaration)
        if pointer:
            found.append((pointer[1], declaration))
            continue
        first, *others = split(declaration, ",")
        name = re.search(r"(\w+)\s*(\[.*\])?$", first)[1]
        base = first[:first.rindex(name)]
        for part in [name] + others:
            found.append((re.match(r"\w+", part)[0], words(base + part)))
    return found


def structs(text):
    return {m[2]: members(m[3])
            for m in re.finditer(r"typedef (struct|union) (\w+) \{(.*?)\} \2;", text, re.S)}


def enumerators(text):
    names = []
    for m in re.finditer(r"\benum(?: \w+)? \{(.*?)\}", text, re.S):
        body = re.sub(r"\w+\([^)]*\)", " ", m[1])
        names += re.findall(r"(?:^|,|\s)(STOKER_\w+)\s*(?==|,|$)", body)
    for m in re.finditer(r"\bX\(([A-Z]\w+),", text):
        names.append(m[1] if m[1].startswith("STOKER_") else "STOKER_TRACE_" + m[1])
    return [n for n in dict.fromkeys(names) if n != "STOKER_TRACE_KIND_COUNT"]


def numbers(text):
    """Macros that are a number."""
    found = re.findall(r"^#define (STOKER_\w+) +([-(\dU].*)$", text, re.M)
    return [n for n, value in found if not n.startswith("STOKER_VERSION") and not value.endswith("\\")]


def functions(text):
    return {re.search(r"(\w+)\s*\(", m)[1]: m
            for m in map(words, re.findall(r"STOKER_API\s+([^;]*\([^;]*\));", text))}
