"""The example scripts run, and learn what they are meant to learn. Those whose packages are missing are skipped."""
import importlib.util
import io
import os
import subprocess
import sys
import tarfile

import pytest
from conftest import png

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "examples")
SERVERS = os.path.join(HERE, "..", "..", "..", "tests", "support", "servers", "servers.py")


def run(name, *arguments, needs=()):
    """What main() of an example returns. In this process: importing torch for each one would take most of the time."""
    for package in needs:
        pytest.importorskip(package)
    spec = importlib.util.spec_from_file_location(f"example_{name}", os.path.join(EXAMPLES, f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main(list(arguments))


def test_tabular_finds_the_law_behind_the_table():
    assert run("tabular", needs=["numpy"]) < 0.2  # the noise has a deviation of 0.1


def test_object_storage_reads_a_hundred_tar_files_from_s3(tmp_path, monkeypatch):
    if not os.path.exists(SERVERS):
        pytest.skip("not in Stoker's tree: no server")
    spec = importlib.util.spec_from_file_location("servers", SERVERS)
    servers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(servers)
    (tmp_path / "bucket").mkdir()
    for number in range(100):  # two images each, of one level
        with tarfile.open(tmp_path / "bucket" / f"{number:03}.tar", "w") as tar:
            for name, data in ((f"{number}a.png", png(8, 8, number)), (f"{number}a.cls", b"1"), (f"{number}b.png", png(8, 8, 2 * number)),
                               (f"{number}b.cls", b"%d" % (number % 5))):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    try:
        with servers.Rclone(str(tmp_path)) as store:
            for name, value in store.environment.items():
                monkeypatch.setenv(name, value)
            seen, mean = run("object_storage", "tar:s3://bucket/{000..099}.tar", needs=["numpy"])
    except servers.Missing as why:
        pytest.skip(str(why))
    assert seen == {0: 20, 1: 120, 2: 20, 3: 20, 4: 20} and mean == 3 * 99 / 4


def test_jax_learns_digits():
    assert run("jax_digits", "--epochs", "2", needs=["jax"]) > 0.85


@pytest.mark.parametrize("loader", ["stoker", "torch"])
def test_mnist_learns_digits(loader):
    assert run("mnist", "synth:digits?count=2000", "--loader", loader, "--epochs", "1", needs=["torch"]) > 0.5


def test_image_classification_continues_from_its_checkpoint(tmp_path, capsys):
    arguments = ["synth:pictures?count=400&size=48", "--size", "32", "--checkpoint", str(tmp_path / "run.pt")]
    run("image_classification", *arguments, "--epochs", "1", needs=["torch"])
    assert "epoch 1:" in capsys.readouterr().out
    run("image_classification", *arguments, "--epochs", "2")
    printed = capsys.readouterr().out
    assert "epoch 1:" in printed and "epoch 2:" in printed  # epoch 1 was left after its tenth batch


def test_segmentation_finds_the_discs():
    assert run("segmentation", "--epochs", "2", "--count", "200", needs=["torch", "numpy"]) > 0.95


def test_tokens_learns_what_follows():
    assert run("tokens", needs=["torch", "numpy"]) < 1.2  # nats; guessing has 4.2


def test_nanogpts_batches_are_drawn_as_nanogpt_draws_them():
    """In train.bin token i is i: windows of 256, targets one later, offsets below len(data) - block_size, all alike."""
    batches = run("nanogpt_batches", "--batches", "100", needs=["torch", "numpy"])
    offsets = [int(x[0]) for batch in batches for x in batch.inputs]
    for x, y in batches:
        assert x.shape == y.shape == (12, 256) and str(x.dtype) == "torch.int64"
        assert (x - x[:, :1] == x.new_tensor(range(256))).all() and (y == x + 1).all()
    assert len(offsets) == 2400 and 0 <= min(offsets) and max(offsets) < 20000 - 256
    assert len(set(offsets)) < 2400  # with replacement
    tenths = [sum(offset * 10 // (20000 - 256) == tenth for offset in offsets) for tenth in range(10)]
    assert all(180 < tenth < 300 for tenth in tenths)  # 240 each, within four deviations


def test_accelerate_learns_digits():
    assert run("accelerate_digits", needs=["torch", "accelerate"]) > 0.8


def test_lightning_learns_digits():
    if not (importlib.util.find_spec("lightning") or importlib.util.find_spec("pytorch_lightning")):
        pytest.skip("neither lightning nor pytorch_lightning is installed")
    assert run("lightning_digits", needs=["torch"]) > 0.8


def test_two_ranks_share_every_epoch():
    pytest.importorskip("torch")
    ran = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         os.path.join(EXAMPLES, "torchrun_ddp.py"), "synth:digits?count=1000"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=240)
    assert ran.returncode == 0, ran.stdout[-2000:]
    for epoch in (1, 2):
        assert f"epoch {epoch}:" in ran.stdout
    assert ran.stdout.count("1000 samples, 1000 different, by 2 ranks") == 2, ran.stdout[-2000:]
