#include "measure/edge/compressed_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace septet::measure {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;

}  // namespace

Result<std::string> read_compressed_file(const std::string& path) {
  errno = 0;
  // zlib reads uncompressed files as they are.
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr) {
    return make_error(errno == ENOENT ? ErrorKind::kNotFound : ErrorKind::kFailed,
                      fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  }
  std::string text;
  std::array<char, 65'536> piece;
  for (;;) {
    const int got = gzread(file.get(), piece.data(), piece.size());
    int status = Z_OK;
    const char* reason = gzerror(file.get(), &status);
    if (got < 0 || (status != Z_OK && status != Z_STREAM_END)) {
      return make_error(ErrorKind::kFailed, fmt::format("cannot read {}: {}", path, reason));
    }
    if (got == 0) {
      return text;
    }
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostBytes) {
      return make_error(ErrorKind::kFailed,
                        fmt::format("{} is larger than {} bytes", path, kMostBytes));
    }
  }
}

}  // namespace septet::measure
