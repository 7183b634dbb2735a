#include "inference/edge/config_document.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include "inference/config_check.h"
#include "inference/edge/config_support.h"
#include "inference/edge/config_words.h"
#include "inference/edge/proto_json.h"

namespace septet::inference {

namespace {

namespace proto = ::inference;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

// Keeps the first error, with its line counted from 1.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) {
      text_ = fmt::format("{}:{}: {}", line + 1, column + 1, message);
    }
  }
  void AddWarning(int /*line*/, int /*column*/, const std::string& /*message*/) override {}
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Walks the fields that were set; the first refused one becomes the error. tree tells lines and may
// be null.
std::string find_refused(const Message& message, const TextFormat::ParseInfoTree* tree) {
  std::vector<const FieldDescriptor*> set;
  message.GetReflection()->ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    const std::string_view why = why_refused(field->full_name());
    if (!why.empty()) {
      const int line =
          tree == nullptr ? -1 : tree->GetLocation(field, field->is_repeated() ? 0 : -1).line;
      return fmt::format("{}field '{}' is not supported: {}",
                         line < 0 ? std::string() : fmt::format("{}: ", line + 1), field->name(),
                         why);
    }
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) {
      continue;
    }
    const int count = field->is_repeated() ? message.GetReflection()->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const int index = field->is_repeated() ? i : -1;
      const Message& nested = field->is_repeated()
                                  ? message.GetReflection()->GetRepeatedMessage(message, field, i)
                                  : message.GetReflection()->GetMessage(message, field);
      std::string found =
          find_refused(nested, tree == nullptr ? nullptr : tree->GetTreeForNested(field, index));
      if (!found.empty()) {
        return found;
      }
    }
  }
  return {};
}

Result<Ok> accept_name(proto::ModelConfig& message, const std::string& model_name,
                       const std::string& where) {
  if (message.name().empty()) {
    message.set_name(model_name);
  }
  if (message.name() != model_name) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("{}: the name '{}' is not that of the model's folder, '{}'",
                                  where, message.name(), model_name),
                      "leave the field out or rename the folder");
  }
  return Ok{};
}

template <typename Config>
void fill_tensor(Config& to, const ModelSignature::Tensor& from, bool batched) {
  if (to.data_type() == proto::TYPE_INVALID) {
    to.set_data_type(static_cast<proto::DataType>(from.datatype));
  }
  if (to.dims_size() == 0) {
    const std::size_t skip = batched && !from.shape.empty() ? 1 : 0;
    for (std::size_t i = skip; i < from.shape.size(); ++i) {
      to.add_dims(from.shape[i]);
    }
  }
  if (to.dims_size() == 0) {  // a scalar: Triton shows it as one element
    to.add_dims(1);
    to.mutable_reshape();
  }
}

// Completes the tensors that are listed; when none is, lists all but the sequence scheduler's own.
template <typename Repeated>
void fill_tensors(Repeated* to, const std::vector<ModelSignature::Tensor>& from, bool batched,
                  const ModelConfig& words) {
  const bool none_listed = to->empty();
  for (const ModelSignature::Tensor& tensor : from) {
    auto found = to->begin();
    while (found != to->end() && found->name() != tensor.name) {
      ++found;
    }
    if (found != to->end()) {
      fill_tensor(*found, tensor, batched);
    } else if (none_listed && !is_filled_by_scheduler(words, tensor.name)) {
      auto* added = to->Add();
      added->set_name(tensor.name);
      fill_tensor(*added, tensor, batched);
    }
  }
}

}  // namespace

ConfigDocument::ConfigDocument(std::string_view model_name)
    : message_(std::make_unique<proto::ModelConfig>()) {
  message_->set_name(std::string(model_name));
}
ConfigDocument::ConfigDocument(ConfigDocument&&) noexcept = default;
ConfigDocument& ConfigDocument::operator=(ConfigDocument&&) noexcept = default;
ConfigDocument::~ConfigDocument() = default;

Result<ConfigDocument> ConfigDocument::from_text(std::string_view text, const std::string& file,
                                                 const std::string& model_name) {
  ConfigDocument document("");
  FirstError errors;
  TextFormat::Parser parser;
  TextFormat::ParseInfoTree tree;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(&tree);
  parser.SetRecursionLimit(32);
  if (!parser.ParseFromString(std::string(text), document.message_.get())) {
    return make_error(ErrorKind::kUsage, fmt::format("{}:{}", file, errors.text()),
                      "correct that line");
  }
  if (const std::string refused = find_refused(*document.message_, &tree); !refused.empty()) {
    return make_error(ErrorKind::kUsage, fmt::format("{}:{}", file, refused), "remove the field");
  }
  SEPTET_TRY(accept_name(*document.message_, model_name, file));
  if (const auto checked = check_config(document.words()); !checked.ok()) {
    return make_error(checked.error().kind, fmt::format("{}: {}", file, checked.error().message),
                      checked.error().hint);
  }
  return document;
}

