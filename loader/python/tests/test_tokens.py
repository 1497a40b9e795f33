"""tokens(), documents() and pack(), against what NumPy makes of the same files."""

import os
import re
import struct

import pytest

import stoker
from conftest import ids_of

numpy = pytest.importorskip("numpy")

EOS = 0


def write_raw(path, tokens):
    numpy.asarray(tokens, dtype=numpy.uint16).tofile(path)


def write_llmc(path, tokens):
    """A shard as llm.c's data scripts write it: 256 int32, of which three are set, and uint16."""
    header = numpy.zeros(256, dtype=numpy.int32)
    header[:3] = 20240520, 1, len(tokens)
    path.write_bytes(header.tobytes() + numpy.asarray(tokens, dtype=numpy.uint16).tobytes())


def write_megatron(prefix, tokens):
    """One document of uint16 tokens, by the layout of Megatron's indexed_dataset.py."""
    write_raw(f"{prefix}.bin", tokens)
    header = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1, 2)
    with open(f"{prefix}.idx", "wb") as file:
        file.write(header + struct.pack("<iqqq", len(tokens), 0, 0, 1))


@pytest.fixture
def stream():
    """1,000 tokens 1 .. 50,000, with a 0 at the end of each document."""
    draw = numpy.random.default_rng(5)
    tokens = draw.integers(1, 50000, 1000)
    tokens[draw.choice(999, 60, replace=False)] = EOS
    tokens[-1] = EOS
    return tokens


@pytest.fixture
def raw(tmp_path, stream):
    write_raw(tmp_path / "train.bin", stream)
    return tmp_path / "train.bin"


def test_windows_are_slices_of_the_stream(raw, stream):
    data = stoker.tokens(raw, length=64, stride=48, stored="uint16", fields=("inputs", "targets"), dtype="int64")
    assert len(data) == (1000 - 65) // 48 + 1
    assert data.fields["inputs"] == stoker.Field("int64", (64,)) == data.fields["targets"]
    for index, sample in enumerate(data):
        at = 48 * index
        assert (sample.inputs == stream[at : at + 64]).all() and (sample.targets == stream[at + 1 : at + 65]).all()


def test_defaults_are_consecutive_windows_as_stored(raw, stream):
    data = stoker.tokens(str(raw), 100, stored=numpy.uint16)
    assert list(data.fields.values()) == [stoker.Field("uint16", (100,))] and len(data) == 10
    assert (numpy.concatenate([sample.tokens for sample in data]) == stream).all()


def test_fields_of_documents(raw, stream):
    data = stoker.tokens(raw, 128, stored="uint16", eos=EOS, fields="tokens,positions,documents,cu_seqlens,max_seqlen", dtype="int32")
    for index, sample in enumerate(data):
        window = stream[128 * index : 128 * index + 128]
        begins = [0] + [at + 1 for at in range(127) if window[at] == EOS]
        ends = begins[1:] + [128]
        assert sample.tokens.tolist() == window.tolist()
        assert sample.cu_seqlens.tolist() == begins + [128]
        assert sample.positions.tolist() == [at for begin, end in zip(begins, ends) for at in range(end - begin)]
        assert sample.documents.tolist() == [number for number, (begin, end) in enumerate(zip(begins, ends)) for _ in range(end - begin)]
        assert sample.max_seqlen == max(end - begin for begin, end in zip(begins, ends))


