"""A storage of the user's: every name of a spec is read through three methods of an object."""

import errno
import gc
import io
import tarfile
import weakref

import numpy as np
import pytest

import stoker


class Memory:
    """Files in a dictionary."""

    def __init__(self, files, version=1):
        self.files, self.version, self.reads = files, version, 0

    def look(self, name):
        if name in self.files:
            return len(self.files[name]), self.version
        return (None, 0) if any(other.startswith(name + "/") for other in self.files) else None

    def list(self, prefix):
        start = prefix.rfind("/") + 1
        folders = set()
        for name in self.files:
            if not name.startswith(prefix):
                continue
            first, slash, _ = name[start:].partition("/")
            if not slash:
                yield first, len(self.files[name]), self.version
            elif first not in folders:
                folders.add(first)
                yield first, None, 0

    def read(self, name, version, offset, bytes):
        self.reads += 1
        if version not in (0, self.version):
            raise OSError(errno.ESTALE, "another version")
        return memoryview(self.files[name])[offset : offset + bytes]


def load(folder):
    return Memory({"data/" + str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()})


def batches(data, **options):
    options = dict({"batch_size": 5, "output": "numpy", "seed": 3, "shuffle": True, "cache": "none"}, **options)
    return [tuple(np.array(value) for value in batch) for batch in stoker.DataLoader(data, **options)]


def same(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other):
        for x, y in zip(a, b):
            np.testing.assert_array_equal(x, y)


@pytest.fixture
def files(tmp_path, pictures):
    np.save(tmp_path / "x.npy", np.arange(120, dtype=np.float32).reshape(20, 6))
    np.save(tmp_path / "y.npy", np.arange(20) % 4)
    np.arange(400, dtype=np.uint16).tofile(tmp_path / "tokens.bin")
    with tarfile.open(tmp_path / "set.tar", "w") as tar:
        for index, path in enumerate(sorted(pictures.rglob("*.png"))):
            for end, data in ((".png", path.read_bytes()), (".cls", str(index % 3).encode())):
                member = tarfile.TarInfo(f"{index:03}{end}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return tmp_path


SPECS = ["folder:{}/pictures", "tar:{}/*.tar", "npy:{0}/x.npy,{0}/y.npy", "tokens:{}/tokens.bin?layout=raw&stored=uint16&length=16"]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_those_of_local_files(files, spec, workers):
    local = stoker.open(spec.format(files))
    inside = stoker.open(spec.format("data"), storage=load(files))
    assert len(inside) == len(local)
    same(batches(inside, num_workers=workers), batches(local))
    for value, expected in zip(inside[3], local[3]):
        np.testing.assert_array_equal(value, expected)


def test_a_folder_keeps_what_was_read(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept") / "cache"
    local = batches(stoker.open(f"npy:{files}/x.npy"))
    for run in range(2):
        storage = load(files)
        data = stoker.open("npy:data/x.npy", storage=storage, cache_dir=folder, cache_dir_bytes=1 << 20)
        opened = storage.reads
        same(batches(data), local)
        assert (storage.reads > opened) == (run == 0)
    with pytest.raises(stoker.OptionError, match="cache_dir_bytes"):
        stoker.open("npy:data/x.npy", storage=storage, cache_dir=folder, cache_dir_bytes=0)


def test_tokens_and_documents_take_a_storage(files):
    for make in (lambda at, **more: stoker.tokens(at + "/tokens.bin", 16, stored="uint16", layout="raw", **more),
                 lambda at, **more: stoker.documents(at + "/tokens.bin", eos=40, stored="uint16", layout="raw", **more)):
        local, inside = make(str(files)), make("data", storage=load(files))
        assert len(inside) == len(local) > 1
        np.testing.assert_array_equal(inside[1][0], local[1][0])


def test_a_missing_name_is_a_file_not_found(files):
    with pytest.raises(FileNotFoundError, match="data/none.npy"):
        stoker.open("npy:data/none.npy", storage=load(files))


def test_an_exception_is_the_cause(files):
    class Broken(Memory):
        def read(self, name, version, offset, bytes):
            raise RuntimeError("the key is wrong")

    with pytest.raises(stoker.StokerError, match="the key is wrong") as caught:
        stoker.open("npy:data/x.npy", storage=Broken(load(files).files))
    assert isinstance(caught.value.__cause__, RuntimeError)
    for wrong in (b"", 7, (1,), ("a", 0)):
        storage = load(files)
        storage.look = lambda name: wrong
        with pytest.raises(stoker.StokerError):
            stoker.open("npy:data/x.npy", storage=storage)
    storage = load(files)
    storage.list = lambda prefix: [("a/b", 1, 0)]
    with pytest.raises(stoker.StokerError, match="list"):
        stoker.open("tar:data/*.tar", storage=storage)
    storage = load(files)
    storage.read = lambda name, version, offset, bytes: b"x" * (bytes + 1)
    with pytest.raises(stoker.StokerError, match="read"):
        stoker.open("npy:data/x.npy", storage=storage)


def test_an_oserror_keeps_its_errno(files):
    storage = load(files)

    def list(prefix):
        raise PermissionError(errno.EACCES, "no right to list", prefix)

    storage.list = list
    with pytest.raises(PermissionError, match="no right to list"):
        stoker.open("folder:data/pictures", storage=storage)


def test_another_version_ends_the_run(files):
    storage = load(files)
    data = stoker.open("npy:data/x.npy", storage=storage)
    loader = stoker.DataLoader(data, batch_size=2, cache="none", num_workers=0, on_bad_sample="skip", output="numpy")
    with pytest.raises(stoker.DatasetChanged):
        for _ in range(30):
            for _ in loader:
                storage.version = 2


def test_the_object_lives_as_long_as_the_data_set(files):
    storage = load(files)
    known = weakref.ref(storage)
    data = stoker.open("npy:data/x.npy", storage=storage)
    del storage
    gc.collect()
    assert known() is not None and len(batches(data)) == 4
    del data
    gc.collect()
    assert known() is None
