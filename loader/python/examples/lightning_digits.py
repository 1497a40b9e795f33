"""PyTorch Lightning: the loader is what train_dataloader() returns; its place in the epoch is part of Lightning's checkpoints.

    python lightning_digits.py
"""
import argparse

import torch
import torch.nn.functional as F

import stoker

try:
    import lightning
except ImportError:
    import pytorch_lightning as lightning


class Digits(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(784, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
        self.right = self.total = 0

    def training_step(self, batch, index):
        scores = self.layers(batch.images)
        self.right += int((scores.argmax(1) == batch.labels).sum())
        self.total += len(batch.labels)
        return F.cross_entropy(scores, batch.labels)

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch + 1}: accuracy while training {self.right / self.total:.3f}")
        self.accuracy, self.right, self.total = self.right / self.total, 0, 0

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.2)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="synth:digits?count=4000")
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args(arguments)

    lightning.seed_everything(0, verbose=False)
    train = stoker.DataLoader(options.data, batch_size=50, shuffle=True, drop_last=True, dtype="float32", output="torch")
    model = Digits()
    # Ranks divide the epoch by themselves, so Lightning need not put in a sampler.
    trainer = lightning.Trainer(max_epochs=options.epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False)
    trainer.fit(model, train)
    return model.accuracy


if __name__ == "__main__":
    main()
