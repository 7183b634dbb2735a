// serve_overhead REPOSITORY MODEL [ROUNDS]: what serving costs on top of the engine.
//
// Rounds alternate between the bare engine (one thread, nothing but runs) and the whole server in
// the same process over a Unix socket: saturated (three clients), and unloaded (one client). Prints
// medians over the rounds. The figures only mean something on a machine that does nothing else.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "os/clock.h"
#include "serve/edge/http_frontend.h"
#include "serve/edge/onnx_runtime.h"
#include "support/test_server.h"

namespace {

namespace serve = septet::serve;
namespace inference = septet::inference;
using septet::Duration;
using septet::Instant;
using septet::test_support::HttpClient;

constexpr Duration kRoundTime = septet::seconds(3);
constexpr int kSaturatingClients = 3;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// Repeats until the round is over; the time of each in microseconds.
template <typename Once>
std::vector<double> repeat(Once&& once) {
  std::vector<double> times_us;
  const Instant start = septet::os::now();
  for (Instant before = start; before - start < kRoundTime;) {
    once();
    const Instant after = septet::os::now();
    times_us.push_back(septet::to_microseconds(after - before));
    before = after;
  }
  return times_us;
}

double per_second(std::size_t count) {
  return static_cast<double>(count) / septet::to_seconds(kRoundTime);
}

// Zeros for every input, batch 1, free dimensions 1.
inference::InferRequest zeros(const inference::ModelConfig& config) {
  inference::InferRequest request;
  request.model_name = config.name;
  request.binary_outputs = true;
  for (const inference::TensorConfig& input : config.inputs) {
    inference::InputTensor& tensor = request.inputs.emplace_back();
    tensor.name = input.name;
    tensor.datatype = input.datatype;
    tensor.shape = serve::client_shape(config, input);
    std::replace(tensor.shape.begin(), tensor.shape.end(), std::int64_t{-1}, std::int64_t{1});
    const auto size = inference::byte_size(input.datatype, tensor.shape).value_or(0);
    tensor.data = inference::own_bytes(std::vector<std::byte>(size));
  }
  return request;
}

// The engine alone.
class Bare {
 public:
  Bare(serve::Backend& backend, const serve::ServedModel& served, const std::string& repository)
      : config_(served.config()), request_(zeros(config_)) {
    const std::string folder = repository + "/" + config_.name;
    const std::string version_folder = folder + "/" + served.version();
    auto model = backend.load({config_.name, folder, version_folder, &config_});
    model_ = std::move(model).value();
    instance_ = model_->make_instance(config_, 0).value();
    const serve::BatchMember member{&request_, 1};
    CHECK(inputs_.gather(config_, std::span(&member, 1)).ok());
    for (const auto& output : config_.outputs) {
      outputs_.push_back(output.name);
    }
  }

  void run() { CHECK(instance_->run({.inputs = inputs_.tensors(), .outputs = outputs_}).ok()); }

 private:
  inference::ModelConfig config_;
  inference::InferRequest request_;
  serve::BatchInputs inputs_;
  std::vector<std::string> outputs_;
  std::unique_ptr<serve::BackendModel> model_;
  std::unique_ptr<serve::ModelInstance> instance_;
};

// One client's requests, as many as fit into a round.
class Client {
 public:
  Client(const septet::os::Endpoint& endpoint, const inference::InferRequest& request)
      : http_(endpoint), target_("/v2/models/" + request.model_name + "/infer") {
    const inference::V2Message message = write_request(request);
    body_ = message.json;
    fields_ = fmt::format("Inference-Header-Content-Length: {}\r\n", body_.size());
    for (const inference::Blob& piece : message.binary) {
      body_ += piece.text();
    }
  }
  void run() { CHECK(http_.post(target_, body_, fields_).status == 200); }

 private:
  HttpClient http_;
  std::string target_;
  std::string fields_;
  std::string body_;
};

double saturated(const septet::os::Endpoint& endpoint, const inference::InferRequest& request) {
  std::atomic<std::size_t> count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kSaturatingClients; ++i) {
    threads.emplace_back([&] {
      Client client(endpoint, request);
      count += repeat([&] { client.run(); }).size();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return per_second(count);
}

int run(const std::string& repository, const std::string& model, int rounds) {
  serve::OnnxRuntime onnx;
  serve::ModelStore store({repository}, {&onnx});
  serve::InferenceServer server({}, store);
  if (const auto loaded = store.load(model); !loaded.ok()) {
    fmt::print(stderr, "serve_overhead: {}\n", loaded.error().text());
    return 1;
  }
  septet::os::EventLoop loop;
  serve::HttpFrontend frontend(server);
  serve::HttpServer http(loop, frontend);
  const septet::test_support::TemporaryFolder folder;
  septet::os::Endpoint wanted;
  wanted.unix_path = folder.path() + "/bench.sock";
  const septet::os::Endpoint endpoint = http.listen(wanted).value();
  std::thread reactor([&] { loop.run(); });
  std::vector<double> bare_rate, bare_us, served_rate, served_us;
  {
    const serve::ModelHandle handle = store.find(model, "").value();
    Bare bare(onnx, *handle, repository);
    const inference::InferRequest request = zeros(handle->config());
    Client client(endpoint, request);
    bare.run();
    client.run();
    for (int i = 0; i < rounds; ++i) {
      const std::vector<double> alone = repeat([&] { bare.run(); });
      bare_rate.push_back(per_second(alone.size()));
      bare_us.push_back(median(alone));
      served_rate.push_back(saturated(endpoint, request));
      served_us.push_back(median(repeat([&] { client.run(); })));
    }
  }
  fmt::print("{}: bare engine {:.1f}/s, median {:.0f} us\n", model, median(bare_rate),
             median(bare_us));
  fmt::print("{}: served, saturated {:.1f}/s = {:.1f} % of bare\n", model, median(served_rate),
             100 * median(served_rate) / median(bare_rate));
  fmt::print("{}: served, unloaded median {:.0f} us = {:+.0f} us\n", model, median(served_us),
             median(served_us) - median(bare_us));
  store.drain_all();
  loop.stop();
  reactor.join();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: serve_overhead REPOSITORY MODEL [ROUNDS]\n");
    return 2;
  }
  return run(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 5);
}
