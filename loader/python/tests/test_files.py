"""from_files(): lists of files, with arrays beside them, as a torch user has them."""

import os

import pytest

import stoker
from conftest import png

numpy = pytest.importorskip("numpy")


@pytest.fixture
def files(tmp_path):
    """Ten samples: an image of level 10 x i, a mask of class i % 3, boxes i, ..., and a text."""
    lists = {name: [] for name in ("images", "masks", "boxes", "captions")}
    for index in range(10):
        made = {
            "images": (".png", png(8, 6, 10 * index)), "masks": (".png", png(8, 6, index % 3)),
            "captions": (".txt", f"picture {index}".encode()), "boxes": (".npy", None),
        }  # fmt: skip
        for name, (suffix, data) in made.items():
            path = tmp_path / f"{name}-{index}{suffix}"
            if data is None:
                numpy.save(path, numpy.full((index % 4, 4), index, dtype=numpy.float32))
            else:
                path.write_bytes(data)
            lists[name].append(path)
    return lists


def test_paths_and_labels_make_images_and_labels(files):
    data = stoker.from_files(files["images"], [index % 2 for index in range(10)], classes=["even", "odd"])
    assert len(data) == 10 and data.classes == ["even", "odd"]
    assert data.fields == {"image": stoker.Field("uint8", (8, 6, 1), "image"), "label": stoker.Field("int64", (), "array", 2)}
    with stoker.DataLoader(data, batch_size=4, shuffle=True, num_workers=1, output="numpy") as loader:
        seen = {}
        for batch in loader:
            seen.update(zip(batch.ids.tolist(), zip(batch.images[:, 0, 0, 0].tolist(), batch.labels.tolist())))
    assert seen == {index: (10 * index, index % 2) for index in range(10)}


def test_any_number_of_columns_by_name(files):
    weights = numpy.linspace(0, 1, 10, dtype=numpy.float32)
    ragged = stoker.Ragged(numpy.arange(20, dtype=numpy.int32), numpy.arange(0, 21, 2))
    data = stoker.from_files(**files, weight=weights, points=ragged, labels=numpy.arange(10))
    assert list(data.fields) == ["image", "masks", "boxes", "captions", "weight", "points", "label"]
    assert [field.kind for field in data.fields.values()] == ["image", "mask", "array", "bytes", "array", "array", "array"]
    sample = data[7]
    assert (sample.image == 70).all() and (sample[1] == 1).all() and sample.captions == b"picture 7" and sample.label == 7
    assert sample.boxes.tolist() == [[7.0] * 4] * 3 and sample.weight == weights[7] and sample.points.tolist() == [14, 15]


@pytest.mark.parametrize("kind", ["str", "bytes", "numpy", "object", "tuple"])
def test_paths_of_every_kind(files, kind):
    texts = [os.fspath(path) for path in files["images"]]
    given = {"str": texts, "bytes": [os.fsencode(text) for text in texts], "numpy": numpy.array(texts),
             "object": numpy.array(texts, dtype=object), "tuple": tuple(files["images"])}[kind]  # fmt: skip
    assert int(stoker.from_files(given)[9].image[0, 0, 0]) == 90


def test_relative_paths_begin_at_the_working_directory_of_the_call(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = stoker.from_files([path.name for path in files["images"]])
    monkeypatch.chdir("/")
    assert int(data[3].image[0, 0, 0]) == 30


def test_a_first_column_of_other_files_has_another_name(files):
    assert list(stoker.from_files(files["boxes"]).fields) == ["row"]
    assert list(stoker.from_files(files["captions"], numpy.arange(10)).fields) == ["data", "label"]


def test_shapes_make_gray_files_rows_of_three_channels(files):
    data = stoker.from_files(images=files["images"], shapes={"images": (0, 0, 3)})
    assert data.fields["image"].shape == (8, 6, 3) and (data[2].image == 20).all()
    data = stoker.from_files(images=files["images"], shapes={"image": (16, 4)})
    with stoker.DataLoader(data, 10, output="numpy", num_workers=0, transform=stoker.Transform(resize=(3, 2))) as loader:
        assert data.fields["image"].shape == (16, 4, 1) and next(iter(loader)).images.shape == (10, 3, 2, 1)


def test_arrays_are_kept_as_long_as_the_data_set(files):
    data = stoker.from_files(files["images"], numpy.arange(10) * 1000)[5:]
    assert [sample.label for sample in data] == [5000, 6000, 7000, 8000, 9000]


def test_a_missing_file_is_named(files, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        stoker.from_files(files["images"][:-1] + [tmp_path / "nothing.png"])
    assert isinstance(caught.value, stoker.MissingFile) and caught.value.path.endswith("nothing.png")
    with pytest.raises(stoker.IsADirectory):
        stoker.from_files(images=[tmp_path])


def test_a_file_that_is_no_image_is_a_bad_sample(files):
    files["images"][4].write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    try:
        data = stoker.from_files(files["images"])
    except stoker.FormatError as error:  # its header was looked at
        assert error.path.endswith("images-4.png")
    else:
        with pytest.raises(stoker.CorruptSample) as caught:
            data[4]
        assert caught.value.path.endswith("images-4.png")


@pytest.mark.parametrize("wrong, says", [
    (lambda files: ([1, 2, 3],), "from_arrays"), (lambda files: ("one.png",), "one path"),
    (lambda files: (files["images"], [1, 2]), "image has 10, label has 2"), (lambda files: ([],), "empty"),
    (lambda files: (files["images"], files["masks"]), "name them"), (lambda files: (files["images"][:2] + [3],), "no path"),
    (lambda files: (files["images"][:2] + files["boxes"],), "kind"), (lambda files: (), "no column"),
    (lambda files: (files["images"], [0] * 10, [0] * 10), "paths, labels"),
])  # fmt: skip
def test_wrong_columns_are_refused(files, wrong, says):
    with pytest.raises(stoker.OptionError, match=says):
        stoker.from_files(*wrong(files))


def test_words_about_columns_that_are_not_there_are_refused(files):
    with pytest.raises(stoker.OptionError, match="shapes names label"):
        stoker.from_files(files["images"], range(10), shapes={"labels": (1, 1)})
    with pytest.raises(stoker.OptionError, match="kinds names image"):
        stoker.from_files(files["images"], kinds={"images": "mask"})
    with pytest.raises(stoker.OptionError, match="height, width"):
        stoker.from_files(files["images"], shapes={"image": (1, 2, 3, 4)})
