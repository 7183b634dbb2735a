#include "serve/edge/override_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "serve/model_versions.h"

namespace septet::serve {

namespace fs = std::filesystem;

OverrideFolder::~OverrideFolder() {
  if (!path_.empty()) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
}

Result<ModelFiles> OverrideFolder::write(const std::string& model_name,
                                         const std::map<std::string, std::string>& files) {
  std::error_code failed;
  std::string pattern = (fs::temp_directory_path(failed) / "septet-load-XXXXXX").string();
  if (failed || ::mkdtemp(pattern.data()) == nullptr) {
    return make_error(
        ErrorKind::kFailed,
        fmt::format("cannot make a folder for the files of '{}': {}", model_name,
                    std::strerror(errno)),
        "see that the folder for temporary files (TMPDIR) exists and can be written to");
  }
  path_ = pattern;
  const fs::path folder = fs::path(path_) / "model";
  for (const auto& [name, bytes] : files) {
    if (!is_safe_path(name)) {
      return make_error(ErrorKind::kUsage,
                        fmt::format("file '{}' leaves the folder of model '{}'", name, model_name),
                        "name it file:VERSION/NAME");
    }
    const fs::path path = folder / name;
    fs::create_directories(path.parent_path(), failed);
    std::ofstream file(path, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (failed || !file.flush()) {
      return make_error(ErrorKind::kFailed, fmt::format("cannot write {}", path.string()));
    }
  }
  ModelFiles written = files_of_folder(model_name, folder.string());
  if (written.versions.empty()) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("no file given for model '{}' lies in a version", model_name),
                      "name it file:VERSION/NAME");
  }
  return written;
}

}  // namespace septet::serve
