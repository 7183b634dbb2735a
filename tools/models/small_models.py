"""The arithmetic models that every client of the protocol knows: simple and its relatives.

The first dimension is the batch; the wire shape is [batch, 16].
"""

from onnx_file import INT8, INT32, STRING, model, node, value_info


def simple():
    """OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1, 32-bit whole numbers."""
    pair = ["INPUT0", "INPUT1"]
    return _model(
        "simple",
        INT32,
        [node("Add", pair, ["OUTPUT0"]), node("Sub", pair, ["OUTPUT1"])],
    )


def simple_int8():
    """As simple, with 8-bit numbers; ONNX Runtime adds in 32 bits, the result wraps around."""
    return _model("simple_int8", INT8, _through_int32(INT8))


def simple_string():
    """As simple, with decimal numbers as text; text that is no whole number fails the request."""
    return _model("simple_string", STRING, _through_int32(STRING))


def simple_identity():
    """OUTPUT0 is a copy of INPUT0, a list of byte strings."""
    dims = ["batch", "length"]
    return model(
        "simple_identity",
        [node("Identity", ["INPUT0"], ["OUTPUT0"])],
        [value_info("INPUT0", STRING, dims)],
        [value_info("OUTPUT0", STRING, dims)],
    )


def _through_int32(data_type):
    return [
        node("Cast", ["INPUT0"], ["a"], to=INT32),
        node("Cast", ["INPUT1"], ["b"], to=INT32),
        node("Add", ["a", "b"], ["sum"]),
        node("Sub", ["a", "b"], ["difference"]),
        node("Cast", ["sum"], ["OUTPUT0"], to=data_type),
        node("Cast", ["difference"], ["OUTPUT1"], to=data_type),
    ]


def _model(name, data_type, nodes):
    dims = ["batch", 16]
    return model(
        name,
        nodes,
        [value_info(n, data_type, dims) for n in ("INPUT0", "INPUT1")],
        [value_info(n, data_type, dims) for n in ("OUTPUT0", "OUTPUT1")],
    )
