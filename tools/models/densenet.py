"""DenseNet-121 with weights of our own: the published graph, seeded values.

The graph comes from Debian's libonnx-testdata, where every weight tensor holds one value, so that
all 1000 classes tie. Here each tensor gets its own values: the cost of an inference is DenseNet-121's
(2.9 G multiply-adds), the classes differ from picture to picture, but nothing was trained: the answer
means nothing.
"""

import math
import random
import struct
import sys
from array import array

from onnx_file import FLOAT, decode, encode, first, ints, tensor, values

# He's rule keeps the signal's size through a ReLU: variance = GAIN / fan-in. The filters are centred
# (each sums to zero), or the mean that every ReLU adds would drown what differs between pictures;
# the gain is that of centred filters (Brock et al., "Characterizing signal propagation to close the
# performance gap in unnormalized ResNets", 2021).
GAIN = 2 / (1 - 1 / math.pi)
# The last layer is drawn wider, so that the classes lie apart as a trained network's do.
LOGIT_GAIN = 160.0
# Offsets of a tenth of the signal, so that not even an empty picture makes the classes tie.
OFFSET_VARIANCE = 0.01
FIXED = {"bn_scale_0": 1.0, "bn_bias_0": 0.0, "bn_mean_0": 0.0, "bn_var_0": 1.0,
         "bn_w_0": 1.0}


def densenet(light_model, seed):
    """The bytes of model.onnx, made from the bytes of light_densenet121.onnx."""
    source = decode(light_model)
    graph = decode(first(source, 7))
    shapes = {}
    for raw in values(graph, 5):
        initializer = decode(raw)
        name = first(initializer, 8).decode()
        if name.endswith("__SHAPE"):
            shapes[name.removesuffix("__SHAPE")] = _int64s(initializer)
        else:
            shapes[name] = ints(initializer, 1)
    nodes = [n for n in values(graph, 1) if first(decode(n), 4) != b"ConstantOfShape"]
    weights = [_weights(name, dims, seed) for name, dims in sorted(shapes.items())]
    picture = [i for i in values(graph, 11) if first(decode(i), 1) == b"data_0"]
    result = encode(
        [(1, n) for n in nodes]
        + [(2, "densenet121")]
        + [(5, w) for w in weights]
        + [(11, i) for i in picture]
        + [(12, o) for o in values(graph, 12)]
    )
    # IR version 8: weights need not be inputs, so the runtime may fold them.
    opset = [(8, value) for value in values(source, 8)]
    return encode([(1, 8), (2, "septet make_models"), (7, result)] + opset)


def _int64s(initializer):
    raw = first(initializer, 9)
    if raw:
        return list(struct.unpack(f"<{len(raw) // 8}q", raw))
    return ints(initializer, 7)


def _weights(name, dims, seed):
    count = math.prod(dims)
    last_part = name.rsplit("/", 1)[-1]
    if last_part in FIXED:
        drawn = array("f", [FIXED[last_part]]) * count
    elif len(dims) == 4:
        gain = LOGIT_GAIN if name == "fc6_w_0" else GAIN
        drawn = _filters(random.Random(f"{seed}/{name}"), dims[0], count // dims[0], gain)
    elif last_part in ("bn_b_0", "fc6_b_0"):
        drawn = _filters(random.Random(f"{seed}/{name}"), 1, count, OFFSET_VARIANCE * count)
    else:
        raise ValueError(f"no rule for the weights '{name}' of shape {dims}")
    if sys.byteorder == "big":
        drawn.byteswap()
    return tensor(name, FLOAT, dims, drawn.tobytes())


def _filters(prng, filters, fan_in, gain):
    """Uniform values of variance gain / fan_in; each filter sums to zero."""
    width = math.sqrt(12 * gain / fan_in)
    drawn = array("f")
    for _ in range(filters):
        numbers = [n * (1 / 2**32) for (n,) in struct.iter_unpack("<I", prng.randbytes(4 * fan_in))]
        mean = math.fsum(numbers) / fan_in
        drawn.extend([(number - mean) * width for number in numbers])
    return drawn
