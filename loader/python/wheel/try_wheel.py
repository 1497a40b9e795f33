"""try_wheel.py - the installed package packs drawn digits and reads them back, by each codec."""
import subprocess
import sys

import stoker

print("wheel: stoker", stoker.__version__)
for codec in ("raw", "lz4", "zstd", "png", "jpeg", "webp"):
    packed = f"shards:{codec}"
    subprocess.run([sys.executable, "-m", "stoker", "pack", "--quiet", "--codec", codec, "synth:digits?count=100", packed],
                   check=True)
    with stoker.DataLoader(packed, batch_size=10, output="dlpack") as loader:
        batches = sum(1 for _ in loader)
    assert batches == 10, (codec, batches)
    print("wheel:", codec, "works")
subprocess.run([sys.executable, "-m", "stoker", "bench", "--version"], check=True)
