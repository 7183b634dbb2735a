// serve_overhead saturation|added REPOSITORY MODEL ROUNDS [CLIENTS]: what serving costs on top of
// the engine.
//
//   saturation   rounds alternate between the bare engine (one thread, nothing but runs, at the
//                batch size that is best for it) and the whole server with so many clients
//   added        single requests alternate between the bare engine, the unloaded server, and the
//                server with the body in a slot of shared memory, as the balancer hands it over
//
// Server, clients and the bare engine stand in one process, the clients behind a Unix socket.
// Prints one Markdown row: medians over the rounds and the spread from the smallest to the largest.
// The figures only mean something on a machine that does nothing else.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <thread>

#include "inference/slot_message.h"
#include "os/clock.h"
#include "os/sealed_memory.h"
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
constexpr Duration kShortTime = septet::milliseconds(500);

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

std::string with_spread(std::vector<double> values, int digits) {
  std::sort(values.begin(), values.end());
  return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", median(values), digits, values.front(), digits,
                     values.back(), digits);
}

// How often per second something can be done, over that time.
template <typename Once>
double rate(Duration time, Once&& once) {
  const Instant start = septet::os::now();
  std::size_t count = 0;
  Instant now = start;
  while (now - start < time) {
    once();
    ++count;
    now = septet::os::now();
  }
  return static_cast<double>(count) / septet::to_seconds(now - start);
}

// Zeros for every input, free dimensions 1.
inference::InferRequest zeros(const inference::ModelConfig& config, int batch) {
  inference::InferRequest request;
  request.model_name = config.name;
  request.binary_outputs = true;
  for (const inference::TensorConfig& input : config.inputs) {
    inference::InputTensor& tensor = request.inputs.emplace_back();
    tensor.name = input.name;
    tensor.datatype = input.datatype;
    tensor.shape = serve::client_shape(config, input);
    std::replace(tensor.shape.begin(), tensor.shape.end(), std::int64_t{-1}, std::int64_t{1});
    if (config.max_batch_size > 0) {
      tensor.shape.front() = batch;
    }
    const auto size = inference::byte_size(input.datatype, tensor.shape).value_or(0);
    tensor.data = inference::own_bytes(std::vector<std::byte>(size));
  }
  return request;
}

// The engine alone.
class Bare {
 public:
  Bare(serve::Backend& backend, const serve::ServedModel& served, const std::string& repository)
      : config_(served.config()) {
    const std::string folder = repository + "/" + config_.name;
    const std::string version_folder = folder + "/" + served.version();
    auto model = backend.load({config_.name, folder, version_folder, &config_});
    model_ = std::move(model).value();
    instance_ = model_->make_instance(config_, 0).value();
    for (const auto& output : config_.outputs) {
      outputs_.push_back(output.name);
    }
    set_batch(1);
  }

  void set_batch(int batch) {
    batch_ = batch;
    request_ = zeros(config_, batch);
    const serve::BatchMember member{&request_, batch};
    CHECK(inputs_.gather(config_, std::span(&member, 1)).ok());
  }
  int batch() const { return batch_; }

  void run() {
    CHECK(instance_->run({.inputs = inputs_.tensors(), .outputs = outputs_, .batch_size = batch_})
              .ok());
  }

  // Chooses the batch with the highest rate of single inferences.
  void choose_batch() {
    int best = 1;
    double best_rate = 0;
    for (int batch = 1; batch <= std::max(config_.max_batch_size, 1); batch *= 2) {
      set_batch(batch);
      run();
      const double inferences = batch * rate(kShortTime, [this] { run(); });
      if (inferences > best_rate) {
        best = batch;
        best_rate = inferences;
      }
    }
    set_batch(best);
  }

 private:
  inference::ModelConfig config_;
  int batch_ = 1;
  inference::InferRequest request_;
  serve::BatchInputs inputs_;
  std::vector<std::string> outputs_;
  std::unique_ptr<serve::BackendModel> model_;
  std::unique_ptr<serve::ModelInstance> instance_;
};

// One client's requests, one inference each.
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

// The same from a slot of shared memory, as the balancer asks: the body lies there already.
class SlotClient {
 public:
  SlotClient(const septet::os::Endpoint& endpoint, const inference::InferRequest& request)
      : http_(endpoint) {
    const inference::V2Message message = write_request(request);
    std::string body = message.json;
    for (const inference::Blob& piece : message.binary) {
      body += piece.text();
    }
    const std::size_t lead = 64 - message.json.size() % 64;  // aligns the tensors
    region_ = septet::os::SealedMemory::create("bench", std::bit_ceil(lead + body.size())).value();
    std::copy(body.begin(), body.end(), reinterpret_cast<char*>(region_->data()) + lead);
    text_ = fmt::format(
        "POST /v2/models/{}/infer HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: "
        "{}\r\n{}: ",
        request.model_name, message.json.size(), inference::kSlotField);
    inference::append_slot_message(text_, {region_->size(), lead, body.size()});
    text_ += "\r\nContent-Length: 0\r\n\r\n";
    http_.send(text_, region_->fd());
    CHECK(http_.receive().status == 200);
  }
  void run() {
    http_.send(text_);
    CHECK(http_.receive().status == 200);
  }

