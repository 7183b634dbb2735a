#include "support/test_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>
#include <fstream>
#include <future>

#include "base/text.h"
#include "inference/http1.h"
#include "os/sealed_memory.h"

namespace septet::test_support {

namespace {

constexpr int kPatienceMs = 30'000;

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "septet_test_XXXXXX").string();
  CHECK(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TemporaryFolder::write(const std::string& relative, std::string_view text) const {
  const std::filesystem::path path = std::filesystem::path(path_) / relative;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

HttpClient::HttpClient(const os::Endpoint& endpoint) {
  auto fd = os::connect_to(endpoint, kPatienceMs);
  CHECK(fd.ok());
  fd_ = std::move(*fd);
}

void HttpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) {
      pollfd ready{fd_.get(), POLLOUT, 0};
      CHECK(::poll(&ready, 1, kPatienceMs) == 1);
      continue;
    }
    if (sent < 0) {
      return;  // the server refused and closed; receive() tells
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void HttpClient::send(std::string_view bytes, int descriptor) {
  const iovec first{const_cast<char*>(bytes.data()), 1};
  CHECK(os::send_with_descriptor(fd_.get(), std::span(&first, 1), descriptor) == 1);
  send(bytes.substr(1));
}

void HttpClient::finish_sending() { ::shutdown(fd_.get(), SHUT_WR); }

bool HttpClient::receive_more() {
  for (;;) {
    char buffer[65536];
    const ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, 0);
    if (got > 0) {
      received_.append(buffer, static_cast<std::size_t>(got));
      return true;
    }
    if (got == 0 || errno != EAGAIN) {
      return false;
    }
    pollfd ready{fd_.get(), POLLIN, 0};
    CHECK(::poll(&ready, 1, kPatienceMs) == 1);
  }
}

HttpReply HttpClient::receive() {
  inference::HttpHeadParser parser;
  inference::HttpHead head;
  for (;;) {
    const auto result = parser.parse_response(received_, head);
    if (result.state == inference::HeadResult::State::kComplete) {
      const std::size_t length = result.head_bytes + head.content_length;
      HttpReply reply{.status = head.status};
      for (const inference::HttpField& field : head.fields) {
        reply.fields[to_lower(field.name)] = std::string(field.value);
      }
      while (received_.size() < length) {
        if (!receive_more()) {
          return {};
        }
      }
      reply.body = received_.substr(result.head_bytes, head.content_length);
      received_.erase(0, length);
      return reply;
    }
    if (result.state == inference::HeadResult::State::kRefused || !receive_more()) {
      return {};
    }
  }
}

HttpReply HttpClient::get(const std::string& target) {
  send(fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", target));
  return receive();
}

HttpReply HttpClient::post(const std::string& target, std::string_view body,
                           const std::string& more_fields) {
  send(fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{}\r\n", target,
                   body.size(), more_fields));
  send(body);
  return receive();
}

bool HttpClient::is_closed() { return received_.empty() && !receive_more(); }

TestServer::TestServer() = default;

TestServer::~TestServer() {
  backend_.release();
  if (store_) {
    store_->drain_all();
  }
  loop_.stop();
  if (thread_.joinable()) {
    thread_.join();
  }
  server_.reset();
}

void TestServer::add_simple(const std::string& extra) {
  std::string config = "backend: \"fake\" max_batch_size: 8\n";
  for (const char* name : {"INPUT0", "INPUT1"}) {
    config += fmt::format("input {{ name: \"{}\" data_type: TYPE_INT32 dims: 16 }}\n", name);
  }
  for (const char* name : {"OUTPUT0", "OUTPUT1"}) {
    config += fmt::format("output {{ name: \"{}\" data_type: TYPE_INT32 dims: 16 }}\n", name);
  }
  config += "parameters { key: \"compute\" value { string_value: \"sum\" } }\n" + extra;
  folder_.write("simple/config.pbtxt", config);
  folder_.write("simple/1/model.bin", "");
}

void TestServer::add_copy(const std::string& name, const std::string& type,
                          const std::string& extra, const std::string& compute) {
  folder_.write(name + "/config.pbtxt",
                fmt::format("backend: \"fake\" {3}\n"
                            "input {{ name: \"IN\" data_type: {1} dims: -1 }}\n"
                            "output {{ name: \"OUT\" data_type: {1} dims: -1 }}\n"
                            "parameters {{ key: \"compute\" value {{ string_value: \"{2}\" }} }}\n",
                            name, type, compute, extra));
  folder_.write(name + "/1/model.bin", "");
}

void TestServer::start(serve::InferenceServerOptions options, serve::HttpServerOptions http,
                       serve::Restrictions restrictions) {
  store_ = std::make_unique<serve::ModelStore>(
      std::vector<std::string>{folder_.path()}, backends_,
      serve::StoreOptions{
          .rate_gate = gate_ ? &*gate_ : nullptr,
          .on_warning = [this](const std::string& text) { warnings_.push_back(text); }});
  server_ = std::make_unique<serve::InferenceServer>(options, *store_);
  server_->log().error_on = false;  // failures are looked for in the answers
  frontend_ = std::make_unique<serve::HttpFrontend>(*server_, std::move(restrictions));
  if (takes_slot_calls_) {
    frontend_->take_slot_calls();
  }
  http_ = std::make_unique<serve::HttpServer>(loop_, *frontend_, http);
  os::Endpoint wanted;
  wanted.unix_path = folder_.path() + "/http.sock";
  endpoint_ = http_->listen(wanted).value();
  thread_ = std::thread([this] { loop_.run(); });
  std::promise<void> started;
  auto names = store_->names();
  server_->load_at_start(names.value(), [&] { started.set_value(); });
  started.get_future().wait();
}

}  // namespace septet::test_support
