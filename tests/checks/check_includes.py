#!/usr/bin/env python3
"""check_includes.py - which part may include which.

    base/  <-  stages (sampler reader codec device cache)  <-  pipeline  <-  api
    base/, codec/  <-  storage/
    base/, codec/, storage/  <-  loader/dataset/  <-  pipeline
    public headers, base/, codec/, storage/  <-  datasets
    public headers, base/, kernels/train/  <-  trainer; its programs see public headers only
    public headers, trainer/peers/{peers,choose}.h  <-  bench
    loader/cli/  <-  programs: bench, datasets/pack, trainer/programs
    each third-party header has one home

Without arguments it checks the sources, after having seen on made-up files that each rule
catches its violation. With --self-test it does only that.
"""
import os
import re
import subprocess
import sys

STAGES = ("sampler", "reader", "codec", "device", "cache", "storage")
JOINING = ("pipeline", "api")  # they put the stages together
# Of loader/pipeline/, from the ground up: a room sees itself and those before it.
PIPELINE_FLOORS = ("report", "order", "slots", "batch", "gpu", "plan", "reads", "rows", "work")
PACK_HEADERS = ("datasets/shards/layout.h", "loader/codec/kinds.h", "loader/base/crc32c/crc32c.h")
# Of base/, what the programs may use. printable.h and clock.h are inline; of the others they link copies
# (stoker_cli), since libstoker exports none of it.
PROGRAM_BASE = ("loader/base/text/printable.h", "loader/base/io/output_file.h", "loader/base/text/nearest.h",
                "loader/base/cpu/thread_team.h", "loader/base/cuda/cuda_card.h", "loader/base/cuda/cuda_runtime.h", "loader/base/clock.h", "loader/base/error.h",
                "loader/base/cpu/thread.h")
# Ranks of loaderbench meet as those of the trainer do, in host memory; it compiles a copy of the files behind these.
PEER_HEADERS = ("trainer/peers/peers.h", "trainer/peers/choose.h")
PROGRAM_CLI = "loader/cli/"  # command-line code of all programs; also in stoker_cli
DATASET_HEADERS = ("arrays.h", "dataset.h", "codec.h", "tensor.h", "error.h", "export.h", "files.h", "rng.h", "views.h",
                   "mix.h", "storage.h")
VIEW_HEADERS = ("loader/dataset/dataset.h", "loader/sampler/sampler.h", "loader/sampler/mix.h")

