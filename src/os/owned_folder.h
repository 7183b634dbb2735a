// OwnedFolder: a private folder for sockets, logs and state of one run of the program; gone at the
// end of its life, and found by the next run if its owner was killed.
//
// Owned by a verb. The path is short, because Unix socket paths in it are limited to 107 bytes.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace septet::os {

class OwnedFolder {
 public:
  // Makes PARENT/septet.OWNERTAG.NAME, readable by this user only. An empty parent is $TMPDIR, or
  // /tmp.
  static Result<std::unique_ptr<OwnedFolder>> create(const std::string& name,
                                                     const std::string& parent = {});
  // Removes it with everything in it.
  ~OwnedFolder();
  OwnedFolder(const OwnedFolder&) = delete;
  OwnedFolder& operator=(const OwnedFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit OwnedFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Removes the folders whose owner is gone; returns how many. An empty parent as in create().
int sweep_folders(const std::string& parent = {});

}  // namespace septet::os
