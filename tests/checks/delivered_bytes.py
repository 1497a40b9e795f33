"""delivered_bytes.py - hashes of the bytes that a build delivers: formats, types, transforms, settings, resume.

usage: PYTHONPATH=BUILD/python python3 delivered_bytes.py PACK SCRATCH [memory] >hashes.txt

A change that must not change a byte is checked by a diff of the output of two builds (-DSTOKER_BUILD_PYTHON=ON): a line per
case, with a part of its SHA-256. Cases do not depend on the C API or on the format of shards, which may change.

With "memory", what is opened by name is read through a storage that keeps files in memory: the lines must be the same.

PACK is the build's stoker-pack. SCRATCH holds the input files, made on the first run with NumPy and Pillow from a seed, and
what PACK writes. MNIST and the Boston housing table come from $STOKER_DATA.
"""

import ctypes
import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile

import numpy as np
from PIL import Image

import stoker

pack_tool, scratch = sys.argv[1], sys.argv[2]
files = os.path.join(scratch, "files")


class Memory:
    """A stoker.Storage: each file is copied when it is looked at first."""

    def __init__(self):
        self.bytes = {}

    def look(self, name):
        if os.path.isdir(name):
            return None, 0
        if not os.path.exists(name):
            return None
        with open(name, "rb") as file:
            self.bytes[name] = file.read()
        return len(self.bytes[name]), 1

    def list(self, prefix):
        for entry in os.scandir(os.path.dirname(prefix) or "."):
            if entry.name.startswith(os.path.basename(prefix)):
                yield (entry.name, None, 0) if entry.is_dir() else (entry.name, entry.stat().st_size, 1)

    def read(self, name, version, offset, bytes):
        if name not in self.bytes:
            self.look(name)
        return memoryview(self.bytes[name])[offset : offset + bytes]


if sys.argv[3:] == ["memory"]:
    open_files = stoker.open
    for module in (stoker, stoker._tokens):
        module.open = lambda spec, split=None, max_bytes=None: open_files(spec, split, max_bytes, Memory())


