// Files that survive a crash: written whole or not at all, and on the disk when the call returns.
//
// Free functions and one small owner; any thread, one per file.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "os/unique_fd.h"

namespace septet::os {

// Makes the folder and those above it, readable by everybody, writable by this user.
Result<Ok> make_folder(const std::string& path);

// The whole file. kNotFound when there is none; kFailed above the limit.
Result<std::string> read_whole_file(const std::string& path,
                                    std::size_t most_bytes = std::size_t{16} << 20);

// Replaces the file by the text: temporary file beside it, fsync, rename, fsync of the folder. A
// reader, and a crash at any moment, sees the old text or the new one.
Result<Ok> replace_file(const std::string& path, std::string_view text);

// Removes the file and makes that durable; no file is fine.
Result<Ok> remove_file(const std::string& path);

// A file that only grows.
class AppendFile {
 public:
  // The file must exist.
  static Result<AppendFile> open(const std::string& path);
  // Makes the file, or empties the one that is there; a pipe or a terminal may stand in for it.
  static Result<AppendFile> create(const std::string& path);
  // On the disk when it returns: also a crash of the machine keeps it.
  Result<Ok> append(std::string_view text);
  // In the kernel when it returns: also a kill of the process keeps it.
  Result<Ok> append_unsynced(std::string_view text);

 private:
  AppendFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  UniqueFd fd_;
};

}  // namespace septet::os
