// ConfigDocument: a model's configuration as protobuf: read from config.pbtxt or JSON, checked,
// completed from the model, and written as JSON or as the message that gRPC carries.
//
// A value type, movable; any thread may use its own. Wraps protobuf: its types stay in the .cc.
// Fields of Triton's that septet does not act on are refused by name with file and line, unless
// they only tune what does not exist here (docs/triton_compatibility.md lists each one).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "inference/model_config.h"

namespace inference {
class ModelConfig;
}

namespace septet::inference {

class ConfigDocument {
 public:
  // An empty configuration that has the model's name only: everything is to be completed.
  explicit ConfigDocument(std::string_view model_name);
  ConfigDocument(ConfigDocument&&) noexcept;
  ConfigDocument& operator=(ConfigDocument&&) noexcept;
  ~ConfigDocument();

  // text is config.pbtxt as in the file named, which the error names with its line. A missing
  // model name becomes model_name; another one is an error, as is a field that is not supported.
  static Result<ConfigDocument> from_text(std::string_view text, const std::string& file,
                                          const std::string& model_name);
  // The `config` parameter of a load call, in the JSON form that to_json() writes.
  static Result<ConfigDocument> from_json(std::string_view json, const std::string& model_name);

  // Fills in what was left out: backend, inputs, outputs, batching and instance group, from what
  // the model declares. An error when the two contradict each other.
  [[nodiscard]] Result<Ok> complete(const ModelSignature& signature);
  // Fills in what does not need the model: backend from platform, the default instance group.
  void complete_defaults();

  // For a model whose configuration names neither backend nor platform.
  void assume_backend(std::string_view backend);

  // So many instances in one group, whatever was configured; the first group's other settings stay.
  // An ensemble has none, so nothing happens to it.
  void set_instance_count(int count);

  ModelConfig words() const;
  // Proto field names, enums as names, 64-bit numbers as numbers: the answer of the config call.
  std::string to_json() const;
  const ::inference::ModelConfig& message() const { return *message_; }

 private:
  std::unique_ptr<::inference::ModelConfig> message_;
};

}  // namespace septet::inference