# A system header that is neither here nor in OURS is a third party that has no home yet.
THIRD_PARTY = {
    # Cut out of docs/fields.md while building.
    "fields_page.h": ("tests/checks/fields_page.c",),
    # The bench's ceiling is measured on the bare ring, so it cannot go through our reader.
    "liburing.h": ("loader/reader/ring.h", "bench/loaderbench/ceiling/uring.c"),
    "libdeflate.h": ("datasets/gzip.c", "datasets/zip/unpack.c", "loader/codec/png/png.c", "tests/"),
    # What packs lives with stoker-pack; tests make files of every kind with the libraries.
    "png.h": ("loader/codec/png/full.c", "datasets/pack/", "tests/"),
    "jpeglib.h": ("loader/codec/jpeg/jpeg.c", "loader/codec/jpeg/memory.h", "loader/codec/jpeg/huffman.h", "datasets/pack/", "tests/"),
    "webp/": ("loader/codec/webp/webp.c", "tests/"),
    "jerror.h": ("loader/codec/jpeg/jpeg.c", "loader/codec/jpeg/memory.c"),
    "cuda_runtime_api.h": ("loader/base/cuda/cuda_runtime.h", "tests/"),
    # What the kernels need of CUDA's language (nvcc finds them by itself in .cu files).
    "cuda_bf16.h": ("tests/support/cuda_threads/device.h",),
    "cuda_fp16.h": ("tests/support/cuda_threads/device.h",),
    "vector_functions.h": ("tests/support/cuda_threads/device.h",),
    "vector_types.h": ("tests/support/cuda_threads/device.h",),
    "lz4.h": ("loader/codec/lz4.c", "datasets/pack/"),
    "zstd.h": ("loader/codec/zstd.c", "datasets/pack/"),
    "lz4hc.h": ("loader/codec/lz4.c", "datasets/pack/"),
    "oneapi/dnnl/": ("trainer/backend/cpu/onednn/",),
    "mpi.h": ("trainer/peers/mpi/plugin/mpi.c",),
    "cudnn_graph.h": ("trainer/backend/cuda/cudnn/library.h",),
    "nccl.h": ("tests/",),
    "nvimgcodec.h": ("tests/",),
    "curl/": ("tests/",),
    "cublasLt.h": ("trainer/backend/cuda/cublaslt/product.c", "tests/"),
    # A test plays the tool that listens.
    "nvtx3/": ("loader/pipeline/report/nvtx.c", "tests/support/nvtx_tool.c"),
    # The build writes it.
    "bench_commit.h": ("bench/loaderbench/build.c",),
    "Python.h": ("loader/python/extension/core.h",),
    "structmember.h": ("loader/python/extension/core.h",),
    "criterion/": ("tests/",),
    "sanitizer/": ("loader/reader/ring.c", "tests/"),
}
SYSTEM = re.compile(
    r"""^(assert|byteswap|cpuid|ctype|dirent|endian|errno|fcntl|fenv|float|fnmatch|ftw|dlfcn|getopt|glob|inttypes|libgen|
    limits|locale|malloc|math|netdb|poll|pthread|pwd|sched|semaphore|setjmp|signal|spawn|stdalign|
    stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|strings|syscall|
    termios|threads|time|ucontext|unistd|wchar|immintrin|x86intrin|arm_neon)\.h$
    |^(sys|linux|asm|net|netinet|arpa)/[a-z0-9_/-]+\.h$""", re.VERBOSE)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def part_of(path):
    """The part of the house a file is in: base, sampler, ..., pipeline, api, public, datasets, ..."""
    pieces = path.split("/")
    if pieces[0] != "loader":
        return pieces[0]
    return "public" if pieces[1] == "include" else pieces[1]


def room_rule(path, name):
    """True unless both files are of loader/pipeline/ and `name` lies on a higher floor than `path`."""
    rooms = [p.split("/")[2] for p in (path, name) if p.startswith("loader/pipeline/")]
    return len(rooms) < 2 or PIPELINE_FLOORS.index(rooms[1]) <= PIPELINE_FLOORS.index(rooms[0])


def kernel_family_rule(path, name):
    """True if the file `path` of kernels/ may include the file `name` of kernels/."""
    family, other = path.split("/")[1], "/".join(name.split("/")[1:-1])
    return other in ("", family) or other.startswith(family + "/") or (family, other) == ("transform", "convert")


