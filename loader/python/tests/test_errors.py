"""Failures are exceptions by kind, with path, offset, sample and stage."""

import pickle

import pytest

import stoker
from stoker import _errors


def test_a_missing_folder_is_a_file_not_found_error_with_its_path(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        stoker.open(f"folder:{tmp_path}/nope")
    error = caught.value
    assert isinstance(error, stoker.MissingFile) and isinstance(error, stoker.StokerError)
    assert error.path.endswith("nope") and error.filename == error.path
    assert (error.code, error.stage, error.sample) == ("STOKER_ENOENT", "open", None)
    assert "nope" in str(error)


def test_a_missing_folder_given_to_a_loader_is_the_same_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        stoker.DataLoader(f"folder:{tmp_path}/nope")


def test_a_spec_that_is_not_understood_is_a_value_error():
    with pytest.raises(ValueError) as caught:
        stoker.open("mnst:somewhere")
    assert caught.value.code == "STOKER_ESPEC"


def test_a_file_that_breaks_its_format_is_a_format_error(tmp_path):
    file = tmp_path / "x.npy"
    file.write_bytes(b"\x93NUMPY\x01\x00\x10\x00{no dictionary!}\n" + bytes(100))
    with pytest.raises(stoker.FormatError) as caught:
        stoker.open(f"npy:{file}")
    assert caught.value.path == str(file) and not isinstance(caught.value, stoker.CorruptSample)


def test_a_broken_image_is_a_corrupt_sample_with_path_and_number(pictures, loader):
    (pictures / "cats" / "03.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    broken = loader(stoker.open(pictures))
    with pytest.raises(stoker.CorruptSample) as caught:
        list(broken)
    error = caught.value
    assert error.path.endswith("03.png") and error.sample == 3 and error.stage == "decode"


@pytest.mark.parametrize("name, builtin", [
    ("STOKER_ENOMEM", MemoryError), ("STOKER_EACCES", PermissionError), ("STOKER_TIMEOUT", TimeoutError),
    ("STOKER_EIO", OSError), ("STOKER_EISDIR", IsADirectoryError), ("STOKER_EBATCH", ValueError),
    ("STOKER_ESTATE", ValueError), ("STOKER_ENOTSUP", NotImplementedError), ("STOKER_EDEVICE", RuntimeError),
    ("STOKER_EFORKED", RuntimeError), ("STOKER_EVENLATER", RuntimeError),
])  # fmt: skip
def test_each_code_is_also_the_builtin_exception_that_fits(name, builtin):
    error = _errors.make(name=name, message="what happened", path="a/b", os_errno=5)
    assert isinstance(error, builtin) and isinstance(error, stoker.StokerError)
    assert (str(error), error.path, error.errno, error.code) == ("what happened", "a/b", 5, name)


def test_an_error_survives_pickling():
    error = _errors.make(name="STOKER_ENOENT", message="no such file", stage="read", path="p", offset=7, sample=3, os_errno=2)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)
    for attribute in ("code", "stage", "path", "offset", "sample", "errno"):
        assert getattr(again, attribute) == getattr(error, attribute)


def test_every_code_of_the_library_but_the_trainers_has_a_class():
    trainer = {"STOKER_EDIVERGED", "STOKER_EPEER"}
    header = _header("error.h")
    if header is None:
        pytest.skip("the headers are not beside these tests")
    import re

    codes = set(re.findall(r"X\((STOKER_E\w+),", header))
    stops = {"STOKER_TIMEOUT", "STOKER_BUSY"}
    assert len(codes) > 25 and (codes - trainer) | stops == set(_errors._KINDS)


def _header(name):
    from pathlib import Path

    path = Path(__file__).resolve().parents[2] / "include" / "stoker" / name
    return path.read_text() if path.exists() else None
