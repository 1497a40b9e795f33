"""Batches as torch tensors, and what torch's own tools expect of a loader."""

import io

import pytest

import stoker
from conftest import ids_of

torch = pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture
def tensors(hundred, loader):
    return lambda dataset=hundred, **options: loader(dataset, output="torch", **options)


def test_tensors_have_the_types_shapes_and_values(tensors):
    batch = next(iter(tensors()))
    assert batch.rows.dtype == torch.float32 and batch.labels.dtype == torch.int64 and batch.ids.dtype == torch.int64
    assert torch.equal(batch.rows[:, 0], torch.arange(10.0)) and batch.ids.tolist() == list(range(10))


def test_torch_is_the_default_output(hundred):
    with stoker.DataLoader(hundred, batch_size=2, dtype=torch.float16) as loader:
        assert next(iter(loader)).rows.dtype == torch.float16


def test_bfloat16(tensors):
    rows = next(iter(tensors(dtype="bfloat16"))).rows
    assert rows.dtype == torch.bfloat16 and rows[3].tolist() == [3, 3.5]


def test_tensors_can_be_written_to_and_trained_with(tensors):
    batch = next(iter(tensors()))
    batch.rows.add_(1)
    weight = torch.zeros(2, requires_grad=True)
    (batch.rows @ weight).sum().backward()
    assert weight.grad.tolist() == [55.0, 60.0]


def test_torch_tensors_are_data_sets_without_a_copy():
    rows = torch.arange(6.0).reshape(3, 2)
    data = stoker.from_arrays(rows, torch.tensor([0, 1, 1]))
    rows[1, 0] = 9
    assert data[1].row[0] == 9 and data.classes == ["0", "1"]
    with pytest.raises(stoker.OptionError, match="cpu"):
        stoker.from_arrays(torch.zeros(3, device="meta"))


def test_rows_of_different_lengths_are_nested_tensors(tensors):
    nested = torch.nested.nested_tensor([torch.tensor([1, 2, 3]), torch.tensor([4]), torch.tensor([5, 6])], layout=torch.jagged)
    data = stoker.from_arrays(tokens=nested, labels=torch.arange(3))
    batch = next(iter(tensors(data, batch_size=3)))
    assert batch.tokens.is_nested and batch.tokens.layout == torch.jagged
    assert [row.tolist() for row in batch.tokens.unbind()] == [[1, 2, 3], [4], [5, 6]]
    batch = next(iter(tensors(data, batch_size=3, ragged="offsets")))
    assert batch.tokens.values.tolist() == [1, 2, 3, 4, 5, 6] and batch.tokens.offsets.tolist() == [0, 3, 4, 6]
    batch = next(iter(tensors(data, batch_size=3, fields={"tokens": stoker.FieldOptions(pad="longest")})))
    assert batch.tokens.values.tolist() == [[1, 2, 3], [4, 0, 0], [5, 6, 0]] and batch.tokens.lengths.tolist() == [3, 1, 2]


def test_a_torch_dataset_runs_in_the_threads(tensors):
    class Squares(torch.utils.data.Dataset):
        def __len__(self):
            return 20

        def __getitem__(self, index):
            return torch.tensor([float(index), float(index) ** 2]), index % 3

    batches = list(tensors(Squares(), batch_size=8, num_workers=2))
    assert torch.cat([batch.rows for batch in batches]).tolist() == [[i, i * i] for i in range(20)]
    assert torch.cat([batch.labels for batch in batches]).tolist() == [i % 3 for i in range(20)]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "bool", "uint8"])
def test_samples_of_every_type(tensors, dtype):
    samples = [torch.tensor([0, 1, index % 2]).to(getattr(torch, dtype)) for index in range(4)]
    batch = next(iter(tensors(samples, batch_size=4)))
    assert batch.rows.dtype == samples[0].dtype and torch.equal(batch.rows, torch.stack(samples))


