#include "os/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace septet::os {
namespace {

Error file_error(const char* action, const std::string& path, int code) {
  const ErrorKind kind = code == ENOENT                                     ? ErrorKind::kNotFound
                         : code == EACCES || code == EPERM || code == EROFS ? ErrorKind::kPermission
                                                                            : ErrorKind::kFailed;
  return make_error(kind, fmt::format("cannot {} {}: {}", action, path, std::strerror(code)));
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

Result<Ok> sync_folder(const std::string& path) {
  const std::string folder = folder_of(path);
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) {
    return file_error("sync", folder, errno);
  }
  return Ok{};
}

Result<Ok> write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      return file_error("write", path, errno);
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return Ok{};
}

}  // namespace

Result<Ok> make_folder(const std::string& path) {
  for (std::size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') {
      continue;
    }
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), 0755) != 0 && errno != EEXIST) {
      return file_error("make folder", part, errno);
    }
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return file_error("use folder", path, ENOTDIR);
  }
  return Ok{};
}

Result<std::string> read_whole_file(const std::string& path, std::size_t most_bytes) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return file_error("open", path, errno);
  }
  std::string text;
  std::array<char, 65536> piece;
  while (true) {
    const ssize_t count = ::read(fd.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return file_error("read", path, errno);
    }
    if (count == 0) {
      return text;
    }
    text.append(piece.data(), static_cast<std::size_t>(count));
    if (text.size() > most_bytes) {
      return make_error(ErrorKind::kFailed,
                        fmt::format("{} is larger than {} bytes", path, most_bytes));
    }
  }
}

Result<Ok> replace_file(const std::string& path, std::string_view text) {
  const std::string temporary = fmt::format("{}.new.{}", path, ::getpid());
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) {
    return file_error("create", temporary, errno);
  }
  if (auto written = write_all(fd.get(), text, temporary); !written.ok()) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (::fsync(fd.get()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int code = errno;
    ::unlink(temporary.c_str());
    return file_error("write", path, code);
  }
  return sync_folder(path);
}

Result<Ok> remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0) {
    return errno == ENOENT ? Result<Ok>(Ok{}) : file_error("remove", path, errno);
  }
  return sync_folder(path);
}

Result<AppendFile> AppendFile::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd.valid()) {
    return file_error("open", path, errno);
  }
  return AppendFile(path, std::move(fd));
}

Result<AppendFile> AppendFile::create(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) {
    return file_error("create", path, errno);
  }
  return AppendFile(path, std::move(fd));
}

Result<Ok> AppendFile::append_unsynced(std::string_view text) {
  return write_all(fd_.get(), text, path_);
}

Result<Ok> AppendFile::append(std::string_view text) {
  SEPTET_TRY(append_unsynced(text));
  // Pipes, terminals and /dev/null have nothing to sync and say EINVAL.
  if (::fdatasync(fd_.get()) != 0 && errno != EINVAL) {
    return file_error("sync", path_, errno);
  }
  return Ok{};
}

}  // namespace septet::os
