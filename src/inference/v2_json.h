// Between JSON values and tensor bytes; private to the v2 codec's own files.
//
// The only header that shows simdjson's types: include it from .cc files of the codec alone.
#pragma once

#include <simdjson.h>

#include <string_view>
#include <vector>

#include "inference/json_writer.h"
#include "inference/tensor.h"

namespace septet::inference::v2 {

// The bytes of a tensor given as a JSON array, nested or flat. kInvalidArgument when an element has
// the wrong type or range, the count is not the shape's product, or the type has no JSON form.
Outcome<Blob> data_from_json(std::string_view tensor, Datatype datatype, const Shape& shape,
                             const simdjson::dom::element& data);
// Writes the tensor's elements as one flat array.
Outcome<Ok> data_to_json(JsonWriter& json, std::string_view tensor, Datatype datatype,
                         std::span<const std::byte> bytes);

// {"key": bool, int, double or string}; kInvalidArgument for other kinds of value.
Outcome<Parameters> parameters_from_json(const simdjson::dom::element& object);
void parameters_to_json(JsonWriter& json, const Parameters& parameters);

Outcome<Shape> shape_from_json(std::string_view tensor, const simdjson::dom::element& array);

}  // namespace septet::inference::v2
