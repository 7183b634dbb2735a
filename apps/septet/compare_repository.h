// Where septet compare finds its model.
#pragma once

#include <string>

#include "base/result.h"

namespace septet::app {

// The folder of models that was named, or the one here or beside the program. kNotFound.
Result<std::string> find_repository(const std::string& named);

// kNotFound when the folder has no such model; names those it has.
Result<Ok> check_model(const std::string& repository, const std::string& model);

}  // namespace septet::app
