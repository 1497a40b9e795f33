"""Data sets: what they know of themselves, single samples, views."""

import pickle

import pytest

import stoker


def test_a_folder_knows_its_classes_fields_and_samples(pictures):
    data = stoker.open(pictures)
    assert len(data) == 12 and data.classes == ["cats", "dogs"] and data.format == "folder"
    assert data.fields == {"image": stoker.Field("uint8", (8, 8, 1), "image"), "label": stoker.Field("int64", (), "array", 2)}
    assert list(data.element_spec) == ["images", "labels"]
    sample = data[7]
    assert sample._fields == ("image", "label") and sample.label == 1 and sample.image.shape == (8, 8, 1)
    assert (sample.image == 70).all() and (data[-1].image == 110).all()
    assert "12 samples" in repr(data)


def test_samples_outside_are_index_errors_so_that_iteration_ends(pictures):
    data = stoker.open(pictures)
    for index in (12, -13):
        with pytest.raises(IndexError):
            data[index]
    assert [sample.label for sample in data] == [0] * 6 + [1] * 6


def test_no_classes_are_none(hundred):
    numpy = pytest.importorskip("numpy")
    assert stoker.from_arrays(numpy.zeros((3, 2))).classes is None
    assert hundred.classes == [str(index) for index in range(10)]


def first(data):
    return [int(sample.row[0]) for sample in data]


def test_select_takes_numbers_masks_and_slices(hundred):
    numpy = pytest.importorskip("numpy")
    assert first(hundred.select([5, 3, 5])) == [5, 3, 5]
    assert first(hundred.select(numpy.array([9, 0], dtype=numpy.int32))) == [9, 0]
    assert first(hundred.select(numpy.arange(100) % 40 == 1)) == [1, 41, 81]
    assert first(hundred[95:]) == [95, 96, 97, 98, 99] and first(hundred[4::-2]) == [4, 2, 0]


@pytest.mark.parametrize("wrong", [[100], [-1], [1.5], [], ["a"], None])
def test_ids_that_do_not_exist_are_refused(hundred, wrong):
    with pytest.raises((ValueError, TypeError)):
        hundred.select(wrong)


def test_masks_of_another_length_and_arrays_of_negative_ids_are_refused(hundred):
    numpy = pytest.importorskip("numpy")
    for wrong in (numpy.ones(3, dtype=bool), numpy.array([-1]), numpy.array([1.5]), numpy.array([[1]])):
        with pytest.raises(stoker.OptionError):
            hundred.select(wrong)


def test_a_split_holds_every_sample_once(hundred):
    train, test = hundred.split(0.9, seed=3)
    assert (len(train), len(test)) == (90, 10)
    assert sorted(first(train) + first(test)) == list(range(100))
    assert first(test) != first(hundred.split(0.9, seed=4)[1])
    _, strata = hundred.split(0.8, stratified=True)
    assert sorted(sample.label for sample in strata) == sorted(list(range(10)) * 2)
    with pytest.raises(stoker.OptionError, match="share"):
        hundred.split(1.0)


def test_concat_and_repeat(hundred):
    assert first(hundred[:2] + hundred[7:9]) == [0, 1, 7, 8]
    assert first(stoker.concat(hundred[:1], hundred[:1], hundred[3:4])) == [0, 0, 3]
    assert first(hundred[:2] + hundred[:2]) == [0, 1, 0, 1]
    with pytest.raises(stoker.OptionError):
        stoker.concat()
    with pytest.raises(ValueError):
        stoker.concat(hundred, stoker.open("synth:digits?count=3"))
    with pytest.raises(TypeError):
        hundred + 3


def test_balanced_draws_all_classes_equally_often_if_shuffled(loader):
    numpy = pytest.importorskip("numpy")
    data = stoker.from_arrays(row=numpy.arange(100)[:, None], label=numpy.arange(100) // 99).balanced()
    ids = [int(id) for batch in loader(data, shuffle=True, batch_size=10) for id in batch.ids]
    assert 30 <= ids.count(99) <= 70
    assert first(data)[:3] == [0, 1, 2]
    with pytest.raises(ValueError):
        stoker.from_arrays(numpy.zeros((3, 2), "float32")).balanced()


def test_a_data_set_cannot_be_pickled(hundred):
    with pytest.raises(TypeError, match="other process"):
        pickle.dumps(hundred)


def test_a_split_of_the_format_by_name():
    assert len(stoker.open("synth:digits?count=50", split="test")) == 50
    with pytest.raises(ValueError):
        stoker.open("synth:digits", split="nope")
