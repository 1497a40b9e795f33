"""try_wheel.py - the installed package packs drawn digits and reads them back, by each codec."""
import base64
import os
import subprocess
import sys

import stoker

print("wheel: stoker", stoker.__version__)
with open(os.path.join(os.path.dirname(stoker.__file__), "licenses", "versions.txt")) as versions:
    inside = [line.split() for line in versions if not line.startswith("compiled")]
assert len(inside) == 8 and all(len(words) == 2 for words in inside), inside
for codec in ("raw", "lz4", "zstd", "png", "jpeg"):
    packed = f"shards:{codec}"
    subprocess.run([sys.executable, "-m", "stoker", "pack", "--quiet", "--codec", codec, "synth:digits?count=100", packed],
                   check=True)
    with stoker.DataLoader(packed, batch_size=10, output="dlpack") as loader:
        batches = sum(1 for _ in loader)
    assert batches == 10, (codec, batches)
    print("wheel:", codec, "works")

# One lossless pixel: stoker-pack writes no WebP.
os.makedirs("webp/class")
with open("webp/class/pixel.webp", "wb") as file:
    file.write(base64.b64decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="))
with stoker.DataLoader("folder:webp", output="dlpack") as loader:
    assert [batch.images.shape for batch in loader] == [(1, 1, 1, 3)]
print("wheel: webp works")
subprocess.run([sys.executable, "-m", "stoker", "bench", "--version"], check=True)