 private:
  HttpClient http_;
  std::shared_ptr<septet::os::SealedMemory> region_;
  std::string text_;
};

// A server with one model, and the same model bare.
class Bench {
 public:
  Bench(const std::string& repository, const std::string& model)
      : model_(model),
        store_({repository}, {&onnx_}),
        server_({}, store_),
        frontend_(server_),
        http_(loop_, frontend_) {
    if (const auto loaded = store_.load(model); !loaded.ok()) {
      fmt::print(stderr, "serve_overhead: {}\n", loaded.error().text());
      std::exit(1);
    }
    endpoint_.unix_path = folder_.path() + "/bench.sock";
    CHECK(http_.listen(endpoint_).ok());
    reactor_ = std::thread([this] { loop_.run(); });
    const serve::ModelHandle handle = store_.find(model, "").value();
    request_ = zeros(handle->config(), 1);
    bare_ = std::make_unique<Bare>(onnx_, *handle, repository);
  }
  ~Bench() {
    store_.drain_all();
    loop_.stop();
    reactor_.join();
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void print_saturation(int rounds, int clients) {
    bare_->choose_batch();
    std::vector<double> alone, served, share;
    for (int i = 0; i < rounds; ++i) {
      alone.push_back(bare_->batch() * rate(kRoundTime, [this] { bare_->run(); }));
      served.push_back(saturated_rate(clients));
      share.push_back(100 * served.back() / alone.back());
    }
    fmt::print("| {} | {} | {} | {} | {} | {} % |\n", model_, bare_->batch(), clients,
               with_spread(alone, 1), with_spread(served, 1), with_spread(share, 1));
  }

  void print_added(int rounds) {
    Client client(endpoint_, request_);
    client.run();
    SlotClient slot_client(endpoint_, request_);
    std::vector<double> alone, served, added, in_slot;
    for (int i = 0; i < rounds; ++i) {
      std::vector<double> alone_us, served_us, slot_us;
      const auto time_of = [](auto& one) {
        const Instant before = septet::os::now();
        one.run();
        return septet::to_microseconds(septet::os::now() - before);
      };
      const Instant start = septet::os::now();
      while (septet::os::now() - start < kRoundTime) {
        alone_us.push_back(time_of(*bare_));
        served_us.push_back(time_of(client));
        slot_us.push_back(time_of(slot_client));
      }
      alone.push_back(median(alone_us));
      served.push_back(median(served_us));
      added.push_back(served.back() - alone.back());
      in_slot.push_back(median(slot_us) - alone.back());
    }
    std::size_t bytes = 0;
    for (const inference::InputTensor& input : request_.inputs) {
      bytes += input.data.size();
    }
    fmt::print("| {} | {} | {} | {} | {} | {} |\n", model_, bytes, with_spread(alone, 0),
               with_spread(served, 0), with_spread(added, 0), with_spread(in_slot, 0));
  }

 private:
  double saturated_rate(int clients) {
    std::atomic<bool> stop = false;
    std::atomic<std::size_t> answers = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < clients; ++i) {
      threads.emplace_back([&] {
        Client client(endpoint_, request_);
        while (!stop) {
          client.run();
          ++answers;
        }
      });
    }
    std::this_thread::sleep_for(kShortTime);  // until all are under way
    const std::size_t before = answers;
    const Instant start = septet::os::now();
    std::this_thread::sleep_for(kRoundTime);
    const double seconds = septet::to_seconds(septet::os::now() - start);
    const double per_second = static_cast<double>(answers - before) / seconds;
    stop = true;
    for (std::thread& thread : threads) {
      thread.join();
    }
    return per_second;
  }

  std::string model_;
  septet::test_support::TemporaryFolder folder_;
  serve::OnnxRuntime onnx_;
  serve::ModelStore store_;
  serve::InferenceServer server_;
  septet::os::EventLoop loop_;
  serve::HttpFrontend frontend_;
  serve::HttpServer http_;
  septet::os::Endpoint endpoint_;
  std::thread reactor_;
  inference::InferRequest request_;
  std::unique_ptr<Bare> bare_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (argc < 5 || (what != "saturation" && what != "added")) {
    fmt::print(stderr,
               "usage: serve_overhead saturation|added REPOSITORY MODEL ROUNDS [CLIENTS]\n");
    return 2;
  }
  Bench bench(argv[2], argv[3]);
  if (what == "added") {
    bench.print_added(std::atoi(argv[4]));
  } else {
    bench.print_saturation(std::atoi(argv[4]), argc > 5 ? std::atoi(argv[5]) : 3);
  }
  return 0;
}
