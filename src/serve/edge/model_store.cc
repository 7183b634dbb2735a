#include "serve/edge/model_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "serve/edge/ensemble.h"
#include "serve/edge/override_folder.h"
#include "serve/edge/warm_up.h"
#include "serve/model_versions.h"

namespace septet::serve {

using inference::ConfigDocument;

namespace {

Error in_model(const std::string& name, const Error& error) {
  return make_error(error.kind, fmt::format("failed to load '{}', {}", name, error.message),
                    error.hint);
}

// What runs a version: its engine, and what its instances pass before they run.
struct Engine {
  Backend& backend;
  RateGate* gate;
};

// The backend's completion and the instances: what is the same for every version.
Result<ModelHandle> start_version(const ModelFiles& files, std::int64_t version,
                                  ConfigDocument document, const Engine& engine) {
  const std::string folder = fmt::format("{}/{}", files.folder, version);
  const ModelConfig before = document.words();
  auto model = engine.backend.load({files.name, files.folder, folder, &before});
  if (!model.ok()) {
    return model.error();
  }
  SEPTET_TRY(document.complete((*model)->signature()));
  const ModelConfig config = document.words();
  auto side = read_side_files(files, config);
  if (!side.ok()) {
    return side.error();
  }
  auto places = RateGate::places_of(engine.gate, config);
  if (!places.ok()) {
    return places.error();
  }
  std::vector<std::unique_ptr<ModelInstance>> instances;
  for (int i = 0; i < config.instance_count(); ++i) {
    auto instance = (*model)->make_instance(config, i);
    if (!instance.ok()) {
      return instance.error();
    }
    SEPTET_TRY(warm_up(files, config, **instance));
    instances.push_back(std::move(*instance));
  }
  return std::make_shared<ServedModel>(std::move(document), version, std::move(*side),
                                       std::move(*model), std::move(instances), std::move(*places));
}

}  // namespace

ModelStore::ModelStore(std::vector<std::string> repositories, std::vector<Backend*> backends,
                       StoreOptions options)
    : repositories_(std::move(repositories)),
      backends_(std::move(backends)),
      options_(std::move(options)) {}

ModelStore::~ModelStore() { drain_all(); }

Result<std::vector<std::string>> ModelStore::names() const {
  std::vector<std::string> names;
  for (const std::string& repository : repositories_) {
    auto models = list_models(repository);
    if (!models.ok()) {
      return models.error();
    }
    for (const ModelFiles& files : *models) {
      names.push_back(files.name);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<ModelFiles> ModelStore::find_files(const std::string& name) const {
  for (const std::string& repository : repositories_) {
    auto files = find_model(repository, name);
    if (files.ok()) {
      return files;
    }
  }
  std::string hint;
  if (const auto known = names(); known.ok()) {
    const auto nearest = nearest_name(name, *known);
    hint = nearest ? fmt::format("did you mean '{}'?", *nearest)
                   : fmt::format("the repository has {}", fmt::join(*known, ", "));
  }
  return make_error(ErrorKind::kNotFound, "failed to poll from model repository", hint);
}

Result<Backend*> ModelStore::backend_for(const ModelConfig& config) const {
  for (Backend* backend : backends_) {
    if (backend->name() == config.backend) {
      return backend;
    }
  }
  std::vector<std::string> known;
  for (const Backend* backend : backends_) {
    known.emplace_back(backend->name());
  }
  return make_error(
      ErrorKind::kUsage,
      fmt::format("unsupported backend '{}'{}", config.backend,
                  config.platform.empty() ? "" : fmt::format(" (platform '{}')", config.platform)),
      fmt::format("backends here are {}", join_words(known)));
}

Result<ModelHandle> ModelStore::load_version(const ModelFiles& files, std::int64_t version,
                                             const LoadOverride& override) {
  auto document = override.config_json
                      ? ConfigDocument::from_json(*override.config_json, files.name)
                      : read_config(files);
  if (!document.ok()) {
    return document.error();
  }
  if (document->words().backend.empty() && document->words().platform.empty() &&
      !document->words().is_ensemble()) {
    document->assume_backend("onnxruntime");
  }
  document->complete_defaults();
  const ModelConfig words = document->words();
  if (words.is_ensemble()) {
    SEPTET_TRY(check_ensemble(words));
    auto side = read_side_files(files, words);
    if (!side.ok()) {
      return side.error();
    }
    return std::make_shared<ServedModel>(std::move(*document), version, std::move(*side), nullptr,
                                         std::vector<std::unique_ptr<ModelInstance>>());
  }
  if (options_.instances) {
    document->set_instance_count(*options_.instances);
  }
  auto backend = backend_for(document->words());
  if (!backend.ok()) {
    return backend.error();
  }
  return start_version(files, version, std::move(*document), {**backend, options_.rate_gate});
}

Result<std::map<std::int64_t, ModelHandle>> ModelStore::load_versions(
    const ModelFiles& files, const LoadOverride& override) {
  auto document = override.config_json
                      ? ConfigDocument::from_json(*override.config_json, files.name)
                      : read_config(files);
  if (!document.ok()) {
    return document.error();
  }
  const std::vector<std::int64_t> selected =
      select_versions(document->words().version_policy, files.versions);
  if (selected.empty()) {
    return make_error(ErrorKind::kNotFound,
                      fmt::format("at least one version must be available under the version "
                                  "policy of model '{}'",
                                  files.name),
                      fmt::format("put the model file into {}/1/", files.folder));
  }
  std::map<std::int64_t, ModelHandle> versions;
  for (const std::int64_t version : selected) {
    auto handle = load_version(files, version, override);
    if (!handle.ok()) {
      for (auto& [number, loaded] : versions) {
        loaded->scheduler().drain();
      }
      return handle.error();
    }
    versions[version] = std::move(*handle);
  }
  return versions;
}

Result<Ok> ModelStore::load(const std::string& name, const LoadOverride& override) {
  OverrideFolder folder;
  if (!override.files.empty() && !override.config_json) {
    return in_model(
        name, make_error(ErrorKind::kUsage, "'file:' parameters need the parameter 'config'"));
  }
  auto files = override.files.empty() ? find_files(name) : folder.write(name, override.files);
  if (!files.ok()) {
    return in_model(name, files.error());
  }
  set_state(*files, "LOADING", "");
  auto versions = load_versions(*files, override);
  if (!versions.ok()) {
    set_state(*files, "UNAVAILABLE", versions.error().message);
    return in_model(name, versions.error());
  }
  replace(name, std::move(*versions), "unloaded");
  warn_of(name);
  return Ok{};
}

void ModelStore::warn_of(const std::string& name) const {
  const auto model = find(name, "");
  if (model.ok() && options_.on_warning && (*model)->config().backend == "onnxruntime" &&
      (*model)->config().asks_for_gpu()) {
    options_.on_warning(
        fmt::format("model '{}' has instances of KIND_GPU; there is no CUDA provider here, so they "
                    "run on the CPU; KIND_CPU says the same without this warning",
                    name));
  }
}

// The state of versions that do not serve; those that do stay READY.
void ModelStore::set_state(const ModelFiles& files, const std::string& state,
                           const std::string& reason) {
  std::vector<std::int64_t> versions = files.versions;
  if (versions.empty()) {
    versions.push_back(1);
  }
  const std::lock_guard lock(mutex_);
  Entry& entry = models_[files.name];
  for (const std::int64_t version : versions) {
    if (!entry.versions.contains(version)) {
      entry.states[version] = {files.name, fmt::to_string(version), state, reason};
    }
  }
}

void ModelStore::replace(const std::string& name, std::map<std::int64_t, ModelHandle> versions,
                         const std::string& state_of_removed) {
  std::map<std::int64_t, ModelHandle> old;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = models_[name];
    old.swap(entry.versions);
    entry.versions = std::move(versions);
    for (const auto& [version, handle] : old) {
      entry.states[version] = {name, fmt::to_string(version), "UNAVAILABLE", state_of_removed};
    }
    std::erase_if(entry.states, [](const auto& state) { return state.second.state == "LOADING"; });
    for (const auto& [version, handle] : entry.versions) {
      entry.states[version] = {name, fmt::to_string(version), "READY", ""};
    }
  }
  for (const auto& [version, handle] : old) {
    handle->scheduler().drain();
  }
}

std::vector<Error> ModelStore::follow_repository() {
  const auto known = names();
  if (!known.ok()) {
    return {known.error()};
  }
  std::vector<Error> errors;
  std::map<std::string, std::string> seen;
  for (const std::string& name : *known) {
    if (const auto files = find_files(name); files.ok()) {
      seen[name] = folder_signature(*files);
    }
  }
  for (const auto& [name, signature] : seen) {
    const auto before = signatures_.find(name);
    if (before == signatures_.end() || before->second != signature) {
      if (const auto loaded = load(name); !loaded.ok()) {
        errors.push_back(loaded.error());
      }
    }
  }
  for (const auto& [name, signature] : signatures_) {
    if (!seen.contains(name)) {
      if (const auto unloaded = unload(name); !unloaded.ok()) {
        errors.push_back(unloaded.error());
      }
    }
  }
  signatures_ = std::move(seen);
  return errors;
}

Result<Ok> ModelStore::unload(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = models_.find(name);
    if (found == models_.end() || found->second.states.empty()) {
      return make_error(ErrorKind::kNotFound,
                        fmt::format("failed to unload '{}', versions that are still available: "
                                    "none; the model is not loaded",
                                    name));
    }
  }
  replace(name, {}, "unloaded");
  return Ok{};
}

void ModelStore::drain_all() {
  for (const ModelHandle& handle : loaded()) {
    handle->scheduler().drain();
  }
}

Outcome<ModelHandle> ModelStore::find(const std::string& name, const std::string& version) const {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end() || found->second.states.empty()) {
    return inference::not_found(fmt::format("Request for unknown model: '{}' is not found", name));
  }
  const Entry& entry = found->second;
  if (version.empty()) {
    if (entry.versions.empty()) {
      return inference::unavailable(
          fmt::format("Request for unknown model: '{}' has no available versions", name));
    }
    return entry.versions.rbegin()->second;
  }
  const auto number = parse_int(version);
  if (!number) {
    return inference::invalid_argument(
        fmt::format("failed to get model version from specified version string '{}'", version));
  }
  const auto handle = entry.versions.find(*number);
  if (handle != entry.versions.end()) {
    return handle->second;
  }
  if (entry.states.contains(*number)) {
    return inference::unavailable(fmt::format(
        "Request for unknown model: '{}' version {} is not at ready state", name, version));
  }
  return inference::not_found(
      fmt::format("Request for unknown model: '{}' version {} is not found", name, version));
}

bool ModelStore::is_ready(const std::string& name, const std::string& version) const {
  return find(name, version).ok();
}

bool ModelStore::all_ready() const {
  const std::lock_guard lock(mutex_);
  return std::all_of(models_.begin(), models_.end(), [](const auto& model) {
    const auto& states = model.second.states;
    return std::all_of(states.begin(), states.end(), [](const auto& state) {
      return state.second.state == "READY" || state.second.reason == "unloaded";
    });
  });
}

std::vector<IndexEntry> ModelStore::index(bool ready_only) const {
  std::vector<std::string> known;
  if (auto listed = names(); listed.ok()) {
    known = std::move(*listed);
  }
  std::vector<IndexEntry> entries;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, entry] : models_) {
    for (const auto& [version, state] : entry.states) {
      if (!ready_only || state.state == "READY") {
        entries.push_back(state);
      }
    }
  }
  for (const std::string& name : known) {
    const auto found = models_.find(name);
    if (!ready_only && (found == models_.end() || found->second.states.empty())) {
      entries.push_back({.name = name});
    }
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const IndexEntry& a, const IndexEntry& b) { return a.name < b.name; });
  return entries;
}

std::vector<ModelHandle> ModelStore::loaded() const {
  const std::lock_guard lock(mutex_);
  std::vector<ModelHandle> handles;
  for (const auto& [name, entry] : models_) {
    for (const auto& [version, handle] : entry.versions) {
      handles.push_back(handle);
    }
  }
  return handles;
}

std::vector<std::string> ModelStore::ready_versions(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> versions;
  if (const auto found = models_.find(name); found != models_.end()) {
    for (const auto& [version, handle] : found->second.versions) {
      versions.push_back(fmt::to_string(version));
    }
  }
  return versions;
}

}  // namespace septet::serve
