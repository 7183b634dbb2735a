// ModelStore: the models of a repository: which are loaded, loading, broken, and why.
//
// load and unload block, so a control thread calls them, one at a time; everything else may be
// called by any thread. A new version is loaded beside the old one and replaces it in one step; the
// old one answers what it has queued and goes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/edge/model_files.h"
#include "serve/edge/rate_gate.h"
#include "serve/edge/served_model.h"

namespace septet::serve {

using ModelHandle = std::shared_ptr<ServedModel>;

struct IndexEntry {
  std::string name{};
  std::string version{};  // empty for a model that was never loaded
  std::string state{};    // READY, UNAVAILABLE, LOADING, UNLOADING; empty as above
  std::string reason{};
};

// What holds for every model, whatever its configuration says.
struct StoreOptions {
  std::optional<int> instances{};  // of each model
  RateGate* rate_gate = nullptr;   // what instances pass before they run; null = nothing
  // Told, by the control thread, what was loaded and works otherwise than its configuration says.
  std::function<void(const std::string&)> on_warning{};
};

// What stands before a path among the parameters of a load call.
inline constexpr std::string_view kFilePrefix = "file:";

// Replaces what the repository says, for one load. With files, they alone are the model's folder.
struct LoadOverride {
  std::optional<std::string> config_json{};
  std::map<std::string, std::string> files{};  // bytes by path below the model's folder
};

class ModelStore {
 public:
  // The backends outlive the store. repositories: folders, the first that has a model wins.
  ModelStore(std::vector<std::string> repositories, std::vector<Backend*> backends,
             StoreOptions options = {});
  // Drains and unloads everything.
  ~ModelStore();
  ModelStore(const ModelStore&) = delete;
  ModelStore& operator=(const ModelStore&) = delete;

  // Names in the repositories, in order.
  Result<std::vector<std::string>> names() const;

  // Loads or reloads. On failure what served before goes on serving.
  [[nodiscard]] Result<Ok> load(const std::string& name, const LoadOverride& override = {});
  // Loads what is new or changed since the last call and unloads what is gone; the errors of what
  // could not be loaded.
  std::vector<Error> follow_repository();
  // Answers what is queued, then forgets. kNotFound when the model is unknown.
  [[nodiscard]] Result<Ok> unload(const std::string& name);
  // Stops taking requests, answers what is queued.
  void drain_all();

  // The version asked for, or the newest. kNotFound or kUnavailable.
  Outcome<ModelHandle> find(const std::string& name, const std::string& version) const;
  bool is_ready(const std::string& name, const std::string& version) const;
  // Whether no model that was asked for is missing or broken.
  bool all_ready() const;
  std::vector<IndexEntry> index(bool ready_only) const;
  // Every loaded version, by name and version.
  std::vector<ModelHandle> loaded() const;
  // The ready versions of a model, ascending.
  std::vector<std::string> ready_versions(const std::string& name) const;

 private:
  struct Entry {
    std::map<std::int64_t, ModelHandle> versions{};
    std::map<std::int64_t, IndexEntry> states{};
  };

  Result<ModelFiles> find_files(const std::string& name) const;
  Result<std::map<std::int64_t, ModelHandle>> load_versions(const ModelFiles& files,
                                                            const LoadOverride& override);
  Result<ModelHandle> load_version(const ModelFiles& files, std::int64_t version,
                                   const LoadOverride& override);
  Result<Backend*> backend_for(const inference::ModelConfig& config) const;
  void warn_of(const std::string& name) const;
  void set_state(const ModelFiles& files, const std::string& state, const std::string& reason);
  void replace(const std::string& name, std::map<std::int64_t, ModelHandle> versions,
               const std::string& state_of_removed);

  std::vector<std::string> repositories_;
  std::vector<Backend*> backends_;
  StoreOptions options_;
  mutable std::mutex mutex_;  // guards models_; held for look-ups only
  std::map<std::string, Entry> models_;
  std::map<std::string, std::string> signatures_;  // of the control thread alone
};

}  // namespace septet::serve
