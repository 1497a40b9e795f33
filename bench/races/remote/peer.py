"""peer.py - a loader that reads the samples of all objects once, for race.py.

usage: peer.py SIDE FOLDER URL CONNECTIONS WORKERS check|run
       peer.py prepare FOLDER            the samples of FOLDER/bucket/tar as MDS and LitData objects, too

URL is the bucket over HTTP. The same server answers for S3: it does not look at signatures. Prints a line of JSON: bytes, seconds from making the
loader to its last batch, processor seconds before that, with "check" the sum of the CRC-32 of all samples, and the library's version.
"""
import asyncio
import io
import json
import os
import resource
import shutil
import sys
import tarfile
import tempfile
import time
import zlib
from importlib.metadata import version

BATCH = 32


def tars(folder):
    return sorted(os.listdir(os.path.join(folder, "bucket", "tar")))


def samples_of(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            yield tar.extractfile(member).read()


def tensor(data):
    import torch
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def batches_of(dataset, workers):
    import torch
    return torch.utils.data.DataLoader(dataset, batch_size=BATCH, num_workers=workers)


def stoker(folder, url, connections, workers, shuffle=True):
    """Batches of NumPy arrays. The workers share the connections."""
    import stoker
    count = len(tars(folder))
    loader = stoker.DataLoader(f"tar:{url}/tar/{{000..{count - 1:03}}}.tar?fields=bin", batch_size=BATCH, shuffle=shuffle, output="numpy",
                               cache="none", num_workers=workers, last="short", fields={"bin": stoker.FieldOptions(pad="max")},
                               options={"read_depth": max(1, connections // workers)})
    for batch in loader:
        yield batch[0].values


def stoker_order(folder, url, connections, workers):
    return stoker(folder, url, connections, workers, shuffle=False)


def stoker_s3(folder, url, connections, workers):
    return stoker(folder, "s3://bucket", connections, workers)


def webdataset(folder, url, connections, workers):
    """A curl per worker."""
    import webdataset
    data = webdataset.WebDataset(f"pipe:curl -s {url}/tar/{{000..{len(tars(folder)) - 1:03}}}.tar", shardshuffle=False, empty_check=False)
    return batches_of(data.map(lambda sample: tensor(sample["bin"])), workers)


class Untarred:
    """The samples of s3torchconnector's objects."""

    def __call__(self, reader):
        return [tensor(sample) for sample in samples_of(reader.read())]


def s3torchconnector(folder, url, connections, workers):
    import torch
    from s3torchconnector import S3ClientConfig, S3IterableDataset
    data = S3IterableDataset.from_objects([f"s3://bucket/tar/{name}" for name in tars(folder)], region="us-east-1",
                                          endpoint=url.rpartition("/")[0], transform=Untarred(), enable_sharding=True,
                                          s3client_config=S3ClientConfig(force_path_style=True))
    return torch.utils.data.DataLoader(data, batch_size=None, num_workers=workers, collate_fn=torch.stack)


def obstore(folder, url, connections, workers):
    """Whole objects in this process, as many at once as there are connections."""
    import obstore.store
    store = obstore.store.HTTPStore.from_url(url, client_options={"allow_http": True})

    async def all_objects():
        room, found = asyncio.Semaphore(connections), []

        async def one(name):
            async with room:
                answer = await store.get_async("tar/" + name)
                found.append([memoryview(sample) for sample in samples_of(bytes(await answer.bytes_async()))])

        await asyncio.gather(*map(one, tars(folder)))
        return found

    yield from asyncio.run(all_objects())


def mosaic(folder, url, connections, workers):
    from streaming import StreamingDataset
    os.environ["S3_ENDPOINT_URL"] = url.rpartition("/")[0]
    local = tempfile.mkdtemp()
    try:
        data = StreamingDataset(remote="s3://bucket/mds", local=local, batch_size=BATCH, shuffle=False, predownload=8 * BATCH)
        for batch in batches_of(data, workers):
            yield batch["bin"]
    finally:
        shutil.rmtree(local, ignore_errors=True)


def litdata(folder, url, connections, workers):
    from litdata import StreamingDataLoader, StreamingDataset
    from litdata.streaming import downloader
    downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True  # else it refuses a server without TLS
    local = tempfile.mkdtemp()
    try:
        data = StreamingDataset("s3://bucket/litdata", cache_dir=local, storage_options={
            "endpoint_url": url.rpartition("/")[0], "aws_access_key_id": "id", "aws_secret_access_key": "secret", "region_name": "us-east-1"})
        yield from StreamingDataLoader(data, batch_size=BATCH, num_workers=workers)
    finally:
        shutil.rmtree(local, ignore_errors=True)


PACKAGES = {"stoker": "", "stoker_order": "", "stoker_s3": "", "webdataset": "webdataset", "s3torchconnector": "s3torchconnector", "obstore": "obstore",
            "mosaic": "mosaicml-streaming", "litdata": "litdata"}


def all_samples(folder):
    for name in tars(folder):
        with open(os.path.join(folder, "bucket", "tar", name), "rb") as file:
            yield from samples_of(file.read())


def tensor_of(index):
    return tensor(KEPT[index])


def prepare(folder):
    """Objects of about the size of a tar file."""
    import numpy
    from litdata import optimize
    from streaming import MDSWriter
    object_bytes = os.path.getsize(os.path.join(folder, "bucket", "tar", "000.tar"))
    columns = {"bin": f"ndarray:uint8:{len(next(all_samples(folder)))}"}
    with MDSWriter(out=os.path.join(folder, "bucket", "mds"), columns=columns, size_limit=object_bytes) as writer:
        for sample in all_samples(folder):
            writer.write({"bin": numpy.frombuffer(sample, numpy.uint8)})
    global KEPT  # for processes that litdata forks
    KEPT = list(all_samples(folder))
    optimize(fn=tensor_of, inputs=list(range(len(KEPT))), output_dir=os.path.join(folder, "bucket", "litdata"), chunk_bytes=object_bytes,
             num_workers=1, start_method="fork")


def processor_seconds():
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def main():
    if sys.argv[1] == "prepare":
        prepare(sys.argv[2])
        return
    side, folder, url, connections, workers, mode = sys.argv[1:7]
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    package = PACKAGES[side]
    batches = globals()[side](folder, url, int(connections), int(workers))
    __import__(package.replace("mosaicml-", "") or "stoker")
    before, begin, count, total = processor_seconds(), time.perf_counter(), 0, 0
    for batch in batches:
        for sample in batch if mode == "check" else ():
            total += zlib.crc32(memoryview(sample if isinstance(sample, memoryview) else sample.numpy() if hasattr(sample, "numpy") else sample))
        count += sum(map(len, batch)) if isinstance(batch, list) else batch.nbytes
    found = {"bytes": count, "seconds": time.perf_counter() - begin, "cpu_before": before, "sum": total,
             "version": f"{package} {version(package)}" if package else "stoker"}
    print(json.dumps(found), file=answer, flush=True)


if __name__ == "__main__":
    main()
