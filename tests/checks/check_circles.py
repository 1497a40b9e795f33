#!/usr/bin/env python3
"""check_circles.py - the parts of the libraries use each other in one direction only.

    graph            node          edge                                       from
    linked files     x.c           uses a symbol that the other defines       nm over the objects
    linked folders   a folder      the same, between files of two folders; public calls (stoker_...) do not count
    included files   x.h or x.c    #include "..."                             the sources
    included folders a folder      the same

A circle is a set of nodes in which each one reaches each other. One that is not in ALLOWED is an error, and so is an
entry of ALLOWED that is not exactly a circle of its graph any more.

usage: check_circles.py [--list] BUILD_DIR OBJECT...    objects of the libraries; a ;-separated list counts as several
       check_circles.py [--list]                        without a build: included files and folders only
       check_circles.py --self-test
"""
import os
import re
import subprocess
import sys

# (graph, members, reason)
ALLOWED = [
    ("linked files", ("datasets/formats.c", "datasets/views/formats.c", "datasets/views/mix_format.c",
                      "datasets/views/open.c", "datasets/views/packed/spec.c", "loader/dataset/open.c"),
     "the spec of a view holds other specs"),
    ("linked folders", ("datasets", "datasets/arrays", "datasets/folder", "datasets/npy", "datasets/shards",
                        "datasets/tar", "datasets/tokens", "datasets/views", "datasets/views/packed", "loader/dataset"),
     "datasets/formats.c is the table of all formats; files and views of any format may hold others"),
]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
PUBLIC = ("loader/include", "trainer/include")


