#include "os/owned_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "os/owner_tag.h"

namespace septet::os {
namespace {

constexpr std::string_view kPrefix = "septet.";

std::string parent_folder(const std::string& parent) {
  if (!parent.empty()) {
    return parent;
  }
  const char* temporary = getenv("TMPDIR");
  return temporary != nullptr && *temporary != '\0' ? temporary : "/tmp";
}

bool is_orphan(std::string_view name) {
  const std::size_t last_dot = name.rfind('.');
  return name.starts_with(kPrefix) && last_dot > kPrefix.size() &&
         owner_is_gone(name.substr(kPrefix.size(), last_dot - kPrefix.size()));
}

}  // namespace

Result<std::unique_ptr<OwnedFolder>> OwnedFolder::create(const std::string& name,
                                                         const std::string& parent) {
  const std::string path =
      fmt::format("{}/{}{}.{}", parent_folder(parent), kPrefix, owner_tag(), name);
  if (mkdir(path.c_str(), 0700) != 0) {
    return make_error(errno == EACCES ? ErrorKind::kPermission : ErrorKind::kFailed,
                      fmt::format("cannot make folder {}: {}", path, std::strerror(errno)),
                      "set TMPDIR to a folder that can be written");
  }
  return std::unique_ptr<OwnedFolder>(new OwnedFolder(path));
}

OwnedFolder::~OwnedFolder() {
  std::error_code ignored;  // the next run sweeps what could not be removed
  std::filesystem::remove_all(path_, ignored);
}

int sweep_folders(const std::string& parent) {
  std::vector<std::filesystem::path> orphans;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(parent_folder(parent), error)) {
    if (is_orphan(entry.path().filename().string())) {
      orphans.push_back(entry.path());
    }
  }
  int removed = 0;
  for (const std::filesystem::path& orphan : orphans) {
    std::filesystem::remove_all(orphan, error);
    removed += error ? 0 : 1;
  }
  return removed;
}

}  // namespace septet::os
