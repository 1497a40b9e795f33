"""Several processes: torchrun starts them, and each takes its share of every epoch by itself. No DistributedSampler.

    torchrun --nproc-per-node 2 torchrun_ddp.py            # Gloo, on the CPU
"""
import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F

import stoker


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="synth:digits?count=4000")
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args(arguments)

    dist.init_process_group("gloo")
    # Rank and world size are those of torch.distributed. drop_last: all ranks take equally many steps.
    train = stoker.DataLoader(options.data, batch_size=50, shuffle=True, seed=1, drop_last=True, dtype="float32", output="torch")

    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for epoch in range(options.epochs):
        seen = []
        for batch in train:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(batch.images), batch.labels)
            loss.backward()
            optimizer.step()
            seen.append(batch.ids.clone())
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, torch.cat(seen).tolist())
        if dist.get_rank() == 0:
            ids = [id for rank in everyone for id in rank]
            print(f"epoch {epoch + 1}: loss {loss.item():.3f}, {len(ids)} samples, {len(set(ids))} different, "
                  f"by {len(everyone)} ranks")
    train.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