def circles(edges):
    """Strongly connected components of two nodes or more, each a sorted tuple (Tarjan, without recursion)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for root in sorted(edges):
        if root in index:
            continue
        work = [(root, iter(sorted(edges[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, nexts = work[-1]
            for other in nexts:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(sorted(edges.get(other, ())))))
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    members = []
                    while not members or members[-1] != node:
                        members.append(stack.pop())
                        on_stack.discard(members[-1])
                    if len(members) > 1:
                        found.append(tuple(sorted(members)))
    return sorted(found)


def link_edges(symbols):
    """{file: files it uses} from {file: (defined, undefined)}."""
    home = {name: file for file, (defined, _) in symbols.items() for name in defined}
    return {file: {home[name] for name in undefined if name in home} - {file}
            for file, (_, undefined) in symbols.items()}


def without_public(symbols):
    """The same symbols without those that every part may use."""
    return {file: tuple({name for name in names if not name.startswith("stoker_")} for names in pair)
            for file, pair in symbols.items()}


def folders(edges):
    """The same graph between the folders of the files. A folder's own files are what its subfolders share and what
    joins them, so what a subfolder uses of the folders that it lies in does not count."""
    out = {}
    for file, others in edges.items():
        here = os.path.dirname(file)
        out.setdefault(here, set()).update(there for there in map(os.path.dirname, others)
                                           if not (here + "/").startswith(there + "/"))
    return out


def include_edges(texts):
    """{file: files it includes} from {file: text}; system headers and files not in `texts` do not count."""
    edges = {}
    for file, text in texts.items():
        found = set()
        for mark, name in INCLUDE.findall(text):
            places = PUBLIC if mark == "<" else (os.path.dirname(file), "")
            hits = [path for path in (os.path.normpath(os.path.join(place, name)) for place in places) if path in texts]
            found.update(hits[:1])
        edges[file] = found - {file}
    return edges


def verdict(graphs, allowed):
    """What is wrong, a line each."""
    wrong = []
    for graph, edges in graphs.items():
        here = {tuple(sorted(members)) for name, members, _ in allowed if name == graph}
        found = set(circles(edges))
        for members in sorted(found - here):
            wrong.append(f"{graph}: a new circle: {' '.join(members)}")
            for node in members:
                wrong.append(f"    {node} uses {' '.join(sorted(edges[node] & set(members)))}")
        for members in sorted(here - found):
            wrong.append(f"{graph}: no such circle any more, take it off the list: {' '.join(members)}")
    return wrong


def source_of(build, path):
    """The source file of an object: BUILD/loader/CMakeFiles/stoker.dir/__/datasets/idx.c.o -> datasets/idx.c"""
    folder, _, rest = os.path.relpath(path, build).partition("/CMakeFiles/")
    rest = rest.split("/", 1)[1].replace("__/", "../")
    return os.path.normpath(os.path.join(folder, rest))[:-len(".o")]


def read_symbols(build, objects):
    """{source: (defined, undefined)}, by one call of nm."""
    symbols = {source_of(build, path): (set(), set()) for path in objects}
    lines = subprocess.run(["nm", "-gA", "--", *objects], check=True, capture_output=True, text=True).stdout.splitlines()
    for line in lines:
        path, _, rest = line.partition(":")
        kind, name = rest.split()[-2:]
        symbols[source_of(build, path)][kind in "Uvw"].add(name)
    return symbols


def read_texts(top):
    names = subprocess.run([os.path.join(top, "tests/checks/sources.sh"), "*.c", "*.h"], check=True,
                           capture_output=True, text=True).stdout.split("\n")
    names = [name for name in names if name.startswith(("loader/", "datasets/", "kernels/", "trainer/"))]
    texts = {}
    for name in names:
        with open(os.path.join(top, name), encoding="utf-8") as file:
            texts[name] = file.read()
    return texts


def self_test():
    ring = {"x/a.c": ({"a"}, {"b", "printf"}), "y/b.c": ({"b"}, {"c"}), "x/c.c": ({"c"}, {"a"}), "x/d.c": ({"d"}, {"a"})}
    line = {"x/a.c": ({"a"}, {"b"}), "y/b.c": ({"b"}, {"c"}), "y/c.c": ({"c"}, set())}
    texts = {"x/a.h": '#include "b.h"\n#include <stdio.h>\n', "x/b.h": '# include "x/c.h"\n', "x/c.h": '#include "a.h"\n',
             "x/d.h": '#include "a.h"\n'}
    edges = link_edges(ring)
    files = ("x/a.c", "x/c.c", "y/b.c")
    assert circles(edges) == [files], circles(edges)
    assert circles(folders(edges)) == [("x", "y")]
    assert circles(folders({"x/a.c": {"x/y/b.c"}, "x/y/b.c": {"x/c.h"}, "xy/d.c": {"x/a.c"}})) == []
    assert circles(folders({"x/y/b.c": {"x/z/c.c"}, "x/z/c.c": {"x/y/d.c"}})) == [("x/y", "x/z")]
    assert without_public({"x/a.c": ({"stoker_a", "stk_a"}, {"stoker_b"})}) == {"x/a.c": ({"stk_a"}, set())}
    assert circles(link_edges(line)) == [] and circles(folders(link_edges(line))) == []
    assert circles(include_edges(texts)) == [("x/a.h", "x/b.h", "x/c.h")]
    assert circles({"1": {"2"}, "2": {"1"}, "3": {"4", "1"}, "4": {"3"}}) == [("1", "2"), ("3", "4")]
    assert verdict({"g": edges}, [("g", files, "known")]) == []
    assert len(verdict({"g": edges}, [])) == 4
    assert len(verdict({"g": link_edges(line)}, [("g", files, "stale")])) == 1
    assert len(verdict({"g": edges}, [("g", files[:2], "too short")])) == 5
    assert source_of("/b", "/b/loader/CMakeFiles/stoker.dir/__/datasets/idx.c.o") == "datasets/idx.c"
    assert source_of("/b", "/b/loader/CMakeFiles/stoker.dir/base/clock.c.o") == "loader/base/clock.c"


def main():
    self_test()
    words = [word for argument in sys.argv[1:] for word in argument.split(";") if word]
    if words == ["--self-test"]:
        return
    show = "--list" in words
    words = [word for word in words if word != "--list"]
    if len(words) == 1:
        sys.exit("usage: check_circles.py [--list] [BUILD_DIR OBJECT...]")
    includes = include_edges(read_texts(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")))
    graphs = {"included files": includes, "included folders": folders(includes)}
    links = {}
    if words:
        symbols = read_symbols(words[0], words[1:])
        links = link_edges(symbols)
        graphs.update({"linked files": links, "linked folders": folders(link_edges(without_public(symbols)))})
    if show:
        for graph, edges in graphs.items():
            for members in circles(edges):
                print(f"{graph}: {' '.join(members)}")
        return
    wrong = verdict(graphs, ALLOWED)
    print("\n".join(wrong + [f"{len(links)} objects, {len(includes)} sources"]))
    sys.exit(1 if wrong or (words and not links) or not includes else 0)


if __name__ == "__main__":
    main()