Result<ConfigDocument> ConfigDocument::from_json(std::string_view json,
                                                 const std::string& model_name) {
  ConfigDocument document("");
  const auto status =
      google::protobuf::util::JsonStringToMessage(std::string(json), document.message_.get());
  if (!status.ok()) {
    return make_error(ErrorKind::kUsage, fmt::format("cannot read the configuration given as "
                                                     "JSON: {}",
                                                     status.message().ToString()));
  }
  if (const std::string refused = find_refused(*document.message_, nullptr); !refused.empty()) {
    return make_error(ErrorKind::kUsage, fmt::format("the configuration's {}", refused),
                      "remove the field");
  }
  SEPTET_TRY(accept_name(*document.message_, model_name, "the configuration"));
  SEPTET_TRY(check_config(document.words()));
  return document;
}

void ConfigDocument::complete_defaults() {
  if (message_->backend().empty() && message_->platform() == "onnxruntime_onnx") {
    message_->set_backend("onnxruntime");
  }
  if (message_->platform().empty() && message_->backend() == "onnxruntime") {
    message_->set_platform("onnxruntime_onnx");
  }
  if (message_->platform().empty() && message_->backend() == "timed") {
    message_->set_platform("timed (simulated)");
  }
  if (message_->platform().empty() && message_->has_ensemble_scheduling()) {
    message_->set_platform("ensemble");
  }
  if (message_->default_model_filename().empty() && message_->backend() == "onnxruntime") {
    message_->set_default_model_filename("model.onnx");
  }
  if (message_->version_policy().policy_choice_case() ==
      proto::ModelVersionPolicy::POLICY_CHOICE_NOT_SET) {
    message_->mutable_version_policy()->mutable_latest()->set_num_versions(1);
  }
  if (message_->has_ensemble_scheduling()) {
    return;
  }
  if (message_->instance_group_size() == 0) {
    message_->add_instance_group()->set_kind(proto::ModelInstanceGroup::KIND_CPU);
  }
  for (int i = 0; i < message_->instance_group_size(); ++i) {
    proto::ModelInstanceGroup& group = *message_->mutable_instance_group(i);
    if (group.name().empty()) {
      group.set_name(i == 0 ? message_->name() : fmt::format("{}_{}", message_->name(), i));
    }
    group.set_count(std::max(group.count(), 1));
  }
}

Result<Ok> ConfigDocument::complete(const ModelSignature& signature) {
  const bool written = message_->input_size() + message_->output_size() > 0;
  const auto free_first = [](const ModelSignature::Tensor& tensor) {
    return !tensor.shape.empty() && tensor.shape.front() == -1;
  };
  bool batched = message_->max_batch_size() > 0;
  if (!written && !batched && !signature.inputs.empty()) {
    batched = std::all_of(signature.inputs.begin(), signature.inputs.end(), free_first) &&
              std::all_of(signature.outputs.begin(), signature.outputs.end(), free_first);
    if (batched) {
      message_->set_max_batch_size(kAutoBatchSize);
    }
  }
  const ModelConfig scheduling = words();
  fill_tensors(message_->mutable_input(), signature.inputs, batched, scheduling);
  fill_tensors(message_->mutable_output(), signature.outputs, batched, scheduling);
  complete_defaults();
  SEPTET_TRY(check_config(words()));
  return check_against_model(words(), signature);
}

void ConfigDocument::assume_backend(std::string_view backend) {
  message_->set_backend(std::string(backend));
}

void ConfigDocument::set_instance_count(int count) {
  if (message_->has_ensemble_scheduling()) {
    return;
  }
  complete_defaults();
  message_->mutable_instance_group()->DeleteSubrange(1, message_->instance_group_size() - 1);
  message_->mutable_instance_group(0)->set_count(count);
}

ModelConfig ConfigDocument::words() const { return config_words(*message_); }

std::string ConfigDocument::to_json() const {
  JsonWriter json;
  write_proto_json(json, *message_);
  return json.take();
}

}  // namespace septet::inference