def project_rule(path, name):
    """Why `path` may not include the project's file `name`; None if it may."""
    here, there = part_of(path), part_of(name)
    if name in PROGRAM_BASE and path.startswith(("bench/", "trainer/", "datasets/", PROGRAM_CLI)):
        return None
    if name.startswith(PROGRAM_CLI) and path.startswith(("bench/", "trainer/programs/", "datasets/pack/")):
        return None
    if path.startswith("datasets/pack/"):
        # Of the data sets it knows the layout of shards, of which it compiles a copy.
        if name.startswith(("stoker/", "datasets/pack/")) or name in PACK_HEADERS:
            return None
        return "a program sees public headers only"
    if path.startswith("bench/") and name in PEER_HEADERS:
        return None
    if path in ("bench/loaderbench/device/spin.c", "bench/loaderbench/output/json.c") and name == "kernels/fatbin.h":
        return None  # loaderbench embeds a kernel and a page
    if path == "bench/micro.c" and name in ("loader/codec/images/image_decoder.h", "loader/codec/png/png.h",
                                              "loader/base/crc32c/crc32c.h"):
        return None  # it times them alone
    if path.startswith("trainer/programs/"):
        if name.startswith(("stoker/", "trainer/programs/")):
            return None
        return "a program sees public headers only"
    if name.startswith("trainer/include/stoker/"):
        return "public headers are included with <>"
    if here == there == "kernels" and not kernel_family_rule(path, name):
        return "convert/ and train/ see themselves and kernels/*.h, transform/ sees convert/ as well"
    if not room_rule(path, name):
        return "a room of pipeline/ sees itself and, of " + ", ".join(PIPELINE_FLOORS) + ", those before it"
    if here == "tests" or here == there:
        return None
    if name.startswith("stoker/"):
        header = name[len("stoker/"):]
        if here == "base":
            if header in ("error.h", "export.h"):
                return None
            return "base/ knows nothing of loading: <stoker/error.h> and <stoker/export.h> only"
        if here == "datasets" and header not in DATASET_HEADERS:
            return "datasets/ sees " + ", ".join(DATASET_HEADERS) + " only"
        return None
    if name in ("kernels/convert/convert.h", "kernels/transform/transform.h", "kernels/transform/gpu/launch.h",
                "kernels/transform/mask/mask.h", "kernels/transform/blend/blend.h", "kernels/transform/gpu/launch_blend.h"):
        if here in ("device", "bench") + JOINING:
            return None
        return "convert.h, transform.h and launch.h are for device/, pipeline/, api/ and bench/"
    if here == "trainer" and (name == "kernels/float16.h" or name.startswith("kernels/train/")):
        return None  # its 16-bit types, and the kernels of a training step
    if here == "kernels" and name in ("loader/base/rng.h", "loader/base/cpu/cpu_features.h"):
        return None  # inline; host and device draw the same numbers
    if here == "datasets" and name == "loader/dataset/format.h":
        return None  # the table through which formats reach the loader
    if here == "datasets" and name == "kernels/convert/elements.h":
        return None  # tokens of another type
    if path.startswith("datasets/views/") and name in VIEW_HEADERS:
        return None  # views wrap data sets, and split by the sampler's permutation
    if here in ("datasets", "dataset") and there in ("codec", "storage"):
        return None  # a data set names the codec of its samples, and what its files are in
    if here == "storage" and there == "codec":
        return None  # blocks are unpacked as rows are
    if here == "public":
        return "a public header sees public headers only"
    if there == "base" and here in STAGES + JOINING + ("dataset", "datasets", "trainer"):
        return None  # the trainer has a copy of its own: libstoker exports none of it
    if here in JOINING and there in STAGES + ("dataset",):
        return None  # workers call the callbacks of a data set
    if here == "api" and there == "pipeline":
        return None
    if here in STAGES:
        return "a stage sees itself, base/ and the public headers"
    return f"{here}/ may not look into {there}/"


def violations(path, text, exists):
    """Each broken rule in a file, as 'path:line: what'."""
    for match in INCLUDE.finditer(text):
        mark, name = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        why = None
        if name.startswith("stoker/"):
            why = project_rule(path, name)
            if mark == '"' and why is None:
                why = "public headers are included with <>"
        elif mark == '"':
            places = [os.path.dirname(path), "tests" if path.startswith("tests/") else "", ""]
            tried = [os.path.normpath(os.path.join(place, name)) for place in places]
            target = next((t for t in tried if exists(t)), None)
            if target is None:
                why = "no such file in the project"
            else:
                why = project_rule(path, target)
        else:
            homes = next((h for k, h in THIRD_PARTY.items()
                          if name == k or k.endswith("/") and name.startswith(k)), None)
            if homes is not None:
                if not any(path == h or h.endswith("/") and path.startswith(h) for h in homes):
                    why = "its home is " + ", ".join(homes)
            elif not SYSTEM.match(name):
                why = "a third-party header without a home"
        if why:
            yield f"{path}:{line}: {name}: {why}"