def test_files_by_wildcard_or_in_a_list(tmp_path, stream):
    for number in range(3):
        write_llmc(tmp_path / f"part_{number}.bin", stream[300 * number : 300 * number + 300])
    every = stoker.tokens(tmp_path / "part_*.bin", length=32)
    listed = stoker.tokens([tmp_path / f"part_{number}.bin" for number in range(3)], length=32)
    assert len(every) == len(listed) == 3 * (300 // 32)
    assert all((a.tokens == b.tokens).all() for a, b in zip(every, listed))
    assert (listed[9].tokens == stream[300:332]).all()


def test_the_last_tokens_are_for_testing(raw, stream):
    options = dict(length=10, stored="uint16")
    for test in (0.25, 250):
        train, test_side = (stoker.tokens(raw, test=test, split=split, **options) for split in ("train", "test"))
        assert (len(train), len(test_side)) == (75, 25) and (test_side[0].tokens == stream[750:760]).all()


def test_llmc_order_on_two_ranks(tmp_path, stream, loader):
    """Batch b of rank r: llm.c reads B x T + 1 tokens at (b x ranks + r) x B x T of each shard, shard after shard."""
    B, T, ranks = 4, 8, 2
    shards = [stream[:500], stream[500:]]
    for number, shard in enumerate(shards):
        write_llmc(tmp_path / f"shard_{number}.bin", shard)
    data = stoker.tokens(tmp_path / "shard_*.bin", T, fields=("inputs", "targets"), dtype="int32", multiple=ranks * B)
    for rank in range(ranks):
        batches = list(loader(data, batch_size=B, deal="batches", rank=rank, world_size=ranks))
        steps = [(shard, b) for shard in shards for b in range((len(shard) - 1) // (ranks * B * T))]
        assert len(batches) == len(steps)
        for (shard, b), batch in zip(steps, batches):
            at = (b * ranks + rank) * B * T
            assert batch.inputs.tolist() == shard[at : at + B * T].reshape(B, T).tolist()
            assert batch.targets.tolist() == shard[at + 1 : at + B * T + 1].reshape(B, T).tolist()


def test_uniform_order_draws_nanogpts_offsets_and_resumes(raw, stream, loader):
    data = stoker.tokens(raw, 16, stride=1, stored="uint16", fields=("inputs", "targets"), dtype="int64")
    assert len(data) == 1000 - 16  # randint(len(data) - block_size)
    make = lambda: loader(data, batch_size=12, order="uniform", length=600, seed=1)  # noqa: E731
    whole, first, second = make(), make(), make()
    epochs = [ids_of(whole), ids_of(whole)]
    assert len(epochs[0]) == 600 and len(set(epochs[0])) < 600  # with replacement
    assert epochs[0] != epochs[1] and min(epochs[0]) < 20 and max(epochs[0]) > 964
    batches = iter(first)
    before = [next(batches) for _ in range(20)]
    for batch in before:
        for id, row, targets in zip(batch.ids.tolist(), batch.inputs, batch.targets):
            assert (row == stream[id : id + 16]).all() and (targets == stream[id + 1 : id + 17]).all()
    second.load_state_dict(first.state_dict())
    assert ids_of(before) + ids_of(second) == epochs[0] and ids_of(second) == epochs[1]


@pytest.mark.parametrize("options, says", [
    (dict(), "stored"), (dict(stored="uint16", length=0), "length"), (dict(stored="float32"), "integers"),
    (dict(stored="uint16", fields=("words",)), "words"), (dict(stored="uint16", test=1.5), "test"),
    (dict(stored="uint16", eos="a&b"), "eos"), (dict(stored="uint16", split="test"), "test="),
    (dict(stored="uint16", dtype="int8"), "int8"),
])  # fmt: skip
def test_wrong_options_are_refused(raw, options, says):
    with pytest.raises(ValueError, match=says) as caught:
        stoker.tokens(raw, **{"length": 8, **options})
    assert isinstance(caught.value, stoker.StokerError)


def test_wrong_files_are_refused(tmp_path, raw):
    with pytest.raises(stoker.MissingFile):
        stoker.tokens(tmp_path / "none.bin", stored="uint16")
    with pytest.raises(stoker.OptionError):
        stoker.tokens([])
    with pytest.raises(stoker.OptionError, match="about all files"):
        stoker.tokens([raw, raw], stored="uint16", test=10)


def test_example_of_the_readme(tmp_path, monkeypatch):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "README.md")
    with open(path, encoding="utf-8") as file:
        code = re.search(r"## Tokens, mixes and packing\n\n```python\n(.*?)```", file.read(), re.DOTALL).group(1)
    monkeypatch.chdir(tmp_path)
    many = numpy.arange(40000) % 50000
    write_llmc(tmp_path / "fineweb_train_000.bin", many)
    write_megatron("books", many[:20000] + 1)
    write_llmc(tmp_path / "code_0.bin", numpy.where(many % 700 == 699, 50256, many))
    made = {"stoker": stoker}
    exec(code.replace("batch_size=8,", 'batch_size=8, output="numpy",'), made)
    assert (made["books"][1].inputs == many[2048:4096] + 1).all() and len(made["books"]) == 9
    with made["train"] as train:
        batches = [batch for batch, _ in zip(train, range(10))]
        sources = [made["mixed"].source_of(id).source for batch in batches for id in batch.ids]
    assert (sources.count(0), sources.count(1)) == (56, 24) == made["mixed"].counts(80)
    assert len(train) == 125000 and sum(made["mixed"].counts(1000000)) == 1000000
    assert list(made["code"].fields) == ["inputs", "targets", "positions", "cu_seqlens"] and len(made["code"]) >= 40000 // 2048


# ---- documents and rows packed from them ----



def split_at_eos(stream):
    ends = (numpy.flatnonzero(stream == EOS) + 1).tolist()
    return [stream[begin:end].tolist() for begin, end in zip([0] + ends[:-1], ends)]


def test_documents_are_cut_behind_eos(raw, stream):
    data = stoker.documents(raw, eos=EOS, stored="uint16")
    assert [sample.tokens.tolist() for sample in data] == split_at_eos(stream)


@pytest.mark.parametrize("options", [dict(), dict(block=16), dict(block=None)])
def test_packed_rows_hold_every_document_once(raw, stream, loader, options):
    expected = split_at_eos(stream)
    rows = stoker.pack(stoker.documents(raw, eos=EOS, stored="uint16"), 128, fields=("tokens", "positions", "documents", "cu_seqlens"),
                       padding=7, **options)  # fmt: skip
    assert max(map(len, expected)) <= 128 and "padding" in rows.description
    found = []
    for batch in loader(rows, batch_size=3, shuffle=True):
        ends = batch.cu_seqlens.offsets.tolist()
        for row in range(len(batch.tokens)):
            begins = batch.cu_seqlens.values[ends[row] : ends[row + 1]].tolist()
            used = begins[-1]
            found += [batch.tokens[row, begin:end].tolist() for begin, end in zip(begins, begins[1:])]
            lengths = [end - begin for begin, end in zip(begins, begins[1:])]
            assert batch.positions[row].tolist() == [at for length in lengths for at in range(length)] + [0] * (128 - used)
            assert batch.documents[row].tolist() == [i for i, n in enumerate(lengths) for _ in range(n)] + [-1] * (128 - used)
            assert (batch.tokens[row, used:] == 7).all()
    assert sorted(found) == sorted(expected)


def test_all_documents_may_be_one_block():
    """65,536 documents that leave one token of a row free, and 400 that would fit there."""
    offsets = numpy.concatenate([numpy.arange(65537) * 3, 65536 * 3 + 1 + numpy.arange(400)])
    data = stoker.from_arrays(tokens=stoker.Ragged(numpy.ones(offsets[-1], dtype=numpy.uint8), offsets))
    assert [len(stoker.pack(data, 4, **options)) for options in (dict(), dict(block=65536), dict(block=None))] == [65636, 65636, 65536]


def test_targets_stay_in_their_document(loader):
    values = numpy.arange(1, 19, dtype=numpy.int32)
    data = stoker.from_arrays(tokens=stoker.Ragged(values, numpy.array([0, 5, 9, 18])))
    rows = stoker.pack(data, 9, fields=("inputs", "targets"), dtype="int64", ignored=-1)
    assert sorted((sample.inputs.tolist(), sample.targets.tolist()) for sample in rows) == [
        ([1, 2, 3, 4, 5, 6, 7, 8, 9], [2, 3, 4, 5, -1, 7, 8, 9, -1]),
        ([10, 11, 12, 13, 14, 15, 16, 17, 18], [11, 12, 13, 14, 15, 16, 17, 18, -1]),
    ]


def test_long_documents_are_refused_split_or_cropped():
    data = stoker.from_arrays(tokens=stoker.Ragged(numpy.arange(10, dtype=numpy.int32), numpy.array([0, 7, 10])))
    with pytest.raises(stoker.OptionError, match="sample 0: .* 7 elements"):
        stoker.pack(data, 4)
    assert sorted(sample.tokens.tolist() for sample in stoker.pack(data, 4, long="split", padding=-1)) == [
        [0, 1, 2, 3], [4, 5, 6, -1], [7, 8, 9, -1]]  # fmt: skip
    assert sorted(sample.tokens.tolist() for sample in stoker.pack(data, 4, long="crop")) == [[0, 1, 2, 3], [7, 8, 9, 0]]


@pytest.mark.parametrize("options", [
    dict(length=0), dict(long="cut"), dict(fields=("words",)), dict(fields=("cu_seqlens",)), dict(dtype="float32"),
    dict(field="text"), dict(padding=2**40), dict(block=-1), dict(padding=2**70),
])  # fmt: skip
def test_wrong_packing_is_refused(options):
    data = stoker.from_arrays(tokens=stoker.Ragged(numpy.arange(10, dtype=numpy.int32), numpy.array([0, 7, 10])))
    with pytest.raises(ValueError):
        stoker.pack(data, **{"length": 16, **options})


# ---- batches by length ----


@pytest.fixture
def ragged():
    """200 rows of 1 to 60 tokens; every token of row i is i."""
    lengths = numpy.random.default_rng(2).integers(1, 61, 200)
    offsets = numpy.concatenate([[0], numpy.cumsum(lengths)])
    return stoker.from_arrays(tokens=stoker.Ragged(numpy.repeat(numpy.arange(200, dtype=numpy.int32), lengths), offsets)), lengths


@pytest.mark.parametrize("pad", [None, "longest", 8])
def test_batches_hold_a_budget_of_tokens(ragged, loader, pad):
    data, lengths = ragged
    fields = {"tokens": stoker.FieldOptions(pad=pad)}
    batches = loader(data, batch_size=64, batch_values_max=512, batch_window=100, shuffle=True, fields=fields)
    with pytest.raises(TypeError):
        len(batches)
    taken = list(batches)
    assert sorted(ids_of(taken)) == list(range(200))
    room = 0
    for batch in taken:
        rows = lengths[batch.ids.astype(int)]
        unit = {None: 0, "longest": 1, 8: 8}[pad]
        values = rows.sum() if not unit else len(rows) * -(-rows.max() // unit) * unit
        assert values <= 512 and (unit == 0 or batch.tokens.values.size == values)
        room += values
    assert (batches.stats().length_values, batches.stats().length_room) == (lengths.sum(), room)
    if pad == "longest":
        assert lengths.sum() / room > 0.85  # rows of about the same length; in any order some 0.55
    assert "? batches" in repr(batches)


def test_batches_by_length_resume_on_other_numbers_of_ranks(ragged, loader):
    """Rank r of w takes batches r, r + w, ...: the sequence of batches is that of one rank."""
    options = dict(batch_size=64, batch_values_max=400, batch_window=64, shuffle=True, seed=4)
    sequence = [sorted(batch.ids.tolist()) for batch in loader(ragged[0], **options)]
    pair = [loader(ragged[0], rank=rank, world_size=2, **options) for rank in range(2)]
    steps = [iter(each) for each in pair]
    found = [sorted(next(steps[index % 2]).ids.tolist()) for index in range(6)]
    states = [each.state_dict() for each in pair]
    assert states[0] == states[1]
    rest = loader(ragged[0], **options)
    rest.load_state_dict(states[0])
    found += [sorted(batch.ids.tolist()) for batch in rest]
    assert found == sequence


def test_behind_the_last_batch_by_length_the_rest_is_empty(ragged, loader):
    options = dict(batch_size=64, batch_values_max=400, shuffle=True)
    first, second = (loader(ragged[0], **options) for _ in range(2))
    epochs = [ids_of(first), ids_of(first)]
    third = loader(ragged[0], **options)
    batches, before = iter(third), []
    while len(before) < 200:
        before += next(batches).ids.tolist()
    second.load_state_dict(third.state_dict())
    assert before == epochs[0] and ids_of(second) == [] and ids_of(second) == epochs[1]
    next(iter(third))  # the epoch before is left
    assert third.state_dict()["epoch"] == 1


def test_an_epoch_by_length_that_is_left_early(ragged, loader):
    options = dict(batch_size=64, batch_values_max=400, shuffle=True)
    left, whole = (loader(ragged[0], **options) for _ in range(2))
    epochs = [ids_of(whole), ids_of(whole)]
    next(iter(left))
    assert ids_of(left) == epochs[1]


def test_wrong_budgets_are_refused(ragged, hundred, loader):
    for data, options in ((ragged[0], dict(batch_values_max=10)), (hundred, dict(batch_values_max=100)),
                          (ragged[0], dict(batch_values_max=512, last="pad")), (ragged[0], dict(batch_values_max=512, batch_window=0)),
                          (hundred, dict(order="random")), (hundred, dict(order="uniform", shuffle=True)), (hundred, dict(length=5))):
        with pytest.raises(stoker.OptionError):
            loader(data, **options)
