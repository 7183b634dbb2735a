// Reads whole text files that may be gzip-compressed.
#pragma once

#include <string>

#include "base/result.h"

namespace septet::measure {

// The plain text of a file, compressed or not. kNotFound when there is none; kFailed when it is
// damaged or larger than 1 GiB.
Result<std::string> read_compressed_file(const std::string& path);

}  // namespace septet::measure
