// What septet classify decides: how a model wants pictures, which pictures share a request, what is
// asked for and how the answer is printed.
//
// image_client's behaviour (perf_tool facts, 5): a single picture is repeated to fill a batch, a
// folder's pictures fill batches and wrap round, values are printed as the server sent them. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "inference/tensor.h"
#include "measure/model_description.h"
#include "measure/picture.h"

namespace septet::measure {

// A model that takes one picture and answers with one list of numbers.
struct ImageModel {
  std::string name;
  std::string version;
  std::string input_name;
  std::string output_name;
  std::int64_t max_batch_size = 0;
  ImageInput input;
  bool flat_batch = false;  // the input's own first dimension of 1 stands where a batch would
};

// kFailed with image_client's words when the model does not fit: other than one input and output,
// no picture dimensions, another batch size.
Result<ImageModel> image_model(const ModelDescription& description, int batch_size);

// Which pictures (by number) each request carries: ceil(pictures / batch) requests, the last ones
// filled up from the first pictures again.
std::vector<std::vector<std::size_t>> plan_requests(std::size_t pictures, std::size_t batch_size);

// The request that carries these preprocessed pictures (all of the same size).
inference::InferRequest classification_request(const ImageModel& model, std::size_t number,
                                               const std::vector<inference::Blob>& pictures,
                                               std::uint32_t classes);

// One answer as image_client prints it:
//
//   Image 'mug.jpg':
//       15.346230 (504) = COFFEE MUG
//
// kFailed when the answer is not one BYTES tensor with a list for each picture.
Result<std::string> classification_text(const inference::InferResponse& response,
                                        const std::string& output_name,
                                        const std::vector<std::string>& names);

// "    15.346230 (504) = COFFEE MUG"; split at every ':', pieces beyond the third dropped.
std::string class_line(std::string_view element);

}  // namespace septet::measure
