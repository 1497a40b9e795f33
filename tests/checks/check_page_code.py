#!/usr/bin/env python3
"""check_page_code.py - each block of C and Python in a Markdown file compiles.

usage: check_page_code.py CC

A block of C without a function is the body of one, in which the names of CONTEXT exist; lines of "..." are left out.
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
CONTEXT = """
#include <poll.h>
#include <stdio.h>
#include <stoker/cuda.h>
#include <stoker/stoker.h>
extern stoker_loader *loader;
extern stoker_loader_options options;
extern stoker_batch batch;
extern stoker_error error;
extern stoker_dataset *dataset, *web, *books;
extern stoker_array labels;
extern stoker_trace_event *events;
extern struct CUstream_st *stream;
extern const char *const *image_paths, *const *mask_paths;
extern float *loss;
extern size_t count, room, i;
extern FILE *file;
extern int rc, fd;
float cross_entropy(size_t i, int64_t label);
extern stoker_trace_sink to_file;
void evaluate(void);
void train(const stoker_batch *batch);
void train_step(const void *images, const void *labels, uint32_t count, struct CUstream_st *stream);
"""


def blocks_of(path, text):
    """(where, language, code) of each block."""
    for found in re.finditer(r"^( *)```(c|python)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE):
        code = "".join(line.removeprefix(found.group(1)) for line in found.group(3).splitlines(True))
        yield f"{path}:{text.count(chr(10), 0, found.start()) + 2}", found.group(2), code


def wrong_c(compiler, where, code):
    """What the compiler says, or nothing."""
    line = where.rsplit(":", 1)
    code = re.sub(r"^\.\.\.$", "", code, flags=re.MULTILINE)
    if not re.search(r"^\w[^;=]*\)\n\{", code, re.MULTILINE):
        code = f"void block(void);\nvoid block(void)\n{{\n#line {line[1]} \"{line[0]}\"\n{code}}}\n"
    if "#include" not in code:
        code = CONTEXT + code
    with tempfile.NamedTemporaryFile("w", suffix=".c", encoding="utf-8") as file:
        file.write(code)
        file.flush()
        done = subprocess.run([compiler, "-std=c17", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused", "-I",
                               os.path.join(ROOT, "loader/include"), file.name], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr


def wrong_python(where, code):
    try:
        compile(code, where, "exec")
    except SyntaxError as error:
        return f"{where}: {error}\n"
    return ""


def wrong(compiler, block):
    where, language, code = block
    return wrong_c(compiler, where, code) if language == "c" else wrong_python(where, code)


def main():
    compiler = sys.argv[1]
    for bad in ("```c\nbatch.nothing = 0;\n```", "```python\nfor x in\n```"):
        if not wrong(compiler, *blocks_of("self-test", bad)):
            sys.exit(f"check_page_code.py: the self-test missed: {bad}")
    pages = subprocess.run([os.path.join(ROOT, "tests/checks/sources.sh"), "*.md"], capture_output=True, text=True, check=True).stdout.split()
    count = failed = 0
    for page in pages:
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            for block in blocks_of(page, file.read()):
                message = wrong(compiler, block)
                sys.stderr.write(message)
                count += 1
                failed += message != ""
    print(f"{count} blocks, {failed} do not compile")
    sys.exit(failed > 0 or count == 0)


if __name__ == "__main__":
    main()
