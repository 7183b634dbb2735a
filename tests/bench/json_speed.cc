// json_speed [ROUNDS]: 1.3 MB of JSON numbers: simdjson alone against the v2 reader.
//
// simdjson's row parses the text and takes each number out of the document into a float, as any
// program must that wants the tensor; the reader also checks types, ranges and shape. Both keep
// their parser. Prints a Markdown table: processor time, medians over rounds that take turns.
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <functional>

#include "base/check.h"
#include "base/prng.h"
#include "inference/v2_codec.h"

namespace {

namespace inference = septet::inference;
constexpr std::size_t kElements = 150'528;  // a picture of 3x224x224
constexpr int kParsesPerRound = 20;

std::string picture_text() {
  septet::Prng prng(1);
  std::string text = fmt::format(
      R"({{"inputs":[{{"name":"IN","datatype":"FP32","shape":[{}],"data":[)", kElements);
  for (std::size_t i = 0; i < kElements; ++i) {
    text += fmt::format("{}{:.5f}", i == 0 ? "" : ",", 2 * prng.uniform() - 1);
  }
  return text + "]}]}";
}

// Processor time of this thread: a busy machine changes it little.
double thread_seconds() {
  timespec time{};
  CHECK(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double seconds_of(const std::function<void()>& once) {
  const double start = thread_seconds();
  for (int i = 0; i < kParsesPerRound; ++i) {
    once();
  }
  return (thread_seconds() - start) / kParsesPerRound;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 11;
  std::string text = picture_text();
  const std::size_t size = text.size();
  text.resize(size + inference::kBodyPadding);
  simdjson::dom::parser parser;
  std::vector<float> numbers(kElements);
  inference::V2Reader reader;

  const auto parse = [&] {
    simdjson::dom::element document;
    CHECK(parser.parse(text.data(), size, false).get(document) == simdjson::SUCCESS);
    return document;
  };
  const std::array<std::pair<std::string, std::function<void()>>, 3> ways = {{
      {"simdjson, parsed only", [&] { parse(); }},
      {"simdjson, numbers into floats",
       [&] {
         std::size_t at = 0;
         const simdjson::dom::element document = parse();
         for (const auto item : document["inputs"].at(0)["data"].get_array()) {
           numbers[at++] = static_cast<float>(item.get_double().value_unsafe());
         }
         CHECK(at == kElements);
       }},
      {"septet's v2 reader",
       [&] {
         const auto request =
             reader.read_request({std::as_bytes(std::span(text).first(size)), size, nullptr});
         CHECK(request.ok() && request->inputs[0].data.size() == 4 * kElements);
       }},
  }};
  std::array<std::vector<double>, 3> times;
  for (int i = 0; i < rounds; ++i) {
    for (std::size_t way = 0; way < ways.size(); ++way) {
      times[way].push_back(seconds_of(ways[way].second));
    }
  }
  for (auto& all : times) {
    std::sort(all.begin(), all.end());
  }
  fmt::print("| {} bytes of JSON | MB/s | us | against simdjson with floats |\n|---|---|---|---|\n",
             size);
  const double base = times[1][times[1].size() / 2];
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const double time = times[way][times[way].size() / 2];
    fmt::print("| {} | {:.0f} | {:.0f} ({:.0f} to {:.0f}) | {:.2f} |\n", ways[way].first,
               static_cast<double>(size) / time / 1e6, time * 1e6, times[way].front() * 1e6,
               times[way].back() * 1e6, base / time);
  }
  return 0;
}
