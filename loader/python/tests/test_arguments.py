"""Arguments that are refused: by a StokerError, in the words of the arguments."""

import importlib.util
import os
import subprocess
import sys
import warnings

import pytest

import stoker
from stoker import FieldOptions, Transform
from stoker._errors import in_python

numpy = pytest.importorskip("numpy", reason="NumPy is not installed")
GRAY = "synth:digits?count=8"


@pytest.mark.parametrize("options, message", [
    (dict(batch_size=-1), "batch_size is -1: 1..65536 is expected"), (dict(batch_size=0), "1..65536"),
    (dict(num_workers=-1), 'num_workers is -1: 0..256, or "auto", is expected'), (dict(prefetch_factor=1000), "prefetch_factor is 1000: 1..64"),
    (dict(dtype="flaot32"), "flaot32"), (dict(layout="CHW"), "layout"), (dict(cache="ram"), "cache"), (dict(last="keep"), "short, drop, pad, even"),
    (dict(on_bad_sample="ignore"), "fail, skip"), (dict(options={"read_dept": 3}), "read_dept"), (dict(weights=[1, 2]), "^weights: "),
    (dict(weights=[-1] * 100), r"^weights\[0\] is -1"), (dict(weights=[1] * 100, shuffle=True), "leave out shuffle"),
    (dict(order=lambda epoch: [1, 100]), r"order\(0\) has the id 100, but the data set has 100 samples"),
    (dict(options={"prefetch_batches": 1000}), 'prefetch_factor 1000 is not in 2..64 or "auto"'),
    (dict(fields={"mask": FieldOptions(dtype="int64")}), '^fields, "mask"'),
])  # fmt: skip
def test_what_is_out_of_range_is_an_option_error_that_names_the_argument(loader, options, message):
    with pytest.raises(stoker.OptionError, match=message) as caught:
        loader(**options)
    assert not isinstance(caught.value, TypeError)


@pytest.mark.parametrize("options", [
    dict(batch_size="64"), dict(batch_size=True), dict(batch_size=None), dict(num_workers="two"), dict(num_workers=2.5),
    dict(memory_bytes="1G"), dict(timeout="5"), dict(batch_transform=5), dict(prefetch_factor="many"),
])  # fmt: skip
def test_a_wrong_type_is_an_option_error_and_a_type_error(loader, options):
    (name,) = options
    with pytest.raises(stoker.OptionTypeError, match=name) as caught:
        loader(**options)
    assert isinstance(caught.value, (TypeError, ValueError)) and isinstance(caught.value, stoker.StokerError)


@pytest.mark.parametrize("transform, message", [
    (dict(center_crop=64), "^center_crop 64 x 64 of images of 28 x 28 with a padding of 0$"), (dict(blur=4), "^blur 4 is"),
    (dict(normalize=(stoker.IMAGENET_MEAN, stoker.IMAGENET_STD)), "^normalize: the number of values 3 is neither 1 nor the 1 channels"),
    (dict(normalize=(0.5, 0)), r"^normalize: std\[0\] is not positive"), (dict(jitter=(0, 0, 0, 0.9)), "^jitter: hue 0.9"),
])  # fmt: skip
def test_steps_are_named_as_the_transform_names_them(loader, transform, message):
    with pytest.raises(stoker.OptionError, match=message):
        loader(GRAY, transform=Transform(**transform))


@pytest.mark.parametrize("flip", [0.1, 0.5, 1, 0, "yes", None])
def test_flip_is_no_probability(flip):
    with pytest.raises(stoker.OptionTypeError, match="probability 1/2"):
        Transform(flip=flip)
    assert Transform(flip=numpy.bool_(True)).steps()["flip"] is True


def test_numbers_of_numpy_are_numbers(loader):
    made = loader(batch_size=numpy.int64(20), num_workers=numpy.int32(1), prefetch_factor=numpy.uint8(3), timeout=numpy.float32(9))
    assert len(made) == 5 and type(made.batch_size) is int


def test_a_mean_of_levels_is_warned_of(loader):
    with pytest.warns(UserWarning, match="0..1"):
        loader(GRAY, transform=Transform(normalize=(123.0, 58.0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader(GRAY, transform=Transform(normalize=(0.5, 0.2)))
        loader(GRAY, transform=Transform(normalize=(123.0, 58.0)), scale=1.0)


def test_a_closed_loader_and_a_second_thread_are_loader_errors(loader):
    made = loader()
    batches = iter(made)
    next(batches)
    made.close()
    for use in (lambda: next(batches), made.stats, made.state_dict, lambda: iter(made)):
        with pytest.raises(stoker.LoaderError, match="closed") as caught:
            use()
        assert isinstance(caught.value, RuntimeError)


def test_data_sets_say_what_they_take(hundred, tmp_path):
    assert len(stoker.concat("synth:digits?count=3", "synth:digits?count=4")) == 7
    for wrong in (lambda: stoker.concat(5), lambda: hundred["a"], lambda: hundred[1.5], lambda: hundred.split("most")):
        with pytest.raises(stoker.OptionTypeError):
            wrong()
    assert hundred[numpy.int64(3)].label == 3 and hundred[numpy.int64(-1)].label == 9
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(stoker.OptionError, match="folder:image=DIR"):
        stoker.open(f"folder:{tmp_path}")


def test_a_sample_is_pickled_with_its_names(hundred):
    import pickle

    again = pickle.loads(pickle.dumps(hundred[3]))
    assert type(again) is type(hundred[3]) and again.label == 3 and again.row.tolist() == [3, 3.5]


def test_torchs_own_loader_gets_samples_of_its_workers(hundred):
    data = pytest.importorskip("torch.utils.data", reason="PyTorch is not installed")
    batches = list(data.DataLoader(hundred, batch_size=50, num_workers=1, timeout=60))
    assert [batch.label.tolist() for batch in batches] == [list(range(10)) * 5] * 2


@pytest.mark.parametrize("message, expected", [
    ("transform.pad 9 is not in 0..3", "padding 9 is not in 0..3"), ("the lookahead of a pad, prefetch_batches_x", "the lookahead of a pad, prefetch_batches_x"),
    ("order.ids, epoch 1, position 0: returned -1", "order(1), position 0: returned -1"), ("blend.mixup_alpha 3", "mixup 3"),
    ("resume: made with seed 2", "state: made with seed 2"),
])  # fmt: skip
def test_names_of_the_c_library_become_arguments(message, expected):
    assert in_python(message) == expected


WRONG = """
import stoker
stoker.DataLoader("x", layout="CHW")
stoker.DataLoader("x", output="tf")
stoker.DataLoader("x", cache="ram")
stoker.DataLoader("x", on_bad_sample="ignore")
stoker.DataLoader("x", batchsize=3)
stoker.DataLoader("x", 64, True, num_workers=2, pin_memory=True, persistent_workers=True, prefetch_factor=2, layout="NCHW")
"""


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_a_type_checker_finds_wrong_words_and_names(tmp_path):
    (tmp_path / "wrong.py").write_text(WRONG)
    run = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "wrong.py"], cwd=tmp_path,
                         env={**os.environ, "MYPYPATH": os.path.dirname(os.path.dirname(os.path.realpath(stoker._loader.__file__)))},
                         stdout=subprocess.PIPE, text=True)  # fmt: skip
    lines = [int(line.split(":")[1]) for line in run.stdout.splitlines() if ": error:" in line]
    assert lines == [3, 4, 5, 6, 7], run.stdout
