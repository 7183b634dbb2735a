#include "serve/edge/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "serve/model_versions.h"

namespace septet::serve {

namespace {

namespace fs = std::filesystem;

// Far above any real file of its kind; a guard against a repository that points at a device.
constexpr std::uint64_t kMaxTextBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kMaxStateBytes = std::uint64_t{1} << 30;

std::vector<std::int64_t> list_versions(const fs::path& folder) {
  std::vector<std::int64_t> versions;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    const auto version = parse_version(entry.path().filename().string());
    if (version && entry.is_directory(failed)) {
      versions.push_back(*version);
    }
  }
  std::sort(versions.begin(), versions.end());
  return versions;
}

}  // namespace

Result<std::vector<ModelFiles>> list_models(const std::string& repository) {
  std::error_code failed;
  fs::directory_iterator entries(repository, failed);
  if (failed) {
    return make_error(
        ErrorKind::kNotFound,
        fmt::format("cannot read model repository {}: {}", repository, failed.message()),
        "give a folder of models with --model-repository");
  }
  std::vector<ModelFiles> models;
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory(failed) && is_safe_name(name)) {
      models.push_back({name, entry.path().string(), list_versions(entry.path())});
    }
  }
  std::sort(models.begin(), models.end(),
            [](const ModelFiles& a, const ModelFiles& b) { return a.name < b.name; });
  return models;
}

Result<ModelFiles> find_model(const std::string& repository, const std::string& name) {
  std::error_code failed;
  const fs::path folder = fs::path(repository) / name;
  if (!is_safe_name(name) || !fs::is_directory(folder, failed)) {
    return make_error(ErrorKind::kNotFound,
                      fmt::format("model repository {} has no model '{}'", repository, name));
  }
  return files_of_folder(name, folder.string());
}

ModelFiles files_of_folder(const std::string& name, const std::string& folder) {
  return ModelFiles{name, folder, list_versions(folder)};
}

std::string folder_signature(const ModelFiles& files) {
  std::vector<std::string> lines;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(files.folder, failed)) {
    const auto changed = entry.last_write_time(failed).time_since_epoch().count();
    const std::uintmax_t size = entry.is_regular_file(failed) ? entry.file_size(failed) : 0;
    lines.push_back(fmt::format("{} {} {}\n", entry.path().string(), size, changed));
  }
  std::sort(lines.begin(), lines.end());  // a folder has no order of its own
  return fmt::format("{}", fmt::join(lines, ""));
}

Result<std::string> read_whole_file(const std::string& path, std::uint64_t limit) {
  std::ifstream file(path, std::ios::binary);
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(path, failed);
  if (!file || failed) {
    return make_error(ErrorKind::kNotFound, fmt::format("cannot read {}", path));
  }
  if (size > limit) {
    return make_error(
        ErrorKind::kUsage,
        fmt::format("{} has {} bytes, more than the {} that are read", path, size, limit));
  }
  std::string text(size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

Result<inference::ConfigDocument> read_config(const ModelFiles& files) {
  const std::string path = files.folder + "/config.pbtxt";
  std::error_code failed;
  if (!fs::exists(path, failed)) {
    return inference::ConfigDocument(files.name);
  }
  auto text = read_whole_file(path, kMaxTextBytes);
  if (!text.ok()) {
    return text.error();
  }
  return inference::ConfigDocument::from_text(*text, path, files.name);
}

namespace {

Result<std::map<std::string, Labels>> read_labels(const ModelFiles& files,
                                                  const inference::ModelConfig& config) {
  std::map<std::string, Labels> labels;
  for (const inference::TensorConfig& output : config.outputs) {
    if (output.label_filename.empty()) {
      continue;
    }
    if (!is_safe_path(output.label_filename)) {
      return make_error(ErrorKind::kUsage,
                        fmt::format("label_filename '{}' of output '{}' leaves the model's folder",
                                    output.label_filename, output.name));
    }
    auto text = read_whole_file(files.folder + "/" + output.label_filename, kMaxTextBytes);
    if (!text.ok()) {
      return make_error(text.error().kind, fmt::format("label_filename of output '{}': {}",
                                                       output.name, text.error().message));
    }
    labels[output.name] = parse_labels(*text);
  }
  return labels;
}

Result<inference::Blob> read_initial_state(const ModelFiles& files,
                                           const inference::SequenceState& state) {
  const std::string what = fmt::format("the initial state of '{}'", state.input_name);
  if (!is_safe_path(state.initial_file)) {
    return make_error(ErrorKind::kUsage, fmt::format("{}: '{}' leaves the initial_state folder",
                                                     what, state.initial_file));
  }
  auto bytes =
      read_whole_file(files.folder + "/initial_state/" + state.initial_file, kMaxStateBytes);
  if (!bytes.ok()) {
    return make_error(bytes.error().kind, fmt::format("{}: {}", what, bytes.error().message));
  }
  const auto wanted = inference::byte_size(state.datatype, state.dims);
  if (!wanted || bytes->size() != *wanted) {
    return make_error(
        ErrorKind::kUsage,
        fmt::format("{}: '{}' has {} bytes, which is not what {} {} holds", what,
                    state.initial_file, bytes->size(), inference::wire_name(state.datatype),
                    inference::shape_text(state.dims)));
  }
  return inference::own_text(std::move(*bytes));
}

}  // namespace

Result<SideFiles> read_side_files(const ModelFiles& files, const inference::ModelConfig& config) {
  SideFiles side;
  auto labels = read_labels(files, config);
  if (!labels.ok()) {
    return labels.error();
  }
  side.labels = std::move(*labels);
  if (!config.sequence_batching) {
    return side;
  }
  for (const inference::SequenceState& state : config.sequence_batching->states) {
    if (!state.initial_file.empty()) {
      auto read = read_initial_state(files, state);
      if (!read.ok()) {
        return read.error();
      }
      side.initial_states[state.input_name] = std::move(*read);
    }
  }
  return side;
}

}  // namespace septet::serve
