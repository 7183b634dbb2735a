"""Reads and writes ONNX files with nothing but Python's standard library.

A protobuf message is kept as a list of fields (number, value): an int for a varint, bytes for
everything length-delimited, a float for a 32-bit number. That is enough to build small graphs and to
replace parts of a given one. Field numbers are those of onnx.proto3 (ONNX IR version 8).
"""

import struct

FLOAT, INT8, INT32, INT64, STRING = 1, 3, 6, 7, 8  # TensorProto.DataType


def varint(value):
    """The bytes of an unsigned or (as two's complement of 64 bits) negative number."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode(fields):
    """The bytes of a message given as (number, value) pairs; text becomes UTF-8."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, float):
            out += varint(number << 3 | 5) + struct.pack("<f", value)
        elif isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return bytes(out)


def read_varint(data, position):
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def decode(data):
    """The (number, value) pairs of a message; the reverse of encode()."""
    fields, position = [], 0
    while position < len(data):
        key, position = read_varint(data, position)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, position = read_varint(data, position)
        elif kind == 2:
            size, position = read_varint(data, position)
            value = bytes(data[position : position + size])
            position += size
        elif kind == 5:
            value = struct.unpack_from("<f", data, position)[0]
            position += 4
        else:
            raise ValueError(f"wire type {kind} at byte {position} is not part of an ONNX file")
        fields.append((number, value))
    return fields


def values(fields, number):
    """Every value of one field, in order."""
    return [value for n, value in fields if n == number]


def first(fields, number, default=None):
    return next(iter(values(fields, number)), default)


def ints(fields, number):
    """A repeated whole number, packed or not."""
    out = []
    for value in values(fields, number):
        if isinstance(value, int):
            out.append(value)
            continue
        position = 0
        while position < len(value):
            number_, position = read_varint(value, position)
            out.append(number_)
    return out


def tensor(name, data_type, dims, raw):
    """TensorProto with its elements as little-endian bytes."""
    return encode([(1, d) for d in dims] + [(2, data_type), (8, name), (9, raw)])


def attribute(name, value):
    """AttributeProto: a whole number, a list of them, or text."""
    if isinstance(value, int):
        return encode([(1, name), (3, value), (20, 2)])
    if isinstance(value, str):
        return encode([(1, name), (4, value), (20, 3)])
    return encode([(1, name)] + [(8, v) for v in value] + [(20, 7)])


def node(op_type, inputs, outputs, **attributes):
    """NodeProto, named after its first output."""
    return encode(
        [(1, i) for i in inputs]
        + [(2, o) for o in outputs]
        + [(3, outputs[0] + "_node"), (4, op_type)]
        + [(5, attribute(name, value)) for name, value in sorted(attributes.items())]
    )


def value_info(name, data_type, dims):
    """ValueInfoProto; a dimension is a number, or the name of one that is free."""
    shape = encode(
        [(1, encode([(2, d) if isinstance(d, str) else (1, d)])) for d in dims]
    )
    return encode([(1, name), (2, encode([(1, encode([(1, data_type), (2, shape)]))]))])


def model(name, nodes, inputs, outputs, initializers=()):
    """ModelProto, IR version 8, opset 13."""
    graph = encode(
        [(1, n) for n in nodes]
        + [(2, name)]
        + [(5, t) for t in initializers]
        + [(11, i) for i in inputs]
        + [(12, o) for o in outputs]
    )
    return encode([(1, 8), (2, "septet make_models"), (7, graph), (8, encode([(2, 13)]))])
