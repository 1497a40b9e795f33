"""Hugging Face Accelerate takes a DataLoader as it is."""

import pytest

from conftest import ids_of

accelerate = pytest.importorskip("accelerate", reason="Accelerate is not installed")


def test_prepare_returns_the_loader_and_save_state_takes_its_place_along(loader, tmp_path):
    accelerator = accelerate.Accelerator(cpu=True)
    train = loader(shuffle=True, output="torch")
    assert accelerator.prepare(train) is train
    accelerator.register_for_checkpointing(train)
    batches = iter(train)
    next(batches)
    accelerator.save_state(str(tmp_path))
    rest = ids_of(batches)
    accelerator.load_state(str(tmp_path))
    assert len(rest) == 90 and ids_of(train) == rest