def test_a_state_saved_by_torch_resumes_with_another_world_size(tensors):
    """Two ranks train, stop within an epoch and save; three continue from the file: each sample of the epoch once, and the
    batches that three ranks would have had."""
    options = dict(shuffle=True, seed=5, batch_size=6, last="short")
    ranks = [tensors(rank=rank, world_size=2, **options) for rank in range(2)]
    iterators = [iter(each) for each in ranks]
    before = [id for each in iterators for _ in range(3) for id in ids_of([next(each)])]
    file = io.BytesIO()
    torch.save({"data": ranks[0].state_dict()}, file)
    rest, again = [], []
    for collected in (rest, again):
        for rank in range(3):
            file.seek(0)
            other = tensors(rank=rank, world_size=3, **options)
            other.load_state_dict(torch.load(file, weights_only=True)["data"])
            collected += [ids_of([batch]) for batch in other]
    assert rest == again
    assert sorted(before + [id for batch in rest for id in batch]) == list(range(100))


def test_the_same_world_size_gives_the_same_batches(tensors):
    options = dict(shuffle=True, seed=5, batch_size=6, rank=1, world_size=2)
    whole = [batch.rows for batch in tensors(**options)]
    first = tensors(**options)
    batches = iter(first)
    for _ in range(4):
        next(batches)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second = tensors(**options)
    second.load_state_dict(torch.load(file))
    rest = [batch.rows for batch in second]
    assert len(rest) == len(whole) - 4 and all(torch.equal(a, b) for a, b in zip(rest, whole[4:]))


def test_it_is_stateful_for_torchdata_and_dcp():
    stateful = pytest.importorskip("torchdata.stateful_dataloader.stateful", reason="torchdata is not installed")
    assert isinstance(stoker.DataLoader("synth:digits?count=4"), stateful.Stateful)
    from torch.distributed.checkpoint.stateful import Stateful

    assert isinstance(stoker.DataLoader("synth:digits?count=4"), Stateful)


def test_it_resumes_where_torchdata_would(tensors):
    """The same steps with StatefulDataLoader and here: the same samples, in an order that is not shuffled."""
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed").StatefulDataLoader

    def run(make, ids):
        first, seen = make(), []
        for number, batch in enumerate(first):
            seen += ids(batch)
            if number == 3:
                break
        state, second = first.state_dict(), make()
        second.load_state_dict(state)
        for _ in range(2):  # the rest, and an epoch
            seen += ["epoch"] + [id for batch in second for id in ids(batch)]
        third = make()
        third.load_state_dict(second.state_dict())
        seen += ["ended"] + [id for batch in third for id in ids(batch)]
        fourth = make()
        batches = iter(fourth)
        for _ in range(10):
            next(batches)
        fifth = make()
        fifth.load_state_dict(fourth.state_dict())
        return seen + ["behind the last batch"] + [id for batch in fifth for id in ids(batch)]

    theirs = run(lambda: stateful(list(range(100)), batch_size=10), lambda batch: batch.tolist())
    ours = run(lambda: tensors(), lambda batch: batch.ids.tolist())
    assert ours == theirs


def test_kept_tensors_are_freed_by_other_threads(tensors):
    import threading

    kept = [batch for batch in tensors(batch_size=5, prefetch_factor=2)]
    freeing = threading.Thread(target=kept.clear)
    freeing.start()
    freeing.join()
    assert kept == []


@pytest.mark.parametrize("exchange", [True, False])
def test_views_keep_the_memory_of_their_batch(tensors, exchange):
    """Whether they were made by DLPack's exchange functions, where torch has these, or of capsules."""
    views = [lambda rows: rows, lambda rows: rows[2:], lambda rows: rows.detach().T, lambda rows: rows.numpy()]
    with tensors(prefetch_factor=2) as loader:
        if not exchange:
            loader._output = loader._output._replace(exchange=None)
        kept = [(at, batch.ids, views[at % 4](batch.rows)) for at, batch in enumerate(loader)]
        for _ in range(20):
            for batch in loader:
                batch.rows.fill_(-1)
    assert torch.cat([ids for _, ids, _ in kept]).tolist() == list(range(100))
    for at, ids, view in kept:
        wanted = views[at % 4](ids.float()[:, None] + torch.tensor([0, 0.5]))
        assert torch.equal(torch.as_tensor(view), torch.as_tensor(wanted))
