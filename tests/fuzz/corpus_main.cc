// Runs a fuzz target over the files of its corpus, and over each of them cut short at every byte
// and with every byte flipped once: a test in builds without libFuzzer.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

// Mutating a large file at every byte would take too long; its first bytes carry the structure.
constexpr std::size_t kMostMutations = 4096;

void run(const std::vector<std::uint8_t>& bytes) {
  // An exact copy, so that a sanitizer sees a read past the end.
  const std::vector<std::uint8_t> exact(bytes);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

void run_all(std::vector<std::uint8_t> bytes) {
  run(bytes);
  for (std::size_t i = 0; i < bytes.size() && i < kMostMutations; ++i) {
    run({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(i)});
    bytes[i] ^= 0x41;
    run(bytes);
    bytes[i] ^= 0x41;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      run_all({std::istreambuf_iterator<char>(file), {}});
      ++files;
    }
  }
  std::printf("%zu files\n", files);
  return files == 0 ? 1 : 0;
}
