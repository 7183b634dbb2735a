// Top-k answers: an output tensor as "value:index:label" strings (inference protocol, 1.4).
#pragma once

#include <string>
#include <vector>

#include "inference/tensor.h"

namespace septet::serve {

// Line n names index n; an index beyond the end has no label.
using Labels = std::vector<std::string>;

// The k largest elements of each batch entry, as a BYTES tensor of shape [k] or [batch,k]; of equal
// elements the lower index comes first. batched: the first dimension is the batch.
[[nodiscard]] inference::Outcome<inference::OutputTensor> classify_output(
    const inference::OutputTensor& output, std::uint32_t k, bool batched, const Labels& labels);

// The lines of a label file, without line ends; the file's last line may lack one.
Labels parse_labels(std::string_view text);

}  // namespace septet::serve
