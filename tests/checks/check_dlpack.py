#!/usr/bin/env python3
"""check_dlpack.py - batches of the C library in Python, without a copy: through ctypes and a capsule into
NumPy, PyTorch and JAX, on a CPU and, where PyTorch has one, on a GPU.

What is seen: the tensor has the batch's address, shape and values; the memory is not refilled
while anybody has the tensor, also after the batch was released; and is refilled once nobody has it.

usage: check_dlpack.py LIBSTOKER.SO        77 = neither NumPy nor PyTorch nor JAX is installed
STOKER_PYTHON names a Python that has more of them than the one that runs this.
"""
import ctypes
import os
import sys

SKIP = 77
CPU, CUDA = 1, 2
FLOAT32 = 8
IMAGES, LABELS = 0, 1
BUSY = 1  # STOKER_ON_LENT_BUSY: a tensor that is kept stops the loader
BATCH, SAMPLES = 10, 40


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_uint32),
                ("shape", ctypes.c_uint64 * 8), ("reserved", ctypes.c_uint64 * 2)]


class Batch(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("images", Tensor), ("labels", Tensor),
                ("fields", ctypes.c_void_p), ("field_count", ctypes.c_uint32), ("ids", ctypes.POINTER(ctypes.c_uint64)),
                ("count", ctypes.c_uint32), ("padded", ctypes.c_uint32), ("epoch", ctypes.c_uint64),
                ("index", ctypes.c_uint64), ("device", ctypes.c_int), ("device_index", ctypes.c_uint32),
                ("device_ids", ctypes.c_void_p), ("loader", ctypes.c_void_p), ("lease", ctypes.c_void_p),
                ("turn", ctypes.c_uint64)]


class Options(ctypes.Structure):
    """stoker_loader_options as far as this check sets it; the rest keeps its defaults."""
    _fields_ = [("struct_size", ctypes.c_size_t), ("batch_size", ctypes.c_uint32),
                ("shuffle", ctypes.c_bool), ("last", ctypes.c_int), ("epochs", ctypes.c_uint64),
                ("seed", ctypes.c_uint64), ("dtype", ctypes.c_int), ("num_workers", ctypes.c_int32),
                ("prefetch_batches", ctypes.c_uint32), ("read_depth", ctypes.c_uint32), ("cache", ctypes.c_int),
                ("memory_bytes", ctypes.c_uint64), ("block_memory_bytes", ctypes.c_uint64), ("share_cache", ctypes.c_int), ("on_lent", ctypes.c_int),
                ("device", ctypes.c_int), ("device_index", ctypes.c_uint32),
                ("pin_memory", ctypes.c_int), ("non_blocking", ctypes.c_bool),
                ("rest", ctypes.c_uint8 * 4096)]


