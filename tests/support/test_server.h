// TestServer: a whole inference server in this process: a repository in a temporary folder, the
// fake engine, HTTP on a Unix socket. HttpClient: a small blocking client that sends bytes as told.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "serve/edge/http_frontend.h"
#include "support/fake_backend.h"

namespace septet::test_support {

// A folder that goes with its owner.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  // Writes a file, and the folders above it.
  void write(const std::string& relative, std::string_view text) const;

 private:
  std::string path_;
};

struct HttpReply {
  unsigned status = 0;
  std::map<std::string, std::string> fields{};  // names in lower case
  std::string body{};
};

class HttpClient {
 public:
  explicit HttpClient(const os::Endpoint& endpoint);
  void send(std::string_view bytes);
  // With a descriptor beside the first byte.
  void send(std::string_view bytes, int descriptor);
  void finish_sending();  // half-close
  // The next response; status 0 when the connection ended before one was complete.
  HttpReply receive();
  HttpReply get(const std::string& target);
  HttpReply post(const std::string& target, std::string_view body,
                 const std::string& more_fields = {});
  // Whether the server has closed the connection; waits for it.
  bool is_closed();

 private:
  bool receive_more();

  os::UniqueFd fd_;
  std::string received_;
};

class TestServer {
 public:
  // The repository is written before start().
  TestServer();
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  // The protocol's example model (compute "sum"), batches to 8.
  void add_simple(const std::string& extra = {});
  // One input and output of any length; compute "copy" unless told otherwise.
  void add_copy(const std::string& name, const std::string& type, const std::string& extra = {},
                const std::string& compute = "copy");
  // One more engine beside the fake one, which it outlives.
  void add_backend(serve::Backend& backend) { backends_.push_back(&backend); }
  // What the instances of all models share, before start().
  void limit_rates(std::vector<serve::RatePool> pools) { gate_.emplace(std::move(pools)); }
  // As `septet serve` with gRPC, before start().
  void take_slot_calls() { takes_slot_calls_ = true; }
  TemporaryFolder& folder() { return folder_; }

  void start(serve::InferenceServerOptions options = {}, serve::HttpServerOptions http = {},
             serve::Restrictions restrictions = {});
  HttpClient connect() const { return HttpClient(endpoint_); }
  FakeBackend& backend() { return backend_; }
  // What the store warned of while it loaded; once start() has returned.
  const std::vector<std::string>& warnings() const { return warnings_; }
  serve::InferenceServer& server() { return *server_; }
  serve::ModelStore& store() { return *store_; }

 private:
  TemporaryFolder folder_;
  FakeBackend backend_;
  std::vector<serve::Backend*> backends_{&backend_};
  os::EventLoop loop_;
  os::Endpoint endpoint_;
  std::optional<serve::RateGate> gate_;
  bool takes_slot_calls_ = false;
  std::vector<std::string> warnings_;
  std::unique_ptr<serve::ModelStore> store_;
  std::unique_ptr<serve::InferenceServer> server_;
  std::unique_ptr<serve::HttpFrontend> frontend_;
  std::unique_ptr<serve::HttpServer> http_;
  std::thread thread_;
};

}  // namespace septet::test_support
