// OverrideFolder: the files that a load call brought along, as a model folder of their own.
//
// The repository stays as it is: the files stand in a private temporary folder for as long as the
// model is being loaded, and go with their owner. One control thread uses it.
#pragma once

#include <map>
#include <string>

#include "serve/edge/model_files.h"

namespace septet::serve {

class OverrideFolder {
 public:
  OverrideFolder() = default;
  ~OverrideFolder();
  OverrideFolder(const OverrideFolder&) = delete;
  OverrideFolder& operator=(const OverrideFolder&) = delete;

  // Writes the files, by path below the model's folder ("1/model.onnx"). kUsage when a path leaves
  // the folder or none lies in a version.
  Result<ModelFiles> write(const std::string& model_name,
                           const std::map<std::string, std::string>& files);

 private:
  std::string path_;
};

}  // namespace septet::serve
