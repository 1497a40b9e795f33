#!/usr/bin/env python3
"""check_readme_commands.py - every command of every README that calls one of our programs works as printed.

    check_readme_commands.py PROGRAM...    paths of stoker-mnist, stoker-housing, loaderbench, stoker-pack

Commands are taken from code blocks and from `code spans`, and run by bash in the order of their README, in an empty
folder with the data sets that the READMEs name, small and made up. Not run: commands with placeholders in capitals,
those for a GPU if there is none, and those that begin with something else (./run, cmake, datasets/fetch-mnist.sh).
A command may be refused for what this CPU lacks if its line names that.
loaderbench gets SHORT in front of its options, so that a sweep takes a moment; nothing else is changed.
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SHORT = (" --repeats 1 --seconds 0.01 --ceilings off --verify off --workers 0 --pin-memory off "
         "--batch-size 512")
SECONDS = 1000
IMAGES, SIDE = 640, 28
LACKS = re.compile(r"needs (\w+), which this CPU lacks")
PLACEHOLDER = re.compile(r"(^|[\s:=\[])[A-Z]{2,}\b")


def write(path, data):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def picture(index, channels):
    return bytes((index * 31 + i * 7 + (index % 10) * 20) % 256 for i in range(SIDE * SIDE * channels))


def png(pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + pixels[y * SIDE * 3:(y + 1) * SIDE * 3] for y in range(SIDE))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def make_data(folder):
    images = struct.pack(">IIII", 0x803, IMAGES, SIDE, SIDE) + b"".join(picture(i, 1) for i in range(IMAGES))
    labels = struct.pack(">II", 0x801, IMAGES) + bytes(i % 10 for i in range(IMAGES))
    for part in ("train", "t10k"):
        write(f"{folder}/data/mnist/{part}-images-idx3-ubyte", images)
        write(f"{folder}/data/mnist/{part}-labels-idx1-ubyte", labels)
    write(f"{folder}/train-images-idx3-ubyte", images)
    for i in range(60):
        write(f"{folder}/photos/class{i % 3}/{i}.png", png(picture(i, 3)))
    rows = [f"{i % 7},{i * i % 11},{2 * (i % 7) + i * i % 11}" for i in range(60)]
    write(f"{folder}/table.csv", ("a,b,price\n" + "\n".join(rows) + "\n").encode())


def commands_of(path, names):
    """(line number, command, line) of the code blocks and spans that begin with one of the names."""
    begins = re.compile(r"(?:%s)(?= |$)" % "|".join(names))
    fenced = False
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            elif fenced or line.startswith("    "):
                text = re.sub(r"\s#.*", "", line.strip().removeprefix("$ ")).strip()
                if begins.match(text):
                    yield number, text, line
            else:
                for text in re.findall(r"`([^`]+)`", line):
                    if begins.match(text) and " " in text:
                        yield number, text, line


def why_not(command, has_gpu):
    if PLACEHOLDER.search(command):
        return "it has placeholders"
    if "cuda" in command and not has_gpu:
        return "there is no GPU"
    return None


def run(command, folder, environment):
    begin = re.sub(r"^loaderbench", "loaderbench" + SHORT, command)
    try:
        done = subprocess.run(["bash", "-c", begin], cwd=folder, env=environment, capture_output=True,
                              timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it took more than {SECONDS} s"
    if done.returncode == 0:
        return None
    return f"exit status {done.returncode}: {done.stderr.decode(errors='replace').strip()[-400:]}"


def check(readme, names, environment, has_gpu):
    """Returns the numbers of commands that ran and that failed."""
    ran = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        make_data(folder)
        run("loaderbench --format json -o old.json synth:digits?count=640 && cp old.json new.json", folder,
            environment)
        for number, command, line in commands_of(os.path.join(ROOT, readme), names):
            reason = why_not(command, has_gpu)
            if reason is not None:
                print(f"NOT RUN, {reason}: {readme}:{number}: {command}")
                continue
            ran += 1
            wrong = run(command, folder, environment)
            lacks = LACKS.search(wrong or "")
            if lacks is not None and lacks.group(1) in line:
                print(f"REFUSED, {lacks.group(0)}: {readme}:{number}: {command}")
            elif wrong is not None:
                failed += 1
                print(f"{readme}:{number}: {command}\n    {wrong}", file=sys.stderr)
    return ran, failed


def readmes():
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in ("build", "shared", "data"))
        for name in sorted(files):
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def main():
    programs = [os.path.abspath(path) for path in sys.argv[1:]]
    names = [os.path.basename(path) for path in programs]
    with tempfile.TemporaryDirectory() as path:
        for program in programs:
            os.symlink(program, os.path.join(path, os.path.basename(program)))
        environment = {**os.environ, "PATH": path + os.pathsep + os.environ["PATH"]}
        environment.pop("STOKER_DATA", None)
        listed = subprocess.run([programs[0], "--list-devices"], capture_output=True, text=True, check=False).stdout
        has_gpu = "cuda:1" in listed
        total = [check(readme, names, environment, has_gpu) for readme in readmes()]
    ran, failed = sum(t[0] for t in total), sum(t[1] for t in total)
    print(f"{ran} commands run, {failed} failed")
    return 1 if failed > 0 or ran < 10 or shutil.which("bash") is None else 0


if __name__ == "__main__":
    sys.exit(main())