def picture(rng, height, width, channels):
    small = rng.integers(0, 256, (max(height // 8, 1), max(width // 8, 1), channels), dtype=np.uint8)
    image = np.asarray([np.asarray(Image.fromarray(small[..., c]).resize((width, height), Image.BICUBIC)) for c in range(channels)])
    image = np.moveaxis(image, 0, -1)
    return image[..., 0] if channels == 1 else image


def make_files():
    if os.path.exists(files):
        return
    at = files + ".tmp"
    shutil.rmtree(at, ignore_errors=True)
    rng = np.random.default_rng(7)
    for kind, extension, sizes, channels in (
        ("png", "png", [(33, 47), (64, 64), (120, 90)], 3), ("gray", "png", [(28, 28)], 1), ("jpeg", "jpg", [(97, 131), (256, 200)], 3),
        ("webp", "webp", [(60, 80)], 3), ("same", "png", [(40, 40)], 3),
    ):
        for n in range(24):
            folder = os.path.join(at, kind, "abc"[n % 3])
            os.makedirs(folder, exist_ok=True)
            height, width = sizes[n % len(sizes)]
            options = {"quality": 85} if kind == "jpeg" else {"lossless": n % 2 == 0} if kind == "webp" else {}
            Image.fromarray(picture(rng, height, width, channels)).save(os.path.join(folder, f"{n:03}.{extension}"), **options)
    os.makedirs(os.path.join(at, "palette", "a"))
    for n, mode in enumerate(["P", "1", "L", "RGBA", "LA"] * 3):
        Image.fromarray(picture(rng, 31, 29, 3)).convert(mode).save(os.path.join(at, "palette", "a", f"{n:03}.png"))
    with tarfile.open(os.path.join(at, "samples.tar"), "w") as tar:
        def add(name, data):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for n in range(20):
            buffer = io.BytesIO()
            Image.fromarray(picture(rng, 50, 60, 3)).save(buffer, "JPEG" if n % 2 else "PNG")
            add(f"{n:04}.{'jpg' if n % 2 else 'png'}", buffer.getvalue())
            add(f"{n:04}.cls", str(n % 5).encode())
    os.makedirs(os.path.join(at, "pairs", "images"))
    os.makedirs(os.path.join(at, "pairs", "masks"))
    for n in range(16):
        Image.fromarray(picture(rng, 48, 56, 3)).save(os.path.join(at, "pairs", "images", f"{n:03}.jpg"))
        Image.fromarray(rng.integers(0, 9, (48, 56), dtype=np.uint8)).save(os.path.join(at, "pairs", "masks", f"{n:03}.png"))
    for dtype in ("uint8", "int16", "int32", "int64", "float16", "float32", "float64"):
        np.save(os.path.join(at, f"x_{dtype}.npy"), (rng.standard_normal((50, 6, 5)) * 50 + 100).astype(dtype))
    np.save(os.path.join(at, "y.npy"), np.arange(50, dtype=np.int64) % 7)
    np.save(os.path.join(at, "w.npy"), rng.standard_normal(50).astype(np.float32))
    np.savez(os.path.join(at, "set.npz"), x=rng.integers(0, 256, (40, 8, 8, 3), dtype=np.uint8), y=np.arange(40) % 3)
    np.savez_compressed(os.path.join(at, "packed.npz"), x=rng.integers(0, 256, (40, 8, 8, 3), dtype=np.uint8), y=np.arange(40) % 3)
    with open(os.path.join(at, "images-idx3-ubyte"), "wb") as out:
        out.write(struct.pack(">IIII", 0x803, 60, 12, 14) + rng.integers(0, 256, 60 * 12 * 14, dtype=np.uint8).tobytes())
    with open(os.path.join(at, "labels-idx1-ubyte"), "wb") as out:
        out.write(struct.pack(">II", 0x801, 60) + (np.arange(60, dtype=np.uint8) % 10).tobytes())
    os.makedirs(os.path.join(at, "cifar"))
    for n in range(1, 6):
        with open(os.path.join(at, "cifar", f"data_batch_{n}.bin"), "wb") as out:
            out.write(rng.integers(0, 10, 3073 * 10000, dtype=np.uint8).tobytes())
    with open(os.path.join(at, "table.csv"), "w", encoding="ascii") as out:
        out.write("a,b,c,label\n")
        for n in range(30):
            out.write(f"{rng.standard_normal():.6f},{rng.integers(0, 100)},{rng.standard_normal():.3e},{n % 4}\n")
    words = rng.integers(0, 50000, 20000).astype(np.uint16)
    words[::97] = 50256 & 0xFFFF
    header = np.zeros(256, np.int32)
    header[:3] = 20240520, 1, len(words)
    with open(os.path.join(at, "llmc.bin"), "wb") as out:
        out.write(header.tobytes() + words.tobytes())
    os.rename(at, files)


def specs():
    """(name, data set, kind). Kinds: image, sized (images of one size), rows, ragged."""
    f = lambda name: os.path.join(files, name)
    yield "digits", stoker.open("synth:digits?count=70"), "sized"
    if os.environ.get("STOKER_DATA"):
        mnist = os.environ["STOKER_DATA"] + "/mnist"
        yield "mnist", stoker.open("mnist:" + mnist, split="test").select(range(0, 10000, 50)), "sized"
        yield "boston", stoker.open("csv:" + os.environ["STOKER_DATA"] + "/boston/BostonHousing.csv?label=medv"), "rows"
    for name in ("png", "gray", "jpeg", "webp", "same", "palette"):
        yield "folder-" + name, stoker.open("folder:" + f(name)), "sized" if name in ("gray", "webp", "same") else "image"
    yield "tar", stoker.open("tar:" + f("samples.tar")), "image"
    yield "pairs", stoker.from_files(images=sorted(f("pairs/images/" + n) for n in os.listdir(f("pairs/images"))),
                                     masks=sorted(f("pairs/masks/" + n) for n in os.listdir(f("pairs/masks")))), "image"
    for dtype in ("uint8", "int16", "int32", "int64", "float16", "float32", "float64"):
        yield "npy-" + dtype, stoker.open(f"npy:{f('x_' + dtype + '.npy')},{f('y.npy')}"), "rows"
    yield "npy-three", stoker.open(f"npy:a={f('x_uint8.npy')},b={f('w.npy')},c={f('y.npy')}"), "rows"
    yield "npz", stoker.open("npz:" + f("set.npz")), "sized"
    yield "npz-packed", stoker.open("npz:" + f("packed.npz")), "sized"
    yield "idx", stoker.open(f"idx:{f('images-idx3-ubyte')},{f('labels-idx1-ubyte')}"), "sized"
    yield "cifar", stoker.open("cifar:" + f("cifar")).select(range(0, 50000, 999)), "sized"
    yield "csv", stoker.open(f"csv:{f('table.csv')}?label=label"), "rows"
    yield "tokens-llmc", stoker.tokens(f("llmc.bin"), length=64), "rows"
    yield "tokens-eos", stoker.tokens(f("llmc.bin"), length=32, stride=16, fields=("inputs", "targets"), eos=50256), "rows"
    yield "documents", stoker.documents(f("llmc.bin"), eos=50256), "ragged"
    yield "packed", stoker.pack(stoker.documents(f("llmc.bin"), eos=50256), length=128, long="split"), "rows"
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((90, 3, 4)).astype(np.float32), np.arange(90)
    yield "arrays", stoker.from_arrays(x, y), "rows"
    yield "arrays-four", stoker.from_arrays(a=x, b=rng.integers(0, 99, (90, 7), dtype=np.int16), c=y.astype(np.uint8), d=x[:, 0] * 2), "rows"
    lengths = rng.integers(0, 9, 90)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    yield "arrays-ragged", stoker.from_arrays(t=stoker.Ragged(rng.integers(0, 99, offsets[-1]), offsets), y=y), "ragged"
    digits = stoker.open("synth:digits?count=70")
    yield "split", digits.split(0.7)[0], "sized"
    yield "concat", digits + digits.select([5, 3, 60]), "sized"
    yield "mix", stoker.mix([(0.7, digits), (0.3, digits.select(range(10)))], epoch_samples=55), "sized"


class Managed(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


def raw_bytes(value):
    capsule = value.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = ctypes.cast(get(capsule, b"dltensor"), ctypes.POINTER(Managed)).contents
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    count = int(np.prod(shape)) if shape else 1
    data = ctypes.string_at(tensor.data + tensor.byte_offset, count * tensor.bits // 8) if count else b""
    return repr((shape, tensor.code, tensor.bits)).encode() + data


def feed(digest, value):
    if isinstance(value, np.ndarray):
        digest.update(repr((value.dtype.str, value.shape)).encode() + np.ascontiguousarray(value).tobytes())
    elif hasattr(value, "__dlpack__"):
        digest.update(raw_bytes(value))
    elif isinstance(value, memoryview):
        digest.update(value.tobytes())
    elif isinstance(value, (tuple, list)):
        for item in value:
            feed(digest, item)
    else:
        digest.update(repr(value).encode())


def run(data, epochs=2, stop=None, **options):
    """SHA-256 of all batches; with stop=k a second loader continues after k batches."""
    digest = hashlib.sha256()
    options = dict({"batch_size": 8, "output": "numpy", "seed": 5, "shuffle": True}, **options)
    loader = stoker.DataLoader(data, **options)
    seen = 0
    for _ in range(epochs):
        for batch in loader:
            feed(digest, tuple(batch))
            feed(digest, batch.ids)
            seen += 1
            if seen == stop:
                break
        if seen == stop:
            state = json.loads(json.dumps(loader.state_dict()))
            loader = stoker.DataLoader(data, **options)
            loader.load_state_dict(state)
            for batch in loader:
                feed(digest, tuple(batch))
                feed(digest, batch.ids)
    return digest.hexdigest()[:24]


T = stoker.Transform
norm = {"normalize": ((0.4, 0.5, 0.6), (0.2, 0.3, 0.25))}
TRANSFORMS = {
    "resize": dict(transform=T(resize=(20, 24))),
    "resize-crop": dict(transform=T(resize=32, center_crop=24)),
    "rrc": dict(transform=T(random_resized_crop=24, flip=True)),
    "rrc-f32-nchw": dict(transform=T(random_resized_crop=32, flip=True), dtype="float32", layout="NCHW"),
    "rrc-bf16": dict(transform=T(random_resized_crop=32), dtype="bfloat16", layout="NCHW", output="dlpack"),
    "rrc-f16": dict(transform=T(random_resized_crop=17), dtype="float16"),
    "center": dict(transform=T(center_crop=(20, 22))),
    "random": dict(transform=T(random_crop=24, padding=4, fill=7, flip=True), dtype="float32"),
    "retouch": dict(transform=T(resize=(24, 24), rotation=20, jitter=(0.2, 0.3, 0.4, 0.1), blur=3, cutout=5)),
}


def cases():
    make_files()
    for name, data, kind in specs():
        images = kind in ("image", "sized")
        base = dict(transform=T(resize=(24, 20))) if kind == "image" else {}
        yield name, "plain", data, base
        yield name, "plain-dlpack", data, dict(base, output="dlpack")
        yield name, "workers2", data, dict(base, num_workers=2)
        yield name, "stop3", data, dict(base, stop=3)
        yield name, "order", data, dict(base, shuffle=False, last="short", batch_size=7)
        yield name, "rank", data, dict(base, rank=1, world_size=3)
        yield name, "uniform", data, dict(base, shuffle=False, order="uniform", length=33)
        yield name, "weights", data, dict(base, shuffle=False, weights=[1.0 + i % 5 for i in range(len(data))], length=29)
        yield name, "caches", data, dict(base, cache="decoded" if kind != "ragged" else "encoded", epochs=3)
        yield name, "nocache", data, dict(base, cache="none")
        if kind != "ragged":
            yield name, "f32", data, dict(base, dtype="float32")
            yield name, "f16", data, dict(base, dtype="float16")
            yield name, "bf16", data, dict(base, dtype="bfloat16", output="dlpack")
        else:
            first = next(iter(data.fields))
            yield name, "padded", data, dict(fields={first: stoker.FieldOptions(pad="longest")})
            yield name, "values", data, dict(fields={first: stoker.FieldOptions(pad="longest")}, batch_values_max=3000)
        if images:
            for step, options in TRANSFORMS.items():
                yield name, step, data, dict(options, num_workers=1)
            yield name, "fast", data, dict(transform=T(random_resized_crop=24, fast_decode=True))
            if name not in ("gray", "pairs"):
                yield name, "mixup", data, dict(transform=T(resize=(24, 20)), mixup=0.4, cutmix=0.7, dtype="float32")
            yield name, "stop-rrc", data, dict(transform=T(random_resized_crop=24, flip=True), stop=2, num_workers=2)


def packed():
    """Every data set that can be packed, by every codec, read again."""
    make_files()
    f = lambda name: os.path.join(files, name)
    sources = {"digits": "synth:digits?count=70", "png": "folder:" + f("png"), "jpeg": "folder:" + f("jpeg"), "same": "folder:" + f("same"),
               "tar": "tar:" + f("samples.tar"), "npy": f"npy:{f('x_float32.npy')},{f('y.npy')}",
               "three": f"npy:a={f('x_uint8.npy')},b={f('w.npy')},c={f('y.npy')}"}
    for name, source in sources.items():
        for codec in ("keep", "raw", "lz4", "zstd"):
            for target in ("shards", "tar", "folder") if codec == "keep" else ("shards",):
                at = os.path.join(scratch, "out", f"{name}-{codec}-{target}" + (".tar" if target == "tar" else ""))
                shutil.rmtree(at, ignore_errors=True)
                if os.path.isfile(at):
                    os.remove(at)
                os.makedirs(os.path.dirname(at), exist_ok=True)
                done = subprocess.run([pack_tool, "--quiet", "--codec", "png" if target == "folder" and codec == "raw" else codec, source,
                                       f"{target}:{at}"], capture_output=True, text=True)
                if done.returncode != 0:
                    yield f"packed-{name}", f"{codec}-{target}", None, done.stderr.strip().replace(scratch, "")[-120:]
                    continue
                try:
                    data = stoker.open(f"{target}:{at}")
                except stoker.StokerError as error:
                    yield f"packed-{name}", f"{codec}-{target}", None, str(error).replace(scratch, "")[:110]
                    continue
                sized = {} if name in ("digits", "npy", "three", "same") else dict(transform=T(resize=(24, 20)))
                yield f"packed-{name}", f"{codec}-{target}", data, sized
                yield f"packed-{name}", f"{codec}-{target}-stop", data, dict(sized, stop=2, num_workers=2)
                yield f"packed-{name}", f"{codec}-{target}-f32", data, dict(sized, dtype="float32")


for source in (cases, packed):
    for name, case, data, options in source():
        if data is None:
            print(name, case, "refused:", options)
            continue
        try:
            result = run(data, **options)
        except Exception as error:
            result = f"{type(error).__name__}: {str(error).replace(scratch, '')[:110]}"
        print(name, case, result, flush=True)