CAUGHT = [
    ("loader/pipeline/order/schedule.c", '#include "loader/pipeline/slots/slots.h"'),
    ("loader/base/queue.c", "#include <stoker/loader.h>"),
    ("loader/base/queue.c", '#include "loader/pipeline/slots/slots.h"'),
    ("loader/base/queue.c", '#include "../pipeline/slots/slots.h"'),
    ("loader/reader/pread.c", '#include "loader/cache/cache.h"'),
    ("loader/reader/pread.c", '#include "loader/pipeline/slots/slots.h"'),
    ("loader/reader/pread.c", '#include "kernels/convert/convert.h"'),
    ("loader/reader/pread.c", "#include <liburing.h>"),
    ("loader/reader/uring.c", "#include <liburing.h>"),
    ("loader/pipeline/work/worker.c", '#include "datasets/idx/file.h"'),
    ("loader/api/loader.c", '  #  include "bench/loaderbench/list.h"'),
    ("loader/api/loader.c", "#include <png.h>"),
    ("loader/api/loader.c", "#include <tiff.h>"),
    ("loader/api/loader.c", '#include "stoker/error.h"'),
    ("loader/include/stoker/x.h", '#include "loader/base/queue.h"'),
    ("datasets/idx/idx.c", "#include <stoker/loader.h>"),
    ("datasets/idx/idx.c", '#include "loader/reader/reader.h"'),
    ("datasets/idx/idx.c", '#include "loader/dataset/dataset.h"'),
    ("bench/loaderbench/main.c", '#include "loader/base/queue.h"'),
    ("bench/loaderbench/main.c", '#include "kernels/fatbin.h"'),
    ("bench/loaderbench/ranks.c", '#include "trainer/peers/mpi/mpi_peers.h"'),
    ("loader/api/create.c", '#include "trainer/peers/peers.h"'),
    ("trainer/main.c", '#include "bench/loaderbench/list.h"'),
    ("trainer/api/create.c", '#include "loader/cli/options.h"'),
    ("loader/api/create.c", '#include "loader/cli/options.h"'),
    ("loader/cli/options.c", '#include "loader/base/queue.h"'),
    ("datasets/pack/arguments.c", '#include "bench/loaderbench/list.h"'),
    ("trainer/programs/arguments.c", '#include "bench/loaderbench/list.h"'),
    ("trainer/programs/mnist/main.c", '#include "loader/base/queue.h"'),
    ("trainer/api/create.c", '#include "loader/pipeline/slots/slots.h"'),
    ("datasets/pack/run.c", '#include "datasets/idx/file.h"'),
    ("datasets/pack/run.c", '#include "loader/base/queue.h"'),
    ("kernels/train/a.c", '#include "loader/base/queue.h"'),
    ("kernels/train/a.c", '#include "kernels/convert/convert.h"'),
    ("kernels/convert/a.c", '#include "kernels/transform/gpu/launch.h"'),
    ("trainer/api/create.c", '#include "kernels/convert/convert.h"'),
    ("trainer/api/create.c", '#include "kernels/transform/transform.h"'),
    ("datasets/idx/idx.c", '#include "kernels/transform/gpu/launch.h"'),
    ("loader/api/loader.c", '#include "loader/nowhere.h"'),
    ("loader/pipeline/work/worker.c", '#include "loader/api/loader.h"'),
    ("loader/reader/pread.c", '#include "loader/dataset/dataset.h"'),
    ("loader/dataset/read.c", '#include "loader/pipeline/slots/slots.h"'),
    ("loader/dataset/read.c", '#include "loader/api/loader.h"'),
    ("loader/dataset/read.c", '#include "loader/cache/cache.h"'),
]
ALLOWED = [
    ("loader/base/queue.c", '#include <stoker/error.h>\n#include "loader/base/queue.h"'),
    ("loader/reader/ring.h", '#include <liburing.h>\n#include "loader/base/queue.h"'),
    ("loader/reader/pread.c", "#include <stoker/reader.h>\n#include <sys/uio.h>"),
    ("loader/pipeline/work/worker.c", '#include "loader/cache/cache.h"\n#include "kernels/convert/convert.h"'),
    ("loader/api/loader.c", '#include "loader/pipeline/slots/slots.h"\n#include "loader/cache/cache.h"'),
    ("loader/pipeline/work/worker.c", '#include "loader/dataset/dataset.h"'),
    ("datasets/idx/idx.c", '#include <stoker/dataset.h>\n#include "loader/base/queue.h"'),
    ("datasets/gzip.c", "#include <libdeflate.h>"),
    ("datasets/formats.c", '#include "loader/dataset/format.h"'),
    ("datasets/views/a.c", '#include "loader/dataset/dataset.h"'),
    ("datasets/idx/idx.c", '#include "loader/codec/raw.h"'),
    ("loader/dataset/read.c", '#include "loader/codec/raw.h"\n#include "loader/base/queue.h"'),
    ("bench/loaderbench/main.c", '#include <stoker/stoker.h>\n#include "list.h"\n#include "kernels/convert/convert.h"'),
    ("trainer/api/create.c", '#include <stoker/loader.h>\n#include "loader/base/queue.h"'),
    ("kernels/train/a.h", '#include "loader/base/rng.h"\n#include "kernels/float16.h"'),
    ("kernels/transform/a.h", '#include "kernels/convert/convert.h"'),
    ("loader/device/cuda.c", '#include "kernels/transform/gpu/launch.h"'),
    ("trainer/backend/ref/backend.c", '#include "kernels/train/dropout.h"\n#include "kernels/float16.h"'),
    ("bench/loaderbench/device/gpu.c", '#include "loader/base/cuda/cuda_runtime.h"'),
    ("bench/loaderbench/device/spin.c", '#include "kernels/fatbin.h"'),
    ("bench/loaderbench/output/output.c", '#include "loader/base/text/printable.h"'),
    ("datasets/pack/run.c", '#include "loader/base/text/printable.h"'),
    ("trainer/programs/mnist/main.c", '#include "loader/base/text/printable.h"'),
    ("bench/loaderbench/output/output.c", '#include "loader/base/io/output_file.h"'),
    ("bench/loaderbench/ranks.c", '#include "trainer/peers/choose.h"'),
    ("trainer/programs/trace.c", '#include "loader/base/io/output_file.h"'),
    ("datasets/pack/arguments.c", '#include "loader/base/text/nearest.h"'),
    ("bench/loaderbench/arguments.c", '#include "loader/cli/options.h"'),
    ("loader/cli/options.c", '#include <stoker/error.h>\n#include "loader/base/text/nearest.h"'),
    ("datasets/pack/arguments.c", '#include "loader/cli/options.h"'),
    ("trainer/programs/arguments.c", '#include "loader/cli/options.h"'),
    ("tests/unit/loader/test_x.c", '#include <criterion/criterion.h>\n#include "loader/pipeline/slots/slots.h"'),
]
FILES = {"loader/base/queue.h", "loader/pipeline/slots/slots.h", "loader/cache/cache.h", "loader/dataset/format.h", "loader/dataset/dataset.h",
         "loader/api/loader.h", "loader/codec/raw.h",
         "datasets/idx/file.h", "bench/loaderbench/list.h", "loader/reader/reader.h", "kernels/convert/convert.h", "kernels/transform/transform.h",
         "kernels/transform/gpu/launch.h", "kernels/train/dropout.h", "kernels/float16.h", "loader/base/rng.h",
         "loader/base/cuda/cuda_runtime.h", "loader/base/text/printable.h", "loader/base/io/output_file.h",
         "loader/base/text/nearest.h", "kernels/fatbin.h", "loader/cli/options.h", "trainer/peers/choose.h", "trainer/peers/mpi/mpi_peers.h",
         "trainer/peers/peers.h"}


def self_test():
    wrong = [f"not caught: {p}: {t}" for p, t in CAUGHT
             if not list(violations(p, t, FILES.__contains__))]
    wrong += [f"caught wrongly: {v}" for p, t in ALLOWED
              for v in violations(p, t, FILES.__contains__)]
    for line in wrong:
        print("self-test:", line, file=sys.stderr)
    return not wrong


def main():
    if not self_test():
        return 1
    if "--self-test" in sys.argv[1:]:
        return 0
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    listed = subprocess.run(["tests/checks/sources.sh", "*.c", "*.h"], check=True, capture_output=True,
                            text=True).stdout.split("\n")
    files = [f for f in listed if f and not f.startswith(("tests/install/", "bench/races/peers/"))]
    broken = []
    for path in files:
        with open(path, encoding="utf-8") as source:
            broken += violations(path, source.read(), os.path.exists)
    for line in broken:
        print(line, file=sys.stderr)
    print(f"{len(files)} files, {len(broken)} violations")
    return 1 if broken or not files else 0


if __name__ == "__main__":
    sys.exit(main())
