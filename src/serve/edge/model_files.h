// The files of a model repository, read and never written.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "inference/edge/config_document.h"
#include "serve/classification.h"

namespace septet::serve {

struct ModelFiles {
  std::string name{};
  std::string folder{};
  std::vector<std::int64_t> versions{};  // ascending
};

// The model folders of a repository, by name. An error when the repository cannot be read.
Result<std::vector<ModelFiles>> list_models(const std::string& repository);
// One model's folder; kNotFound when the repository has no such folder.
Result<ModelFiles> find_model(const std::string& repository, const std::string& name);

// What a folder of such a name holds.
ModelFiles files_of_folder(const std::string& name, const std::string& folder);

// config.pbtxt of the folder, or an empty document when there is none.
Result<inference::ConfigDocument> read_config(const ModelFiles& files);
// What lies beside the model and goes with each of its versions: label files, initial states. An
// error when one is missing, leaves its folder or, for a state, has the wrong size.
struct SideFiles {
  std::map<std::string, Labels> labels{};                   // by output name
  std::map<std::string, inference::Blob> initial_states{};  // by the name of a state's input
};
Result<SideFiles> read_side_files(const ModelFiles& files, const inference::ModelConfig& config);

// Changes whenever a file below the model's folder does: names, sizes and times of change.
std::string folder_signature(const ModelFiles& files);

// A whole file; limit in bytes.
Result<std::string> read_whole_file(const std::string& path, std::uint64_t limit);

}  // namespace septet::serve
