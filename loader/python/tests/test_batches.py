"""Batches are named tuples of the data set's fields."""

import pickle

import pytest

from stoker._batches import batch_type, identifiers


def test_a_batch_unpacks_and_has_names(loader):
    batch = next(iter(loader()))
    rows, labels = batch
    assert batch.rows is rows and batch.labels is labels and batch._fields == ("rows", "labels")
    assert batch.ids.tolist() == list(range(10)) and batch.ids is batch.ids
    assert (batch.epoch, batch.batch_index, batch.padded) == (0, 0, 0)


def test_places_count_batches_and_epochs(loader):
    twice = loader(batch_size=40)
    assert [(b.epoch, b.batch_index) for _ in range(2) for b in twice] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


@pytest.mark.parametrize("names, attributes", [
    (["image", "label"], ("images", "labels")), (["row", "lambda"], ("rows", "lambda_")),
    (["seg.png", "seg-png"], ("seg_png", "seg_png_2")), (["3d", "_x", "__"], ("field_3d", "x", "field")),
    (["ids", "count", "epoch"], ("ids_", "count_", "epoch_")), (["label", "labels"], ("labels", "labels_2")),
])  # fmt: skip
def test_names_of_fields_become_identifiers(names, attributes):
    assert identifiers(names) == attributes
    batch_type(names)(*range(len(names)))


def test_code_that_rebuilds_named_tuples_works():
    """As Lightning's apply_to_collection and Accelerate's send_to_device do: type(batch)(*changed)."""
    batch = batch_type(["image", "label"])(1, 2)
    moved = type(batch)(*(value + 1 for value in batch))
    assert moved == (2, 3) and moved.images == 2 and moved._asdict() == {"images": 2, "labels": 3}
    assert moved.ids is None and moved.epoch is None


def test_batches_can_be_pickled():
    batch = batch_type(["image", "label"])(1, 2)
    again = pickle.loads(pickle.dumps(batch))
    assert again == (1, 2) and again.labels == 2 and type(again) is type(batch)
