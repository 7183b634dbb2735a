#include "measure/image_client.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"

namespace septet::measure {
namespace {

using inference::Datatype;

Error unfit(std::string message, std::string hint = {}) {
  return make_error(ErrorKind::kFailed, std::move(message), std::move(hint));
}

// Height, width and channels from the dimensions, by the layout.
Result<ImageInput> picture_dimensions(const std::string& model, const TensorDescription& input,
                                      inference::Shape dims) {
  const auto is_channels = [](std::int64_t size) { return size == 1 || size == 3; };
  ImageInput result;
  result.datatype = input.datatype;
  const bool named_nhwc = input.format == "FORMAT_NHWC";
  const bool looks_nhwc = input.format != "FORMAT_NCHW" && !is_channels(dims[0]);
  result.layout = named_nhwc || looks_nhwc ? PixelLayout::kNhwc : PixelLayout::kNchw;
  const bool nhwc = result.layout == PixelLayout::kNhwc;
  const std::int64_t channels = nhwc ? dims[2] : dims[0];
  const std::int64_t height = nhwc ? dims[0] : dims[1];
  const std::int64_t width = nhwc ? dims[1] : dims[2];
  if (!is_channels(channels)) {
    return unfit(fmt::format("model '{}' takes {} with {} channels, a picture has 1 or 3", model,
                             inference::shape_text(dims), channels));
  }
  constexpr std::int64_t kMostSide = 32'768;
  if (height < 1 || width < 1 || height > kMostSide || width > kMostSide) {
    return unfit(fmt::format("model '{}' takes pictures of {} x {}, which cannot be made", model,
                             width, height),
                 "height and width must be fixed in its configuration");
  }
  result.channels = static_cast<int>(channels);
  result.height = static_cast<int>(height);
  result.width = static_cast<int>(width);
  return result;
}

Result<Ok> check_batch(const ModelDescription& description, int batch_size) {
  if (batch_size > 1 && description.max_batch_size == 0) {
    return unfit(fmt::format("batching not supported for model '{}'", description.name),
                 "leave -b out");
  }
  if (description.max_batch_size > 0 && batch_size > description.max_batch_size) {
    return unfit(fmt::format("expecting batch size <= {} for model '{}'",
                             description.max_batch_size, description.name));
  }
  return Ok{};
}

}  // namespace

Result<ImageModel> image_model(const ModelDescription& description, int batch_size) {
  if (description.inputs.size() != 1) {
    return unfit(fmt::format("expecting 1 input, got {}", description.inputs.size()),
                 fmt::format("model '{}' is no model for pictures", description.name));
  }
  if (description.outputs.size() != 1) {
    return unfit(fmt::format("expecting 1 output, got {}", description.outputs.size()),
                 fmt::format("model '{}' is no model for pictures", description.name));
  }
  SEPTET_TRY(check_batch(description, batch_size));
  const TensorDescription& input = description.inputs.front();
  inference::Shape dims = input.shape;
  const bool flat_batch =
      description.max_batch_size == 0 && dims.size() == 4 && (dims[0] == 1 || dims[0] == -1);
  if (flat_batch) {
    dims.erase(dims.begin());
  }
  if (dims.size() != 3) {
    return unfit(fmt::format("expecting input to have 3 dimensions, model '{}' input has {}",
                             description.name, dims.size()));
  }
  const Result<ImageInput> picture = picture_dimensions(description.name, input, dims);
  if (!picture) {
    return picture.error();
  }
  return ImageModel{.name = description.name,
                    .version = description.version,
                    .input_name = input.name,
                    .output_name = description.outputs.front().name,
                    .max_batch_size = description.max_batch_size,
                    .input = *picture,
                    .flat_batch = flat_batch};
}

std::vector<std::vector<std::size_t>> plan_requests(std::size_t pictures, std::size_t batch_size) {
  CHECK(pictures > 0 && batch_size > 0);
  std::vector<std::vector<std::size_t>> requests;
  std::size_t next = 0;
  for (std::size_t begun = 0; begun < pictures; begun += batch_size) {
    std::vector<std::size_t>& request = requests.emplace_back();
    for (std::size_t i = 0; i < batch_size; ++i) {
      request.push_back(next);
      next = (next + 1) % pictures;
    }
  }
  return requests;
}

inference::InferRequest classification_request(const ImageModel& model, std::size_t number,
                                               const std::vector<inference::Blob>& pictures,
                                               std::uint32_t classes) {
  inference::InferRequest request;
  request.model_name = model.name;
  request.model_version = model.version;
  request.id = fmt::format("{}", number);
  inference::InputTensor& input = request.inputs.emplace_back();
  input.name = model.input_name;
  input.datatype = model.input.datatype;
  if (model.max_batch_size > 0 || model.flat_batch) {
    input.shape.push_back(static_cast<std::int64_t>(pictures.size()));
  }
  const ImageInput& picture = model.input;
  if (picture.layout == PixelLayout::kNchw) {
    input.shape.insert(input.shape.end(), {picture.channels, picture.height, picture.width});
  } else {
    input.shape.insert(input.shape.end(), {picture.height, picture.width, picture.channels});
  }
  if (pictures.size() == 1) {
    input.data = pictures.front();
  } else {
    std::vector<std::byte> together;
    for (const inference::Blob& bytes : pictures) {
      together.insert(together.end(), bytes.bytes.begin(), bytes.bytes.end());
    }
    input.data = inference::own_bytes(std::move(together));
  }
  inference::RequestedOutput& output = request.outputs.emplace_back();
  output.name = model.output_name;
  output.binary = true;
  output.classification = classes;
  return request;
}

std::string class_line(std::string_view element) {
  const std::vector<std::string_view> parts = split(element, ':');
  std::string line = fmt::format("    {}", parts[0]);
  if (parts.size() > 1) {
    line += fmt::format(" ({})", parts[1]);
  }
  if (parts.size() > 2) {
    line += fmt::format(" = {}", parts[2]);
  }
  return line;
}

Result<std::string> classification_text(const inference::InferResponse& response,
                                        const std::string& output_name,
                                        const std::vector<std::string>& names) {
  if (response.outputs.size() != 1 || response.outputs[0].name != output_name) {
    return unfit(fmt::format("expected one output '{}' in the answer", output_name));
  }
  const inference::OutputTensor& output = response.outputs.front();
  if (output.datatype != Datatype::kBytes) {
    return unfit(fmt::format("received incorrect data type for the result: '{}', expected BYTES",
                             wire_name(output.datatype)),
                 "the server must know the classification extension");
  }
  const auto elements = inference::split_bytes_elements(output.data.bytes);
  if (!elements || elements->size() % names.size() != 0) {
    return unfit(fmt::format("the answer's '{}' does not hold a list for each of {} pictures",
                             output_name, names.size()));
  }
  const std::size_t each = elements->size() / names.size();
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += fmt::format("Image '{}':\n", names[i]);
    for (std::size_t k = 0; k < each; ++k) {
      text += class_line((*elements)[i * each + k]) + '\n';
    }
  }
  return text;
}

}  // namespace septet::measure
