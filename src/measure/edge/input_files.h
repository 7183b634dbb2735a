// Requests from files: perf_analyzer's JSON data and its directories of binary tensors.
//
//   {"data": [ {"IN": [1, 2]}, {"IN": {"content": [1, 2], "shape": [2]}}, {"IN": {"b64": "AQI="}}
//   ]}
//   {"data": [ [ {...}, {...} ], [ {...} ] ]}      several streams
//   {"data": ..., "validation_data": [ {"OUT": [1, 2]}, ... ]}   what the answers must hold
//   DIR/IN                                         the bytes of input IN; BYTES: a string a line
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "measure/infer_input.h"
#include "measure/model_description.h"

namespace septet::measure {

// Every step of every file, batched as the options say: a request holds batch_size steps that
// follow each other, and wraps round at the end of its stream. Errors name the file and the entry
// (kUsage), or say why the file cannot be read.
Result<InputData> read_input_files(const std::vector<std::string>& paths,
                                   const ModelDescription& model, const InputOptions& options);

}  // namespace septet::measure