def default_options(library, **changes):
    """The smallest struct that the library accepts is that of its first version."""
    options = Options()
    init = library.stoker_loader_options_init_sized
    init.argtypes, init.restype = [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_int
    for size in range(Options.rest.offset, ctypes.sizeof(Options)):
        init(ctypes.byref(options), size)
        if options.struct_size == size:
            break
    assert options.struct_size > 0, "no size of stoker_loader_options is accepted"
    for name, value in changes.items():
        setattr(options, name, value)
    return options


class DLPackTensor:
    """A part of a batch as NumPy, PyTorch, JAX and CuPy ask for it."""
    capsule_of = ctypes.pythonapi.PyCapsule_New
    capsule_of.restype = ctypes.py_object
    capsule_of.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

    def __init__(self, library, batch, part):
        self.library, self.batch, self.part = library, batch, part

    def __dlpack_device__(self):
        return (self.batch.device, self.batch.device_index)

    def __dlpack__(self, stream=None, max_version=None, **_):
        versioned = max_version is not None and max_version[0] >= 1
        make, name = ((self.library.stoker_batch_to_dlpack, b"dltensor_versioned") if versioned else
                      (self.library.stoker_batch_to_dlpack_unversioned, b"dltensor"))
        managed = ctypes.c_void_p()
        rc = make(ctypes.byref(self.batch), self.part, ctypes.c_void_p(stream), ctypes.byref(managed))
        if rc != 0:
            raise BufferError(f"stoker_batch_to_dlpack: {rc}")
        return self.capsule_of(managed, name, None)


class UnversionedTensor(DLPackTensor):
    """For a consumer that takes either: the struct of DLPack 0.x."""
    def __dlpack__(self, stream=None, max_version=None, **_):
        return super().__dlpack__(stream)


def open_library(path):
    library = ctypes.CDLL(path)
    library.stoker_batch_release.restype = None
    library.stoker_loader_destroy.restype = None
    for make in (library.stoker_batch_to_dlpack, library.stoker_batch_to_dlpack_unversioned):
        make.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    return library


def open_loader(library, device):
    dataset, loader = ctypes.c_void_p(), ctypes.c_void_p()
    rc = library.stoker_dataset_open(ctypes.byref(dataset), f"synth:digits?count={SAMPLES}".encode(), None, None)
    assert rc == 0, f"stoker_dataset_open: {rc}"
    options = default_options(library, batch_size=BATCH, num_workers=1, prefetch_batches=2, on_lent=BUSY,
                              device=device, dtype=FLOAT32)
    rc = library.stoker_loader_create(ctypes.byref(loader), dataset, ctypes.byref(options), None)
    assert rc == 0, f"stoker_loader_create: {rc}"
    return dataset, loader


def next_batch(library, loader):
    batch = Batch(struct_size=ctypes.sizeof(Batch))
    rc = library.stoker_loader_next(loader, ctypes.byref(batch), -1)
    while rc == 1:  # STOKER_EPOCH_END
        rc = library.stoker_loader_next(loader, ctypes.byref(batch), -1)
    return rc, batch


def comes_round(library, loader, address, keep, count):
    """Returns True if the memory at `address` is handed out again; False after `count` batches, or if next() fails. The
    arrays that keep() makes of the batches live on meanwhile, so that returned memory takes the place of theirs."""
    kept = []
    for _ in range(count):
        rc, batch = next_batch(library, loader)
        if rc != 0:
            return False
        here = batch.images.data == address
        kept.append(keep(batch))
        library.stoker_batch_release(ctypes.byref(batch))
        if here:
            return True
    return False


def check(library, name, device, take, address_of, tensor=DLPackTensor):
    """take: DLPackTensor -> array; address_of: array -> where its memory is."""
    dataset, loader = open_loader(library, device)
    rc, batch = next_batch(library, loader)
    assert rc == 0, rc
    images, labels = take(tensor(library, batch, IMAGES)), take(tensor(library, batch, LABELS))
    where = address_of(images)
    assert where == batch.images.data, f"{name}: the images were copied"
    assert address_of(labels) == batch.labels.data, f"{name}: the labels were copied"
    assert tuple(images.shape) == tuple(batch.images.shape[:batch.images.rank]), images.shape
    assert str(images.dtype).endswith("float32") and str(labels.dtype).endswith("int64")
    first, marks = images.tolist(), labels.tolist()
    assert 0 < brightest(first) <= 1.0
    assert all(0 <= mark < 10 for mark in marks)

    library.stoker_batch_release(ctypes.byref(batch))
    keep = lambda batch: take(tensor(library, batch, IMAGES))
    assert not comes_round(library, loader, where, keep, 100), f"{name}: handed out again while two arrays have it"
    assert images.tolist() == first and labels.tolist() == marks, f"{name}: refilled too early"
    del images
    assert not comes_round(library, loader, where, keep, 100), f"{name}: the labels still have it"
    del labels
    assert comes_round(library, loader, where, keep, 500), f"{name}: the memory did not come back"
    library.stoker_loader_destroy(ctypes.byref(loader))
    library.stoker_dataset_close(ctypes.byref(dataset))
    print(f"{name}: taken without a copy, kept while in use, given back")


def brightest(nested):
    return max(map(brightest, nested)) if isinstance(nested, list) else nested


def check_numpy(library):
    try:
        import numpy
    except ImportError:
        return "no NumPy"
    if not hasattr(numpy, "from_dlpack"):
        return f"NumPy {numpy.__version__} has no from_dlpack"
    for tensor in (DLPackTensor, UnversionedTensor):
        check(library, f"NumPy {numpy.__version__}, {tensor.__name__}", CPU, numpy.from_dlpack,
              lambda array: array.__array_interface__["data"][0], tensor)
    return None


def check_torch(library, device):
    try:
        import torch
    except ImportError:
        return "no PyTorch"
    if device == CUDA and not torch.cuda.is_available():
        return f"PyTorch {torch.__version__} without a GPU"
    check(library, f"PyTorch {torch.__version__} on {'a GPU' if device == CUDA else 'the CPU'}", device,
          torch.from_dlpack, lambda tensor: tensor.data_ptr())
    return None


def check_jax(library):
    try:
        import jax
    except ImportError:
        return "no JAX"
    jax.config.update("jax_enable_x64", True)  # else int64 labels are copied to int32
    check(library, f"JAX {jax.__version__}", CPU, jax.numpy.from_dlpack, lambda array: array.unsafe_buffer_pointer())
    return None


def elsewhere():
    """Debian's Python may have what this one has not: become that one, once."""
    for python in (os.environ.get("STOKER_PYTHON"), "/usr/bin/python3"):
        tried = os.environ.get("STOKER_DLPACK_TRIED", "")
        if python and os.path.exists(python) and python not in tried:
            os.environ["STOKER_DLPACK_TRIED"] = tried + " " + python
            os.execv(python, [python] + sys.argv)


def main():
    try:
        import numpy  # noqa: F401
    except ImportError:
        elsewhere()
    library = open_library(sys.argv[1])
    missing = [why for why in (check_numpy(library), check_torch(library, CPU), check_torch(library, CUDA),
                               check_jax(library)) if why]
    for why in missing:
        print(f"SKIPPED in part: {why}")
    return SKIP if len(missing) == 4 else 0


if __name__ == "__main__":
    sys.exit(main())
