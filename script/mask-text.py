#!/usr/bin/env python3
"""Write a masked-LM data set of a text's bytes, as examples/bert-small.json takes it.

    script/mask-text.py TEXT OUT.npz [--length 32] [--predicted 5] [--test 0.05] [--seed 1]

Windows of the text; PREDICTED places of each are to be predicted, BERT's way: 8 of 10 are masked (byte 0), one has
another byte of the text, one stays. They come first in their window, each token with its position. The last
share of the windows is the test part. The same seed gives the same bytes.
"""
import argparse
import random
import struct
import zipfile

MASK = 0

parser = argparse.ArgumentParser()
parser.add_argument("text")
parser.add_argument("out")
parser.add_argument("--length", type=int, default=32)
parser.add_argument("--predicted", type=int, default=5)
parser.add_argument("--test", type=float, default=0.05)
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args()

rng = random.Random(args.seed)
text = open(args.text, "rb").read()
rows = {"tokens": [], "positions": [], "segments": [], "y": []}
for at in range(0, len(text) - args.length + 1, args.length):
    places = list(range(args.length))
    chosen = rng.sample(places, args.predicted)
    places = chosen + [place for place in places if place not in chosen]
    tokens = [text[at + place] for place in places]
    rows["y"].append(tokens[: args.predicted])
    shown = [rng.choices((MASK, rng.choice(text), token), (8, 1, 1))[0] for token in tokens[: args.predicted]]
    rows["tokens"].append(shown + tokens[args.predicted :])
    rows["positions"].append(places)
    rows["segments"].append([0] * args.length)

count = len(rows["y"])
left = count - int(count * args.test)
with zipfile.ZipFile(args.out, "w") as out:
    for key, items in rows.items():
        for part, some in ("train", items[:left]), ("test", items[left:]):
            if not some:
                continue
            name = f"y_{part}" if key == "y" else f"x_{part}_{key}"
            head = f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({len(some)}, {len(some[0])}), }}".ljust(117) + "\n"
            numbers = [number for item in some for number in item]
            info = zipfile.ZipInfo(f"{name}.npy")  # holds no time
            out.writestr(info, b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(numbers)}i", *numbers))
