#include "compare_repository.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/text.h"
#include "os/process.h"

namespace septet::app {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<std::string> find_repository(const std::string& named) {
  if (!named.empty()) {
    return named;
  }
  const fs::path beside = fs::path(os::own_program_path()).parent_path() / "../../../models";
  for (const fs::path& candidate : {fs::path("models"), beside}) {
    if (fs::is_directory(candidate)) {
      return fs::weakly_canonical(candidate).string();
    }
  }
  return make_error(ErrorKind::kNotFound, "there is no model repository here",
                    "name one with --model-repository; scripts/setup makes one in models/");
}

Result<Ok> check_model(const std::string& repository, const std::string& model) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(repository, error)) {
    if (entry.is_directory()) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  if (error || std::find(names.begin(), names.end(), model) == names.end()) {
    return make_error(ErrorKind::kNotFound,
                      fmt::format("there is no model '{}' in {}", model, repository),
                      names.empty() ? "scripts/setup makes a model repository"
                                    : "there are " + join_words(names));
  }
  return Ok{};
}

}  // namespace septet::app
