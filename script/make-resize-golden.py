#!/usr/bin/python3
"""Write tests/golden/torch_resize.txt: what PyTorch's bilinear interpolation gives for small images.

F.interpolate(mode="bilinear", align_corners=False) has its pixels' centres at the half, as
tf.image.resize has them. Bytes are made by a linear congruential generator that
tests/trainer/test_dataset_resize.c repeats. Needs Debian's python3-torch and python3-numpy.

    /usr/bin/python3 script/make-resize-golden.py > tests/golden/torch_resize.txt
"""
import numpy as np
import torch

# Height, width, channels, height and width made of them, and every how many-th value is written.
CASES = [
    (2, 3, 1, 5, 7, 1),
    (7, 5, 2, 3, 4, 1),
    (1, 1, 3, 4, 2, 1),
    (5, 1, 2, 1, 9, 1),
    (28, 28, 1, 20, 56, 37),
    (32, 32, 3, 224, 224, 1009),
    (40, 30, 5, 33, 400, 457),
]


def main():
    print(f"# PyTorch {torch.__version__}; made by script/make-resize-golden.py")
    x = 7
    for height, width, channels, to_height, to_width, every in CASES:
        values = np.empty(height * width * channels, dtype=np.uint8)
        for i in range(values.size):
            x = (1664525 * x + 1013904223) & 0xFFFFFFFF
            values[i] = x >> 24
        image = torch.from_numpy(values.reshape(1, height, width, channels)).float() / 255
        out = torch.nn.functional.interpolate(
            image.permute(0, 3, 1, 2), size=(to_height, to_width), mode="bilinear", align_corners=False
        )
        out = out.permute(0, 2, 3, 1).reshape(-1)
        print("case", height, width, channels, to_height, to_width, every)
        for i in range(0, out.numel(), every):
            print(f"{out[i].item():.9g}")


main()
