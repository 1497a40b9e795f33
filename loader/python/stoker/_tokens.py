"""Tokens: windows of token files, their documents, and rows packed from documents."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from ._datasets import Dataset, Storage, concat, dataset_of, open
from ._errors import OptionError, refusing
from ._options import dtype_name

Path = Union[str, "os.PathLike[str]"]


def tokens(
    files: Union[Path, Sequence[Path]],
    length: int = 1024,
    *,
    stride: Optional[int] = None,
    fields: Sequence[str] = ("tokens",),
    dtype: Any = None,
    stored: Any = None,
    layout: str = "auto",
    eos: Optional[int] = None,
    bos: Optional[int] = None,
    documents_max: Optional[int] = None,
    multiple: int = 1,
    test: Union[int, float, None] = None,
    split: Optional[str] = None,
    map: bool = False,
    max_bytes: Optional[int] = None,
    storage: Optional[Storage] = None,
) -> Dataset:
    """Windows of consecutive tokens of files: llm.c and modded-nanogpt `.bin`, Megatron `.idx` and `.bin`, `.npy`, and raw ones
    (nanoGPT). Opening reads a header of each file, whatever its size.

        tokens("fineweb_train_*.bin", length=1024, fields=("inputs", "targets"), dtype="int64")
        tokens("train.bin", stored="uint16", length=256, stride=1, fields=("inputs", "targets"), dtype="int64")     nanoGPT's

    files          a path with braces and wildcards, "corpus_{000..099}.idx" or "train_*.bin", whose files are sorted byte by byte;
                   or several such paths, whose windows come one after the other
    length         tokens of a window, 1..2^26; one more is read if there are targets
    stride         tokens from one window of a file to the next; default `length`. Less: windows overlap
    fields         of: "tokens" or "inputs" [length], "targets" [length]: one token further on; "positions" [length] int32: 0, 1, ...
                   from each document's first token; "documents" [length] int32: the document's number in the window;
                   "document_ids" [length] int64: in all files; "cu_seqlens" int32, varying: where documents begin, and `length`;
                   "max_seqlen" int32: the longest part of a document in the window
    dtype          of tokens, inputs and targets: "int32", "int64" (or torch.int64, ...); default: as stored. uint16 becomes either;
                   uint32 becomes int32 as long as the values fit
    stored         element type of raw files, which have no header: "uint16", "uint32"
    layout         what the files are, whatever they look like: "llmc", "raw", "megatron", "npy"; default "auto"
    eos, bos       the token that ends a document, the one that begins it; for fields of documents. Megatron's index knows better
    documents_max  documents that a window may have a part of, for "cu_seqlens"; one with more is a bad sample. Default `length`
    multiple       windows of each file are rounded down to a multiple of this; default 1
    test           the last tokens of all files are for testing: a share below 1, or a number of tokens
    split          "train" (default) or "test", with `test`
    map            take tokens from mapped files: faster if they are in the page cache, but a file that gets shorter then ends the
                   process. Default False
    max_bytes      for the index of documents, which "document_ids" needs; None: 16 GiB
    storage        what the names are in, as for open(); None: local files

    Orders. DataLoader(..., shuffle=True) gives every window once an epoch, in a new order. DataLoader(..., order="uniform") draws
    windows with replacement: with stride=1 those of nanoGPT. llm.c's: shuffle=False, deal="batches", and here multiple =
    ranks x batch_size: batch b of rank r has the tokens of llm.c's step b on rank r.

    Raises MissingFile, FormatError (a header that lies, a file without a header and without `stored`), OptionError.
    """
    if isinstance(fields, str):
        fields = [field.strip() for field in fields.split(",")]
    parameters = {
        "length": length, "stride": stride, "fields": ",".join(fields), "dtype": _type(dtype), "stored": _type(stored),
        "layout": layout, "eos": eos, "bos": bos, "documents_max": documents_max, "multiple": multiple,
        "test": _share(test), "map": int(map),
    }  # fmt: skip
    paths = _paths(files)
    if len(paths) > 1 and (test is not None or "document_ids" in fields):
        what = "test" if test is not None else "document_ids"
        raise OptionError(f"tokens: {what} is about all files: give them as one path with braces or wildcards, not as {len(paths)}")
    return _joined(paths, lambda path: open(_spec("tokens", path, parameters), split, max_bytes, storage))


def documents(
    files: Union[Path, Sequence[Path]],
    *,
    eos: Optional[int] = None,
    bos: Optional[int] = None,
    stored: Any = None,
    layout: str = "auto",
    max_bytes: Optional[int] = None,
    storage: Optional[Storage] = None,
) -> Dataset:
    """The documents of token files, one per sample: the field "tokens", as stored, of varying length. For pack(), or for batches by
    length: DataLoader(..., batch_values_max=32768).

    files, stored, layout   as for tokens()
    eos, bos                the token that ends a document, or the one that begins it; Megatron's files need neither
    max_bytes               for the index of documents, 8 bytes each; None: 16 GiB
    storage                 what the names are in, as for open(); None: local files

    Opening reads every token once, but for Megatron's files, whose `.idx` knows the documents. Raises as tokens().
    """
    parameters = {"eos": eos, "bos": bos, "stored": _type(stored), "layout": layout}
    return _joined(_paths(files), lambda path: open(_spec("documents", path, parameters), None, max_bytes, storage))


def pack(
    dataset: Union[Dataset, Path],
    length: int,
    *,
    block: Optional[int] = 65536,
    long: str = "refuse",
    fields: Sequence[str] = ("tokens", "cu_seqlens"),
    dtype: Any = None,
    padding: int = 0,
    ignored: int = -100,
    field: Optional[str] = None,
) -> Dataset:
    """Rows of `length` tokens, packed from whole documents: the samples of a data set with a field of integers that varies in length.

        pack(documents("fineweb_*.bin", eos=50256), length=2048, long="split")
        pack(from_arrays(tokens=Ragged(values, offsets)), 2048, fields=("inputs", "targets", "positions"), dtype="int64")

    dataset   documents(), from_arrays() of a Ragged, a tar file's text, ...; or a name as for open()
    length    tokens of a row, 1..2^23
    block     documents per block, whose rows hold documents of that block only; default 65536. None: all in one, which wastes least
    long      documents longer than a row: "refuse" (default): OptionError that names one; "split": pieces of `length` and a rest;
              "crop": what exceeds a row is lost
    fields    of: "tokens" or "inputs" [length]: the documents, one after the other, then padding; "targets" [length]: the next
              token of the same document; "positions" [length] int32: 0, 1, ... in each document, 0 in padding; "documents" [length]
              int32: the document's number in the row, -1 in padding; "cu_seqlens" int32, varying: where each document begins, and
              where padding does; "max_seqlen" int32: the longest document of the row
    dtype     of tokens, inputs and targets: "int32" or "int64"; default: as stored. Targets need a signed type
    padding   token behind the last document; default 0
    ignored   target of a document's last token and of padding; default -100, which PyTorch's cross_entropy ignores
    field     the field to pack; default "tokens" if there is one, else the first

    Documents are placed by best-fit decreasing: the same rows on every machine and in every epoch; shuffle=True permutes the rows.
    No document is cut or dropped unless `long` says so; empty ones are left out. `description` reports the share of padding.
    Opening asks for all lengths, and takes 4 to 8 bytes a document and 8 a row. To read each row in one piece, store them:
    python -m stoker pack 'packed:2048:(SPEC)' shards:DIR.
    """
    if isinstance(fields, str):
        fields = [name.strip() for name in fields.split(",")]
    source = dataset_of(dataset)
    with refusing:
        core = source._core.pack(length, 0 if block is None else block, long, tuple(fields), _type(dtype), padding, ignored, field)
    return Dataset(core)


def _paths(files: Union[Path, Sequence[Path]]) -> List[str]:
    paths = [os.fspath(files)] if isinstance(files, (str, os.PathLike)) else [os.fspath(path) for path in files]
    if not paths:
        raise OptionError("tokens: no file is given")
    return paths


def _joined(paths: Sequence[str], open_one: Callable[[str], Dataset]) -> Dataset:
    sets = [open_one(path) for path in paths]
    return sets[0] if len(sets) == 1 else concat(*sets)


def _spec(format: str, path: str, parameters: Dict[str, Any]) -> str:
    """A name of stoker.open(). The path may have a "?": the last one begins the parameters."""
    given = {name: value for name, value in parameters.items() if value is not None}
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, (int, str)) or set("&?") & set(str(value)):
            raise OptionError(f"{format}: {name} is {value!r}: a number or a word is expected")
    return f"{format}:{path}?" + "&".join(f"{name}={value}" for name, value in given.items())


def _type(dtype: Any) -> Optional[str]:
    return None if dtype is None else dtype_name(dtype)


def _share(test: Union[int, float, None]) -> Union[int, str, None]:
    """A share as the format reads it: up to nine digits behind the point."""
    if test is None or not isinstance(test, float):
        return test
    if not 0.0 < test < 1.0:
        raise OptionError(f"tokens: test is {test}: a share above 0 and below 1, or a number of tokens, is expected")
    return f"{test:.9f}"
